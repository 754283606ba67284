
/*
 * Marks: positions in a manifest where a walk can start.
 *
 * Purpose:    allow a lookup to start in the middle of the manifest.
 * States:     while objects arrive, every stride-th object gets a mark.  When
 *             the table of marks is full, every second mark is dropped and the
 *             stride doubles.  Names count as ordered until an object
 *             contradicts the order.
 * Ownership:  xet_zt_index_end() releases the last name, and the names of
 *             marks if names are not ordered.  xet_zt_index_destroy() releases
 *             everything.
 * Threads:    one at a time.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt.h"


static xet_status_t xet_zt_index_order(xet_zt_index_t *m, xet_zt_info_t *info,
    const xet_zt_text_t *name, size_t name_max);
static void xet_zt_index_halve(xet_zt_index_t *m, xet_zt_info_t *info);


xet_status_t
xet_zt_index_add(xet_zt_index_t *m, xet_zt_info_t *info,
    const xet_zt_object_t *o, size_t name_max)
{
    xet_status_t         rc;
    xet_zt_mark_name_t  *name;

    if (info->order) {
        rc = xet_zt_index_order(m, info, &o->name, name_max);

        if (rc != XET_OK) {
            return rc;
        }
    }

    if (o->index % info->stride != 0) {
        return XET_OK;
    }

    if (info->index_n == XET_ZT_INDEX) {
        xet_zt_index_halve(m, info);
    }

    if (o->name.len > XET_ZT_MARK_NAME) {
        info->order = 0;
    }

    if (info->order) {
        name = &m->names[info->index_n];

        name->len = (uint8_t) o->name.len;

        if (o->name.len) {
            memcpy(name->data, o->name.data, o->name.len);
        }
    }

    info->index[info->index_n++] = o->pos;

    return XET_OK;
}


static xet_status_t
xet_zt_index_order(xet_zt_index_t *m, xet_zt_info_t *info,
    const xet_zt_text_t *name, size_t name_max)
{
    unsigned       order;
    xet_zt_text_t  last;

    if (m->last == NULL) {
        m->names = calloc(XET_ZT_INDEX, sizeof(xet_zt_mark_name_t));
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
xet_zt_index_halve(xet_zt_index_t *m, xet_zt_info_t *info)
{
    unsigned  i;

    for (i = 0; i < XET_ZT_INDEX / 2; i++) {
        info->index[i] = info->index[2 * i];

        if (info->order) {
            m->names[i] = m->names[2 * i];
        }
    }

    info->index_n = XET_ZT_INDEX / 2;
    info->stride *= 2;
}


void
xet_zt_index_end(xet_zt_index_t *m, const xet_zt_info_t *info)
{
    free(m->last);
    m->last = NULL;

    if (info->order == 0) {
        xet_zt_index_destroy(m);
    }
}


void
xet_zt_index_destroy(xet_zt_index_t *m)
{
    free(m->names);
    free(m->last);

    memset(m, 0, sizeof(xet_zt_index_t));
}


/* Compares two names; as strings if several bits of order are set. */

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
