
/*
 * Contexts of requests, and data that lives as long as a request.
 */

#include "ngx_http_xet.h"


/*
 * Returns the context of a request; the first call creates it.  Returns NULL
 * if out of memory.
 */

ngx_http_xet_ctx_t *
ngx_http_xet_ctx(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (ctx == NULL) {
        ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_ctx_t)
                                   + sizeof(ngx_http_xet_task_t));
        if (ctx == NULL) {
            return NULL;
        }

        ctx->task = (ngx_http_xet_task_t *) (ctx + 1);
        ctx->began = ngx_http_xet_clock();

        ngx_http_set_ctx(r, ctx, ngx_http_xet_module);
    }

    return ctx;
}


void
ngx_http_xet_release(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (ctx && ctx->hold) {
        ctx->release(ctx->hold);
    }
}


void *
ngx_http_xet_state(ngx_http_request_t *r, size_t size,
    ngx_pool_cleanup_pt handler)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(r->pool, size);
    if (cln == NULL) {
        return NULL;
    }

    ngx_memzero(cln->data, size);

    cln->handler = handler;

    return cln->data;
}
