
/* Plans: parses reconstructions. */


#include <stdlib.h>
#include <string.h>

#include "xet_cli_transfer.h"


#define XET_CLI_PLAN_XORB_MAX  (UINT64_C(1) << 32)   /* bytes of a xorb */
#define XET_CLI_PLAN_TERM_MAX  ((uint64_t) XET_XORB_CHUNKS_MAX * XET_CHUNK_MAX)


static const char *xet_cli_plan_terms(xet_cli_plan_t *plan,
    const json_t *terms);
static const char *xet_cli_plan_ranges(xet_cli_plan_t *plan,
    unsigned version, json_t *xorbs);
static const char *xet_cli_plan_entry(xet_cli_plan_t *plan,
    const xet_hash_t *xorb, unsigned version, const json_t *entry);
static const char *xet_cli_plan_range(xet_cli_plan_t *plan,
    const xet_hash_t *xorb, const json_t *chunks, const json_t *bytes,
    const char *url);
static const char *xet_cli_plan_url(xet_cli_plan_t *plan, const char *url);
static int xet_cli_plan_span(const json_t *object, uint64_t max,
    uint64_t *start, uint64_t *end);
static int xet_cli_plan_order(const void *one, const void *two);
static void xet_cli_plan_reach(xet_cli_plan_t *plan);
static const char *xet_cli_plan_connect(xet_cli_plan_t *plan);
static const char *xet_cli_plan_drop(xet_cli_plan_t *plan);


static const char  xet_cli_plan_memory[] = "out of memory";
static const char  xet_cli_plan_large[] =
    "the reconstruction is too large for its range";


int
xet_cli_plan_parse(xet_cli_plan_t *plan, unsigned version, const char *data,
    size_t len, const char **error)
{
    int      large;
    json_t  *body;

    memset(plan, 0, sizeof(xet_cli_plan_t));

    body = xet_cli_json_load(data ? data : "", len, JSON_REJECT_DUPLICATES,
                             XET_CLI_PLAN_ROOM, &large);

    if (large) {
        *error = xet_cli_plan_large;

    } else if (!xet_cli_json_get_u64(body, "offset_into_first_range",
                                     &plan->offset))
    {
        *error = "the reconstruction is not JSON, or has no offset";

    } else {
        *error = xet_cli_plan_terms(plan, json_object_get(body, "terms"));
    }

    if (*error == NULL) {
        *error = xet_cli_plan_ranges(plan, version,
                                     json_object_get(body, version == 2
                                                           ? "xorbs"
                                                           : "fetch_info"));
    }

    json_decref(body);

    if (*error == NULL) {
        *error = xet_cli_plan_connect(plan);
    }

    if (*error == NULL) {
        *error = xet_cli_plan_drop(plan);
    }

    if (*error) {
        xet_cli_plan_free(plan);
        plan->large = (*error == xet_cli_plan_large);

        return (*error == xet_cli_plan_memory) ? XET_CLI_ERROR
                                               : XET_CLI_NETWORK;
    }

    return XET_CLI_OK;
}


static const char *
xet_cli_plan_terms(xet_cli_plan_t *plan, const json_t *terms)
{
    size_t           i;
    json_t          *value;
    uint64_t         start, end, chunks;
    xet_cli_term_t  *term;

    if (!json_is_array(terms)) {
        return "the reconstruction has no terms";
    }

    plan->nterms = json_array_size(terms);
    plan->terms = calloc(plan->nterms + 1, sizeof(xet_cli_term_t));

    if (plan->terms == NULL) {
        return xet_cli_plan_memory;
    }

    chunks = 0;

    json_array_foreach(terms, i, value) {
        term = &plan->terms[i];

        if (!xet_cli_json_get_hash(value, "hash", &term->xorb)
            || !xet_cli_json_get_u64(value, "unpacked_length",
                                     &term->raw_length)
            || !xet_cli_plan_span(json_object_get(value, "range"),
                                  XET_XORB_CHUNKS_MAX, &start, &end)
            || start >= end || term->raw_length == 0
            || term->raw_length > XET_CLI_PLAN_TERM_MAX)
        {
            return "the reconstruction has a malformed term";
        }

        term->chunk_start = (uint32_t) start;
        term->chunk_end = (uint32_t) end;

        plan->raw_length += term->raw_length;
        chunks += end - start;
    }

    if (chunks > XET_CLI_PLAN_CHUNKS) {
        return xet_cli_plan_large;
    }

    if (plan->nterms ? plan->offset >= plan->terms[0].raw_length
                     : plan->offset != 0)
    {
        return "the reconstruction starts after its first term";
    }

    return NULL;
}


static const char *
xet_cli_plan_ranges(xet_cli_plan_t *plan, unsigned version, json_t *xorbs)
{
    json_t      *entries, *entry;
    size_t       i;
    const char  *key, *error;
    xet_hash_t   xorb;

    if (!json_is_object(xorbs)) {
        return "the reconstruction does not list its xorbs";
    }

    json_object_foreach(xorbs, key, entries) {

        if (xet_hash_parse(&xorb, (const uint8_t *) key, strlen(key))
            != XET_OK)
        {
            return "the reconstruction has a malformed xorb hash";
        }

        json_array_foreach(entries, i, entry) {
            error = xet_cli_plan_entry(plan, &xorb, version, entry);

            if (error) {
                return error;
            }
        }
    }

    return NULL;
}


static const char *
xet_cli_plan_entry(xet_cli_plan_t *plan, const xet_hash_t *xorb,
    unsigned version, const json_t *entry)
{
    size_t       i;
    json_t      *range;
    const char  *url, *error;

    url = json_string_value(json_object_get(entry, "url"));

    if (url == NULL) {
        return "the reconstruction has an entry without a URL";
    }

    if (strlen(url) > XET_CLI_PLAN_URL) {
        return "the reconstruction has a URL longer than 16 KiB";
    }

    url = xet_cli_plan_url(plan, url);

    if (url == NULL) {
        return xet_cli_plan_memory;
    }

    if (version == 1) {
        return xet_cli_plan_range(plan, xorb, json_object_get(entry, "range"),
                                  json_object_get(entry, "url_range"), url);
    }

    json_array_foreach(json_object_get(entry, "ranges"), i, range) {
        error = xet_cli_plan_range(plan, xorb,
                                   json_object_get(range, "chunks"),
                                   json_object_get(range, "bytes"), url);

        if (error) {
            return error;
        }
    }

    return NULL;
}


static const char *
xet_cli_plan_range(xet_cli_plan_t *plan, const xet_hash_t *xorb,
    const json_t *chunks, const json_t *bytes, const char *url)
{
    uint64_t          start, end;
    xet_cli_range_t  *range;

    range = xet_cli_grow(plan->ranges, plan->nranges, &plan->ranges_room,
                         sizeof(xet_cli_range_t));

    if (range == NULL) {
        return xet_cli_plan_memory;
    }

    plan->ranges = range;
    range += plan->nranges;

    if (!xet_cli_plan_span(chunks, XET_XORB_CHUNKS_MAX, &start, &end)
        || start >= end)
    {
        return "the reconstruction has a malformed chunk range";
    }

    range->xorb = *xorb;
    range->chunk_start = (uint32_t) start;
    range->chunk_end = (uint32_t) end;

    /* a byte range of a response includes its last byte, as in HTTP */

    if (!xet_cli_plan_span(bytes, XET_CLI_PLAN_XORB_MAX, &start, &end)
        || start > end)
    {
        return "the reconstruction has a malformed byte range";
    }

    range->byte_start = start;
    range->byte_end = end + 1;
    range->url = url;

    plan->nranges++;

    return NULL;
}


/* Copies the URL of an entry once, for all ranges of the entry. */

static const char *
xet_cli_plan_url(xet_cli_plan_t *plan, const char *url)
{
    char  *copy, **urls;

    urls = xet_cli_grow(plan->urls, plan->nurls, &plan->urls_room,
                        sizeof(char *));

    if (urls == NULL) {
        return NULL;
    }

    plan->urls = urls;
    copy = strdup(url);

    if (copy) {
        plan->urls[plan->nurls++] = copy;
    }

    return copy;
}


static int
xet_cli_plan_span(const json_t *object, uint64_t max, uint64_t *start,
    uint64_t *end)
{
    return xet_cli_json_get_u64(object, "start", start)
           && xet_cli_json_get_u64(object, "end", end)
           && *start <= max && *end <= max;
}


static int
xet_cli_plan_order(const void *one, const void *two)
{
    int                     rc;
    const xet_cli_range_t  *a = one, *b = two;

    rc = memcmp(a->xorb.bytes, b->xorb.bytes, XET_HASH_LEN);

    if (rc) {
        return rc;
    }

    return (a->chunk_start > b->chunk_start)
           - (a->chunk_start < b->chunk_start);
}


/*
 * Sorts the ranges by xorb and first chunk, and sets the reach of each range.
 * Ranges of a xorb may overlap.  The reach of a range is the index of the
 * range that ends last, among the ranges of the same xorb that start no later.
 */

static void
xet_cli_plan_reach(xet_cli_plan_t *plan)
{
    size_t            i;
    xet_cli_range_t  *r;

    if (plan->nranges) {
        qsort(plan->ranges, plan->nranges, sizeof(xet_cli_range_t),
              xet_cli_plan_order);
    }

    r = plan->ranges;

    for (i = 0; i < plan->nranges; i++) {
        r[i].reach = i;

        if (i && xet_hash_equal(&r[i - 1].xorb, &r[i].xorb)
            && r[r[i - 1].reach].chunk_end >= r[i].chunk_end)
        {
            r[i].reach = r[i - 1].reach;
        }
    }
}


/*
 * Finds the range of each term: the range of the same xorb that ends last,
 * among the ranges that start no later than the term.
 */

static const char *
xet_cli_plan_connect(xet_cli_plan_t *plan)
{
    size_t            i, low, high, mid;
    xet_cli_term_t   *term;
    xet_cli_range_t   key, *range;

    xet_cli_plan_reach(plan);

    for (i = 0; i < plan->nterms; i++) {
        term = &plan->terms[i];

        key.xorb = term->xorb;
        key.chunk_start = term->chunk_start;

        low = 0;
        high = plan->nranges;

        while (low < high) {
            mid = low + (high - low) / 2;

            if (xet_cli_plan_order(&plan->ranges[mid], &key) <= 0) {
                low = mid + 1;

            } else {
                high = mid;
            }
        }

        range = low ? &plan->ranges[plan->ranges[low - 1].reach] : NULL;

        if (range == NULL || !xet_hash_equal(&range->xorb, &term->xorb)
            || term->chunk_end > range->chunk_end)
        {
            return "the reconstruction has a term that no range covers";
        }

        term->range = (size_t) (range - plan->ranges);
    }

    return NULL;
}


/* Removes the ranges that no term uses. */

static const char *
xet_cli_plan_drop(xet_cli_plan_t *plan)
{
    size_t            i, n;
    xet_cli_range_t  *r = plan->ranges;

    for (i = 0; i < plan->nranges; i++) {
        r[i].reach = SIZE_MAX;
    }

    for (i = 0; i < plan->nterms; i++) {
        r[plan->terms[i].range].reach = 0;
    }

    /* compute new indexes first, because a move overwrites a range */

    n = 0;

    for (i = 0; i < plan->nranges; i++) {
        if (r[i].reach == 0) {
            r[i].reach = n++;
        }
    }

    for (i = 0; i < plan->nterms; i++) {
        plan->terms[i].range = r[plan->terms[i].range].reach;
    }

    for (i = 0; i < plan->nranges; i++) {
        if (r[i].reach != SIZE_MAX) {
            r[r[i].reach] = r[i];
        }
    }

    plan->nranges = n;

    return (n > XET_CLI_PLAN_RANGES) ? xet_cli_plan_large : NULL;
}


int
xet_cli_plan_same(const xet_cli_plan_t *a, const xet_cli_plan_t *b)
{
    size_t                  i;
    const xet_cli_term_t   *s, *t;
    const xet_cli_range_t  *p, *q;

    if (a->offset != b->offset || a->nterms != b->nterms
        || a->nranges != b->nranges)
    {
        return 0;
    }

    for (i = 0; i < a->nterms; i++) {
        s = &a->terms[i];
        t = &b->terms[i];

        if (!xet_hash_equal(&s->xorb, &t->xorb)
            || s->chunk_start != t->chunk_start
            || s->chunk_end != t->chunk_end
            || s->raw_length != t->raw_length)
        {
            return 0;
        }
    }

    for (i = 0; i < a->nranges; i++) {
        p = &a->ranges[i];
        q = &b->ranges[i];

        if (!xet_hash_equal(&p->xorb, &q->xorb)
            || p->chunk_start != q->chunk_start
            || p->chunk_end != q->chunk_end)
        {
            return 0;
        }
    }

    return 1;
}


void
xet_cli_plan_free(xet_cli_plan_t *plan)
{
    size_t  i;

    for (i = 0; i < plan->nurls; i++) {
        free(plan->urls[i]);
    }

    free(plan->urls);
    free(plan->ranges);
    free(plan->terms);

    memset(plan, 0, sizeof(xet_cli_plan_t));
}
