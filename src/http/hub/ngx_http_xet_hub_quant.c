
/*
 * GET and HEAD v2/{id}/manifests/{tag} and v2/{id}/blobs/{digest}: GGUF files
 * by a tag, for llama.cpp, node-llama-cpp and Ollama, which requests models as
 * from a registry of containers.
 *
 *     handler -> one statement, which finds the file on "main"
 *
 * A manifest names the file, and its layers by their SHA-256.  A blob is a
 * redirect to the file, or the small configuration in the manifest.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_hub.h"


#define NGX_HTTP_XET_HUB_MANIFEST                                             \
    "application/vnd.docker.distribution.manifest.v2+json"
#define NGX_HTTP_XET_HUB_CONFIG                                               \
    "application/vnd.docker.container.image.v1+json"


static void ngx_http_xet_hub_manifest_answered(ngx_http_request_t *r,
    ngx_int_t rc);
static ngx_int_t ngx_http_xet_hub_manifest_missing(ngx_http_request_t *r,
    const ngx_http_xet_hub_answer_t *answer);
static void ngx_http_xet_hub_blob_answered(ngx_http_request_t *r,
    ngx_int_t rc);
static ngx_int_t ngx_http_xet_hub_blob_file(ngx_http_request_t *r,
    const ngx_http_xet_hub_answer_t *answer);
static ngx_int_t ngx_http_xet_hub_quant_send(ngx_http_request_t *r,
    const char *type, const ngx_str_t *json);


ngx_int_t
ngx_http_xet_hub_manifest_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    return ngx_http_xet_query_wait(r,
               ngx_http_xet_query(r, hub_manifest,
                                  ngx_http_xet_hub_manifest_answered,
                                  .asked = &hub->asked, .tag = hub->rev,
                                  .layers = ngx_http_xet_hub_registry(r)));
}


static void
ngx_http_xet_hub_manifest_answered(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_int_t                  missing;
    ngx_http_xet_hub_answer_t  answer;

    if (rc == NGX_OK) {
        ngx_http_xet_query_hub_get(r, &answer);

        missing = ngx_http_xet_hub_manifest_missing(r, &answer);

        if (missing != NGX_DECLINED) {
            ngx_http_finalize_request(r, missing);
            return;
        }
    }

    if (ngx_http_xet_hub_row(r, rc, &answer) != NGX_OK) {
        return;
    }

    if (ngx_http_xet_hub_header(r, "Docker-Content-Digest", "sha256:%V",
                                &answer.more)
        != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ngx_http_finalize_request(r,
        ngx_http_xet_hub_quant_send(r, NGX_HTTP_XET_HUB_MANIFEST,
                                    &answer.body));
}


/*
 * Answers a client without a token that requests a missing or private repo.
 * node-llama-cpp sends its token only after a 401.  Returns NGX_DECLINED if the
 * error in the row applies.
 */

static ngx_int_t
ngx_http_xet_hub_manifest_missing(ngx_http_request_t *r,
    const ngx_http_xet_hub_answer_t *answer)
{
    ngx_int_t                 rc;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (answer->status != NGX_HTTP_NOT_FOUND
        || !ngx_http_xet_hub_is(&answer->code, "RepoNotFound")
        || xlcf->auth != NGX_HTTP_XET_AUTH_TOKEN
        || ngx_http_xet_auth(r)->status != XET_TOKEN_MISSING)
    {
        return NGX_DECLINED;
    }

    rc = ngx_http_xet_hub_is(&answer->more, "elsewhere")
         ? ngx_http_xet_hub_upstream(r) : NGX_DECLINED;

    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ngx_http_xet_hub_registry(r)) {
        return ngx_http_xet_hub_registry_deny(r);
    }

    if (ngx_http_xet_header(r, "WWW-Authenticate", "Bearer realm=\"xet\"")
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_hub_deny(r, NGX_HTTP_UNAUTHORIZED, "RepoNotFound",
                                 "Repository not found, or a token is"
                                 " required");
}


ngx_int_t
ngx_http_xet_hub_blob_handler(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    return ngx_http_xet_query_wait(r,
               ngx_http_xet_query(r, hub_blob, ngx_http_xet_hub_blob_answered,
                                  .asked = &hub->asked, .digest = hub->rev));
}


static void
ngx_http_xet_hub_blob_answered(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_answer_t  answer;

    if (ngx_http_xet_hub_row(r, rc, &answer) != NGX_OK) {
        return;
    }

    if (answer.body.data == NULL) {
        ngx_http_finalize_request(r, ngx_http_xet_hub_blob_file(r, &answer));
        return;
    }

    if (ngx_http_xet_hub_here(r) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ngx_http_finalize_request(r,
        ngx_http_xet_hub_quant_send(r, NGX_HTTP_XET_HUB_CONFIG, &answer.body));
}


/* Redirects to the file at the commit. */

static ngx_int_t
ngx_http_xet_hub_blob_file(ngx_http_request_t *r,
    const ngx_http_xet_hub_answer_t *answer)
{
    u_char              *p;
    size_t               len;
    ngx_str_t            none, location;
    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);

    len = answer->message.len
          + 2 * ngx_escape_uri(NULL, answer->message.data, answer->message.len,
                               NGX_ESCAPE_URI);

    location.data = ngx_pnalloc(r->pool, hub->base.len + answer->more.len
                                         + answer->code.len + len
                                         + sizeof("//resolve//?blob=1"));
    if (location.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = ngx_sprintf(location.data, "%V/%V/resolve/%V/", &hub->base,
                    &answer->more, &answer->code);
    p = (u_char *) ngx_escape_uri(p, answer->message.data,
                                  answer->message.len, NGX_ESCAPE_URI);
    p = ngx_cpymem(p, "?blob=1", sizeof("?blob=1") - 1);

    location.len = p - location.data;

    r->headers_out.location = ngx_http_xet_header_add(r, "Location",
                                                      &location);
    if (r->headers_out.location == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_str_set(&none, "{}");

    return ngx_http_xet_hub_json(r, NGX_HTTP_TEMPORARY_REDIRECT, &none);
}


ngx_int_t
ngx_http_xet_hub_here(ngx_http_request_t *r)
{
    ngx_http_xet_hub_t  *hub;

    hub = ngx_http_xet_hub_get(r);

    return ngx_http_xet_hub_header(r, "Location", "%V%V", &hub->origin,
                                   &r->unparsed_uri);
}


static ngx_int_t
ngx_http_xet_hub_quant_send(ngx_http_request_t *r, const char *type,
    const ngx_str_t *json)
{
    xet_buf_t  b;

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, json->len);
    xet_buf_write(&b, json->data, json->len);

    return ngx_http_xet_hub_send(r, NGX_HTTP_OK, type, &b);
}
