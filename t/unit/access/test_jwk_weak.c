
/*
 * Tests keys that must be rejected: unsupported kinds, curves and sizes, and
 * keys that make signatures worthless.
 */


#include <openssl/err.h>
#include <openssl/param_build.h>

#include "xet_test.h"
#include "xet_access.h"
#include "xet_test_jwt.h"


/* Returns the status of adding this key to a set; frees the key. */

static xet_status_t
test_pkey(EVP_PKEY *pkey)
{
    char           *pem;
    size_t          index;
    xet_status_t    status;
    xet_jwk_set_t  *set;

    set = xet_jwk_set_create();
    pem = xet_test_pem(pkey, 0);

    status = xet_jwk_set_add_pem(set, (const uint8_t *) "k", 1,
                                 (const uint8_t *) pem, strlen(pem), &index);

    if ((status == XET_OK) != (xet_jwk_set_count(set) == 1)
        || (status != XET_OK && index != 0))
    {
        status = XET_INTERNAL;
    }

    xet_jwk_set_destroy(set);
    EVP_PKEY_free(pkey);
    free(pem);

    return status;
}


static EVP_PKEY *
test_rsa(const char *modulus, unsigned long exponent)
{
    BIGNUM          *n, *e;
    EVP_PKEY        *pkey;
    OSSL_PARAM      *params;
    EVP_PKEY_CTX    *ctx;
    OSSL_PARAM_BLD  *bld;

    n = NULL;
    e = BN_new();
    BN_hex2bn(&n, modulus);
    BN_set_word(e, exponent);

    bld = OSSL_PARAM_BLD_new();
    OSSL_PARAM_BLD_push_BN(bld, "n", n);
    OSSL_PARAM_BLD_push_BN(bld, "e", e);
    params = OSSL_PARAM_BLD_to_param(bld);

    pkey = NULL;
    ctx = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);

    EVP_PKEY_fromdata_init(ctx);
    EVP_PKEY_fromdata(ctx, &pkey, EVP_PKEY_PUBLIC_KEY, params);

    EVP_PKEY_CTX_free(ctx);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(bld);
    BN_free(n);
    BN_free(e);

    return pkey;
}


/* Returns a new key that OpenSSL generates after set() has set a parameter. */

static EVP_PKEY *
test_generated(const char *algorithm, int (*set)(EVP_PKEY_CTX *ctx))
{
    EVP_PKEY      *pkey;
    EVP_PKEY_CTX  *ctx;

    pkey = NULL;
    ctx = EVP_PKEY_CTX_new_from_name(NULL, algorithm, NULL);

    EVP_PKEY_keygen_init(ctx);
    set(ctx);
    EVP_PKEY_keygen(ctx, &pkey);
    EVP_PKEY_CTX_free(ctx);

    return pkey;
}


/* Selects P-256 with explicit parameters instead of its name. */

static int
test_explicit(EVP_PKEY_CTX *ctx)
{
    EVP_PKEY_CTX_set_ec_paramgen_curve_nid(ctx, NID_X9_62_prime256v1);

    return EVP_PKEY_CTX_set_ec_param_enc(ctx, OPENSSL_EC_EXPLICIT_CURVE);
}


static int
test_bits(EVP_PKEY_CTX *ctx)
{
    return EVP_PKEY_CTX_set_rsa_keygen_bits(ctx, 2048);
}


static void
test_unfit(void)
{
    char       modulus[2064], *hex;
    BIGNUM    *n;
    EVP_PKEY  *pkey;

    xet_is_u64(test_pkey(EVP_EC_gen("P-256")), XET_OK, "P-256");
    xet_is_u64(test_pkey(EVP_EC_gen("P-384")), XET_JWK_KIND, "P-384");
    xet_is_u64(test_pkey(EVP_EC_gen("secp256k1")), XET_JWK_KIND, "secp256k1");
    xet_is_u64(test_pkey(test_generated("EC", test_explicit)), XET_JWK_KIND,
               "P-256 in explicit parameters");
    xet_is_u64(test_pkey(EVP_PKEY_Q_keygen(NULL, NULL, "X25519")),
               XET_JWK_KIND, "X25519");
    xet_is_u64(test_pkey(EVP_PKEY_Q_keygen(NULL, NULL, "ED448")),
               XET_JWK_KIND, "Ed448");
    xet_is_u64(test_pkey(test_generated("RSA-PSS", test_bits)), XET_JWK_KIND,
               "RSA-PSS");
    xet_is_u64(test_pkey(EVP_RSA_gen(1024)), XET_JWK_KIND, "RSA, 1024 bits");
    xet_is_u64(test_pkey(EVP_RSA_gen(2047)), XET_JWK_KIND, "RSA, 2047 bits");

    memset(modulus, 'f', sizeof(modulus));
    modulus[0] = '1';
    modulus[2049] = '\0';
    xet_is_u64(test_pkey(test_rsa(modulus, 65537)), XET_JWK_KIND,
               "RSA, 8193 bits");

    modulus[513] = '\0';
    xet_is_u64(test_pkey(test_rsa(modulus + 1, 65537)), XET_JWK_VALUE,
               "RSA, a modulus of 2^2048 - 1");

    modulus[512] = 'e';
    xet_is_u64(test_pkey(test_rsa(modulus + 1, 65537)), XET_JWK_VALUE,
               "RSA, an even modulus");

    /* bad exponents with a valid modulus */

    n = NULL;
    pkey = EVP_RSA_gen(2048);
    EVP_PKEY_get_bn_param(pkey, "n", &n);
    hex = BN_bn2hex(n);

    xet_is_u64(test_pkey(test_rsa(hex, 65537)), XET_OK, "exponent 65537");
    xet_is_u64(test_pkey(test_rsa(hex, 3)), XET_OK, "exponent 3");
    xet_is_u64(test_pkey(test_rsa(hex, 1)), XET_JWK_VALUE, "exponent 1");
    xet_is_u64(test_pkey(test_rsa(hex, 65536)), XET_JWK_VALUE,
               "an even exponent");

    OPENSSL_free(hex);
    BN_free(n);
    EVP_PKEY_free(pkey);

    xet_is_u64(ERR_peek_error(), 0, "nothing is in the error queue");
}


/* Tests points of small order, and non-canonical encodings of y. */

static void
test_small_order(void)
{
    size_t     i;
    BIGNUM    *number;
    uint8_t    y[32];
    unsigned   sign;

    static const char  *const  points[] = {
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "f6ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    };

    for (i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        for (sign = 0; sign < 2; sign++) {
            number = NULL;
            BN_hex2bn(&number, points[i]);
            BN_bn2binpad(number, y, 32);
            BN_free(number);

            y[31] |= (uint8_t) (sign << 7);

            xet_is_u64(test_pkey(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519,
                                                             NULL, y, 32)),
                       XET_JWK_VALUE, "a weak point of Ed25519");
        }
    }

    memset(y, 0xff, 32);
    y[0] = 0xeb;
    y[31] = 0x7f;

    xet_is_u64(test_pkey(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL,
                                                     y, 32)),
               XET_OK, "p - 2");
}


int
main(void)
{
    test_unfit();
    test_small_order();

    return xet_done();
}
