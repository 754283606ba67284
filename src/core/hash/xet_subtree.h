
/*
 * Subtrees of the aggregated hash tree: what a run of consecutive leaves of a
 * file settles, whatever stands before and after it.  The subtrees of runs
 * that follow each other, and single leaves between them, join into the
 * subtree of the whole run, in the end into the root of the file, so that a
 * client that replaces a part of a file gets the new hash of the file without
 * the other chunks (docs/protocol.md, range edits).
 *
 * A level keeps on its left the nodes whose group may still begin before the
 * run and on its right those whose group may still end after it; what lies
 * between is grouped and makes the level above.  Both ends of that middle are
 * stable cuts; a stable cut is the end of a group wherever grouping began.
 */

#ifndef _XET_SUBTREE_H_INCLUDED_
#define _XET_SUBTREE_H_INCLUDED_


#include "xet_merkle.h"
#include "xet_json.h"


typedef struct {
    size_t                 left;       /* nodes kept on either side */
    size_t                 right;
} xet_subtree_level_t;


typedef struct {
    xet_merkle_node_t     *nodes;      /* left ones of level 0, of level 1 and
                                          so on, then right ones from the top
                                          level down */
    size_t                 n;          /* 0: a run of no leaves */
    xet_subtree_level_t   *levels;
    unsigned               nlevels;    /* 1 .. XET_MERKLE_LEVELS */

    unsigned               at_start:1; /* the run begins the file */
    unsigned               at_end:1;   /* the run ends the file */
} xet_subtree_t;


/* A level in the making, private to the builder. */

typedef struct {
    xet_merkle_node_t     *nodes;
    size_t                 n;
    size_t                 room;
    size_t                 left;       /* nodes before the first stable cut */
    size_t                 scanned;    /* nodes looked at for stable cuts */
    size_t                 cut;        /* after the last natural cut */

    unsigned               started:1;  /* the first stable cut is known */
    unsigned               merged:1;   /* groups went up */
    unsigned               natural:1;  /* there is a last natural cut */
    unsigned               gap:1;      /* a valid gap is before the last cut */
} xet_subtree_row_t;


/*
 * The builder holds what the subtree of the leaves so far would hold, and
 * less than a group more on each level, never the leaves themselves.  That is
 * some dozens of nodes on each of O(log n) levels when hashes fall at random.
 * Leaves without stable cuts (one chunk repeated, as in a file of zeros) are
 * all kept, in the subtree as well, so a caller that takes leaves from clients
 * has to set max.
 */

typedef struct {
    const xet_suite_t     *suite;
    xet_alloc_pt           alloc;
    void                  *data;

    size_t                 max;        /* nodes at most, SIZE_MAX for any */
    size_t                 kept;       /* nodes of all subtrees finished */
    size_t                 held;       /* nodes of the subtree being built */

    unsigned               levels;
    unsigned               at_start:1;
    unsigned               at_end:1;
    unsigned               any:1;      /* something was added */
    unsigned               ended:1;    /* a subtree at the end was added */
    unsigned               over:1;     /* max was the reason for XET_NOMEM */

    xet_subtree_row_t      level[XET_MERKLE_LEVELS];
} xet_subtree_builder_t;


/*
 * max bounds the nodes held here and in all subtrees finished, together; one
 * more gives XET_NOMEM and sets over.  A node takes 40 bytes in arrays that
 * grow by doubling, and another 40 in the finished subtree.
 */
void xet_subtree_init(xet_subtree_builder_t *b, const xet_suite_t *suite,
    xet_alloc_pt alloc, void *data, size_t max);

/*
 * Begins a run; one builder makes many runs, one after the other.  at_start:
 * the first leaf of the run is the first one of the file.  at_end: the last
 * leaf of the run will be the last one of the file.
 */
void xet_subtree_start(xet_subtree_builder_t *b, int at_start, int at_end);

/*
 * Adds a leaf, or all leaves of the subtree s; s is read only and may come
 * from anywhere.  XET_NOMEM; XET_PLAN_DAMAGED when s contradicts itself or its
 * place in the run, or when anything follows a subtree at the end of the file.
 * After an error the builder can't be used any more.
 */
xet_status_t xet_subtree_add(xet_subtree_builder_t *b, const uint8_t *hash,
    uint64_t size);
xet_status_t xet_subtree_join(xet_subtree_builder_t *b,
    const xet_subtree_t *s);

/* Ends the run; the arrays of s are the allocator's.  XET_NOMEM. */
xet_status_t xet_subtree_finish(xet_subtree_builder_t *b, xet_subtree_t *s);

/*
 * XET_PLAN_DAMAGED when s can't come from a builder: the counts of its levels
 * do not add up to n, or do not suit at_start and at_end.
 */
xet_status_t xet_subtree_check(const xet_subtree_t *s);

/*
 * The root of a subtree with at_start and at_end, as xet_merkle_finish()
 * gives it; XET_PLAN_DAMAGED for any other subtree.
 */
xet_status_t xet_subtree_root(const xet_subtree_t *s, xet_hash_t *root);

/* Writes s as an object with nodes, levels, at_start and at_end. */
void xet_subtree_json(xet_json_t *j, const xet_subtree_t *s);


#endif /* _XET_SUBTREE_H_INCLUDED_ */
