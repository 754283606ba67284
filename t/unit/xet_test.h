
/*
 * Implements a minimal TAP producer for the unit tests of the core.
 */

#ifndef _XET_TEST_H_INCLUDED_
#define _XET_TEST_H_INCLUDED_


#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


static unsigned  xet_test_n;
static unsigned  xet_test_failed;


#define xet_ok(cond, ...)                                                     \
    xet_test_result((cond) ? 1 : 0, __FILE__, __LINE__, __VA_ARGS__)


static int
xet_test_result(int ok, const char *file, int line, const char *fmt, ...)
{
    va_list  args;

    printf("%s %u - ", ok ? "ok" : "not ok", ++xet_test_n);

    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);

    printf("\n");

    if (!ok) {
        xet_test_failed++;
        printf("#   at %s:%d\n", file, line);
    }

    return ok;
}


#define xet_is_u64(got, want, name)                                           \
    xet_test_u64((uint64_t) (got), (uint64_t) (want), name, __FILE__, __LINE__)


static inline int
xet_test_u64(uint64_t got, uint64_t want, const char *name, const char *file,
    int line)
{
    int  ok;

    ok = xet_test_result(got == want, file, line, "%s", name);

    if (!ok) {
        printf("#   got %llu, want %llu\n", (unsigned long long) got,
               (unsigned long long) want);
    }

    return ok;
}


static inline void
xet_skip(const char *why)
{
    printf("ok %u # skip %s\n", ++xet_test_n, why);
}


/*
 * Returns the path of a reference file, or NULL if there is no reference data.
 */

static inline const char *
xet_test_data(const char *name)
{
    static char  path[1024];

    const char  *root;

    root = getenv("XET_TEST_DATA");

    snprintf(path, sizeof(path), "%s/%s", root ? root : "../shared/data",
             name);

    return access(path, R_OK) == 0 ? path : NULL;
}


static inline uint8_t *
xet_test_read(const char *path, size_t *len)
{
    long      size;
    FILE     *f;
    uint8_t  *data;

    f = fopen(path, "rb");
    if (f == NULL) {
        return NULL;
    }

    fseek(f, 0, SEEK_END);
    size = ftell(f);
    rewind(f);

    data = malloc(size > 0 ? (size_t) size : 1);

    if (data == NULL || fread(data, 1, (size_t) size, f) != (size_t) size) {
        free(data);
        fclose(f);
        return NULL;
    }

    fclose(f);

    *len = (size_t) size;

    return data;
}


static int
xet_done(void)
{
    printf("1..%u\n", xet_test_n);

    return xet_test_failed != 0;
}


#endif /* _XET_TEST_H_INCLUDED_ */
