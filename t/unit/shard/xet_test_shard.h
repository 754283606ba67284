
/*
 * Builds a shard from the parser's records: the builder must write the same
 * bytes again, except for a footer.
 */

#ifndef _XET_TEST_SHARD_H_INCLUDED_
#define _XET_TEST_SHARD_H_INCLUDED_


#include "xet_shard.h"


static void
xet_test_shard_rebuild(xet_buf_t *b, const xet_shard_record_t *rec)
{
    unsigned  i;
    uint8_t   sha256[32];

    switch (rec->kind) {

    case XET_SHARD_REC_HEADER:
        xet_shard_build_header(b, rec->footer_size);
        break;

    case XET_SHARD_REC_FILE:
        xet_shard_build_file(b, &rec->hash, rec->flags, rec->count);
        break;

    case XET_SHARD_REC_TERM:
        xet_shard_build_term(b, &rec->hash, rec->raw_length,
                                rec->chunk_start, rec->chunk_end);
        break;

    case XET_SHARD_REC_VERIFICATION:
        xet_shard_build_verification(b, &rec->hash);
        break;

    case XET_SHARD_REC_METADATA:

        for (i = 0; i < 32; i++) {
            sha256[i] = rec->hash.bytes[i ^ 7];
        }

        xet_shard_build_metadata(b, sha256);
        break;

    case XET_SHARD_REC_XORB:
        xet_shard_build_xorb(b, &rec->hash, rec->count, rec->raw_length,
                             rec->stored_size);
        break;

    case XET_SHARD_REC_CHUNK:
        xet_shard_build_chunk(b, rec->hash.bytes, rec->raw_start,
                              rec->raw_length, rec->flags);
        break;

    default:
        xet_shard_build_bookend(b);
        break;
    }
}


#endif /* _XET_TEST_SHARD_H_INCLUDED_ */
