
/*
 * Checks the description of an object, without its data; copies objects.
 *
 * Purpose:    checks the shape, the names of types and encodings, and the
 *             range of each component.  Checks the rules of the format
 *             ("layout" in container 2): the components, their types and the
 *             lengths that follow from the shape.
 * States:     none; all tables are constant.
 * Ownership:  the parser fills an object and owns its texts.  The object of a
 *             walk is valid until the handler returns.  A copy, which is one
 *             allocation, is for callers that read the data afterwards.
 * Threads:    any; one at a time per object.
 *
 * An object that breaks a rule is invalid.  An object with an unknown type,
 * encoding or format is unsupported: it is listed and its stored bytes are
 * served, but their meaning is not checked.  In container 1 other objects are
 * not affected.  In container 2 an invalid object makes the file invalid, and
 * so does an unknown dtype, because the set of dtypes is closed.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt.h"


#define XET_ZT_COMPONENT_TEXTS  6
#define XET_ZT_ROLES_MAX        3


typedef struct {
    const char          *name;
    xet_zt_container_t   container;
    unsigned             exact:1;      /* other components are an error */
    const char          *roles[XET_ZT_ROLES_MAX];
    void               (*check)(xet_zt_object_t *o,
                                xet_zt_component_t **components,
                                xet_zt_container_t container);
} xet_zt_format_t;


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
static const xet_zt_dtype_t *xet_zt_dtype_row(const xet_zt_dtype_t *rows,
    const xet_zt_text_t *name);
static void xet_zt_format_check(xet_zt_object_t *o,
    xet_zt_container_t container);
static void xet_zt_format_dense(xet_zt_object_t *o,
    xet_zt_component_t **components, xet_zt_container_t container);
static void xet_zt_format_csr(xet_zt_object_t *o,
    xet_zt_component_t **components, xet_zt_container_t container);
static void xet_zt_format_coo(xet_zt_object_t *o,
    xet_zt_component_t **components, xet_zt_container_t container);
static int xet_zt_format_index(xet_zt_object_t *o, const xet_zt_component_t *c,
    xet_zt_container_t container);
static int xet_zt_format_elements(xet_zt_object_t *o,
    const xet_zt_component_t *c, uint64_t *n);
static void xet_zt_format_length(xet_zt_object_t *o, xet_zt_component_t *c,
    uint64_t n);


#define xet_zt_plain(name, bytes, index)                                      \
    { name, NULL, bytes, 1, index, 1, XET_ZT_VALUES_ANY }

#define xet_zt_plain_1(name, bytes, values)                                   \
    { name, NULL, bytes, 1, 0, 0, values }

#define xet_zt_logical(name, storage, bytes, per, values)                     \
    { name, storage, bytes, per, 0, 1, values }

#define xet_zt_no_type                                                        \
    { NULL, NULL, 0, 0, 0, 0, XET_ZT_VALUES_ANY }


/*
 * The 1.1 specification defines more stored types than its reference readers
 * support: they reject a whole file because of one float8 tensor.  These tables
 * follow the specification.  From 1.2 on, float8 and complex are logical types
 * over bytes and floats.  In container 2, these types and bool exist only as
 * logical types.
 */

static const xet_zt_dtype_t  xet_zt_dtypes[] = {
    xet_zt_plain("f32", 4, 0),
    xet_zt_plain("bf16", 2, 0),
    xet_zt_plain("f16", 2, 0),
    xet_zt_plain("f64", 8, 0),

    xet_zt_plain("i64", 8, 1),
    xet_zt_plain("i32", 4, 1),
    xet_zt_plain("i16", 2, 1),
    xet_zt_plain("i8", 1, 1),
    xet_zt_plain("u64", 8, 1),
    xet_zt_plain("u32", 4, 1),
    xet_zt_plain("u16", 2, 1),
    xet_zt_plain("u8", 1, 1),

    xet_zt_plain_1("bool", 1, XET_ZT_VALUES_BOOL),
    xet_zt_plain_1("f8_e4m3", 1, XET_ZT_VALUES_ANY),
    xet_zt_plain_1("f8_e5m2", 1, XET_ZT_VALUES_ANY),
    xet_zt_plain_1("complex64", 8, XET_ZT_VALUES_ANY),
    xet_zt_plain_1("complex128", 16, XET_ZT_VALUES_ANY),

    xet_zt_no_type
};


static const xet_zt_dtype_t  xet_zt_types[] = {
    xet_zt_logical("bool", "u8", 1, 1, XET_ZT_VALUES_BOOL),
    xet_zt_logical("f8_e4m3fn", "u8", 1, 1, XET_ZT_VALUES_ANY),
    xet_zt_logical("f8_e5m2", "u8", 1, 1, XET_ZT_VALUES_ANY),
    xet_zt_logical("f8_e4m3fnuz", "u8", 1, 1, XET_ZT_VALUES_ANY),
    xet_zt_logical("f8_e5m2fnuz", "u8", 1, 1, XET_ZT_VALUES_ANY),
    xet_zt_logical("f8_e8m0", "u8", 1, 1, XET_ZT_VALUES_ANY),
    xet_zt_logical("f4_e2m1", "u8", 1, 2, XET_ZT_VALUES_NIBBLE),
    xet_zt_logical("complex64", "f32", 8, 1, XET_ZT_VALUES_ANY),
    xet_zt_logical("complex128", "f64", 16, 1, XET_ZT_VALUES_ANY),

    xet_zt_no_type
};


/*
 * The check functions compare lengths of decoded bytes, if they are known.
 * Raw components have a known length; the length of other components is
 * declared, or follows from the shape or another component.  A component of
 * unknown type has no rules.  Verification checks the content of indices
 * (xet_zt_sparse.c).
 */

static const xet_zt_format_t  xet_zt_formats[] = {

    { "dense", XET_ZT_CONTAINER_1, 0, { "data", NULL, NULL },
      xet_zt_format_dense },

    { "sparse_csr", XET_ZT_CONTAINER_1, 0, { "values", "indices", "indptr" },
      xet_zt_format_csr },

    { "sparse_coo", XET_ZT_CONTAINER_1, 0, { "values", "coords", NULL },
      xet_zt_format_coo },

    { "quantized_group", XET_ZT_CONTAINER_1, 0,
      { "packed_weight", "scales", "zeros" }, NULL },

    { "dense", XET_ZT_CONTAINER_2, 1, { "data", NULL, NULL },
      xet_zt_format_dense },

    { "zt.sparse_csr/1", XET_ZT_CONTAINER_2, 1,
      { "values", "indices", "indptr" }, xet_zt_format_csr },

    { "zt.sparse_coo/1", XET_ZT_CONTAINER_2, 1, { "values", "coords", NULL },
      xet_zt_format_coo }
};


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


/*
 * Counts the elements.  A dimension of 0 makes the count 0, even if the product
 * of the other dimensions overflows.  All functions of this file test for
 * overflow before they add or multiply numbers from a manifest.
 */

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

    c->storage = xet_zt_dtype_find(&c->dtype, container);
    c->element = c->storage;

    if (c->storage == NULL) {
        xet_zt_object_error(o, (container == XET_ZT_CONTAINER_2)
                               ? XET_ZT_MANIFEST : XET_ZT_DTYPE);
        return;
    }

    if (c->type.data == NULL || xet_zt_text_is(&c->type, c->storage->name)) {
        return;
    }

    type = xet_zt_dtype_row(xet_zt_types, &c->type);

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

    /*
     * the file's bytes outside the region, such as its magic number, do not
     * belong to components
     */

    rc = xet_zt_component_bounds(c, region);

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

    /* two elements may share a byte, but two rows must not */

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

    /* one byte more, so that an empty text at the end points into the copy */

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


const xet_zt_dtype_t *
xet_zt_dtype_find(const xet_zt_text_t *name, xet_zt_container_t container)
{
    const xet_zt_dtype_t  *dtype;

    dtype = xet_zt_dtype_row(xet_zt_dtypes, name);

    return (dtype && container == XET_ZT_CONTAINER_2 && !dtype->in_2) ? NULL
                                                                      : dtype;
}


static const xet_zt_dtype_t *
xet_zt_dtype_row(const xet_zt_dtype_t *rows, const xet_zt_text_t *name)
{
    for ( /* void */ ; rows->name; rows++) {
        if (xet_zt_text_is(name, rows->name)) {
            return rows;
        }
    }

    return NULL;
}


int
xet_zt_dtype_size(const xet_zt_dtype_t *dtype, uint64_t n, uint64_t *bytes)
{
    uint64_t  groups;

    groups = n / dtype->per + (n % dtype->per != 0);

    if (groups > UINT64_MAX / dtype->bytes) {
        return 0;
    }

    *bytes = groups * dtype->bytes;

    return 1;
}


static void
xet_zt_format_check(xet_zt_object_t *o, xet_zt_container_t container)
{
    size_t                  i, k, n;
    xet_zt_component_t     *c, *components[XET_ZT_ROLES_MAX];
    const xet_zt_format_t  *format;

    n = sizeof(xet_zt_formats) / sizeof(xet_zt_formats[0]);

    for (i = 0; i < n; i++) {
        if (xet_zt_formats[i].container == container
            && xet_zt_text_is(&o->format, xet_zt_formats[i].name))
        {
            break;
        }
    }

    if (i == n) {
        xet_zt_object_error(o, XET_ZT_FORMAT);
        return;
    }

    format = &xet_zt_formats[i];
    n = 0;

    for (i = 0; i < XET_ZT_ROLES_MAX && format->roles[i]; i++) {
        components[i] = NULL;

        for (k = 0; k < o->n; k++) {
            c = &o->components[k];

            if (xet_zt_text_is(&c->role, format->roles[i])) {
                components[i] = c;
                n++;
            }
        }
    }

    if (n < i) {
        xet_zt_object_error(o, XET_ZT_ROLE_MISSING);
        return;
    }

    if (format->exact && o->n > n) {
        xet_zt_object_error(o, XET_ZT_ROLE_EXTRA);
    }

    if (format->check && o->has_count) {
        format->check(o, components, container);
    }
}


/*
 * Checks the length of a dense object.  The reference writer of 1.1 declares
 * no decoded length; then the length follows from the shape.
 */

static void
xet_zt_format_dense(xet_zt_object_t *o, xet_zt_component_t **components,
    xet_zt_container_t container)
{
    uint64_t             bytes;
    xet_zt_component_t  *c;

    c = components[0];

    if (c->element == NULL) {
        return;
    }

    if (!xet_zt_dtype_size(c->element, o->count, &bytes)) {
        xet_zt_object_error(o, XET_ZT_SHAPE);
        return;
    }

    xet_zt_format_length(o, c, o->count);
}


static void
xet_zt_format_csr(xet_zt_object_t *o, xet_zt_component_t **components,
    xet_zt_container_t container)
{
    uint64_t  nonzeros;

    if (o->rank != 2) {
        xet_zt_object_error(o, XET_ZT_FORMAT_SHAPE);
        return;
    }

    if (!xet_zt_format_index(o, components[1], container)
        || !xet_zt_format_index(o, components[2], container))
    {
        return;
    }

    if (container == XET_ZT_CONTAINER_2
        && components[1]->storage != components[2]->storage)
    {
        xet_zt_object_error(o, XET_ZT_INDEX_DTYPE);
        return;
    }

    /* indptr has one element per row, plus one */

    if (o->shape[0] == UINT64_MAX) {
        xet_zt_object_error(o, XET_ZT_LENGTH);
        return;
    }

    xet_zt_format_length(o, components[2], o->shape[0] + 1);

    if (xet_zt_format_elements(o, components[1], &nonzeros)) {
        xet_zt_format_length(o, components[0], nonzeros);

    } else if (xet_zt_format_elements(o, components[0], &nonzeros)) {
        xet_zt_format_length(o, components[1], nonzeros);
    }
}


static void
xet_zt_format_coo(xet_zt_object_t *o, xet_zt_component_t **components,
    xet_zt_container_t container)
{
    uint64_t  n;

    if (!xet_zt_format_index(o, components[1], container)) {
        return;
    }

    if (o->rank == 0) {

        /* an object without dimensions has no coordinates */

        xet_zt_object_error(o, XET_ZT_FORMAT_SHAPE);
        return;
    }

    if (xet_zt_format_elements(o, components[1], &n)) {

        if (n % o->rank != 0) {
            xet_zt_object_error(o, XET_ZT_LENGTH);
            return;
        }

        xet_zt_format_length(o, components[0], n / o->rank);

    } else if (xet_zt_format_elements(o, components[0], &n)) {

        if (n > UINT64_MAX / o->rank) {
            xet_zt_object_error(o, XET_ZT_LENGTH);
            return;
        }

        xet_zt_format_length(o, components[1], n * o->rank);
    }
}


/*
 * Returns 1 if c can be an index: u32 or u64 in container 2, any integer in
 * container 1.
 */

static int
xet_zt_format_index(xet_zt_object_t *o, const xet_zt_component_t *c,
    xet_zt_container_t container)
{
    if (c->storage == NULL
        || (c->element == NULL && container == XET_ZT_CONTAINER_1))
    {
        return 0;
    }

    if (!c->storage->index || c->element != c->storage
        || (container == XET_ZT_CONTAINER_2
            && ((!xet_zt_text_is(&c->dtype, "u32")
                 && !xet_zt_text_is(&c->dtype, "u64"))
                || c->type.data != NULL)))
    {
        xet_zt_object_error(o, XET_ZT_INDEX_DTYPE);
        return 0;
    }

    return 1;
}


/*
 * Sets *n to the number of elements and returns 1 if the decoded length is
 * known and determines the number.  Otherwise returns 0.  If elements share
 * bytes, the length does not determine their number.
 */

static int
xet_zt_format_elements(xet_zt_object_t *o, const xet_zt_component_t *c,
    uint64_t *n)
{
    if (!c->has_decoded || c->element == NULL || c->element->per != 1) {
        return 0;
    }

    if (c->decoded % c->element->bytes != 0) {
        xet_zt_object_error(o, XET_ZT_LENGTH);
        return 0;
    }

    *n = c->decoded / c->element->bytes;

    return 1;
}


/* Checks that c has the length of n elements; sets the length if unknown. */

static void
xet_zt_format_length(xet_zt_object_t *o, xet_zt_component_t *c, uint64_t n)
{
    uint64_t  bytes;

    if (c->element == NULL
        || (!c->has_decoded && c->coding == XET_ZT_CODING_UNKNOWN))
    {
        return;
    }

    if (!xet_zt_dtype_size(c->element, n, &bytes)) {
        xet_zt_object_error(o, XET_ZT_LENGTH);
        return;
    }

    if (!c->has_decoded) {
        c->has_decoded = 1;
        c->decoded = bytes;

    } else if (c->decoded != bytes) {
        xet_zt_object_error(o, XET_ZT_LENGTH);
    }
}
