
/*
 * Builds tokens for tests: the test chooses header and payload, and the
 * signature is always valid.  Calls OpenSSL directly, not the code under test.
 */

#ifndef _XET_TEST_JWT_H_INCLUDED_
#define _XET_TEST_JWT_H_INCLUDED_


#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>


typedef struct {
    const char     *alg;
    EVP_PKEY       *pkey;          /* if NULL, secret is used */
    const uint8_t  *secret;
    size_t          len;
} xet_test_signer_t;


static inline size_t
xet_test_base64(char *dst, const void *src, size_t len)
{
    char           *p;
    size_t          i;
    uint32_t        bits;
    unsigned        have;
    const uint8_t  *s;

    static const char  digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    s = src;
    p = dst;
    bits = 0;
    have = 0;

    for (i = 0; i < len; i++) {
        bits = bits << 8 | s[i];
        have += 8;

        while (have >= 6) {
            have -= 6;
            *p++ = digits[bits >> have & 63];
        }
    }

    if (have) {
        *p++ = digits[bits << (6 - have) & 63];
    }

    *p = '\0';

    return (size_t) (p - dst);
}


/* Converts an ECDSA signature from DER to its 64-byte JWS form. */

static inline size_t
xet_test_ecdsa(uint8_t *dst, const uint8_t *der, size_t len)
{
    ECDSA_SIG            *sig;
    const unsigned char  *p;

    p = der;
    sig = d2i_ECDSA_SIG(NULL, &p, (long) len);

    BN_bn2binpad(ECDSA_SIG_get0_r(sig), dst, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(sig), dst + 32, 32);

    ECDSA_SIG_free(sig);

    return 64;
}


/*
 * Writes the signature to dst, which has 1024 bytes.  If der is set, an ES256
 * signature stays DER.
 */

static inline size_t
xet_test_sign(uint8_t *dst, const xet_test_signer_t *s, const void *data,
    size_t len, int der)
{
    size_t       n;
    uint8_t      raw[1024];
    unsigned     mac_len;
    EVP_MD_CTX  *ctx;

    if (s->pkey == NULL) {
        HMAC(EVP_sha256(), s->secret, (int) s->len, data, len, dst, &mac_len);
        return mac_len;
    }

    n = sizeof(raw);
    ctx = EVP_MD_CTX_new();

    if (EVP_DigestSignInit(ctx, NULL, EVP_PKEY_is_a(s->pkey, "ED25519")
                                      ? NULL : EVP_sha256(),
                           NULL, s->pkey) != 1
        || EVP_DigestSign(ctx, raw, &n, data, len) != 1)
    {
        abort();
    }

    EVP_MD_CTX_free(ctx);

    if (EVP_PKEY_is_a(s->pkey, "EC") && !der) {
        return xet_test_ecdsa(dst, raw, n);
    }

    memcpy(dst, raw, n);

    return n;
}


/* Writes a complete token and a zero byte; returns the token's length. */

static inline size_t
xet_test_jwt_n(char *dst, const xet_test_signer_t *s, const void *header,
    size_t header_len, const void *payload, size_t payload_len)
{
    size_t   n, signature_len;
    uint8_t  signature[1024];

    n = xet_test_base64(dst, header, header_len);
    dst[n++] = '.';
    n += xet_test_base64(dst + n, payload, payload_len);

    signature_len = xet_test_sign(signature, s, dst, n, 0);

    dst[n++] = '.';
    n += xet_test_base64(dst + n, signature, signature_len);

    return n;
}


static inline size_t
xet_test_jwt(char *dst, const xet_test_signer_t *s, const char *header,
    const char *payload)
{
    return xet_test_jwt_n(dst, s, header, strlen(header), payload,
                          strlen(payload));
}


/*
 * Returns "PUBLIC KEY" PEM, or PKCS#8 "PRIVATE KEY" PEM; the caller frees it.
 */

static inline char *
xet_test_pem(EVP_PKEY *pkey, int private)
{
    BIO   *bio;
    char  *data, *pem;
    long   len;

    bio = BIO_new(BIO_s_mem());

    if (private) {
        PEM_write_bio_PKCS8PrivateKey(bio, pkey, NULL, NULL, 0, NULL, NULL);

    } else {
        PEM_write_bio_PUBKEY(bio, pkey);
    }

    len = BIO_get_mem_data(bio, &data);

    pem = malloc((size_t) len + 1);
    memcpy(pem, data, (size_t) len);
    pem[len] = '\0';

    BIO_free(bio);

    return pem;
}


#endif /* _XET_TEST_JWT_H_INCLUDED_ */
