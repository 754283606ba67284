
/*
 * Public keys: which are fit for tokens, and what they are called.
 *
 * Purpose:    a weak key is refused when it is loaded, not when somebody
 *             makes use of it: other curves and sizes than ours, points that
 *             are not on the curve or of small order, an exponent of 1.
 * States:     none.
 * Ownership:  all is borrowed.
 * Threads:    any; OpenSSL reads a public key under its own locks.
 *
 * Errors may stay in the queue of OpenSSL: these functions are of xet_jwk.c,
 * which cleans up around them.
 *
 * That a point of Ed25519 is on its curve is not checked, OpenSSL has no way
 * to ask; a key that is not never verifies anything.
 */


#include <string.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>

#include "xet_base64.h"
#include "xet_jwk_public.h"


#define XET_JWK_ED_LEN   32            /* a point; a signature is of two */
#define XET_JWK_EC_LEN   32            /* a coordinate; as above */
#define XET_JWK_EXP_MAX  8             /* bytes of the exponent of RSA */

#define XET_JWK_EC_EXPLICIT  OSSL_PKEY_PARAM_EC_DECODED_FROM_EXPLICIT_PARAMS


static xet_status_t xet_jwk_public_ed(EVP_PKEY *pkey);
static xet_status_t xet_jwk_public_ec(EVP_PKEY *pkey);
static xet_status_t xet_jwk_public_rsa(EVP_PKEY *pkey);
static xet_status_t xet_jwk_public_generic(EVP_PKEY *pkey);
static uint8_t *xet_jwk_public_put(uint8_t *dst, const char *text);
static uint8_t *xet_jwk_public_number(uint8_t *dst, EVP_PKEY *pkey,
    const char *name, size_t len);


/*
 * y of the points of Ed25519 whose order divides 8: a signature by such a
 * key verifies for one message in 8 at least, and anybody can make it.
 */

static const uint8_t  xet_jwk_public_small[][XET_JWK_ED_LEN] = {

    { 0 },

    { 1 },

    { 0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f },

    { 0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4,
      0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6,
      0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05 },

    { 0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b,
      0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39,
      0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a }
};


xet_status_t
xet_jwk_public_check(EVP_PKEY *pkey, xet_jwk_alg_t *alg,
    size_t *signature_len)
{
    if (EVP_PKEY_is_a(pkey, "ED25519")) {
        *alg = XET_JWK_EDDSA;
        *signature_len = 2 * XET_JWK_ED_LEN;

        return xet_jwk_public_ed(pkey);
    }

    if (EVP_PKEY_is_a(pkey, "EC")) {
        *alg = XET_JWK_ES256;
        *signature_len = 2 * XET_JWK_EC_LEN;

        return xet_jwk_public_ec(pkey);
    }

    /* not RSA-PSS, which has a name of its own */

    if (EVP_PKEY_is_a(pkey, "RSA")) {
        *alg = XET_JWK_RS256;
        *signature_len = ((size_t) EVP_PKEY_get_bits(pkey) + 7) / 8;

        return xet_jwk_public_rsa(pkey);
    }

    return XET_JWK_KIND;
}


xet_status_t
xet_jwk_public_thumbprint(EVP_PKEY *pkey, xet_jwk_alg_t alg, uint8_t *dst)
{
    int       ok;
    uint8_t  *p, digest[32];
    uint8_t   text[64 + xet_base64_encoded(XET_JWK_RSA_MAX / 8)
                   + xet_base64_encoded(XET_JWK_EXP_MAX)];

    p = text;

    switch (alg) {

    case XET_JWK_EDDSA:
        p = xet_jwk_public_put(p, "{\"crv\":\"Ed25519\",\"kty\":\"OKP\","
                                  "\"x\":\"");
        p = xet_jwk_public_number(p, pkey, OSSL_PKEY_PARAM_PUB_KEY, 0);
        break;

    case XET_JWK_ES256:
        p = xet_jwk_public_put(p, "{\"crv\":\"P-256\",\"kty\":\"EC\","
                                  "\"x\":\"");
        p = xet_jwk_public_number(p, pkey, OSSL_PKEY_PARAM_EC_PUB_X,
                                  XET_JWK_EC_LEN);
        p = xet_jwk_public_put(p, "\",\"y\":\"");
        p = xet_jwk_public_number(p, pkey, OSSL_PKEY_PARAM_EC_PUB_Y,
                                  XET_JWK_EC_LEN);
        break;

    case XET_JWK_RS256:
        p = xet_jwk_public_put(p, "{\"e\":\"");
        p = xet_jwk_public_number(p, pkey, OSSL_PKEY_PARAM_RSA_E, 1);
        p = xet_jwk_public_put(p, "\",\"kty\":\"RSA\",\"n\":\"");
        p = xet_jwk_public_number(p, pkey, OSSL_PKEY_PARAM_RSA_N, 1);
        break;

    default:
        p = NULL;
    }

    p = xet_jwk_public_put(p, "\"}");

    ok = p != NULL
         && EVP_Digest(text, (size_t) (p - text), digest, NULL, EVP_sha256(),
                       NULL);

    if (!ok) {
        return XET_INTERNAL;
    }

    (void) xet_base64_encode(dst, digest, sizeof(digest));

    return XET_OK;
}


static xet_status_t
xet_jwk_public_ed(EVP_PKEY *pkey)
{
    size_t   i, len;
    uint8_t  y[XET_JWK_ED_LEN];

    len = sizeof(y);

    if (!EVP_PKEY_get_raw_public_key(pkey, y, &len) || len != sizeof(y)) {
        return XET_JWK_VALUE;
    }

    y[31] &= 0x7f;                     /* the sign of x */

    for (i = 0; i < sizeof(xet_jwk_public_small) / sizeof(y); i++) {
        if (memcmp(y, xet_jwk_public_small[i], sizeof(y)) == 0) {
            return XET_JWK_VALUE;
        }
    }

    /* y of 2^255 - 19 and more is a second spelling */

    for (i = 30; i > 0 && y[i] == 0xff; i--) { /* void */ }

    if (i == 0 && y[31] == 0x7f && y[0] >= 0xed) {
        return XET_JWK_VALUE;
    }

    return XET_OK;
}


static xet_status_t
xet_jwk_public_ec(EVP_PKEY *pkey)
{
    int     explicit;
    char    name[64];
    size_t  len;

    if (!EVP_PKEY_get_group_name(pkey, name, sizeof(name), &len)
        || strcmp(name, "prime256v1") != 0)
    {
        return XET_JWK_KIND;
    }

    /* the curve by its name only, never by parameters that look like it */

    explicit = 0;

    (void) EVP_PKEY_get_int_param(pkey, XET_JWK_EC_EXPLICIT, &explicit);

    if (explicit) {
        return XET_JWK_KIND;
    }

    return xet_jwk_public_generic(pkey);
}


static xet_status_t
xet_jwk_public_rsa(EVP_PKEY *pkey)
{
    int      bits, exp_bits, ok;
    BIGNUM  *e;

    bits = EVP_PKEY_get_bits(pkey);

    if (bits < XET_JWK_RSA_MIN || bits > XET_JWK_RSA_MAX) {
        return XET_JWK_KIND;
    }

    /* an exponent of 1 makes every number its own signature */

    e = NULL;

    if (!EVP_PKEY_get_bn_param(pkey, OSSL_PKEY_PARAM_RSA_E, &e)) {
        return XET_JWK_VALUE;
    }

    exp_bits = BN_num_bits(e);

    ok = BN_is_odd(e) && exp_bits > 1 && exp_bits <= 8 * XET_JWK_EXP_MAX;

    BN_free(e);

    return ok ? xet_jwk_public_generic(pkey) : XET_JWK_VALUE;
}


/* A point on the curve; a modulus without small factors that is no prime. */

static xet_status_t
xet_jwk_public_generic(EVP_PKEY *pkey)
{
    int            ok;
    EVP_PKEY_CTX  *ctx;

    ctx = EVP_PKEY_CTX_new_from_pkey(NULL, pkey, NULL);
    if (ctx == NULL) {
        return XET_NOMEM;
    }

    ok = EVP_PKEY_public_check(ctx);

    EVP_PKEY_CTX_free(ctx);

    return (ok == 1) ? XET_OK : XET_JWK_VALUE;
}


static uint8_t *
xet_jwk_public_put(uint8_t *dst, const char *text)
{
    size_t  len;

    if (dst == NULL) {
        return NULL;
    }

    len = strlen(text);
    memcpy(dst, text, len);

    return dst + len;
}


/*
 * A number of the key in base64url, big-endian, with len bytes at least; len
 * of 0 for what is no number but bytes.  NULL on errors.
 */

static uint8_t *
xet_jwk_public_number(uint8_t *dst, EVP_PKEY *pkey, const char *name,
    size_t len)
{
    size_t    n;
    BIGNUM   *number;
    uint8_t   bytes[XET_JWK_RSA_MAX / 8];

    if (dst == NULL) {
        return NULL;
    }

    if (len == 0) {
        return EVP_PKEY_get_octet_string_param(pkey, name, bytes,
                                               sizeof(bytes), &n)
               ? xet_base64_encode(dst, bytes, n) : NULL;
    }

    number = NULL;

    if (!EVP_PKEY_get_bn_param(pkey, name, &number)) {
        return NULL;
    }

    n = (size_t) BN_num_bytes(number);
    n = (n < len) ? len : n;

    dst = (n <= sizeof(bytes)
           && BN_bn2binpad(number, bytes, (int) n) == (int) n)
          ? xet_base64_encode(dst, bytes, n) : NULL;

    BN_free(number);

    return dst;
}
