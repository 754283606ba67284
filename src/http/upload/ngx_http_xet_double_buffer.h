
/*
 * The double buffer of an upload: one buffer is filled while a thread feeds
 * the other one to the consumer.
 */

#ifndef _NGX_HTTP_XET_DOUBLE_BUFFER_H_INCLUDED_
#define _NGX_HTTP_XET_DOUBLE_BUFFER_H_INCLUDED_


#include "ngx_http_xet_upload.h"


/*
 * Zeroed by its owner, the event loop, except for feed and data; the job's
 * buffer and status belong to a thread.
 */

typedef struct {
    ngx_http_xet_body_feed_pt   feed;
    void                       *data;          /* of feed */
    xet_status_t                status;        /* that feed has returned */
    ngx_buf_t                   buf[2];
    ngx_uint_t                  filling;       /* index in buf */
    ngx_buf_t                  *job;           /* the piece, NULL: none */
    ngx_uint_t                  last;          /* no piece follows the job's */
} ngx_http_xet_double_buffer_t;


/*
 * The buffer being filled, allocated at its first use: "xet_body_buffer"
 * bytes, or the Content-Length plus one if that is less.  NULL if out of
 * memory.
 */
ngx_buf_t *ngx_http_xet_double_buffer_buf(ngx_http_request_t *r,
    ngx_http_xet_double_buffer_t *p);

/*
 * Copies the bytes from pos to last as far as there is room, and moves *pos
 * after them.  NGX_OK: all were copied; NGX_AGAIN: no room; NGX_ERROR: out of
 * memory.
 */
ngx_int_t ngx_http_xet_double_buffer_copy(ngx_http_request_t *r,
    ngx_http_xet_double_buffer_t *p, u_char **pos, u_char *last);

/* Whether the buffer being filled is full. */
ngx_uint_t ngx_http_xet_double_buffer_full(ngx_http_xet_double_buffer_t *p);

/*
 * Passes the buffer being filled to the job, which must have no piece, and
 * continues with the other buffer.
 */
void ngx_http_xet_double_buffer_next(ngx_http_xet_double_buffer_t *p,
    ngx_uint_t last);

/* The job: feeds the piece.  data is the ngx_http_xet_double_buffer_t. */
void ngx_http_xet_double_buffer_job(void *data, ngx_log_t *log);

/* The job has finished its piece: its buffer is empty again. */
void ngx_http_xet_double_buffer_done(ngx_http_xet_double_buffer_t *p);


#endif /* _NGX_HTTP_XET_DOUBLE_BUFFER_H_INCLUDED_ */
