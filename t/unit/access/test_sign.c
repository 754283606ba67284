
/*
 * Tests signed URLs: known results, a table of attacks, a change of every
 * byte, expiry, key rotation, and limits.
 */


#include "xet_test.h"
#include "xet_test_pool.h"
#include "xet_access.h"


#define HASH  "eea25d6ee393ccae385820daed127b96ef0ea034dfb7cf6da3a950ce334b7632"
#define PATH  "/xorbs/default/ee/" HASH
#define MAC   "kTI0WQ2Tp_XUo9eL2vAqqgtDtOv6j6rIJCj0n2afyNI"
#define ARGS  "r=0-50468&e=1786192810&k=k1&s=" MAC
#define NOW   UINT64_C(1786192809)

/* signatures of a URL with two ranges, and with none */
#define MAC_TWO   "OuaNDOM22XMDtbIQ_r9Op8bxgQV1MgWia9vt0b1KEts"
#define MAC_NONE  "dH-fiLlJ8SpVXZ3E3zwWiqpoo9B5IDv_ggi1vitWXSs"


static xet_sign_asked_t  test_asked;


/*
 * Makes a key whose secret is 32 consecutive byte values, which begin with the
 * argument "first".
 */

static xet_sign_key_t *
test_key(const char *id, uint8_t first)
{
    uint8_t   secret[32];
    unsigned  i;

    for (i = 0; i < 32; i++) {
        secret[i] = (uint8_t) (first + i);
    }

    return xet_sign_key_create((const uint8_t *) id, strlen(id), secret, 32);
}


static xet_status_t
test_bytes(xet_sign_key_t *const *keys, size_t n, const void *path,
    size_t path_len, const void *args, size_t args_len, uint64_t now)
{
    xet_status_t  status;

    status = xet_sign_parse(&test_asked, path, path_len, args, args_len);

    return (status == XET_OK) ? xet_sign_verify(&test_asked, keys, n, now)
                              : status;
}


static xet_status_t
test_check(xet_sign_key_t *const *keys, size_t n, const char *path,
    const char *args, uint64_t now, xet_sign_url_t *url)
{
    size_t         path_len, args_len;
    uint8_t       *p, *a;
    xet_status_t   status;

    /* blocks of the exact length, so that ASan detects reads past their ends */

    path_len = strlen(path);
    args_len = strlen(args);
    p = malloc(path_len + !path_len);
    a = malloc(args_len + !args_len);
    memcpy(p, path, path_len);
    memcpy(a, args, args_len);

    status = test_bytes(keys, n, p, path_len, a, args_len, now);

    if (url) {
        *url = test_asked.url;
    }

    free(p);
    free(a);

    return status;
}


static const char  *test_name = HASH;


/* Signs the URL of test_name, and splits it at the question mark. */

static char *
test_url(xet_test_pool_t *pool, xet_sign_key_t *key, const char *ns,
    uint64_t expires, const xet_range_t *ranges, size_t n, char **args)
{
    char            *text;
    size_t           len;
    xet_buf_t        b;
    xet_sign_url_t   url;

    url.ns = (const uint8_t *) ns;
    url.ns_len = strlen(ns);
    url.expires = expires;
    url.ranges = ranges;
    url.n = n;

    (void) xet_xorb_name_parse(&url.xorb, &url.copy_id,
                               (const uint8_t *) test_name,
                               strlen(test_name));

    xet_buf_init(&b, xet_test_alloc, pool, 16);
    xet_buf_write(&b, "http://h", 8);

    if (xet_sign_url(key, &url, &b) != XET_OK) {
        return NULL;
    }

    text = (char *) xet_test_flatten(pool, &b, &len) + 8;
    *args = strchr(text, '?');

    if (*args) {
        *(*args)++ = '\0';
    }

    return text;
}


static void
test_known(xet_sign_key_t *key)
{
    char             *path, *args;
    unsigned          i;
    xet_sign_url_t    url;
    xet_test_pool_t   pool;

    static const xet_range_t  ranges[] = {
        { 0, 50469 }, { 63492, 71875 }
    };

    static const char  *const  want[] = {
        "e=1786192810&k=k1&s=" MAC_NONE,
        ARGS,
        "r=0-50468,63492-71874&e=1786192810&k=k1&s=" MAC_TWO
    };

    memset(&pool, 0, sizeof(pool));

    xet_ok(strcmp(xet_sign_key_id(key), "k1") == 0, "id of the key");

    for (i = 0; i < 3; i++) {
        path = test_url(&pool, key, "default", 1786192810, ranges, i, &args);

        xet_ok(strcmp(path, PATH) == 0, "path");
        xet_ok(strcmp(args, want[i]) == 0, "%s", args);

        memset(&url, 0xee, sizeof(url));
        xet_is_u64(test_check(&key, 1, path, args, NOW, &url), XET_OK,
                   "checks");
        xet_is_u64(url.n, i, "ranges");
        xet_is_u64(url.expires, 1786192810, "expiry");
        xet_is_u64(url.ns_len, 7, "length of the namespace");
        xet_is_u64(url.xorb.bytes[0], 0xae, "hash");
        xet_ok(i == 0 || (url.ranges[i - 1].start == ranges[i - 1].start
                          && url.ranges[i - 1].end == ranges[i - 1].end),
               "last range");
    }

    xet_test_pool_free(&pool);
}


typedef struct {
    const char    *name;
    const char    *path;
    const char    *args;
    xet_status_t   want;
} test_attack_t;


#define OTHER                                                                 \
    "0ea25d6ee393ccae385820daed127b96ef0ea034dfb7cf6da3a950ce334b7632"
#define UPPER                                                                 \
    "EEA25D6EE393CCAE385820DAED127B96EF0EA034DFB7CF6DA3A950CE334B7632"
#define NS64                                                                  \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* arguments that differ in the range, the expiry, the key or the signature */

#define WITH_R(r)  "r=" r "&e=1786192810&k=k1&s=" MAC
#define WITH_E(e)  "r=0-50468&e=" e "&k=k1&s=" MAC
#define WITH_K(k)  "r=0-50468&e=1786192810&k=" k "&s=" MAC
#define WITH_S(s)  "r=0-50468&e=1786192810&k=k1&s=" s

static const test_attack_t  test_attacks[] = {
    { "as signed", PATH, ARGS, XET_OK },
    { "behind a prefix", "/a/b/cdn" PATH, ARGS, XET_OK },
    { "a prefix that looks the same", "/xorbs/x" PATH, ARGS, XET_OK },
    { "a prefix of all that needs no escaping", "/aZ09-._~!$&'()*+,;=:@[]"
      PATH, ARGS, XET_OK },
    { "a request line's end in a prefix", "/x HTTP/1.1\r\n\r\nGET /y" PATH,
      ARGS, XET_SIGN_SYNTAX },
    { "a line feed in a prefix", "/x\n" PATH, ARGS, XET_SIGN_SYNTAX },
    { "a carriage return in a prefix", "/x\r" PATH, ARGS, XET_SIGN_SYNTAX },
    { "a blank in a prefix", "/x " PATH, ARGS, XET_SIGN_SYNTAX },
    { "a percent in a prefix", "/x%20" PATH, ARGS, XET_SIGN_SYNTAX },
    { "a question mark in a prefix", "/x?y" PATH, ARGS, XET_SIGN_SYNTAX },
    { "a fragment in a prefix", "/x#y" PATH, ARGS, XET_SIGN_SYNTAX },
    { "a quotation mark in a prefix", "/x\"" PATH, ARGS, XET_SIGN_SYNTAX },
    { "a backslash in a prefix", "/x\\" PATH, ARGS, XET_SIGN_SYNTAX },
    { "a tab in a prefix", "/x\t" PATH, ARGS, XET_SIGN_SYNTAX },
    { "DEL in a prefix", "/x\177" PATH, ARGS, XET_SIGN_SYNTAX },
    { "UTF-8 in a prefix", "/\303\244" PATH, ARGS, XET_SIGN_SYNTAX },

    { "another namespace", "/xorbs/other/ee/" HASH, ARGS, XET_SIGN_MISMATCH },
    { "namespace in capitals", "/xorbs/Default/ee/" HASH, ARGS,
      XET_SIGN_MISMATCH },
    { "a longer namespace", "/xorbs/default-merkledb/ee/" HASH, ARGS,
      XET_SIGN_MISMATCH },
    { "another hash", "/xorbs/default/0e/" OTHER, ARGS, XET_SIGN_MISMATCH },
    { "another folder", "/xorbs/default/0e/" HASH, ARGS, XET_SIGN_SYNTAX },
    { "folder in capitals", "/xorbs/default/EE/" HASH, ARGS,
      XET_SIGN_SYNTAX },
    { "hash in capitals", "/xorbs/default/EE/" UPPER, ARGS,
      XET_SIGN_SYNTAX },
    { "hash in capitals, folder not", "/xorbs/default/ee/" UPPER, ARGS,
      XET_SIGN_SYNTAX },
    { "one capital", "/xorbs/default/ee/eeA25d6ee393ccae385820daed127b96ef0ea0"
      "34dfb7cf6da3a950ce334b7632", ARGS, XET_SIGN_SYNTAX },
    { "no hexadecimal digit", "/xorbs/default/ee/eega5d6ee393ccae385820daed127"
      "b96ef0ea034dfb7cf6da3a950ce334b7632", ARGS, XET_SIGN_SYNTAX },
    { "a digit more", PATH "0", ARGS, XET_SIGN_SYNTAX },
    { "a slash behind", PATH "/", ARGS, XET_SIGN_SYNTAX },
    { "an extension", PATH ".x", ARGS, XET_SIGN_SYNTAX },
    { "no folder", "/xorbs/default/" HASH, ARGS, XET_SIGN_SYNTAX },
    { "two slashes", "/xorbs/default//ee/" HASH, ARGS, XET_SIGN_SYNTAX },
    { "two slashes before the namespace", "/xorbs//default/ee/" HASH, ARGS,
      XET_SIGN_SYNTAX },
    { "no namespace", "/xorbs/ee/" HASH, ARGS, XET_SIGN_SYNTAX },
    { "an empty namespace", "/xorbs//ee/" HASH, ARGS, XET_SIGN_SYNTAX },
    { "a dot as the namespace", "/xorbs/./ee/" HASH, ARGS, XET_SIGN_SYNTAX },
    { "dots in the namespace", "/xorbs/../ee/" HASH, ARGS, XET_SIGN_SYNTAX },
    { "a percent in the namespace", "/xorbs/d%65fault/ee/" HASH, ARGS,
      XET_SIGN_SYNTAX },
    { "64 characters of namespace", "/xorbs/" NS64 "/ee/" HASH, ARGS,
      XET_SIGN_MISMATCH },
    { "65 characters of namespace", "/xorbs/" NS64 "a/ee/" HASH, ARGS,
      XET_SIGN_SYNTAX },
    { "another word", "/xorb/default/ee/" HASH, ARGS, XET_SIGN_SYNTAX },
    { "a longer word", "/axorbs/default/ee/" HASH, ARGS, XET_SIGN_SYNTAX },
    { "word in capitals", "/Xorbs/default/ee/" HASH, ARGS, XET_SIGN_SYNTAX },
    { "no leading slash", "xorbs/default/ee/" HASH, ARGS, XET_SIGN_SYNTAX },
    { "two components more", PATH "/ee/" HASH, ARGS, XET_SIGN_SYNTAX },
    { "the hash alone", HASH, ARGS, XET_SIGN_SYNTAX },
    { "folder and hash alone", "/ee/" HASH, ARGS, XET_SIGN_SYNTAX },
    { "no path", "", ARGS, XET_SIGN_SYNTAX },

    { "no arguments", PATH, "", XET_SIGN_SYNTAX },
    { "a longer range", PATH, WITH_R("0-50469"), XET_SIGN_MISMATCH },
    { "another start", PATH, WITH_R("1-50468"), XET_SIGN_MISMATCH },
    { "a part of the range", PATH, WITH_R("0-5046"), XET_SIGN_MISMATCH },
    { "a range more", PATH, WITH_R("0-50468,50470-50471"), XET_SIGN_MISMATCH },
    { "the range dropped", PATH, "e=1786192810&k=k1&s=" MAC,
      XET_SIGN_MISMATCH },
    { "a range added to a free URL", PATH, WITH_S(MAC_NONE),
      XET_SIGN_MISMATCH },
    { "an empty range", PATH, "r=&e=1786192810&k=k1&s=" MAC_NONE,
      XET_SIGN_SYNTAX },
    { "a range without a value", PATH, "r&e=1786192810&k=k1&s=" MAC_NONE,
      XET_SIGN_SYNTAX },
    { "an open range", PATH, WITH_R("0-"), XET_SIGN_SYNTAX },
    { "a suffix range", PATH, WITH_R("-5"), XET_SIGN_SYNTAX },
    { "a reversed range", PATH, WITH_R("5-4"), XET_SIGN_SYNTAX },
    { "a leading zero", PATH, WITH_R("00-50468"), XET_SIGN_SYNTAX },
    { "a leading zero of the end", PATH, WITH_R("0-050468"), XET_SIGN_SYNTAX },
    { "a plus sign", PATH, WITH_R("+0-50468"), XET_SIGN_SYNTAX },
    { "a comma behind", PATH, WITH_R("0-50468,"), XET_SIGN_SYNTAX },
    { "overlapping ranges", PATH, WITH_R("0-5,5-6"), XET_SIGN_SYNTAX },
    { "descending ranges", PATH, WITH_R("7-9,5-6"), XET_SIGN_SYNTAX },
    { "touching ranges", PATH, WITH_R("5-6,7-9"), XET_SIGN_MISMATCH },
    { "a range to 2^63 - 1", PATH, WITH_R("0-9223372036854775807"),
      XET_SIGN_MISMATCH },
    { "a range to 2^63", PATH, WITH_R("0-9223372036854775808"),
      XET_SIGN_SYNTAX },
    { "a range to 2^64", PATH, WITH_R("0-18446744073709551616"),
      XET_SIGN_SYNTAX },
    { "a percent in the range", PATH, WITH_R("0%2D50468"), XET_SIGN_SYNTAX },

    { "a later expiry", PATH, WITH_E("1786192811"), XET_SIGN_MISMATCH },
    { "an earlier expiry", PATH, WITH_E("1"), XET_SIGN_MISMATCH },
    { "expiry with a zero in front", PATH, WITH_E("01786192810"),
      XET_SIGN_SYNTAX },
    { "expiry 0", PATH, WITH_E("0"), XET_SIGN_MISMATCH },
    { "expiry 00", PATH, WITH_E("00"), XET_SIGN_SYNTAX },
    { "expiry -1", PATH, WITH_E("-1"), XET_SIGN_SYNTAX },
    { "expiry 2^63 - 1", PATH, WITH_E("9223372036854775807"),
      XET_SIGN_MISMATCH },
    { "expiry 2^63", PATH, WITH_E("9223372036854775808"), XET_SIGN_SYNTAX },
    { "expiry 2^64 + 1786192810", PATH, WITH_E("18446744075495744426"),
      XET_SIGN_SYNTAX },
    { "an empty expiry", PATH, WITH_E(""), XET_SIGN_SYNTAX },
    { "expiry with a blank", PATH, WITH_E("1786192810 "), XET_SIGN_SYNTAX },
    { "no expiry", PATH, "r=0-50468&k=k1&s=" MAC, XET_SIGN_SYNTAX },

    { "another key id", PATH, WITH_K("k2"), XET_SIGN_KEY },
    { "a part of the key id", PATH, WITH_K("k"), XET_SIGN_KEY },
    { "a longer key id", PATH, WITH_K("k11"), XET_SIGN_KEY },
    { "key id in capitals", PATH, WITH_K("K1"), XET_SIGN_KEY },
    { "16 characters of key id", PATH, WITH_K("aaaaaaaaaaaaaaaa"),
      XET_SIGN_KEY },
    { "17 characters of key id", PATH, WITH_K("aaaaaaaaaaaaaaaaa"),
      XET_SIGN_SYNTAX },
    { "an empty key id", PATH, WITH_K(""), XET_SIGN_SYNTAX },
    { "a percent in the key id", PATH, WITH_K("k%31"), XET_SIGN_SYNTAX },
    { "a dot in the key id", PATH, WITH_K("k."), XET_SIGN_SYNTAX },
    { "no key id", PATH, "r=0-50468&e=1786192810&s=" MAC, XET_SIGN_SYNTAX },

    { "no signature", PATH, "r=0-50468&e=1786192810&k=k1", XET_SIGN_SYNTAX },
    { "an ampersand and no signature", PATH, "r=0-50468&e=1786192810&k=k1&",
      XET_SIGN_SYNTAX },
    { "an empty signature", PATH, "r=0-50468&e=1786192810&k=k1&s=",
      XET_SIGN_SYNTAX },
    { "a short signature", PATH,
      WITH_S("ucFqnFm5MCVli_G7wbs4dU1P5_J-5tKSGF3Iz12i_E"), XET_SIGN_SYNTAX },
    { "a long signature", PATH, ARGS "A", XET_SIGN_SYNTAX },
    { "a padded signature", PATH, ARGS "=", XET_SIGN_SYNTAX },
    { "the other base64", PATH,
      WITH_S("ucFqnFm5MCVli/G7wbs4dU1P5/J+5tKSGF3Iz12i/E8"), XET_SIGN_SYNTAX },
    { "spare bits 01", PATH,
      WITH_S("ucFqnFm5MCVli_G7wbs4dU1P5_J-5tKSGF3Iz12i_E9"), XET_SIGN_SYNTAX },
    { "spare bits 10", PATH,
      WITH_S("ucFqnFm5MCVli_G7wbs4dU1P5_J-5tKSGF3Iz12i_E-"), XET_SIGN_SYNTAX },
    { "spare bits 11", PATH,
      WITH_S("ucFqnFm5MCVli_G7wbs4dU1P5_J-5tKSGF3Iz12i_E_"), XET_SIGN_SYNTAX },
    { "signature of the cacheable URL", PATH, WITH_S(MAC_NONE),
      XET_SIGN_MISMATCH },
    { "signature in percents", PATH,
      WITH_S("%75cFqnFm5MCVli_G7wbs4dU1P5_J-5tKSGF3I"), XET_SIGN_SYNTAX },

    { "e before r", PATH, "e=1786192810&r=0-50468&k=k1&s=" MAC,
      XET_SIGN_SYNTAX },
    { "k before e", PATH, "r=0-50468&k=k1&e=1786192810&s=" MAC,
      XET_SIGN_SYNTAX },
    { "s before k", PATH, "r=0-50468&e=1786192810&s=" MAC "&k=k1",
      XET_SIGN_SYNTAX },
    { "s first", PATH, "s=" MAC "&r=0-50468&e=1786192810&k=k1",
      XET_SIGN_SYNTAX },
    { "r twice", PATH, "r=0-50468&" ARGS, XET_SIGN_SYNTAX },
    { "r twice, the second other", PATH,
      "r=0-50468&r=0-99999&e=1786192810&k=k1&s=" MAC, XET_SIGN_SYNTAX },
    { "e twice", PATH, "r=0-50468&e=1786192810&e=1786192810&k=k1&s=" MAC,
      XET_SIGN_SYNTAX },
    { "k twice", PATH, "r=0-50468&e=1786192810&k=k1&k=k1&s=" MAC,
      XET_SIGN_SYNTAX },
    { "s twice", PATH, ARGS "&s=" MAC, XET_SIGN_SYNTAX },
    { "r again at the end", PATH, ARGS "&r=0-99999", XET_SIGN_SYNTAX },
    { "an argument more in front", PATH, "x=1&" ARGS, XET_SIGN_SYNTAX },
    { "an argument more in the middle", PATH,
      "r=0-50468&x=1&e=1786192810&k=k1&s=" MAC, XET_SIGN_SYNTAX },
    { "an argument more behind", PATH, ARGS "&x=1", XET_SIGN_SYNTAX },
    { "an ampersand in front", PATH, "&" ARGS, XET_SIGN_SYNTAX },
    { "an ampersand behind", PATH, ARGS "&", XET_SIGN_SYNTAX },
    { "two ampersands", PATH, "r=0-50468&&e=1786192810&k=k1&s=" MAC,
      XET_SIGN_SYNTAX },
    { "semicolons", PATH, "r=0-50468;e=1786192810;k=k1;s=" MAC,
      XET_SIGN_SYNTAX },
    { "names in capitals", PATH, "R=0-50468&E=1786192810&K=k1&S=" MAC,
      XET_SIGN_SYNTAX },
    { "a name in percents", PATH, "%72=0-50468&e=1786192810&k=k1&s=" MAC,
      XET_SIGN_SYNTAX },
    { "a longer name", PATH, "rr=0-50468&e=1786192810&k=k1&s=" MAC,
      XET_SIGN_SYNTAX },
    { "a question mark in front", PATH, "?" ARGS, XET_SIGN_SYNTAX },
    { "a fragment behind", PATH, ARGS "#x", XET_SIGN_SYNTAX },
    { "a newline in the range", PATH, WITH_R("0-50468\n"), XET_SIGN_SYNTAX },
    { "one letter", PATH, "r", XET_SIGN_SYNTAX },
    { "two letters", PATH, "r=", XET_SIGN_SYNTAX },
    { "up to the expiry", PATH, "r=0-50468&e=1786192810", XET_SIGN_SYNTAX },
};


static void
test_attack(xet_sign_key_t *key)
{
    size_t  i;

    for (i = 0; i < sizeof(test_attacks) / sizeof(test_attacks[0]); i++) {
        xet_is_u64(test_check(&key, 1, test_attacks[i].path,
                              test_attacks[i].args, NOW, NULL),
                   test_attacks[i].want, test_attacks[i].name);
    }
}


/*
 * Replaces each byte of a signed URL with all other values, and truncates the
 * path and the arguments at every position.
 */

static void
test_spoilt(xet_sign_key_t *key)
{
    int          c;
    char         path[sizeof(PATH)], args[sizeof(ARGS)];
    size_t       i;
    unsigned     accepted;

    memcpy(path, PATH, sizeof(path));
    memcpy(args, ARGS, sizeof(args));

    accepted = 0;

    for (i = 0; i < sizeof(args) - 1; i++) {
        for (c = 1; c < 256; c++) {
            args[i] = (char) c;
            accepted += test_check(&key, 1, path, args, NOW, NULL) == XET_OK;
        }

        args[i] = ARGS[i];
    }

    xet_is_u64(accepted, sizeof(args) - 1,
               "every byte of the arguments matters");

    for (i = 0, accepted = 0; i < sizeof(path) - 1; i++) {
        for (c = 1; c < 256; c++) {
            path[i] = (char) c;
            accepted += test_check(&key, 1, path, args, NOW, NULL) == XET_OK;
        }

        path[i] = PATH[i];
    }

    xet_is_u64(accepted, sizeof(path) - 1, "every byte of the path matters");

    for (i = 0, accepted = 0; i < sizeof(args) - 1; i++) {
        args[i] = '\0';
        accepted += test_check(&key, 1, path, args, NOW, NULL)
                    != XET_SIGN_SYNTAX;
        args[i] = ARGS[i];

        accepted += i && test_check(&key, 1, path, args + i, NOW, NULL)
                         == XET_OK;
    }

    xet_is_u64(accepted, 0, "no part of the arguments will do");

    for (i = 1, accepted = 0; i < sizeof(path) - 1; i++) {
        accepted += test_check(&key, 1, path + i, args, NOW, NULL)
                    != XET_SIGN_SYNTAX;
        path[sizeof(path) - 1 - i] = '\0';
        accepted += test_check(&key, 1, path, args, NOW, NULL)
                    != XET_SIGN_SYNTAX;
    }

    xet_is_u64(accepted, 0, "nor of the path");

    xet_is_u64(test_bytes(&key, 1, PATH "\0x", sizeof(PATH) + 1, ARGS,
                          sizeof(ARGS) - 1, NOW),
               XET_SIGN_SYNTAX, "a zero byte in the path");
    xet_is_u64(test_bytes(&key, 1, PATH, sizeof(PATH) - 1, ARGS,
                          sizeof(ARGS), NOW),
               XET_SIGN_SYNTAX, "a zero byte in the arguments");

    i = sizeof(ARGS) - 9;
    args[i] = '\0';
    xet_is_u64(test_bytes(&key, 1, PATH, sizeof(PATH) - 1, args,
                          sizeof(ARGS) - 1, NOW),
               XET_SIGN_SYNTAX, "a zero byte in the signature");
    args[i] = ARGS[i];

    xet_is_u64(test_bytes(&key, 1, NULL, 0, NULL, 0, NOW),
               XET_SIGN_SYNTAX, "nothing");
}


static void
test_expiry(xet_sign_key_t *key)
{
    static const char  wrong[] =
        "r=0-50468&e=1786192810&k=k1&s="
        "vcFqnFm5MCVli_G7wbs4dU1P5_J-5tKSGF3Iz12i_E8";

    xet_is_u64(test_check(&key, 1, PATH, ARGS, 0, NULL), XET_OK, "early");
    xet_is_u64(test_check(&key, 1, PATH, ARGS, NOW, NULL), XET_OK,
               "in the last second");
    xet_is_u64(test_check(&key, 1, PATH, ARGS, NOW + 1, NULL),
               XET_SIGN_EXPIRED, "in the second of the expiry");
    xet_is_u64(test_check(&key, 1, PATH, ARGS, UINT64_MAX, NULL),
               XET_SIGN_EXPIRED, "at the end of time");
    xet_is_u64(test_check(&key, 1, PATH, wrong, NOW + 1, NULL),
               XET_SIGN_MISMATCH, "expired and forged: forged");
}


static void
test_keys(xet_sign_key_t *key)
{
    size_t           i;
    char            *path, *args;
    uint8_t          secret[65];
    unsigned         good;
    xet_sign_key_t  *old, *same, *keys[3];
    xet_test_pool_t  pool;

    static const xet_range_t  range = { 10, 20 };

    memset(&pool, 0, sizeof(pool));
    memset(secret, 'x', sizeof(secret));

    old = test_key("k0", 100);
    same = test_key("k1", 100);

    keys[0] = key;
    keys[1] = old;

    xet_is_u64(test_check(keys, 0, PATH, ARGS, NOW, NULL), XET_SIGN_KEY,
               "no keys");
    xet_is_u64(test_check(&old, 1, PATH, ARGS, NOW, NULL), XET_SIGN_KEY,
               "another key");
    xet_is_u64(test_check(&same, 1, PATH, ARGS, NOW, NULL),
               XET_SIGN_MISMATCH, "another secret of that id");
    xet_is_u64(test_check(keys, 2, PATH, ARGS, NOW, NULL), XET_OK,
               "the first of two keys");

    path = test_url(&pool, old, "default", NOW + 1, &range, 1, &args);
    xet_is_u64(test_check(keys, 2, path, args, NOW, NULL), XET_OK,
               "the second of two keys");
    xet_is_u64(test_check(&key, 1, path, args, NOW, NULL), XET_SIGN_KEY,
               "it is gone");

    keys[0] = same;
    keys[1] = key;
    xet_is_u64(test_check(keys, 2, PATH, ARGS, NOW, NULL), XET_OK,
               "two secrets of one id");

    /* a check changes no key */

    for (i = 0, good = 0; i < 1000; i++) {
        good += test_check(keys, 2, PATH, ARGS, NOW, NULL) == XET_OK;
        good += test_check(&old, 1, path, args, NOW, NULL) == XET_OK;
    }

    xet_is_u64(good, 2000, "a key may be used again and again");

    for (i = 0; i <= 65; i++) {
        xet_sign_key_t  *k;

        k = xet_sign_key_create((const uint8_t *) "id", 2, secret, i);

        if ((k != NULL) != (i == 32)) {
            break;
        }

        xet_sign_key_destroy(k);
    }

    xet_is_u64(i, 66, "secrets of 32 bytes");

    for (i = 0; i <= 17; i++) {
        xet_sign_key_t  *k;

        k = xet_sign_key_create(secret, i, secret, 32);

        if ((k != NULL) != (i >= 1 && i <= 16)
            || (k && strlen(xet_sign_key_id(k)) != i))
        {
            break;
        }

        xet_sign_key_destroy(k);
    }

    xet_is_u64(i, 18, "ids of 1 to 16 characters");

    for (i = 0, good = 0; i < 256; i++) {
        xet_sign_key_t  *k;
        uint8_t          id[2];

        id[0] = 'a';
        id[1] = (uint8_t) i;
        k = xet_sign_key_create(id, 2, secret, 32);
        good += k != NULL;
        xet_sign_key_destroy(k);
    }

    xet_is_u64(good, 64, "of 64 characters");

    xet_sign_key_destroy(NULL);
    xet_sign_key_destroy(old);
    xet_sign_key_destroy(same);
    xet_test_pool_free(&pool);
}


/* Returns 1 if signing fails as an internal error and writes no output. */

static int
test_refused(xet_test_pool_t *pool, xet_sign_key_t *key, const char *ns,
    uint64_t expires, const xet_range_t *ranges, size_t n)
{
    xet_buf_t        b;
    xet_sign_url_t   url;

    memset(&url, 0, sizeof(url));

    url.ns = (const uint8_t *) ns;
    url.ns_len = strlen(ns);
    url.expires = expires;
    url.ranges = ranges;
    url.n = n;

    xet_buf_init(&b, xet_test_alloc, pool, 16);

    return xet_sign_url(key, &url, &b) == XET_INTERNAL && b.size == 0;
}


/*
 * Tests values that the signer rejects, and the longest values that it accepts.
 */

static void
test_limits(xet_sign_key_t *key)
{
    size_t            i;
    char             *path, *args, *more;
    xet_range_t       r[XET_SIGN_RANGES_MAX + 1];
    xet_sign_url_t    url;
    xet_test_pool_t   pool;

    memset(&pool, 0, sizeof(pool));

    r[0].start = 5;
    r[0].end = 10;
    r[1].start = 9;
    r[1].end = 12;

    xet_ok(test_refused(&pool, key, "", 1, r, 1), "no namespace");
    xet_ok(test_refused(&pool, key, "a/b", 1, r, 1),
           "a slash in the namespace");
    xet_ok(test_refused(&pool, key, "a\n", 1, r, 1),
           "a newline in the namespace");
    xet_ok(test_refused(&pool, key, NS64 "a", 1, r, 1),
           "a namespace of 65 characters");
    xet_ok(test_refused(&pool, key, "a", (uint64_t) INT64_MAX + 1, r, 1),
           "an expiry of 2^63");
    xet_ok(test_refused(&pool, key, "a", 1, r, 2), "overlapping ranges");

    r[1].start = 10;
    xet_ok(test_url(&pool, key, "a", 1, r, 2, &args) != NULL,
           "touching ranges");
    r[1].start = 3;
    r[1].end = 5;
    xet_ok(test_refused(&pool, key, "a", 1, r, 2), "descending ranges");
    r[0].end = 5;
    xet_ok(test_refused(&pool, key, "a", 1, r, 1), "an empty range");
    r[0].end = 4;
    xet_ok(test_refused(&pool, key, "a", 1, r, 1), "a reversed range");
    r[0].end = (UINT64_C(1) << 63) + 1;
    xet_ok(test_refused(&pool, key, "a", 1, r, 1), "a range past 2^63");

    r[0].end = UINT64_C(1) << 63;
    path = test_url(&pool, key, NS64, (uint64_t) INT64_MAX, r, 1, &args);
    xet_ok(path != NULL, "the longest namespace, expiry and range");
    xet_is_u64(test_check(&key, 1, path, args, (uint64_t) INT64_MAX - 1,
                          &url), XET_OK, "check");
    xet_is_u64(url.ranges[0].end, UINT64_C(1) << 63, "its end");

    test_name = HASH ".89abcdef";
    path = test_url(&pool, key, NS64, (uint64_t) INT64_MAX, r, 1, &args);
    xet_ok(path != NULL, "and the longest name");
    xet_is_u64(test_check(&key, 1, path, args, (uint64_t) INT64_MAX - 1,
                          &url), XET_OK, "check");
    xet_is_u64(url.copy_id, 0x89abcdef, "its copy_id");
    test_name = HASH;

    for (i = 0; i <= XET_SIGN_RANGES_MAX; i++) {
        r[i].start = UINT64_C(1000000000000000000) + i * 10;
        r[i].end = r[i].start + 5;
    }

    xet_ok(test_refused(&pool, key, "a", 1, r, XET_SIGN_RANGES_MAX + 1),
           "513 ranges");
    path = test_url(&pool, key, "a", 2, r, XET_SIGN_RANGES_MAX, &args);
    xet_ok(path != NULL, "512 ranges");
    xet_is_u64(test_check(&key, 1, path, args, 1, &url), XET_OK, "check");
    xet_is_u64(url.n, 512, "ranges");
    xet_is_u64(url.ranges[511].start, r[511].start, "the last one");

    /* a request with one range too many */

    more = malloc(strlen(args) + 8);
    sprintf(more, "r=0-1,%s", args + 2);
    xet_is_u64(test_check(&key, 1, path, more, 1, &url), XET_SIGN_SYNTAX,
               "513 ranges in a request");
    free(more);

    pool.limit = pool.n;
    xet_ok(test_url(&pool, key, "a", 2, r, 1, &args) == NULL,
           "out of memory");

    xet_test_pool_free(&pool);
}


int
main(void)
{
    xet_sign_key_t  *key;

    key = test_key("k1", 0);

    if (!xet_ok(key != NULL, "a key")) {
        return xet_done();
    }

    test_known(key);
    test_attack(key);
    test_spoilt(key);
    test_expiry(key);
    test_keys(key);
    test_limits(key);

    xet_sign_key_destroy(key);

    return xet_done();
}
