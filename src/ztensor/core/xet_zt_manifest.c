
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
 * Records nest in one way only (root, object, component; root, shard), so the
 * record that goes on when another has ended needs no stack.
 *
 * A text is put together from its parts: a key says which field is next, a
 * name opens a record, a value has the rules of its field.  A key is in
 * m->key, cut off where it is longer than any field; all other texts are in
 * the buffer m->text until the object ends.  The buffer holds all texts of one
 * object at their largest: no field comes twice, and the components are
 * counted.
 *
 * The value of an unknown field is skipped item by item, under the same limits
 * as the rest.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt.h"


#define XET_ZT_SELF_DESCRIBED  55799   /* the tag, RFC 8949, 3.4.6 */

/* name and format of an object; six texts of a component */
#define XET_ZT_TEXTS(roles)    (2 + 6 * (size_t) (roles))

#define XET_ZT_OBJECTS_DEPTH   2       /* inside of the map of objects */


typedef enum {
    xet_zt_at_root = 0,
    xet_zt_at_key,
    xet_zt_at_value,
    xet_zt_at_number,
    xet_zt_at_name,
    xet_zt_at_record,
    xet_zt_at_end
} xet_zt_state_t;


struct xet_zt_manifest_s {
    xet_zt_manifest_conf_t  conf;
    xet_zt_limits_t         limits;

    xet_cbor_t              cbor;
    xet_zt_keys_t           keys;
    unsigned                whole:1;       /* read from the start */
    unsigned                text_open:1;
    unsigned                skip:1;
    unsigned                skip_attributes:1;
    unsigned                skip_key:1;
    unsigned                skip_depth;
    unsigned                name_zero:1;   /* in an attribute's name */
    uint64_t                name_len;

    xet_status_t            status;
    uint64_t                pos;

    xet_zt_state_t          state;
    xet_zt_record_t         record;        /* open, or those of the open map */
    xet_zt_field_t          field;
    uint32_t                seen[XET_ZT_RECORD_SHARD + 1];
    uint32_t                required[XET_ZT_RECORD_SHARD + 1];
    unsigned                numbers;

    uint8_t                 key[XET_ZT_FIELD_MAX];
    size_t                  key_len;

    uint8_t                *text;          /* the buffer */
    size_t                  text_room;
    size_t                  text_len;
    size_t                  text_start;    /* of the open text */

    xet_zt_root_t           root;
    xet_zt_object_t         object;
    xet_zt_component_t     *component;
    xet_zt_shard_t          shard;

    xet_zt_capture_t        root_attributes;
    xet_zt_capture_t        attributes;
    xet_zt_capture_t       *capture;       /* the open one, or NULL */
};


static xet_status_t xet_zt_manifest_item(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_manifest_mean(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_manifest_skip(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_manifest_skipped(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_manifest_attributes(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_record_item(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static void xet_zt_record_open(xet_zt_manifest_t *m, xet_zt_record_t record);
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
static int xet_zt_record_complete(const xet_zt_manifest_t *m,
    xet_zt_record_t record);
static xet_status_t xet_zt_record_object(xet_zt_manifest_t *m);
static xet_status_t xet_zt_record_text(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_record_text_end(xet_zt_manifest_t *m);
static xet_status_t xet_zt_record_field(xet_zt_manifest_t *m);
static xet_status_t xet_zt_record_named(xet_zt_manifest_t *m,
    xet_zt_text_t *text);
static xet_status_t xet_zt_record_set(xet_zt_manifest_t *m,
    xet_zt_text_t *text);
static xet_status_t xet_zt_record_version(xet_zt_manifest_t *m,
    xet_zt_text_t *text);


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

            /* the place of a string is where it begins, however it is cut */

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
 * The meaning is checked before the keys: a string that has no place here is
 * found where the string begins, a key that comes twice only where the key
 * ends, and an error must not depend on how much of a string the window has.
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
 * Skips an item of a value that is not interpreted, or of a key that is not
 * text; m->skip_depth is the depth around the value or key.  Of attributes the
 * names are checked; the head of their map is not passed to this function.
 */

static xet_status_t
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


/* The map that begins with item is skipped, and kept if it is wanted. */

static xet_status_t
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


/* What the items of a record mean; never called while skipping. */

static xet_status_t
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


static void
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

    /* container 2 ignores unknown keys, even those that are not text */

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


/* Opens a map of names to records. */

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


/* Dimensions past XET_ZT_RANK_MAX are counted, but not kept. */

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

        /* a parser that began amidst the objects reads nothing after them */

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


/* Ends the open record; the record around it goes on. */

static xet_status_t
xet_zt_record_close(xet_zt_manifest_t *m)
{
    xet_zt_component_t  *c;

    if (m->record == XET_ZT_RECORD_ROOT) {

        /* missing fields are an error only after trailing bytes */

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


/* Whether the record has had all fields that it must have. */

static int
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


/* A text begins or goes on. */

static xet_status_t
xet_zt_record_text(xet_zt_manifest_t *m, const xet_cbor_item_t *item)
{
    size_t  len;

    if (!m->text_open) {
        m->text_open = 1;
        m->text_start = m->text_len;
    }

    len = item->len;

    if (m->state == xet_zt_at_key) {

        if (len > XET_ZT_FIELD_MAX - m->key_len) {
            len = XET_ZT_FIELD_MAX - m->key_len;
        }

        if (len) {
            memcpy(m->key + m->key_len, item->data, len);
            m->key_len += len;
        }

    } else {

        if (len > m->limits.name - (m->text_len - m->text_start)) {
            return XET_ZT_NAME_LEN;
        }

        if (len) {
            memcpy(m->text + m->text_len, item->data, len);
            m->text_len += len;
        }
    }

    if (item->more) {
        return XET_OK;
    }

    m->text_open = 0;

    return xet_zt_record_text_end(m);
}


static xet_status_t
xet_zt_record_text_end(xet_zt_manifest_t *m)
{
    xet_zt_text_t  text;

    text.data = m->text + m->text_start;
    text.len = m->text_len - m->text_start;

    switch (m->state) {

    case xet_zt_at_key:
        return xet_zt_record_field(m);

    case xet_zt_at_name:
        return xet_zt_record_named(m, &text);

    default: /* xet_zt_at_value */
        m->state = xet_zt_at_key;
        return xet_zt_record_set(m, &text);
    }
}


static xet_status_t
xet_zt_record_field(xet_zt_manifest_t *m)
{
    m->field = xet_zt_field_find(m->conf.container, m->record, m->key,
                                 m->key_len);

    if (m->field != XET_ZT_FIELD_UNKNOWN) {

        if (m->seen[m->record] & xet_zt_field_bit(m->field)) {
            return XET_ZT_DUPLICATE;
        }

        m->seen[m->record] |= xet_zt_field_bit(m->field);
    }

    m->state = xet_zt_at_value;

    return XET_OK;
}


static xet_status_t
xet_zt_record_named(xet_zt_manifest_t *m, xet_zt_text_t *text)
{
    if (m->record == XET_ZT_RECORD_SHARD) {

        if (!xet_zt_shard_name_valid(text->data, text->len)) {
            return XET_ZT_SHARD_NAME;
        }

        m->shard.name = *text;

    } else {

        if (m->conf.container == XET_ZT_CONTAINER_2
            && !xet_zt_name_valid(text->data, text->len))
        {
            return XET_ZT_NAME;
        }

        if (m->record == XET_ZT_RECORD_OBJECT) {
            m->object.name = *text;

        } else {
            m->component->role = *text;
        }
    }

    m->state = xet_zt_at_record;

    return XET_OK;
}


static xet_status_t
xet_zt_record_set(xet_zt_manifest_t *m, xet_zt_text_t *text)
{
    switch (m->field) {

    case XET_ZT_FIELD_VERSION:
        return xet_zt_record_version(m, text);

    case XET_ZT_FIELD_FORMAT:
        m->object.format = *text;
        return XET_OK;

    case XET_ZT_FIELD_DTYPE:
        m->component->dtype = *text;
        return XET_OK;

    case XET_ZT_FIELD_TYPE:
        m->component->type = *text;
        return XET_OK;

    case XET_ZT_FIELD_ENCODING:
        m->component->encoding = *text;
        return XET_OK;

    case XET_ZT_FIELD_SHARD:

        if (!xet_zt_shard_name_valid(text->data, text->len)) {
            return XET_ZT_SHARD_NAME;
        }

        m->component->shard = *text;
        return XET_OK;

    default: /* XET_ZT_FIELD_DIGEST */

        if (m->conf.container == XET_ZT_CONTAINER_2
            && !xet_zt_digest_valid(text->data, text->len))
        {
            return XET_ZT_MANIFEST;
        }

        if (m->record == XET_ZT_RECORD_SHARD) {
            m->shard.digest = *text;

        } else {
            m->component->digest = *text;
        }

        return XET_OK;
    }
}


/* Any 1.x is read; only 1.1 and 1.2 are known to be read as they are meant. */

static xet_status_t
xet_zt_record_version(xet_zt_manifest_t *m, xet_zt_text_t *text)
{
    if (text->len > XET_ZT_VERSION_MAX
        || text->len == 0 || text->data[0] != '1'
        || (text->len > 1 && text->data[1] != '.'))
    {
        return XET_ZT_VERSION;
    }

    m->root.version_known = text->len >= 3
                            && (text->data[2] == '1' || text->data[2] == '2')
                            && (text->len == 3 || text->data[3] == '.');

    memcpy(m->root.version, text->data, text->len);
    m->root.version_len = text->len;

    m->text_len = 0;

    return XET_OK;
}
