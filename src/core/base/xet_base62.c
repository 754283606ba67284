
/*
 * base62: letters and digits only.
 *
 * Purpose:    encodes compact access tokens.
 * States:     none.
 * Ownership:  the caller owns both buffers; they must not overlap.
 * Threads:    any.
 *
 * Each block of 8 bytes, a big-endian number, becomes 11 digits, the highest
 * first; a shorter last block becomes as many digits as its largest number
 * needs.  So the length of the text determines the length of the bytes.
 *
 * The decoder accepts only what the encoder writes, so two different texts
 * never decode to the same bytes: a cache may use the text as its key.  The
 * decoded data is public (tokens in transit), so decoding need not take
 * constant time.
 */


#include "xet_base.h"


#define XET_BASE62_BYTES   8           /* of a full block */
#define XET_BASE62_DIGITS  11


static const char  xet_base62_digits[] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";


/* The digits of a block, indexed by its bytes. */

static const uint8_t  xet_base62_len[XET_BASE62_BYTES + 1] = {
    0, 2, 3, 5, 6, 7, 9, 10, XET_BASE62_DIGITS
};


static int xet_base62_value(uint8_t c);


size_t
xet_base62_encoded(size_t len)
{
    return len / XET_BASE62_BYTES * XET_BASE62_DIGITS
           + xet_base62_len[len % XET_BASE62_BYTES];
}


uint8_t *
xet_base62_encode(uint8_t *dst, const uint8_t *src, size_t len)
{
    size_t    i, n, digits;
    uint64_t  number;

    while (len) {
        n = (len < XET_BASE62_BYTES) ? len : XET_BASE62_BYTES;
        digits = xet_base62_len[n];
        number = 0;

        for (i = 0; i < n; i++) {
            number = number << 8 | src[i];
        }

        for (i = digits; i > 0; i--) {
            dst[i - 1] = (uint8_t) xet_base62_digits[number % 62];
            number /= 62;
        }

        dst += digits;
        src += n;
        len -= n;
    }

    return dst;
}


int
xet_base62_decode(uint8_t *dst, size_t *out, const uint8_t *src, size_t len)
{
    int       value;
    size_t    i, n, digits;
    uint64_t  number;

    *out = 0;

    while (len) {
        digits = (len < XET_BASE62_DIGITS) ? len : XET_BASE62_DIGITS;

        for (n = 1; xet_base62_len[n] < digits; n++) { /* void */ }

        if (xet_base62_len[n] != digits) {
            return 0;
        }

        number = 0;

        for (i = 0; i < digits; i++) {
            value = xet_base62_value(src[i]);

            if (value < 0
                || number > (UINT64_MAX - (unsigned) value) / 62)
            {
                return 0;
            }

            number = number * 62 + (unsigned) value;
        }

        if (n < XET_BASE62_BYTES && number >> (8 * n)) {
            return 0;
        }

        for (i = n; i > 0; i--) {
            dst[i - 1] = (uint8_t) number;
            number >>= 8;
        }

        dst += n;
        *out += n;
        src += digits;
        len -= digits;
    }

    return 1;
}


/* Returns the value of a digit, or -1 for another character. */

static int
xet_base62_value(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    if (c >= 'A' && c <= 'Z') {
        return c - 'A' + 10;
    }

    return (c >= 'a' && c <= 'z') ? c - 'a' + 36 : -1;
}
