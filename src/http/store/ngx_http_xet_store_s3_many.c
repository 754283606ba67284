
/*
 * Many copies in a bucket at a time: looked at, or removed.  There is a request
 * for each, some of them under way at once, as xet_s3_head_all() and
 * xet_s3_delete_all() have it.
 *
 * DeleteObjects takes a thousand names in one request.  It is not used: its
 * answer tells of errors in a body of 200, and stores differ in what they have
 * of it (checksums that are required, or refused, names that are listed as
 * removed or not), while all of them know DELETE.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_ops.h"


typedef char  ngx_http_xet_object_name_t[NGX_HTTP_XET_XORB_PATH_MAX + 1];


static xet_s3_item_t *ngx_http_xet_objects_items(ngx_uint_t n, ngx_log_t *log);
static void ngx_http_xet_objects_item(xet_s3_item_t *items, ngx_uint_t n,
    ngx_uint_t i, const ngx_http_xet_copy_name_t *name);


void
ngx_http_xet_objects_stat_job(ngx_http_xet_store_t *store,
    ngx_http_xet_copy_stat_t *stats, ngx_uint_t n, ngx_log_t *log)
{
    ngx_uint_t      i;
    xet_s3_rc_t     rc;
    xet_status_t    status;
    xet_s3_item_t  *items;
    xet_s3_error_t  error;

    items = ngx_http_xet_objects_items(n, log);

    for (i = 0; i < n; i++) {
        stats[i].status = XET_NOMEM;

        if (items) {
            ngx_http_xet_objects_item(items, n, i, &stats[i].name);
        }
    }

    if (items == NULL) {
        return;
    }

    rc = xet_s3_head_all(store->s3, items, n, &error);

    status = (rc == XET_S3_OK)
             ? XET_OK
             : ngx_http_xet_store_s3_failed(store, rc, &error, log);

    for (i = 0; i < n; i++) {
        stats[i].size = items[i].size;
        stats[i].status = (items[i].rc == XET_S3_OK) ? XET_OK
                          : (items[i].rc == XET_S3_NOT_FOUND) ? XET_DONE
                          : status;
    }

    ngx_free(items);
}


/* What the store has acknowledged does not come back. */

xet_status_t
ngx_http_xet_objects_remove_all_job(ngx_http_xet_store_t *store,
    const ngx_http_xet_copy_name_t *names, ngx_uint_t n, ngx_log_t *log)
{
    return ngx_http_xet_objects_remove_each_job(store, names, n, NULL, log);
}


xet_status_t
ngx_http_xet_objects_remove_each_job(ngx_http_xet_store_t *store,
    const ngx_http_xet_copy_name_t *names, ngx_uint_t n, xet_s3_rc_t *rcs,
    ngx_log_t *log)
{
    ngx_uint_t      i;
    xet_s3_rc_t     rc;
    xet_s3_item_t  *items;
    xet_s3_error_t  error;

    items = ngx_http_xet_objects_items(n, log);

    for (i = 0; i < n; i++) {

        if (rcs) {
            rcs[i] = XET_S3_LOCAL;
        }

        if (items) {
            ngx_http_xet_objects_item(items, n, i, &names[i]);
        }
    }

    if (items == NULL) {
        return XET_NOMEM;
    }

    rc = xet_s3_delete_all(store->s3, items, n, &error);

    for (i = 0; rcs && i < n; i++) {
        rcs[i] = items[i].rc;
    }

    ngx_free(items);

    return (rc == XET_S3_OK)
           ? XET_OK : ngx_http_xet_store_s3_failed(store, rc, &error, log);
}


/* The names lie behind the items. */

static xet_s3_item_t *
ngx_http_xet_objects_items(ngx_uint_t n, ngx_log_t *log)
{
    return ngx_calloc(n * (sizeof(xet_s3_item_t)
                           + sizeof(ngx_http_xet_object_name_t)) + 1, log);
}


static void
ngx_http_xet_objects_item(xet_s3_item_t *items, ngx_uint_t n, ngx_uint_t i,
    const ngx_http_xet_copy_name_t *name)
{
    ngx_http_xet_object_name_t  *names;

    names = (ngx_http_xet_object_name_t *) (items + n);

    *ngx_http_xet_store_path((u_char *) names[i], &name->xorb, name->tag)
    = '\0';

    /* without the slash in front */

    items[i].name = names[i] + 1;
}
