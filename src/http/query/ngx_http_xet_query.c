
/*
 * Takes a statement from its arguments to the sessions of PostgreSQL: for a
 * request by the way that its row of statements.def names, for anybody else in
 * a pool of its own.
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
        return ngx_http_xet_query_read(r, way->lane, stmt, way->whole, handler);

    case NGX_HTTP_XET_ASK_NAMED:
        return ngx_http_xet_query_named(r, stmt, way->whole, handler);

    default: /* NGX_HTTP_XET_ASK_PRIMARY */
        return ngx_http_xet_query_send(r, way->lane, stmt, handler);
    }
}


ngx_int_t
ngx_http_xet_ask_statement(ngx_http_xet_stmt_e stmt, const void *args,
    ngx_http_xet_asked_pt handler, void *data)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_post_create();
    if (post == NULL) {
        return NGX_BUSY;
    }

    post->failed = (ngx_http_xet_statement_pack(&stmt, args, &post->params,
                                                NULL, post->pool)
                    != NGX_OK);

    return ngx_http_xet_query_ask(post, stmt, handler, data);
}


ngx_int_t
ngx_http_xet_post_statement(ngx_http_xet_stmt_e stmt, const void *args)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_post_create();
    if (post == NULL) {
        return NGX_BUSY;
    }

    post->failed = (ngx_http_xet_statement_pack(&stmt, args, &post->params,
                                                NULL, post->pool)
                    != NGX_OK);

    return ngx_http_xet_query_post(post, stmt);
}
