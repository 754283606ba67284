
/*
 * The texts of a manifest's records: keys, names and values.
 *
 * Purpose:    a text is put together from its parts; a key says which field
 *             is next, a name opens a record, a value has the rules of its
 *             field.
 * States:     m->text_open while parts are to come, and m->state: what the
 *             text is.  When it is whole, m->state is what comes next.
 * Ownership:  keys are in m->key, of which only the length is kept past the
 *             longest field; all else is in the buffer m->text until the
 *             object ends.
 * Threads:    one at a time.
 *
 * The buffer holds all texts of one object at their largest: no field comes
 * twice, and the components are counted.
 */


#include <string.h>

#include "xet_zt_name.h"
#include "xet_zt_record.h"


static xet_status_t xet_zt_record_text_end(xet_zt_manifest_t *m);
static xet_status_t xet_zt_record_field(xet_zt_manifest_t *m);
static xet_status_t xet_zt_record_named(xet_zt_manifest_t *m,
    xet_zt_text_t *text);
static xet_status_t xet_zt_record_set(xet_zt_manifest_t *m,
    xet_zt_text_t *text);
static xet_status_t xet_zt_record_version(xet_zt_manifest_t *m,
    xet_zt_text_t *text);


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


/* Any 1.x is read, but of 1.1 and 1.2 we know that we can. */

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
