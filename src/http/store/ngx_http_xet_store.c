
/*
 * The bytes of the store: temporary files, durable copies of xorbs.
 *
 * What holds, whatever dies and whoever else writes, on this node or another:
 *
 *     The bytes under a name never change.  A copy gets a name of its own,
 *     the hash of the xorb and a tag drawn at random, made by link(), which
 *     never replaces a file; so two uploads can't overwrite each other, and
 *     a cache of names, descriptors or URLs never has two versions.
 *
 *     A row describes the bytes of one copy, which it names by the tag, and
 *     proves it by a digest.  The copy is durable before its row is written:
 *     fdatasync, link, fsync of the folder.
 *
 *     Which of several copies stands for the xorb is decided by PostgreSQL
 *     alone, in one row (ngx_http_xet_keep.c).  Each other copy is removed by
 *     the request that made it, which knows that no row names the copy; a
 *     crash before that leaves a file without a row, which does no harm.
 *
 * Functions that end in _job block and run in a thread; the others create the
 * structure, release it, or do no I/O.  A file has one owner at a time: the
 * job of the request, or, after the end of the request, the detached job that
 * closes the file.  The folders are made by the master, before it starts
 * workers: it may block.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store.h"

#include <openssl/rand.h>


#ifndef O_TMPFILE
#define O_TMPFILE  020200000
#endif


#define NGX_HTTP_XET_FILE_MODE  0644
#define NGX_HTTP_XET_DIR_MODE   0755
#define NGX_HTTP_XET_TEMP_AGE   86400          /* seconds */
#define NGX_HTTP_XET_NAMES_MAX  65536
#define NGX_HTTP_XET_TAGS_MAX   16
#define NGX_HTTP_XET_FLUSH      (4 * 1024 * 1024)
#define NGX_HTTP_XET_CHECK      (256 * 1024)


typedef struct {
    ngx_fd_t   fd;
    char       name[NGX_MAX_PATH];
} ngx_http_xet_store_close_t;


static ngx_int_t ngx_http_xet_store_sync(ngx_cycle_t *cycle, u_char *path);
static void ngx_http_xet_store_clean_temp(ngx_cycle_t *cycle,
    ngx_http_xet_main_conf_t *xmcf);
static ngx_int_t ngx_http_xet_store_make_dir(ngx_cycle_t *cycle,
    u_char *path);
static ngx_http_xet_temp_t *ngx_http_xet_store_file(ngx_pool_t *pool,
    ngx_http_xet_main_conf_t *xmcf);
static void ngx_http_xet_store_cleanup(void *data);
static void ngx_http_xet_store_close_job(void *data, ngx_log_t *log);
static void ngx_http_xet_store_drop_job(ngx_fd_t fd, const char *name,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_store_open_job(ngx_http_xet_temp_t *file,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_store_no_temp_job(ngx_http_xet_temp_t *file,
    const u_char *name, ngx_log_t *log);
static xet_status_t ngx_http_xet_store_link_job(ngx_http_xet_temp_t *file,
    const char *path, ngx_log_t *log);
static xet_status_t ngx_http_xet_store_copy_path(char *path,
    const ngx_str_t *store, const xet_hash_t *xorb, uint32_t tag);
static xet_status_t ngx_http_xet_store_missing_job(const ngx_str_t *store,
    const char *call, const char *path, ngx_log_t *log);
static xet_status_t ngx_http_xet_store_digest_job(ngx_fd_t fd,
    const char *path, xet_checksum_t *digest, ngx_log_t *log);


static ngx_atomic_uint_t  ngx_http_xet_store_serial;


/*
 * All folders of the store are made here, so that no upload commits a copy to
 * a folder whose own entry is not yet durable.
 */

ngx_int_t
ngx_http_xet_store_init(ngx_cycle_t *cycle)
{
    u_char                     path[NGX_MAX_PATH], *p, *last;
    ngx_int_t                  rc;
    ngx_uint_t                 i, created;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    if (ngx_http_xet_store_make_dir(cycle, xmcf->temp.data) == NGX_ERROR) {
        return NGX_ERROR;
    }

    ngx_http_xet_store_clean_temp(cycle, xmcf);

    last = path + NGX_MAX_PATH;

    p = ngx_slprintf(path, last, "%V/xorbs%Z", &xmcf->store) - 1;

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

    return ngx_http_xet_store_sync(cycle, path);
}


static ngx_int_t
ngx_http_xet_store_sync(ngx_cycle_t *cycle, u_char *path)
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


/*
 * Removes what a crash has left in <store>/tmp, where temporary files have
 * names: files so old that they belong to no running upload, of this node or
 * of another node with the same store.  What a sweep has taken aside is for the
 * next sweep, which asks the database first.
 */

static void
ngx_http_xet_store_clean_temp(ngx_cycle_t *cycle,
    ngx_http_xet_main_conf_t *xmcf)
{
    u_char           path[NGX_MAX_PATH];
    ngx_dir_t        dir;
    ngx_file_info_t  fi;

    if (ngx_open_dir(&xmcf->temp, &dir) == NGX_ERROR) {
        return;
    }

    while (ngx_read_dir(&dir) == NGX_OK) {

        if (ngx_de_name(&dir)[0] == '.'
            || ngx_strncmp(ngx_de_name(&dir), XET_XORB_ASIDE,
                           sizeof(XET_XORB_ASIDE) - 1)
               == 0)
        {
            continue;
        }

        (void) ngx_snprintf(path, NGX_MAX_PATH, "%V/%s%Z", &xmcf->temp,
                            ngx_de_name(&dir));

        if (ngx_file_info(path, &fi) == NGX_FILE_ERROR || !ngx_is_file(&fi)
            || ngx_file_mtime(&fi) > ngx_time() - NGX_HTTP_XET_TEMP_AGE)
        {
            continue;
        }

        if (ngx_delete_file(path) == NGX_FILE_ERROR) {
            ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno,
                          ngx_delete_file_n " \"%s\" failed", path);
        }
    }

    if (ngx_close_dir(&dir) == NGX_ERROR) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                      ngx_close_dir_n " \"%V\" failed", &xmcf->temp);
    }
}


/* NGX_OK: the folder was made; NGX_DECLINED: it existed; NGX_ERROR. */

static ngx_int_t
ngx_http_xet_store_make_dir(ngx_cycle_t *cycle, u_char *path)
{
    ngx_core_conf_t  *ccf;

    if (ngx_create_dir(path, NGX_HTTP_XET_DIR_MODE) == NGX_FILE_ERROR) {

        if (ngx_errno == NGX_EEXIST) {
            return NGX_DECLINED;
        }

        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      ngx_create_dir_n " \"%s\" failed", path);
        return NGX_ERROR;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (geteuid() == 0 && ccf->user != (ngx_uid_t) NGX_CONF_UNSET_UINT
        && chown((char *) path, ccf->user, -1) == -1)
    {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "chown(\"%s\", %d) failed", path, ccf->user);
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_http_xet_temp_t *
ngx_http_xet_store_temp(ngx_http_request_t *r)
{
    return ngx_http_xet_store_file(r->pool,
                    ngx_http_get_module_main_conf(r, ngx_http_xet_module));
}


ngx_http_xet_temp_t *
ngx_http_xet_store_xorb(ngx_http_request_t *r)
{
    ngx_http_xet_temp_t  *file;

    file = ngx_http_xet_store_temp(r);

    if (file) {
        file->digested = 1;
        file->began = ngx_http_xet_store_moment();
    }

    return file;
}


ngx_http_xet_temp_t *
ngx_http_xet_store_copy(ngx_pool_t *pool)
{
    ngx_http_xet_temp_t       *file;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    file = xmcf ? ngx_http_xet_store_file(pool, xmcf) : NULL;

    if (file) {
        file->digested = 1;
    }

    return file;
}


static ngx_http_xet_temp_t *
ngx_http_xet_store_file(ngx_pool_t *pool, ngx_http_xet_main_conf_t *xmcf)
{
    size_t                len;
    ngx_pool_cleanup_t   *cln;
    ngx_http_xet_temp_t  *file;

    cln = ngx_pool_cleanup_add(pool, sizeof(ngx_http_xet_temp_t));
    if (cln == NULL) {
        return NULL;
    }

    file = cln->data;

    ngx_memzero(file, sizeof(ngx_http_xet_temp_t));

    file->store = xmcf->store;
    file->temp = xmcf->temp;
    file->fd = NGX_INVALID_FILE;
    file->anonymous = xmcf->anonymous;

    cln->handler = ngx_http_xet_store_cleanup;

    len = ngx_max(xmcf->temp.len + 1 + NGX_INT64_LEN + 1 + NGX_ATOMIC_T_LEN,
                  xmcf->store.len + NGX_HTTP_XET_XORB_PATH_MAX);

    file->name = ngx_pnalloc(pool, len + 1);
    if (file->name == NULL) {
        return NULL;
    }

    file->name[0] = '\0';

    return file;
}


uint64_t
ngx_http_xet_store_moment(void)
{
    static uint64_t  moment;

    return ++moment;
}


static void
ngx_http_xet_store_cleanup(void *data)
{
    ngx_http_xet_temp_t *file = data;

    ngx_http_xet_store_close_t  ctx;

    xet_checksum_destroy(file->checksum);
    file->checksum = NULL;

    if (file->fd == NGX_INVALID_FILE) {
        return;
    }

    /* closing the last reference of a large file frees its blocks: slow */

    ctx.fd = file->fd;
    ngx_cpystrn((u_char *) ctx.name, file->kept ? (u_char *) "" : file->name,
                sizeof(ctx.name));

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
    if (name[0]) {
        ngx_http_xet_store_unlink_job(name, log);
    }

    if (close(fd) == -1) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno, "xet: close \"%s\" failed",
                      name);
    }
}


void
ngx_http_xet_store_reset_job(ngx_http_xet_temp_t *file, ngx_log_t *log)
{
    if (file->fd == NGX_INVALID_FILE) {
        return;
    }

    ngx_http_xet_store_drop_job(file->fd,
                                file->kept ? "" : (char *) file->name, log);

    file->fd = NGX_INVALID_FILE;
    file->kept = 0;
    file->size = 0;
    file->flushed = 0;
    file->name[0] = '\0';

    if (file->checksum) {
        xet_checksum_reset(file->checksum);
    }
}


void
ngx_http_xet_store_keep(ngx_http_xet_temp_t *file, ngx_uint_t kept)
{
    file->kept = kept;
}


static xet_status_t
ngx_http_xet_store_open_job(ngx_http_xet_temp_t *file, ngx_log_t *log)
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
            return ngx_http_xet_store_no_temp_job(file, file->temp.data, log);
        }

        file->anonymous = 0;
    }

    /* a file that a crash has left may have the name */

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

    rc = ngx_http_xet_store_no_temp_job(file, file->name, log);

    file->name[0] = '\0';

    return rc;
}


/*
 * Where the folder of temporary files is missing, the folder of the store may
 * be another one, or an unmounted disk: this is checked before the error of
 * open() is reported.
 */

static xet_status_t
ngx_http_xet_store_no_temp_job(ngx_http_xet_temp_t *file, const u_char *name,
    ngx_log_t *log)
{
    ngx_err_t     err;
    xet_status_t  rc;

    err = ngx_errno;

    if (err == NGX_ENOENT) {
        rc = ngx_http_xet_store_identity_check_job(&file->store, log);

        if (rc != XET_OK) {
            return rc;
        }
    }

    ngx_set_errno(err);

    return ngx_http_xet_store_failed(log, "open", name);
}


xet_status_t
ngx_http_xet_store_write_job(ngx_http_xet_temp_t *file, const u_char *data,
    size_t len, ngx_log_t *log)
{
    xet_status_t  rc;

    if (file->fd == NGX_INVALID_FILE) {
        rc = ngx_http_xet_store_open_job(file, log);

        if (rc != XET_OK) {
            return rc;
        }
    }

    if (file->digested) {

        if (file->checksum == NULL) {
            file->checksum = xet_checksum_create();

            if (file->checksum == NULL) {
                return XET_NOMEM;
            }
        }

        xet_checksum_update(file->checksum, data, len);
    }

    rc = ngx_http_xet_store_patch_job(file, data, len, file->size, log);

    if (rc != XET_OK) {
        return rc;
    }

    file->size += (off_t) len;

#ifdef SYNC_FILE_RANGE_WRITE

    /* the disk begins to write, so that the commit waits only for the rest */

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
ngx_http_xet_store_patch_job(ngx_http_xet_temp_t *file, const u_char *data,
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
ngx_http_xet_store_read_job(ngx_http_xet_temp_t *file, u_char *data,
    size_t len, off_t offset, ngx_log_t *log)
{
    ssize_t  n;

    while (len) {
        n = pread(file->fd, data, len, offset);

        if (n == -1 && ngx_errno == NGX_EINTR) {
            continue;
        }

        if (n == 0) {
            ngx_set_errno(0);
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
ngx_http_xet_store_path(u_char *dst, const xet_hash_t *xorb, uint32_t tag)
{
    u_char  *aa;

    dst = ngx_cpymem(dst, "/xorbs/" NGX_HTTP_XET_NAMESPACE "/",
                     sizeof("/xorbs/" NGX_HTTP_XET_NAMESPACE "/") - 1);
    aa = dst;
    dst += 3;

    dst = xet_xorb_name_print(dst, xorb, tag);

    aa[0] = aa[3];
    aa[1] = aa[4];
    aa[2] = '/';

    return dst;
}


/* path has NGX_MAX_PATH bytes. */

static xet_status_t
ngx_http_xet_store_copy_path(char *path, const ngx_str_t *store,
    const xet_hash_t *xorb, uint32_t tag)
{
    u_char  *p;

    if (store->len + NGX_HTTP_XET_XORB_PATH_MAX + 1 > NGX_MAX_PATH) {
        return XET_STORE_FAILED;
    }

    p = ngx_cpymem(path, store->data, store->len);
    *ngx_http_xet_store_path(p, xorb, tag) = '\0';

    return XET_OK;
}


xet_status_t
ngx_http_xet_store_commit_job(ngx_http_xet_temp_t *file,
    const xet_hash_t *xorb, ngx_log_t *log)
{
    char          path[NGX_MAX_PATH];
    ngx_uint_t    i;
    xet_status_t  rc;

    rc = ngx_http_xet_store_identity_check_job(&file->store, log);

    if (rc != XET_OK) {
        return rc;
    }

    if (fdatasync(file->fd) == -1) {
        return ngx_http_xet_store_failed(log, "fdatasync", file->temp.data);
    }

    xet_checksum_finish(file->checksum, &file->digest);

    for (i = 0; i < NGX_HTTP_XET_TAGS_MAX; i++) {

        if (RAND_bytes((u_char *) &file->tag, sizeof(file->tag)) != 1) {
            return XET_INTERNAL;
        }

        if (file->tag == 0) {
            continue;
        }

        rc = ngx_http_xet_store_copy_path(path, &file->store, xorb, file->tag);

        if (rc == XET_OK) {
            rc = ngx_http_xet_store_link_job(file, path, log);
        }

        if (rc != XET_AGAIN) {
            break;
        }
    }

    if (rc != XET_OK) {
        return (rc == XET_AGAIN) ? XET_STORE_FAILED : rc;
    }

    /* from here on the name is removed with the file unless it is kept */

    ngx_cpystrn(file->name, (u_char *) path, NGX_MAX_PATH);

    *strrchr(path, '/') = '\0';

    return ngx_http_xet_store_sync_dir_job(path, log);
}


/* Links the file to path; XET_AGAIN when another file has that name. */

static xet_status_t
ngx_http_xet_store_link_job(ngx_http_xet_temp_t *file, const char *path,
    ngx_log_t *log)
{
    char  fd[sizeof("/proc/self/fd/") + NGX_INT32_LEN];

    if (file->name[0]) {

        if (link((char *) file->name, path) == 0) {

            if (unlink((char *) file->name) == -1) {
                return ngx_http_xet_store_failed(log, "unlink", file->name);
            }

            return XET_OK;
        }

    } else {
        *ngx_sprintf((u_char *) fd, "/proc/self/fd/%d", file->fd) = '\0';

        if (linkat(AT_FDCWD, fd, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0) {
            return XET_OK;
        }
    }

    if (ngx_errno == NGX_EEXIST) {
        return XET_AGAIN;
    }

    return ngx_http_xet_store_failed(log, "link", path);
}


xet_status_t
ngx_http_xet_store_stat_job(const ngx_str_t *store, const xet_hash_t *xorb,
    uint32_t tag, uint64_t size, ngx_log_t *log)
{
    char             path[NGX_MAX_PATH];
    xet_status_t     rc;
    ngx_file_info_t  fi;

    rc = ngx_http_xet_store_copy_path(path, store, xorb, tag);

    if (rc != XET_OK) {
        return rc;
    }

    if (ngx_file_info(path, &fi) == NGX_FILE_ERROR) {
        return ngx_http_xet_store_missing_job(store, "stat", path, log);
    }

    return (ngx_is_file(&fi) && (uint64_t) ngx_file_size(&fi) == size)
           ? XET_OK : XET_STORE_DAMAGED;
}


xet_status_t
ngx_http_xet_store_check_job(const ngx_str_t *store, const xet_hash_t *xorb,
    uint32_t tag, const xet_checksum_t *digest, ngx_log_t *log)
{
    char            path[NGX_MAX_PATH];
    ngx_fd_t        fd;
    xet_status_t    rc;
    xet_checksum_t  found;

    rc = ngx_http_xet_store_copy_path(path, store, xorb, tag);

    if (rc != XET_OK) {
        return rc;
    }

    fd = open(path, O_RDONLY|O_CLOEXEC|O_NOFOLLOW);

    if (fd == NGX_INVALID_FILE) {
        return ngx_http_xet_store_missing_job(store, "open", path, log);
    }

    rc = ngx_http_xet_store_digest_job(fd, path, &found, log);

    if (close(fd) == -1) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno,
                      "xet: close \"%s\" failed", path);
    }

    if (rc != XET_OK) {
        return rc;
    }

    return xet_checksum_equal(&found, digest) ? XET_OK : XET_STORE_DAMAGED;
}


/*
 * The status of a call that has failed for a copy: a missing copy is lost only
 * if the folder is the store of the database.
 */

static xet_status_t
ngx_http_xet_store_missing_job(const ngx_str_t *store, const char *call,
    const char *path, ngx_log_t *log)
{
    xet_status_t  rc;

    if (ngx_errno != NGX_ENOENT) {
        return ngx_http_xet_store_failed(log, call, path);
    }

    rc = ngx_http_xet_store_identity_check_job(store, log);

    return (rc == XET_OK) ? XET_STORE_DAMAGED : rc;
}


static xet_status_t
ngx_http_xet_store_digest_job(ngx_fd_t fd, const char *path,
    xet_checksum_t *digest, ngx_log_t *log)
{
    u_char                *buf;
    ssize_t                n;
    xet_status_t           rc;
    xet_checksum_state_t  *checksum;

    rc = XET_NOMEM;

    buf = ngx_alloc(NGX_HTTP_XET_CHECK, log);
    checksum = xet_checksum_create();

    if (buf == NULL || checksum == NULL) {
        goto done;
    }

    for ( ;; ) {
        n = read(fd, buf, NGX_HTTP_XET_CHECK);

        if (n > 0) {
            xet_checksum_update(checksum, buf, (size_t) n);
            continue;
        }

        if (n == 0) {
            break;
        }

        if (ngx_errno != NGX_EINTR) {
            rc = ngx_http_xet_store_failed(log, "read", path);
            goto done;
        }
    }

    xet_checksum_finish(checksum, digest);

    rc = XET_OK;

done:

    xet_checksum_destroy(checksum);

    if (buf) {
        ngx_free(buf);
    }

    return rc;
}


void
ngx_http_xet_store_remove_job(const ngx_str_t *store, const xet_hash_t *xorb,
    uint32_t tag, ngx_log_t *log)
{
    char  path[NGX_MAX_PATH];

    if (ngx_http_xet_store_copy_path(path, store, xorb, tag) == XET_OK) {
        ngx_http_xet_store_unlink_job(path, log);
    }
}


void
ngx_http_xet_store_unlink_job(const char *path, ngx_log_t *log)
{
    if (unlink(path) == -1 && ngx_errno != NGX_ENOENT) {
        ngx_log_error(NGX_LOG_CRIT, log, ngx_errno, "xet: unlink \"%s\" failed",
                      path);
    }
}


uint64_t
ngx_http_xet_store_clock(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
