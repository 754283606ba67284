
/*
 * Subtrees of the aggregated hash tree of a file, and their JSON form.  The
 * comment in xet_hash.h defines run, subtree, left, right, stable cut and
 * natural cut.
 *
 * Purpose:    computes the subtree of a run of chunks, in one pass, from the
 *             leaves of the run or from the subtrees of its parts.
 * States:     each level of the tree keeps the nodes up to its first stable
 *             cut; at the start of a file, it needs no such cut.  Each later
 *             stable cut moves the groups before it to the level above, as one
 *             node per group.  If the run reaches the end of the file, each
 *             group moves as soon as it is complete.
 * Ownership:  the builder keeps nodes in arrays from the allocator, and uses
 *             them again for the next run.  A subtree has its own arrays.
 * Threads:    one at a time.
 *
 * In every subtree, each level below the top level has left nodes exactly if
 * the run starts after the start of the file, and right nodes exactly if the
 * run ends before the end of the file.  The top level has no right nodes.
 */


#include "xet_hash.h"


#define XET_SUBTREE_ROOM  32


static xet_status_t xet_subtree_put(xet_subtree_builder_t *b, unsigned i,
    const xet_merkle_node_t *nodes, size_t n);
static xet_status_t xet_subtree_settle(xet_subtree_builder_t *b, unsigned i);
static size_t xet_subtree_scan(const xet_subtree_builder_t *b,
    xet_subtree_row_t *row);
static xet_status_t xet_subtree_promote(xet_subtree_builder_t *b, unsigned i,
    size_t end, int rest);
static xet_status_t xet_subtree_force(xet_subtree_builder_t *b, unsigned i);
static size_t xet_subtree_group(const xet_suite_t *suite,
    const xet_merkle_node_t *nodes, size_t n);
static xet_status_t xet_subtree_append(xet_subtree_builder_t *b, unsigned i,
    const xet_merkle_node_t *node);
static xet_status_t xet_subtree_close(xet_subtree_builder_t *b);


void
xet_subtree_init(xet_subtree_builder_t *b, const xet_suite_t *suite,
    xet_alloc_pt alloc, void *data, size_t max)
{
    memset(b, 0, sizeof(xet_subtree_builder_t));

    b->suite = suite;
    b->alloc = alloc;
    b->data = data;
    b->max = max;

    xet_subtree_start(b, 0, 0);
}


void
xet_subtree_start(xet_subtree_builder_t *b, int at_start, int at_end)
{
    unsigned            i;
    xet_subtree_row_t  *row;

    for (i = 0; i < XET_MERKLE_LEVELS; i++) {
        row = &b->level[i];

        row->n = 0;
        row->left = 0;
        row->scanned = 0;
        row->cut = 0;
        row->started = at_start ? 1 : 0;
        row->merged = 0;
        row->natural = 0;
        row->gap = 0;
    }

    b->held = 0;
    b->levels = 1;
    b->at_start = at_start ? 1 : 0;
    b->at_end = at_end ? 1 : 0;
    b->any = 0;
    b->ended = 0;
}


xet_status_t
xet_subtree_add(xet_subtree_builder_t *b, const uint8_t *hash, uint64_t size)
{
    xet_merkle_node_t  node;

    if (b->ended) {
        return XET_PLAN_DAMAGED;
    }

    memcpy(node.hash.bytes, hash, XET_HASH_LEN);
    node.size = size;

    b->any = 1;

    return xet_subtree_put(b, 0, &node, 1);
}


/*
 * Adds the left nodes from level 0 up, then the right nodes from the top level
 * down.  The left nodes of each level but the top one are followed by a forced
 * cut.  In this order, a node reaches its level after all nodes that precede
 * it in the file have reached theirs.
 */

xet_status_t
xet_subtree_join(xet_subtree_builder_t *b, const xet_subtree_t *s)
{
    unsigned                  i;
    xet_status_t              status;
    const xet_merkle_node_t  *node;

    if (b->ended || (s->at_end && !b->at_end)
        || (s->at_start && (b->any || !b->at_start)))
    {
        return XET_PLAN_DAMAGED;
    }

    status = xet_subtree_check(s);

    if (status != XET_OK) {
        return status;
    }

    b->any = 1;
    b->ended = s->at_end;

    if (s->n == 0) {
        return XET_OK;
    }

    node = s->nodes;

    for (i = 0; i < s->nlevels; i++) {

        status = xet_subtree_put(b, i, node, s->levels[i].left);

        if (status == XET_OK && i + 1 < s->nlevels) {
            status = xet_subtree_force(b, i);
        }

        if (status != XET_OK) {
            return status;
        }

        node += s->levels[i].left;
    }

    while (i--) {

        status = xet_subtree_put(b, i, node, s->levels[i].right);

        if (status != XET_OK) {
            return status;
        }

        node += s->levels[i].right;
    }

    return XET_OK;
}


xet_status_t
xet_subtree_finish(xet_subtree_builder_t *b, xet_subtree_t *s)
{
    unsigned            i;
    xet_status_t        status;
    xet_merkle_node_t  *node;
    xet_subtree_row_t  *row;

    status = xet_subtree_close(b);

    if (status != XET_OK) {
        return status;
    }

    s->nodes = NULL;
    s->n = b->held;
    s->nlevels = b->levels;
    s->at_start = b->at_start;
    s->at_end = b->at_end;

    s->levels = b->alloc(b->data, b->levels * sizeof(xet_subtree_level_t));

    if (s->levels == NULL) {
        return XET_NOMEM;
    }

    if (s->n) {
        s->nodes = b->alloc(b->data, s->n * sizeof(xet_merkle_node_t));

        if (s->nodes == NULL) {
            return XET_NOMEM;
        }
    }

    node = s->nodes;

    for (i = 0; i < b->levels; i++) {
        row = &b->level[i];

        s->levels[i].left = row->merged ? row->left : row->n;
        s->levels[i].right = row->n - s->levels[i].left;

        if (s->levels[i].left) {
            memcpy(node, row->nodes,
                   s->levels[i].left * sizeof(xet_merkle_node_t));
            node += s->levels[i].left;
        }
    }

    while (i--) {

        if (s->levels[i].right) {
            memcpy(node, b->level[i].nodes + s->levels[i].left,
                   s->levels[i].right * sizeof(xet_merkle_node_t));
            node += s->levels[i].right;
        }
    }

    b->kept += b->held;

    xet_subtree_start(b, 0, 0);

    return XET_OK;
}


xet_status_t
xet_subtree_check(const xet_subtree_t *s)
{
    size_t                      rest;
    unsigned                    i, top;
    const xet_subtree_level_t  *level;

    if (s->nlevels == 0 || s->nlevels > XET_MERKLE_LEVELS) {
        return XET_PLAN_DAMAGED;
    }

    rest = s->n;
    top = s->nlevels - 1;

    for (i = 0; i <= top; i++) {
        level = &s->levels[i];

        if (level->left > rest || level->right > rest - level->left) {
            return XET_PLAN_DAMAGED;
        }

        rest -= level->left + level->right;

        if (i < top
            && ((level->left == 0) != s->at_start
                || (level->right == 0) != s->at_end))
        {
            return XET_PLAN_DAMAGED;
        }
    }

    level = &s->levels[top];

    if (rest || level->right || (level->left == 0 && top)) {
        return XET_PLAN_DAMAGED;
    }

    return XET_OK;
}


xet_status_t
xet_subtree_root(const xet_subtree_t *s, xet_hash_t *root)
{
    if (!s->at_start || !s->at_end || s->n > 1) {
        return XET_PLAN_DAMAGED;
    }

    if (s->n == 0) {
        memset(root->bytes, 0, XET_HASH_LEN);
        return XET_OK;
    }

    *root = s->nodes[0].hash;

    return XET_OK;
}


/*
 * The keys are in snake case, as in the reference implementation, even inside
 * a body with camel-case keys.
 */

void
xet_subtree_json(xet_json_t *j, const xet_subtree_t *s)
{
    size_t    k;
    uint8_t   text[XET_HASH_STR_LEN];
    unsigned  i;

    xet_json_object_begin(j);

    xet_json_key(j, "nodes");
    xet_json_array_begin(j);

    for (k = 0; k < s->n; k++) {
        xet_json_object_begin(j);

        xet_json_key(j, "hash");
        xet_hash_print(text, &s->nodes[k].hash);
        xet_json_string(j, text, XET_HASH_STR_LEN);

        xet_json_put_u64(j, "size", s->nodes[k].size);

        xet_json_object_end(j);
    }

    xet_json_array_end(j);

    xet_json_key(j, "levels");
    xet_json_array_begin(j);

    for (i = 0; i < s->nlevels; i++) {
        xet_json_array_begin(j);
        xet_json_u64(j, s->levels[i].left);
        xet_json_u64(j, s->levels[i].right);
        xet_json_array_end(j);
    }

    xet_json_array_end(j);

    xet_json_put_bool(j, "at_start", s->at_start);
    xet_json_put_bool(j, "at_end", s->at_end);

    xet_json_object_end(j);
}


/* Adds nodes to level i one by one, so that complete groups do not pile up. */

static xet_status_t
xet_subtree_put(xet_subtree_builder_t *b, unsigned i,
    const xet_merkle_node_t *nodes, size_t n)
{
    size_t        k;
    xet_status_t  status;

    for (k = 0; k < n; k++) {

        status = xet_subtree_append(b, i, &nodes[k]);

        if (status != XET_OK) {
            return status;
        }

        status = xet_subtree_settle(b, i);

        if (status != XET_OK) {
            return status;
        }
    }

    return XET_OK;
}


/* Moves complete groups to the level above, from level i on. */

static xet_status_t
xet_subtree_settle(xet_subtree_builder_t *b, unsigned i)
{
    size_t              end;
    unsigned            above;
    xet_status_t        status;
    xet_subtree_row_t  *row;

    for ( ; i < b->levels; i = above) {
        row = &b->level[i];
        above = i + 1;

        end = xet_subtree_scan(b, row);

        if (end == row->left) {
            return XET_OK;
        }

        status = xet_subtree_promote(b, i, end, 0);

        if (status != XET_OK) {
            return status;
        }

        if (above == b->levels
            || b->level[above].scanned == b->level[above].n)
        {
            return XET_OK;
        }
    }

    return XET_OK;
}


/*
 * Returns the end of the nodes after row->left that can be grouped.
 *
 * A natural cut is a node whose hash is a multiple of merge_modulus.  Take
 * three natural cuts in a row, with no gap smaller than merge_min or greater
 * than merge_max - 2.  The middle cut always ends a group, so it is a stable
 * cut:
 *
 *   - A group that contains the first cut ends there.  If the group began too
 *     late for that, it ends at the middle cut, with at most merge_max nodes.
 *   - A group that begins after the first cut meets the middle cut first, with
 *     at least merge_min nodes.
 *
 * So the nodes before a stable cut can be grouped as soon as the cut is seen,
 * and are not needed on their level any more.  The last stable cut that is
 * found determines the returned end.
 */

static size_t
xet_subtree_scan(const xet_subtree_builder_t *b, xet_subtree_row_t *row)
{
    size_t              k, gap, end;
    unsigned            valid;
    const xet_suite_t  *suite;

    suite = b->suite;
    end = row->left;

    for (k = row->scanned; k < row->n; k++) {

        if (row->started && b->at_end) {
            break;
        }

        if (xet_hash_tail(row->nodes[k].hash.bytes) % suite->merge_modulus) {
            continue;
        }

        gap = k + 1 - row->cut;

        valid = row->natural && gap >= suite->merge_min
                && gap < suite->merge_max - 1;

        if (valid && row->gap) {
            end = row->cut;

            if (!row->started) {
                row->started = 1;
                row->left = row->cut;

                /*
                 * The next three natural cuts begin with the last of these
                 * three, so the gap before this cut must not count again.
                 */

                valid = 0;
            }
        }

        row->natural = 1;
        row->gap = valid ? 1 : 0;
        row->cut = k + 1;
    }

    row->scanned = row->n;

    return (row->started && b->at_end) ? row->n : end;
}


/*
 * Groups the nodes of level i from index row->left up to end.  Stops at a group
 * that may be incomplete; if rest is set, the remaining nodes form the last
 * group of the level instead.
 */

static xet_status_t
xet_subtree_promote(xet_subtree_builder_t *b, unsigned i, size_t end, int rest)
{
    size_t              n, pos;
    xet_status_t        status;
    xet_subtree_row_t  *row;
    xet_merkle_node_t   parent;

    row = &b->level[i];

    for (pos = row->left; pos < end; pos += n) {

        n = xet_subtree_group(b->suite, row->nodes + pos, end - pos);

        if (n == 0) {

            if (!rest) {
                break;
            }

            n = end - pos;
        }

        xet_merkle_group(b->suite, row->nodes + pos, n, &parent);

        status = xet_subtree_append(b, i + 1, &parent);

        if (status != XET_OK) {
            return status;
        }
    }

    n = pos - row->left;

    if (n == 0) {
        return XET_OK;
    }

    memmove(row->nodes + row->left, row->nodes + pos,
            (row->n - pos) * sizeof(xet_merkle_node_t));

    row->n -= n;
    row->scanned -= n;
    row->cut = (row->cut > pos) ? row->cut - n : row->left;
    row->merged = 1;

    b->held -= n;

    return XET_OK;
}


/*
 * Sets a stable cut after the last node of level i, where the subtree that is
 * being joined has a stable cut.
 *
 * A joined subtree lacks the middle of its levels.  The left nodes of a level
 * end at the first stable cut.  The scan recognizes a stable cut by the natural
 * cut after it, which here is in the missing middle.  The right nodes begin at
 * the last stable cut, and contain the natural cut after it.  With a stable cut
 * forced between the left and the right nodes, the scan continues as if it had
 * seen the missing middle.
 */

static xet_status_t
xet_subtree_force(xet_subtree_builder_t *b, unsigned i)
{
    xet_status_t        status;
    xet_subtree_row_t  *row;

    row = &b->level[i];

    if (!row->started) {
        row->started = 1;
        row->left = row->n;

    } else {
        status = xet_subtree_promote(b, i, row->n, 0);

        if (status != XET_OK) {
            return status;
        }

        if (row->n != row->left) {
            return XET_PLAN_DAMAGED;
        }

        status = xet_subtree_settle(b, i + 1);

        if (status != XET_OK) {
            return status;
        }
    }

    row->merged = 1;
    row->natural = 1;
    row->gap = 1;
    row->cut = row->n;

    return XET_OK;
}


/*
 * Returns the size of the group at nodes, or 0 if the group may be incomplete.
 */

static size_t
xet_subtree_group(const xet_suite_t *suite, const xet_merkle_node_t *nodes,
    size_t n)
{
    size_t  k;

    for (k = suite->merge_min; k <= n && k < suite->merge_max; k++) {

        if (xet_hash_tail(nodes[k - 1].hash.bytes) % suite->merge_modulus
            == 0)
        {
            return k;
        }
    }

    return (n < suite->merge_max) ? 0 : suite->merge_max;
}


static xet_status_t
xet_subtree_append(xet_subtree_builder_t *b, unsigned i,
    const xet_merkle_node_t *node)
{
    xet_merkle_node_t  *nodes;
    xet_subtree_row_t  *row;

    if (i == XET_MERKLE_LEVELS) {
        return XET_PLAN_DAMAGED;
    }

    if (b->kept >= b->max || b->held >= b->max - b->kept) {
        b->over = 1;
        return XET_NOMEM;
    }

    row = &b->level[i];

    if (row->n == row->room) {

        nodes = xet_alloc_double(b->alloc, b->data, row->nodes, &row->room,
                                 XET_SUBTREE_ROOM, sizeof(xet_merkle_node_t));

        if (nodes == NULL) {
            return XET_NOMEM;
        }

        row->nodes = nodes;
    }

    row->nodes[row->n++] = *node;
    b->held++;

    if (b->levels < i + 1) {
        b->levels = i + 1;
    }

    return XET_OK;
}


/*
 * If the run reaches the end of the file, groups the remaining nodes of each
 * level.
 */

static xet_status_t
xet_subtree_close(xet_subtree_builder_t *b)
{
    unsigned            i;
    xet_status_t        status;
    xet_subtree_row_t  *row;

    if (!b->at_end) {
        return XET_OK;
    }

    /* b->levels grows in this loop */

    for (i = 0; i < b->levels; i++) {
        row = &b->level[i];

        if (!row->started || (!row->merged && row->n <= 1)) {
            return XET_OK;
        }

        status = xet_subtree_promote(b, i, row->n, 1);

        if (status == XET_OK) {
            status = xet_subtree_settle(b, i + 1);
        }

        if (status != XET_OK) {
            return status;
        }
    }

    return XET_OK;
}
