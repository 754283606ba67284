
/*
 * An allocator for code under test, in a fixed block of memory.  Setting used
 * to 0 frees all memory; an allocation beyond the limit fails.
 */

#ifndef _FUZZ_HEAP_H_INCLUDED_
#define _FUZZ_HEAP_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>


typedef struct {
    uint8_t  *heap;
    size_t    used;
    size_t    limit;
} fuzz_heap_t;


static void *
fuzz_alloc(void *data, size_t size)
{
    void         *p;
    fuzz_heap_t  *heap;

    heap = data;
    size = (size + 15) & ~(size_t) 15;

    if (size > heap->limit - heap->used) {
        return NULL;
    }

    p = heap->heap + heap->used;
    heap->used += size;

    return p;
}


#endif /* _FUZZ_HEAP_H_INCLUDED_ */
