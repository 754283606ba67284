
/*
 * Inside of the service pg: a session from nothing to ready, in a thread.
 */

#ifndef _NGX_HTTP_XET_PG_CONNECT_H_INCLUDED_
#define _NGX_HTTP_XET_PG_CONNECT_H_INCLUDED_


#include "ngx_http_xet_pg.h"


#define NGX_HTTP_XET_PG_ERROR_LEN  512


/* Both strings end with a zero byte. */

typedef struct {
    ngx_str_t   conninfo;
    ngx_str_t   timeout;                       /* seconds, to connect */
    ngx_str_t  *store;
    PGconn     *conn;                          /* NULL: see error */
    u_char      error[NGX_HTTP_XET_PG_ERROR_LEN];
} ngx_http_xet_pg_connect_ctx_t;


/* Blocks.  conn is in pipeline mode, with all statements prepared. */
void ngx_http_xet_pg_connect_job(void *data, ngx_log_t *log);


#endif /* _NGX_HTTP_XET_PG_CONNECT_H_INCLUDED_ */
