
/*
 * LZ4 frames, the codec of XET_SCHEME_LZ4.
 *
 * Purpose:    encodes a chunk as one frame, and decodes it.
 * States:     the codec has one LZ4F context for all decoding.  The frames of
 *             most clients have independent blocks, no checksums and no
 *             content size.  Such blocks are decoded straight to their place.
 *             LZ4F decodes all other frames, and all frames with a fault.  It
 *             decodes a block that may be larger than the room left into a
 *             buffer of its own, of the block size that the frame declares,
 *             and copies it.  A context that failed inside a frame is freed,
 *             so every decode starts clean: after a reset, LZ4F 1.9.4 would
 *             still expect the rest of the content size of the failed frame.
 * Ownership:  the codec owns the context; no data is kept between calls.
 * Threads:    one at a time.
 *
 * Encoding makes one frame of independent blocks without checksums or content
 * size.  The block size is the smallest that holds the chunk, so the frame has
 * one block.  The work buffer is larger than a chunk because LZ4F requires
 * room for the worst case.
 */

#include <stdlib.h>
#include <string.h>

#include <lz4.h>
#include <lz4frame.h>

#include "xet_base.h"
#include "xet_chunk.h"


#define XET_CODEC_LZ4_MAGIC   0x184d2204
#define XET_CODEC_LZ4_HEADER  7            /* bytes of the shortest header */
#define XET_CODEC_LZ4_DICT    0x01         /* FLG bit: has a dictionary ID */
#define XET_CODEC_LZ4_USUAL   0x60         /* FLG of independent blocks */
#define XET_CODEC_LZ4_PLAIN   0x80000000   /* bit of a block's size */

/*
 * LZ4F_compressFrameBound() of the largest chunk is about XET_CHUNK_MAX + 40.
 */
#define XET_CODEC_FRAME_MAX   (XET_CHUNK_MAX + 128)


typedef struct {
    LZ4F_dctx  *dctx;
    uint8_t     frame[XET_CODEC_FRAME_MAX];
} xet_codec_lz4_t;


static void *xet_codec_lz4_create(void);
static void xet_codec_lz4_destroy(void *ctx);
static xet_status_t xet_codec_lz4_encode(xet_codec_t *c, const uint8_t *in,
    size_t len, uint8_t *out, size_t *out_len);
static xet_status_t xet_codec_lz4_decode(xet_codec_t *c, const uint8_t *in,
    size_t len, uint8_t *out, size_t raw_len);
static size_t xet_codec_lz4_header(LZ4F_dctx *dctx, const uint8_t *in,
    size_t len, size_t *block_max);
static int xet_codec_lz4_blocks(const uint8_t *in, size_t len, uint8_t *out,
    size_t raw_len, size_t block_max);
static xet_status_t xet_codec_lz4_frame(LZ4F_dctx *dctx, const uint8_t *in,
    size_t len, uint8_t *out, size_t raw_len);
static xet_status_t xet_codec_lz4_error(size_t rc);
static int xet_codec_lz4_suits(const uint8_t *data, size_t len);


const xet_scheme_t  xet_scheme_lz4 = {
    "lz4",
    xet_codec_lz4_create,
    xet_codec_lz4_destroy,
    xet_codec_lz4_encode,
    xet_codec_lz4_decode,
    xet_codec_lz4_suits
};


static void *
xet_codec_lz4_create(void)
{
    xet_codec_lz4_t  *lz4;

    lz4 = malloc(sizeof(xet_codec_lz4_t));
    if (lz4 == NULL) {
        return NULL;
    }

    if (LZ4F_isError(LZ4F_createDecompressionContext(&lz4->dctx,
                                                     LZ4F_VERSION)))
    {
        free(lz4);
        return NULL;
    }

    return lz4;
}


static void
xet_codec_lz4_destroy(void *ctx)
{
    xet_codec_lz4_t  *lz4;

    lz4 = ctx;

    LZ4F_freeDecompressionContext(lz4->dctx);
    free(lz4);
}


static xet_status_t
xet_codec_lz4_encode(xet_codec_t *c, const uint8_t *in, size_t len,
    uint8_t *out, size_t *out_len)
{
    size_t               n;
    xet_codec_lz4_t     *lz4;
    LZ4F_preferences_t   prefs;

    lz4 = c->ctx[XET_SCHEME_LZ4];

    memset(&prefs, 0, sizeof(LZ4F_preferences_t));

    /* an upper limit: LZ4F uses 64 KiB if the chunk fits */
    prefs.frameInfo.blockSizeID = LZ4F_max256KB;
    prefs.frameInfo.blockMode = LZ4F_blockIndependent;

    n = LZ4F_compressFrame(lz4->frame, sizeof(lz4->frame), in, len, &prefs);

    if (LZ4F_isError(n)) {
        return xet_codec_lz4_error(n) == XET_NOMEM ? XET_NOMEM : XET_INTERNAL;
    }

    if (n >= len) {
        return XET_AGAIN;
    }

    memcpy(out, lz4->frame, n);
    *out_len = n;

    return XET_OK;
}


static xet_status_t
xet_codec_lz4_decode(xet_codec_t *c, const uint8_t *in, size_t len,
    uint8_t *out, size_t raw_len)
{
    size_t            n, block_max;
    xet_status_t      rc;
    xet_codec_lz4_t  *lz4;

    lz4 = c->ctx[XET_SCHEME_LZ4];

    /*
     * LZ4F accepts skippable frames.  It also accepts frames that need a
     * dictionary, and decodes them without it.  Both are refused here.
     */

    if (len < XET_CODEC_LZ4_HEADER
        || xet_get_u32(in) != XET_CODEC_LZ4_MAGIC
        || (in[4] & XET_CODEC_LZ4_DICT))
    {
        return XET_XORB_DATA;
    }

    if (lz4->dctx == NULL
        && LZ4F_isError(LZ4F_createDecompressionContext(&lz4->dctx,
                                                        LZ4F_VERSION)))
    {
        lz4->dctx = NULL;
        return XET_NOMEM;
    }

    n = xet_codec_lz4_header(lz4->dctx, in, len, &block_max);

    if (n && xet_codec_lz4_blocks(in + n, len - n, out, raw_len, block_max)) {
        return XET_OK;
    }

    rc = xet_codec_lz4_frame(lz4->dctx, in, len, out, raw_len);

    if (rc != XET_OK) {
        LZ4F_freeDecompressionContext(lz4->dctx);
        lz4->dctx = NULL;
    }

    return rc;
}


/*
 * Returns the length of the frame's header if xet_codec_lz4_blocks() can
 * decode the frame, otherwise 0.  LZ4F checks the header.
 */

static size_t
xet_codec_lz4_header(LZ4F_dctx *dctx, const uint8_t *in, size_t len,
    size_t *block_max)
{
    size_t            n, rc;
    LZ4F_frameInfo_t  info;

    if (in[4] != XET_CODEC_LZ4_USUAL) {
        return 0;
    }

    n = len;
    rc = LZ4F_getFrameInfo(dctx, &info, in, &n);

    LZ4F_resetDecompressionContext(dctx);

    if (LZ4F_isError(rc)) {
        return 0;
    }

    /* 64 KiB, 256 KiB, 1 MiB, 4 MiB */
    *block_max = (size_t) 1 << (8 + 2 * info.blockSizeID);

    return n;
}


/*
 * Decodes the blocks after the header.  Returns 0 for any fault, and for empty
 * blocks: LZ4F then decodes the frame, and determines the error.
 */

static int
xet_codec_lz4_blocks(const uint8_t *in, size_t len, uint8_t *out,
    size_t raw_len, size_t block_max)
{
    int       n;
    size_t    size, room;
    uint32_t  word;

    while (len >= sizeof(word)) {
        word = xet_get_u32(in);
        in += sizeof(word);
        len -= sizeof(word);

        if (word == 0) {
            return len == 0 && raw_len == 0;
        }

        size = word & ~XET_CODEC_LZ4_PLAIN;
        room = raw_len < block_max ? raw_len : block_max;

        if (size == 0 || size > len || size > block_max) {
            return 0;
        }

        if (word & XET_CODEC_LZ4_PLAIN) {

            if (size > room) {
                return 0;
            }

            memcpy(out, in, size);
            n = (int) size;

        } else {
            n = LZ4_decompress_safe((const char *) in, (char *) out,
                                    (int) size, (int) room);
            if (n <= 0) {
                return 0;
            }
        }

        in += size;
        len -= size;
        out += n;
        raw_len -= (size_t) n;
    }

    return 0;
}


static xet_status_t
xet_codec_lz4_frame(LZ4F_dctx *dctx, const uint8_t *in, size_t len,
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

        rc = LZ4F_decompress(dctx, out + out_pos, &out_len, in + in_pos,
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
     * No progress inside the frame: either the output is full and there is
     * more data, or the input has ended.
     */

    if (out_pos == raw_len) {
        in_len = len - in_pos;
        out_len = sizeof(more);

        rc = LZ4F_decompress(dctx, more, &out_len, in + in_pos, &in_len,
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


/* LZ4 is fast on data that it can't compress, so it is always worth a try. */

static int
xet_codec_lz4_suits(const uint8_t *data, size_t len)
{
    return 1;
}
