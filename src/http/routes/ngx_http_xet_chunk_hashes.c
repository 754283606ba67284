
/*
 * GET v2/file-chunk-hashes/{file}: what a client needs to upload a new version
 * of a file without reading the unchanged parts.
 *
 *     handler   parses the X-Range-Dirty header, and requests the first window
 *               of the file's terms
 *     terms     copies the window; for the first window, limits the ranges to
 *               the size of the file
 *     slices    reads the chunk lists of the next terms, a window at a time
 *     job       (thread) passes the terms and their chunk lists to the core;
 *               after the last term: makes the JSON
 *     done      requests the next slices or terms, or sends the response
 *
 * Memory: a window of terms, a window of chunk lists, and the result.  Limits
 * for Merkle nodes and unchanged terms bound the JSON of the result: 7 MB for
 * one range, and 15 MB for a thousand ranges.  Usual files have a few dozen
 * nodes per range; a file with long runs of the same chunk may have a node for
 * each chunk.  The state belongs to the thread while a job runs, otherwise to
 * the event loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"


#define NGX_HTTP_XET_DIRTY_MAX     1024
#define NGX_HTTP_XET_NODES_MAX     16384
#define NGX_HTTP_XET_NODES_RANGE   64          /* extra nodes per range */
#define NGX_HTTP_XET_CLEAN_MAX     65536       /* unchanged terms */
#define NGX_HTTP_XET_HASHES_TERMS  256
#define NGX_HTTP_XET_HASHES_CHUNKS (2 * XET_XORB_CHUNKS_MAX)


struct ngx_http_xet_hashes_s {
    ngx_http_xet_query_t   *query;
    const xet_suite_t      *suite;

    xet_range_spec_t       *specs;
    xet_range_t            *ranges;
    size_t                  nranges;

    uint64_t                size;              /* file size in bytes */
    u_char                 *terms;             /* packed terms of a window */
    ngx_uint_t              nterms;
    ngx_uint_t              next;              /* next term for the core */
    ngx_http_xet_slices_t   window;

    ngx_pool_t             *pool;              /* memory of windows and JSON */
    xet_edit_ranges_t       edits;
    xet_buf_t               buf;
    xet_status_t            status;
    unsigned                full:1;            /* the window is full */
};


/* True if the file has terms after the current window. */
#define ngx_http_xet_hashes_more(h)                                           \
    ((h)->full && (h)->edits.position < (h)->size)


static xet_status_t ngx_http_xet_hashes_ranges(ngx_http_xet_hashes_t *h,
    ngx_str_t *value);
static void ngx_http_xet_hashes_cleanup(void *data);
static void ngx_http_xet_hashes_queried(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_hashes_terms(ngx_http_request_t *r);
static xet_status_t ngx_http_xet_hashes_first(ngx_http_xet_hashes_t *h,
    ngx_http_xet_terms_t *terms);
static xet_status_t ngx_http_xet_hashes_copy(ngx_http_request_t *r,
    ngx_http_xet_hashes_t *h, ngx_http_xet_terms_t *terms);
static ngx_int_t ngx_http_xet_hashes_edit_range(ngx_http_request_t *r);
static void ngx_http_xet_hashes_sliced(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_hashes_post(ngx_http_request_t *r);
static void ngx_http_xet_hashes_job(void *data, ngx_log_t *log);
static xet_status_t ngx_http_xet_hashes_feed(ngx_http_xet_hashes_t *h);
static void ngx_http_xet_hashes_done(ngx_http_request_t *r, void *data);


ngx_int_t
ngx_http_xet_chunk_hashes_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx)
{
    ngx_int_t                  rc;
    ngx_list_t                *headers;
    xet_status_t               status;
    ngx_table_elt_t           *dirty;
    ngx_http_xet_hashes_t     *h;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    h = ngx_http_xet_state(r, sizeof(ngx_http_xet_hashes_t),
                           ngx_http_xet_hashes_cleanup);
    if (h == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->route.hashes = h;

    h->query = ctx->query;
    h->suite = xmcf->suite;

    h->pool = ngx_create_pool(16 * 1024, ngx_cycle->log);
    if (h->pool == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    headers = &r->headers_in.headers;
    dirty = ngx_http_xet_header_find(headers, "X-Range-Dirty", 0);

    if (dirty == NULL
        || ngx_http_xet_header_find(headers, "X-Range-Dirty", 1) != NULL)
    {
        return ngx_http_xet_error(r, NGX_HTTP_BAD_REQUEST, "invalid_range",
                                  "one X-Range-Dirty header is required");
    }

    status = ngx_http_xet_hashes_ranges(h, &dirty->value);

    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    /*
     * use the primary, because the client's next request is an upload, which
     * needs the primary anyway
     */

    ngx_http_xet_query_primary(r);

    rc = ngx_http_xet_query(r, file_terms, ngx_http_xet_hashes_queried,
                            .file = &ctx->hash,
                            .last_byte = NGX_MAX_OFF_T_VALUE);

    return ngx_http_xet_query_wait(r, rc);
}


static xet_status_t
ngx_http_xet_hashes_ranges(ngx_http_xet_hashes_t *h, ngx_str_t *value)
{
    h->specs = ngx_palloc(h->pool, NGX_HTTP_XET_DIRTY_MAX
                                   * sizeof(xet_range_spec_t));
    h->ranges = ngx_palloc(h->pool, NGX_HTTP_XET_DIRTY_MAX
                                    * sizeof(xet_range_t));

    if (h->specs == NULL || h->ranges == NULL) {
        return XET_NOMEM;
    }

    h->nranges = NGX_HTTP_XET_DIRTY_MAX;

    return xet_range_parse(value->data, value->len, h->specs, &h->nranges);
}


static void
ngx_http_xet_hashes_cleanup(void *data)
{
    ngx_http_xet_hashes_t *h = data;

    ngx_http_xet_columns_destroy(&h->window);

    if (h->pool) {
        ngx_destroy_pool(h->pool);
    }
}


static void
ngx_http_xet_hashes_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_query_answer(r, rc, ngx_http_xet_hashes_terms,
                              "file_not_found", "no such file");
}


static ngx_int_t
ngx_http_xet_hashes_terms(ngx_http_request_t *r)
{
    xet_status_t            status;
    ngx_http_xet_terms_t    terms;
    ngx_http_xet_hashes_t  *h;

    h = ngx_http_xet_ctx_of(r)->route.hashes;

    ngx_http_xet_query_file_terms_get(r, &terms);

    status = ngx_http_xet_hashes_first(h, &terms);

    if (status == XET_RANGE_PAST_END) {
        return ngx_http_xet_error(r, NGX_HTTP_BAD_REQUEST, "invalid_range",
                                  "the dirty ranges are outside the file");
    }

    if (status == XET_OK) {
        status = ngx_http_xet_hashes_copy(r, h, &terms);
    }

    ngx_http_xet_query_release(r);

    return (status == XET_OK) ? ngx_http_xet_hashes_edit_range(r)
                              : ngx_http_xet_error_status(r, status);
}


/*
 * Handles the first window, which contains the size of the file: limits the
 * ranges to this size, and creates the core's state.  Does nothing for later
 * windows.
 */

static xet_status_t
ngx_http_xet_hashes_first(ngx_http_xet_hashes_t *h,
    ngx_http_xet_terms_t *terms)
{
    xet_status_t  status;

    if (h->terms) {
        return XET_OK;
    }

    status = xet_edit_ranges_ranges(h->specs, h->ranges, &h->nranges,
                                    terms->size);

    if (status != XET_OK) {
        return status;
    }

    h->size = terms->size;
    h->terms = ngx_palloc(h->pool, (terms->n + 1) * XET_TERM_SEGMENT_MAX
                                   * XET_TERM_LEN);
    if (h->terms == NULL) {
        return XET_NOMEM;
    }

    return xet_edit_ranges_init(&h->edits, h->suite, ngx_http_xet_alloc,
                                h->pool, h->ranges, h->nranges, terms->size,
                                NGX_HTTP_XET_NODES_MAX
                                + h->nranges * NGX_HTTP_XET_NODES_RANGE);
}


static xet_status_t
ngx_http_xet_hashes_copy(ngx_http_request_t *r, ngx_http_xet_hashes_t *h,
    ngx_http_xet_terms_t *terms)
{
    u_char                         *p;
    ngx_uint_t                      i;
    ngx_http_xet_file_terms_row_t   row;

    p = h->terms;

    for (i = 0; i < terms->n; i++) {
        (void) ngx_http_xet_row(r, file_terms, i, &row);

        /* the terms of the file were replaced after the previous window */

        if (i == 0 && row.packed.len
            && row.first_offset < h->edits.position)
        {
            return XET_PLAN_CHANGED;
        }

        if (row.packed.len > XET_TERM_SEGMENT_MAX * XET_TERM_LEN
            || (i == 0 && row.first_offset != h->edits.position))
        {
            return XET_PLAN_DAMAGED;
        }

        p = ngx_cpymem(p, row.packed.data, row.packed.len);
    }

    h->nterms = (p - h->terms) / XET_TERM_LEN;
    h->next = 0;
    h->full = (terms->n == NGX_HTTP_XET_TERMS_ROWS);

    return XET_OK;
}


static ngx_int_t
ngx_http_xet_hashes_edit_range(ngx_http_request_t *r)
{
    uint32_t                n;
    ngx_int_t               rc;
    ngx_uint_t              i, chunks;
    xet_term_t              term;
    xet_status_t            status;
    ngx_http_xet_hashes_t  *h;

    h = ngx_http_xet_ctx_of(r)->route.hashes;

    ngx_http_xet_columns_reset(&h->window);
    chunks = 0;

    for (i = h->next;
         i < h->nterms && h->window.xorbs.n < NGX_HTTP_XET_HASHES_TERMS;
         i++)
    {
        status = xet_term_unpack(&term, h->terms + i * XET_TERM_LEN);

        if (status != XET_OK) {
            return ngx_http_xet_error_status(r, status);
        }

        n = term.chunk_end - term.chunk_start;

        chunks += n;

        if (h->window.xorbs.n && chunks > NGX_HTTP_XET_HASHES_CHUNKS) {
            break;
        }

        ngx_http_xet_slices_add(&h->window, &term.xorb, term.chunk_start,
                                term.chunk_end);
    }

    if (h->window.xorbs.n == 0) {
        return ngx_http_xet_error_status(r, XET_PLAN_DAMAGED);
    }

    rc = ngx_http_xet_query_xorb_slices(r, &h->window, 1, NGX_HTTP_XET_WRITE,
                                        ngx_http_xet_hashes_sliced);

    return ngx_http_xet_query_asked(r, rc);
}


static void
ngx_http_xet_hashes_sliced(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_query_answer(r, rc, ngx_http_xet_hashes_post, NULL, NULL);
}


static ngx_int_t
ngx_http_xet_hashes_post(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (ngx_http_xet_task_post(r, ngx_http_xet_hashes_job,
                               ngx_http_xet_hashes_done, ctx->route.hashes)
        != NGX_OK)
    {
        return ngx_http_xet_error_status(r, XET_OVERLOADED);
    }

    return NGX_AGAIN;
}


static void
ngx_http_xet_hashes_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_hashes_t *h = data;

    h->status = ngx_http_xet_hashes_feed(h);

    if (h->status != XET_OK || h->next < h->nterms
        || ngx_http_xet_hashes_more(h))
    {
        return;
    }

    h->status = xet_edit_ranges_finish(&h->edits);

    if (h->status == XET_OK) {
        xet_buf_init(&h->buf, ngx_http_xet_alloc, h->pool, 0);

        h->status = xet_edit_ranges_json(&h->edits, &h->buf);
    }
}


static xet_status_t
ngx_http_xet_hashes_feed(ngx_http_xet_hashes_t *h)
{
    ngx_uint_t              i;
    xet_term_t              term;
    xet_status_t            rc;
    xet_shard_slice_t       slice;
    xet_edit_ranges_term_t  wt;

    if (ngx_http_xet_query_rows(h->query) != h->window.xorbs.n) {
        return XET_INTERNAL;
    }

    for (i = 0; i < h->window.xorbs.n; i++, h->next++) {

        rc = xet_term_unpack(&term, h->terms + h->next * XET_TERM_LEN);

        if (rc != XET_OK) {
            return rc;
        }

        ngx_http_xet_query_xorb_slices_row(h->query, i, &slice);

        if (slice.chunk_count == 0) {

            /*
             * the row of the xorb is gone: the file was deleted in the meantime
             */

            return XET_PLAN_CHANGED;
        }

        if (slice.n != term.chunk_end - term.chunk_start
            || slice.hashes == NULL)
        {
            return XET_PLAN_DAMAGED;
        }

        wt.n = slice.n;
        wt.raw_length = term.raw_length;
        wt.raw_before = slice.raw_before;
        wt.raw_ends = slice.raw_ends;
        wt.hashes = slice.hashes;
        wt.verification = NULL;

        rc = xet_edit_ranges_add(&h->edits, &wt);

        if (h->edits.gap.over
            || h->edits.nverifications > NGX_HTTP_XET_CLEAN_MAX)
        {
            /* after this error, clients upload the whole file */
            return XET_EDIT_RANGES_SIZE;
        }

        if (rc != XET_OK) {
            return rc;
        }
    }

    return XET_OK;
}


static void
ngx_http_xet_hashes_done(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_hashes_t *h = data;

    ngx_int_t            rc;
    ngx_http_xet_ctx_t  *ctx;

    ngx_http_xet_query_release(r);

    if (h->status != XET_OK) {
        rc = ngx_http_xet_error_status(r, h->status);

    } else if (h->next < h->nterms) {
        rc = ngx_http_xet_hashes_edit_range(r);

    } else if (ngx_http_xet_hashes_more(h)) {
        ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

        rc = ngx_http_xet_query(r, file_terms, ngx_http_xet_hashes_queried,
                                .file = &ctx->hash,
                                .first_byte = h->edits.position,
                                .last_byte = NGX_MAX_OFF_T_VALUE);

        rc = ngx_http_xet_query_asked(r, rc);

    } else {
        rc = ngx_http_xet_send(r, NGX_HTTP_OK, "application/json", &h->buf);
    }

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}
