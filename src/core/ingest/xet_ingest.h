
/*
 * Taking in a file: data in, terms and xorbs of what was not stored out.
 *
 * The data is cut into chunks (draft-denis-xet, "Content-Defined Chunking");
 * a chunk that is known becomes a part of a term, any other chunk goes into
 * the xorb being written.  Known are the chunks of this file so far, and the
 * chunks that the caller tells of when asked: about the first chunk of the
 * file, about chunks that are eligible for the dedup index ("Eligibility
 * Criteria"), and about a chunk that follows the end of a known xorb, because
 * the next xorb of a file often begins there.
 *
 * Runs of known chunks that are too short are stored again ("Fragmentation
 * Prevention"): see xet_ingest.c.
 *
 *     feed, again and again; end; finish
 *
 * Each of the three may return XET_AGAIN: the caller sees to what is wanted,
 * says so by xet_ingest_done(), and calls the same function again.
 */

#ifndef _XET_INGEST_H_INCLUDED_
#define _XET_INGEST_H_INCLUDED_


#include "xet_ingest_terms.h"
#include "xet_seen.h"
#include "xet_xorb.h"


typedef struct xet_ingest_s  xet_ingest_t;


typedef enum {
    XET_INGEST_NOTHING = 0,
    XET_INGEST_CHUNK,                  /* what is known of a chunk */
    XET_INGEST_XORB                    /* a xorb is complete: to be kept */
} xet_ingest_want_t;


typedef struct {
    uint64_t    size;                  /* bytes of the file so far */
    uint64_t    new_size;              /* of these, bytes not known before */
    uint64_t    chunks;
    xet_hash_t  hash;                  /* of the file; set by end */
} xet_ingest_info_t;


/*
 * write takes the chunk region of the xorb being written, term the terms in
 * their order, once their xorbs are complete; ask is 0 when the caller can't
 * tell of chunks.  suite outlives the ingest.
 *
 * Memory is bounded: 1.5 MiB, 4 MiB of known chunks, touched as they become
 * known, and 0.9 MiB where the file is fragmented.  NULL without memory.
 */
xet_ingest_t *xet_ingest_create(const xet_suite_t *suite, unsigned ask,
    xet_xorb_write_pt write, xet_ingest_term_pt term, void *ctx);
void xet_ingest_destroy(xet_ingest_t *in);

/*
 * Takes the next bytes, *taken of len.  XET_OK: all; XET_AGAIN: something is
 * wanted, and the next call begins behind what was taken, which must stay in
 * its place until then.  Anything else is the error of a callback or
 * XET_NOMEM, and the ingest is good for nothing.
 */
xet_status_t xet_ingest_feed(xet_ingest_t *in, const uint8_t *data,
    size_t len, size_t *taken);

/* No more data.  XET_OK: hash and size of the file are known. */
xet_status_t xet_ingest_end(xet_ingest_t *in);

/* Completes the xorb being written and gives out all terms.  Twice is once. */
xet_status_t xet_ingest_finish(xet_ingest_t *in);

const xet_ingest_info_t *xet_ingest_info(const xet_ingest_t *in);


/* After XET_AGAIN. */

xet_ingest_want_t xet_ingest_want(const xet_ingest_t *in);

/* CHUNK: the chunk's hash.  Tell of any number of xorbs, the best first. */
const xet_hash_t *xet_ingest_chunk(const xet_ingest_t *in);
xet_status_t xet_ingest_known(xet_ingest_t *in, const xet_xorb_list_t *xorb);

/* XORB: the xorb that write was given the data of.  Good until done. */
const xet_xorb_info_t *xet_ingest_xorb(const xet_ingest_t *in);

void xet_ingest_done(xet_ingest_t *in);


#endif /* _XET_INGEST_H_INCLUDED_ */
