
/*
 * Background jobs are background jobs.  Of all nodes that share a database,
 * one worker at a time runs a background job, step by step, as long as the
 * store exists.
 */

#ifndef _NGX_HTTP_XET_BG_JOBS_H_INCLUDED_
#define _NGX_HTTP_XET_BG_JOBS_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"


/*
 * How to write a background job.
 *
 * A kind of background job is a constant ngx_http_xet_bg_job_kind_t, a row of
 * the table in ngx_http_xet_bg_jobs.c: its name, the names of its figures, how
 * often it runs, the size of its state, and its functions.  A run goes from
 * begin to finish, over any number of steps, workers and nodes:
 *
 *     begin   a run starts, or continues after another worker: bg_job->cursor
 *             is the position, empty for a new run.  The state, bg_job->data,
 *             is zeroed.  NGX_ERROR if out of memory.
 *
 *     step    does a little work, and finally calls one of
 *
 *                 ngx_http_xet_bg_job_next()     cursor is set; another step
 *                 ngx_http_xet_bg_job_finish()   the run is complete
 *                 ngx_http_xet_bg_job_retry()    it can't continue now
 *
 *             directly, or in a callback.  Before that it may run any number
 *             of statements and jobs, one at a time, by
 *             ngx_http_xet_bg_job_ask() and ngx_http_xet_bg_job_job().
 *             Whenever the event loop gets control, something must be
 *             running.
 *
 *     end     the part of this worker in the run is over: the run is complete,
 *             another worker has the lease, this worker exits, or the job has
 *             called retry.  Releases resources of the state.  Called once
 *             for each begin, whatever that returned, and never while a job or
 *             a statement of the background job is running.  May be NULL.
 *
 * What a step may rely on:
 *
 *     - It runs in the event loop, in one worker of a node.  A job runs in a
 *       thread of the pool of reads, and should take at most 50 ms or 4 MiB of
 *       I/O, since readers wait for these threads.
 *     - The lease only saves work.  It may be lost at any time, and then two
 *       workers do the same step at once.  So each change is one statement
 *       that checks in its transaction whether it still applies.
 *     - A worker may die at any point.  The next one continues at the last
 *       cursor that PostgreSQL has, which is up to NGX_HTTP_XET_BG_JOB_KEEP
 *       old: repeating a step must be harmless.
 *     - The cursor is a text in the job's own format, shown to operators.
 *       Nothing else survives; after a retry begin is called again.
 *     - A statement without an answer makes the background job retry.
 */

typedef struct ngx_http_xet_bg_job_s  ngx_http_xet_bg_job_t;

typedef void (*ngx_http_xet_bg_job_pt)(ngx_http_xet_bg_job_t *bg_job);
typedef void (*ngx_http_xet_bg_job_answer_pt)(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask);

#define NGX_HTTP_XET_BG_JOB_CURSOR   64         /* bytes at most */
#define NGX_HTTP_XET_BG_JOB_FIGURES  12


typedef enum {
    NGX_HTTP_XET_BG_JOB_IDLE = 0,       /* the timer asks for the lease */
    NGX_HTTP_XET_BG_JOB_TAKES,
    NGX_HTTP_XET_BG_JOB_RUNS,           /* a step is under way */
    NGX_HTTP_XET_BG_JOB_KEEPS,
    NGX_HTTP_XET_BG_JOB_PAUSES,         /* the timer makes the next step */
    NGX_HTTP_XET_BG_JOB_ENDS            /* the lease is given back */
} ngx_http_xet_bg_job_e;


typedef struct {
    ngx_str_t                name;
    const char              *figures[NGX_HTTP_XET_BG_JOB_FIGURES + 1];
    ngx_msec_t             (*interval)(ngx_http_xet_main_conf_t *xmcf);
    size_t                   size;             /* of the state */
    ngx_int_t              (*begin)(ngx_http_xet_bg_job_t *bg_job);
    ngx_http_xet_bg_job_pt   step;
    ngx_http_xet_bg_job_pt   end;
} ngx_http_xet_bg_job_kind_t;


struct ngx_http_xet_bg_job_s {

    /* for the functions of this kind */

    void                    *data;             /* their own */
    ngx_str_t                cursor;           /* in text */
    u_char                   text[NGX_HTTP_XET_BG_JOB_CURSOR];
    int64_t                  count[NGX_HTTP_XET_BG_JOB_FIGURES];

    /* for ngx_http_xet_bg_job.c */

    const ngx_http_xet_bg_job_kind_t  *kind;

    ngx_http_xet_bg_job_e    state;
    ngx_msec_t               interval;         /* between runs */
    uint64_t                 turn;
    ngx_uint_t               seq;              /* in the turn */
    ngx_str_t                note;             /* NULL: none */
    ngx_http_xet_lone_t      lone;
    ngx_http_xet_job_pt      job;
    ngx_http_xet_bg_job_pt   done;
    ngx_http_xet_bg_job_answer_pt  answer;
    ngx_log_t                log;              /* of the job */
    ngx_event_t              timer;
    ngx_msec_t               kept;             /* when */
    ngx_msec_t               pause;
    ngx_msec_t               backoff;
    int64_t                  sent[NGX_HTTP_XET_BG_JOB_FIGURES];
    ngx_uint_t               told;             /* that this run waits */
    ngx_connection_t         dummy;            /* for debug logs of timers */
    u_char                   recorded[256];
};


/*
 * ngx_http_xet_bg_jobs.c: the background jobs of the configuration.  Called in
 * init_process of the worker that runs the background jobs of its node.
 */
ngx_int_t ngx_http_xet_bg_jobs_start(ngx_cycle_t *cycle);


/*
 * ngx_http_xet_bg_job.c: the lease and the steps of a background job.
 */

/*
 * How often a worker asks for the lease, its duration, and when it is renewed.
 */

#define NGX_HTTP_XET_BG_JOB_POLL     2000
#define NGX_HTTP_XET_BG_JOB_LEASE    30000
#define NGX_HTTP_XET_BG_JOB_KEEP     5000

/* The longest delay before a background job that can't continue is retried. */
#define NGX_HTTP_XET_BG_JOB_BACKOFF  60000


/*
 * Draws the random name of the node for all its workers; called in
 * init_module.
 */
ngx_int_t ngx_http_xet_bg_job_holder(ngx_cycle_t *cycle);

/*
 * Adds a background job when a worker starts; background jobs are never
 * removed.  interval is the time between the starts of two runs in
 * milliseconds, or 0 if the background job is off; the kind's own function
 * returns it.  NGX_ERROR if out of memory.
 */
ngx_int_t ngx_http_xet_bg_job_add(ngx_cycle_t *cycle,
    const ngx_http_xet_bg_job_kind_t *kind, ngx_msec_t interval);

/* Sets the cursor, in bg_job->text, with a format of ngx_sprintf(). */
void ngx_cdecl ngx_http_xet_bg_job_cursor(ngx_http_xet_bg_job_t *bg_job,
    const char *fmt, ...);

/*
 * Parses a cursor: a number, and the text after a dot, whose data is NULL if
 * there is none.  Returns 0 for an empty or malformed cursor.
 */
int64_t ngx_http_xet_bg_job_at(ngx_http_xet_bg_job_t *bg_job, ngx_str_t *rest);

/* Adds n to figure i of the run. */
#define ngx_http_xet_bg_job_count(bg_job, i, n)  (bg_job)->count[i] += (n)

/*
 * Sends a statement, as ngx_http_xet_ask(), and calls answer with the result,
 * which may have no rows.  Without a result the background job is retried.
 */
#define ngx_http_xet_bg_job_ask(bg_job, name, answer, ...)                    \
    ngx_http_xet_bg_job_sent(bg_job,                                          \
        ngx_http_xet_ask(name, ngx_http_xet_bg_job_answer, bg_job,            \
                         __VA_ARGS__),                                        \
        answer)

void ngx_http_xet_bg_job_sent(ngx_http_xet_bg_job_t *bg_job, ngx_int_t rc,
    ngx_http_xet_bg_job_answer_pt answer);
void ngx_http_xet_bg_job_answer(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);

/*
 * Runs job with bg_job->data in a thread, then calls done.  If the pool does
 * not accept the job, the background job is retried.  After the reason for
 * waiting was logged once in a run, the log of further jobs is silent, as they
 * may fail repeatedly.
 */
void ngx_http_xet_bg_job_job(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_job_pt job, ngx_http_xet_bg_job_pt done);

/* The possible ends of a step, see above; delay is in milliseconds. */
void ngx_http_xet_bg_job_next(ngx_http_xet_bg_job_t *bg_job, ngx_msec_t delay);

/* Delays the next step so that units are processed at rate per second. */
#define ngx_http_xet_bg_job_pace(bg_job, units, rate)                         \
    ngx_http_xet_bg_job_next(bg_job, (ngx_msec_t) ((units) * 1000 / (rate)))

void ngx_http_xet_bg_job_finish(ngx_http_xet_bg_job_t *bg_job);

/*
 * Notes what the run has left undone, and why, with a format of ngx_sprintf().
 * Operators see the note after the run.  Called right before finish.
 */
void ngx_cdecl ngx_http_xet_bg_job_note(ngx_http_xet_bg_job_t *bg_job,
    const char *fmt, ...);

/*
 * The background job can't continue now.  The lease is given back, so that
 * another node may try, and requested again after a delay, which grows each
 * time.  The reason is logged once per run, and shown to operators.
 */
void ngx_http_xet_bg_job_retry(ngx_http_xet_bg_job_t *bg_job, const char *why);

/*
 * The same for a job that has failed with status; why is the reason for other
 * statuses.
 */
void ngx_http_xet_bg_job_failed(ngx_http_xet_bg_job_t *bg_job,
    xet_status_t status, const char *why);


/* ngx_http_xet_gc.c, ngx_http_xet_scrub.c, ngx_http_xet_heal.c */
extern const ngx_http_xet_bg_job_kind_t  ngx_http_xet_gc;
extern const ngx_http_xet_bg_job_kind_t  ngx_http_xet_scrub;
extern const ngx_http_xet_bg_job_kind_t  ngx_http_xet_heal;


#endif /* _NGX_HTTP_XET_BG_JOBS_H_INCLUDED_ */
