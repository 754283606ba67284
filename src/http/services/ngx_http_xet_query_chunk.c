
/*
 * Statements about chunks: what a dedup query is answered with, and the day
 * on which that was.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_auth.h"
#include "ngx_http_xet_lanes.h"
#include "ngx_http_xet_query_stmt.h"


ngx_int_t
ngx_http_xet_query_chunk(ngx_http_request_t *r, const xet_hash_t *chunk,
    ngx_http_xet_query_handler_pt handler)
{
    int          lengths[2] = { XET_HASH_LEN, 0 };
    const char  *values[2] = { (const char *) chunk->bytes, NULL };

    /* else all of the store answers */

    if (ngx_http_xet_dedup_in_repo(r)) {
        ngx_http_xet_query_repo(r, &values[1], &lengths[1]);
    }

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_READ,
                                   NGX_HTTP_XET_STMT_CHUNK, values, lengths,
                                   handler);
}


ngx_uint_t
ngx_http_xet_query_chunk_n(ngx_http_xet_query_t *q)
{
    return ngx_http_xet_pg_rows(q->res);
}


void
ngx_http_xet_query_chunk_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_xorb_list_t *xorb, ngx_uint_t *noted)
{
    ngx_str_t  hash, hashes, raw;

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
}


ngx_int_t
ngx_http_xet_query_chunk_told(ngx_http_xet_query_t *q,
    ngx_http_xet_array_t *xorbs)
{
    ngx_uint_t       i, n, noted, all;
    xet_xorb_list_t  xorb;

    n = ngx_http_xet_query_chunk_n(q);
    all = 1;

    for (i = 0; i < n; i++) {
        ngx_http_xet_query_chunk_row(q, i, &xorb, &noted);

        if (xorb.chunk_count == 0) {
            return NGX_ERROR;
        }

        ngx_http_xet_array_bytes(xorbs, xorb.hash.bytes, XET_HASH_LEN);
        all &= noted;
    }

    return all ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_http_xet_query_advertised(ngx_http_request_t *r,
    ngx_http_xet_array_t *xorbs, ngx_http_xet_query_handler_pt handler)
{
    int          length;
    const char  *value;

    if (xorbs->failed) {
        return NGX_ERROR;
    }

    ngx_http_xet_array_value(xorbs, &value, &length);

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_WRITE,
                                   NGX_HTTP_XET_STMT_ADVERTISED, &value,
                                   &length, handler);
}
