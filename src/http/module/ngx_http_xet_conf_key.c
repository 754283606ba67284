
/*
 * Reads files with secrets, such as key files, which contain keys for signed
 * URLs, for dedup responses and for tokens.  The contents of a key file are
 * wiped after the keys are made, and the keys are wiped with the configuration.
 *
 * LFS URLs and ids of grants permit writing.  So their keys are derived from
 * the keys that sign tokens: the holder of such a key can write anyway.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"


#define NGX_HTTP_XET_KEY_FILE_MAX  4096

#define NGX_HTTP_XET_LFS_KEY       "xet lfs url 1"
#define NGX_HTTP_XET_GRANT_KEY     "xet grant 1"


/* The position of a key, and a hash of its bytes to find duplicates. */

typedef struct {
    xet_key_purpose_e          purpose;
    u_char                     bytes[XET_KEY_LEN];
    ngx_str_t                  file;
    ngx_uint_t                 line;
} ngx_http_xet_key_mark_t;


typedef ngx_int_t (*ngx_http_xet_conf_key_pt)(ngx_conf_t *cf,
    xet_key_file_t *f, ngx_str_t *file);


static char *ngx_http_xet_conf_keys(ngx_conf_t *cf, xet_key_purpose_e purpose,
    ngx_str_t *file, ngx_str_t *content, ngx_http_xet_conf_key_pt add);
static ngx_int_t ngx_http_xet_conf_other(ngx_conf_t *cf, xet_key_file_t *f,
    ngx_str_t *file);
static ngx_int_t ngx_http_xet_conf_add_url(ngx_conf_t *cf, xet_key_file_t *f,
    ngx_str_t *file);
static ngx_int_t ngx_http_xet_conf_secret(ngx_conf_t *cf, ngx_str_t *secret,
    xet_key_file_t *f);
static void ngx_http_xet_conf_wipe_secret(void *data);
static ngx_int_t ngx_http_xet_conf_add_dedup(ngx_conf_t *cf, xet_key_file_t *f,
    ngx_str_t *file);
static void ngx_http_xet_conf_free_keys(void *data);
static char *ngx_http_xet_conf_token_keys(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf);
static char *ngx_http_xet_conf_add_keys(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf, ngx_str_t *file, ngx_str_t *content);
static xet_status_t ngx_http_xet_conf_add_private(
    ngx_http_xet_main_conf_t *xmcf, ngx_str_t *content);
static ngx_int_t ngx_http_xet_conf_add_secret(ngx_conf_t *cf,
    xet_key_file_t *f, ngx_str_t *file);
static xet_status_t ngx_http_xet_conf_add_key(ngx_http_xet_main_conf_t *xmcf,
    xet_jwk_t *key);
static void ngx_http_xet_conf_free_token_keys(void *data);


/*
 * xet_url_key file; one "url:<id>:<hex of 32 to 64 bytes>" per line.  The
 * first key signs; all keys verify.
 */

char *
ngx_http_xet_conf_url_key(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    char       *rv;
    ngx_str_t  *value, content;

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

    rv = ngx_http_xet_conf_keys(cf, XET_KEY_URL, &value[1], &content,
                                ngx_http_xet_conf_add_url);

    ngx_http_xet_conf_wipe(&content);

    return rv;
}


/* Reads the keys of a file, and calls add for each key. */

static char *
ngx_http_xet_conf_keys(ngx_conf_t *cf, xet_key_purpose_e purpose,
    ngx_str_t *file, ngx_str_t *content, ngx_http_xet_conf_key_pt add)
{
    int             more;
    char           *rv;
    xet_key_file_t  f;

    xet_key_begin(&f, purpose, content->data, content->len);

    do {
        more = xet_key_next(&f);

    } while (more == 1 && ngx_http_xet_conf_other(cf, &f, file) == NGX_OK
             && add(cf, &f, file) == NGX_OK);

    /* a line may contain a secret, so the error contains no part of it */

    if (more == -1) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid key in \"%V\", line %ud: %s", file, f.line,
                           f.fault);

    } else if (more == 0 && f.n == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "no key in \"%V\"", file);
    }

    rv = (more == 0 && f.n) ? NGX_CONF_OK : NGX_CONF_ERROR;

    xet_key_end(&f);

    return rv;
}


/*
 * Rejects a key that is already used for another purpose, because the holder
 * of one key would also have the other key.
 */

static ngx_int_t
ngx_http_xet_conf_other(ngx_conf_t *cf, xet_key_file_t *f, ngx_str_t *file)
{
    ngx_uint_t                 i;
    ngx_http_xet_key_mark_t   *mark;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);

    if (xmcf->key_marks == NULL) {
        xmcf->key_marks = ngx_array_create(cf->temp_pool, 8,
                                           sizeof(ngx_http_xet_key_mark_t));
        if (xmcf->key_marks == NULL) {
            return NGX_ERROR;
        }
    }

    mark = xmcf->key_marks->elts;

    for (i = 0; i < xmcf->key_marks->nelts; i++) {

        if (mark[i].purpose != f->purpose
            && ngx_memcmp(mark[i].bytes, f->mark, XET_KEY_LEN) == 0)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "the key in \"%V\", line %ud, is the same as "
                               "the key in \"%V\", line %ud, which has "
                               "another purpose", file, f->line,
                               &mark[i].file, mark[i].line);
            return NGX_ERROR;
        }
    }

    mark = ngx_array_push(xmcf->key_marks);
    if (mark == NULL) {
        return NGX_ERROR;
    }

    mark->purpose = f->purpose;
    mark->file = *file;
    mark->line = f->line;
    ngx_memcpy(mark->bytes, f->mark, XET_KEY_LEN);

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_conf_add_url(ngx_conf_t *cf, xet_key_file_t *f, ngx_str_t *file)
{
    ngx_str_t                  id;
    ngx_uint_t                 i;
    ngx_http_xet_key_t        *key;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);

    id.data = (u_char *) f->id;
    id.len = f->id_len;

    key = xmcf->url_keys->elts;

    for (i = 0; i < xmcf->url_keys->nelts; i++) {

        if (key[i].id.len == id.len
            && ngx_memcmp(key[i].id.data, id.data, id.len) == 0)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate key id \"%V\" in \"%V\"", &id,
                               file);
            return NGX_ERROR;
        }
    }

    key = ngx_array_push(xmcf->url_keys);
    if (key == NULL) {
        return NGX_ERROR;
    }

    key->id.len = id.len;
    key->id.data = ngx_pstrdup(cf->pool, &id);

    return (key->id.data == NULL) ? NGX_ERROR
           : ngx_http_xet_conf_secret(cf, &key->secret, f);
}


/* Copies a secret; the copy is wiped with the configuration. */

static ngx_int_t
ngx_http_xet_conf_secret(ngx_conf_t *cf, ngx_str_t *secret, xet_key_file_t *f)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(cf->pool, sizeof(ngx_str_t));
    secret->data = ngx_pnalloc(cf->pool, f->secret_len);

    if (cln == NULL || secret->data == NULL) {
        return NGX_ERROR;
    }

    secret->len = f->secret_len;
    ngx_memcpy(secret->data, f->secret, f->secret_len);

    cln->handler = ngx_http_xet_conf_wipe_secret;
    *(ngx_str_t *) cln->data = *secret;

    return NGX_OK;
}


static void
ngx_http_xet_conf_wipe_secret(void *data)
{
    ngx_http_xet_conf_wipe(data);
}


/* xet_dedup_key file; one line "dedup:<hex of 32 bytes>". */

char *
ngx_http_xet_conf_dedup_key(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    char       *rv;
    ngx_str_t  *value, content;

    if (xmcf->dedup_secret.data) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_http_xet_conf_read(cf, &value[1], NGX_HTTP_XET_KEY_FILE_MAX,
                               &content)
        != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    rv = ngx_http_xet_conf_keys(cf, XET_KEY_DEDUP, &value[1], &content,
                                ngx_http_xet_conf_add_dedup);

    ngx_http_xet_conf_wipe(&content);

    return rv;
}


static ngx_int_t
ngx_http_xet_conf_add_dedup(ngx_conf_t *cf, xet_key_file_t *f, ngx_str_t *file)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);

    return ngx_http_xet_conf_secret(cf, &xmcf->dedup_secret, f);
}


/*
 * Reads a key file of at most max bytes.  Rejects a file that others can
 * access or that the group can write.  Makes the path name absolute.  The
 * content is in the pool of the configuration, and the caller must wipe it.
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


void
ngx_http_xet_conf_wipe(ngx_str_t *s)
{
    ngx_explicit_memzero(s->data, s->len);
}


/*
 * Derives the key for upload grants from a URL key if no token-signing key is
 * configured.  In this case everyone who can connect may upload, so any key
 * that all nodes share is sufficient.
 */

ngx_int_t
ngx_http_xet_conf_grant_key(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf)
{
    ngx_str_t           *secret;
    ngx_http_xet_key_t  *key;
    ngx_pool_cleanup_t  *cln;

    if (xmcf->token_sign) {
        return NGX_OK;
    }

    cln = ngx_pool_cleanup_add(cf->pool, sizeof(ngx_str_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    secret = cln->data;
    secret->data = xmcf->grant_key;
    secret->len = XET_KEY_LEN;
    cln->handler = ngx_http_xet_conf_wipe_secret;

    key = xmcf->url_keys->elts;

    return (xet_key_derive(xmcf->grant_key, key->secret.data, key->secret.len,
                           NGX_HTTP_XET_GRANT_KEY)
            == XET_OK)
           ? NGX_OK : NGX_ERROR;
}


/* Creates the keys that sign URLs, in each worker. */

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
 * xet_token_key file; may be repeated.  The format is detected: a JWK set, PEM
 * of public keys, PEM of one private Ed25519 key, or lines of "token:<id>:<hex
 * of the secret>".
 */

char *
ngx_http_xet_conf_token_key(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    char       *rv;
    ngx_str_t  *value, content;

    value = cf->args->elts;

    if (xmcf->token_keys == NULL
        && ngx_http_xet_conf_token_keys(cf, xmcf) != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_xet_conf_read(cf, &value[1], XET_JWK_DOCUMENT_MAX, &content)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    /* cached results of checks are valid only for the same keys */

    xet_hash_keyed(xmcf->token_mark.bytes, content.data, content.len,
                   &xmcf->token_mark);

    rv = ngx_http_xet_conf_add_keys(cf, xmcf, &value[1], &content);

    ngx_http_xet_conf_wipe(&content);

    return rv;
}


/*
 * Allocates memory for token keys and LFS keys.  The LFS keys get one array of
 * the final size, because growing it would leave copies of keys in memory.
 */

static char *
ngx_http_xet_conf_token_keys(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (cln == NULL) {
        return NGX_CONF_ERROR;
    }

    xmcf->lfs_keys.elts = ngx_palloc(cf->pool, XET_JWK_SET_MAX * XET_KEY_LEN);
    if (xmcf->lfs_keys.elts == NULL) {
        return NGX_CONF_ERROR;
    }

    xmcf->token_keys = xet_jwk_set_create();
    if (xmcf->token_keys == NULL) {
        return NGX_CONF_ERROR;
    }

    cln->handler = ngx_http_xet_conf_free_token_keys;
    cln->data = xmcf;

    ngx_memzero(&xmcf->token_mark, sizeof(xet_hash_t));

    return NGX_CONF_OK;
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
        return ngx_http_xet_conf_keys(cf, XET_KEY_TOKEN, file, content,
                                      ngx_http_xet_conf_add_secret);
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


static ngx_int_t
ngx_http_xet_conf_add_secret(ngx_conf_t *cf, xet_key_file_t *f,
    ngx_str_t *file)
{
    xet_jwk_t                 *key;
    xet_status_t               rc;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);

    rc = xet_jwk_create_secret(&key, f->id, f->id_len, f->secret,
                               f->secret_len);

    if (rc == XET_OK) {
        rc = ngx_http_xet_conf_add_key(xmcf, key);
    }

    if (rc != XET_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid key in \"%V\", line %ud: %s", file,
                           f->line, xet_status_text(rc));
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Adds a key that can sign.  The first such key in all files signs.  The
 * function takes ownership of key, and destroys it on failure.
 */

static xet_status_t
ngx_http_xet_conf_add_key(ngx_http_xet_main_conf_t *xmcf, xet_jwk_t *key)
{
    u_char        *lfs;
    xet_status_t   rc;

    lfs = xmcf->lfs_keys.elts + xmcf->lfs_keys.n * XET_KEY_LEN;
    rc = xet_jwk_set_count(xmcf->token_keys) < XET_JWK_SET_MAX
         ? xet_jwk_derive(key, NGX_HTTP_XET_LFS_KEY, lfs) : XET_JWK_COUNT;

    if (rc == XET_OK && xmcf->token_sign == NULL) {
        rc = xet_jwk_derive(key, NGX_HTTP_XET_GRANT_KEY, xmcf->grant_key);
    }

    if (rc == XET_OK) {
        rc = xet_jwk_set_add(xmcf->token_keys, key);
    }

    if (rc != XET_OK) {
        xet_jwk_destroy(key);
        return rc;
    }

    xmcf->lfs_keys.n++;

    if (xmcf->token_sign == NULL) {
        xmcf->token_sign = key;
    }

    return XET_OK;
}


static void
ngx_http_xet_conf_free_token_keys(void *data)
{
    ngx_http_xet_main_conf_t *xmcf = data;

    ngx_explicit_memzero(xmcf->lfs_keys.elts, XET_JWK_SET_MAX * XET_KEY_LEN);
    ngx_explicit_memzero(xmcf->grant_key, XET_KEY_LEN);

    xet_jwk_set_destroy(xmcf->token_keys);
}
