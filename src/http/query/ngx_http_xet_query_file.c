
/*
 * Statements about files: their terms, their sizes, their places in repos.
 * A file is seen as the request's token allows.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


static ngx_int_t ngx_http_xet_query_seen(ngx_http_request_t *r,
    ngx_http_xet_params_t *p, ngx_http_xet_stmt_e stmt,
    ngx_http_xet_stmt_e all, ngx_http_xet_query_whole_pt whole,
    ngx_http_xet_query_handler_pt handler);
static ngx_uint_t ngx_http_xet_query_files_whole(ngx_http_xet_query_t *q,
    PGresult *res);


/*
 * Sends a statement for the files of the request's repo, or where the request
 * sees all of the store, the statement that looks at no repo.
 */

static ngx_int_t
ngx_http_xet_query_seen(ngx_http_request_t *r, ngx_http_xet_params_t *p,
    ngx_http_xet_stmt_e stmt, ngx_http_xet_stmt_e all,
    ngx_http_xet_query_whole_pt whole, ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_repo_t  repo;

    ngx_http_xet_repo(r, &repo);

    if (repo.any) {
        return ngx_http_xet_query_read(r, NGX_HTTP_XET_READ, all, whole,
                                       handler);
    }

    ngx_http_xet_params_bool(p, 0);
    ngx_http_xet_params_bytes(p, repo.name.data, repo.name.len);

    return ngx_http_xet_query_read(r, NGX_HTTP_XET_READ, stmt, whole, handler);
}


ngx_int_t
ngx_http_xet_query_file_terms(ngx_http_request_t *r, const xet_hash_t *file,
    uint64_t first, uint64_t last, ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, file->bytes, XET_HASH_LEN);
    ngx_http_xet_params_int8(p, ngx_min(first, NGX_MAX_OFF_T_VALUE));
    ngx_http_xet_params_int8(p, ngx_min(last, NGX_MAX_OFF_T_VALUE));

    return ngx_http_xet_query_seen(r, p, ngx_http_xet_stmt_file_terms,
                                   ngx_http_xet_stmt_file_terms_all,
                                   ngx_http_xet_query_whole_any, handler);
}


void
ngx_http_xet_query_file_terms_get(ngx_http_request_t *r,
    ngx_http_xet_terms_t *terms)
{
    PGresult  *res;

    res = ngx_http_xet_query_get(r)->res;

    terms->size = ngx_http_xet_pg_int(res, 0, 0);
    terms->n = ngx_http_xet_pg_rows(res);

    if (terms->n == 1 && ngx_http_xet_pg_null(res, 0, 2)) {
        terms->n = 0;
    }
}


void
ngx_http_xet_query_file_terms_row(ngx_http_request_t *r, ngx_uint_t i,
    uint64_t *first_offset, ngx_str_t *packed)
{
    PGresult  *res;

    res = ngx_http_xet_query_get(r)->res;

    *first_offset = ngx_http_xet_pg_int(res, i, 1);
    ngx_http_xet_pg_bytes(res, i, 2, packed);
}


ngx_int_t
ngx_http_xet_query_file_open(ngx_http_request_t *r, const xet_hash_t *file,
    uint64_t at, ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, file->bytes, XET_HASH_LEN);
    ngx_http_xet_params_int8(p, ngx_min(at, NGX_MAX_OFF_T_VALUE));

    return ngx_http_xet_query_seen(r, p, ngx_http_xet_stmt_file_open,
                                   ngx_http_xet_stmt_file_open_all,
                                   ngx_http_xet_query_whole_any, handler);
}


xet_status_t
ngx_http_xet_query_file_open_get(ngx_http_request_t *r, ngx_int_t rc,
    ngx_http_xet_open_t *open)
{
    PGresult   *res;
    ngx_str_t   sha256;

    if (rc != NGX_OK) {
        return ngx_http_xet_query_status(rc, XET_NO_FILE);
    }

    res = ngx_http_xet_query_get(r)->res;

    open->size = ngx_http_xet_pg_int(res, 0, 0);
    open->sha256 = NULL;
    open->first_offset = ngx_http_xet_pg_int(res, 0, 2);

    if (!ngx_http_xet_pg_null(res, 0, 1)) {
        ngx_http_xet_pg_bytes(res, 0, 1, &sha256);

        if (sha256.len != 32) {
            return XET_DATABASE;
        }

        open->sha256 = sha256.data;
    }

    /* NULL, of an empty file, has no bytes */

    ngx_http_xet_pg_bytes(res, 0, 3, &open->packed);

    return XET_OK;
}


ngx_int_t
ngx_http_xet_query_files_terms(ngx_http_request_t *r,
    ngx_http_xet_array_t *files, ngx_uint_t first, uint64_t at,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_query_t   *q;
    ngx_http_xet_params_t  *p;

    if (files->failed) {
        return NGX_ERROR;
    }

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_array(p, files);
    ngx_http_xet_params_int8(p, first + 1);
    ngx_http_xet_params_int8(p, at);

    q = ngx_http_xet_query_get(r);

    q->files = files->n;
    q->first = first;

    return ngx_http_xet_query_seen(r, p, ngx_http_xet_stmt_files_terms,
                                   ngx_http_xet_stmt_files_terms_all,
                                   ngx_http_xet_query_files_whole, handler);
}


/* Each file has a row, up to the last one or as far as the window reaches. */

static ngx_uint_t
ngx_http_xet_query_files_whole(ngx_http_xet_query_t *q, PGresult *res)
{
    int64_t    n, last;
    ngx_int_t  i, rows;

    rows = ngx_http_xet_pg_rows(res);
    last = (int64_t) q->first;

    for (i = 0; i < rows; i++) {
        n = ngx_http_xet_pg_int(res, i, 0);

        if (n > last + 1) {
            return 0;
        }

        last = n;
    }

    return rows == NGX_HTTP_XET_TERMS_ROWS || last == (int64_t) q->files;
}


void
ngx_http_xet_query_files_terms_row(ngx_http_request_t *r, ngx_uint_t i,
    ngx_http_xet_file_row_t *row)
{
    PGresult  *res;

    res = ngx_http_xet_query_get(r)->res;

    row->file = ngx_http_xet_pg_int(res, i, 0) - 1;
    row->size = ngx_http_xet_pg_int(res, i, 1);
    row->first_offset = ngx_http_xet_pg_int(res, i, 2);

    ngx_http_xet_pg_bytes(res, i, 3, &row->packed);
}


ngx_int_t
ngx_http_xet_query_files_prove(ngx_http_request_t *r,
    ngx_http_xet_array_t *files, ngx_http_xet_array_t *sha256,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    if (files->failed || sha256->failed) {
        return NGX_ERROR;
    }

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_array(p, files);
    ngx_http_xet_params_array(p, sha256);

    return ngx_http_xet_send_files_prove(r, NGX_HTTP_XET_WRITE, handler);
}


ngx_int_t
ngx_http_xet_query_repo_forget(ngx_http_request_t *r, ngx_str_t *repo,
    const xet_hash_t *file, ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, repo->data, repo->len);
    ngx_http_xet_params_bytes(p, file->bytes, XET_HASH_LEN);

    if (ngx_http_xet_query_act(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_send_repo_forget(r, NGX_HTTP_XET_WRITE, handler);
}


ngx_int_t
ngx_http_xet_query_file_delete(ngx_http_request_t *r, const xet_hash_t *file,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, file->bytes, XET_HASH_LEN);

    if (ngx_http_xet_query_act(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_send_file_delete(r, NGX_HTTP_XET_WRITE, handler);
}


ngx_int_t
ngx_http_xet_query_repo_delete(ngx_http_request_t *r, ngx_str_t *repo,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, repo->data, repo->len);

    if (ngx_http_xet_query_act(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_send_repo_delete(r, NGX_HTTP_XET_WRITE, handler);
}
