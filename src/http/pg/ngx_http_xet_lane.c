
/*
 * A lane: some PostgreSQL sessions and the statements for them.
 *
 * A statement waits in its lane's queue, is in flight on a session, or is
 * done.  One deadline covers waiting and being in flight.  A statement that is
 * late in flight takes its session with it, because nothing else ends a session
 * that PostgreSQL has forgotten.  When a session is lost, the statements in
 * flight are sent again, each as many times as the lane has sessions: every
 * statement of ours is idempotent.  When no session of a lane can be had, its
 * statements fail at once and callers answer 503, and another lane has to close
 * a session that has nothing to do: PostgreSQL may have no more.
 *
 * A refused session is asked for again after longer and longer times.  But a
 * statement for a lane without any session asks at once, if none was refused in
 * the last half second; and when a lane gets a session again, the lanes without
 * one ask at once, so that PostgreSQL is back for all statements when it is
 * back for one.
 *
 * All of this lives in the event loop of one worker.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg_session.h"


#define NGX_HTTP_XET_BACKOFF_MIN  100
#define NGX_HTTP_XET_BACKOFF_MAX  5000
#define NGX_HTTP_XET_HURRY        500


static ngx_http_xet_pg_t *ngx_http_xet_lane_session(
    ngx_http_xet_lane_t *lane);
static void ngx_http_xet_lane_dispatch(ngx_http_xet_lane_t *lane);
static void ngx_http_xet_lane_ready(ngx_http_xet_pg_t *pg);
static void ngx_http_xet_lane_failed(ngx_http_xet_pg_t *pg);
static ngx_uint_t ngx_http_xet_lane_hopeless(ngx_http_xet_lane_t *lane);
static void ngx_http_xet_lane_recycle(ngx_http_xet_lane_t *lane,
    ngx_queue_t *lost);
static void ngx_http_xet_lane_retry_handler(ngx_event_t *ev);
static void ngx_http_xet_lane_finished(ngx_http_xet_pg_t *pg,
    ngx_http_xet_pg_query_t *q);
static ngx_uint_t ngx_http_xet_lane_transient(const char *sqlstate);
static void ngx_http_xet_lane_drained(ngx_http_xet_pg_t *pg);
static void ngx_http_xet_lane_timer_handler(ngx_event_t *ev);
static void ngx_http_xet_lane_deliver(ngx_http_xet_pg_query_t *q,
    PGresult *res, ngx_int_t rc, const char *sqlstate);
static ngx_msec_t ngx_http_xet_lane_age(ngx_queue_t *queue);


static const ngx_http_xet_pg_events_t  ngx_http_xet_lane_events = {
    ngx_http_xet_lane_ready,
    ngx_http_xet_lane_failed,
    ngx_http_xet_lane_finished,
    ngx_http_xet_lane_drained
};


ngx_int_t
ngx_http_xet_lane_init(ngx_http_xet_lane_t *lane, ngx_pool_t *pool)
{
    ngx_uint_t          i;
    ngx_http_xet_pg_t  *pg;

    ngx_queue_init(&lane->waiting);

    lane->sessions = ngx_pcalloc(pool, lane->n * sizeof(ngx_http_xet_pg_t));
    if (lane->sessions == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < lane->n; i++) {
        pg = &lane->sessions[i];

        pg->lane = lane;
        pg->events = &ngx_http_xet_lane_events;
        pg->stmts = lane->stmts;
        pg->timeout = lane->running;
        pg->locks = lane->locks;

        ngx_http_xet_pg_init(pg);

        pg->retry.handler = ngx_http_xet_lane_retry_handler;
        pg->retry.data = pg;
        pg->retry.log = ngx_cycle->log;
        pg->retry.cancelable = 1;
    }

    return NGX_OK;
}


void
ngx_http_xet_lane_close(ngx_http_xet_lane_t *lane)
{
    ngx_uint_t  i;

    for (i = 0; i < lane->n; i++) {
        ngx_http_xet_pg_close(&lane->sessions[i]);
    }
}


ngx_http_xet_pg_query_t *
ngx_http_xet_lane_send(ngx_http_xet_lane_t *lane,
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

    if (lane->nwaiting >= lane->queue) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "xet: %ui statements are waiting for PostgreSQL, "
                      "no more are taken", lane->nwaiting);
        return NULL;
    }

    if (ngx_http_xet_lane_session(lane) == NULL
        && ngx_http_xet_lane_grow(lane) != NGX_OK
        && (ngx_current_msec - lane->asked < NGX_HTTP_XET_HURRY
            || ngx_http_xet_lane_hurry(lane) != NGX_OK))
    {
        return NULL;
    }

    q = ngx_calloc(sizeof(ngx_http_xet_pg_query_t), ngx_cycle->log);
    if (q == NULL) {
        return NULL;
    }

    q->stmt = stmt;
    q->handler = handler;
    q->data = data;
    q->lane = lane;

    if (stmt->params) {
        ngx_memcpy(q->values, p->values, stmt->params * sizeof(char *));
        ngx_memcpy(q->lengths, p->lengths, stmt->params * sizeof(int));
    }

    q->timer.handler = ngx_http_xet_lane_timer_handler;
    q->timer.data = q;
    q->timer.log = ngx_cycle->log;

    q->start = ngx_current_msec;

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet lane: \"%s\" %p waits behind %ui",
                   stmt->name, q, lane->nwaiting);
    ngx_add_timer(&q->timer, lane->timeout);

    ngx_queue_insert_tail(&lane->waiting, &q->queue);
    lane->nwaiting++;

    ngx_http_xet_lane_dispatch(lane);

    return q;
}


void
ngx_http_xet_lane_detach(ngx_http_xet_pg_query_t *q)
{
    ngx_http_xet_lane_t  *lane;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet lane: \"%s\" %p detached", q->stmt->name, q);

    q->handler = NULL;

    if (q->pg) {
        return;
    }

    lane = q->lane;

    ngx_queue_remove(&q->queue);
    lane->nwaiting--;

    ngx_http_xet_lane_deliver(q, NULL, NGX_ERROR, NULL);
}


ngx_int_t
ngx_http_xet_lane_idle(ngx_http_xet_lane_t *lane)
{
    ngx_int_t           rc;
    ngx_uint_t          i;
    ngx_http_xet_pg_t  *pg;

    rc = NGX_DECLINED;

    for (i = 0; i < lane->n; i++) {
        pg = &lane->sessions[i];

        if (pg->state != NGX_HTTP_XET_PG_READY) {
            continue;
        }

        if (pg->n == 0) {
            return NGX_OK;
        }

        rc = NGX_BUSY;
    }

    return rc;
}


ngx_int_t
ngx_http_xet_lane_hurry(ngx_http_xet_lane_t *lane)
{
    ngx_uint_t          i;
    ngx_http_xet_pg_t  *pg;

    if (!ngx_http_xet_lane_hopeless(lane)) {
        return NGX_OK;
    }

    for (i = 0; i < lane->n; i++) {
        pg = &lane->sessions[i];

        /* not one with statements that a failed send has left in flight */

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


ngx_uint_t
ngx_http_xet_lane_spare(ngx_http_xet_lane_t *lane, ngx_uint_t keep)
{
    ngx_uint_t          i, ready;
    ngx_http_xet_pg_t  *pg, *idle;

    idle = NULL;
    ready = 0;

    for (i = 0; i < lane->n; i++) {
        pg = &lane->sessions[i];

        if (pg->state == NGX_HTTP_XET_PG_READY) {
            ready++;

            if (pg->n == 0) {
                idle = pg;
            }
        }
    }

    if (idle == NULL || ready <= keep) {
        return 0;
    }

    ngx_http_xet_pg_close(idle);

    return 1;
}


/* A session that can take a statement now, the least busy one. */

static ngx_http_xet_pg_t *
ngx_http_xet_lane_session(ngx_http_xet_lane_t *lane)
{
    ngx_uint_t          i;
    ngx_http_xet_pg_t  *pg, *best;

    best = NULL;

    for (i = 0; i < lane->n; i++) {
        pg = &lane->sessions[i];

        if (pg->state == NGX_HTTP_XET_PG_READY && pg->n < lane->depth
            && (best == NULL || pg->n < best->n))
        {
            best = pg;
        }
    }

    return best;
}


ngx_int_t
ngx_http_xet_lane_grow(ngx_http_xet_lane_t *lane)
{
    ngx_int_t           rc;
    ngx_uint_t          i;
    ngx_http_xet_pg_t  *pg;

    rc = NGX_ERROR;

    for (i = 0; i < lane->n; i++) {
        pg = &lane->sessions[i];

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


static void
ngx_http_xet_lane_dispatch(ngx_http_xet_lane_t *lane)
{
    ngx_queue_t              *head;
    ngx_http_xet_pg_t        *pg;
    ngx_http_xet_pg_query_t  *q;

    while (!ngx_queue_empty(&lane->waiting)) {

        pg = ngx_http_xet_lane_session(lane);

        if (pg == NULL) {
            (void) ngx_http_xet_lane_grow(lane);
            return;
        }

        head = ngx_queue_head(&lane->waiting);
        q = ngx_queue_data(head, ngx_http_xet_pg_query_t, queue);

        ngx_queue_remove(head);
        lane->nwaiting--;

        ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                       "xet lane: \"%s\" %p goes to pg %p",
                       q->stmt->name, q, pg);

        if (ngx_http_xet_pg_send(pg, q) != NGX_OK) {

            /*
             * Delivering from within a caller's send could call that caller
             * back: the retry timer does it in the next turn of the loop.
             */

            ngx_http_xet_pg_close(pg);
            pg->state = NGX_HTTP_XET_PG_BACKOFF;
            ngx_add_timer(&pg->retry, 1);
        }
    }
}


static void
ngx_http_xet_lane_ready(ngx_http_xet_pg_t *pg)
{
    ngx_http_xet_lane_t  *lane;

    lane = pg->lane;

    ngx_http_xet_lane_dispatch(lane);

    if (lane->refused) {
        lane->refused = 0;
        lane->reached(lane);
    }

    if (pg->state == NGX_HTTP_XET_PG_READY && pg->n == 0) {
        ngx_http_xet_lane_drained(pg);
    }
}


static void
ngx_http_xet_lane_failed(ngx_http_xet_pg_t *pg)
{
    ngx_uint_t                i;
    ngx_msec_t                delay;
    ngx_queue_t              *e, lost;
    ngx_http_xet_lane_t      *lane;
    ngx_http_xet_pg_query_t  *q;

    lane = pg->lane;

    /* a lost session may be had again at once, a refused one later */

    delay = pg->backoff / 2 + ngx_random() % (pg->backoff / 2 + 1);

    pg->backoff = pg->backoff ? ngx_min(pg->backoff * 2,
                                        NGX_HTTP_XET_BACKOFF_MAX)
                              : NGX_HTTP_XET_BACKOFF_MIN;

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet pg %p: waits %M ms to connect again", pg, delay);

    pg->state = NGX_HTTP_XET_PG_BACKOFF;

    ngx_add_timer(&pg->retry, delay ? delay : 1);

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

    for (i = 0; i < lane->n; i++) {
        if (lane->sessions[i].state != NGX_HTTP_XET_PG_BACKOFF) {
            break;
        }
    }

    if (i == lane->n && pg->backoff > NGX_HTTP_XET_BACKOFF_MIN
        && !ngx_queue_empty(&lane->waiting))
    {
        /* no session is left to serve the statements that wait */

        ngx_queue_add(&lost, &lane->waiting);
        ngx_queue_init(&lane->waiting);
        lane->nwaiting = 0;
    }

    ngx_http_xet_lane_recycle(lane, &lost);

    if (pg->backoff > NGX_HTTP_XET_BACKOFF_MIN) {
        lane->refused = 1;
        lane->asked = ngx_current_msec;

        if (ngx_http_xet_lane_hopeless(lane)) {
            lane->starved(lane);
        }
    }
}


/* Whether no session is ready and none is connecting. */

static ngx_uint_t
ngx_http_xet_lane_hopeless(ngx_http_xet_lane_t *lane)
{
    ngx_uint_t  i;

    for (i = 0; i < lane->n; i++) {
        switch (lane->sessions[i].state) {

        case NGX_HTTP_XET_PG_CONNECTING:
        case NGX_HTTP_XET_PG_READY:
            return 0;

        default: /* NGX_HTTP_XET_PG_CLOSED, NGX_HTTP_XET_PG_BACKOFF */
            break;
        }
    }

    return 1;
}


/* Sends lost statements again, and fails those that have no tries left. */

static void
ngx_http_xet_lane_recycle(ngx_http_xet_lane_t *lane, ngx_queue_t *lost)
{
    ngx_queue_t              *e;
    ngx_http_xet_pg_query_t  *q;

    /* detaching must not take statements in "lost" for waiting ones */

    for (e = ngx_queue_head(lost);
         e != ngx_queue_sentinel(lost);
         e = ngx_queue_next(e))
    {
        q = ngx_queue_data(e, ngx_http_xet_pg_query_t, queue);

        if (q->pg == NULL) {
            q->tries = lane->n;
            q->pg = lane->sessions;
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

        /* the next session may be lost as well, which is not known yet */

        if (q->handler && q->tries < lane->n) {
            q->tries++;
            q->pg = NULL;
            ngx_queue_insert_head(&lane->waiting, e);
            lane->nwaiting++;
            continue;
        }

        ngx_http_xet_lane_deliver(q, NULL, NGX_BUSY, NULL);
    }

    ngx_http_xet_lane_dispatch(lane);
}


static void
ngx_http_xet_lane_retry_handler(ngx_event_t *ev)
{
    ngx_http_xet_pg_t    *pg;
    ngx_http_xet_lane_t  *lane;

    pg = ev->data;

    if (!ngx_queue_empty(&pg->inflight)) {

        /* statements that a failed send has left in flight */

        ngx_http_xet_lane_failed(pg);
        return;
    }

    lane = pg->lane;

    if (ngx_exiting && ngx_queue_empty(&lane->waiting)) {

        /* nobody needs it any more */

        pg->state = NGX_HTTP_XET_PG_CLOSED;
        return;
    }

    if (ngx_http_xet_pg_connect(pg) != NGX_OK) {
        ngx_http_xet_lane_failed(pg);
    }
}


static void
ngx_http_xet_lane_finished(ngx_http_xet_pg_t *pg, ngx_http_xet_pg_query_t *q)
{
    PGresult             *res;
    const char           *sqlstate;
    ngx_queue_t           lost;
    ExecStatusType        status;
    ngx_http_xet_lane_t  *lane;

    lane = pg->lane;

    res = q->res;
    q->res = NULL;

    status = PQresultStatus(res);

    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        ngx_http_xet_lane_deliver(q, res, NGX_OK, NULL);
        return;
    }

    sqlstate = PQresultErrorField(res, PG_DIAG_SQLSTATE);

    if (sqlstate == NULL) {

        /* libpq's own, of no memory for example: the end is unknown */

        sqlstate = "08000";
        q->lost = 1;
    }

    if (ngx_http_xet_lane_transient(sqlstate) && q->handler
        && ngx_strcmp(sqlstate, NGX_HTTP_XET_PG_CANCELLED) != 0
        && q->tries < lane->n)
    {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "xet: \"%s\" is sent again: %s", q->stmt->name,
                      PQresultErrorMessage(res));

        PQclear(res);

        ngx_queue_init(&lost);
        ngx_queue_insert_head(&lost, &q->queue);
        q->pg = pg;

        ngx_http_xet_lane_recycle(lane, &lost);
        return;
    }

    /* class XT: verdicts of our own functions, for the caller alone */

    if (ngx_strncmp(sqlstate, "XT", 2) != 0) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "xet: \"%s\" failed, SQLSTATE %s: %s", q->stmt->name,
                      sqlstate, PQresultErrorMessage(res));
    }

    ngx_http_xet_lane_deliver(q, NULL,
                              (ngx_http_xet_lane_transient(sqlstate)
                               || ngx_strcmp(sqlstate, NGX_HTTP_XET_PG_LOCKED)
                                  == 0)
                              ? NGX_BUSY : NGX_ERROR,
                              q->lost && ngx_strncmp(sqlstate, "XT", 2) != 0
                              ? NULL : sqlstate);
    PQclear(res);
}


/*
 * Errors that another attempt may cure: connection and resource troubles,
 * shutdown, serialization failures.  A statement that a timeout has cancelled
 * is among them, but the caller does not send it again: only time may cure it.
 */

static ngx_uint_t
ngx_http_xet_lane_transient(const char *sqlstate)
{
    static const char *const  classes[] = { "08", "53", "57", "40", NULL };

    ngx_uint_t  i;

    for (i = 0; classes[i]; i++) {
        if (ngx_strncmp(sqlstate, classes[i], 2) == 0) {
            return 1;
        }
    }

    /* read-only after a failover; a plan is stale; a statement is not there */

    return ngx_strcmp(sqlstate, "25006") == 0
           || ngx_strcmp(sqlstate, "0A000") == 0
           || ngx_strcmp(sqlstate, "26000") == 0;
}


static void
ngx_http_xet_lane_drained(ngx_http_xet_pg_t *pg)
{
    ngx_http_xet_lane_dispatch(pg->lane);

    if (pg->state != NGX_HTTP_XET_PG_READY || pg->n) {
        return;
    }

    if (ngx_exiting || pg->connection->close) {
        ngx_http_xet_pg_close(pg);
        return;
    }

    ngx_http_xet_pg_park(pg);
}


static void
ngx_http_xet_lane_timer_handler(ngx_event_t *ev)
{
    ngx_http_xet_pg_t        *pg;
    ngx_http_xet_lane_t      *lane;
    ngx_http_xet_pg_query_t  *q;

    q = ev->data;
    pg = q->pg;
    lane = q->lane;

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "xet: PostgreSQL has not answered \"%s\" in %M ms",
                  q->stmt->name, ngx_current_msec - q->start);

    q->tries = lane->n;

    if (pg == NULL) {
        ngx_queue_remove(&q->queue);
        lane->nwaiting--;

        ngx_http_xet_lane_deliver(q, NULL, NGX_BUSY, NULL);
        return;
    }

    ngx_http_xet_pg_close(pg);
    ngx_http_xet_lane_failed(pg);
}


/* Frees q and then calls its handler, which may send another statement. */

static void
ngx_http_xet_lane_deliver(ngx_http_xet_pg_query_t *q, PGresult *res,
    ngx_int_t rc, const char *sqlstate)
{
    void                        *data;
    ngx_http_xet_pg_handler_pt   handler;

    if (q->timer.timer_set) {
        ngx_del_timer(&q->timer);
    }

    if (q->res) {
        PQclear(q->res);
    }

    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet lane: \"%s\" %p ends, rc:%i", q->stmt->name, q, rc);

    handler = q->handler;
    data = q->data;

    ngx_free(q);

    if (handler) {
        handler(data, res, rc, sqlstate);

    } else if (res) {
        PQclear(res);
    }
}


void
ngx_http_xet_lane_stat(ngx_http_xet_lane_t *lane,
    ngx_http_xet_lane_stat_t *stat)
{
    ngx_uint_t          i;
    ngx_http_xet_pg_t  *pg;

    stat->sessions = lane->n;
    stat->ready = 0;
    stat->inflight = 0;
    stat->waiting = lane->nwaiting;
    stat->oldest = ngx_http_xet_lane_age(&lane->waiting);

    for (i = 0; i < lane->n; i++) {
        pg = &lane->sessions[i];

        if (pg->state == NGX_HTTP_XET_PG_READY) {
            stat->ready++;
            stat->inflight += pg->n;
            stat->oldest = ngx_max(stat->oldest,
                                   ngx_http_xet_lane_age(&pg->inflight));
        }
    }
}


/* The age of the first statement of a queue, the oldest one, in ms. */

static ngx_msec_t
ngx_http_xet_lane_age(ngx_queue_t *queue)
{
    ngx_http_xet_pg_query_t  *q;

    if (ngx_queue_empty(queue)) {
        return 0;
    }

    q = ngx_queue_data(ngx_queue_head(queue), ngx_http_xet_pg_query_t, queue);

    return ngx_current_msec - q->start;
}
