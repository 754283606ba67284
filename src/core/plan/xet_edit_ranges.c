
/*
 * Computes the windows of an edit from the terms of a file and its dirty
 * ranges.
 *
 * Purpose:    computes which bytes a client must chunk again: the windows, the
 *             subtrees of the gaps, and the verification hashes of the terms
 *             in the gaps.
 * States:     in a gap or in a window; the state can change only between
 *             terms.  In a window, consecutive clean chunks of a stable size
 *             (xet_suite_t) are counted up to two; then the window may end
 *             with the term.  A dirty chunk resets the count.  A clean chunk
 *             of another size resets a count below two.
 * Ownership:  all memory comes from the allocator; the arrays of a term are
 *             only read during the call.
 * Threads:    one at a time.
 *
 * The terms are read in one pass, and only the result is kept: at most a
 * window and a gap per range, a hash per clean term, and the nodes of the gaps
 * (see xet_hash.h on their number).  A gap is the end of the file exactly when
 * no dirty range follows, which is known when the gap begins.
 */


#include <stdlib.h>

#include "xet_plan.h"


#define XET_EDIT_RANGES_STABLE  2
#define XET_EDIT_RANGES_ROOM    64


static int xet_edit_ranges_cmp(const void *one, const void *two);
static xet_status_t xet_edit_ranges_check(const xet_edit_ranges_t *w,
    const xet_edit_ranges_term_t *term);
static int xet_edit_ranges_is_dirty(xet_edit_ranges_t *w, uint64_t start,
    uint64_t end);
static xet_status_t xet_edit_ranges_open(xet_edit_ranges_t *w);
static void xet_edit_ranges_close(xet_edit_ranges_t *w);
static void xet_edit_ranges_follow(xet_edit_ranges_t *w,
    const xet_edit_ranges_term_t *term);
static xet_status_t xet_edit_ranges_pass(xet_edit_ranges_t *w,
    const xet_edit_ranges_term_t *term);


xet_status_t
xet_edit_ranges_ranges(const xet_range_spec_t *specs, xet_range_t *ranges,
    size_t *n, uint64_t size)
{
    size_t        i, k;
    xet_status_t  status;

    k = *n;
    status = xet_range_select(specs, ranges, &k, size);

    if (status != XET_OK) {
        return status;
    }

    qsort(ranges, k, sizeof(xet_range_t), xet_edit_ranges_cmp);

    *n = 1;

    for (i = 1; i < k; i++) {

        if (ranges[i].start > ranges[*n - 1].end) {
            ranges[(*n)++] = ranges[i];

        } else if (ranges[i].end > ranges[*n - 1].end) {
            ranges[*n - 1].end = ranges[i].end;
        }
    }

    return XET_OK;
}


static int
xet_edit_ranges_cmp(const void *one, const void *two)
{
    const xet_range_t  *a, *b;

    a = one;
    b = two;

    return (a->start > b->start) - (a->start < b->start);
}


xet_status_t
xet_edit_ranges_init(xet_edit_ranges_t *w, const xet_suite_t *suite,
    xet_alloc_pt alloc, void *data, const xet_range_t *ranges, size_t n,
    uint64_t size, size_t max)
{
    size_t    i;
    uint64_t  end;

    memset(w, 0, sizeof(xet_edit_ranges_t));

    if (n == 0 || n >= SIZE_MAX / sizeof(xet_subtree_t)) {
        return XET_INTERNAL;
    }

    end = 0;

    for (i = 0; i < n; i++) {

        if ((i && ranges[i].start <= end) || ranges[i].end <= ranges[i].start
            || ranges[i].end > size)
        {
            return XET_INTERNAL;
        }

        end = ranges[i].end;
    }

    w->alloc = alloc;
    w->data = data;
    w->size = size;
    w->dirty = ranges;
    w->dirty_end = ranges + n;

    w->edits = alloc(data, n * sizeof(xet_range_t));
    w->gaps = alloc(data, (n + 1) * sizeof(xet_subtree_t));

    if (w->edits == NULL || w->gaps == NULL) {
        return XET_NOMEM;
    }

    xet_subtree_init(&w->gap, suite, alloc, data, max);
    xet_subtree_start(&w->gap, 1, 0);

    return XET_OK;
}


xet_status_t
xet_edit_ranges_add(xet_edit_ranges_t *w, const xet_edit_ranges_term_t *term)
{
    int           dirty;
    xet_status_t  status;

    status = xet_edit_ranges_check(w, term);

    if (status != XET_OK) {
        return status;
    }

    dirty = xet_edit_ranges_is_dirty(w, w->position,
                                     w->position + term->raw_length);

    if (w->open && w->stable == XET_EDIT_RANGES_STABLE && !dirty) {
        xet_edit_ranges_close(w);
    }

    if (!w->open && dirty) {
        status = xet_edit_ranges_open(w);

        if (status != XET_OK) {
            return status;
        }
    }

    if (w->open) {
        xet_edit_ranges_follow(w, term);

    } else {
        status = xet_edit_ranges_pass(w, term);
    }

    w->position += term->raw_length;
    w->chunks += term->n;

    return status;
}


xet_status_t
xet_edit_ranges_finish(xet_edit_ranges_t *w)
{
    if (w->position != w->size) {
        return XET_PLAN_DAMAGED;
    }

    if (w->open) {
        xet_edit_ranges_close(w);
    }

    return xet_subtree_finish(&w->gap, &w->gaps[w->n]);
}


xet_status_t
xet_edit_ranges_json(const xet_edit_ranges_t *w, xet_buf_t *b)
{
    size_t      i;
    uint8_t     text[XET_HASH_STR_LEN];
    xet_json_t  j;

    xet_json_init(&j, b);

    xet_json_object_begin(&j);

    xet_json_put_u64(&j, "totalChunks", w->chunks);
    xet_json_put_u64(&j, "fileSize", w->size);

    xet_json_key(&j, "windows");
    xet_json_array_begin(&j);

    for (i = 0; i < w->n; i++) {
        xet_json_object_begin(&j);

        xet_json_key(&j, "dirtyByteRange");
        xet_json_array_begin(&j);
        xet_json_u64(&j, w->edits[i].start);
        xet_json_u64(&j, w->edits[i].end);
        xet_json_array_end(&j);

        xet_json_object_end(&j);
    }

    xet_json_array_end(&j);

    xet_json_key(&j, "hashRanges");
    xet_json_array_begin(&j);

    for (i = 0; i <= w->n; i++) {

        if (w->gaps[i].n) {
            xet_subtree_json(&j, &w->gaps[i]);

        } else {
            xet_json_null(&j);
        }
    }

    xet_json_array_end(&j);

    xet_json_key(&j, "gapVerification");
    xet_json_array_begin(&j);

    for (i = 0; i < w->nverifications; i++) {
        xet_hash_print(text, &w->verifications[i]);
        xet_json_string(&j, text, XET_HASH_STR_LEN);
    }

    xet_json_array_end(&j);

    xet_json_object_end(&j);

    return xet_buf_status(b);
}


static xet_status_t
xet_edit_ranges_check(const xet_edit_ranges_t *w, const xet_edit_ranges_term_t
    *term)
{
    uint32_t            i, end, before;
    const xet_suite_t  *suite;

    suite = w->gap.suite;

    if (term->n == 0 || term->n > suite->xorb_chunks_max
        || term->raw_length > w->size - w->position)
    {
        return XET_PLAN_DAMAGED;
    }

    before = term->raw_before;

    for (i = 0; i < term->n; i++) {
        end = xet_get_u32(term->raw_ends + 4 * i);

        if (end <= before || end - before > suite->chunk_max) {
            return XET_PLAN_DAMAGED;
        }

        before = end;
    }

    if (before - term->raw_before != term->raw_length) {
        return XET_PLAN_DAMAGED;
    }

    return XET_OK;
}


/*
 * Returns whether a byte of [start, end) is dirty; start must not decrease
 * from one call to the next.
 */

static int
xet_edit_ranges_is_dirty(xet_edit_ranges_t *w, uint64_t start, uint64_t end)
{
    while (w->dirty < w->dirty_end && w->dirty->end <= start) {
        w->dirty++;
    }

    return w->dirty < w->dirty_end && w->dirty->start < end;
}


static xet_status_t
xet_edit_ranges_open(xet_edit_ranges_t *w)
{
    xet_status_t  status;

    status = xet_subtree_finish(&w->gap, &w->gaps[w->n]);

    if (status != XET_OK) {
        return status;
    }

    w->edits[w->n].start = w->position;
    w->n++;

    w->open = 1;

    return XET_OK;
}


static void
xet_edit_ranges_close(xet_edit_ranges_t *w)
{
    w->edits[w->n - 1].end = w->position;

    w->open = 0;
    w->stable = 0;

    /* without a further dirty range, the gap reaches the end of the file */

    xet_subtree_start(&w->gap, 0,
                      !xet_edit_ranges_is_dirty(w, w->position, w->size));
}


/* Counts the stable chunks of a term; after two, the window may end. */

static void
xet_edit_ranges_follow(xet_edit_ranges_t *w, const xet_edit_ranges_term_t *term)
{
    uint32_t            i, end, before, size;
    uint64_t            start;
    const xet_suite_t  *suite;

    suite = w->gap.suite;
    start = w->position;
    before = term->raw_before;

    for (i = 0; i < term->n; i++) {
        end = xet_get_u32(term->raw_ends + 4 * i);
        size = end - before;

        if (xet_edit_ranges_is_dirty(w, start, start + size)) {
            w->stable = 0;

        } else if (w->stable < XET_EDIT_RANGES_STABLE) {

            if (size >= suite->chunk_stable_min
                && size < suite->chunk_stable_max)
            {
                w->stable++;

            } else {
                w->stable = 0;
            }
        }

        start += size;
        before = end;
    }
}


/* Adds a term to a gap: its verification hash and its leaves. */

static xet_status_t
xet_edit_ranges_pass(xet_edit_ranges_t *w, const xet_edit_ranges_term_t *term)
{
    uint32_t       i, end, before;
    xet_hash_t    *hashes;
    xet_status_t   status;

    if (w->nverifications == w->room) {

        hashes = xet_alloc_double(w->alloc, w->data, w->verifications,
                                  &w->room, XET_EDIT_RANGES_ROOM,
                                  sizeof(xet_hash_t));

        if (hashes == NULL) {
            return XET_NOMEM;
        }

        w->verifications = hashes;
    }

    hashes = &w->verifications[w->nverifications++];

    if (term->verification) {
        *hashes = *term->verification;

    } else {
        xet_hash_verification(w->gap.suite, term->hashes, term->n, hashes);
    }

    before = term->raw_before;

    for (i = 0; i < term->n; i++) {
        end = xet_get_u32(term->raw_ends + 4 * i);

        status = xet_subtree_add(&w->gap, term->hashes + XET_HASH_LEN * i,
                                 end - before);

        if (status != XET_OK) {
            return status;
        }

        before = end;
    }

    return XET_OK;
}
