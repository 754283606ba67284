
/*
 * A map of the manifest kept as it is encoded, to be written out later.
 */

#ifndef _XET_ZT_CAPTURE_H_INCLUDED_
#define _XET_ZT_CAPTURE_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include "xet_status.h"


typedef struct {
    uint8_t        *data;
    size_t          len;
    size_t          room;
    size_t          limit;             /* bytes kept at most */
    const uint8_t  *mark;              /* what is not kept yet begins there */
    unsigned        open:1;
    unsigned        cut:1;             /* it was larger; nothing is kept */
} xet_zt_capture_t;


void xet_zt_capture_init(xet_zt_capture_t *c, size_t limit);
void xet_zt_capture_destroy(xet_zt_capture_t *c);

/* The head of a map was read, up to p. */
xet_status_t xet_zt_capture_begin(xet_zt_capture_t *c, const uint8_t *p);

/* The window ends at p; another one begins there; both only while open. */
xet_status_t xet_zt_capture_break(xet_zt_capture_t *c, const uint8_t *p);
void xet_zt_capture_window(xet_zt_capture_t *c, const uint8_t *p);

/* The map has ended at p; a break was read there where indefinite. */
xet_status_t xet_zt_capture_end(xet_zt_capture_t *c, const uint8_t *p,
    int indefinite);


#endif /* _XET_ZT_CAPTURE_H_INCLUDED_ */
