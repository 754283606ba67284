
/*
 * One key for the signatures of tokens: a secret for HS256, a public key for
 * EdDSA (Ed25519), ES256 (P-256) or RS256 (2048 to 8192 bits), or a private
 * Ed25519 key to sign with.  The kind of the key alone decides the algorithm.
 *
 * A key is never written to once it is made: any number of threads and, after
 * a fork, processes may use it at a time.  No call leaves anything in the
 * error queue of OpenSSL.
 */

#ifndef _XET_JWK_H_INCLUDED_
#define _XET_JWK_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>

#include <openssl/types.h>

#include "xet_json_parse.h"


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


#endif /* _XET_JWK_H_INCLUDED_ */
