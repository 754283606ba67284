
/*
 * Shared code of the benchmarks: CPU time, medians, input files, data that is
 * the same in each run, and results for t/bench/all.pl.
 *
 * If XET_BENCH_SHORT is set, a program does tiny work, only to show that it
 * works.  If XET_BENCH_JSON is set, it appends its results to that file.
 */

#ifndef _BENCH_H_INCLUDED_
#define _BENCH_H_INCLUDED_


#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>


/* Returns the CPU seconds of all threads of the process. */

static inline double
bench_cpu(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);

    return (double) ts.tv_sec + (double) ts.tv_nsec * 1e-9;
}


/* Compares doubles, for qsort(). */

static inline int
bench_compare(const void *one, const void *two)
{
    double  a = *(const double *) one, b = *(const double *) two;

    return (a > b) - (a < b);
}


/* Returns the next number of xorshift64, with the same seed in each run. */

static inline uint32_t
bench_random(void)
{
    static uint64_t  seed = 88172645463325252ULL;

    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;

    return (uint32_t) (seed >> 32);
}


static inline void
bench_fail(const char *what)
{
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}


/* Reads a whole file into memory that is never freed. */

static inline const uint8_t *
bench_open(const char *name, size_t *len)
{
    int          fd;
    void        *p;
    struct stat  st;

    fd = open(name, O_RDONLY);

    if (fd == -1 || fstat(fd, &st) == -1) {
        bench_fail(name);
    }

    p = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE|MAP_POPULATE,
             fd, 0);

    if (p == MAP_FAILED) {
        bench_fail("mmap");
    }

    close(fd);

    *len = (size_t) st.st_size;

    return p;
}


/* Returns the size of the work: full, or tiny. */

static inline size_t
bench_choose(size_t full, size_t tiny)
{
    return getenv("XET_BENCH_SHORT") ? tiny : full;
}


/*
 * Appends a result.  The ratio compares it with "against"; without a limit,
 * "against" is NULL.  "better" is "less" or "more".
 */

#define bench_row(kind, name, value, unit, against, ratio, better)            \
    bench_append(__FILE__, kind, name, value, unit, against, ratio, better)

static inline void
bench_append(const char *file, const char *kind, const char *name, double value,
    const char *unit, const char *against, double ratio, const char *better)
{
    FILE        *out;
    const char  *json, *base;

    json = getenv("XET_BENCH_JSON");

    if (json == NULL) {
        return;
    }

    out = fopen(json, "a");

    if (out == NULL) {
        bench_fail(json);
    }

    base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;

    fprintf(out, "{\"program\":\"%.*s\",\"name\":\"%s%s%s\",\"value\":%.6g,"
            "\"unit\":\"%s\",\"better\":\"%s\"",
            (int) strcspn(base, "."), base, kind, *kind ? ", " : "", name,
            value, unit, better);

    if (against) {
        fprintf(out, ",\"against\":\"%s\",\"ratio\":%.6g", against, ratio);
    }

    fprintf(out, "}\n");

    if (fclose(out) != 0) {
        bench_fail(json);
    }
}


#endif /* _BENCH_H_INCLUDED_ */
