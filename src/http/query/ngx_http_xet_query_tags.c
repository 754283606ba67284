
/*
 * Tags for copies: another block of them when few are left, one question at a
 * time, or when there are none, for each request that waits.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"
#include "ngx_http_xet_store.h"


static void ngx_http_xet_query_tags_answered(void *data,
    ngx_http_xet_ask_t *ask, ngx_int_t rc);


static ngx_uint_t  ngx_http_xet_query_tags_asked;


void
ngx_http_xet_query_tags(void)
{
    ngx_http_xet_post_t  *post;

    if (ngx_http_xet_query_tags_asked || !ngx_http_xet_store_tags_few()) {
        return;
    }

    post = ngx_http_xet_query_post_create();

    if (post == NULL) {
        return;
    }

    ngx_http_xet_query_tags_asked = 1;

    if (ngx_http_xet_query_ask(post, ngx_http_xet_stmt_tags_take,
                               ngx_http_xet_query_tags_answered, NULL)
        != NGX_AGAIN)
    {
        ngx_http_xet_query_tags_asked = 0;
    }
}


static void
ngx_http_xet_query_tags_answered(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc)
{
    ngx_http_xet_query_tags_asked = 0;

    if (rc == NGX_OK) {
        ngx_http_xet_store_tags_add((uint32_t) ngx_http_xet_ask_number(ask));
    }
}


ngx_int_t
ngx_http_xet_query_tags_take(ngx_http_request_t *r,
    ngx_http_xet_query_handler_pt handler)
{
    (void) ngx_http_xet_query_params(r);

    return ngx_http_xet_send_tags_take(r, NGX_HTTP_XET_WRITE, handler);
}


void
ngx_http_xet_query_tags_row(ngx_http_request_t *r)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    ngx_http_xet_store_tags_add((uint32_t) ngx_http_xet_pg_int(q->res, 0, 0));
}
