
/*
 * Tests Hub request bodies: commits and batches as clients write them, split
 * at every byte, and with a pause after every operation; and invalid bodies.
 */


#include "xet_test.h"
#include "xet_hub.h"


#define SHA  "00112233445566778899aabbccddeeff" \
             "00112233445566778899aabbccddeeff"
#define HASH "0123456789abcdef0123456789abcdef" \
             "0123456789abcdef0123456789abcdef"


/*
 * The received operations as text.  If pause is set, the handler pauses after
 * each operation.
 */

typedef struct {
    char      text[4096];
    size_t    len;
    int       ignored;                 /* files that a .gitignore excludes */
    int       pause;
} test_seen_t;


static xet_status_t
test_op(void *ctx, const xet_hub_operation_t *op)
{
    test_seen_t *s = ctx;

    static const char *const  names[] = {
        "header", "inline", "lfs", "add", "copy", "delete", "folder", "path"
    };

    s->ignored += op->ignored;

    s->len += (size_t) snprintf(s->text + s->len, sizeof(s->text) - s->len,
                                "%s %.*s", names[op->op], (int) op->path.len,
                                (const char *) op->path.data);

    switch (op->op) {

    case XET_HUB_HEADER:
        s->len += (size_t) snprintf(s->text + s->len,
                                    sizeof(s->text) - s->len,
                                    "[%.*s/%.*s/%.*s]",
                                    (int) op->title.len, op->title.data,
                                    (int) op->text.len, op->text.data,
                                    (int) op->parent.len, op->parent.data);
        break;

    case XET_HUB_INLINE:
        s->len += (size_t) snprintf(s->text + s->len,
                                    sizeof(s->text) - s->len, "[%.*s]",
                                    (int) op->content.len, op->content.data);
        break;

    case XET_HUB_LFS:
        s->len += (size_t) snprintf(s->text + s->len,
                                    sizeof(s->text) - s->len, "[%02x/%lld]",
                                    op->sha256[1], (long long) op->size);
        break;

    case XET_HUB_ADD:
    case XET_HUB_COPY:
    case XET_HUB_COPY_PATH:
        s->len += (size_t) snprintf(s->text + s->len,
                                    sizeof(s->text) - s->len,
                                    "[%lld/%.*s/%d/%.*s]",
                                    (long long) op->mtime,
                                    (int) op->type.len, op->type.data,
                                    op->kind,
                                    (int) op->from.len, op->from.data);
        break;

    default:
        break;
    }

    s->text[s->len++] = ';';
    s->text[s->len] = '\0';

    return s->pause ? XET_AGAIN : XET_OK;
}


static xet_hub_limits_t  test_limits = { 1000, 512 };


/*
 * Feeds body in pieces of step bytes.  Copies each piece to a heap block of its
 * exact size, so that a sanitizer detects a read past the piece.
 */

static xet_status_t
test_feed(test_seen_t *s, int bucket, const char *body, size_t len,
    size_t step, int pause)
{
    size_t          n, at, taken;
    uint8_t        *copy;
    xet_status_t    rc;
    xet_hub_ops_t   ops;

    memset(s, 0, sizeof(test_seen_t));
    s->pause = pause;

    xet_hub_ops_init(&ops, bucket, &test_limits, test_op, s);

    rc = XET_OK;

    for (at = 0; at < len && rc == XET_OK; at += n) {
        n = (len - at < step) ? len - at : step;

        copy = malloc(n);
        memcpy(copy, body + at, n);

        for (taken = 0; taken < n; /* void */ ) {
            size_t  part;

            rc = xet_hub_ops_feed(&ops, copy + taken, n - taken, &part);
            taken += part;

            if (rc != XET_AGAIN && rc != XET_OK) {
                break;
            }

            rc = XET_OK;
        }

        free(copy);
    }

    while (rc == XET_OK) {
        rc = xet_hub_ops_end(&ops);

        if (rc == XET_OK) {
            break;
        }

        if (rc == XET_AGAIN) {
            rc = XET_OK;
        }
    }

    xet_hub_ops_free(&ops);

    return rc;
}


static void
test_body(const char *name, int bucket, const char *body, const char *want)
{
    size_t        step, len;
    unsigned      bad;
    xet_status_t  rc;
    test_seen_t   s;

    len = strlen(body);
    bad = 0;

    for (step = 1; step <= len; step++) {
        rc = test_feed(&s, bucket, body, len, step, (int) (step % 2));

        if (rc != XET_OK || strcmp(s.text, want) != 0) {
            if (bad++ == 0) {
                printf("# %s: %s\n", xet_status_code(rc), s.text);
            }
        }
    }

    xet_ok(bad == 0, "%s: in pieces of any size", name);
}


static void
test_refused(const char *name, int bucket, const char *body,
    xet_status_t want)
{
    xet_status_t  rc;
    test_seen_t   s;

    rc = test_feed(&s, bucket, body, strlen(body), 7, 0);

    if (!xet_ok(rc == want, "refused: %s", name)) {
        printf("#   got: %s\n", xet_status_text(rc));
    }
}


#define HEAD  "{\"key\":\"header\",\"value\":{\"summary\":\"s\"}}\n"
#define LINE(key, value)  HEAD "{\"key\":\"" key "\",\"value\":{" value "}}\n"


static void
test_commits(void)
{
    test_body("commit", 0,
        "{\"key\": \"header\", \"value\": {\"summary\": \"a b\", "
        "\"description\": \"\", \"parentCommit\": \"abcd\"}}\n"
        "{\"key\": \"file\", \"value\": {\"content\": \"aGk=\", "
        "\"path\": \"x/y\", \"encoding\": \"base64\"}}\n"
        "{\"key\": \"file\", \"value\": {\"content\": \"\", "
        "\"path\": \"e\", \"encoding\": \"base64\"}}\r\n"
        "\n"
        "{\"key\": \"lfsFile\", \"value\": {\"path\": \"m\", \"algo\": "
        "\"sha256\", \"oid\": \"" SHA "\", \"size\": 12}}\n"
        "{\"key\": \"lfsFile\", \"value\": {\"path\": \"n\", \"algo\": "
        "\"sha256\", \"oid\": \"" SHA "\"}}\n"
        "{\"key\": \"deletedFile\", \"value\": {\"path\": \"o\"}}\n"
        "{\"key\": \"copyFile\", \"value\": {\"path\": \"p\", "
        "\"srcPath\": \"q/r\"}}\n"
        "{\"key\": \"copyFile\", \"value\": {\"path\": \"p\", "
        "\"srcPath\": \"q\", \"srcRevision\": null}}\n"
        "{\"key\": \"copyFile\", \"value\": {\"path\": \"p\", "
        "\"srcPath\": \"q\", \"srcRevision\": \"v/1\"}}\n"
        "{\"key\": \"deletedFolder\", \"value\": {\"path\": \"d/e/\"}}",
        "header [a b//abcd];inline x/y[hi];inline e[];lfs m[11/12];"
        "lfs n[11/-1];delete o;path p[-1//0/q/r];path p[-1//0/q];"
        "path p[-1/v/1/0/q];folder d/e;");

    test_body("batch", 1,
        "{\"type\": \"addFile\", \"path\": \"a\", \"xetHash\": \"" HASH "\", "
        "\"mtime\": 1700000000123, \"contentType\": \"text/plain\"}\n"
        "{\"type\": \"addFile\", \"path\": \"b\", \"xetHash\": \"" HASH "\", "
        "\"mtime\": 1700000000123.5}\n"
        "{\"type\": \"copyFile\", \"path\": \"c\", \"xetHash\": \"" HASH "\", "
        "\"sourceRepoType\": \"dataset\", \"sourceRepoId\": \"me/d\"}\n"
        "{\"type\": \"deleteFile\", \"path\": \"d\"}",
        "add a[1700000000123/text/plain/0/];add b[1700000000123//0/];"
        "copy c[-1//1/me/d];delete d;");

    test_refused("no header", 0, "", XET_HUB_OPERATION);
    test_refused("no header first", 0,
                 "{\"key\":\"deletedFile\",\"value\":{\"path\":\"a\"}}\n",
                 XET_HUB_OPERATION);
    test_refused("two headers", 0, HEAD HEAD, XET_HUB_OPERATION);
    test_refused("no JSON", 0, HEAD "{\n", XET_HUB_OPERATION);
    test_refused("no object", 0, HEAD "[]\n", XET_HUB_OPERATION);
    test_refused("another key", 0, LINE("x", "\"path\":\"a\""),
                 XET_HUB_OPERATION);
    test_refused("no path", 0, LINE("deletedFile", ""), XET_HUB_OPERATION);
    test_refused("a path that climbs", 0,
                 LINE("deletedFile", "\"path\":\"a/../b\""), XET_HUB_PATH);
    test_refused("a path of git", 0,
                 LINE("file", "\"path\":\"a/.GIT/b\",\"content\":\"x\""),
                 XET_HUB_UNSAFE);
    test_refused("an LFS file of git", 0,
                 LINE("lfsFile", "\"path\":\".git\",\"algo\":\"sha256\","
                      "\"oid\":\"" SHA "\""), XET_HUB_UNSAFE);
    test_refused("a copy to git", 0,
                 LINE("copyFile", "\"path\":\"git~1\",\"srcPath\":\"b\""),
                 XET_HUB_UNSAFE);
    test_refused("a copy of nothing", 0, LINE("copyFile", "\"path\":\"a\""),
                 XET_HUB_OPERATION);
    test_refused("a copy of what climbs", 0,
                 LINE("copyFile", "\"path\":\"a\",\"srcPath\":\"../b\""),
                 XET_HUB_PATH);
    test_refused("a copy of no revision", 0,
                 LINE("copyFile", "\"path\":\"a\",\"srcPath\":\"b\","
                      "\"srcRevision\":1"), XET_HUB_VALUE);
    test_refused("an unknown key", 0,
                 LINE("deletedFile", "\"path\":\"a\",\"x\":1"),
                 XET_HUB_KEY);
    test_refused("an unknown key in a batch", 1,
                 "{\"type\":\"deleteFile\",\"path\":\"a\",\"x\":1}",
                 XET_HUB_KEY);
    test_refused("a copy of a revision that climbs", 0,
                 LINE("copyFile", "\"path\":\"a\",\"srcPath\":\"b\","
                      "\"srcRevision\":\"../x\""), XET_HUB_OPERATION);
    test_refused("the root", 0, LINE("deletedFolder", "\"path\":\"/\""),
                 XET_HUB_PATH);
    test_refused("a NUL", 0,
                 LINE("deletedFile", "\"path\":\"a\\u0000b\""),
                 XET_HUB_OPERATION);
    test_refused("a short oid", 0,
                 LINE("lfsFile", "\"path\":\"a\",\"oid\":\"00\""),
                 XET_HUB_OPERATION);
    test_refused("another digest", 0,
                 LINE("lfsFile", "\"path\":\"a\",\"algo\":\"md5\",\"oid\":\""
                      SHA "\""), XET_HUB_OPERATION);
    test_refused("a negative size", 0,
                 LINE("lfsFile", "\"path\":\"a\",\"size\":-1,\"oid\":\""
                      SHA "\""), XET_HUB_OPERATION);
    test_refused("no base64", 0,
                 LINE("file", "\"path\":\"a\",\"encoding\":\"base64\","
                      "\"content\":\"a!==\""), XET_HUB_OPERATION);
    test_refused("base64 with blanks", 0,
                 LINE("file", "\"path\":\"a\",\"encoding\":\"base64\","
                      "\"content\":\" aGk=   \""), XET_HUB_OPERATION);
    test_refused("base64 with = inside", 0,
                 LINE("file", "\"path\":\"a\",\"encoding\":\"base64\","
                      "\"content\":\"A=AA\""), XET_HUB_OPERATION);
    test_refused("base64 with = before the end", 0,
                 LINE("file", "\"path\":\"a\",\"encoding\":\"base64\","
                      "\"content\":\"AA=A\""), XET_HUB_OPERATION);
    test_refused("base64 of = alone", 0,
                 LINE("file", "\"path\":\"a\",\"encoding\":\"base64\","
                      "\"content\":\"====\""), XET_HUB_OPERATION);
    test_refused("base64 with three =", 0,
                 LINE("file", "\"path\":\"a\",\"encoding\":\"base64\","
                      "\"content\":\"A===\""), XET_HUB_OPERATION);
    test_refused("another encoding", 0,
                 LINE("file", "\"path\":\"a\",\"encoding\":\"gzip\","
                      "\"content\":\"\""), XET_HUB_OPERATION);
    test_refused("a short hash", 1,
                 "{\"type\":\"addFile\",\"path\":\"a\",\"xetHash\":\"0\"}",
                 XET_HUB_OPERATION);
    test_refused("a copy of nothing", 1,
                 "{\"type\":\"copyFile\",\"path\":\"a\",\"xetHash\":\"" HASH
                 "\"}", XET_HUB_OPERATION);
    test_refused("a copy of another kind", 1,
                 "{\"type\":\"copyFile\",\"path\":\"a\",\"xetHash\":\"" HASH
                 "\",\"sourceRepoType\":\"x\",\"sourceRepoId\":\"a/b\"}",
                 XET_HUB_OPERATION);
}


/* Tests commits that are one object, as OpenDAL writes them. */

static void
test_objects(void)
{
    test_body("object", 0,
        "{\"summary\":\"s\",\"description\":\"d\",\"files\":[{\"path\":"
        "\"a\",\"content\":\"aGk=\",\"encoding\":\"base64\"},{\"path\":"
        "\"b\",\"content\":\"t\"}],\"lfsFiles\":[{\"path\":\"c\",\"oid\":\""
        SHA "\",\"algo\":\"sha256\",\"size\":5}],\"deletedFiles\":[{"
        "\"path\":\"d\"}],\"deletedFolders\":[{\"path\":\"e/\"}]}",
        "header [s/d/];folder e;delete d;inline a[hi];inline b[t];"
        "lfs c[11/5];");

    test_body("object on many lines", 0,
        "{\n  \"summary\": \"s\",\r\n\n  \"deletedFiles\": [\n"
        "    { \"path\": \"a\" },\n    { \"path\": \"b\" }\n  ]\n}\n\n",
        "header [s//];delete a;delete b;");

    test_body("object without operations", 0, "\n{\"summary\":\"s\"}\n",
        "header [s//];");

    test_refused("two objects", 0,
                 "{\"summary\":\"s\"}\n{\"summary\":\"s\"}",
                 XET_HUB_OPERATION);
    test_refused("a line after an object", 0,
                 "{\"summary\":\"s\"}\n{\"key\":\"deletedFile\","
                 "\"value\":{\"path\":\"a\"}}", XET_HUB_OPERATION);
    test_refused("an object after a header", 0, HEAD "{\"summary\":\"s\"}",
                 XET_HUB_OPERATION);
    test_refused("an object in a batch", 1, "{\"summary\":\"s\"}",
                 XET_HUB_OPERATION);
    test_refused("an object that ends early", 0, "{\n\"summary\":\"s\"",
                 XET_HUB_OPERATION);
    test_refused("an object with an unknown key", 0,
                 "{\"summary\":\"s\",\"x\":1}", XET_HUB_KEY);
    test_refused("an object with an unsafe path", 0,
                 "{\"summary\":\"s\",\"files\":[{\"path\":\"con\","
                 "\"content\":\"\"}]}", XET_HUB_UNSAFE);
}


/*
 * Checks that a line of the maximum length is accepted, and a longer one
 * rejected.
 */

static void
test_long(void)
{
    char         *body;
    size_t        head, len;
    test_seen_t   s;

    static const char  front[] = "{\"key\":\"deletedFile\",\"value\":{";
    static const char  back[] = "\"path\":\"a\"}}";

    head = strlen(HEAD);
    len = head + XET_HUB_LINE_MAX + 2;
    body = malloc(len);

    memset(body, ' ', len);
    memcpy(body, HEAD, head);
    memcpy(body + head, front, sizeof(front) - 1);
    memcpy(body + head + XET_HUB_LINE_MAX - (sizeof(back) - 1), back,
           sizeof(back) - 1);
    body[head + XET_HUB_LINE_MAX] = '\n';

    xet_ok(test_feed(&s, 0, body, len - 1, 65536, 0) == XET_OK,
           "the longest line, in pieces");
    xet_ok(test_feed(&s, 0, body, len - 1, len, 0) == XET_OK,
           "the longest line, at once");

    memmove(body + head + sizeof(front), body + head + sizeof(front) - 1,
            XET_HUB_LINE_MAX + 1 - (sizeof(front) - 1));

    xet_ok(test_feed(&s, 0, body, len, 65536, 0) == XET_HUB_LARGE,
           "one byte more, in pieces");
    xet_ok(test_feed(&s, 0, body, len, len, 0) == XET_HUB_LARGE,
           "one byte more, at once");

    free(body);
}


/* Tests operation counts and path depths at and above their limits. */

static void
test_limits_kept(void)
{
    test_limits.operations = 2;
    test_limits.depth = 2;

#define GONE(path)                                                            \
    "{\"key\":\"deletedFile\",\"value\":{\"path\":\"" path "\"}}\n"
#define FILE_AT(path)                                                         \
    "{\"key\":\"file\",\"value\":{\"path\":\"" path "\",\"content\":\"\"}}\n"

    test_body("two operations", 0, HEAD GONE("a") GONE("b"),
              "header [s//];delete a;delete b;");
    test_refused("three operations", 0, HEAD GONE("a") GONE("b") GONE("c"),
                 XET_HUB_COUNT);
    test_refused("three of a bucket", 1,
                 "{\"type\":\"deleteFile\",\"path\":\"a\"}\n"
                 "{\"type\":\"deleteFile\",\"path\":\"a\"}\n"
                 "{\"type\":\"deleteFile\",\"path\":\"a\"}\n",
                 XET_HUB_COUNT);
    test_body("two folders", 0, HEAD FILE_AT("a/b/c"),
              "header [s//];inline a/b/c[];");
    test_refused("three folders", 0, HEAD FILE_AT("a/b/c/d"), XET_HUB_DEPTH);
    test_refused("three folders, a copy", 0,
                 LINE("copyFile", "\"path\":\"a/b/c/d\",\"srcPath\":\"e\""),
                 XET_HUB_DEPTH);
    test_refused("three folders, a file of LFS", 0,
                 LINE("lfsFile", "\"path\":\"a/b/c/d\",\"oid\":\"" SHA
                      "\",\"size\":1"), XET_HUB_DEPTH);
    test_refused("three folders of a bucket", 1,
                 "{\"type\":\"addFile\",\"path\":\"a/b/c/d\",\"xetHash\":\""
                 HASH "\",\"mtime\":1}\n", XET_HUB_DEPTH);
    test_body("three folders that go", 0, HEAD GONE("a/b/c/d"),
              "header [s//];delete a/b/c/d;");
    test_body("a source in three folders", 0,
              LINE("copyFile", "\"path\":\"a\",\"srcPath\":\"a/b/c/d\""),
              "header [s//];path a[-1//0/a/b/c/d];");

    test_limits.operations = 1000;
    test_limits.depth = 512;
}


static void
test_repos(void)
{
    size_t           i;
    xet_status_t     rc;
    char             text[256];
    xet_hub_repo_t   r;

    static const struct {
        const char  *body;
        const char  *want;
    } rows[] = {
        { "{\"name\":\"m\"}", "model -/m -1" },
        { "{\"name\":\"m\",\"organization\":null}", "model -/m -1" },
        { "{\"name\":\"m\",\"organization\":\"o\",\"type\":\"space\","
          "\"visibility\":\"private\"}", "space o/m 1" },
        { "{\"name\":\"o/m\",\"type\":\"dataset\",\"visibility\":\"public\"}",
          "dataset o/m 0" },
        { "{\"name\":\"o/m\",\"private\":true}", "model o/m 1" },
        { "{}", "invalid_body" },
        { "", "invalid_body" },
        { "{\"name\":\"m\",\"type\":\"x\"}", "unsupported_value" },
        { "{\"name\":\"m\",\"gated\":false}", "model -/m -1" },
        { "{\"name\":\"m\",\"gated\":\"auto\"}", "unsupported_value" },
        { "{\"name\":\"m\",\"license\":null}", "model -/m -1" },
        { "{\"name\":\"m\",\"license\":\"mit\"}", "unsupported_value" },
        { "{\"name\":\"m\",\"privat\":true}", "unknown_key" },
        { "{\"name\":\"m\",\"private\":\"yes\"}", "unsupported_value" },
        { "{\"name\":\"m\",\"private\":true,\"visibility\":\"public\"}",
          "unsupported_value" },
        { "{\"name\":\"a--b\"}", "invalid_name" },
        { "{\"name\":\"m\",\"files\":[]}", "model -/m -1" },
        { "{\"name\":\"m\",\"files\":[{}]}", "model -/m -1" },
        { "{\"name\":\"a/b/c\"}", "invalid_name" },
        { "{\"name\":\"/b\"}", "invalid_name" }
    };

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rc = xet_hub_create_parse(&r, (const uint8_t *) rows[i].body,
                                  strlen(rows[i].body));

        if (rc == XET_OK) {
            snprintf(text, sizeof(text), "%s %.*s/%.*s %d",
                     xet_hub_kind_name(r.kind),
                     r.owner.data ? (int) r.owner.len : 1,
                     r.owner.data ? (const char *) r.owner.data : "-",
                     (int) r.name.len, r.name.data, r.private);
        } else {
            snprintf(text, sizeof(text), "%s", xet_status_code(rc));
        }

        json_decref(r.doc);

        if (!xet_ok(strcmp(text, rows[i].want) == 0, "repo: %s",
                    rows[i].body))
        {
            printf("#   got: %s\n", text);
        }
    }
}


static void
test_lists(void)
{
    char             form[] = "paths=a%20b&paths=c+d&paths=&expand=True";
    char             bad[] = "paths=%4";
    uint8_t          rules[XET_HUB_IGNORE_MAX + 1];
    test_seen_t      s;
    xet_hub_list_t   l;
    xet_hub_text_t   hosted;

    static const xet_hub_text_t  none;

    static const char  lfs[] =
        "{\"operation\":\"upload\",\"transfers\":[\"basic\",\"xet\"],"
        "\"hash_algo\":\"sha_256\",\"objects\":[{\"oid\":\"" SHA
        "\",\"size\":5}]}";
    static const char  pre[] =
        "{\"files\":[{\"path\":\"a\",\"sample\":\"\",\"size\":3}]}";
    static const char  own[] =
        "{\"files\":[{\"path\":\"a\",\"size\":3}],\"gitIgnore\":\"b\"}";
    static const char  unsafe[] =
        "{\"files\":[{\"path\":\"a/.git/b\",\"size\":1}]}";
    static const char  climbs[] =
        "{\"files\":[{\"path\":\"../a\",\"size\":3}]}";

    memset(&s, 0, sizeof(s));
    xet_ok(xet_hub_form_parse(&l, (uint8_t *) form, strlen(form), test_op, &s)
           == XET_OK
           && strcmp(s.text, "header a b[//];header c d[//];header [//];") == 0
           && l.expand, "paths: a form");
    xet_ok(xet_hub_form_parse(&l, (uint8_t *) bad, strlen(bad), test_op, &s)
           == XET_BODY_SYNTAX, "paths: a form with a broken escape");

    memset(&s, 0, sizeof(s));
    xet_ok(xet_hub_lfs_parse(&l, (const uint8_t *) lfs, strlen(lfs), test_op,
                             &s)
           == XET_OK && l.upload && l.xet && l.basic, "LFS");
    xet_ok(xet_hub_lfs_parse(&l, (const uint8_t *) "{\"operation\":\"x\"}",
                             17, test_op, &s)
           == XET_BODY_SYNTAX, "LFS: another operation");

    memset(&s, 0, sizeof(s));
    xet_ok(xet_hub_preupload_parse(&l, (const uint8_t *) pre, strlen(pre),
                                   &none, test_op, &s)
           == XET_OK && strcmp(s.text, "header a[//];") == 0, "preupload");
    xet_ok(xet_hub_preupload_parse(&l, (const uint8_t *) climbs,
                                   strlen(climbs), &none, test_op, &s)
           == XET_HUB_PATH, "preupload: a path that climbs");
    xet_ok(xet_hub_preupload_parse(&l, (const uint8_t *) unsafe,
                                   strlen(unsafe), &none, test_op, &s)
           == XET_HUB_UNSAFE && l.refusal.len == 4
           && memcmp(l.refusal.part, ".git", 4) == 0,
           "preupload: a path of git");

    hosted.data = rules;
    hosted.len = sizeof(rules);
    memset(rules, '\n', sizeof(rules));

    xet_ok(xet_hub_preupload_parse(&l, (const uint8_t *) pre, strlen(pre),
                                   &hosted, test_op, &s)
           == XET_HUB_VALUE && !l.ignores && l.refusal.len == 9,
           "preupload: a very long .gitignore in the repo");

    hosted.len = 1;
    rules[0] = 'a';
    s.ignored = 0;

    xet_ok(xet_hub_preupload_parse(&l, (const uint8_t *) pre, strlen(pre),
                                   &hosted, test_op, &s)
           == XET_OK && s.ignored == 1, "preupload: rules in the repo");
    xet_ok(xet_hub_preupload_parse(&l, (const uint8_t *) own, strlen(own),
                                   &hosted, test_op, &s)
           == XET_OK && l.ignores && s.ignored == 1,
           "preupload: the rules in the body replace those in the repo");
}


static void
test_files(void)
{
    size_t           i;
    xet_status_t     rc;
    test_seen_t      s;
    xet_hub_repo_t   r;

    static const struct {
        const char  *files;
        const char  *want;
    } rows[] = {
        { "[]", "" },
        { "[{\"path\":\"a\",\"content\":\"aGk=\",\"encoding\":\"base64\"},"
          "{\"path\":\"b/c\",\"content\":\"text\"}]",
          "inline a[hi];inline b/c[text];" },
        { "[{\"path\":\"a\",\"content\":\"\",\"encoding\":\"base64\"}]",
          "inline a[];" },
        { "[{}]", "invalid_commit" },
        { "[1]", "invalid_commit" },
        { "[{\"path\":\"../a\",\"content\":\"\"}]", "invalid_path" },
        { "[{\"path\":\"a\"}]", "invalid_commit" },
        { "[{\"path\":\".git/config\",\"content\":\"\"}]", "unsafe_path" },
        { "[{\"path\":\"a\",\"content\":\"a\",\"encoding\":\"base64\"}]",
          "invalid_commit" },
        { "\"a\"", "" }
    };

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        memset(&s, 0, sizeof(s));
        memset(&r, 0, sizeof(r));

        r.doc = json_pack("{s:o}", "files", json_loads(rows[i].files,
                                               JSON_DECODE_ANY, NULL));

        rc = xet_hub_repo_files(&r, &test_limits, test_op, &s);

        if (rc != XET_OK) {
            snprintf(s.text, sizeof(s.text), "%s", xet_status_code(rc));
        }

        json_decref(r.doc);

        if (!xet_ok(strcmp(s.text, rows[i].want) == 0, "files: %s",
                    rows[i].files))
        {
            printf("#   got: %s\n", s.text);
        }
    }
}


/* Counts the copied files whose hashes are those in the table below. */

static xet_status_t
test_copy(void *ctx, const xet_hub_operation_t *op)
{
    int  *n = ctx;

    *n += (op->hash.bytes[0] == 0x77 && op->sha256[1] == 0x11);

    return XET_OK;
}


static void
test_copies(void)
{
    int              n;
    size_t           i;
    char             text[160];
    xet_status_t     rc;
    xet_hub_repo_t   t;

    static const struct {
        const char  *body;
        const char  *want;
    } rows[] = {
        { "{\"target\":{\"type\":\"dataset\",\"name\":\"o/m\"},\"files\":["
          "{\"xetHash\":\"" SHA "\",\"sha256\":\"" SHA "\",\"filename\":"
          "\"a\"},{\"xetHash\":\"" SHA "\",\"sha256\":\"" SHA "\"}]}",
          "dataset o/m 2" },
        { "{\"target\":{\"name\":\"m\"},\"files\":[]}", "model -/m 0" },
        { "{\"target\":{\"name\":\"o/m\"}}", "invalid_body" },
        { "{\"target\":\"o/m\",\"files\":[]}", "unsupported_value" },
        { "{\"target\":{\"name\":\"..\"},\"files\":[]}", "invalid_name" },
        { "{\"target\":{\"type\":\"kernel\",\"name\":\"o/m\"},"
          "\"files\":[]}", "unsupported_value" },
        { "{\"target\":{\"name\":\"o/m\"},\"files\":[{\"xetHash\":\"" SHA
          "\"}]}", "invalid_body" },
        { "{\"target\":{\"name\":\"o/m\"},\"files\":[{\"xetHash\":\"ab\","
          "\"sha256\":\"" SHA "\"}]}", "invalid_body" },
        { "{\"target\":{\"name\":\"o/m\"},\"files\":[[]]}", "invalid_body" },
        { "[]", "invalid_body" }
    };

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        n = 0;
        rc = xet_hub_duplicate_parse(&t, (const uint8_t *) rows[i].body,
                                     strlen(rows[i].body), test_copy, &n);

        if (rc == XET_OK) {
            snprintf(text, sizeof(text), "%s %.*s/%.*s %d",
                     xet_hub_kind_name(t.kind),
                     t.owner.data ? (int) t.owner.len : 1,
                     t.owner.data ? (const char *) t.owner.data : "-",
                     (int) t.name.len, t.name.data, n);
        } else {
            snprintf(text, sizeof(text), "%s", xet_status_code(rc));
        }

        json_decref(t.doc);

        if (!xet_ok(strcmp(text, rows[i].want) == 0, "duplicate: %s",
                    rows[i].body))
        {
            printf("#   got: %s\n", text);
        }
    }
}


int
main(void)
{
    test_commits();
    test_objects();
    test_long();
    test_limits_kept();
    test_repos();
    test_lists();
    test_files();
    test_copies();

    return xet_done();
}
