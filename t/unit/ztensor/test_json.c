
/*
 * Tests the JSON responses, parsed with jansson and checked member by member.
 */


#include <jansson.h>

#include "zt_bytes.h"
#include "xet_zt.h"


static xet_test_pool_t  pool;


static char *
text_of(const xet_buf_t *b)
{
    size_t  len;

    return (char *) xet_test_flatten(&pool, b, &len);
}


/*
 * Checks the JSON of attributes; data is a CBOR map of definite or indefinite
 * length.
 */

static void
attributes_are(const char *data, size_t len, const char *want)
{
    char        *got;
    xet_buf_t    b;
    xet_json_t   j;

    xet_buf_init(&b, xet_test_alloc, &pool, 16);
    xet_json_init(&j, &b);
    xet_zt_attributes_json(&j, (const uint8_t *) data, len);

    got = (xet_buf_status(&b) == XET_OK) ? text_of(&b) : "failed";

    if (!xet_ok(strcmp(got, want) == 0, "%s", want)) {
        printf("#   got %s\n", got);
    }

    xet_test_pool_free(&pool);
}


#define attributes(data, want)  attributes_are(data, sizeof(data) - 1, want)


static void
test_attributes(void)
{
    attributes("\xa0", "{}");
    attributes("\xbf\xff", "{}");
    attributes("\xa1\x61" "a\x05", "{\"a\":5}");
    attributes("\xa1\x61" "a\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
               "{\"a\":18446744073709551615}");
    attributes("\xa1\x61" "a\x3b\xff\xff\xff\xff\xff\xff\xff\xff",
               "{\"a\":-18446744073709551616}");
    attributes("\xa1\x61" "a\x3b\x7f\xff\xff\xff\xff\xff\xff\xff",
               "{\"a\":-9223372036854775808}");
    attributes("\xa1\x61" "a\x20", "{\"a\":-1}");
    attributes("\xa1\x61" "a\x84\xf4\xf5\xf6\xf7",
               "{\"a\":[false,true,null,null]}");
    attributes("\xa1\x61" "a\x63" "a\0b", "{\"a\":\"a\\u0000b\"}");
    attributes("\xa1\x61\"\x61\n", "{\"\\\"\":\"\\n\"}");
    attributes("\xa1\x61" "a\x7f\x61x\x60\x62yz\xff", "{\"a\":\"xyz\"}");
    attributes("\xa1\x7f\x61x\x61y\xff\x7f\xff", "{\"xy\":\"\"}");

    /* bytes */
    attributes("\xa1\x61" "a\x40", "{\"a\":{\"$base64\":\"\"}}");
    attributes("\xa1\x61" "a\x41M", "{\"a\":{\"$base64\":\"TQ==\"}}");
    attributes("\xa1\x61" "a\x42Ma", "{\"a\":{\"$base64\":\"TWE=\"}}");
    attributes("\xa1\x61" "a\x43Man", "{\"a\":{\"$base64\":\"TWFu\"}}");
    attributes("\xa1\x61" "a\x44Man\xff", "{\"a\":{\"$base64\":\"TWFu/w==\"}}");
    attributes("\xa1\x61" "a\x5f\x41M\x42" "an\xff",
               "{\"a\":{\"$base64\":\"TWFu\"}}");

    /* numbers */
    attributes("\xa1\x61" "a\xf9\x3c\x00", "{\"a\":1.0}");
    attributes("\xa1\x61" "a\xf9\x80\x00", "{\"a\":-0.0}");
    attributes("\xa1\x61" "a\xf9\x7c\x00", "{\"a\":null}");
    attributes("\xa1\x61" "a\xf9\x7e\x00", "{\"a\":null}");
    attributes("\xa1\x61" "a\xfa\x3d\xcc\xcc\xcd", "{\"a\":0.1}");
    attributes("\xa1\x61" "a\xfa\x7f\x7f\xff\xff", "{\"a\":3.4028235e+38}");
    attributes("\xa1\x61" "a\xfb\x3f\xb9\x99\x99\x99\x99\x99\x9a",
               "{\"a\":0.1}");
    attributes("\xa1\x61" "a\xfb\x3f\xd5\x55\x55\x55\x55\x55\x55",
               "{\"a\":0.3333333333333333}");
    attributes("\xa1\x61" "a\xfb\x40\x05\xbf\x0a\x8b\x14\x57\x69",
               "{\"a\":2.718281828459045}");
    attributes("\xa1\x61" "a\xfb\x7f\xef\xff\xff\xff\xff\xff\xff",
               "{\"a\":1.7976931348623157e+308}");
    attributes("\xa1\x61" "a\xfb\x00\x00\x00\x00\x00\x00\x00\x01",
               "{\"a\":4.94065645841247e-324}");
    attributes("\xa1\x61" "a\xfb\xff\xf0\x00\x00\x00\x00\x00\x00",
               "{\"a\":null}");
    attributes("\xa1\x61" "a\xfb\x42\x3b\x8f\x8d\x6c\x68\x0a\x00",
               "{\"a\":118372527208.03906}");

    /* tags, and nested containers */
    attributes("\xa1\x61" "a\xc1\xc2\x05", "{\"a\":5}");
    attributes("\xa2\x61" "a\xa1\x61" "b\x80\x61" "c\x82\xa0\x9f\xff",
               "{\"a\":{\"b\":[]},\"c\":[{},[]]}");

    /* keys that are not text */
    attributes("\xa1\x61" "a\xa2\x01\x02\x20\x03",
               "{\"a\":{\"1\":2,\"-1\":3}}");
    attributes("\xa1\x61" "a\xa3\x41k\x01\x80\x02\x61" "b\x03",
               "{\"a\":{\"b\":3}}");
    attributes("\xa1\x61" "a\xa2\xa1\x61x\x81\x00\xa1\x61y\x80\x61" "b\x03",
               "{\"a\":{\"b\":3}}");
    attributes("\xa1\x61" "a\xa2\x5f\x41k\x41l\xff\x5f\x41" "k\xff\xf6\x04",
               "{\"a\":{}}");

    /* not a map, or truncated */
    attributes("\xa1\x61" "a", "failed");
    attributes("\xa1\xff\x00", "failed");
}


/* Encodes zero bytes of all lengths near the size of one encoded piece. */

static void
test_base64(void)
{
    size_t      len, n, pad, wrong;
    xet_buf_t   b;
    xet_json_t  j;

    static char  data[8 + 6200], want[32 + 4 * 2070];

    wrong = 0;

    for (len = 3070; len <= 6146; len += (len == 3074) ? 3069 : 1) {
        memset(data, 0, sizeof(data));
        memcpy(data, "\xa1\x61" "a\x59", 4);
        data[4] = (char) (len >> 8);
        data[5] = (char) (len & 0xff);

        n = (len + 2) / 3 * 4;
        pad = (3 - len % 3) % 3;

        memset(want, 'A', sizeof(want));
        memcpy(want, "{\"a\":{\"$base64\":\"", 17);
        memset(want + 17 + n - pad, '=', pad);
        strcpy(want + 17 + n, "\"}}");

        xet_buf_init(&b, xet_test_alloc, &pool, 16);
        xet_json_init(&j, &b);
        xet_zt_attributes_json(&j, (const uint8_t *) data, 6 + len);

        wrong += xet_buf_status(&b) != XET_OK || strcmp(text_of(&b), want);

        xet_test_pool_free(&pool);
    }

    xet_is_u64(wrong, 0, "base64 of 3070 bytes and more");
}


/*
 * Tests the deepest nesting that a manifest allows, inside the levels of a
 * listing.
 */

static void
test_depth(void)
{
    char         data[256];
    char        *got;
    size_t       len, i;
    unsigned     kind;
    json_t      *root;
    xet_buf_t    b;
    xet_json_t   j;

    static const char  leaf[2][3] = { "\x41x", "\x80" };

    for (kind = 0; kind < 2; kind++) {
        len = 0;

        data[len++] = (char) 0xa1;
        data[len++] = 0x60;

        /* 29 containers; a listing adds three more around them */

        for (i = 1; i < 29; i++) {
            data[len++] = (char) 0x81;
        }

        data[len++] = leaf[kind][0];

        if (kind == 0) {
            data[len++] = leaf[kind][1];
        }

        xet_buf_init(&b, xet_test_alloc, &pool, 0);
        xet_json_init(&j, &b);

        for (i = 0; i < 3; i++) {
            xet_json_array_begin(&j);
        }

        xet_zt_attributes_json(&j, (uint8_t *) data, len);

        for (i = 0; i < 3; i++) {
            xet_json_array_end(&j);
        }

        xet_is_u64(xet_buf_status(&b), XET_OK, "as deep as it goes");

        got = text_of(&b);
        root = json_loads(got, 0, NULL);

        xet_ok(root != NULL && strstr(got, "[null]") != NULL,
               "what would be too deep is null");

        json_decref(root);
        xet_test_pool_free(&pool);
    }
}


static json_int_t
integer(json_t *o, const char *key)
{
    json_t  *value;

    value = json_object_get(o, key);

    return json_is_integer(value) ? json_integer_value(value) : -1;
}


static int
is_text(json_t *o, const char *key, const char *want)
{
    json_t  *value;

    value = json_object_get(o, key);

    return json_is_string(value) && strcmp(json_string_value(value), want) == 0;
}


static void
build(zt_bytes_t *b)
{
    unsigned  i;

    static uint8_t  blob[256];

    zt_begin(b, blob, sizeof(blob));
    zt_map(b, 3);
    zt_field_text(b, "version", "1.2.0");
    zt_text(b, "attributes");
    zt_map(b, 1);
    zt_field_text(b, "license", "MIT");
    zt_text(b, "objects");
    zt_map(b, 5);

    for (i = 0; i < 2; i++) {
        zt_dense(b, i ? "b" : "a\"/", 4, 4);
        zt_component(b, "f32", 64, 16);
        zt_field_text(b, "digest", "crc32c:00000000");
    }

    zt_text_n(b, "n\0l", 3);
    zt_map(b, 4);
    zt_text(b, "attributes");
    zt_map(b, 2);
    zt_field(b, "bits", 4);
    zt_text(b, "raw");
    zt_put(b, "\x41\x00", 2);
    zt_text(b, "shape");
    zt_array(b, 2);
    zt_uint(b, UINT64_MAX);
    zt_uint(b, 0);
    zt_field_text(b, "format", "paged");
    zt_text(b, "components");
    zt_map(b, 2);
    zt_text(b, "k");
    zt_map(b, 5);
    zt_component(b, "f4", 129, 16);
    zt_field_text(b, "encoding", "lz4");
    zt_field_text(b, "type", "x");
    zt_text(b, "v");
    zt_map(b, 4);
    zt_component(b, "u8", 192, 9);
    zt_field_text(b, "encoding", "zstd");

    zt_text(b, "wide");
    zt_map(b, 3);
    zt_text(b, "shape");
    zt_array(b, 65);
    zt_put_fill(b, 1, 65);
    zt_field_text(b, "format", "dense");
    zt_text(b, "components");
    zt_map(b, 0);

    zt_dense(b, "z", 4, 3);
    zt_component(b, "f32", 64, 16);
    zt_end(b);
}


static json_t *
list(const zt_bytes_t *b, const xet_zt_t *zt, uint64_t first, uint64_t limit,
    uint64_t bytes)
{
    char             *got;
    json_t           *root;
    xet_buf_t         buf;
    xet_json_t        j;
    xet_zt_page_t     page;
    xet_zt_select_t   select;

    memset(&select, 0, sizeof(select));
    select.first = first;
    select.attributes = 1;

    xet_buf_init(&buf, xet_test_alloc, &pool, 0);
    xet_json_init(&j, &buf);

    xet_zt_page_begin(&page, &j, zt, (const uint8_t *) "abc", 3, limit,
                      bytes);
    (void) zt_walk_all(zt, b->data, 5, &select, xet_zt_page_object, &page);
    xet_zt_page_end(&page);

    got = text_of(&buf);
    root = json_loads(got, JSON_ALLOW_NUL|JSON_REJECT_DUPLICATES, NULL);

    if (root == NULL) {
        printf("# %s\n", got);
    }

    return root;
}


static void
test_list(zt_bytes_t *b)
{
    json_t        *root, *objects, *o, *c;
    xet_zt_t      *zt;
    xet_status_t   rc;

    build(b);
    zt = zt_open(b->data, b->len, 1000, NULL, &rc);

    xet_is_u64(rc, XET_OK, "the file of the listing");

    /* 2^64 - 1 is too large for jansson's integers */

    root = list(b, zt, 0, 2, 1 << 20);

    xet_ok(is_text(root, "file", "abc"), "file");
    xet_is_u64(integer(root, "size"), b->len, "size");
    xet_ok(is_text(root, "container", "1.1"), "container");
    xet_ok(is_text(root, "version", "1.2.0"), "version");
    xet_ok(json_is_true(json_object_get(root, "header_magic")),
           "header_magic");

    o = json_object_get(root, "manifest");
    xet_is_u64(integer(o, "offset"), b->manifest, "manifest: offset");
    xet_is_u64(integer(o, "length"), b->len - 16 - b->manifest,
               "manifest: length");
    xet_ok(is_text(json_object_get(root, "attributes"), "license", "MIT"),
           "attributes");
    xet_is_u64(integer(root, "count"), 5, "count");
    xet_is_u64(json_array_size(json_object_get(root, "warnings")), 0,
               "no warnings");
    xet_is_u64(integer(root, "next"), 1, "next: the last of the page");
    xet_is_u64(json_object_size(root), 11, "no other members");

    objects = json_object_get(root, "objects");
    xet_is_u64(json_array_size(objects), 2, "two objects");

    o = json_array_get(objects, 0);
    xet_is_u64(json_object_size(o), 8, "an object has eight members");
    xet_is_u64(integer(o, "i"), 0, "i");
    xet_ok(is_text(o, "name", "a\"/"), "name");
    xet_ok(is_text(o, "format", "dense"), "format");
    xet_ok(is_text(o, "status", "ok"), "status");
    xet_ok(json_is_array(json_object_get(o, "errors"))
           && json_array_size(json_object_get(o, "errors")) == 0, "errors");
    xet_ok(json_is_object(json_object_get(o, "attributes"))
           && json_object_size(json_object_get(o, "attributes")) == 0,
           "attributes");
    xet_ok(json_integer_value(json_array_get(json_object_get(o, "shape"), 0))
           == 4, "shape");

    c = json_object_get(json_object_get(o, "components"), "data");
    xet_is_u64(json_object_size(c), 6, "a component has six members");
    xet_ok(is_text(c, "dtype", "f32") && is_text(c, "encoding", "raw")
           && is_text(c, "digest", "crc32c:00000000"), "its texts");
    xet_ok(integer(c, "offset") == 64 && integer(c, "length") == 16
           && integer(c, "decoded_length") == 16, "its numbers");

    json_decref(root);

    root = list(b, zt, 3, 1000, 1 << 20);
    xet_ok(json_is_null(json_object_get(root, "next")), "the last page");

    objects = json_object_get(root, "objects");
    o = json_array_get(objects, 0);
    xet_ok(json_is_null(json_object_get(o, "shape"))
           && is_text(o, "status", "invalid"), "too many dimensions");
    xet_ok(is_text(json_array_get(objects, 1), "name", "z"), "the last one");
    json_decref(root);

    /* a page with a byte limit still has at least one object */

    root = list(b, zt, 0, 1000, 1);
    xet_ok(json_array_size(json_object_get(root, "objects")) == 1
           && integer(root, "next") == 0, "a page of a byte");
    json_decref(root);

    root = list(b, zt, 1, 1, 1 << 20);
    xet_is_u64(integer(root, "next"), 1, "a page of one");
    json_decref(root);

    root = list(b, zt, 4, 1, 1 << 20);
    xet_ok(json_is_null(json_object_get(root, "next")),
           "a page of exactly what is left");
    json_decref(root);

    xet_test_pool_free(&pool);
    xet_zt_destroy(zt);
}


static xet_status_t
on_object(void *ctx, xet_zt_object_t *o)
{
    xet_json_t  *j;

    j = ctx;

    xet_zt_object_json(j, o);

    return XET_OK;
}


static void
test_object(zt_bytes_t *b)
{
    char             *got;
    xet_zt_t         *zt;
    xet_buf_t         buf;
    xet_json_t        j;
    xet_status_t      rc;
    xet_zt_select_t   select;

    zt = zt_open(b->data, b->len, 1000, NULL, &rc);

    memset(&select, 0, sizeof(select));
    select.name.data = (const uint8_t *) "n\0l";
    select.name.len = 3;
    select.attributes = 1;

    xet_buf_init(&buf, xet_test_alloc, &pool, 0);
    xet_json_init(&j, &buf);

    (void) zt_walk_all(zt, b->data, 1, &select, on_object, &j);

    got = text_of(&buf);

    if (!xet_ok(strcmp(got,
        "{\"i\":2,\"name\":\"n\\u0000l\",\"shape\":[18446744073709551615,0],"
        "\"format\":\"paged\",\"attributes\":{\"bits\":4,"
        "\"raw\":{\"$base64\":\"AA==\"}},\"status\":\"invalid\","
        "\"errors\":[\"unsupported_dtype\",\"unsupported_encoding\","
        "\"misaligned\",\"unsupported_format\"],"
        "\"components\":{\"k\":{\"dtype\":\"f4\",\"type\":\"x\","
        "\"offset\":129,\"length\":16,\"encoding\":\"lz4\","
        "\"decoded_length\":null,\"digest\":null},\"v\":{\"dtype\":\"u8\","
        "\"offset\":192,\"length\":9,\"encoding\":\"zstd\","
        "\"decoded_length\":null,\"digest\":null}}}") == 0,
        "an object in full"))
    {
        printf("#   got %s\n", got);
    }

    xet_test_pool_free(&pool);
    xet_zt_destroy(zt);
}


typedef struct {
    const zt_bytes_t   *b;
    const xet_zt_t     *zt;
    xet_zt_audit_t      audit;
    xet_zt_verifier_t  *verifier;
} audited_t;


static xet_status_t
on_audit(void *ctx, xet_zt_object_t *o)
{
    unsigned          i;
    audited_t        *a;
    xet_range_t       range;
    xet_zt_region_t   region;
    xet_zt_report_t   report;

    a = ctx;

    xet_zt_region(a->zt, &region);
    xet_zt_audit_object(&a->audit, o);

    for (i = 0; i < o->n; i++) {
        if (xet_zt_verifier_start(a->verifier, &region, o, &o->components[i],
                                  &range)
            == XET_AGAIN)
        {
            (void) xet_zt_verifier_feed(a->verifier,
                                        a->b->data + range.start,
                                        (size_t) (range.end - range.start));
        }

        (void) xet_zt_verifier_finish(a->verifier, &report);
        xet_zt_audit_component(&a->audit, o, &o->components[i], &report);
    }

    xet_zt_audit_object_end(&a->audit, o);

    return XET_OK;
}


static void
test_audit(zt_bytes_t *b)
{
    char                    *got;
    json_t                  *root;
    xet_buf_t                buf;
    audited_t                a;
    xet_json_t               j;
    xet_status_t             rc;
    xet_zt_t                *zt;
    xet_zt_decode_limits_t   limits;

    zt = zt_open(b->data, b->len, 1000, NULL, &rc);

    xet_zt_decode_limits_init(&limits);

    a.b = b;
    a.zt = zt;
    a.verifier = xet_zt_verifier_create(&limits);

    xet_buf_init(&buf, xet_test_alloc, &pool, 0);
    xet_json_init(&j, &buf);

    xet_zt_audit_begin(&a.audit, &j, zt, (const uint8_t *) "id", 2);
    (void) zt_walk_all(zt, b->data, 100, NULL, on_audit, &a);
    xet_zt_audit_end(&a.audit);

    got = text_of(&buf);
    root = json_loads(got, JSON_ALLOW_NUL|JSON_REJECT_DUPLICATES, NULL);

    xet_ok(root != NULL && json_is_false(json_object_get(root, "ok")),
           "a verification that is not ok");
    xet_ok(strstr(got, "{\"i\":0,\"name\":\"a\\\"/\",\"components\":"
                       "{\"data\":\"mismatch\"},\"status\":\"ok\","
                       "\"errors\":[]}")
           != NULL, "a wrong digest");
    xet_ok(strstr(got, "\"components\":{\"k\":\"absent\",\"v\":"
                       "\"unreadable\"},\"status\":\"invalid\",\"errors\":["
                       "\"unsupported_dtype\",\"unsupported_encoding\","
                       "\"misaligned\",\"unsupported_format\","
                       "\"not_checked\",\"bad_zstd\"]")
           != NULL, "what the data has shown");
    xet_is_u64(integer(root, "checked"), 5, "five components");
    xet_is_u64(integer(root, "bytes"), 16 * 4 + 9, "and their bytes");
    xet_is_u64(json_object_size(root), 7, "seven members");

    json_decref(root);
    xet_zt_verifier_destroy(a.verifier);
    xet_test_pool_free(&pool);
    xet_zt_destroy(zt);
}


static void
error_is(zt_bytes_t *b, const char *want)
{
    char          *got;
    xet_buf_t      buf;
    xet_json_t     j;
    xet_zt_t      *zt;
    xet_status_t   rc;

    zt = zt_open(b->data, b->len, 1000, NULL, &rc);

    xet_buf_init(&buf, xet_test_alloc, &pool, 0);
    xet_json_init(&j, &buf);

    xet_zt_error_json(&j, zt, rc);

    got = text_of(&buf);

    if (!xet_ok(strcmp(got, want) == 0, "%s", want)) {
        printf("#   got %s\n", got);
    }

    xet_test_pool_free(&pool);
    xet_zt_destroy(zt);
}


static void
test_errors(zt_bytes_t *b)
{
    zt_base(b);
    b->data[b->manifest + 3] = 0xff;
    error_is(b, "{\"error\":{\"code\":\"invalid_utf8\","
                "\"message\":\"text in the manifest is not UTF-8\","
                "\"container\":\"1.1\",\"offset\":73}}");

    b->len = 5;
    error_is(b, "{\"error\":{\"code\":\"too_short\","
                "\"message\":\"too short for a zTensor file\"}}");

    zt_base(b);
    b->len -= 8;
    error_is(b, "{\"error\":{\"code\":\"unsupported_version\","
                "\"message\":\"unsupported version of the zTensor format\","
                "\"container\":\"1.0\"}}");
}


static void
test_memory(zt_bytes_t *b)
{
    unsigned         limit, failed;
    xet_zt_t        *zt;
    xet_buf_t        buf;
    xet_json_t       j;
    xet_status_t     rc;
    xet_zt_page_t    page;
    xet_zt_select_t  select;

    build(b);
    zt = zt_open(b->data, b->len, 1000, NULL, &rc);

    memset(&select, 0, sizeof(select));
    select.attributes = 1;

    failed = 0;

    for (limit = 1; limit < 10; limit++) {
        pool.limit = limit;

        xet_buf_init(&buf, xet_test_alloc, &pool, 16);
        xet_json_init(&j, &buf);

        xet_zt_page_begin(&page, &j, zt, NULL, 0, 100, 1 << 20);
        rc = zt_walk_all(zt, b->data, 100, &select, xet_zt_page_object,
                         &page);
        xet_zt_page_end(&page);

        failed += xet_buf_status(&buf) != XET_OK;

        if (xet_buf_status(&buf) != XET_OK && rc != XET_OK
            && rc != XET_NOMEM)
        {
            failed = 100;
        }

        xet_test_pool_free(&pool);
        pool.n = 0;
    }

    pool.limit = 0;

    xet_ok(failed >= 4 && failed < 10, "memory that runs out: %u of 9",
           failed);

    xet_zt_destroy(zt);
}


int
main(void)
{
    zt_bytes_t  b;

    memset(&b, 0, sizeof(b));

    test_attributes();
    test_base64();
    test_depth();
    test_list(&b);
    test_object(&b);
    test_audit(&b);
    test_errors(&b);
    test_memory(&b);

    free(b.data);

    return xet_done();
}
