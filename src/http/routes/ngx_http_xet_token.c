
/*
 * The location of "xet_token", which issues tokens.  Before the handler runs,
 * nginx may authenticate the request in any way.
 *
 * Scope, repo and subject are complex values, so nginx's "map" can decide
 * about permissions.  An empty scope is rejected; without "xet_token_scope"
 * the scope is "read".  The response has the form that clients expect from a
 * Hub, as JSON and in headers (docs/protocol.md, token endpoint).
 *
 * The endpoint of a token with write access ends in an epoch, /e<digits>, which
 * the router skips.  Clients remember by the text of the endpoint which xorbs
 * they need not send.  So the epoch is a digest of all that decides to which
 * xorbs the bearer may refer:
 *
 *     the store, and losses in it      xet.token_epoch()
 *     repo and subject                 the claims; the right to refer to a
 *                                      xorb depends on both
 *     number, start of the period      "xet_token_epoch"
 *
 * A client with read access sends nothing, and gets no epoch: old clients also
 * cache downloads by endpoint.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"

#include <openssl/sha.h>


#define NGX_HTTP_XET_HUB_REPO    "_hub/"       /* same as in xet.hub_store() */
#define NGX_HTTP_XET_EPOCH_MOST  10000000000   /* ten digits, see the router */


static ngx_int_t ngx_http_xet_token_claims(ngx_http_request_t *r,
    xet_token_claims_t *claims);
static ngx_int_t ngx_http_xet_token_value(ngx_http_request_t *r,
    ngx_http_complex_value_t *cv, xet_token_text_t *text);
static ngx_int_t ngx_http_xet_token_claims_copy(ngx_http_request_t *r,
    xet_token_text_t *text);
static void ngx_http_xet_token_asked(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_token_respond(ngx_http_request_t *r);
static ngx_uint_t ngx_http_xet_token_claims_ok(
    const xet_token_claims_t *claims);
static ngx_int_t ngx_http_xet_token_epoch(ngx_http_request_t *r,
    const xet_token_claims_t *claims, ngx_str_t *url);
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
ngx_http_xet_token_give(ngx_http_request_t *r,
    const xet_token_claims_t *claims)
{
    ngx_int_t            rc;
    xet_token_claims_t  *copy;
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_xet_ctx(r);
    copy = ngx_palloc(r->pool, sizeof(xet_token_claims_t));

    if (ctx == NULL || copy == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* the strings may be in rows, which the next statement frees */

    *copy = *claims;

    if (ngx_http_xet_token_claims_copy(r, &copy->repo) != NGX_OK
        || ngx_http_xet_token_claims_copy(r, &copy->sub) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->claims = copy;

    rc = ngx_http_xet_token_epoch_ask(r, copy, ngx_http_xet_token_asked);

    return (rc == NGX_OK) ? ngx_http_xet_token_respond(r)
                          : ngx_http_xet_query_wait(r, rc);
}


static ngx_int_t
ngx_http_xet_token_claims_copy(ngx_http_request_t *r, xet_token_text_t *text)
{
    ngx_str_t  from;

    if (text->data == NULL) {
        return NGX_OK;
    }

    from.data = (u_char *) text->data;
    from.len = text->len;

    text->data = ngx_pstrdup(r->pool, &from);

    return text->data ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_xet_token_epoch_ask(ngx_http_request_t *r,
    const xet_token_claims_t *claims,
    void (*handler)(ngx_http_request_t *r, ngx_int_t rc))
{
    ngx_str_t                  repo, sub;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    /* without "xet_api" there is no database; invalid claims get an error */

    if (claims->scope == XET_SCOPE_READ || !xmcf->api
        || !ngx_http_xet_token_claims_ok(claims))
    {
        return NGX_OK;
    }

    if (ngx_http_xet_query_create(r) != NGX_OK) {
        return NGX_ERROR;
    }

    repo.data = (u_char *) claims->repo.data;
    repo.len = claims->repo.len;
    sub.data = (u_char *) claims->sub.data;
    sub.len = claims->sub.len;

    return ngx_http_xet_query(r, token_epoch, handler, .repo = repo,
                              .subject = sub);
}


void
ngx_http_xet_token_epoch_read(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_of(r)->epoch = (uint64_t) ngx_http_xet_query_number(r);
}


static void
ngx_http_xet_token_asked(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc != NGX_OK) {
        ngx_http_xet_query_failed(r, rc);
        return;
    }

    ngx_http_xet_token_epoch_read(r);

    ngx_http_finalize_request(r, ngx_http_xet_token_respond(r));
}


static ngx_int_t
ngx_http_xet_token_respond(ngx_http_request_t *r)
{
    ngx_str_t            url, token;
    xet_token_claims_t  *claims;

    claims = ngx_http_xet_ctx_of(r)->claims;

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


/* Repo and subject may come from the request: path, certificate, cookie. */

static ngx_uint_t
ngx_http_xet_token_claims_ok(const xet_token_claims_t *claims)
{
    return (claims->repo.data == NULL
            || xet_token_repo_ok(claims->repo.data, claims->repo.len))
           && (claims->sub.data == NULL
               || xet_token_text_ok(&claims->sub, XET_TOKEN_SUB_MAX));
}


ngx_int_t
ngx_http_xet_token_make(ngx_http_request_t *r, xet_token_claims_t *claims,
    ngx_str_t *url, ngx_str_t *token)
{
    ngx_int_t                  rc;
    ngx_http_xet_loc_conf_t   *xlcf;
    ngx_http_xet_main_conf_t  *xmcf;

    if (!ngx_http_xet_token_claims_ok(claims)) {
        return NGX_ABORT;
    }

    rc = ngx_http_xet_token_endpoint(r, url);

    if (rc == NGX_OK && claims->scope != XET_SCOPE_READ) {
        rc = ngx_http_xet_token_epoch(r, claims, url);
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
    ngx_str_t                 base;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (xlcf->token_cas_url) {

        if (ngx_http_complex_value(r, xlcf->token_cas_url, url) != NGX_OK) {
            return NGX_ERROR;
        }

    } else {

        rc = ngx_http_xet_name_url(r, 0, &base);

        if (rc != NGX_OK) {
            return rc;
        }

        url->len = base.len + xlcf->api_base.len;
        url->data = ngx_pnalloc(r->pool, url->len);

        if (url->data == NULL) {
            return NGX_ERROR;
        }

        p = ngx_cpymem(url->data, base.data, base.len);
        ngx_memcpy(p, xlcf->api_base.data, xlcf->api_base.len);
    }

    /* clients append "/v1/..." to the URL, so it must not end with "/" */

    while (url->len && url->data[url->len - 1] == '/') {
        url->len--;
    }

    return NGX_OK;
}


/*
 * Appends the epoch.  Another number or period results in another epoch, in
 * which neither can be recognized.
 */

static ngx_int_t
ngx_http_xet_token_epoch(ngx_http_request_t *r,
    const xet_token_claims_t *claims, ngx_str_t *url)
{
    size_t                    len;
    u_char                   *text, *p, digest[SHA256_DIGEST_LENGTH];
    time_t                    start;
    uint64_t                  epoch;
    ngx_uint_t                i;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    start = xlcf->token_period
            ? ngx_time() / xlcf->token_period * xlcf->token_period : 0;

    len = url->len + claims->repo.len + claims->sub.len + 4 * NGX_INT64_LEN
          + sizeof("/e");

    text = ngx_pnalloc(r->pool, len);
    if (text == NULL) {
        return NGX_ERROR;
    }

    p = ngx_sprintf(text, "%uL %O %T %uz ", ngx_http_xet_ctx_of(r)->epoch,
                    xlcf->token_number, start, claims->repo.len);
    p = ngx_cpymem(p, claims->repo.data, claims->repo.len);
    p = ngx_cpymem(p, claims->sub.data, claims->sub.len);

    (void) SHA256(text, p - text, digest);

    for (epoch = 0, i = 0; i < sizeof(uint64_t); i++) {
        epoch = epoch << 8 | digest[i];
    }

    url->len = ngx_sprintf(text, "%V/e%uL", url,
                           epoch % NGX_HTTP_XET_EPOCH_MOST)
               - text;
    url->data = text;

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
