
/*
 * The lease and the steps of a chore (a background job).  Each node runs its
 * chores in one worker.
 *
 *     idle    --timer-->  takes   asks PostgreSQL for the lease
 *     takes   --taken-->  runs    begin, and the first step
 *             --not----->  idle   until the chore may be due
 *     runs    --next--->  keeps   renews the lease at times; else pauses
 *             --finish->  ends -> idle
 *             --retry-->  ends -> idle, after a backoff
 *     keeps   --ours--->  pauses, or ends if the worker exits
 *             --not----->  idle   another worker has taken over
 *     pauses  --timer-->  runs    the next step
 *
 * The lease carries the name of the node: a random name that the master has
 * drawn and that all its workers know.  So after a reload or a crash, another
 * worker of the same node takes the lease at once.  Another node takes it when
 * it has expired.  The turn is a number that grows each time the lease is
 * taken.  It keeps a late worker from overwriting the work of its successor.
 *
 * Timers are cancelable: an exiting worker does not wait for a pause, but it
 * does wait for a job or a statement in flight.  Everything here belongs to the
 * event loop; a thread sees only chore->data.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_chores.h"

#include <openssl/rand.h>


#define NGX_HTTP_XET_HOLDER_LEN     16         /* random bytes */
#define NGX_HTTP_XET_CHORE_FIRST    1000       /* ms, until a first asking */

/* Bytes of figures as JSON, 64 of each. */
#define NGX_HTTP_XET_CHORE_JSON     (64 * (NGX_HTTP_XET_CHORE_FIGURES + 1))


static void ngx_http_xet_chore_wait(ngx_http_xet_chore_t *chore,
    ngx_http_xet_chore_e state, ngx_msec_t delay);
static void ngx_http_xet_chore_timer_handler(ngx_event_t *ev);
static void ngx_http_xet_chore_take(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_chore_taken(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);
static void ngx_http_xet_chore_begin(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_chore_job_handler(void *data, ngx_log_t *log);
static void ngx_http_xet_chore_job_done(void *data);
static void ngx_http_xet_chore_keep(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_chore_put(ngx_http_xet_chore_t *chore,
    ngx_msec_t lease, ngx_http_xet_asked_pt handler);
static void ngx_http_xet_chore_kept(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);
static void ngx_http_xet_chore_leave(ngx_http_xet_chore_t *chore,
    ngx_msec_t delay);
static void ngx_http_xet_chore_ended(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);
static void ngx_http_xet_chore_end(ngx_http_xet_chore_t *chore);
static ngx_str_t ngx_http_xet_chore_figures(ngx_http_xet_chore_t *chore,
    u_char *buf);
static void ngx_http_xet_chore_unsent(ngx_http_xet_chore_t *chore);


static u_char      ngx_http_xet_chore_node[NGX_HTTP_XET_HOLDER_LEN];
static ngx_uint_t  ngx_http_xet_chore_drawn;


ngx_int_t
ngx_http_xet_chore_holder(ngx_cycle_t *cycle)
{
    if (ngx_http_xet_chore_drawn) {
        return NGX_OK;
    }

    if (RAND_bytes(ngx_http_xet_chore_node, NGX_HTTP_XET_HOLDER_LEN) != 1) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0, "RAND_bytes() failed");
        return NGX_ERROR;
    }

    ngx_http_xet_chore_drawn = 1;

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_chore_add(ngx_cycle_t *cycle,
    const ngx_http_xet_chore_kind_t *kind, ngx_msec_t interval)
{
    ngx_http_xet_chore_t  *chore;

    chore = ngx_pcalloc(cycle->pool, sizeof(ngx_http_xet_chore_t));
    if (chore == NULL) {
        return NGX_ERROR;
    }

    chore->kind = kind;

    chore->interval = interval;

    chore->dummy.fd = (ngx_socket_t) -1;
    chore->dummy.data = chore;

    chore->timer.handler = ngx_http_xet_chore_timer_handler;
    chore->timer.data = &chore->dummy;
    chore->timer.log = cycle->log;
    chore->timer.cancelable = 1;

    ngx_http_xet_chore_wait(chore, NGX_HTTP_XET_CHORE_IDLE,
                            NGX_HTTP_XET_CHORE_FIRST);

    return NGX_OK;
}


/* nodes that were started together must not ask at the same time */

static void
ngx_http_xet_chore_wait(ngx_http_xet_chore_t *chore,
    ngx_http_xet_chore_e state, ngx_msec_t delay)
{
    chore->state = state;

    if (state == NGX_HTTP_XET_CHORE_IDLE) {
        delay += (ngx_msec_t) ngx_random() % (delay / 4 + 1);
    }

    ngx_add_timer(&chore->timer, delay);
}


static void
ngx_http_xet_chore_timer_handler(ngx_event_t *ev)
{
    ngx_connection_t      *c;
    ngx_http_xet_chore_t  *chore;

    c = ev->data;
    chore = c->data;

    if (chore->state == NGX_HTTP_XET_CHORE_IDLE) {

        if (!ngx_exiting) {
            ngx_http_xet_chore_take(chore);
        }

        return;
    }

    if (ngx_exiting) {
        ngx_http_xet_chore_leave(chore, 0);
        return;
    }

    chore->state = NGX_HTTP_XET_CHORE_RUNS;
    chore->kind->step(chore);
}


static void
ngx_http_xet_chore_take(ngx_http_xet_chore_t *chore)
{
    ngx_int_t  rc;

    chore->state = NGX_HTTP_XET_CHORE_TAKES;

    rc = ngx_http_xet_ask(chore_take, ngx_http_xet_chore_taken, chore,
                          .name = chore->kind->name,
                          .holder = ngx_http_xet_chore_node,
                          .every = chore->interval,
                          .lease = NGX_HTTP_XET_CHORE_LEASE);

    if (rc != NGX_AGAIN) {
        ngx_http_xet_chore_taken(chore, NULL, NGX_BUSY);
    }
}


static void
ngx_http_xet_chore_taken(void *data, ngx_http_xet_ask_t *ask, ngx_int_t rc)
{
    ngx_http_xet_chore_t *chore = data;

    ngx_http_xet_chore_take_row_t  row;

    ngx_memzero(&row, sizeof(ngx_http_xet_chore_take_row_t));

    row.wait = NGX_HTTP_XET_CHORE_POLL;

    if (rc == NGX_OK) {
        (void) ngx_http_xet_row_chore_take(ask->res, 0, &row);
    }

    if ((int64_t) row.wait > 0) {
        ngx_http_xet_chore_wait(chore, NGX_HTTP_XET_CHORE_IDLE,
                                (ngx_msec_t) ngx_min(row.wait,
                                                  NGX_HTTP_XET_CHORE_POLL));
        return;
    }

    ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                  "xet: background job \"%V\" starts at \"%V\" in turn %uL",
                  &chore->kind->name, &row.the_cursor, row.the_turn);

    if (row.begins) {
        chore->told = 0;
    }

    chore->turn = row.the_turn;
    chore->seq = 0;
    chore->kept = ngx_current_msec;

    ngx_str_null(&chore->note);
    ngx_http_xet_chore_cursor(chore, "%V", &row.the_cursor);

    ngx_http_xet_chore_begin(chore);
}


static void
ngx_http_xet_chore_begin(ngx_http_xet_chore_t *chore)
{
    chore->state = NGX_HTTP_XET_CHORE_RUNS;
    chore->data = ngx_calloc(chore->kind->size, ngx_cycle->log);

    if (chore->data == NULL || chore->kind->begin(chore) != NGX_OK) {
        ngx_http_xet_chore_retry(chore, "out of memory");

    } else if (ngx_exiting) {
        ngx_http_xet_chore_leave(chore, 0);

    } else {
        chore->kind->step(chore);
    }
}


int64_t
ngx_http_xet_chore_at(ngx_http_xet_chore_t *chore, ngx_str_t *rest)
{
    off_t    n;
    u_char  *dot, *last;

    last = chore->cursor.data + chore->cursor.len;
    dot = ngx_strlchr(chore->cursor.data, last, '.');

    rest->data = dot ? dot + 1 : NULL;
    rest->len = dot ? last - dot - 1 : 0;

    n = ngx_atoof(chore->cursor.data, (dot ? dot : last) - chore->cursor.data);

    return (n == NGX_ERROR) ? 0 : n;
}


void ngx_cdecl
ngx_http_xet_chore_cursor(ngx_http_xet_chore_t *chore, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);

    chore->cursor.data = chore->text;
    chore->cursor.len = ngx_vslprintf(chore->text,
                                      chore->text + NGX_HTTP_XET_CHORE_CURSOR,
                                      fmt, args)
                        - chore->text;
    va_end(args);
}


void ngx_cdecl
ngx_http_xet_chore_note(ngx_http_xet_chore_t *chore, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);

    chore->note.data = chore->noted;
    chore->note.len = ngx_vslprintf(chore->noted,
                                    chore->noted + sizeof(chore->noted), fmt,
                                    args)
                      - chore->noted;
    va_end(args);
}


void
ngx_http_xet_chore_sent(ngx_http_xet_chore_t *chore, ngx_int_t rc,
    ngx_http_xet_chore_answer_pt answer)
{
    chore->answer = answer;

    if (rc != NGX_AGAIN) {
        ngx_http_xet_chore_answer(chore, NULL, NGX_BUSY);
    }
}


void
ngx_http_xet_chore_answer(void *data, ngx_http_xet_ask_t *ask, ngx_int_t rc)
{
    ngx_http_xet_chore_t *chore = data;

    if (rc == NGX_OK || rc == NGX_DECLINED) {
        chore->answer(chore, ask);
        return;
    }

    ngx_http_xet_chore_retry(chore, (rc == NGX_BUSY)
                                    ? "PostgreSQL does not respond"
                                    : "PostgreSQL rejected a statement");
}


void
ngx_http_xet_chore_job(ngx_http_xet_chore_t *chore, ngx_http_xet_job_pt job,
    ngx_http_xet_chore_pt done)
{
    chore->log = *ngx_cycle->log;

    if (chore->told) {
        chore->log.log_level = 0;
        chore->log.next = NULL;
    }

    chore->job = job;
    chore->done = done;

    if (ngx_http_xet_task_lone(&chore->lone, ngx_http_xet_chore_job_handler,
                               ngx_http_xet_chore_job_done, chore)
        != NGX_OK)
    {
        ngx_http_xet_chore_retry(chore, "the read thread pool is busy");
    }
}


static void
ngx_http_xet_chore_job_handler(void *data, ngx_log_t *log)
{
    ngx_http_xet_chore_t *chore = data;

    chore->job(chore->data, &chore->log);
}


static void
ngx_http_xet_chore_job_done(void *data)
{
    ngx_http_xet_chore_t *chore = data;

    chore->done(chore);
}


void
ngx_http_xet_chore_next(ngx_http_xet_chore_t *chore, ngx_msec_t delay)
{
    chore->pause = delay;

    if (ngx_exiting) {
        ngx_http_xet_chore_leave(chore, 0);

    } else if (ngx_current_msec - chore->kept >= NGX_HTTP_XET_CHORE_KEEP) {
        ngx_http_xet_chore_keep(chore);

    } else {
        ngx_http_xet_chore_wait(chore, NGX_HTTP_XET_CHORE_PAUSES, delay);
    }
}


static void
ngx_http_xet_chore_keep(ngx_http_xet_chore_t *chore)
{
    chore->state = NGX_HTTP_XET_CHORE_KEEPS;
    chore->kept = ngx_current_msec;

    ngx_str_null(&chore->note);

    ngx_http_xet_chore_put(chore, NGX_HTTP_XET_CHORE_LEASE,
                           ngx_http_xet_chore_kept);
}


/* Saves the state, and renews the lease; 0 gives the lease back. */

static void
ngx_http_xet_chore_put(ngx_http_xet_chore_t *chore, ngx_msec_t lease,
    ngx_http_xet_asked_pt handler)
{
    u_char     buf[NGX_HTTP_XET_CHORE_JSON];
    ngx_int_t  rc;

    rc = ngx_http_xet_ask(chore_keep, handler, chore,
                          .name = chore->kind->name,
                          .holder = ngx_http_xet_chore_node,
                          .turn = chore->turn, .seq = (uint32_t) ++chore->seq,
                          .lease = lease, .cursor = chore->cursor,
                          .figures = ngx_http_xet_chore_figures(chore, buf),
                          .note = chore->note);

    if (rc != NGX_AGAIN) {
        handler(chore, NULL, NGX_BUSY);
    }
}


static void
ngx_http_xet_chore_kept(void *data, ngx_http_xet_ask_t *ask, ngx_int_t rc)
{
    ngx_http_xet_chore_t *chore = data;

    if (rc == NGX_OK && ngx_http_xet_ask_number(ask) == 0) {

        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "xet: background job \"%V\" was taken over by another "
                      "worker",
                      &chore->kind->name);

        ngx_http_xet_chore_end(chore);
        ngx_http_xet_chore_wait(chore, NGX_HTTP_XET_CHORE_IDLE,
                                NGX_HTTP_XET_CHORE_POLL);

    } else if (rc != NGX_OK) {
        ngx_http_xet_chore_unsent(chore);
        ngx_http_xet_chore_retry(chore, "PostgreSQL did not save the state of "
                                        "the job");

    } else if (ngx_exiting) {
        ngx_http_xet_chore_leave(chore, 0);

    } else {
        chore->backoff = 0;
        ngx_http_xet_chore_wait(chore, NGX_HTTP_XET_CHORE_PAUSES,
                                chore->pause);
    }
}


void
ngx_http_xet_chore_retry(ngx_http_xet_chore_t *chore, const char *why)
{
    chore->backoff = chore->backoff
                     ? ngx_min(2 * chore->backoff, NGX_HTTP_XET_CHORE_BACKOFF)
                     : NGX_HTTP_XET_CHORE_FIRST;

    if (!chore->told) {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "xet: background job \"%V\" is waiting: %s",
                      &chore->kind->name, why);
        chore->told = 1;
    }

    ngx_http_xet_chore_note(chore, "%s", why);
    ngx_http_xet_chore_leave(chore, chore->backoff);
}


void
ngx_http_xet_chore_failed(ngx_http_xet_chore_t *chore, xet_status_t status,
    const char *why)
{
    switch (status) {

    case XET_STORE_OTHER:
        why = "the store does not belong to this database";
        break;

    case XET_STORE_FILES:
        why = "too many open files";
        break;

    case XET_STORE_FULL:
        why = "the store is full";
        break;

    case XET_NOMEM:
        why = "out of memory";
        break;

    default:
        break;
    }

    ngx_http_xet_chore_retry(chore, why);
}


/* Gives the lease back; if this fails, the lease expires. */

static void
ngx_http_xet_chore_leave(ngx_http_xet_chore_t *chore, ngx_msec_t delay)
{
    if (delay == 0) {
        ngx_str_null(&chore->note);
        delay = NGX_HTTP_XET_CHORE_POLL;
    }

    chore->pause = delay;

    ngx_http_xet_chore_end(chore);

    chore->state = NGX_HTTP_XET_CHORE_ENDS;

    ngx_http_xet_chore_put(chore, 0, ngx_http_xet_chore_ended);
}


void
ngx_http_xet_chore_finish(ngx_http_xet_chore_t *chore)
{
    u_char     buf[NGX_HTTP_XET_CHORE_JSON];
    ngx_int_t  rc;

    chore->pause = ngx_min(chore->interval, NGX_HTTP_XET_CHORE_POLL);
    chore->backoff = 0;

    ngx_http_xet_chore_end(chore);

    chore->state = NGX_HTTP_XET_CHORE_ENDS;

    rc = ngx_http_xet_ask(chore_done, ngx_http_xet_chore_ended, chore,
                          .name = chore->kind->name,
                          .holder = ngx_http_xet_chore_node,
                          .turn = chore->turn,
                          .figures = ngx_http_xet_chore_figures(chore, buf),
                          .note = chore->note);

    if (rc != NGX_AGAIN) {
        ngx_http_xet_chore_ended(chore, NULL, NGX_BUSY);
    }
}


static void
ngx_http_xet_chore_ended(void *data, ngx_http_xet_ask_t *ask, ngx_int_t rc)
{
    ngx_http_xet_chore_t *chore = data;

    if (rc != NGX_OK) {
        ngx_http_xet_chore_unsent(chore);
    }

    ngx_http_xet_chore_wait(chore, NGX_HTTP_XET_CHORE_IDLE, chore->pause);
}


static void
ngx_http_xet_chore_end(ngx_http_xet_chore_t *chore)
{
    if (chore->data == NULL) {
        return;
    }

    if (chore->kind->end) {
        chore->kind->end(chore);
    }

    ngx_free(chore->data);
    chore->data = NULL;
}


/* Writes the figures since they were last sent as JSON to buf. */

static ngx_str_t
ngx_http_xet_chore_figures(ngx_http_xet_chore_t *chore, u_char *buf)
{
    u_char      *p;
    ngx_str_t    figures;
    ngx_uint_t   i;

    p = buf;
    *p++ = '{';

    for (i = 0; chore->kind->figures[i]; i++) {
        p = ngx_sprintf(p, "%s\"%s\":%L", i ? "," : "",
                        chore->kind->figures[i], chore->count[i]);

        chore->sent[i] = chore->count[i];
        chore->count[i] = 0;
    }

    *p++ = '}';

    figures.data = buf;
    figures.len = p - buf;

    return figures;
}


/* They are sent with the next statement, and may then be counted twice. */

static void
ngx_http_xet_chore_unsent(ngx_http_xet_chore_t *chore)
{
    ngx_uint_t  i;

    for (i = 0; chore->kind->figures[i]; i++) {
        chore->count[i] += chore->sent[i];
    }
}
