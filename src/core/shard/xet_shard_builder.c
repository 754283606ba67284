
/*
 * Writes shards, record by record, to a buffer.
 *
 * Every function appends one record of 48 bytes (the footer: 200) with all its
 * reserved bytes zero; xet_shard_build_xorb_block() appends the records of a
 * block.  The caller chooses the order: header, file blocks, bookend, xorb
 * blocks, bookend, and optionally a footer.  There is no state except the
 * buffer.  Writes to a failed buffer are ignored, so the caller checks
 * xet_buf_status() once, at the end.
 *
 * The caller owns the buffer; one thread at a time.
 */


#include "xet_shard.h"
#include "xet_plan.h"


#define XET_SHARD_USUAL_CHUNK  65536       /* mean chunk size, in bytes */


static uint32_t xet_shard_shown_size(const xet_xorb_list_t *xorb, uint32_t n);
static uint32_t xet_shard_shown(const xet_xorb_list_t *xorb,
    xet_seen_t *seen, uint32_t chunk);
static void xet_shard_build_record(xet_buf_t *b, const uint8_t *hash,
    uint32_t one, uint32_t two, uint32_t three, uint32_t four);


void
xet_shard_build_header(xet_buf_t *b, uint64_t footer_size)
{
    xet_shard_build_record(b, xet_shard_tag, XET_SHARD_HEADER_VERSION, 0,
                           (uint32_t) footer_size,
                           (uint32_t) (footer_size >> 32));
}


void
xet_shard_build_file(xet_buf_t *b, const xet_hash_t *hash, uint32_t flags,
    uint32_t segments)
{
    xet_shard_build_record(b, hash->bytes, flags, segments, 0, 0);
}


void
xet_shard_build_term(xet_buf_t *b, const xet_hash_t *xorb,
    uint32_t raw_length, uint32_t chunk_start, uint32_t chunk_end)
{
    xet_shard_build_record(b, xorb->bytes, 0, raw_length, chunk_start,
                           chunk_end);
}


void
xet_shard_build_verification(xet_buf_t *b, const xet_hash_t *hash)
{
    xet_shard_build_record(b, hash->bytes, 0, 0, 0, 0);
}


void
xet_shard_build_metadata(xet_buf_t *b, const uint8_t *sha256)
{
    unsigned  i;
    uint8_t   hash[XET_HASH_LEN];

    for (i = 0; i < XET_HASH_LEN; i++) {
        hash[i] = sha256[i ^ 7];
    }

    xet_shard_build_record(b, hash, 0, 0, 0, 0);
}


void
xet_shard_build_bookend(xet_buf_t *b)
{
    uint8_t  hash[XET_HASH_LEN];

    memset(hash, 0xff, XET_HASH_LEN);

    xet_shard_build_record(b, hash, 0, 0, 0, 0);
}


void
xet_shard_build_xorb(xet_buf_t *b, const xet_hash_t *hash, uint32_t chunks,
    uint32_t raw_size, uint32_t stored_size)
{
    xet_shard_build_record(b, hash->bytes, 0, chunks, raw_size, stored_size);
}


void
xet_shard_build_chunk(xet_buf_t *b, const uint8_t *hash, uint32_t raw_start,
    uint32_t raw_length, uint32_t flags)
{
    xet_shard_build_record(b, hash, raw_start, raw_length, flags, 0);
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
     * Clients subtract these offsets from each other even when the tables are
     * empty.  So the offsets must point to where the tables would be; clients
     * fail on offsets of zero.
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
    uint8_t         place[XET_HASH_LEN + 4];
    uint32_t        i, n, size, start, length;
    xet_seen_t      seen;
    xet_hash_t      keyed;
    const uint8_t  *hash;

    if (xorb->seen == NULL) {
        n = xorb->chunk_count;
        xet_shard_build_xorb(b, &xorb->hash, n, xorb->raw_size,
                             xorb->stored_size);

    } else {
        n = xet_seen_end(xorb);
        size = xet_shard_shown_size(xorb, n);
        xet_shard_build_xorb(b, &xorb->hash, n, size, size);
    }

    memcpy(place, xorb->hash.bytes, XET_HASH_LEN);

    xet_seen_init(&seen, xorb);
    start = 0;

    for (i = 0; i < n; i++) {
        hash = xorb->hashes + i * XET_HASH_LEN;
        length = xet_shard_shown(xorb, &seen, i);

        if (!xet_seen_chunk(&seen, i)) {
            xet_put_u32(place + XET_HASH_LEN, i);
            xet_hash_keyed(xorb->noise, place, sizeof(place), &keyed);
            hash = keyed.bytes;

        } else if (key != NULL) {
            xet_hash_keyed(key, hash, XET_HASH_LEN, &keyed);
            hash = keyed.bytes;
        }

        xet_shard_build_chunk(b, hash, start, length, 0);

        start += length;
    }
}


/*
 * Returns the size that a xorb block reports for its xorb if chunks that are
 * not in xorb->seen are replaced by noise: the sum of the lengths reported for
 * the first n chunks.
 */

static uint32_t
xet_shard_shown_size(const xet_xorb_list_t *xorb, uint32_t n)
{
    uint32_t    i, size;
    xet_seen_t  seen;

    xet_seen_init(&seen, xorb);

    for (i = 0, size = 0; i < n; i++) {
        size += xet_shard_shown(xorb, &seen, i);
    }

    return size;
}


/*
 * Returns the length that the xorb block of a shard reports for a chunk: the
 * real length if the chunk is in xorb->seen, so that it may be reported,
 * otherwise the mean length of chunks.
 */

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


/* Appends a record: a hash and four 32-bit integers. */

static void
xet_shard_build_record(xet_buf_t *b, const uint8_t *hash, uint32_t one,
    uint32_t two, uint32_t three, uint32_t four)
{
    uint8_t  *p;

    p = xet_buf_reserve(b, XET_SHARD_RECORD_LEN);

    if (p == NULL) {
        return;
    }

    memcpy(p, hash, XET_HASH_LEN);
    xet_put_u32(p + 32, one);
    xet_put_u32(p + 36, two);
    xet_put_u32(p + 40, three);
    xet_put_u32(p + 44, four);

    xet_buf_advance(b, XET_SHARD_RECORD_LEN);
}
