
/*
 * Tests pages of a large file: pages of any size, starting at any object,
 * look-ups, and the memory that these need.
 */


#include "zt_bytes.h"


#define OBJECTS  100000
#define STEP     65536

/*
 * docs/ztensor.md allows 400 KiB, plus 16 bytes per object and 24 per component
 */
#define MEMORY   (400 * 1024 + OBJECTS * (16 + 24) * 3 / 2)


/* Only defined with AddressSanitizer. */

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));


typedef struct {
    uint64_t  first;
    uint64_t  n;
    uint64_t  limit;
    unsigned  wrong;
    size_t    most;                    /* peak memory of the call */
} page_t;


static size_t
memory(void)
{
    return __sanitizer_get_current_allocated_bytes
           ? __sanitizer_get_current_allocated_bytes() : 0;
}


static void
build(zt_bytes_t *b, uint64_t n, int indefinite)
{
    char      name[64];
    uint64_t  i;

    zt_begin(b, "data", 4);
    zt_map(b, 3);
    zt_field_text(b, "version", "1.1.0");
    zt_text(b, "objects");

    if (indefinite) {
        zt_put_byte(b, 0xbf);

    } else {
        zt_map(b, n);
    }

    for (i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "model.layers.%llu.weight",
                 (unsigned long long) i);

        /* all objects are tied: they share their data */

        zt_dense(b, name, 1, 4);
        zt_component(b, "f32", 64, 4);
        zt_field_text(b, "digest", "sha256:e3b0c44298fc1c149afbf4c8996fb924"
                                   "27ae41e4649b934ca495991b7852b855");
    }

    if (indefinite) {
        zt_put_byte(b, 0xff);
    }

    zt_text(b, "attributes");
    zt_map(b, 1);
    zt_field(b, "after", 1);
    zt_end(b);
}


static xet_status_t
on_page(void *ctx, xet_zt_object_t *o)
{
    char     name[64];
    page_t  *page;

    page = ctx;

    snprintf(name, sizeof(name), "model.layers.%llu.weight",
             (unsigned long long) (page->first + page->n));

    if (o->index != page->first + page->n
        || !xet_zt_text_is(&o->name, name)
        || o->n != 1
        || o->verdict != XET_ZT_OBJECT_OK)
    {
        page->wrong++;
    }

    if (memory() > page->most) {
        page->most = memory();
    }

    return (++page->n == page->limit) ? XET_DONE : XET_OK;
}


static void
test_pages(const zt_bytes_t *b, const xet_zt_t *zt)
{
    size_t           i, wrong;
    page_t           page;
    uint64_t         next, state, bytes;
    xet_status_t     rc;
    xet_zt_select_t  select;

    memset(&select, 0, sizeof(select));

    wrong = 0;

    for (next = 0; next < OBJECTS; next += 9973) {
        memset(&page, 0, sizeof(page));

        page.first = select.first = next;
        page.limit = 9973;

        rc = zt_walk_all(zt, b->data, STEP, &select, on_page, &page);

        wrong += rc != XET_OK || page.wrong != 0
                 || page.n != (OBJECTS - next < 9973 ? OBJECTS - next : 9973);
    }

    xet_is_u64(wrong, 0, "the file in pages of 9973");

    /* reading a page starts near its first object */

    state = 7;
    bytes = 0;

    for (i = 0; i < 200; i++) {
        memset(&page, 0, sizeof(page));

        page.first = select.first = xet_test_random(&state) % OBJECTS;
        page.limit = 1;

        (void) zt_walk_count(zt, b->data, 1000, &select, on_page, &page,
                             &bytes);

        wrong += page.wrong || page.n != 1;
    }

    xet_is_u64(wrong, 0, "200 objects by their number");
    xet_ok(bytes / 200 < (b->len - b->manifest) / 128,
           "%llu bytes read for one on average",
           (unsigned long long) (bytes / 200));

    /* read the first and the last object */

    memset(&page, 0, sizeof(page));
    page.first = select.first = OBJECTS - 1;
    rc = zt_walk_all(zt, b->data, STEP, &select, on_page, &page);
    xet_ok(rc == XET_OK && page.n == 1 && page.wrong == 0, "the last object");

    memset(&page, 0, sizeof(page));
    select.first = OBJECTS;
    rc = zt_walk_all(zt, b->data, STEP, &select, on_page, &page);
    xet_ok(rc == XET_OK && page.n == 0, "none after it");

    select.first = UINT64_MAX;
    rc = zt_walk_all(zt, b->data, STEP, &select, on_page, &page);
    xet_ok(rc == XET_OK && page.n == 0, "none far after it");
}


typedef struct {
    uint64_t  n;
    uint64_t  last;
} found_t;


static xet_status_t
on_found(void *ctx, xet_zt_object_t *o)
{
    found_t  *found;

    found = ctx;
    found->n++;
    found->last = o->index;

    return XET_OK;
}


static void
test_select(const zt_bytes_t *b, const xet_zt_t *zt)
{
    size_t           i;
    found_t          found;
    xet_zt_select_t  select;

    static const struct {
        const char  *name;
        const char  *prefix;
        const char  *format;
        uint64_t     first;
        uint64_t     n;
        uint64_t     last;
    } cases[] = {
        { "model.layers.31415.weight", NULL, NULL, 0, 1, 31415 },
        { "model.layers.31415.weigh", NULL, NULL, 0, 0, 0 },
        { "model.layers.31415.weights", NULL, NULL, 0, 0, 0 },
        { "", NULL, NULL, 0, 0, 0 },
        { "model.layers.31415.weight", NULL, NULL, 31415, 1, 31415 },
        { "model.layers.31415.weight", NULL, NULL, 31416, 0, 0 },
        { NULL, "model.layers.999", NULL, 0, 111, 99999 },
        { NULL, "model.layers.999", NULL, 99990, 10, 99999 },
        { NULL, "", NULL, 99000, 1000, 99999 },
        { NULL, "m", "dense", 99000, 1000, 99999 },
        { NULL, NULL, "dens", 99000, 0, 0 },
        { NULL, NULL, "denser", 99000, 0, 0 },
        { "model.layers.7.weight", "model.layers.8", NULL, 0, 0, 0 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&select, 0, sizeof(select));
        memset(&found, 0, sizeof(found));

        select.first = cases[i].first;

        if (cases[i].name) {
            select.name.data = (const uint8_t *) cases[i].name;
            select.name.len = strlen(cases[i].name);
        }

        if (cases[i].prefix) {
            select.prefix.data = (const uint8_t *) cases[i].prefix;
            select.prefix.len = strlen(cases[i].prefix);
        }

        if (cases[i].format) {
            select.format.data = (const uint8_t *) cases[i].format;
            select.format.len = strlen(cases[i].format);
        }

        xet_ok(zt_walk_all(zt, b->data, STEP, &select, on_found, &found)
               == XET_OK
               && found.n == cases[i].n && found.last == cases[i].last,
               "name %s, prefix %s, format %s from %llu: %llu objects",
               cases[i].name ? cases[i].name : "any",
               cases[i].prefix ? cases[i].prefix : "any",
               cases[i].format ? cases[i].format : "any",
               (unsigned long long) cases[i].first,
               (unsigned long long) cases[i].n);
    }
}


static xet_status_t
on_error(void *ctx, xet_zt_object_t *o)
{
    return (o->index == 5) ? XET_NOMEM : XET_OK;
}


static void
test_errors(const zt_bytes_t *b, const xet_zt_t *zt)
{
    uint8_t         *data;
    found_t          found;
    xet_status_t     rc;

    rc = zt_walk_all(zt, b->data, STEP, NULL, on_error, NULL);
    xet_is_u64(rc, XET_NOMEM, "an error of the handler ends the walk");

    /* the file has changed in the meantime */

    data = malloc(b->len);
    memcpy(data, b->data, b->len);
    data[b->manifest + 100000] ^= 0xff;

    memset(&found, 0, sizeof(found));
    rc = zt_walk_all(zt, data, STEP, NULL, on_found, &found);
    xet_ok(rc != XET_OK && rc != XET_AGAIN && found.n < 1000,
           "other bytes than before: %s", xet_status_code(rc));

    free(data);
}


static void
test_memory(const zt_bytes_t *b)
{
    size_t           n, before, most;
    page_t           page;
    xet_zt_t        *zt;
    xet_range_t      range;
    xet_zt_limits_t  limits;

    if (memory() == 0) {
        xet_skip("memory is not counted in this build");
        return;
    }

    xet_zt_limits_init(&limits);

    before = memory();
    most = 0;

    zt = xet_zt_create(b->len, &limits);

    while (xet_zt_need(zt, &range) == XET_AGAIN) {
        n = (size_t) (range.end - range.start);

        (void) xet_zt_feed(zt, b->data + range.start, n < STEP ? n : STEP);

        if (memory() - before > most) {
            most = memory() - before;
        }
    }

    xet_ok(most < MEMORY, "%zu bytes while it is checked", most);
    xet_ok(memory() - before < 40 * 1024, "%zu bytes after that",
           memory() - before);

    memset(&page, 0, sizeof(page));
    page.limit = OBJECTS;

    (void) zt_walk_all(zt, b->data, STEP, NULL, on_page, &page);

    xet_ok(page.n == OBJECTS && page.most - before < 456 * 1024,
           "%zu bytes while it is listed", page.most - before);

    xet_zt_destroy(zt);

    xet_is_u64(memory() - before, 0, "none at the end");
}


/*
 * Tests numbers of objects near those at which the index drops half its marks.
 */

static void
test_index(void)
{
    size_t           i;
    page_t           page;
    uint64_t         n, index;
    unsigned         wrong;
    zt_bytes_t       b;
    xet_zt_t        *zt;
    xet_status_t     rc;
    xet_zt_select_t  select;

    static const uint64_t  counts[] = { 0, 1, 2, 255, 256, 257, 511, 512, 513,
                                        1024, 1025 };

    memset(&b, 0, sizeof(b));
    memset(&select, 0, sizeof(select));

    wrong = 0;

    for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        n = counts[i];

        build(&b, n, (int) (i & 1));

        zt = zt_open(b.data, b.len, STEP, NULL, &rc);

        wrong += rc != XET_OK || xet_zt_info(zt)->count != n
                 || xet_zt_attributes(zt)->data == NULL;

        for (index = 0; index < n; index += 1 + n / 37) {
            memset(&page, 0, sizeof(page));

            page.first = select.first = index;

            rc = zt_walk_all(zt, b.data, STEP, &select, on_page, &page);

            wrong += rc != XET_OK || page.wrong || page.n != n - index;
        }

        xet_zt_destroy(zt);
    }

    xet_is_u64(wrong, 0, "files of 0 to 1025 objects from any of them");

    free(b.data);
}


int
main(void)
{
    zt_bytes_t    b;
    xet_zt_t     *zt;
    xet_status_t  rc;

    memset(&b, 0, sizeof(b));

    build(&b, OBJECTS, 0);

    zt = zt_open(b.data, b.len, STEP, NULL, &rc);

    xet_is_u64(rc, XET_OK, "100,000 objects");
    xet_is_u64(xet_zt_info(zt)->count, OBJECTS, "all of them");
    xet_ok(xet_zt_info(zt)->index_n <= XET_ZT_INDEX
           && xet_zt_info(zt)->index_n * xet_zt_info(zt)->stride >= OBJECTS,
           "%u marks, %llu apart", xet_zt_info(zt)->index_n,
           (unsigned long long) xet_zt_info(zt)->stride);

    test_pages(&b, zt);
    test_select(&b, zt);
    test_errors(&b, zt);

    xet_zt_destroy(zt);

    test_memory(&b);
    test_index();

    free(b.data);

    return xet_done();
}
