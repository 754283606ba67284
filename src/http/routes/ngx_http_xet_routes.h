
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


/* The content handler of "xet_token". */
ngx_int_t ngx_http_xet_token_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_XET_ROUTES_H_INCLUDED_ */
