
/*
 * The content handler of "xet_metrics" and "xet_status".
 *
 * A response is made from data in shared memory, without waiting.  Each request
 * also starts queries to PostgreSQL and the store; the results are shown in
 * later responses.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_monitor.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_MONITOR_TEXT  "text/plain; version=0.0.4; charset=utf-8"


static ngx_int_t ngx_http_xet_monitor_form(ngx_http_request_t *r,
    ngx_uint_t *form);
static ngx_int_t ngx_http_xet_monitor_json(ngx_http_request_t *r,
    const uint64_t *cells);


ngx_int_t
ngx_http_xet_monitor_handler(ngx_http_request_t *r)
{
    uint64_t                 *cells;
    xet_buf_t                 b;
    ngx_int_t                 rc;
    ngx_uint_t                form;
    ngx_http_xet_loc_conf_t  *xlcf;

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {

        if (ngx_http_xet_header(r, "Allow", "GET, HEAD") != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_xet_error(r, NGX_HTTP_NOT_ALLOWED,
                                  "method_not_allowed",
                                  "this method is not allowed here");
    }

    rc = ngx_http_xet_drop_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_xet_monitor_form(r, &form) != NGX_OK) {
        return ngx_http_xet_error(r, NGX_HTTP_BAD_REQUEST, "invalid_argument",
                                  "unknown format");
    }

    cells = ngx_palloc(r->pool, NGX_HTTP_XET_CELLS * sizeof(uint64_t));

    if (cells == NULL
        || ngx_http_xet_header(r, "Cache-Control", "no-store") != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    ngx_http_xet_monitor_ask(xlcf->monitor == NGX_HTTP_XET_MONITOR_REPOS);

    if (xlcf->monitor >= NGX_HTTP_XET_MONITOR_STATUS) {
        ngx_http_xet_jobs_ask();
    }

    ngx_http_xet_monitor_levels();
    ngx_http_xet_metrics_read(cells);

    if (form == NGX_HTTP_XET_MONITOR_STATUS) {
        return ngx_http_xet_status_page(r, cells);
    }

    if (form == NGX_HTTP_XET_MONITOR_PROMETHEUS) {
        xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 65536);
        ngx_http_xet_exposition(&b, cells);

        return ngx_http_xet_send(r, NGX_HTTP_OK, NGX_HTTP_XET_MONITOR_TEXT,
                                 &b);
    }

    return ngx_http_xet_monitor_json(r, cells);
}


/*
 * Sets *form from the argument "format", or from the location.  Returns
 * NGX_OK, or NGX_DECLINED for an unknown format.
 */

static ngx_int_t
ngx_http_xet_monitor_form(ngx_http_request_t *r, ngx_uint_t *form)
{
    ngx_str_t                 value;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    *form = ngx_min(xlcf->monitor, NGX_HTTP_XET_MONITOR_STATUS);

    if (ngx_http_arg(r, (u_char *) "format", 6, &value) != NGX_OK) {
        return NGX_OK;
    }

    if (value.len == 4 && ngx_memcmp(value.data, "json", 4) == 0) {
        *form = NGX_HTTP_XET_MONITOR_JSON;
        return NGX_OK;
    }

    if (value.len == 10 && ngx_memcmp(value.data, "prometheus", 10) == 0
        && xlcf->monitor < NGX_HTTP_XET_MONITOR_STATUS)
    {
        *form = NGX_HTTP_XET_MONITOR_PROMETHEUS;
        return NGX_OK;
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_xet_monitor_json(ngx_http_request_t *r, const uint64_t *cells)
{
    xet_buf_t                 b;
    xet_json_t                j;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 65536);
    xet_json_init(&j, &b);

    xet_json_object_begin(&j);
    ngx_http_xet_exposition_json(&j, cells);

    if (xlcf->monitor >= NGX_HTTP_XET_MONITOR_STATUS
        && ngx_http_xet_status_json(r, &j, cells) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    xet_json_object_end(&j);

    return ngx_http_xet_send(r, NGX_HTTP_OK, "application/json", &b);
}


void
ngx_http_xet_monitor_levels(void)
{
    ngx_uint_t                   i;
    ngx_http_xet_pg_pool_stat_t  stat;
    ngx_http_xet_main_conf_t    *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    ngx_http_xet_task_measure();
    ngx_http_xet_store_measure(xmcf->store);

    if (xmcf->pg_pools == NULL) {
        return;
    }

    ngx_http_xet_standbys_measure();

    for (i = 0; i < NGX_HTTP_XET_PG_POOL_MAX; i++) {

        if (i == NGX_HTTP_XET_STANDBY) {
            ngx_http_xet_standbys_stat(&stat);

        } else {
            ngx_http_xet_pg_pools_stat(i, &stat);
        }

        ngx_http_xet_level_at(WAITING, i, stat.waiting);
        ngx_http_xet_level_at(IN_FLIGHT, i, stat.inflight);
        ngx_http_xet_level_at(STATEMENT_OLDEST, i, stat.oldest);
        ngx_http_xet_level_at(SESSIONS, i, stat.ready);
    }
}
