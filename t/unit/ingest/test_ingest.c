
/*
 * Tests the ingest of files: for any split of the input, the data can be
 * restored from the terms and xorbs, and the file hash is right.  Known chunks
 * are not stored again, unless referencing them would fragment the file.
 */


#include "xet_test.h"
#include "ingest_store.h"


#define MIB  1048576u


static uint8_t *
noise(uint64_t seed, size_t len)
{
    size_t    i;
    uint8_t  *p;

    p = malloc(len + 8);

    for (i = 0; i < len; i += 8) {
        xet_put_u64(p + i, xet_splitmix64(&seed));
    }

    return p;
}


static void
test_sizes(void)
{
    size_t     i, k;
    store_t   *s;
    uint8_t   *data;
    uint64_t   state;
    result_t   res;

    static const size_t  sizes[] = {
        0, 1, 64, 8191, 8192, 8193, 131071, 131072, 131073, 1000000
    };
    static const size_t  steps[] = { 2 * MIB, 65536, 1000 };

    state = 1;
    data = noise(5, 1000000);

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
            s = store_create(&xet_suite_default);
            s->told = 1;

            xet_ok(take_in(s, data, sizes[i], steps[k], &state, 1, &res),
                   "%zu bytes in pieces of up to %zu", sizes[i], steps[k]);
            xet_ok(res.info.new_size == sizes[i]
                   && res.terms == (sizes[i] != 0)
                   && res.xorbs == (sizes[i] != 0),
                   "all of it new, one term");
            xet_ok((res.asked != 0) == (sizes[i] != 0),
                   "asked about the first chunk");

            xet_ok(take_in(s, data, sizes[i], steps[k], &state, 1, &res),
                   "the same again");
            xet_ok(res.info.new_size == 0 && res.xorbs == 0
                   && res.terms == (sizes[i] != 0), "nothing new");

            xet_ok(take_in(s, data, sizes[i], steps[k], &state, 0, &res)
                   && res.asked == 0 && res.info.new_size == sizes[i],
                   "and without asking");

            store_destroy(s);
        }
    }

    free(data);
}


/*
 * Checks that no xorb is larger than 64 MiB, and that a second ingest of the
 * same file stores no new xorbs.
 */

static void
test_large(void)
{
    store_t   *s;
    uint8_t   *data;
    uint64_t   state;
    result_t   res;

    state = 1;
    data = noise(9, 150 * MIB);
    s = store_create(&xet_suite_default);
    s->told = 1;

    xet_ok(take_in(s, data, 150 * MIB, MIB, &state, 1, &res), "150 MiB");
    xet_ok(res.xorbs == 3 && res.terms == 3 && res.info.new_size == 150 * MIB,
           "three xorbs, three terms");

    xet_ok(take_in(s, data, 150 * MIB, MIB, &state, 1, &res), "again");
    xet_ok(res.xorbs == 0 && res.terms == 3 && res.info.new_size == 0,
           "each xorb leads to the next");
    xet_ok(res.asked < 12, "with a few questions");

    /*
     * as if the ingest had been interrupted: only the first two xorbs are
     * stored
     */

    store_forget(s, 2);

    xet_ok(take_in(s, data, 150 * MIB, MIB, &state, 1, &res), "a retry");
    xet_ok(res.xorbs == 1 && res.terms == 3
           && res.info.new_size < 24 * MIB, "only the last xorb is new");

    store_destroy(s);
    free(data);
}


static void
test_repeats(void)
{
    size_t     i;
    store_t   *s;
    uint8_t   *data, *part;
    uint64_t   state;
    result_t   res;

    state = 1;

    /* of ten repetitions, only one is stored, plus the chunks at the seams */

    part = noise(3, 3 * MIB);
    data = malloc(30 * MIB);

    for (i = 0; i < 10; i++) {
        memcpy(data + i * 3 * MIB, part, 3 * MIB);
    }

    s = store_create(&xet_suite_default);

    xet_ok(take_in(s, data, 30 * MIB, MIB, &state, 0, &res), "ten times 3 MiB");
    xet_ok(res.info.new_size < 4 * MIB, "stored once");
    xet_ok(res.terms < 24, "in long terms");

    store_destroy(s);

    /* zeros: all chunks are equal */

    memset(data, 0, 30 * MIB);
    s = store_create(&xet_suite_default);

    xet_ok(take_in(s, data, 30 * MIB, MIB, &state, 0, &res), "zeros");
    xet_ok(res.info.new_size <= 2 * MIB, "are hardly stored");
    xet_ok(res.terms < 128 + 30, "in terms of eight, after the first ones");

    store_destroy(s);

    free(data);
    free(part);
}


/*
 * Tests a chunk that occurs twice in a file, among new chunks.  A thrifty
 * ingest stores the chunk again if it is near the start of the file, and
 * references it otherwise.  It always references long runs of known chunks.
 */

static void
test_thrifty(void)
{
    size_t     before;
    store_t   *s;
    uint8_t   *data;
    uint64_t   state;
    result_t   res;

    state = 1;

    for (before = 64 * 1024; before <= 4 * MIB; before *= 64) {
        data = noise(7, before + MIB);

        memset(data, 0, 128 * 1024);
        memset(data + before + 256 * 1024, 0, 256 * 1024);

        s = store_create(&xet_suite_default);
        xet_ok(take_in(s, data, before + MIB, MIB, &state, 0, &res)
               && res.info.new_size == before + MIB - 128 * 1024,
               "a chunk again, after %zu bytes", before);
        xet_ok(res.terms == 3, "is a term");
        store_destroy(s);

        s = store_create(&xet_suite_default);
        s->thrifty = 1;
        xet_ok(take_in(s, data, before + MIB, MIB, &state, 0, &res)
               && res.info.new_size
                  == before + MIB - ((before > MIB) ? 128 * 1024 : 0),
               "of a thrifty one");
        xet_ok(res.terms == ((before > MIB) ? 3 : 1),
               "is paid for, or is none");
        store_destroy(s);

        free(data);
    }

    data = noise(9, 6 * MIB);
    memcpy(data + 3 * MIB, data, 3 * MIB);

    s = store_create(&xet_suite_default);
    s->thrifty = 1;
    xet_ok(take_in(s, data, 6 * MIB, MIB, &state, 0, &res)
           && res.info.new_size < 4 * MIB && res.terms <= 3,
           "a long run is taken");
    store_destroy(s);

    free(data);
}


/* Tests a file in which chunks of a stored file and new chunks alternate. */

static void
test_fragments(void)
{
    int             cut;
    size_t          i, n, len, pos;
    store_t        *s;
    uint8_t        *data, *other, *mixed, *fresh;
    uint64_t        state;
    result_t        res;
    xet_chunker_t   c;

    state = 1;
    data = noise(21, 40 * MIB);
    fresh = noise(22, 40 * MIB);
    mixed = malloc(80 * MIB);
    s = store_create(&xet_suite_default);
    s->told = 1;

    xet_ok(take_in(s, data, 40 * MIB, MIB, &state, 1, &res), "a stored file");

    /*
     * Known and new chunks alternate.  Each chunk is copied from data that was
     * chunked before, so that known chunks get the same boundaries again.
     */

    xet_chunker_init(&c, s->suite);
    len = 0;
    pos = 0;
    other = fresh;

    for (i = 0; i < 500; i++) {
        n = xet_chunker_feed(&c, data + pos, 40 * MIB - pos, &cut);
        memcpy(mixed + len, data + pos, n);
        pos += n;
        len += n;

        n = xet_chunker_feed(&c, other, 200000, &cut);
        memcpy(mixed + len, other, n);
        other += n;
        len += n;
    }

    xet_ok(take_in(s, mixed, len, MIB, &state, 1, &res), "cut to pieces");
    xet_ok(res.terms < 200, "does not become terms of one chunk");
    xet_ok(res.info.new_size > len * 3 / 4, "but is stored again");

    /* a run of twelve known chunks is long enough to become a term */

    xet_chunker_init(&c, s->suite);
    len = 0;
    pos = 0;
    other = fresh + 20 * MIB;

    for (i = 0; i < 400; i++) {
        if (i % 24 < 12) {
            n = xet_chunker_feed(&c, data + pos, 40 * MIB - pos, &cut);
            memcpy(mixed + len, data + pos, n);
            pos += n;

        } else {
            n = xet_chunker_feed(&c, other, 200000, &cut);
            memcpy(mixed + len, other, n);
            other += n;
        }

        len += n;
    }

    xet_ok(take_in(s, mixed, len, MIB, &state, 1, &res), "in long runs");
    xet_ok(res.info.new_size < len * 6 / 10, "what is known is not stored");

    /*
     * runs of four chunks are too short to become terms, unless the chunks are
     * known from an interrupted ingest
     */

    xet_chunker_init(&c, s->suite);
    len = 0;
    pos = 0;
    other = fresh;

    for (i = 0; i < 500; i++) {
        if (i % 8 < 4) {
            n = xet_chunker_feed(&c, data + pos, 40 * MIB - pos, &cut);
            memcpy(mixed + len, data + pos, n);
            pos += n;

        } else {
            n = xet_chunker_feed(&c, other, 200000, &cut);
            memcpy(mixed + len, other, n);
            other += n;
        }

        len += n;
    }

    store_forget(s, 1);
    s->made = 1;

    xet_ok(take_in(s, mixed, len, MIB, &state, 0, &res)
           && res.info.new_size < len * 6 / 10, "short runs of what was made");
    xet_ok(take_in(s, mixed, len, MIB, &state, 0, &res)
           && res.info.new_size == 0, "are taken as they are");

    store_destroy(s);
    free(data);
    free(fresh);
    free(mixed);
}


/*
 * Tests a suite with chunks of about 100 bytes and xorbs of 20 chunks: many
 * files that combine a few parts.  One file has more terms than may wait until
 * the xorb being written has its hash.
 */

static void
test_small_suite(void)
{
    int          ok;
    size_t       i, k, len, n;
    store_t     *s;
    uint8_t     *parts, *data;
    uint64_t     state, seed;
    result_t     res;
    xet_suite_t  suite;

    suite = xet_suite_default;
    suite.chunk_mask = UINT64_C(0x3f) << 58;
    suite.chunk_min = 80;
    suite.chunk_max = 300;
    suite.xorb_chunks_max = 20;
    suite.xorb_raw_target = 4096;
    suite.dedup_modulus = 4;

    ok = 1;
    n = 0;
    data = malloc(MIB);

    for (seed = 1; ok && seed <= 12; seed++) {
        state = seed;
        parts = noise(seed, 65536);

        s = store_create(&suite);
        s->told = seed % 3;

        for (i = 0; ok && i < 6; i++) {
            len = 0;

            while (len < 60000 + 10000 * i) {
                k = xet_splitmix64(&state) % 3000 + 1;
                memcpy(data + len, parts + xet_splitmix64(&state) % 60000, k);
                len += k;
            }

            ok = take_in(s, data, len, seed % 2 ? 5000 : 77, &state, 1, &res);
            n++;
        }

        store_destroy(s);
        free(parts);
    }

    xet_ok(ok, "%zu files of few parts", n);

    /* one open xorb; known and new chunks alternate many times */

    suite.xorb_chunks_max = XET_XORB_CHUNKS_MAX;
    suite.xorb_raw_target = 64 * MIB;

    s = store_create(&suite);
    s->told = 1;
    state = 7;
    parts = noise(99, 65536);

    ok = take_in(s, parts, 65536, 5000, &state, 1, &res);

    free(data);
    data = malloc(6 * MIB);

    for (len = 0; len + 8192 < 6 * MIB; len += k) {
        k = 2000;
        memcpy(data + len, parts + xet_splitmix64(&state) % 60000, k);
    }

    ok = ok && take_in(s, data, len, 5000, &state, 1, &res);

    xet_ok(ok && res.terms > 2048, "a file of many terms");
    xet_ok(s->n > 2 && s->xorbs[1].n < XET_XORB_CHUNKS_MAX,
           "its first xorb was closed for them");

    store_destroy(s);
    free(parts);
    free(data);
}


/*
 * Tests keyed dedup responses.  Known chunks before an eligible chunk must be
 * found, too.
 */

static void
test_keyed_ahead(void)
{
    store_t      *s;
    uint8_t      *data;
    uint64_t      state, one;
    result_t      res;
    xet_suite_t   suite;

    static const uint8_t  keys[2][XET_HASH_LEN] = { { 1 }, { 2 } };

    suite = xet_suite_default;
    suite.dedup_modulus = 64;

    state = 1;
    data = noise(51, 20 * MIB);
    s = store_create(&suite);
    s->told = 1;
    s->key = keys[0];

    xet_ok(take_in(s, data, 20 * MIB, MIB, &state, 1, &res), "a stored file");
    xet_ok(take_in(s, data, 20 * MIB, MIB, &state, 1, &res)
           && res.info.new_size == 0 && res.terms == 1,
           "is known under a key");

    s->key = keys[1];

    xet_ok(take_in(s, data, 20 * MIB, MIB, &state, 1, &res)
           && res.info.new_size == 0, "and under another one");

    data[0] ^= 1;

    xet_ok(take_in(s, data, 20 * MIB, 32 * MIB, &state, 1, &res),
           "with another first chunk");
    one = res.info.new_size;

    store_forget(s, 1);
    s->ahead = 1024;

    xet_ok(take_in(s, data, 20 * MIB, 1000, &state, 1, &res)
           && res.info.new_size <= one, "in small pieces, looking ahead");

    store_forget(s, 1);
    state = 3;

    xet_ok(take_in(s, data, 20 * MIB, 20 * MIB, &state, 1, &res)
           && res.info.new_size <= 3 * XET_CHUNK_MAX && res.info.new_size < one,
           "looking ahead, only that chunk is new");

    store_destroy(s);
    free(data);
}


/* Sums over the terms of several files. */

typedef struct {
    store_t    *store;
    uint64_t    sizes[4];
    uint32_t    chunks[4];
    uint32_t    cut;
    uint32_t    last;
    int         bad;
} files_t;


static xet_status_t
files_write(void *ctx, const uint8_t *data, size_t len)
{
    files_t *f = ctx;

    return store_write(f->store, data, len);
}


static xet_status_t
files_term(void *ctx, const xet_ingest_term_t *term)
{
    files_t *f = ctx;

    f->bad |= term->file > 3 || term->file < f->last;
    f->last = term->file;
    f->sizes[term->file & 3] += term->raw_length;
    f->chunks[term->file & 3] += term->chunk_end - term->chunk_start;

    return store_term(f->store, term);
}


static xet_status_t
files_chunk(void *ctx, const xet_hash_t *hash)
{
    files_t *f = ctx;

    f->cut++;

    return XET_OK;
}


static void
test_files(void)
{
    int                 ok;
    size_t              i, n, taken;
    files_t             f;
    uint8_t            *data;
    uint64_t            news[4];
    xet_hash_t          hash;
    xet_ingest_t       *in;
    xet_ingest_conf_t   conf;

    static const size_t  sizes[4] = { 3 * MIB, 0, 3 * MIB, 50000 };

    data = noise(61, 3 * MIB);

    memset(&f, 0, sizeof(f));
    memset(&conf, 0, sizeof(conf));

    f.store = store_create(&xet_suite_default);

    conf.suite = &xet_suite_default;
    conf.ahead = 16;
    conf.known = XET_INGEST_KNOWN;
    conf.write = files_write;
    conf.term = files_term;
    conf.chunk = files_chunk;
    conf.ctx = &f;

    in = xet_ingest_create(&conf);
    ok = 1;

    for (i = 0; i < 4; i++) {
        if (i) {
            xet_ingest_next(in);
        }

        ok = ok && xet_ingest_feed(in, data, sizes[i], &taken) == XET_OK
             && taken == sizes[i] && xet_ingest_end(in) == XET_OK;

        reference(&xet_suite_default, data, sizes[i], &hash);

        ok = ok && xet_hash_equal(&hash, &xet_ingest_info(in)->hash)
             && xet_ingest_info(in)->size == sizes[i];

        news[i] = xet_ingest_info(in)->new_size;
    }

    xet_ok(ok && f.store->nterms == 0, "four files, and no xorb is full");

    for (n = 0; ok && xet_ingest_finish(in) != XET_OK; n++) {
        ok = serve(f.store, in);
    }

    xet_ok(ok && n == 1 && f.store->n == 1, "they share one");
    xet_ok(news[0] == sizes[0] && news[2] == 0, "the same file is known");
    xet_ok(!f.bad && memcmp(f.sizes, (uint64_t[]) { sizes[0], sizes[1],
                            sizes[2], sizes[3] }, sizeof(f.sizes)) == 0
           && f.cut == f.chunks[0] + f.chunks[2] + f.chunks[3],
           "each has the terms of its own");

    xet_ingest_destroy(in);
    store_destroy(f.store);
    free(data);
}


/*
 * Checks that a file that is cut, packed and placed ends in the same xorb as a
 * file that is fed, whatever the encoding of its chunks.
 */

static void
test_same(void)
{
    size_t      i;
    store_t    *s;
    uint8_t    *data;
    uint64_t    state;
    result_t    res;
    xet_hash_t  hash[2];
    uint64_t    stored[2];

    data = noise(4, 8 * MIB);

    memset(data + MIB, 'a', 2 * MIB);

    for (i = 4 * MIB; i < 6 * MIB; i += 2) {
        data[i] = 0x3f;
    }

    for (pieces = 0, i = 0; i < 2; i++, pieces = PIECES_MAX) {
        state = 1;
        s = store_create(&xet_suite_default);

        xet_ok(take_in(s, data, 8 * MIB, 256 * 1024, &state, 1, &res)
               && s->n == 1, "a file with %u pieces waiting", pieces);

        hash[i] = s->xorbs[0].hash;
        stored[i] = s->size;

        store_destroy(s);
    }

    xet_ok(xet_hash_equal(&hash[0], &hash[1]), "the same xorb");
    xet_ok(stored[0] == stored[1] && stored[0] < 6 * MIB,
           "in the same bytes: %llu", (unsigned long long) stored[1]);

    free(data);
}


int
main(void)
{
    test_same();

    pieces = 1;
    test_sizes();
    test_repeats();

    pieces = PIECES_MAX;
    test_sizes();
    test_repeats();
    test_thrifty();
    test_fragments();
    test_small_suite();
    test_large();

    pieces = 0;
    test_sizes();
    test_repeats();
    test_thrifty();
    test_fragments();
    test_keyed_ahead();
    test_files();
    test_small_suite();
    test_large();

    return xet_done();
}
