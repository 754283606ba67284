
/*
 * A Bloom filter with 12 bits per element, of which 8 are set.
 *
 * The positions of the bits are derived from the two halves of the element
 * (double hashing), so an element must be random.  A client that chooses hashes
 * with equal positions only gets more false positives itself.
 *
 * The caller owns the bits, and protects them if threads share them.
 */

#include "xet_base.h"


#define XET_BLOOM_BITS  12             /* bits per element */
#define XET_BLOOM_SET   8              /* bits set per element */


size_t
xet_bloom_size(size_t n)
{
    return (n / 64 * XET_BLOOM_BITS + (n % 64 * XET_BLOOM_BITS) / 64 + 1) * 8;
}


void
xet_bloom_add(uint8_t *bits, size_t size, uint64_t element)
{
    int       i;
    uint64_t  at;

    for (i = 0; i < XET_BLOOM_SET; i++) {
        at = ((element >> 32) + (uint64_t) i * (element | 1)) % (size * 8);

        bits[at / 8] |= (uint8_t) (1 << (at % 8));
    }
}


int
xet_bloom_has(const uint8_t *bits, size_t size, uint64_t element)
{
    int       i;
    uint64_t  at;

    for (i = 0; i < XET_BLOOM_SET; i++) {
        at = ((element >> 32) + (uint64_t) i * (element | 1)) % (size * 8);

        if (!(bits[at / 8] & 1 << (at % 8))) {
            return 0;
        }
    }

    return 1;
}
