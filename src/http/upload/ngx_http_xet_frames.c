
/*
 * A response in frames, which are lines of NDJSON.  Each frame is flushed, and
 * the last frame is repeated while nothing changes.
 *
 * States: waiting (nothing was sent, an error can set the status) -> begun
 * (the header and at least one frame were sent) -> ended.  A new frame replaces
 * the current frame, so the number of frames depends on time and not on the
 * amount of work.  While a client does not read, no new frames are sent, so no
 * memory accumulates.
 *
 * Runs in the event loop; the owner keeps the structure in the request's pool.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_upload.h"


#define NGX_HTTP_XET_FRAMES_GAP  200   /* ms between unforced frames */


static void ngx_http_xet_frames_cleanup(void *data);
static void ngx_http_xet_frames_timer_handler(ngx_event_t *ev);
static ngx_int_t ngx_http_xet_frames_begin(ngx_http_xet_frames_t *f);
static ngx_int_t ngx_http_xet_frames_send(ngx_http_xet_frames_t *f,
    const u_char *frame, size_t len, ngx_uint_t last);


ngx_int_t
ngx_http_xet_frames_start(ngx_http_request_t *r, ngx_http_xet_frames_t *f,
    ngx_msec_t delay, ngx_msec_t interval)
{
    ngx_http_cleanup_t  *cln;

    ngx_memzero(f, sizeof(ngx_http_xet_frames_t));

    cln = ngx_http_cleanup_add(r, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_xet_frames_cleanup;
    cln->data = f;

    f->request = r;
    f->interval = interval;

    f->timer.handler = ngx_http_xet_frames_timer_handler;
    f->timer.data = f;
    f->timer.log = r->connection->log;

    ngx_add_timer(&f->timer, delay);

    return NGX_OK;
}


static void
ngx_http_xet_frames_cleanup(void *data)
{
    ngx_http_xet_frames_t *f = data;

    if (f->timer.timer_set) {
        ngx_del_timer(&f->timer);
    }
}


void
ngx_http_xet_frames_put(ngx_http_xet_frames_t *f, const u_char *frame,
    size_t len, ngx_uint_t force)
{
    if (len > NGX_HTTP_XET_FRAME_MAX) {
        return;
    }

    ngx_memcpy(f->last, frame, len);
    f->len = len;

    if (!force
        && (!f->begun
            || ngx_current_msec - f->sent < NGX_HTTP_XET_FRAMES_GAP))
    {
        return;
    }

    (void) ngx_http_xet_frames_send(f, f->last, f->len, 0);

    ngx_add_timer(&f->timer, f->interval);
}


static void
ngx_http_xet_frames_timer_handler(ngx_event_t *ev)
{
    ngx_connection_t       *c;
    ngx_http_request_t     *r;
    ngx_http_xet_frames_t  *f;

    f = ev->data;
    r = f->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ngx_add_timer(&f->timer, f->interval);

    if (f->len && ngx_http_xet_frames_send(f, f->last, f->len, 0) == NGX_ERROR)
    {
        c->error = 1;
        ngx_http_finalize_request(r, NGX_ERROR);
    }

    ngx_http_run_posted_requests(c);
}


void
ngx_http_xet_frames_drop(ngx_http_xet_frames_t *f)
{
    f->len = 0;

    if (f->timer.timer_set) {
        ngx_del_timer(&f->timer);
    }
}


ngx_int_t
ngx_http_xet_frames_end(ngx_http_xet_frames_t *f, const u_char *frame,
    size_t len)
{
    if (f->timer.timer_set) {
        ngx_del_timer(&f->timer);
    }

    ngx_http_xet_release(f->request);

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, f->request->connection->log, 0,
                   "xet frames: ended");

    return ngx_http_xet_frames_send(f, frame, len, 1);
}


static ngx_int_t
ngx_http_xet_frames_begin(ngx_http_xet_frames_t *f)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = f->request;

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet frames: begun");

    ngx_http_xet_output_type(r, NGX_HTTP_OK, "application/x-ndjson", -1);

    /* keeps proxies from buffering the frames */

    if (ngx_http_xet_header(r, "Cache-Control", "no-cache") != NGX_OK
        || ngx_http_xet_header(r, "X-Accel-Buffering", "no") != NGX_OK)
    {
        return NGX_ERROR;
    }

    f->begun = 1;

    rc = ngx_http_send_header(r);

    return (rc == NGX_ERROR || rc > NGX_OK) ? NGX_ERROR : NGX_OK;
}


static ngx_int_t
ngx_http_xet_frames_send(ngx_http_xet_frames_t *f, const u_char *frame,
    size_t len, ngx_uint_t last)
{
    ngx_int_t            rc;
    ngx_buf_t           *b;
    ngx_chain_t         *out;
    ngx_http_request_t  *r;

    r = f->request;

    if (f->failed) {
        return NGX_ERROR;
    }

    if (!f->begun && ngx_http_xet_frames_begin(f) != NGX_OK) {
        goto failed;
    }

    if (!last && r->connection->buffered) {

        /* the client does not read: send what is buffered, and no new frame */

        rc = ngx_http_output_filter(r, NULL);

        return (rc == NGX_ERROR) ? NGX_ERROR : NGX_AGAIN;
    }

    out = ngx_chain_get_free_buf(r->pool, &f->free);
    if (out == NULL) {
        goto failed;
    }

    b = out->buf;

    if (b->start == NULL) {

        b->start = ngx_palloc(r->pool, NGX_HTTP_XET_FRAME_MAX);
        if (b->start == NULL) {
            goto failed;
        }

        b->end = b->start + NGX_HTTP_XET_FRAME_MAX;
    }

    b->pos = b->start;
    b->last = ngx_cpymem(b->start, frame, len);
    b->tag = (ngx_buf_tag_t) &ngx_http_xet_module;
    b->temporary = 1;
    b->flush = 1;
    b->last_buf = last;
    b->last_in_chain = 1;

    rc = ngx_http_output_filter(r, out);

    ngx_chain_update_chains(r->pool, &f->free, &f->busy, &out,
                            (ngx_buf_tag_t) &ngx_http_xet_module);

    f->sent = ngx_current_msec;

    if (rc == NGX_ERROR) {
        goto failed;
    }

    return rc;

failed:

    f->failed = 1;

    return NGX_ERROR;
}
