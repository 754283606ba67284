
/*
 * A leaky bucket of bytes.
 *
 * The level is a double: at a slow rate, less than a byte leaks between two
 * requests, and an integer would lose the fraction.
 */

#include "xet_access.h"


#define XET_BUCKET_WAIT_MAX  ((uint64_t) 1 << 53)


void
xet_bucket_leak(xet_bucket_t *b, const xet_bucket_rate_t *rate, uint64_t now)
{
    if (now <= b->time) {
        return;
    }

    b->level -= (double) (now - b->time) * (double) rate->size
                / (double) rate->period;
    b->time = now;

    if (b->level < 0) {
        b->level = 0;
    }
}


uint64_t
xet_bucket_put(xet_bucket_t *b, const xet_bucket_rate_t *rate, uint64_t now,
    uint64_t n)
{
    double  size, over, wait;

    xet_bucket_leak(b, rate, now);

    size = (double) rate->size;

    over = b->level + (double) n - size;

    if (over > b->level) {
        over = b->level;
    }

    if (over <= 0) {
        b->level += (double) n;
        return 0;
    }

    wait = over * (double) rate->period / size;

    if (wait >= (double) XET_BUCKET_WAIT_MAX) {
        return XET_BUCKET_WAIT_MAX;
    }

    return (uint64_t) wait + 1;
}


void
xet_bucket_correct(xet_bucket_t *b, uint64_t n, uint64_t actual)
{
    b->level += (double) actual - (double) n;

    if (b->level < 0) {
        b->level = 0;
    }
}
