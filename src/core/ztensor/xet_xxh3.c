
/*
 * XXH3_64bits, after the description of the algorithm, version 0.8.
 *
 * Purpose:    the hash of a manifest of container 2, and of its parts.
 * States:     up to 240 bytes are hashed as a whole when asked for; longer
 *             input goes through eight accumulators, a stripe of 64 bytes at
 *             a time, 16 stripes a block.
 * Ownership:  the caller's.
 * Threads:    one at a time.
 *
 * The last stripe of long input is read once more, from 64 bytes before the
 * end.  Therefore the buffer is emptied only when more bytes are at hand, and
 * the stripe before it is kept.
 *
 * No word is wider than 64 bits, and the inner loop is plain enough for
 * compilers to use vectors.
 */


#include <string.h>

#include "xet_bytes.h"
#include "xet_xxh3.h"


#define XET_XXH3_SECRET   192
#define XET_XXH3_BLOCK    16           /* stripes, (secret - stripe) / 8 */
#define XET_XXH3_SHORT    240

#define XET_XXH3_P32_1    UINT32_C(0x9e3779b1)
#define XET_XXH3_P32_2    UINT32_C(0x85ebca77)
#define XET_XXH3_P32_3    UINT32_C(0xc2b2ae3d)

#define XET_XXH3_P64_1    UINT64_C(0x9e3779b185ebca87)
#define XET_XXH3_P64_2    UINT64_C(0xc2b2ae3d27d4eb4f)
#define XET_XXH3_P64_3    UINT64_C(0x165667b19e3779f9)
#define XET_XXH3_P64_4    UINT64_C(0x85ebca77c2b2ae63)
#define XET_XXH3_P64_5    UINT64_C(0x27d4eb2f165667c5)

#define XET_XXH3_P_MX1    UINT64_C(0x165667919e3779f9)
#define XET_XXH3_P_MX2    UINT64_C(0x9fb21c651e98df25)


static void xet_xxh3_stripes(uint64_t *acc, unsigned *stripes,
    const uint8_t *data, size_t n);
static void xet_xxh3_stripe(uint64_t *acc, const uint8_t *data,
    const uint8_t *secret);
static void xet_xxh3_scramble(uint64_t *acc);
static uint64_t xet_xxh3_long(const xet_xxh3_t *x);
static uint64_t xet_xxh3_short(const uint8_t *data, size_t len);
static uint64_t xet_xxh3_16(const uint8_t *data, size_t len);
static uint64_t xet_xxh3_240(const uint8_t *data, size_t len);
static uint64_t xet_xxh3_mix(const uint8_t *data, const uint8_t *secret);
static uint64_t xet_xxh3_fold(uint64_t a, uint64_t b);
static uint64_t xet_xxh3_swap(uint64_t v);
static uint64_t xet_xxh3_rotate(uint64_t v, unsigned n);
static uint64_t xet_xxh3_avalanche(uint64_t h);
static uint64_t xet_xxh3_avalanche_64(uint64_t h);


static const uint8_t  xet_xxh3_secret[XET_XXH3_SECRET] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe,
    0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb,
    0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78,
    0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e,
    0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb,
    0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e,
    0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f,
    0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31,
    0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3,
    0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49,
    0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc,
    0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28,
    0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e
};


void
xet_xxh3_init(xet_xxh3_t *x)
{
    static const uint64_t  acc[8] = {
        XET_XXH3_P32_3, XET_XXH3_P64_1, XET_XXH3_P64_2, XET_XXH3_P64_3,
        XET_XXH3_P64_4, XET_XXH3_P32_2, XET_XXH3_P64_5, XET_XXH3_P32_1
    };

    memcpy(x->acc, acc, sizeof(acc));

    x->len = 0;
    x->stripes = 0;
    x->n = 0;
}


void
xet_xxh3_update(xet_xxh3_t *x, const uint8_t *data, size_t len)
{
    size_t  n;

    if (len == 0) {
        return;
    }

    x->len += len;

    n = XET_XXH3_BUFFER - x->n;

    if (len <= n) {
        memcpy(x->buf + x->n, data, len);
        x->n += (unsigned) len;
        return;
    }

    memcpy(x->buf + x->n, data, n);
    data += n;
    len -= n;

    xet_xxh3_stripes(x->acc, &x->stripes, x->buf,
                     XET_XXH3_BUFFER / XET_XXH3_STRIPE);

    memcpy(x->last, x->buf + XET_XXH3_BUFFER - XET_XXH3_STRIPE,
           XET_XXH3_STRIPE);

    /* all but 1 to 64 bytes are whole stripes that are not the last one */

    n = (len - 1) / XET_XXH3_STRIPE;

    if (n) {
        xet_xxh3_stripes(x->acc, &x->stripes, data, n);

        data += n * XET_XXH3_STRIPE;
        len -= n * XET_XXH3_STRIPE;

        memcpy(x->last, data - XET_XXH3_STRIPE, XET_XXH3_STRIPE);
    }

    memcpy(x->buf, data, len);
    x->n = (unsigned) len;
}


uint64_t
xet_xxh3_final(const xet_xxh3_t *x)
{
    return (x->len <= XET_XXH3_SHORT)
           ? xet_xxh3_short(x->buf, (size_t) x->len) : xet_xxh3_long(x);
}


static void
xet_xxh3_stripes(uint64_t *acc, unsigned *stripes, const uint8_t *data,
    size_t n)
{
    while (n--) {
        xet_xxh3_stripe(acc, data, xet_xxh3_secret + 8 * *stripes);

        data += XET_XXH3_STRIPE;

        if (++*stripes == XET_XXH3_BLOCK) {
            xet_xxh3_scramble(acc);
            *stripes = 0;
        }
    }
}


static void
xet_xxh3_stripe(uint64_t *acc, const uint8_t *data, const uint8_t *secret)
{
    unsigned  i;
    uint64_t  value, key;

    for (i = 0; i < 8; i++) {
        value = xet_get_u64(data + 8 * i);
        key = value ^ xet_get_u64(secret + 8 * i);

        acc[i ^ 1] += value;
        acc[i] += (key & 0xffffffff) * (key >> 32);
    }
}


static void
xet_xxh3_scramble(uint64_t *acc)
{
    unsigned        i;
    const uint8_t  *secret;

    secret = xet_xxh3_secret + XET_XXH3_SECRET - XET_XXH3_STRIPE;

    for (i = 0; i < 8; i++) {
        acc[i] ^= acc[i] >> 47;
        acc[i] ^= xet_get_u64(secret + 8 * i);
        acc[i] *= XET_XXH3_P32_1;
    }
}


static uint64_t
xet_xxh3_long(const xet_xxh3_t *x)
{
    unsigned  i, stripes;
    uint64_t  h, acc[8];
    uint8_t   last[XET_XXH3_STRIPE];

    memcpy(acc, x->acc, sizeof(acc));
    stripes = x->stripes;

    xet_xxh3_stripes(acc, &stripes, x->buf, (x->n - 1) / XET_XXH3_STRIPE);

    if (x->n >= XET_XXH3_STRIPE) {
        memcpy(last, x->buf + x->n - XET_XXH3_STRIPE, XET_XXH3_STRIPE);

    } else {
        memcpy(last, x->last + x->n, XET_XXH3_STRIPE - x->n);
        memcpy(last + XET_XXH3_STRIPE - x->n, x->buf, x->n);
    }

    xet_xxh3_stripe(acc, last,
                    xet_xxh3_secret + XET_XXH3_SECRET - XET_XXH3_STRIPE - 7);

    h = x->len * XET_XXH3_P64_1;

    for (i = 0; i < 4; i++) {
        h += xet_xxh3_fold(acc[2 * i]
                           ^ xet_get_u64(xet_xxh3_secret + 11 + 16 * i),
                           acc[2 * i + 1]
                           ^ xet_get_u64(xet_xxh3_secret + 19 + 16 * i));
    }

    return xet_xxh3_avalanche(h);
}


static uint64_t
xet_xxh3_short(const uint8_t *data, size_t len)
{
    size_t          i;
    uint64_t        h;
    const uint8_t  *secret;

    secret = xet_xxh3_secret;

    if (len <= 16) {
        return xet_xxh3_16(data, len);
    }

    if (len > 128) {
        return xet_xxh3_240(data, len);
    }

    h = len * XET_XXH3_P64_1;

    /* pairs of 16 bytes, from both ends inwards */

    for (i = (len - 1) / 32 + 1; i--; /* void */ ) {
        h += xet_xxh3_mix(data + 16 * i, secret + 32 * i);
        h += xet_xxh3_mix(data + len - 16 * (i + 1), secret + 32 * i + 16);
    }

    return xet_xxh3_avalanche(h);
}


static uint64_t
xet_xxh3_16(const uint8_t *data, size_t len)
{
    uint64_t        h, low, high;
    const uint8_t  *secret;

    secret = xet_xxh3_secret;

    if (len > 8) {
        low = xet_get_u64(data)
              ^ xet_get_u64(secret + 24) ^ xet_get_u64(secret + 32);
        high = xet_get_u64(data + len - 8)
               ^ xet_get_u64(secret + 40) ^ xet_get_u64(secret + 48);

        return xet_xxh3_avalanche(len + xet_xxh3_swap(low) + high
                                  + xet_xxh3_fold(low, high));
    }

    if (len >= 4) {
        h = xet_get_u32(data + len - 4) + ((uint64_t) xet_get_u32(data) << 32);
        h ^= xet_get_u64(secret + 8) ^ xet_get_u64(secret + 16);

        h ^= xet_xxh3_rotate(h, 49) ^ xet_xxh3_rotate(h, 24);
        h *= XET_XXH3_P_MX2;
        h ^= (h >> 35) + len;
        h *= XET_XXH3_P_MX2;

        return h ^ h >> 28;
    }

    if (len) {
        h = (uint64_t) data[0] << 16 | (uint64_t) data[len >> 1] << 24
            | data[len - 1] | len << 8;

        return xet_xxh3_avalanche_64(h ^ xet_get_u32(secret)
                                     ^ xet_get_u32(secret + 4));
    }

    return xet_xxh3_avalanche_64(xet_get_u64(secret + 56)
                                 ^ xet_get_u64(secret + 64));
}


static uint64_t
xet_xxh3_240(const uint8_t *data, size_t len)
{
    size_t          i;
    uint64_t        h;
    const uint8_t  *secret;

    secret = xet_xxh3_secret;

    h = len * XET_XXH3_P64_1;

    for (i = 0; i < 8; i++) {
        h += xet_xxh3_mix(data + 16 * i, secret + 16 * i);
    }

    h = xet_xxh3_avalanche(h);

    for (i = 8; i < len / 16; i++) {
        h += xet_xxh3_mix(data + 16 * i, secret + 16 * (i - 8) + 3);
    }

    h += xet_xxh3_mix(data + len - 16, secret + 136 - 17);

    return xet_xxh3_avalanche(h);
}


static uint64_t
xet_xxh3_mix(const uint8_t *data, const uint8_t *secret)
{
    return xet_xxh3_fold(xet_get_u64(data) ^ xet_get_u64(secret),
                         xet_get_u64(data + 8) ^ xet_get_u64(secret + 8));
}


/* The two halves of the product of 128 bits, one over the other. */

static uint64_t
xet_xxh3_fold(uint64_t a, uint64_t b)
{
    uint64_t  low, high, cross, a_low, a_high, b_low, b_high;

    a_low = a & 0xffffffff;
    a_high = a >> 32;
    b_low = b & 0xffffffff;
    b_high = b >> 32;

    low = a_low * b_low;
    cross = a_high * b_low + (low >> 32);
    high = a_high * b_high + (cross >> 32);
    cross = a_low * b_high + (cross & 0xffffffff);
    high += cross >> 32;

    return high ^ (cross << 32 | (low & 0xffffffff));
}


static uint64_t
xet_xxh3_swap(uint64_t v)
{
    v = (v & UINT64_C(0x00ff00ff00ff00ff)) << 8
        | (v >> 8 & UINT64_C(0x00ff00ff00ff00ff));
    v = (v & UINT64_C(0x0000ffff0000ffff)) << 16
        | (v >> 16 & UINT64_C(0x0000ffff0000ffff));

    return v << 32 | v >> 32;
}


static uint64_t
xet_xxh3_rotate(uint64_t v, unsigned n)
{
    return v << n | v >> (64 - n);
}


static uint64_t
xet_xxh3_avalanche(uint64_t h)
{
    h ^= h >> 37;
    h *= XET_XXH3_P_MX1;

    return h ^ h >> 32;
}


static uint64_t
xet_xxh3_avalanche_64(uint64_t h)
{
    h ^= h >> 33;
    h *= XET_XXH3_P64_2;
    h ^= h >> 29;
    h *= XET_XXH3_P64_3;

    return h ^ h >> 32;
}
