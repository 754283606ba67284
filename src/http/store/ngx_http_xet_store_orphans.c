
/*
 * Files of the store without a row: what a crash leaves between the two.  The
 * chore "gc" asks PostgreSQL about names that are listed here.
 *
 * Only the upload that has made a copy can put a row that names it, because the
 * tag in its name was drawn for that upload, and "xet rebuild", which holds a
 * lock that is asked for with each look.  So a copy without a row that is too
 * old to belong to a running upload may be removed.  Even if the row is put at
 * this very moment nothing is lost:
 *
 *     suspect    no row was found for its name
 *     aside      the file is renamed to a name that nobody asks for, in the
 *                folder of temporary files
 *     removable  no row was found once more: the file is removed
 *     back       otherwise it gets its name back, durably, before it loses the
 *                other one
 *
 * What has a name of a row is never removed, only the other name.  So several
 * sweeps may take up the same file that is aside: whoever comes second finds it
 * gone, which is no error.  A crash leaves it aside, for the next sweep.
 *
 * Each job looks first whether the folder is the store of the database: on
 * another disk nothing has a row.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_ops.h"


#define NGX_HTTP_XET_ORPHANS_TIME  50          /* ms */


static void ngx_http_xet_orphans_next(ngx_http_xet_orphans_t *o);
static xet_status_t ngx_http_xet_orphans_open(ngx_http_xet_orphans_t *o,
    ngx_log_t *log);
static void ngx_http_xet_orphans_entry(ngx_http_xet_orphans_t *o,
    const char *name);
static xet_status_t ngx_http_xet_orphans_take(ngx_http_xet_orphans_t *o,
    const ngx_http_xet_orphan_t *orphan, ngx_log_t *log);
static ngx_uint_t ngx_http_xet_orphans_old(const ngx_file_info_t *fi);
static ngx_uint_t ngx_http_xet_orphans_known(ngx_http_xet_orphans_t *o,
    const ngx_file_info_t *fi);
static xet_status_t ngx_http_xet_orphans_back(ngx_http_xet_orphans_t *o,
    const char *aside, char *path, ngx_log_t *log);
static void ngx_http_xet_orphans_paths(const ngx_http_xet_orphans_t *o,
    const ngx_http_xet_orphan_t *orphan, char *aside, char *path);
static xet_status_t ngx_http_xet_orphans_tmp(const ngx_http_xet_orphans_t *o,
    char *path);
static void ngx_http_xet_orphans_close_job(void *data, ngx_log_t *log);


xet_status_t
ngx_http_xet_orphans_files_list_job(ngx_http_xet_orphans_t *o, ngx_uint_t max,
    ngx_log_t *log)
{
    uint64_t        began;
    xet_status_t    rc;
    struct dirent  *entry;

    began = ngx_http_xet_store_clock();

    max = ngx_min(max, NGX_HTTP_XET_ORPHANS_NAMES);

    o->n = 0;
    o->i = 0;

    rc = ngx_http_xet_store_identity_check_job(o->store, log);

    while (rc == XET_OK && o->folder < NGX_HTTP_XET_ORPHANS_FOLDERS
           && o->n < max
           && ngx_http_xet_store_clock() - began < NGX_HTTP_XET_ORPHANS_TIME)
    {
        if (o->dir == NULL) {
            rc = ngx_http_xet_orphans_open(o, log);
            continue;
        }

        ngx_set_errno(0);

        entry = readdir(o->dir);

        if (entry) {
            ngx_http_xet_orphans_entry(o, entry->d_name);
            continue;
        }

        if (ngx_errno) {
            rc = ngx_http_xet_store_failed(log, "readdir", o->store->name.data);
        }

        (void) closedir(o->dir);
        o->dir = NULL;

        if (rc == XET_OK) {
            ngx_http_xet_orphans_next(o);
        }
    }

    return rc;
}


static void
ngx_http_xet_orphans_next(ngx_http_xet_orphans_t *o)
{
    o->folder = (o->folder == NGX_HTTP_XET_ORPHANS_ASIDE) ? o->first
                                                          : o->folder + 1;
}


/* A folder that is not there has no files: the identity was looked at. */

static xet_status_t
ngx_http_xet_orphans_open(ngx_http_xet_orphans_t *o, ngx_log_t *log)
{
    char          path[NGX_MAX_PATH];
    u_char       *p;
    xet_status_t  rc;

    rc = ngx_http_xet_orphans_tmp(o, path);

    if (rc != XET_OK) {
        return rc;
    }

    if (o->folder != NGX_HTTP_XET_ORPHANS_ASIDE) {
        p = ngx_cpymem(path, o->store->name.data, o->store->name.len);
        *ngx_sprintf(p, "/xorbs/" NGX_HTTP_XET_NAMESPACE "/%02xi", o->folder)
        = '\0';
    }

    o->dir = opendir(path);

    if (o->dir) {
        return XET_OK;
    }

    if (ngx_errno == NGX_ENOENT) {
        ngx_http_xet_orphans_next(o);
        return XET_OK;
    }

    return ngx_http_xet_store_failed(log, "opendir", path);
}


static void
ngx_http_xet_orphans_entry(ngx_http_xet_orphans_t *o, const char *name)
{
    u_char                  folder[3];
    size_t                  len;
    ngx_fd_t                fd;
    ngx_file_info_t         fi;
    ngx_http_xet_orphan_t  *orphan;

    if (name[0] == '.') {
        return;
    }

    len = ngx_strlen(name);

    orphan = &o->names[o->n];
    ngx_memzero(orphan, sizeof(ngx_http_xet_orphan_t));

    if (o->folder == NGX_HTTP_XET_ORPHANS_ASIDE) {

        if (xet_xorb_aside_parse(&orphan->sweep, &orphan->xorb, &orphan->tag,
                                 (u_char *) name, len)
            == XET_OK)
        {
            orphan->aside = 1;
            orphan->suspect = 1;
            o->n++;
        }

        return;
    }

    (void) ngx_sprintf(folder, "%02xi", o->folder);

    if (xet_xorb_name_parse(&orphan->xorb, &orphan->tag, (u_char *) name, len)
        == XET_OK
        && ngx_memcmp(folder, name, 2) == 0)
    {
        o->n++;
        return;
    }

    fd = dirfd(o->dir);

    if (fd >= 0 && fstatat(fd, name, &fi, AT_SYMLINK_NOFOLLOW) == 0
        && ngx_http_xet_orphans_old(&fi))
    {
        o->found++;
    }
}


xet_status_t
ngx_http_xet_orphans_files_take_job(ngx_http_xet_orphans_t *o, ngx_log_t *log)
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
    char                    aside[NGX_MAX_PATH], path[NGX_MAX_PATH];
    ngx_file_info_t         fi, named;
    ngx_http_xet_orphan_t  *taken;

    taken = &o->taken[o->ntaken];
    *taken = *orphan;

    if (!taken->aside) {
        taken->sweep = (uint64_t) ngx_pid;
    }

    ngx_http_xet_orphans_paths(o, taken, aside, path);

    if (lstat(taken->aside ? aside : path, &fi) == -1) {
        return (ngx_errno == NGX_ENOENT)
               ? XET_OK
               : ngx_http_xet_store_failed(log, "lstat", path);
    }

    if (!ngx_http_xet_orphans_old(&fi)) {
        return XET_OK;
    }

    if (!taken->aside || lstat(path, &named) == -1
        || named.st_ino != fi.st_ino)
    {
        o->found++;
    }

    if (!taken->aside) {

        if (!ngx_http_xet_orphans_known(o, &fi)) {
            return XET_OK;
        }

        if (rename(path, aside) == -1) {
            return (ngx_errno == NGX_ENOENT)
                   ? XET_OK
                   : ngx_http_xet_store_failed(log, "rename", path);
        }

        taken->aside = 1;
    }

    o->ntaken++;

    return XET_OK;
}


xet_status_t
ngx_http_xet_orphans_files_settle_job(ngx_http_xet_orphans_t *o, ngx_log_t *log)
{
    char                    aside[NGX_MAX_PATH], path[NGX_MAX_PATH];
    ngx_uint_t              i;
    xet_status_t            rc;
    ngx_file_info_t         fi, named;
    ngx_http_xet_orphan_t  *taken;

    rc = ngx_http_xet_store_identity_check_job(o->store, log);

    for (i = 0; i < o->ntaken && rc == XET_OK; i++) {
        taken = &o->taken[i];

        ngx_http_xet_orphans_paths(o, taken, aside, path);

        if (lstat(aside, &fi) == -1) {

            if (ngx_errno != NGX_ENOENT) {
                rc = ngx_http_xet_store_failed(log, "lstat", aside);
            }

            continue;
        }

        /* another file may have got the name before the rename */

        if (!taken->removable || !ngx_http_xet_orphans_old(&fi)
            || !ngx_http_xet_orphans_known(o, &fi))
        {
            o->back++;
            rc = ngx_http_xet_orphans_back(o, aside, path, log);
            continue;
        }

        if (unlink(aside) == 0) {

            /* a sweep may have died when it had its name back, too */

            if (lstat(path, &named) == 0 && named.st_ino == fi.st_ino) {
                continue;
            }

            o->removed++;

            if (fi.st_nlink == 1) {
                o->bytes += (uint64_t) ngx_file_size(&fi);
            }

            ngx_log_error(NGX_LOG_INFO, log, 0,
                          "xet: \"%s\" has no row, and was removed", path);

        } else if (ngx_errno != NGX_ENOENT) {
            rc = ngx_http_xet_store_failed(log, "unlink", aside);
        }
    }

    if (rc != XET_OK || o->removed == 0) {
        return rc;
    }

    /* what comes back after a crash all the same is found once more */

    return (ngx_http_xet_orphans_tmp(o, path) == XET_OK)
           ? ngx_http_xet_store_sync_dir_job(path, log) : XET_INTERNAL;
}


static xet_status_t
ngx_http_xet_orphans_back(ngx_http_xet_orphans_t *o, const char *aside,
    char *path, ngx_log_t *log)
{
    xet_status_t  rc;

    if (link(aside, path) == -1 && ngx_errno != NGX_EEXIST) {
        return (ngx_errno == NGX_ENOENT)
               ? XET_OK
               : ngx_http_xet_store_failed(log, "link", path);
    }

    *strrchr(path, '/') = '\0';

    rc = ngx_http_xet_store_sync_dir_job(path, log);

    if (rc != XET_OK) {
        return rc;
    }

    if (unlink(aside) == -1 && ngx_errno != NGX_ENOENT) {
        return ngx_http_xet_store_failed(log, "unlink", aside);
    }

    return XET_OK;
}


/* Whether it is a file that no upload is about to put the row of. */

static ngx_uint_t
ngx_http_xet_orphans_old(const ngx_file_info_t *fi)
{
    return ngx_is_file(fi)
           && ngx_file_mtime(fi) < time(NULL) - XET_XORB_ORPHAN_AGE;
}


/* Whether it is of a time of which the database must know. */

static ngx_uint_t
ngx_http_xet_orphans_known(ngx_http_xet_orphans_t *o,
    const ngx_file_info_t *fi)
{
    return ngx_file_mtime(fi) < o->newest - XET_XORB_ORPHAN_AGE_MIN
           && ngx_file_mtime(fi) >= o->since && fi->st_ctime >= o->since;
}


/* Both have NGX_MAX_PATH bytes; that they fit was looked at with the list. */

static void
ngx_http_xet_orphans_paths(const ngx_http_xet_orphans_t *o,
    const ngx_http_xet_orphan_t *orphan, char *aside, char *path)
{
    u_char  *p;

    p = ngx_cpymem(aside, o->store->name.data, o->store->name.len);
    p = ngx_cpymem(p, "/tmp/", sizeof("/tmp/") - 1);
    *xet_xorb_aside_print(p, orphan->sweep, &orphan->xorb, orphan->tag) = '\0';

    p = ngx_cpymem(path, o->store->name.data, o->store->name.len);
    *ngx_http_xet_store_path(p, &orphan->xorb, orphan->tag) = '\0';
}


/* The folder of temporary files; path has NGX_MAX_PATH bytes. */

static xet_status_t
ngx_http_xet_orphans_tmp(const ngx_http_xet_orphans_t *o, char *path)
{
    u_char  *p;

    if (o->store->name.len + sizeof("/tmp/") + XET_XORB_ASIDE_MAX > NGX_MAX_PATH
        || o->store->name.len + NGX_HTTP_XET_XORB_PATH_MAX + 1 > NGX_MAX_PATH)
    {
        return XET_STORE_FAILED;
    }

    p = ngx_cpymem(path, o->store->name.data, o->store->name.len);
    ngx_memcpy(p, "/tmp", sizeof("/tmp"));

    return XET_OK;
}


void
ngx_http_xet_orphans_close(ngx_http_xet_orphans_t *o)
{
    if (o->dir) {
        ngx_http_xet_task_detached(ngx_http_xet_orphans_close_job, &o->dir,
                                   sizeof(DIR *));
        o->dir = NULL;
    }
}


static void
ngx_http_xet_orphans_close_job(void *data, ngx_log_t *log)
{
    DIR  **dir = data;

    if (closedir(*dir) == -1) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno,
                      "xet: close of a folder of the store failed");
    }
}
