
/*
 * Limits how many uploads a client may run at once, and how many bytes it may
 * send in a period.  A rejected upload gets status 429, after which clients
 * retry.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_upload.h"


struct ngx_http_xet_hold_s {
    ngx_http_xet_limit_t       *limit;
    ngx_http_xet_limit_slot_t  *slot;          /* NULL: rejected or released */
    ngx_http_xet_ctx_t         *ctx;
};


static uint64_t ngx_http_xet_limit_announced(ngx_http_request_t *r);
static void ngx_http_xet_limit_release(void *data);
static ngx_int_t ngx_http_xet_limit_refuse(ngx_http_request_t *r,
    ngx_int_t rc, uint64_t wait);


ngx_int_t
ngx_http_xet_limit_upload(ngx_http_request_t *r)
{
    uint64_t                  wait;
    ngx_int_t                 rc;
    ngx_str_t                 key;
    ngx_http_xet_ctx_t       *ctx;
    ngx_http_xet_limit_t     *limit;
    ngx_http_xet_loc_conf_t  *xlcf;
    ngx_http_xet_hold_t      *hold;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    limit = xlcf->upload_limit;

    if (limit == NULL) {
        return NGX_DECLINED;
    }

    if (ngx_http_complex_value(r, &limit->key, &key) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (key.len == 0) {
        return NGX_DECLINED;
    }

    hold = ngx_http_xet_state(r, sizeof(ngx_http_xet_hold_t),
                              ngx_http_xet_limit_release);
    if (hold == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    hold->limit = limit;
    hold->ctx = ctx;

    ctx->hold = hold;
    ctx->release = ngx_http_xet_limit_release;

    rc = ngx_http_xet_limit_zone_take(limit, &key,
                                      ngx_http_xet_limit_announced(r),
                                      &hold->slot, &wait);

    return (rc == NGX_OK) ? NGX_DECLINED
                          : ngx_http_xet_limit_refuse(r, rc, wait);
}


/*
 * Returns the number of bytes that an upload reserves: its Content-Length or,
 * without one, the "client_max_body_size" of the location.  If that is 0, which
 * means unlimited, no bytes are reserved.
 */

static uint64_t
ngx_http_xet_limit_announced(ngx_http_request_t *r)
{
    ngx_http_core_loc_conf_t  *clcf;

    if (r->headers_in.content_length_n >= 0) {
        return (uint64_t) r->headers_in.content_length_n;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    return (uint64_t) clcf->client_max_body_size;
}


static void
ngx_http_xet_limit_release(void *data)
{
    ngx_http_xet_hold_t *hold = data;

    if (hold->slot) {
        ngx_http_xet_limit_zone_give(hold->limit, hold->slot,
                                     ngx_http_xet_body_received(hold->ctx)
                                     + hold->ctx->worth);
        hold->slot = NULL;
    }
}


static ngx_int_t
ngx_http_xet_limit_refuse(ngx_http_request_t *r, ngx_int_t rc, uint64_t wait)
{
    switch (rc) {

    case NGX_BUSY:
        return ngx_http_xet_error(r, NGX_HTTP_TOO_MANY_REQUESTS,
                                  "too_many_uploads",
                                  "too many concurrent uploads");

    case NGX_DECLINED:
        return ngx_http_xet_error_more(r,
                                       .status = NGX_HTTP_TOO_MANY_REQUESTS,
                                       .code = "too_many_bytes",
                                       .message = "too many bytes uploaded "
                                                  "recently; retry later",
                                       .after = (time_t) ((wait + 999)
                                                          / 1000));

    default: /* NGX_ERROR */
        return ngx_http_xet_error(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                  "overloaded", "too many clients are "
                                                "uploading; retry later");
    }
}
