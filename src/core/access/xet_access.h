
/*
 * Who may do what: keys, tokens, signed URLs, and how much at a time.
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
 * xet_key.c: key files of one line a key, which names its purpose first:
 *
 *     url:ID:HEX      signs data URLs (xet_sign.c); all servers that sign or
 *                     check them have it, an edge has no other key
 *     token:ID:HEX    the secret of tokens by HS256 (xet_jwk.c)
 *     dedup:HEX       the secret of answers about chunks
 *
 * Empty lines and lines that begin with "#" are skipped.  A line of another
 * purpose, or of none, is a fault.
 */

#define XET_KEY_LEN         32
#define XET_KEY_SECRET_MAX  1024


typedef enum {
    XET_KEY_URL = 0,
    XET_KEY_TOKEN,
    XET_KEY_DEDUP,
    XET_KEY_PURPOSES                   /* none of them */
} xet_key_purpose_e;


typedef struct {
    xet_key_purpose_e   purpose;
    const uint8_t      *pos;
    const uint8_t      *end;
    unsigned            n;             /* keys so far */
    unsigned            line;          /* of the key, or of the fault */

    const uint8_t      *id;            /* points into the file */
    size_t              id_len;

    /* of a token as the file has it, else XET_KEY_LEN derived bytes */
    size_t              secret_len;
    uint8_t             secret[XET_KEY_SECRET_MAX];

    /* the same for the same bytes, whatever they are for */
    uint8_t             mark[XET_KEY_LEN];

    char                fault[192];    /* what is wrong, without any secret */
} xet_key_file_t;


void xet_key_begin(xet_key_file_t *f, xet_key_purpose_e purpose,
    const uint8_t *text, size_t len);

/*
 * Takes the next key of the file: 1; 0 behind the last one, where n is 0 for a
 * file without keys; -1 for a fault.
 */
int xet_key_next(xet_key_file_t *f);

/* Wipes what was taken; the caller wipes the file. */
void xet_key_end(xet_key_file_t *f);


/*
 * xet_derive.c: writes XET_KEY_LEN bytes of HKDF-SHA256 over a secret, without
 * salt, with the label as info.  out may be the secret.  XET_NOMEM.
 */
xet_status_t xet_key_derive(uint8_t *out, const uint8_t *secret, size_t len,
    const char *label);


/*
 * xet_jwk.c: one key for the signatures of tokens: a secret for HS256, a
 * public key for EdDSA (Ed25519), ES256 (P-256) or RS256 (2048 to 8192 bits),
 * or a private Ed25519 key to sign with.  The kind of the key alone decides
 * the algorithm.
 *
 * A key is never written to once it is made: any number of threads and, after
 * a fork, processes may use it at a time.  No call leaves anything in the
 * error queue of OpenSSL.
 */

#define XET_JWK_SECRET_MIN     32      /* bytes, RFC 7518 section 3.2 */
#define XET_JWK_SECRET_MAX     1024
#define XET_JWK_ID_MAX         255
#define XET_JWK_RSA_MIN        2048    /* bits */
#define XET_JWK_RSA_MAX        8192
#define XET_JWK_SIGNATURE_MAX  (XET_JWK_RSA_MAX / 8)
#define XET_JWK_SIGN_MAX       64      /* of xet_jwk_sign() */
#define XET_JWK_THUMBPRINT     43      /* characters */


typedef enum {
    XET_JWK_HS256 = 0,
    XET_JWK_EDDSA,
    XET_JWK_ES256,
    XET_JWK_RS256,
    XET_JWK_ALG_MAX                    /* none of them */
} xet_jwk_alg_t;


typedef struct xet_jwk_s  xet_jwk_t;


/*
 * Makes a key of a secret, which is raw bytes, and an id, which is 1 to
 * XET_JWK_ID_MAX printable characters of ASCII.  XET_JWK_KID; XET_JWK_SECRET
 * when the secret is too short, too long, or a PEM file, that is, a public key
 * taken for a secret; XET_NOMEM, as with the three functions below.
 */
xet_status_t xet_jwk_create_secret(xet_jwk_t **key, const uint8_t *id,
    size_t id_len, const uint8_t *secret, size_t len);

/*
 * Makes a key, which signs and verifies, of the Ed25519 key in a PEM file with
 * one unencrypted "PRIVATE KEY" block and no other.  With an id_len of 0 the
 * thumbprint is the id.
 * XET_JWK_KID, XET_JWK_SYNTAX, XET_JWK_VALUE, XET_JWK_KIND.
 */
xet_status_t xet_jwk_create_private(xet_jwk_t **key, const uint8_t *id,
    size_t id_len, const uint8_t *pem, size_t len);

/*
 * Makes a key of a public key, of which a reference is taken; id is any
 * XET_JWK_ID_MAX bytes at most, the thumbprint when id_len is 0.  XET_JWK_KID;
 * XET_JWK_KIND for another kind, curve or size; XET_JWK_VALUE for a key that
 * makes signatures worthless.
 */
xet_status_t xet_jwk_create_public(xet_jwk_t **key, const uint8_t *id,
    size_t id_len, EVP_PKEY *pkey);

/*
 * Makes a key of the public key in a JSON Web Key, RFC 7517; the id is the
 * "kid" or else the thumbprint.  XET_DONE for a key of another kind or for
 * another purpose; XET_JWK_VALUE, XET_JWK_KIND, XET_JWK_KID, and
 * XET_JWK_PRIVATE for a key with a private or secret part.
 */
xet_status_t xet_jwk_create_json(xet_jwk_t **key, const json_t *member);

/* key may be NULL. */
void xet_jwk_destroy(xet_jwk_t *key);


xet_jwk_alg_t xet_jwk_alg(const xet_jwk_t *key);

/* The id, without a NUL at its end; it lives as long as key. */
const uint8_t *xet_jwk_id(const xet_jwk_t *key, size_t *len);

/* Whether an id may be given to a key by configuration. */
int xet_jwk_id_ok(const uint8_t *id, size_t len);

/* XET_JWK_ALG_MAX when no algorithm has that name; case matters. */
xet_jwk_alg_t xet_jwk_alg_find(const char *name, size_t len);
const char *xet_jwk_alg_name(xet_jwk_alg_t alg);

/*
 * Writes the thumbprint by RFC 7638 with SHA-256: XET_JWK_THUMBPRINT
 * characters, no NUL.  XET_INTERNAL for a secret, about which a thumbprint
 * would disclose something.
 */
xet_status_t xet_jwk_thumbprint(const xet_jwk_t *key, uint8_t *dst);


/*
 * Verifies a signature as RFC 7515 has it, for ES256 two numbers of 32 bytes.
 * XET_TOKEN_SIGNATURE when the key has not made the signature; a MAC is
 * compared in constant time.  XET_NOMEM.
 */
xet_status_t xet_jwk_verify(const xet_jwk_t *key, const uint8_t *data,
    size_t len, const uint8_t *signature, size_t signature_len);

/*
 * Signs with a secret or a private key: XET_JWK_SIGN_MAX bytes at most are
 * written.  XET_INTERNAL for a public key, XET_NOMEM.
 */
xet_status_t xet_jwk_sign(const xet_jwk_t *key, const uint8_t *data,
    size_t len, uint8_t *signature, size_t *signature_len);


/*
 * Writes XET_KEY_LEN bytes of a key for another purpose than tokens, which the
 * label names.  The same secret, or private key, gives the same bytes.
 * XET_INTERNAL for a public key, XET_NOMEM.
 */
xet_status_t xet_jwk_derive(const xet_jwk_t *key, const char *label,
    uint8_t *out);


/*
 * xet_jwk_set.c: the keys that tokens may be signed with, of all kinds
 * together.
 *
 * A set is filled by one thread when the configuration is read and is never
 * written to afterwards: like its keys it may then be used by any number of
 * threads and, after a fork, processes.
 */

#define XET_JWK_SET_MAX       64       /* keys */
#define XET_JWK_DOCUMENT_MAX  262144   /* bytes */


typedef struct xet_jwk_set_s  xet_jwk_set_t;


/* NULL when out of memory. */
xet_jwk_set_t *xet_jwk_set_create(void);

/* Destroys the set and its keys; set may be NULL. */
void xet_jwk_set_destroy(xet_jwk_set_t *set);


/*
 * Adds a key, which the set owns from XET_OK on; XET_JWK_COUNT when the set is
 * full.  Several keys may have one id: each is tried, so that a key can be
 * replaced under its id.
 */
xet_status_t xet_jwk_set_add(xet_jwk_set_t *set, xet_jwk_t *key);

/*
 * Adds the keys of a PEM file, one "PUBLIC KEY" block or more; all keys get
 * the id, or each its thumbprint when id_len is 0.  Text between the blocks is
 * ignored.
 *
 * Nothing is added on errors, and *index is the number of the block that is
 * at fault, from 0.  XET_JWK_KID, XET_JWK_SYNTAX, XET_JWK_VALUE, XET_JWK_KIND,
 * XET_JWK_COUNT, XET_NOMEM; XET_JWK_PRIVATE when a block holds a private key,
 * XET_JWK_NONE when there is no block.
 */
xet_status_t xet_jwk_set_add_pem(xet_jwk_set_t *set, const uint8_t *id,
    size_t id_len, const uint8_t *pem, size_t len, size_t *index);

/*
 * Adds the keys of a JWK set, RFC 7517; their ids are their "kid" or else
 * their thumbprints.  Members of other kinds, curves, algorithms or uses than
 * ours are skipped; a malformed member is an error, and so is any private or
 * secret part.  Errors and *index are those of xet_jwk_set_add_pem(), with the
 * members of "keys" as blocks; XET_JWK_NONE when all of them are skipped.
 */
xet_status_t xet_jwk_set_add_jwks(xet_jwk_set_t *set, const uint8_t *text,
    size_t len, size_t *index);


size_t xet_jwk_set_count(const xet_jwk_set_t *set);

/* Key i, below the count, in the order in which the keys were added. */
const xet_jwk_t *xet_jwk_set_get(const xet_jwk_set_t *set, size_t i);


/*
 * xet_token.c: access tokens: JSON Web Tokens (RFC 7519) as compact JWS (RFC
 * 7515).
 *
 *     header   "alg" HS256, EdDSA, ES256 or RS256, "kid" optional
 *     claims   "exp" required, in seconds; "nbf", "iat" optional
 *              "iss", "aud" where they are asked for
 *              "sub" optional, who the bearer is, for logs
 *              "scope" required, words of which "read", "write" and "delete"
 *              count
 *              "repo" optional, the one repository the token is good for
 *
 * A member that we know has the type we expect or the token is malformed;
 * others are ignored, but for "crit" and "b64" in the header, which are
 * refused.  No member may come twice.  Numbers are integers from 0 to 2^53.
 */

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


/*
 * What a token allows: each includes the ones before it.  Only "admin" changes
 * who may see a repo of a Hub.
 */

typedef enum {
    XET_SCOPE_READ = 0,
    XET_SCOPE_WRITE,
    XET_SCOPE_DELETE,
    XET_SCOPE_ADMIN
} xet_scope_e;


typedef struct {
    uint64_t            exp;           /* first second of refusal */
    uint64_t            nbf;           /* first second of use, or 0 */
    uint64_t            iat;           /* or 0 */
    xet_scope_e         scope;
    int                 contents;      /* a Hub gave it out, for its CAS */
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
 * The "kid" of a token, for logs: copied to room, of XET_JWK_ID_MAX bytes.
 * Its length; 0 where there is none, or none that a key can have.  The
 * signature is not looked at.
 */
size_t xet_token_key_id(const uint8_t *token, size_t len, uint8_t *room);

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

/* The word of a scope. */
const char *xet_scope_name(xet_scope_e scope);

/* Sets *scope; returns 0 where the text is no such word. */
int xet_scope_parse(xet_scope_e *scope, const uint8_t *text, size_t len);

/* Whether text is at most max bytes of UTF-8 without control characters. */
int xet_token_text_ok(const xet_token_text_t *text, size_t max);


/*
 * Writes a token that xet_token_verify() takes under the same params, with
 * their issuer and audience; *len characters, no NUL.  The key is a secret or
 * a private key.  The same claims give the same token.
 *
 * XET_INTERNAL when something is out of bounds, the key can't sign, or the
 * token is longer than cap; XET_NOMEM.
 */
xet_status_t xet_token_mint(const xet_jwk_t *key,
    const xet_token_params_t *params, const xet_token_claims_t *claims,
    uint8_t *out, size_t cap, size_t *len);


/*
 * xet_sign.c: signed xorb URLs:
 *
 *     <base>/xorbs/<namespace>/<aa>/<name>?r=<a-b,c-d>&e=<expiry>&k=<key id>
 *     &s=<signature>
 *
 * The signature is base64url, unpadded, of HMAC-SHA256 over
 *
 *     "xet-url-1\n" <key id> "\n" <namespace> "/" <name> "\n"
 *     <expiry> "\n" <range list> "\n"
 *
 * where the name is that of one stored copy of a xorb (xet_xorb.h).
 *
 * So every field that decides anything is covered, and nothing of the base:
 * the same signature holds behind any host or path prefix.  A prefix has only
 * characters that need no escape in a path: where a proxy passes on the
 * decoded path, "%0d%0a" would end its request line, and the rest of the path
 * would be a second request.
 *
 * Arguments come in this order and only once; any other spelling is refused.
 * An empty list ("r=" absent) is the cacheable form, where the range is free;
 * such a URL may end in "&n=<digits, dashes, commas>", not signed and without
 * meaning here: clients tell entries apart by their URLs, and caches key on
 * the path.
 */

#define XET_SIGN_KEY_MIN     32        /* bytes of secret */
#define XET_SIGN_KEY_MAX     64
#define XET_SIGN_ID_MAX      16        /* [A-Za-z0-9_-] */
#define XET_SIGN_RANGES_MAX  512       /* in one URL */
#define XET_SIGN_NS_MAX      64
#define XET_SIGN_MAC_LEN     32


/*
 * A key with its keyed MAC context; one thread at a time.  NULL when out of
 * memory or when id or secret are out of bounds.
 */
typedef struct xet_sign_key_s  xet_sign_key_t;

xet_sign_key_t *xet_sign_key_create(const uint8_t *id, size_t id_len,
    const uint8_t *secret, size_t secret_len);
void xet_sign_key_destroy(xet_sign_key_t *key);
const char *xet_sign_key_id(const xet_sign_key_t *key);

/* Whether a key can have that id. */
int xet_sign_id_ok(const uint8_t *id, size_t len);

/*
 * Whether a base, or its path, has only characters that need no escape (RFC
 * 3986: unreserved, sub-delims, ":@/", and "[]" of an address).
 */
int xet_sign_base_ok(const uint8_t *base, size_t len);


typedef struct {
    const uint8_t      *ns;            /* namespace, [A-Za-z0-9_-] */
    size_t              ns_len;
    xet_hash_t          xorb;
    uint32_t            tag;
    uint64_t            expires;       /* first second of refusal */
    const xet_range_t  *ranges;        /* ascending, as they are served */
    size_t              n;
} xet_sign_url_t;


/*
 * Writes "/xorbs/<ns>/<aa>/<name>?r=...&e=...&k=...&s=..." onto b; the caller
 * has written the base before.  XET_NOMEM; XET_INTERNAL when a part is out of
 * bounds or the ranges are empty, overlap or do not ascend.  With n == 0 the
 * URL is the cacheable one, the same for all ranges of the xorb.
 */
xet_status_t xet_sign_url(xet_sign_key_t *key, const xet_sign_url_t *url,
    xet_buf_t *b);


typedef struct {
    const uint8_t      *data;
    size_t              len;
} xet_sign_text_t;


/* The fields that are signed, as the URL spells them; list may be empty. */

typedef struct {
    xet_sign_text_t     ns;
    xet_sign_text_t     name;
    xet_sign_text_t     expires;
    xet_sign_text_t     list;
} xet_sign_fields_t;


/* The URL of a request; it points into the request and into itself. */

typedef struct {
    xet_sign_url_t      url;
    xet_range_t         ranges[XET_SIGN_RANGES_MAX];
    xet_sign_fields_t   fields;
    xet_sign_text_t     id;            /* of the key */
    uint8_t             mac[XET_SIGN_MAC_LEN];
} xet_sign_asked_t;


/*
 * Parses the path (from "/xorbs/" on, any prefix before it is skipped by the
 * caller's location; here only the last four path components count) and the
 * query string of a request, which must outlive asked.  XET_OK, or
 * XET_SIGN_SYNTAX.
 */
xet_status_t xet_sign_parse(xet_sign_asked_t *asked, const uint8_t *path,
    size_t path_len, const uint8_t *args, size_t args_len);

/*
 * Checks the signature of a parsed URL; now is in seconds.  Several keys may
 * have one id: each is tried.  XET_OK, XET_SIGN_KEY, XET_SIGN_MISMATCH,
 * XET_SIGN_EXPIRED, XET_INTERNAL.  The signature is compared in constant time,
 * before the expiry is looked at.
 */
xet_status_t xet_sign_verify(const xet_sign_asked_t *asked,
    xet_sign_key_t *const *keys, size_t nkeys, uint64_t now);

/*
 * Whether a Range header may be served under the signed list: the list
 * itself, or ranges that each lie inside one signed range, closed, at most
 * as many as signed, in ascending order and not overlapping.  XET_OK or
 * XET_SIGN_RANGE.  value NULL (no header) is refused.  Under a cacheable URL
 * (n == 0) no header and any well-formed list of XET_SIGN_RANGES_MAX ranges
 * at most will do.
 */
xet_status_t xet_sign_range_check(const xet_sign_url_t *url,
    const uint8_t *value, size_t len);


/*
 * xet_mask.c: overwrites with "*" all that opens something, in a text for
 * others to read: signatures of URLs, tokens, values of Authorization.
 */
void xet_mask(uint8_t *text, size_t len);

/* The same for the arguments of a URL, without what is before them. */
void xet_mask_args(uint8_t *args, size_t len);


/*
 * xet_sigv4.c: signatures of the AWS kind, version 4, as S3 has them: of a
 * request, in its header "Authorization", or of a URL, in its arguments.
 *
 * Signed are the method, the path, the arguments, and of the headers those
 * that are listed; of the body its SHA-256, or nothing.  A key is derived from
 * the secret for a day, a region and a service: four times HMAC-SHA256, which
 * the caller does once a day.
 *
 * No clock, no state; all strings end with a zero byte.
 */

#define XET_SIGV4_KEY_LEN    32
#define XET_SIGV4_DATE_LEN   16        /* 20261123T081206Z */
#define XET_SIGV4_DAY_LEN    8         /* its beginning */
#define XET_SIGV4_PAIRS_MAX  32        /* arguments, or headers */

#define XET_SIGV4_UNSIGNED   "UNSIGNED-PAYLOAD"


typedef struct {
    const char              *name;
    const char              *value;
} xet_sigv4_pair_t;


typedef struct {
    const char              *method;
    const char              *path;     /* decoded, from the first slash on */
    const xet_sigv4_pair_t  *args;     /* decoded, in any order */
    size_t                   nargs;
    const xet_sigv4_pair_t  *headers;  /* in lower case, "host" with them */
    size_t                   nheaders;
    const char              *payload;  /* hex, or XET_SIGV4_UNSIGNED */
    const char              *date;     /* of XET_SIGV4_DATE_LEN */
    const char              *region;
    const char              *service;
} xet_sigv4_t;


/*
 * All functions that write to dst end it with a zero byte, and need size for
 * it too.  XET_INTERNAL when there is not enough room, when there are more
 * pairs than XET_SIGV4_PAIRS_MAX, or when OpenSSL fails.
 */

/* XET_SIGV4_KEY_LEN bytes, for requests of the day that date begins with. */
xet_status_t xet_sigv4_key(uint8_t *key, const char *secret, const char *date,
    const char *region, const char *service);

/* A path as it goes into a URL: all but unreserved characters and slashes. */
xet_status_t xet_sigv4_path(char *dst, size_t size, const char *path);

/* Arguments as they go into a URL, sorted, without a question mark. */
xet_status_t xet_sigv4_args(char *dst, size_t size,
    const xet_sigv4_pair_t *args, size_t n);

/* What is signed: the "string to sign", for tests. */
xet_status_t xet_sigv4_text(char *dst, size_t size, const xet_sigv4_t *r);

/* The value of "Authorization"; id is that of the secret. */
xet_status_t xet_sigv4_header(char *dst, size_t size, const xet_sigv4_t *r,
    const uint8_t *key, const char *id);

/*
 * All arguments of a URL that is good for expires seconds from the date on:
 * r's own ones and those of the signature, which has the token among them
 * unless that is NULL or empty.
 */
xet_status_t xet_sigv4_query(char *dst, size_t size, const xet_sigv4_t *r,
    const uint8_t *key, const char *id, const char *token, uint32_t expires);


/*
 * xet_bucket.c: a leaky bucket of bytes: how much somebody may send in a
 * while.
 *
 * The bucket holds what was sent and has not leaked yet, and leaks evenly, a
 * whole bucket per period.  Whoever has sent nothing for a period may send a
 * bucketful at once.
 */

typedef struct {
    uint64_t  size;                /* bytes, 1 to 2^53 */
    uint64_t  period;              /* ms, 1 at least */
} xet_bucket_rate_t;


/* A bucket of zeros is empty. */

typedef struct {
    double    level;               /* bytes, not negative */
    uint64_t  time;                /* of the level, ms of a steady clock */
} xet_bucket_t;


/* Lets the bucket leak until now, in ms; a now in the past changes nothing. */
void xet_bucket_leak(xet_bucket_t *b, const xet_bucket_rate_t *rate,
    uint64_t now);

/*
 * Lets the bucket leak and puts n bytes in.  Returns 0, or the time in ms, 1
 * at least, after which the bytes would fit; nothing was put in then.  More
 * than a bucketful fits into an empty bucket, so that nothing is refused for
 * good.
 */
uint64_t xet_bucket_put(xet_bucket_t *b, const xet_bucket_rate_t *rate,
    uint64_t now, uint64_t n);

/* Corrects n bytes that were put in to the actual number of bytes. */
void xet_bucket_correct(xet_bucket_t *b, uint64_t n, uint64_t actual);


#endif /* _XET_ACCESS_H_INCLUDED_ */
