
/*
 * Which chunks of a xorb may be reported to somebody: ranges in ascending
 * order, each two integers of 32 bits in network byte order, the first chunk
 * and the end.  The seen of a list is NULL where all its chunks may be
 * reported; without ranges none of them may be.
 */

#ifndef _XET_SEEN_H_INCLUDED_
#define _XET_SEEN_H_INCLUDED_


#include "xet_term.h"


#define XET_SEEN_LEN  8                /* bytes of a range */


/* A walk over the chunks of a list, in order. */

typedef struct {
    const uint8_t  *next;
    const uint8_t  *last;              /* the end of the ranges */
    uint32_t        start;
    uint32_t        end;
    unsigned        all:1;
} xet_seen_t;


static inline uint32_t
xet_seen_number(const uint8_t *p)
{
    return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16
           | (uint32_t) p[2] << 8 | p[3];
}


static inline void
xet_seen_init(xet_seen_t *s, const xet_xorb_list_t *xorb)
{
    s->next = xorb->seen;
    s->last = xorb->seen + (size_t) xorb->seen_n * XET_SEEN_LEN;
    s->start = 0;
    s->end = 0;
    s->all = (xorb->seen == NULL);
}


static inline unsigned
xet_seen_chunk(xet_seen_t *s, uint32_t chunk)
{
    while (chunk >= s->end && s->next != s->last) {
        s->start = xet_seen_number(s->next);
        s->end = xet_seen_number(s->next + 4);
        s->next += XET_SEEN_LEN;
    }

    return s->all || (chunk >= s->start && chunk < s->end);
}


/* The end of the last range of a list that has seen, 0 without ranges. */

static inline uint32_t
xet_seen_end(const xet_xorb_list_t *xorb)
{
    uint32_t  end;

    if (xorb->seen_n == 0) {
        return 0;
    }

    end = xet_seen_number(xorb->seen + xorb->seen_n * XET_SEEN_LEN - 4);

    return (end < xorb->chunk_count) ? end : xorb->chunk_count;
}


#endif /* _XET_SEEN_H_INCLUDED_ */
