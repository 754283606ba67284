
/*
 * Signed xorb URLs: signing, verification, the check of Range headers against
 * a signed list of ranges, and the signing keys.
 *
 * A URL has exactly one valid form.  The parser accepts only what the signer
 * writes, so nothing is normalized and no two parsers can read it differently.
 * The syntax is checked first, then the key, then the signature in constant
 * time, and the expiry last: without a valid signature a client can't find out
 * whether a URL has expired.
 *
 * A parsed URL has pointers into the request and into itself, so it must not
 * be copied.  A key is never changed, so any thread may use it.
 *
 * A key has two SHA-256 states with the secret already hashed (HMAC-SHA256, RFC
 * 2104), and each signature continues a copy of them.  OpenSSL 3 prefers EVP,
 * whose contexts are allocated for each copy: then a signature takes twice as
 * long (bench_mac), and it can fail.
 */


#include <stdlib.h>

#define OPENSSL_SUPPRESS_DEPRECATED

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "xet_base.h"
#include "xet_access.h"


#define XET_SIGN_INNER  0x36
#define XET_SIGN_OUTER  0x5c

#define XET_SIGN_MAC_CHARS  xet_base64_encoded(XET_SIGN_MAC_LEN)

/*
 * maximum length of "/xorbs/<ns>/<aa>/<name>?r=&e=<expiry>&k=<id>&s=<mac>"
 * without the ranges
 */
#define XET_SIGN_URL_MAX                                                      \
    (7 + XET_SIGN_NS_MAX + 4 + XET_XORB_NAME_MAX + 4 + 3 + XET_DECIMAL_MAX    \
     + 3 + XET_SIGN_ID_MAX + 3 + XET_SIGN_MAC_CHARS)


struct xet_sign_key_s {
    SHA256_CTX  inner;                 /* states after the secret */
    SHA256_CTX  outer;
    size_t      id_len;
    char        id[XET_SIGN_ID_MAX + 1];
};


static void xet_sign_key_pad(SHA256_CTX *sha, const uint8_t *secret,
    uint8_t pad);
static void xet_sign_mac(const xet_sign_key_t *key,
    const xet_sign_text_t *path, const xet_sign_text_t *args, uint8_t *mac);
static int xet_sign_name_valid(const uint8_t *name, size_t len, size_t max);
static xet_status_t xet_sign_path(xet_sign_asked_t *asked,
    const uint8_t *path, size_t len);
static xet_status_t xet_sign_args(xet_sign_asked_t *asked,
    const uint8_t *args, size_t len);
static int xet_sign_arg(const uint8_t **pos, const uint8_t *end, char name,
    xet_sign_text_t *value);
static int xet_sign_tail(const uint8_t *p, const uint8_t *end, int cacheable);
static int xet_sign_number(const xet_sign_text_t *text, uint64_t *number);
static int xet_sign_ranges_ok(const xet_range_t *ranges, size_t n);


xet_sign_key_t *
xet_sign_key_create(const uint8_t *id, size_t id_len, const uint8_t *secret,
    size_t secret_len)
{
    xet_sign_key_t  *key;

    if (!xet_sign_name_valid(id, id_len, XET_SIGN_ID_MAX)
        || secret_len != XET_KEY_LEN)
    {
        return NULL;
    }

    key = calloc(1, sizeof(xet_sign_key_t));
    if (key == NULL) {
        return NULL;
    }

    memcpy(key->id, id, id_len);
    key->id_len = id_len;

    xet_sign_key_pad(&key->inner, secret, XET_SIGN_INNER);
    xet_sign_key_pad(&key->outer, secret, XET_SIGN_OUTER);

    return key;
}


void
xet_sign_key_destroy(xet_sign_key_t *key)
{
    if (key == NULL) {
        return;
    }

    OPENSSL_cleanse(key, sizeof(xet_sign_key_t));

    free(key);
}


int
xet_sign_id_ok(const uint8_t *id, size_t len)
{
    return xet_sign_name_valid(id, len, XET_SIGN_ID_MAX);
}


const char *
xet_sign_key_id(const xet_sign_key_t *key)
{
    return key->id;
}


xet_status_t
xet_sign_url(const xet_sign_key_t *key, const xet_sign_url_t *url,
    xet_buf_t *b)
{
    uint8_t          *p, *start, *name;
    uint8_t           mac[XET_SIGN_MAC_LEN];
    xet_sign_text_t   path, args;

    if (!xet_sign_name_valid(url->ns, url->ns_len, XET_SIGN_NS_MAX)
        || url->expires > (uint64_t) INT64_MAX
        || !xet_sign_ranges_ok(url->ranges, url->n))
    {
        return XET_INTERNAL;
    }

    start = xet_buf_reserve(b, XET_SIGN_URL_MAX
                               + url->n * XET_RANGE_PRINT_MAX);
    if (start == NULL) {
        return XET_NOMEM;
    }

    p = xet_put_literal(start, "/xorbs/");
    path.data = p;

    p = xet_put_bytes(p, url->ns, url->ns_len);

    name = p + 4;

    p[0] = '/';
    p[3] = '/';

    p = xet_xorb_name_print(name, &url->xorb, url->copy_id);

    name[-3] = name[0];
    name[-2] = name[1];

    path.len = (size_t) (p - path.data);

    *p++ = '?';
    args.data = p;

    if (url->n) {
        p = xet_put_literal(p, "r=");
        p = xet_range_list_print(p, url->ranges, url->n);
        *p++ = '&';
    }

    p = xet_put_literal(p, "e=");
    p = xet_put_decimal(p, url->expires);
    p = xet_put_literal(p, "&k=");
    p = xet_put_bytes(p, key->id, key->id_len);

    args.len = (size_t) (p - args.data);

    xet_sign_mac(key, &path, &args, mac);

    p = xet_put_literal(p, "&s=");
    p = xet_base64_encode(p, mac, XET_SIGN_MAC_LEN);

    xet_buf_advance(b, (size_t) (p - start));

    return XET_OK;
}


xet_status_t
xet_sign_parse(xet_sign_asked_t *asked, const uint8_t *path, size_t path_len,
    const uint8_t *args, size_t args_len)
{
    xet_status_t  status;

    asked->url.ranges = asked->ranges;
    asked->url.n = 0;

    status = xet_sign_path(asked, path, path_len);

    if (status != XET_OK) {
        return status;
    }

    status = xet_sign_args(asked, args, args_len);

    if (status != XET_OK) {
        asked->url.n = 0;
    }

    return status;
}


xet_status_t
xet_sign_verify(const xet_sign_asked_t *asked, xet_sign_key_t *const *keys,
    size_t nkeys, uint64_t now)
{
    size_t        i;
    uint8_t       mac[XET_SIGN_MAC_LEN];
    xet_status_t  status;

    /* several keys may have this id while a key is being rotated */

    status = XET_SIGN_KEY;

    for (i = 0; i < nkeys; i++) {

        if (keys[i]->id_len != asked->id.len
            || memcmp(keys[i]->id, asked->id.data, asked->id.len) != 0)
        {
            continue;
        }

        xet_sign_mac(keys[i], &asked->path, &asked->args, mac);

        if (CRYPTO_memcmp(asked->mac, mac, XET_SIGN_MAC_LEN) == 0) {
            return (now < asked->url.expires) ? XET_OK : XET_SIGN_EXPIRED;
        }

        status = XET_SIGN_MISMATCH;
    }

    return status;
}


xet_status_t
xet_sign_range_check(const xet_sign_url_t *url, const uint8_t *value,
    size_t len)
{
    size_t            i, k, n;
    xet_range_spec_t  specs[XET_SIGN_RANGES_MAX];

    if (value == NULL) {
        return url->n ? XET_SIGN_RANGE : XET_OK;
    }

    n = (url->n && url->n < XET_SIGN_RANGES_MAX) ? url->n
                                                 : XET_SIGN_RANGES_MAX;

    if (xet_range_parse(value, len, specs, &n) != XET_OK) {
        return XET_SIGN_RANGE;
    }

    if (url->n == 0) {
        return XET_OK;
    }

    /* refuse empty elements: the server that sends the file may refuse them */

    for (i = 0, k = 1; i < len; i++) {
        k += (value[i] == ',');
    }

    if (k != n) {
        return XET_SIGN_RANGE;
    }

    /* both lists ascend, so k, the index of the signed range, only grows */

    k = 0;

    for (i = 0; i < n; i++) {

        if (specs[i].kind != XET_RANGE_CLOSED
            || (i && specs[i].first <= specs[i - 1].last))
        {
            return XET_SIGN_RANGE;
        }

        while (k < url->n && url->ranges[k].end <= specs[i].first) {
            k++;
        }

        if (k == url->n
            || specs[i].first < url->ranges[k].start
            || specs[i].last >= url->ranges[k].end)
        {
            return XET_SIGN_RANGE;
        }
    }

    return XET_OK;
}


/* Starts a hash with the secret, as a block XORed with pad. */

static void
xet_sign_key_pad(SHA256_CTX *sha, const uint8_t *secret, uint8_t pad)
{
    size_t   i;
    uint8_t  block[SHA256_CBLOCK];

    for (i = 0; i < SHA256_CBLOCK; i++) {
        block[i] = (uint8_t) ((i < XET_KEY_LEN ? secret[i] : 0) ^ pad);
    }

    SHA256_Init(sha);
    SHA256_Update(sha, block, SHA256_CBLOCK);

    OPENSSL_cleanse(block, SHA256_CBLOCK);
}


/*
 * Computes the signature of XET_SIGN_MAC_LEN bytes.  The path has no "?", so
 * two URLs never have the same text.
 */

static void
xet_sign_mac(const xet_sign_key_t *key, const xet_sign_text_t *path,
    const xet_sign_text_t *args, uint8_t *mac)
{
    SHA256_CTX  sha;

    sha = key->inner;

    SHA256_Update(&sha, path->data, path->len);
    SHA256_Update(&sha, "?", 1);
    SHA256_Update(&sha, args->data, args->len);
    SHA256_Final(mac, &sha);

    sha = key->outer;

    SHA256_Update(&sha, mac, XET_SIGN_MAC_LEN);
    SHA256_Final(mac, &sha);
}


/*
 * Returns whether name is 1 to max characters of [A-Za-z0-9_-], as in
 * base64url.
 */

static int
xet_sign_name_valid(const uint8_t *name, size_t len, size_t max)
{
    size_t   i;
    uint8_t  c;

    if (len == 0 || len > max) {
        return 0;
    }

    for (i = 0; i < len; i++) {
        c = name[i];

        if (!xet_is_alnum(c) && c != '-' && c != '_') {
            return 0;
        }
    }

    return 1;
}


/* Parses the path from its end: only its last four components are used. */

static xet_status_t
xet_sign_path(xet_sign_asked_t *asked, const uint8_t *path, size_t len)
{
    size_t           n;
    const uint8_t   *p;
    xet_sign_url_t  *url;

    url = &asked->url;

    n = XET_HASH_STR_LEN;

    if (len > n && path[len - n - 1] != '/') {
        n = XET_XORB_NAME_MAX;
    }

    if (len < n + 4) {
        return XET_SIGN_SYNTAX;
    }

    p = path + len - n;

    if (xet_xorb_name_parse(&url->xorb, &url->copy_id, p, n) != XET_OK
        || p[-4] != '/'
        || p[-3] != p[0]
        || p[-2] != p[1]
        || p[-1] != '/')
    {
        return XET_SIGN_SYNTAX;
    }

    asked->name.data = p;
    asked->name.len = n;

    n = (size_t) (p - 4 - path);

    for (p -= 4; p > path && p[-1] != '/'; p--) { /* void */ }

    url->ns = p;
    url->ns_len = n - (size_t) (p - path);

    asked->path.data = p;
    asked->path.len = len - (size_t) (p - path);

    if (!xet_sign_name_valid(url->ns, url->ns_len, XET_SIGN_NS_MAX)
        || p - path < 7
        || memcmp(p - 7, "/xorbs/", 7) != 0
        || !xet_sign_base_ok(path, (size_t) (p - path)))
    {
        return XET_SIGN_SYNTAX;
    }

    return XET_OK;
}


int
xet_sign_base_ok(const uint8_t *base, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        if (!xet_is_alnum(base[i])
            && (base[i] == '\0' || strchr("-._~!$&'()*+,;=:@/[]", base[i])
                                   == NULL))
        {
            return 0;
        }
    }

    return 1;
}


static xet_status_t
xet_sign_args(xet_sign_asked_t *asked, const uint8_t *args, size_t len)
{
    const uint8_t    *p, *end;
    xet_sign_url_t   *url;
    xet_sign_text_t   text;

    url = &asked->url;

    p = args;
    end = args + len;

    if (len && *p == 'r') {
        url->n = XET_SIGN_RANGES_MAX;

        if (!xet_sign_arg(&p, end, 'r', &text)
            || xet_range_list_parse(text.data, text.len, asked->ranges,
                                    &url->n)
               != XET_OK
            || !xet_sign_ranges_ok(url->ranges, url->n))
        {
            return XET_SIGN_SYNTAX;
        }
    }

    if (!xet_sign_arg(&p, end, 'e', &text)
        || !xet_sign_number(&text, &url->expires)
        || !xet_sign_arg(&p, end, 'k', &asked->id)
        || !xet_sign_name_valid(asked->id.data, asked->id.len,
                                XET_SIGN_ID_MAX))
    {
        return XET_SIGN_SYNTAX;
    }

    /* the signature covers the text before the last "&" */

    asked->args.data = args;
    asked->args.len = (size_t) (p - 1 - args);

    if (end - p < (ptrdiff_t) (2 + XET_SIGN_MAC_CHARS)
        || p[0] != 's'
        || p[1] != '='
        || !xet_base64_decode(asked->mac, p + 2, XET_SIGN_MAC_CHARS)
        || !xet_sign_tail(p + 2 + XET_SIGN_MAC_CHARS, end, url->n == 0))
    {
        return XET_SIGN_SYNTAX;
    }

    return XET_OK;
}


/*
 * Returns whether the text after the signature is valid: it may be empty, or,
 * in the cacheable form, "&n=" and digits, commas and dashes.  This argument
 * is not signed and not used.
 */

static int
xet_sign_tail(const uint8_t *p, const uint8_t *end, int cacheable)
{
    if (p == end) {
        return 1;
    }

    if (!cacheable || end - p < 4 || memcmp(p, "&n=", 3) != 0) {
        return 0;
    }

    for (p += 3; p < end; p++) {
        if ((*p < '0' || *p > '9') && *p != '-' && *p != ',') {
            return 0;
        }
    }

    return 1;
}


/* Parses "name=value" and the "&" after the value. */

static int
xet_sign_arg(const uint8_t **pos, const uint8_t *end, char name,
    xet_sign_text_t *value)
{
    const uint8_t  *p;

    p = *pos;

    if (end - p < 2 || p[0] != (uint8_t) name || p[1] != '=') {
        return 0;
    }

    p += 2;
    value->data = p;

    while (p < end && *p != '&') {
        p++;
    }

    if (p == end) {
        return 0;
    }

    value->len = (size_t) (p - value->data);
    *pos = p + 1;

    return 1;
}


/* Parses a decimal number up to 2^63 - 1 without leading zeros. */

static int
xet_sign_number(const xet_sign_text_t *text, uint64_t *number)
{
    return xet_get_decimal(text->data, text->len, number)
           && (text->len == 1 || text->data[0] != '0')
           && *number <= (uint64_t) INT64_MAX;
}


/*
 * Returns whether the ranges are below 2^63, ascending, disjoint and not
 * empty.
 */

static int
xet_sign_ranges_ok(const xet_range_t *ranges, size_t n)
{
    size_t  i;

    if (n > XET_SIGN_RANGES_MAX) {
        return 0;
    }

    for (i = 0; i < n; i++) {

        if (ranges[i].start >= ranges[i].end
            || ranges[i].end - 1 > (uint64_t) INT64_MAX
            || (i && ranges[i].start < ranges[i - 1].end))
        {
            return 0;
        }
    }

    return 1;
}
