
/*
 * Finds and removes orphans: files of the store that have no row, because a
 * crash has left them behind.  The background job "gc" looks up the listed
 * names in PostgreSQL.
 *
 * Only two writers can add a row that refers to a copy: the upload that made
 * the copy, because the copy id was drawn for this upload, and "xet rebuild",
 * whose lock every sweep checks.  So a copy without a row may be removed if it
 * is too old for a running upload.  The order of steps is safe even if a row
 * is added at the same time:
 *
 *     suspect     no row refers to the copy
 *     quarantine  the file is renamed into the folder of temporary files; an
 *                 object can't be renamed, and keeps its name
 *     removable   still no row refers to the copy: the file is removed
 *     back        a row refers to the copy: the file gets its old name again,
 *                 durably, before the name in quarantine is removed
 *
 * Only the name in quarantine is removed, never a name that a row refers to.
 * So several sweeps may handle the same file.  The second sweep finds that the
 * file is missing, which is not an error.  After a crash the file stays in
 * quarantine until the next sweep.
 *
 * A sweep starts with the files in quarantine.  In a bucket it first removes
 * old staged objects that were never committed, and old parts of unfinished
 * uploads.
 *
 * Each job first checks that the store belongs to this database: on another
 * disk no file would have a row.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_base.h"


#define NGX_HTTP_XET_ORPHANS_TIME  50          /* ms */


/* A batch of old staged objects, which are removed with one call. */

typedef struct {
    xet_store_item_t  items[NGX_HTTP_XET_ORPHANS_NAMES];
    char              names[NGX_HTTP_XET_ORPHANS_NAMES][XET_STORE_NAME_MAX];
    ngx_uint_t        n;
} ngx_http_xet_orphans_staged_t;


static xet_status_t ngx_http_xet_orphans_read(ngx_http_xet_orphans_t *o,
    ngx_http_xet_orphans_staged_t *staged, ngx_uint_t max, ngx_log_t *log);
static ngx_uint_t ngx_http_xet_orphans_late(ngx_http_xet_orphans_t *o,
    uint64_t began);
static void ngx_http_xet_orphans_next(ngx_http_xet_orphans_t *o);
static xet_status_t ngx_http_xet_orphans_open(ngx_http_xet_orphans_t *o,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_orphans_parts(ngx_http_xet_orphans_t *o,
    ngx_log_t *log);
static void ngx_http_xet_orphans_entry(ngx_http_xet_orphans_t *o,
    ngx_http_xet_orphans_staged_t *staged, xet_store_item_t *item);
static xet_status_t ngx_http_xet_orphans_drop(ngx_http_xet_orphans_t *o,
    ngx_http_xet_orphans_staged_t *staged, ngx_log_t *log);
static xet_status_t ngx_http_xet_orphans_take(ngx_http_xet_orphans_t *o,
    const ngx_http_xet_orphan_t *orphan, ngx_log_t *log);
static xet_status_t ngx_http_xet_orphans_sure(ngx_http_xet_orphans_t *o,
    const ngx_http_xet_orphan_t *taken, xet_store_item_t *item, char *name,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_orphans_look(ngx_http_xet_orphans_t *o,
    const ngx_http_xet_orphan_t *orphan, const char *name,
    xet_store_item_t *item, ngx_log_t *log);
static ngx_uint_t ngx_http_xet_orphans_two(ngx_http_xet_orphans_t *o,
    const char *name, const xet_store_item_t *item);
static ngx_uint_t ngx_http_xet_orphans_old(const xet_store_item_t *item);
static ngx_uint_t ngx_http_xet_orphans_known(ngx_http_xet_orphans_t *o,
    const xet_store_item_t *item);
static void ngx_http_xet_orphans_name(const ngx_http_xet_orphan_t *orphan,
    char *name);
static void ngx_http_xet_orphans_close_job(void *data, ngx_log_t *log);


xet_status_t
ngx_http_xet_orphans_list_job(ngx_http_xet_orphans_t *o, ngx_uint_t max,
    ngx_log_t *log)
{
    xet_status_t                    rc;
    ngx_http_xet_orphans_staged_t  *staged;

    o->n = 0;
    o->i = 0;

    rc = ngx_http_xet_store_identity_check_job(o->store, log);

    if (rc != XET_OK) {
        return rc;
    }

    staged = NULL;

    if (o->store->s3 && o->folder == NGX_HTTP_XET_ORPHANS_QUARANTINE) {
        staged = ngx_calloc(sizeof(ngx_http_xet_orphans_staged_t), log);

        if (staged == NULL) {
            return XET_NOMEM;
        }
    }

    rc = ngx_http_xet_orphans_read(o, staged,
                                   ngx_min(max, NGX_HTTP_XET_ORPHANS_NAMES),
                                   log);

    if (staged) {

        if (rc == XET_OK && staged->n) {
            rc = ngx_http_xet_orphans_drop(o, staged, log);
        }

        ngx_free(staged);
    }

    return rc;
}


static xet_status_t
ngx_http_xet_orphans_read(ngx_http_xet_orphans_t *o,
    ngx_http_xet_orphans_staged_t *staged, ngx_uint_t max, ngx_log_t *log)
{
    uint64_t           began;
    xet_status_t       rc;
    xet_store_item_t   item;
    xet_store_error_t  error;

    rc = XET_OK;
    began = ngx_http_xet_store_clock();

    while (rc == XET_OK && o->folder < NGX_HTTP_XET_ORPHANS_FOLDERS
           && o->n < max && (staged == NULL || staged->n < max)
           && !ngx_http_xet_orphans_late(o, began))
    {
        if (!o->open) {

            if (staged && o->folder != NGX_HTTP_XET_ORPHANS_QUARANTINE) {
                break;
            }

            rc = ngx_http_xet_orphans_open(o, log);
            continue;
        }

        rc = o->store->backend->ops->next(&o->list, &item, &error);

        if (rc == XET_OK) {
            ngx_http_xet_orphans_entry(o, staged, &item);
            continue;
        }

        xet_store_list_close(&o->list);
        o->open = 0;

        if (rc == XET_DONE) {
            ngx_http_xet_orphans_next(o);
            rc = XET_OK;
        }

        rc = ngx_http_xet_store_log(o->store, rc, &error, log);
    }

    return rc;
}


/*
 * Returns whether the time of the job is over.  A list that a bucket has
 * returned is always processed to its end.
 */

static ngx_uint_t
ngx_http_xet_orphans_late(ngx_http_xet_orphans_t *o, uint64_t began)
{
    return (!o->open || o->list.i == o->list.n)
           && ngx_http_xet_store_clock() - began >= NGX_HTTP_XET_ORPHANS_TIME;
}


static void
ngx_http_xet_orphans_next(ngx_http_xet_orphans_t *o)
{
    o->folder = (o->folder == NGX_HTTP_XET_ORPHANS_QUARANTINE) ? o->first
                                                          : o->folder + 1;
}


/*
 * Starts listing the current folder.  A missing folder counts as empty,
 * because the identity of the store was checked before.
 */

static xet_status_t
ngx_http_xet_orphans_open(ngx_http_xet_orphans_t *o, ngx_log_t *log)
{
    char               folder[XET_STORE_COPY_MAX];
    xet_status_t       rc;
    xet_store_error_t  error;

    if (o->folder != NGX_HTTP_XET_ORPHANS_QUARANTINE) {
        *ngx_sprintf((u_char *) folder,
                     "xorbs/" NGX_HTTP_XET_NAMESPACE "/%02xi", o->folder)
        = '\0';

    } else if (o->store->s3) {
        rc = ngx_http_xet_orphans_parts(o, log);

        if (rc != XET_OK) {
            return rc;
        }

        ngx_memcpy(folder, "staging", sizeof("staging"));

    } else {
        ngx_memcpy(folder, "tmp", sizeof("tmp"));
    }

    rc = xet_store_list_open(&o->list, o->store->backend, folder, &error);

    if (rc == XET_DONE) {
        ngx_http_xet_orphans_next(o);
        return XET_OK;
    }

    o->open = (rc == XET_OK);

    return ngx_http_xet_store_log(o->store, rc, &error, log);
}


static xet_status_t
ngx_http_xet_orphans_parts(ngx_http_xet_orphans_t *o, ngx_log_t *log)
{
    size_t             n;
    xet_status_t       rc;
    xet_store_error_t  error;

    rc = o->store->backend->ops->sweep(o->store->backend, XET_XORB_ORPHAN_AGE,
                                       &n, &error);

    if (rc == XET_OK && n) {
        ngx_log_error(NGX_LOG_INFO, log, 0,
                      "xet: \"%V\": unfinished uploads removed: %uz",
                      &o->store->name, n);
    }

    return ngx_http_xet_store_log(o->store, rc, &error, log);
}


static void
ngx_http_xet_orphans_entry(ngx_http_xet_orphans_t *o,
    ngx_http_xet_orphans_staged_t *staged, xet_store_item_t *item)
{
    char                    path[XET_STORE_NAME_MAX];
    u_char                  folder[3];
    size_t                  len;
    const char             *name;
    xet_store_error_t       error;
    ngx_http_xet_orphan_t  *orphan;

    name = item->name;
    len = ngx_strlen(name);

    if (staged) {

        if (ngx_http_xet_orphans_old(item)) {
            *ngx_snprintf((u_char *) staged->names[staged->n],
                          XET_STORE_NAME_MAX - 1, "%s/%s", o->list.folder,
                          name)
            = '\0';
            staged->items[staged->n].name = staged->names[staged->n];
            staged->n++;
        }

        return;
    }

    orphan = &o->names[o->n];
    ngx_memzero(orphan, sizeof(ngx_http_xet_orphan_t));

    if (o->folder == NGX_HTTP_XET_ORPHANS_QUARANTINE) {

        if (xet_xorb_quarantine_parse(&orphan->sweep, &orphan->xorb,
                                      &orphan->copy_id, (u_char *) name, len) ==
            XET_OK)
        {
            orphan->quarantine = 1;
            orphan->suspect = 1;
            o->n++;
        }

        return;
    }

    (void) ngx_sprintf(folder, "%02xi", o->folder);

    if (xet_xorb_name_parse(&orphan->xorb, &orphan->copy_id, (u_char *) name,
                            len)
        == XET_OK
        && ngx_memcmp(folder, name, 2) == 0)
    {
        orphan->size = item->size;
        orphan->modified = item->modified;
        orphan->changed = item->changed;
        o->n++;
        return;
    }

    if (name[0] == '.') {
        return;
    }

    if (o->store->s3 == NULL) {
        *ngx_snprintf((u_char *) path, sizeof(path) - 1, "%s/%s",
                      o->list.folder, name)
        = '\0';

        item->name = path;
        o->store->backend->ops->stat(o->store->backend, item, 1, &error);
    }

    o->found += ngx_http_xet_orphans_old(item);
}


static xet_status_t
ngx_http_xet_orphans_drop(ngx_http_xet_orphans_t *o,
    ngx_http_xet_orphans_staged_t *staged, ngx_log_t *log)
{
    ngx_uint_t         i, n;
    xet_status_t       rc;
    xet_store_error_t  error;

    n = 0;

    rc = o->store->backend->ops->remove(o->store->backend, staged->items,
                                        staged->n, &error);

    for (i = 0; i < staged->n; i++) {
        n += (staged->items[i].status == XET_OK);
    }

    o->staged += n;

    if (n) {
        ngx_log_error(NGX_LOG_INFO, log, 0,
                      "xet: \"%V\": staged uploads removed: %ui",
                      &o->store->name, n);
    }

    return ngx_http_xet_store_log(o->store, rc, &error, log);
}


xet_status_t
ngx_http_xet_orphans_take_job(ngx_http_xet_orphans_t *o, ngx_log_t *log)
{
    uint64_t                began;
    xet_status_t            rc;
    ngx_http_xet_orphan_t  *orphan;

    began = ngx_http_xet_store_clock();

    o->ntaken = 0;

    rc = ngx_http_xet_store_identity_check_job(o->store, log);

    while (rc == XET_OK && o->i < o->n
           && o->ntaken < NGX_HTTP_XET_ORPHANS_TAKEN
           && ngx_http_xet_store_clock() - began < NGX_HTTP_XET_ORPHANS_TIME)
    {
        orphan = &o->names[o->i++];

        if (orphan->suspect) {
            rc = ngx_http_xet_orphans_take(o, orphan, log);
        }
    }

    return rc;
}


static xet_status_t
ngx_http_xet_orphans_take(ngx_http_xet_orphans_t *o,
    const ngx_http_xet_orphan_t *orphan, ngx_log_t *log)
{
    char                    name[XET_STORE_COPY_MAX];
    char                    quarantine[XET_STORE_NAME_MAX];
    xet_store_t            *files;
    xet_status_t            rc;
    xet_store_item_t        item;
    xet_store_error_t       error;
    ngx_http_xet_orphan_t  *taken;

    files = o->store->backend;

    taken = &o->taken[o->ntaken];
    *taken = *orphan;

    (void) xet_store_copy(name, &taken->xorb, taken->copy_id);

    if (!taken->quarantine) {
        taken->sweep = (uint64_t) ngx_pid;
    }

    ngx_http_xet_orphans_name(taken, quarantine);

    rc = ngx_http_xet_orphans_look(o, taken, taken->quarantine ? quarantine :
                                   name, &item, log);

    if (rc != XET_OK || !ngx_http_xet_orphans_old(&item)) {
        return (rc == XET_DONE || rc == XET_STORE_DAMAGED) ? XET_OK : rc;
    }

    if (!taken->quarantine || !ngx_http_xet_orphans_two(o, name, &item)) {
        o->found++;
    }

    if (!taken->quarantine) {

        if (!ngx_http_xet_orphans_known(o, &item)) {
            return XET_OK;
        }

        if (files->ops->quarantine) {
            rc = files->ops->quarantine(files, name, quarantine, &error);

            if (rc != XET_OK) {
                return (rc == XET_DONE)
                       ? XET_OK
                       : ngx_http_xet_store_log(o->store, rc, &error, log);
            }

            taken->quarantine = 1;
        }
    }

    o->ntaken++;

    return XET_OK;
}


xet_status_t
ngx_http_xet_orphans_settle_job(ngx_http_xet_orphans_t *o, ngx_log_t *log)
{
    char               names[NGX_HTTP_XET_ORPHANS_TAKEN][XET_STORE_NAME_MAX];
    char               copy[XET_STORE_COPY_MAX];
    ngx_uint_t         i, k, n;
    xet_status_t       rc;
    xet_store_item_t   items[NGX_HTTP_XET_ORPHANS_TAKEN], *item;
    xet_store_error_t  error;

    n = 0;

    rc = ngx_http_xet_store_identity_look_job(o->store, log);

    for (i = 0; i < o->ntaken && rc == XET_OK; i++) {

        rc = ngx_http_xet_orphans_sure(o, &o->taken[i], &items[n], names[n],
                                       log);
        if (rc == XET_OK) {
            o->taken[n++] = o->taken[i];

        } else if (rc == XET_DONE) {
            rc = XET_OK;
        }
    }

    if (n == 0 || rc != XET_OK) {
        return rc;
    }

    /* if a removed file reappears after a crash, the next sweep finds it */

    rc = o->store->backend->ops->remove(o->store->backend, items, n, &error);

    for (i = 0; i < n; i++) {
        item = &items[i];

        /* a crashed sweep may have left the file under both names */

        (void) xet_store_copy(copy, &o->taken[i].xorb, o->taken[i].copy_id);

        if (item->status != XET_OK || (o->taken[i].quarantine &&
                                       ngx_http_xet_orphans_two(o, copy,
                                                                item)))
        {
            continue;
        }

        /* the bytes of a file are freed with its last name */

        for (k = 0; k < i; k++) {
            item->links -= (item->links > 1 && items[k].id == item->id
                            && items[k].status == XET_OK);
        }

        o->removed++;
        o->bytes += (item->links <= 1) ? item->size : 0;

        ngx_log_error(NGX_LOG_INFO, log, 0,
                      "xet: \"%V/%s\" has no row and was removed",
                      &o->store->name, copy);
    }

    return ngx_http_xet_store_log(o->store, rc, &error, log);
}


/*
 * Checks again whether the file may be removed.  XET_OK: remove it.  XET_DONE:
 * the file is missing, or has its old name again.
 */

static xet_status_t
ngx_http_xet_orphans_sure(ngx_http_xet_orphans_t *o,
    const ngx_http_xet_orphan_t *taken, xet_store_item_t *item, char *name,
    ngx_log_t *log)
{
    char               copy[XET_STORE_COPY_MAX];
    xet_store_t       *files;
    xet_status_t       rc;
    xet_store_error_t  error;

    files = o->store->backend;

    (void) xet_store_copy(copy, &taken->xorb, taken->copy_id);

    if (taken->quarantine) {
        ngx_http_xet_orphans_name(taken, name);

    } else {
        ngx_memcpy(name, copy, sizeof(copy));
    }

    rc = ngx_http_xet_orphans_look(o, taken, name, item, log);

    if (rc != XET_OK && rc != XET_STORE_DAMAGED) {
        return rc;
    }

    /* the sweep may have renamed another file than the one it checked */

    if (taken->removable && ngx_http_xet_orphans_old(item)
        && ngx_http_xet_orphans_known(o, item))
    {
        return XET_OK;
    }

    o->back++;

    if (taken->quarantine) {
        rc = files->ops->back(files, name, copy, &error);

        if (rc != XET_OK) {
            return ngx_http_xet_store_log(o->store, rc, &error, log);
        }
    }

    return XET_DONE;
}


/*
 * Reads the attributes of a file.  The list of a bucket contains the
 * attributes of all objects, so a bucket gets no request.
 */

static xet_status_t
ngx_http_xet_orphans_look(ngx_http_xet_orphans_t *o,
    const ngx_http_xet_orphan_t *orphan, const char *name,
    xet_store_item_t *item, ngx_log_t *log)
{
    xet_store_error_t  error;

    ngx_memzero(item, sizeof(xet_store_item_t));

    item->name = name;

    if (o->store->s3) {
        item->size = orphan->size;
        item->modified = orphan->modified;
        item->changed = orphan->changed;

        return XET_OK;
    }

    o->store->backend->ops->stat(o->store->backend, item, 1, &error);

    return ngx_http_xet_store_log(o->store, item->status, &error, log);
}


/* Returns whether name refers to the same file as item. */

static ngx_uint_t
ngx_http_xet_orphans_two(ngx_http_xet_orphans_t *o, const char *name,
    const xet_store_item_t *item)
{
    xet_store_item_t   named;
    xet_store_error_t  error;

    named.name = name;

    o->store->backend->ops->stat(o->store->backend, &named, 1, &error);

    return named.status == XET_OK && named.id == item->id;
}


/*
 * Returns whether the file is so old that no upload can add its row any more.
 */

static ngx_uint_t
ngx_http_xet_orphans_old(const xet_store_item_t *item)
{
    return item->status == XET_OK
           && item->modified < (int64_t) time(NULL) - XET_XORB_ORPHAN_AGE;
}


/*
 * Returns whether the file was made in the period for which the database must
 * have its row: from "since" on, and long enough before "newest".  Times of an
 * object store are not compared with the clock of this machine.
 */

static ngx_uint_t
ngx_http_xet_orphans_known(ngx_http_xet_orphans_t *o,
    const xet_store_item_t *item)
{
    int64_t  made;

    made = o->store->s3 ? item->changed : item->modified;

    return made < o->newest - XET_XORB_ORPHAN_AGE_MIN
           && made >= o->since && item->changed >= o->since;
}


/*
 * Writes the name of the file in quarantine, at most XET_STORE_NAME_MAX bytes.
 */

static void
ngx_http_xet_orphans_name(const ngx_http_xet_orphan_t *orphan, char *name)
{
    ngx_memcpy(name, "tmp/", 4);

    *xet_xorb_quarantine_print((u_char *) name + 4, orphan->sweep,
                               &orphan->xorb, orphan->copy_id)
    = '\0';
}


void
ngx_http_xet_orphans_close(ngx_http_xet_orphans_t *o)
{
    if (o->open) {
        o->open = 0;
        ngx_http_xet_task_detached(ngx_http_xet_orphans_close_job, &o->list,
                                   sizeof(xet_store_list_t));
    }
}


static void
ngx_http_xet_orphans_close_job(void *data, ngx_log_t *log)
{
    xet_store_list_close(data);
}
