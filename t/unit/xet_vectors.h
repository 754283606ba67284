
/*
 * Reads JSON test vectors and builds their data, for several unit tests.
 */

#ifndef _XET_VECTORS_H_INCLUDED_
#define _XET_VECTORS_H_INCLUDED_


#include <jansson.h>

#include "xet_test.h"
#include "xet_base.h"
#include "xet_hash.h"


/*
 * Loads a file of test vectors.  If the file is absent, skips a test and
 * returns NULL.
 */

static inline json_t *
xet_vectors_load(const char *name)
{
    json_t        *root;
    const char    *path;
    json_error_t   error;

    path = xet_test_data(name);

    if (path == NULL) {
        xet_skip("reference data absent");
        return NULL;
    }

    root = json_load_file(path, 0, &error);

    if (root == NULL) {
        xet_ok(0, "%s is JSON: line %d: %s", path, error.line, error.text);
    }

    return root;
}


/*
 * Returns the hash in a JSON string; all bytes are 0xee if the value is not a
 * string.
 */

static inline xet_hash_t
xet_vectors_hash(const json_t *string)
{
    xet_hash_t   hash;
    const char  *s;

    memset(hash.bytes, 0xee, XET_HASH_LEN);

    s = json_string_value(string);

    if (s) {
        (void) xet_hash_parse(&hash, (const uint8_t *) s, strlen(s));
    }

    return hash;
}


/* Parses n bytes of plain hex; returns 0 if the string is anything else. */

static inline int
xet_vectors_hex(const json_t *string, uint8_t *dst, size_t n)
{
    size_t       i;
    unsigned     byte;
    const char  *s;

    s = json_string_value(string);

    if (s == NULL || strlen(s) != 2 * n) {
        return 0;
    }

    for (i = 0; i < n; i++) {
        if (sscanf(s + 2 * i, "%2x", &byte) != 1) {
            return 0;
        }

        dst[i] = (uint8_t) byte;
    }

    return 1;
}


/* Passes if the hash is printed as this string. */

#define xet_is_hash(hash, string, name)                                       \
    xet_vectors_is_hash(hash, string, name, __FILE__, __LINE__)


static inline int
xet_vectors_is_hash(const xet_hash_t *hash, const char *want,
    const char *name, const char *file, int line)
{
    int   ok;
    char  got[XET_HASH_STR_LEN + 1];

    *xet_hash_print((uint8_t *) got, hash) = '\0';

    ok = xet_test_result(want && strcmp(got, want) == 0, file, line, "%s",
                         name);

    if (!ok) {
        printf("#   got %s, want %s\n", got, want ? want : "(none)");
    }

    return ok;
}


static inline uint64_t
xet_splitmix64(uint64_t *state)
{
    uint64_t  z;

    *state += UINT64_C(0x9e3779b97f4a7c15);

    z = *state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);

    return z ^ (z >> 31);
}


/* Returns n bytes of the stream that the vectors call splitmix64. */

static inline uint8_t *
xet_splitmix64_data(size_t n, uint64_t seed)
{
    size_t    i, k;
    uint8_t  *data, word[8];

    data = malloc(n ? n : 1);

    if (data == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i += k) {
        xet_put_u64(word, xet_splitmix64(&seed));

        k = (n - i < 8) ? n - i : 8;

        memcpy(data + i, word, k);
    }

    return data;
}


#endif /* _XET_VECTORS_H_INCLUDED_ */
