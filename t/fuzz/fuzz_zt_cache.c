
/*
 * Cached verdicts on a zTensor file: every restored verdict can be saved and
 * restored again, and its objects can be walked with any manifest.
 *
 * Input: 8 bytes with the file's size, then the bytes that follow version,
 * rules and size in a cached verdict, without the final hash, which a fuzzer
 * can't guess.
 */


#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "fuzz_heap.h"
#include "xet_base.h"
#include "xet_ztensor.h"


#define HEAP_SIZE  (1024 * 1024)

#define check(cond)  if (!(cond)) { __builtin_trap(); }


static uint8_t      memory[HEAP_SIZE];
static fuzz_heap_t  heap = { memory, 0, HEAP_SIZE };


static xet_status_t
fuzz_object(void *ctx, xet_zt_object_t *o)
{
    return (o->n > 1000) ? XET_DONE : XET_OK;
}


/* Walks the objects with arbitrary data as the manifest. */

static void
fuzz_walk(const xet_zt_t *zt, const uint8_t *data, size_t size,
    const xet_zt_select_t *select)
{
    xet_range_t     range;
    xet_zt_walk_t  *w;

    w = xet_zt_walk_create(zt, select, fuzz_object, NULL);
    check(w != NULL);

    if (xet_zt_walk_need(w, &range) == XET_AGAIN) {
        check(range.start < range.end);
        check(range.end <= xet_zt_info(zt)->size);

        (void) xet_zt_walk_feed(w, data, size);
    }

    xet_zt_walk_destroy(w);
}


static void
fuzz_again(const xet_zt_t *zt, xet_status_t verdict, uint64_t size,
    const xet_zt_limits_t *limits)
{
    size_t           len;
    uint8_t         *saved;
    xet_buf_t        b;
    xet_zt_t        *again;
    xet_buf_node_t  *node;

    heap.used = 0;
    xet_buf_init(&b, fuzz_alloc, &heap, 0);

    check(xet_zt_save(zt, verdict, &b) == XET_OK);
    check(b.size <= XET_ZT_SAVED_MAX);

    saved = malloc((size_t) b.size);
    len = 0;

    for (node = b.first; node; node = node->next) {
        memcpy(saved + len, node->start, (size_t) (node->pos - node->start));
        len += (size_t) (node->pos - node->start);
    }

    check(xet_zt_restore(&again, size, limits, saved, len, NULL, 0)
          == verdict);
    check(xet_zt_info(again)->count == xet_zt_info(zt)->count);
    check(xet_zt_info(again)->index_n == xet_zt_info(zt)->index_n);

    xet_zt_destroy(again);
    free(saved);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t            len;
    uint8_t          *kept;
    uint64_t          file;
    xet_zt_t         *zt;
    xet_status_t      rc;
    xet_zt_limits_t   limits;
    xet_zt_select_t   select;

    if (size < 8) {
        return 0;
    }

    file = xet_get_u64(data);
    xet_zt_limits_init(&limits);

    len = 17 + (size - 8) + 8;
    kept = malloc(len);

    kept[0] = 1;
    xet_put_u64(kept + 1, xet_zt_rules(&limits));
    xet_put_u64(kept + 9, file);
    memcpy(kept + 17, data + 8, size - 8);
    xet_put_u64(kept + len - 8, XXH3_64bits(kept, len - 8));

    rc = xet_zt_restore(&zt, file, &limits, kept, len, NULL, 0);

    if (rc != XET_ZT_STALE) {
        fuzz_again(zt, rc, file, &limits);
    }

    if (rc == XET_OK) {
        memset(&select, 0, sizeof(select));
        fuzz_walk(zt, kept, len, &select);

        select.first = xet_zt_info(zt)->count / 2;
        fuzz_walk(zt, kept, len, &select);

        select.name.data = data;
        select.name.len = 8;
        fuzz_walk(zt, kept, len, &select);
    }

    xet_zt_destroy(zt);
    free(kept);

    return 0;
}
