
/*
 * One function a statement: binds parameters, reads rows into structures.
 *
 * Every statement is one call of a function of sql/functions.sql, prepared
 * under the function's name, binary both ways.  A request has one statement
 * in flight at most; its rows stay in the query until the next statement, a
 * release, or the end of the request.  A request that dies detaches its
 * statement: PostgreSQL finishes it and the result is dropped.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_auth.h"
#include "ngx_http_xet_lanes.h"


enum {
    NGX_HTTP_XET_STMT_TERMS = 0,
    NGX_HTTP_XET_STMT_FILES,
    NGX_HTTP_XET_STMT_SLICES,
    NGX_HTTP_XET_STMT_XORB_PUT,
    NGX_HTTP_XET_STMT_XORB,
    NGX_HTTP_XET_STMT_FILE,
    NGX_HTTP_XET_STMT_CHUNK,
    NGX_HTTP_XET_STMT_ADVERTISED,
    NGX_HTTP_XET_STMT_STAGE,
    NGX_HTTP_XET_STMT_SHARD_PUT,
    NGX_HTTP_XET_STMT_FORGET,
    NGX_HTTP_XET_STMT_UNSTAGE,
    NGX_HTTP_XET_STMT_TELEMETRY,
    NGX_HTTP_XET_STMT_SWEEP,
    NGX_HTTP_XET_STMT_PING
};


#define NGX_HTTP_XET_BATCH_PARAMS                                             \
    "$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15"


const ngx_http_xet_pg_stmt_t  ngx_http_xet_query_stmts[] = {

    { "file_terms",
      "SELECT size, first_offset, packed FROM xet.file_terms($1, $2, $3, $4)",
      4 },

    { "files_terms",
      "SELECT n, size, first_offset, packed FROM xet.files_terms($1, $2)",
      2 },

    { "xorb_slices",
      "SELECT chunk_count, hashes, raw_ends, stored_ends"
      "  FROM xet.xorb_slices($1, $2, $3, $4)",
      4 },

    { "xorb_put",
      "SELECT xet.xorb_put($1, $2, $3, $4, $5, $6, $7)",
      7 },

    { "xorb_get",
      "SELECT stored_size, raw_size, chunk_count FROM xet.xorb_get($1)",
      1 },

    { "file_get",
      "SELECT size, sha256 FROM xet.file_get($1, $2)",
      2 },

    { "chunk_find",
      "SELECT hash, chunk_count, raw_size, stored_size, hashes, raw_ends,"
      "       noted FROM xet.chunk_find($1, $2)",
      2 },

    { "xorb_advertised",
      "SELECT xet.xorb_advertised($1)",
      1 },

    { "shard_stage",
      "SELECT xet.shard_stage(" NGX_HTTP_XET_BATCH_PARAMS ")",
      15 },

    { "shard_put",
      "SELECT xet.shard_put(" NGX_HTTP_XET_BATCH_PARAMS ", $16)",
      16 },

    { "repo_forget",
      "SELECT xet.repo_forget($1, $2)",
      2 },

    { "shard_unstage",
      "SELECT xet.shard_unstage($1)",
      1 },

    { "telemetry_put",
      "SELECT xet.telemetry_put($1, $2, $3, $4)",
      4 },

    { "sweep",
      "SELECT xet.sweep()",
      0 },

    { "ping",
      "SELECT 1",
      0 },

    { NULL, NULL, 0 }
};


static ngx_int_t ngx_http_xet_query_send(ngx_http_request_t *r,
    ngx_uint_t lane, ngx_uint_t stmt, const char *const *values,
    const int *lengths, ngx_http_xet_query_handler_pt handler);
static void ngx_http_xet_query_result(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static void ngx_http_xet_query_cleanup(void *data);
static void ngx_http_xet_query_orphan_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static void ngx_http_xet_query_pool_cleanup(void *data);
static void ngx_http_xet_query_repo(ngx_http_request_t *r,
    const char **value, int *length);
static void ngx_http_xet_query_telemetry_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static ngx_int_t ngx_http_xet_query_batch(ngx_http_request_t *r,
    ngx_uint_t stmt, ngx_http_xet_batch_t *b,
    ngx_http_xet_query_handler_pt handler);


static ngx_http_xet_query_t *
ngx_http_xet_query_get(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    return &ctx->query;
}


static ngx_int_t
ngx_http_xet_query_send(ngx_http_request_t *r, ngx_uint_t lane,
    ngx_uint_t stmt, const char *const *values, const int *lengths,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_cleanup_t    *cln;
    ngx_pool_cleanup_t    *pcln;
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    ngx_http_xet_query_release(r);

    if (!q->cleanup) {

        /* the request's death detaches; its pool's frees the rows */

        cln = ngx_http_cleanup_add(r, 0);
        if (cln == NULL) {
            return NGX_ERROR;
        }

        cln->handler = ngx_http_xet_query_cleanup;
        cln->data = q;

        pcln = ngx_pool_cleanup_add(r->pool, 0);
        if (pcln == NULL) {
            return NGX_ERROR;
        }

        pcln->handler = ngx_http_xet_query_pool_cleanup;
        pcln->data = q;

        q->cleanup = 1;
    }

    q->request = r;
    q->handler = handler;
    q->sqlstate[0] = '\0';

    q->query = ngx_http_xet_lanes_send(lane, &ngx_http_xet_query_stmts[stmt],
                                       values, lengths,
                                       ngx_http_xet_query_result, q);
    if (q->query == NULL) {
        return NGX_BUSY;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet query: \"%s\"", ngx_http_xet_query_stmts[stmt].name);

    return NGX_AGAIN;
}


static void
ngx_http_xet_query_result(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_connection_t      *c;
    ngx_http_request_t    *r;
    ngx_http_xet_query_t  *q;

    q = data;
    r = q->request;
    c = r->connection;

    q->query = NULL;
    q->upload = NULL;
    q->res = res;

    if (sqlstate) {
        ngx_cpystrn(q->sqlstate, (u_char *) sqlstate, sizeof(q->sqlstate));

        if (ngx_strncmp(sqlstate, "XT", 2) == 0) {
            rc = NGX_ABORT;
        }
    }

    if (rc == NGX_OK && ngx_http_xet_pg_rows(res) == 0) {
        rc = NGX_DECLINED;
    }

    ngx_http_set_log_request(c->log, r);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, c->log, 0, "xet query: done rc:%i", rc);

    q->handler(r, rc);

    ngx_http_run_posted_requests(c);
}


/*
 * A batch that is being staged while its request dies: PostgreSQL must have
 * finished it before it can be dropped.
 */

static void
ngx_http_xet_query_cleanup(void *data)
{
    ngx_http_xet_query_t *q = data;

    u_char  *id;

    if (q->query == NULL) {
        return;
    }

    id = NULL;

    if (q->upload && q->query->pg) {
        id = ngx_alloc(NGX_HTTP_XET_UPLOAD_LEN, ngx_cycle->log);
    }

    if (id) {
        ngx_memcpy(id, q->upload, NGX_HTTP_XET_UPLOAD_LEN);

        q->query->handler = ngx_http_xet_query_orphan_done;
        q->query->data = id;

        /* its parameters die with the request: it can't be sent again */

        q->query->tries = NGX_MAX_INT32_VALUE;

    } else {
        ngx_http_xet_lanes_detach(q->query);
    }

    q->query = NULL;
}


static void
ngx_http_xet_query_orphan_done(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    u_char *id = data;

    if (res) {
        ngx_http_xet_pg_clear(res);
    }

    ngx_http_xet_query_unstage(id);

    ngx_free(id);
}


static void
ngx_http_xet_query_pool_cleanup(void *data)
{
    ngx_http_xet_query_t  *q = data;

    if (q->res) {
        ngx_http_xet_pg_clear(q->res);
        q->res = NULL;
    }
}


void
ngx_http_xet_query_release(ngx_http_request_t *r)
{
    ngx_http_xet_query_pool_cleanup(ngx_http_xet_query_get(r));
}


ngx_int_t
ngx_http_xet_query_terms(ngx_http_request_t *r, const xet_hash_t *file,
    uint64_t first, uint64_t last, ngx_http_xet_query_handler_pt handler)
{
    int                    lengths[4] = { XET_HASH_LEN, 8, 8, 0 };
    const char            *values[4];
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    ngx_http_xet_put_be64(&q->numbers[0], ngx_min(first, NGX_MAX_OFF_T_VALUE));
    ngx_http_xet_put_be64(&q->numbers[1], ngx_min(last, NGX_MAX_OFF_T_VALUE));

    values[0] = (const char *) file->bytes;
    values[1] = (const char *) &q->numbers[0];
    values[2] = (const char *) &q->numbers[1];

    ngx_http_xet_query_repo(r, &values[3], &lengths[3]);

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_READ,
                                   NGX_HTTP_XET_STMT_TERMS, values, lengths,
                                   handler);
}


void
ngx_http_xet_query_terms_get(ngx_http_request_t *r,
    ngx_http_xet_terms_t *terms)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    terms->size = ngx_http_xet_pg_int(q->res, 0, 0);
    terms->n = ngx_http_xet_pg_rows(q->res);

    if (terms->n == 1 && ngx_http_xet_pg_null(q->res, 0, 2)) {
        terms->n = 0;
    }
}


void
ngx_http_xet_query_terms_row(ngx_http_request_t *r, ngx_uint_t i,
    uint64_t *first_offset, ngx_str_t *packed)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    *first_offset = ngx_http_xet_pg_int(q->res, i, 1);
    ngx_http_xet_pg_bytes(q->res, i, 2, packed);
}


ngx_int_t
ngx_http_xet_query_files(ngx_http_request_t *r, ngx_http_xet_array_t *files,
    ngx_http_xet_query_handler_pt handler)
{
    int          lengths[2];
    const char  *values[2];

    if (files->failed) {
        return NGX_ERROR;
    }

    ngx_http_xet_array_value(files, &values[0], &lengths[0]);
    ngx_http_xet_query_repo(r, &values[1], &lengths[1]);

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_READ,
                                   NGX_HTTP_XET_STMT_FILES, values, lengths,
                                   handler);
}


ngx_uint_t
ngx_http_xet_query_files_n(ngx_http_request_t *r)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    return q->res ? ngx_http_xet_pg_rows(q->res) : 0;
}


void
ngx_http_xet_query_files_row(ngx_http_request_t *r, ngx_uint_t i,
    ngx_http_xet_file_row_t *row)
{
    PGresult  *res;

    res = ngx_http_xet_query_get(r)->res;

    row->file = ngx_http_xet_pg_int(res, i, 0) - 1;
    row->size = ngx_http_xet_pg_int(res, i, 1);
    row->first_offset = ngx_http_xet_pg_int(res, i, 2);

    ngx_http_xet_pg_bytes(res, i, 3, &row->packed);
}


ngx_int_t
ngx_http_xet_query_slices(ngx_http_request_t *r, ngx_http_xet_array_t *xorbs,
    ngx_http_xet_array_t *starts, ngx_http_xet_array_t *ends,
    ngx_uint_t hashes, ngx_uint_t lane, ngx_http_xet_query_handler_pt handler)
{
    int          lengths[4];
    const char  *values[4];

    if (xorbs->failed || starts->failed || ends->failed) {
        return NGX_ERROR;
    }

    ngx_http_xet_array_value(xorbs, &values[0], &lengths[0]);
    ngx_http_xet_array_value(starts, &values[1], &lengths[1]);
    ngx_http_xet_array_value(ends, &values[2], &lengths[2]);

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


ngx_uint_t
ngx_http_xet_query_xorb_put_inserted(ngx_http_request_t *r)
{
    return ngx_http_xet_pg_int(ngx_http_xet_query_get(r)->res, 0, 0) != 0;
}


/* The repo whose files the request may see; SQL NULL for all of the store. */

static void
ngx_http_xet_query_repo(ngx_http_request_t *r, const char **value, int *length)
{
    ngx_str_t  *repo;

    repo = ngx_http_xet_repo(r);

    *value = repo ? (const char *) repo->data : NULL;
    *length = repo ? (int) repo->len : 0;
}


static ngx_int_t
ngx_http_xet_query_hash(ngx_http_request_t *r, ngx_uint_t lane,
    ngx_uint_t stmt, const xet_hash_t *hash,
    ngx_http_xet_query_handler_pt handler)
{
    int          lengths[2];
    const char  *values[2];

    values[0] = (const char *) hash->bytes;
    lengths[0] = XET_HASH_LEN;

    /* the second parameter, where there is one */

    if (stmt == NGX_HTTP_XET_STMT_CHUNK && !ngx_http_xet_dedup_in_repo(r)) {
        values[1] = NULL;
        lengths[1] = 0;

    } else {
        ngx_http_xet_query_repo(r, &values[1], &lengths[1]);
    }

    return ngx_http_xet_query_send(r, lane, stmt, values, lengths, handler);
}


ngx_int_t
ngx_http_xet_query_xorb(ngx_http_request_t *r, const xet_hash_t *xorb,
    ngx_http_xet_query_handler_pt handler)
{
    return ngx_http_xet_query_hash(r, NGX_HTTP_XET_READ,
                                   NGX_HTTP_XET_STMT_XORB, xorb, handler);
}


uint64_t
ngx_http_xet_query_xorb_stored(ngx_http_request_t *r)
{
    return ngx_http_xet_pg_int(ngx_http_xet_query_get(r)->res, 0, 0);
}


ngx_int_t
ngx_http_xet_query_file(ngx_http_request_t *r, const xet_hash_t *file,
    ngx_http_xet_query_handler_pt handler)
{
    return ngx_http_xet_query_hash(r, NGX_HTTP_XET_READ,
                                   NGX_HTTP_XET_STMT_FILE, file, handler);
}


uint64_t
ngx_http_xet_query_file_size(ngx_http_request_t *r)
{
    return ngx_http_xet_pg_int(ngx_http_xet_query_get(r)->res, 0, 0);
}


ngx_int_t
ngx_http_xet_query_chunk(ngx_http_request_t *r, const xet_hash_t *chunk,
    ngx_http_xet_query_handler_pt handler)
{
    return ngx_http_xet_query_hash(r, NGX_HTTP_XET_READ,
                                   NGX_HTTP_XET_STMT_CHUNK, chunk, handler);
}


ngx_uint_t
ngx_http_xet_query_chunk_n(ngx_http_xet_query_t *q)
{
    return ngx_http_xet_pg_rows(q->res);
}


void
ngx_http_xet_query_chunk_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_xorb_list_t *xorb, ngx_uint_t *noted)
{
    ngx_str_t  hash, hashes, raw;

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
    xorb->hashes = hashes.data;
    xorb->raw_ends = raw.data;
}


ngx_int_t
ngx_http_xet_query_advertised(ngx_http_request_t *r,
    ngx_http_xet_array_t *xorbs, ngx_http_xet_query_handler_pt handler)
{
    int          length;
    const char  *value;

    if (xorbs->failed) {
        return NGX_ERROR;
    }

    ngx_http_xet_array_value(xorbs, &value, &length);

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_WRITE,
                                   NGX_HTTP_XET_STMT_ADVERTISED, &value,
                                   &length, handler);
}


static ngx_int_t
ngx_http_xet_query_batch(ngx_http_request_t *r, ngx_uint_t stmt,
    ngx_http_xet_batch_t *b, ngx_http_xet_query_handler_pt handler)
{
    int                    lengths[3 + NGX_HTTP_XET_BATCH_ARRAYS];
    ngx_int_t              rc;
    ngx_uint_t             i;
    const char            *values[3 + NGX_HTTP_XET_BATCH_ARRAYS];
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

    ngx_http_xet_query_repo(r, &values[2 + i], &lengths[2 + i]);

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


ngx_uint_t
ngx_http_xet_query_shard_put_new(ngx_http_request_t *r)
{
    return ngx_http_xet_pg_int(ngx_http_xet_query_get(r)->res, 0, 0) != 0;
}


ngx_int_t
ngx_http_xet_query_forget(ngx_http_request_t *r, ngx_str_t *repo,
    const xet_hash_t *file, ngx_http_xet_query_handler_pt handler)
{
    int          lengths[2];
    const char  *values[2];

    values[0] = (const char *) repo->data;
    lengths[0] = (int) repo->len;
    values[1] = (const char *) file->bytes;
    lengths[1] = XET_HASH_LEN;

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_WRITE,
                                   NGX_HTTP_XET_STMT_FORGET, values, lengths,
                                   handler);
}


ngx_uint_t
ngx_http_xet_query_forgotten(ngx_http_request_t *r)
{
    return ngx_http_xet_pg_int(ngx_http_xet_query_get(r)->res, 0, 0) != 0;
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


/*
 * One report at a time, and none when others wait: a table that somebody has
 * locked must not take the sessions of uploads.
 */

#define NGX_HTTP_XET_TELEMETRY_WAITING  16

static ngx_uint_t  ngx_http_xet_telemetry_inflight;


ngx_int_t
ngx_http_xet_query_telemetry(xet_telemetry_t *t)
{
    int                       lengths[4];
    const char               *values[4];
    xet_telemetry_t          *own;
    ngx_http_xet_lane_stat_t  stat;

    ngx_http_xet_lanes_stat(NGX_HTTP_XET_WRITE, &stat);

    if (ngx_http_xet_telemetry_inflight
        || stat.waiting >= NGX_HTTP_XET_TELEMETRY_WAITING)
    {
        return NGX_BUSY;
    }

    own = ngx_alloc(sizeof(xet_telemetry_t), ngx_cycle->log);
    if (own == NULL) {
        return NGX_ERROR;
    }

    *own = *t;

    values[0] = own->event;
    lengths[0] = (int) own->event_len;
    values[1] = own->session;
    lengths[1] = (int) own->session_len;
    values[2] = own->agent;
    lengths[2] = (int) own->agent_len;
    values[3] = own->metrics;
    lengths[3] = (int) own->metrics_len;

    if (ngx_http_xet_lanes_send(NGX_HTTP_XET_WRITE,
                        &ngx_http_xet_query_stmts[NGX_HTTP_XET_STMT_TELEMETRY],
                        values, lengths, ngx_http_xet_query_telemetry_done,
                        own)
        == NULL)
    {
        ngx_free(own);
        return NGX_BUSY;
    }

    ngx_http_xet_telemetry_inflight = 1;

    return NGX_OK;
}


static void
ngx_http_xet_query_telemetry_done(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    xet_telemetry_t *t = data;

    ngx_http_xet_telemetry_inflight = 0;

    if (res) {
        ngx_http_xet_pg_clear(res);
    }

    xet_telemetry_free(t);
    ngx_free(t);
}


ngx_int_t
ngx_http_xet_query_ping(ngx_http_request_t *r,
    ngx_http_xet_query_handler_pt handler)
{
    return ngx_http_xet_query_send(r, NGX_HTTP_XET_READ, NGX_HTTP_XET_STMT_PING,
                                   NULL, NULL, handler);
}
