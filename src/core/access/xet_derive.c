
/*
 * Derives a key for each purpose from one secret, by HKDF (RFC 5869).  A
 * derived key discloses nothing about the secret or about other derived keys.
 * The function has no state; any number of threads may call it.  It leaves
 * OpenSSL's error queue unchanged.
 */


#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include "xet_base.h"
#include "xet_access.h"


xet_status_t
xet_key_derive(uint8_t *out, const uint8_t *secret, size_t len,
    const char *label)
{
    int            ok;
    char           digest[] = "SHA256";
    uint8_t        key[XET_KEY_LEN];
    EVP_KDF       *kdf;
    OSSL_PARAM     params[4];
    EVP_KDF_CTX   *ctx;

    ERR_set_mark();

    ctx = NULL;
    kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);

    if (kdf != NULL) {
        ctx = EVP_KDF_CTX_new(kdf);
        EVP_KDF_free(kdf);
    }

    params[0] = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST,
                                                 digest, 0);
    params[1] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY,
                                                  (void *) secret, len);
    params[2] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO,
                                                  (void *) label,
                                                  strlen(label));
    params[3] = OSSL_PARAM_construct_end();

    ok = ctx != NULL && EVP_KDF_derive(ctx, key, sizeof(key), params) == 1;

    EVP_KDF_CTX_free(ctx);

    ERR_pop_to_mark();

    if (ok) {
        memcpy(out, key, sizeof(key));
    }

    OPENSSL_cleanse(key, sizeof(key));

    return ok ? XET_OK : XET_NOMEM;
}
