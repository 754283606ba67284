
/*
 * The Accept-Encoding header.
 *
 * Purpose:    decides whether a response may be sent in a coding.
 * States:     none; one pass over the elements of the list.
 * Ownership:  the value is only read.
 * Threads:    any.
 *
 * A weight is zero when it is "0" or "0." followed by any number of zeros,
 * even by more than the three that RFC 9110 allows.  A malformed weight is
 * treated as not zero, because the client did name the coding.
 */


#include <string.h>

#include "xet_base.h"


static int xet_accept_name(const uint8_t *p, const uint8_t *end,
    const char *coding);
static int xet_accept_zero(const uint8_t *p, const uint8_t *end);


int
xet_accept_coding(const uint8_t *value, size_t len, const char *coding)
{
    const uint8_t  *p, *end, *last, *weight;

    end = value + len;

    for (p = value; p < end; p = last + 1) {

        last = memchr(p, ',', (size_t) (end - p));
        last = last ? last : end;

        weight = memchr(p, ';', (size_t) (last - p));

        if (xet_accept_name(p, weight ? weight : last, coding)) {
            return weight == NULL || !xet_accept_zero(weight + 1, last);
        }
    }

    return 0;
}


static int
xet_accept_name(const uint8_t *p, const uint8_t *end, const char *coding)
{
    p = xet_skip_blanks(p, end);

    for ( /* void */ ; *coding; coding++, p++) {
        if (p == end || (*p | 0x20) != (uint8_t) *coding) {
            return 0;
        }
    }

    return xet_skip_blanks(p, end) == end;
}


/* Returns whether the parameter of a coding is a weight of 0: " q=0.000 ". */

static int
xet_accept_zero(const uint8_t *p, const uint8_t *end)
{
    p = xet_skip_blanks(p, end);

    if (end - p < 3 || (p[0] | 0x20) != 'q' || p[1] != '=' || p[2] != '0') {
        return 0;
    }

    p += 3;

    if (p < end && *p == '.') {
        p++;
    }

    while (p < end && *p == '0') {
        p++;
    }

    return xet_skip_blanks(p, end) == end;
}
