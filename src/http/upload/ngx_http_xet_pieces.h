
/*
 * The double buffer of an upload: one buffer is filled while a thread feeds the
 * other one to the consumer.
 */

#ifndef _NGX_HTTP_XET_PIECES_H_INCLUDED_
#define _NGX_HTTP_XET_PIECES_H_INCLUDED_


#include "ngx_http_xet_upload.h"


/*
 * Zeroed by its owner, the event loop, but for feed and data; the job's buffer
 * and status are a thread's.
 */

typedef struct {
    ngx_http_xet_body_feed_pt   feed;
    void                       *data;          /* of feed */
    xet_status_t                status;        /* that feed has returned */
    ngx_buf_t                   buf[2];
    ngx_uint_t                  filling;       /* index in buf */
    ngx_buf_t                  *job;           /* the piece, NULL: none */
    ngx_uint_t                  last;          /* no piece follows the job's */
} ngx_http_xet_pieces_t;


/*
 * The buffer being filled, allocated at its first use: "xet_body_buffer"
 * bytes, or the Content-Length and one byte where that is less.  NULL without
 * memory.
 */
ngx_buf_t *ngx_http_xet_pieces_buf(ngx_http_request_t *r,
    ngx_http_xet_pieces_t *p);

/*
 * Copies as many of the bytes from pos to last as there is room for, and moves
 * *pos behind them.  NGX_OK: all of them; NGX_AGAIN: there is no room;
 * NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_xet_pieces_copy(ngx_http_request_t *r,
    ngx_http_xet_pieces_t *p, u_char **pos, u_char *last);

/* Whether the buffer being filled has no room. */
ngx_uint_t ngx_http_xet_pieces_full(ngx_http_xet_pieces_t *p);

/*
 * Gives the buffer being filled to the job, which must have no piece, and
 * fills the other one from now on.
 */
void ngx_http_xet_pieces_next(ngx_http_xet_pieces_t *p, ngx_uint_t last);

/* The job: feeds the piece.  data is the ngx_http_xet_pieces_t. */
void ngx_http_xet_pieces_job(void *data, ngx_log_t *log);

/* The job is done with its piece: the buffer is empty again. */
void ngx_http_xet_pieces_done(ngx_http_xet_pieces_t *p);


#endif /* _NGX_HTTP_XET_PIECES_H_INCLUDED_ */
