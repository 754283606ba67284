
/*
 * LFS objects.  Clients transfer objects without any authentication header.  So
 * the URL itself grants access to one object of one repo, for the lifetime of a
 * token.  ngx_http_xet_hub_lfs.c issues these URLs.
 *
 *     put      checks the URL's signature -> stores the file like PUT files
 *              -> keeps it
 *     verify   checks the URL's signature -> keeps a file that was uploaded by
 *              the transfer "xet"
 *     get      checks the URL's signature -> finds the file by SHA-256
 *              -> reads it, if its SHA-256 is not proven -> sends its bytes
 *
 * An object that put or verify has acknowledged stays in the repo even if no
 * commit refers to it: the commits may be in another git server.  After "xet",
 * the SHA-256 is a claim until a get has read the file once.  A false claim is
 * then replaced by the right one, and the next file with this claim is read.
 *
 * The read continues when the client has closed the connection, so it succeeds
 * even if it takes longer than the client waits.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_upload.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>


#define NGX_HTTP_XET_HUB_LFS_LABEL   "xet hub lfs 1"
#define NGX_HTTP_XET_HUB_LFS_MAC     32
#define NGX_HTTP_XET_HUB_LFS_CLAIMS  16            /* files read by a get */


/* The signed values in the URL of an object. */

typedef struct {
    u_char                  sha256[XET_HUB_SHA256_LEN];
    ngx_str_t               store;
    ngx_http_xet_array_t    digest;
    ngx_http_xet_reader_t  *reader;
    EVP_MD_CTX             *md;                    /* of an unproven file */
    ngx_http_xet_array_t    files;                 /* for hub_proven */
    ngx_http_xet_array_t    digests;
    u_char                  got[XET_HUB_SHA256_LEN];
    ngx_uint_t              claims;                /* files read so far */
} ngx_http_xet_hub_lfs_url_t;


static ngx_int_t ngx_http_xet_hub_lfs_mac(ngx_pool_t *pool,
    const u_char *key, const u_char *sha256, const ngx_str_t *store,
    ngx_uint_t writes, uint64_t expires, u_char *mac);
static xet_status_t ngx_http_xet_hub_lfs_signed(ngx_http_request_t *r,
    ngx_http_xet_hub_lfs_url_t *u, ngx_uint_t writes, uint64_t expires,
    const u_char *given);
static ngx_int_t ngx_http_xet_hub_lfs_check(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub, ngx_uint_t writes,
    ngx_http_xet_hub_lfs_url_t **url);
static void ngx_http_xet_hub_lfs_url_cleanup(void *data);
static void ngx_http_xet_hub_lfs_taken(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_http_xet_ingest_result_t *result);
static void ngx_http_xet_hub_lfs_found(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_hub_lfs_opened(ngx_http_request_t *r, void *data,
    xet_status_t status);
static ngx_int_t ngx_http_xet_hub_lfs_content(ngx_http_request_t *r,
    ngx_http_xet_hub_lfs_url_t *u);
static ngx_int_t ngx_http_xet_hub_lfs_keep(ngx_http_request_t *r,
    ngx_http_xet_hub_lfs_url_t *u, ngx_uint_t claimed);
static void ngx_http_xet_hub_lfs_kept(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_hub_lfs_find(ngx_http_request_t *r,
    ngx_http_xet_hub_lfs_url_t *u);
static void ngx_http_xet_hub_lfs_absent(ngx_http_request_t *r);
static void ngx_http_xet_hub_lfs_open(ngx_http_request_t *r,
    ngx_http_xet_hub_lfs_url_t *u,
    void (*opened)(ngx_http_request_t *r, void *data, xet_status_t status));
static void ngx_http_xet_hub_lfs_prove(ngx_http_request_t *r, void *data,
    xet_status_t status);
static xet_status_t ngx_http_xet_hub_lfs_consume(void *data,
    const ngx_http_xet_piece_t *piece, ngx_log_t *log);
static void ngx_http_xet_hub_lfs_hashed(ngx_http_request_t *r, void *data,
    ngx_http_xet_piece_t *piece, xet_status_t status);
static void ngx_http_xet_hub_lfs_proven(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_hub_lfs_answer(ngx_http_request_t *r,
    ngx_http_xet_hub_lfs_url_t *u);


ngx_int_t
ngx_http_xet_hub_lfs_url(ngx_http_request_t *r, ngx_pool_t *pool,
    const u_char *sha256, const ngx_str_t *store, ngx_uint_t writes,
    ngx_str_t *url)
{
    u_char                     mac[NGX_HTTP_XET_HUB_LFS_MAC];
    u_char                    *p;
    uint64_t                   expires;
    ngx_http_xet_hub_t        *hub;
    ngx_http_xet_main_conf_t  *xmcf;

    hub = ngx_http_xet_hub_get(r);
    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);
    expires = ngx_http_xet_hub_until(r);

    p = ngx_pnalloc(pool, hub->base.len + store->len + 256);

    if (p == NULL
        || ngx_http_xet_hub_lfs_mac(pool, xmcf->lfs_keys.elts, sha256, store,
                                    writes, expires, mac)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    url->data = p;

    p = ngx_sprintf(p, "%V/api/lfs/", &hub->base);
    p = ngx_hex_dump(p, (u_char *) sha256, XET_HUB_SHA256_LEN);
    p = ngx_sprintf(p, "?r=%V&e=%uL&s=", store, expires);
    p = ngx_hex_dump(p, mac, sizeof(mac));

    url->len = p - url->data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_hub_lfs_mac(ngx_pool_t *pool, const u_char *key,
    const u_char *sha256, const ngx_str_t *store, ngx_uint_t writes,
    uint64_t expires, u_char *mac)
{
    u_char        *text, *p, full[EVP_MAX_MD_SIZE];
    unsigned int   len;

    /*
     * only the last field has a variable length, so the input of the MAC is
     * unambiguous
     */

    text = ngx_pnalloc(pool, sizeof(NGX_HTTP_XET_HUB_LFS_LABEL)
                                + XET_HUB_SHA256_LEN + 9 + store->len);
    if (text == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(text, NGX_HTTP_XET_HUB_LFS_LABEL,
                   sizeof(NGX_HTTP_XET_HUB_LFS_LABEL));
    p = ngx_cpymem(p, sha256, XET_HUB_SHA256_LEN);
    *p++ = writes ? 1 : 0;
    xet_put_u64(p, expires);
    p = ngx_cpymem(p + 8, store->data, store->len);

    if (HMAC(EVP_sha256(), key, XET_KEY_LEN, text, p - text, full, &len)
        == NULL)
    {
        return NGX_ERROR;
    }

    ngx_memcpy(mac, full, NGX_HTTP_XET_HUB_LFS_MAC);

    return NGX_OK;
}


/*
 * Checks the signature of a URL, which this server or another node with the
 * same keys has issued.  The first key signs new URLs.  Signatures by the other
 * keys, which are older, stay valid.
 */

static xet_status_t
ngx_http_xet_hub_lfs_signed(ngx_http_request_t *r,
    ngx_http_xet_hub_lfs_url_t *u, ngx_uint_t writes, uint64_t expires,
    const u_char *given)
{
    u_char                     mac[NGX_HTTP_XET_HUB_LFS_MAC];
    ngx_uint_t                 i;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    for (i = 0; i < xmcf->lfs_keys.n; i++) {

        if (ngx_http_xet_hub_lfs_mac(r->pool,
                                     xmcf->lfs_keys.elts + i * XET_KEY_LEN,
                                     u->sha256, &u->store, writes, expires,
                                     mac)
            != NGX_OK)
        {
            return XET_NOMEM;
        }

        if (CRYPTO_memcmp(mac, given, sizeof(mac)) == 0) {
            return (expires < (uint64_t) ngx_time()) ? XET_SIGN_EXPIRED
                                                     : XET_OK;
        }
    }

    return XET_SIGN_MISMATCH;
}


/*
 * Checks the URL of an object.  Returns NGX_OK, or the result of the content
 * handler if the signature is invalid.
 */

static ngx_int_t
ngx_http_xet_hub_lfs_check(ngx_http_request_t *r, ngx_http_xet_hub_t *hub,
    ngx_uint_t writes, ngx_http_xet_hub_lfs_url_t **url)
{
    u_char                       given[NGX_HTTP_XET_HUB_LFS_MAC];
    uint64_t                     expires;
    ngx_str_t                    store, e, s;
    xet_status_t                 status;
    xet_hub_text_t               text;
    ngx_http_xet_hub_lfs_url_t  *u;

    u = ngx_http_xet_state(r, sizeof(ngx_http_xet_hub_lfs_url_t),
                           ngx_http_xet_hub_lfs_url_cleanup);

    if (u == NULL || ngx_http_xet_hub_arg(r, "r", &store) != NGX_OK
        || ngx_http_xet_hub_arg(r, "e", &e) != NGX_OK
        || ngx_http_xet_hub_arg(r, "s", &s) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    text.data = s.data;
    text.len = s.len;

    if (!xet_hub_sha256_parse(u->sha256, &hub->match->args.target.rev)
        || !xet_hub_sha256_parse(given, &text)
        || !xet_get_decimal(e.data, e.len, &expires) || store.len == 0)
    {
        (void) ngx_http_xet_hub_deny_status(r, XET_SIGN_SYNTAX);
        return NGX_DONE;
    }

    u->store = store;
    status = ngx_http_xet_hub_lfs_signed(r, u, writes, expires, given);

    if (status != XET_OK) {
        (void) ngx_http_xet_hub_deny_status(r, status);
        return NGX_DONE;
    }

    ngx_http_xet_ctx_of(r)->repo = store;
    hub->state = u;
    *url = u;

    return NGX_OK;
}


static void
ngx_http_xet_hub_lfs_url_cleanup(void *data)
{
    ngx_http_xet_hub_lfs_url_t *u = data;

    EVP_MD_CTX_free(u->md);
    ngx_http_xet_array_destroy(&u->files);
    ngx_http_xet_array_destroy(&u->digests);
    ngx_http_xet_array_destroy(&u->digest);
}


ngx_int_t
ngx_http_xet_hub_lfs_put_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    ngx_int_t                        rc;
    ngx_http_xet_hub_lfs_url_t      *u;
    ngx_http_xet_ingest_expected_t   expected;

    rc = ngx_http_xet_hub_lfs_check(r, hub, 1, &u);

    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_http_xet_limit_upload(r);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    ngx_memzero(&expected, sizeof(ngx_http_xet_ingest_expected_t));

    expected.has_sha256 = 1;
    expected.kept = 1;
    ngx_memcpy(expected.sha256, u->sha256, XET_HUB_SHA256_LEN);

    return ngx_http_xet_ingest(r, &expected, ngx_http_xet_hub_lfs_taken);
}


static void
ngx_http_xet_hub_lfs_taken(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_http_xet_ingest_result_t *result)
{
    if (rc == NGX_OK && result->size == 0) {

        /* the empty file is not registered */

        ngx_http_xet_hub_wait(r,
            ngx_http_xet_hub_lfs_keep(r, ngx_http_xet_hub_get(r)->state, 0));
        return;
    }

    if (rc == NGX_OK) {
        ngx_http_finalize_request(r, ngx_http_xet_send_literal(r, "{}"));
        return;
    }

    rc = (rc == NGX_DECLINED) ? ngx_http_xet_hub_status(r, status)
                              : ngx_http_xet_query_error(r, rc);

    ngx_http_finalize_request(r, rc);
}


ngx_int_t
ngx_http_xet_hub_lfs_verify_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    ngx_int_t                    rc;
    ngx_http_xet_hub_lfs_url_t  *u;

    rc = ngx_http_xet_hub_lfs_check(r, hub, 1, &u);

    if (rc != NGX_OK) {
        return rc;
    }

    /* the body repeats the SHA-256 and the size */

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_http_xet_query_wait(r, ngx_http_xet_hub_lfs_keep(r, u, 1));
}


/* Keeps the object; with "claimed" even if its SHA-256 is not proven. */

static ngx_int_t
ngx_http_xet_hub_lfs_keep(ngx_http_request_t *r,
    ngx_http_xet_hub_lfs_url_t *u, ngx_uint_t claimed)
{
    ngx_http_xet_array_bytes(&u->digest, u->sha256, XET_HUB_SHA256_LEN);

    if (u->digest.failed) {
        return NGX_ERROR;
    }

    return ngx_http_xet_query(r, hub_keep, ngx_http_xet_hub_lfs_kept,
                              .store = u->store, .digests = { &u->digest, 1 },
                              .claimed = claimed);
}


static void
ngx_http_xet_hub_lfs_kept(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc == NGX_DECLINED) {
        ngx_http_xet_hub_lfs_absent(r);
        return;
    }

    if (rc != NGX_OK) {
        ngx_http_xet_query_failed(r, rc);
        return;
    }

    ngx_http_finalize_request(r, ngx_http_xet_send_literal(r, "{}"));
}


static void
ngx_http_xet_hub_lfs_absent(ngx_http_request_t *r)
{
    ngx_http_finalize_request(r,
        ngx_http_xet_error(r, NGX_HTTP_NOT_FOUND, "EntryNotFound",
                           "Object does not exist"));
}


ngx_int_t
ngx_http_xet_hub_lfs_get_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    ngx_int_t                    rc;
    ngx_http_xet_hub_lfs_url_t  *u;

    rc = ngx_http_xet_hub_lfs_check(r, hub, 0, &u);

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_http_xet_query_wait(r, ngx_http_xet_hub_lfs_find(r, u));
}


static ngx_int_t
ngx_http_xet_hub_lfs_find(ngx_http_request_t *r, ngx_http_xet_hub_lfs_url_t *u)
{
    /* each statement takes the digest out of the array */

    ngx_http_xet_array_bytes(&u->digest, u->sha256, XET_HUB_SHA256_LEN);

    if (u->digest.failed) {
        return NGX_ERROR;
    }

    return ngx_http_xet_query(r, hub_known, ngx_http_xet_hub_lfs_found,
                              .store = u->store,
                              .digests = { &u->digest, 1 });
}


static void
ngx_http_xet_hub_lfs_found(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_ctx_t           *ctx;
    ngx_http_xet_hub_lfs_url_t   *u;
    ngx_http_xet_hub_known_row_t  row;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    u = ngx_http_xet_hub_get(r)->state;

    if (rc == NGX_OK) {
        rc = ngx_http_xet_row(r, hub_known, 0, &row);
    }

    if (rc == NGX_DECLINED
        || (rc == NGX_OK && !row.proven
            && u->claims++ == NGX_HTTP_XET_HUB_LFS_CLAIMS))
    {
        ngx_http_xet_hub_lfs_absent(r);
        return;
    }

    if (rc != NGX_OK) {
        ngx_http_xet_query_failed(r, rc);
        return;
    }

    ctx->hash = *row.hash;

    ngx_http_xet_hub_lfs_open(r, u, row.proven ? ngx_http_xet_hub_lfs_opened
                                               : ngx_http_xet_hub_lfs_prove);
}


static void
ngx_http_xet_hub_lfs_open(ngx_http_request_t *r,
    ngx_http_xet_hub_lfs_url_t *u,
    void (*opened)(ngx_http_request_t *r, void *data, xet_status_t status))
{
    xet_status_t         status;
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (u->reader == NULL) {
        u->reader = ngx_http_xet_reader_create(r, u);
    }

    status = u->reader ? ngx_http_xet_reader_open(r, u->reader, &ctx->hash,
                                                  opened)
                       : XET_NOMEM;

    if (status != XET_AGAIN) {
        opened(r, u, status);
    }
}


/* Reads the file, whose SHA-256 is only a claim. */

static void
ngx_http_xet_hub_lfs_prove(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_hub_lfs_url_t *u = data;

    if (u->md == NULL) {
        u->md = EVP_MD_CTX_new();
    }

    if (status == XET_OK
        && (u->md == NULL
            || EVP_DigestInit_ex(u->md, EVP_sha256(), NULL) != 1))
    {
        status = XET_NOMEM;
    }

    if (status == XET_OK) {
        ngx_http_xet_reader_range(u->reader, 0,
                                  ngx_http_xet_reader_size(u->reader),
                                  ngx_http_xet_hub_lfs_hashed,
                                  ngx_http_xet_hub_lfs_consume);

        status = ngx_http_xet_reader_next(r, u->reader);
    }

    if (status == XET_DONE) {
        ngx_http_xet_hub_lfs_hashed(r, u, NULL, XET_DONE);    /* empty */

    } else if (status != XET_AGAIN) {
        ngx_http_finalize_request(r, ngx_http_xet_error_status(r, status));
    }
}


static xet_status_t
ngx_http_xet_hub_lfs_consume(void *data, const ngx_http_xet_piece_t *piece,
    ngx_log_t *log)
{
    ngx_http_xet_hub_lfs_url_t *u = data;

    return (EVP_DigestUpdate(u->md, piece->pos, piece->last - piece->pos) == 1)
           ? XET_OK : XET_INTERNAL;
}


static void
ngx_http_xet_hub_lfs_hashed(ngx_http_request_t *r, void *data,
    ngx_http_xet_piece_t *piece, xet_status_t status)
{
    ngx_http_xet_hub_lfs_url_t *u = data;

    ngx_http_xet_ctx_t       *ctx;
    ngx_http_xet_loc_conf_t  *xlcf;

    if (status == XET_OK) {
        status = ngx_http_xet_reader_next(r, u->reader);

        if (status == XET_AGAIN) {
            return;
        }
    }

    if (status == XET_DONE
        && EVP_DigestFinal_ex(u->md, u->got, NULL) != 1)
    {
        status = XET_INTERNAL;
    }

    if (status != XET_DONE) {
        ngx_http_finalize_request(r, ngx_http_xet_error_status(r, status));
        return;
    }

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    ngx_http_xet_array_reset(&u->files);
    ngx_http_xet_array_reset(&u->digests);

    if (xlcf->read_only) {
        ngx_http_xet_hub_lfs_answer(r, u);
        return;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    ngx_http_xet_array_bytes(&u->files, ctx->hash.bytes, XET_HASH_LEN);
    ngx_http_xet_array_bytes(&u->digests, u->got, XET_HUB_SHA256_LEN);

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query(r, hub_proven, ngx_http_xet_hub_lfs_proven,
                           .store = u->store, .files = &u->files,
                           .digests = &u->digests));
}


static void
ngx_http_xet_hub_lfs_proven(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_lfs_url_t  *u;

    if (rc != NGX_OK) {
        ngx_http_xet_query_failed(r, rc);
        return;
    }

    u = ngx_http_xet_hub_get(r)->state;

    if (ngx_memcmp(u->got, u->sha256, XET_HUB_SHA256_LEN) != 0) {
        ngx_http_xet_hub_wait(r, ngx_http_xet_hub_lfs_find(r, u));
        return;
    }

    ngx_http_xet_hub_lfs_answer(r, u);
}


/* Sends the file if the URL has its computed SHA-256. */

static void
ngx_http_xet_hub_lfs_answer(ngx_http_request_t *r,
    ngx_http_xet_hub_lfs_url_t *u)
{
    if (ngx_memcmp(u->got, u->sha256, XET_HUB_SHA256_LEN) != 0) {
        ngx_http_xet_hub_lfs_absent(r);
        return;
    }

    ngx_http_xet_hub_lfs_open(r, u, ngx_http_xet_hub_lfs_opened);
}


static void
ngx_http_xet_hub_lfs_opened(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_finalize_request(r,
        (status == XET_OK) ? ngx_http_xet_hub_lfs_content(r, data)
                           : ngx_http_xet_error_status(r, status));
}


static ngx_int_t
ngx_http_xet_hub_lfs_content(ngx_http_request_t *r,
    ngx_http_xet_hub_lfs_url_t *u)
{
    u_char                  *p;
    ngx_http_xet_content_t   content;

    p = ngx_pnalloc(r->pool, 2 * XET_HUB_SHA256_LEN + 2);

    if (p == NULL
        || ngx_http_xet_header(r, "Cache-Control", "private, no-cache")
           != NGX_OK
        || ngx_http_xet_header(r, "X-Content-Type-Options", "nosniff")
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    content.etag.data = p;
    content.etag.len = 2 * XET_HUB_SHA256_LEN + 2;

    *p++ = '"';
    p = ngx_hex_dump(p, u->sha256, XET_HUB_SHA256_LEN);
    *p = '"';

    content.reader = u->reader;
    content.start = 0;
    content.size = ngx_http_xet_reader_size(u->reader);
    ngx_str_set(&content.type, "application/octet-stream");

    return ngx_http_xet_content_send(r, &content);
}
