
/*
 * A leaky bucket of bytes: how much somebody may send in a while.
 *
 * The bucket holds what was sent and has not leaked yet, and leaks evenly, a
 * whole bucket per period.  Whoever has sent nothing for a period may send a
 * bucketful at once.
 */

#ifndef _XET_BUCKET_H_INCLUDED_
#define _XET_BUCKET_H_INCLUDED_


#include <stdint.h>


typedef struct {
    uint64_t  size;                /* bytes, 1 to 2^53 */
    uint64_t  period;              /* ms, 1 at least */
} xet_bucket_rate_t;


/* A bucket of zeros is empty. */

typedef struct {
    double    level;               /* bytes, not negative */
    uint64_t  time;                /* of the level, ms of a steady clock */
} xet_bucket_t;


/* Lets the bucket leak until now, in ms; a now in the past changes nothing. */
void xet_bucket_leak(xet_bucket_t *b, const xet_bucket_rate_t *rate,
    uint64_t now);

/*
 * Lets the bucket leak and puts n bytes in.  Returns 0, or the time in ms, 1 at
 * least, after which the bytes would fit; nothing was put in then.  More than a
 * bucketful fits into an empty bucket, so that nothing is refused for good.
 */
uint64_t xet_bucket_put(xet_bucket_t *b, const xet_bucket_rate_t *rate,
    uint64_t now, uint64_t n);

/* Corrects n bytes that were put in to the actual number of bytes. */
void xet_bucket_correct(xet_bucket_t *b, uint64_t n, uint64_t actual);


#endif /* _XET_BUCKET_H_INCLUDED_ */
