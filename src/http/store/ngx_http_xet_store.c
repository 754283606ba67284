
/*
 * The store: temporary files, and durable copies of xorbs.
 *
 * These rules hold after any crash and with any other writers, on this node or
 * other nodes, in a folder and in an object store:
 *
 *     The bytes under a name never change.  The name of a copy is the hash of
 *     the xorb and a copy id that is never used again, so creating a copy never
 *     replaces another one.  Caches of names, descriptors or URLs never see
 *     two versions of a copy.
 *
 *     A row describes the bytes of one copy.  It contains the id of the copy
 *     and a digest of its bytes.  The copy is durable before the row is
 *     written.
 *
 *     If a xorb has several copies, its row in PostgreSQL selects one
 *     (ngx_http_xet_xorb_commit.c).  A request whose copy was not selected
 *     removes this copy.  After a crash the copy stays, without a row, which
 *     is harmless.
 *
 * Until an upload is committed, its data is in a temporary file on this
 * machine, even if the store is remote.  So failed transfers can be repeated,
 * and memory does not grow with an upload.
 *
 * Functions whose names end in _job block and run in a thread; other functions
 * do no I/O.  A file has one owner at a time: the job of the request or, after
 * the end of the request, the detached job that closes the file.  The master
 * creates folders before it starts workers.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_base.h"


#define NGX_HTTP_XET_TEMP_AGE  86400           /* seconds */
#define NGX_HTTP_XET_COPY_IDS_MAX  16


/* The parts of a file that must still be closed or removed. */

typedef struct {
    ngx_http_xet_store_t  *store;
    xet_store_writer_t    *writer;             /* NULL: no file is open */
    xet_hash_t             xorb;
    uint32_t               copy_id;
    ngx_uint_t             copy;               /* the copy must be removed */
} ngx_http_xet_store_close_t;


static ngx_http_xet_store_t *ngx_http_xet_store_create(ngx_conf_t *cf,
    xet_store_t *backend);
static void ngx_http_xet_store_free(void *data);
static ngx_http_xet_temp_t *ngx_http_xet_store_file(ngx_pool_t *pool,
    ngx_http_xet_store_t *store);
static void ngx_http_xet_store_cleanup(void *data);
static void ngx_http_xet_store_rest(ngx_http_xet_temp_t *file,
    ngx_http_xet_store_close_t *rest);
static void ngx_http_xet_store_close_job(void *data, ngx_log_t *log);
static xet_status_t ngx_http_xet_store_open_job(ngx_http_xet_temp_t *file,
    ngx_log_t *log);


ngx_http_xet_store_t *
ngx_http_xet_store_files(ngx_conf_t *cf, const ngx_str_t *path)
{
    return ngx_http_xet_store_create(cf, xet_store_files((char *) path->data));
}


ngx_http_xet_store_t *
ngx_http_xet_store_s3(ngx_conf_t *cf, const ngx_str_t *temp,
    const xet_s3_conf_t *conf, xet_s3_error_t *error)
{
    xet_s3_conf_t  s3;

    s3 = *conf;
    s3.report = ngx_http_xet_store_report;

    return ngx_http_xet_store_create(cf, xet_store_s3(&s3, (char *) temp->data,
                                                      error));
}


static ngx_http_xet_store_t *
ngx_http_xet_store_create(ngx_conf_t *cf, xet_store_t *backend)
{
    ngx_pool_cleanup_t    *cln;
    ngx_http_xet_store_t  *store;

    if (backend == NULL) {
        return NULL;
    }

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    store = cln ? ngx_calloc(sizeof(ngx_http_xet_store_t), cf->log) : NULL;

    if (store == NULL) {
        xet_store_destroy(backend);
        return NULL;
    }

    cln->handler = ngx_http_xet_store_free;
    cln->data = store;

    store->backend = backend;
    store->s3 = backend->s3;
    store->name.data = (u_char *) backend->name;
    store->name.len = ngx_strlen(backend->name);
    store->temp.data = (u_char *) backend->temp;
    store->temp.len = ngx_strlen(backend->temp);

    return store;
}


/*
 * Frees the store at the end of a cycle.  A process that serves requests frees
 * nothing: it is about to exit, and threads may still use the store.
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

    xet_store_destroy(store->backend);
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


/*
 * If the master runs as root, the created folders belong to the user of the
 * workers.
 */

ngx_int_t
ngx_http_xet_store_init(ngx_cycle_t *cycle)
{
    size_t                     n;
    uid_t                      uid;
    xet_store_t               *backend;
    xet_store_error_t          error;
    ngx_core_conf_t           *ccf;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);
    backend = xmcf->store->backend;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    uid = (geteuid() == 0 && ccf->user != (ngx_uid_t) NGX_CONF_UNSET_UINT)
          ? ccf->user : (uid_t) -1;

    if (backend->ops->folders(backend, uid, (gid_t) -1, &error) != XET_OK) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, error.err,
                      "%s() \"%s\" failed", error.call, error.path);
        return NGX_ERROR;
    }

    if (xet_store_writer_sweep(backend, NGX_HTTP_XET_TEMP_AGE, &n, &error)
        != XET_OK)
    {
        ngx_log_error(NGX_LOG_ERR, cycle->log, error.err,
                      "%s() \"%s\" failed", error.call, error.path);
    }

    return NGX_OK;
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
        file->began = ngx_http_xet_store_sequence();
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

    cln->handler = ngx_http_xet_store_cleanup;

    return file;
}


uint64_t
ngx_http_xet_store_sequence(void)
{
    static uint64_t  sequence;

    return ++sequence;
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

    if (file->writer == NULL && !file->committed) {
        return;
    }

    /*
     * closing the last descriptor of a large file frees its blocks, which is
     * slow
     */

    ngx_http_xet_store_rest(file, &rest);

    ngx_http_xet_task_detached(ngx_http_xet_store_close_job, &rest,
                               sizeof(ngx_http_xet_store_close_t));
}


void
ngx_http_xet_store_reset_job(ngx_http_xet_temp_t *file, ngx_log_t *log)
{
    ngx_http_xet_store_close_t  rest;

    if (file->writer == NULL && !file->committed) {
        return;
    }

    ngx_http_xet_store_rest(file, &rest);
    ngx_http_xet_store_close_job(&rest, log);

    file->size = 0;
    file->copy_id = 0;

    if (file->checksum) {
        xet_checksum_reset(file->checksum);
    }
}


/*
 * Moves everything that must be closed or removed from file to rest; after
 * that, file is in the same state as before the first write.
 */

static void
ngx_http_xet_store_rest(ngx_http_xet_temp_t *file,
    ngx_http_xet_store_close_t *rest)
{
    rest->store = file->store;
    rest->writer = file->writer;
    rest->xorb = file->xorb;
    rest->copy_id = file->copy_id;
    rest->copy = (file->committed && !file->kept);

    file->writer = NULL;
    file->committed = 0;
    file->kept = 0;
}


static void
ngx_http_xet_store_close_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_store_close_t *rest = data;

    xet_store_error_t  error;

    if (rest->copy) {
        (void) ngx_http_xet_store_remove_job(rest->store, &rest->xorb,
                                             rest->copy_id, log);
    }

    if (rest->writer
        && xet_store_writer_close(rest->writer, &error) != XET_OK)
    {
        ngx_log_error(NGX_LOG_CRIT, log, error.err, "xet: %s \"%s\" failed",
                      error.call, error.path);
    }
}


void
ngx_http_xet_store_keep(ngx_http_xet_temp_t *file, ngx_uint_t kept)
{
    file->kept = kept;
}


/*
 * Opens the temporary file.  If the folder of temporary files is missing, the
 * disk may be unmounted, or another disk may be mounted.  So the identity is
 * checked before the error of open() is returned.
 */

static xet_status_t
ngx_http_xet_store_open_job(ngx_http_xet_temp_t *file, ngx_log_t *log)
{
    char               name[XET_STORE_COPY_MAX];
    xet_status_t       rc, same;
    xet_store_error_t  error;

    name[0] = '\0';

    if (file->store->s3 && file->digested && file->claimed
        && ngx_http_xet_store_draw_copy_id(&file->copy_id) == XET_OK)
    {
        (void) xet_store_copy(name, &file->xorb, file->copy_id);
    }

    rc = xet_store_writer_open(file->store->backend, name, &file->writer,
                               &error);

    if (rc != XET_OK && error.err == NGX_ENOENT) {
        same = ngx_http_xet_store_identity_check_job(file->store, log);

        if (same != XET_OK) {
            return same;
        }
    }

    return ngx_http_xet_store_log(file->store, rc, &error, log);
}


xet_status_t
ngx_http_xet_store_write_job(ngx_http_xet_temp_t *file, const u_char *data,
    size_t len, ngx_log_t *log)
{
    xet_status_t       rc;
    xet_store_error_t  error;

    if (file->writer == NULL) {
        rc = ngx_http_xet_store_open_job(file, log);

        if (rc != XET_OK) {
            return rc;
        }
    }

    if (!file->digested) {
        rc = ngx_http_xet_store_patch_job(file, data, len, file->size, log);

    } else {

        if (file->checksum == NULL) {
            file->checksum = xet_checksum_create();

            if (file->checksum == NULL) {
                return XET_NOMEM;
            }
        }

        xet_checksum_update(file->checksum, data, len);

        rc = ngx_http_xet_store_log(file->store,
                                    xet_store_writer_write(file->writer, data,
                                                           len, &error),
                                    &error, log);
    }

    if (rc == XET_OK) {
        file->size += (off_t) len;
    }

    return rc;
}


xet_status_t
ngx_http_xet_store_patch_job(ngx_http_xet_temp_t *file, const u_char *data,
    size_t len, off_t offset, ngx_log_t *log)
{
    xet_store_error_t  error;

    return ngx_http_xet_store_log(file->store,
                                  xet_store_writer_patch(file->writer, data,
                                                         len, offset, &error),
                                  &error, log);
}


xet_status_t
ngx_http_xet_store_read_job(ngx_http_xet_temp_t *file, u_char *data,
    size_t len, off_t offset, ngx_log_t *log)
{
    xet_status_t       rc;
    xet_store_error_t  error;

    rc = xet_store_writer_read(file->writer, data, len, offset, &error);

    return ngx_http_xet_store_log(file->store,
                                  (rc == XET_AGAIN) ? XET_STORE_FAILED : rc,
                                  &error, log);
}


/*
 * Sets file->committed as soon as a copy may exist, even if the job fails
 * later.
 */

xet_status_t
ngx_http_xet_store_commit_job(ngx_http_xet_temp_t *file,
    const xet_hash_t *xorb, ngx_log_t *log)
{
    char                 name[XET_STORE_COPY_MAX];
    ngx_uint_t           i;
    xet_status_t         rc;
    xet_store_error_t    error;
    xet_store_writer_t  *writer;

    rc = ngx_http_xet_store_identity_check_job(file->store, log);

    if (rc != XET_OK) {
        return rc;
    }

    xet_checksum_finish(file->checksum, &file->digest);

    file->xorb = *xorb;
    writer = file->writer;

    for (i = 0; i < NGX_HTTP_XET_COPY_IDS_MAX; i++) {

        rc = ngx_http_xet_store_draw_copy_id(&file->copy_id);

        if (rc != XET_OK) {
            return rc;
        }

        rc = writer->store->ops->keep(writer,
                                      xet_store_copy(name, xorb, file->copy_id),
                                      0, 0, &error);

        file->committed = writer->kept;
        file->made = (uint64_t) writer->made;

        if (rc != XET_AGAIN) {
            return ngx_http_xet_store_log(file->store, rc, &error, log);
        }

        file->copy_id = 0;
    }

    return XET_STORE_FAILED;
}
