
/*
 * Prints and parses names of stored xorbs, and selects the chunks of a xorb
 * for the dedup index.
 *
 * A name has one spelling: lower case, and no copy id if the copy id is 0.  So
 * two names are of the same copy exactly when they are the same text, which
 * caches and signatures rely on.  The same holds for the names of copies in
 * quarantine.
 *
 * A client chooses the content of its xorbs, so it can repeat one eligible
 * chunk at all positions.  A hash table of the eligible chunks so far, with
 * open addressing and at most half full, finds repeats with about one look-up
 * per chunk.
 *
 * The functions have no state and allocate no memory; any thread may call
 * them.
 */


#include "xet_xorb.h"


#define XET_XORB_SEEN_SIZE  (2 * XET_XORB_CHUNKS_MAX)
#define XET_XORB_LOWER      UINT64_C(0x2020202020202020)


uint8_t *
xet_xorb_name_print(uint8_t *dst, const xet_hash_t *xorb, uint32_t copy_id)
{
    int  shift;

    static const char  hex[] = "0123456789abcdef";

    dst = xet_hash_print(dst, xorb);

    if (copy_id == 0) {
        return dst;
    }

    *dst++ = '.';

    for (shift = 28; shift >= 0; shift -= 4) {
        *dst++ = (uint8_t) hex[copy_id >> shift & 0xf];
    }

    return dst;
}


xet_status_t
xet_xorb_name_parse(xet_hash_t *xorb, uint32_t *copy_id, const uint8_t *src,
    size_t len)
{
    size_t      i;
    uint32_t    n, digit;
    uint64_t    bits;
    xet_hash_t  hash;

    if (len != XET_HASH_STR_LEN && len != XET_XORB_NAME_MAX) {
        return XET_HASH_SYNTAX;
    }

    /* only the digits "A" to "F" lack this bit */

    bits = XET_XORB_LOWER;

    for (i = 0; i < XET_HASH_STR_LEN; i += 8) {
        bits &= xet_get_u64(src + i);
    }

    if (bits != XET_XORB_LOWER
        || xet_hash_parse(&hash, src, XET_HASH_STR_LEN) != XET_OK)
    {
        return XET_HASH_SYNTAX;
    }

    n = 0;

    if (len == XET_XORB_NAME_MAX) {

        if (src[XET_HASH_STR_LEN] != '.') {
            return XET_HASH_SYNTAX;
        }

        for (i = XET_HASH_STR_LEN + 1; i < len; i++) {
            digit = xet_get_hex_digit(src[i]);

            if (digit == 16 || (src[i] & 0x20) == 0) {
                return XET_HASH_SYNTAX;
            }

            n = n << 4 | digit;
        }

        if (n == 0) {
            return XET_HASH_SYNTAX;
        }
    }

    *xorb = hash;
    *copy_id = n;

    return XET_OK;
}


uint8_t *
xet_xorb_quarantine_print(uint8_t *dst, uint64_t sweep, const xet_hash_t *xorb,
    uint32_t copy_id)
{
    memcpy(dst, XET_XORB_QUARANTINE, sizeof(XET_XORB_QUARANTINE) - 1);

    dst = xet_put_decimal(dst + sizeof(XET_XORB_QUARANTINE) - 1, sweep);
    *dst++ = '.';

    return xet_xorb_name_print(dst, xorb, copy_id);
}


xet_status_t
xet_xorb_quarantine_parse(uint64_t *sweep, xet_hash_t *xorb, uint32_t *copy_id,
    const uint8_t *src, size_t len)
{
    uint64_t        n;
    const uint8_t  *dot;

    if (len < sizeof(XET_XORB_QUARANTINE) || memcmp(src, XET_XORB_QUARANTINE,
                                                    sizeof(XET_XORB_QUARANTINE)
                                                    - 1) != 0)
    {
        return XET_HASH_SYNTAX;
    }

    src += sizeof(XET_XORB_QUARANTINE) - 1;
    len -= sizeof(XET_XORB_QUARANTINE) - 1;

    dot = memchr(src, '.', len);

    if (dot == NULL || (*src == '0' && dot > src + 1)
        || !xet_get_decimal(src, (size_t) (dot - src), &n)
        || xet_xorb_name_parse(xorb, copy_id, dot + 1,
                               len - (size_t) (dot - src) - 1)
           != XET_OK)
    {
        return XET_HASH_SYNTAX;
    }

    *sweep = n;

    return XET_OK;
}


uint32_t
xet_xorb_eligible(const xet_suite_t *suite, const xet_xorb_info_t *info,
    uint16_t *chunks)
{
    uint32_t        i, n, slot;
    uint16_t        seen[XET_XORB_SEEN_SIZE];
    const uint8_t  *hash;

    memset(seen, 0, sizeof(seen));

    n = 0;

    for (i = 0; i < info->chunk_count; i++) {
        hash = info->hashes + i * XET_HASH_LEN;

        if (!xet_hash_eligible(suite, hash)) {
            continue;
        }

        /* use the first bytes: eligible hashes have similar last bytes */

        slot = xet_get_u32(hash) % XET_XORB_SEEN_SIZE;

        while (seen[slot]
               && memcmp(info->hashes + (seen[slot] - 1u) * XET_HASH_LEN,
                         hash, XET_HASH_LEN)
                  != 0)
        {
            slot = (slot + 1) % XET_XORB_SEEN_SIZE;
        }

        if (seen[slot] == 0) {
            seen[slot] = (uint16_t) (i + 1);
            chunks[n++] = (uint16_t) i;
        }
    }

    return n;
}
