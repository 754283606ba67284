
/*
 * Decodes chunks from the files of the store.
 *
 * A codec and its buffers need half a MiB.  They belong to the few threads of
 * the pool, not to requests, of which thousands may wait for slow clients.  A
 * thread creates its codec in its first job and never frees it: threads end
 * with the process, when nginx may already have unloaded the module with the
 * destructor.
 *
 * A job has one copy of a xorb open at a time, and closes the last one at its
 * end, so the number of threads also bounds the number of descriptors.
 *
 * States of ngx_http_xet_decode_t: no copy open -> one open -> ... -> end.
 * The structure belongs to the job.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_store.h"


static xet_status_t ngx_http_xet_decode_read_job(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk, u_char *stored, u_char *out);
static xet_status_t ngx_http_xet_decode_failed(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk, xet_status_t status, ngx_err_t err,
    const char *why);


xet_status_t
ngx_http_xet_decode_begin_job(ngx_http_xet_decode_t *d,
    const xet_suite_t *suite, ngx_http_xet_store_t *store, ngx_log_t *log)
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
    d->log = log;

    ngx_http_xet_copy_init(&d->copy, store);

    return XET_OK;
}


xet_status_t
ngx_http_xet_decode_open_job(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk)
{
    xet_status_t  rc;

    if (d->copy.opened && d->copy.copy_id == chunk->copy_id
        && xet_hash_equal(&d->copy.xorb, chunk->xorb))
    {
        return XET_OK;
    }

    rc = ngx_http_xet_copy_open_job(&d->copy, chunk->xorb, chunk->copy_id,
                                    d->log);

    return (rc == XET_OK) ? XET_OK
           : ngx_http_xet_decode_failed(d, chunk, rc, d->copy.err,
                                        d->copy.why);
}


void
ngx_http_xet_decode_ahead(ngx_http_xet_decode_t *d, uint64_t start,
    uint64_t end)
{
    ngx_http_xet_copy_ahead(&d->copy, start, end);
}


xet_status_t
ngx_http_xet_decode_chunk_job(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk, u_char *out)
{
    u_char        *stored, before[XET_XORB_HEADER_LEN];
    xet_status_t   rc;

    /*
     * A chunk without compression is read to its place in out, its header to
     * the bytes before out, which are put back.
     */

    stored = (chunk->stored_len == XET_XORB_HEADER_LEN + chunk->raw_len)
             ? out - XET_XORB_HEADER_LEN : d->thread->stored;

    ngx_memcpy(before, out - XET_XORB_HEADER_LEN, XET_XORB_HEADER_LEN);

    rc = ngx_http_xet_decode_read_job(d, chunk, stored, out);

    ngx_memcpy(out - XET_XORB_HEADER_LEN, before, XET_XORB_HEADER_LEN);

    return rc;
}


static xet_status_t
ngx_http_xet_decode_read_job(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk, u_char *stored, u_char *out)
{
    xet_status_t  rc;

    rc = ngx_http_xet_copy_read_job(&d->copy, stored, chunk->stored_len,
                                    chunk->stored_start, d->log);
    if (rc != XET_OK) {
        return ngx_http_xet_decode_failed(d, chunk, rc, d->copy.err,
                                          d->copy.why);
    }

    /* compression may have saved nothing */

    if (stored != d->thread->stored
        && xet_xorb_header_scheme(stored) != XET_SCHEME_NONE)
    {
        ngx_memcpy(d->thread->stored, stored, chunk->stored_len);
        stored = d->thread->stored;
    }

    rc = xet_xorb_chunk_decode(d->suite, d->thread->codec, stored,
                               chunk->stored_len, chunk->hash, out,
                               chunk->raw_len);

    if (rc == XET_OK || rc == XET_NOMEM) {
        return rc;
    }

    return ngx_http_xet_decode_failed(d, chunk, XET_STORE_DAMAGED, 0,
                                      xet_status_text(rc));
}


void
ngx_http_xet_decode_end_job(ngx_http_xet_decode_t *d)
{
    ngx_http_xet_copy_close_job(&d->copy, d->log);
}


static xet_status_t
ngx_http_xet_decode_failed(ngx_http_xet_decode_t *d,
    const xet_cursor_chunk_t *chunk, xet_status_t status, ngx_err_t err,
    const char *why)
{
    d->lost.xorb = *chunk->xorb;
    d->lost.copy_id = chunk->copy_id;
    d->lost.index = chunk->index;
    d->lost.err = err;
    d->lost.why = why;

    return status;
}


void
ngx_http_xet_decode_log(const ngx_http_xet_decode_lost_t *lost,
    ngx_log_t *log)
{
    u_char  name[XET_XORB_NAME_MAX + 1];

    *xet_xorb_name_print(name, &lost->xorb, lost->copy_id) = '\0';

    ngx_log_error(NGX_LOG_ALERT, log, lost->err,
                  "xet: chunk %uD of xorb %s can't be read: %s",
                  lost->index, name, lost->why);
}
