
/*
 * Measures how fast a 64 MiB xorb is verified, for three kinds of content:
 * stored noise, text as LZ4, bfloat16 as BG4+LZ4.  The chunks are 8..128 KiB,
 * 64 KiB on average; the body is passed in pieces of the given size (64 KiB by
 * default).  Prints MB (10^6 bytes) of the body per CPU second, CPU
 * milliseconds per xorb, the shares of decoding and of hashing, and the
 * resident memory of the verifiers.
 *
 *     bench_xorb_verify [piece bytes] [runs] [folder]
 *     bench_xorb_verify <piece bytes> <runs> <file>
 *
 * With a folder, the bodies are written there as <stored|lz4|bg4>.<hash>, so
 * that the same bytes can be sent to a server; with one of these files, only
 * this file is verified.
 */


#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "xet_base.h"
#include "xet_xorb.h"


#define BENCH_SIZE  (64u << 20)
#define BENCH_RAW   (512u << 20)


typedef struct {
    uint8_t          *data;
    size_t            len;
} bench_body_t;


typedef void (*bench_fill_pt)(uint8_t *p, size_t n);


static long
bench_resident(void)
{
    long   pages;
    FILE  *f;

    f = fopen("/proc/self/statm", "r");

    if (f == NULL || fscanf(f, "%*d %ld", &pages) != 1) {
        pages = 0;
    }

    if (f != NULL) {
        fclose(f);
    }

    return pages * sysconf(_SC_PAGESIZE) / 1024;
}


static void
bench_noise(uint8_t *p, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        p[i] = (uint8_t) bench_random();
    }
}


/* Writes words from a small vocabulary, with unequal frequencies. */

static void
bench_text(uint8_t *p, size_t n)
{
    size_t    i, len, k;
    uint32_t  w, state;

    for (i = 0; i < n; /* void */ ) {
        w = bench_random() % 3000;
        w = w * (bench_random() % 3000) / 3000;

        len = 2 + w * 7 % 9;
        state = w * 2654435761u;

        for (k = 0; k < len && i < n; k++) {
            p[i++] = (uint8_t) ("etaoinshrdlucmfw"[state >> 28]);
            state = state * 1664525u + 1013904223u;
        }

        if (i < n) {
            p[i++] = w % 13 == 0 ? '\n' : ' ';
        }
    }
}


/* Writes weights: normally distributed, sigma 0.02, truncated to 16 bits. */

static void
bench_bf16(uint8_t *p, size_t n)
{
    float     f;
    double    u, v;
    size_t    i;
    uint32_t  bits;

    for (i = 0; i + 1 < n; i += 2) {
        u = ((double) bench_random() + 1) / 4294967296.0;
        v = (double) bench_random() / 4294967296.0;

        f = (float) (0.02 * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
        memcpy(&bits, &f, 4);
        xet_put_u16(p + i, bits >> 16);
    }
}


/*
 * Builds a body by hand, because the writer is limited to 64 MiB of raw bytes.
 */

static bench_body_t
bench_body(bench_fill_pt fill, unsigned scheme)
{
    size_t         n, raw_len, total, size;
    uint8_t       *raw, *h;
    unsigned       used;
    xet_codec_t   *codec;
    bench_body_t   b;

    size = bench_choose(BENCH_SIZE, BENCH_SIZE / 32);
    codec = xet_codec_create(&xet_suite_default);
    raw = malloc(XET_CHUNK_MAX);
    b.data = malloc(size + XET_CHUNK_MAX + XET_XORB_HEADER_LEN);
    b.len = 0;

    if (codec == NULL || raw == NULL || b.data == NULL) {
        exit(1);
    }

    for (total = 0; b.len < size && total < BENCH_RAW;
         total += raw_len)
    {
        raw_len = 8192 + bench_random() % 57344 + bench_random() % 57344;
        fill(raw, raw_len);

        h = b.data + b.len;
        n = raw_len;
        used = scheme;

        if (xet_codec_encode(codec, scheme, raw, raw_len,
                             h + XET_XORB_HEADER_LEN, &n) != XET_OK)
        {
            memcpy(h + XET_XORB_HEADER_LEN, raw, raw_len);
            n = raw_len;
            used = XET_SCHEME_NONE;
        }

        h[0] = 0;
        xet_put_u24(h + 1, (uint32_t) n);
        h[4] = (uint8_t) used;
        xet_put_u24(h + 5, (uint32_t) raw_len);

        b.len += XET_XORB_HEADER_LEN + n;
    }

    xet_codec_destroy(codec);
    free(raw);

    return b;
}


static double
bench_verify(const bench_body_t *b, size_t piece, xet_xorb_info_t *info)
{
    size_t                pos, n, stored;
    double                t;
    xet_xorb_verifier_t  *v;

    t = bench_cpu();

    v = xet_xorb_verifier_create(&xet_suite_default, NULL, 80u << 20);
    if (v == NULL) {
        exit(1);
    }

    for (pos = 0; pos < b->len; pos += n) {
        n = b->len - pos < piece ? b->len - pos : piece;

        if (xet_xorb_verifier_feed(v, b->data + pos, n, &stored) != XET_OK) {
            exit(1);
        }
    }

    if (xet_xorb_verifier_finish(v) != XET_OK) {
        exit(1);
    }

    *info = *xet_xorb_verifier_info(v);
    xet_xorb_verifier_destroy(v);

    return bench_cpu() - t;
}


/* Measures just decoding, and just hashing, of the same chunks. */

static void
bench_parts(const bench_body_t *b, double *decode, double *hash)
{
    size_t        pos, len, raw_len;
    double        t;
    uint8_t      *out;
    xet_hash_t    h;
    xet_codec_t  *codec;

    codec = xet_codec_create(&xet_suite_default);
    out = malloc(XET_CHUNK_MAX);

    if (codec == NULL || out == NULL) {
        exit(1);
    }

    *decode = 0;
    *hash = 0;

    for (pos = 0; pos < b->len; pos += XET_XORB_HEADER_LEN + len) {
        len = xet_get_u24(b->data + pos + 1);
        raw_len = xet_get_u24(b->data + pos + 5);

        t = bench_cpu();

        if (b->data[pos + 4] != XET_SCHEME_NONE
            && xet_codec_decode(codec, b->data[pos + 4],
                                b->data + pos + XET_XORB_HEADER_LEN, len,
                                out, raw_len) != XET_OK)
        {
            exit(1);
        }

        *decode += bench_cpu() - t;
        t = bench_cpu();

        xet_hash_chunk(&xet_suite_default,
                       b->data[pos + 4] == XET_SCHEME_NONE
                       ? b->data + pos + XET_XORB_HEADER_LEN : out,
                       raw_len, &h);

        *hash += bench_cpu() - t;
    }

    xet_codec_destroy(codec);
    free(out);
}


static void
bench_save(const bench_body_t *b, const xet_hash_t *hash, const char *dir,
    const char *name)
{
    char      path[1024];
    FILE     *f;
    uint8_t   str[XET_HASH_STR_LEN];

    xet_hash_print(str, hash);

    (void) snprintf(path, sizeof(path), "%s/%s.%.*s", dir, name,
                    XET_HASH_STR_LEN, (char *) str);

    f = fopen(path, "wb");

    if (f == NULL || fwrite(b->data, 1, b->len, f) != b->len
        || fclose(f) != 0)
    {
        fprintf(stderr, "cannot write %s\n", path);
        exit(1);
    }
}


static bench_body_t
bench_load(const char *path)
{
    FILE          *f;
    bench_body_t   b;

    b.len = 0;
    b.data = malloc(BENCH_RAW);
    f = fopen(path, "rb");

    if (b.data != NULL && f != NULL) {
        b.len = fread(b.data, 1, BENCH_RAW, f);
    }

    if (b.len == 0) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }

    fclose(f);

    return b;
}


/* Verifies one body and prints its row. */

static void
bench_run(const bench_body_t *b, const char *name, size_t piece, size_t runs,
    xet_xorb_info_t *info)
{
    long    resident;
    size_t  k;
    double  times[99], median, decode, hash;

    resident = bench_resident();

    for (k = 0; k < runs; k++) {
        times[k] = bench_verify(b, piece, info);
    }

    resident = bench_resident() - resident;

    qsort(times, runs, sizeof(double), bench_compare);
    median = times[runs / 2];

    bench_parts(b, &decode, &hash);

    bench_row("verifying a xorb", name, (double) b->len / 1e6 / median, "MB/s",
              NULL, 0, "more");

    printf("%-14s %7u %6.3f %8.0f %9.0f %8.1f %8.1f %8.1f %9ld\n", name,
           (unsigned) info->chunk_count,
           (double) info->stored_size / (double) info->raw_size,
           (double) b->len / 1e6 / median,
           (double) info->raw_size / 1e6 / median, median * 1e3,
           decode * 1e3, hash * 1e3, resident);
}


int
main(int argc, char *const *argv)
{
    size_t           i, piece, runs;
    struct stat      st;
    bench_body_t     b;
    xet_xorb_info_t  info;

    static const struct {
        const char     *name;
        const char     *file;
        bench_fill_pt   fill;
        unsigned        scheme;
    } kinds[] = {
        { "stored noise", "stored", bench_noise, XET_SCHEME_NONE },
        { "text, LZ4", "lz4", bench_text, XET_SCHEME_LZ4 },
        { "bf16, BG4+LZ4", "bg4", bench_bf16, XET_SCHEME_BG4_LZ4 }
    };

    piece = argc > 1 ? (size_t) strtoul(argv[1], NULL, 10) : 65536;
    runs = argc > 2 ? (size_t) strtoul(argv[2], NULL, 10)
                    : bench_choose(9, 1);

    if (piece == 0 || runs == 0 || runs > 99
        || (argc > 3 && stat(argv[3], &st) != 0))
    {
        fprintf(stderr, "usage: %s [piece bytes] [runs, 1..99] "
                "[folder | file]\n", argv[0]);
        return 2;
    }

    printf("fed in pieces of %lu bytes, median of %lu runs\n",
           (unsigned long) piece, (unsigned long) runs);
    printf("%-14s %7s %6s %8s %9s %8s %8s %8s %9s\n", "content", "chunks",
           "ratio", "MB/s", "raw MB/s", "CPU ms", "decode", "hash",
           "RSS KiB");

    if (argc > 3 && !S_ISDIR(st.st_mode)) {
        b = bench_load(argv[3]);
        bench_run(&b, "file", piece, runs, &info);

        return 0;
    }

    for (i = 0; i < 3; i++) {
        b = bench_body(kinds[i].fill, kinds[i].scheme);

        bench_run(&b, kinds[i].name, piece, runs, &info);

        if (argc > 3) {
            bench_save(&b, &info.hash, argv[3], kinds[i].file);
        }

        free(b.data);
    }

    return 0;
}
