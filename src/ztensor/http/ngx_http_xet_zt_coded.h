
/*
 * The decoded form of a compressed component, left to the client to decode.
 */

#ifndef _NGX_HTTP_XET_ZT_CODED_H_INCLUDED_
#define _NGX_HTTP_XET_ZT_CODED_H_INCLUDED_


#include "ngx_http_xet_zt_component.h"


/*
 * Whether the client accepts zstd as a content coding, and the component may
 * suit: its encoding is known, and it has stored bytes, but no more than the
 * limit "decode".
 */
ngx_uint_t ngx_http_xet_zt_coded_wanted(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);

/*
 * Reads all frames, and sends them as they are, with "Content-Encoding: zstd",
 * if every frame can be decoded with the window that RFC 9659 allows and none
 * needs a dictionary; else calls otherwise.  Returns what a handler of
 * components returns.  etag is that of the coded form; it is copied, its text
 * must live as long as the request.
 */
ngx_int_t ngx_http_xet_zt_coded_send(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c, ngx_str_t *etag,
    ngx_http_xet_zt_component_pt otherwise);


#endif /* _NGX_HTTP_XET_ZT_CODED_H_INCLUDED_ */
