
/*
 * One PostgreSQL session as nginx events.
 *
 * Connecting, with its name lookups, file reads, TLS and the preparing of all
 * statements, is done by blocking calls in a thread; the event loop gets a
 * ready connection and only ever sends and consumes.  The session is in
 * pipeline mode: each statement has a sync of its own, so one that fails
 * takes no other with it, and results come in the order of sending.
 *
 * libpq owns the socket.  It is watched level-triggered, because
 * PQconsumeInput() reads only once; and nginx's connection is released before
 * libpq closes the descriptor.
 *
 * States: closed -> connecting -> ready -> closed, and closed -> backoff ->
 * connecting while PostgreSQL can't be reached.  A PGconn belongs to the
 * thread while connecting, to the event loop otherwise.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query.h"


#define NGX_HTTP_XET_PG_ERROR_LEN  512


typedef struct {
    ngx_str_t                      conninfo;
    ngx_str_t                      timeout;
    PGconn                        *conn;
    u_char                         error[NGX_HTTP_XET_PG_ERROR_LEN];
} ngx_http_xet_pg_connect_ctx_t;


static void ngx_http_xet_pg_connect_job(void *data, ngx_log_t *log);
static const char *ngx_http_xet_pg_settings_job(PGconn *conn);
static void ngx_http_xet_pg_text(u_char *dst, size_t size, const char *text);
static const char *ngx_http_xet_pg_prepare_job(PGconn *conn);
static const char *ngx_http_xet_pg_check_schema_job(PGconn *conn);
static void ngx_http_xet_pg_connect_done(ngx_event_t *ev);
static ngx_int_t ngx_http_xet_pg_wrap(ngx_http_xet_pg_t *pg);
static void ngx_http_xet_pg_notice(void *arg, const PGresult *res);
static void ngx_http_xet_pg_read_handler(ngx_event_t *rev);
static void ngx_http_xet_pg_write_handler(ngx_event_t *wev);
static ngx_int_t ngx_http_xet_pg_flush(ngx_http_xet_pg_t *pg);
static ngx_int_t ngx_http_xet_pg_results(ngx_http_xet_pg_t *pg);
static void ngx_http_xet_pg_fail(ngx_http_xet_pg_t *pg);


ngx_int_t
ngx_http_xet_pg_connect(ngx_http_xet_pg_t *pg)
{
    ngx_thread_task_t              *task;
    ngx_http_xet_main_conf_t       *xmcf;
    ngx_http_xet_pg_connect_ctx_t  *ctx;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    task = pg->task;

    if (task == NULL) {
        task = ngx_thread_task_alloc(pg->pool,
                                     sizeof(ngx_http_xet_pg_connect_ctx_t));
        if (task == NULL) {
            return NGX_ERROR;
        }

        ctx = task->ctx;
        ctx->conninfo = xmcf->conninfo;

        ctx->timeout.data = ngx_pnalloc(pg->pool, NGX_TIME_T_LEN + 1);
        if (ctx->timeout.data == NULL) {
            return NGX_ERROR;
        }

        *ngx_sprintf(ctx->timeout.data, "%M",
                     (xmcf->connect_timeout + 999) / 1000) = '\0';

        task->handler = ngx_http_xet_pg_connect_job;
        task->event.handler = ngx_http_xet_pg_connect_done;
        task->event.data = pg;
        task->event.log = ngx_cycle->log;

        pg->task = task;
    }

    task->event.complete = 0;

    if (ngx_thread_task_post(xmcf->pool, task) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0, "xet pg: connecting");

    pg->state = NGX_HTTP_XET_PG_CONNECTING;

    return NGX_OK;
}


static void
ngx_http_xet_pg_connect_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_pg_connect_ctx_t *ctx = data;

    PGconn      *conn;
    const char  *error;
    const char  *keys[] = { "connect_timeout", "application_name",
                            "client_encoding", "dbname", NULL };
    const char  *values[] = { NULL, "nginx-xet", "UTF8", NULL, NULL };

    ctx->conn = NULL;
    ctx->error[0] = '\0';

    /* what the conninfo says itself comes last and wins */

    values[0] = (const char *) ctx->timeout.data;
    values[3] = (const char *) ctx->conninfo.data;

    conn = PQconnectdbParams(keys, values, 1);

    if (conn == NULL) {
        (void) ngx_snprintf(ctx->error, NGX_HTTP_XET_PG_ERROR_LEN,
                            "out of memory%Z");
        return;
    }

    PQsetNoticeReceiver(conn, ngx_http_xet_pg_notice, NULL);

    error = (PQstatus(conn) == CONNECTION_OK) ? NULL : PQerrorMessage(conn);

    if (error == NULL) {
        error = ngx_http_xet_pg_check_schema_job(conn);
    }

    if (error == NULL) {
        error = ngx_http_xet_pg_settings_job(conn);
    }

    if (error == NULL) {
        error = ngx_http_xet_pg_prepare_job(conn);
    }

    if (error == NULL
        && (PQsetnonblocking(conn, 1) != 0 || PQenterPipelineMode(conn) != 1))
    {
        error = PQerrorMessage(conn);
    }

    if (error) {
        ngx_http_xet_pg_text(ctx->error, NGX_HTTP_XET_PG_ERROR_LEN, error);

        PQfinish(conn);
        return;
    }

    ctx->conn = conn;
}


static const char *
ngx_http_xet_pg_check_schema_job(PGconn *conn)
{
    PGresult    *res;
    const char  *error;

    static const char  wrong[] = "the schema \"xet\" has another version than "
                                 "this module needs, run sql/migrate.sh";

    res = PQexec(conn, "SELECT max(version) FROM xet.migrations");

    if (PQresultStatus(res) != PGRES_TUPLES_OK) {
        error = PQerrorMessage(conn);

    } else if (PQntuples(res) == 1
               && ngx_strcmp(PQgetvalue(res, 0, 0), NGX_HTTP_XET_SCHEMA) == 0)
    {
        error = NULL;

    } else {
        error = wrong;
    }

    PQclear(res);

    return error;
}


/*
 * Every statement of ours finds its rows by an index.  Sessions keep plans,
 * also those of foreign keys, and one made while a table was tiny would read
 * the whole of it for each row long after it has grown.  The penalty of what
 * has no other way than such a scan would make PostgreSQL plan every statement
 * anew, which takes longer than most of them.
 */

static const char *
ngx_http_xet_pg_settings_job(PGconn *conn)
{
    PGresult        *res;
    ExecStatusType   status;

    res = PQexec(conn, "SET enable_seqscan = off; "
                       "SET plan_cache_mode = force_generic_plan");
    status = PQresultStatus(res);

    PQclear(res);

    return (status == PGRES_COMMAND_OK) ? NULL : PQerrorMessage(conn);
}


/* A message of libpq, without the newline at its end. */

static void
ngx_http_xet_pg_text(u_char *dst, size_t size, const char *text)
{
    size_t  len;

    len = ngx_strlen(text);

    while (len && (text[len - 1] == '\n' || text[len - 1] == ' ')) {
        len--;
    }

    ngx_cpystrn(dst, (u_char *) text, ngx_min(len + 1, size));
}


static const char *
ngx_http_xet_pg_prepare_job(PGconn *conn)
{
    PGresult                      *res;
    ExecStatusType                 status;
    const ngx_http_xet_pg_stmt_t  *stmt;

    for (stmt = ngx_http_xet_query_stmts; stmt->name; stmt++) {

        res = PQprepare(conn, stmt->name, stmt->sql, 0, NULL);
        status = PQresultStatus(res);

        PQclear(res);

        if (status != PGRES_COMMAND_OK) {
            return PQerrorMessage(conn);
        }
    }

    return NULL;
}


static void
ngx_http_xet_pg_connect_done(ngx_event_t *ev)
{
    ngx_http_xet_pg_t              *pg;
    ngx_http_xet_pg_connect_ctx_t  *ctx;

    pg = ev->data;
    ctx = pg->task->ctx;

    pg->state = NGX_HTTP_XET_PG_CLOSED;
    pg->conn = ctx->conn;
    ctx->conn = NULL;

    if (pg->conn == NULL) {

        if (!pg->logged) {
            pg->logged = 1;
            ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                          "xet: connecting to PostgreSQL failed: %s",
                          ctx->error);
        }

        ngx_http_xet_pg_fail(pg);
        return;
    }

    if (ngx_http_xet_pg_wrap(pg) != NGX_OK) {
        ngx_http_xet_pg_fail(pg);
        return;
    }

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


static void
ngx_http_xet_pg_notice(void *arg, const PGresult *res)
{
    /* a notice in the connecting thread: the cycle's log is safe to use */

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0, "xet: PostgreSQL: %s",
                  PQresultErrorMessage(res));
}


ngx_int_t
ngx_http_xet_pg_send(ngx_http_xet_pg_t *pg, ngx_http_xet_pg_query_t *q)
{
    int  i, formats[NGX_HTTP_XET_PG_PARAMS];

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
            level = pg->n ? NGX_LOG_ERR : NGX_LOG_NOTICE;

            ngx_log_error(level, ngx_cycle->log, 0,
                          "xet: connection to PostgreSQL lost: %s",
                          PQerrorMessage(pg->conn));
            ngx_http_xet_pg_fail(pg);
            return;
        }

        if (ngx_http_xet_pg_results(pg) != NGX_OK) {
            return;
        }

    } while (--i && pg->n);

    pg->events->drained(pg);
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
 * Takes what has come.  A statement gives a result, a NULL, and a sync, which
 * ends it.  NGX_DECLINED: the session has failed.
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
    pg->state = NGX_HTTP_XET_PG_CLOSED;
}


ngx_int_t
ngx_http_xet_pg_check_conninfo(ngx_str_t *conninfo, u_char *err, size_t len)
{
    char              *msg;
    ngx_int_t          rc;
    PQconninfoOption  *opts, *o;

    msg = NULL;
    opts = PQconninfoParse((char *) conninfo->data, &msg);

    if (opts == NULL) {
        ngx_http_xet_pg_text(err, len, msg ? msg : "out of memory");

        if (msg) {
            PQfreemem(msg);
        }

        return NGX_ERROR;
    }

    rc = NGX_OK;

    for (o = opts; o->keyword; o++) {
        if (ngx_strcmp(o->keyword, "password") == 0 && o->val) {
            rc = NGX_DECLINED;
        }
    }

    PQconninfoFree(opts);

    return rc;
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
