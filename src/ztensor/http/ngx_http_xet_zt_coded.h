
/*
 * The decoded form of a compressed component, left to the client to decode.
 */

#ifndef _NGX_HTTP_XET_ZT_CODED_H_INCLUDED_
#define _NGX_HTTP_XET_ZT_CODED_H_INCLUDED_


#include "ngx_http_xet_zt_component.h"


/*
 * Whether the client takes zstd as a coding, and the component is one to be
 * looked at for that.
 */
ngx_uint_t ngx_http_xet_zt_coded_wanted(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);

/*
 * Reads all frames, and sends them as they are, with "Content-Encoding: zstd",
 * if every one can be decoded with the window that RFC 9659 allows; else calls
 * otherwise.  As a handler of components returns; etag is of the coded form,
 * and lives as long as the request.
 */
ngx_int_t ngx_http_xet_zt_coded_send(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c, ngx_str_t *etag,
    ngx_http_xet_zt_component_pt otherwise);


#endif /* _NGX_HTTP_XET_ZT_CODED_H_INCLUDED_ */
