
/*
 * Statements outside of requests.  The parameters of a statement are copied
 * into a memory pool, which is destroyed when the statement is complete, or at
 * once if it can't be queued.  Some callers have a handler that gets the rows
 * (ngx_http_xet_ask_t).
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


/*
 * If this many statements are waiting, optional statements are not sent: they
 * must not occupy the sessions that uploads need while a table is locked.
 */

#define NGX_HTTP_XET_POST_WAITING  16


/* The staged data of a request that has ended. */

typedef struct {
    ngx_uint_t   hub;                          /* 1: operations of a commit */
    u_char       id[NGX_HTTP_XET_UPLOAD_LEN];
} ngx_http_xet_staged_t;


static void ngx_http_xet_query_answered(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static void ngx_http_xet_query_alive_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static ngx_uint_t ngx_http_xet_query_left(ngx_http_xet_query_t *q);
static void ngx_http_xet_query_unstage(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static void ngx_http_xet_query_lost(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);


/* The handler of ngx_http_xet_query_alive(), for all pings in flight. */

static void  (*ngx_http_xet_query_alive_handler)(ngx_int_t rc);


ngx_uint_t
ngx_http_xet_query_post_busy(void)
{
    ngx_http_xet_pg_pool_stat_t  stat;

    ngx_http_xet_pg_pools_stat(NGX_HTTP_XET_WRITE, &stat);

    return stat.waiting >= NGX_HTTP_XET_POST_WAITING;
}


ngx_http_xet_pg_query_t *
ngx_http_xet_ask_query(ngx_http_xet_stmt_e stmt, const void *args,
    ngx_http_xet_asked_pt handler, void *data)
{
    ngx_pool_t               *pool;
    ngx_http_xet_ask_t       *ask;
    ngx_http_xet_pg_query_t  *q;

    pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    q = NULL;

    ask = ngx_pcalloc(pool, sizeof(ngx_http_xet_ask_t));

    if (ask
        && ngx_http_xet_statement_pack(&stmt, args, &ask->params, NULL, pool)
           == NGX_OK)
    {
        ask->pool = pool;
        ask->handler = handler;
        ask->data = data;

        q = ngx_http_xet_pg_pools_send(NGX_HTTP_XET_WRITE,
                                    &ngx_http_xet_query_stmts[stmt],
                                    &ask->params, ngx_http_xet_query_answered,
                                    ask);
    }

    if (q == NULL) {
        ngx_destroy_pool(pool);
    }

    return q;
}


ngx_int_t
ngx_http_xet_ask_statement(ngx_http_xet_stmt_e stmt, const void *args,
    ngx_http_xet_asked_pt handler, void *data)
{
    return ngx_http_xet_ask_query(stmt, args, handler, data) ? NGX_AGAIN
                                                             : NGX_BUSY;
}


static void
ngx_http_xet_query_answered(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_http_xet_ask_t *ask = data;

    ask->res = res;

    if (sqlstate) {
        ngx_cpystrn(ask->sqlstate, (u_char *) sqlstate, sizeof(ask->sqlstate));
    }

    if (rc == NGX_OK && ngx_http_xet_pg_rows(res) == 0) {
        rc = NGX_DECLINED;
    }

    if (ask->handler) {
        ask->handler(ask->data, ask, rc);
    }

    ngx_http_xet_pg_clear(ask->res);
    ngx_destroy_pool(ask->pool);
}


int64_t
ngx_http_xet_ask_number(ngx_http_xet_ask_t *ask)
{
    return ngx_http_xet_pg_int(ask->res, 0, 0);
}


ngx_int_t
ngx_http_xet_query_write_probe(ngx_http_xet_asked_pt handler, void *data)
{
    ngx_http_xet_pg_query_t  *q;

    q = ngx_http_xet_ask_query(ngx_http_xet_stmt_write_probe, NULL, handler,
                               data);
    if (q == NULL) {
        return NGX_BUSY;
    }

    /* an exiting worker need not wait for this statement */

    ngx_http_xet_pg_pools_spare(q, 1);

    return NGX_AGAIN;
}


ngx_int_t
ngx_http_xet_query_alive(void (*handler)(ngx_int_t rc))
{
    ngx_http_xet_query_alive_handler = handler;

    return ngx_http_xet_pg_pools_send(NGX_HTTP_XET_PING,
                           &ngx_http_xet_query_stmts[ngx_http_xet_stmt_ping],
                           NULL, ngx_http_xet_query_alive_done, NULL)
           ? NGX_AGAIN : NGX_BUSY;
}


static void
ngx_http_xet_query_alive_done(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_http_xet_pg_clear(res);

    ngx_http_xet_query_alive_handler(rc);
}


ngx_int_t
ngx_http_xet_query_leave(ngx_http_request_t *r, ngx_int_t rc,
    const u_char *upload, ngx_uint_t hub)
{
    ngx_http_xet_query_t  *q;

    if (rc == NGX_AGAIN && upload) {
        q = ngx_http_xet_ctx_of(r)->query;

        q->upload = upload;
        q->hub = (hub != 0);
        q->left = ngx_http_xet_query_left;
    }

    return rc;
}


/*
 * Called when the request ends.  A batch that is being staged can be dropped
 * only after its statement is complete.  If the batch can't be dropped, the
 * "sweep" statement drops it later.
 */

static ngx_uint_t
ngx_http_xet_query_left(ngx_http_xet_query_t *q)
{
    ngx_http_xet_staged_t  *staged;

    staged = ngx_alloc(sizeof(ngx_http_xet_staged_t), ngx_cycle->log);
    if (staged == NULL) {
        return 0;
    }

    ngx_memcpy(staged->id, q->upload, NGX_HTTP_XET_UPLOAD_LEN);
    staged->hub = q->hub;

    if (ngx_http_xet_pg_pools_bequeath(q->query, ngx_http_xet_query_unstage,
                                       staged)
           != NGX_OK)
    {
        ngx_free(staged);
        return 0;
    }

    return 1;
}


static void
ngx_http_xet_query_unstage(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_http_xet_staged_t *staged = data;

    ngx_http_xet_pg_clear(res);

    if (staged->hub) {
        (void) ngx_http_xet_post(hub_unstage, .upload = staged->id);

    } else {
        (void) ngx_http_xet_post(shard_unstage, .upload = staged->id);
    }

    ngx_free(staged);
}


void
ngx_http_xet_query_xorb_damaged_tell(ngx_http_xet_damage_t *damage)
{
    if (damage->xorbs.n) {
        (void) ngx_http_xet_ask(copies_lost, ngx_http_xet_query_lost,
                                (void *) (uintptr_t) damage->log,
                                .xorbs = &damage->xorbs,
                                .copy_ids = &damage->copy_ids);
    }

    ngx_http_xet_damage_destroy(damage);
}


static void
ngx_http_xet_query_lost(void *data, ngx_http_xet_ask_t *ask, ngx_int_t rc)
{
    if (data && rc == NGX_OK) {
        (void) ngx_http_xet_damage_lost(ask->res, 1, ngx_cycle->log);
    }
}
