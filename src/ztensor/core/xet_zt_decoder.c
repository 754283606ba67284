
/*
 * A zstd decoder with an exact output length, and a walk over zstd frames that
 * does not decode them.
 *
 * Purpose:    decodes a compressed component to the bytes of its tensor.
 *             Output that is shorter than the shape requires is an error;
 *             some readers pad such output with zeros, which is wrong.
 * States:     between frames, inside a frame, failed.  The first error is
 *             kept.
 * Ownership:  a decoder owns one libzstd context, which is reused for every
 *             component.  For streaming, the context holds a window: the frame
 *             sets its size, up to the limit.
 * Threads:    one at a time.
 *
 * Writers of the format make frames without a content size.  The window of
 * these frames depends only on the compression level, even for short data:
 * 8 MiB at level 19, 128 MiB at level 22.  Decoding in one call needs no
 * window, because the output serves as the window.
 */


#include <stdlib.h>
#include <string.h>

#include <zstd.h>
#include <zstd_errors.h>

#include "xet_base.h"
#include "xet_zt.h"


#define XET_ZT_FRAME_MAGIC      0xfd2fb528
#define XET_ZT_FRAME_SKIPPABLE  0x184d2a50  /* to 0x184d2a5f */
#define XET_ZT_WINDOW_MIN       10          /* log2; minimum of zstd */

#define XET_ZT_BLOCK_HEAD       3
#define XET_ZT_BLOCK_MAX        (128 * 1024)
#define XET_ZT_BLOCK_RLE        1
#define XET_ZT_BLOCK_RESERVED   3
#define XET_ZT_CHECKSUM         4


struct xet_zt_decoder_s {
    ZSTD_DCtx               *ctx;
    xet_zt_decode_limits_t   limits;
    uint64_t                 expected;
    uint64_t                 decoded;
    unsigned                 known:1;
    unsigned                 frame:1;      /* inside a frame */
    unsigned                 any:1;        /* a frame has ended */
    unsigned                 held:1;       /* libzstd may hold output */
    unsigned                 parsed:1;     /* info describes the open frame */
    xet_status_t             status;

    xet_zt_frame_t           info;
    uint64_t                 content;      /* bytes decoded from the frame */
    size_t                   head_len;
    uint8_t                  head[XET_ZT_FRAME_HEAD];
};


static xet_status_t xet_zt_decoder_error(size_t code);
static xet_status_t xet_zt_decoder_stream(xet_zt_decoder_t *d,
    ZSTD_inBuffer *input, ZSTD_outBuffer *output);
static xet_status_t xet_zt_decoder_head(xet_zt_decoder_t *d, const uint8_t *p,
    size_t len);
static int xet_zt_decoder_magic(const uint8_t *p, size_t len);
static xet_status_t xet_zt_decoder_frame_end(xet_zt_decoder_t *d);
static xet_status_t xet_zt_frames_frame(xet_zt_frames_t *f);
static xet_status_t xet_zt_frames_blocks(xet_zt_frames_t *f);


void
xet_zt_decode_limits_init(xet_zt_decode_limits_t *limits)
{
    limits->output = (uint64_t) 256 << 20;
    limits->window_log = 23;
}


xet_zt_decoder_t *
xet_zt_decoder_create(const xet_zt_decode_limits_t *limits)
{
    xet_zt_decoder_t  *d;

    d = calloc(1, sizeof(xet_zt_decoder_t));
    if (d == NULL) {
        return NULL;
    }

    d->limits = *limits;
    d->status = XET_INTERNAL;
    d->ctx = ZSTD_createDCtx();

    if (d->ctx == NULL
        || ZSTD_isError(ZSTD_DCtx_setParameter(d->ctx, ZSTD_d_windowLogMax,
                                               (int) limits->window_log)))
    {
        xet_zt_decoder_destroy(d);
        return NULL;
    }

    return d;
}


void
xet_zt_decoder_destroy(xet_zt_decoder_t *d)
{
    if (d == NULL) {
        return;
    }

    ZSTD_freeDCtx(d->ctx);
    free(d);
}


xet_status_t
xet_zt_decoder_start(xet_zt_decoder_t *d, int known, uint64_t expected)
{
    d->known = known ? 1 : 0;
    d->expected = expected;
    d->decoded = 0;
    d->frame = 0;
    d->any = 0;
    d->held = 0;
    d->parsed = 0;
    d->content = 0;
    d->head_len = 0;
    d->status = XET_OK;

    if (ZSTD_isError(ZSTD_DCtx_reset(d->ctx, ZSTD_reset_session_only))) {
        d->status = XET_INTERNAL;

    } else if (known && expected > d->limits.output) {
        d->status = XET_ZT_DECODE_SIZE;
    }

    return d->status;
}


xet_status_t
xet_zt_decoder_feed(xet_zt_decoder_t *d, const uint8_t **in, size_t *in_len,
    uint8_t *out, size_t *out_len)
{
    uint64_t        left;
    uint8_t         past[1];
    ZSTD_inBuffer   input;
    ZSTD_outBuffer  output;

    if (d->status != XET_OK) {
        *out_len = 0;
        return d->status;
    }

    left = (d->known ? d->expected : d->limits.output) - d->decoded;

    input.src = *in;
    input.size = *in_len;
    input.pos = 0;

    output.dst = out;
    output.size = (*out_len < left) ? *out_len : (size_t) left;
    output.pos = 0;

    /*
     * After the last expected byte, the end of a frame or an empty frame may
     * follow, but no more output.
     */

    if (left == 0) {
        output.dst = past;
        output.size = 1;
    }

    d->status = xet_zt_decoder_stream(d, &input, &output);

    if (left == 0 && output.pos) {
        d->status = d->known ? XET_ZT_LENGTH : XET_ZT_DECODE_SIZE;
        output.pos = 0;
    }

    d->decoded += output.pos;

    *in += input.pos;
    *in_len -= input.pos;
    *out_len = output.pos;

    return (d->status == XET_OK) ? XET_AGAIN : d->status;
}


/*
 * Decodes until the input or the room is used up.  libzstd may hold output for
 * which there was no room.  Only then is libzstd called without input: it
 * treats other calls without input as an endless loop of the caller.
 */

static xet_status_t
xet_zt_decoder_stream(xet_zt_decoder_t *d, ZSTD_inBuffer *input,
    ZSTD_outBuffer *output)
{
    size_t         rc, before, had;
    xet_status_t   status;
    ZSTD_inBuffer  part;

    while (output->pos < output->size
           && (input->pos < input->size || d->held))
    {
        had = d->parsed ? d->info.head : d->head_len;

        status = xet_zt_decoder_head(d,
                                     (const uint8_t *) input->src + input->pos,
                                     input->size - input->pos);
        if (status != XET_OK) {
            return status;
        }

        part = *input;

        if (d->parsed && had < d->info.head) {
            part.size = input->pos + d->info.head - had;
        }

        before = output->pos;

        rc = ZSTD_decompressStream(d->ctx, output, &part);
        input->pos = part.pos;

        if (ZSTD_isError(rc)) {
            return xet_zt_decoder_error(rc);
        }

        d->content += output->pos - before;
        d->frame = (rc != 0);
        d->held = d->frame && output->pos == output->size;

        if (rc == 0) {
            status = xet_zt_decoder_frame_end(d);

            if (status != XET_OK) {
                return status;
            }
        }
    }

    return XET_OK;
}


/*
 * Collects and parses the frame header.  Until the header is complete, libzstd
 * consumes all input, so no byte is collected twice.
 *
 * The decoder checks window and content size itself, and the caller passes the
 * header to libzstd separately.  Otherwise the result would depend on how the
 * input is split: if one call has a whole frame, and room for all of its
 * output, libzstd does not check the window and block sizes.  If the last
 * block is empty, libzstd does not check the content size.
 */

static xet_status_t
xet_zt_decoder_head(xet_zt_decoder_t *d, const uint8_t *p, size_t len)
{
    size_t        n;
    xet_status_t  rc;

    if (d->parsed) {
        return XET_OK;
    }

    n = XET_ZT_FRAME_HEAD - d->head_len;
    n = (len < n) ? len : n;

    if (n) {
        memcpy(d->head + d->head_len, p, n);
        d->head_len += n;
    }

    if (!xet_zt_decoder_magic(d->head, d->head_len)) {
        return XET_ZT_ZSTD;
    }

    rc = xet_zt_frame_parse(&d->info, d->head, d->head_len);

    if (rc != XET_OK) {
        return (rc == XET_AGAIN) ? XET_OK : rc;
    }

    d->parsed = 1;

    return (d->info.window > (uint64_t) 1 << d->limits.window_log)
           ? XET_ZT_WINDOW : XET_OK;
}


/*
 * Returns 1 if len bytes at p may begin a frame of RFC 8878.  libzstd may be
 * built to decode frames of earlier formats; other readers do not decode them.
 */

static int
xet_zt_decoder_magic(const uint8_t *p, size_t len)
{
    size_t          i;
    unsigned        skippable;
    const uint8_t  *magic;

    static const uint8_t  frames[2][4] = {
        { 0x28, 0xb5, 0x2f, 0xfd },
        { 0x50, 0x2a, 0x4d, 0x18 }
    };

    skippable = len && p[0] != frames[0][0];
    magic = frames[skippable];

    for (i = 0; i < len && i < 4; i++) {

        if ((i == 0 && skippable ? p[i] & 0xf0 : p[i]) != magic[i]) {
            return 0;
        }
    }

    return 1;
}


static xet_status_t
xet_zt_decoder_frame_end(xet_zt_decoder_t *d)
{
    xet_status_t  rc;

    rc = (d->info.has_content && !d->info.skippable
          && d->content != d->info.content)
         ? XET_ZT_ZSTD : XET_OK;

    d->any = 1;
    d->parsed = 0;
    d->content = 0;
    d->head_len = 0;

    return rc;
}


xet_status_t
xet_zt_decoder_finish(xet_zt_decoder_t *d)
{
    size_t          none, n;
    uint8_t         byte[1];
    const uint8_t  *p;

    if (d->status != XET_OK) {
        return d->status;
    }

    /* libzstd may still have to end a frame whose output filled the room */

    if (d->held) {
        p = byte;
        none = 0;
        n = sizeof(byte);

        (void) xet_zt_decoder_feed(d, &p, &none, byte, &n);

        if (d->status == XET_OK && n) {
            d->status = XET_INTERNAL;
        }
    }

    if (d->status != XET_OK) {
        return d->status;
    }

    if (d->frame || !d->any) {
        d->status = XET_ZT_ZSTD;

    } else if (d->known && d->decoded != d->expected) {
        d->status = XET_ZT_LENGTH;
    }

    return d->status;
}


xet_status_t
xet_zt_decode(const uint8_t *in, size_t in_len, uint8_t *out, size_t len)
{
    size_t           rc;
    uint8_t          none[1];
    ZSTD_DCtx       *ctx;
    xet_zt_frames_t  frames;

    xet_zt_frames_init(&frames);

    if (in_len == 0
        || xet_zt_frames_feed(&frames, in, in_len) != XET_OK
        || frames.state != xet_zt_frames_head || frames.have)
    {
        return XET_ZT_ZSTD;
    }

    ctx = ZSTD_createDCtx();
    if (ctx == NULL) {
        return XET_NOMEM;
    }

    rc = ZSTD_decompressDCtx(ctx, len ? out : none, len, in, in_len);

    ZSTD_freeDCtx(ctx);

    if (ZSTD_isError(rc)) {
        return (ZSTD_getErrorCode(rc) == ZSTD_error_dstSize_tooSmall)
               ? XET_ZT_LENGTH : xet_zt_decoder_error(rc);
    }

    return (rc == len) ? XET_OK : XET_ZT_LENGTH;
}


static xet_status_t
xet_zt_decoder_error(size_t code)
{
    switch (ZSTD_getErrorCode(code)) {

    case ZSTD_error_memory_allocation:
        return XET_NOMEM;

    case ZSTD_error_frameParameter_windowTooLarge:
        return XET_ZT_WINDOW;

    default:
        return XET_ZT_ZSTD;
    }
}


xet_status_t
xet_zt_frame_parse(xet_zt_frame_t *f, const uint8_t *data, size_t len)
{
    size_t    n;
    unsigned  flags, i, dictionary, content;
    uint64_t  base;

    static const uint8_t  dictionary_len[4] = { 0, 1, 2, 4 };
    static const uint8_t  content_len[4] = { 0, 2, 4, 8 };

    memset(f, 0, sizeof(xet_zt_frame_t));

    if (len < 5) {
        return XET_AGAIN;
    }

    if ((xet_get_u32(data) & 0xfffffff0) == XET_ZT_FRAME_SKIPPABLE) {

        if (len < 8) {
            return XET_AGAIN;
        }

        f->skippable = 1;
        f->has_content = 1;
        f->head = 8;
        f->content = xet_get_u32(data + 4);

        return XET_OK;
    }

    flags = data[4];

    if (xet_get_u32(data) != XET_ZT_FRAME_MAGIC || (flags & 0x08)) {
        return XET_ZT_ZSTD;
    }

    /* a single-segment frame is its own window and has a content size */

    dictionary = dictionary_len[flags & 0x03];
    content = content_len[flags >> 6];

    if (content == 0 && (flags & 0x20)) {
        content = 1;
    }

    n = 5 + !(flags & 0x20) + dictionary + content;

    if (len < n) {
        return XET_AGAIN;
    }

    f->head = (unsigned) n;
    f->checksum = (flags & 0x04) != 0;
    f->has_content = (content != 0);

    for (i = 0; i < dictionary; i++) {
        f->dictionary |= (data[n - content - dictionary + i] != 0);
    }

    for (i = 0; i < content; i++) {
        f->content |= (uint64_t) data[n - content + i] << 8 * i;
    }

    if (content == 2) {
        f->content += 256;
    }

    if (flags & 0x20) {
        f->window = f->content;

    } else {
        base = (uint64_t) 1 << (XET_ZT_WINDOW_MIN + (data[5] >> 3));
        f->window = base + base / 8 * (data[5] & 7);
    }

    return XET_OK;
}


/*
 * A walk over frames.  Stored frames can be sent unchanged to a client that
 * decodes zstd, if no window is larger than such a client must support.  The
 * window is in each frame header.  To find the next header, the walk skips the
 * blocks of a frame without decoding them, so the blocks may still be invalid.
 */

void
xet_zt_frames_init(xet_zt_frames_t *f)
{
    memset(f, 0, sizeof(xet_zt_frames_t));
}


xet_status_t
xet_zt_frames_feed(xet_zt_frames_t *f, const uint8_t *data, size_t len)
{
    size_t  n;

    while (len && f->status == XET_OK) {

        if (f->state == xet_zt_frames_skip) {
            n = (f->skip < len) ? (size_t) f->skip : len;

            data += n;
            len -= n;
            f->skip -= n;

            if (f->skip == 0) {
                f->state = f->next;
            }

            continue;
        }

        f->head[f->have++] = *data++;
        len--;

        f->status = (f->state == xet_zt_frames_head)
                    ? xet_zt_frames_frame(f) : xet_zt_frames_blocks(f);
    }

    return f->status;
}


static xet_status_t
xet_zt_frames_frame(xet_zt_frames_t *f)
{
    xet_status_t    rc;
    xet_zt_frame_t  frame;

    rc = xet_zt_frame_parse(&frame, f->head, f->have);

    if (rc != XET_OK) {
        return (rc == XET_AGAIN) ? XET_OK : rc;
    }

    f->have = 0;

    if (frame.skippable) {
        f->skip = frame.content;
        f->next = xet_zt_frames_head;
        f->state = f->skip ? xet_zt_frames_skip : xet_zt_frames_head;

        return XET_OK;
    }

    f->n++;
    f->largest = (frame.window < XET_ZT_BLOCK_MAX) ? (uint32_t) frame.window
                                                   : XET_ZT_BLOCK_MAX;
    f->checksum = frame.checksum;
    f->dictionary |= frame.dictionary;

    if (frame.window > f->window) {
        f->window = frame.window;
    }

    f->state = xet_zt_frames_block;

    return XET_OK;
}


static xet_status_t
xet_zt_frames_blocks(xet_zt_frames_t *f)
{
    uint32_t  head, size;
    unsigned  last, type;

    if (f->have < XET_ZT_BLOCK_HEAD) {
        return XET_OK;
    }

    head = xet_get_u24(f->head);

    last = head & 1;
    type = head >> 1 & 3;
    size = head >> 3;

    if (type == XET_ZT_BLOCK_RESERVED || size > XET_ZT_BLOCK_MAX) {
        return XET_ZT_ZSTD;
    }

    f->have = 0;
    f->skip = (type == XET_ZT_BLOCK_RLE) ? 1 : size;
    f->next = xet_zt_frames_block;

    if (f->skip > f->largest) {
        return XET_ZT_ZSTD;
    }

    if (last) {
        f->skip += f->checksum ? XET_ZT_CHECKSUM : 0;
        f->next = xet_zt_frames_head;
    }

    f->state = f->skip ? xet_zt_frames_skip : f->next;

    return XET_OK;
}


xet_status_t
xet_zt_frames_finish(const xet_zt_frames_t *f)
{
    if (f->status != XET_OK) {
        return f->status;
    }

    return (f->state == xet_zt_frames_head && f->have == 0 && f->n)
           ? XET_OK : XET_ZT_ZSTD;
}
