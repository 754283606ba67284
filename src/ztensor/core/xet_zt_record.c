
/*
 * The records of a manifest.
 *
 * Purpose:    what an item means by the place where it stands: key, value,
 *             dimension, name or record; objects put together and handed
 *             over.  What a text says is for xet_zt_record_text.c.
 * States:     m->state, and the record and the field that are open.  Records
 *             nest in one way only (root, object, component; root, shard), so
 *             the one that goes on when another has ended needs no stack.
 * Ownership:  as xet_zt_manifest.c says.
 * Threads:    one at a time.
 */


#include <string.h>

#include "xet_zt_record.h"


static xet_status_t xet_zt_record_key(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_record_value(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_record_list(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item, xet_zt_record_t record);
static xet_status_t xet_zt_record_integer(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item, uint64_t *value);
static xet_status_t xet_zt_record_number(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_record_name(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_record_close(xet_zt_manifest_t *m);
static xet_status_t xet_zt_record_object(xet_zt_manifest_t *m);


xet_status_t
xet_zt_record_item(xet_zt_manifest_t *m, const xet_cbor_item_t *item)
{
    switch (m->state) {

    case xet_zt_at_key:
        return xet_zt_record_key(m, item);

    case xet_zt_at_value:
        return xet_zt_record_value(m, item);

    case xet_zt_at_number:
        return xet_zt_record_number(m, item);

    case xet_zt_at_name:
        return xet_zt_record_name(m, item);

    case xet_zt_at_record:

        if (item->kind != XET_CBOR_MAP) {
            return XET_ZT_MANIFEST;
        }

        xet_zt_record_open(m, m->record);
        return XET_OK;

    default: /* the decoder gives nothing after the root */
        return XET_INTERNAL;
    }
}


void
xet_zt_record_open(xet_zt_manifest_t *m, xet_zt_record_t record)
{
    m->record = record;
    m->seen[record] = 0;
    m->state = xet_zt_at_key;
}


static xet_status_t
xet_zt_record_key(xet_zt_manifest_t *m, const xet_cbor_item_t *item)
{
    if (item->kind == XET_CBOR_END) {
        return xet_zt_record_close(m);
    }

    if (item->kind == XET_CBOR_TEXT) {
        m->key_len = 0;
        return xet_zt_record_text(m, item);
    }

    /* container 2 ignores what it does not know, be it no text */

    if (m->conf.container != XET_ZT_CONTAINER_2) {
        return XET_ZT_MANIFEST;
    }

    m->field = XET_ZT_FIELD_UNKNOWN;
    m->skip = 1;
    m->skip_key = 1;
    m->skip_depth = m->cbor.depth;

    return xet_zt_manifest_skip(m, item);
}


static xet_status_t
xet_zt_record_value(xet_zt_manifest_t *m, const xet_cbor_item_t *item)
{
    xet_zt_component_t  *c;

    c = m->component;

    if (item->kind == XET_CBOR_SIMPLE
        && item->value == XET_CBOR_NULL
        && xet_zt_field_nullable(m->conf.container, m->field))
    {
        m->state = xet_zt_at_key;
        return XET_OK;
    }

    switch (m->field) {

    case XET_ZT_FIELD_UNKNOWN:
        m->skip = 1;
        m->skip_depth = m->cbor.depth - (item->kind == XET_CBOR_MAP
                                         || item->kind == XET_CBOR_ARRAY);
        return xet_zt_manifest_skip(m, item);

    case XET_ZT_FIELD_ATTRIBUTES:
        return xet_zt_manifest_attributes(m, item);

    case XET_ZT_FIELD_OBJECTS:
        m->keys.exempt = m->cbor.depth;
        return xet_zt_record_list(m, item, XET_ZT_RECORD_OBJECT);

    case XET_ZT_FIELD_COMPONENTS:
        return xet_zt_record_list(m, item, XET_ZT_RECORD_COMPONENT);

    case XET_ZT_FIELD_SHARDS:
        return xet_zt_record_list(m, item, XET_ZT_RECORD_SHARD);

    case XET_ZT_FIELD_SHAPE:
    case XET_ZT_FIELD_BLOB:

        if (item->kind != XET_CBOR_ARRAY) {
            return XET_ZT_MANIFEST;
        }

        m->numbers = 0;
        m->state = xet_zt_at_number;
        return XET_OK;

    case XET_ZT_FIELD_OFFSET:
        return xet_zt_record_integer(m, item, &c->offset);

    case XET_ZT_FIELD_LENGTH:
        return xet_zt_record_integer(m, item, &c->length);

    case XET_ZT_FIELD_DECODED:
        c->has_declared = 1;
        return xet_zt_record_integer(m, item, &c->declared);

    case XET_ZT_FIELD_SIZE:
        return xet_zt_record_integer(m, item, &m->shard.size);

    default: /* a text */

        if (item->kind != XET_CBOR_TEXT) {
            return XET_ZT_MANIFEST;
        }

        return xet_zt_record_text(m, item);
    }
}


/* A map of names to records. */

static xet_status_t
xet_zt_record_list(xet_zt_manifest_t *m, const xet_cbor_item_t *item,
    xet_zt_record_t record)
{
    if (item->kind != XET_CBOR_MAP) {
        return XET_ZT_MANIFEST;
    }

    if (record == XET_ZT_RECORD_OBJECT && item->value > m->limits.objects) {
        return XET_ZT_OBJECTS;
    }

    m->record = record;
    m->state = xet_zt_at_name;

    return XET_OK;
}


static xet_status_t
xet_zt_record_integer(xet_zt_manifest_t *m, const xet_cbor_item_t *item,
    uint64_t *value)
{
    if (item->kind != XET_CBOR_UINT) {
        return XET_ZT_MANIFEST;
    }

    *value = item->value;
    m->state = xet_zt_at_key;

    return XET_OK;
}


/* Dimensions are counted past the end of their array. */

static xet_status_t
xet_zt_record_number(xet_zt_manifest_t *m, const xet_cbor_item_t *item)
{
    if (item->kind == XET_CBOR_END) {

        if (m->field == XET_ZT_FIELD_SHAPE) {
            m->object.rank = m->numbers;

        } else if (m->numbers != 2) {
            return XET_ZT_MANIFEST;
        }

        m->state = xet_zt_at_key;
        return XET_OK;
    }

    if (item->kind != XET_CBOR_UINT) {
        return XET_ZT_MANIFEST;
    }

    if (m->field == XET_ZT_FIELD_SHAPE) {

        if (m->numbers < XET_ZT_RANK_MAX) {
            m->object.shape[m->numbers] = item->value;
        }

    } else if (m->numbers == 0) {
        m->component->offset = item->value;

    } else {
        m->component->length = item->value;
    }

    m->numbers++;

    return XET_OK;
}


static xet_status_t
xet_zt_record_name(xet_zt_manifest_t *m, const xet_cbor_item_t *item)
{
    xet_zt_component_t  *components;

    if (item->kind == XET_CBOR_END) {

        if (m->record == XET_ZT_RECORD_OBJECT) {
            m->root.end = item->pos;
            m->keys.exempt = 0;
        }

        /* nothing is read behind the objects when entered amidst them */

        if (m->record == XET_ZT_RECORD_OBJECT && !m->whole) {
            return XET_DONE;
        }

        m->record = (m->record == XET_ZT_RECORD_COMPONENT)
                    ? XET_ZT_RECORD_OBJECT : XET_ZT_RECORD_ROOT;
        m->state = xet_zt_at_key;

        return XET_OK;
    }

    if (item->kind != XET_CBOR_TEXT) {
        return XET_ZT_MANIFEST;
    }

    switch (m->record) {

    case XET_ZT_RECORD_OBJECT:

        if (m->root.count >= m->limits.objects) {
            return XET_ZT_OBJECTS;
        }

        components = m->object.components;

        memset(&m->object, 0, sizeof(xet_zt_object_t));

        m->object.components = components;
        m->object.index = m->root.count;
        m->object.pos = item->pos;

        m->text_len = 0;
        break;

    case XET_ZT_RECORD_COMPONENT:

        if (m->object.n == m->limits.roles
            || m->root.components >= m->limits.components)
        {
            return XET_ZT_COMPONENTS;
        }

        m->component = &m->object.components[m->object.n];

        memset(m->component, 0, sizeof(xet_zt_component_t));
        break;

    default: /* XET_ZT_RECORD_SHARD */
        memset(&m->shard, 0, sizeof(xet_zt_shard_t));
        m->text_len = 0;
    }

    return xet_zt_record_text(m, item);
}


/* The end of a record; the one around it goes on. */

static xet_status_t
xet_zt_record_close(xet_zt_manifest_t *m)
{
    xet_zt_component_t  *c;

    if (m->record == XET_ZT_RECORD_ROOT) {

        /* that bytes follow it is worse than that something is missing */

        m->state = xet_zt_at_end;
        return XET_OK;
    }

    if (!xet_zt_record_complete(m, m->record)) {
        return XET_ZT_MISSING;
    }

    m->state = xet_zt_at_name;

    switch (m->record) {

    case XET_ZT_RECORD_OBJECT:
        return xet_zt_record_object(m);

    case XET_ZT_RECORD_COMPONENT:
        c = m->component;

        if (m->conf.container == XET_ZT_CONTAINER_2
            && (c->encoding.data != NULL) != c->has_declared)
        {
            return XET_ZT_MANIFEST;
        }

        m->object.n++;
        m->root.components++;

        return XET_OK;

    default: /* XET_ZT_RECORD_SHARD */
        return m->conf.shard ? m->conf.shard(m->conf.ctx, &m->shard) : XET_OK;
    }
}


int
xet_zt_record_complete(const xet_zt_manifest_t *m, xet_zt_record_t record)
{
    return (m->seen[record] & m->required[record]) == m->required[record];
}


static xet_status_t
xet_zt_record_object(xet_zt_manifest_t *m)
{
    xet_status_t  rc;

    if (m->conf.container == XET_ZT_CONTAINER_2 && m->object.n == 0) {
        return XET_ZT_MISSING;
    }

    rc = m->conf.object(m->conf.ctx, &m->object);

    if (rc != XET_OK) {
        return (rc == XET_AGAIN) ? XET_INTERNAL : rc;
    }

    m->root.count++;

    return XET_OK;
}
