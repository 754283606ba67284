
/*
 * Tests file names of downloads: percent-encoding, invalid names, and the
 * Content-Disposition header.
 */


#include "xet_test.h"
#include "xet_base.h"


static const struct {
    const char  *arg;
    const char  *name;                 /* NULL: rejected */
    const char  *header;               /* value after "attachment; filename=" */
} rows[] = {
    { "a.txt", "a.txt", "\"a.txt\"" },
    { "a%20b.txt", "a b.txt", "\"a b.txt\"" },
    { "a+b", "a+b", "\"a+b\"" },
    { "%41%4a%4A", "AJJ", "\"AJJ\"" },
    { "a;b", "a;b", "\"a;b\"" },
    { "%22", "\"", "\"_\"; filename*=UTF-8''%22" },
    { "100%25", "100%", "\"100_\"; filename*=UTF-8''100%25" },
    { "%c3%a4.bin", "\xc3\xa4.bin", "\"_.bin\"; filename*=UTF-8''%C3%A4.bin" },
    { "\xe6\xa8\xa1\xe5\x9e\x8b", "\xe6\xa8\xa1\xe5\x9e\x8b",
      "\"__\"; filename*=UTF-8''%E6%A8%A1%E5%9E%8B" },
    { "%f0%9f%98%80", "\xf0\x9f\x98\x80",
      "\"_\"; filename*=UTF-8''%F0%9F%98%80" },
    { "%c3%a4'(x)*", "\xc3\xa4'(x)*",
      "\"_'(x)*\"; filename*=UTF-8''%C3%A4%27%28x%29%2A" },
    { "%c3%a4!#$&+-.^_`|~", "\xc3\xa4!#$&+-.^_`|~",
      "\"_!#$&+-.^_`|~\"; filename*=UTF-8''%C3%A4!#$&+-.^_`|~" },

    /* sanitized */

    { "..%2f..%2Fetc%2fpasswd", "_._.._etc_passwd", "\"_._.._etc_passwd\"" },
    { "a/b", "a_b", "\"a_b\"" },
    { "a%5cb", "a_b", "\"a_b\"" },
    { ".", "_", "\"_\"" },
    { "..", "_.", "\"_.\"" },
    { ".bashrc", "_bashrc", "\"_bashrc\"" },
    { "a%0d%0aSet-Cookie:%20x", "a__Set-Cookie: x",
      "\"a__Set-Cookie: x\"" },
    { "%00", "_", "\"_\"" },
    { "a%7f%1f%09", "a___", "\"a___\"" },

    /* rejected */

    { "", NULL, NULL },
    { "%", NULL, NULL },
    { "a%", NULL, NULL },
    { "a%4", NULL, NULL },
    { "%zz", NULL, NULL },
    { "%4g", NULL, NULL },
    { "%g4", NULL, NULL },
    { "%%41", NULL, NULL },
    { "%c3", NULL, NULL },
    { "%a4", NULL, NULL },
    { "%c0%af", NULL, NULL },
    { "%ed%a0%80", NULL, NULL },
    { "%f4%90%80%80", NULL, NULL },
    { "\xff", NULL, NULL }
};


static void
test_rows(void)
{
    char     *arg;
    size_t    i, n, len;
    uint8_t   name[XET_FILENAME_MAX], header[XET_FILENAME_HEADER(255)], *end;
    unsigned  rc;

    static const char  begin[] = "attachment; filename=";

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        n = strlen(rows[i].arg);
        arg = malloc(n ? n : 1);
        memcpy(arg, rows[i].arg, n);
        len = 0;

        rc = xet_filename_decode(name, &len, (uint8_t *) arg, n);
        free(arg);

        if (rows[i].name == NULL) {
            xet_ok(rc == XET_FILENAME && len == 0, "refused: %s",
                   rows[i].arg);
            continue;
        }

        xet_ok(rc == XET_OK && len == strlen(rows[i].name)
               && memcmp(name, rows[i].name, len) == 0, "%s", rows[i].arg);

        end = xet_filename_header(header, name, len);
        *end = '\0';

        if (!xet_ok(strncmp((char *) header, begin, sizeof(begin) - 1) == 0
                    && strcmp((char *) header + sizeof(begin) - 1,
                              rows[i].header) == 0, "its header"))
        {
            printf("# %s\n", header);
        }
    }
}


static void
test_lengths(void)
{
    size_t    i, len;
    uint8_t   arg[256 * 3], name[XET_FILENAME_MAX];
    uint8_t  *header, *end;

    for (i = 0; i < 256; i++) {
        memcpy(arg + i * 3, "%22", 3);
    }

    xet_is_u64(xet_filename_decode(name, &len, arg, 255 * 3), XET_OK,
               "255 bytes");
    xet_is_u64(len, 255, "are decoded");
    xet_is_u64(xet_filename_decode(name, &len, arg, 256 * 3), XET_FILENAME,
               "256 are too many");

    /* a buffer of the exact size: a name made only of quotes is the longest */

    header = malloc(XET_FILENAME_HEADER(len));
    end = xet_filename_header(header, name, len);

    xet_ok((size_t) (end - header) < XET_FILENAME_HEADER(len),
           "the longest header fits");
    free(header);
}


static void
test_extension(void)
{
    size_t    i, len;

    static const struct {
        const char  *name;
        const char  *ext;
    } names[] = {
        { "a.txt", "txt" },
        { "a.tar.gz", "gz" },
        { "a.", "" },
        { "a", NULL },
        { "", NULL }
    };

    const uint8_t  *ext;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ext = xet_filename_extension((uint8_t *) names[i].name,
                                     strlen(names[i].name), &len);

        xet_ok(names[i].ext ? (ext && len == strlen(names[i].ext)
                               && memcmp(ext, names[i].ext, len) == 0)
                            : (ext == NULL && len == 0),
               "the extension of \"%s\"", names[i].name);
    }
}


int
main(void)
{
    test_rows();
    test_lengths();
    test_extension();

    return xet_done();
}
