
/*
 * One PostgreSQL session, driven by nginx events.
 *
 * A thread connects (ngx_http_xet_pg_connect.c).  The event loop then sends
 * the settings and the check in one round trip; afterwards it only sends
 * statements and reads results.  The session is in pipeline mode: results
 * arrive in the order of sending.
 *
 * A sync ends the transaction of the statements before it.  A statement that
 * writes has its own sync.  Short reads of the same iteration of the event loop
 * share a sync, up to NGX_HTTP_XET_PG_SHARE, because a sync costs two system
 * calls on both sides, as much as a short read.  Such reads are in one
 * transaction, but each has its own snapshot and its own statement_timeout.  If
 * one fails, PostgreSQL skips those after it: they are sent again, "alone".
 * Results are delivered when the sync arrives.  A statement's preparation and
 * the check of its deadline precede it (ngx_http_xet_pg_prepare.c).
 *
 * States: closed -> connecting -> ready -> closed; and closed -> backoff ->
 * connecting while PostgreSQL is unreachable.  While pg->connect is set, the
 * PGconn belongs to the thread, else to the event loop.
 *
 * The socket belongs to libpq.  nginx watches the socket level-triggered,
 * because PQconsumeInput() calls recv() only once.  The nginx connection is
 * freed before libpq closes the descriptor.
 *
 * The settings of a session:
 *
 * - No sequential scans and no bitmap scans: each statement finds its rows by
 *   an index.  A generic plan that was made while a table was tiny would still
 *   scan the table after it has grown.  A bitmap scan would sort all remaining
 *   rows of a file for each window of terms.
 * - Generic plans: a plan with a disabled scan has a high cost, so PostgreSQL
 *   would otherwise plan the statement again for each execution.
 * - Read committed: the heal of a xorb and the commit of a shard wait for each
 *   other's locks; then each must see the rows that the other has committed.
 * - statement_timeout ends a statement that runs for longer than its caller
 *   waits.  With client_connection_check_interval PostgreSQL detects a closed
 *   connection while a statement waits for a lock.
 * - lock_timeout keeps requests that wait for a long-held lock from occupying
 *   all sessions.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg_session.h"


#define NGX_HTTP_XET_PG_SHARE   8              /* reads with the same sync */


static void ngx_http_xet_pg_connected(void *data, PGconn *conn,
    const char *error);
static void ngx_http_xet_pg_notice(void *arg, const PGresult *res);
static ngx_int_t ngx_http_xet_pg_setup_send(ngx_http_xet_pg_t *pg);
static void ngx_http_xet_pg_setup_timer_handler(ngx_event_t *ev);
static ngx_int_t ngx_http_xet_pg_setup_results(ngx_http_xet_pg_t *pg);
static const char *ngx_http_xet_pg_described(ngx_http_xet_pg_t *pg,
    PGresult *res);
static void ngx_http_xet_pg_ready(ngx_http_xet_pg_t *pg);
static void ngx_http_xet_pg_refused(ngx_http_xet_pg_t *pg, const char *error);
static void ngx_http_xet_pg_read_handler(ngx_event_t *rev);
static void ngx_http_xet_pg_write_handler(ngx_event_t *wev);
static void ngx_http_xet_pg_sync_handler(ngx_event_t *ev);
static ngx_int_t ngx_http_xet_pg_sync(ngx_http_xet_pg_t *pg);
static ngx_int_t ngx_http_xet_pg_flush(ngx_http_xet_pg_t *pg);
static ngx_int_t ngx_http_xet_pg_results(ngx_http_xet_pg_t *pg);
static ngx_int_t ngx_http_xet_pg_synced(ngx_http_xet_pg_t *pg);
static ngx_http_xet_pg_query_t *ngx_http_xet_pg_taker(ngx_http_xet_pg_t *pg);
static const char *ngx_http_xet_pg_take(ngx_http_xet_pg_t *pg,
    ngx_http_xet_pg_query_t *q, PGresult *res);
static PGresult *ngx_http_xet_pg_result(PGconn *conn);
static void ngx_http_xet_pg_fail(ngx_http_xet_pg_t *pg);


static const char  ngx_http_xet_pg_setup_sql[] =
    "SELECT set_config('enable_seqscan', 'off', false),"
    "       set_config('enable_bitmapscan', 'off', false),"
    "       set_config('plan_cache_mode', 'force_generic_plan', false),"
    "       set_config('jit', 'off', false),"
    "       set_config('default_transaction_isolation', 'read committed',"
    "                  false),"
    "       set_config('client_connection_check_interval', '1s', false),"
    "       set_config('statement_timeout', $1, false),"
    "       set_config('lock_timeout', $2, false),"
    "       floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

#define NGX_HTTP_XET_PG_SETTINGS  8          /* column with PostgreSQL's time */


/* a standby may be promoted; even then this session must not write */

static const char  ngx_http_xet_pg_standby_sql[] =
    "SELECT set_config('default_transaction_read_only', 'on', false)";


ngx_int_t
ngx_http_xet_pg_init(ngx_http_xet_pg_t *pg, ngx_pool_t *pool)
{
    const ngx_http_xet_pg_stmt_t  *stmt;

    ngx_queue_init(&pg->inflight);

    for (stmt = pg->stmts; stmt->name; stmt++) {

        if (ngx_strcmp(stmt->name, "in_time") == 0) {
            pg->guard = stmt;
        }
    }

    pg->prepared = ngx_pcalloc(pool, stmt - pg->stmts);
    if (pg->prepared == NULL) {
        return NGX_ERROR;
    }

    pg->setup.handler = ngx_http_xet_pg_setup_timer_handler;
    pg->setup.data = pg;
    pg->setup.log = ngx_cycle->log;
    pg->setup.cancelable = 1;

    pg->sync.handler = ngx_http_xet_pg_sync_handler;
    pg->sync.data = pg;
    pg->sync.log = ngx_cycle->log;

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_pg_connect(ngx_http_xet_pg_t *pg)
{
    pg->connect = ngx_http_xet_pg_connect_start(pg->host,
                                                ngx_http_xet_pg_connected, pg);
    if (pg->connect == NULL) {
        return NGX_ERROR;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet pg %p: connecting", pg);

    pg->state = NGX_HTTP_XET_PG_CONNECTING;

    return NGX_OK;
}


static void
ngx_http_xet_pg_connected(void *data, PGconn *conn, const char *error)
{
    ngx_http_xet_pg_t *pg = data;

    ngx_http_xet_main_conf_t  *xmcf;

    pg->connect = NULL;
    pg->conn = conn;
    pg->unsure = 0;

    if (conn == NULL) {
        ngx_http_xet_pg_refused(pg, error);
        return;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet pg %p: connected, checking", pg);

    pg->connection = ngx_http_xet_pg_watch(PQsocket(conn), pg,
                                           ngx_http_xet_pg_read_handler);

    if (pg->connection == NULL) {
        ngx_http_xet_pg_refused(pg, "no free nginx connection; raise "
                                    "worker_connections");
        return;
    }

    PQsetNoticeReceiver(conn, ngx_http_xet_pg_notice, pg);

    /*
     * the descriptor belongs to libpq: nginx must not close it, and
     * ngx_http_xet_pg_close() removes its events
     */

    pg->connection->shared = 1;
    pg->connection->write->handler = ngx_http_xet_pg_write_handler;

    if (ngx_http_xet_pg_setup_send(pg) != NGX_OK) {
        ngx_http_xet_pg_refused(pg, PQerrorMessage(conn));
        return;
    }

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    ngx_add_timer(&pg->setup, xmcf->connect_timeout);
}


/*
 * Detects a commit that may exist only on the primary.  With synchronous
 * replication a commit waits for a standby; if the wait is canceled, PostgreSQL
 * reports success with only a warning.  The warning arrives before the end of
 * the statement.  It is recognized by its source function, because its text
 * depends on the language of the server.
 */

static void
ngx_http_xet_pg_notice(void *arg, const PGresult *res)
{
    ngx_http_xet_pg_t *pg = arg;

    const char  *where;

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0, "xet: PostgreSQL: %s",
                  PQresultErrorMessage(res));

    where = PQresultErrorField(res, PG_DIAG_SOURCE_FUNCTION);

    if (where && ngx_strcmp(where, "SyncRepWaitForLSN") == 0) {
        pg->unsure = 1;
    }
}


static ngx_int_t
ngx_http_xet_pg_setup_send(ngx_http_xet_pg_t *pg)
{
    char                           texts[2][NGX_TIME_T_LEN + 1];
    PGconn                        *conn;
    const char                    *values[2];
    const ngx_http_xet_pg_stmt_t  *stmt;

    conn = pg->conn;

    *ngx_sprintf((u_char *) texts[0], "%M", pg->timeout) = '\0';
    *ngx_sprintf((u_char *) texts[1], "%M", pg->locks) = '\0';

    values[0] = texts[0];
    values[1] = texts[1];

    if (PQsetnonblocking(conn, 1) != 0 || PQenterPipelineMode(conn) != 1
        || PQsendQueryParams(conn, ngx_http_xet_pg_setup_sql, 2, NULL, values,
                             NULL, NULL, 0)
           != 1)
    {
        return NGX_ERROR;
    }

    if (pg->host->standby
        && PQsendQueryParams(conn, ngx_http_xet_pg_standby_sql, 0, NULL, NULL,
                             NULL, NULL, 0)
           != 1)
    {
        return NGX_ERROR;
    }

    for (stmt = pg->stmts; stmt->name; stmt++) {

        pg->prepared[stmt - pg->stmts] = 0;

        if (ngx_http_xet_pg_prepare_as(pg, stmt, "") != 1) {
            return NGX_ERROR;
        }

        if (stmt->columns && PQsendDescribePrepared(conn, "") != 1) {
            return NGX_ERROR;
        }
    }

    pg->checked = pg->stmts;
    pg->prepares = 0;

    return (PQpipelineSync(conn) == 1) ? ngx_http_xet_pg_flush(pg) : NGX_ERROR;
}


static void
ngx_http_xet_pg_setup_timer_handler(ngx_event_t *ev)
{
    ngx_http_xet_pg_refused(ev->data, "no response to the first statements");
}


/*
 * Reads results until the session is ready.  Returns NGX_OK if the session is
 * ready, NGX_AGAIN if results are still missing, and NGX_DECLINED after an
 * error.
 */

static ngx_int_t
ngx_http_xet_pg_setup_results(ngx_http_xet_pg_t *pg)
{
    PGresult        *res;
    const char      *error;
    ExecStatusType   status;

    for ( ;; ) {
        res = ngx_http_xet_pg_result(pg->conn);

        if (res == NULL) {
            break;
        }

        status = PQresultStatus(res);

        if (status == PGRES_PIPELINE_SYNC) {
            PQclear(res);
            ngx_http_xet_pg_ready(pg);

            return (pg->state == NGX_HTTP_XET_PG_READY) ? NGX_OK
                                                        : NGX_DECLINED;
        }

        if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
            ngx_http_xet_pg_refused(pg, PQresultErrorMessage(res));
            PQclear(res);
            return NGX_DECLINED;
        }

        if (status == PGRES_COMMAND_OK) {
            error = ngx_http_xet_pg_described(pg, res);

            if (error) {
                ngx_http_xet_pg_refused(pg, error);
                PQclear(res);
                return NGX_DECLINED;
            }

        } else if (PQnfields(res) > NGX_HTTP_XET_PG_SETTINGS) {
            ngx_http_xet_pg_clock(pg, strtoll(PQgetvalue(res, 0,
                                              NGX_HTTP_XET_PG_SETTINGS),
                                              NULL, 10));
        }

        PQclear(res);
    }

    if (PQstatus(pg->conn) == CONNECTION_BAD) {
        ngx_http_xet_pg_refused(pg, PQerrorMessage(pg->conn));
        return NGX_DECLINED;
    }

    return NGX_AGAIN;
}


/*
 * Compares the column types of the next statement with the description in res;
 * descriptions arrive in the order of sending.  Skips a result without columns,
 * which comes from parsing a statement.  Returns NULL, or an error.
 */

static const char *
ngx_http_xet_pg_described(ngx_http_xet_pg_t *pg, PGresult *res)
{
    if (PQnfields(res) == 0) {
        return NULL;
    }

    while (pg->checked->columns == NULL) {
        pg->checked++;
    }

    return ngx_http_xet_pg_columns(pg->checked++, res);
}


static void
ngx_http_xet_pg_ready(ngx_http_xet_pg_t *pg)
{
    ngx_del_timer(&pg->setup);

    if (pg->logged) {
        pg->logged = 0;
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "xet: reconnected to %V", &pg->host->name);
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet pg: ready fd:%d", pg->connection->fd);

    pg->state = NGX_HTTP_XET_PG_READY;
    pg->backoff = 0;

    pg->events->ready(pg);
}


static void
ngx_http_xet_pg_refused(ngx_http_xet_pg_t *pg, const char *error)
{
    char  text[NGX_HTTP_XET_PG_ERROR_LEN];

    if (!pg->logged) {
        pg->logged = 1;

        ngx_http_xet_pg_text(text, sizeof(text), error);

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "xet: connecting to %V failed: %s", &pg->host->name,
                      text);
    }

    ngx_http_xet_pg_fail(pg);
}


ngx_int_t
ngx_http_xet_pg_send(ngx_http_xet_pg_t *pg, ngx_http_xet_pg_query_t *q)
{
    int         i, formats[NGX_HTTP_XET_PARAMS_MAX];
    ngx_int_t   rc;
    ngx_uint_t  shares;

    for (i = 0; i < (int) q->stmt->params; i++) {
        formats[i] = 1;
    }

    pg->connection->idle = 0;

    /* a statement that is prepared now may fail more often than others */

    shares = pg->shares && !q->alone && pg->prepared[q->stmt - pg->stmts];

    rc = (pg->nshared && !shares) ? ngx_http_xet_pg_sync(pg) : NGX_OK;

    q->pg = pg;
    q->syncs = 0;
    ngx_queue_insert_tail(&pg->inflight, &q->queue);
    pg->n++;

    if (rc != NGX_OK
        || ngx_http_xet_pg_prepare(pg, q) != 1
        || ngx_http_xet_pg_guard(pg, q) != 1
        || (q->alone && ngx_http_xet_pg_prepare_as(pg, q->stmt, "") != 1)
        || PQsendQueryPrepared(pg->conn, q->alone ? "" : q->stmt->name,
                               (int) q->stmt->params, q->values, q->lengths,
                               formats, 1)
           != 1)
    {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "xet: sending to %V failed: %s", &pg->host->name,
                      PQerrorMessage(pg->conn));
        return NGX_ERROR;
    }

    if (shares && ++pg->nshared < NGX_HTTP_XET_PG_SHARE) {
        ngx_post_event(&pg->sync, &ngx_posted_events);
        return NGX_OK;
    }

    return ngx_http_xet_pg_sync(pg);
}


static void
ngx_http_xet_pg_sync_handler(ngx_event_t *ev)
{
    ngx_http_xet_pg_t *pg = ev->data;

    if (pg->nshared && ngx_http_xet_pg_sync(pg) != NGX_OK) {
        ngx_http_xet_pg_fail(pg);
    }
}


/* Ends the transaction of the last statements, and sends them. */

static ngx_int_t
ngx_http_xet_pg_sync(ngx_http_xet_pg_t *pg)
{
    ngx_http_xet_pg_query_t  *q;

    q = ngx_queue_data(ngx_queue_last(&pg->inflight), ngx_http_xet_pg_query_t,
                       queue);

    q->syncs = 1;
    pg->nshared = 0;

    if (PQpipelineSync(pg->conn) != 1
        || ngx_http_xet_pg_flush(pg) != NGX_OK)
    {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "xet: sending to %V failed: %s", &pg->host->name,
                      PQerrorMessage(pg->conn));
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_pg_flush(ngx_http_xet_pg_t *pg)
{
    int           rc;
    ngx_event_t  *wev;

    wev = pg->connection->write;

    rc = PQflush(pg->conn);

    if (rc == -1) {
        return NGX_ERROR;
    }

    if (rc == 1 && !pg->writing) {
        pg->writing = 1;
        return ngx_add_event(wev, NGX_WRITE_EVENT, NGX_LEVEL_EVENT);
    }

    if (rc == 0 && pg->writing) {
        pg->writing = 0;
        return ngx_del_event(wev, NGX_WRITE_EVENT, 0);
    }

    return NGX_OK;
}


static void
ngx_http_xet_pg_read_handler(ngx_event_t *rev)
{
    ngx_int_t           rc;
    ngx_uint_t          i, level;
    ngx_connection_t   *c;
    ngx_http_xet_pg_t  *pg;

    c = rev->data;
    pg = c->data;

    if (c->close || ngx_terminate) {

        ngx_http_xet_pg_close(pg);

        if (pg->n) {
            pg->events->failed(pg);
        }

        return;
    }

    /* epoll reports no event for bytes in libpq's TLS buffer: read again */

    i = PQsslInUse(pg->conn) ? 3 : 1;

    do {
        if (PQconsumeInput(pg->conn) != 1
            || ngx_http_xet_pg_flush(pg) != NGX_OK)
        {
            if (pg->state != NGX_HTTP_XET_PG_READY) {
                ngx_http_xet_pg_refused(pg, PQerrorMessage(pg->conn));
                return;
            }

            level = pg->n ? NGX_LOG_ERR : NGX_LOG_NOTICE;

            ngx_log_error(level, ngx_cycle->log, 0,
                          "xet: connection to %V lost: %s",
                          &pg->host->name, PQerrorMessage(pg->conn));
            ngx_http_xet_pg_fail(pg);
            return;
        }

        rc = (pg->state == NGX_HTTP_XET_PG_READY)
             ? ngx_http_xet_pg_results(pg)
             : ngx_http_xet_pg_setup_results(pg);

        if (rc == NGX_DECLINED) {
            return;
        }

    } while (--i && (pg->n || rc == NGX_AGAIN));

    if (rc == NGX_OK) {
        pg->events->drained(pg);
    }
}


static void
ngx_http_xet_pg_write_handler(ngx_event_t *wev)
{
    ngx_connection_t   *c;
    ngx_http_xet_pg_t  *pg;

    c = wev->data;
    pg = c->data;

    if (ngx_http_xet_pg_flush(pg) != NGX_OK) {
        ngx_http_xet_pg_fail(pg);
    }
}


/*
 * Reads the available results.  libpq returns a result and a NULL for each
 * statement, and then the sync that ends one or several statements.  The
 * results of a statement's preparation and of xet.in_time() precede its own
 * result.  Returns NGX_DECLINED if the session is no longer ready, else NGX_OK.
 */

static ngx_int_t
ngx_http_xet_pg_results(ngx_http_xet_pg_t *pg)
{
    PGresult    *res;
    const char  *error;

    while (pg->n) {
        res = ngx_http_xet_pg_result(pg->conn);

        if (res == NULL) {
            break;
        }

        if (PQresultStatus(res) != PGRES_PIPELINE_SYNC) {
            error = ngx_http_xet_pg_take(pg, ngx_http_xet_pg_taker(pg), res);

            if (error) {
                ngx_http_xet_pg_refused(pg, error);
                return NGX_DECLINED;
            }

            continue;
        }

        PQclear(res);

        if (ngx_http_xet_pg_synced(pg) != NGX_OK) {
            return NGX_DECLINED;
        }
    }

    if (PQstatus(pg->conn) == CONNECTION_BAD) {
        ngx_http_xet_pg_fail(pg);
        return NGX_DECLINED;
    }

    return NGX_OK;
}


/*
 * Ends the statements before a sync.  Returns NGX_DECLINED if the session is no
 * longer ready; statements that have not ended are then sent again.
 */

static ngx_int_t
ngx_http_xet_pg_synced(ngx_http_xet_pg_t *pg)
{
    ngx_uint_t                last;
    ngx_queue_t              *head;
    ngx_http_xet_pg_query_t  *q;

    do {
        head = ngx_queue_head(&pg->inflight);
        q = ngx_queue_data(head, ngx_http_xet_pg_query_t, queue);
        last = q->syncs;

        ngx_http_xet_pg_unprepare(pg, q);

        ngx_queue_remove(head);
        pg->n--;
        q->pg = NULL;

        pg->events->finished(pg, q);

        if (pg->state != NGX_HTTP_XET_PG_READY) {
            return NGX_DECLINED;
        }

    } while (!last);

    return NGX_OK;
}


/*
 * Returns the statement of the next result.  A statement that shares a sync has
 * one result, unless it is the last one before the sync.
 */

static ngx_http_xet_pg_query_t *
ngx_http_xet_pg_taker(ngx_http_xet_pg_t *pg)
{
    ngx_queue_t              *e;
    ngx_http_xet_pg_query_t  *q;

    for (e = ngx_queue_head(&pg->inflight); /* void */ ; e = ngx_queue_next(e))
    {
        q = ngx_queue_data(e, ngx_http_xet_pg_query_t, queue);

        if (q->res == NULL || q->syncs
            || e == ngx_queue_last(&pg->inflight))
        {
            return q;
        }
    }
}


/*
 * Stores the result of q: its own, or the error of a preparation or of
 * xet.in_time(), after which PostgreSQL skips the rest.  Returns NULL, or an
 * error if the session can't be used further, because the result has other
 * columns: the function was replaced after the check.
 */

static const char *
ngx_http_xet_pg_take(ngx_http_xet_pg_t *pg, ngx_http_xet_pg_query_t *q,
    PGresult *res)
{
    const char      *error, *detail;
    ExecStatusType   status;

    if (q->res) {
        PQclear(res);
        return NULL;
    }

    status = PQresultStatus(res);

    if (status == PGRES_COMMAND_OK && (q->parses || q->guard_parses)) {

        if (q->parses) {
            q->parses = 0;

        } else {
            q->guard_parses = 0;
        }

        PQclear(res);
        return NULL;
    }

    if (status == PGRES_TUPLES_OK && q->guarded) {
        ngx_http_xet_pg_clock(pg, ngx_http_xet_pg_int(res, 0, 0));
        PQclear(res);

        q->guarded = 0;
        return NULL;
    }

    if (status == PGRES_TUPLES_OK) {
        error = ngx_http_xet_pg_columns(q->stmt, res);

        if (error) {
            PQclear(res);
            return error;
        }
    }

    detail = q->guarded ? PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL)
                        : NULL;

    if (detail && ngx_strcmp(PQresultErrorField(res, PG_DIAG_SQLSTATE),
                             NGX_HTTP_XET_PG_LATE)
                  == 0)
    {
        ngx_http_xet_pg_clock(pg, strtoll(detail, NULL, 10));
    }

    q->res = res;

    return NULL;
}


/*
 * Returns the next available result, or NULL.  libpq returns a NULL after each
 * result; this function skips it.  After a connection error libpq returns only
 * NULL.
 */

static PGresult *
ngx_http_xet_pg_result(PGconn *conn)
{
    PGresult    *res;
    ngx_uint_t   i;

    for (i = 0; i < 2 && !PQisBusy(conn); i++) {
        res = PQgetResult(conn);

        if (res || PQstatus(conn) == CONNECTION_BAD) {
            return res;
        }
    }

    return NULL;
}


static void
ngx_http_xet_pg_fail(ngx_http_xet_pg_t *pg)
{
    ngx_http_xet_pg_close(pg);

    pg->events->failed(pg);
}


void
ngx_http_xet_pg_close(ngx_http_xet_pg_t *pg)
{
    if (pg->connect) {
        ngx_http_xet_pg_connect_abandon(pg->connect);
        pg->connect = NULL;
    }

    if (pg->setup.timer_set) {
        ngx_del_timer(&pg->setup);
    }

    if (pg->sync.posted) {
        ngx_delete_posted_event(&pg->sync);
    }

    pg->nshared = 0;

    if (pg->connection) {

        if (!(ngx_event_flags & NGX_USE_EPOLL_EVENT)) {
            (void) ngx_del_event(pg->connection->read, NGX_READ_EVENT, 0);

            if (pg->writing) {
                (void) ngx_del_event(pg->connection->write, NGX_WRITE_EVENT,
                                     0);
            }
        }

        ngx_close_connection(pg->connection);
        pg->connection = NULL;
    }

    if (pg->conn) {
        PQfinish(pg->conn);
        pg->conn = NULL;
    }

    pg->writing = 0;
    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet pg %p: closed, %ui in flight", pg, pg->n);

    pg->state = NGX_HTTP_XET_PG_CLOSED;
}
