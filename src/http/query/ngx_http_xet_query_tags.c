
/*
 * Tags for copies: another block of them when few are left.  One question at a
 * time; a worker that exits does not ask.
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
