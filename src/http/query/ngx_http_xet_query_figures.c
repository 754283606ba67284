
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
    ngx_http_xet_figures_pt       figures;
    ngx_http_xet_repo_sizes_pt    repos;
    uint64_t                      ticket;
} ngx_http_xet_figures_ask_t;


typedef struct {
    void                     (*handler)(ngx_int_t rc);
} ngx_http_xet_alive_t;


static ngx_http_xet_figures_ask_t *ngx_http_xet_query_figures_ask(
    uint64_t ticket);
static ngx_int_t ngx_http_xet_query_figures_asked(
    ngx_http_xet_figures_ask_t *figures, ngx_int_t rc);
static void ngx_http_xet_query_figures_done(void *data,
    ngx_http_xet_ask_t *ask, ngx_int_t rc);
static void ngx_http_xet_query_repo_sizes_done(void *data,
    ngx_http_xet_ask_t *ask, ngx_int_t rc);
static void ngx_http_xet_query_alive_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);


ngx_int_t
ngx_http_xet_query_figures(uint64_t after_file, uint64_t after_xorb,
    uint64_t ticket, ngx_http_xet_figures_pt handler)
{
    ngx_http_xet_figures_ask_t  *figures;

    figures = ngx_http_xet_query_figures_ask(ticket);
    if (figures == NULL) {
        return NGX_BUSY;
    }

    figures->figures = handler;

    return ngx_http_xet_query_figures_asked(figures,
               ngx_http_xet_ask(figures, ngx_http_xet_query_figures_done,
                                figures, .after_file = after_file,
                                .after_xorb = after_xorb,
                                .part = NGX_HTTP_XET_FIGURES_PART));
}


ngx_int_t
ngx_http_xet_query_repo_sizes(uint64_t after_repo, uint64_t after_file,
    uint64_t ticket, ngx_http_xet_repo_sizes_pt handler)
{
    ngx_http_xet_figures_ask_t  *figures;

    figures = ngx_http_xet_query_figures_ask(ticket);
    if (figures == NULL) {
        return NGX_BUSY;
    }

    figures->repos = handler;

    return ngx_http_xet_query_figures_asked(figures,
               ngx_http_xet_ask(repo_figures,
                                ngx_http_xet_query_repo_sizes_done, figures,
                                .after_repo = after_repo,
                                .after_file = after_file,
                                .part = NGX_HTTP_XET_PLACES_PART));
}


/* NULL without memory, or where others wait already. */

static ngx_http_xet_figures_ask_t *
ngx_http_xet_query_figures_ask(uint64_t ticket)
{
    ngx_http_xet_figures_ask_t  *figures;

    if (ngx_http_xet_query_post_busy()) {
        return NULL;
    }

    figures = ngx_calloc(sizeof(ngx_http_xet_figures_ask_t), ngx_cycle->log);

    if (figures) {
        figures->ticket = ticket;
    }

    return figures;
}


static ngx_int_t
ngx_http_xet_query_figures_asked(ngx_http_xet_figures_ask_t *figures,
    ngx_int_t rc)
{
    if (rc != NGX_AGAIN) {
        ngx_free(figures);
    }

    return rc;
}


static void
ngx_http_xet_query_figures_done(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc)
{
    ngx_http_xet_figures_ask_t *figures = data;

    ngx_http_xet_figures_t  f;

    ngx_memzero(&f, sizeof(ngx_http_xet_figures_t));

    if (rc == NGX_OK) {
        (void) ngx_http_xet_row_figures(ask->res, 0, &f);
    }

    figures->figures(figures->ticket, rc, &f);

    ngx_free(figures);
}


static void
ngx_http_xet_query_repo_sizes_done(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc)
{
    ngx_http_xet_figures_ask_t *figures = data;

    ngx_uint_t                       i, n, more;
    ngx_http_xet_repo_size_t        *repos, *repo;
    ngx_http_xet_repo_figures_row_t  row;

    n = 0;
    more = 0;

    repos = ngx_pcalloc(ask->pool, NGX_HTTP_XET_REPO_ROWS
                                   * sizeof(ngx_http_xet_repo_size_t));

    if (rc == NGX_DECLINED) {
        rc = NGX_OK;                           /* there are none */

    } else if (rc == NGX_OK && repos == NULL) {
        rc = NGX_ERROR;

    } else if (rc == NGX_OK) {
        n = ngx_min(ngx_http_xet_ask_rows(ask), NGX_HTTP_XET_REPO_ROWS);
    }

    for (i = 0; i < n; i++) {
        repo = &repos[i];

        (void) ngx_http_xet_row_repo_figures(ask->res, i, &row);

        repo->id = row.repo;
        repo->files = row.files;
        repo->bytes = row.bytes;
        repo->last_file = row.last_file;
        more = row.more;

        repo->len = ngx_min(row.name.len, NGX_HTTP_XET_REPO_NAME);
        ngx_memcpy(repo->name, row.name.data, repo->len);
    }

    figures->repos(figures->ticket, rc, repos, n, more);

    ngx_free(figures);
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
