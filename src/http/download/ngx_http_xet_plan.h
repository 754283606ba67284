
/*
 * The answer that a reconstruction plan is.
 */

#ifndef _NGX_HTTP_XET_PLAN_H_INCLUDED_
#define _NGX_HTTP_XET_PLAN_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "xet.h"


/*
 * Finishes the plan and sends it as JSON of the given kind, a large plan in
 * pieces that a thread makes.  The plan and its memory live until the request
 * ends.
 *
 * NGX_AGAIN: the request will be finalized later; any other code is for
 * ngx_http_finalize_request().
 */
ngx_int_t ngx_http_xet_plan_send(ngx_http_request_t *r, xet_plan_t *plan,
    xet_plan_kind_t kind);


#endif /* _NGX_HTTP_XET_PLAN_H_INCLUDED_ */
