
/*
 * A walk over the objects of a checked file.
 *
 * Purpose:    reads the pages of a listing, and finds an object by name or by
 *             number.  With the marks, a lookup reads 100 KB of a manifest of
 *             20 MB.
 * States:     reading the manifest, done, failed.
 * Ownership:  a walk owns its parser; it refers to the record of the file.
 * Threads:    one at a time; several walks may share the record of a file.
 *
 * A walk begins at the last mark at or before the first requested object.  It
 * ends when the handler returns XET_DONE, when the named object was found, or
 * when no later object can match.
 *
 * Known writers sort names as strings (container 1), or by length and then as
 * strings (container 2, which requires this order).  In any other manifest, or
 * if the name of a mark is too long to be stored, a lookup by name reads from
 * the start.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_zt.h"


struct xet_zt_walk_s {
    const xet_zt_t     *zt;
    xet_zt_select_t     select;
    xet_zt_object_pt    handler;
    void               *ctx;

    xet_zt_region_t     region;
    xet_zt_manifest_t  *manifest;
    uint64_t            pos;               /* offset in the manifest */
    xet_status_t        status;
};


static xet_status_t xet_zt_walk_object(void *ctx, xet_zt_object_t *o);
static uint64_t xet_zt_walk_mark(const xet_zt_t *zt,
    const xet_zt_select_t *select);
static int xet_zt_walk_past(const xet_zt_walk_t *w, const xet_zt_object_t *o);
static int xet_zt_walk_match(const xet_zt_select_t *select,
    const xet_zt_object_t *o);
static int xet_zt_text_begins(const xet_zt_text_t *text,
    const xet_zt_text_t *prefix);
static uint64_t xet_zt_index_find(const xet_zt_t *zt,
    const xet_zt_text_t *name);


xet_zt_walk_t *
xet_zt_walk_create(const xet_zt_t *zt, const xet_zt_select_t *select,
    xet_zt_object_pt handler, void *ctx)
{
    uint64_t                 mark;
    xet_zt_walk_t           *w;
    xet_zt_position_t        from;
    const xet_zt_info_t     *info;
    xet_zt_manifest_conf_t   conf;

    w = calloc(1, sizeof(xet_zt_walk_t));
    if (w == NULL) {
        return NULL;
    }

    w->zt = zt;
    w->select = *select;
    w->handler = handler;
    w->ctx = ctx;
    w->status = XET_AGAIN;

    xet_zt_region(zt, &w->region);

    info = &zt->info;

    if (select->first >= info->count) {
        w->status = XET_OK;
        return w;
    }

    mark = xet_zt_walk_mark(zt, select);

    from.index = mark * info->stride;
    from.pos = info->index[mark];
    from.end = info->objects_end;
    from.count = info->count;

    memset(&conf, 0, sizeof(xet_zt_manifest_conf_t));

    conf.container = info->ends.container;
    conf.limits = &zt->limits;
    conf.size = info->ends.manifest_length;
    conf.from = &from;
    conf.attributes = select->attributes;
    conf.object = xet_zt_walk_object;
    conf.ctx = w;

    w->pos = from.pos;
    w->manifest = xet_zt_manifest_create(&conf);

    if (w->manifest == NULL) {
        free(w);
        return NULL;
    }

    return w;
}


static uint64_t
xet_zt_walk_mark(const xet_zt_t *zt, const xet_zt_select_t *select)
{
    uint64_t              mark, named;
    const xet_zt_info_t  *info;

    info = &zt->info;

    mark = select->first / info->stride;
    named = 0;

    if (select->name.data) {
        named = xet_zt_index_find(zt, &select->name);

    } else if (select->prefix.data && (info->order & XET_ZT_ORDER_BYTES)) {
        named = xet_zt_index_find(zt, &select->prefix);
    }

    return (named > mark) ? named : mark;
}


void
xet_zt_walk_destroy(xet_zt_walk_t *w)
{
    if (w == NULL) {
        return;
    }

    xet_zt_manifest_destroy(w->manifest);
    free(w);
}


xet_status_t
xet_zt_walk_need(const xet_zt_walk_t *w, xet_range_t *range)
{
    const xet_zt_info_t  *info;

    info = &w->zt->info;

    range->start = info->ends.manifest_offset + w->pos;
    range->end = info->ends.manifest_offset + info->objects_end;

    return w->status;
}


xet_status_t
xet_zt_walk_feed(xet_zt_walk_t *w, const uint8_t *data, size_t len)
{
    uint64_t  end;

    if (w->status != XET_AGAIN || len == 0) {
        return w->status;
    }

    end = w->zt->info.objects_end;

    if (len > end - w->pos) {
        len = (size_t) (end - w->pos);
    }

    w->pos += len;
    w->status = xet_zt_manifest_feed(w->manifest, data, len);

    if (w->status == XET_DONE) {
        w->status = XET_OK;

    } else if (w->status == XET_AGAIN && w->pos == end) {
        w->status = XET_ZT_MANIFEST;
    }

    return w->status;
}


static xet_status_t
xet_zt_walk_object(void *ctx, xet_zt_object_t *o)
{
    unsigned             i;
    xet_status_t         rc;
    xet_zt_walk_t       *w;
    xet_zt_component_t  *c;

    w = ctx;

    if (!xet_zt_walk_match(&w->select, o)) {
        return xet_zt_walk_past(w, o) ? XET_DONE : XET_OK;
    }

    xet_zt_object_check(o, &w->region);

    if (w->zt->limits.strict) {
        for (i = 0; i < o->n; i++) {
            c = &o->components[i];

            if (xet_zt_extents_find(&w->zt->extents, 0, c->offset,
                                    c->length))
            {
                xet_zt_object_error(o, XET_ZT_OVERLAP);
            }
        }
    }

    rc = w->handler(w->ctx, o);

    /* names are distinct: no other object has this name */

    return (rc == XET_OK && w->select.name.data) ? XET_DONE : rc;
}


/* Returns 1 if names are ordered and no object after o can match. */

static int
xet_zt_walk_past(const xet_zt_walk_t *w, const xet_zt_object_t *o)
{
    unsigned                order;
    const xet_zt_select_t  *select;

    select = &w->select;
    order = w->zt->info.order;

    if (select->name.data) {
        return order && xet_zt_order(order, &o->name, &select->name) > 0;
    }

    return select->prefix.data
           && (order & XET_ZT_ORDER_BYTES)
           && xet_zt_order(XET_ZT_ORDER_BYTES, &o->name, &select->prefix) > 0
           && !xet_zt_text_begins(&o->name, &select->prefix);
}


static int
xet_zt_walk_match(const xet_zt_select_t *select, const xet_zt_object_t *o)
{
    if (o->index < select->first) {
        return 0;
    }

    if (select->name.data
        && (select->name.len != o->name.len
            || !xet_zt_text_begins(&o->name, &select->name)))
    {
        return 0;
    }

    if (select->format.data
        && (select->format.len != o->format.len
            || !xet_zt_text_begins(&o->format, &select->format)))
    {
        return 0;
    }

    return select->prefix.data == NULL
           || xet_zt_text_begins(&o->name, &select->prefix);
}


static int
xet_zt_text_begins(const xet_zt_text_t *text, const xet_zt_text_t *prefix)
{
    return text->len >= prefix->len
           && (prefix->len == 0
               || memcmp(text->data, prefix->data, prefix->len) == 0);
}


/*
 * Returns the number of the last mark at or before the object with this name;
 * 0 if names are not ordered.
 */

static uint64_t
xet_zt_index_find(const xet_zt_t *zt, const xet_zt_text_t *name)
{
    uint64_t               low, high, middle;
    xet_zt_text_t          mark;
    const xet_zt_info_t   *info;
    const xet_zt_index_t  *m;

    m = &zt->index;
    info = &zt->info;

    if (info->order == 0 || m->names == NULL) {
        return 0;
    }

    low = 0;
    high = info->index_n;

    /* marks below low are at or before the name; from high on, after it */

    while (low < high) {
        middle = (low + high) / 2;

        mark.data = m->names[middle].data;
        mark.len = m->names[middle].len;

        if (xet_zt_order(info->order, &mark, name) <= 0) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return low ? low - 1 : 0;
}
