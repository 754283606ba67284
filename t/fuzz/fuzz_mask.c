
/*
 * Log masking: the function only overwrites bytes, with "*"; it always
 * overwrites a signature or a token, whatever text precedes and follows it.
 *
 * Input: a byte that selects the secret and the function; a byte with the
 * length of the text before the secret; then the text before and after it.
 */


#include <stdlib.h>
#include <string.h>

#include "xet_base.h"
#include "xet_access.h"


#define SIGNATURE  "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF"
#define TOKEN      "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzb21lYm9keSJ9."

#define check(cond)  if (!(cond)) { __builtin_trap(); }


/* Secrets as they occur in a log, with the text before and after them. */

static const char *const  secrets[] = {
    "?s=" SIGNATURE " ",
    "&s=" SIGNATURE "&",
    "?X-Amz-Signature=" SIGNATURE "\"",
    " " TOKEN SIGNATURE " ",
    "\"" TOKEN SIGNATURE "\"",
    "\"hf_xet1" SIGNATURE "\""
};


/* Makes a copy of the exact size, so that ASan detects a read past its end. */

static uint8_t *
fuzz_copy(const uint8_t *data, size_t size)
{
    uint8_t  *text;

    text = malloc(size ? size : 1);
    check(text != NULL);

    if (size != 0) {
        memcpy(text, data, size);
    }

    return text;
}


static void
fuzz_mask(uint8_t *text, size_t len, int args)
{
    if (args) {
        xet_mask_args(text, len);

    } else {
        xet_mask(text, len);
    }
}


static void
fuzz_changes(const uint8_t *before, const uint8_t *text, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        check(text[i] == before[i] || text[i] == '*');
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int          args;
    size_t       i, cut, len;
    uint8_t     *text, *at;
    const char  *secret;

    if (size < 2) {
        return 0;
    }

    args = data[0] & 1;
    secret = secrets[(data[0] >> 1) % (sizeof(secrets) / sizeof(secrets[0]))];
    cut = data[1];
    data += 2;
    size -= 2;

    /* masks the plain input */

    text = fuzz_copy(data, size);
    fuzz_mask(text, size, args);
    fuzz_changes(data, text, size);

    free(text);

    /* masks the input with a secret in the middle */

    if (cut > size) {
        cut = size;
    }

    len = strlen(secret);
    text = malloc(size + len);
    check(text != NULL);

    if (size != 0) {
        memcpy(text, data, cut);
        memcpy(text + cut + len, data + cut, size - cut);
    }

    memcpy(text + cut, secret, len);
    fuzz_mask(text, size + len, args);

    at = text + cut + (strstr(secret, SIGNATURE) - secret);

    for (i = 0; i < sizeof(SIGNATURE) - 1; i++) {
        check(at[i] == '*');
    }

    free(text);

    return 0;
}
