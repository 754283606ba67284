
/*
 * Tests container 2: the manifest rules that 1.x does not have, shards, and
 * seekable zstd.
 */


#include <zstd.h>

#include "zt_bytes.h"


static uint8_t  blob[12288];


/*
 * The functions below write {"objects": {"t": {"parts": {"data": {...}},
 * "shape": [n], "layout": "dense"}}}; the keys are in this order.
 */

static void
begin(zt_bytes_t *b)
{
    zt_begin_2(b, blob, sizeof(blob));
    zt_map(b, 1);
    zt_text(b, "objects");
    zt_map(b, 1);
}


static void
object(zt_bytes_t *b, const char *name, unsigned fields)
{
    zt_text(b, name);
    zt_map(b, 3);
    zt_text(b, "parts");
    zt_map(b, 1);
    zt_text(b, "data");
    zt_map(b, fields);
}


/* Writes the end of the object, after the fields of its part. */

static void
object_end(zt_bytes_t *b, uint64_t dim)
{
    zt_text(b, "shape");
    zt_array(b, 1);
    zt_uint(b, dim);
    zt_field_text(b, "layout", "dense");
}


static void
part(zt_bytes_t *b, uint64_t offset, uint64_t length, const char *dtype)
{
    zt_text(b, "blob");
    zt_array(b, 2);
    zt_uint(b, offset);
    zt_uint(b, length);
    zt_field_text(b, "dtype", dtype);
}


static void
test_base(zt_bytes_t *b)
{
    begin(b);
    object(b, "t", 2);
    part(b, 4096, 8, "u8");
    object_end(b, 8);
    zt_end_2(b);
    zt_is(b, "t:ok", "a part");

    b->data[b->manifest + 20] ^= 1;
    zt_is(b, "manifest_hash_mismatch", "a bit of its manifest");

    /* the hash is checked before everything else */

    begin(b);
    zt_put(b, "\xff\xff", 2);
    zt_end_2(b);
    zt_is(b, "bad_manifest", "breaks");
    b->data[b->len - 24] ^= 1;
    zt_is(b, "manifest_hash_mismatch", "and another hash");
}


static void
test_strict(zt_bytes_t *b)
{
    size_t  i;

    static const struct {
        const char  *name;
        const char  *bytes;
        size_t       len;
        const char  *want;
    } cases[] = {
#define CASE(name, bytes, want)  { name, bytes, sizeof(bytes) - 1, want }
        CASE("attributes", "\xa1\x61" "a\x01", "empty"),
        CASE("an empty name", "\xa1\x60\x01", "invalid_name"),
        CASE("a zero byte", "\xa1\x62" "a\0\x01", "invalid_name"),
        CASE("further in", "\xa1\x61" "a\xa1\x62" "a\0\x01", "empty"),
        CASE("a number as a key", "\xa1\x01\x01", "bad_manifest"),
        CASE("further in", "\xa1\x61" "a\xa2\x01\x02\x20\x03", "empty"),
        CASE("in another order", "\xa1\x61" "a\xa2\x20\x03\x01\x02",
             "not_deterministic"),
        CASE("twice", "\xa1\x61" "a\xa2\x01\x02\x01\x03", "duplicate_key"),
        CASE("keys of all types", "\xa1\x61" "a\xa7\x01\x00\x18\x18\x00\x20\x00"
             "\x41\x00\x00\x60\x00\xf4\x00\xf9\x3c\x00\x00", "empty"),
        CASE("bytes after text", "\xa1\x61" "a\xa2\x60\x00\x40\x00",
             "not_deterministic"),
        CASE("a float before false", "\xa1\x61" "a\xa2\xf9\x3c\x00\x00\xf4\x00",
             "not_deterministic"),
        CASE("halves before floats",
             "\xa1\x61" "a\xa2\xf9\x3c\x00\x00\xfa\x3f\x80\x10\x00\x00",
             "empty"),
        CASE("shorter keys first", "\xa2\x61z\x00\x62" "aa\x00", "empty"),
        CASE("not longer ones", "\xa2\x62" "aa\x00\x61z\x00",
             "not_deterministic"),
        CASE("sorted", "\xa2\x61" "a\x00\x61" "b\x00", "empty"),
        CASE("not sorted", "\xa2\x61" "b\x00\x61" "a\x00",
             "not_deterministic"),
        CASE("the same", "\xa2\x61" "b\x00\x61" "b\x00", "duplicate_key"),
        CASE("the same in two maps",
             "\xa2\x61" "a\xa1\x61x\x00\x61" "b\xa1\x61x\x00", "empty"),
        CASE("order after a map inside",
             "\xa2\x61" "b\xa1\x61x\x00\x61" "a\x00", "not_deterministic"),
        CASE("maps in arrays",
             "\xa1\x61" "a\x82\xa1\x61x\x00\xa1\x61" "a\x00", "empty"),
        CASE("an array as a key", "\xa1\x61" "a\xa1\x80\x00", "bad_manifest"),
        CASE("a tag", "\xa1\x61" "a\xc1\x00", "bad_manifest"),
        CASE("a long head", "\xa1\x61" "a\x18\x00", "not_deterministic"),
        CASE("a long float", "\xa1\x61" "a\xfa\x3f\x80\x00\x00",
             "not_deterministic"),
        CASE("undefined", "\xa1\x61" "a\xf7", "bad_manifest"),
        CASE("indefinite", "\xa1\x61" "a\x9f\xff", "bad_manifest"),
        CASE("null", "\xf6", "bad_manifest"),
        CASE("a map and a byte", "\xa0\x00", "trailing_bytes")
#undef CASE
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        zt_begin_2(b, NULL, 0);
        zt_map(b, 2);
        zt_text(b, "objects");
        zt_map(b, 0);
        zt_text(b, "attributes");
        zt_put(b, cases[i].bytes, cases[i].len);
        zt_end_2(b);
        zt_is(b, cases[i].want, cases[i].name);
    }
}


static void
test_names(zt_bytes_t *b)
{
    size_t  n;
    char    name[1026];

    for (n = 1024; n <= 1025; n++) {
        memset(name, 'x', n);
        name[n] = '\0';

        begin(b);
        object(b, name, 2);
        part(b, 4096, 8, "u8");
        object_end(b, 8);
        zt_end_2(b);
        zt_is(b, n == 1024 ? "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx:ok"
                           : "name_too_long", "a name of 1024 bytes, or more");

        zt_begin_2(b, NULL, 0);
        zt_map(b, 2);
        zt_text(b, "objects");
        zt_map(b, 0);
        zt_text(b, "attributes");
        zt_map(b, 1);
        zt_field(b, name, 0);
        zt_end_2(b);
        zt_is(b, n == 1024 ? "empty" : "name_too_long",
              "a key of 1024 bytes, or more");
    }

    begin(b);
    object(b, "", 2);
    part(b, 4096, 8, "u8");
    object_end(b, 8);
    zt_end_2(b);
    zt_is(b, "invalid_name", "an empty name");
}


static void
test_parts(zt_bytes_t *b)
{
    size_t  i;

    static const struct {
        const char  *name;
        uint64_t     offset;
        uint64_t     length;
        const char  *dtype;
        const char  *want;
    } cases[] = {
        { "the end of the data", 12288, 4096, "u8", "t:ok" },
        { "nothing at 4096", 4096, 0, "u8", "t:ok" },
        { "aligned for 1.x only", 4096 + 64, 8, "u8", "misaligned" },
        { "at 0", 0, 8, "u8", "misaligned" },
        { "up to the manifest", 4096, 12288, "u8", "t:ok" },
        { "into the manifest", 4096, 12289, "u8", "overlap" },
        { "past the footer", 4096, 1 << 20, "u8", "out_of_bounds" },
        { "a sum that wraps", UINT64_MAX - 4095, 4096, "u8",
          "out_of_bounds" },
        { "a dtype of 1.1", 4096, 8, "bool", "bad_manifest" },
        { "an unknown dtype", 4096, 8, "f4", "bad_manifest" },
        { "half an element", 4096, 9, "u16", "length_mismatch" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin(b);
        object(b, "t", 2);
        part(b, cases[i].offset, cases[i].length, cases[i].dtype);
        object_end(b, strcmp(cases[i].dtype, "u16") ? cases[i].length : 5);
        zt_end_2(b);
        zt_is(b, cases[i].want, cases[i].name);
    }

    /* no parts; unknown fields, including keys that are not text */

    zt_begin_2(b, NULL, 0);
    zt_map(b, 1);
    zt_text(b, "objects");
    zt_map(b, 1);
    zt_text(b, "t");
    zt_map(b, 3);
    zt_text(b, "parts");
    zt_map(b, 0);
    zt_text(b, "shape");
    zt_array(b, 0);
    zt_field_text(b, "layout", "other/1");
    zt_end_2(b);
    zt_is(b, "missing_field", "an object without parts");

    zt_begin_2(b, NULL, 0);
    zt_map(b, 4);
    zt_uint(b, 7);
    zt_put(b, "\xa1\x01\x81\x02", 4);
    zt_put(b, "\x43key\x41x", 6);
    zt_text(b, "future");
    zt_map(b, 0);
    zt_text(b, "objects");
    zt_map(b, 0);
    zt_end_2(b);
    zt_is(b, "empty", "what is not known is skipped");
}


/* Builds a sparse object, with its parts sorted by key. */

static void
test_sparse(zt_bytes_t *b)
{
    size_t    i;
    unsigned  k;

    static const struct {
        const char  *name;
        const char  *layout;
        unsigned     n;
        struct {
            const char  *role;
            const char  *dtype;
            uint64_t     length;
        } parts[3];
        const char  *want;
    } cases[] = {

        { "csr", "zt.sparse_csr/1", 3,
          { { "indptr", "u32", 12 }, { "values", "f32", 12 },
            { "indices", "u32", 12 } }, "t:ok" },
        { "csr of two index types", "zt.sparse_csr/1", 3,
          { { "indptr", "u64", 24 }, { "values", "f32", 12 },
            { "indices", "u32", 12 } }, "bad_index_dtype" },
        { "csr with i64", "zt.sparse_csr/1", 3,
          { { "indptr", "i64", 24 }, { "values", "f32", 12 },
            { "indices", "i64", 24 } }, "bad_index_dtype" },
        { "csr without values", "zt.sparse_csr/1", 2,
          { { "indptr", "u32", 12 }, { "indices", "u32", 12 } },
          "missing_component" },
        { "coo", "zt.sparse_coo/1", 2,
          { { "coords", "u64", 48 }, { "values", "f32", 12 } }, "t:ok" },
        { "coo, an odd coordinate", "zt.sparse_coo/1", 2,
          { { "coords", "u64", 40 }, { "values", "f32", 12 } },
          "length_mismatch" },
        { "coo and more", "zt.sparse_coo/1", 3,
          { { "extra", "u8", 1 }, { "coords", "u64", 48 },
            { "values", "f32", 12 } }, "unexpected_component" },
        { "the names of 1.x", "sparse_coo", 1, { { "x", "u8", 1 } },
          "t:unsupported_format" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin(b);
        zt_text(b, "t");
        zt_map(b, 3);
        zt_text(b, "parts");
        zt_map(b, cases[i].n);

        for (k = 0; k < cases[i].n; k++) {
            zt_text(b, cases[i].parts[k].role);
            zt_map(b, 2);
            part(b, 4096 * (1 + k), cases[i].parts[k].length,
                 cases[i].parts[k].dtype);
        }

        zt_text(b, "shape");
        zt_array(b, 2);
        zt_uint(b, 2);
        zt_uint(b, 4);
        zt_field_text(b, "layout", cases[i].layout);
        zt_end_2(b);
        zt_is(b, cases[i].want, cases[i].name);
    }
}


/* Builds a root whose table has one shard of the given size. */

static void
shards(zt_bytes_t *b, const char *name, uint64_t size, const char *digest)
{
    zt_begin_2(b, NULL, 0);
    zt_map(b, 2);
    zt_text(b, "shards");
    zt_map(b, 1);
    zt_text(b, name);
    zt_map(b, 2);
    zt_field(b, "size", size);
    zt_field_text(b, "digest", digest);
    zt_text(b, "objects");
    zt_map(b, 1);
    object(b, "t", 3);
    part(b, 4096, 8, "u8");
    zt_field_text(b, "shard", "base");
    object_end(b, 8);
    zt_end_2(b);
}


static void
test_shards(zt_bytes_t *b)
{
    char  name[66];

    shards(b, "base", 4096 + 8 + 40, "xxh3:00");
    zt_is(b, "t:ok", "a part at the end of a shard");

    shards(b, "base", 4096 + 8 + 39, "xxh3:00");
    zt_is(b, "out_of_bounds", "a byte past it");

    shards(b, "base", 48, "xxh3:00");
    zt_is(b, "out_of_bounds", "the least shard");

    shards(b, "base", 47, "xxh3:00");
    zt_is(b, "bad_manifest", "less than that");

    shards(b, "base", UINT64_MAX, "xxh3:00");
    zt_is(b, "t:ok", "the largest");

    shards(b, "other", 8192, "xxh3:00");
    zt_is(b, "no_such_shard", "another name");

    shards(b, "base", 8192, "xxh3");
    zt_is(b, "bad_manifest", "no digest in the digest");
    shards(b, "base", 8192, "xxh3:");
    zt_is(b, "bad_manifest", "an empty one");
    shards(b, "base", 8192, "xxh3:0G");
    zt_is(b, "bad_manifest", "not hex");
    shards(b, "base", 8192, "XXH3:00");
    zt_is(b, "bad_manifest", "upper case");
    shards(b, "base", 8192, "future9:00");
    zt_is(b, "t:ok", "an algorithm that is not known");

    memset(name, 'x', 65);
    name[64] = '\0';
    shards(b, name, 8192, "xxh3:00");
    zt_is(b, "no_such_shard", "a name of 64 bytes");
    name[64] = 'x';
    name[65] = '\0';
    shards(b, name, 8192, "xxh3:00");
    zt_is(b, "bad_shard_name", "not of 65");
    shards(b, "a/b", 8192, "xxh3:00");
    zt_is(b, "bad_shard_name", "a slash");
    shards(b, ".a", 8192, "xxh3:00");
    zt_is(b, "bad_shard_name", "a dot at the start");
    shards(b, "", 8192, "xxh3:00");
    zt_is(b, "bad_shard_name", "nothing");
    shards(b, "a.b_C-9", 8192, "xxh3:00");
    zt_is(b, "no_such_shard", "all that is allowed");
}


/* Builds many shards; ranges in one shard do not overlap those in another. */

static void
test_many_shards(zt_bytes_t *b)
{
    char      name[16];
    unsigned  i, overlap;

    for (overlap = 0; overlap < 2; overlap++) {
        zt_begin_2(b, NULL, 0);
        zt_map(b, 2);
        zt_text(b, "shards");
        zt_map(b, 500);

        for (i = 0; i < 500; i++) {
            snprintf(name, sizeof(name), "%03u", i);
            zt_text(b, name);
            zt_map(b, 2);
            zt_field(b, "size", 65536);
            zt_field_text(b, "digest", "xxh3:00");
        }

        zt_text(b, "objects");
        zt_map(b, 501);

        for (i = 0; i < 501; i++) {
            snprintf(name, sizeof(name), "%03u", i);
            object(b, name, 3);
            part(b, 4096, 5000 + (i == 500), "u8");
            snprintf(name, sizeof(name), "%03u",
                     (i == 500) ? (overlap ? 123 : 0) : i);
            zt_field_text(b, "shard", name);
            object_end(b, 5000 + (i == 500));

            if (i == 499 && !overlap) {
                break;
            }
        }

        if (!overlap) {
            continue;
        }

        zt_end_2(b);
        xet_is_u64(zt_status(b), XET_ZT_OVERLAP,
                   "two ranges of one shard of 500");
    }
}


static xet_status_t
on_seekable(void *ctx, xet_zt_object_t *o)
{
    xet_zt_component_t  *c;

    c = &o->components[0];

    *(unsigned *) ctx = (c->coding == XET_ZT_CODING_SEEKABLE)
                        + 2 * (c->has_decoded && c->decoded == 100000)
                        + 4 * !xet_zt_component_seekable(c)
                        + 8 * (o->verdict == XET_ZT_OBJECT_OK);

    return XET_OK;
}


typedef struct {
    const zt_bytes_t  *b;
    const xet_zt_t    *zt;
    xet_zt_report_t    report;
} verified_t;


static xet_status_t
on_verify(void *ctx, xet_zt_object_t *o)
{
    xet_range_t              range;
    verified_t              *v;
    xet_zt_region_t          region;
    xet_zt_verifier_t       *verifier;
    xet_zt_decode_limits_t   limits;

    v = ctx;

    xet_zt_decode_limits_init(&limits);
    xet_zt_region(v->zt, &region);

    verifier = xet_zt_verifier_create(&limits);

    if (xet_zt_verifier_start(verifier, &region, o, &o->components[0], &range)
        == XET_AGAIN)
    {
        xet_is_u64(xet_zt_verifier_finish(verifier, &v->report), XET_INTERNAL,
                   "no report while bytes are missing");
        (void) xet_zt_verifier_feed(verifier, v->b->data + range.start,
                                    (size_t) (range.end - range.start));
    }

    xet_is_u64(xet_zt_verifier_finish(verifier, &v->report), XET_OK,
               "a report");

    xet_zt_verifier_destroy(verifier);

    return XET_OK;
}


/*
 * Builds seekable zstd data.  damage: 0 none; 1 the digest; 2 the data; 3 the
 * length.
 */

static void
seekable(zt_bytes_t *b, unsigned damage)
{
    size_t      n, m;
    char        digest[32];
    uint8_t     stored[8192];
    ZSTD_CCtx  *ctx;

    static uint8_t  plain[100000];

    for (n = 0; n < sizeof(plain); n++) {
        plain[n] = (uint8_t) (n / 1000);
    }

    snprintf(digest, sizeof(digest), "xxh3:%016llx",
             (unsigned long long) XXH3_64bits(plain, sizeof(plain))
             + (damage == 1));

    /* two frames with checksums, and the seek table */

    ctx = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, 1);

    n = ZSTD_compress2(ctx, stored, sizeof(stored), plain, 65536);
    m = ZSTD_compress2(ctx, stored + n, sizeof(stored) - n, plain + 65536,
                       sizeof(plain) - 65536);
    ZSTD_freeCCtx(ctx);

    xet_put_u32(stored + n + m, 0x184d2a5e);
    xet_put_u32(stored + n + m + 4, 25);
    xet_put_u32(stored + n + m + 8, (uint32_t) n);
    xet_put_u32(stored + n + m + 12, 65536);
    xet_put_u32(stored + n + m + 16, (uint32_t) m);
    xet_put_u32(stored + n + m + 20, 34464);
    xet_put_u32(stored + n + m + 24, 2);
    stored[n + m + 28] = 0;
    xet_put_u32(stored + n + m + 29, 0x8f92eab1);

    if (damage == 2) {
        stored[n / 2] ^= 0xff;
    }

    m += n + 33;

    zt_begin_2(b, stored, m);
    zt_map(b, 1);
    zt_text(b, "objects");
    zt_map(b, 1);
    object(b, "t", 5);
    part(b, 4096, m, "u8");
    zt_field_text(b, "digest", digest);
    zt_field_text(b, "encoding", "zt.zstd-seekable/1");
    zt_field(b, "decoded_length", 100000 + (damage == 3));
    object_end(b, 100000 + (damage == 3));
    zt_end_2(b);
}


static void
test_seekable(zt_bytes_t *b)
{
    unsigned       i, facts;
    xet_zt_t      *zt;
    verified_t     v;
    xet_status_t   rc;

    static const struct {
        xet_zt_digest_verdict_t  digest;
        xet_status_t             status;
    } want[] = {
        { XET_ZT_DIGEST_VERIFIED, XET_OK },
        { XET_ZT_DIGEST_MISMATCH, XET_OK },
        { XET_ZT_DIGEST_UNREADABLE, XET_ZT_ZSTD },
        { XET_ZT_DIGEST_UNREADABLE, XET_ZT_LENGTH }
    };

    for (i = 0; i < 4; i++) {
        seekable(b, i);

        zt = zt_open(b->data, b->len, 4096, NULL, &rc);

        facts = 0;
        (void) zt_walk_all(zt, b->data, 100, NULL, on_seekable, &facts);

        if (i == 0) {
            xet_is_u64(facts, 15, "a seekable part");
        }

        v.b = b;
        v.zt = zt;

        (void) zt_walk_all(zt, b->data, 4096, NULL, on_verify, &v);

        xet_ok(v.report.digest == want[i].digest
               && v.report.status == want[i].status, "%s, %s",
               xet_zt_digest_name(want[i].digest),
               xet_status_code(want[i].status));
        xet_is_u64(xet_zt_report_ok(&v.report, XET_ZT_CONTAINER_2), i == 0,
                   "well or not");

        xet_zt_destroy(zt);
    }
}


int
main(void)
{
    zt_bytes_t  b;

    memset(&b, 0, sizeof(b));

    test_base(&b);
    test_strict(&b);
    test_names(&b);
    test_parts(&b);
    test_sparse(&b);
    test_shards(&b);
    test_many_shards(&b);
    test_seekable(&b);

    free(b.data);

    return xet_done();
}
