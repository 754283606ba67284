
/*
 * Statements of chores: their leases, the copies that they read, and what they
 * find out about these.  No request waits for any of them.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


static ngx_http_xet_post_t *ngx_http_xet_query_turn(
    const ngx_http_xet_turn_t *turn);
static void ngx_http_xet_query_turn_text(ngx_http_xet_post_t *post,
    const ngx_str_t *text);
static ngx_int_t ngx_http_xet_query_of_copies(ngx_http_xet_stmt_e stmt,
    ngx_http_xet_copy_name_t *copies, ngx_uint_t n,
    ngx_http_xet_asked_pt handler, void *data);


static ngx_http_xet_post_t *
ngx_http_xet_query_turn(const ngx_http_xet_turn_t *turn)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_post_create();

    if (post) {
        ngx_http_xet_query_turn_text(post, &turn->name);
        ngx_http_xet_query_post_bytes(post, turn->holder,
                                      NGX_HTTP_XET_HOLDER_LEN);
    }

    return post;
}


/* An empty text, which has no data, is not NULL. */

static void
ngx_http_xet_query_turn_text(ngx_http_xet_post_t *post, const ngx_str_t *text)
{
    ngx_http_xet_query_post_bytes(post, text->len ? text->data : (u_char *) "",
                                  text->len);
}


ngx_int_t
ngx_http_xet_query_chore_take(const ngx_http_xet_turn_t *turn,
    ngx_http_xet_asked_pt handler, void *data)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_turn(turn);
    if (post == NULL) {
        return NGX_BUSY;
    }

    ngx_http_xet_params_int8(&post->params, turn->interval);
    ngx_http_xet_params_int8(&post->params, turn->lease);

    return ngx_http_xet_query_ask(post, ngx_http_xet_stmt_chore_take, handler,
                                  data);
}


ngx_msec_t
ngx_http_xet_query_chore_take_row(ngx_http_xet_ask_t *ask,
    ngx_http_xet_turn_t *turn, ngx_uint_t *begins)
{
    int64_t  wait;

    wait = ngx_http_xet_pg_int(ask->res, 0, 0);

    if (wait > 0) {
        return (ngx_msec_t) ngx_min(wait, NGX_MAX_INT32_VALUE);
    }

    turn->turn = (uint64_t) ngx_http_xet_pg_int(ask->res, 0, 1);
    ngx_http_xet_pg_bytes(ask->res, 0, 2, &turn->cursor);
    *begins = ngx_http_xet_pg_int(ask->res, 0, 3) != 0;

    return 0;
}


ngx_int_t
ngx_http_xet_query_chore_keep(const ngx_http_xet_turn_t *turn,
    ngx_http_xet_asked_pt handler, void *data)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_turn(turn);
    if (post == NULL) {
        return NGX_BUSY;
    }

    ngx_http_xet_params_int8(&post->params, turn->turn);
    ngx_http_xet_params_int4(&post->params, (uint32_t) turn->seq);
    ngx_http_xet_params_int8(&post->params, turn->lease);
    ngx_http_xet_query_turn_text(post, &turn->cursor);
    ngx_http_xet_query_turn_text(post, &turn->figures);
    ngx_http_xet_query_post_bytes(post, turn->note.len ? turn->note.data : NULL,
                                  turn->note.len);

    return ngx_http_xet_query_ask(post, ngx_http_xet_stmt_chore_keep, handler,
                                  data);
}


ngx_int_t
ngx_http_xet_query_chore_done(const ngx_http_xet_turn_t *turn,
    ngx_http_xet_asked_pt handler, void *data)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_turn(turn);
    if (post == NULL) {
        return NGX_BUSY;
    }

    ngx_http_xet_params_int8(&post->params, turn->turn);
    ngx_http_xet_query_turn_text(post, &turn->figures);
    ngx_http_xet_query_post_bytes(post, turn->note.len ? turn->note.data : NULL,
                                  turn->note.len);

    return ngx_http_xet_query_ask(post, ngx_http_xet_stmt_chore_done, handler,
                                  data);
}


ngx_int_t
ngx_http_xet_query_gc_files(ngx_uint_t batch, ngx_http_xet_asked_pt handler,
    void *data)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_post_create();
    if (post == NULL) {
        return NGX_BUSY;
    }

    ngx_http_xet_params_int4(&post->params, (uint32_t) batch);
    ngx_http_xet_query_post_act(post);

    return ngx_http_xet_query_ask(post, ngx_http_xet_stmt_gc_files, handler,
                                  data);
}


ngx_int_t
ngx_http_xet_query_gc_xorbs(ngx_uint_t grace, ngx_uint_t batch,
    ngx_http_xet_asked_pt handler, void *data)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_post_create();
    if (post == NULL) {
        return NGX_BUSY;
    }

    ngx_http_xet_params_int8(&post->params, grace);
    ngx_http_xet_params_int4(&post->params, (uint32_t) batch);
    ngx_http_xet_query_post_act(post);

    return ngx_http_xet_query_ask(post, ngx_http_xet_stmt_gc_xorbs, handler,
                                  data);
}


ngx_int_t
ngx_http_xet_query_usage_settle(ngx_uint_t batch,
    ngx_http_xet_asked_pt handler, void *data)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_post_create();
    if (post == NULL) {
        return NGX_BUSY;
    }

    ngx_http_xet_params_int4(&post->params, (uint32_t) batch);
    ngx_http_xet_query_post_act(post);

    return ngx_http_xet_query_ask(post, ngx_http_xet_stmt_usage_settle,
                                  handler, data);
}


void
ngx_http_xet_query_gc_row(ngx_http_xet_ask_t *ask, ngx_http_xet_gc_row_t *row)
{
    row->seen = (uint64_t) ngx_http_xet_pg_int(ask->res, 0, 0);
    row->busy = (uint64_t) ngx_http_xet_pg_int(ask->res, 0, 1);
    row->n = (uint64_t) ngx_http_xet_pg_int(ask->res, 0, 2);
    row->bytes = (uint64_t) ngx_http_xet_pg_int(ask->res, 0, 3);
    row->more = (uint64_t) ngx_http_xet_pg_int(ask->res, 0, 4);
    row->needed = (uint64_t) ngx_http_xet_pg_int(ask->res, 0, 5);
}


ngx_int_t
ngx_http_xet_query_gc_copies(ngx_uint_t batch, ngx_http_xet_asked_pt handler,
    void *data)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_post_create();
    if (post == NULL) {
        return NGX_BUSY;
    }

    ngx_http_xet_params_int4(&post->params, (uint32_t) batch);

    return ngx_http_xet_query_ask(post, ngx_http_xet_stmt_gc_copies, handler,
                                  data);
}


ngx_int_t
ngx_http_xet_query_gc_copy(ngx_http_xet_ask_t *ask, ngx_uint_t i,
    ngx_http_xet_copy_name_t *copy)
{
    ngx_str_t  hash;

    ngx_http_xet_pg_bytes(ask->res, i, 0, &hash);

    if (hash.len != XET_HASH_LEN) {
        return NGX_ERROR;
    }

    ngx_memcpy(copy->xorb.bytes, hash.data, XET_HASH_LEN);
    copy->tag = (uint32_t) ngx_http_xet_pg_int(ask->res, i, 1);

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_query_gc_removed(ngx_http_xet_copy_name_t *copies, ngx_uint_t n,
    ngx_http_xet_asked_pt handler, void *data)
{
    return ngx_http_xet_query_of_copies(ngx_http_xet_stmt_gc_removed, copies,
                                        n, handler, data);
}


ngx_int_t
ngx_http_xet_query_orphans(ngx_http_xet_copy_name_t *copies, ngx_uint_t n,
    ngx_uint_t aside, ngx_http_xet_asked_pt handler, void *data)
{
    return ngx_http_xet_query_of_copies(aside
                                        ? ngx_http_xet_stmt_orphans
                                        : ngx_http_xet_stmt_copies_unknown,
                                        copies, n, handler, data);
}


/* A statement whose parameters are the hashes and tags of copies. */

static ngx_int_t
ngx_http_xet_query_of_copies(ngx_http_xet_stmt_e stmt,
    ngx_http_xet_copy_name_t *copies, ngx_uint_t n,
    ngx_http_xet_asked_pt handler, void *data)
{
    ngx_uint_t             i;
    ngx_http_xet_post_t   *post;
    ngx_http_xet_array_t   hashes, tags;

    post = ngx_http_xet_query_post_create();
    if (post == NULL) {
        return NGX_BUSY;
    }

    ngx_http_xet_array_init(&hashes, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&tags, NGX_HTTP_XET_OID_INT4);

    for (i = 0; i < n; i++) {
        ngx_http_xet_array_bytes(&hashes, copies[i].xorb.bytes, XET_HASH_LEN);
        ngx_http_xet_array_int4(&tags, (int32_t) copies[i].tag);
    }

    ngx_http_xet_query_post_array(post, &hashes);
    ngx_http_xet_query_post_array(post, &tags);

    ngx_http_xet_array_destroy(&hashes);
    ngx_http_xet_array_destroy(&tags);

    if (stmt == ngx_http_xet_stmt_gc_removed) {
        ngx_http_xet_query_post_act(post);
    }

    return ngx_http_xet_query_ask(post, stmt, handler, data);
}


ngx_int_t
ngx_http_xet_query_orphans_due(ngx_uint_t begun,
    ngx_http_xet_asked_pt handler, void *data)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_post_create();
    if (post == NULL) {
        return NGX_BUSY;
    }

    ngx_http_xet_params_bool(&post->params, begun);

    return ngx_http_xet_query_ask(post, ngx_http_xet_stmt_orphans_due, handler,
                                  data);
}


ngx_int_t
ngx_http_xet_query_orphans_due_row(ngx_http_xet_ask_t *ask, time_t *since,
    time_t *newest, ngx_str_t *why)
{
    if (ngx_http_xet_pg_int(ask->res, 0, 0) == 0) {
        ngx_http_xet_pg_bytes(ask->res, 0, 3, why);

        return ngx_http_xet_pg_int(ask->res, 0, 4) ? NGX_ABORT : NGX_DECLINED;
    }

    *since = (time_t) ngx_http_xet_pg_int(ask->res, 0, 1);
    *newest = (time_t) ngx_http_xet_pg_int(ask->res, 0, 2);

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_query_orphans_swept(int64_t n, ngx_http_xet_asked_pt handler,
    void *data)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_post_create();
    if (post == NULL) {
        return NGX_BUSY;
    }

    if (n < 0) {
        ngx_http_xet_params_null(&post->params);

    } else {
        ngx_http_xet_params_int8(&post->params, (uint64_t) n);
    }

    ngx_http_xet_params_bool(&post->params, 1);

    return ngx_http_xet_query_ask(post, ngx_http_xet_stmt_orphans_found,
                                  handler, data);
}


void
ngx_http_xet_query_gc_removed_row(ngx_http_xet_ask_t *ask, uint64_t *n,
    uint64_t *bytes)
{
    *n = (uint64_t) ngx_http_xet_pg_int(ask->res, 0, 0);
    *bytes = (uint64_t) ngx_http_xet_pg_int(ask->res, 0, 1);
}


ngx_int_t
ngx_http_xet_query_scrub_next(int64_t after, ngx_uint_t damaged,
    ngx_http_xet_asked_pt handler, void *data)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_post_create();
    if (post == NULL) {
        return NGX_BUSY;
    }

    ngx_http_xet_params_int8(&post->params, (uint64_t) after);

    return ngx_http_xet_query_ask(post,
                                  damaged ? ngx_http_xet_stmt_heal_next
                                          : ngx_http_xet_stmt_scrub_next,
                                  handler, data);
}


ngx_int_t
ngx_http_xet_query_scrub_row(ngx_http_xet_ask_t *ask, ngx_uint_t i,
    ngx_http_xet_scrub_row_t *row)
{
    ngx_str_t  hash, digest, ends;

    ngx_memzero(row, sizeof(ngx_http_xet_scrub_row_t));

    row->id = ngx_http_xet_pg_int(ask->res, i, 0);
    ngx_http_xet_pg_bytes(ask->res, i, 1, &hash);
    row->tag = (uint32_t) ngx_http_xet_pg_int(ask->res, i, 2);
    row->size = (uint64_t) ngx_http_xet_pg_int(ask->res, i, 3);
    ngx_http_xet_pg_bytes(ask->res, i, 4, &digest);
    ngx_http_xet_pg_bytes(ask->res, i, 5, &ends);

    if (hash.len != XET_HASH_LEN) {
        return NGX_ERROR;
    }

    ngx_memcpy(row->xorb.bytes, hash.data, XET_HASH_LEN);

    if (digest.len == XET_CHECKSUM_LEN) {
        ngx_memcpy(row->digest.bytes, digest.data, XET_CHECKSUM_LEN);
        row->digested = 1;
        return NGX_OK;
    }

    if (ends.len != sizeof(row->ends)) {
        return NGX_ERROR;
    }

    ngx_memcpy(row->ends, ends.data, sizeof(row->ends));

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_query_scrub_damaged(const ngx_http_xet_scrub_row_t *row,
    ngx_http_xet_asked_pt handler, void *data)
{
    ngx_http_xet_post_t    *post;
    ngx_http_xet_damage_t   damage;

    post = ngx_http_xet_query_post_create();
    if (post == NULL) {
        return NGX_BUSY;
    }

    ngx_http_xet_damage_init(&damage);
    ngx_http_xet_damage_note(&damage, &row->xorb, row->tag);

    ngx_http_xet_query_post_array(post, &damage.xorbs);
    ngx_http_xet_query_post_array(post, &damage.tags);

    ngx_http_xet_damage_destroy(&damage);

    return ngx_http_xet_query_ask(post, ngx_http_xet_stmt_xorb_damaged,
                                  handler, data);
}


ngx_int_t
ngx_http_xet_query_scrub_whole(const ngx_http_xet_scrub_row_t *row,
    ngx_http_xet_asked_pt handler, void *data)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_post_create();
    if (post == NULL) {
        return NGX_BUSY;
    }

    ngx_http_xet_query_post_bytes(post, row->xorb.bytes, XET_HASH_LEN);
    ngx_http_xet_params_int4(&post->params, row->tag);

    return ngx_http_xet_query_ask(post, ngx_http_xet_stmt_xorb_whole, handler,
                                  data);
}


ngx_int_t
ngx_http_xet_query_heal_later(const ngx_http_xet_scrub_row_t *row,
    ngx_http_xet_asked_pt handler, void *data)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_post_create();
    if (post == NULL) {
        return NGX_BUSY;
    }

    ngx_http_xet_params_int8(&post->params, (uint64_t) row->id);
    ngx_http_xet_params_int4(&post->params, row->tag);

    return ngx_http_xet_query_ask(post, ngx_http_xet_stmt_heal_later, handler,
                                  data);
}


ngx_int_t
ngx_http_xet_query_heal(const xet_xorb_info_t *info, ngx_http_xet_temp_t *file,
    uint32_t old_tag, ngx_http_xet_asked_pt handler, void *data)
{
    ngx_int_t             rc;
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_post_create();
    if (post == NULL) {
        return NGX_BUSY;
    }

    ngx_http_xet_query_post_bytes(post, info->hash.bytes, XET_HASH_LEN);
    ngx_http_xet_query_post_bytes(post, info->stored_ends,
                                  info->chunk_count * 4);
    ngx_http_xet_params_int8(&post->params, info->stored_size);
    ngx_http_xet_params_int4(&post->params, file->tag);
    ngx_http_xet_query_post_bytes(post, file->digest.bytes, XET_CHECKSUM_LEN);
    ngx_http_xet_params_int4(&post->params, old_tag);
    ngx_http_xet_params_int8(&post->params, file->made);

    rc = ngx_http_xet_query_ask(post, ngx_http_xet_stmt_xorb_heal, handler,
                                data);

    if (rc == NGX_AGAIN) {
        ngx_http_xet_store_keep(file, 1);
    }

    return rc;
}
