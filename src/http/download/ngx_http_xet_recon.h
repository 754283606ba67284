
/*
 * Reconstructions: which ranges of which xorbs make up a byte range of a file.
 */

#ifndef _NGX_HTTP_XET_RECON_H_INCLUDED_
#define _NGX_HTTP_XET_RECON_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "xet.h"


/*
 * The Range header of the request; up to NGX_MAX_OFF_T_VALUE where it is open
 * or there is none.  XET_RANGE_SYNTAX, XET_RANGE_COUNT, XET_RANGE_PAST_END.
 */
xet_status_t ngx_http_xet_recon_range(ngx_http_request_t *r,
    xet_range_t *want);

/*
 * Sends the reconstruction of bytes [want->start, want->end) of a file, in the
 * version of the route; the end may be past the file's, an empty range is of
 * no file at all.  file and want are copied.
 *
 * NGX_AGAIN: the request will be finalized later; otherwise what to finalize
 * it with.
 */
ngx_int_t ngx_http_xet_recon_send(ngx_http_request_t *r,
    const xet_hash_t *file, const xet_range_t *want);


#endif /* _NGX_HTTP_XET_RECON_H_INCLUDED_ */
