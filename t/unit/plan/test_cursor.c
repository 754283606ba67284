
/*
 * Tests the cursor: random files compared with a list of all their chunks,
 * ranges at every boundary, long terms that are read in several parts, a second
 * range that needs fewer queries, and contradictory rows.
 */


#include "xet_test.h"
#include "xet_plan.h"
#include "xet_xorb.h"


#define XORBS       5
#define TERMS_MAX   700
#define CHUNKS_MAX  8192
#define LISTS_MAX   64
#define COPY_ID         0x77000000


typedef struct {
    xet_hash_t  hash;
    uint32_t    n;
    uint32_t    raw[CHUNKS_MAX];       /* raw ends */
    uint32_t    stored[CHUNKS_MAX];
} xorb_t;


typedef struct {
    uint32_t    xorb;
    uint32_t    start;
    uint32_t    end;
    uint64_t    offset;
    uint32_t    len;
} term_t;


static xorb_t        xorbs[XORBS];
static term_t        terms[TERMS_MAX];
static unsigned      nterms;
static unsigned      segment;              /* terms per segment */
static uint64_t      size;
static uint8_t       packed[TERMS_MAX * XET_TERM_LEN];

static xet_cursor_t  cursor;
static unsigned      asked_terms, asked_lists, located;
static unsigned      runs;                 /* runs of several chunks */
static unsigned      break_list;           /* how to damage a list */


static uint64_t
rnd(uint64_t n)
{
    static uint64_t  state = 88172645463325252u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;

    return state % n;
}


static uint32_t
before(const uint32_t *ends, uint32_t i)
{
    return i ? ends[i - 1] : 0;
}


static void
hash_of(uint32_t xorb, uint32_t chunk, uint8_t *hash)
{
    memset(hash, 0, XET_HASH_LEN);
    xet_put_u32(hash, xorb);
    xet_put_u32(hash + 4, chunk);
}


static void
make_xorb(uint32_t k, uint32_t n, uint32_t max)
{
    uint32_t  i, raw, stored;

    xorbs[k].n = n;
    memset(xorbs[k].hash.bytes, (int) (0x10 + k), XET_HASH_LEN);

    for (i = 0, raw = 0, stored = 0; i < n; i++) {
        raw += 1 + (uint32_t) rnd(max);
        stored += XET_XORB_HEADER_LEN + 1 + (uint32_t) rnd(max);

        xorbs[k].raw[i] = raw;
        xorbs[k].stored[i] = stored;
    }
}


static void
add_term(uint32_t xorb, uint32_t start, uint32_t end)
{
    term_t      *t;
    xorb_t      *x;
    xet_term_t   term;

    t = &terms[nterms];
    x = &xorbs[xorb];

    t->xorb = xorb;
    t->start = start;
    t->end = end;
    t->offset = size;
    t->len = x->raw[end - 1] - before(x->raw, start);

    term.xorb = x->hash;
    term.chunk_start = start;
    term.chunk_end = end;
    term.stored_start = before(x->stored, start);
    term.stored_end = x->stored[end - 1];
    term.raw_length = t->len;
    term.copy_id = COPY_ID + (uint32_t) xorb;

    xet_term_pack(packed + nterms * XET_TERM_LEN, &term);

    size += t->len;
    nterms++;
}


static void
new_file(unsigned terms_in_segment)
{
    nterms = 0;
    size = 0;
    segment = terms_in_segment;

    xet_cursor_init(&cursor);
}


/* Passes the rows that PostgreSQL would return. */

static xet_status_t
fetch_terms(void)
{
    unsigned  i, n;

    asked_terms++;

    for (i = 0; i < nterms; i += segment) {
        n = (nterms - i < segment) ? nterms - i : segment;

        if (terms[i + n - 1].offset + terms[i + n - 1].len > cursor.position) {
            return xet_cursor_terms(&cursor, packed + i * XET_TERM_LEN,
                                    n * XET_TERM_LEN, terms[i].offset);
        }
    }

    return XET_INTERNAL;
}


static xet_status_t
fetch_list(const xet_cursor_list_t *list)
{
    uint32_t         i, k, n;
    xet_plan_ends_t  ends;

    static uint8_t   raw[CHUNKS_MAX * 4 + 4];
    static uint8_t   stored[CHUNKS_MAX * 4 + 4];
    static uint8_t   hashes[CHUNKS_MAX * XET_HASH_LEN];

    asked_lists++;
    located += !list->hashes;

    k = list->xorb.bytes[0] - 0x10;
    n = list->end - list->start;

    for (i = 0; i < n; i++) {
        xet_put_u32(raw + i * 4, xorbs[k].raw[list->start + i]);
        xet_put_u32(stored + i * 4, xorbs[k].stored[list->start + i]);
        hash_of(k, list->start + i, hashes + i * XET_HASH_LEN);
    }

    ends.n = n;
    ends.copy_id = COPY_ID + k;
    ends.raw_before = before(xorbs[k].raw, list->start);
    ends.stored_before = before(xorbs[k].stored, list->start);
    ends.raw_ends = raw;
    ends.stored_ends = stored;

    switch (break_list) {
    case 1:
        ends.n--;
        break;
    case 2:
        ends.n++;
        break;
    case 3:
        xet_put_u32(raw + (n - 1) * 4, xet_get_u32(raw + (n - 1) * 4) + 1);
        break;
    case 4:
        xet_put_u32(stored + (n - 1) * 4,
                    xet_get_u32(stored + (n - 1) * 4) + 1);
        break;
    case 5:
        ends.stored_before--;
        break;
    case 6:
        xet_put_u32(raw, ends.raw_before);
        break;
    case 7:
        xet_put_u32(raw, ends.raw_before + XET_CHUNK_MAX + 1);
        break;
    case 8:
        xet_put_u32(stored, ends.stored_before + XET_XORB_HEADER_LEN);
        break;
    case 9:
        xet_put_u32(stored, ends.stored_before + XET_XORB_CHUNK_MAX + 1);
        break;
    case 10:
        return xet_cursor_answer(&cursor, &ends, NULL);
    case 11:
        ends.raw_before++;
        break;
    case 12:
        xet_put_u32(stored, ends.stored_before - 1);
        break;
    }

    return xet_cursor_answer(&cursor, &ends, list->hashes ? hashes : NULL);
}


static xet_status_t
fetch(void)
{
    size_t             i, n;
    xet_status_t       rc;
    xet_cursor_list_t  lists[LISTS_MAX];

    n = 1 + rnd(LISTS_MAX);

    rc = xet_cursor_ask(&cursor, lists, &n);

    if (rc == XET_AGAIN) {
        return fetch_terms();
    }

    for (i = 0; rc == XET_OK && i < n; i++) {
        rc = fetch_list(&lists[i]);
    }

    return rc;
}


/*
 * Returns 1 if the run that starts at chunk i of term t is right: it ends with
 * a chunk of the range, it has no gaps, and it is not too long.
 */

static int
run_is_right(uint32_t t, uint32_t i, uint64_t offset, uint64_t end)
{
    xorb_t    *x;
    size_t     room, raw;
    uint32_t   k;
    uint64_t   first, last;

    x = &xorbs[terms[t].xorb];
    room = rnd(2) ? rnd(400000) : 100000000;

    xet_cursor_run(&cursor, room, &first, &last);

    if (first != before(x->stored, i)) {
        return 0;
    }

    for (k = i; offset < end; k++) {

        if (k == terms[t].end) {
            t++;

            if (t == nterms || &xorbs[terms[t].xorb] != x
                || terms[t].start != k)
            {
                return 0;
            }
        }

        raw = x->raw[k] - before(x->raw, i);
        offset += x->raw[k] - before(x->raw, k);

        if (x->stored[k] == last) {
            runs += (k > i);
            return k == i || raw <= room;
        }
    }

    return 0;
}


/* Returns 1 if reading [start, end) yields exactly the chunks of the terms. */

static int
read_range(uint64_t start, uint64_t end)
{
    xorb_t              *x;
    uint8_t              hash[XET_HASH_LEN];
    uint32_t             i, t, raw;
    uint64_t             offset, first, last;
    xet_status_t         rc;
    xet_cursor_chunk_t   chunk;

    xet_cursor_seek(&cursor, start, end);

    for (t = 0; t < nterms; t++) {

        if (terms[t].offset + terms[t].len <= start || terms[t].offset >= end)
        {
            continue;
        }

        x = &xorbs[terms[t].xorb];

        for (i = terms[t].start; i < terms[t].end; i++) {
            raw = x->raw[i] - before(x->raw, i);
            offset = terms[t].offset + before(x->raw, i)
                     - before(x->raw, terms[t].start);

            if (offset + raw <= start || offset >= end) {
                continue;
            }

            while ((rc = xet_cursor_chunk(&cursor, &chunk)) == XET_AGAIN) {
                if (fetch() != XET_OK) {
                    return 0;
                }
            }

            first = offset < start ? start : offset;
            last = offset + raw > end ? end : offset + raw;
            hash_of(terms[t].xorb, i, hash);

            if (rc != XET_OK
                || !xet_hash_equal(chunk.xorb, &x->hash)
                || memcmp(chunk.hash, hash, XET_HASH_LEN)
                || chunk.index != i
                || chunk.stored_start != before(x->stored, i)
                || chunk.stored_len != x->stored[i] - before(x->stored, i)
                || chunk.raw_len != raw
                || chunk.skip != first - offset
                || chunk.take != last - first)
            {
                return 0;
            }

            /* read-ahead stays within the range, and within one copy */

            if (!run_is_right(t, i, offset, end)) {
                return 0;
            }

            xet_cursor_advance(&cursor);
        }
    }

    return cursor.position == end
           && xet_cursor_chunk(&cursor, &chunk) == XET_DONE;
}


static void
test_random(void)
{
    unsigned  i, k, bad;
    uint32_t  start, xorb;
    uint64_t  a, b;

    bad = 0;

    for (i = 0; i < 12; i++) {

        for (k = 0; k < XORBS; k++) {
            make_xorb(k, 1 + (uint32_t) rnd(k == 4 ? CHUNKS_MAX : 600),
                      1 + (uint32_t) rnd(rnd(2) ? 3000 : 50));
        }

        new_file(1 + (unsigned) rnd(XET_TERM_SEGMENT_MAX));

        for (k = 1 + (unsigned) rnd(300); k; k--) {
            xorb = (uint32_t) rnd(XORBS);
            start = (uint32_t) rnd(xorbs[xorb].n);
            add_term(xorb, start,
                     start + 1 + (uint32_t) rnd(xorbs[xorb].n - start));
        }

        bad += !read_range(0, size);

        for (k = 0; k < 40; k++) {
            a = rnd(size);
            b = a + 1 + rnd(rnd(2) ? size - a : (size - a < 9 ? 1 : 9));
            bad += !read_range(a, b);
        }
    }

    xet_is_u64(bad, 0, "random files and ranges");
    xet_ok(runs > 1000, "and runs of several chunks");
}


static void
test_borders(void)
{
    unsigned  i, bad;
    uint64_t  at;

    make_xorb(0, 3, 4);
    make_xorb(1, 1, 1);
    new_file(2);

    add_term(0, 0, 3);
    add_term(1, 0, 1);
    add_term(0, 1, 2);
    add_term(0, 2, 3);
    add_term(0, 0, 2);

    for (bad = 0, at = 0; at < size; at++) {
        for (i = 1; at + i <= size; i++) {
            bad += !read_range(at, at + i);
        }
    }

    xet_is_u64(bad, 0, "every range of a small file");
}


static void
test_long(void)
{
    uint64_t  border;

    make_xorb(0, CHUNKS_MAX, 3000);
    new_file(XET_TERM_SEGMENT_MAX);
    add_term(0, 0, CHUNKS_MAX);
    add_term(0, 1, CHUNKS_MAX);

    asked_lists = located = asked_terms = 0;

    xet_ok(read_range(0, size), "long terms from end to end");
    xet_is_u64(located, 0, "reading on locates nothing");
    xet_is_u64(asked_lists, 16, "a list a window");
    xet_is_u64(asked_terms, 1, "the terms once");

    asked_lists = located = 0;

    xet_ok(read_range(terms[0].len - 1, terms[0].len), "a byte far inside");
    xet_is_u64(located, 1, "is located");
    xet_is_u64(asked_lists, 2, "and then read");

    border = xorbs[0].raw[XET_CURSOR_CHUNKS - 1];

    xet_cursor_init(&cursor);
    xet_ok(read_range(border - 1, border + 1), "across the end of a window");

    xet_cursor_init(&cursor);
    xet_ok(read_range(border, border + 1), "behind the end of a window");

    asked_terms = asked_lists = 0;

    xet_ok(read_range(border, border + 2), "another range near by");
    xet_ok(read_range(border + 5, border + 6), "and another");
    xet_is_u64(asked_terms + asked_lists, 0, "cost nothing");

    /* one chunk more and one chunk less than a batch */

    new_file(XET_TERM_SEGMENT_MAX);
    add_term(0, 0, XET_CURSOR_CHUNKS);
    add_term(0, 5, XET_CURSOR_CHUNKS + 6);

    located = 0;

    xet_ok(read_range(terms[0].len - 1, terms[0].len), "a term of a window");
    xet_is_u64(located, 0, "is read whole");
    xet_ok(read_range(size - 1, size), "a chunk more");
    xet_is_u64(located, 1, "is located");
}


static void
test_damage(void)
{
    uint8_t             row[(XET_TERM_SEGMENT_MAX + 1) * XET_TERM_LEN];
    unsigned            i, bad;
    xet_cursor_chunk_t  chunk;

    make_xorb(0, 40, 1000);

    for (i = 1, bad = 0; i <= 12; i++) {
        new_file(XET_TERM_SEGMENT_MAX);
        add_term(0, 3, 30);
        add_term(0, 1, 2);

        break_list = i;
        xet_cursor_seek(&cursor, 1, size);

        if (fetch() != XET_OK || fetch() != XET_PLAN_DAMAGED
            || xet_cursor_chunk(&cursor, &chunk) != XET_AGAIN)
        {
            printf("# damage %u\n", i);
            bad++;
        }

        break_list = 0;

        bad += !read_range(1, size);
    }

    xet_is_u64(bad, 0, "lists that contradict their term");

    /* a list that is only used to find a position is checked, too */

    make_xorb(0, CHUNKS_MAX, 1000);

    for (i = 1, bad = 0; i <= 9; i++) {
        new_file(XET_TERM_SEGMENT_MAX);
        add_term(0, 3, CHUNKS_MAX - 3);

        break_list = i;
        xet_cursor_seek(&cursor, size - 1, size);

        bad += fetch() != XET_OK || fetch() != XET_PLAN_DAMAGED;
        break_list = 0;
    }

    xet_is_u64(bad, 0, "and such that are only to locate");

    xet_cursor_seek(&cursor, 0, size);

    memset(row, 0, sizeof(row));

    for (i = 0; i <= XET_TERM_SEGMENT_MAX; i++) {
        memcpy(row + i * XET_TERM_LEN, packed, XET_TERM_LEN);
    }

    xet_is_u64(xet_cursor_terms(&cursor, row, 0, 0), XET_PLAN_DAMAGED,
               "no terms");
    xet_is_u64(xet_cursor_terms(&cursor, row, XET_TERM_LEN - 1, 0),
               XET_PLAN_DAMAGED, "half a term");
    xet_is_u64(xet_cursor_terms(&cursor, row, XET_TERM_LEN, 1),
               XET_PLAN_DAMAGED, "terms behind the position");
    xet_is_u64(xet_cursor_terms(&cursor, row, sizeof(row), 0),
               XET_PLAN_DAMAGED, "too many terms");
    xet_is_u64(xet_cursor_terms(&cursor, row, sizeof(row) - XET_TERM_LEN, 0),
               XET_OK, "as many as there may be");

    xet_cursor_seek(&cursor, size, size + 1);

    xet_is_u64(xet_cursor_terms(&cursor, row, XET_TERM_LEN, 0),
               XET_PLAN_DAMAGED, "terms before the position");
    xet_is_u64(xet_cursor_chunk(&cursor, &chunk), XET_AGAIN,
               "nothing of them is kept");

    row[XET_TERM_LEN + 44] = row[XET_TERM_LEN + 45] = 0;
    row[XET_TERM_LEN + 46] = row[XET_TERM_LEN + 47] = 0;

    xet_is_u64(xet_cursor_terms(&cursor, row, 2 * XET_TERM_LEN, 0),
               XET_PLAN_DAMAGED, "a term of no bytes");
    xet_is_u64(xet_cursor_answer(&cursor, NULL, NULL), XET_INTERNAL,
               "an answer that nobody asked for");
}


int
main(void)
{
    test_random();
    test_borders();
    test_long();
    test_damage();

    return xet_done();
}
