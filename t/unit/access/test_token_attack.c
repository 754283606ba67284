
/*
 * Tests attacks on tokens by a caller without a key: every byte changed, every
 * algorithm with every key, tricks with "alg", "kid", "crit" and "jwk", and
 * alternative encodings.  Also tests concurrent verification.
 */


#include <pthread.h>
#include <sys/wait.h>

#include <openssl/err.h>

#include "xet_test.h"
#include "xet_test_ring.h"


#define NOW      UINT64_C(1700000000)
#define PAYLOAD  "{\"exp\":1700000600,\"scope\":\"write\"}"

#define A2000                                                                 \
    A500 A500 A500 A500
#define A500                                                                  \
    A100 A100 A100 A100 A100
#define A100                                                                  \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"                      \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"


static const xet_token_params_t  test_any;


static xet_status_t
test_verify(const xet_jwk_set_t *set, const char *token, size_t len)
{
    return xet_test_verify(set, &test_any, token, len, NOW, NULL, NULL);
}


/* Verifies a token with any header, signed by a key of the ring. */

static xet_status_t
test_header(const xet_test_ring_t *ring, size_t signer, const char *header)
{
    char    token[8192];
    size_t  len;

    len = xet_test_jwt(token, &ring->signers[signer], header, PAYLOAD);

    return test_verify(ring->set, token, len);
}


static void
test_spoilt(const xet_test_ring_t *ring)
{
    char      token[2048], header[64];
    int       c;
    size_t    i, k, len;
    unsigned  accepted;

    for (i = 0; i < RING; i++) {
        snprintf(header, sizeof(header), "{\"alg\":\"%s\",\"kid\":\"%s\"}",
                 ring->signers[i].alg, xet_test_ids[i]);
        len = xet_test_jwt(token, &ring->signers[i], header, PAYLOAD);

        xet_is_u64(test_verify(ring->set, token, len), XET_OK,
                   ring->signers[i].alg);

        /* HMAC: all values of each byte; other algorithms: some values */

        for (k = 0, accepted = 0; k < len; k++) {
            for (c = 1; c < 256; c = i ? c * 3 : c + 1) {
                token[k] = (char) (token[k] ^ c);
                accepted += test_verify(ring->set, token, len) == XET_OK;
                token[k] = (char) (token[k] ^ c);
            }
        }

        xet_is_u64(accepted, 0, "every byte counts");

        for (k = 0, accepted = 0; k < len; k++) {
            accepted += test_verify(ring->set, token, k) == XET_OK;
        }

        xet_is_u64(accepted, 0, "to the last one");
        xet_is_u64(test_verify(ring->set, token, len), XET_OK,
                   "unspoilt again");
        xet_is_u64(ERR_peek_error(), 0, "nothing is in the error queue");
    }
}


/* Tries each algorithm in the header with each signing key and each key id. */

static void
test_matrix(const xet_test_ring_t *ring)
{
    char          header[128];
    size_t        alg, signer, id;
    xet_status_t  want;

    for (alg = 0; alg < RING; alg++) {
        for (signer = 0; signer < RING; signer++) {
            for (id = 0; id <= RING; id++) {

                if (id < RING) {
                    snprintf(header, sizeof(header),
                             "{\"alg\":\"%s\",\"kid\":\"%s\"}",
                             ring->signers[alg].alg, xet_test_ids[id]);

                } else {
                    snprintf(header, sizeof(header), "{\"alg\":\"%s\"}",
                             ring->signers[alg].alg);
                }

                want = (id < RING && id != alg) ? XET_TOKEN_ALG
                       : (alg == signer) ? XET_OK : XET_TOKEN_SIGNATURE;

                xet_ok(test_header(ring, signer, header) == want,
                       "%s signed by %s", header, ring->signers[signer].alg);
            }
        }
    }
}


/* Uses the public key, which an attacker knows, as a MAC secret. */

static void
test_confusion(const xet_test_ring_t *ring)
{
    char                *pem, header[128], token[1024];
    size_t               i, k, len, index;
    unsigned char       *der;
    xet_jwk_set_t       *set;
    xet_test_signer_t    s;

    memset(&s, 0, sizeof(s));

    for (i = 1; i < RING; i++) {
        set = xet_jwk_set_create();
        pem = xet_test_pem(ring->signers[i].pkey, 0);
        der = NULL;

        (void) xet_jwk_set_add_pem(set, (const uint8_t *) "k", 1,
                                   (const uint8_t *) pem, strlen(pem),
                                   &index);

        for (k = 0; k < 3; k++) {
            s.secret = (const uint8_t *) pem;
            s.len = strlen(pem) - k % 2;

            if (k == 2) {
                s.len = (size_t) i2d_PUBKEY(ring->signers[i].pkey, &der);
                s.secret = der;
            }

            len = xet_test_jwt(token, &s, "{\"alg\":\"HS256\"}", PAYLOAD);
            xet_is_u64(test_verify(set, token, len), XET_TOKEN_KEY,
                       "no secret in the set");

            len = xet_test_jwt(token, &s,
                               "{\"alg\":\"HS256\",\"kid\":\"k\"}", PAYLOAD);
            xet_is_u64(test_verify(set, token, len), XET_TOKEN_ALG,
                       "the id of the public key");

            len = xet_test_jwt(token, &s, "{\"alg\":\"HS256\"}", PAYLOAD);
            xet_is_u64(test_verify(ring->set, token, len),
                       XET_TOKEN_SIGNATURE, "a secret in the set");

            snprintf(header, sizeof(header), "{\"alg\":\"%s\"}",
                     ring->signers[i].alg);
            len = xet_test_jwt(token, &s, header, PAYLOAD);
            xet_is_u64(test_verify(set, token, len), XET_TOKEN_SIGNATURE,
                       "its own algorithm");
        }

        xet_jwk_set_destroy(set);
        OPENSSL_free(der);
        free(pem);
    }

    set = xet_jwk_set_create();
    len = xet_test_jwt(token, &ring->signers[0], "{\"alg\":\"HS256\"}",
                       PAYLOAD);
    xet_is_u64(test_verify(set, token, len), XET_TOKEN_KEY, "an empty set");
    xet_jwk_set_destroy(set);
}


typedef struct {
    const char    *header;
    xet_status_t   want;           /* result if the secret is the signer */
} test_header_t;


#define H(more)  "{\"alg\":\"HS256\"," more "}"

static const test_header_t  test_headers[] = {
    { "{\"alg\":\"HS256\"}", XET_OK },
    { " { \"alg\" :\t\"HS256\" } \r\n", XET_OK },
    { "{\"al\\u0067\":\"HS\\u003256\"}", XET_OK },

    { "{\"alg\":\"none\"}", XET_TOKEN_ALG },
    { "{\"alg\":\"None\"}", XET_TOKEN_ALG },
    { "{\"alg\":\"NONE\"}", XET_TOKEN_ALG },
    { "{\"alg\":\"nOnE\"}", XET_TOKEN_ALG },
    { "{\"alg\":\"\"}", XET_TOKEN_ALG },
    { "{\"alg\":\"hs256\"}", XET_TOKEN_ALG },
    { "{\"alg\":\"HS256 \"}", XET_TOKEN_ALG },
    { "{\"alg\":\"HS384\"}", XET_TOKEN_ALG },
    { "{\"alg\":\"HS512\"}", XET_TOKEN_ALG },
    { "{\"alg\":\"PS256\"}", XET_TOKEN_ALG },
    { "{\"alg\":\"dir\"}", XET_TOKEN_ALG },
    { "{\"alg\":\"HS256\\u0000\"}", XET_TOKEN_SYNTAX },
    { "{\"alg\":null}", XET_TOKEN_SYNTAX },
    { "{\"alg\":256}", XET_TOKEN_SYNTAX },
    { "{\"alg\":[\"HS256\"]}", XET_TOKEN_SYNTAX },
    { "{\"alg\":{\"HS256\":1}}", XET_TOKEN_SYNTAX },
    { "{\"alg\":true}", XET_TOKEN_SYNTAX },
    { "{\"Alg\":\"HS256\"}", XET_TOKEN_SYNTAX },
    { "{}", XET_TOKEN_SYNTAX },
    { "", XET_TOKEN_SYNTAX },
    { "[]", XET_TOKEN_SYNTAX },
    { "null", XET_TOKEN_SYNTAX },
    { "\"HS256\"", XET_TOKEN_SYNTAX },
    { "{\"alg\":\"HS256\"}x", XET_TOKEN_SYNTAX },
    { "{\"alg\":\"HS256\"}{}", XET_TOKEN_SYNTAX },
    { "{\"alg\":\"HS256\"", XET_TOKEN_SYNTAX },
    { "\xef\xbb\xbf{\"alg\":\"HS256\"}", XET_TOKEN_SYNTAX },
    { "{\"alg\":\"none\",\"alg\":\"HS256\"}", XET_TOKEN_SYNTAX },
    { "{\"alg\":\"HS256\",\"alg\":\"HS256\"}", XET_TOKEN_SYNTAX },
    { "{\"alg\":\"HS256\",\"\\u0061lg\":\"none\"}", XET_TOKEN_SYNTAX },

    { H("\"typ\":\"JWT\""), XET_OK },
    { H("\"typ\":\"at+jwt\""), XET_OK },
    { H("\"typ\":1"), XET_OK },
    { H("\"cty\":\"JWT\""), XET_OK },
    { H("\"x\":{\"y\":[1,2,{}]}"), XET_OK },
    { H("\"x\":[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]"), XET_OK },
    { H("\"x\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]"), XET_TOKEN_SYNTAX },
    { H("\"x\":{\"y\":1,\"y\":1}"), XET_TOKEN_SYNTAX },
    { H("\"x\":\"\xff\""), XET_TOKEN_SYNTAX },
    { H("\"x\":\"\xed\xa0\x80\""), XET_TOKEN_SYNTAX },
    { H("\"x\":\"\\ud800\""), XET_TOKEN_SYNTAX },
    { H("\"x\":\"\\u0000\""), XET_TOKEN_SYNTAX },

    { H("\"crit\":[]"), XET_TOKEN_CRIT },
    { H("\"crit\":[\"exp\"]"), XET_TOKEN_CRIT },
    { H("\"crit\":[\"b64\"],\"b64\":false"), XET_TOKEN_CRIT },
    { H("\"crit\":null"), XET_TOKEN_CRIT },
    { H("\"crit\":false"), XET_TOKEN_CRIT },
    { H("\"cr\\u0069t\":[\"x\"]"), XET_TOKEN_CRIT },
    { H("\"b64\":true"), XET_TOKEN_CRIT },
    { H("\"b64\":false"), XET_TOKEN_CRIT },
    { "{\"alg\":\"none\",\"crit\":[]}", XET_TOKEN_CRIT },

    { H("\"kid\":\"hs\""), XET_OK },
    { H("\"kid\":\"h\\u0073\""), XET_OK },
    { H("\"kid\":\"HS\""), XET_TOKEN_KEY },
    { H("\"kid\":\"h\""), XET_TOKEN_KEY },
    { H("\"kid\":\"hs \""), XET_TOKEN_KEY },
    { H("\"kid\":\"hsx\""), XET_TOKEN_KEY },
    { H("\"kid\":\"\""), XET_TOKEN_KEY },
    { H("\"kid\":\"../../dev/null\""), XET_TOKEN_KEY },
    { H("\"kid\":\"' OR 1=1 --\""), XET_TOKEN_KEY },
    { H("\"kid\":\"" A500 "\""), XET_TOKEN_KEY },
    { H("\"kid\":\"hs\\u0000\""), XET_TOKEN_SYNTAX },
    { H("\"kid\":null"), XET_TOKEN_SYNTAX },
    { H("\"kid\":0"), XET_TOKEN_SYNTAX },
    { H("\"kid\":[\"hs\"]"), XET_TOKEN_SYNTAX },
    { H("\"kid\":{}"), XET_TOKEN_SYNTAX },
    { H("\"kid\":\"x\",\"kid\":\"hs\""), XET_TOKEN_SYNTAX },
    { H("\"kid\":\"rs\""), XET_TOKEN_ALG },

    { H("\"x\":\"" A2000 "\""), XET_OK },
    { H("\"x\":\"" A2000 A100 "\""), XET_TOKEN_SIZE },
};


static void
test_header_table(const xet_test_ring_t *ring)
{
    size_t  i;

    for (i = 0; i < sizeof(test_headers) / sizeof(test_headers[0]); i++) {
        xet_is_u64(test_header(ring, 0, test_headers[i].header),
                   test_headers[i].want, "header");
    }
}


/* Checks that a key inside the token is never used. */

static void
test_foreign(const xet_test_ring_t *ring)
{
    char                token[2048], x[64], header[512];
    size_t              i, len;
    uint8_t             raw[32];
    xet_test_signer_t   s;

    static const char  *const  names[] = { "jwk", "jku", "x5c", "x5u" };

    memset(&s, 0, sizeof(s));
    s.pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");

    len = sizeof(raw);
    EVP_PKEY_get_raw_public_key(s.pkey, raw, &len);
    (void) xet_test_base64(x, raw, 32);

    for (i = 0; i < 4; i++) {
        snprintf(header, sizeof(header), "{\"alg\":\"EdDSA\",\"%s\":{\"kty\":"
                 "\"OKP\",\"crv\":\"Ed25519\",\"x\":\"%s\"}}", names[i], x);

        len = xet_test_jwt(token, &s, header, PAYLOAD);
        xet_is_u64(test_verify(ring->set, token, len), XET_TOKEN_SIGNATURE,
                   names[i]);
    }

    EVP_PKEY_free(s.pkey);
}


/* Tests the form of a token: dots, alphabet, padding, spare bits. */

static void
test_structure(const xet_test_ring_t *ring)
{
    char       token[512], other[1024], *h, *p, *s;
    size_t     i, len;
    unsigned   accepted;

    static const struct {
        const char    *format;     /* %1 header, %2 payload, %3 signature */
        xet_status_t   want;
    } forms[] = {
        { "%1$s.%2$s.%3$s", XET_OK },
        { "%1$s.%2$s.%3$s.", XET_TOKEN_SYNTAX },
        { ".%1$s.%2$s.%3$s", XET_TOKEN_SYNTAX },
        { "%1$s.%2$s", XET_TOKEN_SYNTAX },
        { "%1$s.%2$s.", XET_TOKEN_SIGNATURE },
        { "%1$s..%3$s", XET_TOKEN_SIGNATURE },
        { ".%2$s.%3$s", XET_TOKEN_SYNTAX },
        { "%1$s", XET_TOKEN_SYNTAX },
        { "%1$s..", XET_TOKEN_SIGNATURE },
        { "..%3$s", XET_TOKEN_SYNTAX },
        { "..", XET_TOKEN_SYNTAX },
        { ".", XET_TOKEN_SYNTAX },
        { "%1$s.%2$s.%3$s.%3$s", XET_TOKEN_SYNTAX },
        { "%1$s.%2$s.%3$s.%3$s.%3$s", XET_TOKEN_SYNTAX },
        { "%2$s.%1$s.%3$s", XET_TOKEN_SYNTAX },
        { "%1$s.%1$s.%3$s", XET_TOKEN_SIGNATURE },
        { "%1$s.%2$s.%3$s=", XET_TOKEN_SYNTAX },
        { "%1$s.%2$s.%3$s==", XET_TOKEN_SYNTAX },
        { "%1$s=.%2$s.%3$s", XET_TOKEN_SYNTAX },
        { "%1$s.%2$s=.%3$s", XET_TOKEN_SIGNATURE },
        { " %1$s.%2$s.%3$s", XET_TOKEN_SYNTAX },
        { "%1$s.%2$s.%3$s ", XET_TOKEN_SYNTAX },
        { "%1$s.%2$s.%3$s\n", XET_TOKEN_SYNTAX },
        { "%1$s. %2$s.%3$s", XET_TOKEN_SIGNATURE },
        { "%1$s.%2$s. %3$s", XET_TOKEN_SYNTAX },
        { "%1$s.%2$s.\n%3$s", XET_TOKEN_SYNTAX },
        { "Bearer %1$s.%2$s.%3$s", XET_TOKEN_SYNTAX },
        { "\"%1$s.%2$s.%3$s\"", XET_TOKEN_SYNTAX },
        { "%1$s.%2$s.%3$sA", XET_TOKEN_SIGNATURE },
        { "%1$s.%2$s.%3$s%3$s", XET_TOKEN_SYNTAX },
        { "{\"payload\":\"%2$s\"}", XET_TOKEN_SYNTAX },
    };

    len = xet_test_jwt(token, &ring->signers[0], "{\"alg\":\"HS256\"}",
                       PAYLOAD);

    h = token;
    p = strchr(h, '.') + 1;
    s = strchr(p, '.') + 1;
    p[-1] = '\0';
    s[-1] = '\0';

    for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        snprintf(other, sizeof(other), forms[i].format, h, p, s);

        xet_is_u64(test_verify(ring->set, other, strlen(other)),
                   forms[i].want, "form of a token");
    }

    /* the last of 43 characters of a signature has two spare bits */

    p[-1] = '.';
    s[-1] = '.';

    for (i = 0, accepted = 0; i < 64; i++) {
        memcpy(other, token, len);
        other[len - 1] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                         "0123456789-_"[i];
        accepted += test_verify(ring->set, other, len) == XET_OK;
    }

    xet_is_u64(accepted, 1, "one last character of 64");

    /* a valid signature that is encoded with nonzero spare bits */

    memcpy(other, "eyJhbGciOiJIUzI1NiJ9", 21);
    xet_ok(strncmp(token, other, 20) == 0, "spelling of the header");
    other[19]++;
    other[20] = '.';
    strcpy(other + 21, token + 21);
    xet_is_u64(test_verify(ring->set, other, len), XET_TOKEN_SYNTAX,
               "spare bits of the header");
}


/*
 * Encodes header and payload with nonzero spare bits; the signature covers
 * these texts and is valid.
 */

static void
test_spelling(const xet_test_ring_t *ring)
{
    char     token[512];
    size_t   i, n;
    uint8_t  mac[1024];

    static const struct {
        const char    *input;
        xet_status_t   want;
    } inputs[] = {
        { "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3MDAwMDA2MDAsInNjb3BlIjoid3JpdGUif"
          "Q", XET_OK },
        { "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3MDAwMDA2MDAsInNjb3BlIjoid3JpdGUif"
          "R", XET_TOKEN_CLAIMS },
        { "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3MDAwMDA2MDAsInNjb3BlIjoid3JpdGUif"
          "Q==", XET_TOKEN_CLAIMS },
        { "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3MDAwMDA2MDAsInNjb3BlIjoid3JpdGUif"
          "QA", XET_TOKEN_CLAIMS },
        { "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3MDAwMDA2MDAsInNjb3BlIjoid3JpdGU\n"
          "ifQ", XET_TOKEN_CLAIMS },
        { "eyJhbGciOiJIUzI1NiJ9.", XET_TOKEN_CLAIMS },
        { "eyJhbGciOiJIUzI1NiJ9IA.eyJleHAiOjE3MDAwMDA2MDAsInNjb3BlIjoid3JpdGU"
          "ifQ", XET_OK },
        { "eyJhbGciOiJIUzI1NiJ9IB.eyJleHAiOjE3MDAwMDA2MDAsInNjb3BlIjoid3JpdGU"
          "ifQ", XET_TOKEN_SYNTAX },
        { "eyJhbGciOiJIUzI1NiJ9IA==.eyJleHAiOjE3MDAwMDA2MDAsInNjb3BlIjoid3JpdG"
          "UifQ", XET_TOKEN_SYNTAX },
    };

    for (i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        n = (size_t) sprintf(token, "%s.", inputs[i].input);

        (void) xet_test_sign(mac, &ring->signers[0], token, n - 1, 0);
        n += xet_test_base64(token + n, mac, 32);

        xet_is_u64(test_verify(ring->set, token, n), inputs[i].want,
                   "signed as it is spelt");
    }
}


/* Tests signatures made with the right key, but in another form or scheme. */

static void
test_schemes(const xet_test_ring_t *ring)
{
    char           token[2048];
    size_t         i, n, len;
    uint8_t        raw[1024];
    EVP_MD_CTX    *ctx;
    EVP_PKEY_CTX  *pctx;

    for (i = 0; i < 3; i++) {
        n = xet_test_jwt(token, &ring->signers[i ? 3 : 2],
                         i ? "{\"alg\":\"RS256\"}" : "{\"alg\":\"ES256\"}",
                         PAYLOAD);
        xet_is_u64(test_verify(ring->set, token, n), XET_OK, "by its scheme");

        n = (size_t) (strrchr(token, '.') - token);

        if (i == 0) {
            len = xet_test_sign(raw, &ring->signers[2], token, n, 1);

        } else {
            len = sizeof(raw);
            ctx = EVP_MD_CTX_new();

            EVP_DigestSignInit(ctx, &pctx, (i == 1) ? EVP_sha256()
                                                    : EVP_sha512(),
                               NULL, ring->signers[3].pkey);

            if (i == 1) {
                EVP_PKEY_CTX_set_rsa_padding(pctx, RSA_PKCS1_PSS_PADDING);
            }

            EVP_DigestSign(ctx, raw, &len, (uint8_t *) token, n);
            EVP_MD_CTX_free(ctx);
        }

        token[n++] = '.';
        n += xet_test_base64(token + n, raw, len);

        xet_is_u64(test_verify(ring->set, token, n), XET_TOKEN_SIGNATURE,
                   (i == 0) ? "DER" : (i == 1) ? "PSS" : "SHA-512");
    }

    /* longer than the longest valid signature */

    n = xet_test_jwt(token, &ring->signers[0], "{\"alg\":\"HS256\"}",
                     PAYLOAD);
    memset(token + n - 43, 'A', 1367);
    xet_is_u64(test_verify(ring->set, token, n - 43 + 1366),
               XET_TOKEN_SIGNATURE, "1024 bytes of signature");
    xet_is_u64(test_verify(ring->set, token, n - 43 + 1367),
               XET_TOKEN_SIGNATURE, "1025 bytes of signature");
}


/*
 * Tests the limit on the number of keys that are tried for a token, with and
 * without a key id.
 */

static void
test_many(void)
{
    char                token[512];
    size_t              i, len;
    uint8_t             secret[32];
    xet_jwk_t          *key;
    xet_jwk_set_t      *set;
    xet_test_signer_t   s;

    memset(&s, 0, sizeof(s));
    memset(secret, 's', sizeof(secret));
    s.secret = secret;
    s.len = 32;

    set = xet_jwk_set_create();

    for (i = 0; i < XET_TOKEN_KEYS_MAX + 1; i++) {
        secret[0] = (uint8_t) i;
        (void) xet_jwk_create_secret(&key, (const uint8_t *) "same", 4,
                                     secret, 32);
        (void) xet_jwk_set_add(set, key);
    }

    for (i = 0; i < XET_TOKEN_KEYS_MAX + 2; i++) {
        secret[0] = (uint8_t) i;

        len = xet_test_jwt(token, &s, "{\"alg\":\"HS256\"}", PAYLOAD);
        xet_is_u64(test_verify(set, token, len),
                   (i < XET_TOKEN_KEYS_MAX) ? XET_OK : XET_TOKEN_SIGNATURE,
                   "one of many keys");

        len = xet_test_jwt(token, &s, "{\"alg\":\"HS256\",\"kid\":\"same\"}",
                           PAYLOAD);
        xet_is_u64(test_verify(set, token, len),
                   (i < XET_TOKEN_KEYS_MAX) ? XET_OK : XET_TOKEN_SIGNATURE,
                   "one of many keys of an id");
    }

    /* the last key in the set, but the only one with its id */

    secret[0] = 99;
    (void) xet_jwk_create_secret(&key, (const uint8_t *) "other", 5, secret,
                                 32);
    (void) xet_jwk_set_add(set, key);

    len = xet_test_jwt(token, &s, "{\"alg\":\"HS256\",\"kid\":\"other\"}",
                       PAYLOAD);
    xet_is_u64(test_verify(set, token, len), XET_OK, "found by its id");

    xet_jwk_set_destroy(set);
}


/* Arguments of threads, and of a forked process, that use the same key set. */

typedef struct {
    const xet_jwk_set_t  *set;
    char                  tokens[RING][1024];
    size_t                lens[RING];
} test_shared_t;


static void *
test_thread(void *data)
{
    size_t          i, bad;
    char            other[1024];
    test_shared_t  *shared;

    shared = data;
    bad = 0;

    for (i = 0; i < 200; i++) {
        bad += test_verify(shared->set, shared->tokens[i % RING],
                           shared->lens[i % RING]) != XET_OK;

        memcpy(other, shared->tokens[i % RING], sizeof(other));
        other[40] = (other[40] == 'A') ? 'B' : 'A';
        bad += test_verify(shared->set, other, shared->lens[i % RING])
               == XET_OK;
    }

    return (void *) (uintptr_t) bad;
}


static void
test_shared(const xet_test_ring_t *ring)
{
    int             status;
    char            header[64];
    void           *result;
    pid_t           pid;
    size_t          i;
    pthread_t       threads[3];
    test_shared_t   shared;

    shared.set = ring->set;

    for (i = 0; i < RING; i++) {
        snprintf(header, sizeof(header), "{\"alg\":\"%s\"}",
                 ring->signers[i].alg);
        shared.lens[i] = xet_test_jwt(shared.tokens[i], &ring->signers[i],
                                      header, PAYLOAD);
    }

    fflush(stdout);
    pid = fork();

    if (pid == 0) {
        _exit(test_thread(&shared) != NULL);
    }

    for (i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, test_thread, &shared);
    }

    for (i = 0; i < 3; i++) {
        pthread_join(threads[i], &result);
        xet_is_u64((uintptr_t) result, 0, "a thread");
    }

    waitpid(pid, &status, 0);
    xet_is_u64(status, 0, "a process");
}


int
main(void)
{
    xet_test_ring_t  ring;

    xet_test_ring_init(&ring);

    test_spoilt(&ring);
    test_matrix(&ring);
    test_confusion(&ring);
    test_header_table(&ring);
    test_foreign(&ring);
    test_structure(&ring);
    test_spelling(&ring);
    test_schemes(&ring);
    test_many();
    test_shared(&ring);

    xet_test_ring_free(&ring);

    return xet_done();
}
