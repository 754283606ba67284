
/*
 * Windows of a file for range edits (docs/protocol.md, range edits): the
 * parts that a client who rewrites some bytes has to chunk anew, and of the
 * parts in between, the gaps, what it needs to make the new file's hash and
 * its shard without them.
 *
 * Life: the ranges of the X-Range-Dirty header (xet_range_parse(), then
 * xet_windows_ranges()); init; add every term of the file in order; finish;
 * print.
 *
 * A window begins and ends at term boundaries.  It begins with the first term
 * that has a dirty byte.  The chunker of the client is in step with the old
 * chunks again after two chunks in a row that are clean and of a stable
 * size (see xet_suite_t); the window ends with the term where that happens,
 * or with the file, unless the next term is dirty.
 *
 * Real clients ask for whole terms, and need a window to begin at a term
 * boundary.  A request that does not is answered as if it did, so a client
 * finds its bytes inside a window, whatever it asked for.
 */

#ifndef _XET_WINDOWS_H_INCLUDED_
#define _XET_WINDOWS_H_INCLUDED_


#include "xet_subtree.h"
#include "xet_range.h"


/*
 * Clamps *n specs to a file of size bytes, sorts and merges them to ranges,
 * which has room for *n.  On XET_OK the *n ranges that are left are not empty,
 * in order, and neither touch nor overlap.  XET_RANGE_PAST_END when no range is
 * left.
 */
xet_status_t xet_windows_ranges(const xet_range_spec_t *specs,
    xet_range_t *ranges, size_t *n, uint64_t size);


/* A term and its chunks. */

typedef struct {
    uint32_t               n;          /* chunks, 1 .. xorb_chunks_max */
    uint32_t               raw_length; /* bytes of all of them */
    uint32_t               raw_before; /* raw end of the chunk before the first
                                          one in the xorb, 0 when none is */
    const uint8_t         *raw_ends;   /* n little-endian u32 */
    const uint8_t         *hashes;     /* n packed chunk hashes */

    /* NULL: computed here, and only for the terms that need it */
    const xet_hash_t      *verification;
} xet_windows_term_t;


typedef struct {
    xet_alloc_pt           alloc;
    void                  *data;

    uint64_t               size;       /* bytes of the file */
    uint64_t               position;   /* bytes of the terms added */
    uint64_t               chunks;     /* of the terms added */

    const xet_range_t     *dirty;      /* the first range not yet passed */
    const xet_range_t     *dirty_end;

    unsigned               open:1;     /* the last window has not ended */
    unsigned               stable;     /* clean stable chunks in a row, <= 2 */

    /* the answer, complete after finish */

    xet_range_t           *windows;
    size_t                 n;

    xet_subtree_t         *gaps;       /* n + 1, those of no nodes are empty */

    xet_hash_t            *verifications;
    size_t                 nverifications;
    size_t                 room;

    xet_subtree_builder_t  gap;
} xet_windows_t;


/*
 * ranges: as made by xet_windows_ranges() for the same size, n of them; they
 * live until finish.  max: the nodes of all gaps at most, a limit on memory
 * and on the body (some 100 bytes a node), SIZE_MAX for none; see
 * xet_subtree_init().  XET_NOMEM; XET_INTERNAL when ranges are not as said.
 */
xet_status_t xet_windows_init(xet_windows_t *w, const xet_suite_t *suite,
    xet_alloc_pt alloc, void *data, const xet_range_t *ranges, size_t n,
    uint64_t size, size_t max);

/*
 * Adds the next term of the file, which is read and not kept.
 * XET_PLAN_DAMAGED when its fields contradict each other or the file's size;
 * XET_NOMEM, with w->gap.over set when max is the reason.  After an error w
 * can't be used any more.
 */
xet_status_t xet_windows_add(xet_windows_t *w, const xet_windows_term_t *term);

/* XET_PLAN_DAMAGED when the terms are not the whole file; XET_NOMEM. */
xet_status_t xet_windows_finish(xet_windows_t *w);

/* Writes the body of the answer to b.  XET_NOMEM. */
xet_status_t xet_windows_json(const xet_windows_t *w, xet_buf_t *b);


#endif /* _XET_WINDOWS_H_INCLUDED_ */
