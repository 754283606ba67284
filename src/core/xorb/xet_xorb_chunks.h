
/*
 * The tables and the hash tree of the chunks of a xorb that is being verified
 * or written.  Internal to the core.
 */

#ifndef _XET_XORB_CHUNKS_H_INCLUDED_
#define _XET_XORB_CHUNKS_H_INCLUDED_


#include "xet_hash.h"
#include "xet_xorb.h"


typedef struct {
    xet_xorb_info_t  info;
    xet_merkle_t     merkle;

    uint8_t          hashes[XET_XORB_CHUNKS_MAX * XET_HASH_LEN];
    uint8_t          raw_ends[XET_XORB_CHUNKS_MAX * 4];
    uint8_t          stored_ends[XET_XORB_CHUNKS_MAX * 4];
} xet_xorb_chunks_t;


static inline void
xet_xorb_chunks_init(xet_xorb_chunks_t *c, const xet_suite_t *suite)
{
    memset(&c->info, 0, sizeof(xet_xorb_info_t));

    c->info.hashes = c->hashes;
    c->info.raw_ends = c->raw_ends;
    c->info.stored_ends = c->stored_ends;

    xet_merkle_init(&c->merkle, suite);
}


/* Adds a chunk; the caller has checked that there is room. */

static inline void
xet_xorb_chunks_add(xet_xorb_chunks_t *c, const xet_hash_t *hash,
    uint32_t raw_len, uint32_t payload_len)
{
    size_t            n;
    xet_xorb_info_t  *info;

    info = &c->info;
    n = info->chunk_count++;

    /* each sum is at most about 2^30: 8192 chunks of 128 KiB and a header */

    info->raw_size += raw_len;
    info->stored_size += XET_XORB_HEADER_LEN + payload_len;

    memcpy(c->hashes + n * XET_HASH_LEN, hash->bytes, XET_HASH_LEN);
    xet_put_u32(c->raw_ends + n * 4, (uint32_t) info->raw_size);
    xet_put_u32(c->stored_ends + n * 4, (uint32_t) info->stored_size);

    xet_merkle_add(&c->merkle, hash->bytes, raw_len);
}


#endif /* _XET_XORB_CHUNKS_H_INCLUDED_ */
