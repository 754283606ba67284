
/*
 * Tests compact tokens: known texts, claims that do and do not fit, every
 * character changed, signed nonsense, and signatures of a JWT or by keys of
 * other algorithms.
 */


#include <openssl/evp.h>

#include "xet_test.h"
#include "xet_base.h"
#include "xet_test_ring.h"


#define NOW  UINT64_C(1700000000)

#define xet_lit(text)  (sizeof(text) - 1)


static void
test_text(xet_token_text_t *text, const char *s)
{
    text->data = (const uint8_t *) s;
    text->len = s ? strlen(s) : 0;
}


static xet_jwk_t *
test_private(const char *id)
{
    char       *pem;
    EVP_PKEY   *pkey;
    xet_jwk_t  *key;

    pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    pem = xet_test_pem(pkey, 1);

    if (xet_jwk_create_private(&key, (const uint8_t *) id, strlen(id),
                               (const uint8_t *) pem, strlen(pem))
        != XET_OK)
    {
        abort();
    }

    EVP_PKEY_free(pkey);
    free(pem);

    return key;
}


/* Texts that another program has computed from the description. */

static void
test_known(const xet_test_ring_t *ring)
{
    size_t              len;
    uint8_t             token[XET_TOKEN_MINT_MAX], room[XET_TOKEN_ROOM];
    xet_token_params_t  p;
    xet_token_claims_t  c, back;

    static const char  least[] =
        "xet1AJ4xVkIyZqS026cv4zgD051fNI7DX1SWOFehgPcbr3Q84GGeFmIooaH3Dgm2dR";
    static const char  most[] =
        "xet1AJ4xVkKOIRk026cv4zOvYG8hMgxEdmaiz7Coik8u8cwN8Ljl2WgB2OdD79Dnhczc"
        "bC8sXbehJEdFH9ZECuGlygVh6G0Qd2eSk2rDOZsK01UVqw2xrR89iiImX1oYaYkHV1G7";
    static const char  hub[] =
        "xet1AJ4xVkNW9vU026cv50TvnADXPevxsjsIK4KU19smdQjNC4T2bW177jG3c1Yel6";

    memset(&p, 0, sizeof(p));
    memset(&c, 0, sizeof(c));

    c.exp = NOW + 600;

    xet_ok(xet_token_mint(ring->secret, &p, &c, token, sizeof(token), &len)
           == XET_OK
           && len == xet_lit(least) && memcmp(token, least, len) == 0,
           "the least");

    c.contents = 1;

    xet_ok(xet_token_mint(ring->secret, &p, &c, token, sizeof(token), &len)
           == XET_OK
           && len == xet_lit(hub) && memcmp(token, hub, len) == 0,
           "of a Hub");

    test_text(&p.iss, "https://hub");
    test_text(&p.aud, "a \"b\" \\");
    test_text(&c.sub, "j\xc3\xb6rg");
    test_text(&c.repo, "models/org/name");
    c.contents = 0;
    c.nbf = NOW - 1;
    c.iat = NOW;
    c.scope = XET_SCOPE_WRITE;

    xet_ok(xet_token_mint(ring->secret, &p, &c, token, sizeof(token), &len)
           == XET_OK
           && len == xet_lit(most) && memcmp(token, most, len) == 0,
           "everything");

    xet_is_u64(xet_test_verify(ring->set, &p, most, xet_lit(most), NOW, room,
                               &back),
               XET_OK, "verified");
    xet_ok(back.exp == c.exp && back.nbf == c.nbf && back.iat == c.iat
           && back.scope == c.scope && !back.contents
           && back.sub.len == c.sub.len
           && memcmp(back.sub.data, c.sub.data, c.sub.len) == 0
           && back.repo.len == c.repo.len
           && memcmp(back.repo.data, c.repo.data, c.repo.len) == 0,
           "the same claims");
}


/* Checks the clock, the issuer and the audience. */

static void
test_claims(const xet_test_ring_t *ring)
{
    size_t              i, len;
    uint8_t             token[XET_TOKEN_MINT_MAX];
    xet_token_params_t  p, q;
    xet_token_claims_t  c;

    static const struct {
        const char     *iss;
        const char     *aud;
        int64_t         now;           /* after NOW */
        uint64_t        skew;
        xet_status_t    want;
    } rows[] = {
        { NULL, NULL, 0, 0, XET_OK },
        { "i", NULL, 0, 0, XET_OK },
        { NULL, "a", 0, 0, XET_OK },
        { "i", "a", 599, 0, XET_OK },
        { "i", "a", 600, 0, XET_TOKEN_EXPIRED },
        { "i", "a", 600, 1, XET_OK },
        { "i", "a", -11, 0, XET_TOKEN_EARLY },
        { "i", "a", -10, 0, XET_OK },
        { "i", "a", -11, 1, XET_OK },
        { "j", "a", 0, 0, XET_TOKEN_ISSUER },
        { "", "a", 0, 0, XET_TOKEN_ISSUER },
        { "i", "b", 0, 0, XET_TOKEN_AUDIENCE },
        { "a", "i", 0, 0, XET_TOKEN_ISSUER },
        { "j", "b", 600, 0, XET_TOKEN_EXPIRED }
    };

    memset(&p, 0, sizeof(p));
    memset(&c, 0, sizeof(c));

    test_text(&p.iss, "i");
    test_text(&p.aud, "a");
    c.exp = NOW + 600;
    c.nbf = NOW - 10;

    (void) xet_token_mint(ring->secret, &p, &c, token, sizeof(token), &len);

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memset(&q, 0, sizeof(q));
        test_text(&q.iss, rows[i].iss);
        test_text(&q.aud, rows[i].aud);
        q.skew = rows[i].skew;

        xet_is_u64(xet_test_verify(ring->set, &q, (char *) token, len,
                                   (uint64_t) ((int64_t) NOW + rows[i].now),
                                   NULL, NULL),
                   rows[i].want, "a claim");
    }

    memset(&q, 0, sizeof(q));
    (void) xet_token_mint(ring->secret, &q, &c, token, sizeof(token), &len);
    xet_is_u64(xet_test_verify(ring->set, &p, (char *) token, len, NOW, NULL,
                               NULL),
               XET_TOKEN_ISSUER, "no issuer");

    p.iss.data = NULL;
    xet_is_u64(xet_test_verify(ring->set, &p, (char *) token, len, NOW, NULL,
                               NULL),
               XET_TOKEN_AUDIENCE, "no audience");
}


/* Mints with all lengths of subject and repo, up to and over the limit. */

static void
test_room(void)
{
    char                 text[257];
    size_t               i, k, len, fit, sub, compact, good;
    uint8_t              token[XET_TOKEN_MINT_MAX], room[XET_TOKEN_ROOM];
    uint8_t             *small;
    xet_jwk_t           *keys[2];
    xet_jwk_set_t       *set;
    xet_token_params_t   p;
    xet_token_claims_t   c, back;

    memset(text, 'r', sizeof(text));
    memset(&p, 0, sizeof(p));
    memset(&c, 0, sizeof(c));

    c.exp = XET_TOKEN_TIME_MAX;
    c.iat = 1;

    set = xet_jwk_set_create();
    (void) xet_jwk_create_secret(&keys[0], (const uint8_t *) "hs", 2,
                                 xet_test_secret, 32);
    (void) xet_jwk_set_add(set, keys[0]);
    keys[1] = test_private("ed");
    (void) xet_jwk_set_add(set, keys[1]);

    for (i = 0; i < 4; i++) {
        test_text(&p.iss, (i & 2) ? "https://hub.example.com" : NULL);
        test_text(&p.aud, (i & 2) ? "cas" : NULL);

        /* docs/access.md has these limits */

        fit = ((i & 1) ? 96 : 128) - ((i & 2) ? 16 : 0);

        for (compact = 0, good = 0, k = 1; k <= 256; k++) {
            sub = k / 2;
            c.sub.data = (const uint8_t *) text;
            c.sub.len = sub;
            c.repo.data = (const uint8_t *) text;
            c.repo.len = k - sub;

            if (xet_token_mint(keys[i & 1], &p, &c, token, sizeof(token),
                               &len)
                != XET_OK)
            {
                continue;
            }

            if (memchr(token, '.', len) == NULL) {
                compact += len <= XET_TOKEN_COMPACT_MAX
                           && strspn((char *) token,
                                     "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "abcdefghijklmnopqrstuvwxyz") >= len;
            }

            good += xet_test_verify(set, &p, (char *) token, len, NOW, room,
                                    &back)
                    == XET_OK
                    && back.sub.len == sub && back.repo.len == k - sub
                    && back.exp == c.exp;
        }

        xet_is_u64(compact, fit, "the longest subject and repo that fit");
        xet_is_u64(good, 256, "longer ones are in a JWT");
    }

    c.sub.len = 20;
    c.repo.len = 20;
    (void) xet_token_mint(keys[0], &p, &c, token, sizeof(token), &len);

    for (i = 0; i < len; i += 7) {
        small = malloc(i + !i);
        xet_is_u64(xet_token_mint(keys[0], &p, &c, small, i, &k),
                   XET_INTERNAL, "less room");
        free(small);
    }

    small = malloc(len);
    xet_is_u64(xet_token_mint(keys[0], &p, &c, small, len, &k), XET_OK,
               "room to the byte");
    free(small);

    c.repo.data = NULL;
    c.repo.len = 0;
    c.sub.len = 256;
    memset(&p, 0, sizeof(p));

    xet_ok(xet_token_mint(keys[0], &p, &c, token, sizeof(token), &len)
           == XET_OK && memchr(token, '.', len) != NULL, "a long subject");

    xet_jwk_set_destroy(set);
}


static void
test_spoilt(const xet_test_ring_t *ring)
{
    int                  c;
    size_t               i, k, len, n, accepted;
    uint8_t              token[XET_TOKEN_MINT_MAX + 16];
    xet_jwk_t           *key;
    xet_jwk_set_t       *set;
    const xet_jwk_t     *keys[2];
    xet_token_params_t   p;
    xet_token_claims_t   claims;

    set = xet_jwk_set_create();
    key = test_private("hs");
    (void) xet_jwk_set_add(set, key);

    keys[0] = ring->secret;
    keys[1] = key;

    memset(&p, 0, sizeof(p));
    memset(&claims, 0, sizeof(claims));
    test_text(&claims.repo, "a/b");
    claims.exp = NOW + 600;

    for (i = 0; i < 2; i++) {
        (void) xet_token_mint(keys[i], &p, &claims, token, sizeof(token),
                              &len);

        for (accepted = 0, k = 0; k < len; k++) {
            for (c = 1; c < 256; c = i ? c * 3 : c + 1) {
                token[k] = (uint8_t) (token[k] ^ c);
                accepted += xet_test_verify(i ? set : ring->set, &p,
                                            (char *) token, len, NOW, NULL,
                                            NULL)
                            == XET_OK;
                token[k] = (uint8_t) (token[k] ^ c);
            }
        }

        xet_is_u64(accepted, 0, "every character counts");

        for (accepted = 0, k = 0; k < len; k++) {
            accepted += xet_test_verify(i ? set : ring->set, &p,
                                        (char *) token, k, NOW, NULL, NULL)
                        == XET_OK;
        }

        xet_is_u64(accepted, 0, "to the last one");

        memcpy(token + len, "00000000000", 11);

        for (accepted = 0, n = len + 1; n <= len + 11; n++) {
            accepted += xet_test_verify(i ? set : ring->set, &p,
                                        (char *) token, n, NOW, NULL, NULL)
                        == XET_OK;
        }

        xet_is_u64(accepted, 0, "nothing follows");

        /* the secret and the private key of this test have the same id */

        xet_is_u64(xet_test_verify(i ? ring->set : set, &p, (char *) token,
                                   len, NOW, NULL, NULL),
                   XET_TOKEN_SIGNATURE, "a key of the other kind");
    }

    memset(token, 'z', sizeof(token));
    memcpy(token, "xet1", 4);
    xet_is_u64(xet_test_verify(ring->set, &p, (char *) token,
                               XET_TOKEN_COMPACT_MAX + 1, NOW, NULL, NULL),
               XET_TOKEN_SIZE, "too long");

    memset(token + 4, '0', sizeof(token) - 4);
    xet_is_u64(xet_test_verify(ring->set, &p, (char *) token,
                               XET_TOKEN_COMPACT_MAX, NOW, NULL, NULL),
               XET_TOKEN_KEY, "an unknown key");
    xet_is_u64(xet_test_verify(ring->set, &p, (char *) token, 11, NOW, NULL,
                               NULL),
               XET_TOKEN_SYNTAX, "too short for a head");
    xet_is_u64(xet_test_verify(ring->set, &p, "xet1", 4, NOW, NULL, NULL),
               XET_TOKEN_SYNTAX, "nothing but the mark");

    xet_jwk_set_destroy(set);
}


/* Signs any bytes as a compact token with the secret of the ring. */

static xet_status_t
test_signed(const xet_test_ring_t *ring, const char *prefix,
    const uint8_t *body, size_t n)
{
    char                token[512];
    size_t              len, mac;
    uint8_t             text[512];
    xet_token_params_t  p;

    memset(&p, 0, sizeof(p));

    len = strlen(prefix);
    memcpy(text, prefix, len);
    memcpy(text + len, body, n);

    (void) xet_jwk_sign(ring->secret, text, len + n, text + len + n, &mac);

    memcpy(token, "xet1", 4);
    n = (size_t) (xet_base62_encode((uint8_t *) token + 4, text + len, n + mac)
                  - (uint8_t *) token);

    return xet_test_verify(ring->set, &p, token, n, NOW, NULL, NULL);
}


static void
test_body(const xet_test_ring_t *ring)
{
    size_t   i, n;
    uint8_t  body[128];

    /* after the tag of the key; "T" is an expiry that has not passed */

#define T  "\0\0\0\x70\0\0\0"

    static const struct {
        const char     *body;
        size_t          len;
        xet_status_t    want;
    } rows[] = {
#define row(text, want)  { text, sizeof(text) - 1, want }
        row("\0\0" T, XET_OK),
        row("\7\0" T, XET_OK),
        row("\x08\0" T, XET_TOKEN_CLAIMS),
        row("\xff\0" T, XET_TOKEN_CLAIMS),
        row("\0\x40" T, XET_TOKEN_CLAIMS),
        row("\0\x80" T, XET_TOKEN_CLAIMS),
        row("\0\0" T "\0", XET_TOKEN_CLAIMS),
        row("\0\0\0\0\0\x70\0\0", XET_TOKEN_CLAIMS),
        row("\0\0", XET_TOKEN_CLAIMS),
        row("\0\0\x20\0\0\0\0\0\0", XET_OK),
        row("\0\0\x20\0\0\0\0\0\1", XET_TOKEN_CLAIMS),
        row("\0\1" T, XET_TOKEN_CLAIMS),
        row("\0\1" T T, XET_OK),
        row("\0\2" T "\x20\0\0\0\0\0\1", XET_TOKEN_CLAIMS),
        row("\0\2" T T, XET_TOKEN_EARLY),
        row("\0\4" T "1234567", XET_TOKEN_CLAIMS),
        row("\0\4" T "12345678", XET_OK),
        row("\0\x0c" T "12345678", XET_TOKEN_CLAIMS),
        row("\0\x10" T, XET_TOKEN_CLAIMS),
        row("\0\x10" T "\0", XET_OK),
        row("\0\x10" T "\2a", XET_TOKEN_CLAIMS),
        row("\0\x10" T "\xff" "a", XET_TOKEN_CLAIMS),
        row("\0\x10" T "\1ab", XET_TOKEN_CLAIMS),
        row("\0\x10" T "\1\n", XET_TOKEN_CLAIMS),
        row("\0\x10" T "\1\xff", XET_TOKEN_CLAIMS),
        row("\0\x10" T "\1\0", XET_TOKEN_CLAIMS),
        row("\0\x20" T, XET_TOKEN_CLAIMS),
        row("\0\x20" T "a/b", XET_OK),
        row("\0\x20" T "a/../b", XET_TOKEN_CLAIMS),
        row("\0\x20" T "a b", XET_TOKEN_CLAIMS),
        row("\0\x30" T "\1sa/b", XET_OK)
#undef row
    };

    memcpy(body, xet_jwk_tag(ring->secret), XET_JWK_TAG);

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        n = XET_JWK_TAG + rows[i].len;
        memcpy(body + XET_JWK_TAG, rows[i].body, rows[i].len);

        xet_ok(test_signed(ring, "xet token 1\n", body, n) == rows[i].want,
               "signed body %zu", i);
        xet_ok(test_signed(ring, "", body, n) == XET_TOKEN_SIGNATURE
               && test_signed(ring, "xet token 2\n", body, n)
                  == XET_TOKEN_SIGNATURE,
               "signed body %zu: of another purpose", i);
    }

    for (n = XET_JWK_TAG; n < XET_JWK_TAG + 2; n++) {
        xet_is_u64(test_signed(ring, "xet token 1\n", body, n),
                   XET_TOKEN_SIGNATURE, "shorter than a head");
    }

#undef T
}


/*
 * Keys of other algorithms verify no compact token, and the signature of a JWT
 * verifies no compact token.
 */

static void
test_other(const xet_test_ring_t *ring)
{
    char                 token[512];
    size_t               i, n, mac;
    uint8_t              text[512];
    const xet_jwk_t     *key;
    xet_token_params_t   p;

    memset(&p, 0, sizeof(p));

    for (i = 0; i < RING; i++) {
        key = xet_jwk_set_get(ring->set, i);

        memcpy(text, "xet token 1\n", 12);
        memcpy(text + 12, xet_jwk_tag(key), XET_JWK_TAG);
        memcpy(text + 16, "\0\0\0\0\0\x70\0\0\0", 9);

        mac = xet_test_sign(text + 25, &ring->signers[i], (char *) text, 25,
                            0);
        memcpy(token, "xet1", 4);

        if (mac > 64) {
            continue;                  /* RSA does not fit at all */
        }

        n = (size_t) (xet_base62_encode((uint8_t *) token + 4, text + 12,
                                        13 + mac)
                      - (uint8_t *) token);

        xet_is_u64(xet_test_verify(ring->set, &p, token, n, NOW, NULL, NULL),
                   (i < 2) ? XET_OK : XET_TOKEN_ALG, ring->signers[i].alg);
    }
}


static void
test_key_id(const xet_test_ring_t *ring)
{
    size_t              len;
    uint8_t             token[XET_TOKEN_MINT_MAX], room[XET_JWK_ID_MAX];
    xet_token_params_t  p;
    xet_token_claims_t  c;

    memset(&p, 0, sizeof(p));
    memset(&c, 0, sizeof(c));

    (void) xet_token_mint(ring->secret, &p, &c, token, sizeof(token), &len);

    xet_ok(xet_token_key_id(ring->set, token, len, room) == 2
           && memcmp(room, "hs", 2) == 0, "key id");

    token[5] ^= 1;
    xet_is_u64(xet_token_key_id(ring->set, token, len, room), 0,
               "key id: of an unknown key");
    xet_is_u64(xet_token_key_id(ring->set, token, 6, room), 0,
               "key id: cut off");
}


int
main(void)
{
    xet_test_ring_t  ring;

    xet_test_ring_init(&ring);

    test_known(&ring);
    test_claims(&ring);
    test_room();
    test_spoilt(&ring);
    test_body(&ring);
    test_other(&ring);
    test_key_id(&ring);

    xet_test_ring_free(&ring);

    return xet_done();
}
