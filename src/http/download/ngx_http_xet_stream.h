
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


/*
 * Initializes s, which lives in the request's pool.  The caller sets the
 * headers of the answer before the first piece is sent.  NGX_OK, or NGX_ERROR
 * without memory.
 */
ngx_int_t ngx_http_xet_stream_init(ngx_http_request_t *r,
    ngx_http_xet_stream_t *s, ngx_http_xet_stream_next_pt next, void *data);

/*
 * A pool for the memory of the next piece, destroyed when the piece is sent; a
 * thread may use the pool.  NULL without memory.
 */
ngx_pool_t *ngx_http_xet_stream_pool(ngx_http_xet_stream_t *s);

/*
 * Sends a piece, which is in b, and calls next when the client has taken the
 * piece, or finalizes the request after the last one.
 */
void ngx_http_xet_stream_send(ngx_http_request_t *r,
    ngx_http_xet_stream_t *s, xet_buf_t *b, ngx_uint_t last);


#endif /* _NGX_HTTP_XET_STREAM_H_INCLUDED_ */
