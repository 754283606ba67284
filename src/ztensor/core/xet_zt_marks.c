
/*
 * Marks in a manifest.
 *
 * Purpose:    reading a page, or looking up an object by name, begins at the
 *             last mark before it; so a look-up reads 100 KB of a manifest of
 *             20 MB.
 * States:     while objects come, a mark is set at every stride-th object;
 *             when there are too many marks, every second is dropped and the
 *             stride doubles.  Names are in an order as long as no object has
 *             contradicted it.
 * Ownership:  the names of marks are released by xet_zt_marks_destroy(), the
 *             last name by xet_zt_marks_end() before.
 * Threads:    one at a time while objects come, any number afterwards.
 *
 * Known writers order names as strings (container 1) or by length first
 * (container 2, which demands it).  A look-up in any other manifest reads from
 * the start, and so does a look-up where a mark's name is too long to be kept.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt.h"


static xet_status_t xet_zt_marks_order(xet_zt_marks_t *m, xet_zt_info_t *info,
    const xet_zt_text_t *name, size_t name_max);
static void xet_zt_marks_halve(xet_zt_marks_t *m, xet_zt_info_t *info);


xet_status_t
xet_zt_marks_add(xet_zt_marks_t *m, xet_zt_info_t *info,
    const xet_zt_object_t *o, size_t name_max)
{
    xet_status_t         rc;
    xet_zt_mark_name_t  *name;

    if (info->order) {
        rc = xet_zt_marks_order(m, info, &o->name, name_max);

        if (rc != XET_OK) {
            return rc;
        }
    }

    if (o->index % info->stride != 0) {
        return XET_OK;
    }

    if (info->marks_n == XET_ZT_MARKS) {
        xet_zt_marks_halve(m, info);
    }

    if (o->name.len > XET_ZT_MARK_NAME) {
        info->order = 0;
    }

    if (info->order) {
        name = &m->names[info->marks_n];

        name->len = (uint8_t) o->name.len;

        if (o->name.len) {
            memcpy(name->data, o->name.data, o->name.len);
        }
    }

    info->marks[info->marks_n++] = o->pos;

    return XET_OK;
}


static xet_status_t
xet_zt_marks_order(xet_zt_marks_t *m, xet_zt_info_t *info,
    const xet_zt_text_t *name, size_t name_max)
{
    unsigned       order;
    xet_zt_text_t  last;

    if (m->last == NULL) {
        m->names = calloc(XET_ZT_MARKS, sizeof(xet_zt_mark_name_t));
        m->last = malloc(name_max ? name_max : 1);

        if (m->names == NULL || m->last == NULL) {
            return XET_NOMEM;
        }

    } else {
        last.data = m->last;
        last.len = m->last_len;

        for (order = XET_ZT_ORDER_BYTES; order <= XET_ZT_ORDER_LENGTH;
             order <<= 1)
        {
            if (xet_zt_order(order, &last, name) >= 0) {
                info->order &= ~order;
            }
        }
    }

    /* the parser has checked that the name is not longer than name_max */

    m->last_len = name->len;

    if (name->len) {
        memcpy(m->last, name->data, name->len);
    }

    return XET_OK;
}


static void
xet_zt_marks_halve(xet_zt_marks_t *m, xet_zt_info_t *info)
{
    unsigned  i;

    for (i = 0; i < XET_ZT_MARKS / 2; i++) {
        info->marks[i] = info->marks[2 * i];

        if (info->order) {
            m->names[i] = m->names[2 * i];
        }
    }

    info->marks_n = XET_ZT_MARKS / 2;
    info->stride *= 2;
}


void
xet_zt_marks_end(xet_zt_marks_t *m, const xet_zt_info_t *info)
{
    free(m->last);
    m->last = NULL;

    if (info->order == 0) {
        xet_zt_marks_destroy(m);
    }
}


void
xet_zt_marks_destroy(xet_zt_marks_t *m)
{
    free(m->names);
    free(m->last);

    memset(m, 0, sizeof(xet_zt_marks_t));
}


int
xet_zt_order(unsigned order, const xet_zt_text_t *a, const xet_zt_text_t *b)
{
    int     rc;
    size_t  n;

    n = (a->len < b->len) ? a->len : b->len;

    if (!(order & XET_ZT_ORDER_BYTES) && a->len != b->len) {
        return (a->len < b->len) ? -1 : 1;
    }

    rc = n ? memcmp(a->data, b->data, n) : 0;

    if (rc == 0 && a->len != b->len) {
        rc = (a->len < b->len) ? -1 : 1;
    }

    return rc;
}


uint64_t
xet_zt_marks_find(const xet_zt_marks_t *m, const xet_zt_info_t *info,
    const xet_zt_text_t *name)
{
    uint64_t       low, high, middle;
    xet_zt_text_t  mark;

    if (info->order == 0 || m->names == NULL) {
        return 0;
    }

    low = 0;
    high = info->marks_n;

    /* marks before low are not after the name, marks from high on are */

    while (low < high) {
        middle = (low + high) / 2;

        mark.data = m->names[middle].data;
        mark.len = m->names[middle].len;

        if (xet_zt_order(info->order, &mark, name) <= 0) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return low ? low - 1 : 0;
}
