
/*
 * The jobs of an ingest: turn the bytes of files into durable xorbs and a spool
 * of terms.
 *
 *     feed    takes the next piece of a body
 *     take    takes files in memory, one after another
 *
 * A job ends early, with XET_AGAIN, for a look-up of a chunk and for each
 * complete xorb, and when the pipeline has no free buffer.  The event loop then
 * does its part (ngx_http_xet_ingest.c), and posts the job again.
 *
 * Ownership: while a job runs, the structure belongs to its thread.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_ingest.h"


#define NGX_HTTP_XET_INGEST_MANY  65536        /* bytes; smaller: no look-up */


static xet_status_t ngx_http_xet_ingest_begin(ngx_http_xet_ingest_t *ing);
static xet_status_t ngx_http_xet_ingest_go_on_job(ngx_http_xet_ingest_t *ing);
static xet_status_t ngx_http_xet_ingest_known_job(ngx_http_xet_ingest_t *ing);
static xet_status_t ngx_http_xet_ingest_take_job(ngx_http_xet_ingest_t *ing,
    u_char *buf, size_t len, ngx_uint_t last);
static xet_status_t ngx_http_xet_ingest_alone_job(ngx_http_xet_ingest_t *ing,
    u_char *buf, size_t len);
static xet_status_t ngx_http_xet_ingest_file_job(ngx_http_xet_ingest_t *ing,
    ngx_http_xet_ingest_file_t *file);
static xet_status_t ngx_http_xet_ingest_chunk_job(void *ctx,
    const xet_hash_t *hash);
static xet_status_t ngx_http_xet_ingest_end_job(ngx_http_xet_ingest_t *ing);
static xet_status_t ngx_http_xet_ingest_finish_job(
    ngx_http_xet_ingest_t *ing);
static xet_status_t ngx_http_xet_ingest_check(ngx_http_xet_ingest_t *ing);
static xet_status_t ngx_http_xet_ingest_commit_job(
    ngx_http_xet_ingest_t *ing);
static ngx_uint_t ngx_http_xet_ingest_whole(ngx_http_xet_ingest_t *ing,
    const xet_xorb_info_t *info);
static xet_status_t ngx_http_xet_ingest_write_job(void *ctx,
    const uint8_t *data, size_t len);
static void ngx_http_xet_ingest_eligible(ngx_http_xet_ingest_t *ing,
    const xet_xorb_info_t *info);
static void ngx_http_xet_ingest_first(ngx_http_xet_ingest_t *ing,
    const ngx_http_xet_ingest_file_t *file, const xet_xorb_info_t *info);
static xet_status_t ngx_http_xet_ingest_term_job(void *ctx,
    const xet_ingest_term_t *term);
static xet_status_t ngx_http_xet_ingest_close_job(ngx_http_xet_ingest_t *ing);


xet_status_t
ngx_http_xet_ingest_feed_job(void *data, u_char *buf, size_t len,
    ngx_uint_t last, ngx_log_t *log)
{
    ngx_http_xet_ingest_t *ing = data;

    xet_status_t  rc;

    ing->log = log;

    rc = ing->core ? ngx_http_xet_ingest_go_on_job(ing)
                   : ngx_http_xet_ingest_begin(ing);

    if (rc == XET_OK) {
        rc = ngx_http_xet_ingest_take_job(ing, buf, len, last);
    }

    if (rc == XET_AGAIN && xet_ingest_want(ing->core) == XET_INGEST_XORB) {
        rc = ngx_http_xet_ingest_commit_job(ing);
    }

    return rc;
}


/*
 * Creates the core's state when the first piece has arrived, so that an idle
 * upload holds no memory of the core.
 */

static xet_status_t
ngx_http_xet_ingest_begin(ngx_http_xet_ingest_t *ing)
{
    xet_ingest_conf_t  conf;

    ngx_memzero(&conf, sizeof(xet_ingest_conf_t));

    conf.suite = ing->suite;
    conf.ask = ing->ask;
    conf.ahead = 1;
    conf.known = XET_INGEST_KNOWN;
    conf.write = ngx_http_xet_ingest_write_job;
    conf.term = ngx_http_xet_ingest_term_job;
    conf.chunk = ing->files ? ngx_http_xet_ingest_chunk_job : NULL;
    conf.ctx = ing;

    ngx_http_xet_spool_begin_job(&ing->spool, ing->log);

    ing->core = xet_ingest_create(&conf);
    ing->sha256 = EVP_MD_CTX_new();

    if (ing->core == NULL || ing->sha256 == NULL
        || EVP_DigestInit_ex(ing->sha256, EVP_sha256(), NULL) != 1)
    {
        return XET_NOMEM;
    }

    return XET_OK;
}


/*
 * Continues in the thread after a pause: uses the result of the query, or
 * starts the next xorb.
 */

static xet_status_t
ngx_http_xet_ingest_go_on_job(ngx_http_xet_ingest_t *ing)
{
    xet_status_t  rc;

    switch (xet_ingest_want(ing->core)) {

    case XET_INGEST_CHUNK:
        rc = ing->answered ? ngx_http_xet_ingest_known_job(ing) : XET_OK;

        if (rc != XET_OK) {
            return rc;
        }

        break;

    case XET_INGEST_XORB:
        ngx_http_xet_store_reset_job(ing->xorb, ing->log);
        break;

    default: /* XET_INGEST_NOTHING: another piece */
        return XET_OK;
    }

    xet_ingest_done(ing->core);

    return XET_OK;
}


/* Passes the found xorbs to the core, except those whose copy is missing. */

static xet_status_t
ngx_http_xet_ingest_known_job(ngx_http_xet_ingest_t *ing)
{
    ngx_uint_t                 i, n, recorded;
    xet_status_t               rc;
    xet_xorb_list_t            xorb;
    ngx_http_xet_copy_stat_t  *looks;

    n = ngx_http_xet_query_rows(ing->query);

    looks = ngx_http_xet_query_chunk_look_job(ing->query, &ing->damage,
                                              ing->xorb->store, n, ing->log);
    if (looks == NULL) {
        return XET_NOMEM;
    }

    rc = XET_OK;

    for (i = 0; i < n && rc == XET_OK; i++) {
        rc = looks[i].status;

        if (rc == XET_STORE_DAMAGED) {
            rc = XET_OK;
            continue;
        }

        if (rc == XET_OK) {
            ngx_http_xet_query_chunk_find_row(ing->query, i, &xorb, &recorded);
            rc = xet_ingest_known(ing->core, &xorb);
        }
    }

    ngx_free(looks);

    return rc;
}


static xet_status_t
ngx_http_xet_ingest_take_job(ngx_http_xet_ingest_t *ing, u_char *buf,
    size_t len, ngx_uint_t last)
{
    xet_status_t  rc;

    rc = XET_OK;

    if (!ing->fed) {

        if (last && !ing->piped) {
            rc = ngx_http_xet_ingest_alone_job(ing, buf, len);

        } else {
            ing->piped = 1;
            rc = ngx_http_xet_pipeline_feed_job(ing->pipeline, ing->core,
                                                ing->sha256, buf, len, last);
        }
    }

    if (rc == XET_OK && last) {
        ing->fed = 1;
        rc = ngx_http_xet_ingest_end_job(ing);
    }

    return rc;
}


/* Takes a body that is a single piece. */

static xet_status_t
ngx_http_xet_ingest_alone_job(ngx_http_xet_ingest_t *ing, u_char *buf,
    size_t len)
{
    size_t        n;
    xet_status_t  rc;

    if (!ing->digested) {

        if (EVP_DigestUpdate(ing->sha256, buf, len) != 1) {
            return XET_INTERNAL;
        }

        ing->digested = 1;
    }

    rc = xet_ingest_feed(ing->core, buf + ing->taken, len - ing->taken, &n);

    ing->taken += n;

    return rc;
}


xet_status_t
ngx_http_xet_ingest_files_job(ngx_http_xet_ingest_t *ing)
{
    xet_status_t                 rc;
    ngx_http_xet_ingest_file_t  *file;

    rc = ing->core ? ngx_http_xet_ingest_go_on_job(ing)
                   : ngx_http_xet_ingest_begin(ing);

    while (rc == XET_OK && ing->next < ing->n) {
        file = &ing->files[ing->next];
        rc = ngx_http_xet_ingest_file_job(ing, file);

        if (rc == XET_AGAIN && file->len < NGX_HTTP_XET_INGEST_MANY
            && xet_ingest_want(ing->core) == XET_INGEST_CHUNK)
        {
            xet_ingest_done(ing->core);
            rc = XET_OK;
        }
    }

    if (rc == XET_OK) {
        rc = ngx_http_xet_ingest_finish_job(ing);
    }

    if (rc == XET_AGAIN && xet_ingest_want(ing->core) == XET_INGEST_XORB) {
        rc = ngx_http_xet_ingest_commit_job(ing);
    }

    return rc;
}


static xet_status_t
ngx_http_xet_ingest_file_job(ngx_http_xet_ingest_t *ing,
    ngx_http_xet_ingest_file_t *file)
{
    size_t        n;
    xet_status_t  rc;

    rc = xet_ingest_feed(ing->core, file->data + ing->taken,
                         file->len - ing->taken, &n);

    ing->taken += n;

    if (rc == XET_OK) {
        rc = xet_ingest_end(ing->core);
    }

    if (rc != XET_OK) {
        return rc;
    }

    file->hash = xet_ingest_info(ing->core)->hash;

    xet_ingest_next(ing->core);

    ing->taken = 0;
    ing->next++;

    return XET_OK;
}


/* Called by the core for each chunk: records the first chunk of the file. */

static xet_status_t
ngx_http_xet_ingest_chunk_job(void *ctx, const xet_hash_t *hash)
{
    ngx_http_xet_ingest_t *ing = ctx;

    ngx_http_xet_ingest_file_t  *file;

    file = &ing->files[ing->next];

    if (!file->begun) {
        file->first = *hash;
        file->begun = 1;
    }

    return XET_OK;
}


static xet_status_t
ngx_http_xet_ingest_end_job(ngx_http_xet_ingest_t *ing)
{
    xet_status_t  rc;

    if (!ing->ended) {
        rc = xet_ingest_end(ing->core);

        if (rc == XET_OK) {
            rc = ngx_http_xet_ingest_check(ing);
        }

        if (rc != XET_OK) {
            return rc;
        }

        ing->ended = 1;
    }

    return ngx_http_xet_ingest_finish_job(ing);
}


/* Completes the last xorb and its terms. */

static xet_status_t
ngx_http_xet_ingest_finish_job(ngx_http_xet_ingest_t *ing)
{
    xet_status_t  rc;

    rc = xet_ingest_finish(ing->core);

    if (rc == XET_OK && ing->spool.open) {
        rc = ngx_http_xet_ingest_close_job(ing);
    }

    return rc;
}


static xet_status_t
ngx_http_xet_ingest_check(ngx_http_xet_ingest_t *ing)
{
    const xet_ingest_info_t         *info;
    ngx_http_xet_ingest_result_t    *res;
    ngx_http_xet_ingest_expected_t  *want;

    res = &ing->result;
    want = &ing->expected;
    info = xet_ingest_info(ing->core);

    if (EVP_DigestFinal_ex(ing->sha256, res->sha256, NULL) != 1) {
        return XET_INTERNAL;
    }

    res->hash = info->hash;
    res->size = info->size;
    res->new_size = info->new_size;

    if (want->has_sha256
        && ngx_memcmp(want->sha256, res->sha256, XET_DIGEST_SHA256_LEN) != 0)
    {
        return XET_DIGEST_MISMATCH;
    }

    if (want->has_hash && !xet_hash_equal(&want->hash, &res->hash)) {
        return XET_FILE_HASH;
    }

    return XET_OK;
}


/*
 * Makes the file of the complete xorb a durable copy.  Returns XET_AGAIN, since
 * the event loop must insert the row of the xorb next.  Returns XET_OK if the
 * ingest is complete: then file_put inserts the rows of the xorb and the file.
 */

static xet_status_t
ngx_http_xet_ingest_commit_job(ngx_http_xet_ingest_t *ing)
{
    xet_status_t            rc;
    const xet_xorb_info_t  *info;

    info = xet_ingest_xorb(ing->core);

    rc = ngx_http_xet_store_commit_job(ing->xorb, &info->hash, ing->log);

    if (rc != XET_OK) {
        return rc;
    }

    ngx_http_xet_ingest_eligible(ing, info);

    if (ngx_http_xet_ingest_whole(ing, info)) {
        ing->is_whole = 1;
        return ngx_http_xet_ingest_close_job(ing);
    }

    return XET_AGAIN;
}


/* Returns whether the body is complete, and consists of this xorb. */

static ngx_uint_t
ngx_http_xet_ingest_whole(ngx_http_xet_ingest_t *ing,
    const xet_xorb_info_t *info)
{
    ngx_http_xet_xorb_file_t  *whole;

    if (!ing->ended || ing->spool.terms != 1
        || ing->result.size != info->raw_size
        || !xet_hash_equal(&ing->last, &info->hash))
    {
        return 0;
    }

    whole = &ing->whole;

    whole->hash = ing->result.hash;
    whole->size = ing->result.size;
    whole->sha256 = ing->result.sha256;
    whole->kept = ing->expected.kept;

    return 1;
}


/*
 * Selects the chunks of the xorb to add to the dedup index.  The first chunk of
 * each xorb is added, eligible or not, so that a repeated upload of the same
 * file finds one xorb after another.
 */

static void
ngx_http_xet_ingest_eligible(ngx_http_xet_ingest_t *ing,
    const xet_xorb_info_t *info)
{
    ngx_uint_t  i;

    ngx_http_xet_array_reset(&ing->eligible);

    if (!xet_hash_eligible(ing->suite, info->hashes)) {
        ngx_http_xet_array_int4(&ing->eligible, 0);
    }

    ngx_http_xet_query_eligible(&ing->eligible, ing->suite, info);

    for (i = 0; i < ing->n; i++) {

        if (ing->files[i].begun
            && ing->files[i].len >= NGX_HTTP_XET_INGEST_MANY)
        {
            ngx_http_xet_ingest_first(ing, &ing->files[i], info);
        }
    }
}


static void
ngx_http_xet_ingest_first(ngx_http_xet_ingest_t *ing,
    const ngx_http_xet_ingest_file_t *file, const xet_xorb_info_t *info)
{
    uint32_t  i;

    if (xet_hash_eligible(ing->suite, file->first.bytes)) {
        return;
    }

    for (i = 1; i < info->chunk_count; i++) {

        if (ngx_memcmp(info->hashes + i * XET_HASH_LEN, file->first.bytes,
                       XET_HASH_LEN)
            == 0)
        {
            ngx_http_xet_array_int4(&ing->eligible, (int32_t) i);
            return;
        }
    }
}


static xet_status_t
ngx_http_xet_ingest_write_job(void *ctx, const uint8_t *data, size_t len)
{
    ngx_http_xet_ingest_t *ing = ctx;

    return ngx_http_xet_store_write_job(ing->xorb, data, len, ing->log);
}


/*
 * Writes a term to the spool.  The core passes terms file by file, so the first
 * term of the next file closes the open file.
 */

static xet_status_t
ngx_http_xet_ingest_term_job(void *ctx, const xet_ingest_term_t *term)
{
    ngx_http_xet_ingest_t *ing = ctx;

    xet_status_t  rc;

    ing->last = term->xorb;

    rc = (ing->spool.open && ing->spool.number != term->file)
         ? ngx_http_xet_ingest_close_job(ing) : XET_OK;

    return (rc == XET_OK)
           ? ngx_http_xet_spool_term_job(&ing->spool, term, ing->log) : rc;
}


static xet_status_t
ngx_http_xet_ingest_close_job(ngx_http_xet_ingest_t *ing)
{
    const u_char      *sha256;
    const xet_hash_t  *hash;

    hash = &ing->result.hash;
    sha256 = ing->result.sha256;

    if (ing->files) {
        hash = &ing->files[ing->spool.number].hash;
        sha256 = ing->files[ing->spool.number].sha256;
    }

    return ngx_http_xet_spool_close_job(&ing->spool, hash, sha256, ing->log);
}
