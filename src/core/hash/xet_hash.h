
/*
 * Hashes: 32 bytes, their string form, and the keyed BLAKE3 functions of the
 * suite.  The string form is four little-endian 64-bit words in hexadecimal
 * (draft-denis-xet, "Hash String Representation"), so each group of 8 bytes
 * is reversed relative to plain hex.
 */

#ifndef _XET_HASH_H_INCLUDED_
#define _XET_HASH_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>
#include <string.h>

#include "xet_status.h"
#include "xet_suite.h"
#include "xet_bytes.h"


#define XET_HASH_LEN      32
#define XET_HASH_STR_LEN  64


typedef struct {
    uint8_t  bytes[XET_HASH_LEN];
} xet_hash_t;


/* Writes XET_HASH_STR_LEN lower-case digits, no NUL; returns their end. */
uint8_t *xet_hash_print(uint8_t *dst, const xet_hash_t *hash);

/*
 * Reads a hash string of len digits.  XET_HASH_SYNTAX unless len is 64 and all
 * are hex digits, of either case; *hash is set on XET_OK only.
 */
xet_status_t xet_hash_parse(xet_hash_t *hash, const uint8_t *src, size_t len);

/* Writes 32 bytes as hex in memory order, for SHA-256; returns the end. */
uint8_t *xet_hash_print_plain(uint8_t *dst, const uint8_t *bytes);


static inline int
xet_hash_equal(const xet_hash_t *a, const xet_hash_t *b)
{
    return memcmp(a->bytes, b->bytes, XET_HASH_LEN) == 0;
}


/* The order of the four words, which is the order of hash strings. */
int xet_hash_cmp(const xet_hash_t *a, const xet_hash_t *b);

int xet_hash_is_zero(const xet_hash_t *hash);


/* The number that "hash mod n" means: the last 8 bytes, little-endian. */

static inline uint64_t
xet_hash_tail(const uint8_t *bytes)
{
    return xet_get_u64(bytes + 24);
}


/* Whether the hash alone makes a chunk eligible for the dedup index. */

static inline int
xet_hash_eligible(const xet_suite_t *suite, const uint8_t *bytes)
{
    return xet_hash_tail(bytes) % suite->dedup_modulus == 0;
}


/* BLAKE3 keyed hash of one buffer; key is 32 bytes. */
void xet_hash_keyed(const uint8_t *key, const void *data, size_t len,
    xet_hash_t *out);

void xet_hash_chunk(const xet_suite_t *suite, const void *data, size_t len,
    xet_hash_t *out);

/* File hash of a merkle root; a root of zeros (empty file) stays zeros. */
void xet_hash_file(const xet_suite_t *suite, const xet_hash_t *root,
    xet_hash_t *out);

/* Term verification hash: hashes are n packed chunk hashes of 32 bytes. */
void xet_hash_verification(const xet_suite_t *suite, const uint8_t *hashes,
    size_t n, xet_hash_t *out);


#endif /* _XET_HASH_H_INCLUDED_ */
