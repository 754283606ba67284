
/*
 * Tests tree entries: the JSON that clients get for each kind of row, dates,
 * and names that JSON must escape.  t/hub/tree.t tests the same with
 * PostgreSQL rows.
 */


#include "xet_test.h"
#include "xet_test_pool.h"
#include "xet_hub.h"


#define HEX4   "07070707"
#define HEX20  HEX4 HEX4 HEX4 HEX4 HEX4
#define HEX32  HEX20 HEX4 HEX4 HEX4

#define MOST   1000


static xet_buf_t        b;
static xet_test_pool_t  pool;
static char             text[2 * 1024 * 1024];


/* Returns the contents of the buffer as a string, and empties the buffer. */

static const char *
flat(void)
{
    size_t           len;
    xet_buf_node_t  *node;

    len = 0;

    for (node = b.first; node; node = node->next) {
        memcpy(text + len, node->start, (size_t) (node->pos - node->start));
        len += (size_t) (node->pos - node->start);
    }

    text[len] = '\0';

    xet_buf_init(&b, xet_test_alloc, &pool, 64);

    return text;
}


static const char *
tree(const xet_hub_node_t *node, unsigned n, int bucket, int expand)
{
    unsigned        i;
    xet_hub_tree_t  t;

    xet_hub_tree_begin(&t, &b, bucket, expand);

    for (i = 0; i < n; i++) {
        xet_hub_tree_add(&t, node);
    }

    xet_hub_tree_end(&t);

    return flat();
}


static void
is(const char *got, const char *want, const char *name)
{
    xet_ok(strcmp(got, want) == 0, "%s: %s", name, got);
}


static void
row(xet_hub_node_t *node, const char *path, uint64_t size)
{
    static uint8_t  digest[XET_HASH_LEN];

    memset(digest, 7, sizeof(digest));
    memset(node, 0, sizeof(xet_hub_node_t));

    node->path.data = (const uint8_t *) path;
    node->path.len = strlen(path);
    node->hash = digest;
    node->sha256 = digest;
    node->made = digest;
    node->size = size;
    node->at = INT64_C(951868799250999);
    node->mtime = XET_HUB_NO_TIME;
}


static void
test_kinds(void)
{
    xet_hub_node_t  node;

    row(&node, "a", 5);

    is(tree(&node, 0, 0, 0), "[]", "no entry");
    is(tree(&node, 1, 0, 1),
       "[{\"type\":\"file\",\"oid\":\"" HEX20 "\",\"size\":5,"
       "\"lfs\":{\"oid\":\"" HEX32 "\",\"size\":5,\"pointerSize\":134},"
       "\"xetHash\":\"" HEX32 "\",\"path\":\"a\"}]", "a file");

    node.title.data = (const uint8_t *) "t\b\f\"";
    node.title.len = 4;
    node.size = 0;

    is(tree(&node, 2, 0, 1),
       "[{\"type\":\"file\",\"oid\":\"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
       "\",\"size\":0,\"path\":\"a\",\"lastCommit\":{\"id\":\"" HEX20
       "\",\"title\":\"t\\b\\f\\\"\",\"date\":\"2000-02-29T23:59:59.250Z\"}},"
       "{\"type\":\"file\",\"oid\":\"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
       "\",\"size\":0,\"path\":\"a\",\"lastCommit\":{\"id\":\"" HEX20
       "\",\"title\":\"t\\b\\f\\\"\",\"date\":\"2000-02-29T23:59:59.250Z\"}}]",
       "empty files, with commits");

    node.hash = NULL;

    is(tree(&node, 1, 0, 0),
       "[{\"type\":\"directory\",\"oid\":\"" HEX20
       "\",\"size\":0,\"path\":\"a\"}]", "a folder");

    is(tree(&node, 1, 1, 1),
       "[{\"type\":\"directory\",\"uploadedAt\":\"2000-02-29T23:59:59.250Z\","
       "\"path\":\"a\"}]", "a folder of a bucket");

    row(&node, "b/\"\\\xe2\x80\xa8", UINT64_MAX);

    is(tree(&node, 1, 1, 0),
       "[{\"type\":\"file\",\"size\":18446744073709551615,\"xetHash\":\"" HEX32
       "\",\"uploadedAt\":\"2000-02-29T23:59:59.250Z\",\"mtime\":null,"
       "\"path\":\"b/\\\"\\\\\xe2\x80\xa8\"}]", "an object");

    node.mtime = 0;

    is(tree(&node, 1, 1, 0),
       "[{\"type\":\"file\",\"size\":18446744073709551615,\"xetHash\":\"" HEX32
       "\",\"uploadedAt\":\"2000-02-29T23:59:59.250Z\","
       "\"mtime\":\"1970-01-01T00:00:00.000Z\","
       "\"path\":\"b/\\\"\\\\\xe2\x80\xa8\"}]", "an object with its time");
}


static void
test_dates(void)
{
    size_t   i;
    uint8_t  date[XET_HUB_DATE_LEN + 1];

    static const struct {
        int64_t      at;
        const char  *text;
    } dates[] = {
        { INT64_MIN, "1970-01-01T00:00:00.000Z" },
        { -1, "1970-01-01T00:00:00.000Z" },
        { 999, "1970-01-01T00:00:00.000Z" },
        { 1000, "1970-01-01T00:00:00.001Z" },
        { INT64_C(951782400000000), "2000-02-29T00:00:00.000Z" },
        { INT64_C(4107542399999999), "2100-02-28T23:59:59.999Z" },
        { INT64_C(4107542400000000), "2100-03-01T00:00:00.000Z" },
        { INT64_C(253402300799999999), "9999-12-31T23:59:59.999Z" },
        { INT64_C(253402300800000000), "9999-12-31T23:59:59.999Z" },
        { INT64_MAX, "9999-12-31T23:59:59.999Z" }
    };

    for (i = 0; i < sizeof(dates) / sizeof(dates[0]); i++) {
        *xet_hub_tree_date(date, dates[i].at) = '\0';
        is((const char *) date, dates[i].text, "a date");
    }
}


/* Tests many of the longest entries, and a buffer that gets no memory. */

static void
test_room(void)
{
    size_t          len;
    char            path[XET_HUB_PATH_MAX + 1];
    xet_hub_node_t  node;

    memset(path, '"', XET_HUB_PATH_MAX);
    path[XET_HUB_PATH_MAX] = '\0';

    row(&node, path, UINT64_MAX);

    node.at = INT64_MAX;
    node.mtime = INT64_MAX;

    len = strlen(tree(&node, 1, 0, 0));

    xet_is_u64(strlen(tree(&node, MOST / 2, 0, 0)), len * (MOST / 2)
               - (MOST / 2) + 1, "many of the longest");

    len = strlen(tree(&node, 1, 1, 0));

    xet_is_u64(strlen(tree(&node, MOST / 2, 1, 0)), len * (MOST / 2)
               - (MOST / 2) + 1, "many of the longest of a bucket");

    b.failed = 1;
    is(tree(&node, 3, 0, 1), "", "a buffer without memory");
}


int
main(void)
{
    xet_buf_init(&b, xet_test_alloc, &pool, 64);

    test_kinds();
    test_dates();
    test_room();

    xet_test_pool_free(&pool);

    return xet_done();
}
