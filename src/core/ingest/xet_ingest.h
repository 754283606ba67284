
/*
 * Taking in a file: data in, terms and xorbs of what was not stored out.
 *
 * The data is cut into chunks (draft-denis-xet, "Content-Defined Chunking"); a
 * chunk that is known becomes a part of a term, any other chunk goes into the
 * xorb being written.  Known are the chunks that were taken in so far, and the
 * chunks that the caller reports when it is asked: about the first chunk of
 * the file, about chunks that are eligible for the dedup index ("Eligibility
 * Criteria"), and about a chunk that follows the end of a known xorb, because
 * the next xorb of a file often begins there.
 *
 * Runs of known chunks that are too short are stored again ("Fragmentation
 * Prevention"): see xet_ingest.c.
 *
 *     feed, again and again; end; [next and from the start;] finish
 *
 * feed, end and finish may return XET_AGAIN: the caller does what
 * xet_ingest_want() asks for, says so by xet_ingest_done(), and calls the same
 * function again.
 *
 * Several files may be taken in one after the other.  They share what is known
 * and the xorb being written, so that a xorb may have chunks of many files and
 * the terms of a file come when a later one is taken in.
 */

#ifndef _XET_INGEST_H_INCLUDED_
#define _XET_INGEST_H_INCLUDED_


#include "xet_hash.h"
#include "xet_plan.h"
#include "xet_xorb.h"


/*
 * xet_known.c: chunks that are known to be stored, found by their hashes: what
 * a file that is being taken in may refer to.
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


typedef struct xet_ingest_s  xet_ingest_t;


/* A run of chunks of a xorb; the next part of the file. */

typedef struct {
    xet_hash_t  xorb;
    uint32_t    chunk_start;
    uint32_t    chunk_end;             /* exclusive */
    uint32_t    raw_length;            /* bytes, not 0 */
    uint32_t    file;                  /* number of the file, from 0 */
} xet_ingest_term_t;

/* Returns XET_OK, or an error, which the function returns that was called. */
typedef xet_status_t (*xet_ingest_term_pt)(void *ctx,
    const xet_ingest_term_t *term);


/*
 * Takes the hash of each chunk of the files, in their order.  Returns XET_OK,
 * or an error, which xet_ingest_feed() or xet_ingest_end() returns.
 */
typedef xet_status_t (*xet_ingest_chunk_pt)(void *ctx,
    const xet_hash_t *hash);


typedef struct {
    const xet_suite_t    *suite;       /* outlives the ingest */
    unsigned              ask:1;       /* the caller can report chunks */
    uint32_t              ahead;       /* chunks cut ahead of storing, >= 1 */
    uint32_t              known;       /* chunks remembered, at most */
    const uint64_t       *seed;        /* of xet_known_create(); NULL: zeroes,
                                          all hashes were verified */
    unsigned              thrifty:1;   /* a short run has to be paid for */
    xet_xorb_write_pt     write;       /* of the xorb being written */
    xet_ingest_term_pt    term;        /* once its xorb is complete */
    xet_ingest_chunk_pt   chunk;       /* NULL: not wanted */
    void                 *ctx;
} xet_ingest_conf_t;


typedef enum {
    XET_INGEST_NOTHING = 0,
    XET_INGEST_CHUNK,                  /* what is known of a chunk */
    XET_INGEST_XORB                    /* a xorb is complete: to be kept */
} xet_ingest_want_t;


typedef struct {
    uint64_t    size;                  /* bytes of the file so far */
    uint64_t    new_size;              /* of these, bytes put into xorbs */
    uint64_t    chunks;
    xet_hash_t  hash;                  /* of the file; set by end */
} xet_ingest_info_t;


/* Enough known chunks for one file: those of one answer and of two xorbs. */
#define XET_INGEST_KNOWN  81920

/*
 * Memory is bounded: 1.5 MiB, some 50 bytes a known chunk, touched as chunks
 * become known, and 0.9 MiB where the file is fragmented.  NULL when out of
 * memory.
 */
xet_ingest_t *xet_ingest_create(const xet_ingest_conf_t *conf);
void xet_ingest_destroy(xet_ingest_t *in);

/*
 * Takes the next bytes of the file; *taken is how many of len were taken.
 * XET_OK: all of them.  XET_AGAIN: something is wanted, and the next call
 * begins behind the bytes taken, which must stay in their place until XET_OK.
 * Anything else is the error of a callback or XET_NOMEM, after which the
 * ingest can only be destroyed.
 *
 * Up to ahead chunks are cut, and asked about where the index may have them,
 * before the first of them is stored: the xorb of a chunk that the index has
 * often has the chunks before it, too.
 */
xet_status_t xet_ingest_feed(xet_ingest_t *in, const uint8_t *data,
    size_t len, size_t *taken);

/* No more data.  XET_OK: hash and size of the file are known. */
xet_status_t xet_ingest_end(xet_ingest_t *in);

/* Begins another file, after xet_ingest_end() has returned XET_OK. */
void xet_ingest_next(xet_ingest_t *in);

/*
 * Completes the xorb being written and gives out all terms.  A second call
 * does nothing, and more files may follow.
 */
xet_status_t xet_ingest_finish(xet_ingest_t *in);

/* What was taken in of the file at hand; lives as long as in. */
const xet_ingest_info_t *xet_ingest_info(const xet_ingest_t *in);


/*
 * Tells the ingest of a xorb that is stored, at any time between two calls.
 * Of
 * *xorb the hash, the hashes of the chunks, chunk_count and seen are used, and
 * copied as far as they are needed.  XET_NOMEM.
 */
xet_status_t xet_ingest_known(xet_ingest_t *in, const xet_xorb_list_t *xorb);

/*
 * Does the same as xet_ingest_known() with chunk hashes under a key, as dedup
 * answers have them.  A xorb under the ninth key is ignored.
 */
xet_status_t xet_ingest_known_keyed(xet_ingest_t *in,
    const xet_xorb_list_t *xorb, const uint8_t *key);

/*
 * Does the same as xet_ingest_known() with a xorb that was made of these very
 * files when they were taken in before: short runs of its chunks are not
 * stored again.
 */
xet_status_t xet_ingest_known_made(xet_ingest_t *in,
    const xet_xorb_list_t *xorb);


/* What the caller does after XET_AGAIN. */

xet_ingest_want_t xet_ingest_want(const xet_ingest_t *in);

/*
 * The hash of the chunk that XET_INGEST_CHUNK asks about.  The caller may tell
 * of any number of xorbs, the best first.
 */
const xet_hash_t *xet_ingest_chunk(const xet_ingest_t *in);

/*
 * The xorb of XET_INGEST_XORB, whose chunk region write was given; good until
 * xet_ingest_done().
 */
const xet_xorb_info_t *xet_ingest_xorb(const xet_ingest_t *in);

void xet_ingest_done(xet_ingest_t *in);


#endif /* _XET_INGEST_H_INCLUDED_ */
