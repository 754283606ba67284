
/*
 * Tests plans that are spooled to files: they have the same terms and ranges
 * as plans in memory, for any buffer size, and every failed call is reported
 * as an error.
 */


#include "xet_test.h"
#include "xet_test_plan.h"
#include "xet_plan.h"


#define TEST_TERMS   20000
#define TEST_WINDOW  700               /* terms per batch */
#define TEST_CHUNKS  400               /* chunks per xorb */


static uint8_t   test_packed[TEST_TERMS * XET_TERM_LEN];
static uint32_t  test_sizes[TEST_TERMS];
static uint8_t   test_raw[TEST_CHUNKS * 4];
static uint8_t   test_stored[TEST_CHUNKS * 4];


/* In-memory files, and the number of the call that fails, from 1. */

typedef struct {
    uint8_t        *data[XET_PLAN_SPOOL_FILES];
    size_t          len[XET_PLAN_SPOOL_FILES];
    unsigned        calls;
    unsigned        fail;
} test_files_t;


static xet_status_t
test_append(void *ctx, xet_plan_spool_file_t file, const void *data,
    size_t len)
{
    test_files_t *f = ctx;

    if (++f->calls == f->fail) {
        return XET_STORE_FULL;
    }

    f->data[file] = realloc(f->data[file], f->len[file] + len);
    memcpy(f->data[file] + f->len[file], data, len);
    f->len[file] += len;

    return XET_OK;
}


static xet_status_t
test_read(void *ctx, xet_plan_spool_file_t file, void *data, size_t len,
    uint64_t offset)
{
    test_files_t *f = ctx;

    if (++f->calls == f->fail || offset + len > f->len[file]) {
        return XET_STORE_FAILED;
    }

    memcpy(data, f->data[file] + offset, len);

    return XET_OK;
}


static const xet_plan_spool_io_t  test_io = { test_append, test_read };


static void
test_close(test_files_t *f)
{
    free(f->data[0]);
    free(f->data[1]);
}


static xet_status_t
test_url(void *ctx, xet_buf_t *b, const xet_hash_t *xorb,
    const xet_plan_range_t *ranges, size_t n)
{
    return xet_test_url(ctx, b, "/", ranges, n) ? XET_OK : XET_SIGN_KEY;
}


/* Makes n terms in at most the given number of xorbs; returns the file size. */

static uint64_t
test_terms(uint64_t *state, size_t n, unsigned xorbs, uint32_t max)
{
    size_t    i;
    uint32_t  start;
    uint64_t  size;

    for (i = 0, size = 0; i < n; i++) {
        start = (uint32_t) (xet_test_random(state) % (TEST_CHUNKS - max));

        test_sizes[i] = xet_test_term(test_packed + i * XET_TERM_LEN,
                                      (unsigned) (xet_test_random(state)
                                                  % xorbs),
                                      0, start,
                                      start + 1 + (uint32_t)
                                      (xet_test_random(state) % max));
        size += test_sizes[i];
    }

    return size;
}


/* Adds the terms that cover the range, batch by batch; s may be NULL. */

static xet_status_t
test_add(xet_plan_t *p, xet_plan_spool_t *s, size_t n,
    const xet_range_t *want)
{
    size_t        i, k;
    uint64_t      offset, end;
    xet_status_t  status;

    for (i = 0, offset = 0; i < n; i += k) {

        end = offset;

        for (k = 0; k < TEST_WINDOW && i + k < n; k++) {
            end += test_sizes[i + k];
        }

        if (end > want->start && offset < want->end) {

            if (s && p->n + k > 2 * TEST_WINDOW) {
                status = xet_plan_spool_put(s);

                if (status != XET_OK) {
                    return status;
                }
            }

            status = xet_plan_add(p, test_packed + i * XET_TERM_LEN,
                                  k * XET_TERM_LEN, offset);
            if (status != XET_OK) {
                return status;
            }
        }

        offset = end;
    }

    return XET_OK;
}


static xet_status_t
test_trim(xet_plan_t *p)
{
    unsigned         edges, which;
    uint32_t         i;
    xet_term_t      *t;
    xet_status_t     status;
    xet_plan_ends_t  ends;

    edges = xet_plan_edges(p);

    for (which = XET_PLAN_FIRST; which <= XET_PLAN_LAST; which <<= 1) {

        if (!(edges & which)) {
            continue;
        }

        t = xet_plan_edge(p, which);

        ends.n = t->chunk_end - t->chunk_start;
        ends.raw_before = t->chunk_start * 100;
        ends.stored_before = t->chunk_start * 50;
        ends.copy_id = t->copy_id;
        ends.raw_ends = test_raw;
        ends.stored_ends = test_stored;

        for (i = 0; i < ends.n; i++) {
            xet_put_u32(test_raw + i * 4, (t->chunk_start + i + 1) * 100);
            xet_put_u32(test_stored + i * 4, (t->chunk_start + i + 1) * 50);
        }

        if (p->before + p->n == 1) {
            which = edges;
        }

        status = xet_plan_trim(p, which, &ends);

        if (status != XET_OK) {
            return status;
        }
    }

    return XET_OK;
}


/* Runs all steps.  The last step writes the body, and discards each piece. */

static xet_status_t
test_spooled(xet_plan_t *p, xet_plan_spool_t *s, test_files_t *f,
    xet_test_pool_t *pool, size_t n, const xet_range_t *want, size_t size)
{
    void          *room;
    xet_status_t   status;

    memset(f, 0, offsetof(test_files_t, fail));

    xet_plan_init(p, xet_test_alloc, pool, want);
    xet_plan_spool_init(s, p, &test_io, f);

    status = test_add(p, s, n, want);

    if (status == XET_OK) {
        status = test_trim(p);
    }

    if (status != XET_OK) {
        return status;
    }

    room = malloc(size);

    do {
        status = xet_plan_spool_sort(s, room, size);
    } while (status == XET_AGAIN);

    free(room);

    return status;
}


static const char *
test_same(const xet_plan_t *p, const xet_plan_t *q)
{
    uint32_t           i, k, begins;
    xet_hash_t         xorb, before;
    const xet_term_t  *a, *b;
    xet_plan_range_t   one, two;

    if (p->n != q->n || p->skip != q->skip || p->position != q->position
        || p->nxorbs != q->nxorbs || p->nranges != q->nranges)
    {
        return "numbers";
    }

    for (i = 0; i < p->n; i++) {
        a = xet_plan_term_at(p, i);
        b = xet_plan_term_at(q, i);

        if (memcmp(a, b, sizeof(xet_term_t)) != 0) {
            return "a term";
        }
    }

    for (i = 0, begins = 0; i < p->nranges; i++) {
        xorb = *xet_plan_range(p, i, &one);

        if (xet_plan_xorb_begins(p, i)) {
            begins++;

            if (i && memcmp(before.bytes, xorb.bytes, XET_HASH_LEN) >= 0) {
                return "the order of xorbs";
            }

        } else if (i == 0 || !xet_hash_equal(&before, &xorb)) {
            return "the ranges of a xorb";
        }

        before = xorb;

        for (k = 0; k < q->nranges; k++) {
            if (xet_hash_equal(xet_plan_range(q, k, &two), &xorb)
                && memcmp(&one, &two, sizeof(one)) == 0)
            {
                break;
            }
        }

        if (k == q->nranges) {
            return "a range";
        }
    }

    return (begins == p->nxorbs) ? NULL : "the number of xorbs";
}


static void
test_random(void)
{
    size_t              n, room;
    uint64_t            state, size;
    unsigned            i, failed;
    xet_plan_t          p, q;
    xet_term_t          window[37];
    const char         *wrong;
    xet_range_t         want;
    test_files_t        f;
    xet_test_pool_t     pool;
    xet_plan_spool_t    s;

    static const size_t  lens[] = { 1, 2, 3, 300, 1401, 5000, TEST_TERMS };

    state = 8;
    failed = 0;

    for (i = 0; i < 60 && failed < 3; i++) {
        n = lens[i % (sizeof(lens) / sizeof(lens[0]))];

        size = test_terms(&state, n, 1 + i % 5 * 3, 1 + i % 3 * 20);

        want.start = (i % 4) ? xet_test_random(&state) % size : 0;
        want.end = size - ((i % 3) ? xet_test_random(&state)
                                     % (size - want.start) : 0);
        room = 16384 << i % 4;

        if (room < xet_plan_spool_room((uint32_t) n)) {
            room = xet_plan_spool_room((uint32_t) n);
        }

        memset(&pool, 0, sizeof(pool));
        memset(&f, 0, sizeof(f));

        xet_plan_init(&q, xet_test_alloc, &pool, &want);

        wrong = "the plan in memory";

        if (test_add(&q, NULL, n, &want) == XET_OK && test_trim(&q) == XET_OK
            && xet_plan_finish(&q) == XET_OK)
        {
            wrong = "the plan in a file";

            if (test_spooled(&p, &s, &f, &pool, n, &want, room) == XET_OK) {
                xet_plan_spool_read(&s, window, 37);
                wrong = test_same(&p, &q);
            }
        }

        if (wrong) {
            failed++;
            xet_ok(0, "plan %u of %u terms: %s", i, (unsigned) n, wrong);
        }

        test_close(&f);
        xet_test_pool_free(&pool);
    }

    xet_ok(failed == 0, "the same in a file as in memory");
}


/*
 * Checks that a batch body written in pieces has the same elements as the body
 * of a plan in memory, in any order.
 */

static void
test_files(void)
{
    size_t               i, n, total, len[2];
    uint64_t             size;
    unsigned             k;
    xet_buf_t            b;
    xet_hash_t           hash;
    test_url_t           url;
    xet_plan_t           p;
    xet_term_t           window[64];
    test_files_t         f;
    xet_status_t         status;
    xet_test_pool_t      pool;
    xet_plan_spool_t     s;
    xet_plan_writer_t    w;
    static uint8_t       room[65536];

    for (k = 0; k < 2; k++) {
        memset(&pool, 0, sizeof(pool));
        memset(&f, 0, sizeof(f));

        size = 3;
        (void) test_terms(&size, 3000, 7, 20);

        (void) xet_plan_init_files(&p, xet_test_alloc, &pool, 31);

        if (k) {
            xet_plan_spool_init(&s, &p, &test_io, &f);
        }

        for (i = 0; i < 3000; i += 100) {
            memset(hash.bytes, (int) i / 100, XET_HASH_LEN);

            for (n = 0, size = 0; n < 100; n++) {
                size += test_sizes[i + n];
            }

            status = xet_plan_file(&p, &hash, size);

            if (status == XET_OK) {
                status = xet_plan_add(&p, test_packed + i * XET_TERM_LEN,
                                      100 * XET_TERM_LEN, 0);
            }

            if (status != XET_OK || (k && i % 300 == 0
                                     && xet_plan_spool_put(&s) != XET_OK))
            {
                break;
            }
        }

        xet_is_u64(i, 3000, "files added");

        do {
            status = k ? xet_plan_spool_sort(&s, room, sizeof(room))
                       : xet_plan_finish(&p);
        } while (status == XET_AGAIN);

        xet_is_u64(status, XET_OK, "finished");

        memset(&url, 0, sizeof(url));
        xet_plan_writer_init(&w, &p, XET_PLAN_BATCH, test_url, &url, 1);

        total = 0;

        do {
            if (k) {
                xet_plan_spool_read(&s, window, 64);
            }

            xet_buf_init(&b, xet_test_alloc, &pool, 0);
            status = xet_plan_writer_next(&w, &b, 5000);
            total += (size_t) b.size;
        } while (status == XET_AGAIN);

        xet_is_u64(status, XET_OK, "written");

        len[k] = total;

        test_close(&f);
        xet_test_pool_free(&pool);
    }

    xet_is_u64(len[1], len[0], "the text of a batch is as long");
}


/* Makes each file operation fail once. */

static void
test_failures(void)
{
    uint64_t             state, size;
    unsigned             calls, wrong;
    xet_buf_t            b;
    test_url_t           url;
    xet_plan_t           p;
    xet_term_t           window[512];
    xet_range_t          want;
    xet_status_t         status;
    test_files_t         f;
    xet_test_pool_t      pool;
    xet_plan_spool_t     s;
    xet_plan_writer_t    w;

    state = 9;
    size = test_terms(&state, 3000, 5, 3);

    want.start = 150;
    want.end = size - 1;
    wrong = 0;

    for (calls = 1; /* void */ ; calls++) {
        memset(&pool, 0, sizeof(pool));
        memset(&f, 0, sizeof(f));
        memset(&url, 0, sizeof(url));

        f.fail = calls;

        status = test_spooled(&p, &s, &f, &pool, 3000, &want, 16384);

        if (status == XET_OK) {
            xet_plan_writer_init(&w, &p, XET_PLAN_V2, test_url, &url, 500);

            do {
                xet_plan_spool_read(&s, window, 512);
                xet_buf_init(&b, xet_test_alloc, &pool, 0);
                status = xet_plan_writer_next(&w, &b, 20000);
            } while (status == XET_AGAIN);
        }

        test_close(&f);
        xet_test_pool_free(&pool);

        if (f.calls < calls) {
            break;
        }

        wrong += status != XET_STORE_FULL && status != XET_STORE_FAILED;
    }

    xet_is_u64(status, XET_OK, "without a failure");
    xet_ok(calls > 30 && wrong == 0, "%u calls fail, all are noticed", calls);
}


static void
test_refused(void)
{
    uint64_t           state, size;
    uint32_t           n;
    xet_plan_t         p;
    xet_range_t        want;
    test_files_t       f;
    xet_test_pool_t    pool;
    xet_plan_spool_t   s;

    memset(&pool, 0, sizeof(pool));
    memset(&f, 0, sizeof(f));

    state = 10;
    size = test_terms(&state, TEST_TERMS, 5, 3);

    want.start = 0;
    want.end = size;

    xet_is_u64(test_spooled(&p, &s, &f, &pool, TEST_TERMS, &want, 8192),
               XET_NOMEM, "too small a room");
    test_close(&f);

    want.end = size + 1;
    xet_is_u64(test_spooled(&p, &s, &f, &pool, TEST_TERMS, &want, 65536),
               XET_PLAN_DAMAGED, "terms that end before the range");
    test_close(&f);

    /*
     * terms far apart in the file: the spool sorts them in different runs
     * (xet_plan_spool.c)
     */

    want.end = size;
    (void) xet_test_term(test_packed + 17 * XET_TERM_LEN, 200, 0, 5, 6);
    (void) xet_test_term(test_packed + 19000 * XET_TERM_LEN, 200, 1, 5, 6);
    want.end -= test_sizes[17] - 100;
    want.end -= test_sizes[19000] - 100;
    test_sizes[17] = 100;
    test_sizes[19000] = 100;

    xet_is_u64(test_spooled(&p, &s, &f, &pool, TEST_TERMS, &want, 65536),
               XET_PLAN_DAMAGED, "a chunk at different bytes");
    test_close(&f);

    (void) xet_test_term(test_packed + 19000 * XET_TERM_LEN, 200, 0, 5, 6);
    xet_put_u32(test_packed + 19001 * XET_TERM_LEN - 4, 7);

    xet_is_u64(test_spooled(&p, &s, &f, &pool, TEST_TERMS, &want, 65536),
               XET_PLAN_CHANGED, "two copies of a xorb");
    test_close(&f);
    xet_test_pool_free(&pool);

    for (n = 1; n < 1u << 25; n *= 3) {
        if (xet_plan_spool_room(n) > 2 * 1024 * 1024) {
            break;
        }
    }

    xet_ok(n >= 1u << 25, "the room needed grows with the root only");
}


int
main(void)
{
    test_random();
    test_files();
    test_failures();
    test_refused();

    return xet_done();
}
