
/*
 * Digest headers.
 *
 * Purpose:    parses a dictionary of byte sequences in one strict pass:
 *             sha-256=:base64:, other=:base64:
 * States:     none.
 * Ownership:  the buffers belong to the caller.
 * Threads:    any.
 *
 * Parameters of a member are refused, because RFC 9530 does not define any.
 * The base64 of a SHA-256 must be in canonical form.
 */


#include <string.h>

#include "xet_base.h"


#define XET_DIGEST_TEXT_LEN  xet_base64_encoded(XET_DIGEST_SHA256_LEN)


/* Returns the end of the key at p, or NULL when there is no key. */

static const uint8_t *
xet_digest_key(const uint8_t *p, const uint8_t *end)
{
    const uint8_t  *start;

    for (start = p; p < end; p++) {

        if ((*p >= 'a' && *p <= 'z') || *p == '*') {
            continue;
        }

        if (p > start
            && ((*p >= '0' && *p <= '9') || *p == '-' || *p == '_'
                || *p == '.'))
        {
            continue;
        }

        break;
    }

    return (p > start) ? p : NULL;
}


/* Returns the colon that ends the byte sequence at p, or NULL. */

static const uint8_t *
xet_digest_bytes(const uint8_t *p, const uint8_t *end)
{
    const uint8_t  *start;

    for (start = p; p < end && *p != ':'; p++) {

        if (xet_is_alnum(*p) || *p == '+' || *p == '/') {
            continue;
        }

        /* one or two padding characters before the colon */

        if (*p == '=' && end - p >= 2
            && (p[1] == ':' || (p[1] == '=' && end - p >= 3 && p[2] == ':')))
        {
            p += (p[1] == ':') ? 1 : 2;
            break;
        }

        return NULL;
    }

    return (p < end && (p - start) % 4 == 0) ? p : NULL;
}


/* Converts the standard alphabet to base64url, then decodes. */

static int
xet_digest_decode(const uint8_t *p, size_t len, uint8_t *sha256)
{
    size_t   i;
    uint8_t  text[XET_DIGEST_TEXT_LEN];

    if (len != XET_DIGEST_TEXT_LEN + 1 || p[XET_DIGEST_TEXT_LEN] != '=') {
        return 0;
    }

    for (i = 0; i < XET_DIGEST_TEXT_LEN; i++) {
        text[i] = (p[i] == '+') ? '-' : (p[i] == '/') ? '_' : p[i];
    }

    return xet_base64_decode(sha256, text, XET_DIGEST_TEXT_LEN);
}


xet_status_t
xet_digest_sha256(const uint8_t *value, size_t len, uint8_t *sha256)
{
    xet_status_t    rc;
    const uint8_t  *p, *end, *key, *bytes;

    static const char  name[] = "sha-256";

    rc = XET_DONE;
    p = value;
    end = value + len;

    for ( ;; ) {
        key = xet_skip_blanks(p, end);
        p = xet_digest_key(key, end);

        if (p == NULL || end - p < 2 || p[0] != '=' || p[1] != ':') {
            return XET_DIGEST_SYNTAX;
        }

        bytes = p + 2;
        len = (size_t) (p - key);
        p = xet_digest_bytes(bytes, end);

        if (p == NULL) {
            return XET_DIGEST_SYNTAX;
        }

        if (len == sizeof(name) - 1 && memcmp(key, name, len) == 0) {

            if (!xet_digest_decode(bytes, (size_t) (p - bytes), sha256)) {
                return XET_DIGEST_SYNTAX;
            }

            rc = XET_OK;
        }

        p = xet_skip_blanks(p + 1, end);

        if (p == end) {
            return rc;
        }

        if (*p++ != ',') {
            return XET_DIGEST_SYNTAX;
        }
    }
}
