
/*
 * Names of the Hub.
 *
 * Purpose:    validates the names of repos, owners, branches, tags and files.
 * States:     none.
 * Ownership:  names are only read.
 * Threads:    any.
 *
 * Names are received in request paths and bodies.  They are sent in paths and
 * headers, and become names of files on clients.  So a name must be valid in
 * all of these places.
 */


#include <strings.h>

#include "xet_hub.h"


int
xet_hub_name_ok(const uint8_t *p, size_t len)
{
    size_t  i;

    if (len == 0 || len > XET_HUB_NAME_MAX
        || p[0] == '-' || p[0] == '.'
        || p[len - 1] == '-' || p[len - 1] == '.')
    {
        return 0;
    }

    for (i = 0; i < len; i++) {

        if (!xet_is_alnum(p[i]) && p[i] != '-' && p[i] != '_' && p[i] != '.') {
            return 0;
        }

        if (i && p[i] == p[i - 1] && (p[i] == '-' || p[i] == '.')) {
            return 0;
        }
    }

    return len < 4
           || strncasecmp((const char *) p + len - 4, ".git", 4) != 0;
}


int
xet_hub_owner_ok(const uint8_t *p, size_t len)
{
    size_t  i;

    static const char *const  taken[] = {
        "api", "buckets", "cas", "datasets", "kernels", "metrics", "models",
        "oauth", "settings", "spaces", "status", "v1", "v2",
        "xorbs"
    };

    if (!xet_hub_name_ok(p, len)) {
        return 0;
    }

    for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {

        if (strlen(taken[i]) == len
            && strncasecmp((const char *) p, taken[i], len) == 0)
        {
            return 0;
        }
    }

    return 1;
}


int
xet_hub_space_ok(const uint8_t *p, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {

        if (p[i] >= 'A' && p[i] <= 'Z') {
            return 0;
        }
    }

    return xet_hub_owner_ok(p, len);
}


int
xet_hub_path_ok(const uint8_t *p, size_t len)
{
    size_t  i, start;

    if (len == 0 || len > XET_HUB_PATH_MAX || !xet_hub_text_ok(p, len)) {
        return 0;
    }

    start = 0;

    for (i = 0; i <= len; i++) {

        if (i < len && p[i] != '/') {
            continue;
        }

        if (i == start || i - start > XET_HUB_PART_MAX
            || (p[start] == '.'
                && (i - start == 1 || (i - start == 2 && p[start + 1] == '.'))))
        {
            return 0;
        }

        start = i + 1;
    }

    return 1;
}


size_t
xet_hub_path_depth(const uint8_t *p, size_t len)
{
    size_t  i, n;

    n = 0;

    for (i = 0; i < len; i++) {
        n += (p[i] == '/');
    }

    return n;
}


int
xet_hub_ref_ok(const uint8_t *p, size_t len)
{
    size_t  i;

    if (len > XET_HUB_REV_MAX || !xet_hub_path_ok(p, len)
        || p[0] == '-' || p[len - 1] == '.'
        || xet_hub_ref_reserved(p, len)
        || (len >= 5 && memcmp(p + len - 5, ".lock", 5) == 0))
    {
        return 0;
    }

    for (i = 0; i < len; i++) {

        if (strchr(" ~^:?*[\\", p[i]) != NULL
            || (i && p[i] == '.' && (p[i - 1] == '.' || p[i - 1] == '/'))
            || (i && p[i] == '{' && p[i - 1] == '@'))
        {
            return 0;
        }
    }

    return p[0] != '.';
}


size_t
xet_hub_ref_reserved(const uint8_t *p, size_t len)
{
    size_t  i, digits;

    digits = 0;

    for (i = 0; i < len && p[i] != '/'; i++) {
        digits += (xet_get_hex_digit(p[i]) < 16);
    }

    return ((digits == i && i == XET_HUB_OID_LEN)
            || (i == 4 && (memcmp(p, "HEAD", 4) == 0
                           || memcmp(p, "refs", 4) == 0)))
           ? i : 0;
}


int
xet_hub_rev_ok(const uint8_t *p, size_t len)
{
    return len <= XET_HUB_REV_MAX && xet_hub_path_ok(p, len);
}


int
xet_hub_type_ok(const uint8_t *p, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        if (p[i] < 0x20 || p[i] > 0x7e) {
            return 0;
        }
    }

    return len <= XET_HUB_TYPE_MAX;
}


int
xet_hub_text_ok(const uint8_t *p, size_t len)
{
    size_t      i;
    xet_utf8_t  utf8;

    for (i = 0; i < len; i++) {
        if (p[i] < 0x20 || p[i] == 0x7f) {
            return 0;
        }
    }

    xet_utf8_init(&utf8);

    return xet_utf8_feed(&utf8, p, len) == len && utf8.need == 0;
}


const char *
xet_hub_kind_plural(xet_hub_kind_e kind)
{
    static const char *const  names[] = {
        "models", "datasets", "spaces", "buckets"
    };

    return names[kind];
}


const char *
xet_hub_kind_name(xet_hub_kind_e kind)
{
    static const char *const  names[] = {
        "model", "dataset", "space", "bucket"
    };

    return names[kind];
}


xet_hub_kind_e
xet_hub_kind_parse(const char *name)
{
    int  kind;

    for (kind = 0; kind < XET_HUB_KINDS; kind++) {
        if (strcmp(name, xet_hub_kind_name(kind)) == 0) {
            break;
        }
    }

    return kind;
}


int
xet_hub_sha256_parse(uint8_t *sha256, const xet_hub_text_t *text)
{
    size_t    i;
    unsigned  digit;

    if (text->len != 2 * XET_HUB_SHA256_LEN) {
        return 0;
    }

    memset(sha256, 0, XET_HUB_SHA256_LEN);

    for (i = 0; i < text->len; i++) {
        digit = xet_get_hex_digit(text->data[i]);

        if (digit == 16) {
            return 0;
        }

        sha256[i / 2] = (uint8_t) (sha256[i / 2] << 4 | digit);
    }

    return 1;
}
