
/*
 * Verifies the meaning of a file block: compares its terms with the chunk
 * lists of the stored xorbs, never with the xorb blocks of the shard.
 *
 * One verifier checks one file.  The terms are passed in order, each with the
 * slice of its xorb's lists that the term covers.  No part of a slice is kept,
 * and the file hash is computed incrementally, so the state does not grow.  A
 * slice comes from the tables of the server.  A slice that contradicts itself
 * is an error of the server (XET_INTERNAL); any other error is an error of the
 * shard.  After an error, the verifier must be initialized again before any
 * other use.
 *
 * A verifier owns no memory and belongs to one thread.
 */


#include "xet_shard.h"


static xet_status_t xet_shard_term_check(xet_shard_verifier_t *v,
    const xet_shard_record_t *segment, const xet_hash_t *verification,
    const xet_shard_slice_t *slice);
static int xet_shard_slice_proven(xet_shard_verifier_t *v,
    const xet_hash_t *verification, const xet_shard_slice_t *slice);


void
xet_shard_slice_cut(xet_shard_slice_t *slice, uint32_t skip, uint32_t n)
{
    if (skip > slice->n || n > slice->n - skip) {
        slice->n = 0;
        return;
    }

    if (skip) {
        slice->raw_before = xet_get_u32(slice->raw_ends + (skip - 1) * 4);
        slice->stored_before = xet_get_u32(slice->stored_ends
                                           + (skip - 1) * 4);
        slice->hashes += (size_t) skip * XET_HASH_LEN;
        slice->raw_ends += (size_t) skip * 4;
        slice->stored_ends += (size_t) skip * 4;
    }

    slice->n = n;
}


void
xet_shard_verifier_init(xet_shard_verifier_t *v, const xet_suite_t *suite,
    const xet_hash_t *file_hash)
{
    memset(v, 0, sizeof(xet_shard_verifier_t));

    v->suite = suite;
    v->hash = *file_hash;

    xet_merkle_init(&v->merkle, suite);
}


xet_status_t
xet_shard_verifier_term(xet_shard_verifier_t *v,
    const xet_shard_record_t *segment, const xet_hash_t *verification,
    const xet_shard_slice_t *slice, xet_term_t *term)
{
    uint32_t      i, end, prev, raw;
    xet_status_t  status;

    status = xet_shard_term_check(v, segment, verification, slice);

    if (status != XET_OK) {

        /*
         * a client without access to a xorb must not learn that it is stored
         */

        return (slice->own || status == XET_INTERNAL) ? status
                                                      : XET_SHARD_XORB;
    }

    raw = segment->raw_length;
    prev = slice->raw_before;

    for (i = 0; i < slice->n; i++) {
        end = xet_get_u32(slice->raw_ends + i * 4);

        xet_merkle_add(&v->merkle, slice->hashes + i * XET_HASH_LEN,
                       end - prev);
        prev = end;
    }

    if (v->terms == 0) {
        v->first_xorb = segment->hash;
        v->first_chunk = segment->chunk_start;
        memcpy(v->first_hash.bytes, slice->hashes, XET_HASH_LEN);
    }

    v->terms++;
    v->size += raw;

    term->xorb = segment->hash;
    term->chunk_start = segment->chunk_start;
    term->chunk_end = segment->chunk_end;
    term->stored_start = slice->stored_before;
    term->stored_end = xet_get_u32(slice->stored_ends + (slice->n - 1) * 4);
    term->raw_length = raw;
    term->copy_id = slice->copy_id;

    return XET_OK;
}


xet_status_t
xet_shard_verifier_finish(xet_shard_verifier_t *v)
{
    xet_hash_t  root, hash;

    xet_merkle_finish(&v->merkle, &root);
    xet_hash_file(v->suite, &root, &hash);

    return xet_hash_equal(&hash, &v->hash) ? XET_OK : XET_SHARD_FILE_HASH;
}


static xet_status_t
xet_shard_term_check(xet_shard_verifier_t *v,
    const xet_shard_record_t *segment, const xet_hash_t *verification,
    const xet_shard_slice_t *slice)
{
    uint32_t  raw;

    if (!slice->known || (!slice->own && verification == NULL)) {
        return XET_SHARD_XORB;
    }

    if (segment->chunk_start >= segment->chunk_end
        || segment->chunk_end > slice->chunk_count
        || segment->chunk_end - segment->chunk_start != slice->n)
    {
        return XET_SHARD_TERM;
    }

    /*
     * this check comes before the checks below: otherwise the response time
     * would disclose their results
     */

    if (!slice->own && !xet_shard_slice_proven(v, verification, slice)) {
        return XET_SHARD_VERIFICATION;
    }

    if (!xet_term_ends_ok(segment->chunk_start, slice->n, slice->raw_before,
                          slice->stored_before, slice->raw_ends,
                          slice->stored_ends))
    {
        return XET_INTERNAL;
    }

    raw = xet_get_u32(slice->raw_ends + (slice->n - 1) * 4)
          - slice->raw_before;

    if (raw != segment->raw_length || v->size > (uint64_t) INT64_MAX - raw) {
        return XET_SHARD_TERM_LEN;
    }

    if (slice->own && verification != NULL
        && !xet_shard_slice_proven(v, verification, slice))
    {
        return XET_SHARD_VERIFICATION;
    }

    return XET_OK;
}


static int
xet_shard_slice_proven(xet_shard_verifier_t *v,
    const xet_hash_t *verification, const xet_shard_slice_t *slice)
{
    xet_hash_t  hash;

    xet_hash_verification(v->suite, slice->hashes, slice->n, &hash);

    return xet_hash_equal(&hash, verification);
}
