
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
    ngx_msec_t           interval;
    ngx_msec_t           sent;         /* when the last frame went out */

    ngx_chain_t         *free;
    ngx_chain_t         *busy;

    u_char               last[NGX_HTTP_XET_FRAME_MAX];
    size_t               len;

    unsigned             begun:1;      /* the header is out */
    unsigned             failed:1;
} ngx_http_xet_frames_t;


/*
 * Nothing is sent yet: the first frame goes out after delay, or with the
 * first forced one, so that what fails at once can still be told by a status.
 */
ngx_int_t ngx_http_xet_frames_start(ngx_http_request_t *r,
    ngx_http_xet_frames_t *f, ngx_msec_t delay, ngx_msec_t interval);

/*
 * Sets the current frame, len bytes with the newline.  Sent at once when
 * force is set, or when the last one is some time ago; else with the timer.
 */
void ngx_http_xet_frames_put(ngx_http_xet_frames_t *f, const u_char *frame,
    size_t len, ngx_uint_t force);

/* There will be no frame: the answer is a status. */
void ngx_http_xet_frames_drop(ngx_http_xet_frames_t *f);

/* The final frame; returns what ngx_http_finalize_request() takes. */
ngx_int_t ngx_http_xet_frames_end(ngx_http_xet_frames_t *f,
    const u_char *frame, size_t len);


#endif /* _NGX_HTTP_XET_FRAMES_H_INCLUDED_ */
