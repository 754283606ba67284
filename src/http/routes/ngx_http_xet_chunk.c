
/*
 * GET chunks/{prefix}/{chunk}: a query for global deduplication.
 *
 * A miss is always 404: after any other response without a usable shard, a
 * client aborts its whole upload.  A hit is a shard with the keyed chunk hashes
 * of the xorb that fits best, and of other xorbs that the client will probably
 * need next.  All responses of a period have the same key: clients search one
 * collection per key, and store equal responses only once.
 *
 *     handler -> queried -> job (thread: up to 65536 keyed hashes) -> done
 *                        `-> advertised -> queried, once per xorb and day
 *
 * A registered xorb whose file is missing is left out, so that the client
 * uploads its bytes.  If the file of the best xorb is missing, the response is
 * a miss.
 *
 * A response is a promise: clients store it, and later refer to the xorb
 * without an upload.  So, before the first response of a day, the day is
 * recorded for the garbage collector.  Then the chunk is looked up again,
 * because the xorb may have been collected in the meantime.  If every look-up
 * finds a different xorb, the response is a miss after a few attempts.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"


#define NGX_HTTP_XET_CHUNK_ROUNDS  4


struct ngx_http_xet_chunk_s {
    ngx_http_xet_query_t  *query;
    ngx_http_xet_array_t   xorbs;              /* xorbs to advertise */
    xet_shard_footer_t     footer;
    xet_hash_t             noise;             /* secret key for the noise in
                                                 place of hidden chunks */
    ngx_pool_t            *pool;
    xet_buf_t              buf;
    ngx_http_xet_store_t  *store;
    ngx_http_xet_damage_t  damage;
    xet_status_t           status;             /* result of the job */
    ngx_uint_t             rounds;
};


static ngx_int_t ngx_http_xet_chunk_ask(ngx_http_request_t *r);
static void ngx_http_xet_chunk_cleanup(void *data);
static void ngx_http_xet_chunk_queried(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_chunk_answer(ngx_http_request_t *r);
static void ngx_http_xet_chunk_advertised(ngx_http_request_t *r,
    ngx_int_t rc);
static void ngx_http_xet_chunk_keys(ngx_http_request_t *r,
    ngx_http_xet_chunk_t *chunk);
static void ngx_http_xet_chunk_job(void *data, ngx_log_t *log);
static void ngx_http_xet_chunk_done(ngx_http_request_t *r, void *data);
static ngx_int_t ngx_http_xet_chunk_send(ngx_http_request_t *r,
    ngx_http_xet_chunk_t *chunk);
static ngx_int_t ngx_http_xet_chunk_missing(ngx_http_request_t *r);


ngx_int_t
ngx_http_xet_chunk_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    ngx_int_t                  rc;
    ngx_http_xet_chunk_t      *chunk;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    if (xmcf->dedup_secret.len == 0) {
        return ngx_http_xet_error(r, NGX_HTTP_NOT_FOUND, "chunk_not_found",
                                  "global dedup is off");
    }

    chunk = ngx_http_xet_state(r, sizeof(ngx_http_xet_chunk_t),
                               ngx_http_xet_chunk_cleanup);
    if (chunk == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    chunk->query = ctx->query;
    chunk->store = xmcf->store;

    ctx->route.chunk = chunk;

    rc = ngx_http_xet_chunk_filter(r, &ctx->hash, ngx_http_xet_chunk_ask);

    if (rc == NGX_DECLINED) {
        return ngx_http_xet_chunk_missing(r);
    }

    return (rc == NGX_AGAIN) ? ngx_http_xet_query_wait(r, rc) : rc;
}


/* Returns NGX_AGAIN, or the result of sending an error. */

static ngx_int_t
ngx_http_xet_chunk_ask(ngx_http_request_t *r)
{
    ngx_int_t  rc;

    rc = ngx_http_xet_query(r, chunk_find, ngx_http_xet_chunk_queried,
                            .chunk = &ngx_http_xet_ctx_of(r)->hash,
                            .wide = ngx_http_xet_dedup_wide(r));

    return ngx_http_xet_query_asked(r, rc);
}


static void
ngx_http_xet_chunk_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    rc = ngx_http_xet_query_chunk_find_rc(r, rc);

    ngx_http_xet_query_answer(r, rc, ngx_http_xet_chunk_answer,
                              "chunk_not_found",
                              "no such chunk in the dedup index");
}


static ngx_int_t
ngx_http_xet_chunk_answer(ngx_http_request_t *r)
{
    ngx_int_t              rc;
    ngx_http_xet_chunk_t  *chunk;

    chunk = ngx_http_xet_ctx_of(r)->route.chunk;

    ngx_http_xet_array_reset(&chunk->xorbs);

    rc = ngx_http_xet_query_chunk_find_xorbs(chunk->query, &chunk->xorbs);

    if (rc == NGX_ERROR) {
        return ngx_http_xet_error_status(r, XET_INTERNAL);
    }

    if (rc == NGX_DECLINED && chunk->rounds++ == NGX_HTTP_XET_CHUNK_ROUNDS) {
        return ngx_http_xet_chunk_missing(r);
    }

    if (rc == NGX_DECLINED) {
        rc = ngx_http_xet_query(r, xorb_advertised,
                                ngx_http_xet_chunk_advertised,
                                .xorbs = &chunk->xorbs);

        return ngx_http_xet_query_asked(r, rc);
    }

    ngx_http_xet_chunk_keys(r, chunk);

    if (chunk->pool) {
        ngx_destroy_pool(chunk->pool);
    }

    chunk->pool = ngx_create_pool(16 * 1024, ngx_cycle->log);
    if (chunk->pool == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_xet_task_post(r, ngx_http_xet_chunk_job,
                               ngx_http_xet_chunk_done, chunk)
        != NGX_OK)
    {
        return ngx_http_xet_error_status(r, XET_OVERLOADED);
    }

    return NGX_AGAIN;
}


/*
 * Looks up the chunk again after its xorbs were recorded as advertised, because
 * the update has freed the rows.
 */

static void
ngx_http_xet_chunk_advertised(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_ctx_t  *ctx;

    if (rc == NGX_OK) {
        ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

        rc = ngx_http_xet_query(r, chunk_find, ngx_http_xet_chunk_queried,
                                .chunk = &ctx->hash,
                                .wide = ngx_http_xet_dedup_wide(r));
        if (rc == NGX_AGAIN) {
            return;
        }
    }

    ngx_http_xet_query_failed(r, rc);
}


static void
ngx_http_xet_chunk_cleanup(void *data)
{
    ngx_http_xet_chunk_t *chunk = data;

    ngx_http_xet_array_destroy(&chunk->xorbs);
    ngx_http_xet_damage_destroy(&chunk->damage);

    if (chunk->pool) {
        ngx_destroy_pool(chunk->pool);
    }
}


/*
 * Sets the dedup key of the period, which is a hash of "xet-dedup-1" and the
 * number of the period, keyed with the secret.  A response stays valid during
 * the next period, so that a response at the end of a period is useful, too.
 * The noise key is derived from "xet-noise-1" in the same way, and is never
 * sent.
 */

static void
ngx_http_xet_chunk_keys(ngx_http_request_t *r, ngx_http_xet_chunk_t *chunk)
{
    u_char                     text[11 + 8];
    uint64_t                   n, period;
    xet_hash_t                 key;
    xet_shard_footer_t        *f;
    ngx_http_xet_main_conf_t  *xmcf;

    f = &chunk->footer;

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    period = (uint64_t) xmcf->dedup_period;
    n = (uint64_t) ngx_time() / period;

    ngx_memcpy(text, "xet-dedup-1", 11);
    xet_put_u64(text + 11, n);

    xet_hash_keyed(xmcf->dedup_secret.data, text, sizeof(text), &key);

    ngx_memcpy(f->key, key.bytes, XET_HASH_LEN);

    ngx_memcpy(text, "xet-noise-1", 11);

    xet_hash_keyed(xmcf->dedup_secret.data, text, sizeof(text),
                   &chunk->noise);

    f->created = n * period;
    f->expires = (n + 2) * period;
}


static void
ngx_http_xet_chunk_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_chunk_t *chunk = data;

    xet_buf_t                 *b;
    ngx_uint_t                 i, n, recorded;
    xet_xorb_list_t            xorb;
    xet_shard_footer_t        *f;
    ngx_http_xet_copy_stat_t  *looks;

    b = &chunk->buf;
    f = &chunk->footer;

    xet_buf_init(b, ngx_http_xet_alloc, chunk->pool, 0);

    xet_shard_build_header(b, XET_SHARD_FOOTER_LEN);
    f->files_offset = b->size;
    xet_shard_build_bookend(b);
    f->xorbs_offset = b->size;

    n = ngx_http_xet_query_rows(chunk->query);

    looks = ngx_http_xet_query_chunk_look_job(chunk->query, &chunk->damage,
                                              chunk->store, n, log);
    if (looks == NULL) {
        chunk->status = XET_NOMEM;
        return;
    }

    for (i = 0; i < n; i++) {
        ngx_http_xet_query_chunk_find_row(chunk->query, i, &xorb, &recorded);

        chunk->status = looks[i].status;

        if (chunk->status == XET_STORE_DAMAGED && i) {
            chunk->status = XET_OK;
            continue;
        }

        if (chunk->status != XET_OK) {
            break;
        }

        xorb.noise = chunk->noise.bytes;

        xet_shard_build_xorb_block(b, &xorb, f->key);

        /* the sums must not reveal the sizes of hidden chunks */

        if (xorb.seen == NULL) {
            f->stored_on_disk += xorb.stored_size;
            f->stored += xorb.raw_size;
        }
    }

    ngx_free(looks);

    if (chunk->status != XET_OK) {
        return;
    }

    xet_shard_build_bookend(b);

    f->footer_offset = b->size;

    xet_shard_build_footer(b, f);
}


static void
ngx_http_xet_chunk_done(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_chunk_t *chunk = data;

    ngx_int_t            rc;
    ngx_http_xet_ctx_t  *ctx;

    if (chunk->damage.xorbs.n && ngx_http_xet_query_again(r)) {

        /* a standby may have an old row; ask the primary for the current one */

        ngx_http_xet_damage_destroy(&chunk->damage);

        ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

        rc = ngx_http_xet_query(r, chunk_find, ngx_http_xet_chunk_queried,
                                .chunk = &ctx->hash,
                                .wide = ngx_http_xet_dedup_wide(r));
        if (rc != NGX_AGAIN) {
            ngx_http_xet_query_failed(r, rc);
        }

        return;
    }

    ngx_http_xet_query_xorb_damaged_tell(&chunk->damage);

    ngx_http_finalize_request(r, ngx_http_xet_chunk_send(r, chunk));
}


static ngx_int_t
ngx_http_xet_chunk_send(ngx_http_request_t *r, ngx_http_xet_chunk_t *chunk)
{
    if (chunk->status == XET_STORE_DAMAGED) {
        return ngx_http_xet_chunk_missing(r);
    }

    if (chunk->status != XET_OK) {
        return ngx_http_xet_error_status(r, chunk->status);
    }

    if (ngx_http_xet_header(r, "Cache-Control", "private, max-age=3600")
        != NGX_OK
        || ngx_http_xet_header(r, "Vary", "Authorization") != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_send(r, NGX_HTTP_OK, "application/octet-stream",
                             &chunk->buf);
}


static ngx_int_t
ngx_http_xet_chunk_missing(ngx_http_request_t *r)
{
    return ngx_http_xet_error(r, NGX_HTTP_NOT_FOUND, "chunk_not_found",
                              "no such chunk in the dedup index");
}
