
/*
 * GET zt/{file}/verify: whether data is what the file declares it to be, for
 * one object or for all of them, as JSON.
 *
 *     open      is the file a zTensor file, and not too large to be verified
 *     walk      a batch of objects is copied
 *     verify    the components of the batch are read through digests and
 *               decoders
 *     send      the batch's part of the answer; when that has gone, the next
 *               batch
 *
 * Memory is that of a batch, whatever the file.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_ztensor.h"


typedef struct {
    ngx_http_xet_ztensor_t   *ztensor;
    uint64_t                  limit;           /* bytes to read */

    ngx_http_xet_zt_batch_t   batch;

    ngx_http_xet_stream_t     stream;
    xet_buf_t                 buf;
    xet_json_t                json;
    xet_zt_audit_t            audit;

    unsigned                  one:1;           /* one object is asked for */
    unsigned                  full:1;          /* batch; more may follow */
} ngx_http_xet_zt_verify_t;


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
static void ngx_http_xet_zt_verify_read(ngx_http_request_t *r, void *data,
    xet_status_t status);
static void ngx_http_xet_zt_verify_send(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v);
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
    v->limit = v->ztensor->conf->limit[NGX_HTTP_XET_ZT_VERIFY];

    return ngx_http_xet_ztensor_open(r, v->ztensor, 0,
                                     ngx_http_xet_zt_verify_opened);
}


static void
ngx_http_xet_zt_verify_cleanup(void *data)
{
    ngx_http_xet_zt_verify_t *v = data;

    ngx_http_xet_zt_batch_destroy(&v->batch);
}


static void
ngx_http_xet_zt_verify_opened(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_verify_t *v = data;

    const xet_zt_info_t  *info;

    if (status == XET_OK && !v->one) {
        info = xet_zt_info(v->ztensor->zt);

        if (info->bytes > v->limit) {
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
    u_char         id[XET_HASH_STR_LEN];
    ngx_pool_t    *pool;
    xet_status_t   status;

    v->batch.ztensor = v->ztensor;
    v->batch.left = v->limit;

    status = ngx_http_xet_zt_batch_init(r, &v->batch);
    if (status != XET_OK) {
        return status;
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


/* In a thread. */

static xet_status_t
ngx_http_xet_zt_verify_object(void *ctx, xet_zt_object_t *o)
{
    ngx_http_xet_zt_verify_t *v = ctx;

    xet_status_t  status;

    v->ztensor->select.first = o->index + 1;

    status = ngx_http_xet_zt_batch_add(&v->batch, o);

    if (v->one) {
        return (status == XET_NOMEM) ? XET_NOMEM : XET_DONE;
    }

    v->full = (status == XET_DONE);

    return status;
}


static void
ngx_http_xet_zt_verify_walked(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_verify_t *v = data;

    const xet_zt_text_t  *role;

    if (status == XET_OK && v->one) {
        status = ngx_http_xet_zt_verify_check(v);
    }

    if (status == XET_OK) {
        role = v->ztensor->query.role.data ? &v->ztensor->query.role : NULL;

        status = ngx_http_xet_zt_batch_verify(r, &v->batch, role,
                                              ngx_http_xet_zt_verify_read, v);
    }

    if (status != XET_AGAIN) {
        ngx_http_xet_zt_verify_read(r, v, status);
    }
}


/*
 * Checks that the object and the role that were asked for are there, and not
 * too large.
 */

static xet_status_t
ngx_http_xet_zt_verify_check(ngx_http_xet_zt_verify_t *v)
{
    ngx_uint_t                 i;
    uint64_t                   left;
    xet_zt_object_t           *o;
    const xet_zt_component_t  *c, *one;

    if (v->batch.nobjects == 0) {
        return XET_ZT_NO_OBJECT;
    }

    o = v->batch.objects[0];
    one = NULL;

    if (v->ztensor->query.role.data) {
        one = xet_zt_object_component(o, v->ztensor->query.role.data,
                                      v->ztensor->query.role.len);
        if (one == NULL) {
            return XET_ZT_NO_COMPONENT;
        }
    }

    left = v->limit;

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


static void
ngx_http_xet_zt_verify_read(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_verify_t *v = data;

    if (status != XET_OK) {
        ngx_http_xet_zt_verify_failed(r, v, status);
        return;
    }

    ngx_http_xet_zt_verify_send(r, v);
}


static void
ngx_http_xet_zt_verify_send(ngx_http_request_t *r, ngx_http_xet_zt_verify_t *v)
{
    ngx_http_xet_zt_verify_json(v);

    ngx_http_xet_zt_batch_reset(&v->batch);

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

    item = v->batch.items;
    last = item + v->batch.n;

    for (i = 0; i < v->batch.nobjects; i++) {
        o = v->batch.objects[i];

        xet_zt_audit_object(&v->audit, o);

        for ( /* void */ ; item < last && item->object == o; item++) {
            xet_zt_audit_component(&v->audit, o, item->component,
                                   &item->report);
        }

        xet_zt_audit_object_end(&v->audit, o);
    }
}


/* The client has taken a part of the answer: makes the next one. */

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
                      "xet: a verification ends early: %s",
                      xet_status_text(status));

        ngx_http_finalize_request(r, ngx_http_xet_break_off(r));
        return;
    }

    ngx_http_finalize_request(r, ngx_http_xet_ztensor_error(r, v->ztensor,
                                                            status));
}
