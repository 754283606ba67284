
/*
 * The copies of xorbs that were read and found whole by this worker, and when.
 */

#ifndef _NGX_HTTP_XET_WHOLE_H_INCLUDED_
#define _NGX_HTTP_XET_WHOLE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "xet.h"


/*
 * Moments are numbers that grow with each call, not times: of two moments the
 * larger one was taken later, also within one turn of the event loop.  All
 * three functions belong to the event loop.
 */

uint64_t ngx_http_xet_whole_moment(void);

/* The copy was whole; moment: taken before it was read. */
void ngx_http_xet_whole_add(const xet_hash_t *xorb, uint32_t tag,
    uint64_t moment);

/* Whether a reading that began after moment has just found the copy whole. */
ngx_uint_t ngx_http_xet_whole_since(const xet_hash_t *xorb, uint32_t tag,
    uint64_t moment);


#endif /* _NGX_HTTP_XET_WHOLE_H_INCLUDED_ */
