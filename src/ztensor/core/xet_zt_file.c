
/*
 * The check of a whole zTensor file.
 *
 * Purpose:    checks a file, and sets marks so that a page of a listing can
 *             begin at any object.  A mark is the offset of an object in the
 *             manifest, and its name if names are ordered.  Every stride-th
 *             object has a mark; there are at most XET_ZT_INDEX marks.
 * States:     start of the file, end of the file, manifest, done or failed.
 *             The result is kept.
 * Ownership:  the parser, the hash and the shard table are released when the
 *             manifest has been read.  After that the record keeps only ranges
 *             of components that overlap; after an error it keeps all ranges.
 * Threads:    one at a time; several threads may read a finished record.
 *
 * Memory: while the manifest is read, 400 KiB for the parser, 16 bytes per
 * object and 24 per component; after that 34 KiB and the root's attributes.
 *
 * If a manifest of container 2 is damaged, the error is XET_ZT_MANIFEST_HASH.
 * So after a parse error the remaining bytes are read to compute the hash.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt.h"


typedef struct {
    uint8_t    name[XET_ZT_SHARD_MAX];
    size_t     len;
    uint64_t   size;                       /* bytes of the shard */
} xet_zt_shards_row_t;


static size_t xet_zt_collect(xet_zt_t *zt, uint8_t *dst, size_t want,
    const uint8_t *data, size_t len);
static xet_status_t xet_zt_ends(xet_zt_t *zt);
static xet_status_t xet_zt_manifest(xet_zt_t *zt, const uint8_t *data,
    size_t len);
static xet_status_t xet_zt_finish(xet_zt_t *zt);
static xet_status_t xet_zt_extents_finish(xet_zt_array_t *e);
static xet_status_t xet_zt_root(xet_zt_t *zt);
static xet_status_t xet_zt_object(void *ctx, xet_zt_object_t *o);
static xet_status_t xet_zt_extent(xet_zt_t *zt, xet_zt_object_t *o,
    const xet_zt_component_t *c);
static int xet_zt_extents_order(const void *one, const void *two);
static xet_status_t xet_zt_shard(void *ctx, const xet_zt_shard_t *shard);
static xet_status_t xet_zt_shards_find(const xet_zt_array_t *shards,
    const xet_zt_text_t *name, xet_zt_region_t *region, uint64_t *number);
static int xet_zt_shards_order(const void *one, const void *two);


void
xet_zt_limits_init(xet_zt_limits_t *limits)
{
    memset(limits, 0, sizeof(xet_zt_limits_t));

    limits->manifest = (uint64_t) 64 << 20;
    limits->objects = 1000000;
    limits->components = 2000000;
    limits->roles = 64;
    limits->rank = XET_ZT_RANK_MAX;
    limits->depth = XET_CBOR_DEPTH;
    limits->name = XET_ZT_NAME_MAX;
    limits->keys = 65536;
    limits->attributes = 1 << 20;
}


xet_zt_t *
xet_zt_create(uint64_t size, const xet_zt_limits_t *limits)
{
    xet_zt_t  *zt;

    zt = calloc(1, sizeof(xet_zt_t));
    if (zt == NULL) {
        return NULL;
    }

    zt->info.size = size;
    zt->info.stride = 1;
    zt->info.order = XET_ZT_ORDER_BYTES|XET_ZT_ORDER_LENGTH;
    zt->limits = *limits;

    zt->status = (size < XET_ZT_FILE_MIN) ? XET_ZT_TOO_SHORT : XET_AGAIN;
    zt->verdict = XET_AGAIN;

    return zt;
}


void
xet_zt_destroy(xet_zt_t *zt)
{
    if (zt == NULL) {
        return;
    }

    xet_zt_manifest_destroy(zt->manifest);
    (void) XXH3_freeState(zt->hash);
    xet_zt_index_destroy(&zt->index);

    free(zt->shards.items);
    free(zt->extents.items);
    free((void *) zt->attributes.data);
    free(zt);
}


xet_status_t
xet_zt_need(const xet_zt_t *zt, xet_range_t *range)
{
    const xet_zt_ends_t  *ends;

    ends = &zt->info.ends;

    switch (zt->part) {

    case xet_zt_in_head:
        range->start = zt->have;
        range->end = XET_ZT_MAGIC_LEN;
        break;

    case xet_zt_in_tail:
        range->start = zt->info.size - xet_zt_tail_len(zt->info.size)
                       + zt->have;
        range->end = zt->info.size;
        break;

    case xet_zt_in_manifest:
        range->start = ends->manifest_offset + zt->have;
        range->end = ends->manifest_offset + ends->manifest_length;
        break;

    default: /* xet_zt_in_none */
        break;
    }

    return zt->status;
}


xet_status_t
xet_zt_feed(xet_zt_t *zt, const uint8_t *data, size_t len)
{
    size_t  n;

    if (zt->status != XET_AGAIN || len == 0) {
        return zt->status;
    }

    switch (zt->part) {

    case xet_zt_in_head:

        if (xet_zt_collect(zt, zt->head, XET_ZT_MAGIC_LEN, data, len)) {
            zt->part = xet_zt_in_tail;
            zt->have = 0;
        }

        break;

    case xet_zt_in_tail:
        n = xet_zt_tail_len(zt->info.size);

        if (xet_zt_collect(zt, zt->tail, n, data, len)) {
            zt->status = xet_zt_ends(zt);
            zt->part = xet_zt_in_manifest;
            zt->have = 0;
        }

        break;

    default: /* xet_zt_in_manifest */
        zt->status = xet_zt_manifest(zt, data, len);
        break;
    }

    if (zt->status != XET_AGAIN) {
        zt->part = xet_zt_in_none;

        xet_zt_manifest_destroy(zt->manifest);
        (void) XXH3_freeState(zt->hash);
        free(zt->shards.items);
        xet_zt_index_end(&zt->index, &zt->info);
        zt->manifest = NULL;
        zt->hash = NULL;
        zt->shards.items = NULL;
    }

    return zt->status;
}


/* Collects bytes in dst; returns 1 if dst is complete. */

static size_t
xet_zt_collect(xet_zt_t *zt, uint8_t *dst, size_t want, const uint8_t *data,
    size_t len)
{
    if (len > want - zt->have) {
        len = want - (size_t) zt->have;
    }

    memcpy(dst + zt->have, data, len);
    zt->have += len;

    return zt->have == want;
}


static xet_status_t
xet_zt_ends(xet_zt_t *zt)
{
    xet_status_t             rc;
    xet_zt_ends_t           *ends;
    xet_zt_manifest_conf_t   conf;

    ends = &zt->info.ends;

    rc = xet_zt_ends_parse(ends, zt->head, zt->tail, zt->info.size,
                           zt->limits.manifest, zt->limits.strict);
    if (rc != XET_OK) {
        return rc;
    }

    memset(&conf, 0, sizeof(xet_zt_manifest_conf_t));

    conf.container = ends->container;
    conf.limits = &zt->limits;
    conf.size = ends->manifest_length;
    conf.object = xet_zt_object;
    conf.shard = xet_zt_shard;
    conf.ctx = zt;

    zt->manifest = xet_zt_manifest_create(&conf);
    if (zt->manifest == NULL) {
        return XET_NOMEM;
    }

    if (ends->container == XET_ZT_CONTAINER_2) {
        zt->hash = XXH3_createState();

        if (zt->hash == NULL || XXH3_64bits_reset(zt->hash) != XXH_OK) {
            return XET_NOMEM;
        }

        /* no component may partly overlap the manifest */

        rc = xet_zt_extents_add(&zt->extents, 0, ends->manifest_offset,
                                ends->manifest_length);
    }

    return (rc == XET_OK) ? XET_AGAIN : rc;
}


static xet_status_t
xet_zt_manifest(xet_zt_t *zt, const uint8_t *data, size_t len)
{
    xet_status_t    rc;
    xet_zt_ends_t  *ends;

    ends = &zt->info.ends;

    if (len > ends->manifest_length - zt->have) {
        len = (size_t) (ends->manifest_length - zt->have);
    }

    zt->have += len;

    if (ends->container == XET_ZT_CONTAINER_2
        && XXH3_64bits_update(zt->hash, data, len) != XXH_OK)
    {
        return XET_INTERNAL;
    }

    if (zt->verdict == XET_AGAIN) {
        rc = xet_zt_manifest_feed(zt->manifest, data, len);

        if (rc == XET_DONE) {
            rc = xet_zt_root(zt);

        } else if (rc != XET_AGAIN) {
            zt->error_offset = ends->manifest_offset
                               + xet_zt_manifest_pos(zt->manifest);
        }

        zt->verdict = rc;
    }

    if (zt->have == ends->manifest_length) {
        return xet_zt_finish(zt);
    }

    /* the rest of the manifest cannot change the result */

    if (zt->verdict != XET_AGAIN
        && (ends->container != XET_ZT_CONTAINER_2
            || xet_status_http(zt->verdict) >= 500))
    {
        return zt->verdict;
    }

    return XET_AGAIN;
}


static xet_status_t
xet_zt_finish(xet_zt_t *zt)
{
    xet_status_t    rc;
    xet_zt_ends_t  *ends;

    ends = &zt->info.ends;

    if (ends->container == XET_ZT_CONTAINER_2
        && XXH3_64bits_digest(zt->hash) != ends->manifest_hash)
    {
        zt->error_offset = ends->manifest_offset;
        return XET_ZT_MANIFEST_HASH;
    }

    if (zt->verdict != XET_OK) {
        return zt->verdict;
    }

    rc = xet_zt_extents_finish(&zt->extents);

    if (rc == XET_ZT_OVERLAP && ends->container == XET_ZT_CONTAINER_1) {
        zt->info.warnings |= XET_ZT_WARN_OVERLAP;
        return XET_OK;
    }

    return rc;
}


/*
 * Removes all ranges except those that overlap another, unequal range.
 * Returns XET_OK, or XET_ZT_OVERLAP if ranges remain.  The caller must not add
 * ranges after this call.
 *
 * Equal ranges are valid: they are tied weights.  Ranges that partly overlap
 * give one byte two meanings.  The ranges are sorted by file and offset.  A
 * range overlaps an earlier range if the furthest end so far is past its
 * start, and a later range if the next start is before its end.  Most files
 * need no sorting, since their writers emit components in this order.
 */

static xet_status_t
xet_zt_extents_finish(xet_zt_array_t *e)
{
    int               before, after;
    size_t            i, n, next;
    uint64_t          end;
    xet_zt_extent_t  *x, *last, *extents;

    extents = e->items;

    for (i = 1; i < e->n; i++) {
        if (xet_zt_extents_order(&extents[i - 1], &extents[i]) > 0) {
            qsort(extents, e->n, sizeof(xet_zt_extent_t),
                  xet_zt_extents_order);
            break;
        }
    }

    n = 0;
    end = 0;
    last = NULL;

    for (i = 0; i < e->n; i = next) {
        x = &extents[i];

        next = i + 1;

        while (next < e->n
               && xet_zt_extents_order(x, &extents[next]) == 0)
        {
            next++;
        }

        if (last == NULL || last->file != x->file) {
            end = 0;
        }

        before = end > x->offset;
        after = next < e->n
                && extents[next].file == x->file
                && extents[next].offset < x->offset + x->length;

        if (x->offset + x->length > end) {
            end = x->offset + x->length;
        }

        last = x;

        if (before || after) {
            extents[n] = *x;
            last = &extents[n++];
        }
    }

    e->n = n;
    e->room = n;

    if (n == 0) {
        free(e->items);
        e->items = NULL;

        return XET_OK;
    }

    /* the record may keep the remaining ranges for a long time */

    x = realloc(e->items, n * sizeof(xet_zt_extent_t));
    e->items = x ? x : e->items;

    return XET_ZT_OVERLAP;
}


static xet_status_t
xet_zt_root(xet_zt_t *zt)
{
    uint8_t              *p;
    const xet_zt_root_t  *root;

    root = xet_zt_manifest_root(zt->manifest);

    memcpy(zt->info.version, root->version, root->version_len);
    zt->info.version_len = root->version_len;

    zt->info.count = root->count;
    zt->info.components = root->components;
    zt->info.objects_end = root->end;

    if (!zt->info.ends.header_magic) {
        zt->info.warnings |= XET_ZT_WARN_NO_MAGIC;
    }

    if (zt->info.ends.container == XET_ZT_CONTAINER_1
        && !root->version_known)
    {
        zt->info.warnings |= XET_ZT_WARN_VERSION;
    }

    if (root->attributes_cut) {
        zt->info.warnings |= XET_ZT_WARN_ATTRIBUTES;
    }

    if (root->attributes.data) {
        p = malloc(root->attributes.len);
        if (p == NULL) {
            return XET_NOMEM;
        }

        memcpy(p, root->attributes.data, root->attributes.len);

        zt->attributes.data = p;
        zt->attributes.len = root->attributes.len;
    }

    return XET_OK;
}


static xet_status_t
xet_zt_object(void *ctx, xet_zt_object_t *o)
{
    unsigned          i;
    xet_zt_t         *zt;
    xet_status_t      rc;
    xet_zt_region_t   region;

    zt = ctx;

    rc = xet_zt_index_add(&zt->index, &zt->info, o, zt->limits.name);

    if (rc != XET_OK) {
        return rc;
    }

    xet_zt_region(zt, &region);
    xet_zt_object_check(o, &region);

    for (i = 0; i < o->n; i++) {
        rc = xet_zt_extent(zt, o, &o->components[i]);

        if (rc != XET_OK) {
            return rc;
        }
    }

    zt->info.invalid += (o->verdict == XET_ZT_OBJECT_INVALID);
    zt->info.unsupported += (o->verdict == XET_ZT_OBJECT_UNSUPPORTED);

    /* in container 2 an invalid object makes the file invalid */

    return (zt->info.ends.container == XET_ZT_CONTAINER_2)
           ? xet_zt_object_fault(o) : XET_OK;
}


static xet_status_t
xet_zt_extent(xet_zt_t *zt, xet_zt_object_t *o, const xet_zt_component_t *c)
{
    uint64_t         file;
    xet_status_t     rc;
    xet_zt_region_t  region;

    file = 0;

    xet_zt_region(zt, &region);

    if (c->shard.data) {
        rc = xet_zt_shards_find(&zt->shards, &c->shard, &region, &file);

        if (rc != XET_OK) {
            xet_zt_object_error(o, rc);
            return XET_OK;
        }
    }

    rc = xet_zt_component_bounds(c, &region);

    if (rc != XET_OK) {
        xet_zt_object_error(o, rc);
        return XET_OK;
    }

    if (file == 0) {
        zt->info.bytes = (c->length > UINT64_MAX - zt->info.bytes)
                         ? UINT64_MAX : zt->info.bytes + c->length;
    }

    return xet_zt_extents_add(&zt->extents, file, c->offset, c->length);
}


xet_status_t
xet_zt_extents_add(xet_zt_array_t *e, uint64_t file, uint64_t offset,
    uint64_t length)
{
    xet_zt_extent_t  *x;

    if (length == 0) {
        return XET_OK;
    }

    x = xet_zt_array_push(e, sizeof(xet_zt_extent_t));
    if (x == NULL) {
        return XET_NOMEM;
    }

    x->offset = offset;
    x->length = length;
    x->file = file;

    return XET_OK;
}


int
xet_zt_extents_find(const xet_zt_array_t *e, uint64_t file, uint64_t offset,
    uint64_t length)
{
    xet_zt_extent_t  x;

    if (e->n == 0) {
        return 0;
    }

    x.offset = offset;
    x.length = length;
    x.file = file;

    return bsearch(&x, e->items, e->n, sizeof(xet_zt_extent_t),
                   xet_zt_extents_order)
           != NULL;
}


static int
xet_zt_extents_order(const void *one, const void *two)
{
    const xet_zt_extent_t  *a, *b;

    a = one;
    b = two;

    if (a->file != b->file) {
        return (a->file < b->file) ? -1 : 1;
    }

    if (a->offset != b->offset) {
        return (a->offset < b->offset) ? -1 : 1;
    }

    if (a->length != b->length) {
        return (a->length < b->length) ? -1 : 1;
    }

    return 0;
}


/*
 * Adds a copy of the next shard of the manifest.  Keys of container 2 ascend,
 * so the table is sorted, and complete before "objects" is read.
 */

static xet_status_t
xet_zt_shard(void *ctx, const xet_zt_shard_t *shard)
{
    xet_zt_t             *zt;
    xet_zt_shards_row_t  *row;

    zt = ctx;

    if (shard->size < XET_ZT_FILE_MIN_2) {
        return XET_ZT_MANIFEST;
    }

    row = xet_zt_array_push(&zt->shards, sizeof(xet_zt_shards_row_t));
    if (row == NULL) {
        return XET_NOMEM;
    }

    memcpy(row->name, shard->name.data, shard->name.len);
    row->len = shard->name.len;
    row->size = shard->size;

    return XET_OK;
}


/*
 * Sets data_start and data_end of *region to the range of a shard in which
 * components may lie, and *number to the number of the shard, from 1.  Returns
 * XET_OK, or XET_ZT_SHARD_REF if the manifest has no shard with this name.
 */

static xet_status_t
xet_zt_shards_find(const xet_zt_array_t *shards,
    const xet_zt_text_t *name, xet_zt_region_t *region, uint64_t *number)
{
    xet_zt_shards_row_t  *row, key;

    if (shards->n == 0) {
        return XET_ZT_SHARD_REF;
    }

    memcpy(key.name, name->data, name->len);
    key.len = name->len;

    row = bsearch(&key, shards->items, shards->n, sizeof(xet_zt_shards_row_t),
                  xet_zt_shards_order);

    if (row == NULL) {
        return XET_ZT_SHARD_REF;
    }

    region->data_start = XET_ZT_MAGIC_LEN;
    region->data_end = row->size - XET_ZT_FOOTER_2;

    *number = (uint64_t) (row - (xet_zt_shards_row_t *) shards->items) + 1;

    return XET_OK;
}


/* Compares shards by name, in CBOR's order of keys: shorter names first. */

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


uint64_t
xet_zt_error_offset(const xet_zt_t *zt)
{
    return zt->error_offset;
}


const xet_zt_info_t *
xet_zt_info(const xet_zt_t *zt)
{
    return &zt->info;
}


void
xet_zt_region(const xet_zt_t *zt, xet_zt_region_t *region)
{
    region->container = zt->info.ends.container;
    region->rank_max = zt->limits.rank;
    region->data_start = zt->info.ends.data_start;
    region->data_end = zt->info.ends.data_end;
}


const xet_zt_text_t *
xet_zt_attributes(const xet_zt_t *zt)
{
    return &zt->attributes;
}
