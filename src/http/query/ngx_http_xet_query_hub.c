
/*
 * Helpers for Hub statements: fill batches of operations, and read rows.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


static void ngx_http_xet_query_hub_said(ngx_http_xet_array_t *a, int64_t n);


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

    return ngx_http_xet_columns_failed(b) ? XET_NOMEM : XET_OK;
}


/* Adds n to the array, or NULL if n is -1: the client has sent no number. */

static void
ngx_http_xet_query_hub_said(ngx_http_xet_array_t *a, int64_t n)
{
    if (n == -1) {
        ngx_http_xet_array_null(a);
        return;
    }

    ngx_http_xet_array_int8(a, n);
}


void
ngx_http_xet_query_hub_get(ngx_http_request_t *r,
    ngx_http_xet_hub_answer_t *answer)
{
    ngx_http_xet_hub_begin_row_t  row;

    (void) ngx_http_xet_row(r, hub_begin, 0, &row);

    *answer = row.answer;
}


ngx_int_t
ngx_http_xet_query_hub_enter(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked, const ngx_str_t *rev,
    ngx_uint_t writes, ngx_http_xet_query_handler_pt handler)
{
    if (writes) {
        ngx_http_xet_query_primary(r);
    }

    return ngx_http_xet_query(r, hub_enter, handler, .asked = asked,
                              .rev = *rev, .writes = writes);
}


ngx_int_t
ngx_http_xet_query_hub_stage(ngx_http_request_t *r, const u_char *upload,
    ngx_uint_t seq, ngx_http_xet_hub_batch_t *batch,
    ngx_http_xet_query_handler_pt handler)
{
    return ngx_http_xet_query_leave(r,
               ngx_http_xet_query(r, hub_stage, handler, .upload = upload,
                                  .seq = seq, .ops = &batch->ops,
                                  .paths = &batch->paths,
                                  .sizes = &batch->sizes,
                                  .hashes = &batch->hashes,
                                  .sha256 = &batch->sha256,
                                  .mtimes = &batch->mtimes,
                                  .types = &batch->types,
                                  .sources = &batch->sources),
               upload, 1);
}


ngx_uint_t
ngx_http_xet_query_hub_nodes(ngx_http_request_t *r)
{
    return ngx_http_xet_query_rows(ngx_http_xet_ctx_of(r)->query) - 1;
}


/*
 * Reads an entry.  The rows of hub_tree_rows and hub_paths_rows have the same
 * columns.
 */

ngx_int_t
ngx_http_xet_query_hub_node(ngx_http_request_t *r, ngx_uint_t i,
    xet_hub_node_t *node)
{
    ngx_int_t                         rc;
    ngx_http_xet_hub_tree_rows_row_t  row;

    rc = ngx_http_xet_row(r, hub_tree_rows, i + 1, &row);

    node->path.data = row.entry.data;
    node->path.len = row.entry.len;
    node->size = row.size;
    node->at = row.made_at;
    node->mtime = row.mtime;
    node->title.data = row.title.data;
    node->title.len = row.title.len;
    node->hash = (const uint8_t *) row.hash;
    node->sha256 = row.sha256;
    node->made = row.made;

    return rc;
}
