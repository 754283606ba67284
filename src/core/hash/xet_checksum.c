
/*
 * The digest of a stored copy of a xorb: 128-bit XXH3.
 *
 * Purpose:    computes the digest while a copy is written, and again when the
 *             copy is read, to detect damage at a fifth of the cost of BLAKE3.
 *             It does not protect against forgery; the chunk hashes do.  A
 *             client that could make two copies with the same digest still
 *             can't choose which bytes are stored under the name of a copy: the
 *             server allocates a name for each copy and writes it only once.
 * States:     created or reset, updated any number of times, finished.
 * Ownership:  the caller owns the state, about 600 bytes on the heap, because
 *             the library defines the structure.
 * Threads:    one at a time.
 */


#include <xxhash.h>

/* without this header, the library does not use the CPU's widest vectors */

#if (defined __x86_64__ && defined __has_include)
#if __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#endif
#endif

#include <string.h>

#include "xet_hash.h"


xet_checksum_state_t *
xet_checksum_create(void)
{
    XXH3_state_t  *s;

    s = XXH3_createState();

    if (s != NULL) {
        (void) XXH3_128bits_reset(s);
    }

    return (xet_checksum_state_t *) s;
}


void
xet_checksum_destroy(xet_checksum_state_t *s)
{
    (void) XXH3_freeState((XXH3_state_t *) s);
}


void
xet_checksum_reset(xet_checksum_state_t *s)
{
    (void) XXH3_128bits_reset((XXH3_state_t *) s);
}


void
xet_checksum_update(xet_checksum_state_t *s, const void *data, size_t len)
{
    (void) XXH3_128bits_update((XXH3_state_t *) s, data, len);
}


void
xet_checksum_finish(const xet_checksum_state_t *s, xet_checksum_t *out)
{
    XXH128_canonical_t  canonical;

    XXH128_canonicalFromHash(&canonical,
                             XXH3_128bits_digest((const XXH3_state_t *) s));

    memcpy(out->bytes, canonical.digest, XET_CHECKSUM_LEN);
}


int
xet_checksum_equal(const xet_checksum_t *a, const xet_checksum_t *b)
{
    return memcmp(a->bytes, b->bytes, XET_CHECKSUM_LEN) == 0;
}
