
/*
 * A finished subtree: its root, its shape, its JSON.
 *
 * Purpose:    what a subtree gives without a builder; the keys of the JSON
 *             form are those of the reference, in snake case, whatever the
 *             rest of a body has.
 * States:     none.
 * Ownership:  the subtree is read only.
 * Threads:    any.
 *
 * The shape of every subtree that was built: each level but the top one has
 * groups that went up, so it keeps nodes on its left exactly when the run does
 * not begin the file, and on its right exactly when the run does not end the
 * file.  The top level has no nodes on its right.
 */


#include "xet_subtree.h"


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

        xet_json_key(j, "size");
        xet_json_u64(j, s->nodes[k].size);

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

    xet_json_key(j, "at_start");
    xet_json_bool(j, s->at_start);
    xet_json_key(j, "at_end");
    xet_json_bool(j, s->at_end);

    xet_json_object_end(j);
}
