
/*
 * Tests cached verdicts: a restored verdict equals the saved one, and only
 * valid data is restored.
 */


#include "zt_bytes.h"
#include "xet_zt.h"


#define X16  "xxxxxxxxxxxxxxxx"
#define X64  X16 X16 X16 X16


static uint8_t  saved[XET_ZT_SAVED_MAX];
static size_t   saved_len;


static int
save(const xet_zt_t *zt, xet_status_t status)
{
    xet_buf_t        b;
    xet_status_t     rc;
    xet_test_pool_t  pool;
    xet_buf_node_t  *node;

    memset(&pool, 0, sizeof(pool));
    xet_buf_init(&b, xet_test_alloc, &pool, 0);

    rc = xet_zt_save(zt, status, &b);

    saved_len = 0;

    for (node = b.first; rc == XET_OK && node; node = node->next) {
        memcpy(saved + saved_len, node->start,
               (size_t) (node->pos - node->start));
        saved_len += (size_t) (node->pos - node->start);
    }

    xet_test_pool_free(&pool);

    return rc;
}


/*
 * Builds n objects that are all tied (have the same data); fmt makes their
 * names.
 */

static void
build(zt_bytes_t *b, uint64_t n, const char *fmt)
{
    char      name[512];
    uint64_t  i;

    zt_begin(b, "data", 4);
    zt_map(b, 3);
    zt_field_text(b, "version", "1.1.0");
    zt_text(b, "attributes");
    zt_map(b, 1);
    zt_field_text(b, "by", "hand");
    zt_text(b, "objects");
    zt_map(b, n);

    for (i = 0; i < n; i++) {
        snprintf(name, sizeof(name), fmt, (unsigned long long) i);

        zt_dense(b, name, 1, 3);
        zt_component(b, "f32", 64, 4);
    }

    zt_end(b);
}


typedef struct {
    uint64_t  index;
    uint64_t  n;
} found_t;


static xet_status_t
on_found(void *ctx, xet_zt_object_t *o)
{
    found_t  *found;

    found = ctx;
    found->index = o->index;
    found->n++;

    return XET_OK;
}


/* Finds an object, and counts the bytes read for it. */

static uint64_t
find(const xet_zt_t *zt, const zt_bytes_t *b, const char *name,
    const char *prefix, found_t *found)
{
    uint64_t         bytes;
    xet_zt_select_t  select;

    memset(&select, 0, sizeof(select));
    memset(found, 0, sizeof(found_t));

    if (name) {
        select.name.data = (const uint8_t *) name;
        select.name.len = strlen(name);
    }

    if (prefix) {
        select.prefix.data = (const uint8_t *) prefix;
        select.prefix.len = strlen(prefix);
    }

    bytes = 0;

    (void) zt_walk_count(zt, b->data, 4096, &select, on_found, found, &bytes);

    return bytes;
}


static void
test_orders(void)
{
    size_t        i, j;
    char          name[512];
    found_t       found;
    unsigned      wrong;
    uint64_t      bytes, all;
    xet_zt_t     *zt, *again;
    zt_bytes_t    b;
    xet_status_t  rc;

    static const struct {
        const char  *what;
        const char  *fmt;
        unsigned     order;
    } cases[] = {
        { "both orders", "layer.%05llu.weight",
          XET_ZT_ORDER_BYTES|XET_ZT_ORDER_LENGTH },
        { "shorter ones first", "layer.%llu", XET_ZT_ORDER_LENGTH },
        { "names too long to be kept", X64 X64 "%llu", 0 }
    };

    memset(&b, 0, sizeof(b));

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {

        build(&b, 5000, cases[i].fmt);
        zt = zt_open(b.data, b.len, 1 << 16, NULL, &rc);

        xet_ok(rc == XET_OK && xet_zt_info(zt)->order == cases[i].order,
               "%s: noticed", cases[i].what);

        (void) save(zt, XET_OK);

        rc = xet_zt_restore(&again, b.len, &zt->limits, saved,
                            saved_len, NULL, 0);
        xet_is_u64(rc, XET_OK, "restored");

        wrong = 0;
        bytes = 0;
        all = b.len - b.manifest;

        for (j = 0; j < 5000; j += 113) {
            snprintf(name, sizeof(name), cases[i].fmt,
                     (unsigned long long) j);

            bytes += find(again, &b, name, NULL, &found);
            wrong += found.n != 1 || found.index != j;

            bytes += find(zt, &b, name, NULL, &found);
            wrong += found.n != 1 || found.index != j;

            strcat(name, "!");
            (void) find(again, &b, name, NULL, &found);
            wrong += found.n != 0;
        }

        xet_is_u64(wrong, 0, "all found by name, no others");
        xet_ok(cases[i].order ? bytes / 90 < all / 32 : bytes / 90 > all / 4,
               "%llu bytes read for one, of %llu",
               (unsigned long long) bytes / 90, (unsigned long long) all);

        snprintf(name, sizeof(name), cases[i].fmt, 123ull);
        name[strlen(name) - 1] = '\0';

        (void) find(again, &b, NULL, name, &found);
        j = (size_t) found.n;
        (void) find(zt, &b, NULL, name, &found);
        xet_ok(j != 0 && found.n == j, "%zu with a prefix", j);

        xet_zt_destroy(again);
        xet_zt_destroy(zt);
    }

    free(b.data);
}


static void
test_same(void)
{
    zt_bytes_t            b;
    xet_zt_t             *zt, *again;
    xet_status_t          rc;
    xet_zt_limits_t       limits, other;
    const xet_zt_info_t  *one, *two;
    const xet_zt_text_t  *attributes;

    memset(&b, 0, sizeof(b));
    build(&b, 1000, "t%04llu");

    xet_zt_limits_init(&limits);

    zt = zt_open(b.data, b.len, 1 << 16, &limits, &rc);
    one = xet_zt_info(zt);
    attributes = xet_zt_attributes(zt);

    xet_is_u64(save(zt, rc), XET_OK, "saved");
    xet_ok(saved_len < 16384, "%zu bytes", saved_len);

    rc = xet_zt_restore(&again, b.len, &limits, saved, saved_len,
                        attributes->data, attributes->len);
    two = xet_zt_info(again);

    xet_ok(rc == XET_OK && one->size == two->size
           && one->ends.manifest_offset == two->ends.manifest_offset
           && one->ends.manifest_length == two->ends.manifest_length
           && one->ends.data_end == two->ends.data_end
           && one->ends.data_start == two->ends.data_start
           && one->ends.container == two->ends.container
           && one->ends.header_magic == two->ends.header_magic
           && one->version_len == two->version_len
           && memcmp(one->version, two->version, one->version_len) == 0
           && one->warnings == two->warnings
           && one->count == two->count
           && one->components == two->components
           && one->invalid == two->invalid
           && one->unsupported == two->unsupported
           && one->bytes == two->bytes && one->bytes == 4000
           && one->objects_end == two->objects_end
           && one->stride == two->stride
           && one->order == two->order
           && one->index_n == two->index_n
           && memcmp(one->index, two->index,
                     one->index_n * sizeof(one->index[0])) == 0,
           "all of it comes back");

    xet_ok(xet_zt_attributes(again)->len == attributes->len
           && memcmp(xet_zt_attributes(again)->data, attributes->data,
                     attributes->len) == 0, "attributes too");
    xet_zt_destroy(again);

    rc = xet_zt_restore(&again, b.len, &limits, saved, saved_len,
                        (const uint8_t *) "\xa0", 1);
    xet_is_u64(rc, XET_ZT_STALE, "other attributes");
    xet_zt_destroy(again);

    rc = xet_zt_restore(&again, b.len + 1, &limits, saved, saved_len, NULL, 0);
    xet_is_u64(rc, XET_ZT_STALE, "another size");
    xet_zt_destroy(again);

    other = limits;
    other.strict = 1;
    xet_ok(xet_zt_rules(&other) != xet_zt_rules(&limits), "other rules");

    rc = xet_zt_restore(&again, b.len, &other, saved, saved_len, NULL, 0);
    xet_is_u64(rc, XET_ZT_STALE, "other limits");
    xet_zt_destroy(again);

    xet_zt_destroy(zt);
    free(b.data);
}


/*
 * Damages a saved verdict: every truncation, every byte changed, and every bit
 * changed with a matching hash.
 */

static void
test_damage(void)
{
    size_t           i, bad, good;
    uint8_t         *copy;
    found_t          found;
    zt_bytes_t       b;
    xet_zt_t        *zt, *again;
    xet_status_t     rc;
    xet_zt_limits_t  limits;

    memset(&b, 0, sizeof(b));
    build(&b, 20, "t%04llu");

    xet_zt_limits_init(&limits);

    zt = zt_open(b.data, b.len, 1 << 16, &limits, &rc);
    (void) save(zt, rc);
    xet_zt_destroy(zt);

    bad = 0;

    for (i = 0; i < saved_len; i++) {
        copy = malloc(i ? i : 1);
        memcpy(copy, saved, i);

        rc = xet_zt_restore(&again, b.len, &limits, copy, i, NULL, 0);
        bad += rc != XET_ZT_STALE;
        xet_zt_destroy(again);
        free(copy);

        saved[i] ^= 0x41;
        rc = xet_zt_restore(&again, b.len, &limits, saved, saved_len, NULL, 0);
        bad += rc != XET_ZT_STALE;
        xet_zt_destroy(again);
        saved[i] ^= 0x41;
    }

    xet_is_u64(bad, 0, "cut or changed, it is not restored");

    /*
     * changes one bit, and corrects the hash: the verdict may be restored, but
     * must be safe to use
     */

    good = 0;
    copy = malloc(saved_len);

    for (i = 0; i < (saved_len - 8) * 8; i++) {
        memcpy(copy, saved, saved_len);
        copy[i / 8] ^= (uint8_t) (1 << i % 8);

        xet_put_u64(copy + saved_len - 8, XXH3_64bits(copy, saved_len - 8));

        rc = xet_zt_restore(&again, b.len, &limits, copy, saved_len, NULL, 0);

        if (rc == XET_OK) {
            good++;
            (void) find(again, &b, "t0013", NULL, &found);
            (void) find(again, &b, NULL, "t", &found);
        }

        xet_zt_destroy(again);
    }

    xet_ok(good > 0, "%zu forgeries of %zu restored, none harmful", good, i);

    free(copy);
    free(b.data);
}


static void
test_verdicts(void)
{
    zt_bytes_t       b;
    xet_zt_t        *zt, *again;
    xet_status_t     rc, kept;
    xet_zt_limits_t  limits;

    memset(&b, 0, sizeof(b));
    xet_zt_limits_init(&limits);

    zt_base(&b);
    b.data[b.manifest + 1] ^= 0xff;

    zt = zt_open(b.data, b.len, 1 << 16, &limits, &rc);
    xet_ok(rc == XET_ZT_MANIFEST && save(zt, rc) == XET_OK, "a bad manifest");

    kept = xet_zt_restore(&again, b.len, &limits, saved, saved_len, NULL, 0);

    xet_ok(kept == rc && xet_zt_error_offset(zt) != 0
           && xet_zt_error_offset(again) == xet_zt_error_offset(zt)
           && xet_zt_info(again)->ends.container == XET_ZT_CONTAINER_1,
           "restored with its place and container");

    xet_zt_destroy(again);
    xet_zt_destroy(zt);

    zt = xet_zt_create(7, &limits);
    (void) save(zt, XET_ZT_TOO_SHORT);
    kept = xet_zt_restore(&again, 7, &limits, saved, saved_len, NULL, 0);
    xet_is_u64(kept, XET_ZT_TOO_SHORT, "too short");
    xet_zt_destroy(again);

    /* a verdict that is not about a file */

    (void) save(zt, XET_ZT_NO_OBJECT);
    kept = xet_zt_restore(&again, 7, &limits, saved, saved_len, NULL, 0);
    xet_is_u64(kept, XET_ZT_STALE, "no verdict on a file");
    xet_zt_destroy(again);

    xet_zt_destroy(zt);
    free(b.data);
}


static void
test_overlaps(void)
{
    char             name[16];
    unsigned         n;
    zt_bytes_t       b;
    xet_zt_t        *zt, *again;
    xet_status_t     rc;
    xet_zt_limits_t  limits;
    const char      *outcome;

    memset(&b, 0, sizeof(b));
    xet_zt_limits_init(&limits);
    limits.strict = 1;

    for (n = 2; n <= 5000; n += 4998) {
        uint8_t  blob[64] = { 0 };
        unsigned i;

        zt_begin(&b, blob, sizeof(blob));
        zt_root(&b, n);

        for (i = 0; i < n; i++) {
            snprintf(name, sizeof(name), "t%05u", i);
            zt_dense(&b, name, 1 + i % 60, 3);
            zt_component(&b, "u8", 64, 1 + i % 60);
        }

        /*
         * n objects that overlap; their ranges have only 60 different lengths
         */

        zt_end(&b);

        zt = zt_open(b.data, b.len, 1 << 16, &limits, &rc);
        xet_is_u64(save(zt, rc), XET_OK, "overlaps are kept");

        rc = xet_zt_restore(&again, b.len, &limits, saved, saved_len, NULL, 0);
        xet_is_u64(rc, XET_OK, "and restored");

        if (n == 2) {
            zt_summary_t  s;

            memset(&s, 0, sizeof(s));
            (void) zt_walk_all(again, b.data, 4096, NULL, zt_summary_object,
                               &s);
            outcome = s.text;
            xet_ok(strcmp(outcome, "t00000:overlap t00001:overlap") == 0,
                   "seen in a strict walk: %s", outcome);
        }

        xet_zt_destroy(again);
        xet_zt_destroy(zt);
    }

    free(b.data);
}


/*
 * Checks the saved bytes between the rules and the hash at the end.  If the
 * format changes, cached verdicts become stale or, worse, change their meaning.
 */

static void
saved_is(const char *what, uint64_t len, uint64_t hash)
{
    xet_is_u64(saved_len, len, what);
    xet_is_u64(XXH3_64bits(saved + 9, saved_len - 17), hash, what);
}


static void
test_bytes(void)
{
    unsigned         i;
    uint8_t          blob[64] = { 0 };
    zt_bytes_t       b;
    xet_zt_t        *zt;
    xet_status_t     rc;
    xet_zt_limits_t  limits;

    memset(&b, 0, sizeof(b));
    xet_zt_limits_init(&limits);

    build(&b, 1000, "t%04llu");
    zt = zt_open(b.data, b.len, 1 << 16, &limits, &rc);
    (void) save(zt, rc);
    saved_is("names in order", 3656, 0x5c2c14ecfc5a8186ull);
    xet_zt_destroy(zt);

    build(&b, 20, X64 X64 "%llu");
    zt = zt_open(b.data, b.len, 1 << 16, &limits, &rc);
    (void) save(zt, rc);
    saved_is("names in no order", 316, 0x73f0718546cd4872ull);
    xet_zt_destroy(zt);

    zt_begin(&b, blob, sizeof(blob));
    zt_root(&b, 0);
    zt_end(&b);

    zt = zt_open(b.data, b.len, 1 << 16, &limits, &rc);
    (void) save(zt, rc);
    saved_is("no objects", 156, 0x72cc0418e7b3dcc0ull);

    (void) save(zt, XET_ZT_MANIFEST);
    saved_is("a verdict", 47, 0x5e2bc7aa52708237ull);
    xet_zt_destroy(zt);

    limits.strict = 1;

    zt_begin(&b, blob, sizeof(blob));
    zt_root(&b, 2);

    for (i = 0; i < 2; i++) {
        zt_dense(&b, i ? "b" : "a", 1 + i, 3);
        zt_component(&b, "u8", 64, 1 + i);
    }

    zt_end(&b);

    zt = zt_open(b.data, b.len, 1 << 16, &limits, &rc);
    (void) save(zt, rc);
    saved_is("overlaps", 224, 0x6a622cb7c9a33b58ull);
    xet_zt_destroy(zt);

    free(b.data);
}


static xet_status_t
on_copy(void *ctx, xet_zt_object_t *o)
{
    xet_zt_object_t  *copy;

    copy = xet_zt_object_copy(o);

    xet_ok(copy->index == o->index && copy->n == o->n
           && copy->name.data != o->name.data
           && copy->name.len == o->name.len
           && memcmp(copy->name.data, o->name.data, o->name.len) == 0
           && xet_zt_text_is(&copy->format, "dense")
           && xet_zt_text_is(&copy->components[0].role, "data")
           && xet_zt_text_is(&copy->components[0].dtype, "f32")
           && copy->components[0].digest.data == NULL
           && copy->components[0].length == o->components[0].length
           && xet_zt_object_default(copy) == &copy->components[0],
           "a copy of an object");

    free(copy);

    return XET_OK;
}


static void
test_copy(void)
{
    zt_bytes_t    b;
    xet_zt_t     *zt;
    xet_status_t  rc;

    memset(&b, 0, sizeof(b));
    zt_base(&b);

    zt = zt_open(b.data, b.len, 1 << 16, NULL, &rc);
    (void) zt_walk_all(zt, b.data, 4096, NULL, on_copy, NULL);
    xet_zt_destroy(zt);

    free(b.data);
}


static void
test_reports(void)
{
    size_t                  i, n;
    uint8_t                 bytes[XET_ZT_REPORT_LEN];
    unsigned                wrong;
    xet_zt_report_t         report, again;
    xet_zt_limits_t         limits;
    xet_zt_decode_limits_t  one, two;

    static const xet_status_t  statuses[] = {
        XET_OK, XET_ZT_ZSTD, XET_ZT_LENGTH, XET_ZT_VALUES, XET_ZT_WINDOW,
        XET_ZT_DECODE_SIZE, XET_ZT_BOUNDS, XET_ZT_HEADER, XET_ZT_INDICES,
        XET_ZT_UNCHECKED
    };

    wrong = 0;

    for (n = 0; n <= XET_ZT_DIGEST_UNREADABLE; n++) {
        for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
            report.digest = (xet_zt_digest_verdict_t) n;
            report.status = statuses[i];

            wrong += !xet_zt_report_pack(bytes, &report)
                     || !xet_zt_report_unpack(&again, bytes)
                     || again.digest != report.digest
                     || again.status != report.status;
        }
    }

    xet_is_u64(wrong, 0, "reports come back");

    report.status = XET_NOMEM;
    xet_is_u64(xet_zt_report_pack(bytes, &report), 0, "not those of ours");

    bytes[0] = XET_ZT_DIGEST_UNREADABLE + 1;
    bytes[1] = 0;
    xet_is_u64(xet_zt_report_unpack(&again, bytes), 0, "no such verdict");

    bytes[0] = 0;
    bytes[1] = sizeof(statuses) / sizeof(statuses[0]);
    xet_is_u64(xet_zt_report_unpack(&again, bytes), 0, "no such status");

    xet_zt_limits_init(&limits);
    xet_zt_decode_limits_init(&one);
    two = one;
    two.window_log++;

    xet_ok(xet_zt_report_rules(&limits, &one)
           != xet_zt_report_rules(&limits, &two), "other rules");
}


int
main(void)
{
    test_orders();
    test_same();
    test_bytes();
    test_damage();
    test_verdicts();
    test_overlaps();
    test_copy();
    test_reports();

    return xet_done();
}
