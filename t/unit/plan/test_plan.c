
/*
 * Tests plans: tables for adding, trimming and merging, all kinds of corrupt
 * data, and files with many terms.
 */


#include <time.h>

#include "xet_test.h"
#include "xet_test_plan.h"


static xet_plan_range_t
test_range(const xet_plan_t *p, uint32_t i)
{
    xet_plan_range_t  range;

    memset(&range, 0, sizeof(range));

    if (i < p->nranges) {
        (void) xet_plan_range(p, i, &range);
    }

    return range;
}


static void
test_adding(void)
{
    uint8_t          packed[4 * XET_TERM_LEN];
    xet_plan_t       p;
    xet_range_t      want;
    xet_test_pool_t  pool;

    memset(&pool, 0, sizeof(pool));

    xet_test_term(packed, 1, 0, 0, 10);
    xet_test_term(packed + XET_TERM_LEN, 2, 0, 5, 10);
    xet_test_term(packed + 2 * XET_TERM_LEN, 1, 0, 10, 20);
    xet_test_term(packed + 3 * XET_TERM_LEN, 3, 0, 0, 1);

    want.start = 1000;
    want.end = 1500;

    xet_plan_init(&p, xet_test_alloc, &pool, &want);
    xet_is_u64(xet_plan_edges(&p), 0, "no edges without terms");
    xet_is_u64(xet_plan_finish(&p), XET_PLAN_DAMAGED, "no terms");
    xet_is_u64(xet_plan_add(&p, packed, 47, 0), XET_PLAN_DAMAGED,
               "a part of a term");
    xet_is_u64(xet_plan_add(&p, packed, 4 * XET_TERM_LEN + 1, 0),
               XET_PLAN_DAMAGED,
               "four terms and a byte");
    xet_is_u64(xet_plan_add(&p, packed, 0, 0), XET_OK, "no terms are legal");
    xet_is_u64(xet_plan_add(&p, packed, 4 * XET_TERM_LEN, 0),
               XET_OK, "four terms");
    xet_is_u64(p.n, 1, "one is inside the range");
    xet_is_u64(p.offset, 1000, "its offset");
    xet_is_u64(xet_plan_edges(&p), 0, "range on the edges of a term");
    xet_is_u64(xet_plan_add(&p, packed, XET_TERM_LEN, 77), XET_OK,
               "behind the range nothing is looked at");
    xet_is_u64(xet_plan_finish(&p), XET_OK, "finish");
    xet_is_u64(p.nxorbs, 1, "one xorb");
    xet_is_u64(test_range(&p, 0).stored_start, 250, "its bytes");

    want.start = 999;
    want.end = 1501;

    xet_plan_init(&p, xet_test_alloc, &pool, &want);
    xet_is_u64(xet_plan_add(&p, packed, 2 * XET_TERM_LEN, 0),
               XET_OK, "two terms");
    xet_is_u64(xet_plan_finish(&p), XET_PLAN_DAMAGED,
               "that end before the range does");
    xet_is_u64(xet_plan_add(&p, packed + 2 * XET_TERM_LEN, XET_TERM_LEN, 1499),
               XET_PLAN_DAMAGED,
               "a segment that overlaps");
    xet_is_u64(xet_plan_add(&p, packed + 2 * XET_TERM_LEN, XET_TERM_LEN, 1501),
               XET_PLAN_DAMAGED,
               "a segment behind a hole");
    xet_is_u64(xet_plan_add(&p, packed + 2 * XET_TERM_LEN, XET_TERM_LEN, 1500),
               XET_OK,
               "the right one");
    xet_is_u64(p.n, 3, "three terms");
    xet_is_u64(xet_plan_edges(&p), XET_PLAN_FIRST | XET_PLAN_LAST,
               "both edges");

    xet_plan_init(&p, xet_test_alloc, &pool, &want);
    xet_is_u64(xet_plan_add(&p, packed, XET_TERM_LEN, 1000), XET_PLAN_DAMAGED,
               "first segment after the start of the range");
    xet_is_u64(xet_plan_add(&p, packed, XET_TERM_LEN, 999), XET_OK,
               "first segment on the start of the range");

    memset(packed + 40, 0, 4);
    xet_plan_init(&p, xet_test_alloc, &pool, &want);
    xet_is_u64(xet_plan_add(&p, packed, XET_TERM_LEN, 0), XET_PLAN_DAMAGED,
               "a damaged term");

    xet_test_term(packed, 1, 0, 0, 10);
    want.start = (uint64_t) INT64_MAX - 1;
    want.end = (uint64_t) INT64_MAX;
    xet_plan_init(&p, xet_test_alloc, &pool, &want);
    xet_is_u64(xet_plan_add(&p, packed, XET_TERM_LEN,
                            (uint64_t) INT64_MAX - 999),
               XET_PLAN_DAMAGED, "a term past 2^63 - 1");
    xet_plan_init(&p, xet_test_alloc, &pool, &want);
    xet_is_u64(xet_plan_add(&p, packed, XET_TERM_LEN,
                            (uint64_t) INT64_MAX - 1000),
               XET_OK, "a term up to it");

    want.start = want.end = 5;
    xet_plan_init(&p, xet_test_alloc, &pool, &want);
    xet_is_u64(xet_plan_add(&p, packed, XET_TERM_LEN, 0), XET_INTERNAL,
               "an empty range takes no terms");

    want.start = want.end = 0;
    xet_plan_init(&p, xet_test_alloc, &pool, &want);
    xet_is_u64(xet_plan_finish(&p), XET_OK, "the empty file");
    xet_is_u64(p.n + p.nranges + p.skip, 0, "has nothing");

    xet_test_pool_free(&pool);
}


static void
test_trimming(void)
{
    size_t            i;
    uint8_t           packed[2 * XET_TERM_LEN], raw[10 * 4], stored[10 * 4];
    xet_plan_t        p;
    xet_range_t       want;
    xet_plan_ends_t   ends;
    xet_test_pool_t   pool;

    static const struct {
        const char    *name;
        unsigned       which;
        int            list;       /* 0: raw, 1: stored, 2: neither */
        unsigned       entry;
        uint32_t       value;
        xet_status_t   want;
    } cases[] = {
        { "the right ends", 3, 2, 0, 0, XET_OK },
        { "first only", 1, 2, 0, 0, XET_OK },
        { "last only", 2, 2, 0, 0, XET_OK },
        { "neither", 0, 2, 0, 0, XET_INTERNAL },
        { "an unknown edge", 4, 2, 0, 0, XET_INTERNAL },
        { "an unknown edge more", 5, 2, 0, 0, XET_INTERNAL },
        { "raw ends stand still", 3, 0, 4, 1400, XET_PLAN_DAMAGED },
        { "raw ends fall", 3, 0, 4, 1300, XET_PLAN_DAMAGED },
        { "raw ends begin too low", 3, 0, 0, 1000, XET_PLAN_DAMAGED },
        { "raw ends end too low", 3, 0, 9, 1999, XET_PLAN_DAMAGED },
        { "raw ends end too high", 3, 0, 9, 2001, XET_PLAN_DAMAGED },
        { "a chunk too long", 3, 0, 9, 132973, XET_PLAN_DAMAGED },
        { "stored ends stand still", 3, 1, 5, 750, XET_PLAN_DAMAGED },
        { "stored ends fall", 3, 1, 5, 749, XET_PLAN_DAMAGED },
        { "stored ends end too low", 3, 1, 9, 999, XET_PLAN_DAMAGED },
        { "stored ends end too high", 3, 1, 9, 1001, XET_PLAN_DAMAGED },
    };

    memset(&pool, 0, sizeof(pool));

    want.start = 250;
    want.end = 701;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]) + 5; i++) {
        unsigned  k, c;

        for (k = 0; k < 10; k++) {
            xet_put_u32(raw + k * 4, 1100 + k * 100);
            xet_put_u32(stored + k * 4, 550 + k * 50);
        }

        ends.n = 10;
        ends.copy_id = 0xf0000001;     /* xet_test_copy_id() of xorb 1 */
        ends.raw_before = 1000;
        ends.stored_before = 500;
        ends.raw_ends = raw;
        ends.stored_ends = stored;

        xet_test_term(packed, 1, 0, 10, 20);
        xet_test_term(packed + XET_TERM_LEN, 1, 0, 0, 1);

        xet_plan_init(&p, xet_test_alloc, &pool, &want);
        (void) xet_plan_add(&p, packed, XET_TERM_LEN, 0);

        c = sizeof(cases) / sizeof(cases[0]);

        if (i < c) {
            if (cases[i].list < 2) {
                xet_put_u32((cases[i].list ? stored : raw)
                            + cases[i].entry * 4, cases[i].value);
            }

            xet_is_u64(xet_plan_trim(&p, cases[i].which, &ends),
                       cases[i].want, cases[i].name);

            if (i == 0) {
                xet_is_u64(p.terms[0].chunk_start, 12, "  chunk start");
                xet_is_u64(p.terms[0].chunk_end, 18, "  chunk end");
                xet_is_u64(p.terms[0].stored_start, 600, "  stored start");
                xet_is_u64(p.terms[0].stored_end, 900, "  stored end");
                xet_is_u64(p.terms[0].raw_length, 600, "  length");
                xet_is_u64(xet_plan_finish(&p), XET_OK, "  finish");
                xet_is_u64(p.skip, 50, "  offset");
                xet_is_u64(xet_plan_trim(&p, 3, &ends), XET_PLAN_DAMAGED,
                           "  not twice");
            }

        } else if (i == c) {
            ends.n = 9;
            xet_is_u64(xet_plan_trim(&p, 3, &ends), XET_PLAN_DAMAGED,
                       "an end short");

        } else if (i == c + 1) {
            ends.raw_before = 999;
            xet_is_u64(xet_plan_trim(&p, 3, &ends), XET_PLAN_DAMAGED,
                       "another raw start");

        } else if (i == c + 2) {
            ends.stored_before = 501;
            xet_is_u64(xet_plan_trim(&p, 3, &ends), XET_PLAN_DAMAGED,
                       "another stored start");

        } else if (i == c + 3) {
            p.terms[0].chunk_start = 0;
            p.terms[0].chunk_end = 10;
            xet_is_u64(xet_plan_trim(&p, 3, &ends), XET_PLAN_DAMAGED,
                       "something before chunk 0");

        } else {
            p.n = 0;
            xet_is_u64(xet_plan_trim(&p, 1, &ends), XET_INTERNAL,
                       "a plan without terms");

            want.end = 1001;
            xet_plan_init(&p, xet_test_alloc, &pool, &want);
            (void) xet_plan_add(&p, packed, 2 * XET_TERM_LEN, 0);
            xet_is_u64(xet_plan_trim(&p, 3, &ends), XET_INTERNAL,
                       "both edges at once of two terms");
            xet_is_u64(xet_plan_trim(&p, 1, &ends), XET_OK,
                       "the first of two terms");
            xet_is_u64(p.terms[0].chunk_end, 20, "keeps its end");
            xet_is_u64(p.position, 1100, "and the plan its end");
        }

        xet_test_pool_free(&pool);
    }
}


/* Tests two terms of one xorb that may disagree on the offset of a chunk. */

static void
test_contradictions(void)
{
    size_t           i;
    uint8_t          packed[3 * XET_TERM_LEN];
    unsigned         k, limit, refused;
    xet_plan_t       p;
    xet_range_t      want;
    xet_test_pool_t  pool;

    static const struct {
        const char    *name;
        uint32_t       one[4];     /* chunks, stored bytes */
        uint32_t       two[4];
        xet_status_t   want;
        unsigned       ranges;
    } cases[] = {
        { "the same twice", { 0, 4, 0, 40 }, { 0, 4, 0, 40 }, XET_OK, 1 },
        { "apart", { 0, 4, 0, 40 }, { 5, 6, 50, 60 }, XET_OK, 2 },
        { "touching", { 0, 4, 0, 40 }, { 4, 6, 40, 60 }, XET_OK, 1 },
        { "overlapping", { 0, 4, 0, 40 }, { 2, 6, 20, 60 }, XET_OK, 1 },
        { "one inside the other", { 0, 9, 0, 90 }, { 2, 6, 20, 60 }, XET_OK,
          1 },
        { "one start, two ends", { 0, 9, 0, 90 }, { 0, 6, 0, 60 }, XET_OK,
          1 },
        { "two starts, one end", { 0, 9, 0, 90 }, { 3, 9, 30, 90 }, XET_OK,
          1 },
        { "same start, other bytes", { 2, 4, 20, 40 }, { 2, 6, 21, 60 },
          XET_PLAN_DAMAGED, 0 },
        { "same end, other bytes", { 0, 4, 0, 40 }, { 2, 4, 20, 41 },
          XET_PLAN_DAMAGED, 0 },
        { "same chunks, later end", { 2, 4, 20, 40 }, { 2, 4, 20, 41 },
          XET_PLAN_DAMAGED, 0 },
        { "touching with a hole", { 0, 4, 0, 40 }, { 4, 6, 41, 60 },
          XET_PLAN_DAMAGED, 0 },
        { "touching with an overlap", { 0, 4, 0, 40 }, { 4, 6, 39, 60 },
          XET_PLAN_DAMAGED, 0 },
        { "overlapping chunks, bytes apart", { 0, 4, 0, 40 },
          { 2, 6, 50, 90 }, XET_PLAN_DAMAGED, 0 },
        { "later chunks in earlier bytes", { 5, 9, 50, 90 },
          { 10, 11, 10, 20 }, XET_PLAN_DAMAGED, 0 },
        { "later chunks, too few bytes between", { 0, 4, 0, 40 },
          { 10, 11, 45, 60 }, XET_PLAN_DAMAGED, 0 },
        { "inside, but past the end", { 0, 9, 0, 90 }, { 2, 6, 20, 95 },
          XET_PLAN_DAMAGED, 0 },
        { "longer, but before the end", { 0, 4, 0, 40 }, { 2, 6, 20, 35 },
          XET_PLAN_DAMAGED, 0 },
    };

    memset(&pool, 0, sizeof(pool));

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {

        for (k = 0; k < 2; k++) {      /* both orders */
            xet_term_t       t;
            unsigned         j;
            const uint32_t  *c;

            want.start = 0;
            want.end = 0;

            for (j = 0; j < 2; j++) {
                c = (j == k) ? cases[i].one : cases[i].two;

                memset(t.xorb.bytes, 7, XET_HASH_LEN);
                t.chunk_start = c[0];
                t.chunk_end = c[1];
                t.stored_start = c[2];
                t.stored_end = c[3];
                t.raw_length = (c[1] - c[0]) * 10;
                t.copy_id = 7;
                want.end += t.raw_length;

                xet_term_pack(packed + j * XET_TERM_LEN, &t);
            }

            xet_plan_init(&p, xet_test_alloc, &pool, &want);
            (void) xet_plan_add(&p, packed, 2 * XET_TERM_LEN, 0);

            xet_is_u64(xet_plan_finish(&p), cases[i].want, cases[i].name);

            if (cases[i].want == XET_OK) {
                xet_is_u64(p.nranges, cases[i].ranges, "  ranges");
            }

            xet_test_pool_free(&pool);
        }
    }

    /* the xorb's copy was replaced between two terms */

    xet_test_term(packed, 1, 0, 0, 10);
    xet_test_term(packed + XET_TERM_LEN, 1, 0, 10, 20);
    xet_put_u32(packed + XET_TERM_LEN + 48, 99);
    want.start = 0;
    want.end = 2000;

    xet_plan_init(&p, xet_test_alloc, &pool, &want);
    (void) xet_plan_add(&p, packed, 2 * XET_TERM_LEN, 0);
    xet_is_u64(xet_plan_finish(&p), XET_PLAN_CHANGED, "two copies of a xorb");
    xet_test_pool_free(&pool);

    /* terms of xorbs 1, 2 and again 1; every allocation fails once */

    xet_test_term(packed, 1, 0, 0, 10);
    xet_test_term(packed + XET_TERM_LEN, 2, 0, 0, 10);
    xet_test_term(packed + 2 * XET_TERM_LEN, 1, 0, 20, 30);
    want.end = 3000;

    for (limit = 1, refused = 0; limit < 20; limit++) {
        xet_status_t  status;

        pool.limit = limit;
        xet_plan_init(&p, xet_test_alloc, &pool, &want);
        status = xet_plan_add(&p, packed, 2 * XET_TERM_LEN, 0);

        if (status == XET_OK) {
            status = xet_plan_add(&p, packed + 2 * XET_TERM_LEN, XET_TERM_LEN,
                                  2000);
        }

        if (status == XET_OK) {
            status = xet_plan_finish(&p);
        }

        if (status == XET_OK) {
            break;
        }

        refused += status == XET_NOMEM;
        xet_test_pool_free(&pool);
    }

    xet_is_u64(refused, limit - 1, "out of memory at every allocation");
    xet_is_u64(limit, 3, "which are terms, more terms, ranges");
    xet_is_u64(p.nxorbs, 2, "two xorbs");
    xet_is_u64(p.nranges, 3, "in three ranges");
    xet_ok(xet_plan_xorb_begins(&p, 0) && !xet_plan_xorb_begins(&p, 1)
           && xet_plan_xorb_begins(&p, 2) && xet_plan_xorb_begins(&p, 3),
           "two of the first");

    xet_test_pool_free(&pool);
}


static uint32_t
test_below(uint64_t *state, uint32_t n)
{
    return (uint32_t) (xet_test_random(state) % n);
}


/* Tests 100,000 terms of one xorb, of 1,000 xorbs, and of 100,000 xorbs. */

static void
test_long_files(void)
{
    size_t            i, k;
    double            ms;
    uint8_t          *packed;
    uint64_t          state, size;
    xet_plan_t        p;
    xet_term_t        t;
    xet_range_t       want;
    xet_status_t      status;
    struct timespec   begin, end;
    xet_test_pool_t   pool;

    static const uint32_t  xorbs[] = { 1, 1000, 100000 };

    memset(&pool, 0, sizeof(pool));
    packed = malloc(100000 * XET_TERM_LEN);

    for (k = 0; k < 3; k++) {
        state = k;
        size = 0;

        for (i = 0; i < 100000; i++) {
            uint64_t  hash_state;
            uint32_t  start, n;

            hash_state = test_below(&state, xorbs[k]);
            start = test_below(&state, 8190);
            n = 1 + test_below(&state, 2);

            xet_test_term(packed + i * XET_TERM_LEN, 0, 0, start, start + n);
            xet_test_random_hash(&hash_state, t.xorb.bytes);
            memcpy(packed + i * XET_TERM_LEN, t.xorb.bytes, 32);

            size += n * 100;
        }

        want.start = 0;
        want.end = size;

        clock_gettime(CLOCK_MONOTONIC, &begin);

        xet_plan_init(&p, xet_test_alloc, &pool, &want);
        status = xet_plan_add(&p, packed, 100000 * XET_TERM_LEN, 0);

        if (status == XET_OK) {
            status = xet_plan_finish(&p);
        }

        clock_gettime(CLOCK_MONOTONIC, &end);

        ms = (double) (end.tv_sec - begin.tv_sec) * 1e3
             + (double) (end.tv_nsec - begin.tv_nsec) / 1e6;

        xet_is_u64(status, XET_OK, "100,000 terms");
        xet_ok(ms < 5000, "  over %u xorbs", xorbs[k]);
        printf("# %u xorbs drawn from, %u fetched: %.1f ms, %zu bytes\n",
               xorbs[k], p.nxorbs, ms, pool.size);
        xet_is_u64(p.n, 100000, "  all are in the plan");
        xet_is_u64(pool.size, 6400000, "  64 bytes each");

        xet_test_pool_free(&pool);
    }

    free(packed);
}


int
main(void)
{
    test_adding();
    test_trimming();
    test_contradictions();
    test_long_files();

    return xet_done();
}
