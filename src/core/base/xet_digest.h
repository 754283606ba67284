
/*
 * Digest headers (RFC 9530): Repr-Digest and Content-Digest, which say the
 * same of a whole, unencoded body.
 */

#ifndef _XET_DIGEST_H_INCLUDED_
#define _XET_DIGEST_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include "xet_status.h"


#define XET_DIGEST_SHA256_LEN  32


/*
 * Writes the SHA-256 that the value of a digest header has to sha256, which has
 * room for XET_DIGEST_SHA256_LEN bytes.  XET_OK; XET_DONE when the header has
 * other algorithms only; XET_DIGEST_SYNTAX when the value is no dictionary of
 * byte sequences (RFC 8941), or a SHA-256 does not have 32 bytes.  Of several
 * SHA-256 the last one counts.  sha256 is undefined unless XET_OK is returned.
 */
xet_status_t xet_digest_sha256(const uint8_t *value, size_t len,
    uint8_t *sha256);


#endif /* _XET_DIGEST_H_INCLUDED_ */
