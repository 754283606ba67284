
/*
 * Tests the rules of ".gitignore" files; the expected results are those of
 * git check-ignore.
 */


#include "xet_test.h"
#include "xet_hub.h"


typedef struct {
    const char  *rules;
    const char  *path;
    int          ignored;
} test_row_t;


static const test_row_t  test_rows[] = {

    /* names in any folder */

    { "*.log",                  "a.log",            1 },
    { "*.log",                  "d/e/a.log",        1 },
    { "*.log",                  "a.log.txt",        0 },
    { "*.log",                  "a.LOG",            0 },
    { ".env",                   ".env",             1 },
    { ".env",                   "x.env",            0 },
    { "d",                      "d/e/f",            1 },
    { "d",                      "e/d/f",            1 },
    { "**",                     "x",                1 },
    { "a**b",                   "axxb",             1 },

    /* a path is relative to the root */

    { "/a.log",                 "a.log",            1 },
    { "/a.log",                 "d/a.log",          0 },
    { "d/a.log",                "d/a.log",          1 },
    { "d/a.log",                "e/d/a.log",        0 },
    { "d/*",                    "d/e/f",            1 },
    { "d/*.c",                  "d/e/f.c",          0 },
    { "d/?",                    "d/e/f",            1 },

    /* folders only */

    { "build/",                 "build/x",          1 },
    { "build/",                 "d/build/x",        1 },
    { "build/",                 "build",            0 },
    { "/build/",                "d/build/x",        0 },
    { "a/b/",                   "a/b/c",            1 },
    { "a/b/",                   "a/b",              0 },

    /* any number of folders */

    { "**/a/b",                 "a/b",              1 },
    { "**/a/b",                 "x/y/a/b",          1 },
    { "**/a/b",                 "xa/b",             0 },
    { "a/**",                   "a/x",              1 },
    { "a/**",                   "a",                0 },
    { "a/**/b",                 "a/b",              1 },
    { "a/**/b",                 "a/x/y/b",          1 },
    { "a/**/b",                 "a/xb",             0 },
    { "**/a*/b*c",              "a1/bx/a2/bc",      1 },
    { "**/a*/b*c",              "a1/bx/a2/bd",      0 },
    { "a/***/b",                "a/x/y/b",          1 },
    { "a/x**/b",                "a/xy/b",           1 },
    { "a/x**/b",                "a/xy/z/b",         0 },

    /* the last rule counts, but not within an ignored folder */

    { "*.log\n!keep.log",       "keep.log",         0 },
    { "!keep.log\n*.log",       "keep.log",         1 },
    { "d\n!d/keep",             "d/keep",           1 },
    { "d/*\n!d/keep",           "d/keep",           0 },
    { "*\n!*/\n!*.py",          "d/e.py",           0 },
    { "*\n!*/\n!*.py",          "d/e.c",            1 },

    /* lines */

    { "# a\n\n  \na",           "a",                1 },
    { "#a",                     "#a",               0 },
    { "\\#a",                   "#a",               1 },
    { "\\!a",                   "!a",               1 },
    { "!",                      "!",                0 },
    { "/",                      "a",                0 },
    { "a  ",                    "a",                1 },
    { "a\\ ",                   "a ",               1 },
    { "a\\ ",                   "a",                0 },
    { "a\r\nb\r\n",             "b",                1 },
    { "\xef\xbb\xbf" "a",       "a",                1 },
    { "a\t",                    "a",                0 },
    { "a\\",                    "a",                0 },
    { "a\\",                    "a\\",              0 },

    /* sets */

    { "[ab].c",                 "a.c",              1 },
    { "[ab].c",                 "c.c",              0 },
    { "[a-c]x",                 "bx",               1 },
    { "[!a-c]x",                "bx",               0 },
    { "[^a-c]x",                "dx",               1 },
    { "[]]",                    "]",                1 },
    { "[!]]",                   "a",                1 },
    { "[a-]",                   "-",                1 },
    { "[\\]]",                  "]",                1 },
    { "[[:digit:]a]x",          "7x",               1 },
    { "[[:digit:]a]x",          "bx",               0 },
    { "[[:upper:]]",            "Q",                1 },
    { "d/[/]",                  "d//",              0 },
    { "d[/]e",                  "d/e",              0 },
    { "[a",                     "[a",               0 },
    { "[a",                     "a",                0 },
    { "?",                      "a",                1 },
    { "?",                      "",                 0 },
    { "*",                      "a/b",              1 }
};


static void
test_rules(void)
{
    int                ignored;
    size_t             i;
    xet_status_t       rc;
    xet_hub_ignore_t   ignore;
    const test_row_t  *row;

    for (i = 0; i < sizeof(test_rows) / sizeof(test_rows[0]); i++) {
        row = &test_rows[i];

        rc = xet_hub_ignore_init(&ignore, (const uint8_t *) row->rules,
                                 strlen(row->rules));
        xet_ok(rc == XET_OK, "init: %s", row->rules);

        rc = xet_hub_ignore_match(&ignore, (const uint8_t *) row->path,
                                  strlen(row->path), &ignored);
        xet_ok(rc == XET_OK && ignored == row->ignored, "%s: %s", row->rules,
               row->path);

        xet_hub_ignore_free(&ignore);
    }
}


static void
test_bounds(void)
{
    int                ignored;
    size_t             i;
    uint8_t           *text;
    xet_status_t       rc;
    xet_hub_ignore_t   ignore;
    uint8_t            path[88];

    memset(path, 'a', sizeof(path));

    text = malloc(XET_HUB_IGNORE_MAX + 1);
    memset(text, '*', XET_HUB_IGNORE_MAX + 1);

    rc = xet_hub_ignore_init(&ignore, text, XET_HUB_IGNORE_MAX + 1);
    xet_ok(rc == XET_BODY_SIZE, "a text that is too long");
    xet_hub_ignore_free(&ignore);

    /* rules that backtrack in a long path */

    for (i = 0; i < XET_HUB_IGNORE_MAX; i++) {
        text[i] = (uint8_t) ((i % 256 == 255) ? '\n' : (i % 2) ? 'a' : '*');
        text[i] = (uint8_t) ((i % 256 == 254) ? 'b' : text[i]);
    }

    rc = xet_hub_ignore_init(&ignore, text, XET_HUB_IGNORE_MAX);
    xet_ok(rc == XET_OK && ignore.n == 1024, "many rules");

    for (i = 0; i < 100000 && rc == XET_OK; i++) {
        rc = xet_hub_ignore_match(&ignore, path, sizeof(path), &ignored);
    }

    xet_ok(rc == XET_BODY_SIZE, "rules that take too long");

    xet_hub_ignore_free(&ignore);
    free(text);
}


int
main(void)
{
    test_rules();
    test_bounds();

    return xet_done();
}
