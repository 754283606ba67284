
/*
 * A batch: one request for each of many objects, several at the same time.
 *
 *     post (one per slot) -> landed -> settled, and post the next one
 *
 * A batch uses at most half of the connections, so that concurrent reads need
 * not wait for the batch.  The caller's thread retries failed requests, one
 * after the other, each until its deadline.  If a retry also fails, no more
 * requests are started, and the batch waits for requests in flight.
 *
 * If the circuit breaker is open, the first request is sent alone.
 */

#include <stdlib.h>

#include "xet_s3_breaker.h"
#include "xet_s3_object.h"


#define XET_S3_MANY_FLYING  32


typedef struct xet_s3_many_s  xet_s3_many_t;
typedef struct xet_s3_slot_s  xet_s3_slot_t;


struct xet_s3_slot_s {
    xet_s3_many_t     *many;
    xet_s3_slot_t     *next;
    xet_s3_item_t     *item;
    uint64_t           deadline;       /* deadline of the request, ms */
    xet_s3_request_t   r;
};


struct xet_s3_many_s {
    xet_s3_t          *s3;
    const char        *method;
    xet_s3_item_t     *items;
    size_t             n;
    size_t             i;              /* number of items started */
    xet_s3_rc_t        rc;             /* result of the first failure */
    xet_s3_error_t    *error;

    xet_s3_slot_t     *slots;
    xet_s3_slot_t     *free;
    unsigned           flying;

    pthread_mutex_t    lock;           /* protects this group */
    pthread_cond_t     cond;
    xet_s3_slot_t     *landed;
};


static xet_s3_rc_t xet_s3_many(xet_s3_t *s3, const char *method,
    xet_s3_item_t *items, size_t n, xet_s3_error_t *error);
static int xet_s3_many_slots(xet_s3_many_t *m);
static void xet_s3_many_alone(xet_s3_many_t *m);
static void xet_s3_many_begin(xet_s3_many_t *m);
static void xet_s3_many_done(xet_s3_transfer_t *t);
static xet_s3_slot_t *xet_s3_many_wait(xet_s3_many_t *m);
static void xet_s3_many_land(xet_s3_many_t *m, xet_s3_slot_t *slot);
static void xet_s3_many_settle(xet_s3_many_t *m, xet_s3_item_t *item,
    const xet_s3_request_t *r, xet_s3_rc_t rc, xet_s3_error_t *error);


xet_s3_rc_t
xet_s3_delete_all(xet_s3_t *s3, xet_s3_item_t *items, size_t n,
    xet_s3_error_t *error)
{
    size_t       i;
    xet_s3_rc_t  rc;

    rc = xet_s3_many(s3, "DELETE", items, n, error);

    for (i = 0; i < n; i++) {
        if (items[i].rc == XET_S3_NOT_FOUND) {
            items[i].rc = XET_S3_OK;
        }
    }

    return rc;
}


/*
 * Objects may be missing because the bucket is missing, so one HEAD of the
 * bucket checks that for all objects.  If the batch or this HEAD fails,
 * nothing is known about missing objects, and they get the rc of the error.
 */

xet_s3_rc_t
xet_s3_head_all(xet_s3_t *s3, xet_s3_item_t *items, size_t n,
    xet_s3_error_t *error)
{
    size_t       i;
    xet_s3_rc_t  rc;

    rc = xet_s3_many(s3, "HEAD", items, n, error);

    for (i = 0; i < n && items[i].rc != XET_S3_NOT_FOUND; i++) {
        /* void */
    }

    if (i == n) {
        return rc;
    }

    if (rc == XET_S3_OK) {
        rc = xet_s3_object_bucket(s3, error);
    }

    for ( /* void */ ; rc != XET_S3_OK && i < n; i++) {
        if (items[i].rc == XET_S3_NOT_FOUND) {
            items[i].rc = rc;
        }
    }

    return rc;
}


static xet_s3_rc_t
xet_s3_many(xet_s3_t *s3, const char *method, xet_s3_item_t *items, size_t n,
    xet_s3_error_t *error)
{
    xet_s3_many_t  m;

    memset(&m, 0, sizeof(xet_s3_many_t));

    m.s3 = s3;
    m.method = method;
    m.items = items;
    m.n = n;
    m.error = error;

    (void) pthread_mutex_init(&m.lock, NULL);
    (void) pthread_cond_init(&m.cond, NULL);

    if (n && !xet_s3_many_slots(&m)) {
        m.rc = xet_s3_error(error, XET_S3_LOCAL, 0, "out of memory");

    } else if (n == 1 || (n && xet_s3_breaker_is_open(s3))) {
        xet_s3_many_alone(&m);
    }

    for ( ;; ) {

        while (m.rc == XET_S3_OK && m.free && m.i < n) {
            xet_s3_many_begin(&m);
        }

        if (m.flying == 0) {
            break;
        }

        xet_s3_many_land(&m, xet_s3_many_wait(&m));
    }

    for ( /* void */ ; m.i < n; m.i++) {
        items[m.i].rc = m.rc;
    }

    free(m.slots);

    (void) pthread_cond_destroy(&m.cond);
    (void) pthread_mutex_destroy(&m.lock);

    return m.rc;
}


static int
xet_s3_many_slots(xet_s3_many_t *m)
{
    size_t  i, n;

    n = m->s3->conf->connections / 2;
    n = (n < 1) ? 1 : (n > XET_S3_MANY_FLYING) ? XET_S3_MANY_FLYING : n;
    n = (n > m->n) ? m->n : n;

    m->slots = malloc(n * sizeof(xet_s3_slot_t));

    if (m->slots == NULL) {
        return 0;
    }

    for (i = 0; i < n; i++) {
        m->slots[i].many = m;
        m->slots[i].next = m->free;
        m->free = &m->slots[i];
    }

    return 1;
}


/* Sends the first request with all retries, like a single request. */

static void
xet_s3_many_alone(xet_s3_many_t *m)
{
    xet_s3_rc_t        rc;
    xet_s3_item_t     *item;
    xet_s3_error_t     error;
    xet_s3_request_t  *r;

    item = &m->items[m->i++];
    r = &m->free->r;

    xet_s3_request_init(r, m->s3, m->method, item->name);

    rc = xet_s3_request_send(r, &error);

    xet_s3_many_settle(m, item, r, rc, &error);
    xet_s3_request_free(r);
}


static void
xet_s3_many_begin(xet_s3_many_t *m)
{
    xet_s3_rc_t      rc;
    xet_s3_slot_t   *slot;
    xet_s3_error_t   error;

    slot = m->free;
    m->free = slot->next;

    slot->item = &m->items[m->i++];
    slot->deadline = xet_s3_time_ms() + m->s3->conf->timeout;

    xet_s3_request_init(&slot->r, m->s3, m->method, slot->item->name);

    /* as soon as the request is posted, another thread may complete it */

    rc = xet_s3_request_post(&slot->r, xet_s3_many_done, slot, &error);

    if (rc == XET_S3_OK) {
        m->flying++;
        return;
    }

    xet_s3_many_settle(m, slot->item, &slot->r, rc, &error);

    slot->next = m->free;
    m->free = slot;
}


static void
xet_s3_many_done(xet_s3_transfer_t *t)
{
    xet_s3_many_t  *m;
    xet_s3_slot_t  *slot;

    slot = t->owner;
    m = slot->many;

    (void) pthread_mutex_lock(&m->lock);

    slot->next = m->landed;
    m->landed = slot;

    (void) pthread_cond_signal(&m->cond);
    (void) pthread_mutex_unlock(&m->lock);
}


static xet_s3_slot_t *
xet_s3_many_wait(xet_s3_many_t *m)
{
    xet_s3_slot_t  *slot;

    (void) pthread_mutex_lock(&m->lock);

    while (m->landed == NULL) {
        (void) pthread_cond_wait(&m->cond, &m->lock);
    }

    slot = m->landed;
    m->landed = slot->next;

    (void) pthread_mutex_unlock(&m->lock);

    return slot;
}


static void
xet_s3_many_land(xet_s3_many_t *m, xet_s3_slot_t *slot)
{
    xet_s3_rc_t     rc;
    xet_s3_error_t  error;

    m->flying--;

    rc = xet_s3_request_result(&slot->r, &error);

    if (rc != XET_S3_OK && rc != XET_S3_NOT_FOUND && m->rc == XET_S3_OK) {

        if (xet_s3_time_ms() < slot->deadline) {
            rc = xet_s3_request_until(&slot->r, slot->deadline, &error);

        } else if (slot->r.t.net.status == 0) {
            xet_s3_breaker_open(m->s3);
        }
    }

    xet_s3_many_settle(m, slot->item, &slot->r, rc, &error);
    xet_s3_request_free(&slot->r);

    slot->next = m->free;
    m->free = slot;
}


static void
xet_s3_many_settle(xet_s3_many_t *m, xet_s3_item_t *item,
    const xet_s3_request_t *r, xet_s3_rc_t rc, xet_s3_error_t *error)
{
    if (rc == XET_S3_OK && strcmp(m->method, "HEAD") == 0) {
        rc = xet_s3_object_sized(r, error);
    }

    item->rc = rc;
    item->size = (rc == XET_S3_OK) ? (uint64_t) r->t.net.length : 0;

    if (rc == XET_S3_OK || rc == XET_S3_NOT_FOUND || m->rc != XET_S3_OK) {
        return;
    }

    m->rc = rc;

    if (m->error) {
        *m->error = *error;
    }
}
