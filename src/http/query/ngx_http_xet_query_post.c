
/*
 * Statements that no request waits for.  What their parameters point to is
 * copied into a pool, which goes when the statement is answered, or at once
 * where it can't be queued.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


/*
 * What can be spared is not sent while so many statements wait: a table that
 * somebody has locked must not take the sessions of uploads.
 */

#define NGX_HTTP_XET_POST_WAITING  16


static void ngx_http_xet_query_posted(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate);
static void ngx_http_xet_query_telemetry_done(void *data);


static ngx_uint_t  ngx_http_xet_telemetry_inflight;


ngx_http_xet_post_t *
ngx_http_xet_query_post_create(void)
{
    ngx_pool_t           *pool;
    ngx_http_xet_post_t  *post;

    pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    post = ngx_pcalloc(pool, sizeof(ngx_http_xet_post_t));
    if (post == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    post->pool = pool;

    return post;
}


ngx_uint_t
ngx_http_xet_query_post_busy(void)
{
    ngx_http_xet_lane_stat_t  stat;

    ngx_http_xet_lanes_stat(NGX_HTTP_XET_WRITE, &stat);

    return stat.waiting >= NGX_HTTP_XET_POST_WAITING;
}


void
ngx_http_xet_query_post_bytes(ngx_http_xet_post_t *post, const void *data,
    size_t len)
{
    u_char  *p;

    if (data == NULL) {
        ngx_http_xet_params_null(&post->params);
        return;
    }

    /* a byte more, since an empty value is not NULL */

    p = ngx_pnalloc(post->pool, len + 1);
    if (p == NULL) {
        post->failed = 1;
        return;
    }

    ngx_memcpy(p, data, len);
    ngx_http_xet_params_bytes(&post->params, p, len);
}


void
ngx_http_xet_query_post_array(ngx_http_xet_post_t *post,
    ngx_http_xet_array_t *a)
{
    int          len;
    const char  *value;

    if (a->failed) {
        post->failed = 1;
        return;
    }

    ngx_http_xet_array_value(a, &value, &len);
    ngx_http_xet_query_post_bytes(post, value, (size_t) len);
}


ngx_int_t
ngx_http_xet_query_post(ngx_http_xet_post_t *post, ngx_http_xet_stmt_e stmt)
{
    if (!post->failed
        && ngx_http_xet_lanes_send(NGX_HTTP_XET_WRITE,
                                   &ngx_http_xet_query_stmts[stmt],
                                   &post->params, ngx_http_xet_query_posted,
                                   post->pool)
           != NULL)
    {
        return NGX_OK;
    }

    ngx_destroy_pool(post->pool);

    return NGX_BUSY;
}


static void
ngx_http_xet_query_posted(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_http_xet_pg_clear(res);
    ngx_destroy_pool(data);
}


void
ngx_http_xet_query_sweep(void)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_post_create();

    if (post) {
        (void) ngx_http_xet_query_post(post, ngx_http_xet_stmt_sweep);
    }
}


/* What can't be dropped now is dropped by the sweep. */

void
ngx_http_xet_query_shard_unstage(const u_char *id)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_post_create();

    if (post) {
        ngx_http_xet_query_post_bytes(post, id, NGX_HTTP_XET_UPLOAD_LEN);
        (void) ngx_http_xet_query_post(post, ngx_http_xet_stmt_shard_unstage);
    }
}


void
ngx_http_xet_query_xorb_damaged_tell(ngx_http_xet_damage_t *damage)
{
    ngx_http_xet_post_t  *post;

    if (damage->n == 0) {
        return;
    }

    post = ngx_http_xet_query_post_create();

    if (post) {
        ngx_http_xet_query_post_array(post, &damage->xorbs);
        ngx_http_xet_query_post_array(post, &damage->tags);
        (void) ngx_http_xet_query_post(post, ngx_http_xet_stmt_xorb_damaged);
    }

    ngx_http_xet_damage_destroy(damage);
    ngx_http_xet_damage_init(damage);
}


void
ngx_http_xet_query_telemetry_put(const xet_telemetry_t *t)
{
    ngx_pool_cleanup_t   *cln;
    ngx_http_xet_post_t  *post;

    if (ngx_http_xet_telemetry_inflight || ngx_http_xet_query_post_busy()) {
        return;
    }

    post = ngx_http_xet_query_post_create();
    if (post == NULL) {
        return;
    }

    ngx_http_xet_query_post_bytes(post, t->event, t->event_len);
    ngx_http_xet_query_post_bytes(post, t->session, t->session_len);
    ngx_http_xet_query_post_bytes(post, t->agent, t->agent_len);
    ngx_http_xet_query_post_bytes(post, t->metrics, t->metrics_len);

    cln = ngx_pool_cleanup_add(post->pool, 0);

    if (cln == NULL) {
        post->failed = 1;

    } else {
        cln->handler = ngx_http_xet_query_telemetry_done;
        ngx_http_xet_telemetry_inflight = 1;
    }

    (void) ngx_http_xet_query_post(post, ngx_http_xet_stmt_telemetry_put);
}


static void
ngx_http_xet_query_telemetry_done(void *data)
{
    ngx_http_xet_telemetry_inflight = 0;
}
