
/*
 * Lists of entity tags.
 *
 * Purpose:    finds a tag in a list that a client has sent.  Tags may contain
 *             commas, so a list can't be split at its commas.
 * States:     none; one pass from left to right.
 * Ownership:  the list and the tag are only read.
 * Threads:    any.
 */


#include <string.h>

#include "xet_base.h"


/* Returns the position after the white space and commas at p. */

static const uint8_t *
xet_etag_skip(const uint8_t *p, const uint8_t *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == ',')) {
        p++;
    }

    return p;
}


/* Returns the closing quote of the tag that begins at p, or NULL. */

static const uint8_t *
xet_etag_close(const uint8_t *p, const uint8_t *end)
{
    for (p++; p < end; p++) {

        if (*p == '"') {
            return p;
        }

        if (*p <= ' ' || *p == 0x7f) {
            return NULL;
        }
    }

    return NULL;
}


int
xet_etag_match(const uint8_t *list, size_t len, const uint8_t *tag,
    size_t tag_len, xet_etag_compare_t compare)
{
    int             weak;
    const uint8_t  *p, *end, *close;

    end = list + len;

    p = xet_etag_skip(list, end);

    if (p < end && *p == '*') {
        return xet_etag_skip(p + 1, end) == end;
    }

    while (p < end) {

        weak = (end - p > 2 && p[0] == 'W' && p[1] == '/');

        if (weak) {
            p += 2;
        }

        close = (*p == '"') ? xet_etag_close(p, end) : NULL;

        if (close == NULL) {
            return 0;
        }

        close++;

        if ((!weak || compare == XET_ETAG_WEAK)
            && (size_t) (close - p) == tag_len
            && memcmp(p, tag, tag_len) == 0)
        {
            return 1;
        }

        p = xet_etag_skip(close, end);

        /* the tag is not followed by a comma or white space */

        if (p == close && p < end) {
            return 0;
        }
    }

    return 0;
}
