
/*
 * The content-defined chunker.
 *
 * Purpose:    finds where chunks end in a stream that arrives in any pieces.
 * States:     given by the number of bytes in the open chunk:
 *               skip   size < min - 65      bytes are only counted
 *               warm   size < min - 1       bytes are hashed, no cut allowed
 *               look   size < max           every byte may end the chunk
 *             One call may pass through all three, or stop anywhere in one;
 *             after a cut the size and the hash are 0 again.
 * Ownership:  the caller's structure and data, nothing is allocated.
 * Threads:    one at a time.
 *
 * The hash of a byte is shifted left once for every byte after it, so the
 * state depends on the last 64 bytes alone.  A cut looks at the state after
 * byte number min at the earliest, so the first min - 64 bytes can't matter;
 * 65 are hashed as the reference implementation does.
 */


#include "xet_chunker.h"
#include "xet_gearhash.h"


#define XET_CHUNKER_WINDOW  65


void
xet_chunker_init(xet_chunker_t *c, const xet_suite_t *suite)
{
    c->suite = suite;
    c->hash = 0;
    c->size = 0;
}


/* How many of len bytes a phase takes that ends when the chunk has limit. */

static size_t
xet_chunker_room(const xet_chunker_t *c, size_t len, uint32_t limit)
{
    size_t  room;

    room = (c->size < limit) ? limit - c->size : 0;

    return (len < room) ? len : room;
}


size_t
xet_chunker_feed(xet_chunker_t *c, const uint8_t *data, size_t len, int *cut)
{
    int                 found;
    size_t              n;
    uint32_t            min;
    const uint8_t      *p, *end;
    const xet_suite_t  *suite;

    *cut = 0;

    if (len == 0) {
        return 0;
    }

    suite = c->suite;
    min = suite->chunk_min;
    p = data;

    if (min > XET_CHUNKER_WINDOW) {
        n = xet_chunker_room(c, len, min - XET_CHUNKER_WINDOW);
        p += n;
        c->size += (uint32_t) n;
    }

    n = xet_chunker_room(c, len - (size_t) (p - data), min - 1);
    c->size += (uint32_t) n;

    c->hash = xet_gearhash_update(suite->gear, c->hash, p, n);
    p += n;

    n = xet_chunker_room(c, len - (size_t) (p - data), suite->chunk_max);

    end = xet_gearhash_find(suite->gear, suite->chunk_mask, &c->hash, p, p + n,
                            &found);

    c->size += (uint32_t) (end - p);

    if (found || c->size == suite->chunk_max) {
        c->hash = 0;
        c->size = 0;
        *cut = 1;
    }

    return (size_t) (end - data);
}
