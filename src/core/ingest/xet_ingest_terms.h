
/*
 * The terms of a file that is being taken in, until the xorbs that they name
 * are complete; and how long they have been lately.  A part of xet_ingest.
 */

#ifndef _XET_INGEST_TERMS_H_INCLUDED_
#define _XET_INGEST_TERMS_H_INCLUDED_


#include "xet_ingest.h"
#include "xet_known.h"


#define XET_INGEST_TERMS   2048        /* that wait at most */
#define XET_INGEST_RECENT  128         /* whose lengths are looked at */


typedef struct {
    xet_ingest_term_t   term;
    uint64_t            serial;        /* of the xorb */
    unsigned            named:1;       /* term.xorb is set */
} xet_ingest_waiting_t;


typedef struct {
    xet_ingest_term_pt    handler;
    void                 *ctx;

    uint32_t              file;        /* the number of the one at hand */
    uint64_t              closed;      /* its terms that nothing extends */
    uint32_t              recent[XET_INGEST_RECENT];  /* chunks of these */
    uint64_t              recent_sum;

    unsigned              n;
    xet_ingest_waiting_t  waiting[XET_INGEST_TERMS];
} xet_ingest_terms_t;


void xet_ingest_terms_init(xet_ingest_terms_t *t, xet_ingest_term_pt handler,
    void *ctx);

/* What comes next is of another file. */
void xet_ingest_terms_next(xet_ingest_terms_t *t);

/* How many more can wait. */
unsigned xet_ingest_terms_room(const xet_ingest_terms_t *t);

/* Whether a chunk goes on where the last term ends. */
int xet_ingest_terms_extends(const xet_ingest_terms_t *t,
    const xet_known_ref_t *ref);

/* The next chunk of the file, which needs room; xorb is NULL when unnamed. */
void xet_ingest_terms_add(xet_ingest_terms_t *t, const xet_known_ref_t *ref,
    const xet_hash_t *xorb, uint32_t raw_length);

/* Gives all out; xorb is the name of those that have none. */
xet_status_t xet_ingest_terms_flush(xet_ingest_terms_t *t,
    const xet_hash_t *xorb);

/* Whether the recent terms have less than so many chunks on average. */
int xet_ingest_terms_fragmented(const xet_ingest_terms_t *t, unsigned chunks);


#endif /* _XET_INGEST_TERMS_H_INCLUDED_ */
