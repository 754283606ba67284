
/*
 * Stores plain files: the body of a request, or several files that are in
 * memory.
 *
 *     feed      (threads)  for each piece of the body: computes the SHA-256,
 *                          splits the data into chunks, hashes the chunks,
 *                          looks them up, and packs new chunks into the
 *                          current xorb; after the last piece compares the
 *                          hashes with the expected hashes.  Several threads
 *                          share this work (ngx_http_xet_pipeline.c), unless
 *                          the body is a single piece
 *     take      (thread)   does the same for files in memory, one after
 *                          another; a xorb may contain chunks of many files
 *     ask       (query)    finds the xorbs that contain a chunk, unless the
 *                          filters of xet_chunk_filter know that there are
 *                          none.  If they were not recorded as advertised
 *                          today, a statement records that, and the query is
 *                          repeated.  feed uses a xorb only if its copy exists
 *     commit    (service)  ngx_http_xet_xorb_commit.c writes the row of a
 *                          complete xorb, whose copy is already durable.  If
 *                          the body consists of one xorb, waits for the end of
 *                          the body, and registers the file with the xorb
 *     register  (service)  ngx_http_xet_register.c registers the terms, which
 *                          are in a temporary file, like those of a shard, and
 *                          records that the server has computed the SHA-256;
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
 * The jobs are in ngx_http_xet_ingest_job.c.  The structure belongs to a thread
 * while a job runs, otherwise to the event loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_ingest.h"


#define NGX_HTTP_XET_INGEST_ROUNDS  4


static ngx_http_xet_ingest_t *ngx_http_xet_ingest_create(
    ngx_http_request_t *r, const ngx_http_xet_ingest_expected_t *expected,
    ngx_http_xet_ingest_pt handler);
static ngx_int_t ngx_http_xet_ingest_read(ngx_http_request_t *r, void *data);
static ngx_int_t ngx_http_xet_ingest_take(ngx_http_request_t *r, void *data);
static void ngx_http_xet_ingest_job(void *data, ngx_log_t *log);
static void ngx_http_xet_ingest_done(ngx_http_request_t *r, void *data);
static void ngx_http_xet_ingest_cleanup(void *data);
static void ngx_http_xet_ingest_release(ngx_http_xet_ingest_t *ing);
static void ngx_http_xet_ingest_fed(ngx_http_request_t *r, void *data);
static void ngx_http_xet_ingest_wait(ngx_http_request_t *r, void *data);
static void ngx_http_xet_ingest_ask(ngx_http_request_t *r,
    ngx_http_xet_ingest_t *ing);
static ngx_int_t ngx_http_xet_ingest_find(ngx_http_request_t *r);
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
static void ngx_http_xet_ingest_ended(ngx_http_request_t *r, void *data);
static void ngx_http_xet_ingest_put(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t put);
static void ngx_http_xet_ingest_registered(ngx_http_request_t *r,
    ngx_int_t rc, xet_status_t status, ngx_uint_t new);


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

    ing->pipeline = ngx_http_xet_pipeline_create(r);
    if (ing->pipeline == NULL) {
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
                                   &(ngx_http_xet_body_sink_t) {
                                       .feed = ngx_http_xet_ingest_feed_job,
                                       .fed = ngx_http_xet_ingest_fed,
                                       .wait = ngx_http_xet_ingest_wait,
                                       .done = ngx_http_xet_ingest_body_done,
                                       .data = ing,
                                       .buffers = NGX_HTTP_XET_BODY_BUFFERS });
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

    if (ing->pipeline) {
        ngx_http_xet_pipeline_destroy(ing->pipeline);
    }
}


static void
ngx_http_xet_ingest_fed(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_ingest_t *ing = data;

    ngx_http_xet_pipeline_post(r, ing->pipeline);
}


static void
ngx_http_xet_ingest_wait(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_ingest_t *ing = data;

    ngx_http_xet_query_xorb_damaged_tell(&ing->damage);

    if (ing->pipeline) {
        ngx_http_xet_pipeline_post(r, ing->pipeline);
    }

    switch (xet_ingest_want(ing->core)) {

    case XET_INGEST_CHUNK:
        ngx_http_xet_ingest_ask(r, ing);
        break;

    case XET_INGEST_XORB:
        ngx_http_xet_xorb_commit(r, ing->xorb, xet_ingest_xorb(ing->core),
                                 &ing->eligible, ngx_http_xet_ingest_kept);
        break;

    default: /* XET_INGEST_NOTHING */
        ngx_http_xet_pipeline_wait(r, ing->pipeline);
    }
}


/* Looks for xorbs that have the chunk. */

static void
ngx_http_xet_ingest_ask(ngx_http_request_t *r, ngx_http_xet_ingest_t *ing)
{
    ngx_int_t  rc;

    ing->answered = 0;

    rc = ngx_http_xet_chunk_filter(r, xet_ingest_chunk(ing->core),
                                   ngx_http_xet_ingest_find);

    if (rc == NGX_DECLINED) {
        ngx_http_xet_ingest_resume(r, ing, NGX_OK);

    } else if (rc != NGX_AGAIN) {
        ngx_http_xet_ingest_resume(r, ing, NGX_ERROR);
    }
}


/* Sends the query.  Always returns NGX_AGAIN, since the request continues. */

static ngx_int_t
ngx_http_xet_ingest_find(ngx_http_request_t *r)
{
    ngx_int_t               rc;
    ngx_http_xet_ingest_t  *ing;

    ing = ngx_http_xet_ctx_of(r)->ingest;

    /* use the primary: a standby may still have the row of a removed copy */

    ngx_http_xet_query_primary(r);

    rc = ngx_http_xet_query(r, chunk_find, ngx_http_xet_ingest_answered,
                            .chunk = xet_ingest_chunk(ing->core),
                            .wide = ngx_http_xet_dedup_wide(r));

    if (rc != NGX_AGAIN) {
        ngx_http_xet_ingest_resume(r, ing, rc);
    }

    return NGX_AGAIN;
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
        ngx_http_xet_ingest_ask(r, ing);
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

    ing->status = status;

    if (ing->pipeline == NULL
        || ngx_http_xet_pipeline_end(ing->pipeline, ngx_http_xet_ingest_ended,
                                     ing)
           == NGX_OK)
    {
        ngx_http_xet_ingest_ended(r, ing);
    }
}


/* No job is running any more: registers the file, or reports the error. */

static void
ngx_http_xet_ingest_ended(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_ingest_t *ing = data;

    xet_status_t           status;
    ngx_http_xet_spool_t  *s;

    status = ing->status;

    ngx_http_xet_query_xorb_damaged_tell(&ing->damage);

    if (ing->is_whole && ing->rc == NGX_OK && status == XET_OK) {
        ngx_http_xet_xorb_commit_file(r, ing->xorb, xet_ingest_xorb(ing->core),
                                      &ing->eligible, &ing->whole,
                                      ngx_http_xet_ingest_put);
        return;
    }

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

    ngx_http_xet_register(r, s->file, s->end, s->terms,
                          NGX_HTTP_XET_REGISTER_PROVEN
                          | (ing->expected.kept ? NGX_HTTP_XET_REGISTER_KEPT
                                                : 0),
                          NULL, ngx_http_xet_ingest_registered);
}


/*
 * The xorb that is the whole file is stored.  If the file or the xorb was
 * known, the file is registered like any other.
 */

static void
ngx_http_xet_ingest_put(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t put)
{
    ngx_http_xet_ingest_t  *ing;

    ing = ngx_http_xet_ctx_of(r)->ingest;

    if (rc == NGX_OK && put) {
        ngx_http_xet_ingest_release(ing);
        ngx_http_xet_count(REGISTERED, ing->result.size);

        ing->handler(r, NGX_OK, XET_OK, &ing->result);
        return;
    }

    ing->is_whole = 0;

    if (rc == NGX_DECLINED) {
        ing->status = status;

    } else {
        ing->rc = rc;
    }

    ngx_http_xet_ingest_ended(r, ing);
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

    ing->handler(r, rc, (rc == NGX_OK) ? XET_OK : status, &ing->result);
}
