
/*
 * The decoded form of a compressed component, as an answer.
 */

#ifndef _NGX_HTTP_XET_ZT_DECODE_H_INCLUDED_
#define _NGX_HTTP_XET_ZT_DECODE_H_INCLUDED_


#include "ngx_http_xet_zt_component.h"


/*
 * Whether a component may be sent, by its description: XET_OK, XET_ZT_DECODE,
 * XET_ZT_DECODE_SIZE, XET_ZT_ZSTD.
 */
xet_status_t ngx_http_xet_zt_decode_check(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);

/*
 * Sends the decoded component; the caller has checked it and the conditions of
 * the request, and has set all headers but those of type and length.  A Range
 * header of the request is ignored.  A component of
 * up to 1 MiB, stored and decoded, is decoded before anything is sent, so
 * invalid zstd is answered with 422; with a larger component that holds for
 * the first 256 KiB, after which an error cuts the connection.
 *
 * Memory: both forms of a small component; else a piece of each form, the
 * decoder's window and its state.
 *
 * Returns what a handler of components returns.
 */
ngx_int_t ngx_http_xet_zt_decode_send(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);


#endif /* _NGX_HTTP_XET_ZT_DECODE_H_INCLUDED_ */
