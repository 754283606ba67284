
/*
 * GET zt/{file}/verify: checks the data of one object, or of all objects,
 * against the declarations of the file.  The report is JSON.
 *
 *     open      rejects a file that is not a zTensor file, or is too large
 *     walk      copies a batch of objects
 *     verify    reads the components of the batch and checks their data
 *               (ngx_http_xet_zt_batch.c)
 *     send      sends the batch's part of the report, then walks again
 *
 * The reader's jobs compute digests and decode; the batch belongs to the
 * thread during a read.  A batch takes memory for the copies of objects, a
 * buffer of 64 KiB, a zstd window, 2 MiB when a component is decoded in one
 * call, up to 16 MiB for indices, and a piece of 128 KiB.
 *
 * Reports are stored in PostgreSQL (ngx_http_xet_zt_reports.c), so the data of
 * a file, which never changes, is read only once.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_zt_verify.h"


#define NGX_HTTP_XET_ZT_BATCH_BYTES  (256 * 1024)      /* total of copies */


static void ngx_http_xet_zt_verify_cleanup(void *data);
static void ngx_http_xet_zt_verify_opened(ngx_http_request_t *r, void *data,
    xet_status_t status);
static xet_status_t ngx_http_xet_zt_verify_begin(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v);
static xet_status_t ngx_http_xet_zt_verify_walk(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v);
static xet_status_t ngx_http_xet_zt_verify_object(void *ctx,
    xet_zt_object_t *o);
static void ngx_http_xet_zt_verify_walked(ngx_http_request_t *r, void *data,
    xet_status_t status);
static xet_status_t ngx_http_xet_zt_verify_check(ngx_http_xet_zt_verify_t *v);
static xet_status_t ngx_http_xet_zt_reports_load(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v);
static void ngx_http_xet_zt_reports_queried(ngx_http_request_t *r,
    ngx_int_t rc);
static void ngx_http_xet_zt_verify_send(ngx_http_request_t *r, void *data,
    xet_status_t status);
static void ngx_http_xet_zt_verify_json(ngx_http_xet_zt_verify_t *v);
static void ngx_http_xet_zt_verify_next(ngx_http_request_t *r, void *data);
static void ngx_http_xet_zt_verify_failed(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v, xet_status_t status);


ngx_int_t
ngx_http_xet_zt_verify_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    xet_status_t               status;
    ngx_http_xet_zt_verify_t  *v;

    v = ngx_http_xet_state(r, sizeof(ngx_http_xet_zt_verify_t),
                           ngx_http_xet_zt_verify_cleanup);
    if (v == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    status = ngx_http_xet_ztensor_create(r, XET_ZT_ARG_NAME|XET_ZT_ARG_ROLE,
                                         &v->ztensor, v);
    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    v->one = (v->ztensor->query.has_i || v->ztensor->query.name.data);
    v->left = v->ztensor->conf->limit[NGX_HTTP_XET_ZT_VERIFY];
    v->done = ngx_http_xet_zt_verify_send;

    ctx->route.zt_verify = v;

    return ngx_http_xet_ztensor_open(r, v->ztensor, 0,
                                     ngx_http_xet_zt_verify_opened);
}


static void
ngx_http_xet_zt_verify_cleanup(void *data)
{
    ngx_http_xet_zt_verify_t *v = data;

    ngx_http_xet_zt_batch_reset(v);

    xet_zt_verifier_destroy(v->verifier);

    free(v->in);
}


static void
ngx_http_xet_zt_verify_opened(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_verify_t *v = data;

    const xet_zt_info_t  *info;

    if (status == XET_OK && !v->one) {
        info = xet_zt_info(v->ztensor->zt);

        if (info->bytes > v->left) {
            status = XET_ZT_VERIFY_SIZE;
        }
    }

    if (status == XET_OK) {
        status = ngx_http_xet_zt_verify_begin(r, v);
    }

    if (status == XET_OK) {
        status = ngx_http_xet_zt_verify_walk(r, v);
    }

    if (status != XET_AGAIN) {
        ngx_http_xet_zt_verify_walked(r, v, status);
    }
}


static xet_status_t
ngx_http_xet_zt_verify_begin(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v)
{
    u_char                        id[XET_HASH_STR_LEN];
    ngx_pool_t                   *pool;
    ngx_http_xet_ztensor_conf_t  *zlcf;

    zlcf = v->ztensor->conf;

    xet_zt_region(v->ztensor->zt, &v->region);

    v->rules = xet_zt_report_rules(&zlcf->limits, &zlcf->decoder);

    v->verifier = xet_zt_verifier_create(&zlcf->decoder);
    if (v->verifier == NULL) {
        return XET_NOMEM;
    }

    if (ngx_http_xet_stream_init(r, &v->stream, ngx_http_xet_zt_verify_next, v)
        != NGX_OK)
    {
        return XET_NOMEM;
    }

    pool = ngx_http_xet_stream_pool(&v->stream);
    if (pool == NULL) {
        return XET_NOMEM;
    }

    xet_buf_init(&v->buf, ngx_http_xet_alloc, pool, 0);
    xet_json_init(&v->json, &v->buf);

    (void) xet_hash_print(id, &v->ztensor->hash);

    xet_zt_audit_begin(&v->audit, &v->json, v->ztensor->zt, id, sizeof(id));

    return XET_OK;
}


static xet_status_t
ngx_http_xet_zt_verify_walk(ngx_http_request_t *r, ngx_http_xet_zt_verify_t *v)
{
    v->full = 0;

    return ngx_http_xet_ztensor_walk(r, v->ztensor,
                                     ngx_http_xet_zt_verify_object,
                                     ngx_http_xet_zt_verify_walked);
}


/* Copies an object to the batch.  Runs in a thread. */

static xet_status_t
ngx_http_xet_zt_verify_object(void *ctx, xet_zt_object_t *o)
{
    ngx_http_xet_zt_verify_t *v = ctx;

    xet_zt_object_t  *copy;

    v->ztensor->select.first = o->index + 1;

    copy = xet_zt_object_copy(o);
    if (copy == NULL) {
        return XET_NOMEM;
    }

    v->objects[v->nobjects++] = copy;
    v->size += xet_zt_object_size(copy);

    if (v->one) {
        return XET_DONE;
    }

    v->full = (v->nobjects == NGX_HTTP_XET_ZT_BATCH_OBJECTS
               || v->size >= NGX_HTTP_XET_ZT_BATCH_BYTES);

    return v->full ? XET_DONE : XET_OK;
}


static void
ngx_http_xet_zt_verify_walked(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_verify_t *v = data;

    if (status == XET_OK && v->one) {
        status = ngx_http_xet_zt_verify_check(v);
    }

    if (status == XET_OK) {
        status = ngx_http_xet_zt_batch_items(v);
    }

    if (status == XET_OK) {
        status = ngx_http_xet_zt_reports_load(r, v);
    }

    if (status == XET_OK) {
        status = ngx_http_xet_zt_batch_next(r, v);
    }

    if (status != XET_AGAIN) {
        ngx_http_xet_zt_verify_send(r, v, status);
    }
}


/* Checks that the requested object and role exist, and are not too large. */

static xet_status_t
ngx_http_xet_zt_verify_check(ngx_http_xet_zt_verify_t *v)
{
    ngx_uint_t                 i;
    uint64_t                   left;
    xet_zt_object_t           *o;
    const xet_zt_component_t  *c, *one;

    if (v->nobjects == 0) {
        return XET_ZT_NO_OBJECT;
    }

    o = v->objects[0];
    one = NULL;

    if (v->ztensor->query.role.data) {
        one = xet_zt_object_component(o, v->ztensor->query.role.data,
                                      v->ztensor->query.role.len);
        if (one == NULL) {
            return XET_ZT_NO_COMPONENT;
        }
    }

    left = v->left;

    for (i = 0; i < o->n; i++) {
        c = &o->components[i];

        if ((one && c != one) || c->shard.data) {
            continue;
        }

        if (c->length > left) {
            return XET_ZT_VERIFY_SIZE;
        }

        left -= c->length;
    }

    return XET_OK;
}


static xet_status_t
ngx_http_xet_zt_reports_load(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v)
{
    ngx_int_t            rc;
    ngx_http_xet_ctx_t  *ctx;

    if (v->nobjects == 0) {
        return XET_OK;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    rc = ngx_http_xet_query(r, zt_reports_get, ngx_http_xet_zt_reports_queried,
                            .file = &ctx->hash, .rules = v->rules,
                            .first = v->objects[0]->index,
                            .last = v->objects[v->nobjects - 1]->index);

    return ngx_http_xet_query_status(rc, XET_OK);
}


static void
ngx_http_xet_zt_reports_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    xet_status_t               status;
    ngx_http_xet_zt_verify_t  *v;

    v = ngx_http_xet_ctx_of(r)->route.zt_verify;

    if (rc == NGX_OK) {
        ngx_http_xet_zt_reports_rows(r, v);
    }

    status = ngx_http_xet_query_status(rc, XET_OK);

    ngx_http_xet_query_release(r);

    if (status == XET_OK) {
        status = ngx_http_xet_zt_batch_next(r, v);
    }

    if (status != XET_AGAIN) {
        ngx_http_xet_zt_verify_send(r, v, status);
    }
}


/* Sends the part of the response for a batch whose items all have reports. */

static void
ngx_http_xet_zt_verify_send(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_verify_t *v = data;

    if (status != XET_OK) {
        ngx_http_xet_zt_verify_failed(r, v, status);
        return;
    }

    ngx_http_xet_zt_verify_json(v);

    ngx_http_xet_zt_batch_reset(v);

    if (!v->full) {
        xet_zt_audit_end(&v->audit);
    }

    if (!v->stream.begun) {
        ngx_http_xet_output_type(r, NGX_HTTP_OK, "application/json", -1);
    }

    ngx_http_xet_stream_send(r, &v->stream, &v->buf, !v->full);
}


static void
ngx_http_xet_zt_verify_json(ngx_http_xet_zt_verify_t *v)
{
    ngx_uint_t                i;
    xet_zt_object_t          *o;
    ngx_http_xet_zt_item_t   *item, *last;

    item = v->items;
    last = item + v->n;

    for (i = 0; i < v->nobjects; i++) {
        o = v->objects[i];

        xet_zt_audit_object(&v->audit, o);

        for ( /* void */ ; item < last && item->object == o; item++) {
            xet_zt_audit_component(&v->audit, o, item->component,
                                   &item->report);
        }

        xet_zt_audit_object_end(&v->audit, o);
    }
}


/* Makes the next part of the response, after the previous one was sent. */

static void
ngx_http_xet_zt_verify_next(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_zt_verify_t *v = data;

    ngx_pool_t    *pool;
    xet_status_t   status;

    pool = ngx_http_xet_stream_pool(&v->stream);

    if (pool == NULL) {
        ngx_http_xet_zt_verify_failed(r, v, XET_NOMEM);
        return;
    }

    xet_buf_init(&v->buf, ngx_http_xet_alloc, pool, 0);
    xet_json_resume(&v->json, &v->buf);

    status = ngx_http_xet_zt_verify_walk(r, v);

    if (status != XET_AGAIN) {
        ngx_http_xet_zt_verify_walked(r, v, status);
    }
}


static void
ngx_http_xet_zt_verify_failed(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v, xet_status_t status)
{
    if (v->stream.begun) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "xet: a verification was truncated: %s",
                      xet_status_text(status));

        ngx_http_finalize_request(r, ngx_http_xet_break_off(r));
        return;
    }

    ngx_http_finalize_request(r, ngx_http_xet_ztensor_error(r, v->ztensor,
                                                            status));
}
