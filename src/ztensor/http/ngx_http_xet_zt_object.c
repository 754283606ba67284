
/*
 * GET zt/{file}/object: one object of a zTensor file, as JSON.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_zt_component.h"


typedef struct {
    ngx_http_xet_ztensor_t  *ztensor;
    xet_zt_query_t           query;
    xet_zt_select_t          select;

    ngx_pool_t              *pool;             /* of the answer */
    xet_buf_t                buf;
    unsigned                 found:1;
} ngx_http_xet_zt_object_t;


static void ngx_http_xet_zt_object_cleanup(void *data);
static void ngx_http_xet_zt_object_opened(ngx_http_request_t *r, void *data,
    xet_status_t status);
static xet_status_t ngx_http_xet_zt_object_json(void *ctx,
    xet_zt_object_t *o);
static void ngx_http_xet_zt_object_walked(ngx_http_request_t *r, void *data,
    xet_status_t status);


ngx_int_t
ngx_http_xet_zt_object_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    xet_status_t               status;
    ngx_http_xet_zt_object_t  *zo;

    zo = ngx_http_xet_state(r, sizeof(ngx_http_xet_zt_object_t),
                            ngx_http_xet_zt_object_cleanup);
    if (zo == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    status = ngx_http_xet_ztensor_query(r, XET_ZT_ARG_NAME|XET_ZT_ARG_ONE,
                                        &zo->query);
    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    zo->ztensor = ngx_http_xet_ztensor_create(r, zo);
    zo->pool = ngx_create_pool(4096, ngx_cycle->log);

    if (zo->ztensor == NULL || zo->pool == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    status = ngx_http_xet_ztensor_open(r, zo->ztensor, &ctx->hash, 0,
                                       ngx_http_xet_zt_object_opened);

    return ngx_http_xet_ztensor_wait(r, zo->ztensor, status);
}


static void
ngx_http_xet_zt_object_cleanup(void *data)
{
    ngx_http_xet_zt_object_t *zo = data;

    if (zo->pool) {
        ngx_destroy_pool(zo->pool);
    }
}


static void
ngx_http_xet_zt_object_opened(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_object_t *zo = data;

    if (status == XET_OK) {
        ngx_http_xet_zt_select(&zo->select, &zo->query);
        zo->select.attributes = 1;

        status = ngx_http_xet_ztensor_walk(r, zo->ztensor, &zo->select,
                                           ngx_http_xet_zt_object_json, zo,
                                           ngx_http_xet_zt_object_walked);
    }

    if (status != XET_AGAIN) {
        ngx_http_xet_zt_object_walked(r, zo, status);
    }
}


/* In a thread; nobody else uses zo->pool meanwhile. */

static xet_status_t
ngx_http_xet_zt_object_json(void *ctx, xet_zt_object_t *o)
{
    ngx_http_xet_zt_object_t *zo = ctx;

    xet_json_t  j;

    zo->found = 1;

    xet_buf_init(&zo->buf, ngx_http_xet_alloc, zo->pool, 0);
    xet_json_init(&j, &zo->buf);

    xet_zt_object_json(&j, o);

    return XET_DONE;
}


static void
ngx_http_xet_zt_object_walked(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_object_t *zo = data;

    ngx_int_t  rc;

    if (status == XET_OK && !zo->found) {
        status = XET_ZT_NO_OBJECT;
    }

    rc = (status == XET_OK)
         ? ngx_http_xet_send(r, NGX_HTTP_OK, "application/json", &zo->buf)
         : ngx_http_xet_ztensor_error(r, zo->ztensor, status);

    ngx_http_finalize_request(r, rc);
}
