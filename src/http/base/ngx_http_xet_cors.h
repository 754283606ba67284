
/*
 * Requests of browsers from other origins.
 */

#ifndef _NGX_HTTP_XET_CORS_H_INCLUDED_
#define _NGX_HTTP_XET_CORS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Adds the CORS headers for the origin that "xet_cors" gives to whatever is
 * answered, unless they are there already.  NGX_OK, NGX_DECLINED when
 * "xet_cors" is off or gives no origin for the request, NGX_ERROR.
 */
ngx_int_t ngx_http_xet_cors(ngx_http_request_t *r);

/* Answers a preflight request, after ngx_http_xet_cors() for it. */
ngx_int_t ngx_http_xet_cors_preflight(ngx_http_request_t *r);


#endif /* _NGX_HTTP_XET_CORS_H_INCLUDED_ */
