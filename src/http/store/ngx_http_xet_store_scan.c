
/*
 * Reads a copy of a xorb to its end, one piece per job, for background jobs
 * that check the store.
 *
 *     begin (event loop) -> job, XET_AGAIN -> ... -> job, the result
 *
 * A copy of the store is compared with the size and the digest in its row.
 * Old rows have a chunk list but no digest.  Then the copy is decoded, every
 * chunk is hashed, and the ends of the stored chunks are compared with the
 * row, since terms refer to these offsets.  A copy from a peer is decoded too,
 * because nothing that a peer sends is trusted; the size of such a copy is
 * unknown until its end arrives (ngx_http_xet_fetch.c).
 *
 * If the file system allows it, reads bypass the page cache: the data of
 * readers stays cached, and the disk itself is checked.  Otherwise the kernel
 * is told to drop the pages after each read.  The thread has a low I/O
 * priority during the job.
 *
 * A damaged copy is read once more from its beginning, by another job, before
 * it is reported: a bit may have flipped in transit or in memory.
 *
 * The criteria for damage are the same as for readers (ngx_http_xet_decode.c):
 * wrong bytes, a wrong size, or a missing file, if the store belongs to this
 * database.  After an error of the system the state of the copy is unknown.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store_base.h"

#include <openssl/sha.h>
#include <sys/syscall.h>


#define NGX_HTTP_XET_SCAN_BUFFER  (256 * 1024)
#define NGX_HTTP_XET_SCAN_ALIGN   4096
#define NGX_HTTP_XET_SCAN_AHEAD   (4 * 1024 * 1024)     /* bytes read ahead */
#define NGX_HTTP_XET_SCAN_TIME    50           /* ms */

/* argument of ioprio_set(): class "best effort", lowest priority */

#define NGX_HTTP_XET_SCAN_IOPRIO  ((2 << 13) | 7)
#define NGX_HTTP_XET_SCAN_IDLE    3            /* class "idle", even lower */


static void ngx_http_xet_scan_init(ngx_http_xet_scan_t *scan,
    const xet_hash_t *xorb, uint32_t copy_id);
static xet_status_t ngx_http_xet_scan_read(ngx_http_xet_scan_t *scan,
    size_t limit, size_t *taken, ngx_log_t *log);
static xet_status_t ngx_http_xet_scan_open(ngx_http_xet_scan_t *scan,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_scan_piece(ngx_http_xet_scan_t *scan,
    size_t *len, ngx_log_t *log);
static xet_status_t ngx_http_xet_scan_feed(ngx_http_xet_scan_t *scan,
    size_t len, ngx_log_t *log);
static xet_status_t ngx_http_xet_scan_verdict(ngx_http_xet_scan_t *scan,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_scan_damaged(ngx_http_xet_scan_t *scan,
    const char *why, ngx_log_t *log);
static xet_status_t ngx_http_xet_scan_again(ngx_http_xet_scan_t *scan,
    ngx_log_t *log);
static void ngx_http_xet_scan_close(ngx_http_xet_scan_t *scan);
static void ngx_http_xet_scan_close_job(void *data, ngx_log_t *log);
static int ngx_http_xet_scan_priority(int priority);


static void
ngx_http_xet_scan_init(ngx_http_xet_scan_t *scan, const xet_hash_t *xorb,
    uint32_t copy_id)
{
    ngx_memzero(scan, sizeof(ngx_http_xet_scan_t));

    scan->xorb = *xorb;
    scan->copy_id = copy_id;
}


xet_status_t
ngx_http_xet_scan_copy(ngx_http_xet_scan_t *scan, ngx_http_xet_store_t *store,
    const xet_hash_t *xorb, uint32_t copy_id, uint64_t size,
    const xet_checksum_t *digest, const u_char *ends)
{
    ngx_http_xet_scan_init(scan, xorb, copy_id);

    scan->store = store;
    scan->size = size;

    if (digest) {
        scan->digest = *digest;
        scan->checksum = xet_checksum_create();

        return scan->checksum ? XET_OK : XET_NOMEM;
    }

    ngx_memcpy(scan->ends, ends, NGX_HTTP_XET_ENDS_LEN);
    scan->verifier = xet_xorb_verifier_create(&xet_suite_default, xorb, size);

    return scan->verifier ? XET_OK : XET_NOMEM;
}


xet_status_t
ngx_http_xet_scan_foreign(ngx_http_xet_scan_t *scan, const ngx_str_t *folder,
    const xet_hash_t *xorb, uint32_t copy_id, uint64_t size_max,
    ngx_http_xet_temp_t *copy)
{
    char  name[XET_STORE_COPY_MAX];

    ngx_http_xet_scan_init(scan, xorb, copy_id);

    (void) ngx_snprintf((u_char *) scan->path, NGX_MAX_PATH, "%V/%s%Z", folder,
                        xet_store_copy(name, xorb, copy_id));

    scan->copy = copy;
    scan->foreign = xet_store_files((char *) folder->data);
    scan->verifier = xet_xorb_verifier_create(&xet_suite_default, xorb,
                                              size_max);

    return (scan->foreign && scan->verifier) ? XET_OK : XET_NOMEM;
}


xet_status_t
ngx_http_xet_scan_peer(ngx_http_xet_scan_t *scan,
    ngx_http_xet_fetch_t *fetch, const xet_hash_t *xorb, uint64_t size_max,
    ngx_http_xet_temp_t *copy)
{
    ngx_http_xet_scan_init(scan, xorb, 0);

    scan->copy = copy;
    scan->end = NGX_MAX_OFF_T_VALUE;
    scan->verifier = xet_xorb_verifier_create(&xet_suite_default, xorb,
                                              size_max);

    if (scan->verifier == NULL) {
        return XET_NOMEM;
    }

    scan->fetch = fetch;

    ngx_http_xet_fetch_begin(fetch, xorb, scan->path, sizeof(scan->path));

    return XET_OK;
}


xet_status_t
ngx_http_xet_scan_job(ngx_http_xet_scan_t *scan, size_t limit, size_t *taken,
    ngx_log_t *log)
{
    int           priority;
    xet_status_t  rc;

    priority = ngx_http_xet_scan_priority(NGX_HTTP_XET_SCAN_IOPRIO);

    rc = ngx_http_xet_scan_read(scan, limit, taken, log);

    if (rc == XET_STORE_DAMAGED && scan->store && !scan->again) {
        rc = ngx_http_xet_scan_again(scan, log);
    }

    if (rc != XET_AGAIN) {
        ngx_http_xet_scan_close(scan);

    } else if (scan->opened) {

        /* frees the memory of the read-ahead between jobs */

        xet_store_reader_ahead(&scan->reader, 0, 0);
    }

    if (rc != XET_AGAIN && scan->fetch) {
        ngx_http_xet_fetch_end_job(scan->fetch);
    }

    (void) ngx_http_xet_scan_priority(priority);

    return rc;
}


/* Starts a second read from the beginning. */

static xet_status_t
ngx_http_xet_scan_again(ngx_http_xet_scan_t *scan, ngx_log_t *log)
{
    scan->again = 1;
    scan->offset = 0;

    ngx_http_xet_scan_close(scan);

    if (scan->checksum) {
        xet_checksum_destroy(scan->checksum);
        scan->checksum = xet_checksum_create();

        return scan->checksum ? XET_AGAIN : XET_NOMEM;
    }

    xet_xorb_verifier_destroy(scan->verifier);
    scan->verifier = xet_xorb_verifier_create(&xet_suite_default,
                                              &scan->xorb, scan->size);

    return scan->verifier ? XET_AGAIN : XET_NOMEM;
}


static xet_status_t
ngx_http_xet_scan_read(ngx_http_xet_scan_t *scan, size_t limit, size_t *taken,
    ngx_log_t *log)
{
    size_t        n, len;
    uint64_t      began, ahead;
    xet_status_t  rc, more;

    began = ngx_http_xet_store_clock();

    if (scan->buf == NULL) {
        scan->buf = ngx_memalign(NGX_HTTP_XET_SCAN_ALIGN,
                                 NGX_HTTP_XET_SCAN_BUFFER, log);
        if (scan->buf == NULL) {
            return XET_NOMEM;
        }
    }

    if (!scan->opened && scan->fetch == NULL) {
        rc = ngx_http_xet_scan_open(scan, log);

        if (rc != XET_OK) {
            return rc;
        }
    }

    /*
     * a bucket gets one request per job, for everything that the job may read
     */

    if (scan->opened) {
        ahead = ngx_max(ngx_min(limit, NGX_HTTP_XET_SCAN_AHEAD),
                        NGX_HTTP_XET_SCAN_BUFFER);

        xet_store_reader_ahead(&scan->reader, scan->offset,
                               ngx_min(scan->end, scan->offset + ahead));
    }

    len = 0;

    for (n = 0; scan->offset < scan->end; n += len) {

        if (n >= limit
            || ngx_http_xet_store_clock() - began >= NGX_HTTP_XET_SCAN_TIME)
        {
            return XET_AGAIN;
        }

        more = scan->fetch ? ngx_http_xet_fetch_job(scan->fetch, scan->buf,
                                                    NGX_HTTP_XET_SCAN_BUFFER,
                                                    &len, log)
                           : ngx_http_xet_scan_piece(scan, &len, log);

        if (more != XET_OK && (more != XET_AGAIN || len == 0)) {
            return more;
        }

        if (len == 0) {
            break;
        }

        rc = ngx_http_xet_scan_feed(scan, len, log);

        if (rc != XET_OK) {
            return rc;
        }

        *taken += len;

        if (more == XET_AGAIN) {
            return XET_AGAIN;
        }
    }

    return ngx_http_xet_scan_verdict(scan, log);
}


static xet_status_t
ngx_http_xet_scan_open(ngx_http_xet_scan_t *scan, ngx_log_t *log)
{
    const char         *missing, *other;
    xet_store_t        *files;
    xet_status_t        rc;
    xet_store_error_t   error;

    missing = "its file is missing";
    other = "its file has another size";

    if (scan->store && scan->store->s3) {
        missing = "it is missing or has another size";
        other = missing;
    }

    files = scan->store ? scan->store->backend : scan->foreign;

    xet_store_reader_init(&scan->reader, files);

    scan->reader.past = 1;
    (void) xet_store_copy(scan->reader.name, &scan->xorb, scan->copy_id);

    scan->opened = 1;

    rc = files->ops->open(&scan->reader, &error);

    if (rc == XET_OK) {
        rc = files->ops->size(&scan->reader, &error);
    }

    if (rc == XET_DONE) {
        rc = ngx_http_xet_scan_damaged(scan, missing, log);

        if (rc != XET_STORE_DAMAGED) {
            return rc;
        }

        /*
         * the disk may have been mounted since the first attempt to open the
         * file
         */

        rc = files->ops->open(&scan->reader, &error);

        if (rc == XET_OK) {
            rc = files->ops->size(&scan->reader, &error);
        }

        if (rc == XET_DONE) {
            return XET_STORE_DAMAGED;
        }
    }

    if (rc == XET_STORE_DAMAGED) {
        return ngx_http_xet_scan_damaged(scan, "it is not a regular file", log);
    }

    if (rc != XET_OK) {
        return ngx_http_xet_store_log(scan->store, rc, &error, log);
    }

    scan->end = scan->reader.size;

    if (scan->size && scan->end != scan->size) {
        return ngx_http_xet_scan_damaged(scan, other, log);
    }

    return XET_OK;
}


/* Fills the buffer from the current offset. */

static xet_status_t
ngx_http_xet_scan_piece(ngx_http_xet_scan_t *scan, size_t *len, ngx_log_t *log)
{
    xet_status_t       rc;
    xet_store_error_t  error;

    *len = ngx_min(NGX_HTTP_XET_SCAN_BUFFER,
                   (size_t) (scan->end - scan->offset));

    rc = scan->reader.store->ops->read(&scan->reader, scan->buf, *len,
                                       scan->offset, &error);

    switch (rc) {

    case XET_DONE:
        return ngx_http_xet_scan_damaged(scan, "its file is missing", log);

    case XET_STORE_DAMAGED:
        return ngx_http_xet_scan_damaged(scan, "it is not a regular file", log);

    case XET_AGAIN:
        return ngx_http_xet_scan_damaged(scan, "its file is truncated", log);

    default:
        return ngx_http_xet_store_log(scan->store, rc, &error, log);
    }
}


static xet_status_t
ngx_http_xet_scan_feed(ngx_http_xet_scan_t *scan, size_t len, ngx_log_t *log)
{
    size_t        stored;
    xet_status_t  rc;

    scan->offset += len;

    if (scan->checksum) {
        xet_checksum_update(scan->checksum, scan->buf, len);
        return XET_OK;
    }

    rc = xet_xorb_verifier_feed(scan->verifier, scan->buf, len, &stored);

    if (rc == XET_NOMEM) {
        return rc;
    }

    if (rc != XET_OK) {
        return ngx_http_xet_scan_damaged(scan, xet_status_text(rc), log);
    }

    return scan->copy ? ngx_http_xet_store_write_job(scan->copy, scan->buf,
                                                     stored, log)
                      : XET_OK;
}


static xet_status_t
ngx_http_xet_scan_verdict(ngx_http_xet_scan_t *scan, ngx_log_t *log)
{
    u_char                  ends[NGX_HTTP_XET_ENDS_LEN];
    xet_status_t            rc;
    xet_checksum_t          found;
    const xet_xorb_info_t  *info;

    if (scan->checksum) {
        xet_checksum_finish(scan->checksum, &found);

        return xet_checksum_equal(&found, &scan->digest) ? XET_OK
               : ngx_http_xet_scan_damaged(scan, "its file has other content",
                                           log);
    }

    rc = xet_xorb_verifier_finish(scan->verifier);

    if (rc == XET_NOMEM) {
        return rc;
    }

    if (rc != XET_OK) {
        return ngx_http_xet_scan_damaged(scan, xet_status_text(rc), log);
    }

    if (scan->store == NULL) {
        return XET_OK;
    }

    info = xet_xorb_verifier_info(scan->verifier);

    (void) SHA256(info->stored_ends, info->chunk_count * 4, ends);

    return (info->stored_size == scan->size
            && ngx_memcmp(ends, scan->ends, NGX_HTTP_XET_ENDS_LEN) == 0)
           ? XET_OK
           : ngx_http_xet_scan_damaged(scan, "the positions of its chunks do "
                                             "not match its row", log);
}


static xet_status_t
ngx_http_xet_scan_damaged(ngx_http_xet_scan_t *scan, const char *why,
    ngx_log_t *log)
{
    xet_status_t  rc;

    scan->why = why;

    if (scan->store == NULL) {
        return XET_STORE_DAMAGED;
    }

    rc = ngx_http_xet_store_identity_look_job(scan->store, log);

    return (rc == XET_OK) ? XET_STORE_DAMAGED : rc;
}


const xet_xorb_info_t *
ngx_http_xet_scan_info(ngx_http_xet_scan_t *scan)
{
    return xet_xorb_verifier_info(scan->verifier);
}


void
ngx_http_xet_scan_destroy(ngx_http_xet_scan_t *scan)
{
    if (scan->opened && scan->reader.fd >= 0) {
        ngx_http_xet_task_detached(ngx_http_xet_scan_close_job,
                                   &scan->reader.fd, sizeof(ngx_fd_t));
        scan->reader.fd = NGX_INVALID_FILE;
    }

    ngx_http_xet_scan_close(scan);

    xet_store_destroy(scan->foreign);
    scan->foreign = NULL;

    scan->fetch = NULL;

    xet_checksum_destroy(scan->checksum);
    scan->checksum = NULL;

    if (scan->verifier) {
        xet_xorb_verifier_destroy(scan->verifier);
        scan->verifier = NULL;
    }

    if (scan->buf) {
        ngx_free(scan->buf);
        scan->buf = NULL;
    }
}


static void
ngx_http_xet_scan_close(ngx_http_xet_scan_t *scan)
{
    if (scan->opened) {
        xet_store_reader_close(&scan->reader);
        scan->opened = 0;
    }
}


static void
ngx_http_xet_scan_close_job(void *data, ngx_log_t *log)
{
    ngx_fd_t  *fd = data;

    if (close(*fd) == -1) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno,
                      "xet: closing a copy after reading it failed");
    }
}


/*
 * Sets the I/O priority of the thread, and returns the previous priority.
 * Errors are ignored.
 */

static int
ngx_http_xet_scan_priority(int priority)
{
#if defined(SYS_ioprio_get) && defined(SYS_ioprio_set)

    int  before;

    before = (int) syscall(SYS_ioprio_get, 1, 0);

    if (before != -1 && priority != -1
        && before >> 13 != NGX_HTTP_XET_SCAN_IDLE)
    {
        (void) syscall(SYS_ioprio_set, 1, 0, priority);
    }

    return before;

#else
    return -1;
#endif
}
