
/*
 * Tests lists of entity tags: strong, weak, multiple and invalid tags.
 */


#include "xet_test.h"
#include "xet_base.h"


#define TAG  "\"abc\""


static const struct {
    const char  *list;
    int          strong;
    int          weak;
} rows[] = {
    { "\"abc\"", 1, 1 },
    { "W/\"abc\"", 0, 1 },
    { "*", 1, 1 },
    { " * ", 1, 1 },
    { "*, \"x\"", 0, 0 },
    { "\"x\", \"abc\"", 1, 1 },
    { "\"x\",\"abc\"", 1, 1 },
    { "W/\"x\" ,\tW/\"abc\"", 0, 1 },
    { "W/\"abc\", \"abc\"", 1, 1 },
    { ",, \"abc\" ,", 1, 1 },
    { "\"a,b\", \"abc\"", 1, 1 },
    { "\"\", \"abc\"", 1, 1 },
    { "\"\xc3\xa4\", \"abc\"", 1, 1 },

    { "", 0, 0 },
    { ",", 0, 0 },
    { "abc", 0, 0 },
    { "\"ab\"", 0, 0 },
    { "\"abcd\"", 0, 0 },
    { "\"ABC\"", 0, 0 },
    { "\"abc", 0, 0 },
    { "abc\"", 0, 0 },
    { "\"", 0, 0 },
    { "W", 0, 0 },
    { "W/", 0, 0 },
    { "W/abc", 0, 0 },
    { "w/\"abc\"", 0, 0 },
    { "W /\"abc\"", 0, 0 },
    { "x, \"abc\"", 0, 0 },
    { "\"x\" \"abc\"", 1, 1 },
    { "\"x\"\"abc\"", 0, 0 },
    { "\"a b\", \"abc\"", 0, 0 },
    { "\"x\"*", 0, 0 }
};


int
main(void)
{
    char    *list;
    size_t   i, len;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {

        /* a block of the exact length, so that ASan detects a read past it */

        len = strlen(rows[i].list);
        list = malloc(len ? len : 1);
        memcpy(list, rows[i].list, len);

        xet_ok(xet_etag_match((uint8_t *) list, len, (uint8_t *) TAG,
                              sizeof(TAG) - 1, XET_ETAG_STRONG)
               == rows[i].strong, "strong: %s", rows[i].list);
        xet_ok(xet_etag_match((uint8_t *) list, len, (uint8_t *) TAG,
                              sizeof(TAG) - 1, XET_ETAG_WEAK)
               == rows[i].weak, "weak: %s", rows[i].list);

        free(list);
    }

    return xet_done();
}
