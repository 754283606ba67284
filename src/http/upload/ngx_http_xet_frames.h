
/*
 * An answer in frames: NDJSON, each line flushed, the last one repeated while
 * nothing happens.
 */

#ifndef _NGX_HTTP_XET_FRAMES_H_INCLUDED_
#define _NGX_HTTP_XET_FRAMES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


#define NGX_HTTP_XET_FRAME_MAX  512


typedef struct {
    ngx_http_request_t  *request;
    ngx_event_t          timer;
    ngx_msec_t           interval;     /* ms between repeated frames */
    ngx_msec_t           sent;         /* when the last frame went out */

    ngx_chain_t         *free;
    ngx_chain_t         *busy;

    u_char               last[NGX_HTTP_XET_FRAME_MAX];  /* current frame */
    size_t               len;

    unsigned             begun:1;      /* the header is out */
    unsigned             failed:1;
} ngx_http_xet_frames_t;


/*
 * Starts the timer of f; sends nothing.  The first frame goes out after delay
 * ms, or when one is forced before, so that an early failure can still be an
 * HTTP status.  After that the current frame is repeated every interval ms.  f
 * lives as long as the request.  NGX_OK, or NGX_ERROR without memory.
 */
ngx_int_t ngx_http_xet_frames_start(ngx_http_request_t *r,
    ngx_http_xet_frames_t *f, ngx_msec_t delay, ngx_msec_t interval);

/*
 * Sets the current frame, len bytes with the newline, at most
 * NGX_HTTP_XET_FRAME_MAX.  It is sent at once when force is set, or when a
 * frame went out before, but none in the last 200 ms; else by the timer.
 */
void ngx_http_xet_frames_put(ngx_http_xet_frames_t *f, const u_char *frame,
    size_t len, ngx_uint_t force);

/* There will be no frame: the answer is a status. */
void ngx_http_xet_frames_drop(ngx_http_xet_frames_t *f);

/*
 * Sends the final frame, at most NGX_HTTP_XET_FRAME_MAX bytes, and releases
 * what the request holds.  Returns what ngx_http_finalize_request() takes.
 */
ngx_int_t ngx_http_xet_frames_end(ngx_http_xet_frames_t *f,
    const u_char *frame, size_t len);


#endif /* _NGX_HTTP_XET_FRAMES_H_INCLUDED_ */
