
/*
 * Algorithm suites (draft-denis-xet, section "Algorithm Suites").  One table
 * holds every key, size, table and compression scheme of the protocol; nothing
 * else in the project spells a key or a chunk size, or lists the schemes.  One
 * suite is defined.
 */

#ifndef _XET_SUITE_H_INCLUDED_
#define _XET_SUITE_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include "xet_status.h"


/*
 * The compression schemes, X(symbol, number, codec): the number is that of
 * chunk headers, and xet_scheme_<codec> is in src/core/chunk.  A scheme is a
 * row, in the order of the numbers, and a codec.
 */

#define XET_SCHEME_MAP(X)                                                     \
    X(NONE,    0, none)                                                       \
    X(LZ4,     1, lz4)                                                        \
    X(BG4_LZ4, 2, bg4)


#define XET_SCHEME_ENUM(symbol, number, codec)  XET_SCHEME_##symbol = number,

typedef enum {
    XET_SCHEME_MAP(XET_SCHEME_ENUM)
    XET_SCHEMES,                       /* one past the last number */
    XET_SCHEME_AUTO = 256              /* whatever makes a chunk smallest */
} xet_scheme_e;

#undef XET_SCHEME_ENUM


typedef struct xet_codec_s  xet_codec_t;

/*
 * encode and decode are xet_codec_encode() and xet_codec_decode(), which have
 * checked lengths and room.  An encode that gives up, or whose result is not
 * smaller, leaves out alone.
 */

typedef struct {
    const char      *name;             /* in tools */

    /* the context of a codec, NULL when out of memory; both may be NULL */
    void          *(*create)(void);
    void           (*destroy)(void *ctx);

    xet_status_t   (*encode)(xet_codec_t *c, const uint8_t *in, size_t len,
                             uint8_t *out, size_t *out_len);
    xet_status_t   (*decode)(xet_codec_t *c, const uint8_t *in, size_t len,
                             uint8_t *out, size_t raw_len);

    /* whether XET_SCHEME_AUTO tries it on a chunk; NULL: on none */
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

    /* two chunks in a row of stable_min <= size < stable_max: xet_windows.h */
    uint32_t         chunk_stable_min;
    uint32_t         chunk_stable_max;

    uint32_t         xorb_chunks_max;
    uint32_t         xorb_raw_target;  /* a writer closes a xorb there */

    uint32_t         dedup_modulus;    /* hash mod this == 0: eligible */
    uint32_t         merge_modulus;    /* hash mod this == 0: a group ends */
    uint32_t         merge_min;        /* least children at a natural end */
    uint32_t         merge_max;        /* most children of a node */

    const xet_scheme_t  *schemes[XET_SCHEMES];  /* by number, or NULL */
} xet_suite_t;


/*
 * Compile-time copies of the two limits that size arrays and columns; a unit
 * test holds them against the table.
 */
#define XET_CHUNK_MAX        131072
#define XET_XORB_CHUNKS_MAX  8192


/* XET-BLAKE3-GEARHASH-LZ4 */
extern const xet_suite_t  xet_suite_default;


/* The scheme of a number, which may be any, or NULL. */

static inline const xet_scheme_t *
xet_suite_scheme(const xet_suite_t *suite, unsigned number)
{
    return (number < XET_SCHEMES) ? suite->schemes[number] : NULL;
}


#endif /* _XET_SUITE_H_INCLUDED_ */
