
/*
 * The algorithm suites.
 *
 * Purpose:    one row per suite has every key, size, table, modulus and
 *             compression scheme of the protocol.  All other files read these
 *             values from the suite that they are given.
 * States:     none.
 * Ownership:  constants, valid as long as the program runs.
 * Threads:    any; nothing is ever written.
 *
 * Keys are in the byte order that BLAKE3 takes.  To add a suite, add a row
 * here; XET_CHUNK_MAX and XET_XORB_CHUNKS_MAX must cover the largest suite.
 */


#include "xet_hash.h"
#include "xet_gear.h"


#define xet_suite_row(symbol, number, codec)  [number] = &xet_scheme_##codec,

const xet_suite_t  xet_suite_default = {

    "XET-BLAKE3-GEARHASH-LZ4",

    /* chunk_key */
    { 0x66, 0x97, 0xf5, 0x77, 0x5b, 0x95, 0x50, 0xde,
      0x31, 0x35, 0xcb, 0xac, 0xa5, 0x97, 0x18, 0x1c,
      0x9d, 0xe4, 0x21, 0x10, 0x9b, 0xeb, 0x2b, 0x58,
      0xb4, 0xd0, 0xb0, 0x4b, 0x93, 0xad, 0xf2, 0x29 },

    /* node_key */
    { 0x01, 0x7e, 0xc5, 0xc7, 0xa5, 0x47, 0x29, 0x96,
      0xfd, 0x94, 0x66, 0x66, 0xb4, 0x8a, 0x02, 0xe6,
      0x5d, 0xdd, 0x53, 0x6f, 0x37, 0xc7, 0x6d, 0xd2,
      0xf8, 0x63, 0x52, 0xe6, 0x4a, 0x53, 0x71, 0x3f },

    /* file_key */
    { 0 },

    /* verification_key */
    { 0x7f, 0x18, 0x57, 0xd6, 0xce, 0x56, 0xed, 0x66,
      0x12, 0x7f, 0xf9, 0x13, 0xe7, 0xa5, 0xc3, 0xf3,
      0xa4, 0xcd, 0x26, 0xd5, 0xb5, 0xdb, 0x49, 0xe6,
      0x41, 0x24, 0x98, 0x7f, 0x28, 0xfb, 0x94, 0xc3 },

    xet_gear,
    UINT64_C(0xffff000000000000),  /* chunk_mask */
    8192,                          /* chunk_min */
    65536,                         /* chunk_target */
    XET_CHUNK_MAX,                 /* chunk_max */

    16384,                         /* chunk_stable_min */
    122880,                        /* chunk_stable_max */

    XET_XORB_CHUNKS_MAX,           /* xorb_chunks_max */
    67108864,                      /* xorb_raw_target */

    1024,                          /* dedup_modulus */
    4,                             /* merge_modulus */
    3,                             /* merge_min */
    9,                             /* merge_max */

    { XET_SCHEME_MAP(xet_suite_row) }
};

#undef xet_suite_row
