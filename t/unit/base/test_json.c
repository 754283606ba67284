
/*
 * Tests the JSON writer: exact text, escapes and UTF-8 repair, exact integers,
 * nesting up to the limit, and switching the buffer.  jansson parses the
 * results.
 */


#include "xet_test.h"
#include "xet_base.h"
#include "xet_vectors.h"


typedef struct {
    xet_buf_t   buf;
    xet_json_t  json;
    uint8_t     heap[65536];
    size_t      used;
    char        text[16384];
} test_writer_t;


static test_writer_t  writer;


static void *
test_alloc(void *data, size_t size)
{
    void           *p;
    test_writer_t  *w;

    w = data;
    size = (size + 15) & ~(size_t) 15;

    if (size > sizeof(w->heap) - w->used) {
        return NULL;
    }

    p = w->heap + w->used;
    w->used += size;

    return p;
}


/* Starts a writer with 7-byte nodes, so that text spans several nodes. */

static xet_json_t *
test_begin(void)
{
    writer.used = 0;

    xet_buf_init(&writer.buf, test_alloc, &writer, 7);
    xet_json_init(&writer.json, &writer.buf);

    return &writer.json;
}


static const char *
test_text(void)
{
    size_t           n;
    xet_buf_node_t  *node;

    n = 0;

    for (node = writer.buf.first; node; node = node->next) {
        memcpy(writer.text + n, node->start,
               (size_t) (node->pos - node->start));
        n += (size_t) (node->pos - node->start);
    }

    writer.text[n] = '\0';

    return writer.text;
}


static void
test_is(const char *want)
{
    json_t        *root;
    const char    *got;
    json_error_t   error;

    got = test_text();

    if (!xet_ok(strcmp(got, want) == 0, "%.60s", want)) {
        printf("#   got %s\n", got);
    }

    root = json_loads(got, JSON_DECODE_ANY|JSON_ALLOW_NUL, &error);

    xet_ok(root != NULL && xet_buf_status(&writer.buf) == XET_OK,
           "jansson reads it");

    json_decref(root);
}


static void
test_structure(void)
{
    xet_json_t  *j;

    j = test_begin();
    xet_json_object_begin(j);
    xet_json_object_end(j);
    test_is("{}");

    j = test_begin();
    xet_json_array_begin(j);
    xet_json_array_end(j);
    test_is("[]");

    j = test_begin();
    xet_json_object_begin(j);
    xet_json_key(j, "a");
    xet_json_array_begin(j);
    xet_json_u64(j, 1);
    xet_json_u64(j, 2);
    xet_json_array_begin(j);
    xet_json_array_end(j);
    xet_json_object_begin(j);
    xet_json_key_n(j, (const uint8_t *) "k\"1", 3);
    xet_json_null(j);
    xet_json_key(j, "k2");
    xet_json_bool(j, 1);
    xet_json_object_end(j);
    xet_json_bool(j, 0);
    xet_json_array_end(j);
    xet_json_key(j, "b");
    xet_json_object_begin(j);
    xet_json_object_end(j);
    xet_json_key(j, "c");
    xet_json_cstring(j, "d");
    xet_json_object_end(j);
    test_is("{\"a\":[1,2,[],{\"k\\\"1\":null,\"k2\":true},false],\"b\":{},"
            "\"c\":\"d\"}");

    j = test_begin();
    xet_json_array_begin(j);
    xet_json_string_begin(j);
    xet_buf_write(j->buf, "https://", 8);
    xet_buf_write(j->buf, "host/", 5);
    xet_json_string_end(j);
    xet_json_string_begin(j);
    xet_json_string_end(j);
    xet_json_array_end(j);
    test_is("[\"https://host/\",\"\"]");

    j = test_begin();
    xet_json_cstring(j, "alone");
    test_is("\"alone\"");
}


/*
 * Tests elements that the caller writes into reserved space, with and without
 * a comma before them.
 */

static void
test_reserve(void)
{
    uint8_t     *p;
    unsigned     i;
    xet_json_t  *j;

    j = test_begin();
    xet_json_object_begin(j);

    for (i = 0; i < 3; i++) {
        p = xet_json_reserve(j, 100);
        memcpy(p, "\"k0\":[1,2]", 10);
        p[2] = (uint8_t) ('0' + i);
        xet_json_advance(j, p + 10);
    }

    xet_json_key(j, "a");
    xet_json_array_begin(j);

    p = xet_json_reserve(j, 2);
    memcpy(p, "{}", 2);
    xet_json_advance(j, p + 2);

    xet_json_u64(j, 7);
    xet_json_array_end(j);
    xet_json_key(j, "b");

    p = xet_json_reserve(j, 1);
    *p = '8';
    xet_json_advance(j, p + 1);

    xet_json_object_end(j);
    test_is("{\"k0\":[1,2],\"k1\":[1,2],\"k2\":[1,2],\"a\":[{},7],\"b\":8}");

    j = test_begin();
    xet_json_array_begin(j);
    xet_ok(xet_json_reserve(j, sizeof(writer.heap)) == NULL
           && xet_buf_status(j->buf) == XET_NOMEM, "no room for an element");
}


static void
test_integers(void)
{
    xet_json_t  *j;

    j = test_begin();
    xet_json_array_begin(j);
    xet_json_u64(j, 0);
    xet_json_u64(j, 9);
    xet_json_u64(j, 10);
    xet_json_u64(j, UINT64_C(9007199254740993));
    xet_json_u64(j, INT64_MAX);
    xet_json_i64(j, 0);
    xet_json_i64(j, -1);
    xet_json_i64(j, INT64_MAX);
    xet_json_i64(j, INT64_MIN);
    xet_json_array_end(j);
    test_is("[0,9,10,9007199254740993,9223372036854775807,0,-1,"
            "9223372036854775807,-9223372036854775808]");

    /* an integer that is too large for jansson */

    j = test_begin();
    xet_json_u64(j, UINT64_MAX);
    xet_ok(strcmp(test_text(), "18446744073709551615") == 0, "UINT64_MAX");
}


static void
test_strings(void)
{
    size_t       i;
    xet_json_t  *j;

    static const struct {
        const char  *in;
        const char  *out;
    } cases[] = {
        { "", "\"\"" },
        { "plain / text \x7f", "\"plain / text \x7f\"" },
        { "\"\\", "\"\\\"\\\\\"" },
        { "\n\r\t\b\f\x01\x1f",
          "\"\\n\\r\\t\\b\\f\\u0001\\u001f\"" },
        { "a\"b\\c", "\"a\\\"b\\\\c\"" },
        { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
          "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },

        /*
         * the first and the last character of each length, and those around
         * U+D800
         */

        { "\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80"
          "\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80",
          "\"\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80"
          "\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80\"" },

        /* ill-formed: lone, overlong, surrogate, too large, truncated */

        { "\x80", "\"\xef\xbf\xbd\"" },
        { "a\xff" "b", "\"a\xef\xbf\xbd" "b\"" },
        { "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "\xc1\xbf", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "\xe0\x9f\xbf", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "\xf0\x8f\xbf\xbf",
          "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "\xf4\x90\x80\x80",
          "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "\xf5\x80\x80",
          "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
        { "\xc3", "\"\xef\xbf\xbd\"" },
        { "\xe2\x82", "\"\xef\xbf\xbd\"" },
        { "\xf0\x9f\x98", "\"\xef\xbf\xbd\"" },
        { "\xe2\x82" "A", "\"\xef\xbf\xbd" "A\"" },
        { "\xf0\x9f\"", "\"\xef\xbf\xbd\\\"\"" },
        { "\xe2\xe2\x82\xac", "\"\xef\xbf\xbd\xe2\x82\xac\"" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        j = test_begin();
        xet_json_cstring(j, cases[i].in);
        test_is(cases[i].out);
    }

    j = test_begin();
    xet_json_string(j, (const uint8_t *) "a\0b", 3);
    test_is("\"a\\u0000b\"");

    /* a sequence that extends beyond the given length counts as truncated */

    j = test_begin();
    xet_json_string(j, (const uint8_t *) "\xe2\x82\xac", 2);
    test_is("\"\xef\xbf\xbd\"");

    j = test_begin();
    xet_json_object_begin(j);
    xet_json_key_n(j, (const uint8_t *) "\xff\n", 2);
    xet_json_string(j, NULL, 0);
    xet_json_object_end(j);
    test_is("{\"\xef\xbf\xbd\\n\":\"\"}");
}


static void
test_depth(void)
{
    char         want[2 * 64 + 1];
    unsigned     i, round;
    xet_json_t  *j;

    /*
     * arrays nested to the maximum depth, then two such nests in one array: a
     * comma is only written between elements
     */

    j = test_begin();

    for (i = 0; i < XET_JSON_DEPTH; i++) {
        xet_json_array_begin(j);
    }

    for (i = 0; i < XET_JSON_DEPTH; i++) {
        xet_json_array_end(j);
    }

    memset(want, '[', XET_JSON_DEPTH);
    memset(want + XET_JSON_DEPTH, ']', XET_JSON_DEPTH);
    want[2 * XET_JSON_DEPTH] = '\0';
    test_is(want);

    j = test_begin();
    xet_json_array_begin(j);

    for (round = 0; round < 2; round++) {
        for (i = 1; i < XET_JSON_DEPTH; i++) {
            xet_json_array_begin(j);
        }

        xet_json_u64(j, 1);
        xet_json_u64(j, 2);

        for (i = 1; i < XET_JSON_DEPTH; i++) {
            xet_json_array_end(j);
        }
    }

    xet_json_array_end(j);
    xet_ok(strstr(test_text(), "[1,2]]") && strstr(test_text(), "],[[")
           && xet_buf_status(&writer.buf) == XET_OK, "the last level twice");

    j = test_begin();

    for (i = 0; i <= XET_JSON_DEPTH; i++) {
        xet_json_array_begin(j);
    }

    xet_is_u64(xet_buf_status(&writer.buf), XET_NOMEM, "one level too many");

    j = test_begin();
    xet_json_array_end(j);
    xet_is_u64(xet_buf_status(&writer.buf), XET_NOMEM, "nothing to close");

    j = test_begin();
    xet_json_object_begin(j);
    xet_json_key(j, "k");
    xet_json_object_end(j);
    xet_is_u64(xet_buf_status(&writer.buf), XET_NOMEM, "a key, no value");
}


static void
test_out_of_memory(void)
{
    unsigned     i;
    xet_json_t  *j;

    j = test_begin();
    xet_json_array_begin(j);

    for (i = 0; i < 10000; i++) {
        xet_json_cstring(j, "as long as it takes");
    }

    xet_json_array_end(j);

    xet_is_u64(xet_buf_status(&writer.buf), XET_NOMEM,
               "out of memory is seen at the end");
}


/* Writes step i of a document; returns 0 after the last one. */

static int
test_step(xet_json_t *j, unsigned i)
{
    switch (i) {

    case 0:
        xet_json_object_begin(j);
        return 1;

    case 1:
        xet_json_key(j, "a");
        return 1;

    case 2:
    case 7:
        xet_json_array_begin(j);
        return 1;

    case 3:
    case 4:
        xet_json_u64(j, i);
        return 1;

    case 5:
        xet_json_string_begin(j);
        return 1;

    case 6:
        xet_json_string_end(j);
        return 1;

    case 8:
    case 10:
        xet_json_array_end(j);
        return 1;

    case 9:
        xet_json_null(j);
        return 1;

    case 11:
        xet_json_key(j, "b");
        return 1;

    case 12:
        xet_json_bool(j, 1);
        return 1;

    case 13:
        xet_json_object_end(j);
        return 1;

    default:
        return 0;
    }
}


/* Switches the buffer between steps, at every subset of the 13 positions. */

static void
test_resume(void)
{
    char         text[64];
    size_t       len;
    unsigned     i, mask, bad;
    xet_buf_t    failed;
    xet_json_t  *j;

    static const char  want[] = "{\"a\":[3,4,\"\",[],null],\"b\":true}";

    bad = 0;

    for (mask = 0; mask < 1u << 13; mask++) {
        j = test_begin();
        len = 0;

        for (i = 0; test_step(j, i); i++) {

            if (i == 13 || mask & 1u << i) {
                test_text();
                memcpy(text + len, writer.text, (size_t) writer.buf.size);
                len += (size_t) writer.buf.size;

                xet_buf_init(&writer.buf, test_alloc, &writer, 7);
                xet_json_resume(j, &writer.buf);
            }
        }

        bad += len != sizeof(want) - 1 || memcmp(text, want, len) != 0;
    }

    xet_is_u64(bad, 0, "the same text, whatever the buffers");

    /* an error in one buffer does not affect the next buffer */

    xet_buf_init(&failed, test_alloc, &writer, SIZE_MAX);

    j = test_begin();
    xet_json_array_begin(j);
    xet_json_u64(j, 1);
    xet_json_resume(j, &failed);
    xet_json_u64(j, 2);
    xet_is_u64(xet_buf_status(&failed), XET_NOMEM, "a buffer that failed");
    xet_json_resume(j, &writer.buf);
    xet_json_u64(j, 3);
    xet_json_array_end(j);
    test_is("[1,3]");
}


int
main(void)
{
    test_structure();
    test_reserve();
    test_integers();
    test_strings();
    test_depth();
    test_out_of_memory();
    test_resume();

    return xet_done();
}
