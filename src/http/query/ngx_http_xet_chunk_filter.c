
/*
 * Answers dedup queries for unknown chunks without PostgreSQL: queries of
 * clients, and queries of the server for a file that it splits into chunks.
 *
 * A filter has the chunks that are visible in one scope: to all callers, to
 * those of a repo, or to a subject.  If no filter of the caller's scopes has a
 * chunk, the caller gets a miss.  If one has it, PostgreSQL is asked, so a
 * filter never shows a chunk: an old filter, after a deletion or a loss of
 * rights, only costs a statement.  A chunk that became visible after a filter
 * was read is a miss for "valid" at most, which costs an upload; the uploads of
 * a caller through this server are added to the filters of the repo and the
 * subject.  A chunk of others is in no filter of the caller, so
 * it is answered like a chunk that nobody has, in the same time.
 *
 *     asked without a filter -> 16 queries, or one for 128 chunks of the last
 *     filter -> this request reads the scopes in parts (chunk_scope) -> job
 *     (thread: makes the filter) -> kept in the zone; then the query is asked
 *
 * Filters are responses of ngx_http_xet_answers.c: the number of chunks, the
 * number of queries without a filter, the time until which another request
 * makes the filter, and the bits.  Before the first filter of a scope, there
 * are no bits.  A scope with too many chunks has no bits either, and is read
 * again after "valid"; a scope whose rows can't be read, after a minute.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_query.h"


#define NGX_HTTP_XET_CHUNK_FILTER_CHUNKS  170000
#define NGX_HTTP_XET_CHUNK_FILTER_HEAD    16
#define NGX_HTTP_XET_CHUNK_FILTER_ASKS    16
#define NGX_HTTP_XET_CHUNK_FILTER_RATIO   128
#define NGX_HTTP_XET_CHUNK_FILTER_LEASE   60000
#define NGX_HTTP_XET_CHUNK_FILTER_ROOM    2048  /* chunks that can be added */
#define NGX_HTTP_XET_CHUNK_FILTER_DENSE   9     /* least bits of a chunk */


/* Same numbers as in xet.chunk_scope(). */

typedef enum {
    NGX_HTTP_XET_CHUNK_ALL = 0,
    NGX_HTTP_XET_CHUNK_SUBJECT,
    NGX_HTTP_XET_CHUNK_XORBS,
    NGX_HTTP_XET_CHUNK_FILES,
    NGX_HTTP_XET_CHUNK_PUBLIC,
    NGX_HTTP_XET_CHUNK_LISTED,
    NGX_HTTP_XET_CHUNK_SCOPES
} ngx_http_xet_chunk_scope_e;


/* A scope of the caller, and what its filter says. */

typedef struct {
    ngx_http_xet_answer_t         answer;
    ngx_http_xet_chunk_scope_e    scope;
    ngx_str_t                     key;
    uint64_t                      chunk;       /* start of its hash */
    unsigned                      known:1;     /* there is a valid filter */
    unsigned                      found:1;     /* it has the chunk */
    unsigned                      due:1;       /* it is to be made */
    unsigned                      first:1;     /* nothing is kept */
} ngx_http_xet_chunk_scope_t;


/* Chunks that an upload has added, see ngx_http_xet_chunk_filter_add(). */

typedef struct {
    const u_char                 *hashes;
    const ngx_http_xet_array_t   *chunks;
} ngx_http_xet_chunk_news_t;


struct ngx_http_xet_chunk_filter_s {
    ngx_http_xet_chunk_scope_t    scopes[NGX_HTTP_XET_CHUNK_SCOPES];
    ngx_uint_t                    n;
    ngx_uint_t                    i;           /* the scope that is read */

    ngx_int_t                   (*done)(ngx_http_request_t *r);

    /* the part that is read */
    uint64_t                      file;
    uint64_t                      xorb;

    ngx_pool_t                   *pool;
    xet_buf_t                     chunks;      /* 8 bytes each */
    xet_buf_t                     buf;         /* the filter */
};


static ngx_int_t ngx_http_xet_chunk_filter_create(ngx_http_request_t *r,
    ngx_http_xet_chunk_filter_t **filter);
static void ngx_http_xet_chunk_filter_look(ngx_http_request_t *r,
    ngx_http_xet_chunk_scope_t *s, const xet_hash_t *chunk);
static ngx_uint_t ngx_http_xet_chunk_filter_news(void *data, u_char *body,
    size_t len, ngx_uint_t valid);
static ngx_uint_t ngx_http_xet_chunk_filter_scopes(ngx_http_request_t *r,
    ngx_http_xet_chunk_scope_e *scopes);
static ngx_int_t ngx_http_xet_chunk_filter_key(ngx_http_request_t *r,
    ngx_http_xet_chunk_scope_e scope, ngx_str_t *key);
static ngx_uint_t ngx_http_xet_chunk_filter_use(void *data, u_char *body,
    size_t len, ngx_uint_t valid);
static void ngx_http_xet_chunk_filter_first(ngx_http_request_t *r,
    ngx_http_xet_chunk_scope_t *s);
static void ngx_http_xet_chunk_filter_cleanup(void *data);
static ngx_int_t ngx_http_xet_chunk_filter_next(ngx_http_request_t *r,
    ngx_http_xet_chunk_filter_t *f);
static ngx_int_t ngx_http_xet_chunk_filter_read(ngx_http_request_t *r,
    ngx_http_xet_chunk_filter_t *f);
static void ngx_http_xet_chunk_filter_part(ngx_http_request_t *r,
    ngx_int_t rc);
static ngx_int_t ngx_http_xet_chunk_filter_row(ngx_http_request_t *r,
    ngx_http_xet_chunk_filter_t *f);
static void ngx_http_xet_chunk_filter_job(void *data, ngx_log_t *log);
static void ngx_http_xet_chunk_filter_made(ngx_http_request_t *r, void *data);
static ngx_uint_t ngx_http_xet_chunk_filter_ended(void *data, u_char *body,
    size_t len, ngx_uint_t valid);
static void ngx_http_xet_chunk_filter_end(ngx_http_request_t *r,
    ngx_int_t rc);


ngx_int_t
ngx_http_xet_chunk_filter(ngx_http_request_t *r, const xet_hash_t *chunk,
    ngx_int_t (*done)(ngx_http_request_t *r))
{
    ngx_uint_t                   i, known, found, due;
    ngx_http_xet_chunk_scope_t  *s;
    ngx_http_xet_chunk_filter_t *f;

    if (ngx_http_xet_chunk_filter_create(r, &f) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (f == NULL) {
        return done(r);
    }

    f->done = done;
    f->i = 0;
    known = 1;
    found = 0;
    due = 0;

    for (i = 0; i < f->n; i++) {
        s = &f->scopes[i];

        ngx_http_xet_chunk_filter_look(r, s, chunk);

        known &= s->known;
        found |= s->found;
        due |= s->due;
    }

    if (known && !found) {
        ngx_http_xet_count_at(FILTERS, NGX_HTTP_XET_LOOKUP_HIT, 1);
        return NGX_DECLINED;
    }

    ngx_http_xet_count_at(FILTERS, NGX_HTTP_XET_LOOKUP_MISS, 1);

    return due ? ngx_http_xet_chunk_filter_next(r, f) : done(r);
}


/*
 * Creates the state of the first query; later queries of the request use the
 * same state.  *filter is NULL if there are no filters.
 */

static ngx_int_t
ngx_http_xet_chunk_filter_create(ngx_http_request_t *r,
    ngx_http_xet_chunk_filter_t **filter)
{
    ngx_uint_t                    i, n;
    ngx_http_xet_ctx_t           *ctx;
    ngx_http_xet_main_conf_t     *xmcf;
    ngx_http_xet_chunk_scope_e    scopes[NGX_HTTP_XET_CHUNK_SCOPES];
    ngx_http_xet_chunk_scope_t   *s;
    ngx_http_xet_chunk_filter_t  *f;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    *filter = ctx->chunk_filter;

    if (*filter || xmcf->chunk_filter.zone == NULL) {
        return NGX_OK;
    }

    n = ngx_http_xet_chunk_filter_scopes(r, scopes);

    if (n == 0) {
        return NGX_OK;
    }

    f = ngx_http_xet_state(r, sizeof(ngx_http_xet_chunk_filter_t),
                           ngx_http_xet_chunk_filter_cleanup);
    if (f == NULL) {
        return NGX_ERROR;
    }

    f->n = n;

    for (i = 0; i < n; i++) {
        s = &f->scopes[i];

        s->scope = scopes[i];

        if (ngx_http_xet_chunk_filter_key(r, s->scope, &s->key) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    ctx->chunk_filter = f;
    *filter = f;

    return NGX_OK;
}


/* Looks the chunk up in the filter of a scope. */

static void
ngx_http_xet_chunk_filter_look(ngx_http_request_t *r,
    ngx_http_xet_chunk_scope_t *s, const xet_hash_t *chunk)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    s->chunk = xet_get_u64(chunk->bytes);
    s->known = 0;
    s->found = 0;
    s->due = 0;
    s->first = 1;

    (void) ngx_http_xet_answers_find(&s->answer, &xmcf->chunk_filter,
                                     s->key.data, s->key.len,
                                     ngx_http_xet_chunk_filter_use, s);
    if (s->first) {
        ngx_http_xet_chunk_filter_first(r, s);
    }
}


void
ngx_http_xet_chunk_filter_add(ngx_http_request_t *r, ngx_uint_t xorb,
    const u_char *hashes, const ngx_http_xet_array_t *chunks)
{
    ngx_str_t                    key;
    ngx_uint_t                   i, n;
    ngx_http_xet_main_conf_t    *xmcf;
    ngx_http_xet_chunk_news_t    news;
    ngx_http_xet_chunk_scope_e   scopes[NGX_HTTP_XET_CHUNK_SCOPES];

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    if (xmcf->chunk_filter.zone == NULL) {
        return;
    }

    news.hashes = hashes;
    news.chunks = chunks;

    n = ngx_http_xet_chunk_filter_scopes(r, scopes);

    for (i = 0; i < n; i++) {

        if (scopes[i] >= NGX_HTTP_XET_CHUNK_PUBLIC
            || scopes[i] == (xorb ? NGX_HTTP_XET_CHUNK_FILES
                                  : NGX_HTTP_XET_CHUNK_XORBS))
        {
            continue;
        }

        if (ngx_http_xet_chunk_filter_key(r, scopes[i], &key) == NGX_OK) {
            ngx_http_xet_answers_change(&xmcf->chunk_filter, key.data, key.len,
                                        ngx_http_xet_chunk_filter_news, &news);
        }
    }
}


/* Adds chunks to a filter, unless it has no bits, or too few. */

static ngx_uint_t
ngx_http_xet_chunk_filter_news(void *data, u_char *body, size_t len,
    ngx_uint_t valid)
{
    ngx_http_xet_chunk_news_t *news = data;

    size_t         size, element;
    uint32_t       i;
    uint64_t       n;
    const u_char  *p, *chunk;

    size = len - NGX_HTTP_XET_CHUNK_FILTER_HEAD;

    if (size == 0) {
        return 1;
    }

    if (news->chunks == NULL || news->chunks->failed) {
        return 0;
    }

    n = (uint64_t) xet_get_u32(body) + news->chunks->n;

    if (n * NGX_HTTP_XET_CHUNK_FILTER_DENSE > size * 8) {
        return 0;
    }

    xet_put_u32(body, (uint32_t) n);

    body += NGX_HTTP_XET_CHUNK_FILTER_HEAD;

    p = NULL;

    for ( ;; ) {
        p = ngx_http_xet_array_next(news->chunks, p, &element);

        if (p == NULL) {
            return 1;
        }

        if (news->hashes) {
            ngx_memcpy(&i, p, 4);
            chunk = news->hashes + (size_t) ntohl(i) * XET_HASH_LEN;

        } else {
            chunk = p;
        }

        xet_bloom_add(body, size, xet_get_u64(chunk));
    }
}


/* Sets the scopes of the request, and returns their number. */

static ngx_uint_t
ngx_http_xet_chunk_filter_scopes(ngx_http_request_t *r,
    ngx_http_xet_chunk_scope_e *scopes)
{
    ngx_uint_t           n;
    ngx_http_xet_repo_t  repo;

    n = 0;

    ngx_http_xet_repo(r, &repo);

    if (repo.any) {
        scopes[n++] = NGX_HTTP_XET_CHUNK_ALL;
        return n;
    }

    if (ngx_http_xet_dedup_wide(r)) {
        return 0;
    }

    if (ngx_http_xet_subject(r).len) {
        scopes[n++] = NGX_HTTP_XET_CHUNK_SUBJECT;
    }

    if (repo.name.len) {
        scopes[n++] = NGX_HTTP_XET_CHUNK_XORBS;
        scopes[n++] = NGX_HTTP_XET_CHUNK_FILES;
    }

    scopes[n++] = NGX_HTTP_XET_CHUNK_PUBLIC;

    if (repo.name.len > 5 && ngx_strncmp(repo.name.data, "_hub/", 5) == 0) {
        scopes[n++] = NGX_HTTP_XET_CHUNK_LISTED;
    }

    return n;
}


static ngx_int_t
ngx_http_xet_chunk_filter_key(ngx_http_request_t *r,
    ngx_http_xet_chunk_scope_e scope, ngx_str_t *key)
{
    ngx_str_t            name;
    ngx_http_xet_repo_t  repo;

    ngx_str_set(&name, "");

    if (scope == NGX_HTTP_XET_CHUNK_SUBJECT) {
        name = ngx_http_xet_subject(r);

    } else if (scope == NGX_HTTP_XET_CHUNK_XORBS
               || scope == NGX_HTTP_XET_CHUNK_FILES)
    {
        ngx_http_xet_repo(r, &repo);
        name = repo.name;
    }

    key->len = 1 + name.len;

    key->data = ngx_pnalloc(r->pool, key->len);
    if (key->data == NULL) {
        return NGX_ERROR;
    }

    key->data[0] = (u_char) scope;
    ngx_memcpy(key->data + 1, name.data, name.len);

    return NGX_OK;
}


/* Looks the chunk up, or counts the query. */

static ngx_uint_t
ngx_http_xet_chunk_filter_use(void *data, u_char *body, size_t len,
    ngx_uint_t valid)
{
    ngx_http_xet_chunk_scope_t *s = data;

    size_t    size;
    uint32_t  n, asks;

    s->first = 0;

    n = xet_get_u32(body);
    size = len - NGX_HTTP_XET_CHUNK_FILTER_HEAD;

    if (valid && size) {
        s->known = 1;
        s->found = (xet_bloom_has(body + NGX_HTTP_XET_CHUNK_FILTER_HEAD, size,
                                  s->chunk) != 0);
        return 1;
    }

    if (valid && n) {
        return 0;
    }

    if (ngx_current_msec < xet_get_u64(body + 8)) {
        return 0;
    }

    asks = xet_get_u32(body + 4) + 1;

    if (asks >= NGX_HTTP_XET_CHUNK_FILTER_ASKS
        && asks >= n / NGX_HTTP_XET_CHUNK_FILTER_RATIO)
    {
        s->due = 1;
        asks = 0;

        xet_put_u64(body + 8,
                    ngx_current_msec + NGX_HTTP_XET_CHUNK_FILTER_LEASE);
    }

    xet_put_u32(body + 4, asks);

    return 0;
}


/* Counts the first query of a scope. */

static void
ngx_http_xet_chunk_filter_first(ngx_http_request_t *r,
    ngx_http_xet_chunk_scope_t *s)
{
    u_char      *p;
    xet_buf_t    b;
    ngx_pool_t  *pool;

    pool = ngx_create_pool(1024, r->connection->log);
    if (pool == NULL) {
        return;
    }

    xet_buf_init(&b, ngx_http_xet_alloc, pool, NGX_HTTP_XET_CHUNK_FILTER_HEAD);

    p = xet_buf_reserve(&b, NGX_HTTP_XET_CHUNK_FILTER_HEAD);

    if (p) {
        xet_put_u32(p, 0);
        xet_put_u32(p + 4, 1);
        xet_put_u64(p + 8, 0);
        xet_buf_advance(&b, NGX_HTTP_XET_CHUNK_FILTER_HEAD);

        ngx_http_xet_answers_add(&s->answer, &b);
    }

    ngx_destroy_pool(pool);
}


static void
ngx_http_xet_chunk_filter_cleanup(void *data)
{
    ngx_http_xet_chunk_filter_t *f = data;

    if (f->pool) {
        ngx_destroy_pool(f->pool);
    }
}


/*
 * Reads the next scope whose filter is to be made; after the last scope, calls
 * done().
 */

static ngx_int_t
ngx_http_xet_chunk_filter_next(ngx_http_request_t *r,
    ngx_http_xet_chunk_filter_t *f)
{
    while (f->i < f->n && !f->scopes[f->i].due) {
        f->i++;
    }

    if (f->pool) {
        ngx_destroy_pool(f->pool);
        f->pool = NULL;
    }

    if (f->i == f->n) {
        return f->done(r);
    }

    f->pool = ngx_create_pool(16 * 1024, ngx_cycle->log);
    if (f->pool == NULL) {
        return f->done(r);
    }

    xet_buf_init(&f->chunks, ngx_http_xet_alloc, f->pool, 0);
    xet_buf_init(&f->buf, ngx_http_xet_alloc, f->pool, 0);

    f->file = 0;
    f->xorb = 0;

    return ngx_http_xet_chunk_filter_read(r, f);
}


/* Without the filter, the query is asked as before. */

static ngx_int_t
ngx_http_xet_chunk_filter_read(ngx_http_request_t *r,
    ngx_http_xet_chunk_filter_t *f)
{
    ngx_int_t  rc;

    rc = ngx_http_xet_query(r, chunk_scope, ngx_http_xet_chunk_filter_part,
                            .scope = f->scopes[f->i].scope,
                            .after_file = f->file, .after_xorb = f->xorb);

    return (rc == NGX_AGAIN) ? NGX_AGAIN : f->done(r);
}


static void
ngx_http_xet_chunk_filter_part(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_chunk_filter_t  *f;

    f = ngx_http_xet_ctx_of(r)->chunk_filter;

    rc = (rc == NGX_OK) ? ngx_http_xet_chunk_filter_row(r, f) : f->done(r);

    ngx_http_xet_chunk_filter_end(r, rc);
}


static ngx_int_t
ngx_http_xet_chunk_filter_row(ngx_http_request_t *r,
    ngx_http_xet_chunk_filter_t *f)
{
    u_char                         *p;
    ngx_http_xet_chunk_scope_row_t  row;

    if (ngx_http_xet_row(r, chunk_scope, 0, &row) != NGX_OK) {
        return f->done(r);
    }

    p = row.chunks.len ? xet_buf_reserve(&f->chunks, row.chunks.len) : NULL;

    if (p) {
        ngx_memcpy(p, row.chunks.data, row.chunks.len);
        xet_buf_advance(&f->chunks, row.chunks.len);
    }

    if (!row.last
        && f->chunks.size / 8 <= NGX_HTTP_XET_CHUNK_FILTER_CHUNKS)
    {
        f->file = row.next_file;
        f->xorb = row.next_xorb;

        return ngx_http_xet_chunk_filter_read(r, f);
    }

    ngx_http_xet_query_release(r);

    if (ngx_http_xet_task_post(r, ngx_http_xet_chunk_filter_job,
                               ngx_http_xet_chunk_filter_made, f)
        != NGX_OK)
    {
        return f->done(r);
    }

    return NGX_AGAIN;
}


static void
ngx_http_xet_chunk_filter_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_chunk_filter_t *f = data;

    u_char          *p, *c;
    size_t           n, size;
    xet_buf_node_t  *node;

    n = (size_t) (f->chunks.size / 8);
    size = (n > NGX_HTTP_XET_CHUNK_FILTER_CHUNKS) ? 0
           : xet_bloom_size(n + NGX_HTTP_XET_CHUNK_FILTER_ROOM);

    p = xet_buf_reserve(&f->buf, NGX_HTTP_XET_CHUNK_FILTER_HEAD + size);
    if (p == NULL) {
        return;
    }

    xet_put_u32(p, (uint32_t) n);
    xet_put_u32(p + 4, 0);
    xet_put_u64(p + 8, 0);

    ngx_memzero(p + NGX_HTTP_XET_CHUNK_FILTER_HEAD, size);

    for (node = f->chunks.first; node && size; node = node->next) {
        for (c = node->start; c < node->pos; c += 8) {
            xet_bloom_add(p + NGX_HTTP_XET_CHUNK_FILTER_HEAD, size,
                          xet_get_u64(c));
        }
    }

    xet_buf_advance(&f->buf, NGX_HTTP_XET_CHUNK_FILTER_HEAD + size);
}


static void
ngx_http_xet_chunk_filter_made(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_chunk_filter_t *f = data;

    ngx_http_xet_answer_t        answer;
    ngx_http_xet_main_conf_t    *xmcf;
    ngx_http_xet_chunk_scope_t  *s;

    s = &f->scopes[f->i];

    if (xet_buf_status(&f->chunks) == XET_OK && f->buf.size) {
        ngx_http_xet_answers_add(&s->answer, &f->buf);
    }

    /* not kept after a change in the meantime: another request may try */

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    (void) ngx_http_xet_answers_find(&answer, &xmcf->chunk_filter,
                                     s->key.data, s->key.len,
                                     ngx_http_xet_chunk_filter_ended, s);

    f->i++;

    ngx_http_xet_chunk_filter_end(r, ngx_http_xet_chunk_filter_next(r, f));
}


static ngx_uint_t
ngx_http_xet_chunk_filter_ended(void *data, u_char *body, size_t len,
    ngx_uint_t valid)
{
    xet_put_u64(body + 8, 0);

    return 1;
}


static void
ngx_http_xet_chunk_filter_end(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}
