
/*
 * Sends the decoded form of a compressed component.
 *
 * A small component is read completely and decoded in one call.  The decoder
 * takes 100 KiB, whatever the window is, and damage is found before the
 * response starts.
 *
 * A large component goes through a decoder with a window:
 *
 *     read      the reader's job passes a chunk, which is copied, because
 *               64 KiB of zstd may decode to a thousand times as much
 *     fill      the same job decodes until a piece of the response is full
 *     send      the piece is sent; then the next piece is filled
 *     more      fill again, in a separate job, while copied input is left;
 *               then read continues
 *
 * The response has a Content-Length, so the last piece is sent only after the
 * decoder has accepted the end of its input.  While a job runs, only its
 * thread uses the state.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_ztensor.h"


#define NGX_HTTP_XET_ZT_WHOLE  (1024 * 1024)
#define NGX_HTTP_XET_ZT_PIECE  (256 * 1024)    /* response piece, bytes */
#define NGX_HTTP_XET_ZT_ROOM   (64 * 1024)     /* output per decoder call */
#define NGX_HTTP_XET_ZT_INPUT  (128 * 1024)    /* maximum size of a chunk */


typedef struct {
    ngx_http_xet_zt_component_t  *component;
    ngx_http_xet_stream_t         stream;

    ngx_pool_t                   *pool;        /* for "in", and for output
                                                  of a small component */
    xet_zt_decoder_t             *decoder;     /* NULL: small component */

    u_char                       *in;
    size_t                        in_len;
    const u_char                 *in_pos;

    uint64_t                      left;        /* stored bytes to be read */
    uint64_t                      produced;    /* decoded bytes */
    xet_buf_t                     buf;
    xet_status_t                  status;      /* result of a fill */

    unsigned                      pending:1;   /* fill has more to do */
    unsigned                      ended:1;     /* the decoder has finished */
} ngx_http_xet_zt_decode_t;


static void ngx_http_xet_zt_decode_cleanup(void *data);
static ngx_int_t ngx_http_xet_zt_decode_head(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);
static xet_status_t ngx_http_xet_zt_decode_init(ngx_http_request_t *r,
    ngx_http_xet_zt_decode_t *d);
static xet_status_t ngx_http_xet_zt_decode_read(ngx_http_request_t *r,
    ngx_http_xet_zt_decode_t *d);
static xet_status_t ngx_http_xet_zt_decode_consume(void *data,
    const u_char *p, size_t len);
static xet_status_t ngx_http_xet_zt_decode_whole(ngx_http_xet_zt_decode_t *d,
    const u_char *p, size_t len);
static xet_status_t ngx_http_xet_zt_decode_fill(ngx_http_xet_zt_decode_t *d);
static void ngx_http_xet_zt_decode_piece(ngx_http_request_t *r, void *data,
    xet_status_t status);
static void ngx_http_xet_zt_decode_next(ngx_http_request_t *r, void *data);
static void ngx_http_xet_zt_decode_more_job(void *data, ngx_log_t *log);
static void ngx_http_xet_zt_decode_more(ngx_http_request_t *r, void *data);
static void ngx_http_xet_zt_decode_failed(ngx_http_request_t *r,
    ngx_http_xet_zt_decode_t *d, xet_status_t status);
static void ngx_http_xet_zt_decode_output(ngx_http_request_t *r,
    ngx_http_xet_zt_decode_t *d);


xet_status_t
ngx_http_xet_zt_decode_check(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    ngx_http_xet_ztensor_conf_t  *zlcf;

    if (c->component->coding == XET_ZT_CODING_UNKNOWN
        || !c->component->has_decoded)
    {
        return XET_ZT_DECODE;
    }

    zlcf = c->ztensor->conf;

    /* frames may decode to nothing, but the server must still read them */

    if (c->component->decoded > zlcf->decoder.output
        || c->component->length > zlcf->decoder.output)
    {
        return XET_ZT_DECODE_SIZE;
    }

    /* even an empty frame has a header */

    return c->component->length ? XET_OK : XET_ZT_ZSTD;
}


ngx_int_t
ngx_http_xet_zt_decode_send(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    xet_status_t               status;
    ngx_http_xet_zt_decode_t  *d;

    if (r->method == NGX_HTTP_HEAD) {
        return ngx_http_xet_zt_decode_head(r, c);
    }

    d = ngx_http_xet_state(r, sizeof(ngx_http_xet_zt_decode_t),
                           ngx_http_xet_zt_decode_cleanup);
    if (d == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    d->component = c;

    status = ngx_http_xet_zt_decode_init(r, d);

    if (status == XET_OK) {
        status = ngx_http_xet_zt_decode_read(r, d);
    }

    return (status == XET_AGAIN) ? NGX_AGAIN
                                 : ngx_http_xet_error_status(r, status);
}


static void
ngx_http_xet_zt_decode_cleanup(void *data)
{
    ngx_http_xet_zt_decode_t *d = data;

    xet_zt_decoder_destroy(d->decoder);

    if (d->pool) {
        ngx_destroy_pool(d->pool);
    }
}


static ngx_int_t
ngx_http_xet_zt_decode_head(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    ngx_http_xet_output_type(r, NGX_HTTP_OK, "application/octet-stream",
                             c->component->decoded);

    r->header_only = 1;

    return ngx_http_xet_sent(ngx_http_send_header(r));
}


static xet_status_t
ngx_http_xet_zt_decode_init(ngx_http_request_t *r, ngx_http_xet_zt_decode_t *d)
{
    size_t                     size;
    const xet_zt_component_t  *c;

    c = d->component->component;

    d->left = c->length;

    size = NGX_HTTP_XET_ZT_INPUT;

    if (c->length <= NGX_HTTP_XET_ZT_WHOLE
        && c->decoded <= NGX_HTTP_XET_ZT_WHOLE)
    {
        size = (size_t) c->length + 1;

    } else {
        d->decoder = xet_zt_decoder_create(&d->component->ztensor->conf
                                           ->decoder);
        if (d->decoder == NULL) {
            return XET_NOMEM;
        }

        if (ngx_http_xet_stream_init(r, &d->stream,
                                     ngx_http_xet_zt_decode_next, d)
            != NGX_OK)
        {
            return XET_NOMEM;
        }
    }

    d->pool = ngx_create_pool(4096, ngx_cycle->log);
    if (d->pool == NULL) {
        return XET_NOMEM;
    }

    d->in = ngx_palloc(d->pool, size);
    if (d->in == NULL) {
        return XET_NOMEM;
    }

    return d->decoder ? xet_zt_decoder_start(d->decoder, 1, c->decoded)
                      : XET_OK;
}


/* Starts to read, with memory for the first piece of the response. */

static xet_status_t
ngx_http_xet_zt_decode_read(ngx_http_request_t *r, ngx_http_xet_zt_decode_t *d)
{
    ngx_pool_t  *pool;

    pool = d->decoder ? ngx_http_xet_stream_pool(&d->stream) : d->pool;

    if (pool == NULL) {
        return XET_NOMEM;
    }

    xet_buf_init(&d->buf, ngx_http_xet_alloc, pool, 0);

    return ngx_http_xet_ztensor_read(r, d->component->ztensor,
                                     &d->component->range,
                                     ngx_http_xet_zt_decode_consume,
                                     ngx_http_xet_zt_decode_piece, d);
}


/* Decodes input.  Runs in a thread, like the functions _whole() and _fill(). */

static xet_status_t
ngx_http_xet_zt_decode_consume(void *data, const u_char *p, size_t len)
{
    ngx_http_xet_zt_decode_t *d = data;

    d->left -= len;

    if (d->decoder == NULL) {
        return ngx_http_xet_zt_decode_whole(d, p, len);
    }

    if (len > NGX_HTTP_XET_ZT_INPUT) {
        return XET_INTERNAL;
    }

    ngx_memcpy(d->in, p, len);

    d->in_pos = d->in;
    d->in_len = len;

    return ngx_http_xet_zt_decode_fill(d);
}


static xet_status_t
ngx_http_xet_zt_decode_whole(ngx_http_xet_zt_decode_t *d, const u_char *p,
    size_t len)
{
    u_char        *out;
    size_t         decoded;
    xet_status_t   status;

    ngx_memcpy(d->in + d->in_len, p, len);
    d->in_len += len;

    if (d->left) {
        return XET_OK;
    }

    decoded = (size_t) d->component->component->decoded;

    out = xet_buf_reserve(&d->buf, decoded + 1);
    if (out == NULL) {
        return XET_NOMEM;
    }

    status = xet_zt_decode(d->in, d->in_len, out, decoded);

    if (status == XET_OK) {
        xet_buf_advance(&d->buf, decoded);
        d->ended = 1;
    }

    return status;
}


/*
 * Fills a piece of the response.  XET_OK: more input is needed, or the
 * component is decoded; XET_DONE: the piece is full.  If a full piece contains
 * the last expected byte, the decoder continues: the rest of the input must
 * decode to nothing, and is read before the piece is sent.
 */

static xet_status_t
ngx_http_xet_zt_decode_fill(ngx_http_xet_zt_decode_t *d)
{
    size_t         n;
    u_char        *room;
    uint64_t       decoded;
    xet_status_t   status;

    decoded = d->component->component->decoded;

    d->pending = 0;

    do {
        if (d->buf.size >= NGX_HTTP_XET_ZT_PIECE && d->produced < decoded) {
            d->pending = 1;
            return XET_DONE;
        }

        n = NGX_HTTP_XET_ZT_ROOM;

        room = xet_buf_reserve(&d->buf, n);
        if (room == NULL) {
            return XET_NOMEM;
        }

        status = xet_zt_decoder_feed(d->decoder, &d->in_pos, &d->in_len, room,
                                     &n);
        if (status != XET_AGAIN) {
            return status;
        }

        xet_buf_advance(&d->buf, n);
        d->produced += n;

    } while (d->in_len || n == NGX_HTTP_XET_ZT_ROOM);

    if (d->left) {
        return XET_OK;
    }

    status = xet_zt_decoder_finish(d->decoder);

    d->ended = (status == XET_OK);

    return status;
}


static void
ngx_http_xet_zt_decode_piece(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_decode_t *d = data;

    if (status != XET_OK && status != XET_DONE) {
        ngx_http_xet_zt_decode_failed(r, d, status);
        return;
    }

    ngx_http_xet_zt_decode_output(r, d);
}


static void
ngx_http_xet_zt_decode_output(ngx_http_request_t *r,
    ngx_http_xet_zt_decode_t *d)
{
    if (d->decoder == NULL) {
        ngx_http_finalize_request(r, ngx_http_xet_send(r, NGX_HTTP_OK,
                                        "application/octet-stream", &d->buf));
        return;
    }

    if (!d->stream.begun) {
        ngx_http_xet_output_type(r, NGX_HTTP_OK, "application/octet-stream",
                                 d->component->component->decoded);
    }

    ngx_http_xet_stream_send(r, &d->stream, &d->buf, d->ended);
}


/* Makes the next piece, after the previous one was sent. */

static void
ngx_http_xet_zt_decode_next(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_zt_decode_t *d = data;

    ngx_pool_t    *pool;
    xet_status_t   status;

    pool = ngx_http_xet_stream_pool(&d->stream);

    if (pool == NULL) {
        ngx_http_xet_zt_decode_failed(r, d, XET_NOMEM);
        return;
    }

    xet_buf_init(&d->buf, ngx_http_xet_alloc, pool, 0);

    if (d->pending) {
        status = (ngx_http_xet_task_post(r, ngx_http_xet_zt_decode_more_job,
                                         ngx_http_xet_zt_decode_more, d)
                  == NGX_OK)
                 ? XET_AGAIN : XET_OVERLOADED;

    } else {
        status = ngx_http_xet_ztensor_next(r, d->component->ztensor);
    }

    if (status != XET_AGAIN) {
        ngx_http_xet_zt_decode_failed(r, d, status);
    }
}


static void
ngx_http_xet_zt_decode_more_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_zt_decode_t *d = data;

    d->status = ngx_http_xet_zt_decode_fill(d);
}


static void
ngx_http_xet_zt_decode_more(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_zt_decode_t *d = data;

    xet_status_t  status;

    status = d->status;

    if (status == XET_OK && !d->ended) {
        status = ngx_http_xet_ztensor_next(r, d->component->ztensor);

        if (status == XET_AGAIN) {
            return;
        }
    }

    if (status != XET_OK && status != XET_DONE) {
        ngx_http_xet_zt_decode_failed(r, d, status);
        return;
    }

    ngx_http_xet_zt_decode_output(r, d);
}


static void
ngx_http_xet_zt_decode_failed(ngx_http_request_t *r,
    ngx_http_xet_zt_decode_t *d, xet_status_t status)
{
    if (d->stream.begun) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "xet: a decoded component was truncated: %s",
                      xet_status_text(status));

        ngx_http_finalize_request(r, ngx_http_xet_break_off(r));
        return;
    }

    ngx_http_finalize_request(r, ngx_http_xet_error_status(r, status));
}
