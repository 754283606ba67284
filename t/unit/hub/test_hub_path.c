
/*
 * Tests paths that have a special meaning on the system of a client that
 * downloads them: what each rule rejects, in upper and lower case, anywhere in
 * a path.  Also tests safe names from real repos, which no rule rejects.
 */


#include "xet_test.h"
#include "xet_hub.h"


typedef struct {
    const char      *path;
    xet_hub_risk_e   risk;
    const char      *part;             /* NULL: the whole path */
} test_path_t;


static const test_path_t  test_unsafe[] = {

    /* git: the plain name, and names that Windows or HFS+ treat as the same */

    { ".git", XET_HUB_RISK_GIT, NULL },
    { ".git/config", XET_HUB_RISK_GIT, ".git" },
    { "a/.git/hooks/post-checkout", XET_HUB_RISK_GIT, ".git" },
    { "a/.GIT", XET_HUB_RISK_GIT, ".GIT" },
    { ".gIt/x", XET_HUB_RISK_GIT, ".gIt" },
    { ".git./x", XET_HUB_RISK_GIT, ".git." },
    { ".git /x", XET_HUB_RISK_GIT, ".git " },
    { ".git . . ./x", XET_HUB_RISK_GIT, ".git . . ." },
    { "git~1/config", XET_HUB_RISK_GIT, "git~1" },
    { "GIT~1", XET_HUB_RISK_GIT, NULL },
    { "GIT~1. /config", XET_HUB_RISK_GIT, "GIT~1. " },
    { ".git::$INDEX_ALLOCATION/config", XET_HUB_RISK_GIT,
      ".git::$INDEX_ALLOCATION" },
    { ".git:x", XET_HUB_RISK_GIT, NULL },
    { ".git .:x", XET_HUB_RISK_GIT, NULL },
    { "git~1:$I30:$INDEX_ALLOCATION", XET_HUB_RISK_GIT, NULL },
    { ".git\\config", XET_HUB_RISK_GIT, NULL },
    { ".g\xe2\x80\x8cit/config", XET_HUB_RISK_GIT, ".g\xe2\x80\x8cit" },
    { "\xe2\x80\x8e.git", XET_HUB_RISK_GIT, NULL },
    { ".git\xe2\x80\x8f", XET_HUB_RISK_GIT, NULL },
    { ".\xe2\x80\xaaGit", XET_HUB_RISK_GIT, NULL },
    { ".gi\xe2\x80\xaet", XET_HUB_RISK_GIT, NULL },
    { ".gi\xe2\x81\xaat", XET_HUB_RISK_GIT, NULL },
    { ".gi\xe2\x81\xaft", XET_HUB_RISK_GIT, NULL },
    { "\xef\xbb\xbf.git", XET_HUB_RISK_GIT, NULL },
    { ".g\xe2\x80\x8dit. ", XET_HUB_RISK_GIT, NULL },

    /* paths that Hub clients use themselves */

    { ".cache/huggingface/download/a.metadata", XET_HUB_RISK_CACHE, ".cache" },
    { "a/.cache/x", XET_HUB_RISK_CACHE, ".cache" },
    { ".Cache./huggingface", XET_HUB_RISK_CACHE, ".Cache." },
    { "CACHE~1/huggin~1", XET_HUB_RISK_CACHE, "CACHE~1" },
    { ".ca\xe2\x80\x8c" "che", XET_HUB_RISK_CACHE, NULL },

    /* Windows */

    { "con", XET_HUB_RISK_DEVICE, NULL },
    { "a/NUL.txt", XET_HUB_RISK_DEVICE, "NUL.txt" },
    { "Aux.tar.gz/b", XET_HUB_RISK_DEVICE, "Aux.tar.gz" },
    { "prn .txt", XET_HUB_RISK_DEVICE, NULL },
    { "com1", XET_HUB_RISK_DEVICE, NULL },
    { "COM9.bin", XET_HUB_RISK_DEVICE, NULL },
    { "lpt\xc2\xb3.x", XET_HUB_RISK_DEVICE, NULL },
    { "conin$", XET_HUB_RISK_DEVICE, NULL },
    { "CONOUT$", XET_HUB_RISK_DEVICE, NULL },
    { "nul:", XET_HUB_RISK_DEVICE, NULL },
    { "C:x.txt", XET_HUB_RISK_DRIVE, NULL },
    { "a/d:/x", XET_HUB_RISK_DRIVE, "d:" },
    { "1:x", XET_HUB_RISK_DRIVE, NULL },
    { "\xc3\xa4:x", XET_HUB_RISK_DRIVE, NULL },
    { "file.txt::$DATA", XET_HUB_RISK_STREAM, NULL },
    { "folder:$I30:$INDEX_ALLOCATION/x", XET_HUB_RISK_STREAM,
      "folder:$I30:$INDEX_ALLOCATION" },
    { "..\\..\\x", XET_HUB_RISK_BACKSLASH, NULL },
    { "a/b\\c", XET_HUB_RISK_BACKSLASH, "b\\c" },
    { "\\\\host\\share", XET_HUB_RISK_BACKSLASH, NULL },
    { "a.", XET_HUB_RISK_END, NULL },
    { "a /b", XET_HUB_RISK_END, "a " },
    { "a/...", XET_HUB_RISK_END, "..." },
    { " ", XET_HUB_RISK_END, NULL },

    /* C1 control characters, which terminals interpret */

    { "a\xc2\x9b" "31m", XET_HUB_RISK_CONTROL, NULL },
    { "b/a\xc2\x80", XET_HUB_RISK_CONTROL, "a\xc2\x80" }
};


/* Names that occur, or could occur, in repos on huggingface.co. */

static const char *const  test_safe[] = {
    "README.md", ".gitattributes", ".gitignore", ".gitmodules", ".gitkeep",
    ".github/workflows/ci.yml", ".git-blame-ignore-revs", "a.git", "x/.gitx",
    "git", "git~2", "git~10", ".cached", "cache", "_cache/x", ".caches/y",
    "model-00001-of-00002.safetensors", "1_Pooling/config.json",
    "2023-07-18T12:33:18.165484/details_harness|arc:challenge|25_2023-07-18"
    "T12:33:18.165484.parquet",
    "a b c.txt", " leading", "#1/50%+&=?*.txt", "<|endoftext|>.bin", "ab:c:d",
    "12:30.json", "price:$", "a$b:c", "\"quoted\"", "it's", "caf\xc3\xa9",
    "cafe\xcc\x81", "\xe6\xa8\xa1\xe5\x9e\x8b/\xe9\x87\x8d.bin",
    "\xf0\x9f\xa4\x97.txt", "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x92\xbb.png",
    "\xef\xbb\xbf" "data.csv", "console.py", "auxiliary/x", "con_Latn/test",
    "xcon", "null.txt", "com10", "com", "com0", "lpt", "lpta", "comb.py",
    "acon.txt", "...a", ".a..b", "~/x", "~1", "-rf", "$HOME", "%PATH%",
    "\xc2\xa0nbsp", "\xc2\xb9.txt"
};


static int
test_is(const uint8_t *p, size_t len, const char *text)
{
    return len == strlen(text) && memcmp(p, text, len) == 0;
}


/* Returns 1 if p is the text with "?" in place of unsafe characters. */

static int
test_shown(const uint8_t *p, size_t len, const char *text)
{
    size_t  i;

    for (i = 0; i < len && text[i]; i++) {
        if (p[i] != (uint8_t) text[i]
            && !(p[i] == '?' && (uint8_t) text[i] >= 0x80))
        {
            return 0;
        }

        if (p[i] == 0xe2 || p[i] == 0xef || (p[i] >= 0x80 && p[i] < 0xa0)) {
            return 0;
        }
    }

    return i == len && text[i] == '\0';
}


static void
test_refused(void)
{
    size_t              i, k, len;
    char                text[2048];
    const char         *want;
    xet_hub_text_t      part, path;
    xet_hub_refusal_t   refusal;
    const test_path_t  *t;

    for (i = 0; i < sizeof(test_unsafe) / sizeof(test_unsafe[0]); i++) {
        t = &test_unsafe[i];
        want = t->part ? t->part : t->path;
        len = strlen(t->path);

        xet_ok(xet_hub_path_risk((const uint8_t *) t->path, len, &part)
               == t->risk && test_is(part.data, part.len, want),
               "refused: %u: %s", (unsigned) i,
               xet_hub_risk_text(xet_hub_path_risk((const uint8_t *) t->path,
                                                   len, &part)));

        /*
         * the error holds a copy of the path component; the path is valid
         * otherwise
         */

        path.data = (const uint8_t *) text;
        path.len = (size_t) snprintf(text, sizeof(text), "a/%s/b", t->path);

        xet_ok(xet_hub_path_ok(path.data, path.len), "is a path: %u",
               (unsigned) i);
        xet_ok(xet_hub_path_check(&path, &refusal) == XET_HUB_UNSAFE
               && refusal.risk == t->risk
               && test_shown(refusal.part, refusal.len, want),
               "refused in a folder: %u", (unsigned) i);

        /* the same path in upper case */

        for (k = 0; k < path.len; k++) {
            if (text[k] >= 'a' && text[k] <= 'z') {
                text[k] = (char) (text[k] - 0x20);
            }
        }

        xet_ok(xet_hub_path_risk(path.data, path.len, &part) == t->risk,
               "refused in capitals: %u", (unsigned) i);
    }
}


static void
test_allowed(void)
{
    size_t              i;
    xet_hub_text_t      path;
    xet_hub_refusal_t   refusal;

    for (i = 0; i < sizeof(test_safe) / sizeof(test_safe[0]); i++) {
        path.data = (const uint8_t *) test_safe[i];
        path.len = strlen(test_safe[i]);

        xet_ok(xet_hub_path_check(&path, &refusal) == XET_OK, "allowed: %s",
               test_safe[i]);
    }

    path.data = (const uint8_t *) "a/../b";
    path.len = 6;
    xet_ok(xet_hub_path_check(&path, &refusal) == XET_HUB_PATH,
           "no path at all");
}


/* Checks that the error message has room for the longest path component. */

static void
test_longest(void)
{
    char                text[XET_HUB_PART_MAX + 1];
    xet_hub_text_t      path;
    xet_hub_refusal_t   refusal;

    memset(text, 'a', sizeof(text));
    text[XET_HUB_PART_MAX - 1] = '.';

    path.data = (const uint8_t *) text;
    path.len = XET_HUB_PART_MAX;

    xet_ok(xet_hub_path_check(&path, &refusal) == XET_HUB_UNSAFE
           && refusal.len == XET_HUB_PART_MAX, "the longest part");

    memcpy(text, ".git", 4);
    memset(text + 4, ' ', XET_HUB_PART_MAX - 4);

    xet_ok(xet_hub_path_check(&path, &refusal) == XET_HUB_UNSAFE
           && refusal.risk == XET_HUB_RISK_GIT, "many blanks");

    path.len = XET_HUB_PART_MAX + 1;
    xet_ok(xet_hub_path_check(&path, &refusal) == XET_HUB_PATH,
           "one that is longer");
}


int
main(void)
{
    test_refused();
    test_allowed();
    test_longest();

    return xet_done();
}
