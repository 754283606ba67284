
/*
 * A chained output buffer: grows by nodes, never copies what is written, and
 * keeps the total so that Content-Length is known.  Memory comes from a
 * callback (an nginx pool, malloc) and is never freed here: the owner of the
 * allocator frees it as a whole.  After a failed allocation the buffer stays
 * failed and all writes are ignored, so a writer checks once at the end.
 */

#ifndef _XET_BUF_H_INCLUDED_
#define _XET_BUF_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include "xet_status.h"


/* Returns memory aligned for pointers, or NULL when there is none left. */
typedef void *(*xet_alloc_pt)(void *data, size_t size);


/*
 * Returns a copy of a full array, of *room elements of size bytes, with twice
 * the room, or an array with room for least where there is none; sets *room.
 * NULL when out of memory.
 */
void *xet_alloc_double(xet_alloc_pt alloc, void *data, const void *array,
    size_t *room, size_t least, size_t size);


typedef struct xet_buf_node_s  xet_buf_node_t;

struct xet_buf_node_s {
    xet_buf_node_t  *next;
    uint8_t         *start;
    uint8_t         *pos;          /* end of what is written */
    uint8_t         *end;
};


typedef struct {
    xet_alloc_pt     alloc;
    void            *data;

    xet_buf_node_t  *first;
    xet_buf_node_t  *last;

    uint64_t         size;         /* bytes written, all nodes */
    size_t           node_size;    /* of the next node; doubles up to 64 KiB */

    unsigned         failed:1;
} xet_buf_t;


/* node_size: size of the first node, 0 for a default of 4 KiB. */
void xet_buf_init(xet_buf_t *b, xet_alloc_pt alloc, void *data,
    size_t node_size);

/*
 * Returns contiguous room for n bytes, NULL when the buffer has failed.  What
 * is written there counts after xet_buf_advance(); a reserve without an advance
 * has no effect, but may leave an empty last node (pos == start).  An advance
 * by more than the last node has room for fails the buffer.
 */
uint8_t *xet_buf_reserve(xet_buf_t *b, size_t n);
void xet_buf_advance(xet_buf_t *b, size_t n);

void xet_buf_write(xet_buf_t *b, const void *data, size_t len);

/* XET_OK, or XET_NOMEM when any write has failed. */
xet_status_t xet_buf_status(const xet_buf_t *b);


#endif /* _XET_BUF_H_INCLUDED_ */
