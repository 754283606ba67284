
/*
 * Keys: from any document, a set gets all keys or none; each key has a known
 * kind and rejects forged signatures.
 *
 * Input: a byte with the mode, the rest is the document.  0: a JWK set; 1: a
 * PEM file of public keys; 2: a PEM file of a private key; 3: a secret.
 */


#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "xet_access.h"


#define check(cond)  if (!(cond)) { __builtin_trap(); }


static void
fuzz_key(const xet_jwk_t *key)
{
    size_t         len;
    uint8_t        signature[XET_JWK_SIGNATURE_MAX];
    uint8_t        a[XET_JWK_THUMBPRINT], b[XET_JWK_THUMBPRINT];
    xet_jwk_alg_t  alg;

    alg = xet_jwk_alg(key);
    check(alg < XET_JWK_ALG_MAX);

    (void) xet_jwk_id(key, &len);
    check(len >= 1 && len <= XET_JWK_ID_MAX);

    if (alg == XET_JWK_HS256) {
        check(xet_jwk_thumbprint(key, a) == XET_INTERNAL);

    } else {
        check(xet_jwk_thumbprint(key, a) == XET_OK);
        check(xet_jwk_thumbprint(key, b) == XET_OK);
        check(memcmp(a, b, sizeof(a)) == 0);
    }

    /* forgeries that need no key: zeros and ones, of every possible length */

    for (len = 0; len <= sizeof(signature); len += 32) {
        memset(signature, 0, sizeof(signature));
        check(xet_jwk_verify(key, a, 1, signature, len)
              == XET_TOKEN_SIGNATURE);

        if (len) {
            signature[len - 1] = 1;
            check(xet_jwk_verify(key, a, 1, signature, len)
                  == XET_TOKEN_SIGNATURE);
            signature[len - 1] = 0;
            signature[0] = 1;
            check(xet_jwk_verify(key, a, 1, signature, len)
                  == XET_TOKEN_SIGNATURE);
        }
    }
}


static void
fuzz_signer(xet_jwk_t *key)
{
    size_t   len;
    uint8_t  signature[XET_JWK_SIGN_MAX];

    check(xet_jwk_sign(key, (const uint8_t *) "text", 4, signature, &len)
          == XET_OK);
    check(len == ((xet_jwk_alg(key) == XET_JWK_HS256) ? 32 : 64));
    check(xet_jwk_verify(key, (const uint8_t *) "text", 4, signature, len)
          == XET_OK);
    check(xet_jwk_verify(key, (const uint8_t *) "texs", 4, signature, len)
          == XET_TOKEN_SIGNATURE);

    fuzz_key(key);
    xet_jwk_destroy(key);
}


static void
fuzz_document(const uint8_t *data, size_t size, int pem)
{
    size_t          i, n, index;
    xet_status_t    status;
    xet_jwk_set_t  *set;

    set = xet_jwk_set_create();
    check(set != NULL);

    status = pem ? xet_jwk_set_add_pem(set, NULL, 0, data, size, &index)
                 : xet_jwk_set_add_jwks(set, data, size, &index);

    n = xet_jwk_set_count(set);

    check((status == XET_OK) == (n > 0) && n <= XET_JWK_SET_MAX);
    check(status == XET_OK
          || (status >= XET_JWK_SYNTAX && status <= XET_JWK_NONE));

    for (i = 0; i < n && i < 2; i++) {
        fuzz_key(xet_jwk_set_get(set, i));
    }

    /* adds the same keys again: the existing keys do not change */

    if (status == XET_OK && n <= 2) {
        check((pem ? xet_jwk_set_add_pem(set, NULL, 0, data, size, &index)
                   : xet_jwk_set_add_jwks(set, data, size, &index))
              == XET_OK);
        check(xet_jwk_set_count(set) == 2 * n);
    }

    xet_jwk_set_destroy(set);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    xet_jwk_t     *key;
    xet_status_t   status;

    if (size < 1) {
        return 0;
    }

    switch (data[0] % 4) {

    case 0:
    case 1:
        fuzz_document(data + 1, size - 1, data[0] % 4);
        break;

    case 2:
        status = xet_jwk_create_private(&key, NULL, 0, data + 1, size - 1);

        if (status == XET_OK) {
            fuzz_signer(key);
        }

        break;

    default:
        status = xet_jwk_create_secret(&key, (const uint8_t *) "k", 1,
                                       data + 1, size - 1);

        check((status == XET_OK) == (size - 1 >= XET_JWK_SECRET_MIN
                                     && size - 1 <= XET_JWK_SECRET_MAX
                                     && memcmp(data + 1, "-----BEGIN ", 11)
                                        != 0));

        if (status == XET_OK) {
            fuzz_signer(key);
        }
    }

    check(ERR_peek_error() == 0);

    return 0;
}
