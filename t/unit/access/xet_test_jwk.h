
/*
 * Loads PEM keys, for the tests of keys and key sets.
 */

#ifndef _XET_TEST_JWK_H_INCLUDED_
#define _XET_TEST_JWK_H_INCLUDED_


#include "xet_test.h"
#include "xet_access.h"


/* Loads keys from a memory block of the exact size. */

static inline xet_status_t
test_pem(xet_jwk_set_t *set, const char *id, const char *pem, size_t *index)
{
    size_t         len;
    uint8_t       *copy;
    xet_status_t   status;

    len = strlen(pem);
    copy = malloc(len + !len);
    memcpy(copy, pem, len);

    *index = 999;
    status = xet_jwk_set_add_pem(set, (const uint8_t *) id, strlen(id), copy,
                                 len, index);
    free(copy);

    return status;
}


static inline int
test_id(const xet_jwk_t *key, const char *want)
{
    size_t          len;
    const uint8_t  *id;

    id = xet_jwk_id(key, &len);

    return len == strlen(want) && memcmp(id, want, len) == 0;
}


#endif /* _XET_TEST_JWK_H_INCLUDED_ */
