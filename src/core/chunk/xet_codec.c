
/*
 * Chunk codecs: none, LZ4 frame, byte grouping of 4 then LZ4 frame.
 *
 * Purpose:    one chunk in memory to one chunk in memory, either way.
 * States:     one LZ4F context for all decoding.  The whole frame and the
 *             whole output are at hand, so LZ4F sets nothing aside except
 *             where the frame's block size is larger than the room left;
 *             then it decodes a block into a buffer of its own, which it
 *             allocates by the block size that the frame declares.  A context
 *             that failed inside a frame is reset, so every decode starts
 *             clean.
 * Ownership:  the creator owns the codec; nothing is kept between calls.
 * Threads:    one at a time.
 *
 * Encoding makes one frame of independent blocks without checksums or content
 * size.  The block size is the smallest that holds the chunk, so that the frame
 * has one block.  The work buffer is larger than a chunk because LZ4F asks for
 * room for the worst case.
 */

#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <lz4frame.h>

#include "xet_bytes.h"
#include "xet_codec.h"
#include "xet_suite.h"


#define XET_CODEC_LZ4_MAGIC   0x184d2204
#define XET_CODEC_LZ4_HEADER  7            /* the shortest frame header */
#define XET_CODEC_LZ4_DICT    0x01         /* a dictionary ID, in FLG */

/* LZ4F_compressFrameBound() of the largest chunk is some 40 bytes over. */
#define XET_CODEC_FRAME_MAX   (XET_CHUNK_MAX + 128)

/* Groups of four bytes that one step of the byte grouping takes. */
#define XET_CODEC_BG4_BLOCK   16


struct xet_codec_s {
    LZ4F_dctx  *dctx;

    uint8_t     group[XET_CHUNK_MAX];
    uint8_t     frame[XET_CODEC_FRAME_MAX];
};


static xet_status_t xet_codec_lz4_decode(xet_codec_t *c, const uint8_t *in,
    size_t len, uint8_t *out, size_t raw_len);
static xet_status_t xet_codec_lz4_frame(xet_codec_t *c, const uint8_t *in,
    size_t len, uint8_t *out, size_t raw_len);
static xet_status_t xet_codec_lz4_error(size_t rc);

static void xet_codec_bg4_bases(size_t base[4], size_t n);
static void xet_codec_bg4_split_block(const uint8_t *in, uint8_t *a,
    uint8_t *b, uint8_t *c, uint8_t *d);
static void xet_codec_bg4_join_block(const uint8_t *a, const uint8_t *b,
    const uint8_t *c, const uint8_t *d, uint8_t *out);


xet_codec_t *
xet_codec_create(void)
{
    xet_codec_t  *c;

    c = malloc(sizeof(xet_codec_t));
    if (c == NULL) {
        return NULL;
    }

    if (LZ4F_isError(LZ4F_createDecompressionContext(&c->dctx,
                                                     LZ4F_VERSION)))
    {
        free(c);
        return NULL;
    }

    return c;
}


void
xet_codec_destroy(xet_codec_t *c)
{
    if (c == NULL) {
        return;
    }

    LZ4F_freeDecompressionContext(c->dctx);
    free(c);
}


xet_status_t
xet_codec_decode(xet_codec_t *c, unsigned scheme, const uint8_t *in,
    size_t len, uint8_t *out, size_t raw_len)
{
    xet_status_t  rc;

    if (raw_len == 0 || raw_len > XET_CHUNK_MAX) {
        return XET_XORB_RAW_LEN;
    }

    switch (scheme) {

    case XET_SCHEME_NONE:

        if (len != raw_len) {
            return XET_XORB_DATA_LEN;
        }

        memcpy(out, in, len);
        return XET_OK;

    case XET_SCHEME_LZ4:
        return xet_codec_lz4_decode(c, in, len, out, raw_len);

    case XET_SCHEME_BG4_LZ4:

        rc = xet_codec_lz4_decode(c, in, len, c->group, raw_len);

        if (rc == XET_OK) {
            xet_codec_bg4_join(c->group, out, raw_len);
        }

        return rc;

    default:
        return XET_XORB_SCHEME;
    }
}


static xet_status_t
xet_codec_lz4_decode(xet_codec_t *c, const uint8_t *in, size_t len,
    uint8_t *out, size_t raw_len)
{
    xet_status_t  rc;

    /*
     * LZ4F would skip a skippable frame as if it were a chunk, and decode a
     * frame with a dictionary ID without the dictionary.
     */

    if (len < XET_CODEC_LZ4_HEADER
        || xet_get_u32(in) != XET_CODEC_LZ4_MAGIC
        || (in[4] & XET_CODEC_LZ4_DICT))
    {
        return XET_XORB_DATA;
    }

    rc = xet_codec_lz4_frame(c, in, len, out, raw_len);

    if (rc != XET_OK) {
        LZ4F_resetDecompressionContext(c->dctx);
    }

    return rc;
}


static xet_status_t
xet_codec_lz4_frame(xet_codec_t *c, const uint8_t *in, size_t len,
    uint8_t *out, size_t raw_len)
{
    size_t                    rc, in_pos, in_len, out_pos, out_len;
    uint8_t                   more[1];
    LZ4F_decompressOptions_t  opts;

    memset(&opts, 0, sizeof(LZ4F_decompressOptions_t));
    opts.stableDst = 1;

    in_pos = 0;
    out_pos = 0;

    do {
        in_len = len - in_pos;
        out_len = raw_len - out_pos;

        rc = LZ4F_decompress(c->dctx, out + out_pos, &out_len, in + in_pos,
                             &in_len, &opts);

        if (LZ4F_isError(rc)) {
            return xet_codec_lz4_error(rc);
        }

        in_pos += in_len;
        out_pos += out_len;

        if (rc == 0) {

            if (in_pos != len) {
                return XET_XORB_DATA;
            }

            return out_pos == raw_len ? XET_OK : XET_XORB_DATA_LEN;
        }

    } while (in_len != 0 || out_len != 0);

    /*
     * Stuck inside the frame: either the output is full and there is more, or
     * the input has ended.
     */

    if (out_pos == raw_len) {
        in_len = len - in_pos;
        out_len = sizeof(more);

        rc = LZ4F_decompress(c->dctx, more, &out_len, in + in_pos, &in_len,
                             NULL);

        if (LZ4F_isError(rc)) {
            return xet_codec_lz4_error(rc);
        }

        if (out_len != 0) {
            return XET_XORB_DATA_LEN;
        }
    }

    return XET_XORB_DATA;
}


static xet_status_t
xet_codec_lz4_error(size_t rc)
{
    /* the error codes themselves are not in the public interface of LZ4F */

    if (strcmp(LZ4F_getErrorName(rc), "ERROR_allocation_failed") == 0) {
        return XET_NOMEM;
    }

    return XET_XORB_DATA;
}


xet_status_t
xet_codec_encode(xet_codec_t *c, unsigned scheme, const uint8_t *in,
    size_t len, uint8_t *out, size_t *out_len)
{
    size_t              n;
    LZ4F_preferences_t  prefs;

    if (len == 0 || len > XET_CHUNK_MAX) {
        return XET_XORB_RAW_LEN;
    }

    if (*out_len < len) {
        return XET_INTERNAL;
    }

    switch (scheme) {

    case XET_SCHEME_NONE:
        return XET_AGAIN;

    case XET_SCHEME_LZ4:
        break;

    case XET_SCHEME_BG4_LZ4:
        xet_codec_bg4_split(in, c->group, len);
        in = c->group;
        break;

    default:
        return XET_XORB_SCHEME;
    }

    memset(&prefs, 0, sizeof(LZ4F_preferences_t));

    /* an upper limit, LZ4F takes 64 KiB where that holds the chunk */
    prefs.frameInfo.blockSizeID = LZ4F_max256KB;
    prefs.frameInfo.blockMode = LZ4F_blockIndependent;

    n = LZ4F_compressFrame(c->frame, sizeof(c->frame), in, len, &prefs);

    if (LZ4F_isError(n)) {
        return xet_codec_lz4_error(n) == XET_NOMEM ? XET_NOMEM : XET_INTERNAL;
    }

    if (n >= len) {
        return XET_AGAIN;
    }

    memcpy(out, c->frame, n);
    *out_len = n;

    return XET_OK;
}


void
xet_codec_bg4_split(const uint8_t *in, uint8_t *out, size_t n)
{
    size_t  i, base[4];

    xet_codec_bg4_bases(base, n);

    for (i = 0; n / 4 - i >= XET_CODEC_BG4_BLOCK; i += XET_CODEC_BG4_BLOCK) {
        xet_codec_bg4_split_block(in + 4 * i, out + base[0] + i,
                                  out + base[1] + i, out + base[2] + i,
                                  out + base[3] + i);
    }

    for (i = 4 * i; i < n; i++) {
        out[base[i % 4] + i / 4] = in[i];
    }
}


void
xet_codec_bg4_join(const uint8_t *in, uint8_t *out, size_t n)
{
    size_t  i, base[4];

    xet_codec_bg4_bases(base, n);

    for (i = 0; n / 4 - i >= XET_CODEC_BG4_BLOCK; i += XET_CODEC_BG4_BLOCK) {
        xet_codec_bg4_join_block(in + base[0] + i, in + base[1] + i,
                                 in + base[2] + i, in + base[3] + i,
                                 out + 4 * i);
    }

    for (i = 4 * i; i < n; i++) {
        out[i] = in[base[i % 4] + i / 4];
    }
}


/* Sets where the groups begin; the first n % 4 groups are a byte longer. */

static void
xet_codec_bg4_bases(size_t base[4], size_t n)
{
    size_t  i;

    base[0] = 0;

    for (i = 1; i < 4; i++) {
        base[i] = base[i - 1] + n / 4 + (n % 4 >= i);
    }
}


#if defined(__SSE2__)

/*
 * By hand: compilers use vectors for the loops below only at some levels of
 * optimisation, and without them regrouping is eight times slower and a third
 * of the time a chunk takes.
 */

static void
xet_codec_bg4_split_block(const uint8_t *in, uint8_t *a, uint8_t *b,
    uint8_t *c, uint8_t *d)
{
    __m128i        even0, even1, odd0, odd1, w, x, y, z;
    const __m128i  mask = _mm_set1_epi16(0x00ff);

    w = _mm_loadu_si128((const __m128i *) in);
    x = _mm_loadu_si128((const __m128i *) (in + 16));
    y = _mm_loadu_si128((const __m128i *) (in + 32));
    z = _mm_loadu_si128((const __m128i *) (in + 48));

    even0 = _mm_packus_epi16(_mm_and_si128(w, mask), _mm_and_si128(x, mask));
    even1 = _mm_packus_epi16(_mm_and_si128(y, mask), _mm_and_si128(z, mask));
    odd0 = _mm_packus_epi16(_mm_srli_epi16(w, 8), _mm_srli_epi16(x, 8));
    odd1 = _mm_packus_epi16(_mm_srli_epi16(y, 8), _mm_srli_epi16(z, 8));

    _mm_storeu_si128((__m128i *) a,
                     _mm_packus_epi16(_mm_and_si128(even0, mask),
                                      _mm_and_si128(even1, mask)));
    _mm_storeu_si128((__m128i *) b,
                     _mm_packus_epi16(_mm_and_si128(odd0, mask),
                                      _mm_and_si128(odd1, mask)));
    _mm_storeu_si128((__m128i *) c,
                     _mm_packus_epi16(_mm_srli_epi16(even0, 8),
                                      _mm_srli_epi16(even1, 8)));
    _mm_storeu_si128((__m128i *) d,
                     _mm_packus_epi16(_mm_srli_epi16(odd0, 8),
                                      _mm_srli_epi16(odd1, 8)));
}


static void
xet_codec_bg4_join_block(const uint8_t *a, const uint8_t *b, const uint8_t *c,
    const uint8_t *d, uint8_t *out)
{
    __m128i  w, x, y, z, ab0, ab1, cd0, cd1;

    w = _mm_loadu_si128((const __m128i *) a);
    x = _mm_loadu_si128((const __m128i *) b);
    y = _mm_loadu_si128((const __m128i *) c);
    z = _mm_loadu_si128((const __m128i *) d);

    ab0 = _mm_unpacklo_epi8(w, x);
    ab1 = _mm_unpackhi_epi8(w, x);
    cd0 = _mm_unpacklo_epi8(y, z);
    cd1 = _mm_unpackhi_epi8(y, z);

    _mm_storeu_si128((__m128i *) out, _mm_unpacklo_epi16(ab0, cd0));
    _mm_storeu_si128((__m128i *) (out + 16), _mm_unpackhi_epi16(ab0, cd0));
    _mm_storeu_si128((__m128i *) (out + 32), _mm_unpacklo_epi16(ab1, cd1));
    _mm_storeu_si128((__m128i *) (out + 48), _mm_unpackhi_epi16(ab1, cd1));
}

#else

static void
xet_codec_bg4_split_block(const uint8_t *restrict in, uint8_t *restrict a,
    uint8_t *restrict b, uint8_t *restrict c, uint8_t *restrict d)
{
    size_t  i;

    for (i = 0; i < XET_CODEC_BG4_BLOCK; i++) {
        a[i] = in[4 * i];
        b[i] = in[4 * i + 1];
        c[i] = in[4 * i + 2];
        d[i] = in[4 * i + 3];
    }
}


static void
xet_codec_bg4_join_block(const uint8_t *restrict a, const uint8_t *restrict b,
    const uint8_t *restrict c, const uint8_t *restrict d,
    uint8_t *restrict out)
{
    size_t  i;

    for (i = 0; i < XET_CODEC_BG4_BLOCK; i++) {
        out[4 * i] = a[i];
        out[4 * i + 1] = b[i];
        out[4 * i + 2] = c[i];
        out[4 * i + 3] = d[i];
    }
}

#endif
