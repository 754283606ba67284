
/*
 * One PostgreSQL session as nginx events.
 *
 * Connecting is done in a thread, see ngx_http_xet_pg_connect.c; the event
 * loop gets a connection, makes it a session, see ngx_http_xet_pg_setup.c, and
 * only ever sends and consumes.  The session is in pipeline mode: each
 * statement has a sync of its own, so one that fails takes no other with it,
 * and results come in the order of sending.
 *
 * libpq owns the socket.  It is watched level-triggered, because
 * PQconsumeInput() reads only once; and nginx's connection is released before
 * libpq closes the descriptor.
 *
 * States: closed -> connecting -> ready -> closed, and closed -> backoff ->
 * connecting while PostgreSQL can't be reached.  While pg->connect is set a
 * PGconn belongs to the thread, else to the event loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg_session.h"


static void ngx_http_xet_pg_connected(void *data, PGconn *conn,
    const char *error);
static void ngx_http_xet_pg_setup_timer_handler(ngx_event_t *ev);
static ngx_int_t ngx_http_xet_pg_prepared(ngx_http_xet_pg_t *pg);
static void ngx_http_xet_pg_refused(ngx_http_xet_pg_t *pg, const char *error);
static ngx_int_t ngx_http_xet_pg_wrap(ngx_http_xet_pg_t *pg);
static void ngx_http_xet_pg_read_handler(ngx_event_t *rev);
static void ngx_http_xet_pg_write_handler(ngx_event_t *wev);
static ngx_int_t ngx_http_xet_pg_flush(ngx_http_xet_pg_t *pg);
static ngx_int_t ngx_http_xet_pg_results(ngx_http_xet_pg_t *pg);
static void ngx_http_xet_pg_fail(ngx_http_xet_pg_t *pg);


void
ngx_http_xet_pg_init(ngx_http_xet_pg_t *pg)
{
    ngx_queue_init(&pg->inflight);

    pg->setup.handler = ngx_http_xet_pg_setup_timer_handler;
    pg->setup.data = pg;
    pg->setup.log = ngx_cycle->log;
    pg->setup.cancelable = 1;
}


ngx_int_t
ngx_http_xet_pg_connect(ngx_http_xet_pg_t *pg)
{
    pg->connect = ngx_http_xet_pg_connect_start(ngx_http_xet_pg_connected,
                                                pg);
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

    if (conn == NULL) {
        ngx_http_xet_pg_refused(pg, error);
        return;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet pg %p: connected, preparing", pg);

    if (ngx_http_xet_pg_setup_send(conn, pg->stmts, pg->timeout, pg->locks)
        != NGX_OK
        || ngx_http_xet_pg_wrap(pg) != NGX_OK
        || ngx_http_xet_pg_flush(pg) != NGX_OK)
    {
        ngx_http_xet_pg_refused(pg, PQerrorMessage(conn));
        return;
    }

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    ngx_add_timer(&pg->setup, xmcf->connect_timeout);
}


static void
ngx_http_xet_pg_setup_timer_handler(ngx_event_t *ev)
{
    ngx_http_xet_pg_refused(ev->data, "no answer to the first statements");
}


/* NGX_OK: the session is ready; NGX_AGAIN: not yet; NGX_DECLINED: it failed. */

static ngx_int_t
ngx_http_xet_pg_prepared(ngx_http_xet_pg_t *pg)
{
    char       error[NGX_HTTP_XET_PG_ERROR_LEN];
    ngx_int_t  rc;

    rc = ngx_http_xet_pg_setup_results(pg->conn, error, sizeof(error));

    if (rc == NGX_AGAIN) {
        return NGX_AGAIN;
    }

    if (rc == NGX_ERROR) {
        ngx_http_xet_pg_refused(pg, error);
        return NGX_DECLINED;
    }

    ngx_del_timer(&pg->setup);

    if (pg->logged) {
        pg->logged = 0;
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "xet: connected to PostgreSQL again");
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet pg: ready fd:%d", pg->connection->fd);

    pg->state = NGX_HTTP_XET_PG_READY;
    pg->backoff = 0;

    pg->events->ready(pg);

    return (pg->state == NGX_HTTP_XET_PG_READY) ? NGX_OK : NGX_DECLINED;
}


static void
ngx_http_xet_pg_refused(ngx_http_xet_pg_t *pg, const char *error)
{
    if (!pg->logged) {
        pg->logged = 1;
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "xet: connecting to PostgreSQL failed: %s", error);
    }

    ngx_http_xet_pg_fail(pg);
}


static ngx_int_t
ngx_http_xet_pg_wrap(ngx_http_xet_pg_t *pg)
{
    ngx_log_t         *log;
    ngx_connection_t  *c;

    log = ngx_cycle->log;

    c = ngx_get_connection(PQsocket(pg->conn), log);
    if (c == NULL) {
        return NGX_ERROR;
    }

    c->data = pg;
    c->log = log;
    c->read->log = log;
    c->write->log = log;
    c->read->handler = ngx_http_xet_pg_read_handler;
    c->write->handler = ngx_http_xet_pg_write_handler;
    c->number = ngx_atomic_fetch_add(ngx_connection_counter, 1);

    /* the descriptor is libpq's: nginx neither closes nor forgets it */
    c->shared = 1;

    if (ngx_add_event(c->read, NGX_READ_EVENT, NGX_LEVEL_EVENT) != NGX_OK) {
        ngx_close_connection(c);
        return NGX_ERROR;
    }

    pg->connection = c;
    pg->writing = 0;

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_pg_send(ngx_http_xet_pg_t *pg, ngx_http_xet_pg_query_t *q)
{
    int  i, formats[NGX_HTTP_XET_PARAMS_MAX];

    for (i = 0; i < (int) q->stmt->params; i++) {
        formats[i] = 1;
    }

    pg->connection->idle = 0;

    q->pg = pg;
    ngx_queue_insert_tail(&pg->inflight, &q->queue);
    pg->n++;

    if (PQsendQueryPrepared(pg->conn, q->stmt->name, (int) q->stmt->params,
                            q->values, q->lengths, formats, 1)
        != 1
        || PQpipelineSync(pg->conn) != 1)
    {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "xet: sending to PostgreSQL failed: %s",
                      PQerrorMessage(pg->conn));
        return NGX_ERROR;
    }

    return ngx_http_xet_pg_flush(pg);
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

    /* decrypted bytes that TLS holds raise no event: look for them */

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
                          "xet: connection to PostgreSQL lost: %s",
                          PQerrorMessage(pg->conn));
            ngx_http_xet_pg_fail(pg);
            return;
        }

        rc = (pg->state == NGX_HTTP_XET_PG_READY)
             ? ngx_http_xet_pg_results(pg) : ngx_http_xet_pg_prepared(pg);

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
 * Takes the results that have come.  A statement gives a result, a NULL, and a
 * sync, which ends it.  NGX_DECLINED: the session is not ready any more.
 */

static ngx_int_t
ngx_http_xet_pg_results(ngx_http_xet_pg_t *pg)
{
    PGresult                 *res;
    ngx_uint_t                nulls;
    ngx_queue_t              *head;
    ngx_http_xet_pg_query_t  *q;

    nulls = 0;

    while (pg->n && !PQisBusy(pg->conn)) {

        res = PQgetResult(pg->conn);

        if (res == NULL) {

            /* one NULL ends a result; a dead connection gives only NULLs */

            if (nulls++ || PQstatus(pg->conn) == CONNECTION_BAD) {
                break;
            }

            continue;
        }

        nulls = 0;

        head = ngx_queue_head(&pg->inflight);
        q = ngx_queue_data(head, ngx_http_xet_pg_query_t, queue);

        if (PQresultStatus(res) != PGRES_PIPELINE_SYNC) {

            if (q->res) {
                PQclear(q->res);
            }

            q->res = res;
            continue;
        }

        PQclear(res);

        ngx_queue_remove(head);
        pg->n--;
        q->pg = NULL;

        pg->events->finished(pg, q);

        if (pg->state != NGX_HTTP_XET_PG_READY) {
            return NGX_DECLINED;
        }
    }

    if (PQstatus(pg->conn) == CONNECTION_BAD) {
        ngx_http_xet_pg_fail(pg);
        return NGX_DECLINED;
    }

    return NGX_OK;
}


static void
ngx_http_xet_pg_fail(ngx_http_xet_pg_t *pg)
{
    ngx_http_xet_pg_close(pg);

    pg->events->failed(pg);
}


void
ngx_http_xet_pg_park(ngx_http_xet_pg_t *pg)
{
    pg->connection->idle = 1;
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


ngx_int_t
ngx_http_xet_pg_rows(PGresult *res)
{
    return PQntuples(res);
}


ngx_int_t
ngx_http_xet_pg_null(PGresult *res, ngx_int_t row, ngx_int_t col)
{
    return PQgetisnull(res, (int) row, (int) col);
}


void
ngx_http_xet_pg_bytes(PGresult *res, ngx_int_t row, ngx_int_t col,
    ngx_str_t *value)
{
    value->data = (u_char *) PQgetvalue(res, (int) row, (int) col);
    value->len = PQgetlength(res, (int) row, (int) col);
}


int64_t
ngx_http_xet_pg_int(PGresult *res, ngx_int_t row, ngx_int_t col)
{
    int          i, len;
    uint64_t     n;
    const char  *p;

    p = PQgetvalue(res, (int) row, (int) col);
    len = PQgetlength(res, (int) row, (int) col);

    if (len == 0) {
        return 0;
    }

    n = (p[0] & 0x80) ? (uint64_t) -1 : 0;

    for (i = 0; i < len; i++) {
        n = (n << 8) | (u_char) p[i];
    }

    return (int64_t) n;
}


void
ngx_http_xet_pg_clear(PGresult *res)
{
    PQclear(res);
}
