
/*
 * Tests the shard builder: rebuilds the reference shards byte for byte, from
 * the parser's records and from just a chunk list; and writes known records.
 */


#include "xet_test.h"
#include "xet_test_pool.h"
#include "xet_test_shard.h"
#include "xet_reference.h"


#define EV  XET_REFERENCE "ev-population.csv.shard"


static const char  test_file_hash[] =
    "118a53328412787fee04011dcf82fdc4acf3a4a1eddec341c910d30a306aaf97";
static const char  test_xorb_hash[] =
    "eea25d6ee393ccae385820daed127b96ef0ea034dfb7cf6da3a950ce334b7632";
static const char  test_range_hash[] =
    "d81c11b1fc9bc2a25587108c675bbfe65ca2e5d350b0cd92c58329fcc8444178";

/*
 * The SHA-256 of the reference file:
 * f41255b252f776125f2b657136654e4d4d5d2ccf8ef4db0ec186bd1981b69734.
 */

static const uint8_t  test_sha256[32] = {
    0xf4, 0x12, 0x55, 0xb2, 0x52, 0xf7, 0x76, 0x12,
    0x5f, 0x2b, 0x65, 0x71, 0x36, 0x65, 0x4e, 0x4d,
    0x4d, 0x5d, 0x2c, 0xcf, 0x8e, 0xf4, 0xdb, 0x0e,
    0xc1, 0x86, 0xbd, 0x19, 0x81, 0xb6, 0x97, 0x34
};


/* The chunk list of the reference file, in the store's format. */

typedef struct {
    uint32_t         n;
    uint8_t          hashes[796 * 32];
    uint8_t          raw_ends[796 * 4];
    xet_xorb_list_t  list;
} test_chunks_t;


static test_chunks_t  test_chunks;


static xet_hash_t
test_hash(const char *text)
{
    xet_hash_t  hash;

    memset(&hash, 0, sizeof(hash));
    (void) xet_hash_parse(&hash, (const uint8_t *) text, strlen(text));

    return hash;
}


static int
test_chunks_load(void)
{
    uint32_t  i, raw;

    static xet_reference_chunk_t  chunks[XET_REFERENCE_CHUNKS];

    test_chunks.n = (uint32_t) xet_reference_chunks(chunks,
                                                    XET_REFERENCE_CHUNKS);
    raw = 0;

    for (i = 0; i < test_chunks.n; i++) {
        raw += chunks[i].size;

        memcpy(test_chunks.hashes + i * 32, chunks[i].hash.bytes, 32);
        xet_put_u32(test_chunks.raw_ends + i * 4, raw);
    }

    test_chunks.list.hash = test_hash(test_xorb_hash);
    test_chunks.list.chunk_count = test_chunks.n;
    test_chunks.list.raw_size = raw;
    test_chunks.list.hashes = test_chunks.hashes;
    test_chunks.list.raw_ends = test_chunks.raw_ends;

    return test_chunks.n == XET_REFERENCE_CHUNKS && raw == XET_REFERENCE_SIZE;
}


static void
test_equal(xet_test_pool_t *pool, const xet_buf_t *b, const char *name)
{
    size_t    len, want_len;
    uint8_t  *data, *want;

    want = xet_reference_load(name, &want_len);

    if (want == NULL) {
        return;
    }

    data = xet_test_flatten(pool, b, &len);

    xet_is_u64(len, want_len, "length");
    xet_ok(len == want_len && memcmp(data, want, len) == 0,
           "%s, byte for byte", name);

    free(want);
}


static void
test_from_chunks(void)
{
    xet_buf_t           b;
    xet_hash_t          hash;
    xet_test_pool_t     pool;
    xet_shard_footer_t  f;

    memset(&pool, 0, sizeof(pool));

    xet_buf_init(&b, xet_test_alloc, &pool, 0);

    xet_shard_build_header(&b, 0);

    hash = test_hash(test_file_hash);
    xet_shard_build_file(&b, &hash, XET_SHARD_FILE_VERIFICATION
                                    | XET_SHARD_FILE_METADATA, 1);
    xet_shard_build_term(&b, &test_chunks.list.hash, 63527244, 0, 796);

    xet_hash_verification(&xet_suite_default, test_chunks.hashes, 796, &hash);
    xet_shard_build_verification(&b, &hash);

    xet_shard_build_metadata(&b, test_sha256);
    xet_shard_build_bookend(&b);
    xet_shard_build_xorb_block(&b, &test_chunks.list, NULL);
    xet_shard_build_bookend(&b);

    test_equal(&pool, &b, EV ".verification-no-footer");

    memset(&f, 0, sizeof(f));
    hash = test_hash(test_range_hash);

    xet_buf_init(&b, xet_test_alloc, &pool, 48);

    xet_shard_build_header(&b, XET_SHARD_FOOTER_LEN);
    xet_shard_build_bookend(&b);

    f.files_offset = XET_SHARD_RECORD_LEN;
    f.xorbs_offset = b.size;

    memset(f.key, 0, sizeof(f.key));
    memcpy(f.key, "\x78\x56\x34\x12\x78\x56\x34\x12", 8);
    memcpy(f.key + 8, f.key, 8);
    memcpy(f.key + 16, f.key, 16);

    xet_shard_build_xorb_block(&b, &test_chunks.list, f.key);
    xet_shard_build_bookend(&b);

    f.footer_offset = b.size;
    f.created = 0x68d31505;
    f.expires = 0x68eec485;
    f.stored = 63527244;

    xet_shard_build_footer(&b, &f);

    test_equal(&pool, &b, EV ".dedupe");

    xet_test_pool_free(&pool);
}


/* Passes each record from the parser straight to the builder. */

static xet_status_t
test_rebuild(void *ctx, const xet_shard_record_t *rec)
{
    xet_test_shard_rebuild(ctx, rec);

    return XET_OK;
}


static void
test_reserialise(const char *name)
{
    size_t              len;
    uint8_t            *data, *p;
    xet_buf_t           b;
    xet_test_pool_t     pool;
    xet_shard_footer_t  f;
    xet_shard_parser_t  parser;

    data = xet_reference_load(name, &len);

    if (data == NULL) {
        return;
    }

    memset(&pool, 0, sizeof(pool));

    xet_buf_init(&b, xet_test_alloc, &pool, 0);
    xet_shard_parser_init(&parser, test_rebuild, &b);

    xet_shard_parser_feed(&parser, data, len);
    xet_is_u64(xet_shard_parser_finish(&parser), XET_OK, "parses");

    if (parser.offset + XET_SHARD_FOOTER_LEN == len) {
        p = data + parser.offset;

        xet_is_u64(xet_get_u64(p), XET_SHARD_FOOTER_VERSION,
                   "footer version");

        f.files_offset = xet_get_u64(p + 8);
        f.xorbs_offset = xet_get_u64(p + 16);
        f.footer_offset = xet_get_u64(p + 192);
        memcpy(f.key, p + 72, 32);
        f.created = xet_get_u64(p + 104);
        f.expires = xet_get_u64(p + 112);
        f.stored_on_disk = xet_get_u64(p + 168);
        f.materialized = xet_get_u64(p + 176);
        f.stored = xet_get_u64(p + 184);

        xet_is_u64(f.xorbs_offset, parser.files_end + XET_SHARD_RECORD_LEN,
                   "the xorbs begin behind the files' end");

        xet_shard_build_footer(&b, &f);
    }

    test_equal(&pool, &b, name);

    xet_test_pool_free(&pool);
    free(data);
}


static int
test_zeros(const uint8_t *p, size_t n)
{
    while (n) {
        if (p[--n]) {
            return 0;
        }
    }

    return 1;
}


/*
 * Builds a record of each kind, with different values for all bytes of its
 * fields.  Checks that each field is at its offset, and that all other bytes
 * are zero.
 */

static void
test_records(void)
{
    size_t              len;
    uint8_t            *p, ones[48];
    unsigned            i;
    xet_buf_t           b;
    xet_hash_t          h;
    xet_test_pool_t     pool;
    xet_shard_footer_t  f;

    memset(&pool, 0, sizeof(pool));
    memset(ones, 0xff, sizeof(ones));

    for (i = 0; i < 32; i++) {
        h.bytes[i] = (uint8_t) (i + 1);
    }

    xet_buf_init(&b, xet_test_alloc, &pool, 0);

    xet_shard_build_header(&b, 0x0807060504030201);
    xet_shard_build_file(&b, &h, 0x44332211, 0x88776655);
    xet_shard_build_term(&b, &h, 0x44332211, 0x88776655, 0xccbbaa99);
    xet_shard_build_verification(&b, &h);
    xet_shard_build_metadata(&b, h.bytes);
    xet_shard_build_bookend(&b);
    xet_shard_build_xorb(&b, &h, 0x44332211, 0x88776655, 0xccbbaa99);
    xet_shard_build_chunk(&b, h.bytes, 0x44332211, 0x88776655, 0xccbbaa99);

    p = xet_test_flatten(&pool, &b, &len);
    xet_is_u64(len, 8 * 48, "eight records");

    xet_ok(memcmp(p, xet_shard_tag, 32) == 0
           && memcmp(p, "HFRepoMetaData", 15) == 0
           && memcmp(p + 32, "\2\0\0\0\0\0\0\0\1\2\3\4\5\6\7\10", 16) == 0,
           "header");

    p += 48;
    xet_ok(memcmp(p, h.bytes, 32) == 0
           && memcmp(p + 32, "\x11\x22\x33\x44\x55\x66\x77\x88", 8) == 0
           && test_zeros(p + 40, 8), "file");

    p += 48;
    xet_ok(memcmp(p, h.bytes, 32) == 0 && test_zeros(p + 32, 4)
           && memcmp(p + 36, "\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc",
                     12) == 0,
           "segment");

    p += 48;
    xet_ok(memcmp(p, h.bytes, 32) == 0 && test_zeros(p + 32, 16),
           "verification");

    p += 48;
    xet_ok(memcmp(p, "\10\7\6\5\4\3\2\1\20\17\16\15\14\13\12\11", 16) == 0
           && memcmp(p + 24, "\40\37\36\35\34\33\32\31", 8) == 0
           && test_zeros(p + 32, 16), "metadata, reversed by eight");

    p += 48;
    xet_ok(memcmp(p, ones, 32) == 0 && test_zeros(p + 32, 16),
           "bookend");

    p += 48;
    xet_ok(memcmp(p, h.bytes, 32) == 0 && test_zeros(p + 32, 4)
           && memcmp(p + 36, "\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc",
                     12) == 0,
           "xorb");

    p += 48;
    xet_ok(memcmp(p, h.bytes, 32) == 0 && test_zeros(p + 44, 4)
           && memcmp(p + 32, "\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc",
                     12) == 0,
           "chunk");

    memset(&f, 0, sizeof(f));
    f.files_offset = 48;
    f.xorbs_offset = 96;
    f.footer_offset = 0x0102;
    f.created = 3;
    f.expires = 4;
    f.stored_on_disk = 5;
    f.materialized = 6;
    f.stored = 7;
    memcpy(f.key, h.bytes, 32);

    xet_buf_init(&b, xet_test_alloc, &pool, 0);
    xet_shard_build_footer(&b, &f);
    p = xet_test_flatten(&pool, &b, &len);

    xet_is_u64(len, 200, "footer");
    xet_ok(xet_get_u64(p) == 1 && xet_get_u64(p + 8) == 48
           && xet_get_u64(p + 16) == 96, "footer version and sections");
    xet_ok(xet_get_u64(p + 24) == 0x0102 && xet_get_u64(p + 40) == 0x0102
           && xet_get_u64(p + 56) == 0x0102, "tables at the footer's offset");
    xet_ok(test_zeros(p + 32, 8) && test_zeros(p + 48, 8)
           && test_zeros(p + 64, 8) && test_zeros(p + 120, 48),
           "tables empty, spare bytes zero");
    xet_ok(memcmp(p + 72, h.bytes, 32) == 0 && xet_get_u64(p + 104) == 3
           && xet_get_u64(p + 112) == 4, "key and times");
    xet_ok(xet_get_u64(p + 168) == 5 && xet_get_u64(p + 176) == 6
           && xet_get_u64(p + 184) == 7 && xet_get_u64(p + 192) == 0x0102,
           "totals and offset");

    xet_test_pool_free(&pool);
}


/* Tests chunk records of a block, keyed and plain, and when memory runs out. */

static void
test_block(void)
{
    size_t           len;
    uint8_t         *p, hashes[3 * 32], ends[3 * 4], key[32];
    unsigned         i, good;
    xet_buf_t        b;
    xet_hash_t       keyed;
    xet_test_pool_t  pool;
    xet_xorb_list_t  list;

    memset(&pool, 0, sizeof(pool));
    memset(&list, 0, sizeof(list));
    memset(hashes, 0x11, sizeof(hashes));
    memset(key, 0x22, sizeof(key));

    xet_put_u32(ends, 100);
    xet_put_u32(ends + 4, 101);
    xet_put_u32(ends + 8, 131173);

    list.chunk_count = 3;
    list.raw_size = 131173;
    list.stored_size = 999;
    list.hashes = hashes;
    list.raw_ends = ends;

    xet_hash_keyed(key, hashes, 32, &keyed);

    for (i = 0; i < 2; i++) {
        xet_buf_init(&b, xet_test_alloc, &pool, 0);
        xet_shard_build_xorb_block(&b, &list, i ? key : NULL);
        p = xet_test_flatten(&pool, &b, &len);

        xet_is_u64(len, 4 * 48, i ? "keyed block" : "block");
        xet_is_u64(xet_get_u32(p + 36), 3, "chunks");
        xet_is_u64(xet_get_u32(p + 40), 131173, "raw size");
        xet_is_u64(xet_get_u32(p + 44), 999, "stored size");
        xet_ok(memcmp(p + 144, i ? keyed.bytes : hashes, 32) == 0, "hash");
        xet_ok(xet_get_u32(p + 48 + 32) == 0
               && xet_get_u32(p + 48 + 36) == 100
               && xet_get_u32(p + 96 + 32) == 100
               && xet_get_u32(p + 96 + 36) == 1
               && xet_get_u32(p + 144 + 32) == 101
               && xet_get_u32(p + 144 + 36) == 131072, "starts and lengths");
    }

    xet_test_pool_free(&pool);

    for (i = 1, good = 0; i < 4; i++) {
        pool.limit = i;
        xet_buf_init(&b, xet_test_alloc, &pool, 48);
        xet_shard_build_header(&b, 0);
        xet_shard_build_bookend(&b);
        xet_shard_build_xorb_block(&b, &list, key);
        xet_shard_build_footer(&b, &(xet_shard_footer_t) { 0 });
        good += xet_buf_status(&b) == XET_NOMEM && b.size < 6 * 48 + 200;
        xet_test_pool_free(&pool);
    }

    xet_is_u64(good, 3, "out of memory after any node");
}


/*
 * Tests a list of chunks 0 to 4, of which only 2 and 4 may be reported.  The
 * second range of "seen" also includes chunk 5, which does not exist.
 */

static void
test_part(void)
{
    static const uint8_t  seen[] = {
        0, 0, 0, 2, 0, 0, 0, 3,   0, 0, 0, 4, 0, 0, 0, 6
    };
    static const uint32_t  lengths[] = { 65536, 65536, 30, 65536, 50 };

    size_t           len;
    uint8_t         *p, hashes[5 * 32], ends[5 * 4], key[32], noise[32];
    uint8_t          place[36];
    uint32_t         i, end, start;
    xet_buf_t        b;
    xet_hash_t       keyed;
    xet_test_pool_t  pool;
    xet_xorb_list_t  list;

    memset(&pool, 0, sizeof(pool));
    memset(&list, 0, sizeof(list));
    memset(key, 0x22, sizeof(key));
    memset(noise, 0x33, sizeof(noise));
    memset(list.hash.bytes, 0x44, 32);

    for (i = 0, end = 0; i < 5; i++) {
        memset(hashes + i * 32, (int) i + 1, 32);
        end += 10 * (i + 1);
        xet_put_u32(ends + i * 4, end);
    }

    list.chunk_count = 5;
    list.raw_size = 150;
    list.stored_size = 99;
    list.hashes = hashes;
    list.raw_ends = ends;
    list.seen = seen;
    list.seen_n = 2;
    list.noise = noise;

    xet_buf_init(&b, xet_test_alloc, &pool, 0);
    xet_shard_build_xorb_block(&b, &list, key);
    p = xet_test_flatten(&pool, &b, &len);

    xet_is_u64(len, 6 * 48, "part");
    xet_is_u64(xet_get_u32(p + 40), 3 * 65536 + 80, "part: raw size");
    xet_is_u64(xet_get_u32(p + 44), 3 * 65536 + 80, "part: stored size");

    memcpy(place, list.hash.bytes, 32);

    for (i = 0, start = 0; i < 5; i++) {
        p += 48;

        if (i == 2 || i == 4) {
            xet_hash_keyed(key, hashes + i * 32, 32, &keyed);

        } else {
            xet_put_u32(place + 32, i);
            xet_hash_keyed(noise, place, 36, &keyed);
        }

        xet_ok(memcmp(p, keyed.bytes, 32) == 0, "part: hash or noise");
        xet_ok(xet_get_u32(p + 32) == start
               && xet_get_u32(p + 36) == lengths[i], "part: length");

        start += lengths[i];
    }

    xet_test_pool_free(&pool);

    list.seen_n = 1;

    xet_buf_init(&b, xet_test_alloc, &pool, 0);
    xet_shard_build_xorb_block(&b, &list, key);
    xet_is_u64(b.size, 4 * 48, "part: nothing behind the last");
    xet_test_pool_free(&pool);

    list.seen_n = 0;

    xet_buf_init(&b, xet_test_alloc, &pool, 0);
    xet_shard_build_xorb_block(&b, &list, key);
    xet_is_u64(b.size, 48, "part: nothing at all");
    xet_test_pool_free(&pool);
}


int
main(void)
{
    size_t  i;

    static const char  *const names[] = {
        EV,
        EV ".verification",
        EV ".verification-no-footer",
        EV ".dedupe",
        "xet/hub-js/gpt2-64-8bits.tflite.shard",
        "xet/hf_xet-client-shards/one-file-one-chunk.no-footer.shard"
    };

    test_records();
    test_block();
    test_part();

    if (xet_test_data(EV) == NULL) {
        xet_skip("reference data absent");
        return xet_done();
    }

    if (xet_ok(test_chunks_load(), "the chunk list of the reference file")) {
        test_from_chunks();
    }

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        test_reserialise(names[i]);
    }

    return xet_done();
}
