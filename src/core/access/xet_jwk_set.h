
/*
 * The keys that tokens may be signed with, of all kinds together.
 *
 * A set is filled by one thread when the configuration is read and is never
 * written to afterwards: like its keys it may then be used by any number of
 * threads and, after a fork, processes.
 */

#ifndef _XET_JWK_SET_H_INCLUDED_
#define _XET_JWK_SET_H_INCLUDED_


#include "xet_jwk.h"


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
 * Adds the keys of a PEM file, one "PUBLIC KEY" block or more; all keys get the
 * id, or each its thumbprint when id_len is 0.  Text between the blocks is
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
 * Adds the keys of a JWK set, RFC 7517; their ids are their "kid" or else their
 * thumbprints.  Members of other kinds, curves, algorithms or uses than ours
 * are skipped; a malformed member is an error, and so is any private or secret
 * part.  Errors and *index are those of xet_jwk_set_add_pem(), with the members
 * of "keys" as blocks; XET_JWK_NONE when all of them are skipped.
 */
xet_status_t xet_jwk_set_add_jwks(xet_jwk_set_t *set, const uint8_t *text,
    size_t len, size_t *index);


size_t xet_jwk_set_count(const xet_jwk_set_t *set);

/* Key i, below the count, in the order in which the keys were added. */
const xet_jwk_t *xet_jwk_set_get(const xet_jwk_set_t *set, size_t i);


#endif /* _XET_JWK_SET_H_INCLUDED_ */
