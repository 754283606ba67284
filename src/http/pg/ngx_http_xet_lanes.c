
/*
 * The lanes of PostgreSQL sessions of a worker.
 *
 * Reads are pipelined: many requests' statements are in flight on a session,
 * which keeps PostgreSQL busy instead of waking it for each.  Writes, and
 * reads that may run long, have sessions of their own, a statement at a time.
 * Queries about chunks have sessions of their own, too, pipelined, so that they
 * do not hold up other reads: the cost of such a query depends on what has been
 * stored.
 *
 * Results of a session come in the order of its statements, so a ping behind a
 * statement that waits for a lock would measure the lock, not PostgreSQL.  A
 * ping takes a read session that has nothing to do, and where all are busy, a
 * session of the ping lane, which is opened for that.  Where there is no read
 * session the ping waits for one like a read: a session that reads can't have
 * is no sign of health.
 *
 * Where PostgreSQL has fewer sessions than all lanes want, each shall have one
 * before another has two, in the order of read and write, dedup, ping: a lane
 * that has none gets what a later or richer one is not using.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg_session.h"


struct ngx_http_xet_lanes_s {
    ngx_http_xet_lane_t        lane[NGX_HTTP_XET_LANES];
};


static void ngx_http_xet_lanes_starved(ngx_http_xet_lane_t *lane);
static void ngx_http_xet_lanes_reached(ngx_http_xet_lane_t *lane);
static ngx_http_xet_lane_t *ngx_http_xet_lanes_get(ngx_http_xet_lane_e id);


ngx_int_t
ngx_http_xet_lanes_init(ngx_cycle_t *cycle,
    const ngx_http_xet_pg_stmt_t *stmts)
{
    ngx_uint_t                 i;
    ngx_http_xet_lane_t       *lane;
    ngx_http_xet_lanes_t      *lanes;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    lanes = ngx_pcalloc(cycle->pool, sizeof(ngx_http_xet_lanes_t));
    if (lanes == NULL) {
        return NGX_ERROR;
    }

    lane = lanes->lane;

    lane[NGX_HTTP_XET_READ].n = xmcf->reads;
    lane[NGX_HTTP_XET_READ].depth = xmcf->depth;
    lane[NGX_HTTP_XET_READ].timeout = xmcf->query_timeout;
    lane[NGX_HTTP_XET_READ].running = xmcf->query_timeout;

    lane[NGX_HTTP_XET_WRITE].n = xmcf->writes;
    lane[NGX_HTTP_XET_WRITE].depth = 1;
    lane[NGX_HTTP_XET_WRITE].timeout = xmcf->write_timeout;
    lane[NGX_HTTP_XET_WRITE].running = xmcf->write_timeout;
    lane[NGX_HTTP_XET_WRITE].locks = xmcf->lock_timeout;

    /* PostgreSQL ends a slow query, so that it does not cost the session */

    lane[NGX_HTTP_XET_DEDUP].n = xmcf->dedups;
    lane[NGX_HTTP_XET_DEDUP].depth = xmcf->depth;
    lane[NGX_HTTP_XET_DEDUP].timeout = xmcf->query_timeout;
    lane[NGX_HTTP_XET_DEDUP].running = xmcf->dedup_timeout;

    /* two sessions, so that a lost one is replaced at once */

    lane[NGX_HTTP_XET_PING].n = 2;
    lane[NGX_HTTP_XET_PING].depth = xmcf->depth;
    lane[NGX_HTTP_XET_PING].timeout = xmcf->ping_timeout;
    lane[NGX_HTTP_XET_PING].running = xmcf->ping_timeout;

    for (i = 0; i < NGX_HTTP_XET_LANES; i++) {
        lane[i].queue = xmcf->queue;
        lane[i].stmts = stmts;
        lane[i].starved = ngx_http_xet_lanes_starved;
        lane[i].reached = ngx_http_xet_lanes_reached;

        if (ngx_http_xet_lane_init(&lane[i], cycle->pool) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    xmcf->lanes = lanes;

    /* so the first requests find a session for reads and one for writes */

    (void) ngx_http_xet_lane_grow(&lane[NGX_HTTP_XET_READ]);
    (void) ngx_http_xet_lane_grow(&lane[NGX_HTTP_XET_WRITE]);

    return NGX_OK;
}


void
ngx_http_xet_lanes_exit(ngx_cycle_t *cycle)
{
    ngx_uint_t                 i;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    if (xmcf == NULL || xmcf->lanes == NULL) {
        return;
    }

    for (i = 0; i < NGX_HTTP_XET_LANES; i++) {
        ngx_http_xet_lane_close(&xmcf->lanes->lane[i]);
    }
}


ngx_http_xet_pg_query_t *
ngx_http_xet_lanes_send(ngx_http_xet_lane_e id,
    const ngx_http_xet_pg_stmt_t *stmt, ngx_http_xet_params_t *p,
    ngx_http_xet_pg_handler_pt handler, void *data)
{
    ngx_http_xet_lane_t       *lane, *read;
    ngx_http_xet_pg_query_t   *q;
    ngx_http_xet_main_conf_t  *xmcf;

    lane = ngx_http_xet_lanes_get(id);

    if (id == NGX_HTTP_XET_PING) {
        read = ngx_http_xet_lanes_get(NGX_HTTP_XET_READ);

        if (ngx_http_xet_lane_idle(read) != NGX_BUSY) {
            lane = read;
        }
    }

    q = ngx_http_xet_lane_send(lane, stmt, p, handler, data);

    if (q && id == NGX_HTTP_XET_PING) {
        xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                                   ngx_http_xet_module);

        ngx_add_timer(&q->timer, xmcf->ping_timeout);
    }

    return q;
}


void
ngx_http_xet_lanes_detach(ngx_http_xet_pg_query_t *q)
{
    ngx_http_xet_lane_detach(q);
}


ngx_int_t
ngx_http_xet_lanes_bequeath(ngx_http_xet_pg_query_t *q,
    ngx_http_xet_pg_handler_pt handler, void *data)
{
    if (q->pg == NULL) {
        return q->lost ? NGX_AGAIN : NGX_DECLINED;
    }

    q->handler = handler;
    q->data = data;
    q->tries = NGX_MAX_INT32_VALUE;

    return NGX_OK;
}


void
ngx_http_xet_lanes_own(ngx_http_xet_pg_query_t *q)
{
    if (q->pg == NULL) {
        ngx_memcpy(q->own, q->values[0], sizeof(q->own));
        q->values[0] = (const char *) q->own;
    }
}


void
ngx_http_xet_lanes_stat(ngx_http_xet_lane_e id, ngx_http_xet_lane_stat_t *stat)
{
    ngx_http_xet_lane_stat(ngx_http_xet_lanes_get(id), stat);
}


/* Has another lane close an idle session, the least important lane first. */

static void
ngx_http_xet_lanes_starved(ngx_http_xet_lane_t *lane)
{
    ngx_uint_t            i, keep;
    ngx_http_xet_lane_t  *other;

    for (i = NGX_HTTP_XET_LANES; i-- > 0; /* void */) {
        other = ngx_http_xet_lanes_get(i);

        keep = (i <= NGX_HTTP_XET_WRITE || other < lane) ? 1 : 0;

        if (other != lane && ngx_http_xet_lane_spare(other, keep)) {
            return;
        }
    }
}


static void
ngx_http_xet_lanes_reached(ngx_http_xet_lane_t *lane)
{
    ngx_uint_t            i;
    ngx_http_xet_lane_t  *other;

    for (i = 0; i < NGX_HTTP_XET_LANES; i++) {
        other = ngx_http_xet_lanes_get(i);

        if (other != lane) {
            (void) ngx_http_xet_lane_hurry(other);
        }
    }
}


static ngx_http_xet_lane_t *
ngx_http_xet_lanes_get(ngx_http_xet_lane_e id)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    return &xmcf->lanes->lane[id];
}
