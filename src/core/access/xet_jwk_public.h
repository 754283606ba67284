
/*
 * The part of xet_jwk that looks into public keys; for its own files only.
 */

#ifndef _XET_JWK_PUBLIC_H_INCLUDED_
#define _XET_JWK_PUBLIC_H_INCLUDED_


#include "xet_jwk.h"


/*
 * The algorithm of a key and the length of its signatures in bytes.
 * XET_JWK_KIND, XET_JWK_VALUE, XET_NOMEM.
 */
xet_status_t xet_jwk_public_check(EVP_PKEY *pkey, xet_jwk_alg_t *alg,
    size_t *signature_len);

/* XET_JWK_THUMBPRINT characters; alg is what the key has. */
xet_status_t xet_jwk_public_thumbprint(EVP_PKEY *pkey, xet_jwk_alg_t alg,
    uint8_t *dst);


#endif /* _XET_JWK_PUBLIC_H_INCLUDED_ */
