
/*
 * GET zt/{file}/reconstruction: the reconstruction of one component's stored
 * bytes, for Xet clients that fetch them from the xorbs themselves.  A Range
 * header is relative to the component.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_zt_component.h"


static ngx_int_t ngx_http_xet_zt_reconstruction_found(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);


ngx_int_t
ngx_http_xet_zt_reconstruction_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx)
{
    return ngx_http_xet_zt_component(r, 0,
                                     ngx_http_xet_zt_reconstruction_found);
}


static ngx_int_t
ngx_http_xet_zt_reconstruction_found(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    uint64_t             length;
    xet_range_t          want;
    xet_status_t         status;
    ngx_http_xet_ctx_t  *ctx;

    length = c->range.end - c->range.start;

    status = ngx_http_xet_recon_range(r, &want);

    if (status == XET_OK && want.start >= length
        && (length || r->headers_in.range))
    {
        status = XET_RANGE_PAST_END;
    }

    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    want.end = c->range.start + ngx_min(want.end, length);
    want.start += c->range.start;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    return ngx_http_xet_recon_send(r, &ctx->hash, &want);
}
