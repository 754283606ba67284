
/*
 * Tests the JSON bodies of plans, parsed with jansson: every number and key of
 * captured responses, groups of ranges, exact integers, and errors.
 */


#include <jansson.h>

#include "xet_test.h"
#include "xet_test_plan.h"
#include "xet_reference.h"


#define CAPTURED  "xet/captured-responses/"


/* The chunk ends of one xorb. */

static uint32_t  test_n;
static uint8_t   test_raw[8192 * 4];
static uint8_t   test_stored[8192 * 4];


static xet_status_t
test_url(void *ctx, xet_buf_t *b, const xet_hash_t *xorb,
    const xet_plan_range_t *ranges, size_t n)
{
    char     before[128];
    uint8_t  hash[XET_HASH_STR_LEN];

    xet_hash_print(hash, xorb);

    snprintf(before, sizeof(before), "https://x.example/%.*s?r=",
             (int) sizeof(hash), (char *) hash);

    return xet_test_url(ctx, b, before, ranges, n) ? XET_OK : XET_INTERNAL;
}


static json_t *
test_body(xet_test_pool_t *pool, const xet_plan_t *p, unsigned version,
    size_t group, test_url_t *url)
{
    size_t         len;
    char          *text;
    json_t        *root;
    xet_buf_t      b;
    json_error_t   error;
    xet_status_t   status;

    memset(url, 0, sizeof(test_url_t));
    xet_buf_init(&b, xet_test_alloc, pool, 64);

    status = xet_test_plan_json(p, (version == 1) ? XET_PLAN_V1 : XET_PLAN_V2,
                                &b, test_url, url, group);

    if (status != XET_OK) {
        return NULL;
    }

    text = (char *) xet_test_flatten(pool, &b, &len);
    root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);

    if (root == NULL) {
        printf("# %s in %s\n", error.text, text);
    }

    return root;
}


/* Removes the URLs, which differ from those of the captured responses. */

static void
test_strip(json_t *value)
{
    void        *next;
    size_t       i;
    json_t      *member;
    const char  *key;

    if (json_is_array(value)) {
        json_array_foreach(value, i, member) {
            test_strip(member);
        }

        return;
    }

    if (json_is_object(value)) {

        if (json_is_string(json_object_get(value, "url"))) {
            json_object_set_new(value, "url", json_string("stripped"));
        }

        json_object_foreach_safe(value, next, key, member) {
            test_strip(member);
        }
    }
}


static void
test_same(json_t *body, json_t *want, const char *name)
{
    char  *text;

    test_strip(body);
    test_strip(want);

    if (!xet_ok(body && json_equal(body, want), "%s", name)) {
        text = json_dumps(body, 0);
        printf("#   got %s\n", text ? text : "nothing");
        free(text);
        text = json_dumps(want, 0);
        printf("#   want %s\n", text ? text : "nothing");
        free(text);
    }

    json_decref(body);
}


static json_t *
test_captured(const char *name)
{
    char         path[128];
    const char  *real;

    snprintf(path, sizeof(path), CAPTURED "%s", name);
    real = xet_test_data(path);

    return real ? json_load_file(real, 0, NULL) : NULL;
}


/*
 * Makes the chunk ends of the only term in the reference shard: raw lengths are
 * from the chunk list, stored lengths of the first ten chunks from the file
 * *.index.json.  The other lengths are made up so that the total is that of the
 * captured response.
 */

static int
test_reference_ends(void)
{
    size_t       i;
    json_t      *root, *records, *record;
    uint32_t     raw, stored;
    const char  *path;

    static xet_reference_chunk_t  chunks[XET_REFERENCE_CHUNKS + 1];

    test_n = (uint32_t) xet_reference_chunks(chunks,
                                             XET_REFERENCE_CHUNKS + 1);
    if (test_n == 0) {
        return 0;
    }

    for (i = 0, raw = 0; i < test_n; i++) {
        raw += chunks[i].size;
        xet_put_u32(test_raw + i * 4, raw);
    }

    path = xet_test_data("xet/derived/ev-population.xorb.first-10-chunks"
                         ".index.json");
    root = path ? json_load_file(path, 0, NULL) : NULL;
    records = json_object_get(root, "records");
    stored = 0;

    for (i = 0; i < 10; i++) {
        record = json_array_get(records, i);
        stored = (uint32_t) (json_integer_value(json_array_get(record, 0)) + 8
                             + json_integer_value(json_array_get(record, 2)));
        xet_put_u32(test_stored + i * 4, stored);
    }

    for ( /* void */ ; i < test_n; i++) {
        stored += (14737813 - stored) / (uint32_t) (test_n - i);
        xet_put_u32(test_stored + i * 4, stored);
    }

    json_decref(root);

    return test_n == XET_REFERENCE_CHUNKS && stored == 14737813;
}


static uint32_t
test_end(const uint8_t *ends, uint32_t n)
{
    return n ? xet_get_u32(ends + (n - 1) * 4) : 0;
}


/* Returns the first range of the plan. */

static xet_plan_range_t
test_range(const xet_plan_t *p)
{
    xet_plan_range_t  range;

    (void) xet_plan_range(p, 0, &range);

    return range;
}


static xet_status_t
test_plan(xet_plan_t *p, xet_test_pool_t *pool, const uint8_t *packed,
    size_t n, uint64_t offset, uint64_t start, uint64_t end)
{
    unsigned          edges;
    xet_range_t       want;
    xet_status_t      status;
    xet_plan_ends_t   ends;

    want.start = start;
    want.end = end;

    xet_plan_init(p, xet_test_alloc, pool, &want);
    status = xet_plan_add(p, packed, n * XET_TERM_LEN, offset);

    edges = xet_plan_edges(p);

    if (status == XET_OK && edges) {
        ends.n = p->terms[0].chunk_end - p->terms[0].chunk_start;
        ends.copy_id = p->terms[0].copy_id;
        ends.raw_before = test_end(test_raw, p->terms[0].chunk_start);
        ends.stored_before = test_end(test_stored, p->terms[0].chunk_start);
        ends.raw_ends = test_raw + p->terms[0].chunk_start * 4;
        ends.stored_ends = test_stored + p->terms[0].chunk_start * 4;

        status = xet_plan_trim(p, edges, &ends);
    }

    return (status == XET_OK) ? xet_plan_finish(p) : status;
}


static xet_status_t
test_reference_term(xet_term_t *t, uint8_t *packed)
{
    size_t       len;
    uint8_t     *data;
    const char  *path;

    path = xet_test_data(XET_REFERENCE "ev-population.csv.shard");
    data = path ? xet_test_read(path, &len) : NULL;

    if (data == NULL) {
        return XET_INTERNAL;
    }

    /* the third record (after header and file) is the segment */

    memcpy(t->xorb.bytes, data + 96, XET_HASH_LEN);
    t->raw_length = xet_get_u32(data + 96 + 36);
    t->copy_id = 1;
    t->chunk_start = xet_get_u32(data + 96 + 40);
    t->chunk_end = xet_get_u32(data + 96 + 44);
    t->stored_start = test_end(test_stored, t->chunk_start);
    t->stored_end = test_end(test_stored, t->chunk_end);

    xet_term_pack(packed, t);
    free(data);

    return XET_OK;
}


static void
test_ev_population(void)
{
    uint8_t           packed[XET_TERM_LEN];
    json_t           *whole, *range_v1, *range_v2;
    test_url_t        url;
    xet_plan_t        p;
    xet_term_t        term;
    xet_test_pool_t   pool;

    whole = test_captured("ev-population.v2.json");
    range_v1 = test_captured("ev-population-range.v1.json");
    range_v2 = test_captured("ev-population-range.v2.json");

    if (whole == NULL || range_v1 == NULL || range_v2 == NULL) {
        xet_skip("reference data absent");
        return;
    }

    memset(&pool, 0, sizeof(pool));

    xet_ok(test_reference_ends(), "the chunk ends of the reference xorb");
    xet_is_u64(test_reference_term(&term, packed), XET_OK, "its term");

    xet_is_u64(test_plan(&p, &pool, packed, 1, 0, 0, 63527244), XET_OK,
               "the whole file");
    test_same(test_body(&pool, &p, 2, 1, &url), whole,
              "is the captured v2 answer");

    xet_is_u64(test_plan(&p, &pool, packed, 1, 0, 0, 200001), XET_OK,
               "bytes=0-200000");
    test_same(test_body(&pool, &p, 1, 1, &url), range_v1,
              "is the captured v1 answer");
    test_same(test_body(&pool, &p, 2, 1, &url), range_v2,
              "is the captured v2 answer");

    /* at a chunk boundary, one byte more or less changes the plan */

    (void) test_plan(&p, &pool, packed, 1, 0, 0, 237171);
    test_same(test_body(&pool, &p, 2, 1, &url), range_v2,
              "all of two chunks, the same");

    (void) test_plan(&p, &pool, packed, 1, 0, 0, 237172);
    xet_is_u64(p.terms[0].chunk_end, 3, "a byte of the third chunk");
    xet_is_u64(test_range(&p).stored_end, 63492, "and its end");

    (void) test_plan(&p, &pool, packed, 1, 0, 131072, 131073);
    xet_is_u64(p.terms[0].chunk_start, 1, "the first byte of chunk 1");
    xet_is_u64(p.skip, 0, "without an offset");
    xet_is_u64(test_range(&p).stored_start, 28959, "its start");

    (void) test_plan(&p, &pool, packed, 1, 0, 131071, 131073);
    xet_is_u64(p.terms[0].chunk_start, 0, "the last byte of chunk 0");
    xet_is_u64(p.skip, 131071, "its offset");

    json_decref(whole);
    json_decref(range_v1);
    json_decref(range_v2);
    xet_test_pool_free(&pool);
}


/*
 * Tests nine terms in nine xorbs, with the byte ranges of a captured response.
 */

static void
test_gpt2(void)
{
    size_t            i, n;
    json_t           *whole, *range, *terms, *t, *r;
    uint8_t           packed[16 * XET_TERM_LEN];
    uint64_t          size;
    test_url_t        url;
    xet_plan_t        p;
    xet_term_t        term;
    const char       *hash;
    xet_test_pool_t   pool;

    whole = test_captured("gpt2-model-safetensors.v2.json");
    range = test_captured("gpt2-model-safetensors-range.v2.json");

    if (whole == NULL || range == NULL) {
        xet_skip("reference data absent");
        return;
    }

    memset(&pool, 0, sizeof(pool));

    terms = json_object_get(whole, "terms");
    n = json_array_size(terms);
    size = 0;

    for (i = 0; i < n && i < 16; i++) {
        t = json_array_get(terms, i);
        hash = json_string_value(json_object_get(t, "hash"));

        r = json_array_get(json_object_get(json_object_get(whole, "xorbs"),
                                           hash), 0);
        r = json_object_get(json_array_get(json_object_get(r, "ranges"), 0),
                            "bytes");

        (void) xet_hash_parse(&term.xorb, (const uint8_t *) hash,
                              strlen(hash));

        term.copy_id = 1;
        term.raw_length = (uint32_t)
            json_integer_value(json_object_get(t, "unpacked_length"));
        term.stored_start = (uint32_t)
            json_integer_value(json_object_get(r, "start"));
        term.stored_end = (uint32_t)
            json_integer_value(json_object_get(r, "end")) + 1;

        t = json_object_get(t, "range");

        term.chunk_start = (uint32_t)
            json_integer_value(json_object_get(t, "start"));
        term.chunk_end = (uint32_t)
            json_integer_value(json_object_get(t, "end"));

        xet_term_pack(packed + i * XET_TERM_LEN, &term);
        size += term.raw_length;
    }

    xet_is_u64(n, 9, "terms");
    xet_is_u64(size, 548105171, "their bytes");

    xet_is_u64(test_plan(&p, &pool, packed, n, 0, 0, size), XET_OK,
               "the whole file");
    test_same(test_body(&pool, &p, 2, 1, &url), whole,
              "is the captured v2 answer");

    /*
     * The range is in chunks 417 to 421 of the second term.  The response shows
     * some of the chunk ends; the remaining ones are spread evenly.
     */

    (void) xet_term_unpack(&term, packed + XET_TERM_LEN);

    for (i = 0; i < term.chunk_end; i++) {
        uint32_t  k, raw, stored;

        k = (uint32_t) i + 1;

        if (k <= 417) {
            raw = (uint32_t) ((uint64_t) 32877221 * k / 417);
            stored = (uint32_t) ((uint64_t) 19388534 * k / 417);

        } else if (k <= 422) {
            raw = 32877221 + 261031 * (k - 417) / 5;
            stored = 19388534 + (19636570 - 19388534) * (k - 417) / 5;

        } else {
            raw = 33138252 + (uint32_t) ((uint64_t) (67032765 - 33138252)
                                         * (k - 422) / (996 - 422));
            stored = 19636570
                     + (uint32_t) ((uint64_t) (term.stored_end - 19636570)
                                   * (k - 422) / (996 - 422));
        }

        xet_put_u32(test_raw + i * 4, raw);
        xet_put_u32(test_stored + i * 4, stored);
    }

    xet_is_u64(test_plan(&p, &pool, packed, n, 0, 100000000, 100200001),
               XET_OK, "bytes=100000000-100200000");
    xet_is_u64(p.skip, 24735, "offset_into_first_range");
    test_same(test_body(&pool, &p, 2, 1, &url), range,
              "is the captured v2 answer");

    json_decref(whole);
    json_decref(range);
    xet_test_pool_free(&pool);
}


/*
 * Tests seven ranges of one xorb and one range of another, in groups of 1 to 9.
 */

static void
test_groups(void)
{
    size_t            i, k, n, group, want;
    json_t           *body, *entries, *entry, *seen, *ranges;
    uint8_t           packed[8 * XET_TERM_LEN];
    uint8_t           hash[XET_HASH_STR_LEN + 1], other[XET_HASH_STR_LEN + 1];
    unsigned          good;
    test_url_t        url;
    xet_plan_t        p;
    xet_term_t        t;
    xet_test_pool_t   pool;

    memset(&pool, 0, sizeof(pool));

    for (i = 0; i < 8; i++) {
        memset(t.xorb.bytes, i == 4 ? 0xbb : 0xaa, XET_HASH_LEN);

        k = (i * 5) % 8;               /* not in chunk order */
        t.chunk_start = (uint32_t) k * 10;
        t.chunk_end = (uint32_t) k * 10 + 5;
        t.stored_start = (uint32_t) k * 1000;
        t.stored_end = (uint32_t) k * 1000 + 500;
        t.raw_length = 100;
        t.copy_id = 1;

        xet_term_pack(packed + i * XET_TERM_LEN, &t);
    }

    memset(hash, 'a', XET_HASH_STR_LEN);
    memset(other, 'b', XET_HASH_STR_LEN);
    hash[XET_HASH_STR_LEN] = other[XET_HASH_STR_LEN] = '\0';

    xet_is_u64(test_plan(&p, &pool, packed, 8, 0, 0, 800), XET_OK,
               "seven ranges and one");

    for (group = 1; group < 10; group++) {
        body = test_body(&pool, &p, 2, group, &url);
        want = (7 + group - 1) / group;

        xet_is_u64(json_object_size(json_object_get(body, "xorbs")), 2,
                   "two xorbs");
        xet_is_u64(json_array_size(json_object_get(
                       json_object_get(body, "xorbs"), (char *) other)),
                   1, "an entry of the other xorb");

        entries = json_object_get(json_object_get(body, "xorbs"),
                                  (char *) hash);
        xet_is_u64(json_array_size(entries), want, "entries");
        xet_is_u64(url.calls, want + 1, "URLs");
        xet_is_u64(url.ranges_max, group < 7 ? group : 7,
                   "ranges in the longest entry");

        seen = json_object();
        good = 0;
        n = 0;

        json_array_foreach(entries, i, entry) {
            json_object_set_new(seen, json_string_value(
                                    json_object_get(entry, "url")),
                                json_true());

            ranges = json_object_get(entry, "ranges");

            for (k = 0; k < json_array_size(ranges); k++, n++) {
                json_t     *r = json_array_get(ranges, k);
                json_t     *chunks = json_object_get(r, "chunks");
                json_t     *bytes = json_object_get(r, "bytes");
                json_int_t  c = (json_int_t) (n < 4 ? n : n + 1);

                good += json_integer_value(json_object_get(chunks, "start"))
                        == c * 10
                        && json_integer_value(json_object_get(chunks, "end"))
                           == c * 10 + 5
                        && json_integer_value(json_object_get(bytes, "start"))
                           == c * 1000
                        && json_integer_value(json_object_get(bytes, "end"))
                           == c * 1000 + 499
                        && json_object_size(r) == 2;
            }
        }

        xet_is_u64(n, 7, "all ranges");
        xet_is_u64(good, 7, "in their order");
        xet_is_u64(json_object_size(seen), want, "no URL twice");

        json_decref(seen);
        json_decref(body);
    }

    body = test_body(&pool, &p, 1, 1, &url);
    entries = json_object_get(json_object_get(body, "fetch_info"),
                              (char *) hash);

    xet_is_u64(json_array_size(entries), 7, "v1: an entry a range");
    xet_is_u64(url.calls, 8, "and a URL an entry");
    xet_is_u64(json_object_size(json_array_get(entries, 0)), 3,
               "three members");
    xet_is_u64(json_object_size(body), 3, "of three in the whole");

    json_decref(body);
    xet_test_pool_free(&pool);
}


static void
test_edges(void)
{
    size_t            len, limit;
    char             *text;
    uint8_t           packed[XET_TERM_LEN];
    unsigned          k, bad;
    xet_buf_t         b;
    test_url_t        url;
    xet_plan_t        p;
    xet_term_t        t;
    xet_status_t      status;
    xet_range_t       want;
    xet_test_pool_t   pool;

    memset(&pool, 0, sizeof(pool));
    memset(&url, 0, sizeof(url));

    want.start = want.end = 0;
    xet_plan_init(&p, xet_test_alloc, &pool, &want);
    (void) xet_plan_finish(&p);

    xet_buf_init(&b, xet_test_alloc, &pool, 0);
    xet_is_u64(xet_test_plan_json(&p, XET_PLAN_V2, &b, test_url, &url, 1),
               XET_OK, "the empty file, v2");
    text = (char *) xet_test_flatten(&pool, &b, &len);
    xet_ok(strcmp(text, "{\"offset_into_first_range\":0,\"terms\":[],"
                        "\"xorbs\":{}}") == 0, "%s", text);

    xet_buf_init(&b, xet_test_alloc, &pool, 0);
    xet_is_u64(xet_test_plan_json(&p, XET_PLAN_V1, &b, test_url, &url, 1),
               XET_OK, "the empty file, v1");
    text = (char *) xet_test_flatten(&pool, &b, &len);
    xet_ok(strcmp(text, "{\"offset_into_first_range\":0,\"terms\":[],"
                        "\"fetch_info\":{}}") == 0, "%s", text);
    xet_is_u64(url.calls, 0, "no URL was asked for");

    xet_is_u64(xet_test_plan_json(&p, XET_PLAN_V2, &b, test_url, &url, 0),
               XET_INTERNAL, "groups of none");

    /* the largest possible numbers */

    memset(t.xorb.bytes, 0, XET_HASH_LEN);
    t.chunk_start = 0;
    t.chunk_end = 8192;
    t.stored_start = 0xfffffffe - 10000;
    t.stored_end = 0xffffffff;
    t.raw_length = 1u << 30;
    t.copy_id = 1;
    xet_term_pack(packed, &t);

    want.start = UINT64_C(1) << 50;
    want.end = want.start + (1u << 30);

    xet_plan_init(&p, xet_test_alloc, &pool, &want);
    (void) xet_plan_add(&p, packed, XET_TERM_LEN, want.start - (1u << 30) + 1);
    (void) xet_plan_add(&p, packed, XET_TERM_LEN, want.start + 1);
    xet_is_u64(xet_plan_finish(&p), XET_OK, "a file of a petabyte");

    xet_buf_init(&b, xet_test_alloc, &pool, 0);
    (void) xet_test_plan_json(&p, XET_PLAN_V1, &b, test_url, &url, 1);
    text = (char *) xet_test_flatten(&pool, &b, &len);
    xet_ok(strstr(text, "{\"offset_into_first_range\":1073741823,") == text,
           "the offset");
    xet_ok(strstr(text, "\"unpacked_length\":1073741824,\"range\":"
                        "{\"start\":0,\"end\":8192}}") != NULL, "a term");
    xet_ok(strstr(text, "\"url_range\":{\"start\":4294957294,"
                        "\"end\":4294967294}") != NULL, "its bytes");

    /* the URL writer fails; memory runs out at any node */

    for (k = 1; k < 3; k++) {
        memset(&url, 0, sizeof(url));
        url.fail = 1;
        xet_buf_init(&b, xet_test_alloc, &pool, 0);
        status = xet_test_plan_json(&p, (k == 1) ? XET_PLAN_V1 : XET_PLAN_V2,
                                    &b, test_url, &url, 1);
        xet_is_u64(status, XET_INTERNAL, "the URL writer fails");
    }

    memset(&url, 0, sizeof(url));

    for (limit = 1, bad = 0; limit < 50; limit++) {
        xet_test_pool_t  small;

        memset(&small, 0, sizeof(small));
        small.limit = (unsigned) limit;

        xet_buf_init(&b, xet_test_alloc, &small, 16);
        status = xet_test_plan_json(&p, XET_PLAN_V2, &b, test_url, &url, 1);
        xet_test_pool_free(&small);

        if (status == XET_OK) {
            break;
        }

        bad += status != XET_NOMEM;
    }

    xet_ok(limit > 3 && limit < 50, "out of memory at %u nodes",
           (unsigned) limit);
    xet_is_u64(bad, 0, "is told each time");

    xet_test_pool_free(&pool);
}


int
main(void)
{
    test_edges();
    test_groups();
    test_ev_population();
    test_gpt2();

    return xet_done();
}
