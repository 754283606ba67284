
/*
 * base64url without padding.
 *
 * Purpose:    encodes the parts of tokens and the members of JSON Web Keys.
 * States:     none.
 * Ownership:  the caller owns both buffers; they must not overlap.
 * Threads:    any.
 *
 * The decoder accepts only what the encoder writes, so two different texts
 * never decode to the same bytes: a cache may use the text as its key, and a
 * signature of the text is also a signature of the bytes.  The decoded data is
 * public (tokens in transit, public keys), so decoding need not take constant
 * time.
 */


#include "xet_base.h"


#define XET_BASE64_NONE  64            /* invalid character: bit 6 is set */


static const char  xet_base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";


/* The value of each character; XET_BASE64_NONE for invalid characters. */

static const uint8_t  xet_base64_values[256] = {
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 62, 64, 64,
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 64, 64, 64, 64, 64, 64,
    64,  0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14,
    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 64, 64, 64, 64, 63,
    64, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
    41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64
};


uint8_t *
xet_base64_encode(uint8_t *dst, const uint8_t *src, size_t len)
{
    uint32_t  bits;

    while (len >= 3) {
        bits = (uint32_t) src[0] << 16 | (uint32_t) src[1] << 8 | src[2];

        *dst++ = (uint8_t) xet_base64_digits[bits >> 18];
        *dst++ = (uint8_t) xet_base64_digits[bits >> 12 & 63];
        *dst++ = (uint8_t) xet_base64_digits[bits >> 6 & 63];
        *dst++ = (uint8_t) xet_base64_digits[bits & 63];

        src += 3;
        len -= 3;
    }

    if (len) {
        bits = (uint32_t) src[0] << 16;

        if (len == 2) {
            bits |= (uint32_t) src[1] << 8;
        }

        *dst++ = (uint8_t) xet_base64_digits[bits >> 18];
        *dst++ = (uint8_t) xet_base64_digits[bits >> 12 & 63];

        if (len == 2) {
            *dst++ = (uint8_t) xet_base64_digits[bits >> 6 & 63];
        }
    }

    return dst;
}


int
xet_base64_decode(uint8_t *dst, const uint8_t *src, size_t len)
{
    uint32_t  bits, digit, bad;

    if (len % 4 == 1) {
        return 0;
    }

    bad = 0;

    while (len) {
        digit = xet_base64_values[src[0]];
        bad |= digit;
        bits = digit << 18;

        digit = xet_base64_values[src[1]];
        bad |= digit;
        bits |= digit << 12;

        *dst++ = (uint8_t) (bits >> 16);

        if (len == 2) {
            break;
        }

        digit = xet_base64_values[src[2]];
        bad |= digit;
        bits |= digit << 6;

        *dst++ = (uint8_t) (bits >> 8);

        if (len == 3) {
            break;
        }

        digit = xet_base64_values[src[3]];
        bad |= digit;
        bits |= digit;

        *dst++ = (uint8_t) bits;

        src += 4;
        len -= 4;
    }

    /* unused bits of the last character must be zero */

    if (len) {
        bad |= (bits & ((len == 2) ? 0xffff : 0xff)) ? XET_BASE64_NONE : 0;
    }

    return (bad & XET_BASE64_NONE) == 0;
}
