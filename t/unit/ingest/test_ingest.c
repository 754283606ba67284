
/*
 * Taking in files: whatever the pieces, the data comes back from the terms
 * and the xorbs, and the hash is that of the data; what is known is not
 * stored again, unless that would cut the file to pieces.
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


/* Xorbs are full at 64 MiB; who sends them again finds one after the other. */

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

    /* what a failure has left: the first two */

    s->n--;
    free(s->xorbs[2].hashes);
    free(s->xorbs[2].ends);
    free(s->xorbs[2].raw);

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

    /* the same part again and again: its chunks once, and the seams */

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

    /* zeros: all chunks are the same one */

    memset(data, 0, 30 * MIB);
    s = store_create(&xet_suite_default);

    xet_ok(take_in(s, data, 30 * MIB, MIB, &state, 0, &res), "zeros");
    xet_ok(res.info.new_size <= 2 * MIB, "are hardly stored");
    xet_ok(res.terms < 128 + 30, "in terms of eight, after the first ones");

    store_destroy(s);

    free(data);
    free(part);
}


/* A stored file whose chunks come back one by one, each among new ones. */

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

    /* by turns: chunks end where they would alone */

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

    /* in runs of twelve it is worth it */

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

    store_destroy(s);
    free(data);
    free(fresh);
    free(mixed);
}


/*
 * A suite of chunks of some 100 bytes and xorbs of 20: many files out of few
 * parts, with more terms than may wait.
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

    /* one open xorb, and known chunks by turns without end */

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


int
main(void)
{
    test_sizes();
    test_repeats();
    test_fragments();
    test_small_suite();
    test_large();

    return xet_done();
}
