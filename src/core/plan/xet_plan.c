
/*
 * Collects the terms of a plan: the terms of a file that a range needs,
 * trimmed to whole chunks.
 *
 * States, in this order: adding (terms that touch the range are kept; other
 * terms only advance position), trimming (the first and the last term lose the
 * chunks outside the range; the terms between are not changed), finished (see
 * xet_plan_ranges.c).  While adding, position is where the next term starts.
 * So after the last needed term, position is the end of the plan; later terms
 * are not examined.
 *
 * A plan of several files works like one plan per file, for all bytes of the
 * file.  xet_plan_file() checks that the previous file is complete, and resets
 * the position to 0.  The terms of all files are in one array, and each file
 * records where its terms end.
 *
 * All memory comes from the allocator of the plan and is never freed here.
 * One thread at a time.
 */


#include "xet_plan.h"


#define XET_PLAN_NOWHERE    UINT64_MAX
#define XET_PLAN_TERMS_MAX  (1u << 25)     /* a sort key has 25 bits for them,
                                              see xet_plan_ranges.c */


static xet_status_t xet_plan_grow(xet_plan_t *p, const uint8_t *packed,
    size_t len);
static xet_status_t xet_plan_ends_check(const xet_term_t *term,
    const xet_plan_ends_t *ends);
static uint32_t xet_plan_chunk(const xet_plan_ends_t *ends, uint64_t offset);


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
xet_plan_init_files(xet_plan_t *p, xet_alloc_pt alloc, void *data,
    size_t max)
{
    memset(p, 0, sizeof(xet_plan_t));

    p->alloc = alloc;
    p->data = data;
    p->several = 1;

    if (max == 0) {
        return XET_OK;
    }

    if (max > UINT32_MAX / sizeof(xet_plan_file_t)) {
        return XET_NOMEM;
    }

    p->files = alloc(data, max * sizeof(xet_plan_file_t));

    if (p->files == NULL) {
        return XET_NOMEM;
    }

    p->files_max = (uint32_t) max;

    return XET_OK;
}


xet_status_t
xet_plan_file(xet_plan_t *p, const xet_hash_t *hash, uint64_t size)
{
    xet_plan_file_t  *file;

    if (p->nfiles == p->files_max) {
        return XET_INTERNAL;
    }

    if (p->position != p->want.end) {
        return XET_PLAN_DAMAGED;
    }

    file = &p->files[p->nfiles++];

    file->hash = *hash;
    file->end = p->before + p->n;

    p->want.end = size;
    p->position = 0;

    return XET_OK;
}


xet_status_t
xet_plan_add(xet_plan_t *p, const uint8_t *packed, size_t len,
    uint64_t first_offset)
{
    uint64_t      end;
    xet_term_t    term;
    xet_status_t  status;

    if (p->several ? p->nfiles == 0 : p->want.start >= p->want.end) {
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
        return (p->several && len) ? XET_PLAN_DAMAGED : XET_OK;
    }

    if (p->position != first_offset) {
        return XET_PLAN_DAMAGED;
    }

    status = xet_plan_grow(p, packed, len);

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

            if (p->before + p->n == 0) {
                p->offset = p->position;
            }

            p->terms[p->n++] = term;
        }

        p->position = end;

        packed += XET_TERM_LEN;
        len -= XET_TERM_LEN;
    }

    if (p->several) {
        p->files[p->nfiles - 1].end = p->before + p->n;

        /* the last term must end where the file ends */

        if (len || p->position > p->want.end) {
            return XET_PLAN_DAMAGED;
        }
    }

    return XET_OK;
}


xet_status_t
xet_plan_reserve(xet_plan_t *p, size_t n)
{
    xet_term_t  *terms;

    if (n <= p->room) {
        return XET_OK;
    }

    if (n > XET_PLAN_TERMS_MAX - p->before) {
        return XET_PLAN_DAMAGED;
    }

    terms = p->alloc(p->data, n * sizeof(xet_term_t));

    if (terms == NULL) {
        return XET_NOMEM;
    }

    if (p->n) {
        memcpy(terms, p->terms, p->n * sizeof(xet_term_t));
    }

    p->terms = terms;
    p->room = (uint32_t) n;

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


xet_term_t *
xet_plan_edge(const xet_plan_t *p, unsigned which)
{
    if (which == XET_PLAN_LAST) {
        return &p->terms[p->n - 1];
    }

    return p->before ? &p->spool->head : &p->terms[0];
}


xet_status_t
xet_plan_trim(xet_plan_t *p, unsigned which, const xet_plan_ends_t *ends)
{
    uint32_t      first, end, cut, raw;
    uint64_t      start;
    xet_term_t   *term;
    xet_status_t  status;

    if (p->n == 0
        || p->several
        || which < XET_PLAN_FIRST
        || which > (XET_PLAN_FIRST | XET_PLAN_LAST)
        || (which == (XET_PLAN_FIRST | XET_PLAN_LAST)
            && p->before + p->n > 1))
    {
        return XET_INTERNAL;
    }

    term = xet_plan_edge(p, which);

    status = xet_plan_ends_check(term, ends);

    if (status != XET_OK) {
        return status;
    }

    start = (which == XET_PLAN_LAST) ? p->position - term->raw_length
                                     : p->offset;

    /* keep the chunks [first, end), counted from the start of the term */

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


/* Makes room for the packed terms that touch the range. */

static xet_status_t
xet_plan_grow(xet_plan_t *p, const uint8_t *packed, size_t len)
{
    size_t    i, n;
    uint64_t  position;

    position = p->position;
    n = 0;

    for (i = 0; i < len && position < p->want.end; i += XET_TERM_LEN) {
        position += xet_get_u32(packed + i + XET_TERM_RAW);
        n += position > p->want.start;
    }

    n += p->n;

    if (n <= p->room) {
        return XET_OK;
    }

    if (n < (size_t) p->room * 2 && p->room <= XET_PLAN_TERMS_MAX / 2) {
        n = (size_t) p->room * 2;
    }

    return xet_plan_reserve(p, n);
}


static xet_status_t
xet_plan_ends_check(const xet_term_t *term, const xet_plan_ends_t *ends)
{
    if (ends->copy_id != term->copy_id) {
        return XET_PLAN_CHANGED;
    }

    if (ends->n != term->chunk_end - term->chunk_start
        || ends->stored_before != term->stored_start)
    {
        return XET_PLAN_DAMAGED;
    }

    if (!xet_term_ends_ok(term->chunk_start, ends->n, ends->raw_before,
                          ends->stored_before, ends->raw_ends,
                          ends->stored_ends)
        || xet_get_u32(ends->raw_ends + (ends->n - 1) * 4) - ends->raw_before
           != term->raw_length
        || xet_get_u32(ends->stored_ends + (ends->n - 1) * 4)
           != term->stored_end)
    {
        return XET_PLAN_DAMAGED;
    }

    return XET_OK;
}


/*
 * Returns the chunk that contains the byte at offset in the term, or the last
 * chunk if there is none.
 */

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
