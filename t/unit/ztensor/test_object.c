
/*
 * Tests the rules for one object: ranges, shapes, types and formats; and for
 * two objects that overlap.
 */


#include "zt_bytes.h"


#define DATA  512                      /* bytes between header and manifest */


typedef struct {
    const char  *role;
    const char  *dtype;
    uint64_t     offset;
    uint64_t     length;
    const char  *encoding;
    const char  *type;
} part_t;


static void
begin(zt_bytes_t *b, unsigned n)
{
    static uint8_t  blob[DATA];

    zt_begin(b, blob, DATA);
    zt_root(b, n);
}


static void
object(zt_bytes_t *b, const char *name, const char *format,
    const uint64_t *shape, unsigned rank, const part_t *parts, unsigned n)
{
    unsigned  i;

    zt_text(b, name);
    zt_map(b, 3);
    zt_text(b, "shape");
    zt_array(b, rank);

    for (i = 0; i < rank; i++) {
        zt_uint(b, shape[i]);
    }

    zt_field_text(b, "format", format);
    zt_text(b, "components");
    zt_map(b, n);

    for (i = 0; i < n; i++) {
        zt_text(b, parts[i].role);
        zt_map(b, 3 + (parts[i].encoding != NULL) + (parts[i].type != NULL));
        zt_component(b, parts[i].dtype, parts[i].offset, parts[i].length);

        if (parts[i].encoding) {
            zt_field_text(b, "encoding", parts[i].encoding);
        }

        if (parts[i].type) {
            zt_field_text(b, "type", parts[i].type);
        }
    }
}


/* Builds a file with a single dense object. */

static void
dense(zt_bytes_t *b, const char *dtype, const uint64_t *shape, unsigned rank,
    uint64_t offset, uint64_t length, const char *want, const char *name)
{
    part_t  part;

    memset(&part, 0, sizeof(part));

    part.role = "data";
    part.dtype = dtype;
    part.offset = offset;
    part.length = length;

    begin(b, 1);
    object(b, "t", "dense", shape, rank, &part, 1);
    zt_end(b);
    zt_is(b, want, name);
}


static void
test_ranges(zt_bytes_t *b)
{
    uint64_t  one[1], end;

    one[0] = 8;
    end = 64 + DATA;

    dense(b, "u8", one, 1, 64, 8, "t:ok", "the first byte");
    dense(b, "u8", one, 1, 72, 8, "t:misaligned", "at 72");
    dense(b, "u8", one, 1, 0, 8, "t:overlaps_header", "at 0");
    dense(b, "u8", one, 1, 1000000, 8, "t:out_of_bounds", "far out");
    dense(b, "u8", one, 1, 1000001, 8, "t:misaligned,out_of_bounds",
          "and not aligned");

    one[0] = DATA;
    dense(b, "u8", one, 1, 64, DATA, "t:ok", "all data");
    one[0]++;
    dense(b, "u8", one, 1, 64, DATA + 1, "t:out_of_bounds",
          "a byte of the manifest");

    one[0] = 0;
    dense(b, "u8", one, 1, end, 0, "t:ok", "nothing at the end");
    dense(b, "u8", one, 1, end + 64, 0, "t:out_of_bounds",
          "nothing past the end");
    dense(b, "u8", one, 1, 0, 0, "t:overlaps_header", "nothing at 0");
    dense(b, "u8", one, 1, 1 << 20, 0, "t:out_of_bounds", "nothing at 1 MiB");

    one[0] = 128;
    dense(b, "u8", one, 1, UINT64_MAX - 63, 128, "t:out_of_bounds",
          "a sum that wraps to 64");
    one[0] = UINT64_MAX;
    dense(b, "u8", one, 1, 64, UINT64_MAX, "t:out_of_bounds",
          "a length that wraps");
}


static void
test_shapes(zt_bytes_t *b)
{
    uint64_t  s[3];

    dense(b, "f32", NULL, 0, 64, 4, "t:ok", "a scalar");
    dense(b, "f32", NULL, 0, 64, 0, "t:length_mismatch", "a scalar of nothing");

    s[0] = 2;
    dense(b, "f32", s, 1, 64, 4, "t:length_mismatch", "half a length");
    dense(b, "f32", s, 1, 64, 16, "t:length_mismatch", "twice a length");
    dense(b, "f32", s, 1, 64, 9, "t:length_mismatch", "a byte more");

    s[0] = s[1] = (uint64_t) 1 << 32;
    dense(b, "f32", s, 2, 64, 0, "t:shape_overflow", "2^32 by 2^32");
    s[2] = 0;
    dense(b, "f32", s, 3, 64, 0, "t:ok", "by 0: nothing");
    s[2] = s[0];
    s[0] = 0;
    dense(b, "f32", s, 3, 64, 0, "t:ok", "0 by 2^32 by 2^32");
    dense(b, "f32", s, 3, 64, 4, "t:length_mismatch", "of 4 bytes");

    s[0] = (uint64_t) 1 << 62;
    dense(b, "f32", s, 1, 64, 0, "t:shape_overflow",
          "bytes that do not fit where elements do");
    dense(b, "u8", s, 1, 64, 0, "t:length_mismatch", "those that do");

    s[0] = UINT64_MAX;
    dense(b, "u8", s, 1, 64, 8, "t:length_mismatch", "2^64 - 1 bytes");
    s[1] = 2;
    dense(b, "u8", s, 2, 64, 8, "t:shape_overflow", "twice that");
}


static void
test_dtypes(zt_bytes_t *b)
{
    size_t    i;
    uint64_t  one[1];

    static const struct {
        const char  *name;
        uint64_t     bytes;
    } types[] = {
        { "f64", 8 }, { "f32", 4 }, { "f16", 2 }, { "bf16", 2 },
        { "f8_e4m3", 1 }, { "f8_e5m2", 1 }, { "complex64", 8 },
        { "complex128", 16 }, { "i64", 8 }, { "i32", 4 }, { "i16", 2 },
        { "i8", 1 }, { "u64", 8 }, { "u32", 4 }, { "u16", 2 }, { "u8", 1 },
        { "bool", 1 }
    };

    static const char *const  unknown[] = { "f4", "float32", "F32", "f32 ",
                                            "", "f3", "f321", "f8_e4m3fn" };

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        one[0] = 3;
        dense(b, types[i].name, one, 1, 64, 3 * types[i].bytes, "t:ok",
              types[i].name);
        dense(b, types[i].name, one, 1, 64, 3 * types[i].bytes + 1,
              "t:length_mismatch", "and a byte");
    }

    for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        dense(b, unknown[i], one, 1, 64, 5, "t:unsupported_dtype",
              unknown[i]);
    }
}


static void
test_types(zt_bytes_t *b)
{
    size_t    i;
    part_t    part;
    uint64_t  shape[1];

    static const struct {
        const char  *dtype;
        const char  *type;
        uint64_t     n;
        uint64_t     length;
        const char  *want;
    } types[] = {
        { "u8", "f8_e4m3fn", 3, 3, "t:ok" },
        { "u8", "f8_e5m2", 3, 4, "t:length_mismatch" },
        { "u8", "bool", 3, 3, "t:ok" },
        { "u8", "f4_e2m1", 5, 3, "t:ok" },
        { "u8", "f4_e2m1", 6, 3, "t:ok" },
        { "u8", "f4_e2m1", 7, 3, "t:length_mismatch" },
        { "f32", "complex64", 3, 24, "t:ok" },
        { "f32", "complex64", 3, 12, "t:length_mismatch" },
        { "f64", "complex128", 3, 48, "t:ok" },
        { "f32", "f32", 3, 12, "t:ok" },
        { "f32", "complex128", 3, 12, "t:unsupported_dtype" },
        { "u8", "f7", 3, 1, "t:unsupported_dtype" },
        { "f32", "u8", 3, 3, "t:unsupported_dtype" }
    };

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        memset(&part, 0, sizeof(part));

        part.role = "data";
        part.dtype = types[i].dtype;
        part.type = types[i].type;
        part.offset = 64;
        part.length = types[i].length;

        shape[0] = types[i].n;

        begin(b, 1);
        object(b, "t", "dense", shape, 1, &part, 1);
        zt_end(b);
        zt_is(b, types[i].want, types[i].type);
    }
}


static void
test_encodings(zt_bytes_t *b)
{
    size_t       i;
    part_t       part;
    uint64_t     shape[1];
    char         name[64];

    static const char *const  encodings[][2] = {
        { "raw", "t:length_mismatch" },
        { "zstd", "t:ok" },
        { "RAW", "t:unsupported_encoding" },
        { "lz4", "t:unsupported_encoding" },
        { "zt.zstd-seekable/1", "t:unsupported_encoding" },
        { "", "t:unsupported_encoding" }
    };

    shape[0] = 100;

    for (i = 0; i < sizeof(encodings) / sizeof(encodings[0]); i++) {
        memset(&part, 0, sizeof(part));

        part.role = "data";
        part.dtype = "f32";
        part.encoding = encodings[i][0];
        part.offset = 64;
        part.length = 8;

        begin(b, 1);
        object(b, "t", "dense", shape, 1, &part, 1);
        zt_end(b);

        snprintf(name, sizeof(name), "encoding \"%s\"", encodings[i][0]);
        zt_is(b, encodings[i][1], name);
    }
}


#define VALUES(n)         { "values", "f32", 64, n, NULL, NULL }
#define INDICES(type, n)  { "indices", type, 128, n, NULL, NULL }
#define INDPTR(type, n)   { "indptr", type, 192, n, NULL, NULL }
#define COORDS(type, n)   { "coords", type, 128, n, NULL, NULL }


static void
test_formats(zt_bytes_t *b)
{
    size_t    i;
    uint64_t  shape[3] = { 2, 4, 3 };

    /* the shape is 2 by 4, with three elements */

    static const struct {
        const char  *name;
        const char  *format;
        unsigned     rank;
        unsigned     n;
        part_t       parts[4];
        const char  *want;
    } cases[] = {

        { "csr", "sparse_csr", 2, 3,
          { VALUES(12), INDICES("u64", 24), INDPTR("u64", 24) }, "t:ok" },

        { "csr with u16 and i32", "sparse_csr", 2, 3,
          { VALUES(12), INDICES("u16", 6), INDPTR("i32", 12) }, "t:ok" },

        { "csr, indptr of the rows", "sparse_csr", 2, 3,
          { VALUES(12), INDICES("u64", 24), INDPTR("u64", 16) },
          "t:length_mismatch" },

        { "csr, empty indptr", "sparse_csr", 2, 3,
          { VALUES(12), INDICES("u64", 24), INDPTR("u64", 0) },
          "t:length_mismatch" },

        { "csr, half an index", "sparse_csr", 2, 3,
          { VALUES(12), INDICES("u64", 20), INDPTR("u64", 24) },
          "t:length_mismatch" },

        { "csr, more values", "sparse_csr", 2, 3,
          { VALUES(16), INDICES("u64", 24), INDPTR("u64", 24) },
          "t:length_mismatch" },

        { "csr with f32 indices", "sparse_csr", 2, 3,
          { VALUES(12), INDICES("f32", 12), INDPTR("u64", 24) },
          "t:bad_index_dtype" },

        { "csr with bool indices", "sparse_csr", 2, 3,
          { VALUES(12), INDICES("bool", 3), INDPTR("u64", 24) },
          "t:bad_index_dtype" },

        { "csr without indptr", "sparse_csr", 2, 2,
          { VALUES(12), INDICES("u64", 24) }, "t:missing_component" },

        { "csr of three dimensions", "sparse_csr", 3, 3,
          { VALUES(12), INDICES("u64", 24), INDPTR("u64", 24) },
          "t:bad_shape" },

        { "csr, compressed indices, of which values tell", "sparse_csr", 2, 3,
          { VALUES(12),
            { "indices", "u64", 128, 9, "zstd", NULL },
            INDPTR("u64", 24) }, "t:ok" },

        { "csr, compressed indices of half a value", "sparse_csr", 2, 3,
          { VALUES(13),
            { "indices", "u64", 128, 9, "zstd", NULL },
            INDPTR("u64", 24) }, "t:length_mismatch" },

        { "csr, compressed indices of values of no known type", "sparse_csr",
          2, 3,
          { { "values", "f5", 64, 13, NULL, NULL },
            { "indices", "u64", 128, 9, "zstd", NULL },
            INDPTR("u64", 24) }, "t:unsupported_dtype" },

        { "coo", "sparse_coo", 2, 2,
          { VALUES(12), COORDS("u64", 48) }, "t:ok" },

        { "coo of three dimensions", "sparse_coo", 3, 2,
          { VALUES(8), COORDS("u64", 48) }, "t:ok" },

        { "coo, too few coordinates", "sparse_coo", 2, 2,
          { VALUES(12), COORDS("u64", 40) }, "t:length_mismatch" },

        { "coo, too few values", "sparse_coo", 2, 2,
          { VALUES(8), COORDS("u64", 48) }, "t:length_mismatch" },

        { "coo with floats", "sparse_coo", 2, 2,
          { VALUES(12), COORDS("f64", 48) }, "t:bad_index_dtype" },

        { "coo of a scalar", "sparse_coo", 0, 2,
          { VALUES(4), COORDS("u64", 0) }, "t:bad_shape" },

        { "quantized", "quantized_group", 2, 3,
          { { "packed_weight", "i32", 64, 4, NULL, NULL },
            { "scales", "f16", 128, 4, NULL, NULL },
            { "zeros", "f16", 192, 4, NULL, NULL } }, "t:ok" },

        { "quantized without zeros", "quantized_group", 2, 2,
          { { "packed_weight", "i32", 64, 4, NULL, NULL },
            { "scales", "f16", 128, 4, NULL, NULL } },
          "t:missing_component" },

        { "dense and more", "dense", 2, 2,
          { { "data", "u8", 64, 8, NULL, NULL },
            { "more", "u8", 128, 3, NULL, NULL } }, "t:ok" },

        { "dense without data", "dense", 2, 1,
          { { "Data", "u8", 64, 8, NULL, NULL } }, "t:missing_component" },

        { "dense of nothing", "dense", 2, 0, { { NULL } },
          "t:missing_component" },

        { "what is not known", "paged", 2, 2,
          { { "k", "u8", 64, 7, NULL, NULL },
            { "v", "u8", 128, 3, NULL, NULL } }, "t:unsupported_format" },

        { "what is not known, and a range that is wrong", "paged", 2, 1,
          { { "k", "u8", 65, 7, NULL, NULL } },
          "t:misaligned,unsupported_format" },

        { "formats of container 2", "zt.sparse_csr/1", 2, 0, { { NULL } },
          "t:unsupported_format" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin(b, 1);
        object(b, "t", cases[i].format, shape, cases[i].rank, cases[i].parts,
               cases[i].n);
        zt_end(b);
        zt_is(b, cases[i].want, cases[i].name);
    }
}


static void
test_declared(zt_bytes_t *b)
{
    uint64_t  n;

    for (n = 399; n <= 400; n++) {
        begin(b, 1);
        zt_dense(b, "t", 100, 5);
        zt_component(b, "f32", 64, 8);
        zt_field_text(b, "encoding", "zstd");
        zt_field(b, "uncompressed_length", n);
        zt_end(b);
        zt_is(b, n == 400 ? "t:ok" : "t:length_mismatch",
              "the declared length, and the shape");
    }

    begin(b, 1);
    zt_dense(b, "t", 100, 4);
    zt_component(b, "f32", 64, 400);
    zt_field(b, "uncompressed_length", 9);
    zt_end(b);
    zt_is(b, "t:ok", "which is of no interest for raw ones");
}


static void
test_overlap(zt_bytes_t *b)
{
    size_t            i, k;
    char              name[4];
    part_t            part;
    uint64_t          shape[1];
    const char       *got;
    xet_zt_limits_t   limits;

    static const struct {
        const char  *name;
        unsigned     n;
        uint64_t     ranges[4][2];
        const char  *strict;
    } cases[] = {

        { "one inside of another", 2, { { 64, 128 }, { 128, 64 } },
          "a:overlap b:overlap" },
        { "one at the start of another", 2, { { 64, 128 }, { 64, 64 } },
          "a:overlap b:overlap" },
        { "the same", 2, { { 64, 128 }, { 64, 128 } }, "a:ok b:ok" },
        { "next to each other", 2, { { 64, 64 }, { 128, 64 } },
          "a:ok b:ok" },
        { "by a byte", 2, { { 64, 65 }, { 128, 64 } },
          "a:overlap b:overlap" },
        { "nothing inside", 2, { { 64, 128 }, { 128, 0 } }, "a:ok b:ok" },
        { "a long one over two, and one apart", 4,
          { { 64, 256 }, { 128, 8 }, { 192, 8 }, { 320, 8 } },
          "a:overlap b:overlap c:overlap d:ok" },
        { "a long one over the second next", 3,
          { { 192, 8 }, { 64, 136 }, { 320, 64 } },
          "a:overlap b:overlap c:ok" },
        { "twice the same, over a third", 3,
          { { 64, 100 }, { 64, 100 }, { 128, 8 } },
          "a:overlap b:overlap c:overlap" },
        { "what is out of bounds overlaps nothing", 2,
          { { 64, 100000 }, { 128, 8 } }, "a:out_of_bounds b:ok" }
    };

    xet_zt_limits_init(&limits);
    limits.strict = 1;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        begin(b, cases[i].n);

        for (k = 0; k < cases[i].n; k++) {
            memset(&part, 0, sizeof(part));

            part.role = "data";
            part.dtype = "u8";
            part.offset = cases[i].ranges[k][0];
            part.length = cases[i].ranges[k][1];

            shape[0] = part.length;
            name[0] = (char) ('a' + k);
            name[1] = '\0';

            object(b, name, "dense", shape, 1, &part, 1);
        }

        zt_end(b);

        got = zt_outcome(b->data, b->len, 50, &limits);

        if (!xet_ok(strcmp(got, cases[i].strict) == 0, "%s",
                    cases[i].name))
        {
            printf("#   got %s\n", got);
        }

        got = zt_outcome(b->data, b->len, 50, NULL);

        xet_ok(strstr(got, "overlap") == NULL, "not strict: no error");
    }
}


typedef struct {
    int  seen;
} picked_t;


static xet_status_t
pick(void *ctx, xet_zt_object_t *o)
{
    picked_t                  *picked;
    xet_range_t                range;
    xet_zt_region_t            region;
    const xet_zt_component_t  *c;

    picked = ctx;
    picked->seen++;

    memset(&region, 0, sizeof(region));

    region.container = XET_ZT_CONTAINER_1;
    region.data_start = 8;
    region.data_end = 64 + DATA;

    c = xet_zt_object_default(o);

    if (o->name.data[0] == 'r') {

        /* f32[3, 4] at offset 64 */

        xet_ok(c != NULL && xet_zt_component_seekable(c), "raw: seekable");
        xet_ok(xet_zt_component_range(c, &region, &range) == XET_OK
               && range.start == 64 && range.end == 112, "its range");

        region.data_end = 111;
        xet_is_u64(xet_zt_component_range(c, &region, &range),
                   XET_ZT_BOUNDS, "not where the data ends before");

        xet_ok(xet_zt_object_rows(o, c, 0, 3, &range) == XET_OK
               && range.start == 0 && range.end == 48, "all rows");
        xet_ok(xet_zt_object_rows(o, c, 1, 2, &range) == XET_OK
               && range.start == 16 && range.end == 32, "one row");
        xet_ok(xet_zt_object_rows(o, c, 2, 2, &range) == XET_OK
               && range.start == range.end, "no rows");
        xet_is_u64(xet_zt_object_rows(o, c, 2, 4, &range),
                   XET_RANGE_PAST_END, "more rows than there are");
        xet_is_u64(xet_zt_object_rows(o, c, 3, 3, &range),
                   XET_RANGE_PAST_END, "none past the end");
        xet_is_u64(xet_zt_object_rows(o, c, 2, 1, &range),
                   XET_RANGE_PAST_END, "backwards");
        xet_is_u64(o->count, 12, "12 elements");

    } else if (o->name.data[0] == 'z') {
        xet_ok(c != NULL && !xet_zt_component_seekable(c),
               "zstd: not seekable");
        xet_ok(c->has_decoded && c->decoded == 48, "but its length is known");
        xet_is_u64(xet_zt_object_rows(o, c, 0, 1, &range), XET_ZT_DECODE,
                   "no rows of it");

    } else if (o->name.data[0] == 'm') {
        xet_ok(c == NULL, "several, and none is \"data\"");
        xet_ok(xet_zt_object_component(o, (const uint8_t *) "k", 1)
               == &o->components[0], "by role");
        xet_ok(xet_zt_object_component(o, (const uint8_t *) "kk", 2) == NULL
               && xet_zt_object_component(o, (const uint8_t *) "", 0) == NULL,
               "by another role");
        xet_is_u64(xet_zt_object_rows(o, &o->components[0], 0, 1, &range),
                   XET_ZT_DECODE, "no rows of what is not dense");

    } else {
        xet_ok(c == &o->components[0], "the only one is meant");
    }

    return XET_OK;
}


static void
test_access(zt_bytes_t *b)
{
    picked_t        picked;
    uint64_t        shape[2] = { 3, 4 };
    xet_zt_t       *zt;
    xet_status_t    rc;

    static const part_t  parts[] = {
        { "data", "f32", 64, 48, NULL, NULL },
        { "data", "f32", 128, 9, "zstd", NULL },
        { "k", "u8", 192, 1, NULL, NULL },
        { "v", "u8", 256, 1, NULL, NULL }
    };

    begin(b, 4);
    object(b, "raw", "dense", shape, 2, &parts[0], 1);
    object(b, "zstd", "dense", shape, 2, &parts[1], 1);
    object(b, "many", "other", shape, 2, &parts[2], 2);
    object(b, "one", "other", shape, 2, &parts[2], 1);
    zt_end(b);

    memset(&picked, 0, sizeof(picked));

    zt = zt_open(b->data, b->len, 1 << 20, NULL, &rc);
    rc = zt_walk_all(zt, b->data, 1 << 20, NULL, pick, &picked);

    xet_ok(rc == XET_OK && picked.seen == 4, "four objects");
    xet_is_u64(xet_zt_info(zt)->unsupported, 2, "two not supported");
    xet_is_u64(xet_zt_info(zt)->invalid, 0, "none invalid");
    xet_is_u64(xet_zt_info(zt)->components, 5, "five components");

    xet_zt_destroy(zt);
}


int
main(void)
{
    zt_bytes_t  b;

    memset(&b, 0, sizeof(b));

    test_ranges(&b);
    test_shapes(&b);
    test_dtypes(&b);
    test_types(&b);
    test_encodings(&b);
    test_formats(&b);
    test_declared(&b);
    test_overlap(&b);
    test_access(&b);

    free(b.data);

    return xet_done();
}
