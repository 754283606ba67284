
/*
 * Maps kept as they are encoded.
 *
 * Purpose:    attributes are not interpreted by the parser but echoed, and
 *             they stand elsewhere in the answer than in the manifest; so
 *             their bytes are set aside.
 * States:     closed, open (between the head of the map and its end).
 * Ownership:  the buffer is allocated here and used again for the next map.
 * Threads:    one at a time.
 *
 * A window may cut the map anywhere, even its head.  So the head is not kept:
 * the copy is always a map of indefinite length, whose head is one byte.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt.h"


#define XET_ZT_CAPTURE_FIRST  256

#define XET_ZT_CAPTURE_MAP    0xbf
#define XET_ZT_CAPTURE_BREAK  0xff


static xet_status_t xet_zt_capture_add(xet_zt_capture_t *c,
    const uint8_t *data, size_t len);


void
xet_zt_capture_init(xet_zt_capture_t *c, size_t limit)
{
    memset(c, 0, sizeof(xet_zt_capture_t));

    c->limit = limit;
}


void
xet_zt_capture_destroy(xet_zt_capture_t *c)
{
    free(c->data);
    c->data = NULL;
}


xet_status_t
xet_zt_capture_begin(xet_zt_capture_t *c, const uint8_t *p)
{
    static const uint8_t  head[1] = { XET_ZT_CAPTURE_MAP };

    c->open = 1;
    c->cut = 0;
    c->len = 0;
    c->mark = p;

    return xet_zt_capture_add(c, head, 1);
}


xet_status_t
xet_zt_capture_break(xet_zt_capture_t *c, const uint8_t *p)
{
    size_t  len;

    len = (size_t) (p - c->mark);
    c->mark = p;

    return len ? xet_zt_capture_add(c, p - len, len) : XET_OK;
}


void
xet_zt_capture_window(xet_zt_capture_t *c, const uint8_t *p)
{
    c->mark = p;
}


xet_status_t
xet_zt_capture_end(xet_zt_capture_t *c, const uint8_t *p, int indefinite)
{
    xet_status_t  rc;

    static const uint8_t  end[1] = { XET_ZT_CAPTURE_BREAK };

    rc = xet_zt_capture_break(c, p);

    if (rc == XET_OK && !indefinite) {
        rc = xet_zt_capture_add(c, end, 1);
    }

    c->open = 0;

    return rc;
}


static xet_status_t
xet_zt_capture_add(xet_zt_capture_t *c, const uint8_t *data, size_t len)
{
    size_t    room;
    uint8_t  *p;

    if (c->cut) {
        return XET_OK;
    }

    if (len > c->limit - c->len) {
        c->cut = 1;
        c->len = 0;

        return XET_OK;
    }

    if (len > c->room - c->len) {
        room = c->room ? c->room : XET_ZT_CAPTURE_FIRST;

        while (room - c->len < len) {
            room *= 2;
        }

        p = realloc(c->data, room);
        if (p == NULL) {
            return XET_NOMEM;
        }

        c->data = p;
        c->room = room;
    }

    memcpy(c->data + c->len, data, len);
    c->len += len;

    return XET_OK;
}
