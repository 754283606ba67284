
/*
 * The decoded form of a compressed component, as an answer.
 */

#ifndef _NGX_HTTP_XET_ZT_DECODE_H_INCLUDED_
#define _NGX_HTTP_XET_ZT_DECODE_H_INCLUDED_


#include "ngx_http_xet_zt_component.h"


/*
 * Whether the component may be sent, as far as its description tells: XET_OK,
 * or XET_ZT_DECODE, XET_ZT_DECODE_SIZE, XET_ZT_ZSTD.
 */
xet_status_t ngx_http_xet_zt_decode_check(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);

/*
 * Sends the component, which was checked; all headers but those of type,
 * length and ranges are set, and the conditions hold.  Ranges of the request
 * are not heeded.  What is up to 1 MiB, stored and decoded, is decoded before
 * anything is sent, so damage is 422; of more that holds for the first 256
 * KiB, after which damage cuts the connection.
 *
 * Memory: both forms of a small one; else a piece of each, the decoder's
 * window and its state.
 *
 * As a handler of components returns.
 */
ngx_int_t ngx_http_xet_zt_decode_send(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);


#endif /* _NGX_HTTP_XET_ZT_DECODE_H_INCLUDED_ */
