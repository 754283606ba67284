
/*
 * Receives request bodies and passes them to jobs while they arrive.
 *
 * nginx reads the body unbuffered, and its chain of request body filters
 * delivers each buffer from the socket.  The filter copies as many bytes as fit
 * into the job buffer that is being filled.  The rest stays in
 * r->request_body->bufs until the pump copies it.  While all job buffers are
 * full, nothing is consumed, nginx's buffer stays busy and the socket is not
 * read, so TCP or the stream's flow control stops the client.  If one read
 * fills nginx's buffer completely, the buffer is not copied but exchanged with
 * an empty job buffer.
 *
 * The pump, ngx_http_xet_body_pump(), runs in the event loop when data has
 * arrived or a job has ended.  It copies waiting bytes, posts the filled buffer
 * if no job runs, and reads more, until the last piece was fed or an error
 * occurred.
 *
 * A feed function that must wait for the event loop, for example for a
 * statement, pauses the upload.  During the pause its piece is kept, and the
 * next buffer is filled; ngx_http_xet_body_resume() feeds the piece again.
 *
 * After an error an HTTP/1 client gets the response at once, and nginx closes
 * the connection with a delay (lingering close), so that the client can read
 * the response.  An HTTP/2 or HTTP/3 client would see a reset stream, so its
 * body is first read to the end and discarded.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_body_ring.h"
#include "ngx_http_xet_upload.h"


struct ngx_http_xet_body_s {
    ngx_http_request_t         *request;

    ngx_http_xet_body_sink_t    sink;
    ngx_http_xet_body_ring_t    pieces;        /* pieces.job is being fed */

    xet_status_t                status;        /* first error */
    uint64_t                    received;      /* bytes, including discarded */

    unsigned                    eof:1;         /* the last byte was received */
    unsigned                    paused:1;      /* the wait handler is active */
    unsigned                    finished:1;
    unsigned                    counted:1;     /* counted in uploads gauge */
};


static void ngx_http_xet_body_post_handler(ngx_http_request_t *r);
static void ngx_http_xet_body_read_handler(ngx_http_request_t *r);
static void ngx_http_xet_body_pump(ngx_http_xet_body_t *body);
static void ngx_http_xet_body_drop(ngx_http_xet_body_t *body);
static void ngx_http_xet_body_drained(ngx_http_request_t *r);
static void ngx_http_xet_body_drain_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_body_go(ngx_http_xet_body_t *body);
static void ngx_http_xet_body_failed(ngx_http_xet_body_t *body,
    ngx_int_t rc);
static ngx_int_t ngx_http_xet_body_take(ngx_http_xet_body_t *body);
static ngx_uint_t ngx_http_xet_body_whole(ngx_http_xet_body_t *body,
    ngx_chain_t *cl);
static ngx_int_t ngx_http_xet_body_swap(ngx_http_xet_body_t *body,
    ngx_buf_t *in);
static ngx_uint_t ngx_http_xet_body_full(ngx_http_xet_body_t *body);
static ngx_uint_t ngx_http_xet_body_busy(ngx_http_xet_body_t *body);
static ngx_int_t ngx_http_xet_body_post(ngx_http_xet_body_t *body);
static void ngx_http_xet_body_job_done(ngx_http_request_t *r, void *data);
static void ngx_http_xet_body_finish(ngx_http_xet_body_t *body);
static void ngx_http_xet_body_ended(void *data);
static ngx_int_t ngx_http_xet_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);


static ngx_http_request_body_filter_pt  ngx_http_next_request_body_filter;


ngx_int_t
ngx_http_xet_body_read(ngx_http_request_t *r,
    const ngx_http_xet_body_sink_t *sink)
{
    ngx_int_t             rc;
    ngx_http_xet_ctx_t   *ctx;
    ngx_http_xet_body_t  *body;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    ctx->task->upload = 1;

    body = ngx_http_xet_state(r, sizeof(ngx_http_xet_body_t),
                              ngx_http_xet_body_ended);
    if (body == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    body->request = r;
    body->sink = *sink;
    body->pieces.n = ngx_max(sink->buffers, 2);
    body->pieces.feed = sink->feed;
    body->pieces.data = sink->data;

    ctx->body = body;

    body->counted = 1;
    ngx_http_xet_count(UPLOADS, 1);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet body: reading %O bytes",
                   r->headers_in.content_length_n);

    r->request_body_no_buffering = 1;

    rc = ngx_http_read_client_request_body(r, ngx_http_xet_body_post_handler);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    return NGX_DONE;
}


uint64_t
ngx_http_xet_body_received(ngx_http_xet_ctx_t *ctx)
{
    return ctx->body ? ctx->body->received : 0;
}


static void
ngx_http_xet_body_post_handler(ngx_http_request_t *r)
{
    ngx_chain_t          *cl;
    ngx_http_xet_body_t  *body;

    body = ngx_http_xet_ctx_of(r)->body;

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        if (cl->buf->in_file) {

            /* another module has read and buffered the body */

            ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                          "xet: the request body was read by another module");
            body->status = XET_INTERNAL;
            break;
        }
    }

    r->read_event_handler = ngx_http_xet_body_read_handler;

    ngx_http_xet_body_pump(body);
}


static void
ngx_http_xet_body_read_handler(ngx_http_request_t *r)
{
    if (r->connection->read->timedout) {
        r->connection->timedout = 1;
        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    ngx_http_xet_body_pump(ngx_http_xet_ctx_of(r)->body);
}


static void
ngx_http_xet_body_pump(ngx_http_xet_body_t *body)
{
    ngx_int_t            rc;
    ngx_uint_t           again;
    ngx_http_request_t  *r;

    r = body->request;
    again = 0;

    while (!body->finished) {

        rc = ngx_http_xet_body_take(body);

        if (body->status != XET_OK) {
            ngx_http_xet_body_drop(body);
            return;
        }

        body->eof = !r->reading_body && rc == NGX_OK;
        rc = ngx_http_xet_body_go(body);

        if (rc == NGX_AGAIN) {
            continue;
        }

        if (rc != NGX_OK || again) {
            return;
        }

        rc = ngx_http_read_unbuffered_request_body(r);

        if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
            ngx_http_xet_body_failed(body, rc);
            return;
        }

        again = (rc == NGX_AGAIN);
    }
}


/* Ends a failed body as soon as no job is using it. */

static void
ngx_http_xet_body_drop(ngx_http_xet_body_t *body)
{
    ngx_http_request_t  *r;

    r = body->request;

    if (ngx_http_xet_body_busy(body)) {
        return;
    }

    if (!r->reading_body || r->http_version < NGX_HTTP_VERSION_20) {
        ngx_http_xet_body_finish(body);
        return;
    }

    ngx_http_xet_body_drain(r, ngx_http_xet_body_drained);
}


static void
ngx_http_xet_body_drained(ngx_http_request_t *r)
{
    ngx_http_xet_body_finish(ngx_http_xet_ctx_of(r)->body);
}


void
ngx_http_xet_body_drain(ngx_http_request_t *r,
    ngx_http_event_handler_pt drained)
{
    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet body: failed, dropping the rest");

    ngx_http_xet_ctx_of(r)->drained = drained;
    r->read_event_handler = ngx_http_xet_body_drain_handler;

    ngx_http_xet_body_drain_handler(r);
}


static void
ngx_http_xet_body_drain_handler(ngx_http_request_t *r)
{
    ngx_int_t  rc;

    rc = ngx_http_read_unbuffered_request_body(r);

    if (rc == NGX_AGAIN) {
        return;
    }

    if (r->connection->error || rc == NGX_HTTP_REQUEST_TIME_OUT) {
        ngx_http_finalize_request(r, r->connection->error
                                     ? NGX_HTTP_CLIENT_CLOSED_REQUEST : rc);
        return;
    }

    ngx_http_xet_ctx_of(r)->drained(r);
}


/*
 * Posts the filled buffer.  Returns NGX_OK to read more; NGX_AGAIN to run the
 * pump again, if posting has failed or a buffer has space for waiting bytes;
 * NGX_DONE if the pump has to wait.
 */

static ngx_int_t
ngx_http_xet_body_go(ngx_http_xet_body_t *body)
{
    ngx_http_request_t  *r;

    r = body->request;

    if (ngx_http_xet_body_post(body) != NGX_OK) {
        body->status = XET_OVERLOADED;
        return NGX_AGAIN;
    }

    if (!r->reading_body
        || (ngx_http_xet_body_full(body) && ngx_http_xet_body_busy(body)))
    {
        /* the client waits for the server, so its timeout is off */

        if (r->connection->read->timer_set) {
            ngx_del_timer(r->connection->read);
        }

        return NGX_DONE;
    }

    return r->request_body->bufs ? NGX_AGAIN : NGX_OK;
}


/*
 * Handles a read error: the client closed the connection, timed out, or sent a
 * malformed body.
 */

static void
ngx_http_xet_body_failed(ngx_http_xet_body_t *body, ngx_int_t rc)
{
    ngx_http_request_t  *r;

    r = body->request;

    if (rc == NGX_HTTP_BAD_REQUEST && r->connection->error) {
        ngx_http_finalize_request(r, NGX_HTTP_CLIENT_CLOSED_REQUEST);
        return;
    }

    if (rc == NGX_HTTP_REQUEST_TIME_OUT) {
        ngx_http_finalize_request(r, rc);
        return;
    }

    /*
     * the body is too large or has bad framing, which nginx may detect while no
     * job runs
     */

    if (body->status == XET_OK) {
        body->status = (rc == NGX_HTTP_REQUEST_ENTITY_TOO_LARGE)
                       ? XET_BODY_SIZE : XET_BODY_SYNTAX;
    }

    if (!ngx_http_xet_body_busy(body)) {
        ngx_http_xet_body_finish(body);
    }
}


/*
 * Copies waiting bytes into the buffer that is being filled.  Returns NGX_OK if
 * no bytes are left, NGX_AGAIN if the buffer is full.
 */

static ngx_int_t
ngx_http_xet_body_take(ngx_http_xet_body_t *body)
{
    ngx_int_t                 rc;
    u_char                   *pos;
    ngx_buf_t                *in;
    ngx_chain_t              *cl;
    ngx_http_request_t       *r;
    ngx_http_request_body_t  *rb;

    r = body->request;
    rb = r->request_body;

    while (rb->bufs) {
        cl = rb->bufs;
        in = cl->buf;
        pos = in->pos;

        if (body->status != XET_OK) {
            in->pos = in->last;
            rc = NGX_OK;

        } else if (ngx_http_xet_body_whole(body, cl)) {
            rc = ngx_http_xet_body_swap(body, in);

        } else {
            rc = ngx_http_xet_body_ring_copy(r, &body->pieces, &in->pos,
                                                 in->last);
        }

        body->received += in->pos - pos;
        ngx_http_xet_count(UPLOAD_BYTES, in->pos - pos);

        if (rc == NGX_ERROR) {
            body->status = XET_NOMEM;
            continue;
        }

        if (rc != NGX_OK) {
            return NGX_AGAIN;
        }

        rb->bufs = cl->next;
        ngx_free_chain(r->pool, cl);
    }

    return NGX_OK;
}


/*
 * Returns whether nginx's buffer and the job buffer can exchange their memory:
 * cl is the last link of the chain, and is nginx's own buffer, which is full
 * and has the size of a job buffer.  The exchange is possible only with HTTP/1,
 * where four pointers of nginx refer to this memory.
 */

static ngx_uint_t
ngx_http_xet_body_whole(ngx_http_xet_body_t *body, ngx_chain_t *cl)
{
    ngx_buf_t           *b, *own;
    ngx_http_request_t  *r;

    r = body->request;
    own = r->request_body->buf;

    if (r->http_version >= NGX_HTTP_VERSION_20
        || own == NULL
        || cl->next
        || cl->buf->pos != own->start
        || cl->buf->last != own->end)
    {
        return 0;
    }

    b = ngx_http_xet_body_ring_buf(r, &body->pieces);

    return b && own->end - own->start == b->end - b->start;
}


/*
 * Exchanges nginx's buffer and the empty job buffer.  Returns NGX_OK, or
 * NGX_AGAIN if the job buffer is not empty and must be passed to a job first.
 */

static ngx_int_t
ngx_http_xet_body_swap(ngx_http_xet_body_t *body, ngx_buf_t *in)
{
    u_char     *start;
    ngx_buf_t  *b, *own;

    b = &body->pieces.buf[body->pieces.filling];
    own = body->request->request_body->buf;

    if (b->last != b->start) {
        return NGX_AGAIN;
    }

    start = b->start;

    b->start = in->pos;
    b->pos = in->pos;
    b->last = in->last;
    b->end = in->last;

    own->end = start + (own->end - own->start);
    own->start = start;
    own->pos = start;
    own->last = start;

    in->pos = in->last;

    return NGX_OK;
}


/*
 * Returns whether a piece is being processed, by a thread or by the wait
 * handler.
 */

static ngx_uint_t
ngx_http_xet_body_busy(ngx_http_xet_body_t *body)
{
    return body->paused || ngx_http_xet_task_busy(body->request);
}


/* Returns whether the buffer being filled is full, or bytes are waiting. */

static ngx_uint_t
ngx_http_xet_body_full(ngx_http_xet_body_t *body)
{
    return ngx_http_xet_body_ring_full(&body->pieces)
           || body->request->request_body->bufs;
}


/*
 * Posts the paused piece.  If no piece is paused, posts the buffer that is
 * being filled, if it is full or the last one.  Also returns NGX_OK if there is
 * nothing to post.
 */

static ngx_int_t
ngx_http_xet_body_post(ngx_http_xet_body_t *body)
{
    if (ngx_http_xet_body_busy(body)) {
        return NGX_OK;
    }

    if (body->pieces.job == NULL) {

        if (!ngx_http_xet_body_full(body) && !body->eof) {
            return NGX_OK;
        }

        if (ngx_http_xet_body_ring_buf(body->request, &body->pieces) ==
            NULL)
        {
            return NGX_ERROR;
        }

        ngx_http_xet_body_ring_next(&body->pieces, body->eof);

        ngx_log_debug2(NGX_LOG_DEBUG_HTTP, body->request->connection->log, 0,
                       "xet body: a piece of %uz, last:%ui",
                       body->pieces.job->last - body->pieces.job->pos,
                       body->pieces.last);
    }

    return ngx_http_xet_task_post(body->request, ngx_http_xet_body_ring_job,
                                  ngx_http_xet_body_job_done, &body->pieces);
}


static void
ngx_http_xet_body_job_done(ngx_http_request_t *r, void *data)
{
    xet_status_t          status;
    ngx_http_xet_body_t  *body;

    body = ngx_http_xet_ctx_of(r)->body;
    status = body->pieces.status;

    if (status == XET_AGAIN && body->status == XET_OK && body->sink.wait) {
        ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                       "xet body: the piece waits");

        body->paused = 1;
        body->sink.wait(r, body->sink.data);
        return;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet body: the piece is fed, status:%d", (int) status);

    ngx_http_xet_body_ring_done(&body->pieces);

    if (body->status == XET_OK) {
        body->status = status;
    }

    if (body->status == XET_OK && body->pieces.last) {
        ngx_http_xet_body_finish(body);
        return;
    }

    if (status == XET_OK && body->sink.fed) {
        body->sink.fed(r, body->sink.data);
    }

    ngx_http_xet_body_pump(body);
}


void
ngx_http_xet_body_resume(ngx_http_request_t *r, xet_status_t status)
{
    ngx_http_xet_body_t  *body;

    body = ngx_http_xet_ctx_of(r)->body;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet body: the piece goes on, status:%d", (int) status);

    body->paused = 0;

    if (body->status == XET_OK) {
        body->status = status;
    }

    ngx_http_xet_body_pump(body);
}


/*
 * Removes the upload from the gauges, when the body is complete or the request
 * ends.
 */

static void
ngx_http_xet_body_ended(void *data)
{
    ngx_http_xet_body_t *body = data;

    if (body->counted) {
        body->counted = 0;

        ngx_http_xet_count(UPLOADS, -1);
        ngx_http_xet_count(UPLOAD_BYTES, -body->received);
    }
}


static void
ngx_http_xet_body_finish(ngx_http_xet_body_t *body)
{
    ngx_http_request_t  *r;

    r = body->request;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet body: done, status:%d after %uL bytes",
                   (int) body->status, body->received);

    body->finished = 1;

    ngx_http_xet_body_ended(body);

    if (!r->reading_body) {
        r->read_event_handler = ngx_http_test_reading;

    } else {

        /*
         * nginx discards the rest of the body and closes the connection; the
         * response must announce the close
         */

        r->keepalive = 0;
        r->read_event_handler = ngx_http_block_reading;
    }

    body->sink.done(r, body->sink.data, body->status);
}


/*
 * Passes "in" to the next filters, the last of which adds it to rb->bufs, and
 * takes the data from rb->bufs immediately.  nginx reuses a buffer as soon as
 * the buffer is consumed, so a consumed buffer must not stay in rb->bufs.
 */

static ngx_int_t
ngx_http_xet_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_int_t            rc;
    ngx_http_xet_ctx_t  *ctx;

    rc = ngx_http_next_request_body_filter(r, in);

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (rc == NGX_OK && ctx && ctx->body && !ctx->body->finished) {
        (void) ngx_http_xet_body_take(ctx->body);
    }

    return rc;
}


ngx_int_t
ngx_http_xet_body_filter_init(ngx_conf_t *cf)
{
    ngx_http_next_request_body_filter = ngx_http_top_request_body_filter;
    ngx_http_top_request_body_filter = ngx_http_xet_body_filter;

    return NGX_OK;
}
