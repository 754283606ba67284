
/*
 * The manifest, from CBOR items to objects.
 *
 * Purpose:    one pass over bytes that come in any pieces; an object is given
 *             to the handler when it is complete and is then forgotten, so a
 *             manifest of any number of objects takes the same memory.
 * States:     what the next item has to be: the root, a key or a value of a
 *             record, a number of a shape, a name in a map of records, a
 *             record.  Apart from these, whether a text has parts to come and
 *             whether a value is being skipped.  The first error stays.
 * Ownership:  the parser owns the texts of the object being read, in a buffer
 *             of fixed size, and the attributes.
 * Threads:    one at a time.
 *
 * A value that is not known is skipped item by item, under the same limits as
 * the rest.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt_record.h"


#define XET_ZT_SELF_DESCRIBED  55799   /* the tag, RFC 8949, 3.4.6 */

/* name and format of an object; six texts of a component */
#define XET_ZT_TEXTS(roles)    (2 + 6 * (size_t) (roles))

#define XET_ZT_OBJECTS_DEPTH   2       /* inside of the map of objects */


static xet_status_t xet_zt_manifest_item(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_manifest_mean(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_manifest_skipped(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);


void
xet_zt_limits_init(xet_zt_limits_t *limits)
{
    memset(limits, 0, sizeof(xet_zt_limits_t));

    limits->manifest = (uint64_t) 64 << 20;
    limits->objects = 1000000;
    limits->components = 2000000;
    limits->roles = 64;
    limits->rank = XET_ZT_RANK_MAX;
    limits->depth = XET_CBOR_DEPTH;
    limits->name = XET_ZT_NAME_MAX;
    limits->keys = 65536;
    limits->attributes = 1 << 20;
}


xet_zt_manifest_t *
xet_zt_manifest_create(const xet_zt_manifest_conf_t *conf)
{
    unsigned            i, flags;
    xet_zt_manifest_t  *m;

    m = calloc(1, sizeof(xet_zt_manifest_t));
    if (m == NULL) {
        return NULL;
    }

    m->conf = *conf;
    m->limits = *conf->limits;
    m->whole = (conf->from == NULL);
    m->status = XET_AGAIN;

    for (i = 0; i <= XET_ZT_RECORD_SHARD; i++) {
        m->required[i] = xet_zt_field_required(conf->container,
                                               (xet_zt_record_t) i);
    }

    flags = (conf->container == XET_ZT_CONTAINER_2) ? XET_CBOR_DETERMINISTIC
                                                    : 0;

    xet_cbor_init(&m->cbor, conf->size, m->limits.depth, flags);

    if (conf->from) {
        m->cbor.size = conf->from->end;

        xet_cbor_resume(&m->cbor, conf->from->pos, XET_ZT_OBJECTS_DEPTH,
                        conf->from->count - conf->from->index);

        m->root.count = conf->from->index;
        m->record = XET_ZT_RECORD_OBJECT;
        m->state = xet_zt_at_name;
    }

    xet_zt_capture_init(&m->root_attributes, m->limits.attributes);
    xet_zt_capture_init(&m->attributes, m->limits.attributes);

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
    xet_zt_capture_destroy(&m->root_attributes);
    xet_zt_capture_destroy(&m->attributes);

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
        xet_zt_capture_window(m->capture, m->cbor.p);
    }

    for ( ;; ) {
        rc = xet_cbor_next(&m->cbor, &item);

        if (rc == XET_OK) {

            /* a string is where it begins, however it is cut */

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
 * The meaning comes before the keys: it can tell by the begin of a string
 * what is wrong, they only by all of it, and an error must not depend on how
 * much of it the window has.
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
        && (m->state != xet_zt_at_value || m->field != XET_ZT_FIELD_UNKNOWN))
    {
        return XET_ZT_MANIFEST;
    }

    if (m->state != xet_zt_at_root) {
        return xet_zt_record_item(m, item);
    }

    if (item->kind != XET_CBOR_MAP) {
        return XET_ZT_MANIFEST;
    }

    xet_zt_record_open(m, XET_ZT_RECORD_ROOT);

    return XET_OK;
}


/*
 * A value that is not looked at, attributes for the most part.  The first
 * call is with the item that begins it.
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
