
/*
 * Decodes a single stored chunk.
 *
 * Purpose:    checks a chunk when it is read, because a disk, a copy or an
 *             operator may have changed the stored bytes.  The header is
 *             parsed as in an upload, and must agree with the metadata.  The
 *             data must decode to bytes with the given hash.
 * States:     none.
 * Ownership:  the caller owns all buffers.
 * Threads:    any; a codec belongs to one thread at a time.
 */


#include "xet_xorb.h"


xet_status_t
xet_xorb_chunk_decode(const xet_suite_t *suite, xet_codec_t *codec,
    const uint8_t *stored, size_t len, const uint8_t *hash, uint8_t *out,
    size_t raw_len)
{
    xet_hash_t         got;
    xet_status_t       rc;
    const uint8_t     *pos, *end;
    xet_xorb_event_t   ev;
    xet_xorb_parser_t  p;

    xet_xorb_parser_init(&p, suite, UINT64_MAX);

    pos = stored;
    end = stored + len;

    rc = xet_xorb_parser_next(&p, &pos, end, &ev);

    if (rc != XET_OK) {
        return (rc == XET_AGAIN) ? XET_XORB_TRUNCATED : rc;
    }

    if (p.chunk.payload_len != len - XET_XORB_HEADER_LEN) {
        return XET_XORB_STORED_LEN;
    }

    if (p.chunk.raw_len != raw_len) {
        return XET_XORB_RAW_LEN;
    }

    rc = xet_codec_decode(codec, p.chunk.scheme, pos, p.chunk.payload_len, out,
                          raw_len);
    if (rc != XET_OK) {
        return rc;
    }

    xet_hash_chunk(suite, out, raw_len, &got);

    return memcmp(got.bytes, hash, XET_HASH_LEN) ? XET_CHUNK_HASH : XET_OK;
}
