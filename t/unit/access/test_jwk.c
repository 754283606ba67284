
/*
 * Tests keys: the test vectors of the RFCs, secrets, signatures of every kind,
 * and private keys.  OpenSSL's error queue must stay unchanged.
 */


#include <openssl/err.h>

#include "xet_test_jwk.h"
#include "xet_base.h"
#include "xet_test_jwt.h"
#include "xet_test_keys.h"


/*
 * Verifies an RFC's example token, given as the signed text and the signature.
 */

static xet_status_t
test_signed(const xet_jwk_t *key, const char *input, const char *signature)
{
    size_t   len;
    uint8_t  bytes[XET_JWK_SIGNATURE_MAX];

    len = strlen(signature);

    if (!xet_base64_decode(bytes, (const uint8_t *) signature, len)) {
        return XET_INTERNAL;
    }

    return xet_jwk_verify(key, (const uint8_t *) input, strlen(input), bytes,
                          xet_base64_decoded(len));
}


static void
test_vectors(void)
{
    size_t            i, k, index, good;
    uint8_t           secret[64], thumbprint[XET_JWK_THUMBPRINT];
    xet_jwk_t        *hs;
    xet_jwk_set_t    *set;
    const xet_jwk_t  *key;

    static const char  set_text[] =
        JWKS(JWK_RS "," JWK_ES "," JWK_ED ",{\"kty\":\"RSA\",\"n\":\"" JWK_N
             "\",\"e\":\"AQAB\",\"alg\":\"RS256\"}");

    static const struct {
        const char     *input;
        const char     *signature;
        xet_jwk_alg_t   alg;
    } tokens[] = {
        { RS_HEADER "." RFC_PAYLOAD, RS_SIG, XET_JWK_RS256 },
        { ES_HEADER "." RFC_PAYLOAD, ES_SIG, XET_JWK_ES256 },
        { ED_HEADER "." ED_PAYLOAD, ED_SIG, XET_JWK_EDDSA },
        { HS_HEADER "." RFC_PAYLOAD, HS_MAC, XET_JWK_HS256 },
    };

    set = xet_jwk_set_create();

    xet_is_u64(xet_jwk_set_add_jwks(set, (const uint8_t *) set_text,
                                    strlen(set_text), &index),
               XET_OK, "keys of the RFCs");
    xet_is_u64(xet_jwk_set_count(set), 4, "all of them");

    xet_ok(test_id(xet_jwk_set_get(set, 2), ED_PRINT),
           "thumbprint of RFC 8037");
    xet_ok(test_id(xet_jwk_set_get(set, 3), JWK_PRINT),
           "thumbprint of RFC 7638");

    xet_ok(xet_base64_decode(secret, (const uint8_t *) HS_K, strlen(HS_K)),
           "secret of RFC 7515");
    xet_is_u64(xet_jwk_create_secret(&hs, (const uint8_t *) "hs", 2, secret,
                                     64),
               XET_OK, "is one");
    xet_is_u64(xet_jwk_thumbprint(hs, thumbprint), XET_INTERNAL,
               "and has no thumbprint");

    for (i = 0; i < 4; i++) {
        key = (i < 3) ? xet_jwk_set_get(set, i) : hs;

        xet_is_u64(xet_jwk_alg(key), tokens[i].alg, "algorithm");

        /* verifies every signature with every key */

        for (k = 0, good = 0; k < 4; k++) {
            good += test_signed(key, tokens[k].input, tokens[k].signature)
                    == (k == i ? XET_OK : XET_TOKEN_SIGNATURE);
        }

        xet_is_u64(good, 4, "verifies its token and no other");
        xet_is_u64(test_signed(key, tokens[i].input + 1, tokens[i].signature),
                   XET_TOKEN_SIGNATURE, "not a part of it");
    }

    xet_jwk_destroy(hs);
    xet_jwk_set_destroy(set);
}


static void
test_secrets(void)
{
    size_t      i, len;
    uint8_t     secret[XET_JWK_SECRET_MAX + 1], mac[XET_JWK_SIGN_MAX];
    uint8_t     id[XET_JWK_ID_MAX + 1];
    unsigned    bad;
    xet_jwk_t  *key, *other;

    memset(secret, 's', sizeof(secret));
    memset(id, 'i', sizeof(id));

    static const struct {
        size_t        id;
        size_t        len;
        xet_status_t  want;
    } limits[] = {
        { 1, 32, XET_OK },
        { 1, 31, XET_JWK_SECRET },
        { 1, 0, XET_JWK_SECRET },
        { 1, XET_JWK_SECRET_MAX, XET_OK },
        { 1, XET_JWK_SECRET_MAX + 1, XET_JWK_SECRET },
        { 0, 32, XET_JWK_KID },
        { XET_JWK_ID_MAX, 32, XET_OK },
        { XET_JWK_ID_MAX + 1, 32, XET_JWK_KID },
    };

    for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        key = NULL;
        xet_is_u64(xet_jwk_create_secret(&key, id, limits[i].id, secret,
                                         limits[i].len),
                   limits[i].want, "lengths of id and secret");
        xet_jwk_destroy(key);
    }

    for (i = 0, bad = 0; i < 256; i++) {
        id[3] = (uint8_t) i;
        bad += !xet_jwk_id_ok(id, 8);
    }

    xet_is_u64(bad, 256 - 95, "printable characters in an id");

    memcpy(secret, "-----BEGIN PUBLIC KEY-----", 26);
    xet_is_u64(xet_jwk_create_secret(&key, id, 2, secret, 100),
               XET_JWK_SECRET, "a PEM file as a secret");
    secret[0] = 0;

    xet_is_u64(xet_jwk_create_secret(&key, id, 2, secret, 32), XET_OK, "key");
    secret[31]++;
    xet_is_u64(xet_jwk_create_secret(&other, id, 2, secret, 32), XET_OK,
               "another");

    xet_is_u64(xet_jwk_sign(key, id, 9, mac, &len), XET_OK, "signs");
    xet_is_u64(len, 32, "length of the MAC");
    xet_is_u64(xet_jwk_verify(key, id, 9, mac, 32), XET_OK, "verifies");
    xet_is_u64(xet_jwk_verify(key, id, 9, mac, 32), XET_OK, "again");
    xet_is_u64(xet_jwk_verify(other, id, 9, mac, 32), XET_TOKEN_SIGNATURE,
               "not by another secret");
    xet_is_u64(xet_jwk_verify(key, id, 8, mac, 32), XET_TOKEN_SIGNATURE,
               "nothing shorter");
    xet_is_u64(xet_jwk_verify(key, id, 9, mac, 31), XET_TOKEN_SIGNATURE,
               "not with a short MAC");
    xet_is_u64(xet_jwk_verify(key, id, 9, mac, 0), XET_TOKEN_SIGNATURE,
               "not with an empty MAC");
    xet_is_u64(xet_jwk_verify(key, id, 0, mac, 32), XET_TOKEN_SIGNATURE,
               "nothing at all");

    for (i = 0, bad = 0; i < 256; i++) {
        mac[i / 8] ^= (uint8_t) (1 << i % 8);
        bad += xet_jwk_verify(key, id, 9, mac, 32) == XET_TOKEN_SIGNATURE;
        mac[i / 8] ^= (uint8_t) (1 << i % 8);
    }

    xet_is_u64(bad, 256, "every bit of the MAC counts");

    xet_jwk_destroy(key);
    xet_jwk_destroy(other);
    xet_jwk_destroy(NULL);
}


/* Writes and reads every kind of key as PEM, and damages each signature. */

static void
test_kinds(void)
{
    char               *pem;
    size_t              i, k, n, index;
    uint8_t             signature[1024];
    unsigned            bad;
    xet_jwk_set_t      *set;
    const xet_jwk_t    *key;
    xet_test_signer_t   s[3];

    memset(s, 0, sizeof(s));

    s[0].pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    s[1].pkey = EVP_EC_gen("P-256");
    s[2].pkey = EVP_RSA_gen(2048);

    static const xet_jwk_alg_t  algs[] = {
        XET_JWK_EDDSA, XET_JWK_ES256, XET_JWK_RS256
    };

    for (i = 0; i < 3; i++) {
        set = xet_jwk_set_create();
        pem = xet_test_pem(s[i].pkey, 0);

        xet_is_u64(test_pem(set, "", pem, &index), XET_OK, "PEM");
        xet_is_u64(xet_jwk_set_count(set), 1, "one key");

        key = xet_jwk_set_get(set, 0);
        xet_is_u64(xet_jwk_alg(key), algs[i], "algorithm");

        n = xet_test_sign(signature, &s[i], "text", 4, 0);

        xet_is_u64(xet_jwk_verify(key, (const uint8_t *) "text", 4, signature,
                                  n),
                   XET_OK, xet_jwk_alg_name(algs[i]));
        xet_is_u64(xet_jwk_verify(key, (const uint8_t *) "texT", 4, signature,
                                  n),
                   XET_TOKEN_SIGNATURE, "not another text");
        xet_is_u64(xet_jwk_sign(key, (const uint8_t *) "text", 4, signature,
                                &k),
                   XET_INTERNAL, "a public key does not sign");

        for (k = 0, bad = 0; k < n; k++) {
            signature[k] ^= 1;
            bad += xet_jwk_verify(key, (const uint8_t *) "text", 4, signature,
                                  n) == XET_TOKEN_SIGNATURE;
            signature[k] ^= 1;
        }

        xet_is_u64(bad, n, "every byte of the signature counts");

        for (k = 0, bad = 0; k < n; k++) {
            bad += xet_jwk_verify(key, (const uint8_t *) "text", 4, signature,
                                  k) == XET_TOKEN_SIGNATURE;
        }

        xet_is_u64(bad, n, "every shorter one is refused");

        signature[n] = 0;
        xet_is_u64(xet_jwk_verify(key, (const uint8_t *) "text", 4, signature,
                                  n + 1),
                   XET_TOKEN_SIGNATURE, "and a longer one");

        if (i == 1) {
            n = xet_test_sign(signature, &s[i], "text", 4, 1);
            xet_is_u64(xet_jwk_verify(key, (const uint8_t *) "text", 4,
                                      signature, n),
                       XET_TOKEN_SIGNATURE, "ES256 in DER");
        }

        xet_is_u64(ERR_peek_error(), 0, "nothing is in the error queue");

        xet_jwk_set_destroy(set);
        EVP_PKEY_free(s[i].pkey);
        free(pem);
    }
}


/*
 * Tests out-of-range numbers in ES256 signatures, and out-of-range S in EdDSA
 * signatures.
 */

static void
test_numbers(void)
{
    size_t            i, index;
    uint8_t           signature[64], s[32];
    unsigned          carry, k;
    xet_jwk_set_t    *set;
    const xet_jwk_t  *key;

    static const char  set_text[] = JWKS(JWK_ES "," JWK_ED);

    static const char  input[] = ES_HEADER "." RFC_PAYLOAD;

    static const uint8_t  order[32] = {
        0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17,
        0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51
    };

    /* the order of Ed25519, little-endian */

    static const uint8_t  ed_order[32] = {
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
        0xa2, 0xde, 0xf9, 0xde, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10
    };

    set = xet_jwk_set_create();
    (void) xet_jwk_set_add_jwks(set, (const uint8_t *) set_text,
                                strlen(set_text), &index);
    key = xet_jwk_set_get(set, 0);

    for (i = 0; i < 6; i++) {
        (void) xet_base64_decode(signature, (const uint8_t *) ES_SIG,
                                 strlen(ES_SIG));

        switch (i) {

        case 0:
            memset(signature, 0, 32);
            break;

        case 1:
            memset(signature + 32, 0, 32);
            break;

        case 2:
            memset(signature, 0, 64);
            break;

        case 3:
            memcpy(signature, order, 32);
            break;

        case 4:
            memcpy(signature + 32, order, 32);
            break;

        default:
            memset(signature, 0xff, 64);
        }

        xet_is_u64(xet_jwk_verify(key, (const uint8_t *) input, strlen(input),
                                  signature, 64),
                   XET_TOKEN_SIGNATURE, "r or s is 0 or the order");
    }

    /* S plus the group order is congruent to S, but must be rejected */

    key = xet_jwk_set_get(set, 1);

    (void) xet_base64_decode(signature, (const uint8_t *) ED_SIG,
                             strlen(ED_SIG));
    memcpy(s, signature + 32, 32);

    for (i = 0, carry = 0; i < 32; i++) {
        k = (unsigned) s[i] + ed_order[i] + carry;
        signature[32 + i] = (uint8_t) k;
        carry = k >> 8;
    }

    xet_is_u64(xet_jwk_verify(key,
                              (const uint8_t *) ED_HEADER "." ED_PAYLOAD,
                              strlen(ED_HEADER "." ED_PAYLOAD), signature, 64),
               XET_TOKEN_SIGNATURE, "S and the order of Ed25519");

    memset(signature, 0, 64);
    signature[0] = 1;
    xet_is_u64(xet_jwk_verify(key,
                              (const uint8_t *) ED_HEADER "." ED_PAYLOAD,
                              strlen(ED_HEADER "." ED_PAYLOAD), signature, 64),
               XET_TOKEN_SIGNATURE, "R of small order, S of 0");

    xet_is_u64(ERR_peek_error(), 0, "nothing is in the error queue");

    xet_jwk_set_destroy(set);
}


static void
test_private(void)
{
    BIO        *bio;
    char       *pem, *two;
    size_t      len;
    uint8_t     d[32], signature[XET_JWK_SIGN_MAX], want[64];
    EVP_PKEY   *pkey, *ec;
    xet_jwk_t  *key;

    static const char  input[] = ED_HEADER "." ED_PAYLOAD;

    (void) xet_base64_decode(d, (const uint8_t *) ED_D, strlen(ED_D));
    (void) xet_base64_decode(want, (const uint8_t *) ED_SIG, strlen(ED_SIG));

    pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, d, 32);
    pem = xet_test_pem(pkey, 1);

    xet_is_u64(xet_jwk_create_private(&key, NULL, 0, (uint8_t *) pem,
                                      strlen(pem)),
               XET_OK, "private key of RFC 8037");
    xet_ok(test_id(key, ED_PRINT), "its thumbprint");
    xet_is_u64(xet_jwk_sign(key, (const uint8_t *) input, strlen(input),
                            signature, &len),
               XET_OK, "signs");
    xet_ok(len == 64 && memcmp(signature, want, 64) == 0,
           "the signature of the RFC");
    xet_is_u64(xet_jwk_verify(key, (const uint8_t *) input, strlen(input),
                              signature, 64),
               XET_OK, "verifies too");
    xet_jwk_destroy(key);

    xet_is_u64(xet_jwk_create_private(&key, (const uint8_t *) "a\n", 2,
                                      (uint8_t *) pem, strlen(pem)),
               XET_JWK_KID, "an id with a newline");
    xet_is_u64(xet_jwk_create_private(&key, NULL, 0, (uint8_t *) pem,
                                      strlen(pem) - 20),
               XET_JWK_SYNTAX, "cut short");
    xet_is_u64(xet_jwk_create_private(&key, NULL, 0, (uint8_t *) pem, 0),
               XET_JWK_SYNTAX, "empty");

    two = malloc(2 * strlen(pem) + 16);

    sprintf(two, "a key:\n%sthe end\n", pem);
    xet_is_u64(xet_jwk_create_private(&key, NULL, 0, (uint8_t *) two,
                                      strlen(two)),
               XET_OK, "text around a key");
    xet_jwk_destroy(key);

    sprintf(two, "%s%s", pem, pem);
    xet_is_u64(xet_jwk_create_private(&key, NULL, 0, (uint8_t *) two,
                                      strlen(two)),
               XET_JWK_SYNTAX, "two keys");
    xet_is_u64(xet_jwk_create_private(&key, NULL, 0, (uint8_t *) two,
                                      strlen(two) - 9),
               XET_JWK_SYNTAX, "one key and a half");
    free(two);

    two = xet_test_pem(pkey, 0);
    xet_is_u64(xet_jwk_create_private(&key, NULL, 0, (uint8_t *) two,
                                      strlen(two)),
               XET_JWK_KIND, "a public key");
    free(two);

    ec = EVP_EC_gen("P-256");
    two = xet_test_pem(ec, 1);
    xet_is_u64(xet_jwk_create_private(&key, NULL, 0, (uint8_t *) two,
                                      strlen(two)),
               XET_JWK_KIND, "a private key of another kind");
    free(two);
    EVP_PKEY_free(ec);

    bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PKCS8PrivateKey(bio, pkey, EVP_aes_128_cbc(), "pass", 4,
                                  NULL, NULL);
    len = (size_t) BIO_get_mem_data(bio, &two);

    xet_is_u64(xet_jwk_create_private(&key, NULL, 0, (uint8_t *) two, len),
               XET_JWK_KIND, "an encrypted one, without asking");
    BIO_free(bio);

    xet_is_u64(ERR_peek_error(), 0, "nothing is in the error queue");

    EVP_PKEY_free(pkey);
    free(pem);
}


static void
test_names(void)
{
    size_t  i;

    static const char  *const  refused[] = {
        "none", "None", "NONE", "", "hs256", "HS256 ", " HS256", "HS25",
        "HS384", "HS512", "RS384", "RS512", "PS256", "ES256K", "ES384",
        "EDDSA", "eddsa", "Ed25519", "ES", "RS2566"
    };

    for (i = 0; i < XET_JWK_ALG_MAX; i++) {
        xet_is_u64(xet_jwk_alg_find(xet_jwk_alg_name((xet_jwk_alg_t) i),
                                    strlen(xet_jwk_alg_name((xet_jwk_alg_t)
                                                            i))),
                   i, xet_jwk_alg_name((xet_jwk_alg_t) i));
    }

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        xet_is_u64(xet_jwk_alg_find(refused[i], strlen(refused[i])),
                   XET_JWK_ALG_MAX, refused[i]);
    }

    xet_is_u64(xet_jwk_alg_find("HS256\0", 6), XET_JWK_ALG_MAX,
               "a name and NUL");
    xet_ok(strcmp(xet_jwk_alg_name(XET_JWK_ALG_MAX), "") == 0, "no name");
}


/*
 * Checks that an earlier error stays in OpenSSL's queue, and no error is added.
 */

static void
test_queue(void)
{
    size_t            index;
    uint8_t           signature[64];
    unsigned long     error;
    xet_jwk_set_t    *set;
    const xet_jwk_t  *key;

    static const char  set_text[] = JWKS(JWK_ES);

    set = xet_jwk_set_create();

    ERR_clear_error();
    ERR_raise(ERR_LIB_USER, 7);

    (void) xet_jwk_set_add_jwks(set, (const uint8_t *) set_text,
                                strlen(set_text), &index);
    (void) xet_jwk_set_add_pem(set, NULL, 0, (const uint8_t *) "x", 1,
                               &index);

    key = xet_jwk_set_get(set, 0);
    memset(signature, 0, 64);
    xet_is_u64(xet_jwk_verify(key, signature, 9, signature, 64),
               XET_TOKEN_SIGNATURE, "a wrong signature");

    error = ERR_get_error();
    xet_is_u64(ERR_GET_REASON(error), 7, "an older error is still there");
    xet_is_u64(ERR_get_error(), 0, "and no newer one");

    xet_jwk_set_destroy(set);
}


int
main(void)
{
    test_vectors();
    test_secrets();
    test_kinds();
    test_numbers();
    test_private();
    test_names();
    test_queue();

    return xet_done();
}
