
/*
 * Statements about xorbs: their chunk lists, read in slices, their rows, each
 * of which names the stored copy that it describes, and who may name them.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_auth.h"
#include "ngx_http_xet_lanes.h"
#include "ngx_http_xet_query_stmt.h"


/* A copy whose request has died. */

typedef struct {
    uint32_t  tag;
    char      name[1];
} ngx_http_xet_left_t;


static ngx_int_t ngx_http_xet_query_slices_values(
    ngx_http_xet_slices_t *slices, const char **values, int *lengths);
static ngx_int_t ngx_http_xet_query_xorb_send(ngx_http_request_t *r,
    ngx_uint_t stmt, const char *const *values, const int *lengths,
    ngx_http_xet_file_t *file, ngx_http_xet_query_handler_pt handler);
static void ngx_http_xet_query_left_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static void ngx_http_xet_query_left_job(void *data, ngx_log_t *log);
static void ngx_http_xet_query_damaged_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);


static ngx_int_t
ngx_http_xet_query_slices_values(ngx_http_xet_slices_t *slices,
    const char **values, int *lengths)
{
    if (slices->xorbs.failed || slices->starts.failed || slices->ends.failed) {
        return NGX_ERROR;
    }

    ngx_http_xet_array_value(&slices->xorbs, &values[0], &lengths[0]);
    ngx_http_xet_array_value(&slices->starts, &values[1], &lengths[1]);
    ngx_http_xet_array_value(&slices->ends, &values[2], &lengths[2]);

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_query_slices(ngx_http_request_t *r,
    ngx_http_xet_slices_t *slices, ngx_uint_t hashes, ngx_uint_t lane,
    ngx_http_xet_query_handler_pt handler)
{
    int          lengths[4];
    const char  *values[4];

    if (ngx_http_xet_query_slices_values(slices, values, lengths) != NGX_OK) {
        return NGX_ERROR;
    }

    values[3] = hashes ? "\1" : "\0";
    lengths[3] = 1;

    return ngx_http_xet_query_send(r, lane, NGX_HTTP_XET_STMT_SLICES, values,
                                   lengths, handler);
}


ngx_int_t
ngx_http_xet_query_shard_slices(ngx_http_request_t *r,
    ngx_http_xet_slices_t *slices, ngx_uint_t proof,
    ngx_http_xet_query_handler_pt handler)
{
    int          lengths[7];
    const char  *values[7];

    if (ngx_http_xet_query_slices_values(slices, values, lengths) != NGX_OK
        || ngx_http_xet_query_whose(r, &values[5], &lengths[5]) != NGX_OK)
    {
        return NGX_ERROR;
    }

    values[3] = proof ? "\1" : "\0";
    lengths[3] = 1;
    values[4] = ngx_http_xet_dedup_wide(r) ? "\1" : "\0";
    lengths[4] = 1;

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_WRITE,
                                   NGX_HTTP_XET_STMT_SHARD_SLICES, values,
                                   lengths, handler);
}


void
ngx_http_xet_query_shard_slices_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_shard_slice_t *slice)
{
    ngx_http_xet_query_slices_row(q, i, slice);

    slice->own = slice->known && ngx_http_xet_pg_int(q->res, i, 7) != 0;
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

    slice->tag = (uint32_t) ngx_http_xet_pg_int(q->res, i, 4);
    slice->stored_size = (uint32_t) ngx_http_xet_pg_int(q->res, i, 5);
    slice->known = ngx_http_xet_pg_int(q->res, i, 6) != 0;
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
    ngx_http_xet_file_t *file, ngx_http_xet_query_handler_pt handler)
{
    int                    lengths[11];
    const char            *values[11];
    ngx_http_xet_query_t  *q;

    if (eligible->failed
        || ngx_http_xet_query_whose(r, &values[9], &lengths[9]) != NGX_OK)
    {
        return NGX_ERROR;
    }

    q = ngx_http_xet_query_get(r);

    ngx_http_xet_put_be64(&q->numbers[0], info->raw_size);
    ngx_http_xet_put_be64(&q->numbers[1], info->stored_size);
    ngx_http_xet_put_be32(&q->tags[0], file->tag);

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

    values[7] = (const char *) &q->tags[0];
    lengths[7] = 4;
    values[8] = (const char *) file->digest.bytes;
    lengths[8] = XET_CHECKSUM_LEN;

    return ngx_http_xet_query_xorb_send(r, NGX_HTTP_XET_STMT_XORB_PUT, values,
                                        lengths, file, handler);
}


ngx_int_t
ngx_http_xet_query_xorb_heal(ngx_http_request_t *r,
    const xet_xorb_info_t *info, ngx_http_xet_file_t *file, uint32_t old_tag,
    ngx_http_xet_query_handler_pt handler)
{
    int                    lengths[6];
    const char            *values[6];
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    ngx_http_xet_put_be64(&q->numbers[0], info->stored_size);
    ngx_http_xet_put_be32(&q->tags[0], file->tag);
    ngx_http_xet_put_be32(&q->tags[1], old_tag);

    values[0] = (const char *) info->hash.bytes;
    lengths[0] = XET_HASH_LEN;
    values[1] = (const char *) info->stored_ends;
    lengths[1] = (int) info->chunk_count * 4;
    values[2] = (const char *) &q->numbers[0];
    lengths[2] = 8;
    values[3] = (const char *) &q->tags[0];
    lengths[3] = 4;
    values[4] = (const char *) file->digest.bytes;
    lengths[4] = XET_CHECKSUM_LEN;
    values[5] = (const char *) &q->tags[1];
    lengths[5] = 4;

    return ngx_http_xet_query_xorb_send(r, NGX_HTTP_XET_STMT_XORB_HEAL, values,
                                        lengths, file, handler);
}


static ngx_int_t
ngx_http_xet_query_xorb_send(ngx_http_request_t *r, ngx_uint_t stmt,
    const char *const *values, const int *lengths, ngx_http_xet_file_t *file,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_int_t              rc;
    ngx_http_xet_query_t  *q;

    rc = ngx_http_xet_query_send(r, NGX_HTTP_XET_WRITE, stmt, values, lengths,
                                 handler);

    if (rc == NGX_AGAIN) {
        q = ngx_http_xet_query_get(r);
        q->copy = file;

        ngx_http_xet_store_keep(file, 1);
    }

    return rc;
}


/*
 * The request dies while a statement is under way that may make a row name the
 * copy.  One that was not sent yet never will be.  For the other one its
 * parameters die, so it can't be sent again, but its end tells.
 */

ngx_uint_t
ngx_http_xet_query_xorb_left(ngx_http_xet_query_t *q)
{
    size_t                    len;
    ngx_http_xet_left_t      *left;
    ngx_http_xet_pg_query_t  *query;

    query = q->query;

    if (query->pg == NULL) {

        /* one that waits to be sent again was sent, and may be committed */

        if (!query->lost) {
            ngx_http_xet_store_keep(q->copy, 0);
        }

        return 0;
    }

    len = ngx_strlen(q->copy->name);

    left = ngx_alloc(offsetof(ngx_http_xet_left_t, name) + len + 1,
                     ngx_cycle->log);
    if (left == NULL) {
        return 0;
    }

    left->tag = q->copy->tag;
    ngx_memcpy(left->name, q->copy->name, len + 1);

    query->handler = ngx_http_xet_query_left_done;
    query->data = left;
    query->tries = NGX_MAX_INT32_VALUE;

    return 1;
}


static void
ngx_http_xet_query_left_done(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_http_xet_left_t *left = data;

    ngx_uint_t  named;

    named = (sqlstate == NULL);

    if (res) {
        named = ngx_http_xet_pg_rows(res) == 1
                && (uint32_t) ngx_http_xet_pg_int(res, 0, 0) == left->tag;

        ngx_http_xet_pg_clear(res);
    }

    if (!named) {
        ngx_http_xet_task_detached(ngx_http_xet_query_left_job, left->name,
                                   ngx_strlen(left->name) + 1);
    }

    ngx_free(left);
}


static void
ngx_http_xet_query_left_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_store_unlink_job(data, log);
}


void
ngx_http_xet_query_xorb_copy(ngx_http_request_t *r, ngx_http_xet_copy_t *copy)
{
    ngx_str_t              digest;
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    ngx_memzero(copy, sizeof(ngx_http_xet_copy_t));

    copy->tag = (uint32_t) ngx_http_xet_pg_int(q->res, 0, 0);
    copy->size = (uint64_t) ngx_http_xet_pg_int(q->res, 0, 1);
    copy->whole = ngx_http_xet_pg_int(q->res, 0, 3) != 0;
    copy->news = ngx_http_xet_pg_int(q->res, 0, 4) != 0;

    ngx_http_xet_pg_bytes(q->res, 0, 2, &digest);

    if (digest.len == XET_CHECKSUM_LEN) {
        ngx_memcpy(copy->digest.bytes, digest.data, XET_CHECKSUM_LEN);
        copy->digested = 1;
    }
}


ngx_int_t
ngx_http_xet_query_damaged(ngx_http_request_t *r,
    ngx_http_xet_damage_t *damage, ngx_http_xet_query_handler_pt handler)
{
    int          lengths[2];
    const char  *values[2];

    if (damage->xorbs.failed || damage->tags.failed) {
        return NGX_ERROR;
    }

    ngx_http_xet_array_value(&damage->xorbs, &values[0], &lengths[0]);
    ngx_http_xet_array_value(&damage->tags, &values[1], &lengths[1]);

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_WRITE,
                                   NGX_HTTP_XET_STMT_XORB_DAMAGED, values,
                                   lengths, handler);
}


ngx_uint_t
ngx_http_xet_query_damaged_n(ngx_http_request_t *r)
{
    return (ngx_uint_t) ngx_http_xet_pg_int(ngx_http_xet_query_get(r)->res, 0,
                                            0);
}


/* The arrays' memory is taken over: there is no request that they live in. */

void
ngx_http_xet_query_damaged_tell(ngx_http_xet_damage_t *damage)
{
    int                     lengths[2];
    const char             *values[2];
    ngx_http_xet_damage_t  *own;

    own = ngx_alloc(sizeof(ngx_http_xet_damage_t), ngx_cycle->log);

    if (own == NULL || damage->xorbs.failed || damage->tags.failed) {

        if (own) {
            ngx_free(own);
        }

        ngx_http_xet_damage_destroy(damage);
        ngx_http_xet_damage_init(damage);
        return;
    }

    *own = *damage;

    ngx_http_xet_damage_init(damage);

    ngx_http_xet_array_value(&own->xorbs, &values[0], &lengths[0]);
    ngx_http_xet_array_value(&own->tags, &values[1], &lengths[1]);

    if (ngx_http_xet_lanes_send(NGX_HTTP_XET_WRITE,
                     &ngx_http_xet_query_stmts[NGX_HTTP_XET_STMT_XORB_DAMAGED],
                     values, lengths, ngx_http_xet_query_damaged_done, own)
        == NULL)
    {
        ngx_http_xet_query_damaged_done(own, NULL, NGX_BUSY, NULL);
    }
}


static void
ngx_http_xet_query_damaged_done(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    if (res) {
        ngx_http_xet_pg_clear(res);
    }

    ngx_http_xet_damage_destroy(data);

    ngx_free(data);
}


void
ngx_http_xet_query_xorb_get(ngx_http_request_t *r, ngx_http_xet_copy_t *copy)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    ngx_memzero(copy, sizeof(ngx_http_xet_copy_t));

    copy->size = (uint64_t) ngx_http_xet_pg_int(q->res, 0, 0);
    copy->tag = (uint32_t) ngx_http_xet_pg_int(q->res, 0, 1);
    copy->whole = ngx_http_xet_pg_int(q->res, 0, 2) != 0;
}


ngx_int_t
ngx_http_xet_query_xorb(ngx_http_request_t *r, const xet_hash_t *xorb,
    ngx_http_xet_query_handler_pt handler)
{
    int          lengths[3];
    const char  *values[3];

    values[0] = (const char *) xorb->bytes;
    lengths[0] = XET_HASH_LEN;

    if (ngx_http_xet_query_whose(r, &values[1], &lengths[1]) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_READ,
                                   NGX_HTTP_XET_STMT_XORB, values, lengths,
                                   handler);
}


ngx_int_t
ngx_http_xet_query_grant(ngx_http_request_t *r, const xet_hash_t *xorb,
    ngx_http_xet_query_handler_pt handler)
{
    int          lengths[4];
    const char  *values[4];

    values[0] = (const char *) xorb->bytes;
    lengths[0] = XET_HASH_LEN;
    values[1] = ngx_http_xet_proof(r) ? "\1" : "\0";
    lengths[1] = 1;

    if (ngx_http_xet_query_whose(r, &values[2], &lengths[2]) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_READ,
                                   NGX_HTTP_XET_STMT_GRANT, values, lengths,
                                   handler);
}


ngx_uint_t
ngx_http_xet_query_grant_get(ngx_http_request_t *r, ngx_http_xet_copy_t *copy)
{
    ngx_http_xet_query_xorb_get(r, copy);

    return ngx_http_xet_pg_int(ngx_http_xet_query_get(r)->res, 0, 3) != 0;
}
