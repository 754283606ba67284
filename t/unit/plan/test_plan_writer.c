
/*
 * Tests bodies written in pieces: the exact text, the same bytes for every
 * limit, the memory use of a piece and of a writer, errors, and calls after an
 * error.
 */


#include "xet_test.h"
#include "xet_test_plan.h"


#define TEST_URL_MAX  (4 + 600 * 22)

#define AA  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define BB  "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define CC  "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

#define SPAN(start, end)  "{\"start\":" #start ",\"end\":" #end "}"

#define TERM(hash, len, start, end)                                           \
    "{\"hash\":\"" hash "\",\"unpacked_length\":" #len                        \
    ",\"range\":" SPAN(start, end) "}"

#define RANGE(start, end, first, last)                                        \
    "{\"chunks\":" SPAN(start, end) ",\"bytes\":" SPAN(first, last) "}"

#define ENTRY(url, start, end, first, last)                                   \
    "{\"range\":" SPAN(start, end) ",\"url\":\"" url                          \
    "\",\"url_range\":" SPAN(first, last) "}"

#define TERMS                                                                 \
    "{\"offset_into_first_range\":0,\"terms\":[" TERM(BB, 100, 2, 3) ","      \
    TERM(AA, 100, 0, 1) "," TERM(BB, 200, 7, 9) "],"

#define FETCH_INFO                                                            \
    "\"fetch_info\":{\"" BB "\":[" ENTRY("/bb,100-149", 2, 3, 100, 149) ","   \
    ENTRY("/bb,350-449", 7, 9, 350, 449) "],\"" AA "\":["                     \
    ENTRY("/aa,0-49", 0, 1, 0, 49) "]}}"

#define XORB_AA                                                               \
    "\"" AA "\":[{\"url\":\"/aa,0-49\",\"ranges\":[" RANGE(0, 1, 0, 49) "]}]"


static uint8_t  test_packed[100000 * XET_TERM_LEN];


/* Writes a URL: the first byte of the xorb's hash, and the ranges. */

static xet_status_t
test_url(void *ctx, xet_buf_t *b, const xet_hash_t *xorb,
    const xet_plan_range_t *ranges, size_t n)
{
    char  before[8];

    snprintf(before, sizeof(before), "/%02x,", xorb->bytes[0]);

    return xet_test_url(ctx, b, before, ranges, n) ? XET_OK : XET_SIGN_KEY;
}


static uint32_t
test_term(size_t i, unsigned xorb, uint32_t start, uint32_t end)
{
    return xet_test_term(test_packed + i * XET_TERM_LEN, xorb, 0, start, end);
}


/* Makes a plan of the first n terms: one file, or files of 1 to 3 terms. */

static xet_status_t
test_plan(xet_plan_t *p, xet_test_pool_t *pool, size_t n, int several)
{
    size_t          i, k, len;
    uint64_t        size;
    xet_hash_t      hash;
    xet_range_t     want;
    xet_status_t    status;
    const uint8_t  *packed;

    if (several) {
        status = xet_plan_init_files(p, xet_test_alloc, pool, n);

    } else {
        want.start = 0;
        want.end = 0;

        for (i = 0; i < n; i++) {
            want.end += xet_get_u32(test_packed + i * XET_TERM_LEN + 44);
        }

        xet_plan_init(p, xet_test_alloc, pool, &want);
        status = XET_OK;
    }

    for (i = 0; i < n && status == XET_OK; i += len) {
        len = several ? 1 + i % 3 : n;
        len = (len > n - i) ? n - i : len;
        packed = test_packed + i * XET_TERM_LEN;

        if (several) {
            memset(hash.bytes, (int) i, XET_HASH_LEN);

            for (k = 0, size = 0; k < len; k++) {
                size += xet_get_u32(packed + k * XET_TERM_LEN + 44);
            }

            status = xet_plan_file(p, &hash, size);
        }

        if (status == XET_OK) {
            status = xet_plan_add(p, packed, len * XET_TERM_LEN, 0);
        }
    }

    return (status == XET_OK) ? xet_plan_finish(p) : status;
}


static char *
test_whole(xet_test_pool_t *pool, const xet_plan_t *p, xet_plan_kind_t kind,
    size_t group, size_t *len)
{
    xet_buf_t          b;
    test_url_t         url;
    xet_status_t       status;
    xet_plan_writer_t  w;

    memset(&url, 0, sizeof(url));

    xet_plan_writer_init(&w, p, kind, test_url, &url, group);
    xet_buf_init(&b, xet_test_alloc, pool, 0);

    status = xet_plan_writer_next(&w, &b, SIZE_MAX);

    return (status == XET_OK) ? (char *) xet_test_flatten(pool, &b, len)
                              : NULL;
}


static void
test_is(const xet_plan_t *p, xet_plan_kind_t kind, size_t group,
    const char *want, const char *name)
{
    char             *text;
    size_t            len;
    xet_test_pool_t   pool;

    memset(&pool, 0, sizeof(pool));

    text = test_whole(&pool, p, kind, group, &len);

    if (!xet_ok(text && strcmp(text, want) == 0, "%s", name)) {
        printf("#   got %s\n#  want %s\n", text ? text : "nothing", want);
    }

    xet_test_pool_free(&pool);
}


static void
test_text(void)
{
    xet_hash_t        a, b, c;
    xet_plan_t        p;
    xet_test_pool_t   pool;

    memset(&pool, 0, sizeof(pool));
    memset(a.bytes, 0xaa, XET_HASH_LEN);
    memset(b.bytes, 0xbb, XET_HASH_LEN);
    memset(c.bytes, 0xcc, XET_HASH_LEN);

    (void) test_term(0, 0xbb, 2, 3);
    (void) test_term(1, 0xaa, 0, 1);
    (void) test_term(2, 0xbb, 7, 9);

    xet_is_u64(test_plan(&p, &pool, 3, 0), XET_OK, "three terms");

    test_is(&p, XET_PLAN_V1, 0, TERMS FETCH_INFO, "v1");

    test_is(&p, XET_PLAN_V2, 1, TERMS "\"xorbs\":{\"" BB "\":["
            "{\"url\":\"/bb,100-149\",\"ranges\":[" RANGE(2, 3, 100, 149)
            "]},{\"url\":\"/bb,350-449\",\"ranges\":[" RANGE(7, 9, 350, 449)
            "]}]," XORB_AA "}}", "v2, a range an entry");

    test_is(&p, XET_PLAN_V2, 2, TERMS "\"xorbs\":{\"" BB "\":["
            "{\"url\":\"/bb,100-149,350-449\",\"ranges\":["
            RANGE(2, 3, 100, 149) "," RANGE(7, 9, 350, 449) "]}]," XORB_AA
            "}}", "v2, two ranges an entry");

    xet_is_u64(xet_plan_limit(&p, 1), XET_OK, "a range a xorb");

    test_is(&p, XET_PLAN_V2, 1, TERMS "\"xorbs\":{\"" BB "\":["
            "{\"url\":\"/bb,100-449\",\"ranges\":[" RANGE(2, 9, 100, 449)
            "]}]," XORB_AA "}}", "v2 across the gap");

    /* the same terms in three files of two, no and one terms */

    (void) xet_plan_init_files(&p, xet_test_alloc, &pool, 3);
    (void) xet_plan_file(&p, &a, 200);
    (void) xet_plan_add(&p, test_packed, 2 * XET_TERM_LEN, 0);
    (void) xet_plan_file(&p, &c, 0);
    (void) xet_plan_file(&p, &b, 200);
    (void) xet_plan_add(&p, test_packed + 2 * XET_TERM_LEN, XET_TERM_LEN, 0);
    xet_is_u64(xet_plan_finish(&p), XET_OK, "three files");

    test_is(&p, XET_PLAN_BATCH, 0, "{\"files\":{\"" AA "\":["
            TERM(BB, 100, 2, 3) "," TERM(AA, 100, 0, 1) "],\"" CC "\":[],\""
            BB "\":[" TERM(BB, 200, 7, 9) "]}," FETCH_INFO, "batch");

    (void) xet_plan_init_files(&p, xet_test_alloc, &pool, 0);
    xet_is_u64(xet_plan_finish(&p), XET_OK, "no files");
    test_is(&p, XET_PLAN_BATCH, 0, "{\"files\":{},\"fetch_info\":{}}",
            "have a body");

    xet_is_u64(test_plan(&p, &pool, 0, 0), XET_OK, "the empty file");
    test_is(&p, XET_PLAN_V1, 0, "{\"offset_into_first_range\":0,"
            "\"terms\":[],\"fetch_info\":{}}", "v1");
    test_is(&p, XET_PLAN_V2, 1, "{\"offset_into_first_range\":0,"
            "\"terms\":[],\"xorbs\":{}}", "v2");

    xet_test_pool_free(&pool);
}


/*
 * Writes the body in pieces of limit bytes, each freed before the next one, or
 * all in one buffer.  Returns the first fault, or NULL.
 */

static const char *
test_pieces(const xet_plan_t *p, xet_plan_kind_t kind, size_t group,
    size_t limit, int one, const char *want, size_t want_len)
{
    char               *text;
    size_t              len, at;
    uint64_t            before;
    unsigned            pieces;
    xet_buf_t           b;
    test_url_t          url;
    const char         *wrong;
    xet_status_t        status;
    xet_test_pool_t     pool;
    xet_plan_writer_t   w;

    memset(&pool, 0, sizeof(pool));
    memset(&url, 0, sizeof(url));

    xet_plan_writer_init(&w, p, kind, test_url, &url, group);
    xet_buf_init(&b, xet_test_alloc, &pool, 64);

    wrong = NULL;
    at = 0;
    pieces = 0;

    do {

        if (!one) {
            xet_test_pool_free(&pool);
            xet_buf_init(&b, xet_test_alloc, &pool, 64);
        }

        before = b.size;
        status = xet_plan_writer_next(&w, &b, limit);
        len = (size_t) (b.size - before);

        if (status != XET_OK && status != XET_AGAIN) {
            wrong = "the status";
            break;
        }

        if (status == XET_AGAIN && (len < limit || len == 0)) {
            wrong = "too short a piece";
        }

        if (len > limit && len - limit >= 512 + TEST_URL_MAX) {
            wrong = "too long a piece";
        }

        text = (char *) xet_test_flatten(&pool, &b, &len);

        if (one) {
            text += before;
            len -= (size_t) before;
        }

        if (len > want_len - at || memcmp(text, want + at, len) != 0) {
            wrong = "the text";
            break;
        }

        at += len;
        pieces++;

    } while (status == XET_AGAIN);

    if (wrong == NULL && at != want_len) {
        wrong = "the end is missing";
    }

    before = b.size;

    if (wrong == NULL
        && (xet_plan_writer_next(&w, &b, limit) != XET_OK
            || b.size != before))
    {
        wrong = "a call after the last";
    }

    if (wrong == NULL && limit == 1 && pieces < p->n + p->nranges) {
        wrong = "several elements in the smallest piece";
    }

    xet_test_pool_free(&pool);

    return wrong;
}


static void
test_limits(void)
{
    char              *want;
    size_t             i, n, len, limit, group;
    uint64_t           state;
    unsigned           plan, kind, bodies, pieces, failed;
    uint32_t           start;
    xet_buf_t          b;
    test_url_t         url;
    const char        *wrong;
    xet_plan_t         p;
    xet_test_pool_t    pool;
    xet_plan_writer_t  w;

    memset(&pool, 0, sizeof(pool));
    memset(&url, 0, sizeof(url));

    state = 7;
    bodies = 0;
    pieces = 0;
    failed = 0;

    for (plan = 0; plan < 18; plan++) {
        kind = XET_PLAN_V1 + plan % 3;
        n = plan / 3 * 2;
        group = 1 + xet_test_random(&state) % 3;

        for (i = 0; i < n; i++) {
            start = (uint32_t) (xet_test_random(&state) % 12);
            (void) test_term(i, 1 + (unsigned) (xet_test_random(&state) % 3),
                             start, start + 1 + (uint32_t)
                                    (xet_test_random(&state) % 2));
        }

        failed += test_plan(&p, &pool, n, kind == XET_PLAN_BATCH) != XET_OK;

        want = test_whole(&pool, &p, kind, group, &len);
        bodies += want != NULL;

        for (limit = 0; limit <= len + 1; limit++) {
            wrong = test_pieces(&p, kind, group, limit, limit % 2, want, len);

            if (wrong && failed++ == 0) {
                printf("# plan %u, kind %u, limit %zu: %s\n", plan, kind,
                       limit, wrong);
            }

            pieces++;
        }

        xet_test_pool_free(&pool);
    }

    /* a limit equal to the length of the first element */

    for (kind = XET_PLAN_V1; kind <= XET_PLAN_BATCH; kind++) {
        (void) test_plan(&p, &pool, 3, kind == XET_PLAN_BATCH);

        for (i = 0, len = 1; i < 2; i++) {
            xet_plan_writer_init(&w, &p, kind, test_url, &url, 1);
            xet_buf_init(&b, xet_test_alloc, &pool, 0);
            (void) xet_plan_writer_next(&w, &b, len);

            failed += i && b.size != len;
            len = (size_t) b.size;
        }
    }

    xet_test_pool_free(&pool);

    xet_is_u64(bodies, 18, "bodies in one piece");
    xet_is_u64(failed, 0, "and the same with every limit");
    xet_ok(pieces > 10000, "which are %u", pieces);
}


/* Writes 100,000 terms and ranges in pieces of 32 KiB. */

static void
test_memory(void)
{
    size_t              i, peak, total, group;
    uint32_t            k;
    xet_buf_t           b;
    test_url_t          url;
    xet_plan_t          p;
    xet_status_t        status;
    xet_test_pool_t     pool, piece;
    xet_plan_writer_t   w;

    memset(&pool, 0, sizeof(pool));
    memset(&piece, 0, sizeof(piece));

    for (i = 0; i < 100000; i++) {
        k = (uint32_t) i / 100 * 3;
        (void) test_term(i, (unsigned) (i * 7 % 100), k, k + 1);
    }

    xet_is_u64(test_plan(&p, &pool, 100000, 0), XET_OK, "100,000 terms");
    xet_is_u64(p.nranges, 100000, "in as many ranges");
    xet_is_u64(pool.size, 6400000, "64 bytes each");
    xet_ok(sizeof(w) <= 80, "a writer has %zu bytes", sizeof(w));

    for (group = 1; group < 2000; group += 699) {
        memset(&url, 0, sizeof(url));
        xet_plan_writer_init(&w, &p, XET_PLAN_V2, test_url, &url, group);

        peak = 0;
        total = 0;

        do {
            xet_buf_init(&b, xet_test_alloc, &piece, 33 * 1024);

            status = xet_plan_writer_next(&w, &b, 32 * 1024);

            total += (size_t) b.size;
            peak = (piece.size > peak) ? piece.size : peak;

            xet_test_pool_free(&piece);

        } while (status == XET_AGAIN);

        xet_is_u64(status, XET_OK, "is written");
        xet_ok(total > 19000000, "in %zu bytes", total);
        xet_ok(peak <= 33 * 1024 + 64 + (group > 1) * 64 * 1024,
               "of which %zu at a time", peak);
        xet_is_u64(url.ranges_max, group < 512 ? group : 512,
                   "ranges in the longest entry");
        xet_is_u64(url.calls, group == 1 ? 100000 : 200, "URLs");
    }

    xet_test_pool_free(&pool);
}


/*
 * Checks that an entry ends before its list of ranges gets too long for a URL.
 */

static void
test_long_list(void)
{
    size_t             i, k, want;
    uint32_t           start;
    xet_buf_t          b;
    test_url_t         url;
    xet_plan_t         p;
    xet_test_pool_t    pool;
    xet_plan_writer_t  w;

    static const struct {
        uint32_t       base;
        size_t         text;           /* length of a range and a comma */
    } cases[] = {
        { 100000, 14 },                /* "100000-100049," */
        { 1000000, 16 },
        { 10000000, 18 },
        { 60000000, 18 }
    };

    memset(&pool, 0, sizeof(pool));

    for (k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {

        for (i = 0; i < 1500; i++) {
            start = 3 * (uint32_t) i;
            (void) xet_test_term(test_packed + i * XET_TERM_LEN, 1,
                                 cases[k].base, start, start + 1);
        }

        xet_is_u64(test_plan(&p, &pool, 1500, 0), XET_OK, "1,500 terms");

        memset(&url, 0, sizeof(url));
        xet_plan_writer_init(&w, &p, XET_PLAN_V2, test_url, &url, SIZE_MAX);
        xet_buf_init(&b, xet_test_alloc, &pool, 0);

        xet_is_u64(xet_plan_writer_next(&w, &b, SIZE_MAX), XET_OK,
                   "are written");

        want = (XET_PLAN_GROUP_TEXT + 1) / cases[k].text;

        xet_is_u64(url.ranges_max, want, "ranges in the longest entry");
        xet_is_u64(url.text_max, want * cases[k].text - 1, "their list");
        xet_is_u64(url.calls, (1500 + want - 1) / want, "entries");

        xet_test_pool_free(&pool);
    }
}


static void
test_errors(void)
{
    unsigned            k, limit, bad, kind;
    xet_buf_t           b;
    test_url_t          url;
    xet_plan_t          p, files;
    xet_status_t        status;
    xet_test_pool_t     pool, small;
    xet_plan_writer_t   w;

    static const struct {
        const char     *name;
        int             several;
        xet_plan_kind_t kind;
        size_t          group;
        xet_status_t    want;
    } cases[] = {
        { "v1 of files", 1, XET_PLAN_V1, 1, XET_INTERNAL },
        { "v2 of files", 1, XET_PLAN_V2, 1, XET_INTERNAL },
        { "batch of a file", 0, XET_PLAN_BATCH, 1, XET_INTERNAL },
        { "v2 in groups of 0", 0, XET_PLAN_V2, 0, XET_INTERNAL },
        { "v1 in groups of 0", 0, XET_PLAN_V1, 0, XET_OK },
        { "batch in groups of 0", 1, XET_PLAN_BATCH, 0, XET_OK },
        { "v2 in the largest groups", 0, XET_PLAN_V2, SIZE_MAX, XET_OK },
    };

    memset(&pool, 0, sizeof(pool));
    memset(&small, 0, sizeof(small));

    for (k = 0; k < 6; k++) {
        (void) test_term(k, k % 2, k * 2, k * 2 + 1);
    }

    (void) test_plan(&p, &pool, 6, 0);
    (void) test_plan(&files, &pool, 6, 1);

    for (k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        memset(&url, 0, sizeof(url));
        xet_plan_writer_init(&w, cases[k].several ? &files : &p,
                             cases[k].kind, test_url, &url, cases[k].group);
        xet_buf_init(&b, xet_test_alloc, &pool, 0);

        xet_is_u64(xet_plan_writer_next(&w, &b, SIZE_MAX), cases[k].want,
                   cases[k].name);

        xet_ok((b.size == 0) == (cases[k].want != XET_OK),
               "  writes %u bytes", (unsigned) b.size);
    }

    /* the third URL fails, after two entries; further calls fail, too */

    for (kind = XET_PLAN_V1; kind <= XET_PLAN_BATCH; kind++) {
        memset(&url, 0, sizeof(url));
        url.fail = 3;

        xet_plan_writer_init(&w, kind == XET_PLAN_BATCH ? &files : &p, kind,
                             test_url, &url, 1);

        do {
            xet_buf_init(&b, xet_test_alloc, &pool, 0);
            status = xet_plan_writer_next(&w, &b, 1);

        } while (status == XET_AGAIN);

        xet_is_u64(status, XET_SIGN_KEY, "what url returned");
        xet_is_u64(url.calls, 3, "at its third call");

        xet_buf_init(&b, xet_test_alloc, &pool, 0);
        xet_is_u64(xet_plan_writer_next(&w, &b, 1), XET_INTERNAL,
                   "a call after an error");
        xet_is_u64(b.size, 0, "writes nothing");
    }

    /* memory runs out at every node */

    for (limit = 1, bad = 0; limit < 1000; limit++) {
        small.limit = limit;
        memset(&url, 0, sizeof(url));

        xet_plan_writer_init(&w, &p, XET_PLAN_V2, test_url, &url, 2);

        do {
            xet_buf_init(&b, xet_test_alloc, &small, 16);
            status = xet_plan_writer_next(&w, &b, 1);

        } while (status == XET_AGAIN);

        bad += status != XET_NOMEM
               || xet_plan_writer_next(&w, &b, 1) != XET_INTERNAL;

        xet_test_pool_free(&small);

        if (status == XET_OK) {
            break;
        }
    }

    xet_ok(limit > 20 && limit < 1000, "out of memory at %u nodes", limit);
    xet_is_u64(bad, 1, "is told each time but the last");

    xet_test_pool_free(&pool);
}


int
main(void)
{
    test_text();
    test_limits();
    test_memory();
    test_long_list();
    test_errors();

    return xet_done();
}
