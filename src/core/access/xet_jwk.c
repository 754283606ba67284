
/*
 * One key of tokens.
 *
 * Purpose:    what is needed to make a signature or to check one.
 * States:     none after the making; a key is constant.
 * Ownership:  the key owns its OpenSSL objects; xet_jwk_destroy() releases
 *             them.  Nothing of the caller's memory is kept.
 * Threads:    any number at a time.  A secret is kept as a MAC context keyed
 *             once, of which each call takes a copy; contexts of signatures
 *             are made by each call.
 *
 * OpenSSL queues an error for each signature that does not verify.  The queue
 * belongs to the thread, and others read it for errors of theirs (nginx after
 * each TLS operation), so every function here leaves it as it was.
 *
 * A key has no algorithm but the one of its kind, so nothing a token says can
 * turn a public key into a secret.
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

#include "xet_jwk_public.h"


#define XET_JWK_MAC_LEN  32            /* HMAC-SHA256 */
#define XET_JWK_EC_LEN   32            /* each half of an ES256 signature */

#define XET_JWK_PEM_BEGIN  "-----BEGIN "


struct xet_jwk_s {
    xet_jwk_alg_t   alg;
    unsigned        private:1;
    EVP_MAC_CTX    *mac;               /* of a secret, never run itself */
    EVP_PKEY       *pkey;              /* of the others */
    size_t          signature_len;
    size_t          id_len;
    uint8_t         id[XET_JWK_ID_MAX];
};


static xet_status_t xet_jwk_create(xet_jwk_t **out, const uint8_t *id,
    size_t id_len);
static EVP_PKEY *xet_jwk_read_private(const uint8_t *pem, size_t len,
    xet_status_t *status);
static int xet_jwk_read_end(BIO *bio);
static int xet_jwk_mac(const xet_jwk_t *key, const uint8_t *data, size_t len,
    uint8_t *mac);
static unsigned char *xet_jwk_ecdsa(const uint8_t *signature, int *len);


static const char *const  xet_jwk_algs[] = {
    "HS256", "EdDSA", "ES256", "RS256"
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

    ok = key->mac != NULL && EVP_MAC_init(key->mac, secret, len, params);

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
        key->private = 1;
        *out = key;
    }

    EVP_PKEY_free(pkey);

    ERR_pop_to_mark();

    return status;
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

    status = xet_jwk_public_check(pkey, &key->alg, &key->signature_len);

    if (status == XET_OK && id_len == 0) {
        status = xet_jwk_public_thumbprint(pkey, key->alg, key->id);
        key->id_len = XET_JWK_THUMBPRINT;
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
        if (strlen(xet_jwk_algs[i]) == len
            && memcmp(xet_jwk_algs[i], name, len) == 0)
        {
            break;
        }
    }

    return (xet_jwk_alg_t) i;
}


const char *
xet_jwk_alg_name(xet_jwk_alg_t alg)
{
    return (alg < XET_JWK_ALG_MAX) ? xet_jwk_algs[alg] : "";
}


xet_status_t
xet_jwk_thumbprint(const xet_jwk_t *key, uint8_t *dst)
{
    xet_status_t  status;

    if (key->pkey == NULL) {
        return XET_INTERNAL;
    }

    ERR_set_mark();

    status = xet_jwk_public_thumbprint(key->pkey, key->alg, dst);

    ERR_pop_to_mark();

    return status;
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

    /* not yet: no memory; after it: no signature of the key */

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
 * Block by block and not with PEM_read_bio_PrivateKey(), which takes what
 * comes first and asks at the terminal for a pass phrase.
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


/* Whether no other block follows, which would be a key that nobody uses. */

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


/* The two numbers as OpenSSL wants them; it checks their range itself. */

static unsigned char *
xet_jwk_ecdsa(const uint8_t *signature, int *len)
{
    BIGNUM         *r, *s;
    ECDSA_SIG      *sig;
    unsigned char  *der;

    der = NULL;

    r = BN_bin2bn(signature, XET_JWK_EC_LEN, NULL);
    s = BN_bin2bn(signature + XET_JWK_EC_LEN, XET_JWK_EC_LEN, NULL);
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
