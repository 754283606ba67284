
/*
 * The audit record of a request: data that is logged when the request ends.
 *
 * A record is created when the request is known to write, or when reads are
 * logged too ("xet_audit all").  The router, the access checks and the routes
 * fill the record.  The record belongs to the pool of the request and is found
 * among the pool's cleanups.  The context can't hold the record, because nginx
 * drops contexts when a request moves to another location, for example by
 * "error_page".  A request without a record is logged if its location requires
 * that (ngx_http_xet_audit_line.c).
 */

#include "ngx_http_xet.h"


static void ngx_http_xet_audit_cleanup(void *data);


ngx_http_xet_audit_t *
ngx_http_xet_audit_begin(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t       *ctx;
    ngx_pool_cleanup_t       *cln;
    ngx_http_xet_audit_t     *audit;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (xlcf->audit == NGX_HTTP_XET_AUDIT_OFF || r != r->main) {
        return NULL;
    }

    ctx = ngx_http_xet_ctx(r);
    if (ctx == NULL) {
        return NULL;
    }

    audit = ngx_http_xet_audit_find(r);

    if (audit == NULL) {
        cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_xet_audit_t));
        if (cln == NULL) {
            return NULL;
        }

        cln->handler = ngx_http_xet_audit_cleanup;
        audit = cln->data;

        ngx_memzero(audit, sizeof(ngx_http_xet_audit_t));

        audit->mode = xlcf->audit;
    }

    ctx->audit = audit;

    return audit;
}


ngx_http_xet_audit_t *
ngx_http_xet_audit_find(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t  *cln;

    for (cln = r->pool->cleanup; cln; cln = cln->next) {

        if (cln->handler == ngx_http_xet_audit_cleanup) {
            return cln->data;
        }
    }

    return NULL;
}


/* Identifies the record among the cleanups; frees nothing. */

static void
ngx_http_xet_audit_cleanup(void *data)
{
}


ngx_http_xet_audit_t *
ngx_http_xet_audit(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t  *ctx;

    static ngx_http_xet_audit_t  nowhere;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    return (ctx && ctx->audit) ? ctx->audit : &nowhere;
}
