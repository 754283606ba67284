
/*
 * Computes the ranges of xorbs that hold the terms of a plan.
 *
 * The terms are sorted by the first use of their xorbs and by their chunks.
 * Then terms that touch or overlap are merged.  So every term lies inside one
 * range, and no two ranges of a xorb begin at the same chunk, as clients
 * require.  The order depends only on the terms, so equal requests give equal
 * plans.  Terms of a xorb that contradict each other are an error, because the
 * bytes of one term would be wrong.
 *
 * The plan owns the array of keys and ranges; its memory comes from the
 * allocator of the plan.  One thread at a time.
 */


#include "xet_plan.h"


/*
 * One array with 64 bits per term is enough.  First it holds keys: the lowest
 * bits are the number of the term, and the other bits determine the order.
 * No two keys are equal, so the sort can be in place.  Then the array holds
 * ranges, each as the two terms where it begins and ends; a range overwrites
 * keys that have been read.  The fields and their widths in bits, for the first
 * sort (by xorb), for the second sort (by first use), and for a range:
 *
 *     by xorb    | 4 bytes of its hash 32    | term 25 |
 *     by use     | first term of the xorb 25 | chunk 13 | term 25 |
 *     a range    | new xorb 1 | first term 31     | last term 32 |
 */

#define XET_PLAN_TERM_BITS   25
#define XET_PLAN_CHUNK_BITS  13

#define XET_PLAN_TERM_MASK   (((uint64_t) 1 << XET_PLAN_TERM_BITS) - 1)
#define XET_PLAN_NEW_XORB    ((uint64_t) 1 << 63)

#define XET_PLAN_SHIFT_MAX   56
#define XET_PLAN_SORT_SHORT  64

#define xet_plan_key_term(p, key)                                             \
    (&(p)->terms[(key) & XET_PLAN_TERM_MASK])

#define xet_plan_range_first(p, i)                                            \
    (&(p)->terms[(p)->ranges[i] >> 32 & XET_PLAN_TERM_MASK])
#define xet_plan_range_last(p, i)                                             \
    (&(p)->terms[(uint32_t) (p)->ranges[i]])


static const xet_term_t *xet_plan_record(const xet_plan_t *p, uint32_t i);
static void xet_plan_by_xorb(const xet_plan_t *p, uint64_t *keys, uint32_t n,
    size_t at);
static void xet_plan_by_use(xet_plan_t *p, uint64_t *keys);
static void xet_plan_sort(uint64_t *keys, uint32_t n, unsigned shift);
static void xet_plan_sort_short(uint64_t *keys, uint32_t n);
static xet_status_t xet_plan_merge(xet_plan_t *p, uint64_t *keys);
static int xet_plan_relation(uint32_t chunk, uint32_t stored,
    uint32_t other_chunk, uint32_t other_stored);
static uint32_t xet_plan_gap(const xet_plan_t *p, uint32_t i);
static uint32_t xet_plan_wider(const xet_plan_t *p, uint32_t i, uint32_t end,
    uint32_t gap);


xet_status_t
xet_plan_finish(xet_plan_t *p)
{
    uint32_t       i;
    uint64_t      *keys;
    xet_status_t   status;

    status = xet_plan_cover(p);

    if (status != XET_OK || p->n == 0) {
        return status;
    }

    keys = p->alloc(p->data, p->n * sizeof(uint64_t));

    if (keys == NULL) {
        return XET_NOMEM;
    }

    for (i = 0; i < p->n; i++) {
        keys[i] = i;
    }

    xet_plan_by_xorb(p, keys, p->n, 0);
    xet_plan_by_use(p, keys);

    return xet_plan_merge(p, keys);
}


const xet_term_t *
xet_plan_term_at(const xet_plan_t *p, uint32_t i)
{
    return p->spool ? xet_plan_record(p, i) : &p->terms[i];
}


const xet_hash_t *
xet_plan_range(const xet_plan_t *p, uint32_t i, xet_plan_range_t *range)
{
    const xet_term_t  *first, *last;

    if (p->spool) {
        first = xet_plan_record(p, p->n + i);
        last = first;

        p->spool->xorb = first->xorb;

    } else {
        first = xet_plan_range_first(p, i);
        last = xet_plan_range_last(p, i);
    }

    range->chunk_start = first->chunk_start;
    range->chunk_end = last->chunk_end;
    range->stored_start = first->stored_start;
    range->stored_end = last->stored_end;
    range->copy_id = first->copy_id;

    return p->spool ? &p->spool->xorb : &first->xorb;
}


int
xet_plan_xorb_begins(const xet_plan_t *p, uint32_t i)
{
    if (i == p->nranges) {
        return 1;
    }

    return p->spool ? xet_plan_record(p, p->n + i)->raw_length
                    : (p->ranges[i] & XET_PLAN_NEW_XORB) != 0;
}


xet_status_t
xet_plan_limit(xet_plan_t *p, uint32_t max)
{
    uint32_t  i, k, end, gap, low, high, keep, same;

    if (max == 0 || p->spool) {
        return XET_INTERNAL;
    }

    k = 0;

    for (i = 0; i < p->nranges; i = end) {

        for (end = i + 1; !xet_plan_xorb_begins(p, end); end++) {
            /* void */
        }

        /*
         * max ranges have max - 1 gaps between them, so keep the widest gaps
         * and merge the ranges at all other gaps.  The search sets low to the
         * smallest width for which fewer than max gaps are wider.  Gaps of
         * exactly this width are kept, in order, while max allows it.
         */

        low = 0;
        high = (end - i > max) ? UINT32_MAX : 0;

        while (low < high) {
            gap = low + (high - low) / 2;

            if (xet_plan_wider(p, i, end, gap) < max) {
                high = gap;

            } else {
                low = gap + 1;
            }
        }

        keep = low;
        same = max - 1 - (low ? xet_plan_wider(p, i, end, low) : 0);

        p->ranges[k++] = p->ranges[i];

        for (i++; i < end; i++) {
            gap = xet_plan_gap(p, i);

            if (gap > keep || (gap == keep && same)) {
                same -= gap == keep;
                p->ranges[k++] = p->ranges[i];

            } else {
                p->ranges[k - 1] &= ~(uint64_t) UINT32_MAX;
                p->ranges[k - 1] |= (uint32_t) p->ranges[i];
            }
        }
    }

    p->nranges = k;

    return XET_OK;
}


/*
 * Checks that the terms kept begin at or before the range and reach its end.
 */

xet_status_t
xet_plan_cover(xet_plan_t *p)
{
    if (p->several) {
        return (p->position == p->want.end) ? XET_OK : XET_PLAN_DAMAGED;
    }

    if (p->before + p->n == 0) {

        /* the empty range of an empty file */

        return (p->want.start == p->want.end) ? XET_OK : XET_PLAN_DAMAGED;
    }

    if (p->offset > p->want.start
        || p->want.start - p->offset
           >= xet_plan_edge(p, XET_PLAN_FIRST)->raw_length
        || p->position < p->want.end)
    {
        return XET_PLAN_DAMAGED;
    }

    p->skip = p->want.start - p->offset;

    return XET_OK;
}


/*
 * Returns record i of a plan in a file; all zeros if the file can't be read.
 */

static const xet_term_t *
xet_plan_record(const xet_plan_t *p, uint32_t i)
{
    uint32_t             n;
    xet_status_t         status;
    xet_plan_records_t  *r;

    static const xet_term_t  none;

    r = p->spool;

    if (i - r->from < r->have) {
        return &r->buffer[i - r->from];
    }

    n = p->n + p->nranges - i;

    if (n > r->size) {
        n = r->size;
    }

    r->from = i;
    r->have = 0;

    status = r->io->read(r->ctx, XET_PLAN_SPOOL_PLAN, r->buffer,
                         n * sizeof(xet_term_t),
                         (uint64_t) i * sizeof(xet_term_t));

    if (status != XET_OK) {
        r->status = status;
        return &none;
    }

    r->have = n;

    if (i == 0) {
        r->buffer[0] = r->head;
    }

    return &r->buffer[0];
}


/*
 * Sorts keys so that the terms of a xorb are together, in the order of the
 * file.  The sort key is the 4 bytes at offset "at" of the hash; all bytes
 * before them are equal.  Xorbs with the same 4 bytes are sorted by the next 4
 * bytes.
 */

static void
xet_plan_by_xorb(const xet_plan_t *p, uint64_t *keys, uint32_t n, size_t at)
{
    int                one;
    uint32_t           i, begin;
    const xet_hash_t  *xorb;

    for (i = 0; i < n; i++) {
        xorb = &xet_plan_key_term(p, keys[i])->xorb;

        keys[i] &= XET_PLAN_TERM_MASK;
        keys[i] |= (uint64_t) xet_get_u32(xorb->bytes + at)
                   << XET_PLAN_TERM_BITS;
    }

    xet_plan_sort(keys, n, XET_PLAN_SHIFT_MAX);

    for (i = 0; i < n; /* void */ ) {
        begin = i;
        xorb = &xet_plan_key_term(p, keys[i])->xorb;
        one = 1;

        for (i++; i < n; i++) {

            if ((keys[i] ^ keys[begin]) > XET_PLAN_TERM_MASK) {
                break;
            }

            one &= xet_hash_equal(&xet_plan_key_term(p, keys[i])->xorb, xorb);
        }

        if (!one) {
            xet_plan_by_xorb(p, keys + begin, i - begin, at + 4);
        }
    }
}


/*
 * Sorts keys that are in the order by xorb into the order by use.  Counts the
 * xorbs.
 */

static void
xet_plan_by_use(xet_plan_t *p, uint64_t *keys)
{
    uint32_t           i;
    uint64_t           term, first;
    const xet_term_t  *t, *prev;

    first = 0;
    prev = NULL;
    p->nxorbs = 0;

    for (i = 0; i < p->n; i++, prev = t) {
        t = xet_plan_key_term(p, keys[i]);
        term = keys[i] & XET_PLAN_TERM_MASK;

        if (prev == NULL || !xet_hash_equal(&t->xorb, &prev->xorb)) {
            first = term;
            p->nxorbs++;
        }

        keys[i] = first << (XET_PLAN_CHUNK_BITS + XET_PLAN_TERM_BITS)
                  | (uint64_t) t->chunk_start << XET_PLAN_TERM_BITS
                  | term;
    }

    xet_plan_sort(keys, p->n, XET_PLAN_SHIFT_MAX);
}


/*
 * Sorts in place by the byte that begins at bit "shift" and by the lower bytes
 * (American flag sort): moves each key to the region of the keys with the same
 * byte, then sorts each region by the next byte.
 */

static void
xet_plan_sort(uint64_t *keys, uint32_t n, unsigned shift)
{
    uint32_t  i, byte, begin[256], end[256];
    uint64_t  key, other;

    if (n <= XET_PLAN_SORT_SHORT) {
        xet_plan_sort_short(keys, n);
        return;
    }

    memset(end, 0, sizeof(end));

    for (i = 0; i < n; i++) {
        end[keys[i] >> shift & 0xff]++;
    }

    for (byte = 0, i = 0; byte < 256; byte++) {
        begin[byte] = i;
        i += end[byte];
        end[byte] = i;
    }

    for (byte = 0; byte < 256; byte++) {

        while (begin[byte] < end[byte]) {
            key = keys[begin[byte]];

            for (i = key >> shift & 0xff; i != byte; i = key >> shift & 0xff) {
                other = keys[begin[i]];
                keys[begin[i]++] = key;
                key = other;
            }

            keys[begin[byte]++] = key;
        }
    }

    if (shift == 0) {
        return;
    }

    for (byte = 0, i = 0; byte < 256; byte++) {
        xet_plan_sort(keys + i, end[byte] - i, shift - 8);
        i = end[byte];
    }
}


static void
xet_plan_sort_short(uint64_t *keys, uint32_t n)
{
    uint32_t  i, k;
    uint64_t  key;

    for (i = 1; i < n; i++) {
        key = keys[i];

        for (k = i; k && keys[k - 1] > key; k--) {
            keys[k] = keys[k - 1];
        }

        keys[k] = key;
    }
}


/* Turns keys, which are sorted by use, into ranges in the same array. */

static xet_status_t
xet_plan_merge(xet_plan_t *p, uint64_t *keys)
{
    uint32_t           i, n;
    uint64_t           term, first, end, xorb;
    xet_status_t       status;
    const xet_term_t  *t, *prev, *last;

    n = 0;
    first = 0;
    end = 0;
    xorb = XET_PLAN_NEW_XORB;
    prev = NULL;

    for (i = 0; i < p->n; i++, prev = t) {
        term = keys[i] & XET_PLAN_TERM_MASK;
        t = &p->terms[term];
        last = &p->terms[end];

        if (keys[i] >> (XET_PLAN_CHUNK_BITS + XET_PLAN_TERM_BITS) != xorb) {
            xorb = keys[i] >> (XET_PLAN_CHUNK_BITS + XET_PLAN_TERM_BITS);
            first = term << 32 | XET_PLAN_NEW_XORB;
            end = term;
            n++;

        } else {
            status = xet_plan_agree(t, prev, last);

            if (status != XET_OK) {
                return status;
            }

            if (t->chunk_start > last->chunk_end) {
                first = term << 32;
                end = term;
                n++;

            } else if (t->chunk_end > last->chunk_end) {
                end = term;
            }
        }

        keys[n - 1] = first | end;
    }

    p->ranges = keys;
    p->nranges = n;

    return XET_OK;
}


xet_status_t
xet_plan_agree(const xet_term_t *t, const xet_term_t *prev,
    const xet_term_t *last)
{
    if (t->copy_id != prev->copy_id) {
        return XET_PLAN_CHANGED;
    }

    if (xet_plan_relation(t->chunk_start, t->stored_start,
                          prev->chunk_start, prev->stored_start)
        && xet_plan_relation(t->chunk_start, t->stored_start,
                             last->chunk_end, last->stored_end)
        && xet_plan_relation(t->chunk_end, t->stored_end,
                             prev->chunk_end, prev->stored_end)
        && xet_plan_relation(t->chunk_end, t->stored_end,
                             last->chunk_end, last->stored_end))
    {
        return XET_OK;
    }

    return XET_PLAN_DAMAGED;
}


/*
 * Returns whether two chunk boundaries of a xorb are consistent with their
 * stored positions: equal boundaries have equal positions, and n chunks take
 * at least n bytes.
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


/* Returns the number of stored bytes between range i and the previous range. */

static uint32_t
xet_plan_gap(const xet_plan_t *p, uint32_t i)
{
    return xet_plan_range_first(p, i)->stored_start
           - xet_plan_range_last(p, i - 1)->stored_end;
}


/* Returns how many gaps between the ranges [i, end) are wider than gap. */

static uint32_t
xet_plan_wider(const xet_plan_t *p, uint32_t i, uint32_t end, uint32_t gap)
{
    uint32_t  n;

    n = 0;

    for (i++; i < end; i++) {
        n += xet_plan_gap(p, i) > gap;
    }

    return n;
}
