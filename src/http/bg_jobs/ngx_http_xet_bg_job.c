
/*
 * The lease and the steps of a background job.  One worker of each node tries
 * to run the jobs.
 *
 *     idle    --timer-->   takes   requests the lease from PostgreSQL
 *     takes   --taken-->   runs    calls begin, and runs the first step
 *             --denied-->  idle    waits until the job may be due
 *     runs    --next-->    keeps   renews an old lease; otherwise pauses
 *             --finish-->  ends -> idle
 *             --retry-->   ends -> idle, after a backoff
 *     keeps   --kept-->    pauses; or ends, if the worker exits
 *             --lost-->    idle    another worker has the lease
 *     pauses  --timer-->   runs    runs the next step
 *
 * The lease contains a random id of the node, which the master draws for all
 * workers.  So after a reload or a crash, another worker of the same node can
 * take the lease immediately; another node, only after the lease has expired.
 * The turn is a number that grows with each new lease.  It prevents a late
 * worker from overwriting the work of its successor.
 *
 * Timers are cancelable, so an exiting worker waits only for a job or a
 * statement in flight, not for the end of a pause.  Everything here belongs to
 * the event loop; a thread uses only bg_job->data.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_bg_jobs.h"

#include <openssl/rand.h>


#define NGX_HTTP_XET_HOLDER_LEN     16         /* random bytes */
#define NGX_HTTP_XET_BG_JOB_FIRST    1000       /* ms before the first query */

/* Size of the figures as JSON, at most 64 bytes each. */
#define NGX_HTTP_XET_BG_JOB_JSON     (64 * (NGX_HTTP_XET_BG_JOB_FIGURES + 1))


static void ngx_http_xet_bg_job_wait(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_bg_job_e state, ngx_msec_t delay);
static void ngx_http_xet_bg_job_timer_handler(ngx_event_t *ev);
static void ngx_http_xet_bg_job_take(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_bg_job_taken(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);
static void ngx_http_xet_bg_job_begin(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_bg_job_job_handler(void *data, ngx_log_t *log);
static void ngx_http_xet_bg_job_job_done(void *data);
static void ngx_http_xet_bg_job_keep(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_bg_job_put(ngx_http_xet_bg_job_t *bg_job,
    ngx_msec_t lease, ngx_http_xet_asked_pt handler);
static void ngx_http_xet_bg_job_kept(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);
static void ngx_http_xet_bg_job_leave(ngx_http_xet_bg_job_t *bg_job,
    ngx_msec_t delay);
static void ngx_http_xet_bg_job_ended(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);
static void ngx_http_xet_bg_job_end(ngx_http_xet_bg_job_t *bg_job);
static ngx_str_t ngx_http_xet_bg_job_figures(ngx_http_xet_bg_job_t *bg_job,
    u_char *buf);
static void ngx_http_xet_bg_job_unsent(ngx_http_xet_bg_job_t *bg_job);


static u_char      ngx_http_xet_bg_job_node[NGX_HTTP_XET_HOLDER_LEN];
static ngx_uint_t  ngx_http_xet_bg_job_drawn;


ngx_int_t
ngx_http_xet_bg_job_holder(ngx_cycle_t *cycle)
{
    if (ngx_http_xet_bg_job_drawn) {
        return NGX_OK;
    }

    if (RAND_bytes(ngx_http_xet_bg_job_node, NGX_HTTP_XET_HOLDER_LEN) != 1) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0, "RAND_bytes() failed");
        return NGX_ERROR;
    }

    ngx_http_xet_bg_job_drawn = 1;

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_bg_job_add(ngx_cycle_t *cycle,
    const ngx_http_xet_bg_job_kind_t *kind, ngx_msec_t interval)
{
    ngx_http_xet_bg_job_t  *bg_job;

    bg_job = ngx_pcalloc(cycle->pool, sizeof(ngx_http_xet_bg_job_t));
    if (bg_job == NULL) {
        return NGX_ERROR;
    }

    bg_job->kind = kind;

    bg_job->interval = interval;

    bg_job->dummy.fd = (ngx_socket_t) -1;
    bg_job->dummy.data = bg_job;

    bg_job->timer.handler = ngx_http_xet_bg_job_timer_handler;
    bg_job->timer.data = &bg_job->dummy;
    bg_job->timer.log = cycle->log;
    bg_job->timer.cancelable = 1;

    ngx_http_xet_bg_job_wait(bg_job, NGX_HTTP_XET_BG_JOB_IDLE,
                             NGX_HTTP_XET_BG_JOB_FIRST);

    return NGX_OK;
}


/*
 * Starts the timer.  In the state idle, adds a random delay, so that nodes that
 * start together do not send queries at the same time.
 */

static void
ngx_http_xet_bg_job_wait(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_bg_job_e state, ngx_msec_t delay)
{
    bg_job->state = state;

    if (state == NGX_HTTP_XET_BG_JOB_IDLE) {
        delay += (ngx_msec_t) ngx_random() % (delay / 4 + 1);
    }

    ngx_add_timer(&bg_job->timer, delay);
}


static void
ngx_http_xet_bg_job_timer_handler(ngx_event_t *ev)
{
    ngx_connection_t       *c;
    ngx_http_xet_bg_job_t  *bg_job;

    c = ev->data;
    bg_job = c->data;

    if (bg_job->state == NGX_HTTP_XET_BG_JOB_IDLE) {

        if (!ngx_exiting) {
            ngx_http_xet_bg_job_take(bg_job);
        }

        return;
    }

    if (ngx_exiting) {
        ngx_http_xet_bg_job_leave(bg_job, 0);
        return;
    }

    bg_job->state = NGX_HTTP_XET_BG_JOB_RUNS;
    bg_job->kind->step(bg_job);
}


static void
ngx_http_xet_bg_job_take(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_int_t  rc;

    bg_job->state = NGX_HTTP_XET_BG_JOB_TAKES;

    rc = ngx_http_xet_ask(job_take, ngx_http_xet_bg_job_taken, bg_job,
                          .name = bg_job->kind->name,
                          .holder = ngx_http_xet_bg_job_node,
                          .every = bg_job->interval,
                          .lease = NGX_HTTP_XET_BG_JOB_LEASE);

    if (rc != NGX_AGAIN) {
        ngx_http_xet_bg_job_taken(bg_job, NULL, NGX_BUSY);
    }
}


static void
ngx_http_xet_bg_job_taken(void *data, ngx_http_xet_ask_t *ask, ngx_int_t rc)
{
    ngx_http_xet_bg_job_t *bg_job = data;

    ngx_http_xet_job_take_row_t  row;

    ngx_memzero(&row, sizeof(ngx_http_xet_job_take_row_t));

    row.wait = NGX_HTTP_XET_BG_JOB_POLL;

    if (rc == NGX_OK) {
        (void) ngx_http_xet_row_job_take(ask->res, 0, &row);
    }

    if ((int64_t) row.wait > 0) {
        ngx_http_xet_bg_job_wait(bg_job, NGX_HTTP_XET_BG_JOB_IDLE,
                                 (ngx_msec_t) ngx_min(row.wait,
                                                   NGX_HTTP_XET_BG_JOB_POLL));
        return;
    }

    ngx_log_error(NGX_LOG_INFO, ngx_cycle->log, 0,
                  "xet: background job \"%V\" starts at \"%V\" in turn %uL",
                  &bg_job->kind->name, &row.the_cursor, row.the_turn);

    if (row.begins) {
        bg_job->wait_logged = 0;
    }

    bg_job->turn = row.the_turn;
    bg_job->seq = 0;
    bg_job->kept = ngx_current_msec;

    ngx_str_null(&bg_job->note);
    ngx_http_xet_bg_job_cursor(bg_job, "%V", &row.the_cursor);

    ngx_http_xet_bg_job_begin(bg_job);
}


static void
ngx_http_xet_bg_job_begin(ngx_http_xet_bg_job_t *bg_job)
{
    bg_job->state = NGX_HTTP_XET_BG_JOB_RUNS;
    bg_job->data = ngx_calloc(bg_job->kind->size, ngx_cycle->log);

    if (bg_job->data == NULL || bg_job->kind->begin(bg_job) != NGX_OK) {
        ngx_http_xet_bg_job_retry(bg_job, "out of memory");

    } else if (ngx_exiting) {
        ngx_http_xet_bg_job_leave(bg_job, 0);

    } else {
        bg_job->kind->step(bg_job);
    }
}


int64_t
ngx_http_xet_bg_job_at(ngx_http_xet_bg_job_t *bg_job, ngx_str_t *rest)
{
    off_t    n;
    u_char  *dot, *last;

    last = bg_job->cursor.data + bg_job->cursor.len;
    dot = ngx_strlchr(bg_job->cursor.data, last, '.');

    rest->data = dot ? dot + 1 : NULL;
    rest->len = dot ? last - dot - 1 : 0;

    n = ngx_atoof(bg_job->cursor.data, (dot ? dot : last) -
                  bg_job->cursor.data);

    return (n == NGX_ERROR) ? 0 : n;
}


void ngx_cdecl
ngx_http_xet_bg_job_cursor(ngx_http_xet_bg_job_t *bg_job, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);

    bg_job->cursor.data = bg_job->text;
    bg_job->cursor.len = ngx_vslprintf(bg_job->text,
                                      bg_job->text + NGX_HTTP_XET_BG_JOB_CURSOR,
                                      fmt, args)
                        - bg_job->text;
    va_end(args);
}


void ngx_cdecl
ngx_http_xet_bg_job_note(ngx_http_xet_bg_job_t *bg_job, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);

    bg_job->note.data = bg_job->recorded;
    bg_job->note.len = ngx_vslprintf(bg_job->recorded, bg_job->recorded +
                                     sizeof(bg_job->recorded), fmt, args) -
        bg_job->recorded;
    va_end(args);
}


void
ngx_http_xet_bg_job_sent(ngx_http_xet_bg_job_t *bg_job, ngx_int_t rc,
    ngx_http_xet_bg_job_answer_pt answer)
{
    bg_job->answer = answer;

    if (rc != NGX_AGAIN) {
        ngx_http_xet_bg_job_answer(bg_job, NULL, NGX_BUSY);
    }
}


void
ngx_http_xet_bg_job_answer(void *data, ngx_http_xet_ask_t *ask, ngx_int_t rc)
{
    ngx_http_xet_bg_job_t *bg_job = data;

    if (rc == NGX_OK || rc == NGX_DECLINED) {
        bg_job->answer(bg_job, ask);
        return;
    }

    ngx_http_xet_bg_job_retry(bg_job, (rc == NGX_BUSY)
                                    ? "PostgreSQL does not respond"
                                    : "PostgreSQL rejected a statement");
}


void
ngx_http_xet_bg_job_job(ngx_http_xet_bg_job_t *bg_job, ngx_http_xet_job_pt job,
    ngx_http_xet_bg_job_pt done)
{
    bg_job->log = *ngx_cycle->log;

    if (bg_job->wait_logged) {
        bg_job->log.log_level = 0;
        bg_job->log.next = NULL;
    }

    bg_job->job = job;
    bg_job->done = done;

    if (ngx_http_xet_task_lone(&bg_job->lone, ngx_http_xet_bg_job_job_handler,
                               ngx_http_xet_bg_job_job_done, bg_job)
        != NGX_OK)
    {
        ngx_http_xet_bg_job_retry(bg_job, "the read thread pool is busy");
    }
}


static void
ngx_http_xet_bg_job_job_handler(void *data, ngx_log_t *log)
{
    ngx_http_xet_bg_job_t *bg_job = data;

    bg_job->job(bg_job->data, &bg_job->log);
}


static void
ngx_http_xet_bg_job_job_done(void *data)
{
    ngx_http_xet_bg_job_t *bg_job = data;

    bg_job->done(bg_job);
}


void
ngx_http_xet_bg_job_next(ngx_http_xet_bg_job_t *bg_job, ngx_msec_t delay)
{
    bg_job->pause = delay;

    if (ngx_exiting) {
        ngx_http_xet_bg_job_leave(bg_job, 0);

    } else if (ngx_current_msec - bg_job->kept >= NGX_HTTP_XET_BG_JOB_KEEP) {
        ngx_http_xet_bg_job_keep(bg_job);

    } else {
        ngx_http_xet_bg_job_wait(bg_job, NGX_HTTP_XET_BG_JOB_PAUSES, delay);
    }
}


static void
ngx_http_xet_bg_job_keep(ngx_http_xet_bg_job_t *bg_job)
{
    bg_job->state = NGX_HTTP_XET_BG_JOB_KEEPS;
    bg_job->kept = ngx_current_msec;

    ngx_str_null(&bg_job->note);

    ngx_http_xet_bg_job_put(bg_job, NGX_HTTP_XET_BG_JOB_LEASE,
                            ngx_http_xet_bg_job_kept);
}


/* Saves the state and renews the lease; a lease of 0 ms releases it. */

static void
ngx_http_xet_bg_job_put(ngx_http_xet_bg_job_t *bg_job, ngx_msec_t lease,
    ngx_http_xet_asked_pt handler)
{
    u_char     buf[NGX_HTTP_XET_BG_JOB_JSON];
    ngx_int_t  rc;

    rc = ngx_http_xet_ask(job_keep, handler, bg_job,
                          .name = bg_job->kind->name,
                          .holder = ngx_http_xet_bg_job_node,
                          .turn = bg_job->turn, .seq = (uint32_t) ++bg_job->seq,
                          .lease = lease, .cursor = bg_job->cursor,
                          .figures = ngx_http_xet_bg_job_figures(bg_job, buf),
                          .note = bg_job->note);

    if (rc != NGX_AGAIN) {
        handler(bg_job, NULL, NGX_BUSY);
    }
}


static void
ngx_http_xet_bg_job_kept(void *data, ngx_http_xet_ask_t *ask, ngx_int_t rc)
{
    ngx_http_xet_bg_job_t *bg_job = data;

    if (rc == NGX_OK && ngx_http_xet_ask_number(ask) == 0) {

        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "xet: background job \"%V\" was taken over by another "
                      "worker",
                      &bg_job->kind->name);

        ngx_http_xet_bg_job_end(bg_job);
        ngx_http_xet_bg_job_wait(bg_job, NGX_HTTP_XET_BG_JOB_IDLE,
                                 NGX_HTTP_XET_BG_JOB_POLL);

    } else if (rc != NGX_OK) {
        ngx_http_xet_bg_job_unsent(bg_job);
        ngx_http_xet_bg_job_retry(bg_job,
                                  "PostgreSQL did not save the state of "
                                  "the job");

    } else if (ngx_exiting) {
        ngx_http_xet_bg_job_leave(bg_job, 0);

    } else {
        bg_job->backoff = 0;
        ngx_http_xet_bg_job_wait(bg_job, NGX_HTTP_XET_BG_JOB_PAUSES,
                                 bg_job->pause);
    }
}


void
ngx_http_xet_bg_job_retry(ngx_http_xet_bg_job_t *bg_job, const char *why)
{
    bg_job->backoff = bg_job->backoff
                     ? ngx_min(2 * bg_job->backoff, NGX_HTTP_XET_BG_JOB_BACKOFF)
                     : NGX_HTTP_XET_BG_JOB_FIRST;

    if (!bg_job->wait_logged) {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "xet: background job \"%V\" is waiting: %s",
                      &bg_job->kind->name, why);
        bg_job->wait_logged = 1;
    }

    ngx_http_xet_bg_job_note(bg_job, "%s", why);
    ngx_http_xet_bg_job_leave(bg_job, bg_job->backoff);
}


void
ngx_http_xet_bg_job_failed(ngx_http_xet_bg_job_t *bg_job, xet_status_t status,
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

    ngx_http_xet_bg_job_retry(bg_job, why);
}


/* Releases the lease; if the statement fails, the lease expires by itself. */

static void
ngx_http_xet_bg_job_leave(ngx_http_xet_bg_job_t *bg_job, ngx_msec_t delay)
{
    if (delay == 0) {
        ngx_str_null(&bg_job->note);
        delay = NGX_HTTP_XET_BG_JOB_POLL;
    }

    bg_job->pause = delay;

    ngx_http_xet_bg_job_end(bg_job);

    bg_job->state = NGX_HTTP_XET_BG_JOB_ENDS;

    ngx_http_xet_bg_job_put(bg_job, 0, ngx_http_xet_bg_job_ended);
}


void
ngx_http_xet_bg_job_finish(ngx_http_xet_bg_job_t *bg_job)
{
    u_char     buf[NGX_HTTP_XET_BG_JOB_JSON];
    ngx_int_t  rc;

    bg_job->pause = ngx_min(bg_job->interval, NGX_HTTP_XET_BG_JOB_POLL);
    bg_job->backoff = 0;

    ngx_http_xet_bg_job_end(bg_job);

    bg_job->state = NGX_HTTP_XET_BG_JOB_ENDS;

    rc = ngx_http_xet_ask(job_done, ngx_http_xet_bg_job_ended, bg_job,
                          .name = bg_job->kind->name,
                          .holder = ngx_http_xet_bg_job_node,
                          .turn = bg_job->turn,
                          .figures = ngx_http_xet_bg_job_figures(bg_job, buf),
                          .note = bg_job->note);

    if (rc != NGX_AGAIN) {
        ngx_http_xet_bg_job_ended(bg_job, NULL, NGX_BUSY);
    }
}


static void
ngx_http_xet_bg_job_ended(void *data, ngx_http_xet_ask_t *ask, ngx_int_t rc)
{
    ngx_http_xet_bg_job_t *bg_job = data;

    if (rc != NGX_OK) {
        ngx_http_xet_bg_job_unsent(bg_job);
    }

    ngx_http_xet_bg_job_wait(bg_job, NGX_HTTP_XET_BG_JOB_IDLE, bg_job->pause);
}


static void
ngx_http_xet_bg_job_end(ngx_http_xet_bg_job_t *bg_job)
{
    if (bg_job->data == NULL) {
        return;
    }

    if (bg_job->kind->end) {
        bg_job->kind->end(bg_job);
    }

    ngx_free(bg_job->data);
    bg_job->data = NULL;
}


/* Writes the figures counted since the last statement to buf, as JSON. */

static ngx_str_t
ngx_http_xet_bg_job_figures(ngx_http_xet_bg_job_t *bg_job, u_char *buf)
{
    u_char      *p;
    ngx_str_t    figures;
    ngx_uint_t   i;

    p = buf;
    *p++ = '{';

    for (i = 0; bg_job->kind->figures[i]; i++) {
        p = ngx_sprintf(p, "%s\"%s\":%L", i ? "," : "",
                        bg_job->kind->figures[i], bg_job->count[i]);

        bg_job->sent[i] = bg_job->count[i];
        bg_job->count[i] = 0;
    }

    *p++ = '}';

    figures.data = buf;
    figures.len = p - buf;

    return figures;
}


/*
 * Adds the figures of a failed statement to the next statement.  If the failed
 * statement has taken effect after all, these figures count twice.
 */

static void
ngx_http_xet_bg_job_unsent(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_uint_t  i;

    for (i = 0; bg_job->kind->figures[i]; i++) {
        bg_job->count[i] += bg_job->sent[i];
    }
}
