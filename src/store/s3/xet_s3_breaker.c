
/*
 * The circuit breaker.
 *
 * A store is silent from the first attempt without a response until an attempt
 * gets a response, of any status.  The breaker opens if a request gives up,
 * and the store has been silent for half of the timeout.  While it is open,
 * one request a second is sent, as a trial of the store, and all other requests
 * fail immediately.  So no threads wait for the store, and the store gets no
 * flood of requests when it is available again.
 */

#include "xet_s3_base.h"
#include "xet_s3_breaker.h"


#define XET_S3_BREAKER_PAUSE  1000     /* ms between two trials */


xet_s3_breaker_t
xet_s3_breaker_ask(xet_s3_t *s3, uint64_t *silent)
{
    uint64_t          now;
    xet_s3_breaker_t  state;

    now = xet_s3_time_ms();
    state = XET_S3_CLOSED;

    (void) pthread_mutex_lock(&s3->lock);

    *silent = s3->silent ? now - s3->silent : 0;

    if (s3->open) {

        state = XET_S3_OPEN;

        if (now - s3->tried >= XET_S3_BREAKER_PAUSE) {
            s3->tried = now;
            state = XET_S3_TRIAL;
        }
    }

    (void) pthread_mutex_unlock(&s3->lock);

    return state;
}


void
xet_s3_breaker_tell(xet_s3_t *s3, const xet_s3_transfer_t *t)
{
    uint64_t  now;

    /* a local failure says nothing about the store */

    if (t->net.rc == XET_NET_LOCAL) {
        return;
    }

    now = xet_s3_time_ms();

    (void) pthread_mutex_lock(&s3->lock);

    if (t->net.status) {
        s3->silent = 0;
        s3->open = 0;

    } else if (s3->silent == 0) {
        s3->silent = now;
    }

    (void) pthread_mutex_unlock(&s3->lock);
}


int
xet_s3_breaker_is_open(xet_s3_t *s3)
{
    int  is_open;

    (void) pthread_mutex_lock(&s3->lock);
    is_open = s3->open;
    (void) pthread_mutex_unlock(&s3->lock);

    return is_open;
}


/*
 * Opens the breaker if the store has been silent for half of the timeout.  The
 * full timeout would be too long: a request gives up early if its next pause
 * would pass the deadline.
 */

void
xet_s3_breaker_open(xet_s3_t *s3)
{
    uint64_t  now;

    now = xet_s3_time_ms();

    (void) pthread_mutex_lock(&s3->lock);

    if (!s3->open && s3->silent && now - s3->silent >= s3->conf->timeout / 2) {
        s3->open = 1;
        s3->tried = now;
    }

    (void) pthread_mutex_unlock(&s3->lock);
}
