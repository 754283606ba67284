
/*
 * A JSON Web Key, RFC 7517, read.
 *
 * Purpose:    one member of a JWK set to one key.
 * States:     none.
 * Ownership:  the JSON is borrowed, the key is the caller's.
 * Threads:    any.
 *
 * What is no key for verifying tokens is skipped as the RFC asks: other kinds,
 * curves, algorithms and uses.  What says that it is one must be right to the
 * last bit: numbers have one spelling, in base64url and in their length.  No
 * member may be a private part, not even of a kind that is skipped.
 *
 * Errors may stay in the queue of OpenSSL: xet_jwk_set.c cleans up.
 */


#include <string.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include "xet_base64.h"
#include "xet_jwk_json.h"


#define XET_JWK_ED_LEN  32             /* a point */
#define XET_JWK_EC_LEN  32             /* a coordinate */


/* A member of a JWK, decoded; the largest one is the modulus of RSA. */

typedef struct {
    size_t   len;
    uint8_t  bytes[XET_JWK_RSA_MAX / 8];
} xet_jwk_number_t;


static xet_status_t xet_jwk_json_purpose(const json_t *member,
    xet_jwk_alg_t alg);
static xet_status_t xet_jwk_json_key(xet_jwk_t **key, const json_t *kid,
    EVP_PKEY *pkey);
static EVP_PKEY *xet_jwk_json_okp(const json_t *member, xet_status_t *status);
static EVP_PKEY *xet_jwk_json_ec(const json_t *member, xet_status_t *status);
static EVP_PKEY *xet_jwk_json_rsa(const json_t *member, xet_status_t *status);
static EVP_PKEY *xet_jwk_json_build(const char *type, OSSL_PARAM_BLD *bld);
static xet_status_t xet_jwk_json_number(const json_t *member,
    const char *name, xet_jwk_number_t *number);
static int xet_jwk_json_is(const json_t *string, const char *text);


/* The members of a JWK that nobody else may see, of all kinds of keys. */

static const char *const  xet_jwk_json_private[] = {
    "d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"
};


xet_status_t
xet_jwk_json_read(xet_jwk_t **key, const json_t *member)
{
    size_t         i;
    json_t        *kty;
    EVP_PKEY      *pkey;
    xet_status_t   status;

    kty = json_object_get(member, "kty");

    /* of what is no object, no member is got */

    if (!json_is_string(kty)) {
        return XET_JWK_VALUE;
    }

    for (i = 0; i < sizeof(xet_jwk_json_private) / sizeof(char *); i++) {
        if (json_object_get(member, xet_jwk_json_private[i]) != NULL) {
            return XET_JWK_PRIVATE;
        }
    }

    if (xet_jwk_json_is(kty, "OKP")) {
        status = xet_jwk_json_purpose(member, XET_JWK_EDDSA);
        pkey = (status == XET_OK) ? xet_jwk_json_okp(member, &status) : NULL;

    } else if (xet_jwk_json_is(kty, "EC")) {
        status = xet_jwk_json_purpose(member, XET_JWK_ES256);
        pkey = (status == XET_OK) ? xet_jwk_json_ec(member, &status) : NULL;

    } else if (xet_jwk_json_is(kty, "RSA")) {
        status = xet_jwk_json_purpose(member, XET_JWK_RS256);
        pkey = (status == XET_OK) ? xet_jwk_json_rsa(member, &status) : NULL;

    } else {
        return XET_DONE;
    }

    if (status == XET_OK) {
        status = (pkey != NULL)
                 ? xet_jwk_json_key(key, json_object_get(member, "kid"), pkey)
                 : XET_JWK_VALUE;
    }

    EVP_PKEY_free(pkey);

    return status;
}


/* Whether a JWK is there to verify signatures by the algorithm. */

static xet_status_t
xet_jwk_json_purpose(const json_t *member, xet_jwk_alg_t alg)
{
    size_t   i, verify;
    json_t  *use, *ops, *name;

    use = json_object_get(member, "use");
    ops = json_object_get(member, "key_ops");
    name = json_object_get(member, "alg");

    if ((use && !json_is_string(use))
        || (ops && !json_is_array(ops))
        || (name && !json_is_string(name)))
    {
        return XET_JWK_VALUE;
    }

    verify = (ops == NULL);

    for (i = 0; i < json_array_size(ops); i++) {

        if (!json_is_string(json_array_get(ops, i))) {
            return XET_JWK_VALUE;
        }

        verify |= xet_jwk_json_is(json_array_get(ops, i), "verify");
    }

    if ((use && !xet_jwk_json_is(use, "sig"))
        || (name && !xet_jwk_json_is(name, xet_jwk_alg_name(alg)))
        || !verify)
    {
        return XET_DONE;
    }

    return XET_OK;
}


static xet_status_t
xet_jwk_json_key(xet_jwk_t **key, const json_t *kid, EVP_PKEY *pkey)
{
    size_t       len;
    const char  *id;

    id = NULL;
    len = 0;

    if (kid != NULL) {
        id = json_string_value(kid);
        len = json_string_length(kid);

        if (len == 0) {
            return XET_JWK_KID;        /* or no string at all */
        }
    }

    return xet_jwk_create_public(key, (const uint8_t *) id, len, pkey);
}


static EVP_PKEY *
xet_jwk_json_okp(const json_t *member, xet_status_t *status)
{
    json_t            *crv;
    xet_jwk_number_t   x;

    crv = json_object_get(member, "crv");

    if (!json_is_string(crv)) {
        *status = XET_JWK_VALUE;
        return NULL;
    }

    if (!xet_jwk_json_is(crv, "Ed25519")) {
        *status = XET_DONE;
        return NULL;
    }

    *status = xet_jwk_json_number(member, "x", &x);

    if (*status != XET_OK || x.len != XET_JWK_ED_LEN) {
        *status = XET_JWK_VALUE;
        return NULL;
    }

    return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, x.bytes,
                                       x.len);
}


static EVP_PKEY *
xet_jwk_json_ec(const json_t *member, xet_status_t *status)
{
    json_t            *crv;
    uint8_t            point[1 + 2 * XET_JWK_EC_LEN];
    EVP_PKEY          *pkey;
    OSSL_PARAM_BLD    *bld;
    xet_jwk_number_t   x, y;

    crv = json_object_get(member, "crv");

    if (!json_is_string(crv)) {
        *status = XET_JWK_VALUE;
        return NULL;
    }

    if (!xet_jwk_json_is(crv, "P-256")) {
        *status = XET_DONE;
        return NULL;
    }

    if (xet_jwk_json_number(member, "x", &x) != XET_OK
        || xet_jwk_json_number(member, "y", &y) != XET_OK
        || x.len != XET_JWK_EC_LEN
        || y.len != XET_JWK_EC_LEN)
    {
        *status = XET_JWK_VALUE;
        return NULL;
    }

    point[0] = POINT_CONVERSION_UNCOMPRESSED;
    memcpy(point + 1, x.bytes, XET_JWK_EC_LEN);
    memcpy(point + 1 + XET_JWK_EC_LEN, y.bytes, XET_JWK_EC_LEN);

    pkey = NULL;
    bld = OSSL_PARAM_BLD_new();

    if (bld != NULL
        && OSSL_PARAM_BLD_push_utf8_string(bld, OSSL_PKEY_PARAM_GROUP_NAME,
                                           "prime256v1", 0)
        && OSSL_PARAM_BLD_push_octet_string(bld, OSSL_PKEY_PARAM_PUB_KEY,
                                            point, sizeof(point)))
    {
        pkey = xet_jwk_json_build("EC", bld);
    }

    OSSL_PARAM_BLD_free(bld);

    return pkey;
}


static EVP_PKEY *
xet_jwk_json_rsa(const json_t *member, xet_status_t *status)
{
    BIGNUM            *n, *e;
    EVP_PKEY          *pkey;
    OSSL_PARAM_BLD    *bld;
    xet_jwk_number_t   modulus, exponent;

    *status = xet_jwk_json_number(member, "n", &modulus);

    if (*status == XET_OK) {
        *status = xet_jwk_json_number(member, "e", &exponent);
    }

    if (*status != XET_OK) {
        return NULL;
    }

    /* one spelling of a number: without zeros in front */

    if (modulus.bytes[0] == 0 || exponent.bytes[0] == 0) {
        *status = XET_JWK_VALUE;
        return NULL;
    }

    pkey = NULL;
    bld = OSSL_PARAM_BLD_new();
    n = BN_bin2bn(modulus.bytes, (int) modulus.len, NULL);
    e = BN_bin2bn(exponent.bytes, (int) exponent.len, NULL);

    if (bld != NULL
        && OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_RSA_N, n)
        && OSSL_PARAM_BLD_push_BN(bld, OSSL_PKEY_PARAM_RSA_E, e))
    {
        pkey = xet_jwk_json_build("RSA", bld);
    }

    OSSL_PARAM_BLD_free(bld);
    BN_free(n);
    BN_free(e);

    return pkey;
}


static EVP_PKEY *
xet_jwk_json_build(const char *type, OSSL_PARAM_BLD *bld)
{
    EVP_PKEY      *pkey;
    OSSL_PARAM    *params;
    EVP_PKEY_CTX  *ctx;

    pkey = NULL;
    params = OSSL_PARAM_BLD_to_param(bld);
    ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);

    if (params == NULL
        || ctx == NULL
        || EVP_PKEY_fromdata_init(ctx) != 1
        || EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_PUBLIC_KEY, params) != 1)
    {
        pkey = NULL;
    }

    EVP_PKEY_CTX_free(ctx);
    OSSL_PARAM_free(params);

    return pkey;
}


/* XET_JWK_VALUE when it is not there; XET_JWK_KIND when it is too long. */

static xet_status_t
xet_jwk_json_number(const json_t *member, const char *name,
    xet_jwk_number_t *number)
{
    size_t          len;
    json_t         *string;
    const uint8_t  *text;

    string = json_object_get(member, name);

    text = (const uint8_t *) json_string_value(string);
    len = json_string_length(string);

    if (len == 0) {
        return XET_JWK_VALUE;
    }

    if (len > xet_base64_encoded(sizeof(number->bytes))) {
        return XET_JWK_KIND;
    }

    number->len = xet_base64_decoded(len);

    return xet_base64_decode(number->bytes, text, len) ? XET_OK
                                                       : XET_JWK_VALUE;
}


static int
xet_jwk_json_is(const json_t *string, const char *text)
{
    /* no NUL is in a string of ours, see xet_json_parse() */

    return strcmp(json_string_value(string), text) == 0;
}
