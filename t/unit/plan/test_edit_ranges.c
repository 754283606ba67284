
/*
 * Tests edit ranges: hand-written tables, random files compared with a
 * chunk-by-chunk implementation of the rule, the JSON of a small response,
 * corrupt data, and limits.
 */


#include "xet_test.h"
#include "xet_test_pool.h"
#include "xet_plan.h"
#include "xet_vectors.h"


#define CHUNKS_MAX  2000
#define RANGES_MAX  64


/* A file: its chunks, and the number of chunks in each term. */

typedef struct {
    unsigned        n;
    unsigned        nterms;
    uint64_t        size;
    uint32_t        sizes[CHUNKS_MAX];
    uint8_t         hashes[CHUNKS_MAX * XET_HASH_LEN];
    uint64_t        starts[CHUNKS_MAX + 1];
    unsigned        terms[CHUNKS_MAX];
    uint32_t        before;        /* raw_before in all terms */
    int             given;         /* verification hashes are set */
} file_t;


static file_t             file;
static xet_edit_ranges_t  edits;
static xet_test_pool_t    pool;


static void
layout(file_t *f)
{
    unsigned  i;

    f->starts[0] = 0;

    for (i = 0; i < f->n; i++) {
        f->starts[i + 1] = f->starts[i] + f->sizes[i];
    }

    f->size = f->starts[f->n];
}


/*
 * Makes the verification hash that a term declares: if f->given is set, an
 * arbitrary one, otherwise the correct one.
 */

static void
verification(const file_t *f, unsigned first, unsigned n, xet_hash_t *hash)
{
    if (f->given) {
        memset(hash->bytes, 0x77, XET_HASH_LEN);
        xet_put_u32(hash->bytes, first);
        return;
    }

    xet_hash_verification(&xet_suite_default,
                          f->hashes + XET_HASH_LEN * first, n, hash);
}


static xet_status_t
add(const file_t *f, unsigned first, unsigned n)
{
    uint8_t                 ends[CHUNKS_MAX * 4];
    unsigned                i;
    xet_hash_t              hash;
    xet_edit_ranges_term_t  term;

    verification(f, first, n, &hash);

    term.n = n;
    term.raw_before = f->before;
    term.raw_length = 0;
    term.raw_ends = ends;
    term.hashes = f->hashes + XET_HASH_LEN * first;
    term.verification = f->given ? &hash : NULL;

    for (i = 0; i < n; i++) {
        term.raw_length += f->sizes[first + i];
        xet_put_u32(ends + 4 * i, term.raw_before + term.raw_length);
    }

    return xet_edit_ranges_add(&edits, &term);
}


static xet_status_t
answer(const file_t *f, const xet_range_t *ranges, size_t n, size_t max)
{
    unsigned      i, first;
    xet_status_t  status;

    memset(&edits, 0xa5, sizeof(edits));

    status = xet_edit_ranges_init(&edits, &xet_suite_default, xet_test_alloc,
                              &pool, ranges, n, f->size, max);

    for (i = 0, first = 0; i < f->nterms && status == XET_OK; i++) {
        status = add(f, first, f->terms[i]);
        first += f->terms[i];
    }

    return (status == XET_OK) ? xet_edit_ranges_finish(&edits) : status;
}


static void
test_ranges(void)
{
    size_t            n;
    xet_range_t       ranges[5];
    xet_range_spec_t  specs[5];

    static const xet_range_spec_t  list[] = {
        { XET_RANGE_CLOSED, 500, 599 },
        { XET_RANGE_CLOSED, 100, 199 },
        { XET_RANGE_CLOSED, 1000, 2000 },
        { XET_RANGE_CLOSED, 150, 180 },
        { XET_RANGE_CLOSED, 200, 200 }
    };

    n = 5;
    xet_ok(xet_edit_ranges_ranges(list, ranges, &n, 1000) == XET_OK && n == 2,
           "sorted, merged, the one past the end dropped");
    xet_ok(ranges[0].start == 100 && ranges[0].end == 201
           && ranges[1].start == 500 && ranges[1].end == 600,
           "those that overlap or touch are one");

    n = 5;
    xet_ok(xet_edit_ranges_ranges(list, ranges, &n, 1001) == XET_OK && n == 3
           && ranges[2].start == 1000 && ranges[2].end == 1001,
           "clamped to the size");

    n = 2;
    specs[0] = list[0];
    specs[1] = list[1];
    specs[1].first = 400;
    specs[1].last = 498;
    xet_edit_ranges_ranges(specs, ranges, &n, 1000);
    xet_is_u64(n, 2, "a byte between them keeps them apart");

    n = 2;
    specs[1].last = 499;
    xet_edit_ranges_ranges(specs, ranges, &n, 1000);
    xet_ok(n == 1 && ranges[0].start == 400 && ranges[0].end == 600,
           "no byte between them does not");

    n = 1;
    xet_is_u64(xet_edit_ranges_ranges(list, ranges, &n, 500),
               XET_RANGE_PAST_END, "nothing is left");
    n = 5;
    xet_is_u64(xet_edit_ranges_ranges(list, ranges, &n, 0), XET_RANGE_PAST_END,
               "of an empty file neither");
    n = 0;
    xet_is_u64(xet_edit_ranges_ranges(list, ranges, &n, 500),
               XET_RANGE_PAST_END, "nor of no ranges");

    n = 1;
    specs[0].kind = XET_RANGE_CLOSED;
    specs[0].first = 0;
    specs[0].last = INT64_MAX;
    xet_ok(xet_edit_ranges_ranges(specs, ranges, &n, 7) == XET_OK
           && ranges[0].start == 0 && ranges[0].end == 7, "the whole file");
}


/*
 * Returns the chunk size for a letter ("|" separates terms): a is the smallest
 * and b the largest stable size (xet_suite_t), s is stable, x and y are just
 * outside, m is the maximum size, t is one byte.
 */

static uint32_t
letter(char c)
{
    switch (c) {

    case 'a':
        return 16384;

    case 'b':
        return 122879;

    case 's':
        return 65536;

    case 'x':
        return 16383;

    case 'y':
        return 122880;

    case 'm':
        return 131072;

    default:
        return 1;
    }
}


static void
parse(file_t *f, const char *text)
{
    unsigned  n;

    f->n = 0;
    f->nterms = 0;
    f->before = 5;
    f->given = 0;

    for (n = 0; /* void */ ; text++) {

        if (*text == '|' || *text == '\0') {
            f->terms[f->nterms++] = n;
            n = 0;

            if (*text == '\0') {
                break;
            }

            continue;
        }

        memset(f->hashes + XET_HASH_LEN * f->n, (int) f->n + 1, XET_HASH_LEN);
        f->sizes[f->n++] = letter(*text);
        n++;
    }

    layout(f);
}


/*
 * Each pair in dirty and edits has the number of the first chunk and of the
 * chunk after the last.  If both numbers in dirty are equal, the range is the
 * last byte of that chunk.
 */

static const struct {
    const char  *name;
    const char  *chunks;
    unsigned     ndirty;
    unsigned     dirty[3][2];
    unsigned     n;
    unsigned     edits[3][2];
    const char  *gaps;             /* one digit per gap; 0: null */
    unsigned     clean;            /* terms outside the ranges */
} cases[] = {
    { "the whole file", "sss", 1, { { 0, 3 } }, 1, { { 0, 3 } }, "00", 0 },
    { "one term is dirty, the next one resyncs", "ss|ss|ss", 1, { { 0, 2 } },
      1, { { 0, 4 } }, "01", 1 },
    { "the last term", "ss|ss|ss", 1, { { 4, 6 } }, 1, { { 4, 6 } }, "10", 2 },
    { "in the middle", "ss|ss|ss|ss", 1, { { 2, 4 } }, 1, { { 2, 6 } }, "11",
      2 },
    { "two chunks of a long term are enough, its end is the window's",
      "ss|ssssss|ss", 1, { { 0, 2 } }, 1, { { 0, 8 } }, "01", 1 },
    { "one byte in a term: from its start, to its end", "ss|sssss|ss", 1,
      { { 3, 3 } }, 1, { { 2, 7 } }, "11", 2 },
    { "one byte, and only one stable chunk behind it", "ss|ssss|s|s|ss", 1,
      { { 4, 4 } }, 1, { { 2, 7 } }, "11", 3 },
    { "one byte in the last chunk of a term", "ss|ss|s|s|s", 1, { { 3, 3 } },
      1, { { 2, 6 } }, "11", 2 },
    { "the smallest stable size", "s|a|a|s", 1, { { 0, 1 } }, 1,
      { { 0, 3 } }, "01", 1 },
    { "one below it", "s|a|x|a|a|s", 1, { { 0, 1 } }, 1, { { 0, 5 } }, "01",
      1 },
    { "the greatest stable size", "s|b|b|s", 1, { { 0, 1 } }, 1,
      { { 0, 3 } }, "01", 1 },
    { "one above it", "s|b|y|b|b|s", 1, { { 0, 1 } }, 1, { { 0, 5 } }, "01",
      1 },
    { "forced cuts never resync", "s|mmmm|m|m", 1, { { 0, 1 } }, 1,
      { { 0, 7 } }, "00", 0 },
    { "two stable ones, but not in a row", "s|stst|st|s|s|s", 1, { { 0, 1 } },
      1, { { 0, 9 } }, "01", 1 },
    { "two windows", "s|s|s|s|s|s|s|s", 2, { { 0, 1 }, { 4, 5 } }, 2,
      { { 0, 3 }, { 4, 7 } }, "011", 2 },
    { "touching windows are one", "s|s|s|s|s|s|s|s", 2,
      { { 0, 1 }, { 3, 4 } }, 1, { { 0, 6 } }, "01", 2 },
    { "reached on the way", "s|s|s|s|s|s|s|s", 2, { { 0, 1 }, { 2, 3 } }, 1,
      { { 0, 5 } }, "01", 3 },
    { "in the term where the window would have ended", "s|ssssss|s|s|s", 2,
      { { 0, 1 }, { 6, 6 } }, 1, { { 0, 9 } }, "01", 1 },
    { "late in the next term: one window", "s|ss|ssss|s|s|s", 2,
      { { 0, 1 }, { 6, 6 } }, 1, { { 0, 9 } }, "01", 1 },
    { "three windows, the last to the end", "s|s|s|s|s|s|s|s|s|s", 3,
      { { 0, 1 }, { 4, 5 }, { 9, 10 } }, 3, { { 0, 3 }, { 4, 7 }, { 9, 10 } },
      "0110", 3 },
    { "one chunk", "t", 1, { { 0, 1 } }, 1, { { 0, 1 } }, "00", 0 },
    { "the end of the file is clean, and too short to resync", "s|s|t", 1,
      { { 1, 2 } }, 1, { { 1, 3 } }, "10", 1 },
    { "two that resync end with the file", "s|s|s|s", 1, { { 1, 2 } }, 1,
      { { 1, 4 } }, "10", 1 }
};


static void
test_cases(void)
{
    size_t       i, k, w;
    unsigned     first, last, wrong;
    xet_range_t  ranges[3];

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        parse(&file, cases[i].chunks);

        for (k = 0; k < cases[i].ndirty; k++) {
            first = cases[i].dirty[k][0];
            last = cases[i].dirty[k][1];

            ranges[k].start = file.starts[first];
            ranges[k].end = file.starts[last];

            if (first == last) {
                ranges[k].end = file.starts[first + 1];
                ranges[k].start = ranges[k].end - 1;
            }
        }

        wrong = answer(&file, ranges, k, SIZE_MAX) != XET_OK
                || edits.n != cases[i].n
                || edits.nverifications != cases[i].clean
                || edits.chunks != file.n
                || edits.size != file.size;

        for (w = 0; !wrong && w <= edits.n; w++) {
            wrong = (edits.gaps[w].n != 0) != (cases[i].gaps[w] == '1');

            if (w == edits.n || wrong) {
                break;
            }

            wrong = edits.edits[w].start
                    != file.starts[cases[i].edits[w][0]]
                    || edits.edits[w].end
                       != file.starts[cases[i].edits[w][1]];
        }

        xet_ok(!wrong, "%s", cases[i].name);

        xet_test_pool_free(&pool);
    }
}


static void
test_suite(void)
{
    xet_is_u64(xet_suite_default.chunk_stable_min, 16384, "stable, least");
    xet_is_u64(xet_suite_default.chunk_stable_max, 122880, "stable, below");
}


/* Finds edit ranges chunk by chunk, then extends them to whole terms. */

static size_t
reference(const file_t *f, const xet_range_t *ranges, size_t n,
    xet_range_t *found)
{
    int       open, dirty, stable, before;
    size_t    k, nfound;
    unsigned  i, t, first;
    uint64_t  from, to;

    nfound = 0;
    open = 0;
    before = 0;

    for (i = 0; i < f->n; i++) {
        dirty = 0;

        for (k = 0; k < n; k++) {
            dirty |= ranges[k].start < f->starts[i + 1]
                     && f->starts[i] < ranges[k].end;
        }

        stable = f->sizes[i] >= 16384 && f->sizes[i] < 122880 && !dirty;

        if (dirty && !open) {
            found[nfound].start = f->starts[i];
            open = 1;
        }

        if (open) {
            found[nfound].end = f->starts[i + 1];

            if (!dirty && stable && before) {
                nfound++;
                open = 0;
            }
        }

        before = stable;
    }

    nfound += (size_t) open;

    for (k = 0; k < nfound; k++) {
        for (t = 0, first = 0; t < f->nterms; first += f->terms[t++]) {
            from = f->starts[first];
            to = f->starts[first + f->terms[t]];

            if (from <= found[k].start && found[k].start < to) {
                found[k].start = from;
            }

            if (from < found[k].end && found[k].end <= to) {
                found[k].end = to;
            }
        }
    }

    for (k = 1, n = nfound ? 1 : 0; k < nfound; k++) {

        if (found[k].start <= found[n - 1].end) {
            found[n - 1].end = found[k].end;

        } else {
            found[n++] = found[k];
        }
    }

    return n;
}


static unsigned
same_subtree(const xet_subtree_t *a, const xet_subtree_t *b)
{
    size_t    k;
    unsigned  i, same;

    same = a->n == b->n && a->nlevels == b->nlevels
           && a->at_start == b->at_start && a->at_end == b->at_end;

    for (i = 0; same && i < a->nlevels; i++) {
        same = a->levels[i].left == b->levels[i].left
               && a->levels[i].right == b->levels[i].right;
    }

    for (k = 0; same && k < a->n; k++) {
        same = a->nodes[k].size == b->nodes[k].size
               && xet_hash_equal(&a->nodes[k].hash, &b->nodes[k].hash);
    }

    return same;
}


/* Checks the gaps, their terms, and the root of the gaps and edit ranges. */

static unsigned
compare(const file_t *f, const xet_range_t *want, size_t n)
{
    size_t                 k, t, nverified;
    unsigned               i, first, wrong;
    uint64_t               from, to;
    xet_hash_t             hash, root;
    xet_merkle_t           m;
    xet_subtree_t          s;
    xet_subtree_builder_t  b, whole;

    if (edits.n != n || memcmp(edits.edits, want, n * sizeof(want[0]))) {
        return 1;
    }

    xet_subtree_init(&b, &xet_suite_default, xet_test_alloc, &pool, SIZE_MAX);
    xet_subtree_init(&whole, &xet_suite_default, xet_test_alloc, &pool,
                     SIZE_MAX);
    xet_subtree_start(&whole, 1, 1);
    xet_merkle_init(&m, &xet_suite_default);

    wrong = 0;

    for (k = 0; k <= n; k++) {
        from = k ? want[k - 1].end : 0;
        to = (k < n) ? want[k].start : f->size;

        xet_subtree_start(&b, k == 0, k == n);

        for (i = 0; i < f->n; i++) {

            if (f->starts[i] >= from && f->starts[i] < to) {
                xet_subtree_add(&b, f->hashes + XET_HASH_LEN * i,
                                f->sizes[i]);
            }

            if (k < n && f->starts[i] < want[k].end && f->starts[i] >= from) {
                xet_merkle_add(&m, f->hashes + XET_HASH_LEN * i, f->sizes[i]);

            } else if (k == n && f->starts[i] >= from) {
                xet_merkle_add(&m, f->hashes + XET_HASH_LEN * i, f->sizes[i]);
            }
        }

        xet_subtree_finish(&b, &s);
        wrong += !same_subtree(&s, &edits.gaps[k]);

        wrong += edits.gaps[k].n
                 && xet_subtree_join(&whole, &edits.gaps[k]) != XET_OK;

        for (i = 0; k < n && i < f->n; i++) {

            if (f->starts[i] >= want[k].start && f->starts[i] < want[k].end) {
                xet_subtree_add(&whole, f->hashes + XET_HASH_LEN * i,
                                f->sizes[i]);
            }
        }
    }

    xet_merkle_finish(&m, &hash);

    wrong += xet_subtree_finish(&whole, &s) != XET_OK
             || xet_subtree_root(&s, &root) != XET_OK
             || !xet_hash_equal(&root, &hash);

    for (t = 0, first = 0, nverified = 0; t < f->nterms;
         first += f->terms[t++])
    {
        from = f->starts[first];
        to = f->starts[first + f->terms[t]];

        for (k = 0; k < n; k++) {

            if (want[k].start < to && from < want[k].end) {
                break;
            }
        }

        if (k < n) {
            continue;
        }

        verification(f, first, f->terms[t], &hash);

        wrong += nverified >= edits.nverifications
                 || !xet_hash_equal(&hash, &edits.verifications[nverified]);
        nverified++;
    }

    return wrong + (nverified != edits.nverifications);
}


static void
random_file(file_t *f, uint64_t *state)
{
    unsigned  i, kind, most, left;

    f->n = 1 + (unsigned) (xet_test_random(state)
                           % (xet_test_random(state) % 4 ? 60 : 400));
    f->given = (int) (xet_test_random(state) % 2);
    f->before = (uint32_t) (xet_test_random(state) % 70000000);
    f->nterms = 0;

    kind = (unsigned) (xet_test_random(state) % 4);
    most = 1 + (unsigned) (xet_test_random(state) % 20);

    for (i = 0; i < f->n; i++) {
        xet_test_random_hash(state, f->hashes + XET_HASH_LEN * i);

        f->sizes[i] = 1 + (uint32_t) (xet_test_random(state) % 131072);

        if (kind == 0) {
            f->sizes[i] = 65536;

        } else if (kind == 1) {
            f->sizes[i] = letter("abxymst"[xet_test_random(state) % 7]);
        }
    }

    for (left = f->n; left; left -= f->terms[f->nterms++]) {
        i = 1 + (unsigned) (xet_test_random(state) % most);
        f->terms[f->nterms] = (i < left) ? i : left;
    }

    layout(f);
}


static void
test_random(void)
{
    size_t            n, k, nfound;
    uint64_t          state, few;
    unsigned          round, wrong, many;
    xet_range_t       ranges[RANGES_MAX], found[CHUNKS_MAX];
    xet_range_spec_t  specs[RANGES_MAX];

    state = 19;
    wrong = 0;
    many = 0;

    for (round = 0; round < 2000; round++) {
        random_file(&file, &state);

        n = 1 + (size_t) (xet_test_random(&state)
                          % (round % 4 ? 4 : RANGES_MAX));
        few = (round % 2) ? 1 : 200000;

        for (k = 0; k < n; k++) {
            specs[k].kind = XET_RANGE_CLOSED;
            specs[k].first = xet_test_random(&state) % file.size;
            specs[k].last = specs[k].first + xet_test_random(&state) % few;
        }

        if (xet_edit_ranges_ranges(specs, ranges, &n, file.size) != XET_OK
            || answer(&file, ranges, n, SIZE_MAX) != XET_OK)
        {
            wrong++;
            break;
        }

        nfound = reference(&file, ranges, n, found);
        many += nfound > 1;

        if (compare(&file, found, nfound)) {
            printf("# round %u: %zu windows, want %zu\n", round, edits.n,
                   nfound);
            wrong++;
        }

        xet_test_pool_free(&pool);
    }

    xet_is_u64(wrong, 0, "2000 random files");
    xet_ok(many > 200, "%u of them with more than one window", many);
}


static void
test_json(void)
{
    size_t        len;
    uint8_t      *text;
    xet_buf_t     b;
    xet_range_t   range;

    /* terms: 0 is clean, 1 is dirty, 2 has the resync, 3 is clean */

    parse(&file, "t|s|ss|s");
    file.given = 1;

    range.start = 1;
    range.end = 2;

    xet_is_u64(answer(&file, &range, 1, SIZE_MAX), XET_OK, "an answer");

    xet_buf_init(&b, xet_test_alloc, &pool, 0);
    xet_is_u64(xet_edit_ranges_json(&edits, &b), XET_OK, "its JSON");

    text = xet_test_flatten(&pool, &b, &len);

    xet_ok(strcmp((char *) text,
                  "{\"totalChunks\":5,\"fileSize\":262145,"
                  "\"windows\":[{\"dirtyByteRange\":[1,196609]}],"
                  "\"hashRanges\":["
                  "{\"nodes\":[{\"hash\":\"01010101010101010101010101010101"
                  "01010101010101010101010101010101\",\"size\":1}],"
                  "\"levels\":[[1,0]],\"at_start\":true,\"at_end\":false},"
                  "{\"nodes\":[{\"hash\":\"05050505050505050505050505050505"
                  "05050505050505050505050505050505\",\"size\":65536}],"
                  "\"levels\":[[1,0]],\"at_start\":false,\"at_end\":true}],"
                  "\"gapVerification\":["
                  "\"7777777700000000777777777777777777777777777777777777777"
                  "777777777\","
                  "\"7777777700000004777777777777777777777777777777777777777"
                  "777777777\"]}") == 0, "every byte of it");

    parse(&file, "s");
    range.start = 0;
    range.end = 65536;

    answer(&file, &range, 1, SIZE_MAX);
    xet_buf_init(&b, xet_test_alloc, &pool, 0);
    xet_edit_ranges_json(&edits, &b);
    text = xet_test_flatten(&pool, &b, &len);

    xet_ok(strcmp((char *) text,
                  "{\"totalChunks\":1,\"fileSize\":65536,"
                  "\"windows\":[{\"dirtyByteRange\":[0,65536]}],"
                  "\"hashRanges\":[null,null],\"gapVerification\":[]}") == 0,
           "no gaps");

    xet_buf_init(&b, xet_test_alloc, &pool, 0);
    pool.limit = pool.n;
    xet_is_u64(xet_edit_ranges_json(&edits, &b), XET_NOMEM, "no memory");
    pool.limit = 0;

    xet_test_pool_free(&pool);
}


static xet_status_t
damaged(xet_edit_ranges_term_t *term, uint64_t size)
{
    xet_range_t  range;

    range.start = 0;
    range.end = 1;

    xet_edit_ranges_init(&edits, &xet_suite_default, xet_test_alloc, &pool,
                     &range, 1, size, SIZE_MAX);

    return xet_edit_ranges_add(&edits, term);
}


static void
test_damaged(void)
{
    uint8_t                 ends[8193 * 4], hashes[8193 * XET_HASH_LEN];
    unsigned                i;
    xet_edit_ranges_term_t  term, good;

    memset(hashes, 3, sizeof(hashes));

    for (i = 0; i < 8193; i++) {
        xet_put_u32(ends + 4 * i, 1000 + (i + 1) * 131072);
    }

    good.n = 2;
    good.raw_before = 1000;
    good.raw_length = 262144;
    good.raw_ends = ends;
    good.hashes = hashes;
    good.verification = NULL;

    term = good;
    xet_is_u64(damaged(&term, 262144), XET_OK, "a good term");
    xet_is_u64(xet_edit_ranges_finish(&edits), XET_OK, "the whole file");
    xet_is_u64(damaged(&term, 262145), XET_OK, "a part of the file");
    xet_is_u64(xet_edit_ranges_finish(&edits), XET_PLAN_DAMAGED,
               "which is not the whole");
    xet_is_u64(damaged(&term, 262143), XET_PLAN_DAMAGED, "past the end");

    damaged(&term, 262144);
    xet_is_u64(xet_edit_ranges_add(&edits, &term), XET_PLAN_DAMAGED,
               "a term behind the end");

    term.n = 0;
    term.raw_length = 0;
    xet_is_u64(damaged(&term, 262144), XET_PLAN_DAMAGED, "no chunks");

    term.n = 8192;
    term.raw_length = 8192u * 131072;
    xet_is_u64(damaged(&term, 1u << 31), XET_OK, "8192 chunks");
    term.n = 8193;
    term.raw_length = 8193u * 131072;
    xet_is_u64(damaged(&term, 1u << 31), XET_PLAN_DAMAGED, "8193 chunks");

    term = good;
    term.raw_length--;
    xet_is_u64(damaged(&term, 1 << 20), XET_PLAN_DAMAGED, "a byte less");
    term.raw_length += 2;
    xet_is_u64(damaged(&term, 1 << 20), XET_PLAN_DAMAGED, "a byte more");

    term = good;
    term.raw_before--;
    term.raw_length++;
    xet_is_u64(damaged(&term, 1 << 20), XET_PLAN_DAMAGED,
               "a chunk of 131073 bytes");

    term = good;
    xet_put_u32(ends + 4, 1000 + 131072);
    term.raw_length = 131072;
    xet_is_u64(damaged(&term, 1 << 20), XET_PLAN_DAMAGED,
               "a chunk of no bytes");
    xet_put_u32(ends + 4, 1000);
    term.raw_length = 0;
    xet_is_u64(damaged(&term, 1 << 20), XET_PLAN_DAMAGED,
               "a chunk that ends before it starts");

    xet_test_pool_free(&pool);
}


static void
test_init(void)
{
    xet_range_t  ranges[2];

#define init(n, size)                                                         \
    xet_edit_ranges_init(&edits, &xet_suite_default, xet_test_alloc, &pool,   \
                     ranges, n, size, SIZE_MAX)

    ranges[0].start = 10;
    ranges[0].end = 20;
    ranges[1].start = 21;
    ranges[1].end = 30;

    xet_is_u64(init(2, 30), XET_OK, "good ranges");
    xet_is_u64(init(0, 30), XET_INTERNAL, "no ranges");
    xet_is_u64(init(2, 29), XET_INTERNAL, "past the end");

    ranges[1].start = 20;
    xet_is_u64(init(2, 30), XET_INTERNAL, "ranges that touch");

    ranges[1].start = 5;
    ranges[1].end = 8;
    xet_is_u64(init(2, 30), XET_INTERNAL, "out of order");

    ranges[0].end = 10;
    xet_is_u64(init(1, 30), XET_INTERNAL, "an empty range");

    xet_test_pool_free(&pool);
}


static void
test_limit(void)
{
    size_t        i, nodes;
    uint64_t      state;
    unsigned      n, failed;
    xet_range_t   range;
    xet_status_t  status;

    state = 4;

    do {
        random_file(&file, &state);
    } while (file.n < 300 || file.nterms < 140);

    range.start = file.size / 2;
    range.end = range.start + 1;

    answer(&file, &range, 1, SIZE_MAX);

    for (i = 0, nodes = 0; i <= edits.n; i++) {
        nodes += edits.gaps[i].n;
    }

    xet_ok(nodes > 50, "%zu nodes in all gaps", nodes);

    status = answer(&file, &range, 1, 2 * nodes);
    xet_ok(status == XET_OK && !edits.gap.over, "a limit above it");

    status = answer(&file, &range, 1, nodes - 1);
    xet_ok(status == XET_NOMEM && edits.gap.over, "a limit one below");

    failed = 0;

    for (n = 1; n < 1000; n++) {
        xet_test_pool_free(&pool);
        pool.limit = n;
        status = answer(&file, &range, 1, SIZE_MAX);

        if (status == XET_OK) {
            break;
        }

        failed += status == XET_NOMEM && !edits.gap.over;
    }

    pool.limit = 0;

    xet_ok(n > 8 && n < 1000 && failed == n - 1,
           "each of %u allocations is checked", n);

    xet_test_pool_free(&pool);
}


/* Checks that one pass is enough, and that only the response needs memory. */

static void
test_memory(void)
{
    unsigned     i, k;
    uint64_t     state;
    xet_range_t  range;

    state = 6;
    file.n = 1000;
    file.before = 0;
    file.given = 1;

    for (i = 0; i < file.n; i++) {
        file.sizes[i] = 65536;
    }

    layout(&file);

    range.start = 0;
    range.end = 1;

    xet_edit_ranges_init(&edits, &xet_suite_default, xet_test_alloc, &pool,
                     &range, 1, 200 * file.size, SIZE_MAX);

    for (k = 0; k < 200; k++) {

        for (i = 0; i < file.n; i++) {
            xet_test_random_hash(&state, file.hashes + XET_HASH_LEN * i);
        }

        add(&file, 0, file.n);
    }

    xet_is_u64(xet_edit_ranges_finish(&edits), XET_OK,
               "a file of 200,000 chunks");
    xet_is_u64(edits.chunks, 200000, "all of them counted");
    xet_is_u64(edits.nverifications, 199, "199 clean terms");
    xet_ok(pool.size < 200000, "%zu bytes for %zu nodes", pool.size,
           edits.gaps[1].n);

    xet_test_pool_free(&pool);
}


int
main(void)
{
    test_ranges();
    test_suite();
    test_cases();
    test_random();
    test_json();
    test_damaged();
    test_init();
    test_limit();
    test_memory();

    return xet_done();
}
