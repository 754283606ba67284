
/*
 * Which chunks of a xorb go into the dedup index.
 *
 * Whoever makes a xorb chooses what is in it, and one eligible chunk may be in
 * all of its places.  A table of the eligible chunks so far, with open
 * addressing and at most half full, finds repeats with about one look a chunk.
 */

#include "xet_xorb.h"


#define XET_XORB_SEEN_SIZE  (2 * XET_XORB_CHUNKS_MAX)


uint32_t
xet_xorb_eligible(const xet_suite_t *suite, const xet_xorb_info_t *info,
    uint16_t *chunks)
{
    uint32_t        i, n, slot;
    uint16_t        seen[XET_XORB_SEEN_SIZE];
    const uint8_t  *hash;

    memset(seen, 0, sizeof(seen));

    n = 0;

    for (i = 0; i < info->chunk_count; i++) {
        hash = info->hashes + i * XET_HASH_LEN;

        if (!xet_hash_eligible(suite, hash)) {
            continue;
        }

        /* the first bytes: the last ones are alike in all eligible hashes */

        slot = xet_get_u32(hash) % XET_XORB_SEEN_SIZE;

        while (seen[slot]
               && memcmp(info->hashes + (seen[slot] - 1u) * XET_HASH_LEN,
                         hash, XET_HASH_LEN)
                  != 0)
        {
            slot = (slot + 1) % XET_XORB_SEEN_SIZE;
        }

        if (seen[slot] == 0) {
            seen[slot] = (uint16_t) (i + 1);
            chunks[n++] = (uint16_t) i;
        }
    }

    return n;
}
