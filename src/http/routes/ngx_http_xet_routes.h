
/*
 * The handlers of the routes, which the router calls.
 */

#ifndef _NGX_HTTP_XET_ROUTES_H_INCLUDED_
#define _NGX_HTTP_XET_ROUTES_H_INCLUDED_


#include "ngx_http_xet.h"


ngx_int_t ngx_http_xet_token_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_xet_reconstruction_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_batch_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_chunk_hashes_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_chunk_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_xorb_post_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_xorb_get_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_xorb_head_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_grant_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_shard_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_file_put_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_file_get_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_file_delete_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_zt_list_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_zt_object_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_zt_data_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_zt_reconstruction_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_zt_verify_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_telemetry_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_health_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);
ngx_int_t ngx_http_xet_live_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx);


#endif /* _NGX_HTTP_XET_ROUTES_H_INCLUDED_ */
