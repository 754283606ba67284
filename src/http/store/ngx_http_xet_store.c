
/*
 * The bytes of the store: temporary files, durable copies of xorbs.
 *
 * What holds, whatever dies and whoever else writes, on this node or another,
 * in a folder and in an object store:
 *
 *     The bytes under a name never change.  A copy gets a name of its own,
 *     the hash of the xorb and a tag drawn at random, made in a way that never
 *     replaces another one; so two uploads can't overwrite each other, and
 *     a cache of names, descriptors or URLs never has two versions.
 *
 *     A row describes the bytes of one copy, which it names by the tag, and
 *     proves it by a digest.  The copy is durable before its row is written.
 *
 *     Which of several copies stands for the xorb is decided by PostgreSQL
 *     alone, in one row (ngx_http_xet_keep.c).  Each other copy is removed by
 *     the request that made it, which knows that no row names the copy; a
 *     crash before that leaves a copy without a row, which does no harm.
 *
 * Until then the bytes are in a temporary file of this machine, also where the
 * store is elsewhere: so what fails can be sent again, and no memory grows with
 * an upload.
 *
 * Functions that end in _job block and run in a thread; the others create the
 * structure, release it, or do no I/O.  A file has one owner at a time: the
 * job of the request, or, after the end of the request, the detached job that
 * closes the file.  Folders are made by the master, before it starts workers:
 * it may block.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_ops.h"


#ifndef O_TMPFILE
#define O_TMPFILE  020200000
#endif


#define NGX_HTTP_XET_FILE_MODE  0644
#define NGX_HTTP_XET_TEMP_AGE   86400          /* seconds */
#define NGX_HTTP_XET_NAMES_MAX  65536
#define NGX_HTTP_XET_TAGS_MAX   16


/* What is left of a file when nobody needs it any more. */

typedef struct {
    ngx_http_xet_store_t  *store;
    ngx_fd_t               fd;
    xet_hash_t             xorb;
    uint32_t               tag;
    ngx_uint_t             copy;               /* is to be removed */
    char                   name[NGX_MAX_PATH];
} ngx_http_xet_store_close_t;


static ngx_http_xet_store_t *ngx_http_xet_store_create(ngx_conf_t *cf,
    const ngx_str_t *name, const ngx_str_t *temp);
static void ngx_http_xet_store_free(void *data);
static void ngx_http_xet_store_clean_temp(ngx_cycle_t *cycle,
    ngx_http_xet_store_t *store);
static ngx_http_xet_temp_t *ngx_http_xet_store_file(ngx_pool_t *pool,
    ngx_http_xet_store_t *store);
static void ngx_http_xet_store_cleanup(void *data);
static void ngx_http_xet_store_rest(ngx_http_xet_temp_t *file,
    ngx_http_xet_store_close_t *rest);
static void ngx_http_xet_store_close_job(void *data, ngx_log_t *log);
static xet_status_t ngx_http_xet_store_open_job(ngx_http_xet_temp_t *file,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_store_no_temp_job(ngx_http_xet_temp_t *file,
    const u_char *name, ngx_log_t *log);


static ngx_atomic_uint_t  ngx_http_xet_store_serial;


ngx_http_xet_store_t *
ngx_http_xet_store_files(ngx_conf_t *cf, const ngx_str_t *path)
{
    u_char                 temp[NGX_MAX_PATH];
    ngx_str_t              name;
    ngx_http_xet_store_t  *store;

    name.data = temp;
    name.len = ngx_snprintf(temp, sizeof(temp), "%V/tmp", path) - temp;

    store = ngx_http_xet_store_create(cf, path, &name);

    if (store) {
        store->ops = &ngx_http_xet_store_files_ops;
    }

    return store;
}


ngx_http_xet_store_t *
ngx_http_xet_store_s3(ngx_conf_t *cf, const ngx_str_t *temp,
    const xet_s3_conf_t *conf, xet_s3_error_t *error)
{
    ngx_str_t              name;
    xet_s3_conf_t          s3;
    ngx_http_xet_store_t  *store;

    name.data = (u_char *) conf->url;
    name.len = ngx_strlen(conf->url);

    ngx_memzero(error, sizeof(xet_s3_error_t));

    store = ngx_http_xet_store_create(cf, &name, temp);
    if (store == NULL) {
        return NULL;
    }

    s3 = *conf;
    s3.told = ngx_http_xet_store_told;

    store->ops = &ngx_http_xet_store_s3_ops;
    store->s3 = xet_s3_create(&s3, error);

    return store->s3 ? store : NULL;
}


static ngx_http_xet_store_t *
ngx_http_xet_store_create(ngx_conf_t *cf, const ngx_str_t *name,
    const ngx_str_t *temp)
{
    u_char                *p;
    ngx_pool_cleanup_t    *cln;
    ngx_http_xet_store_t  *store;

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (cln == NULL) {
        return NULL;
    }

    store = ngx_calloc(sizeof(ngx_http_xet_store_t) + name->len + 1
                       + temp->len + 1, cf->log);
    if (store == NULL) {
        return NULL;
    }

    cln->handler = ngx_http_xet_store_free;
    cln->data = store;

    /* zero-terminated: threads open them */

    p = (u_char *) (store + 1);

    store->name.data = p;
    store->name.len = name->len;
    p = ngx_cpymem(p, name->data, name->len);
    *p++ = '\0';

    store->temp.data = p;
    store->temp.len = temp->len;
    p = ngx_cpymem(p, temp->data, temp->len);
    *p = '\0';

    store->anonymous = 1;

    return store;
}


/*
 * The end of a cycle.  A process that serves is about to end with it, and may
 * leave threads behind that use the store.
 */

static void
ngx_http_xet_store_free(void *data)
{
    ngx_http_xet_store_t *store = data;

    if (ngx_process != NGX_PROCESS_MASTER
        && ngx_process != NGX_PROCESS_SIGNALLER)
    {
        return;
    }

    if (store->s3) {
        xet_s3_destroy(store->s3);
    }

    ngx_free(store);
}


void
ngx_http_xet_store_exit(ngx_cycle_t *cycle)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    if (xmcf && xmcf->store && xmcf->store->s3) {
        xet_s3_stop(xmcf->store->s3);
    }
}


ngx_int_t
ngx_http_xet_store_init(ngx_cycle_t *cycle)
{
    ngx_http_xet_store_t      *store;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);
    store = xmcf->store;

    if (ngx_http_xet_store_make_dir(cycle, store->temp.data) == NGX_ERROR) {
        return NGX_ERROR;
    }

    ngx_http_xet_store_clean_temp(cycle, store);

    return store->ops->init(store, cycle);
}


/*
 * Removes what a crash has left in the folder of temporary files, where these
 * have names: files so old that they belong to no running upload, of this node
 * or of another one with the same folder.  What a sweep has taken aside is for
 * the next sweep, which asks the database first.  ".nfs..." is what NFS makes
 * of a file that is removed while its node has it open; there, the node has
 * died.
 */

static void
ngx_http_xet_store_clean_temp(ngx_cycle_t *cycle,
    ngx_http_xet_store_t *store)
{
    u_char           path[NGX_MAX_PATH];
    ngx_dir_t        dir;
    ngx_file_info_t  fi;

    if (ngx_open_dir(&store->temp, &dir) == NGX_ERROR) {
        return;
    }

    while (ngx_read_dir(&dir) == NGX_OK) {

        if ((ngx_de_name(&dir)[0] == '.'
             && ngx_strncmp(ngx_de_name(&dir), ".nfs", 4) != 0)
            || ngx_strncmp(ngx_de_name(&dir), XET_XORB_ASIDE,
                           sizeof(XET_XORB_ASIDE) - 1)
               == 0)
        {
            continue;
        }

        (void) ngx_snprintf(path, NGX_MAX_PATH, "%V/%s%Z", &store->temp,
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
                      ngx_close_dir_n " \"%V\" failed", &store->temp);
    }
}


ngx_http_xet_temp_t *
ngx_http_xet_store_temp(ngx_http_request_t *r)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    return ngx_http_xet_store_file(r->pool, xmcf->store);
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

    file = xmcf ? ngx_http_xet_store_file(pool, xmcf->store) : NULL;

    if (file) {
        file->digested = 1;
    }

    return file;
}


static ngx_http_xet_temp_t *
ngx_http_xet_store_file(ngx_pool_t *pool, ngx_http_xet_store_t *store)
{
    ngx_pool_cleanup_t   *cln;
    ngx_http_xet_temp_t  *file;

    cln = ngx_pool_cleanup_add(pool, sizeof(ngx_http_xet_temp_t));
    if (cln == NULL) {
        return NULL;
    }

    file = cln->data;

    ngx_memzero(file, sizeof(ngx_http_xet_temp_t));

    file->store = store;
    file->fd = NGX_INVALID_FILE;
    file->anonymous = store->anonymous;

    cln->handler = ngx_http_xet_store_cleanup;

    file->name = ngx_pnalloc(pool, store->temp.len + 1 + NGX_INT64_LEN + 1
                                   + NGX_ATOMIC_T_LEN + 1);
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


void
ngx_http_xet_store_claim(ngx_http_xet_temp_t *file, const xet_hash_t *xorb)
{
    file->xorb = *xorb;
    file->claimed = 1;
}


static void
ngx_http_xet_store_cleanup(void *data)
{
    ngx_http_xet_temp_t *file = data;

    ngx_http_xet_store_close_t  rest;

    xet_checksum_destroy(file->checksum);
    file->checksum = NULL;

    if (file->fd == NGX_INVALID_FILE && !file->committed) {
        return;
    }

    /* closing the last reference of a large file frees its blocks: slow */

    ngx_http_xet_store_rest(file, &rest);

    ngx_http_xet_task_detached(ngx_http_xet_store_close_job, &rest,
                               offsetof(ngx_http_xet_store_close_t, name)
                               + ngx_strlen(rest.name) + 1);
}


void
ngx_http_xet_store_reset_job(ngx_http_xet_temp_t *file, ngx_log_t *log)
{
    ngx_http_xet_store_close_t  rest;

    if (file->fd == NGX_INVALID_FILE && !file->committed) {
        return;
    }

    ngx_http_xet_store_rest(file, &rest);
    ngx_http_xet_store_close_job(&rest, log);

    file->size = 0;
    file->flushed = 0;
    file->tag = 0;

    if (file->checksum) {
        xet_checksum_reset(file->checksum);
    }
}


/* What is to be closed and removed; the file is as before the first write. */

static void
ngx_http_xet_store_rest(ngx_http_xet_temp_t *file,
    ngx_http_xet_store_close_t *rest)
{
    rest->store = file->store;
    rest->fd = file->fd;
    rest->xorb = file->xorb;
    rest->tag = file->tag;
    rest->copy = (file->committed && !file->kept);
    ngx_cpystrn((u_char *) rest->name, file->name, sizeof(rest->name));

    if (file->upload) {
        file->store->ops->drop(file->upload);
        file->upload = NULL;
    }

    file->fd = NGX_INVALID_FILE;
    file->name[0] = '\0';
    file->committed = 0;
    file->kept = 0;
}


static void
ngx_http_xet_store_close_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_store_close_t *rest = data;

    ngx_http_xet_copy_name_t  name;

    if (rest->copy) {
        name.xorb = rest->xorb;
        name.tag = rest->tag;

        (void) rest->store->ops->remove_job(rest->store, &name, log);
    }

    if (rest->name[0] && unlink(rest->name) == -1 && ngx_errno != NGX_ENOENT) {
        ngx_log_error(NGX_LOG_CRIT, log, ngx_errno, "xet: unlink \"%s\" failed",
                      rest->name);
    }

    if (rest->fd != NGX_INVALID_FILE && close(rest->fd) == -1) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno, "xet: close \"%s\" failed",
                      rest->name);
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

        file->fd = open((char *) file->store->temp.data,
                        O_TMPFILE|O_RDWR|O_CLOEXEC, NGX_HTTP_XET_FILE_MODE);

        if (file->fd != NGX_INVALID_FILE) {
            return XET_OK;
        }

        if (ngx_errno != EOPNOTSUPP && ngx_errno != EISDIR
            && ngx_errno != NGX_EINVAL)
        {
            return ngx_http_xet_store_no_temp_job(file,
                                                  file->store->temp.data,
                                                  log);
        }

        file->anonymous = 0;
    }

    /* a file that a crash has left may have the name */

    for (i = 0; i < NGX_HTTP_XET_NAMES_MAX; i++) {

        *ngx_sprintf(file->name, "%V/%P-%uA", &file->store->temp, ngx_pid,
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
        rc = ngx_http_xet_store_identity_check_job(file->store, log);

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

    if (file->digested) {
        file->store->ops->grown_job(file, data, len, log);
    }

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

            return ngx_http_xet_store_failed(log, "pwrite",
                                             file->store->temp.data);
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
            return ngx_http_xet_store_failed(log, "pread",
                                             file->store->temp.data);
        }

        data += n;
        len -= (size_t) n;
        offset += n;
    }

    return XET_OK;
}


xet_status_t
ngx_http_xet_store_commit_job(ngx_http_xet_temp_t *file,
    const xet_hash_t *xorb, ngx_log_t *log)
{
    ngx_uint_t    i;
    xet_status_t  rc;

    rc = ngx_http_xet_store_identity_check_job(file->store, log);

    if (rc == XET_OK) {
        rc = file->store->ops->sync_job(file, log);
    }

    if (rc != XET_OK) {
        return rc;
    }

    xet_checksum_finish(file->checksum, &file->digest);

    file->xorb = *xorb;

    for (i = 0; i < NGX_HTTP_XET_TAGS_MAX; i++) {

        rc = ngx_http_xet_store_draw_tag(&file->tag);

        if (rc != XET_OK) {
            return rc;
        }

        rc = file->store->ops->commit_job(file, log);

        if (rc != XET_AGAIN) {
            return rc;
        }

        file->tag = 0;
    }

    return XET_STORE_FAILED;
}


xet_status_t
ngx_http_xet_orphans_list_job(ngx_http_xet_orphans_t *o, ngx_uint_t max,
    ngx_log_t *log)
{
    return o->store->ops->orphans_list_job(o, max, log);
}


xet_status_t
ngx_http_xet_orphans_take_job(ngx_http_xet_orphans_t *o, ngx_log_t *log)
{
    return o->store->ops->orphans_take_job(o, log);
}


xet_status_t
ngx_http_xet_orphans_settle_job(ngx_http_xet_orphans_t *o, ngx_log_t *log)
{
    return o->store->ops->orphans_settle_job(o, log);
}
