
/*
 * Logs the errors that functions of src/store return.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_base.h"


xet_status_t
ngx_http_xet_store_log(ngx_http_xet_store_t *store, xet_status_t rc,
    const xet_store_error_t *error, ngx_log_t *log)
{
    ngx_uint_t  level;

    switch (rc) {

    case XET_OK:
    case XET_DONE:
    case XET_AGAIN:
    case XET_NOMEM:
    case XET_STORE_DAMAGED:
        return rc;

    default:
        break;
    }

    /* while the process shuts down, pending requests fail as expected */

    level = error->ended ? NGX_LOG_INFO : NGX_LOG_CRIT;

    if (error->err) {
        ngx_log_error(level, log, error->err, "xet: %s \"%s\" failed",
                      error->call, error->path);

    } else if (error->ours) {
        ngx_log_error(level, log, 0, "xet: \"%s\" %s", error->path,
                      error->text);

    } else {
        ngx_log_error(level, log, 0, "xet: \"%V\": %s", &store->name,
                      error->text);
    }

    return rc;
}


uint64_t
ngx_http_xet_store_clock(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
