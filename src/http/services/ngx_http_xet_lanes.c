
/*
 * The two lanes of PostgreSQL sessions of a worker.
 *
 * Reads are pipelined: many requests' statements are in flight on a session,
 * which keeps PostgreSQL busy instead of waking it for each.  Writes, and
 * reads that may run long, have sessions of their own, a statement at a time.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_lane.h"


struct ngx_http_xet_lanes_s {
    ngx_http_xet_lane_t        lane[2];
};


static ngx_http_xet_lane_t *ngx_http_xet_lanes_get(ngx_http_xet_lane_e id);


ngx_int_t
ngx_http_xet_lanes_init(ngx_cycle_t *cycle)
{
    ngx_http_xet_lane_t       *reads, *writes;
    ngx_http_xet_lanes_t      *lanes;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    lanes = ngx_pcalloc(cycle->pool, sizeof(ngx_http_xet_lanes_t));
    if (lanes == NULL) {
        return NGX_ERROR;
    }

    xmcf->lanes = lanes;

    reads = &lanes->lane[NGX_HTTP_XET_READ];

    reads->n = xmcf->reads;
    reads->depth = xmcf->depth;
    reads->timeout = xmcf->query_timeout;
    reads->queue = xmcf->queue;

    writes = &lanes->lane[NGX_HTTP_XET_WRITE];

    writes->n = xmcf->writes;
    writes->depth = 1;
    writes->timeout = xmcf->write_timeout;
    writes->queue = xmcf->queue;

    if (ngx_http_xet_lane_init(reads, cycle->pool) != NGX_OK
        || ngx_http_xet_lane_init(writes, cycle->pool) != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* the first session of each lane is warm before the first request */

    (void) ngx_http_xet_lane_grow(reads);
    (void) ngx_http_xet_lane_grow(writes);

    return NGX_OK;
}


void
ngx_http_xet_lanes_exit(ngx_cycle_t *cycle)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    if (xmcf == NULL || xmcf->lanes == NULL) {
        return;
    }

    ngx_http_xet_lane_close(&xmcf->lanes->lane[NGX_HTTP_XET_READ]);
    ngx_http_xet_lane_close(&xmcf->lanes->lane[NGX_HTTP_XET_WRITE]);
}


ngx_http_xet_pg_query_t *
ngx_http_xet_lanes_send(ngx_http_xet_lane_e id,
    const ngx_http_xet_pg_stmt_t *stmt, const char *const *values,
    const int *lengths, ngx_http_xet_pg_handler_pt handler, void *data)
{
    return ngx_http_xet_lane_send(ngx_http_xet_lanes_get(id), stmt, values,
                                  lengths, handler, data);
}


void
ngx_http_xet_lanes_detach(ngx_http_xet_pg_query_t *q)
{
    ngx_http_xet_lane_detach(q);
}


void
ngx_http_xet_lanes_stat(ngx_http_xet_lane_e id, ngx_http_xet_lane_stat_t *stat)
{
    ngx_http_xet_lane_stat(ngx_http_xet_lanes_get(id), stat);
}


static ngx_http_xet_lane_t *
ngx_http_xet_lanes_get(ngx_http_xet_lane_e id)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    return &xmcf->lanes->lane[id];
}
