
/*
 * Checks of the indices of sparse objects.
 *
 * Purpose:    checks that each index is within the shape, that row pointers
 *             ascend from 0 to the number of values, and that all components
 *             imply the same number of values.  In container 2, also checks
 *             that indices ascend within a row, and that no two coordinates
 *             are equal; the 1.1 specification lacks these two rules.
 * States:     the components of an object are checked one after the other;
 *             "done" contains the roles of completed components.
 * Ownership:  the array "marks" (one bit per index, or one cell number per
 *             element) is allocated when an object needs it, and reused for
 *             later objects.
 * Threads:    one at a time.
 *
 * A component may be larger than memory, so its bytes are read once, in order.
 * Coordinates arrive dimension by dimension, so each element has 8 bytes in
 * which the number of its cell is accumulated.  At the end the cell numbers are
 * sorted to find duplicates.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_base.h"
#include "xet_zt.h"


#define XET_ZT_SPARSE_VALUES   0x01
#define XET_ZT_SPARSE_INDICES  0x02
#define XET_ZT_SPARSE_INDPTR   0x04
#define XET_ZT_SPARSE_COORDS   0x08


struct xet_zt_sparse_s {
    size_t                   memory;
    uint64_t                *marks;        /* bits, or numbers of cells */
    size_t                   marks_size;   /* bytes allocated */
    size_t                   cleared;      /* bytes cleared, not yet reported */

    const xet_zt_object_t   *object;
    uint64_t                 index;        /* number of the object */
    unsigned                 strict:1;     /* container 2 */
    unsigned                 counted:1;    /* nonzeros is known */
    unsigned                 marked:1;     /* marks[] is in use for object */
    unsigned                 large:1;      /* marks exceed "memory" bytes, or
                                              nonzeros is unknown */
    unsigned                 done;         /* roles of completed components */
    uint64_t                 nonzeros;

    unsigned                 role;         /* role of the open component */
    const xet_zt_dtype_t    *type;
    xet_status_t             status;
    uint64_t                 n;            /* elements; bytes for "values" */
    uint64_t                 last;         /* the previous element */
    unsigned                 dimension;    /* dimension of coordinates */
    uint64_t                 place;        /* element index in dimension */
    uint8_t                  part[8];      /* start of an incomplete element */
    size_t                   part_len;
};


static int xet_zt_sparse_checked(const xet_zt_object_t *o);
static void xet_zt_sparse_object(xet_zt_sparse_t *s,
    xet_zt_container_t container, const xet_zt_object_t *o);
static unsigned xet_zt_sparse_role(const xet_zt_object_t *o,
    const xet_zt_component_t *c);
static unsigned xet_zt_sparse_roles(const xet_zt_object_t *o);
static int xet_zt_sparse_count(const xet_zt_object_t *o,
    const xet_zt_component_t *c, unsigned role, uint64_t bytes, uint64_t *n);
static uint64_t xet_zt_sparse_element(const xet_zt_dtype_t *type,
    const uint8_t *p);
static xet_status_t xet_zt_sparse_next(xet_zt_sparse_t *s, uint64_t value);
static xet_status_t xet_zt_sparse_index(xet_zt_sparse_t *s, uint64_t value);
static xet_status_t xet_zt_sparse_pointer(xet_zt_sparse_t *s, uint64_t value);
static xet_status_t xet_zt_sparse_coordinate(xet_zt_sparse_t *s,
    uint64_t value);
static xet_status_t xet_zt_sparse_marks(xet_zt_sparse_t *s);
static xet_status_t xet_zt_sparse_ends(xet_zt_sparse_t *s);
static xet_status_t xet_zt_sparse_compared(xet_zt_sparse_t *s);
static xet_status_t xet_zt_sparse_cells(xet_zt_sparse_t *s);
static xet_status_t xet_zt_sparse_wiped(xet_zt_sparse_t *s);
static int xet_zt_sparse_cell_cmp(const void *one, const void *two);


xet_zt_sparse_t *
xet_zt_sparse_create(size_t memory)
{
    xet_zt_sparse_t  *s;

    s = calloc(1, sizeof(xet_zt_sparse_t));
    if (s == NULL) {
        return NULL;
    }

    s->memory = memory;

    return s;
}


void
xet_zt_sparse_destroy(xet_zt_sparse_t *s)
{
    if (s == NULL) {
        return;
    }

    free(s->marks);
    free(s);
}


/* Returns 1 if the rules of the format were applied to the object. */

static int
xet_zt_sparse_checked(const xet_zt_object_t *o)
{
    unsigned  i;

    for (i = 0; i < o->errors_n; i++) {
        if (o->errors[i] == XET_ZT_FORMAT) {
            return 0;
        }
    }

    return 1;
}


int
xet_zt_sparse_start(xet_zt_sparse_t *s, xet_zt_container_t container,
    const xet_zt_object_t *o, const xet_zt_component_t *c)
{
    unsigned  role;

    role = xet_zt_sparse_role(o, c);

    if (s->object != o || s->index != o->index || (s->done & role)) {
        xet_zt_sparse_object(s, container, o);
    }

    s->role = role;
    s->type = c->element;
    s->status = XET_OK;
    s->n = 0;
    s->last = 0;
    s->dimension = 0;
    s->place = 0;
    s->part_len = 0;

    /*
     * An invalid object is already reported, and its lengths may be wrong.  If
     * the format belongs to the other container, its rules have not been
     * applied, so the shape and components of the object may also be wrong.
     */

    return role && o->verdict != XET_ZT_OBJECT_INVALID && o->has_count
           && xet_zt_sparse_checked(o)
           && c->element != NULL
           && (role == XET_ZT_SPARSE_VALUES || c->element->index);
}


static void
xet_zt_sparse_object(xet_zt_sparse_t *s, xet_zt_container_t container,
    const xet_zt_object_t *o)
{
    unsigned                   i, role;
    const xet_zt_component_t  *c;

    s->object = o;
    s->index = o->index;
    s->strict = (container == XET_ZT_CONTAINER_2);
    s->counted = 0;
    s->marked = 0;
    s->large = 0;
    s->done = 0;

    for (i = 0; i < o->n && !s->counted; i++) {
        c = &o->components[i];
        role = xet_zt_sparse_role(o, c);

        s->counted = role && c->element && c->has_decoded
                     && xet_zt_sparse_count(o, c, role, c->decoded,
                                            &s->nonzeros);
    }
}


static unsigned
xet_zt_sparse_role(const xet_zt_object_t *o, const xet_zt_component_t *c)
{
    size_t    i;
    unsigned  roles;

    static const struct {
        const char  *name;
        unsigned     role;
    } names[] = {
        { "values", XET_ZT_SPARSE_VALUES },
        { "indices", XET_ZT_SPARSE_INDICES },
        { "indptr", XET_ZT_SPARSE_INDPTR },
        { "coords", XET_ZT_SPARSE_COORDS }
    };

    roles = xet_zt_sparse_roles(o);

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (xet_zt_text_is(&c->role, names[i].name)) {
            return roles & names[i].role;
        }
    }

    return 0;
}


/* Returns the roles of the object's format; 0 if the format is not sparse. */

static unsigned
xet_zt_sparse_roles(const xet_zt_object_t *o)
{
    if (xet_zt_text_is(&o->format, "sparse_csr")
        || xet_zt_text_is(&o->format, "zt.sparse_csr/1"))
    {
        return XET_ZT_SPARSE_VALUES|XET_ZT_SPARSE_INDICES
               |XET_ZT_SPARSE_INDPTR;
    }

    if (xet_zt_text_is(&o->format, "sparse_coo")
        || xet_zt_text_is(&o->format, "zt.sparse_coo/1"))
    {
        return XET_ZT_SPARSE_VALUES|XET_ZT_SPARSE_COORDS;
    }

    return 0;
}


int
xet_zt_object_sparse(const xet_zt_object_t *o)
{
    return xet_zt_sparse_roles(o) != 0;
}


/*
 * Sets *n to the number of values that follows from bytes, the decoded length
 * of c, and returns 1; returns 0 if the length does not determine the number.
 */

static int
xet_zt_sparse_count(const xet_zt_object_t *o, const xet_zt_component_t *c,
    unsigned role, uint64_t bytes, uint64_t *n)
{
    uint64_t  each;

    if (role == XET_ZT_SPARSE_INDPTR || c->element->per != 1) {
        return 0;
    }

    each = c->element->bytes;

    if (role == XET_ZT_SPARSE_COORDS) {
        each *= o->rank;
    }

    if (each == 0 || bytes % each != 0) {
        return 0;
    }

    *n = bytes / each;

    return 1;
}


xet_status_t
xet_zt_sparse_feed(xet_zt_sparse_t *s, const uint8_t *data, size_t len)
{
    size_t        n, width;
    xet_status_t  rc;

    if (s->role == XET_ZT_SPARSE_VALUES) {
        s->n += len;
        return XET_OK;
    }

    width = s->type->bytes;

    while (len && s->status == XET_OK) {

        if (s->part_len == 0 && len >= width) {
            rc = xet_zt_sparse_next(s, xet_zt_sparse_element(s->type, data));
            n = width;

        } else {
            n = width - s->part_len;
            n = (len < n) ? len : n;

            memcpy(s->part + s->part_len, data, n);
            s->part_len += n;

            rc = XET_OK;

            if (s->part_len == width) {
                s->part_len = 0;
                rc = xet_zt_sparse_next(s, xet_zt_sparse_element(s->type,
                                                                 s->part));
            }
        }

        if (rc == XET_NOMEM) {
            return rc;
        }

        s->status = rc;

        data += n;
        len -= n;
    }

    return XET_OK;
}


/* Returns the element at p; UINT64_MAX, outside every shape, if negative. */

static uint64_t
xet_zt_sparse_element(const xet_zt_dtype_t *type, const uint8_t *p)
{
    uint64_t  value, sign;

    switch (type->bytes) {

    case 1:
        value = p[0];
        break;

    case 2:
        value = (uint64_t) p[1] << 8 | p[0];
        break;

    case 4:
        value = xet_get_u32(p);
        break;

    default: /* 8 */
        value = xet_get_u64(p);
    }

    sign = (uint64_t) 1 << (8 * type->bytes - 1);

    return (type->name[0] == 'i' && (value & sign)) ? UINT64_MAX : value;
}


static xet_status_t
xet_zt_sparse_next(xet_zt_sparse_t *s, uint64_t value)
{
    xet_status_t  rc;

    switch (s->role) {

    case XET_ZT_SPARSE_INDICES:
        rc = xet_zt_sparse_index(s, value);
        break;

    case XET_ZT_SPARSE_INDPTR:
        rc = xet_zt_sparse_pointer(s, value);
        break;

    default: /* XET_ZT_SPARSE_COORDS */
        rc = xet_zt_sparse_coordinate(s, value);
    }

    s->n++;
    s->last = value;

    return rc;
}


/*
 * Checks an index.  In container 2, an index may be lower than the previous
 * index (a descent) only at the start of a row.  If the indices arrive before
 * the row pointers, each descent sets a mark, one bit per index, and the row
 * pointers clear marks.  If the row pointers arrive first, they set marks, and
 * each descent must be at a mark.
 */

static xet_status_t
xet_zt_sparse_index(xet_zt_sparse_t *s, uint64_t value)
{
    uint64_t      k, bit;
    xet_status_t  rc;

    if (value >= s->object->shape[1]) {
        return XET_ZT_INDICES;
    }

    k = s->n;

    if (!s->strict || k == 0 || value > s->last) {
        return XET_OK;
    }

    /* a descent, which is valid only at the start of a row */

    rc = xet_zt_sparse_marks(s);

    if (rc != XET_OK || s->large) {
        return rc;
    }

    if (k >= s->nonzeros) {
        return XET_ZT_INDICES;
    }

    bit = (uint64_t) 1 << k % 64;

    if (s->done & XET_ZT_SPARSE_INDPTR) {
        return (s->marks[k / 64] & bit) ? XET_OK : XET_ZT_INDICES;
    }

    s->marks[k / 64] |= bit;

    return XET_OK;
}


static xet_status_t
xet_zt_sparse_pointer(xet_zt_sparse_t *s, uint64_t value)
{
    uint64_t      bit;
    xet_status_t  rc;

    if ((s->n == 0) ? value != 0 : value < s->last) {
        return XET_ZT_INDICES;
    }

    if (s->counted && value > s->nonzeros) {
        return XET_ZT_INDICES;
    }

    if (!s->strict) {
        return XET_OK;
    }

    bit = (uint64_t) 1 << value % 64;

    if (s->done & XET_ZT_SPARSE_INDICES) {

        if (s->marked) {
            s->marks[value / 64] &= ~bit;
        }

        return XET_OK;
    }

    rc = xet_zt_sparse_marks(s);

    if (rc == XET_OK && !s->large) {
        s->marks[value / 64] |= bit;
    }

    return rc;
}


static xet_status_t
xet_zt_sparse_coordinate(xet_zt_sparse_t *s, uint64_t value)
{
    uint64_t       *cell;
    xet_status_t    rc;

    if (!s->counted) {
        return XET_ZT_UNCHECKED;
    }

    if (s->place == s->nonzeros) {
        s->dimension++;
        s->place = 0;
    }

    if (s->nonzeros == 0 || s->dimension >= s->object->rank
        || value >= s->object->shape[s->dimension])
    {
        return XET_ZT_INDICES;
    }

    if (s->strict) {
        rc = xet_zt_sparse_marks(s);

        if (rc != XET_OK) {
            return rc;
        }

        /* the number of a cell is below o->count, which fits in 64 bits */

        if (!s->large) {
            cell = &s->marks[s->place];
            *cell = *cell * s->object->shape[s->dimension] + value;
        }
    }

    s->place++;

    return XET_OK;
}


/*
 * Allocates and zeroes the marks of an object in the first call for the object.
 * Returns XET_OK or XET_NOMEM.  If the marks need more than s->memory, or the
 * number of values is unknown, returns XET_OK and sets s->large.
 */

static xet_status_t
xet_zt_sparse_marks(xet_zt_sparse_t *s)
{
    size_t    size, room;
    uint64_t  each;

    if (s->marked || s->large) {
        return XET_OK;
    }

    /* 8 bytes hold 64 marks or one cell; qsort() may copy all cells */

    each = 64;
    room = s->memory / 8;

    if (s->role == XET_ZT_SPARSE_COORDS) {
        each = 1;
        room /= 2;
    }

    if (!s->counted || s->nonzeros / each >= room) {
        s->large = 1;
        return XET_OK;
    }

    size = (size_t) (s->nonzeros / each + 1) * 8;

    if (size > s->marks_size) {
        free(s->marks);

        s->marks_size = 0;
        s->marks = malloc(size);

        if (s->marks == NULL) {
            return XET_NOMEM;
        }

        s->marks_size = size;
    }

    memset(s->marks, 0, size);
    s->marked = 1;
    s->cleared += size;

    return XET_OK;
}


size_t
xet_zt_sparse_cleared(xet_zt_sparse_t *s)
{
    size_t  n;

    n = s->cleared;
    s->cleared = 0;

    return n;
}


xet_status_t
xet_zt_sparse_finish(xet_zt_sparse_t *s)
{
    xet_status_t  rc;

    rc = s->status;

    if (rc == XET_OK && s->part_len) {
        rc = XET_ZT_INDICES;
    }

    if (rc == XET_OK) {
        rc = xet_zt_sparse_ends(s);
    }

    if (rc == XET_OK) {
        s->done |= s->role;
        rc = xet_zt_sparse_compared(s);
    }

    return rc;
}


/* Checks that all components imply the same number of values. */

static xet_status_t
xet_zt_sparse_ends(xet_zt_sparse_t *s)
{
    uint64_t  n, bytes;

    switch (s->role) {

    case XET_ZT_SPARSE_INDPTR:

        if (s->n == 0 || s->n - 1 != s->object->shape[0]) {
            return XET_ZT_INDICES;
        }

        n = s->last;
        break;

    case XET_ZT_SPARSE_INDICES:
        n = s->n;
        break;

    case XET_ZT_SPARSE_COORDS:

        /* if there are no coordinates, s->counted may still be 0 */

        n = s->n / s->object->rank;

        if (s->n % s->object->rank != 0) {
            return XET_ZT_INDICES;
        }

        break;

    default: /* XET_ZT_SPARSE_VALUES */

        if (s->counted) {
            return (xet_zt_dtype_size(s->type, s->nonzeros, &bytes)
                    && bytes == s->n)
                   ? XET_OK : XET_ZT_INDICES;
        }

        if (s->type->per != 1) {
            return XET_OK;
        }

        if (s->n % s->type->bytes != 0) {
            return XET_ZT_INDICES;
        }

        n = s->n / s->type->bytes;
    }

    if (s->counted) {
        return (n == s->nonzeros) ? XET_OK : XET_ZT_INDICES;
    }

    s->counted = 1;
    s->nonzeros = n;

    return XET_OK;
}


/*
 * Compares elements with each other once all required components are complete.
 */

static xet_status_t
xet_zt_sparse_compared(xet_zt_sparse_t *s)
{
    unsigned  rows;

    rows = XET_ZT_SPARSE_INDICES|XET_ZT_SPARSE_INDPTR;

    if (!s->strict || s->role == XET_ZT_SPARSE_VALUES
        || ((s->role & rows) && (s->done & rows) != rows))
    {
        return XET_OK;
    }

    if (s->large) {
        return XET_ZT_UNCHECKED;
    }

    if (!s->marked) {
        return XET_OK;
    }

    switch (s->role) {

    case XET_ZT_SPARSE_COORDS:
        return xet_zt_sparse_cells(s);

    case XET_ZT_SPARSE_INDPTR:
        return xet_zt_sparse_wiped(s);

    default: /* XET_ZT_SPARSE_INDICES: checked at each descent */
        return XET_OK;
    }
}


static xet_status_t
xet_zt_sparse_cells(xet_zt_sparse_t *s)
{
    size_t  i;

    qsort(s->marks, (size_t) s->nonzeros, sizeof(uint64_t),
          xet_zt_sparse_cell_cmp);

    for (i = 1; i < s->nonzeros; i++) {
        if (s->marks[i] == s->marks[i - 1]) {
            return XET_ZT_INDICES;
        }
    }

    return XET_OK;
}


/*
 * Checks that row pointers have cleared all marks: each descent starts a row.
 */

static xet_status_t
xet_zt_sparse_wiped(xet_zt_sparse_t *s)
{
    size_t  i;

    for (i = 0; i <= s->nonzeros / 64; i++) {
        if (s->marks[i]) {
            return XET_ZT_INDICES;
        }
    }

    return XET_OK;
}


static int
xet_zt_sparse_cell_cmp(const void *one, const void *two)
{
    uint64_t  a, b;

    a = *(const uint64_t *) one;
    b = *(const uint64_t *) two;

    return (a > b) - (a < b);
}
