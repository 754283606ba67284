
/*
 * Keys of signed URLs.
 *
 * Purpose:    the signature over the fields of a URL, by a secret that has an
 *             id.
 * States:     a key holds a MAC context that was keyed when it was made and is
 *             only started anew for each signature.
 * Ownership:  a key is freed by its owner.
 * Threads:    one at a time for each key.
 */


#include <stdlib.h>

#include <openssl/core_names.h>
#include <openssl/params.h>

#include "xet_sign_key.h"


#define XET_SIGN_LABEL  "xet-url-1\n"


static const char  xet_sign_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";


xet_sign_key_t *
xet_sign_key_create(const uint8_t *id, size_t id_len, const uint8_t *secret,
    size_t secret_len)
{
    char             digest[] = "SHA256";
    OSSL_PARAM       params[2];
    xet_sign_key_t  *key;

    if (!xet_sign_name_valid(id, id_len, XET_SIGN_ID_MAX)
        || secret_len < XET_SIGN_KEY_MIN
        || secret_len > XET_SIGN_KEY_MAX)
    {
        return NULL;
    }

    key = calloc(1, sizeof(xet_sign_key_t));
    if (key == NULL) {
        return NULL;
    }

    memcpy(key->id, id, id_len);
    key->id_len = id_len;

    key->mac = EVP_MAC_fetch(NULL, "HMAC", NULL);

    if (key->mac != NULL) {
        key->ctx = EVP_MAC_CTX_new(key->mac);
    }

    params[0] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST,
                                                 digest, 0);
    params[1] = OSSL_PARAM_construct_end();

    if (key->ctx == NULL
        || !EVP_MAC_init(key->ctx, secret, secret_len, params))
    {
        xet_sign_key_destroy(key);
        return NULL;
    }

    return key;
}


void
xet_sign_key_destroy(xet_sign_key_t *key)
{
    if (key == NULL) {
        return;
    }

    EVP_MAC_CTX_free(key->ctx);
    EVP_MAC_free(key->mac);

    free(key);
}


const char *
xet_sign_key_id(const xet_sign_key_t *key)
{
    return key->id;
}


xet_status_t
xet_sign_mac(xet_sign_key_t *key, const xet_sign_fields_t *f, uint8_t *mac)
{
    int           ok;
    size_t        len;
    EVP_MAC_CTX  *ctx;

    ctx = key->ctx;

    /* no key: the context starts anew with the one it has */

    ok = EVP_MAC_init(ctx, NULL, 0, NULL)
         && EVP_MAC_update(ctx, (const uint8_t *) XET_SIGN_LABEL,
                           sizeof(XET_SIGN_LABEL) - 1)
         && EVP_MAC_update(ctx, (const uint8_t *) key->id, key->id_len)
         && EVP_MAC_update(ctx, (const uint8_t *) "\n", 1)
         && EVP_MAC_update(ctx, f->ns.data, f->ns.len)
         && EVP_MAC_update(ctx, (const uint8_t *) "/", 1)
         && EVP_MAC_update(ctx, f->hash.data, f->hash.len)
         && EVP_MAC_update(ctx, (const uint8_t *) "\n", 1)
         && EVP_MAC_update(ctx, f->expires.data, f->expires.len)
         && EVP_MAC_update(ctx, (const uint8_t *) "\n", 1)
         && EVP_MAC_update(ctx, f->list.data, f->list.len)
         && EVP_MAC_update(ctx, (const uint8_t *) "\n", 1)
         && EVP_MAC_final(ctx, mac, &len, XET_SIGN_MAC_LEN)
         && len == XET_SIGN_MAC_LEN;

    return ok ? XET_OK : XET_INTERNAL;
}


int
xet_sign_name_valid(const uint8_t *name, size_t len, size_t max)
{
    size_t  i;

    if (len == 0 || len > max) {
        return 0;
    }

    for (i = 0; i < len; i++) {
        if (name[i] == '\0' || strchr(xet_sign_digits, name[i]) == NULL) {
            return 0;
        }
    }

    return 1;
}
