
/*
 * A store in a bucket of an object store: <prefix>/xorbs/<namespace>/<aa>/
 * <hash>.<tag>, the same names as in a folder, so that tools of either kind
 * copy one to the other.
 *
 * An upload lies in a temporary file of this machine, and goes to the bucket in
 * parts while it grows, where its hash is claimed beforehand.  What is not
 * committed never becomes an object: the last part goes out with the commit,
 * which waits until the store has acknowledged all of it.
 *
 * No object is ever replaced: each upload has a tag that no other one has
 * (ngx_http_xet_store_tags.c).  Where the store knows a condition for it, that
 * is made, too, and elsewhere it is asked before.
 *
 * Reads ask for what they will need ahead, since each request costs a round
 * trip; the bytes are held in memory of the job until the copy is closed.
 *
 * Jobs wait for the network here, in the threads of the pools, as they wait for
 * a disk elsewhere; the client bounds how long (src/store/s3/xet_s3.h).
 *
 * That the bucket is the one of the database is looked at as with folders, but
 * an answer is good for some seconds: what it guards against, another disk
 * under the same path, does not happen to a bucket between two requests.  A
 * copy is called damaged only after a look of its own.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_ops.h"


#define NGX_HTTP_XET_OBJECTS_SKEW  60          /* s */


static ngx_int_t ngx_http_xet_objects_init(ngx_http_xet_store_t *store,
    ngx_cycle_t *cycle);
static xet_status_t ngx_http_xet_objects_identity_read_job(
    ngx_http_xet_store_t *store, u_char *identity, ngx_log_t *log);
static xet_status_t ngx_http_xet_objects_identity_make_job(
    ngx_http_xet_store_t *store, const u_char *identity, ngx_log_t *log);
static void ngx_http_xet_objects_grown_job(ngx_http_xet_temp_t *file,
    const u_char *data, size_t len, ngx_log_t *log);
static xet_status_t ngx_http_xet_objects_sync_job(ngx_http_xet_temp_t *file,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_objects_commit_job(ngx_http_xet_temp_t *file,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_objects_open_job(ngx_http_xet_opened_t *copy,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_objects_read_job(ngx_http_xet_opened_t *copy,
    u_char *buf, size_t len, uint64_t offset, ngx_log_t *log);
static xet_status_t ngx_http_xet_objects_fetch_job(ngx_http_xet_opened_t *copy,
    u_char *buf, size_t len, uint64_t offset, ngx_log_t *log);
static void ngx_http_xet_objects_close_job(ngx_http_xet_opened_t *copy,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_objects_remove_job(
    ngx_http_xet_store_t *store, const ngx_http_xet_copy_name_t *name,
    ngx_log_t *log);
static void ngx_http_xet_objects_clock(ngx_http_xet_store_t *store,
    ngx_log_t *log);
static void ngx_http_xet_objects_name(char *dst, const xet_hash_t *xorb,
    uint32_t tag);


const ngx_http_xet_store_ops_t  ngx_http_xet_store_s3_ops = {
    "bucket",
    ngx_http_xet_objects_init,
    ngx_http_xet_objects_identity_read_job,
    ngx_http_xet_objects_identity_make_job,
    ngx_http_xet_objects_grown_job,
    ngx_http_xet_objects_sync_job,
    ngx_http_xet_objects_commit_job,
    xet_s3_upload_destroy,
    ngx_http_xet_objects_stat_job,
    ngx_http_xet_objects_open_job,
    ngx_http_xet_objects_read_job,
    ngx_http_xet_objects_close_job,
    ngx_http_xet_objects_remove_job,
    ngx_http_xet_objects_remove_all_job,
    ngx_http_xet_orphans_s3_list_job,
    ngx_http_xet_orphans_s3_take_job,
    ngx_http_xet_orphans_s3_settle_job
};


/* Nothing is made in the bucket: whoever starts may do so without it. */

static ngx_int_t
ngx_http_xet_objects_init(ngx_http_xet_store_t *store, ngx_cycle_t *cycle)
{
    return NGX_OK;
}


static xet_status_t
ngx_http_xet_objects_identity_read_job(ngx_http_xet_store_t *store,
    u_char *identity, ngx_log_t *log)
{
    u_char          buf[NGX_HTTP_XET_IDENTITY_LEN + 2];
    size_t          len;
    xet_s3_rc_t     rc;
    xet_s3_error_t  error;

    len = sizeof(buf);

    rc = xet_s3_get_small(store->s3, "identity", buf, &len, &error);

    ngx_http_xet_objects_clock(store, log);

    if (rc == XET_S3_NOT_FOUND) {
        return XET_DONE;
    }

    if (rc != XET_S3_OK) {
        return ngx_http_xet_store_s3_failed(store, rc, &error, log);
    }

    if (len != NGX_HTTP_XET_IDENTITY_LEN + 1
        || buf[NGX_HTTP_XET_IDENTITY_LEN] != '\n')
    {
        ngx_log_error(NGX_LOG_CRIT, log, 0,
                      "xet: \"%V/identity\" is not the identity of a store",
                      &store->name);
        return XET_STORE_FAILED;
    }

    ngx_memcpy(identity, buf, NGX_HTTP_XET_IDENTITY_LEN);
    identity[NGX_HTTP_XET_IDENTITY_LEN] = '\0';

    return XET_OK;
}


/*
 * The client signs for the clock of the store, wherever that is, and nothing
 * fails; but whoever signs elsewhere, an edge, has to be right, and so has who
 * reads logs.  Told when it changes, once a worker.
 */

static void
ngx_http_xet_objects_clock(ngx_http_xet_store_t *store, ngx_log_t *log)
{
    int64_t  skew, told;

    static int64_t  last;                      /* that was told */

    skew = xet_s3_skew(store->s3);
    told = __atomic_load_n(&last, __ATOMIC_RELAXED);

    if (ngx_abs(skew - told) < NGX_HTTP_XET_OBJECTS_SKEW
        || !__atomic_compare_exchange_n(&last, &told, skew, 0,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    {
        return;
    }

    if (ngx_abs(skew) < NGX_HTTP_XET_OBJECTS_SKEW) {
        ngx_log_error(NGX_LOG_NOTICE, log, 0,
                      "xet: \"%V\": the clock of the store is that of this "
                      "machine again", &store->name);
        return;
    }

    ngx_log_error(NGX_LOG_WARN, log, 0,
                  "xet: \"%V\": the clock of the store is %L s %s that of this "
                  "machine: requests are signed for the clock of the store, "
                  "one of the two is wrong", &store->name, ngx_abs(skew),
                  (skew > 0) ? "ahead of" : "behind");
}


static xet_status_t
ngx_http_xet_objects_identity_make_job(ngx_http_xet_store_t *store,
    const u_char *identity, ngx_log_t *log)
{
    u_char          line[NGX_HTTP_XET_IDENTITY_LEN + 1];
    xet_s3_rc_t     rc;
    xet_s3_error_t  error;

    ngx_memcpy(line, identity, NGX_HTTP_XET_IDENTITY_LEN);
    line[NGX_HTTP_XET_IDENTITY_LEN] = '\n';

    rc = xet_s3_put_small(store->s3, "identity", line, sizeof(line), 1,
                          &error);

    return (rc == XET_S3_OK || rc == XET_S3_EXISTS)
           ? XET_OK : ngx_http_xet_store_s3_failed(store, rc, &error, log);
}


/*
 * Parts go out under the name that the copy will have; without a claim it is
 * known with the last byte only.  The data was just verified: it is hashed as
 * long as the processor has it in its cache.
 */

static void
ngx_http_xet_objects_grown_job(ngx_http_xet_temp_t *file, const u_char *data,
    size_t len, ngx_log_t *log)
{
    char            name[NGX_HTTP_XET_XORB_PATH_MAX + 1];
    xet_s3_error_t  error;

    if (file->upload == NULL) {

        if (!file->claimed
            || ngx_http_xet_store_draw_tag(&file->tag) != XET_OK)
        {
            return;
        }

        ngx_http_xet_objects_name(name, &file->xorb, file->tag);

        file->upload = xet_s3_upload_create(file->store->s3, name);

        if (file->upload == NULL) {
            return;
        }

        file->made = (uint64_t) time(NULL);
    }

    if (xet_s3_upload_hashed(file->upload) + len == (uint64_t) file->size
        && xet_s3_upload_hash(file->upload, data, len, &error) != XET_S3_OK)
    {
        return;
    }

    (void) xet_s3_upload_ready(file->upload, file->fd, (uint64_t) file->size,
                               &error);
}


/* The bytes are durable where they are sent to. */

static xet_status_t
ngx_http_xet_objects_sync_job(ngx_http_xet_temp_t *file, ngx_log_t *log)
{
    return XET_OK;
}


static xet_status_t
ngx_http_xet_objects_commit_job(ngx_http_xet_temp_t *file, ngx_log_t *log)
{
    char            name[NGX_HTTP_XET_XORB_PATH_MAX + 1];
    xet_s3_rc_t     rc;
    xet_s3_error_t  error;

    if (file->upload && xet_s3_upload_begun(file->upload)
        && (uint64_t) time(NULL) - file->made > NGX_HTTP_XET_UPLOAD_AGE)
    {
        /* an object is as old as its first part: it is sent anew */

        xet_s3_upload_destroy(file->upload);
        file->upload = NULL;

        return XET_AGAIN;
    }

    ngx_http_xet_objects_name(name, &file->xorb, file->tag);

    if (file->upload == NULL) {
        file->upload = xet_s3_upload_create(file->store->s3, name);

        if (file->upload == NULL) {
            return XET_NOMEM;
        }
    }

    if (!xet_s3_upload_begun(file->upload)) {
        file->made = (uint64_t) time(NULL);
    }

    rc = xet_s3_upload_finish(file->upload, name, file->fd,
                              (uint64_t) file->size, 1, &error);

    xet_s3_upload_destroy(file->upload);
    file->upload = NULL;

    if (rc == XET_S3_EXISTS) {
        return XET_AGAIN;
    }

    /* without an acknowledgement there may be an object all the same */

    file->committed = 1;

    return (rc == XET_S3_OK)
           ? XET_OK
           : ngx_http_xet_store_s3_failed(file->store, rc, &error, log);
}


/* Nothing is asked before the first read. */

static xet_status_t
ngx_http_xet_objects_open_job(ngx_http_xet_opened_t *copy, ngx_log_t *log)
{
    return XET_OK;
}


static xet_status_t
ngx_http_xet_objects_read_job(ngx_http_xet_opened_t *copy, u_char *buf,
    size_t len, uint64_t offset, ngx_log_t *log)
{
    size_t        ahead;
    xet_status_t  rc;

    if (offset < copy->start || len > copy->end - copy->start
        || offset - copy->start > copy->end - copy->start - len)
    {
        return ngx_http_xet_objects_fetch_job(copy, buf, len, offset, log);
    }

    if (!copy->came) {
        ahead = (size_t) (copy->end - copy->start);

        if (copy->room < ahead) {

            if (copy->buf) {
                ngx_free(copy->buf);
            }

            copy->room = 0;
            copy->buf = ngx_alloc(ahead, log);

            if (copy->buf == NULL) {
                return XET_NOMEM;
            }

            copy->room = ahead;
        }

        rc = ngx_http_xet_objects_fetch_job(copy, copy->buf, ahead,
                                            copy->start, log);
        if (rc == XET_AGAIN) {

            /* the object ends there; what is asked for may be before that */

            copy->end = copy->start;

            return ngx_http_xet_objects_fetch_job(copy, buf, len, offset, log);
        }

        if (rc != XET_OK) {
            return rc;
        }

        copy->came = 1;
    }

    ngx_memcpy(buf, copy->buf + (offset - copy->start), len);

    return XET_OK;
}


static xet_status_t
ngx_http_xet_objects_fetch_job(ngx_http_xet_opened_t *copy, u_char *buf,
    size_t len, uint64_t offset, ngx_log_t *log)
{
    char            name[NGX_HTTP_XET_XORB_PATH_MAX + 1];
    xet_s3_rc_t     rc;
    xet_s3_error_t  error;

    ngx_http_xet_objects_name(name, &copy->xorb, copy->tag);

    rc = xet_s3_get(copy->store->s3, name, offset, len, buf, &error);

    switch (rc) {

    case XET_S3_OK:
        return XET_OK;

    case XET_S3_NOT_FOUND:
        return XET_DONE;

    case XET_S3_SHORT:
        return XET_AGAIN;

    default:
        return ngx_http_xet_store_s3_failed(copy->store, rc, &error, log);
    }
}


static void
ngx_http_xet_objects_close_job(ngx_http_xet_opened_t *copy, ngx_log_t *log)
{
    /* void */
}


static xet_status_t
ngx_http_xet_objects_remove_job(ngx_http_xet_store_t *store,
    const ngx_http_xet_copy_name_t *copy, ngx_log_t *log)
{
    char            name[NGX_HTTP_XET_XORB_PATH_MAX + 1];
    xet_s3_rc_t     rc;
    xet_s3_error_t  error;

    ngx_http_xet_objects_name(name, &copy->xorb, copy->tag);

    rc = xet_s3_delete(store->s3, name, &error);

    return (rc == XET_S3_OK)
           ? XET_OK : ngx_http_xet_store_s3_failed(store, rc, &error, log);
}


xet_status_t
ngx_http_xet_store_presign(ngx_http_xet_store_t *store, xet_buf_t *b,
    const xet_hash_t *xorb, uint32_t tag, uint64_t start, uint64_t end,
    time_t made, time_t seconds)
{
    char             name[NGX_HTTP_XET_XORB_PATH_MAX + 1];
    char             url[XET_S3_URL_MAX], range[64];
    xet_s3_grant_t   grant;
    xet_s3_header_t  header;

    ngx_http_xet_objects_name(name, xorb, tag);

    *ngx_sprintf((u_char *) range, "bytes=%uL-%uL", start, end - 1) = '\0';

    header.name = "range";
    header.value = range;

    grant.method = "GET";
    grant.name = name;
    grant.headers = &header;
    grant.nheaders = 1;
    grant.made = made;
    grant.seconds = (uint32_t) seconds;

    if (xet_s3_presign(store->s3, &grant, url) != XET_S3_OK) {
        return XET_INTERNAL;
    }

    xet_buf_write(b, url, ngx_strlen(url));

    return XET_OK;
}


ngx_int_t
ngx_http_xet_store_sign(ngx_http_xet_store_t *store, const xet_hash_t *xorb,
    uint32_t tag, xet_s3_signed_t *out)
{
    char  name[NGX_HTTP_XET_XORB_PATH_MAX + 1];

    if (store == NULL || store->s3 == NULL) {
        return NGX_DECLINED;
    }

    ngx_http_xet_objects_name(name, xorb, tag);

    return (xet_s3_sign(store->s3, "GET", name, ngx_time(), out) == XET_S3_OK)
           ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_xet_store_uri(ngx_http_xet_store_t *store, const xet_hash_t *xorb,
    uint32_t tag, char *path)
{
    char  name[NGX_HTTP_XET_XORB_PATH_MAX + 1];

    if (store == NULL || store->s3 == NULL) {
        return NGX_DECLINED;
    }

    ngx_http_xet_objects_name(name, xorb, tag);

    return (xet_s3_path(store->s3, name, path) == XET_S3_OK) ? NGX_OK
                                                             : NGX_ERROR;
}


/* The name below the prefix; dst has NGX_HTTP_XET_XORB_PATH_MAX + 1 bytes. */

static void
ngx_http_xet_objects_name(char *dst, const xet_hash_t *xorb, uint32_t tag)
{
    u_char  path[NGX_HTTP_XET_XORB_PATH_MAX + 1];

    *ngx_http_xet_store_path(path, xorb, tag) = '\0';

    ngx_cpystrn((u_char *) dst, path + 1, NGX_HTTP_XET_XORB_PATH_MAX + 1);
}
