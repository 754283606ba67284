
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
    unsigned  window_log;              /* 23: 8 MiB; 10 to 31 */
} xet_zt_decode_limits_t;

void xet_zt_decode_limits_init(xet_zt_decode_limits_t *limits);


typedef struct {
    unsigned  skippable:1;
    unsigned  has_content:1;
    unsigned  checksum:1;
    unsigned  dictionary:1;
    unsigned  head;                    /* bytes of the head */
    uint64_t  content;                 /* decoded bytes; of a skippable one */
    uint64_t  window;                  /* bytes of memory to stream it */
} xet_zt_frame_t;

/*
 * The head of the frame at data.  XET_AGAIN when len is too short to tell,
 * which XET_ZT_FRAME_HEAD bytes never are; XET_ZT_ZSTD.
 */
xet_status_t xet_zt_frame_parse(xet_zt_frame_t *f, const uint8_t *data,
    size_t len);


typedef struct xet_zt_decoder_s  xet_zt_decoder_t;


/* NULL when out of memory. */
xet_zt_decoder_t *xet_zt_decoder_create(const xet_zt_decode_limits_t *limits);
void xet_zt_decoder_destroy(xet_zt_decoder_t *d);

/*
 * Begins with another component, of expected decoded bytes, or of any number
 * when known is 0.  XET_ZT_DECODE_SIZE, XET_INTERNAL.
 */
xet_status_t xet_zt_decoder_start(xet_zt_decoder_t *d, int known,
    uint64_t expected);

/*
 * Decodes some of *in into out, moves *in and *in_len past what was taken,
 * and sets *out_len (the room on entry, not 0) to what was given.  XET_AGAIN,
 * and to be called again, with new room, while input is left or the room was
 * used up.  XET_ZT_ZSTD, XET_ZT_LENGTH past the expected length,
 * XET_ZT_DECODE_SIZE past the limit, XET_ZT_WINDOW, XET_NOMEM.  The errors
 * stay.
 */
xet_status_t xet_zt_decoder_feed(xet_zt_decoder_t *d, const uint8_t **in,
    size_t *in_len, uint8_t *out, size_t *out_len);

/*
 * All input was taken.  XET_OK; XET_ZT_ZSTD inside of a frame or without one;
 * XET_ZT_LENGTH short of the expected length; or the error before.
 */
xet_status_t xet_zt_decoder_finish(xet_zt_decoder_t *d);

/*
 * At once, into exactly len bytes: takes 100 KiB whatever the window.  Errors
 * as above.
 */
xet_status_t xet_zt_decode(const uint8_t *in, size_t in_len, uint8_t *out,
    size_t len);


#endif /* _XET_ZT_DECODER_H_INCLUDED_ */
