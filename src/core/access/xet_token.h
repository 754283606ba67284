
/*
 * Access tokens: JSON Web Tokens (RFC 7519) as compact JWS (RFC 7515).
 *
 *     header   "alg" HS256, EdDSA, ES256 or RS256, "kid" optional
 *     claims   "exp" required, in seconds; "nbf", "iat" optional
 *              "iss", "aud" where they are asked for
 *              "sub" optional, who the bearer is, for logs
 *              "scope" required, words of which "read" and "write" count
 *              "repo" optional, the one repository the token is good for
 *
 * A member that we know has the type we expect or the token is malformed;
 * others are ignored, but for "crit" and "b64" in the header, which are
 * refused.  No member may come twice.  Numbers are integers from 0 to 2^53.
 */

#ifndef _XET_TOKEN_H_INCLUDED_
#define _XET_TOKEN_H_INCLUDED_


#include "xet_hash.h"
#include "xet_jwk_set.h"


#define XET_TOKEN_MAX          16384   /* characters, by default */
#define XET_TOKEN_HEADER_MAX   2048    /* bytes, decoded */
#define XET_TOKEN_PAYLOAD_MAX  12288   /* bytes, decoded */
#define XET_TOKEN_DEPTH        16      /* of JSON in either */
#define XET_TOKEN_KEYS_MAX     16      /* that one token is tried with */
#define XET_TOKEN_SUB_MAX      256     /* bytes */
#define XET_TOKEN_REPO_MAX     256
#define XET_TOKEN_NAME_MAX     256     /* issuer or audience of our making */
#define XET_TOKEN_TIME_MAX     (UINT64_C(1) << 53)

/* Room for the strings of a verified token. */
#define XET_TOKEN_ROOM         (XET_TOKEN_SUB_MAX + XET_TOKEN_REPO_MAX)

/* A token of our making is never longer. */
#define XET_TOKEN_MINT_MAX     4096


typedef struct {
    const uint8_t      *data;          /* NULL: there is none */
    size_t              len;
} xet_token_text_t;


typedef struct {
    xet_token_text_t    iss;           /* required of a token unless NULL */
    xet_token_text_t    aud;           /* required of a token unless NULL */
    uint64_t            skew;          /* seconds that clocks may differ by */
    size_t              max;           /* characters, 0: XET_TOKEN_MAX */
} xet_token_params_t;


typedef struct {
    uint64_t            exp;           /* first second of refusal */
    uint64_t            nbf;           /* first second of use, or 0 */
    uint64_t            iat;           /* or 0 */
    unsigned            write:1;       /* or else read only */
    xet_token_text_t    sub;           /* UTF-8, no control characters */
    xet_token_text_t    repo;          /* as xet_token_repo_ok() says */
} xet_token_claims_t;


/*
 * Checks a token at the time of now, in seconds.  On XET_OK the claims hold
 * what the token says; their strings are in room, of XET_TOKEN_ROOM bytes.
 * Nothing is kept allocated.
 *
 * XET_TOKEN_MISSING when len is 0, XET_TOKEN_SIZE, XET_TOKEN_SYNTAX,
 * XET_TOKEN_CRIT, XET_TOKEN_ALG, XET_TOKEN_KEY, XET_TOKEN_SIGNATURE; and only
 * when the signature is right, in this order: XET_TOKEN_CLAIMS,
 * XET_TOKEN_EXPIRED, XET_TOKEN_EARLY, XET_TOKEN_ISSUER, XET_TOKEN_AUDIENCE,
 * XET_TOKEN_SCOPE.  XET_NOMEM.
 *
 * A "kid" selects the keys of that id; of these, or of all keys without a
 * "kid", those that fit the algorithm are tried, XET_TOKEN_KEYS_MAX at most.
 * Several threads may verify with one set at a time.  A call takes some 20 KiB
 * of stack.
 */
xet_status_t xet_token_verify(const xet_jwk_set_t *set,
    const xet_token_params_t *params, const uint8_t *token, size_t len,
    uint64_t now, uint8_t *room, xet_token_claims_t *claims);

/*
 * What a cache of verified tokens is keyed by: BLAKE3 under a key of
 * XET_HASH_LEN random bytes that the process keeps to itself, so that nobody
 * can choose tokens by the place they take.
 */
void xet_token_digest(const uint8_t *key, const uint8_t *token, size_t len,
    xet_hash_t *out);

/*
 * Whether a repository may have that name: 1 to XET_TOKEN_REPO_MAX of
 * [A-Za-z0-9._/-], parts between slashes not empty and not ".", no "..".
 */
int xet_token_repo_ok(const uint8_t *repo, size_t len);

/* Whether text is at most max bytes of UTF-8 without control characters. */
int xet_token_text_ok(const xet_token_text_t *text, size_t max);


/*
 * Writes a token that xet_token_verify() takes under the same params, with
 * their issuer and audience; *len characters, no NUL.  The key is a secret or a
 * private key.  The same claims give the same token.
 *
 * XET_INTERNAL when something is out of bounds, the key can't sign, or the
 * token is longer than cap; XET_NOMEM.
 */
xet_status_t xet_token_mint(const xet_jwk_t *key,
    const xet_token_params_t *params, const xet_token_claims_t *claims,
    uint8_t *out, size_t cap, size_t *len);


#endif /* _XET_TOKEN_H_INCLUDED_ */
