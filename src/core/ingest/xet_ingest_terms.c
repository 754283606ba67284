
/*
 * Terms that wait for their xorbs.
 *
 * Purpose:    chunks in the order of the file become terms: a chunk that
 *             follows the last chunk of a term in the same xorb extends the
 *             term.
 * States:     none but the list, whose last term is open until another comes.
 * Ownership:  the caller's structure.
 * Threads:    one at a time.
 */


#include <stddef.h>
#include <string.h>

#include "xet_ingest_terms.h"


static void xet_ingest_terms_closed(xet_ingest_terms_t *t);
static void xet_ingest_terms_save(xet_ingest_terms_t *t);


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


unsigned
xet_ingest_terms_room(const xet_ingest_terms_t *t)
{
    return XET_INGEST_TERMS - t->n;
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


/* Counts the last term, if it is of this file: it is extended no more. */

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


int
xet_ingest_terms_fragmented(const xet_ingest_terms_t *t)
{
    if (t->thrifty) {
        return t->saved < XET_INGEST_RUN;
    }

    return t->closed >= XET_INGEST_RECENT
           && t->recent_sum < (uint64_t) XET_INGEST_RUN * XET_INGEST_RECENT;
}
