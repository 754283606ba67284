
/*
 * Chunks out of the files of the store.
 *
 * A codec and the buffers it needs are half a MiB: they belong to the threads
 * of the pool, of which there are few, and not to the requests, of which
 * thousands may wait for slow clients.  A thread makes its own in its first
 * job and never frees them: the threads end with the process, and by then
 * nginx may have unloaded the module that a destructor would be in.
 *
 * A job has one copy of a xorb open at a time and closes the last one at its
 * end, so the number of descriptors is bounded by that of the threads as well.
 *
 * States of ngx_http_xet_decode_t: no copy open -> one open -> ... -> end.
 * The structure belongs to the job.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_store.h"


static xet_status_t ngx_http_xet_decode_open(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk);
static xet_status_t ngx_http_xet_decode_read(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk);
static xet_status_t ngx_http_xet_decode_failed(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk, ngx_err_t err, const char *why);


xet_status_t
ngx_http_xet_decode_begin_job(ngx_http_xet_decode_t *d,
    const xet_suite_t *suite, const ngx_str_t *store, ngx_log_t *log)
{
    ngx_http_xet_decode_thread_t  *t;

    static __thread ngx_http_xet_decode_thread_t  *thread;

    if (thread == NULL) {
        t = ngx_alloc(sizeof(ngx_http_xet_decode_thread_t), log);
        if (t == NULL) {
            return XET_NOMEM;
        }

        t->codec = xet_codec_create(&xet_suite_default);

        if (t->codec == NULL) {
            ngx_free(t);
            return XET_NOMEM;
        }

        thread = t;
    }

    d->thread = thread;
    d->suite = suite;
    d->store = *store;
    d->fd = NGX_INVALID_FILE;
    d->log = log;

    return XET_OK;
}


xet_status_t
ngx_http_xet_decode_chunk_job(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk, u_char *out)
{
    xet_status_t  rc;

    if (d->fd == NGX_INVALID_FILE || d->tag != chunk->tag
        || !xet_hash_equal(&d->xorb, chunk->xorb))
    {
        rc = ngx_http_xet_decode_open(d, chunk);

        if (rc != XET_OK) {
            return rc;
        }
    }

    rc = ngx_http_xet_decode_read(d, chunk);

    if (rc != XET_OK) {
        return rc;
    }

    rc = xet_xorb_chunk_decode(d->suite, d->thread->codec, d->thread->stored,
                               chunk->stored_len, chunk->hash, out,
                               chunk->raw_len);

    if (rc == XET_OK || rc == XET_NOMEM) {
        return rc;
    }

    return ngx_http_xet_decode_failed(d, chunk, 0, xet_status_text(rc));
}


static xet_status_t
ngx_http_xet_decode_open(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk)
{
    char     path[NGX_MAX_PATH];
    u_char  *p;

    ngx_http_xet_decode_end_job(d);

    if (d->store.len + NGX_HTTP_XET_XORB_PATH_MAX + 1 > sizeof(path)) {
        return XET_STORE_FAILED;
    }

    p = ngx_cpymem(path, d->store.data, d->store.len);
    p = ngx_http_xet_store_path(p, chunk->xorb, chunk->tag);
    *p = '\0';

    d->fd = open(path, O_RDONLY|O_CLOEXEC);

    if (d->fd == NGX_INVALID_FILE) {
        return ngx_http_xet_decode_failed(d, chunk, ngx_errno,
                                          "its file can't be opened");
    }

    d->xorb = *chunk->xorb;
    d->tag = chunk->tag;

    return XET_OK;
}


void
ngx_http_xet_decode_end_job(ngx_http_xet_decode_t *d)
{
    u_char  name[XET_HASH_STR_LEN + 1];

    if (d->fd == NGX_INVALID_FILE) {
        return;
    }

    if (close(d->fd) == -1) {
        *xet_hash_print(name, &d->xorb) = '\0';

        ngx_log_error(NGX_LOG_ALERT, d->log, ngx_errno,
                      "xet: close \"%s\" failed", name);
    }

    d->fd = NGX_INVALID_FILE;
}


static xet_status_t
ngx_http_xet_decode_read(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk)
{
    off_t     offset;
    size_t    len;
    u_char   *p;
    ssize_t   n;

    p = d->thread->stored;
    len = chunk->stored_len;
    offset = chunk->stored_start;

    while (len) {
        n = pread(d->fd, p, len, offset);

        if (n == -1) {

            if (ngx_errno == NGX_EINTR) {
                continue;
            }

            return ngx_http_xet_decode_failed(d, chunk, ngx_errno,
                                              "its file can't be read");
        }

        if (n == 0) {
            return ngx_http_xet_decode_failed(d, chunk, 0,
                                              "its file ends before it does");
        }

        p += n;
        len -= (size_t) n;
        offset += n;
    }

    return XET_OK;
}


/*
 * err is 0 for a copy that ends too early or has other bytes: the chunk is
 * lost.  A copy that is missing is lost only if the folder is the store of the
 * database.  Any other error of the system says nothing about the bytes.
 */

static xet_status_t
ngx_http_xet_decode_failed(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk, ngx_err_t err, const char *why)
{
    u_char        name[XET_XORB_NAME_MAX + 1];
    xet_status_t  rc;

    d->lost.xorb = *chunk->xorb;
    d->lost.tag = chunk->tag;
    d->lost.index = chunk->index;
    d->lost.err = err;
    d->lost.why = why;

    if (err == 0) {
        return XET_STORE_DAMAGED;
    }

    if (err == NGX_ENOENT) {
        rc = ngx_http_xet_store_identity_check_job(&d->store, d->log);

        return (rc == XET_OK) ? XET_STORE_DAMAGED : rc;
    }

    *xet_xorb_name_print(name, chunk->xorb, chunk->tag) = '\0';

    ngx_log_error(NGX_LOG_CRIT, d->log, err, "xet: xorb %s: %s", name, why);

    return ngx_http_xet_store_status(err);
}


void
ngx_http_xet_decode_log(const ngx_http_xet_decode_lost_t *lost,
    ngx_log_t *log)
{
    u_char  name[XET_XORB_NAME_MAX + 1];

    *xet_xorb_name_print(name, &lost->xorb, lost->tag) = '\0';

    ngx_log_error(NGX_LOG_ALERT, log, lost->err,
                  "xet: chunk %uD of xorb %s is lost: %s", lost->index, name,
                  lost->why);
}
