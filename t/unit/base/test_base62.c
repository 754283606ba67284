
/*
 * Tests base62: known values, every length, and that each value has only one
 * valid encoding.
 */


#include "xet_test.h"
#include "xet_base.h"


/* Decodes from and to blocks of the exact length, for ASan. */

static int
test_decode(const char *text, size_t len, uint8_t *dst, size_t *n)
{
    int       ok;
    size_t    room;
    uint8_t  *src, *out;

    for (room = 0; xet_base62_encoded(room + 1) <= len; room++) { /* void */ }

    src = malloc(len + !len);
    out = malloc(room + 8);
    memcpy(src, text, len);

    ok = xet_base62_decode(out, n, src, len);

    if (ok) {
        xet_is_u64(*n, room, "decoded length");
        memcpy(dst, out, *n);
    }

    free(src);
    free(out);

    return ok;
}


static void
test_known(void)
{
    size_t    i, len, n;
    uint8_t   text[64], back[64], *end;

    static const struct {
        const char  *bytes;
        size_t       len;
        const char  *text;
    } known[] = {
        { "", 0, "" },
        { "\0", 1, "00" },
        { "\xff", 1, "47" },
        { "f", 1, "1e" },
        { "foobar", 6, "0VytN8Wjy" },
        { "\xff\xff\xff\xff\xff\xff\xff\xff", 8, "LygHa16AHYF" },
        { "foobarbaz", 9, "8nG9zF8Spw91y" },
        { "\0\0\0\0\0\0\0\0", 8, "00000000000" }
    };

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        len = strlen(known[i].text);
        end = xet_base62_encode(text, (const uint8_t *) known[i].bytes,
                                known[i].len);

        xet_is_u64(end - text, len, "length");
        xet_is_u64(xet_base62_encoded(known[i].len), len, "length foreseen");
        xet_ok(memcmp(text, known[i].text, len) == 0
               && test_decode(known[i].text, len, back, &n)
               && n == known[i].len && memcmp(back, known[i].bytes, n) == 0,
               "\"%s\"", known[i].text);
    }
}


static void
test_lengths(void)
{
    size_t   i, n, len, last;
    uint8_t  bytes[200], text[300], back[200];

    for (last = 0, i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t) (i * 167 + 3);

        len = (size_t) (xet_base62_encode(text, bytes, i) - text);

        xet_ok(i == 0 || len > last, "%zu bytes: a length of its own", i);
        xet_ok(test_decode((char *) text, len, back, &n)
               && n == i && memcmp(back, bytes, i) == 0, "%zu bytes", i);

        last = len;
    }
}


static void
test_refused(void)
{
    int       c;
    char      text[12];
    size_t    i, n, accepted;
    uint8_t   back[16];

    static const char *const  bad[] = {

        /* lengths that the encoder never writes */
        "0", "0000", "00000000", "000000000000",

        /* numbers above the largest one of their bytes */
        "48", "zz", "H33", "18OWH", "4gfFC5", "JMAIjoX", "1HvWXNAa9",
        "5K1WLnfhB3", "LygHa16AHYG", "zzzzzzzzzzz",
        "00000000000zz"
    };

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        xet_ok(!test_decode(bad[i], strlen(bad[i]), back, &n), "\"%s\"",
               bad[i]);
    }

    for (accepted = 0, c = 0; c < 256; c++) {
        memcpy(text, "00000000000", 12);
        text[c % 11] = (char) c;
        accepted += (size_t) xet_base62_decode(back, &n, (uint8_t *) text, 11);
    }

    xet_ok(accepted <= 62 && accepted > 40, "only letters and digits");
}


int
main(void)
{
    test_known();
    test_lengths();
    test_refused();

    return xet_done();
}
