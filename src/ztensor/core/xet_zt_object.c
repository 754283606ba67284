
/*
 * What can be said of an object by its description alone; and its copies.
 *
 * Purpose:    the rules of one object: shape, names of types and encodings,
 *             and the range of each component.
 * States:     none.
 * Ownership:  an object is filled by the manifest parser; its texts live as
 *             long as the parser says.  What a walk hands over lives until its
 *             handler returns; a copy, in one piece of memory, is for those
 *             who need to read the data that the object describes.
 * Threads:    any, one at a time per object.
 *
 * An object that breaks a rule is invalid, an object with a name in it that is
 * not known here is unsupported: it is listed, its stored bytes are served,
 * but what they mean is not judged.  In container 1 neither concerns the other
 * objects; in container 2 one invalid object makes the file invalid, and so
 * does an unknown dtype, because the set of dtypes is closed there.
 *
 * No sum and no product is taken before it is known to fit.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt.h"


#define XET_ZT_COMPONENT_TEXTS  6


static void xet_zt_object_shape(xet_zt_object_t *o, unsigned rank_max);
static void xet_zt_component_check(xet_zt_object_t *o, xet_zt_component_t *c,
    const xet_zt_region_t *region);
static void xet_zt_component_types(xet_zt_object_t *o, xet_zt_component_t *c,
    xet_zt_container_t container);
static void xet_zt_component_coding(xet_zt_object_t *o, xet_zt_component_t *c,
    xet_zt_container_t container);
static void xet_zt_component_texts(xet_zt_component_t *c,
    xet_zt_text_t *texts[XET_ZT_COMPONENT_TEXTS]);
static void xet_zt_text_copy(xet_zt_text_t *text, uint8_t **p);


void
xet_zt_object_check(xet_zt_object_t *o, const xet_zt_region_t *region)
{
    unsigned  i;

    o->verdict = XET_ZT_OBJECT_OK;
    o->errors_n = 0;

    xet_zt_object_shape(o, region->rank_max);

    for (i = 0; i < o->n; i++) {
        xet_zt_component_check(o, &o->components[i], region);
    }

    xet_zt_format_check(o, region->container);
}


void
xet_zt_object_error(xet_zt_object_t *o, xet_status_t status)
{
    unsigned          i;
    xet_zt_verdict_t  verdict;

    verdict = (status == XET_ZT_DTYPE || status == XET_ZT_ENCODING
               || status == XET_ZT_FORMAT)
              ? XET_ZT_OBJECT_UNSUPPORTED : XET_ZT_OBJECT_INVALID;

    if (verdict > o->verdict) {
        o->verdict = verdict;
    }

    for (i = 0; i < o->errors_n; i++) {
        if (o->errors[i] == status) {
            return;
        }
    }

    if (o->errors_n < XET_ZT_ERRORS_MAX) {
        o->errors[o->errors_n++] = status;
    }
}


xet_status_t
xet_zt_object_fault(const xet_zt_object_t *o)
{
    unsigned      i;
    xet_status_t  rc;

    for (i = 0; i < o->errors_n; i++) {
        rc = o->errors[i];

        if (rc != XET_ZT_DTYPE && rc != XET_ZT_ENCODING
            && rc != XET_ZT_FORMAT)
        {
            return rc;
        }
    }

    return XET_OK;
}


/* A zero anywhere makes the count 0, whatever the order of dimensions. */

static void
xet_zt_object_shape(xet_zt_object_t *o, unsigned rank_max)
{
    unsigned  i;

    o->has_count = 0;
    o->count = 1;

    if (o->rank > XET_ZT_RANK_MAX || o->rank > rank_max) {
        xet_zt_object_error(o, XET_ZT_RANK);
        return;
    }

    for (i = 0; i < o->rank; i++) {
        if (o->shape[i] == 0) {
            o->has_count = 1;
            o->count = 0;
            return;
        }
    }

    for (i = 0; i < o->rank; i++) {

        if (o->count > UINT64_MAX / o->shape[i]) {
            xet_zt_object_error(o, XET_ZT_SHAPE);
            return;
        }

        o->count *= o->shape[i];
    }

    o->has_count = 1;
}


static void
xet_zt_component_check(xet_zt_object_t *o, xet_zt_component_t *c,
    const xet_zt_region_t *region)
{
    uint64_t      align;
    xet_status_t  rc;

    xet_zt_component_types(o, c, region->container);
    xet_zt_component_coding(o, c, region->container);

    align = (region->container == XET_ZT_CONTAINER_2) ? XET_ZT_UNIT_2
                                                      : XET_ZT_UNIT;

    if (c->offset % align != 0
        || (region->container == XET_ZT_CONTAINER_2 && c->offset < align))
    {
        xet_zt_object_error(o, XET_ZT_ALIGN);
    }

    if (c->shard.data == NULL) {
        rc = xet_zt_component_bounds(c, region);

        if (rc != XET_OK) {
            xet_zt_object_error(o, rc);
        }
    }
}


static void
xet_zt_component_types(xet_zt_object_t *o, xet_zt_component_t *c,
    xet_zt_container_t container)
{
    const xet_zt_dtype_t  *type;

    c->storage = xet_zt_dtype_find(c->dtype.data, c->dtype.len, container);
    c->element = c->storage;

    if (c->storage == NULL) {
        xet_zt_object_error(o, (container == XET_ZT_CONTAINER_2)
                               ? XET_ZT_MANIFEST : XET_ZT_DTYPE);
        return;
    }

    if (c->type.data == NULL || xet_zt_text_is(&c->type, c->storage->name)) {
        return;
    }

    type = xet_zt_type_find(c->type.data, c->type.len);

    if (type && strcmp(type->storage, c->storage->name) == 0) {
        c->element = type;
        return;
    }

    c->element = NULL;

    xet_zt_object_error(o, (type && container == XET_ZT_CONTAINER_2)
                           ? XET_ZT_MANIFEST : XET_ZT_DTYPE);
}


static void
xet_zt_component_coding(xet_zt_object_t *o, xet_zt_component_t *c,
    xet_zt_container_t container)
{
    c->has_decoded = c->has_declared;
    c->decoded = c->declared;

    if (c->encoding.data == NULL
        || (container == XET_ZT_CONTAINER_1
            && xet_zt_text_is(&c->encoding, "raw")))
    {
        c->coding = XET_ZT_CODING_RAW;
        c->has_decoded = 1;
        c->decoded = c->length;

    } else if (container == XET_ZT_CONTAINER_1
               && xet_zt_text_is(&c->encoding, "zstd"))
    {
        c->coding = XET_ZT_CODING_ZSTD;

    } else if (container == XET_ZT_CONTAINER_2
               && xet_zt_text_is(&c->encoding, "zt.zstd-seekable/1"))
    {
        c->coding = XET_ZT_CODING_SEEKABLE;

    } else {
        c->coding = XET_ZT_CODING_UNKNOWN;
        xet_zt_object_error(o, XET_ZT_ENCODING);
    }
}


xet_status_t
xet_zt_component_bounds(const xet_zt_component_t *c,
    const xet_zt_region_t *region)
{
    if (c->offset > region->data_end
        || c->length > region->data_end - c->offset)
    {
        return XET_ZT_BOUNDS;
    }

    if (c->offset < region->data_start) {
        return XET_ZT_HEADER;
    }

    return XET_OK;
}


const xet_zt_component_t *
xet_zt_object_component(const xet_zt_object_t *o, const uint8_t *role,
    size_t len)
{
    unsigned                   i;
    const xet_zt_component_t  *c;

    for (i = 0; i < o->n; i++) {
        c = &o->components[i];

        if (c->role.len == len
            && (len == 0 || memcmp(c->role.data, role, len) == 0))
        {
            return c;
        }
    }

    return NULL;
}


const xet_zt_component_t *
xet_zt_object_default(const xet_zt_object_t *o)
{
    const xet_zt_component_t  *c;

    c = xet_zt_object_component(o, (const uint8_t *) "data", 4);

    return (c == NULL && o->n == 1) ? &o->components[0] : c;
}


int
xet_zt_component_seekable(const xet_zt_component_t *c)
{
    return c->coding == XET_ZT_CODING_RAW && c->shard.data == NULL;
}


xet_status_t
xet_zt_component_range(const xet_zt_component_t *c,
    const xet_zt_region_t *region, xet_range_t *range)
{
    xet_status_t  rc;

    if (c->shard.data) {
        return XET_ZT_SHARD_REF;
    }

    rc = xet_zt_component_bounds(c, region);

    /* bytes outside of the region, such as the magic number, are no data */

    if (rc == XET_OK) {
        range->start = c->offset;
        range->end = c->offset + c->length;
    }

    return rc;
}


xet_status_t
xet_zt_object_rows(const xet_zt_object_t *o, const xet_zt_component_t *c,
    uint64_t first, uint64_t end, xet_range_t *range)
{
    uint64_t  row;

    if (o->verdict != XET_ZT_OBJECT_OK
        || !xet_zt_text_is(&o->format, "dense")
        || !xet_zt_text_is(&c->role, "data")
        || !xet_zt_component_seekable(c)
        || c->element == NULL
        || o->rank == 0)
    {
        return XET_ZT_DECODE;
    }

    if (first > end || end > o->shape[0] || first == o->shape[0]) {
        return XET_RANGE_PAST_END;
    }

    /* two elements may share a byte, two rows may not */

    if (c->length % o->shape[0] != 0
        || (c->element->per != 1
            && o->count / o->shape[0] % c->element->per != 0))
    {
        return XET_ZT_DECODE;
    }

    row = c->length / o->shape[0];

    range->start = first * row;
    range->end = end * row;

    return XET_OK;
}


size_t
xet_zt_object_size(const xet_zt_object_t *o)
{
    size_t          size;
    unsigned        i, n;
    xet_zt_text_t  *texts[XET_ZT_COMPONENT_TEXTS];

    size = sizeof(xet_zt_object_t) + o->n * sizeof(xet_zt_component_t)
           + o->name.len + o->format.len;

    for (i = 0; i < o->n; i++) {
        xet_zt_component_texts(&o->components[i], texts);

        for (n = 0; n < XET_ZT_COMPONENT_TEXTS; n++) {
            size += texts[n]->len;
        }
    }

    return size;
}


xet_zt_object_t *
xet_zt_object_copy(const xet_zt_object_t *o)
{
    uint8_t          *p;
    unsigned          i, n;
    xet_zt_text_t    *texts[XET_ZT_COMPONENT_TEXTS];
    xet_zt_object_t  *copy;

    /* one byte more: an empty text at the end still points into the copy */

    copy = malloc(xet_zt_object_size(o) + 1);
    if (copy == NULL) {
        return NULL;
    }

    *copy = *o;

    copy->attributes.data = NULL;
    copy->attributes.len = 0;
    copy->components = (xet_zt_component_t *) (copy + 1);

    if (o->n) {
        memcpy(copy->components, o->components,
               o->n * sizeof(xet_zt_component_t));
    }

    p = (uint8_t *) (copy->components + o->n);

    xet_zt_text_copy(&copy->name, &p);
    xet_zt_text_copy(&copy->format, &p);

    for (i = 0; i < copy->n; i++) {
        xet_zt_component_texts(&copy->components[i], texts);

        for (n = 0; n < XET_ZT_COMPONENT_TEXTS; n++) {
            xet_zt_text_copy(texts[n], &p);
        }
    }

    return copy;
}


int
xet_zt_text_is(const xet_zt_text_t *text, const char *s)
{
    size_t  len;

    len = strlen(s);

    return text->data != NULL && text->len == len
           && memcmp(text->data, s, len) == 0;
}


static void
xet_zt_component_texts(xet_zt_component_t *c,
    xet_zt_text_t *texts[XET_ZT_COMPONENT_TEXTS])
{
    texts[0] = &c->role;
    texts[1] = &c->dtype;
    texts[2] = &c->type;
    texts[3] = &c->encoding;
    texts[4] = &c->digest;
    texts[5] = &c->shard;
}


static void
xet_zt_text_copy(xet_zt_text_t *text, uint8_t **p)
{
    if (text->data == NULL) {
        return;
    }

    if (text->len) {
        memcpy(*p, text->data, text->len);
    }

    text->data = *p;
    *p += text->len;
}
