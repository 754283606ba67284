
/*
 * GET zt/{file}: a page of the objects of a zTensor file, as JSON.  HEAD:
 * whether the file is a zTensor file, and how many objects it has.
 *
 * The page is written in the jobs that read the manifest, into a pool of its
 * own; it ends at "limit" objects or at 8 MiB, whichever comes first.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_zt_component.h"


#define NGX_HTTP_XET_ZT_OBJECTS_ASKED  1000    /* without "limit" */
#define NGX_HTTP_XET_ZT_PAGE_BYTES     (8 * 1024 * 1024)


typedef struct {
    ngx_http_xet_ztensor_t  *ztensor;
    xet_zt_query_t           query;
    xet_zt_select_t          select;

    ngx_pool_t              *pool;             /* of the page */
    xet_buf_t                buf;
    xet_json_t               json;
    xet_zt_page_t            page;
} ngx_http_xet_zt_list_t;


static void ngx_http_xet_zt_list_cleanup(void *data);
static void ngx_http_xet_zt_list_opened(ngx_http_request_t *r, void *data,
    xet_status_t status);
static ngx_int_t ngx_http_xet_zt_list_headers(ngx_http_request_t *r,
    ngx_http_xet_zt_list_t *list);
static ngx_int_t ngx_http_xet_zt_list_head(ngx_http_request_t *r);
static xet_status_t ngx_http_xet_zt_list_walk(ngx_http_request_t *r,
    ngx_http_xet_zt_list_t *list);
static void ngx_http_xet_zt_list_walked(ngx_http_request_t *r, void *data,
    xet_status_t status);
static ngx_int_t ngx_http_xet_zt_list_send(ngx_http_request_t *r,
    ngx_http_xet_zt_list_t *list);


ngx_int_t
ngx_http_xet_zt_list_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    uint64_t                      max;
    xet_status_t                  status;
    ngx_http_xet_zt_list_t       *list;
    ngx_http_xet_ztensor_conf_t  *zlcf;

    list = ngx_http_xet_state(r, sizeof(ngx_http_xet_zt_list_t),
                              ngx_http_xet_zt_list_cleanup);
    if (list == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    status = ngx_http_xet_ztensor_query(r, XET_ZT_ARG_PAGE, &list->query);

    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    zlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_ztensor_module);

    max = zlcf->limit[NGX_HTTP_XET_ZT_PAGE];

    if (!list->query.has_limit) {
        list->query.limit = ngx_min(NGX_HTTP_XET_ZT_OBJECTS_ASKED, max);
    }

    if (list->query.limit == 0 || list->query.limit > max) {
        return ngx_http_xet_error_status(r, XET_ZT_QUERY_LIMIT);
    }

    list->ztensor = ngx_http_xet_ztensor_create(r, list);
    if (list->ztensor == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    status = ngx_http_xet_ztensor_open(r, list->ztensor, &ctx->hash,
                                       r->method == NGX_HTTP_GET,
                                       ngx_http_xet_zt_list_opened);

    return ngx_http_xet_ztensor_wait(r, list->ztensor, status);
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

    if (status == XET_OK
        && ngx_http_xet_zt_list_headers(r, list) != NGX_OK)
    {
        status = XET_NOMEM;
    }

    if (status == XET_OK && r->method == NGX_HTTP_HEAD) {
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

    info = xet_zt_info(ngx_http_xet_ztensor_file(list->ztensor));

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
    u_char               id[XET_HASH_STR_LEN];
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    list->pool = ngx_create_pool(4096, ngx_cycle->log);
    if (list->pool == NULL) {
        return XET_NOMEM;
    }

    xet_buf_init(&list->buf, ngx_http_xet_alloc, list->pool, 0);
    xet_json_init(&list->json, &list->buf);

    (void) xet_hash_print(id, &ctx->hash);

    xet_zt_page_begin(&list->page, &list->json,
                      ngx_http_xet_ztensor_file(list->ztensor), id,
                      sizeof(id), list->query.limit,
                      NGX_HTTP_XET_ZT_PAGE_BYTES);

    ngx_http_xet_zt_select(&list->select, &list->query);
    list->select.attributes = 1;

    return ngx_http_xet_ztensor_walk(r, list->ztensor, &list->select,
                                     xet_zt_page_object, &list->page,
                                     ngx_http_xet_zt_list_walked);
}


static void
ngx_http_xet_zt_list_walked(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_list_t *list = data;

    ngx_int_t  rc;

    rc = (status == XET_OK)
         ? ngx_http_xet_zt_list_send(r, list)
         : ngx_http_xet_ztensor_error(r, list->ztensor, status);

    ngx_http_finalize_request(r, rc);
}


static ngx_int_t
ngx_http_xet_zt_list_send(ngx_http_request_t *r, ngx_http_xet_zt_list_t *list)
{
    xet_zt_page_end(&list->page);

    return ngx_http_xet_send(r, NGX_HTTP_OK, "application/json", &list->buf);
}
