
/*
 * Tests the indices of sparse objects: each rule of each format, followed and
 * violated; the components in every order, in pieces of every size, with and
 * without memory; and small random objects, compared with a simple check.
 */


#include <stdio.h>
#include <string.h>

#include "zt_bytes.h"
#include "xet_zt.h"


#define PARTS  3
#define BYTES  256


typedef struct {
    const char  *role;
    const char  *dtype;
    unsigned     n;
    int64_t      values[12];
} list_t;


typedef struct {
    const char    *name;
    const char    *format;
    unsigned       rank;
    uint64_t       shape[3];
    list_t         lists[PARTS];
    xet_status_t   want;
} case_t;


#define VALUES(n)     { "values", "f32", n, { 0 } }
#define OK            XET_OK
#define BAD           XET_ZT_INDICES


static const case_t  cases[] = {

    { "csr", "sparse_csr", 2, { 2, 4 },
      { VALUES(3), { "indices", "u64", 3, { 0, 3, 1 } },
        { "indptr", "u64", 3, { 0, 2, 3 } } }, OK },
    { "csr of signed ones", "sparse_csr", 2, { 2, 4 },
      { VALUES(3), { "indices", "i8", 3, { 0, 3, 1 } },
        { "indptr", "i16", 3, { 0, 2, 3 } } }, OK },
    { "csr, descending and twice", "sparse_csr", 2, { 2, 4 },
      { VALUES(3), { "indices", "u16", 3, { 3, 0, 0 } },
        { "indptr", "u8", 3, { 0, 1, 3 } } }, OK },
    { "csr, past the columns", "sparse_csr", 2, { 2, 4 },
      { VALUES(3), { "indices", "u64", 3, { 0, 4, 1 } },
        { "indptr", "u64", 3, { 0, 2, 3 } } }, BAD },
    { "csr, before the columns", "sparse_csr", 2, { 2, 4 },
      { VALUES(3), { "indices", "i32", 3, { 0, -1, 1 } },
        { "indptr", "u64", 3, { 0, 2, 3 } } }, BAD },
    { "csr, 255 is not -1", "sparse_csr", 2, { 2, 256 },
      { VALUES(3), { "indices", "u8", 3, { 0, 255, 1 } },
        { "indptr", "u64", 3, { 0, 2, 3 } } }, OK },
    { "csr, not from 0", "sparse_csr", 2, { 2, 4 },
      { VALUES(3), { "indices", "u64", 3, { 0, 3, 1 } },
        { "indptr", "u64", 3, { 1, 2, 3 } } }, BAD },
    { "csr, falling", "sparse_csr", 2, { 3, 4 },
      { VALUES(3), { "indices", "u64", 3, { 0, 3, 1 } },
        { "indptr", "u64", 4, { 0, 2, 1, 3 } } }, BAD },
    { "csr, not to the end", "sparse_csr", 2, { 2, 4 },
      { VALUES(3), { "indices", "u64", 3, { 0, 3, 1 } },
        { "indptr", "u64", 3, { 0, 2, 2 } } }, BAD },
    { "csr, past the end", "sparse_csr", 2, { 2, 4 },
      { VALUES(3), { "indices", "u64", 3, { 0, 3, 1 } },
        { "indptr", "u64", 3, { 0, 2, 4 } } }, BAD },
    { "csr of nothing", "sparse_csr", 2, { 2, 4 },
      { VALUES(0), { "indices", "u64", 0, { 0 } },
        { "indptr", "u64", 3, { 0, 0, 0 } } }, OK },
    { "csr of no rows", "sparse_csr", 2, { 0, 4 },
      { VALUES(0), { "indices", "u64", 0, { 0 } },
        { "indptr", "u64", 1, { 0 } } }, OK },
    { "csr of no columns", "sparse_csr", 2, { 1, 0 },
      { VALUES(1), { "indices", "u64", 1, { 0 } },
        { "indptr", "u64", 2, { 0, 1 } } }, BAD },

    { "coo", "sparse_coo", 2, { 2, 4 },
      { VALUES(3), { "coords", "u64", 6, { 0, 1, 1, 3, 0, 3 } } }, OK },
    { "coo, twice", "sparse_coo", 2, { 2, 4 },
      { VALUES(2), { "coords", "u8", 4, { 1, 1, 3, 3 } } }, OK },
    { "coo, the other way round", "sparse_coo", 2, { 2, 4 },
      { VALUES(3), { "coords", "u64", 6, { 0, 3, 1, 1, 0, 1 } } }, BAD },
    { "coo, past the last dimension", "sparse_coo", 3, { 2, 4, 5 },
      { VALUES(1), { "coords", "u16", 3, { 1, 3, 5 } } }, BAD },
    { "coo of nothing", "sparse_coo", 2, { 2, 4 },
      { VALUES(0), { "coords", "u64", 0, { 0 } } }, OK },

    { "2: csr", "zt.sparse_csr/1", 2, { 3, 4 },
      { VALUES(4), { "indices", "u32", 4, { 1, 3, 0, 1 } },
        { "indptr", "u32", 4, { 0, 2, 2, 4 } } }, OK },
    { "2: csr, a row descends", "zt.sparse_csr/1", 2, { 2, 4 },
      { VALUES(3), { "indices", "u32", 3, { 3, 0, 1 } },
        { "indptr", "u32", 3, { 0, 2, 3 } } }, BAD },
    { "2: csr, one twice", "zt.sparse_csr/1", 2, { 2, 4 },
      { VALUES(3), { "indices", "u32", 3, { 3, 3, 1 } },
        { "indptr", "u32", 3, { 0, 2, 3 } } }, BAD },
    { "2: csr, one twice in two rows", "zt.sparse_csr/1", 2, { 2, 4 },
      { VALUES(2), { "indices", "u32", 2, { 3, 3 } },
        { "indptr", "u32", 3, { 0, 1, 2 } } }, OK },
    { "2: csr, the last row descends", "zt.sparse_csr/1", 2, { 3, 4 },
      { VALUES(3), { "indices", "u32", 3, { 0, 3, 1 } },
        { "indptr", "u32", 4, { 0, 1, 1, 3 } } }, BAD },
    { "2: coo", "zt.sparse_coo/1", 2, { 2, 4 },
      { VALUES(3), { "coords", "u32", 6, { 1, 0, 1, 3, 3, 0 } } }, OK },
    { "2: coo, a cell twice", "zt.sparse_coo/1", 2, { 2, 4 },
      { VALUES(3), { "coords", "u32", 6, { 1, 0, 1, 3, 3, 3 } } }, BAD },
    { "2: coo of a line", "zt.sparse_coo/1", 1, { 8 },
      { VALUES(3), { "coords", "u64", 3, { 7, 0, 7 } } }, BAD }
};


static xet_zt_object_t      object;
static xet_zt_component_t   components[PARTS];
static uint8_t              data[PARTS][BYTES];
static uint64_t             lengths[PARTS];


static void
text(xet_zt_text_t *t, const char *s)
{
    t->data = (const uint8_t *) s;
    t->len = strlen(s);
}


/*
 * Makes the object.  If known is set, the manifest has the component lengths.
 */

static void
make(const case_t *c, int known)
{
    int                  width;
    unsigned             i, k, b;
    xet_zt_component_t  *part;

    memset(&object, 0, sizeof(object));
    memset(components, 0, sizeof(components));

    text(&object.format, c->format);
    object.rank = c->rank;
    object.has_count = 1;
    object.count = 1;
    object.components = components;

    for (i = 0; i < c->rank; i++) {
        object.shape[i] = c->shape[i];
        object.count *= c->shape[i];
    }

    for (i = 0; i < PARTS && c->lists[i].role; i++) {
        part = &components[i];

        text(&part->role, c->lists[i].role);
        text(&part->dtype, c->lists[i].dtype);

        part->element = xet_zt_dtype_find(&part->dtype, XET_ZT_CONTAINER_1);
        width = part->element->bytes;

        for (k = 0; k < c->lists[i].n; k++) {
            for (b = 0; b < (unsigned) width; b++) {
                data[i][k * width + b]
                    = (uint8_t) ((uint64_t) c->lists[i].values[k] >> 8 * b);
            }
        }

        lengths[i] = (uint64_t) c->lists[i].n * width;

        part->has_decoded = known ? 1 : 0;
        part->decoded = known ? lengths[i] : 0;
    }

    object.n = i;
}


/* Returns the final result for components in this order. */

static xet_status_t
check(xet_zt_sparse_t *s, const case_t *c, const unsigned *order, size_t step)
{
    size_t               n, pos;
    uint8_t             *piece;
    unsigned             i;
    xet_status_t         rc, found;
    xet_zt_container_t   container;

    container = (c->name[0] == '2') ? XET_ZT_CONTAINER_2 : XET_ZT_CONTAINER_1;
    found = XET_OK;

    for (i = 0; i < object.n; i++) {

        if (!xet_zt_sparse_start(s, container, &object,
                                 &components[order[i]]))
        {
            return XET_INTERNAL;
        }

        for (pos = 0; pos < lengths[order[i]]; pos += n) {
            n = (size_t) lengths[order[i]] - pos;
            n = (step < n) ? step : n;

            piece = malloc(n);
            memcpy(piece, data[order[i]] + pos, n);
            (void) xet_zt_sparse_feed(s, piece, n);
            free(piece);
        }

        rc = xet_zt_sparse_finish(s);

        if (found == XET_OK) {
            found = rc;
        }
    }

    return found;
}


static const unsigned  orders[6][PARTS] = {
    { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 2, 0, 1 }, { 1, 2, 0 },
    { 2, 1, 0 }
};


static void
test_cases(void)
{
    int               known;
    size_t            i, k, step;
    unsigned          wrong;
    xet_zt_sparse_t  *s;

    s = xet_zt_sparse_create(4096);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        wrong = 0;

        for (known = 0; known < 2; known++) {

            if (!known && cases[i].name[0] == '2') {
                continue;
            }

            make(&cases[i], known);

            for (k = 0; k < 6; k++) {

                /*
                 * two components have only orders 0 and 2; order 2 has the
                 * coordinates first, which fails if their number is unknown
                 */

                if ((object.n == 2 && (orders[k][0] == 2
                                       || orders[k][1] == 2))
                    || (object.n == 2 && !known && k == 2))
                {
                    continue;
                }

                for (step = 1; step < 64; step = step * 2 + 1) {
                    object.index++;
                    wrong += check(s, &cases[i], orders[k], step)
                             != cases[i].want;
                }
            }
        }

        xet_is_u64(wrong, 0, cases[i].name);
    }

    xet_zt_sparse_destroy(s);
}


/* Tests without memory: checks that need memory return XET_ZT_UNCHECKED. */

static void
test_memory(void)
{
    size_t            i;
    unsigned          checked, left;
    xet_status_t      rc;
    xet_zt_sparse_t  *s;

    s = xet_zt_sparse_create(0);
    checked = 0;
    left = 0;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        make(&cases[i], 1);
        object.index = i;

        rc = check(s, &cases[i], orders[0], 7);

        if (cases[i].name[0] == '2') {
            left += (rc == XET_ZT_UNCHECKED);

        } else {
            checked += (rc == cases[i].want);
        }
    }

    xet_is_u64(checked, 18, "container 1 takes no memory");
    xet_is_u64(left, 8, "container 2 is not checked without");

    /* the number of coordinates is unknown */

    make(&cases[13], 0);
    xet_is_u64(check(s, &cases[13], orders[2], 8), XET_ZT_UNCHECKED,
               "coordinates without their number");

    xet_zt_sparse_destroy(s);
}


/*
 * Checks that the memory cleared for the declared number of values is counted
 * once, after two pointers have been read.
 */

static void
test_cleared(void)
{
    xet_zt_sparse_t  *s;

    s = xet_zt_sparse_create(16 << 20);

    make(&cases[18], 1);
    components[0].decoded = (uint64_t) 4 << 24;

    xet_is_u64(xet_zt_sparse_start(s, XET_ZT_CONTAINER_2, &object,
                                   &components[2]),
               1, "pointers of many values");
    xet_is_u64(xet_zt_sparse_cleared(s), 0, "nothing yet");

    (void) xet_zt_sparse_feed(s, data[2], 8);

    xet_is_u64(xet_zt_sparse_cleared(s), (2 << 20) + 8, "memory is counted");

    (void) xet_zt_sparse_feed(s, data[2] + 8, 4);

    xet_is_u64(xet_zt_sparse_cleared(s), 0, "once");

    xet_zt_sparse_destroy(s);
}


/* Tests component lengths that differ and are only known after decoding. */

static void
test_lengths(void)
{
    unsigned          i, k, wrong;
    xet_zt_sparse_t  *s;

    s = xet_zt_sparse_create(0);
    wrong = 0;

    for (k = 0; k < 6; k++) {
        for (i = 0; i < PARTS; i++) {
            make(&cases[0], 0);
            object.index = k * PARTS + i;
            lengths[i] -= (k % 2) ? components[i].element->bytes : 1;

            wrong += check(s, &cases[0], orders[k], 5) != XET_ZT_INDICES;
        }
    }

    xet_is_u64(wrong, 0, "a component that is shorter than the others say");

    xet_zt_sparse_destroy(s);
}


/* Returns 1 if all coordinates of a case are distinct, by counting them. */

static int
distinct(const case_t *c)
{
    unsigned  i, n, cells[64];
    uint64_t  cell;

    memset(cells, 0, sizeof(cells));

    n = c->lists[0].n;

    for (i = 0; i < n; i++) {
        cell = (uint64_t) (c->lists[1].values[i] * 4
                           + c->lists[1].values[n + i]);

        if (cells[cell]++) {
            return 0;
        }
    }

    return 1;
}


static int
ascending(const case_t *c)
{
    int64_t   k;
    unsigned  row;

    for (row = 0; row < 2; row++) {
        for (k = c->lists[2].values[row] + 1;
             k < c->lists[2].values[row + 1];
             k++)
        {
            if (c->lists[1].values[k] <= c->lists[1].values[k - 1]) {
                return 0;
            }
        }
    }

    return 1;
}


static void
test_random(void)
{
    unsigned          i, k, n, wrong, bad;
    uint32_t          seed;
    case_t            coo, csr;
    xet_zt_sparse_t  *s;

    s = xet_zt_sparse_create(1024);
    seed = 1;
    wrong = 0;
    bad = 0;

    for (i = 0; i < 2000; i++) {
        memset(&coo, 0, sizeof(coo));

        coo.name = "2";
        coo.format = "zt.sparse_coo/1";
        coo.rank = 2;
        coo.shape[0] = 4;
        coo.shape[1] = 4;

        n = 1 + i % 5;

        for (k = 0; k < 2 * n; k++) {
            seed = seed * 1103515245 + 12345;
            coo.lists[1].values[k] = seed >> 16 & 3;
        }

        csr = coo;
        csr.format = "zt.sparse_csr/1";
        csr.shape[0] = 2;

        coo.lists[0].role = csr.lists[0].role = "values";
        coo.lists[0].dtype = csr.lists[0].dtype = "u8";
        coo.lists[0].n = csr.lists[0].n = n;
        coo.lists[1].role = "coords";
        coo.lists[1].dtype = csr.lists[1].dtype = "u32";
        coo.lists[1].n = 2 * n;

        csr.lists[1].role = "indices";
        csr.lists[1].n = n;
        csr.lists[2].role = "indptr";
        csr.lists[2].dtype = "u32";
        csr.lists[2].n = 3;
        csr.lists[2].values[1] = (seed >> 8) % (n + 1);
        csr.lists[2].values[2] = n;

        make(&coo, 1);
        object.index = 2 * i;
        bad += !distinct(&coo);
        wrong += check(s, &coo, orders[0], 3)
                 != (distinct(&coo) ? XET_OK : XET_ZT_INDICES);

        make(&csr, 1);
        object.index = 2 * i + 1;
        bad += !ascending(&csr);
        wrong += check(s, &csr, orders[i % 6], 3)
                 != (ascending(&csr) ? XET_OK : XET_ZT_INDICES);
    }

    xet_is_u64(wrong, 0, "random ones");
    xet_ok(bad > 500 && bad < 3500, "of both kinds: %u", bad);

    xet_zt_sparse_destroy(s);
}


int
main(void)
{
    test_cases();
    test_memory();
    test_cleared();
    test_lengths();
    test_random();

    return xet_done();
}
