
/*
 * Plans of arbitrary packed terms: no crash, and what is finished keeps the
 * rules that clients rely on and prints as JSON that says the same.
 *
 * Bytes: flags, group, terms in a segment, shift of the first offset; u32
 * start of the range within the file, u32 its length; then packed terms.
 */


#include <jansson.h>
#include <stdio.h>

#include "xet_bytes.h"
#include "xet_test_pool.h"
#include "xet_plan.h"


#define FUZZ_HEAD       12
#define FUZZ_BAD_ENDS   1          /* flags: ends are bytes of the input */
#define FUZZ_NO_TRIM    2
#define FUZZ_NO_JSON    4

#define check(cond)  if (!(cond)) { __builtin_trap(); }


static uint8_t  fuzz_raw[65536 * 4];
static uint8_t  fuzz_stored[65536 * 4];


/* Chunk ends for a term: spread evenly, or whatever the input has. */

static void
fuzz_ends(xet_plan_ends_t *ends, const xet_term_t *t, unsigned flags,
    const uint8_t *data, size_t size)
{
    uint32_t  i, n, bytes;

    n = t->chunk_end - t->chunk_start;
    bytes = t->stored_end - t->stored_start;

    ends->n = n;
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
fuzz_rules(const xet_plan_t *p)
{
    uint32_t                 i, k, c, inside;
    uint64_t                 sum;
    const xet_term_t        *t;
    const xet_plan_range_t  *r;

    check(p->n > 0 && p->nfetches > 0 && p->nfetches <= p->n);
    check(p->skip == p->want.start - p->offset);
    check(p->skip < p->terms[0].raw_length);

    for (i = 0, sum = 0; i < p->n; i++) {
        t = &p->terms[i];

        check(p->offset + sum < p->want.end);
        check(t->chunk_start < t->chunk_end);
        check(t->raw_length > 0);

        sum += t->raw_length;

        for (k = 0, inside = 0; k < p->nfetches; k++) {

            if (!xet_hash_equal(&p->fetches[k].xorb, &t->xorb)) {
                continue;
            }

            for (c = 0; c < p->fetches[k].n; c++) {
                r = &p->fetches[k].ranges[c];

                if (t->chunk_start >= r->chunk_start
                    && t->chunk_end <= r->chunk_end)
                {
                    inside++;
                    check(t->stored_start >= r->stored_start
                          && t->stored_end <= r->stored_end);
                }
            }
        }

        check(inside == 1);
    }

    check(p->offset + sum == p->position && p->position >= p->want.end);

    for (k = 0; k < p->nfetches; k++) {
        for (c = 0; c < p->fetches[k].n; c++) {
            r = &p->fetches[k].ranges[c];

            check(r->chunk_start < r->chunk_end
                  && r->stored_start < r->stored_end);
            check(c == 0 || (r->chunk_start > r[-1].chunk_end
                             && r->stored_start > r[-1].stored_end));
        }
    }
}


static xet_status_t
fuzz_url(void *ctx, xet_buf_t *b, const xet_hash_t *xorb,
    const xet_plan_range_t *ranges, size_t n)
{
    int       len;
    char      text[32];
    size_t    i;
    uint8_t   hash[XET_HASH_STR_LEN];

    xet_hash_print(hash, xorb);
    xet_buf_write(b, hash, sizeof(hash));

    for (i = 0; i < n; i++) {
        len = snprintf(text, sizeof(text), ",%u-%u", ranges[i].stored_start,
                       ranges[i].stored_end - 1);
        xet_buf_write(b, text, (size_t) len);
    }

    (*(size_t *) ctx)++;

    return XET_OK;
}


static void
fuzz_json(const xet_plan_t *p, unsigned version, size_t group)
{
    size_t            len, calls, i, want;
    char             *text;
    json_t           *root, *urls, *list, *entry;
    uint32_t          k;
    xet_buf_t         b;
    const char       *key;
    xet_test_pool_t   pool;

    memset(&pool, 0, sizeof(pool));
    xet_buf_init(&b, xet_test_alloc, &pool, 0);
    calls = 0;

    check((version == 1 ? xet_plan_json_v1(p, &b, fuzz_url, &calls)
                        : xet_plan_json_v2(p, &b, fuzz_url, &calls, group))
          == XET_OK);

    text = (char *) xet_test_flatten(&pool, &b, &len);
    root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);

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

    for (k = 0, want = 0; k < p->nfetches; k++) {
        want += version == 1 ? p->fetches[k].n
                             : (p->fetches[k].n + group - 1) / group;
    }

    check(calls == want);

    urls = json_object();

    json_object_foreach(json_object_get(root, version == 1 ? "fetch_info"
                                                           : "xorbs"),
                        key, list)
    {
        json_array_foreach(list, i, entry) {
            json_object_set_new(urls, json_string_value(
                                          json_object_get(entry, "url")),
                                json_true());
        }
    }

    check(json_object_size(urls) == want);

    json_decref(urls);
    json_decref(root);
    xet_test_pool_free(&pool);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t           n, segment;
    unsigned         flags, group;
    uint64_t         base, offset;
    xet_plan_t       p;
    xet_range_t      want;
    xet_status_t     status;
    const uint8_t   *packed;
    xet_test_pool_t  pool;

    if (size < FUZZ_HEAD) {
        return 0;
    }

    flags = data[0];
    group = 1 + data[1] % 8;
    segment = (size_t) (1 + data[2] % 16) * XET_TERM_LEN;
    base = data[3] ? UINT64_C(1) << data[3] % 64 : 0;

    want.start = base + xet_get_u32(data + 4);
    want.end = want.start + xet_get_u32(data + 8);

    data += FUZZ_HEAD;
    size -= FUZZ_HEAD;

    memset(&pool, 0, sizeof(pool));
    xet_plan_init(&p, xet_test_alloc, &pool, &want);

    packed = data;
    offset = base;
    status = XET_OK;

    for (n = size; n && status == XET_OK; n -= segment) {

        if (segment > n) {
            segment = n;
        }

        status = xet_plan_add(&p, packed, segment, offset);

        packed += segment;
        offset = p.position;
    }

    if (status == XET_OK) {
        status = fuzz_trim(&p, flags, data, size);
    }

    if (status == XET_OK) {
        status = xet_plan_finish(&p);
    }

    if (status == XET_OK && p.n) {
        fuzz_rules(&p);

        if (!(flags & FUZZ_NO_JSON)) {
            fuzz_json(&p, 1, 1);
            fuzz_json(&p, 2, group);
        }
    }

    check(status == XET_OK || status == XET_PLAN_DAMAGED
          || status == XET_INTERNAL);

    xet_test_pool_free(&pool);

    return 0;
}
