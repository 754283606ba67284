
/*
 * Tests minted JWT: their exact text, and that they are valid.  Claims that
 * would be rejected in a token must not be minted.  test_token_compact.c tests
 * the other form.
 */


#include "xet_test.h"
#include "xet_base.h"
#include "xet_test_ring.h"


#define NOW  UINT64_C(1700000000)


static void
test_text(xet_token_text_t *text, const char *s)
{
    text->data = (const uint8_t *) s;
    text->len = s ? strlen(s) : 0;
}


static xet_jwk_t *
test_private(void)
{
    char       *pem;
    EVP_PKEY   *pkey;
    xet_jwk_t  *key;

    pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    pem = xet_test_pem(pkey, 1);

    if (xet_jwk_create_private(&key, NULL, 0, (const uint8_t *) pem,
                               strlen(pem))
        != XET_OK)
    {
        abort();
    }

    EVP_PKEY_free(pkey);
    free(pem);

    return key;
}


/* Returns a decoded part of a token: 0 is the header, 1 is the payload. */

static const char *
test_part(const uint8_t *token, size_t len, unsigned part)
{
    const uint8_t  *p, *end;

    static uint8_t  text[4096];

    p = token;
    end = memchr(p, '.', len);

    if (part) {
        p = end + 1;
        end = memchr(p, '.', len - (size_t) (p - token));
    }

    if (!xet_base64_decode(text, p, (size_t) (end - p))) {
        return "";
    }

    text[xet_base64_decoded((size_t) (end - p))] = '\0';

    return (const char *) text;
}


static void
test_known(const xet_test_ring_t *ring)
{
    size_t              len, again;
    uint8_t             token[XET_TOKEN_MINT_MAX], other[XET_TOKEN_MINT_MAX];
    xet_token_params_t  p;
    xet_token_claims_t  c;

    memset(&p, 0, sizeof(p));
    memset(&c, 0, sizeof(c));

    c.exp = NOW + 600;

    xet_is_u64(xet_token_mint_jwt(ring->secret, &p, &c, token,
                                  sizeof(token), &len),
               XET_OK, "the least");
    xet_ok(strcmp(test_part(token, len, 0),
                  "{\"alg\":\"HS256\",\"typ\":\"JWT\",\"kid\":\"hs\"}") == 0,
           "header");
    xet_ok(strcmp(test_part(token, len, 1),
                  "{\"exp\":1700000600,\"scope\":\"read\"}") == 0, "payload");

    test_text(&p.iss, "https://hub");
    test_text(&p.aud, "a \"b\" \\");
    test_text(&c.sub, "j\xc3\xb6rg");
    test_text(&c.repo, "models/org/name");
    c.nbf = NOW - 1;
    c.iat = NOW;
    c.scope = XET_SCOPE_WRITE;

    xet_is_u64(xet_token_mint_jwt(ring->secret, &p, &c, token,
                                  sizeof(token), &len),
               XET_OK, "everything");
    xet_ok(strcmp(test_part(token, len, 1),
                  "{\"iss\":\"https://hub\",\"aud\":\"a \\\"b\\\" \\\\\","
                  "\"sub\":\"j\xc3\xb6rg\",\"iat\":1700000000,"
                  "\"nbf\":1699999999,\"exp\":1700000600,"
                  "\"scope\":\"write\",\"repo\":\"models/org/name\"}") == 0,
           "payload");

    xet_is_u64(xet_token_mint_jwt(ring->secret, &p, &c, other,
                                  sizeof(other), &again),
               XET_OK, "again");
    xet_ok(again == len && memcmp(token, other, len) == 0, "the same token");

    memset(&p, 0, sizeof(p));
    memset(&c, 0, sizeof(c));

    c.exp = NOW + 600;
    c.contents = 1;

    xet_is_u64(xet_token_mint_jwt(ring->secret, &p, &c, token,
                                  sizeof(token), &len),
               XET_OK, "of a Hub");
    xet_ok(strcmp(test_part(token, len, 1),
                  "{\"exp\":1700000600,\"scope\":\"read\","
                  "\"contents\":true}") == 0, "payload");
}


/* Mints and verifies with both kinds of key, with the same parameters. */

static void
test_round(const xet_test_ring_t *ring)
{
    size_t               i, len;
    uint8_t              token[XET_TOKEN_MINT_MAX], room[XET_TOKEN_ROOM];
    xet_jwk_t           *private;
    xet_jwk_set_t       *set;
    const xet_jwk_t     *keys[2];
    xet_token_params_t   p;
    xet_token_claims_t   c, back;

    set = xet_jwk_set_create();
    private = test_private();

    keys[0] = ring->secret;
    keys[1] = private;

    memset(&p, 0, sizeof(p));
    memset(&c, 0, sizeof(c));

    test_text(&p.iss, "i");
    test_text(&p.aud, "\xf0\x9f\x98\x80/\"\\");
    test_text(&c.sub, "who \"is\" it\\");
    test_text(&c.repo, "a/b");
    c.exp = XET_TOKEN_TIME_MAX;
    c.nbf = NOW;
    c.iat = 1;

    for (i = 0; i < 2; i++) {
        c.scope = i ? XET_SCOPE_ADMIN : XET_SCOPE_WRITE;

        xet_is_u64(xet_token_mint_jwt(keys[i], &p, &c, token,
                                      sizeof(token), &len),
                   XET_OK, "minted");

        if (i == 1) {
            xet_is_u64(xet_test_verify(ring->set, &p, (char *) token, len,
                                       NOW, room, &back),
                       XET_TOKEN_KEY, "by a key that is not in the set");
            (void) xet_jwk_set_add(set, private);
        }

        xet_is_u64(xet_test_verify(i ? set : ring->set, &p, (char *) token,
                                   len, NOW, room, &back),
                   XET_OK, "verified");
        xet_ok(back.exp == c.exp && back.nbf == c.nbf && back.iat == c.iat
               && back.scope == c.scope && back.sub.len == c.sub.len
               && memcmp(back.sub.data, c.sub.data, c.sub.len) == 0
               && back.repo.len == c.repo.len
               && memcmp(back.repo.data, c.repo.data, c.repo.len) == 0,
               "the same claims");
    }

    xet_jwk_set_destroy(set);
}


/* Checks that the longest token fits into a buffer of exactly its size. */

static void
test_room(void)
{
    char                 text[XET_TOKEN_NAME_MAX + 1];
    char                 repo[XET_TOKEN_REPO_MAX + 1];
    size_t               i, len, again;
    uint8_t             *small, token[XET_TOKEN_MINT_MAX];
    uint8_t              id[XET_JWK_ID_MAX];
    xet_jwk_t           *key;
    xet_jwk_set_t       *set;
    xet_token_params_t   p;
    xet_token_claims_t   c;

    memset(text, '"', sizeof(text));
    memset(repo, 'r', sizeof(repo));
    memset(id, '\\', sizeof(id));
    text[XET_TOKEN_NAME_MAX] = '\0';
    repo[XET_TOKEN_REPO_MAX] = '\0';

    memset(&p, 0, sizeof(p));
    memset(&c, 0, sizeof(c));

    test_text(&p.iss, text);
    test_text(&p.aud, text);
    test_text(&c.sub, text);
    test_text(&c.repo, repo);
    c.exp = c.nbf = c.iat = XET_TOKEN_TIME_MAX;
    c.scope = XET_SCOPE_DELETE;

    set = xet_jwk_set_create();
    (void) xet_jwk_create_secret(&key, id, sizeof(id), xet_test_secret, 32);
    (void) xet_jwk_set_add(set, key);

    xet_is_u64(xet_token_mint(key, &p, &c, token, sizeof(token), &len),
               XET_OK, "the longest token");
    xet_ok(len <= XET_TOKEN_MINT_MAX - 43, "is within bounds");
    xet_is_u64(xet_test_verify(set, &p, (char *) token, len,
                               XET_TOKEN_TIME_MAX, NULL, NULL),
               XET_TOKEN_EXPIRED, "and good");

    for (i = 0; i < 2; i++) {
        small = malloc(len - i);
        again = 0;

        xet_is_u64(xet_token_mint(key, &p, &c, small, len - i, &again),
                   i ? XET_INTERNAL : XET_OK, "room to the byte");
        xet_ok(i || (again == len && memcmp(small, token, len) == 0),
               "the same token");

        free(small);
    }

    for (i = 0; i < len; i += 97) {
        small = malloc(i + !i);
        xet_is_u64(xet_token_mint(key, &p, &c, small, i, &again),
                   XET_INTERNAL, "less room");
        free(small);
    }

    xet_jwk_set_destroy(set);
}


static void
test_refused(const xet_test_ring_t *ring)
{
    char                text[258];
    size_t              i, k, len;
    uint8_t             token[XET_TOKEN_MINT_MAX];
    xet_token_text_t   *texts[4];
    xet_token_params_t  p;
    xet_token_claims_t  c;

    static const char  *const  bad[] = {
        "a\n", "\x01", "\x7f", "\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80",
        "\xf4\x90\x80\x80"
    };

    memset(&p, 0, sizeof(p));
    memset(&c, 0, sizeof(c));
    memset(text, 'a', sizeof(text));
    text[257] = '\0';
    c.exp = NOW;

    texts[0] = &p.iss;
    texts[1] = &p.aud;
    texts[2] = &c.sub;
    texts[3] = &c.repo;

    for (i = 0; i < 4; i++) {
        for (k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
            test_text(texts[i], bad[k]);
            xet_is_u64(xet_token_mint(ring->secret, &p, &c, token,
                                      sizeof(token), &len),
                       XET_INTERNAL, "a bad text");
        }

        test_text(texts[i], text);
        xet_is_u64(xet_token_mint(ring->secret, &p, &c, token, sizeof(token),
                                  &len),
                   XET_INTERNAL, "257 bytes");
        test_text(texts[i], text + 1);
        xet_is_u64(xet_token_mint(ring->secret, &p, &c, token, sizeof(token),
                                  &len),
                   XET_OK, "256 bytes");
        test_text(texts[i], NULL);
    }

    test_text(&c.repo, "a/../b");
    xet_is_u64(xet_token_mint(ring->secret, &p, &c, token, sizeof(token),
                              &len),
               XET_INTERNAL, "a repo that leads up");
    test_text(&c.repo, "");
    xet_is_u64(xet_token_mint(ring->secret, &p, &c, token, sizeof(token),
                              &len),
               XET_INTERNAL, "an empty repo");
    test_text(&c.repo, NULL);

    for (i = 0; i < 3; i++) {
        c.exp = XET_TOKEN_TIME_MAX + (i == 0);
        c.nbf = XET_TOKEN_TIME_MAX + (i == 1);
        c.iat = XET_TOKEN_TIME_MAX + (i == 2);
        xet_is_u64(xet_token_mint(ring->secret, &p, &c, token, sizeof(token),
                                  &len),
                   XET_INTERNAL, "a time past the limit");
    }

    c.iat--;
    xet_is_u64(xet_token_mint(ring->secret, &p, &c, token, sizeof(token),
                              &len),
               XET_OK, "times at the limit");

    for (i = 1; i < RING; i++) {
        xet_is_u64(xet_token_mint(xet_jwk_set_get(ring->set, i), &p, &c,
                                  token, sizeof(token), &len),
                   XET_INTERNAL, "a public key");
    }
}


/* Reads the key id from the headers of valid and of invalid tokens. */

static void
test_key_id(const xet_test_ring_t *ring)
{
    size_t              len, n, id_len;
    uint8_t            *p;
    uint8_t             token[XET_TOKEN_MINT_MAX], room[XET_JWK_ID_MAX];
    unsigned            i;
    const uint8_t      *id;
    xet_token_params_t  params;
    xet_token_claims_t  c;

    static const struct {
        const char     *header;
        const char     *id;
    } headers[] = {
        { "{\"alg\":\"HS256\",\"kid\":\"k1\"}", "k1" },
        { "{\"alg\":\"HS256\"}", "" },
        { "{\"kid\":7}", "" },
        { "{\"kid\":\"\"}", "" },
        { "{\"kid\":\"a\\nb\"}", "" },
        { "{\"kid\":\"\xc3\xa4\"}", "" },
        { "[\"kid\"]", "" },
        { "{\"kid\":\"a\",\"kid\":\"b\"}", "" },
        { "", "" }
    };

    memset(&params, 0, sizeof(params));
    memset(&c, 0, sizeof(c));

    c.exp = NOW + 600;

    (void) xet_token_mint_jwt(ring->secret, &params, &c, token, sizeof(token),
                              &len);

    id = xet_jwk_id(ring->secret, &id_len);
    n = xet_token_key_id(ring->set, token, len, room);

    xet_ok(n == id_len && memcmp(room, id, n) == 0, "key id: of our making");
    xet_is_u64(xet_token_key_id(ring->set, token, 5, room), 0,
               "key id: cut off");
    xet_is_u64(xet_token_key_id(ring->set, (const uint8_t *) "!.x.y", 5,
                                room),
               0, "key id: no base64");

    for (i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        p = xet_base64_encode(token, (const uint8_t *) headers[i].header,
                              strlen(headers[i].header));
        *p++ = '.';

        n = xet_token_key_id(ring->set, token, (size_t) (p - token), room);

        xet_ok(n == strlen(headers[i].id)
               && memcmp(room, headers[i].id, n) == 0,
               "key id: header %u", i);
    }

    memset(token, 'A', sizeof(token));
    token[sizeof(token) - 1] = '.';

    xet_is_u64(xet_token_key_id(ring->set, token, sizeof(token), room), 0,
               "key id: too long");
}


int
main(void)
{
    xet_test_ring_t  ring;

    xet_test_ring_init(&ring);

    test_known(&ring);
    test_round(&ring);
    test_room();
    test_refused(&ring);
    test_key_id(&ring);

    xet_test_ring_free(&ring);

    return xet_done();
}
