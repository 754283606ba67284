
/*
 * Inside of the service pg: what a connection must lead to.
 */

#ifndef _NGX_HTTP_XET_PG_CHECK_H_INCLUDED_
#define _NGX_HTTP_XET_PG_CHECK_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include <libpq-fe.h>


#define NGX_HTTP_XET_SCHEMA  "9"           /* last of sql/NNNN_*.sql */


/*
 * The schema of this module, and the store of this folder: NULL, or what is
 * wrong.  Blocks, for as long as timeout a statement.
 */
const char *ngx_http_xet_pg_check_job(PGconn *conn, const ngx_str_t *store,
    ngx_msec_t timeout, ngx_log_t *log);

/*
 * For "nginx -t": warns of the same where PostgreSQL can be had, and changes
 * nothing.  Blocks for some seconds at most.
 */
void ngx_http_xet_pg_check_test(ngx_cycle_t *cycle, const char *conninfo,
    const ngx_str_t *store);


#endif /* _NGX_HTTP_XET_PG_CHECK_H_INCLUDED_ */
