
/*
 * Request bodies, taken while they arrive and handed to jobs.
 */

#ifndef _NGX_HTTP_XET_BODY_FILTER_H_INCLUDED_
#define _NGX_HTTP_XET_BODY_FILTER_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Called in a thread with the next piece of the body; last is 1 with the final
 * piece, which may be empty.  XET_OK goes on, XET_AGAIN pauses where there is
 * a wait handler, any other status ends the upload.
 */
typedef xet_status_t (*ngx_http_xet_body_feed_pt)(void *data, u_char *buf,
    size_t len, ngx_uint_t last, ngx_log_t *log);

/*
 * Called in the event loop when feed has returned XET_AGAIN: gets what feed
 * waits for, by a statement or a job of the request, and then calls
 * ngx_http_xet_body_resume(), at once or later.  Then feed is called again
 * with the same piece at the same address.
 */
typedef void (*ngx_http_xet_body_wait_pt)(ngx_http_request_t *r, void *data);

/*
 * Called once in the event loop: the whole body was fed (XET_OK), or reading
 * or feeding has failed with status.  Not called for a request that has died.
 */
typedef void (*ngx_http_xet_body_done_pt)(ngx_http_request_t *r, void *data,
    xet_status_t status);


/*
 * Reads the body of r.  An upload holds two buffers of "xet_body_buffer": one
 * is filled while a job works on the other, and the socket is not read while
 * both are full.  data must live until the pool of the request dies.  wait may
 * be NULL.  Returns what a content handler returns.
 */
ngx_int_t ngx_http_xet_body_read(ngx_http_request_t *r,
    ngx_http_xet_body_feed_pt feed, ngx_http_xet_body_wait_pt wait,
    ngx_http_xet_body_done_pt done, void *data);

/* Ends a wait: XET_OK feeds the piece again, any other ends the upload. */
void ngx_http_xet_body_resume(ngx_http_request_t *r, xet_status_t status);

/* Bytes of the body received, dropped ones included; 0 where none is read. */
uint64_t ngx_http_xet_body_received(ngx_http_xet_ctx_t *ctx);

/* Registers the filter; in postconfiguration. */
ngx_int_t ngx_http_xet_body_filter_init(ngx_conf_t *cf);


#endif /* _NGX_HTTP_XET_BODY_FILTER_H_INCLUDED_ */
