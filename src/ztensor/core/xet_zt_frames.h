
/*
 * zstd frames (RFC 8878) walked without being decoded: how they are cut, and
 * what they would need.
 */

#ifndef _XET_ZT_FRAMES_H_INCLUDED_
#define _XET_ZT_FRAMES_H_INCLUDED_


#include "xet_zt_decoder.h"


typedef enum {
    xet_zt_frames_head = 0,
    xet_zt_frames_block,
    xet_zt_frames_skip
} xet_zt_frames_state_t;


typedef struct {
    uint64_t               n;          /* frames that hold data */
    uint64_t               window;     /* the largest, bytes */
    unsigned               dictionary:1;  /* some frame needs one */

    xet_status_t           status;
    xet_zt_frames_state_t  state;
    xet_zt_frames_state_t  next;       /* after what is skipped */
    unsigned               checksum:1; /* of the open frame */
    unsigned               have;       /* bytes of the open head */
    uint64_t               skip;
    uint8_t                head[XET_ZT_FRAME_HEAD];
} xet_zt_frames_t;


void xet_zt_frames_init(xet_zt_frames_t *f);

/* The next bytes, in pieces of any size.  XET_OK; XET_ZT_ZSTD, which stays. */
xet_status_t xet_zt_frames_feed(xet_zt_frames_t *f, const uint8_t *data,
    size_t len);

/*
 * Called after all bytes.  XET_OK; XET_ZT_ZSTD when they end inside of a frame,
 * when no frame holds data, or after an error.
 */
xet_status_t xet_zt_frames_finish(const xet_zt_frames_t *f);


#endif /* _XET_ZT_FRAMES_H_INCLUDED_ */
