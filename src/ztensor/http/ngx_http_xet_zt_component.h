
/*
 * The component of a zTensor file that a request names by its arguments.
 */

#ifndef _NGX_HTTP_XET_ZT_COMPONENT_H_INCLUDED_
#define _NGX_HTTP_XET_ZT_COMPONENT_H_INCLUDED_


#include "ngx_http_xet_ztensor.h"


/*
 * Called in the event loop, once the component is known.  NGX_AGAIN: the
 * handler finalizes the request later; otherwise the caller does, with what
 * the handler returns.
 */
typedef ngx_int_t (*ngx_http_xet_zt_component_pt)(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);


struct ngx_http_xet_zt_component_s {
    ngx_http_xet_ztensor_t        *ztensor;
    ngx_http_xet_zt_component_pt   handler;

    xet_zt_query_t                 query;
    xet_zt_select_t                select;
    xet_zt_region_t                region;

    xet_zt_object_t               *object;     /* without attributes */
    const xet_zt_component_t      *component;
    xet_range_t                    range;      /* in the file */
};


/*
 * Parses the arguments, opens the file of the path, and calls the handler for
 * a component of a valid object whose bytes are in this file; everything else
 * is answered with an error.  wanted: XET_ZT_ARG_* besides the arguments for
 * object and role.  Returns what a content handler returns.
 */
ngx_int_t ngx_http_xet_zt_component(ngx_http_request_t *r, unsigned wanted,
    ngx_http_xet_zt_component_pt handler);

/* Sets, from the arguments, which objects a walk reads; no attributes. */
void ngx_http_xet_zt_select(xet_zt_select_t *select,
    const xet_zt_query_t *query);


#endif /* _NGX_HTTP_XET_ZT_COMPONENT_H_INCLUDED_ */
