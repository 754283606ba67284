
/*
 * Tests which values of Accept-Encoding accept a given coding.
 */


#include "xet_test.h"
#include "xet_base.h"


int
main(void)
{
    int       rc;
    size_t    i, len;
    uint8_t  *value;

    static const struct {
        const char  *value;
        int          accepts;
    } cases[] = {
        { "zstd", 1 },
        { "gzip, zstd", 1 },
        { "gzip,zstd,br", 1 },
        { " ZSTD ", 1 },
        { "zstd;q=1", 1 },
        { "zstd;q=0.001", 1 },
        { "zstd ; q=0.5, gzip", 1 },
        { "zstd;q=", 1 },
        { "gzip;q=0, zstd", 1 },
        { "", 0 },
        { ",", 0 },
        { "*", 0 },
        { "gzip", 0 },
        { "zst", 0 },
        { "zstd2", 0 },
        { "xzstd", 0 },
        { "z std", 0 },
        { "zstd;q=0", 0 },
        { "zstd;q=0.", 0 },
        { "zstd;q=0.000", 0 },
        { "zstd; Q=0.0 , gzip", 0 },
        { "gzip, zstd;q=0", 0 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        len = strlen(cases[i].value);

        value = malloc(len ? len : 1);
        memcpy(value, cases[i].value, len);

        rc = xet_accept_coding(value, len, "zstd");
        xet_ok(rc == cases[i].accepts, "\"%s\": %d", cases[i].value, rc);

        free(value);
    }

    return xet_done();
}
