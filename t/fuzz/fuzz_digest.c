
/*
 * Digest headers: an accepted value keeps its meaning when it is printed and
 * parsed again.
 *
 * Input: the value of such a header.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_base.h"


#define check(cond)  if (!(cond)) { __builtin_trap(); }


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t        i, n;
    uint8_t       sha256[XET_DIGEST_SHA256_LEN], again[XET_DIGEST_SHA256_LEN];
    uint8_t       text[64], *p;
    xet_status_t  status;

    status = xet_digest_sha256(data, size, sha256);

    if (status != XET_OK) {
        check(status == XET_DONE || status == XET_DIGEST_SYNTAX);
        return 0;
    }

    memcpy(text, "sha-256=:", 9);
    p = xet_base64_encode(text + 9, sha256, XET_DIGEST_SHA256_LEN);

    for (i = 9; i < (size_t) (p - text); i++) {
        text[i] = (text[i] == '-') ? '+' : (text[i] == '_') ? '/' : text[i];
    }

    *p++ = '=';
    *p++ = ':';
    n = (size_t) (p - text);

    check(xet_digest_sha256(text, n, again) == XET_OK);
    check(memcmp(sha256, again, XET_DIGEST_SHA256_LEN) == 0);

    /* the printed value must occur in the input */

    for (i = 0; i + n <= size; i++) {
        if (memcmp(data + i, text, n) == 0) {
            return 0;
        }
    }

    check(0);

    return 0;
}
