
/*
 * Tests the streamed tree: compares it with published roots, and with the
 * draft's loop over complete levels, reimplemented here with printf.
 */


#include "xet_test_merkle.h"
#include "xet_vectors.h"
#include "xet_reference.h"


#define LEAVES_MAX  3000


static xet_merkle_node_t  leaves[LEAVES_MAX];


/* Computes the root level by level. */

static xet_hash_t
reference_root(const xet_merkle_node_t *in, size_t n)
{
    size_t             from, to, cut;
    xet_hash_t         root;
    xet_merkle_node_t  nodes[LEAVES_MAX];

    if (n == 0) {
        memset(&root, 0, sizeof(root));
        return root;
    }

    memcpy(nodes, in, n * sizeof(nodes[0]));

    while (n > 1) {

        for (from = 0, to = 0; from < n; from += cut, to++) {
            cut = reference_cut(nodes + from, n - from);
            nodes[to] = reference_merge(nodes + from, cut);
        }

        n = to;
    }

    return nodes[0].hash;
}


static xet_hash_t
streamed_root(const xet_merkle_node_t *in, size_t n)
{
    size_t        i;
    xet_hash_t    root;
    xet_merkle_t  m;

    /* the result must not depend on uninitialized memory */

    memset(&m, 0xa5, sizeof(m));
    memset(&root, 0xa5, sizeof(root));

    xet_merkle_init(&m, &xet_suite_default);

    for (i = 0; i < n; i++) {
        xet_merkle_add(&m, in[i].hash.bytes, in[i].size);
    }

    xet_merkle_finish(&m, &root);

    return root;
}


/*
 * Makes n leaves.  bias:
 *   0: random leaves
 *   1: every leaf is a natural end
 *   2: no leaf is a natural end, so that groups have nine leaves
 *   3: 64-bit sizes
 */

static void
fill(size_t n, uint64_t *state, unsigned bias)
{
    size_t  i, k;

    for (i = 0; i < n; i++) {

        for (k = 0; k < XET_HASH_LEN; k += 8) {
            xet_put_u64(leaves[i].hash.bytes + k, xet_splitmix64(state));
        }

        leaves[i].size = xet_splitmix64(state) % 131072 + 1;

        if (bias == 1) {
            leaves[i].hash.bytes[24] &= 0xfc;

        } else if (bias == 2) {
            leaves[i].hash.bytes[24] |= 1;

        } else if (bias == 3) {
            leaves[i].size = xet_splitmix64(state);
        }
    }
}


static unsigned
compare(size_t n)
{
    xet_hash_t  want, got;

    want = reference_root(leaves, n);
    got = streamed_root(leaves, n);

    if (xet_hash_equal(&want, &got)) {
        return 0;
    }

    printf("# %zu leaves: the roots differ\n", n);

    return 1;
}


static void
test_reference(void)
{
    size_t    n;
    uint64_t  state;
    unsigned  round, wrong;

    state = 2024;
    wrong = 0;

    for (n = 0; n <= 400; n++) {
        for (round = 0; round < 4; round++) {
            fill(n, &state, round);
            wrong += compare(n);
        }
    }

    xet_is_u64(wrong, 0, "every number of leaves to 400, four ways");

    wrong = 0;

    for (round = 0; round < 1600; round++) {
        n = (size_t) (xet_splitmix64(&state) % (LEAVES_MAX + 1));
        fill(n, &state, round % 8 < 3 ? round % 8 + 1 : 0);
        wrong += compare(n);
    }

    fill(LEAVES_MAX, &state, 0);
    wrong += compare(LEAVES_MAX);

    xet_is_u64(wrong, 0, "1600 random lists of up to 3000 leaves");
}


static void
test_state(void)
{
    unsigned      i;
    uint64_t      state;
    xet_hash_t    hash;
    xet_merkle_t  m;

    xet_ok(sizeof(xet_merkle_t) < 20000, "the state is %zu bytes",
           sizeof(xet_merkle_t));

    state = 5;
    xet_merkle_init(&m, &xet_suite_default);

    for (i = 0; i < 100000; i++) {
        xet_put_u64(leaves[0].hash.bytes + 24, xet_splitmix64(&state));
        xet_merkle_add(&m, leaves[0].hash.bytes, 65536);
    }

    xet_ok(m.levels >= 6 && m.levels <= 11, "100,000 leaves: %u levels",
           m.levels);

    xet_merkle_finish(&m, &hash);

    i = m.levels - 1;
    xet_is_u64(m.level[i].group[0].size, UINT64_C(6553600000),
               "the size of the root is the sum");
    xet_ok(m.level[i].total == 1
           && xet_hash_equal(&hash, &m.level[i].group[0].hash),
           "the root is alone on its level");
}


static void
test_aggregated(void)
{
    size_t       c, i, n;
    char         name[64];
    json_t      *root, *cases, *one, *list, *leaf, *salts;
    xet_hash_t   hash, file, salt;

    root = xet_vectors_load("xet/vectors/aggregated_hashes.json");
    if (root == NULL) {
        return;
    }

    cases = json_object_get(root, "cases");
    xet_is_u64(json_array_size(cases), 12, "twelve published trees");

    for (c = 0; c < json_array_size(cases); c++) {
        one = json_array_get(cases, c);
        list = json_object_get(one, "leaves");
        n = json_array_size(list);

        for (i = 0; i < n && i < LEAVES_MAX; i++) {
            leaf = json_array_get(list, i);
            leaves[i].hash = xet_vectors_hash(json_array_get(leaf, 0));
            leaves[i].size =
                     (uint64_t) json_integer_value(json_array_get(leaf, 1));
        }

        hash = streamed_root(leaves, n);

        snprintf(name, sizeof(name), "root of %zu leaves", n);
        xet_is_hash(&hash,
                    json_string_value(json_object_get(one, "xorb_hash")),
                    name);

        salts = json_object_get(one, "file_hash_with_salt");

        for (i = 0; i < json_array_size(salts); i++) {
            leaf = json_array_get(salts, i);
            salt = xet_vectors_hash(json_array_get(leaf, 0));

            if (n == 0
                || (xet_hash_is_zero(&salt) && !xet_hash_is_zero(&hash)))
            {
                xet_hash_file(&xet_suite_default, &hash, &file);

            } else {
                /*
                 * the file hash of one leaf of zeros differs from that of an
                 * empty file
                 */
                xet_hash_keyed(salt.bytes, hash.bytes, XET_HASH_LEN, &file);
            }

            xet_is_hash(&file, json_string_value(json_array_get(leaf, 1)),
                        "its file hash");
        }
    }

    json_decref(root);
}


static void
test_draft(void)
{
    size_t       i;
    json_t      *root, *part, *list, *child;
    xet_hash_t   hash;

    root = xet_vectors_load("xet/vectors/draft_denis_xet.json");
    if (root == NULL) {
        return;
    }

    part = json_object_get(root, "internal_node");
    list = json_object_get(part, "children");
    xet_is_u64(json_array_size(list), 2, "draft: two children");

    for (i = 0; i < 2; i++) {
        child = json_array_get(list, i);
        leaves[i].hash = xet_vectors_hash(json_array_get(child, 0));
        leaves[i].size =
                    (uint64_t) json_integer_value(json_array_get(child, 1));
    }

    hash = streamed_root(leaves, 2);
    xet_is_hash(&hash, json_string_value(json_object_get(part, "xet_hex")),
                "draft: internal node");

    json_decref(root);
}


static void
is_companion(const xet_hash_t *hash, const char *file, const char *name)
{
    size_t    len;
    char      want[65];
    uint8_t  *text;

    text = xet_reference_load(file, &len);

    if (text == NULL) {
        return;
    }

    snprintf(want, sizeof(want), "%s", (char *) text);

    xet_is_hash(hash, want, name);

    free(text);
}


static void
test_reference_file(void)
{
    size_t       i, n, eligible;
    uint8_t     *hashes;
    uint64_t     size;
    xet_hash_t   root, hash;

    static xet_reference_chunk_t  chunks[XET_REFERENCE_CHUNKS + 1];

    n = xet_reference_chunks(chunks, XET_REFERENCE_CHUNKS + 1);

    if (n == 0) {
        xet_skip("reference data absent");
        return;
    }

    xet_is_u64(n, XET_REFERENCE_CHUNKS, "796 chunks");

    hashes = malloc(n * XET_HASH_LEN + 1);
    size = 0;
    eligible = 0;

    for (i = 0; i < n; i++) {
        leaves[i].hash = chunks[i].hash;
        leaves[i].size = chunks[i].size;
        memcpy(hashes + i * XET_HASH_LEN, leaves[i].hash.bytes,
               XET_HASH_LEN);
        size += leaves[i].size;

        if (i && xet_hash_eligible(&xet_suite_default,
                                   leaves[i].hash.bytes))
        {
            eligible += i;
        }
    }

    xet_is_u64(size, 63527244, "63,527,244 bytes");
    xet_is_u64(eligible, 756, "chunk 756 alone is eligible by its hash");

    root = streamed_root(leaves, n);
    is_companion(&root, XET_REFERENCE "Electric_Vehicle_Population_Data"
                 "_20250917.csv.xet-xorb-hash", "its xorb hash");

    xet_hash_file(&xet_suite_default, &root, &hash);
    is_companion(&hash, XET_REFERENCE "Electric_Vehicle_Population_Data"
                 "_20250917.csv.xet-file-hash", "its file hash");

    xet_hash_verification(&xet_suite_default, hashes, n, &hash);
    is_companion(&hash, XET_REFERENCE "eea25d6ee393ccae385820daed127b96ef0ea034"
                 "dfb7cf6da3a950ce334b7632.xorb.range-hash",
                 "its verification hash");

    free(hashes);
}


int
main(void)
{
    test_reference();
    test_state();
    test_aggregated();
    test_draft();
    test_reference_file();

    return xet_done();
}
