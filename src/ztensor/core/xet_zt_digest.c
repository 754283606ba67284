
/*
 * Verification of digests, from their text to a verdict.
 *
 * Purpose:    computes digests and compares them.  A digest that cannot be
 *             checked is never reported as "verified".
 * States:     the kind of the digest.  With XET_ZT_DIGEST_NONE bytes are
 *             ignored, and the verdict depends only on the digest's text.
 * Ownership:  the SHA-256 and XXH3 contexts are allocated once and reused.
 * Threads:    one at a time.
 *
 * In container 1, the hex digits may be in upper or lower case; CRC-32C has 8
 * digits, with or without 0x.  In container 2, all digits are in lower case,
 * which the parser of the manifest has checked.
 *
 * ISA-L computes CRC-32C and selects the fastest code for the processor.  It
 * calls the checksum "iscsi", and its caller has to invert the value before
 * and after the call.
 */


#include <limits.h>
#include <string.h>

#include <isa-l/crc.h>
#include <openssl/evp.h>

#include "xet_base.h"
#include "xet_zt.h"


typedef struct {
    const char            *name;       /* including the colon */
    xet_zt_digest_kind_t   kind;
    size_t                 len;
    xet_zt_container_t     container;
} xet_zt_digest_row_t;


static xet_zt_digest_verdict_t xet_zt_digest_parse(xet_zt_digest_t *d,
    const xet_zt_text_t *text, xet_zt_container_t container);
static int xet_zt_digest_hex(uint8_t *dst, const uint8_t *src, size_t n);


static const xet_zt_digest_row_t  xet_zt_digests[] = {
    { "sha256:", XET_ZT_DIGEST_SHA256, 32, XET_ZT_CONTAINER_1 },
    { "crc32c:", XET_ZT_DIGEST_CRC32C, 4, XET_ZT_CONTAINER_1 },
    { "sha256:", XET_ZT_DIGEST_SHA256, 32, XET_ZT_CONTAINER_2 },
    { "xxh3:", XET_ZT_DIGEST_XXH3, 8, XET_ZT_CONTAINER_2 }
};


void
xet_zt_digest_init(xet_zt_digest_t *d)
{
    memset(d, 0, sizeof(xet_zt_digest_t));
}


void
xet_zt_digest_destroy(xet_zt_digest_t *d)
{
    EVP_MD_CTX_free(d->sha256);
    d->sha256 = NULL;

    (void) XXH3_freeState(d->xxh3);
    d->xxh3 = NULL;
}


xet_status_t
xet_zt_digest_start(xet_zt_digest_t *d, const xet_zt_text_t *text,
    xet_zt_container_t container)
{
    d->kind = XET_ZT_DIGEST_NONE;
    d->verdict = xet_zt_digest_parse(d, text, container);

    switch (d->kind) {

    case XET_ZT_DIGEST_SHA256:

        if (d->sha256 == NULL) {
            d->sha256 = EVP_MD_CTX_new();
        }

        if (d->sha256 == NULL
            || EVP_DigestInit_ex(d->sha256, EVP_sha256(), NULL) != 1)
        {
            return XET_NOMEM;
        }

        break;

    case XET_ZT_DIGEST_CRC32C:
        d->crc32c = 0;
        break;

    case XET_ZT_DIGEST_XXH3:

        if (d->xxh3 == NULL) {
            d->xxh3 = XXH3_createState();
        }

        if (d->xxh3 == NULL || XXH3_64bits_reset(d->xxh3) != XXH_OK) {
            return XET_NOMEM;
        }

        break;

    default: /* XET_ZT_DIGEST_NONE */
        break;
    }

    return XET_OK;
}


xet_status_t
xet_zt_digest_update(xet_zt_digest_t *d, const uint8_t *data, size_t len)
{
    if (len == 0) {
        return XET_OK;
    }

    switch (d->kind) {

    case XET_ZT_DIGEST_SHA256:
        return (EVP_DigestUpdate(d->sha256, data, len) == 1) ? XET_OK
                                                            : XET_INTERNAL;

    case XET_ZT_DIGEST_CRC32C:
        d->crc32c = xet_crc32c(d->crc32c, data, len);
        return XET_OK;

    case XET_ZT_DIGEST_XXH3:
        return (XXH3_64bits_update(d->xxh3, data, len) == XXH_OK)
               ? XET_OK : XET_INTERNAL;

    default: /* XET_ZT_DIGEST_NONE */
        return XET_OK;
    }
}


xet_status_t
xet_zt_digest_finish(xet_zt_digest_t *d, xet_zt_digest_verdict_t *verdict)
{
    unsigned  i, n;
    uint64_t  value;
    uint8_t   got[XET_ZT_DIGEST_MAX];

    *verdict = d->verdict;

    switch (d->kind) {

    case XET_ZT_DIGEST_NONE:
        return XET_OK;

    case XET_ZT_DIGEST_SHA256:

        if (EVP_DigestFinal_ex(d->sha256, got, &n) != 1) {
            return XET_INTERNAL;
        }

        break;

    default: /* a number, written as big-endian hex */

        value = (d->kind == XET_ZT_DIGEST_CRC32C)
                ? d->crc32c : XXH3_64bits_digest(d->xxh3);

        for (i = 0; i < d->len; i++) {
            got[i] = (uint8_t) (value >> 8 * (d->len - 1 - i));
        }
    }

    *verdict = (memcmp(got, d->want, d->len) == 0) ? XET_ZT_DIGEST_VERIFIED
                                                   : XET_ZT_DIGEST_MISMATCH;

    return XET_OK;
}


const char *
xet_zt_digest_name(xet_zt_digest_verdict_t verdict)
{
    switch (verdict) {

    case XET_ZT_DIGEST_VERIFIED:
        return "verified";

    case XET_ZT_DIGEST_MISMATCH:
        return "mismatch";

    case XET_ZT_DIGEST_ABSENT:
        return "absent";

    case XET_ZT_DIGEST_UNSUPPORTED:
        return "unsupported";

    case XET_ZT_DIGEST_MALFORMED:
        return "malformed";

    case XET_ZT_DIGEST_UNCHECKED:
        return "not_checked";

    default: /* XET_ZT_DIGEST_UNREADABLE */
        return "unreadable";
    }
}


static xet_zt_digest_verdict_t
xet_zt_digest_parse(xet_zt_digest_t *d, const xet_zt_text_t *text,
    xet_zt_container_t container)
{
    size_t                      i, n, len;
    const uint8_t              *p, *colon;
    const xet_zt_digest_row_t  *row;

    if (text->data == NULL) {
        return XET_ZT_DIGEST_ABSENT;
    }

    colon = text->len ? memchr(text->data, ':', text->len) : NULL;

    if (colon == NULL || colon == text->data) {
        return XET_ZT_DIGEST_MALFORMED;
    }

    p = colon + 1;
    n = (size_t) (p - text->data);
    len = text->len - n;

    for (i = 0; i < sizeof(xet_zt_digests) / sizeof(xet_zt_digests[0]); i++) {
        row = &xet_zt_digests[i];

        if (row->container != container
            || strlen(row->name) != n
            || memcmp(row->name, text->data, n) != 0)
        {
            continue;
        }

        if (row->kind == XET_ZT_DIGEST_CRC32C
            && len == 2 * row->len + 2
            && p[0] == '0' && (p[1] | 0x20) == 'x')
        {
            p += 2;
            len -= 2;
        }

        if (len != 2 * row->len || !xet_zt_digest_hex(d->want, p, row->len)) {
            return XET_ZT_DIGEST_MALFORMED;
        }

        d->kind = row->kind;
        d->len = row->len;

        return XET_ZT_DIGEST_UNREADABLE;
    }

    return XET_ZT_DIGEST_UNSUPPORTED;
}


static int
xet_zt_digest_hex(uint8_t *dst, const uint8_t *src, size_t n)
{
    size_t    i;
    unsigned  high, low;

    for (i = 0; i < n; i++) {
        high = xet_get_hex_digit(src[2 * i]);
        low = xet_get_hex_digit(src[2 * i + 1]);

        if ((high | low) & 16) {
            return 0;
        }

        dst[i] = (uint8_t) (high << 4 | low);
    }

    return 1;
}


uint32_t
xet_crc32c(uint32_t crc, const uint8_t *data, size_t len)
{
    int  n;

    crc = ~crc;

    while (len) {
        n = (len > INT_MAX) ? INT_MAX : (int) len;

        /* ISA-L declares data without const, but only reads it */

        crc = crc32_iscsi((unsigned char *) data, n, crc);

        data += n;
        len -= (size_t) n;
    }

    return ~crc;
}
