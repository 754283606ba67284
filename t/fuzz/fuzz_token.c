
/*
 * Tokens: only signed tokens are valid; the claims of each valid token are
 * within bounds; a token that is minted from these claims has the same claims.
 *
 * Input: a byte with the mode, a byte with the conditions of the check, then,
 * for each mode:
 *   0  a token
 *   1  header, NUL, payload, which are signed with the secret
 *   2  exp, nbf, iat (8 bytes each, little-endian), sub, NUL, repo, from
 *      which a token is minted
 *   3  the bytes of a compact token after the tag of the key, which are signed
 *      with the secret
 */


#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "access/xet_test_jwt.h"
#include "access/xet_test_keys.h"
#include "xet_base.h"
#include "xet_access.h"


#define NOW  UINT64_C(1700000000)

#define check(cond)  if (!(cond)) { __builtin_trap(); }


static const uint8_t      fuzz_secret[] = "a secret of 32 bytes and no more";

/* The only valid tokens: compact ones and JWT. */

#define GOOD  4

static char               fuzz_good[GOOD][1024];

static xet_jwk_set_t     *fuzz_set;
static const xet_jwk_t   *fuzz_keys[2];


/* Creates the server's keys: a secret, a private key, and the RFCs' keys. */

static void
fuzz_init(void)
{
    char                 *pem;
    size_t                i, len, index;
    EVP_PKEY             *pkey;
    xet_jwk_t            *key;
    xet_token_claims_t    claims;
    xet_token_params_t    params;
    xet_status_t        (*mint)(const xet_jwk_t *key,
                                const xet_token_params_t *params,
                                const xet_token_claims_t *claims, uint8_t *out,
                                size_t cap, size_t *len);

    static const char  jwks[] = JWKS(JWK_RS "," JWK_ES "," JWK_ED);

    fuzz_set = xet_jwk_set_create();

    check(xet_jwk_create_secret(&key, (const uint8_t *) "hs", 2, fuzz_secret,
                                32) == XET_OK);
    check(xet_jwk_set_add(fuzz_set, key) == XET_OK);
    fuzz_keys[0] = key;

    pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, fuzz_secret,
                                        32);
    pem = xet_test_pem(pkey, 1);
    check(xet_jwk_create_private(&key, (const uint8_t *) "ed", 2,
                                 (const uint8_t *) pem, strlen(pem))
          == XET_OK);
    check(xet_jwk_set_add(fuzz_set, key) == XET_OK);
    fuzz_keys[1] = key;

    free(pem);
    EVP_PKEY_free(pkey);

    check(xet_jwk_set_add_jwks(fuzz_set, (const uint8_t *) jwks, strlen(jwks),
                               &index) == XET_OK);

    memset(&params, 0, sizeof(params));
    memset(&claims, 0, sizeof(claims));
    claims.exp = NOW + 600;

    for (i = 0; i < GOOD; i++) {
        mint = (i < 2) ? xet_token_mint : xet_token_mint_jwt;

        check(mint(fuzz_keys[i & 1], &params, &claims,
                   (uint8_t *) fuzz_good[i], sizeof(fuzz_good[i]), &len)
              == XET_OK);
    }
}


static void
fuzz_params(xet_token_params_t *params, unsigned conditions)
{
    memset(params, 0, sizeof(xet_token_params_t));

    if (conditions & 1) {
        params->iss.data = (const uint8_t *) "hub";
        params->iss.len = 3;
    }

    if (conditions & 2) {
        params->aud.data = (const uint8_t *) "cas";
        params->aud.len = 3;
    }

    if (conditions & 4) {
        params->skew = 60;
    }

    if (conditions & 8) {
        params->max = 65536;
    }
}


static void
fuzz_text(const xet_token_text_t *text, size_t max, const uint8_t *room)
{
    if (text->data == NULL) {
        check(text->len == 0);
        return;
    }

    check(text->len <= max);
    check(text->data >= room
          && text->data + text->len <= room + XET_TOKEN_ROOM);
    check(xet_token_text_ok(text, max));
}


static int
fuzz_equal(const xet_token_text_t *a, const xet_token_text_t *b)
{
    return (a->data == NULL) == (b->data == NULL) && a->len == b->len
           && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}


static xet_status_t
fuzz_verify(const xet_token_params_t *params, const void *token, size_t len,
    uint8_t *room, xet_token_claims_t *claims)
{
    xet_status_t  status;

    status = xet_token_verify(fuzz_set, params, token, len, NOW, room,
                              claims);

    check(ERR_peek_error() == 0);
    check(xet_status_http(status) == (status == XET_OK ? 200
                                      : status == XET_TOKEN_SCOPE ? 403
                                                                  : 401));

    if (status == XET_OK) {
        check(claims->exp > NOW - params->skew);
        check(claims->exp <= XET_TOKEN_TIME_MAX);
        check(claims->nbf <= NOW + params->skew);
        check(claims->iat <= XET_TOKEN_TIME_MAX);
        fuzz_text(&claims->sub, XET_TOKEN_SUB_MAX, room);
        fuzz_text(&claims->repo, XET_TOKEN_REPO_MAX, room);
        check(claims->repo.data == NULL
              || xet_token_repo_ok(claims->repo.data, claims->repo.len));
    }

    return status;
}


/*
 * Mints a token from the claims and verifies it.  Minting must fail if the
 * claims are invalid.
 */

static void
fuzz_mint(const xet_token_params_t *params, const xet_token_claims_t *claims,
    unsigned which)
{
    size_t              len;
    uint8_t             token[XET_TOKEN_MINT_MAX], room[XET_TOKEN_ROOM];
    xet_status_t        status;
    xet_token_claims_t  back;

    status = xet_token_mint(fuzz_keys[which], params, claims, token,
                            sizeof(token), &len);

    if (status != XET_OK) {
        check(status == XET_INTERNAL);
        return;
    }

    check(len <= XET_TOKEN_MINT_MAX);

    status = fuzz_verify(params, token, len, room, &back);

    if (status != XET_OK) {
        check(status == XET_TOKEN_EXPIRED || status == XET_TOKEN_EARLY);
        check(claims->exp <= NOW || claims->nbf > NOW);
        return;
    }

    check(back.exp == claims->exp && back.nbf == claims->nbf
          && back.iat == claims->iat && back.scope == claims->scope
          && fuzz_equal(&back.sub, &claims->sub)
          && fuzz_equal(&back.repo, &claims->repo));
}


static void
fuzz_token(const xet_token_params_t *params, const uint8_t *data, size_t size)
{
    size_t               i, known;
    uint8_t             *room;
    xet_token_claims_t   claims;

    room = malloc(XET_TOKEN_ROOM);
    check(room != NULL);

    if (fuzz_verify(params, data, size, room, &claims) == XET_OK) {

        for (i = 0, known = 0; i < GOOD; i++) {
            known += strlen(fuzz_good[i]) == size
                     && memcmp(fuzz_good[i], data, size) == 0;
        }

        check(known == 1);
    }

    free(room);
}


static void
fuzz_signed(const xet_token_params_t *params, const uint8_t *data,
    size_t size)
{
    char                *token;
    size_t               header, len;
    uint8_t             *room;
    const uint8_t       *nul;
    xet_test_signer_t    s;
    xet_token_claims_t   claims;

    nul = memchr(data, '\0', size);
    header = nul ? (size_t) (nul - data) : size;

    memset(&s, 0, sizeof(s));
    s.secret = fuzz_secret;
    s.len = 32;

    token = malloc(size * 2 + 128);
    room = malloc(XET_TOKEN_ROOM);
    check(token != NULL && room != NULL);

    len = xet_test_jwt_n(token, &s, data, header, nul ? nul + 1 : data,
                         nul ? size - header - 1 : 0);

    if (fuzz_verify(params, token, len, room, &claims) == XET_OK) {
        fuzz_mint(params, &claims, (unsigned) len & 1);
    }

    free(room);
    free(token);
}


static void
fuzz_body(const xet_token_params_t *params, const uint8_t *data, size_t size)
{
    size_t               n, mac;
    uint8_t             *token, *text, *room;
    xet_token_claims_t   claims;

    static const char  prefix[] = "xet token 1\n";

    n = sizeof(prefix) - 1;

    token = malloc(2 * size + 128);
    text = malloc(n + XET_JWK_TAG + size + XET_JWK_SIGN_MAX);
    room = malloc(XET_TOKEN_ROOM);
    check(token != NULL && text != NULL && room != NULL);

    memcpy(text, prefix, n);
    memcpy(text + n, xet_jwk_tag(fuzz_keys[0]), XET_JWK_TAG);

    if (size) {
        memcpy(text + n + XET_JWK_TAG, data, size);
    }

    size += XET_JWK_TAG;

    check(xet_jwk_sign(fuzz_keys[0], text, n + size, text + n + size, &mac)
          == XET_OK);

    memcpy(token, "xet1", 4);
    size = (size_t) (xet_base62_encode(token + 4, text + n, size + mac)
                     - token);

    if (fuzz_verify(params, token, size, room, &claims) == XET_OK) {
        check(size <= XET_TOKEN_COMPACT_MAX);
        fuzz_mint(params, &claims, (unsigned) size & 1);
    }

    free(room);
    free(text);
    free(token);
}


static void
fuzz_claims(const xet_token_params_t *params, const uint8_t *data,
    size_t size, unsigned conditions)
{
    const uint8_t       *nul;
    xet_token_claims_t   claims;

    if (size < 24) {
        return;
    }

    memset(&claims, 0, sizeof(claims));

    claims.exp = xet_get_u64(data);
    claims.nbf = xet_get_u64(data + 8);
    claims.iat = xet_get_u64(data + 16);
    claims.scope = !(conditions & 0x10) ? XET_SCOPE_READ
                   : (claims.iat & 1) ? XET_SCOPE_DELETE : XET_SCOPE_WRITE;

    data += 24;
    size -= 24;

    nul = memchr(data, '\0', size);

    if (conditions & 0x20) {
        claims.sub.data = data;
        claims.sub.len = nul ? (size_t) (nul - data) : size;
    }

    if (nul && conditions & 0x40) {
        claims.repo.data = nul + 1;
        claims.repo.len = size - (size_t) (nul - data) - 1;
    }

    fuzz_mint(params, &claims, conditions >> 7 & 1);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    xet_token_params_t  params;

    if (fuzz_set == NULL) {
        fuzz_init();
    }

    if (size < 2) {
        return 0;
    }

    fuzz_params(&params, data[1]);

    switch (data[0] % 4) {

    case 0:
        fuzz_token(&params, data + 2, size - 2);
        break;

    case 1:
        fuzz_signed(&params, data + 2, size - 2);
        break;

    case 2:
        fuzz_claims(&params, data + 2, size - 2, data[1]);
        break;

    default:
        fuzz_body(&params, data + 2, size - 2);
    }

    return 0;
}
