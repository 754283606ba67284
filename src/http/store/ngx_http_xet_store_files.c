
/*
 * A store in a folder: <store>/xorbs/<namespace>/<aa>/<hash>.<tag>.
 *
 * A copy gets its name by link(), which never replaces a file, and is durable
 * when the name is: fdatasync, link, fsync of the folder.  All folders are made
 * and synced by the master before it starts workers, so that no copy lies in a
 * folder whose own entry is not yet durable.
 *
 * A copy that is read is a descriptor, which belongs to the job.
 *
 * Where several nodes have the folder by NFS, a node knows what is in it from
 * when it looked last, until it opens the folder; and a file that another node
 * has removed can't be read any more though it is open (ESTALE).  So nothing is
 * said to be missing before the folder was opened, and who reads a file that
 * has become stale opens it anew, which tells whether the copy is there: the
 * bytes of a name never change.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_ops.h"


#define NGX_HTTP_XET_FLUSH  (4 * 1024 * 1024)


static ngx_int_t ngx_http_xet_files_init(ngx_http_xet_store_t *store,
    ngx_cycle_t *cycle);
static ngx_int_t ngx_http_xet_files_sync(ngx_cycle_t *cycle, u_char *path);
static xet_status_t ngx_http_xet_files_identity_read_job(
    ngx_http_xet_store_t *store, u_char *identity, ngx_log_t *log);
static xet_status_t ngx_http_xet_files_identity_make_job(
    ngx_http_xet_store_t *store, const u_char *identity, ngx_log_t *log);
static void ngx_http_xet_files_grown_job(ngx_http_xet_temp_t *file,
    const u_char *data, size_t len, ngx_log_t *log);
static xet_status_t ngx_http_xet_files_sync_job(ngx_http_xet_temp_t *file,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_files_commit_job(ngx_http_xet_temp_t *file,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_files_link_job(ngx_http_xet_temp_t *file,
    const char *path, ngx_log_t *log);
static void ngx_http_xet_files_stat_job(ngx_http_xet_store_t *store,
    ngx_http_xet_copy_stat_t *stats, ngx_uint_t n, ngx_log_t *log);
static xet_status_t ngx_http_xet_files_stat_one_job(
    ngx_http_xet_store_t *store, ngx_http_xet_copy_stat_t *copy,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_files_open_job(ngx_http_xet_opened_t *copy,
    ngx_log_t *log);
static ngx_uint_t ngx_http_xet_files_stale_job(ngx_http_xet_opened_t *copy);
static xet_status_t ngx_http_xet_files_read_job(ngx_http_xet_opened_t *copy,
    u_char *buf, size_t len, uint64_t offset, ngx_log_t *log);
static xet_status_t ngx_http_xet_files_copy_failed(ngx_http_xet_opened_t *copy,
    const char *why, ngx_log_t *log);
static void ngx_http_xet_files_close_job(ngx_http_xet_opened_t *copy,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_files_remove_job(ngx_http_xet_store_t *store,
    const ngx_http_xet_copy_name_t *name, ngx_log_t *log);
static xet_status_t ngx_http_xet_files_remove_all_job(
    ngx_http_xet_store_t *store, const ngx_http_xet_copy_name_t *names,
    ngx_uint_t n, ngx_log_t *log);
static xet_status_t ngx_http_xet_files_removed_job(ngx_http_xet_store_t *store,
    const ngx_http_xet_copy_name_t *name, ngx_log_t *log);


const ngx_http_xet_store_ops_t  ngx_http_xet_store_files_ops = {
    "folder",
    ngx_http_xet_files_init,
    ngx_http_xet_files_identity_read_job,
    ngx_http_xet_files_identity_make_job,
    ngx_http_xet_files_grown_job,
    ngx_http_xet_files_sync_job,
    ngx_http_xet_files_commit_job,
    NULL,
    ngx_http_xet_files_stat_job,
    ngx_http_xet_files_open_job,
    ngx_http_xet_files_read_job,
    ngx_http_xet_files_close_job,
    ngx_http_xet_files_remove_job,
    ngx_http_xet_files_remove_all_job,
    ngx_http_xet_orphans_files_list_job,
    ngx_http_xet_orphans_files_take_job,
    ngx_http_xet_orphans_files_settle_job
};


static ngx_int_t
ngx_http_xet_files_init(ngx_http_xet_store_t *store, ngx_cycle_t *cycle)
{
    u_char      path[NGX_MAX_PATH], *p, *last;
    ngx_int_t   rc;
    ngx_uint_t  i, created;

    last = path + NGX_MAX_PATH;

    p = ngx_slprintf(path, last, "%V/xorbs%Z", &store->name) - 1;

    if (ngx_http_xet_store_make_dir(cycle, path) == NGX_ERROR) {
        return NGX_ERROR;
    }

    p = ngx_slprintf(p, last, "/" NGX_HTTP_XET_NAMESPACE "%Z") - 1;

    if (ngx_http_xet_store_make_dir(cycle, path) == NGX_ERROR) {
        return NGX_ERROR;
    }

    created = 0;

    for (i = 0; i < 256; i++) {
        (void) ngx_slprintf(p, last, "/%02xui%Z", i);

        rc = ngx_http_xet_store_make_dir(cycle, path);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        created |= (rc == NGX_OK);
    }

    if (!created) {
        return NGX_OK;
    }

    *p = '\0';

    return ngx_http_xet_files_sync(cycle, path);
}


static ngx_int_t
ngx_http_xet_files_sync(ngx_cycle_t *cycle, u_char *path)
{
    int        fd;
    ngx_int_t  rc;

    rc = NGX_OK;
    fd = open((char *) path, O_RDONLY|O_DIRECTORY);

    if (fd == -1 || syncfs(fd) == -1) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "xet: syncing \"%s\" failed", path);
        rc = NGX_ERROR;
    }

    if (fd != -1) {
        close(fd);
    }

    return rc;
}


static xet_status_t
ngx_http_xet_files_identity_read_job(ngx_http_xet_store_t *store,
    u_char *identity, ngx_log_t *log)
{
    int      fd;
    char     path[NGX_MAX_PATH];
    u_char   buf[NGX_HTTP_XET_IDENTITY_LEN + 1];
    ssize_t  n;

    (void) ngx_snprintf((u_char *) path, NGX_MAX_PATH, "%V/identity%Z",
                        &store->name);

    fd = open(path, O_RDONLY|O_CLOEXEC);

    if (fd == -1) {

        if (ngx_errno == NGX_ENOENT) {
            return XET_DONE;
        }

        return ngx_http_xet_store_failed(log, "open", path);
    }

    n = read(fd, buf, sizeof(buf));

    close(fd);

    if (n != sizeof(buf) || buf[NGX_HTTP_XET_IDENTITY_LEN] != '\n') {
        ngx_log_error(NGX_LOG_CRIT, log, 0,
                      "xet: \"%s\" is not the identity of a store", path);
        return XET_STORE_FAILED;
    }

    buf[NGX_HTTP_XET_IDENTITY_LEN] = '\0';

    ngx_memcpy(identity, buf, sizeof(buf));

    return XET_OK;
}


static xet_status_t
ngx_http_xet_files_identity_make_job(ngx_http_xet_store_t *store,
    const u_char *identity, ngx_log_t *log)
{
    int           fd;
    char          path[NGX_MAX_PATH], temp[NGX_MAX_PATH];
    u_char        line[NGX_HTTP_XET_IDENTITY_LEN + 1];
    u_char        id[NGX_HTTP_XET_IDENTITY_LEN + 1];
    xet_status_t  status;

    /* of its own on all nodes, which may have the same process ids */

    status = ngx_http_xet_store_identity_draw(id);

    if (status != XET_OK) {
        return status;
    }

    (void) ngx_snprintf((u_char *) path, NGX_MAX_PATH, "%V/identity%Z",
                        &store->name);
    (void) ngx_snprintf((u_char *) temp, NGX_MAX_PATH,
                        "%V/identity.%s%Z", &store->temp, id);

    ngx_memcpy(line, identity, NGX_HTTP_XET_IDENTITY_LEN);
    line[NGX_HTTP_XET_IDENTITY_LEN] = '\n';

    fd = open(temp, O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0644);

    if (fd == -1) {
        return ngx_http_xet_store_failed(log, "open", temp);
    }

    status = XET_OK;

    if (write(fd, line, sizeof(line)) != sizeof(line) || fsync(fd) == -1) {
        status = ngx_http_xet_store_failed(log, "write", temp);

    } else if (link(temp, path) == -1 && ngx_errno != NGX_EEXIST) {
        status = ngx_http_xet_store_failed(log, "link", path);
    }

    close(fd);

    (void) unlink(temp);

    if (status != XET_OK) {
        return status;
    }

    return ngx_http_xet_store_sync_dir_job((char *) store->name.data, log);
}


/* The disk begins to write, so that the commit waits only for the rest. */

static void
ngx_http_xet_files_grown_job(ngx_http_xet_temp_t *file, const u_char *data,
    size_t len, ngx_log_t *log)
{
#ifdef SYNC_FILE_RANGE_WRITE

    if (file->size - file->flushed >= NGX_HTTP_XET_FLUSH) {
        (void) sync_file_range(file->fd, file->flushed,
                               file->size - file->flushed,
                               SYNC_FILE_RANGE_WRITE);
        file->flushed = file->size;
    }

#endif
}


static xet_status_t
ngx_http_xet_files_sync_job(ngx_http_xet_temp_t *file, ngx_log_t *log)
{
    if (fdatasync(file->fd) == -1) {
        return ngx_http_xet_store_failed(log, "fdatasync",
                                         file->store->temp.data);
    }

    return XET_OK;
}


static xet_status_t
ngx_http_xet_files_commit_job(ngx_http_xet_temp_t *file, ngx_log_t *log)
{
    char             path[NGX_MAX_PATH];
    xet_status_t     rc;
    ngx_file_info_t  fi;

    rc = ngx_http_xet_store_copy_path(path, file->store, &file->xorb,
                                      file->tag);
    if (rc != XET_OK) {
        return rc;
    }

    /* the copy is as old as its last byte */

    if (ngx_fd_info(file->fd, &fi) == NGX_FILE_ERROR) {
        return ngx_http_xet_store_failed(log, "fstat", path);
    }

    file->made = (uint64_t) ngx_file_mtime(&fi);

    rc = ngx_http_xet_files_link_job(file, path, log);

    if (rc != XET_OK) {
        return rc;
    }

    *strrchr(path, '/') = '\0';

    return ngx_http_xet_store_sync_dir_job(path, log);
}


/* Links the file to path; XET_AGAIN when another file has that name. */

static xet_status_t
ngx_http_xet_files_link_job(ngx_http_xet_temp_t *file, const char *path,
    ngx_log_t *log)
{
    char  fd[sizeof("/proc/self/fd/") + NGX_INT32_LEN];

    if (file->name[0]) {

        if (link((char *) file->name, path) == 0) {
            file->committed = 1;

            if (unlink((char *) file->name) == -1 && ngx_errno != NGX_ENOENT) {
                return ngx_http_xet_store_failed(log, "unlink", file->name);
            }

            file->name[0] = '\0';

            return XET_OK;
        }

    } else {
        *ngx_sprintf((u_char *) fd, "/proc/self/fd/%d", file->fd) = '\0';

        if (linkat(AT_FDCWD, fd, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0) {
            file->committed = 1;
            return XET_OK;
        }
    }

    if (ngx_errno == NGX_EEXIST) {
        return XET_AGAIN;
    }

    return ngx_http_xet_store_failed(log, "link", path);
}


static void
ngx_http_xet_files_stat_job(ngx_http_xet_store_t *store,
    ngx_http_xet_copy_stat_t *stats, ngx_uint_t n, ngx_log_t *log)
{
    ngx_uint_t  i;

    for (i = 0; i < n; i++) {
        stats[i].status = ngx_http_xet_files_stat_one_job(store, &stats[i],
                                                          log);
    }
}


static xet_status_t
ngx_http_xet_files_stat_one_job(ngx_http_xet_store_t *store,
    ngx_http_xet_copy_stat_t *copy, ngx_log_t *log)
{
    char             path[NGX_MAX_PATH];
    xet_status_t     rc;
    ngx_file_info_t  fi;

    rc = ngx_http_xet_store_copy_path(path, store, &copy->name.xorb,
                                      copy->name.tag);

    if (rc != XET_OK) {
        return rc;
    }

    if (ngx_file_info(path, &fi) == NGX_FILE_ERROR
        && (!ngx_http_xet_store_doubtful(ngx_errno)
            || ngx_http_xet_store_look_anew_job(path) != NGX_OK
            || ngx_file_info(path, &fi) == NGX_FILE_ERROR))
    {
        return (ngx_errno == NGX_ENOENT)
               ? XET_DONE : ngx_http_xet_store_failed(log, "stat", path);
    }

    copy->size = ngx_is_file(&fi) ? (uint64_t) ngx_file_size(&fi)
                                  : NGX_MAX_OFF_T_VALUE;

    return XET_OK;
}


static xet_status_t
ngx_http_xet_files_open_job(ngx_http_xet_opened_t *copy, ngx_log_t *log)
{
    char          path[NGX_MAX_PATH];
    xet_status_t  rc;

    rc = ngx_http_xet_store_copy_path(path, copy->store, &copy->xorb,
                                      copy->tag);
    if (rc != XET_OK) {
        return rc;
    }

    copy->fd = ngx_http_xet_store_open_copy_job(path, O_NOFOLLOW);

    if (copy->fd != NGX_INVALID_FILE) {
        return XET_OK;
    }

    if (ngx_errno == NGX_ENOENT) {
        copy->err = NGX_ENOENT;
        return XET_DONE;
    }

    return ngx_http_xet_files_copy_failed(copy, "its file can't be opened",
                                          log);
}


/* 1: the copy is open again; 0: it is not, and the errno says why. */

static ngx_uint_t
ngx_http_xet_files_stale_job(ngx_http_xet_opened_t *copy)
{
    char      path[NGX_MAX_PATH];
    ngx_fd_t  fd;

    if (ngx_http_xet_store_copy_path(path, copy->store, &copy->xorb, copy->tag)
        != XET_OK)
    {
        return 0;
    }

    fd = ngx_http_xet_store_open_copy_job(path, O_NOFOLLOW);

    if (fd == NGX_INVALID_FILE) {
        return 0;
    }

    (void) close(copy->fd);
    copy->fd = fd;

    return 1;
}


static xet_status_t
ngx_http_xet_files_read_job(ngx_http_xet_opened_t *copy, u_char *buf,
    size_t len, uint64_t offset, ngx_log_t *log)
{
    ssize_t     n;
    ngx_uint_t  stale;

    stale = 0;

    while (len) {
        n = pread(copy->fd, buf, len, (off_t) offset);

        if (n == -1) {

            if (ngx_errno == NGX_EINTR) {
                continue;
            }

            if (ngx_errno == ESTALE && !stale++) {

                if (ngx_http_xet_files_stale_job(copy)) {
                    continue;
                }

                if (ngx_errno == NGX_ENOENT) {
                    return XET_DONE;
                }
            }

            return ngx_http_xet_files_copy_failed(copy,
                                                  "its file can't be read",
                                                  log);
        }

        if (n == 0) {
            return XET_AGAIN;
        }

        buf += n;
        len -= (size_t) n;
        offset += (uint64_t) n;
    }

    return XET_OK;
}


static xet_status_t
ngx_http_xet_files_copy_failed(ngx_http_xet_opened_t *copy, const char *why,
    ngx_log_t *log)
{
    u_char  name[XET_XORB_NAME_MAX + 1];

    copy->err = ngx_errno;
    copy->why = why;

    *xet_xorb_name_print(name, &copy->xorb, copy->tag) = '\0';

    ngx_log_error(NGX_LOG_CRIT, log, copy->err, "xet: xorb %s: %s", name, why);

    return ngx_http_xet_store_status(copy->err);
}


static void
ngx_http_xet_files_close_job(ngx_http_xet_opened_t *copy, ngx_log_t *log)
{
    u_char  name[XET_XORB_NAME_MAX + 1];

    if (close(copy->fd) == -1) {
        *xet_xorb_name_print(name, &copy->xorb, copy->tag) = '\0';

        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno,
                      "xet: close \"%s\" failed", name);
    }

    copy->fd = NGX_INVALID_FILE;
}


static xet_status_t
ngx_http_xet_files_remove_job(ngx_http_xet_store_t *store,
    const ngx_http_xet_copy_name_t *name, ngx_log_t *log)
{
    char          path[NGX_MAX_PATH];
    xet_status_t  rc;

    rc = ngx_http_xet_store_copy_path(path, store, &name->xorb, name->tag);

    if (rc == XET_OK && unlink(path) == -1 && ngx_errno != NGX_ENOENT) {
        rc = ngx_http_xet_store_failed(log, "unlink", path);
    }

    return rc;
}


/*
 * Copies come in the order of their folders; a folder is synced behind the last
 * copy in it, or the name could come back after a crash, without a note.
 */

static xet_status_t
ngx_http_xet_files_remove_all_job(ngx_http_xet_store_t *store,
    const ngx_http_xet_copy_name_t *names, ngx_uint_t n, ngx_log_t *log)
{
    u_char        this[XET_HASH_STR_LEN], next[XET_HASH_STR_LEN];
    ngx_uint_t    i;
    xet_status_t  rc;

    rc = XET_OK;

    for (i = 0; rc == XET_OK && i < n; i++) {

        rc = ngx_http_xet_files_remove_job(store, &names[i], log);

        if (rc != XET_OK) {
            break;
        }

        if (i + 1 < n) {
            (void) xet_hash_print(this, &names[i].xorb);
            (void) xet_hash_print(next, &names[i + 1].xorb);

            if (ngx_memcmp(this, next, 2) == 0) {
                continue;
            }
        }

        rc = ngx_http_xet_files_removed_job(store, &names[i], log);
    }

    return rc;
}


static xet_status_t
ngx_http_xet_files_removed_job(ngx_http_xet_store_t *store,
    const ngx_http_xet_copy_name_t *name, ngx_log_t *log)
{
    char          path[NGX_MAX_PATH];
    xet_status_t  rc;

    rc = ngx_http_xet_store_copy_path(path, store, &name->xorb, name->tag);

    if (rc != XET_OK) {
        return rc;
    }

    *strrchr(path, '/') = '\0';

    /* the store is there, so without its folder the copy was gone already */

    if (access(path, F_OK) == -1 && ngx_errno == NGX_ENOENT) {
        return XET_OK;
    }

    return ngx_http_xet_store_sync_dir_job(path, log);
}
