
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
 * XET_OK, or what is wrong; XET_AGAIN: handler is told of it later, unless the
 * request is gone by then.  The answer is a second old at most.
 */
xet_status_t ngx_http_xet_probe(ngx_http_request_t *r,
    ngx_http_xet_probe_pt handler);


#endif /* _NGX_HTTP_XET_PROBE_H_INCLUDED_ */
