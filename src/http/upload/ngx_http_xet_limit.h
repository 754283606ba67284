
/*
 * Bounds of uploads: how many somebody has at a time, and how many bytes in a
 * while.
 */

#ifndef _NGX_HTTP_XET_LIMIT_H_INCLUDED_
#define _NGX_HTTP_XET_LIMIT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Counts the request as an upload until it is answered or ends, in the zone of
 * its location.  NGX_DECLINED: the upload is allowed; any other code: it was
 * refused, and the code is for ngx_http_finalize_request().
 */
ngx_int_t ngx_http_xet_limit_upload(ngx_http_request_t *r);


#endif /* _NGX_HTTP_XET_LIMIT_H_INCLUDED_ */
