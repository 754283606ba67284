
/*
 * The terms of a file that is being taken in, in a temporary file.
 *
 * It holds a shard's header, the file's header, its segments and its SHA-256.
 * The number of segments and the file hash are known only at the end: then the
 * file's header is overwritten.
 */

#include "ngx_http_xet_ingest_spool.h"


static void *ngx_http_xet_ingest_spool_alloc(void *data, size_t size);
static void ngx_http_xet_ingest_spool_empty(ngx_http_xet_ingest_spool_t *s);
static xet_status_t ngx_http_xet_ingest_spool_flush_job(
    ngx_http_xet_ingest_spool_t *s, ngx_log_t *log);


ngx_int_t
ngx_http_xet_ingest_spool_init(ngx_http_request_t *r,
    ngx_http_xet_ingest_spool_t *s)
{
    xet_hash_t  hash;

    s->file = ngx_http_xet_store_temp(r);
    if (s->file == NULL) {
        return NGX_ERROR;
    }

    s->terms = 0;
    s->end = 0;

    ngx_http_xet_ingest_spool_empty(s);

    ngx_memzero(&hash, sizeof(xet_hash_t));

    xet_shard_build_header(&s->buf, 0);
    xet_shard_build_file(&s->buf, &hash, 0, 0);

    return NGX_OK;
}


/* The buffer has one node, s->room: it is flushed when full, and used again. */

static void *
ngx_http_xet_ingest_spool_alloc(void *data, size_t size)
{
    ngx_http_xet_ingest_spool_t *s = data;

    return (size <= sizeof(s->room)) ? s->room : NULL;
}


static void
ngx_http_xet_ingest_spool_empty(ngx_http_xet_ingest_spool_t *s)
{
    xet_buf_init(&s->buf, ngx_http_xet_ingest_spool_alloc, s,
                 NGX_HTTP_XET_SPOOL_RECORDS * XET_SHARD_RECORD_LEN);
}


xet_status_t
ngx_http_xet_ingest_spool_term_job(ngx_http_xet_ingest_spool_t *s,
    const xet_ingest_term_t *term, ngx_log_t *log)
{
    xet_status_t  rc;

    if (s->terms == XET_SHARD_SEGMENTS_MAX) {
        return XET_BODY_SIZE;
    }

    xet_shard_build_segment(&s->buf, &term->xorb, term->raw_length,
                            term->chunk_start, term->chunk_end);
    s->terms++;

    rc = XET_OK;

    if (s->buf.size == NGX_HTTP_XET_SPOOL_RECORDS * XET_SHARD_RECORD_LEN) {
        rc = ngx_http_xet_ingest_spool_flush_job(s, log);
    }

    return rc;
}


xet_status_t
ngx_http_xet_ingest_spool_close_job(ngx_http_xet_ingest_spool_t *s,
    const xet_hash_t *file, const u_char *sha256, ngx_log_t *log)
{
    xet_status_t  rc;

    xet_shard_build_metadata(&s->buf, sha256);

    rc = ngx_http_xet_ingest_spool_flush_job(s, log);

    if (rc != XET_OK) {
        return rc;
    }

    s->end = (uint64_t) s->file->size;

    xet_shard_build_file(&s->buf, file, XET_SHARD_FILE_METADATA,
                         (uint32_t) s->terms);

    return ngx_http_xet_store_patch_job(s->file, s->buf.first->start,
                                        XET_SHARD_RECORD_LEN,
                                        XET_SHARD_RECORD_LEN, log);
}


static xet_status_t
ngx_http_xet_ingest_spool_flush_job(ngx_http_xet_ingest_spool_t *s,
    ngx_log_t *log)
{
    xet_status_t  rc;

    rc = xet_buf_status(&s->buf);

    if (rc == XET_OK) {
        rc = ngx_http_xet_store_write_job(s->file, s->buf.first->start,
                                          (size_t) s->buf.size, log);
    }

    ngx_http_xet_ingest_spool_empty(s);

    return rc;
}
