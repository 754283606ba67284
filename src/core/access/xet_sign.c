
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
 * Only the keys have state.  A parsed URL has pointers into the request and
 * into itself, so it must not be copied.
 *
 * A key has two hash contexts with the secret already hashed (HMAC-SHA256, RFC
 * 2104).  The inner context also includes the label and the key id, with which
 * every signed text begins.  A signature uses copies of these contexts,
 * because initializing EVP_MAC takes longer than hashing a URL.  A signature
 * takes 480 ns with EVP_MAC and eleven updates, 340 ns with one update, and
 * 280 ns with copies of EVP_MD_CTX (OpenSSL 3.0).
 */


#include <stdlib.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "xet_base.h"
#include "xet_access.h"


#define XET_SIGN_LABEL  "xet-url-1\n"

#define XET_SIGN_PAD    64             /* SHA-256 block size, in bytes */
#define XET_SIGN_INNER  0x36
#define XET_SIGN_OUTER  0x5c

#if (XET_SIGN_KEY_MAX > XET_SIGN_PAD)
#error a longer key has to be hashed first
#endif

/* maximum length of "<namespace>/<name>\n<expiry>\n" */
#define XET_SIGN_TEXT_MAX                                                     \
    (XET_SIGN_NS_MAX + 1 + XET_XORB_NAME_MAX + 1 + XET_DECIMAL_MAX + 1)

#define XET_SIGN_MAC_CHARS  xet_base64_encoded(XET_SIGN_MAC_LEN)

/*
 * maximum length of "/xorbs/<ns>/<aa>/<name>?r=&e=<expiry>&k=<id>&s=<mac>"
 * without the ranges
 */
#define XET_SIGN_URL_MAX                                                      \
    (7 + XET_SIGN_NS_MAX + 4 + XET_XORB_NAME_MAX + 4 + 3 + XET_DECIMAL_MAX    \
     + 3 + XET_SIGN_ID_MAX + 3 + XET_SIGN_MAC_CHARS)


struct xet_sign_key_s {
    EVP_MD         *md;
    EVP_MD_CTX     *inner;             /* state after secret, label and id */
    EVP_MD_CTX     *outer;             /* state after secret */
    EVP_MD_CTX     *ctx;               /* copy for the current signature */
    size_t          id_len;
    char            id[XET_SIGN_ID_MAX + 1];
};


static EVP_MD_CTX *xet_sign_key_pad(const EVP_MD *md, const uint8_t *secret,
    size_t len, uint8_t pad);
static xet_status_t xet_sign_mac(xet_sign_key_t *key,
    const xet_sign_fields_t *f, uint8_t *mac);
static int xet_sign_name_valid(const uint8_t *name, size_t len, size_t max);
static xet_status_t xet_sign_path(const uint8_t *path, size_t len,
    xet_sign_fields_t *f, xet_sign_url_t *url);
static xet_status_t xet_sign_args(const uint8_t *args, size_t len,
    xet_sign_fields_t *f, xet_sign_text_t *id, uint8_t *mac);
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
        || secret_len < XET_SIGN_KEY_MIN
        || secret_len > XET_SIGN_KEY_MAX)
    {
        return NULL;
    }

    key = calloc(1, sizeof(xet_sign_key_t));
    if (key == NULL) {
        return NULL;
    }

    memcpy(key->id, id, id_len);
    key->id_len = id_len;

    key->md = EVP_MD_fetch(NULL, "SHA256", NULL);

    if (key->md != NULL) {
        key->inner = xet_sign_key_pad(key->md, secret, secret_len,
                                      XET_SIGN_INNER);
        key->outer = xet_sign_key_pad(key->md, secret, secret_len,
                                      XET_SIGN_OUTER);
        key->ctx = EVP_MD_CTX_new();
    }

    if (key->inner == NULL || key->outer == NULL || key->ctx == NULL
        || !EVP_DigestUpdate(key->inner, XET_SIGN_LABEL,
                             sizeof(XET_SIGN_LABEL) - 1)
        || !EVP_DigestUpdate(key->inner, id, id_len)
        || !EVP_DigestUpdate(key->inner, "\n", 1))
    {
        xet_sign_key_destroy(key);
        return NULL;
    }

    return key;
}


void
xet_sign_key_destroy(xet_sign_key_t *key)
{
    if (key == NULL) {
        return;
    }

    EVP_MD_CTX_free(key->inner);
    EVP_MD_CTX_free(key->outer);
    EVP_MD_CTX_free(key->ctx);
    EVP_MD_free(key->md);

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
xet_sign_url(xet_sign_key_t *key, const xet_sign_url_t *url, xet_buf_t *b)
{
    uint8_t            *p, *aa, *start;
    uint8_t             mac[XET_SIGN_MAC_LEN];
    xet_status_t        status;
    xet_sign_fields_t   f;

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

    f.ns.data = url->ns;
    f.ns.len = url->ns_len;

    p = xet_put_bytes(start, "/xorbs/", 7);
    p = xet_put_bytes(p, url->ns, url->ns_len);

    aa = p;

    f.name.data = p + 4;

    p = xet_xorb_name_print(p + 4, &url->xorb, url->copy_id);

    f.name.len = (size_t) (p - f.name.data);

    aa[0] = '/';
    aa[1] = f.name.data[0];
    aa[2] = f.name.data[1];
    aa[3] = '/';

    *p++ = '?';

    f.list.data = p;
    f.list.len = 0;

    if (url->n) {
        p = xet_put_bytes(p, "r=", 2);

        f.list.data = p;
        p = xet_range_list_print(p, url->ranges, url->n);
        f.list.len = (size_t) (p - f.list.data);

        *p++ = '&';
    }

    p = xet_put_bytes(p, "e=", 2);

    f.expires.data = p;
    p = xet_put_decimal(p, url->expires);
    f.expires.len = (size_t) (p - f.expires.data);

    p = xet_put_bytes(p, "&k=", 3);
    p = xet_put_bytes(p, key->id, key->id_len);
    p = xet_put_bytes(p, "&s=", 3);

    status = xet_sign_mac(key, &f, mac);

    if (status != XET_OK) {
        return status;
    }

    p = xet_base64_encode(p, mac, XET_SIGN_MAC_LEN);

    xet_buf_advance(b, (size_t) (p - start));

    return XET_OK;
}


xet_status_t
xet_sign_parse(xet_sign_asked_t *asked, const uint8_t *path, size_t path_len,
    const uint8_t *args, size_t args_len)
{
    xet_status_t        status;
    xet_sign_url_t     *url;
    xet_sign_fields_t  *f;

    f = &asked->fields;
    url = &asked->url;

    url->ranges = asked->ranges;
    url->n = 0;

    status = xet_sign_path(path, path_len, f, url);

    if (status != XET_OK) {
        return status;
    }

    status = xet_sign_args(args, args_len, f, &asked->id, asked->mac);

    if (status != XET_OK) {
        return status;
    }

    if (!xet_sign_number(&f->expires, &url->expires)) {
        return XET_SIGN_SYNTAX;
    }

    url->ns = f->ns.data;
    url->ns_len = f->ns.len;

    if (f->list.len) {
        url->n = XET_SIGN_RANGES_MAX;

        if (xet_range_list_parse(f->list.data, f->list.len, asked->ranges,
                                 &url->n)
            != XET_OK
            || !xet_sign_ranges_ok(url->ranges, url->n))
        {
            url->n = 0;
            return XET_SIGN_SYNTAX;
        }
    }

    return XET_OK;
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

        status = xet_sign_mac(keys[i], &asked->fields, mac);

        if (status != XET_OK) {
            return status;
        }

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


/* Creates a hash context and hashes the secret, as a block XORed with pad. */

static EVP_MD_CTX *
xet_sign_key_pad(const EVP_MD *md, const uint8_t *secret, size_t len,
    uint8_t pad)
{
    int          ok;
    size_t       i;
    uint8_t      block[XET_SIGN_PAD];
    EVP_MD_CTX  *ctx;

    ctx = EVP_MD_CTX_new();
    if (ctx == NULL) {
        return NULL;
    }

    for (i = 0; i < XET_SIGN_PAD; i++) {
        block[i] = (uint8_t) ((i < len ? secret[i] : 0) ^ pad);
    }

    ok = EVP_DigestInit_ex2(ctx, md, NULL)
         && EVP_DigestUpdate(ctx, block, XET_SIGN_PAD);

    OPENSSL_cleanse(block, XET_SIGN_PAD);

    if (!ok) {
        EVP_MD_CTX_free(ctx);
        return NULL;
    }

    return ctx;
}


/*
 * Computes the signature of XET_SIGN_MAC_LEN bytes.  Returns XET_INTERNAL when
 * OpenSSL fails, or when the fields other than the list exceed the limits of a
 * URL.
 */

static xet_status_t
xet_sign_mac(xet_sign_key_t *key, const xet_sign_fields_t *f, uint8_t *mac)
{
    int          ok;
    uint8_t     *p, text[XET_SIGN_TEXT_MAX];
    unsigned     len;
    EVP_MD_CTX  *ctx;

    if (f->ns.len + f->name.len + f->expires.len + 3 > sizeof(text)) {
        return XET_INTERNAL;
    }

    ctx = key->ctx;

    p = xet_put_bytes(text, f->ns.data, f->ns.len);
    *p++ = '/';
    p = xet_put_bytes(p, f->name.data, f->name.len);
    *p++ = '\n';
    p = xet_put_bytes(p, f->expires.data, f->expires.len);
    *p++ = '\n';

    ok = EVP_MD_CTX_copy_ex(ctx, key->inner)
         && EVP_DigestUpdate(ctx, text, (size_t) (p - text))
         && EVP_DigestUpdate(ctx, f->list.data, f->list.len)
         && EVP_DigestUpdate(ctx, "\n", 1)
         && EVP_DigestFinal_ex(ctx, mac, &len)
         && len == XET_SIGN_MAC_LEN
         && EVP_MD_CTX_copy_ex(ctx, key->outer)
         && EVP_DigestUpdate(ctx, mac, XET_SIGN_MAC_LEN)
         && EVP_DigestFinal_ex(ctx, mac, &len);

    return ok ? XET_OK : XET_INTERNAL;
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
xet_sign_path(const uint8_t *path, size_t len, xet_sign_fields_t *f,
    xet_sign_url_t *url)
{
    const uint8_t  *p;

    p = path + len;

    while (p > path && p[-1] != '/') {
        p--;
    }

    f->name.data = p;
    f->name.len = (size_t) (path + len - p);

    if (p - path < 4
        || xet_xorb_name_parse(&url->xorb, &url->copy_id, f->name.data,
                               f->name.len)
           != XET_OK)
    {
        return XET_SIGN_SYNTAX;
    }

    p -= 4;
    len = (size_t) (p - path);

    if (p[0] != '/'
        || p[1] != f->name.data[0]
        || p[2] != f->name.data[1]
        || p[3] != '/')
    {
        return XET_SIGN_SYNTAX;
    }

    while (p > path && p[-1] != '/') {
        p--;
    }

    f->ns.data = p;
    f->ns.len = (size_t) (path + len - p);

    if (!xet_sign_name_valid(f->ns.data, f->ns.len, XET_SIGN_NS_MAX)) {
        return XET_SIGN_SYNTAX;
    }

    if (p - path < 7 || memcmp(p - 7, "/xorbs/", 7) != 0
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
xet_sign_args(const uint8_t *args, size_t len, xet_sign_fields_t *f,
    xet_sign_text_t *id, uint8_t *mac)
{
    const uint8_t    *p, *end;
    xet_sign_text_t   text;

    p = args;
    end = args + len;

    f->list.data = args;
    f->list.len = 0;

    if (len && *p == 'r') {

        if (!xet_sign_arg(&p, end, 'r', &f->list) || f->list.len == 0) {
            return XET_SIGN_SYNTAX;
        }
    }

    if (!xet_sign_arg(&p, end, 'e', &f->expires)
        || !xet_sign_arg(&p, end, 'k', id)
        || !xet_sign_name_valid(id->data, id->len, XET_SIGN_ID_MAX)
        || !xet_sign_arg(&p, end, 's', &text)
        || text.len != XET_SIGN_MAC_CHARS
        || !xet_base64_decode(mac, text.data, text.len)
        || !xet_sign_tail(p, end, f->list.len == 0))
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


/*
 * Parses "name=value" and the "&" after the value, which is required.  The
 * argument "s" is the last one: *pos stays at the end of its value.
 */

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

    value->len = (size_t) (p - value->data);

    if (name != 's') {

        if (p == end) {
            return 0;
        }

        p++;
    }

    *pos = p;

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
