
/*
 * Tests the parser of Hub responses, and of repo names in the forms that users
 * type.  The parser uses only the query arguments of a link to the next page,
 * never the host.
 */


#include "xet_test.h"
#include "xet_hub.h"


static int
is(const xet_hub_text_t *text, const char *s)
{
    return text->len == strlen(s)
           && (text->len == 0 || memcmp(text->data, s, text->len) == 0);
}


static void
test_operands(void)
{
    size_t            i;
    xet_status_t      rc;
    xet_hub_target_t  t;

    static const struct {
        const char      *text;
        xet_hub_kind_e   kind;
        const char      *owner;
        const char      *name;
        const char      *path;
    } good[] = {
        { "me", XET_HUB_KINDS, "me", "", "" },
        { "me/", XET_HUB_KINDS, "me", "", "" },
        { "me/m", XET_HUB_KINDS, "me", "m", "" },
        { "me/m/", XET_HUB_KINDS, "me", "m", "" },
        { "me/m/a", XET_HUB_KINDS, "me", "m", "a" },
        { "me/m/a/b c#/", XET_HUB_KINDS, "me", "m", "a/b c#" },
        { "models/me/m", XET_HUB_MODEL, "me", "m", "" },
        { "datasets/me/d/x", XET_HUB_DATASET, "me", "d", "x" },
        { "spaces/me", XET_HUB_SPACE, "me", "", "" },
        { "hf://buckets/me/b/x/y", XET_HUB_BUCKET, "me", "b", "x/y" },
        { "hf://me/m", XET_HUB_KINDS, "me", "m", "" },
        { "me/datasets/x", XET_HUB_KINDS, "me", "datasets", "x" }
    };

    static const struct {
        const char      *text;
        xet_status_t     rc;
    } bad[] = {
        { "", XET_HUB_NAME }, { "/", XET_HUB_NAME }, { "/me/m", XET_HUB_NAME },
        { "me//m", XET_HUB_NAME }, { "../m", XET_HUB_NAME },
        { "./m", XET_HUB_NAME }, { "me/..", XET_HUB_NAME },
        { "datasets", XET_HUB_NAME }, { "api/m", XET_HUB_NAME },
        { "datasets/", XET_HUB_NAME }, { "hf://", XET_HUB_NAME },
        { "https://h/me/m", XET_HUB_NAME }, { "me/m.git", XET_HUB_NAME },
        { "me/m@main", XET_HUB_NAME }, { "me/m/../x", XET_HUB_PATH },
        { "me/m//", XET_HUB_PATH }, { "me/m//a", XET_HUB_PATH },
        { "me/m/a//", XET_HUB_PATH }, { "me/m/.", XET_HUB_PATH },
        { "me/m/a\nb", XET_HUB_PATH }, { "me/m/\xff", XET_HUB_PATH },
        { "models/models/m", XET_HUB_NAME }
    };

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        rc = xet_hub_operand_parse(good[i].text, &t);

        xet_ok(rc == XET_OK && t.kind == good[i].kind
               && is(&t.owner, good[i].owner) && is(&t.name, good[i].name)
               && is(&t.path, good[i].path), "operand: \"%s\"", good[i].text);
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        xet_ok(xet_hub_operand_parse(bad[i].text, &t) == bad[i].rc,
               "no operand: %u", (unsigned) i);
    }
}


static xet_status_t
entry(const char *text, xet_hub_entry_t *e)
{
    static json_t  *doc;

    json_decref(doc);
    doc = text ? json_loads(text, 0, NULL) : NULL;

    return text ? xet_hub_entry_read(doc, e) : XET_OK;
}


#define DIGITS  "00112233445566778899aabbccddeeff"                            \
                "00112233445566778899aabbccddeeff"


static void
test_entries(void)
{
    size_t           i;
    xet_hub_entry_t  e;

    static const char *const  bad[] = {
        "[]", "{}", "[1]",
        "{\"type\":\"file\",\"size\":1}",
        "{\"type\":\"file\",\"path\":\"a\"}",
        "{\"type\":\"file\",\"path\":\"a\",\"size\":-1}",
        "{\"type\":\"file\",\"path\":\"a\",\"size\":\"1\"}",
        "{\"type\":\"file\",\"path\":\"a\",\"size\":1.5}",
        "{\"type\":\"link\",\"path\":\"a\",\"size\":1}",
        "{\"path\":\"a\",\"size\":1}",
        "{\"type\":\"file\",\"path\":\"../a\",\"size\":1}",
        "{\"type\":\"file\",\"path\":\"/a\",\"size\":1}",
        "{\"type\":\"file\",\"path\":\"a/\",\"size\":1}",
        "{\"type\":\"file\",\"path\":\"a/../../b\",\"size\":1}",
        "{\"type\":\"file\",\"path\":\"a\\u0007\",\"size\":1}",
        "{\"type\":\"file\",\"path\":[\"a\"],\"size\":1}",
        "{\"type\":\"directory\",\"path\":\"..\"}",
        "{\"type\":\"file\",\"path\":\"a\",\"size\":1,\"xetHash\":\"ab\"}",
        "{\"type\":\"file\",\"path\":\"a\",\"size\":1,"
            "\"lfs\":{\"oid\":\"x" DIGITS "\"}}"
    };

    xet_ok(entry("{\"type\":\"file\",\"path\":\"a/b\",\"size\":7,\"lfs\":"
                 "{\"oid\":\"" DIGITS "\",\"size\":7},\"xetHash\":\"" DIGITS
                 "\",\"lastCommit\":{\"date\":\"2026-01-02T03:04:05.000Z\"}}",
                 &e)
           == XET_OK && is(&e.path, "a/b") && e.size == 7 && !e.folder
           && e.known && e.digested && e.sha256[1] == 0x11
           && is(&e.date, "2026-01-02T03:04:05.000Z"), "entry: a file");

    xet_ok(entry("{\"type\":\"directory\",\"path\":\"a\",\"size\":0}", &e)
           == XET_OK && e.folder && !e.known && e.date.data == NULL,
           "entry: a folder");

    xet_ok(entry("{\"type\":\"file\",\"path\":\"a\",\"size\":0,\"oid\":\"e6\"}",
                 &e)
           == XET_OK && e.known && !e.digested && xet_hash_is_zero(&e.hash),
           "entry: a file without bytes");

    xet_ok(entry("{\"type\":\"file\",\"path\":\"a\",\"size\":0,"
                 "\"xetHash\":\"" DIGITS "\"}", &e)
           == XET_OK && xet_hash_is_zero(&e.hash),
           "entry: no bytes have no other hash");

    xet_ok(entry("{\"type\":\"file\",\"path\":\"a\",\"size\":1,"
                 "\"xetHash\":\"" DIGITS "\",\"mtime\":null,"
                 "\"uploadedAt\":\"2026-01-02T03:04:05Z\"}", &e)
           == XET_OK && e.known && !e.digested
           && is(&e.date, "2026-01-02T03:04:05Z"), "entry: of a bucket");

    xet_ok(entry("{\"type\":\"file\",\"path\":\"a\",\"size\":1,"
                 "\"mtime\":\"\\u001b[1m\"}", &e)
           == XET_OK && !e.known && e.date.data == NULL,
           "entry: what is no date is none");

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        xet_ok(entry(bad[i], &e) != XET_OK, "no entry: %u", (unsigned) i);
    }

    (void) entry(NULL, &e);
}


static void
test_described(void)
{
    size_t                i;
    json_t               *doc;
    xet_hub_described_t   d;

    static const char *const  bad[] = {
        "[]", "{}", "{\"id\":\"m\"}", "{\"id\":\"me/../m\"}",
        "{\"id\":\"api/m\"}", "{\"id\":\"me/m/x\"}", "{\"id\":\"/m\"}",
        "{\"id\":\"me/\"}", "{\"id\":\"me/m\",\"sha\":\"0123\"}",
        "{\"id\":\"me/m\",\"sha\":\"x123456789012345678901234567890123456789\"}"
    };

    doc = json_loads("{\"id\":\"me/m\",\"private\":true,\"lastModified\":"
                     "\"2026-01-02T03:04:05Z\",\"sha\":"
                     "\"0123456789abcdef0123456789abcdef01234567\"}", 0, NULL);

    xet_ok(xet_hub_described_read(doc, &d) == XET_OK && is(&d.id, "me/m")
           && d.private && d.oid.len == XET_HUB_OID_LEN
           && is(&d.date, "2026-01-02T03:04:05Z"), "described");

    json_decref(doc);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        doc = json_loads(bad[i], 0, NULL);

        xet_ok(xet_hub_described_read(doc, &d) != XET_OK, "not described: %u",
               (unsigned) i);

        json_decref(doc);
    }
}


static void
test_granted(void)
{
    size_t              i;
    json_t             *doc;
    xet_hub_granted_t   g;

    static const char *const  bad[] = {
        "[]", "{}",
        "{\"casUrl\":\"http://h\",\"exp\":1}",
        "{\"casUrl\":\"http://h\",\"accessToken\":\"t\"}",
        "{\"casUrl\":\"http://h\",\"accessToken\":\"t\",\"exp\":-1}",
        "{\"casUrl\":\"http://h\",\"accessToken\":\"t\",\"exp\":\"1\"}",
        "{\"casUrl\":\"http://\",\"accessToken\":\"t\",\"exp\":1}",
        "{\"casUrl\":\"file:///x\",\"accessToken\":\"t\",\"exp\":1}",
        "{\"casUrl\":\"h\",\"accessToken\":\"t\",\"exp\":1}",
        "{\"casUrl\":\"http://h x\",\"accessToken\":\"t\",\"exp\":1}",
        "{\"casUrl\":\"http://h\\n\",\"accessToken\":\"t\",\"exp\":1}",
        "{\"casUrl\":\"http://h\",\"accessToken\":\"\",\"exp\":1}"
    };

    doc = json_loads("{\"casUrl\":\"https://h/cas\",\"accessToken\":\"t.t\","
                     "\"exp\":1700000000}", 0, NULL);

    xet_ok(xet_hub_granted_read(doc, &g) == XET_OK
           && is(&g.url, "https://h/cas") && is(&g.token, "t.t")
           && g.expires == 1700000000, "granted");

    json_decref(doc);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        doc = json_loads(bad[i], 0, NULL);

        xet_ok(xet_hub_granted_read(doc, &g) != XET_OK, "not granted: %u",
               (unsigned) i);

        json_decref(doc);
    }
}


static void
test_next(void)
{
    size_t          i;
    xet_hub_text_t  args;

    static const char *const  bad[] = {
        "", "<http://h/a?x=1>", "<http://h/a?x=1>; rel=\"prev\"",
        "<http://h/a>; rel=\"next\"", "<http://h/a?>; rel=\"next\"",
        "<http://h/a?x=1; rel=\"next\"", "http://h/a?x=1; rel=\"next\"",
        "<http://h/a?x=1 2>; rel=\"next\"", "<http://h/a?x#y>; rel=\"next\"",
        "<http://h/a?x\xff>; rel=\"next\"", ">", "<", "<?"
    };

    xet_ok(xet_hub_next_parse("<http://h/a?x=1&cursor=b%2Fc>; rel=\"next\"",
                              &args)
           && is(&args, "x=1&cursor=b%2Fc"), "next");

    xet_ok(xet_hub_next_parse("<http://h/a?x=1>; rel=\"prev\", "
                              "<http://evil/b?y=2>; rel=next", &args)
           && is(&args, "y=2"), "next: the second");

    xet_ok(xet_hub_next_parse("<http://h/a?n=1>; rel=\"next\", "
                              "<http://h/b?y=2>; rel=\"last\"", &args)
           && is(&args, "n=1"), "next: the first");

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        xet_ok(!xet_hub_next_parse(bad[i], &args), "no next: %u",
               (unsigned) i);
    }
}


int
main(void)
{
    test_operands();
    test_entries();
    test_described();
    test_granted();
    test_next();

    return xet_done();
}
