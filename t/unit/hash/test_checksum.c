
/*
 * Tests the checksum of stored copies: known values, and data in pieces of any
 * size.
 */

#include "xet_hash.h"
#include "xet_test.h"


static void
test_known(void)
{
    unsigned               i, k;
    char                   text[2 * XET_CHECKSUM_LEN + 1];
    xet_checksum_t         sum;
    xet_checksum_state_t  *s;

    /* output of xxhsum -H128 */

    static const struct {
        const char  *data;
        const char  *sum;
    } cases[] = {
        { "", "99aa06d3014798d86001c324468d497f" },
        { "abc", "06b05ab6733a618578af5f94892f3950" }
    };

    s = xet_checksum_create();

    for (i = 0; i < 2; i++) {
        xet_checksum_reset(s);
        xet_checksum_update(s, cases[i].data, strlen(cases[i].data));
        xet_checksum_finish(s, &sum);

        for (k = 0; k < XET_CHECKSUM_LEN; k++) {
            sprintf(text + 2 * k, "%02x", sum.bytes[k]);
        }

        xet_ok(strcmp(text, cases[i].sum) == 0, "\"%s\": %s", cases[i].data,
               text);
    }

    xet_checksum_destroy(s);
    xet_checksum_destroy(NULL);
}


static void
test_pieces(void)
{
    size_t                 i, k;
    xet_checksum_t         sum, whole;
    xet_checksum_state_t  *s;

    static uint8_t  data[100000];

    for (i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t) (i * i >> 7);
    }

    s = xet_checksum_create();

    xet_checksum_update(s, data, sizeof(data));
    xet_checksum_finish(s, &whole);

    for (k = 1; k < sizeof(data); k = k * 7 + 1) {
        xet_checksum_reset(s);

        for (i = 0; i < sizeof(data); i += k) {
            xet_checksum_update(s, data + i, k < sizeof(data) - i
                                             ? k : sizeof(data) - i);
        }

        xet_checksum_finish(s, &sum);
        xet_ok(xet_checksum_equal(&sum, &whole), "in pieces of %zu", k);
    }

    data[77777] ^= 1;

    xet_checksum_reset(s);
    xet_checksum_update(s, data, sizeof(data));
    xet_checksum_finish(s, &sum);
    xet_ok(!xet_checksum_equal(&sum, &whole), "a bit");

    xet_checksum_destroy(s);
}


int
main(void)
{
    test_known();
    test_pieces();

    return xet_done();
}
