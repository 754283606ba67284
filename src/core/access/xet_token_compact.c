
/*
 * Compact access tokens, for clients that only send letters and digits.
 *
 * Purpose:    mints and verifies tokens with the claims of a JSON Web Token.
 * States:     none.
 * Ownership:  as in xet_token.c.
 * Threads:    any number with the same set or the same key.
 *
 * A token is the text "xet1" and base62 of these bytes; numbers are big-endian:
 *
 *     4      tag of the key: the first bytes of SHA-256 of its id
 *     1      scope, from 0, plus 4 if "contents" is set
 *     1      which of the optional claims follow, XET_TOKEN_HAS_*
 *     7      exp
 *     7      iat
 *     7      nbf
 *     8      the first bytes of SHA-256 of iss
 *     8      the same of aud
 *     1 + n  sub: length, text
 *     n      repo, up to the signature
 *     32     HMAC-SHA256 with a secret, or 64: Ed25519 signature
 *
 * The signature covers XET_TOKEN_PREFIX and all bytes before the signature.
 * The prefix has characters that a JWT never has, so the signature of a JWT is
 * never valid for a compact token, or the reverse.  Both algorithms are
 * deterministic, and no signature can be changed to another valid one.  Keys of
 * other algorithms, for which this is not so, never verify compact tokens.
 *
 * As with JWT, the tag only selects which keys are tried, and the claims are
 * parsed after the signature is verified.
 */


#include <openssl/err.h>
#include <openssl/evp.h>

#include "xet_base.h"
#include "xet_access.h"


#define XET_TOKEN_MARK        "xet1"
#define XET_TOKEN_PREFIX      "xet token 1\n"
#define XET_TOKEN_HEAD        6        /* bytes before the times */
#define XET_TOKEN_TIME        7        /* bytes of a time */
#define XET_TOKEN_NAME        8        /* bytes for iss or aud */
#define XET_TOKEN_BYTES       181      /* maximum, with the signature */

#define XET_TOKEN_HAS_IAT     0x01
#define XET_TOKEN_HAS_NBF     0x02
#define XET_TOKEN_HAS_ISS     0x04
#define XET_TOKEN_HAS_AUD     0x08
#define XET_TOKEN_HAS_SUB     0x10
#define XET_TOKEN_HAS_REPO    0x20

#define XET_TOKEN_CONTENTS    0x04     /* flag beside the scope */

#define xet_token_lit(text)   (sizeof(text) - 1)


/* The signed text, followed by the signature. */

typedef struct {
    uint8_t         text[xet_token_lit(XET_TOKEN_PREFIX) + XET_TOKEN_BYTES];
    uint8_t        *body;              /* after the prefix */
    size_t          len;               /* of the body, with the signature */
} xet_token_raw_t;


/* Reads the body; failed is set when bytes are missing. */

typedef struct {
    const uint8_t  *pos;
    const uint8_t  *end;
    unsigned        failed:1;
} xet_token_cursor_t;


static xet_status_t xet_token_raw(xet_token_raw_t *raw, const uint8_t *token,
    size_t len);
static xet_status_t xet_token_raw_signed(const xet_jwk_set_t *set,
    const xet_token_raw_t *raw, size_t *len);
static xet_status_t xet_token_raw_claims(const xet_token_raw_t *raw,
    size_t len, const xet_token_params_t *params, uint64_t now, uint8_t *room,
    xet_token_claims_t *claims);
static const uint8_t *xet_token_take(xet_token_cursor_t *c, size_t n);
static uint64_t xet_token_take_time(xet_token_cursor_t *c, unsigned has);
static uint8_t *xet_token_take_text(xet_token_cursor_t *c, size_t n,
    uint8_t *room, xet_token_text_t *text);
static int xet_token_named(const xet_token_text_t *want, const uint8_t *tag);
static size_t xet_token_body_len(const xet_token_params_t *params,
    const xet_token_claims_t *claims);
static xet_status_t xet_token_body(uint8_t *p, const xet_jwk_t *key,
    const xet_token_params_t *params, const xet_token_claims_t *claims);
static uint8_t *xet_token_put_number(uint8_t *p, uint64_t seconds);
static int xet_token_name(const xet_token_text_t *name, uint8_t *tag);
static size_t xet_token_mac_len(const xet_jwk_t *key);


int
xet_token_is_compact(const uint8_t *token, size_t len)
{
    return len > xet_token_lit(XET_TOKEN_MARK)
           && memcmp(token, XET_TOKEN_MARK, xet_token_lit(XET_TOKEN_MARK))
              == 0
           && memchr(token, '.', len) == NULL;
}


xet_status_t
xet_token_compact_verify(const xet_jwk_set_t *set,
    const xet_token_params_t *params, const uint8_t *token, size_t len,
    uint64_t now, uint8_t *room, xet_token_claims_t *claims)
{
    size_t           n;
    xet_status_t     status;
    xet_token_raw_t  raw;

    status = xet_token_raw(&raw, token, len);

    if (status == XET_OK) {
        status = xet_token_raw_signed(set, &raw, &n);
    }

    return (status == XET_OK)
           ? xet_token_raw_claims(&raw, n, params, now, room, claims) : status;
}


xet_status_t
xet_token_compact_mint(const xet_jwk_t *key, const xet_token_params_t *params,
    const xet_token_claims_t *claims, uint8_t *out, size_t cap, size_t *len)
{
    size_t           n, mac;
    uint8_t         *p, signature[XET_JWK_SIGN_MAX];
    xet_status_t     status;
    xet_token_raw_t  raw;

    mac = xet_token_mac_len(key);
    n = xet_token_body_len(params, claims);

    if (mac == 0 || n + mac > XET_TOKEN_BYTES
        || claims->sub.len > UINT8_MAX)
    {
        return XET_DONE;
    }

    if (xet_token_lit(XET_TOKEN_MARK) + xet_base62_encoded(n + mac) > cap) {
        return XET_INTERNAL;
    }

    p = raw.text + xet_token_lit(XET_TOKEN_PREFIX);
    memcpy(raw.text, XET_TOKEN_PREFIX, xet_token_lit(XET_TOKEN_PREFIX));

    status = xet_token_body(p, key, params, claims);

    if (status == XET_OK) {
        status = xet_jwk_sign(key, raw.text,
                              xet_token_lit(XET_TOKEN_PREFIX) + n,
                              signature, &mac);
    }

    if (status != XET_OK) {
        return status;
    }

    memcpy(p + n, signature, mac);
    memcpy(out, XET_TOKEN_MARK, xet_token_lit(XET_TOKEN_MARK));

    *len = (size_t) (xet_base62_encode(out + xet_token_lit(XET_TOKEN_MARK), p,
                                       n + mac)
                     - out);

    return XET_OK;
}


size_t
xet_token_compact_key_id(const xet_jwk_set_t *set, const uint8_t *token,
    size_t len, uint8_t *room)
{
    size_t            i, n;
    const uint8_t    *id;
    const xet_jwk_t  *key;
    xet_token_raw_t   raw;

    if (xet_token_raw(&raw, token, len) != XET_OK) {
        return 0;
    }

    for (i = 0; i < xet_jwk_set_count(set); i++) {
        key = xet_jwk_set_get(set, i);
        id = xet_jwk_id(key, &n);

        if (memcmp(xet_jwk_tag(key), raw.body, XET_JWK_TAG) == 0
            && xet_jwk_id_ok(id, n))
        {
            memcpy(room, id, n);
            return n;
        }
    }

    return 0;
}


/* Decodes a token, which has at least a head. */

static xet_status_t
xet_token_raw(xet_token_raw_t *raw, const uint8_t *token, size_t len)
{
    if (len > XET_TOKEN_COMPACT_MAX) {
        return XET_TOKEN_SIZE;
    }

    raw->body = raw->text + xet_token_lit(XET_TOKEN_PREFIX);
    memcpy(raw->text, XET_TOKEN_PREFIX, xet_token_lit(XET_TOKEN_PREFIX));

    return (xet_base62_decode(raw->body, &raw->len,
                              token + xet_token_lit(XET_TOKEN_MARK),
                              len - xet_token_lit(XET_TOKEN_MARK))
            && raw->len >= XET_TOKEN_HEAD)
           ? XET_OK : XET_TOKEN_SYNTAX;
}


/*
 * Verifies that a key of the set has signed the body, and sets *len to the
 * length of the body without the signature, which depends on the key.
 */

static xet_status_t
xet_token_raw_signed(const xet_jwk_set_t *set, const xet_token_raw_t *raw,
    size_t *len)
{
    size_t            i, mac, tried;
    xet_status_t      status;
    const xet_jwk_t  *key;

    status = XET_TOKEN_KEY;
    tried = 0;

    for (i = 0; i < xet_jwk_set_count(set); i++) {
        key = xet_jwk_set_get(set, i);

        if (memcmp(xet_jwk_tag(key), raw->body, XET_JWK_TAG) != 0) {
            continue;
        }

        mac = xet_token_mac_len(key);

        if (mac == 0) {

            /* another key with this id may have the algorithm */

            if (status == XET_TOKEN_KEY) {
                status = XET_TOKEN_ALG;
            }

            continue;
        }

        if (tried++ == XET_TOKEN_KEYS_MAX) {
            break;
        }

        if (raw->len < XET_TOKEN_HEAD + mac) {
            status = XET_TOKEN_SIGNATURE;
            continue;
        }

        *len = raw->len - mac;

        status = xet_jwk_verify(key, raw->text,
                                xet_token_lit(XET_TOKEN_PREFIX) + *len,
                                raw->body + *len, mac);

        if (status != XET_TOKEN_SIGNATURE) {
            return status;
        }
    }

    return status;
}


/* Parses and checks the claims, in the same order as those of a JWT. */

static xet_status_t
xet_token_raw_claims(const xet_token_raw_t *raw, size_t len,
    const xet_token_params_t *params, uint64_t now, uint8_t *room,
    xet_token_claims_t *claims)
{
    unsigned             has;
    xet_status_t         status;
    const uint8_t       *p, *iss, *aud;
    xet_token_cursor_t   c;

    memset(claims, 0, sizeof(xet_token_claims_t));

    p = raw->body + XET_JWK_TAG;
    has = p[1];

    if (p[0] > (XET_SCOPE_ADMIN | XET_TOKEN_CONTENTS)
        || has >= 2 * XET_TOKEN_HAS_REPO)
    {
        return XET_TOKEN_CLAIMS;
    }

    claims->scope = (xet_scope_e) (p[0] & XET_SCOPE_ADMIN);
    claims->contents = (p[0] & XET_TOKEN_CONTENTS) != 0;

    c.pos = raw->body + XET_TOKEN_HEAD;
    c.end = raw->body + len;
    c.failed = 0;

    claims->exp = xet_token_take_time(&c, 1);
    claims->iat = xet_token_take_time(&c, has & XET_TOKEN_HAS_IAT);
    claims->nbf = xet_token_take_time(&c, has & XET_TOKEN_HAS_NBF);

    iss = (has & XET_TOKEN_HAS_ISS) ? xet_token_take(&c, XET_TOKEN_NAME)
                                    : NULL;
    aud = (has & XET_TOKEN_HAS_AUD) ? xet_token_take(&c, XET_TOKEN_NAME)
                                    : NULL;

    if (has & XET_TOKEN_HAS_SUB) {
        p = xet_token_take(&c, 1);
        room = xet_token_take_text(&c, p ? *p : 0, room, &claims->sub);
    }

    if (has & XET_TOKEN_HAS_REPO) {
        (void) xet_token_take_text(&c, (size_t) (c.end - c.pos), room,
                                   &claims->repo);
    }

    if (c.failed || c.pos != c.end
        || claims->exp > XET_TOKEN_TIME_MAX
        || claims->iat > XET_TOKEN_TIME_MAX
        || claims->nbf > XET_TOKEN_TIME_MAX
        || (claims->sub.data
            && !xet_token_text_ok(&claims->sub, XET_TOKEN_SUB_MAX))
        || (claims->repo.data
            && !xet_token_repo_ok(claims->repo.data, claims->repo.len)))
    {
        return XET_TOKEN_CLAIMS;
    }

    status = xet_token_current(params, claims, now);

    if (status != XET_OK) {
        return status;
    }

    if (!xet_token_named(&params->iss, iss)) {
        return XET_TOKEN_ISSUER;
    }

    return xet_token_named(&params->aud, aud) ? XET_OK : XET_TOKEN_AUDIENCE;
}


/* Returns the next n bytes, or NULL when fewer are left. */

static const uint8_t *
xet_token_take(xet_token_cursor_t *c, size_t n)
{
    const uint8_t  *p;

    if (c->failed || (size_t) (c->end - c->pos) < n) {
        c->failed = 1;
        return NULL;
    }

    p = c->pos;
    c->pos += n;

    return p;
}


static uint64_t
xet_token_take_time(xet_token_cursor_t *c, unsigned has)
{
    size_t          i;
    uint64_t        seconds;
    const uint8_t  *p;

    p = has ? xet_token_take(c, XET_TOKEN_TIME) : NULL;
    seconds = 0;

    for (i = 0; p && i < XET_TOKEN_TIME; i++) {
        seconds = seconds << 8 | p[i];
    }

    return seconds;
}


/* Copies a text to room; returns the room after the text. */

static uint8_t *
xet_token_take_text(xet_token_cursor_t *c, size_t n, uint8_t *room,
    xet_token_text_t *text)
{
    const uint8_t  *p;

    p = xet_token_take(c, n);

    if (p == NULL) {
        return room;
    }

    memcpy(room, p, n);

    text->data = room;
    text->len = n;

    return room + n;
}


/* Returns whether a tag, NULL if absent, is of the required name, if any. */

static int
xet_token_named(const xet_token_text_t *want, const uint8_t *tag)
{
    uint8_t  mine[XET_TOKEN_NAME];

    if (want->data == NULL) {
        return 1;
    }

    return tag != NULL && xet_token_name(want, mine)
           && memcmp(mine, tag, XET_TOKEN_NAME) == 0;
}


static size_t
xet_token_body_len(const xet_token_params_t *params,
    const xet_token_claims_t *claims)
{
    return XET_TOKEN_HEAD + XET_TOKEN_TIME
           + (claims->iat ? XET_TOKEN_TIME : 0)
           + (claims->nbf ? XET_TOKEN_TIME : 0)
           + (params->iss.data ? XET_TOKEN_NAME : 0)
           + (params->aud.data ? XET_TOKEN_NAME : 0)
           + (claims->sub.data ? 1 + claims->sub.len : 0)
           + (claims->repo.data ? claims->repo.len : 0);
}


static xet_status_t
xet_token_body(uint8_t *p, const xet_jwk_t *key,
    const xet_token_params_t *params, const xet_token_claims_t *claims)
{
    int  ok;

    memcpy(p, xet_jwk_tag(key), XET_JWK_TAG);
    p += XET_JWK_TAG;

    *p++ = (uint8_t) (claims->scope
                      | (claims->contents ? XET_TOKEN_CONTENTS : 0));
    *p++ = (uint8_t) ((claims->iat ? XET_TOKEN_HAS_IAT : 0)
                      | (claims->nbf ? XET_TOKEN_HAS_NBF : 0)
                      | (params->iss.data ? XET_TOKEN_HAS_ISS : 0)
                      | (params->aud.data ? XET_TOKEN_HAS_AUD : 0)
                      | (claims->sub.data ? XET_TOKEN_HAS_SUB : 0)
                      | (claims->repo.data ? XET_TOKEN_HAS_REPO : 0));

    p = xet_token_put_number(p, claims->exp);
    p = claims->iat ? xet_token_put_number(p, claims->iat) : p;
    p = claims->nbf ? xet_token_put_number(p, claims->nbf) : p;

    ok = 1;

    if (params->iss.data) {
        ok = ok && xet_token_name(&params->iss, p);
        p += XET_TOKEN_NAME;
    }

    if (params->aud.data) {
        ok = ok && xet_token_name(&params->aud, p);
        p += XET_TOKEN_NAME;
    }

    if (claims->sub.data) {
        *p++ = (uint8_t) claims->sub.len;
        memcpy(p, claims->sub.data, claims->sub.len);
        p += claims->sub.len;
    }

    if (claims->repo.data) {
        memcpy(p, claims->repo.data, claims->repo.len);
    }

    return ok ? XET_OK : XET_NOMEM;
}


static uint8_t *
xet_token_put_number(uint8_t *p, uint64_t seconds)
{
    size_t  i;

    for (i = XET_TOKEN_TIME; i > 0; i--) {
        p[i - 1] = (uint8_t) seconds;
        seconds >>= 8;
    }

    return p + XET_TOKEN_TIME;
}


/* Writes the tag of an issuer or an audience; returns 0 when out of memory. */

static int
xet_token_name(const xet_token_text_t *name, uint8_t *tag)
{
    int      ok;
    uint8_t  digest[32];

    ERR_set_mark();

    ok = EVP_Digest(name->data, name->len, digest, NULL, EVP_sha256(), NULL);

    ERR_pop_to_mark();

    if (ok) {
        memcpy(tag, digest, XET_TOKEN_NAME);
    }

    return ok;
}


/* Returns the length of a signature, or 0 if the key is not for such tokens. */

static size_t
xet_token_mac_len(const xet_jwk_t *key)
{
    switch (xet_jwk_alg(key)) {

    case XET_JWK_HS256:
        return 32;

    case XET_JWK_EDDSA:
        return 2 * XET_JWK_CURVE_LEN;

    default:
        return 0;
    }
}
