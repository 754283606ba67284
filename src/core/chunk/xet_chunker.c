
/*
 * The content-defined chunker.
 *
 * Purpose:    cuts a stream, which arrives in pieces of any size, into chunks
 *             of min to max bytes.  A chunk ends where a rolling hash of its
 *             last bytes is 0 in the bits of chunk_mask, or at max bytes.
 * States:     determined by the size of the current chunk so far:
 *               skip   size < min - 65   the next byte is only counted
 *               warm   size < min - 1    the next byte is only hashed
 *               look   size < max        the next byte may end the chunk
 *             The hash and the size are set to 0 after each chunk.
 * Ownership:  the caller owns the structure and the data; nothing is
 *             allocated.
 * Threads:    one at a time.
 *
 * Each byte shifts the 64-bit hash left by one bit, so the hash depends on the
 * last 64 bytes only.  The hash after min bytes is the first that is tested,
 * so it does not depend on the first min - 64 bytes of the chunk.  The chunker
 * skips one byte less, as the reference implementation does.
 */


#include "xet_chunk.h"


/*
 * The hash is computed in four lanes at a time, twice as fast as in a loop
 * over the bytes.  In such a loop, each hash depends on the hash of the
 * previous byte, so the processor mostly waits.  But a byte is shifted out of
 * the hash after 64 bytes.  So a lane may begin anywhere, once the 64 bytes
 * before it are hashed.
 *
 * A block is four lanes, which follow each other in the data and are hashed in
 * parallel.  The cut that is found first need not be the first one in the
 * data.  So the lanes before it, which had no cut up to the same step, are
 * then searched to their ends, one after the other.
 *
 * A lane is long enough for its 64 extra bytes to matter little.  It is short
 * enough that the wasted part of the last block matters little, too, because a
 * chunk has about 14 blocks.  More lanes, or AVX2 gather instructions, are
 * slower; AVX-512 gather instructions are not faster.
 */

#define XET_CHUNKER_WINDOW   65

#define XET_GEARHASH_WINDOW  64        /* bytes that a hash depends on */
#define XET_GEARHASH_LANES   4
#define XET_GEARHASH_LANE    1024      /* bytes */
#define XET_GEARHASH_BLOCK   (XET_GEARHASH_LANES * XET_GEARHASH_LANE)


static size_t xet_chunker_room(const xet_chunker_t *c, size_t len,
    uint32_t limit);
static uint64_t xet_gearhash_update(const uint64_t *gear, uint64_t hash,
    const uint8_t *p, size_t n);
static const uint8_t *xet_gearhash_find(const uint64_t *gear, uint64_t mask,
    uint64_t *hash, const uint8_t *p, const uint8_t *end, int *found);
static size_t xet_gearhash_block(const uint64_t *gear, uint64_t mask,
    uint64_t *hash, const uint8_t *p, unsigned *lane);
static const uint8_t *xet_gearhash_scan(const uint64_t *gear, uint64_t mask,
    uint64_t *hash, const uint8_t *p, const uint8_t *end, int *found);


void
xet_chunker_init(xet_chunker_t *c, const xet_suite_t *suite)
{
    c->suite = suite;
    c->hash = 0;
    c->size = 0;
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


/* Returns how many of the len bytes fit into a chunk of limit bytes. */

static size_t
xet_chunker_room(const xet_chunker_t *c, size_t len, uint32_t limit)
{
    size_t  room;

    room = (c->size < limit) ? limit - c->size : 0;

    return (len < room) ? len : room;
}


/* Continues hash over the n bytes at p and returns the hash after them. */

static uint64_t
xet_gearhash_update(const uint64_t *gear, uint64_t hash, const uint8_t *p,
    size_t n)
{
    const uint8_t  *end;

    for (end = p + n; p < end; p++) {
        hash = (hash << 1) + gear[*p];
    }

    return hash;
}


/*
 * Hashes the bytes from p up to the first byte after which hash & mask is 0.
 * Then sets *found to 1 and returns the position after that byte; *hash is
 * undefined.  If there is no such byte before end, sets *found to 0 and *hash
 * to the hash after the last byte, and returns end.
 */

static const uint8_t *
xet_gearhash_find(const uint64_t *gear, uint64_t mask, uint64_t *hash,
    const uint8_t *p, const uint8_t *end, int *found)
{
    size_t          n;
    unsigned        i, lane;
    uint64_t        h[XET_GEARHASH_LANES];
    const uint8_t  *place;

    h[0] = *hash;

    while (end - p >= XET_GEARHASH_BLOCK) {

        n = xet_gearhash_block(gear, mask, h, p, &lane);

        for (i = 0; i < lane; i++) {
            place = xet_gearhash_scan(gear, mask, &h[i], p + n,
                                      p + XET_GEARHASH_LANE, found);
            if (*found) {
                return place;
            }

            p += XET_GEARHASH_LANE;
        }

        if (lane < XET_GEARHASH_LANES) {
            *found = 1;
            return p + n;
        }

        h[0] = h[XET_GEARHASH_LANES - 1];
    }

    *hash = h[0];

    return xet_gearhash_scan(gear, mask, hash, p, end, found);
}


/*
 * Hashes the consecutive lanes of the block at p in parallel, until a hash
 * matches the mask.  hash[0] is the hash before the block; on return hash has
 * the hash of each lane.  Sets *lane to the lane of the match, and returns the
 * number of bytes hashed in this lane, and in each lane before it.  Without a
 * match sets *lane to XET_GEARHASH_LANES, and returns XET_GEARHASH_LANE.
 */

static size_t
xet_gearhash_block(const uint64_t *gear, uint64_t mask, uint64_t *hash,
    const uint8_t *p, unsigned *lane)
{
    size_t          i;
    uint64_t        h0, h1, h2, h3;
    const uint8_t  *w;

    h0 = hash[0];
    h1 = 0;
    h2 = 0;
    h3 = 0;

    w = p + XET_GEARHASH_LANE - XET_GEARHASH_WINDOW;

    for (i = 0; i < XET_GEARHASH_WINDOW; i++) {
        h1 = (h1 << 1) + gear[w[i]];
        h2 = (h2 << 1) + gear[w[XET_GEARHASH_LANE + i]];
        h3 = (h3 << 1) + gear[w[2 * XET_GEARHASH_LANE + i]];
    }

#define xet_gearhash_step(k, j)                                               \
    h##k = (h##k << 1) + gear[p[k * XET_GEARHASH_LANE + i + j]];              \
                                                                              \
    if ((h##k & mask) == 0) {                                                 \
        *lane = k;                                                            \
        i += j + 1;                                                           \
        break;                                                                \
    }

#define xet_gearhash_steps(j)                                                 \
    xet_gearhash_step(0, j)                                                   \
    xet_gearhash_step(1, j)                                                   \
    xet_gearhash_step(2, j)                                                   \
    xet_gearhash_step(3, j)

    *lane = XET_GEARHASH_LANES;

    for (i = 0; i < XET_GEARHASH_LANE; i += 4) {
        xet_gearhash_steps(0)
        xet_gearhash_steps(1)
        xet_gearhash_steps(2)
        xet_gearhash_steps(3)
    }

#undef xet_gearhash_steps
#undef xet_gearhash_step

    hash[0] = h0;
    hash[1] = h1;
    hash[2] = h2;
    hash[3] = h3;

    return i;
}


/* Does the same as xet_gearhash_find(), byte by byte. */

static const uint8_t *
xet_gearhash_scan(const uint64_t *gear, uint64_t mask, uint64_t *hash,
    const uint8_t *p, const uint8_t *end, int *found)
{
    uint64_t  h;

    h = *hash;

#define xet_gearhash_step(i)                                                  \
    h = (h << 1) + gear[p[i]];                                                \
                                                                              \
    if ((h & mask) == 0) {                                                    \
        *found = 1;                                                           \
        return p + (i) + 1;                                                   \
    }

    while (end - p >= 4) {
        xet_gearhash_step(0)
        xet_gearhash_step(1)
        xet_gearhash_step(2)
        xet_gearhash_step(3)

        p += 4;
    }

    for ( /* void */ ; p < end; p++) {
        xet_gearhash_step(0)
    }

#undef xet_gearhash_step

    *hash = h;
    *found = 0;

    return p;
}
