
/*
 * Growing arrays.
 *
 * Purpose:    hold the keys, ranges and shards of a manifest, which arrive one
 *             by one.  A count in the manifest is not trusted: memory is
 *             allocated only for items that have arrived.
 * States:     none.
 * Ownership:  the caller owns the array.
 * Threads:    any.
 *
 * An array grows by half instead of doubling.  With 2 million components the
 * array of ranges is the largest allocation, and realloc() may need memory for
 * the old and the new array at the same time.
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
