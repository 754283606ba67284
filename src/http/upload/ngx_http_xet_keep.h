
/*
 * A xorb that was uploaded becomes the store's.
 */

#ifndef _NGX_HTTP_XET_KEEP_H_INCLUDED_
#define _NGX_HTTP_XET_KEEP_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "xet.h"
#include "ngx_http_xet_array.h"
#include "ngx_http_xet_store.h"


/*
 * Called once, in the event loop.  rc:
 *
 *     NGX_OK        the xorb is stored, whole and durable; new tells whether
 *                   it is new to the store, or with "xet_access repo" whether
 *                   it is new to the repo or to the subject
 *     NGX_DECLINED  the xorb is not stored, and status is the reason
 *     otherwise     the rc of a query, see ngx_http_xet_query.h
 */
typedef void (*ngx_http_xet_keep_pt)(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new);


/*
 * Puts the row of a xorb whose copy is file, durable under its name; eligible
 * are the numbers of the chunks that go into the dedup index.  file, info and
 * eligible live until the handler is called; then the file may be reset, or
 * left to the end of the request.  Uses the request's one statement and one
 * job.
 */
void ngx_http_xet_keep(ngx_http_request_t *r, ngx_http_xet_temp_t *file,
    const xet_xorb_info_t *info, ngx_http_xet_array_t *eligible,
    ngx_http_xet_keep_pt handler);


#endif /* _NGX_HTTP_XET_KEEP_H_INCLUDED_ */
