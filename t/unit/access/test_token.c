
/*
 * Tests tokens: the values of claims, time, issuer and audience, scopes,
 * sizes, and tokens minted by the server.
 */


#include "xet_test.h"
#include "xet_test_ring.h"


#define NOW      UINT64_C(1700000000)
#define HEADER   "{\"alg\":\"HS256\"}"

/* the required claims, and additional ones */
#define C(more)  "{\"exp\":1700000600,\"scope\":\"read\"" more "}"
#define E(exp)   "{\"exp\":" exp ",\"scope\":\"read\"}"
#define S(scope) "{\"exp\":1700000600,\"scope\":" scope "}"

#define A100                                                                  \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"                      \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A255                                                                  \
    A100 A100 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"


static const xet_token_params_t  test_any;


typedef struct {
    const char    *payload;
    xet_status_t   want;
} test_claim_t;


static const test_claim_t  test_claims[] = {
    { C(""), XET_OK },
    { "{\"scope\":\"read\",\"exp\":1700000600}", XET_OK },
    { " {\n\"exp\" : 1700000600 ,\t\"scope\" : \"read\" }\r\n", XET_OK },
    { C(",\"other\":{\"a\":[1,2.5,null,true]}"), XET_OK },
    { "{\"\\u0065xp\":1700000600,\"scop\\u0065\":\"re\\u0061d\"}", XET_OK },

    { "{\"scope\":\"read\"}", XET_TOKEN_CLAIMS },
    { "{}", XET_TOKEN_CLAIMS },
    { "[]", XET_TOKEN_CLAIMS },
    { "", XET_TOKEN_CLAIMS },
    { "null", XET_TOKEN_CLAIMS },
    { "\"exp\"", XET_TOKEN_CLAIMS },
    { C("") "x", XET_TOKEN_CLAIMS },
    { C("") C(""), XET_TOKEN_CLAIMS },
    { C(","), XET_TOKEN_CLAIMS },

    { E("1700000001"), XET_OK },
    { E("1700000000"), XET_TOKEN_EXPIRED },
    { E("1699999999"), XET_TOKEN_EXPIRED },
    { E("0"), XET_TOKEN_EXPIRED },
    { E("-0"), XET_TOKEN_EXPIRED },
    { E("9007199254740991"), XET_OK },
    { E("9007199254740992"), XET_OK },
    { E("9007199254740993"), XET_TOKEN_CLAIMS },
    { E("9223372036854775807"), XET_TOKEN_CLAIMS },
    { E("9223372036854775808"), XET_TOKEN_CLAIMS },
    { E("18446744073709551616"), XET_TOKEN_CLAIMS },
    { E("1700000600.0"), XET_TOKEN_CLAIMS },
    { E("1700000600.5"), XET_TOKEN_CLAIMS },
    { E("1.7e9"), XET_TOKEN_CLAIMS },
    { E("17e8"), XET_TOKEN_CLAIMS },
    { E("1e999"), XET_TOKEN_CLAIMS },
    { E("\"1700000600\""), XET_TOKEN_CLAIMS },
    { E("-1"), XET_TOKEN_CLAIMS },
    { E("-1700000600"), XET_TOKEN_CLAIMS },
    { E("true"), XET_TOKEN_CLAIMS },
    { E("false"), XET_TOKEN_CLAIMS },
    { E("null"), XET_TOKEN_CLAIMS },
    { E("[1700000600]"), XET_TOKEN_CLAIMS },
    { E("{}"), XET_TOKEN_CLAIMS },
    { E("01700000600"), XET_TOKEN_CLAIMS },
    { E("+1700000600"), XET_TOKEN_CLAIMS },
    { E("0x6553f100"), XET_TOKEN_CLAIMS },
    { E("Infinity"), XET_TOKEN_CLAIMS },

    { C(",\"nbf\":1700000000"), XET_OK },
    { C(",\"nbf\":1700000001"), XET_TOKEN_EARLY },
    { C(",\"nbf\":9007199254740992"), XET_TOKEN_EARLY },
    { C(",\"nbf\":9007199254740993"), XET_TOKEN_CLAIMS },
    { C(",\"nbf\":0"), XET_OK },
    { C(",\"nbf\":-1"), XET_TOKEN_CLAIMS },
    { C(",\"nbf\":1.5"), XET_TOKEN_CLAIMS },
    { C(",\"nbf\":\"0\""), XET_TOKEN_CLAIMS },
    { C(",\"nbf\":null"), XET_TOKEN_CLAIMS },
    { C(",\"nbf\":false"), XET_TOKEN_CLAIMS },

    { C(",\"iat\":1700000000"), XET_OK },
    { C(",\"iat\":1800000000"), XET_OK },
    { C(",\"iat\":-1"), XET_TOKEN_CLAIMS },
    { C(",\"iat\":9007199254740993"), XET_TOKEN_CLAIMS },
    { C(",\"iat\":1.0"), XET_TOKEN_CLAIMS },
    { C(",\"iat\":\"1\""), XET_TOKEN_CLAIMS },
    { C(",\"iat\":null"), XET_TOKEN_CLAIMS },

    { C(",\"iss\":\"a\""), XET_OK },
    { C(",\"iss\":1"), XET_TOKEN_CLAIMS },
    { C(",\"iss\":null"), XET_TOKEN_CLAIMS },
    { C(",\"iss\":[\"a\"]"), XET_TOKEN_CLAIMS },
    { C(",\"aud\":\"a\""), XET_OK },
    { C(",\"aud\":[\"a\",\"b\"]"), XET_OK },
    { C(",\"aud\":[]"), XET_OK },
    { C(",\"aud\":1"), XET_TOKEN_CLAIMS },
    { C(",\"aud\":null"), XET_TOKEN_CLAIMS },
    { C(",\"aud\":{}"), XET_TOKEN_CLAIMS },
    { C(",\"aud\":[\"a\",1]"), XET_TOKEN_CLAIMS },
    { C(",\"aud\":[[\"a\"]]"), XET_TOKEN_CLAIMS },

    { C(",\"sub\":\"somebody\""), XET_OK },
    { C(",\"sub\":\"\""), XET_OK },
    { C(",\"sub\":\"\xc3\xa4 \\u00e4\""), XET_OK },
    { C(",\"sub\":\"" A255 "a\""), XET_OK },
    { C(",\"sub\":\"" A255 "aa\""), XET_TOKEN_CLAIMS },
    { C(",\"sub\":1"), XET_TOKEN_CLAIMS },
    { C(",\"sub\":null"), XET_TOKEN_CLAIMS },
    { C(",\"sub\":[]"), XET_TOKEN_CLAIMS },
    { C(",\"sub\":\"a\\nb\""), XET_TOKEN_CLAIMS },
    { C(",\"sub\":\"a\\u0000b\""), XET_TOKEN_CLAIMS },
    { C(",\"sub\":\"a\\u007f\""), XET_TOKEN_CLAIMS },
    { C(",\"sub\":\"a\xff\""), XET_TOKEN_CLAIMS },
    { C(",\"sub\":\"\xc0\x80\""), XET_TOKEN_CLAIMS },
    { C(",\"other\":\"\xed\xa0\x80\""), XET_TOKEN_CLAIMS },

    { "{\"exp\":1700000600}", XET_TOKEN_SCOPE },
    { S("\"\""), XET_TOKEN_SCOPE },
    { S("\" \""), XET_TOKEN_SCOPE },
    { S("\"Read\""), XET_TOKEN_SCOPE },
    { S("\"READ WRITE\""), XET_TOKEN_SCOPE },
    { S("\"reader\""), XET_TOKEN_SCOPE },
    { S("\"rea\""), XET_TOKEN_SCOPE },
    { S("\"xread writer\""), XET_TOKEN_SCOPE },
    { S("\"read,write\""), XET_TOKEN_SCOPE },
    { S("\"read\\twrite\""), XET_TOKEN_SCOPE },
    { S("\"owner openid\""), XET_TOKEN_SCOPE },
    { S("\"read:x\""), XET_TOKEN_SCOPE },
    { S("[\"read\"]"), XET_TOKEN_CLAIMS },
    { S("1"), XET_TOKEN_CLAIMS },
    { S("true"), XET_TOKEN_CLAIMS },
    { S("null"), XET_TOKEN_CLAIMS },
    { S("{\"read\":true}"), XET_TOKEN_CLAIMS },

    { C(",\"repo\":\"org/name\""), XET_OK },
    { C(",\"repo\":\"models/org/na-me_1.0\""), XET_OK },
    { C(",\"repo\":\"" A255 "a\""), XET_OK },
    { C(",\"repo\":\"" A255 "aa\""), XET_TOKEN_CLAIMS },
    { C(",\"repo\":\"\""), XET_TOKEN_CLAIMS },
    { C(",\"repo\":\"/a\""), XET_TOKEN_CLAIMS },
    { C(",\"repo\":\"a/../b\""), XET_TOKEN_CLAIMS },
    { C(",\"repo\":\"a b\""), XET_TOKEN_CLAIMS },
    { C(",\"repo\":1"), XET_TOKEN_CLAIMS },
    { C(",\"repo\":null"), XET_TOKEN_CLAIMS },
    { C(",\"repo\":[\"a\"]"), XET_TOKEN_CLAIMS },

    { C(",\"exp\":1700000600"), XET_TOKEN_CLAIMS },
    { C(",\"exp\":1800000000"), XET_TOKEN_CLAIMS },
    { C(",\"\\u0065xp\":1800000000"), XET_TOKEN_CLAIMS },
    { C(",\"scope\":\"write\""), XET_TOKEN_CLAIMS },
    { C(",\"x\":{\"y\":1,\"y\":2}"), XET_TOKEN_CLAIMS },
    { C(",\"a\":[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]"), XET_OK },
    { C(",\"a\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]"), XET_TOKEN_CLAIMS },
};


static void
test_claim_table(const xet_test_ring_t *ring)
{
    char    token[4096];
    size_t  i, len;

    for (i = 0; i < sizeof(test_claims) / sizeof(test_claims[0]); i++) {
        len = xet_test_jwt(token, &ring->signers[0], HEADER,
                           test_claims[i].payload);

        xet_is_u64(xet_test_verify(ring->set, &test_any, token, len, NOW,
                                   NULL, NULL),
                   test_claims[i].want, "claims");
    }

    len = xet_test_jwt_n(token, &ring->signers[0], HEADER, strlen(HEADER),
                         C("") "\0", strlen(C("")) + 1);
    xet_is_u64(xet_test_verify(ring->set, &test_any, token, len, NOW, NULL,
                               NULL),
               XET_TOKEN_CLAIMS, "NUL behind the claims");
}


static void
test_result(const xet_test_ring_t *ring)
{
    char                token[1024], payload[256];
    size_t              i, len;
    uint8_t             room[XET_TOKEN_ROOM];
    xet_token_claims_t  c;

    static const struct {
        const char  *scope;
        xet_scope_e  want;
    } scopes[] = {
        { "read", XET_SCOPE_READ }, { "write", XET_SCOPE_WRITE },
        { "read write", XET_SCOPE_WRITE }, { "write read", XET_SCOPE_WRITE },
        { "openid  read ", XET_SCOPE_READ }, { " write", XET_SCOPE_WRITE },
        { "reader writer read", XET_SCOPE_READ },
        { "write\\u0020x", XET_SCOPE_WRITE },
        { "read read", XET_SCOPE_READ },
        { "xwrite read writex", XET_SCOPE_READ },
        { "delete", XET_SCOPE_DELETE }, { "delete read", XET_SCOPE_DELETE },
        { "write  delete write", XET_SCOPE_DELETE },
        { "deleted read", XET_SCOPE_READ },
        { "write delet edelete", XET_SCOPE_WRITE },
        { "admin", XET_SCOPE_ADMIN }, { "admin read", XET_SCOPE_ADMIN },
        { "read  admin delete", XET_SCOPE_ADMIN },
        { "delete administrator Admin", XET_SCOPE_DELETE },
    };

    for (i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
        snprintf(payload, sizeof(payload), S("\"%s\""), scopes[i].scope);
        len = xet_test_jwt(token, &ring->signers[0], HEADER, payload);

        memset(&c, 0xee, sizeof(c));

        xet_is_u64(xet_test_verify(ring->set, &test_any, token, len, NOW,
                                   room, &c),
                   XET_OK, scopes[i].scope);
        xet_is_u64(c.scope, scopes[i].want, "what it allows");
        xet_ok(c.sub.data == NULL && c.sub.len == 0 && c.repo.data == NULL
               && c.repo.len == 0 && c.nbf == 0 && c.iat == 0,
               "the others are not there");
    }

    len = xet_test_jwt(token, &ring->signers[0], HEADER,
                       C(",\"sub\":\"j\\u00f6\",\"repo\":\"a/b\",\"nbf\":2,"
                         "\"iat\":3"));

    xet_is_u64(xet_test_verify(ring->set, &test_any, token, len, NOW, room,
                               &c),
               XET_OK, "all claims");
    xet_is_u64(c.exp, 1700000600, "exp");
    xet_is_u64(c.nbf, 2, "nbf");
    xet_is_u64(c.iat, 3, "iat");
    xet_ok(!c.contents, "contents");
    xet_ok(c.sub.len == 3 && memcmp(c.sub.data, "j\xc3\xb6", 3) == 0, "sub");
    xet_ok(c.repo.len == 3 && memcmp(c.repo.data, "a/b", 3) == 0, "repo");
    xet_ok(c.sub.data >= room && c.repo.data + 3 <= room + sizeof(room),
           "both are in the room");

    len = xet_test_jwt(token, &ring->signers[0], HEADER,
                       C(",\"sub\":\"" A255 "s\",\"repo\":\"" A255 "r\""));

    xet_is_u64(xet_test_verify(ring->set, &test_any, token, len, NOW, NULL,
                               &c),
               XET_OK, "the room is as large as it need be");
    xet_ok(c.sub.len == 256 && c.repo.len == 256, "both are of 256 bytes");

    len = xet_test_jwt(token, &ring->signers[0], HEADER,
                       C(",\"contents\":true"));

    xet_is_u64(xet_test_verify(ring->set, &test_any, token, len, NOW, room,
                               &c),
               XET_OK, "of a Hub");
    xet_ok(c.contents, "for contents");

    len = xet_test_jwt(token, &ring->signers[0], HEADER,
                       C(",\"contents\":1"));

    xet_is_u64(xet_test_verify(ring->set, &test_any, token, len, NOW, room,
                               &c),
               XET_TOKEN_CLAIMS, "contents that is no boolean");

    len = xet_test_jwt(token, &ring->signers[0], HEADER, C(",\"sub\":\"\""));

    xet_is_u64(xet_test_verify(ring->set, &test_any, token, len, NOW, room,
                               &c),
               XET_OK, "an empty sub");
    xet_ok(c.sub.data != NULL && c.sub.len == 0, "is there");
}


static void
test_time(const xet_test_ring_t *ring)
{
    char                token[1024];
    size_t              i, len;
    xet_token_params_t  params;

    static const struct {
        uint64_t      now;
        uint64_t      skew;
        xet_status_t  want;
    } times[] = {
        { 1000, 0, XET_OK },
        { 999, 0, XET_TOKEN_EARLY },
        { 0, 0, XET_TOKEN_EARLY },
        { 1999, 0, XET_OK },
        { 2000, 0, XET_TOKEN_EXPIRED },
        { UINT64_MAX, 0, XET_TOKEN_EXPIRED },
        { 940, 60, XET_OK },
        { 939, 60, XET_TOKEN_EARLY },
        { 2059, 60, XET_OK },
        { 2060, 60, XET_TOKEN_EXPIRED },
        { 0, UINT64_MAX, XET_OK },
        { UINT64_MAX, UINT64_MAX, XET_OK },
        { UINT64_MAX, UINT64_MAX - 2000, XET_TOKEN_EXPIRED },
        { UINT64_MAX, UINT64_MAX - 1999, XET_OK },
    };

    len = xet_test_jwt(token, &ring->signers[0], HEADER,
                       "{\"nbf\":1000,\"exp\":2000,\"scope\":\"read\"}");
    memset(&params, 0, sizeof(params));

    for (i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        params.skew = times[i].skew;

        xet_is_u64(xet_test_verify(ring->set, &params, token, len,
                                   times[i].now, NULL, NULL),
                   times[i].want, "time");
    }
}


static const test_claim_t  test_order[] = {
    { "{\"exp\":1,\"nbf\":1800000000,\"sub\":1}", XET_TOKEN_CLAIMS },
    { "{\"exp\":1,\"nbf\":1800000000}", XET_TOKEN_EXPIRED },
    { "{\"exp\":1900000000,\"nbf\":1800000000}", XET_TOKEN_EARLY },
    { "{\"exp\":1900000000}", XET_TOKEN_ISSUER },
    { "{\"exp\":1900000000,\"iss\":\"me\"}", XET_TOKEN_AUDIENCE },
    { "{\"exp\":1900000000,\"iss\":\"me\",\"aud\":\"you\"}",
      XET_TOKEN_SCOPE },
};


static void
test_parties(const xet_test_ring_t *ring)
{
    char                token[1024], payload[512];
    size_t              i, len;
    xet_token_params_t  params;

    static const struct {
        const char    *iss;        /* required */
        const char    *aud;
        const char    *claims;
        xet_status_t   want;
    } parties[] = {
        { NULL, NULL, "\"x\":1", XET_OK },
        { "me", NULL, "\"iss\":\"me\"", XET_OK },
        { "me", NULL, "\"iss\":\"Me\"", XET_TOKEN_ISSUER },
        { "me", NULL, "\"iss\":\"m\"", XET_TOKEN_ISSUER },
        { "me", NULL, "\"iss\":\"mee\"", XET_TOKEN_ISSUER },
        { "me", NULL, "\"iss\":\"\"", XET_TOKEN_ISSUER },
        { "me", NULL, "\"aud\":\"me\"", XET_TOKEN_ISSUER },
        { "me", NULL, "\"iss\":null", XET_TOKEN_CLAIMS },
        { NULL, "you", "\"aud\":\"you\"", XET_OK },
        { NULL, "you", "\"aud\":[\"you\"]", XET_OK },
        { NULL, "you", "\"aud\":[\"a\",\"you\",\"b\"]", XET_OK },
        { NULL, "you", "\"aud\":\"you \"", XET_TOKEN_AUDIENCE },
        { NULL, "you", "\"aud\":\"a you\"", XET_TOKEN_AUDIENCE },
        { NULL, "you", "\"aud\":[]", XET_TOKEN_AUDIENCE },
        { NULL, "you", "\"aud\":[\"yo\",\"your\"]", XET_TOKEN_AUDIENCE },
        { NULL, "you", "\"iss\":\"you\"", XET_TOKEN_AUDIENCE },
        { NULL, "you", "\"aud\":[\"you\",null]", XET_TOKEN_CLAIMS },
        { "me", "you", "\"iss\":\"me\",\"aud\":\"you\"", XET_OK },
        { "me", "you", "\"iss\":\"you\",\"aud\":\"me\"", XET_TOKEN_ISSUER },
        { "me", "you", "\"iss\":\"me\",\"aud\":\"me\"", XET_TOKEN_AUDIENCE },
        { "", NULL, "\"x\":1", XET_TOKEN_ISSUER },
        { "", NULL, "\"iss\":\"\"", XET_OK },
    };

    for (i = 0; i < sizeof(parties) / sizeof(parties[0]); i++) {
        memset(&params, 0, sizeof(params));

        if (parties[i].iss) {
            params.iss.data = (const uint8_t *) parties[i].iss;
            params.iss.len = strlen(parties[i].iss);
        }

        if (parties[i].aud) {
            params.aud.data = (const uint8_t *) parties[i].aud;
            params.aud.len = strlen(parties[i].aud);
        }

        snprintf(payload, sizeof(payload), C(",%s"), parties[i].claims);
        len = xet_test_jwt(token, &ring->signers[0], HEADER, payload);

        xet_is_u64(xet_test_verify(ring->set, &params, token, len, NOW, NULL,
                                   NULL),
                   parties[i].want, parties[i].claims);
    }

    /* several faults in one token: which error is reported first */

    params.iss.data = (const uint8_t *) "me";
    params.iss.len = 2;
    params.aud.data = (const uint8_t *) "you";
    params.aud.len = 3;

    for (i = 0; i < sizeof(test_order) / sizeof(test_order[0]); i++) {
        len = xet_test_jwt(token, &ring->signers[0], HEADER,
                           test_order[i].payload);
        xet_is_u64(xet_test_verify(ring->set, &params, token, len, NOW, NULL,
                                   NULL),
                   test_order[i].want, "order of the refusals");

        token[len - 2] = (token[len - 2] == 'A') ? 'B' : 'A';
        xet_is_u64(xet_test_verify(ring->set, &params, token, len, NOW, NULL,
                                   NULL),
                   XET_TOKEN_SIGNATURE, "none of them without a signature");
    }
}


static void
test_repos(void)
{
    size_t    i;
    unsigned  c, good;
    uint8_t   text[8];

    static const char  *const  yes[] = {
        "a", "a/b", "a/b/c", "0", "_", "-", "A.B", ".a", "a.", "a.b.c",
        "a/.b", "a./b", "a/b.", "-/-", "org/x-1_2.3"
    };

    static const char  *const  no[] = {
        "", "/", "a/", "/a", "a//b", "..", "a..b", "a/..", "../a", "a/../b",
        ".", "./a", "a/.", "a/./b", "...", "a b", "a\\b", "a%2fb", "a:b",
        "a\tb", "\xc3\xa4", "a?", "a#", "a~b", "a/b//", "//"
    };

    for (i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        xet_ok(xet_token_repo_ok((const uint8_t *) yes[i], strlen(yes[i])),
               "repo \"%s\"", yes[i]);
    }

    for (i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
        xet_ok(!xet_token_repo_ok((const uint8_t *) no[i], strlen(no[i])),
               "no repo: %u", (unsigned) i);
    }

    for (c = 0, good = 0; c < 256; c++) {
        memcpy(text, "axb", 3);
        text[1] = (uint8_t) c;
        good += (unsigned) xet_token_repo_ok(text, 3);
    }

    xet_is_u64(good, 26 + 26 + 10 + 4, "characters in a repo");
}


/*
 * Makes a token with the given header and payload lengths; an unknown member
 * is the padding.
 */

static size_t
test_padded(char *token, const xet_test_signer_t *s, size_t header,
    size_t payload)
{
    char    *h, *p;
    size_t   len;

    h = malloc(header + 1);
    p = malloc(payload + 1);

    len = (size_t) sprintf(h, "{\"alg\":\"HS256\",\"x\":\"");
    memset(h + len, 'x', header - len - 2);
    strcpy(h + header - 2, "\"}");

    len = (size_t) sprintf(p, "{\"exp\":1700000600,\"scope\":\"read\","
                           "\"x\":\"");
    memset(p + len, 'x', payload - len - 2);
    strcpy(p + payload - 2, "\"}");

    len = xet_test_jwt_n(token, s, h, header, p, payload);

    free(h);
    free(p);

    return len;
}


static void
test_sizes(const xet_test_ring_t *ring)
{
    char                *token;
    size_t               len;
    xet_token_params_t   params;

    token = malloc(65536);
    memset(&params, 0, sizeof(params));
    params.max = 65536;

    len = test_padded(token, &ring->signers[0], XET_TOKEN_HEADER_MAX, 100);
    xet_is_u64(xet_test_verify(ring->set, &params, token, len, NOW, NULL,
                               NULL),
               XET_OK, "the largest header");

    len = test_padded(token, &ring->signers[0], XET_TOKEN_HEADER_MAX + 1,
                      100);
    xet_is_u64(xet_test_verify(ring->set, &params, token, len, NOW, NULL,
                               NULL),
               XET_TOKEN_SIZE, "a byte more");

    len = test_padded(token, &ring->signers[0], 100, XET_TOKEN_PAYLOAD_MAX);
    xet_is_u64(xet_test_verify(ring->set, &params, token, len, NOW, NULL,
                               NULL),
               XET_OK, "the largest payload");
    xet_is_u64(xet_test_verify(ring->set, &test_any, token, len, NOW, NULL,
                               NULL),
               XET_TOKEN_SIZE, "is too long by default");

    len = test_padded(token, &ring->signers[0], 100,
                      XET_TOKEN_PAYLOAD_MAX + 1);
    xet_is_u64(xet_test_verify(ring->set, &params, token, len, NOW, NULL,
                               NULL),
               XET_TOKEN_SIZE, "a byte more");

    len = test_padded(token, &ring->signers[0], XET_TOKEN_HEADER_MAX,
                      XET_TOKEN_PAYLOAD_MAX);
    params.max = len;
    xet_is_u64(xet_test_verify(ring->set, &params, token, len, NOW, NULL,
                               NULL),
               XET_OK, "as long as the limit");
    params.max = len - 1;
    xet_is_u64(xet_test_verify(ring->set, &params, token, len, NOW, NULL,
                               NULL),
               XET_TOKEN_SIZE, "one longer");

    /* one character less than the default limit, the limit itself, and more */

    len = test_padded(token, &ring->signers[0], 44, 12209);
    xet_is_u64(len, 59 + 1 + 16279 + 1 + 43, "a token of 16383 characters");
    xet_is_u64(xet_test_verify(ring->set, &test_any, token, len, NOW, NULL,
                               NULL),
               XET_OK, "is short enough");

    len = test_padded(token, &ring->signers[0], 45, 12209);
    xet_is_u64(len, XET_TOKEN_MAX, "a token of the default limit");
    xet_is_u64(xet_test_verify(ring->set, &test_any, token, len, NOW, NULL,
                               NULL),
               XET_OK, "is short enough");

    len = test_padded(token, &ring->signers[0], 46, 12209);
    xet_ok(len > XET_TOKEN_MAX, "a token past the default limit");
    xet_is_u64(xet_test_verify(ring->set, &test_any, token, len, NOW, NULL,
                               NULL),
               XET_TOKEN_SIZE, "is not");

    memset(token, 'A', 65536);
    params.max = 65536;
    xet_is_u64(xet_test_verify(ring->set, &params, token, 65536, NOW, NULL,
                               NULL),
               XET_TOKEN_SYNTAX, "nothing but letters");
    memset(token, '.', 65536);
    xet_is_u64(xet_test_verify(ring->set, &params, token, 65536, NOW, NULL,
                               NULL),
               XET_TOKEN_SYNTAX, "nothing but dots");
    xet_is_u64(xet_test_verify(ring->set, &params, token, 0, NOW, NULL,
                               NULL),
               XET_TOKEN_MISSING, "nothing");

    free(token);
}


static void
test_digest(void)
{
    uint8_t     a[32], b[32];
    xet_hash_t  x, y;

    memset(a, 1, 32);
    memset(b, 2, 32);

    xet_token_digest(a, (const uint8_t *) "token", 5, &x);
    xet_token_digest(a, (const uint8_t *) "token", 5, &y);
    xet_ok(xet_hash_equal(&x, &y), "the same digest");

    xet_hash_keyed(a, "token", 5, &y);
    xet_ok(xet_hash_equal(&x, &y), "which is keyed BLAKE3");

    xet_token_digest(a, (const uint8_t *) "tokem", 5, &y);
    xet_ok(!xet_hash_equal(&x, &y), "another of another token");

    xet_token_digest(b, (const uint8_t *) "token", 5, &y);
    xet_ok(!xet_hash_equal(&x, &y), "and under another key");
}


int
main(void)
{
    xet_test_ring_t  ring;

    xet_test_ring_init(&ring);

    test_claim_table(&ring);
    test_result(&ring);
    test_time(&ring);
    test_parties(&ring);
    test_repos();
    test_sizes(&ring);
    test_digest();

    xet_test_ring_free(&ring);

    return xet_done();
}
