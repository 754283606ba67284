
/*
 * Inside of the service pg: what a session prepares.
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


#endif /* _NGX_HTTP_XET_PG_SETUP_H_INCLUDED_ */
