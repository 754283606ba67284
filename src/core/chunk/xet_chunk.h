
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
 * holds what each scheme of a suite needs to work; it is used by one thread at
 * a time.
 */

struct xet_codec_s {
    const xet_suite_t  *suite;
    void               *ctx[XET_SCHEMES];  /* of xet_scheme_t.create, or NULL */
};


/*
 * NULL when out of memory; suite outlives the codec, which is 256 KiB.  To
 * decode, LZ4F adds buffers by the largest block size that a frame has
 * declared so far, and keeps them: 128 KiB of address space with the 64 KiB
 * blocks of most clients, 8.1 MiB with the 4 MiB blocks of JavaScript
 * clients.  Of these 8.1 MiB an honest frame touches about 256 KiB, and a
 * frame made to touch more 4.1 MiB.
 */
xet_codec_t *xet_codec_create(const xet_suite_t *suite);
void xet_codec_destroy(xet_codec_t *c);

/*
 * Decodes one chunk of exactly raw_len bytes (1..XET_CHUNK_MAX) into out. Any
 * legal LZ4 frame is taken; it must be complete, alone, and give raw_len
 * bytes; dictionaries and skippable frames are refused.  XET_XORB_SCHEME for
 * an unknown scheme, XET_XORB_RAW_LEN for a raw_len out of its range,
 * XET_XORB_DATA_LEN when the data gives another length, XET_XORB_DATA for
 * anything else that is wrong with the data, XET_NOMEM.  Unless XET_OK is
 * returned, the content of out is undefined.
 */
xet_status_t xet_codec_decode(xet_codec_t *c, unsigned scheme,
    const uint8_t *in, size_t len, uint8_t *out, size_t raw_len);

/*
 * Encodes one chunk of 1..XET_CHUNK_MAX bytes; *out_len is the room on entry
 * (at least len), the size on XET_OK, and otherwise unchanged.  XET_AGAIN
 * when the result would not be smaller than len, as with XET_SCHEME_NONE:
 * store it with XET_SCHEME_NONE then.  XET_XORB_SCHEME, XET_XORB_RAW_LEN,
 * XET_INTERNAL without room, XET_NOMEM.
 */
xet_status_t xet_codec_encode(xet_codec_t *c, unsigned scheme,
    const uint8_t *in, size_t len, uint8_t *out, size_t *out_len);

/* The byte grouping alone, of any n bytes; in and out must not overlap. */
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
 * Takes bytes up to the next boundary: returns how many of the len bytes of
 * data belong to the open chunk.  *cut is 1 when the chunk ends with them, and
 * the next call starts another chunk; it is 0 when all of data was taken and
 * the chunk goes on.
 */
size_t xet_chunker_feed(xet_chunker_t *c, const uint8_t *data, size_t len,
    int *cut);


#endif /* _XET_CHUNK_H_INCLUDED_ */
