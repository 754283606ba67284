
/*
 * The statements and their numbers, of statements.def.
 */

#ifndef _NGX_HTTP_XET_QUERY_STMT_H_INCLUDED_
#define _NGX_HTTP_XET_QUERY_STMT_H_INCLUDED_


#include "ngx_http_xet_pg_setup.h"


#define XET_ROWS(name, params, columns)                                       \
    XET_STATEMENT(name, params, "SELECT " columns " FROM xet." #name          \
                  "(" NGX_HTTP_XET_STMT_##params ")")
#define XET_ALL(name, params, columns)                                        \
    XET_STATEMENT(name##_all, params, "SELECT " columns " FROM xet." #name    \
                  "(" NGX_HTTP_XET_STMT_##params ", NULL)")
#define XET_VALUE(name, params)                                               \
    XET_STATEMENT(name, params, "SELECT xet." #name                           \
                  "(" NGX_HTTP_XET_STMT_##params ")")
#define XET_TEXT(name, params, text)  XET_STATEMENT(name, params, text)


#define NGX_HTTP_XET_STMT_0   ""
#define NGX_HTTP_XET_STMT_1   "$1"
#define NGX_HTTP_XET_STMT_2   "$1, $2"
#define NGX_HTTP_XET_STMT_3   "$1, $2, $3"
#define NGX_HTTP_XET_STMT_4   "$1, $2, $3, $4"
#define NGX_HTTP_XET_STMT_6   NGX_HTTP_XET_STMT_4 ", $5, $6"
#define NGX_HTTP_XET_STMT_7   NGX_HTTP_XET_STMT_6 ", $7"
#define NGX_HTTP_XET_STMT_11  NGX_HTTP_XET_STMT_7 ", $8, $9, $10, $11"
#define NGX_HTTP_XET_STMT_15  NGX_HTTP_XET_STMT_11 ", $12, $13, $14, $15"
#define NGX_HTTP_XET_STMT_17  NGX_HTTP_XET_STMT_15 ", $16, $17"


#define XET_STATEMENT(name, params, sql)  ngx_http_xet_stmt_##name,

typedef enum {
#include "statements.def"
    ngx_http_xet_stmt_none
} ngx_http_xet_stmt_e;

#undef XET_STATEMENT


/* By number; the last element is no statement and has no name. */
extern const ngx_http_xet_pg_stmt_t  ngx_http_xet_query_stmts[];


#endif /* _NGX_HTTP_XET_QUERY_STMT_H_INCLUDED_ */
