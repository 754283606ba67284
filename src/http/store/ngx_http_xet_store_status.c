
/*
 * What the file system says, as a status of the core.
 */

#include "ngx_http_xet_store.h"


xet_status_t
ngx_http_xet_store_status(ngx_err_t err)
{
    switch (err) {

    case NGX_ENOSPC:
    case EDQUOT:
        return XET_STORE_FULL;

    case NGX_EMFILE:
    case NGX_ENFILE:
        return XET_STORE_FILES;

    default:
        return XET_STORE_FAILED;
    }
}


xet_status_t
ngx_http_xet_store_failed(ngx_log_t *log, const char *call, const void *name)
{
    ngx_err_t  err;

    err = ngx_errno;

    ngx_log_error(NGX_LOG_CRIT, log, err, "xet: %s \"%s\" failed", call, name);

    return ngx_http_xet_store_status(err);
}
