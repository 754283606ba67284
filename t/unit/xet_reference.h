
/*
 * Reads reference data for the unit tests: real production files that are not
 * in this repository.  Tests are skipped if the files are absent.
 */

#ifndef _XET_REFERENCE_H_INCLUDED_
#define _XET_REFERENCE_H_INCLUDED_


#include "xet_test.h"
#include "xet_hash.h"


#define XET_REFERENCE         "xet/xet-spec-reference-files/"
#define XET_REFERENCE_CHUNKS  796      /* chunk count of ev-population.csv */
#define XET_REFERENCE_SIZE    63527244


typedef struct {
    xet_hash_t  hash;
    uint32_t    size;
} xet_reference_chunk_t;


/*
 * Reads a file and appends a zero byte.  If the file is absent, reports one
 * skipped test and returns NULL.
 */

static inline uint8_t *
xet_reference_load(const char *name, size_t *len)
{
    uint8_t     *data;
    const char  *path;

    path = xet_test_data(name);
    data = path ? xet_test_read(path, len) : NULL;
    data = data ? realloc(data, *len + 1) : NULL;

    if (data == NULL) {
        xet_skip("reference data absent");
        return NULL;
    }

    data[*len] = '\0';

    return data;
}


/*
 * Reads the chunk list of ev-population.csv: each line has a hash and a length.
 * Returns the number of chunks, up to max; 0 if the list is absent or
 * malformed.
 */

static inline size_t
xet_reference_chunks(xet_reference_chunk_t *chunks, size_t max)
{
    FILE        *f;
    char         text[65];
    size_t       n;
    unsigned     size;
    const char  *path;

    path = xet_test_data(XET_REFERENCE "ev-population.csv.chunks");
    f = path ? fopen(path, "r") : NULL;

    if (f == NULL) {
        return 0;
    }

    for (n = 0; n < max && fscanf(f, "%64s %u", text, &size) == 2; n++) {
        chunks[n].size = size;

        if (xet_hash_parse(&chunks[n].hash, (uint8_t *) text, strlen(text))
            != XET_OK)
        {
            n = 0;
            break;
        }
    }

    fclose(f);

    return n;
}


#endif /* _XET_REFERENCE_H_INCLUDED_ */
