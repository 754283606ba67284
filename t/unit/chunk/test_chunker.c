
/*
 * Tests the chunker: published boundaries and, for any split of the data, the
 * same chunks as from the draft's loop, which hashes every byte.
 */


#include "xet_test.h"
#include "xet_chunk.h"
#include "xet_hash.h"
#include "xet_vectors.h"
#include "xet_reference.h"


#define CUTS_MAX  1024


typedef struct {
    size_t  n;
    size_t  end[CUTS_MAX];         /* end of each chunk */
} cuts_t;


/* Cuts with the draft's loop, which hashes and checks every byte. */

static void
reference(const xet_suite_t *suite, const uint8_t *data, size_t len,
    cuts_t *cuts)
{
    size_t    i, size;
    uint64_t  h;

    cuts->n = 0;
    size = 0;
    h = 0;

    for (i = 0; i < len; i++) {
        h = (h << 1) + suite->gear[data[i]];
        size++;

        if (size < suite->chunk_min) {
            continue;
        }

        if (size >= suite->chunk_max || (h & suite->chunk_mask) == 0) {
            cuts->end[cuts->n++] = i + 1;
            size = 0;
            h = 0;
        }
    }

    if (size) {
        cuts->end[cuts->n++] = len;
    }
}


/*
 * Feeds pieces of step bytes or, if step is negative, of random sizes up to
 * -step.  Each piece is in its own heap block, so that a sanitizer detects a
 * read past it.  Returns 0 if the chunker breaks its contract.
 */

static int
feed(const xet_suite_t *suite, const uint8_t *data, size_t len, long step,
    uint64_t *state, cuts_t *cuts)
{
    int             cut;
    size_t          i, k, n, piece;
    uint8_t        *copy;
    xet_chunker_t   c;

    xet_chunker_init(&c, suite);
    cuts->n = 0;
    cut = 1;

    for (i = 0; i < len; i += piece) {
        piece = (step > 0) ? (size_t) step
                           : (size_t) (xet_splitmix64(state)
                                       % (uint64_t) -step) + 1;

        if (piece > len - i) {
            piece = len - i;
        }

        copy = malloc(piece);
        memcpy(copy, data + i, piece);

        for (k = 0; k < piece; k += n) {
            n = xet_chunker_feed(&c, copy + k, piece - k, &cut);

            if (n == 0 || n > piece - k || (!cut && n != piece - k)
                || cuts->n == CUTS_MAX)
            {
                free(copy);
                return 0;
            }

            if (cut) {
                cuts->end[cuts->n++] = i + k + n;
            }
        }

        free(copy);
    }

    if (!cut) {
        cuts->end[cuts->n++] = len;
    }

    return 1;
}


static int
same(const cuts_t *a, const cuts_t *b)
{
    return a->n == b->n
           && memcmp(a->end, b->end, a->n * sizeof(a->end[0])) == 0;
}


static int
same_as_json(const cuts_t *cuts, const json_t *list)
{
    size_t  i;

    if (cuts->n != json_array_size(list)) {
        return 0;
    }

    for (i = 0; i < cuts->n; i++) {
        if ((json_int_t) cuts->end[i]
            != json_integer_value(json_array_get(list, i)))
        {
            return 0;
        }
    }

    return 1;
}


/*
 * Returns how many piece sizes give wrong chunks.  Piece sizes: the whole
 * input; 1, 37 and 255 bytes; and sizes near the hash window (64), the minimum
 * and maximum chunk size, and the start of hashing (8128 bytes into a chunk).
 * Adds 1 if the chunks of the reference algorithm differ from want.
 */

static unsigned
wrong_splits(const uint8_t *data, size_t len, const json_t *want)
{
    size_t    i;
    cuts_t    cuts, naive;
    unsigned  wrong;

    static const long  steps[] = { 100000000, 1, 37, 255, 64, 65, 8126, 8127,
                                   8128, 8191, 8192, 8193, 131071, 131072,
                                   131073 };

    reference(&xet_suite_default, data, len, &naive);

    wrong = (want && !same_as_json(&naive, want));

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        wrong += !feed(&xet_suite_default, data, len, steps[i], NULL, &cuts)
                 || !same(&cuts, &naive);
    }

    return wrong;
}


/* Checks the hashes of the chunks and, if known, the root and the file hash. */

static void
check_hashes(const uint8_t *data, size_t len, const json_t *list,
    const char *root, const char *file)
{
    size_t        i, start;
    cuts_t        cuts;
    unsigned      wrong;
    xet_hash_t    hash, want;
    xet_merkle_t  m;

    xet_merkle_init(&m, &xet_suite_default);

    feed(&xet_suite_default, data, len, 100000000, NULL, &cuts);

    wrong = 0;
    start = 0;

    for (i = 0; i < cuts.n; i++) {
        xet_hash_chunk(&xet_suite_default, data + start, cuts.end[i] - start,
                       &hash);
        xet_merkle_add(&m, hash.bytes, cuts.end[i] - start);

        if (list) {
            want = xet_vectors_hash(json_array_get(list, i));
            wrong += !xet_hash_equal(&hash, &want);
        }

        start = cuts.end[i];
    }

    if (list) {
        xet_ok(wrong == 0 && cuts.n == json_array_size(list),
               "hashes of its %zu chunks", cuts.n);
    }

    xet_merkle_finish(&m, &hash);

    if (root) {
        xet_is_hash(&hash, root, "its root");
    }

    if (file) {
        xet_hash_file(&xet_suite_default, &hash, &hash);
        xet_is_hash(&hash, file, "its file hash");
    }
}


static void
test_published(void)
{
    size_t       c, n;
    json_t      *root, *cases, *one, *want, *derived;
    uint8_t     *data;
    const char  *name;

    root = xet_vectors_load("xet/vectors/chunk_boundaries.json");
    if (root == NULL) {
        return;
    }

    cases = json_object_get(root, "cases");
    xet_is_u64(json_array_size(cases), 3, "three published files");

    for (c = 0; c < json_array_size(cases); c++) {
        one = json_array_get(cases, c);
        name = json_string_value(json_object_get(one, "name"));
        want = json_object_get(one, "boundaries");
        want = want ? want : json_object_get(one, "boundaries_derived_here");
        derived = json_object_get(one, "derived_here");

        if (json_object_get(one, "n")) {
            n = (size_t) json_integer_value(json_object_get(one, "n"));
            data = xet_splitmix64_data(n,
                  (uint64_t) json_integer_value(json_object_get(one,
                                                                "seed")));

        } else {
            n = 1000000;
            data = malloc(n);
            memset(data, 0x3b, n);
        }

        xet_is_u64(wrong_splits(data, n, want), 0, name);

        check_hashes(data, n, json_object_get(derived, "chunk_hashes"),
                     json_string_value(json_object_get(derived,
                                                       "xorb_hash")),
                     json_string_value(json_object_get(derived,
                                                       "file_hash")));
        free(data);
    }

    json_decref(root);
}


/*
 * Tests data whose hash matches the mask just before, at and after the minimum.
 */

static void
test_triggering(void)
{
    size_t     c, len, n, piece, size;
    json_t    *root, *part, *cases, *one;
    uint8_t    data[65536], base[256];
    unsigned   wrong;

    root = xet_vectors_load("xet/vectors/chunk_boundaries.json");
    if (root == NULL) {
        return;
    }

    part = json_object_get(root, "triggering");
    cases = json_object_get(part, "cases");
    size = strlen(json_string_value(json_object_get(part,
                                                "base_pattern_hex"))) / 2;

    xet_ok(size <= sizeof(base)
           && xet_vectors_hex(json_object_get(part, "base_pattern_hex"),
                              base, size)
           && json_integer_value(json_object_get(part, "n")) == 65536,
           "the triggering pattern");
    xet_is_u64(json_array_size(cases), 128, "128 triggering inputs");

    wrong = 0;

    for (c = 0; c < json_array_size(cases); c++) {
        one = json_array_get(cases, c);

        n = (size_t) json_integer_value(json_object_get(one, "padding"));

        memset(data, 0, sizeof(data));
        memcpy(data, base, size);

        for (len = size + n; len < sizeof(data); len += piece) {
            piece = (len < sizeof(data) - len) ? len : sizeof(data) - len;
            memcpy(data + len, data, piece);
        }

        wrong += data[11111]
                 != json_integer_value(json_object_get(one,
                                                       "byte_at_11111"));
        wrong += wrong_splits(data, sizeof(data),
                              json_object_get(one, "boundaries"));
    }

    xet_is_u64(wrong, 0, "all of them, fed in fifteen ways");

    json_decref(root);
}


static void
test_clients(void)
{
    size_t       c, i, n;
    json_t      *root, *part, *list, *one;
    uint8_t     *data, *hashes;
    uint64_t     a, b;
    xet_hash_t   hash;

    root = xet_vectors_load("xet/vectors/huggingfacejs_hashes.json");
    if (root == NULL) {
        return;
    }

    part = json_object_get(root, "splitmix64_1000000_seed0");
    data = xet_splitmix64_data(1000000, 0);

    xet_is_u64(wrong_splits(data, 1000000,
                            json_object_get(part, "boundaries")), 0,
               "huggingface.js: boundaries");
    list = json_object_get(part, "chunk_hashes");
    check_hashes(data, 1000000, list, NULL, NULL);

    free(data);

    /* the verification hash over these chunks comes from another client */

    hashes = malloc(json_array_size(list) * XET_HASH_LEN + 1);

    for (i = 0; i < json_array_size(list); i++) {
        hash = xet_vectors_hash(json_array_get(list, i));
        memcpy(hashes + i * XET_HASH_LEN, hash.bytes, XET_HASH_LEN);
    }

    xet_hash_verification(&xet_suite_default, hashes, i, &hash);
    free(hashes);

    list = json_object_get(root, "linear");
    xet_is_u64(json_array_size(list), 2, "huggingface.js: two linear files");

    for (c = 0; c < json_array_size(list); c++) {
        one = json_array_get(list, c);
        n = (size_t) json_integer_value(json_object_get(one, "n"));
        a = (uint64_t) json_integer_value(json_object_get(one, "a"));
        b = (uint64_t) json_integer_value(json_object_get(one, "b"));

        data = malloc(n + 1);

        for (i = 0; i < n; i++) {
            data[i] = (uint8_t) (i * a + b);
        }

        check_hashes(data, n, NULL,
                     json_string_value(json_object_get(one, "xorb_hash")),
                     json_string_value(json_object_get(one, "file_hash")));
        free(data);
    }

    json_decref(root);

    root = xet_vectors_load("xet/vectors/extra_hashes.json");
    if (root == NULL) {
        return;
    }

    xet_is_hash(&hash, json_string_value(json_object_get(root,
         "verification_hash_over_19_chunks_of_splitmix64_1000000_seed0")),
                "the verification hash of its 19 chunks");

    json_decref(root);
}


static void
test_reference_file(void)
{
    size_t                 i, len, start;
    cuts_t                 cuts;
    uint8_t               *data;
    unsigned               wrong;
    xet_hash_t             hash;
    xet_reference_chunk_t  listed[10];

    data = xet_reference_load("xet/derived/ev-population.first-10-chunks.csv",
                              &len);

    if (data == NULL) {
        return;
    }

    if (xet_reference_chunks(listed, 10) < 10) {
        xet_skip("reference data absent");
        free(data);
        return;
    }

    /*
     * The data is a prefix of the reference file that ends with chunk 9, so the
     * end of the data is also a boundary of the whole file.
     */

    feed(&xet_suite_default, data, len, 100000000, NULL, &cuts);
    xet_is_u64(cuts.n, 10, "ten chunks of the reference file");

    wrong = 0;
    start = 0;

    for (i = 0; i < cuts.n && i < 10; i++) {
        xet_hash_chunk(&xet_suite_default, data + start, cuts.end[i] - start,
                       &hash);

        wrong += cuts.end[i] - start != listed[i].size
                 || !xet_hash_equal(&hash, &listed[i].hash);

        start = cuts.end[i];
    }

    xet_is_u64(wrong, 0, "their lengths and hashes");
    xet_is_u64(wrong_splits(data, len, NULL), 0, "fed in fifteen ways");

    free(data);
}


static void
test_random(void)
{
    size_t     i, len;
    cuts_t     whole, cuts;
    uint8_t   *data;
    uint64_t   state;
    unsigned   round, wrong, total;

    static const long  steps[] = { -7, -100, -9000, -140000 };

    state = 99;
    wrong = 0;
    total = 0;

    for (round = 0; round < 60; round++) {
        len = (size_t) (xet_splitmix64(&state) % 700000);
        data = xet_splitmix64_data(len, xet_splitmix64(&state));

        /* a run of equal bytes has boundaries only at the maximum length */

        if (round % 3 == 0 && len > 300000) {
            memset(data + 1000, (int) round, 290000);
        }

        reference(&xet_suite_default, data, len, &whole);
        total += (unsigned) whole.n;

        for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
            wrong += !feed(&xet_suite_default, data, len, steps[i], &state,
                           &cuts)
                     || !same(&cuts, &whole);
        }

        free(data);
    }

    xet_is_u64(wrong, 0, "60 random files, split at random");
    xet_ok(total > 200, "%u chunks in all", total);
}


/* Tests minimum chunk sizes around the hash window of 64 bytes. */

static void
test_small_suite(void)
{
    long          step;
    cuts_t        whole, cuts;
    uint8_t      *data;
    unsigned      wrong, total;
    xet_suite_t   suite;

    suite = xet_suite_default;
    suite.chunk_mask = UINT64_C(0xf000000000000000);
    wrong = 0;
    total = 0;

    data = xet_splitmix64_data(10000, 3);

    for (suite.chunk_min = 1; suite.chunk_min < 80; suite.chunk_min++) {
        suite.chunk_max = suite.chunk_min * 2;

        reference(&suite, data, suite.chunk_min * 100, &whole);
        total += (unsigned) whole.n;

        for (step = 1; step < 160; step += 3) {
            wrong += !feed(&suite, data, suite.chunk_min * 100, step, NULL,
                           &cuts)
                     || !same(&cuts, &whole);
        }
    }

    xet_is_u64(wrong, 0, "79 suites of small chunks");
    xet_ok(total > 79 * 50 && total < 79 * 100, "%u chunks in all", total);

    free(data);
}


/* Finds 64 bytes after which the hash always matches the mask. */

static void
cutter(const xet_suite_t *suite, uint8_t *window)
{
    size_t    i;
    uint64_t  h, state;

    state = 1234;

    do {
        h = 0;

        for (i = 0; i < 64; i++) {
            window[i] = (uint8_t) xet_splitmix64(&state);
            h = (h << 1) + suite->gear[window[i]];
        }

    } while (h & suite->chunk_mask);
}


/*
 * Tests a single boundary at each position of the first blocks of the parallel
 * scan; then several boundaries, in any lane.
 */

static void
test_places(void)
{
    size_t          i, k, n, end, min;
    cuts_t          whole, cuts;
    uint8_t         window[64];
    uint8_t        *data;
    uint64_t        state;
    unsigned        wrong, found;
    xet_suite_t     suite;

    suite = xet_suite_default;
    suite.chunk_max = 30000;
    min = suite.chunk_min;

    cutter(&suite, window);

    n = min + 3 * 4096;
    data = malloc(n);

    wrong = 0;
    found = 0;

    for (end = min - 2; end <= n; end++) {
        memset(data, 0, n);
        memcpy(data + end - 64, window, 64);

        reference(&suite, data, n, &whole);

        wrong += !feed(&suite, data, n, 100000000, NULL, &cuts)
                 || !same(&cuts, &whole);
        found += (cuts.end[0] == end);
    }

    xet_is_u64(wrong, 0, "one place to cut at, in three blocks");
    xet_is_u64(found, 3 * 4096 + 1, "which is found from the minimum on");

    state = 5;
    wrong = 0;

    for (i = 0; i < 3000; i++) {
        memset(data, (int) (i % 3), n);

        for (k = 0; k < i % 5 + 2; k++) {
            end = min + xet_splitmix64(&state) % (3 * 4096);
            memcpy(data + end - 64, window, 64);
        }

        reference(&suite, data, n, &whole);

        wrong += !feed(&suite, data, n, 100000000, NULL, &cuts)
                 || !same(&cuts, &whole)
                 || !feed(&suite, data, n, -9000, &state, &cuts)
                 || !same(&cuts, &whole);
    }

    xet_is_u64(wrong, 0, "several places");

    free(data);
}


/* Tests data whose chunks all have the minimum size, or the maximum size. */

static void
test_dense(void)
{
    size_t       i, n;
    cuts_t       whole, cuts;
    uint8_t      window[64];
    uint8_t     *data;
    unsigned     wrong;
    xet_suite_t  suite;

    static const long  steps[] = { 100000000, 4096, 8192, 12288, 4097 };

    suite = xet_suite_default;
    n = 80 * suite.chunk_min;
    data = malloc(n);

    cutter(&suite, window);

    for (i = 0; i < n; i++) {
        data[i] = window[i % 64];
    }

    reference(&suite, data, n, &whole);
    wrong = 0;

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        wrong += !feed(&suite, data, n, steps[i], NULL, &cuts)
                 || !same(&cuts, &whole);
    }

    xet_is_u64(whole.n, 80, "a boundary every minimum");
    xet_is_u64(wrong, 0, "all of them");

    memset(data, 0, n);

    reference(&suite, data, n, &whole);
    wrong = 0;

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        wrong += !feed(&suite, data, n, steps[i], NULL, &cuts)
                 || !same(&cuts, &whole);
    }

    xet_is_u64(whole.n, 5, "a boundary every maximum");
    xet_is_u64(wrong, 0, "all of those");

    free(data);
}


/*
 * Tests suites with a boundary every 64 to 65,536 bytes on average: with noise,
 * repeated patterns of up to 300 bytes, and data with few distinct bytes.
 */

static void
test_suites(void)
{
    long         step;
    size_t       i, n;
    cuts_t       whole, cuts;
    uint8_t     *data;
    uint64_t     state;
    unsigned     round, wrong, total;
    xet_suite_t  suite;

    state = 77;
    wrong = 0;
    total = 0;

    suite = xet_suite_default;

    for (round = 0; round < 900; round++) {
        suite.chunk_mask = ~(uint64_t) 0 << (64 - 6 - round % 11);
        suite.chunk_min = 1 + (uint32_t) (xet_splitmix64(&state) % 9000);
        suite.chunk_max = suite.chunk_min
                          + (uint32_t) (xet_splitmix64(&state) % 70000);

        n = 4096 + (size_t) (xet_splitmix64(&state) % 60000);

        if (n / suite.chunk_min >= CUTS_MAX) {
            n = suite.chunk_min * (size_t) (CUTS_MAX - 1);
        }

        data = xet_splitmix64_data(n, round);

        if (round % 3 == 1) {
            for (i = round / 3; i < n; i++) {
                data[i] = data[i - round / 3];
            }

        } else if (round % 3 == 2) {
            for (i = 0; i < n; i++) {
                data[i] = data[i] < 250 ? 7 : data[i] & 3;
            }
        }

        reference(&suite, data, n, &whole);
        total += (unsigned) whole.n;

        step = (round % 2) ? -20000 : 100000000;

        wrong += !feed(&suite, data, n, step, &state, &cuts)
                 || !same(&cuts, &whole);

        free(data);
    }

    xet_is_u64(wrong, 0, "900 suites of any sizes");
    xet_ok(total > 3000, "%u chunks in all", total);
}


static void
test_edges(void)
{
    int             cut;
    size_t          n;
    uint8_t        *data;
    xet_chunker_t   c;

    xet_chunker_init(&c, &xet_suite_default);

    cut = 7;
    xet_ok(xet_chunker_feed(&c, NULL, 0, &cut) == 0 && cut == 0,
           "nothing in, no cut");

    data = calloc(1, 400000);

    n = xet_chunker_feed(&c, data, 131071, &cut);
    xet_ok(n == 131071 && cut == 0, "one byte short of the maximum");

    xet_ok(xet_chunker_feed(&c, NULL, 0, &cut) == 0 && cut == 0,
           "nothing in, still no cut");

    n = xet_chunker_feed(&c, data, 400000, &cut);
    xet_ok(n == 1 && cut == 1, "the cut at the maximum takes one more");

    n = xet_chunker_feed(&c, data, 400000, &cut);
    xet_ok(n == 131072 && cut == 1, "the next chunk starts afresh");

    free(data);
}


int
main(void)
{
    test_published();
    test_triggering();
    test_clients();
    test_reference_file();
    test_random();
    test_small_suite();
    test_places();
    test_dense();
    test_suites();
    test_edges();

    return xet_done();
}
