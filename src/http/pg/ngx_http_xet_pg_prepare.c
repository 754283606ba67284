
/*
 * The preparation of the statements of a session, the check of their columns,
 * and their deadlines.  Runs in the event loop.
 *
 * The check parses all statements, one after the other, as the unnamed
 * statement: a database with other functions is detected before the first
 * request, and the session keeps no statement.  A session prepares a statement
 * when it first sends it, in the same round trip: most sessions execute few of
 * the statements, and each prepared statement takes ten kilobytes.  The flag of
 * a statement is set when the preparation is sent, and cleared if it fails.
 * Statements sent in between fail, too: they are sent again, "alone", each with
 * its own sync and a preparation of its own as the unnamed statement.
 *
 * Some statements must run only while their client is waiting ("client" is
 * WAITS in statements.def).  Before such a statement, the session sends
 * xet.in_time(), in the same transaction.  This function raises an error if the
 * two waited in the socket for more than NGX_HTTP_XET_PG_BEGINS.  The deadline
 * is a time of PostgreSQL's clock, which is read when the session starts and
 * with each such statement.  The error contains the current time of that clock;
 * if the client is still waiting, the statement is sent again with a new
 * deadline.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg_session.h"


#define NGX_HTTP_XET_PG_BEGINS  5000           /* deadline for the start, ms */


const char *
ngx_http_xet_pg_columns(const ngx_http_xet_pg_stmt_t *stmt, PGresult *res)
{
    int  i, n;

    if (stmt->columns == NULL) {
        return NULL;
    }

    n = PQnfields(res);

    for (i = 0; i < n && stmt->columns[i].type == PQftype(res, i); i++) {
        /* void */
    }

    if (i < n || stmt->columns[n].type) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "xet: statement \"%s\": column %d has an unexpected "
                      "type", stmt->name, i + 1);

        return "the functions of the schema \"xet\" have another version than "
               "this module; run xet migrate";
    }

    return NULL;
}


/* The preparations precede xet.in_time(), whose error would prevent them. */

int
ngx_http_xet_pg_prepare(ngx_http_xet_pg_t *pg, ngx_http_xet_pg_query_t *q)
{
    u_char  *own, *guard;

    q->parses = q->alone;
    q->guard_parses = q->alone && q->acts;

    if (q->alone) {
        return 1;
    }

    own = &pg->prepared[q->stmt - pg->stmts];
    guard = &pg->prepared[pg->guard - pg->stmts];

    if (!*own) {
        *own = 1;
        q->parses = 1;
        pg->prepares = 1;

        if (ngx_http_xet_pg_prepare_as(pg, q->stmt, q->stmt->name) != 1) {
            return 0;
        }
    }

    if (q->acts && !*guard) {
        *guard = 1;
        q->guard_parses = 1;

        return ngx_http_xet_pg_prepare_as(pg, pg->guard, pg->guard->name);
    }

    return 1;
}


void
ngx_http_xet_pg_unprepare(ngx_http_xet_pg_t *pg, ngx_http_xet_pg_query_t *q)
{
    if (q->alone) {
        return;
    }

    if (q->parses) {
        pg->prepared[q->stmt - pg->stmts] = 0;
    }

    if (q->guard_parses) {
        pg->prepared[pg->guard - pg->stmts] = 0;
    }
}


int
ngx_http_xet_pg_prepare_as(ngx_http_xet_pg_t *pg,
    const ngx_http_xet_pg_stmt_t *stmt, const char *name)
{
    return PQsendPrepare(pg->conn, name, stmt->sql, (int) stmt->params,
                         stmt->types);
}


int
ngx_http_xet_pg_guard(ngx_http_xet_pg_t *pg, ngx_http_xet_pg_query_t *q)
{
    int          length, format;
    uint64_t     until;
    const char  *name, *value;

    q->guarded = q->acts;

    if (!q->guarded) {
        return 1;
    }

    until = (uint64_t) (pg->clock
                        + (ngx_msec_int_t) (ngx_current_msec - pg->clock_at)
                        + NGX_HTTP_XET_PG_BEGINS);
    until = htobe64(until);

    value = (const char *) &until;
    length = sizeof(until);
    format = 1;
    name = pg->guard->name;

    if (q->alone) {
        name = "";

        if (ngx_http_xet_pg_prepare_as(pg, pg->guard, name) != 1) {
            return 0;
        }
    }

    return PQsendQueryPrepared(pg->conn, name, 1, &value, &length,
                               &format, 1);
}


void
ngx_http_xet_pg_clock(ngx_http_xet_pg_t *pg, int64_t clock)
{
    pg->clock = clock;
    pg->clock_at = ngx_current_msec;
}
