
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
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt_manifest.h"


#define XET_ZT_SELF_DESCRIBED  55799   /* the tag, RFC 8949, 3.4.6 */

/* name and format of an object; six texts of a component */
#define XET_ZT_TEXTS(roles)    (2 + 6 * (size_t) (roles))

#define XET_ZT_OBJECTS_DEPTH   2       /* inside the map of objects */

#define XET_ZT_IN_1            1
#define XET_ZT_IN_2            2


static xet_status_t xet_zt_manifest_item(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_manifest_mean(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);


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

            /* m->pos stays at the start of a string while its parts arrive */

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
 * Checks the meaning of an item first, and then, if the item is a key, whether
 * the key is a duplicate.  An unexpected string is an error at its start, a
 * duplicate key only at its end.  In this order, the error does not depend on
 * how strings are split between pieces.
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
        return xet_zt_skip_item(m, item);
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
