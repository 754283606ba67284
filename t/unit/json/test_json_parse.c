
/*
 * Tests the parser of JSON input: strictness and the nesting limit.
 */


#include "xet_test.h"
#include "xet_json.h"


static xet_status_t
test_parse(const void *text, size_t len, unsigned depth)
{
    json_t        *object;
    uint8_t       *copy;
    xet_status_t   status;

    copy = malloc(len + !len);
    memcpy(copy, text, len);

    object = NULL;
    status = xet_json_parse(&object, copy, len, depth);

    free(copy);

    if (status == XET_OK && !json_is_object(object)) {
        status = XET_INTERNAL;
    }

    json_decref(object);

    return status;
}


static void
test_texts(void)
{
    size_t  i;

    static const char  *const  good[] = {
        "{}", " { } ", "\t\r\n{}", "{\"a\":1}", "{\"\":\"\"}",
        "{\"a\":[1,2,{\"b\":null}]}", "{\"a\":\"\\u00e4\\\"\\\\[\"}",
        "{\"a\":\"[[[[[[[[[[[[[[[[{{{{{{{{\"}", "{\"a\":\"\\\\\",\"b\":[]}",
        "{\"a\":1,\"A\":1}", "{\"a\":9223372036854775807}",
        "{\"a\":{\"x\":1},\"b\":{\"x\":1}}", "{\"a\":\"\xf0\x9f\x98\x80\"}",
        "{\"a\":\"\\ud83d\\ude00\"}"
    };

    static const char  *const  bad[] = {
        "", " ", "{", "}", "[]", "[{}]", "1", "null", "\"a\"", "{}{}", "{} x",
        "{},", "{\"a\":1,}", "{\"a\"}", "{\"a\":}", "{a:1}", "{'a':1}",
        "{\"a\":01}", "{\"a\":+1}", "{\"a\":.5}", "{\"a\":1.}", "{\"a\":NaN}",
        "{\"a\":Infinity}", "{\"a\":0x1}", "{\"a\":True}", "{\"a\":1 2}",
        "{\"a\":\"\\x\"}", "{\"a\":\"\\u00\"}", "{\"a\":\"\n\"}",
        "{\"a\":\"\\u0000\"}", "{\"\\u0000\":1}", "{\"a\\u0000b\":1}",
        "{\"a\":\"\\ud83d\"}", "{\"a\":\"\\ude00\"}", "{\"a\":\"\x80\"}",
        "{\"a\":\"\xc0\x80\"}", "{\"a\":\"\xed\xa0\x80\"}",
        "{\"a\":\"\xf4\x90\x80\x80\"}", "{\"a\":\"\xe4\"}", "{\"\xff\":1}",
        "\xef\xbb\xbf{}", "/**/{}", "{}//", "{\"a\":1,\"a\":1}",
        "{\"a\":1,\"\\u0061\":2}", "{\"b\":{\"a\":1,\"a\":2}}",
        "{\"b\":[{\"a\":1,\"a\":2}]}", "{\"\":1,\"\":2}",
        "{\"a\":9223372036854775808}", "{\"a\":1e999}", "{\"a\":\"x}",
        "{\"a\":tru}", "{\"a\":\xa0}"
    };

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        xet_is_u64(test_parse(good[i], strlen(good[i]), 16), XET_OK,
                   "accepted");
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        xet_ok(test_parse(bad[i], strlen(bad[i]), 16) == XET_BODY_SYNTAX,
               "refused: %u", (unsigned) i);
    }

    xet_is_u64(test_parse("{}\0", 3, 16), XET_BODY_SYNTAX, "NUL behind");
    xet_is_u64(test_parse("\0{}", 3, 16), XET_BODY_SYNTAX, "NUL before");
    xet_is_u64(test_parse("{\"a\":\"\0\"}", 9, 16), XET_BODY_SYNTAX,
               "NUL in a string");
    xet_is_u64(test_parse("{\"a\0\":1}", 8, 16), XET_BODY_SYNTAX,
               "NUL in a name");
    xet_is_u64(test_parse("{\0}", 3, 16), XET_BODY_SYNTAX, "NUL inside");
}


/* Writes an object that contains arrays or objects, nested to this depth. */

static size_t
test_nested(char *text, unsigned depth, int object)
{
    char      *p;
    unsigned   i;

    p = text;
    p += sprintf(p, "{\"a\":");

    for (i = 1; i < depth; i++) {
        p += sprintf(p, object ? "{\"a\":" : "[");
    }

    p += sprintf(p, "1");

    for (i = 1; i < depth; i++) {
        *p++ = object ? '}' : ']';
    }

    *p++ = '}';

    return (size_t) (p - text);
}


static void
test_depth(void)
{
    int        object;
    char      *text;
    size_t     len;
    unsigned   i;

    static const unsigned  depths[] = { 1, 2, 8, 16, 100 };

    text = malloc(8 << 20);

    for (object = 0; object < 2; object++) {
        for (i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
            len = test_nested(text, depths[i], object);
            xet_is_u64(test_parse(text, len, depths[i]), XET_OK, "as deep");

            len = test_nested(text, depths[i] + 1, object);
            xet_is_u64(test_parse(text, len, depths[i]), XET_BODY_SYNTAX,
                       "one deeper");
        }

        len = test_nested(text, 1000000, object);
        xet_is_u64(test_parse(text, len, 16), XET_BODY_SYNTAX,
                   "a million deep");
    }

    xet_is_u64(test_parse("{}", 2, 0), XET_BODY_SYNTAX, "no depth at all");
    xet_is_u64(test_parse("{\"a\":[],\"b\":[],\"c\":[[]],\"d\":{}}", 31, 3),
               XET_OK, "side by side is not deep");
    xet_is_u64(test_parse("{\"a\":\"\\\\\",\"b\":[[]]}", 20, 2),
               XET_BODY_SYNTAX, "a backslash at the end of a string");
    xet_is_u64(test_parse("{\"a\":\"\\\"[[[\"}", 13, 1), XET_OK,
               "brackets behind an escaped quote");
    xet_is_u64(test_parse("]]]]{\"a\":1}", 11, 1), XET_BODY_SYNTAX,
               "closed before it is open");

    free(text);
}


int
main(void)
{
    test_texts();
    test_depth();

    return xet_done();
}
