
/*
 * Commits xorbs that clients have uploaded to the bucket themselves.
 *
 *     put      creates a URL for a PUT to <prefix>/staging/<hash>.<id>; the
 *              bucket checks length and checksum
 *     begin -> job: copies the object to an internal name, and removes the
 *              staged object
 *           -> job, XET_AGAIN -> ... -> job: the xorb has been verified,
 *              and is now a copy in the store
 *
 * The object is not trusted: all bytes are read and verified like those of an
 * upload.  The client may use the URL again at any time, and may request
 * several commits at once.  So the object is first copied to an internal name,
 * which has no URL.  The object with the internal name is verified, and then
 * copied to the name of a copy.  The bucket copies objects itself, so this
 * server transfers the bytes only once.  Copies have no footer, so an object
 * with a footer is read a second time, into a temporary file, which is uploaded
 * without the footer.
 *
 * The object with the internal name is removed at the end.  The sweep of
 * orphans removes staged objects that are never committed, and objects that a
 * failed commit has left behind (ngx_http_xet_store_orphans.c).
 *
 * The structure belongs to a job while the job runs, otherwise to the event
 * loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_base.h"

#include <openssl/rand.h>


#define NGX_HTTP_XET_STAGE_BUFFER  (4 * 1024 * 1024)
#define NGX_HTTP_XET_STAGE_COPY_IDS    16


static void ngx_http_xet_stage_name(char *dst, const char *folder,
    const xet_hash_t *xorb, const u_char *id);
static void ngx_http_xet_stage_checksum(char *dst, uint64_t crc64);
static xet_status_t ngx_http_xet_stage_open(ngx_http_xet_stage_t *stage,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_stage_piece(ngx_http_xet_stage_t *stage,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_stage_read(ngx_http_xet_stage_t *stage,
    u_char *buf, ngx_log_t *log);
static xet_status_t ngx_http_xet_stage_end(ngx_http_xet_stage_t *stage,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_stage_copy(ngx_http_xet_stage_t *stage,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_stage_failed(ngx_http_xet_stage_t *stage,
    xet_status_t rc, const xet_store_error_t *error, ngx_log_t *log);
static void ngx_http_xet_stage_remove(ngx_http_xet_stage_t *stage,
    ngx_log_t *log);


ngx_int_t
ngx_http_xet_stage_put(ngx_http_xet_store_t *store, const xet_hash_t *xorb,
    const u_char *id, uint64_t length, uint64_t crc64, time_t seconds,
    ngx_http_xet_stage_put_t *put)
{
    char             name[XET_S3_NAME_MAX], bytes[NGX_OFF_T_LEN + 1];
    size_t           n;
    xet_s3_grant_t   grant;
    xet_s3_header_t  headers[3];

    ngx_http_xet_stage_name(name, "staging/", xorb, id);
    ngx_http_xet_stage_checksum(put->checksum, crc64);

    *ngx_sprintf((u_char *) bytes, "%uL", length) = '\0';

    n = 0;

    headers[n].name = "content-length";
    headers[n++].value = bytes;

    headers[n].name = "if-none-match";
    headers[n++].value = "*";

    headers[n].name = "x-amz-checksum-crc64nvme";
    headers[n++].value = put->checksum;

    grant.method = "PUT";
    grant.name = name;
    grant.headers = headers;
    grant.nheaders = n;
    grant.made = ngx_time();
    grant.seconds = (uint32_t) seconds;

    return (xet_s3_presign(store->s3, &grant, put->url) == XET_S3_OK)
           ? NGX_OK : NGX_ERROR;
}


xet_status_t
ngx_http_xet_stage_draw(u_char *id)
{
    u_char  bytes[NGX_HTTP_XET_STAGE_ID / 2];

    if (RAND_bytes(bytes, sizeof(bytes)) != 1) {
        return XET_INTERNAL;
    }

    *ngx_hex_dump(id, bytes, sizeof(bytes)) = '\0';

    return XET_OK;
}


/*
 * Writes the name of a staged object to dst, a buffer of XET_S3_NAME_MAX
 * bytes.
 */

static void
ngx_http_xet_stage_name(char *dst, const char *folder, const xet_hash_t *xorb,
    const u_char *id)
{
    u_char  *p;

    p = ngx_cpymem(dst, folder, ngx_strlen(folder));
    p = xet_hash_print(p, xorb);
    *p++ = '.';
    p = ngx_cpymem(p, id, NGX_HTTP_XET_STAGE_ID);
    *p = '\0';
}


/*
 * Writes the value of the header x-amz-checksum-crc64nvme: eight bytes in
 * network order, as base64.
 */

static void
ngx_http_xet_stage_checksum(char *dst, uint64_t crc64)
{
    u_char      bytes[8];
    ngx_str_t   in, out;
    ngx_uint_t  i;

    for (i = 0; i < 8; i++) {
        bytes[i] = (u_char) (crc64 >> (56 - 8 * i));
    }

    in.data = bytes;
    in.len = sizeof(bytes);
    out.data = (u_char *) dst;

    ngx_encode_base64(&out, &in);

    dst[out.len] = '\0';
}


xet_status_t
ngx_http_xet_stage_begin(ngx_http_xet_stage_t *stage,
    ngx_http_xet_temp_t *file, const xet_suite_t *suite,
    const xet_hash_t *xorb, const u_char *id, uint64_t max, uint64_t footer)
{
    stage->store = file->store;
    stage->file = file;
    stage->xorb = *xorb;
    stage->max = max;
    stage->footer = footer;

    ngx_http_xet_stage_name(stage->name, "staging/", xorb, id);

    stage->verifier = xet_xorb_verifier_create(suite, xorb, max);
    stage->checksum = xet_checksum_create();

    return (stage->verifier && stage->checksum) ? XET_OK : XET_NOMEM;
}


xet_status_t
ngx_http_xet_stage_job(ngx_http_xet_stage_t *stage, ngx_log_t *log)
{
    xet_status_t  rc;

    rc = stage->size ? XET_OK : ngx_http_xet_stage_open(stage, log);

    if (rc == XET_OK) {
        rc = (stage->offset < stage->size)
             ? ngx_http_xet_stage_piece(stage, log)
             : ngx_http_xet_stage_end(stage, log);
    }

    /* a 4xx error: the client's data is wrong */

    if (rc == XET_OK
        || (rc != XET_NO_GRANT && xet_status_http(rc) / 100 == 4))
    {
        ngx_http_xet_stage_remove(stage, log);
    }

    return rc;
}


static xet_status_t
ngx_http_xet_stage_open(ngx_http_xet_stage_t *stage, ngx_log_t *log)
{
    char               ours[XET_S3_NAME_MAX];
    u_char             id[NGX_HTTP_XET_STAGE_ID + 1];
    xet_store_t       *backend;
    xet_status_t       rc;
    xet_store_item_t   object;
    xet_store_error_t  error;

    backend = stage->store->backend;

    rc = ngx_http_xet_stage_draw(id);

    if (rc != XET_OK) {
        return rc;
    }

    ngx_http_xet_stage_name(ours, "staging/ours/", &stage->xorb, id);

    rc = backend->ops->link(backend, stage->name, ours, &error);

    if (rc == XET_DONE) {
        return XET_NO_GRANT;
    }

    if (rc == XET_OK) {
        ngx_http_xet_stage_remove(stage, log);

        ngx_cpystrn((u_char *) stage->name, (u_char *) ours,
                    sizeof(stage->name));

        object.name = stage->name;

        backend->ops->stat(backend, &object, 1, &error);
        rc = object.status;
    }

    if (rc != XET_OK) {
        return ngx_http_xet_stage_failed(stage, rc, &error, log);
    }

    if (object.size == 0) {
        return XET_XORB_EMPTY;
    }

    if (object.size > stage->max + stage->footer) {
        return XET_XORB_SIZE;
    }

    stage->size = object.size;

    return XET_OK;
}


/*
 * Reads the next piece.  The buffer is allocated per job, so a commit that
 * waits for a thread holds no buffer.
 */

static xet_status_t
ngx_http_xet_stage_piece(ngx_http_xet_stage_t *stage, ngx_log_t *log)
{
    u_char        *buf;
    xet_status_t   rc;

    buf = ngx_alloc(NGX_HTTP_XET_STAGE_BUFFER, log);

    if (buf == NULL) {
        return XET_NOMEM;
    }

    rc = ngx_http_xet_stage_read(stage, buf, log);

    ngx_free(buf);

    return rc;
}


static xet_status_t
ngx_http_xet_stage_read(ngx_http_xet_stage_t *stage, u_char *buf,
    ngx_log_t *log)
{
    size_t              n, stored;
    xet_status_t        status;
    xet_store_error_t   error;
    xet_store_reader_t  reader;

    n = (size_t) ngx_min(NGX_HTTP_XET_STAGE_BUFFER,
                         stage->size - stage->offset);

    xet_store_reader_init(&reader, stage->store->backend);
    ngx_cpystrn((u_char *) reader.name, (u_char *) stage->name,
                sizeof(reader.name));

    status = reader.store->ops->read(&reader, buf, n, stage->offset, &error);

    if (status != XET_OK) {
        return ngx_http_xet_stage_failed(stage, status, &error, log);
    }

    stage->offset += n;

    status = xet_xorb_verifier_feed(stage->verifier, buf, n, &stored);

    if (status != XET_OK) {
        return status;
    }

    stage->stored += stored;

    if (stage->again) {
        status = ngx_http_xet_store_write_job(stage->file, buf, stored, log);

    } else {
        xet_checksum_update(stage->checksum, buf, stored);
    }

    return (status == XET_OK) ? XET_AGAIN : status;
}


static xet_status_t
ngx_http_xet_stage_end(ngx_http_xet_stage_t *stage, ngx_log_t *log)
{
    xet_status_t  rc;

    rc = xet_xorb_verifier_finish(stage->verifier);

    if (rc != XET_OK) {
        return rc;
    }

    if (stage->again) {
        return ngx_http_xet_store_commit_job(stage->file, &stage->xorb, log);
    }

    stage->file->xorb = stage->xorb;

    if (stage->stored == stage->size) {
        xet_checksum_finish(stage->checksum, &stage->file->digest);
        return ngx_http_xet_stage_copy(stage, log);
    }

    /* reads the object again, to upload it without its footer */

    xet_xorb_verifier_destroy(stage->verifier);

    stage->verifier = xet_xorb_verifier_create(&xet_suite_default,
                                               &stage->xorb, stage->max);

    if (stage->verifier == NULL) {
        return XET_NOMEM;
    }

    stage->again = 1;
    stage->offset = 0;
    stage->stored = 0;

    return XET_AGAIN;
}


static xet_status_t
ngx_http_xet_stage_copy(ngx_http_xet_stage_t *stage, ngx_log_t *log)
{
    char                  name[XET_STORE_COPY_MAX];
    ngx_uint_t            i;
    xet_store_t          *backend;
    xet_status_t          rc;
    xet_store_error_t     error;
    ngx_http_xet_temp_t  *file;

    file = stage->file;
    backend = stage->store->backend;

    rc = ngx_http_xet_store_identity_check_job(stage->store, log);

    for (i = 0; rc == XET_OK && i < NGX_HTTP_XET_STAGE_COPY_IDS; i++) {

        file->copy_id = 0;
        rc = ngx_http_xet_store_draw_copy_id(&file->copy_id);

        if (rc != XET_OK) {
            break;
        }

        file->made = (uint64_t) time(NULL);

        rc = backend->ops->link(backend, stage->name,
                                xet_store_copy(name, &file->xorb,
                                               file->copy_id),
                                &error);
        if (rc == XET_AGAIN) {
            rc = XET_OK;
            continue;
        }

        /* the copy may exist even if the store did not respond */

        file->committed = 1;

        return (rc == XET_OK) ? XET_OK
               : ngx_http_xet_stage_failed(stage, rc, &error, log);
    }

    return (rc == XET_OK) ? XET_STORE_FAILED : rc;
}


/*
 * Logs an error, and returns its status.  XET_DONE and XET_AGAIN mean that the
 * object is missing or too short.  For an object with an internal name, this is
 * a failure of the store.
 */

static xet_status_t
ngx_http_xet_stage_failed(ngx_http_xet_stage_t *stage, xet_status_t rc,
    const xet_store_error_t *error, ngx_log_t *log)
{
    if (rc == XET_DONE || rc == XET_AGAIN) {
        rc = XET_STORE_FAILED;
    }

    return ngx_http_xet_store_log(stage->store, rc, error, log);
}


/* Removes the object; if this fails, the sweep of orphans removes it. */

static void
ngx_http_xet_stage_remove(ngx_http_xet_stage_t *stage, ngx_log_t *log)
{
    xet_status_t       rc;
    xet_store_error_t  error;

    rc = xet_store_remove(stage->store->backend, stage->name, &error);

    (void) ngx_http_xet_store_log(stage->store, rc, &error, log);
}


void
ngx_http_xet_stage_destroy(ngx_http_xet_stage_t *stage)
{
    if (stage->verifier) {
        xet_xorb_verifier_destroy(stage->verifier);
        stage->verifier = NULL;
    }

    xet_checksum_destroy(stage->checksum);
    stage->checksum = NULL;
}
