
/*
 * From the terms of a file to what a client has to fetch for a byte range.
 *
 * States, in this order: adding (the terms that touch the range are kept, the
 * others only counted), trimming (the first and the last term lose the chunks
 * that lie outside; a term in the middle never does), finished.  While adding,
 * position is where the next term starts, so after the last one that matters
 * it is the end of the plan; what comes behind is not looked at.
 *
 * Finishing sorts the terms by xorb and chunk and merges ranges that touch or
 * overlap, so that every term lies inside one range and no two ranges of a
 * xorb begin at the same chunk; clients rely on both.  The order of xorbs is
 * that of their first use and the sort is stable, so equal requests give equal
 * plans.  Terms of one xorb that contradict each other are refused: the bytes
 * of one of them would be wrong.
 *
 * All memory comes from the allocator of the plan and is never freed here.
 * One thread at a time.
 */


#include "xet_plan.h"


#define XET_PLAN_NOWHERE    UINT64_MAX
#define XET_PLAN_TERMS_MAX  (1u << 26)


/*
 * What a term is sorted by.  A word of the hash stands for the xorb, which
 * keeps the sort inside one array; where two xorbs share it, the whole hashes
 * are compared (see xet_plan_sort()).
 */

typedef struct {
    uint64_t  xorb;
    uint32_t  chunk;
    uint32_t  term;                    /* number in the plan */
} xet_plan_key_t;


static xet_status_t xet_plan_reserve(xet_plan_t *p, const uint8_t *packed,
    size_t len);
static xet_status_t xet_plan_ends_check(const xet_term_t *term,
    const xet_plan_ends_t *ends);
static uint32_t xet_plan_chunk(const xet_plan_ends_t *ends, uint64_t offset);
static xet_status_t xet_plan_cover_check(const xet_plan_t *p);
static const xet_plan_key_t *xet_plan_sort(const xet_plan_t *p,
    xet_plan_key_t *keys, xet_plan_key_t *room);
static xet_plan_key_t *xet_plan_merge_sort(const xet_plan_t *p,
    xet_plan_key_t *keys, xet_plan_key_t *room, int whole);
static int xet_plan_after(const xet_plan_t *p, const xet_plan_key_t *a,
    const xet_plan_key_t *b, int whole);
static uint32_t xet_plan_group(const xet_plan_t *p,
    const xet_plan_key_t *keys, uint32_t *groups);
static xet_status_t xet_plan_merge(const xet_plan_t *p,
    xet_plan_fetch_t *fetch, const xet_plan_key_t *keys, uint32_t begin);
static int xet_plan_relation(uint32_t chunk, uint32_t stored,
    uint32_t other_chunk, uint32_t other_stored);


void
xet_plan_init(xet_plan_t *p, xet_alloc_pt alloc, void *data,
    const xet_range_t *want)
{
    memset(p, 0, sizeof(xet_plan_t));

    p->alloc = alloc;
    p->data = data;
    p->want = *want;
    p->position = XET_PLAN_NOWHERE;
}


xet_status_t
xet_plan_add(xet_plan_t *p, const uint8_t *packed, size_t len,
    uint64_t first_offset)
{
    uint64_t      end;
    xet_term_t    term;
    xet_status_t  status;

    if (p->want.start >= p->want.end) {
        return XET_INTERNAL;
    }

    if (len % XET_TERM_LEN) {
        return XET_PLAN_DAMAGED;
    }

    if (p->position == XET_PLAN_NOWHERE) {

        if (first_offset > p->want.start) {
            return XET_PLAN_DAMAGED;
        }

        p->position = first_offset;
    }

    if (p->position >= p->want.end) {
        return XET_OK;
    }

    if (p->position != first_offset) {
        return XET_PLAN_DAMAGED;
    }

    status = xet_plan_reserve(p, packed, len);

    if (status != XET_OK) {
        return status;
    }

    while (len && p->position < p->want.end) {

        status = xet_term_unpack(&term, packed);

        if (status != XET_OK) {
            return status;
        }

        if (p->position > (uint64_t) INT64_MAX - term.raw_length) {
            return XET_PLAN_DAMAGED;
        }

        end = p->position + term.raw_length;

        if (end > p->want.start) {

            if (p->n == 0) {
                p->offset = p->position;
            }

            p->terms[p->n++] = term;
        }

        p->position = end;

        packed += XET_TERM_LEN;
        len -= XET_TERM_LEN;
    }

    return XET_OK;
}


unsigned
xet_plan_edges(const xet_plan_t *p)
{
    unsigned  which;

    if (p->n == 0) {
        return 0;
    }

    which = 0;

    if (p->offset < p->want.start) {
        which |= XET_PLAN_FIRST;
    }

    if (p->position > p->want.end) {
        which |= XET_PLAN_LAST;
    }

    return which;
}


xet_status_t
xet_plan_trim(xet_plan_t *p, unsigned which, const xet_plan_ends_t *ends)
{
    uint32_t      first, end, cut, raw;
    uint64_t      start;
    xet_term_t   *term;
    xet_status_t  status;

    if (p->n == 0
        || which < XET_PLAN_FIRST
        || which > (XET_PLAN_FIRST | XET_PLAN_LAST)
        || (which == (XET_PLAN_FIRST | XET_PLAN_LAST) && p->n > 1))
    {
        return XET_INTERNAL;
    }

    term = (which == XET_PLAN_LAST) ? &p->terms[p->n - 1] : &p->terms[0];

    status = xet_plan_ends_check(term, ends);

    if (status != XET_OK) {
        return status;
    }

    start = (which == XET_PLAN_LAST) ? p->position - term->raw_length
                                     : p->offset;

    /* the chunks [first, end) stay, counted from the start of the term */

    first = 0;
    end = ends->n;
    cut = 0;
    raw = term->raw_length;

    if ((which & XET_PLAN_FIRST) && p->want.start > start) {
        first = xet_plan_chunk(ends, p->want.start - start);
    }

    if ((which & XET_PLAN_LAST) && p->want.end > start) {
        end = xet_plan_chunk(ends, p->want.end - start - 1) + 1;
        raw = xet_get_u32(ends->raw_ends + (end - 1) * 4) - ends->raw_before;
    }

    if (first) {
        cut = xet_get_u32(ends->raw_ends + (first - 1) * 4)
              - ends->raw_before;
        term->stored_start = xet_get_u32(ends->stored_ends + (first - 1) * 4);
    }

    p->offset += cut;
    p->position -= term->raw_length - raw;

    term->chunk_end = term->chunk_start + end;
    term->chunk_start += first;
    term->stored_end = xet_get_u32(ends->stored_ends + (end - 1) * 4);
    term->raw_length = raw - cut;

    return XET_OK;
}


xet_status_t
xet_plan_finish(xet_plan_t *p)
{
    uint32_t               i, n, *groups;
    xet_status_t           status;
    xet_plan_key_t        *room;
    xet_plan_fetch_t      *fetch;
    xet_plan_range_t      *ranges;
    const xet_plan_key_t  *keys;

    status = xet_plan_cover_check(p);

    if (status != XET_OK || p->n == 0) {
        return status;
    }

    p->skip = p->want.start - p->offset;

    room = p->alloc(p->data, p->n * 2 * sizeof(xet_plan_key_t));
    groups = p->alloc(p->data, p->n * sizeof(uint32_t));
    ranges = p->alloc(p->data, p->n * sizeof(xet_plan_range_t));

    if (room == NULL || groups == NULL || ranges == NULL) {
        return XET_NOMEM;
    }

    keys = xet_plan_sort(p, room, room + p->n);

    n = xet_plan_group(p, keys, groups);

    fetch = p->alloc(p->data, n * sizeof(xet_plan_fetch_t));

    if (fetch == NULL) {
        return XET_NOMEM;
    }

    p->fetches = fetch;
    p->nfetches = 0;

    for (i = 0; i < p->n; i++) {

        if (groups[i] == 0) {
            continue;
        }

        fetch->xorb = p->terms[i].xorb;
        fetch->ranges = ranges;

        status = xet_plan_merge(p, fetch, keys, groups[i] - 1);

        if (status != XET_OK) {
            return status;
        }

        ranges += fetch->n;
        fetch++;
    }

    p->nfetches = n;

    return XET_OK;
}


/* Room for those of the packed terms that touch the range. */

static xet_status_t
xet_plan_reserve(xet_plan_t *p, const uint8_t *packed, size_t len)
{
    size_t       i, n, room;
    uint64_t     position;
    xet_term_t  *terms;

    position = p->position;
    n = 0;

    for (i = 0; i < len && position < p->want.end; i += XET_TERM_LEN) {
        position += xet_get_u32(packed + i + XET_TERM_LEN - 4);
        n += position > p->want.start;
    }

    n += p->n;

    if (n <= p->room) {
        return XET_OK;
    }

    if (n > XET_PLAN_TERMS_MAX) {
        return XET_PLAN_DAMAGED;
    }

    room = (n < (size_t) p->room * 2) ? (size_t) p->room * 2 : n;

    terms = p->alloc(p->data, room * sizeof(xet_term_t));

    if (terms == NULL) {
        return XET_NOMEM;
    }

    if (p->n) {
        memcpy(terms, p->terms, p->n * sizeof(xet_term_t));
    }

    p->terms = terms;
    p->room = (uint32_t) room;

    return XET_OK;
}


static xet_status_t
xet_plan_ends_check(const xet_term_t *term, const xet_plan_ends_t *ends)
{
    uint32_t  i, raw, raw_end, stored, stored_end;

    if (ends->n != term->chunk_end - term->chunk_start
        || ends->stored_before != term->stored_start)
    {
        return XET_PLAN_DAMAGED;
    }

    if (term->chunk_start == 0
        && (ends->raw_before != 0 || ends->stored_before != 0))
    {
        return XET_PLAN_DAMAGED;
    }

    raw = ends->raw_before;
    stored = ends->stored_before;

    for (i = 0; i < ends->n; i++) {
        raw_end = xet_get_u32(ends->raw_ends + i * 4);
        stored_end = xet_get_u32(ends->stored_ends + i * 4);

        if (raw_end <= raw
            || raw_end - raw > XET_CHUNK_MAX
            || stored_end <= stored)
        {
            return XET_PLAN_DAMAGED;
        }

        raw = raw_end;
        stored = stored_end;
    }

    if (raw - ends->raw_before != term->raw_length
        || stored != term->stored_end)
    {
        return XET_PLAN_DAMAGED;
    }

    return XET_OK;
}


/* The chunk that holds the byte at offset of the term, or the last one. */

static uint32_t
xet_plan_chunk(const xet_plan_ends_t *ends, uint64_t offset)
{
    uint32_t  low, high, middle;

    low = 0;
    high = ends->n - 1;

    while (low < high) {
        middle = low + (high - low) / 2;

        if (xet_get_u32(ends->raw_ends + middle * 4) - ends->raw_before
            > offset)
        {
            high = middle;

        } else {
            low = middle + 1;
        }
    }

    return low;
}


/* Whether the terms kept begin at or before the range and reach its end. */

static xet_status_t
xet_plan_cover_check(const xet_plan_t *p)
{
    if (p->n == 0) {

        /* the empty range of an empty file */

        return (p->want.start == p->want.end) ? XET_OK : XET_PLAN_DAMAGED;
    }

    if (p->offset > p->want.start
        || p->want.start - p->offset >= p->terms[0].raw_length
        || p->position < p->want.end)
    {
        return XET_PLAN_DAMAGED;
    }

    return XET_OK;
}


/* The keys of all terms in order; keys and room hold one a term. */

static const xet_plan_key_t *
xet_plan_sort(const xet_plan_t *p, xet_plan_key_t *keys,
    xet_plan_key_t *room)
{
    uint32_t         i;
    xet_plan_key_t  *sorted;

    for (i = 0; i < p->n; i++) {
        keys[i].xorb = xet_get_u64(p->terms[i].xorb.bytes);
        keys[i].chunk = p->terms[i].chunk_start;
        keys[i].term = i;
    }

    sorted = xet_plan_merge_sort(p, keys, room, 0);

    for (i = 1; i < p->n; i++) {

        if (sorted[i].xorb == sorted[i - 1].xorb
            && !xet_hash_equal(&p->terms[sorted[i].term].xorb,
                               &p->terms[sorted[i - 1].term].xorb))
        {
            /* two xorbs that share a word, which takes some making */

            return xet_plan_merge_sort(p, sorted,
                                       sorted == keys ? room : keys, 1);
        }
    }

    return sorted;
}


/* Bottom up and stable; the one of the two arrays that holds the result. */

static xet_plan_key_t *
xet_plan_merge_sort(const xet_plan_t *p, xet_plan_key_t *keys,
    xet_plan_key_t *room, int whole)
{
    uint32_t         width, begin, a, b, a_end, b_end, k;
    xet_plan_key_t  *swap;

    for (width = 1; width < p->n; width *= 2) {

        for (begin = 0; begin < p->n; begin = b_end) {
            a = begin;
            a_end = (p->n - begin < width) ? p->n : begin + width;
            b = a_end;
            b_end = (p->n - b < width) ? p->n : b + width;

            for (k = begin; k < b_end; k++) {

                if (a == a_end
                    || (b < b_end
                        && xet_plan_after(p, &keys[a], &keys[b], whole)))
                {
                    room[k] = keys[b++];

                } else {
                    room[k] = keys[a++];
                }
            }
        }

        swap = keys;
        keys = room;
        room = swap;
    }

    return keys;
}


/* Whether a comes after b; whole: the keys' hashes in full. */

static int
xet_plan_after(const xet_plan_t *p, const xet_plan_key_t *a,
    const xet_plan_key_t *b, int whole)
{
    int  rc;

    if (a->xorb != b->xorb) {
        return a->xorb > b->xorb;
    }

    if (whole) {
        rc = memcmp(p->terms[a->term].xorb.bytes,
                    p->terms[b->term].xorb.bytes, XET_HASH_LEN);

        if (rc != 0) {
            return rc > 0;
        }
    }

    return a->chunk > b->chunk;
}


/*
 * One entry a term: for the first term of a xorb in the order of the file, 1
 * + where the keys of the xorb begin, else 0.  The number of xorbs.
 */

static uint32_t
xet_plan_group(const xet_plan_t *p, const xet_plan_key_t *keys,
    uint32_t *groups)
{
    uint32_t  i, begin, first, n;

    memset(groups, 0, p->n * sizeof(uint32_t));

    n = 0;

    for (i = 0; i < p->n; /* void */ ) {
        begin = i;
        first = keys[i].term;

        for (i++; i < p->n; i++) {

            if (!xet_hash_equal(&p->terms[keys[i].term].xorb,
                                &p->terms[keys[begin].term].xorb))
            {
                break;
            }

            if (keys[i].term < first) {
                first = keys[i].term;
            }
        }

        groups[first] = begin + 1;
        n++;
    }

    return n;
}


/* The ranges of fetch->xorb, whose keys begin at begin. */

static xet_status_t
xet_plan_merge(const xet_plan_t *p, xet_plan_fetch_t *fetch,
    const xet_plan_key_t *keys, uint32_t begin)
{
    uint32_t           i;
    xet_plan_range_t  *r;
    const xet_term_t  *t, *prev;

    r = NULL;
    prev = NULL;
    fetch->n = 0;

    for (i = begin; i < p->n; i++, prev = t) {
        t = &p->terms[keys[i].term];

        if (!xet_hash_equal(&t->xorb, &fetch->xorb)) {
            break;
        }

        if (r != NULL
            && (!xet_plan_relation(t->chunk_start, t->stored_start,
                                   prev->chunk_start, prev->stored_start)
                || !xet_plan_relation(t->chunk_start, t->stored_start,
                                      r->chunk_end, r->stored_end)
                || !xet_plan_relation(t->chunk_end, t->stored_end,
                                      prev->chunk_end, prev->stored_end)
                || !xet_plan_relation(t->chunk_end, t->stored_end,
                                      r->chunk_end, r->stored_end)))
        {
            return XET_PLAN_DAMAGED;
        }

        if (r == NULL || t->chunk_start > r->chunk_end) {
            r = &fetch->ranges[fetch->n++];

            r->chunk_start = t->chunk_start;
            r->chunk_end = t->chunk_end;
            r->stored_start = t->stored_start;
            r->stored_end = t->stored_end;

            continue;
        }

        if (t->chunk_end > r->chunk_end) {
            r->chunk_end = t->chunk_end;
            r->stored_end = t->stored_end;
        }
    }

    return XET_OK;
}


/*
 * Two chunk edges of a xorb and where they are stored: equal edges lie at
 * equal bytes, and n chunks need n bytes at least.
 */

static int
xet_plan_relation(uint32_t chunk, uint32_t stored, uint32_t other_chunk,
    uint32_t other_stored)
{
    if (chunk < other_chunk) {
        return stored < other_stored
               && other_stored - stored >= other_chunk - chunk;
    }

    if (chunk > other_chunk) {
        return stored > other_stored
               && stored - other_stored >= chunk - other_chunk;
    }

    return stored == other_stored;
}
