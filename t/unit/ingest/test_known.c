
/*
 * Tests the table of known chunks: look-ups, successors and eviction, also
 * compared with a linear search.
 */


#include "xet_test.h"
#include "xet_ingest.h"
#include "xet_vectors.h"


#define MODEL_MAX  4096


static const uint64_t  seed_zero[XET_KNOWN_SEED];


typedef struct {
    uint8_t   hash[XET_HASH_LEN];
    uint64_t  xorb;                    /* name of the xorb */
    uint32_t  chunk;
    int       leads;
} model_t;


static void
hash_of(uint64_t n, uint8_t *hash)
{
    /* hashes with a common prefix */

    memset(hash, 0, XET_HASH_LEN);
    xet_put_u32(hash, (uint32_t) (n % 3));
    xet_put_u64(hash + 8, n);
}


static void
name_of(uint64_t n, xet_hash_t *name)
{
    memset(name, 0xee, sizeof(xet_hash_t));
    xet_put_u64(name->bytes, n);
}


static void
test_order(void)
{
    uint32_t          i, a, b;
    uint8_t           hash[XET_HASH_LEN];
    xet_hash_t        name;
    xet_known_t      *k;
    xet_known_ref_t   ref, other;

    k = xet_known_create(10, seed_zero);

    name_of(1, &name);
    xet_ok(xet_known_xorb(k, &name, 4, &a) == XET_OK, "a xorb");
    xet_ok(!xet_known_has(k, &name), "without chunks it is not there");

    for (i = 0; i < 4; i++) {
        hash_of(i / 2, hash);
        xet_known_add(k, a, i, hash, NULL);
    }

    xet_ok(xet_known_has(k, &name), "with chunks it is");

    hash_of(0, hash);
    xet_ok(xet_known_find(k, hash, &ref) && ref.chunk == 0,
           "of two equal chunks the first is found");
    xet_ok(xet_known_next(k, &ref, hash) && ref.chunk == 1,
           "the second follows it");
    xet_ok(!xet_known_next(k, &ref, hash) && ref.chunk == 1,
           "what does not follow leaves the reference");
    hash_of(1, hash);
    xet_ok(xet_known_next(k, &ref, hash) && xet_known_next(k, &ref, hash)
           && ref.chunk == 3, "to the end of the xorb");
    xet_ok(xet_known_last(k, &ref), "which is its last chunk");
    xet_ok(xet_hash_equal(xet_known_hash(k, &ref), &name), "its name");

    xet_ok(xet_known_xorb(k, NULL, 0, &b) == XET_OK && b != a,
           "one that has no name yet");
    hash_of(7, hash);
    xet_known_add(k, b, 0, hash, &other);
    xet_ok(!xet_known_next(k, &ref, hash), "nothing follows a last chunk");
    xet_ok(xet_known_hash(k, &other) == NULL && !xet_known_last(k, &other),
           "no name, no end");

    name_of(2, &name);
    xet_known_name(k, b, &name, 1);
    xet_ok(xet_known_find(k, hash, &ref)
           && xet_hash_equal(xet_known_hash(k, &ref), &name)
           && xet_known_last(k, &ref), "the name is given later");

    /* the chunks of the first xorb are evicted one by one */

    name_of(3, &name);
    xet_ok(xet_known_xorb(k, &name, 9, &a) == XET_OK, "a third one");

    for (i = 0; i < 9; i++) {
        hash_of(100 + i, hash);
        xet_known_add(k, a, i, hash, NULL);
    }

    hash_of(0, hash);
    xet_ok(!xet_known_find(k, hash, &ref), "the oldest are forgotten");
    hash_of(7, hash);
    xet_ok(xet_known_find(k, hash, &ref), "the others are not");
    name_of(1, &name);
    xet_ok(!xet_known_has(k, &name), "nor is their xorb there");

    hash_of(200, hash);
    xet_known_add(k, a, 9, hash, NULL);
    hash_of(7, hash);
    xet_ok(!xet_known_find(k, hash, &other), "one more, one less");
    hash_of(100, hash);
    xet_ok(!xet_known_next(k, &ref, hash),
           "nothing follows a chunk that is forgotten");

    xet_known_destroy(k);
    xet_known_destroy(NULL);
}


static void
test_keys(void)
{
    unsigned          i;
    uint32_t          x;
    uint8_t           hash[XET_HASH_LEN], key[XET_HASH_LEN];
    xet_hash_t        name, keyed;
    xet_known_t      *k;
    xet_known_ref_t   ref;

    k = xet_known_create(100, seed_zero);

    for (i = 1; i <= XET_KNOWN_KEYS; i++) {
        hash_of(i, key);
        xet_ok(xet_known_key(k, key) == i, "key %u", i);
    }

    xet_ok(xet_known_key(k, key) == XET_KNOWN_KEYS, "the same one again");

    hash_of(99, hash);
    xet_ok(xet_known_key(k, hash) == 0, "no room for another");

    name_of(7, &name);
    xet_ok(xet_known_xorb(k, &name, 2, &x) == XET_OK, "a xorb under a key");
    xet_known_mark(k, x, XET_KNOWN_KEYS, 1);

    for (i = 0; i < 2; i++) {
        hash_of(200 + i, hash);
        xet_hash_keyed(key, hash, XET_HASH_LEN, &keyed);
        xet_known_add(k, x, i, keyed.bytes, NULL);
    }

    hash_of(200, hash);
    xet_ok(xet_known_find(k, hash, &ref) && ref.chunk == 0
           && xet_known_made(k, &ref), "is found in clear");

    hash_of(201, hash);
    xet_ok(xet_known_next(k, &ref, hash) && ref.chunk == 1
           && xet_known_last(k, &ref), "chunk by chunk");

    xet_known_destroy(k);
}


/* Adds as many xorbs as the table can hold, each with one chunk, then more. */

static void
test_names(void)
{
    int           ok;
    uint32_t      i, x, open;
    uint8_t       hash[XET_HASH_LEN];
    xet_hash_t    name;
    xet_known_t  *k;

    const uint32_t  max = 1000;

    k = xet_known_create(max, seed_zero);
    ok = xet_known_xorb(k, NULL, 0, &open) == XET_OK;

    for (i = 0; i < 3 * max; i++) {
        name_of(i, &name);
        hash_of(i, hash);

        ok = ok && xet_known_xorb(k, &name, 1, &x) == XET_OK;
        xet_known_add(k, x, 0, hash, NULL);
        ok = ok && xet_known_has(k, &name);

        if (i >= max) {
            name_of(i - max, &name);
            ok = ok && !xet_known_has(k, &name);

            name_of(i - max + 1, &name);
            ok = ok && xet_known_has(k, &name);
        }
    }

    xet_ok(ok, "xorbs are there as long as their chunks");

    name_of(7 * max, &name);
    hash_of(7 * max, hash);
    xet_known_add(k, open, 0, hash, NULL);
    xet_ok(!xet_known_has(k, &name), "not before a xorb has its name");
    xet_known_name(k, open, &name, 1);
    xet_ok(xet_known_has(k, &name), "and then it is there");

    for (i = 0; i < max; i++) {
        hash_of(8 * max + i, hash);
        xet_known_add(k, x, 1 + i, hash, NULL);
    }

    xet_ok(!xet_known_has(k, &name), "until its chunk is forgotten");

    xet_known_destroy(k);
}


/*
 * Looks for a hash among the newest max chunks.  Only a chunk whose hash was
 * not in the table when the chunk was added can be found.
 */

static size_t
model_find(const model_t *m, size_t n, size_t max, const uint8_t *hash)
{
    size_t  i;

    for (i = (n > max) ? n - max : 0; i < n; i++) {
        if (m[i].leads && memcmp(m[i].hash, hash, XET_HASH_LEN) == 0) {
            return i;
        }
    }

    return MODEL_MAX;
}


static int
run_model(uint64_t seed, uint32_t max)
{
    int               known;
    size_t            n, at;
    uint32_t          chunk, left, xorb;
    uint64_t          name, state, numbers[XET_KNOWN_SEED];
    xet_hash_t        hash;
    xet_known_t      *k;
    xet_known_ref_t   ref;

    static model_t  m[MODEL_MAX];

    state = seed;

    for (n = 0; n < XET_KNOWN_SEED; n++) {
        numbers[n] = xet_splitmix64(&state);
    }

    k = xet_known_create(max, numbers);
    left = 0;
    chunk = 0;
    name = 0;
    xorb = 0;

    for (n = 0; n < MODEL_MAX; n++) {

        if (left == 0) {
            left = (uint32_t) (xet_splitmix64(&state) % 40) + 1;
            chunk = 0;

            name_of(++name, &hash);

            if (xet_known_xorb(k, &hash, left, &xorb) != XET_OK) {
                return 0;
            }
        }

        hash_of(xet_splitmix64(&state) % 300, m[n].hash);
        m[n].xorb = name;
        m[n].chunk = chunk;
        m[n].leads = (model_find(m, n, max - 1, m[n].hash) == MODEL_MAX);

        xet_known_add(k, xorb, chunk++, m[n].hash, NULL);
        left--;

        hash_of(xet_splitmix64(&state) % 300, hash.bytes);

        at = model_find(m, n + 1, max, hash.bytes);
        known = xet_known_find(k, hash.bytes, &ref);

        if (known != (at != MODEL_MAX)) {
            return 0;
        }

        if (!known) {
            continue;
        }

        if (m[at].chunk != ref.chunk
            || m[at].xorb != xet_get_u64(xet_known_hash(k, &ref)->bytes))
        {
            return 0;
        }

        if (at < n
            && xet_known_next(k, &ref, m[at + 1].hash)
               != (m[at + 1].xorb == m[at].xorb))
        {
            return 0;
        }
    }

    xet_known_destroy(k);

    return 1;
}


static void
test_model(void)
{
    int       ok;
    uint64_t  seed;

    ok = 1;

    for (seed = 1; ok && seed <= 20; seed++) {
        ok = run_model(seed, (uint32_t) (seed * 17 % 700 + 1));
    }

    xet_ok(ok, "as a list that is searched");
}


int
main(void)
{
    test_order();
    test_keys();
    test_names();
    test_model();

    return xet_done();
}
