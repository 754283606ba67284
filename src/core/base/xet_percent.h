
/*
 * Percent-encoding, RFC 3986 section 2.1.
 */

#ifndef _XET_PERCENT_H_INCLUDED_
#define _XET_PERCENT_H_INCLUDED_


#include "xet_bytes.h"


/*
 * Returns the next byte of an encoded text and moves *p, which must be before
 * end, past the byte or its escape.  Returns -1 for a malformed escape, where
 * *p stays.  "+" does not stand for a space.
 */

static inline int
xet_percent_byte(const uint8_t **p, const uint8_t *end)
{
    unsigned  high, low;

    if (**p != '%') {
        return *(*p)++;
    }

    if (end - *p < 3) {
        return -1;
    }

    high = xet_get_hex_digit((*p)[1]);
    low = xet_get_hex_digit((*p)[2]);

    if (high == 16 || low == 16) {
        return -1;
    }

    *p += 3;

    return (int) (high << 4 | low);
}


#endif /* _XET_PERCENT_H_INCLUDED_ */
