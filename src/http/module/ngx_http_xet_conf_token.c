
/*
 * Directives of tokens, their checks and defaults.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"


static char *ngx_http_xet_conf_add_keys(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf, ngx_str_t *file, ngx_str_t *content);
static xet_status_t ngx_http_xet_conf_add_private(
    ngx_http_xet_main_conf_t *xmcf, ngx_str_t *content);
static xet_status_t ngx_http_xet_conf_add_secrets(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf, ngx_str_t *content, size_t *index);
static xet_status_t ngx_http_xet_conf_add_key(ngx_http_xet_main_conf_t *xmcf,
    xet_jwk_t *key);
static void ngx_http_xet_conf_free_token_keys(void *data);


/*
 * xet_token_key file; several may be given.  The content shows its form: a JWK
 * set, PEM of public keys, PEM of one private Ed25519 key, or lines of
 * "<id>:<hex of the secret>".
 */

char *
ngx_http_xet_conf_token_key(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    char                *rv;
    ngx_str_t           *value, content;
    ngx_pool_cleanup_t  *cln;

    value = cf->args->elts;

    if (xmcf->token_keys == NULL) {

        cln = ngx_pool_cleanup_add(cf->pool, 0);
        if (cln == NULL) {
            return NGX_CONF_ERROR;
        }

        xmcf->token_keys = xet_jwk_set_create();
        if (xmcf->token_keys == NULL) {
            return NGX_CONF_ERROR;
        }

        cln->handler = ngx_http_xet_conf_free_token_keys;
        cln->data = xmcf;

        ngx_memzero(&xmcf->token_mark, sizeof(xet_hash_t));
    }

    if (ngx_http_xet_conf_read(cf, &value[1], XET_JWK_DOCUMENT_MAX, &content)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    /* cached verdicts are marked with the keys that they were made by */

    xet_hash_keyed(xmcf->token_mark.bytes, content.data, content.len,
                   &xmcf->token_mark);

    rv = ngx_http_xet_conf_add_keys(cf, xmcf, &value[1], &content);

    ngx_explicit_memzero(content.data, content.len);

    return rv;
}


static char *
ngx_http_xet_conf_add_keys(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf,
    ngx_str_t *file, ngx_str_t *content)
{
    size_t         index, i;
    xet_status_t   rc;

    for (i = 0; i < content->len && (content->data[i] == ' '
                                     || content->data[i] == '\n'); i++)
    {
        /* void */
    }

    index = 0;

    if (i < content->len && content->data[i] == '{') {
        rc = xet_jwk_set_add_jwks(xmcf->token_keys, content->data,
                                  content->len, &index);

    } else if (ngx_strnstr(content->data, "-----BEGIN PRIVATE KEY",
                           content->len))
    {
        rc = ngx_http_xet_conf_add_private(xmcf, content);

    } else if (ngx_strnstr(content->data, "-----BEGIN", content->len)) {
        rc = xet_jwk_set_add_pem(xmcf->token_keys, NULL, 0, content->data,
                                 content->len, &index);

    } else {
        rc = ngx_http_xet_conf_add_secrets(cf, xmcf, content, &index);
    }

    if (rc != XET_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "key %uz of \"%V\": %s", index + 1, file,
                           xet_status_text(rc));
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static xet_status_t
ngx_http_xet_conf_add_private(ngx_http_xet_main_conf_t *xmcf,
    ngx_str_t *content)
{
    xet_jwk_t     *key;
    xet_status_t   rc;

    rc = xet_jwk_create_private(&key, NULL, 0, content->data, content->len);

    return (rc == XET_OK) ? ngx_http_xet_conf_add_key(xmcf, key) : rc;
}


static xet_status_t
ngx_http_xet_conf_add_secrets(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf,
    ngx_str_t *content, size_t *index)
{
    u_char        *p, *last, *end, *colon;
    u_char         secret[XET_JWK_SECRET_MAX];
    ngx_str_t      hex;
    xet_jwk_t     *key;
    xet_status_t   rc;

    end = content->data + content->len;

    for (p = content->data; p < end; p = last + 1) {

        last = ngx_strlchr(p, end, '\n');
        if (last == NULL) {
            last = end;
        }

        if (last == p || *p == '#') {
            continue;
        }

        colon = ngx_strlchr(p, last, ':');

        if (colon == NULL) {
            return XET_JWK_SYNTAX;
        }

        hex.data = colon + 1;
        hex.len = last - hex.data;

        if (hex.len % 2 || hex.len > 2 * XET_JWK_SECRET_MAX
            || ngx_http_xet_conf_hex(secret, &hex) != NGX_OK)
        {
            return XET_JWK_SYNTAX;
        }

        rc = xet_jwk_create_secret(&key, p, colon - p, secret, hex.len / 2);

        ngx_explicit_memzero(secret, sizeof(secret));

        if (rc == XET_OK) {
            rc = ngx_http_xet_conf_add_key(xmcf, key);
        }

        if (rc != XET_OK) {
            return rc;
        }

        (*index)++;
    }

    return *index ? XET_OK : XET_JWK_NONE;
}


/*
 * Adds a key that can sign; the first one of all files signs.  Takes the key
 * over: on failure it is destroyed.
 */

static xet_status_t
ngx_http_xet_conf_add_key(ngx_http_xet_main_conf_t *xmcf, xet_jwk_t *key)
{
    xet_status_t  rc;

    rc = xet_jwk_set_add(xmcf->token_keys, key);

    if (rc != XET_OK) {
        xet_jwk_destroy(key);
        return rc;
    }

    if (xmcf->token_sign == NULL) {
        xmcf->token_sign = key;
    }

    return XET_OK;
}


static void
ngx_http_xet_conf_free_token_keys(void *data)
{
    ngx_http_xet_main_conf_t *xmcf = data;

    xet_jwk_set_destroy(xmcf->token_keys);
}


/* Merges and checks the directives that belong to tokens. */

char *
ngx_http_xet_conf_merge_token(ngx_conf_t *cf, ngx_http_xet_loc_conf_t *prev,
    ngx_http_xet_loc_conf_t *conf)
{
    u_char                     number[8];
    xet_hash_t                 mark;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);

    ngx_conf_merge_uint_value(conf->auth, prev->auth, NGX_HTTP_XET_AUTH_UNSET);
    ngx_conf_merge_uint_value(conf->access, prev->access,
                              NGX_HTTP_XET_ACCESS_STORE);

    /* unset, the scope follows "xet_access", also of inner locations */

    ngx_conf_merge_uint_value(conf->dedup_scope, prev->dedup_scope,
                              NGX_CONF_UNSET_UINT);

    ngx_conf_merge_str_value(conf->issuer, prev->issuer, "");
    ngx_conf_merge_str_value(conf->audience, prev->audience, "");
    ngx_conf_merge_sec_value(conf->leeway, prev->leeway, 0);
    ngx_conf_merge_sec_value(conf->token_lifetime, prev->token_lifetime, 3600);

    if (conf->tls == NGX_CONF_UNSET_UINT) {
        conf->tls = prev->tls;
        conf->tls_value = prev->tls_value;

        if (conf->tls == NGX_CONF_UNSET_UINT) {
            conf->tls = NGX_HTTP_XET_TLS_OFF;
        }
    }

    if (conf->token_scope == NULL) {
        conf->token_scope = prev->token_scope;
    }

    if (conf->token_repo == NULL) {
        conf->token_repo = prev->token_repo;
    }

    if (conf->token_subject == NULL) {
        conf->token_subject = prev->token_subject;
    }

    if (conf->token_cas_url == NULL) {
        conf->token_cas_url = prev->token_cas_url;
    }

    conf->token.iss.data = conf->issuer.len ? conf->issuer.data : NULL;
    conf->token.iss.len = conf->issuer.len;
    conf->token.aud.data = conf->audience.len ? conf->audience.data : NULL;
    conf->token.aud.len = conf->audience.len;
    conf->token.skew = (uint64_t) conf->leeway;

    /* verdicts of one location must not serve another with other demands */

    xet_hash_keyed(xmcf->token_mark.bytes, conf->issuer.data,
                   conf->issuer.len, &mark);
    xet_hash_keyed(mark.bytes, conf->audience.data, conf->audience.len,
                   &mark);
    xet_put_u64(number, (uint64_t) conf->leeway);
    xet_hash_keyed(mark.bytes, number, sizeof(number), &conf->token_mark);

    if (conf->api && conf->auth == NGX_HTTP_XET_AUTH_TOKEN
        && xmcf->token_keys == NULL)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"xet_auth token\" needs \"xet_token_key\"");
        return NGX_CONF_ERROR;
    }

    if (conf->api && conf->access == NGX_HTTP_XET_ACCESS_REPO
        && conf->auth != NGX_HTTP_XET_AUTH_TOKEN)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"xet_access repo\" needs \"xet_auth token\"");
        return NGX_CONF_ERROR;
    }

    if (conf->mint && xmcf->token_sign == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"xet_token\" needs a secret or a private key, "
                           "see \"xet_token_key\"");
        return NGX_CONF_ERROR;
    }

    if (conf->mint
        && ((conf->token.iss.data
             && !xet_token_text_ok(&conf->token.iss, XET_TOKEN_NAME_MAX))
            || (conf->token.aud.data
                && !xet_token_text_ok(&conf->token.aud, XET_TOKEN_NAME_MAX))))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"xet_token_issuer\" and \"xet_token_audience\" "
                           "of \"xet_token\" are at most %d bytes of UTF-8 "
                           "without control characters", XET_TOKEN_NAME_MAX);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}
