
/*
 * Inside of the service pg: what a connection must lead to.
 */

#ifndef _NGX_HTTP_XET_PG_CHECK_H_INCLUDED_
#define _NGX_HTTP_XET_PG_CHECK_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include <libpq-fe.h>


#define NGX_HTTP_XET_SCHEMA  "11"          /* last of sql/NNNN_*.sql */


/*
 * Checks that the database has the schema of this module and describes the
 * folder of the store; gives both an identity where neither has one.  NULL, or
 * what is wrong, a text that lives as long as conn.  Blocks; timeout, in ms, is
 * for each wait for the server.
 */
const char *ngx_http_xet_pg_check_job(PGconn *conn, const ngx_str_t *store,
    ngx_msec_t timeout, ngx_log_t *log);

/*
 * For "nginx -t": makes the same checks and logs a warning, unless PostgreSQL
 * can't be reached, and changes nothing.  Blocks for some seconds at most.
 */
void ngx_http_xet_pg_check_test(ngx_cycle_t *cycle, const char *conninfo,
    const ngx_str_t *store);


#endif /* _NGX_HTTP_XET_PG_CHECK_H_INCLUDED_ */
