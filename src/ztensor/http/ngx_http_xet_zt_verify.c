
/*
 * GET zt/{file}/verify: checks the data of one object, or of all objects,
 * against the declarations of the file.  The report is JSON.
 *
 *     open      rejects a file that is not a zTensor file, or is too large
 *     walk      copies a batch of objects
 *     verify    reads the components of the batch and checks their data
 *     send      sends the batch's part of the report, then walks again
 *
 * The reader's jobs compute digests and decode; the batch belongs to the
 * thread during a read.  A batch takes memory for the copies of objects, a
 * buffer of 64 KiB, a zstd window, 2 MiB when a component is decoded in one
 * call, up to 16 MiB for indices, and a piece of 128 KiB.
 *
 * Reports are stored in PostgreSQL, so the data of a file, which never
 * changes, is read only once.  A row contains the reports on all components of
 * an object; a report on one of several components is not stored.  Damaged
 * rows are ignored, and their objects are verified again.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_ztensor.h"


#define NGX_HTTP_XET_ZT_BATCH_OBJECTS  64
#define NGX_HTTP_XET_ZT_BATCH_BYTES    (256 * 1024)    /* total of copies */
#define NGX_HTTP_XET_ZT_BATCH_WORK     (4 * 1024 * 1024)  /* bytes per job */
#define NGX_HTTP_XET_ZT_BATCH_GAP      65536   /* bytes between components */


/* A component to be verified. */

typedef struct {
    xet_zt_object_t           *object;
    const xet_zt_component_t  *component;
    xet_range_t                range;          /* empty: nothing to read */
    uint64_t                   at;             /* sort key: offset to read at */
    uint64_t                   cost;           /* reserved bytes */
    xet_zt_report_t            report;
    unsigned                   known:1;        /* report is from PostgreSQL */
    unsigned                   values:1;       /* "values" of sparse object */
} ngx_http_xet_zt_item_t;


/*
 * The request and its batch, whose items are in the order of the objects and
 * of their components.
 */

struct ngx_http_xet_zt_verify_s {
    ngx_http_xet_ztensor_t    *ztensor;
    xet_zt_region_t            region;
    xet_zt_verifier_t         *verifier;
    uint64_t                   rules;          /* xet_zt_report_rules() */
    uint64_t                   left;           /* bytes to read or to decode,
                                                  whichever is more */

    xet_zt_object_t           *objects[NGX_HTTP_XET_ZT_BATCH_OBJECTS];
    ngx_uint_t                 nobjects;
    size_t                     size;           /* bytes of all copies */

    ngx_http_xet_zt_item_t    *items;
    ngx_http_xet_zt_item_t   **order;          /* items, sorted by "at" */
    ngx_uint_t                 n;              /* number of items */

    ngx_uint_t                 next;           /* index in order[] of the first
                                                  item without a report */
    ngx_uint_t                 end;            /* index in order[] after the
                                                  last item of the current
                                                  read */
    uint64_t                   pos;            /* offset in the file of the
                                                  next byte to verify */

    u_char                    *in;             /* copy of the unprocessed bytes
                                                  of a piece */
    const u_char              *in_pos;
    size_t                     in_len;         /* bytes not decoded yet */
    uint64_t                   room;           /* bytes this job may still
                                                  process */
    xet_status_t               status;         /* result of the last job */

    ngx_http_xet_stream_t      stream;
    xet_buf_t                  buf;
    xet_json_t                 json;
    xet_zt_audit_t             audit;

    unsigned                   one:1;          /* one object is requested */
    unsigned                   full:1;         /* more objects may follow */
    unsigned                   started:1;      /* verifying order[next] */
    unsigned                   held:1;         /* verifier has output left */
};


static void ngx_http_xet_zt_verify_cleanup(void *data);
static void ngx_http_xet_zt_verify_opened(ngx_http_request_t *r, void *data,
    xet_status_t status);
static xet_status_t ngx_http_xet_zt_verify_begin(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v);
static xet_status_t ngx_http_xet_zt_verify_walk(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v);
static xet_status_t ngx_http_xet_zt_verify_object(void *ctx,
    xet_zt_object_t *o);
static void ngx_http_xet_zt_verify_walked(ngx_http_request_t *r, void *data,
    xet_status_t status);
static xet_status_t ngx_http_xet_zt_verify_check(ngx_http_xet_zt_verify_t *v);
static xet_status_t ngx_http_xet_zt_batch_items(ngx_http_xet_zt_verify_t *v);
static xet_status_t ngx_http_xet_zt_batch_alloc(ngx_http_xet_zt_verify_t *v);
static void ngx_http_xet_zt_batch_place(ngx_http_xet_zt_item_t *items,
    ngx_uint_t n);
static int ngx_libc_cdecl ngx_http_xet_zt_batch_cmp(const void *one,
    const void *two);
static xet_status_t ngx_http_xet_zt_batch_next(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v);
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
static void ngx_http_xet_zt_batch_reset(ngx_http_xet_zt_verify_t *v);
static xet_status_t ngx_http_xet_zt_reports_load(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v);
static void ngx_http_xet_zt_reports_queried(ngx_http_request_t *r,
    ngx_int_t rc);
static void ngx_http_xet_zt_reports_rows(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v);
static void ngx_http_xet_zt_reports_apply(ngx_http_xet_zt_verify_t *v,
    uint64_t index, ngx_str_t *report);
static void ngx_http_xet_zt_reports_keep(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v);
static ngx_int_t ngx_http_xet_zt_reports_pack(u_char *dst,
    ngx_http_xet_zt_item_t *items, ngx_uint_t n);
static void ngx_http_xet_zt_verify_send(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v, xet_status_t status);
static void ngx_http_xet_zt_verify_json(ngx_http_xet_zt_verify_t *v);
static void ngx_http_xet_zt_verify_next(ngx_http_request_t *r, void *data);
static void ngx_http_xet_zt_verify_failed(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v, xet_status_t status);


ngx_int_t
ngx_http_xet_zt_verify_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    xet_status_t               status;
    ngx_http_xet_zt_verify_t  *v;

    v = ngx_http_xet_state(r, sizeof(ngx_http_xet_zt_verify_t),
                           ngx_http_xet_zt_verify_cleanup);
    if (v == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    status = ngx_http_xet_ztensor_create(r, XET_ZT_ARG_NAME|XET_ZT_ARG_ROLE,
                                         &v->ztensor, v);
    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    v->one = (v->ztensor->query.has_i || v->ztensor->query.name.data);
    v->left = v->ztensor->conf->limit[NGX_HTTP_XET_ZT_VERIFY];

    ctx->route.zt_verify = v;

    return ngx_http_xet_ztensor_open(r, v->ztensor, 0,
                                     ngx_http_xet_zt_verify_opened);
}


static void
ngx_http_xet_zt_verify_cleanup(void *data)
{
    ngx_http_xet_zt_verify_t *v = data;

    ngx_http_xet_zt_batch_reset(v);

    xet_zt_verifier_destroy(v->verifier);

    free(v->in);
}


static void
ngx_http_xet_zt_verify_opened(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_verify_t *v = data;

    const xet_zt_info_t  *info;

    if (status == XET_OK && !v->one) {
        info = xet_zt_info(v->ztensor->zt);

        if (info->bytes > v->left) {
            status = XET_ZT_VERIFY_SIZE;
        }
    }

    if (status == XET_OK) {
        status = ngx_http_xet_zt_verify_begin(r, v);
    }

    if (status == XET_OK) {
        status = ngx_http_xet_zt_verify_walk(r, v);
    }

    if (status != XET_AGAIN) {
        ngx_http_xet_zt_verify_walked(r, v, status);
    }
}


static xet_status_t
ngx_http_xet_zt_verify_begin(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v)
{
    u_char                        id[XET_HASH_STR_LEN];
    ngx_pool_t                   *pool;
    ngx_http_xet_ztensor_conf_t  *zlcf;

    zlcf = v->ztensor->conf;

    xet_zt_region(v->ztensor->zt, &v->region);

    v->rules = xet_zt_report_rules(&zlcf->limits, &zlcf->decoder);

    v->verifier = xet_zt_verifier_create(&zlcf->decoder);
    if (v->verifier == NULL) {
        return XET_NOMEM;
    }

    if (ngx_http_xet_stream_init(r, &v->stream, ngx_http_xet_zt_verify_next, v)
        != NGX_OK)
    {
        return XET_NOMEM;
    }

    pool = ngx_http_xet_stream_pool(&v->stream);
    if (pool == NULL) {
        return XET_NOMEM;
    }

    xet_buf_init(&v->buf, ngx_http_xet_alloc, pool, 0);
    xet_json_init(&v->json, &v->buf);

    (void) xet_hash_print(id, &v->ztensor->hash);

    xet_zt_audit_begin(&v->audit, &v->json, v->ztensor->zt, id, sizeof(id));

    return XET_OK;
}


static xet_status_t
ngx_http_xet_zt_verify_walk(ngx_http_request_t *r, ngx_http_xet_zt_verify_t *v)
{
    v->full = 0;

    return ngx_http_xet_ztensor_walk(r, v->ztensor,
                                     ngx_http_xet_zt_verify_object,
                                     ngx_http_xet_zt_verify_walked);
}


/* Copies an object to the batch.  Runs in a thread. */

static xet_status_t
ngx_http_xet_zt_verify_object(void *ctx, xet_zt_object_t *o)
{
    ngx_http_xet_zt_verify_t *v = ctx;

    xet_zt_object_t  *copy;

    v->ztensor->select.first = o->index + 1;

    copy = xet_zt_object_copy(o);
    if (copy == NULL) {
        return XET_NOMEM;
    }

    v->objects[v->nobjects++] = copy;
    v->size += xet_zt_object_size(copy);

    if (v->one) {
        return XET_DONE;
    }

    v->full = (v->nobjects == NGX_HTTP_XET_ZT_BATCH_OBJECTS
               || v->size >= NGX_HTTP_XET_ZT_BATCH_BYTES);

    return v->full ? XET_DONE : XET_OK;
}


static void
ngx_http_xet_zt_verify_walked(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_verify_t *v = data;

    if (status == XET_OK && v->one) {
        status = ngx_http_xet_zt_verify_check(v);
    }

    if (status == XET_OK) {
        status = ngx_http_xet_zt_batch_items(v);
    }

    if (status == XET_OK) {
        status = ngx_http_xet_zt_reports_load(r, v);
    }

    if (status == XET_OK) {
        status = ngx_http_xet_zt_batch_next(r, v);
    }

    if (status != XET_AGAIN) {
        ngx_http_xet_zt_verify_send(r, v, status);
    }
}


/* Checks that the requested object and role exist, and are not too large. */

static xet_status_t
ngx_http_xet_zt_verify_check(ngx_http_xet_zt_verify_t *v)
{
    ngx_uint_t                 i;
    uint64_t                   left;
    xet_zt_object_t           *o;
    const xet_zt_component_t  *c, *one;

    if (v->nobjects == 0) {
        return XET_ZT_NO_OBJECT;
    }

    o = v->objects[0];
    one = NULL;

    if (v->ztensor->query.role.data) {
        one = xet_zt_object_component(o, v->ztensor->query.role.data,
                                      v->ztensor->query.role.len);
        if (one == NULL) {
            return XET_ZT_NO_COMPONENT;
        }
    }

    left = v->left;

    for (i = 0; i < o->n; i++) {
        c = &o->components[i];

        if ((one && c != one) || c->shard.data) {
            continue;
        }

        if (c->length > left) {
            return XET_ZT_VERIFY_SIZE;
        }

        left -= c->length;
    }

    return XET_OK;
}


static xet_status_t
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

static xet_status_t
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
        ngx_http_xet_zt_verify_send(r, v, status);
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


static void
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


static xet_status_t
ngx_http_xet_zt_reports_load(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v)
{
    ngx_int_t            rc;
    ngx_http_xet_ctx_t  *ctx;

    if (v->nobjects == 0) {
        return XET_OK;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    rc = ngx_http_xet_query(r, zt_reports_get, ngx_http_xet_zt_reports_queried,
                            .file = &ctx->hash, .rules = v->rules,
                            .first = v->objects[0]->index,
                            .last = v->objects[v->nobjects - 1]->index);

    return ngx_http_xet_query_status(rc, XET_OK);
}


static void
ngx_http_xet_zt_reports_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    xet_status_t               status;
    ngx_http_xet_zt_verify_t  *v;

    v = ngx_http_xet_ctx_of(r)->route.zt_verify;

    if (rc == NGX_OK) {
        ngx_http_xet_zt_reports_rows(r, v);
    }

    status = ngx_http_xet_query_status(rc, XET_OK);

    ngx_http_xet_query_release(r);

    if (status == XET_OK) {
        status = ngx_http_xet_zt_batch_next(r, v);
    }

    if (status != XET_AGAIN) {
        ngx_http_xet_zt_verify_send(r, v, status);
    }
}


static void
ngx_http_xet_zt_reports_rows(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v)
{
    ngx_uint_t                         i, n;
    ngx_http_xet_query_t              *q;
    ngx_http_xet_zt_reports_get_row_t  row;

    q = ngx_http_xet_ctx_of(r)->query;
    n = ngx_http_xet_query_rows(q);

    for (i = 0; i < n; i++) {
        (void) ngx_http_xet_row_zt_reports_get(q->res, i, &row);
        ngx_http_xet_zt_reports_apply(v, row.object, &row.report);
    }
}


static void
ngx_http_xet_zt_reports_apply(ngx_http_xet_zt_verify_t *v, uint64_t index,
    ngx_str_t *report)
{
    size_t                   at;
    ngx_uint_t               i;
    xet_zt_object_t         *o;
    xet_zt_report_t          any;
    ngx_http_xet_zt_item_t  *item;

    /* components are compared with each other: use all reports or none */

    for (at = 0; at < report->len; at += XET_ZT_REPORT_LEN) {
        if (report->len - at < XET_ZT_REPORT_LEN
            || !xet_zt_report_unpack(&any, report->data + at))
        {
            return;
        }
    }

    for (i = 0; i < v->n; i++) {
        item = &v->items[i];
        o = item->object;

        if (o->index != index || report->len != o->n * XET_ZT_REPORT_LEN) {
            continue;
        }

        at = (item->component - o->components) * XET_ZT_REPORT_LEN;

        item->known = xet_zt_report_unpack(&item->report,
                                           report->data + at);
    }
}


static void
ngx_http_xet_zt_reports_keep(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v)
{
    u_char                 report[1024 * XET_ZT_REPORT_LEN];
    ngx_uint_t             i, n;
    xet_zt_object_t       *o;
    ngx_http_xet_array_t   objects, reports;

    ngx_memzero(&objects, sizeof(ngx_http_xet_array_t));
    ngx_memzero(&reports, sizeof(ngx_http_xet_array_t));

    for (i = 0; i < v->n; i += n) {
        o = v->items[i].object;

        for (n = 1; i + n < v->n && v->items[i + n].object == o; n++) {
            /* void */
        }

        if (n != o->n || n > sizeof(report) / XET_ZT_REPORT_LEN
            || ngx_http_xet_zt_reports_pack(report, &v->items[i], n)
               != NGX_OK)
        {
            continue;
        }

        ngx_http_xet_array_int8(&objects, (int64_t) o->index);
        ngx_http_xet_array_bytes(&reports, report, n * XET_ZT_REPORT_LEN);
    }

    if (objects.n) {
        ngx_http_xet_query_zt_reports_put(r, &ngx_http_xet_ctx_of(r)->hash,
                                          v->rules, &objects, &reports);
    }

    ngx_http_xet_array_destroy(&objects);
    ngx_http_xet_array_destroy(&reports);
}


/*
 * Packs the reports of an object.  Returns NGX_DECLINED if all reports are
 * already stored, or if a report must not be stored.
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


/* Sends the part of the response for a batch whose items all have reports. */

static void
ngx_http_xet_zt_verify_send(ngx_http_request_t *r, ngx_http_xet_zt_verify_t *v,
    xet_status_t status)
{
    if (status != XET_OK) {
        ngx_http_xet_zt_verify_failed(r, v, status);
        return;
    }

    ngx_http_xet_zt_verify_json(v);

    ngx_http_xet_zt_batch_reset(v);

    if (!v->full) {
        xet_zt_audit_end(&v->audit);
    }

    if (!v->stream.begun) {
        ngx_http_xet_output_type(r, NGX_HTTP_OK, "application/json", -1);
    }

    ngx_http_xet_stream_send(r, &v->stream, &v->buf, !v->full);
}


static void
ngx_http_xet_zt_verify_json(ngx_http_xet_zt_verify_t *v)
{
    ngx_uint_t                i;
    xet_zt_object_t          *o;
    ngx_http_xet_zt_item_t   *item, *last;

    item = v->items;
    last = item + v->n;

    for (i = 0; i < v->nobjects; i++) {
        o = v->objects[i];

        xet_zt_audit_object(&v->audit, o);

        for ( /* void */ ; item < last && item->object == o; item++) {
            xet_zt_audit_component(&v->audit, o, item->component,
                                   &item->report);
        }

        xet_zt_audit_object_end(&v->audit, o);
    }
}


/* Makes the next part of the response, after the previous one was sent. */

static void
ngx_http_xet_zt_verify_next(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_zt_verify_t *v = data;

    ngx_pool_t    *pool;
    xet_status_t   status;

    pool = ngx_http_xet_stream_pool(&v->stream);

    if (pool == NULL) {
        ngx_http_xet_zt_verify_failed(r, v, XET_NOMEM);
        return;
    }

    xet_buf_init(&v->buf, ngx_http_xet_alloc, pool, 0);
    xet_json_resume(&v->json, &v->buf);

    status = ngx_http_xet_zt_verify_walk(r, v);

    if (status != XET_AGAIN) {
        ngx_http_xet_zt_verify_walked(r, v, status);
    }
}


static void
ngx_http_xet_zt_verify_failed(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v, xet_status_t status)
{
    if (v->stream.begun) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "xet: a verification was truncated: %s",
                      xet_status_text(status));

        ngx_http_finalize_request(r, ngx_http_xet_break_off(r));
        return;
    }

    ngx_http_finalize_request(r, ngx_http_xet_ztensor_error(r, v->ztensor,
                                                            status));
}
