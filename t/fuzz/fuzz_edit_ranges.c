
/*
 * Edit ranges for any terms and dirty ranges, and subtrees with any contents.
 * Edit ranges begin and end at term boundaries, include every dirty byte, and
 * are not adjacent.  Each term outside of them has a verification hash.  The
 * subtrees of gaps and edit ranges join to the root of all chunks.  An
 * arbitrary subtree is joined or rejected.
 *
 * Input: the number of dirty ranges, then two u24 for each one, start and
 * length in units of 16 bytes; then chunks of three bytes: bits 0-16 are the
 * size minus one; bits 17-20 are 0 at a natural cut; bits 21-23 are 0 if a new
 * term starts.  If the very first byte is odd, the rest is a subtree instead:
 * flags, the number of levels, two bytes for each level, then nodes of one
 * byte.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_plan.h"
#include "xet_test_pool.h"


#define check(cond)  if (!(cond)) { __builtin_trap(); }

#define CHUNKS_MAX   2048
#define RANGES_MAX   15
#define NODES_MAX    100000


typedef struct {
    unsigned  n;
    uint32_t  size;
} fuzz_term_t;


static unsigned         nchunks, nterms;
static uint32_t         sizes[CHUNKS_MAX];
static uint8_t          ends[CHUNKS_MAX * 4];
static uint8_t          hashes[CHUNKS_MAX * XET_HASH_LEN];
static fuzz_term_t      terms[CHUNKS_MAX];
static xet_test_pool_t  pool;


static void
fuzz_hash(uint8_t *hash, unsigned i, unsigned natural)
{
    memset(hash, (int) (i & 0xff), XET_HASH_LEN);
    hash[0] = (uint8_t) (i >> 8);
    hash[24] = natural ? 0 : 1;
}


static uint64_t
fuzz_file(const uint8_t *p, size_t n)
{
    unsigned  i;
    uint32_t  v, end;
    uint64_t  size;

    nchunks = (n / 3 < CHUNKS_MAX) ? (unsigned) (n / 3) : CHUNKS_MAX;
    nterms = 0;
    size = 0;
    end = 0;

    for (i = 0; i < nchunks; i++, p += 3) {
        v = xet_get_u24(p);
        sizes[i] = (v & 0x1ffff) + 1;

        if (i == 0 || v >> 21 == 0) {
            terms[nterms].n = 0;
            terms[nterms].size = 0;
            nterms++;
            end = 7;
        }

        terms[nterms - 1].n++;
        terms[nterms - 1].size += sizes[i];

        end += sizes[i];
        size += sizes[i];

        xet_put_u32(ends + 4 * i, end);
        fuzz_hash(hashes + XET_HASH_LEN * i, i, (v >> 17 & 15) == 0);
    }

    return size;
}


static void
fuzz_check_terms(const xet_edit_ranges_t *w)
{
    size_t    k, clean;
    unsigned  i, edges, inside;
    uint64_t  start, end;

    start = 0;
    clean = 0;
    edges = 0;

    for (i = 0; i < nterms; i++, start = end) {
        end = start + terms[i].size;
        inside = 0;

        for (k = 0; k < w->n; k++) {
            inside += w->edits[k].start <= start
                      && end <= w->edits[k].end;
            edges += w->edits[k].start == start;
            edges += w->edits[k].end == end;
        }

        clean += !inside;
    }

    check(edges == 2 * w->n);
    check(w->nverifications == clean);
}


static void
fuzz_check_root(const xet_edit_ranges_t *w)
{
    size_t                 k;
    unsigned               i;
    uint64_t               start;
    xet_hash_t             root, want;
    xet_merkle_t           m;
    xet_subtree_t          s;
    xet_subtree_builder_t  b;

    xet_merkle_init(&m, &xet_suite_default);
    xet_subtree_init(&b, &xet_suite_default, xet_test_alloc, &pool, SIZE_MAX);
    xet_subtree_start(&b, 1, 1);

    k = 0;
    start = 0;

    check(xet_subtree_join(&b, &w->gaps[0]) == XET_OK);

    for (i = 0; i < nchunks; i++) {
        xet_merkle_add(&m, hashes + XET_HASH_LEN * i, sizes[i]);

        if (k < w->n && start >= w->edits[k].start) {
            check(xet_subtree_add(&b, hashes + XET_HASH_LEN * i, sizes[i])
                  == XET_OK);

            if (start + sizes[i] == w->edits[k].end) {
                k++;
                check(xet_subtree_join(&b, &w->gaps[k]) == XET_OK);
            }
        }

        start += sizes[i];
    }

    xet_merkle_finish(&m, &want);

    check(k == w->n);
    check(xet_subtree_finish(&b, &s) == XET_OK);
    check(xet_subtree_root(&s, &root) == XET_OK);
    check(xet_hash_equal(&root, &want));
}


static void
fuzz_check(const xet_edit_ranges_t *w, const xet_range_t *ranges, size_t n)
{
    size_t     i, k;
    unsigned   inside;
    xet_buf_t  b;

    check(w->n >= 1 && w->n <= n && w->chunks == nchunks);

    for (k = 0; k < w->n; k++) {
        check(w->edits[k].start < w->edits[k].end);
        check(k == 0 || w->edits[k - 1].end < w->edits[k].start);

        /* only gaps at the start or the end of the file may be empty */

        check(w->gaps[k].n || (k == 0 && w->edits[0].start == 0));
        check(w->gaps[k].at_start == (k == 0) && !w->gaps[k].at_end);
        check(xet_subtree_check(&w->gaps[k]) == XET_OK);
    }

    check(w->gaps[k].at_end && !w->gaps[k].at_start);
    check((w->gaps[k].n == 0) == (w->edits[k - 1].end == w->size));

    for (i = 0; i < n; i++) {
        inside = 0;

        for (k = 0; k < w->n; k++) {
            inside += w->edits[k].start <= ranges[i].start
                      && ranges[i].end <= w->edits[k].end;
        }

        check(inside == 1);
    }

    fuzz_check_terms(w);
    fuzz_check_root(w);

    xet_buf_init(&b, xet_test_alloc, &pool, 0);
    check(xet_edit_ranges_json(w, &b) == XET_OK && b.size > 0);
}


static void
fuzz_edit_ranges(const uint8_t *p, size_t size)
{
    size_t                  n, k;
    unsigned                i, first;
    uint64_t                total;
    xet_range_t             ranges[RANGES_MAX];
    xet_edit_ranges_t       w;
    xet_range_spec_t        specs[RANGES_MAX];
    xet_edit_ranges_term_t  term;

    n = *p++ >> 1 & 15;
    size--;

    if (n == 0 || size < n * 6) {
        return;
    }

    for (k = 0; k < n; k++, p += 6) {
        specs[k].kind = XET_RANGE_CLOSED;
        specs[k].first = (uint64_t) xet_get_u24(p) * 16;
        specs[k].last = specs[k].first + (uint64_t) xet_get_u24(p + 3) * 16;
    }

    total = fuzz_file(p, size - n * 6);

    if (xet_edit_ranges_ranges(specs, ranges, &n, total) != XET_OK) {
        return;
    }

    check(xet_edit_ranges_init(&w, &xet_suite_default, xet_test_alloc, &pool,
                           ranges, n, total, SIZE_MAX) == XET_OK);

    for (i = 0, first = 0; i < nterms; first += terms[i++].n) {
        term.n = terms[i].n;
        term.raw_length = terms[i].size;
        term.raw_before = 7;
        term.raw_ends = ends + 4 * first;
        term.hashes = hashes + XET_HASH_LEN * first;
        term.verification = NULL;

        check(xet_edit_ranges_add(&w, &term) == XET_OK);
    }

    check(xet_edit_ranges_finish(&w) == XET_OK);

    fuzz_check(&w, ranges, n);
}


static void
fuzz_join(const uint8_t *p, size_t size)
{
    size_t                 k;
    unsigned               i, flags;
    xet_hash_t             root;
    xet_status_t           status;
    xet_subtree_t          s, out;
    xet_merkle_node_t     *nodes;
    xet_subtree_level_t    levels[64];
    xet_subtree_builder_t  b;

    memset(&s, 0, sizeof(s));

    flags = p[0] >> 1;
    s.nlevels = p[1] & 63;
    p += 2;
    size -= 2;

    if (size < 2 * s.nlevels) {
        return;
    }

    for (i = 0; i < s.nlevels; i++, p += 2) {
        levels[i].left = p[0];
        levels[i].right = (p[1] == 255) ? SIZE_MAX - 3 : p[1];
    }

    s.n = size - 2 * s.nlevels;
    s.levels = levels;
    s.at_start = flags & 1;
    s.at_end = flags >> 1 & 1;

    nodes = malloc(s.n * sizeof(xet_merkle_node_t) + 1);
    check(nodes != NULL);

    for (k = 0; k < s.n; k++) {
        fuzz_hash(nodes[k].hash.bytes, p[k], p[k] & 1);
        nodes[k].size = p[k];
    }

    s.nodes = nodes;

    xet_subtree_init(&b, &xet_suite_default, xet_test_alloc, &pool, NODES_MAX);
    xet_subtree_start(&b, (int) (flags & 4), (int) (flags & 8));

    status = XET_OK;

    if (flags & 16) {
        status = xet_subtree_add(&b, (uint8_t *) "a leaf of thirty-two bytes "
                                 "or so.", 1);
    }

    if (status == XET_OK) {
        status = xet_subtree_join(&b, &s);
    }

    if (status == XET_OK && (flags & 32)) {
        status = xet_subtree_join(&b, &s);
    }

    if (status == XET_OK) {
        status = xet_subtree_finish(&b, &out);
    }

    if (status == XET_OK) {
        check(xet_subtree_check(&out) == XET_OK
              || !out.at_start || !out.at_end);
        (void) xet_subtree_root(&out, &root);

    } else {
        check(status == XET_PLAN_DAMAGED);
    }

    free(nodes);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4) {
        return 0;
    }

    if (data[0] & 1) {
        fuzz_join(data, size);

    } else {
        fuzz_edit_ranges(data, size);
    }

    xet_test_pool_free(&pool);

    return 0;
}
