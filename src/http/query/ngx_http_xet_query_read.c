
/*
 * Reads that a standby may execute.
 *
 * A standby lags behind the primary: its rows are correct, or were correct a
 * moment ago, but new rows may be missing.  If the result of a standby is
 * incomplete, the statement is sent to the primary, whose result is final.  If
 * the result of a standby is lost or late, or WAL replay has canceled the
 * statement, another standby is tried before the primary.
 *
 * All statements of a request use the same standby, whose rows only get newer.
 * After the first statement on the primary, all later statements of the
 * request use the primary too.  So a request sees its own writes, and never
 * combines older with newer rows.
 *
 * A lagging standby would return an old value for a name of the Hub, and the
 * result would look complete.  So names are read from the primary, and clients
 * see their own commits.  A standby is used only if the primary is unreachable;
 * "lag" limits the age of its rows, as far as the age is known.
 *
 * A caller that finds rows inconsistent with each other or with the store must
 * call ngx_http_xet_query_again() before it reports an error.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


static ngx_int_t ngx_http_xet_query_standby(ngx_http_xet_query_t *q,
    ngx_uint_t n);
static void ngx_http_xet_query_standby_result(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static void ngx_http_xet_query_named_result(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static void ngx_http_xet_query_elsewhere(ngx_http_xet_query_t *q,
    ngx_http_xet_again_e reason);


ngx_int_t
ngx_http_xet_query_read(ngx_http_request_t *r, ngx_http_xet_pg_pool_e pg_pool,
    ngx_http_xet_stmt_e stmt, ngx_http_xet_query_complete_pt complete,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_int_t              rc;
    ngx_uint_t             n;
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_ctx_of(r)->query;

    n = NGX_HTTP_XET_NO_STANDBY;

    if (!q->primary) {

        if (!q->reading) {
            n = ngx_http_xet_standbys_nearest(0);

        } else if (ngx_http_xet_standbys_fit(q->standby)) {
            n = q->standby;
        }
    }

    if (n == NGX_HTTP_XET_NO_STANDBY) {
        return ngx_http_xet_query_send(r, pg_pool, stmt, handler);
    }

    rc = ngx_http_xet_query_prepare(r, handler);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_http_xet_query_turns(r, stmt);

    q->pg_pool = pg_pool;
    q->stmt = stmt;
    q->complete = complete;
    q->asked = 0;

    if (ngx_http_xet_query_standby(q, n) != NGX_AGAIN) {
        return ngx_http_xet_query_send(r, pg_pool, stmt, handler);
    }

    return NGX_AGAIN;
}


ngx_int_t
ngx_http_xet_query_named(ngx_http_request_t *r, ngx_http_xet_stmt_e stmt,
    ngx_http_xet_query_complete_pt complete, ngx_http_xet_query_handler_pt
    handler)
{
    ngx_int_t              rc;
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_ctx_of(r)->query;

    if (q->primary || q->reading || ngx_http_xet_standbys_alone()) {
        return ngx_http_xet_query_read(r, NGX_HTTP_XET_READ, stmt, complete,
                                       handler);
    }

    rc = ngx_http_xet_query_prepare(r, handler);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_http_xet_query_turns(r, stmt);

    q->pg_pool = NGX_HTTP_XET_READ;
    q->stmt = stmt;
    q->complete = complete;
    q->asked = 0;

    q->query = ngx_http_xet_pg_pools_send(NGX_HTTP_XET_READ,
                                          &ngx_http_xet_query_stmts[stmt],
                                          &q->params,
                                          ngx_http_xet_query_named_result, q);

    return q->query ? NGX_AGAIN
                    : ngx_http_xet_query_read(r, NGX_HTTP_XET_READ, stmt,
                                              complete, handler);
}


static void
ngx_http_xet_query_named_result(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_http_xet_query_t *q = data;

    ngx_uint_t  n;

    q->query = NULL;

    /* a statement that took too long would also be slow on a standby */

    if (rc == NGX_BUSY
        && (sqlstate == NULL
            || ngx_strcmp(sqlstate, NGX_HTTP_XET_PG_CANCELLED) != 0))
    {
        n = ngx_http_xet_standbys_nearest(0);

        if (n != NGX_HTTP_XET_NO_STANDBY
            && ngx_http_xet_query_standby(q, n) == NGX_AGAIN)
        {
            ngx_http_xet_pg_clear(res);
            return;
        }
    }

    q->primary = 1;

    ngx_http_xet_query_result(q, res, rc, sqlstate);
}


static ngx_int_t
ngx_http_xet_query_standby(ngx_http_xet_query_t *q, ngx_uint_t n)
{
    q->query = ngx_http_xet_standbys_send(n, q->pg_pool,
                                          &ngx_http_xet_query_stmts[q->stmt],
                                          &q->params,
                                          ngx_http_xet_query_standby_result,
                                          q);
    if (q->query == NULL) {
        return NGX_BUSY;
    }

    q->standby = n;
    q->asked |= (ngx_uint_t) 1 << n;

    return NGX_AGAIN;
}


static void
ngx_http_xet_query_standby_result(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_http_xet_query_t *q = data;

    ngx_http_xet_again_e  reason;

    q->query = NULL;

    if (rc == NGX_OK && ngx_http_xet_pg_rows(res) && q->complete(q, res)) {

        q->reading = 1;
        q->stale = 1;

        ngx_http_xet_count_at(STANDBY_ANSWERS, q->standby, 1);
        ngx_http_xet_query_result(q, res, rc, sqlstate);
        return;
    }

    if (rc == NGX_OK) {
        reason = NGX_HTTP_XET_AGAIN_MISSING;

    } else if (sqlstate && ngx_http_xet_pg_pools_conflict(sqlstate)) {
        reason = NGX_HTTP_XET_AGAIN_CONFLICT;

    } else {
        reason = NGX_HTTP_XET_AGAIN_AWAY;

        if (sqlstate == NULL) {
            ngx_http_xet_standbys_suspect(q->standby);
        }
    }

    ngx_http_xet_pg_clear(res);

    ngx_http_xet_query_elsewhere(q, reason);
}


/*
 * Sends the statement to another standby if the result was lost or canceled,
 * and the request has no rows of a standby yet; else sends it to the primary.
 */

static void
ngx_http_xet_query_elsewhere(ngx_http_xet_query_t *q,
    ngx_http_xet_again_e reason)
{
    ngx_uint_t  n;

    ngx_http_xet_count_at(STANDBY_AGAIN, reason, 1);

    if (reason != NGX_HTTP_XET_AGAIN_MISSING && !q->reading) {
        n = ngx_http_xet_standbys_nearest(q->asked);

        if (n != NGX_HTTP_XET_NO_STANDBY
            && ngx_http_xet_query_standby(q, n) == NGX_AGAIN)
        {
            return;
        }
    }

    q->primary = 1;

    q->query = ngx_http_xet_pg_pools_send(q->pg_pool,
                                          &ngx_http_xet_query_stmts[q->stmt],
                                          &q->params, ngx_http_xet_query_result,
                                          q);
    if (q->query == NULL) {
        ngx_http_xet_query_result(q, NULL, NGX_BUSY, NULL);
    }
}


void
ngx_http_xet_query_primary(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_of(r)->query->primary = 1;
}


ngx_uint_t
ngx_http_xet_query_again(ngx_http_request_t *r)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_ctx_of(r)->query;

    q->primary = 1;

    if (!q->stale) {
        return 0;
    }

    q->stale = 0;

    ngx_http_xet_count_at(STANDBY_AGAIN, NGX_HTTP_XET_AGAIN_CHANGED, 1);

    return 1;
}
