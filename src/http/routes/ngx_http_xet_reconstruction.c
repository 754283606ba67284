
/*
 * GET reconstructions/{file}, v1 and v2, which ngx_http_xet_reconstruct_send()
 * handles; and GET reconstructions?file_id=...&file_id=...: several whole
 * files in one response, without the files that do not exist.
 *
 *     batch     arguments -> the first window of the terms of all files
 *     queried   adds the terms of the window to one plan; if there are more
 *               windows, makes room in the plan and requests the next one;
 *               else the plan service sends the response
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"


struct ngx_http_xet_batch_req_s {
    xet_hash_t             *hashes;            /* requested, no duplicates */
    ngx_uint_t              n;
    ngx_http_xet_array_t    files;
    ngx_uint_t              file;              /* index in hashes; n: unset */
    xet_plan_t              plan;
    ngx_pool_t             *pool;
};


static void ngx_http_xet_batch_cleanup(void *data);
static const char *ngx_http_xet_batch_args(ngx_http_request_t *r,
    ngx_http_xet_batch_req_t *b);
static const char *ngx_http_xet_batch_add(ngx_http_xet_batch_req_t *b,
    u_char *value, size_t len, ngx_uint_t max);
static ngx_int_t ngx_http_xet_batch_ask(ngx_http_request_t *r);
static void ngx_http_xet_batch_queried(ngx_http_request_t *r, ngx_int_t rc);
static xet_status_t ngx_http_xet_batch_add_rows(ngx_http_request_t *r,
    ngx_http_xet_batch_req_t *b, ngx_uint_t n);


ngx_int_t
ngx_http_xet_reconstruction_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx)
{
    ngx_int_t     rc;
    xet_range_t   want;
    xet_status_t  status;

    status = ngx_http_xet_reconstruct_range(r, &want);

    /* the empty file always exists, even if it is not registered */

    if (status == XET_OK && xet_hash_is_zero(&ctx->hash)) {

        if (want.start) {
            status = XET_RANGE_PAST_END;
        }

        want.end = 0;
    }

    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    rc = ngx_http_xet_reconstruct_send(r, &ctx->hash, &want);

    return (rc == NGX_AGAIN) ? ngx_http_xet_query_wait(r, rc) : rc;
}


ngx_int_t
ngx_http_xet_batch_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    ngx_int_t                  rc;
    const char                *fault;
    xet_status_t               status;
    ngx_http_xet_loc_conf_t   *xlcf;
    ngx_http_xet_batch_req_t  *b;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    b = ngx_http_xet_state(r, sizeof(ngx_http_xet_batch_req_t),
                           ngx_http_xet_batch_cleanup);
    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->route.batch = b;

    b->pool = ngx_create_pool(16 * 1024, ngx_cycle->log);
    b->hashes = ngx_palloc(r->pool, xlcf->batch_max * sizeof(xet_hash_t));

    if (b->pool == NULL || b->hashes == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    fault = ngx_http_xet_batch_args(r, b);

    if (fault) {
        return ngx_http_xet_error(r, NGX_HTTP_BAD_REQUEST, "invalid_argument",
                                  fault);
    }

    status = xet_plan_init_files(&b->plan, ngx_http_xet_alloc, b->pool, b->n);

    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    b->file = b->n;

    rc = ngx_http_xet_query_files_terms(r, &b->files, 0, 0,
                                        ngx_http_xet_batch_queried);

    return ngx_http_xet_query_wait(r, rc);
}


static void
ngx_http_xet_batch_cleanup(void *data)
{
    ngx_http_xet_batch_req_t *b = data;

    ngx_http_xet_array_destroy(&b->files);

    if (b->pool) {
        ngx_destroy_pool(b->pool);
    }
}


/* Parses the arguments.  Returns NULL, or an error message. */

static const char *
ngx_http_xet_batch_args(ngx_http_request_t *r, ngx_http_xet_batch_req_t *b)
{
    u_char                   *p, *last, *end;
    const char               *fault;
    ngx_http_xet_loc_conf_t  *xlcf;

    static const u_char  name[] = "file_id=";

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    end = r->args.data + r->args.len;

    for (p = r->args.data; p < end; p = last + 1) {

        last = ngx_strlchr(p, end, '&');
        if (last == NULL) {
            last = end;
        }

        if ((size_t) (last - p) < sizeof(name) - 1
            || ngx_memcmp(p, name, sizeof(name) - 1) != 0)
        {
            return "the only argument allowed is \"file_id\"";
        }

        p += sizeof(name) - 1;

        fault = ngx_http_xet_batch_add(b, p, last - p, xlcf->batch_max);

        if (fault) {
            return fault;
        }
    }

    return b->n ? NULL : "a \"file_id\" is required";
}


static const char *
ngx_http_xet_batch_add(ngx_http_xet_batch_req_t *b, u_char *value, size_t len,
    ngx_uint_t max)
{
    ngx_uint_t  i;
    xet_hash_t  hash;

    if (xet_hash_parse(&hash, value, len) != XET_OK) {
        return xet_status_text(XET_HASH_SYNTAX);
    }

    for (i = 0; i < b->n; i++) {
        if (xet_hash_equal(&b->hashes[i], &hash)) {
            return NULL;
        }
    }

    if (b->n == max) {
        return "too many files in one request";
    }

    b->hashes[b->n++] = hash;

    ngx_http_xet_array_bytes(&b->files, hash.bytes, XET_HASH_LEN);

    return NULL;
}


/*
 * Requests the next window.  It starts at the end of the last term, or at the
 * next file if that term is the last one of its file.
 */

static ngx_int_t
ngx_http_xet_batch_ask(ngx_http_request_t *r)
{
    uint64_t                   at;
    ngx_int_t                  rc;
    ngx_uint_t                 first;
    ngx_http_xet_batch_req_t  *b;

    b = ngx_http_xet_ctx_of(r)->route.batch;

    first = b->file;
    at = b->plan.position;

    if (at >= b->plan.want.end) {
        first++;
        at = 0;
    }

    rc = ngx_http_xet_query_files_terms(r, &b->files, first, at,
                                        ngx_http_xet_batch_queried);

    return ngx_http_xet_query_asked(r, rc);
}


static void
ngx_http_xet_batch_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_uint_t                 n;
    xet_status_t               status;
    ngx_http_xet_ctx_t        *ctx;
    ngx_http_xet_batch_req_t  *b;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    b = ctx->route.batch;

    /* NGX_DECLINED: the remaining files do not exist */

    if (rc != NGX_OK && rc != NGX_DECLINED) {
        ngx_http_xet_query_failed(r, rc);
        return;
    }

    n = ngx_http_xet_query_rows(ctx->query);

    status = ngx_http_xet_batch_add_rows(r, b, n);

    ngx_http_xet_query_release(r);

    if (status == XET_OK && n < NGX_HTTP_XET_TERMS_ROWS) {
        status = ngx_http_xet_plan_bound(r, &b->plan);
    }

    if (status != XET_OK) {
        rc = ngx_http_xet_error_status(r, status);

    } else if (n == NGX_HTTP_XET_TERMS_ROWS) {
        rc = ngx_http_xet_plan_next(r, &b->plan, b->pool,
                                    ngx_http_xet_batch_ask);

    } else {
        rc = ngx_http_xet_plan_send(r, &b->plan, XET_PLAN_BATCH, NULL);
    }

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


static xet_status_t
ngx_http_xet_batch_add_rows(ngx_http_request_t *r,
    ngx_http_xet_batch_req_t *b, ngx_uint_t n)
{
    ngx_uint_t                      i, inside;
    xet_status_t                    rc;
    ngx_http_xet_files_terms_row_t  row;

    /*
     * A window that starts inside a file must continue at the end of the
     * previous window.  Otherwise the file has been replaced or deleted, or
     * the request may not read it any more.
     */

    inside = b->plan.nfiles && b->plan.position < b->plan.want.end;

    rc = (inside && n == 0) ? XET_PLAN_CHANGED : XET_OK;

    for (i = 0; i < n && rc == XET_OK; i++) {
        (void) ngx_http_xet_row(r, files_terms, i, &row);
        row.n--;

        if (inside && i == 0
            && (row.n != b->file
                || (row.packed.len
                    && row.first_offset < b->plan.position)))
        {
            return XET_PLAN_CHANGED;
        }

        if (row.n >= b->n) {
            return XET_INTERNAL;
        }

        if (row.n != b->file) {
            b->file = row.n;

            rc = xet_plan_file(&b->plan, &b->hashes[b->file], row.size);
            if (rc != XET_OK) {
                break;
            }
        }

        if (row.packed.len) {
            rc = xet_plan_add(&b->plan, row.packed.data, row.packed.len,
                              row.first_offset);
        }
    }

    return rc;
}
