
/*
 * The table of statements, generated from statements.def.  For each statement
 * it contains the SQL, the pool, the servers that may execute it, and the
 * functions that pack its arguments and read its rows.
 *
 * The SQL is generated from the row: "SELECT columns FROM xet.NAME($1, ...)",
 * or "SELECT xet.NAME($1, ...)" for a function that returns one value.
 * PostgreSQL gets the types of the parameters when it parses a statement, and
 * returns an error if the function has other types.  The session compares the
 * types of the columns (ngx_http_xet_pg.c).
 *
 * The table is written once, when a worker starts.  After that the event loop
 * and threads only read it.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"

#include <openssl/rand.h>


/* PostgreSQL's times are microseconds since 2000 */
#define NGX_HTTP_XET_PG_EPOCH  946684800000000LL

#define NGX_HTTP_XET_OF_hash    17
#define NGX_HTTP_XET_OF_sha256  17
#define NGX_HTTP_XET_OF_oid     17
#define NGX_HTTP_XET_OF_id      17
#define NGX_HTTP_XET_OF_bytes   17
#define NGX_HTTP_XET_OF_text    25
#define NGX_HTTP_XET_OF_int4    23
#define NGX_HTTP_XET_OF_int8    20
#define NGX_HTTP_XET_OF_offset  20
#define NGX_HTTP_XET_OF_count   20
#define NGX_HTTP_XET_OF_bool    16
#define NGX_HTTP_XET_OF_maybe   16
#define NGX_HTTP_XET_OF_time    1184
#define NGX_HTTP_XET_OF_int4s   1007
#define NGX_HTTP_XET_OF_int8s   1016
#define NGX_HTTP_XET_OF_byteas  1001
#define NGX_HTTP_XET_OF_texts   1009

#define NGX_HTTP_XET_OF_hash_or_null    NGX_HTTP_XET_OF_hash
#define NGX_HTTP_XET_OF_sha256_or_null  NGX_HTTP_XET_OF_sha256
#define NGX_HTTP_XET_OF_oid_or_null     NGX_HTTP_XET_OF_oid
#define NGX_HTTP_XET_OF_int8_part       NGX_HTTP_XET_OF_int8s
#define NGX_HTTP_XET_OF_bytea_part      NGX_HTTP_XET_OF_byteas


/* State of packing the arguments of a statement into parameters. */

typedef struct {
    ngx_http_xet_params_t  *params;
    ngx_http_request_t     *request;           /* NULL: no request */
    ngx_pool_t             *copies;            /* NULL: values not copied */
    ngx_uint_t              all;               /* send NAME_all */
    ngx_uint_t              failed;            /* out of memory */
} ngx_http_xet_pack_t;


/* State of reading a row. */

typedef struct {
    PGresult   *res;
    ngx_int_t   row;
    ngx_int_t   column;                        /* index of the next column */
    ngx_int_t   rc;
} ngx_http_xet_cells_t;


typedef struct {
    const char                    *name;
    const char                    *text;       /* SQL; NULL: generate it */
    void                         (*pack)(ngx_http_xet_pack_t *p,
                                         const void *args);
    void                         (*read)(ngx_http_xet_cells_t *c, void *row);
    const uint32_t                *types;      /* ends with 0 */
    const ngx_http_xet_column_t   *columns;    /* ends with type 0 */
    ngx_http_xet_way_t             way;
    ngx_uint_t                     all;        /* 1: this is NAME_all */
    ngx_uint_t                     asked;      /* members of xet.hub_asked */
    ngx_uint_t                     acts;
    ngx_uint_t                     forgets;
} ngx_http_xet_statement_t;


static ngx_int_t ngx_http_xet_statement_text(ngx_http_xet_pg_stmt_t *stmt,
    const ngx_http_xet_statement_t *s, ngx_pool_t *pool);
static ngx_uint_t ngx_http_xet_complete_any(ngx_http_xet_query_t *q,
    PGresult *res);
static ngx_uint_t ngx_http_xet_complete_files(ngx_http_xet_query_t *q,
    PGresult *res);
static ngx_uint_t ngx_http_xet_complete_slices(ngx_http_xet_query_t *q,
    PGresult *res);
static ngx_uint_t ngx_http_xet_complete_found(ngx_http_xet_query_t *q,
    PGresult *res);
static ngx_uint_t ngx_http_xet_complete_all(ngx_http_xet_query_t *q,
    PGresult *res);


/*
 * The pack functions: each adds the parameters for a value of one type, or for
 * values of the request.
 */

static ngx_inline void
ngx_http_xet_pack_some(ngx_http_xet_pack_t *p, const void *data, size_t len)
{
    u_char  *copy;

    /*
     * allocate one more byte: with a length of 0, the pointer must not be NULL,
     * which would mean SQL NULL
     */

    if (data && p->copies) {
        copy = ngx_pnalloc(p->copies, len + 1);
        if (copy == NULL) {
            p->failed = 1;
            return;
        }

        ngx_memcpy(copy, data, len);
        data = copy;
    }

    ngx_http_xet_params_bytes(p->params, data, data ? len : 0);
}


static ngx_inline void
ngx_http_xet_pack_hash(ngx_http_xet_pack_t *p, const xet_hash_t *hash)
{
    ngx_http_xet_pack_some(p, hash, XET_HASH_LEN);
}


static ngx_inline void
ngx_http_xet_pack_sha256(ngx_http_xet_pack_t *p, const u_char *sha256)
{
    ngx_http_xet_pack_some(p, sha256, XET_DIGEST_SHA256_LEN);
}


static ngx_inline void
ngx_http_xet_pack_id(ngx_http_xet_pack_t *p, const u_char *id)
{
    ngx_http_xet_pack_some(p, id, NGX_HTTP_XET_UPLOAD_LEN);
}


static ngx_inline void
ngx_http_xet_pack_bytes(ngx_http_xet_pack_t *p, ngx_str_t bytes)
{
    ngx_http_xet_pack_some(p, bytes.data, bytes.len);
}


static ngx_inline void
ngx_http_xet_pack_text(ngx_http_xet_pack_t *p, ngx_str_t text)
{
    ngx_http_xet_pack_some(p, text.data, text.len);
}


static ngx_inline void
ngx_http_xet_pack_int4(ngx_http_xet_pack_t *p, uint32_t n)
{
    ngx_http_xet_params_int4(p->params, n);
}


static ngx_inline void
ngx_http_xet_pack_int8(ngx_http_xet_pack_t *p, uint64_t n)
{
    ngx_http_xet_params_int8(p->params, n);
}


static ngx_inline void
ngx_http_xet_pack_offset(ngx_http_xet_pack_t *p, uint64_t n)
{
    ngx_http_xet_params_int8(p->params, ngx_min(n, NGX_MAX_OFF_T_VALUE));
}


static ngx_inline void
ngx_http_xet_pack_count(ngx_http_xet_pack_t *p, int64_t n)
{
    if (n < 0) {
        ngx_http_xet_params_null(p->params);

    } else {
        ngx_http_xet_params_int8(p->params, (uint64_t) n);
    }
}


static ngx_inline void
ngx_http_xet_pack_bool(ngx_http_xet_pack_t *p, ngx_uint_t set)
{
    ngx_http_xet_params_bool(p->params, set);
}


static ngx_inline void
ngx_http_xet_pack_maybe(ngx_http_xet_pack_t *p, ngx_int_t set)
{
    if (set == -1) {
        ngx_http_xet_params_null(p->params);

    } else {
        ngx_http_xet_params_bool(p->params, set);
    }
}


static void
ngx_http_xet_pack_array(ngx_http_xet_pack_t *p, ngx_http_xet_array_t *a,
    uint32_t type)
{
    int          len;
    const char  *value;

    if (a == NULL) {
        ngx_http_xet_params_null(p->params);
        return;
    }

    if (a->failed) {
        p->failed = 1;
        return;
    }

    ngx_http_xet_array_value(a, type, &value, &len);
    ngx_http_xet_pack_some(p, value, len);
}


#define ngx_http_xet_pack_int4s(p, a)                                         \
    ngx_http_xet_pack_array(p, a, NGX_HTTP_XET_OF_int4)
#define ngx_http_xet_pack_int8s(p, a)                                         \
    ngx_http_xet_pack_array(p, a, NGX_HTTP_XET_OF_int8)
#define ngx_http_xet_pack_byteas(p, a)                                        \
    ngx_http_xet_pack_array(p, a, NGX_HTTP_XET_OF_bytes)
#define ngx_http_xet_pack_texts(p, a)                                         \
    ngx_http_xet_pack_array(p, a, NGX_HTTP_XET_OF_text)


/*
 * Packs the next elements of an array, and stores their number in the member
 * "files" of the request's query.
 */

static void
ngx_http_xet_pack_part(ngx_http_xet_pack_t *p, ngx_http_xet_taken_t part,
    uint32_t type)
{
    int                  len;
    const char          *value;
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(p->request, ngx_http_xet_module);

    ctx->query->files = ngx_http_xet_array_take(part.array, type, part.n,
                                                &value, &len);

    ngx_http_xet_params_bytes(p->params, value, len);
}


#define ngx_http_xet_pack_int8_part(p, part)                                  \
    ngx_http_xet_pack_part(p, part, NGX_HTTP_XET_OF_int8)
#define ngx_http_xet_pack_bytea_part(p, part)                                 \
    ngx_http_xet_pack_part(p, part, NGX_HTTP_XET_OF_bytes)


static ngx_inline void
ngx_http_xet_pack_act(ngx_http_xet_pack_t *p)
{
    u_char  *act;

    act = ngx_pnalloc(p->copies ? p->copies : p->request->pool,
                      NGX_HTTP_XET_UPLOAD_LEN);

    if (act == NULL || RAND_bytes(act, NGX_HTTP_XET_UPLOAD_LEN) != 1) {
        p->failed = 1;
        return;
    }

    ngx_http_xet_params_bytes(p->params, act, NGX_HTTP_XET_UPLOAD_LEN);
}


static ngx_inline void
ngx_http_xet_pack_subject(ngx_http_xet_pack_t *p)
{
    ngx_str_t  subject;

    subject = ngx_http_xet_subject(p->request);

    if (subject.data == NULL) {
        p->failed = 1;
        return;
    }

    ngx_http_xet_pack_some(p, subject.len ? subject.data : NULL, subject.len);
}


static ngx_inline void
ngx_http_xet_pack_most(ngx_http_xet_pack_t *p)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(p->request, ngx_http_xet_module);

    ngx_http_xet_params_int4(p->params, (uint32_t) xlcf->hub_rows);
}


static ngx_inline void
ngx_http_xet_pack_asked(ngx_http_xet_pack_t *p,
    const ngx_http_xet_hub_asked_t *asked)
{
    ngx_http_xet_pack_int4(p, asked->kind);
    ngx_http_xet_pack_text(p, asked->owner);
    ngx_http_xet_pack_text(p, asked->name);
    ngx_http_xet_pack_bool(p, asked->any_space);
    ngx_http_xet_pack_texts(p, asked->spaces);
    ngx_http_xet_pack_bool(p, asked->any_store);
    ngx_http_xet_pack_text(p, asked->store);
}


/* Casts const away: packing changes only the headers of the arrays. */

static ngx_inline void
ngx_http_xet_pack_batch(ngx_http_xet_pack_t *p,
    const ngx_http_xet_batch_t *batch)
{
    ngx_http_xet_batch_t *b = (ngx_http_xet_batch_t *) batch;

    ngx_http_xet_pack_id(p, b->id);
    ngx_http_xet_pack_int4(p, (uint32_t) b->seq);
    ngx_http_xet_pack_int8s(p, &b->columns.serials);
    ngx_http_xet_pack_byteas(p, &b->columns.hashes);
    ngx_http_xet_pack_int8s(p, &b->columns.sizes);
    ngx_http_xet_pack_byteas(p, &b->columns.sha256);
    ngx_http_xet_pack_int8s(p, &b->columns.counts);
    ngx_http_xet_pack_byteas(p, &b->columns.packed);
    ngx_http_xet_pack_byteas(p, &b->columns.chunks);
    ngx_http_xet_pack_byteas(p, &b->columns.xorbs);
    ngx_http_xet_pack_int4s(p, &b->columns.indexes);
    ngx_http_xet_pack_int8s(p, &b->columns.seg_serials);
    ngx_http_xet_pack_int8s(p, &b->columns.seg_firsts);
    ngx_http_xet_pack_int8s(p, &b->columns.seg_ends);
    ngx_http_xet_pack_byteas(p, &b->columns.seg_packed);
}


static ngx_inline void
ngx_http_xet_pack_whose(ngx_http_xet_pack_t *p)
{
    ngx_http_xet_repo_t  repo;

    ngx_http_xet_repo(p->request, &repo);

    ngx_http_xet_params_bool(p->params, repo.any);
    ngx_http_xet_params_bytes(p->params, repo.name.data, repo.name.len);

    ngx_http_xet_pack_subject(p);
}


static ngx_inline void
ngx_http_xet_pack_seen(ngx_http_xet_pack_t *p)
{
    ngx_http_xet_repo_t  repo;

    ngx_http_xet_repo(p->request, &repo);

    p->all = repo.any;

    if (!p->all) {
        ngx_http_xet_params_bool(p->params, 0);
        ngx_http_xet_params_bytes(p->params, repo.name.data, repo.name.len);
    }
}


/* The read functions: each reads the next column. */

static ngx_inline void
ngx_http_xet_read_text(ngx_http_xet_cells_t *c, ngx_str_t *text)
{
    if (ngx_http_xet_pg_null(c->res, c->row, c->column)) {
        ngx_str_null(text);

    } else {
        ngx_http_xet_pg_bytes(c->res, c->row, c->column, text);
    }

    c->column++;
}


#define ngx_http_xet_read_bytes  ngx_http_xet_read_text


/*
 * Returns the value, or NULL if the column is NULL or the row is malformed.
 * The row is malformed if the value does not have this length, or is NULL
 * although or_null is 0.
 */

static ngx_inline const u_char *
ngx_http_xet_read_fixed(ngx_http_xet_cells_t *c, size_t len, ngx_uint_t or_null)
{
    ngx_str_t  bytes;

    ngx_http_xet_read_text(c, &bytes);

    if (bytes.len == len) {
        return bytes.data;
    }

    if (bytes.len || !or_null) {
        c->rc = NGX_ERROR;
    }

    return NULL;
}


#define ngx_http_xet_read_hash(c, to)                                         \
    *(to) = (const xet_hash_t *) ngx_http_xet_read_fixed(c, XET_HASH_LEN, 0)
#define ngx_http_xet_read_hash_or_null(c, to)                                 \
    *(to) = (const xet_hash_t *) ngx_http_xet_read_fixed(c, XET_HASH_LEN, 1)
#define ngx_http_xet_read_sha256(c, to)                                       \
    *(to) = ngx_http_xet_read_fixed(c, XET_DIGEST_SHA256_LEN, 0)
#define ngx_http_xet_read_sha256_or_null(c, to)                               \
    *(to) = ngx_http_xet_read_fixed(c, XET_DIGEST_SHA256_LEN, 1)
#define ngx_http_xet_read_oid_or_null(c, to)                                  \
    *(to) = ngx_http_xet_read_fixed(c, XET_HUB_OID_LEN / 2, 1)


static ngx_inline void
ngx_http_xet_read_int4(ngx_http_xet_cells_t *c, uint32_t *n)
{
    *n = (uint32_t) ngx_http_xet_pg_int(c->res, c->row, c->column++);
}


static ngx_inline void
ngx_http_xet_read_int8(ngx_http_xet_cells_t *c, uint64_t *n)
{
    *n = (uint64_t) ngx_http_xet_pg_int(c->res, c->row, c->column++);
}


static ngx_inline void
ngx_http_xet_read_count(ngx_http_xet_cells_t *c, int64_t *n)
{
    *n = ngx_http_xet_pg_null(c->res, c->row, c->column)
         ? -1 : ngx_http_xet_pg_int(c->res, c->row, c->column);

    c->column++;
}


static ngx_inline void
ngx_http_xet_read_bool(ngx_http_xet_cells_t *c, ngx_uint_t *set)
{
    *set = (ngx_http_xet_pg_int(c->res, c->row, c->column++) != 0);
}


static ngx_inline void
ngx_http_xet_read_time(ngx_http_xet_cells_t *c, int64_t *at)
{
    *at = XET_HUB_NO_TIME;

    if (!ngx_http_xet_pg_null(c->res, c->row, c->column)) {
        *at = ngx_http_xet_pg_int(c->res, c->row, c->column);
        *at = (*at > INT64_MAX - NGX_HTTP_XET_PG_EPOCH)
              ? INT64_MAX : *at + NGX_HTTP_XET_PG_EPOCH;
    }

    c->column++;
}


static ngx_inline void
ngx_http_xet_read_answer(ngx_http_xet_cells_t *c,
    ngx_http_xet_hub_answer_t *answer)
{
    uint32_t  status;

    ngx_http_xet_read_int4(c, &status);
    answer->status = status;

    ngx_http_xet_read_text(c, &answer->code);
    ngx_http_xet_read_text(c, &answer->message);
    ngx_http_xet_read_text(c, &answer->body);
    ngx_http_xet_read_text(c, &answer->more);
}


/* The expansion of each row of statements.def. */

#define XET_PARAM(type, name)  ngx_http_xet_pack_##type(p, a->name);
#define XET_FROM(what, types)  ngx_http_xet_pack_##what(p);
#define XET_MEMBER(what, type, name, types)                                   \
    ngx_http_xet_pack_##what(p, a->name);
#define XET_STATEMENT(name, way, again, client, params, columns)              \
                                                                              \
static void                                                                   \
ngx_http_xet_pack_of_##name(ngx_http_xet_pack_t *p, const void *args)         \
{                                                                             \
    const ngx_http_xet_##name##_args_t *a = args;                             \
                                                                              \
    (void) a;                                                                 \
    params                                                                    \
}

#include "statements.def"


#define XET_COLUMN(type, name)  ngx_http_xet_read_##type(c, &at->name);
#define XET_CELLS(what, type, name, cells)                                    \
    ngx_http_xet_read_##what(c, &at->name);
#define XET_STATEMENT(name, way, again, client, params, columns)              \
                                                                              \
static void                                                                   \
ngx_http_xet_read_of_##name(ngx_http_xet_cells_t *c, void *row)               \
{                                                                             \
    ngx_http_xet_##name##_row_t *at = row;                                    \
                                                                              \
    (void) at;                                                                \
    columns                                                                   \
}

#include "statements.def"


#define XET_TYPE(type)         NGX_HTTP_XET_OF_##type,
#define XET_PARAM(type, name)  NGX_HTTP_XET_OF_##type,
#define XET_FROM(what, types)  types
#define XET_MEMBER(what, type, name, types)  types
#define XET_COLUMN(type, name)  { #name, NGX_HTTP_XET_OF_##type },
#define XET_CELL(type, name)    { #name, NGX_HTTP_XET_OF_##type },
#define XET_CELLS(what, type, name, cells)  cells
#define XET_RETURNS(type)       { NULL, NGX_HTTP_XET_OF_##type },
#define XET_STATEMENT(name, way, again, client, params, columns)              \
                                                                              \
static const uint32_t  ngx_http_xet_types_of_##name[] = { params 0 };         \
static const ngx_http_xet_column_t  ngx_http_xet_columns_of_##name[] = {      \
    columns { NULL, 0 }                                                       \
};

#include "statements.def"


#define XET_SQL(name, text)  [ngx_http_xet_stmt_##name] = text,

static const char *const  ngx_http_xet_texts[ngx_http_xet_stmt_none + 1] = {
#include "statements.def"
    [ngx_http_xet_stmt_none] = NULL
};


#define NGX_HTTP_XET_BY_READ   { NGX_HTTP_XET_READ, 0, 0, NULL }
#define NGX_HTTP_XET_BY_WRITE  { NGX_HTTP_XET_WRITE, 0, 0, NULL }
#define NGX_HTTP_XET_BY_PING   { NGX_HTTP_XET_PING, 0, 0, NULL }
#define NGX_HTTP_XET_BY_STANDBY(pool, complete)                               \
    { NGX_HTTP_XET_##pool, NGX_HTTP_XET_ASK_ANY, 0,                           \
      ngx_http_xet_complete_##complete }

#define NGX_HTTP_XET_BY_LONG    { NGX_HTTP_XET_READ, 0, 1, NULL }
#define NGX_HTTP_XET_BY_NAMED(complete)                                       \
    { NGX_HTTP_XET_READ, NGX_HTTP_XET_ASK_NAMED, 0,                           \
      ngx_http_xet_complete_##complete }
#define NGX_HTTP_XET_BY_LONG_NAMED(complete)                                  \
    { NGX_HTTP_XET_READ, NGX_HTTP_XET_ASK_NAMED, 1,                           \
      ngx_http_xet_complete_##complete }

#define NGX_HTTP_XET_CLIENT_ANY    0
#define NGX_HTTP_XET_CLIENT_HIDES  0
#define NGX_HTTP_XET_CLIENT_WAITS  1

#define NGX_HTTP_XET_FORGET_ANY    0
#define NGX_HTTP_XET_FORGET_WAITS  1
#define NGX_HTTP_XET_FORGET_HIDES  1

#define NGX_HTTP_XET_ROW_asked  .asked = 7,
#define NGX_HTTP_XET_ROW_batch

#define XET_MEMBER(what, type, name, types)  NGX_HTTP_XET_ROW_##what
#define XET_STATEMENT(statement, how, again, client, params, cols)            \
    [ngx_http_xet_stmt_##statement] = {                                       \
        params                                                                \
        .name = #statement,                                                   \
        .pack = ngx_http_xet_pack_of_##statement,                             \
        .read = ngx_http_xet_read_of_##statement,                             \
        .types = ngx_http_xet_types_of_##statement,                           \
        .columns = ngx_http_xet_columns_of_##statement,                       \
        .way = NGX_HTTP_XET_BY_##how,                                        \
        .acts = NGX_HTTP_XET_CLIENT_##client,                                 \
        .forgets = NGX_HTTP_XET_FORGET_##client                               \
    },
#define XET_ALL_OF(statement)                                                 \
    [ngx_http_xet_stmt_##statement##_all] = {                                 \
        .name = #statement,                                                   \
        .read = ngx_http_xet_read_of_##statement,                             \
        .types = ngx_http_xet_types_of_##statement,                           \
        .columns = ngx_http_xet_columns_of_##statement,                       \
        .all = 1                                                              \
    },

static const ngx_http_xet_statement_t
    ngx_http_xet_statements[ngx_http_xet_stmt_none + 1] = {
#include "statements.def"
    [ngx_http_xet_stmt_none] = { .name = NULL }
};


ngx_http_xet_pg_stmt_t  ngx_http_xet_query_stmts[ngx_http_xet_stmt_none + 1];


ngx_int_t
ngx_http_xet_statements_init(ngx_pool_t *pool)
{
    ngx_uint_t                       i;
    ngx_http_xet_pg_stmt_t          *stmt;
    const ngx_http_xet_statement_t  *s;

    for (i = 0; i < ngx_http_xet_stmt_none; i++) {
        s = &ngx_http_xet_statements[i];
        stmt = &ngx_http_xet_query_stmts[i];

        stmt->types = s->types;
        stmt->columns = s->columns;
        stmt->longs = s->way.longs;
        stmt->forgets = s->forgets;

        for (stmt->params = 0; s->types[stmt->params]; stmt->params++) {
            /* void */
        }

        if (s->all) {
            stmt->params -= 2;                 /* XET_SEEN is constant */
        }

        if (ngx_http_xet_statement_text(stmt, s, pool) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* Generates the name and the SQL of a statement. */

static ngx_int_t
ngx_http_xet_statement_text(ngx_http_xet_pg_stmt_t *stmt,
    const ngx_http_xet_statement_t *s, ngx_pool_t *pool)
{
    u_char                       *p, *name;
    size_t                        size;
    ngx_uint_t                    i;
    const ngx_http_xet_column_t  *c;

    size = sizeof("SELECT  FROM xet.(ROW(), true, '')") + ngx_strlen(s->name)
           + stmt->params * sizeof("$99, ");

    for (c = s->columns; c->type; c++) {
        size += c->name ? ngx_strlen(c->name) + 2 : 0;
    }

    name = ngx_pnalloc(pool, ngx_strlen(s->name) + sizeof("_all"));
    p = ngx_pnalloc(pool, size);

    if (name == NULL || p == NULL) {
        return NGX_ERROR;
    }

    *ngx_sprintf(name, "%s%s", s->name, s->all ? "_all" : "") = '\0';

    stmt->name = (char *) name;
    stmt->sql = (char *) p;

    p = ngx_cpymem(p, "SELECT ", 7);

    for (c = s->columns; c->name; c++) {
        p = ngx_sprintf(p, "%s%s", (c == s->columns) ? "" : ", ", c->name);
    }

    p = ngx_sprintf(p, "%sxet.%s(", (c == s->columns) ? "" : " FROM ", s->name);

    for (i = 1; i <= stmt->params; i++) {
        p = ngx_sprintf(p, "%s%s$%ui%s", (i == 1) ? "" : ", ",
                        (i == 1 && s->asked) ? "ROW(" : "", i,
                        (i == s->asked) ? ")" : "");
    }

    *ngx_sprintf(p, "%s)", s->all ? ", true, ''" : "") = '\0';

    if (ngx_http_xet_texts[s - ngx_http_xet_statements]) {
        stmt->sql = ngx_http_xet_texts[s - ngx_http_xet_statements];
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_statement_pack(ngx_http_xet_stmt_e *stmt, const void *args,
    ngx_http_xet_params_t *params, ngx_http_request_t *r, ngx_pool_t *copies)
{
    ngx_http_xet_pack_t  p;

    ngx_memzero(&p, sizeof(ngx_http_xet_pack_t));

    p.params = params;
    p.request = r;
    p.copies = copies;

    ngx_http_xet_statements[*stmt].pack(&p, args);

    /* NAME_all is the element after NAME */

    *stmt += p.all;

    return p.failed ? NGX_ERROR : NGX_OK;
}


const ngx_http_xet_way_t *
ngx_http_xet_statement_way(ngx_http_xet_stmt_e stmt)
{
    return &ngx_http_xet_statements[stmt].way;
}


ngx_uint_t
ngx_http_xet_statement_acts(ngx_http_xet_stmt_e stmt)
{
    return ngx_http_xet_statements[stmt].acts;
}


ngx_int_t
ngx_http_xet_read_row(ngx_http_xet_stmt_e stmt, PGresult *res, ngx_uint_t i,
    void *row)
{
    ngx_http_xet_cells_t  c;

    c.res = res;
    c.row = i;
    c.column = 0;
    c.rc = NGX_OK;

    ngx_http_xet_statements[stmt].read(&c, row);

    return c.rc;
}


/*
 * Returns 1, because for these statements any row makes the result of a standby
 * complete.  The caller has checked that the result has rows.
 */

static ngx_uint_t
ngx_http_xet_complete_any(ngx_http_xet_query_t *q, PGresult *res)
{
    return 1;
}


/*
 * Returns whether each file has a row, up to the last file or to the end of the
 * window.
 */

static ngx_uint_t
ngx_http_xet_complete_files(ngx_http_xet_query_t *q, PGresult *res)
{
    int64_t    n, last;
    ngx_int_t  i, rows;

    rows = ngx_http_xet_pg_rows(res);
    last = (int64_t) q->first;

    for (i = 0; i < rows; i++) {
        n = ngx_http_xet_pg_int(res, i, 0);

        if (n > last + 1) {
            return 0;
        }

        last = n;
    }

    return rows == NGX_HTTP_XET_TERMS_ROWS || last == (int64_t) q->files;
}


/*
 * Returns whether the first row has status 200.  With any other status, rows
 * may be missing on the standby.
 */

static ngx_uint_t
ngx_http_xet_complete_found(ngx_http_xet_query_t *q, PGresult *res)
{
    return ngx_http_xet_pg_int(res, 0, 0) == NGX_HTTP_OK;
}


static ngx_uint_t
ngx_http_xet_complete_all(ngx_http_xet_query_t *q, PGresult *res)
{
    return (ngx_uint_t) ngx_http_xet_pg_rows(res) == q->files;
}


/* Returns whether each xorb has a row, and each range is inside its xorb. */

static ngx_uint_t
ngx_http_xet_complete_slices(ngx_http_xet_query_t *q, PGresult *res)
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
