
/*
 * Compares plans of several files with a simple model, and tests the errors for
 * corrupt data and invalid calls.
 */


#include "xet_test.h"
#include "xet_test_plan.h"


#define MODEL_XORBS   4
#define MODEL_CHUNKS  24
#define MODEL_FILES   6
#define MODEL_TERMS   8                /* terms per file */
#define MODEL_TEXT    32768


/* Element i + 1 has the ends of chunk i of the xorb. */

typedef struct {
    uint8_t     hash[XET_HASH_LEN];
    uint32_t    raw[MODEL_CHUNKS + 1];
    uint32_t    stored[MODEL_CHUNKS + 1];
    uint8_t     used[MODEL_CHUNKS + 1];
} model_xorb_t;


typedef struct {
    uint8_t     hash[XET_HASH_LEN];
    uint8_t     packed[MODEL_TERMS * XET_TERM_LEN];
    unsigned    xorbs[MODEL_TERMS];
    unsigned    n;
    uint64_t    size;
} model_file_t;


static model_xorb_t  model_xorbs[MODEL_XORBS];
static model_file_t  model_files[MODEL_FILES];
static unsigned      model_nfiles;
static char          model_text[MODEL_TEXT];


static uint32_t
model_below(uint64_t *state, uint32_t n)
{
    return (uint32_t) (xet_test_random(state) % n);
}


static void
model_random(uint64_t *state)
{
    uint32_t       i, k, start, end;
    xet_term_t     t;
    model_file_t  *f;
    model_xorb_t  *x;

    memset(model_xorbs, 0, sizeof(model_xorbs));

    for (i = 0; i < MODEL_XORBS; i++) {
        x = &model_xorbs[i];

        xet_test_random_hash(state, x->hash);

        if (i & 1) {                   /* hashes that differ at the end */
            memcpy(x->hash, model_xorbs[i - 1].hash, 30);
        }

        for (k = 0; k < MODEL_CHUNKS; k++) {
            x->raw[k + 1] = x->raw[k] + 1 + model_below(state, 1000);
            x->stored[k + 1] = x->stored[k] + 9 + model_below(state, 1000);
        }
    }

    model_nfiles = model_below(state, MODEL_FILES + 1);

    for (i = 0; i < model_nfiles; i++) {
        f = &model_files[i];
        f->n = model_below(state, MODEL_TERMS + 1);
        f->size = 0;

        xet_test_random_hash(state, f->hash);

        for (k = 0; k < f->n; k++) {
            f->xorbs[k] = model_below(state, MODEL_XORBS);
            x = &model_xorbs[f->xorbs[k]];

            start = model_below(state, MODEL_CHUNKS);
            end = start + 1 + model_below(state, 3);
            end = (end > MODEL_CHUNKS) ? MODEL_CHUNKS : end;

            memcpy(t.xorb.bytes, x->hash, XET_HASH_LEN);
            t.chunk_start = start;
            t.chunk_end = end;
            t.stored_start = x->stored[start];
            t.stored_end = x->stored[end];
            t.raw_length = x->raw[end] - x->raw[start];
            t.copy_id = xet_test_copy_id(&t.xorb);

            xet_term_pack(f->packed + k * XET_TERM_LEN, &t);

            memset(x->used + start, 1, end - start);
            f->size += t.raw_length;
        }
    }
}


static char *
model_hash(char *text, const uint8_t *hash)
{
    xet_hash_t  h;

    memcpy(h.bytes, hash, XET_HASH_LEN);

    return (char *) xet_hash_print((uint8_t *) text, &h);
}


/* Prints an entry for each run of used chunks; at least one chunk is used. */

static char *
model_xorb_print(char *text, const model_xorb_t *x)
{
    uint32_t  start, end;

    *text++ = '"';
    text = model_hash(text, x->hash);
    text += sprintf(text, "\":[");

    for (start = 0; start < MODEL_CHUNKS; start = end + 1) {

        for (end = start; x->used[end]; end++) {
            /* void */
        }

        if (end == start) {
            continue;
        }

        text += sprintf(text, "{\"range\":{\"start\":%u,\"end\":%u},"
                              "\"url\":\"%02x,%u\",\"url_range\":"
                              "{\"start\":%u,\"end\":%u}},",
                        start, end, x->hash[31], start, x->stored[start],
                        x->stored[end] - 1);
    }

    text--;                            /* the last comma */

    return text + sprintf(text, "],");
}


static size_t
model_print(void)
{
    char          *text;
    uint32_t       i, k;
    uint8_t        printed[MODEL_XORBS];
    xet_term_t     t;
    model_file_t  *f;

    text = model_text + sprintf(model_text, "{\"files\":{");

    for (i = 0; i < model_nfiles; i++) {
        f = &model_files[i];

        text += sprintf(text, "%s\"", i ? "," : "");
        text = model_hash(text, f->hash);
        text += sprintf(text, "\":[");

        for (k = 0; k < f->n; k++) {
            (void) xet_term_unpack(&t, f->packed + k * XET_TERM_LEN);

            text += sprintf(text, "%s{\"hash\":\"", k ? "," : "");
            text = model_hash(text, t.xorb.bytes);
            text += sprintf(text, "\",\"unpacked_length\":%u,\"range\":"
                                  "{\"start\":%u,\"end\":%u}}",
                            t.raw_length, t.chunk_start, t.chunk_end);
        }

        text += sprintf(text, "]");
    }

    text += sprintf(text, "},\"fetch_info\":{");

    memset(printed, 0, sizeof(printed));

    for (i = 0; i < model_nfiles; i++) {
        f = &model_files[i];

        for (k = 0; k < f->n; k++) {

            if (!printed[f->xorbs[k]]) {
                printed[f->xorbs[k]] = 1;
                text = model_xorb_print(text, &model_xorbs[f->xorbs[k]]);
            }
        }
    }

    text -= text[-1] == ',';
    text += sprintf(text, "}}");

    return (size_t) (text - model_text);
}


/* Writes the last byte of the xorb's hash and the index of the first chunk. */

static xet_status_t
test_url(void *ctx, xet_buf_t *b, const xet_hash_t *xorb,
    const xet_plan_range_t *ranges, size_t n)
{
    int   len;
    char  text[64];

    len = snprintf(text, sizeof(text), "%02x,%u", xorb->bytes[31],
                   ranges[0].chunk_start);
    xet_buf_write(b, text, (size_t) len);

    return (n == 1) ? XET_OK : XET_INTERNAL;
}


static xet_status_t
test_build(xet_plan_t *p, xet_test_pool_t *pool, uint64_t *state)
{
    uint32_t             i, k, n, at;
    uint64_t             offset;
    xet_hash_t           hash;
    xet_status_t         status;
    const model_file_t  *f;

    status = xet_plan_init_files(p, xet_test_alloc, pool,
                                 model_nfiles + model_below(state, 2));

    for (i = 0; i < model_nfiles && status == XET_OK; i++) {
        f = &model_files[i];

        memcpy(hash.bytes, f->hash, XET_HASH_LEN);
        status = xet_plan_file(p, &hash, f->size);

        for (at = 0, offset = 0; at < f->n && status == XET_OK; at += n) {
            n = 1 + model_below(state, 4);
            n = (n > f->n - at) ? f->n - at : n;

            status = xet_plan_add(p, f->packed + at * XET_TERM_LEN,
                                  n * XET_TERM_LEN, offset);

            for (k = 0; k < n; k++) {
                offset += xet_get_u32(f->packed + (at + k) * XET_TERM_LEN
                                      + 44);
            }
        }

        if (f->n == 0 && status == XET_OK) {
            status = xet_plan_add(p, NULL, 0, 0);
        }
    }

    if (status == XET_OK && xet_plan_edges(p) != 0) {
        return XET_INTERNAL;
    }

    return (status == XET_OK) ? xet_plan_finish(p) : status;
}


static void
test_model(void)
{
    char               *text;
    size_t              len, want;
    uint64_t            state;
    unsigned            i, terms, merged, failed;
    xet_buf_t           b;
    xet_plan_t          p;
    xet_status_t        status;
    xet_test_pool_t     pool;
    xet_plan_writer_t   w;

    memset(&pool, 0, sizeof(pool));

    state = 99;
    terms = 0;
    merged = 0;
    failed = 0;

    for (i = 0; i < 10000 && failed == 0; i++) {
        model_random(&state);
        want = model_print();

        status = test_build(&p, &pool, &state);

        if (status == XET_OK) {
            xet_buf_init(&b, xet_test_alloc, &pool, 0);
            xet_plan_writer_init(&w, &p, XET_PLAN_BATCH, test_url, NULL, 1);

            do {
                status = xet_plan_writer_next(&w, &b,
                                              model_below(&state, 2000));
            } while (status == XET_AGAIN);
        }

        text = (status == XET_OK)
               ? (char *) xet_test_flatten(&pool, &b, &len) : NULL;

        if (text == NULL || len != want
            || memcmp(text, model_text, want) != 0)
        {
            printf("# status %u\n#  got %s\n# want %s\n", (unsigned) status,
                   text ? text : "nothing", model_text);
            failed++;
        }

        terms += p.n;
        merged += p.n > p.nranges && p.nranges > p.nxorbs;

        xet_test_pool_free(&pool);
    }

    xet_is_u64(failed, 0, "bodies of random files are those of the model");
    xet_ok(terms > 100000, "%u terms", terms);
    xet_ok(merged > 5000, "%u with terms that merge and some that don't",
           merged);
}


static void
test_misuse(void)
{
    uint8_t          packed[3 * XET_TERM_LEN];
    xet_hash_t       hash;
    xet_plan_t       p;
    xet_range_t      want;
    xet_test_pool_t  pool;
    xet_plan_ends_t  ends;

    memset(&pool, 0, sizeof(pool));
    memset(&hash, 1, sizeof(hash));
    memset(&ends, 0, sizeof(ends));

    xet_test_term(packed, 1, 0, 0, 10);
    xet_test_term(packed + XET_TERM_LEN, 2, 0, 5, 10);
    xet_test_term(packed + 2 * XET_TERM_LEN, 1, 0, 10, 20);

    want.start = 0;
    want.end = 1000;
    xet_plan_init(&p, xet_test_alloc, &pool, &want);
    xet_is_u64(xet_plan_file(&p, &hash, 1000), XET_INTERNAL,
               "a file for the plan of a range");

    xet_is_u64(xet_plan_init_files(&p, xet_test_alloc, &pool, 0), XET_OK,
               "a plan of no files");
    xet_is_u64(pool.n, 0, "takes no memory");
    xet_is_u64(xet_plan_file(&p, &hash, 0), XET_INTERNAL, "takes none");

    xet_is_u64(xet_plan_init_files(&p, xet_test_alloc, &pool, 2), XET_OK,
               "two files");
    xet_is_u64(pool.size, 72, "of 36 bytes");
    xet_is_u64(xet_plan_add(&p, packed, XET_TERM_LEN, 0), XET_INTERNAL,
               "a term before the first");
    xet_is_u64(xet_plan_file(&p, &hash, 1000), XET_OK, "the first");
    xet_is_u64(xet_plan_add(&p, packed, XET_TERM_LEN, 1), XET_PLAN_DAMAGED,
               "does not begin at 1");
    xet_is_u64(xet_plan_file(&p, &hash, 1), XET_PLAN_DAMAGED,
               "the second, too early");
    xet_is_u64(xet_plan_finish(&p), XET_PLAN_DAMAGED, "finish, too early");
    xet_is_u64(xet_plan_add(&p, packed, XET_TERM_LEN, 0), XET_OK, "its term");
    xet_is_u64(xet_plan_add(&p, packed, 0, 1000), XET_OK, "and no more");
    xet_is_u64(xet_plan_trim(&p, XET_PLAN_FIRST, &ends), XET_INTERNAL,
               "is not trimmed");
    xet_is_u64(xet_plan_file(&p, &hash, 500), XET_OK, "the second");
    xet_is_u64(xet_plan_add(&p, packed + XET_TERM_LEN, XET_TERM_LEN, 1000),
               XET_PLAN_DAMAGED,
               "does not go on from the first");
    xet_is_u64(xet_plan_add(&p, packed + XET_TERM_LEN, XET_TERM_LEN, 0),
               XET_OK, "its term");
    xet_is_u64(xet_plan_file(&p, &hash, 0), XET_INTERNAL, "one past max");
    xet_is_u64(xet_plan_edges(&p), 0, "no edges");
    xet_is_u64(xet_plan_finish(&p), XET_OK, "finish");
    xet_is_u64(p.files[0].end, 1, "a term");
    xet_is_u64(p.files[1].end, 2, "and another");
    xet_is_u64(p.skip, 0, "no offset");
    xet_is_u64(xet_plan_add(&p, packed + 2 * XET_TERM_LEN, XET_TERM_LEN, 500),
               XET_PLAN_DAMAGED,
               "a term behind the file");

    (void) xet_plan_init_files(&p, xet_test_alloc, &pool, 1);
    (void) xet_plan_file(&p, &hash, 1000);
    xet_is_u64(xet_plan_add(&p, packed, 2 * XET_TERM_LEN, 0), XET_PLAN_DAMAGED,
               "a term too many");

    (void) xet_plan_init_files(&p, xet_test_alloc, &pool, 1);
    (void) xet_plan_file(&p, &hash, 999);
    xet_is_u64(xet_plan_add(&p, packed, XET_TERM_LEN, 0), XET_PLAN_DAMAGED,
               "a term too long");

    (void) xet_plan_init_files(&p, xet_test_alloc, &pool, 1);
    (void) xet_plan_file(&p, &hash, 0);
    xet_is_u64(xet_plan_add(&p, packed, XET_TERM_LEN, 0), XET_PLAN_DAMAGED,
               "a term of an empty file");

    (void) xet_plan_init_files(&p, xet_test_alloc, &pool, 1);
    (void) xet_plan_file(&p, &hash, (uint64_t) INT64_MAX + 1);
    p.position = (uint64_t) INT64_MAX - 999;
    xet_is_u64(xet_plan_add(&p, packed, XET_TERM_LEN,
                            (uint64_t) INT64_MAX - 999),
               XET_PLAN_DAMAGED, "a file past 2^63 - 1");

    /* two files that put a chunk at different offsets */

    xet_put_u32(packed + 2 * XET_TERM_LEN + 36, 501);
    (void) xet_plan_init_files(&p, xet_test_alloc, &pool, 2);
    (void) xet_plan_file(&p, &hash, 1000);
    (void) xet_plan_add(&p, packed, XET_TERM_LEN, 0);
    (void) xet_plan_file(&p, &hash, 1000);
    xet_is_u64(xet_plan_add(&p, packed + 2 * XET_TERM_LEN, XET_TERM_LEN, 0),
               XET_OK, "another file");
    xet_is_u64(xet_plan_finish(&p), XET_PLAN_DAMAGED, "contradicts the first");

    xet_test_pool_free(&pool);
}


static void
test_memory(void)
{
    uint8_t          packed[2 * XET_TERM_LEN];
    unsigned         limit, k, refused;
    xet_hash_t       hash;
    xet_plan_t       p;
    xet_status_t     status;
    xet_test_pool_t  pool;

    memset(&pool, 0, sizeof(pool));
    memset(&hash, 1, sizeof(hash));

    xet_test_term(packed, 1, 0, 0, 10);
    xet_test_term(packed + XET_TERM_LEN, 2, 0, 5, 10);

    xet_is_u64(xet_plan_init_files(&p, xet_test_alloc, &pool, SIZE_MAX),
               XET_NOMEM, "more files than there is memory");

    for (k = 0; k < 2; k++) {          /* 0: without a reserve, 1: with one */

        for (limit = 1, refused = 0; limit < 20; limit++) {
            xet_test_pool_free(&pool);
            pool.limit = limit;

            status = xet_plan_init_files(&p, xet_test_alloc, &pool, 2);

            if (status == XET_OK && k) {
                status = xet_plan_reserve(&p, 3);
            }

            if (status == XET_OK) {
                status = xet_plan_file(&p, &hash, 1000);
            }

            if (status == XET_OK) {
                status = xet_plan_add(&p, packed, XET_TERM_LEN, 0);
            }

            if (status == XET_OK) {
                status = xet_plan_file(&p, &hash, 1500);
            }

            if (status == XET_OK) {
                status = xet_plan_add(&p, packed, 2 * XET_TERM_LEN, 0);
            }

            if (status == XET_OK) {
                status = xet_plan_finish(&p);
            }

            if (status == XET_OK) {
                break;
            }

            refused += status == XET_NOMEM;
        }

        xet_is_u64(refused, limit - 1, "out of memory at every allocation");
        xet_is_u64(limit, k ? 3 : 4, "which are so many");
        xet_is_u64(p.n, 3, "three terms");

        xet_is_u64(pool.size, 2 * 36 + 3 * (56 + 8) + (k ? 0 : 56),
                   "and so many bytes");
    }

    pool.limit = 0;
    xet_is_u64(xet_plan_reserve(&p, 3), XET_OK, "room that is there");
    xet_is_u64(pool.n, 3, "takes no memory");
    xet_is_u64(xet_plan_reserve(&p, (1u << 25) + 1), XET_PLAN_DAMAGED,
               "too many terms");
    xet_is_u64(xet_plan_reserve(&p, SIZE_MAX), XET_PLAN_DAMAGED,
               "far too many");
    xet_is_u64(xet_plan_reserve(&p, 100), XET_OK, "more room");
    xet_is_u64(p.terms[2].raw_length, 500, "the terms are in it");

    xet_test_pool_free(&pool);
}


int
main(void)
{
    test_model();
    test_misuse();
    test_memory();

    return xet_done();
}
