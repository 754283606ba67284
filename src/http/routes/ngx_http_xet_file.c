
/*
 * DELETE files/{file}: takes the file out of the token's repo; its bytes stay
 * as long as somebody refers to them.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"


static void ngx_http_xet_file_deleted(ngx_http_request_t *r, ngx_int_t rc);


ngx_int_t
ngx_http_xet_file_delete_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx)
{
    ngx_int_t   rc;
    ngx_str_t  *repo;

    repo = ngx_http_xet_repo(r);

    if (repo == NULL) {
        return ngx_http_xet_error(r, NGX_HTTP_FORBIDDEN, "no_repos",
                                  "files belong to the store, not to repos");
    }

    rc = ngx_http_xet_query_repo_forget(r, repo, &ctx->hash,
                                        ngx_http_xet_file_deleted);

    return ngx_http_xet_query_wait(r, rc);
}


static void
ngx_http_xet_file_deleted(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc == NGX_OK && !ngx_http_xet_query_repo_forget_found(r)) {
        rc = NGX_DECLINED;
    }

    if (rc == NGX_OK) {
        r->headers_out.status = NGX_HTTP_NO_CONTENT;
        r->header_only = 1;

        rc = ngx_http_send_header(r);

    } else {
        rc = ngx_http_xet_query_error(r, rc, "file_not_found",
                                      "no such file in the repo");
    }

    ngx_http_finalize_request(r, rc);
}
