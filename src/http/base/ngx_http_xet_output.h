
/*
 * Answers: their bodies, and how they end.
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

/*
 * The end of an answer that has begun and can't go on.  It stays without its
 * end, by which a client knows, but it and what the connection has brought
 * before arrive: nginx lingers instead of closing under requests that it has
 * not read, which would reset the connection.  That is done only to an answer
 * that has neither length nor chunks, so that nobody takes it for complete.  A
 * subrequest that can't go on ends the request that it is for.
 */
ngx_int_t ngx_http_xet_break_off(ngx_http_request_t *r);

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

/* xet_alloc_pt over an ngx_pool_t. */
void *ngx_http_xet_alloc(void *pool, size_t size);


#endif /* _NGX_HTTP_XET_OUTPUT_H_INCLUDED_ */
