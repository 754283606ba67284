
/*
 * Checks, reads and removes copies that rows refer to.
 *
 * A missing copy counts as damage only if the store belongs to this database,
 * which is checked first.  After an error of the system or of an object store
 * the state of the copy is unknown.
 *
 *     init -> open -> (ahead, read, read, ...)* -> close, or open the next
 *
 * The structure belongs to the job that reads.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_base.h"


#define NGX_HTTP_XET_COPY_CHECK  (4 * 1024 * 1024)     /* bytes read ahead */
#define NGX_HTTP_XET_COPY_PIECE  (256 * 1024)


static xet_status_t ngx_http_xet_copy_check_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t copy_id, const xet_checksum_t *digest,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_copy_missing_job(
    ngx_http_xet_store_t *store, ngx_log_t *log);
static xet_status_t ngx_http_xet_copy_digest_job(ngx_http_xet_opened_t *copy,
    uint64_t size, xet_checksum_t *digest, ngx_log_t *log);
static xet_store_item_t *ngx_http_xet_copy_items(ngx_uint_t n, ngx_log_t *log);
static void ngx_http_xet_copy_item(xet_store_item_t *items, ngx_uint_t n,
    ngx_uint_t i, const ngx_http_xet_copy_name_t *name);
static xet_status_t ngx_http_xet_copy_failed_job(ngx_http_xet_opened_t *copy,
    xet_status_t rc, const xet_store_error_t *error, const char *why,
    ngx_log_t *log);


xet_status_t
ngx_http_xet_store_stat_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t copy_id, uint64_t size, ngx_log_t *log)
{
    ngx_http_xet_copy_stat_t  look;

    look.name.xorb = *xorb;
    look.name.copy_id = copy_id;
    look.want = size;

    ngx_http_xet_store_stat_all_job(store, &look, 1, log);

    return look.status;
}


/*
 * Checks n copies.  If copies are missing, the identity of the store is checked
 * only once.
 */

void
ngx_http_xet_store_stat_all_job(ngx_http_xet_store_t *store,
    ngx_http_xet_copy_stat_t *stats, ngx_uint_t n, ngx_log_t *log)
{
    ngx_uint_t                 i, report;
    xet_status_t               missing;
    xet_store_item_t          *items;
    xet_store_error_t          error;
    ngx_http_xet_copy_stat_t  *look;

    report = 0;
    missing = XET_OK;

    items = ngx_http_xet_copy_items(n, log);

    for (i = 0; items && i < n; i++) {
        ngx_http_xet_copy_item(items, n, i, &stats[i].name);
    }

    if (items) {
        store->backend->ops->stat(store->backend, items, n, &error);
    }

    for (i = 0; i < n; i++) {
        look = &stats[i];

        look->status = items ? items[i].status : XET_NOMEM;
        look->size = items ? items[i].size : 0;

        if (look->status == XET_DONE) {

            if (missing == XET_OK) {
                missing = ngx_http_xet_copy_missing_job(store, log);
            }

            look->status = missing;

        } else if (look->status == XET_OK && look->size != look->want) {
            look->status = XET_STORE_DAMAGED;

        } else if (look->status != XET_OK && !report) {
            report = 1;
            (void) ngx_http_xet_store_log(store, look->status, &error, log);
        }
    }

    if (items) {
        ngx_free(items);
    }
}


/* Allocates n items, and a buffer for their names after the items. */

static xet_store_item_t *
ngx_http_xet_copy_items(ngx_uint_t n, ngx_log_t *log)
{
    return ngx_calloc(n * (sizeof(xet_store_item_t) + XET_STORE_COPY_MAX) + 1,
                      log);
}


static void
ngx_http_xet_copy_item(xet_store_item_t *items, ngx_uint_t n, ngx_uint_t i,
    const ngx_http_xet_copy_name_t *name)
{
    items[i].name = xet_store_copy((char *) (items + n)
                                   + i * XET_STORE_COPY_MAX,
                                   &name->xorb, name->copy_id);
}


static xet_status_t
ngx_http_xet_copy_missing_job(ngx_http_xet_store_t *store, ngx_log_t *log)
{
    xet_status_t  rc;

    rc = ngx_http_xet_store_identity_look_job(store, log);

    return (rc == XET_OK) ? XET_STORE_DAMAGED : rc;
}


/*
 * Compares a copy with its digest.  Damaged data is read once more before it is
 * reported, because a bit may have flipped in transit from an object store.
 */

xet_status_t
ngx_http_xet_store_check_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t copy_id, const xet_checksum_t *digest,
    ngx_log_t *log)
{
    xet_status_t  rc;

    rc = ngx_http_xet_copy_check_job(store, xorb, copy_id, digest, log);

    return (rc == XET_STORE_DAMAGED)
           ? ngx_http_xet_copy_check_job(store, xorb, copy_id, digest, log)
           : rc;
}


static xet_status_t
ngx_http_xet_copy_check_job(ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t copy_id, const xet_checksum_t *digest,
    ngx_log_t *log)
{
    xet_status_t           rc;
    xet_checksum_t         found;
    xet_store_error_t      error;
    ngx_http_xet_opened_t  copy;

    ngx_http_xet_copy_init(&copy, store);

    rc = ngx_http_xet_copy_open_job(&copy, xorb, copy_id, log);

    if (rc == XET_OK) {
        rc = store->backend->ops->size(&copy.reader, &error);
        rc = (rc == XET_DONE)
             ? ngx_http_xet_copy_missing_job(store, log)
             : ngx_http_xet_store_log(store, rc, &error, log);
    }

    if (rc == XET_OK) {
        rc = ngx_http_xet_copy_digest_job(&copy, copy.reader.size, &found,
                                          log);
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
    const xet_hash_t *xorb, uint32_t copy_id, ngx_log_t *log)
{
    char               name[XET_STORE_COPY_MAX];
    xet_status_t       rc;
    xet_store_error_t  error;

    rc = xet_store_remove(store->backend, xet_store_copy(name, xorb, copy_id),
                          &error);

    return ngx_http_xet_store_log(store, rc, &error, log);
}


/*
 * Checks the identity of the store first.  If the disk is not mounted, its
 * files can't be removed, so the notes in PostgreSQL about them must stay.
 */

xet_status_t
ngx_http_xet_store_remove_all_job(ngx_http_xet_store_t *store,
    const ngx_http_xet_copy_name_t *names, ngx_uint_t n, ngx_log_t *log)
{
    ngx_uint_t          i;
    xet_status_t        rc;
    xet_store_item_t   *items;
    xet_store_error_t   error;

    rc = ngx_http_xet_store_identity_check_job(store, log);

    if (rc != XET_OK) {
        return rc;
    }

    items = ngx_http_xet_copy_items(n, log);

    if (items == NULL) {
        return XET_NOMEM;
    }

    for (i = 0; i < n; i++) {
        ngx_http_xet_copy_item(items, n, i, &names[i]);
    }

    rc = store->backend->ops->remove(store->backend, items, n, &error);

    ngx_free(items);

    return ngx_http_xet_store_log(store, rc, &error, log);
}


void
ngx_http_xet_copy_init(ngx_http_xet_opened_t *copy, ngx_http_xet_store_t *store)
{
    ngx_memzero(copy, sizeof(ngx_http_xet_opened_t));

    copy->store = store;

    xet_store_reader_init(&copy->reader, store->backend);
}


xet_status_t
ngx_http_xet_copy_open_job(ngx_http_xet_opened_t *copy, const xet_hash_t *xorb,
    uint32_t copy_id, ngx_log_t *log)
{
    xet_status_t       rc;
    xet_store_error_t  error;

    ngx_http_xet_copy_close_job(copy, log);

    copy->xorb = *xorb;
    copy->copy_id = copy_id;

    (void) xet_store_copy(copy->reader.name, xorb, copy_id);

    rc = copy->store->backend->ops->open(&copy->reader, &error);

    copy->opened = 1;

    if (rc == XET_OK) {
        return XET_OK;
    }

    rc = ngx_http_xet_copy_failed_job(copy, rc, &error,
                                      "its file can't be opened", log);

    ngx_http_xet_copy_close_job(copy, log);

    return rc;
}


void
ngx_http_xet_copy_ahead(ngx_http_xet_opened_t *copy, uint64_t start,
    uint64_t end)
{
    xet_store_reader_ahead(&copy->reader, start, end);
}


xet_status_t
ngx_http_xet_copy_read_job(ngx_http_xet_opened_t *copy, u_char *buf, size_t len,
    uint64_t offset, ngx_log_t *log)
{
    xet_status_t       rc;
    xet_store_error_t  error;

    rc = copy->store->backend->ops->read(&copy->reader, buf, len, offset,
                                         &error);

    return (rc == XET_OK)
           ? XET_OK
           : ngx_http_xet_copy_failed_job(copy, rc, &error,
                                          "its file can't be read", log);
}


static xet_status_t
ngx_http_xet_copy_failed_job(ngx_http_xet_opened_t *copy, xet_status_t rc,
    const xet_store_error_t *error, const char *why, ngx_log_t *log)
{
    u_char  name[XET_XORB_NAME_MAX + 1];

    copy->err = 0;
    copy->why = why;

    switch (rc) {

    case XET_AGAIN:
        copy->why = "its file is truncated";
        return XET_STORE_DAMAGED;

    case XET_DONE:
        copy->err = NGX_ENOENT;
        copy->why = "its file can't be opened";
        return ngx_http_xet_copy_missing_job(copy->store, log);

    case XET_STORE_DAMAGED:
        copy->why = "it is not a regular file";
        return rc;

    default:
        break;
    }

    if (rc == XET_NOMEM || error->err == 0) {
        return ngx_http_xet_store_log(copy->store, rc, error, log);
    }

    copy->err = error->err;

    *xet_xorb_name_print(name, &copy->xorb, copy->copy_id) = '\0';

    ngx_log_error(NGX_LOG_CRIT, log, copy->err, "xet: xorb %s: %s", name, why);

    return rc;
}


void
ngx_http_xet_copy_close_job(ngx_http_xet_opened_t *copy, ngx_log_t *log)
{
    if (copy->opened) {
        xet_store_reader_close(&copy->reader);
        copy->opened = 0;
    }
}
