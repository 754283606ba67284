
/*
 * GET usage: reports the usage of the token's repo and subject, and the amount
 * left if they have limits.
 *
 * The number of a caller's stored bytes reveals whether other users have
 * stored the same bytes.  So it is reported only if a limit reveals it anyway,
 * or if dedup responses contain xorbs of all repos.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"


static void ngx_http_xet_usage_queried(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_usage_send(ngx_http_request_t *r);
static void ngx_http_xet_usage_bytes(xet_json_t *j, const char *name,
    uint64_t used, uint64_t limit, ngx_uint_t limited);


ngx_int_t
ngx_http_xet_usage_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    return ngx_http_xet_query_wait(r,
               ngx_http_xet_query(r, usage_get, ngx_http_xet_usage_queried));
}


static void
ngx_http_xet_usage_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    /* no row means that the request has neither a repo nor a subject */

    if (rc == NGX_OK || rc == NGX_DECLINED) {
        rc = ngx_http_xet_usage_send(r);

    } else {
        rc = ngx_http_xet_query_error(r, rc);
    }

    ngx_http_finalize_request(r, rc);
}


static ngx_int_t
ngx_http_xet_usage_send(ngx_http_request_t *r)
{
    xet_buf_t                      b;
    xet_json_t                     j;
    ngx_uint_t                     i, n;
    ngx_http_xet_repo_t            repo;
    ngx_http_xet_query_t          *q;
    ngx_http_xet_usage_get_row_t   usage;

    ngx_http_xet_repo(r, &repo);

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 512);
    xet_json_init(&j, &b);

    xet_json_object_begin(&j);

    q = ngx_http_xet_ctx_of(r)->query;
    n = ngx_http_xet_query_rows(q);

    for (i = 0; i < n; i++) {
        (void) ngx_http_xet_row_usage_get(q->res, i, &usage);

        xet_json_key(&j, (usage.kind.len == 4) ? "repo" : "subject");
        xet_json_object_begin(&j);
        xet_json_put_u64(&j, "files", usage.files);

        ngx_http_xet_usage_bytes(&j, "logical", usage.logical,
                                 usage.logical_max, usage.logical_max != -1);

        if (usage.stored_max != -1 || repo.any || ngx_http_xet_dedup_wide(r))
        {
            ngx_http_xet_usage_bytes(&j, "stored", usage.stored,
                                     usage.stored_max, usage.stored_max != -1);
        }

        ngx_http_xet_usage_bytes(&j, "metadata", usage.metadata,
                                 usage.metadata_max,
                                 usage.metadata_max != -1);

        xet_json_object_end(&j);
    }

    xet_json_object_end(&j);

    if (ngx_http_xet_header(r, "Cache-Control", "private, no-store")
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_send(r, NGX_HTTP_OK, "application/json", &b);
}


static void
ngx_http_xet_usage_bytes(xet_json_t *j, const char *name, uint64_t used,
    uint64_t limit, ngx_uint_t limited)
{
    xet_json_key(j, name);
    xet_json_object_begin(j);
    xet_json_put_u64(j, "used", used);

    if (limited) {
        xet_json_put_u64(j, "limit", limit);
        xet_json_put_u64(j, "left", limit - ngx_min(used, limit));
    }

    xet_json_object_end(j);
}
