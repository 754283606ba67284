
/*
 * Transfers: requests and responses as bytes.  One thread drives all the
 * connections of a client.
 *
 *     post (any thread) -> queue -> in flight -> done (transfers' thread)
 *
 * The owner of a transfer must not touch it between post and done.  The limit
 * of connections also limits the transfers in flight; other transfers wait in
 * the queue until their deadline.  Connections are kept open.
 *
 * The first transfer starts the thread, which blocks all signals and ends with
 * the client.  Transfers in flight at that time have one second to complete.
 *
 * A transfer fails if the response body exceeds its buffer or limit, or if no
 * byte is sent or received for half of the timeout.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "xet_s3_base.h"


#define XET_S3_TRANSFER_BUFFER  (128 * 1024)
#define XET_S3_TRANSFER_GRACE   1000           /* shutdown grace period, ms */
#define XET_S3_TRANSFER_POLL    1000           /* longest wait of a step, ms */


struct xet_s3_transfers_s {
    pthread_mutex_t       lock;        /* protects this group */
    pthread_t             thread;
    xet_s3_transfer_t    *first;       /* the queue */
    xet_s3_transfer_t   **last;
    unsigned              started:1;
    unsigned              stop:1;      /* end when nothing is in flight */
    unsigned              closed:1;    /* new transfers are refused */

    xet_net_t            *net;         /* any thread may wake it up */

    xet_s3_transfer_t    *running;     /* used only by the thread */
    uint32_t              n;           /* running transfers; atomic */

    xet_s3_report_pt      report;
    xet_net_conf_t        conf;
    uint32_t              timeout;
};


static int xet_s3_transfers_start(xet_s3_transfers_t *ts);
static void *xet_s3_transfers_run(void *data);
static int xet_s3_transfers_take(xet_s3_transfers_t *ts, uint64_t now,
    xet_s3_transfer_t **failed);
static void xet_s3_transfers_close(xet_s3_transfers_t *ts);
static xet_net_rc_t xet_s3_transfer_begin(xet_s3_transfer_t *t, uint64_t now);
static xet_net_taken_t xet_s3_transfer_write(xet_net_request_t *r,
    const char *data, size_t len);
static void xet_s3_transfer_ended(xet_net_request_t *r);
static void xet_s3_transfer_values(xet_s3_transfer_t *t);
static void xet_s3_transfer_fail(xet_s3_transfer_t *t, xet_net_rc_t rc,
    const char *why);


xet_s3_transfers_t *
xet_s3_transfers_create(const xet_s3_conf_t *conf)
{
    xet_s3_transfers_t  *ts;

    ts = calloc(1, sizeof(xet_s3_transfers_t));
    if (ts == NULL) {
        return NULL;
    }

    ts->last = &ts->first;
    ts->report = conf->report;
    ts->timeout = conf->timeout;

    ts->conf.agent = "ngx_http_xet_module/" XET_VERSION;
    ts->conf.certificates = conf->certificate;
    ts->conf.buffer = XET_S3_TRANSFER_BUFFER;
    ts->conf.connections = conf->connections;

    if (pthread_mutex_init(&ts->lock, NULL) != 0) {
        free(ts);
        return NULL;
    }

    if (!xet_net_init()) {
        (void) pthread_mutex_destroy(&ts->lock);
        free(ts);
        return NULL;
    }

    return ts;
}


void
xet_s3_transfers_stop(xet_s3_transfers_t *ts)
{
    int  started;

    (void) pthread_mutex_lock(&ts->lock);

    started = ts->started && !ts->stop;
    ts->stop = 1;

    if (started) {
        xet_net_wakeup(ts->net);
    }

    (void) pthread_mutex_unlock(&ts->lock);

    if (started) {
        (void) pthread_join(ts->thread, NULL);
    }
}


int
xet_s3_transfers_stopped(xet_s3_transfers_t *ts)
{
    int  stopped;

    (void) pthread_mutex_lock(&ts->lock);

    stopped = ts->stop;

    (void) pthread_mutex_unlock(&ts->lock);

    return stopped;
}


void
xet_s3_transfers_destroy(xet_s3_transfers_t *ts)
{
    if (ts == NULL) {
        return;
    }

    xet_s3_transfers_stop(ts);

    xet_net_destroy(ts->net);
    xet_net_exit();

    (void) pthread_mutex_destroy(&ts->lock);
    free(ts);
}


int
xet_s3_transfers_post(xet_s3_transfers_t *ts, xet_s3_transfer_t *t)
{
    int  ok;

    t->next = NULL;
    t->transfers = ts;

    (void) pthread_mutex_lock(&ts->lock);

    ok = !ts->closed && (ts->started || xet_s3_transfers_start(ts));

    if (ok) {
        *ts->last = t;
        ts->last = &t->next;

        xet_net_wakeup(ts->net);
    }

    (void) pthread_mutex_unlock(&ts->lock);

    return ok;
}


uint32_t
xet_s3_transfers_busy(xet_s3_transfers_t *ts)
{
    return __atomic_load_n(&ts->n, __ATOMIC_RELAXED);
}


/* Starts the thread.  The caller holds the lock. */

static int
xet_s3_transfers_start(xet_s3_transfers_t *ts)
{
    int       err;
    sigset_t  all, set;

    if (ts->stop) {
        return 0;
    }

    if (ts->net == NULL) {
        ts->net = xet_net_create(&ts->conf);

        if (ts->net == NULL) {
            return 0;
        }
    }

    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_BLOCK, &all, &set);

    err = pthread_create(&ts->thread, NULL, xet_s3_transfers_run, ts);

    (void) pthread_sigmask(SIG_SETMASK, &set, NULL);

    ts->started = (err == 0);

    return ts->started;
}


static void *
xet_s3_transfers_run(void *data)
{
    xet_s3_transfers_t *ts = data;

    int                 stop;
    uint64_t            now, end;
    xet_s3_transfer_t  *failed, *t;

    end = 0;

    for ( ;; ) {

        now = xet_s3_time_ms();
        failed = NULL;

        stop = xet_s3_transfers_take(ts, now, &failed);

        while (failed) {
            t = failed;
            failed = t->next;

            xet_s3_report_transfer(ts->report, t);
            t->done(t);
        }

        if (stop) {
            end = end ? end : now + XET_S3_TRANSFER_GRACE;

            if (ts->n == 0 || now >= end) {
                break;
            }
        }

        (void) xet_net_step(ts->net, stop ? 20 : XET_S3_TRANSFER_POLL, NULL);
    }

    xet_s3_transfers_close(ts);

    return NULL;
}


/* Starts queued transfers while connections are free; returns ts->stop. */

static int
xet_s3_transfers_take(xet_s3_transfers_t *ts, uint64_t now,
    xet_s3_transfer_t **failed)
{
    int                  stop;
    xet_s3_transfer_t   *t, **link;

    (void) pthread_mutex_lock(&ts->lock);

    stop = ts->stop;
    link = &ts->first;

    while (*link) {
        t = *link;

        if (t->deadline <= now) {
            xet_s3_transfer_fail(t, XET_NET_AWAY,
                                 "no connection was free in time");
            t->net.late = 1;

        } else if (ts->n == ts->conf.connections) {
            link = &t->next;
            continue;

        } else if (xet_s3_transfer_begin(t, now) == XET_NET_OK) {
            *link = t->next;
            t->next = ts->running;
            ts->running = t;
            __atomic_add_fetch(&ts->n, 1, __ATOMIC_RELAXED);
            continue;
        }

        *link = t->next;
        t->next = *failed;
        *failed = t;
    }

    ts->last = link;

    (void) pthread_mutex_unlock(&ts->lock);

    return stop;
}


/* Fails all remaining transfers, and refuses new ones. */

static void
xet_s3_transfers_close(xet_s3_transfers_t *ts)
{
    xet_s3_transfer_t  *t, *next, *queue;

    (void) pthread_mutex_lock(&ts->lock);

    ts->closed = 1;
    queue = ts->first;
    ts->first = NULL;
    ts->last = &ts->first;

    (void) pthread_mutex_unlock(&ts->lock);

    while (ts->running) {
        t = ts->running;
        xet_s3_transfer_fail(t, XET_NET_AWAY, "the client was closed");
        xet_s3_transfer_ended(&t->net);
    }

    for (t = queue; t; t = next) {
        next = t->next;
        xet_s3_transfer_fail(t, XET_NET_AWAY, "the client was closed");
        t->done(t);
    }
}


/*
 * Starts the request.  If the store does not respond, the request fails after
 * half of the timeout, so that the other half remains for a retry.
 */

static xet_net_rc_t
xet_s3_transfer_begin(xet_s3_transfer_t *t, uint64_t now)
{
    size_t               i;
    uint32_t             half;
    xet_net_request_t   *r;
    xet_s3_transfers_t  *ts;

    r = &t->net;
    ts = t->transfers;
    half = ts->timeout / 2;

    r->timeout = t->deadline - now;
    r->connect = half ? half : 1;
    r->silence = (half < 1000) ? 1 : half / 1000;
    r->write = xet_s3_transfer_write;
    r->done = xet_s3_transfer_ended;
    r->owner = t;

    for (i = 0; i < t->nheaders; i++) {
        if (!xet_net_header(r, t->headers[i])) {
            xet_s3_transfer_fail(t, XET_NET_LOCAL, "out of memory");
            break;
        }
    }

    if (r->rc == XET_NET_OK) {
        (void) xet_net_start(ts->net, r);
    }

    if (r->rc != XET_NET_OK) {
        xet_net_close(r);
    }

    return r->rc;
}


static xet_net_taken_t
xet_s3_transfer_write(xet_net_request_t *r, const char *data, size_t len)
{
    xet_s3_transfer_t *t = r->owner;

    if (t->buf && r->status / 100 == 2) {

        if (len > t->size - t->got) {
            r->refused = "the answer is longer than what was asked for";
            return XET_NET_STOP;
        }

        memcpy(t->buf + t->got, data, len);
        t->got += len;

        return XET_NET_TAKEN;
    }

    if (len > t->most - r->body_len) {
        r->refused = "the answer is too long";
        return XET_NET_STOP;
    }

    return xet_net_keep(r, data, len) ? XET_NET_TAKEN : XET_NET_STOP;
}


static void
xet_s3_transfer_ended(xet_net_request_t *r)
{
    xet_s3_transfer_t *t = r->owner;

    xet_s3_transfer_t   **link;
    xet_s3_transfers_t   *ts;

    ts = t->transfers;

    for (link = &ts->running; *link != t; link = &(*link)->next) {
        /* void */
    }

    *link = t->next;
    __atomic_sub_fetch(&ts->n, 1, __ATOMIC_RELAXED);

    xet_s3_transfer_values(t);
    xet_net_close(r);

    xet_s3_report_transfer(ts->report, t);
    t->done(t);
}


/* Copies the values of headers, and ignores values that are too long. */

static void
xet_s3_transfer_values(xet_s3_transfer_t *t)
{
    size_t       i;
    int64_t      seconds;
    const char  *value;

    struct {
        const char  *name;
        char        *dst;
        size_t       size;
    } known[] = {
        { "ETag", t->etag, sizeof(t->etag) },
        { "Date", t->date, sizeof(t->date) },
        { "Last-Modified", t->modified, sizeof(t->modified) },
        { "Content-Range", t->range, sizeof(t->range) },
        { "x-amz-bucket-region", t->region, sizeof(t->region) },
        { "x-amz-checksum-sha256", t->sum, sizeof(t->sum) }
    };

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        value = xet_net_value(&t->net, known[i].name);

        if (value && strlen(value) < known[i].size) {
            strcpy(known[i].dst, value);
        }
    }

    seconds = xet_net_retry_after(&t->net);
    t->retry = (seconds > 3600) ? 3600 : (uint32_t) seconds;
}


static void
xet_s3_transfer_fail(xet_s3_transfer_t *t, xet_net_rc_t rc, const char *why)
{
    t->net.rc = rc;
    (void) snprintf(t->net.why, sizeof(t->net.why), "%.200s", why);
}
