
/*
 * Batches of chunks that were cut from a file.  Internal to the core.
 */

#ifndef _XET_INGEST_BATCH_H_INCLUDED_
#define _XET_INGEST_BATCH_H_INCLUDED_


#include "xet_ingest.h"
#include "xet_xorb.h"


/* A chunk between the cut and the place where it is stored. */

typedef struct {
    const uint8_t       *data;
    uint32_t             len;
    unsigned             first:1;      /* the first chunk of its file */
    unsigned             hashed:1;     /* hash is set */
    unsigned             asked:1;      /* the caller was queried */
    xet_hash_t           hash;
    xet_xorb_encoded_t   encoded;
    xet_known_ref_t      ref;          /* the known position of the chunk */
} xet_ingest_piece_t;


struct xet_ingest_batch_s {
    const xet_suite_t   *suite;
    unsigned             encode:1;     /* xet_ingest_pack() encodes, too */

    unsigned             max;
    unsigned             n;
    unsigned             placed;       /* number of placed chunks */

    uint8_t             *carry;        /* a chunk that spans pieces, or NULL */
    uint8_t             *out;          /* encoded chunks, or NULL */
    size_t               out_size;

    xet_ingest_piece_t   chunks[];
};


/* Creates a batch for max chunks, which xet_ingest_pack() does not encode. */
xet_ingest_batch_t *xet_ingest_batch_of(const xet_suite_t *suite,
    unsigned max);


static inline void
xet_ingest_hash(const xet_suite_t *suite, xet_ingest_piece_t *chunk)
{
    if (!chunk->hashed) {
        xet_hash_chunk(suite, chunk->data, chunk->len, &chunk->hash);
        chunk->hashed = 1;
    }
}


#endif /* _XET_INGEST_BATCH_H_INCLUDED_ */
