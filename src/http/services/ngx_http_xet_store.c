
/*
 * The bytes of the store: paths, temporary files, durable commits.
 *
 * A xorb appears under its name only complete and only after its data is on
 * the disk: fdatasync, then link, then fsync of the folder, and of the folder
 * above when it was new.  A name that is there already should have the same
 * content, because it is the hash of it; it is replaced all the same, by
 * rename, so that an upload heals a file that was damaged.
 *
 * Everything here blocks and runs in a thread, except for what opens and
 * releases the structure.  One owner at a time: the job of the request, or,
 * after the request's death, the detached job that closes it.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store.h"


#ifndef O_TMPFILE
#define O_TMPFILE  020200000
#endif


#define NGX_HTTP_XET_FILE_MODE  0644
#define NGX_HTTP_XET_DIR_MODE   0755
#define NGX_HTTP_XET_NAMES_MAX  65536
#define NGX_HTTP_XET_FLUSH      (4 * 1024 * 1024)


typedef struct {
    ngx_fd_t   fd;
    char       name[NGX_MAX_PATH];
} ngx_http_xet_store_close_t;


static void ngx_http_xet_store_cleanup(void *data);
static void ngx_http_xet_store_close_job(void *data, ngx_log_t *log);
static void ngx_http_xet_store_drop_job(ngx_fd_t fd, const char *name,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_store_open_job(ngx_http_xet_file_t *file,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_store_failed(ngx_log_t *log,
    const char *call, const void *name);
static xet_status_t ngx_http_xet_store_link_job(ngx_http_xet_file_t *file,
    const char *path, ngx_log_t *log);
static xet_status_t ngx_http_xet_store_replace_job(ngx_http_xet_file_t *file,
    const char *from, const char *path, ngx_log_t *log);
static xet_status_t ngx_http_xet_store_sync_dir_job(const char *path,
    ngx_log_t *log);


static ngx_atomic_uint_t  ngx_http_xet_store_serial;


ngx_http_xet_file_t *
ngx_http_xet_store_file(ngx_http_request_t *r)
{
    ngx_http_xet_file_t       *file;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    file = ngx_http_xet_state(r, sizeof(ngx_http_xet_file_t),
                              ngx_http_xet_store_cleanup);
    if (file == NULL) {
        return NULL;
    }

    file->store = xmcf->store;
    file->temp = xmcf->temp;
    file->fd = NGX_INVALID_FILE;
    file->anonymous = xmcf->anonymous;

    file->name = ngx_pnalloc(r->pool, xmcf->temp.len + 1 + NGX_INT64_LEN + 1
                                      + NGX_ATOMIC_T_LEN + 1);
    if (file->name == NULL) {
        return NULL;
    }

    file->name[0] = '\0';

    return file;
}


static void
ngx_http_xet_store_cleanup(void *data)
{
    ngx_http_xet_file_t *file = data;

    ngx_http_xet_store_close_t  ctx;

    if (file->fd == NGX_INVALID_FILE) {
        return;
    }

    /* closing the last reference of a large file frees its blocks: slow */

    ctx.fd = file->fd;
    ngx_cpystrn((u_char *) ctx.name, file->name, sizeof(ctx.name));

    file->fd = NGX_INVALID_FILE;

    ngx_http_xet_task_detached(ngx_http_xet_store_close_job, &ctx,
                               offsetof(ngx_http_xet_store_close_t, name)
                               + ngx_strlen(ctx.name) + 1);
}


static void
ngx_http_xet_store_close_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_store_close_t *ctx = data;

    ngx_http_xet_store_drop_job(ctx->fd, ctx->name, log);
}


static void
ngx_http_xet_store_drop_job(ngx_fd_t fd, const char *name, ngx_log_t *log)
{
    if (name[0] && unlink(name) == -1 && ngx_errno != NGX_ENOENT) {
        ngx_log_error(NGX_LOG_CRIT, log, ngx_errno, "xet: unlink \"%s\" failed",
                      name);
    }

    if (close(fd) == -1) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno, "xet: close \"%s\" failed",
                      name);
    }
}


void
ngx_http_xet_store_reset_job(ngx_http_xet_file_t *file, ngx_log_t *log)
{
    if (file->fd == NGX_INVALID_FILE) {
        return;
    }

    ngx_http_xet_store_drop_job(file->fd, (char *) file->name, log);

    file->fd = NGX_INVALID_FILE;
    file->size = 0;
    file->flushed = 0;
    file->name[0] = '\0';
}


static xet_status_t
ngx_http_xet_store_open_job(ngx_http_xet_file_t *file, ngx_log_t *log)
{
    ngx_uint_t    i;
    xet_status_t  rc;

    if (file->anonymous) {

        file->fd = open((char *) file->temp.data,
                        O_TMPFILE|O_RDWR|O_CLOEXEC, NGX_HTTP_XET_FILE_MODE);

        if (file->fd != NGX_INVALID_FILE) {
            return XET_OK;
        }

        if (ngx_errno != EOPNOTSUPP && ngx_errno != EISDIR
            && ngx_errno != NGX_EINVAL)
        {
            return ngx_http_xet_store_failed(log, "open", file->temp.data);
        }

        file->anonymous = 0;
    }

    /* a name may be taken by what a crash has left */

    for (i = 0; i < NGX_HTTP_XET_NAMES_MAX; i++) {

        *ngx_sprintf(file->name, "%V/%P-%uA", &file->temp, ngx_pid,
                     ngx_atomic_fetch_add(&ngx_http_xet_store_serial, 1))
        = '\0';

        file->fd = open((char *) file->name, O_CREAT|O_EXCL|O_RDWR|O_CLOEXEC,
                        NGX_HTTP_XET_FILE_MODE);

        if (file->fd != NGX_INVALID_FILE) {
            return XET_OK;
        }

        if (ngx_errno != NGX_EEXIST) {
            break;
        }
    }

    rc = ngx_http_xet_store_failed(log, "open", file->name);

    file->name[0] = '\0';

    return rc;
}


static xet_status_t
ngx_http_xet_store_failed(ngx_log_t *log, const char *call, const void *name)
{
    ngx_err_t  err;

    err = ngx_errno;

    ngx_log_error(NGX_LOG_CRIT, log, err, "xet: %s \"%s\" failed", call, name);

    return ngx_http_xet_store_status(err);
}


xet_status_t
ngx_http_xet_store_status(ngx_err_t err)
{
    switch (err) {

    case NGX_ENOSPC:
    case EDQUOT:
        return XET_STORE_FULL;

    case NGX_EMFILE:
    case NGX_ENFILE:
        return XET_STORE_FILES;

    default:
        return XET_STORE_FAILED;
    }
}


xet_status_t
ngx_http_xet_store_write_job(ngx_http_xet_file_t *file, const u_char *data,
    size_t len, ngx_log_t *log)
{
    xet_status_t  rc;

    if (file->fd == NGX_INVALID_FILE) {
        rc = ngx_http_xet_store_open_job(file, log);

        if (rc != XET_OK) {
            return rc;
        }
    }

    rc = ngx_http_xet_store_patch_job(file, data, len, file->size, log);

    if (rc != XET_OK) {
        return rc;
    }

    file->size += (off_t) len;

#ifdef SYNC_FILE_RANGE_WRITE

    /* the disk begins at once, and the commit waits for the rest only */

    if (file->size - file->flushed >= NGX_HTTP_XET_FLUSH) {
        (void) sync_file_range(file->fd, file->flushed,
                               file->size - file->flushed,
                               SYNC_FILE_RANGE_WRITE);
        file->flushed = file->size;
    }

#endif

    return XET_OK;
}


xet_status_t
ngx_http_xet_store_patch_job(ngx_http_xet_file_t *file, const u_char *data,
    size_t len, off_t offset, ngx_log_t *log)
{
    ssize_t  n;

    while (len) {
        n = pwrite(file->fd, data, len, offset);

        if (n == -1) {

            if (ngx_errno == NGX_EINTR) {
                continue;
            }

            return ngx_http_xet_store_failed(log, "pwrite", file->temp.data);
        }

        data += n;
        len -= (size_t) n;
        offset += n;
    }

    return XET_OK;
}


xet_status_t
ngx_http_xet_store_read_job(ngx_http_xet_file_t *file, u_char *data,
    size_t len, off_t offset, ngx_log_t *log)
{
    ssize_t  n;

    while (len) {
        n = pread(file->fd, data, len, offset);

        if (n == -1 && ngx_errno == NGX_EINTR) {
            continue;
        }

        if (n <= 0) {
            return ngx_http_xet_store_failed(log, "pread", file->temp.data);
        }

        data += n;
        len -= (size_t) n;
        offset += n;
    }

    return XET_OK;
}


u_char *
ngx_http_xet_store_path(u_char *dst, const xet_hash_t *xorb)
{
    u_char  *aa;

    dst = ngx_cpymem(dst, "/xorbs/" NGX_HTTP_XET_NAMESPACE "/",
                     sizeof("/xorbs/" NGX_HTTP_XET_NAMESPACE "/") - 1);
    aa = dst;
    dst += 3;

    dst = xet_hash_print(dst, xorb);

    aa[0] = aa[3];
    aa[1] = aa[4];
    aa[2] = '/';

    return dst;
}


xet_status_t
ngx_http_xet_store_commit_job(ngx_http_xet_file_t *file,
    const xet_hash_t *xorb, ngx_log_t *log)
{
    char          path[NGX_MAX_PATH];
    u_char       *p, *name, *folder;
    ngx_uint_t    created;
    xet_status_t  rc;

    if (file->store.len + NGX_HTTP_XET_XORB_PATH_LEN + 1 > sizeof(path)) {
        return XET_STORE_FAILED;
    }

    if (fdatasync(file->fd) == -1) {
        return ngx_http_xet_store_failed(log, "fdatasync", file->temp.data);
    }

    p = ngx_cpymem(path, file->store.data, file->store.len);
    p = ngx_http_xet_store_path(p, xorb);
    *p = '\0';

    /* <store>/xorbs/<namespace> was made at start-up, <aa> may be new */

    name = p - XET_HASH_STR_LEN - 1;
    folder = name - 3;
    created = 0;

    rc = ngx_http_xet_store_link_job(file, path, log);

    if (rc == XET_AGAIN) {
        *name = '\0';

        if (mkdir(path, NGX_HTTP_XET_DIR_MODE) == 0) {
            created = 1;

        } else if (ngx_errno != NGX_EEXIST) {
            return ngx_http_xet_store_failed(log, "mkdir", path);
        }

        *name = '/';

        rc = ngx_http_xet_store_link_job(file, path, log);
    }

    if (rc != XET_OK) {
        return (rc == XET_AGAIN) ? XET_STORE_FAILED : rc;
    }

    *name = '\0';
    rc = ngx_http_xet_store_sync_dir_job(path, log);

    if (rc == XET_OK && created) {
        *folder = '\0';
        rc = ngx_http_xet_store_sync_dir_job(path, log);
    }

    return rc;
}


/* XET_AGAIN when the folder is missing. */

static xet_status_t
ngx_http_xet_store_link_job(ngx_http_xet_file_t *file, const char *path,
    ngx_log_t *log)
{
    int          rc;
    char         fd[sizeof("/proc/self/fd/") + NGX_INT32_LEN];
    const char  *from;

    if (file->name[0]) {
        from = (char *) file->name;

    } else {
        *ngx_sprintf((u_char *) fd, "/proc/self/fd/%d", file->fd) = '\0';
        from = fd;
    }

    rc = linkat(AT_FDCWD, from, AT_FDCWD, path,
                file->name[0] ? 0 : AT_SYMLINK_FOLLOW);

    if (rc == 0) {
        return XET_OK;
    }

    if (ngx_errno == NGX_EEXIST) {
        return ngx_http_xet_store_replace_job(file, from, path, log);
    }

    if (ngx_errno == NGX_ENOENT) {
        return XET_AGAIN;
    }

    return ngx_http_xet_store_failed(log, "link", path);
}


static xet_status_t
ngx_http_xet_store_replace_job(ngx_http_xet_file_t *file, const char *from,
    const char *path, ngx_log_t *log)
{
    char          name[NGX_MAX_PATH];
    xet_status_t  rc;

    (void) ngx_snprintf((u_char *) name, NGX_MAX_PATH, "%V/%P-%uA.new%Z",
                        &file->temp, ngx_pid,
                        ngx_atomic_fetch_add(&ngx_http_xet_store_serial, 1));

    if (linkat(AT_FDCWD, from, AT_FDCWD, name,
               file->name[0] ? 0 : AT_SYMLINK_FOLLOW)
        == -1)
    {
        return ngx_http_xet_store_failed(log, "link", name);
    }

    if (rename(name, path) == 0) {
        return XET_OK;
    }

    rc = ngx_http_xet_store_failed(log, "rename", path);

    (void) unlink(name);

    return rc;
}


static xet_status_t
ngx_http_xet_store_sync_dir_job(const char *path, ngx_log_t *log)
{
    int           fd;
    xet_status_t  rc;

    fd = open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    if (fd == -1) {
        return ngx_http_xet_store_failed(log, "open", path);
    }

    rc = (fsync(fd) == 0) ? XET_OK
                          : ngx_http_xet_store_failed(log, "fsync", path);
    close(fd);

    return rc;
}
