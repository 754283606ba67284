
/*
 * Helpers for the statements that read the terms of files.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


void
ngx_http_xet_query_file_terms_get(ngx_http_request_t *r,
    ngx_http_xet_terms_t *terms)
{
    PGresult                       *res;
    ngx_http_xet_file_terms_row_t   row;

    res = ngx_http_xet_ctx_of(r)->query->res;

    (void) ngx_http_xet_row_file_terms(res, 0, &row);

    terms->size = row.size;
    terms->n = row.packed.data ? ngx_http_xet_pg_rows(res) : 0;
}


ngx_int_t
ngx_http_xet_query_files_terms(ngx_http_request_t *r,
    ngx_http_xet_array_t *files, ngx_uint_t first, uint64_t at,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_ctx_of(r)->query;

    q->files = files->n;
    q->first = first;

    return ngx_http_xet_query(r, files_terms, handler, .files = files,
                              .first_file = first + 1, .first_byte = at);
}
