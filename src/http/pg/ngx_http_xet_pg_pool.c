
/*
 * A pool of PostgreSQL sessions, all with one host, and its queue.
 *
 * States of a statement: waiting in the queue of its pool, in flight on a
 * session, done.  One deadline covers waiting and execution.  If a statement
 * misses its deadline in flight, its session is closed, because nothing else
 * would close a session to a server that no longer responds.  If a session is
 * lost, its statements are sent again, at most as many times as the pool has
 * sessions; all statements are idempotent.  If a pool can't open any session,
 * its statements fail at once and the response is 503.
 *
 * A refused connection is retried with growing delays.  A new statement for a
 * pool without a session causes a retry at once, unless an attempt has failed
 * in the last half second.  When a pool gets its first session, pools without a
 * session retry at once.
 *
 * The pool of a standby (ngx_http_xet_standby.c) works like a pool of reads,
 * with one exception: a statement that conflicts with WAL replay is not sent to
 * this host again.
 *
 * A session without statements for "idle" is closed: it holds megabytes of
 * PostgreSQL's memory, mostly plans and compiled functions.  The pools of reads
 * and writes then open a new one, so that a request need not wait for that.
 *
 * Everything runs in the event loop of one worker.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg_session.h"


#define NGX_HTTP_XET_BACKOFF_MIN  100
#define NGX_HTTP_XET_BACKOFF_MAX  5000
#define NGX_HTTP_XET_HURRY        500


static void ngx_http_xet_pg_pool_line_up(ngx_http_xet_pg_pool_t *pg_pool,
    ngx_http_xet_pg_query_t *q);
static ngx_uint_t ngx_http_xet_pg_pool_of_caller(ngx_queue_t *queue,
    uint32_t caller);
static ngx_uint_t ngx_http_xet_pg_pool_takes(ngx_http_xet_pg_pool_t *pg_pool,
    uint32_t caller);
static ngx_msec_t ngx_http_xet_pg_pool_age(ngx_queue_t *queue);
static ngx_uint_t ngx_http_xet_pg_pool_hopeless(ngx_http_xet_pg_pool_t
    *pg_pool);
static void ngx_http_xet_pg_pool_dispatch(ngx_http_xet_pg_pool_t *pg_pool);
static void ngx_http_xet_pg_pool_recycle(ngx_http_xet_pg_pool_t *pg_pool,
    ngx_queue_t *lost);
static void ngx_http_xet_pg_pool_retry_handler(ngx_event_t *ev);
static void ngx_http_xet_pg_pool_changed(ngx_http_xet_pg_t *pg,
    ngx_http_xet_pg_query_t *q);
static void ngx_http_xet_pg_pool_idle_handler(ngx_event_t *ev);
static void ngx_http_xet_pg_pool_timer_handler(ngx_event_t *ev);
static void ngx_http_xet_pg_pool_ready(ngx_http_xet_pg_t *pg);
static void ngx_http_xet_pg_pool_failed(ngx_http_xet_pg_t *pg);
static void ngx_http_xet_pg_pool_finished(ngx_http_xet_pg_t *pg,
    ngx_http_xet_pg_query_t *q);
static void ngx_http_xet_pg_pool_retry(ngx_http_xet_pg_t *pg,
    ngx_http_xet_pg_query_t *q);
static void ngx_http_xet_pg_pool_drained(ngx_http_xet_pg_t *pg);


static const ngx_http_xet_pg_events_t  ngx_http_xet_pg_pool_events = {
    ngx_http_xet_pg_pool_ready,
    ngx_http_xet_pg_pool_failed,
    ngx_http_xet_pg_pool_finished,
    ngx_http_xet_pg_pool_drained
};


ngx_int_t
ngx_http_xet_pg_pool_init(ngx_http_xet_pg_pool_t *pg_pool, ngx_pool_t *pool)
{
    ngx_uint_t          i;
    ngx_http_xet_pg_t  *pg;

    ngx_queue_init(&pg_pool->waiting);

    pg_pool->idle.handler = ngx_http_xet_pg_pool_idle_handler;
    pg_pool->idle.data = pg_pool;
    pg_pool->idle.log = ngx_cycle->log;
    pg_pool->idle.cancelable = 1;

    pg_pool->sessions = ngx_pcalloc(pool, pg_pool->n *
                                    sizeof(ngx_http_xet_pg_t));
    if (pg_pool->sessions == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < pg_pool->n; i++) {
        pg = &pg_pool->sessions[i];

        pg->pg_pool = pg_pool;
        pg->host = pg_pool->host;
        pg->events = &ngx_http_xet_pg_pool_events;
        pg->stmts = pg_pool->stmts;
        pg->shares = pg_pool->shares;
        pg->timeout = pg_pool->running;
        pg->locks = pg_pool->locks;

        if (ngx_http_xet_pg_init(pg, pool) != NGX_OK) {
            return NGX_ERROR;
        }

        pg->retry.handler = ngx_http_xet_pg_pool_retry_handler;
        pg->retry.data = pg;
        pg->retry.log = ngx_cycle->log;
        pg->retry.cancelable = 1;
    }

    return NGX_OK;
}


void
ngx_http_xet_pg_pool_close(ngx_http_xet_pg_pool_t *pg_pool)
{
    ngx_uint_t  i;

    if (pg_pool->idle.timer_set) {
        ngx_del_timer(&pg_pool->idle);
    }

    for (i = 0; i < pg_pool->n; i++) {
        ngx_http_xet_pg_close(&pg_pool->sessions[i]);
    }
}


ngx_http_xet_pg_query_t *
ngx_http_xet_pg_pool_send(ngx_http_xet_pg_pool_t *pg_pool,
    const ngx_http_xet_pg_stmt_t *stmt, ngx_http_xet_params_t *p,
    ngx_http_xet_pg_handler_pt handler, void *data)
{
    return ngx_http_xet_pg_pool_queue(pg_pool, pg_pool->timeout, stmt, p,
                                      handler, data);
}


ngx_http_xet_pg_query_t *
ngx_http_xet_pg_pool_queue(ngx_http_xet_pg_pool_t *pg_pool, ngx_msec_t timeout,
    const ngx_http_xet_pg_stmt_t *stmt, ngx_http_xet_params_t *p,
    ngx_http_xet_pg_handler_pt handler, void *data)
{
    ngx_http_xet_pg_query_t  *q;

    if (stmt->params != (p ? p->n : 0)) {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                      "xet: statement \"%s\" takes %ui parameters",
                      stmt->name, stmt->params);
        return NULL;
    }

    if (!ngx_http_xet_pg_pool_takes(pg_pool, p ? p->caller : 0)) {
        return NULL;
    }

    q = ngx_calloc(sizeof(ngx_http_xet_pg_query_t), ngx_cycle->log);
    if (q == NULL) {
        return NULL;
    }

    q->stmt = stmt;
    q->handler = handler;
    q->data = data;
    q->pg_pool = pg_pool;
    q->start = ngx_current_msec;
    q->caller = p ? p->caller : 0;
    q->acts = (p && p->acts);

    if (stmt->params) {
        ngx_memcpy(q->values, p->values, stmt->params * sizeof(char *));
        ngx_memcpy(q->lengths, p->lengths, stmt->params * sizeof(int));
    }

    q->timer.handler = ngx_http_xet_pg_pool_timer_handler;
    q->timer.data = q;
    q->timer.log = ngx_cycle->log;

    ngx_add_timer(&q->timer, timeout);

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet pool: \"%s\" %p waits behind %ui",
                   stmt->name, q, pg_pool->nwaiting);

    ngx_http_xet_pg_pool_line_up(pg_pool, q);
    pg_pool->nwaiting++;

    ngx_http_xet_pg_pool_dispatch(pg_pool);

    return q;
}


/*
 * Adds a statement to the queue.  If callers take turns, the first unfinished
 * statement of a caller gets the current turn, the second gets the next turn,
 * and so on.
 */

static void
ngx_http_xet_pg_pool_line_up(ngx_http_xet_pg_pool_t *pg_pool,
    ngx_http_xet_pg_query_t *q)
{
    ngx_uint_t                i;
    ngx_queue_t              *e;
    ngx_http_xet_pg_query_t  *before;

    if (pg_pool->turns) {
        q->turn = pg_pool->turn +
            ngx_http_xet_pg_pool_of_caller(&pg_pool->waiting, q->caller);

        for (i = 0; i < pg_pool->n; i++) {
            q->turn +=
                ngx_http_xet_pg_pool_of_caller(&pg_pool->sessions[i].inflight,
                                               q->caller);
        }
    }

    for (e = ngx_queue_last(&pg_pool->waiting);
         e != ngx_queue_sentinel(&pg_pool->waiting);
         e = ngx_queue_prev(e))
    {
        before = ngx_queue_data(e, ngx_http_xet_pg_query_t, queue);

        if (before->turn <= q->turn) {
            break;
        }
    }

    ngx_queue_insert_after(e, &q->queue);
}


/* Returns the number of the caller's statements in a queue. */

static ngx_uint_t
ngx_http_xet_pg_pool_of_caller(ngx_queue_t *queue, uint32_t caller)
{
    ngx_uint_t                n;
    ngx_queue_t              *e;
    ngx_http_xet_pg_query_t  *q;

    n = 0;

    for (e = ngx_queue_head(queue);
         e != ngx_queue_sentinel(queue);
         e = ngx_queue_next(e))
    {
        q = ngx_queue_data(e, ngx_http_xet_pg_query_t, queue);

        n += (q->caller == caller);
    }

    return n;
}


/*
 * Returns whether the queue has room for a statement of this caller, and a
 * session is ready or may become ready.
 */

static ngx_uint_t
ngx_http_xet_pg_pool_takes(ngx_http_xet_pg_pool_t *pg_pool, uint32_t caller)
{
    ngx_uint_t          n;
    ngx_http_xet_pg_t  *pg;

    if (pg_pool->nwaiting >= pg_pool->queue) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "xet: %ui statements are waiting for PostgreSQL; new "
                      "ones are rejected", pg_pool->nwaiting);
        return 0;
    }

    if (pg_pool->turns && pg_pool->nwaiting > pg_pool->queue / 4) {
        n = ngx_http_xet_pg_pool_of_caller(&pg_pool->waiting, caller);

        if (n > pg_pool->queue / 4) {
            ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                          "xet: %ui long reads of one caller are waiting for "
                          "PostgreSQL; new ones of this caller are rejected",
                          n);
            return 0;
        }
    }

    pg = ngx_http_xet_pg_pool_session(pg_pool);

    if ((pg && pg->n < pg_pool->depth) || ngx_http_xet_pg_pool_grow(pg_pool) ==
        NGX_OK)
    {
        return 1;
    }

    return ngx_current_msec - pg_pool->asked >= NGX_HTTP_XET_HURRY
           && ngx_http_xet_pg_pool_hurry(pg_pool) == NGX_OK;
}


void
ngx_http_xet_pg_pool_stat(ngx_http_xet_pg_pool_t *pg_pool,
    ngx_http_xet_pg_pool_stat_t *stat)
{
    ngx_uint_t          i;
    ngx_http_xet_pg_t  *pg;

    stat->sessions += pg_pool->n;
    stat->waiting += pg_pool->nwaiting;
    stat->oldest = ngx_max(stat->oldest,
                           ngx_http_xet_pg_pool_age(&pg_pool->waiting));

    for (i = 0; i < pg_pool->n; i++) {
        pg = &pg_pool->sessions[i];

        if (pg->state == NGX_HTTP_XET_PG_READY) {
            stat->ready++;
            stat->inflight += pg->n;
            stat->oldest = ngx_max(stat->oldest,
                                   ngx_http_xet_pg_pool_age(&pg->inflight));
        }
    }
}


/*
 * Returns the age in ms of the first statement in a queue, which is the
 * oldest.
 */

static ngx_msec_t
ngx_http_xet_pg_pool_age(ngx_queue_t *queue)
{
    ngx_http_xet_pg_query_t  *q;

    if (ngx_queue_empty(queue)) {
        return 0;
    }

    q = ngx_queue_data(ngx_queue_head(queue), ngx_http_xet_pg_query_t, queue);

    return ngx_current_msec - q->start;
}


ngx_uint_t
ngx_http_xet_pg_pool_count(ngx_http_xet_pg_pool_t *pg_pool,
    ngx_http_xet_pg_state_e state)
{
    ngx_uint_t  i, n;

    n = 0;

    for (i = 0; i < pg_pool->n; i++) {
        n += (pg_pool->sessions[i].state == state);
    }

    return n;
}


ngx_uint_t
ngx_http_xet_pg_pool_ready_any(ngx_http_xet_pg_pool_t *pg_pool)
{
    return ngx_http_xet_pg_pool_count(pg_pool, NGX_HTTP_XET_PG_READY) != 0;
}


void
ngx_http_xet_pg_pool_want(ngx_http_xet_pg_pool_t *pg_pool)
{
    if (ngx_http_xet_pg_pool_hopeless(pg_pool)
        && ngx_http_xet_pg_pool_grow(pg_pool) != NGX_OK
        && ngx_current_msec - pg_pool->asked >= NGX_HTTP_XET_HURRY)
    {
        (void) ngx_http_xet_pg_pool_hurry(pg_pool);
    }
}


void
ngx_http_xet_pg_pool_drop(ngx_http_xet_pg_pool_t *pg_pool)
{
    ngx_uint_t          i;
    ngx_http_xet_pg_t  *pg;

    for (i = 0; i < pg_pool->n; i++) {
        pg = &pg_pool->sessions[i];

        if (pg->state == NGX_HTTP_XET_PG_READY) {
            ngx_http_xet_pg_close(pg);
            ngx_http_xet_pg_pool_failed(pg);
        }
    }
}


/* Returns 1 if no session is ready or connecting. */

static ngx_uint_t
ngx_http_xet_pg_pool_hopeless(ngx_http_xet_pg_pool_t *pg_pool)
{
    return ngx_http_xet_pg_pool_count(pg_pool, NGX_HTTP_XET_PG_READY) == 0 &&
        ngx_http_xet_pg_pool_count(pg_pool, NGX_HTTP_XET_PG_CONNECTING) == 0;
}


ngx_http_xet_pg_t *
ngx_http_xet_pg_pool_session(ngx_http_xet_pg_pool_t *pg_pool)
{
    ngx_uint_t          i;
    ngx_http_xet_pg_t  *pg, *best;

    best = NULL;

    for (i = 0; i < pg_pool->n; i++) {
        pg = &pg_pool->sessions[i];

        if (pg->state == NGX_HTTP_XET_PG_READY
            && (best == NULL || pg->n < best->n))
        {
            best = pg;
        }
    }

    return best;
}


ngx_int_t
ngx_http_xet_pg_pool_grow(ngx_http_xet_pg_pool_t *pg_pool)
{
    ngx_int_t           rc;
    ngx_uint_t          i;
    ngx_http_xet_pg_t  *pg;

    rc = NGX_ERROR;

    for (i = 0; i < pg_pool->n; i++) {
        pg = &pg_pool->sessions[i];

        switch (pg->state) {

        case NGX_HTTP_XET_PG_CONNECTING:
            return NGX_OK;

        case NGX_HTTP_XET_PG_READY:
            rc = NGX_OK;
            break;

        case NGX_HTTP_XET_PG_CLOSED:
            if (ngx_http_xet_pg_connect(pg) == NGX_OK) {
                return NGX_OK;
            }

            break;

        default: /* NGX_HTTP_XET_PG_BACKOFF */
            break;
        }
    }

    return rc;
}


ngx_int_t
ngx_http_xet_pg_pool_hurry(ngx_http_xet_pg_pool_t *pg_pool)
{
    ngx_uint_t          i;
    ngx_http_xet_pg_t  *pg;

    if (!ngx_http_xet_pg_pool_hopeless(pg_pool)) {
        return NGX_OK;
    }

    for (i = 0; i < pg_pool->n; i++) {
        pg = &pg_pool->sessions[i];

        /*
         * skip sessions that still have statements in flight after a failed
         * send
         */

        if (pg->state == NGX_HTTP_XET_PG_BACKOFF
            && ngx_queue_empty(&pg->inflight)
            && ngx_http_xet_pg_connect(pg) == NGX_OK)
        {
            if (pg->retry.timer_set) {
                ngx_del_timer(&pg->retry);
            }

            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


static void
ngx_http_xet_pg_pool_dispatch(ngx_http_xet_pg_pool_t *pg_pool)
{
    ngx_queue_t              *e, *next;
    ngx_http_xet_pg_t        *pg;
    ngx_http_xet_pg_query_t  *q;

    for (e = ngx_queue_head(&pg_pool->waiting);
         e != ngx_queue_sentinel(&pg_pool->waiting);
         e = next)
    {
        next = ngx_queue_next(e);
        q = ngx_queue_data(e, ngx_http_xet_pg_query_t, queue);

        if (q->unfit) {
            continue;
        }

        pg = ngx_http_xet_pg_pool_session(pg_pool);

        if (pg == NULL || pg->n >= pg_pool->depth) {
            (void) ngx_http_xet_pg_pool_grow(pg_pool);
            return;
        }

        if (q->fit && q->handler && !q->fit(q->data)) {

            /*
             * the timer ends the statement in the next iteration of the event
             * loop
             */

            q->unfit = 1;
            ngx_add_timer(&q->timer, 0);
            continue;
        }

        ngx_queue_remove(e);
        pg_pool->nwaiting--;
        pg_pool->turn = ngx_max(pg_pool->turn, q->turn);

        ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                       "xet pool: \"%s\" %p goes to pg %p",
                       q->stmt->name, q, pg);

        if (ngx_http_xet_pg_send(pg, q) != NGX_OK) {

            /*
             * Ending the statements here could call the handler of the caller
             * that is sending now.  So the retry timer ends them, in the next
             * iteration of the event loop.
             */

            ngx_http_xet_pg_close(pg);
            ngx_http_xet_pg_pool_backoff(pg, 1);
        }
    }
}


void
ngx_http_xet_pg_pool_backoff(ngx_http_xet_pg_t *pg, ngx_msec_t delay)
{
    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet pg %p: waits %M ms to connect again", pg, delay);

    pg->state = NGX_HTTP_XET_PG_BACKOFF;

    ngx_add_timer(&pg->retry, delay);
}


static void
ngx_http_xet_pg_pool_ready(ngx_http_xet_pg_t *pg)
{
    ngx_http_xet_pg_pool_t  *pg_pool;

    pg_pool = pg->pg_pool;

    ngx_http_xet_pg_pool_dispatch(pg_pool);

    if (pg_pool->refused) {
        pg_pool->refused = 0;

        if (pg_pool->events) {
            pg_pool->events->ready(pg_pool);
        }
    }

    if (pg->state == NGX_HTTP_XET_PG_READY && pg->n == 0) {
        ngx_http_xet_pg_pool_drained(pg);
    }
}


static void
ngx_http_xet_pg_pool_failed(ngx_http_xet_pg_t *pg)
{
    ngx_msec_t                delay;
    ngx_queue_t              *e, lost;
    ngx_http_xet_pg_pool_t   *pg_pool;
    ngx_http_xet_pg_query_t  *q;

    pg_pool = pg->pg_pool;

    /*
     * the first attempt to reconnect is immediate, later attempts are delayed
     */

    delay = pg->backoff / 2 + ngx_random() % (pg->backoff / 2 + 1);

    pg->backoff = pg->backoff ? ngx_min(pg->backoff * 2,
                                        NGX_HTTP_XET_BACKOFF_MAX)
                              : NGX_HTTP_XET_BACKOFF_MIN;

    ngx_http_xet_pg_pool_backoff(pg, delay ? delay : 1);

    ngx_queue_init(&lost);

    if (!ngx_queue_empty(&pg->inflight)) {

        for (e = ngx_queue_head(&pg->inflight);
             e != ngx_queue_sentinel(&pg->inflight);
             e = ngx_queue_next(e))
        {
            q = ngx_queue_data(e, ngx_http_xet_pg_query_t, queue);
            q->lost = 1;
        }

        ngx_queue_add(&lost, &pg->inflight);
        ngx_queue_init(&pg->inflight);
    }

    pg->n = 0;

    if (ngx_http_xet_pg_pool_count(pg_pool, NGX_HTTP_XET_PG_BACKOFF) ==
        pg_pool->n && pg->backoff > NGX_HTTP_XET_BACKOFF_MIN &&
        !ngx_queue_empty(&pg_pool->waiting))
    {
        /* no session is left that could send the waiting statements */

        ngx_queue_add(&lost, &pg_pool->waiting);
        ngx_queue_init(&pg_pool->waiting);
        pg_pool->nwaiting = 0;
    }

    ngx_http_xet_pg_pool_recycle(pg_pool, &lost);

    if (pg->backoff > NGX_HTTP_XET_BACKOFF_MIN) {
        pg_pool->refused = 1;
        pg_pool->asked = ngx_current_msec;

        if (pg_pool->events && ngx_http_xet_pg_pool_hopeless(pg_pool)) {
            pg_pool->events->starved(pg_pool);
        }
    }
}


/* Queues lost statements again; ends statements without attempts left. */

static void
ngx_http_xet_pg_pool_recycle(ngx_http_xet_pg_pool_t *pg_pool, ngx_queue_t *lost)
{
    ngx_queue_t              *e;
    ngx_http_xet_pg_query_t  *q;

    /*
     * mark waiting statements as sent, so that a handler that detaches a
     * statement does not remove it from the queue
     */

    for (e = ngx_queue_head(lost);
         e != ngx_queue_sentinel(lost);
         e = ngx_queue_next(e))
    {
        q = ngx_queue_data(e, ngx_http_xet_pg_query_t, queue);

        if (q->pg == NULL) {
            q->tries = pg_pool->n;
            q->pg = pg_pool->sessions;
        }
    }

    while (!ngx_queue_empty(lost)) {
        e = ngx_queue_last(lost);
        q = ngx_queue_data(e, ngx_http_xet_pg_query_t, queue);

        ngx_queue_remove(e);

        if (q->res) {
            PQclear(q->res);
            q->res = NULL;
        }

        /* the next session may also be lost, so count the attempts */

        if (q->handler && q->tries < pg_pool->n) {
            q->tries++;
            q->pg = NULL;
            ngx_queue_insert_head(&pg_pool->waiting, e);
            pg_pool->nwaiting++;
            continue;
        }

        ngx_http_xet_pg_pool_deliver(q, NULL, NGX_BUSY, NULL);
    }

    ngx_http_xet_pg_pool_dispatch(pg_pool);
}


static void
ngx_http_xet_pg_pool_retry_handler(ngx_event_t *ev)
{
    ngx_http_xet_pg_t       *pg;
    ngx_http_xet_pg_pool_t  *pg_pool;

    pg = ev->data;

    if (!ngx_queue_empty(&pg->inflight)) {

        /* a send has failed, and its statements are still in flight */

        ngx_http_xet_pg_pool_failed(pg);
        return;
    }

    pg_pool = pg->pg_pool;

    if (ngx_exiting && ngx_queue_empty(&pg_pool->waiting)) {

        /* the worker is exiting and needs no session */

        ngx_http_xet_pg_close(pg);
        return;
    }

    if (ngx_http_xet_pg_connect(pg) != NGX_OK) {
        ngx_http_xet_pg_pool_failed(pg);
    }
}


static void
ngx_http_xet_pg_pool_finished(ngx_http_xet_pg_t *pg, ngx_http_xet_pg_query_t *q)
{
    PGresult                *res;
    const char              *sqlstate;
    ExecStatusType           status;
    ngx_http_xet_pg_pool_t  *pg_pool;

    pg_pool = pg->pg_pool;

    res = q->res;
    q->res = NULL;

    status = PQresultStatus(res);

    if (status == PGRES_PIPELINE_ABORTED) {

        /* a statement with the same sync has failed */

        PQclear(res);

        q->alone = 1;
        ngx_http_xet_pg_pool_retry(pg, q);
        return;
    }

    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {

        if (pg_pool->events) {
            pg_pool->events->heard();
        }

        if (pg->unsure) {

            /*
             * the commit would be lost if this server failed, so report a
             * failure
             */

            pg->unsure = 0;

            PQclear(res);
            ngx_http_xet_pg_pool_deliver(q, NULL, NGX_BUSY, NULL);
            return;
        }

        ngx_http_xet_pg_pool_deliver(q, res, NGX_OK,
                                     q->lost ? NGX_HTTP_XET_PG_RETRIED : NULL);
        return;
    }

    sqlstate = PQresultErrorField(res, PG_DIAG_SQLSTATE);

    if (sqlstate == NULL) {

        /*
         * an error of libpq, such as out of memory: PostgreSQL may have
         * executed the statement
         */

        sqlstate = "08000";
        q->lost = 1;
    }

    if (ngx_strcmp(sqlstate, NGX_HTTP_XET_PG_UNPREPARED) == 0) {
        q->alone = 1;
    }

    if (ngx_http_xet_pg_pool_again(q, sqlstate)) {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "xet: statement \"%s\" failed and is retried: %s",
                      q->stmt->name, PQresultErrorMessage(res));

        if (ngx_strcmp(sqlstate, NGX_HTTP_XET_PG_READ_ONLY) == 0) {
            PQclear(res);
            ngx_http_xet_pg_pool_changed(pg, q);
            return;
        }

        PQclear(res);

        ngx_http_xet_pg_pool_retry(pg, q);
        return;
    }

    ngx_http_xet_pg_pool_refused(q, res, sqlstate);
}


static void
ngx_http_xet_pg_pool_retry(ngx_http_xet_pg_t *pg, ngx_http_xet_pg_query_t *q)
{
    ngx_queue_t  lost;

    ngx_queue_init(&lost);
    ngx_queue_insert_head(&lost, &q->queue);
    q->pg = pg;

    ngx_http_xet_pg_pool_recycle(pg->pg_pool, &lost);
}


/*
 * Handles a server that has become read-only.  Closes the session; q and the
 * other statements of the session are sent again on a new session.  To open it,
 * libpq tries the hosts of the connection string in turn.
 */

static void
ngx_http_xet_pg_pool_changed(ngx_http_xet_pg_t *pg, ngx_http_xet_pg_query_t *q)
{
    ngx_http_xet_pg_pool_t  *pg_pool;

    ngx_queue_insert_head(&pg->inflight, &q->queue);
    pg->n++;
    q->pg = pg;

    pg_pool = pg->pg_pool;

    if (pg_pool->events && pg->host->several) {
        pg_pool->events->read_only(pg);
        return;
    }

    ngx_http_xet_pg_close(pg);
    ngx_http_xet_pg_pool_backoff(pg, 1);
}


static void
ngx_http_xet_pg_pool_drained(ngx_http_xet_pg_t *pg)
{
    ngx_http_xet_pg_pool_t  *pg_pool;

    pg_pool = pg->pg_pool;

    ngx_http_xet_pg_pool_dispatch(pg_pool);

    if (pg->state != NGX_HTTP_XET_PG_READY || pg->n) {
        return;
    }

    if (ngx_exiting || pg->connection->close) {
        ngx_http_xet_pg_close(pg);
        return;
    }

    /* nginx closes idle connections when a worker quits */

    pg->connection->idle = 1;
    pg->used = ngx_current_msec;

    if (!pg_pool->idle.timer_set) {
        ngx_add_timer(&pg_pool->idle, pg_pool->idle_timeout);
    }
}


/*
 * Closes the sessions that have been idle for long enough, the last ones first,
 * since statements use the first one of several idle sessions.  Replaces the
 * sessions that the pool keeps, unless they are as good as new.
 */

static void
ngx_http_xet_pg_pool_idle_handler(ngx_event_t *ev)
{
    ngx_uint_t               i, ready;
    ngx_msec_t               idle, left;
    ngx_http_xet_pg_t       *pg;
    ngx_http_xet_pg_pool_t  *pg_pool;

    pg_pool = ev->data;

    ready = ngx_http_xet_pg_pool_count(pg_pool, NGX_HTTP_XET_PG_READY);
    left = 0;

    for (i = pg_pool->n; i-- > 0; /* void */) {
        pg = &pg_pool->sessions[i];

        if (pg->state != NGX_HTTP_XET_PG_READY || pg->n
            || (ready <= pg_pool->keep && !pg->prepares))
        {
            continue;
        }

        idle = ngx_current_msec - pg->used;

        if (idle >= pg_pool->idle_timeout) {
            ngx_http_xet_pg_close(pg);

            if (ready-- <= pg_pool->keep) {
                (void) ngx_http_xet_pg_connect(pg);
            }

            continue;
        }

        idle = pg_pool->idle_timeout - idle;
        left = left ? ngx_min(left, idle) : idle;
    }

    /* a busy session sets the timer at the end of its statements */

    if (left) {
        ngx_add_timer(ev, left);
    }
}


static void
ngx_http_xet_pg_pool_timer_handler(ngx_event_t *ev)
{
    ngx_http_xet_pg_t        *pg;
    ngx_http_xet_pg_pool_t   *pg_pool;
    ngx_http_xet_pg_query_t  *q;

    q = ev->data;
    pg = q->pg;
    pg_pool = q->pg_pool;

    if (!q->unfit) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "xet: %V did not respond to \"%s\" within %M ms",
                      &pg_pool->host->name, q->stmt->name,
                      ngx_current_msec - q->start);
    }

    q->tries = pg_pool->n;

    if (pg == NULL) {
        ngx_queue_remove(&q->queue);
        pg_pool->nwaiting--;

        ngx_http_xet_pg_pool_deliver(q, NULL, NGX_BUSY, NULL);
        return;
    }

    ngx_http_xet_pg_close(pg);
    ngx_http_xet_pg_pool_failed(pg);
}
