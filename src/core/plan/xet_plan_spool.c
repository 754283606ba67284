
/*
 * Plans in a temporary file.
 *
 * States of the sort; a call sorts one run, or merges XET_PLAN_SPOOL_STEP
 * terms:
 *
 *     putting   the terms still in memory are written to the file
 *     sorting   as many terms as the room holds are read, sorted, and
 *               appended as a run
 *     merging   all runs are merged in one pass; they share the room
 *     sorted
 *
 * The terms are sorted by xorb and chunk.  So the ranges of a xorb follow each
 * other, and are made from the terms one by one, by the rules of
 * xet_plan_ranges.c.  A range is stored as a term; its raw length is 1 in the
 * first range of a xorb, and 0 in later ranges.
 *
 * The caller owns the files and the memory.  One thread at a time.
 */


#include <stdlib.h>

#include "xet_plan.h"


#define XET_PLAN_SPOOL_STEP   65536
#define XET_PLAN_SPOOL_LEAST  4        /* minimum terms of a run in memory */


static xet_status_t xet_plan_spool_run(xet_plan_spool_t *s, xet_term_t *terms,
    uint32_t room);
static int xet_plan_spool_cmp(const void *one, const void *two);
static xet_status_t xet_plan_spool_runs(xet_plan_spool_t *s, uint8_t *room,
    size_t size);
static xet_status_t xet_plan_spool_refill(xet_plan_spool_t *s,
    xet_plan_run_t *run);
static void xet_plan_spool_sift(xet_plan_spool_t *s, uint32_t i);
static xet_status_t xet_plan_spool_merge(xet_plan_spool_t *s);
static xet_status_t xet_plan_spool_take(xet_plan_spool_t *s,
    const xet_term_t *t);
static xet_status_t xet_plan_spool_range(xet_plan_spool_t *s);
static xet_status_t xet_plan_spool_flush(xet_plan_spool_t *s);
static xet_status_t xet_plan_spool_append(xet_plan_spool_t *s,
    xet_plan_spool_file_t file, const xet_term_t *terms, uint32_t n);
static xet_status_t xet_plan_spool_load(xet_plan_spool_t *s,
    xet_plan_spool_file_t file, xet_term_t *terms, uint32_t n, uint32_t from);


void
xet_plan_spool_init(xet_plan_spool_t *s, xet_plan_t *plan,
    const xet_plan_spool_io_t *io, void *ctx)
{
    memset(s, 0, sizeof(xet_plan_spool_t));

    s->plan = plan;
    s->records.io = io;
    s->records.ctx = ctx;

    plan->spool = &s->records;
}


/*
 * The first term may already be in the file when it is trimmed.  So a copy in
 * memory is trimmed, and used instead of the term in the file.  The last term
 * is trimmed only while it is still in memory.
 */

xet_status_t
xet_plan_spool_put(xet_plan_spool_t *s)
{
    xet_plan_t    *p;
    xet_status_t   status;

    p = s->plan;

    if (p->n == 0) {
        return XET_OK;
    }

    if (p->before == 0) {
        s->records.head = p->terms[0];
    }

    status = xet_plan_spool_append(s, XET_PLAN_SPOOL_PLAN, p->terms, p->n);

    if (status != XET_OK) {
        return status;
    }

    p->before += p->n;
    p->n = 0;

    return XET_OK;
}


size_t
xet_plan_spool_room(uint32_t n)
{
    size_t  size, runs;

    /* doubling the room halves the number of runs */

    for (size = 16384; /* void */ ; size *= 2) {
        runs = 1 + (size_t) n / (size / sizeof(xet_term_t));

        if (size >= runs * sizeof(xet_plan_run_t)
                    + (runs + 1) * XET_PLAN_SPOOL_LEAST * sizeof(xet_term_t))
        {
            return size;
        }
    }
}


xet_status_t
xet_plan_spool_sort(xet_plan_spool_t *s, void *room, size_t size)
{
    xet_plan_t    *p;
    xet_status_t   status;

    p = s->plan;

    switch (s->state) {

    case XET_PLAN_SPOOL_PUTTING:

        status = xet_plan_spool_put(s);

        if (status == XET_OK) {
            status = xet_plan_cover(p);
        }

        p->n = p->before;
        s->state = XET_PLAN_SPOOL_SORTING;

        return (status == XET_OK) ? XET_AGAIN : status;

    case XET_PLAN_SPOOL_SORTING:

        if (s->done < p->n) {
            status = xet_plan_spool_run(s, room,
                                        (uint32_t) (size
                                                    / sizeof(xet_term_t)));

        } else {
            status = xet_plan_spool_runs(s, room, size);
            s->state = XET_PLAN_SPOOL_MERGING;
        }

        return (status == XET_OK) ? XET_AGAIN : status;

    case XET_PLAN_SPOOL_MERGING:

        status = xet_plan_spool_merge(s);

        if (status == XET_OK) {
            s->state = XET_PLAN_SPOOL_SORTED;
        }

        return status;

    default:
        return XET_INTERNAL;
    }
}


void
xet_plan_spool_read(xet_plan_spool_t *s, xet_term_t *buffer, uint32_t n)
{
    s->records.buffer = buffer;
    s->records.size = n;
    s->records.have = 0;
}


static xet_status_t
xet_plan_spool_run(xet_plan_spool_t *s, xet_term_t *terms, uint32_t room)
{
    uint32_t      n;
    xet_status_t  status;

    n = s->plan->n - s->done;

    if (n > room) {
        n = room;
    }

    status = xet_plan_spool_load(s, XET_PLAN_SPOOL_PLAN, terms, n, s->done);

    if (status != XET_OK) {
        return status;
    }

    if (s->done == 0) {
        terms[0] = s->records.head;
    }

    qsort(terms, n, sizeof(xet_term_t), xet_plan_spool_cmp);

    s->done += n;

    return xet_plan_spool_append(s, XET_PLAN_SPOOL_RUNS, terms, n);
}


static int
xet_plan_spool_cmp(const void *one, const void *two)
{
    int                rc;
    const xet_term_t  *a, *b;

    a = one;
    b = two;

    rc = memcmp(a->xorb.bytes, b->xorb.bytes, XET_HASH_LEN);

    if (rc) {
        return rc;
    }

    if (a->chunk_start != b->chunk_start) {
        return (a->chunk_start < b->chunk_start) ? -1 : 1;
    }

    if (a->chunk_end != b->chunk_end) {
        return (a->chunk_end < b->chunk_end) ? -1 : 1;
    }

    return 0;
}


/* Divides the room among the runs and the buffer of the resulting ranges. */

static xet_status_t
xet_plan_spool_runs(xet_plan_spool_t *s, uint8_t *room, size_t size)
{
    uint32_t         i, n, each;
    xet_term_t      *terms;
    xet_status_t     status;
    xet_plan_run_t  *run;

    each = (uint32_t) (size / sizeof(xet_term_t));
    n = (s->plan->n + each - 1) / each;

    if (size < n * sizeof(xet_plan_run_t)
               + (n + 1) * XET_PLAN_SPOOL_LEAST * sizeof(xet_term_t))
    {
        return XET_NOMEM;
    }

    s->runs = (xet_plan_run_t *) room;
    s->nruns = n;

    terms = (xet_term_t *) (room + n * sizeof(xet_plan_run_t));

    s->slice = (uint32_t) ((size - n * sizeof(xet_plan_run_t))
                           / sizeof(xet_term_t) / (n + 1));

    for (i = 0; i < n; i++, terms += s->slice) {
        run = &s->runs[i];

        run->terms = terms;
        run->next = i * each;
        run->end = (i + 1 < n) ? run->next + each : s->plan->n;

        status = xet_plan_spool_refill(s, run);

        if (status != XET_OK) {
            return status;
        }
    }

    s->out = terms;

    for (i = n / 2; i; i--) {
        xet_plan_spool_sift(s, i - 1);
    }

    return XET_OK;
}


static xet_status_t
xet_plan_spool_refill(xet_plan_spool_t *s, xet_plan_run_t *run)
{
    uint32_t  from;

    run->i = 0;
    run->n = run->end - run->next;

    if (run->n > s->slice) {
        run->n = s->slice;
    }

    from = run->next;
    run->next += run->n;

    return xet_plan_spool_load(s, XET_PLAN_SPOOL_RUNS, run->terms, run->n,
                               from);
}


static void
xet_plan_spool_sift(xet_plan_spool_t *s, uint32_t i)
{
    uint32_t         k;
    xet_plan_run_t   run, *runs;

    runs = s->runs;
    run = runs[i];

    for (k = 2 * i + 1; k < s->nruns; k = 2 * i + 1) {

        if (k + 1 < s->nruns
            && xet_plan_spool_cmp(&runs[k + 1].terms[runs[k + 1].i],
                                  &runs[k].terms[runs[k].i])
               < 0)
        {
            k++;
        }

        if (xet_plan_spool_cmp(&run.terms[run.i], &runs[k].terms[runs[k].i])
            <= 0)
        {
            break;
        }

        runs[i] = runs[k];
        i = k;
    }

    runs[i] = run;
}


static xet_status_t
xet_plan_spool_merge(xet_plan_spool_t *s)
{
    uint32_t         n;
    xet_status_t     status;
    xet_plan_run_t  *run;

    for (n = 0; s->nruns; n++) {

        if (n == XET_PLAN_SPOOL_STEP) {
            return XET_AGAIN;
        }

        run = &s->runs[0];
        status = xet_plan_spool_take(s, &run->terms[run->i++]);

        if (status == XET_OK && run->i == run->n) {

            if (run->next < run->end) {
                status = xet_plan_spool_refill(s, run);

            } else {
                *run = s->runs[--s->nruns];
            }
        }

        if (status != XET_OK) {
            return status;
        }

        if (s->nruns) {
            xet_plan_spool_sift(s, 0);
        }
    }

    status = xet_plan_spool_range(s);

    return (status == XET_OK) ? xet_plan_spool_flush(s) : status;
}


/* Merges the next term in order into the ranges, as xet_plan_merge() does. */

static xet_status_t
xet_plan_spool_take(xet_plan_spool_t *s, const xet_term_t *t)
{
    uint32_t      first;
    xet_status_t  status;

    first = (s->plan->nxorbs == 0 || !xet_hash_equal(&t->xorb, &s->prev.xorb));

    if (!first) {
        status = xet_plan_agree(t, &s->prev, &s->last);

        if (status != XET_OK) {
            return status;
        }
    }

    s->prev = *t;

    if (!first && t->chunk_start <= s->last.chunk_end) {

        if (t->chunk_end > s->last.chunk_end) {
            s->last = *t;
            s->range.chunk_end = t->chunk_end;
            s->range.stored_end = t->stored_end;
        }

        return XET_OK;
    }

    if (s->plan->nxorbs) {
        status = xet_plan_spool_range(s);

        if (status != XET_OK) {
            return status;
        }
    }

    s->plan->nxorbs += first;
    s->last = *t;
    s->range = *t;
    s->range.raw_length = first;

    return XET_OK;
}


static xet_status_t
xet_plan_spool_range(xet_plan_spool_t *s)
{
    s->out[s->nout++] = s->range;
    s->plan->nranges++;

    return (s->nout == s->slice) ? xet_plan_spool_flush(s) : XET_OK;
}


static xet_status_t
xet_plan_spool_flush(xet_plan_spool_t *s)
{
    uint32_t  n;

    n = s->nout;
    s->nout = 0;

    return n ? xet_plan_spool_append(s, XET_PLAN_SPOOL_PLAN, s->out, n)
             : XET_OK;
}


static xet_status_t
xet_plan_spool_append(xet_plan_spool_t *s, xet_plan_spool_file_t file,
    const xet_term_t *terms, uint32_t n)
{
    return s->records.io->append(s->records.ctx, file, terms,
                                 n * sizeof(xet_term_t));
}


static xet_status_t
xet_plan_spool_load(xet_plan_spool_t *s, xet_plan_spool_file_t file,
    xet_term_t *terms, uint32_t n, uint32_t from)
{
    return s->records.io->read(s->records.ctx, file, terms,
                               n * sizeof(xet_term_t),
                               (uint64_t) from * sizeof(xet_term_t));
}
