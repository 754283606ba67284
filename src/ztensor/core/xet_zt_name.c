
/*
 * Names and digests of container 2.
 *
 * Purpose:    the rules of sections 3.5, 7.1 and 3.4 of the specification of
 *             container 2.
 * States:     none.
 * Ownership:  nothing is kept.
 * Threads:    any.
 *
 * The CBOR decoder has checked that text is UTF-8.
 */


#include <string.h>

#include "xet_bytes.h"
#include "xet_zt.h"


int
xet_zt_name_valid(const uint8_t *name, size_t len)
{
    return len != 0 && memchr(name, '\0', len) == NULL;
}


int
xet_zt_shard_name_valid(const uint8_t *name, size_t len)
{
    size_t   i;
    uint8_t  c;

    if (len == 0 || len > XET_ZT_SHARD_MAX || name[0] == '.') {
        return 0;
    }

    for (i = 0; i < len; i++) {
        c = name[i];

        if (!xet_is_alnum(c) && c != '.' && c != '_' && c != '-') {
            return 0;
        }
    }

    return 1;
}


int
xet_zt_digest_valid(const uint8_t *digest, size_t len)
{
    size_t  i, n;

    for (n = 0; n < len && digest[n] != ':'; n++) {
        if (!(digest[n] >= 'a' && digest[n] <= 'z')
            && !(digest[n] >= '0' && digest[n] <= '9'))
        {
            return 0;
        }
    }

    if (n == 0 || len - n < 2) {
        return 0;
    }

    for (i = n + 1; i < len; i++) {
        if (!(digest[i] >= '0' && digest[i] <= '9')
            && !(digest[i] >= 'a' && digest[i] <= 'f'))
        {
            return 0;
        }
    }

    return 1;
}
