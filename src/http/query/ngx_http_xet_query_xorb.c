
/*
 * Statements about xorbs: their chunk lists, read in slices, their rows, each
 * of which names the stored copy that it describes, who may name them, and
 * those that answer a dedup query.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


/* A copy whose request died while a statement was to make a row name it. */

typedef struct {
    ngx_http_xet_store_t      *store;
    ngx_http_xet_copy_name_t   name;
    uint64_t                   size;
    xet_status_t               status;         /* of the look at it */
} ngx_http_xet_left_t;


static ngx_http_xet_params_t *ngx_http_xet_query_slices_params(
    ngx_http_request_t *r, ngx_http_xet_slices_t *slices);
static ngx_uint_t ngx_http_xet_query_slices_whole(ngx_http_xet_query_t *q,
    PGresult *res);
static ngx_int_t ngx_http_xet_query_xorb_kept(ngx_http_request_t *r,
    ngx_int_t rc, ngx_http_xet_temp_t *file, const xet_xorb_info_t *info);
static ngx_uint_t ngx_http_xet_query_xorb_left(ngx_http_xet_query_t *q);
static void ngx_http_xet_query_left_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static void ngx_http_xet_query_left_job(void *data, ngx_log_t *log);
static void ngx_http_xet_query_left_look_job(void *data, ngx_log_t *log);
static void ngx_http_xet_query_left_looked(void *data);


void
ngx_http_xet_slices_init(ngx_http_xet_slices_t *s)
{
    ngx_memzero(s, sizeof(ngx_http_xet_slices_t));

    ngx_http_xet_array_init(&s->xorbs, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&s->starts, NGX_HTTP_XET_OID_INT4);
    ngx_http_xet_array_init(&s->ends, NGX_HTTP_XET_OID_INT4);
}


void
ngx_http_xet_slices_reset(ngx_http_xet_slices_t *s)
{
    ngx_http_xet_array_reset(&s->xorbs);
    ngx_http_xet_array_reset(&s->starts);
    ngx_http_xet_array_reset(&s->ends);

    s->n = 0;
    s->chunks = 0;
}


void
ngx_http_xet_slices_destroy(ngx_http_xet_slices_t *s)
{
    ngx_http_xet_array_destroy(&s->xorbs);
    ngx_http_xet_array_destroy(&s->starts);
    ngx_http_xet_array_destroy(&s->ends);
}


void
ngx_http_xet_slices_add(ngx_http_xet_slices_t *s, const xet_hash_t *xorb,
    uint32_t start, uint32_t end)
{
    ngx_http_xet_array_bytes(&s->xorbs, xorb->bytes, XET_HASH_LEN);
    ngx_http_xet_array_int4(&s->starts, (int32_t) start);
    ngx_http_xet_array_int4(&s->ends, (int32_t) end);

    s->n++;
    s->chunks += end - start;
}


static ngx_http_xet_params_t *
ngx_http_xet_query_slices_params(ngx_http_request_t *r,
    ngx_http_xet_slices_t *slices)
{
    ngx_http_xet_params_t  *p;

    if (slices->xorbs.failed || slices->starts.failed || slices->ends.failed) {
        return NULL;
    }

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_array(p, &slices->xorbs);
    ngx_http_xet_params_array(p, &slices->starts);
    ngx_http_xet_params_array(p, &slices->ends);

    return p;
}


ngx_int_t
ngx_http_xet_query_xorb_slices(ngx_http_request_t *r,
    ngx_http_xet_slices_t *slices, ngx_uint_t hashes, ngx_uint_t lane,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_slices_params(r, slices);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ngx_http_xet_params_bool(p, hashes);

    if (lane != NGX_HTTP_XET_READ) {
        return ngx_http_xet_send_xorb_slices(r, lane, handler);
    }

    return ngx_http_xet_query_read(r, lane, ngx_http_xet_stmt_xorb_slices,
                                   ngx_http_xet_query_slices_whole, handler);
}


/* Every xorb has a row, and every range is inside of it. */

static ngx_uint_t
ngx_http_xet_query_slices_whole(ngx_http_xet_query_t *q, PGresult *res)
{
    ngx_int_t  i, rows;

    rows = ngx_http_xet_pg_rows(res);

    for (i = 0; i < rows; i++) {
        if (ngx_http_xet_pg_null(res, i, 0) || ngx_http_xet_pg_null(res, i, 2))
        {
            return 0;
        }
    }

    return 1;
}


ngx_int_t
ngx_http_xet_query_shard_slices(ngx_http_request_t *r,
    ngx_http_xet_slices_t *slices, ngx_uint_t proof,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_slices_params(r, slices);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ngx_http_xet_params_bool(p, proof);
    ngx_http_xet_params_bool(p, ngx_http_xet_dedup_wide(r));

    if (ngx_http_xet_query_whose(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_send_shard_slices(r, NGX_HTTP_XET_WRITE, handler);
}


void
ngx_http_xet_query_shard_slices_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_shard_slice_t *slice)
{
    ngx_http_xet_query_xorb_slices_row(q, i, slice);

    slice->own = slice->known && ngx_http_xet_pg_int(q->res, i, 7) != 0;
}


/*
 * The ends of a slice come with one end more, the end of the chunk before the
 * slice, which is zero for the first chunk of a xorb.
 */

void
ngx_http_xet_query_xorb_slices_row(ngx_http_xet_query_t *q, ngx_uint_t i,
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

    /* n counts the end before the slice, too */

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
    ngx_http_xet_temp_t *file, ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    if (eligible->failed) {
        return NGX_ERROR;
    }

    ngx_http_xet_query_tags();

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, info->hash.bytes, XET_HASH_LEN);
    ngx_http_xet_params_bytes(p, info->hashes,
                              info->chunk_count * XET_HASH_LEN);
    ngx_http_xet_params_bytes(p, info->raw_ends, info->chunk_count * 4);
    ngx_http_xet_params_bytes(p, info->stored_ends, info->chunk_count * 4);
    ngx_http_xet_params_int8(p, info->raw_size);
    ngx_http_xet_params_int8(p, info->stored_size);
    ngx_http_xet_params_array(p, eligible);
    ngx_http_xet_params_int4(p, file->tag);
    ngx_http_xet_params_bytes(p, file->digest.bytes, XET_CHECKSUM_LEN);

    if (ngx_http_xet_query_whose(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_xet_params_int8(p, file->made);

    return ngx_http_xet_query_xorb_kept(r,
               ngx_http_xet_send_xorb_put(r, NGX_HTTP_XET_WRITE, handler),
               file, info);
}


ngx_int_t
ngx_http_xet_query_xorb_heal(ngx_http_request_t *r,
    const xet_xorb_info_t *info, ngx_http_xet_temp_t *file, uint32_t old_tag,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    ngx_http_xet_query_tags();

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, info->hash.bytes, XET_HASH_LEN);
    ngx_http_xet_params_bytes(p, info->stored_ends, info->chunk_count * 4);
    ngx_http_xet_params_int8(p, info->stored_size);
    ngx_http_xet_params_int4(p, file->tag);
    ngx_http_xet_params_bytes(p, file->digest.bytes, XET_CHECKSUM_LEN);
    ngx_http_xet_params_int4(p, old_tag);
    ngx_http_xet_params_int8(p, file->made);

    return ngx_http_xet_query_xorb_kept(r,
               ngx_http_xet_send_xorb_heal(r, NGX_HTTP_XET_WRITE, handler),
               file, info);
}


/* Keeps the file where a statement was sent that may make a row name it. */

static ngx_int_t
ngx_http_xet_query_xorb_kept(ngx_http_request_t *r, ngx_int_t rc,
    ngx_http_xet_temp_t *file, const xet_xorb_info_t *info)
{
    ngx_http_xet_query_t  *q;

    if (rc == NGX_AGAIN) {
        q = ngx_http_xet_query_get(r);

        q->copy = file;
        q->size = info->stored_size;
        q->left = ngx_http_xet_query_xorb_left;

        ngx_http_xet_store_keep(file, 1);
    }

    return rc;
}


/*
 * The request dies while a statement is under way that may make a row name the
 * copy.  A statement that still waits will never be sent.  One that was sent
 * can't be sent again, since its parameters die with the request, but its
 * result tells whether a row names the copy.
 */

static ngx_uint_t
ngx_http_xet_query_xorb_left(ngx_http_xet_query_t *q)
{
    ngx_int_t             rc;
    ngx_http_xet_left_t  *left;

    left = ngx_alloc(sizeof(ngx_http_xet_left_t), ngx_cycle->log);
    if (left == NULL) {
        return 0;
    }

    left->store = q->copy->store;
    left->name.xorb = q->copy->xorb;
    left->name.tag = q->copy->tag;
    left->size = q->size;

    rc = ngx_http_xet_lanes_bequeath(q->query, ngx_http_xet_query_left_done,
                                     left);
    if (rc == NGX_OK) {
        return 1;
    }

    if (rc == NGX_DECLINED) {
        ngx_http_xet_store_keep(q->copy, 0);       /* no row can name it */
    }

    ngx_free(left);

    return 0;
}


ngx_uint_t
ngx_http_xet_query_unnamed(const u_char *sqlstate)
{
    return sqlstate[0] && ngx_strncmp(sqlstate, "40", 2) != 0;
}


/*
 * Where an attempt was lost before, the row may be a second one, behind a
 * collection of the first and of the copy (ngx_http_xet_keep.c).  The request
 * would have looked at the copy, and now nobody else does.
 */

static void
ngx_http_xet_query_left_done(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_http_xet_left_t *left = data;

    ngx_uint_t  named, lost;

    lost = (sqlstate == NULL)
           ? rc != NGX_OK
           : ngx_strcmp(sqlstate, NGX_HTTP_XET_PG_TWICE) == 0;

    named = (sqlstate == NULL
             || !ngx_http_xet_query_unnamed((u_char *) sqlstate));

    if (res) {
        named = ngx_http_xet_pg_rows(res) == 1
                && (uint32_t) ngx_http_xet_pg_int(res, 0, 0)
                   == left->name.tag;

        ngx_http_xet_pg_clear(res);
    }

    if (!named) {
        ngx_http_xet_task_detached(ngx_http_xet_query_left_job, left,
                                   sizeof(ngx_http_xet_left_t));

    } else if (lost) {
        (void) ngx_http_xet_task_detached_done(
                                             ngx_http_xet_query_left_look_job,
                                             ngx_http_xet_query_left_looked,
                                             left,
                                             sizeof(ngx_http_xet_left_t));
    }

    ngx_free(left);
}


static void
ngx_http_xet_query_left_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_left_t *left = data;

    (void) ngx_http_xet_store_remove_job(left->store, &left->name.xorb,
                                         left->name.tag, log);
}


static void
ngx_http_xet_query_left_look_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_left_t *left = data;

    left->status = ngx_http_xet_store_stat_job(left->store, &left->name.xorb,
                                               left->name.tag, left->size,
                                               log);
}


static void
ngx_http_xet_query_left_looked(void *data)
{
    ngx_http_xet_left_t *left = data;

    ngx_http_xet_damage_t  damage;

    if (left->status != XET_STORE_DAMAGED) {
        return;
    }

    ngx_http_xet_damage_init(&damage);
    ngx_http_xet_damage_note(&damage, &left->name.xorb, left->name.tag);

    ngx_http_xet_query_xorb_damaged_tell(&damage);
    ngx_http_xet_damage_destroy(&damage);
}


void
ngx_http_xet_query_xorb_put_row(ngx_http_request_t *r,
    ngx_http_xet_copy_t *copy)
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
ngx_http_xet_query_xorb_damaged(ngx_http_request_t *r,
    ngx_http_xet_damage_t *damage, ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    if (damage->xorbs.failed || damage->tags.failed) {
        return NGX_ERROR;
    }

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_array(p, &damage->xorbs);
    ngx_http_xet_params_array(p, &damage->tags);

    return ngx_http_xet_send_copies_lost(r, NGX_HTTP_XET_WRITE, handler);
}


ngx_uint_t
ngx_http_xet_query_xorb_lost(ngx_http_request_t *r,
    ngx_http_xet_damage_t *damage, ngx_int_t *rc)
{
    if (*rc == NGX_DECLINED) {
        *rc = NGX_OK;
        return 0;
    }

    return (*rc == NGX_OK)
           ? ngx_http_xet_damage_lost(ngx_http_xet_query_get(r)->res,
                                      damage->log, r->connection->log)
           : 0;
}


ngx_uint_t
ngx_http_xet_query_xorb_get_row(ngx_http_request_t *r,
    ngx_http_xet_copy_t *copy)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    ngx_memzero(copy, sizeof(ngx_http_xet_copy_t));

    copy->size = (uint64_t) ngx_http_xet_pg_int(q->res, 0, 0);
    copy->tag = (uint32_t) ngx_http_xet_pg_int(q->res, 0, 1);
    copy->whole = ngx_http_xet_pg_int(q->res, 0, 2) != 0;

    return ngx_http_xet_pg_int(q->res, 0, 3) != 0;
}


ngx_int_t
ngx_http_xet_query_xorb_get(ngx_http_request_t *r, const xet_hash_t *xorb,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, xorb->bytes, XET_HASH_LEN);

    if (ngx_http_xet_query_whose(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_send_xorb_get(r, NGX_HTTP_XET_READ, handler);
}


ngx_int_t
ngx_http_xet_query_xorb_grant(ngx_http_request_t *r, const xet_hash_t *xorb,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, xorb->bytes, XET_HASH_LEN);
    ngx_http_xet_params_bool(p, ngx_http_xet_proof(r));

    if (ngx_http_xet_query_whose(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_send_xorb_grant(r, NGX_HTTP_XET_READ, handler);
}


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

    return ngx_http_xet_query_read(r, NGX_HTTP_XET_DEDUP,
                                   ngx_http_xet_stmt_chunk_find,
                                   ngx_http_xet_query_whole_any, handler);
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


ngx_http_xet_copy_stat_t *
ngx_http_xet_query_chunk_look_job(ngx_http_xet_query_t *q,
    ngx_http_xet_damage_t *d, ngx_http_xet_store_t *store, ngx_uint_t n,
    ngx_log_t *log)
{
    ngx_uint_t                 i, noted;
    xet_xorb_list_t            xorb;
    ngx_http_xet_copy_stat_t  *looks;

    looks = ngx_alloc((n + 1) * sizeof(ngx_http_xet_copy_stat_t), log);

    if (looks == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i++) {
        ngx_http_xet_query_chunk_find_row(q, i, &xorb, &noted);

        looks[i].name.xorb = xorb.hash;
        looks[i].name.tag = xorb.tag;
        looks[i].want = xorb.stored_size;
    }

    ngx_http_xet_damage_stat_all_job(d, store, looks, n, log);

    return looks;
}


ngx_int_t
ngx_http_xet_query_chunk_find_xorbs(ngx_http_xet_query_t *q,
    ngx_http_xet_array_t *xorbs)
{
    ngx_uint_t       i, n, noted, all;
    xet_xorb_list_t  xorb;

    n = ngx_http_xet_query_rows(q);
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
