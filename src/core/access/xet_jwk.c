
/*
 * A key that signs or verifies tokens.
 *
 * Purpose:    creates and verifies signatures; reads keys from PEM.
 * States:     none; a key is constant after its creation.
 * Ownership:  the key owns its OpenSSL objects, xet_jwk_destroy() frees them.
 *             A key has no pointers into the caller's memory or JSON.
 * Threads:    any number at a time.  A secret is kept as a keyed MAC context
 *             that each call copies; signature contexts are created per call.
 *
 * OpenSSL queues an error for each signature that does not verify.  Other code
 * in the thread reads this queue, such as nginx after each TLS operation.  So
 * every public function leaves the queue unchanged.
 *
 * The type of a key determines its algorithm, so a token can't cause a public
 * key to be used as a secret.  Weak public keys are refused when they are
 * loaded; the xet_jwk_check_*() functions have the details.
 */


#include <stdlib.h>
#include <string.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "xet_base.h"
#include "xet_access.h"


#define XET_JWK_MAC_LEN    32          /* HMAC-SHA256 */
#define XET_JWK_EXP_MAX    8           /* bytes of an RSA exponent */

#define XET_JWK_PEM_BEGIN  "-----BEGIN "

/* label of the seed, from which xet_jwk_derive() derives other keys */
#define XET_JWK_SEED       "xet token seed 1"

#define XET_JWK_EC_EXPLICIT  OSSL_PKEY_PARAM_EC_DECODED_FROM_EXPLICIT_PARAMS


struct xet_jwk_s {
    xet_jwk_alg_t   alg;
    unsigned        private:1;
    EVP_MAC_CTX    *mac;               /* context of a secret; each call uses
                                          a copy of the context */
    EVP_PKEY       *pkey;              /* key of any other type */
    size_t          signature_len;
    uint8_t         seed[XET_KEY_LEN]; /* set if private is 1 */
    size_t          id_len;
    uint8_t         id[XET_JWK_ID_MAX];
    uint8_t         tag[XET_JWK_TAG];
};


/* A key type; the members after the name are NULL for a secret. */

typedef struct {
    const char     *name;              /* "alg" of tokens and JWKs */
    const char     *type;              /* name in OpenSSL */
    xet_status_t  (*check)(EVP_PKEY *pkey);
} xet_jwk_kind_t;


static xet_status_t xet_jwk_create(xet_jwk_t **out, const uint8_t *id,
    size_t id_len);
static int xet_jwk_set_tag(xet_jwk_t *key);
static xet_status_t xet_jwk_seed(xet_jwk_t *key);
static EVP_PKEY *xet_jwk_read_private(const uint8_t *pem, size_t len,
    xet_status_t *status);
static int xet_jwk_read_end(BIO *bio);
static xet_status_t xet_jwk_check(xet_jwk_t *key);
static xet_status_t xet_jwk_check_ed(EVP_PKEY *pkey);
static xet_status_t xet_jwk_check_ec(EVP_PKEY *pkey);
static xet_status_t xet_jwk_check_rsa(EVP_PKEY *pkey);
static xet_status_t xet_jwk_check_generic(EVP_PKEY *pkey);
static uint8_t *xet_jwk_put(uint8_t *dst, const char *text);
static uint8_t *xet_jwk_put_number(uint8_t *dst, EVP_PKEY *pkey,
    const char *name, size_t len);
static int xet_jwk_mac(const xet_jwk_t *key, const uint8_t *data, size_t len,
    uint8_t *mac);
static unsigned char *xet_jwk_ecdsa(const uint8_t *signature, int *len);


/* The key types, indexed by xet_jwk_alg_t. */

static const xet_jwk_kind_t  xet_jwk_kinds[] = {
    { "HS256", NULL, NULL },
    { "EdDSA", "ED25519", xet_jwk_check_ed },
    { "ES256", "EC", xet_jwk_check_ec },

    /* "RSA" excludes RSA-PSS, which OpenSSL names differently */
    { "RS256", "RSA", xet_jwk_check_rsa }
};


/*
 * The y coordinates of the Ed25519 points whose order divides 8.  If a key is
 * such a point, anybody can forge a signature that verifies for at least one
 * message in 8.
 */

static const uint8_t  xet_jwk_small[][XET_JWK_CURVE_LEN] = {

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
xet_jwk_create_secret(xet_jwk_t **out, const uint8_t *id, size_t id_len,
    const uint8_t *secret, size_t len)
{
    int            ok;
    char           digest[] = "SHA256";
    EVP_MAC       *mac;
    xet_jwk_t     *key;
    OSSL_PARAM     params[2];
    xet_status_t   status;

    if (!xet_jwk_id_ok(id, id_len)) {
        return XET_JWK_KID;
    }

    if (len < XET_JWK_SECRET_MIN
        || len > XET_JWK_SECRET_MAX
        || memcmp(secret, XET_JWK_PEM_BEGIN, sizeof(XET_JWK_PEM_BEGIN) - 1)
           == 0)
    {
        return XET_JWK_SECRET;
    }

    status = xet_jwk_create(&key, id, id_len);

    if (status != XET_OK) {
        return status;
    }

    key->alg = XET_JWK_HS256;
    key->private = 1;
    key->signature_len = XET_JWK_MAC_LEN;

    ERR_set_mark();

    mac = EVP_MAC_fetch(NULL, "HMAC", NULL);

    if (mac != NULL) {
        key->mac = EVP_MAC_CTX_new(mac);
        EVP_MAC_free(mac);
    }

    params[0] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST,
                                                 digest, 0);
    params[1] = OSSL_PARAM_construct_end();

    ok = key->mac != NULL && EVP_MAC_init(key->mac, secret, len, params)
         && xet_key_derive(key->seed, secret, len, XET_JWK_SEED) == XET_OK
         && xet_jwk_set_tag(key);

    ERR_pop_to_mark();

    if (!ok) {
        xet_jwk_destroy(key);
        return XET_NOMEM;
    }

    *out = key;

    return XET_OK;
}


xet_status_t
xet_jwk_create_private(xet_jwk_t **out, const uint8_t *id, size_t id_len,
    const uint8_t *pem, size_t len)
{
    EVP_PKEY      *pkey;
    xet_jwk_t     *key;
    xet_status_t   status;

    if (id_len && !xet_jwk_id_ok(id, id_len)) {
        return XET_JWK_KID;
    }

    ERR_set_mark();

    status = XET_OK;
    pkey = xet_jwk_read_private(pem, len, &status);

    if (status == XET_OK && !EVP_PKEY_is_a(pkey, "ED25519")) {
        status = XET_JWK_KIND;
    }

    if (status == XET_OK) {
        status = xet_jwk_create_public(&key, id, id_len, pkey);
    }

    if (status == XET_OK) {
        status = xet_jwk_seed(key);

        if (status != XET_OK) {
            xet_jwk_destroy(key);
        }
    }

    if (status == XET_OK) {
        key->private = 1;
        *out = key;
    }

    EVP_PKEY_free(pkey);

    ERR_pop_to_mark();

    return status;
}


static int
xet_jwk_set_tag(xet_jwk_t *key)
{
    int      ok;
    uint8_t  digest[32];

    ok = EVP_Digest(key->id, key->id_len, digest, NULL, EVP_sha256(), NULL);

    if (ok) {
        memcpy(key->tag, digest, XET_JWK_TAG);
    }

    return ok;
}


/*
 * Sets key->seed, from which xet_jwk_derive() derives other keys.  The input is
 * the 32 bytes of the private Ed25519 key, which have only one encoding: the
 * same private key always gives the same seed.
 */

static xet_status_t
xet_jwk_seed(xet_jwk_t *key)
{
    size_t        len;
    uint8_t       raw[XET_JWK_CURVE_LEN];
    xet_status_t  status;

    len = sizeof(raw);

    status = (EVP_PKEY_get_raw_private_key(key->pkey, raw, &len) == 1)
             ? xet_key_derive(key->seed, raw, len, XET_JWK_SEED) : XET_NOMEM;

    OPENSSL_cleanse(raw, sizeof(raw));

    return status;
}


xet_status_t
xet_jwk_derive(const xet_jwk_t *key, const char *label, uint8_t *out)
{
    return key->private
           ? xet_key_derive(out, key->seed, sizeof(key->seed), label)
           : XET_INTERNAL;
}


xet_status_t
xet_jwk_create_public(xet_jwk_t **out, const uint8_t *id, size_t id_len,
    EVP_PKEY *pkey)
{
    xet_jwk_t    *key;
    xet_status_t  status;

    status = xet_jwk_create(&key, id, id_len);

    if (status != XET_OK) {
        return status;
    }

    if (!EVP_PKEY_up_ref(pkey)) {
        xet_jwk_destroy(key);
        return XET_NOMEM;
    }

    key->pkey = pkey;

    ERR_set_mark();

    status = xet_jwk_check(key);

    if (status == XET_OK && id_len == 0) {
        status = xet_jwk_thumbprint(key, key->id);
        key->id_len = XET_JWK_THUMBPRINT;
    }

    if (status == XET_OK && !xet_jwk_set_tag(key)) {
        status = XET_NOMEM;
    }

    ERR_pop_to_mark();

    if (status != XET_OK) {
        xet_jwk_destroy(key);
        return status;
    }

    *out = key;

    return XET_OK;
}


void
xet_jwk_destroy(xet_jwk_t *key)
{
    if (key == NULL) {
        return;
    }

    EVP_MAC_CTX_free(key->mac);
    EVP_PKEY_free(key->pkey);

    OPENSSL_cleanse(key->seed, sizeof(key->seed));

    free(key);
}


xet_jwk_alg_t
xet_jwk_alg(const xet_jwk_t *key)
{
    return key->alg;
}


const uint8_t *
xet_jwk_id(const xet_jwk_t *key, size_t *len)
{
    *len = key->id_len;

    return key->id;
}


const uint8_t *
xet_jwk_tag(const xet_jwk_t *key)
{
    return key->tag;
}


int
xet_jwk_id_ok(const uint8_t *id, size_t len)
{
    size_t  i;

    if (len == 0 || len > XET_JWK_ID_MAX) {
        return 0;
    }

    for (i = 0; i < len; i++) {
        if (id[i] < 0x20 || id[i] > 0x7e) {
            return 0;
        }
    }

    return 1;
}


xet_jwk_alg_t
xet_jwk_alg_find(const char *name, size_t len)
{
    size_t  i;

    for (i = 0; i < XET_JWK_ALG_MAX; i++) {
        if (strlen(xet_jwk_kinds[i].name) == len
            && memcmp(xet_jwk_kinds[i].name, name, len) == 0)
        {
            break;
        }
    }

    return (xet_jwk_alg_t) i;
}


const char *
xet_jwk_alg_name(xet_jwk_alg_t alg)
{
    return (alg < XET_JWK_ALG_MAX) ? xet_jwk_kinds[alg].name : "";
}


xet_status_t
xet_jwk_thumbprint(const xet_jwk_t *key, uint8_t *dst)
{
    int       ok;
    uint8_t  *p, digest[32];
    uint8_t   text[64 + xet_base64_encoded(XET_JWK_RSA_MAX / 8)
                   + xet_base64_encoded(XET_JWK_EXP_MAX)];

    ERR_set_mark();

    p = text;

    switch (key->alg) {

    case XET_JWK_EDDSA:
        p = xet_jwk_put(p, "{\"crv\":\"Ed25519\",\"kty\":\"OKP\","
                                  "\"x\":\"");
        p = xet_jwk_put_number(p, key->pkey, OSSL_PKEY_PARAM_PUB_KEY, 0);
        break;

    case XET_JWK_ES256:
        p = xet_jwk_put(p, "{\"crv\":\"P-256\",\"kty\":\"EC\","
                                  "\"x\":\"");
        p = xet_jwk_put_number(p, key->pkey, OSSL_PKEY_PARAM_EC_PUB_X,
                               XET_JWK_CURVE_LEN);
        p = xet_jwk_put(p, "\",\"y\":\"");
        p = xet_jwk_put_number(p, key->pkey, OSSL_PKEY_PARAM_EC_PUB_Y,
                               XET_JWK_CURVE_LEN);
        break;

    case XET_JWK_RS256:
        p = xet_jwk_put(p, "{\"e\":\"");
        p = xet_jwk_put_number(p, key->pkey, OSSL_PKEY_PARAM_RSA_E, 1);
        p = xet_jwk_put(p, "\",\"kty\":\"RSA\",\"n\":\"");
        p = xet_jwk_put_number(p, key->pkey, OSSL_PKEY_PARAM_RSA_N, 1);
        break;

    default: /* XET_JWK_HS256 */
        p = NULL;
    }

    p = xet_jwk_put(p, "\"}");

    ok = p != NULL
         && EVP_Digest(text, (size_t) (p - text), digest, NULL, EVP_sha256(),
                       NULL);

    ERR_pop_to_mark();

    if (!ok) {
        return XET_INTERNAL;
    }

    (void) xet_base64_encode(dst, digest, sizeof(digest));

    return XET_OK;
}


xet_status_t
xet_jwk_verify(const xet_jwk_t *key, const uint8_t *data, size_t len,
    const uint8_t *signature, size_t signature_len)
{
    int             ok, der_len;
    uint8_t         mac[XET_JWK_MAC_LEN];
    EVP_MD_CTX     *ctx;
    unsigned char  *der;

    if (signature_len != key->signature_len) {
        return XET_TOKEN_SIGNATURE;
    }

    ERR_set_mark();

    if (key->alg == XET_JWK_HS256) {
        ok = xet_jwk_mac(key, data, len, mac);

        ERR_pop_to_mark();

        if (!ok) {
            return XET_NOMEM;
        }

        return (CRYPTO_memcmp(mac, signature, XET_JWK_MAC_LEN) == 0)
               ? XET_OK : XET_TOKEN_SIGNATURE;
    }

    der = NULL;
    der_len = 0;
    ctx = EVP_MD_CTX_new();

    ok = ctx != NULL
         && EVP_DigestVerifyInit(ctx, NULL, (key->alg == XET_JWK_EDDSA)
                                            ? NULL : EVP_sha256(),
                                 NULL, key->pkey) == 1;

    if (ok && key->alg == XET_JWK_ES256) {
        der = xet_jwk_ecdsa(signature, &der_len);

        ok = der != NULL;
        signature = der;
        signature_len = (size_t) der_len;
    }

    /* ok is 0 when out of memory, and -1 when the signature is wrong */

    if (ok) {
        ok = EVP_DigestVerify(ctx, signature, signature_len, data, len);
        ok = (ok == 1) ? 1 : -1;
    }

    OPENSSL_free(der);
    EVP_MD_CTX_free(ctx);

    ERR_pop_to_mark();

    return (ok == 1) ? XET_OK : (ok == 0) ? XET_NOMEM : XET_TOKEN_SIGNATURE;
}


xet_status_t
xet_jwk_sign(const xet_jwk_t *key, const uint8_t *data, size_t len,
    uint8_t *signature, size_t *signature_len)
{
    int          ok;
    size_t       n;
    EVP_MD_CTX  *ctx;

    if (!key->private) {
        return XET_INTERNAL;
    }

    ERR_set_mark();

    if (key->alg == XET_JWK_HS256) {
        ok = xet_jwk_mac(key, data, len, signature);

    } else {
        n = XET_JWK_SIGN_MAX;
        ctx = EVP_MD_CTX_new();

        ok = ctx != NULL
             && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key->pkey) == 1
             && EVP_DigestSign(ctx, signature, &n, data, len) == 1
             && n == key->signature_len;

        EVP_MD_CTX_free(ctx);
    }

    ERR_pop_to_mark();

    *signature_len = key->signature_len;

    return ok ? XET_OK : XET_NOMEM;
}


static xet_status_t
xet_jwk_create(xet_jwk_t **out, const uint8_t *id, size_t id_len)
{
    xet_jwk_t  *key;

    if (id_len > XET_JWK_ID_MAX) {
        return XET_JWK_KID;
    }

    key = calloc(1, sizeof(xet_jwk_t));
    if (key == NULL) {
        return XET_NOMEM;
    }

    if (id_len) {
        memcpy(key->id, id, id_len);
        key->id_len = id_len;
    }

    *out = key;

    return XET_OK;
}


/*
 * Reads the PEM blocks one by one: PEM_read_bio_PrivateKey() would accept the
 * first key of any type, and ask for a pass phrase on the terminal.
 */

static EVP_PKEY *
xet_jwk_read_private(const uint8_t *pem, size_t len, xet_status_t *status)
{
    BIO                  *bio;
    char                 *name, *header;
    long                  size;
    EVP_PKEY             *pkey;
    unsigned char        *data;
    const unsigned char  *p;
    PKCS8_PRIV_KEY_INFO  *info;

    *status = XET_JWK_SYNTAX;

    if (len > INT32_MAX) {
        return NULL;
    }

    bio = BIO_new_mem_buf(pem, (int) len);
    if (bio == NULL) {
        *status = XET_NOMEM;
        return NULL;
    }

    if (!PEM_read_bio(bio, &name, &header, &data, &size)) {
        BIO_free(bio);
        return NULL;
    }

    pkey = NULL;

    if (strcmp(name, "PRIVATE KEY") != 0 || header[0] != '\0') {
        *status = XET_JWK_KIND;

    } else if (xet_jwk_read_end(bio)) {
        p = data;
        info = d2i_PKCS8_PRIV_KEY_INFO(NULL, &p, size);

        if (info != NULL && p == data + size) {
            pkey = EVP_PKCS82PKEY(info);
        }

        PKCS8_PRIV_KEY_INFO_free(info);

        *status = (pkey != NULL) ? XET_OK : XET_JWK_VALUE;
    }

    BIO_free(bio);
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_clear_free(data, (size_t) size);

    return pkey;
}


/*
 * Returns 0 if another PEM block follows, because its key would be ignored.
 */

static int
xet_jwk_read_end(BIO *bio)
{
    char           *name, *header;
    long            size;
    unsigned char  *data;

    if (!PEM_read_bio(bio, &name, &header, &data, &size)) {
        return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    }

    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_clear_free(data, (size_t) size);

    return 0;
}


/*
 * Sets the algorithm and the signature length from the type of a public key;
 * refuses a weak key.
 */

static xet_status_t
xet_jwk_check(xet_jwk_t *key)
{
    size_t  i;

    for (i = XET_JWK_EDDSA; i < XET_JWK_ALG_MAX; i++) {

        if (EVP_PKEY_is_a(key->pkey, xet_jwk_kinds[i].type)) {
            key->alg = (xet_jwk_alg_t) i;
            key->signature_len = (i == XET_JWK_RS256)
                                 ? ((size_t) EVP_PKEY_get_bits(key->pkey) + 7)
                                   / 8
                                 : 2 * XET_JWK_CURVE_LEN;

            return xet_jwk_kinds[i].check(key->pkey);
        }
    }

    return XET_JWK_KIND;
}


/*
 * Refuses points of small order and a second encoding of a point.  OpenSSL has
 * no function to check that a point is on the curve; a key whose point is not
 * on the curve never verifies anything.
 */

static xet_status_t
xet_jwk_check_ed(EVP_PKEY *pkey)
{
    size_t   i, len;
    uint8_t  y[XET_JWK_CURVE_LEN];

    len = sizeof(y);

    if (!EVP_PKEY_get_raw_public_key(pkey, y, &len) || len != sizeof(y)) {
        return XET_JWK_VALUE;
    }

    y[31] &= 0x7f;                     /* the sign of x */

    for (i = 0; i < sizeof(xet_jwk_small) / sizeof(y); i++) {
        if (memcmp(y, xet_jwk_small[i], sizeof(y)) == 0) {
            return XET_JWK_VALUE;
        }
    }

    /* y >= 2^255 - 19 is a second encoding of a smaller y */

    for (i = 30; i > 0 && y[i] == 0xff; i--) { /* void */ }

    if (i == 0 && y[31] == 0x7f && y[0] >= 0xed) {
        return XET_JWK_VALUE;
    }

    return XET_OK;
}


static xet_status_t
xet_jwk_check_ec(EVP_PKEY *pkey)
{
    int     explicit;
    char    name[64];
    size_t  len;

    if (!EVP_PKEY_get_group_name(pkey, name, sizeof(name), &len)
        || strcmp(name, "prime256v1") != 0)
    {
        return XET_JWK_KIND;
    }

    /* the curve must be given by name, not by explicit parameters */

    explicit = 0;

    (void) EVP_PKEY_get_int_param(pkey, XET_JWK_EC_EXPLICIT, &explicit);

    if (explicit) {
        return XET_JWK_KIND;
    }

    return xet_jwk_check_generic(pkey);
}


static xet_status_t
xet_jwk_check_rsa(EVP_PKEY *pkey)
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

    return ok ? xet_jwk_check_generic(pkey) : XET_JWK_VALUE;
}


/*
 * Checks a key with OpenSSL: a point must be on its curve; a modulus must not
 * have small factors and must not be a prime.
 */

static xet_status_t
xet_jwk_check_generic(EVP_PKEY *pkey)
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
xet_jwk_put(uint8_t *dst, const char *text)
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
 * Writes a parameter of the key as base64url of at least len big-endian bytes.
 * A len of 0 means that the parameter is a byte string and not a number.
 * Returns the end of the text, or NULL on errors and when dst is NULL.
 */

static uint8_t *
xet_jwk_put_number(uint8_t *dst, EVP_PKEY *pkey, const char *name,
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


static int
xet_jwk_mac(const xet_jwk_t *key, const uint8_t *data, size_t len,
    uint8_t *mac)
{
    int           ok;
    size_t        n;
    EVP_MAC_CTX  *ctx;

    ctx = EVP_MAC_CTX_dup(key->mac);

    ok = ctx != NULL
         && EVP_MAC_update(ctx, data, len)
         && EVP_MAC_final(ctx, mac, &n, XET_JWK_MAC_LEN)
         && n == XET_JWK_MAC_LEN;

    EVP_MAC_CTX_free(ctx);

    return ok;
}


/*
 * Encodes the two numbers of a signature as DER for OpenSSL, which checks
 * their range.  Returns NULL when out of memory.
 */

static unsigned char *
xet_jwk_ecdsa(const uint8_t *signature, int *len)
{
    BIGNUM         *r, *s;
    ECDSA_SIG      *sig;
    unsigned char  *der;

    der = NULL;

    r = BN_bin2bn(signature, XET_JWK_CURVE_LEN, NULL);
    s = BN_bin2bn(signature + XET_JWK_CURVE_LEN, XET_JWK_CURVE_LEN, NULL);
    sig = ECDSA_SIG_new();

    if (r != NULL && s != NULL && sig != NULL && ECDSA_SIG_set0(sig, r, s)) {
        *len = i2d_ECDSA_SIG(sig, &der);

    } else {
        BN_free(r);
        BN_free(s);
    }

    ECDSA_SIG_free(sig);

    return der;
}
