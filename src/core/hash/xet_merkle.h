
/*
 * The aggregated hash tree (draft-denis-xet, "Merkle Tree Construction"),
 * streamed: leaves come one by one, a level holds only its open group, so the
 * state is a constant of some KiB whatever the number of leaves.
 */

#ifndef _XET_MERKLE_H_INCLUDED_
#define _XET_MERKLE_H_INCLUDED_


#include "xet_hash.h"


#define XET_MERKLE_GROUP   9           /* merge_max of the suite */
#define XET_MERKLE_LEVELS  42          /* 3^41 leaves > 2^64 */


typedef struct {
    xet_hash_t          hash;
    uint64_t            size;
} xet_merkle_node_t;


typedef struct {
    const xet_suite_t  *suite;
    unsigned            levels;        /* in use */

    struct {
        uint64_t           total;      /* nodes ever put on this level */
        unsigned           n;          /* in the open group */
        xet_merkle_node_t  group[XET_MERKLE_GROUP];
    } level[XET_MERKLE_LEVELS];
} xet_merkle_t;


void xet_merkle_init(xet_merkle_t *m, const xet_suite_t *suite);

void xet_merkle_add(xet_merkle_t *m, const uint8_t *hash, uint64_t size);

/* Sets *parent to the node over a group of n nodes, 1 .. XET_MERKLE_GROUP. */
void xet_merkle_group(const xet_suite_t *suite,
    const xet_merkle_node_t *nodes, size_t n, xet_merkle_node_t *parent);

/*
 * Sets *root to the root: zeros without leaves, the leaf's own hash with one
 * leaf.  Another tree in m needs xet_merkle_init() again.
 */
void xet_merkle_finish(xet_merkle_t *m, xet_hash_t *root);


#endif /* _XET_MERKLE_H_INCLUDED_ */
