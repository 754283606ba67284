
/*
 * Signed URLs: a URL is accepted only if the signer would write exactly this
 * URL; every URL from the signer is accepted; a URL with a changed byte is
 * rejected.
 *
 * An input that begins with a slash is a path, with arguments after a question
 * mark and a Range header after a newline.  Any other input is a program that
 * builds a URL, damages it and requests ranges.
 */


#include <stdio.h>

#include "xet_base.h"
#include "xet_test_pool.h"
#include "xet_access.h"


#define NOW  UINT64_C(1000000000)

#define check(cond)  if (!(cond)) { __builtin_trap(); }


static xet_sign_key_t    *fuzz_keys[2];
static xet_sign_asked_t   fuzz_asked;
static char               fuzz_text[16384];


static void
fuzz_keys_create(void)
{
    uint8_t   secret[64];
    unsigned  i;

    for (i = 0; i < 64; i++) {
        secret[i] = (uint8_t) i;
    }

    fuzz_keys[0] = xet_sign_key_create((const uint8_t *) "k1", 2, secret, 32);
    fuzz_keys[1] = xet_sign_key_create((const uint8_t *) "old_key-2", 9,
                                       secret + 32, 32);

    check(fuzz_keys[0] != NULL && fuzz_keys[1] != NULL);
}


/* Returns the text that the signer writes for url. */

static char *
fuzz_sign(xet_test_pool_t *pool, unsigned key, const xet_sign_url_t *url,
    size_t *len)
{
    xet_buf_t  b;

    xet_buf_init(&b, xet_test_alloc, pool, 64);

    check(xet_sign_url(fuzz_keys[key], url, &b) == XET_OK);

    return (char *) xet_test_flatten(pool, &b, len);
}


static xet_status_t
fuzz_check(const char *text, size_t len, uint64_t now, xet_sign_url_t *url)
{
    size_t         path;
    const char    *q;
    xet_status_t   status;

    q = memchr(text, '?', len);
    path = q ? (size_t) (q - text) : len;

    status = xet_sign_parse(&fuzz_asked, (const uint8_t *) text, path,
                            (const uint8_t *) (q ? q + 1 : text),
                            q ? len - path - 1 : 0);

    if (status == XET_OK) {
        status = xet_sign_verify(&fuzz_asked, fuzz_keys, 2, now);
    }

    *url = fuzz_asked.url;

    return status;
}


/* Computes the expected result of the range check, range by range. */

static xet_status_t
fuzz_range_expected(const xet_sign_url_t *url, const uint8_t *value,
    size_t len)
{
    size_t                   i, k, n;

    static xet_range_spec_t  specs[XET_SIGN_RANGES_MAX];

    n = XET_SIGN_RANGES_MAX;

    if (xet_range_parse(value, len, specs, &n) != XET_OK) {
        return XET_SIGN_RANGE;
    }

    if (url->n == 0) {
        return XET_OK;
    }

    if (n > url->n) {
        return XET_SIGN_RANGE;
    }

    for (i = 0, k = 1; i < len; i++) {
        k += (value[i] == ',');
    }

    if (k != n) {
        return XET_SIGN_RANGE;
    }

    for (i = 0; i < n; i++) {

        if (specs[i].kind != XET_RANGE_CLOSED) {
            return XET_SIGN_RANGE;
        }

        for (k = 0; k < url->n; k++) {
            if (specs[i].first >= url->ranges[k].start
                && specs[i].last < url->ranges[k].end)
            {
                break;
            }
        }

        if (k == url->n || (i && specs[i].first <= specs[i - 1].last)) {
            return XET_SIGN_RANGE;
        }
    }

    return XET_OK;
}


static void
fuzz_ranges(const xet_sign_url_t *url, const uint8_t *value, size_t len)
{
    int          n;
    char         text[64];
    size_t       i, used;

    check(xet_sign_range_check(url, NULL, 0)
          == (url->n ? XET_SIGN_RANGE : XET_OK));
    check(xet_sign_range_check(url, value, len)
          == fuzz_range_expected(url, value, len));

    used = (size_t) sprintf(fuzz_text, "bytes=");

    for (i = 0; i < url->n; i++) {
        n = snprintf(text, sizeof(text), "bytes=%llu-%llu",
                     (unsigned long long) url->ranges[i].start,
                     (unsigned long long) url->ranges[i].end - 1);

        check(xet_sign_range_check(url, (uint8_t *) text, (size_t) n)
              == XET_OK);

        if (used + (size_t) n < sizeof(fuzz_text)) {
            used += (size_t) sprintf(fuzz_text + used, "%s%s",
                                     i ? "," : "", text + 6);

        } else {
            used = 0;
            break;
        }
    }

    if (url->n && used) {
        check(xet_sign_range_check(url, (uint8_t *) fuzz_text, used)
              == XET_OK);
    }
}


static void
fuzz_text_input(const uint8_t *data, size_t size)
{
    char             *text, *want;
    size_t            len, want_len, prefix;
    unsigned          key;
    const uint8_t    *end;
    xet_sign_url_t    url;
    xet_test_pool_t   pool;

    end = memchr(data, '\n', size);
    len = end ? (size_t) (end - data) : size;

    memset(&pool, 0, sizeof(pool));

    /* a block of the exact size, so that ASan detects a read past it */

    text = malloc(len + 1);
    check(text != NULL);
    memcpy(text, data, len);

    if (fuzz_check(text, len, NOW, &url) == XET_OK) {

        for (key = 0; key < 2; key++) {
            want = fuzz_sign(&pool, key, &url, &want_len);

            if (want_len <= len
                && memcmp(text + len - want_len, want, want_len) == 0)
            {
                break;
            }
        }

        check(key < 2 && url.expires > NOW);

        prefix = len - want_len;
        check(memchr(text, '?', prefix) == NULL);

        if (end) {
            fuzz_ranges(&url, end + 1, size - len - 1);
        }
    }

    free(text);
    xet_test_pool_free(&pool);
}


/* Input: key, length of the namespace, number of ranges, expiry, contents. */

static void
fuzz_program(const uint8_t *data, size_t size)
{
    char             *text;
    size_t            len, at;
    uint8_t           ns[XET_SIGN_NS_MAX];
    uint64_t          pos;
    unsigned          i, key;
    xet_range_t       ranges[255];
    xet_status_t      status;
    xet_sign_url_t    url, back;
    xet_test_pool_t   pool;

    static const char  digits[] =
        "-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

    if (size < 48) {
        return;
    }

    memset(&pool, 0, sizeof(pool));

    key = data[0] & 1;
    url.ns = ns;
    url.ns_len = 1 + data[1] % XET_SIGN_NS_MAX;
    url.expires = xet_get_u64(data + 4) >> (1 + data[3] % 63);
    memcpy(url.xorb.bytes, data + 12, XET_HASH_LEN);
    url.copy_id = (data[0] & 1) ? xet_get_u32(data + 4) : 0;

    for (i = 0; i < url.ns_len; i++) {
        ns[i] = (uint8_t) digits[(data[44] * (i + 1) + data[45]) % 64];
    }

    at = xet_get_u16(data + 46);
    i = data[2];

    data += 48;
    size -= 48;

    for (pos = 0, url.n = 0; url.n < i && size >= 4; url.n++) {
        pos += (uint64_t) xet_get_u16(data) << (data[1] & 31);
        ranges[url.n].start = pos;
        pos += 1 + ((uint64_t) xet_get_u16(data + 2) << (data[3] & 31));
        ranges[url.n].end = pos;

        data += 4;
        size -= 4;
    }

    url.ranges = ranges;

    text = fuzz_sign(&pool, key, &url, &len);

    status = fuzz_check(text, len, NOW, &back);
    check(status == (NOW < url.expires ? XET_OK : XET_SIGN_EXPIRED));

    check(back.expires == url.expires && back.n == url.n
          && back.ns_len == url.ns_len
          && memcmp(back.ns, ns, url.ns_len) == 0
          && xet_hash_equal(&back.xorb, &url.xorb)
          && back.copy_id == url.copy_id
          && (url.n == 0 || memcmp(back.ranges, ranges,
                                   url.n * sizeof(xet_range_t)) == 0));

    fuzz_ranges(&back, data, size);

    /* changes one byte, then removes one */

    if (size) {
        at %= len;

        if (text[at] != (char) data[0]) {
            text[at] = (char) data[0];
            check(fuzz_check(text, len, 0, &back) != XET_OK);
        }

        memmove(text + at, text + at + 1, len - at - 1);
        check(fuzz_check(text, len - 1, 0, &back) != XET_OK);
    }

    xet_test_pool_free(&pool);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (fuzz_keys[0] == NULL) {
        fuzz_keys_create();
    }

    if (size && data[0] == '/') {
        fuzz_text_input(data, size);

    } else {
        fuzz_program(data, size);
    }

    return 0;
}
