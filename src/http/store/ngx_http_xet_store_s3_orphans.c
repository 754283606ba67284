
/*
 * Objects of a bucket without a row, and parts of uploads that never became an
 * object: what a crash leaves.  As ngx_http_xet_store_orphans.c, which says why
 * what is old and has no row may go.
 *
 *     uploads    parts of a day and more ago are dropped, once a sweep
 *     suspect    no row was found for the name
 *     taken      old enough, by the clock of the store
 *     removable  no row was found once more: the object is deleted
 *
 * An object store has no rename, so nothing is taken aside between the two
 * looks.  Only the upload that has made a copy can put its row, and it has
 * given up long before its copy is old; "xet rebuild" holds a lock that is
 * asked for with each look.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_ops.h"


#define NGX_HTTP_XET_ORPHANS_STAGED  256       /* a job looks at */


static xet_status_t ngx_http_xet_orphans_s3_sweep_job(
    ngx_http_xet_orphans_t *o, ngx_log_t *log);
static xet_status_t ngx_http_xet_orphans_s3_staged_job(
    ngx_http_xet_orphans_t *o, ngx_log_t *log);
static xet_s3_rc_t ngx_http_xet_orphans_s3_drop_job(ngx_http_xet_orphans_t *o,
    xet_s3_name_t *names, size_t n, int64_t before, size_t *dropped,
    xet_s3_error_t *error);
static xet_status_t ngx_http_xet_orphans_s3_folder_job(
    ngx_http_xet_orphans_t *o, ngx_uint_t max, ngx_log_t *log);
static void ngx_http_xet_orphans_s3_entry(ngx_http_xet_orphans_t *o,
    const xet_s3_name_t *name);
static void ngx_http_xet_orphans_s3_gone(ngx_http_xet_orphans_t *o,
    const ngx_http_xet_orphan_t *orphan, ngx_log_t *log);
static ngx_uint_t ngx_http_xet_orphans_s3_old(const ngx_http_xet_orphans_t *o,
    time_t modified);


xet_status_t
ngx_http_xet_orphans_s3_list_job(ngx_http_xet_orphans_t *o, ngx_uint_t max,
    ngx_log_t *log)
{
    xet_status_t  rc;

    o->n = 0;
    o->i = 0;

    rc = ngx_http_xet_store_identity_check_job(o->store, log);

    if (rc != XET_OK) {
        return rc;
    }

    if (o->folder == NGX_HTTP_XET_ORPHANS_ASIDE) {
        return ngx_http_xet_orphans_s3_sweep_job(o, log);
    }

    return ngx_http_xet_orphans_s3_folder_job(o, ngx_min(max,
                                              NGX_HTTP_XET_ORPHANS_NAMES), log);
}


static xet_status_t
ngx_http_xet_orphans_s3_sweep_job(ngx_http_xet_orphans_t *o, ngx_log_t *log)
{
    size_t          n;
    xet_s3_rc_t     rc;
    xet_s3_error_t  error;

    if (o->after[0]) {
        return ngx_http_xet_orphans_s3_staged_job(o, log);
    }

    rc = xet_s3_sweep(o->store->s3, "xorbs/", XET_XORB_ORPHAN_AGE, &n, &error);

    /* a store that can't list uploads in parts has to see to them itself */

    if (rc != XET_S3_OK && rc != XET_S3_BAD) {
        return ngx_http_xet_store_s3_failed(o->store, rc, &error, log);
    }

    if (rc == XET_S3_OK && n) {
        ngx_log_error(NGX_LOG_INFO, log, 0,
                      "xet: \"%V\": %uz unfinished uploads were dropped",
                      &o->store->name, n);
    }

    return ngx_http_xet_orphans_s3_staged_job(o, log);
}


/*
 * What clients have put into the bucket and nobody has made a copy of: all of
 * it, by pages, one a job.  However much is put in a day, no old name is safe
 * behind young ones.
 */

static xet_status_t
ngx_http_xet_orphans_s3_staged_job(ngx_http_xet_orphans_t *o, ngx_log_t *log)
{
    size_t           n, dropped;
    int64_t          now;
    xet_s3_rc_t      rc;
    xet_s3_name_t   *names;
    xet_s3_error_t   error;

    names = ngx_alloc(NGX_HTTP_XET_ORPHANS_STAGED
                      * (sizeof(xet_s3_name_t) + sizeof(xet_s3_item_t)), log);
    if (names == NULL) {
        return XET_NOMEM;
    }

    dropped = 0;

    rc = xet_s3_list(o->store->s3, "staging/", o->after, names,
                     NGX_HTTP_XET_ORPHANS_STAGED, &n, &now, &error);

    if (rc == XET_S3_OK) {
        rc = ngx_http_xet_orphans_s3_drop_job(o, names, n,
                                              now - XET_XORB_ORPHAN_AGE,
                                              &dropped, &error);
    }

    if (rc == XET_S3_OK && n == NGX_HTTP_XET_ORPHANS_STAGED) {
        ngx_cpystrn((u_char *) o->after, (u_char *) names[n - 1].name,
                    sizeof(o->after));

    } else {
        o->folder = o->first;
        o->after[0] = '\0';
    }

    ngx_free(names);

    o->staged += dropped;

    if (dropped) {
        ngx_log_error(NGX_LOG_INFO, log, 0,
                      "xet: \"%V\": %uz staged uploads were dropped",
                      &o->store->name, dropped);
    }

    return (rc == XET_S3_OK)
           ? XET_OK
           : ngx_http_xet_store_s3_failed(o->store, rc, &error, log);
}


/* Those of before; behind the names there is room for as many items. */

static xet_s3_rc_t
ngx_http_xet_orphans_s3_drop_job(ngx_http_xet_orphans_t *o,
    xet_s3_name_t *names, size_t n, int64_t before, size_t *dropped,
    xet_s3_error_t *error)
{
    size_t          i, old;
    xet_s3_rc_t     rc;
    xet_s3_item_t  *items;

    items = (xet_s3_item_t *) (names + NGX_HTTP_XET_ORPHANS_STAGED);
    old = 0;

    for (i = 0; i < n; i++) {
        if (names[i].modified < before) {
            items[old++].name = names[i].name;
        }
    }

    rc = xet_s3_delete_all(o->store->s3, items, old, error);

    for (i = 0; i < old; i++) {
        *dropped += (items[i].rc == XET_S3_OK);
    }

    return rc;
}


/* One request a job. */

static xet_status_t
ngx_http_xet_orphans_s3_folder_job(ngx_http_xet_orphans_t *o, ngx_uint_t max,
    ngx_log_t *log)
{
    char             prefix[sizeof("xorbs/" NGX_HTTP_XET_NAMESPACE "/aa/")];
    size_t           i, n;
    int64_t          now;
    xet_s3_rc_t      rc;
    xet_s3_name_t   *names;
    xet_s3_error_t   error;

    *ngx_sprintf((u_char *) prefix, "xorbs/" NGX_HTTP_XET_NAMESPACE "/%02xi/",
                 o->folder) = '\0';

    names = ngx_alloc(max * sizeof(xet_s3_name_t), log);
    if (names == NULL) {
        return XET_NOMEM;
    }

    rc = xet_s3_list(o->store->s3, prefix, o->after, names, max, &n, &now,
                     &error);

    if (rc != XET_S3_OK) {
        ngx_free(names);
        return ngx_http_xet_store_s3_failed(o->store, rc, &error, log);
    }

    o->now = (time_t) now;

    for (i = 0; i < n; i++) {
        ngx_http_xet_orphans_s3_entry(o, &names[i]);
    }

    if (n < max) {
        o->folder++;
        o->after[0] = '\0';

    } else {
        ngx_cpystrn((u_char *) o->after, (u_char *) names[n - 1].name,
                    sizeof(o->after));
    }

    ngx_free(names);

    return XET_OK;
}


static void
ngx_http_xet_orphans_s3_entry(ngx_http_xet_orphans_t *o,
    const xet_s3_name_t *name)
{
    size_t                  len;
    const char             *last;
    ngx_http_xet_orphan_t  *orphan;

    last = strrchr(name->name, '/');
    last = last ? last + 1 : name->name;
    len = ngx_strlen(last);

    orphan = &o->names[o->n];
    ngx_memzero(orphan, sizeof(ngx_http_xet_orphan_t));

    if (xet_xorb_name_parse(&orphan->xorb, &orphan->tag, (u_char *) last, len)
        == XET_OK
        && last - name->name >= 3 && ngx_memcmp(last - 3, last, 2) == 0)
    {
        orphan->size = name->size;
        orphan->modified = (time_t) name->modified;
        o->n++;
        return;
    }

    if (ngx_http_xet_orphans_s3_old(o, (time_t) name->modified)) {
        o->found++;
    }
}


/* Computes only: what is taken stays where it is. */

xet_status_t
ngx_http_xet_orphans_s3_take_job(ngx_http_xet_orphans_t *o, ngx_log_t *log)
{
    ngx_http_xet_orphan_t  *orphan;

    o->ntaken = 0;

    while (o->i < o->n && o->ntaken < NGX_HTTP_XET_ORPHANS_TAKEN) {
        orphan = &o->names[o->i++];

        if (!orphan->suspect
            || !ngx_http_xet_orphans_s3_old(o, orphan->modified))
        {
            continue;
        }

        o->found++;

        if (orphan->modified < o->newest - XET_XORB_ORPHAN_AGE_MIN
            && orphan->modified >= o->since)
        {
            o->taken[o->ntaken++] = *orphan;
        }
    }

    return XET_OK;
}


xet_status_t
ngx_http_xet_orphans_s3_settle_job(ngx_http_xet_orphans_t *o, ngx_log_t *log)
{
    ngx_uint_t                i, n;
    xet_s3_rc_t               rcs[NGX_HTTP_XET_ORPHANS_TAKEN];
    xet_status_t              rc;
    ngx_http_xet_orphan_t    *gone[NGX_HTTP_XET_ORPHANS_TAKEN];
    ngx_http_xet_copy_name_t  names[NGX_HTTP_XET_ORPHANS_TAKEN];

    rc = ngx_http_xet_store_identity_look_job(o->store, log);

    if (rc != XET_OK) {
        return rc;
    }

    n = 0;

    for (i = 0; i < o->ntaken; i++) {

        if (!o->taken[i].removable) {
            o->back++;
            continue;
        }

        names[n].xorb = o->taken[i].xorb;
        names[n].tag = o->taken[i].tag;
        gone[n++] = &o->taken[i];
    }

    rc = ngx_http_xet_objects_remove_each_job(o->store, names, n, rcs, log);

    for (i = 0; i < n; i++) {
        if (rcs[i] == XET_S3_OK) {
            ngx_http_xet_orphans_s3_gone(o, gone[i], log);
        }
    }

    return rc;
}


static void
ngx_http_xet_orphans_s3_gone(ngx_http_xet_orphans_t *o,
    const ngx_http_xet_orphan_t *orphan, ngx_log_t *log)
{
    u_char  name[XET_XORB_NAME_MAX + 1];

    o->removed++;
    o->bytes += orphan->size;

    *xet_xorb_name_print(name, &orphan->xorb, orphan->tag) = '\0';

    ngx_log_error(NGX_LOG_INFO, log, 0,
                  "xet: \"%V\": xorb %s has no row, and was removed",
                  &o->store->name, name);
}


static ngx_uint_t
ngx_http_xet_orphans_s3_old(const ngx_http_xet_orphans_t *o, time_t modified)
{
    return modified < o->now - XET_XORB_ORPHAN_AGE;
}
