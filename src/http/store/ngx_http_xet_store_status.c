
/*
 * What the file system or an object store says, as a status of the core.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_ops.h"


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


xet_status_t
ngx_http_xet_store_s3_failed(ngx_http_xet_store_t *store, xet_s3_rc_t rc,
    const xet_s3_error_t *error, ngx_log_t *log)
{
    ngx_uint_t  level;

    /* the worker ends, and threads that connect are left behind */

    level = (rc == XET_S3_ENDED) ? NGX_LOG_INFO : NGX_LOG_CRIT;

    ngx_log_error(level, log, 0, "xet: \"%V\": %s", &store->name,
                  error->text);

    switch (rc) {

    case XET_S3_FULL:
        return XET_STORE_FULL;

    case XET_S3_AWAY:
    case XET_S3_DENIED:
    case XET_S3_NO_BUCKET:
    case XET_S3_ENDED:
        return XET_STORE_AWAY;

    case XET_S3_LOCAL:
        return XET_STORE_FILES;

    default:
        return XET_STORE_FAILED;
    }
}


uint64_t
ngx_http_xet_store_clock(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
