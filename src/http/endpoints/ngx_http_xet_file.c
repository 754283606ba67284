
/*
 * HEAD files/{file}.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_output.h"


static void ngx_http_xet_file_head_queried(ngx_http_request_t *r,
    ngx_int_t rc);


ngx_int_t
ngx_http_xet_file_head_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    ngx_int_t  rc;

    if (xet_hash_is_zero(&ctx->hash)) {
        return ngx_http_xet_send_head(r, 0);
    }

    rc = ngx_http_xet_query_file(r, &ctx->hash,
                                 ngx_http_xet_file_head_queried);
    if (rc != NGX_AGAIN) {
        return ngx_http_xet_error_query(r, rc, NULL, NULL);
    }

    r->main->count++;
    r->read_event_handler = ngx_http_test_reading;

    return NGX_DONE;
}


static void
ngx_http_xet_file_head_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc == NGX_OK) {
        rc = ngx_http_xet_send_head(r, (off_t) ngx_http_xet_query_file_size(r));

    } else {
        rc = ngx_http_xet_error_query(r, rc, "file_not_found",
                                      "no such file");
    }

    ngx_http_finalize_request(r, rc);
}
