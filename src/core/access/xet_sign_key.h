
/*
 * Inside of the signed URLs: a key, and what it signs.
 */

#ifndef _XET_SIGN_KEY_H_INCLUDED_
#define _XET_SIGN_KEY_H_INCLUDED_


#include <openssl/evp.h>

#include "xet_sign.h"


struct xet_sign_key_s {
    EVP_MD         *md;
    EVP_MD_CTX     *inner;             /* behind the key and what is fixed */
    EVP_MD_CTX     *outer;             /* behind the key */
    EVP_MD_CTX     *ctx;               /* of the signature being made */
    size_t          id_len;
    char            id[XET_SIGN_ID_MAX + 1];
};


typedef struct {
    const uint8_t  *data;
    size_t          len;
} xet_sign_text_t;


/* What is signed, each in its spelling in the URL; the list may be empty. */

typedef struct {
    xet_sign_text_t  ns;
    xet_sign_text_t  name;
    xet_sign_text_t  expires;
    xet_sign_text_t  list;
} xet_sign_fields_t;


/*
 * The signature, XET_SIGN_MAC_LEN bytes; the fields but the list are no longer
 * than the limits of a URL.  XET_OK, XET_INTERNAL.
 */
xet_status_t xet_sign_mac(xet_sign_key_t *key, const xet_sign_fields_t *f,
    uint8_t *mac);

/* 1 .. max characters of [A-Za-z0-9_-], which base64url has as well. */
int xet_sign_name_valid(const uint8_t *name, size_t len, size_t max);


#endif /* _XET_SIGN_KEY_H_INCLUDED_ */
