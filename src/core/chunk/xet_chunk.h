
/*
 * Chunks: where a file is cut, and how a chunk is compressed.
 */

#ifndef _XET_CHUNK_H_INCLUDED_
#define _XET_CHUNK_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include "xet_base.h"
#include "xet_hash.h"


/*
 * xet_codec.c: chunk codecs (draft-denis-xet, "Compression Schemes").  A codec
 * holds a context for each compression scheme of a suite that needs one.  One
 * thread at a time uses a codec.
 */

struct xet_codec_s {
    const xet_suite_t  *suite;
    void               *ctx[XET_SCHEMES];  /* created by create(), or NULL */
};


/*
 * Creates a codec; NULL means out of memory.  suite must outlive the codec.  A
 * codec takes 256 KiB.  The frames of most clients, which have independent
 * blocks, no checksums and no content size, need nothing more to decode.  For
 * other frames, LZ4F allocates buffers for the largest block size that any of
 * them has declared so far, and keeps them until a decode fails: up to 8.1 MiB
 * of address space, of which a crafted frame touches 4.1 MiB.
 */
xet_codec_t *xet_codec_create(const xet_suite_t *suite);
void xet_codec_destroy(xet_codec_t *c);

/*
 * Decodes one chunk of exactly raw_len bytes (1..XET_CHUNK_MAX) into out, which
 * must not overlap in; but out may be in for XET_SCHEME_NONE, so that nothing
 * is copied.
 * Accepts any legal LZ4 frame that is complete, is alone in the input, and
 * decodes to raw_len bytes.  Rejects dictionaries and skippable frames.
 *
 * Returns XET_XORB_SCHEME for an unknown scheme, XET_XORB_RAW_LEN for a
 * raw_len out of range, XET_XORB_DATA_LEN when the data decodes to another
 * length, XET_XORB_DATA for any other fault in the data, XET_NOMEM.  After an
 * error the content of out is undefined.
 */
xet_status_t xet_codec_decode(xet_codec_t *c, unsigned scheme,
    const uint8_t *in, size_t len, uint8_t *out, size_t raw_len);

/*
 * Encodes one chunk of 1..XET_CHUNK_MAX bytes.  *out_len is the room in out on
 * entry (at least len) and the encoded size on XET_OK; otherwise it does not
 * change.  Returns XET_AGAIN when the result would not be smaller than len,
 * and always for XET_SCHEME_NONE: the caller then stores the chunk with
 * XET_SCHEME_NONE.  Errors: XET_XORB_SCHEME, XET_XORB_RAW_LEN, XET_NOMEM, and
 * XET_INTERNAL when the room is too small.
 */
xet_status_t xet_codec_encode(xet_codec_t *c, unsigned scheme,
    const uint8_t *in, size_t len, uint8_t *out, size_t *out_len);

/*
 * Group the bytes of a chunk by their position modulo 4 (split), or undo the
 * grouping (join).  n may have any value; in and out must not overlap.
 */
void xet_codec_bg4_split(const uint8_t *in, uint8_t *out, size_t n);
void xet_codec_bg4_join(const uint8_t *in, uint8_t *out, size_t n);


/*
 * xet_chunker.c: content-defined chunking (draft-denis-xet, "Content-Defined
 * Chunking"), streamed.
 */

typedef struct {
    const xet_suite_t  *suite;
    uint64_t            hash;
    uint32_t            size;          /* bytes in the open chunk */
} xet_chunker_t;


void xet_chunker_init(xet_chunker_t *c, const xet_suite_t *suite);

/*
 * Consumes bytes up to the next chunk boundary, and returns how many of the
 * len bytes of data belong to the open chunk.  *cut is 1 when the chunk ends
 * with these bytes; the next call starts another chunk.  *cut is 0 when all of
 * data was consumed and the chunk is still open.
 */
size_t xet_chunker_feed(xet_chunker_t *c, const uint8_t *data, size_t len,
    int *cut);


#endif /* _XET_CHUNK_H_INCLUDED_ */
