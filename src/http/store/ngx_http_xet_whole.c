
/*
 * Readings of copies of xorbs, to see if they are whole.
 *
 * Purpose:    an upload of a known xorb is acknowledged after the stored copy
 *             was read and held against its digest.  When many uploads bring
 *             the same xorb at once, one reading is enough for all that had
 *             begun before the reading: damage that the copy took since might
 *             as well have come right after a reading of their own.  An upload
 *             that begins later reads again.  No result has to be dropped when
 *             a copy is damaged, healed or removed: damage that was found is
 *             in the row of the xorb, and a healed copy has another tag.
 *             Damage that nobody has found should be noticed by an upload that
 *             takes long, so a reading counts for five seconds only.
 * States:     of a request that asks: idle -> reading -> idle, or idle ->
 *             waiting -> idle.  The last 64 readings that found a whole copy
 *             are in a ring; a copy that has dropped out of the ring is read
 *             again.  A reading that ends without a result, because its
 *             request died, makes those who wait ask again, and the first of
 *             them reads.
 * Ownership:  the request that asks owns its structure, which is linked into
 *             the queues of this file while it reads or waits.  The ring of
 *             4 KiB belongs to the worker.
 * Threads:    the event loop only.
 */

#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_WHOLE_MAX    64
#define NGX_HTTP_XET_WHOLE_VALID  5000


typedef struct {
    xet_hash_t  xorb;
    uint32_t    tag;
    uint64_t    moment;                        /* 0: none */
    ngx_msec_t  end;                           /* of the reading */
} ngx_http_xet_whole_seen_t;


static ngx_uint_t ngx_http_xet_whole_seen(ngx_http_xet_whole_t *w);
static ngx_http_xet_whole_t *ngx_http_xet_whole_reading(
    ngx_http_xet_whole_t *w);
static void ngx_http_xet_whole_keep(ngx_http_xet_whole_t *w);
static void ngx_http_xet_whole_handler(ngx_event_t *ev);


static ngx_http_xet_whole_seen_t  ngx_http_xet_whole_ring[
                                                    NGX_HTTP_XET_WHOLE_MAX];
static ngx_uint_t                 ngx_http_xet_whole_next;
static uint64_t                   ngx_http_xet_whole_last;
static ngx_queue_t                ngx_http_xet_whole_readings = {
    &ngx_http_xet_whole_readings,
    &ngx_http_xet_whole_readings
};


uint64_t
ngx_http_xet_whole_moment(void)
{
    return ++ngx_http_xet_whole_last;
}


ngx_int_t
ngx_http_xet_whole_ask(ngx_http_xet_whole_t *w)
{
    ngx_http_xet_whole_t  *reading;

    if (ngx_http_xet_whole_seen(w)) {
        return NGX_OK;
    }

    reading = ngx_http_xet_whole_reading(w);

    if (reading) {
        w->waits = 1;
        ngx_queue_insert_tail(&reading->waiting, &w->queue);

        return NGX_AGAIN;
    }

    w->reading = 1;
    w->moment = ngx_http_xet_whole_moment();

    ngx_queue_init(&w->waiting);
    ngx_queue_insert_head(&ngx_http_xet_whole_readings, &w->queue);

    return NGX_DECLINED;
}


static ngx_uint_t
ngx_http_xet_whole_seen(ngx_http_xet_whole_t *w)
{
    ngx_uint_t                  i;
    ngx_http_xet_whole_seen_t  *seen;

    for (i = 0; i < NGX_HTTP_XET_WHOLE_MAX; i++) {
        seen = &ngx_http_xet_whole_ring[i];

        if (seen->moment > w->began
            && seen->tag == w->tag
            && ngx_current_msec - seen->end < NGX_HTTP_XET_WHOLE_VALID
            && xet_hash_equal(&seen->xorb, &w->xorb))
        {
            return 1;
        }
    }

    return 0;
}


/* A reading of the same copy that has begun after the upload of w, or NULL. */

static ngx_http_xet_whole_t *
ngx_http_xet_whole_reading(ngx_http_xet_whole_t *w)
{
    ngx_queue_t           *q;
    ngx_http_xet_whole_t  *reading;

    for (q = ngx_queue_head(&ngx_http_xet_whole_readings);
         q != ngx_queue_sentinel(&ngx_http_xet_whole_readings);
         q = ngx_queue_next(q))
    {
        reading = ngx_queue_data(q, ngx_http_xet_whole_t, queue);

        if (reading->moment > w->began
            && reading->tag == w->tag
            && xet_hash_equal(&reading->xorb, &w->xorb))
        {
            return reading;
        }
    }

    return NULL;
}


void
ngx_http_xet_whole_done(ngx_http_xet_whole_t *w, xet_status_t status)
{
    ngx_queue_t           *q;
    ngx_http_xet_whole_t  *other;

    w->reading = 0;
    ngx_queue_remove(&w->queue);

    if (status == XET_OK) {
        ngx_http_xet_whole_keep(w);
    }

    /* posted, because a handler may end its request, and others with it */

    for (q = ngx_queue_head(&w->waiting);
         q != ngx_queue_sentinel(&w->waiting);
         q = ngx_queue_next(q))
    {
        other = ngx_queue_data(q, ngx_http_xet_whole_t, queue);

        other->waits = 0;
        other->status = status;
        other->event.handler = ngx_http_xet_whole_handler;
        other->event.data = other;
        other->event.log = ngx_cycle->log;

        ngx_post_event(&other->event, &ngx_posted_events);
    }
}


static void
ngx_http_xet_whole_keep(ngx_http_xet_whole_t *w)
{
    ngx_http_xet_whole_seen_t  *seen;

    seen = &ngx_http_xet_whole_ring[ngx_http_xet_whole_next];

    seen->xorb = w->xorb;
    seen->tag = w->tag;
    seen->moment = w->moment;
    seen->end = ngx_current_msec;

    ngx_http_xet_whole_next = (ngx_http_xet_whole_next + 1)
                              % NGX_HTTP_XET_WHOLE_MAX;
}


static void
ngx_http_xet_whole_handler(ngx_event_t *ev)
{
    ngx_http_xet_whole_t  *w;

    w = ev->data;

    w->handler(w->data, w->status);
}


void
ngx_http_xet_whole_leave(ngx_http_xet_whole_t *w)
{
    if (w->reading) {
        ngx_http_xet_whole_done(w, XET_AGAIN);

    } else if (w->waits) {
        w->waits = 0;
        ngx_queue_remove(&w->queue);
    }

    if (w->event.posted) {
        ngx_delete_posted_event(&w->event);
    }
}
