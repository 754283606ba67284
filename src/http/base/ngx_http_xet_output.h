
/*
 * Answers: bodies, errors and the headers that go with them.
 */

#ifndef _NGX_HTTP_XET_OUTPUT_H_INCLUDED_
#define _NGX_HTTP_XET_OUTPUT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "xet.h"


/*
 * All send a complete answer and return what ngx_http_finalize_request()
 * takes, so both a content handler and a callback end with them.
 */

/* {"error":{"code":…,"message":…}}, and a line in the error log. */
ngx_int_t ngx_http_xet_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message);

/*
 * The same, when a retry may succeed after so many seconds, which Retry-After
 * says with 429 and 5xx; the others say "xet_retry_after".
 */
ngx_int_t ngx_http_xet_error_later(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message, time_t after);

/* The same with code, message and HTTP status of a core status. */
ngx_int_t ngx_http_xet_error_status(ngx_http_request_t *r,
    xet_status_t status);

/*
 * A core status of 4xx with more to tell than its message: b is the answer,
 * JSON of the same form with further members.
 */
ngx_int_t ngx_http_xet_error_json(ngx_http_request_t *r, xet_status_t status,
    xet_buf_t *b);

/* That JSON, in the request's pool; between them go the further members. */
void ngx_http_xet_error_begin(ngx_http_request_t *r, xet_buf_t *b,
    xet_json_t *j, const char *code, const char *message);
void ngx_http_xet_error_end(xet_json_t *j);

/*
 * For the rc of a query that is not NGX_OK; code and missing tell what 404
 * stands for, NULL where a missing row is our fault.
 */
ngx_int_t ngx_http_xet_error_query(ngx_http_request_t *r, ngx_int_t rc,
    const char *code, const char *missing);

/*
 * The end of a handler that has asked for its first statement, rc is what
 * asking gave: from now on the request waits, and a client that leaves ends
 * it; or the answer is the error.
 */
ngx_int_t ngx_http_xet_wait_query(ngx_http_request_t *r, ngx_int_t rc);

/* The same where the request waits already, or the caller sees to that. */
ngx_int_t ngx_http_xet_asked_query(ngx_http_request_t *r, ngx_int_t rc);

/*
 * The end of an answer that has begun and can't go on.  It stays without its
 * end, by which a client knows, but it and what the connection has brought
 * before arrive: nginx lingers instead of closing under requests that it has
 * not read, which would reset the connection.  That is done only to an answer
 * that has neither length nor chunks, so that nobody takes it for complete.  A
 * subrequest that can't go on ends the request that it is for.
 */
ngx_int_t ngx_http_xet_break_off(ngx_http_request_t *r);

/* An error before the body was read, which is dropped then. */
ngx_int_t ngx_http_xet_refuse(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message);

/*
 * For the handler of a query: goes on with rows() where it brought some, and
 * ends the request unless that returns NGX_AGAIN to wait for the next thing.
 */
void ngx_http_xet_answer_query(ngx_http_request_t *r, ngx_int_t rc,
    ngx_int_t (*rows)(ngx_http_request_t *r), const char *code,
    const char *missing);

/*
 * Lets nginx drop a body that was not read.  A client that waits for "100
 * Continue" gets the answer instead of it.  NGX_OK, or what the handler is to
 * return.
 */
ngx_int_t ngx_http_xet_drop_body(ngx_http_request_t *r);

/* The bytes of b, whose nodes must live as long as the request. */
ngx_int_t ngx_http_xet_send(ngx_http_request_t *r, ngx_uint_t status,
    const char *content_type, xet_buf_t *b);

/*
 * The bytes of b as a chain, whose last buffer is *last: there is one even for
 * no bytes, to carry the end of the answer.  NGX_ERROR without memory.
 */
ngx_int_t ngx_http_xet_output_chain(ngx_pool_t *pool, xet_buf_t *b,
    ngx_chain_t **out, ngx_buf_t **last);

/* Status, type and length of an answer, -1 where that is not known. */
void ngx_http_xet_output_type(ngx_http_request_t *r, ngx_uint_t status,
    const char *content_type, off_t length);

/*
 * What nginx has said of the last part of an answer: NGX_AGAIN, which it is
 * when the client has not yet taken all, becomes NGX_OK.  Finalized with that
 * the request goes on by itself; with us NGX_AGAIN means that it will be
 * finalized later.
 */
ngx_int_t ngx_http_xet_sent(ngx_int_t rc);

/* A literal body. */
ngx_int_t ngx_http_xet_send_literal(ngx_http_request_t *r, ngx_uint_t status,
    const char *content_type, const char *body);

/* HEAD: headers of a body of length bytes, without it. */
ngx_int_t ngx_http_xet_send_head(ngx_http_request_t *r, off_t length);

/* Adds a header to the answer; the strings must live as long as r. */
ngx_int_t ngx_http_xet_header(ngx_http_request_t *r, const char *key,
    const char *value);

/* The n-th header of that name, from 0, or NULL; in either direction. */
ngx_table_elt_t *ngx_http_xet_header_find(ngx_list_t *headers,
    const char *name, ngx_uint_t n);

/* xet_alloc_pt over an ngx_pool_t. */
void *ngx_http_xet_alloc(void *pool, size_t size);

/* The content handler of "xet_error": what error_page leads to. */
ngx_int_t ngx_http_xet_error_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_XET_OUTPUT_H_INCLUDED_ */
