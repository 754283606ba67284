
/*
 * Signed xorb URLs: making them, checking them, and what a signed list of
 * ranges admits.
 *
 * A URL has one spelling only.  The check walks it from left to right and
 * takes nothing but what the signer writes, so there is nothing to normalise
 * and nothing that two readers could understand differently.  Syntax comes
 * first, then the key, the signature in constant time, and the expiry last:
 * who has no key learns nothing from the answer.
 *
 * There is no state besides that of the keys.  A checked URL points into the
 * request's bytes and into the caller's room for ranges.
 */


#include <openssl/crypto.h>

#include "xet_sign_key.h"
#include "xet_base64.h"


#define XET_SIGN_MAC_CHARS  xet_base64_encoded(XET_SIGN_MAC_LEN)

/* "/xorbs/<ns>/<aa>/<name>?r=&e=<expiry>&k=<id>&s=<mac>" without ranges */
#define XET_SIGN_URL_MAX                                                      \
    (7 + XET_SIGN_NS_MAX + 4 + XET_XORB_NAME_MAX + 4 + 3 + XET_DECIMAL_MAX    \
     + 3 + XET_SIGN_ID_MAX + 3 + XET_SIGN_MAC_CHARS)


static xet_status_t xet_sign_path(const uint8_t *path, size_t len,
    xet_sign_fields_t *f, xet_sign_url_t *url);
static xet_status_t xet_sign_args(const uint8_t *args, size_t len,
    xet_sign_fields_t *f, xet_sign_text_t *id, uint8_t *mac);
static int xet_sign_arg(const uint8_t **pos, const uint8_t *end, char name,
    xet_sign_text_t *value);
static int xet_sign_tail(const uint8_t *p, const uint8_t *end, int cacheable);
static int xet_sign_number(const xet_sign_text_t *text, uint64_t *number);
static int xet_sign_ranges_ok(const xet_range_t *ranges, size_t n);


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

    p = xet_xorb_name_print(p + 4, &url->xorb, url->tag);

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
xet_sign_check(xet_sign_key_t *const *keys, size_t nkeys,
    const uint8_t *path, size_t path_len, const uint8_t *args,
    size_t args_len, uint64_t now, xet_range_t *ranges, xet_sign_url_t *url)
{
    size_t             i;
    uint8_t            given[XET_SIGN_MAC_LEN], mac[XET_SIGN_MAC_LEN];
    xet_status_t       status;
    xet_sign_text_t    id;
    xet_sign_fields_t  f;

    status = xet_sign_path(path, path_len, &f, url);

    if (status != XET_OK) {
        return status;
    }

    status = xet_sign_args(args, args_len, &f, &id, given);

    if (status != XET_OK) {
        return status;
    }

    if (!xet_sign_number(&f.expires, &url->expires)) {
        return XET_SIGN_SYNTAX;
    }

    url->ns = f.ns.data;
    url->ns_len = f.ns.len;
    url->ranges = ranges;
    url->n = 0;

    if (f.list.len) {
        url->n = XET_SIGN_RANGES_MAX;

        if (xet_range_list_parse(f.list.data, f.list.len, ranges, &url->n)
            != XET_OK
            || !xet_sign_ranges_ok(ranges, url->n))
        {
            url->n = 0;
            return XET_SIGN_SYNTAX;
        }
    }

    /* a secret may be replaced under its id, so all keys of the id count */

    status = XET_SIGN_KEY;

    for (i = 0; i < nkeys; i++) {

        if (keys[i]->id_len != id.len
            || memcmp(keys[i]->id, id.data, id.len) != 0)
        {
            continue;
        }

        status = xet_sign_mac(keys[i], &f, mac);

        if (status != XET_OK) {
            return status;
        }

        if (CRYPTO_memcmp(given, mac, XET_SIGN_MAC_LEN) == 0) {
            return (now < url->expires) ? XET_OK : XET_SIGN_EXPIRED;
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

    /* the server that sends the file reads the header, too: nothing odd */

    for (i = 0, k = 1; i < len; i++) {
        k += (value[i] == ',');
    }

    if (k != n) {
        return XET_SIGN_RANGE;
    }

    /* both lists ascend: the signed range of one spec is not before the last */

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


/* The path is read from its end: only its last four parts count. */

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
        || xet_xorb_name_parse(&url->xorb, &url->tag, f->name.data,
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
        if ((base[i] < 'a' || base[i] > 'z')
            && (base[i] < 'A' || base[i] > 'Z')
            && (base[i] < '0' || base[i] > '9')
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
 * What may follow the signature: nothing, or "&n=" and some digits, commas and
 * dashes in the cacheable form, which no signature covers and nobody reads.
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
 * Takes "name=value" up to the ampersand behind it, which must be there
 * unless it is "s", the last one, whose value goes up to the end.
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


/* Decimal, at most 2^63 - 1, without leading zeros. */

static int
xet_sign_number(const xet_sign_text_t *text, uint64_t *number)
{
    size_t    i;
    uint64_t  v;
    unsigned  digit;

    if (text->len == 0 || (text->len > 1 && text->data[0] == '0')) {
        return 0;
    }

    v = 0;

    for (i = 0; i < text->len; i++) {

        if (text->data[i] < '0' || text->data[i] > '9') {
            return 0;
        }

        digit = text->data[i] - '0';

        if (v > ((uint64_t) INT64_MAX - digit) / 10) {
            return 0;
        }

        v = v * 10 + digit;
    }

    *number = v;

    return 1;
}


/* Not empty, below 2^63, ascending, no two of them with a byte in common. */

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
