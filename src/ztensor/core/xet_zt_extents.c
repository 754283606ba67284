
/*
 * Ranges that overlap.
 *
 * Purpose:    equal ranges are tied weights and welcome; ranges that overlap
 *             in part are two readings of one byte.
 * States:     being filled; finished, when only the ranges that overlap
 *             another in part are left, none in a sane file.
 * Ownership:  the array is allocated here, 24 bytes a component.
 * Threads:    one at a time.
 *
 * When sorted by file and offset, a range overlaps one before it if the
 * furthest end so far lies past its start, and one after it if the next one
 * starts before its end.  Writers emit components in this order or nearly so.
 */


#include <stdlib.h>

#include "xet_zt.h"


#define XET_ZT_EXTENTS_FIRST  64


static int xet_zt_extents_order(const void *one, const void *two);


void
xet_zt_extents_init(xet_zt_extents_t *e)
{
    e->extents = NULL;
    e->n = 0;
    e->room = 0;
}


void
xet_zt_extents_destroy(xet_zt_extents_t *e)
{
    free(e->extents);
    e->extents = NULL;
}


xet_status_t
xet_zt_extents_add(xet_zt_extents_t *e, uint64_t file, uint64_t offset,
    uint64_t length)
{
    xet_zt_extent_t  *extents;

    if (length == 0) {
        return XET_OK;
    }

    if (e->n == e->room) {
        extents = xet_zt_array_grow(e->extents, &e->room,
                                    sizeof(xet_zt_extent_t),
                                    XET_ZT_EXTENTS_FIRST);
        if (extents == NULL) {
            return XET_NOMEM;
        }

        e->extents = extents;
    }

    e->extents[e->n].offset = offset;
    e->extents[e->n].length = length;
    e->extents[e->n].file = file;
    e->n++;

    return XET_OK;
}


xet_status_t
xet_zt_extents_finish(xet_zt_extents_t *e)
{
    int               before, after;
    size_t            i, n, next;
    uint64_t          end;
    xet_zt_extent_t  *x, *last;

    if (e->n == 0) {
        return XET_OK;
    }

    for (i = 1; i < e->n; i++) {
        if (xet_zt_extents_order(&e->extents[i - 1], &e->extents[i]) > 0) {
            qsort(e->extents, e->n, sizeof(xet_zt_extent_t),
                  xet_zt_extents_order);
            break;
        }
    }

    n = 0;
    end = 0;
    last = NULL;

    for (i = 0; i < e->n; i = next) {
        x = &e->extents[i];

        next = i + 1;

        while (next < e->n
               && xet_zt_extents_order(x, &e->extents[next]) == 0)
        {
            next++;
        }

        if (last == NULL || last->file != x->file) {
            end = 0;
        }

        before = end > x->offset;
        after = next < e->n
                && e->extents[next].file == x->file
                && e->extents[next].offset < x->offset + x->length;

        if (x->offset + x->length > end) {
            end = x->offset + x->length;
        }

        last = x;

        if (before || after) {
            e->extents[n] = *x;
            last = &e->extents[n++];
        }
    }

    e->n = n;
    e->room = n;

    if (n == 0) {
        xet_zt_extents_destroy(e);
        return XET_OK;
    }

    /* the ranges left may stay in memory for long */

    x = realloc(e->extents, n * sizeof(xet_zt_extent_t));
    e->extents = x ? x : e->extents;

    return XET_ZT_OVERLAP;
}


int
xet_zt_extents_find(const xet_zt_extents_t *e, uint64_t file, uint64_t offset,
    uint64_t length)
{
    xet_zt_extent_t  x;

    if (e->n == 0) {
        return 0;
    }

    x.offset = offset;
    x.length = length;
    x.file = file;

    return bsearch(&x, e->extents, e->n, sizeof(xet_zt_extent_t),
                   xet_zt_extents_order)
           != NULL;
}


static int
xet_zt_extents_order(const void *one, const void *two)
{
    const xet_zt_extent_t  *a, *b;

    a = one;
    b = two;

    if (a->file != b->file) {
        return (a->file < b->file) ? -1 : 1;
    }

    if (a->offset != b->offset) {
        return (a->offset < b->offset) ? -1 : 1;
    }

    if (a->length != b->length) {
        return (a->length < b->length) ? -1 : 1;
    }

    return 0;
}
