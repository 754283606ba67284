
/*
 * Inside of query: the way to send a statement.
 */

#ifndef _NGX_HTTP_XET_QUERY_SEND_H_INCLUDED_
#define _NGX_HTTP_XET_QUERY_SEND_H_INCLUDED_


#include "ngx_http_xet_lanes.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_query_stmt.h"


/*
 * Begins the next statement of a request: returns its parameters, none so far,
 * and frees the rows of the previous statement.
 */
ngx_http_xet_params_t *ngx_http_xet_query_params(ngx_http_request_t *r);

/*
 * Adds the repo whose files the request may see as a parameter; SQL NULL for
 * all of the store.
 */
void ngx_http_xet_query_repo(ngx_http_request_t *r, ngx_http_xet_params_t *p);

/*
 * Adds two parameters, the repo and the subject of the request: a statement
 * records or looks up what these have uploaded.  NGX_ERROR without memory.
 */
ngx_int_t ngx_http_xet_query_whose(ngx_http_request_t *r,
    ngx_http_xet_params_t *p);

/*
 * Sends a statement with the parameters of the request in one of the lanes.
 * Returns as the functions of ngx_http_xet_query.h do.
 */
ngx_int_t ngx_http_xet_query_send(ngx_http_request_t *r,
    ngx_http_xet_lane_e lane, ngx_http_xet_stmt_e stmt,
    ngx_http_xet_query_handler_pt handler);


#define XET_STATEMENT(name, params, sql)                                      \
                                                                              \
static ngx_inline ngx_int_t                                                   \
ngx_http_xet_send_##name(ngx_http_request_t *r, ngx_http_xet_lane_e lane,     \
    ngx_http_xet_query_handler_pt handler)                                    \
{                                                                             \
    return ngx_http_xet_query_send(r, lane, ngx_http_xet_stmt_##name,         \
                                   handler);                                  \
}                                                                             \
                                                                              \
static ngx_inline ngx_http_xet_pg_query_t *                                   \
ngx_http_xet_post_##name(ngx_http_xet_params_t *p,                            \
    ngx_http_xet_pg_handler_pt handler, void *data)                           \
{                                                                             \
    return ngx_http_xet_lanes_send(NGX_HTTP_XET_WRITE,                        \
               &ngx_http_xet_query_stmts[ngx_http_xet_stmt_##name], p,        \
               handler, data);                                                \
}

#include "statements.def"

#undef XET_STATEMENT


/*
 * Called when the request dies before the statement for q->copy is answered.
 * Returns 1 when the statement goes on with a handler of its own, which removes
 * the copy if no row names it, and 0 when the caller has to detach it.
 */
ngx_uint_t ngx_http_xet_query_xorb_left(ngx_http_xet_query_t *q);


#endif /* _NGX_HTTP_XET_QUERY_SEND_H_INCLUDED_ */
