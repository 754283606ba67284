
/*
 * Statements about xorbs: read slices of chunk lists, insert and heal rows of
 * xorbs, record damaged copies, and find xorbs for dedup.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


/*
 * A copy whose request has ended too early: a statement was still in flight,
 * and may make a row refer to the copy.
 */

typedef struct {
    ngx_http_xet_store_t      *store;
    ngx_http_xet_copy_name_t   name;
    uint64_t                   size;
    xet_status_t               status;         /* result of the check */
} ngx_http_xet_left_t;


static void ngx_http_xet_query_heal_args(ngx_http_xet_xorb_heal_args_t *args,
    const xet_xorb_info_t *info, ngx_http_xet_temp_t *file,
    uint32_t old_copy_id);
static ngx_int_t ngx_http_xet_query_xorb_kept(ngx_http_request_t *r,
    ngx_int_t rc, ngx_http_xet_temp_t *file, const xet_xorb_info_t *info);
static ngx_uint_t ngx_http_xet_query_xorb_left(ngx_http_xet_query_t *q);
static void ngx_http_xet_query_left_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static void ngx_http_xet_query_left_job(void *data, ngx_log_t *log);
static void ngx_http_xet_query_left_look_job(void *data, ngx_log_t *log);
static void ngx_http_xet_query_left_looked(void *data);


void
ngx_http_xet_slices_add(ngx_http_xet_slices_t *s, const xet_hash_t *xorb,
    uint32_t start, uint32_t end)
{
    ngx_http_xet_array_bytes(&s->xorbs, xorb->bytes, XET_HASH_LEN);
    ngx_http_xet_array_int4(&s->starts, (int32_t) start);
    ngx_http_xet_array_int4(&s->ends, (int32_t) end);
}


ngx_int_t
ngx_http_xet_query_xorb_slices(ngx_http_request_t *r,
    ngx_http_xet_slices_t *slices, ngx_uint_t hashes, ngx_uint_t pg_pool,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_stmt_e              stmt;
    ngx_http_xet_xorb_slices_args_t  args;

    args.xorbs = &slices->xorbs;
    args.starts = &slices->starts;
    args.ends = &slices->ends;
    args.with_hashes = hashes;

    if (pg_pool == NGX_HTTP_XET_READ) {
        return ngx_http_xet_send_xorb_slices(r, &args, handler);
    }

    stmt = ngx_http_xet_stmt_xorb_slices;

    if (ngx_http_xet_statement_pack(&stmt, &args, ngx_http_xet_query_params(r),
                                    r, NULL)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_xet_query_send(r, pg_pool, stmt, handler);
}


void
ngx_http_xet_query_shard_slices_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_shard_slice_t *slice)
{
    ngx_http_xet_shard_slices_row_t  row;

    ngx_http_xet_query_xorb_slices_row(q, i, slice);

    (void) ngx_http_xet_row_shard_slices(q->res, i, &row);

    slice->own = slice->known && row.own;
}


/*
 * Reads the row of a slice: a range of the chunks of a xorb.  An end is the
 * offset after a chunk.  The row has one more end than the slice has chunks:
 * the first is the end of the chunk before the slice, or 0 if there is no such
 * chunk.
 */

void
ngx_http_xet_query_xorb_slices_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_shard_slice_t *slice)
{
    ngx_uint_t                      n;
    ngx_http_xet_xorb_slices_row_t  row;

    ngx_memzero(slice, sizeof(xet_shard_slice_t));

    (void) ngx_http_xet_row_xorb_slices(q->res, i, &row);

    slice->copy_id = row.copy_id;
    slice->stored_size = (uint32_t) row.stored_size;
    slice->chunk_count = row.chunk_count;

    /* a xorb that is not stored has no chunks, and is not marked as damaged */

    slice->known = row.intact && row.chunk_count;

    /*
     * n is the number of ends, including that of the chunk before the slice.  A
     * range outside the xorb has no ends; then slice->n stays 0.
     */

    n = row.raw_ends.len / 4;

    if (n < 2 || row.stored_ends.len != row.raw_ends.len
        || (row.hashes.len && row.hashes.len != (n - 1) * XET_HASH_LEN))
    {
        return;
    }

    slice->n = (uint32_t) n - 1;
    slice->hashes = row.hashes.len ? row.hashes.data : NULL;
    slice->raw_before = xet_get_u32(row.raw_ends.data);
    slice->stored_before = xet_get_u32(row.stored_ends.data);
    slice->raw_ends = row.raw_ends.data + 4;
    slice->stored_ends = row.stored_ends.data + 4;
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
    size_t  n;

    ngx_http_xet_query_copy_ids();

    n = info->chunk_count;

    return ngx_http_xet_query_xorb_kept(r,
               ngx_http_xet_query(r, xorb_put, handler, .xorb = &info->hash,
                   .chunk_hashes = { n * XET_HASH_LEN,
                                     (u_char *) info->hashes },
                   .raw_ends = { n * 4, (u_char *) info->raw_ends },
                   .stored_ends = { n * 4, (u_char *) info->stored_ends },
                   .raw_size = info->raw_size,
                   .stored_size = info->stored_size, .eligible = eligible,
                   .copy_id = file->copy_id,
                   .digest = { XET_CHECKSUM_LEN, file->digest.bytes },
                   .made = file->made,
                   .flush = (ngx_http_xet_ctx_of(r)->ingest == NULL)),
               file, info);
}


ngx_int_t
ngx_http_xet_query_file_put(ngx_http_request_t *r,
    const xet_xorb_info_t *info, ngx_http_xet_array_t *eligible,
    ngx_http_xet_temp_t *file, ngx_http_xet_xorb_file_t *whole,
    ngx_http_xet_query_handler_pt handler)
{
    size_t      n;
    xet_term_t  term;

    ngx_http_xet_query_copy_ids();

    n = info->chunk_count;

    term.xorb = info->hash;
    term.chunk_start = 0;
    term.chunk_end = info->chunk_count;
    term.stored_start = 0;
    term.stored_end = xet_get_u32(info->stored_ends + (n - 1) * 4);
    term.raw_length = (uint32_t) info->raw_size;
    term.copy_id = file->copy_id;

    xet_term_pack(whole->term, &term);

    return ngx_http_xet_query_xorb_kept(r,
               ngx_http_xet_query(r, file_put, handler, .file = &whole->hash,
                   .file_size = whole->size,
                   .sha256 = { XET_HASH_LEN, (u_char *) whole->sha256 },
                   .packed = { XET_TERM_LEN, whole->term },
                   .kept = whole->kept, .xorb = &info->hash,
                   .chunk_hashes = { n * XET_HASH_LEN,
                                     (u_char *) info->hashes },
                   .raw_ends = { n * 4, (u_char *) info->raw_ends },
                   .stored_ends = { n * 4, (u_char *) info->stored_ends },
                   .raw_size = info->raw_size,
                   .stored_size = info->stored_size, .eligible = eligible,
                   .copy_id = file->copy_id,
                   .digest = { XET_CHECKSUM_LEN, file->digest.bytes },
                   .made = file->made),
               file, info);
}


ngx_int_t
ngx_http_xet_query_xorb_heal(ngx_http_request_t *r,
    const xet_xorb_info_t *info, ngx_http_xet_temp_t *file,
    uint32_t old_copy_id, ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_xorb_heal_args_t  args;

    ngx_http_xet_query_copy_ids();
    ngx_http_xet_query_heal_args(&args, info, file, old_copy_id);

    return ngx_http_xet_query_xorb_kept(r,
               ngx_http_xet_send_xorb_heal(r, &args, handler), file, info);
}


ngx_int_t
ngx_http_xet_ask_heal(const xet_xorb_info_t *info, ngx_http_xet_temp_t *file,
    uint32_t old_copy_id, ngx_http_xet_asked_pt handler, void *data)
{
    ngx_int_t                      rc;
    ngx_http_xet_xorb_heal_args_t  args;

    ngx_http_xet_query_heal_args(&args, info, file, old_copy_id);

    rc = ngx_http_xet_ask_xorb_heal(&args, handler, data);

    if (rc == NGX_AGAIN) {
        ngx_http_xet_store_keep(file, 1);
    }

    return rc;
}


static void
ngx_http_xet_query_heal_args(ngx_http_xet_xorb_heal_args_t *args,
    const xet_xorb_info_t *info, ngx_http_xet_temp_t *file,
    uint32_t old_copy_id)
{
    args->xorb = &info->hash;
    args->stored_ends.data = (u_char *) info->stored_ends;
    args->stored_ends.len = info->chunk_count * 4;
    args->stored_size = info->stored_size;
    args->copy_id = file->copy_id;
    args->digest.data = file->digest.bytes;
    args->digest.len = XET_CHECKSUM_LEN;
    args->old_copy_id = old_copy_id;
    args->made = file->made;
}


/*
 * Keeps the copy if a statement was sent that may make a row refer to it.
 */

static ngx_int_t
ngx_http_xet_query_xorb_kept(ngx_http_request_t *r, ngx_int_t rc,
    ngx_http_xet_temp_t *file, const xet_xorb_info_t *info)
{
    ngx_http_xet_query_t  *q;

    if (rc == NGX_AGAIN) {
        q = ngx_http_xet_ctx_of(r)->query;

        q->copy = file;
        q->size = info->stored_size;
        q->left = ngx_http_xet_query_xorb_left;

        ngx_http_xet_store_keep(file, 1);
    }

    return rc;
}


/*
 * Called when the request ends before the end of a statement that may make a
 * row refer to the copy.  A waiting statement will not be sent.  A statement in
 * flight can't be retried, because its parameters are freed, but its result
 * shows whether a row refers to the copy.
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
    left->name.copy_id = q->copy->copy_id;
    left->size = q->size;

    rc = ngx_http_xet_pg_pools_bequeath(q->query, ngx_http_xet_query_left_done,
                                        left);
    if (rc == NGX_OK) {
        return 1;
    }

    if (rc == NGX_DECLINED) {
        ngx_http_xet_store_keep(q->copy, 0);       /* never sent: no row */
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
 * Handles the result of a statement whose request has ended: removes the copy
 * unless a row refers to it.  If an earlier attempt was lost, its row and the
 * copy may have been collected, and the retry may have inserted a row without a
 * copy (ngx_http_xet_xorb_commit.c).  In that case a job checks that the copy
 * still exists, as the request would have done.
 */

static void
ngx_http_xet_query_left_done(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_http_xet_left_t *left = data;

    ngx_uint_t  named, lost;

    lost = (sqlstate == NULL)
           ? rc != NGX_OK
           : ngx_strcmp(sqlstate, NGX_HTTP_XET_PG_RETRIED) == 0;

    named = (sqlstate == NULL
             || !ngx_http_xet_query_unnamed((u_char *) sqlstate));

    if (res) {
        named = ngx_http_xet_pg_rows(res) == 1
                && (uint32_t) ngx_http_xet_pg_int(res, 0, 0)
                   == left->name.copy_id;

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
                                         left->name.copy_id, log);
}


static void
ngx_http_xet_query_left_look_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_left_t *left = data;

    left->status = ngx_http_xet_store_stat_job(left->store, &left->name.xorb,
                                               left->name.copy_id, left->size,
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

    ngx_memzero(&damage, sizeof(ngx_http_xet_damage_t));

    ngx_http_xet_damage_note(&damage, &left->name.xorb, left->name.copy_id);
    ngx_http_xet_query_xorb_damaged_tell(&damage);
}


void
ngx_http_xet_query_xorb_put_row(ngx_http_request_t *r,
    ngx_http_xet_copy_t *copy)
{
    ngx_http_xet_xorb_put_row_t  row;

    (void) ngx_http_xet_row(r, xorb_put, 0, &row);

    ngx_memzero(copy, sizeof(ngx_http_xet_copy_t));

    copy->copy_id = row.copy_id;
    copy->size = row.size;
    copy->intact = row.intact;
    copy->inserted = row.inserted;

    if (row.digest.len == XET_CHECKSUM_LEN) {
        ngx_memcpy(copy->digest.bytes, row.digest.data, XET_CHECKSUM_LEN);
        copy->digested = 1;
    }
}


ngx_uint_t
ngx_http_xet_query_file_put_row(ngx_http_request_t *r)
{
    ngx_http_xet_file_put_row_t  row;

    return ngx_http_xet_row(r, file_put, 0, &row) == NGX_OK && row.put;
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
           ? ngx_http_xet_damage_lost(ngx_http_xet_ctx_of(r)->query->res,
                                      damage->log, r->connection->log)
           : 0;
}


ngx_int_t
ngx_http_xet_query_chunk_find_rc(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_ctx_of(r)->query;

    if (rc == NGX_BUSY
        && ngx_strcmp(q->sqlstate, NGX_HTTP_XET_PG_CANCELLED) == 0)
    {
        return NGX_DECLINED;
    }

    return rc;
}


void
ngx_http_xet_query_chunk_find_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_xorb_list_t *xorb, ngx_uint_t *recorded)
{
    ngx_int_t                      rc;
    ngx_http_xet_chunk_find_row_t  row;

    ngx_memzero(xorb, sizeof(xet_xorb_list_t));

    rc = ngx_http_xet_row_chunk_find(q->res, i, &row);

    *recorded = row.recorded;

    if (rc != NGX_OK || row.hashes.len / XET_HASH_LEN != row.raw_ends.len / 4) {
        return;
    }

    xorb->hash = *row.hash;
    xorb->chunk_count = (uint32_t) (row.raw_ends.len / 4);
    xorb->raw_size = (uint32_t) row.raw_size;
    xorb->stored_size = (uint32_t) row.stored_size;
    xorb->copy_id = row.copy_id;
    xorb->hashes = row.hashes.data;
    xorb->raw_ends = row.raw_ends.data;

    if (row.seen.data) {
        xorb->seen = row.seen.data;
        xorb->seen_n = (uint32_t) (row.seen.len / XET_SEEN_LEN);
    }
}


ngx_http_xet_copy_stat_t *
ngx_http_xet_query_chunk_look_job(ngx_http_xet_query_t *q,
    ngx_http_xet_damage_t *d, ngx_http_xet_store_t *store, ngx_uint_t n,
    ngx_log_t *log)
{
    ngx_uint_t                 i, recorded;
    xet_xorb_list_t            xorb;
    ngx_http_xet_copy_stat_t  *looks;

    looks = ngx_alloc((n + 1) * sizeof(ngx_http_xet_copy_stat_t), log);

    if (looks == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i++) {
        ngx_http_xet_query_chunk_find_row(q, i, &xorb, &recorded);

        looks[i].name.xorb = xorb.hash;
        looks[i].name.copy_id = xorb.copy_id;
        looks[i].want = xorb.stored_size;
    }

    ngx_http_xet_damage_stat_all_job(d, store, looks, n, log);

    return looks;
}


ngx_int_t
ngx_http_xet_query_chunk_find_xorbs(ngx_http_xet_query_t *q,
    ngx_http_xet_array_t *xorbs)
{
    ngx_uint_t       i, n, recorded, all;
    xet_xorb_list_t  xorb;

    n = ngx_http_xet_query_rows(q);
    all = 1;

    for (i = 0; i < n; i++) {
        ngx_http_xet_query_chunk_find_row(q, i, &xorb, &recorded);

        if (xorb.chunk_count == 0) {
            return NGX_ERROR;
        }

        ngx_http_xet_array_bytes(xorbs, xorb.hash.bytes, XET_HASH_LEN);
        all &= recorded;
    }

    return all ? NGX_OK : NGX_DECLINED;
}
