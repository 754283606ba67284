
/*
 * Statements about chunks: what a dedup query is answered with, and the day
 * on which that was.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


ngx_int_t
ngx_http_xet_query_chunk_find(ngx_http_request_t *r, const xet_hash_t *chunk,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, chunk->bytes, XET_HASH_LEN);
    ngx_http_xet_params_bool(p, ngx_http_xet_dedup_wide(r));

    if (ngx_http_xet_query_whose(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_send_chunk_find(r, NGX_HTTP_XET_DEDUP, handler);
}


ngx_int_t
ngx_http_xet_query_chunk_find_rc(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    if (rc == NGX_BUSY
        && ngx_strcmp(q->sqlstate, NGX_HTTP_XET_PG_CANCELLED) == 0)
    {
        return NGX_DECLINED;
    }

    return rc;
}


ngx_uint_t
ngx_http_xet_query_chunk_find_n(ngx_http_xet_query_t *q)
{
    return ngx_http_xet_pg_rows(q->res);
}


void
ngx_http_xet_query_chunk_find_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_xorb_list_t *xorb, ngx_uint_t *noted)
{
    ngx_str_t  hash, hashes, raw, seen;

    ngx_memzero(xorb, sizeof(xet_xorb_list_t));

    ngx_http_xet_pg_bytes(q->res, i, 0, &hash);
    ngx_http_xet_pg_bytes(q->res, i, 4, &hashes);
    ngx_http_xet_pg_bytes(q->res, i, 5, &raw);

    *noted = ngx_http_xet_pg_int(q->res, i, 6) != 0;

    if (hash.len != XET_HASH_LEN
        || hashes.len / XET_HASH_LEN != raw.len / 4)
    {
        return;
    }

    ngx_memcpy(xorb->hash.bytes, hash.data, XET_HASH_LEN);

    xorb->chunk_count = (uint32_t) (raw.len / 4);
    xorb->raw_size = (uint32_t) ngx_http_xet_pg_int(q->res, i, 2);
    xorb->stored_size = (uint32_t) ngx_http_xet_pg_int(q->res, i, 3);
    xorb->tag = (uint32_t) ngx_http_xet_pg_int(q->res, i, 7);
    xorb->hashes = hashes.data;
    xorb->raw_ends = raw.data;

    if (!ngx_http_xet_pg_null(q->res, i, 8)) {
        ngx_http_xet_pg_bytes(q->res, i, 8, &seen);

        xorb->seen = seen.data;
        xorb->seen_n = (uint32_t) (seen.len / XET_SEEN_LEN);
    }
}


ngx_int_t
ngx_http_xet_query_chunk_find_xorbs(ngx_http_xet_query_t *q,
    ngx_http_xet_array_t *xorbs)
{
    ngx_uint_t       i, n, noted, all;
    xet_xorb_list_t  xorb;

    n = ngx_http_xet_query_chunk_find_n(q);
    all = 1;

    for (i = 0; i < n; i++) {
        ngx_http_xet_query_chunk_find_row(q, i, &xorb, &noted);

        if (xorb.chunk_count == 0) {
            return NGX_ERROR;
        }

        ngx_http_xet_array_bytes(xorbs, xorb.hash.bytes, XET_HASH_LEN);
        all &= noted;
    }

    return all ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_http_xet_query_xorb_advertised(ngx_http_request_t *r,
    ngx_http_xet_array_t *xorbs, ngx_http_xet_query_handler_pt handler)
{
    if (xorbs->failed) {
        return NGX_ERROR;
    }

    ngx_http_xet_params_array(ngx_http_xet_query_params(r), xorbs);

    return ngx_http_xet_send_xorb_advertised(r, NGX_HTTP_XET_WRITE, handler);
}
