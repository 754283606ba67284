
/*
 * Tests request paths: which paths match a route, and their parameters.
 */


#include "xet_test.h"
#include "xet_route.h"


#define HASH  "0011223344556677889900112233445566778899001122334455667788990011"


/*
 * Returns the matching route and its parameters as one string.  A path that
 * starts with "!" is matched with names without an owner.
 */

static const char *
route(const char *form, const char *raw)
{
    int                bare;
    size_t             len;
    uint8_t           *copy, *room;
    xet_status_t       rc;
    xet_route_args_t   args;
    xet_hub_target_t  *t;

    static char  text[4096];

    t = &args.target;
    bare = (raw[0] == '!');
    raw += bare;
    len = strlen(raw);
    copy = malloc(len + !len);
    room = malloc(len + !len);
    memcpy(copy, raw, len);

    if (!xet_route_match(form, bare, copy, len)) {
        snprintf(text, sizeof(text), "-");

    } else {
        rc = xet_route_parse(form, bare, copy, len, room, &args);

        if (rc == XET_OK && args.digits.data) {
            snprintf(text, sizeof(text), "%.*s|%02x|%.*s",
                     (int) args.prefix.len, (const char *) args.prefix.data,
                     args.hash.bytes[0],
                     (int) args.grant.len, (const char *) args.grant.data);

        } else if (rc == XET_OK) {
            snprintf(text, sizeof(text), "%s %.*s|%.*s|%.*s|%.*s",
                     xet_hub_kind_name(t->kind),
                     (int) t->owner.len, (const char *) t->owner.data,
                     (int) t->name.len, (const char *) t->name.data,
                     (int) t->rev.len, (const char *) t->rev.data,
                     (int) t->path.len, (const char *) t->path.data);
        } else {
            snprintf(text, sizeof(text), "%s", xet_status_code(rc));
        }
    }

    free(room);
    free(copy);

    return text;
}


static void
test_routes(void)
{
    size_t       i;
    const char  *got;

    static const struct {
        const char  *form;
        const char  *raw;
        const char  *want;
    } rows[] = {
        { "api/:type/:id", "/api/models/me/m", "model me|m||" },
        { "api/:type/:id", "/api/datasets/me/m", "dataset me|m||" },
        { "api/:type/:id", "/api/buckets/me/m", "-" },
        { "api/:type/:id", "/api/models/me", "-" },
        { "api/:type/:id", "/api/models/me/m/", "-" },
        { "api/:type/:id", "/api/models//m", "-" },
        { "api/:type/:id", "/api/models/me/a--b", "invalid_name" },
        { "api/:type/:id", "/api/models/me/a%2Fb", "invalid_name" },
        { "api/:type/:id", "/api/models/me/a%2", "invalid_name" },
        { "api/:type/:id/tree/:rev/:path", "/api/models/me/m/tree/main",
          "model me|m|main|" },
        { "api/:type/:id/tree/:rev/:path", "/api/models/me/m/tree/main/",
          "model me|m|main|" },
        { "api/:type/:id/tree/:rev/:path",
          "/api/models/me/m/tree/refs%2Fpr%2F1/d%2Fe",
          "model me|m|refs/pr/1|d/e" },
        { "api/:type/:id/tree/:rev/:path",
          "/api/models/me/m/tree/main/d/e/", "model me|m|main|d/e" },
        { "api/:type/:id/tree/:rev/:path",
          "/api/models/me/m/tree/main/d%2Fe%2F", "model me|m|main|d/e" },
        { "api/:type/:id/tree/:rev/:path",
          "/api/models/me/m/tree/main/%2F", "model me|m|main|" },
        { "api/:type/:id/tree/:rev/:path",
          "/api/models/me/m/tree/main/d%2F%2F", "invalid_path" },
        { "api/:type/:id/tree/:rev/:path",
          "/api/models/me/m/tree/main/..%2Fx", "invalid_path" },
        { "api/:type/:id/tree/:rev/:path",
          "/api/models/me/m/tree/a%00b/x", "invalid_revision" },
        { ":repo/resolve/:rev/:path", "/me/m/resolve/main/a%20b",
          "model me|m|main|a b" },
        { ":repo/resolve/:rev/:path", "/datasets/me/m/resolve/v1/x/y",
          "dataset me|m|v1|x/y" },
        { ":repo/resolve/:rev/:path", "/spaces/me/m/resolve/v1/x",
          "space me|m|v1|x" },
        { ":repo/resolve/:rev/:path", "/datasets/me/resolve/v1/x", "-" },
        { ":git/info/lfs/objects/batch", "/me/m.git/info/lfs/objects/batch",
          "model me|m||" },
        { ":git/info/lfs/objects/batch",
          "/datasets/me/m.git/info/lfs/objects/batch", "dataset me|m||" },
        { ":git/info/lfs/objects/batch", "/me/m/info/lfs/objects/batch",
          "-" },
        { ":git/info/lfs/objects/batch", "/me/.git/info/lfs/objects/batch",
          "-" },
        { "buckets/:id/resolve/:path", "/buckets/me/b/resolve/d%2Fg",
          "bucket me|b||d/g" },
        { "api/buckets/:owner", "/api/buckets/me", "bucket me|||" },
        { "api/whoami-v2", "/api/whoami-v2", "model |||" },
        { "api/whoami-v2", "/api/whoami-v", "-" },
        { "api/whoami-v2", "", "-" },
        { "api/whoami-v2", "/", "-" },
        { ":root", "/", "model |||" },
        { ":root", "", "-" },
        { ":root", "//", "-" },
        { ":root", "/a", "-" },
        { ":owner", "/me", "model me|||" },
        { ":owner", "/", "-" },
        { ":owner", "/me/m", "-" },
        { ":repo", "/datasets/me", "-" },
        { ":repo", "/datasets/me/d", "dataset me|d||" },
        { ":type", "/spaces", "space |||" },
        { ":type", "/buckets", "-" },
        { "buckets", "/buckets", "bucket |||" },
        { "api/:type/:id", "!/api/models/gpt2", "model gpt2|||" },
        { "api/:type/:id", "!/api/models/me/m", "-" },
        { "api/:type/:id", "!/api/models/", "-" },
        { "api/:type/:id", "!/api/models/a%2Fb", "invalid_name" },
        { "api/:type/:id/tree/:rev/:path", "!/api/datasets/squad/tree/a/b",
          "dataset squad||a|b" },
        { ":repo/resolve/:rev/:path", "!/gpt2/resolve/main/a%20b",
          "model gpt2||main|a b" },
        { ":repo/resolve/:rev/:path", "!/datasets/squad/resolve/main/x",
          "dataset squad||main|x" },
        { ":repo/resolve/:rev/:path", "!/datasets/resolve/main/x", "-" },
        { ":repo", "!/spaces/s", "space s|||" },
        { ":git/info/lfs/objects/batch", "!/gpt2.git/info/lfs/objects/batch",
          "model gpt2|||" },
        { ":git/info/lfs/objects/batch", "!/gpt2/info/lfs/objects/batch",
          "-" },
        { "api/buckets/:id", "!/api/buckets/b", "-" },
        { "buckets/:id/resolve/:path", "!/buckets/b/resolve/x", "-" },
        { "files", "/files", "model |||" },
        { "files", "/files/", "-" },
        { "health/live", "/health/live", "model |||" },
        { "files/:hash", "/files/" HASH, "|77|" },
        { "files/:hash", "/files", "-" },
        { "files/:hash", "/files/", "invalid_hash" },
        { "files/:hash", "/files/x", "invalid_hash" },
        { "files/:hash", "/files/" HASH "/", "-" },
        { "files/:hash", "/files//" HASH, "-" },
        { "xorbs/:prefix/:hash", "/xorbs/a-Z0_./" HASH, "a-Z0_.|77|" },
        { "xorbs/:prefix/:hash", "/xorbs//" HASH, "invalid_prefix" },
        { "xorbs/:prefix/:hash", "/xorbs/:/x", "invalid_prefix" },
        { "xorbs/:prefix/:hash", "/xorbs/a%2e/" HASH, "invalid_prefix" },
        { "xorbs/:prefix/:hash", "/xorbs/" HASH, "-" },
        { "zt/:hash/object", "/zt/" HASH "/object", "|77|" },
        { "zt/:hash/object", "/zt/" HASH "/objects", "-" },
        { "a/:prefix/:hash/grant/:grant", "/a/p/" HASH "/grant/i%2F",
          "p|77|i%2F" },
        { "a/:prefix/:hash/grant/:grant", "/a/p/" HASH "/grant", "-" }
    };

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        got = route(rows[i].form, rows[i].raw);

        if (!xet_ok(strcmp(got, rows[i].want) == 0, "route: %s",
                    rows[i].raw))
        {
            printf("#   got: %s\n#   want: %s\n", got, rows[i].want);
        }
    }
}


int
main(void)
{
    test_routes();

    return xet_done();
}
