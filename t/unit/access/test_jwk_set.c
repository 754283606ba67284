
/*
 * Tests key documents: the contents of a JWK set, PEM files of several blocks,
 * and skipped and rejected keys with their positions.  A rejected document
 * must add no key.
 */


#include "xet_test_jwk.h"
#include "xet_test_jwt.h"
#include "xet_test_keys.h"


/* An 8192-bit modulus. */

#define N8192                                                                 \
    "00_p_svDWB0ffQ0DLhCboxtwWptcVpDFb75nlHZI8Zd5gABv30gS3s5FTkGLe18H6_Y2Gu"  \
    "BAV441CLqu7ikT-7n4rgfCOYU-"                                              \
    "6U8UQBMoaatNuJ30v_8IaLlOmmhHL7_Fauk2x3ma2OlVHIxYodm2rvwHhDo8vavCW9XDmd"  \
    "X253Q03Ikn6iRRBbVtOodwkjCv5NxPAu4ZryVg3wdvaVvRa2yN2RFBzcfxK8qbMpK9QH5E"  \
    "SpyGLo_9g7to6rIc3-MbaMhqjue4roGiTfas3KQzG9pMSwmgTQnGszJylodQuFF-Qpr9MY"  \
    "xt2PSkaicHPeqoY6zzSEcapL7zMWo0E81Sf6qmzUUXuWMKHvVJSzl55AE_Mx45NmuIr6Hd"  \
    "vAuBeBPr4Y6K8CEeTv2W0jy-XLw01XLGOjXs-nl3dIYrlJZ-plUjNE8kVG0TEbFgohb8Pg"  \
    "Nt_EK0sntNWBKW1wgAnYkAEyALF1I89mOaVgRnPKs0sndVFmhSO_j-oStjT8viRn5xZxm-"  \
    "kFiPVuRrIRGkJlwx18eCEENr_hPch5IIzY151yGeichVA7asjiFpLGLHsgrGV6RWj2eMMJ"  \
    "JGJjBzCoPgaFsOvRoVGFLaGrbEbBiOIqYJvj0PMuyeLRfsgjdd8ut46jxikw80PCs7Qrya"  \
    "w1kR_o7lgfJVExgIkUz2yq-krdYjCqA39zcpEuigdSzEE_UhdhcQyv8d-TQ3Q3-"         \
    "gHo0dhIhZ78H2xeeNC6FSigJBoMr0bbuG6_ou7dipESDnL0NmMI5iml0G-"              \
    "clxFB5Z5S9L9o2A339WcC5sMGiEIOcz1df4ImGL4nftyZDKutY0LvBYX6ot36XO7r5a7hS"  \
    "yZM7fa6DqwJmra7em5M6D7A6GZ7RBC1zNBI2BiUJxUhJ2x4P4t2pRBAyD9wenUZeDdqknw"  \
    "r96fs1gEQA04jqwu-a-"                                                     \
    "6Bd5W21y7khw7GoE2VeTLShMfmEtegCw7wAb4j9nlzxQ_TEa8H4I5K5LrMJo6E_0SuVfhm"  \
    "kOR5iv-FMpztNcVF8dL0kHNuS0kAEua9Oxwi_uMrUS_NeVMSYnnL2CedVoExOeYLQiXMRK"  \
    "icQzbqlLefYYgjvJhM_G-uzRJ5Z2TdXy7CE3DEdrwrrjlnlpb6eZ6BECyljpf-"          \
    "2ckC_CoUMBytr9piSaRrZMu6wzN53cTvmNR9WcdrdB-BhUfJZzHagH0FphEsqgm942O25J"  \
    "mclnPPXFhXHGd-8SxVkIgFSAzUMgNMMnWQYBXX9STlpwo-"                          \
    "o15cy6c2FiSsO7RJjIdCY72SO77jpjQZLMh22rNhqSIUYNU3MRhqQaW7TdRvdG7e-"       \
    "rdnpWl2Y5xfGP2PKCj6uuX_V0BRaFH3zFsemiru-2QeisRQ"

#define EC(x, y)                                                              \
    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" x "\",\"y\":\"" y "\"}"
#define OKP(x)     "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" x "\"}"
#define RSA(n, e)  "{\"kty\":\"RSA\",\"n\":\"" n "\",\"e\":\"" e "\"}"

/* a valid key with additional members */

#define WITH(more)                                                            \
    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" ED_X "\"," more "}"

#define ID250                                                                 \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"\
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"\
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"\
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"


static xet_status_t
test_jwks(xet_jwk_set_t *set, const char *text, size_t *index)
{
    size_t         len;
    uint8_t       *copy;
    xet_status_t   status;

    len = strlen(text);
    copy = malloc(len + !len);
    memcpy(copy, text, len);

    *index = 999;
    status = xet_jwk_set_add_jwks(set, copy, len, index);

    free(copy);

    return status;
}


typedef struct {
    const char    *name;
    const char    *member;
    xet_status_t   want;           /* result for the tested member */
} test_member_t;


/*
 * The tested member is between two valid ones.  XET_DONE: it must be skipped.
 */

static const test_member_t  test_members[] = {
    { "EC", JWK_ES, XET_OK },
    { "OKP", JWK_ED, XET_OK },
    { "RSA", JWK_RS, XET_OK },
    { "RSA of 8192 bits", RSA(N8192, "AQAB"), XET_OK },
    { "EC of RFC 7517", EC(JWK_X, JWK_Y), XET_OK },

    { "for signatures", WITH("\"use\":\"sig\""), XET_OK },
    { "for encryption", WITH("\"use\":\"enc\""), XET_DONE },
    { "for something else", WITH("\"use\":\"tls\""), XET_DONE },
    { "use in capitals", WITH("\"use\":\"SIG\""), XET_DONE },
    { "use is a number", WITH("\"use\":1"), XET_JWK_VALUE },
    { "use is null", WITH("\"use\":null"), XET_JWK_VALUE },
    { "to verify", WITH("\"key_ops\":[\"verify\"]"), XET_OK },
    { "to verify and more", WITH("\"key_ops\":[\"wrapKey\",\"verify\"]"),
      XET_OK },
    { "to sign", WITH("\"key_ops\":[\"sign\"]"), XET_DONE },
    { "to do nothing", WITH("\"key_ops\":[]"), XET_DONE },
    { "operations as a string", WITH("\"key_ops\":\"verify\""),
      XET_JWK_VALUE },
    { "operations with a number", WITH("\"key_ops\":[\"verify\",1]"),
      XET_JWK_VALUE },
    { "algorithm EdDSA", WITH("\"alg\":\"EdDSA\""), XET_OK },
    { "algorithm of another kind", WITH("\"alg\":\"RS256\""), XET_DONE },
    { "unknown algorithm", WITH("\"alg\":\"XYZ\""), XET_DONE },
    { "algorithm is an array", WITH("\"alg\":[\"EdDSA\"]"), XET_JWK_VALUE },
    { "RSA for PS256", "{\"kty\":\"RSA\",\"alg\":\"PS256\",\"n\":\"" RS_N
      "\",\"e\":\"AQAB\"}", XET_DONE },
    { "RSA for RS256", "{\"kty\":\"RSA\",\"alg\":\"RS256\",\"n\":\"" RS_N
      "\",\"e\":\"AQAB\"}", XET_OK },

    { "certificates", WITH("\"x5c\":[\"MIID\"],\"x5t\":\"x\""), XET_OK },
    { "unknown members", WITH("\"a\":{\"b\":[1,2]},\"exp\":1"), XET_OK },
    { "an id", WITH("\"kid\":\"x\""), XET_OK },
    { "an id of 255 bytes", WITH("\"kid\":\"" ID250 "12345\""), XET_OK },
    { "an id of 256 bytes", WITH("\"kid\":\"" ID250 "123456\""),
      XET_JWK_KID },
    { "an id in UTF-8", WITH("\"kid\":\"\xc3\xa4\""), XET_OK },
    { "an empty id", WITH("\"kid\":\"\""), XET_JWK_KID },
    { "an id that is a number", WITH("\"kid\":1"), XET_JWK_KID },
    { "an id that is null", WITH("\"kid\":null"), XET_JWK_KID },

    { "a kind of the future", "{\"kty\":\"AKP\",\"alg\":\"ML-DSA-44\","
      "\"pub\":\"x\"}", XET_DONE },
    { "a kind in small letters", "{\"kty\":\"rsa\"}", XET_DONE },
    { "P-384", "{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":1}", XET_DONE },
    { "Ed448", "{\"kty\":\"OKP\",\"crv\":\"Ed448\",\"x\":1}", XET_DONE },
    { "X25519", "{\"kty\":\"OKP\",\"crv\":\"X25519\"}", XET_DONE },
    { "Ed25519 as a curve of EC", "{\"kty\":\"EC\",\"crv\":\"Ed25519\"}",
      XET_DONE },

    { "no kind", "{\"crv\":\"Ed25519\",\"x\":\"" ED_X "\"}", XET_JWK_VALUE },
    { "a kind that is a number", "{\"kty\":1}", XET_JWK_VALUE },
    { "an empty object", "{}", XET_JWK_VALUE },
    { "an array", "[\"kty\"]", XET_JWK_VALUE },
    { "a string", "\"kty\"", XET_JWK_VALUE },
    { "null", "null", XET_JWK_VALUE },

    { "no curve", "{\"kty\":\"OKP\",\"x\":\"" ED_X "\"}", XET_JWK_VALUE },
    { "a curve that is a number", "{\"kty\":\"EC\",\"crv\":256}",
      XET_JWK_VALUE },
    { "no x", "{\"kty\":\"OKP\",\"crv\":\"Ed25519\"}", XET_JWK_VALUE },
    { "x is a number", "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":1}",
      XET_JWK_VALUE },
    { "x is empty", OKP(""), XET_JWK_VALUE },
    { "x is short", OKP("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHUQ"),
      XET_JWK_VALUE },
    { "x is long", OKP("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURpA"),
      XET_JWK_VALUE },
    { "x is padded", OKP(ED_X "="), XET_JWK_VALUE },
    { "x in the other alphabet",
      OKP("11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo"), XET_JWK_VALUE },
    { "x with spare bits",
      OKP("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURp"), XET_JWK_VALUE },
    { "x with a blank",
      OKP("11qYAYKxCrfVS 7TyWQHOg7hcvPapiMlrwIaaPcHURo"), XET_JWK_VALUE },
    { "x of small order",
      OKP("AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), XET_JWK_VALUE },
    { "no y", "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" ES_X "\"}",
      XET_JWK_VALUE },
    { "a point that is not on the curve", EC(ES_X, JWK_Y), XET_JWK_VALUE },
    { "the point 0, 0",
      EC("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
         "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), XET_JWK_VALUE },
    { "x above the prime",
      EC("__________________________________________8", ES_Y),
      XET_JWK_VALUE },
    { "a short y", EC(ES_X, "AQ"), XET_JWK_VALUE },
    { "a byte behind x", EC(ES_X "A", ES_Y), XET_JWK_VALUE },
    { "a byte behind y", EC(ES_X, ES_Y "A"), XET_JWK_VALUE },
    { "a zero before y", EC(ES_X, "AMfxRM0bvZt-hyzf7bnuufSzaV1uqQskrYpGIyiF"
      "iOWt"), XET_JWK_VALUE },
    { "no modulus", "{\"kty\":\"RSA\",\"e\":\"AQAB\"}", XET_JWK_VALUE },
    { "no exponent", "{\"kty\":\"RSA\",\"n\":\"" RS_N "\"}", XET_JWK_VALUE },
    { "exponent as a number", "{\"kty\":\"RSA\",\"n\":\"" RS_N
      "\",\"e\":65537}", XET_JWK_VALUE },
    { "exponent 3", RSA(RS_N, "Aw"), XET_OK },
    { "exponent 1", RSA(RS_N, "AQ"), XET_JWK_VALUE },
    { "exponent 0", RSA(RS_N, "AA"), XET_JWK_VALUE },
    { "exponent 2", RSA(RS_N, "Ag"), XET_JWK_VALUE },
    { "exponent of 64 bits", RSA(RS_N, "gAAAAAAAAAE"), XET_OK },
    { "exponent of 65 bits", RSA(RS_N, "AQAAAAAAAAAB"), XET_JWK_VALUE },
    { "a zero before the exponent", RSA(RS_N, "AAEAAQ"), XET_JWK_VALUE },
    { "a zero before the modulus", RSA("AA" RS_N, "AQAB"), XET_JWK_VALUE },
    { "modulus of 8 bits", RSA("_w", "AQAB"), XET_JWK_KIND },
    { "modulus of 8200 bits", RSA("AQ" N8192, "AQAB"), XET_JWK_KIND },
    { "modulus with a dot", RSA("." RS_N, "AQAB"), XET_JWK_VALUE },

    { "a private OKP", WITH("\"d\":\"" ED_D "\""), XET_JWK_PRIVATE },
    { "a private part of null", WITH("\"d\":null"), XET_JWK_PRIVATE },
    { "a private key for encryption", WITH("\"use\":\"enc\",\"d\":\"x\""),
      XET_JWK_PRIVATE },
    { "a prime", WITH("\"p\":\"x\""), XET_JWK_PRIVATE },
    { "another", WITH("\"q\":\"x\""), XET_JWK_PRIVATE },
    { "dp", WITH("\"dp\":\"x\""), XET_JWK_PRIVATE },
    { "dq", WITH("\"dq\":\"x\""), XET_JWK_PRIVATE },
    { "qi", WITH("\"qi\":\"x\""), XET_JWK_PRIVATE },
    { "oth", WITH("\"oth\":[]"), XET_JWK_PRIVATE },
    { "a secret", "{\"kty\":\"oct\",\"k\":\"" HS_K "\"}", XET_JWK_PRIVATE },
    { "a private kind of the future", "{\"kty\":\"AKP\",\"priv\":\"x\"}",
      XET_JWK_PRIVATE },
    { "oct without a secret", "{\"kty\":\"oct\"}", XET_DONE },

    { "a member twice", WITH("\"use\":\"sig\",\"use\":\"sig\""),
      XET_JWK_SYNTAX },
    { "no JSON", "{kty}", XET_JWK_SYNTAX },
    { "too deep", WITH("\"a\":[[[[[[1]]]]]]"), XET_JWK_SYNTAX },
    { "deep", WITH("\"a\":[[[[[1]]]]]"), XET_OK },
};


static void
test_each(void)
{
    char            text[8192];
    size_t          i, index, count;
    xet_status_t    status, want;
    xet_jwk_set_t  *set;

    for (i = 0; i < sizeof(test_members) / sizeof(test_members[0]); i++) {
        want = test_members[i].want;
        set = xet_jwk_set_create();

        snprintf(text, sizeof(text), JWKS(JWK_ED ",%s," JWK_ES),
                 test_members[i].member);

        status = test_jwks(set, text, &index);
        count = xet_jwk_set_count(set);

        xet_is_u64(status, (want == XET_DONE) ? XET_OK : want,
                   test_members[i].name);
        xet_is_u64(count, (want == XET_OK) ? 3 : (want == XET_DONE) ? 2 : 0,
                   "keys");

        if (status != XET_OK) {
            xet_is_u64(index, (want == XET_JWK_SYNTAX) ? 0 : 1, "where");
        }

        xet_jwk_set_destroy(set);
    }
}


static void
test_documents(void)
{
    size_t          i, index;
    xet_jwk_set_t  *set;

    static const struct {
        const char    *text;
        xet_status_t   want;
    } documents[] = {
        { JWKS(JWK_ED), XET_OK },
        { " {\"x\":[],\"keys\":[" JWK_ED "],\"y\":1}\n", XET_OK },
        { JWKS(""), XET_JWK_NONE },
        { JWKS("{\"kty\":\"X\"}"), XET_JWK_NONE },
        { "", XET_JWK_SYNTAX },
        { "{}", XET_JWK_SYNTAX },
        { "[" JWK_ED "]", XET_JWK_SYNTAX },
        { JWK_ED, XET_JWK_SYNTAX },
        { "{\"keys\":" JWK_ED "}", XET_JWK_SYNTAX },
        { "{\"keys\":null}", XET_JWK_SYNTAX },
        { "{\"keys\":[" JWK_ED "],\"keys\":[]}", XET_JWK_SYNTAX },
        { JWKS(JWK_ED) "x", XET_JWK_SYNTAX },
        { "\xef\xbb\xbf" JWKS(JWK_ED), XET_JWK_SYNTAX },
        { "-----BEGIN PUBLIC KEY-----", XET_JWK_SYNTAX },
    };

    for (i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        set = xet_jwk_set_create();

        xet_is_u64(test_jwks(set, documents[i].text, &index),
                   documents[i].want, "document");
        xet_is_u64(xet_jwk_set_count(set), documents[i].want == XET_OK,
                   "keys");

        xet_jwk_set_destroy(set);
    }

    /* a rejected document does not change the earlier keys */

    set = xet_jwk_set_create();

    xet_is_u64(test_jwks(set, JWKS(JWK_ED "," JWK_ES), &index), XET_OK,
               "two keys");
    xet_is_u64(test_jwks(set, JWKS(JWK_RS "," JWK_RS ",{}"), &index),
               XET_JWK_VALUE, "a document with an error");
    xet_is_u64(index, 2, "the third");
    xet_is_u64(xet_jwk_set_count(set), 2, "two as before");
    xet_is_u64(test_jwks(set, JWKS(JWK_RS), &index), XET_OK, "another one");
    xet_is_u64(xet_jwk_set_count(set), 3, "is added");
    xet_is_u64(xet_jwk_alg(xet_jwk_set_get(set, 2)), XET_JWK_RS256,
               "at the end");

    xet_jwk_set_destroy(set);
    xet_jwk_set_destroy(NULL);
}


static void
test_limits(void)
{
    char            *text, *p;
    size_t           i, k, index;
    xet_jwk_t       *key;
    xet_jwk_set_t   *set;

    static const uint8_t  secret[32];

    text = malloc(XET_JWK_DOCUMENT_MAX + 2);

    for (i = XET_JWK_SET_MAX; i <= XET_JWK_SET_MAX + 1; i++) {
        p = text + sprintf(text, "{\"keys\":[");

        for (k = 0; k < i; k++) {
            p += sprintf(p, "%s%s", k ? "," : "", JWK_ED);
        }

        sprintf(p, "]}");

        set = xet_jwk_set_create();

        xet_is_u64(test_jwks(set, text, &index),
                   (i == XET_JWK_SET_MAX) ? XET_OK : XET_JWK_COUNT,
                   "number of keys");
        xet_is_u64(xet_jwk_set_count(set),
                   (i == XET_JWK_SET_MAX) ? XET_JWK_SET_MAX : 0, "of them");

        if (i == XET_JWK_SET_MAX) {
            (void) xet_jwk_create_secret(&key, (const uint8_t *) "k", 1,
                                         secret, 32);
            xet_is_u64(xet_jwk_set_add(set, key), XET_JWK_COUNT,
                       "a secret more");
            xet_jwk_destroy(key);

        } else {
            xet_is_u64(index, XET_JWK_SET_MAX, "the one that is too many");
        }

        xet_jwk_set_destroy(set);
    }

    /* leading blanks, up to the size limit and one byte beyond it */

    for (i = 0; i < 2; i++) {
        memset(text, ' ', XET_JWK_DOCUMENT_MAX + 1);
        strcpy(text + XET_JWK_DOCUMENT_MAX + i - strlen(JWKS(JWK_ED)),
               JWKS(JWK_ED));

        set = xet_jwk_set_create();
        xet_is_u64(test_jwks(set, text, &index),
                   i ? XET_JWK_SYNTAX : XET_OK, "size of a JWK set");
        xet_jwk_set_destroy(set);
    }

    free(text);
}


/*
 * Tests PEM with several blocks, text around them, ids, and unsupported blocks.
 */

static void
test_blocks(const char *a, const char *b, const char *private)
{
    char            text[8192], *p;
    size_t          i, index;
    xet_jwk_set_t  *set;

    static const struct {
        const char    *format;     /* %1, %2 are public, %3 is private */
        xet_status_t   want;
        size_t         n;          /* key count, or index of the bad block */
    } files[] = {
        { "%1$s", XET_OK, 1 },
        { "%1$s%2$s", XET_OK, 2 },
        { "%1$s%1$s%1$s", XET_OK, 3 },
        { "# a key\n%1$s\nanother one:\n\n%2$s\nthe end", XET_OK, 2 },
        { "", XET_JWK_NONE, 0 },
        { "nothing here\n", XET_JWK_NONE, 0 },
        { "%3$s", XET_JWK_PRIVATE, 0 },
        { "%1$s%3$s", XET_JWK_PRIVATE, 1 },
        { "%3$s%1$s", XET_JWK_PRIVATE, 0 },
        { "%1$s%2$s-----BEGIN PUBLIC KEY-----\nAAAA\n", XET_JWK_SYNTAX, 2 },
        { "%1$s-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
          XET_JWK_VALUE, 1 },
        { "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n",
          XET_JWK_SYNTAX, 0 },
        { "-----BEGIN PUBLIC KEY-----\n!!!!\n-----END PUBLIC KEY-----\n",
          XET_JWK_SYNTAX, 0 },
        { "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END CERTIFICATE-----\n",
          XET_JWK_SYNTAX, 0 },
        { "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
          XET_JWK_KIND, 0 },
        { "-----BEGIN RSA PUBLIC KEY-----\nAAAA\n-----END RSA PUBLIC KEY-----"
          "\n%1$s", XET_JWK_KIND, 0 },
        { "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----"
          "\n", XET_JWK_PRIVATE, 0 },
        { "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n"
          "-----END ENCRYPTED PRIVATE KEY-----\n", XET_JWK_PRIVATE, 0 },
        { "-----BEGIN PUBLIC KEY-----\nProc-Type: 4,ENCRYPTED\n"
          "DEK-Info: AES-128-CBC,00000000000000000000000000000000\n\nAAAA\n"
          "-----END PUBLIC KEY-----\n", XET_JWK_SYNTAX, 0 },
    };

    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        set = xet_jwk_set_create();

        snprintf(text, sizeof(text), files[i].format, a, b, private);

        xet_is_u64(test_pem(set, "k", text, &index), files[i].want,
                   "PEM file");

        if (files[i].want == XET_OK) {
            xet_is_u64(xet_jwk_set_count(set), files[i].n, "keys");
            xet_ok(test_id(xet_jwk_set_get(set, files[i].n - 1), "k"),
                   "the id for all");

        } else {
            xet_is_u64(xet_jwk_set_count(set), 0, "no keys");
            xet_is_u64(index, files[i].n, "where");
        }

        xet_jwk_set_destroy(set);
    }

    set = xet_jwk_set_create();

    xet_is_u64(test_pem(set, "", a, &index), XET_OK, "without an id");
    xet_ok(test_id(xet_jwk_set_get(set, 0), ED_PRINT), "thumbprint");
    xet_is_u64(test_pem(set, "a\tb", a, &index), XET_JWK_KID, "a bad id");
    xet_is_u64(test_pem(set, "a\xc3\xa4", a, &index), XET_JWK_KID,
               "an id that is not ASCII");

    /* an extra byte after the key, inside the base64 text */

    snprintf(text, sizeof(text), "%s", a);
    p = strstr(text, "=\n-----END");

    if (p != NULL) {
        *p = 'A';
        xet_is_u64(test_pem(set, "k", text, &index), XET_JWK_VALUE,
                   "a byte behind a key");

    } else {
        xet_skip("no room for a byte");
    }

    xet_is_u64(xet_jwk_set_count(set), 1, "still one key");

    xet_jwk_set_destroy(set);
}


static void
test_pem_size(const char *pem)
{
    char           *text;
    size_t          i, index, len;
    xet_jwk_set_t  *set;

    len = strlen(pem);
    text = malloc(XET_JWK_DOCUMENT_MAX + 2);

    for (i = 0; i < 2; i++) {
        memset(text, '\n', XET_JWK_DOCUMENT_MAX + 1);
        memcpy(text + XET_JWK_DOCUMENT_MAX + i - len, pem, len + 1);

        set = xet_jwk_set_create();
        xet_is_u64(test_pem(set, "k", text, &index),
                   i ? XET_JWK_SYNTAX : XET_OK, "size of a PEM file");
        xet_jwk_set_destroy(set);
    }

    free(text);
}


static void
test_files(void)
{
    char           *a, *b, *private;
    size_t          len;
    uint8_t         d[64];
    EVP_PKEY       *ed, *ec;

    static const uint8_t  seed[32] = {
        0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a,
        0xf4, 0x92, 0xec, 0x2c, 0xc4, 0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32,
        0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60
    };

    len = sizeof(d);
    ed = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, 32);
    ec = EVP_EC_gen("P-256");

    xet_ok(EVP_PKEY_get_raw_public_key(ed, d, &len) && len == 32, "key");

    a = xet_test_pem(ed, 0);
    b = xet_test_pem(ec, 0);
    private = xet_test_pem(ed, 1);

    test_blocks(a, b, private);
    test_pem_size(a);

    free(a);
    free(b);
    free(private);
    EVP_PKEY_free(ed);
    EVP_PKEY_free(ec);
}


int
main(void)
{
    test_each();
    test_documents();
    test_limits();
    test_files();

    return xet_done();
}
