
/*
 * The waiting terms of an ingest.  Internal to the core.
 */

#ifndef _XET_INGEST_TERMS_H_INCLUDED_
#define _XET_INGEST_TERMS_H_INCLUDED_


#include "xet_ingest.h"


#define XET_INGEST_TERMS   2048        /* maximum number of waiting terms */
#define XET_INGEST_RECENT  128         /* terms whose lengths are averaged */
#define XET_INGEST_RUN     8           /* chunks that a term should have */
#define XET_INGEST_SAVED   256         /* upper limit of the saved counter */


/*
 * A term that waits for its xorb.  Only the last waiting term can be extended.
 */

typedef struct {
    xet_ingest_term_t   term;
    uint64_t            serial;        /* xorb's serial, see xet_known_ref_t */
    unsigned            named:1;       /* term.xorb is set */
} xet_ingest_waiting_t;


typedef struct {
    xet_ingest_term_pt    handler;
    void                 *ctx;

    uint32_t              file;        /* the number of the current file */
    uint64_t              closed;      /* complete terms of this file */
    uint32_t              recent[XET_INGEST_RECENT];  /* chunks per term */
    uint64_t              recent_sum;
    uint32_t              saved;       /* see xet_ingest_terms_fragmented() */
    unsigned              thrifty:1;

    unsigned              n;
    xet_ingest_waiting_t  waiting[XET_INGEST_TERMS];
} xet_ingest_terms_t;


/* handler receives the terms; thrifty is described in xet_ingest_terms.c. */

void xet_ingest_terms_init(xet_ingest_terms_t *t, unsigned thrifty,
    xet_ingest_term_pt handler, void *ctx);

/* Begins another file with the next chunk. */
void xet_ingest_terms_next(xet_ingest_terms_t *t);

/* Returns whether the chunk follows the file's last term in its xorb. */
int xet_ingest_terms_extends(const xet_ingest_terms_t *t,
    const xet_known_ref_t *ref);

/*
 * Adds the next chunk of the file; the caller has made room.  xorb is the name
 * of the chunk's xorb, NULL while the xorb has no name.
 */
void xet_ingest_terms_add(xet_ingest_terms_t *t, const xet_known_ref_t *ref,
    const xet_hash_t *xorb, uint32_t raw_length);

/*
 * Passes all terms to the handler, and returns its error.  xorb is the name of
 * the xorb of all terms that were added with NULL.  Returns XET_INTERNAL when
 * there are such terms and xorb is NULL.
 */
xet_status_t xet_ingest_terms_flush(xet_ingest_terms_t *t,
    const xet_hash_t *xorb);

/* Returns whether short runs of known chunks must be held back. */
int xet_ingest_terms_fragmented(const xet_ingest_terms_t *t);


#endif /* _XET_INGEST_TERMS_H_INCLUDED_ */
