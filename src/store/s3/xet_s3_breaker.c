
/*
 * A store that does not answer is left in peace.
 *
 * It is silent from the first attempt that got no answer on, until any other
 * gets one, whatever it says.  When a request gives up, and in its time
 * nothing was heard of the store by others, one attempt a second is let
 * through, and all else fails at once: nobody's threads wait for it, and it is
 * not buried in requests when it comes back.
 */

#include "xet_s3_base.h"
#include "xet_s3_breaker.h"


#define XET_S3_BREAKER_PAUSE  1000     /* ms */


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

    /* it is our own fault, and says nothing of the store */

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


/* Half of the timeout: the last pause of a request is one that has no room. */

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
