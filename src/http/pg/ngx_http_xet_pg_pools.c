
/*
 * The pools of PostgreSQL sessions of a worker.
 *
 * There are pools for reads, writes, dedup queries, long reads and pings.
 * Reads and dedup queries are pipelined.  Dedup queries have their own pool
 * because their cost varies, and PostgreSQL cancels slow ones; so only reads
 * share syncs.  The pools of writes and long reads run one statement at a time
 * per session.  In the pool of long reads (see statements.def) callers take
 * turns, and one caller may fill at most a quarter of the queue.
 *
 * A ping must not wait behind a statement that waits for a lock.  It uses an
 * idle read session; if all are busy, it uses a session of the ping pool, which
 * is opened on demand.  If no read session is ready, the ping waits like a
 * read.
 *
 * If PostgreSQL allows fewer sessions than the pools want, each pool gets one
 * session before any pool gets a second one.  The order of the pools is read,
 * write, dedup, long, ping.
 *
 * If a server does not accept writes, all sessions with this server are closed,
 * including read sessions.  Their statements are sent again on new sessions:
 * another host of the connection string may be the primary now.
 *
 * Everything runs in the event loop of one worker.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg_session.h"

#include <netdb.h>


#if (NGX_HTTP_XET_PG_POOL_MAX != 6)
#error "pools are labels of metrics, in the order of ngx_http_xet_pg_pool_e"
#endif


struct ngx_http_xet_pg_pools_s {
    ngx_http_xet_pg_pool_t     pg_pool[NGX_HTTP_XET_PG_POOLS];

    ngx_msec_t                 answered;   /* time of the last result */
    unsigned                   heard:1;    /* a result has arrived */
};


static void ngx_http_xet_pg_pools_set(ngx_http_xet_pg_pool_t *pg_pool,
    ngx_uint_t n, ngx_uint_t depth, ngx_msec_t timeout, ngx_msec_t running);
static ngx_http_xet_pg_pool_t *ngx_http_xet_pg_pools_get(ngx_http_xet_pg_pool_e
    id);
static void ngx_http_xet_pg_pools_heard(void);
static void ngx_http_xet_pg_pools_hurry(ngx_http_xet_pg_pool_t *pg_pool);
static void ngx_http_xet_pg_pools_starved(ngx_http_xet_pg_pool_t *pg_pool);
static void ngx_http_xet_pg_pools_leave(ngx_http_xet_pg_t *pg);


static const ngx_http_xet_pg_pool_events_t  ngx_http_xet_pg_pools_events = {
    ngx_http_xet_pg_pools_heard,
    ngx_http_xet_pg_pools_hurry,
    ngx_http_xet_pg_pools_starved,
    ngx_http_xet_pg_pools_leave
};


ngx_int_t
ngx_http_xet_pg_pools_init(ngx_cycle_t *cycle,
    const ngx_http_xet_pg_stmt_t *stmts)
{
    ngx_uint_t                 i;
    ngx_http_xet_pg_pool_t    *pg_pool;
    ngx_http_xet_pg_pools_t   *pg_pools;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    pg_pools = ngx_pcalloc(cycle->pool, sizeof(ngx_http_xet_pg_pools_t));
    if (pg_pools == NULL) {
        return NGX_ERROR;
    }

    pg_pool = pg_pools->pg_pool;

    ngx_http_xet_pg_pools_set(&pg_pool[NGX_HTTP_XET_READ], xmcf->reads,
                              xmcf->depth, xmcf->query_timeout,
                              xmcf->query_timeout);
    pg_pool[NGX_HTTP_XET_READ].shares = 1;

    ngx_http_xet_pg_pools_set(&pg_pool[NGX_HTTP_XET_WRITE], xmcf->writes, 1,
                              xmcf->write_timeout, xmcf->write_timeout);
    pg_pool[NGX_HTTP_XET_WRITE].locks = xmcf->lock_timeout;

    /* PostgreSQL cancels a slow query before its session is closed */

    ngx_http_xet_pg_pools_set(&pg_pool[NGX_HTTP_XET_DEDUP], xmcf->dedups,
                              xmcf->depth, xmcf->query_timeout,
                              xmcf->dedup_timeout);

    ngx_http_xet_pg_pools_set(&pg_pool[NGX_HTTP_XET_LONG], xmcf->longs, 1,
                              xmcf->query_timeout, xmcf->long_timeout);
    pg_pool[NGX_HTTP_XET_LONG].turns = 1;

    pg_pool[NGX_HTTP_XET_READ].keep = 1;
    pg_pool[NGX_HTTP_XET_WRITE].keep = 1;

    /* two sessions, so that a ping can be sent even if one session is lost */

    ngx_http_xet_pg_pools_set(&pg_pool[NGX_HTTP_XET_PING], 2, xmcf->depth,
                              xmcf->ping_timeout, xmcf->ping_timeout);

    for (i = 0; i < NGX_HTTP_XET_PG_POOLS; i++) {
        pg_pool[i].host = xmcf->primary;
        pg_pool[i].number = i;
        pg_pool[i].queue = xmcf->queue;
        pg_pool[i].idle_timeout = xmcf->idle_timeout;
        pg_pool[i].stmts = stmts;
        pg_pool[i].events = &ngx_http_xet_pg_pools_events;

        if (ngx_http_xet_pg_pool_init(&pg_pool[i], cycle->pool) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    xmcf->pg_pools = pg_pools;

    /*
     * open one session for reads and one for writes before the first requests
     */

    (void) ngx_http_xet_pg_pool_grow(&pg_pool[NGX_HTTP_XET_READ]);
    (void) ngx_http_xet_pg_pool_grow(&pg_pool[NGX_HTTP_XET_WRITE]);

    return NGX_OK;
}


static void
ngx_http_xet_pg_pools_set(ngx_http_xet_pg_pool_t *pg_pool, ngx_uint_t n,
    ngx_uint_t depth, ngx_msec_t timeout, ngx_msec_t running)
{
    pg_pool->n = n;
    pg_pool->depth = depth;
    pg_pool->timeout = timeout;
    pg_pool->running = running;
}


void
ngx_http_xet_pg_pools_exit(ngx_cycle_t *cycle)
{
    ngx_uint_t                 i;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    if (xmcf == NULL || xmcf->pg_pools == NULL) {
        return;
    }

    for (i = 0; i < NGX_HTTP_XET_PG_POOLS; i++) {
        ngx_http_xet_pg_pool_close(&xmcf->pg_pools->pg_pool[i]);
    }
}


static ngx_http_xet_pg_pool_t *
ngx_http_xet_pg_pools_get(ngx_http_xet_pg_pool_e id)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    return &xmcf->pg_pools->pg_pool[id];
}


ngx_http_xet_pg_query_t *
ngx_http_xet_pg_pools_send(ngx_http_xet_pg_pool_e id,
    const ngx_http_xet_pg_stmt_t *stmt, ngx_http_xet_params_t *p,
    ngx_http_xet_pg_handler_pt handler, void *data)
{
    ngx_msec_t               timeout;
    ngx_http_xet_pg_t       *pg;
    ngx_http_xet_pg_pool_t  *pg_pool;

    if (id == NGX_HTTP_XET_READ && stmt->longs) {
        id = NGX_HTTP_XET_LONG;
    }

    pg_pool = ngx_http_xet_pg_pools_get(id);
    timeout = pg_pool->timeout;

    if (id == NGX_HTTP_XET_PING) {
        pg = ngx_http_xet_pg_pool_session(
            ngx_http_xet_pg_pools_get(NGX_HTTP_XET_READ));

        if (pg == NULL || pg->n == 0) {
            pg_pool = ngx_http_xet_pg_pools_get(NGX_HTTP_XET_READ);
        }
    }

    return ngx_http_xet_pg_pool_queue(pg_pool, timeout, stmt, p, handler, data);
}


void
ngx_http_xet_pg_pools_watch(ngx_http_xet_pg_query_t *q,
    ngx_http_xet_pg_fit_pt fit)
{
    q->fit = fit;
}


void
ngx_http_xet_pg_pools_detach(ngx_http_xet_pg_query_t *q)
{
    ngx_http_xet_pg_pool_t  *pg_pool;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet pool: \"%s\" %p detached", q->stmt->name, q);

    q->handler = NULL;

    if (q->pg) {
        return;
    }

    pg_pool = q->pg_pool;

    ngx_queue_remove(&q->queue);
    pg_pool->nwaiting--;

    ngx_http_xet_pg_pool_deliver(q, NULL, NGX_ERROR, NULL);
}


ngx_int_t
ngx_http_xet_pg_pools_bequeath(ngx_http_xet_pg_query_t *q,
    ngx_http_xet_pg_handler_pt handler, void *data)
{
    if (q->pg == NULL) {
        return q->lost ? NGX_AGAIN : NGX_DECLINED;
    }

    q->handler = handler;
    q->data = data;
    q->fit = NULL;
    q->tries = NGX_MAX_INT32_VALUE;

    return NGX_OK;
}


void
ngx_http_xet_pg_pools_spare(ngx_http_xet_pg_query_t *q, ngx_uint_t spare)
{
    q->timer.cancelable = spare ? 1 : 0;
}


void
ngx_http_xet_pg_pools_stat(ngx_http_xet_pg_pool_e id,
    ngx_http_xet_pg_pool_stat_t *stat)
{
    ngx_memzero(stat, sizeof(ngx_http_xet_pg_pool_stat_t));

    ngx_http_xet_pg_pool_stat(ngx_http_xet_pg_pools_get(id), stat);
}


/*
 * Closes an idle session of another pool, the least important pool first, so
 * that this pool can open one.
 */

static void
ngx_http_xet_pg_pools_starved(ngx_http_xet_pg_pool_t *pg_pool)
{
    ngx_uint_t               i, keep;
    ngx_http_xet_pg_t       *pg;
    ngx_http_xet_pg_pool_t  *other;

    for (i = NGX_HTTP_XET_PG_POOLS; i-- > 0; /* void */) {
        other = ngx_http_xet_pg_pools_get(i);

        if (other == pg_pool) {
            continue;
        }

        keep = (i <= NGX_HTTP_XET_WRITE || other < pg_pool) ? 1 : 0;

        pg = ngx_http_xet_pg_pool_session(other);

        if (pg && pg->n == 0
            && ngx_http_xet_pg_pool_count(other, NGX_HTTP_XET_PG_READY) > keep)
        {
            ngx_http_xet_pg_close(pg);
            return;
        }
    }
}


/* Makes the other pools that have no session connect at once. */

static void
ngx_http_xet_pg_pools_hurry(ngx_http_xet_pg_pool_t *pg_pool)
{
    ngx_uint_t               i;
    ngx_http_xet_pg_pool_t  *other;

    for (i = 0; i < NGX_HTTP_XET_PG_POOLS; i++) {
        other = ngx_http_xet_pg_pools_get(i);

        if (other != pg_pool) {
            (void) ngx_http_xet_pg_pool_hurry(other);
        }
    }
}


static void
ngx_http_xet_pg_pools_heard(void)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    xmcf->pg_pools->answered = ngx_current_msec;
    xmcf->pg_pools->heard = 1;
}


ngx_uint_t
ngx_http_xet_pg_pools_answered(ngx_msec_t *at)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    *at = xmcf->pg_pools->answered;

    return xmcf->pg_pools->heard;
}


void
ngx_http_xet_pg_pools_moved(void)
{
    ngx_http_xet_pg_t  *pg;

    pg = ngx_http_xet_pg_pool_session(
        ngx_http_xet_pg_pools_get(NGX_HTTP_XET_READ));

    if (pg && pg->host->several) {
        ngx_http_xet_pg_pools_leave(pg);
    }
}


void
ngx_http_xet_pg_pools_abandon(const char *why)
{
    ngx_uint_t               i, k, n;
    ngx_http_xet_pg_pool_t  *pg_pool;

    n = 0;

    for (i = 0; i < NGX_HTTP_XET_PG_POOLS; i++) {
        pg_pool = ngx_http_xet_pg_pools_get(i);

        for (k = 0; k < pg_pool->n; k++) {

            if (pg_pool->sessions[k].state == NGX_HTTP_XET_PG_READY) {
                ngx_http_xet_pg_close(&pg_pool->sessions[k]);
                ngx_http_xet_pg_pool_backoff(&pg_pool->sessions[k], 1);
                n++;
            }
        }
    }

    if (n) {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "xet: closing %ui PostgreSQL session(s): %s", n,
                      why);
    }
}


/*
 * Closes all sessions with the server of this session, because reads from this
 * server would miss rows that other clients write to the new primary.  The
 * retry timers end or resend the statements in flight, in the next iteration of
 * the event loop.
 */

static void
ngx_http_xet_pg_pools_leave(ngx_http_xet_pg_t *pg)
{
    char                     host[NI_MAXHOST], port[NI_MAXSERV];
    ngx_uint_t               i, k;
    ngx_http_xet_pg_t       *other;
    ngx_http_xet_pg_pool_t  *pg_pool;

    ngx_http_xet_pg_text(host, sizeof(host), PQhost(pg->conn));
    ngx_http_xet_pg_text(port, sizeof(port), PQport(pg->conn));

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                  "xet: PostgreSQL host %s does not accept writes; "
                  "disconnecting from it", host);

    for (i = 0; i < NGX_HTTP_XET_PG_POOLS; i++) {
        pg_pool = ngx_http_xet_pg_pools_get(i);

        for (k = 0; k < pg_pool->n; k++) {
            other = &pg_pool->sessions[k];

            if (other->state == NGX_HTTP_XET_PG_READY
                && ngx_strcmp(PQhost(other->conn), host) == 0
                && ngx_strcmp(PQport(other->conn), port) == 0)
            {
                ngx_http_xet_pg_close(other);
                ngx_http_xet_pg_pool_backoff(other, 1);
            }
        }
    }
}
