
/*
 * Copies that rows name: looked at, read, removed.
 *
 * That a copy is missing says something about it only if the store is the one
 * of the database: this is looked at before the copy is called damaged.  An
 * error of the system, or of an object store, says nothing about the bytes.
 *
 *     init -> open -> (ahead, read, read, ...)* -> close, or open of another
 *
 * The structure belongs to the job that reads.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_ops.h"


#define NGX_HTTP_XET_COPY_CHECK  (4 * 1024 * 1024)     /* bytes ahead */
#define NGX_HTTP_XET_COPY_PIECE  (256 * 1024)


static xet_status_t ngx_http_xet_copy_check_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t tag, const xet_checksum_t *digest,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_copy_missing_job(
    ngx_http_xet_store_t *store, ngx_log_t *log);
static xet_status_t ngx_http_xet_copy_digest_job(ngx_http_xet_opened_t *copy,
    uint64_t size, xet_checksum_t *digest, ngx_log_t *log);


xet_status_t
ngx_http_xet_store_stat_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t tag, uint64_t size, ngx_log_t *log)
{
    ngx_http_xet_copy_stat_t  look;

    look.name.xorb = *xorb;
    look.name.tag = tag;
    look.want = size;

    ngx_http_xet_store_stat_all_job(store, &look, 1, log);

    return look.status;
}


/* The identity is looked at once for all that are missing, and behind them. */

void
ngx_http_xet_store_stat_all_job(ngx_http_xet_store_t *store,
    ngx_http_xet_copy_stat_t *stats, ngx_uint_t n, ngx_log_t *log)
{
    ngx_uint_t                 i;
    xet_status_t               missing;
    ngx_http_xet_copy_stat_t  *look;

    missing = XET_OK;

    store->ops->stat_job(store, stats, n, log);

    for (i = 0; i < n; i++) {
        look = &stats[i];

        if (look->status == XET_DONE) {

            if (missing == XET_OK) {
                missing = ngx_http_xet_copy_missing_job(store, log);
            }

            look->status = missing;

        } else if (look->status == XET_OK && look->size != look->want) {
            look->status = XET_STORE_DAMAGED;
        }
    }
}


static xet_status_t
ngx_http_xet_copy_missing_job(ngx_http_xet_store_t *store, ngx_log_t *log)
{
    xet_status_t  rc;

    rc = ngx_http_xet_store_identity_look_job(store, log);

    return (rc == XET_OK) ? XET_STORE_DAMAGED : rc;
}


/*
 * A bit that has changed on its way from an object store is not one that is
 * stored: what is found damaged is read once more before anybody is told.
 */

xet_status_t
ngx_http_xet_store_check_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t tag, const xet_checksum_t *digest,
    ngx_log_t *log)
{
    xet_status_t  rc;

    rc = ngx_http_xet_copy_check_job(store, xorb, tag, digest, log);

    return (rc == XET_STORE_DAMAGED)
           ? ngx_http_xet_copy_check_job(store, xorb, tag, digest, log) : rc;
}


static xet_status_t
ngx_http_xet_copy_check_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t tag, const xet_checksum_t *digest,
    ngx_log_t *log)
{
    xet_status_t              rc;
    xet_checksum_t            found;
    ngx_http_xet_opened_t     copy;
    ngx_http_xet_copy_stat_t  look;

    look.name.xorb = *xorb;
    look.name.tag = tag;

    store->ops->stat_job(store, &look, 1, log);

    if (look.status == XET_DONE) {
        return ngx_http_xet_copy_missing_job(store, log);
    }

    if (look.status != XET_OK) {
        return look.status;
    }

    if (look.size > NGX_MAX_OFF_T_VALUE - 1) {
        return XET_STORE_DAMAGED;
    }

    ngx_http_xet_copy_init(&copy, store);

    rc = ngx_http_xet_copy_open_job(&copy, xorb, tag, log);

    if (rc == XET_OK) {
        rc = ngx_http_xet_copy_digest_job(&copy, look.size, &found, log);
    }

    ngx_http_xet_copy_close_job(&copy, log);

    if (rc != XET_OK) {
        return rc;
    }

    return xet_checksum_equal(&found, digest) ? XET_OK : XET_STORE_DAMAGED;
}


static xet_status_t
ngx_http_xet_copy_digest_job(ngx_http_xet_opened_t *copy, uint64_t size,
    xet_checksum_t *digest, ngx_log_t *log)
{
    size_t                 n;
    u_char                *buf;
    uint64_t               offset;
    xet_status_t           rc;
    xet_checksum_state_t  *checksum;

    buf = ngx_alloc(NGX_HTTP_XET_COPY_PIECE, log);
    checksum = xet_checksum_create();

    rc = (buf && checksum) ? XET_OK : XET_NOMEM;

    for (offset = 0; rc == XET_OK && offset < size; offset += n) {

        if (offset % NGX_HTTP_XET_COPY_CHECK == 0) {
            ngx_http_xet_copy_ahead(copy, offset,
                                    ngx_min(size, offset
                                                  + NGX_HTTP_XET_COPY_CHECK));
        }

        n = ngx_min(NGX_HTTP_XET_COPY_PIECE, size - offset);

        rc = ngx_http_xet_copy_read_job(copy, buf, n, offset, log);

        if (rc == XET_OK) {
            xet_checksum_update(checksum, buf, n);
        }
    }

    if (rc == XET_OK) {
        xet_checksum_finish(checksum, digest);
    }

    xet_checksum_destroy(checksum);

    if (buf) {
        ngx_free(buf);
    }

    return rc;
}


xet_status_t
ngx_http_xet_store_remove_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t tag, ngx_log_t *log)
{
    ngx_http_xet_copy_name_t  name;

    name.xorb = *xorb;
    name.tag = tag;

    return store->ops->remove_job(store, &name, log);
}


/*
 * Only in the store of the database: where a disk is not mounted there are no
 * files to remove, and the notes of those on the disk must stay.
 */

xet_status_t
ngx_http_xet_store_remove_all_job(ngx_http_xet_store_t *store,
    const ngx_http_xet_copy_name_t *names, ngx_uint_t n, ngx_log_t *log)
{
    xet_status_t  rc;

    rc = ngx_http_xet_store_identity_check_job(store, log);

    return (rc == XET_OK) ? store->ops->remove_all_job(store, names, n, log)
                          : rc;
}


void
ngx_http_xet_copy_init(ngx_http_xet_opened_t *copy, ngx_http_xet_store_t *store)
{
    ngx_memzero(copy, sizeof(ngx_http_xet_opened_t));

    copy->store = store;
    copy->fd = NGX_INVALID_FILE;
}


xet_status_t
ngx_http_xet_copy_open_job(ngx_http_xet_opened_t *copy, const xet_hash_t *xorb,
    uint32_t tag, ngx_log_t *log)
{
    xet_status_t  rc;

    ngx_http_xet_copy_close_job(copy, log);

    copy->xorb = *xorb;
    copy->tag = tag;

    rc = copy->store->ops->open_job(copy, log);

    if (rc == XET_DONE) {
        copy->why = "its file can't be opened";

        return ngx_http_xet_copy_missing_job(copy->store, log);
    }

    copy->opened = (rc == XET_OK);

    return rc;
}


void
ngx_http_xet_copy_ahead(ngx_http_xet_opened_t *copy, uint64_t start,
    uint64_t end)
{
    copy->start = start;
    copy->end = end;
    copy->came = 0;
}


xet_status_t
ngx_http_xet_copy_read_job(ngx_http_xet_opened_t *copy, u_char *buf, size_t len,
    uint64_t offset, ngx_log_t *log)
{
    xet_status_t  rc;

    rc = copy->store->ops->read_job(copy, buf, len, offset, log);

    switch (rc) {

    case XET_AGAIN:
        copy->err = 0;
        copy->why = "its file ends before it does";
        return XET_STORE_DAMAGED;

    case XET_DONE:
        copy->err = NGX_ENOENT;
        copy->why = "its file can't be opened";
        return ngx_http_xet_copy_missing_job(copy->store, log);

    default:
        return rc;
    }
}


void
ngx_http_xet_copy_close_job(ngx_http_xet_opened_t *copy, ngx_log_t *log)
{
    if (copy->opened) {
        copy->store->ops->close_job(copy, log);
        copy->opened = 0;
    }

    if (copy->buf) {
        ngx_free(copy->buf);
        copy->buf = NULL;
    }

    copy->room = 0;
    copy->start = 0;
    copy->end = 0;
    copy->came = 0;
}
