
/*
 * Statements that register the files of a shard: batches that are put aside,
 * and the last one, which commits them all.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_lanes.h"
#include "ngx_http_xet_query_send.h"


/* Sets the parameters of a batch, for shard_stage and for shard_put. */

static ngx_int_t
ngx_http_xet_query_batch(ngx_http_request_t *r, ngx_http_xet_batch_t *b)
{
    ngx_uint_t              i;
    ngx_http_xet_params_t  *p;

    if (ngx_http_xet_batch_failed(b)) {
        return NGX_ERROR;
    }

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, b->id, sizeof(b->id));
    ngx_http_xet_params_int4(p, (uint32_t) b->seq);

    for (i = 0; i < NGX_HTTP_XET_BATCH_ARRAYS; i++) {
        ngx_http_xet_params_array(p, ngx_http_xet_batch_array(b, i));
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_query_shard_stage(ngx_http_request_t *r, ngx_http_xet_batch_t *b,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_int_t  rc;

    if (ngx_http_xet_query_batch(r, b) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_http_xet_send_shard_stage(r, NGX_HTTP_XET_WRITE, handler);

    if (rc == NGX_AGAIN) {
        ngx_http_xet_query_get(r)->upload = b->id;
    }

    return rc;
}


ngx_int_t
ngx_http_xet_query_shard_put(ngx_http_request_t *r, ngx_http_xet_batch_t *b,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_int_t              rc;
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    if (ngx_http_xet_query_batch(r, b) != NGX_OK
        || ngx_http_xet_query_whose(r, &q->params) != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = ngx_http_xet_send_shard_put(r, NGX_HTTP_XET_WRITE, handler);

    if (rc == NGX_AGAIN && b->seq) {
        q->upload = b->id;
    }

    return rc;
}


ngx_int_t
ngx_http_xet_query_shard_doubts(ngx_http_request_t *r, ngx_http_xet_batch_t *b,
    const ngx_http_xet_doubt_t *from, ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    if (ngx_http_xet_batch_failed(b)) {
        return NGX_ERROR;
    }

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_array(p, &b->hashes);
    ngx_http_xet_params_array(p, &b->packed);
    ngx_http_xet_params_int8(p, from->file);
    ngx_http_xet_params_int8(p, from->xorb);

    return ngx_http_xet_send_shard_doubts(r, NGX_HTTP_XET_WRITE, handler);
}


ngx_uint_t
ngx_http_xet_query_shard_doubts_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_hash_t *xorb, uint32_t *tag, uint64_t *size,
    ngx_http_xet_doubt_t *next)
{
    ngx_str_t  hash;

    if (ngx_http_xet_pg_null(q->res, i, 0)) {
        next->file = ngx_http_xet_pg_int(q->res, i, 3);
        next->xorb = ngx_http_xet_pg_int(q->res, i, 4);

        return 0;
    }

    ngx_memzero(xorb, sizeof(xet_hash_t));

    ngx_http_xet_pg_bytes(q->res, i, 0, &hash);

    if (hash.len == XET_HASH_LEN) {
        ngx_memcpy(xorb->bytes, hash.data, XET_HASH_LEN);
    }

    *tag = (uint32_t) ngx_http_xet_pg_int(q->res, i, 1);
    *size = (uint64_t) ngx_http_xet_pg_int(q->res, i, 2);

    return 1;
}
