
/*
 * Access control: keys, tokens, signed URLs, rate limits.
 */

#ifndef _XET_ACCESS_H_INCLUDED_
#define _XET_ACCESS_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include <openssl/types.h>

#include "xet_json.h"
#include "xet_hash.h"
#include "xet_base.h"
#include "xet_xorb.h"


/*
 * xet_key.c: key files with one key per line; a line begins with the purpose
 * of its key:
 *
 *     url:ID:HEX      signs data URLs (xet_sign.c); shared by all servers that
 *                     sign or check them, and the only key of an edge server
 *     token:ID:HEX    the secret of HS256 tokens (xet_jwk.c)
 *     dedup:HEX       the secret from which the dedup keys are derived
 *
 * Empty lines and lines that begin with "#" are skipped.  A line with another
 * purpose, or without a purpose, is an error.
 */

#define XET_KEY_LEN         32
#define XET_KEY_SECRET_MAX  1024


typedef enum {
    XET_KEY_URL = 0,
    XET_KEY_TOKEN,
    XET_KEY_DEDUP,
    XET_KEY_PURPOSES                   /* not a purpose */
} xet_key_purpose_e;


typedef struct {
    xet_key_purpose_e   purpose;
    const uint8_t      *pos;
    const uint8_t      *end;
    unsigned            n;             /* number of keys read so far */
    unsigned            line;          /* number of the current line */

    const uint8_t      *id;            /* points into the file */
    size_t              id_len;

    /* token key: the decoded bytes; other keys: XET_KEY_LEN derived bytes */
    size_t              secret_len;
    uint8_t             secret[XET_KEY_SECRET_MAX];

    /* fingerprint of the decoded bytes, independent of the purpose */
    uint8_t             mark[XET_KEY_LEN];

    char                fault[192];    /* error message without secrets */
} xet_key_file_t;


void xet_key_begin(xet_key_file_t *f, xet_key_purpose_e purpose,
    const uint8_t *text, size_t len);

/*
 * Reads the next key of the file and returns 1.  Returns 0 after the last key;
 * f->n is then the number of keys.  Returns -1 on errors and sets f->fault.
 */
int xet_key_next(xet_key_file_t *f);

/* Wipes the secrets in *f; the caller wipes the text of the file. */
void xet_key_end(xet_key_file_t *f);


/*
 * xet_derive.c: writes XET_KEY_LEN bytes of HKDF-SHA256 over a secret, without
 * salt, with the label as info.  out may be the same buffer as secret.  Returns
 * XET_OK or XET_NOMEM.
 */
xet_status_t xet_key_derive(uint8_t *out, const uint8_t *secret, size_t len,
    const char *label);


/*
 * xet_jwk.c: a key that signs or verifies tokens: a secret for HS256, a public
 * key for EdDSA (Ed25519), ES256 (P-256) or RS256 (2048 to 8192 bits), or a
 * private Ed25519 key for signing.  Only the type of the key determines the
 * algorithm.
 *
 * A key never changes after its creation: any number of threads and, after a
 * fork, processes may use it at the same time.  No call leaves errors in the
 * error queue of OpenSSL.
 */

#define XET_JWK_SECRET_MIN     32      /* bytes, RFC 7518 section 3.2 */
#define XET_JWK_SECRET_MAX     1024
#define XET_JWK_ID_MAX         255
#define XET_JWK_RSA_MIN        2048    /* bits */
#define XET_JWK_RSA_MAX        8192
#define XET_JWK_SIGNATURE_MAX  (XET_JWK_RSA_MAX / 8)
#define XET_JWK_SIGN_MAX       64      /* bytes, xet_jwk_sign() */
#define XET_JWK_CURVE_LEN      32      /* bytes of a coordinate, and of each
                                          integer of an ES256 signature */
#define XET_JWK_THUMBPRINT     43      /* characters */
#define XET_JWK_TAG            4       /* bytes */


typedef enum {
    XET_JWK_HS256 = 0,
    XET_JWK_EDDSA,
    XET_JWK_ES256,
    XET_JWK_RS256,
    XET_JWK_ALG_MAX                    /* not an algorithm */
} xet_jwk_alg_t;


typedef struct xet_jwk_s  xet_jwk_t;


/*
 * Creates a key from a secret of raw bytes and an id of 1 to XET_JWK_ID_MAX
 * printable ASCII characters.  Errors: XET_JWK_KID; XET_JWK_SECRET when the
 * secret is too short, too long, or a PEM file, because a public key must not
 * be used as a secret; XET_NOMEM, which the next three functions also return.
 */
xet_status_t xet_jwk_create_secret(xet_jwk_t **key, const uint8_t *id,
    size_t id_len, const uint8_t *secret, size_t len);

/*
 * Creates a key for signing and verifying from the Ed25519 key in a PEM file,
 * which must have exactly one block, an unencrypted "PRIVATE KEY".  If id_len
 * is 0, the id is the thumbprint.  Errors: XET_JWK_KID, XET_JWK_SYNTAX,
 * XET_JWK_VALUE, XET_JWK_KIND.
 */
xet_status_t xet_jwk_create_private(xet_jwk_t **key, const uint8_t *id,
    size_t id_len, const uint8_t *pem, size_t len);

/*
 * Creates a key from a public key and takes a reference to pkey.  id is up to
 * XET_JWK_ID_MAX arbitrary bytes; if id_len is 0, the id is the thumbprint.
 * Errors: XET_JWK_KID; XET_JWK_KIND for an unsupported type, curve or size;
 * XET_JWK_VALUE for a key whose signatures can be forged.
 */
xet_status_t xet_jwk_create_public(xet_jwk_t **key, const uint8_t *id,
    size_t id_len, EVP_PKEY *pkey);

/*
 * xet_jwk_json.c: creates a key from the public key in a JSON Web Key (RFC
 * 7517); the id is the "kid", or the thumbprint if there is no "kid".  Returns
 * XET_DONE for a key of an unsupported type or for another purpose.  Errors:
 * XET_JWK_VALUE, XET_JWK_KIND, XET_JWK_KID; XET_JWK_PRIVATE for a private or
 * secret part.
 */
xet_status_t xet_jwk_create_json(xet_jwk_t **key, const json_t *member);

/* Destroys a key; key may be NULL. */
void xet_jwk_destroy(xet_jwk_t *key);


xet_jwk_alg_t xet_jwk_alg(const xet_jwk_t *key);

/* Returns the id, which contains no NUL and is valid as long as key. */
const uint8_t *xet_jwk_id(const xet_jwk_t *key, size_t *len);

/*
 * Returns the first XET_JWK_TAG bytes of SHA-256 of the id, which stand for the
 * id in compact tokens.
 */
const uint8_t *xet_jwk_tag(const xet_jwk_t *key);

/* Returns whether a key in the configuration may have this id. */
int xet_jwk_id_ok(const uint8_t *id, size_t len);

/*
 * Convert between an algorithm and its name, which is case-sensitive.
 * xet_jwk_alg_find() returns XET_JWK_ALG_MAX for an unknown name.
 */
xet_jwk_alg_t xet_jwk_alg_find(const char *name, size_t len);
const char *xet_jwk_alg_name(xet_jwk_alg_t alg);

/*
 * Writes the thumbprint (RFC 7638) with SHA-256: XET_JWK_THUMBPRINT
 * characters without a NUL.  Returns XET_INTERNAL for a secret, because the
 * thumbprint would disclose information about it.
 */
xet_status_t xet_jwk_thumbprint(const xet_jwk_t *key, uint8_t *dst);


/*
 * Verifies a signature in the format of RFC 7515; for ES256, two numbers of 32
 * bytes each.  A MAC is compared in constant time.  Errors:
 * XET_TOKEN_SIGNATURE when the signature was not made with this key;
 * XET_NOMEM.
 */
xet_status_t xet_jwk_verify(const xet_jwk_t *key, const uint8_t *data,
    size_t len, const uint8_t *signature, size_t signature_len);

/*
 * Signs with a secret or a private key; writes at most XET_JWK_SIGN_MAX bytes.
 * Errors: XET_INTERNAL for a public key, XET_NOMEM.
 */
xet_status_t xet_jwk_sign(const xet_jwk_t *key, const uint8_t *data,
    size_t len, uint8_t *signature, size_t *signature_len);


/*
 * Derives a key of XET_KEY_LEN bytes for a purpose other than tokens; label
 * names the purpose.  The same secret or private key, with the same label,
 * always gives the same bytes.  Errors: XET_INTERNAL for a public key,
 * XET_NOMEM.
 */
xet_status_t xet_jwk_derive(const xet_jwk_t *key, const char *label,
    uint8_t *out);


/*
 * xet_jwk_set.c: the set of keys, of all types, that tokens may be signed
 * with.
 *
 * One thread fills a set when the configuration is read.  Afterwards the set
 * never changes: any number of threads and, after a fork, processes may use
 * the set and its keys.
 */

#define XET_JWK_SET_MAX       64       /* keys */
#define XET_JWK_DOCUMENT_MAX  262144   /* bytes */


typedef struct xet_jwk_set_s  xet_jwk_set_t;


/* Creates an empty set; returns NULL when out of memory. */
xet_jwk_set_t *xet_jwk_set_create(void);

/* Destroys the set and its keys; set may be NULL. */
void xet_jwk_set_destroy(xet_jwk_set_t *set);


/*
 * Adds a key.  On XET_OK the set owns the key.  Returns XET_JWK_COUNT when the
 * set is full.  Several keys may have the same id: each of them is tried, so
 * that a key can be rotated without changing its id.
 */
xet_status_t xet_jwk_set_add(xet_jwk_set_t *set, xet_jwk_t *key);

/*
 * Adds the keys of a PEM file with one or more "PUBLIC KEY" blocks.  All keys
 * get the id; if id_len is 0, each key gets its thumbprint as id.  Text
 * between the blocks is ignored.
 *
 * On errors no key is added, and *index is the number of the invalid block,
 * from 0.  Errors: XET_JWK_KID, XET_JWK_SYNTAX, XET_JWK_VALUE, XET_JWK_KIND,
 * XET_JWK_COUNT, XET_NOMEM; XET_JWK_PRIVATE when a block is a private key,
 * XET_JWK_NONE when there is no block.
 */
xet_status_t xet_jwk_set_add_pem(xet_jwk_set_t *set, const uint8_t *id,
    size_t id_len, const uint8_t *pem, size_t len, size_t *index);

/*
 * Adds the keys of a JWK set (RFC 7517); the id of a key is its "kid", or its
 * thumbprint if there is no "kid".  Keys with an unsupported type, curve,
 * algorithm or use are skipped.  A malformed key is an error, and so is any
 * private or secret part.  Errors and *index are as for xet_jwk_set_add_pem(),
 * with the elements of "keys" as blocks; XET_JWK_NONE when all keys are
 * skipped.
 */
xet_status_t xet_jwk_set_add_jwks(xet_jwk_set_t *set, const uint8_t *text,
    size_t len, size_t *index);


size_t xet_jwk_set_count(const xet_jwk_set_t *set);

/*
 * Returns key i, which must be below the count.  Keys are numbered in the order
 * in which they were added.
 */
const xet_jwk_t *xet_jwk_set_get(const xet_jwk_set_t *set, size_t i);


/*
 * xet_token.c: access tokens.  We mint compact tokens, of letters and digits
 * (xet_token_compact.c), with the same claims as the tokens of other issuers:
 * JSON Web Tokens (RFC 7519) as compact JWS (RFC 7515).
 *
 *     header   "alg" HS256, EdDSA, ES256 or RS256; "kid" optional
 *     claims   "exp" required, in seconds; "nbf", "iat" optional
 *              "iss", "aud" required if the parameters set them
 *              "sub" optional, the name of the user
 *              "scope" required, a list of words, of which only "read",
 *              "write", "delete" and "admin" have a meaning
 *              "repo" optional, the only repository the token is valid for
 *              "contents" optional, true in a token that a Hub has issued
 *
 * A member of this list with a wrong type makes the token malformed.  Other
 * members are ignored, except "crit" and "b64" in the header, which are
 * refused.  No member may occur twice.  Numbers are integers from 0 to 2^53.
 */

#define XET_TOKEN_MAX          16384   /* characters, by default */
#define XET_TOKEN_HEADER_MAX   2048    /* bytes, decoded */
#define XET_TOKEN_PAYLOAD_MAX  12288   /* bytes, decoded */
#define XET_TOKEN_DEPTH        16      /* maximum nesting depth of the JSON */
#define XET_TOKEN_KEYS_MAX     16      /* keys tried for one token */
#define XET_TOKEN_SUB_MAX      256     /* bytes */
#define XET_TOKEN_REPO_MAX     256
#define XET_TOKEN_NAME_MAX     256     /* bytes of a minted iss or aud */
#define XET_TOKEN_TIME_MAX     (UINT64_C(1) << 53)

/* Room for the strings of a verified token. */
#define XET_TOKEN_ROOM         (XET_TOKEN_SUB_MAX + XET_TOKEN_REPO_MAX)

/* The maximum length of a token that xet_token_mint() writes. */
#define XET_TOKEN_MINT_MAX     4096

/* The same for a compact token; with "hf_" some clients send up to 256. */
#define XET_TOKEN_COMPACT_MAX  253


typedef struct {
    const uint8_t      *data;          /* NULL: absent */
    size_t              len;
} xet_token_text_t;


typedef struct {
    xet_token_text_t    iss;           /* required value; NULL: any */
    xet_token_text_t    aud;           /* required value; NULL: any */
    uint64_t            skew;          /* tolerated clock skew, seconds */
    size_t              max;           /* characters, 0: XET_TOKEN_MAX */
} xet_token_params_t;


/*
 * The scope of a token; each scope includes the ones before it.  Only "admin"
 * allows changing the visibility of a repo of a Hub.
 */

typedef enum {
    XET_SCOPE_READ = 0,
    XET_SCOPE_WRITE,
    XET_SCOPE_DELETE,
    XET_SCOPE_ADMIN
} xet_scope_e;


typedef struct {
    uint64_t            exp;           /* invalid from this second on */
    uint64_t            nbf;           /* valid from this second on, or 0 */
    uint64_t            iat;           /* time of issue, or 0 */
    xet_scope_e         scope;
    int                 contents;      /* issued by a Hub, for file data */
    xet_token_text_t    sub;           /* UTF-8, no control characters */
    xet_token_text_t    repo;          /* passes xet_token_repo_ok() */
} xet_token_claims_t;


/*
 * Verifies a token; now is the current time in seconds.  On XET_OK the claims
 * are set; their strings are in room, a buffer of XET_TOKEN_ROOM bytes.  All
 * memory that the call allocates is freed before it returns.
 *
 * Errors: XET_NOMEM; XET_TOKEN_MISSING when len is 0; XET_TOKEN_SIZE,
 * XET_TOKEN_SYNTAX, XET_TOKEN_CRIT, XET_TOKEN_ALG, XET_TOKEN_KEY,
 * XET_TOKEN_SIGNATURE.  The remaining errors are checked after the signature,
 * in this order: XET_TOKEN_CLAIMS, XET_TOKEN_EXPIRED, XET_TOKEN_EARLY,
 * XET_TOKEN_ISSUER, XET_TOKEN_AUDIENCE, XET_TOKEN_SCOPE.
 *
 * A "kid" selects the keys with that id; without a "kid" all keys are
 * selected.  Of these, the keys of the token's algorithm are tried, at most
 * XET_TOKEN_KEYS_MAX.  Several threads may verify with the same set at the
 * same time.  A call uses about 20 KiB of stack.
 */
xet_status_t xet_token_verify(const xet_jwk_set_t *set,
    const xet_token_params_t *params, const uint8_t *token, size_t len,
    uint64_t now, uint8_t *room, xet_token_claims_t *claims);

/*
 * Copies the id of a token's key, for logs, to room, a buffer of XET_JWK_ID_MAX
 * bytes, and returns its length.  Returns 0 when a "kid" is absent or is not a
 * valid key id, or when no key of the set has the tag of a compact token.  The
 * signature is not checked.
 */
size_t xet_token_key_id(const xet_jwk_set_t *set, const uint8_t *token,
    size_t len, uint8_t *room);

/*
 * Computes the key of a token in the cache of verified tokens: BLAKE3 keyed
 * with XET_HASH_LEN random bytes.  The random bytes are secret, so that nobody
 * can choose tokens that collide in the cache.
 */
void xet_token_digest(const uint8_t *key, const uint8_t *token, size_t len,
    xet_hash_t *out);

/*
 * Writes a token of *len characters, without a NUL, that xet_token_verify()
 * accepts with the same params.  The issuer and the audience are taken from
 * params.  The key is a secret or a private key.  The same claims always give
 * the same token.  The token is compact, or a JWT when the claims are too long
 * for that.
 *
 * Errors: XET_INTERNAL when a value is out of range, the key can't sign, or
 * the token is longer than cap; XET_NOMEM.
 */
xet_status_t xet_token_mint(const xet_jwk_t *key,
    const xet_token_params_t *params, const xet_token_claims_t *claims,
    uint8_t *out, size_t cap, size_t *len);

/* Does the same, and always writes a JWT. */
xet_status_t xet_token_mint_jwt(const xet_jwk_t *key,
    const xet_token_params_t *params, const xet_token_claims_t *claims,
    uint8_t *out, size_t cap, size_t *len);


/*
 * xet_token_claims.c: checks of claims.
 *
 * Returns whether a repository may have that name: 1 to XET_TOKEN_REPO_MAX
 * characters of [A-Za-z0-9._/-].  Parts between slashes must not be empty or
 * ".", and the name must not contain "..".
 */
int xet_token_repo_ok(const uint8_t *repo, size_t len);

/* Returns the name of a scope, as used in the "scope" claim. */
const char *xet_scope_name(xet_scope_e scope);

/* Parses a scope: sets *scope and returns 1; returns 0 for unknown text. */
int xet_scope_parse(xet_scope_e *scope, const uint8_t *text, size_t len);

/*
 * Returns whether text is at most max bytes of UTF-8 without control
 * characters.
 */
int xet_token_text_ok(const xet_token_text_t *text, size_t max);

/*
 * Checks the times of the claims; returns XET_OK, XET_TOKEN_EXPIRED or
 * XET_TOKEN_EARLY.
 */
xet_status_t xet_token_current(const xet_token_params_t *params,
    const xet_token_claims_t *claims, uint64_t now);


/*
 * xet_token_compact.c: for xet_token.c only.  Tokens given to these functions
 * pass xet_token_is_compact().  xet_token_compact_mint() requires valid claims,
 * and returns XET_DONE when they do not fit or the key is of another kind.
 */

int xet_token_is_compact(const uint8_t *token, size_t len);
xet_status_t xet_token_compact_verify(const xet_jwk_set_t *set,
    const xet_token_params_t *params, const uint8_t *token, size_t len,
    uint64_t now, uint8_t *room, xet_token_claims_t *claims);
xet_status_t xet_token_compact_mint(const xet_jwk_t *key,
    const xet_token_params_t *params, const xet_token_claims_t *claims,
    uint8_t *out, size_t cap, size_t *len);
size_t xet_token_compact_key_id(const xet_jwk_set_t *set,
    const uint8_t *token, size_t len, uint8_t *room);


/*
 * xet_sign.c: signed xorb URLs:
 *
 *     <base>/xorbs/<namespace>/<aa>/<name>?r=<a-b,c-d>&e=<expiry>&k=<key id>
 *     &s=<signature>
 *
 * where the name is the name of one stored copy of a xorb (xet_xorb.h).
 *
 * The signature is base64url, unpadded, of HMAC-SHA256 over the URL from the
 * namespace to the key id.  So it covers every field that the server
 * uses, but not the base: it is valid with any host and any path prefix.  A
 * prefix may contain only characters that need no escape in a path.  Otherwise,
 * if a proxy forwards the decoded path, "%0d%0a" would end the request line,
 * and the rest of the path would be a second request.
 *
 * Arguments occur once, in this order; any other form is refused.  A URL
 * without "r=" is the cacheable form, which allows any range.  Such a URL may
 * end in "&n=<digits, dashes, commas>".  This argument is neither signed nor
 * used by the server: clients distinguish entries by their URLs, and caches
 * use the path as the key.
 */

#define XET_SIGN_KEY_MIN     32        /* bytes of secret in a key file */
#define XET_SIGN_KEY_MAX     64
#define XET_SIGN_ID_MAX      16        /* [A-Za-z0-9_-] */
#define XET_SIGN_RANGES_MAX  512       /* ranges in one URL */
#define XET_SIGN_NS_MAX      64
#define XET_SIGN_MAC_LEN     32


/*
 * A key, which any thread may use.  xet_sign_key_create() returns NULL when out
 * of memory, or when the id is invalid or the secret has not XET_KEY_LEN bytes.
 */
typedef struct xet_sign_key_s  xet_sign_key_t;

xet_sign_key_t *xet_sign_key_create(const uint8_t *id, size_t id_len,
    const uint8_t *secret, size_t secret_len);
void xet_sign_key_destroy(xet_sign_key_t *key);
const char *xet_sign_key_id(const xet_sign_key_t *key);

/* Returns whether a key may have that id. */
int xet_sign_id_ok(const uint8_t *id, size_t len);

/*
 * Returns whether a base, or its path, has only characters that need no escape
 * (RFC 3986: unreserved, sub-delims, ":@/", and the "[]" of an IPv6 address).
 */
int xet_sign_base_ok(const uint8_t *base, size_t len);


typedef struct {
    const uint8_t      *ns;            /* namespace, [A-Za-z0-9_-] */
    size_t              ns_len;
    xet_hash_t          xorb;
    uint32_t            copy_id;
    uint64_t            expires;       /* invalid from this second on */
    const xet_range_t  *ranges;        /* ascending */
    size_t              n;
} xet_sign_url_t;


/*
 * Appends "/xorbs/<ns>/<aa>/<name>?r=...&e=...&k=...&s=..." to b; the caller
 * writes the base before that.  With n == 0 this is the cacheable URL, the
 * same for all ranges of the xorb.  Errors: XET_NOMEM; XET_INTERNAL when a
 * field is out of range, or the ranges are empty, overlap or do not ascend.
 */
xet_status_t xet_sign_url(const xet_sign_key_t *key, const xet_sign_url_t *url,
    xet_buf_t *b);


typedef struct {
    const uint8_t      *data;
    size_t              len;
} xet_sign_text_t;


/*
 * The parsed URL of a request.  The struct has pointers into the request and
 * into itself, so it must not be copied.
 */

typedef struct {
    xet_sign_url_t      url;
    xet_range_t         ranges[XET_SIGN_RANGES_MAX];
    xet_sign_text_t     path;          /* signed part: from the namespace */
    xet_sign_text_t     args;          /* signed part: up to the key id */
    xet_sign_text_t     name;          /* of the copy; the end of path */
    xet_sign_text_t     id;            /* key id */
    uint8_t             mac[XET_SIGN_MAC_LEN];
} xet_sign_asked_t;


/*
 * Parses the path and the query string of a request, which must outlive asked.
 * Only the last four components of the path, from "/xorbs/" on, are parsed; a
 * prefix before them must pass xet_sign_base_ok().  Returns XET_OK or
 * XET_SIGN_SYNTAX.
 */
xet_status_t xet_sign_parse(xet_sign_asked_t *asked, const uint8_t *path,
    size_t path_len, const uint8_t *args, size_t args_len);

/*
 * Verifies the signature of a parsed URL; now is in seconds.  Several keys may
 * have the same id: each of them is tried.  The signature is compared in
 * constant time, before the expiry is checked.  Errors: XET_SIGN_KEY,
 * XET_SIGN_MISMATCH, XET_SIGN_EXPIRED.
 */
xet_status_t xet_sign_verify(const xet_sign_asked_t *asked,
    xet_sign_key_t *const *keys, size_t nkeys, uint64_t now);

/*
 * Checks whether the signed list allows a Range header; returns XET_OK or
 * XET_SIGN_RANGE.  The ranges must be closed, ascending and disjoint, at most
 * as many as the signed ranges, and each must lie inside one signed range.  A
 * value of NULL (no header) is refused.  With a cacheable URL (n == 0), the
 * header may be absent, or have any well-formed list of at most
 * XET_SIGN_RANGES_MAX ranges.
 */
xet_status_t xet_sign_range_check(const xet_sign_url_t *url,
    const uint8_t *value, size_t len);


/*
 * xet_mask.c: overwrites secrets with "*" in a text that others may read, such
 * as a log line: signatures of URLs, tokens, values of Authorization.
 */
void xet_mask(uint8_t *text, size_t len);

/* Does the same as xet_mask() for the arguments of a URL, after the "?". */
void xet_mask_args(uint8_t *args, size_t len);


/*
 * xet_sigv4.c: AWS Signature Version 4 for S3, either in the header
 * "Authorization" of a request or in the arguments of a URL.
 *
 * The signature covers the method, the path, the arguments, the listed
 * headers and, unless unsigned, the SHA-256 of the body.  The signing key is
 * derived from the secret for a day, a region and a service by four rounds of
 * HMAC-SHA256; the caller derives it once a day.
 *
 * The functions have no state and do not read the clock.  All strings are
 * NUL-terminated.
 */

#define XET_SIGV4_KEY_LEN    32
#define XET_SIGV4_DATE_LEN   16        /* characters, 20261123T081206Z */
#define XET_SIGV4_DAY_LEN    8         /* characters of the day, 20261123 */
#define XET_SIGV4_PAIRS_MAX  32        /* arguments, or headers */

#define XET_SIGV4_UNSIGNED   "UNSIGNED-PAYLOAD"


typedef struct {
    const char              *name;
    const char              *value;
} xet_sigv4_pair_t;


typedef struct {
    const char              *method;
    const char              *path;     /* decoded, with a leading slash */
    const xet_sigv4_pair_t  *args;     /* decoded, in any order */
    size_t                   nargs;
    const xet_sigv4_pair_t  *headers;  /* lower-case names, with "host" */
    size_t                   nheaders;
    const char              *payload;  /* hex SHA-256, or XET_SIGV4_UNSIGNED */
    const char              *date;     /* XET_SIGV4_DATE_LEN characters */
    const char              *region;
    const char              *service;
} xet_sigv4_t;


/*
 * All functions that write to dst append a NUL; size includes the NUL.  They
 * return XET_INTERNAL when size is too small, when there are more pairs than
 * XET_SIGV4_PAIRS_MAX, or when OpenSSL fails.
 */

/* Derives a key of XET_SIGV4_KEY_LEN bytes for requests on the day of date. */
xet_status_t xet_sigv4_key(uint8_t *key, const char *secret, const char *date,
    const char *region, const char *service);

/* Escapes a path for a URL, except unreserved characters and slashes. */
xet_status_t xet_sigv4_path(char *dst, size_t size, const char *path);

/* Escapes and sorts arguments for a URL, without the question mark. */
xet_status_t xet_sigv4_args(char *dst, size_t size,
    const xet_sigv4_pair_t *args, size_t n);

/* Writes the "string to sign"; public for tests. */
xet_status_t xet_sigv4_text(char *dst, size_t size, const xet_sigv4_t *r);

/* Writes the value of "Authorization"; id is the access key id. */
xet_status_t xet_sigv4_header(char *dst, size_t size, const xet_sigv4_t *r,
    const uint8_t *key, const char *id);

/*
 * Writes all arguments of a presigned URL, which is valid for "expires"
 * seconds from r->date: the arguments of r, the arguments of the signature,
 * and the session token, unless token is NULL or empty.
 */
xet_status_t xet_sigv4_query(char *dst, size_t size, const xet_sigv4_t *r,
    const uint8_t *key, const char *id, const char *token, uint32_t expires);


/*
 * xet_bucket.c: a leaky bucket that limits the bytes per period.
 *
 * The bucket holds the bytes that were sent and have not leaked yet.  It leaks
 * at a constant rate, a full bucket per period.  A client that has sent nothing
 * for a period may send the bytes of a full bucket without waiting.
 */

typedef struct {
    uint64_t  size;                /* bytes, 1 to 2^53 */
    uint64_t  period;              /* ms, at least 1 */
} xet_bucket_rate_t;


/* A bucket.  A structure whose members are all 0 is an empty bucket. */

typedef struct {
    double    level;               /* bytes, not negative */
    uint64_t  time;                /* last update of level, monotonic ms */
} xet_bucket_t;


/* Lets the bucket leak up to the time now, in ms; ignores a past time. */
void xet_bucket_leak(xet_bucket_t *b, const xet_bucket_rate_t *rate,
    uint64_t now);

/*
 * Lets the bucket leak, then adds n bytes and returns 0.  If the bytes do not
 * fit, adds nothing and returns the time in ms, at least 1, after which they
 * would fit.  An empty bucket accepts any n, even more than its size:
 * otherwise such an n would never fit.
 */
uint64_t xet_bucket_put(xet_bucket_t *b, const xet_bucket_rate_t *rate,
    uint64_t now, uint64_t n);

/* Replaces n bytes that were added earlier with the actual number of bytes. */
void xet_bucket_correct(xet_bucket_t *b, uint64_t n, uint64_t actual);


#endif /* _XET_ACCESS_H_INCLUDED_ */
