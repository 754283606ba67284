
/*
 * Authenticates a request, and checks its permissions.
 *
 * A token is verified at first use: in the access phase, or earlier if a zone
 * of limit_req needs the subject.  The request keeps the result as long as it
 * stays in a location with the same rules.  The token cache shares the results
 * for valid tokens among all workers, until the tokens expire.  Verifying a
 * signature takes only 10 to 100 microseconds, so it is done in the event loop.
 *
 * Status 401 means that the token is missing or invalid; clients do not retry.
 * Status 403 means that a valid token does not permit the request.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"


static xet_status_t ngx_http_xet_auth_verify(ngx_http_request_t *r,
    ngx_http_xet_auth_t *auth);
static ngx_int_t ngx_http_xet_auth_bearer(ngx_http_request_t *r,
    ngx_str_t *token);
static ngx_int_t ngx_http_xet_auth_basic(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_auth_refuse(ngx_http_request_t *r,
    ngx_uint_t status, const char *code, const char *message);


ngx_http_xet_auth_t *
ngx_http_xet_auth(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t       *ctx;
    ngx_http_xet_auth_t      *auth;
    ngx_http_xet_loc_conf_t  *xlcf;

    ctx = ngx_http_xet_ctx(r);
    if (ctx == NULL) {
        return NULL;
    }

    /* after a rewrite to another location, the token is verified again */

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (ctx->auth && ctx->auth->rules == xlcf) {
        return ctx->auth;
    }

    auth = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_auth_t));
    if (auth == NULL) {
        return NULL;
    }

    auth->rules = xlcf;
    auth->status = ngx_http_xet_auth_verify(r, auth);

    if (auth->status == XET_OK) {
        auth->subject.data = (u_char *) auth->claims.sub.data;
        auth->subject.len = auth->claims.sub.data ? auth->claims.sub.len : 0;
        auth->repo.data = (u_char *) auth->claims.repo.data;
        auth->repo.len = auth->claims.repo.data ? auth->claims.repo.len : 0;
    }

    /* SQL and logs need an empty string, not NULL */

    if (auth->repo.data == NULL) {
        ngx_str_set(&auth->repo, "");
    }

    ctx->auth = auth;

    ngx_http_xet_audit(r)->auth = auth;

    return auth;
}


static xet_status_t
ngx_http_xet_auth_verify(ngx_http_request_t *r, ngx_http_xet_auth_t *auth)
{
    uint64_t                   now;
    ngx_str_t                  token;
    xet_hash_t                 digest;
    xet_status_t               rc;
    ngx_http_xet_loc_conf_t   *xlcf;
    ngx_http_xet_main_conf_t  *xmcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    if (xlcf->auth != NGX_HTTP_XET_AUTH_TOKEN || xmcf->token_keys == NULL
        || ngx_http_xet_auth_bearer(r, &token) != NGX_OK)
    {
        return XET_TOKEN_MISSING;
    }

    now = (uint64_t) ngx_time();

    if (xmcf->token_cache == NULL || token.len > XET_TOKEN_MAX) {
        return xet_token_verify(xmcf->token_keys, &xlcf->token, token.data,
                                token.len, now, auth->room, &auth->claims);
    }

    ngx_http_xet_token_cache_digest(xmcf->token_cache, &xlcf->token_mark,
                                    &token, &digest);

    if (ngx_http_xet_token_cache_find(xmcf->token_cache, &digest, now,
                                      auth->room, &auth->claims)
        == NGX_OK)
    {
        ngx_http_xet_count_at(TOKENS, NGX_HTTP_XET_LOOKUP_HIT, 1);
        return XET_OK;
    }

    ngx_http_xet_count_at(TOKENS, NGX_HTTP_XET_LOOKUP_MISS, 1);

    rc = xet_token_verify(xmcf->token_keys, &xlcf->token, token.data,
                          token.len, now, auth->room, &auth->claims);

    if (rc == XET_OK) {
        ngx_http_xet_token_cache_add(xmcf->token_cache, &digest, now,
                                     &auth->claims);
    }

    return rc;
}


static ngx_int_t
ngx_http_xet_auth_bearer(ngx_http_request_t *r, ngx_str_t *token)
{
    ngx_str_t                *value;
    ngx_http_xet_loc_conf_t  *xlcf;

    static const u_char  scheme[] = "Bearer ";

    if (r->headers_in.authorization == NULL) {
        return NGX_DECLINED;
    }

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    value = &r->headers_in.authorization->value;

    if (value->len >= sizeof(scheme)
        && ngx_strncasecmp(value->data, (u_char *) scheme, sizeof(scheme) - 1)
           == 0)
    {
        token->data = value->data + sizeof(scheme) - 1;
        token->len = value->len - (sizeof(scheme) - 1);

    } else if (xlcf->hub && ngx_http_xet_auth_basic(r) == NGX_OK) {
        *token = r->headers_in.passwd;

    } else {
        return NGX_DECLINED;
    }

    /* some clients of a Hub accept only tokens with the prefix "hf_" */

    if (token->len > 3 && ngx_strncmp(token->data, "hf_", 3) == 0)
    {
        token->data += 3;
        token->len -= 3;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_auth_key(ngx_http_request_t *r, ngx_str_t *key)
{
    ngx_str_t                  token;
    ngx_http_xet_main_conf_t  *xmcf;

    if (ngx_http_xet_auth_bearer(r, &token) != NGX_OK) {
        return NGX_DECLINED;
    }

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    key->data = ngx_pnalloc(r->pool, XET_JWK_ID_MAX);
    if (key->data == NULL) {
        return NGX_DECLINED;
    }

    key->len = xet_token_key_id(xmcf->token_keys, token.data, token.len,
                                key->data);

    return key->len ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_http_xet_auth_check(ngx_http_request_t *r, xet_scope_e scope)
{
    ngx_int_t                 rc;
    ngx_http_xet_auth_t      *auth;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (xlcf->auth == NGX_HTTP_XET_AUTH_OFF) {
        return NGX_OK;
    }

    rc = ngx_http_xet_auth_tls(r);

    if (rc != NGX_OK) {
        return rc;
    }

    auth = ngx_http_xet_auth(r);
    if (auth == NULL) {
        return NGX_ERROR;
    }

    if (auth->status != XET_OK) {
        return ngx_http_xet_auth_refuse(r, xet_status_http(auth->status),
                                        xet_status_code(auth->status),
                                        xet_status_text(auth->status));
    }

    if (scope > auth->claims.scope) {
        return ngx_http_xet_auth_refuse(r, NGX_HTTP_FORBIDDEN,
                                        "insufficient_scope",
                                        (scope == XET_SCOPE_DELETE)
                                        ? "the token does not permit deleting"
                                        : "the token does not permit writing");
    }

    if (scope > XET_SCOPE_READ && xlcf->repos && auth->repo.len == 0) {
        return ngx_http_xet_auth_refuse(r, NGX_HTTP_FORBIDDEN,
                                        "insufficient_scope",
                                        "the token names no repo");
    }

    return NGX_OK;
}


const char *
ngx_http_xet_closed(ngx_http_request_t *r, xet_scope_e scope,
    const char **message)
{
    ngx_uint_t                i;
    ngx_http_xet_loc_conf_t  *xlcf;

    /* t/code/docs.t compares this table with docs/api.md */

    static const struct {
        ngx_uint_t            status;
        const char           *code;
        const char           *message;
    } refusals[] = {
        { 403, "read_only", "this server is read-only" },
        { 403, "no_deletes", "deletion is disabled on this server" }
    };

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (xlcf->read_only && scope > XET_SCOPE_READ) {
        i = 0;

    } else if (!xlcf->deletes && scope == XET_SCOPE_DELETE) {
        i = 1;

    } else {
        return NULL;
    }

    *message = refusals[i].message;

    return refusals[i].code;
}


/*
 * Accepts a token as the password of basic authentication, which git and
 * browsers use.  Browsers add the password even to requests triggered by a page
 * from another origin.  So a token sent as a password does not permit writes
 * that have an Origin header, which only browsers send.
 */

static ngx_int_t
ngx_http_xet_auth_basic(ngx_http_request_t *r)
{
    if (ngx_http_auth_basic_user(r) != NGX_OK
        || r->headers_in.passwd.len == 0)
    {
        return NGX_DECLINED;
    }

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))
        && ngx_http_xet_header_find(&r->headers_in.headers, "Origin", 0))
    {
        return NGX_DECLINED;
    }

    return NGX_OK;
}


/* A token sent in clear text may be stolen, so the request is rejected. */

ngx_int_t
ngx_http_xet_auth_tls(ngx_http_request_t *r)
{
    ngx_str_t                 value;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (xlcf->tls == NGX_HTTP_XET_TLS_OFF) {
        return NGX_OK;
    }

    if (xlcf->tls == NGX_HTTP_XET_TLS_ON) {

#if (NGX_HTTP_SSL)

        if (r->connection->ssl) {
            return NGX_OK;
        }

#endif

    } else {

        /* a proxy in front of the server reports whether TLS was used */

        if (ngx_http_complex_value(r, xlcf->tls_value, &value) != NGX_OK) {
            return NGX_ERROR;
        }

        if ((value.len == 2 && ngx_strncmp(value.data, "on", 2) == 0)
            || (value.len == 1 && value.data[0] == '1')
            || (value.len == 5
                && ngx_strncasecmp(value.data, (u_char *) "https", 5) == 0))
        {
            return NGX_OK;
        }
    }

    return ngx_http_xet_auth_refuse(r, NGX_HTTP_FORBIDDEN, "tls_required",
                                    "tokens are accepted over TLS only");
}


static ngx_int_t
ngx_http_xet_auth_refuse(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message)
{
    if (status == NGX_HTTP_UNAUTHORIZED
        && ngx_http_xet_header(r, "WWW-Authenticate",
                               "Bearer realm=\"xet\", "
                               "error=\"invalid_token\"")
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_finalize_request(r, ngx_http_xet_error(r, status, code, message));

    return NGX_DONE;
}


void
ngx_http_xet_repo(ngx_http_request_t *r, ngx_http_xet_repo_t *repo)
{
    ngx_http_xet_ctx_t       *ctx;
    ngx_http_xet_auth_t      *auth;
    ngx_http_xet_loc_conf_t  *xlcf;

    repo->any = 0;
    ngx_str_set(&repo->name, "");

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (ctx && ctx->repo.len) {
        repo->name = ctx->repo;
        return;
    }

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (!xlcf->repos) {
        repo->any = 1;
        return;
    }

    auth = ngx_http_xet_auth(r);

    if (auth) {
        repo->name = auth->repo;
    }
}


ngx_str_t
ngx_http_xet_subject(ngx_http_request_t *r)
{
    ngx_str_t                 subject;
    ngx_http_xet_auth_t      *auth;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    ngx_str_set(&subject, "");

    if (xlcf->auth != NGX_HTTP_XET_AUTH_TOKEN) {
        return subject;
    }

    auth = ngx_http_xet_auth(r);

    if (auth == NULL) {
        ngx_str_null(&subject);
        return subject;
    }

    /* on a Hub, an upload to an LFS URL may have an empty subject */

    if (auth->subject.len == 0 && xlcf->repos && !xlcf->hub) {
        return subject;
    }

    /* a subject is unique only together with its issuer */

    subject.len = xlcf->issuer.len + 1 + auth->subject.len;
    subject.data = ngx_pnalloc(r->pool, subject.len);

    if (subject.data) {
        (void) ngx_sprintf(subject.data, "%V%Z%V", &xlcf->issuer,
                           &auth->subject);
    }

    return subject;
}


ngx_uint_t
ngx_http_xet_proof(ngx_http_request_t *r)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    return xlcf->auth == NGX_HTTP_XET_AUTH_TOKEN;
}


/* By default "xet_dedup_scope" has the value of "xet_access". */

ngx_uint_t
ngx_http_xet_dedup_wide(ngx_http_request_t *r)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    return xlcf->dedup_scope == NGX_HTTP_XET_ACCESS_STORE;
}
