
/*
 * Tests the extraction of a SHA-256 from digest headers (RFC 9530).
 */


#include "xet_test.h"
#include "xet_base.h"


/* the SHA-256 of "" and of "hello\n" */

#define EMPTY  "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
#define HELLO  "WJG1sSLV5M5M87IlnK33e6D5+hnyNTu46cdTUWYnxAM="
#define WRONG  "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV="


/* Parses a block of the exact length, so that ASan detects a read past it. */

static xet_status_t
parse(const char *value, uint8_t *sha256)
{
    size_t        len;
    uint8_t      *copy;
    xet_status_t  rc;

    len = strlen(value);
    copy = malloc(len ? len : 1);
    memcpy(copy, value, len);

    rc = xet_digest_sha256(copy, len, sha256);

    free(copy);

    return rc;
}


int
main(void)
{
    size_t   i;
    uint8_t  sha256[XET_DIGEST_SHA256_LEN];

    static const uint8_t  empty[] = { 0xe3, 0xb0, 0xc4, 0x42 };
    static const uint8_t  hello[] = { 0x58, 0x91, 0xb5, 0xb1 };

    static const char *const  good[] = {
        "sha-256=:" EMPTY ":",
        "  sha-256=:" EMPTY ": ",
        "sha-512=:AAAA:, sha-256=:" EMPTY ":",
        "sha-256=:" EMPTY ":\t,\tsha-512=::",
        "sha-256=:" HELLO ":,sha-256=:" EMPTY ":",
        "a=:AA==:, *b.c_d-1=:AAA=:, sha-256=:" EMPTY ":"
    };

    static const char *const  none[] = {
        "sha-512=:AAAA:", "sha-2=:" EMPTY ":", "sha-2567=:" EMPTY ":",
        "unixsum=::", "md5=:AA==:"
    };

    static const char *const  bad[] = {
        "", " ", "sha-256", "sha-256=", "sha-256=:", "sha-256=" EMPTY,
        "sha-256=:" EMPTY, "sha-256=" EMPTY ":", "SHA-256=:" EMPTY ":",
        "sha-256 =:" EMPTY ":", "sha-256= :" EMPTY ":",
        "sha-256=:" WRONG ":", "sha-256=::", "sha-256=:AAAA:",
        "sha-256=:" EMPTY "AAAA:", "sha-256=:" EMPTY ":;a=1",
        "sha-256=:" EMPTY ":,", ",sha-256=:" EMPTY ":",
        "sha-256=:" EMPTY ":,,a=::", "sha-256=:" EMPTY ": a=::",
        "sha-256=:" EMPTY ":, sha-512", "sha-256=:" EMPTY ":, sha-512=1",
        "sha-256=:47DEQpj8HBSa-_TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:",
        "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU:",
        "sha-256=:=7DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:",
        "sha-512=:AAA:", "sha-512=:A===:", "sha-512=:AA=A:", "1a=:AAAA:",
        "=:AAAA:", "\"sha-256\"=:" EMPTY ":", "sha-256=\"" EMPTY "\""
    };

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        xet_ok(parse(good[i], sha256) == XET_OK
               && memcmp(sha256, empty, sizeof(empty)) == 0, "good: %s",
               good[i]);
    }

    xet_ok(parse("sha-256=:" HELLO ":", sha256) == XET_OK
           && memcmp(sha256, hello, sizeof(hello)) == 0, "another digest");

    for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        xet_ok(parse(none[i], sha256) == XET_DONE, "none: %s", none[i]);
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        xet_ok(parse(bad[i], sha256) == XET_DIGEST_SYNTAX, "bad: %s", bad[i]);
    }

    return xet_done();
}
