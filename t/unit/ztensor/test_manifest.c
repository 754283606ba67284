
/*
 * Tests valid and invalid manifests, and the names of the errors.
 */


#include "zt_bytes.h"


/*
 * Begins a file with one object; the caller writes the object and the file's
 * end.
 */

static void
object_begin(zt_bytes_t *b)
{
    zt_begin(b, "\x00\x00\x80\x3f\x00\x00\x00\x40", 8);
    zt_root(b, 1);
}


static void
test_encodings(zt_bytes_t *b)
{
    object_begin(b);
    zt_put(b, "\x7f\x61" "a\x61" "b\xff", 6);
    zt_put(b, "\xbf", 1);
    zt_text(b, "shape");
    zt_put(b, "\x9f\x02\xff", 3);
    zt_put(b, "\x7f\x63" "for\x63mat\xff", 10);
    zt_put(b, "\x7f\x65" "dense\x60\xff", 9);
    zt_text(b, "components");
    zt_put(b, "\xbf\x7f\x64" "data\xff\xbf", 9);
    zt_component(b, "f32", 64, 8);
    zt_put(b, "\xff\xff\xff", 3);
    zt_end(b);
    zt_is(b, "ab:ok", "indefinite lengths and chunks everywhere");

    object_begin(b);
    zt_dense(b, "t", 2, 3);
    zt_field_text(b, "dtype", "f32");
    zt_text(b, "offset");
    zt_put(b, "\x1b\0\0\0\0\0\0\0\x40", 9);
    zt_text(b, "length");
    zt_put(b, "\x1a\0\0\0\x08", 5);
    zt_end(b);
    zt_is(b, "t:ok", "integers longer than they need to be");

    zt_begin(b, "", 0);
    zt_put(b, "\xd9\xd9\xf7", 3);
    zt_root(b, 0);
    zt_end(b);
    zt_is(b, "empty", "the tag of self-described CBOR");

    zt_begin(b, "", 0);
    zt_put(b, "\xc1", 1);
    zt_root(b, 0);
    zt_end(b);
    zt_is(b, "bad_manifest", "another tag");

    zt_begin(b, "", 0);
    zt_put(b, "\xd9\xd9\xf7\xd9\xd9\xf7", 6);
    zt_root(b, 0);
    zt_end(b);
    zt_is(b, "bad_manifest", "twice the tag");
}


static void
test_types(zt_bytes_t *b)
{
    size_t  i;

    static const struct {
        const char  *name;
        const char  *bytes;
        size_t       len;
    } values[] = {
        { "a bignum", "\xc2\x41\x40", 3 },
        { "a float", "\xf9\x54\x00", 3 },
        { "a double of 64.0", "\xfb\x40\x50\0\0\0\0\0\0", 9 },
        { "negative", "\x38\x3f", 2 },
        { "text", "\x62" "64", 3 },
        { "bytes", "\x41\x40", 2 },
        { "an array", "\x81\x18\x40", 3 },
        { "a map", "\xa0", 1 },
        { "null", "\xf6", 1 },
        { "false", "\xf4", 1 },
        { "tagged", "\xc1\x18\x40", 3 },
        { "a break", "\xff", 1 }
    };

    for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        object_begin(b);
        zt_dense(b, "t", 2, 3);
        zt_field_text(b, "dtype", "f32");
        zt_field(b, "length", 8);
        zt_text(b, "offset");
        zt_put(b, values[i].bytes, values[i].len);
        zt_end(b);
        zt_is(b, "bad_manifest", values[i].name);
    }
}


/*
 * Tests key forms that other readers accept because of serde's packed encoding.
 */

static void
test_keys_of_records(zt_bytes_t *b)
{
    object_begin(b);
    zt_put(b, "\x41t", 2);
    zt_map(b, 0);
    zt_end(b);
    zt_is(b, "bad_manifest", "a name of bytes");

    object_begin(b);
    zt_uint(b, 7);
    zt_map(b, 0);
    zt_end(b);
    zt_is(b, "bad_manifest", "a number as a name");

    zt_begin(b, "", 0);
    zt_map(b, 2);
    zt_uint(b, 0);
    zt_text(b, "1.1.0");
    zt_uint(b, 2);
    zt_map(b, 0);
    zt_end(b);
    zt_is(b, "bad_manifest", "numbers as fields");

    object_begin(b);
    zt_text(b, "t");
    zt_array(b, 3);
    zt_array(b, 1);
    zt_uint(b, 2);
    zt_text(b, "dense");
    zt_map(b, 0);
    zt_end(b);
    zt_is(b, "bad_manifest", "a record as an array");

    object_begin(b);
    zt_text(b, "t");
    zt_map(b, 3);
    zt_text(b, "shape");
    zt_uint(b, 2);
    zt_end(b);
    zt_is(b, "bad_manifest", "a shape that is no array");

    object_begin(b);
    zt_dense(b, "t", 2, 3);
    zt_text(b, "dtype");
    zt_uint(b, 1);
    zt_end(b);
    zt_is(b, "bad_manifest", "a number as a dtype");
}


static void
test_missing(zt_bytes_t *b)
{
    size_t    i, k;
    unsigned  mask;
    char      name[64];

    static const char *const  roots[] = { "version", "objects" };
    static const char *const  fields[] = { "dtype", "offset", "length" };
    static const char *const  objects[] = { "shape", "format", "components" };

    for (i = 0; i < 2; i++) {
        zt_begin(b, "", 0);
        zt_map(b, 1);
        zt_text(b, roots[!i]);

        if (i == 0) {
            zt_map(b, 0);

        } else {
            zt_text(b, "1.1.0");
        }

        zt_end(b);
        snprintf(name, sizeof(name), "no %s", roots[i]);
        zt_is(b, "missing_field", name);
    }

    for (mask = 0; mask < 8; mask++) {
        object_begin(b);
        zt_dense(b, "t", 2, (unsigned) ((mask & 1) + (mask >> 1 & 1)
                                        + (mask >> 2)));

        for (k = 0; k < 3; k++) {
            if (mask & 1u << k) {
                zt_text(b, fields[k]);

                if (k == 0) {
                    zt_text(b, "f32");

                } else {
                    zt_uint(b, k == 1 ? 64 : 8);
                }
            }
        }

        zt_end(b);
        snprintf(name, sizeof(name), "fields of a component, mask %u", mask);
        zt_is(b, mask == 7 ? "t:ok" : "missing_field", name);
    }

    for (i = 0; i < 3; i++) {
        object_begin(b);
        zt_text(b, "t");
        zt_map(b, 2);

        for (k = 0; k < 3; k++) {
            if (k == i) {
                continue;
            }

            zt_text(b, objects[k]);

            if (k == 0) {
                zt_array(b, 0);

            } else if (k == 1) {
                zt_text(b, "dense");

            } else {
                zt_map(b, 0);
            }
        }

        zt_end(b);
        snprintf(name, sizeof(name), "an object without %s", objects[i]);
        zt_is(b, "missing_field", name);
    }
}


/* Builds {"version", "attributes": value, "objects": {}}. */

static void
attributes(zt_bytes_t *b, const void *value, size_t len)
{
    zt_begin(b, "", 0);
    zt_map(b, 3);
    zt_field_text(b, "version", "1.1.0");
    zt_text(b, "attributes");
    zt_put(b, value, len);
    zt_text(b, "objects");
    zt_map(b, 0);
    zt_end(b);
}


static void
test_attributes(zt_bytes_t *b)
{
    attributes(b, "\xa1\x61" "a\x05", 4);
    zt_is(b, "empty", "attributes need not be text");

    attributes(b, "\xf6", 1);
    zt_is(b, "empty", "null as attributes");

    attributes(b, "\x80", 1);
    zt_is(b, "bad_manifest", "an array as attributes");

    attributes(b, "\xc1\xa0", 2);
    zt_is(b, "bad_manifest", "a tag on them");

    attributes(b, "\xa1\x01\x05", 3);
    zt_is(b, "bad_manifest", "a number as a key of attributes");

    attributes(b, "\xa1\x61" "a\xa1\x01\x05", 6);
    zt_is(b, "empty", "but not further in");

    attributes(b, "\xa1\x61" "a\xc1\xc2\x41\x05", 7);
    zt_is(b, "empty", "tags in attributes");

    attributes(b, "\xa2\x61" "a\x05\x61" "a\x05", 7);
    zt_is(b, "duplicate_key", "a key of attributes twice");

    attributes(b, "\xa1\x61" "a\xa2\x61" "b\x05\x61" "b\x05", 10);
    zt_is(b, "duplicate_key", "twice further in");

    attributes(b, "\xa2\x61" "a\xa1\x61" "b\x05\x61" "b\xa1\x61" "b\x05", 13);
    zt_is(b, "empty", "a key twice in different maps");

    attributes(b, "\xa2\x61" "a\x05\x7f\x61" "a\xff\x05", 9);
    zt_is(b, "duplicate_key", "twice, once in chunks");

    attributes(b, "\xa1\xa1\x61" "a\x01\x02", 6);
    zt_is(b, "bad_manifest", "a map as a key");

    attributes(b, "\xa1\x61" "a\xa1\xa2\x61" "a\x01\x61" "a\x02\x02", 11);
    zt_is(b, "duplicate_key", "twice inside of a key");
}


static void
test_duplicates(zt_bytes_t *b)
{
    size_t         i, n;
    char           name[64];
    xet_zt_t      *zt;
    xet_status_t   rc;

    zt_begin(b, "", 0);
    zt_map(b, 3);
    zt_text(b, "objects");
    zt_map(b, 0);
    zt_field_text(b, "version", "1.1.0");
    zt_text(b, "objects");
    zt_map(b, 0);
    zt_end(b);
    zt_is(b, "duplicate_key", "objects twice");

    zt_begin(b, "", 0);
    zt_map(b, 4);
    zt_field(b, "x", 1);
    zt_text(b, "objects");
    zt_map(b, 0);
    zt_field_text(b, "version", "1.1.0");
    zt_field(b, "x", 2);
    zt_end(b);
    zt_is(b, "duplicate_key", "an unknown field twice");

    object_begin(b);
    zt_dense(b, "t", 2, 4);
    zt_field(b, "offset", 64);
    zt_component(b, "f32", 64, 8);
    zt_end(b);
    zt_is(b, "duplicate_key", "offset twice");

    /*
     * two equal names, far apart among many; names that fill their slot, and
     * longer names, which are hashed
     */

    for (n = 14; n <= 300; n += (n < 18) ? 1 : 71) {
        zt_begin(b, "", 0);
        zt_root(b, 2000);

        for (i = 0; i < 2000; i++) {
            memset(name, 'n', n > 60 ? 60 : n);
            snprintf(name, 7, "%05zu", i == 1999 ? 3 : i);
            name[5] = 'n';
            name[n > 60 ? 60 : n] = '\0';

            zt_text(b, name);
            zt_object(b, 1, "dense", 0);
        }

        zt_end(b);

        zt = zt_open(b->data, b->len, 4096, NULL, &rc);
        xet_is_u64(rc, XET_ZT_DUPLICATE, "one name of 2000 is twice there");
        xet_zt_destroy(zt);
    }

    /* names of 14 to 17 bytes that differ only in zero bytes at the end */

    zt_begin(b, "", 0);
    zt_root(b, 4);

    for (i = 14; i < 18; i++) {
        zt_text_n(b, "abcdefghijklmn\0\0\0", i);
        zt_object(b, 0, "other", 0);
    }

    zt_end(b);

    zt = zt_open(b->data, b->len, 3, NULL, &rc);
    xet_is_u64(rc, XET_OK, "names that differ in zero bytes at their end");
    xet_is_u64(xet_zt_info(zt)->count, 4, "are four");
    xet_zt_destroy(zt);
}


static void
test_unknown(zt_bytes_t *b)
{
    object_begin(b);
    zt_text(b, "t");
    zt_map(b, 5);
    zt_field_text(b, "format", "dense");
    zt_text(b, "components");
    zt_map(b, 1);
    zt_text(b, "data");
    zt_map(b, 5);
    zt_component(b, "f32", 64, 8);
    zt_text(b, "future");
    zt_put(b, "\x82\xa1\xf4\x80\x9f\x7f\x61" "a\xff\xff", 10);
    zt_text(b, "a field whose name is longer than any that is known");
    zt_put(b, "\xc1\x5f\x41\x00\xff", 5);
    zt_text(b, "x");
    zt_put(b, "\xf9\x7e\x00", 3);
    zt_text(b, "shape");
    zt_array(b, 1);
    zt_uint(b, 2);
    zt_text(b, "shape2");
    zt_put(b, "\xf6", 1);
    zt_end(b);
    zt_is(b, "t:ok", "unknown fields of all kinds, known ones in any order");
}


static void
test_offset(zt_bytes_t *b)
{
    xet_zt_t      *zt;
    xet_status_t   rc;

    zt_base(b);
    b->data[72 + 93 - 1] = 0x20;

    zt = zt_open(b->data, b->len, 11, NULL, &rc);

    xet_is_u64(rc, XET_ZT_MANIFEST, "a length that is negative");
    xet_is_u64(xet_zt_error_offset(zt), 164, "and where it is");
    xet_ok(xet_zt_feed(zt, b->data, 8) == XET_ZT_MANIFEST, "it stays");

    xet_zt_destroy(zt);
}


int
main(void)
{
    zt_bytes_t  b;

    memset(&b, 0, sizeof(b));

    test_encodings(&b);
    test_types(&b);
    test_keys_of_records(&b);
    test_missing(&b);
    test_attributes(&b);
    test_duplicates(&b);
    test_unknown(&b);
    test_offset(&b);

    free(b.data);

    return xet_done();
}
