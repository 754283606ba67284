
/*
 * Compressed components: zstd frames (RFC 8878), one or several, skippable
 * ones among them, to an exact number of bytes.
 */

#ifndef _XET_ZT_DECODER_H_INCLUDED_
#define _XET_ZT_DECODER_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include "xet_status.h"


#define XET_ZT_FRAME_HEAD  18          /* bytes of a frame's head at most */


typedef struct {
    uint64_t  output;                  /* decoded bytes, 256 MiB */
    unsigned  window_log;              /* 10 to 31; 23, for 8 MiB */
} xet_zt_decode_limits_t;

void xet_zt_decode_limits_init(xet_zt_decode_limits_t *limits);


typedef struct {
    unsigned  skippable:1;
    unsigned  has_content:1;           /* content is known */
    unsigned  checksum:1;
    unsigned  dictionary:1;            /* the frame needs one */
    unsigned  head;                    /* bytes of the head */
    uint64_t  content;                 /* decoded, or skippable, bytes */
    uint64_t  window;                  /* bytes of memory to stream it */
} xet_zt_frame_t;

/*
 * Parses the head of the frame at data.  XET_OK; XET_AGAIN when len bytes are
 * not the whole head, which XET_ZT_FRAME_HEAD bytes always have; XET_ZT_ZSTD
 * when no frame begins at data.
 */
xet_status_t xet_zt_frame_parse(xet_zt_frame_t *f, const uint8_t *data,
    size_t len);


typedef struct xet_zt_decoder_s  xet_zt_decoder_t;


/* *limits is copied.  NULL when out of memory, or for a bad window_log. */
xet_zt_decoder_t *xet_zt_decoder_create(const xet_zt_decode_limits_t *limits);
void xet_zt_decoder_destroy(xet_zt_decoder_t *d);

/*
 * Begins with another component, of expected decoded bytes, or of any number
 * up to the limit when known is 0.  XET_OK; XET_ZT_DECODE_SIZE when expected is
 * over the limit; XET_INTERNAL.
 */
xet_status_t xet_zt_decoder_start(xet_zt_decoder_t *d, int known,
    uint64_t expected);

/*
 * Decodes some of *in into out, moves *in and *in_len past the bytes that were
 * taken, and sets *out_len (on entry the room at out, not 0) to the number of
 * decoded bytes.  XET_AGAIN when there is no error: the caller calls again,
 * with new room, while input is left or the room was used up.  XET_ZT_ZSTD,
 * XET_ZT_LENGTH past the expected length, XET_ZT_DECODE_SIZE past the limit,
 * XET_ZT_WINDOW, XET_NOMEM.  The errors stay.
 */
xet_status_t xet_zt_decoder_feed(xet_zt_decoder_t *d, const uint8_t **in,
    size_t *in_len, uint8_t *out, size_t *out_len);

/*
 * Called when all input was taken.  XET_OK; XET_ZT_ZSTD when the input ends
 * inside of a frame or has no frame; XET_ZT_LENGTH when the output is not of
 * the expected length; XET_INTERNAL when decoded bytes were not fetched; or the
 * error that xet_zt_decoder_start() or xet_zt_decoder_feed() has returned.
 */
xet_status_t xet_zt_decoder_finish(xet_zt_decoder_t *d);

/*
 * Decodes a whole component at once, into exactly len bytes, without limits:
 * takes 100 KiB of memory besides, whatever the window.  XET_OK, XET_ZT_ZSTD,
 * XET_ZT_LENGTH, XET_NOMEM.
 */
xet_status_t xet_zt_decode(const uint8_t *in, size_t in_len, uint8_t *out,
    size_t len);


#endif /* _XET_ZT_DECODER_H_INCLUDED_ */
