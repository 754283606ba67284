
/*
 * Hashes: the suite of algorithms, digests of chunks and the trees over them.
 */

#ifndef _XET_HASH_H_INCLUDED_
#define _XET_HASH_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>
#include <string.h>

#include "xet_base.h"


/*
 * xet_suite.c: algorithm suites (draft-denis-xet, section "Algorithm Suites").
 * One table holds every key, size, table and compression scheme of the
 * protocol.  No other file contains a key or a chunk size, or lists the
 * schemes.  One suite is defined.
 */

/*
 * The compression schemes, X(symbol, number, codec).  number is the value in
 * chunk headers; xet_scheme_<codec> is defined in src/core/chunk.  To add a
 * scheme, add a row, in the order of the numbers, and a codec.
 */

#define XET_SCHEME_MAP(X)                                                     \
    X(NONE,    0, none)                                                       \
    X(LZ4,     1, lz4)                                                        \
    X(BG4_LZ4, 2, bg4)


#define XET_SCHEME_ENUM(symbol, number, codec)  XET_SCHEME_##symbol = number,

typedef enum {
    XET_SCHEME_MAP(XET_SCHEME_ENUM)
    XET_SCHEMES,                       /* one past the last number */
    XET_SCHEME_AUTO = 256              /* the scheme that compresses best */
} xet_scheme_e;

#undef XET_SCHEME_ENUM


typedef struct xet_codec_s  xet_codec_t;

/*
 * encode and decode implement xet_codec_encode() and xet_codec_decode(), which
 * have already checked lengths and room.  An encode that fails, or whose
 * result is not smaller than the input, does not write to out.
 */

typedef struct {
    const char      *name;             /* shown by tools */

    /* create returns NULL when out of memory; both functions may be NULL */
    void          *(*create)(void);
    void           (*destroy)(void *ctx);

    xet_status_t   (*encode)(xet_codec_t *c, const uint8_t *in, size_t len,
                             uint8_t *out, size_t *out_len);
    xet_status_t   (*decode)(xet_codec_t *c, const uint8_t *in, size_t len,
                             uint8_t *out, size_t raw_len);

    /* whether XET_SCHEME_AUTO tries the scheme on a chunk; NULL: never */
    int            (*suits)(const uint8_t *data, size_t len);
} xet_scheme_t;


#define XET_SCHEME_EXTERN(symbol, number, codec)                              \
    extern const xet_scheme_t  xet_scheme_##codec;

XET_SCHEME_MAP(XET_SCHEME_EXTERN)

#undef XET_SCHEME_EXTERN


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

    /*
     * A size is stable if stable_min <= size < stable_max.  After two
     * consecutive unchanged chunks of stable sizes, the chunker cuts as before
     * an edit, see xet_plan.h.
     */
    uint32_t         chunk_stable_min;
    uint32_t         chunk_stable_max;

    uint32_t         xorb_chunks_max;
    uint32_t         xorb_raw_target;  /* bytes at which a xorb is full */

    uint32_t         dedup_modulus;    /* a chunk is eligible if its hash is a
                                          multiple of this number */
    uint32_t         merge_modulus;    /* a group may end at a node whose hash
                                          is a multiple of this number */
    uint32_t         merge_min;        /* min. children if a group ends there */
    uint32_t         merge_max;        /* max. children of a node */

    const xet_scheme_t  *schemes[XET_SCHEMES];  /* index: number; may be NULL */
} xet_suite_t;


/*
 * Compile-time copies of two limits of the suite, for the sizes of arrays and
 * columns; a unit test checks that they equal the suite's values.
 */
#define XET_CHUNK_MAX        131072
#define XET_XORB_CHUNKS_MAX  8192


/* XET-BLAKE3-GEARHASH-LZ4 */
extern const xet_suite_t  xet_suite_default;


/* Returns the scheme with this number, or NULL when there is none. */

static inline const xet_scheme_t *
xet_suite_scheme(const xet_suite_t *suite, unsigned number)
{
    return (number < XET_SCHEMES) ? suite->schemes[number] : NULL;
}


/*
 * xet_hash.c: hashes of 32 bytes, their string form, and the keyed BLAKE3
 * functions of the suite.  The string form is four little-endian 64-bit words
 * in hexadecimal (draft-denis-xet, "Hash String Representation"), so each
 * group of 8 bytes is reversed relative to plain hex.
 */

#define XET_HASH_LEN      32
#define XET_HASH_STR_LEN  64


typedef struct {
    uint8_t  bytes[XET_HASH_LEN];
} xet_hash_t;


/* Writes XET_HASH_STR_LEN lower-case digits, no NUL; returns their end. */
uint8_t *xet_hash_print(uint8_t *dst, const xet_hash_t *hash);

/*
 * Parses a hash string of len digits, in upper or lower case.  Returns
 * XET_HASH_SYNTAX unless src is 64 hex digits; *hash is set only on XET_OK.
 */
xet_status_t xet_hash_parse(xet_hash_t *hash, const uint8_t *src, size_t len);

/* Writes 32 bytes as hex in memory order, for SHA-256; returns the end. */
uint8_t *xet_hash_print_plain(uint8_t *dst, const uint8_t *bytes);


static inline int
xet_hash_equal(const xet_hash_t *a, const xet_hash_t *b)
{
    return memcmp(a->bytes, b->bytes, XET_HASH_LEN) == 0;
}


/* Compares two hashes word by word, which is the order of hash strings. */
int xet_hash_cmp(const xet_hash_t *a, const xet_hash_t *b);

int xet_hash_is_zero(const xet_hash_t *hash);


/*
 * Returns the last 8 bytes of a hash as a little-endian integer, which the
 * draft uses for "hash mod n".
 */

static inline uint64_t
xet_hash_tail(const uint8_t *bytes)
{
    return xet_get_u64(bytes + 24);
}


/*
 * Returns whether the hash alone makes a chunk eligible for the dedup index.
 */

static inline int
xet_hash_eligible(const xet_suite_t *suite, const uint8_t *bytes)
{
    return xet_hash_tail(bytes) % suite->dedup_modulus == 0;
}


/* Sets *out to the keyed BLAKE3 hash of a buffer; key has 32 bytes. */
void xet_hash_keyed(const uint8_t *key, const void *data, size_t len,
    xet_hash_t *out);

void xet_hash_chunk(const xet_suite_t *suite, const void *data, size_t len,
    xet_hash_t *out);

/*
 * Sets *out to the file hash of a merkle root.  For a root of zeros, which is
 * the empty file, *out is zeros.
 */
void xet_hash_file(const xet_suite_t *suite, const xet_hash_t *root,
    xet_hash_t *out);

/*
 * Sets *out to the verification hash of a term with the given n chunk hashes.
 */
void xet_hash_verification(const xet_suite_t *suite, const uint8_t *hashes,
    size_t n, xet_hash_t *out);


/*
 * xet_checksum.c: the digest of a stored copy of a xorb, computed
 * incrementally: 128-bit XXH3, big-endian.
 */

#define XET_CHECKSUM_LEN  16


typedef struct {
    uint8_t  bytes[XET_CHECKSUM_LEN];
} xet_checksum_t;


typedef struct xet_checksum_state_s  xet_checksum_state_t;


/*
 * Create and destroy a state.  The new state is reset; NULL means out of
 * memory.  xet_checksum_destroy() accepts NULL.
 */
xet_checksum_state_t *xet_checksum_create(void);
void xet_checksum_destroy(xet_checksum_state_t *s);
void xet_checksum_reset(xet_checksum_state_t *s);
void xet_checksum_update(xet_checksum_state_t *s, const void *data,
    size_t len);

/* Sets *out to the checksum of all bytes since the last reset. */
void xet_checksum_finish(const xet_checksum_state_t *s, xet_checksum_t *out);

int xet_checksum_equal(const xet_checksum_t *a, const xet_checksum_t *b);


/*
 * xet_merkle.c: the aggregated hash tree (draft-denis-xet, "Merkle Tree
 * Construction"), streamed.  Leaves are added one by one and each level holds
 * only its open group, so the state takes about 15 KiB for any number of
 * leaves.
 */

#define XET_MERKLE_GROUP   9           /* merge_max of the suite */
#define XET_MERKLE_LEVELS  42          /* 3^41 leaves > 2^64 */


typedef struct {
    xet_hash_t          hash;
    uint64_t            size;
} xet_merkle_node_t;


typedef struct {
    const xet_suite_t  *suite;
    unsigned            levels;        /* number of levels in use */

    struct {
        uint64_t           total;      /* nodes ever put on this level */
        unsigned           n;          /* nodes in the open group */
        xet_merkle_node_t  group[XET_MERKLE_GROUP];
    } level[XET_MERKLE_LEVELS];
} xet_merkle_t;


void xet_merkle_init(xet_merkle_t *m, const xet_suite_t *suite);

void xet_merkle_add(xet_merkle_t *m, const uint8_t *hash, uint64_t size);

/* Sets *parent to the parent of a group of n nodes, 1 .. XET_MERKLE_GROUP. */
void xet_merkle_group(const xet_suite_t *suite,
    const xet_merkle_node_t *nodes, size_t n, xet_merkle_node_t *parent);

/*
 * Sets *root to the root of the tree: zeros for no leaves, the leaf's own hash
 * for one leaf.  To build another tree in m, call xet_merkle_init() again.
 */
void xet_merkle_finish(xet_merkle_t *m, xet_hash_t *root);


/*
 * xet_subtree.c: subtrees of the aggregated hash tree.  A subtree is the part
 * of the tree that depends only on a run of consecutive leaves, and not on the
 * leaves before and after the run.  Subtrees of adjacent runs, and single
 * leaves between them, join into the subtree of the whole run, and finally
 * into the root of the file.  So a client that replaces a part of a file can
 * compute the new file hash without the other chunks (docs/protocol.md, range
 * edits).
 *
 * A level keeps on its left the nodes whose group may begin before the run, and
 * on its right the nodes whose group may end after the run.  The nodes in the
 * middle are grouped and form the level above.  Both ends of the middle are
 * stable cuts; a stable cut ends a group, no matter where grouping began.  A
 * natural cut is a node whose hash is a multiple of merge_modulus: it ends a
 * group that has at least merge_min nodes.
 */

typedef struct {
    size_t                 left;       /* nodes kept on each side */
    size_t                 right;
} xet_subtree_level_t;


typedef struct {
    xet_merkle_node_t     *nodes;      /* left nodes of level 0, level 1 and
                                          so on, then right nodes from the
                                          top level down */
    size_t                 n;          /* 0: the run has no leaves */
    xet_subtree_level_t   *levels;
    unsigned               nlevels;    /* 1 .. XET_MERKLE_LEVELS */

    unsigned               at_start:1; /* run starts at the file's start */
    unsigned               at_end:1;   /* run ends at the file's end */
} xet_subtree_t;


/* A level under construction, private to the builder. */

typedef struct {
    xet_merkle_node_t     *nodes;
    size_t                 n;
    size_t                 room;
    size_t                 left;       /* nodes on the left side: all before
                                          the first stable cut */
    size_t                 scanned;    /* nodes searched for stable cuts */
    size_t                 cut;        /* index after the last natural cut */

    unsigned               started:1;  /* the first stable cut is known */
    unsigned               merged:1;   /* groups were moved up */
    unsigned               natural:1;  /* a natural cut was seen */
    unsigned               gap:1;      /* the gap before the cut is valid */
} xet_subtree_row_t;


/*
 * The builder does not hold all leaves.  It holds the nodes of the subtree of
 * the leaves added so far, and on each level less than one additional group.
 * With random hashes these are a few dozen nodes on each of O(log n) levels.
 * Leaves without stable cuts (one chunk repeated, as in a file of zeros) are
 * all kept, even in the subtree.  So a caller that takes leaves from clients
 * must set max.
 */

typedef struct {
    const xet_suite_t     *suite;
    xet_alloc_pt           alloc;
    void                  *data;

    size_t                 max;        /* max nodes; SIZE_MAX: no limit */
    size_t                 kept;       /* nodes of all finished subtrees */
    size_t                 held;       /* nodes of the subtree being built */

    unsigned               levels;
    unsigned               at_start:1;
    unsigned               at_end:1;
    unsigned               any:1;      /* something was added */
    unsigned               ended:1;    /* a subtree with at_end was added */
    unsigned               over:1;     /* max was the reason for XET_NOMEM */

    xet_subtree_row_t      level[XET_MERKLE_LEVELS];
} xet_subtree_builder_t;


/*
 * Initializes a builder.  max limits the total number of nodes in the builder
 * and in all finished subtrees.  If a node would exceed the limit, the call
 * returns XET_NOMEM and sets b->over.  A node takes 40 bytes in arrays that
 * double when full, and another 40 bytes in the finished subtree.
 */
void xet_subtree_init(xet_subtree_builder_t *b, const xet_suite_t *suite,
    xet_alloc_pt alloc, void *data, size_t max);

/*
 * Begins a run; one builder can process many runs, one after the other.
 * at_start: the first leaf of the run is the first leaf of the file.  at_end:
 * the last leaf of the run will be the last leaf of the file.
 */
void xet_subtree_start(xet_subtree_builder_t *b, int at_start, int at_end);

/*
 * Adds a leaf, or all leaves of the subtree s.  s is only read, and need not
 * come from this builder.  Errors: XET_NOMEM; XET_PLAN_DAMAGED when s is
 * inconsistent or does not fit its position in the run, or when anything
 * follows a subtree that reaches the end of the file.  After an error the
 * builder must not be used any more.
 */
xet_status_t xet_subtree_add(xet_subtree_builder_t *b, const uint8_t *hash,
    uint64_t size);
xet_status_t xet_subtree_join(xet_subtree_builder_t *b,
    const xet_subtree_t *s);

/*
 * Ends the run and sets s, whose arrays come from the allocator.  Error:
 * XET_NOMEM.
 */
xet_status_t xet_subtree_finish(xet_subtree_builder_t *b, xet_subtree_t *s);

/*
 * Checks s.  Returns XET_PLAN_DAMAGED when no builder could have created s,
 * because the counts of its levels do not add up to n, or contradict at_start
 * or at_end.
 */
xet_status_t xet_subtree_check(const xet_subtree_t *s);

/*
 * Sets *root to the root of a subtree with at_start and at_end, the same root
 * as xet_merkle_finish() computes.  Returns XET_PLAN_DAMAGED for any other
 * subtree.
 */
xet_status_t xet_subtree_root(const xet_subtree_t *s, xet_hash_t *root);

/* Writes s as a JSON object with nodes, levels, at_start and at_end. */
void xet_subtree_json(xet_json_t *j, const xet_subtree_t *s);


#endif /* _XET_HASH_H_INCLUDED_ */
