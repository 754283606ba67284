
/*
 * Reads the file section of a shard in batches.
 *
 * The parser has accepted the shard, so the header of a file determines where
 * its records are.  The verification records of a file follow all its segments,
 * so there are two read-ahead buffers, one for segments and one for
 * verification records.  A file may begin in one batch and end in another.
 */

#include "ngx_http_xet_term_batch.h"


static xet_status_t ngx_http_xet_term_batch_open(ngx_http_xet_term_batch_t *w,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_term_batch_segment(ngx_http_xet_term_batch_t
    *w, ngx_log_t *log);
static xet_status_t ngx_http_xet_term_batch_close(ngx_http_xet_term_batch_t *w,
    ngx_log_t *log);
static void ngx_http_xet_term_batch_window(ngx_http_xet_term_batch_t *w,
    ngx_http_xet_step_t *step);
static void ngx_http_xet_term_batch_slices(ngx_http_xet_term_batch_t *w);
static xet_status_t ngx_http_xet_term_batch_read(ngx_http_xet_term_batch_t *w,
    ngx_http_xet_ahead_t *reader, uint64_t offset, xet_shard_kind_t kind,
    xet_shard_record_t *rec, ngx_log_t *log);


ngx_http_xet_term_batch_t *
ngx_http_xet_term_batch_create(ngx_http_xet_temp_t *spool, uint64_t files_end,
    ngx_uint_t proof, ngx_log_t *log)
{
    ngx_http_xet_term_batch_t  *w;

    w = ngx_alloc(sizeof(ngx_http_xet_term_batch_t), log);
    if (w == NULL) {
        return NULL;
    }

    ngx_memzero(w, offsetof(ngx_http_xet_term_batch_t, steps));

    w->spool = spool;
    w->files_end = files_end;
    w->proof = proof;
    w->file = XET_SHARD_RECORD_LEN;

    w->segments.len = 0;
    w->hashes.len = 0;

    return w;
}


void
ngx_http_xet_term_batch_destroy(ngx_http_xet_term_batch_t *w)
{
    ngx_http_xet_columns_destroy(&w->slices);

    ngx_free(w);
}


xet_status_t
ngx_http_xet_term_batch_collect_job(ngx_http_xet_term_batch_t *w, ngx_log_t
    *log)
{
    xet_status_t  rc;

    w->nsteps = 0;
    w->nterms = 0;
    w->chunks = 0;
    w->nwindows = 0;
    w->split = 0;

    while (w->nsteps < NGX_HTTP_XET_TERM_BATCH_STEPS
           && w->nterms < NGX_HTTP_XET_TERM_BATCH_TERMS)
    {
        if (!w->open) {

            if (w->file == w->files_end) {
                break;
            }

            rc = ngx_http_xet_term_batch_open(w, log);

        } else if (w->segment < w->header.count) {
            rc = ngx_http_xet_term_batch_segment(w, log);

            if (rc == XET_DONE) {
                break;
            }

        } else {
            rc = ngx_http_xet_term_batch_close(w, log);
        }

        if (rc != XET_OK) {
            return rc;
        }
    }

    ngx_http_xet_term_batch_slices(w);

    return XET_OK;
}


static xet_status_t
ngx_http_xet_term_batch_open(ngx_http_xet_term_batch_t *w, ngx_log_t *log)
{
    xet_status_t          rc;
    ngx_http_xet_step_t  *step;

    rc = ngx_http_xet_term_batch_read(w, &w->segments, w->file,
                                      XET_SHARD_REC_FILE, &w->header, log);
    if (rc != XET_OK) {
        return rc;
    }

    if (w->proof && w->header.count
        && !(w->header.flags & XET_SHARD_FILE_VERIFICATION))
    {
        return XET_SHARD_NO_VERIFICATION;
    }

    w->open = 1;
    w->segment = 0;

    step = &w->steps[w->nsteps++];
    step->rec = w->header;
    step->has_hash = 0;

    return XET_OK;
}


/*
 * Adds the next segment of the open file.  Returns XET_DONE if its chunks would
 * exceed the limit of the batch.
 */

static xet_status_t
ngx_http_xet_term_batch_segment(ngx_http_xet_term_batch_t *w, ngx_log_t *log)
{
    uint32_t              n;
    uint64_t              offset, rows;
    xet_status_t          rc;
    xet_shard_record_t    row;
    ngx_http_xet_step_t  *step;

    step = &w->steps[w->nsteps];

    rows = w->file + XET_SHARD_RECORD_LEN;
    offset = rows + (uint64_t) w->segment * XET_SHARD_RECORD_LEN;

    rc = ngx_http_xet_term_batch_read(w, &w->segments, offset,
                                      XET_SHARD_REC_TERM, &step->rec, log);
    if (rc != XET_OK) {
        return rc;
    }

    n = step->rec.chunk_end - step->rec.chunk_start;

    if (w->nterms && w->chunks + n > NGX_HTTP_XET_TERM_BATCH_CHUNKS) {
        return XET_DONE;
    }

    step->has_hash = 0;

    if (w->header.flags & XET_SHARD_FILE_VERIFICATION) {

        offset += (uint64_t) w->header.count * XET_SHARD_RECORD_LEN;

        rc = ngx_http_xet_term_batch_read(w, &w->hashes, offset,
                                      XET_SHARD_REC_VERIFICATION, &row, log);
        if (rc != XET_OK) {
            return rc;
        }

        step->hash = row.hash;
        step->has_hash = 1;
    }

    ngx_http_xet_term_batch_window(w, step);

    w->chunks += n;
    w->nterms++;
    w->segment++;
    w->nsteps++;

    return XET_OK;
}


/* Adds a term to the window of its xorb, or to a new one. */

static void
ngx_http_xet_term_batch_window(ngx_http_xet_term_batch_t *w,
    ngx_http_xet_step_t *step)
{
    ngx_uint_t              i;
    xet_shard_record_t     *rec;
    ngx_http_xet_window_t  *window;

    rec = &step->rec;

    i = w->split ? 0 : w->nwindows;

    while (i && !xet_hash_equal(&w->windows[i - 1].xorb, &rec->hash)) {
        i--;
    }

    if (i == 0) {
        i = ++w->nwindows;

        w->windows[i - 1].xorb = rec->hash;
        w->windows[i - 1].start = rec->chunk_start;
        w->windows[i - 1].end = rec->chunk_end;
    }

    window = &w->windows[i - 1];
    window->start = ngx_min(window->start, rec->chunk_start);
    window->end = ngx_max(window->end, rec->chunk_end);

    step->window = i - 1;
}


/* Sets the slices of the query. */

static void
ngx_http_xet_term_batch_slices(ngx_http_xet_term_batch_t *w)
{
    ngx_uint_t              i, n;
    ngx_http_xet_window_t  *window;

    for (n = 0, i = 0; i < w->nwindows; i++) {
        n += w->windows[i].end - w->windows[i].start;
    }

    if (n > NGX_HTTP_XET_TERM_BATCH_CHUNKS && w->nwindows < w->nterms) {
        ngx_http_xet_term_batch_split_job(w);
        return;
    }

    ngx_http_xet_columns_reset(&w->slices);

    for (i = 0; i < w->nwindows; i++) {
        window = &w->windows[i];

        ngx_http_xet_slices_add(&w->slices, &window->xorb, window->start,
                                window->end);
    }
}


void
ngx_http_xet_term_batch_split_job(ngx_http_xet_term_batch_t *w)
{
    ngx_uint_t  i;

    w->split = 1;
    w->nwindows = 0;

    for (i = 0; i < w->nsteps; i++) {

        if (w->steps[i].rec.kind == XET_SHARD_REC_TERM) {
            ngx_http_xet_term_batch_window(w, &w->steps[i]);
        }
    }

    ngx_http_xet_term_batch_slices(w);
}


static xet_status_t
ngx_http_xet_term_batch_close(ngx_http_xet_term_batch_t *w, ngx_log_t *log)
{
    uint64_t              offset, rows;
    xet_status_t          rc;
    xet_shard_record_t    row;
    ngx_http_xet_step_t  *step;

    step = &w->steps[w->nsteps++];

    step->rec.kind = XET_SHARD_REC_FILES_END;
    step->has_hash = 0;

    rows = w->header.count;

    if (w->header.flags & XET_SHARD_FILE_VERIFICATION) {
        rows *= 2;
    }

    offset = w->file + (1 + rows) * XET_SHARD_RECORD_LEN;

    if (w->header.flags & XET_SHARD_FILE_METADATA) {

        rc = ngx_http_xet_term_batch_read(w, &w->hashes, offset,
                                          XET_SHARD_REC_METADATA, &row, log);
        if (rc != XET_OK) {
            return rc;
        }

        step->hash = row.hash;
        step->has_hash = 1;

        offset += XET_SHARD_RECORD_LEN;
    }

    w->file = offset;
    w->open = 0;

    return XET_OK;
}


static xet_status_t
ngx_http_xet_term_batch_read(ngx_http_xet_term_batch_t *w,
    ngx_http_xet_ahead_t *reader, uint64_t offset, xet_shard_kind_t kind,
    xet_shard_record_t *rec, ngx_log_t *log)
{
    xet_status_t  rc;

    if (offset < reader->offset
        || offset + XET_SHARD_RECORD_LEN > reader->offset + reader->len)
    {
        reader->offset = offset;
        reader->len = (size_t) ngx_min((uint64_t) NGX_HTTP_XET_READER_SIZE,
                                       w->files_end - offset);

        if (offset >= w->files_end || reader->len < XET_SHARD_RECORD_LEN) {
            reader->len = 0;
            return XET_INTERNAL;
        }

        rc = ngx_http_xet_store_read_job(w->spool, reader->data,
                                         reader->len, (off_t) offset, log);
        if (rc != XET_OK) {
            reader->len = 0;
            return rc;
        }
    }

    xet_shard_record_decode(rec, kind,
                            reader->data + (offset - reader->offset));

    return XET_OK;
}
