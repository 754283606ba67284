
/*
 * The files of a shard, verified against the store and committed.
 *
 * The shard's file section lies in a temporary file; it is walked in windows:
 *
 *     collect   (thread)  reads records until the window is full
 *     slices    (query)   chunk lists of the window's terms
 *     verify    (thread)  lengths, verification hashes, file hashes; packs
 *                         terms into the batch; collects the next window
 *     stage     (query)   when the batch is large: puts it aside
 *     put       (query)   at the end: one transaction for all of it
 *
 * Nothing is visible before the last step, and an error before it leaves
 * nothing but staged rows, which are dropped.  The structure belongs to the
 * thread while a job runs, to the event loop otherwise.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_lanes.h"
#include "ngx_http_xet_register.h"


#define NGX_HTTP_XET_WINDOW_TERMS   256
#define NGX_HTTP_XET_WINDOW_STEPS   (3 * NGX_HTTP_XET_WINDOW_TERMS)
#define NGX_HTTP_XET_WINDOW_CHUNKS  (2 * XET_XORB_CHUNKS_MAX)
#define NGX_HTTP_XET_READER_SIZE    (341 * XET_SHARD_RECORD_LEN)
#define NGX_HTTP_XET_BATCH_SIZE     (1024 * 1024)
#define NGX_HTTP_XET_BATCH_FILE     320        /* bytes of a file's columns */


/* One record of the file section; kind is one of FILE, SEGMENT, FILES_END. */

typedef struct {
    xet_shard_record_t     rec;        /* FILES_END: end of one file */
    xet_hash_t             hash;       /* verification, SHA-256 */
    unsigned               has_hash:1;
} ngx_http_xet_step_t;


/* Records at ascending offsets, read ahead. */

typedef struct {
    u_char                 data[NGX_HTTP_XET_READER_SIZE];
    uint64_t               offset;
    size_t                 len;
} ngx_http_xet_reader_t;


typedef struct {
    ngx_http_xet_step_t    steps[NGX_HTTP_XET_WINDOW_STEPS];
    ngx_http_xet_reader_t  segments;   /* and file headers */
    ngx_http_xet_reader_t  hashes;     /* verification and metadata rows */
    u_char                 packed[XET_TERM_SEGMENT_MAX * XET_TERM_LEN];
} ngx_http_xet_window_t;


typedef struct {
    ngx_http_xet_register_pt   handler;
    ngx_http_xet_progress_pt   progress;
    ngx_http_xet_query_t      *query;
    const xet_suite_t         *suite;

    ngx_http_xet_file_t       *spool;
    uint64_t                   files_end;

    uint64_t                   verified;       /* terms */
    uint64_t                   total;

    /* the walk */
    uint64_t                   file;           /* offset of its header */
    xet_shard_record_t         header;
    uint32_t                   segment;        /* next of the open file */
    unsigned                   open:1;
    unsigned                   end:1;

    /* the window */
    ngx_http_xet_window_t     *window;
    ngx_uint_t                 nsteps;
    ngx_uint_t                 nterms;
    ngx_http_xet_array_t       xorbs;
    ngx_http_xet_array_t       starts;
    ngx_http_xet_array_t       ends;

    /* the file being verified */
    xet_shard_verifier_t       verifier;
    int64_t                    serial;         /* its number in the shard */
    ngx_uint_t                 npacked;        /* terms in window->packed */
    uint64_t                   first;          /* offset of the first */
    unsigned                   segmented:1;    /* some are in the batch */
    unsigned                   finished:1;
    unsigned                   proof:1;        /* verification is required */

    ngx_http_xet_batch_t       batch;
    xet_status_t               status;
} ngx_http_xet_register_t;


static void ngx_http_xet_register_cleanup(void *data);
static void ngx_http_xet_register_post(ngx_http_request_t *r,
    ngx_http_xet_register_t *reg, ngx_http_xet_job_pt job);
static void ngx_http_xet_register_collect_job(void *data, ngx_log_t *log);
static xet_status_t ngx_http_xet_register_collect(
    ngx_http_xet_register_t *reg, ngx_log_t *log);
static xet_status_t ngx_http_xet_register_open(ngx_http_xet_register_t *reg,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_register_segment(
    ngx_http_xet_register_t *reg, uint32_t *chunks, ngx_log_t *log);
static xet_status_t ngx_http_xet_register_close(ngx_http_xet_register_t *reg,
    ngx_log_t *log);
static xet_status_t ngx_http_xet_register_read(ngx_http_xet_register_t *reg,
    ngx_http_xet_reader_t *reader, uint64_t offset, xet_shard_kind_t kind,
    xet_shard_record_t *rec, ngx_log_t *log);
static void ngx_http_xet_register_collected(ngx_http_request_t *r,
    void *data);
static void ngx_http_xet_register_progress(ngx_http_request_t *r,
    ngx_http_xet_stage_e stage);
static void ngx_http_xet_register_queried(ngx_http_request_t *r,
    ngx_int_t rc);
static void ngx_http_xet_register_verify_job(void *data, ngx_log_t *log);
static xet_status_t ngx_http_xet_register_verify(
    ngx_http_xet_register_t *reg);
static xet_status_t ngx_http_xet_register_term(ngx_http_xet_register_t *reg,
    ngx_http_xet_step_t *step, ngx_uint_t i);
static xet_status_t ngx_http_xet_register_file(ngx_http_xet_register_t *reg,
    ngx_http_xet_step_t *step);
static void ngx_http_xet_register_flush(ngx_http_xet_register_t *reg);
static void ngx_http_xet_register_staged(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_register_put(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_register_finish(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status);


static ngx_http_xet_register_t *
ngx_http_xet_register_get(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    return ctx->state;
}


void
ngx_http_xet_register(ngx_http_request_t *r, ngx_http_xet_file_t *spool,
    uint64_t files_end, uint64_t total, ngx_http_xet_progress_pt progress,
    ngx_http_xet_register_pt handler)
{
    ngx_uint_t                 i;
    ngx_pool_cleanup_t        *cln;
    ngx_http_xet_ctx_t        *ctx;
    ngx_http_xet_register_t   *reg;
    ngx_http_xet_main_conf_t  *xmcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_xet_register_t));
    if (cln == NULL) {
        handler(r, NGX_ERROR, XET_NOMEM, 0);
        return;
    }

    reg = cln->data;
    ngx_memzero(reg, sizeof(ngx_http_xet_register_t));

    /*
     * Who names a chunk of somebody else's must have shown its hash, which
     * only the data tells.
     */

    reg->proof = (ngx_http_xet_repo(r) != NULL);

    reg->handler = handler;
    reg->progress = progress;
    reg->total = total;
    reg->query = &ctx->query;
    reg->suite = xmcf->suite;
    reg->spool = spool;
    reg->files_end = files_end;
    reg->file = XET_SHARD_RECORD_LEN;

    ngx_http_xet_array_init(&reg->xorbs, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&reg->starts, NGX_HTTP_XET_OID_INT4);
    ngx_http_xet_array_init(&reg->ends, NGX_HTTP_XET_OID_INT4);

    ngx_http_xet_batch_init(&reg->batch);

    for (i = 0; i < sizeof(reg->batch.id); i++) {
        reg->batch.id[i] = (u_char) ngx_random();
    }

    ngx_memcpy(reg->batch.id, &r->connection->number, 4);

    cln->handler = ngx_http_xet_register_cleanup;
    ctx->state = reg;

    reg->window = ngx_alloc(sizeof(ngx_http_xet_window_t), ngx_cycle->log);

    if (reg->window == NULL) {
        handler(r, NGX_ERROR, XET_NOMEM, 0);
        return;
    }

    reg->window->segments.len = 0;
    reg->window->hashes.len = 0;

    ngx_http_xet_register_post(r, reg, ngx_http_xet_register_collect_job);
}


static void
ngx_http_xet_register_cleanup(void *data)
{
    ngx_http_xet_register_t *reg = data;

    /* a statement still in flight has its own end, see the query service */

    if (reg->batch.seq && !reg->finished) {
        ngx_http_xet_query_unstage(reg->batch.id);
    }

    ngx_http_xet_array_destroy(&reg->xorbs);
    ngx_http_xet_array_destroy(&reg->starts);
    ngx_http_xet_array_destroy(&reg->ends);

    ngx_http_xet_batch_destroy(&reg->batch);

    if (reg->window) {
        ngx_free(reg->window);
    }
}


static void
ngx_http_xet_register_post(ngx_http_request_t *r,
    ngx_http_xet_register_t *reg, ngx_http_xet_job_pt job)
{
    if (ngx_http_xet_task_post(r, job, ngx_http_xet_register_collected, reg)
        != NGX_OK)
    {
        ngx_http_xet_register_finish(r, NGX_DECLINED, XET_OVERLOADED);
    }
}


static void
ngx_http_xet_register_collect_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_register_t *reg = data;

    reg->status = ngx_http_xet_register_collect(reg, log);
}


static xet_status_t
ngx_http_xet_register_collect(ngx_http_xet_register_t *reg, ngx_log_t *log)
{
    uint32_t      chunks;
    xet_status_t  rc;

    reg->nsteps = 0;
    reg->nterms = 0;

    ngx_http_xet_array_reset(&reg->xorbs);
    ngx_http_xet_array_reset(&reg->starts);
    ngx_http_xet_array_reset(&reg->ends);

    chunks = 0;

    while (reg->nsteps < NGX_HTTP_XET_WINDOW_STEPS
           && reg->nterms < NGX_HTTP_XET_WINDOW_TERMS)
    {
        if (!reg->open) {

            if (reg->file == reg->files_end) {
                reg->end = 1;
                break;
            }

            rc = ngx_http_xet_register_open(reg, log);

        } else if (reg->segment < reg->header.count) {
            rc = ngx_http_xet_register_segment(reg, &chunks, log);

            if (rc == XET_DONE) {
                break;
            }

        } else {
            rc = ngx_http_xet_register_close(reg, log);
        }

        if (rc != XET_OK) {
            return rc;
        }
    }

    return XET_OK;
}


static xet_status_t
ngx_http_xet_register_open(ngx_http_xet_register_t *reg, ngx_log_t *log)
{
    xet_status_t          rc;
    ngx_http_xet_step_t  *step;

    rc = ngx_http_xet_register_read(reg, &reg->window->segments, reg->file,
                                    XET_SHARD_REC_FILE, &reg->header, log);
    if (rc != XET_OK) {
        return rc;
    }

    if (reg->proof && reg->header.count
        && !(reg->header.flags & XET_SHARD_FILE_VERIFICATION))
    {
        return XET_SHARD_NO_VERIFICATION;
    }

    reg->open = 1;
    reg->segment = 0;

    step = &reg->window->steps[reg->nsteps++];
    step->rec = reg->header;
    step->has_hash = 0;

    return XET_OK;
}


/* XET_DONE when the window has no room for the chunks of this one. */

static xet_status_t
ngx_http_xet_register_segment(ngx_http_xet_register_t *reg, uint32_t *chunks,
    ngx_log_t *log)
{
    uint32_t              n;
    uint64_t              offset, rows;
    xet_status_t          rc;
    xet_shard_record_t    row;
    ngx_http_xet_step_t  *step;

    step = &reg->window->steps[reg->nsteps];

    rows = reg->file + XET_SHARD_RECORD_LEN;
    offset = rows + (uint64_t) reg->segment * XET_SHARD_RECORD_LEN;

    rc = ngx_http_xet_register_read(reg, &reg->window->segments, offset,
                                    XET_SHARD_REC_SEGMENT, &step->rec, log);
    if (rc != XET_OK) {
        return rc;
    }

    n = step->rec.chunk_end - step->rec.chunk_start;

    if (reg->nterms && *chunks + n > NGX_HTTP_XET_WINDOW_CHUNKS) {
        return XET_DONE;
    }

    step->has_hash = 0;

    if (reg->header.flags & XET_SHARD_FILE_VERIFICATION) {

        offset += (uint64_t) reg->header.count * XET_SHARD_RECORD_LEN;

        rc = ngx_http_xet_register_read(reg, &reg->window->hashes, offset,
                                        XET_SHARD_REC_VERIFICATION, &row, log);
        if (rc != XET_OK) {
            return rc;
        }

        step->hash = row.hash;
        step->has_hash = 1;
    }

    ngx_http_xet_array_bytes(&reg->xorbs, step->rec.hash.bytes, XET_HASH_LEN);
    ngx_http_xet_array_int4(&reg->starts, (int32_t) step->rec.chunk_start);
    ngx_http_xet_array_int4(&reg->ends, (int32_t) step->rec.chunk_end);

    *chunks += n;

    reg->segment++;
    reg->nsteps++;
    reg->nterms++;

    return XET_OK;
}


static xet_status_t
ngx_http_xet_register_close(ngx_http_xet_register_t *reg, ngx_log_t *log)
{
    uint64_t              offset, rows;
    xet_status_t          rc;
    xet_shard_record_t    row;
    ngx_http_xet_step_t  *step;

    step = &reg->window->steps[reg->nsteps++];

    step->rec.kind = XET_SHARD_REC_FILES_END;
    step->has_hash = 0;

    rows = reg->header.count;

    if (reg->header.flags & XET_SHARD_FILE_VERIFICATION) {
        rows *= 2;
    }

    offset = reg->file + (1 + rows) * XET_SHARD_RECORD_LEN;

    if (reg->header.flags & XET_SHARD_FILE_METADATA) {

        rc = ngx_http_xet_register_read(reg, &reg->window->hashes, offset,
                                        XET_SHARD_REC_METADATA, &row, log);
        if (rc != XET_OK) {
            return rc;
        }

        step->hash = row.hash;
        step->has_hash = 1;

        offset += XET_SHARD_RECORD_LEN;
    }

    reg->file = offset;
    reg->open = 0;

    return XET_OK;
}


static xet_status_t
ngx_http_xet_register_read(ngx_http_xet_register_t *reg,
    ngx_http_xet_reader_t *reader, uint64_t offset, xet_shard_kind_t kind,
    xet_shard_record_t *rec, ngx_log_t *log)
{
    xet_status_t  rc;

    if (offset < reader->offset
        || offset + XET_SHARD_RECORD_LEN > reader->offset + reader->len)
    {
        reader->offset = offset;
        reader->len = (size_t) ngx_min((uint64_t) NGX_HTTP_XET_READER_SIZE,
                                       reg->files_end - offset);

        if (offset >= reg->files_end || reader->len < XET_SHARD_RECORD_LEN) {
            reader->len = 0;
            return XET_INTERNAL;
        }

        rc = ngx_http_xet_store_read_job(reg->spool, reader->data,
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


static void
ngx_http_xet_register_collected(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_register_t *reg = data;

    ngx_int_t  rc;

    ngx_http_xet_query_release(r);

    if (reg->status != XET_OK) {
        ngx_http_xet_register_finish(r, NGX_DECLINED, reg->status);
        return;
    }

    ngx_http_xet_register_progress(r, NGX_HTTP_XET_VALIDATING);

    if (reg->batch.size > NGX_HTTP_XET_BATCH_SIZE) {
        ngx_http_xet_register_progress(r, NGX_HTTP_XET_STAGING);

        rc = ngx_http_xet_query_stage(r, &reg->batch,
                                      ngx_http_xet_register_staged);

    } else if (reg->nterms) {
        rc = ngx_http_xet_query_slices(r, &reg->xorbs, &reg->starts,
                                       &reg->ends, 1, NGX_HTTP_XET_WRITE,
                                       ngx_http_xet_register_queried);

    } else if (reg->nsteps) {

        /* only empty files, or the ends of files */

        ngx_http_xet_register_post(r, reg, ngx_http_xet_register_verify_job);
        return;

    } else {
        ngx_http_xet_register_progress(r, NGX_HTTP_XET_COMMITTING);

        rc = ngx_http_xet_query_shard_put(r, &reg->batch,
                                          ngx_http_xet_register_put);
    }

    if (rc != NGX_AGAIN) {
        ngx_http_xet_register_finish(r, rc, XET_INTERNAL);
    }
}


static void
ngx_http_xet_register_progress(ngx_http_request_t *r,
    ngx_http_xet_stage_e stage)
{
    ngx_http_xet_register_t  *reg;

    reg = ngx_http_xet_register_get(r);

    if (reg->progress) {
        reg->progress(r, stage, reg->verified, reg->total);
    }
}


static void
ngx_http_xet_register_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_register_t  *reg;

    if (rc != NGX_OK) {
        ngx_http_xet_register_finish(r, (rc == NGX_DECLINED) ? NGX_ERROR : rc,
                                     XET_INTERNAL);
        return;
    }

    reg = ngx_http_xet_register_get(r);

    ngx_http_xet_register_post(r, reg, ngx_http_xet_register_verify_job);
}


static void
ngx_http_xet_register_verify_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_register_t *reg = data;

    reg->status = ngx_http_xet_register_verify(reg);

    if (reg->status == XET_OK) {
        reg->status = ngx_http_xet_register_collect(reg, log);
    }
}


static xet_status_t
ngx_http_xet_register_verify(ngx_http_xet_register_t *reg)
{
    ngx_uint_t            i, term;
    xet_status_t          rc;
    ngx_http_xet_step_t  *step;

    if (reg->nterms && ngx_http_xet_query_slices_n(reg->query) != reg->nterms)
    {
        return XET_INTERNAL;
    }

    term = 0;

    for (i = 0; i < reg->nsteps; i++) {
        step = &reg->window->steps[i];

        switch (step->rec.kind) {

        case XET_SHARD_REC_FILE:
            xet_shard_verifier_init(&reg->verifier, reg->suite,
                                    &step->rec.hash);
            reg->serial++;
            reg->npacked = 0;
            reg->first = 0;
            reg->segmented = 0;
            rc = XET_OK;
            break;

        case XET_SHARD_REC_SEGMENT:
            rc = ngx_http_xet_register_term(reg, step, term++);
            break;

        default: /* XET_SHARD_REC_FILES_END */
            rc = ngx_http_xet_register_file(reg, step);
            break;
        }

        if (rc != XET_OK) {
            return rc;
        }
    }

    return ngx_http_xet_batch_failed(&reg->batch) ? XET_NOMEM : XET_OK;
}


static xet_status_t
ngx_http_xet_register_term(ngx_http_xet_register_t *reg,
    ngx_http_xet_step_t *step, ngx_uint_t i)
{
    xet_term_t         term;
    xet_status_t       rc;
    xet_shard_slice_t  slice;

    /* only now is it known that the file has more than one row holds */

    if (reg->npacked == XET_TERM_SEGMENT_MAX) {
        ngx_http_xet_register_flush(reg);
    }

    ngx_http_xet_query_slices_row(reg->query, i, &slice);

    rc = xet_shard_verifier_term(&reg->verifier, &step->rec,
                                 step->has_hash ? &step->hash : NULL, &slice,
                                 &term);
    if (rc != XET_OK) {
        return rc;
    }

    xet_term_pack(reg->window->packed + reg->npacked * XET_TERM_LEN, &term);
    reg->npacked++;
    reg->verified++;

    return XET_OK;
}


static xet_status_t
ngx_http_xet_register_file(ngx_http_xet_register_t *reg,
    ngx_http_xet_step_t *step)
{
    u_char                 sha256[XET_HASH_LEN];
    ngx_uint_t             i;
    xet_status_t           rc;
    xet_shard_verifier_t  *v;
    ngx_http_xet_batch_t  *b;

    v = &reg->verifier;
    b = &reg->batch;

    rc = xet_shard_verifier_finish(v);

    if (rc != XET_OK) {
        return rc;
    }

    if (reg->segmented) {
        ngx_http_xet_register_flush(reg);
        ngx_http_xet_array_null(&b->packed);

    } else {
        ngx_http_xet_array_bytes(&b->packed, reg->window->packed,
                                 reg->npacked * XET_TERM_LEN);
        b->size += reg->npacked * XET_TERM_LEN;
    }

    ngx_http_xet_array_int8(&b->serials, reg->serial);
    ngx_http_xet_array_bytes(&b->hashes, v->hash.bytes, XET_HASH_LEN);
    ngx_http_xet_array_int8(&b->sizes, (int64_t) v->size);
    ngx_http_xet_array_int8(&b->counts, (int64_t) v->terms);

    /* zeros are what clients send when they have not computed it */

    if (step->has_hash && !xet_hash_is_zero(&step->hash)) {

        for (i = 0; i < XET_HASH_LEN; i++) {
            sha256[i] = step->hash.bytes[i ^ 7];
        }

        ngx_http_xet_array_bytes(&b->sha256, sha256, XET_HASH_LEN);

    } else {
        ngx_http_xet_array_null(&b->sha256);
    }

    if (v->terms) {
        ngx_http_xet_array_bytes(&b->chunks, v->first_hash.bytes,
                                 XET_HASH_LEN);
        ngx_http_xet_array_bytes(&b->xorbs, v->first_xorb.bytes,
                                 XET_HASH_LEN);
        ngx_http_xet_array_int4(&b->indexes, (int32_t) v->first_chunk);
    }

    b->size += NGX_HTTP_XET_BATCH_FILE;

    return XET_OK;
}


/* The packed terms as a row of their own. */

static void
ngx_http_xet_register_flush(ngx_http_xet_register_t *reg)
{
    ngx_http_xet_batch_t  *b;

    b = &reg->batch;

    ngx_http_xet_array_int8(&b->seg_serials, reg->serial);
    ngx_http_xet_array_int8(&b->seg_firsts, (int64_t) reg->first);
    ngx_http_xet_array_int8(&b->seg_ends, (int64_t) reg->verifier.size);
    ngx_http_xet_array_bytes(&b->seg_packed, reg->window->packed,
                             reg->npacked * XET_TERM_LEN);

    b->size += reg->npacked * XET_TERM_LEN;

    reg->first = reg->verifier.size;
    reg->npacked = 0;
    reg->segmented = 1;
}


static void
ngx_http_xet_register_staged(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_register_t  *reg;

    if (rc != NGX_OK) {
        ngx_http_xet_register_finish(r, rc, XET_INTERNAL);
        return;
    }

    reg = ngx_http_xet_register_get(r);

    reg->batch.seq++;
    ngx_http_xet_batch_reset(&reg->batch);

    /* the window collected meanwhile still waits */

    ngx_http_xet_register_collected(r, reg);
}


static void
ngx_http_xet_register_put(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_register_t  *reg;

    reg = ngx_http_xet_register_get(r);

    if (rc == NGX_ABORT
        && ngx_strcmp(reg->query->sqlstate, "XT001") == 0)
    {
        ngx_http_xet_register_finish(r, NGX_DECLINED, XET_SHARD_XORB);
        return;
    }

    ngx_http_xet_register_finish(r, rc, XET_INTERNAL);
}


static void
ngx_http_xet_register_finish(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status)
{
    ngx_uint_t                new;
    ngx_http_xet_register_t  *reg;

    reg = ngx_http_xet_register_get(r);

    new = (rc == NGX_OK) ? ngx_http_xet_query_shard_put_new(r) : 0;

    if (rc != NGX_OK && reg->batch.seq) {
        ngx_http_xet_query_unstage(reg->batch.id);
    }

    reg->finished = 1;

    reg->handler(r, rc, status, new);
}
