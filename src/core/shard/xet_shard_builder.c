
/*
 * Writes shards, record by record, onto a buffer.
 *
 * Every function puts one record of 48 bytes (the footer: 200) with all its
 * reserved bytes zero, and xet_shard_build_xorb_block() the records of a block.
 * The order is the caller's: header, file blocks, section end, xorb blocks,
 * section end, and a footer where one is wanted.
 * There is no state besides the buffer.  Writes onto a failed buffer are
 * ignored, so the caller looks at xet_buf_status() once, at the end.
 *
 * The caller owns the buffer; one thread at a time.
 */


#include "xet_shard.h"
#include "xet_seen.h"


#define XET_SHARD_USUAL_CHUNK  65536       /* bytes, the mean */


static void xet_shard_build_part(xet_buf_t *b, const xet_xorb_list_t *xorb,
    const uint8_t *key);
static uint32_t xet_shard_shown(const xet_xorb_list_t *xorb,
    xet_seen_t *seen, uint32_t chunk);
static uint8_t *xet_shard_build_record(xet_buf_t *b, const void *hash);


void
xet_shard_build_header(xet_buf_t *b, uint64_t footer_size)
{
    uint8_t  *p;

    p = xet_shard_build_record(b, xet_shard_tag);

    if (p == NULL) {
        return;
    }

    xet_put_u64(p + 32, XET_SHARD_HEADER_VERSION);
    xet_put_u64(p + 40, footer_size);
}


void
xet_shard_build_file(xet_buf_t *b, const xet_hash_t *hash, uint32_t flags,
    uint32_t segments)
{
    uint8_t  *p;

    p = xet_shard_build_record(b, hash->bytes);

    if (p == NULL) {
        return;
    }

    xet_put_u32(p + 32, flags);
    xet_put_u32(p + 36, segments);
}


void
xet_shard_build_segment(xet_buf_t *b, const xet_hash_t *xorb,
    uint32_t raw_length, uint32_t chunk_start, uint32_t chunk_end)
{
    uint8_t  *p;

    p = xet_shard_build_record(b, xorb->bytes);

    if (p == NULL) {
        return;
    }

    xet_put_u32(p + 36, raw_length);
    xet_put_u32(p + 40, chunk_start);
    xet_put_u32(p + 44, chunk_end);
}


void
xet_shard_build_verification(xet_buf_t *b, const xet_hash_t *hash)
{
    (void) xet_shard_build_record(b, hash->bytes);
}


void
xet_shard_build_metadata(xet_buf_t *b, const uint8_t *sha256)
{
    unsigned  i, j;
    uint8_t   hash[XET_HASH_LEN];

    for (i = 0; i < XET_HASH_LEN; i += 8) {
        for (j = 0; j < 8; j++) {
            hash[i + j] = sha256[i + 7 - j];
        }
    }

    (void) xet_shard_build_record(b, hash);
}


void
xet_shard_build_section_end(xet_buf_t *b)
{
    uint8_t  hash[XET_HASH_LEN];

    memset(hash, 0xff, XET_HASH_LEN);

    (void) xet_shard_build_record(b, hash);
}


void
xet_shard_build_xorb(xet_buf_t *b, const xet_hash_t *hash, uint32_t chunks,
    uint32_t raw_size, uint32_t stored_size)
{
    uint8_t  *p;

    p = xet_shard_build_record(b, hash->bytes);

    if (p == NULL) {
        return;
    }

    xet_put_u32(p + 36, chunks);
    xet_put_u32(p + 40, raw_size);
    xet_put_u32(p + 44, stored_size);
}


void
xet_shard_build_chunk(xet_buf_t *b, const uint8_t *hash, uint32_t raw_start,
    uint32_t raw_length, uint32_t flags)
{
    uint8_t  *p;

    p = xet_shard_build_record(b, hash);

    if (p == NULL) {
        return;
    }

    xet_put_u32(p + 32, raw_start);
    xet_put_u32(p + 36, raw_length);
    xet_put_u32(p + 40, flags);
}


void
xet_shard_build_footer(xet_buf_t *b, const xet_shard_footer_t *f)
{
    uint8_t  *p;

    p = xet_buf_reserve(b, XET_SHARD_FOOTER_LEN);

    if (p == NULL) {
        return;
    }

    memset(p, 0, XET_SHARD_FOOTER_LEN);

    xet_put_u64(p, XET_SHARD_FOOTER_VERSION);
    xet_put_u64(p + 8, f->files_offset);
    xet_put_u64(p + 16, f->xorbs_offset);

    /*
     * Clients subtract these from each other even where the tables are empty:
     * they must point to where the tables would be, zeros break the reader.
     */

    xet_put_u64(p + 24, f->footer_offset);
    xet_put_u64(p + 40, f->footer_offset);
    xet_put_u64(p + 56, f->footer_offset);

    memcpy(p + 72, f->key, 32);

    xet_put_u64(p + 104, f->created);
    xet_put_u64(p + 112, f->expires);

    xet_put_u64(p + 168, f->stored_on_disk);
    xet_put_u64(p + 176, f->materialized);
    xet_put_u64(p + 184, f->stored);
    xet_put_u64(p + 192, f->footer_offset);

    xet_buf_advance(b, XET_SHARD_FOOTER_LEN);
}


void
xet_shard_build_xorb_block(xet_buf_t *b, const xet_xorb_list_t *xorb,
    const uint8_t *key)
{
    uint32_t        i, start, end;
    xet_hash_t      keyed;
    const uint8_t  *hash;

    if (xorb->seen != NULL) {
        xet_shard_build_part(b, xorb, key);
        return;
    }

    xet_shard_build_xorb(b, &xorb->hash, xorb->chunk_count, xorb->raw_size,
                         xorb->stored_size);
    start = 0;

    for (i = 0; i < xorb->chunk_count; i++) {
        hash = xorb->hashes + i * XET_HASH_LEN;
        end = xet_get_u32(xorb->raw_ends + i * 4);

        if (key != NULL) {
            xet_hash_keyed(key, hash, XET_HASH_LEN, &keyed);
            hash = keyed.bytes;
        }

        xet_shard_build_chunk(b, hash, start, end - start, 0);

        start = end;
    }
}


/* Writes a block with noise, whose sizes are the sums of the lengths shown. */

static void
xet_shard_build_part(xet_buf_t *b, const xet_xorb_list_t *xorb,
    const uint8_t *key)
{
    uint8_t     place[XET_HASH_LEN + 4];
    uint32_t    i, n, size, length;
    xet_seen_t  seen;
    xet_hash_t  keyed;

    n = xet_seen_end(xorb);
    size = 0;

    xet_seen_init(&seen, xorb);

    for (i = 0; i < n; i++) {
        size += xet_shard_shown(xorb, &seen, i);
    }

    xet_shard_build_xorb(b, &xorb->hash, n, size, size);

    memcpy(place, xorb->hash.bytes, XET_HASH_LEN);

    xet_seen_init(&seen, xorb);
    size = 0;

    for (i = 0; i < n; i++) {
        length = xet_shard_shown(xorb, &seen, i);

        if (xet_seen_chunk(&seen, i)) {
            xet_hash_keyed(key, xorb->hashes + i * XET_HASH_LEN, XET_HASH_LEN,
                           &keyed);

        } else {
            xet_put_u32(place + XET_HASH_LEN, i);
            xet_hash_keyed(xorb->noise, place, sizeof(place), &keyed);
        }

        xet_shard_build_chunk(b, keyed.bytes, size, length, 0);

        size += length;
    }
}


/* The length that a chunk is given in a block with noise. */

static uint32_t
xet_shard_shown(const xet_xorb_list_t *xorb, xet_seen_t *seen, uint32_t chunk)
{
    uint32_t  start;

    if (!xet_seen_chunk(seen, chunk)) {
        return XET_SHARD_USUAL_CHUNK;
    }

    start = chunk ? xet_get_u32(xorb->raw_ends + (chunk - 1) * 4) : 0;

    return xet_get_u32(xorb->raw_ends + chunk * 4) - start;
}


/* Puts a record of hash and zeros; NULL when the buffer has failed. */

static uint8_t *
xet_shard_build_record(xet_buf_t *b, const void *hash)
{
    uint8_t  *p;

    p = xet_buf_reserve(b, XET_SHARD_RECORD_LEN);

    if (p == NULL) {
        return NULL;
    }

    memcpy(p, hash, XET_HASH_LEN);
    memset(p + XET_HASH_LEN, 0, XET_SHARD_RECORD_LEN - XET_HASH_LEN);

    xet_buf_advance(b, XET_SHARD_RECORD_LEN);

    return p;
}
