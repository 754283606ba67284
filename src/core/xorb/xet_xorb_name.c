
/*
 * Names of stored xorbs to and from text.
 *
 * A name has one spelling: lower case, and no tag where the tag is 0.  So two
 * names are of the same copy exactly when they are the same text, which is
 * what caches and signatures go by.
 *
 * No state, no memory, any thread.
 */


#include "xet_xorb_name.h"


uint8_t *
xet_xorb_name_print(uint8_t *dst, const xet_hash_t *xorb, uint32_t tag)
{
    int  shift;

    static const char  hex[] = "0123456789abcdef";

    dst = xet_hash_print(dst, xorb);

    if (tag == 0) {
        return dst;
    }

    *dst++ = '.';

    for (shift = 28; shift >= 0; shift -= 4) {
        *dst++ = (uint8_t) hex[tag >> shift & 0xf];
    }

    return dst;
}


xet_status_t
xet_xorb_name_parse(xet_hash_t *xorb, uint32_t *tag, const uint8_t *src,
    size_t len)
{
    size_t      i;
    uint32_t    n, digit;
    xet_hash_t  hash;

    if (len != XET_HASH_STR_LEN && len != XET_XORB_NAME_MAX) {
        return XET_HASH_SYNTAX;
    }

    for (i = 0; i < len; i++) {
        if (src[i] >= 'A' && src[i] <= 'F') {
            return XET_HASH_SYNTAX;
        }
    }

    if (xet_hash_parse(&hash, src, XET_HASH_STR_LEN) != XET_OK) {
        return XET_HASH_SYNTAX;
    }

    n = 0;

    if (len == XET_XORB_NAME_MAX) {

        if (src[XET_HASH_STR_LEN] != '.') {
            return XET_HASH_SYNTAX;
        }

        for (i = XET_HASH_STR_LEN + 1; i < len; i++) {
            digit = xet_get_hex_digit(src[i]);

            if (digit == 16) {
                return XET_HASH_SYNTAX;
            }

            n = n << 4 | digit;
        }

        if (n == 0) {
            return XET_HASH_SYNTAX;
        }
    }

    *xorb = hash;
    *tag = n;

    return XET_OK;
}
