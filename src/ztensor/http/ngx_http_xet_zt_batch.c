
/*
 * A batch of components of a zTensor file, which are read and verified.
 *
 *     items     takes the components of the objects, in the order of the file
 *     next      starts to read the next ones that have no report
 *     consume   verifies a piece, in a thread; the rest of a piece that takes
 *               long is verified in further jobs
 *     done      all items have reports
 *
 * The batch belongs to the thread during a read.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_zt_verify.h"


#define NGX_HTTP_XET_ZT_BATCH_WORK     (4 * 1024 * 1024)  /* bytes per job */
#define NGX_HTTP_XET_ZT_BATCH_GAP      65536   /* bytes between components */


static xet_status_t ngx_http_xet_zt_batch_alloc(ngx_http_xet_zt_verify_t *v);
static void ngx_http_xet_zt_batch_place(ngx_http_xet_zt_item_t *items,
    ngx_uint_t n);
static int ngx_libc_cdecl ngx_http_xet_zt_batch_cmp(const void *one,
    const void *two);
static ngx_uint_t ngx_http_xet_zt_batch_afford(ngx_http_xet_zt_verify_t *v,
    ngx_http_xet_zt_item_t *item);
static xet_status_t ngx_http_xet_zt_batch_empty(ngx_http_xet_zt_verify_t *v,
    ngx_http_xet_zt_item_t *item);
static xet_status_t ngx_http_xet_zt_batch_consume(void *data, const u_char *p,
    size_t len);
static xet_status_t ngx_http_xet_zt_batch_work(ngx_http_xet_zt_verify_t *v,
    const u_char **p, size_t *len);
static xet_status_t ngx_http_xet_zt_batch_feed(ngx_http_xet_zt_verify_t *v,
    ngx_http_xet_zt_item_t *item, const u_char **p, size_t *len);
static xet_status_t ngx_http_xet_zt_batch_finish(ngx_http_xet_zt_verify_t *v,
    ngx_http_xet_zt_item_t *item);
static void ngx_http_xet_zt_batch_read(ngx_http_request_t *r, void *data,
    xet_status_t status);
static void ngx_http_xet_zt_batch_job(void *data, ngx_log_t *log);
static void ngx_http_xet_zt_batch_worked(ngx_http_request_t *r, void *data);
static xet_status_t ngx_http_xet_zt_batch_continue(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v);


xet_status_t
ngx_http_xet_zt_batch_items(ngx_http_xet_zt_verify_t *v)
{
    ngx_uint_t                 i, n, first;
    xet_zt_object_t           *o;
    const xet_zt_text_t       *role;
    ngx_http_xet_zt_item_t    *item;
    const xet_zt_component_t  *c;

    role = &v->ztensor->query.role;

    if (ngx_http_xet_zt_batch_alloc(v) != XET_OK) {
        return XET_NOMEM;
    }

    for (i = 0; i < v->nobjects; i++) {
        o = v->objects[i];
        first = v->n;

        for (n = 0; n < o->n; n++) {
            c = &o->components[n];

            if (role->data
                && (role->len != c->role.len
                    || ngx_memcmp(role->data, c->role.data, role->len) != 0))
            {
                continue;
            }

            item = &v->items[v->n];

            item->object = o;
            item->component = c;

            if (xet_zt_component_range(c, &v->region, &item->range)
                != XET_OK)
            {
                item->range.start = 0;
                item->range.end = 0;
            }

            item->at = item->range.start;

            v->order[v->n++] = item;
        }

        if (xet_zt_object_sparse(o)) {
            ngx_http_xet_zt_batch_place(&v->items[first], v->n - first);
        }
    }

    ngx_qsort(v->order, v->n, sizeof(ngx_http_xet_zt_item_t *),
              ngx_http_xet_zt_batch_cmp);

    v->next = 0;
    v->started = 0;

    return XET_OK;
}


static xet_status_t
ngx_http_xet_zt_batch_alloc(ngx_http_xet_zt_verify_t *v)
{
    ngx_uint_t  i, n;

    n = 1;

    for (i = 0; i < v->nobjects; i++) {
        n += v->objects[i]->n;
    }

    v->n = 0;
    v->items = calloc(n, sizeof(ngx_http_xet_zt_item_t));
    v->order = calloc(n, sizeof(ngx_http_xet_zt_item_t *));

    return (v->items && v->order) ? XET_OK : XET_NOMEM;
}


/*
 * Gives all items of a sparse object the sort key of the item that comes first
 * in the file.
 */

static void
ngx_http_xet_zt_batch_place(ngx_http_xet_zt_item_t *items, ngx_uint_t n)
{
    uint64_t    at;
    ngx_uint_t  i;

    at = UINT64_MAX;

    for (i = 0; i < n; i++) {
        at = ngx_min(at, items[i].range.start);
    }

    for (i = 0; i < n; i++) {
        items[i].at = at;
        items[i].values = xet_zt_text_is(&items[i].component->role, "values");
    }
}


static int ngx_libc_cdecl
ngx_http_xet_zt_batch_cmp(const void *one, const void *two)
{
    const ngx_http_xet_zt_item_t  *a, *b;

    a = *(ngx_http_xet_zt_item_t *const *) one;
    b = *(ngx_http_xet_zt_item_t *const *) two;

    if (a->at != b->at) {
        return (a->at < b->at) ? -1 : 1;
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


/*
 * Starts to read the next items.  Returns XET_OK if all items are done.
 *
 * Components are read in the order of their positions in the file.  Adjacent
 * components are read together, because most files have many small components.
 * A component that shares bytes with another is read separately.  The
 * components of a sparse object are read one after the other, "values" first,
 * because indices are compared with each other.
 */

xet_status_t
ngx_http_xet_zt_batch_next(ngx_http_request_t *r, ngx_http_xet_zt_verify_t *v)
{
    xet_range_t              range, *at;
    xet_status_t             status;
    ngx_http_xet_zt_item_t  *item;

    for ( ;; ) {

        if (v->next == v->n) {
            ngx_http_xet_zt_reports_keep(r, v);
            return XET_OK;
        }

        item = v->order[v->next];

        if (!item->known) {

            if (item->range.start == item->range.end) {
                status = ngx_http_xet_zt_batch_empty(v, item);

                if (status != XET_OK) {
                    return status;
                }

            } else if (ngx_http_xet_zt_batch_afford(v, item)) {
                break;

            } else {
                item->report.digest = XET_ZT_DIGEST_UNCHECKED;
                item->report.status = XET_ZT_VERIFY_SIZE;
            }
        }

        v->next++;
    }

    range = item->range;

    for (v->end = v->next + 1; v->end < v->n; v->end++) {
        at = &v->order[v->end]->range;

        if (v->order[v->end]->known
            || at->start == at->end
            || at->start < range.end
            || at->start - range.end > NGX_HTTP_XET_ZT_BATCH_GAP
            || !ngx_http_xet_zt_batch_afford(v, v->order[v->end]))
        {
            break;
        }

        range.end = at->end;
    }

    v->pos = range.start;
    v->room = NGX_HTTP_XET_ZT_BATCH_WORK;

    return ngx_http_xet_ztensor_read(r, v->ztensor, &range,
                                     ngx_http_xet_zt_batch_consume,
                                     ngx_http_xet_zt_batch_read, v);
}


/*
 * Reserves the bytes for a component, and returns 1, if enough bytes remain
 * until the limit; otherwise returns 0.  If the decoded length is unknown,
 * reserves the maximum output of the decoder, or all remaining bytes if there
 * are fewer.  Unused bytes are released at the end of the component.
 */

static ngx_uint_t
ngx_http_xet_zt_batch_afford(ngx_http_xet_zt_verify_t *v,
    ngx_http_xet_zt_item_t *item)
{
    uint64_t                   output, decoded;
    const xet_zt_component_t  *c;

    c = item->component;
    output = v->ztensor->conf->decoder.output;

    item->cost = item->range.end - item->range.start;

    if (c->coding == XET_ZT_CODING_ZSTD
        || c->coding == XET_ZT_CODING_SEEKABLE)
    {
        decoded = c->has_decoded ? c->decoded : ngx_min(output, v->left);

        /* a component over the decoder's limit is not decoded */

        if (decoded <= output) {
            item->cost = ngx_max(item->cost, decoded);
        }
    }

    if (item->cost > v->left) {
        return 0;
    }

    v->left -= item->cost;

    return 1;
}


/* Sets the report of an item that has no bytes to read. */

static xet_status_t
ngx_http_xet_zt_batch_empty(ngx_http_xet_zt_verify_t *v,
    ngx_http_xet_zt_item_t *item)
{
    xet_range_t   range;
    xet_status_t  status;

    status = xet_zt_verifier_start(v->verifier, &v->region, item->object,
                                   item->component, &range);

    if (status != XET_AGAIN && status != XET_DONE) {
        return status;
    }

    return xet_zt_verifier_finish(v->verifier, &item->report);
}


/*
 * Verifies a piece from the reader.  This function and the following ones, up
 * to the end of a component, run in a thread.
 *
 * A piece may decode to gigabytes.  When a job has used up v->room, the rest of
 * the piece is copied and decoded in separate jobs; then the next piece is
 * read.
 */

static xet_status_t
ngx_http_xet_zt_batch_consume(void *data, const u_char *p, size_t len)
{
    ngx_http_xet_zt_verify_t *v = data;

    xet_status_t  status;

    status = ngx_http_xet_zt_batch_work(v, &p, &len);

    if (status != XET_AGAIN) {
        return status;
    }

    if (len > XET_CHUNK_MAX) {
        return XET_INTERNAL;
    }

    if (v->in == NULL) {
        v->in = malloc(XET_CHUNK_MAX);

        if (v->in == NULL) {
            return XET_NOMEM;
        }
    }

    ngx_memcpy(v->in, p, len);

    v->in_pos = v->in;
    v->in_len = len;

    return XET_DONE;
}


/*
 * Processes bytes.  XET_OK: all bytes are processed; XET_AGAIN: v->room is used
 * up.
 */

static xet_status_t
ngx_http_xet_zt_batch_work(ngx_http_xet_zt_verify_t *v, const u_char **p,
    size_t *len)
{
    size_t                   n;
    xet_status_t             status;
    ngx_http_xet_zt_item_t  *item;

    while ((*len || v->held) && v->next < v->end) {

        if (v->room == 0) {
            return XET_AGAIN;
        }

        item = v->order[v->next];

        if (v->pos < item->range.start) {
            n = (size_t) ngx_min(*len, item->range.start - v->pos);

            v->pos += n;
            *p += n;
            *len -= n;

            continue;
        }

        status = ngx_http_xet_zt_batch_feed(v, item, p, len);
        if (status != XET_OK) {
            return status;
        }
    }

    return XET_OK;
}


static xet_status_t
ngx_http_xet_zt_batch_feed(ngx_http_xet_zt_verify_t *v,
    ngx_http_xet_zt_item_t *item, const u_char **p, size_t *len)
{
    size_t         n, before;
    xet_range_t    range;
    xet_status_t   status;

    if (!v->started) {
        v->started = 1;

        xet_zt_verifier_limit(v->verifier, item->cost);

        status = xet_zt_verifier_start(v->verifier, &v->region, item->object,
                                       item->component, &range);
        if (status != XET_AGAIN) {
            return (status == XET_NOMEM) ? XET_NOMEM : XET_INTERNAL;
        }
    }

    n = (size_t) ngx_min(*len, item->range.end - v->pos);
    before = n;

    status = xet_zt_verifier_take(v->verifier, p, &n, &v->room);

    v->pos += before - n;
    *len -= before - n;

    v->held = (status == XET_AGAIN);

    if (status != XET_OK) {
        return status;
    }

    return (v->pos == item->range.end) ? ngx_http_xet_zt_batch_finish(v, item)
                                       : XET_OK;
}


static xet_status_t
ngx_http_xet_zt_batch_finish(ngx_http_xet_zt_verify_t *v,
    ngx_http_xet_zt_item_t *item)
{
    uint64_t  used;

    used = ngx_max(item->range.end - item->range.start,
                   xet_zt_verifier_work(v->verifier));

    v->left += item->cost;
    v->left -= ngx_min(v->left, used);

    v->started = 0;
    v->next++;

    return xet_zt_verifier_finish(v->verifier, &item->report);
}


static void
ngx_http_xet_zt_batch_read(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_verify_t *v = data;

    if (status == XET_OK || status == XET_DONE) {
        status = ngx_http_xet_zt_batch_continue(r, v);
    }

    if (status != XET_AGAIN) {
        v->done(r, v, status);
    }
}


static void
ngx_http_xet_zt_batch_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_zt_verify_t *v = data;

    v->status = ngx_http_xet_zt_batch_work(v, &v->in_pos, &v->in_len);
}


static void
ngx_http_xet_zt_batch_worked(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_zt_verify_t *v = data;

    ngx_http_xet_zt_batch_read(r, v, (v->status == XET_AGAIN) ? XET_OK
                                                              : v->status);
}


/* Continues with the rest of a piece, the next piece, or the next range. */

static xet_status_t
ngx_http_xet_zt_batch_continue(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v)
{
    xet_status_t  status;

    if (v->next == v->end) {
        v->in_len = 0;

        return ngx_http_xet_zt_batch_next(r, v);
    }

    v->room = NGX_HTTP_XET_ZT_BATCH_WORK;

    if (v->in_len || v->held) {
        return (ngx_http_xet_task_post(r, ngx_http_xet_zt_batch_job,
                                       ngx_http_xet_zt_batch_worked, v)
                == NGX_OK)
               ? XET_AGAIN : XET_OVERLOADED;
    }

    status = ngx_http_xet_ztensor_next(r, v->ztensor);

    return (status == XET_DONE) ? XET_INTERNAL : status;
}


void
ngx_http_xet_zt_batch_reset(ngx_http_xet_zt_verify_t *v)
{
    ngx_uint_t  i;

    for (i = 0; i < v->nobjects; i++) {
        free(v->objects[i]);
    }

    free(v->items);
    free(v->order);

    v->nobjects = 0;
    v->size = 0;
    v->items = NULL;
    v->order = NULL;
    v->n = 0;
}
