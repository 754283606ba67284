
/*
 * A reader's way through a file: which chunks of which xorbs make up a byte
 * range, one after the other, and which part of each is wanted.
 *
 * Life: init; then for each range seek, and until XET_DONE
 *
 *     xet_cursor_chunk()      XET_OK: take it, xet_cursor_advance()
 *                             XET_AGAIN: xet_cursor_ask()
 *     xet_cursor_ask()        XET_OK: fetch the lists, xet_cursor_answer()
 *                             for each in order
 *                             XET_AGAIN: fetch the segment of terms that has
 *                             xet_cursor_t.position, xet_cursor_terms()
 *
 * Terms are held a segment at a time and chunks a window at a time, so memory
 * is one structure of 64 KiB, whatever the file.  What is held serves a later
 * range as well.
 */

#ifndef _XET_CURSOR_H_INCLUDED_
#define _XET_CURSOR_H_INCLUDED_


#include "xet_plan.h"


#define XET_CURSOR_CHUNKS  1024        /* in a window at most */


/* Chunks [start, end) of the xorb's chunk list. */

typedef struct {
    xet_hash_t         xorb;
    uint32_t           start;
    uint32_t           end;
    unsigned           hashes:1;       /* wanted as well as the ends */
} xet_cursor_list_t;


typedef struct {
    const xet_hash_t  *xorb;
    uint32_t           tag;            /* of the copy that stored_* describe */
    const uint8_t     *hash;           /* XET_HASH_LEN bytes */
    uint32_t           index;          /* in the xorb */
    uint32_t           stored_start;   /* in the chunk region */
    uint32_t           stored_len;     /* with its header */
    uint32_t           raw_len;
    uint32_t           skip;           /* decoded bytes before the range */
    uint32_t           take;           /* decoded bytes in the range, >= 1 */
} xet_cursor_chunk_t;


/* Where a chunk begins. */

typedef struct {
    uint32_t           term;           /* in the segment */
    uint32_t           chunk;          /* in the xorb */
    uint64_t           offset;         /* in the file */
} xet_cursor_point_t;


typedef struct {
    uint64_t           position;       /* the next byte wanted */
    uint64_t           end;            /* exclusive */

    /* the segment: terms of [first, last) of the file */

    uint64_t           first;
    uint64_t           last;
    uint32_t           nterms;
    xet_term_t         terms[XET_TERM_SEGMENT_MAX];

    /* a known point besides the terms' beginnings; term is nterms for none */

    xet_cursor_point_t point;

    /* the window: chunks one after the other in the file */

    uint32_t           n;
    uint32_t           i;              /* the chunk that begins at offset */
    uint64_t           begin;          /* of the first chunk, in the file */
    uint64_t           offset;
    uint8_t            hashes[XET_CURSOR_CHUNKS * XET_HASH_LEN];
    uint32_t           raw[XET_CURSOR_CHUNKS];
    uint32_t           stored[XET_CURSOR_CHUNKS];
    uint32_t           lens[XET_CURSOR_CHUNKS];
    uint16_t           indexes[XET_CURSOR_CHUNKS];
    uint16_t           owners[XET_CURSOR_CHUNKS];   /* terms */
    uint32_t           tags[XET_TERM_SEGMENT_MAX];  /* of the terms' lists */

    /* what was asked for and is not yet answered */

    xet_cursor_point_t next;
    uint32_t           asked;
    unsigned           locate:1;
} xet_cursor_t;


void xet_cursor_init(xet_cursor_t *c);

/* Begins the range [start, end) of the file, start < end. */
void xet_cursor_seek(xet_cursor_t *c, uint64_t start, uint64_t end);

/*
 * Takes the packed terms of a row, XET_TERM_SEGMENT_MAX at most, which begin at
 * first_offset of the file and reach over c->position.  XET_PLAN_DAMAGED when
 * the terms contradict themselves or lie elsewhere.
 */
xet_status_t xet_cursor_terms(xet_cursor_t *c, const uint8_t *packed,
    size_t len, uint64_t first_offset);

/*
 * What to fetch next: *n is the room in lists, at least 1, and their number
 * on XET_OK.  XET_AGAIN when the terms at c->position are needed, XET_DONE at
 * the end of the range.
 */
xet_status_t xet_cursor_ask(xet_cursor_t *c, xet_cursor_list_t *lists,
    size_t *n);

/*
 * Copies the next of the lists asked for; hashes is NULL where they were not
 * wanted.  XET_PLAN_DAMAGED when the list contradicts the terms; XET_INTERNAL
 * when none is asked for.  A list may be of another stored copy than the terms
 * name: it has all that a reader needs of that copy.
 */
xet_status_t xet_cursor_answer(xet_cursor_t *c, const xet_plan_ends_t *ends,
    const uint8_t *hashes);

/*
 * The chunk at c->position; its pointers are good until the next
 * xet_cursor_ask() or xet_cursor_terms().  XET_AGAIN when lists have to be
 * fetched first, XET_DONE at the end of the range.
 */
xet_status_t xet_cursor_chunk(xet_cursor_t *c, xet_cursor_chunk_t *chunk);

/* Moves c->position behind the chunk that xet_cursor_chunk() has given. */
void xet_cursor_advance(xet_cursor_t *c);

/* Forgets all lists: the lists from c->position on are asked for anew. */
void xet_cursor_forget(xet_cursor_t *c);


#endif /* _XET_CURSOR_H_INCLUDED_ */
