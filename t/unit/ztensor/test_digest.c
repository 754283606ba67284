
/*
 * Tests checksums against published vectors, and the whole path from a
 * digest's text to the verdict.
 */


#include <inttypes.h>

#include "zt_bytes.h"
#include "xet_zt.h"


static void
test_crc32c(void)
{
    size_t    i, k, wrong;
    uint32_t  crc;
    uint8_t   data[256];

    xet_is_u64(xet_crc32c(0, NULL, 0), 0, "CRC-32C of nothing");
    xet_is_u64(xet_crc32c(0, (const uint8_t *) "123456789", 9), 0xe3069283,
               "of the digits");

    memset(data, 0, 32);
    xet_is_u64(xet_crc32c(0, data, 32), 0x8a9136aa, "of 32 zeros");

    memset(data, 0xff, 32);
    xet_is_u64(xet_crc32c(0, data, 32), 0x62a8ab43, "of 32 bytes of 0xff");

    for (i = 0; i < 32; i++) {
        data[i] = (uint8_t) i;
    }

    xet_is_u64(xet_crc32c(0, data, 32), 0x46dd794e, "of 0 to 31");

    for (i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t) (i * 7 + 3);
    }

    wrong = 0;
    crc = xet_crc32c(0, data, 200);

    for (i = 0; i <= 200; i++) {
        for (k = 0; k < 4; k++) {
            wrong += xet_crc32c(xet_crc32c(0, data, i), data + i, 200 - i)
                     != crc;
        }
    }

    xet_is_u64(wrong, 0, "in two pieces");
}


/*
 * Hashes the bytes i * i * 7 + i * 13 + (i >> 8); the expected hashes are from
 * another library.
 */

static void
test_xxh3(void)
{
    char                      want[32];
    size_t                    i, k, n, step, wrong;
    xet_zt_text_t             text;
    xet_zt_digest_t           d;
    xet_zt_digest_verdict_t   verdict;

    static uint8_t  data[70000];

    static const struct {
        size_t    len;
        uint64_t  hash;
    } vectors[] = {
        { 0, UINT64_C(0x2d06800538d394c2) },
        { 1, UINT64_C(0xc44bdff4074eecdb) },
        { 2, UINT64_C(0xdac72d23cbf01267) },
        { 3, UINT64_C(0x6647634850539fa2) },
        { 4, UINT64_C(0x26dfb56de65c55cd) },
        { 7, UINT64_C(0xb4412ff26fbd30b6) },
        { 8, UINT64_C(0x83a192ada40b0ce9) },
        { 9, UINT64_C(0x2dac7c782402c359) },
        { 15, UINT64_C(0x52a5435a9cd4977f) },
        { 16, UINT64_C(0x1e83ace8efbd71b2) },
        { 17, UINT64_C(0x13de6825446895bb) },
        { 31, UINT64_C(0xc099e4600d5efa52) },
        { 32, UINT64_C(0x200d277255f7480e) },
        { 33, UINT64_C(0xe6a1970abc497b1c) },
        { 63, UINT64_C(0xdf9ed424313b0518) },
        { 64, UINT64_C(0x48f834e51aae01a6) },
        { 65, UINT64_C(0xbb8a1dd7f5d29311) },
        { 96, UINT64_C(0x094e301bca90ebbc) },
        { 97, UINT64_C(0x9d86dba2cd388dad) },
        { 127, UINT64_C(0xf82c174e559198b9) },
        { 128, UINT64_C(0x370f45fbc0443ee5) },
        { 129, UINT64_C(0x81c5ee1d1813e394) },
        { 144, UINT64_C(0x0a52ab4905e91d29) },
        { 176, UINT64_C(0xad4353fb547a021c) },
        { 239, UINT64_C(0xe5471234ddf4c421) },
        { 240, UINT64_C(0xa638b2ea0d229925) },
        { 241, UINT64_C(0x5b091583477772f7) },
        { 255, UINT64_C(0x0dc50f5fb0dda89c) },
        { 256, UINT64_C(0x01de8b22604b902a) },
        { 257, UINT64_C(0xa9560403843bead2) },
        { 319, UINT64_C(0x7b9a3d3f18f2c0ae) },
        { 320, UINT64_C(0x2edf7e4ea59eb21e) },
        { 321, UINT64_C(0x5472a620d29ab5a4) },
        { 511, UINT64_C(0xd7317f4c27f71489) },
        { 512, UINT64_C(0x6fc481a7b6bc3e5e) },
        { 513, UINT64_C(0xc13eea47b3c33dd4) },
        { 1023, UINT64_C(0xe799f53d0da7e0b0) },
        { 1024, UINT64_C(0xb8756b20ce66095f) },
        { 1025, UINT64_C(0x1ccad3e25c08280e) },
        { 1087, UINT64_C(0xd0f913d4a1825b58) },
        { 1088, UINT64_C(0x7dd210bc5a600b3f) },
        { 1089, UINT64_C(0x5901a3ea89d3c748) },
        { 2048, UINT64_C(0x987fd563b6d9069b) },
        { 2049, UINT64_C(0xd4ea6e660be99d76) },
        { 4095, UINT64_C(0x3ad58256d7ced5ac) },
        { 65536, UINT64_C(0x623a733160455a4f) },
        { 69999, UINT64_C(0xd3b7b4ef09f55575) },
        { 70000, UINT64_C(0xdded2cc75f5c7d42) }
    };

    static const size_t  steps[] = { 70000, 1, 7, 63, 64, 65, 255, 256, 257,
                                     1024 };

    for (i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t) (i * i * 7 + i * 13 + (i >> 8));
    }

    xet_zt_digest_init(&d);

    for (i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        wrong = 0;

        snprintf(want, sizeof(want), "xxh3:%016" PRIx64, vectors[i].hash);

        text.data = (const uint8_t *) want;
        text.len = strlen(want);

        for (k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
            wrong += xet_zt_digest_start(&d, &text, XET_ZT_CONTAINER_2)
                     != XET_OK;

            for (n = 0; n < vectors[i].len; n += step) {
                step = vectors[i].len - n;
                step = step < steps[k] ? step : steps[k];

                wrong += xet_zt_digest_update(&d, data + n, step) != XET_OK;
            }

            wrong += xet_zt_digest_finish(&d, &verdict) != XET_OK
                     || verdict != XET_ZT_DIGEST_VERIFIED;
        }

        xet_ok(wrong == 0, "XXH3 of %zu bytes", vectors[i].len);
    }

    xet_zt_digest_destroy(&d);
}


static void
test_text(void)
{
    size_t                    i;
    xet_zt_text_t             text;
    xet_zt_digest_t           d;
    xet_zt_digest_verdict_t   verdict;

#define SHA  "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

    static const struct {
        xet_zt_container_t         container;
        const char                *text;
        xet_zt_digest_verdict_t    verdict;
    } cases[] = {

        { 1, "sha256:" SHA, XET_ZT_DIGEST_VERIFIED },
        { 1, "sha256:2CF24DBA5FB0A30E26E83B2AC5B9E29E1B161E5C1FA7425E730433629"
             "38B9824", XET_ZT_DIGEST_VERIFIED },
        { 1, "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e730433629"
             "38b9825", XET_ZT_DIGEST_MISMATCH },
        { 1, "sha256:" SHA "0", XET_ZT_DIGEST_MALFORMED },
        { 1, "sha256:" SHA "00", XET_ZT_DIGEST_MALFORMED },
        { 1, "sha256: " SHA, XET_ZT_DIGEST_MALFORMED },
        { 1, "sha256:0x" SHA, XET_ZT_DIGEST_MALFORMED },
        { 1, "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e730433629"
             "38b982", XET_ZT_DIGEST_MALFORMED },
        { 1, "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e730433629"
             "38b982g", XET_ZT_DIGEST_MALFORMED },
        { 1, "sha256:", XET_ZT_DIGEST_MALFORMED },
        { 1, "SHA256:" SHA, XET_ZT_DIGEST_UNSUPPORTED },

        { 1, "crc32c:0x9A71BB4C", XET_ZT_DIGEST_VERIFIED },
        { 1, "crc32c:0X9a71bb4c", XET_ZT_DIGEST_VERIFIED },
        { 1, "crc32c:9A71BB4C", XET_ZT_DIGEST_VERIFIED },
        { 1, "crc32c:0x9A71BB4D", XET_ZT_DIGEST_MISMATCH },
        { 1, "crc32c:9A71BB4D", XET_ZT_DIGEST_MISMATCH },
        { 1, "crc32c:0xZZ71BB4C", XET_ZT_DIGEST_MALFORMED },
        { 1, "crc32c:0xZZ", XET_ZT_DIGEST_MALFORMED },
        { 1, "crc32c:0x9A71BB4", XET_ZT_DIGEST_MALFORMED },
        { 1, "crc32c:0x", XET_ZT_DIGEST_MALFORMED },
        { 1, "crc32c:", XET_ZT_DIGEST_MALFORMED },
        { 1, "crc32c:0x0x71BB4C", XET_ZT_DIGEST_MALFORMED },

        { 1, "blake3:00", XET_ZT_DIGEST_UNSUPPORTED },
        { 1, "xxh3:9555e8555c62dcfd", XET_ZT_DIGEST_UNSUPPORTED },
        { 1, "sha256", XET_ZT_DIGEST_MALFORMED },
        { 1, ":" SHA, XET_ZT_DIGEST_MALFORMED },
        { 1, ":", XET_ZT_DIGEST_MALFORMED },
        { 1, "", XET_ZT_DIGEST_MALFORMED },
        { 1, NULL, XET_ZT_DIGEST_ABSENT },

        { 2, "xxh3:9555e8555c62dcfd", XET_ZT_DIGEST_VERIFIED },
        { 2, "xxh3:9555e8555c62dcfe", XET_ZT_DIGEST_MISMATCH },
        { 2, "xxh3:9555e8555c62dcf", XET_ZT_DIGEST_MALFORMED },
        { 2, "sha256:" SHA, XET_ZT_DIGEST_VERIFIED },
        { 2, "crc32c:9a71bb4c", XET_ZT_DIGEST_UNSUPPORTED },
        { 2, NULL, XET_ZT_DIGEST_ABSENT }
    };

    xet_zt_digest_init(&d);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        text.data = (const uint8_t *) cases[i].text;
        text.len = cases[i].text ? strlen(cases[i].text) : 0;

        verdict = XET_ZT_DIGEST_UNREADABLE;

        if (xet_zt_digest_start(&d, &text, cases[i].container == 1
                                           ? XET_ZT_CONTAINER_1
                                           : XET_ZT_CONTAINER_2)
            == XET_OK)
        {
            (void) xet_zt_digest_update(&d, (const uint8_t *) "hel", 3);
            (void) xet_zt_digest_update(&d, NULL, 0);
            (void) xet_zt_digest_update(&d, (const uint8_t *) "lo", 2);
            (void) xet_zt_digest_finish(&d, &verdict);
        }

        xet_ok(verdict == cases[i].verdict, "%s in %u: %s",
               cases[i].text ? cases[i].text : "none",
               (unsigned) cases[i].container,
               xet_zt_digest_name(cases[i].verdict));
    }

    xet_zt_digest_destroy(&d);
}


int
main(void)
{
    test_crc32c();
    test_xxh3();
    test_text();

    return xet_done();
}
