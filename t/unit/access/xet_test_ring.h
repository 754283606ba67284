
/*
 * Provides a set with one key of each kind, and the signers for these keys.
 */

#ifndef _XET_TEST_RING_H_INCLUDED_
#define _XET_TEST_RING_H_INCLUDED_


#include "xet_access.h"
#include "xet_test_jwt.h"


#define RING  4


typedef struct {
    xet_jwk_set_t      *set;
    const xet_jwk_t    *secret;
    xet_test_signer_t   signers[RING];
} xet_test_ring_t;


/* Key ids, in the order of the signers. */

static const char *const  xet_test_ids[RING] = { "hs", "ed", "es", "rs" };

static const uint8_t  xet_test_secret[] =
    "this is the secret of a test, of 43 letters";


static inline void
xet_test_ring_init(xet_test_ring_t *ring)
{
    char       *pem;
    size_t      i, index;
    xet_jwk_t  *key;

    static const char *const  algs[RING] = {
        "HS256", "EdDSA", "ES256", "RS256"
    };

    memset(ring, 0, sizeof(xet_test_ring_t));

    ring->set = xet_jwk_set_create();

    for (i = 0; i < RING; i++) {
        ring->signers[i].alg = algs[i];
    }

    ring->signers[0].secret = xet_test_secret;
    ring->signers[0].len = sizeof(xet_test_secret) - 1;
    ring->signers[1].pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    ring->signers[2].pkey = EVP_EC_gen("P-256");
    ring->signers[3].pkey = EVP_RSA_gen(2048);

    if (xet_jwk_create_secret(&key, (const uint8_t *) "hs", 2,
                              xet_test_secret, sizeof(xet_test_secret) - 1)
        != XET_OK
        || xet_jwk_set_add(ring->set, key) != XET_OK)
    {
        abort();
    }

    ring->secret = key;

    for (i = 1; i < RING; i++) {
        pem = xet_test_pem(ring->signers[i].pkey, 0);

        if (xet_jwk_set_add_pem(ring->set, (const uint8_t *) xet_test_ids[i],
                                2, (const uint8_t *) pem, strlen(pem), &index)
            != XET_OK)
        {
            abort();
        }

        free(pem);
    }
}


static inline void
xet_test_ring_free(xet_test_ring_t *ring)
{
    size_t  i;

    for (i = 1; i < RING; i++) {
        EVP_PKEY_free(ring->signers[i].pkey);
    }

    xet_jwk_set_destroy(ring->set);
}


/*
 * Verifies a token.  The token and the output are allocated at their exact
 * sizes, so that ASan detects accesses past their ends.
 */

static inline xet_status_t
xet_test_verify(const xet_jwk_set_t *set, const xet_token_params_t *params,
    const char *token, size_t len, uint64_t now, uint8_t *room,
    xet_token_claims_t *claims)
{
    uint8_t             *copy, *own;
    xet_status_t         status;
    xet_token_claims_t   unused;

    copy = malloc(len + !len);
    memcpy(copy, token, len);
    own = room ? room : malloc(XET_TOKEN_ROOM);

    status = xet_token_verify(set, params, copy, len, now, own,
                              claims ? claims : &unused);

    if (room == NULL) {
        free(own);
    }

    free(copy);

    return status;
}


#endif /* _XET_TEST_RING_H_INCLUDED_ */
