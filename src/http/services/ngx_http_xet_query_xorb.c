
/*
 * Statements about xorbs: their chunk lists, read in slices, and their rows.
 * Xorbs belong to nobody; their hashes are what one has to know.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_lanes.h"
#include "ngx_http_xet_query_stmt.h"


ngx_int_t
ngx_http_xet_query_slices(ngx_http_request_t *r,
    ngx_http_xet_slices_t *slices, ngx_uint_t hashes, ngx_uint_t lane,
    ngx_http_xet_query_handler_pt handler)
{
    int          lengths[4];
    const char  *values[4];

    if (slices->xorbs.failed || slices->starts.failed || slices->ends.failed) {
        return NGX_ERROR;
    }

    ngx_http_xet_array_value(&slices->xorbs, &values[0], &lengths[0]);
    ngx_http_xet_array_value(&slices->starts, &values[1], &lengths[1]);
    ngx_http_xet_array_value(&slices->ends, &values[2], &lengths[2]);

    values[3] = hashes ? "\1" : "\0";
    lengths[3] = 1;

    return ngx_http_xet_query_send(r, lane, NGX_HTTP_XET_STMT_SLICES, values,
                                   lengths, handler);
}


ngx_uint_t
ngx_http_xet_query_slices_n(ngx_http_xet_query_t *q)
{
    return ngx_http_xet_pg_rows(q->res);
}


/*
 * The ends of a slice that does not begin its xorb come with the end before
 * them; a slice that begins it has one end fewer.
 */

void
ngx_http_xet_query_slices_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_shard_slice_t *slice)
{
    ngx_str_t   hashes, raw, stored;
    ngx_uint_t  n;

    ngx_memzero(slice, sizeof(xet_shard_slice_t));

    if (ngx_http_xet_pg_null(q->res, i, 0)) {
        return;
    }

    slice->known = 1;
    slice->chunk_count = (uint32_t) ngx_http_xet_pg_int(q->res, i, 0);

    if (ngx_http_xet_pg_null(q->res, i, 2)) {
        return;
    }

    ngx_http_xet_pg_bytes(q->res, i, 1, &hashes);
    ngx_http_xet_pg_bytes(q->res, i, 2, &raw);
    ngx_http_xet_pg_bytes(q->res, i, 3, &stored);

    /* four bytes of zero stand before the first chunk's ends */

    n = raw.len / 4;

    if (n < 2 || stored.len != raw.len
        || (hashes.len && hashes.len != (n - 1) * XET_HASH_LEN))
    {
        return;
    }

    slice->n = (uint32_t) n - 1;
    slice->hashes = hashes.len ? hashes.data : NULL;
    slice->raw_before = xet_get_u32(raw.data);
    slice->stored_before = xet_get_u32(stored.data);
    slice->raw_ends = raw.data + 4;
    slice->stored_ends = stored.data + 4;
}


void
ngx_http_xet_query_eligible(ngx_http_xet_array_t *eligible,
    const xet_suite_t *suite, const xet_xorb_info_t *info)
{
    uint16_t  chunks[XET_XORB_CHUNKS_MAX];
    uint32_t  i, n;

    n = xet_xorb_eligible(suite, info, chunks);

    for (i = 0; i < n; i++) {
        ngx_http_xet_array_int4(eligible, chunks[i]);
    }
}


ngx_int_t
ngx_http_xet_query_xorb_put(ngx_http_request_t *r,
    const xet_xorb_info_t *info, ngx_http_xet_array_t *eligible,
    ngx_http_xet_query_handler_pt handler)
{
    int                    lengths[7];
    const char            *values[7];
    ngx_http_xet_query_t  *q;

    if (eligible->failed) {
        return NGX_ERROR;
    }

    q = ngx_http_xet_query_get(r);

    ngx_http_xet_put_be64(&q->numbers[0], info->raw_size);
    ngx_http_xet_put_be64(&q->numbers[1], info->stored_size);

    values[0] = (const char *) info->hash.bytes;
    lengths[0] = XET_HASH_LEN;
    values[1] = (const char *) info->hashes;
    lengths[1] = (int) info->chunk_count * XET_HASH_LEN;
    values[2] = (const char *) info->raw_ends;
    lengths[2] = (int) info->chunk_count * 4;
    values[3] = (const char *) info->stored_ends;
    lengths[3] = (int) info->chunk_count * 4;
    values[4] = (const char *) &q->numbers[0];
    lengths[4] = 8;
    values[5] = (const char *) &q->numbers[1];
    lengths[5] = 8;

    ngx_http_xet_array_value(eligible, &values[6], &lengths[6]);

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_WRITE,
                                   NGX_HTTP_XET_STMT_XORB_PUT, values, lengths,
                                   handler);
}


ngx_int_t
ngx_http_xet_query_xorb(ngx_http_request_t *r, const xet_hash_t *xorb,
    ngx_http_xet_query_handler_pt handler)
{
    int          length;
    const char  *value;

    value = (const char *) xorb->bytes;
    length = XET_HASH_LEN;

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_READ,
                                   NGX_HTTP_XET_STMT_XORB, &value, &length,
                                   handler);
}
