
/*
 * Reconstruction plans: which terms a byte range of a file needs, or several
 * whole files, and which byte ranges of which xorbs hold them
 * (docs/protocol.md, reconstruction rules).
 *
 * Life for a range: init; add every packed segment that covers the range, in
 * order; ask for the edges (the first and last term may need trimming to
 * chunks, for which their xorb's chunk ends must be fetched); trim; finish;
 * print (xet_plan_writer.h).
 *
 * Life for files: init_files; for each file name it and add its segments;
 * finish; print.
 *
 * Memory comes from the allocator: 56 bytes a term that is kept (more when
 * terms come in several calls without a xet_plan_reserve() before), 8 a term
 * in finish, 36 a file.  Nothing else grows, however many xorbs the terms are
 * of.  Where this is too much, the terms go into a file: xet_plan_spool.h.
 */

#ifndef _XET_PLAN_H_INCLUDED_
#define _XET_PLAN_H_INCLUDED_


#include "xet_term.h"
#include "xet_buf.h"
#include "xet_range.h"


/* One range to fetch: chunks and bytes of a stored copy of a xorb. */

typedef struct {
    uint32_t           chunk_start;
    uint32_t           chunk_end;      /* exclusive */
    uint32_t           stored_start;
    uint32_t           stored_end;     /* exclusive */
    uint32_t           tag;            /* of the copy: the same in all ranges
                                          that a plan has of a xorb */
} xet_plan_range_t;


/* A file of a plan for several. */

typedef struct {
    xet_hash_t         hash;
    uint32_t           end;            /* number of its last term + 1 */
} xet_plan_file_t;


/*
 * The caller's two files for terms that are too many for memory.
 * XET_PLAN_SPOOL_PLAN has the terms in the order of the file and then the
 * ranges; XET_PLAN_SPOOL_RUNS is needed only while sorting, and may be dropped
 * after that.
 */

typedef enum {
    XET_PLAN_SPOOL_PLAN = 0,
    XET_PLAN_SPOOL_RUNS,
    XET_PLAN_SPOOL_FILES
} xet_plan_spool_file_t;


/* Both return XET_OK or an error; append writes at the end of the file. */

typedef struct {
    xet_status_t     (*append)(void *ctx, xet_plan_spool_file_t file,
                               const void *data, size_t len);
    xet_status_t     (*read)(void *ctx, xet_plan_spool_file_t file,
                             void *data, size_t len, uint64_t offset);
} xet_plan_spool_io_t;


/*
 * The records of a plan in a file, terms first, then ranges: which of them are
 * in memory, in a window that moves as they are asked for.
 */

typedef struct {
    const xet_plan_spool_io_t  *io;
    void                       *ctx;   /* of io */

    xet_term_t                  head;  /* the first term, as trimmed */

    xet_term_t                 *window;
    uint32_t                    size;  /* records that the window can hold */
    uint32_t                    from;
    uint32_t                    have;  /* records in the window */
    xet_hash_t                  xorb;  /* of the range asked for last */
    xet_status_t                status;    /* of a read that failed */
} xet_plan_records_t;


typedef struct {
    xet_alloc_pt         alloc;
    void                *data;

    xet_plan_records_t  *spool;        /* NULL: all terms are in memory */
    uint32_t             before;       /* terms in the file, before terms[] */

    xet_range_t          want;         /* bytes of the (current) file */
    uint64_t             offset;       /* of the first term kept */
    uint64_t             position;     /* where the next added term starts,
                                          so the end of the last one kept */

    xet_term_t          *terms;
    uint32_t             n;
    uint32_t             room;

    xet_plan_file_t     *files;
    uint32_t             nfiles;
    uint32_t             files_max;
    unsigned             several:1;    /* of xet_plan_init_files() */

    uint64_t             skip;         /* offset_into_first_range */

    uint64_t            *ranges;       /* packed, see xet_plan_range() */
    uint32_t             nranges;
    uint32_t             nxorbs;
} xet_plan_t;


/*
 * want: 0 <= start < end, clamped to the file's size by the caller.  For the
 * empty file start == end, and finish is called without any add.
 */
void xet_plan_init(xet_plan_t *p, xet_alloc_pt alloc, void *data,
    const xet_range_t *want);

/*
 * A plan for whole files, max of them at most, none to begin with.  XET_NOMEM.
 */
xet_status_t xet_plan_init_files(xet_plan_t *p, xet_alloc_pt alloc,
    void *data, size_t max);

/*
 * The terms added from here on are those of this file, of size bytes; offsets
 * begin at 0 again.  A file without terms has size 0.  The caller sees to it
 * that no file comes twice.  XET_PLAN_DAMAGED when the previous file is not
 * complete; XET_INTERNAL when there are max files already, or the plan is not
 * for files.
 */
xet_status_t xet_plan_file(xet_plan_t *p, const xet_hash_t *hash,
    uint64_t size);

/*
 * Room for n terms in all.  A plan without it doubles its room when it has to,
 * and the allocator keeps the smaller arrays as well.  A single call of
 * xet_plan_add() needs no reserve.  XET_PLAN_DAMAGED for more terms than a plan
 * may have (2^25), XET_NOMEM.
 */
xet_status_t xet_plan_reserve(xet_plan_t *p, size_t n);

/*
 * Adds the packed terms that begin at first_offset of the file; terms wholly
 * outside the range are dropped.  The first call begins at or before the range,
 * each further call where the previous one ended (XET_PLAN_DAMAGED otherwise);
 * what comes after the range is not looked at, but terms behind the end of one
 * of several files are damage.  XET_PLAN_DAMAGED, XET_NOMEM; XET_INTERNAL for
 * an empty range, or before the first of several files.
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

/* The first or the last term: which is XET_PLAN_FIRST or XET_PLAN_LAST. */
xet_term_t *xet_plan_edge(const xet_plan_t *p, unsigned which);

/*
 * Trims the first or the last term, as which says, to whole chunks.  The ends
 * are those of the chunks [chunk_start, chunk_end) that the term had before it
 * was trimmed, with the ends before chunk_start (0 at the xorb's start).  When
 * first and last are the same term, trim XET_PLAN_FIRST | XET_PLAN_LAST in one
 * call.  XET_PLAN_DAMAGED when the ends contradict the term, XET_PLAN_CHANGED
 * when the ends are of another stored copy; XET_INTERNAL for a plan that has no
 * term in memory, or is of several files, which are never trimmed.
 */
typedef struct {
    uint32_t           n;
    uint32_t           raw_before;
    uint32_t           stored_before;
    uint32_t           tag;
    const uint8_t     *raw_ends;       /* n little-endian u32 */
    const uint8_t     *stored_ends;
} xet_plan_ends_t;

xet_status_t xet_plan_trim(xet_plan_t *p, unsigned which,
    const xet_plan_ends_t *ends);

/*
 * Finds the ranges that each xorb needs, over all files.  XET_PLAN_DAMAGED
 * when the terms do not cover the range or the last file, or place a chunk of
 * a xorb at different bytes; XET_PLAN_CHANGED when the terms of a xorb are of
 * different copies, one of which has healed the xorb meanwhile; XET_NOMEM.
 */
xet_status_t xet_plan_finish(xet_plan_t *p);

/*
 * The checks of xet_plan_finish(), for xet_plan_spool_sort() as well.
 * xet_plan_cover() checks that the terms cover what is wanted, and sets skip.
 * xet_plan_agree() checks that t is stored where it can be after two terms of
 * the same xorb: prev, the previous term in the order of chunks, and last, the
 * term of the range so far that ends last.  XET_PLAN_DAMAGED if not,
 * XET_PLAN_CHANGED when t is of another copy of the xorb.
 */
xet_status_t xet_plan_cover(xet_plan_t *p);
xet_status_t xet_plan_agree(const xet_term_t *t, const xet_term_t *prev,
    const xet_term_t *last);

/* Term i < n; the pointer is good until the next call for a term or a range. */
const xet_term_t *xet_plan_term_at(const xet_plan_t *p, uint32_t i);

/*
 * Sets *range to range i < nranges and returns its xorb, which is good until
 * the next call for another xorb.  The ranges of a xorb follow each other,
 * sorted, and neither touch nor overlap; xorbs are in the order of their first
 * use, in a plan in a file in the order of their hashes.
 */
const xet_hash_t *xet_plan_range(const xet_plan_t *p, uint32_t i,
    xet_plan_range_t *range);

/* Whether range i is the first of its xorb; 1 for i == nranges. */
int xet_plan_xorb_begins(const xet_plan_t *p, uint32_t i);

/*
 * After finish: leaves each xorb max ranges at most (at least 1) by fetching
 * across the narrowest gaps, so clients get chunks that they have no use for.
 *
 * It is for URLs that name the xorb and not the ranges, as no two entries of a
 * body may have the same URL: with max 1 every v1 entry is the only one of
 * its xorb, with max up to the writer's group every v2 entry is.  (A further
 * entry for what is left would repeat the URL.)  A range is still whole chunks
 * and the bytes of just these, every term still lies in one range, and no two
 * of a xorb begin at the same chunk.  Plans in a file can't be limited.
 *
 * A client that asks a v2 entry for all ranges at once names them in one
 * header of up to 18 bytes a range: 400 fit in the 8 KiB that nginx accepts
 * by default.  XET_INTERNAL for max 0, or a plan in a file.
 */
xet_status_t xet_plan_limit(xet_plan_t *p, uint32_t max);


#endif /* _XET_PLAN_H_INCLUDED_ */
