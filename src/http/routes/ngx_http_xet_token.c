
/*
 * The location of "xet_token", which issues tokens.  Before the handler runs,
 * nginx may authenticate the request in any way.
 *
 * Scope, repo and subject are complex values, so nginx's "map" can decide
 * about permissions.  An empty scope is rejected; without "xet_token_scope"
 * the scope is "read".  The response has the form that clients expect from a
 * Hub, as JSON and in headers (docs/protocol.md, token endpoint).
 *
 * With "xet_token_epoch" the endpoint of a token with write access ends in
 * /e<digits>, which the router skips.  Clients cache their uploads by endpoint,
 * so they forget these uploads when the endpoint changes.  The last eight
 * digits are the minute, since 1970, in which the current period began; the
 * digits before them are the configured number.  So an endpoint can recur only
 * with the same number and within the same period, even if periods or clocks
 * were changed, and the cache of a client is never older than the period.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_routes.h"


#define NGX_HTTP_XET_HUB_REPO  "_hub/"          /* same as in xet.hub_store() */


static ngx_int_t ngx_http_xet_token_claims(ngx_http_request_t *r,
    xet_token_claims_t *claims);
static ngx_int_t ngx_http_xet_token_value(ngx_http_request_t *r,
    ngx_http_complex_value_t *cv, xet_token_text_t *text);
static ngx_int_t ngx_http_xet_token_epoch(ngx_http_request_t *r,
    ngx_str_t *url);
static void ngx_http_xet_token_note(ngx_http_request_t *r,
    xet_token_claims_t *claims);
static ngx_int_t ngx_http_xet_token_send(ngx_http_request_t *r,
    ngx_str_t *url, ngx_str_t *token, uint64_t exp);


ngx_int_t
ngx_http_xet_token_handler(ngx_http_request_t *r)
{
    ngx_int_t            rc;
    ngx_str_t            repo;
    xet_token_claims_t   claims;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {

        if (ngx_http_xet_header(r, "Allow", "GET, HEAD") != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        return ngx_http_xet_error(r, NGX_HTTP_NOT_ALLOWED,
                                  "method_not_allowed",
                                  "this method is not allowed here");
    }

    rc = ngx_http_xet_token_claims(r, &claims);

    if (rc == NGX_DECLINED) {
        return ngx_http_xet_error(r, NGX_HTTP_FORBIDDEN, "insufficient_scope",
                                  "this location gives you no token");
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* only the Hub issues tokens for its repos */

    repo.data = (u_char *) claims.repo.data;
    repo.len = claims.repo.len;

    if (ngx_http_xet_token_hub(&repo)) {
        return ngx_http_xet_error(r, NGX_HTTP_BAD_REQUEST, "invalid_claim",
                                  "invalid name of a repository or a subject");
    }

    return ngx_http_xet_token_give(r, &claims);
}


ngx_uint_t
ngx_http_xet_token_hub(const ngx_str_t *repo)
{
    return repo->len >= sizeof(NGX_HTTP_XET_HUB_REPO) - 1
           && ngx_memcmp(repo->data, NGX_HTTP_XET_HUB_REPO,
                         sizeof(NGX_HTTP_XET_HUB_REPO) - 1)
              == 0;
}


ngx_int_t
ngx_http_xet_token_give(ngx_http_request_t *r, xet_token_claims_t *claims)
{
    ngx_str_t  url, token;

    switch (ngx_http_xet_token_make(r, claims, &url, &token)) {

    case NGX_OK:
        return ngx_http_xet_token_send(r, &url, &token, claims->exp);

    case NGX_ABORT:
        return ngx_http_xet_error(r, NGX_HTTP_BAD_REQUEST, "invalid_claim",
                                  "invalid name of a repository or a subject");

    case NGX_DECLINED:
        return ngx_http_xet_error(r, NGX_HTTP_BAD_REQUEST, "no_host",
                                  "the request has no host name");

    default:
        return ngx_http_xet_error_status(r, XET_INTERNAL);
    }
}


ngx_int_t
ngx_http_xet_token_make(ngx_http_request_t *r, xet_token_claims_t *claims,
    ngx_str_t *url, ngx_str_t *token)
{
    ngx_int_t                  rc;
    ngx_http_xet_loc_conf_t   *xlcf;
    ngx_http_xet_main_conf_t  *xmcf;

    /* repo and subject may come from the request: path, certificate, cookie */

    if ((claims->repo.data
         && !xet_token_repo_ok(claims->repo.data, claims->repo.len))
        || (claims->sub.data
            && !xet_token_text_ok(&claims->sub, XET_TOKEN_SUB_MAX)))
    {
        return NGX_ABORT;
    }

    rc = ngx_http_xet_token_endpoint(r, url);

    /* a client with read access uploads nothing, and may keep its cache */

    if (rc == NGX_OK && claims->scope != XET_SCOPE_READ) {
        rc = ngx_http_xet_token_epoch(r, url);
    }

    token->data = ngx_pnalloc(r->pool, XET_TOKEN_MINT_MAX);

    if (rc != NGX_OK || token->data == NULL) {
        return (rc == NGX_DECLINED) ? NGX_DECLINED : NGX_ERROR;
    }

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    if (xet_token_mint(xmcf->token_sign, &xlcf->token, claims, token->data,
                       XET_TOKEN_MINT_MAX, &token->len)
        != XET_OK)
    {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "xet: a token could not be signed");
        return NGX_ERROR;
    }

    ngx_http_xet_token_note(r, claims);

    return NGX_OK;
}


/* Records the claims of an issued token for $xet_audit, but not the token. */

static void
ngx_http_xet_token_note(ngx_http_request_t *r, xet_token_claims_t *claims)
{
    size_t                     len;
    ngx_http_xet_audit_t      *audit;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    audit = ngx_http_xet_audit_begin(r);
    if (audit == NULL) {
        return;
    }

    audit->action = "token.mint";
    audit->write = 1;
    audit->mint = 1;
    audit->scope = claims->scope;
    audit->expires = claims->exp;

    audit->repo.data = (u_char *) claims->repo.data;
    audit->repo.len = claims->repo.len;
    audit->subject.data = (u_char *) claims->sub.data;
    audit->subject.len = claims->sub.len;

    audit->key.data = (u_char *) xet_jwk_id(xmcf->token_sign, &len);
    audit->key.len = len;
}


/*
 * Fills the claims from the configuration and the current time.  Returns
 * NGX_OK, NGX_DECLINED if the scope is unknown, or NGX_ERROR.
 */

static ngx_int_t
ngx_http_xet_token_claims(ngx_http_request_t *r, xet_token_claims_t *claims)
{
    xet_token_text_t          scope;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    ngx_memzero(claims, sizeof(xet_token_claims_t));

    if (ngx_http_xet_token_value(r, xlcf->token_scope, &scope) != NGX_OK
        || ngx_http_xet_token_value(r, xlcf->token_repo, &claims->repo)
           != NGX_OK
        || ngx_http_xet_token_value(r, xlcf->token_subject, &claims->sub)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (xlcf->token_scope
        && !xet_scope_parse(&claims->scope, scope.data, scope.len))
    {
        return NGX_DECLINED;
    }

    /*
     * a read-only server must not issue tokens that permit writing on another
     * server
     */

    if (xlcf->read_only) {
        claims->scope = XET_SCOPE_READ;
    }

    claims->iat = (uint64_t) ngx_time();
    claims->exp = claims->iat + (uint64_t) xlcf->token_lifetime;

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_token_value(ngx_http_request_t *r, ngx_http_complex_value_t *cv,
    xet_token_text_t *text)
{
    ngx_str_t  value;

    text->data = NULL;
    text->len = 0;

    if (cv == NULL) {
        return NGX_OK;
    }

    if (ngx_http_complex_value(r, cv, &value) != NGX_OK) {
        return NGX_ERROR;
    }

    if (value.len) {
        text->data = value.data;
        text->len = value.len;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_token_endpoint(ngx_http_request_t *r, ngx_str_t *url)
{
    u_char                   *p;
    ngx_int_t                 rc;
    ngx_http_xet_url_t        base;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (xlcf->token_cas_url) {

        if (ngx_http_complex_value(r, xlcf->token_cas_url, url) != NGX_OK) {
            return NGX_ERROR;
        }

    } else {

        rc = ngx_http_xet_url_init(r, &base);

        if (rc != NGX_OK) {
            return rc;
        }

        url->len = base.base.len + xlcf->api_base.len;
        url->data = ngx_pnalloc(r->pool, url->len);

        if (url->data == NULL) {
            return NGX_ERROR;
        }

        p = ngx_cpymem(url->data, base.base.data, base.base.len);
        ngx_memcpy(p, xlcf->api_base.data, xlcf->api_base.len);
    }

    /* clients append "/v1/..." to the URL, so it must not end with "/" */

    while (url->len && url->data[url->len - 1] == '/') {
        url->len--;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_token_epoch(ngx_http_request_t *r, ngx_str_t *url)
{
    off_t                     number;
    u_char                   *p;
    time_t                    start;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    number = xlcf->token_number;

    if (xlcf->token_period) {
        start = ngx_time() / xlcf->token_period * xlcf->token_period;
        number = ngx_max(number, 0) * 100000000 + start / 60;

    } else if (number == NGX_HTTP_XET_NO_NUMBER) {
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, url->len + sizeof("/e") + NGX_OFF_T_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    url->len = ngx_sprintf(p, "%V/e%O", url, number) - p;
    url->data = p;

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_token_send(ngx_http_request_t *r, ngx_str_t *url,
    ngx_str_t *token, uint64_t exp)
{
    u_char     *p;
    ngx_str_t   expires;
    xet_buf_t   b;
    xet_json_t  j;

    p = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    expires.data = p;
    expires.len = ngx_sprintf(p, "%uL", exp) - p;

    if (ngx_http_xet_header_add(r, "X-Xet-Cas-Url", url) == NULL
        || ngx_http_xet_header_add(r, "X-Xet-Access-Token", token) == NULL
        || ngx_http_xet_header_add(r, "X-Xet-Token-Expiration", &expires)
           == NULL
        || ngx_http_xet_header(r, "Cache-Control", "private, no-store")
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 2048);
    xet_json_init(&j, &b);

    xet_json_object_begin(&j);
    xet_json_put_string(&j, "casUrl", url->data, url->len);
    xet_json_put_u64(&j, "exp", exp);
    xet_json_put_string(&j, "accessToken", token->data, token->len);
    xet_json_object_end(&j);

    return ngx_http_xet_send(r, NGX_HTTP_OK, "application/json", &b);
}
