
/*
 * The rules of formats ("layouts" in container 2).
 *
 * Purpose:    which components an object of a known format has, of which
 *             types, and how their lengths follow from the shape.
 * States:     none, one constant table.
 * Ownership:  nothing is kept.
 * Threads:    any.
 *
 * Lengths are those of the decoded bytes, where they are known: always for
 * raw components, for others by declaration, or because they follow from the
 * shape or from another component.  A component whose type is not known has
 * no rule that could be checked.  The content of indices is looked at when
 * data is verified (xet_zt_sparse.c).
 */


#include <stddef.h>

#include "xet_zt.h"


#define XET_ZT_ROLES_MAX  3


typedef struct {
    const char          *name;
    xet_zt_container_t   container;
    unsigned             exact:1;      /* no other components */
    const char          *roles[XET_ZT_ROLES_MAX];
    void               (*check)(xet_zt_object_t *o,
                                xet_zt_component_t **components,
                                xet_zt_container_t container);
} xet_zt_format_t;


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
 * The reference writer of 1.1 declares no decoded length; the length then
 * follows from the shape.
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

    if (!c->has_decoded && c->coding != XET_ZT_CODING_UNKNOWN) {
        c->has_decoded = 1;
        c->decoded = bytes;
        return;
    }

    if (c->has_decoded && c->decoded != bytes) {
        xet_zt_object_error(o, XET_ZT_LENGTH);
    }
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

    /* indptr has one element more than there are rows */

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

        /* without dimensions an element has no coordinates to list */

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


/* Whether c can be an index: u32 or u64 in container 2, any integer in 1.x. */

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
 * known and determines the number, which it does not where elements share
 * bytes.
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


/* Checks that c has the length of n elements, or sets a length not known. */

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
