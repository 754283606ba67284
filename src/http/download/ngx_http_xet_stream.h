
/*
 * An answer in pieces, each made when the one before it is on its way.
 */

#ifndef _NGX_HTTP_XET_STREAM_H_INCLUDED_
#define _NGX_HTTP_XET_STREAM_H_INCLUDED_


#include "ngx_http_xet.h"


/* Makes the next piece, now or later, and calls ngx_http_xet_stream_send(). */
typedef void (*ngx_http_xet_stream_next_pt)(ngx_http_request_t *r,
    void *data);


struct ngx_http_xet_stream_s {
    ngx_http_xet_stream_next_pt   next;
    void                         *data;
    ngx_pool_t                   *pool;        /* of the piece on its way */
    unsigned                      begun:1;
};


/* The headers of the answer are set; s lives in the request's pool. */
ngx_int_t ngx_http_xet_stream_init(ngx_http_request_t *r,
    ngx_http_xet_stream_t *s, ngx_http_xet_stream_next_pt next, void *data);

/*
 * A pool for the memory of the next piece, gone when that is sent; a thread
 * may use it.  NULL without memory.
 */
ngx_pool_t *ngx_http_xet_stream_pool(ngx_http_xet_stream_t *s);

/*
 * Sends a piece, and asks for the next one when the client has taken it, or
 * finalizes the request after the last.
 */
void ngx_http_xet_stream_send(ngx_http_request_t *r,
    ngx_http_xet_stream_t *s, xet_buf_t *b, ngx_uint_t last);


#endif /* _NGX_HTTP_XET_STREAM_H_INCLUDED_ */
