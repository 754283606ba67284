
/*
 * Logs the errors that functions of src/store return.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_base.h"

#include <sys/statvfs.h>


static void ngx_http_xet_store_log_full(ngx_http_xet_store_t *store);


xet_status_t
ngx_http_xet_store_log(ngx_http_xet_store_t *store, xet_status_t rc,
    const xet_store_error_t *error, ngx_log_t *log)
{
    ngx_uint_t  level;

    if (rc == XET_STORE_FULL && error->err == NGX_ENOSPC) {
        ngx_http_xet_store_log_full(store);
    }

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


/* Records how much space the disk has left, unless it lacks only inodes. */

static void
ngx_http_xet_store_log_full(ngx_http_xet_store_t *store)
{
    struct statvfs  st;

    if (statvfs((char *) store->temp.data, &st) == 0
        && (st.f_files == 0 || st.f_favail))
    {
        ngx_http_xet_error_left((uint64_t) st.f_bavail * st.f_frsize);
    }
}


uint64_t
ngx_http_xet_store_clock(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
