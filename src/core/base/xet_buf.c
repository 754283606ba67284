
/*
 * A chained output buffer.
 *
 * Purpose:    collects a response of unknown length without ever moving
 *             written bytes; the nodes become a chain of nginx buffers.
 * States:     good, failed.  The buffer fails on a failed allocation, on an
 *             overflow of a size, and on an advance past the last node.  A
 *             failed buffer stays failed and ignores all writes, so a writer
 *             calls xet_buf_status() once, at the end.
 * Ownership:  nodes and their bytes come from the callback, one allocation per
 *             node; only the owner of the allocator frees them.
 * Threads:    one at a time.
 *
 * Only the last node may be empty, after a reserve without an advance.  If
 * such a node is too small for the next reserve, it gets new memory instead of
 * a successor, so empty nodes never accumulate.
 */


#include <string.h>

#include "xet_base.h"


#define XET_BUF_NODE_DEFAULT  4096
#define XET_BUF_NODE_MAX      65536


static int xet_buf_grow(xet_buf_t *b, size_t n);


void *
xet_alloc_double(xet_alloc_pt alloc, void *data, const void *array,
    size_t *room, size_t least, size_t size)
{
    void    *p;
    size_t   n;

    if (*room > SIZE_MAX / 2 / size) {
        return NULL;
    }

    n = *room ? *room * 2 : least;

    p = alloc(data, n * size);
    if (p == NULL) {
        return NULL;
    }

    if (*room) {
        memcpy(p, array, *room * size);
    }

    *room = n;

    return p;
}


void
xet_buf_init(xet_buf_t *b, xet_alloc_pt alloc, void *data, size_t node_size)
{
    b->alloc = alloc;
    b->data = data;
    b->first = NULL;
    b->last = NULL;
    b->size = 0;
    b->node_size = node_size ? node_size : XET_BUF_NODE_DEFAULT;
    b->failed = 0;
}


uint8_t *
xet_buf_reserve(xet_buf_t *b, size_t n)
{
    if (b->failed) {
        return NULL;
    }

    if (b->last == NULL || (size_t) (b->last->end - b->last->pos) < n) {
        if (!xet_buf_grow(b, n)) {
            return NULL;
        }
    }

    return b->last->pos;
}


void
xet_buf_advance(xet_buf_t *b, size_t n)
{
    if (b->failed || n == 0) {
        return;
    }

    if (b->last == NULL || (size_t) (b->last->end - b->last->pos) < n) {
        b->failed = 1;
        return;
    }

    b->last->pos += n;
    b->size += n;
}


void
xet_buf_write(xet_buf_t *b, const void *data, size_t len)
{
    size_t          n;
    const uint8_t  *p;

    p = data;

    while (len) {

        if (b->failed) {
            return;
        }

        n = b->last ? (size_t) (b->last->end - b->last->pos) : 0;

        if (n == 0) {

            /*
             * A remainder longer than the next node size gets a node of its
             * own, so that the output filters have fewer links to process.
             */

            if (!xet_buf_grow(b, len > b->node_size ? len : 1)) {
                return;
            }

            continue;
        }

        if (n > len) {
            n = len;
        }

        memcpy(b->last->pos, p, n);

        b->last->pos += n;
        b->size += n;

        p += n;
        len -= n;
    }
}


xet_status_t
xet_buf_status(const xet_buf_t *b)
{
    return b->failed ? XET_NOMEM : XET_OK;
}


/* Makes room for at least n bytes in the last node; returns 1 on success. */

static int
xet_buf_grow(xet_buf_t *b, size_t n)
{
    size_t           size;
    uint8_t         *p;
    xet_buf_node_t  *node;

    size = (n > b->node_size) ? n : b->node_size;

    if (size > SIZE_MAX - sizeof(xet_buf_node_t)) {
        b->failed = 1;
        return 0;
    }

    p = b->alloc(b->data, sizeof(xet_buf_node_t) + size);
    if (p == NULL) {
        b->failed = 1;
        return 0;
    }

    if (b->node_size < XET_BUF_NODE_MAX) {
        b->node_size = (b->node_size < XET_BUF_NODE_MAX / 2)
                       ? b->node_size * 2 : XET_BUF_NODE_MAX;
    }

    if (b->last && b->last->pos == b->last->start) {
        node = b->last;

    } else {
        node = (xet_buf_node_t *) (void *) p;
        node->next = NULL;

        if (b->last) {
            b->last->next = node;

        } else {
            b->first = node;
        }

        b->last = node;
    }

    node->start = p + sizeof(xet_buf_node_t);
    node->pos = node->start;
    node->end = node->start + size;

    return 1;
}
