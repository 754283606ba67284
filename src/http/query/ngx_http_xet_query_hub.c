
/*
 * Statements of a Hub: repos with names, their commits and paths.
 *
 * Most of them answer a whole request, with a status and the JSON of the body,
 * which PostgreSQL makes.  Of a tree there is a row for each entry behind that
 * of the status: thousands of texts take it three times as long.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


/* PostgreSQL counts from the year 2000, in microseconds. */
#define NGX_HTTP_XET_PG_EPOCH  946684800000000LL


static void ngx_http_xet_query_hub_said(ngx_http_xet_array_t *a, int64_t n);
static ngx_uint_t ngx_http_xet_query_hub_part(ngx_http_xet_params_t *p,
    ngx_http_xet_array_t *a, ngx_uint_t part);
static ngx_int_t ngx_http_xet_query_hub_leave(ngx_http_request_t *r,
    ngx_int_t rc, const u_char *upload);
static ngx_uint_t ngx_http_xet_query_hub_left(ngx_http_xet_query_t *q);
static ngx_uint_t ngx_http_xet_query_hub_all(ngx_http_xet_query_t *q,
    PGresult *res);
static void ngx_http_xet_query_hub_left_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static ngx_int_t ngx_http_xet_query_hub_subject(ngx_http_request_t *r,
    ngx_http_xet_params_t *p);
static ngx_int_t ngx_http_xet_query_hub_rows(ngx_http_request_t *r,
    ngx_http_xet_params_t *p);
static ngx_int_t ngx_http_xet_query_hub_digest(PGresult *res, ngx_uint_t row,
    ngx_uint_t column, size_t len, const uint8_t **digest);
static int64_t ngx_http_xet_query_hub_time(PGresult *res, ngx_uint_t row,
    ngx_uint_t column);


void
ngx_http_xet_hub_batch_init(ngx_http_xet_hub_batch_t *b)
{
    ngx_http_xet_array_init(&b->ops, NGX_HTTP_XET_OID_INT4);
    ngx_http_xet_array_init(&b->paths, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&b->sizes, NGX_HTTP_XET_OID_INT8);
    ngx_http_xet_array_init(&b->hashes, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&b->sha256, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&b->mtimes, NGX_HTTP_XET_OID_INT8);
    ngx_http_xet_array_init(&b->types, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&b->sources, NGX_HTTP_XET_OID_BYTEA);

    b->n = 0;
}


void
ngx_http_xet_hub_batch_reset(ngx_http_xet_hub_batch_t *b)
{
    ngx_http_xet_array_reset(&b->ops);
    ngx_http_xet_array_reset(&b->paths);
    ngx_http_xet_array_reset(&b->sizes);
    ngx_http_xet_array_reset(&b->hashes);
    ngx_http_xet_array_reset(&b->sha256);
    ngx_http_xet_array_reset(&b->mtimes);
    ngx_http_xet_array_reset(&b->types);
    ngx_http_xet_array_reset(&b->sources);

    b->n = 0;
}


void
ngx_http_xet_hub_batch_destroy(ngx_http_xet_hub_batch_t *b)
{
    ngx_http_xet_array_destroy(&b->ops);
    ngx_http_xet_array_destroy(&b->paths);
    ngx_http_xet_array_destroy(&b->sizes);
    ngx_http_xet_array_destroy(&b->hashes);
    ngx_http_xet_array_destroy(&b->sha256);
    ngx_http_xet_array_destroy(&b->mtimes);
    ngx_http_xet_array_destroy(&b->types);
    ngx_http_xet_array_destroy(&b->sources);
}


xet_status_t
ngx_http_xet_hub_batch_add(ngx_http_xet_hub_batch_t *b,
    const xet_hub_operation_t *op)
{
    u_char      *p;
    u_char       source[2 * XET_HUB_NAME_MAX + 16];
    const char  *kind;

    ngx_http_xet_array_int4(&b->ops, op->op);
    ngx_http_xet_array_bytes(&b->paths, op->path.data, op->path.len);
    ngx_http_xet_query_hub_said(&b->sizes, op->size);

    if (op->op == XET_HUB_ADD || op->op == XET_HUB_COPY) {
        ngx_http_xet_array_bytes(&b->hashes, op->hash.bytes, XET_HASH_LEN);

    } else {
        ngx_http_xet_array_null(&b->hashes);
    }

    if (op->op == XET_HUB_LFS) {
        ngx_http_xet_array_bytes(&b->sha256, op->sha256, XET_HUB_SHA256_LEN);

    } else {
        ngx_http_xet_array_null(&b->sha256);
    }

    ngx_http_xet_query_hub_said(&b->mtimes, op->mtime);

    if (op->type.data) {
        ngx_http_xet_array_bytes(&b->types, op->type.data, op->type.len);

    } else {
        ngx_http_xet_array_null(&b->types);
    }

    if (op->op == XET_HUB_COPY) {
        kind = xet_hub_kind_name(op->kind);

        p = ngx_cpymem(source, kind, ngx_strlen(kind));
        *p++ = '/';
        p = ngx_cpymem(p, op->from.data, op->from.len);

        ngx_http_xet_array_bytes(&b->sources, source, p - source);

    } else if (op->op == XET_HUB_COPY_PATH) {
        ngx_http_xet_array_bytes(&b->sources, op->from.data, op->from.len);

    } else {
        ngx_http_xet_array_null(&b->sources);
    }

    b->n++;

    return (b->ops.failed || b->paths.failed || b->sizes.failed
            || b->hashes.failed || b->sha256.failed || b->mtimes.failed
            || b->types.failed || b->sources.failed)
           ? XET_NOMEM : XET_OK;
}


/* A number, or NULL for one that the client has not said. */

static void
ngx_http_xet_query_hub_said(ngx_http_xet_array_t *a, int64_t n)
{
    if (n == -1) {
        ngx_http_xet_array_null(a);
        return;
    }

    ngx_http_xet_array_int8(a, n);
}


/* What a standby does not find may be there. */

ngx_uint_t
ngx_http_xet_query_hub_found(ngx_http_xet_query_t *q, PGresult *res)
{
    return ngx_http_xet_pg_int(res, 0, 0) == NGX_HTTP_OK;
}


static ngx_uint_t
ngx_http_xet_query_hub_all(ngx_http_xet_query_t *q, PGresult *res)
{
    return (ngx_uint_t) ngx_http_xet_pg_rows(res) == q->files;
}


ngx_http_xet_params_t *
ngx_http_xet_query_hub_params(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_int4(p, asked->kind);
    ngx_http_xet_query_hub_text(p, &asked->owner);
    ngx_http_xet_query_hub_text(p, &asked->name);
    ngx_http_xet_params_bool(p, asked->any_space);

    if (asked->spaces) {
        ngx_http_xet_params_array(p, asked->spaces);

    } else {
        ngx_http_xet_params_null(p);
    }

    ngx_http_xet_params_bool(p, asked->any_store);
    ngx_http_xet_query_hub_text(p, &asked->store);

    return p;
}


void
ngx_http_xet_query_hub_text(ngx_http_xet_params_t *p, const ngx_str_t *text)
{
    if (text->data == NULL) {
        ngx_http_xet_params_null(p);
        return;
    }

    ngx_http_xet_params_bytes(p, text->data, text->len);
}


void
ngx_http_xet_query_hub_get(ngx_http_request_t *r,
    ngx_http_xet_hub_answer_t *answer)
{
    PGresult  *res;

    res = ngx_http_xet_query_get(r)->res;

    answer->status = ngx_http_xet_pg_int(res, 0, 0);

    ngx_http_xet_query_hub_column(res, 0, 1, &answer->code);
    ngx_http_xet_query_hub_column(res, 0, 2, &answer->message);
    ngx_http_xet_query_hub_column(res, 0, 3, &answer->body);
    ngx_http_xet_query_hub_column(res, 0, 4, &answer->more);
}


void
ngx_http_xet_query_hub_rest(ngx_http_request_t *r, ngx_str_t *rest)
{
    ngx_http_xet_query_hub_column(ngx_http_xet_query_get(r)->res, 0, 5, rest);
}


void
ngx_http_xet_query_hub_column(PGresult *res, ngx_uint_t row,
    ngx_uint_t column, ngx_str_t *text)
{
    if (ngx_http_xet_pg_null(res, row, column)) {
        ngx_str_null(text);
        return;
    }

    ngx_http_xet_pg_bytes(res, row, column, text);
}


ngx_int_t
ngx_http_xet_query_hub_create(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, ngx_int_t private,
    const ngx_str_t *who, const u_char *upload, ngx_uint_t batches,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_bool(p, private == 1);
    ngx_http_xet_params_bytes(p, who->data, who->len);
    ngx_http_xet_params_bytes(p, upload, NGX_HTTP_XET_UPLOAD_LEN);
    ngx_http_xet_params_int4(p, (uint32_t) batches);

    if (ngx_http_xet_query_hub_rows(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_query_hub_leave(r,
               ngx_http_xet_send_hub_create(r, NGX_HTTP_XET_WRITE, handler),
               batches ? upload : NULL);
}


ngx_int_t
ngx_http_xet_query_hub_begin(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const u_char *upload,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_bytes(p, upload, NGX_HTTP_XET_UPLOAD_LEN);

    return ngx_http_xet_query_hub_leave(r,
               ngx_http_xet_send_hub_begin(r, NGX_HTTP_XET_WRITE, handler),
               upload);
}


ngx_int_t
ngx_http_xet_query_hub_delete(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    if (ngx_http_xet_query_act(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_send_hub_delete(r, NGX_HTTP_XET_WRITE, handler);
}


ngx_int_t
ngx_http_xet_query_hub_move(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *owner,
    const ngx_str_t *name,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_bool(p, asked->admin);
    ngx_http_xet_params_bytes(p, owner->data, owner->len);
    ngx_http_xet_params_bytes(p, name->data, name->len);

    if (ngx_http_xet_query_act(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_send_hub_move(r, NGX_HTTP_XET_WRITE, handler);
}


ngx_int_t
ngx_http_xet_query_hub_settings(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, ngx_int_t private,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_bool(p, asked->admin);

    if (private == -1) {
        ngx_http_xet_params_null(p);

    } else {
        ngx_http_xet_params_bool(p, private);
    }

    if (ngx_http_xet_query_act(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_send_hub_settings(r, NGX_HTTP_XET_WRITE, handler);
}


ngx_int_t
ngx_http_xet_query_hub_info(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rev,
    ngx_uint_t blobs, const ngx_str_t *rest,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_bytes(p, rev->data, rev->len);
    ngx_http_xet_params_bool(p, blobs);
    ngx_http_xet_query_hub_text(p, rest);

    return ngx_http_xet_query_named(r, ngx_http_xet_stmt_hub_info,
                                    ngx_http_xet_query_hub_found, handler);
}


ngx_int_t
ngx_http_xet_query_hub_list(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked,
    const ngx_http_xet_hub_page_t *page,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_int4(p, page->most);
    ngx_http_xet_query_hub_text(p, &page->after);

    return ngx_http_xet_query_named(r, ngx_http_xet_stmt_hub_list,
                                    ngx_http_xet_query_hub_found, handler);
}


ngx_int_t
ngx_http_xet_query_hub_tree(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked,
    const ngx_http_xet_hub_page_t *page,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_bytes(p, page->rev.data, page->rev.len);
    ngx_http_xet_params_bytes(p, page->path.data, page->path.len);
    ngx_http_xet_params_bool(p, page->recursive);
    ngx_http_xet_params_bool(p, page->expand);
    ngx_http_xet_query_hub_text(p, &page->after);
    ngx_http_xet_params_int4(p, page->most);
    ngx_http_xet_params_int4(p, page->part);

    return ngx_http_xet_query_named(r, ngx_http_xet_stmt_hub_tree_rows,
                                    ngx_http_xet_query_hub_found, handler);
}


ngx_int_t
ngx_http_xet_query_hub_commits(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked,
    const ngx_http_xet_hub_page_t *page, const ngx_str_t *rest,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_bytes(p, page->rev.data, page->rev.len);
    ngx_http_xet_query_hub_text(p, &page->after);
    ngx_http_xet_params_int4(p, page->most);
    ngx_http_xet_query_hub_text(p, rest);

    return ngx_http_xet_query_named(r, ngx_http_xet_stmt_hub_commits_get,
                                    ngx_http_xet_query_hub_found, handler);
}


ngx_int_t
ngx_http_xet_query_hub_paths(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rev,
    ngx_http_xet_hub_batch_t *batch, ngx_uint_t part, ngx_uint_t expand,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_bytes(p, rev->data, rev->len);
    (void) ngx_http_xet_query_hub_part(p, &batch->paths, part);
    ngx_http_xet_params_bool(p, expand);

    return ngx_http_xet_query_named(r, ngx_http_xet_stmt_hub_paths_rows,
                                    ngx_http_xet_query_hub_found, handler);
}


/* The next elements of an array of the batch; returns how many. */

static ngx_uint_t
ngx_http_xet_query_hub_part(ngx_http_xet_params_t *p, ngx_http_xet_array_t *a,
    ngx_uint_t part)
{
    int          length;
    ngx_uint_t   n;
    const char  *value;

    n = ngx_http_xet_array_take(a, part, &value, &length);

    ngx_http_xet_params_bytes(p, value, length);

    return n;
}


ngx_uint_t
ngx_http_xet_query_hub_nodes(ngx_http_request_t *r)
{
    return ngx_http_xet_query_rows(ngx_http_xet_query_get(r)) - 1;
}


ngx_int_t
ngx_http_xet_query_hub_node(ngx_http_request_t *r, ngx_uint_t i,
    xet_hub_node_t *node)
{
    PGresult   *res;
    ngx_str_t   text;

    res = ngx_http_xet_query_get(r)->res;
    i++;

    ngx_http_xet_query_hub_column(res, i, 5, &text);
    node->path.data = text.data;
    node->path.len = text.len;

    node->size = ngx_http_xet_pg_int(res, i, 7);
    node->at = ngx_http_xet_query_hub_time(res, i, 10);
    node->mtime = ngx_http_xet_query_hub_time(res, i, 11);

    ngx_http_xet_query_hub_column(res, i, 12, &text);
    node->title.data = text.data;
    node->title.len = text.len;

    return (ngx_http_xet_query_hub_digest(res, i, 6, XET_HASH_LEN,
                                          &node->hash)
            != NGX_OK
            || ngx_http_xet_query_hub_digest(res, i, 8, XET_DIGEST_SHA256_LEN,
                                             &node->sha256)
               != NGX_OK
            || ngx_http_xet_query_hub_digest(res, i, 9, XET_HUB_OID_LEN / 2,
                                             &node->made)
               != NGX_OK)
           ? NGX_ERROR : NGX_OK;
}


/* NULL for one that is not there, or is empty. */

static ngx_int_t
ngx_http_xet_query_hub_digest(PGresult *res, ngx_uint_t row,
    ngx_uint_t column, size_t len, const uint8_t **digest)
{
    ngx_str_t  bytes;

    ngx_http_xet_query_hub_column(res, row, column, &bytes);

    *digest = bytes.len ? bytes.data : NULL;

    return (bytes.len == 0 || bytes.len == len) ? NGX_OK : NGX_ERROR;
}


static int64_t
ngx_http_xet_query_hub_time(PGresult *res, ngx_uint_t row, ngx_uint_t column)
{
    int64_t  at;

    if (ngx_http_xet_pg_null(res, row, column)) {
        return XET_HUB_NO_TIME;
    }

    at = ngx_http_xet_pg_int(res, row, column);

    return (at > INT64_MAX - NGX_HTTP_XET_PG_EPOCH)
           ? INT64_MAX : at + NGX_HTTP_XET_PG_EPOCH;
}


ngx_int_t
ngx_http_xet_query_hub_preupload(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rev,
    ngx_http_xet_hub_batch_t *batch, ngx_uint_t part,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_bytes(p, rev->data, rev->len);
    (void) ngx_http_xet_query_hub_part(p, &batch->paths, part);
    (void) ngx_http_xet_query_hub_part(p, &batch->sizes, part);

    return ngx_http_xet_send_hub_preupload(r, NGX_HTTP_XET_READ, handler);
}


ngx_int_t
ngx_http_xet_query_hub_refs(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rest,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_query_hub_text(ngx_http_xet_query_hub_params(r, asked), rest);

    return ngx_http_xet_query_named(r, ngx_http_xet_stmt_hub_refs_get,
                                    ngx_http_xet_query_hub_found, handler);
}


ngx_int_t
ngx_http_xet_query_hub_ref_put(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *ref,
    const ngx_str_t *rev, ngx_uint_t over,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_bytes(p, ref->data, ref->len);
    ngx_http_xet_query_hub_text(p, rev);
    ngx_http_xet_params_bool(p, over);

    if (ngx_http_xet_query_act(r, p) != NGX_OK
        || ngx_http_xet_query_hub_subject(r, p) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_xet_send_hub_ref_put(r, NGX_HTTP_XET_WRITE, handler);
}


ngx_int_t
ngx_http_xet_query_hub_enter(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rev,
    ngx_uint_t writes,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_query_hub_text(p, rev);
    ngx_http_xet_params_bool(p, writes);

    if (writes) {
        return ngx_http_xet_send_hub_enter(r, NGX_HTTP_XET_READ, handler);
    }

    return ngx_http_xet_query_named(r, ngx_http_xet_stmt_hub_enter,
                                    ngx_http_xet_query_hub_found, handler);
}


ngx_int_t
ngx_http_xet_query_hub_resolve(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rev,
    const ngx_str_t *path,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_bytes(p, rev->data, rev->len);
    ngx_http_xet_params_bytes(p, path->data, path->len);

    return ngx_http_xet_query_named(r, ngx_http_xet_stmt_hub_resolve,
                                    ngx_http_xet_query_hub_found, handler);
}


ngx_int_t
ngx_http_xet_query_hub_resolve_get(ngx_http_request_t *r,
    ngx_http_xet_hub_file_t *file)
{
    PGresult   *res;
    ngx_str_t   hash, sha256;

    ngx_http_xet_query_hub_get(r, &file->answer);

    res = ngx_http_xet_query_get(r)->res;

    ngx_http_xet_query_hub_column(res, 0, 5, &file->oid);

    if (file->answer.status != NGX_HTTP_OK) {
        return NGX_OK;
    }

    ngx_http_xet_query_hub_column(res, 0, 6, &hash);
    ngx_http_xet_query_hub_column(res, 0, 8, &sha256);
    ngx_http_xet_query_hub_column(res, 0, 9, &file->type);
    ngx_http_xet_query_hub_column(res, 0, 10, &file->store);

    if (hash.len != XET_HASH_LEN
        || (sha256.data && sha256.len != XET_DIGEST_SHA256_LEN))
    {
        return NGX_ERROR;
    }

    ngx_memzero(file->sha256, XET_DIGEST_SHA256_LEN);
    ngx_memcpy(file->hash.bytes, hash.data, XET_HASH_LEN);

    if (sha256.data) {
        ngx_memcpy(file->sha256, sha256.data, XET_DIGEST_SHA256_LEN);
    }

    file->size = ngx_http_xet_pg_int(res, 0, 7);
    file->private = ngx_http_xet_pg_int(res, 0, 11);

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_query_hub_known(ngx_http_request_t *r, const ngx_str_t *store,
    ngx_http_xet_array_t *sha256, ngx_uint_t part,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, store->data, store->len);

    ngx_http_xet_query_get(r)->files = ngx_http_xet_query_hub_part(p, sha256,
                                                                   part);

    return ngx_http_xet_query_named(r, ngx_http_xet_stmt_hub_known,
                                    ngx_http_xet_query_hub_all, handler);
}


ngx_int_t
ngx_http_xet_query_hub_known_row(ngx_http_request_t *r, ngx_uint_t i,
    u_char *sha256, xet_hash_t *hash, ngx_uint_t *proven)
{
    PGresult   *res;
    ngx_str_t   text;

    res = ngx_http_xet_query_get(r)->res;

    ngx_http_xet_pg_bytes(res, i, 0, &text);

    if (text.len != XET_DIGEST_SHA256_LEN) {
        return NGX_ERROR;
    }

    ngx_memcpy(sha256, text.data, XET_DIGEST_SHA256_LEN);

    ngx_http_xet_pg_bytes(res, i, 1, &text);

    if (text.len != XET_HASH_LEN) {
        return NGX_ERROR;
    }

    ngx_memcpy(hash->bytes, text.data, XET_HASH_LEN);

    *proven = ngx_http_xet_pg_int(res, i, 2);

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_query_hub_here(ngx_http_request_t *r, const ngx_str_t *store,
    ngx_http_xet_array_t *sha256, ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    if (sha256->failed) {
        return NGX_ERROR;
    }

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, store->data, store->len);
    ngx_http_xet_params_array(p, sha256);

    return ngx_http_xet_send_hub_here(r, NGX_HTTP_XET_WRITE, handler);
}


ngx_uint_t
ngx_http_xet_query_hub_here_row(ngx_http_request_t *r, ngx_uint_t i)
{
    return (ngx_uint_t) ngx_http_xet_pg_int(ngx_http_xet_query_get(r)->res, i,
                                            0);
}


ngx_int_t
ngx_http_xet_query_hub_stage(ngx_http_request_t *r, const u_char *upload,
    ngx_uint_t seq, ngx_http_xet_hub_batch_t *batch,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, upload, NGX_HTTP_XET_UPLOAD_LEN);
    ngx_http_xet_params_int4(p, seq);
    ngx_http_xet_params_array(p, &batch->ops);
    ngx_http_xet_params_array(p, &batch->paths);
    ngx_http_xet_params_array(p, &batch->sizes);
    ngx_http_xet_params_array(p, &batch->hashes);
    ngx_http_xet_params_array(p, &batch->sha256);
    ngx_http_xet_params_array(p, &batch->mtimes);
    ngx_http_xet_params_array(p, &batch->types);
    ngx_http_xet_params_array(p, &batch->sources);

    if (ngx_http_xet_query_hub_subject(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_query_hub_leave(r,
               ngx_http_xet_send_hub_stage(r, NGX_HTTP_XET_WRITE, handler),
               upload);
}


ngx_int_t
ngx_http_xet_query_hub_claims(ngx_http_request_t *r, const ngx_str_t *store,
    const u_char *upload, ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, store->data, store->len);
    ngx_http_xet_params_bytes(p, upload, NGX_HTTP_XET_UPLOAD_LEN);

    if (ngx_http_xet_query_hub_subject(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_send_hub_claims(r, NGX_HTTP_XET_WRITE, handler);
}


ngx_int_t
ngx_http_xet_query_hub_claims_row(ngx_http_request_t *r, ngx_uint_t i,
    ngx_http_xet_hub_claim_t *claim)
{
    PGresult   *res;
    ngx_str_t   hash, sha256;

    res = ngx_http_xet_query_get(r)->res;

    claim->status = ngx_http_xet_pg_int(res, i, 0);
    ngx_str_null(&claim->message);

    if (claim->status != NGX_HTTP_OK) {
        ngx_http_xet_pg_bytes(res, i, 1, &claim->message);
        return NGX_OK;
    }

    ngx_http_xet_pg_bytes(res, i, 2, &hash);
    ngx_http_xet_pg_bytes(res, i, 3, &sha256);

    if (hash.len != XET_HASH_LEN || sha256.len != XET_DIGEST_SHA256_LEN) {
        return NGX_ERROR;
    }

    ngx_memcpy(claim->hash.bytes, hash.data, XET_HASH_LEN);
    ngx_memcpy(claim->sha256, sha256.data, XET_DIGEST_SHA256_LEN);

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_query_hub_proven(ngx_http_request_t *r, const ngx_str_t *store,
    const xet_hash_t *file, const u_char *sha256,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, store->data, store->len);
    ngx_http_xet_params_bytes(p, file->bytes, XET_HASH_LEN);
    ngx_http_xet_params_bytes(p, sha256, XET_DIGEST_SHA256_LEN);

    return ngx_http_xet_send_hub_proven(r, NGX_HTTP_XET_WRITE, handler);
}


ngx_int_t
ngx_http_xet_query_hub_commit(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const u_char *upload,
    ngx_uint_t batches, const ngx_http_xet_hub_message_t *message,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_bytes(p, message->rev.data, message->rev.len);
    ngx_http_xet_params_bytes(p, upload, NGX_HTTP_XET_UPLOAD_LEN);
    ngx_http_xet_query_hub_text(p, &message->parent);
    ngx_http_xet_params_bytes(p, message->who.data, message->who.len);
    ngx_http_xet_params_bytes(p, message->title.data, message->title.len);
    ngx_http_xet_params_bytes(p, message->text.data, message->text.len);
    ngx_http_xet_params_int4(p, (uint32_t) batches);
    ngx_http_xet_query_hub_text(p, &message->seen);

    if (ngx_http_xet_query_hub_rows(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_query_hub_leave(r,
               ngx_http_xet_send_hub_commit(r, NGX_HTTP_XET_WRITE, handler),
               upload);
}


ngx_int_t
ngx_http_xet_query_hub_batch(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const u_char *upload,
    ngx_uint_t batches, ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_bytes(p, upload, NGX_HTTP_XET_UPLOAD_LEN);
    ngx_http_xet_params_int4(p, (uint32_t) batches);

    if (ngx_http_xet_query_hub_rows(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_query_hub_leave(r,
               ngx_http_xet_send_hub_batch(r, NGX_HTTP_XET_WRITE, handler),
               upload);
}


ngx_int_t
ngx_http_xet_query_hub_duplicate(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_http_xet_hub_asked_t *to,
    ngx_http_xet_hub_batch_t *batch, ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_hub_params(r, asked);

    ngx_http_xet_params_int4(p, to->kind);
    ngx_http_xet_query_hub_text(p, &to->owner);
    ngx_http_xet_query_hub_text(p, &to->name);

    if (ngx_http_xet_query_hub_subject(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_xet_params_array(p, &batch->hashes);
    ngx_http_xet_params_array(p, &batch->sha256);

    return ngx_http_xet_send_hub_duplicate(r, NGX_HTTP_XET_WRITE, handler);
}


/*
 * A request that dies leaves what it has staged to the statement that is under
 * way: to be dropped when PostgreSQL is done with that.
 */

static ngx_int_t
ngx_http_xet_query_hub_leave(ngx_http_request_t *r, ngx_int_t rc,
    const u_char *upload)
{
    ngx_http_xet_query_t  *q;

    if (rc == NGX_AGAIN && upload) {
        q = ngx_http_xet_query_get(r);

        q->upload = upload;
        q->left = ngx_http_xet_query_hub_left;
    }

    return rc;
}


static ngx_uint_t
ngx_http_xet_query_hub_left(ngx_http_xet_query_t *q)
{
    u_char  *id;

    id = ngx_alloc(NGX_HTTP_XET_UPLOAD_LEN, ngx_cycle->log);
    if (id == NULL) {
        return 0;
    }

    ngx_memcpy(id, q->upload, NGX_HTTP_XET_UPLOAD_LEN);

    if (ngx_http_xet_lanes_bequeath(q->query,
                                    ngx_http_xet_query_hub_left_done, id)
        != NGX_OK)
    {
        ngx_free(id);
        return 0;
    }

    return 1;
}


static void
ngx_http_xet_query_hub_left_done(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    u_char *id = data;

    ngx_http_xet_pg_clear(res);
    ngx_http_xet_query_hub_unstage(id, 0);

    ngx_free(id);
}


/* For whom it counts what is added to a repo, and how many rows that may be. */

static ngx_int_t
ngx_http_xet_query_hub_rows(ngx_http_request_t *r, ngx_http_xet_params_t *p)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    if (ngx_http_xet_query_hub_subject(r, p) != NGX_OK) {
        return NGX_ERROR;
    }

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    ngx_http_xet_params_int4(p, (uint32_t) xlcf->hub_rows);

    return NGX_OK;
}


/* For whom it counts what is added to a repo. */

static ngx_int_t
ngx_http_xet_query_hub_subject(ngx_http_request_t *r,
    ngx_http_xet_params_t *p)
{
    ngx_str_t  subject;

    subject = ngx_http_xet_subject(r);

    if (subject.data == NULL) {
        return NGX_ERROR;
    }

    if (subject.len) {
        ngx_http_xet_params_bytes(p, subject.data, subject.len);

    } else {
        ngx_http_xet_params_null(p);
    }

    return NGX_OK;
}
