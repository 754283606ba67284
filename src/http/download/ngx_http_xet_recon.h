
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
 * The one range of the request's Range header; want->end is
 * NGX_MAX_OFF_T_VALUE for an open range and without the header.
 * XET_RANGE_SYNTAX, also for a suffix range; XET_RANGE_COUNT for several
 * ranges; XET_RANGE_PAST_END.
 */
xet_status_t ngx_http_xet_recon_range(ngx_http_request_t *r,
    xet_range_t *want);

/*
 * Sends the reconstruction of bytes [want->start, want->end) of a file, in the
 * version of the route.  want->end may be past the end of the file; for an
 * empty range the answer is empty, and no file is looked up.  file and want
 * are copied.
 *
 * NGX_AGAIN: the request will be finalized later; any other code is for
 * ngx_http_finalize_request().
 */
ngx_int_t ngx_http_xet_recon_send(ngx_http_request_t *r,
    const xet_hash_t *file, const xet_range_t *want);


#endif /* _NGX_HTTP_XET_RECON_H_INCLUDED_ */
