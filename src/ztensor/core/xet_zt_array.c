
/*
 * Arrays that grow.
 *
 * Purpose:    keys, ranges and shards of a manifest come one by one, and a
 *             count in the manifest is not believed before they have come.
 * States:     none.
 * Ownership:  the caller's.
 * Threads:    any.
 *
 * An array grows by half rather than to the double: at 2 million components
 * the array of ranges is the largest thing in memory, and while it is moved
 * there are two of them.
 */


#include <stdint.h>
#include <stdlib.h>

#include "xet_zt.h"


#define XET_ZT_ARRAY_FIRST  64             /* items */


void *
xet_zt_array_push(xet_zt_array_t *a, size_t size)
{
    void    *p;
    size_t   room;

    if (a->n == a->room) {
        room = a->room ? a->room + a->room / 2 : XET_ZT_ARRAY_FIRST;

        if (room > SIZE_MAX / size) {
            return NULL;
        }

        p = realloc(a->items, room * size);
        if (p == NULL) {
            return NULL;
        }

        a->items = p;
        a->room = room;
    }

    return (uint8_t *) a->items + a->n++ * size;
}
