
/*
 * GET zt/{file} and zt/{file}/object: a page of the objects of a zTensor file,
 * or one object, as JSON.  HEAD zt/{file} tells whether the file is a zTensor
 * file, and the number of its objects.
 *
 * The jobs that read the manifest write the page into a separate pool.  The
 * page ends at "limit" objects or at 8 MiB, whichever comes first.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_ztensor.h"


#define NGX_HTTP_XET_ZT_OBJECTS_ASKED  1000    /* default of "limit" */
#define NGX_HTTP_XET_ZT_PAGE_BYTES     (8 * 1024 * 1024)


typedef struct {
    ngx_http_xet_ztensor_t  *ztensor;

    ngx_pool_t              *pool;             /* has the response */
    xet_buf_t                buf;
    xet_json_t               json;
    xet_zt_page_t            page;
    unsigned                 one:1;            /* one object is requested */
    unsigned                 found:1;          /* the object exists */
} ngx_http_xet_zt_list_t;


static xet_status_t ngx_http_xet_zt_list_create(ngx_http_request_t *r,
    unsigned wanted, ngx_http_xet_zt_list_t **result);
static void ngx_http_xet_zt_list_cleanup(void *data);
static void ngx_http_xet_zt_list_opened(ngx_http_request_t *r, void *data,
    xet_status_t status);
static ngx_int_t ngx_http_xet_zt_list_headers(ngx_http_request_t *r,
    ngx_http_xet_zt_list_t *list);
static ngx_int_t ngx_http_xet_zt_list_head(ngx_http_request_t *r);
static xet_status_t ngx_http_xet_zt_list_walk(ngx_http_request_t *r,
    ngx_http_xet_zt_list_t *list);
static xet_status_t ngx_http_xet_zt_list_object(void *ctx,
    xet_zt_object_t *o);
static void ngx_http_xet_zt_list_walked(ngx_http_request_t *r, void *data,
    xet_status_t status);


ngx_int_t
ngx_http_xet_zt_list_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    uint64_t                 max;
    xet_status_t             status;
    xet_zt_query_t          *query;
    ngx_http_xet_zt_list_t  *list;

    status = ngx_http_xet_zt_list_create(r, XET_ZT_ARG_PAGE, &list);
    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    query = &list->ztensor->query;
    max = list->ztensor->conf->limit[NGX_HTTP_XET_ZT_PAGE];

    if (!query->has_limit) {
        query->limit = ngx_min(NGX_HTTP_XET_ZT_OBJECTS_ASKED, max);
    }

    if (query->limit == 0 || query->limit > max) {
        return ngx_http_xet_error_status(r, XET_ZT_QUERY_LIMIT);
    }

    return ngx_http_xet_ztensor_open(r, list->ztensor,
                                     r->method == NGX_HTTP_GET,
                                     ngx_http_xet_zt_list_opened);
}


ngx_int_t
ngx_http_xet_zt_object_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    xet_status_t             status;
    ngx_http_xet_zt_list_t  *list;

    status = ngx_http_xet_zt_list_create(r, XET_ZT_ARG_NAME|XET_ZT_ARG_ONE,
                                         &list);
    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    list->one = 1;

    return ngx_http_xet_ztensor_open(r, list->ztensor, 0,
                                     ngx_http_xet_zt_list_opened);
}


static xet_status_t
ngx_http_xet_zt_list_create(ngx_http_request_t *r, unsigned wanted,
    ngx_http_xet_zt_list_t **result)
{
    ngx_http_xet_zt_list_t  *list;

    list = ngx_http_xet_state(r, sizeof(ngx_http_xet_zt_list_t),
                              ngx_http_xet_zt_list_cleanup);
    if (list == NULL) {
        return XET_NOMEM;
    }

    *result = list;

    return ngx_http_xet_ztensor_create(r, wanted, &list->ztensor, list);
}


static void
ngx_http_xet_zt_list_cleanup(void *data)
{
    ngx_http_xet_zt_list_t *list = data;

    if (list->pool) {
        ngx_destroy_pool(list->pool);
    }
}


static void
ngx_http_xet_zt_list_opened(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_list_t *list = data;

    if (status == XET_OK && !list->one
        && ngx_http_xet_zt_list_headers(r, list) != NGX_OK)
    {
        status = XET_NOMEM;
    }

    if (status == XET_OK && !list->one && r->method == NGX_HTTP_HEAD) {
        ngx_http_finalize_request(r, ngx_http_xet_zt_list_head(r));
        return;
    }

    if (status == XET_OK) {
        status = ngx_http_xet_zt_list_walk(r, list);
    }

    if (status != XET_AGAIN) {
        ngx_http_xet_zt_list_walked(r, list, status);
    }
}


static ngx_int_t
ngx_http_xet_zt_list_headers(ngx_http_request_t *r,
    ngx_http_xet_zt_list_t *list)
{
    u_char               *p;
    const xet_zt_info_t  *info;

    info = xet_zt_info(list->ztensor->zt);

    p = ngx_pnalloc(r->pool, NGX_INT64_LEN + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    *ngx_sprintf(p, "%uL", info->count) = '\0';

    if (ngx_http_xet_header(r, "X-Zt-Objects", (char *) p) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_header(r, "X-Zt-Container",
                               xet_zt_container_name(info->ends.container));
}


static ngx_int_t
ngx_http_xet_zt_list_head(ngx_http_request_t *r)
{
    ngx_http_xet_output_type(r, NGX_HTTP_OK, "application/json", -1);

    r->header_only = 1;

    return ngx_http_xet_sent(ngx_http_send_header(r));
}


static xet_status_t
ngx_http_xet_zt_list_walk(ngx_http_request_t *r, ngx_http_xet_zt_list_t *list)
{
    u_char  id[XET_HASH_STR_LEN];

    list->pool = ngx_create_pool(4096, ngx_cycle->log);
    if (list->pool == NULL) {
        return XET_NOMEM;
    }

    xet_buf_init(&list->buf, ngx_http_xet_alloc, list->pool, 0);
    xet_json_init(&list->json, &list->buf);

    list->ztensor->select.attributes = 1;

    if (!list->one) {
        (void) xet_hash_print(id, &list->ztensor->hash);

        xet_zt_page_begin(&list->page, &list->json, list->ztensor->zt, id,
                          sizeof(id), list->ztensor->query.limit,
                          NGX_HTTP_XET_ZT_PAGE_BYTES);
    }

    return ngx_http_xet_ztensor_walk(r, list->ztensor,
                                     ngx_http_xet_zt_list_object,
                                     ngx_http_xet_zt_list_walked);
}


/* Writes an object.  Runs in a thread, which owns list->pool for that time. */

static xet_status_t
ngx_http_xet_zt_list_object(void *ctx, xet_zt_object_t *o)
{
    ngx_http_xet_zt_list_t *list = ctx;

    if (!list->one) {
        return xet_zt_page_object(&list->page, o);
    }

    list->found = 1;

    xet_zt_object_json(&list->json, o);

    return XET_DONE;
}


static void
ngx_http_xet_zt_list_walked(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_list_t *list = data;

    ngx_int_t  rc;

    if (status == XET_OK && list->one && !list->found) {
        status = XET_ZT_NO_OBJECT;
    }

    if (status == XET_OK) {

        if (!list->one) {
            xet_zt_page_end(&list->page);
        }

        rc = ngx_http_xet_send(r, NGX_HTTP_OK, "application/json",
                               &list->buf);

    } else {
        rc = ngx_http_xet_ztensor_error(r, list->ztensor, status);
    }

    ngx_http_finalize_request(r, rc);
}
