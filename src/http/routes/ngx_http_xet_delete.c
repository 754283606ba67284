
/*
 * DELETE files/{file} and DELETE repo.
 *
 *     files  handler -> if files belong to repos, removes the file from the
 *            token's repo, else removes the file from the store, unless a repo
 *            contains it -> 204
 *     repo   handler -> deletes the token's repo with all its references, in
 *            one transaction -> 204
 *
 * Both routes delete rows before the response is sent, so later requests do not
 * find the file.  The garbage collector later removes unused bytes.  A
 * statement that is repeated after its session was lost returns the result of
 * the first execution.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"


static void ngx_http_xet_file_forgotten(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_file_deleted(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_repo_check(ngx_http_request_t *r,
    ngx_str_t *repo);
static void ngx_http_xet_repo_deleted(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_delete_send(ngx_http_request_t *r);


ngx_int_t
ngx_http_xet_file_delete_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_xet_repo_t  repo;

    ngx_http_xet_repo(r, &repo);

    if (ngx_http_xet_token_hub(&repo.name)) {
        return ngx_http_xet_error(r, NGX_HTTP_FORBIDDEN, "hub_repo",
                                  "the repo belongs to a Hub; delete its "
                                  "files with a commit");
    }

    rc = repo.any
         ? ngx_http_xet_query(r, file_delete, ngx_http_xet_file_deleted,
                              .file = &ctx->hash)
         : ngx_http_xet_query(r, repo_forget, ngx_http_xet_file_forgotten,
                              .repo = repo.name, .file = &ctx->hash);

    return ngx_http_xet_query_wait(r, rc);
}


static void
ngx_http_xet_file_forgotten(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc == NGX_OK && ngx_http_xet_query_number(r) == 0) {
        rc = NGX_DECLINED;
    }

    ngx_http_xet_query_answer(r, rc, ngx_http_xet_delete_send,
                              "file_not_found", "no such file in the repo");
}


static void
ngx_http_xet_file_deleted(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc == NGX_OK) {

        switch (ngx_http_xet_query_number(r)) {

        case 0:
            rc = NGX_DECLINED;
            break;

        case 1:
            break;

        default: /* 2 */
            ngx_http_finalize_request(r,
                         ngx_http_xet_error(r, NGX_HTTP_CONFLICT,
                                            "file_in_repos",
                                            "the file is in use by repos"));
            return;
        }
    }

    ngx_http_xet_query_answer(r, rc, ngx_http_xet_delete_send,
                              "file_not_found", "no such file");
}


ngx_int_t
ngx_http_xet_repo_delete_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_xet_repo_t  repo;

    ngx_http_xet_repo(r, &repo);

    if (repo.any) {
        return ngx_http_xet_error(r, NGX_HTTP_FORBIDDEN, "no_repos",
                                  "files belong to the store and not to repos "
                                  "(xet_access store)");
    }

    if (ngx_http_xet_token_hub(&repo.name)) {
        return ngx_http_xet_error(r, NGX_HTTP_FORBIDDEN, "hub_repo",
                                  "the repo belongs to a Hub; delete it by "
                                  "name with DELETE api/repos/delete");
    }

    rc = ngx_http_xet_repo_check(r, &repo.name);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_DECLINED) {
        return ngx_http_xet_error(r, NGX_HTTP_CONFLICT, "other_repo",
                                  "the token names another repo");
    }

    rc = ngx_http_xet_query(r, repo_delete, ngx_http_xet_repo_deleted,
                            .repo = repo.name);

    return ngx_http_xet_query_wait(r, rc);
}


/*
 * Checks the optional argument "name".  The token names the repo to delete;
 * "?name=" protects a caller who uses the token of another repo by mistake.
 */

static ngx_int_t
ngx_http_xet_repo_check(ngx_http_request_t *r, ngx_str_t *repo)
{
    u_char     *dst, *src;
    ngx_str_t   value, name;

    if (ngx_http_arg(r, (u_char *) "name", 4, &value) != NGX_OK) {
        return NGX_OK;
    }

    name.data = ngx_pnalloc(r->pool, value.len + 1);
    if (name.data == NULL) {
        return NGX_ERROR;
    }

    dst = name.data;
    src = value.data;

    ngx_unescape_uri(&dst, &src, value.len, 0);

    name.len = dst - name.data;

    return (name.len == repo->len
            && ngx_memcmp(name.data, repo->data, name.len) == 0)
           ? NGX_OK : NGX_DECLINED;
}


static void
ngx_http_xet_repo_deleted(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc == NGX_OK && ngx_http_xet_query_number(r) == 0) {
        rc = NGX_DECLINED;
    }

    ngx_http_xet_query_answer(r, rc, ngx_http_xet_delete_send,
                              "repo_not_found", "no such repo");
}


static ngx_int_t
ngx_http_xet_delete_send(ngx_http_request_t *r)
{
    ngx_http_xet_audit(r)->result = "removed";

    r->headers_out.status = NGX_HTTP_NO_CONTENT;
    r->header_only = 1;

    return ngx_http_xet_sent(ngx_http_send_header(r));
}
