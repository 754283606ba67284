
/*
 * Tests the rules that clients rely on: plans of random ranges of random files
 * are checked against a model that has every chunk of the file.  The rules are
 * numbered in t/lib/Test/Xet/Client.pm.
 */


#include "xet_test.h"
#include "xet_test_pool.h"
#include "xet_plan.h"


#define MODEL_XORBS   4
#define MODEL_CHUNKS  40
#define MODEL_TERMS   160              /* usually at most 48 are used */


typedef struct {
    xet_hash_t  hash;
    uint32_t    n;
    uint8_t     raw_ends[MODEL_CHUNKS * 4];
    uint8_t     stored_ends[MODEL_CHUNKS * 4];
} model_xorb_t;


/* One chunk of the file: its identity, and the position of its bytes. */

typedef struct {
    unsigned    xorb;
    uint32_t    chunk;
    uint64_t    start;
    uint32_t    len;
} model_chunk_t;


typedef struct {
    model_xorb_t   xorbs[MODEL_XORBS];
    unsigned       nxorbs;

    xet_term_t     terms[MODEL_TERMS];
    unsigned       xorb_of[MODEL_TERMS];
    uint64_t       offsets[MODEL_TERMS + 1];
    unsigned       n;

    uint8_t        packed[MODEL_TERMS * XET_TERM_LEN];

    model_chunk_t  chunks[MODEL_TERMS * MODEL_CHUNKS];
    unsigned       nchunks;
} model_t;


static model_t         model;
static const char     *test_rule;      /* first broken rule */


static uint32_t
model_end(const uint8_t *ends, uint32_t n)
{
    return n ? xet_get_u32(ends + (n - 1) * 4) : 0;
}


static uint32_t
model_below(uint64_t *state, uint32_t n)
{
    return (uint32_t) (xet_test_random(state) % n);
}


static void
model_random(uint64_t *state)
{
    int            same;
    uint32_t       i, k, raw, stored, max, start, end;
    xet_term_t    *t;
    model_xorb_t  *x;

    model.nxorbs = 1 + model_below(state, MODEL_XORBS);
    model.n = 1 + model_below(state, model_below(state, 16) ? 48
                                                            : MODEL_TERMS);
    model.nchunks = 0;
    model.offsets[0] = 0;

    max = model_below(state, 3) ? 1 + model_below(state, 20) : XET_CHUNK_MAX;

    same = model_below(state, 4) == 0;

    for (i = 0; i < model.nxorbs; i++) {
        x = &model.xorbs[i];

        xet_test_random_hash(state, x->hash.bytes);

        if (same) {                    /* equal in the sort-key bytes */
            memset(x->hash.bytes, 1, 8);
        }

        x->n = 1 + model_below(state, MODEL_CHUNKS);

        for (k = 0, raw = 0, stored = 0; k < x->n; k++) {
            raw += 1 + model_below(state, max);
            stored += 9 + model_below(state, max);

            xet_put_u32(x->raw_ends + k * 4, raw);
            xet_put_u32(x->stored_ends + k * 4, stored);
        }
    }

    for (i = 0; i < model.n; i++) {
        t = &model.terms[i];
        model.xorb_of[i] = model_below(state, model.nxorbs);
        x = &model.xorbs[model.xorb_of[i]];

        start = model_below(state, x->n);
        end = start + 1 + model_below(state, model_below(state, 2)
                                             ? x->n - start : 1);

        t->xorb = x->hash;
        t->chunk_start = start;
        t->chunk_end = end;
        t->stored_start = model_end(x->stored_ends, start);
        t->stored_end = model_end(x->stored_ends, end);
        t->copy_id = 5;
        t->raw_length = model_end(x->raw_ends, end)
                        - model_end(x->raw_ends, start);

        model.offsets[i + 1] = model.offsets[i] + t->raw_length;

        for (k = start; k < end; k++) {
            model_chunk_t  *c = &model.chunks[model.nchunks++];

            c->xorb = model.xorb_of[i];
            c->chunk = k;
            c->start = model.offsets[i] + model_end(x->raw_ends, k)
                       - model_end(x->raw_ends, start);
            c->len = model_end(x->raw_ends, k + 1)
                     - model_end(x->raw_ends, k);
        }

        xet_term_pack(model.packed + i * XET_TERM_LEN, t);
    }
}


static int
model_find(const xet_hash_t *hash)
{
    unsigned  i;

    for (i = 0; i < model.nxorbs; i++) {
        if (xet_hash_equal(&model.xorbs[i].hash, hash)) {
            return (int) i;
        }
    }

    return -1;
}


/* Returns the ends that the database would return for a term at an edge. */

static void
model_ends(xet_plan_ends_t *ends, const xet_term_t *t)
{
    const model_xorb_t  *x;

    x = &model.xorbs[model_find(&t->xorb)];

    ends->n = t->chunk_end - t->chunk_start;
    ends->copy_id = t->copy_id;
    ends->raw_before = model_end(x->raw_ends, t->chunk_start);
    ends->stored_before = model_end(x->stored_ends, t->chunk_start);
    ends->raw_ends = x->raw_ends + t->chunk_start * 4;
    ends->stored_ends = x->stored_ends + t->chunk_start * 4;
}


/* Trims the edges; if all is set, even edges that do not need it. */

static xet_status_t
test_trim(xet_plan_t *p, int all)
{
    unsigned         which;
    xet_status_t     status;
    xet_plan_ends_t  first, last;

    which = all ? XET_PLAN_FIRST | XET_PLAN_LAST : xet_plan_edges(p);

    model_ends(&first, &p->terms[0]);
    model_ends(&last, &p->terms[p->n - 1]);

    if (p->n == 1) {
        return which ? xet_plan_trim(p, which, &first) : XET_OK;
    }

    status = XET_OK;

    if (which & XET_PLAN_LAST) {
        status = xet_plan_trim(p, XET_PLAN_LAST, &last);
    }

    if (status == XET_OK && (which & XET_PLAN_FIRST)) {
        status = xet_plan_trim(p, XET_PLAN_FIRST, &first);
    }

    return status;
}


/*
 * Adds the file in segments of random length.  If whole is set, also adds
 * segments outside the range.
 */

static xet_status_t
test_build(xet_plan_t *p, xet_test_pool_t *pool, const xet_range_t *want,
    uint64_t *state, int whole)
{
    unsigned      i, n;
    xet_status_t  status;

    xet_plan_init(p, xet_test_alloc, pool, want);

    for (i = 0; i < model.n; i += n) {
        n = 1 + model_below(state, 8);
        n = (n > model.n - i) ? model.n - i : n;

        if (!whole && (model.offsets[i + n] <= want->start
                       || model.offsets[i] >= want->end))
        {
            continue;
        }

        status = xet_plan_add(p, model.packed + i * XET_TERM_LEN,
                              n * XET_TERM_LEN, model.offsets[i]);

        if (status != XET_OK) {
            return status;
        }
    }

    status = test_trim(p, whole);

    return (status == XET_OK) ? xet_plan_finish(p) : status;
}


#define test_must(cond, text)                                                 \
    if (!(cond)) {                                                            \
        test_rule = test_rule ? test_rule : text;                             \
        return;                                                               \
    }


/*
 * Checks rules 1, 2 and 7: the terms contain exactly the chunks of the range,
 * and the skip is correct.
 */

static void
test_rules_terms(const xet_plan_t *p, const xet_range_t *want)
{
    uint32_t              k;
    uint64_t              sum, len;
    unsigned              i, c;
    const xet_term_t     *t;
    const model_chunk_t  *first, *chunk;

    for (c = 0; model.chunks[c].start + model.chunks[c].len <= want->start;
         c++)
    {
        /* void */
    }

    first = &model.chunks[c];
    chunk = first;
    sum = 0;

    for (i = 0; i < p->n; i++) {
        t = &p->terms[i];

        test_must(t->chunk_start < t->chunk_end, "a term has chunks");
        test_must(chunk->start < want->end, "2: no term after the range");

        for (k = t->chunk_start, len = 0; k < t->chunk_end; k++, c++) {
            test_must(c < model.nchunks, "1: no chunk after the file");

            chunk = &model.chunks[c];

            test_must(chunk->chunk == k
                      && xet_hash_equal(&model.xorbs[chunk->xorb].hash,
                                        &t->xorb),
                      "the chunks of the file in their order");
            test_must(chunk->start < want->end,
                      "1: no chunk after the range");

            len += chunk->len;
        }

        test_must(len == t->raw_length, "1: unpacked_length is trimmed");

        sum += len;
    }

    test_must(chunk->start + chunk->len >= want->end, "1: the end is there");

    test_must(p->skip == want->start - first->start, "1: offset");
    test_must(p->skip < p->terms[0].raw_length, "1: offset < first length");
    test_must(p->skip < first->len, "1: offset inside the first chunk");

    test_must(sum - p->skip
              == want->end - want->start
                 + (chunk->start + chunk->len - want->end),
              "7: the sum of lengths");

    if (want->start == 0 && want->end == model.offsets[model.n]) {
        test_must(sum == want->end && p->skip == 0, "7: the whole file");
    }
}


/* Checks rules 3, 4, 5: the ranges of each xorb. */

static void
test_rules_ranges(const xet_plan_t *p)
{
    int                x;
    uint32_t           i, k, inside, xorb, order;
    const xet_term_t  *t;
    const xet_hash_t  *hash, *prev_hash;
    xet_plan_range_t   r, prev;

    static uint8_t     needed[MODEL_XORBS][MODEL_CHUNKS];

    memset(needed, 0, sizeof(needed));
    order = 0;

    for (i = 0; i < p->n; i++) {
        t = &p->terms[i];
        inside = 0;
        xorb = 0;

        for (k = 0; k < p->nranges; k++) {
            hash = xet_plan_range(p, k, &r);

            if (xet_hash_equal(hash, &t->xorb)) {
                test_must(xorb <= order, "xorbs in the order of first use");
                order += xorb == order;

                inside += t->chunk_start >= r.chunk_start
                          && t->chunk_end <= r.chunk_end;
            }

            xorb += xet_plan_xorb_begins(p, k + 1);
        }

        test_must(xorb == p->nxorbs, "the number of xorbs");
        test_must(inside == 1, "3: a term lies inside one range");

        x = model_find(&t->xorb);
        memset(needed[x] + t->chunk_start, 1, t->chunk_end - t->chunk_start);
    }

    test_must(order == p->nxorbs, "every xorb is used");
    test_must(xet_plan_xorb_begins(p, 0), "a xorb has ranges");

    prev_hash = NULL;
    memset(&prev, 0, sizeof(prev));

    for (k = 0; k < p->nranges; k++) {
        hash = xet_plan_range(p, k, &r);
        x = model_find(hash);

        test_must(x >= 0 && r.chunk_start < r.chunk_end
                  && r.chunk_end <= model.xorbs[x].n,
                  "a range lies in the xorb");
        test_must(k == 0 || xet_plan_xorb_begins(p, k)
                            == !xet_hash_equal(hash, prev_hash),
                  "a xorb ends where the next one begins");
        test_must(xet_plan_xorb_begins(p, k) || r.chunk_start > prev.chunk_end,
                  "3, 4: ranges are sorted and merged");
        test_must(r.stored_start
                  == model_end(model.xorbs[x].stored_ends, r.chunk_start)
                  && r.stored_end
                     == model_end(model.xorbs[x].stored_ends, r.chunk_end),
                  "5: the bytes are those of the chunks");

        for (i = r.chunk_start; i < r.chunk_end; i++) {
            test_must(needed[x][i], "no chunk without a term");
        }

        prev_hash = hash;
        prev = r;
    }
}


static void
test_rules_equal(const xet_plan_t *a, const xet_plan_t *b)
{
    uint32_t           i;
    const xet_hash_t  *a_hash, *b_hash;
    xet_plan_range_t   a_range, b_range;

    test_must(a->n == b->n && a->nranges == b->nranges && a->skip == b->skip
              && memcmp(a->terms, b->terms, a->n * sizeof(xet_term_t)) == 0,
              "6: equal terms");

    for (i = 0; i < a->nranges; i++) {
        a_hash = xet_plan_range(a, i, &a_range);
        b_hash = xet_plan_range(b, i, &b_range);

        test_must(xet_hash_equal(a_hash, b_hash)
                  && memcmp(&a_range, &b_range, sizeof(a_range)) == 0,
                  "6: equal ranges");
    }
}


/*
 * Merges the ranges [0, n) of a xorb until max are left, and marks where each
 * merged range begins: at the first range, and after each of the widest gaps
 * (of equal gaps, the first ones).
 */

static void
model_limit(const xet_plan_range_t *ranges, uint8_t *begins, uint32_t n,
    uint32_t max)
{
    uint32_t  i, best;

    memset(begins, 0, n);

    begins[0] = 1;

    for ( /* void */ ; max > 1 && n > 1; max--) {

        for (i = 1, best = 0; i < n; i++) {

            if (!begins[i]
                && (best == 0
                    || ranges[i].stored_start - ranges[i - 1].stored_end
                       > ranges[best].stored_start
                         - ranges[best - 1].stored_end))
            {
                best = i;
            }
        }

        begins[best] = 1;
    }
}


/* Returns the number of ranges of the xorb whose first range is i. */

static uint32_t
model_xorb_ranges(const xet_plan_t *p, xet_plan_range_t *ranges, uint32_t i)
{
    uint32_t  n;

    n = 0;

    do {
        (void) xet_plan_range(p, i, &ranges[n++]);

    } while (!xet_plan_xorb_begins(p, ++i));

    return n;
}


/*
 * Limits the plan p to max ranges for each xorb, and checks the result against
 * all, the same plan without a limit.
 */

static void
test_rules_limit(xet_plan_t *p, const xet_plan_t *all, uint32_t max)
{
    uint32_t          i, k, c, n;
    uint8_t           begins[MODEL_CHUNKS];
    xet_plan_range_t  r, want, ranges[MODEL_CHUNKS];

    test_must(xet_plan_limit(p, max) == XET_OK, "a limit");

    for (i = 0, k = 0; i < all->nranges; i += n) {
        n = model_xorb_ranges(all, ranges, i);

        model_limit(ranges, begins, n, max);

        for (c = 0; c < n; k++) {
            test_must(k < p->nranges, "limit: a range is missing");
            test_must(xet_plan_xorb_begins(p, k) == (c == 0),
                      "limit: the ranges of a xorb");

            want = ranges[c];

            for (c++; c < n && !begins[c]; c++) {
                want.chunk_end = ranges[c].chunk_end;
                want.stored_end = ranges[c].stored_end;
            }

            (void) xet_plan_range(p, k, &r);

            test_must(memcmp(&r, &want, sizeof(r)) == 0,
                      "limit: across the narrowest gaps");
        }
    }

    test_must(k == p->nranges, "limit: a range too many");

    for (i = 0; i < p->n; i++) {

        for (k = 0, n = 0; k < p->nranges; k++) {
            n += xet_hash_equal(xet_plan_range(p, k, &r), &p->terms[i].xorb)
                 && p->terms[i].chunk_start >= r.chunk_start
                 && p->terms[i].chunk_end <= r.chunk_end
                 && p->terms[i].stored_start >= r.stored_start
                 && p->terms[i].stored_end <= r.stored_end;
        }

        test_must(n == 1, "limit: 3: a term lies inside one range");
    }
}


static void
test_random_plans(void)
{
    uint64_t          state, size;
    unsigned          file, range, plans, multi, merged, failed;
    unsigned          n, fewer, spans;
    xet_plan_t        p, again;
    xet_range_t       want;
    xet_test_pool_t   pool;

    memset(&pool, 0, sizeof(pool));

    state = 20240;
    plans = 0;
    multi = 0;
    merged = 0;
    failed = 0;
    fewer = 0;
    spans = 0;

    for (file = 0; file < 4000 && test_rule == NULL; file++) {
        model_random(&state);
        size = model.offsets[model.n];

        for (range = 0; range < 6 && test_rule == NULL; range++) {

            want.start = range ? xet_test_random(&state) % size : 0;
            want.end = range == 0 ? size
                       : want.start + 1
                         + xet_test_random(&state) % (size - want.start);

            if (range == 1) {
                want.end = want.start + 1;
            }

            if (test_build(&p, &pool, &want, &state, 0) != XET_OK
                || test_build(&again, &pool, &want, &state, 1) != XET_OK)
            {
                failed++;
                continue;
            }

            test_rules_terms(&p, &want);
            test_rules_ranges(&p);
            test_rules_equal(&p, &again);

            plans++;
            multi += p.nxorbs > 1;
            merged += !xet_plan_xorb_begins(&p, 1);

            n = again.nranges;
            test_rules_limit(&again, &p, 2 + file % 3);
            fewer += again.nranges < n;
            test_rules_limit(&again, &p, 1);
            spans += again.nranges == p.nxorbs;

            xet_test_pool_free(&pool);
        }
    }

    xet_is_u64(plans, 24000, "plans of random files");
    xet_is_u64(failed, 0, "none was refused");
    xet_ok(test_rule == NULL, "all rules hold%s%s", test_rule ? ", not " : "",
           test_rule ? test_rule : "");
    xet_ok(multi > 5000, "%u plans of several xorbs", multi);
    xet_ok(merged > 5000, "%u plans of several ranges", merged);
    xet_ok(fewer > 2000, "%u plans that a limit made smaller", fewer);
    xet_is_u64(spans, plans, "a limit of 1 leaves a range a xorb");
    xet_is_u64(xet_plan_limit(&p, 0), XET_INTERNAL, "a limit of 0");
}


int
main(void)
{
    test_random_plans();

    return xet_done();
}
