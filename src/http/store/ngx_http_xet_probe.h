
/*
 * Whether the store of the worker can be written.
 */

#ifndef _NGX_HTTP_XET_PROBE_H_INCLUDED_
#define _NGX_HTTP_XET_PROBE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "xet.h"


typedef void (*ngx_http_xet_probe_pt)(ngx_http_request_t *r,
    xet_status_t status);


/*
 * XET_OK, or the reason why the store can't be written: XET_STORE_SLOW while
 * the disk does not answer, XET_STORE_FULL, XET_STORE_OTHER, ...;
 * XET_OVERLOADED or XET_NOMEM when no probe could be started.  XET_AGAIN: a
 * probe is under way, and handler is called with its result, unless the
 * request has ended by then.  The result of a probe is valid for a second.
 */
xet_status_t ngx_http_xet_probe(ngx_http_request_t *r,
    ngx_http_xet_probe_pt handler);


#endif /* _NGX_HTTP_XET_PROBE_H_INCLUDED_ */
