
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
 * a whole, up to 16 MiB for indices, and a piece of 128 KiB.
 *
 * A piece that the reader hands over may decode to gigabytes.  When a job has
 * decoded its share, the rest of the piece is kept and decoded in a job of its
 * own; the next piece is read when that one is done.
 *
 * What the request may still read and decode is checked before a component
 * begins, as the manifest declares its length.  Where it does not, all that is
 * left is set aside, and the unused part given back at the component's end.
 *
 * Reports are kept in PostgreSQL: the data of a file never changes, so it is
 * read for this once.  A row has the reports on all components of an object;
 * where only one of several was asked for, nothing is kept.  Damaged rows are
 * ignored, and their objects verified again.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_ztensor.h"


#define NGX_HTTP_XET_ZT_BATCH_GAP  65536       /* bytes read over */


static xet_status_t ngx_http_xet_zt_batch_items(ngx_http_xet_zt_batch_t *b,
    const xet_zt_text_t *role);
static xet_status_t ngx_http_xet_zt_batch_alloc(ngx_http_xet_zt_batch_t *b);
static void ngx_http_xet_zt_batch_place(ngx_http_xet_zt_item_t *items,
    ngx_uint_t n);
static int ngx_libc_cdecl ngx_http_xet_zt_batch_cmp(const void *one,
    const void *two);
static xet_status_t ngx_http_xet_zt_batch_next(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b);
static ngx_uint_t ngx_http_xet_zt_batch_afford(ngx_http_xet_zt_batch_t *b,
    ngx_http_xet_zt_item_t *item);
static xet_status_t ngx_http_xet_zt_batch_empty(ngx_http_xet_zt_batch_t *b,
    ngx_http_xet_zt_item_t *item);
static xet_status_t ngx_http_xet_zt_batch_consume(void *data,
    const u_char *p, size_t len);
static xet_status_t ngx_http_xet_zt_batch_work(ngx_http_xet_zt_batch_t *b,
    const u_char **p, size_t *len);
static xet_status_t ngx_http_xet_zt_batch_feed(ngx_http_xet_zt_batch_t *b,
    ngx_http_xet_zt_item_t *item, const u_char **p, size_t *len);
static xet_status_t ngx_http_xet_zt_batch_finish(ngx_http_xet_zt_batch_t *b,
    ngx_http_xet_zt_item_t *item);
static void ngx_http_xet_zt_batch_read(ngx_http_request_t *r, void *data,
    xet_status_t status);
static void ngx_http_xet_zt_batch_job(void *data, ngx_log_t *log);
static void ngx_http_xet_zt_batch_worked(ngx_http_request_t *r, void *data);
static xet_status_t ngx_http_xet_zt_batch_continue(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b);
static xet_status_t ngx_http_xet_zt_reports_load(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b);
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

    zlcf = b->ztensor->conf;

    xet_zt_region(b->ztensor->zt, &b->region);

    b->rules = xet_zt_report_rules(&zlcf->limits, &zlcf->decoder);

    b->output = zlcf->decoder.output;

    b->verifier = xet_zt_verifier_create(&zlcf->decoder);

    return b->verifier ? XET_OK : XET_NOMEM;
}


void
ngx_http_xet_zt_batch_destroy(ngx_http_xet_zt_batch_t *b)
{
    ngx_http_xet_zt_batch_reset(b);

    xet_zt_verifier_destroy(b->verifier);
    b->verifier = NULL;

    free(b->in);
    b->in = NULL;
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
        status = ngx_http_xet_zt_reports_load(r, b);
    }

    return (status == XET_OK) ? ngx_http_xet_zt_batch_next(r, b) : status;
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

            if (item->range.start == item->range.end) {
                status = ngx_http_xet_zt_batch_empty(b, item);

                if (status != XET_OK) {
                    return status;
                }

            } else if (ngx_http_xet_zt_batch_afford(b, item)) {
                break;

            } else {
                item->report.digest = XET_ZT_DIGEST_UNCHECKED;
                item->report.status = XET_ZT_VERIFY_SIZE;
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
            || place->start - range.end > NGX_HTTP_XET_ZT_BATCH_GAP
            || !ngx_http_xet_zt_batch_afford(b, b->order[b->end]))
        {
            break;
        }

        range.end = place->end;
    }

    b->pos = range.start;
    b->room = NGX_HTTP_XET_ZT_BATCH_WORK;

    return ngx_http_xet_ztensor_read(r, b->ztensor, &range,
                                     ngx_http_xet_zt_batch_consume,
                                     ngx_http_xet_zt_batch_read, b);
}


/* If enough is left for a component, sets it aside and returns 1. */

static ngx_uint_t
ngx_http_xet_zt_batch_afford(ngx_http_xet_zt_batch_t *b,
    ngx_http_xet_zt_item_t *item)
{
    uint64_t                   decoded;
    const xet_zt_component_t  *c;

    c = item->component;

    item->cost = item->range.end - item->range.start;

    if (c->coding == XET_ZT_CODING_ZSTD
        || c->coding == XET_ZT_CODING_SEEKABLE)
    {
        decoded = c->has_decoded ? c->decoded : ngx_min(b->output, b->left);

        /* more than the decoder makes is not decoded */

        if (decoded <= b->output) {
            item->cost = ngx_max(item->cost, decoded);
        }
    }

    if (item->cost > b->left) {
        return 0;
    }

    b->left -= item->cost;

    return 1;
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


/* Runs in a thread, as do the functions up to the end of a component. */

static xet_status_t
ngx_http_xet_zt_batch_consume(void *data, const u_char *p, size_t len)
{
    ngx_http_xet_zt_batch_t *b = data;

    xet_status_t  status;

    status = ngx_http_xet_zt_batch_work(b, &p, &len);

    if (status != XET_AGAIN) {
        return status;
    }

    if (len > XET_CHUNK_MAX) {
        return XET_INTERNAL;
    }

    if (b->in == NULL) {
        b->in = malloc(XET_CHUNK_MAX);

        if (b->in == NULL) {
            return XET_NOMEM;
        }
    }

    ngx_memcpy(b->in, p, len);

    b->in_pos = b->in;
    b->in_len = len;

    return XET_DONE;
}


/* XET_OK: it is done; XET_AGAIN: the job has done its share. */

static xet_status_t
ngx_http_xet_zt_batch_work(ngx_http_xet_zt_batch_t *b, const u_char **p,
    size_t *len)
{
    size_t                   n;
    xet_status_t             status;
    ngx_http_xet_zt_item_t  *item;

    while ((*len || b->held) && b->next < b->end) {

        if (b->room == 0) {
            return XET_AGAIN;
        }

        item = b->order[b->next];

        if (b->pos < item->range.start) {
            n = (size_t) ngx_min(*len, item->range.start - b->pos);

            b->pos += n;
            *p += n;
            *len -= n;

            continue;
        }

        status = ngx_http_xet_zt_batch_feed(b, item, p, len);
        if (status != XET_OK) {
            return status;
        }
    }

    return XET_OK;
}


static xet_status_t
ngx_http_xet_zt_batch_feed(ngx_http_xet_zt_batch_t *b,
    ngx_http_xet_zt_item_t *item, const u_char **p, size_t *len)
{
    size_t         n, before;
    xet_range_t    range;
    xet_status_t   status;

    if (!b->started) {
        b->started = 1;

        xet_zt_verifier_limit(b->verifier, item->cost);

        status = xet_zt_verifier_start(b->verifier, &b->region, item->object,
                                       item->component, &range);
        if (status != XET_AGAIN) {
            return (status == XET_NOMEM) ? XET_NOMEM : XET_INTERNAL;
        }
    }

    n = (size_t) ngx_min(*len, item->range.end - b->pos);
    before = n;

    status = xet_zt_verifier_take(b->verifier, p, &n, &b->room);

    b->pos += before - n;
    *len -= before - n;

    b->held = (status == XET_AGAIN);

    if (status != XET_OK) {
        return status;
    }

    return (b->pos == item->range.end) ? ngx_http_xet_zt_batch_finish(b, item)
                                       : XET_OK;
}


static xet_status_t
ngx_http_xet_zt_batch_finish(ngx_http_xet_zt_batch_t *b,
    ngx_http_xet_zt_item_t *item)
{
    uint64_t  used;

    used = ngx_max(item->range.end - item->range.start,
                   xet_zt_verifier_work(b->verifier));

    b->left += item->cost;
    b->left -= ngx_min(b->left, used);

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
        status = ngx_http_xet_zt_batch_continue(r, b);
    }

    if (status != XET_AGAIN) {
        b->handler(r, b->data, status);
    }
}


static void
ngx_http_xet_zt_batch_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_zt_batch_t *b = data;

    b->status = ngx_http_xet_zt_batch_work(b, &b->in_pos, &b->in_len);
}


static void
ngx_http_xet_zt_batch_worked(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_zt_batch_t *b = data;

    ngx_http_xet_zt_batch_read(r, b, (b->status == XET_AGAIN) ? XET_OK
                                                              : b->status);
}


/* Goes on with the rest of a piece, the next piece, or the next range. */

static xet_status_t
ngx_http_xet_zt_batch_continue(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b)
{
    xet_status_t  status;

    if (b->next == b->end) {
        b->in_len = 0;

        return ngx_http_xet_zt_batch_next(r, b);
    }

    b->room = NGX_HTTP_XET_ZT_BATCH_WORK;

    if (b->in_len || b->held) {
        return (ngx_http_xet_task_post(r, ngx_http_xet_zt_batch_job,
                                       ngx_http_xet_zt_batch_worked, b)
                == NGX_OK)
               ? XET_AGAIN : XET_OVERLOADED;
    }

    status = ngx_http_xet_ztensor_next(r, b->ztensor);

    return (status == XET_DONE) ? XET_INTERNAL : status;
}


static xet_status_t
ngx_http_xet_zt_reports_load(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b)
{
    ngx_int_t            rc;
    ngx_http_xet_ctx_t  *ctx;

    if (b->nobjects == 0) {
        return XET_OK;
    }

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

    if (status == XET_OK) {
        status = ngx_http_xet_zt_batch_next(r, b);
    }

    if (status != XET_AGAIN) {
        b->handler(r, b->data, status);
    }
}


static void
ngx_http_xet_zt_reports_rows(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b)
{
    uint64_t    index;
    ngx_str_t   report;
    ngx_uint_t  i, n;

    n = ngx_http_xet_query_rows(ngx_http_xet_query_get(r));

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
