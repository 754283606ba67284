
/*
 * Statements about files: their terms, their sizes, their places in repos.
 * A file is seen as the request's token allows.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_lanes.h"
#include "ngx_http_xet_query_stmt.h"


ngx_int_t
ngx_http_xet_query_terms(ngx_http_request_t *r, const xet_hash_t *file,
    uint64_t first, uint64_t last, ngx_http_xet_query_handler_pt handler)
{
    int                    lengths[4] = { XET_HASH_LEN, 8, 8, 0 };
    const char            *values[4];
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    ngx_http_xet_put_be64(&q->numbers[0], ngx_min(first, NGX_MAX_OFF_T_VALUE));
    ngx_http_xet_put_be64(&q->numbers[1], ngx_min(last, NGX_MAX_OFF_T_VALUE));

    values[0] = (const char *) file->bytes;
    values[1] = (const char *) &q->numbers[0];
    values[2] = (const char *) &q->numbers[1];

    ngx_http_xet_query_repo(r, &values[3], &lengths[3]);

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_READ,
                                   values[3] ? NGX_HTTP_XET_STMT_TERMS
                                             : NGX_HTTP_XET_STMT_TERMS_ALL,
                                   values, lengths, handler);
}


void
ngx_http_xet_query_terms_get(ngx_http_request_t *r,
    ngx_http_xet_terms_t *terms)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    terms->size = ngx_http_xet_pg_int(q->res, 0, 0);
    terms->n = ngx_http_xet_pg_rows(q->res);

    if (terms->n == 1 && ngx_http_xet_pg_null(q->res, 0, 2)) {
        terms->n = 0;
    }
}


void
ngx_http_xet_query_terms_row(ngx_http_request_t *r, ngx_uint_t i,
    uint64_t *first_offset, ngx_str_t *packed)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    *first_offset = ngx_http_xet_pg_int(q->res, i, 1);
    ngx_http_xet_pg_bytes(q->res, i, 2, packed);
}


ngx_int_t
ngx_http_xet_query_open(ngx_http_request_t *r, const xet_hash_t *file,
    uint64_t at, ngx_http_xet_query_handler_pt handler)
{
    int                    lengths[3] = { XET_HASH_LEN, 8, 0 };
    const char            *values[3];
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    ngx_http_xet_put_be64(&q->numbers[0], ngx_min(at, NGX_MAX_OFF_T_VALUE));

    values[0] = (const char *) file->bytes;
    values[1] = (const char *) &q->numbers[0];

    ngx_http_xet_query_repo(r, &values[2], &lengths[2]);

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_READ,
                                   values[2] ? NGX_HTTP_XET_STMT_OPEN
                                             : NGX_HTTP_XET_STMT_OPEN_ALL,
                                   values, lengths, handler);
}


xet_status_t
ngx_http_xet_query_open_get(ngx_http_request_t *r, ngx_int_t rc,
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

    ngx_str_null(&open->packed);

    if (!ngx_http_xet_pg_null(res, 0, 1)) {
        ngx_http_xet_pg_bytes(res, 0, 1, &sha256);

        if (sha256.len != 32) {
            return XET_DATABASE;
        }

        open->sha256 = sha256.data;
    }

    if (!ngx_http_xet_pg_null(res, 0, 3)) {
        ngx_http_xet_pg_bytes(res, 0, 3, &open->packed);
    }

    return XET_OK;
}


ngx_int_t
ngx_http_xet_query_files(ngx_http_request_t *r, ngx_http_xet_array_t *files,
    ngx_uint_t first, uint64_t at, ngx_http_xet_query_handler_pt handler)
{
    int                    lengths[4] = { 0, 8, 8, 0 };
    const char            *values[4];
    ngx_http_xet_query_t  *q;

    if (files->failed) {
        return NGX_ERROR;
    }

    q = ngx_http_xet_query_get(r);

    ngx_http_xet_put_be64(&q->numbers[0], first + 1);
    ngx_http_xet_put_be64(&q->numbers[1], at);

    ngx_http_xet_array_value(files, &values[0], &lengths[0]);

    values[1] = (const char *) &q->numbers[0];
    values[2] = (const char *) &q->numbers[1];

    ngx_http_xet_query_repo(r, &values[3], &lengths[3]);

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_READ,
                                   values[3] ? NGX_HTTP_XET_STMT_FILES
                                             : NGX_HTTP_XET_STMT_FILES_ALL,
                                   values, lengths, handler);
}


ngx_uint_t
ngx_http_xet_query_files_n(ngx_http_request_t *r)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    return q->res ? ngx_http_xet_pg_rows(q->res) : 0;
}


void
ngx_http_xet_query_files_row(ngx_http_request_t *r, ngx_uint_t i,
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
ngx_http_xet_query_prove(ngx_http_request_t *r, const xet_hash_t *file,
    const u_char *sha256, ngx_http_xet_query_handler_pt handler)
{
    int          lengths[2] = { XET_HASH_LEN, XET_DIGEST_SHA256_LEN };
    const char  *values[2];

    values[0] = (const char *) file->bytes;
    values[1] = (const char *) sha256;

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_WRITE,
                                   NGX_HTTP_XET_STMT_PROVE, values, lengths,
                                   handler);
}


ngx_int_t
ngx_http_xet_query_forget(ngx_http_request_t *r, ngx_str_t *repo,
    const xet_hash_t *file, ngx_http_xet_query_handler_pt handler)
{
    int          lengths[2];
    const char  *values[2];

    values[0] = (const char *) repo->data;
    lengths[0] = (int) repo->len;
    values[1] = (const char *) file->bytes;
    lengths[1] = XET_HASH_LEN;

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_WRITE,
                                   NGX_HTTP_XET_STMT_FORGET, values, lengths,
                                   handler);
}
