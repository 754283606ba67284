
/*
 * Inside of the service pg: a connection becomes a session.
 */

#ifndef _NGX_HTTP_XET_PG_SETUP_H_INCLUDED_
#define _NGX_HTTP_XET_PG_SETUP_H_INCLUDED_


#include "ngx_http_xet_pg.h"


/*
 * Sends all that makes conn a session in pipeline mode, whose statements end
 * after the time given.  NGX_ERROR: see PQerrorMessage().
 */
ngx_int_t ngx_http_xet_pg_setup_send(PGconn *conn, ngx_msec_t timeout,
    ngx_msec_t locks);

/*
 * Takes what has come.  NGX_AGAIN: that was not all; NGX_OK: conn is ready;
 * NGX_ERROR: error says why.
 */
ngx_int_t ngx_http_xet_pg_setup_results(PGconn *conn, char *error, size_t len);


#endif /* _NGX_HTTP_XET_PG_SETUP_H_INCLUDED_ */
