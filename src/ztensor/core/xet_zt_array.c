
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


void *
xet_zt_array_grow(void *items, size_t *room, size_t size, size_t first)
{
    void    *p;
    size_t   n;

    n = *room ? *room + *room / 2 : first;

    if (n > SIZE_MAX / size) {
        return NULL;
    }

    p = realloc(items, n * size);

    if (p != NULL) {
        *room = n;
    }

    return p;
}
