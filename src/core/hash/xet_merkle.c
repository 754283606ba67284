
/*
 * The aggregated hash tree, computed while leaves arrive.
 *
 * Purpose:    computes the root over any number of (hash, size) leaves in
 *             constant memory.
 * States:     a level has an open group of fewer than merge_max nodes.  A node
 *             completes its group when the group then has merge_max nodes, or
 *             has at least merge_min nodes and the node's hash is a multiple
 *             of merge_modulus.  The group is then closed and becomes one node
 *             of the level above.
 * Ownership:  the caller owns the structure; nothing is allocated.  A level is
 *             initialized when its first node arrives, so a small tree touches
 *             little of the structure.
 * Threads:    one at a time.
 *
 * The size of a node is the sum of its leaves' sizes.  Callers keep it far
 * below 2^64 (a wrapped sum would only change the text that is hashed).
 */


#include "xet_hash.h"


/* A child's line: hash, " : ", decimal size, "\n". */
#define XET_MERKLE_LINE_MAX  (XET_HASH_STR_LEN + 3 + XET_DECIMAL_MAX + 1)


static void xet_merkle_put(xet_merkle_t *m, unsigned i,
    const xet_merkle_node_t *node);
static void xet_merkle_close(xet_merkle_t *m, unsigned i,
    xet_merkle_node_t *parent);


void
xet_merkle_init(xet_merkle_t *m, const xet_suite_t *suite)
{
    m->suite = suite;
    m->levels = 0;
}


void
xet_merkle_add(xet_merkle_t *m, const uint8_t *hash, uint64_t size)
{
    xet_merkle_node_t  node;

    memcpy(node.hash.bytes, hash, XET_HASH_LEN);
    node.size = size;

    xet_merkle_put(m, 0, &node);
}


/*
 * Streaming gives the same tree as the draft's level-by-level loop.  Where a
 * group ends depends only on its own nodes, except at the end of a level.
 * There both algorithms take all remaining nodes, even a single one, as the
 * last group.  Only the root belongs to no group; it is the only node of its
 * level.  A group that is closed before the end of its level has at least
 * merge_min nodes, so its level is never the root's level.
 */

void
xet_merkle_finish(xet_merkle_t *m, xet_hash_t *root)
{
    unsigned           i;
    xet_merkle_node_t  parent;

    /* m->levels grows in this loop, while the open groups move up */

    for (i = 0; i < m->levels; i++) {

        if (m->level[i].total == 1) {
            *root = m->level[i].group[0].hash;
            return;
        }

        if (m->level[i].n) {
            xet_merkle_close(m, i, &parent);
            xet_merkle_put(m, i + 1, &parent);
        }
    }

    memset(root->bytes, 0, XET_HASH_LEN);
}


static void
xet_merkle_put(xet_merkle_t *m, unsigned i, const xet_merkle_node_t *node)
{
    unsigned            n;
    const xet_suite_t  *suite;
    xet_merkle_node_t   parent;

    suite = m->suite;
    parent = *node;

    /* it takes 3^41 leaves to fill all levels, more than total can count */

    while (i < XET_MERKLE_LEVELS) {

        if (i == m->levels) {
            m->level[i].total = 0;
            m->level[i].n = 0;
            m->levels++;
        }

        m->level[i].group[m->level[i].n] = parent;
        m->level[i].total++;

        n = ++m->level[i].n;

        if (n < suite->merge_max
            && (n < suite->merge_min
                || xet_hash_tail(parent.hash.bytes) % suite->merge_modulus))
        {
            return;
        }

        xet_merkle_close(m, i, &parent);

        i++;
    }
}


/*
 * Closes the open group of level i, which must not be empty, and sets *parent
 * to the node over the group.
 */

static void
xet_merkle_close(xet_merkle_t *m, unsigned i, xet_merkle_node_t *parent)
{
    xet_merkle_group(m->suite, m->level[i].group, m->level[i].n, parent);

    m->level[i].n = 0;
}


void
xet_merkle_group(const xet_suite_t *suite, const xet_merkle_node_t *nodes,
    size_t n, xet_merkle_node_t *parent)
{
    size_t    k;
    uint8_t  *p;
    uint8_t   text[XET_MERKLE_GROUP * XET_MERKLE_LINE_MAX];
    uint64_t  size;

    p = text;
    size = 0;

    for (k = 0; k < n; k++) {
        p = xet_hash_print(p, &nodes[k].hash);

        *p++ = ' ';
        *p++ = ':';
        *p++ = ' ';

        p = xet_put_decimal(p, nodes[k].size);

        *p++ = '\n';

        size += nodes[k].size;
    }

    xet_hash_keyed(suite->node_key, text, (size_t) (p - text),
                   &parent->hash);

    parent->size = size;
}
