
/*
 * Sets of token keys, read from PEM files and JWK sets.
 *
 * Purpose:    parses documents with public keys of issuers and keeps the keys.
 * States:     being filled, then constant; the set does not record its state.
 * Ownership:  the set owns its keys.  A document is only read; on an error the
 *             keys that were already added from it are destroyed.
 * Threads:    one while the set is filled, any number afterwards.
 *
 * Parsing is strict.  Keys for other purposes are skipped, as RFC 7517
 * requires; any other unsupported key is an error with the index of the key.
 * A private key is refused, although it could verify: a server that only
 * verifies must not have a private key.
 *
 * The number of keys is small, so they are searched without an index.
 */


#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "xet_access.h"


#define XET_JWK_SET_DEPTH  8           /* JSON levels; most documents have 4 */


struct xet_jwk_set_s {
    size_t      n;
    xet_jwk_t  *keys[XET_JWK_SET_MAX];
};


static xet_status_t xet_jwk_set_take(xet_jwk_set_t *set, xet_jwk_t *key);
static void xet_jwk_set_cut(xet_jwk_set_t *set, size_t n);
static xet_status_t xet_jwk_set_block(xet_jwk_set_t *set, const uint8_t *id,
    size_t id_len, BIO *bio);
static xet_status_t xet_jwk_set_spki(xet_jwk_set_t *set, const uint8_t *id,
    size_t id_len, const unsigned char *data, long size);


xet_jwk_set_t *
xet_jwk_set_create(void)
{
    return calloc(1, sizeof(xet_jwk_set_t));
}


void
xet_jwk_set_destroy(xet_jwk_set_t *set)
{
    if (set == NULL) {
        return;
    }

    xet_jwk_set_cut(set, 0);

    free(set);
}


xet_status_t
xet_jwk_set_add(xet_jwk_set_t *set, xet_jwk_t *key)
{
    if (set->n == XET_JWK_SET_MAX) {
        return XET_JWK_COUNT;
    }

    set->keys[set->n++] = key;

    return XET_OK;
}


xet_status_t
xet_jwk_set_add_pem(xet_jwk_set_t *set, const uint8_t *id, size_t id_len,
    const uint8_t *pem, size_t len, size_t *index)
{
    BIO           *bio;
    size_t         n, i;
    xet_status_t   status;

    *index = 0;

    if (id_len && !xet_jwk_id_ok(id, id_len)) {
        return XET_JWK_KID;
    }

    if (len > XET_JWK_DOCUMENT_MAX) {
        return XET_JWK_SYNTAX;
    }

    n = set->n;

    ERR_set_mark();

    bio = BIO_new_mem_buf(pem, (int) len);
    status = (bio != NULL) ? XET_OK : XET_NOMEM;

    for (i = 0; status == XET_OK; i++) {
        *index = i;
        status = xet_jwk_set_block(set, id, id_len, bio);
    }

    BIO_free(bio);

    ERR_pop_to_mark();

    if (status == XET_DONE) {
        return (set->n > n) ? XET_OK : XET_JWK_NONE;
    }

    xet_jwk_set_cut(set, n);

    return status;
}


xet_status_t
xet_jwk_set_add_jwks(xet_jwk_set_t *set, const uint8_t *text, size_t len,
    size_t *index)
{
    size_t         n, i;
    json_t        *root, *keys;
    xet_jwk_t     *key;
    xet_status_t   status;

    *index = 0;

    if (len > XET_JWK_DOCUMENT_MAX) {
        return XET_JWK_SYNTAX;
    }

    status = xet_json_parse(&root, text, len, XET_JWK_SET_DEPTH);

    if (status != XET_OK) {
        return (status == XET_NOMEM) ? XET_NOMEM : XET_JWK_SYNTAX;
    }

    keys = json_object_get(root, "keys");

    if (!json_is_array(keys)) {
        json_decref(root);
        return XET_JWK_SYNTAX;
    }

    n = set->n;

    for (i = 0; status == XET_OK && i < json_array_size(keys); i++) {
        *index = i;
        status = xet_jwk_create_json(&key, json_array_get(keys, i));

        if (status == XET_OK) {
            status = xet_jwk_set_take(set, key);

        } else if (status == XET_DONE) {
            status = XET_OK;           /* skipped */
        }
    }

    json_decref(root);

    if (status == XET_OK) {
        return (set->n > n) ? XET_OK : XET_JWK_NONE;
    }

    xet_jwk_set_cut(set, n);

    return status;
}


size_t
xet_jwk_set_count(const xet_jwk_set_t *set)
{
    return set->n;
}


const xet_jwk_t *
xet_jwk_set_get(const xet_jwk_set_t *set, size_t i)
{
    return set->keys[i];
}


/* Adds a key, or destroys it if it can't be added. */

static xet_status_t
xet_jwk_set_take(xet_jwk_set_t *set, xet_jwk_t *key)
{
    xet_status_t  status;

    status = xet_jwk_set_add(set, key);

    if (status != XET_OK) {
        xet_jwk_destroy(key);
    }

    return status;
}


/* Destroys all keys except the first n. */

static void
xet_jwk_set_cut(xet_jwk_set_t *set, size_t n)
{
    while (set->n > n) {
        xet_jwk_destroy(set->keys[--set->n]);
    }
}


/* Adds the key of the next PEM block; returns XET_DONE after the last one. */

static xet_status_t
xet_jwk_set_block(xet_jwk_set_t *set, const uint8_t *id, size_t id_len,
    BIO *bio)
{
    char           *name, *header;
    long            size;
    xet_status_t    status;
    unsigned char  *data;

    if (!PEM_read_bio(bio, &name, &header, &data, &size)) {

        return (ERR_GET_REASON(ERR_peek_last_error())
                == PEM_R_NO_START_LINE) ? XET_DONE : XET_JWK_SYNTAX;
    }

    if (strstr(name, "PRIVATE") != NULL) {
        status = XET_JWK_PRIVATE;

    } else if (strcmp(name, "PUBLIC KEY") != 0) {
        status = XET_JWK_KIND;

    } else if (header[0] != '\0') {
        status = XET_JWK_SYNTAX;

    } else {
        status = xet_jwk_set_spki(set, id, id_len, data, size);
    }

    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_clear_free(data, (size_t) size);

    return status;
}


static xet_status_t
xet_jwk_set_spki(xet_jwk_set_t *set, const uint8_t *id, size_t id_len,
    const unsigned char *data, long size)
{
    EVP_PKEY             *pkey;
    xet_jwk_t            *key;
    xet_status_t          status;
    const unsigned char  *p;

    p = data;
    pkey = d2i_PUBKEY(NULL, &p, size);

    if (pkey == NULL) {
        return XET_JWK_VALUE;
    }

    status = (p == data + size)
             ? xet_jwk_create_public(&key, id, id_len, pkey) : XET_JWK_VALUE;

    EVP_PKEY_free(pkey);

    return (status == XET_OK) ? xet_jwk_set_take(set, key) : status;
}
