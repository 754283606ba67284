
/*
 * Key files: those of signed URLs, of dedup answers and of tokens, and how a
 * file that holds a secret is read.  What was read is wiped once the keys are
 * made.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"


#define NGX_HTTP_XET_KEY_FILE_MAX  4096


static ngx_int_t ngx_http_xet_conf_key_line(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf, ngx_str_t *file, ngx_str_t *line);
static ngx_int_t ngx_http_xet_conf_hex(u_char *dst, ngx_str_t *hex);
static void ngx_http_xet_conf_free_keys(void *data);
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
 * xet_url_key file; one "<id>:<hex of 32 to 64 bytes>" a line, the first
 * signs, all verify; empty lines and lines that begin with "#" are skipped.
 */

char *
ngx_http_xet_conf_url_key(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    u_char     *p, *last, *end;
    char       *rv;
    ngx_str_t  *value, content, line;

    if (xmcf->url_keys) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_http_xet_conf_read(cf, &value[1], NGX_HTTP_XET_KEY_FILE_MAX,
                               &content)
        != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    xmcf->url_keys = ngx_array_create(cf->pool, 2, sizeof(ngx_http_xet_key_t));
    if (xmcf->url_keys == NULL) {
        return NGX_CONF_ERROR;
    }

    rv = NGX_CONF_OK;
    end = content.data + content.len;

    for (p = content.data; p < end; p = last + 1) {

        last = ngx_strlchr(p, end, '\n');
        if (last == NULL) {
            last = end;
        }

        line.data = p;
        line.len = last - p;

        while (line.len && (line.data[line.len - 1] == '\r'
                            || line.data[line.len - 1] == ' '))
        {
            line.len--;
        }

        if (line.len == 0 || line.data[0] == '#') {
            continue;
        }

        if (ngx_http_xet_conf_key_line(cf, xmcf, &value[1], &line) != NGX_OK) {
            rv = NGX_CONF_ERROR;
            break;
        }
    }

    ngx_http_xet_conf_wipe(&content);

    if (rv == NGX_CONF_OK && xmcf->url_keys->nelts == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "no key in \"%V\"",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    return rv;
}


static ngx_int_t
ngx_http_xet_conf_key_line(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf,
    ngx_str_t *file, ngx_str_t *line)
{
    u_char              *colon;
    ngx_str_t            hex;
    ngx_uint_t           i;
    xet_sign_key_t      *sign;
    ngx_http_xet_key_t  *key, *other;

    colon = ngx_strlchr(line->data, line->data + line->len, ':');

    if (colon == NULL) {
        goto invalid;
    }

    hex.data = colon + 1;
    hex.len = line->data + line->len - hex.data;

    if (hex.len % 2 || hex.len > 2 * XET_SIGN_KEY_MAX) {
        goto invalid;
    }

    key = ngx_array_push(xmcf->url_keys);
    if (key == NULL) {
        return NGX_ERROR;
    }

    key->id.len = colon - line->data;
    key->id.data = ngx_pnalloc(cf->pool, key->id.len + 1);
    key->secret.len = hex.len / 2;
    key->secret.data = ngx_pnalloc(cf->pool, key->secret.len + 1);

    if (key->id.data == NULL || key->secret.data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(key->id.data, line->data, key->id.len);

    if (ngx_http_xet_conf_hex(key->secret.data, &hex) != NGX_OK) {
        goto invalid;
    }

    other = xmcf->url_keys->elts;

    for (i = 0; i < xmcf->url_keys->nelts - 1; i++) {

        if (other[i].id.len == key->id.len
            && ngx_memcmp(other[i].id.data, key->id.data, key->id.len) == 0)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate key id \"%V\" in \"%V\"", &key->id,
                               file);
            return NGX_ERROR;
        }
    }

    sign = xet_sign_key_create(key->id.data, key->id.len, key->secret.data,
                               key->secret.len);
    if (sign == NULL) {
        goto invalid;
    }

    xet_sign_key_destroy(sign);

    return NGX_OK;

invalid:

    /* the line itself is a secret */

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid key in \"%V\": \"id:hex\" is expected, an id "
                       "of 1 to %d letters, digits, \"_\" and \"-\", and %d "
                       "to %d bytes in hex",
                       file, XET_SIGN_ID_MAX, XET_SIGN_KEY_MIN,
                       XET_SIGN_KEY_MAX);
    return NGX_ERROR;
}


/* xet_dedup_key file; 32 bytes in hex. */

char *
ngx_http_xet_conf_dedup_key(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    ngx_int_t   rc;
    ngx_str_t  *value, content, hex;

    if (xmcf->dedup_secret.data) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_http_xet_conf_read(cf, &value[1], NGX_HTTP_XET_KEY_FILE_MAX,
                               &content)
        != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    hex = content;

    while (hex.len && (hex.data[hex.len - 1] == '\n'
                       || hex.data[hex.len - 1] == '\r'))
    {
        hex.len--;
    }

    xmcf->dedup_secret.data = ngx_pnalloc(cf->pool, 32);
    if (xmcf->dedup_secret.data == NULL) {
        return NGX_CONF_ERROR;
    }

    xmcf->dedup_secret.len = 32;

    rc = (hex.len == 64) ? ngx_http_xet_conf_hex(xmcf->dedup_secret.data, &hex)
                         : NGX_ERROR;

    ngx_http_xet_conf_wipe(&content);

    if (rc != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" must hold 32 bytes in hex", &value[1]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/*
 * Reads a file of max bytes at most that holds keys: one that others can
 * access, or the group can write, is refused.  name becomes an absolute path;
 * the content is in the pool of the configuration, and the caller wipes it.
 */

ngx_int_t
ngx_http_xet_conf_read(ngx_conf_t *cf, ngx_str_t *name, size_t max,
    ngx_str_t *content)
{
    ssize_t          n;
    ngx_fd_t         fd;
    ngx_int_t        rc;
    ngx_file_info_t  fi;

    rc = NGX_ERROR;

    if (ngx_conf_full_name(cf->cycle, name, 1) != NGX_OK) {
        return NGX_ERROR;
    }

    fd = ngx_open_file(name->data, NGX_FILE_RDONLY|NGX_FILE_NONBLOCK,
                       NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_open_file_n " \"%V\" failed", name);
        return NGX_ERROR;
    }

    if (ngx_fd_info(fd, &fi) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_fd_info_n " \"%V\" failed", name);
        goto done;
    }

    if (!ngx_is_file(&fi) || ngx_file_size(&fi) > (off_t) max) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" is not a key file", name);
        goto done;
    }

    if (fi.st_mode & (S_IRWXO|S_IWGRP)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" must not be accessible by others", name);
        goto done;
    }

    content->data = ngx_pnalloc(cf->pool, ngx_file_size(&fi) + 1);
    if (content->data == NULL) {
        goto done;
    }

    n = ngx_read_fd(fd, content->data, ngx_file_size(&fi));

    if (n != ngx_file_size(&fi)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_read_fd_n " \"%V\" failed", name);
        goto done;
    }

    content->len = n;
    rc = NGX_OK;

done:

    if (ngx_close_file(fd) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_ALERT, cf, ngx_errno,
                           ngx_close_file_n " \"%V\" failed", name);
    }

    return rc;
}


static ngx_int_t
ngx_http_xet_conf_hex(u_char *dst, ngx_str_t *hex)
{
    size_t     i;
    ngx_int_t  n;

    for (i = 0; i + 1 < hex->len; i += 2) {

        n = ngx_hextoi(hex->data + i, 2);
        if (n == NGX_ERROR) {
            return NGX_ERROR;
        }

        *dst++ = (u_char) n;
    }

    return NGX_OK;
}


void
ngx_http_xet_conf_wipe(ngx_str_t *s)
{
    ngx_explicit_memzero(s->data, s->len);
}


/* Makes the MAC contexts of the URL keys, each worker its own. */

ngx_int_t
ngx_http_xet_conf_sign_keys(ngx_cycle_t *cycle, ngx_http_xet_main_conf_t *xmcf)
{
    ngx_uint_t           i;
    ngx_http_xet_key_t  *keys;
    ngx_pool_cleanup_t  *cln;

    keys = xmcf->url_keys->elts;

    xmcf->sign = ngx_pcalloc(cycle->pool, xmcf->url_keys->nelts
                                          * sizeof(xet_sign_key_t *));
    cln = ngx_pool_cleanup_add(cycle->pool, 0);

    if (xmcf->sign == NULL || cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_xet_conf_free_keys;
    cln->data = xmcf;

    for (i = 0; i < xmcf->url_keys->nelts; i++) {

        xmcf->sign[i] = xet_sign_key_create(keys[i].id.data, keys[i].id.len,
                                            keys[i].secret.data,
                                            keys[i].secret.len);
        if (xmcf->sign[i] == NULL) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static void
ngx_http_xet_conf_free_keys(void *data)
{
    ngx_http_xet_main_conf_t *xmcf = data;

    ngx_uint_t  i;

    for (i = 0; i < xmcf->url_keys->nelts; i++) {
        if (xmcf->sign[i]) {
            xet_sign_key_destroy(xmcf->sign[i]);
            xmcf->sign[i] = NULL;
        }
    }
}


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

    ngx_http_xet_conf_wipe(&content);

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
