
/*
 * The one statement that a request may have in flight.
 *
 * The rows of a statement stay in the query until the next statement, a
 * release, or the end of the request.  A request that dies detaches its
 * statement: PostgreSQL finishes it and the result is dropped.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


static void ngx_http_xet_query_result(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static void ngx_http_xet_query_cleanup(void *data);
static void ngx_http_xet_query_pool_cleanup(void *data);


ngx_http_xet_params_t *
ngx_http_xet_query_params(ngx_http_request_t *r)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    ngx_http_xet_query_release(r);
    ngx_http_xet_params_init(&q->params);

    return &q->params;
}


ngx_int_t
ngx_http_xet_query_send(ngx_http_request_t *r, ngx_http_xet_lane_e lane,
    ngx_http_xet_stmt_e stmt, ngx_http_xet_query_handler_pt handler)
{
    ngx_http_cleanup_t    *cln;
    ngx_pool_cleanup_t    *pcln;
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    if (!q->cleanup) {

        /* a request that dies detaches; destroying its pool frees the rows */

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

    q->query = ngx_http_xet_lanes_send(lane, &ngx_http_xet_query_stmts[stmt],
                                       &q->params, ngx_http_xet_query_result,
                                       q);
    if (q->query == NULL) {
        return NGX_BUSY;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet query: \"%s\"", ngx_http_xet_query_stmts[stmt].name);

    return NGX_AGAIN;
}


static void
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

    if (q->left == NULL || !q->left(q)) {
        ngx_http_xet_lanes_detach(q->query);
    }

    q->query = NULL;
}


static void
ngx_http_xet_query_pool_cleanup(void *data)
{
    ngx_http_xet_query_t  *q = data;

    if (q->res) {
        ngx_http_xet_pg_clear(q->res);
        q->res = NULL;
    }
}


void
ngx_http_xet_query_release(ngx_http_request_t *r)
{
    ngx_http_xet_query_pool_cleanup(ngx_http_xet_query_get(r));
}


void
ngx_http_xet_query_repo(ngx_http_request_t *r, ngx_http_xet_params_t *p)
{
    ngx_str_t  *repo;

    repo = ngx_http_xet_repo(r);

    if (repo) {
        ngx_http_xet_params_bytes(p, repo->data, repo->len);

    } else {
        ngx_http_xet_params_null(p);
    }
}


ngx_int_t
ngx_http_xet_query_whose(ngx_http_request_t *r, ngx_http_xet_params_t *p)
{
    ngx_str_t  subject;

    ngx_http_xet_query_repo(r, p);

    subject = ngx_http_xet_subject(r);

    if (subject.data == NULL) {
        return NGX_ERROR;
    }

    if (subject.len) {
        ngx_http_xet_params_bytes(p, subject.data, subject.len);

    } else {
        ngx_http_xet_params_null(p);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_query_ping(ngx_http_request_t *r,
    ngx_http_xet_query_handler_pt handler)
{
    (void) ngx_http_xet_query_params(r);

    return ngx_http_xet_send_ping(r, NGX_HTTP_XET_PING, handler);
}
