
/*
 * A connection becomes a session: settings, and the preparing of all
 * statements.  They are one batch of a pipeline, so one round trip, and the
 * event loop sends them as it sends any statement.
 *
 * Every statement of ours finds its rows by an index.  Sessions keep plans,
 * also those of foreign keys, and a plan made while a table was tiny would read
 * the whole table for each row long after it has grown: hence no sequential
 * scans.  A plan that has no other way than such a scan gets a penalty, because
 * of which PostgreSQL would plan the statement anew each time, and that takes
 * longer than most statements: hence generic plans.  And rows that are asked
 * for by windows come in the order of their index, while a bitmap scan would
 * read and sort all remaining rows for each window.
 *
 * A heal and the commit of a shard lock each other out, and each must see what
 * the other one has committed meanwhile: read committed.
 *
 * statement_timeout ends a statement that nobody waits for any more.  While
 * such a statement waits for a lock, PostgreSQL would not notice that its
 * session was given up: client_connection_check_interval makes it look.
 *
 * lock_timeout is for locks that are held for long, as by a heal of a xorb that
 * many files have: a few requests that wait for such a lock would otherwise
 * occupy all sessions as long as the lock is held.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg_session.h"


static const char  ngx_http_xet_pg_setup_sql[] =
    "SELECT set_config('enable_seqscan', 'off', false),"
    "       set_config('enable_bitmapscan', 'off', false),"
    "       set_config('plan_cache_mode', 'force_generic_plan', false),"
    "       set_config('default_transaction_isolation', 'read committed',"
    "                  false),"
    "       set_config('client_connection_check_interval', '1s', false),"
    "       set_config('statement_timeout', $1, false),"
    "       set_config('lock_timeout', $2, false)";


ngx_int_t
ngx_http_xet_pg_setup_send(PGconn *conn, const ngx_http_xet_pg_stmt_t *stmts,
    ngx_msec_t timeout, ngx_msec_t locks)
{
    char                           texts[2][NGX_TIME_T_LEN + 1];
    const char                    *values[2];
    const ngx_http_xet_pg_stmt_t  *stmt;

    *ngx_sprintf((u_char *) texts[0], "%M", timeout) = '\0';
    *ngx_sprintf((u_char *) texts[1], "%M", locks) = '\0';

    values[0] = texts[0];
    values[1] = texts[1];

    if (PQsetnonblocking(conn, 1) != 0 || PQenterPipelineMode(conn) != 1
        || PQsendQueryParams(conn, ngx_http_xet_pg_setup_sql, 2, NULL, values,
                             NULL, NULL, 0)
           != 1)
    {
        return NGX_ERROR;
    }

    for (stmt = stmts; stmt->name; stmt++) {

        if (PQsendPrepare(conn, stmt->name, stmt->sql, 0, NULL) != 1) {
            return NGX_ERROR;
        }
    }

    return (PQpipelineSync(conn) == 1) ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_xet_pg_setup_results(PGconn *conn, char *error, size_t len)
{
    PGresult        *res;
    ngx_uint_t       nulls;
    ExecStatusType   status;

    nulls = 0;

    while (!PQisBusy(conn)) {

        res = PQgetResult(conn);

        if (res == NULL) {

            /* one NULL ends a result; a dead connection gives only NULLs */

            if (PQstatus(conn) == CONNECTION_BAD) {
                ngx_http_xet_pg_text(error, len, PQerrorMessage(conn));
                return NGX_ERROR;
            }

            if (nulls++) {
                break;
            }

            continue;
        }

        nulls = 0;

        status = PQresultStatus(res);

        if (status == PGRES_PIPELINE_SYNC) {
            PQclear(res);
            return NGX_OK;
        }

        if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
            ngx_http_xet_pg_text(error, len, PQresultErrorMessage(res));
            PQclear(res);
            return NGX_ERROR;
        }

        PQclear(res);
    }

    return NGX_AGAIN;
}
