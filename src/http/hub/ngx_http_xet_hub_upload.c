
/*
 * POST preupload/{revision}: tells the client how to send each file.
 *
 *     handler -> .gitignore of the repo -> body -> probe of the store -> one
 *     statement per 256 files, which returns a part of the response
 *
 * The client uploads all files, except empty ones, before the commit, which
 * refers to them.  So no file has to be contained in the commit, and each file
 * is stored as a Xet file.
 *
 * The rules of the .gitignore in the repo apply if the body has no rules.
 *
 * The first statement with files has the sizes of all files, and refuses those
 * that cannot fit into a quota, before the client sends them.  If the disk is
 * nearly full, files that are larger than the free space are refused as well.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_HUB_PREUPLOAD_BODY  (8 * 1024 * 1024)


#define NGX_HTTP_XET_HUB_PREUPLOAD_PART  256


/* Bytes of a sample, which is sent as base64. */

#define NGX_HTTP_XET_HUB_PREUPLOAD_SAMPLE  512


typedef struct {
    ngx_http_xet_hub_stream_t  stream;
    xet_hub_list_t             list;
    ngx_http_xet_hub_batch_t   batch;
    ngx_http_xet_array_t       ignored;        /* 1: by a ".gitignore" */
    ngx_http_xet_array_t       sizes;          /* of the others */
    ngx_http_xet_array_t       samples;        /* hashes */
    uint64_t                   bytes;          /* sum of these sizes */
    xet_hash_t                 ignore;         /* the .gitignore in the repo */
    xet_hub_text_t             hosted;         /* its text */
    xet_status_t               unread;         /* why it can't be read */
    ngx_str_t                  rev;
    u_char                     oid[XET_HUB_OID_LEN];
} ngx_http_xet_hub_preupload_t;


static void ngx_http_xet_hub_preupload_cleanup(void *data);
static void ngx_http_xet_hub_preupload_ignores(ngx_http_request_t *r,
    ngx_int_t rc);
static xet_status_t ngx_http_xet_hub_preupload_hosted(void *data,
    const u_char *text, size_t len);
static void ngx_http_xet_hub_preupload_body(ngx_http_request_t *r, void *data,
    xet_status_t status);
static xet_status_t ngx_http_xet_hub_preupload_parse(void *data, u_char *text,
    size_t len);
static xet_status_t ngx_http_xet_hub_preupload_add(void *ctx,
    const xet_hub_operation_t *op);
static uint32_t ngx_http_xet_hub_preupload_sample(
    const xet_hub_operation_t *op);
static void ngx_http_xet_hub_preupload_read(ngx_http_request_t *r,
    void *data);
static void ngx_http_xet_hub_preupload_probed(ngx_http_request_t *r,
    xet_status_t status);
static ngx_int_t ngx_http_xet_hub_preupload_ask(ngx_http_request_t *r);
static void ngx_http_xet_hub_preupload_answered(ngx_http_request_t *r,
    ngx_int_t rc);


ngx_int_t
ngx_http_xet_hub_preupload_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    ngx_http_xet_hub_preupload_t  *p;

    if (ngx_http_xet_hub_flag(r, "create_pr")) {
        return ngx_http_xet_error(r, NGX_HTTP_NOT_IMPLEMENTED,
                                  "no_pull_requests",
                                  "This server does not support pull "
                                  "requests");
    }

    p = ngx_http_xet_state(r, sizeof(ngx_http_xet_hub_preupload_t),
                           ngx_http_xet_hub_preupload_cleanup);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    hub->refusal = &p->list.refusal;

    if (ngx_http_xet_hub_stream_init(r, &p->stream,
                                     ngx_http_xet_hub_preupload_ask)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p->rev = hub->rev;
    hub->state = p;

    return ngx_http_xet_query_wait(r,
               ngx_http_xet_query(r, hub_ignores,
                                  ngx_http_xet_hub_preupload_ignores,
                                  .asked = &hub->asked, .rev = p->rev));
}


static void
ngx_http_xet_hub_preupload_cleanup(void *data)
{
    ngx_http_xet_hub_preupload_t *p = data;

    ngx_http_xet_columns_destroy(&p->batch);
    ngx_http_xet_array_destroy(&p->ignored);
    ngx_http_xet_array_destroy(&p->sizes);
    ngx_http_xet_array_destroy(&p->samples);
}


static void
ngx_http_xet_hub_preupload_ignores(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_str_t                        store;
    ngx_http_xet_hub_preupload_t    *p;
    ngx_http_xet_hub_ignores_row_t   row;

    p = ngx_http_xet_hub_get(r)->state;

    if (rc == NGX_DECLINED) {
        ngx_http_xet_query_release(r);
        ngx_http_xet_hub_preupload_body(r, p, XET_OK);
        return;
    }

    if (rc != NGX_OK) {
        ngx_http_xet_query_failed(r, rc);
        return;
    }

    (void) ngx_http_xet_row(r, hub_ignores, 0, &row);

    p->ignore = *row.hash;

    store.len = row.store.len;
    store.data = ngx_pstrdup(r->pool, &row.store);

    ngx_http_xet_query_release(r);

    if (store.data == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ngx_http_xet_ctx_of(r)->repo = store;

    ngx_http_xet_hub_text_read(r, &p->ignore, XET_HUB_IGNORE_MAX + 1,
                               ngx_http_xet_hub_preupload_hosted,
                               ngx_http_xet_hub_preupload_body, p);
}


static xet_status_t
ngx_http_xet_hub_preupload_hosted(void *data, const u_char *text, size_t len)
{
    ngx_http_xet_hub_preupload_t *p = data;

    p->hosted.data = text;
    p->hosted.len = len;

    return XET_OK;
}


static void
ngx_http_xet_hub_preupload_body(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_hub_preupload_t *p = data;

    p->unread = status;

    r->read_event_handler = ngx_http_block_reading;

    ngx_http_finalize_request(r,
        ngx_http_xet_hub_read(r, NGX_HTTP_XET_HUB_PREUPLOAD_BODY,
                              ngx_http_xet_hub_preupload_parse,
                              ngx_http_xet_hub_preupload_read, p));
}


static xet_status_t
ngx_http_xet_hub_preupload_parse(void *data, u_char *text, size_t len)
{
    ngx_http_xet_hub_preupload_t *p = data;

    xet_status_t  rc;

    rc = xet_hub_preupload_parse(&p->list, text, len, &p->hosted,
                                 ngx_http_xet_hub_preupload_add, p);

    return (rc == XET_OK && !p->list.ignores) ? p->unread : rc;
}


static xet_status_t
ngx_http_xet_hub_preupload_add(void *ctx, const xet_hub_operation_t *op)
{
    ngx_http_xet_hub_preupload_t *p = ctx;

    ngx_http_xet_array_bytes(&p->batch.paths, op->path.data, op->path.len);
    ngx_http_xet_array_int8(&p->batch.sizes, op->size);
    ngx_http_xet_array_int8(&p->ignored, op->ignored);

    if (!op->ignored) {
        p->bytes += ngx_min((uint64_t) op->size, UINT64_MAX - p->bytes);

        ngx_http_xet_array_int8(&p->sizes, op->size);
        ngx_http_xet_array_int8(&p->samples,
                                ngx_http_xet_hub_preupload_sample(op));
    }

    return (p->batch.paths.failed || p->batch.sizes.failed
            || p->ignored.failed || p->sizes.failed || p->samples.failed)
           ? XET_NOMEM : XET_OK;
}


/*
 * Returns a hash of the first bytes of a file, by which equal files are equal;
 * if the client did not send these bytes, a hash of the path.
 */

static uint32_t
ngx_http_xet_hub_preupload_sample(const xet_hub_operation_t *op)
{
    size_t                 least;
    const xet_hub_text_t  *text;

    least = ngx_min(op->size, NGX_HTTP_XET_HUB_PREUPLOAD_SAMPLE);
    text = (op->content.len / 4 * 3 >= least) ? &op->content : &op->path;

    return ngx_murmur_hash2((u_char *) text->data, text->len);
}


static void
ngx_http_xet_hub_preupload_read(ngx_http_request_t *r, void *data)
{
    xet_status_t  status;

    status = ngx_http_xet_probe(r, ngx_http_xet_hub_preupload_probed);

    if (status == XET_AGAIN) {
        ngx_http_xet_hub_wait(r, NGX_AGAIN);
        return;
    }

    ngx_http_xet_hub_preupload_probed(r, status);
}


/* Other errors of the store may be gone when the client sends the files. */

static void
ngx_http_xet_hub_preupload_probed(ngx_http_request_t *r, xet_status_t status)
{
    ngx_http_xet_hub_preupload_t  *p;

    p = ngx_http_xet_hub_get(r)->state;

    if (status != XET_STORE_FULL || p->bytes <= ngx_http_xet_probe_left()) {
        ngx_http_xet_hub_wait(r, ngx_http_xet_hub_preupload_ask(r));
        return;
    }

    ngx_http_finalize_request(r,
        ngx_http_xet_error_more(r, .core = status,
            .message = ngx_http_xet_error_room(r, ngx_http_xet_probe_left(),
                                               p->bytes)));
}


static ngx_int_t
ngx_http_xet_hub_preupload_ask(ngx_http_request_t *r)
{
    ngx_uint_t                     first;
    ngx_http_xet_hub_t            *hub;
    ngx_http_xet_hub_preupload_t  *p;

    hub = ngx_http_xet_hub_get(r);
    p = hub->state;

    first = !p->stream.stream.begun;

    return ngx_http_xet_query(r, hub_preupload,
               ngx_http_xet_hub_preupload_answered, .asked = &hub->asked,
               .rev = p->rev,
               .paths = { &p->batch.paths, NGX_HTTP_XET_HUB_PREUPLOAD_PART },
               .sizes = { &p->batch.sizes, NGX_HTTP_XET_HUB_PREUPLOAD_PART },
               .ignored = { &p->ignored, NGX_HTTP_XET_HUB_PREUPLOAD_PART },
               .all_sizes = first ? &p->sizes : NULL,
               .samples = first ? &p->samples : NULL);
}


static void
ngx_http_xet_hub_preupload_answered(ngx_http_request_t *r, ngx_int_t rc)
{
    xet_buf_t                     *b;
    ngx_uint_t                     last;
    ngx_http_xet_hub_answer_t      answer;
    ngx_http_xet_hub_preupload_t  *p;

    p = ngx_http_xet_hub_get(r)->state;

    if (!p->stream.stream.begun) {

        if (ngx_http_xet_hub_over(r, rc) != NGX_OK) {
            return;
        }

        /* only the first statement needs these; the client may be slow */

        ngx_http_xet_array_destroy(&p->sizes);
        ngx_http_xet_array_destroy(&p->samples);
    }

    if (ngx_http_xet_hub_stream_row(r, &p->stream, rc, &answer) != NGX_OK) {
        return;
    }

    last = !ngx_http_xet_array_left(&p->batch.paths);

    b = ngx_http_xet_hub_stream_part(r, &p->stream, answer.body.len + 32,
                                     last);
    if (b == NULL) {
        return;
    }

    if (!p->stream.stream.begun) {
        xet_buf_write(b, "{\"files\":[", sizeof("{\"files\":[") - 1);

    } else {
        xet_buf_write(b, ",", 1);
    }

    xet_buf_write(b, answer.body.data, answer.body.len);

    if (last) {
        xet_buf_write(b, "]}", 2);
    }

    p->rev.len = ngx_min(answer.code.len, XET_HUB_OID_LEN);
    p->rev.data = p->oid;
    ngx_memcpy(p->oid, answer.code.data, p->rev.len);

    ngx_http_xet_hub_stream_send(r, &p->stream);
}
