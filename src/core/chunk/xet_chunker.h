
/*
 * Content-defined chunking (draft-denis-xet, "Content-Defined Chunking"),
 * streamed.
 */

#ifndef _XET_CHUNKER_H_INCLUDED_
#define _XET_CHUNKER_H_INCLUDED_


#include "xet_suite.h"


typedef struct {
    const xet_suite_t  *suite;
    uint64_t            hash;
    uint32_t            size;          /* bytes in the open chunk */
} xet_chunker_t;


void xet_chunker_init(xet_chunker_t *c, const xet_suite_t *suite);

/*
 * Takes bytes up to the next boundary: returns how many of the len bytes of
 * data belong to the open chunk.  *cut is 1 when the chunk ends with them, and
 * the next call starts another chunk; it is 0 when all of data was taken and
 * the chunk goes on.
 */
size_t xet_chunker_feed(xet_chunker_t *c, const uint8_t *data, size_t len,
    int *cut);


#endif /* _XET_CHUNKER_H_INCLUDED_ */
