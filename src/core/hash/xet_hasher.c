
/*
 * BLAKE3 of bytes that come in pieces.
 *
 * Purpose:    the digest of a stored copy of a xorb, computed while the copy
 *             is written, and again when it is read to see if it is whole.
 * States:     created or reset, updated any number of times, finished.
 * Ownership:  the caller's, about 2 KiB on the heap, because the structure is
 *             the library's.
 * Threads:    one at a time.
 */


#include <blake3.h>
#include <stdlib.h>

#include "xet_hash.h"


struct xet_hasher_s {
    blake3_hasher  state;
};


xet_hasher_t *
xet_hasher_create(void)
{
    xet_hasher_t  *h;

    h = malloc(sizeof(xet_hasher_t));

    if (h != NULL) {
        xet_hasher_reset(h);
    }

    return h;
}


void
xet_hasher_destroy(xet_hasher_t *h)
{
    free(h);
}


void
xet_hasher_reset(xet_hasher_t *h)
{
    blake3_hasher_init(&h->state);
}


void
xet_hasher_update(xet_hasher_t *h, const void *data, size_t len)
{
    blake3_hasher_update(&h->state, data, len);
}


void
xet_hasher_finish(xet_hasher_t *h, xet_hash_t *out)
{
    blake3_hasher_finalize(&h->state, out->bytes, XET_HASH_LEN);
}
