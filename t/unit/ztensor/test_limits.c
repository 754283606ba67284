
/*
 * Tests each limit of the manifest: values at the limit, and one beyond it.
 */


#include "zt_bytes.h"


static void
is_limited(const zt_bytes_t *b, const xet_zt_limits_t *limits,
    const char *want, const char *name)
{
    const char  *got;

    got = zt_outcome(b->data, b->len, 7, limits);

    if (!xet_ok(strcmp(got, want) == 0, "%s: %s", name, want)) {
        printf("#   got %s\n", got);
    }
}


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
test_names(zt_bytes_t *b)
{
    size_t            i, n;
    char             *name;
    xet_zt_limits_t   limits;

    static const char *const  texts[] = { "name", "role", "format", "dtype",
                                          "encoding", "digest" };

    xet_zt_limits_init(&limits);
    xet_is_u64(limits.name, 1024, "names of 1024 bytes by default");

    name = calloc(1, 1026);

    for (i = 0; i < 6; i++) {

        for (n = 1024; n <= 1025; n++) {
            memset(name, 'x', n);
            name[n] = '\0';

            object_begin(b);
            zt_text(b, i == 0 ? name : "t");
            zt_map(b, 3);
            zt_text(b, "shape");
            zt_array(b, 1);
            zt_uint(b, 2);
            zt_field_text(b, "format", i == 2 ? name : "dense");
            zt_text(b, "components");
            zt_map(b, 2);
            zt_text(b, "data");
            zt_map(b, 3);
            zt_component(b, "f32", 64, 8);
            zt_text(b, i == 1 ? name : "z");
            zt_map(b, 5);
            zt_component(b, i == 3 ? name : "u8", 64, 8);
            zt_field_text(b, "encoding", i == 4 ? name : "raw");
            zt_field_text(b, "digest", i == 5 ? name : "z");
            zt_end(b);

            is_limited(b, &limits,
                       n > 1024 ? "name_too_long"
                       : i == 0 ? "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx:ok"
                       : i == 2 ? "t:unsupported_format"
                       : i == 3 ? "t:unsupported_dtype"
                       : i == 4 ? "t:unsupported_encoding" : "t:ok",
                       texts[i]);
        }
    }

    free(name);
}


/* Builds a file of n objects with the given number of components each. */

static void
objects(zt_bytes_t *b, unsigned n, unsigned roles, int indefinite)
{
    char      name[16];
    unsigned  i, k;

    zt_begin(b, "", 0);
    zt_map(b, 2);
    zt_field_text(b, "version", "1.1.0");
    zt_text(b, "objects");

    if (indefinite) {
        zt_put(b, "\xbf", 1);

    } else {
        zt_map(b, n);
    }

    for (i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "%u", i);
        zt_text(b, name);
        zt_object(b, 0, "other", roles);

        for (k = 0; k < roles; k++) {
            snprintf(name, sizeof(name), "%u", k);
            zt_text(b, name);
            zt_map(b, 3);
            zt_component(b, "u8", 64, 0);
        }
    }

    if (indefinite) {
        zt_put(b, "\xff", 1);
    }

    zt_end(b);
}


static xet_status_t
open_status(const zt_bytes_t *b, const xet_zt_limits_t *limits)
{
    xet_zt_t      *zt;
    xet_status_t   rc;

    zt = zt_open(b->data, b->len, 1000, limits, &rc);
    xet_zt_destroy(zt);

    return rc;
}


static void
test_counts(zt_bytes_t *b)
{
    xet_zt_limits_t  limits;

    xet_zt_limits_init(&limits);

    xet_is_u64(limits.objects, 1000000, "a million objects by default");
    xet_is_u64(limits.components, 2000000, "two million components");
    xet_is_u64(limits.roles, 64, "64 of an object");
    xet_is_u64(limits.rank, 64, "64 dimensions");
    xet_is_u64(limits.depth, 32, "32 levels");

    limits.objects = 100;

    objects(b, 100, 1, 0);
    xet_is_u64(open_status(b, &limits), XET_OK, "100 objects");
    objects(b, 101, 1, 0);
    xet_is_u64(open_status(b, &limits), XET_ZT_OBJECTS, "not 101");
    objects(b, 100, 1, 1);
    xet_is_u64(open_status(b, &limits), XET_OK, "100 that are not counted");
    objects(b, 101, 1, 1);
    xet_is_u64(open_status(b, &limits), XET_ZT_OBJECTS, "not 101 of them");

    limits.components = 200;

    objects(b, 100, 2, 0);
    xet_is_u64(open_status(b, &limits), XET_OK, "200 components");
    limits.components = 199;
    xet_is_u64(open_status(b, &limits), XET_ZT_COMPONENTS, "not one more");

    xet_zt_limits_init(&limits);

    objects(b, 1, 64, 0);
    xet_is_u64(open_status(b, &limits), XET_OK, "64 components of an object");
    objects(b, 1, 65, 0);
    xet_is_u64(open_status(b, &limits), XET_ZT_COMPONENTS, "not 65");
}


/* Begins a file with n attributes, which the caller writes, and no objects. */

static void
attributes_begin(zt_bytes_t *b, unsigned n)
{
    zt_begin(b, "", 0);
    zt_map(b, 3);
    zt_field_text(b, "version", "1.1.0");
    zt_text(b, "attributes");
    zt_map(b, n);
}


static void
attributes_end(zt_bytes_t *b)
{
    zt_text(b, "objects");
    zt_map(b, 0);
    zt_end(b);
}


static void
test_keys(zt_bytes_t *b)
{
    char              name[16];
    unsigned          i, n;
    xet_zt_limits_t   limits;

    xet_zt_limits_init(&limits);
    xet_is_u64(limits.keys, 65536, "65,536 keys by default");

    limits.keys = 50;

    for (n = 50; n <= 51; n++) {
        attributes_begin(b, n);

        for (i = 0; i < n; i++) {
            snprintf(name, sizeof(name), "%u", i);
            zt_field(b, name, i);
        }

        attributes_end(b);

        xet_is_u64(open_status(b, &limits), n == 50 ? XET_OK : XET_ZT_KEYS,
                   n == 50 ? "50 keys of attributes" : "not 51");
    }

    objects(b, 51, 1, 0);
    xet_is_u64(open_status(b, &limits), XET_OK, "objects are not meant");
}


/* Builds an object whose attributes have an innermost array at this depth. */

static void
nested(zt_bytes_t *b, unsigned depth, unsigned byte)
{
    unsigned  i;

    object_begin(b);
    zt_text(b, "t");
    zt_map(b, 4);
    zt_text(b, "attributes");
    zt_map(b, 1);
    zt_text(b, "a");

    for (i = 4; i < depth; i++) {
        zt_put_byte(b, byte);

        if (byte == 0xa1) {
            zt_put_byte(b, 0x60);
        }
    }

    zt_put_byte(b, 0x00);

    if (byte == 0x9f) {
        zt_put_fill(b, 0xff, depth - 4);
    }

    zt_text(b, "shape");
    zt_array(b, 1);
    zt_uint(b, 2);
    zt_field_text(b, "format", "dense");
    zt_text(b, "components");
    zt_map(b, 1);
    zt_text(b, "data");
    zt_map(b, 3);
    zt_component(b, "f32", 64, 8);
    zt_end(b);
}


static void
test_depth(zt_bytes_t *b)
{
    size_t    i;

    static const uint8_t  bytes[] = { 0x81, 0xa1, 0x9f, 0xc1 };

    for (i = 0; i < sizeof(bytes); i++) {
        nested(b, 32, bytes[i]);
        zt_is(b, "t:ok", "32 levels");

        nested(b, 33, bytes[i]);
        zt_is(b, "nesting_too_deep", "not 33");

        nested(b, 50000, bytes[i]);
        zt_is(b, "nesting_too_deep", "nor 50,000");
    }
}


static void
test_rank(zt_bytes_t *b)
{
    unsigned  i, n;

    for (n = 64; n <= 65; n++) {
        object_begin(b);
        zt_text(b, "t");
        zt_map(b, 3);
        zt_text(b, "shape");
        zt_array(b, n);

        for (i = 0; i < n; i++) {
            zt_uint(b, i == 63 ? 2 : 1);
        }

        zt_field_text(b, "format", "dense");
        zt_text(b, "components");
        zt_map(b, 1);
        zt_text(b, "data");
        zt_map(b, 3);
        zt_component(b, "f32", 64, 8);
        zt_end(b);
        zt_is(b, n == 64 ? "t:ok" : "t:rank_too_large",
              n == 64 ? "64 dimensions" : "not 65");
    }
}


/*
 * Checks that attributes are echoed up to the limit, and longer ones omitted.
 */

static void
test_cut(zt_bytes_t *b)
{
    size_t            n;
    xet_zt_t         *zt;
    xet_status_t      rc;
    xet_zt_limits_t   limits;

    xet_zt_limits_init(&limits);
    xet_is_u64(limits.attributes, 1 << 20, "1 MiB of attributes echoed");

    /* bf .. ff: two bytes around a key of one byte and a text */

    limits.attributes = 100;

    for (n = 100; n <= 101; n++) {
        attributes_begin(b, 1);
        zt_text(b, "a");
        zt_head(b, 3, n - 6);
        zt_put_fill(b, 'x', n - 6);
        attributes_end(b);

        zt = zt_open(b->data, b->len, 9, &limits, &rc);

        xet_is_u64(rc, XET_OK, "attributes are no ground for refusal");
        xet_ok((xet_zt_attributes(zt)->data != NULL) == (n == 100)
               && xet_zt_info(zt)->warnings
                  == (n == 100 ? 0 : XET_ZT_WARN_ATTRIBUTES),
               "%zu bytes of them are %s", n, n == 100 ? "kept" : "not");

        if (n == 100) {
            xet_ok(xet_zt_attributes(zt)->len == 100
                   && xet_zt_attributes(zt)->data[0] == 0xbf
                   && xet_zt_attributes(zt)->data[99] == 0xff
                   && memcmp(xet_zt_attributes(zt)->data + 1,
                             "\x61" "a\x78\x5exxx", 7) == 0,
                   "as they are encoded");
        }

        xet_zt_destroy(zt);
    }
}


int
main(void)
{
    zt_bytes_t  b;

    memset(&b, 0, sizeof(b));

    test_names(&b);
    test_counts(&b);
    test_keys(&b);
    test_depth(&b);
    test_rank(&b);
    test_cut(&b);

    free(b.data);

    return xet_done();
}
