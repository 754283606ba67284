
/*
 * Tests which requests a signed list of ranges permits: a table, and random
 * lists compared with a map of the bytes.
 */


#include "xet_test.h"
#include "xet_test_pool.h"
#include "xet_access.h"


static xet_range_t  test_room[XET_SIGN_RANGES_MAX];


typedef struct {
    const char    *signed_list;        /* NULL: URL is cacheable */
    const char    *value;
    int            want;
} test_range_t;


static const test_range_t  test_ranges[] = {
    { "0-99", "bytes=0-99", 1 },
    { "0-99", "BYTES=0-99", 1 },
    { "0-99", "bytes=0-98", 1 },
    { "0-99", "bytes=1-99", 1 },
    { "0-99", "bytes=50-50", 1 },
    { "0-99", "bytes=0-100", 0 },
    { "0-99", "bytes=99-100", 0 },
    { "0-99", "bytes=100-100", 0 },
    { "0-99", "bytes=0-9223372036854775807", 0 },
    { "0-99", "bytes=0-9223372036854775808", 0 },
    { "0-99", "bytes=0-", 0 },
    { "0-99", "bytes=99-", 0 },
    { "0-99", "bytes=-1", 0 },
    { "0-99", "bytes=-0", 0 },
    { "0-99", "bytes=0-10,20-30", 0 },
    { "0-99", "bytes=0-99,0-99", 0 },
    { "0-99", "bytes=", 0 },
    { "0-99", "bytes", 0 },
    { "0-99", "", 0 },
    { "0-99", "0-99", 0 },
    { "0-99", "items=0-99", 0 },
    { "0-99", "bytes=99-0", 0 },
    { "0-99", "bytes=0-99,", 0 },
    { "0-99", "bytes=,0-99", 0 },
    { "0-9,20-29,40-49", "bytes=0-9,,20-29", 0 },
    { "0-99", NULL, 0 },
    { "100-199", "bytes=99-199", 0 },
    { "100-199", "bytes=100-199", 1 },
    { "100-199", "bytes=0-0", 0 },
    { "0-9,20-29,40-49", "bytes=0-9,20-29,40-49", 1 },
    { "0-9,20-29,40-49", "bytes=0-9, 20-29, 40-49", 1 },
    { "0-9,20-29,40-49", "bytes=0-9", 1 },
    { "0-9,20-29,40-49", "bytes=20-29", 1 },
    { "0-9,20-29,40-49", "bytes=40-49", 1 },
    { "0-9,20-29,40-49", "bytes=0-9,40-49", 1 },
    { "0-9,20-29,40-49", "bytes=25-26,41-42", 1 },
    { "0-9,20-29,40-49", "bytes=20-21,23-24,26-27", 1 },
    { "0-9,20-29,40-49", "bytes=0-0,1-1,2-2,3-3", 0 },
    { "0-9,20-29,40-49", "bytes=20-29,0-9", 0 },
    { "0-9,20-29,40-49", "bytes=0-9,9-9", 0 },
    { "0-9,20-29,40-49", "bytes=0-9,0-9", 0 },
    { "0-9,20-29,40-49", "bytes=0-9,10-10", 0 },
    { "0-9,20-29,40-49", "bytes=5-25", 0 },
    { "0-9,20-29,40-49", "bytes=0-49", 0 },
    { "0-9,20-29,40-49", "bytes=0-9,20-29,40-", 0 },
    { "0-9,20-29,40-49", "bytes=0-9,-10", 0 },
    { "0-9,20-29,40-49", "bytes=0-9,20-29,40-50", 0 },
    { "0-9,20-29,40-49", "bytes=15-15", 0 },
    { "0-9,20-29,40-49", "bytes=50-50", 0 },
    { "0-9,10-19", "bytes=0-9,10-19", 1 },
    { "0-9,10-19", "bytes=0-19", 0 },
    { NULL, "bytes=0-99", 1 },
    { NULL, "bytes=5-", 1 },
    { NULL, "bytes=-5", 1 },
    { NULL, "bytes=9-10,0-3,-1", 1 },
    { NULL, "bytes=3-2", 0 },
    { NULL, "bytes=x", 0 },
    { NULL, "", 0 },
    { NULL, NULL, 1 },
};


static void
test_range_checks(void)
{
    size_t           i, k, len;
    char            *text;
    xet_sign_url_t   url;

    memset(&url, 0, sizeof(url));
    url.ranges = test_room;

    for (i = 0; i < sizeof(test_ranges) / sizeof(test_ranges[0]); i++) {
        const test_range_t  *t = &test_ranges[i];

        url.n = 0;

        if (t->signed_list) {
            url.n = XET_SIGN_RANGES_MAX;
            (void) xet_range_list_parse((const uint8_t *) t->signed_list,
                                        strlen(t->signed_list), test_room,
                                        &url.n);
        }

        xet_ok(xet_sign_range_check(&url, (const uint8_t *) t->value,
                                    t->value ? strlen(t->value) : 0)
               == (t->want ? XET_OK : XET_SIGN_RANGE),
               "%s under %s: %s", t->value ? t->value : "no header",
               t->signed_list ? t->signed_list : "a free URL",
               t->want ? "yes" : "no");
    }

    /* 512 ranges and 513 ranges, signed and unsigned */

    text = malloc(513 * 20 + 10);

    for (k = 512; k <= 513; k++) {
        len = (size_t) sprintf(text, "bytes=");

        for (i = 0; i < k; i++) {
            len += (size_t) sprintf(text + len, "%s%u-%u", i ? "," : "",
                                    (unsigned) i * 10, (unsigned) i * 10 + 4);

            if (i < XET_SIGN_RANGES_MAX) {
                test_room[i].start = i * 10;
                test_room[i].end = i * 10 + 5;
            }
        }

        url.n = XET_SIGN_RANGES_MAX;
        xet_is_u64(xet_sign_range_check(&url, (uint8_t *) text, len),
                   k == 512 ? XET_OK : XET_SIGN_RANGE,
                   k == 512 ? "512 signed ranges" : "513 under 512");
        url.n = 0;
        xet_is_u64(xet_sign_range_check(&url, (uint8_t *) text, len),
                   k == 512 ? XET_OK : XET_SIGN_RANGE,
                   k == 512 ? "512 free ranges" : "513 free ranges");
    }

    free(text);
}


/* Compares random lists of small numbers with a map of the bytes. */

static void
test_range_model(void)
{
    char             text[64];
    size_t           len;
    uint64_t         state, a, b, pos;
    unsigned         i, k, n, ok, bad, yes;
    xet_sign_url_t   url;

    state = 3;
    bad = 0;
    yes = 0;
    memset(&url, 0, sizeof(url));
    url.ranges = test_room;

    for (i = 0; i < 20000; i++) {
        uint8_t  map[64];              /* the signed range of each byte */

        memset(map, 0, sizeof(map));

        url.n = 1 + xet_test_random(&state) % 4;

        for (k = 0, pos = 0; k < url.n; k++) {
            pos += xet_test_random(&state) % 4;
            test_room[k].start = pos;
            pos += 1 + xet_test_random(&state) % 6;
            test_room[k].end = pos;
            memset(map + test_room[k].start, (int) k + 1,
                   pos - test_room[k].start);
        }

        n = 1 + (unsigned) (xet_test_random(&state) % 4);
        ok = n <= url.n;
        pos = 0;
        len = (size_t) sprintf(text, "bytes=");

        for (k = 0; k < n; k++) {
            a = xet_test_random(&state) % 2 ? xet_test_random(&state) % 40
                                            : pos;
            b = a + xet_test_random(&state) % 5;

            ok = ok && a >= pos && map[a] && map[a] == map[b];
            pos = b + 1;

            len += (size_t) sprintf(text + len, "%s%u-%u", k ? "," : "",
                                    (unsigned) a, (unsigned) b);
        }

        bad += (xet_sign_range_check(&url, (uint8_t *) text, len) == XET_OK)
               != ok;
        yes += ok;
    }

    xet_is_u64(bad, 0, "random lists against a map of bytes");
    xet_ok(yes > 500, "%u of 20000 are admitted", yes);
}


int
main(void)
{
    test_range_checks();
    test_range_model();

    return xet_done();
}
