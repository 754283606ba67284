
/*
 * What the file system says, as a status of the core.
 */

#ifndef _NGX_HTTP_XET_STORE_STATUS_H_INCLUDED_
#define _NGX_HTTP_XET_STORE_STATUS_H_INCLUDED_


#include "ngx_http_xet.h"


/*
 * The status of an errno: XET_STORE_FULL; XET_STORE_FILES for too many open
 * files, which passes by itself; or XET_STORE_FAILED.
 */
xet_status_t ngx_http_xet_store_status(ngx_err_t err);

/* Logs that call has failed for name with ngx_errno; returns its status. */
xet_status_t ngx_http_xet_store_failed(ngx_log_t *log, const char *call,
    const void *name);

/* Syncs a folder, and so the names in it. */
xet_status_t ngx_http_xet_store_sync_dir_job(const char *path,
    ngx_log_t *log);


#endif /* _NGX_HTTP_XET_STORE_STATUS_H_INCLUDED_ */
