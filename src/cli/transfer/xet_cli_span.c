
/*
 * A span of a download: the part of the file that one reconstruction describes,
 * from the start of a chunk to the end of a chunk.
 *
 *     planning -> fetching -> finished
 *
 * A plan that is too large is requested again for half of the span.  Each range
 * of the plan is fetched by a unit (xet_cli_range_fetch_t).  A unit whose URL
 * has expired waits in w->expired for a new plan of the span, which may also
 * give the range another URL and other bytes.
 *
 * A span owns its request, its plan, its units and its chunks, all freed by
 * xet_cli_span_free().  The queue of units that wait is in xet_cli_fetch_t, for
 * all spans.  The functions run in the one thread of the download, most of them
 * as handlers of requests: they report a failure in f->rc.
 */


#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "xet_cli_transfer.h"


#define XET_CLI_SPAN_REFRESHES  5
#define XET_CLI_SPAN_LEAST      2048   /* smallest span, in bytes */


static int xet_cli_span_plan(xet_cli_fetch_t *f, xet_cli_span_t *w);
static void xet_cli_span_planned(xet_cli_request_t *r);
static int xet_cli_span_smaller(xet_cli_fetch_t *f, xet_cli_span_t *w);
static void xet_cli_span_opened(xet_cli_fetch_t *f, xet_cli_span_t *w);
static void xet_cli_span_sum(xet_cli_download_t *d, const xet_cli_span_t *w);
static int xet_cli_span_open(xet_cli_span_t *w);
static int xet_cli_span_uses(xet_cli_span_t *w);
static int xet_cli_span_use_order(const void *one, const void *two);
static void xet_cli_span_units(xet_cli_fetch_t *f, xet_cli_span_t *w);
static void xet_cli_span_refreshed(xet_cli_fetch_t *f, xet_cli_span_t *w,
    xet_cli_plan_t *plan);
static void xet_cli_span_queue(xet_cli_fetch_t *f, xet_cli_range_fetch_t *u);
static void xet_cli_span_fetched(xet_cli_request_t *r);
static void xet_cli_span_expired(xet_cli_fetch_t *f, xet_cli_range_fetch_t *u);
static int xet_cli_span_add(xet_cli_span_t *w, const xet_cli_chunk_t *chunk);


void
xet_cli_span_next(xet_cli_fetch_t *f)
{
    xet_cli_span_t  *w, **link;

    w = calloc(1, sizeof(xet_cli_span_t));

    if (w == NULL) {
        f->rc = xet_cli_no_memory();
        return;
    }

    w->fetch = f;
    w->first = f->next;
    w->last = f->next + f->size - 1;

    if (w->last > f->d->end - 1) {
        w->last = f->d->end - 1;
    }

    for (link = &f->spans; *link; link = &(*link)->next) { /* void */ }

    *link = w;

    f->nspans++;
    f->planning = 1;
    f->rc = xet_cli_span_plan(f, w);
}


static int
xet_cli_span_plan(xet_cli_fetch_t *f, xet_cli_span_t *w)
{
    char                text[XET_HASH_STR_LEN + 1];
    xet_cli_request_t  *r = &w->request;

    free(r->url);

    r->url = xet_cli_http_url(f->http, "/v%u/reconstructions/%s", f->version,
                              xet_cli_hash_string(&f->d->hash, text));
    if (r->url == NULL) {
        return xet_cli_no_memory();
    }

    snprintf(r->range, sizeof(r->range), "%" PRIu64 "-%" PRIu64, w->first,
             w->last);

    r->api = 1;
    r->max = XET_CLI_PLAN_BODY;
    r->done = xet_cli_span_planned;
    r->ctx = w;

    xet_cli_http_start(f->http, r);

    return XET_CLI_OK;
}


static void
xet_cli_span_planned(xet_cli_request_t *r)
{
    int               rc;
    const char       *error;
    xet_cli_plan_t    plan;
    xet_cli_fetch_t  *f;
    xet_cli_span_t   *w = r->ctx;

    f = w->fetch;

    if (r->status == 416 && !w->planned
        && (w->first > f->d->first || xet_hash_is_zero(&f->d->hash)))
    {
        /* the file is empty, or ends with the previous span */

        f->planning = 0;
        f->last = 1;
        w->planned = 1;
        return;
    }

    if ((r->status == 404 || r->status == 501) && !f->known
        && f->version == 2)
    {
        f->version = 1;
        f->rc = xet_cli_span_plan(f, w);
        return;
    }

    if (r->large && xet_cli_span_smaller(f, w)) {
        return;
    }

    if (r->status / 100 != 2 || r->refused) {
        f->d->passing = xet_cli_http_passing(r);
        f->rc = xet_cli_http_fail(r);
        return;
    }

    f->known = 1;

    rc = xet_cli_plan_parse(&plan, f->version, r->data, r->len, &error);

    if (rc != XET_CLI_OK) {

        if (!plan.large || !xet_cli_span_smaller(f, w)) {
            f->rc = xet_cli_fail(rc, "server", error);
        }

        return;
    }

    free(r->data);
    r->data = NULL;
    r->len = 0;

    if (w->planned) {
        xet_cli_span_refreshed(f, w, &plan);
        return;
    }

    w->plan = plan;

    xet_cli_span_opened(f, w);
}


/*
 * Requests a smaller span after a plan was rejected as too large.  The span is
 * halved; then each later span is twice as large as the previous one, up to
 * the usual size.  Returns 0 if the span cannot be halved.
 */

static int
xet_cli_span_smaller(xet_cli_fetch_t *f, xet_cli_span_t *w)
{
    uint64_t  size;

    size = w->last - w->first + 1;

    if (w->planned || size <= XET_CLI_SPAN_LEAST) {
        return 0;
    }

    f->size = size / 2;
    w->last = w->first + f->size - 1;

    f->rc = xet_cli_span_plan(f, w);

    return 1;
}


static void
xet_cli_span_opened(xet_cli_fetch_t *f, xet_cli_span_t *w)
{
    f->planning = 0;
    w->planned = 1;

    if (w->plan.nterms == 0) {
        f->last = 1;
        return;
    }

    /*
     * every span except the first starts where the previous span ends, at the
     * start of a chunk
     */

    if (w->first > f->d->first && w->plan.offset != 0) {
        f->rc = xet_cli_fail(XET_CLI_NETWORK, "server",
                             "the reconstruction starts before the range");
        return;
    }

    f->rc = xet_cli_span_open(w);

    if (f->rc != XET_CLI_OK) {
        return;
    }

    /* check before fetching the data, which could fill the disk */

    if (w->end > f->d->most) {
        f->rc = xet_cli_failf(XET_CLI_FAULT, f->d->name,
                              "is larger than the expected %" PRIu64
                              " bytes", f->d->most);
        return;
    }

    /* a span shorter than its request ends at the end of the file */

    if (w->end <= w->last || w->end >= f->d->end) {
        f->last = 1;
    }

    f->next = w->end;

    if (f->size < f->batch) {
        f->size *= 2;
    }

    if (f->d->sum) {
        xet_cli_span_sum(f->d, w);
        w->left = 0;

    } else {
        xet_cli_span_units(f, w);
    }
}


static void
xet_cli_span_sum(xet_cli_download_t *d, const xet_cli_span_t *w)
{
    size_t                  i;
    const xet_cli_range_t  *range = w->plan.ranges;

    d->size = w->end;
    d->sum->terms += w->plan.nterms;
    d->sum->ranges += w->plan.nranges;

    for (i = 0; i < w->plan.nranges; i++) {
        d->sum->stored += range[i].byte_end - range[i].byte_start;
    }
}


/*
 * Creates the units of w->plan, and w->data if the download is ordered.
 * Returns XET_CLI_OK; or, after printing the error, XET_CLI_ERROR if out of
 * memory, or XET_CLI_NETWORK if the plan is not for the requested bytes.
 */

static int
xet_cli_span_open(xet_cli_span_t *w)
{
    int                     keep;
    size_t                  i;
    xet_cli_range_fetch_t  *u;

    if (w->plan.offset > w->first) {
        return xet_cli_fail(XET_CLI_NETWORK, "server",
                            "the reconstruction starts before the file");
    }

    w->start = w->first - w->plan.offset;
    w->end = w->start + w->plan.raw_length;

    /* the span must have a requested byte, and at most one extra chunk */

    if (w->end <= w->first || w->end > w->last + XET_CHUNK_MAX) {
        return xet_cli_fail(XET_CLI_NETWORK, "server",
                            "the reconstruction covers another range");
    }

    keep = w->fetch->d->ordered;

    w->units = calloc(w->plan.nranges, sizeof(xet_cli_range_fetch_t));
    w->data = keep ? malloc(w->end - w->start) : NULL;

    if (w->units == NULL || (keep && w->data == NULL)) {
        return xet_cli_no_memory();
    }

    w->left = w->plan.nranges;

    for (i = 0; i < w->plan.nranges; i++) {
        u = &w->units[i];

        u->span = w;
        u->decoder = &w->fetch->decoder;
        u->range = &w->plan.ranges[i];
        u->chunk = u->range->chunk_start;
        u->placed = u->chunk;
        u->pos = u->range->byte_start;
    }

    return xet_cli_span_uses(w);
}


/*
 * Creates the uses from the terms, sorted so that the uses of each unit are
 * contiguous.
 */

static int
xet_cli_span_uses(xet_cli_span_t *w)
{
    size_t                  i;
    uint64_t                pos;
    xet_cli_use_t          *use;
    xet_cli_range_fetch_t  *u;
    xet_cli_term_t         *term;

    w->uses = calloc(w->plan.nterms, sizeof(xet_cli_use_t));

    if (w->uses == NULL) {
        return xet_cli_no_memory();
    }

    pos = w->start;

    for (i = 0; i < w->plan.nterms; i++) {
        use = &w->uses[i];
        term = &w->plan.terms[i];

        use->range = term->range;
        use->start = term->chunk_start;
        use->end = term->chunk_end;
        use->pos = pos;

        pos += term->raw_length;
        use->stop = pos;
    }

    qsort(w->uses, w->plan.nterms, sizeof(xet_cli_use_t),
          xet_cli_span_use_order);

    for (i = 0; i < w->plan.nterms; i++) {
        u = &w->units[w->uses[i].range];

        if (u->nuses++ == 0) {
            u->uses = &w->uses[i];
        }
    }

    return XET_CLI_OK;
}


static int
xet_cli_span_use_order(const void *one, const void *two)
{
    const xet_cli_use_t  *a = one, *b = two;

    if (a->range != b->range) {
        return (a->range > b->range) ? 1 : -1;
    }

    return (a->start > b->start) - (a->start < b->start);
}


static void
xet_cli_span_units(xet_cli_fetch_t *f, xet_cli_span_t *w)
{
    size_t                  i;
    xet_cli_range_fetch_t  *u;

    for (i = 0; i < w->plan.nranges; i++) {
        u = &w->units[i];

        if (f->d->kept) {
            f->rc = xet_cli_range_fetch_skip(u, f->d->kept, f->d->ctx);

            if (f->rc != XET_CLI_OK) {
                return;
            }
        }

        if (xet_cli_range_fetch_complete(u)) {
            w->left--;

        } else {
            xet_cli_span_queue(f, u);
        }
    }
}


/*
 * Applies a new plan for a span.  If a xorb was stored again, its new copy has
 * another URL and may have other bytes.  Units that are still receiving the
 * old bytes continue.
 */

static void
xet_cli_span_refreshed(xet_cli_fetch_t *f, xet_cli_span_t *w,
    xet_cli_plan_t *plan)
{
    size_t                  i;
    xet_cli_plan_t          before;
    xet_cli_range_fetch_t  *u;
    xet_cli_range_t        *old, *new;

    w->refreshing = 0;

    if (!xet_cli_plan_same(&w->plan, plan)) {
        xet_cli_plan_free(plan);
        f->d->passing = 1;
        f->rc = xet_cli_fail(XET_CLI_NETWORK, "server",
                             "the reconstruction changed during the download");
        return;
    }

    for (i = 0; i < plan->nranges; i++) {
        u = &w->units[i];
        old = &w->plan.ranges[i];
        new = &plan->ranges[i];

        old->url = new->url;

        if (!u->running && (old->byte_start != new->byte_start
                            || old->byte_end != new->byte_end))
        {
            xet_cli_range_fetch_moved(u, new->byte_start, new->byte_end);
        }
    }

    /* take only the URLs from the new plan */

    before = *plan;

    plan->urls = w->plan.urls;
    plan->nurls = w->plan.nurls;
    w->plan.urls = before.urls;
    w->plan.nurls = before.nurls;

    xet_cli_plan_free(plan);

    while ((u = w->expired) != NULL) {
        w->expired = u->next;
        xet_cli_span_queue(f, u);
    }
}


static void
xet_cli_span_queue(xet_cli_fetch_t *f, xet_cli_range_fetch_t *u)
{
    u->next = NULL;
    *f->queue_end = u;
    f->queue_end = &u->next;
}


void
xet_cli_span_fetch(xet_cli_fetch_t *f)
{
    xet_cli_range_fetch_t  *u = f->queue;

    f->queue = u->next;

    if (f->queue == NULL) {
        f->queue_end = &f->queue;
    }

    f->rc = xet_cli_range_fetch_prepare(u);

    if (f->rc == XET_CLI_OK) {
        u->request.done = xet_cli_span_fetched;
        u->running = 1;
        f->running++;

        xet_cli_http_start(f->http, &u->request);
    }
}


static void
xet_cli_span_fetched(xet_cli_request_t *r)
{
    xet_cli_range_fetch_t  *u = r->ctx;
    xet_cli_fetch_t        *f;
    xet_cli_span_t         *w;

    w = u->span;
    f = w->fetch;

    u->running = 0;
    f->running--;

    /* 404: another copy may have replaced the copy in the URL */

    if ((r->status == 403 || r->status == 404)
        && w->refreshes < XET_CLI_SPAN_REFRESHES)
    {
        xet_cli_span_expired(f, u);
        return;
    }

    if (xet_cli_range_fetch_rewind(u)) {
        xet_cli_span_queue(f, u);
        return;
    }

    /* the first failure ends the download; only this failure is reported */

    if (f->rc == XET_CLI_OK) {
        f->d->passing = (u->rc == XET_CLI_OK && xet_cli_http_passing(r));
        f->rc = xet_cli_range_fetch_result(u);
    }

    xet_cli_range_fetch_free(u);

    w->left--;
}


static void
xet_cli_span_expired(xet_cli_fetch_t *f, xet_cli_range_fetch_t *u)
{
    xet_cli_span_t  *w = u->span;

    /* many units may wait: free the response, which is not needed */

    xet_cli_range_fetch_free(u);

    u->next = w->expired;
    w->expired = u;

    if (!w->refreshing) {
        w->refreshing = 1;
        w->refreshes++;
        f->rc = xet_cli_worse(f->rc, xet_cli_span_plan(f, w));
    }
}


int
xet_cli_span_chunk(xet_cli_range_fetch_t *u, const xet_cli_chunk_t *chunk,
    const uint8_t *raw)
{
    int                  rc;
    xet_cli_fetch_t     *f;
    xet_cli_span_t      *w = u->span;
    xet_cli_download_t  *d;

    f = w->fetch;
    d = f->d;

    rc = xet_cli_span_add(w, chunk);

    f->kept |= (raw == NULL);

    if (rc == XET_CLI_OK && raw) {
        w->refreshes = 0;
        d->received += XET_XORB_HEADER_LEN + chunk->payload_length;

        if (w->data) {
            memcpy(w->data + (chunk->offset - w->start), raw,
                   chunk->raw_length);

        } else if (d->sink) {
            rc = d->sink(d->ctx, chunk->offset, raw, chunk->raw_length);
        }
    }

    if (rc == XET_CLI_OK && raw && d->note) {
        rc = d->note(d->ctx, chunk);
    }

    f->done += chunk->raw_length;

    return rc;
}


static int
xet_cli_span_add(xet_cli_span_t *w, const xet_cli_chunk_t *chunk)
{
    xet_cli_chunk_t  *chunks;

    if (w->nchunks == XET_CLI_PLAN_CHUNKS) {
        return xet_cli_no_memory();
    }

    chunks = xet_cli_grow(w->chunks, w->nchunks, &w->room,
                          sizeof(xet_cli_chunk_t));

    if (chunks == NULL) {
        return xet_cli_no_memory();
    }

    w->chunks = chunks;
    w->chunks[w->nchunks++] = *chunk;

    return XET_CLI_OK;
}


int
xet_cli_span_finish(xet_cli_span_t *w)
{
    size_t    i;
    uint64_t  pos;

    if (w->nchunks) {
        qsort(w->chunks, w->nchunks, sizeof(xet_cli_chunk_t),
              xet_cli_chunk_order);
    }

    pos = w->start;

    for (i = 0; i < w->nchunks && w->chunks[i].offset == pos; i++) {
        pos += w->chunks[i].raw_length;
    }

    if (i != w->nchunks || pos != w->end) {
        return xet_cli_failf(XET_CLI_NETWORK, "server",
                             "the received data have a gap at byte %llu of the "
                             "file",
                             (unsigned long long) pos);
    }

    return XET_CLI_OK;
}


void
xet_cli_span_free(xet_cli_span_t *w)
{
    size_t  i;

    for (i = 0; w->units && i < w->plan.nranges; i++) {
        xet_cli_range_fetch_free(&w->units[i]);
    }

    xet_cli_http_free(&w->request);
    xet_cli_plan_free(&w->plan);

    free(w->units);
    free(w->uses);
    free(w->chunks);
    free(w->data);
    free(w);
}
