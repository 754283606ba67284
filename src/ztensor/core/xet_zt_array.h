
/*
 * Arrays that grow.
 */

#ifndef _XET_ZT_ARRAY_H_INCLUDED_
#define _XET_ZT_ARRAY_H_INCLUDED_


#include <stddef.h>


/*
 * Grows an array of *room items of size bytes, which was allocated here: to
 * first items (at least 2) when it has no room, by half after that.  Returns
 * the array, which the caller frees with free(), and sets *room; or returns
 * NULL when out of memory and leaves items and *room as they were.
 */
void *xet_zt_array_grow(void *items, size_t *room, size_t size, size_t first);


#endif /* _XET_ZT_ARRAY_H_INCLUDED_ */
