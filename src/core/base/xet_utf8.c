
/*
 * The UTF-8 check.
 *
 * Purpose:    checks a text that arrives in several parts, without joining
 *             them.
 * States:     between two characters, or inside a character, in which case the
 *             state has the number of missing bytes, and the bounds of the next
 *             byte.
 * Ownership:  the text is only read.
 * Threads:    one at a time.
 *
 * The bounds of a character's second byte depend on the first byte; later
 * bytes all have the same bounds.
 */


#include <string.h>

#include "xet_base.h"


#define XET_UTF8_HIGH  UINT64_C(0x8080808080808080)


static int xet_utf8_lead(xet_utf8_t *u, unsigned b);


size_t
xet_utf8_feed(xet_utf8_t *u, const uint8_t *p, size_t len)
{
    uint64_t        word;
    const uint8_t  *start, *end;

    start = p;
    end = len ? p + len : p;

    /* fast path: most text is ASCII */

    while (u->need == 0 && end - p >= 8) {
        memcpy(&word, p, 8);

        if (word & XET_UTF8_HIGH) {
            break;
        }

        p += 8;
    }

    for ( /* void */ ; p < end; p++) {

        if (u->need) {

            if (*p < u->low || *p > u->high) {
                break;
            }

            u->need--;
            u->low = 0x80;
            u->high = 0xbf;

        } else if (*p >= 0x80 && !xet_utf8_lead(u, *p)) {
            break;
        }
    }

    return (size_t) (p - start);
}


static int
xet_utf8_lead(xet_utf8_t *u, unsigned b)
{
    u->low = 0x80;
    u->high = 0xbf;

    if (b >= 0xc2 && b <= 0xdf) {
        u->need = 1;

    } else if (b >= 0xe0 && b <= 0xef) {
        u->need = 2;

        if (b == 0xe0) {
            u->low = 0xa0;

        } else if (b == 0xed) {
            u->high = 0x9f;
        }

    } else if (b >= 0xf0 && b <= 0xf4) {
        u->need = 3;

        if (b == 0xf0) {
            u->low = 0x90;

        } else if (b == 0xf4) {
            u->high = 0x8f;
        }

    } else {
        return 0;
    }

    return 1;
}


int
xet_utf8_character(const uint8_t *p, size_t len, size_t *n)
{
    size_t      i;
    xet_utf8_t  u;

    xet_utf8_init(&u);

    for (i = 0; i < len && xet_utf8_feed(&u, p + i, 1) == 1; i++) {

        if (u.need == 0) {
            *n = i + 1;
            return 1;
        }
    }

    *n = i ? i : 1;

    return 0;
}
