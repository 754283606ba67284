
/*
 * Hashes: print, parse, compare, and the keyed BLAKE3 functions.
 *
 * Purpose:    provides all operations on a single hash.  Each keyed function
 *             makes the same BLAKE3 call with a different key of the suite.
 * States:     none.
 * Ownership:  the caller owns all buffers.  Nothing is allocated; a BLAKE3
 *             state of about 2 KiB is on the stack during a call.
 * Threads:    any.  (BLAKE3 detects the features of the CPU on first use and
 *             caches them in a word of its own; all threads detect the same
 *             features.)
 *
 * A hash string is four little-endian words in hexadecimal, so its digits come
 * from the bytes 7 6 5 4 3 2 1 0, 15 14 ... 24 of the hash: byte i is printed
 * at position i ^ 7, and parsed from there.
 */


#include <blake3.h>

#include "xet_hash.h"


/* The two digits of each byte. */

static const char  xet_hash_digits[] =
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
    "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"
    "404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f"
    "606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f"
    "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"
    "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf"
    "c0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedf"
    "e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";


static inline uint8_t *
xet_hash_put_byte(uint8_t *dst, uint8_t byte)
{
    return xet_put_bytes(dst, &xet_hash_digits[2 * byte], 2);
}


uint8_t *
xet_hash_print(uint8_t *dst, const xet_hash_t *hash)
{
    size_t          i;
    const uint8_t  *p;

    for (i = 0; i < XET_HASH_LEN; i += 4) {
        p = hash->bytes + (i ^ 4);

        dst = xet_hash_put_byte(dst, p[3]);
        dst = xet_hash_put_byte(dst, p[2]);
        dst = xet_hash_put_byte(dst, p[1]);
        dst = xet_hash_put_byte(dst, p[0]);
    }

    return dst;
}


uint8_t *
xet_hash_print_plain(uint8_t *dst, const uint8_t *bytes)
{
    size_t  i;

    for (i = 0; i < XET_HASH_LEN; i++) {
        dst = xet_hash_put_byte(dst, bytes[i]);
    }

    return dst;
}


xet_status_t
xet_hash_parse(xet_hash_t *hash, const uint8_t *src, size_t len)
{
    size_t      i;
    unsigned    high, low, valid;
    xet_hash_t  h;

    /* the value of each digit, plus 16; 0 for other bytes */

    static const uint8_t  digits[256] = {
        ['0'] = 16, ['1'] = 17, ['2'] = 18, ['3'] = 19, ['4'] = 20,
        ['5'] = 21, ['6'] = 22, ['7'] = 23, ['8'] = 24, ['9'] = 25,
        ['a'] = 26, ['b'] = 27, ['c'] = 28, ['d'] = 29, ['e'] = 30,
        ['f'] = 31, ['A'] = 26, ['B'] = 27, ['C'] = 28, ['D'] = 29,
        ['E'] = 30, ['F'] = 31
    };

    if (len != XET_HASH_STR_LEN) {
        return XET_HASH_SYNTAX;
    }

    valid = 16;

    for (i = 0; i < XET_HASH_LEN; i++) {
        high = digits[src[2 * i]];
        low = digits[src[2 * i + 1]];

        valid &= high & low;

        h.bytes[i ^ 7] = (uint8_t) (high << 4 | (low & 15));
    }

    if (!valid) {
        return XET_HASH_SYNTAX;
    }

    *hash = h;

    return XET_OK;
}


int
xet_hash_cmp(const xet_hash_t *a, const xet_hash_t *b)
{
    size_t    i;
    uint64_t  x, y;

    for (i = 0; i < XET_HASH_LEN; i += 8) {
        x = xet_get_u64(a->bytes + i);
        y = xet_get_u64(b->bytes + i);

        if (x != y) {
            return (x < y) ? -1 : 1;
        }
    }

    return 0;
}


int
xet_hash_is_zero(const xet_hash_t *hash)
{
    size_t    i;
    unsigned  bits;

    bits = 0;

    for (i = 0; i < XET_HASH_LEN; i++) {
        bits |= hash->bytes[i];
    }

    return bits == 0;
}


void
xet_hash_keyed(const uint8_t *key, const void *data, size_t len,
    xet_hash_t *out)
{
    blake3_hasher  hasher;

    blake3_hasher_init_keyed(&hasher, key);
    blake3_hasher_update(&hasher, data, len);
    blake3_hasher_finalize(&hasher, out->bytes, XET_HASH_LEN);
}


void
xet_hash_chunk(const xet_suite_t *suite, const void *data, size_t len,
    xet_hash_t *out)
{
    xet_hash_keyed(suite->chunk_key, data, len, out);
}


void
xet_hash_file(const xet_suite_t *suite, const xet_hash_t *root,
    xet_hash_t *out)
{
    if (xet_hash_is_zero(root)) {
        memset(out->bytes, 0, XET_HASH_LEN);
        return;
    }

    xet_hash_keyed(suite->file_key, root->bytes, XET_HASH_LEN, out);
}


void
xet_hash_verification(const xet_suite_t *suite, const uint8_t *hashes,
    size_t n, xet_hash_t *out)
{
    xet_hash_keyed(suite->verification_key, hashes, n * XET_HASH_LEN, out);
}
