
/*
 * Skips the values of a manifest that are not interpreted.
 *
 * Purpose:    skips unknown values item by item, and attributes, which are
 *             copied if the caller wants them.
 * States:     kept in the parser, see xet_zt_manifest.h; m->skip is set from
 *             the head of the value to its last item.
 * Ownership:  the parser owns the copies.
 * Threads:    one at a time.
 *
 * All limits also apply to skipped items.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt_manifest.h"


#define XET_ZT_CAPTURE_FIRST  256
#define XET_ZT_CAPTURE_MAP    0xbf
#define XET_ZT_CAPTURE_BREAK  0xff


static xet_status_t xet_zt_skip_end(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_capture_begin(xet_zt_capture_t *c,
    const uint8_t *p);
static xet_status_t xet_zt_capture_end(xet_zt_capture_t *c, const uint8_t *p,
    int indefinite);
static xet_status_t xet_zt_capture_add(xet_zt_capture_t *c,
    const uint8_t *data, size_t len);


xet_status_t
xet_zt_skip_item(xet_zt_manifest_t *m, const xet_cbor_item_t *item)
{
    unsigned  depth;

    depth = m->cbor.depth;

    if (item->kind == XET_CBOR_ARRAY || item->kind == XET_CBOR_MAP) {
        depth--;
    }

    if (m->skip_attributes
        && item->key
        && depth == m->skip_depth + 1
        && m->whole)
    {
        if (item->kind != XET_CBOR_TEXT && item->kind != XET_CBOR_DATA) {
            return XET_ZT_MANIFEST;
        }

        if (item->kind == XET_CBOR_TEXT) {
            m->name_len = 0;
            m->name_zero = 0;
        }

        m->name_len += item->len;
        m->name_zero |= item->len
                        && memchr(item->data, '\0', item->len) != NULL;

        if (m->conf.container == XET_ZT_CONTAINER_2
            && !item->more
            && m->name_len <= m->limits.name
            && (m->name_len == 0 || m->name_zero))
        {
            return XET_ZT_NAME;
        }
    }

    if (m->cbor.depth == m->skip_depth && !item->more) {
        return xet_zt_skip_end(m, item);
    }

    return XET_OK;
}


static xet_status_t
xet_zt_skip_end(xet_zt_manifest_t *m, const xet_cbor_item_t *item)
{
    xet_status_t       rc;
    xet_zt_text_t     *text;
    xet_zt_capture_t  *capture;

    m->skip = 0;
    m->skip_attributes = 0;

    m->state = m->skip_key ? xet_zt_at_value : xet_zt_at_key;
    m->skip_key = 0;

    capture = m->capture;
    m->capture = NULL;

    if (capture == NULL) {
        return XET_OK;
    }

    rc = xet_zt_capture_end(capture, m->cbor.p, (int) item->indefinite);

    text = (capture == &m->attributes) ? &m->object.attributes
                                       : &m->root.attributes;

    if (capture->cut) {
        m->object.attributes_cut |= (capture == &m->attributes);
        m->root.attributes_cut |= (capture == &m->root_attributes);

    } else {
        text->data = capture->data;
        text->len = capture->len;
    }

    return rc;
}


/*
 * Skips the map of attributes that begins with item, and copies it if the
 * caller wants it.  The parser does not interpret attributes.  A response has
 * attributes at a different place than the manifest, so their bytes are
 * copied.
 *
 * A piece may end anywhere in the map, even in its head.  So the head is not
 * copied: the copy is always a map of indefinite length, whose head is one
 * byte.
 */

xet_status_t
xet_zt_skip_attributes(xet_zt_manifest_t *m, const xet_cbor_item_t *item)
{
    if (item->kind != XET_CBOR_MAP) {
        return XET_ZT_MANIFEST;
    }

    m->skip = 1;
    m->skip_attributes = 1;
    m->skip_depth = m->cbor.depth - 1;

    if (m->record == XET_ZT_RECORD_ROOT) {
        m->capture = &m->root_attributes;

    } else if (m->conf.attributes) {
        m->capture = &m->attributes;

    } else {
        return XET_OK;
    }

    return xet_zt_capture_begin(m->capture, m->cbor.p);
}


/*
 * Starts the copy of a map whose head ends at p.  xet_zt_capture_end() ends
 * the copy at the end of the map, after the break if the map has an indefinite
 * length.  A map that exceeds the limit is not an error, but sets c->cut.
 */

static xet_status_t
xet_zt_capture_begin(xet_zt_capture_t *c, const uint8_t *p)
{
    static const uint8_t  head[1] = { XET_ZT_CAPTURE_MAP };

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


static xet_status_t
xet_zt_capture_end(xet_zt_capture_t *c, const uint8_t *p, int indefinite)
{
    xet_status_t  rc;

    static const uint8_t  end[1] = { XET_ZT_CAPTURE_BREAK };

    rc = xet_zt_capture_break(c, p);

    if (rc == XET_OK && !indefinite) {
        rc = xet_zt_capture_add(c, end, 1);
    }

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
