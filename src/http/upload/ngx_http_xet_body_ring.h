
/*
 * The buffers of an upload: one is filled while a thread feeds another one to
 * the consumer, which may keep the pieces before that.
 */

#ifndef _NGX_HTTP_XET_BODY_RING_H_INCLUDED_
#define _NGX_HTTP_XET_BODY_RING_H_INCLUDED_


#include "ngx_http_xet_upload.h"


/*
 * The owner zeroes the structure and sets n, feed and data.  The structure
 * belongs to the event loop, except for status and the buffer of the job, which
 * belong to a thread while the job runs.
 */

typedef struct {
    ngx_http_xet_body_feed_pt   feed;
    void                       *data;          /* argument of feed */
    xet_status_t                status;        /* status returned by feed */
    ngx_buf_t                   buf[NGX_HTTP_XET_BODY_BUFFERS];
    ngx_uint_t                  n;             /* buffers in use, at least 2 */
    ngx_uint_t                  filling;       /* index in buf */
    ngx_buf_t                  *job;           /* piece being fed, or NULL */
    ngx_uint_t                  last;          /* 1: job is the last piece */
} ngx_http_xet_body_ring_t;


/*
 * Returns the buffer being filled.  Allocates the buffer at its first use, with
 * the size "xet_body_buffer", or the Content-Length plus one if that is less.
 * Returns NULL if out of memory.
 */
ngx_buf_t *ngx_http_xet_body_ring_buf(ngx_http_request_t *r,
    ngx_http_xet_body_ring_t *p);

/*
 * Copies bytes from [*pos, last) until the buffer being filled is full, and
 * advances *pos past the copied bytes.  Returns NGX_OK if all bytes were
 * copied, NGX_AGAIN if the buffer is full, NGX_ERROR if out of memory.
 */
ngx_int_t ngx_http_xet_body_ring_copy(ngx_http_request_t *r,
    ngx_http_xet_body_ring_t *p, u_char **pos, u_char *last);

/* Returns whether the buffer being filled is full. */
ngx_uint_t ngx_http_xet_body_ring_full(ngx_http_xet_body_ring_t *p);

/*
 * Passes the buffer being filled to the job, which must not have a piece
 * already.  After that, the next buffer is filled.  last is 1 for the last
 * piece.
 */
void ngx_http_xet_body_ring_next(ngx_http_xet_body_ring_t *p,
    ngx_uint_t last);

/*
 * The job: feeds its piece to the consumer.  data is the
 * ngx_http_xet_body_ring_t.
 */
void ngx_http_xet_body_ring_job(void *data, ngx_log_t *log);

/*
 * Empties the buffer of the job.  Called in the event loop after the job has
 * fed its piece.
 */
void ngx_http_xet_body_ring_done(ngx_http_xet_body_ring_t *p);


#endif /* _NGX_HTTP_XET_BODY_RING_H_INCLUDED_ */
