
/*
 * Plans of arbitrary packed terms: no crash; a finished plan keeps the rules
 * that clients rely on, its JSON is equivalent to the plan, and pieces of any
 * length give the same JSON.
 *
 * Input: four bytes: flags, ranges per group, terms per segment, shift of the
 * first offset; u32 start of the range within the file, u32 its length; then
 * packed terms.  In a plan of several files each segment is a file.  Its size
 * is the size of its terms; only the last file's size differs, by the start.
 * The limit on ranges is the shift; the limits on pieces derive from the start.
 */


#include <jansson.h>
#include <stdio.h>

#include "xet_base.h"
#include "plan/xet_test_plan.h"


#define FUZZ_HEAD       12
#define FUZZ_BAD_ENDS   1          /* flag: chunk ends are arbitrary input */
#define FUZZ_NO_TRIM    2
#define FUZZ_NO_JSON    4
#define FUZZ_FILES      8
#define FUZZ_LIMIT      16

#define check(cond)  if (!(cond)) { __builtin_trap(); }


static uint8_t  fuzz_raw[65536 * 4];
static uint8_t  fuzz_stored[65536 * 4];


/*
 * Makes chunk ends for a term: evenly spread or, with FUZZ_BAD_ENDS, arbitrary
 * numbers that are copied from the input.
 */

static void
fuzz_ends(xet_plan_ends_t *ends, const xet_term_t *t, unsigned flags,
    const uint8_t *data, size_t size)
{
    uint32_t  i, n, bytes;

    n = t->chunk_end - t->chunk_start;
    bytes = t->stored_end - t->stored_start;

    ends->n = n;
    ends->copy_id = t->copy_id;
    ends->raw_before = t->chunk_start;
    ends->stored_before = t->stored_start;
    ends->raw_ends = fuzz_raw;
    ends->stored_ends = fuzz_stored;

    for (i = 0; i < n; i++) {

        if ((flags & FUZZ_BAD_ENDS) && size >= 4) {
            memcpy(fuzz_raw + i * 4, data + i * 4 % (size - 3), 4);
            memcpy(fuzz_stored + i * 4, data + i * 8 % (size - 3), 4);
            continue;
        }

        xet_put_u32(fuzz_raw + i * 4, ends->raw_before
                    + (uint32_t) ((uint64_t) t->raw_length * (i + 1) / n));
        xet_put_u32(fuzz_stored + i * 4, ends->stored_before
                    + (uint32_t) ((uint64_t) bytes * (i + 1) / n));
    }
}


static xet_status_t
fuzz_trim(xet_plan_t *p, unsigned flags, const uint8_t *data, size_t size)
{
    unsigned         edges;
    xet_status_t     status;
    xet_plan_ends_t  ends;

    edges = xet_plan_edges(p);
    status = XET_OK;

    if (edges == 0 || (flags & FUZZ_NO_TRIM)) {
        return XET_OK;
    }

    if (p->n == 1) {
        fuzz_ends(&ends, &p->terms[0], flags, data, size);
        return xet_plan_trim(p, edges, &ends);
    }

    if (edges & XET_PLAN_FIRST) {
        fuzz_ends(&ends, &p->terms[0], flags, data, size);
        status = xet_plan_trim(p, XET_PLAN_FIRST, &ends);
    }

    if (status == XET_OK && (edges & XET_PLAN_LAST)) {
        fuzz_ends(&ends, &p->terms[p->n - 1], flags, data, size);
        status = xet_plan_trim(p, XET_PLAN_LAST, &ends);
    }

    return status;
}


static void
fuzz_rules_terms(const xet_plan_t *p)
{
    uint32_t           i, k, inside;
    uint64_t           sum;
    const xet_term_t  *t;
    xet_plan_range_t   r;

    for (i = 0, sum = 0; i < p->n; i++) {
        t = &p->terms[i];

        check(p->several || p->offset + sum < p->want.end);
        check(t->chunk_start < t->chunk_end);
        check(t->raw_length > 0);

        sum += t->raw_length;

        for (k = 0, inside = 0; k < p->nranges; k++) {

            if (xet_hash_equal(xet_plan_range(p, k, &r), &t->xorb)
                && t->chunk_start >= r.chunk_start
                && t->chunk_end <= r.chunk_end)
            {
                inside++;
                check(t->stored_start >= r.stored_start
                      && t->stored_end <= r.stored_end);
            }
        }

        check(inside == 1);
    }

    if (p->several) {
        check(p->skip == 0 && p->files[p->nfiles - 1].end == p->n);
        return;
    }

    check(p->skip == p->want.start - p->offset);
    check(p->skip < p->terms[0].raw_length);
    check(p->offset + sum == p->position && p->position >= p->want.end);
}


static void
fuzz_rules(const xet_plan_t *p)
{
    uint32_t           k, xorbs;
    const xet_hash_t  *xorb, *prev_xorb;
    xet_plan_range_t   r, prev;

    check(p->n > 0 && p->nranges > 0 && p->nranges <= p->n);
    check(xet_plan_xorb_begins(p, 0) && xet_plan_xorb_begins(p, p->nranges));

    fuzz_rules_terms(p);

    memset(&prev, 0, sizeof(prev));
    prev_xorb = NULL;
    xorbs = 0;

    for (k = 0; k < p->nranges; k++) {
        xorb = xet_plan_range(p, k, &r);

        check(r.chunk_start < r.chunk_end && r.stored_start < r.stored_end);

        if (xet_plan_xorb_begins(p, k)) {
            check(k == 0 || !xet_hash_equal(xorb, prev_xorb));
            xorbs++;

        } else {
            check(xet_hash_equal(xorb, prev_xorb)
                  && r.chunk_start > prev.chunk_end
                  && r.stored_start > prev.stored_end);
        }

        prev_xorb = xorb;
        prev = r;
    }

    check(xorbs == p->nxorbs);
}


/* Checks that a limited plan has at most max ranges per xorb. */

static void
fuzz_limit(xet_plan_t *p, uint32_t max)
{
    uint32_t  i, n, want;

    for (i = 0, n = 0, want = 0; i < p->nranges; i++) {
        n = xet_plan_xorb_begins(p, i) ? 1 : n + 1;
        want += n <= max;
    }

    check(xet_plan_limit(p, max) == XET_OK && p->nranges == want);

    for (i = 0, n = 0; i < p->nranges; i++) {
        n = xet_plan_xorb_begins(p, i) ? 1 : n + 1;
        check(n <= max);
    }
}


/* Returns 1 if two terms of a xorb have different copy ids. */

static int
fuzz_changed(const xet_plan_t *p)
{
    uint32_t  i, k;

    for (i = 0; i < p->n; i++) {
        for (k = 0; k < i; k++) {

            if (xet_hash_equal(&p->terms[i].xorb, &p->terms[k].xorb)
                && p->terms[i].copy_id != p->terms[k].copy_id)
            {
                return 1;
            }
        }
    }

    return 0;
}


static xet_status_t
fuzz_url(void *ctx, xet_buf_t *b, const xet_hash_t *xorb,
    const xet_plan_range_t *ranges, size_t n)
{
    uint8_t  hash[XET_HASH_STR_LEN];

    xet_hash_print(hash, xorb);
    xet_buf_write(b, hash, sizeof(hash));
    xet_buf_write(b, ",", 1);

    (void) xet_test_ranges(b, ranges, n);

    (*(size_t *) ctx)++;

    return XET_OK;
}


static json_t *
fuzz_parse(const char *text, size_t len, const xet_plan_t *p,
    xet_plan_kind_t kind)
{
    size_t   i;
    json_t  *root, *list, *entry;

    root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);

    if (kind == XET_PLAN_BATCH) {
        check(root != NULL && json_object_size(root) == 2);
        check(json_object_size(json_object_get(root, "files"))
              == p->nfiles);

        return root;
    }

    check(root != NULL && json_object_size(root) == 3);
    check((uint64_t) json_integer_value(
              json_object_get(root, "offset_into_first_range")) == p->skip);

    list = json_object_get(root, "terms");
    check(json_array_size(list) == p->n);

    json_array_foreach(list, i, entry) {
        check((uint64_t) json_integer_value(
                  json_object_get(entry, "unpacked_length"))
              == p->terms[i].raw_length);
    }

    return root;
}


/* Checks that there are as many URLs as needed, and that all are different. */

static void
fuzz_urls(json_t *root, const xet_plan_t *p, size_t group, size_t calls)
{
    size_t        i, n, want;
    json_t       *urls, *list, *entry;
    const char   *key;

    for (i = 0, n = 0, want = 0; i < p->nranges; i++) {
        n = xet_plan_xorb_begins(p, (uint32_t) i) ? 0 : n + 1;
        want += n % group == 0;
    }

    check(calls == want);

    urls = json_object();
    list = json_object_get(root, "xorbs");
    list = list ? list : json_object_get(root, "fetch_info");

    check(json_object_size(list) == p->nxorbs);

    json_object_foreach(list, key, entry) {
        json_t  *member;

        json_array_foreach(entry, i, member) {
            json_object_set_new(urls, json_string_value(
                                          json_object_get(member, "url")),
                                json_true());
        }
    }

    check(json_object_size(urls) == want);

    json_decref(urls);
}


/* Checks that pieces, each in its own memory block, give the same text. */

static void
fuzz_pieces(const char *text, size_t len, const xet_plan_t *p,
    xet_plan_kind_t kind, size_t group, uint64_t state)
{
    char               *piece;
    size_t              n, at, limit, calls;
    xet_buf_t           b;
    xet_status_t        status;
    xet_test_pool_t     pool;
    xet_plan_writer_t   w;

    calls = 0;
    at = 0;

    memset(&pool, 0, sizeof(pool));
    xet_plan_writer_init(&w, p, kind, fuzz_url, &calls, group);

    do {
        limit = (size_t) (xet_test_random(&state) >> 54);
        limit >>= limit % 8;

        xet_buf_init(&b, xet_test_alloc, &pool, 1 + limit / 2);
        status = xet_plan_writer_next(&w, &b, limit);

        check(status == XET_OK || (status == XET_AGAIN && b.size >= limit));

        piece = (char *) xet_test_flatten(&pool, &b, &n);

        check(n <= len - at && memcmp(piece, text + at, n) == 0);

        at += n;
        xet_test_pool_free(&pool);

    } while (status == XET_AGAIN);

    check(at == len);
}


static void
fuzz_json(const xet_plan_t *p, xet_plan_kind_t kind, size_t group,
    uint64_t seed)
{
    size_t              len, calls;
    char               *text;
    json_t             *root;
    xet_buf_t           b;
    xet_test_pool_t     pool;
    xet_plan_writer_t   w;

    memset(&pool, 0, sizeof(pool));
    xet_buf_init(&b, xet_test_alloc, &pool, 0);
    calls = 0;

    xet_plan_writer_init(&w, p, kind, fuzz_url, &calls, group);
    check(xet_plan_writer_next(&w, &b, SIZE_MAX) == XET_OK);

    text = (char *) xet_test_flatten(&pool, &b, &len);

    root = fuzz_parse(text, len, p, kind);
    fuzz_urls(root, p, group, calls);
    json_decref(root);

    fuzz_pieces(text, len, p, kind, group, seed);

    xet_test_pool_free(&pool);
}


static xet_status_t
fuzz_add(xet_plan_t *p, const uint8_t *packed, size_t n, size_t segment,
    uint64_t offset)
{
    xet_status_t  status;

    status = XET_OK;

    for ( /* void */ ; n && status == XET_OK; n -= segment) {

        if (segment > n) {
            segment = n;
        }

        status = xet_plan_add(p, packed, segment, offset);

        packed += segment;
        offset = p->position;
    }

    return status;
}


static xet_status_t
fuzz_add_files(xet_plan_t *p, const uint8_t *packed, size_t n,
    size_t segment, uint64_t off)
{
    size_t        i;
    uint64_t      size;
    xet_hash_t    hash;
    xet_status_t  status;

    memset(&hash, 0, sizeof(hash));
    status = XET_OK;

    for ( /* void */ ; n && status == XET_OK; n -= segment) {

        if (segment >= n) {
            segment = n;
            size = off;

        } else {
            size = 0;
        }

        for (i = 0; i + XET_TERM_LEN <= segment; i += XET_TERM_LEN) {
            size += xet_get_u32(packed + i + XET_TERM_RAW);
        }

        xet_put_u32(hash.bytes, p->nfiles);

        status = xet_plan_file(p, &hash, size);

        if (status == XET_OK) {
            status = xet_plan_add(p, packed, segment, 0);
        }

        packed += segment;
    }

    return status;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t           segment;
    unsigned         flags, group;
    uint64_t         base, start, seed;
    xet_plan_t       p;
    xet_range_t      want;
    xet_status_t     status;
    xet_test_pool_t  pool;

    if (size < FUZZ_HEAD) {
        return 0;
    }

    flags = data[0];
    group = 1 + data[1] % 8;
    segment = (size_t) (1 + data[2] % 16) * XET_TERM_LEN;
    base = data[3] ? UINT64_C(1) << data[3] % 64 : 0;
    start = xet_get_u32(data + 4);
    seed = xet_get_u64(data + 4);

    want.start = base + start;
    want.end = want.start + xet_get_u32(data + 8);

    memset(&pool, 0, sizeof(pool));

    if (flags & FUZZ_FILES) {
        status = xet_plan_init_files(&p, xet_test_alloc, &pool,
                                     size / segment + 1);
        check(status == XET_OK);

        status = fuzz_add_files(&p, data + FUZZ_HEAD, size - FUZZ_HEAD,
                                segment, start);

        check(status != XET_OK || xet_plan_edges(&p) == 0);

    } else {
        xet_plan_init(&p, xet_test_alloc, &pool, &want);

        status = fuzz_add(&p, data + FUZZ_HEAD, size - FUZZ_HEAD, segment,
                          base);

        if (status == XET_OK) {
            status = fuzz_trim(&p, flags, data + FUZZ_HEAD,
                               size - FUZZ_HEAD);
        }
    }

    if (status == XET_OK) {
        status = xet_plan_finish(&p);
    }

    if (status == XET_OK && p.n) {
        fuzz_rules(&p);

        if (flags & FUZZ_LIMIT) {
            fuzz_limit(&p, 1 + data[3] % 8);
            fuzz_rules(&p);
        }

        if (flags & FUZZ_NO_JSON) {
            /* void */

        } else if (p.several) {
            fuzz_json(&p, XET_PLAN_BATCH, 1, seed);

        } else {
            fuzz_json(&p, XET_PLAN_V1, 1, seed);
            fuzz_json(&p, XET_PLAN_V2, group, seed + 1);
        }
    }

    check(status == XET_OK || status == XET_PLAN_DAMAGED
          || status == XET_INTERNAL
          || (status == XET_PLAN_CHANGED && fuzz_changed(&p)));

    xet_test_pool_free(&pool);

    return 0;
}
