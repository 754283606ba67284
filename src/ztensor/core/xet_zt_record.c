
/*
 * The records of a manifest: objects, components and shards.
 *
 * Purpose:    interprets the items that are not skipped, by a table of fields,
 *             and passes each complete object to the handler.
 * States:     kept in the parser, see xet_zt_manifest.h.
 * Ownership:  the parser owns the texts of the current object.
 * Threads:    one at a time.
 *
 * Records nest in only one way (root, object, component; root, shard).  So the
 * parser needs no stack to return to the outer record.
 */


#include <stddef.h>
#include <string.h>

#include "xet_zt_manifest.h"


static xet_status_t xet_zt_record_key(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_record_value(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_record_list(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item, xet_zt_record_t record);
static xet_status_t xet_zt_record_number(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_record_name(xet_zt_manifest_t *m,
    const xet_cbor_item_t *item);
static xet_status_t xet_zt_record_close(xet_zt_manifest_t *m);
static xet_status_t xet_zt_record_object(xet_zt_manifest_t *m);
static xet_status_t xet_zt_record_text_end(xet_zt_manifest_t *m);
static xet_status_t xet_zt_record_field(xet_zt_manifest_t *m);
static int xet_zt_record_field_is(const xet_zt_manifest_t *m,
    const xet_zt_field_t *field);
static xet_status_t xet_zt_record_named(xet_zt_manifest_t *m,
    xet_zt_text_t *text);
static xet_status_t xet_zt_record_set(xet_zt_manifest_t *m,
    xet_zt_text_t *text);
static void *xet_zt_record_member(xet_zt_manifest_t *m);
static xet_status_t xet_zt_record_version(xet_zt_manifest_t *m,
    xet_zt_text_t *text);
static int xet_zt_name_valid(const uint8_t *name, size_t len);
static int xet_zt_shard_name_valid(const uint8_t *name, size_t len);
static int xet_zt_digest_valid(const uint8_t *digest, size_t len);


/*
 * The fields of records.  Container 1 (1.1 with the additions of 1.2) and
 * container 2 differ mostly in field names.  A field that is not in this table
 * is skipped, in all versions.
 */

#define xet_zt_field(s, record)  s, sizeof(s) - 1, XET_ZT_RECORD_##record

static const xet_zt_field_t  xet_zt_fields[] = {

    { xet_zt_field("version", ROOT), 1, 1, 0, xet_zt_of_version, 0 },
    { xet_zt_field("attributes", ROOT), 3, 0, 1, xet_zt_of_attributes, 0 },
    { xet_zt_field("objects", ROOT), 3, 3, 0, xet_zt_of_objects, 0 },
    { xet_zt_field("shards", ROOT), 2, 0, 0, xet_zt_of_shards, 0 },

    { xet_zt_field("shape", OBJECT), 3, 3, 0, xet_zt_of_shape, 0 },
    { xet_zt_field("format", OBJECT), 1, 1, 0, xet_zt_of_text,
      offsetof(xet_zt_object_t, format) },
    { xet_zt_field("layout", OBJECT), 2, 2, 0, xet_zt_of_text,
      offsetof(xet_zt_object_t, format) },
    { xet_zt_field("attributes", OBJECT), 3, 0, 1, xet_zt_of_attributes, 0 },
    { xet_zt_field("components", OBJECT), 1, 1, 0, xet_zt_of_components, 0 },
    { xet_zt_field("parts", OBJECT), 2, 2, 0, xet_zt_of_components, 0 },

    { xet_zt_field("dtype", COMPONENT), 3, 3, 0, xet_zt_of_text,
      offsetof(xet_zt_component_t, dtype) },
    { xet_zt_field("type", COMPONENT), 3, 0, 1, xet_zt_of_text,
      offsetof(xet_zt_component_t, type) },
    { xet_zt_field("offset", COMPONENT), 1, 1, 0, xet_zt_of_integer,
      offsetof(xet_zt_component_t, offset) },
    { xet_zt_field("length", COMPONENT), 1, 1, 0, xet_zt_of_integer,
      offsetof(xet_zt_component_t, length) },
    { xet_zt_field("blob", COMPONENT), 2, 2, 0, xet_zt_of_blob, 0 },
    { xet_zt_field("shard", COMPONENT), 2, 0, 0, xet_zt_of_shard,
      offsetof(xet_zt_component_t, shard) },
    { xet_zt_field("encoding", COMPONENT), 3, 0, 1, xet_zt_of_text,
      offsetof(xet_zt_component_t, encoding) },
    { xet_zt_field("digest", COMPONENT), 3, 0, 1, xet_zt_of_digest,
      offsetof(xet_zt_component_t, digest) },
    { xet_zt_field("uncompressed_length", COMPONENT), 1, 0, 1,
      xet_zt_of_declared, offsetof(xet_zt_component_t, declared) },
    { xet_zt_field("decoded_length", COMPONENT), 2, 0, 0,
      xet_zt_of_declared, offsetof(xet_zt_component_t, declared) },

    { xet_zt_field("size", SHARD), 2, 2, 0, xet_zt_of_integer,
      offsetof(xet_zt_shard_t, size) },
    { xet_zt_field("digest", SHARD), 2, 2, 0, xet_zt_of_digest,
      offsetof(xet_zt_shard_t, digest) }
};

#define XET_ZT_FIELDS  (sizeof(xet_zt_fields) / sizeof(xet_zt_fields[0]))


void
xet_zt_record_require(xet_zt_manifest_t *m)
{
    unsigned               i;
    const xet_zt_field_t  *field;

    for (i = 0; i < XET_ZT_FIELDS; i++) {
        field = &xet_zt_fields[i];

        if (field->required & m->in) {
            m->required[field->record] |= (uint32_t) 1 << i;
        }
    }
}


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

    case xet_zt_at_root:
    case xet_zt_at_record:

        if (item->kind != XET_CBOR_MAP) {
            return XET_ZT_MANIFEST;
        }

        m->seen[m->record] = 0;
        m->state = xet_zt_at_key;

        return XET_OK;

    default: /* not reached: the decoder returns no item after the root */
        return XET_INTERNAL;
    }
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

    m->field = NULL;
    m->skip = 1;
    m->skip_key = 1;
    m->skip_depth = m->cbor.depth;

    return xet_zt_skip_item(m, item);
}


static xet_status_t
xet_zt_record_value(xet_zt_manifest_t *m, const xet_cbor_item_t *item)
{
    if (m->field == NULL) {
        m->skip = 1;
        m->skip_depth = m->cbor.depth - (item->kind == XET_CBOR_MAP
                                         || item->kind == XET_CBOR_ARRAY);
        return xet_zt_skip_item(m, item);
    }

    if (item->kind == XET_CBOR_SIMPLE
        && item->value == XET_CBOR_NULL
        && (m->field->null & m->in))
    {
        m->state = xet_zt_at_key;
        return XET_OK;
    }

    switch (m->field->kind) {

    case xet_zt_of_attributes:
        return xet_zt_skip_attributes(m, item);

    case xet_zt_of_objects:
        m->keys.exempt = m->cbor.depth;
        return xet_zt_record_list(m, item, XET_ZT_RECORD_OBJECT);

    case xet_zt_of_components:
        return xet_zt_record_list(m, item, XET_ZT_RECORD_COMPONENT);

    case xet_zt_of_shards:
        return xet_zt_record_list(m, item, XET_ZT_RECORD_SHARD);

    case xet_zt_of_shape:
    case xet_zt_of_blob:

        if (item->kind != XET_CBOR_ARRAY) {
            return XET_ZT_MANIFEST;
        }

        m->numbers = 0;
        m->state = xet_zt_at_number;
        return XET_OK;

    case xet_zt_of_declared:
    case xet_zt_of_integer:

        if (item->kind != XET_CBOR_UINT) {
            return XET_ZT_MANIFEST;
        }

        if (m->field->kind == xet_zt_of_declared) {
            m->component->has_declared = 1;
        }

        *(uint64_t *) xet_zt_record_member(m) = item->value;
        m->state = xet_zt_at_key;
        return XET_OK;

    default: /* a text */

        if (item->kind != XET_CBOR_TEXT) {
            return XET_ZT_MANIFEST;
        }

        return xet_zt_record_text(m, item);
    }
}


/* Opens a map from names to records. */

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


/*
 * Adds a number of a shape or blob.  Dimensions past XET_ZT_RANK_MAX are
 * counted, but not stored.
 */

static xet_status_t
xet_zt_record_number(xet_zt_manifest_t *m, const xet_cbor_item_t *item)
{
    if (item->kind == XET_CBOR_END) {

        if (m->field->kind == xet_zt_of_shape) {
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

    if (m->field->kind == xet_zt_of_shape) {

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

        /* a parser that started at a position stops after the objects */

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


/* Ends the open record and returns to the outer record. */

static xet_status_t
xet_zt_record_close(xet_zt_manifest_t *m)
{
    xet_zt_component_t  *c;

    if (m->record == XET_ZT_RECORD_ROOT) {

        /* missing fields are reported only if there are no trailing bytes */

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


/* Returns 1 if the record has all required fields. */

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


/*
 * Begins or continues a text.  A key selects the next field, a name opens a
 * record, and a value is checked by the rules of its field.
 *
 * A key is collected in m->key, and truncated if it is longer than every field
 * name.  Other texts are collected in m->text until the object ends.  That
 * buffer has room for all texts of an object at their maximum lengths: no
 * field occurs twice, and the number of components is limited.
 */

xet_status_t
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


/*
 * Finds the field of a key.  The records of a file have the same fields in the
 * same order, so the field that followed the last time is tried first.
 */

static xet_status_t
xet_zt_record_field(xet_zt_manifest_t *m)
{
    unsigned  i;
    uint8_t  *guess;

    m->field = NULL;
    m->state = xet_zt_at_value;

    guess = &m->guess[m->record][m->last_field];
    i = *guess;

    if (!xet_zt_record_field_is(m, &xet_zt_fields[i])) {

        for (i = 0; i < XET_ZT_FIELDS; i++) {
            if (xet_zt_record_field_is(m, &xet_zt_fields[i])) {
                break;
            }
        }

        if (i == XET_ZT_FIELDS) {
            return XET_OK;
        }

        *guess = (uint8_t) i;
    }

    if (m->seen[m->record] & (uint32_t) 1 << i) {
        return XET_ZT_DUPLICATE;
    }

    m->seen[m->record] |= (uint32_t) 1 << i;
    m->field = &xet_zt_fields[i];
    m->last_field = i;

    return XET_OK;
}


static int
xet_zt_record_field_is(const xet_zt_manifest_t *m, const xet_zt_field_t *field)
{
    return field->record == m->record
           && (field->in & m->in)
           && field->len == m->key_len
           && memcmp(field->name, m->key, m->key_len) == 0;
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
    switch (m->field->kind) {

    case xet_zt_of_version:
        return xet_zt_record_version(m, text);

    case xet_zt_of_shard:

        if (!xet_zt_shard_name_valid(text->data, text->len)) {
            return XET_ZT_SHARD_NAME;
        }

        break;

    case xet_zt_of_digest:

        if (m->conf.container == XET_ZT_CONTAINER_2
            && !xet_zt_digest_valid(text->data, text->len))
        {
            return XET_ZT_MANIFEST;
        }

        break;

    default: /* xet_zt_of_text */
        break;
    }

    *(xet_zt_text_t *) xet_zt_record_member(m) = *text;

    return XET_OK;
}


/* Returns the address of the field's member in the open record. */

static void *
xet_zt_record_member(xet_zt_manifest_t *m)
{
    void  *record;

    switch (m->record) {

    case XET_ZT_RECORD_OBJECT:
        record = &m->object;
        break;

    case XET_ZT_RECORD_COMPONENT:
        record = m->component;
        break;

    default: /* XET_ZT_RECORD_SHARD; the root has no such fields */
        record = &m->shard;
    }

    return (uint8_t *) record + m->field->offset;
}


/* Checks the version: any 1.x is valid; only 1.1 and 1.2 cause no warning. */

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


/*
 * Checks a name by sections 3.4, 3.5 and 7.1 of the specification of container
 * 2; 1.x has no such rules.  The decoder has checked that the name is UTF-8.
 * This function does not limit the length of a name.
 */

static int
xet_zt_name_valid(const uint8_t *name, size_t len)
{
    return len != 0 && memchr(name, '\0', len) == NULL;
}


static int
xet_zt_shard_name_valid(const uint8_t *name, size_t len)
{
    size_t   i;
    uint8_t  c;

    if (len == 0 || len > XET_ZT_SHARD_MAX || name[0] == '.') {
        return 0;
    }

    for (i = 0; i < len; i++) {
        c = name[i];

        if (!xet_is_alnum(c) && c != '.' && c != '_' && c != '-') {
            return 0;
        }
    }

    return 1;
}


/* Accepts "algorithm:hex" in lower case, with any algorithm. */

static int
xet_zt_digest_valid(const uint8_t *digest, size_t len)
{
    size_t  i, n;

    for (n = 0; n < len && digest[n] != ':'; n++) {
        if (!(digest[n] >= 'a' && digest[n] <= 'z')
            && !(digest[n] >= '0' && digest[n] <= '9'))
        {
            return 0;
        }
    }

    if (n == 0 || len - n < 2) {
        return 0;
    }

    for (i = n + 1; i < len; i++) {
        if (!(digest[i] >= '0' && digest[i] <= '9')
            && !(digest[i] >= 'a' && digest[i] <= 'f'))
        {
            return 0;
        }
    }

    return 1;
}
