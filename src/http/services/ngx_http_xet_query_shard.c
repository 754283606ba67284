
/*
 * Statements that register the files of a shard: batches that are put aside,
 * the last one that commits them all, and what drops them.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_lanes.h"
#include "ngx_http_xet_query_stmt.h"


static ngx_int_t ngx_http_xet_query_batch(ngx_http_request_t *r,
    ngx_uint_t stmt, ngx_http_xet_batch_t *b,
    ngx_http_xet_query_handler_pt handler);


static ngx_int_t
ngx_http_xet_query_batch(ngx_http_request_t *r, ngx_uint_t stmt,
    ngx_http_xet_batch_t *b, ngx_http_xet_query_handler_pt handler)
{
    int                    lengths[4 + NGX_HTTP_XET_BATCH_ARRAYS];
    ngx_int_t              rc;
    ngx_uint_t             i;
    const char            *values[4 + NGX_HTTP_XET_BATCH_ARRAYS];
    ngx_http_xet_query_t  *q;

    if (ngx_http_xet_batch_failed(b)) {
        return NGX_ERROR;
    }

    q = ngx_http_xet_query_get(r);

    ngx_http_xet_put_be32(&q->numbers[0], (uint32_t) b->seq);

    values[0] = (const char *) b->id;
    lengths[0] = sizeof(b->id);
    values[1] = (const char *) &q->numbers[0];
    lengths[1] = 4;

    for (i = 0; i < NGX_HTTP_XET_BATCH_ARRAYS; i++) {
        ngx_http_xet_array_value(ngx_http_xet_batch_array(b, i),
                                 &values[2 + i], &lengths[2 + i]);
    }

    if (ngx_http_xet_query_whose(r, &values[2 + i], &lengths[2 + i])
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = ngx_http_xet_query_send(r, NGX_HTTP_XET_WRITE, stmt, values, lengths,
                                 handler);

    if (rc == NGX_AGAIN && (b->seq || stmt == NGX_HTTP_XET_STMT_STAGE)) {
        q->upload = b->id;
    }

    return rc;
}


ngx_int_t
ngx_http_xet_query_stage(ngx_http_request_t *r, ngx_http_xet_batch_t *b,
    ngx_http_xet_query_handler_pt handler)
{
    return ngx_http_xet_query_batch(r, NGX_HTTP_XET_STMT_STAGE, b, handler);
}


ngx_int_t
ngx_http_xet_query_shard_put(ngx_http_request_t *r, ngx_http_xet_batch_t *b,
    ngx_http_xet_query_handler_pt handler)
{
    return ngx_http_xet_query_batch(r, NGX_HTTP_XET_STMT_SHARD_PUT, b,
                                    handler);
}


void
ngx_http_xet_query_unstage(const u_char *id)
{
    int                       length;
    const char               *value;
    ngx_http_xet_pg_query_t  *q;

    value = (const char *) id;
    length = NGX_HTTP_XET_UPLOAD_LEN;

    q = ngx_http_xet_lanes_send(NGX_HTTP_XET_WRITE,
                          &ngx_http_xet_query_stmts[NGX_HTTP_XET_STMT_UNSTAGE],
                          &value, &length, NULL, NULL);

    /* what can't be dropped now is dropped by xet.sweep() */

    if (q && q->pg == NULL) {

        /* it waits, maybe longer than the id lives */

        ngx_memcpy(q->own, id, NGX_HTTP_XET_UPLOAD_LEN);
        q->values[0] = (const char *) q->own;
    }
}


void
ngx_http_xet_query_sweep(void)
{
    (void) ngx_http_xet_lanes_send(NGX_HTTP_XET_WRITE,
                            &ngx_http_xet_query_stmts[NGX_HTTP_XET_STMT_SWEEP],
                            NULL, NULL, NULL, NULL);
}


ngx_int_t
ngx_http_xet_query_doubts(ngx_http_request_t *r, ngx_http_xet_batch_t *b,
    const ngx_http_xet_doubt_t *from, ngx_http_xet_query_handler_pt handler)
{
    int                    lengths[4] = { 0, 0, 8, 8 };
    const char            *values[4];
    ngx_http_xet_query_t  *q;

    if (ngx_http_xet_batch_failed(b)) {
        return NGX_ERROR;
    }

    q = ngx_http_xet_query_get(r);

    ngx_http_xet_put_be64(&q->numbers[0], from->file);
    ngx_http_xet_put_be64(&q->numbers[1], from->xorb);

    ngx_http_xet_array_value(&b->hashes, &values[0], &lengths[0]);
    ngx_http_xet_array_value(&b->packed, &values[1], &lengths[1]);

    values[2] = (const char *) &q->numbers[0];
    values[3] = (const char *) &q->numbers[1];

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_WRITE,
                                   NGX_HTTP_XET_STMT_DOUBTS, values, lengths,
                                   handler);
}


ngx_uint_t
ngx_http_xet_query_doubts_n(ngx_http_xet_query_t *q)
{
    return ngx_http_xet_pg_rows(q->res);
}


ngx_uint_t
ngx_http_xet_query_doubts_row(ngx_http_xet_query_t *q, ngx_uint_t i,
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
