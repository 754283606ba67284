
/*
 * Sends the statements of a request, one at a time, and continues the request
 * when the rows have arrived.
 *
 * The rows of a result stay in the query until the next statement, a release,
 * or the end of the request.  If the request ends while a statement is in
 * flight, the statement is detached: PostgreSQL completes it, and the result is
 * dropped.
 *
 * If "client" is WAITS in statements.def, a statement is sent only while its
 * client is waiting.  With HTTP/2 the worker may have received a reset of the
 * stream that it has not parsed yet.  So the statement is sent after the
 * received bytes were parsed, in the same iteration of the event loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


/* A statement that will be sent in this iteration of the event loop. */

typedef struct {
    ngx_event_t                     event;
    ngx_http_request_t             *request;
    ngx_http_xet_pg_pool_e          pg_pool;
    ngx_http_xet_stmt_e             stmt;
    ngx_http_xet_query_handler_pt   handler;
} ngx_http_xet_query_later_t;


static ngx_int_t ngx_http_xet_query_later(ngx_http_request_t *r,
    ngx_http_xet_pg_pool_e pg_pool, ngx_http_xet_stmt_e stmt,
    ngx_http_xet_query_handler_pt handler);
static void ngx_http_xet_query_later_handler(ngx_event_t *ev);
static void ngx_http_xet_query_later_cleanup(void *data);
static ngx_int_t ngx_http_xet_query_now(ngx_http_request_t *r,
    ngx_http_xet_pg_pool_e pg_pool, ngx_http_xet_stmt_e stmt);
static ngx_uint_t ngx_http_xet_query_fit(void *data);
static void ngx_http_xet_query_cleanup(void *data);
static void ngx_http_xet_query_pool_cleanup(void *data);


ngx_int_t
ngx_http_xet_query_pools(ngx_cycle_t *cycle)
{
    if (ngx_http_xet_statements_init(cycle->pool) != NGX_OK ||
        ngx_http_xet_pg_pools_init(cycle, ngx_http_xet_query_stmts) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_xet_standbys_init(cycle, ngx_http_xet_query_stmts,
                             &ngx_http_xet_query_stmts[ngx_http_xet_stmt_wal]);
}


ngx_int_t
ngx_http_xet_query_create(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (ctx->query == NULL) {
        ctx->query = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_query_t));
    }

    return ctx->query ? NGX_OK : NGX_ERROR;
}


ngx_http_xet_params_t *
ngx_http_xet_query_params(ngx_http_request_t *r)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_ctx_of(r)->query;

    ngx_http_xet_query_release(r);
    ngx_http_xet_params_init(&q->params);

    return &q->params;
}


ngx_int_t
ngx_http_xet_query_prepare(ngx_http_request_t *r,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_cleanup_t    *cln;
    ngx_pool_cleanup_t    *pcln;
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_ctx_of(r)->query;

    if (!q->cleanup) {

        /*
         * the first cleanup detaches a statement in flight when the request
         * ends; the second frees the rows when the request's pool is destroyed
         */

        cln = ngx_http_cleanup_add(r, 0);
        if (cln == NULL) {
            return NGX_ERROR;
        }

        cln->handler = ngx_http_xet_query_cleanup;
        cln->data = q;

        pcln = ngx_pool_cleanup_add(r->pool, 0);
        if (pcln == NULL) {
            return NGX_ERROR;
        }

        pcln->handler = ngx_http_xet_query_pool_cleanup;
        pcln->data = q;

        q->cleanup = 1;
    }

    q->request = r;
    q->handler = handler;
    q->sqlstate[0] = '\0';

    return NGX_OK;
}


void
ngx_http_xet_query_turns(ngx_http_request_t *r, ngx_http_xet_stmt_e stmt)
{
    uint32_t                  hash;
    struct sockaddr          *sa;
    ngx_http_xet_auth_t      *auth;
    ngx_http_xet_loc_conf_t  *xlcf;

    if (!ngx_http_xet_query_stmts[stmt].longs) {
        return;
    }

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    auth = (xlcf->auth == NGX_HTTP_XET_AUTH_TOKEN) ? ngx_http_xet_auth(r)
                                                   : NULL;

    if (auth && auth->status == XET_OK && auth->subject.len) {
        hash = ngx_murmur_hash2(auth->subject.data, auth->subject.len);

    } else {
        sa = r->connection->sockaddr;

        switch (sa->sa_family) {

        case AF_INET:
            hash = ((struct sockaddr_in *) sa)->sin_addr.s_addr;
            break;

#if (NGX_HAVE_INET6)
        case AF_INET6:

            /*
             * a client usually controls all addresses of its /64 IPv6 network
             */

            hash = ngx_murmur_hash2(
                       ((struct sockaddr_in6 *) sa)->sin6_addr.s6_addr, 8);
            break;
#endif

        default:
            hash = 0;
        }
    }

    ngx_http_xet_ctx_of(r)->query->params.caller = hash;
}


ngx_int_t
ngx_http_xet_query_send(ngx_http_request_t *r, ngx_http_xet_pg_pool_e pg_pool,
    ngx_http_xet_stmt_e stmt, ngx_http_xet_query_handler_pt handler)
{
    ngx_int_t  rc;

    rc = ngx_http_xet_query_prepare(r, handler);

    if (rc != NGX_OK) {
        return rc;
    }

    return (ngx_http_xet_statement_acts(stmt)
            && r->http_version >= NGX_HTTP_VERSION_20)
           ? ngx_http_xet_query_later(r, pg_pool, stmt, handler)
           : ngx_http_xet_query_now(r, pg_pool, stmt);
}


static ngx_int_t
ngx_http_xet_query_later(ngx_http_request_t *r, ngx_http_xet_pg_pool_e pg_pool,
    ngx_http_xet_stmt_e stmt, ngx_http_xet_query_handler_pt handler)
{
    ngx_http_cleanup_t          *cln;
    ngx_http_xet_query_later_t  *later;

    cln = ngx_http_cleanup_add(r, sizeof(ngx_http_xet_query_later_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    later = cln->data;

    ngx_memzero(later, sizeof(ngx_http_xet_query_later_t));

    cln->handler = ngx_http_xet_query_later_cleanup;

    later->request = r;
    later->pg_pool = pg_pool;
    later->stmt = stmt;
    later->handler = handler;

    later->event.handler = ngx_http_xet_query_later_handler;
    later->event.data = later;
    later->event.log = r->connection->log;

    ngx_post_event(&later->event, &ngx_posted_events);

    return NGX_AGAIN;
}


static void
ngx_http_xet_query_later_handler(ngx_event_t *ev)
{
    ngx_int_t                    rc;
    ngx_connection_t            *c;
    ngx_http_request_t          *r;
    ngx_http_xet_query_later_t  *later;

    later = ev->data;
    r = later->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    rc = ngx_http_xet_query_now(r, later->pg_pool, later->stmt);

    if (rc != NGX_AGAIN) {
        later->handler(r, rc);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_xet_query_later_cleanup(void *data)
{
    ngx_http_xet_query_later_t *later = data;

    if (later->event.posted) {
        ngx_delete_posted_event(&later->event);
    }
}


static ngx_int_t
ngx_http_xet_query_now(ngx_http_request_t *r, ngx_http_xet_pg_pool_e pg_pool,
    ngx_http_xet_stmt_e stmt)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_ctx_of(r)->query;

    ngx_http_xet_query_turns(r, stmt);

    /* later reads must see this write, or must not be older than this read */

    q->primary = 1;
    q->params.acts = ngx_http_xet_statement_acts(stmt);

    if (q->params.acts && !ngx_http_xet_query_fit(q)) {
        return NGX_BUSY;
    }

    q->query = ngx_http_xet_pg_pools_send(pg_pool,
                                          &ngx_http_xet_query_stmts[stmt],
                                          &q->params,
                                          ngx_http_xet_query_result, q);
    if (q->query == NULL) {
        return NGX_BUSY;
    }

    if (q->params.acts) {
        ngx_http_xet_pg_pools_watch(q->query, ngx_http_xet_query_fit);
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet query: \"%s\"", ngx_http_xet_query_stmts[stmt].name);

    return NGX_AGAIN;
}


/*
 * Returns whether the client is still waiting, so that the statement may be
 * sent.
 */

static ngx_uint_t
ngx_http_xet_query_fit(void *data)
{
    ngx_http_xet_query_t *q = data;

    ngx_http_xet_ctx_t  *ctx;
    ngx_http_request_t  *r;

    r = q->request;
    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    q->gone = ngx_http_xet_client_gone(r);
    q->halted = ngx_http_xet_halted(ctx->began);

    if (q->gone) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "xet: the client closed the connection; its request was "
                      "not started");
    }

    return !q->gone && !q->halted;
}


void
ngx_http_xet_query_result(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_connection_t      *c;
    ngx_http_request_t    *r;
    ngx_http_xet_query_t  *q;

    q = data;
    r = q->request;
    c = r->connection;

    q->query = NULL;
    q->left = NULL;
    q->res = res;

    if (sqlstate) {
        ngx_cpystrn(q->sqlstate, (u_char *) sqlstate, sizeof(q->sqlstate));

        if (ngx_strncmp(sqlstate, "XT", 2) == 0) {
            rc = NGX_ABORT;
        }
    }

    if (rc == NGX_OK && ngx_http_xet_pg_rows(res) == 0) {
        rc = NGX_DECLINED;
    }

    ngx_http_set_log_request(c->log, r);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, c->log, 0, "xet query: done rc:%i", rc);

    q->handler(r, rc);

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_xet_query_cleanup(void *data)
{
    ngx_http_xet_query_t *q = data;

    if (q->query == NULL) {
        return;
    }

    if (q->left && q->left(q)) {
        q->inherited = 1;

    } else {
        ngx_http_xet_pg_pools_detach(q->query);
    }

    q->query = NULL;
}


static void
ngx_http_xet_query_pool_cleanup(void *data)
{
    ngx_http_xet_query_t  *q = data;

    ngx_http_xet_pg_clear(q->res);
    q->res = NULL;
}


void
ngx_http_xet_query_release(ngx_http_request_t *r)
{
    ngx_http_xet_query_pool_cleanup(ngx_http_xet_ctx_of(r)->query);
}


xet_status_t
ngx_http_xet_query_status(ngx_int_t rc, xet_status_t missing)
{
    switch (rc) {

    case NGX_OK:
        return XET_OK;

    case NGX_AGAIN:
        return XET_AGAIN;

    case NGX_DECLINED:
        return missing;

    case NGX_BUSY:
        return XET_DATABASE_AWAY;

    default: /* NGX_ERROR, NGX_ABORT */
        return XET_DATABASE;
    }
}


ngx_int_t
ngx_http_xet_query_error(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_ctx_of(r)->query;

    if (rc == NGX_BUSY && q && q->gone) {
        return NGX_HTTP_CLIENT_CLOSED_REQUEST;
    }

    if (rc == NGX_BUSY && q && q->halted) {
        return ngx_http_xet_error(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                  "server_halted",
                                  "the server was halted; send the request "
                                  "again");
    }

    return ngx_http_xet_error_status(r, ngx_http_xet_query_status(rc,
                                                             XET_DATABASE));
}


void
ngx_http_xet_query_answer(ngx_http_request_t *r, ngx_int_t rc,
    ngx_int_t (*rows)(ngx_http_request_t *r), const char *code,
    const char *missing)
{
    if (rc == NGX_OK) {
        rc = rows(r);

        if (rc == NGX_AGAIN) {
            return;
        }

    } else if (rc == NGX_DECLINED && code) {
        rc = ngx_http_xet_error(r, NGX_HTTP_NOT_FOUND, code, missing);

    } else {
        rc = ngx_http_xet_query_error(r, rc);
    }

    ngx_http_finalize_request(r, rc);
}


void
ngx_http_xet_query_failed(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_finalize_request(r, ngx_http_xet_query_error(r, rc));
}


ngx_int_t
ngx_http_xet_query_wait(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc != NGX_AGAIN) {
        return ngx_http_xet_query_error(r, rc);
    }

    r->main->count++;
    r->read_event_handler = ngx_http_test_reading;

    return NGX_DONE;
}


ngx_int_t
ngx_http_xet_query_asked(ngx_http_request_t *r, ngx_int_t rc)
{
    return (rc == NGX_AGAIN) ? NGX_AGAIN : ngx_http_xet_query_error(r, rc);
}


ngx_uint_t
ngx_http_xet_query_rows(ngx_http_xet_query_t *q)
{
    return ngx_http_xet_pg_rows(q->res);
}


int64_t
ngx_http_xet_query_number(ngx_http_request_t *r)
{
    return ngx_http_xet_pg_int(ngx_http_xet_ctx_of(r)->query->res, 0, 0);
}
