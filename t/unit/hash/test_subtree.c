
/*
 * Tests subtrees against three references: a simple algorithm in this file,
 * which builds each level as an array; digests of the reference client's
 * results for the same leaves (t/oracle/subtree.mjs compares many more); and
 * the streamed tree.
 */


#include "xet_test_merkle.h"
#include "xet_test_pool.h"
#include "xet_hash.h"
#include "xet_vectors.h"
#include "xet_reference.h"


#define LEAVES_MAX  3000


typedef struct {
    size_t              n;
    unsigned            nlevels;
    xet_merkle_node_t   nodes[LEAVES_MAX];
    xet_merkle_node_t   rights[XET_MERKLE_LEVELS][LEAVES_MAX];
    size_t              left[XET_MERKLE_LEVELS];
    size_t              right[XET_MERKLE_LEVELS];
} reference_t;


static xet_merkle_node_t      leaves[LEAVES_MAX];
static reference_t            reference;
static xet_test_pool_t        pool;
static xet_subtree_builder_t  builder, part;


/*
 * Finds the first stable cut, from the left or from the right: the middle one
 * of three natural cuts in a row, with gaps of 3 to 7 nodes.  Returns the index
 * of the node after this cut, or 0 if there is none.  The search from the right
 * uses a different algorithm from the builder's.
 */

static size_t
reference_stable(const xet_merkle_node_t *nodes, size_t n, int from_right)
{
    size_t  i, k, cuts, cut[3], gap[2];

    cuts = 0;

    for (k = 0; k < n; k++) {
        i = from_right ? n - 1 - k : k;

        if (nodes[i].hash.bytes[24] % 4) {
            continue;
        }

        if (cuts == 3) {
            cut[0] = cut[1];
            cut[1] = cut[2];
            cuts = 2;
        }

        cut[cuts++] = i;

        if (cuts < 3) {
            continue;
        }

        gap[0] = from_right ? cut[0] - cut[1] : cut[1] - cut[0];
        gap[1] = from_right ? cut[1] - cut[2] : cut[2] - cut[1];

        if (gap[0] > 2 && gap[0] < 8 && gap[1] > 2 && gap[1] < 8) {
            return cut[1] + 1;
        }
    }

    return 0;
}


static void
reference_build(size_t n, int at_start, int at_end)
{
    size_t             from, to, pos, cut, right;
    unsigned           i, k;
    xet_merkle_node_t  level[LEAVES_MAX], up[LEAVES_MAX];

    memcpy(level, leaves, n * sizeof(leaves[0]));

    reference.n = 0;

    for (i = 0; /* void */ ; i++) {
        from = at_start ? 0 : reference_stable(level, n, 0);
        to = at_end ? n
             : from + reference_stable(level + from, n - from, 1);

        if (n <= 1 || (!at_start && from == 0) || to <= from) {
            from = to = n;
        }

        memcpy(reference.nodes + reference.n, level, from * sizeof(level[0]));
        reference.n += from;
        reference.left[i] = from;

        right = n - to;
        reference.right[i] = right;

        memcpy(reference.rights[i], level + to, right * sizeof(level[0]));

        for (pos = from, n = 0; pos < to; pos += cut, n++) {
            cut = reference_cut(level + pos, to - pos);
            up[n] = reference_merge(level + pos, cut);
        }

        if (n == 0) {
            break;
        }

        memcpy(level, up, n * sizeof(level[0]));
    }

    reference.nlevels = i + 1;

    for (k = reference.nlevels; k-- > 0; /* void */ ) {
        memcpy(reference.nodes + reference.n, reference.rights[k],
               reference.right[k] * sizeof(level[0]));
        reference.n += reference.right[k];
    }
}


static unsigned
differs(const xet_subtree_t *s, size_t n, int at_start, int at_end)
{
    size_t    k;
    unsigned  i, wrong;

    reference_build(n, at_start, at_end);

    wrong = s->n != reference.n || s->nlevels != reference.nlevels
            || s->at_start != (at_start != 0) || s->at_end != (at_end != 0)
            || xet_subtree_check(s) != XET_OK;

    for (i = 0; !wrong && i < s->nlevels; i++) {
        wrong += s->levels[i].left != reference.left[i]
                 || s->levels[i].right != reference.right[i];
    }

    for (k = 0; !wrong && k < s->n; k++) {
        wrong += s->nodes[k].size != reference.nodes[k].size
                 || !xet_hash_equal(&s->nodes[k].hash,
                                    &reference.nodes[k].hash);
    }

    if (wrong) {
        printf("# %zu leaves, %d, %d: %zu nodes on %u levels, "
               "want %zu on %u\n", n, at_start, at_end, s->n, s->nlevels,
               reference.n, reference.nlevels);
    }

    return wrong;
}


/*
 * Makes n leaves.  kind:
 *   0: random leaves
 *   1: every leaf is a natural cut
 *   2: no leaf is a cut
 *   3: every fifth leaf is a cut
 *   4: a few leaves are cuts
 *   5: gaps have the minimum or maximum length
 *   6: 64-bit sizes
 *   7: many leaves are cuts
 */

static void
fill(size_t n, uint64_t *state, unsigned kind)
{
    size_t    i;
    uint8_t  *tail;

    for (i = 0; i < n; i++) {
        xet_test_random_hash(state, leaves[i].hash.bytes);
        leaves[i].size = xet_test_random(state) % 131072 + 1;

        tail = &leaves[i].hash.bytes[24];

        if (kind && kind != 6) {
            *tail |= 1;
        }

        if (kind == 1
            || (kind == 3 && i % 5 == 0)
            || (kind == 4 && xet_test_random(state) % 30 == 0)
            || (kind == 5 && (i % 10 == 0 || i % 10 == 3))
            || (kind == 7 && xet_test_random(state) % 2 == 0))
        {
            *tail &= 0xfc;
        }

        if (kind == 6) {
            leaves[i].size = xet_test_random(state);
        }
    }
}


static xet_status_t
build(xet_subtree_builder_t *b, size_t from, size_t to, int at_start,
    int at_end, xet_subtree_t *s)
{
    size_t        i;
    xet_status_t  status;

    xet_subtree_start(b, at_start, at_end);

    for (i = from; i < to; i++) {
        status = xet_subtree_add(b, leaves[i].hash.bytes, leaves[i].size);

        if (status != XET_OK) {
            return status;
        }
    }

    return xet_subtree_finish(b, s);
}


static void
begin(size_t max)
{
    xet_test_pool_free(&pool);

    memset(&builder, 0xa5, sizeof(builder));
    memset(&part, 0xa5, sizeof(part));

    xet_subtree_init(&builder, &xet_suite_default, xet_test_alloc, &pool, max);
    xet_subtree_init(&part, &xet_suite_default, xet_test_alloc, &pool, max);
}


static void
test_reference(void)
{
    size_t         n;
    uint64_t       state;
    unsigned       round, wrong;
    xet_subtree_t  s;

    state = 2025;
    wrong = 0;

    for (n = 0; n <= 300; n++) {
        begin(SIZE_MAX);

        for (round = 0; round < 32; round++) {
            fill(n, &state, round / 4);

            wrong += build(&builder, 0, n, round & 1, round & 2, &s) != XET_OK
                     || differs(&s, n, round & 1, round & 2);
        }
    }

    xet_is_u64(wrong, 0, "every number of leaves to 300, in 32 ways");

    wrong = 0;

    for (round = 0; round < 1200; round++) {
        n = (size_t) (xet_test_random(&state) % (LEAVES_MAX + 1));
        fill(n, &state, round / 4 % 16 < 8 ? round / 4 % 8 : 0);
        begin(SIZE_MAX);

        wrong += build(&builder, 0, n, round & 1, round & 2, &s) != XET_OK
                 || differs(&s, n, round & 1, round & 2);
    }

    xet_is_u64(wrong, 0, "1200 random runs of up to 3000 leaves");
}


/* Joins parts of random lengths, including single leaves. */

static xet_status_t
join(size_t n, int at_start, int at_end, uint64_t *state, xet_subtree_t *s)
{
    int            first, last;
    size_t         from, to;
    xet_status_t   status;
    xet_subtree_t  one;

    xet_subtree_start(&builder, at_start, at_end);

    status = XET_OK;
    first = 1;

    for (from = 0; from < n && status == XET_OK; from = to) {

        if (xet_test_random(state) % 3 == 0) {
            status = xet_subtree_add(&builder, leaves[from].hash.bytes,
                                     leaves[from].size);
            to = from + 1;
            first = 0;
            continue;
        }

        to = from + (size_t) (xet_test_random(state)
                              % (xet_test_random(state) % 2 ? 20 : n + 1));
        to = (to > n) ? n : to;

        /*
         * only some parts set the flags for the start and the end of the file
         */

        last = to == n && at_end && xet_test_random(state) % 2;

        status = build(&part, from, to,
                       first && at_start && xet_test_random(state) % 2, last,
                       &one);

        if (status == XET_OK) {
            status = xet_subtree_join(&builder, &one);
        }

        first = 0;
    }

    return (status == XET_OK) ? xet_subtree_finish(&builder, s) : status;
}


static void
test_join(void)
{
    size_t         n;
    uint64_t       state;
    unsigned       i, round, wrong, roots;
    xet_hash_t     root, want;
    xet_merkle_t   m;
    xet_subtree_t  s;

    state = 77;
    wrong = 0;
    roots = 0;

    for (round = 0; round < 1600; round++) {
        n = (size_t) (xet_test_random(&state) % (round % 8 ? 400 : 3001));
        fill(n, &state, round / 4 % 16 < 8 ? round / 4 % 8 : 0);
        begin(SIZE_MAX);

        if (join(n, round & 1, round & 2, &state, &s) != XET_OK
            || differs(&s, n, round & 1, round & 2))
        {
            wrong++;
            continue;
        }

        if (round % 4 == 3) {
            xet_merkle_init(&m, &xet_suite_default);

            for (i = 0; i < n; i++) {
                xet_merkle_add(&m, leaves[i].hash.bytes, leaves[i].size);
            }

            xet_merkle_finish(&m, &want);

            roots += xet_subtree_root(&s, &root) != XET_OK
                     || !xet_hash_equal(&root, &want);
        }
    }

    xet_is_u64(wrong, 0, "1600 runs joined from parts");
    xet_is_u64(roots, 0, "400 roots are those of the streamed tree");
}


/*
 * Results of @huggingface/xetchunk-wasm 0.2.0 for the leaves of test_golden().
 */

static const struct {
    size_t       n;
    unsigned     at_start;
    unsigned     at_end;
    const char  *levels;
    const char  *digest;           /* digest of the JSON (key: zeros) */
} golden[] = {
    { 0, 0, 0, "[[0,0]]",
      "261ec89454f46685b81dc846032a0b37b49b20de5e0246635a52d605a104100f" },
    { 1, 0, 0, "[[1,0]]",
      "67014ea85020ad8d352d5656948f4762c3d04eb8d7124ab265f3122fe5b5be36" },
    { 1, 1, 1, "[[1,0]]",
      "9f3e3a4339162463e1ab8e514930a6536fb30a46a499fad6d2fe1343fdae22c5" },
    { 2, 1, 1, "[[0,0],[1,0]]",
      "567c274d63c1f3cf8f4c1467bfd55513e618c64f93b0ca25947fc709ab08d4c8" },
    { 2, 0, 1, "[[2,0]]",
      "65cdbdabae710adbb86fccd9b59d2307aba9e84e12014d84363c1bfd2d869756" },
    { 40, 1, 0, "[[0,15],[4,0]]",
      "8959f59254fb374e2dacccdddbdd048eae1545bdf0d787415cb2c6c94d642368" },
    { 1000, 0, 0, "[[112,25],[97,12],[9,0]]",
      "0d469e4b3e59e2ad122a73a3f072e6415638aa027897365aa0aeca6f523d68a9" },
    { 1000, 1, 0, "[[0,25],[0,12],[30,0]]",
      "69205ba8c0e328b32e82c2e677106117deef8df9695083a7612ab7d3bb7977d8" },
    { 1000, 0, 1, "[[112,0],[97,0],[7,0],[2,0]]",
      "bb4d37c5f634596fcc0710f594e860e6867f82f4d54574212aa063fff5dd0ad1" },
    { 1000, 1, 1, "[[0,0],[0,0],[0,0],[0,0],[0,0],[1,0]]",
      "6804a94ac15daf3259f6f9971ecfcd2896d1ef241f82d475042524a875ec97be" },
    { 100000, 0, 0,
      "[[7,12],[5,22],[22,41],[7,25],[18,8],[13,0]]",
      "d830595ff2cbcc6b853462f46e246c11341fdb54265bd807c5f0cc5ecf195348" },
    { 100000, 1, 0,
      "[[0,12],[0,22],[0,41],[0,25],[0,8],[17,0]]",
      "490f23d07da77726fc7c747d5dda281c87402b74fbc09b38796fe53bf7f5e9d5" }
};


static uint8_t *
json(const xet_subtree_t *s, size_t *len)
{
    xet_buf_t   b;
    xet_json_t  j;

    xet_buf_init(&b, xet_test_alloc, &pool, 0);
    xet_json_init(&j, &b);
    xet_subtree_json(&j, s);

    return xet_test_flatten(&pool, &b, len);
}


static void
test_golden(void)
{
    char           name[64];
    size_t         i, k, len;
    uint8_t       *text, hash[XET_HASH_LEN];
    uint64_t       state;
    unsigned       level;
    xet_hash_t     digest;
    xet_subtree_t  s;

    for (i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
        begin(SIZE_MAX);
        xet_subtree_start(&builder, (int) golden[i].at_start,
                          (int) golden[i].at_end);

        state = golden[i].n + 1;

        for (k = 0; k < golden[i].n; k++) {
            xet_test_random_hash(&state, hash);
            xet_subtree_add(&builder, hash,
                            xet_test_random(&state) % 131072 + 1);
        }

        snprintf(name, sizeof(name), "%zu leaves, %u, %u", golden[i].n,
                 golden[i].at_start, golden[i].at_end);

        xet_is_u64(xet_subtree_finish(&builder, &s), XET_OK, name);

        text = json(&s, &len);

        xet_ok(text && strstr((char *) text, golden[i].levels),
               "its levels are %s", golden[i].levels);

        xet_hash_keyed(xet_suite_default.file_key, text, len, &digest);
        xet_is_hash(&digest, golden[i].digest, "its text");

        for (level = 0, k = 0; level < s.nlevels; level++) {
            k += s.levels[level].left + s.levels[level].right;
        }

        xet_is_u64(k, s.n, "its counts");
    }
}


static void
test_json(void)
{
    size_t         len;
    uint8_t       *text;
    xet_subtree_t  s;

    begin(SIZE_MAX);

    memset(leaves[0].hash.bytes, 0x11, XET_HASH_LEN);
    memset(leaves[1].hash.bytes, 0xab, XET_HASH_LEN);
    leaves[0].size = 1;
    leaves[1].size = UINT64_MAX;

    build(&builder, 0, 2, 0, 1, &s);
    text = json(&s, &len);

    xet_ok(strcmp((char *) text,
                  "{\"nodes\":[{\"hash\":\"11111111111111111111111111111111"
                  "11111111111111111111111111111111\",\"size\":1},"
                  "{\"hash\":\"abababababababababababababababab"
                  "abababababababababababababababab\","
                  "\"size\":18446744073709551615}],"
                  "\"levels\":[[2,0]],\"at_start\":false,\"at_end\":true}")
           == 0, "JSON, every byte");

    build(&builder, 0, 0, 1, 0, &s);
    text = json(&s, &len);

    xet_ok(strcmp((char *) text, "{\"nodes\":[],\"levels\":[[0,0]],"
                                 "\"at_start\":true,\"at_end\":false}") == 0,
           "JSON of an empty run");
}


/* Checks that the builder's memory does not grow with the number of leaves. */

static void
test_memory(void)
{
    size_t         held;
    uint8_t        hash[XET_HASH_LEN];
    uint64_t       state;
    unsigned       i, k, way;
    xet_subtree_t  s;

    xet_ok(sizeof(xet_subtree_builder_t) < 4096, "the builder is %zu bytes",
           sizeof(xet_subtree_builder_t));

    for (way = 0; way < 4; way++) {
        begin(SIZE_MAX);
        xet_subtree_start(&builder, way & 1, way & 2);

        state = 9;
        held = 0;

        for (i = 0; i < 200000; i++) {
            xet_test_random_hash(&state, hash);
            xet_subtree_add(&builder, hash, 65536);

            held = (builder.held > held) ? builder.held : held;
        }

        xet_ok(held < 1000 && pool.size < 200000,
               "200,000 leaves, %u: %zu nodes held at most, %zu bytes", way,
               held, pool.size);

        xet_subtree_finish(&builder, &s);

        for (k = 0, held = 0; k < XET_MERKLE_LEVELS; k++) {
            held += builder.level[k].n;
        }

        xet_ok(held == 0 && builder.kept == s.n, "finished: none is held");
    }

    /* a repetition of one leaf has no stable cut, natural or not */

    for (way = 0; way < 8; way++) {
        begin(SIZE_MAX);
        xet_subtree_start(&builder, way & 1, way & 2);

        memset(hash, (way & 4) ? 0x40 : 0x41, sizeof(hash));
        held = 0;

        for (i = 0; i < 20000; i++) {
            xet_subtree_add(&builder, hash, 131072);
            held = (builder.held > held) ? builder.held : held;
        }

        xet_subtree_finish(&builder, &s);

        if ((way & 3) == 3) {
            xet_ok(s.n == 1 && held < 100 && s.nodes[0].size == 2621440000,
                   "20,000 times one leaf, whole file: one node, %zu held",
                   held);

        } else {
            xet_ok(s.n == 20000 && s.nlevels == 1 && held == 20000,
                   "20,000 times one leaf: all of them");
        }
    }
}


static void
test_limit(void)
{
    size_t         i, most;
    uint64_t       state;
    unsigned       n, failed;
    xet_status_t   status;
    xet_subtree_t  s;

    state = 31;
    fill(500, &state, 0);

    begin(SIZE_MAX);
    xet_subtree_start(&builder, 0, 0);
    most = 0;

    for (i = 0; i < 500; i++) {
        xet_subtree_add(&builder, leaves[i].hash.bytes, leaves[i].size);
        most = (builder.held > most) ? builder.held : most;
    }

    /* the nodes of a level are freed only after their parent has been added */

    begin(most * 3 / 2);
    status = build(&builder, 0, 500, 0, 0, &s);
    xet_ok(status == XET_OK && !builder.over, "enough: %zu nodes",
           most * 3 / 2);

    begin(most - 1);
    status = build(&builder, 0, 500, 0, 0, &s);
    xet_ok(status == XET_NOMEM && builder.over, "too few: %zu", most - 1);

    begin(20);
    status = build(&builder, 0, 12, 0, 0, &s);
    xet_is_u64(status, XET_OK, "12 of 20");
    status = build(&builder, 0, 8, 0, 0, &s);
    xet_is_u64(status, XET_OK, "8 more");
    status = build(&builder, 0, 0, 0, 0, &s);
    xet_is_u64(status, XET_OK, "none more");
    xet_is_u64(builder.over, 0, "not over");
    status = build(&builder, 0, 1, 0, 0, &s);
    xet_ok(status == XET_NOMEM && builder.over, "one more");

    begin(0);
    status = build(&builder, 0, 1, 0, 0, &s);
    xet_ok(status == XET_NOMEM && builder.over, "none at all");

    /* each allocation fails once */

    failed = 0;

    for (n = 1; n < 1000; n++) {
        begin(SIZE_MAX);
        pool.limit = n;
        status = build(&builder, 0, 500, 1, 0, &s);

        if (status == XET_OK) {
            break;
        }

        failed += status == XET_NOMEM && !builder.over;
    }

    pool.limit = 0;

    xet_ok(n > 4 && n < 1000 && failed == n - 1,
           "each of %u allocations is checked", n);
}


static xet_subtree_level_t  damaged_levels[XET_MERKLE_LEVELS + 1];


static unsigned
damaged(const xet_subtree_t *s, int at_start, int at_end)
{
    xet_subtree_start(&builder, at_start, at_end);

    return xet_subtree_check(s) == XET_PLAN_DAMAGED
           && xet_subtree_join(&builder, s) == XET_PLAN_DAMAGED;
}


static void
test_damaged(void)
{
    uint64_t       state;
    xet_subtree_t  good, s;

    state = 1001;
    fill(1000, &state, 0);

    begin(SIZE_MAX);
    build(&part, 0, 1000, 0, 0, &good);

    xet_ok(good.nlevels == 3 && good.levels[0].right > 1, "a good one");

    xet_subtree_start(&builder, 0, 0);
    xet_is_u64(xet_subtree_join(&builder, &good), XET_OK, "is joined");

    s = good;
    s.levels = damaged_levels;

#define damage(change, name)                                                  \
    memcpy(damaged_levels, good.levels,                                       \
           good.nlevels * sizeof(xet_subtree_level_t));                       \
    change;                                                                   \
    xet_ok(damaged(&s, 0, 0), "%s", name);                                    \
    s = good;                                                                 \
    s.levels = damaged_levels;

    damage(s.n++, "a node too many");
    damage(s.n--, "a node too few");
    damage(s.nlevels = 0, "no level");
    damage(s.nlevels = XET_MERKLE_LEVELS + 1, "a level too many");
    damage(damaged_levels[0].left = SIZE_MAX, "left far too long");
    damage(damaged_levels[0].right = SIZE_MAX, "right far too long");
    damage(damaged_levels[1].right = SIZE_MAX - 1, "sum of counts wraps");
    damage(damaged_levels[1].left += damaged_levels[1].right + 1;
           damaged_levels[1].right = SIZE_MAX, "sum of counts wraps to theirs");
    damage(s.at_start = 1, "left nodes at the start");
    damage(s.at_end = 1, "right nodes at the end");
    damage(s.n -= s.levels[0].left; damaged_levels[0].left = 0,
           "no left nodes, not at the start");
    damage(s.n -= s.levels[1].right; damaged_levels[1].right = 0,
           "no right nodes, not at the end");
    damage(damaged_levels[2].left--; damaged_levels[2].right++,
           "right nodes on the top level");
    damage(s.n -= s.levels[2].left; damaged_levels[2].left = 0,
           "an empty top level");

    /* the counts are valid, but the left part does not end with a cut */

    s = good;
    s.levels = damaged_levels;
    memcpy(damaged_levels, good.levels, 3 * sizeof(damaged_levels[0]));
    damaged_levels[0].left--;
    damaged_levels[1].left++;

    xet_subtree_start(&builder, 1, 0);
    xet_ok(xet_subtree_check(&s) == XET_OK
           && xet_subtree_join(&builder, &s) == XET_PLAN_DAMAGED,
           "left nodes that are no whole groups");

    /* one more level in each round, up to the limit */

    for (s.n = 0, s.nlevels = 0; s.nlevels < XET_MERKLE_LEVELS; s.nlevels++) {
        damaged_levels[s.nlevels].left = 0;
        damaged_levels[s.nlevels].right = 0;
    }

    damaged_levels[XET_MERKLE_LEVELS - 1].left = 10;
    s.n = 10;
    s.at_start = 1;
    s.at_end = 1;

    xet_subtree_start(&builder, 1, 1);
    xet_is_u64(xet_subtree_join(&builder, &s), XET_PLAN_DAMAGED,
               "a tree too high");
}


static void
test_place(void)
{
    uint64_t       state;
    xet_hash_t     root;
    xet_subtree_t  start, middle, end, whole;

    state = 3;
    fill(300, &state, 0);

    begin(SIZE_MAX);
    build(&part, 0, 100, 1, 0, &start);
    build(&part, 100, 200, 0, 0, &middle);
    build(&part, 200, 300, 0, 1, &end);

    xet_subtree_start(&builder, 1, 1);
    xet_is_u64(xet_subtree_join(&builder, &start), XET_OK, "the start");
    xet_is_u64(xet_subtree_join(&builder, &start), XET_PLAN_DAMAGED,
               "the start once more");

    xet_subtree_start(&builder, 1, 1);
    xet_is_u64(xet_subtree_add(&builder, leaves[0].hash.bytes, 1), XET_OK,
               "a leaf");
    xet_is_u64(xet_subtree_join(&builder, &start), XET_PLAN_DAMAGED,
               "the start behind it");

    build(&part, 0, 3, 1, 0, &middle);

    xet_subtree_start(&builder, 1, 1);
    xet_is_u64(xet_subtree_join(&builder, &middle), XET_OK, "a short start");
    xet_is_u64(xet_subtree_join(&builder, &middle), XET_PLAN_DAMAGED,
               "a short start once more");

    build(&part, 100, 200, 0, 0, &middle);

    xet_subtree_start(&builder, 0, 0);
    xet_is_u64(xet_subtree_join(&builder, &start), XET_PLAN_DAMAGED,
               "the start of a run that does not begin the file");

    xet_subtree_start(&builder, 0, 0);
    xet_is_u64(xet_subtree_join(&builder, &end), XET_PLAN_DAMAGED,
               "the end of a run that does not end the file");

    xet_subtree_start(&builder, 0, 1);
    xet_is_u64(xet_subtree_join(&builder, &end), XET_OK, "the end");
    xet_is_u64(xet_subtree_add(&builder, leaves[0].hash.bytes, 1),
               XET_PLAN_DAMAGED, "a leaf behind it");

    xet_subtree_start(&builder, 0, 1);
    xet_subtree_join(&builder, &end);
    xet_is_u64(xet_subtree_join(&builder, &middle), XET_PLAN_DAMAGED,
               "a subtree behind it");

    xet_is_u64(xet_subtree_root(&start, &root), XET_PLAN_DAMAGED,
               "no root without an end");
    xet_is_u64(xet_subtree_root(&end, &root), XET_PLAN_DAMAGED,
               "no root without a start");

    build(&part, 0, 300, 1, 1, &whole);
    xet_is_u64(xet_subtree_root(&whole, &root), XET_OK, "a root with both");

    whole.n = 2;
    xet_is_u64(xet_subtree_root(&whole, &root), XET_PLAN_DAMAGED,
               "no root of two nodes");

    memset(root.bytes, 0xee, XET_HASH_LEN);
    build(&part, 0, 0, 1, 1, &whole);
    xet_ok(xet_subtree_root(&whole, &root) == XET_OK
           && xet_hash_is_zero(&root), "zeros without leaves");
}


/* Tests a reference file: two subtrees, with single leaves between them. */

static void
test_file(void)
{
    size_t         i, len, n;
    uint8_t       *text;
    xet_hash_t     root, want;
    xet_subtree_t  s, gap[2];

    static xet_reference_chunk_t  chunks[XET_REFERENCE_CHUNKS + 1];

    n = xet_reference_chunks(chunks, XET_REFERENCE_CHUNKS + 1);

    if (n == 0) {
        xet_skip("reference data absent");
        return;
    }

    for (i = 0; i < n; i++) {
        leaves[i].hash = chunks[i].hash;
        leaves[i].size = chunks[i].size;
    }

    begin(SIZE_MAX);
    build(&part, 0, 300, 1, 0, &gap[0]);
    build(&part, 320, 796, 0, 1, &gap[1]);

    xet_ok(n == 796 && gap[0].n < 150 && gap[1].n < 150,
           "two gaps of 796 chunks: %zu and %zu nodes", gap[0].n, gap[1].n);

    xet_subtree_start(&builder, 1, 1);
    xet_subtree_join(&builder, &gap[0]);

    for (n = 300; n < 320; n++) {
        xet_subtree_add(&builder, leaves[n].hash.bytes, leaves[n].size);
    }

    xet_subtree_join(&builder, &gap[1]);
    xet_subtree_finish(&builder, &s);
    xet_is_u64(s.nodes[0].size, 63527244, "joined: 63,527,244 bytes");

    text = xet_reference_load(XET_REFERENCE "Electric_Vehicle_Population_Data"
                              "_20250917.csv.xet-xorb-hash", &len);

    xet_ok(text && xet_hash_parse(&want, text, 64) == XET_OK
           && xet_subtree_root(&s, &root) == XET_OK
           && xet_hash_equal(&root, &want), "the published xorb hash");

    free(text);
}


int
main(void)
{
    test_golden();
    test_json();
    test_reference();
    test_join();
    test_memory();
    test_limit();
    test_damaged();
    test_place();
    test_file();

    xet_test_pool_free(&pool);

    return xet_done();
}
