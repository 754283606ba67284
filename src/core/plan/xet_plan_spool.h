
/*
 * Plans of more terms than memory is for: the terms lie in a temporary file,
 * and the ranges that hold them are found by sorting there.
 *
 * Life: the plan's init; xet_plan_spool_init(); then for each part of the
 * terms add, and xet_plan_spool_put() as often as the caller likes, once at
 * least, but not between the last add and trim; trim; xet_plan_spool_sort() in
 * place of xet_plan_finish(), until it is done; for each piece of the answer
 * xet_plan_spool_read(), and the writer.
 *
 * Memory is what the caller gives: an array of terms while adding, room while
 * sorting, a window while writing.  None of it depends on the file.
 */

#ifndef _XET_PLAN_SPOOL_H_INCLUDED_
#define _XET_PLAN_SPOOL_H_INCLUDED_


#include "xet_plan.h"


/* A run of sorted terms, while it is merged with the other runs. */

typedef struct {
    xet_term_t         *terms;         /* read and not yet taken */
    uint32_t            i;
    uint32_t            n;
    uint32_t            next;          /* in the file */
    uint32_t            end;
} xet_plan_run_t;


typedef enum {
    XET_PLAN_SPOOL_PUTTING = 0,
    XET_PLAN_SPOOL_SORTING,
    XET_PLAN_SPOOL_MERGING,
    XET_PLAN_SPOOL_SORTED
} xet_plan_spool_state_e;


typedef struct {
    xet_plan_records_t   records;
    xet_plan_t          *plan;

    uint32_t             done;         /* terms that are in runs */
    xet_plan_spool_state_e  state;

    /* the merge: a heap, the least first; and the ranges that are made */

    xet_plan_run_t      *runs;
    uint32_t             nruns;
    uint32_t             slice;        /* terms of a run in memory */
    xet_term_t          *out;
    uint32_t             nout;
    xet_term_t           range;        /* the range that grows */
    xet_term_t           prev;
    xet_term_t           last;
} xet_plan_spool_t;


/* The plan has been initialised; s, io and ctx live as long as the plan. */
void xet_plan_spool_init(xet_plan_spool_t *s, xet_plan_t *plan,
    const xet_plan_spool_io_t *io, void *ctx);

/*
 * Appends the terms that the plan holds in memory to the file, which frees the
 * plan's array for more terms.  The errors of append.
 */
xet_status_t xet_plan_spool_put(xet_plan_spool_t *s);

/*
 * Does a part of what xet_plan_finish() does for a plan in memory: puts the
 * terms that are left, sorts parts of size bytes in room, merges the parts to
 * ranges.  XET_AGAIN asks for another call, with the same room; after XET_OK
 * neither room nor the file of runs is needed.  The errors of xet_plan_finish()
 * and of the files; XET_NOMEM for a room smaller than xet_plan_spool_room()
 * says.
 */
xet_status_t xet_plan_spool_sort(xet_plan_spool_t *s, void *room,
    size_t size);

/* Bytes of room that n terms need at least. */
size_t xet_plan_spool_room(uint32_t n);

/*
 * Gives the plan a window of n terms to read records into, before each piece
 * that is written.  A failure to read is returned by xet_plan_writer_next().
 */
void xet_plan_spool_read(xet_plan_spool_t *s, xet_term_t *window, uint32_t n);


#endif /* _XET_PLAN_SPOOL_H_INCLUDED_ */
