
/*
 * Ingest of files: turns the data of files into terms, and into xorbs of the
 * data that is not stored yet.
 *
 * The data is cut into chunks (draft-denis-xet, "Content-Defined Chunking").
 * A known chunk becomes part of a term; any other chunk goes into the xorb
 * being written.  Known chunks are the chunks ingested so far, and the chunks
 * that the caller reports when the ingest queries a chunk.  The ingest queries
 * the first chunk of the file, and chunks that are eligible for the dedup
 * index ("Eligibility Criteria").  It also queries a chunk that follows the
 * end of a known xorb, because another known xorb often begins with that chunk.
 *
 * Runs of known chunks that are too short are stored again ("Fragmentation
 * Prevention"): see xet_ingest.c.
 */

#ifndef _XET_INGEST_H_INCLUDED_
#define _XET_INGEST_H_INCLUDED_


#include "xet_hash.h"
#include "xet_plan.h"
#include "xet_xorb.h"


/*
 * xet_known.c: a table of chunks that are known to be stored, by hash.  A file
 * that is being ingested may refer to these chunks.
 *
 * The size of the table is bounded: a full table drops its oldest chunk for a
 * new one.  Chunks are added xorb by xorb, in the order of each xorb.
 *
 * Lookups use plain hashes.  The hashes of a xorb in the table may be keyed:
 * each is BLAKE3 of the chunk hash with a key, as in dedup responses.
 *
 * Hashes from other clients need not be hashes of any data.  The bucket of a
 * hash therefore depends on a seed; otherwise a client could choose hashes
 * that all fall into one bucket.
 */

#define XET_KNOWN_KEYS  8
#define XET_KNOWN_SEED  (XET_HASH_LEN / 4)


typedef struct xet_known_s  xet_known_t;


/*
 * The position of a chunk in its xorb.  After the table has dropped the chunk,
 * the reference can still be compared, but xet_known_next() finds no next
 * chunk.
 */

typedef struct {
    uint32_t  entry;                   /* index in the table */
    uint32_t  xorb;                    /* the table's number for the xorb */
    uint64_t  serial;                  /* unique for each xorb */
    uint32_t  chunk;                   /* index in the xorb */
} xet_known_ref_t;


/*
 * Creates a table of max chunks.  Each chunk takes 44 bytes, touched only when
 * the chunk is added, and 4 to 8 bytes of buckets.  seed points to
 * XET_KNOWN_SEED numbers, which are copied; they must be random when hashes
 * were not verified.  Returns NULL when out of memory.
 */
xet_known_t *xet_known_create(uint32_t max, const uint64_t *seed);
void xet_known_destroy(xet_known_t *k);

/*
 * Begins a xorb of chunk_count chunks.  For a xorb that is still being
 * written, hash is NULL and chunk_count is 0, and xet_known_name() sets both
 * later.  *xorb is set to the number of the xorb, which is valid while the
 * table has chunks of the xorb or the xorb has no name.  Error: XET_NOMEM.
 */
xet_status_t xet_known_xorb(xet_known_t *k, const xet_hash_t *hash,
    uint32_t chunk_count, uint32_t *xorb);
void xet_known_name(xet_known_t *k, uint32_t xorb, const xet_hash_t *hash,
    uint32_t chunk_count);

/*
 * Returns the number of a key, from 1; a new key is added to the table.
 * Returns 0 if the table has no room for another key.
 */
unsigned xet_known_key(xet_known_t *k, const uint8_t *key);

/*
 * Sets the properties of a xorb that has no chunks yet.  key is the number of
 * the key of its hashes, or 0 for plain hashes.  made is 1 if an earlier ingest
 * of the same files created the xorb.
 */
void xet_known_mark(xet_known_t *k, uint32_t xorb, unsigned key,
    unsigned made);

/*
 * Adds a chunk of a xorb.  hash is plain or keyed, whichever was set for the
 * xorb with xet_known_mark().  *ref is set to the position of the chunk; ref
 * may be NULL.
 */
void xet_known_add(xet_known_t *k, uint32_t xorb, uint32_t chunk,
    const uint8_t *hash, xet_known_ref_t *ref);

/* Returns whether a xorb with that name has chunks in the table. */
int xet_known_has(const xet_known_t *k, const xet_hash_t *xorb);

/*
 * Finds a chunk by its plain hash.  Returns 1 and sets *ref, or returns 0.  Of
 * several chunks with the hash, *ref is the one that was added first.  Plain
 * hashes in the table are tried before keyed ones.
 */
int xet_known_find(const xet_known_t *k, const uint8_t *hash,
    xet_known_ref_t *ref);

/*
 * If the chunk after *ref in its xorb has that hash, moves *ref to this chunk
 * and returns 1; otherwise returns 0.
 */
int xet_known_next(const xet_known_t *k, xet_known_ref_t *ref,
    const uint8_t *hash);

/* Returns whether *ref is the last chunk of a xorb that has a name. */
int xet_known_last(const xet_known_t *k, const xet_known_ref_t *ref);

/*
 * Returns the value of made that xet_known_mark() has set for the xorb of *ref.
 */
int xet_known_made(const xet_known_t *k, const xet_known_ref_t *ref);

/* Returns the name of the xorb of *ref; NULL when the xorb has no name yet. */
const xet_hash_t *xet_known_hash(const xet_known_t *k,
    const xet_known_ref_t *ref);


/*
 * xet_ingest.c: the ingest.  The order of calls:
 *
 *     feed, repeatedly; end; [next, then feed again;] finish
 *
 * feed, place, end and finish may return XET_AGAIN.  The caller then does what
 * xet_ingest_want() returns, calls xet_ingest_done(), and calls the same
 * function again.
 *
 * Several files may be ingested one after the other.  They share the known
 * chunks and the xorb being written.  So a xorb may have chunks of many files,
 * and the callback may get terms of a file while a later file is ingested.
 */

typedef struct xet_ingest_s  xet_ingest_t;


/* A run of chunks of a xorb: the next term of a file. */

typedef struct {
    xet_hash_t  xorb;
    uint32_t    chunk_start;
    uint32_t    chunk_end;             /* exclusive */
    uint32_t    raw_length;            /* bytes, not 0 */
    uint32_t    file;                  /* number of the file, from 0 */
} xet_ingest_term_t;

/*
 * Receives a term.  Returns XET_OK, or an error, which the xet_ingest_*() call
 * then returns.
 */
typedef xet_status_t (*xet_ingest_term_pt)(void *ctx,
    const xet_ingest_term_t *term);


/*
 * Receives the hash of each chunk of the files, in order.  Returns XET_OK, or
 * an error, which xet_ingest_feed() or xet_ingest_end() then returns.
 */
typedef xet_status_t (*xet_ingest_chunk_pt)(void *ctx,
    const xet_hash_t *hash);


typedef struct {
    const xet_suite_t    *suite;       /* must outlive the ingest */
    unsigned              ask:1;       /* query the caller about chunks */
    uint32_t              ahead;       /* chunks cut ahead of storing, >= 1 */
    uint32_t              known;       /* maximum number of known chunks */
    const uint64_t       *seed;        /* for xet_known_create(); may be NULL
                                          if all known hashes are verified */
    unsigned              thrifty:1;   /* see "thrifty" in xet_ingest.c */
    xet_xorb_write_pt     write;       /* receives the xorb's chunk region */
    xet_ingest_term_pt    term;        /* receives terms of complete xorbs */
    xet_ingest_chunk_pt   chunk;       /* may be NULL */
    void                 *ctx;
} xet_ingest_conf_t;


typedef enum {
    XET_INGEST_NOTHING = 0,
    XET_INGEST_CHUNK,                  /* report xorbs that have the chunk */
    XET_INGEST_XORB                    /* store the completed xorb */
} xet_ingest_want_t;


typedef struct {
    uint64_t    size;                  /* bytes of the chunks placed so far */
    uint64_t    new_size;              /* bytes of the file put into xorbs */
    uint64_t    chunks;
    xet_hash_t  hash;                  /* file hash; set by xet_ingest_end() */
} xet_ingest_info_t;


/*
 * A suitable value of xet_ingest_conf_t.known to ingest one file: room for the
 * chunks of a dedup response and of two xorbs.
 */
#define XET_INGEST_KNOWN  81920

/*
 * Creates an ingest; returns NULL when out of memory.  The ingest takes 1.5
 * MiB, and 0.9 MiB more if the file is fragmented.  Its table has room for
 * conf->known chunks, about 50 bytes each; this memory is touched only as
 * chunks are added.
 */
xet_ingest_t *xet_ingest_create(const xet_ingest_conf_t *conf);
void xet_ingest_destroy(xet_ingest_t *in);

/*
 * Ingests the next bytes of the file, and sets *taken to the number of
 * consumed bytes.  XET_OK: all len bytes were consumed.  XET_AGAIN: the caller
 * must do what xet_ingest_want() returns.  The next call then begins after the
 * consumed bytes, which must stay in place until a call returns XET_OK.  Any
 * other status is the error of a callback or XET_NOMEM; after an error the
 * ingest can only be destroyed.
 *
 * The ingest cuts up to conf->ahead chunks, and queries those that may be in
 * the dedup index, before it stores the first of them, because the xorb of an
 * indexed chunk often also has the chunks before that chunk.
 */
xet_status_t xet_ingest_feed(xet_ingest_t *in, const uint8_t *data,
    size_t len, size_t *taken);

/*
 * The work of xet_ingest_feed() in three steps, so that other threads can do
 * the second one:
 *
 *     xet_ingest_cut()    cuts the next bytes of the file
 *     xet_ingest_pack()   hashes and encodes the chunks
 *     xet_ingest_place()  looks the chunks up, and stores those that are new
 *
 * Pieces are cut in the order of the file, and batches placed in the same
 * order.  Several batches may have been cut and not yet been placed.  A file is
 * either fed or cut; its last chunk is cut by xet_ingest_end().
 */

typedef struct xet_ingest_batch_s  xet_ingest_batch_t;

/*
 * Creates a batch for pieces of at most size bytes.  It takes 0.25 MiB and size
 * bytes, of which those of the encoded chunks are touched.  Returns NULL when
 * out of memory.  suite must outlive the batch.
 */
xet_ingest_batch_t *xet_ingest_batch_create(const xet_suite_t *suite,
    size_t size);
void xet_ingest_batch_destroy(xet_ingest_batch_t *b);

/*
 * Sets b to the chunks that end in the next len bytes of the file.  The bytes
 * must stay in place until the batch is placed.  Error: XET_INTERNAL for more
 * bytes than b was created for.
 */
xet_status_t xet_ingest_cut(xet_ingest_t *in, xet_ingest_batch_t *b,
    const uint8_t *data, size_t len);

/*
 * May run in any thread.  Encodes only while the file consists of new chunks,
 * because known ones are not stored; xet_ingest_place() does what is left.
 * Errors: those of xet_xorb_encoder_encode().
 */
xet_status_t xet_ingest_pack(xet_ingest_batch_t *b,
    xet_xorb_encoder_t *encoder);

/* Returns the same as xet_ingest_feed(); after XET_AGAIN, place b again. */
xet_status_t xet_ingest_place(xet_ingest_t *in, xet_ingest_batch_t *b);


/* Ends the file.  On XET_OK the hash and size of the file are known. */
xet_status_t xet_ingest_end(xet_ingest_t *in);

/* Begins another file, after xet_ingest_end() has returned XET_OK. */
void xet_ingest_next(xet_ingest_t *in);

/*
 * Completes the xorb being written and passes all terms to the callback.  A
 * second call does nothing, and more files may follow.
 */
xet_status_t xet_ingest_finish(xet_ingest_t *in);

/* Returns the counters of the current file; valid as long as in. */
const xet_ingest_info_t *xet_ingest_info(const xet_ingest_t *in);


/*
 * Reports a stored xorb to the ingest, at any time between two calls.  The
 * hash, the chunk hashes, chunk_count and seen of *xorb are used, and are
 * copied as far as needed.  Error: XET_NOMEM.
 */
xet_status_t xet_ingest_known(xet_ingest_t *in, const xet_xorb_list_t *xorb);

/*
 * Does the same as xet_ingest_known() for keyed chunk hashes, as in dedup
 * responses.  After XET_KNOWN_KEYS keys, xorbs with other keys are ignored.
 */
xet_status_t xet_ingest_known_keyed(xet_ingest_t *in,
    const xet_xorb_list_t *xorb, const uint8_t *key);

/*
 * Does the same as xet_ingest_known() for a xorb that an earlier ingest of the
 * same files made: short runs of its chunks are not stored again.
 */
xet_status_t xet_ingest_known_made(xet_ingest_t *in,
    const xet_xorb_list_t *xorb);


/* Returns what the caller must do after XET_AGAIN. */

xet_ingest_want_t xet_ingest_want(const xet_ingest_t *in);

/*
 * Returns the hash of the chunk to look up for XET_INGEST_CHUNK.  The caller
 * may report any number of xorbs, the best one first.
 */
const xet_hash_t *xet_ingest_chunk(const xet_ingest_t *in);

/*
 * Returns the completed xorb to store for XET_INGEST_XORB, whose chunk region
 * was passed to write; valid until xet_ingest_done().
 */
const xet_xorb_info_t *xet_ingest_xorb(const xet_ingest_t *in);

void xet_ingest_done(xet_ingest_t *in);


#endif /* _XET_INGEST_H_INCLUDED_ */
