
/*
 * The history of a server: a ring of samples, one for each minute of a day.
 *
 * A sample holds sums that only grow, so a plot shows the differences between
 * its points, and a missing sample (a halted machine) loses no request.  The
 * ring takes 214 KB.
 *
 * A plot needs fewer points: each sample of the last hour, and before that the
 * last sample of each five minutes.
 *
 * The clock may jump.  Points are selected from the newest sample backwards,
 * and a sample that claims to be later than a newer one is skipped.
 *
 * The caller owns the ring, and protects it if processes share it.
 */

#include "xet_history.h"

#include <string.h>


#define XET_HISTORY_DAY      (24 * 3600 * 1000)
#define XET_HISTORY_FINE     (3600 * 1000)
#define XET_HISTORY_COARSE   (5 * XET_HISTORY_STEP)


int
xet_history_due(const xet_history_t *h, uint64_t now)
{
    const xet_history_sample_t  *last;

    if (h->n == 0) {
        return 1;
    }

    last = &h->samples[(h->n - 1) % XET_HISTORY_SAMPLES];

    return now / XET_HISTORY_STEP != last->time / XET_HISTORY_STEP;
}


void
xet_history_add(xet_history_t *h, const xet_history_sample_t *sample)
{
    h->samples[h->n++ % XET_HISTORY_SAMPLES] = *sample;
}


const xet_history_sample_t *
xet_history_since(const xet_history_t *h, uint64_t now, uint64_t span)
{
    uint64_t                     i, first;
    const xet_history_sample_t  *s, *found;

    found = NULL;
    first = (h->n > XET_HISTORY_SAMPLES) ? h->n - XET_HISTORY_SAMPLES : 0;

    for (i = h->n; i > first; i--) {
        s = &h->samples[(i - 1) % XET_HISTORY_SAMPLES];

        if (s->time > now) {
            continue;
        }

        if (now - s->time > span) {
            break;
        }

        found = s;
    }

    return found;
}


size_t
xet_history_points(const xet_history_t *h, const xet_history_sample_t *now,
    xet_history_sample_t *points)
{
    size_t                       n;
    uint64_t                     i, first, next;
    const xet_history_sample_t  *s;

    n = XET_HISTORY_POINTS;
    points[--n] = *now;
    next = now->time;

    first = (h->n > XET_HISTORY_SAMPLES) ? h->n - XET_HISTORY_SAMPLES : 0;

    for (i = h->n; i > first && n > 0; i--) {
        s = &h->samples[(i - 1) % XET_HISTORY_SAMPLES];

        if (s->time >= next) {
            continue;
        }

        if (now->time - s->time > XET_HISTORY_DAY) {
            break;
        }

        if (now->time - s->time > XET_HISTORY_FINE
            && s->time / XET_HISTORY_COARSE == next / XET_HISTORY_COARSE)
        {
            continue;
        }

        points[--n] = *s;
        next = s->time;
    }

    memmove(points, points + n,
            (XET_HISTORY_POINTS - n) * sizeof(xet_history_sample_t));

    return XET_HISTORY_POINTS - n;
}
