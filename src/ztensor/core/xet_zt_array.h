
/*
 * Arrays that grow.
 */

#ifndef _XET_ZT_ARRAY_H_INCLUDED_
#define _XET_ZT_ARRAY_H_INCLUDED_


#include <stddef.h>


/*
 * More room, of malloc() and the caller's to free, for an array of *room
 * items of size bytes: first items when it has none, half as many more after
 * that.  NULL when out of memory; items and *room are as they were then.
 */
void *xet_zt_array_grow(void *items, size_t *room, size_t size, size_t first);


#endif /* _XET_ZT_ARRAY_H_INCLUDED_ */
