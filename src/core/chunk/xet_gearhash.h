
/*
 * The gear hash of the chunker (draft-denis-xet, "Content-Defined Chunking"):
 * for every byte, hash = hash * 2 + gear[byte] modulo 2^64.
 */

#ifndef _XET_GEARHASH_H_INCLUDED_
#define _XET_GEARHASH_H_INCLUDED_


#include "xet_suite.h"


/* Continues hash over the n bytes at p and returns the hash after them. */
uint64_t xet_gearhash_update(const uint64_t *gear, uint64_t hash,
    const uint8_t *p, size_t n);

/*
 * Hashes from p up to the first byte after which the hash has no bit of mask,
 * sets *found to 1 and returns the position after that byte; *hash is undefined
 * then.  Without such a byte before end, sets *found to 0 and *hash to the hash
 * after the last byte, and returns end.
 */
const uint8_t *xet_gearhash_find(const uint64_t *gear, uint64_t mask,
    uint64_t *hash, const uint8_t *p, const uint8_t *end, int *found);


#endif /* _XET_GEARHASH_H_INCLUDED_ */
