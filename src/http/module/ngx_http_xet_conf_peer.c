
/*
 * The directive "xet_store_peer": a folder or a node to repair copies from.
 *
 *     xet_store_peer path;
 *     xet_store_peer url [token=file] [trusted_certificate=file]
 *                    [timeout=time];
 *
 * A token is read once, with the permissions of the user who starts nginx.  It
 * is kept as a header line, and wiped with the configuration.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_store.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>


#define NGX_HTTP_XET_PEER_URL_MAX      1024
#define NGX_HTTP_XET_PEER_TOKEN_MAX    8192
#define NGX_HTTP_XET_PEER_TIMEOUT      30000   /* ms */
#define NGX_HTTP_XET_PEER_TIMEOUT_MAX  (60 * 60 * 1000)


/* The parameters of a peer node. */

typedef struct {
    ngx_str_t    token;                        /* path of a file */
    ngx_str_t    trusted;                      /* path of a file */
    ngx_msec_t   timeout;
} ngx_http_xet_conf_peer_t;


static char *ngx_http_xet_conf_peer_folder(ngx_conf_t *cf,
    ngx_http_xet_peer_t *peer, ngx_str_t path);
static char *ngx_http_xet_conf_peer_node(ngx_conf_t *cf,
    ngx_http_xet_peer_t *peer);
static char *ngx_http_xet_conf_peer_url(ngx_conf_t *cf,
    ngx_http_xet_peer_t *peer, ngx_str_t *value, size_t scheme);
static char *ngx_http_xet_conf_peer_token(ngx_conf_t *cf,
    ngx_http_xet_peer_t *peer, ngx_str_t *file);
static void ngx_http_xet_conf_peer_wipe(void *data);
static size_t ngx_http_xet_conf_peer_scheme(ngx_str_t *value);
static ngx_uint_t ngx_http_xet_conf_peer_local(ngx_str_t *host);


char *
ngx_http_xet_conf_store_peer(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    ngx_str_t            *value;
    ngx_http_xet_peer_t  *peer;

    value = cf->args->elts;

    if (xmcf->peers == NULL) {
        xmcf->peers = ngx_array_create(cf->pool, 1,
                                       sizeof(ngx_http_xet_peer_t));
        if (xmcf->peers == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    peer = ngx_array_push(xmcf->peers);
    if (peer == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(peer, sizeof(ngx_http_xet_peer_t));

    peer->file = cf->conf_file->file.name.data;
    peer->line = cf->conf_file->line;

    if (ngx_http_xet_conf_peer_scheme(&value[1])) {
        return ngx_http_xet_conf_peer_node(cf, peer);
    }

    if (cf->args->nelts > 2) {
        return ngx_http_xet_param_invalid(cf, &value[2],
                                          "after a URL; a folder has no "
                                          "parameters");
    }

    return ngx_http_xet_conf_peer_folder(cf, peer, value[1]);
}


static char *
ngx_http_xet_conf_peer_folder(ngx_conf_t *cf, ngx_http_xet_peer_t *peer,
    ngx_str_t path)
{
    if (ngx_conf_full_name(cf->cycle, &path, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    while (path.len > 1 && path.data[path.len - 1] == '/') {
        path.len--;
    }

    if (path.len + XET_STORE_COPY_MAX + 1 > NGX_MAX_PATH) {
        return "path is too long";
    }

    peer->path.data = ngx_pnalloc(cf->pool, path.len + 1);
    if (peer->path.data == NULL) {
        return NGX_CONF_ERROR;
    }

    peer->path.len = path.len;
    ngx_cpystrn(peer->path.data, path.data, path.len + 1);

    return NGX_CONF_OK;
}


static char *
ngx_http_xet_conf_peer_node(ngx_conf_t *cf, ngx_http_xet_peer_t *peer)
{
    char                      *rv;
    size_t                     scheme;
    ngx_str_t                 *value;
    ngx_http_xet_conf_peer_t   given;

    static const ngx_http_xet_param_t  params[] = {
        { "token", NGX_HTTP_XET_PARAM_STR,
          offsetof(ngx_http_xet_conf_peer_t, token), 0, 0, NULL },
        { "trusted_certificate", NGX_HTTP_XET_PARAM_STR,
          offsetof(ngx_http_xet_conf_peer_t, trusted), 0, 0, NULL },
        { "timeout", NGX_HTTP_XET_PARAM_MSEC,
          offsetof(ngx_http_xet_conf_peer_t, timeout),
          1000, NGX_HTTP_XET_PEER_TIMEOUT_MAX, NULL },
        { NULL, 0, 0, 0, 0, NULL }
    };

    ngx_memzero(&given, sizeof(ngx_http_xet_conf_peer_t));

    given.timeout = NGX_HTTP_XET_PEER_TIMEOUT;

    rv = ngx_http_xet_params(cf, 2, params, &given,
                             "\"token=\" or \"trusted_certificate=\" with a "
                             "file, or \"timeout=\" of 1s to 1h");

    if (rv != NGX_CONF_OK) {
        return rv;
    }

    value = cf->args->elts;
    scheme = ngx_http_xet_conf_peer_scheme(&value[1]);

    if (given.trusted.len && scheme == sizeof("http://") - 1) {
        return "takes \"trusted_certificate=\" with \"https://\" only";
    }

    if (given.token.len) {
        rv = ngx_http_xet_conf_peer_token(cf, peer, &given.token);
    }

    if (rv == NGX_CONF_OK && given.trusted.len) {
        rv = ngx_http_xet_conf_trusted(cf, &given.trusted);
    }

    if (rv != NGX_CONF_OK) {
        return rv;
    }

    peer->trusted = given.trusted;
    peer->timeout = given.timeout;

    return ngx_http_xet_conf_peer_url(cf, peer, &value[1], scheme);
}


/* Sets the URL of a peer node; rejects a user, a query and a fragment. */

static char *
ngx_http_xet_conf_peer_url(ngx_conf_t *cf, ngx_http_xet_peer_t *peer,
    ngx_str_t *value, size_t scheme)
{
    ngx_url_t   u;
    ngx_uint_t  i;

    for (i = 0; i < value->len; i++) {
        if (value->data[i] <= ' ' || value->data[i] > '~'
            || ngx_strchr("@?#\"\\<>^`{|}", value->data[i]))
        {
            return "takes a URL without user, query or fragment";
        }
    }

    ngx_memzero(&u, sizeof(ngx_url_t));

    u.url.data = value->data + scheme;
    u.url.len = value->len - scheme;
    u.default_port = (scheme == sizeof("https://") - 1) ? 443 : 80;
    u.uri_part = 1;
    u.no_resolve = 1;

    if (ngx_parse_url(cf->pool, &u) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s in \"%V\" of \"%V\"",
                           u.err ? u.err : "no address", value,
                           cf->args->elts);
        return NGX_CONF_ERROR;
    }

    if (u.family == AF_UNIX) {
        return "does not take a Unix socket";
    }

    peer->url = *value;

    while (peer->url.data[peer->url.len - 1] == '/') {
        peer->url.len--;
    }

    if (peer->url.len > NGX_HTTP_XET_PEER_URL_MAX) {
        return "URL is too long";
    }

    if (peer->header.len && u.default_port == 80
        && !ngx_http_xet_conf_peer_local(&u.host))
    {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "the token of \"xet_store_peer\" \"%V\" is sent "
                           "unencrypted: use \"https://\"",
                           &peer->url);
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_xet_conf_peer_token(ngx_conf_t *cf, ngx_http_xet_peer_t *peer,
    ngx_str_t *file)
{
    size_t               len;
    u_char              *p;
    ngx_str_t            content, header;
    ngx_pool_cleanup_t  *cln;

    if (ngx_http_xet_conf_read(cf, file, NGX_HTTP_XET_PEER_TOKEN_MAX, &content)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    for (len = content.len; len && content.data[len - 1] <= ' '; len--) {
        /* void */
    }

    /* the syntax of RFC 6750; it has no ":", so key files are rejected */

    for (p = content.data; p < content.data + len; p++) {
        if (!xet_is_alnum(*p)
            && (*p == '\0' || ngx_strchr("-._~+/=", *p) == NULL))
        {
            break;
        }
    }

    if (len == 0 || p < content.data + len) {
        ngx_http_xet_conf_wipe(&content);
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "no token in \"%V\"", file);
        return NGX_CONF_ERROR;
    }

    header.data = ngx_pnalloc(cf->pool, sizeof("Authorization: Bearer ") + len);
    cln = ngx_pool_cleanup_add(cf->pool, sizeof(ngx_str_t));

    if (header.data == NULL || cln == NULL) {
        ngx_http_xet_conf_wipe(&content);
        return NGX_CONF_ERROR;
    }

    header.len = ngx_sprintf(header.data, "Authorization: Bearer %*s%Z", len,
                             content.data)
                 - header.data - 1;

    ngx_http_xet_conf_wipe(&content);

    cln->handler = ngx_http_xet_conf_peer_wipe;
    *(ngx_str_t *) cln->data = header;
    peer->header = header;

    return NGX_CONF_OK;
}


static void
ngx_http_xet_conf_peer_wipe(void *data)
{
    ngx_str_t *header = data;

    ngx_http_xet_conf_wipe(header);
}


/*
 * Makes the path of a certificate file absolute, and checks the file.  libcurl
 * reads it again, in a worker, when it connects.
 */

char *
ngx_http_xet_conf_trusted(ngx_conf_t *cf, ngx_str_t *file)
{
    int          ok;
    X509_STORE  *store;

    if (ngx_conf_full_name(cf->cycle, file, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    store = X509_STORE_new();
    if (store == NULL) {
        return NGX_CONF_ERROR;
    }

    ok = X509_STORE_load_file(store, (char *) file->data);

    X509_STORE_free(store);

    if (!ok) {
        ERR_clear_error();
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "no certificate in \"%V\"",
                           file);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* Returns the length of the URL scheme, or 0 if the value is a path. */

static size_t
ngx_http_xet_conf_peer_scheme(ngx_str_t *value)
{
    if (ngx_strncasecmp(value->data, (u_char *) "http://", 7) == 0) {
        return 7;
    }

    if (ngx_strncasecmp(value->data, (u_char *) "https://", 8) == 0) {
        return 8;
    }

    return 0;
}


static ngx_uint_t
ngx_http_xet_conf_peer_local(ngx_str_t *host)
{
    return (host->len == 9
            && ngx_strncasecmp(host->data, (u_char *) "localhost", 9) == 0)
           || (host->len > 4 && ngx_strncmp(host->data, "127.", 4) == 0)
           || (host->len == 5 && ngx_strncmp(host->data, "[::1]", 5) == 0);
}


/*
 * Rejects a peer that is the store itself, which can't repair its own copies.
 */

ngx_int_t
ngx_http_xet_conf_peers(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf)
{
    ngx_uint_t            i;
    ngx_file_info_t       store, peer;
    ngx_http_xet_peer_t  *peers;

    if (xmcf->peers == NULL || !xmcf->api
        || xmcf->store->s3
        || ngx_file_info(xmcf->store->name.data, &store) == NGX_FILE_ERROR)
    {
        return NGX_OK;
    }

    peers = xmcf->peers->elts;

    for (i = 0; i < xmcf->peers->nelts; i++) {

        if (peers[i].url.len) {
            continue;
        }

        if (ngx_file_info(peers[i].path.data, &peer) == NGX_FILE_ERROR) {
            ngx_log_error(NGX_LOG_WARN, cf->log, ngx_errno,
                          "\"xet_store_peer\" does not exist: "
                          ngx_file_info_n " \"%V\" failed in %s:%ui",
                          &peers[i].path, peers[i].file, peers[i].line);
            continue;
        }

        if (peer.st_dev == store.st_dev && peer.st_ino == store.st_ino) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"xet_store_peer\" \"%V\" is the store itself in "
                          "%s:%ui", &peers[i].path, peers[i].file,
                          peers[i].line);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
