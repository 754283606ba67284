
/*
 * Tests base64url: known values and every length.  Each value must have only
 * one valid encoding.
 */


#include "xet_test.h"
#include "xet_base.h"


static int
test_decode(const char *text, uint8_t *dst)
{
    int       ok;
    size_t    len, room;
    uint8_t  *src, *out;

    /* blocks of the exact length, so that ASan detects an access past them */

    len = strlen(text);
    room = (len % 4 == 1) ? 0 : xet_base64_decoded(len);
    src = malloc(len + !len);
    out = malloc(room + !room);
    memcpy(src, text, len);

    ok = xet_base64_decode(out, src, len);

    if (ok && room) {
        memcpy(dst, out, room);
    }

    free(src);
    free(out);

    return ok;
}


static void
test_known(void)
{
    size_t    i, len;
    uint8_t   text[16], *end, back[16];

    static const struct {
        const char  *bytes;
        const char  *text;
    } known[] = {
        { "", "" },
        { "f", "Zg" },
        { "fo", "Zm8" },
        { "foo", "Zm9v" },
        { "foob", "Zm9vYg" },
        { "fooba", "Zm9vYmE" },
        { "foobar", "Zm9vYmFy" },
        { "\xff\xef\xbe", "_---" },
        { "\xff\xff\xff", "____" },
    };

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        len = strlen(known[i].bytes);

        end = xet_base64_encode(text, (const uint8_t *) known[i].bytes, len);

        xet_is_u64(end - text, strlen(known[i].text), "length");
        xet_is_u64(xet_base64_encoded(len), end - text, "length foreseen");
        xet_is_u64(xet_base64_decoded(strlen(known[i].text)), len,
                   "length back");
        xet_ok(memcmp(text, known[i].text, strlen(known[i].text)) == 0
               && test_decode(known[i].text, back)
               && memcmp(back, known[i].bytes, len) == 0,
               "\"%s\"", known[i].text);
    }
}


static void
test_lengths(void)
{
    size_t    i, n;
    uint8_t   bytes[100], text[140], back[100], *end;
    unsigned  good;

    good = 0;

    for (n = 0; n <= sizeof(bytes); n++) {

        for (i = 0; i < n; i++) {
            bytes[i] = (uint8_t) (i * 151 + n * 7);
        }

        end = xet_base64_encode(text, bytes, n);

        good += (size_t) (end - text) == xet_base64_encoded(n)
                && xet_base64_decoded((size_t) (end - text)) == n
                && xet_base64_decode(back, text, (size_t) (end - text))
                && memcmp(back, bytes, n) == 0;
    }

    xet_is_u64(good, sizeof(bytes) + 1, "there and back, 0 to 100 bytes");
}


/* Checks that each value has only one valid encoding of 2 or 3 characters. */

static void
test_spellings(void)
{
    unsigned  a, b, c, good;
    uint8_t   text[3], back[2];

    good = 0;

    for (a = 0; a < 256; a++) {
        for (b = 0; b < 256; b++) {
            text[0] = (uint8_t) a;
            text[1] = (uint8_t) b;
            good += (unsigned) xet_base64_decode(back, text, 2);
        }
    }

    xet_is_u64(good, 256, "one spelling of each byte");

    good = 0;

    for (a = 0; a < 128; a++) {
        for (b = 0; b < 128; b++) {
            for (c = 0; c < 256; c++) {
                text[0] = (uint8_t) a;
                text[1] = (uint8_t) b;
                text[2] = (uint8_t) c;
                good += (unsigned) xet_base64_decode(back, text, 3);
            }
        }
    }

    xet_is_u64(good, 65536, "one spelling of two bytes");
}


static void
test_refused(void)
{
    size_t   i;
    uint8_t  back[16];

    static const char  *const  refused[] = {
        "Z", "Zm9vY", "Zg==", "Zm8=", "Zg=", "=", "====", "Zm9v=", "Zh",
        "Zm9", "Zn", "Zm+v", "Zm/v", "Zm 9", "Zm\n9", " Zm9", "Zm9v ", "Zm.v",
        "Zm9v\n", "Z\xc3\xa4v", "Z\x7f" "9v", "Z@9v", "Z[9v", "Z`9v", "Z{9v",
        "Z:9v"
    };

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        xet_ok(!test_decode(refused[i], back), "refused: %u", (unsigned) i);
    }

    xet_ok(!xet_base64_decode(back, (const uint8_t *) "Zm\0v", 4),
           "refused: NUL");
}


int
main(void)
{
    test_known();
    test_lengths();
    test_spellings();
    test_refused();

    return xet_done();
}
