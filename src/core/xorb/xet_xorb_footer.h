
/*
 * The CasObjectInfo footer that old clients put behind the chunks: compared
 * with what the chunks say while it comes in, or written.  Internal to the
 * core.  The ident "XETBLOB" in front belongs to the parser when reading.
 */

#ifndef _XET_XORB_FOOTER_H_INCLUDED_
#define _XET_XORB_FOOTER_H_INCLUDED_


#include "xet_xorb.h"


#define XET_XORB_FOOTER_FIXED  12


typedef struct {
    const xet_xorb_info_t  *info;
    const uint8_t          *layout;    /* fields to come; NULL: no version */

    const uint8_t          *want;      /* bytes of the field; NULL: any */
    size_t                  rest;      /* bytes of the field to come */
    unsigned                version;

    uint8_t                 fixed[XET_XORB_FOOTER_FIXED];
} xet_xorb_footer_t;


/* info is complete, with its hash, and outlives f. */
void xet_xorb_footer_init(xet_xorb_footer_t *f, const xet_xorb_info_t *info);

/*
 * Takes the bytes behind the ident, in pieces of any size: XET_OK, or
 * XET_XORB_FOOTER with the first byte that disagrees.
 */
xet_status_t xet_xorb_footer_feed(xet_xorb_footer_t *f, const uint8_t *data,
    size_t len);

/* XET_OK, or XET_XORB_TRUNCATED when bytes are missing. */
xet_status_t xet_xorb_footer_finish(const xet_xorb_footer_t *f);

/*
 * Writes the ident, the footer and the length of both.  XET_INTERNAL for a
 * version other than 0 and 1, the first error of write, or XET_OK.
 */
xet_status_t xet_xorb_footer_write(const xet_xorb_info_t *info,
    unsigned version, xet_xorb_write_pt write, void *ctx);


#endif /* _XET_XORB_FOOTER_H_INCLUDED_ */
