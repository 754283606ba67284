
/*
 * Measures how fast the core ingests a file in memory, which limits the speed
 * of "PUT files".  Measures the parts (just chunking, hashing the chunks,
 * SHA-256, compression into xorbs), and then all parts together, as in the
 * server; the xorbs are discarded.  Prints CPU milliseconds for the file and MB
 * (10^6 bytes) per CPU second.
 *
 *     bench_ingest [piece bytes] [file]
 *
 * The default file has 256 MiB: a quarter each of noise, of text, of bfloat16
 * and of the same noise again.
 */


#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "bench.h"
#include "xet_base.h"
#include "xet_chunk.h"
#include "xet_ingest.h"


#define BENCH_SIZE  (256u << 20)


typedef struct {
    const uint8_t  *data;
    size_t          len;
    size_t          piece;
    uint64_t        out;               /* size of the xorbs, in bytes */
} bench_file_t;


typedef void (*bench_run_pt)(bench_file_t *f);


static void
bench_made(bench_file_t *f)
{
    size_t    i, n, size;
    float     v;
    uint8_t  *p;
    uint32_t  bits;

    size = bench_choose(BENCH_SIZE, BENCH_SIZE / 64);
    n = size / 4;
    p = malloc(size);

    if (p == NULL) {
        bench_fail("malloc");
    }

    f->data = p;
    f->len = size;

    for (i = 0; i < n; i += 4) {
        xet_put_u32(p + i, bench_random());
    }

    for (i = n; i < 2 * n; i += 8) {
        memcpy(p + i, "abcdefgh", 8);
        p[i + bench_random() % 8] = (uint8_t) ('a' + bench_random() % 16);
    }

    for (i = 2 * n; i < 3 * n; i += 2) {
        v = (float) (bench_random() % 65536) / 65536 - 0.5f;
        v *= expf(-(float) (bench_random() % 8));
        memcpy(&bits, &v, 4);
        xet_put_u16(p + i, (uint16_t) (bits >> 16));
    }

    memcpy(p + 3 * n, p, n);
}


/* Counts the bytes of the xorbs, and discards them. */

static xet_status_t
bench_write(void *ctx, const uint8_t *data, size_t len)
{
    bench_file_t *f = ctx;

    f->out += len;

    return XET_OK;
}


/* Measures just chunking, chunking and hashing, or packing into xorbs. */

static void
bench_cuts(bench_file_t *f, int hashed, xet_xorb_writer_t *w)
{
    int            cut;
    size_t         start, pos;
    xet_hash_t     hash;
    xet_chunker_t  c;

    xet_chunker_init(&c, &xet_suite_default);

    for (start = 0, pos = 0; pos < f->len; start = pos) {
        pos += xet_chunker_feed(&c, f->data + pos, f->len - pos, &cut);

        if (hashed) {
            xet_hash_chunk(&xet_suite_default, f->data + start, pos - start,
                           &hash);
        }

        if (w == NULL) {
            continue;
        }

        memset(&hash, 0, sizeof(hash));

        if (!xet_xorb_writer_fits(w, pos - start)) {
            xet_xorb_writer_reset(w);
        }

        if (xet_xorb_writer_add(w, f->data + start, pos - start,
                                XET_SCHEME_AUTO, &hash)
            != XET_OK)
        {
            bench_fail("a xorb");
        }
    }
}


static void
bench_chunk(bench_file_t *f)
{
    bench_cuts(f, 0, NULL);
}


static void
bench_hash(bench_file_t *f)
{
    bench_cuts(f, 1, NULL);
}


static void
bench_compress(bench_file_t *f)
{
    xet_xorb_writer_t  *w;

    w = xet_xorb_writer_create(&xet_suite_default, bench_write, f);

    bench_cuts(f, 0, w);

    xet_xorb_writer_destroy(w);
}


static void
bench_sha256(bench_file_t *f)
{
    size_t       pos, n;
    uint8_t      md[EVP_MAX_MD_SIZE];
    EVP_MD_CTX  *ctx;

    ctx = EVP_MD_CTX_new();
    EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);

    for (pos = 0; pos < f->len; pos += n) {
        n = (f->len - pos < f->piece) ? f->len - pos : f->piece;
        EVP_DigestUpdate(ctx, f->data + pos, n);
    }

    EVP_DigestFinal_ex(ctx, md, NULL);
    EVP_MD_CTX_free(ctx);
}


static xet_status_t
bench_term(void *ctx, const xet_ingest_term_t *term)
{
    return XET_OK;
}


static void
bench_ingest(bench_file_t *f)
{
    size_t              pos, n, taken;
    uint8_t             md[EVP_MAX_MD_SIZE];
    EVP_MD_CTX         *ctx;
    xet_status_t        rc;
    xet_ingest_t       *in;
    xet_ingest_conf_t   conf;

    memset(&conf, 0, sizeof(conf));

    conf.suite = &xet_suite_default;
    conf.ahead = 1;
    conf.known = XET_INGEST_KNOWN;
    conf.write = bench_write;
    conf.term = bench_term;
    conf.ctx = f;

    in = xet_ingest_create(&conf);
    ctx = EVP_MD_CTX_new();
    EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);

    for (pos = 0; pos < f->len; pos += n) {
        n = (f->len - pos < f->piece) ? f->len - pos : f->piece;
        EVP_DigestUpdate(ctx, f->data + pos, n);

        for (taken = 0; taken < n; /* void */) {
            size_t  k;

            rc = xet_ingest_feed(in, f->data + pos + taken, n - taken, &k);
            taken += k;

            if (rc == XET_OK) {
                break;
            }

            if (rc != XET_AGAIN) {
                bench_fail("feed");
            }

            xet_ingest_done(in);
        }
    }

    while (xet_ingest_end(in) == XET_AGAIN) {
        xet_ingest_done(in);
    }

    while (xet_ingest_finish(in) == XET_AGAIN) {
        xet_ingest_done(in);
    }

    EVP_DigestFinal_ex(ctx, md, NULL);
    EVP_MD_CTX_free(ctx);
    xet_ingest_destroy(in);
}


int
main(int argc, char **argv)
{
    size_t        i;
    double        cpu;
    bench_file_t  f;

    static const struct {
        const char    *name;
        bench_run_pt   run;
    } runs[] = {
        { "chunk", bench_chunk },
        { "chunk+hash", bench_hash },
        { "sha256", bench_sha256 },
        { "chunk+compress", bench_compress },
        { "all", bench_ingest }
    };

    memset(&f, 0, sizeof(f));

    f.piece = (argc > 1) ? (size_t) atol(argv[1]) : 262144;

    if (argc > 2) {
        f.data = bench_open(argv[2], &f.len);

    } else {
        bench_made(&f);
    }

    for (i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        f.out = 0;

        cpu = bench_cpu();
        runs[i].run(&f);
        cpu = bench_cpu() - cpu;

        printf("%-15s %8.1f ms %8.0f MB/s", runs[i].name, cpu * 1e3,
               (double) f.len / 1e6 / cpu);

        if (f.out) {
            printf(" %6.1f %% stored", 100.0 * (double) f.out / (double) f.len);
        }

        printf("\n");
        bench_row("a file", runs[i].name, (double) f.len / 1e6 / cpu, "MB/s",
                  NULL, 0, "more");
    }

    return 0;
}
