
/*
 * Objects of a zTensor file whose data is held against what is declared.
 *
 * Components are read in the order of their places in the file, and those that
 * lie side by side in one go: most files have many small ones.  A component
 * that shares its bytes with another is read by itself.  The components of a
 * sparse object are read one behind the other, "values" first, since indices
 * are held against each other.
 *
 * Digests are computed and data is decoded in the reader's jobs; the batch is
 * the thread's while a read is under way.  Memory: the copies of objects, a
 * buffer of 64 KiB, a zstd window, 2 MiB as soon as a component is decoded as
 * a whole, and up to 16 MiB for indices.
 *
 * Reports are kept in PostgreSQL: the data of a file never changes, so it is
 * read for this once.  A row has the reports on all components of an object;
 * where only one of several was asked for, nothing is kept.  Damaged rows are
 * ignored, and their objects verified again.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_array.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_zt_batch.h"
#include "xet_zt_sparse.h"


#define NGX_HTTP_XET_ZT_BATCH_GAP  65536       /* bytes read over */


static void ngx_http_xet_zt_batch_loaded(ngx_http_request_t *r, void *data,
    xet_status_t status);
static xet_status_t ngx_http_xet_zt_batch_items(ngx_http_xet_zt_batch_t *b,
    const xet_zt_text_t *role);
static xet_status_t ngx_http_xet_zt_batch_alloc(ngx_http_xet_zt_batch_t *b);
static void ngx_http_xet_zt_batch_place(ngx_http_xet_zt_item_t *items,
    ngx_uint_t n);
static int ngx_libc_cdecl ngx_http_xet_zt_batch_cmp(const void *one,
    const void *two);
static xet_status_t ngx_http_xet_zt_batch_next(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b);
static xet_status_t ngx_http_xet_zt_batch_empty(ngx_http_xet_zt_batch_t *b,
    ngx_http_xet_zt_item_t *item);
static xet_status_t ngx_http_xet_zt_batch_consume(void *data,
    const u_char *p, size_t len);
static xet_status_t ngx_http_xet_zt_batch_feed(ngx_http_xet_zt_batch_t *b,
    ngx_http_xet_zt_item_t *item, const u_char *p, size_t len);
static void ngx_http_xet_zt_batch_read(ngx_http_request_t *r, void *data,
    xet_status_t status);
static xet_status_t ngx_http_xet_zt_reports_load(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b, ngx_http_xet_ztensor_pt handler);
static void ngx_http_xet_zt_reports_queried(ngx_http_request_t *r,
    ngx_int_t rc);
static void ngx_http_xet_zt_reports_rows(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b);
static void ngx_http_xet_zt_reports_apply(ngx_http_xet_zt_batch_t *b,
    uint64_t index, ngx_str_t *report);
static ngx_int_t ngx_http_xet_zt_reports_pack(u_char *dst,
    ngx_http_xet_zt_item_t *items, ngx_uint_t n);
static void ngx_http_xet_zt_reports_keep(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b);


xet_status_t
ngx_http_xet_zt_batch_init(ngx_http_request_t *r, ngx_http_xet_zt_batch_t *b)
{
    ngx_http_xet_ztensor_conf_t  *zlcf;

    zlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_ztensor_module);

    xet_zt_region(ngx_http_xet_ztensor_file(b->ztensor), &b->region);

    b->rules = xet_zt_report_rules(&zlcf->limits, &zlcf->decoder);

    b->verifier = xet_zt_verifier_create(&zlcf->decoder);

    return b->verifier ? XET_OK : XET_NOMEM;
}


void
ngx_http_xet_zt_batch_destroy(ngx_http_xet_zt_batch_t *b)
{
    ngx_http_xet_zt_batch_reset(b);

    xet_zt_verifier_destroy(b->verifier);
    b->verifier = NULL;
}


xet_status_t
ngx_http_xet_zt_batch_add(ngx_http_xet_zt_batch_t *b, const xet_zt_object_t *o)
{
    xet_zt_object_t  *copy;

    copy = xet_zt_object_copy(o);
    if (copy == NULL) {
        return XET_NOMEM;
    }

    b->objects[b->nobjects++] = copy;
    b->size += xet_zt_object_size(copy);

    return (b->nobjects == NGX_HTTP_XET_ZT_BATCH_OBJECTS
            || b->size >= NGX_HTTP_XET_ZT_BATCH_BYTES)
           ? XET_DONE : XET_OK;
}


void
ngx_http_xet_zt_batch_reset(ngx_http_xet_zt_batch_t *b)
{
    ngx_uint_t  i;

    for (i = 0; i < b->nobjects; i++) {
        free(b->objects[i]);
    }

    free(b->items);
    free(b->order);

    b->nobjects = 0;
    b->size = 0;
    b->items = NULL;
    b->order = NULL;
    b->n = 0;
}


xet_status_t
ngx_http_xet_zt_batch_verify(ngx_http_request_t *r, ngx_http_xet_zt_batch_t *b,
    const xet_zt_text_t *role, ngx_http_xet_ztensor_pt handler, void *data)
{
    xet_status_t  status;

    b->handler = handler;
    b->data = data;

    status = ngx_http_xet_zt_batch_items(b, role);

    if (status == XET_OK) {
        status = ngx_http_xet_zt_reports_load(r, b,
                                              ngx_http_xet_zt_batch_loaded);
    }

    return (status == XET_OK) ? ngx_http_xet_zt_batch_next(r, b) : status;
}


static void
ngx_http_xet_zt_batch_loaded(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_batch_t *b = data;

    if (status == XET_OK) {
        status = ngx_http_xet_zt_batch_next(r, b);

        if (status == XET_AGAIN) {
            return;
        }
    }

    b->handler(r, b->data, status);
}


static xet_status_t
ngx_http_xet_zt_batch_items(ngx_http_xet_zt_batch_t *b,
    const xet_zt_text_t *role)
{
    ngx_uint_t                 i, n, first;
    xet_zt_object_t           *o;
    ngx_http_xet_zt_item_t    *item;
    const xet_zt_component_t  *c;

    if (ngx_http_xet_zt_batch_alloc(b) != XET_OK) {
        return XET_NOMEM;
    }

    for (i = 0; i < b->nobjects; i++) {
        o = b->objects[i];
        first = b->n;

        for (n = 0; n < o->n; n++) {
            c = &o->components[n];

            if (role
                && (role->len != c->role.len
                    || ngx_memcmp(role->data, c->role.data, role->len) != 0))
            {
                continue;
            }

            item = &b->items[b->n];

            item->object = o;
            item->component = c;

            if (xet_zt_component_range(c, &b->region, &item->range)
                != XET_OK)
            {
                item->range.start = 0;
                item->range.end = 0;
            }

            item->place = item->range.start;

            b->order[b->n++] = item;
        }

        if (xet_zt_object_sparse(o)) {
            ngx_http_xet_zt_batch_place(&b->items[first], b->n - first);
        }
    }

    ngx_qsort(b->order, b->n, sizeof(ngx_http_xet_zt_item_t *),
              ngx_http_xet_zt_batch_cmp);

    b->next = 0;
    b->started = 0;

    return XET_OK;
}


static xet_status_t
ngx_http_xet_zt_batch_alloc(ngx_http_xet_zt_batch_t *b)
{
    ngx_uint_t  i, n;

    n = 1;

    for (i = 0; i < b->nobjects; i++) {
        n += b->objects[i]->n;
    }

    b->n = 0;
    b->items = calloc(n, sizeof(ngx_http_xet_zt_item_t));
    b->order = calloc(n, sizeof(ngx_http_xet_zt_item_t *));

    return (b->items && b->order) ? XET_OK : XET_NOMEM;
}


static int ngx_libc_cdecl
ngx_http_xet_zt_batch_cmp(const void *one, const void *two)
{
    const ngx_http_xet_zt_item_t  *a, *b;

    a = *(ngx_http_xet_zt_item_t *const *) one;
    b = *(ngx_http_xet_zt_item_t *const *) two;

    if (a->place != b->place) {
        return (a->place < b->place) ? -1 : 1;
    }

    if (a->object != b->object) {
        return (a->object->index < b->object->index) ? -1 : 1;
    }

    if (a->values != b->values) {
        return a->values ? -1 : 1;
    }

    return (a->range.start < b->range.start)
           ? -1 : (a->range.start > b->range.start);
}


/* Gives all items of a sparse object the place of the first in the file. */

static void
ngx_http_xet_zt_batch_place(ngx_http_xet_zt_item_t *items, ngx_uint_t n)
{
    uint64_t    place;
    ngx_uint_t  i;

    place = UINT64_MAX;

    for (i = 0; i < n; i++) {
        place = ngx_min(place, items[i].range.start);
    }

    for (i = 0; i < n; i++) {
        items[i].place = place;
        items[i].values = xet_zt_text_is(&items[i].component->role, "values");
    }
}


/*
 * Starts to read the next items that lie side by side.  XET_OK when all items
 * are done.
 */

static xet_status_t
ngx_http_xet_zt_batch_next(ngx_http_request_t *r, ngx_http_xet_zt_batch_t *b)
{
    xet_range_t              range, *place;
    xet_status_t             status;
    ngx_http_xet_zt_item_t  *item;

    for ( ;; ) {

        if (b->next == b->n) {
            ngx_http_xet_zt_reports_keep(r, b);
            return XET_OK;
        }

        item = b->order[b->next];

        if (!item->known) {

            if (item->range.start < item->range.end) {
                break;
            }

            status = ngx_http_xet_zt_batch_empty(b, item);
            if (status != XET_OK) {
                return status;
            }
        }

        b->next++;
    }

    range = item->range;

    for (b->end = b->next + 1; b->end < b->n; b->end++) {
        place = &b->order[b->end]->range;

        if (b->order[b->end]->known
            || place->start == place->end
            || place->start < range.end
            || place->start - range.end > NGX_HTTP_XET_ZT_BATCH_GAP)
        {
            break;
        }

        range.end = place->end;
    }

    b->pos = range.start;

    return ngx_http_xet_ztensor_read(r, b->ztensor, &range,
                                     ngx_http_xet_zt_batch_consume,
                                     ngx_http_xet_zt_batch_read, b);
}


/* Makes the report on an item of which there is nothing to read. */

static xet_status_t
ngx_http_xet_zt_batch_empty(ngx_http_xet_zt_batch_t *b,
    ngx_http_xet_zt_item_t *item)
{
    xet_range_t   range;
    xet_status_t  status;

    status = xet_zt_verifier_start(b->verifier, &b->region, item->object,
                                   item->component, &range);

    if (status != XET_AGAIN && status != XET_DONE) {
        return status;
    }

    return xet_zt_verifier_finish(b->verifier, &item->report);
}


/* In a thread. */

static xet_status_t
ngx_http_xet_zt_batch_consume(void *data, const u_char *p, size_t len)
{
    ngx_http_xet_zt_batch_t *b = data;

    size_t                   n;
    xet_status_t             status;
    ngx_http_xet_zt_item_t  *item;

    while (len && b->next < b->end) {
        item = b->order[b->next];

        n = len;

        if (b->pos < item->range.start) {
            n = (size_t) ngx_min(n, item->range.start - b->pos);
            b->pos += n;

        } else {
            n = (size_t) ngx_min(n, item->range.end - b->pos);

            status = ngx_http_xet_zt_batch_feed(b, item, p, n);
            if (status != XET_OK) {
                return status;
            }
        }

        p += n;
        len -= n;
    }

    return XET_OK;
}


static xet_status_t
ngx_http_xet_zt_batch_feed(ngx_http_xet_zt_batch_t *b,
    ngx_http_xet_zt_item_t *item, const u_char *p, size_t len)
{
    xet_range_t   range;
    xet_status_t  status;

    if (!b->started) {
        b->started = 1;

        status = xet_zt_verifier_start(b->verifier, &b->region, item->object,
                                       item->component, &range);
        if (status != XET_AGAIN) {
            return (status == XET_NOMEM) ? XET_NOMEM : XET_INTERNAL;
        }
    }

    status = xet_zt_verifier_feed(b->verifier, p, len);
    if (status != XET_OK) {
        return status;
    }

    b->pos += len;

    if (b->pos < item->range.end) {
        return XET_OK;
    }

    b->started = 0;
    b->next++;

    return xet_zt_verifier_finish(b->verifier, &item->report);
}


static void
ngx_http_xet_zt_batch_read(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_batch_t *b = data;

    if (status == XET_OK || status == XET_DONE) {

        status = (b->next == b->end) ? ngx_http_xet_zt_batch_next(r, b)
                                     : XET_INTERNAL;
        if (status == XET_AGAIN) {
            return;
        }
    }

    b->handler(r, b->data, status);
}


static xet_status_t
ngx_http_xet_zt_reports_load(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b, ngx_http_xet_ztensor_pt handler)
{
    ngx_int_t            rc;
    ngx_http_xet_ctx_t  *ctx;

    if (b->nobjects == 0) {
        return XET_OK;
    }

    b->loaded = handler;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    ctx->zt_batch = b;

    rc = ngx_http_xet_query_zt_reports_get(r, &ctx->hash, b->rules,
                                           b->objects[0]->index,
                                           b->objects[b->nobjects - 1]->index,
                                           ngx_http_xet_zt_reports_queried);

    return ngx_http_xet_query_status(rc, XET_OK);
}


static void
ngx_http_xet_zt_reports_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    xet_status_t              status;
    ngx_http_xet_ctx_t       *ctx;
    ngx_http_xet_zt_batch_t  *b;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    b = ctx->zt_batch;

    if (rc == NGX_OK) {
        ngx_http_xet_zt_reports_rows(r, b);
    }

    status = ngx_http_xet_query_status(rc, XET_OK);

    ngx_http_xet_query_release(r);

    b->loaded(r, b, status);
}


static void
ngx_http_xet_zt_reports_rows(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b)
{
    uint64_t    index;
    ngx_str_t   report;
    ngx_uint_t  i, n;

    n = ngx_http_xet_query_zt_reports_get_n(r);

    for (i = 0; i < n; i++) {
        ngx_http_xet_query_zt_reports_get_row(r, i, &index, &report);
        ngx_http_xet_zt_reports_apply(b, index, &report);
    }
}


static void
ngx_http_xet_zt_reports_apply(ngx_http_xet_zt_batch_t *b, uint64_t index,
    ngx_str_t *report)
{
    size_t                   place;
    ngx_uint_t               i;
    xet_zt_object_t         *o;
    xet_zt_report_t          any;
    ngx_http_xet_zt_item_t  *item;

    /* all reports or none: components are held against each other */

    for (place = 0; place < report->len; place += XET_ZT_REPORT_LEN) {
        if (report->len - place < XET_ZT_REPORT_LEN
            || !xet_zt_report_unpack(&any, report->data + place))
        {
            return;
        }
    }

    for (i = 0; i < b->n; i++) {
        item = &b->items[i];
        o = item->object;

        if (o->index != index || report->len != o->n * XET_ZT_REPORT_LEN) {
            continue;
        }

        place = (item->component - o->components) * XET_ZT_REPORT_LEN;

        item->known = xet_zt_report_unpack(&item->report,
                                           report->data + place);
    }
}


static void
ngx_http_xet_zt_reports_keep(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b)
{
    u_char                 report[1024 * XET_ZT_REPORT_LEN];
    ngx_uint_t             i, n;
    xet_zt_object_t       *o;
    ngx_http_xet_ctx_t    *ctx;
    ngx_http_xet_array_t   objects, reports;

    ngx_http_xet_array_init(&objects, NGX_HTTP_XET_OID_INT8);
    ngx_http_xet_array_init(&reports, NGX_HTTP_XET_OID_BYTEA);

    for (i = 0; i < b->n; i += n) {
        o = b->items[i].object;

        for (n = 1; i + n < b->n && b->items[i + n].object == o; n++) {
            /* void */
        }

        if (n != o->n || n > sizeof(report) / XET_ZT_REPORT_LEN
            || ngx_http_xet_zt_reports_pack(report, &b->items[i], n)
               != NGX_OK)
        {
            continue;
        }

        ngx_http_xet_array_int8(&objects, (int64_t) o->index);
        ngx_http_xet_array_bytes(&reports, report, n * XET_ZT_REPORT_LEN);
    }

    if (objects.n == 0) {
        ngx_http_xet_array_destroy(&objects);
        ngx_http_xet_array_destroy(&reports);
        return;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    ngx_http_xet_query_zt_reports_put(&ctx->hash, b->rules, &objects,
                                      &reports);
}


/*
 * Packs the reports of an object.  NGX_DECLINED when all of them are kept
 * already, or one of them is not to be kept.
 */

static ngx_int_t
ngx_http_xet_zt_reports_pack(u_char *dst, ngx_http_xet_zt_item_t *items,
    ngx_uint_t n)
{
    ngx_uint_t  i, news;

    news = 0;

    for (i = 0; i < n; i++) {

        if (!xet_zt_report_pack(dst + i * XET_ZT_REPORT_LEN,
                                &items[i].report))
        {
            return NGX_DECLINED;
        }

        news += !items[i].known;
    }

    return news ? NGX_OK : NGX_DECLINED;
}
