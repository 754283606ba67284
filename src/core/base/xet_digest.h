
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
 * The SHA-256 in the value of such a header.  XET_OK; XET_DONE when it has
 * other algorithms only; XET_DIGEST_SYNTAX when it is no dictionary of byte
 * sequences (RFC 8941), or this one has not 32 bytes.  Of several the last
 * one counts.  sha256 is undefined but for XET_OK.
 */
xet_status_t xet_digest_sha256(const uint8_t *value, size_t len,
    uint8_t *sha256);


#endif /* _XET_DIGEST_H_INCLUDED_ */
