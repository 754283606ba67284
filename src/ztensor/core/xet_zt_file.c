
/*
 * A zTensor file, checked as a whole.
 *
 * Purpose:    the verdict on a file; and what the pages of a listing need to
 *             begin at any object: every stride-th object is marked with its
 *             place in the manifest, at most XET_ZT_MARKS of them, and with
 *             its name where names are in some order.
 * States:     the start of the file, its end, the manifest, done or failed.
 *             The verdict stays.
 * Ownership:  the parser, the hash and the table of shards are released when
 *             the manifest has been read; of the ranges of components, those
 *             that overlap are kept, or all of them after an error.
 * Threads:    one at a time; any number may read a record that is done.
 *
 * Memory: the parser's 400 KiB, 16 bytes an object and 24 a component while
 * the manifest is read; 34 KiB and the root's attributes after that.
 *
 * A manifest of container 2 has a hash, and the errors of a damaged manifest
 * are not worth reporting: after an error the rest is read for the hash alone.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt.h"


static size_t xet_zt_collect(xet_zt_t *zt, uint8_t *dst, size_t want,
    const uint8_t *data, size_t len);
static xet_status_t xet_zt_ends(xet_zt_t *zt);
static xet_status_t xet_zt_manifest(xet_zt_t *zt, const uint8_t *data,
    size_t len);
static xet_status_t xet_zt_finish(xet_zt_t *zt);
static xet_status_t xet_zt_root(xet_zt_t *zt);
static xet_status_t xet_zt_object(void *ctx, xet_zt_object_t *o);
static xet_status_t xet_zt_extent(xet_zt_t *zt, xet_zt_object_t *o,
    const xet_zt_component_t *c);
static xet_status_t xet_zt_shard(void *ctx, const xet_zt_shard_t *shard);


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

    xet_zt_shards_init(&zt->shards);
    xet_zt_extents_init(&zt->extents);

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
    xet_zt_shards_destroy(&zt->shards);
    xet_zt_extents_destroy(&zt->extents);
    xet_zt_marks_destroy(&zt->marks);

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
        xet_zt_shards_destroy(&zt->shards);
        xet_zt_marks_end(&zt->marks, &zt->info);
        zt->manifest = NULL;
        zt->hash = NULL;
    }

    return zt->status;
}


/* Returns 1 when dst is complete. */

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

        /* no component may overlap the manifest in part */

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

    /* the rest of the manifest can't change the verdict */

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

    rc = xet_zt_marks_add(&zt->marks, &zt->info, o, zt->limits.name);

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

    /* in container 2 an error that makes an object invalid is the file's */

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


static xet_status_t
xet_zt_shard(void *ctx, const xet_zt_shard_t *shard)
{
    xet_zt_t  *zt;

    zt = ctx;

    return xet_zt_shards_add(&zt->shards, shard);
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
