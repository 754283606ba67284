
/*
 * Tests which parts of log lines are masked and which are unchanged: a table
 * of lines, and lines truncated at every position.
 */


#include "xet_test.h"
#include "xet_access.h"


#define HEX64  "0123456789abcdef0123456789abcdef"                            \
               "0123456789abcdef0123456789abcdef"
#define B64    "O63Xgq4EK1ZumPBqVoLzziUYg8xvqvpU-xkOLzLbO_E"
#define XET1   "xet1AJ4xVkIyZqS026cv4zgD051fNI7DX1SWOFehgPcbr3Q84GGeFmIooaH3Dg"
#define JWT    "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3ODYxOTI4MTAsInNjb3BlIjoicmVh" \
               "ZCJ9.SRBg9NoKdCRDMqgKrGhjPnOdn0-XgX2Tbl4N6HlshSI"


/* In "text" braces mark a secret; they are not part of the line. */

static const char *const  test_lines[] = {

    /* signed URLs: xorb data, and LFS uploads */
    "request: \"GET /xorbs/default/ab/x?r=0-9&e=1&k=k1&s={" B64 "} HTTP/1.1\"",
    "request: \"GET /x?e=1&k=k1&s={" B64 "}&n=0-9 HTTP/1.1\", host: \"h\"",
    "request: \"PUT /api/lfs/x?r=_hub/1&e=2&s={" HEX64 "} HTTP/1.1\"",
    "upstream: \"http://127.0.0.1:1/x?e=1&k=k1&s={" B64 "}\", host: \"h\"",
    "referrer: \"http://h/x?s={" B64 "}&r=a\"",
    "s={" B64 "}",
    "args: \"s={" B64 "}\"",
    "?s={" B64 "}#x",
    "?s={" B64 "}&s={" B64 "}",
    "?r=0-9&e=1&k=k1&9s={" B64 "}",
    "?r=0-9&e=1&k=k1&.={" B64 "} x=" B64,
    "?r=0-9&e=1&k=k1&{s7" B64 "}",
    "?s={%4f" B64 "}",
    "?s%3D{" B64 "}",
    "?u=http%3A%2F%2Fh%2Fx%3Fe%3D1%26s%3D{" B64 "}%26n%3D1",
    "request: \"GET /x?e=1&k=k1&s={O63Xgq4}\n",
    "?u=http%3a%2f%2fh%2fx%3fs%3d{" B64 "}%26n%3D1",

    /* presigned URLs */
    "?X-Amz-Date=1&X-Amz-Signature={" HEX64 "}&x=1",
    "?X-Amz-Security-Token={FwoGZXIvYXdzE%2FwaD}&X-Amz-Signature={" HEX64 "}",
    "?x-amz-signature%3D{" HEX64 "}",

    /* headers */
    "duplicate header line: \"Authorization:{ Bearer abc}\", previous value: "
        "\"authorization:{ Basic dXNlcjpwYXNz}\"",
    "invalid header line: \"Authorization:{ Bearer hf_x\\x00...}\" while",
    "\"Proxy-Authorization:{ x}\"",
    "got Bearer {0123456789abcdefgh+/=}, bad",
    "got Basic {dXNlcjpwYXNzd29yZA==}",

    /* tokens, anywhere in the text */
    "/x?token={" JWT "}&x=1",
    "user \"hf_{" JWT "}\": x",
    "{" JWT "}",
    "ab={" JWT "}",
    "/x?token={" XET1 "}&x=1",
    "user \"hf_{" XET1 "}\": x",
    "user \"{" XET1 "}\": x",
    "{xet1AJ4xVkIyZqS0}",
    "{ewoJImFsZyI6ICJIUzI1NiIKfQ.eyJleHAiOjE3ODYxOTI4MTAsI.x}",

    /* text without secrets */
    "/xorbs/default/ab/" HEX64 ".00000001?r=0-9&e=1&k=k1",
    "?s=a+search+for+something",
    "?q=" HEX64 "&as=" HEX64,
    "/s/" HEX64,
    "tokens=" B64,
    "no user/password was provided for basic authentication",
    "the key-model-00001.safetensors is not there",
    "eyJhbGciOiJIUzI1NiJ9",
    "X-Amz-Date=20261123T081206Z&X-Amz-SignedHeaders=host",
    "xet1model.bin xet10000 XET1AJ4xVkIyZqS026cv4z",
    "xet1",
    "e", "s", "s=", "x-amz-signature", "authorization", "bearer ", "a", ""
};


/* Masks a copy that has the exact length of the text. */

static void
test_line(const char *text)
{
    int       secret;
    size_t    len;
    char      want[1024];
    uint8_t  *line;

    line = malloc(strlen(text) + 1);
    len = 0;
    secret = 0;

    for ( /* void */ ; *text; text++) {

        if (*text == '{' || *text == '}') {
            secret = (*text == '{');
            continue;
        }

        want[len] = secret ? '*' : *text;
        line[len++] = (uint8_t) *text;
    }

    line = realloc(line, len + !len);

    xet_mask(line, len);
    xet_ok(memcmp(line, want, len) == 0, "%.*s", (int) len, (char *) line);

    xet_mask(line, len);
    xet_ok(memcmp(line, want, len) == 0, "and again");

    free(line);
}


/* Checks that a line truncated at any position shows no part of a signature. */

static void
test_cut(void)
{
    size_t    len, cut, i, shown;
    uint8_t  *line;

    static const char  text[] = "GET /x?r=0-9&e=1&k=k1&s=" HEX64;

    len = sizeof(text) - 1;

    for (cut = 0; cut <= len; cut++) {
        line = malloc(cut + 1);
        memcpy(line, text, cut);
        line[cut] = '\n';

        xet_mask(line, cut + 1);

        shown = 0;

        for (i = len - 64; i < cut; i++) {
            shown += (line[i] != '*');
        }

        xet_is_u64(shown, 0, "nothing of a signature is shown");
        xet_is_u64(line[cut], '\n', "the line ends");

        free(line);
    }
}


int
main(void)
{
    size_t  i;

    for (i = 0; i < sizeof(test_lines) / sizeof(test_lines[0]); i++) {
        test_line(test_lines[i]);
    }

    test_cut();

    return xet_done();
}
