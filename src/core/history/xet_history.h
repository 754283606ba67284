
/*
 * The last 24 hours of a server, one sample a minute.
 */

#ifndef _XET_HISTORY_H_INCLUDED_
#define _XET_HISTORY_H_INCLUDED_


#include <stdint.h>
#include <stddef.h>


#define XET_HISTORY_STEP     60000             /* ms */
#define XET_HISTORY_SAMPLES  1440
#define XET_HISTORY_POINTS   400               /* maximum of a plot */
#define XET_HISTORY_CLASSES  4
#define XET_HISTORY_BUCKETS  10


/* Sums since the start of the server, except for stored and files. */

typedef struct {
    uint64_t  time;                            /* ms since 1970 */
    uint64_t  requests[XET_HISTORY_CLASSES];   /* by class of the status */
    uint64_t  received;                        /* bytes */
    uint64_t  sent;
    uint64_t  durations[XET_HISTORY_BUCKETS];  /* requests by duration */
    uint64_t  stored;                          /* bytes + 1; 0: unknown */
    uint64_t  files;                           /* bytes + 1; 0: unknown */
} xet_history_sample_t;


/* A history of zeros is empty. */

typedef struct {
    uint64_t              n;                   /* samples taken so far */
    xet_history_sample_t  samples[XET_HISTORY_SAMPLES];
} xet_history_t;


/* Returns whether a sample is due at the time now. */
int xet_history_due(const xet_history_t *h, uint64_t now);

/* Adds a sample; drops the oldest one if the history is full. */
void xet_history_add(xet_history_t *h, const xet_history_sample_t *sample);

/* Returns the oldest sample of the last span ms before now, or NULL. */
const xet_history_sample_t *xet_history_since(const xet_history_t *h,
    uint64_t now, uint64_t span);

/*
 * Copies the samples of the last 24 hours to points, oldest first, thinned out
 * for a plot; the last point is now.  Returns their number, at most
 * XET_HISTORY_POINTS.
 */
size_t xet_history_points(const xet_history_t *h,
    const xet_history_sample_t *now, xet_history_sample_t *points);


#endif /* _XET_HISTORY_H_INCLUDED_ */
