
/*
 * What the file system says, as a status of the core.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store.h"


xet_status_t
ngx_http_xet_store_sync_dir_job(const char *path, ngx_log_t *log)
{
    int           fd;
    xet_status_t  rc;

    fd = open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    if (fd == -1) {
        return ngx_http_xet_store_failed(log, "open", path);
    }

    rc = (fsync(fd) == 0) ? XET_OK
                          : ngx_http_xet_store_failed(log, "fsync", path);
    close(fd);

    return rc;
}


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
