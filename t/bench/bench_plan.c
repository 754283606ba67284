
/*
 * Measures what a reconstruction costs in the core, which builds a plan and its
 * JSON from 20 packed terms, with a signed URL for each xorb.  The terms name
 * 20 xorbs, or several ranges of 2 xorbs.  The same is measured without
 * signing.
 *
 *     bench_plan [seconds]
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "xet_plan.h"
#include "xet_access.h"


#define BENCH_TERMS  20
#define BENCH_RUNS   7
#define BENCH_BASE   "http://127.0.0.1:8080"


typedef struct {
    char              *start;
    size_t             used;
    size_t             size;
} bench_arena_t;


typedef struct {
    xet_sign_key_t    *key;
    bench_arena_t      arena;
    uint8_t            packed[BENCH_TERMS * XET_TERM_LEN];
    uint64_t           raw_size;
    uint64_t           size;           /* size of the JSON */
    unsigned           version;
    unsigned           sign:1;
} bench_t;


static void *
bench_alloc(void *data, size_t size)
{
    void           *p;
    bench_arena_t  *a = data;

    size = (size + 15) & ~(size_t) 15;

    if (a->size - a->used < size) {
        return NULL;
    }

    p = a->start + a->used;
    a->used += size;

    return p;
}


/*
 * Makes 20 terms; term i has 10 + i chunks.  With 20 xorbs each term starts at
 * chunk 5 of another xorb; with two xorbs, the terms of a xorb start 40 chunks
 * apart.
 */

static void
bench_terms(bench_t *b, unsigned xorbs)
{
    unsigned    i, k;
    xet_term_t  term;

    b->raw_size = 0;

    for (i = 0; i < BENCH_TERMS; i++) {
        for (k = 0; k < XET_HASH_LEN; k++) {
            term.xorb.bytes[k] = (uint8_t) (i % xorbs * 41 + k * 7);
        }

        k = i / xorbs;

        term.chunk_start = 5 + k * 40;
        term.chunk_end = term.chunk_start + 10 + i;
        term.stored_start = term.chunk_start * 50000;
        term.stored_end = term.chunk_end * 50000;
        term.raw_length = (term.chunk_end - term.chunk_start) * 65000;
        term.copy_id = 0x5e5e5e5e;

        xet_term_pack(b->packed + i * XET_TERM_LEN, &term);
        b->raw_size += term.raw_length;
    }
}


static xet_status_t
bench_url(void *ctx, xet_buf_t *buf, const xet_hash_t *xorb,
    const xet_plan_range_t *ranges, size_t n)
{
    size_t          i;
    bench_t        *b = ctx;
    xet_range_t     list[XET_SIGN_RANGES_MAX];
    xet_sign_url_t  url;

    xet_buf_write(buf, BENCH_BASE, sizeof(BENCH_BASE) - 1);

    if (!b->sign) {
        return XET_OK;
    }

    for (i = 0; i < n; i++) {
        list[i].start = ranges[i].stored_start;
        list[i].end = ranges[i].stored_end;
    }

    url.ns = (const uint8_t *) "default";
    url.ns_len = 7;
    url.xorb = *xorb;
    url.expires = 1900000000;
    url.ranges = list;
    url.n = n;

    return xet_sign_url(b->key, &url, buf);
}


static void
bench_plan(bench_t *b)
{
    xet_buf_t          buf;
    xet_plan_t         plan;
    xet_range_t        want;
    xet_status_t       rc;
    xet_plan_writer_t  w;

    b->arena.used = 0;

    want.start = 0;
    want.end = b->raw_size;

    xet_plan_init(&plan, bench_alloc, &b->arena, &want);
    xet_buf_init(&buf, bench_alloc, &b->arena, 0);

    rc = xet_plan_add(&plan, b->packed, sizeof(b->packed), 0);

    if (rc == XET_OK) {
        rc = xet_plan_finish(&plan);
    }

    if (rc == XET_OK) {
        xet_plan_writer_init(&w, &plan, (b->version == 2) ? XET_PLAN_V2
                                                          : XET_PLAN_V1,
                             bench_url, b, 1);
        rc = xet_plan_writer_next(&w, &buf, SIZE_MAX);
    }

    if (rc != XET_OK) {
        fprintf(stderr, "%s\n", xet_status_text(rc));
        exit(1);
    }

    b->size = buf.size;
}


/* Measures microseconds per plan: median, and the range of all runs. */

static void
bench_run(bench_t *b, double seconds, double *us)
{
    double    t;
    unsigned  i, k, n;

    for (i = 0; i < BENCH_RUNS; i++) {
        n = 0;
        t = bench_cpu();

        do {
            for (k = 0; k < 500; k++) {
                bench_plan(b);
            }

            n += k;
            us[i] = bench_cpu() - t;

        } while (us[i] < seconds);

        us[i] = us[i] * 1e6 / n;
    }

    qsort(us, BENCH_RUNS, sizeof(double), bench_compare);
}


int
main(int argc, char *const *argv)
{
    double    us[BENCH_RUNS], plain[BENCH_RUNS], seconds;
    bench_t   b;
    unsigned  xorbs, version;

    static const uint8_t  secret[32] = { 1, 2, 3 };

    memset(&b, 0, sizeof(bench_t));

    seconds = argc > 1 ? atof(argv[1]) : (double) bench_choose(100, 1) / 1e3;

    b.key = xet_sign_key_create((const uint8_t *) "k1", 2, secret, 32);
    b.arena.size = 1 << 20;
    b.arena.start = malloc(b.arena.size);

    if (b.key == NULL || b.arena.start == NULL) {
        return 1;
    }

    printf("a plan of %d terms, us: median (min..max) of %d runs\n",
           BENCH_TERMS, BENCH_RUNS);
    printf("%-16s %8s %22s %9s %9s\n", "", "bytes", "all", "unsigned",
           "signing");

    for (xorbs = BENCH_TERMS; xorbs >= 2; xorbs /= 10) {
        bench_terms(&b, xorbs);

        for (version = 2; version; version--) {
            b.version = version;

            b.sign = 0;
            bench_run(&b, seconds, plain);
            b.sign = 1;
            bench_run(&b, seconds, us);

            printf("%2u xorbs, v%u     %8lu %8.2f (%.2f..%.2f) %9.2f %9.2f\n",
                   xorbs, version, (unsigned long) b.size,
                   us[BENCH_RUNS / 2], us[0], us[BENCH_RUNS - 1],
                   plain[BENCH_RUNS / 2],
                   us[BENCH_RUNS / 2] - plain[BENCH_RUNS / 2]);
            bench_row("a plan of 20 terms", xorbs > 2
                      ? (version == 2 ? "20 xorbs, v2" : "20 xorbs, v1")
                      : (version == 2 ? "2 xorbs, v2" : "2 xorbs, v1"),
                      us[BENCH_RUNS / 2], "us", NULL, 0, "less");
        }
    }

    xet_sign_key_destroy(b.key);
    free(b.arena.start);

    return 0;
}
