
/*
 * Implements an allocator for objects under test: it can be made to fail, and
 * frees all its memory in one call.
 */

#ifndef _XET_TEST_POOL_H_INCLUDED_
#define _XET_TEST_POOL_H_INCLUDED_


#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "xet_base.h"


typedef struct xet_test_block_s  xet_test_block_t;

struct xet_test_block_s {
    xet_test_block_t  *next;
    uint64_t           align;
};


typedef struct {
    xet_test_block_t  *blocks;
    unsigned           limit;      /* allocations that succeed; 0: all */
    unsigned           n;
    size_t             size;
} xet_test_pool_t;


static inline void *
xet_test_alloc(void *data, size_t size)
{
    xet_test_pool_t   *pool;
    xet_test_block_t  *block;

    pool = data;

    if (pool->limit && pool->n == pool->limit) {
        return NULL;
    }

    block = malloc(sizeof(xet_test_block_t) + size);
    if (block == NULL) {
        return NULL;
    }

    block->next = pool->blocks;
    pool->blocks = block;
    pool->n++;
    pool->size += size;

    return block + 1;
}


static inline void
xet_test_pool_free(xet_test_pool_t *pool)
{
    xet_test_block_t  *block;

    while (pool->blocks) {
        block = pool->blocks;
        pool->blocks = block->next;
        free(block);
    }

    pool->n = 0;
    pool->size = 0;
}


/* Returns a copy of the buffer's contents in one block. */

static inline uint8_t *
xet_test_flatten(xet_test_pool_t *pool, const xet_buf_t *b, size_t *len)
{
    uint8_t         *data, *p;
    xet_buf_node_t  *node;

    data = xet_test_alloc(pool, (size_t) b->size + 1);
    if (data == NULL) {
        return NULL;
    }

    p = data;

    for (node = b->first; node; node = node->next) {
        if (node->pos != node->start) {
            memcpy(p, node->start, (size_t) (node->pos - node->start));
            p += node->pos - node->start;
        }
    }

    *p = '\0';
    *len = (size_t) (p - data);

    return data;
}


/* Returns random numbers (SplitMix64), the same ones in every run. */

static inline uint64_t
xet_test_random(uint64_t *state)
{
    uint64_t  z;

    *state += UINT64_C(0x9e3779b97f4a7c15);

    z = *state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);

    return z ^ z >> 31;
}


static inline void
xet_test_random_hash(uint64_t *state, uint8_t *hash)
{
    unsigned  i, k;
    uint64_t  v;

    for (i = 0; i < 4; i++) {
        v = xet_test_random(state);

        for (k = 0; k < 8; k++) {
            hash[i * 8 + k] = (uint8_t) (v >> 8 * k);
        }
    }
}


#endif /* _XET_TEST_POOL_H_INCLUDED_ */
