
/*
 * The shard table.
 *
 * Purpose:    bounds of components that lie in other files.
 * States:     being filled, asked; keys of container 2 ascend, "shards" comes
 *             before "objects", so the table is complete and in order by the
 *             time it is asked.
 * Ownership:  the rows are allocated here.
 * Threads:    one at a time.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt.h"


#define XET_ZT_SHARDS_FIRST  16


static int xet_zt_shards_order(const void *one, const void *two);


void
xet_zt_shards_init(xet_zt_shards_t *s)
{
    s->rows = NULL;
    s->n = 0;
    s->room = 0;
}


void
xet_zt_shards_destroy(xet_zt_shards_t *s)
{
    free(s->rows);
    s->rows = NULL;
}


xet_status_t
xet_zt_shards_add(xet_zt_shards_t *s, const xet_zt_shard_t *shard)
{
    xet_zt_shards_row_t  *rows;

    if (shard->size < XET_ZT_FILE_MIN_2) {
        return XET_ZT_MANIFEST;
    }

    if (s->n == s->room) {
        rows = xet_zt_array_grow(s->rows, &s->room,
                                 sizeof(xet_zt_shards_row_t),
                                 XET_ZT_SHARDS_FIRST);
        if (rows == NULL) {
            return XET_NOMEM;
        }

        s->rows = rows;
    }

    memcpy(s->rows[s->n].name, shard->name.data, shard->name.len);
    s->rows[s->n].len = shard->name.len;
    s->rows[s->n].size = shard->size;
    s->n++;

    return XET_OK;
}


xet_status_t
xet_zt_shards_find(const xet_zt_shards_t *s, const xet_zt_text_t *name,
    xet_zt_region_t *region, uint64_t *number)
{
    xet_zt_shards_row_t  *row, key;

    if (s->n == 0) {
        return XET_ZT_SHARD_REF;
    }

    memcpy(key.name, name->data, name->len);
    key.len = name->len;

    row = bsearch(&key, s->rows, s->n, sizeof(xet_zt_shards_row_t),
                  xet_zt_shards_order);

    if (row == NULL) {
        return XET_ZT_SHARD_REF;
    }

    region->data_start = XET_ZT_MAGIC_LEN;
    region->data_end = row->size - XET_ZT_FOOTER_2;

    *number = (uint64_t) (row - s->rows) + 1;

    return XET_OK;
}


/* The order of keys in CBOR: shorter ones first. */

static int
xet_zt_shards_order(const void *one, const void *two)
{
    const xet_zt_shards_row_t  *a, *b;

    a = one;
    b = two;

    if (a->len != b->len) {
        return (a->len < b->len) ? -1 : 1;
    }

    return memcmp(a->name, b->name, a->len);
}
