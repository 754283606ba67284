
/*
 * Statements of a Hub's pages: repos, what is in them, branches and tags, as
 * rows and not as the JSON of ngx_http_xet_query_hub.c.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


static int64_t ngx_http_xet_query_page_known(PGresult *res, ngx_uint_t row,
    ngx_uint_t column);
static ngx_int_t ngx_http_xet_query_page_copy(ngx_http_request_t *r,
    PGresult *res, ngx_uint_t column, ngx_str_t *text);


ngx_int_t
ngx_http_xet_query_page_list(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *after,
    ngx_uint_t most, ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_query_hub_text(p, after);
    ngx_http_xet_params_int4(p, most);

    return ngx_http_xet_query_named(r, ngx_http_xet_stmt_hub_page_list,
                                    ngx_http_xet_query_whole_any, handler);
}


void
ngx_http_xet_query_page_list_row(ngx_http_request_t *r, ngx_uint_t i,
    ngx_http_xet_hub_listed_t *listed)
{
    PGresult  *res;

    res = ngx_http_xet_query_get(r)->res;

    listed->kind = ngx_http_xet_pg_int(res, i, 0) & (XET_HUB_KINDS - 1);
    listed->private = ngx_http_xet_pg_int(res, i, 2);
    listed->changed = ngx_http_xet_pg_int(res, i, 3);
    listed->id = ngx_http_xet_pg_int(res, i, 4);
    listed->files = ngx_http_xet_query_page_known(res, i, 5);
    listed->bytes = ngx_http_xet_query_page_known(res, i, 6);

    ngx_http_xet_query_hub_column(res, i, 1, &listed->repo);
}


static int64_t
ngx_http_xet_query_page_known(PGresult *res, ngx_uint_t row, ngx_uint_t column)
{
    return ngx_http_xet_pg_null(res, row, column)
           ? -1 : ngx_http_xet_pg_int(res, row, column);
}


ngx_int_t
ngx_http_xet_query_page_repo(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rev,
    const ngx_str_t *path, ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_bytes(p, rev->data, rev->len);
    ngx_http_xet_params_bytes(p, path->data, path->len);

    return ngx_http_xet_query_named(r, ngx_http_xet_stmt_hub_page_repo,
                                    ngx_http_xet_query_hub_found, handler);
}


ngx_int_t
ngx_http_xet_query_page_repo_get(ngx_http_request_t *r,
    ngx_http_xet_hub_view_t *view)
{
    PGresult   *res;
    ngx_str_t   hash;

    ngx_http_xet_query_hub_get(r, &view->answer);

    if (view->answer.status != NGX_HTTP_OK) {
        return NGX_OK;
    }

    res = ngx_http_xet_query_get(r)->res;

    if (ngx_http_xet_query_page_copy(r, res, 4, &view->repo) != NGX_OK
        || ngx_http_xet_query_page_copy(r, res, 5, &view->rev) != NGX_OK
        || ngx_http_xet_query_page_copy(r, res, 6, &view->path) != NGX_OK
        || ngx_http_xet_query_page_copy(r, res, 8, &view->oid) != NGX_OK
        || ngx_http_xet_query_page_copy(r, res, 10, &view->title) != NGX_OK
        || ngx_http_xet_query_page_copy(r, res, 11, &view->who) != NGX_OK
        || ngx_http_xet_query_page_copy(r, res, 15, &view->readme) != NGX_OK
        || ngx_http_xet_query_page_copy(r, res, 18, &view->store) != NGX_OK)
    {
        return NGX_ERROR;
    }

    view->private = ngx_http_xet_pg_int(res, 0, 7);
    view->made_at = ngx_http_xet_pg_int(res, 0, 9);
    view->files = ngx_http_xet_query_page_known(res, 0, 12);
    view->bytes = ngx_http_xet_query_page_known(res, 0, 13);
    view->folder = ngx_http_xet_pg_int(res, 0, 14);

    if (view->readme.data == NULL) {
        return NGX_OK;
    }

    ngx_http_xet_query_hub_column(res, 0, 16, &hash);

    if (hash.len != XET_HASH_LEN) {
        return NGX_ERROR;
    }

    ngx_memcpy(view->hash.bytes, hash.data, XET_HASH_LEN);
    view->size = ngx_http_xet_pg_int(res, 0, 17);

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_query_page_copy(ngx_http_request_t *r, PGresult *res,
    ngx_uint_t column, ngx_str_t *text)
{
    ngx_str_t  row;

    ngx_http_xet_query_hub_column(res, 0, column, &row);

    if (row.data == NULL) {
        ngx_str_null(text);
        return NGX_OK;
    }

    text->len = row.len;
    text->data = ngx_pnalloc(r->pool, row.len + 1);

    if (text->data == NULL) {
        return NGX_ERROR;
    }

    *ngx_cpymem(text->data, row.data, row.len) = '\0';

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_query_page_tree(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rev,
    const ngx_str_t *path, const ngx_str_t *after, ngx_uint_t most,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_bytes(p, rev->data, rev->len);
    ngx_http_xet_params_bytes(p, path->data, path->len);
    ngx_http_xet_query_hub_text(p, after);
    ngx_http_xet_params_int4(p, most);

    return ngx_http_xet_query_named(r, ngx_http_xet_stmt_hub_page_tree,
                                    ngx_http_xet_query_whole_any, handler);
}


void
ngx_http_xet_query_page_tree_row(ngx_http_request_t *r, ngx_uint_t i,
    ngx_http_xet_hub_listing_t *entry)
{
    PGresult  *res;

    res = ngx_http_xet_query_get(r)->res;

    ngx_http_xet_query_hub_column(res, i, 0, &entry->path);
    ngx_http_xet_query_hub_column(res, i, 4, &entry->title);

    entry->folder = ngx_http_xet_pg_int(res, i, 1);
    entry->size = ngx_http_xet_pg_int(res, i, 2);
    entry->at = ngx_http_xet_pg_int(res, i, 3);
}


ngx_int_t
ngx_http_xet_query_page_refs(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, ngx_uint_t most,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_int4(p, most);

    return ngx_http_xet_query_named(r, ngx_http_xet_stmt_hub_page_refs,
                                    ngx_http_xet_query_whole_any, handler);
}


void
ngx_http_xet_query_page_refs_row(ngx_http_request_t *r, ngx_uint_t i,
    ngx_str_t *ref)
{
    ngx_http_xet_query_hub_column(ngx_http_xet_query_get(r)->res, i, 0, ref);
}
