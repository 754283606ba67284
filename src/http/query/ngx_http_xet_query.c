
/*
 * Sends a statement of a request to PostgreSQL: packs its arguments, and
 * chooses the pool and the servers according to the statement's row in
 * statements.def.  Statements outside of requests have their own functions
 * (ngx_http_xet_query_post.c).
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


ngx_int_t
ngx_http_xet_query_statement(ngx_http_request_t *r, ngx_http_xet_stmt_e stmt,
    const void *args, ngx_http_xet_query_handler_pt handler)
{
    const ngx_http_xet_way_t  *way;

    way = ngx_http_xet_statement_way(stmt);

    if (ngx_http_xet_statement_pack(&stmt, args, ngx_http_xet_query_params(r),
                                    r, NULL)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    switch (way->who) {

    case NGX_HTTP_XET_ASK_ANY:
        return ngx_http_xet_query_read(r, way->pg_pool, stmt, way->complete,
                                       handler);

    case NGX_HTTP_XET_ASK_NAMED:
        return ngx_http_xet_query_named(r, stmt, way->complete, handler);

    default: /* NGX_HTTP_XET_ASK_PRIMARY */
        return ngx_http_xet_query_send(r, way->pg_pool, stmt, handler);
    }
}
