
/*
 * The table of statements.
 */

#include "ngx_http_xet_query_send.h"


#define XET_STATEMENT(name, params, sql)  { #name, sql, params },


const ngx_http_xet_pg_stmt_t  ngx_http_xet_query_stmts[] = {
#include "statements.def"
    { NULL, NULL, 0 }
};
