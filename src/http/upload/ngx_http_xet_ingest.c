
/*
 * Stores plain files: the body of a request, or several files that are in
 * memory.
 *
 *     feed      (thread)   for each piece of the body: computes the SHA-256,
 *                          splits the data into chunks, hashes the chunks,
 *                          looks them up, and packs new chunks into the
 *                          current xorb; after the last piece compares the
 *                          hashes with the expected hashes
 *     take      (thread)   does the same for files in memory, one after
 *                          another; a xorb may contain chunks of many files
 *     ask       (query)    finds the xorbs that contain a chunk.  If they were
 *                          not recorded as advertised today, a statement
 *                          records that, and the query is repeated.  feed uses
 *                          a xorb only if its copy exists
 *     commit    (service)  ngx_http_xet_xorb_commit.c writes the row of a
 *                          complete xorb, whose copy is already durable
 *     register  (service)  ngx_http_xet_register.c registers the terms, which
 *                          are in a temporary file, like those of a shard
 *     prove     (query)    records that the server has computed the SHA-256;
 *                          the SHA-256 in a shard is only a client's claim
 *
 * The steps ask and commit pause the body (ngx_http_xet_upload.h).  The bytes
 * of a xorb are durable before its row is inserted, and all xorbs have rows
 * before the file is registered.  An interrupted upload leaves xorbs that the
 * next upload of the same content reuses.
 *
 * Chunks of small files in memory are not looked up.  The first chunk of each
 * larger file in memory is added to the dedup index.
 *
 * The structure belongs to a thread while a job runs, otherwise to the event
 * loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_spool.h"
#include "ngx_http_xet_upload.h"

#include <openssl/evp.h>


#define NGX_HTTP_XET_INGEST_ROUNDS  4
#define NGX_HTTP_XET_INGEST_MANY    65536      /* bytes; smaller: no look-up */


struct ngx_http_xet_ingest_s {
    ngx_http_xet_ingest_pt          handler;
    ngx_http_xet_ingest_expected_t  expected;
    ngx_http_xet_ingest_result_t    result;

    ngx_http_xet_query_t           *query;
    const xet_suite_t              *suite;
    ngx_log_t                      *log;       /* log of the running job */

    xet_ingest_t                   *core;
    EVP_MD_CTX                     *sha256;
    ngx_http_xet_temp_t            *xorb;      /* the xorb being written */
    ngx_http_xet_spool_t            spool;
    ngx_http_xet_array_t            eligible;  /* chunks for the dedup index */
    ngx_http_xet_array_t            reported;  /* xorbs to be recorded */
    ngx_http_xet_damage_t           damage;    /* copies found missing */

    ngx_http_xet_ingest_file_t     *files;     /* NULL: the request body */
    ngx_uint_t                      n;
    ngx_uint_t                      next;      /* index of the current file */
    ngx_http_xet_array_t            hashes;    /* file hashes for prove */
    ngx_http_xet_array_t            digests;
    xet_status_t                    status;    /* result of the job */

    ngx_uint_t                      rounds;    /* repetitions of the query */
    size_t                          taken;     /* bytes consumed so far */
    ngx_int_t                       rc;        /* result of a failed query */

    unsigned                        ask:1;     /* dedup is enabled */
    unsigned                        digested:1;  /* sha256 includes the piece */
    unsigned                        answered:1;  /* the query has rows */
    unsigned                        ended:1;   /* expected hashes match */
};


static ngx_http_xet_ingest_t *ngx_http_xet_ingest_create(
    ngx_http_request_t *r, const ngx_http_xet_ingest_expected_t *expected,
    ngx_http_xet_ingest_pt handler);
static ngx_int_t ngx_http_xet_ingest_read(ngx_http_request_t *r, void *data);
static ngx_int_t ngx_http_xet_ingest_take(ngx_http_request_t *r, void *data);
static void ngx_http_xet_ingest_job(void *data, ngx_log_t *log);
static void ngx_http_xet_ingest_done(ngx_http_request_t *r, void *data);
static void ngx_http_xet_ingest_cleanup(void *data);
static xet_status_t ngx_http_xet_ingest_feed_job(void *data, u_char *buf,
    size_t len, ngx_uint_t last, ngx_log_t *log);
static xet_status_t ngx_http_xet_ingest_begin(ngx_http_xet_ingest_t *ing);
static xet_status_t ngx_http_xet_ingest_go_on_job(ngx_http_xet_ingest_t *ing);
static xet_status_t ngx_http_xet_ingest_known_job(ngx_http_xet_ingest_t *ing);
static xet_status_t ngx_http_xet_ingest_take_job(ngx_http_xet_ingest_t *ing,
    u_char *buf, size_t len, ngx_uint_t last);
static xet_status_t ngx_http_xet_ingest_files_job(ngx_http_xet_ingest_t *ing);
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
static xet_status_t ngx_http_xet_ingest_write_job(void *ctx,
    const uint8_t *data, size_t len);
static void ngx_http_xet_ingest_eligible(ngx_http_xet_ingest_t *ing,
    const xet_xorb_info_t *info);
static void ngx_http_xet_ingest_first(ngx_http_xet_ingest_t *ing,
    const ngx_http_xet_ingest_file_t *file, const xet_xorb_info_t *info);
static void ngx_http_xet_ingest_release(ngx_http_xet_ingest_t *ing);
static xet_status_t ngx_http_xet_ingest_term_job(void *ctx,
    const xet_ingest_term_t *term);
static xet_status_t ngx_http_xet_ingest_close_job(ngx_http_xet_ingest_t *ing);
static void ngx_http_xet_ingest_wait(ngx_http_request_t *r, void *data);
static void ngx_http_xet_ingest_answered(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_ingest_record(ngx_http_request_t *r,
    ngx_http_xet_ingest_t *ing);
static void ngx_http_xet_ingest_recorded(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_ingest_kept(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new);
static void ngx_http_xet_ingest_resume(ngx_http_request_t *r,
    ngx_http_xet_ingest_t *ing, ngx_int_t rc);
static void ngx_http_xet_ingest_go_on(ngx_http_request_t *r,
    ngx_http_xet_ingest_t *ing, xet_status_t status);
static void ngx_http_xet_ingest_body_done(ngx_http_request_t *r, void *data,
    xet_status_t status);
static void ngx_http_xet_ingest_registered(ngx_http_request_t *r,
    ngx_int_t rc, xet_status_t status, ngx_uint_t new);
static void ngx_http_xet_ingest_proven(ngx_http_request_t *r, ngx_int_t rc);


ngx_int_t
ngx_http_xet_ingest(ngx_http_request_t *r,
    const ngx_http_xet_ingest_expected_t *expected,
    ngx_http_xet_ingest_pt handler)
{
    ngx_http_xet_ingest_t  *ing;

    ing = ngx_http_xet_ingest_create(r, expected, handler);
    if (ing == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_copy_ids_then(r, ngx_http_xet_ingest_read, ing);
}


ngx_int_t
ngx_http_xet_ingest_files(ngx_http_request_t *r,
    ngx_http_xet_ingest_file_t *files, ngx_uint_t n,
    ngx_http_xet_ingest_pt handler)
{
    ngx_http_xet_ingest_t           *ing;
    ngx_http_xet_ingest_expected_t   expected;

    /* a request may store files several times */

    ing = ngx_http_xet_ctx_of(r)->ingest;

    if (ing == NULL) {
        ngx_memzero(&expected, sizeof(ngx_http_xet_ingest_expected_t));

        ing = ngx_http_xet_ingest_create(r, &expected, handler);
        if (ing == NULL) {
            return NGX_ERROR;
        }
    }

    ing->handler = handler;
    ing->files = files;
    ing->n = n;
    ing->next = 0;
    ing->taken = 0;
    ing->rc = NGX_OK;

    return ngx_http_xet_copy_ids_then(r, ngx_http_xet_ingest_take, ing);
}


static ngx_http_xet_ingest_t *
ngx_http_xet_ingest_create(ngx_http_request_t *r,
    const ngx_http_xet_ingest_expected_t *expected,
    ngx_http_xet_ingest_pt handler)
{
    ngx_http_xet_ctx_t        *ctx;
    ngx_http_xet_ingest_t     *ing;
    ngx_http_xet_main_conf_t  *xmcf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    ing = ngx_http_xet_state(r, sizeof(ngx_http_xet_ingest_t),
                             ngx_http_xet_ingest_cleanup);
    if (ing == NULL) {
        return NULL;
    }

    ctx->ingest = ing;

    ing->handler = handler;
    ing->expected = *expected;
    ing->query = ctx->query;
    ing->suite = xmcf->suite;
    ing->ask = (xmcf->dedup_secret.len != 0);

    ing->xorb = ngx_http_xet_store_xorb(r);

    return (ing->xorb && ngx_http_xet_spool_init(r, &ing->spool) == NGX_OK)
           ? ing : NULL;
}


static ngx_int_t
ngx_http_xet_ingest_read(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_ingest_t *ing = data;

    return ngx_http_xet_quota_read(r, NGX_HTTP_XET_QUOTA_FILE,
                                   ing->expected.has_hash ? &ing->expected.hash
                                                          : NULL,
                                   ngx_http_xet_ingest_feed_job,
                                   ngx_http_xet_ingest_wait,
                                   ngx_http_xet_ingest_body_done, ing);
}


static ngx_int_t
ngx_http_xet_ingest_take(ngx_http_request_t *r, void *data)
{
    return (ngx_http_xet_task_post(r, ngx_http_xet_ingest_job,
                                   ngx_http_xet_ingest_done, data)
            == NGX_OK)
           ? NGX_DONE : NGX_ERROR;
}


static void
ngx_http_xet_ingest_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_ingest_t *ing = data;

    ing->log = log;
    ing->status = ngx_http_xet_ingest_files_job(ing);
}


static void
ngx_http_xet_ingest_done(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_ingest_t *ing = data;

    if (ing->status == XET_AGAIN) {
        ngx_http_xet_ingest_wait(r, ing);
        return;
    }

    ngx_http_xet_ingest_body_done(r, ing, ing->status);
}


static void
ngx_http_xet_ingest_cleanup(void *data)
{
    ngx_http_xet_ingest_t *ing = data;

    ngx_http_xet_ingest_release(ing);

    ngx_http_xet_array_destroy(&ing->eligible);
    ngx_http_xet_array_destroy(&ing->reported);
    ngx_http_xet_array_destroy(&ing->hashes);
    ngx_http_xet_array_destroy(&ing->digests);
    ngx_http_xet_damage_destroy(&ing->damage);
}


/* Frees the memory that is no longer needed after the last piece. */

static void
ngx_http_xet_ingest_release(ngx_http_xet_ingest_t *ing)
{
    xet_ingest_destroy(ing->core);
    ing->core = NULL;

    EVP_MD_CTX_free(ing->sha256);
    ing->sha256 = NULL;
}


static xet_status_t
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

    ngx_http_xet_array_reset(&ing->hashes);
    ngx_http_xet_array_reset(&ing->digests);

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

    if (rc == XET_OK && last) {
        rc = ngx_http_xet_ingest_end_job(ing);
    }

    if (rc == XET_OK) {
        ing->taken = 0;
        ing->digested = 0;
    }

    return rc;
}


static xet_status_t
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
 * the event loop must insert the row of the xorb next.
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

    return XET_AGAIN;
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

    ngx_http_xet_array_bytes(&ing->hashes, hash->bytes, XET_HASH_LEN);
    ngx_http_xet_array_bytes(&ing->digests, sha256, XET_DIGEST_SHA256_LEN);

    return ngx_http_xet_spool_close_job(&ing->spool, hash, sha256, ing->log);
}


static void
ngx_http_xet_ingest_wait(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_ingest_t *ing = data;

    ngx_int_t  rc;

    ngx_http_xet_query_xorb_damaged_tell(&ing->damage);

    if (xet_ingest_want(ing->core) == XET_INGEST_XORB) {
        ngx_http_xet_xorb_commit(r, ing->xorb, xet_ingest_xorb(ing->core),
                                 &ing->eligible, ngx_http_xet_ingest_kept);
        return;
    }

    ing->answered = 0;

    /* use the primary: a standby may still have the row of a removed copy */

    ngx_http_xet_query_primary(r);

    rc = ngx_http_xet_query(r, chunk_find, ngx_http_xet_ingest_answered,
                            .chunk = xet_ingest_chunk(ing->core),
                            .wide = ngx_http_xet_dedup_wide(r));

    if (rc != NGX_AGAIN) {
        ngx_http_xet_ingest_resume(r, ing, rc);
    }
}


static void
ngx_http_xet_ingest_answered(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_ingest_t  *ing;

    ing = ngx_http_xet_ctx_of(r)->ingest;

    rc = ngx_http_xet_query_chunk_find_rc(r, rc);

    if (rc == NGX_OK) {
        ing->answered = 1;

        rc = ngx_http_xet_ingest_record(r, ing);

        if (rc == NGX_AGAIN) {
            return;
        }
    }

    /* no row: no xorb contains the chunk */

    ngx_http_xet_ingest_resume(r, ing, (rc == NGX_DECLINED) ? NGX_OK : rc);
}


/*
 * Records the found xorbs as advertised, like those of a dedup response to a
 * client: the terms of the file will refer to these xorbs, and the collector
 * must not remove them before the file is registered.  Returns NGX_OK if all
 * these xorbs are already recorded.  If repeated queries find new xorbs each
 * time, the result is ignored.
 */

static ngx_int_t
ngx_http_xet_ingest_record(ngx_http_request_t *r, ngx_http_xet_ingest_t *ing)
{
    ngx_int_t  rc;

    ngx_http_xet_array_reset(&ing->reported);

    rc = ngx_http_xet_query_chunk_find_xorbs(ing->query, &ing->reported);

    if (rc == NGX_DECLINED && ing->rounds++ == NGX_HTTP_XET_INGEST_ROUNDS) {
        ing->answered = 0;
        return NGX_OK;
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_xet_query(r, xorb_advertised,
                                ngx_http_xet_ingest_recorded,
                                .xorbs = &ing->reported);
    }

    return rc;
}


/*
 * The statement that recorded the xorbs has freed the rows of the query, so the
 * query is repeated.
 */

static void
ngx_http_xet_ingest_recorded(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_ingest_t  *ing;

    ing = ngx_http_xet_ctx_of(r)->ingest;

    if (rc == NGX_OK) {
        ngx_http_xet_ingest_wait(r, ing);
        return;
    }

    ngx_http_xet_ingest_resume(r, ing, rc);
}


static void
ngx_http_xet_ingest_kept(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new)
{
    ngx_http_xet_ingest_t  *ing;

    ing = ngx_http_xet_ctx_of(r)->ingest;

    if (rc == NGX_DECLINED) {
        ngx_http_xet_ingest_go_on(r, ing, status);
        return;
    }

    ngx_http_xet_ingest_resume(r, ing, rc);
}


static void
ngx_http_xet_ingest_resume(ngx_http_request_t *r, ngx_http_xet_ingest_t *ing,
    ngx_int_t rc)
{
    ing->rc = (rc == NGX_DECLINED) ? NGX_ERROR : rc;
    ing->rounds = 0;

    ngx_http_xet_ingest_go_on(r, ing, (rc == NGX_OK) ? XET_OK : XET_INTERNAL);
}


/*
 * Continues in the event loop after a pause: starts the next job, for the body
 * or for files in memory.
 */

static void
ngx_http_xet_ingest_go_on(ngx_http_request_t *r, ngx_http_xet_ingest_t *ing,
    xet_status_t status)
{
    if (ing->files == NULL) {
        ngx_http_xet_body_resume(r, status);
        return;
    }

    if (status == XET_OK && ngx_http_xet_ingest_take(r, ing) != NGX_DONE) {
        status = XET_OVERLOADED;
    }

    if (status != XET_OK) {
        ngx_http_xet_ingest_body_done(r, ing, status);
    }
}


static void
ngx_http_xet_ingest_body_done(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_ingest_t *ing = data;

    ngx_http_xet_spool_t  *s;

    ngx_http_xet_query_xorb_damaged_tell(&ing->damage);
    ngx_http_xet_ingest_release(ing);

    if (ing->rc != NGX_OK) {
        ing->handler(r, ing->rc, status, &ing->result);
        return;
    }

    if (status != XET_OK) {
        ing->handler(r, NGX_DECLINED, status, &ing->result);
        return;
    }

    /* the empty file exists even if nobody has registered it */

    s = &ing->spool;

    if (s->terms == 0) {
        ing->handler(r, NGX_OK, XET_OK, &ing->result);
        return;
    }

    ngx_http_xet_register(r, s->file, s->end, s->terms, 0, NULL,
                          ngx_http_xet_ingest_registered);
}


static void
ngx_http_xet_ingest_registered(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new)
{
    ngx_http_xet_ingest_t  *ing;

    ing = ngx_http_xet_ctx_of(r)->ingest;

    /*
     * the copy of a xorb that the query found is missing; this is now recorded,
     * so the client may retry
     */

    if (rc == NGX_DECLINED && status == XET_SHARD_XORB) {
        status = XET_PLAN_CHANGED;
    }

    /* the server itself made the terms, so this is not a client error */

    if (rc == NGX_DECLINED && xet_status_http(status) < 500
        && status != XET_QUOTA && status != XET_NO_REPO)
    {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "xet: an uploaded file was rejected: %s",
                      xet_status_text(status));
        status = XET_INTERNAL;
    }

    if (rc == NGX_OK) {
        rc = ngx_http_xet_query(r, files_prove, ngx_http_xet_ingest_proven,
                                .files = &ing->hashes,
                                .digests = &ing->digests);
        if (rc == NGX_AGAIN) {
            return;
        }
    }

    ing->handler(r, rc, status, &ing->result);
}


static void
ngx_http_xet_ingest_proven(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_ingest_t  *ing;

    ing = ngx_http_xet_ctx_of(r)->ingest;

    ing->handler(r, (rc == NGX_DECLINED) ? NGX_ERROR : rc, XET_OK,
                 &ing->result);
}
