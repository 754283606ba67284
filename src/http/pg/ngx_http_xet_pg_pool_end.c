
/*
 * Ends a statement of a pool.  The result is one of
 *
 *     result     PostgreSQL has executed the statement
 *     verdict    the module's SQL functions have raised an error of class XT,
 *                which only the caller evaluates
 *     refused    the statement has failed: its message is logged, and the
 *                caller gets NGX_BUSY if PostgreSQL was unavailable, or
 *                NGX_ERROR if PostgreSQL has rejected the statement
 *
 * A pool retries a failed statement if a retry may succeed, the caller is still
 * waiting, and the statement has attempts left.
 *
 * A statement is counted and freed before its handler is called, because the
 * handler may send another statement.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg_session.h"


static ngx_uint_t ngx_http_xet_pg_pool_transient(const char *sqlstate);
static void ngx_http_xet_pg_pool_counted(ngx_http_xet_pg_query_t *q,
    ngx_int_t rc, const char *sqlstate);


void
ngx_http_xet_pg_pool_deliver(ngx_http_xet_pg_query_t *q, PGresult *res,
    ngx_int_t rc, const char *sqlstate)
{
    void                        *data;
    ngx_http_xet_pg_handler_pt   handler;

    ngx_http_xet_pg_pool_counted(q, rc, sqlstate);

    if (q->timer.timer_set) {
        ngx_del_timer(&q->timer);
    }

    if (q->res) {
        PQclear(q->res);
    }

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet pool: \"%s\" %p ends, rc:%i", q->stmt->name, q, rc);

    if (q->stmt->forgets) {
        ngx_http_xet_answers_forget();
    }

    handler = q->handler;
    data = q->data;

    ngx_free(q);

    if (handler) {
        handler(data, res, rc, sqlstate);

    } else if (res) {
        PQclear(res);
    }
}


void
ngx_http_xet_pg_pool_refused(ngx_http_xet_pg_query_t *q, PGresult *res,
    const char *sqlstate)
{
    ngx_int_t  rc;

    if (ngx_strncmp(sqlstate, "XT", 2) == 0) {
        ngx_http_xet_pg_pool_deliver(q, res, NGX_ERROR, sqlstate);
        return;
    }

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "xet: statement \"%s\" failed, SQLSTATE %s: %s",
                  q->stmt->name, sqlstate, PQresultErrorMessage(res));

    rc = (ngx_http_xet_pg_pool_transient(sqlstate)
          || ngx_strcmp(sqlstate, NGX_HTTP_XET_PG_LOCKED) == 0)
         ? NGX_BUSY : NGX_ERROR;

    ngx_http_xet_pg_pool_deliver(q, NULL, rc, q->lost ? NULL : sqlstate);

    PQclear(res);
}


ngx_uint_t
ngx_http_xet_pg_pool_again(ngx_http_xet_pg_query_t *q, const char *sqlstate)
{
    ngx_http_xet_pg_pool_t  *pg_pool;

    pg_pool = q->pg_pool;

    return q->handler && q->tries < pg_pool->n
           && ngx_http_xet_pg_pool_transient(sqlstate)
           && ngx_strcmp(sqlstate, NGX_HTTP_XET_PG_CANCELLED) != 0
           && ngx_strcmp(sqlstate, NGX_HTTP_XET_PG_TOO_LATE) != 0
           && !(pg_pool->host->standby
                && ngx_http_xet_pg_pools_conflict(sqlstate));
}


/*
 * Returns whether the error is of class 40: a serialization failure, a
 * deadlock, or, on a standby, a conflict with WAL replay.
 */

ngx_uint_t
ngx_http_xet_pg_pools_conflict(const char *sqlstate)
{
    return ngx_strncmp(sqlstate, "40", 2) == 0;
}


/*
 * Returns whether the error is transient: connection and resource errors,
 * shutdown, serialization failures.  Two of these errors are not retried: the
 * statement timeout, and a copy that is too old, which the client must upload
 * again.
 */

static ngx_uint_t
ngx_http_xet_pg_pool_transient(const char *sqlstate)
{
    static const char *const  classes[] = { "08", "53", "57", "40", NULL };

    ngx_uint_t  i;

    for (i = 0; classes[i]; i++) {
        if (ngx_strncmp(sqlstate, classes[i], 2) == 0) {
            return 1;
        }
    }

    /* server read-only after failover, outdated plan, unprepared statement */

    return ngx_strcmp(sqlstate, NGX_HTTP_XET_PG_READ_ONLY) == 0
           || ngx_strcmp(sqlstate, "0A000") == 0
           || ngx_strcmp(sqlstate, NGX_HTTP_XET_PG_UNPREPARED) == 0;
}


/*
 * Counts the result of a statement in the metrics, unless the statement was
 * dropped before it was sent.  An error of class XT counts as success.
 */

static void
ngx_http_xet_pg_pool_counted(ngx_http_xet_pg_query_t *q, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_http_xet_pg_pool_t  *pg_pool;
    ngx_http_xet_result_e    result;

    if (q->handler == NULL && q->pg == NULL) {
        return;
    }

    result = (rc == NGX_OK || (sqlstate
                               && ngx_strncmp(sqlstate, "XT", 2) == 0))
             ? NGX_HTTP_XET_RESULT_OK
             : (rc == NGX_BUSY) ? NGX_HTTP_XET_RESULT_AWAY
             : NGX_HTTP_XET_RESULT_REFUSED;

    pg_pool = q->pg_pool;

    ngx_http_xet_count_at(STATEMENTS, pg_pool->number * NGX_HTTP_XET_RESULT_MAX
                          + result, 1);
}
