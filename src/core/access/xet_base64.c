
/*
 * base64url without padding.
 *
 * Purpose:    the parts of tokens and the members of JSON Web Keys.
 * States:     none.
 * Ownership:  the caller owns both buffers; they must not overlap.
 * Threads:    any.
 *
 * Decoding takes what encoding writes and nothing else, so that two texts
 * which differ never stand for the same bytes: a cache may be keyed by the
 * text, and a signature over the text is one over the bytes.  What is decoded
 * here is public (tokens in transit, public keys), so the time it takes may
 * depend on it.
 */


#include "xet_base64.h"


static int xet_base64_digit(uint8_t c);


static const char  xet_base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";


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
    int       digit;
    size_t    i;
    uint32_t  bits;
    unsigned  have;

    if (len % 4 == 1) {
        return 0;
    }

    bits = 0;
    have = 0;

    for (i = 0; i < len; i++) {
        digit = xet_base64_digit(src[i]);

        if (digit == -1) {
            return 0;
        }

        bits = (bits << 6 | (uint32_t) digit) & 0xffff;
        have += 6;

        if (have >= 8) {
            have -= 8;
            *dst++ = (uint8_t) (bits >> have);
        }
    }

    /* what is left of the last character */

    return (bits & (((uint32_t) 1 << have) - 1)) == 0;
}


static int
xet_base64_digit(uint8_t c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }

    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }

    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }

    switch (c) {

    case '-':
        return 62;

    case '_':
        return 63;

    default:
        return -1;
    }
}
