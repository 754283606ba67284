
/*
 * Internal to store: shared by the files of this folder.
 */

#ifndef _NGX_HTTP_XET_STORE_BASE_H_INCLUDED_
#define _NGX_HTTP_XET_STORE_BASE_H_INCLUDED_


#include "ngx_http_xet_store.h"


/*
 * ngx_http_xet_store_tags.c: sets a tag that no copy has had or will have,
 * unless there is one already: 0 is none.  XET_DATABASE_AWAY: none is left.
 */
xet_status_t ngx_http_xet_store_draw_tag(uint32_t *tag);

/* ngx_http_xet_store_report.c: called by the client, in any thread */
void ngx_http_xet_store_report(const xet_s3_report_t *one);

/* The same: warns if the clock of the object store differs from ours. */
void ngx_http_xet_store_skew(ngx_http_xet_store_t *store, ngx_log_t *log);

/* A monotonic clock in milliseconds. */
uint64_t ngx_http_xet_store_clock(void);


#endif /* _NGX_HTTP_XET_STORE_BASE_H_INCLUDED_ */
