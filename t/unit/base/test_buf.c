
/*
 * Tests the chained buffer: contents after any sequence of writes, node sizes,
 * reserve and advance, and failed allocations.
 */


#include "xet_test.h"
#include "xet_base.h"
#include "xet_vectors.h"


typedef struct {
    void      *block[64];
    unsigned   n;
    unsigned   limit;              /* number of allocations that succeed */
    size_t     last;               /* size of the last request */
} test_heap_t;


static void *
test_alloc(void *data, size_t size)
{
    test_heap_t  *heap;

    heap = data;
    heap->last = size;

    if (heap->n >= heap->limit || heap->n == 64) {
        return NULL;
    }

    return heap->block[heap->n++] = malloc(size);
}


static void
test_heap_init(test_heap_t *heap, unsigned limit)
{
    heap->n = 0;
    heap->limit = limit;
    heap->last = 0;
}


static void
test_heap_free(test_heap_t *heap)
{
    while (heap->n) {
        free(heap->block[--heap->n]);
    }
}


/*
 * Returns 1 if the nodes hold these bytes, and no node except the last is
 * empty.
 */

static int
test_holds(const xet_buf_t *b, const uint8_t *want, size_t len)
{
    size_t           n;
    xet_buf_node_t  *node;

    if (b->size != len) {
        return 0;
    }

    for (node = b->first; node; node = node->next) {
        n = (size_t) (node->pos - node->start);

        if (n > len || node->pos > node->end
            || memcmp(node->start, want, n) != 0
            || (n == 0 && node->next)
            || (node->next == NULL && node != b->last))
        {
            return 0;
        }

        want += n;
        len -= n;
    }

    return len == 0;
}


static void
test_empty(void)
{
    xet_buf_t    b;
    test_heap_t  heap;

    test_heap_init(&heap, 64);
    xet_buf_init(&b, test_alloc, &heap, 0);

    xet_buf_write(&b, "", 0);
    xet_buf_advance(&b, 0);

    xet_ok(b.first == NULL && b.last == NULL && b.size == 0 && heap.n == 0,
           "nothing is allocated before the first byte");
    xet_is_u64(xet_buf_status(&b), XET_OK, "an empty buffer is good");

    xet_buf_write(&b, "a", 1);
    xet_is_u64(b.first->end - b.first->start, 4096, "default node: 4 KiB");

    test_heap_free(&heap);
}


static void
test_nodes(void)
{
    unsigned         i, wrong;
    uint64_t         want;
    xet_buf_t        b;
    test_heap_t      heap;
    xet_buf_node_t  *node;

    test_heap_init(&heap, 64);
    xet_buf_init(&b, test_alloc, &heap, 1000);

    for (i = 0; i < 400000; i++) {
        xet_buf_write(&b, "x", 1);
    }

    wrong = 0;
    want = 1000;

    for (node = b.first; node; node = node->next) {
        wrong += (uint64_t) (node->end - node->start) != want;
        want = (want * 2 < 65536) ? want * 2 : 65536;
    }

    xet_is_u64(wrong, 0, "nodes double from 1000 bytes to 64 KiB");
    xet_is_u64(heap.n, 12, "400,000 bytes are 12 nodes");
    xet_is_u64(b.size, 400000, "the total is counted");

    test_heap_free(&heap);

    test_heap_init(&heap, 64);
    xet_buf_init(&b, test_alloc, &heap, 100000);
    xet_buf_write(&b, "x", 1);

    xet_ok(b.first->end - b.first->start == 100000 && b.node_size == 100000,
           "a first node over 64 KiB stays as asked for");

    test_heap_free(&heap);
}


static void
test_long_write(void)
{
    uint8_t      *data;
    xet_buf_t     b;
    test_heap_t   heap;

    data = xet_splitmix64_data(300000, 1);

    test_heap_init(&heap, 64);
    xet_buf_init(&b, test_alloc, &heap, 16);

    xet_buf_write(&b, data, 10);
    xet_buf_write(&b, data + 10, 300000 - 10);

    xet_ok(test_holds(&b, data, 300000), "a long write, all its bytes");
    xet_is_u64(heap.n, 2, "the rest of a long write is one node");
    xet_ok(b.first->pos == b.first->end, "the first node was filled up");

    test_heap_free(&heap);
    free(data);
}


static void
test_reserve(void)
{
    uint8_t      *p, *q;
    xet_buf_t     b;
    test_heap_t   heap;

    test_heap_init(&heap, 64);
    xet_buf_init(&b, test_alloc, &heap, 8);

    p = xet_buf_reserve(&b, 8);
    xet_ok(p && b.size == 0 && heap.n == 1, "a reserve counts nothing");

    q = xet_buf_reserve(&b, 8);
    xet_ok(q == p && heap.n == 1, "the same room again");

    q = xet_buf_reserve(&b, 100);
    xet_ok(q && q != p && b.first == b.last && heap.n == 2,
           "an empty node is replaced, not followed");

    memset(q, 'a', 100);
    xet_buf_advance(&b, 60);

    p = xet_buf_reserve(&b, 40);
    xet_ok(p == q + 60 && heap.n == 2, "what was not advanced is left");

    p = xet_buf_reserve(&b, 41);
    xet_ok(p && b.first != b.last && heap.n == 3,
           "one byte more is another node");

    memset(p, 'a', 41);
    xet_buf_advance(&b, 41);

    memset(q, 'a', 100);
    p = malloc(101);
    memset(p, 'a', 101);

    xet_ok(test_holds(&b, p, 101), "advanced bytes are the contents");
    xet_is_u64(xet_buf_status(&b), XET_OK, "still good");

    xet_buf_advance(&b, (size_t) (b.last->end - b.last->pos));
    xet_is_u64(xet_buf_status(&b), XET_OK, "an advance to the very end");

    xet_buf_advance(&b, 1);
    xet_is_u64(xet_buf_status(&b), XET_NOMEM, "and one byte past it");
    xet_ok(xet_buf_reserve(&b, 1) == NULL, "a failed buffer reserves nothing");

    test_heap_free(&heap);
    free(p);
}


static void
test_failure(void)
{
    uint64_t     size;
    xet_buf_t    b;
    test_heap_t  heap;

    test_heap_init(&heap, 0);
    xet_buf_init(&b, test_alloc, &heap, 8);
    xet_buf_write(&b, "abc", 3);

    xet_ok(xet_buf_status(&b) == XET_NOMEM && b.size == 0 && b.first == NULL,
           "the first allocation fails");

    test_heap_init(&heap, 1);
    xet_buf_init(&b, test_alloc, &heap, 8);
    xet_buf_write(&b, "abcdefgh", 8);
    xet_is_u64(xet_buf_status(&b), XET_OK, "eight bytes into eight");

    xet_buf_write(&b, "i", 1);
    xet_is_u64(xet_buf_status(&b), XET_NOMEM, "the ninth needs a node");

    heap.limit = 64;
    size = b.size;

    xet_buf_write(&b, "jkl", 3);
    xet_buf_advance(&b, 1);

    xet_ok(xet_buf_reserve(&b, 1) == NULL && heap.n == 1 && b.size == size,
           "it stays failed, and asks for no more memory");
    xet_is_u64(xet_buf_status(&b), XET_NOMEM, "and says so");

    test_heap_free(&heap);

    test_heap_init(&heap, 64);
    xet_buf_init(&b, test_alloc, &heap, 8);

    xet_ok(xet_buf_reserve(&b, SIZE_MAX) == NULL && heap.last == 0
           && xet_buf_status(&b) == XET_NOMEM,
           "a size that overflows is never asked for");

    test_heap_init(&heap, 64);
    xet_buf_init(&b, test_alloc, &heap, 8);
    xet_buf_write(&b, "abc", 3);
    (void) xet_buf_reserve(&b, SIZE_MAX);
    xet_buf_write(&b, "d", 1);
    xet_buf_advance(&b, 1);

    xet_ok(b.size == 3 && xet_buf_reserve(&b, 1) == NULL
           && xet_buf_status(&b) == XET_NOMEM,
           "failed, whatever room the last node has");

    test_heap_free(&heap);

    test_heap_init(&heap, 64);
    xet_buf_init(&b, test_alloc, &heap, 8);
    xet_buf_advance(&b, 1);
    xet_is_u64(xet_buf_status(&b), XET_NOMEM, "an advance without a node");

    test_heap_free(&heap);
}


static void
test_random(void)
{
    size_t        n, done, room;
    uint8_t      *data, *p;
    uint64_t      state, dice;
    unsigned      round, wrong;
    xet_buf_t     b;
    test_heap_t   heap;

    state = 42;
    wrong = 0;

    data = xet_splitmix64_data(100000, 7);

    for (round = 0; round < 300; round++) {
        test_heap_init(&heap, 64);
        xet_buf_init(&b, test_alloc, &heap,
                     1 + (size_t) (xet_splitmix64(&state) % 5000));

        for (done = 0; done < 60000; done += n) {
            dice = xet_splitmix64(&state);
            n = (size_t) (dice >> 32) % 3000;

            if (dice & 1) {
                xet_buf_write(&b, data + done, n);
                continue;
            }

            room = n + (size_t) (dice >> 8) % 100;
            p = xet_buf_reserve(&b, room);

            if (p == NULL) {
                break;
            }

            memcpy(p, data + done, n);
            xet_buf_advance(&b, n);
        }

        wrong += !test_holds(&b, data, done)
                 || xet_buf_status(&b) != XET_OK;

        test_heap_free(&heap);
    }

    xet_is_u64(wrong, 0, "300 random mixes of writes and reserves");

    free(data);
}


int
main(void)
{
    test_empty();
    test_nodes();
    test_long_write();
    test_reserve();
    test_failure();
    test_random();

    return xet_done();
}
