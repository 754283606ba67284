
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
 * ngx_http_xet_send(), _send_literal() and _send_head() send a complete answer
 * and return what ngx_http_finalize_request() takes, so both a content handler
 * and a callback end with them.
 */

/*
 * Breaks off an answer that has begun and can't go on.  A client notices by the
 * missing end; what was sent so far, also of earlier answers, arrives, because
 * nginx lingers before it closes the connection: a close with unread requests
 * would reset the connection.  Only an answer with neither a length nor a
 * chunked coding is reset, or a client would take it for complete.  Returns
 * what ngx_http_finalize_request() takes; for a subrequest NGX_ERROR, which
 * ends the main request.
 */
ngx_int_t ngx_http_xet_break_off(ngx_http_request_t *r);

/*
 * Lets nginx discard a body that was not read.  A client that waits for "100
 * Continue" gets the final answer instead.  NGX_OK, or what the handler is to
 * return.
 */
ngx_int_t ngx_http_xet_drop_body(ngx_http_request_t *r);

/* Sends the bytes of b, whose nodes must live as long as the request. */
ngx_int_t ngx_http_xet_send(ngx_http_request_t *r, ngx_uint_t status,
    const char *content_type, xet_buf_t *b);

/*
 * Makes *out, a chain of the bytes of b, which are not copied.  *last is the
 * last buffer of the chain: there is one even for no bytes, to carry the end of
 * the answer.  NGX_ERROR without memory, or when b has failed.
 */
ngx_int_t ngx_http_xet_output_chain(ngx_pool_t *pool, xet_buf_t *b,
    ngx_chain_t **out, ngx_buf_t **last);

/*
 * Sets status, type and length of an answer, -1 for a length that is not known.
 * Range and If-* headers of the request have no effect on the answer then.
 */
void ngx_http_xet_output_type(ngx_http_request_t *r, ngx_uint_t status,
    const char *content_type, off_t length);

/*
 * Converts what nginx has returned for the last part of an answer: NGX_AGAIN,
 * which says that the client has not yet taken all, becomes NGX_OK.  A request
 * that is finalized with NGX_OK sends the rest by itself; in this module
 * NGX_AGAIN means that the request will be finalized later.
 */
ngx_int_t ngx_http_xet_sent(ngx_int_t rc);

/* Sends 200 and a copy of json, which is zero-terminated. */
ngx_int_t ngx_http_xet_send_literal(ngx_http_request_t *r, const char *json);

/* Answers HEAD: sends 200 and the headers of a body of length bytes. */
ngx_int_t ngx_http_xet_send_head(ngx_http_request_t *r, off_t length);

/* xet_alloc_pt over an ngx_pool_t. */
void *ngx_http_xet_alloc(void *pool, size_t size);


#endif /* _NGX_HTTP_XET_OUTPUT_H_INCLUDED_ */
