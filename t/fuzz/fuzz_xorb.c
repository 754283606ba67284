
/*
 * Xorbs.  The first byte chooses:
 *
 *   0, 3..  the rest is a body: for any split, the verdict, the bytes to store
 *           and the tables are the same; a valid xorb has consistent tables, is
 *           also valid with a footer of either version, and is invalid with
 *           another hash
 *   1       the rest is a valid region, and two bytes with the position at
 *           which the footer is damaged
 *   2       the rest describes chunks for the writer: its output must be valid,
 *           with the same tables
 */


#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "xet_hash.h"
#include "xet_xorb.h"

#include "../unit/xorb/xorb_bytes.h"


#define check(cond)                                                           \
    if (!(cond)) {                                                            \
        __builtin_trap();                                                     \
    }

#define FUZZ_SIZE_MAX  (1 << 20)


typedef struct {
    xet_status_t          status;
    uint64_t              stored;
    xet_xorb_verifier_t  *v;
    xet_xorb_info_t       info;
} fuzz_verdict_t;


static void fuzz_body(const uint8_t *data, size_t size);
static void fuzz_footer(const uint8_t *data, size_t size);
static void fuzz_writer(const uint8_t *data, size_t size);

static fuzz_verdict_t fuzz_verify(const uint8_t *data, size_t size,
    const xet_hash_t *expected, uint32_t seed);
static void fuzz_same(const fuzz_verdict_t *a, const fuzz_verdict_t *b);
static void fuzz_good(const uint8_t *data, const fuzz_verdict_t *r);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }

    switch (data[0]) {

    case 1:
        fuzz_footer(data + 1, size - 1);
        break;

    case 2:
        fuzz_writer(data + 1, size - 1);
        break;

    default:
        fuzz_body(data + 1, size - 1);
    }

    return 0;
}


static void
fuzz_body(const uint8_t *data, size_t size)
{
    size_t          i;
    uint32_t        seed;
    fuzz_verdict_t  whole, split;

    whole = fuzz_verify(data, size, NULL, 0);

    seed = 1;

    for (i = 0; i < size; i++) {
        seed = seed * 16777619u ^ data[i];
    }

    split = fuzz_verify(data, size, NULL, seed | 16);
    fuzz_same(&whole, &split);
    xet_xorb_verifier_destroy(split.v);

    split = fuzz_verify(data, size, NULL, 1);
    fuzz_same(&whole, &split);
    xet_xorb_verifier_destroy(split.v);

    check(whole.stored <= size);

    if (whole.status == XET_OK) {
        fuzz_good(data, &whole);
    }

    xet_xorb_verifier_destroy(whole.v);
}


/*
 * Verifies a xorb that arrives in pieces.  seed is 0: one piece; 1: single
 * bytes; other values: pieces of random sizes.
 */

static fuzz_verdict_t
fuzz_verify(const uint8_t *data, size_t size, const xet_hash_t *expected,
    uint32_t seed)
{
    size_t           pos, n, stored;
    uint8_t         *piece;
    fuzz_verdict_t   r;

    r.v = xet_xorb_verifier_create(&xet_suite_default, expected,
                                   FUZZ_SIZE_MAX);
    check(r.v != NULL);

    r.status = XET_OK;
    r.stored = 0;

    for (pos = 0; pos < size && r.status == XET_OK; pos += n) {

        if (seed == 0) {
            n = size;

        } else if (seed == 1) {
            n = 1;

        } else {
            seed = seed * 1664525u + 1013904223u;
            n = 1 + (seed >> 8) % (1u << (seed >> 28));
        }

        n = n > size - pos ? size - pos : n;

        piece = malloc(n);
        check(piece != NULL);
        memcpy(piece, data + pos, n);

        r.status = xet_xorb_verifier_feed(r.v, piece, n, &stored);

        free(piece);

        check(stored <= n);
        r.stored += stored;
    }

    if (r.status == XET_OK) {
        r.status = xet_xorb_verifier_finish(r.v);
    }

    check(xet_xorb_verifier_finish(r.v) == r.status);
    r.info = *xet_xorb_verifier_info(r.v);

    return r;
}


static void
fuzz_same(const fuzz_verdict_t *a, const fuzz_verdict_t *b)
{
    size_t  n;

    n = a->info.chunk_count;

    check(a->status == b->status);
    check(a->stored == b->stored);
    check(n == b->info.chunk_count);
    check(a->info.raw_size == b->info.raw_size);
    check(a->info.stored_size == b->info.stored_size);
    check(memcmp(a->info.hashes, b->info.hashes, n * 32) == 0);
    check(memcmp(a->info.raw_ends, b->info.raw_ends, n * 4) == 0);
    check(memcmp(a->info.stored_ends, b->info.stored_ends, n * 4) == 0);

    if (a->status == XET_OK) {
        check(xet_hash_equal(&a->info.hash, &b->info.hash));
    }
}


static void
fuzz_good(const uint8_t *data, const fuzz_verdict_t *r)
{
    uint32_t                i, raw, stored, end;
    unsigned                version;
    xet_hash_t              hash;
    xet_merkle_t            m;
    xorb_bytes_t            b;
    fuzz_verdict_t          again;
    const xet_xorb_info_t  *info;

    info = &r->info;

    check(info->chunk_count >= 1 && info->chunk_count <= XET_XORB_CHUNKS_MAX);
    check(info->stored_size == r->stored && r->stored <= FUZZ_SIZE_MAX);

    raw = 0;
    stored = 0;
    xet_merkle_init(&m, &xet_suite_default);

    for (i = 0; i < info->chunk_count; i++) {
        end = xet_get_u32(info->raw_ends + 4 * i);
        check(end > raw && end - raw <= XET_CHUNK_MAX);
        xet_merkle_add(&m, info->hashes + 32 * i, end - raw);
        raw = end;

        check(xet_get_u24(data + stored + 1) + stored + 8
              == xet_get_u32(info->stored_ends + 4 * i));
        stored = xet_get_u32(info->stored_ends + 4 * i);
    }

    check(raw == info->raw_size && stored == info->stored_size);

    xet_merkle_finish(&m, &hash);
    check(xet_hash_equal(&hash, &info->hash));

    for (version = 0; version < 2; version++) {
        memset(&b, 0, sizeof(b));
        xorb_bytes_put(&b, data, stored);
        check(xet_xorb_footer_write(info, version, xorb_bytes_write, &b)
              == XET_OK);

        again = fuzz_verify(b.data, b.len, &hash, b.data[b.len / 2] | 16);
        fuzz_same(r, &again);

        xet_xorb_verifier_destroy(again.v);
        xorb_bytes_free(&b);
    }

    hash.bytes[stored % 32] ^= 1;
    again = fuzz_verify(data, stored, &hash, 0);
    check(again.status == XET_XORB_HASH);
    xet_xorb_verifier_destroy(again.v);
}


static void
fuzz_footer(const uint8_t *data, size_t size)
{
    size_t          at, len;
    uint8_t         flip;
    xorb_bytes_t    b;
    fuzz_verdict_t  r, damaged;

    if (size < 4) {
        return;
    }

    r = fuzz_verify(data + 3, size - 3, NULL, 0);

    if (r.status != XET_OK) {
        xet_xorb_verifier_destroy(r.v);
        return;
    }

    memset(&b, 0, sizeof(b));
    xorb_bytes_put(&b, data + 3, r.stored);
    check(xet_xorb_footer_write(&r.info, data[2] % 2, xorb_bytes_write, &b)
          == XET_OK);

    len = b.len - r.stored;
    at = xet_get_u16(data) % len;
    flip = (uint8_t) (data[2] >> 1 | (data[2] < 2));
    b.data[r.stored + at] ^= flip;

    damaged = fuzz_verify(b.data, b.len, &r.info.hash, flip);

    if (at < 7) {
        check(damaged.status == XET_XORB_VERSION
              || b.data[r.stored] == 0);
    } else if (at < len - 20 || at >= len - 4) {
        check(damaged.status == XET_XORB_FOOTER);

    } else {
        check(damaged.status == XET_OK);
    }

    check(damaged.stored == r.stored || b.data[r.stored] == 0);

    xet_xorb_verifier_destroy(damaged.v);
    xet_xorb_verifier_destroy(r.v);
    xorb_bytes_free(&b);
}


/*
 * Two fields describe each chunk: a byte with scheme and kind, and u16 length.
 */

static void
fuzz_writer(const uint8_t *data, size_t size)
{
    size_t              len;
    uint8_t            *raw;
    unsigned            scheme;
    xet_hash_t          hash;
    xet_status_t        rc;
    xorb_bytes_t        b;
    fuzz_verdict_t      r, w;
    xet_xorb_writer_t  *writer;

    static const char  kinds[] = "rtf";

    memset(&b, 0, sizeof(b));
    writer = xet_xorb_writer_create(&xet_suite_default, xorb_bytes_write, &b);
    raw = malloc(XET_CHUNK_MAX + 2);
    check(writer != NULL && raw != NULL);

    for ( /* void */ ; size >= 3; data += 3, size -= 3) {
        scheme = data[0] & 3;
        scheme = scheme == 3 ? XET_SCHEME_AUTO : scheme;
        len = (xet_get_u16(data + 1) >> (data[0] >> 4)) * 2 + data[0] % 3;

        if (b.len > FUZZ_SIZE_MAX - XET_CHUNK_MAX - 8
            || !xet_xorb_writer_fits(writer, 1))
        {
            break;
        }

        xorb_bytes_fill(raw, len, kinds[(data[0] >> 2) % 3], data[1]);
        xet_hash_chunk(&xet_suite_default, raw, len, &hash);

        rc = xet_xorb_writer_add(writer, raw, len, scheme,
                                 data[2] & 1 ? &hash : NULL);

        check((rc == XET_OK) == (len >= 1 && len <= XET_CHUNK_MAX));
    }

    w.status = xet_xorb_writer_finish(writer, size > 0 && data[0] & 1);
    w.info = *xet_xorb_writer_info(writer);
    w.stored = w.info.stored_size;

    check(w.status == (w.info.chunk_count ? XET_OK : XET_XORB_EMPTY));

    r = fuzz_verify(b.data, b.len, w.status == XET_OK ? &w.info.hash : NULL,
                    (uint32_t) b.len | 16);
    fuzz_same(&w, &r);

    xet_xorb_verifier_destroy(r.v);
    xet_xorb_writer_destroy(writer);
    xorb_bytes_free(&b);
    free(raw);
}
