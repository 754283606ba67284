
/*
 * Inside of the service pg: a connection becomes a session.
 */

#ifndef _NGX_HTTP_XET_PG_SETUP_H_INCLUDED_
#define _NGX_HTTP_XET_PG_SETUP_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include <libpq-fe.h>


/* A statement, prepared once a session. */

typedef struct {
    const char                *name;
    const char                *sql;
    ngx_uint_t                 params;
} ngx_http_xet_pg_stmt_t;


/*
 * Sends all that makes conn a session in pipeline mode, with the statements of
 * the array prepared, whose last element has no name, and with timeout and
 * locks, in ms, as statement_timeout and lock_timeout.  NGX_ERROR: see
 * PQerrorMessage().
 */
ngx_int_t ngx_http_xet_pg_setup_send(PGconn *conn,
    const ngx_http_xet_pg_stmt_t *stmts, ngx_msec_t timeout,
    ngx_msec_t locks);

/*
 * Takes the results that have come.  NGX_AGAIN: more are to come; NGX_OK: conn
 * is ready; NGX_ERROR: error, of len bytes, says why.
 */
ngx_int_t ngx_http_xet_pg_setup_results(PGconn *conn, char *error, size_t len);


#endif /* _NGX_HTTP_XET_PG_SETUP_H_INCLUDED_ */
