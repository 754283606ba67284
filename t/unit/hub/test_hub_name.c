
/*
 * Tests Hub names: what each rule accepts and rejects.
 */


#include "xet_test.h"
#include "xet_hub.h"


static int
name(const char *s)
{
    return xet_hub_name_ok((const uint8_t *) s, strlen(s));
}


static int
owner(const char *s)
{
    return xet_hub_owner_ok((const uint8_t *) s, strlen(s));
}


static int
space(const char *s)
{
    return xet_hub_space_ok((const uint8_t *) s, strlen(s));
}


static int
path(const char *s)
{
    return xet_hub_path_ok((const uint8_t *) s, strlen(s));
}


static int
ref(const char *s)
{
    return xet_hub_ref_ok((const uint8_t *) s, strlen(s));
}


static void
test_names(void)
{
    size_t  i;
    char    text[300];

    static const char *const  good[] = {
        "m", "Model-1.0_x", "a.b", "0", "a-b.c_d", "git", "x.gi"
    };

    static const char *const  bad[] = {
        "", "-a", "a-", ".a", "a.", "a--b", "a..b", "a/b", "a b", "m.git",
        "M.GIT", "\xc3\xa4", "a%41", "a\n"
    };

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        xet_ok(name(good[i]), "name: \"%s\"", good[i]);
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        xet_ok(!name(bad[i]), "no name: %u", (unsigned) i);
    }

    memset(text, 'a', sizeof(text));
    text[XET_HUB_NAME_MAX] = '\0';
    xet_ok(name(text), "name: the longest");
    text[XET_HUB_NAME_MAX] = 'a';
    text[XET_HUB_NAME_MAX + 1] = '\0';
    xet_ok(!name(text), "no name: one longer");

    xet_ok(owner("me"), "owner");
    xet_ok(owner("apix"), "owner: only begins like a part of a path");
    xet_ok(!owner("api"), "no owner: a part of a path");
    xet_ok(!owner("DataSets"), "no owner: in any case");
    xet_ok(!owner("a--b"), "no owner: no name");

    xet_ok(space("dora"), "name space");
    xet_ok(space("d.o_r-a1"), "name space: of all characters");
    xet_ok(!space("Dora"), "no name space: upper case");
    xet_ok(!space("dorA"), "no name space: upper case at the end");
    xet_ok(!space("api"), "no name space: no owner");
    xet_ok(!space("d\xc3\xb6ra"), "no name space: no ASCII");
    xet_ok(!space(""), "no name space: nobody");
}


static void
test_paths(void)
{
    size_t  i;
    char    text[1200];

    static const char *const  good[] = {
        "a", "a/b", ".gitattributes", "a/.b", "...", "a b#?%&+", "\xc3\xa4/x",
        "a\\b", "..a", "a.."
    };

    static const char *const  bad[] = {
        "", "/a", "a/", "a//b", ".", "..", "a/.", "a/..", "../a", "a/../b",
        "./a", "a\nb", "a\x7f", "\xc3", "\xff", "\xed\xa0\x80"
    };

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        xet_ok(path(good[i]), "path: %u", (unsigned) i);
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        xet_ok(!path(bad[i]), "no path: %u", (unsigned) i);
    }

    memset(text, 'a', sizeof(text));
    text[XET_HUB_PART_MAX] = '\0';
    xet_ok(path(text), "path: the longest part");
    text[XET_HUB_PART_MAX] = 'a';
    text[XET_HUB_PART_MAX + 1] = '\0';
    xet_ok(!path(text), "no path: a part that is longer");

    for (i = 100; i < sizeof(text); i += 100) {
        text[i] = '/';
    }

    text[XET_HUB_PART_MAX + 1] = 'a';
    text[XET_HUB_PATH_MAX] = '\0';
    xet_ok(path(text), "path: the longest");
    text[XET_HUB_PATH_MAX] = 'a';
    text[XET_HUB_PATH_MAX + 1] = '\0';
    xet_ok(!path(text), "no path: one longer");
}


static void
test_refs(void)
{
    size_t  i;

    static const char *const  good[] = {
        "main", "dev/x", "v1.0", "a@b", "feature-1", "\xc3\xa4",
        "0123456789012345678901234567890123456789x", "abcdef", "abcdefg",
        "x/abcdef0", "head", "refsx", "HEADx", "abcdef0-",
        "01234567890123456789012345678901234567890"
    };

    static const char *const  bad[] = {
        "", "HEAD", "refs/heads/x", "-x", "x.", ".x", "a..b", "a/.b", "a b",
        "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "a@{1}", "x.lock", "/a",
        "a/", "0123456789abcdefABCDEF0123456789abcdef01", "HEAD/x", "refs",
        "refs/x",
        "0123456789abcdefABCDEF0123456789abcdef01/d"
    };

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        xet_ok(ref(good[i]), "ref: %u", (unsigned) i);
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        xet_ok(!ref(bad[i]), "no ref: \"%s\"", bad[i]);
    }
}


static void
test_text(void)
{
    xet_ok(xet_hub_text_ok((const uint8_t *) "", 0), "text: none");
    xet_ok(xet_hub_text_ok((const uint8_t *) "a/ \xc3\xa4<", 6), "text");
    xet_ok(!xet_hub_text_ok((const uint8_t *) "a\0b", 3), "no text: NUL");
    xet_ok(!xet_hub_text_ok((const uint8_t *) "a\n", 2), "no text: a control");
    xet_ok(!xet_hub_text_ok((const uint8_t *) "\xff", 1), "no text: UTF-8");
    xet_ok(!xet_hub_text_ok((const uint8_t *) "\xc3", 1), "no text: half");
}


static void
test_sha256(void)
{
    uint8_t         bytes[XET_HUB_SHA256_LEN];
    xet_hub_text_t  text;

    static const char  digits[] = "00112233445566778899aabbCCDDEEFF"
                                  "00112233445566778899aabbccddeeff";

    text.data = (const uint8_t *) digits;
    text.len = 64;

    xet_ok(xet_hub_sha256_parse(bytes, &text) && bytes[0] == 0
           && bytes[13] == 0xdd && bytes[31] == 0xff, "sha256");

    text.len = 63;
    xet_ok(!xet_hub_sha256_parse(bytes, &text), "sha256: one short");

    text.data = (const uint8_t *) "g0112233445566778899aabbccddeeff"
                                  "00112233445566778899aabbccddeeff";
    text.len = 64;
    xet_ok(!xet_hub_sha256_parse(bytes, &text), "sha256: no digit");
}


int
main(void)
{
    test_names();
    test_paths();
    test_refs();
    test_text();
    test_sha256();

    return xet_done();
}
