
/*
 * Finds the ranges of xorbs that make up a byte range of a file.
 *
 *     send      sends the plan from the cache, or requests the terms that
 *               overlap the range
 *     queried   adds a batch of terms to the plan; if there are more, requests
 *               the next batch, until the range is covered
 *     covered   if the first term begins before the range, or the last one
 *               ends after it, fetches the chunk ends of their xorbs
 *     edges     trims these two terms
 *     plan      sends the plan (ngx_http_xet_plan.c), always with 200: the
 *               body is not a part of the file, so a 206 or Content-Range
 *               would be wrong
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query.h"


struct ngx_http_xet_reconstruct_s {
    xet_hash_t                 file;
    xet_range_t                want;
    uint64_t                   size;
    xet_plan_t                 plan;
    unsigned                   edges;
    xet_plan_kind_t            kind;
    ngx_http_xet_answer_t     *answer;         /* place in the cache, or NULL */

    ngx_http_xet_slices_t      slices;         /* chunk ends, to trim the
                                                  first and last term */

    ngx_pool_t                *pool;           /* memory of the plan */
};


static void ngx_http_xet_reconstruct_cleanup(void *data);
static ngx_int_t ngx_http_xet_reconstruct_ask(ngx_http_request_t *r);
static void ngx_http_xet_reconstruct_queried(ngx_http_request_t *r, ngx_int_t
    rc);
static ngx_int_t ngx_http_xet_reconstruct_terms(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_reconstruct_changed(ngx_http_request_t *r,
    ngx_http_xet_reconstruct_t *rec, xet_status_t status);
static xet_status_t ngx_http_xet_reconstruct_first(ngx_http_xet_reconstruct_t
    *rec, ngx_http_xet_terms_t *terms);
static ngx_int_t ngx_http_xet_reconstruct_covered(ngx_http_request_t *r,
    ngx_http_xet_reconstruct_t *rec);
static ngx_int_t ngx_http_xet_reconstruct_edges(ngx_http_request_t *r);
static void ngx_http_xet_reconstruct_edges_queried(ngx_http_request_t *r,
    ngx_int_t rc);
static ngx_int_t ngx_http_xet_reconstruct_trim(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_reconstruct_plan(ngx_http_request_t *r);


ngx_int_t
ngx_http_xet_reconstruct_send(ngx_http_request_t *r, const xet_hash_t *file,
    const xet_range_t *want)
{
    ngx_int_t                    rc;
    xet_plan_kind_t              kind;
    ngx_http_xet_answer_t       *answer;
    ngx_http_xet_reconstruct_t  *rec;

    kind = (ngx_http_xet_ctx_of(r)->version == NGX_HTTP_XET_V2) ? XET_PLAN_V2
                                                              : XET_PLAN_V1;

    rc = ngx_http_xet_plan_cache_find(r, file, want, kind, &answer);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rec = ngx_http_xet_state(r, sizeof(ngx_http_xet_reconstruct_t),
                             ngx_http_xet_reconstruct_cleanup);
    if (rec == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_xet_ctx_of(r)->recon = rec;

    rec->file = *file;
    rec->want = *want;
    rec->kind = kind;
    rec->answer = answer;

    rec->pool = ngx_create_pool(16 * 1024, ngx_cycle->log);
    if (rec->pool == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rec->want.start == rec->want.end) {
        xet_plan_init(&rec->plan, ngx_http_xet_alloc, rec->pool, &rec->want);

        return ngx_http_xet_reconstruct_plan(r);
    }

    return ngx_http_xet_reconstruct_ask(r);
}


/*
 * Without a Range header, the range is the whole file.  Suffix ranges are not
 * supported, because clients do not send them.
 */

xet_status_t
ngx_http_xet_reconstruct_range(ngx_http_request_t *r, xet_range_t *want)
{
    size_t             n;
    ngx_str_t         *value;
    xet_status_t       status;
    xet_range_spec_t   spec;

    want->start = 0;
    want->end = NGX_MAX_OFF_T_VALUE;

    if (r->headers_in.range == NULL) {
        return XET_OK;
    }

    value = &r->headers_in.range->value;
    n = 1;

    status = xet_range_parse(value->data, value->len, &spec, &n);

    if (status != XET_OK) {
        return status;
    }

    if (spec.kind == XET_RANGE_SUFFIX) {
        return XET_RANGE_SYNTAX;
    }

    want->start = spec.first;

    if (spec.kind == XET_RANGE_CLOSED
        && spec.last < (uint64_t) NGX_MAX_OFF_T_VALUE)
    {
        want->end = spec.last + 1;
    }

    if (want->start >= want->end) {
        return XET_RANGE_PAST_END;
    }

    return XET_OK;
}


static void
ngx_http_xet_reconstruct_cleanup(void *data)
{
    ngx_http_xet_reconstruct_t *rec = data;

    ngx_http_xet_columns_destroy(&rec->slices);

    if (rec->pool) {
        ngx_destroy_pool(rec->pool);
    }
}


/* Requests the first batch of terms, or the next one. */

static ngx_int_t
ngx_http_xet_reconstruct_ask(ngx_http_request_t *r)
{
    uint64_t                     first;
    ngx_int_t                    rc;
    ngx_http_xet_reconstruct_t  *rec;

    rec = ngx_http_xet_ctx_of(r)->recon;

    first = rec->size ? rec->plan.position : rec->want.start;

    rc = ngx_http_xet_query(r, file_terms, ngx_http_xet_reconstruct_queried,
                            .file = &rec->file, .first_byte = first,
                            .last_byte = rec->want.end - 1);

    return ngx_http_xet_query_asked(r, rc);
}


static void
ngx_http_xet_reconstruct_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_query_answer(r, rc, ngx_http_xet_reconstruct_terms,
                              "file_not_found", "no such file");
}


static ngx_int_t
ngx_http_xet_reconstruct_terms(ngx_http_request_t *r)
{
    ngx_uint_t                      i, later;
    xet_status_t                    status;
    ngx_http_xet_terms_t            terms;
    ngx_http_xet_reconstruct_t     *rec;
    ngx_http_xet_file_terms_row_t   row;

    rec = ngx_http_xet_ctx_of(r)->recon;

    ngx_http_xet_query_file_terms_get(r, &terms);

    later = (rec->size != 0);
    status = ngx_http_xet_reconstruct_first(rec, &terms);

    for (i = 0; i < terms.n && status == XET_OK; i++) {
        (void) ngx_http_xet_row(r, file_terms, i, &row);

        /* the terms of the file have changed since the previous batch */

        if (later && i == 0 && row.packed.len
            && row.first_offset < rec->plan.position)
        {
            status = XET_PLAN_CHANGED;
            break;
        }

        status = xet_plan_add(&rec->plan, row.packed.data, row.packed.len,
                              row.first_offset);
    }

    if (status == XET_OK && rec->plan.n == 0) {
        status = XET_PLAN_DAMAGED;
    }

    if (status != XET_OK) {
        return ngx_http_xet_reconstruct_changed(r, rec, status);
    }

    ngx_http_xet_query_release(r);

    if (terms.n < NGX_HTTP_XET_TERMS_ROWS
        || rec->plan.position >= rec->want.end)
    {
        return ngx_http_xet_reconstruct_covered(r, rec);
    }

    return ngx_http_xet_plan_next(r, &rec->plan, rec->pool,
                                  ngx_http_xet_reconstruct_ask);
}


/*
 * Handles inconsistent rows.  If some rows came from a standby, which may lag
 * behind, and the plan is still in memory, all terms are requested again from
 * the primary.
 */

static ngx_int_t
ngx_http_xet_reconstruct_changed(ngx_http_request_t *r,
    ngx_http_xet_reconstruct_t *rec, xet_status_t status)
{
    ngx_pool_t  *pool;

    if ((status != XET_PLAN_CHANGED && status != XET_PLAN_DAMAGED)
        || rec->plan.spool || !ngx_http_xet_query_again(r))
    {
        return ngx_http_xet_error_status(r, status);
    }

    pool = ngx_create_pool(16 * 1024, ngx_cycle->log);
    if (pool == NULL) {
        return ngx_http_xet_error_status(r, XET_NOMEM);
    }

    ngx_destroy_pool(rec->pool);

    rec->pool = pool;
    rec->size = 0;
    rec->edges = 0;

    ngx_memzero(&rec->plan, sizeof(xet_plan_t));
    ngx_http_xet_columns_reset(&rec->slices);

    return ngx_http_xet_reconstruct_ask(r);
}


/*
 * Starts the plan with the first batch, which contains the size of the file.
 */

static xet_status_t
ngx_http_xet_reconstruct_first(ngx_http_xet_reconstruct_t *rec,
    ngx_http_xet_terms_t *terms)
{
    if (rec->size) {
        return XET_OK;
    }

    if (rec->want.start >= terms->size) {
        return XET_RANGE_PAST_END;
    }

    rec->size = terms->size;
    rec->want.end = ngx_min(rec->want.end, terms->size);

    xet_plan_init(&rec->plan, ngx_http_xet_alloc, rec->pool, &rec->want);

    return (terms->n == NGX_HTTP_XET_TERMS_ROWS)
           ? xet_plan_reserve(&rec->plan, NGX_HTTP_XET_PLAN_TERMS) : XET_OK;
}


static ngx_int_t
ngx_http_xet_reconstruct_covered(ngx_http_request_t *r,
    ngx_http_xet_reconstruct_t *rec)
{
    xet_status_t  status;

    status = ngx_http_xet_plan_bound(r, &rec->plan);

    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    rec->edges = xet_plan_edges(&rec->plan);

    return rec->edges ? ngx_http_xet_reconstruct_edges(r)
                      : ngx_http_xet_reconstruct_plan(r);
}


static ngx_int_t
ngx_http_xet_reconstruct_edges(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    unsigned                     edge;
    xet_term_t                  *term;
    ngx_http_xet_reconstruct_t  *rec;

    rec = ngx_http_xet_ctx_of(r)->recon;

    for (edge = XET_PLAN_FIRST; edge <= XET_PLAN_LAST; edge <<= 1) {

        if (!(rec->edges & edge)) {
            continue;
        }

        term = xet_plan_edge(&rec->plan, edge);

        ngx_http_xet_slices_add(&rec->slices, &term->xorb, term->chunk_start,
                                term->chunk_end);
    }

    rc = ngx_http_xet_query_xorb_slices(r, &rec->slices, 0, NGX_HTTP_XET_READ,
                                        ngx_http_xet_reconstruct_edges_queried);

    return ngx_http_xet_query_asked(r, rc);
}


static void
ngx_http_xet_reconstruct_edges_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_query_answer(r, rc, ngx_http_xet_reconstruct_trim,
                              "internal_error",
                              "a xorb of the file is missing");
}


static ngx_int_t
ngx_http_xet_reconstruct_trim(ngx_http_request_t *r)
{
    unsigned                     which;
    ngx_uint_t                   i, n, one;
    xet_status_t                 status;
    xet_plan_ends_t              ends;
    xet_shard_slice_t            slice;
    ngx_http_xet_ctx_t          *ctx;
    ngx_http_xet_reconstruct_t  *rec;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    rec = ctx->recon;

    n = ngx_http_xet_query_rows(ctx->query);
    one = (rec->plan.before + rec->plan.n == 1);

    for (i = 0; i < n; i++) {
        ngx_http_xet_query_xorb_slices_row(ctx->query, i, &slice);

        if (slice.n == 0) {

            /*
             * the row of the xorb is missing: the file has been deleted
             */

            return ngx_http_xet_reconstruct_changed(r, rec, slice.chunk_count
                                                      ? XET_PLAN_DAMAGED
                                                      : XET_PLAN_CHANGED);
        }

        ends.n = slice.n;
        ends.raw_before = slice.raw_before;
        ends.stored_before = slice.stored_before;
        ends.copy_id = slice.copy_id;
        ends.raw_ends = slice.raw_ends;
        ends.stored_ends = slice.stored_ends;

        if (n == 2 && !one) {
            which = (i == 0) ? XET_PLAN_FIRST : XET_PLAN_LAST;

        } else {
            which = rec->edges;
        }

        status = xet_plan_trim(&rec->plan, which, &ends);

        if (status != XET_OK) {
            return ngx_http_xet_reconstruct_changed(r, rec, status);
        }

        if (one) {
            break;
        }
    }

    ngx_http_xet_query_release(r);

    return ngx_http_xet_reconstruct_plan(r);
}


static ngx_int_t
ngx_http_xet_reconstruct_plan(ngx_http_request_t *r)
{
    ngx_http_xet_reconstruct_t  *rec;

    rec = ngx_http_xet_ctx_of(r)->recon;

    return ngx_http_xet_plan_send(r, &rec->plan, rec->kind, rec->answer);
}
