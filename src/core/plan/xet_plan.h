
/*
 * Reconstruction plans: which terms a byte range of a file needs, and which
 * byte ranges of which xorbs hold them (docs/protocol.md, reconstruction
 * rules).
 *
 * Life: init; add every packed segment that covers the range, in order; ask
 * for the edges (the first and last term may need trimming to chunks, for
 * which their xorb's chunk ends must be fetched); trim; finish; print.
 * Memory comes from the allocator and grows with the number of terms of the
 * range.
 */

#ifndef _XET_PLAN_H_INCLUDED_
#define _XET_PLAN_H_INCLUDED_


#include "xet_term.h"
#include "xet_buf.h"
#include "xet_range.h"


/* One range to fetch: chunks and bytes of a xorb. */

typedef struct {
    uint32_t           chunk_start;
    uint32_t           chunk_end;      /* exclusive */
    uint32_t           stored_start;
    uint32_t           stored_end;     /* exclusive */
} xet_plan_range_t;


typedef struct {
    xet_hash_t         xorb;
    xet_plan_range_t  *ranges;         /* sorted, neither touch nor overlap */
    uint32_t           n;
} xet_plan_fetch_t;


typedef struct {
    xet_alloc_pt       alloc;
    void              *data;

    xet_range_t        want;           /* bytes of the file */
    uint64_t           offset;         /* of the first term kept */
    uint64_t           position;       /* where the next added term starts,
                                          so the end of the last one kept */

    xet_term_t        *terms;
    uint32_t           n;
    uint32_t           room;

    uint64_t           skip;           /* offset_into_first_range */

    xet_plan_fetch_t  *fetches;        /* by first use */
    uint32_t           nfetches;
} xet_plan_t;


/*
 * want: 0 <= start < end, clamped to the file's size by the caller.  For the
 * empty file start == end, and finish is called without any add.
 */
void xet_plan_init(xet_plan_t *p, xet_alloc_pt alloc, void *data,
    const xet_range_t *want);

/*
 * Adds the packed terms that begin at first_offset of the file; terms wholly
 * outside the range are dropped.  The first call begins at or before the
 * range, the others where the one before ended (XET_PLAN_DAMAGED otherwise);
 * what comes after the range is not looked at.  XET_PLAN_DAMAGED, XET_NOMEM.
 */
xet_status_t xet_plan_add(xet_plan_t *p, const uint8_t *packed, size_t len,
    uint64_t first_offset);

/*
 * The terms to trim: bit 0 the first, bit 1 the last one of the plan; 0 when
 * both lie inside the range.  The two may be the same term.  To be asked once,
 * before trimming: a trimmed term may still begin outside, in its first chunk.
 */
#define XET_PLAN_FIRST  1
#define XET_PLAN_LAST   2

unsigned xet_plan_edges(const xet_plan_t *p);

/*
 * Trims the first or last term, which, to whole chunks.  The ends are those
 * of the chunks [chunk_start, chunk_end) that the term had before either
 * trim, with the ends before chunk_start (0 at the xorb's start).  When first
 * and last are the same term, trim XET_PLAN_FIRST | XET_PLAN_LAST in one
 * call.  XET_PLAN_DAMAGED when the ends contradict the term.
 */
typedef struct {
    uint32_t           n;
    uint32_t           raw_before;
    uint32_t           stored_before;
    const uint8_t     *raw_ends;       /* n little-endian u32 */
    const uint8_t     *stored_ends;
} xet_plan_ends_t;

xet_status_t xet_plan_trim(xet_plan_t *p, unsigned which,
    const xet_plan_ends_t *ends);

/*
 * Merges the ranges a xorb needs.  XET_PLAN_DAMAGED when the terms do not
 * cover the range, or place a chunk of a xorb at different bytes; XET_NOMEM.
 */
xet_status_t xet_plan_finish(xet_plan_t *p);


/*
 * Writes the URL for ranges of a xorb: characters that need no escape in
 * JSON, onto b.  It must differ for different ranges.
 */
typedef xet_status_t (*xet_plan_url_pt)(void *ctx, xet_buf_t *b,
    const xet_hash_t *xorb, const xet_plan_range_t *ranges, size_t n);

/*
 * The bodies of the two versions.  group: ranges in one v2 entry at most,
 * at least 1, for a URL a range.  b is the caller's; after an error what it
 * holds is of no use.  XET_NOMEM, or the error of url.
 */
xet_status_t xet_plan_json_v1(const xet_plan_t *p, xet_buf_t *b,
    xet_plan_url_pt url, void *ctx);
xet_status_t xet_plan_json_v2(const xet_plan_t *p, xet_buf_t *b,
    xet_plan_url_pt url, void *ctx, size_t group);


#endif /* _XET_PLAN_H_INCLUDED_ */
