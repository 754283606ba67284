
/* Internal functions of src/http/store. */

#ifndef _NGX_HTTP_XET_STORE_BASE_H_INCLUDED_
#define _NGX_HTTP_XET_STORE_BASE_H_INCLUDED_


#include "ngx_http_xet_store.h"


/*
 * ngx_http_xet_store_copy_ids.c: if *copy_id is 0, sets it to a copy id that
 * no other copy ever gets; otherwise changes nothing.  Returns XET_OK, or
 * XET_DATABASE_AWAY if the worker has no copy ids left.
 */
xet_status_t ngx_http_xet_store_draw_copy_id(uint32_t *copy_id);

/*
 * ngx_http_xet_store_report.c: counts one request to an object store.  Called
 * by the client of the object store, in any thread.
 */
void ngx_http_xet_store_report(const xet_s3_report_t *one);

/* Logs a warning if the clock of the object store differs from ours. */
void ngx_http_xet_store_skew(ngx_http_xet_store_t *store, ngx_log_t *log);


#endif /* _NGX_HTTP_XET_STORE_BASE_H_INCLUDED_ */
