
/*
 * Tests AWS signatures: the published S3 examples, in the header and in a URL,
 * the AWS test suite, and the limits.
 */


#include "xet_test.h"
#include "xet_access.h"


#define EMPTY                                                                 \
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define WELCOME                                                               \
    "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"

#define S3_ID      "AKIAIOSFODNN7EXAMPLE"
#define S3_SECRET  "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define S3_DATE    "20130524T000000Z"
#define S3_HOST    "examplebucket.s3.amazonaws.com"

#define ID         "AKIDEXAMPLE"
#define SECRET     "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define DATE       "20150830T123600Z"

#define PAIRS      8


typedef struct {
    const char        *title;
    const char        *method;
    const char        *path;
    xet_sigv4_pair_t   args[PAIRS];
    xet_sigv4_pair_t   headers[PAIRS];
    const char        *payload;
    const char        *names;
    const char        *signature;
} test_case_t;


/* From the S3 API reference, "Signature Version 4". */

static const test_case_t  test_s3[] = {

    { "GET of an object", "GET", "/test.txt", { { NULL, NULL } },
      { { "range", "bytes=0-9" }, { "x-amz-date", S3_DATE },
        { "host", S3_HOST }, { "x-amz-content-sha256", EMPTY } },
      EMPTY, "host;range;x-amz-content-sha256;x-amz-date",
      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41" },

    { "PUT of an object", "PUT", "/test$file.text", { { NULL, NULL } },
      { { "date", "Fri, 24 May 2013 00:00:00 GMT" }, { "host", S3_HOST },
        { "x-amz-date", S3_DATE },
        { "x-amz-storage-class", "REDUCED_REDUNDANCY" },
        { "x-amz-content-sha256", WELCOME } },
      WELCOME,
      "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
      "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd" },

    { "GET of the lifecycle", "GET", "/", { { "lifecycle", "" } },
      { { "host", S3_HOST }, { "x-amz-date", S3_DATE },
        { "x-amz-content-sha256", EMPTY } },
      EMPTY, "host;x-amz-content-sha256;x-amz-date",
      "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543" },

    { "a list", "GET", "/", { { "prefix", "J" }, { "max-keys", "2" } },
      { { "host", S3_HOST }, { "x-amz-date", S3_DATE },
        { "x-amz-content-sha256", EMPTY } },
      EMPTY, "host;x-amz-content-sha256;x-amz-date",
      "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7" },

    { NULL }
};


/* From aws-sig-v4-test-suite; its service is named "service". */

#define HOST        { "host", "example.amazonaws.com" }
#define WHEN        { "x-amz-date", DATE }
#define PLAIN       { HOST, WHEN }
#define PLAIN_NAMES "host;x-amz-date"

static const test_case_t  test_suite[] = {

    { "get-vanilla", "GET", "/", { { NULL, NULL } }, PLAIN, EMPTY,
      PLAIN_NAMES,
      "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },

    { "get-vanilla-query-order-key-case", "GET", "/",
      { { "Param2", "value2" }, { "Param1", "value1" } }, PLAIN, EMPTY,
      PLAIN_NAMES,
      "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500" },

    { "get-vanilla-query-order-value", "GET", "/",
      { { "Param1", "value2" }, { "Param1", "value1" } }, PLAIN, EMPTY,
      PLAIN_NAMES,
      "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694" },

    { "get-vanilla-utf8-query", "GET", "/",
      { { "\xe1\x88\xb4", "bar" } }, PLAIN, EMPTY, PLAIN_NAMES,
      "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04" },

    { "get-utf8", "GET", "/\xe1\x88\xb4", { { NULL, NULL } }, PLAIN, EMPTY,
      PLAIN_NAMES,
      "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85" },

    { "get-unreserved", "GET",
      "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
      { { NULL, NULL } }, PLAIN, EMPTY, PLAIN_NAMES,
      "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f" },

    { "get-space", "GET", "/example space/", { { NULL, NULL } }, PLAIN, EMPTY,
      PLAIN_NAMES,
      "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741" },

    { "get-header-key-duplicate", "GET", "/", { { NULL, NULL } },
      { HOST, { "my-header1", "value2" }, { "my-header1", "value2" },
        { "my-header1", "value1" }, WHEN },
      EMPTY, "host;my-header1;x-amz-date",
      "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea" },

    { "get-header-value-trim", "GET", "/", { { NULL, NULL } },
      { HOST, { "my-header1", " value1" },
        { "my-header2", " \"a   b   c\"" }, WHEN },
      EMPTY, "host;my-header1;my-header2;x-amz-date",
      "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736" },

    { "post-vanilla", "POST", "/", { { NULL, NULL } }, PLAIN, EMPTY,
      PLAIN_NAMES,
      "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b" },

    { "post-header-key-sort", "POST", "/", { { NULL, NULL } },
      { { "my-header1", "value1" }, WHEN, HOST },
      EMPTY, "host;my-header1;x-amz-date",
      "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c" },

    { NULL }
};


static void
test_request(const test_case_t *c, const char *service, const char *date,
    xet_sigv4_t *r)
{
    memset(r, 0, sizeof(xet_sigv4_t));

    r->method = c->method;
    r->path = c->path;
    r->args = c->args;
    r->headers = c->headers;
    r->payload = c->payload;
    r->date = date;
    r->region = "us-east-1";
    r->service = service;

    while (r->nargs < PAIRS && c->args[r->nargs].name) {
        r->nargs++;
    }

    while (r->nheaders < PAIRS && c->headers[r->nheaders].name) {
        r->nheaders++;
    }
}


static void
test_table(const test_case_t *c, const char *service, const char *id,
    const char *secret, const char *date)
{
    char         got[512], want[512];
    uint8_t      key[XET_SIGV4_KEY_LEN];
    xet_sigv4_t  r;

    xet_ok(xet_sigv4_key(key, secret, date, "us-east-1", service) == XET_OK,
           "the key of %s", service);

    for ( /* void */ ; c->title; c++) {

        test_request(c, service, date, &r);

        snprintf(want, sizeof(want), "AWS4-HMAC-SHA256 Credential=%s/%.8s/"
                 "us-east-1/%s/aws4_request,SignedHeaders=%s,Signature=%s",
                 id, date, service, c->names, c->signature);

        if (xet_sigv4_header(got, sizeof(got), &r, key, id) != XET_OK) {
            got[0] = '\0';
        }

        if (!xet_ok(strcmp(got, want) == 0, "%s", c->title)) {
            printf("#   got  %s\n#   want %s\n", got, want);
        }
    }
}


static void
test_texts(void)
{
    char         text[512];
    xet_sigv4_t  r;

    test_request(&test_s3[0], "s3", S3_DATE, &r);

    xet_ok(xet_sigv4_text(text, sizeof(text), &r) == XET_OK
           && strcmp(text, "AWS4-HMAC-SHA256\n20130524T000000Z\n"
                     "20130524/us-east-1/s3/aws4_request\n"
                     "7344ae5b7ee6c3e7e6b0fe0640412a37625d1fbfff95c48bbb2dc4396"
                     "4946972")
              == 0,
           "the text that is signed");
}


static void
test_query(void)
{
    char                text[1024];
    size_t              i, len;
    uint8_t             key[XET_SIGV4_KEY_LEN];
    xet_sigv4_t         r;
    xet_sigv4_pair_t    many[XET_SIGV4_PAIRS_MAX + 1];

    static const char   want[] =
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPL"
        "E%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T0000"
        "00Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeee"
        "d9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";

    static const xet_sigv4_pair_t  host[] = { { "host", S3_HOST } };

    (void) xet_sigv4_key(key, S3_SECRET, S3_DATE, "us-east-1", "s3");

    memset(&r, 0, sizeof(r));

    r.method = "GET";
    r.path = "/test.txt";
    r.headers = host;
    r.nheaders = 1;
    r.payload = XET_SIGV4_UNSIGNED;
    r.date = S3_DATE;
    r.region = "us-east-1";
    r.service = "s3";

    xet_ok(xet_sigv4_query(text, sizeof(text), &r, key, S3_ID, NULL, 86400)
           == XET_OK && strcmp(text, want) == 0, "a presigned URL");

    xet_ok(xet_sigv4_query(text, sizeof(text), &r, key, S3_ID, "to/ken+==",
                           86400)
           == XET_OK
           && strstr(text, "&X-Amz-Security-Token=to%2Fken%2B%3D%3D&"
                     "X-Amz-SignedHeaders=host&X-Amz-Signature="),
           "a session token is an argument that is signed");

    len = sizeof(want);

    for (i = 0; i < len; i++) {
        if (xet_sigv4_query(text, i, &r, key, S3_ID, "", 86400) == XET_OK) {
            break;
        }
    }

    xet_is_u64(i, len, "no room that is too small will do");
    xet_ok(xet_sigv4_query(text, len, &r, key, S3_ID, "", 86400) == XET_OK,
           "and just enough does");

    for (i = 0; i < XET_SIGV4_PAIRS_MAX + 1; i++) {
        many[i] = (xet_sigv4_pair_t) { "a", "b" };
    }

    r.headers = many;
    r.nheaders = XET_SIGV4_PAIRS_MAX + 1;

    xet_ok(xet_sigv4_header(text, sizeof(text), &r, key, S3_ID)
           == XET_INTERNAL
           && xet_sigv4_query(text, sizeof(text), &r, key, S3_ID, "", 1)
              == XET_INTERNAL, "too many headers");

    r.headers = host;
    r.nheaders = 1;
    r.args = many;
    r.nargs = XET_SIGV4_PAIRS_MAX + 1;

    xet_ok(xet_sigv4_header(text, sizeof(text), &r, key, S3_ID)
           == XET_INTERNAL
           && xet_sigv4_query(text, sizeof(text), &r, key, S3_ID, "", 1)
              == XET_INTERNAL
           && xet_sigv4_args(text, sizeof(text), many, r.nargs)
              == XET_INTERNAL, "too many arguments");

    r.nargs = 0;
    r.date = "20130524";

    xet_ok(xet_sigv4_header(text, sizeof(text), &r, key, S3_ID)
           == XET_INTERNAL, "a date that is too short");
}


static void
test_encoding(void)
{
    char  text[64], secret[300];

    static const xet_sigv4_pair_t  args[] = {
        { "{", "1" }, { "a", "x y" }, { "A", "&=" }, { "ab", "" },
        { "a", "x" }, { "\xff", "~" }
    };

    xet_ok(xet_sigv4_path(text, sizeof(text), "/a b/../c+d//%2F\xc3\xa4")
           == XET_OK
           && strcmp(text, "/a%20b/../c%2Bd//%252F%C3%A4") == 0,
           "a path is encoded once, and is not made shorter");

    xet_ok(xet_sigv4_args(text, sizeof(text), args, 6) == XET_OK
           && strcmp(text, "%7B=1&%FF=~&A=%26%3D&a=x&a=x%20y&ab=") == 0,
           "arguments are in the order of their encoded form");

    xet_ok(xet_sigv4_args(text, sizeof(text), NULL, 0) == XET_OK
           && text[0] == '\0', "no arguments");

    xet_ok(xet_sigv4_path(text, 3, "/ab") == XET_INTERNAL
           && xet_sigv4_path(text, 4, "/ab") == XET_OK
           && xet_sigv4_path(text, 0, "") == XET_INTERNAL
           && xet_sigv4_path(text, 1, "") == XET_OK, "room for a path");

    memset(secret, 's', sizeof(secret) - 1);
    secret[sizeof(secret) - 1] = '\0';

    xet_ok(xet_sigv4_key((uint8_t *) text, secret, S3_DATE, "r", "s3")
           == XET_INTERNAL, "a secret that is too long");
}


int
main(void)
{
    test_table(test_s3, "s3", S3_ID, S3_SECRET, S3_DATE);
    test_table(test_suite, "service", ID, SECRET, DATE);
    test_texts();
    test_query();
    test_encoding();

    return xet_done();
}
