
/*
 * Chunks that are known to be stored, found by their hashes: what a file that
 * is being taken in may refer to.
 *
 * The table is bounded: a full table forgets its oldest chunk for a new one.
 * Chunks are added xorb by xorb, in their order.
 *
 * Hashes that are looked for are in clear; the hashes of a xorb may be under a
 * key, each chunk's hash by BLAKE3 with the key, as dedup answers have them.
 *
 * Hashes that somebody else has sent need not be hashes of anything: the place
 * of a hash depends on a seed, or they could be chosen to be all in one place.
 */

#ifndef _XET_KNOWN_H_INCLUDED_
#define _XET_KNOWN_H_INCLUDED_


#include "xet_hash.h"


#define XET_KNOWN_KEYS  8
#define XET_KNOWN_SEED  (XET_HASH_LEN / 4)


typedef struct xet_known_s  xet_known_t;


/*
 * A chunk in its xorb.  A reference stays comparable when the table has
 * forgotten the chunk; nothing follows the chunk then.
 */

typedef struct {
    uint32_t  entry;                   /* place in the table */
    uint32_t  xorb;                    /* the table's number for the xorb */
    uint64_t  serial;                  /* no two xorbs have the same */
    uint32_t  chunk;                   /* place in the xorb */
} xet_known_ref_t;


/*
 * A table of max chunks: 44 bytes a chunk, touched as chunks are added, and 4
 * to 8 bytes more.  The seed has XET_KNOWN_SEED numbers, and is copied; it is
 * random where hashes were not verified.  NULL when out of memory.
 */
xet_known_t *xet_known_create(uint32_t max, const uint64_t *seed);
void xet_known_destroy(xet_known_t *k);

/*
 * Begins a xorb of chunk_count chunks; NULL and 0 for a xorb that is still
 * being written and gets its name later, by xet_known_name().  *xorb is the
 * number of the xorb, good while the table has chunks of the xorb or the xorb
 * has no name.  XET_NOMEM.
 */
xet_status_t xet_known_xorb(xet_known_t *k, const xet_hash_t *hash,
    uint32_t chunk_count, uint32_t *xorb);
void xet_known_name(xet_known_t *k, uint32_t xorb, const xet_hash_t *hash,
    uint32_t chunk_count);

/* The number of a key, from 1 on; 0: there is no room for another key. */
unsigned xet_known_key(xet_known_t *k, const uint8_t *key);

/*
 * Marks a xorb that has no chunks so far: its hashes are under the key of that
 * number, or in clear with 0; made is what xet_known_made() returns.
 */
void xet_known_mark(xet_known_t *k, uint32_t xorb, unsigned key,
    unsigned made);

/*
 * Adds a chunk of a xorb, with the hash as the xorb has it, in clear or keyed,
 * and sets *ref to the chunk's place; ref may be NULL.
 */
void xet_known_add(xet_known_t *k, uint32_t xorb, uint32_t chunk,
    const uint8_t *hash, xet_known_ref_t *ref);

/* Whether a xorb of that name has chunks in the table. */
int xet_known_has(const xet_known_t *k, const xet_hash_t *xorb);

/*
 * Finds a chunk with that hash: 1 and *ref set, or 0.  Of several chunks *ref
 * is the one that was added first, chunks in clear before those under keys.
 */
int xet_known_find(const xet_known_t *k, const uint8_t *hash,
    xet_known_ref_t *ref);

/* Whether the chunk behind *ref in its xorb has that hash; *ref moves there. */
int xet_known_next(const xet_known_t *k, xet_known_ref_t *ref,
    const uint8_t *hash);

/* Whether *ref is the last chunk of a xorb that has a name. */
int xet_known_last(const xet_known_t *k, const xet_known_ref_t *ref);

/* Whether the xorb of *ref was marked as made. */
int xet_known_made(const xet_known_t *k, const xet_known_ref_t *ref);

/* The name of the xorb of *ref; NULL when it has none yet. */
const xet_hash_t *xet_known_hash(const xet_known_t *k,
    const xet_known_ref_t *ref);


#endif /* _XET_KNOWN_H_INCLUDED_ */
