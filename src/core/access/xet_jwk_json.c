
/*
 * A token key from a JSON Web Key (RFC 7517).
 *
 * Purpose:    creates a public key from the numbers in a JWK.
 * States:     none.
 * Ownership:  the caller keeps the JSON; the key has no pointers into it.
 * Threads:    any number at a time.
 *
 * A JSON Web Key of an unsupported type, curve, algorithm or use is skipped,
 * as RFC 7517 requires.  Any other JSON Web Key must be valid, with numbers in
 * canonical encoding and length.  xet_jwk_create_public() then refuses weak
 * keys.
 */


#include <string.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/params.h>

#include "xet_base.h"
#include "xet_access.h"


/* A key type; the members are NULL for a secret. */

typedef struct {
    const char  *kty;
    EVP_PKEY  *(*read)(const json_t *member, xet_status_t *status);
} xet_jwk_json_kind_t;


/* A decoded RSA number of a JWK; there is room for the largest modulus. */

typedef struct {
    size_t   len;
    uint8_t  bytes[XET_JWK_RSA_MAX / 8];
} xet_jwk_number_t;


static EVP_PKEY *xet_jwk_json_pkey(const json_t *member,
    xet_status_t *status);
static xet_status_t xet_jwk_json_purpose(const json_t *member,
    xet_jwk_alg_t alg);
static EVP_PKEY *xet_jwk_json_okp(const json_t *member, xet_status_t *status);
static EVP_PKEY *xet_jwk_json_ec(const json_t *member, xet_status_t *status);
static EVP_PKEY *xet_jwk_json_rsa(const json_t *member, xet_status_t *status);
static EVP_PKEY *xet_jwk_json_build(const char *type, OSSL_PARAM_BLD *bld);
static xet_status_t xet_jwk_json_curve(const json_t *member,
    const char *name);
static int xet_jwk_json_coordinate(const json_t *member, const char *name,
    uint8_t *dst);
static xet_status_t xet_jwk_json_number(const json_t *member,
    const char *name, xet_jwk_number_t *number);
static int xet_jwk_json_is(const json_t *string, const char *text);


/* The key types, indexed by xet_jwk_alg_t. */

static const xet_jwk_json_kind_t  xet_jwk_json_kinds[] = {
    { NULL, NULL },
    { "OKP", xet_jwk_json_okp },
    { "EC", xet_jwk_json_ec },
    { "RSA", xet_jwk_json_rsa }
};


/*
 * The private and secret members of a JWK, for all key types.  Such a member is
 * an error even in a key that is skipped.
 */

static const char *const  xet_jwk_json_private[] = {
    "d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"
};


xet_status_t
xet_jwk_create_json(xet_jwk_t **out, const json_t *member)
{
    size_t         len;
    json_t        *kid;
    EVP_PKEY      *pkey;
    const char    *id;
    xet_status_t   status;

    ERR_set_mark();

    status = XET_OK;
    pkey = xet_jwk_json_pkey(member, &status);

    if (status == XET_OK) {
        kid = json_object_get(member, "kid");
        id = json_string_value(kid);
        len = json_string_length(kid);

        if (pkey == NULL) {
            status = XET_JWK_VALUE;

        } else if (kid != NULL && len == 0) {
            status = XET_JWK_KID;      /* empty, or not a string */

        } else {
            status = xet_jwk_create_public(out, (const uint8_t *) id, len,
                                           pkey);
        }
    }

    EVP_PKEY_free(pkey);

    ERR_pop_to_mark();

    return status;
}


/*
 * Creates a key from the numbers in a JWK.  When the numbers are not a valid
 * key, returns NULL and sets *status to XET_OK.
 */

static EVP_PKEY *
xet_jwk_json_pkey(const json_t *member, xet_status_t *status)
{
    size_t   i;
    json_t  *kty;

    kty = json_object_get(member, "kty");

    /* kty is NULL if member is not an object */

    if (!json_is_string(kty)) {
        *status = XET_JWK_VALUE;
        return NULL;
    }

    for (i = 0; i < sizeof(xet_jwk_json_private) / sizeof(char *); i++) {
        if (json_object_get(member, xet_jwk_json_private[i]) != NULL) {
            *status = XET_JWK_PRIVATE;
            return NULL;
        }
    }

    for (i = XET_JWK_EDDSA; i < XET_JWK_ALG_MAX; i++) {

        if (xet_jwk_json_is(kty, xet_jwk_json_kinds[i].kty)) {
            *status = xet_jwk_json_purpose(member, (xet_jwk_alg_t) i);

            return (*status == XET_OK)
                   ? xet_jwk_json_kinds[i].read(member, status)
                   : NULL;
        }
    }

    *status = XET_DONE;

    return NULL;
}


/*
 * Returns XET_OK when a JWK is meant for verifying signatures with the
 * algorithm, XET_DONE when it is not.
 */

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


static EVP_PKEY *
xet_jwk_json_okp(const json_t *member, xet_status_t *status)
{
    uint8_t  x[XET_JWK_CURVE_LEN];

    *status = xet_jwk_json_curve(member, "Ed25519");

    if (*status != XET_OK) {
        return NULL;
    }

    return xet_jwk_json_coordinate(member, "x", x)
           ? EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, x, sizeof(x))
           : NULL;
}


static EVP_PKEY *
xet_jwk_json_ec(const json_t *member, xet_status_t *status)
{
    uint8_t          point[1 + 2 * XET_JWK_CURVE_LEN];
    EVP_PKEY        *pkey;
    OSSL_PARAM_BLD  *bld;

    *status = xet_jwk_json_curve(member, "P-256");

    if (*status != XET_OK
        || !xet_jwk_json_coordinate(member, "x", point + 1)
        || !xet_jwk_json_coordinate(member, "y",
                                    point + 1 + XET_JWK_CURVE_LEN))
    {
        return NULL;
    }

    point[0] = POINT_CONVERSION_UNCOMPRESSED;

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

    /* leading zeros would be another encoding of the same number */

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


/* Returns XET_OK if the JWK's curve has that name, XET_DONE otherwise. */

static xet_status_t
xet_jwk_json_curve(const json_t *member, const char *name)
{
    json_t  *crv;

    crv = json_object_get(member, "crv");

    if (!json_is_string(crv)) {
        return XET_JWK_VALUE;
    }

    return xet_jwk_json_is(crv, name) ? XET_OK : XET_DONE;
}


/* Decodes a coordinate of XET_JWK_CURVE_LEN bytes; returns 0 if invalid. */

static int
xet_jwk_json_coordinate(const json_t *member, const char *name, uint8_t *dst)
{
    size_t   len;
    json_t  *string;

    string = json_object_get(member, name);
    len = json_string_length(string);

    return len == xet_base64_encoded(XET_JWK_CURVE_LEN)
           && xet_base64_decode(dst,
                                (const uint8_t *) json_string_value(string),
                                len);
}


/*
 * Decodes a number.  Returns XET_JWK_VALUE if the number is missing or
 * malformed, XET_JWK_KIND if it is too long.
 */

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
    /* a string from xet_json_parse() has no NUL inside */

    return strcmp(json_string_value(string), text) == 0;
}
