
/*
 * zstd frames walked without being decoded.
 *
 * Purpose:    stored frames can be sent as they are to a client that decodes
 *             them itself, if no window is larger than a client must expect.
 *             The window is in the head of each frame, and the next head is
 *             found by walking over the blocks between.
 * States:     the head of a frame, the head of a block, bytes to be skipped
 *             and what comes after them.  Errors stay.
 * Ownership:  plain data.
 * Threads:    one at a time.
 *
 * The content of the blocks is not looked at: it may still fail to decode.
 */


#include <string.h>

#include "xet_bytes.h"
#include "xet_zt.h"


#define XET_ZT_BLOCK_HEAD      3
#define XET_ZT_BLOCK_MAX       (128 * 1024)
#define XET_ZT_BLOCK_RLE       1
#define XET_ZT_BLOCK_RESERVED  3
#define XET_ZT_CHECKSUM        4


static xet_status_t xet_zt_frames_frame(xet_zt_frames_t *f);
static xet_status_t xet_zt_frames_blocks(xet_zt_frames_t *f);


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
