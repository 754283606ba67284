
/*
 * Algorithm suites (draft-denis-xet, section "Algorithm Suites").  One table
 * holds every key, size and table of the protocol; nothing else in the
 * project spells a key or a chunk size.  One suite is defined.
 */

#ifndef _XET_SUITE_H_INCLUDED_
#define _XET_SUITE_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>


typedef struct {
    const char      *name;

    uint8_t          chunk_key[32];
    uint8_t          node_key[32];
    uint8_t          file_key[32];
    uint8_t          verification_key[32];

    const uint64_t  *gear;             /* 256 entries */
    uint64_t         chunk_mask;
    uint32_t         chunk_min;        /* bytes */
    uint32_t         chunk_target;
    uint32_t         chunk_max;

    /* two chunks in a row of stable_min <= size < stable_max: xet_windows.h */
    uint32_t         chunk_stable_min;
    uint32_t         chunk_stable_max;

    uint32_t         xorb_chunks_max;
    uint32_t         xorb_raw_target;  /* a writer closes a xorb there */

    uint32_t         dedup_modulus;    /* hash mod this == 0: eligible */
    uint32_t         merge_modulus;    /* hash mod this == 0: a group ends */
    uint32_t         merge_min;        /* least children at a natural end */
    uint32_t         merge_max;        /* most children of a node */
} xet_suite_t;


/*
 * Compile-time copies of the two limits that size arrays and columns; a unit
 * test holds them against the table.
 */
#define XET_CHUNK_MAX        131072
#define XET_XORB_CHUNKS_MAX  8192


/* XET-BLAKE3-GEARHASH-LZ4 */
extern const xet_suite_t  xet_suite_default;

/* NULL when no suite has that name; the comparison ignores case. */
const xet_suite_t *xet_suite_find(const char *name, size_t len);


#endif /* _XET_SUITE_H_INCLUDED_ */
