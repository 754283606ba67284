
/*
 * A store in a bucket of an object store, or below a prefix in a bucket.
 *
 * If a name is reserved for an upload, its parts go to the bucket while the
 * file grows.  Without a call of keep, an upload never becomes an object: keep
 * sends the last part, and waits until the store has acknowledged all parts.
 * Objects are never renamed, and an acknowledged object needs no sync.
 *
 * A read fetches the whole range that was announced, since each request costs
 * a round trip.  The bytes are held in memory until the next announcement.
 *
 * DeleteObjects takes a thousand names in one request, but is not used.  Its
 * response reports errors in the body of a 200.  Stores also differ: some
 * require checksums, and some refuse them; some responses list removed names.
 * All stores support DELETE.
 */


#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "xet_store_ops.h"


#define XET_STORE_S3_PAGE      256             /* names in a page */


static xet_status_t xet_store_s3_folders(xet_store_t *store, uid_t uid,
    gid_t gid, xet_store_error_t *error);
static void xet_store_s3_stat(xet_store_t *store, xet_store_item_t *items,
    size_t n, xet_store_error_t *error);
static xet_status_t xet_store_s3_head(xet_store_t *store,
    xet_store_item_t *item, xet_store_error_t *error);
static xet_s3_item_t *xet_store_s3_items(xet_store_item_t *items, size_t n);
static xet_status_t xet_store_s3_small(xet_store_t *store, const char *name,
    void *buf, size_t *len, xet_store_error_t *error);
static xet_status_t xet_store_s3_open(xet_store_reader_t *reader,
    xet_store_error_t *error);
static xet_status_t xet_store_s3_size(xet_store_reader_t *reader,
    xet_store_error_t *error);
static xet_status_t xet_store_s3_read(xet_store_reader_t *reader, void *buf,
    size_t len, uint64_t offset, xet_store_error_t *error);
static xet_status_t xet_store_s3_fetch(xet_store_reader_t *reader, void *buf,
    size_t len, uint64_t offset, xet_store_error_t *error);
static void xet_store_s3_grown(xet_store_writer_t *writer, const void *data,
    size_t len);
static xet_status_t xet_store_s3_keep(xet_store_writer_t *writer,
    const char *name, int replace, int late, xet_store_error_t *error);
static xet_status_t xet_store_s3_remove(xet_store_t *store,
    xet_store_item_t *items, size_t n, xet_store_error_t *error);
static xet_status_t xet_store_s3_link(xet_store_t *store, const char *from,
    const char *to, xet_store_error_t *error);
static xet_status_t xet_store_s3_list(xet_store_list_t *list,
    xet_store_error_t *error);
static xet_status_t xet_store_s3_next(xet_store_list_t *list,
    xet_store_item_t *item, xet_store_error_t *error);
static xet_status_t xet_store_s3_page(xet_store_list_t *list,
    const char *prefix, xet_store_error_t *error);
static xet_status_t xet_store_s3_sweep(xet_store_t *store, uint64_t age,
    size_t *n, xet_store_error_t *error);


const xet_store_ops_t  xet_store_s3_ops = {
    "bucket",
    1,
    xet_store_s3_folders,
    xet_store_s3_stat,
    xet_store_s3_small,
    xet_store_s3_open,
    xet_store_s3_size,
    xet_store_s3_read,
    xet_store_s3_grown,
    xet_store_s3_keep,
    xet_store_s3_remove,
    xet_store_s3_link,
    NULL,                                      /* quarantine */
    NULL,                                      /* back */
    xet_store_s3_list,
    xet_store_s3_next,
    xet_store_s3_sweep,
    NULL,                                      /* sync */
    NULL                                       /* lock */
};


/* Creates the local folder of temporary files; a bucket has no folders. */

static xet_status_t
xet_store_s3_folders(xet_store_t *store, uid_t uid, gid_t gid,
    xet_store_error_t *error)
{
    if (mkdir(store->temp, 0755) != 0) {
        return (errno == EEXIST)
               ? XET_OK : xet_store_failed_path("mkdir", store->temp, error);
    }

    return ((uid != (uid_t) -1 || gid != (gid_t) -1)
            && chown(store->temp, uid, gid) != 0)
           ? xet_store_failed_path("chown", store->temp, error) : XET_OK;
}


static void
xet_store_s3_stat(xet_store_t *store, xet_store_item_t *items, size_t n,
    xet_store_error_t *error)
{
    size_t          i;
    xet_s3_rc_t     rc;
    xet_status_t    status;
    xet_s3_item_t  *heads;
    xet_s3_error_t  why;

    if (n == 1) {
        items[0].status = xet_store_s3_head(store, &items[0], error);
        return;
    }

    heads = xet_store_s3_items(items, n);

    if (heads == NULL) {
        (void) xet_store_says(store, "", XET_NOMEM, "out of memory", error);
        return;
    }

    rc = xet_s3_head_all(store->s3, heads, n, &why);

    status = (rc == XET_S3_OK)
             ? XET_OK : xet_store_s3_failed(store, "xorbs", rc, &why, error);

    for (i = 0; i < n; i++) {
        items[i].size = heads[i].size;
        items[i].status = (heads[i].rc == XET_S3_OK) ? XET_OK
                          : (heads[i].rc == XET_S3_NOT_FOUND) ? XET_DONE
                          : status;
    }

    free(heads);
}


static xet_status_t
xet_store_s3_head(xet_store_t *store, xet_store_item_t *item,
    xet_store_error_t *error)
{
    int64_t          ahead;
    xet_s3_rc_t      rc;
    xet_s3_error_t   why;
    xet_s3_object_t  object;

    rc = xet_s3_head(store->s3, item->name, &object, &why);

    if (rc != XET_S3_OK) {
        return xet_store_s3_failed(store, item->name, rc, &why, error);
    }

    ahead = (object.now > 0) ? (int64_t) time(NULL) - object.now : 0;

    item->size = object.size;
    item->modified = object.modified + ahead;
    item->changed = object.modified;

    return XET_OK;
}


/*
 * Allocates the items of the S3 client for n items.  Returns NULL if out of
 * memory, and then sets the status of all items to XET_NOMEM.
 */

static xet_s3_item_t *
xet_store_s3_items(xet_store_item_t *items, size_t n)
{
    size_t          i;
    xet_s3_item_t  *all;

    all = calloc(n + 1, sizeof(xet_s3_item_t));

    for (i = 0; i < n; i++) {
        items[i].status = XET_NOMEM;

        if (all) {
            all[i].name = items[i].name;
        }
    }

    return all;
}


static xet_status_t
xet_store_s3_small(xet_store_t *store, const char *name, void *buf,
    size_t *len, xet_store_error_t *error)
{
    xet_s3_rc_t     rc;
    xet_s3_error_t  why;

    rc = xet_s3_get_small(store->s3, name, buf, len, &why);

    return (rc == XET_S3_OK)
           ? XET_OK : xet_store_s3_failed(store, name, rc, &why, error);
}


static xet_status_t
xet_store_s3_open(xet_store_reader_t *reader, xet_store_error_t *error)
{
    return XET_OK;
}


static xet_status_t
xet_store_s3_size(xet_store_reader_t *reader, xet_store_error_t *error)
{
    xet_status_t      rc;
    xet_store_item_t  item;

    memset(&item, 0, sizeof(item));
    item.name = reader->name;

    rc = xet_store_s3_head(reader->store, &item, error);

    if (rc == XET_OK) {
        reader->size = item.size;
    }

    return rc;
}


static xet_status_t
xet_store_s3_read(xet_store_reader_t *reader, void *buf, size_t len,
    uint64_t offset, xet_store_error_t *error)
{
    size_t        ahead;
    xet_status_t  rc;

    if (offset < reader->start || len > reader->end - reader->start
        || offset - reader->start > reader->end - reader->start - len)
    {
        return xet_store_s3_fetch(reader, buf, len, offset, error);
    }

    if (!reader->came) {
        ahead = (size_t) (reader->end - reader->start);

        if (reader->room < ahead) {
            free(reader->buf);

            reader->buf = malloc(ahead);
            reader->room = reader->buf ? ahead : 0;

            if (reader->buf == NULL) {
                return xet_store_says(reader->store, reader->name, XET_NOMEM,
                                      "out of memory", error);
            }
        }

        rc = xet_store_s3_fetch(reader, reader->buf, ahead, reader->start,
                                error);
        if (rc == XET_AGAIN) {

            /* the object ends inside the range, but may contain these bytes */

            reader->end = reader->start;

            return xet_store_s3_fetch(reader, buf, len, offset, error);
        }

        if (rc != XET_OK) {
            return rc;
        }

        reader->came = 1;
    }

    memcpy(buf, reader->buf + (offset - reader->start), len);

    return XET_OK;
}


static xet_status_t
xet_store_s3_fetch(xet_store_reader_t *reader, void *buf, size_t len,
    uint64_t offset, xet_store_error_t *error)
{
    xet_s3_rc_t     rc;
    xet_s3_error_t  why;

    rc = xet_s3_get(reader->store->s3, reader->name, offset, len, buf, &why);

    return (rc == XET_S3_OK)
           ? XET_OK
           : xet_store_s3_failed(reader->store, reader->name, rc, &why, error);
}


/*
 * Hashes and sends parts, under the name of the future object.  The data was
 * just verified or read, so it is still in the processor's cache.
 */

static void
xet_store_s3_grown(xet_store_writer_t *writer, const void *data, size_t len)
{
    xet_s3_error_t  why;

    if (writer->name[0] == '\0') {
        return;
    }

    if (writer->upload == NULL) {
        writer->upload = xet_s3_upload_create(writer->store->s3, writer->name);

        if (writer->upload == NULL) {
            return;
        }

        writer->made = (int64_t) time(NULL);
    }

    if (xet_s3_upload_hashed(writer->upload) + len == writer->size
        && xet_s3_upload_hash(writer->upload, data, len, &why) != XET_S3_OK)
    {
        return;
    }

    (void) xet_s3_upload_ready(writer->upload, writer->fd, writer->size, &why);
}


static xet_status_t
xet_store_s3_keep(xet_store_writer_t *writer, const char *name, int replace,
    int late, xet_store_error_t *error)
{
    int64_t         now;
    struct stat     st;
    xet_s3_rc_t     rc;
    xet_store_t    *store;
    xet_s3_error_t  why;

    store = writer->store;
    now = (int64_t) time(NULL);

    if (fstat(writer->fd, &st) != 0) {
        return xet_store_failed_path("fstat", store->temp, error);
    }

    /*
     * An object keeps the name under which its upload began, and is as old as
     * its first part.  An upload that has another name, or whose parts are too
     * old, is dropped, and the file is uploaded again.
     */

    if (writer->upload && xet_s3_upload_begun(writer->upload)
        && (now - writer->made > XET_STORE_UPLOAD_AGE
            || strcmp(writer->name, name) != 0))
    {
        xet_s3_upload_destroy(writer->upload);
        writer->upload = NULL;
    }

    if (writer->upload == NULL) {
        writer->upload = xet_s3_upload_create(store->s3, name);

        if (writer->upload == NULL) {
            return xet_store_says(store, name, XET_NOMEM, "out of memory",
                                  error);
        }
    }

    if (!xet_s3_upload_begun(writer->upload)) {
        writer->made = now;
    }

    rc = xet_s3_upload_finish(writer->upload, name, writer->fd,
                              (uint64_t) st.st_size, !replace, &why);

    xet_s3_upload_destroy(writer->upload);
    writer->upload = NULL;

    if (rc == XET_S3_EXISTS) {
        return XET_AGAIN;
    }

    /* even after a failure, the object may exist */

    writer->kept = 1;

    return (rc == XET_S3_OK)
           ? XET_OK : xet_store_s3_failed(store, name, rc, &why, error);
}


/* Removes objects.  An acknowledged DELETE is durable. */

static xet_status_t
xet_store_s3_remove(xet_store_t *store, xet_store_item_t *items, size_t n,
    xet_store_error_t *error)
{
    size_t          i;
    xet_s3_rc_t     rc;
    const char     *name;
    xet_status_t    status;
    xet_s3_item_t  *all;
    xet_s3_error_t  why;

    if (n == 1) {
        rc = xet_s3_delete(store->s3, items[0].name, &why);

        items[0].status = (rc == XET_S3_OK)
                          ? XET_OK
                          : xet_store_s3_failed(store, items[0].name, rc, &why,
                                                error);
        return items[0].status;
    }

    all = xet_store_s3_items(items, n);

    if (all == NULL) {
        return xet_store_says(store, "", XET_NOMEM, "out of memory", error);
    }

    rc = xet_s3_delete_all(store->s3, all, n, &why);

    for (i = 0; i < n && all[i].rc == XET_S3_OK; i++) { /* void */ }

    name = (i < n) ? items[i].name : "";

    status = (rc == XET_S3_OK)
             ? XET_OK : xet_store_s3_failed(store, name, rc, &why, error);

    for (i = 0; i < n; i++) {
        items[i].status = (all[i].rc == XET_S3_OK) ? XET_OK : status;
    }

    free(all);

    return status;
}


static xet_status_t
xet_store_s3_link(xet_store_t *store, const char *from, const char *to,
    xet_store_error_t *error)
{
    xet_s3_rc_t     rc;
    xet_s3_error_t  why;

    rc = xet_s3_copy(store->s3, from, to, 1, &why);

    return (rc == XET_S3_OK)
           ? XET_OK : xet_store_s3_failed(store, to, rc, &why, error);
}


static xet_status_t
xet_store_s3_list(xet_store_list_t *list, xet_store_error_t *error)
{
    list->names = malloc(XET_STORE_S3_PAGE * sizeof(xet_s3_name_t));

    return list->names ? XET_OK
           : xet_store_says(list->store, list->folder, XET_NOMEM,
                            "out of memory", error);
}


static xet_status_t
xet_store_s3_next(xet_store_list_t *list, xet_store_item_t *item,
    xet_store_error_t *error)
{
    char            prefix[XET_STORE_NAME_MAX + 1];
    xet_status_t    rc;
    xet_s3_name_t  *name;

    (void) snprintf(prefix, sizeof(prefix), "%s%s", list->folder,
                    list->folder[0] ? "/" : "");

    if (list->i == list->n) {

        if (list->last) {
            return XET_DONE;
        }

        rc = xet_store_s3_page(list, prefix, error);

        if (rc != XET_OK || list->n == 0) {
            return (rc == XET_OK) ? XET_DONE : rc;
        }
    }

    name = &list->names[list->i++];

    memset(item, 0, sizeof(xet_store_item_t));

    item->name = name->name + strlen(prefix);
    item->size = name->size;
    item->modified = name->modified + list->ahead;
    item->changed = name->modified;

    return XET_OK;
}


static xet_status_t
xet_store_s3_page(xet_store_list_t *list, const char *prefix,
    xet_store_error_t *error)
{
    int64_t         now;
    xet_s3_rc_t     rc;
    xet_s3_error_t  why;

    list->i = 0;
    list->n = 0;

    rc = xet_s3_list(list->store->s3, prefix, list->after, list->names,
                     XET_STORE_S3_PAGE, &list->n, &now, &why);

    if (rc != XET_S3_OK) {
        list->n = 0;
        return xet_store_s3_failed(list->store, prefix, rc, &why, error);
    }

    list->ahead = (now > 0) ? (int64_t) time(NULL) - now : 0;
    list->last = (list->n < XET_STORE_S3_PAGE);

    if (list->n) {
        memcpy(list->after, list->names[list->n - 1].name,
               sizeof(list->after));
    }

    return XET_OK;
}


/*
 * Aborts abandoned uploads.  XET_S3_BAD means that the store can't list
 * uploads: such a store must remove abandoned uploads itself, so this is not
 * an error.
 */

static xet_status_t
xet_store_s3_sweep(xet_store_t *store, uint64_t age, size_t *n,
    xet_store_error_t *error)
{
    xet_s3_rc_t     rc;
    xet_s3_error_t  why;

    rc = xet_s3_sweep(store->s3, "xorbs/", age, n, &why);

    return (rc == XET_S3_OK || rc == XET_S3_BAD)
           ? XET_OK : xet_store_s3_failed(store, "xorbs/", rc, &why, error);
}
