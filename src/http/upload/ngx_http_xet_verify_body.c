
/*
 * Verifies uploads that pass through an edge.
 *
 * In a proxied location "xet_verify_body" checks each xorb against the hash in
 * its path, and the structure of each shard.  A request body filter copies the
 * data into two buffers (ngx_http_xet_body_ring.h): a job verifies one
 * while the other is filled.  After the copy nginx's buffer is passed on, to
 * the origin or, with "proxy_request_buffering on", to the proxy's buffers.
 * Only the buffer that completes the body is held until the whole body is
 * verified.  So an origin never gets a complete request with an invalid body:
 * it gets a truncated request, or no request.
 *
 * While both buffers are full, arriving data is held, nginx's buffer stays busy
 * and the socket is not read, so TCP or the stream's flow control stops the
 * client.
 *
 * States: passing -> passed (the last job is done), or failed.  A failed
 * request is taken away from the proxy module, its connection to the origin is
 * closed, and this server sends the error.  With HTTP/1 the error is sent at
 * once, and the connection is closed by a lingering close.  With HTTP/2 and
 * HTTP/3 the body is first read to its end and discarded, because otherwise
 * clients would see a reset stream.
 *
 * The structure belongs to the event loop, except for the data of the running
 * job: its buffer, the verifier or the parser, and pieces.status.  The event
 * handlers of the request are those of the proxy module; r->read_event_handler
 * calls the filter again when a job is done.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_body_ring.h"
#include "ngx_http_xet_upload.h"


struct ngx_http_xet_verify_s {
    ngx_http_xet_task_t           task;

    ngx_http_xet_xorb_in_t        xorb;
    xet_shard_parser_t            parser;

    ngx_http_xet_body_ring_t      pieces;

    ngx_chain_t                  *held;        /* held buffers of nginx */
    size_t                        copied;      /* bytes copied from held */
    off_t                         received;    /* bytes received */
    off_t                         taken;       /* bytes copied */

    xet_status_t                  status;      /* first error, or XET_OK */

    unsigned                      last:1;      /* got the body's last buffer */
    unsigned                      passed:1;
};


static void ngx_http_xet_verify_cleanup(void *data);
static ngx_int_t ngx_http_xet_verify_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static ngx_int_t ngx_http_xet_verify_hold(ngx_http_request_t *r,
    ngx_http_xet_verify_t *v, ngx_chain_t *in);
static ngx_int_t ngx_http_xet_verify_take(ngx_http_request_t *r,
    ngx_http_xet_verify_t *v, ngx_chain_t ***ll);
static ngx_uint_t ngx_http_xet_verify_completes(ngx_http_request_t *r,
    ngx_http_xet_verify_t *v, ngx_buf_t *b);
static ngx_int_t ngx_http_xet_verify_post(ngx_http_request_t *r,
    ngx_http_xet_verify_t *v);
static ngx_int_t ngx_http_xet_verify_next(ngx_http_request_t *r,
    ngx_chain_t *out);
static ngx_int_t ngx_http_xet_verify_drop(ngx_http_request_t *r,
    ngx_http_xet_verify_t *v);
static xet_status_t ngx_http_xet_verify_xorb(void *data, u_char *buf,
    size_t len, ngx_uint_t last, ngx_log_t *log);
static xet_status_t ngx_http_xet_verify_shard(void *data, u_char *buf,
    size_t len, ngx_uint_t last, ngx_log_t *log);
static void ngx_http_xet_verify_done(ngx_http_request_t *r, void *data);
static void ngx_http_xet_verify_refuse(ngx_http_request_t *r,
    ngx_http_xet_verify_t *v);
static void ngx_http_xet_verify_answer(ngx_http_request_t *r);


static ngx_http_request_body_filter_pt  ngx_http_next_request_body_filter;


ngx_int_t
ngx_http_xet_verify(ngx_http_request_t *r, ngx_http_xet_upload_e upload,
    const xet_hash_t *hash)
{
    xet_status_t               status;
    ngx_http_xet_ctx_t        *ctx;
    ngx_http_xet_verify_t     *v;
    ngx_http_xet_loc_conf_t   *xlcf;
    ngx_http_xet_main_conf_t  *xmcf;

    if (r->request_body) {

        if (r->error_page) {

            /*
             * an internal redirect after an error: the body was already read
             */

            return NGX_DECLINED;
        }

        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "xet: the request body was read by another module");

        ngx_http_finalize_request(r, ngx_http_xet_error_status(r,
                                                               XET_INTERNAL));

        return NGX_DONE;
    }

    /* nginx calls no body filter if there is no body */

    if (r->headers_in.content_length_n <= 0 && !r->headers_in.chunked) {

        status = (upload == NGX_HTTP_XET_UPLOAD_XORB) ? XET_XORB_EMPTY
                                                      : XET_SHARD_TRUNCATED;

        ngx_http_finalize_request(r, ngx_http_xet_error_status(r, status));

        return NGX_DONE;
    }

    ctx = ngx_http_xet_ctx(r);
    v = ngx_http_xet_state(r, sizeof(ngx_http_xet_verify_t),
                           ngx_http_xet_verify_cleanup);

    if (ctx == NULL || v == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->verify = v;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    v->task.upload = 1;
    v->pieces.n = 2;
    v->pieces.data = v;

    if (upload == NGX_HTTP_XET_UPLOAD_XORB) {
        v->pieces.feed = ngx_http_xet_verify_xorb;
        v->xorb.suite = xmcf->suite;
        v->xorb.hash = *hash;
        v->xorb.max = xlcf->xorb_max;

    } else {
        v->pieces.feed = ngx_http_xet_verify_shard;
        xet_shard_parser_init(&v->parser, NULL, NULL);
    }

    return NGX_DECLINED;
}


static void
ngx_http_xet_verify_cleanup(void *data)
{
    ngx_http_xet_verify_t *v = data;

    xet_xorb_verifier_destroy(v->xorb.verifier);
}


static ngx_int_t
ngx_http_xet_verify_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_int_t               rc;
    ngx_chain_t            *out, **ll;
    ngx_http_xet_ctx_t     *ctx;
    ngx_http_xet_verify_t  *v;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (ctx == NULL || ctx->verify == NULL) {
        return ngx_http_next_request_body_filter(r, in);
    }

    v = ctx->verify;

    r->request_body->filter_need_buffering = 1;

    if (ngx_http_xet_verify_hold(r, v, in) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (v->status != XET_OK) {
        return ngx_http_xet_verify_drop(r, v);
    }

    out = NULL;
    ll = &out;

    do {
        if (ngx_http_xet_verify_take(r, v, &ll) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        rc = ngx_http_xet_verify_post(r, v);

        if (rc == NGX_ERROR) {
            ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                          "xet: no job could be started to verify an upload");
            return NGX_HTTP_SERVICE_UNAVAILABLE;
        }

    } while (rc == NGX_OK);

    return ngx_http_xet_verify_next(r, out);
}


static ngx_int_t
ngx_http_xet_verify_hold(ngx_http_request_t *r, ngx_http_xet_verify_t *v,
    ngx_chain_t *in)
{
    ngx_chain_t  *cl;

    for (cl = in; cl; cl = cl->next) {
        v->received += cl->buf->last - cl->buf->pos;
        v->last |= cl->buf->last_buf;
    }

    return ngx_chain_add_copy(r->pool, &v->held, in);
}


/*
 * Copies held bytes until the buffer being filled is full, and moves the held
 * buffers that may be passed on to *ll.
 */

static ngx_int_t
ngx_http_xet_verify_take(ngx_http_request_t *r,
    ngx_http_xet_verify_t *v, ngx_chain_t ***ll)
{
    u_char       *pos, *start;
    ngx_int_t     rc;
    ngx_chain_t  *cl;

    while (v->held) {
        cl = v->held;

        start = cl->buf->pos + v->copied;
        pos = start;

        rc = ngx_http_xet_body_ring_copy(r, &v->pieces, &pos,
                                             cl->buf->last);

        v->copied += pos - start;
        v->taken += pos - start;

        if (rc != NGX_OK) {
            return (rc == NGX_AGAIN) ? NGX_OK : rc;
        }

        if (!v->passed && ngx_http_xet_verify_completes(r, v, cl->buf)) {
            return NGX_OK;
        }

        v->held = cl->next;
        v->copied = 0;

        cl->next = NULL;
        **ll = cl;
        *ll = &cl->next;
    }

    return NGX_OK;
}


/*
 * Returns whether buffer b completes the request to the origin.  With a
 * Content-Length this is the buffer with the last byte, although an empty last
 * buffer may follow; a chunked request is complete only with the last buffer.
 */

static ngx_uint_t
ngx_http_xet_verify_completes(ngx_http_request_t *r,
    ngx_http_xet_verify_t *v, ngx_buf_t *b)
{
    return b->last_buf
           || (!r->headers_in.chunked
               && v->taken == r->headers_in.content_length_n);
}


/*
 * Posts the filled buffer.  Returns NGX_DECLINED if there is nothing to post,
 * or if a job is running.
 */

static ngx_int_t
ngx_http_xet_verify_post(ngx_http_request_t *r, ngx_http_xet_verify_t *v)
{
    ngx_uint_t  last;

    last = v->last && v->taken == v->received;

    if (v->task.busy || v->pieces.last
        || (!last && !ngx_http_xet_body_ring_full(&v->pieces)))
    {
        return NGX_DECLINED;
    }

    ngx_http_xet_body_ring_next(&v->pieces, last);

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet verify: a piece of %uz, last:%ui",
                   v->pieces.job->last - v->pieces.job->pos, last);

    return ngx_http_xet_task_post_beside(r, &v->task,
                                         ngx_http_xet_body_ring_job,
                                         ngx_http_xet_verify_done, &v->pieces);
}


static ngx_int_t
ngx_http_xet_verify_next(ngx_http_request_t *r, ngx_chain_t *out)
{
    ngx_int_t     rc;
    ngx_chain_t  *cl;

    rc = ngx_http_next_request_body_filter(r, out);

    while (out) {
        cl = out;
        out = out->next;
        ngx_free_chain(r->pool, cl);
    }

    return rc;
}


/* Discards the rest of a failed body; only its last buffer is passed on. */

static ngx_int_t
ngx_http_xet_verify_drop(ngx_http_request_t *r, ngx_http_xet_verify_t *v)
{
    ngx_chain_t  *cl, *out;

    out = NULL;

    while (v->held) {
        cl = v->held;
        v->held = cl->next;

        cl->buf->pos = cl->buf->last;

        if (cl->buf->last_buf) {
            cl->next = NULL;
            out = cl;

        } else {
            ngx_free_chain(r->pool, cl);
        }
    }

    return ngx_http_xet_verify_next(r, out);
}


static xet_status_t
ngx_http_xet_verify_xorb(void *data, u_char *buf, size_t len, ngx_uint_t last,
    ngx_log_t *log)
{
    ngx_http_xet_verify_t *v = data;

    size_t  stored;

    return ngx_http_xet_verify_xorb_job(&v->xorb, buf, len, last, &stored);
}


xet_status_t
ngx_http_xet_verify_xorb_job(ngx_http_xet_xorb_in_t *in, u_char *buf,
    size_t len, ngx_uint_t last, size_t *stored)
{
    xet_status_t  rc;

    *stored = 0;

    /* not created earlier, so that an idle upload holds no verifier */

    if (in->verifier == NULL) {
        in->verifier = xet_xorb_verifier_create(in->suite, &in->hash, in->max);

        if (in->verifier == NULL) {
            return XET_NOMEM;
        }
    }

    rc = xet_xorb_verifier_feed(in->verifier, buf, len, stored);

    return (rc == XET_OK && last) ? xet_xorb_verifier_finish(in->verifier)
                                  : rc;
}


/*
 * Some clients send a footer after the two sections of a shard, which is
 * ignored.
 */

static xet_status_t
ngx_http_xet_verify_shard(void *data, u_char *buf, size_t len, ngx_uint_t last,
    ngx_log_t *log)
{
    ngx_http_xet_verify_t *v = data;

    xet_status_t  rc;

    rc = xet_shard_parser_feed(&v->parser, buf, len);

    if (rc == XET_DONE) {
        rc = XET_OK;
    }

    return (rc == XET_OK && last) ? xet_shard_parser_finish(&v->parser) : rc;
}


static void
ngx_http_xet_verify_done(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_verify_t  *v;

    v = ngx_http_xet_ctx_of(r)->verify;

    ngx_http_xet_body_ring_done(&v->pieces);

    v->status = v->pieces.status;
    v->passed = (v->pieces.last && v->status == XET_OK);

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet verify: status:%d passed:%d",
                   (int) v->status, (int) v->passed);

    if (r->header_sent && (r->upstream == NULL
                           || r->upstream->cleanup == NULL))
    {
        /* the error response has already been sent */

        return;
    }

    if (v->status != XET_OK) {
        ngx_http_xet_verify_refuse(r, v);
        return;
    }

    r->read_event_handler(r);
}


static void
ngx_http_xet_verify_refuse(ngx_http_request_t *r, ngx_http_xet_verify_t *v)
{
    ngx_chain_t          *cl;
    ngx_http_upstream_t  *u;

    u = r->upstream;

    if (u && u->cleanup) {

        /*
         * aborts the request to the origin, which also releases a reference to
         * r
         */

        r->main->count++;
        (*u->cleanup)(r);
    }

    if (r->header_sent) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    if (r->http_version < NGX_HTTP_VERSION_20 || v->last) {
        ngx_http_xet_verify_answer(r);
        return;
    }

    /*
     * No module reads the buffers that were passed on.  Mark them as consumed,
     * so that nginx opens the stream's flow control window.
     */

    for (cl = r->request_body->busy; cl; cl = cl->next) {
        cl->buf->pos = cl->buf->last;
    }

    r->request_body->bufs = NULL;

    r->reading_body = 1;
    r->request_body_no_buffering = 1;
    r->write_event_handler = ngx_http_request_empty_handler;

    ngx_http_xet_body_drain(r, ngx_http_xet_verify_answer);
}


static void
ngx_http_xet_verify_answer(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    /*
     * nginx discards the rest of the body and closes the connection; the
     * response must announce the close
     */

    r->keepalive = 0;
    r->lingering_close = 1;
    r->read_event_handler = ngx_http_block_reading;

    ngx_http_finalize_request(r, ngx_http_xet_error_status(r,
                                                        ctx->verify->status));
}


ngx_int_t
ngx_http_xet_verify_init(ngx_conf_t *cf)
{
    ngx_http_next_request_body_filter = ngx_http_top_request_body_filter;
    ngx_http_top_request_body_filter = ngx_http_xet_verify_filter;

    return NGX_OK;
}
