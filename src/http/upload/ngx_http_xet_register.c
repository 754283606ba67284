
/*
 * Verifies the files of a shard against the store, and commits them.
 *
 * The file section of the shard is in a temporary file, and is read in
 * batches:
 *
 *     collect   (thread)  reads records until the batch is full
 *     slices    (query)   reads the chunk lists of the batch's terms
 *     verify    (thread)  checks lengths, verification hashes, file hashes,
 *                         and that the copies of the xorbs exist, many at a
 *                         time; adds the terms to the packed batch; collects
 *                         the next batch.  If terms need answers of their own,
 *                         splits the batch, and slices follows again
 *     suspects  (query)   before a packed batch is staged or put: if a file is
 *                         already stored with other terms, finds the copies
 *                         that these terms refer to
 *     look      (thread)  checks that these copies exist.  A missing copy is
 *                         recorded as damaged (query), and the stored file
 *                         gets the terms of this batch
 *     stage     (query)   stores a large packed batch temporarily
 *     put       (query)   at the end: commits all batches in one transaction
 *
 * No file is visible before the last step.  An earlier error leaves only staged
 * rows, which are dropped.  The structure belongs to a thread while a job runs
 * (ngx_http_xet_register_job.c), otherwise to the event loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_register.h"

#include <openssl/rand.h>


#define NGX_HTTP_XET_BATCH_SIZE   (1024 * 1024)
#define NGX_HTTP_XET_CHUNK_WORTH  512          /* cost of verifying a chunk, in
                                                  bytes of the upload limit */

/*
 * Appended to the message for every xorb that the client may not refer to,
 * stored or not, so that the message does not reveal whether the xorb is
 * stored.
 */
#define NGX_HTTP_XET_REMEMBERED                                               \
    ", or which you may not use; the Xet cache of this machine may still "     \
    "list it: upload again, and if that fails too, remove HF_XET_CACHE (by "   \
    "default xet in HF_HOME, ~/.cache/huggingface/xet)"


static void ngx_http_xet_register_cleanup(void *data);
static void ngx_http_xet_register_release(ngx_http_xet_register_t *reg);
static void ngx_http_xet_register_post(ngx_http_request_t *r,
    ngx_http_xet_register_t *reg, ngx_http_xet_job_pt job,
    ngx_http_xet_done_pt done);
static void ngx_http_xet_register_collected(ngx_http_request_t *r,
    void *data);
static void ngx_http_xet_register_missing(ngx_http_request_t *r,
    ngx_int_t rc);
static void ngx_http_xet_register_count(ngx_http_request_t *r,
    ngx_http_xet_term_batch_t *w);
static ngx_int_t ngx_http_xet_register_batch(ngx_http_request_t *r,
    ngx_http_xet_register_t *reg);
static void ngx_http_xet_register_suspects(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_register_looked(ngx_http_request_t *r, void *data);
static void ngx_http_xet_register_marked(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_register_progress(ngx_http_request_t *r,
    ngx_http_xet_stage_e stage);
static void ngx_http_xet_register_queried(ngx_http_request_t *r,
    ngx_int_t rc);
static void ngx_http_xet_register_staged(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_register_put(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_register_finish(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status);


void
ngx_http_xet_register(ngx_http_request_t *r, ngx_http_xet_temp_t *spool,
    uint64_t files_end, uint64_t total, ngx_uint_t flags,
    ngx_http_xet_progress_pt progress, ngx_http_xet_register_pt handler)
{
    ngx_http_xet_ctx_t        *ctx;
    ngx_http_xet_register_t   *reg;
    ngx_http_xet_main_conf_t  *xmcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    reg = ctx->reg;

    if (reg == NULL) {
        reg = ngx_http_xet_state(r, sizeof(ngx_http_xet_register_t),
                                 ngx_http_xet_register_cleanup);
        if (reg == NULL) {
            handler(r, NGX_ERROR, XET_NOMEM, 0);
            return;
        }

        ctx->reg = reg;

    } else {
        ngx_http_xet_register_release(reg);
        ngx_memzero(reg, sizeof(ngx_http_xet_register_t));
    }

    reg->handler = handler;
    reg->progress = progress;
    reg->total = total;
    reg->proof = (flags & NGX_HTTP_XET_REGISTER_PROOF) != 0;
    reg->proven = (flags & NGX_HTTP_XET_REGISTER_PROVEN) != 0;
    reg->kept = (flags & NGX_HTTP_XET_REGISTER_KEPT) != 0;
    reg->query = ctx->query;
    reg->suite = xmcf->suite;
    reg->store = xmcf->store;

    if (RAND_bytes(reg->batch.id, sizeof(reg->batch.id)) != 1) {
        handler(r, NGX_ERROR, XET_INTERNAL, 0);
        return;
    }

    reg->term_batch = ngx_http_xet_term_batch_create(spool, files_end,
                                                     reg->proof,
                                                     ngx_cycle->log);
    if (reg->term_batch == NULL) {
        handler(r, NGX_ERROR, XET_NOMEM, 0);
        return;
    }

    ngx_http_xet_register_post(r, reg, ngx_http_xet_register_collect_job,
                               ngx_http_xet_register_collected);
}


static void
ngx_http_xet_register_cleanup(void *data)
{
    ngx_http_xet_register_t *reg = data;

    /*
     * the cleanup of a running statement drops the data itself, see
     * ngx_http_xet_query_leave()
     */

    if (reg->batch.seq && !reg->finished) {
        (void) ngx_http_xet_post(shard_unstage, .upload = reg->batch.id);
    }

    ngx_http_xet_register_release(reg);
}


static void
ngx_http_xet_register_release(ngx_http_xet_register_t *reg)
{
    ngx_http_xet_columns_destroy(&reg->batch.columns);
    ngx_http_xet_damage_destroy(&reg->damage);

    if (reg->term_batch) {
        ngx_http_xet_term_batch_destroy(reg->term_batch);
        reg->term_batch = NULL;
    }
}


static void
ngx_http_xet_register_post(ngx_http_request_t *r,
    ngx_http_xet_register_t *reg, ngx_http_xet_job_pt job,
    ngx_http_xet_done_pt done)
{
    if (ngx_http_xet_task_post(r, job, done, reg) != NGX_OK) {
        ngx_http_xet_register_finish(r, NGX_DECLINED, XET_OVERLOADED);
    }
}


static void
ngx_http_xet_register_collected(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_register_t *reg = data;

    ngx_int_t                   rc;
    ngx_http_xet_term_batch_t  *w;

    w = reg->term_batch;

    ngx_http_xet_query_release(r);

    if (reg->status == XET_SHARD_XORB && reg->damage.xorbs.n) {

        rc = ngx_http_xet_query(r, copies_lost, ngx_http_xet_register_missing,
                                .xorbs = &reg->damage.xorbs,
                                .copy_ids = &reg->damage.copy_ids);
        if (rc != NGX_AGAIN) {
            ngx_http_xet_register_finish(r, rc, XET_INTERNAL);
        }

        return;
    }

    ngx_http_xet_query_xorb_damaged_tell(&reg->damage);

    if (reg->status != XET_OK) {
        ngx_http_xet_register_finish(r, NGX_DECLINED, reg->status);
        return;
    }

    ngx_http_xet_register_progress(r, NGX_HTTP_XET_VALIDATING);

    if (reg->batch.size > NGX_HTTP_XET_BATCH_SIZE || w->nsteps == 0) {
        rc = ngx_http_xet_register_batch(r, reg);

    } else if (w->nterms) {

        if (!reg->again) {
            ngx_http_xet_register_count(r, w);
        }

        reg->again = 0;

        rc = ngx_http_xet_query(r, shard_slices, ngx_http_xet_register_queried,
                                .xorbs = &w->slices.xorbs,
                                .starts = &w->slices.starts,
                                .ends = &w->slices.ends, .proof = reg->proof,
                                .wide = ngx_http_xet_dedup_wide(r));

    } else {

        /*
         * the batch has no terms: it contains only empty files or ends of files
         */

        ngx_http_xet_register_queried(r, NGX_OK);
        return;
    }

    if (rc != NGX_AGAIN) {
        ngx_http_xet_register_finish(r, rc, XET_INTERNAL);
    }
}


/*
 * Called when missing copies were recorded: ends the registration with an
 * error.  If all these xorbs are lost, the client must upload them.  If a copy
 * was replaced by another copy, or its xorb was collected, the client may
 * retry.
 */

static void
ngx_http_xet_register_missing(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_uint_t                n;
    ngx_http_xet_register_t  *reg;

    reg = ngx_http_xet_ctx_of(r)->reg;

    n = ngx_http_xet_query_xorb_lost(r, &reg->damage, &rc);

    if (rc == NGX_BUSY
        && ngx_strcmp(reg->query->sqlstate, NGX_HTTP_XET_PG_LOCKED) != 0)
    {
        ngx_http_xet_register_finish(r, rc, XET_INTERNAL);
        return;
    }

    ngx_http_xet_register_finish(r, NGX_DECLINED,
                                 (n == reg->damage.xorbs.n) ? XET_SHARD_XORB
                                 : (rc == NGX_BUSY) ? XET_XORB_LOCKED
                                                    : XET_PLAN_CHANGED);
}


/*
 * Counts the cost of a batch against the upload limit of the client: a term of
 * 96 bytes may refer to 8192 chunks.  Verifying a chunk costs as much as
 * receiving NGX_HTTP_XET_CHUNK_WORTH bytes.
 */

static void
ngx_http_xet_register_count(ngx_http_request_t *r, ngx_http_xet_term_batch_t *w)
{
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    ctx->worth += (uint64_t) w->chunks * NGX_HTTP_XET_CHUNK_WORTH;
}


/*
 * Handles a complete packed batch: checks its suspects, then stages the batch,
 * or puts it if it is the last one.  A single file is usually new, so it is put
 * without this check until shard_put finds that it is known.
 */

static ngx_int_t
ngx_http_xet_register_batch(ngx_http_request_t *r,
    ngx_http_xet_register_t *reg)
{
    ngx_uint_t  checked;

    checked = reg->suspects_checked || reg->batch.columns.hashes.n == 0;

    if (!checked
        && (reg->known || reg->batch.seq || reg->batch.columns.hashes.n != 1
            || reg->batch.size > NGX_HTTP_XET_BATCH_SIZE))
    {
        return ngx_http_xet_query(r, shard_suspects,
                                  ngx_http_xet_register_suspects,
                                  .hashes = &reg->batch.columns.hashes,
                                  .packed = &reg->batch.columns.packed,
                                  .from_file = reg->suspect_file,
                                  .done = reg->suspect_xorb);
    }

    reg->suspects_checked = 0;
    reg->suspect_file = 0;
    reg->suspect_xorb = 0;

    if (reg->batch.size > NGX_HTTP_XET_BATCH_SIZE) {
        ngx_http_xet_register_progress(r, NGX_HTTP_XET_STAGING);

        return ngx_http_xet_query_leave(r,
                   ngx_http_xet_query(r, shard_stage,
                                      ngx_http_xet_register_staged,
                                      .batch = &reg->batch),
                   reg->batch.id, 0);
    }

    ngx_http_xet_register_progress(r, NGX_HTTP_XET_COMMITTING);

    return ngx_http_xet_query_leave(r,
               ngx_http_xet_query(r, shard_put, ngx_http_xet_register_put,
                                  .batch = &reg->batch, .hidden = reg->hidden,
                                  .proven = reg->proven, .kept = reg->kept,
                                  .checked = checked),
               reg->batch.seq ? reg->batch.id : NULL, 0);
}


static void
ngx_http_xet_register_suspects(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_register_t  *reg;

    reg = ngx_http_xet_ctx_of(r)->reg;

    if (rc == NGX_DECLINED) {
        reg->suspects_checked = 1;
        ngx_http_xet_register_marked(r, NGX_OK);
        return;
    }

    if (rc != NGX_OK) {
        ngx_http_xet_register_finish(r, rc, XET_INTERNAL);
        return;
    }

    ngx_http_xet_register_post(r, reg, ngx_http_xet_register_look_job,
                               ngx_http_xet_register_looked);
}


static void
ngx_http_xet_register_looked(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_register_t *reg = data;

    ngx_int_t  rc;

    ngx_http_xet_query_release(r);

    if (reg->status != XET_OK) {
        ngx_http_xet_register_finish(r, NGX_DECLINED, reg->status);
        return;
    }

    if (reg->damage.xorbs.n == 0) {
        ngx_http_xet_register_marked(r, NGX_OK);
        return;
    }

    /* record the damage first: the statement for the batch depends on it */

    rc = ngx_http_xet_query(r, copies_lost, ngx_http_xet_register_marked,
                            .xorbs = &reg->damage.xorbs,
                            .copy_ids = &reg->damage.copy_ids);
    if (rc != NGX_AGAIN) {
        ngx_http_xet_register_finish(r, rc, XET_INTERNAL);
    }
}


static void
ngx_http_xet_register_marked(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_register_t  *reg;

    reg = ngx_http_xet_ctx_of(r)->reg;

    if (reg->damage.xorbs.n) {
        (void) ngx_http_xet_query_xorb_lost(r, &reg->damage, &rc);
    }

    if (rc == NGX_OK) {
        ngx_http_xet_damage_destroy(&reg->damage);

        /* continue with the next suspects, or stage or put the batch */

        rc = ngx_http_xet_register_batch(r, reg);

        if (rc == NGX_AGAIN) {
            return;
        }

    } else if (ngx_strcmp(reg->query->sqlstate, NGX_HTTP_XET_PG_LOCKED) == 0) {

        /*
         * another request is repairing the xorb, or the collector has locked
         * its row
         */

        ngx_http_xet_register_finish(r, NGX_DECLINED, XET_XORB_LOCKED);
        return;
    }

    ngx_http_xet_register_finish(r, rc, XET_INTERNAL);
}


static void
ngx_http_xet_register_progress(ngx_http_request_t *r,
    ngx_http_xet_stage_e stage)
{
    ngx_http_xet_register_t  *reg;

    reg = ngx_http_xet_ctx_of(r)->reg;

    if (reg->progress) {
        reg->progress(r, stage, reg->verified, reg->total);
    }
}


static void
ngx_http_xet_register_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_register_t         *reg;
    ngx_http_xet_shard_slices_row_t  row;

    if (rc != NGX_OK) {
        ngx_http_xet_register_finish(r, (rc == NGX_DECLINED) ? NGX_ERROR : rc,
                                     XET_INTERNAL);
        return;
    }

    reg = ngx_http_xet_ctx_of(r)->reg;

    if (reg->hidden == 0 && reg->term_batch->nterms
        && ngx_http_xet_query_rows(reg->query) != 0)
    {
        if (ngx_http_xet_row_shard_slices(reg->query->res, 0, &row)
            != NGX_OK)
        {
            ngx_http_xet_register_finish(r, NGX_ERROR, XET_INTERNAL);
            return;
        }

        reg->hidden = row.hidden;
    }

    ngx_http_xet_register_post(r, reg, ngx_http_xet_register_verify_job,
                               ngx_http_xet_register_collected);
}


static void
ngx_http_xet_register_staged(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_register_t  *reg;

    if (rc != NGX_OK) {
        ngx_http_xet_register_finish(r, rc, XET_INTERNAL);
        return;
    }

    reg = ngx_http_xet_ctx_of(r)->reg;

    reg->batch.seq++;
    reg->batch.size = 0;

    ngx_http_xet_columns_reset(&reg->batch.columns);

    /* continue with the batch that the last job has collected */

    ngx_http_xet_register_collected(r, reg);
}


static void
ngx_http_xet_register_put(ngx_http_request_t *r, ngx_int_t rc)
{
    u_char                   *sqlstate;
    ngx_uint_t                i;
    xet_status_t              status;
    ngx_http_xet_register_t  *reg;

    static const struct {
        const char           *sqlstate;
        xet_status_t          status;
    } errors[] = {
        { "XT001", XET_SHARD_XORB },
        { "XT003", XET_PLAN_CHANGED },
        { "XT004", XET_QUOTA },
        { "XT006", XET_NO_REPO }
    };

    reg = ngx_http_xet_ctx_of(r)->reg;

    /* the chunks of staged batches are gone */

    ngx_http_xet_chunk_filter_add(r, 0, NULL,
                                  reg->batch.seq ? NULL
                                                 : &reg->batch.columns.chunks);
    if (rc == NGX_OK && ngx_http_xet_query_number(r) == 2) {
        reg->known = 1;

        rc = ngx_http_xet_register_batch(r, reg);

        if (rc != NGX_AGAIN) {
            ngx_http_xet_register_finish(r, rc, XET_INTERNAL);
        }

        return;
    }

    sqlstate = reg->query->sqlstate;
    status = XET_INTERNAL;

    for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {

        if (ngx_strcmp(sqlstate, errors[i].sqlstate) == 0) {
            rc = NGX_DECLINED;
            status = errors[i].status;
        }
    }

    /*
     * the statement was sent again because its result was lost, and the first
     * execution has committed the batches
     */

    if (ngx_strcmp(sqlstate, "XT002") == 0) {
        rc = NGX_BUSY;
    }

    ngx_http_xet_register_finish(r, rc, status);
}


const char *
ngx_http_xet_register_text(ngx_http_request_t *r, xet_status_t status)
{
    u_char                   *text, xorb[XET_HASH_STR_LEN + 1],
                              file[XET_HASH_STR_LEN + 1];
    ngx_http_xet_register_t  *reg;

    static const char  fmt[] = "a term of file %s refers to xorb %s, which is "
                               "not stored here" NGX_HTTP_XET_REMEMBERED "%Z";

    reg = ngx_http_xet_ctx_of(r)->reg;

    if (status == XET_QUOTA) {
        return ngx_http_xet_quota_text(r);
    }

    if (status != XET_SHARD_XORB) {
        return xet_status_text(status);
    }

    if (!reg->named) {
        return "a term refers to a xorb which is not stored here"
               NGX_HTTP_XET_REMEMBERED;
    }

    text = ngx_pnalloc(r->pool, sizeof(fmt) + 2 * XET_HASH_STR_LEN);
    if (text == NULL) {
        return xet_status_text(status);
    }

    *xet_hash_print(file, &reg->file) = '\0';
    *xet_hash_print(xorb, &reg->xorb) = '\0';

    (void) ngx_sprintf(text, fmt, file, xorb);

    return (char *) text;
}


static void
ngx_http_xet_register_finish(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status)
{
    ngx_uint_t                new;
    ngx_http_xet_register_t  *reg;

    reg = ngx_http_xet_ctx_of(r)->reg;

    new = (rc == NGX_OK && ngx_http_xet_query_number(r) != 0);

    if (rc == NGX_OK) {
        ngx_http_xet_count(REGISTERED, reg->bytes);
    }

    if (rc != NGX_OK && reg->batch.seq) {
        (void) ngx_http_xet_post(shard_unstage, .upload = reg->batch.id);
    }

    reg->finished = 1;

    reg->handler(r, rc, status, new);
}
