
/*
 * Marks in a manifest.
 *
 * Purpose:    a page, or an object by its name, is read from the mark before
 *             it; so of a manifest of 20 MB a look-up reads 100 KB.
 * States:     while objects come, a mark is set at every stride-th; when
 *             there are too many, every second is dropped and the stride
 *             doubles.  The order of names is what no object has contradicted.
 * Ownership:  names of marks and the last name belong to the file's record.
 * Threads:    as the record.
 *
 * The writers known order names as strings (container 1) or by length first
 * (container 2, which has to).  A look-up in any other manifest reads it from
 * the start, and so does one where a mark's name is too long to be kept.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt_file.h"


static xet_status_t xet_zt_marks_order(xet_zt_t *zt,
    const xet_zt_text_t *name);
static void xet_zt_marks_halve(xet_zt_t *zt);


xet_status_t
xet_zt_marks_add(xet_zt_t *zt, const xet_zt_object_t *o)
{
    xet_status_t         rc;
    xet_zt_info_t       *info;
    xet_zt_mark_name_t  *name;

    info = &zt->info;

    if (info->order) {
        rc = xet_zt_marks_order(zt, &o->name);

        if (rc != XET_OK) {
            return rc;
        }
    }

    if (o->index % info->stride != 0) {
        return XET_OK;
    }

    if (info->marks_n == XET_ZT_MARKS) {
        xet_zt_marks_halve(zt);
    }

    if (o->name.len > XET_ZT_MARK_NAME) {
        info->order = 0;
    }

    if (info->order) {
        name = &zt->names[info->marks_n];

        name->len = (uint8_t) o->name.len;

        if (o->name.len) {
            memcpy(name->data, o->name.data, o->name.len);
        }
    }

    info->marks[info->marks_n++] = o->pos;

    return XET_OK;
}


static xet_status_t
xet_zt_marks_order(xet_zt_t *zt, const xet_zt_text_t *name)
{
    unsigned       order;
    xet_zt_text_t  last;

    if (zt->last == NULL) {
        zt->names = calloc(XET_ZT_MARKS, sizeof(xet_zt_mark_name_t));
        zt->last = malloc(zt->limits.name ? zt->limits.name : 1);

        if (zt->names == NULL || zt->last == NULL) {
            return XET_NOMEM;
        }

    } else {
        last.data = zt->last;
        last.len = zt->last_len;

        for (order = XET_ZT_ORDER_BYTES; order <= XET_ZT_ORDER_LENGTH;
             order <<= 1)
        {
            if (xet_zt_order(order, &last, name) >= 0) {
                zt->info.order &= ~order;
            }
        }
    }

    /* the parser has held the name against the same limit */

    zt->last_len = name->len;

    if (name->len) {
        memcpy(zt->last, name->data, name->len);
    }

    return XET_OK;
}


static void
xet_zt_marks_halve(xet_zt_t *zt)
{
    unsigned        i;
    xet_zt_info_t  *info;

    info = &zt->info;

    for (i = 0; i < XET_ZT_MARKS / 2; i++) {
        info->marks[i] = info->marks[2 * i];

        if (info->order) {
            zt->names[i] = zt->names[2 * i];
        }
    }

    info->marks_n = XET_ZT_MARKS / 2;
    info->stride *= 2;
}


void
xet_zt_marks_end(xet_zt_t *zt)
{
    free(zt->last);
    zt->last = NULL;

    if (zt->info.order == 0) {
        free(zt->names);
        zt->names = NULL;
    }
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
xet_zt_marks_find(const xet_zt_t *zt, const xet_zt_text_t *name)
{
    uint64_t       low, high, middle;
    xet_zt_text_t  mark;

    if (zt->info.order == 0 || zt->names == NULL) {
        return 0;
    }

    low = 0;
    high = zt->info.marks_n;

    /* marks before low are not after the name, those from high on are */

    while (low < high) {
        middle = (low + high) / 2;

        mark.data = zt->names[middle].data;
        mark.len = zt->names[middle].len;

        if (xet_zt_order(zt->info.order, &mark, name) <= 0) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return low ? low - 1 : 0;
}
