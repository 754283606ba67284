
/*
 * The terms of the files that are being ingested.
 *
 * Purpose:    joins chunks that follow each other in a xorb to terms, keeps the
 *             terms until the xorb being written has its hash, and decides
 *             whether a short run of known chunks may become a term.
 * States:     none; waiting terms are passed on in order, all at once.
 * Ownership:  a part of the ingest, which makes room before it adds a chunk.
 * Threads:    one at a time.
 */

#include <string.h>

#include "xet_ingest_terms.h"


/*
 * Fragmentation.  Reading a file costs one request per term, so terms must not
 * be short.  While the last 128 terms have at least 8 chunks on average, a
 * known chunk is used immediately.  Otherwise a run of known chunks is held
 * back until it has 8 chunks (at most 1 MiB).  A run that ends earlier is
 * stored again, so that the term of the xorb being written becomes longer.
 *
 * A thrifty ingest uses a short run only if it has saved 8 chunks for each
 * term of the file, including the term of that run; at the start of a file it
 * holds back every run.  So a small file in which a chunk occurs twice is
 * stored with both occurrences.  Its xorb is then the same as the xorb of
 * another client, and heals a damaged copy of that xorb.
 *
 * A chunk that follows the last chunk of a term in the same xorb extends the
 * term.  Terms wait until the xorb being written has its hash.  When too many
 * terms wait, the xorb is closed early.
 */


static void xet_ingest_terms_save(xet_ingest_terms_t *t);
static void xet_ingest_terms_closed(xet_ingest_terms_t *t);


void
xet_ingest_terms_init(xet_ingest_terms_t *t, unsigned thrifty,
    xet_ingest_term_pt handler, void *ctx)
{
    memset(t, 0, offsetof(xet_ingest_terms_t, waiting));

    t->thrifty = thrifty ? 1 : 0;
    t->handler = handler;
    t->ctx = ctx;
}


void
xet_ingest_terms_next(xet_ingest_terms_t *t)
{
    t->file++;
    t->closed = 0;
    t->recent_sum = 0;
    t->saved = 0;

    memset(t->recent, 0, sizeof(t->recent));
}


int
xet_ingest_terms_extends(const xet_ingest_terms_t *t,
    const xet_known_ref_t *ref)
{
    const xet_ingest_waiting_t  *w;

    if (t->n == 0) {
        return 0;
    }

    w = &t->waiting[t->n - 1];

    return w->serial == ref->serial && w->term.chunk_end == ref->chunk
           && w->term.file == t->file;
}


void
xet_ingest_terms_add(xet_ingest_terms_t *t, const xet_known_ref_t *ref,
    const xet_hash_t *xorb, uint32_t raw_length)
{
    xet_ingest_waiting_t  *w;

    if (xet_ingest_terms_extends(t, ref)) {
        w = &t->waiting[t->n - 1];

        w->term.chunk_end++;
        w->term.raw_length += raw_length;

        xet_ingest_terms_save(t);

        return;
    }

    xet_ingest_terms_closed(t);

    w = &t->waiting[t->n++];

    memset(w, 0, sizeof(xet_ingest_waiting_t));

    w->serial = ref->serial;
    w->term.chunk_start = ref->chunk;
    w->term.chunk_end = ref->chunk + 1;
    w->term.raw_length = raw_length;
    w->term.file = t->file;

    if (xorb) {
        w->term.xorb = *xorb;
        w->named = 1;
    }

    t->saved -= (t->saved < XET_INGEST_RUN) ? t->saved : XET_INGEST_RUN;

    xet_ingest_terms_save(t);
}


static void
xet_ingest_terms_save(xet_ingest_terms_t *t)
{
    if (t->saved < XET_INGEST_SAVED) {
        t->saved++;
    }
}


/*
 * Counts the last term if it belongs to the current file.  That term can't be
 * extended any more.
 */

static void
xet_ingest_terms_closed(xet_ingest_terms_t *t)
{
    uint32_t                 *recent;
    const xet_ingest_term_t  *term;

    if (t->n == 0 || t->waiting[t->n - 1].term.file != t->file) {
        return;
    }

    term = &t->waiting[t->n - 1].term;
    recent = &t->recent[t->closed++ % XET_INGEST_RECENT];

    t->recent_sum -= *recent;
    *recent = term->chunk_end - term->chunk_start;
    t->recent_sum += *recent;
}


xet_status_t
xet_ingest_terms_flush(xet_ingest_terms_t *t, const xet_hash_t *xorb)
{
    unsigned               i;
    xet_status_t           rc;
    xet_ingest_waiting_t  *w;

    xet_ingest_terms_closed(t);

    for (i = 0; i < t->n; i++) {
        w = &t->waiting[i];

        if (!w->named) {

            if (xorb == NULL) {
                return XET_INTERNAL;
            }

            w->term.xorb = *xorb;
        }

        rc = t->handler(t->ctx, &w->term);

        if (rc != XET_OK) {
            return rc;
        }
    }

    t->n = 0;

    return XET_OK;
}


/*
 * Returns whether short runs must be held back.  In a thrifty ingest: whether
 * the balance t->saved is below XET_INGEST_RUN.  A saved chunk adds 1 to the
 * balance; a term subtracts XET_INGEST_RUN, but not below 0.  In any other
 * ingest: whether the last XET_INGEST_RECENT terms of the file have fewer than
 * XET_INGEST_RUN chunks on average; 0 while the file has fewer terms.
 */

int
xet_ingest_terms_fragmented(const xet_ingest_terms_t *t)
{
    if (t->thrifty) {
        return t->saved < XET_INGEST_RUN;
    }

    return t->closed >= XET_INGEST_RECENT
           && t->recent_sum < (uint64_t) XET_INGEST_RUN * XET_INGEST_RECENT;
}
