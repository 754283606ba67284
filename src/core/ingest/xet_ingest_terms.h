
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
#define XET_INGEST_RUN     8           /* chunks that a term should have */
#define XET_INGEST_SAVED   256         /* chunks that count as saved, at most */


/* A run of chunks of a xorb; the next part of the file. */

typedef struct {
    xet_hash_t  xorb;
    uint32_t    chunk_start;
    uint32_t    chunk_end;             /* exclusive */
    uint32_t    raw_length;            /* bytes, not 0 */
    uint32_t    file;                  /* number of the file, from 0 */
} xet_ingest_term_t;

/* Returns XET_OK, or an error, which xet_ingest_terms_flush() returns. */
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

    uint32_t              file;        /* the number of the file at hand */
    uint64_t              closed;      /* complete terms of this file */
    uint32_t              recent[XET_INGEST_RECENT];  /* their chunks */
    uint64_t              recent_sum;
    uint32_t              saved;       /* chunks of this file */
    unsigned              thrifty:1;

    unsigned              n;
    xet_ingest_waiting_t  waiting[XET_INGEST_TERMS];
} xet_ingest_terms_t;


/* thrifty: see xet_ingest_terms_fragmented(). */
void xet_ingest_terms_init(xet_ingest_terms_t *t, unsigned thrifty,
    xet_ingest_term_pt handler, void *ctx);

/* Begins another file with the next chunk. */
void xet_ingest_terms_next(xet_ingest_terms_t *t);

/* How many more terms can wait. */
unsigned xet_ingest_terms_room(const xet_ingest_terms_t *t);

/* Whether a chunk begins in its xorb where the last term of the file ends. */
int xet_ingest_terms_extends(const xet_ingest_terms_t *t,
    const xet_known_ref_t *ref);

/*
 * Adds the next chunk of the file, for which there must be room.  xorb: the
 * name of the chunk's xorb, NULL as long as the xorb has none.
 */
void xet_ingest_terms_add(xet_ingest_terms_t *t, const xet_known_ref_t *ref,
    const xet_hash_t *xorb, uint32_t raw_length);

/*
 * Hands all terms to the handler, whose error is returned; xorb is the name of
 * the xorb of all terms added with NULL.  XET_INTERNAL when there are such
 * terms and xorb is NULL.
 */
xet_status_t xet_ingest_terms_flush(xet_ingest_terms_t *t,
    const xet_hash_t *xorb);

/*
 * Whether the last XET_INGEST_RECENT terms of the file have fewer chunks than
 * XET_INGEST_RUN on average; 0 while the file has fewer terms.  Of thrifty
 * terms: whether fewer than XET_INGEST_RUN chunks are saved.  Each chunk saves
 * one, and each term costs XET_INGEST_RUN, or all that is saved.
 */
int xet_ingest_terms_fragmented(const xet_ingest_terms_t *t);


#endif /* _XET_INGEST_TERMS_H_INCLUDED_ */
