
/*
 * Tests key files: lines that are keys for each purpose, and errors for
 * invalid lines, which must never contain a key.  Compares derived keys with
 * known values.
 */


#include "xet_test.h"
#include "xet_access.h"


#define HEX32  "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"                            \
               "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"

/* HKDF-SHA256 of 32 bytes 0x5e, without a salt, from another implementation */
#define URL    "7cf2e0db7e1acc9d02e411b567455d69"\
               "6fc719ab25a152a89818177ce5b0dfa3"
#define DEDUP  "fabe60fe46eeef1835fe363716afea5c"\
               "d7d4aed4f5bf6584ae2f2ea3599319be"

#define NONE   XET_KEY_PURPOSES


typedef struct {
    const char         *text;
    xet_key_purpose_e   good;          /* the valid purpose, or NONE */
} test_line_t;


static int
test_is_hex(const uint8_t *bytes, size_t len, const char *hex)
{
    size_t  i;
    char    text[2 * XET_KEY_LEN + 1];

    if (2 * len != strlen(hex)) {
        return 0;
    }

    for (i = 0; i < len; i++) {
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }

    return strcmp(text, hex) == 0;
}


/*
 * Reads text from a block of its exact length, so that ASan detects a read past
 * it.
 */

static int
test_first(xet_key_file_t *f, xet_key_purpose_e purpose, const char *text)
{
    int       rc;
    size_t    len;
    uint8_t  *copy;

    len = strlen(text);
    copy = malloc(len + !len);
    memcpy(copy, text, len);

    xet_key_begin(f, purpose, copy, len);
    rc = xet_key_next(f);

    free(copy);

    return rc;
}


/* Checks that no line is a valid key for two purposes. */

static void
test_purposes(void)
{
    int             rc, purpose;
    size_t          i;
    xet_key_file_t  f;

    static const test_line_t  lines[] = {
        { "url:k1:" HEX32 "\n", XET_KEY_URL },
        { "url:k1:" HEX32, XET_KEY_URL },
        { "url:k1:" HEX32 " \t\r\n", XET_KEY_URL },
        { "# a comment\n\n\r\nurl:A-_9:" HEX32 HEX32, XET_KEY_URL },
        { "token:k1:" HEX32, XET_KEY_TOKEN },
        { "token:a b@c:" HEX32 HEX32 HEX32, XET_KEY_TOKEN },
        { "dedup:" HEX32, XET_KEY_DEDUP },

        { "k1:" HEX32, NONE },
        { HEX32, NONE },
        { " url:k1:" HEX32, NONE },
        { "URL:k1:" HEX32, NONE },
        { "url", NONE },
        { "url:", NONE },
        { "url:k1", NONE },
        { "url:k1:", NONE },
        { "url::" HEX32, NONE },
        { "url:" HEX32, NONE },
        { "url:k 1:" HEX32, NONE },
        { "url:k1:" HEX32 "5", NONE },
        { "url:k1:" HEX32 ":" HEX32, NONE },
        { "url:k1: " HEX32, NONE },
        { "url:k1:0x" HEX32, NONE },
        { "url:k1:" HEX32 HEX32 "5e", NONE },
        { "url:k1:5e5e", NONE },
        { "url:01234567890123456:" HEX32, NONE },
        { "token:" HEX32, NONE },
        { "token:k1:5e", NONE },
        { "token:\x01:" HEX32, NONE },
        { "dedup:k1:" HEX32, NONE },
        { "dedup:" HEX32 "5e", NONE },
        { "dedup:", NONE },
        { "{12345k1:" HEX32, NONE },
        { "{\"keys\":[]}", NONE },
        { "-----BEGIN PRIVATE KEY-----", NONE },
        { "-----BEGIN", NONE },
        { "s3:k1:" HEX32, NONE }
    };

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {

        for (purpose = 0; purpose < XET_KEY_PURPOSES; purpose++) {
            rc = test_first(&f, purpose, lines[i].text);

            xet_ok(rc == ((int) lines[i].good == purpose ? 1 : -1),
                   "\"%.20s\" for purpose %d: %d", lines[i].text, purpose, rc);

            if (rc == -1) {
                xet_ok(f.fault[0] != '\0' && strstr(f.fault, "5e5e") == NULL,
                       "fault without a secret: %s", f.fault);
            }

            xet_key_end(&f);
        }
    }
}


static void
test_faults(void)
{
    xet_key_file_t  f;

    xet_is_u64(test_first(&f, XET_KEY_URL, "\n# x\ntoken:t1:" HEX32), -1,
               "another purpose");
    xet_is_u64(f.line, 3, "its line");
    xet_ok(strstr(f.fault, "\"token\"") != NULL
           && strstr(f.fault, "\"url\"") != NULL, "both named: %s", f.fault);
    xet_key_end(&f);

    xet_is_u64(test_first(&f, XET_KEY_DEDUP, "-----BEGIN PRIVATE KEY-----"),
               -1, "a token key in PEM");
    xet_ok(strstr(f.fault, "\"token\"") != NULL, "is named: %s", f.fault);
    xet_key_end(&f);

    xet_is_u64(test_first(&f, XET_KEY_TOKEN, "{\"keys\":[]}"), -1,
               "JSON is no line");
    xet_key_end(&f);

    xet_is_u64(test_first(&f, XET_KEY_URL, "# nothing\n"), 0, "no key");
    xet_is_u64(f.n, 0, "no key at all");
    xet_key_end(&f);

    xet_key_begin(&f, XET_KEY_URL, (const uint8_t *) "url:k1:\0", 8);
    xet_is_u64(xet_key_next(&f), -1, "a NUL");
    xet_key_end(&f);
}


static void
test_several(void)
{
    xet_key_file_t  f;

    static const char  text[] = "url:b:" HEX32 "\n# x\nurl:a:" HEX32 HEX32
                                "\ntoken:c:" HEX32 "\n";

    xet_key_begin(&f, XET_KEY_URL, (const uint8_t *) text, sizeof(text) - 1);

    xet_is_u64(xet_key_next(&f), 1, "the first");
    xet_ok(f.id_len == 1 && f.id[0] == 'b' && f.line == 1, "its id and line");
    xet_is_u64(xet_key_next(&f), 1, "the second");
    xet_ok(f.id_len == 1 && f.id[0] == 'a' && f.line == 3, "its id and line");
    xet_is_u64(f.n, 2, "two");
    xet_is_u64(xet_key_next(&f), -1, "one of another purpose");
    xet_is_u64(f.line, 4, "its line");

    xet_key_end(&f);

    xet_is_u64(f.secret[0] | f.mark[0] | f.secret_len, 0, "wiped");

    xet_key_begin(&f, XET_KEY_DEDUP,
                  (const uint8_t *) "dedup:" HEX32 "\ndedup:" HEX32, 141);
    xet_is_u64(xet_key_next(&f), 1, "dedup: one");
    xet_is_u64(xet_key_next(&f), -1, "dedup: not two");
    xet_key_end(&f);
}


/*
 * Checks that URL keys and dedup keys are derived from the bytes of the line
 * in the key file, and that token keys are not derived.
 */

static void
test_derived(void)
{
    uint8_t         out[XET_KEY_LEN];
    xet_key_file_t  url, token, dedup;

    (void) test_first(&url, XET_KEY_URL, "url:k1:" HEX32);
    (void) test_first(&token, XET_KEY_TOKEN, "token:t1:" HEX32);
    (void) test_first(&dedup, XET_KEY_DEDUP, "dedup:" HEX32);

    xet_ok(test_is_hex(url.secret, url.secret_len, URL), "url: derived");
    xet_ok(test_is_hex(dedup.secret, dedup.secret_len, DEDUP),
           "dedup: derived");
    xet_ok(test_is_hex(token.secret, token.secret_len, HEX32),
           "token: as others have it");

    xet_ok(memcmp(url.mark, token.mark, XET_KEY_LEN) == 0
           && memcmp(url.mark, dedup.mark, XET_KEY_LEN) == 0,
           "the bytes are known to be the same");
    xet_ok(memcmp(url.mark, url.secret, XET_KEY_LEN) != 0,
           "the mark is no key");

    xet_is_u64(xet_key_derive(out, token.secret, token.secret_len,
                              "xet data url 1"), XET_OK, "by hand");
    xet_ok(memcmp(out, url.secret, XET_KEY_LEN) == 0, "is the same");

    xet_key_end(&url);
    xet_key_end(&token);
    xet_key_end(&dedup);
}


/* Tests keys that are derived from token keys. */

static void
test_jwk(void)
{
    uint8_t       secret[XET_KEY_LEN], a[XET_KEY_LEN], b[XET_KEY_LEN];
    xet_jwk_t    *key, *again;

    memset(secret, 0x5e, sizeof(secret));

    xet_is_u64(xet_jwk_create_secret(&key, (const uint8_t *) "a", 1, secret,
                                     sizeof(secret)), XET_OK, "a secret");
    xet_is_u64(xet_jwk_create_secret(&again, (const uint8_t *) "b", 1, secret,
                                     sizeof(secret)), XET_OK, "another id");

    xet_is_u64(xet_jwk_derive(key, "one", a), XET_OK, "derived");
    xet_is_u64(xet_jwk_derive(again, "one", b), XET_OK, "derived again");
    xet_ok(memcmp(a, b, XET_KEY_LEN) == 0, "the same, whatever the id");

    xet_is_u64(xet_jwk_derive(key, "two", b), XET_OK, "another label");
    xet_ok(memcmp(a, b, XET_KEY_LEN) != 0, "is another key");
    xet_ok(memcmp(a, secret, XET_KEY_LEN) != 0
           && memcmp(b, secret, XET_KEY_LEN) != 0, "none is the secret");

    xet_jwk_destroy(key);
    xet_jwk_destroy(again);
}


int
main(void)
{
    test_purposes();
    test_faults();
    test_several();
    test_derived();
    test_jwk();

    return xet_done();
}
