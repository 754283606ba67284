
/*
 * What is told of the whole store, and whether PostgreSQL is there, for
 * metrics.  No request waits for it.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


/* Rows, which take some 50 ms. */
#define NGX_HTTP_XET_FIGURES_PART  50000
#define NGX_HTTP_XET_PLACES_PART   20000


typedef struct {
    ngx_http_xet_post_t          *post;
    ngx_http_xet_figures_pt       figures;
    ngx_http_xet_repo_sizes_pt    repos;
    uint64_t                      ticket;
} ngx_http_xet_figures_ask_t;


typedef struct {
    void                     (*handler)(ngx_int_t rc);
} ngx_http_xet_alive_t;


static ngx_http_xet_figures_ask_t *ngx_http_xet_query_figures_ask(
    uint64_t one, uint64_t two, uint32_t part, uint64_t ticket);
static ngx_int_t ngx_http_xet_query_figures_send(
    ngx_http_xet_figures_ask_t *ask, ngx_http_xet_stmt_e stmt,
    ngx_http_xet_pg_handler_pt handler);
static void ngx_http_xet_query_figures_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static uint64_t ngx_http_xet_query_figure(PGresult *res, ngx_uint_t column);
static void ngx_http_xet_query_repo_sizes_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static void ngx_http_xet_query_alive_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);


ngx_int_t
ngx_http_xet_query_figures(uint64_t after_file, uint64_t after_xorb,
    uint64_t ticket, ngx_http_xet_figures_pt handler)
{
    ngx_http_xet_figures_ask_t  *ask;

    ask = ngx_http_xet_query_figures_ask(after_file, after_xorb,
                                         NGX_HTTP_XET_FIGURES_PART, ticket);
    if (ask == NULL) {
        return NGX_BUSY;
    }

    ask->figures = handler;

    return ngx_http_xet_query_figures_send(ask, ngx_http_xet_stmt_figures,
                                           ngx_http_xet_query_figures_done);
}


ngx_int_t
ngx_http_xet_query_repo_sizes(uint64_t after_repo, uint64_t after_file,
    uint64_t ticket, ngx_http_xet_repo_sizes_pt handler)
{
    ngx_http_xet_figures_ask_t  *ask;

    ask = ngx_http_xet_query_figures_ask(after_repo, after_file,
                                         NGX_HTTP_XET_PLACES_PART, ticket);
    if (ask == NULL) {
        return NGX_BUSY;
    }

    ask->repos = handler;

    return ngx_http_xet_query_figures_send(ask, ngx_http_xet_stmt_repo_figures,
                                           ngx_http_xet_query_repo_sizes_done);
}


/* NULL without memory, or where others wait already. */

static ngx_http_xet_figures_ask_t *
ngx_http_xet_query_figures_ask(uint64_t one, uint64_t two, uint32_t part,
    uint64_t ticket)
{
    ngx_http_xet_post_t         *post;
    ngx_http_xet_figures_ask_t  *ask;

    if (ngx_http_xet_query_post_busy()) {
        return NULL;
    }

    post = ngx_http_xet_query_post_create();
    if (post == NULL) {
        return NULL;
    }

    ask = ngx_pcalloc(post->pool, sizeof(ngx_http_xet_figures_ask_t));

    if (ask == NULL) {
        ngx_destroy_pool(post->pool);
        return NULL;
    }

    ask->post = post;
    ask->ticket = ticket;

    ngx_http_xet_params_int8(&post->params, one);
    ngx_http_xet_params_int8(&post->params, two);
    ngx_http_xet_params_int4(&post->params, part);

    return ask;
}


static ngx_int_t
ngx_http_xet_query_figures_send(ngx_http_xet_figures_ask_t *ask,
    ngx_http_xet_stmt_e stmt, ngx_http_xet_pg_handler_pt handler)
{
    if (ngx_http_xet_lanes_send(NGX_HTTP_XET_WRITE,
                                &ngx_http_xet_query_stmts[stmt],
                                &ask->post->params, handler, ask)
        != NULL)
    {
        return NGX_AGAIN;
    }

    ngx_destroy_pool(ask->post->pool);

    return NGX_BUSY;
}


static void
ngx_http_xet_query_figures_done(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_http_xet_figures_ask_t *ask = data;

    ngx_http_xet_figures_t  f;

    ngx_memzero(&f, sizeof(ngx_http_xet_figures_t));

    if (rc == NGX_OK) {
        f.files = (uint64_t) ngx_http_xet_pg_int(res, 0, 0);
        f.file_bytes = (uint64_t) ngx_http_xet_pg_int(res, 0, 1);
        f.last_file = (uint64_t) ngx_http_xet_pg_int(res, 0, 2);
        f.xorbs = (uint64_t) ngx_http_xet_pg_int(res, 0, 3);
        f.raw = (uint64_t) ngx_http_xet_pg_int(res, 0, 4);
        f.stored = (uint64_t) ngx_http_xet_pg_int(res, 0, 5);
        f.last_xorb = (uint64_t) ngx_http_xet_pg_int(res, 0, 6);
        f.damaged = (uint64_t) ngx_http_xet_pg_int(res, 0, 7);
        f.repos = (uint64_t) ngx_http_xet_pg_int(res, 0, 8);
        f.waiting = (uint64_t) ngx_http_xet_pg_int(res, 0, 9);

        f.gc_at = ngx_http_xet_query_figure(res, 10);
        f.gc_xorbs = ngx_http_xet_query_figure(res, 11);
        f.gc_bytes = ngx_http_xet_query_figure(res, 12);
        f.scrub_at = ngx_http_xet_query_figure(res, 13);
        f.scrub_bytes = ngx_http_xet_query_figure(res, 14);
        f.scrub_damaged = ngx_http_xet_query_figure(res, 15);
        f.healed = ngx_http_xet_query_figure(res, 16);
        f.orphans = ngx_http_xet_query_figure(res, 17);
        f.gc_orphans = ngx_http_xet_query_figure(res, 18);
        f.gc_orphan_bytes = ngx_http_xet_query_figure(res, 19);

        f.names = (uint64_t) ngx_http_xet_pg_int(res, 0, 20);
        f.metadata = (uint64_t) ngx_http_xet_pg_int(res, 0, 21);
        f.staged = (uint64_t) ngx_http_xet_pg_int(res, 0, 22);
    }

    ngx_http_xet_pg_clear(res);

    ask->figures(ask->ticket, rc, &f);

    ngx_destroy_pool(ask->post->pool);
}


static uint64_t
ngx_http_xet_query_figure(PGresult *res, ngx_uint_t column)
{
    return ngx_http_xet_pg_null(res, 0, column)
           ? NGX_HTTP_XET_NO_FIGURE
           : (uint64_t) ngx_http_xet_pg_int(res, 0, column);
}


static void
ngx_http_xet_query_repo_sizes_done(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_http_xet_figures_ask_t *ask = data;

    ngx_str_t                  name;
    ngx_uint_t                 i, n, more;
    ngx_http_xet_repo_size_t  *repos, *repo;

    n = 0;
    more = 0;

    repos = ngx_pcalloc(ask->post->pool,
                        NGX_HTTP_XET_REPO_ROWS
                        * sizeof(ngx_http_xet_repo_size_t));

    if (rc == NGX_OK && repos == NULL) {
        rc = NGX_ERROR;
    }

    if (rc == NGX_OK) {
        n = ngx_min(ngx_http_xet_pg_rows(res), NGX_HTTP_XET_REPO_ROWS);

        for (i = 0; i < n; i++) {
            repo = &repos[i];

            repo->id = (uint64_t) ngx_http_xet_pg_int(res, i, 0);
            repo->files = (uint64_t) ngx_http_xet_pg_int(res, i, 2);
            repo->bytes = (uint64_t) ngx_http_xet_pg_int(res, i, 3);
            repo->last_file = (uint64_t) ngx_http_xet_pg_int(res, i, 4);
            more = (ngx_http_xet_pg_int(res, i, 5) != 0);

            ngx_http_xet_pg_bytes(res, i, 1, &name);

            repo->len = ngx_min(name.len, NGX_HTTP_XET_REPO_NAME);
            ngx_memcpy(repo->name, name.data, repo->len);
        }
    }

    ngx_http_xet_pg_clear(res);

    ask->repos(ask->ticket, rc, repos, n, more);

    ngx_destroy_pool(ask->post->pool);
}


ngx_int_t
ngx_http_xet_query_alive(void (*handler)(ngx_int_t rc))
{
    static ngx_http_xet_alive_t  alive;

    /* the answers of two questions at a time go to one handler */

    alive.handler = handler;

    return ngx_http_xet_lanes_send(NGX_HTTP_XET_PING,
                           &ngx_http_xet_query_stmts[ngx_http_xet_stmt_ping],
                           NULL, ngx_http_xet_query_alive_done, &alive)
           ? NGX_AGAIN : NGX_BUSY;
}


static void
ngx_http_xet_query_alive_done(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_http_xet_alive_t *alive = data;

    ngx_http_xet_pg_clear(res);

    alive->handler(rc);
}
