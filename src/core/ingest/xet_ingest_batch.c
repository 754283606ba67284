
/*
 * A batch of chunks, which another thread than the ingest's can hash and
 * encode.
 *
 * Purpose:    hashing and compression take most of the time of an ingest, and
 *             do not depend on other chunks.  So they are taken out of the
 *             order of the file.
 * States:     cut by the ingest; packed, in any thread; placed by the ingest.
 * Ownership:  the creator owns the batch.  The data of its chunks belongs to
 *             the caller, but for a chunk that began in an earlier piece: the
 *             batch has a copy of that.
 * Threads:    one at a time; several batches of an ingest may be packed at
 *             once, while the ingest cuts or places others.
 */

#include <stdlib.h>
#include <string.h>

#include "xet_ingest_batch.h"


xet_ingest_batch_t *
xet_ingest_batch_of(const xet_suite_t *suite, unsigned max)
{
    xet_ingest_batch_t  *b;

    b = malloc(sizeof(xet_ingest_batch_t) + max * sizeof(xet_ingest_piece_t));
    if (b == NULL) {
        return NULL;
    }

    memset(b, 0, sizeof(xet_ingest_batch_t));

    b->suite = suite;
    b->max = max;

    return b;
}


xet_ingest_batch_t *
xet_ingest_batch_create(const xet_suite_t *suite, size_t size)
{
    xet_ingest_batch_t  *b;

    /* a chunk may begin before the data, and one may follow the last cut */

    b = xet_ingest_batch_of(suite, (unsigned) (size / suite->chunk_min) + 2);
    if (b == NULL) {
        return NULL;
    }

    b->out_size = size + XET_CHUNK_MAX;

    b->carry = malloc(XET_CHUNK_MAX);
    b->out = malloc(b->out_size);

    if (b->carry == NULL || b->out == NULL) {
        xet_ingest_batch_destroy(b);
        return NULL;
    }

    return b;
}


void
xet_ingest_batch_destroy(xet_ingest_batch_t *b)
{
    if (b == NULL) {
        return;
    }

    free(b->carry);
    free(b->out);
    free(b);
}


xet_status_t
xet_ingest_pack(xet_ingest_batch_t *b, xet_xorb_encoder_t *encoder)
{
    size_t               used;
    unsigned             i;
    xet_status_t         rc;
    xet_ingest_piece_t  *chunk;
    xet_xorb_encoded_t   encoded;

    used = 0;

    for (i = 0; i < b->n; i++) {
        chunk = &b->chunks[i];

        xet_ingest_hash(b->suite, chunk);

        if (!b->encode) {
            continue;
        }

        rc = xet_xorb_encoder_encode(encoder, chunk->data, chunk->len,
                                     XET_SCHEME_AUTO, &encoded);
        if (rc != XET_OK) {
            return rc;
        }

        if (encoded.scheme != XET_SCHEME_NONE) {

            if (encoded.len > b->out_size - used) {
                return XET_INTERNAL;
            }

            memcpy(b->out + used, encoded.data, encoded.len);

            encoded.data = b->out + used;
            used += encoded.len;
        }

        chunk->encoded = encoded;
    }

    return XET_OK;
}
