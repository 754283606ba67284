
/*
 * The jobs of a registration, which run in a thread pool: they read the records
 * of the shard, verify files and terms, and check that the copies of the xorbs
 * exist.
 *
 * A job is posted by ngx_http_xet_register.c, which has the order of the jobs
 * and queries.  While the job runs, the registration belongs to its thread,
 * with the rows of the last query.  An error in a record or of the store is the
 * status of the registration; copies that are missing are collected in
 * reg->damage, for the event loop to record.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_register.h"


static xet_status_t ngx_http_xet_register_verify_steps_job(
    ngx_http_xet_register_t *reg, ngx_log_t *log);
static ngx_uint_t ngx_http_xet_register_split(ngx_http_xet_register_t *reg);
static xet_status_t ngx_http_xet_register_step_job(
    ngx_http_xet_register_t *reg, ngx_http_xet_step_t *step, ngx_log_t *log);
static xet_status_t ngx_http_xet_register_term_job(
    ngx_http_xet_register_t *reg, ngx_http_xet_step_t *step, ngx_log_t *log);
static xet_status_t ngx_http_xet_register_seen_job(
    ngx_http_xet_register_t *reg, const xet_hash_t *xorb,
    const xet_shard_slice_t *slice, ngx_log_t *log);
static xet_status_t ngx_http_xet_register_looks_job(
    ngx_http_xet_register_t *reg, ngx_log_t *log);
static xet_status_t ngx_http_xet_register_file(ngx_http_xet_register_t *reg,
    ngx_http_xet_step_t *step);
static xet_status_t ngx_http_xet_register_suspects_job(
    ngx_http_xet_register_t *reg, ngx_log_t *log);


void
ngx_http_xet_register_collect_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_register_t *reg = data;

    reg->status = ngx_http_xet_term_batch_collect_job(reg->term_batch, log);
}


void
ngx_http_xet_register_verify_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_register_t *reg = data;

    if (ngx_http_xet_register_split(reg)) {
        ngx_http_xet_term_batch_split_job(reg->term_batch);
        reg->again = 1;
        reg->status = XET_OK;
        return;
    }

    reg->status = ngx_http_xet_register_verify_steps_job(reg, log);

    if (reg->status == XET_OK) {
        reg->status = ngx_http_xet_term_batch_collect_job(reg->term_batch, log);
    }
}


/*
 * Returns whether the batch must be split: the caller may not refer to all
 * chunks of a window, or the xorb does not have all of them.  Both can be
 * different for each of its terms.
 */

static ngx_uint_t
ngx_http_xet_register_split(ngx_http_xet_register_t *reg)
{
    ngx_uint_t                  i;
    xet_shard_slice_t           slice;
    ngx_http_xet_term_batch_t  *w;

    w = reg->term_batch;

    if (w->nwindows == w->nterms) {
        return 0;
    }

    for (i = 0; i < ngx_http_xet_query_rows(reg->query); i++) {
        ngx_http_xet_query_shard_slices_row(reg->query, i, &slice);

        if (!slice.own || slice.n == 0) {
            return 1;
        }
    }

    return 0;
}


static xet_status_t
ngx_http_xet_register_verify_steps_job(ngx_http_xet_register_t *reg,
    ngx_log_t *log)
{
    ngx_uint_t                  i;
    xet_status_t                rc, looked;
    ngx_http_xet_term_batch_t  *w;

    w = reg->term_batch;

    if (w->nterms
        && ngx_http_xet_query_rows(reg->query) != w->nwindows)
    {
        return XET_INTERNAL;
    }

    rc = XET_OK;

    for (i = 0; i < w->nsteps && rc == XET_OK; i++) {
        rc = ngx_http_xet_register_step_job(reg, &w->steps[i], log);
    }

    /* report missing copies of earlier terms first, then the invalid term */

    looked = ngx_http_xet_register_looks_job(reg, log);

    if (looked != XET_OK) {
        return looked;
    }

    if (rc != XET_OK) {
        return rc;
    }

    return ngx_http_xet_columns_failed(&reg->batch.columns) ? XET_NOMEM
                                                            : XET_OK;
}


static xet_status_t
ngx_http_xet_register_step_job(ngx_http_xet_register_t *reg,
    ngx_http_xet_step_t *step, ngx_log_t *log)
{
    xet_status_t  rc;

    switch (step->rec.kind) {

    case XET_SHARD_REC_FILE:
        xet_shard_verifier_init(&reg->verifier, reg->suite, &step->rec.hash);
        ngx_http_xet_batch_open(&reg->batch);
        return XET_OK;

    case XET_SHARD_REC_TERM:
        rc = ngx_http_xet_register_term_job(reg, step, log);
        break;

    default: /* XET_SHARD_REC_FILES_END */
        rc = ngx_http_xet_register_file(reg, step);
        break;
    }

    if (rc == XET_SHARD_XORB && !reg->named) {
        reg->xorb = step->rec.hash;
        reg->file = reg->verifier.hash;
        reg->named = 1;
    }

    return rc;
}


static xet_status_t
ngx_http_xet_register_term_job(ngx_http_xet_register_t *reg,
    ngx_http_xet_step_t *step, ngx_log_t *log)
{
    xet_term_t                  term;
    xet_status_t                rc;
    xet_shard_slice_t           slice;
    ngx_http_xet_term_batch_t  *w;

    w = reg->term_batch;

    ngx_http_xet_query_shard_slices_row(reg->query, step->window, &slice);

    if (w->nwindows != w->nterms) {
        xet_shard_slice_cut(&slice,
                            step->rec.chunk_start
                            - w->windows[step->window].start,
                            step->rec.chunk_end - step->rec.chunk_start);
    }

    rc = xet_shard_verifier_term(&reg->verifier, &step->rec,
                                 step->has_hash ? &step->hash : NULL, &slice,
                                 &term);

    /*
     * check the copy last, so that a client can't find out whether a xorb
     * exists to which it may not refer
     */

    if (rc == XET_OK) {
        rc = ngx_http_xet_register_seen_job(reg, &step->rec.hash, &slice, log);
    }

    if (rc != XET_OK) {
        return rc;
    }

    ngx_http_xet_batch_term(&reg->batch, &term);
    reg->verified++;

    return XET_OK;
}


/*
 * Adds a copy to the copies to check; if the copy is missing, the client must
 * upload the xorb again.  Many copies are checked at once, because with an
 * object store each check is a round trip.
 */

static xet_status_t
ngx_http_xet_register_seen_job(ngx_http_xet_register_t *reg,
    const xet_hash_t *xorb, const xet_shard_slice_t *slice, ngx_log_t *log)
{
    xet_status_t               rc;
    ngx_http_xet_seen_t       *seen;
    ngx_http_xet_copy_stat_t  *look;

    seen = &reg->seen[xorb->bytes[0] & (NGX_HTTP_XET_SEEN - 1)];

    if (seen->set && seen->copy_id == slice->copy_id
        && xet_hash_equal(&seen->xorb, xorb))
    {
        return XET_OK;
    }

    rc = (reg->nlooks == NGX_HTTP_XET_LOOKS)
         ? ngx_http_xet_register_looks_job(reg, log) : XET_OK;

    if (rc != XET_OK) {
        return rc;
    }

    look = &reg->looks[reg->nlooks];

    look->name.xorb = *xorb;
    look->name.copy_id = slice->copy_id;
    look->want = slice->stored_size;

    reg->files[reg->nlooks++] = reg->verifier.hash;

    seen->xorb = *xorb;
    seen->copy_id = slice->copy_id;
    seen->set = 1;

    return XET_OK;
}


/*
 * Checks the collected copies.  The error message names the xorb of the first
 * missing copy, in the order of the terms.
 */

static xet_status_t
ngx_http_xet_register_looks_job(ngx_http_xet_register_t *reg, ngx_log_t *log)
{
    ngx_uint_t  i, n;

    n = reg->nlooks;

    if (n == 0) {
        return XET_OK;
    }

    reg->nlooks = 0;

    ngx_http_xet_damage_stat_all_job(&reg->damage, reg->store, reg->looks, n,
                                     log);

    for (i = 0; i < n; i++) {

        if (reg->looks[i].status == XET_STORE_DAMAGED) {
            reg->xorb = reg->looks[i].name.xorb;
            reg->file = reg->files[i];
            reg->named = 1;

            return XET_SHARD_XORB;
        }

        if (reg->looks[i].status != XET_OK) {
            return reg->looks[i].status;
        }
    }

    return XET_OK;
}


static xet_status_t
ngx_http_xet_register_file(ngx_http_xet_register_t *reg,
    ngx_http_xet_step_t *step)
{
    u_char        sha256[XET_HASH_LEN], *claimed;
    ngx_uint_t    i;
    xet_status_t  rc;

    rc = xet_shard_verifier_finish(&reg->verifier);

    if (rc != XET_OK) {
        return rc;
    }

    /* zeros mean that the client has not computed the SHA-256 */

    claimed = NULL;

    if (step->has_hash && !xet_hash_is_zero(&step->hash)) {

        for (i = 0; i < XET_HASH_LEN; i++) {
            sha256[i] = step->hash.bytes[i ^ 7];
        }

        claimed = sha256;
    }

    reg->bytes += reg->verifier.size;

    ngx_http_xet_batch_close(&reg->batch, &reg->verifier, claimed);

    return XET_OK;
}


void
ngx_http_xet_register_look_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_register_t *reg = data;

    ngx_int_t                          rc;
    ngx_uint_t                         i, n;
    ngx_http_xet_copy_stat_t          *look;
    ngx_http_xet_shard_suspects_row_t  row;

    reg->status = XET_OK;
    reg->suspects_checked = 1;

    n = ngx_http_xet_query_rows(reg->query);

    for (i = 0; i < n && reg->status == XET_OK; i++) {

        rc = ngx_http_xet_row_shard_suspects(reg->query->res, i, &row);

        if (rc == NGX_OK && row.hash == NULL) {

            /*
             * this row is not a copy, but the position at which the next query
             * starts
             */

            reg->suspect_file = row.file;
            reg->suspect_xorb = row.xorb;
            reg->suspects_checked = 0;
            continue;
        }

        look = &reg->looks[reg->nlooks];

        ngx_memzero(&look->name.xorb, sizeof(xet_hash_t));

        if (row.hash) {
            look->name.xorb = *row.hash;
        }

        look->name.copy_id = row.copy_id;
        look->want = row.stored_size;

        if (++reg->nlooks == NGX_HTTP_XET_LOOKS) {
            reg->status = ngx_http_xet_register_suspects_job(reg, log);
        }
    }

    if (reg->status == XET_OK) {
        reg->status = ngx_http_xet_register_suspects_job(reg, log);
    }
}


/*
 * Checks the collected copies.  A missing copy is recorded, and is not an
 * error.
 */

static xet_status_t
ngx_http_xet_register_suspects_job(ngx_http_xet_register_t *reg, ngx_log_t *log)
{
    ngx_uint_t    i, n;
    xet_status_t  rc;

    n = reg->nlooks;
    reg->nlooks = 0;

    if (n == 0) {
        return XET_OK;
    }

    ngx_http_xet_damage_stat_all_job(&reg->damage, reg->store, reg->looks, n,
                                     log);

    for (i = 0; i < n; i++) {
        rc = reg->looks[i].status;

        if (rc != XET_OK && rc != XET_STORE_DAMAGED) {
            return rc;
        }
    }

    return XET_OK;
}
