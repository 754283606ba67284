
/*
 * Tests the xorb verifier: reference xorbs, every error, every split and every
 * truncation of a small xorb, footers of both versions, and the limits.
 */

#include <jansson.h>

#include "xet_hash.h"
#include "xet_test.h"
#include "xet_xorb.h"
#include "xorb_bytes.h"
#include "xet_reference.h"


#define SIZE_MAX_DEFAULT  (80u << 20)

#define field(n)  (size_t) json_integer_value(json_array_get(record, n))


typedef struct {
    xet_status_t          status;
    uint64_t              stored;      /* sum of feed()'s *stored */
    xet_xorb_info_t       info;        /* its arrays are freed */
    uint32_t              tables;      /* checksum of the arrays of info */
} verdict_t;


static const xet_hash_t  *expected;
static uint64_t           size_max = SIZE_MAX_DEFAULT;


static uint32_t
checksum(uint32_t sum, const uint8_t *p, size_t n)
{
    while (n--) {
        sum = sum * 16777619u ^ *p++;
    }

    return sum;
}


/* Verifies a piece of "first" bytes, then pieces of "step" bytes. */

static verdict_t
verify(const uint8_t *data, size_t len, size_t first, size_t step)
{
    size_t                  n, pos, stored;
    uint8_t                *piece;
    verdict_t               r;
    xet_status_t            rc;
    const xet_xorb_info_t  *info;
    xet_xorb_verifier_t    *v;

    memset(&r, 0, sizeof(r));

    v = xet_xorb_verifier_create(&xet_suite_default, expected, size_max);
    rc = XET_OK;
    n = first;

    for (pos = 0; pos < len && rc == XET_OK; pos += n, n = step) {
        n = len - pos < n ? len - pos : n;

        if (step < 64) {
            rc = xet_xorb_verifier_feed(v, data + pos, n, &stored);

        } else {
            /* a block of the exact size, so that ASan detects a read past it */
            piece = malloc(n);
            memcpy(piece, data + pos, n);
            rc = xet_xorb_verifier_feed(v, piece, n, &stored);
            free(piece);
        }

        if (stored > n) {
            rc = XET_STATUS_MAX;
        }

        r.stored += stored;
    }

    if (rc == XET_OK) {
        rc = xet_xorb_verifier_finish(v);
    }

    info = xet_xorb_verifier_info(v);

    r.status = rc;
    r.info = *info;

    r.tables = checksum(1, info->hashes, info->chunk_count * 32);
    r.tables = checksum(r.tables, info->raw_ends, info->chunk_count * 4);
    r.tables = checksum(r.tables, info->stored_ends, info->chunk_count * 4);

    xet_xorb_verifier_destroy(v);

    return r;
}


static verdict_t
verify_bytes(const xorb_bytes_t *b)
{
    return verify(b->data, b->len, b->len, b->len);
}


static int
same(const verdict_t *a, const verdict_t *b)
{
    return a->status == b->status && a->stored == b->stored
           && a->tables == b->tables
           && a->info.chunk_count == b->info.chunk_count
           && a->info.raw_size == b->info.raw_size
           && a->info.stored_size == b->info.stored_size
           && (a->status != XET_OK
               || xet_hash_equal(&a->info.hash, &b->info.hash));
}


static int
write_chunk(xet_xorb_writer_t *w, const uint8_t *data, size_t len,
    unsigned scheme)
{
    return xet_xorb_writer_add(w, data, len, scheme, NULL) == XET_OK;
}


/* Makes three chunks, one per scheme, of 2049, 1600 and 100 raw bytes. */

static xet_hash_t
small_xorb(xorb_bytes_t *b, int footer)
{
    int                 ok;
    uint8_t             raw[2049];
    xet_hash_t          hash;
    xet_xorb_writer_t  *w;

    b->len = 0;
    w = xet_xorb_writer_create(&xet_suite_default, xorb_bytes_write, b);

    xorb_bytes_fill(raw, sizeof(raw), 't', 1);
    ok = write_chunk(w, raw, 2049, XET_SCHEME_LZ4);

    xorb_bytes_fill(raw, sizeof(raw), 'f', 2);
    ok &= write_chunk(w, raw, 1600, XET_SCHEME_BG4_LZ4);

    xorb_bytes_fill(raw, sizeof(raw), 'r', 3);
    ok &= write_chunk(w, raw, 100, XET_SCHEME_NONE);

    ok &= xet_xorb_writer_finish(w, footer) == XET_OK;
    hash = xet_xorb_writer_info(w)->hash;

    xet_xorb_writer_destroy(w);

    if (!ok) {
        xet_ok(0, "a small xorb");
    }

    return hash;
}


static void
footer_v0(xorb_bytes_t *b, const verdict_t *r, const xet_hash_t *hash)
{
    xet_xorb_info_t       info;
    xet_xorb_verifier_t  *v;
    size_t                stored;

    v = xet_xorb_verifier_create(&xet_suite_default, NULL, size_max);
    xet_xorb_verifier_feed(v, b->data, b->len, &stored);
    xet_xorb_verifier_finish(v);

    info = *xet_xorb_verifier_info(v);

    /* built by hand, not by the code under test */

    xorb_bytes_put(b, "XETBLOB", 8);
    xorb_bytes_put(b, hash->bytes, 32);
    xorb_bytes_put(b, "\3\0\0", 4);
    xorb_bytes_put(b, info.stored_ends, 12);
    xorb_bytes_put(b, info.hashes, 96);
    xorb_bytes_put(b, "sixteen anything", 16);
    xorb_bytes_put(b, "\250\0\0", 4);          /* 60 + 36 * 3 = 168 */

    xet_is_u64(info.chunk_count, r->info.chunk_count, "v0: three chunks");

    xet_xorb_verifier_destroy(v);
}


static void
check_splits(const xorb_bytes_t *b, const char *name, xet_status_t status)
{
    size_t     i, bad;
    verdict_t  whole, r;

    whole = verify_bytes(b);
    xet_ok(whole.status == status, "%s: %s", name,
           xet_status_text(whole.status));

    bad = 0;

    for (i = 1; i <= b->len; i++) {
        r = verify(b->data, b->len, i, b->len);
        bad += !same(&whole, &r);
    }

    for (i = 1; i < 20; i++) {
        r = verify(b->data, b->len, i, i);
        bad += !same(&whole, &r);
    }

    xet_is_u64(bad, 0, "  by any split");
}


static void
test_small(void)
{
    size_t        region;
    verdict_t     r;
    xet_hash_t    hash, single;
    xet_merkle_t  m;
    xorb_bytes_t  b;

    memset(&b, 0, sizeof(b));

    hash = small_xorb(&b, 0);
    region = b.len;
    r = verify_bytes(&b);

    xet_is_u64(r.status, XET_OK, "a small xorb");
    xet_is_u64(r.info.chunk_count, 3, "  chunks");
    xet_is_u64(r.info.raw_size, 2049 + 1600 + 100, "  raw size");
    xet_is_u64(r.info.stored_size, region, "  stored size");
    xet_is_u64(r.stored, region, "  bytes to keep");
    xet_ok(xet_hash_equal(&hash, &r.info.hash), "  hash of the writer");

    expected = &hash;
    check_splits(&b, "expected hash", XET_OK);

    hash.bytes[31] ^= 0x80;
    check_splits(&b, "another hash", XET_XORB_HASH);
    hash.bytes[31] ^= 0x80;
    expected = NULL;

    hash = small_xorb(&b, 1);
    xet_is_u64(b.len, region + 92 + 40 * 3 + 4, "a v1 footer's length");

    expected = &hash;
    check_splits(&b, "with a v1 footer", XET_OK);
    r = verify_bytes(&b);
    xet_is_u64(r.stored, region, "  is not to be kept");

    hash.bytes[0] ^= 1;
    check_splits(&b, "another hash and a footer", XET_XORB_HASH);
    hash.bytes[0] ^= 1;

    b.len = region;
    footer_v0(&b, &r, &hash);
    check_splits(&b, "with a v0 footer", XET_OK);
    r = verify_bytes(&b);
    xet_is_u64(r.stored, region, "  is not to be kept");
    expected = NULL;

    /* the hash of a single-chunk xorb is the hash of its chunk */

    b.len = 0;
    xorb_bytes_chunk(&b, 0, "hello", 5, 5);
    xet_hash_chunk(&xet_suite_default, "hello", 5, &single);
    r = verify_bytes(&b);
    xet_ok(r.status == XET_OK && xet_hash_equal(&r.info.hash, &single),
           "one chunk: the xorb hash is the chunk hash");

    xorb_bytes_chunk(&b, 0, "hello", 5, 5);
    xet_merkle_init(&m, &xet_suite_default);
    xet_merkle_add(&m, single.bytes, 5);
    xet_merkle_add(&m, single.bytes, 5);
    xet_merkle_finish(&m, &hash);
    r = verify_bytes(&b);
    xet_ok(r.status == XET_OK && xet_hash_equal(&r.info.hash, &hash),
           "the same chunk twice");

    xorb_bytes_free(&b);
}


static void
test_truncated(void)
{
    size_t        i, first, second, bad;
    verdict_t     r;
    xet_hash_t    hash;
    xorb_bytes_t  b;

    memset(&b, 0, sizeof(b));

    hash = small_xorb(&b, 0);
    first = 8 + xet_get_u24(b.data + 1);
    second = first + 8 + xet_get_u24(b.data + first + 1);
    bad = 0;

    for (i = 1; i < second; i++) {

        if (i == first) {
            continue;
        }

        r = verify(b.data, i, i, i);
        bad += r.status != XET_XORB_TRUNCATED || r.stored != i
               || r.info.chunk_count != (i > first);

        r = verify(b.data, i, i / 2 + 1, 40);
        bad += r.status != XET_XORB_TRUNCATED || r.stored != i;
    }

    xet_is_u64(bad, 0, "two chunks cut at any byte");

    r = verify(b.data, 0, 1, 1);
    xet_is_u64(r.status, XET_XORB_EMPTY, "cut to nothing");

    r = verify(b.data, first, first, 1);
    xet_is_u64(r.status, XET_OK, "cut to one chunk: a xorb");

    expected = &hash;
    r = verify(b.data, first, first, 1);
    xet_is_u64(r.status, XET_XORB_HASH, "  of another hash");
    expected = NULL;

    xorb_bytes_free(&b);
}


static void
test_errors(void)
{
    size_t        i, n;
    uint8_t       raw[1000], packed[1000];
    xet_codec_t  *codec;
    xorb_bytes_t  b;

    static const struct {
        unsigned      version;
        size_t        stored;
        unsigned      scheme;
        size_t        raw;
        xet_status_t  status;
        const char   *name;
    } t[] = {
        { 1, 9, 0, 9, XET_XORB_VERSION, "version 1" },
        { 'X', 9, 0, 9, XET_XORB_VERSION, "version X" },
        { 0, 9, XET_SCHEMES, 9, XET_XORB_SCHEME, "an unknown scheme" },
        { 0, 9, 99, 9, XET_XORB_SCHEME, "scheme 99" },
        { 0, 0, 0, 9, XET_XORB_STORED_LEN, "stored length 0" },
        { 0, 131073, 1, 9, XET_XORB_STORED_LEN, "stored length 131073" },
        { 0, 9, 1, 0, XET_XORB_RAW_LEN, "raw length 0" },
        { 0, 9, 1, 131073, XET_XORB_RAW_LEN, "raw length 131073" },
        { 0, 9, 0, 10, XET_XORB_DATA_LEN, "plain, lengths differ" },
        { 0, 9, 1, 9, XET_XORB_DATA, "no LZ4 frame" },
        { 0, 9, 2, 9, XET_XORB_DATA, "no LZ4 frame, regrouped" }
    };

    memset(&b, 0, sizeof(b));

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        b.len = 0;
        xorb_bytes_chunk(&b, 0, "good", 4, 4);
        xorb_bytes_header(&b, t[i].version, t[i].stored, t[i].scheme,
                          t[i].raw);
        xorb_bytes_put(&b, "payload..", 9);
        xorb_bytes_chunk(&b, 0, "good", 4, 4);

        check_splits(&b, t[i].name, t[i].status);
    }

    codec = xet_codec_create(&xet_suite_default);
    xorb_bytes_fill(raw, sizeof(raw), 't', 5);

    for (i = 1; i <= 2; i++) {
        n = sizeof(packed);
        xet_codec_encode(codec, (unsigned) i, raw, sizeof(raw), packed, &n);

        b.len = 0;
        xorb_bytes_chunk(&b, (unsigned) i, packed, n, sizeof(raw) - 1);
        check_splits(&b, "raw length too short", XET_XORB_DATA_LEN);

        b.len = 0;
        xorb_bytes_chunk(&b, (unsigned) i, packed, n, sizeof(raw) + 1);
        check_splits(&b, "raw length too long", XET_XORB_DATA_LEN);

        b.len = 0;
        xorb_bytes_chunk(&b, (unsigned) i, packed, n - 4, sizeof(raw));
        check_splits(&b, "no end mark", XET_XORB_DATA);

        b.len = 0;
        xorb_bytes_chunk(&b, 3 - (unsigned) i, packed, n, sizeof(raw));
        check_splits(&b, "another scheme: another chunk", XET_OK);
    }

    b.len = 0;
    check_splits(&b, "an empty body", XET_XORB_EMPTY);
    xorb_bytes_put(&b, "XETBLOB\1", 8);
    check_splits(&b, "nothing but a footer", XET_XORB_EMPTY);

    b.len = 0;
    xorb_bytes_chunk(&b, 0, "good", 4, 4);
    size_max = 12;
    check_splits(&b, "a region of size_max", XET_OK);
    size_max = 11;
    check_splits(&b, "a region one byte larger", XET_XORB_SIZE);
    size_max = SIZE_MAX_DEFAULT;

    xet_codec_destroy(codec);
    xorb_bytes_free(&b);
}


static void
test_footer_bytes(int version)
{
    size_t        i, region, spare, bad;
    verdict_t     r;
    xet_hash_t    hash;
    xorb_bytes_t  b;

    memset(&b, 0, sizeof(b));

    hash = small_xorb(&b, 0);
    region = b.len;

    if (version == 1) {
        small_xorb(&b, 1);

    } else {
        r = verify_bytes(&b);
        footer_v0(&b, &r, &hash);
    }

    spare = b.len - 20;
    bad = 0;

    for (i = region; i < b.len; i++) {
        b.data[i] ^= 0x10;
        r = verify_bytes(&b);

        if (i < region + 7) {
            bad += r.status != XET_XORB_VERSION;

        } else if (i >= spare && i < spare + 16) {
            bad += r.status != XET_OK;

        } else {
            bad += r.status != XET_XORB_FOOTER;
        }

        bad += r.stored != region;
        b.data[i] ^= 0x10;
    }

    xet_ok(bad == 0, "v%d footer: any byte but the spare ones matters",
           version);

    bad = 0;

    for (i = region + 1; i < b.len; i++) {
        r = verify(b.data, i, i, i);
        bad += r.status != XET_XORB_TRUNCATED;
    }

    xet_ok(bad == 0, "v%d footer, cut at any byte", version);

    b.data[region + 7] ^= 1;
    r = verify_bytes(&b);
    xet_is_u64(r.status, XET_XORB_FOOTER, "  called by the other version");
    b.data[region + 7] ^= 1;

    xorb_bytes_put(&b, "", 1);
    check_splits(&b, "a byte behind the footer", XET_XORB_FOOTER);

    xorb_bytes_free(&b);
}


/* Builds a v1 footer by hand, independently of the writer. */

static void
test_footer_layout(void)
{
    size_t        region;
    verdict_t     r;
    xet_hash_t    hash;
    xorb_bytes_t  b;

    memset(&b, 0, sizeof(b));

    xorb_bytes_chunk(&b, 0, "hello", 5, 5);
    region = b.len;
    xet_hash_chunk(&xet_suite_default, "hello", 5, &hash);

    xorb_bytes_put(&b, "XETBLOB\1", 8);
    xorb_bytes_put(&b, hash.bytes, 32);
    xorb_bytes_put(&b, "XBLBHSH\0\1\0\0\0", 12);
    xorb_bytes_put(&b, hash.bytes, 32);
    xorb_bytes_put(&b, "XBLBBND\1\1\0\0\0", 12);
    xorb_bytes_put(&b, "\15\0\0\0\5\0\0\0", 8);
    xorb_bytes_put(&b, "\1\0\0\0\134\0\0\0\60\0\0\0", 12);
    xorb_bytes_put(&b, "nonce...........", 16);
    xorb_bytes_put(&b, "\204\0\0\0", 4);

    r = verify_bytes(&b);

    xet_is_u64(r.status, XET_OK, "a v1 footer by hand");
    xet_is_u64(r.stored, region, "  after a region of 13 bytes");

    xorb_bytes_free(&b);
}


static void
test_sticky(void)
{
    size_t                stored;
    xorb_bytes_t          b;
    xet_xorb_verifier_t  *v;

    memset(&b, 0, sizeof(b));
    xorb_bytes_chunk(&b, 0, "hello", 5, 5);

    v = xet_xorb_verifier_create(&xet_suite_default, NULL, 100);

    xet_is_u64(xet_xorb_verifier_feed(v, b.data, 0, &stored), XET_OK,
               "feeding nothing is fine");
    xet_is_u64(xet_xorb_verifier_feed(v, (uint8_t *) "\1", 1, &stored),
               XET_XORB_VERSION, "an error");
    xet_is_u64(xet_xorb_verifier_feed(v, b.data, b.len, &stored),
               XET_XORB_VERSION, "  stays");
    xet_is_u64(stored, 0, "  keeps nothing");
    xet_is_u64(xet_xorb_verifier_finish(v), XET_XORB_VERSION,
               "  to the end");

    xet_xorb_verifier_destroy(v);

    v = xet_xorb_verifier_create(&xet_suite_default, NULL, 100);

    xet_xorb_verifier_feed(v, b.data, b.len, &stored);
    xet_is_u64(xet_xorb_verifier_finish(v), XET_OK, "finish");
    xet_is_u64(xet_xorb_verifier_finish(v), XET_OK, "finish again");
    xet_is_u64(xet_xorb_verifier_feed(v, b.data, b.len, &stored),
               XET_INTERNAL, "nothing may follow");

    xet_xorb_verifier_destroy(v);
    xet_xorb_verifier_destroy(NULL);
    xorb_bytes_free(&b);
}


static void
test_limits(void)
{
    size_t        i, n;
    uint8_t      *zeros, *packed;
    verdict_t     r;
    xorb_bytes_t  b;
    xet_codec_t  *codec;

    memset(&b, 0, sizeof(b));

    for (i = 0; i < XET_XORB_CHUNKS_MAX; i++) {
        xorb_bytes_chunk(&b, 0, &i, 1, 1);
    }

    r = verify_bytes(&b);
    xet_is_u64(r.status, XET_OK, "8192 chunks");
    xet_is_u64(r.info.chunk_count, 8192, "  are counted");
    xet_is_u64(r.info.stored_size, 8192 * 9, "  and stored");

    xorb_bytes_chunk(&b, 0, "a", 1, 1);
    r = verify_bytes(&b);
    xet_is_u64(r.status, XET_XORB_CHUNKS, "8193 chunks");
    r = verify(b.data, b.len, 5, 7);
    xet_is_u64(r.status, XET_XORB_CHUNKS, "  in pieces");

    /* the largest valid xorb: 1 GiB raw */

    zeros = calloc(1, XET_CHUNK_MAX);
    packed = malloc(XET_CHUNK_MAX);
    codec = xet_codec_create(&xet_suite_default);
    b.len = 0;
    n = XET_CHUNK_MAX;

    xet_is_u64(xet_codec_encode(codec, XET_SCHEME_LZ4, zeros, XET_CHUNK_MAX,
                                packed, &n),
               XET_OK, "a chunk of zeros");

    for (i = 0; i < XET_XORB_CHUNKS_MAX; i++) {
        xorb_bytes_chunk(&b, 1, packed, n, XET_CHUNK_MAX);
    }

    r = verify(b.data, b.len, 1000, 65536);
    xet_is_u64(r.status, XET_OK, "8192 chunks of 128 KiB");
    xet_is_u64(r.info.raw_size, 1 << 30, "  are 1 GiB");

    free(zeros);
    free(packed);
    xet_codec_destroy(codec);
    xorb_bytes_free(&b);
}


static uint8_t *
read_data(const char *name, size_t *len)
{
    const char  *path;

    path = xet_test_data(name);

    return path ? xet_test_read(path, len) : NULL;
}


static void
check_reference(const uint8_t *data, size_t len, json_t *records,
    const uint8_t *csv, size_t csv_len)
{
    size_t                  i, stored, start, raw, bad;
    uint8_t                 text[64], out[XET_CHUNK_MAX];
    json_t                 *record;
    xet_codec_t            *codec;
    const char             *want;
    xet_xorb_verifier_t    *v;
    const xet_xorb_info_t  *info;

    v = xet_xorb_verifier_create(&xet_suite_default, NULL, size_max);

    xet_is_u64(xet_xorb_verifier_feed(v, data, len, &stored), XET_OK,
               "reference xorb");
    xet_is_u64(xet_xorb_verifier_finish(v), XET_OK, "  finish");
    xet_is_u64(stored, len, "  all bytes are of the chunk region");

    info = xet_xorb_verifier_info(v);

    xet_is_u64(info->chunk_count, json_array_size(records), "  chunks");
    xet_is_u64(info->raw_size, csv_len, "  raw size");
    xet_is_u64(info->stored_size, len, "  stored size");

    codec = xet_codec_create(&xet_suite_default);
    bad = 0;
    start = 0;
    raw = 0;

    for (i = 0; i < info->chunk_count; i++) {
        record = json_array_get(records, i);
        bad += field(0) != start;
        bad += start + 8 + field(2) != xet_get_u32(info->stored_ends + 4 * i);
        bad += raw + field(3) != xet_get_u32(info->raw_ends + 4 * i);

        xet_hash_print(text, (const xet_hash_t *) (info->hashes + 32 * i));
        want = json_string_value(json_array_get(record, 4));
        bad += want == NULL || memcmp(text, want, 64) != 0;

        bad += xet_codec_decode(codec, (unsigned) field(1), data + start + 8,
                                field(2), out, field(3)) != XET_OK;
        bad += raw + field(3) > csv_len
               || memcmp(out, csv + raw, field(3)) != 0;

        start += 8 + field(2);
        raw += field(3);
    }

    xet_is_u64(bad, 0, "  offsets, lengths, hashes and bytes as published");

    xet_codec_destroy(codec);
    xet_xorb_verifier_destroy(v);
}


static void
test_reference(void)
{
    size_t      len, csv_len;
    json_t     *root;
    uint8_t    *data, *csv;
    verdict_t   whole, r;

    data = read_data(XET_REFERENCE "ev-population.xorb.first-10-chunks", &len);
    csv = read_data("xet/derived/ev-population.first-10-chunks.csv",
                    &csv_len);

    if (data == NULL || csv == NULL) {
        xet_skip("reference data absent");
        free(data);
        free(csv);
        return;
    }

    root = json_load_file(xet_test_data("xet/derived/"
                          "ev-population.xorb.first-10-chunks.index.json"),
                          0, NULL);

    check_reference(data, len, json_object_get(root, "records"), csv,
                    csv_len);

    whole = verify(data, len, len, len);

    r = verify(data, len, 1, 1);
    xet_ok(same(&whole, &r), "  byte by byte");
    r = verify(data, len, 1000, 1448);
    xet_ok(same(&whole, &r), "  in packets");
    r = verify(data, len, 28959, 21510);
    xet_ok(same(&whole, &r), "  near the ends of chunks");

    json_decref(root);
    free(data);
    free(csv);
}


/* Checks the hashes and lengths of the first three chunks of the list. */

static void
test_reference_list(void)
{
    char                   file[160];
    size_t                 len, i, n, bad;
    uint8_t               *data;
    xet_hash_t             hash;
    uint8_t                text[XET_HASH_STR_LEN];
    xet_reference_chunk_t  chunks[3];

    n = xet_reference_chunks(chunks, 3);

    if (n == 0) {
        xet_skip("reference data absent");
        return;
    }

    bad = 0;

    for (i = 0; i < n; i++) {
        xet_hash_print(text, &chunks[i].hash);
        snprintf(file, sizeof(file), XET_REFERENCE "%.*s.chunk",
                 (int) sizeof(text), (char *) text);

        data = read_data(file, &len);
        if (data == NULL) {
            bad++;
            continue;
        }

        xet_hash_chunk(&xet_suite_default, data, len, &hash);
        bad += len != chunks[i].size
               || !xet_hash_equal(&hash, &chunks[i].hash);

        free(data);
    }

    xet_is_u64(i, 3, "three chunk files");
    xet_is_u64(bad, 0, "  have the hashes of the list");
}


int
main(void)
{
    test_small();
    test_truncated();
    test_errors();
    test_footer_bytes(0);
    test_footer_bytes(1);
    test_footer_layout();
    test_sticky();
    test_limits();
    test_reference();
    test_reference_list();

    return xet_done();
}
