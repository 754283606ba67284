
/*
 * Store errors: converts an errno, or a result of the S3 client, to a status
 * and a text that the caller reports.
 */


#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "xet_store_ops.h"


static void xet_store_error(xet_store_error_t *error, const char *folder,
    const char *name);


xet_status_t
xet_store_failed(const xet_store_t *store, const char *call,
    const char *name, xet_store_error_t *error)
{
    char          path[PATH_MAX];
    int           err;
    xet_status_t  rc;

    err = errno;

    (void) snprintf(path, sizeof(path), "%s/%s", store->name, name);

    errno = err;
    rc = xet_store_failed_path(call, path, error);
    errno = err;

    return rc;
}


xet_status_t
xet_store_failed_path(const char *call, const char *path,
    xet_store_error_t *error)
{
    int  err;

    err = errno;

    xet_store_error(error, NULL, path);

    error->err = err;
    error->call = call;
    error->local = 1;

    return xet_store_status(err);
}


xet_status_t
xet_store_status(int err)
{
    switch (err) {

    case ENOSPC:
    case EDQUOT:
        return XET_STORE_FULL;

    case EMFILE:
    case ENFILE:
        return XET_STORE_FILES;

    case ENOMEM:
        return XET_NOMEM;

    default:
        return XET_STORE_FAILED;
    }
}


xet_status_t
xet_store_s3_failed(const xet_store_t *store, const char *name,
    xet_s3_rc_t rc, const xet_s3_error_t *why, xet_store_error_t *error)
{
    if (rc == XET_S3_OK) {
        return XET_OK;
    }

    xet_store_error(error, store->name, name);

    (void) snprintf(error->text, sizeof(error->text), "%s", why->text);

    error->local = (rc == XET_S3_LOCAL || rc == XET_S3_CONF);
    error->ended = (rc == XET_S3_ENDED);

    switch (rc) {

    case XET_S3_NOT_FOUND:
        return XET_DONE;

    case XET_S3_EXISTS:
    case XET_S3_SHORT:
        return XET_AGAIN;

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


xet_status_t
xet_store_says(const xet_store_t *store, const char *name,
    xet_status_t status, const char *text, xet_store_error_t *error)
{
    xet_store_error(error, store->name, name);

    (void) snprintf(error->text, sizeof(error->text), "%s", text);

    error->ours = 1;
    error->local = 1;

    return status;
}


static void
xet_store_error(xet_store_error_t *error, const char *folder,
    const char *name)
{
    memset(error, 0, offsetof(xet_store_error_t, path));

    error->text[0] = '\0';
    error->ours = 0;
    error->local = 0;
    error->ended = 0;

    (void) snprintf(error->path, sizeof(error->path), "%s%s%s",
                    folder ? folder : "", folder ? "/" : "", name);
}
