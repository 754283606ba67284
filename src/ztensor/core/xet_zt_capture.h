
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
    const uint8_t  *mark;              /* bytes from here are not kept yet */
    unsigned        open:1;
    unsigned        cut:1;             /* over the limit; nothing is kept */
} xet_zt_capture_t;


void xet_zt_capture_init(xet_zt_capture_t *c, size_t limit);
void xet_zt_capture_destroy(xet_zt_capture_t *c);

/*
 * Begins with a map whose head ends at p.  XET_OK or XET_NOMEM, here and below;
 * a map over the limit is no error, but sets c->cut.
 */
xet_status_t xet_zt_capture_begin(xet_zt_capture_t *c, const uint8_t *p);

/*
 * Between a begin and an end: xet_zt_capture_break() keeps what the window has
 * up to its end, p; xet_zt_capture_window() says that the next one begins at p.
 */
xet_status_t xet_zt_capture_break(xet_zt_capture_t *c, const uint8_t *p);
void xet_zt_capture_window(xet_zt_capture_t *c, const uint8_t *p);

/* The map ends at p; indefinite: with a break, which is before p. */
xet_status_t xet_zt_capture_end(xet_zt_capture_t *c, const uint8_t *p,
    int indefinite);


#endif /* _XET_ZT_CAPTURE_H_INCLUDED_ */
