
/*
 * Measures chunking in GB/s on one core, in alternation over the same data: the
 * draft's loop, which hashes every byte; this loop without the bytes below the
 * minimum chunk length; and our chunker.  All three must find the same
 * boundaries.
 *
 *     bench_chunker [MiB]
 *
 * Chunks 64 MiB by default: noise; text, from this machine's C headers; and
 * zeros, whose chunks have the maximum length.
 */


#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "xet_chunk.h"


#define BENCH_RUNS    9
#define BENCH_PIECE   262144           /* bytes per call */
#define BENCH_WINDOW  64


typedef uint64_t (*bench_loop_pt)(const uint8_t *data, size_t len);


typedef struct {
    const char     *name;
    bench_loop_pt   loop;
} bench_loop_t;


/* Adds a boundary to the hash of all boundaries. */

static uint64_t
bench_sum(uint64_t sum, size_t end)
{
    return (sum ^ end) * UINT64_C(0x100000001b3);
}


static uint64_t
bench_draft(const uint8_t *data, size_t len)
{
    size_t              i, size;
    uint64_t            h, sum, mask;
    const uint64_t     *gear;
    const xet_suite_t  *suite;

    suite = &xet_suite_default;
    gear = suite->gear;
    mask = suite->chunk_mask;

    h = 0;
    sum = 0;
    size = 0;

    for (i = 0; i < len; i++) {
        h = (h << 1) + gear[data[i]];

        if (++size < suite->chunk_min) {
            continue;
        }

        if ((h & mask) == 0 || size == suite->chunk_max) {
            sum = bench_sum(sum, i + 1);
            size = 0;
            h = 0;
        }
    }

    return sum;
}


static uint64_t
bench_skip(const uint8_t *data, size_t len)
{
    size_t              i, end, start;
    uint64_t            h, sum, mask;
    const uint64_t     *gear;
    const xet_suite_t  *suite;

    suite = &xet_suite_default;
    gear = suite->gear;
    mask = suite->chunk_mask;

    sum = 0;

    for (start = 0; len - start >= suite->chunk_min; start = i + 1) {
        end = (len - start < suite->chunk_max) ? len
                                               : start + suite->chunk_max;

        h = 0;
        i = start + suite->chunk_min - 1 - BENCH_WINDOW;

        for ( /* void */ ; i < start + suite->chunk_min - 1; i++) {
            h = (h << 1) + gear[data[i]];
        }

        for ( /* void */ ; i < end; i++) {
            h = (h << 1) + gear[data[i]];

            if ((h & mask) == 0) {
                break;
            }
        }

        if (i == end) {

            if (end - start < suite->chunk_max) {
                break;
            }

            i--;
        }

        sum = bench_sum(sum, i + 1);
    }

    return sum;
}


static uint64_t
bench_chunker(const uint8_t *data, size_t len)
{
    int             cut;
    size_t          i, n, piece;
    uint64_t        sum;
    xet_chunker_t   chunker;

    xet_chunker_init(&chunker, &xet_suite_default);

    sum = 0;

    for (i = 0; i < len; i += n) {
        piece = BENCH_PIECE - i % BENCH_PIECE;
        piece = (piece < len - i) ? piece : len - i;

        n = xet_chunker_feed(&chunker, data + i, piece, &cut);

        if (cut) {
            sum = bench_sum(sum, i + n);
        }
    }

    return sum;
}


static void
bench_noise(uint8_t *data, size_t len)
{
    size_t    i;
    uint64_t  x;

    x = 1;

    for (i = 0; i < len; i++) {
        x = x * UINT64_C(6364136223846793005) + 1;
        data[i] = (uint8_t) (x >> 56);
    }
}


/*
 * Fills the buffer with the files of a folder, repeatedly.  Returns 0 if there
 * are no files.
 */

static int
bench_text(uint8_t *data, size_t len, const char *path)
{
    DIR            *dir;
    FILE           *fp;
    char            name[4096];
    size_t          n, got;
    struct dirent  *e;

    n = 0;

    do {
        got = n;
        dir = opendir(path);

        while (dir && n < len && (e = readdir(dir)) != NULL) {
            snprintf(name, sizeof(name), "%s/%s", path, e->d_name);

            fp = strstr(name, ".h") ? fopen(name, "r") : NULL;

            if (fp) {
                n += fread(data + n, 1, len - n, fp);
                fclose(fp);
            }
        }

        if (dir) {
            closedir(dir);
        }

    } while (n < len && n != got);

    return n == len;
}


static void
bench_run(const char *name, const uint8_t *data, size_t len)
{
    double    rate[3][BENCH_RUNS], median[3], start;
    unsigned  i, run, runs;
    uint64_t  sum[3];

    static const bench_loop_t  loops[] = {
        { "every byte", bench_draft },
        { "minimum skipped", bench_skip },
        { "xet_chunker_feed", bench_chunker }
    };

    runs = (unsigned) bench_choose(BENCH_RUNS, 1);

    for (run = 0; run < runs; run++) {
        for (i = 0; i < 3; i++) {
            start = bench_cpu();
            sum[i] = loops[i].loop(data, len);
            rate[i][run] = (double) len / (bench_cpu() - start) / 1e9;
        }
    }

    if (sum[0] != sum[1] || sum[0] != sum[2]) {
        printf("%s: the loops do not agree\n", name);
        exit(1);
    }

    for (i = 0; i < 3; i++) {
        qsort(rate[i], runs, sizeof(double), bench_compare);
        median[i] = rate[i][runs / 2];

        printf("%-6s %-17s %5.2f (%.2f..%.2f) GB/s", name, loops[i].name,
               median[i], rate[i][0], rate[i][runs - 1]);

        if (i) {
            printf("  %.2f of every byte", median[i] / median[0]);
        }

        if (i == 2) {
            printf(", %.2f of the loop that skips", median[2] / median[1]);
        }

        printf("\n");
    }

    bench_row("chunks", name, median[2], "GB/s", "the loop that skips",
              median[2] / median[1], "more");
}


int
main(int argc, char **argv)
{
    size_t    len;
    uint8_t  *data;

    len = (argc > 1 ? strtoul(argv[1], NULL, 10) : bench_choose(64, 2)) << 20;
    data = malloc(len ? len : 1);

    if (data == NULL || len == 0) {
        fprintf(stderr, "usage: bench_chunker [MiB]\n");
        return 1;
    }

    bench_noise(data, len);
    bench_run("noise", data, len);

    if (bench_text(data, len, "/usr/include/linux")
        || bench_text(data, len, "/usr/include"))
    {
        bench_run("text", data, len);
    }

    memset(data, 0, len);
    bench_run("zeros", data, len);

    free(data);

    return 0;
}
