
/*
 * Uploads in a worker that has no tags for copies: one that has just started,
 * and is asked before its first session to PostgreSQL is there.
 *
 *     then      there are tags: the upload goes on at once; else
 *     take      (query)   some are asked for
 *     taken     the upload goes on
 *
 * Whatever else comes of the statement, the upload goes on, and is refused when
 * it needs a tag and there is none.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_upload.h"


struct ngx_http_xet_tags_s {
    ngx_http_xet_tags_pt   next;
    void                  *data;
};


static void ngx_http_xet_tags_taken(ngx_http_request_t *r, ngx_int_t rc);


ngx_int_t
ngx_http_xet_tags_then(ngx_http_request_t *r, ngx_http_xet_tags_pt next,
    void *data)
{
    ngx_int_t             rc;
    ngx_http_xet_ctx_t   *ctx;
    ngx_http_xet_tags_t  *tags;

    if (!ngx_http_xet_store_tags_none()) {
        ngx_http_xet_query_tags();

        return next(r, data);
    }

    tags = ngx_palloc(r->pool, sizeof(ngx_http_xet_tags_t));
    if (tags == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    tags->next = next;
    tags->data = data;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    ctx->tags = tags;

    rc = ngx_http_xet_query_tags_take(r, ngx_http_xet_tags_taken);

    return (rc == NGX_AGAIN) ? ngx_http_xet_query_wait(r, rc) : next(r, data);
}


static void
ngx_http_xet_tags_taken(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_ctx_t   *ctx;
    ngx_http_xet_tags_t  *tags;

    if (rc == NGX_OK) {
        ngx_http_xet_query_tags_row(r);
    }

    ngx_http_xet_query_release(r);

    r->read_event_handler = ngx_http_block_reading;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    tags = ctx->tags;

    ngx_http_finalize_request(r, tags->next(r, tags->data));
}
