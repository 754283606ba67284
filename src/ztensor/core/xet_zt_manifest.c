
/*
 * The parser of a manifest: turns CBOR items into objects.
 *
 * Purpose:    reads a manifest in one pass, in pieces of any size.  A complete
 *             object is passed to the handler and then forgotten.  Apart from
 *             the keys (xet_zt_keys.c), memory does not grow with objects.
 * States:     what the next item must be: the root, a key or a value of a
 *             record, a number of a shape, a name in a map of records, or a
 *             record.  In addition, a text may be incomplete, and a value may
 *             be skipped.  The first error is kept.
 * Ownership:  the parser owns the texts of the current object, in a buffer of
 *             fixed size, and the attributes.
 * Threads:    one at a time.
 *
 * The value of an unknown field is skipped item by item, under the same limits
 * as other values.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt_manifest.h"


#define XET_ZT_SELF_DESCRIBED  55799   /* the tag, RFC 8949, 3.4.6 */

/* name and format of an object; six texts of a component */
#define XET_ZT_TEXTS(roles)    (2 + 6 * (size_t) (roles))

#define XET_ZT_OBJECTS_DEPTH   2       /* inside the map of objects */

#define XET_ZT_CAPTURE_FIRST   256
#define XET_ZT_CAPTURE_MAP     0xbf
#define XET_ZT_CAPTURE_BREAK   0xff

#define XET_ZT_IN_1            1
#define XET_ZT_IN_2            2


static xet_status_t xet_zt_manifest_item(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_manifest_mean(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_manifest_skipped(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_capture_begin(xet_zt_capture_t *c,
    const uint8_t *p);
static xet_status_t xet_zt_capture_break(xet_zt_capture_t *c,
    const uint8_t *p);
static xet_status_t xet_zt_capture_end(xet_zt_capture_t *c, const uint8_t *p,
    int indefinite);
static xet_status_t xet_zt_capture_add(xet_zt_capture_t *c,
    const uint8_t *data, size_t len);


xet_zt_manifest_t *
xet_zt_manifest_create(const xet_zt_manifest_conf_t *conf)
{
    unsigned            flags;
    xet_zt_manifest_t  *m;

    m = calloc(1, sizeof(xet_zt_manifest_t));
    if (m == NULL) {
        return NULL;
    }

    m->conf = *conf;
    m->limits = *conf->limits;
    m->whole = (conf->from == NULL);
    m->status = XET_AGAIN;

    flags = 0;
    m->in = XET_ZT_IN_1;

    if (conf->container == XET_ZT_CONTAINER_2) {
        flags = XET_CBOR_DETERMINISTIC;
        m->in = XET_ZT_IN_2;
    }

    xet_zt_record_require(m);

    xet_cbor_init(&m->cbor, conf->size, m->limits.depth, flags);

    if (conf->from) {
        m->cbor.size = conf->from->end;

        xet_cbor_resume(&m->cbor, conf->from->pos, XET_ZT_OBJECTS_DEPTH,
                        conf->from->count - conf->from->index);

        m->root.count = conf->from->index;
        m->record = XET_ZT_RECORD_OBJECT;
        m->state = xet_zt_at_name;
    }

    m->root_attributes.limit = m->limits.attributes;
    m->attributes.limit = m->limits.attributes;

    m->text_room = XET_ZT_TEXTS(m->limits.roles) * m->limits.name;
    m->text = malloc(m->text_room ? m->text_room : 1);

    m->object.components = malloc((m->limits.roles + 1)
                                  * sizeof(xet_zt_component_t));

    if (m->text == NULL || m->object.components == NULL
        || xet_zt_keys_init(&m->keys, flags, m->limits.keys, m->limits.name)
           != XET_OK)
    {
        xet_zt_manifest_destroy(m);
        return NULL;
    }

    return m;
}


void
xet_zt_manifest_destroy(xet_zt_manifest_t *m)
{
    if (m == NULL) {
        return;
    }

    xet_zt_keys_destroy(&m->keys);

    free(m->root_attributes.data);
    free(m->attributes.data);
    free(m->object.components);
    free(m->text);
    free(m);
}


xet_status_t
xet_zt_manifest_feed(xet_zt_manifest_t *m, const uint8_t *data, size_t len)
{
    xet_status_t     rc;
    xet_cbor_item_t  item;

    if (m->status != XET_AGAIN) {
        return m->status;
    }

    xet_cbor_feed(&m->cbor, data, len);

    if (m->capture) {
        m->capture->mark = m->cbor.p;
    }

    for ( ;; ) {
        rc = xet_cbor_next(&m->cbor, &item);

        if (rc == XET_OK) {

            /* the position of a string is its start, in any piece */

            if (item.kind != XET_CBOR_DATA) {
                m->pos = item.pos;
            }

            rc = xet_zt_manifest_item(m, &item);
            if (rc == XET_OK) {
                continue;
            }

            break;
        }

        m->pos = m->cbor.head_pos;

        if (rc == XET_DONE && !xet_zt_record_complete(m, XET_ZT_RECORD_ROOT)) {
            rc = XET_ZT_MISSING;
            break;
        }

        if (rc == XET_AGAIN && m->capture) {
            rc = xet_zt_capture_break(m->capture, m->cbor.p);
            rc = (rc == XET_OK) ? XET_AGAIN : rc;
        }

        break;
    }

    m->status = rc;

    return rc;
}


uint64_t
xet_zt_manifest_pos(const xet_zt_manifest_t *m)
{
    return m->pos;
}


const xet_zt_root_t *
xet_zt_manifest_root(const xet_zt_manifest_t *m)
{
    return &m->root;
}


/*
 * Checks the meaning of an item before keys.  An unexpected string is an error
 * at its start, a duplicate key only at its end.  In this order, the error
 * does not depend on how strings are split between pieces.
 */

static xet_status_t
xet_zt_manifest_item(xet_zt_manifest_t *m, const xet_cbor_item_t *item)
{
    xet_status_t  rc;

    rc = xet_zt_manifest_mean(m, item);

    if (rc == XET_OK && m->whole) {
        rc = xet_zt_keys_item(&m->keys, item, m->cbor.depth);
    }

    return rc;
}


static xet_status_t
xet_zt_manifest_mean(xet_zt_manifest_t *m, const xet_cbor_item_t *item)
{
    if (m->skip) {
        return xet_zt_manifest_skip(m, item);
    }

    if (m->text_open) {
        return xet_zt_record_text(m, item);
    }

    if (item->tags
        && (m->state != xet_zt_at_root || item->tags > 1
            || item->tag != XET_ZT_SELF_DESCRIBED)
        && (m->state != xet_zt_at_value || m->field != NULL))
    {
        return XET_ZT_MANIFEST;
    }

    return xet_zt_record_item(m, item);
}


/*
 * Skips an item of a value that is not interpreted, or of a key that is not
 * text; m->skip_depth is the depth around the value or key.  The names of
 * attributes are checked; the head of their map is not passed to this
 * function.
 */

xet_status_t
xet_zt_manifest_skip(xet_zt_manifest_t *m, const xet_cbor_item_t *item)
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
        return xet_zt_manifest_skipped(m, item);
    }

    return XET_OK;
}


static xet_status_t
xet_zt_manifest_skipped(xet_zt_manifest_t *m, const xet_cbor_item_t *item)
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
 * Skips the map that begins with item, and copies it if the caller wants it.
 * The parser does not interpret attributes.  The response has them at another
 * position than the manifest, so their bytes are copied.
 *
 * A piece may end anywhere in the map, even in its head.  So the head is not
 * copied: the copy is always a map of indefinite length, whose head is one
 * byte.
 */

xet_status_t
xet_zt_manifest_attributes(xet_zt_manifest_t *m, const xet_cbor_item_t *item)
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
 * Starts the copy of a map whose head ends at p.  xet_zt_capture_end() ends it
 * at p; a map of indefinite length has its break before p.  A map that exceeds
 * the limit is not an error, but sets c->cut.
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


/* Copies the bytes of the piece up to p. */

static xet_status_t
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
