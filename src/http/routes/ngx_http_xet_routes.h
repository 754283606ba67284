
/*
 * The handlers of the routes, which the router calls.
 */

#ifndef _NGX_HTTP_XET_ROUTES_H_INCLUDED_
#define _NGX_HTTP_XET_ROUTES_H_INCLUDED_


#include "ngx_http_xet.h"


#define XET_ROUTE(name, args, versions, methods, scope, handler)              \
ngx_int_t ngx_http_xet_##handler##_handler(ngx_http_request_t *r,             \
    ngx_http_xet_ctx_t *ctx);

#include "routes.def"

#undef XET_ROUTE


/*
 * ngx_http_xet_xorb.c: what other routes of xorbs need of it.
 */

/* Answers for a xorb that is not there: what it returns finalizes. */
typedef ngx_int_t (*ngx_http_xet_xorb_missing_pt)(ngx_http_request_t *r,
    void *data);

/*
 * Sends the statement of an answer: 200 for a xorb that the client may name
 * without sending it, else what missing says, which is 404 for NULL.  Returns
 * as sending does.
 */
ngx_int_t ngx_http_xet_xorb_ask(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx,
    ngx_http_xet_xorb_missing_pt missing, void *data);

/* The answer to who has sent a xorb, behind ngx_http_xet_keep(). */
void ngx_http_xet_xorb_kept(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new);


/* The content handler of "xet_token". */
ngx_int_t ngx_http_xet_token_handler(ngx_http_request_t *r);

/* Whether a token for that repo is for a repo of a Hub. */
ngx_uint_t ngx_http_xet_token_hub(const ngx_str_t *repo);

/*
 * Answers with a token that has these claims, and with the endpoint that it is
 * for, by the configuration of the location.  As the functions of
 * ngx_http_xet.h that send an answer.
 */
ngx_int_t ngx_http_xet_token_give(ngx_http_request_t *r,
    xet_token_claims_t *claims);

/*
 * Makes both.  NGX_OK; NGX_ABORT when no token can have these claims,
 * NGX_DECLINED when the request names no host, NGX_ERROR.
 */
ngx_int_t ngx_http_xet_token_make(ngx_http_request_t *r,
    xet_token_claims_t *claims, ngx_str_t *url, ngx_str_t *token);

/*
 * That endpoint, without a generation: NGX_DECLINED when the request names no
 * host, NGX_ERROR without memory.
 */
ngx_int_t ngx_http_xet_token_endpoint(ngx_http_request_t *r, ngx_str_t *url);


#endif /* _NGX_HTTP_XET_ROUTES_H_INCLUDED_ */
