
/*
 * Writes the terms of ingested files to a temporary file, in the format of the
 * file section of a shard, for ngx_http_xet_register().  The temporary file
 * contains the header of a shard and, for each file, a header, segments and the
 * SHA-256.
 *
 * The number of segments and the hash of a file are known only when the file
 * is closed.  Then its header is overwritten.
 */

#include "ngx_http_xet_spool.h"


static void *ngx_http_xet_spool_alloc(void *data, size_t size);
static void ngx_http_xet_spool_empty(ngx_http_xet_spool_t *s);
static xet_status_t ngx_http_xet_spool_open_job(ngx_http_xet_spool_t *s,
    uint32_t number, ngx_log_t *log);
static xet_status_t ngx_http_xet_spool_flush_job(ngx_http_xet_spool_t *s,
    ngx_log_t *log);


ngx_int_t
ngx_http_xet_spool_init(ngx_http_request_t *r, ngx_http_xet_spool_t *s)
{
    s->file = ngx_http_xet_store_temp(r);

    return s->file ? NGX_OK : NGX_ERROR;
}


void
ngx_http_xet_spool_begin_job(ngx_http_xet_spool_t *s, ngx_log_t *log)
{
    ngx_http_xet_store_reset_job(s->file, log);

    s->terms = 0;
    s->end = 0;
    s->open = 0;

    ngx_http_xet_spool_empty(s);

    xet_shard_build_header(&s->buf, 0);
}


/*
 * Returns the memory of the only node of the buffer.  A full buffer is flushed
 * and reused.
 */

static void *
ngx_http_xet_spool_alloc(void *data, size_t size)
{
    ngx_http_xet_spool_t *s = data;

    return (size <= sizeof(s->room)) ? s->room : NULL;
}


static void
ngx_http_xet_spool_empty(ngx_http_xet_spool_t *s)
{
    xet_buf_init(&s->buf, ngx_http_xet_spool_alloc, s,
                 NGX_HTTP_XET_SPOOL_RECORDS * XET_SHARD_RECORD_LEN);
}


xet_status_t
ngx_http_xet_spool_term_job(ngx_http_xet_spool_t *s,
    const xet_ingest_term_t *term, ngx_log_t *log)
{
    xet_status_t  rc;

    rc = s->open ? XET_OK : ngx_http_xet_spool_open_job(s, term->file, log);

    if (rc != XET_OK) {
        return rc;
    }

    if (s->count == XET_SHARD_TERMS_MAX) {
        return XET_BODY_SIZE;
    }

    xet_shard_build_term(&s->buf, &term->xorb, term->raw_length,
                         term->chunk_start, term->chunk_end);
    s->count++;
    s->terms++;

    if (s->buf.size == NGX_HTTP_XET_SPOOL_RECORDS * XET_SHARD_RECORD_LEN) {
        return ngx_http_xet_spool_flush_job(s, log);
    }

    return XET_OK;
}


static xet_status_t
ngx_http_xet_spool_open_job(ngx_http_xet_spool_t *s, uint32_t number,
    ngx_log_t *log)
{
    xet_hash_t    hash;
    xet_status_t  rc;

    /* flush, so that the header of the new file is at s->file->size */

    rc = ngx_http_xet_spool_flush_job(s, log);

    if (rc != XET_OK) {
        return rc;
    }

    ngx_memzero(&hash, sizeof(xet_hash_t));

    s->start = (uint64_t) s->file->size;
    s->number = number;
    s->count = 0;
    s->open = 1;

    xet_shard_build_file(&s->buf, &hash, 0, 0);

    return XET_OK;
}


xet_status_t
ngx_http_xet_spool_close_job(ngx_http_xet_spool_t *s, const xet_hash_t *hash,
    const u_char *sha256, ngx_log_t *log)
{
    xet_status_t  rc;

    xet_shard_build_metadata(&s->buf, sha256);

    rc = ngx_http_xet_spool_flush_job(s, log);

    if (rc != XET_OK) {
        return rc;
    }

    s->end = (uint64_t) s->file->size;
    s->open = 0;

    xet_shard_build_file(&s->buf, hash, XET_SHARD_FILE_METADATA, s->count);

    rc = ngx_http_xet_store_patch_job(s->file, s->buf.first->start,
                                      XET_SHARD_RECORD_LEN,
                                      (off_t) s->start, log);
    ngx_http_xet_spool_empty(s);

    return rc;
}


static xet_status_t
ngx_http_xet_spool_flush_job(ngx_http_xet_spool_t *s, ngx_log_t *log)
{
    xet_status_t  rc;

    rc = xet_buf_status(&s->buf);

    if (rc == XET_OK && s->buf.size) {
        rc = ngx_http_xet_store_write_job(s->file, s->buf.first->start,
                                          (size_t) s->buf.size, log);
    }

    ngx_http_xet_spool_empty(s);

    return rc;
}
