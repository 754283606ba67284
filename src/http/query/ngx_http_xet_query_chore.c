
/*
 * Statements of chores: their leases, the copies that they read, and what they
 * find out about these.  No request waits for any of them.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


static ngx_str_t ngx_http_xet_query_turn_text(const ngx_str_t *text);
static ngx_str_t ngx_http_xet_query_turn_note(const ngx_http_xet_turn_t *turn);
static void ngx_http_xet_query_copies(ngx_http_xet_copy_name_t *copies,
    ngx_uint_t n, ngx_http_xet_array_t *hashes, ngx_http_xet_array_t *tags);


/* An empty text, which has no data, is not NULL. */

static ngx_str_t
ngx_http_xet_query_turn_text(const ngx_str_t *text)
{
    static ngx_str_t  empty = ngx_string("");

    return text->len ? *text : empty;
}


/* An empty note is NULL. */

static ngx_str_t
ngx_http_xet_query_turn_note(const ngx_http_xet_turn_t *turn)
{
    static ngx_str_t  none = ngx_null_string;

    return turn->note.len ? turn->note : none;
}


ngx_int_t
ngx_http_xet_query_chore_take(const ngx_http_xet_turn_t *turn,
    ngx_http_xet_asked_pt handler, void *data)
{
    return ngx_http_xet_ask(chore_take, handler, data, .name = turn->name,
                            .holder = turn->holder, .every = turn->interval,
                            .lease = turn->lease);
}


ngx_msec_t
ngx_http_xet_query_chore_take_row(ngx_http_xet_ask_t *ask,
    ngx_http_xet_turn_t *turn, ngx_uint_t *begins)
{
    ngx_http_xet_chore_take_row_t  row;

    (void) ngx_http_xet_row_chore_take(ask->res, 0, &row);

    if ((int64_t) row.wait > 0) {
        return (ngx_msec_t) ngx_min(row.wait, NGX_MAX_INT32_VALUE);
    }

    turn->turn = row.the_turn;
    turn->cursor = row.the_cursor;
    *begins = row.begins;

    return 0;
}


ngx_int_t
ngx_http_xet_query_chore_keep(const ngx_http_xet_turn_t *turn,
    ngx_http_xet_asked_pt handler, void *data)
{
    return ngx_http_xet_ask(chore_keep, handler, data, .name = turn->name,
               .holder = turn->holder, .turn = turn->turn,
               .seq = (uint32_t) turn->seq, .lease = turn->lease,
               .cursor = ngx_http_xet_query_turn_text(&turn->cursor),
               .figures = ngx_http_xet_query_turn_text(&turn->figures),
               .note = ngx_http_xet_query_turn_note(turn));
}


ngx_int_t
ngx_http_xet_query_chore_done(const ngx_http_xet_turn_t *turn,
    ngx_http_xet_asked_pt handler, void *data)
{
    return ngx_http_xet_ask(chore_done, handler, data, .name = turn->name,
               .holder = turn->holder, .turn = turn->turn,
               .figures = ngx_http_xet_query_turn_text(&turn->figures),
               .note = ngx_http_xet_query_turn_note(turn));
}


ngx_int_t
ngx_http_xet_query_gc_files(ngx_uint_t batch, ngx_http_xet_asked_pt handler,
    void *data)
{
    return ngx_http_xet_ask(gc_files, handler, data, .batch = batch);
}


ngx_int_t
ngx_http_xet_query_gc_xorbs(ngx_uint_t grace, ngx_uint_t batch,
    ngx_http_xet_asked_pt handler, void *data)
{
    return ngx_http_xet_ask(gc_xorbs, handler, data, .grace = grace,
                            .batch = batch);
}


ngx_int_t
ngx_http_xet_query_usage_settle(ngx_uint_t batch,
    ngx_http_xet_asked_pt handler, void *data)
{
    return ngx_http_xet_ask(usage_settle, handler, data, .batch = batch);
}


/* The rows of gc_files have the same columns. */

void
ngx_http_xet_query_gc_row(ngx_http_xet_ask_t *ask, ngx_http_xet_gc_row_t *row)
{
    ngx_http_xet_gc_xorbs_row_t  gc;

    (void) ngx_http_xet_row_gc_xorbs(ask->res, 0, &gc);

    row->seen = gc.seen;
    row->busy = gc.busy;
    row->n = gc.xorbs;
    row->bytes = gc.bytes;
    row->more = gc.told;
    row->needed = gc.needed;
}


ngx_int_t
ngx_http_xet_query_gc_copies(ngx_uint_t batch, ngx_http_xet_asked_pt handler,
    void *data)
{
    return ngx_http_xet_ask(gc_copies, handler, data, .batch = batch);
}


/* The rows of orphans and copies_unknown have the same columns. */

ngx_int_t
ngx_http_xet_query_gc_copy(ngx_http_xet_ask_t *ask, ngx_uint_t i,
    ngx_http_xet_copy_name_t *copy)
{
    ngx_http_xet_gc_copies_row_t  row;

    if (ngx_http_xet_row_gc_copies(ask->res, i, &row) != NGX_OK) {
        return NGX_ERROR;
    }

    copy->xorb = *row.hash;
    copy->tag = row.tag;

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_query_gc_removed(ngx_http_xet_copy_name_t *copies, ngx_uint_t n,
    ngx_http_xet_asked_pt handler, void *data)
{
    ngx_int_t              rc;
    ngx_http_xet_array_t   hashes, tags;

    ngx_http_xet_query_copies(copies, n, &hashes, &tags);

    rc = ngx_http_xet_ask(gc_removed, handler, data, .hashes = &hashes,
                          .tags = &tags);

    ngx_http_xet_array_destroy(&hashes);
    ngx_http_xet_array_destroy(&tags);

    return rc;
}


ngx_int_t
ngx_http_xet_query_orphans(ngx_http_xet_copy_name_t *copies, ngx_uint_t n,
    ngx_uint_t aside, ngx_http_xet_asked_pt handler, void *data)
{
    ngx_int_t              rc;
    ngx_http_xet_array_t   hashes, tags;

    ngx_http_xet_query_copies(copies, n, &hashes, &tags);

    rc = aside ? ngx_http_xet_ask(orphans, handler, data, .hashes = &hashes,
                                  .tags = &tags)
               : ngx_http_xet_ask(copies_unknown, handler, data,
                                  .hashes = &hashes, .tags = &tags);

    ngx_http_xet_array_destroy(&hashes);
    ngx_http_xet_array_destroy(&tags);

    return rc;
}


/* Makes arrays of the hashes and tags of copies. */

static void
ngx_http_xet_query_copies(ngx_http_xet_copy_name_t *copies, ngx_uint_t n,
    ngx_http_xet_array_t *hashes, ngx_http_xet_array_t *tags)
{
    ngx_uint_t  i;

    ngx_http_xet_array_init(hashes, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(tags, NGX_HTTP_XET_OID_INT4);

    for (i = 0; i < n; i++) {
        ngx_http_xet_array_bytes(hashes, copies[i].xorb.bytes, XET_HASH_LEN);
        ngx_http_xet_array_int4(tags, (int32_t) copies[i].tag);
    }
}


ngx_int_t
ngx_http_xet_query_orphans_due(ngx_uint_t begun,
    ngx_http_xet_asked_pt handler, void *data)
{
    return ngx_http_xet_ask(orphans_due, handler, data, .begun = begun);
}


ngx_int_t
ngx_http_xet_query_orphans_due_row(ngx_http_xet_ask_t *ask, time_t *since,
    time_t *newest, ngx_str_t *why)
{
    ngx_http_xet_orphans_due_row_t  row;

    (void) ngx_http_xet_row_orphans_due(ask->res, 0, &row);

    if (!row.due) {
        *why = row.why;

        return row.doubts ? NGX_ABORT : NGX_DECLINED;
    }

    *since = (time_t) row.since;
    *newest = (time_t) row.newest;

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_query_orphans_swept(int64_t n, ngx_http_xet_asked_pt handler,
    void *data)
{
    return ngx_http_xet_ask(orphans_found, handler, data, .n = n, .swept = 1);
}


void
ngx_http_xet_query_gc_removed_row(ngx_http_xet_ask_t *ask, uint64_t *n,
    uint64_t *bytes)
{
    ngx_http_xet_gc_removed_row_t  row;

    (void) ngx_http_xet_row_gc_removed(ask->res, 0, &row);

    *n = row.copies;
    *bytes = row.bytes;
}


ngx_int_t
ngx_http_xet_query_scrub_next(int64_t after, ngx_uint_t damaged,
    ngx_http_xet_asked_pt handler, void *data)
{
    return damaged
           ? ngx_http_xet_ask(heal_next, handler, data, .after = after)
           : ngx_http_xet_ask(scrub_next, handler, data, .after = after);
}


/* The rows of heal_next have the same columns. */

ngx_int_t
ngx_http_xet_query_scrub_row(ngx_http_xet_ask_t *ask, ngx_uint_t i,
    ngx_http_xet_scrub_row_t *row)
{
    ngx_int_t                      rc;
    ngx_http_xet_scrub_next_row_t  next;

    ngx_memzero(row, sizeof(ngx_http_xet_scrub_row_t));

    rc = ngx_http_xet_row_scrub_next(ask->res, i, &next);

    row->id = (int64_t) next.id;
    row->tag = next.tag;
    row->size = next.stored_size;

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    row->xorb = *next.hash;

    if (next.digest.len == XET_CHECKSUM_LEN) {
        ngx_memcpy(row->digest.bytes, next.digest.data, XET_CHECKSUM_LEN);
        row->digested = 1;
        return NGX_OK;
    }

    if (next.ends_sha256.len != sizeof(row->ends)) {
        return NGX_ERROR;
    }

    ngx_memcpy(row->ends, next.ends_sha256.data, sizeof(row->ends));

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_query_scrub_damaged(const ngx_http_xet_scrub_row_t *row,
    ngx_http_xet_asked_pt handler, void *data)
{
    ngx_int_t               rc;
    ngx_http_xet_damage_t   damage;

    ngx_http_xet_damage_init(&damage);
    ngx_http_xet_damage_note(&damage, &row->xorb, row->tag);

    rc = ngx_http_xet_ask(xorb_damaged, handler, data, .xorbs = &damage.xorbs,
                          .tags = &damage.tags);

    ngx_http_xet_damage_destroy(&damage);

    return rc;
}


ngx_int_t
ngx_http_xet_query_scrub_whole(const ngx_http_xet_scrub_row_t *row,
    ngx_http_xet_asked_pt handler, void *data)
{
    return ngx_http_xet_ask(xorb_whole, handler, data, .xorb = &row->xorb,
                            .tag = row->tag);
}


ngx_int_t
ngx_http_xet_query_heal_later(const ngx_http_xet_scrub_row_t *row,
    ngx_http_xet_asked_pt handler, void *data)
{
    return ngx_http_xet_ask(heal_later, handler, data, .id = row->id,
                            .tag = row->tag);
}


ngx_int_t
ngx_http_xet_query_heal(const xet_xorb_info_t *info, ngx_http_xet_temp_t *file,
    uint32_t old_tag, ngx_http_xet_asked_pt handler, void *data)
{
    ngx_int_t                      rc;
    ngx_http_xet_xorb_heal_args_t  args;

    ngx_http_xet_query_heal_args(&args, info, file, old_tag);

    rc = ngx_http_xet_ask_xorb_heal(&args, handler, data);

    if (rc == NGX_AGAIN) {
        ngx_http_xet_store_keep(file, 1);
    }

    return rc;
}
