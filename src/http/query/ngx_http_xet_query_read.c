
/*
 * Reads that a standby may answer.
 *
 * A standby is behind: what it has is right, or was right a moment ago, and
 * what it does not have may be there all the same.  So an answer that lacks
 * anything that was asked for is none: the statement is asked again, of the
 * primary, and only what the primary lacks is missing.  The same goes for an
 * answer that was lost, came late, or was in the way of what the standby
 * replays; another standby is asked then before the primary is.
 *
 * The statements of a request go to one standby, whose rows only get newer.
 * Once the primary was asked anything, it is asked everything: what the request
 * has written is seen by what it reads, and no older row meets a newer one.
 *
 * Names of the Hub are another matter: a standby does not lack them, it has
 * what they led to before.  They are read from the primary, so that a client
 * finds what it has just committed, and from a standby only where the primary
 * can't be reached; how old that is is bounded by "lag", as far as the primary
 * was heard of.
 *
 * Whoever finds that rows fit neither each other nor the store asks
 * ngx_http_xet_query_again() before anything is concluded from that.
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
ngx_http_xet_query_read(ngx_http_request_t *r, ngx_http_xet_lane_e lane,
    ngx_http_xet_stmt_e stmt, ngx_http_xet_query_whole_pt whole,
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
        return ngx_http_xet_query_send(r, lane, stmt, handler);
    }

    rc = ngx_http_xet_query_prepare(r, handler);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_http_xet_query_turns(r, stmt);

    q->lane = lane;
    q->stmt = stmt;
    q->whole = whole;
    q->asked = 0;

    if (ngx_http_xet_query_standby(q, n) != NGX_AGAIN) {
        return ngx_http_xet_query_send(r, lane, stmt, handler);
    }

    return NGX_AGAIN;
}


ngx_int_t
ngx_http_xet_query_named(ngx_http_request_t *r, ngx_http_xet_stmt_e stmt,
    ngx_http_xet_query_whole_pt whole, ngx_http_xet_query_handler_pt handler)
{
    ngx_int_t              rc;
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_ctx_of(r)->query;

    if (q->primary || q->reading || ngx_http_xet_standbys_alone()) {
        return ngx_http_xet_query_read(r, NGX_HTTP_XET_READ, stmt, whole,
                                       handler);
    }

    rc = ngx_http_xet_query_prepare(r, handler);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_http_xet_query_turns(r, stmt);

    q->lane = NGX_HTTP_XET_READ;
    q->stmt = stmt;
    q->whole = whole;
    q->asked = 0;

    q->query = ngx_http_xet_lanes_send(NGX_HTTP_XET_READ,
                                       &ngx_http_xet_query_stmts[stmt],
                                       &q->params,
                                       ngx_http_xet_query_named_result, q);

    return q->query ? NGX_AGAIN
                    : ngx_http_xet_query_read(r, NGX_HTTP_XET_READ, stmt,
                                              whole, handler);
}


static void
ngx_http_xet_query_named_result(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_http_xet_query_t *q = data;

    ngx_uint_t  n;

    q->query = NULL;

    /* what has taken too long would take as long elsewhere */

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
    q->query = ngx_http_xet_standbys_send(n, q->lane,
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

    if (rc == NGX_OK && ngx_http_xet_pg_rows(res) && q->whole(q, res)) {

        q->reading = 1;
        q->stale = 1;

        ngx_http_xet_count_at(STANDBY_ANSWERS, q->standby, 1);
        ngx_http_xet_query_result(q, res, rc, sqlstate);
        return;
    }

    if (rc == NGX_OK) {
        reason = NGX_HTTP_XET_AGAIN_MISSING;

    } else if (sqlstate && ngx_http_xet_lanes_conflict(sqlstate)) {
        reason = NGX_HTTP_XET_AGAIN_CONFLICT;

    } else {
        reason = NGX_HTTP_XET_AGAIN_AWAY;

        if (sqlstate == NULL) {
            ngx_http_xet_standbys_doubt(q->standby);
        }
    }

    ngx_http_xet_pg_clear(res);

    ngx_http_xet_query_elsewhere(q, reason);
}


/* A request that has rows of a standby already goes on with the primary. */

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

    q->query = ngx_http_xet_lanes_send(q->lane,
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
