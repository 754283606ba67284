
/*
 * GET reconstructions/{file}, v1 and v2.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"


ngx_int_t
ngx_http_xet_reconstruction_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx)
{
    ngx_int_t     rc;
    xet_range_t   want;
    xet_status_t  status;

    status = ngx_http_xet_recon_range(r, &want);

    /* the empty file is everywhere, registered or not */

    if (status == XET_OK && xet_hash_is_zero(&ctx->hash)) {

        if (want.start) {
            status = XET_RANGE_PAST_END;
        }

        want.end = 0;
    }

    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    rc = ngx_http_xet_recon_send(r, &ctx->hash, &want);

    return (rc == NGX_AGAIN) ? ngx_http_xet_query_wait(r, rc) : rc;
}
