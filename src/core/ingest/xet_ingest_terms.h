
/*
 * The terms of a file that is being taken in, until the xorbs that they name
 * are complete; and how long the terms have been lately.
 */

#ifndef _XET_INGEST_TERMS_H_INCLUDED_
#define _XET_INGEST_TERMS_H_INCLUDED_


#include "xet_known.h"
#include "xet_status.h"


#define XET_INGEST_TERMS   2048        /* that wait at most */
#define XET_INGEST_RECENT  128         /* whose lengths are looked at */


/* A run of chunks of a xorb; the next part of the file. */

typedef struct {
    xet_hash_t  xorb;
    uint32_t    chunk_start;
    uint32_t    chunk_end;             /* exclusive */
    uint32_t    raw_length;            /* bytes, not 0 */
    uint32_t    file;                  /* its number, from 0 */
} xet_ingest_term_t;

/* XET_OK, or the error that is to become the caller's. */
typedef xet_status_t (*xet_ingest_term_pt)(void *ctx,
    const xet_ingest_term_t *term);


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

/* The next chunk is of another file. */
void xet_ingest_terms_next(xet_ingest_terms_t *t);

/* How many more terms can wait. */
unsigned xet_ingest_terms_room(const xet_ingest_terms_t *t);

/* Whether a chunk goes on where the last term ends. */
int xet_ingest_terms_extends(const xet_ingest_terms_t *t,
    const xet_known_ref_t *ref);

/*
 * Adds the next chunk of the file, for which there must be room.  xorb: the
 * name of its xorb, NULL as long as that has none.
 */
void xet_ingest_terms_add(xet_ingest_terms_t *t, const xet_known_ref_t *ref,
    const xet_hash_t *xorb, uint32_t raw_length);

/*
 * Hands all terms to the handler, whose error is returned; xorb is the name
 * for the terms without one.  XET_INTERNAL when a name is wanted and NULL.
 */
xet_status_t xet_ingest_terms_flush(xet_ingest_terms_t *t,
    const xet_hash_t *xorb);

/*
 * Whether the last XET_INGEST_RECENT terms have less than so many chunks on
 * average; 0 before there are so many terms.
 */
int xet_ingest_terms_fragmented(const xet_ingest_terms_t *t, unsigned chunks);


#endif /* _XET_INGEST_TERMS_H_INCLUDED_ */
