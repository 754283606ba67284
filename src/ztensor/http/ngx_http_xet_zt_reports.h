
/*
 * Reports on the objects of a batch, kept in PostgreSQL.
 */

#ifndef _NGX_HTTP_XET_ZT_REPORTS_H_INCLUDED_
#define _NGX_HTTP_XET_ZT_REPORTS_H_INCLUDED_


#include "ngx_http_xet_zt_batch.h"


/*
 * Fills in the reports of items that were verified before, and marks them as
 * known.  XET_AGAIN: the handler will be called, with the batch and XET_OK or
 * why not; otherwise that, at once.
 */
xet_status_t ngx_http_xet_zt_reports_load(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b, ngx_http_xet_ztensor_pt handler);

/* Keeps the reports of objects that were not known; nobody waits for it. */
void ngx_http_xet_zt_reports_keep(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b);


#endif /* _NGX_HTTP_XET_ZT_REPORTS_H_INCLUDED_ */
