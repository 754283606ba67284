
/*
 * Background jobs, such as garbage collection, which maintain the store.  Each
 * job has a lease in PostgreSQL, in xet.jobs.  Of all workers of all nodes
 * that share the database, only the worker that holds the lease runs the job.
 * The job runs in short steps, so that requests do not have to wait long.
 */

#ifndef _NGX_HTTP_XET_BG_JOBS_H_INCLUDED_
#define _NGX_HTTP_XET_BG_JOBS_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"


/*
 * How to write a background job.
 *
 * A kind of background job is a constant ngx_http_xet_bg_job_kind_t, listed in
 * ngx_http_xet_bg_jobs.c.  It has a name, the names of its figures, the
 * interval between runs, the size of its state, and its functions.  A run
 * lasts from begin to finish, over any number of steps, workers and nodes:
 *
 *     begin   starts a run, or continues the run of another worker.
 *             bg_job->cursor is the position, empty for a new run.  The state,
 *             bg_job->data, is zeroed.  Returns NGX_OK, or NGX_ERROR if out of
 *             memory.
 *
 *     step    does a little work, and finally calls one of these functions,
 *             directly or in a callback:
 *
 *                 ngx_http_xet_bg_job_next()     cursor is set; another step
 *                 ngx_http_xet_bg_job_finish()   the run is complete
 *                 ngx_http_xet_bg_job_retry()    the run can't continue now
 *
 *             Before that, a step may run any number of statements and thread
 *             jobs, one at a time, with ngx_http_xet_bg_job_ask() and
 *             ngx_http_xet_bg_job_job().  When a function of a step returns to
 *             the event loop, one of these must be in flight.
 *
 *     end     releases resources of the state, when this worker stops working
 *             on the run: the run is complete, another worker has the lease,
 *             this worker exits, or a step has called retry.  Called once for
 *             each begin, even if begin has failed, and never while a thread
 *             job or a statement of the background job is in flight.  May be
 *             NULL.
 *
 * Rules for steps:
 *
 *     - A step runs in the event loop, in one worker of a node.  A thread job
 *       runs in the pool of reads.  It should take at most 50 ms or 4 MiB of
 *       I/O, since readers wait for these threads.
 *     - The lease only avoids duplicate work.  After it is lost, two workers
 *       may do the same step at once.  So each change is one statement that
 *       checks in its transaction whether the change still applies.
 *     - A worker may die at any point.  Its successor continues at the last
 *       cursor in PostgreSQL, which is up to NGX_HTTP_XET_BG_JOB_KEEP old.  So
 *       repeating a step must be harmless.
 *     - The cursor is a string in a format of the job, shown to operators.
 *       Nothing else is kept; after a retry, begin is called again.
 *     - If a statement gets no result, the background job is retried.
 */

typedef struct ngx_http_xet_bg_job_s  ngx_http_xet_bg_job_t;

typedef void (*ngx_http_xet_bg_job_pt)(ngx_http_xet_bg_job_t *bg_job);
typedef void (*ngx_http_xet_bg_job_answer_pt)(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask);

#define NGX_HTTP_XET_BG_JOB_CURSOR   64         /* maximum size, in bytes */
#define NGX_HTTP_XET_BG_JOB_FIGURES  12


typedef enum {
    NGX_HTTP_XET_BG_JOB_IDLE = 0,       /* timer: requests the lease */
    NGX_HTTP_XET_BG_JOB_TAKES,
    NGX_HTTP_XET_BG_JOB_RUNS,           /* a step is running */
    NGX_HTTP_XET_BG_JOB_KEEPS,
    NGX_HTTP_XET_BG_JOB_PAUSES,         /* timer: runs the next step */
    NGX_HTTP_XET_BG_JOB_ENDS            /* the lease is being released */
} ngx_http_xet_bg_job_e;


typedef struct {
    ngx_str_t                name;
    const char              *figures[NGX_HTTP_XET_BG_JOB_FIGURES + 1];
    ngx_msec_t             (*interval)(ngx_http_xet_main_conf_t *xmcf);
    size_t                   size;             /* size of the state */
    ngx_int_t              (*begin)(ngx_http_xet_bg_job_t *bg_job);
    ngx_http_xet_bg_job_pt   step;
    ngx_http_xet_bg_job_pt   end;
} ngx_http_xet_bg_job_kind_t;


struct ngx_http_xet_bg_job_s {

    /* used by the functions begin, step and end */

    void                    *data;             /* state of the run */
    ngx_str_t                cursor;           /* points to text */
    u_char                   text[NGX_HTTP_XET_BG_JOB_CURSOR];
    int64_t                  count[NGX_HTTP_XET_BG_JOB_FIGURES];

    /* private to ngx_http_xet_bg_job.c */

    const ngx_http_xet_bg_job_kind_t  *kind;

    ngx_http_xet_bg_job_e          state;
    ngx_msec_t                     interval;   /* ms between starts of runs */
    uint64_t                       turn;
    ngx_uint_t                     seq;        /* saves during this lease */
    ngx_str_t                      note;       /* data NULL: no note */
    ngx_http_xet_lone_t            lone;
    ngx_http_xet_job_pt            job;
    ngx_http_xet_bg_job_pt         done;
    ngx_http_xet_bg_job_answer_pt  answer;
    ngx_log_t                      log;        /* log of thread jobs */
    ngx_event_t                    timer;
    ngx_msec_t                     kept;       /* time of last lease renewal */
    ngx_msec_t                     pause;
    ngx_msec_t                     backoff;
    int64_t                        sent[NGX_HTTP_XET_BG_JOB_FIGURES];
    ngx_uint_t                     wait_logged; /* reason for waiting logged */
    ngx_connection_t               dummy;      /* needed by timer debug logs */
    u_char                         recorded[256];
};


/*
 * ngx_http_xet_bg_jobs.c: starts the configured background jobs.  Runs in
 * init_process of the worker that runs the background jobs of its node.
 */
ngx_int_t ngx_http_xet_bg_jobs_start(ngx_cycle_t *cycle);


/*
 * ngx_http_xet_bg_job.c: the lease and the steps of a background job.
 */

/*
 * Times in ms: the interval of requests for the lease, the duration of the
 * lease, and its age when it is renewed.
 */

#define NGX_HTTP_XET_BG_JOB_POLL     2000
#define NGX_HTTP_XET_BG_JOB_LEASE    30000
#define NGX_HTTP_XET_BG_JOB_KEEP     5000

/* The maximum delay in ms before a background job is retried. */
#define NGX_HTTP_XET_BG_JOB_BACKOFF  60000


/*
 * Generates the random id of the node, which all its workers share.  Runs in
 * init_module.
 */
ngx_int_t ngx_http_xet_bg_job_holder(ngx_cycle_t *cycle);

/*
 * Adds a background job when a worker starts; background jobs are never
 * removed.  interval is the time in ms between the starts of two runs,
 * returned by kind->interval().  A job whose interval is 0 is off and must not
 * be added.  Returns NGX_OK, or NGX_ERROR if out of memory.
 */
ngx_int_t ngx_http_xet_bg_job_add(ngx_cycle_t *cycle,
    const ngx_http_xet_bg_job_kind_t *kind, ngx_msec_t interval);

/* Sets the cursor; fmt is a format of ngx_sprintf(). */
void ngx_cdecl ngx_http_xet_bg_job_cursor(ngx_http_xet_bg_job_t *bg_job,
    const char *fmt, ...);

/*
 * Parses a cursor: a number, and optionally a dot and a string.  Returns the
 * number, or 0 for an empty or malformed cursor.  Sets *rest to the string; if
 * there is no dot, rest->data is NULL.
 */
int64_t ngx_http_xet_bg_job_at(ngx_http_xet_bg_job_t *bg_job, ngx_str_t *rest);

/* Adds n to figure i of the run. */
#define ngx_http_xet_bg_job_count(bg_job, i, n)  (bg_job)->count[i] += (n)

/*
 * Sends a statement like ngx_http_xet_ask(), and calls answer with the result,
 * which may have no rows.  If there is no result, the background job is
 * retried.
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
 * Runs job with bg_job->data in a thread, and then calls done.  If the pool
 * does not accept the thread job, the background job is retried.  The reason
 * for a retry is logged once per run.  After that, thread jobs log nothing,
 * since they may fail repeatedly.
 */
void ngx_http_xet_bg_job_job(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_job_pt job, ngx_http_xet_bg_job_pt done);

/* These functions end a step, see above; delay is in milliseconds. */
void ngx_http_xet_bg_job_next(ngx_http_xet_bg_job_t *bg_job, ngx_msec_t delay);

/*
 * Runs the next step after a delay that limits the work to "rate" units per
 * second.
 */
#define ngx_http_xet_bg_job_pace(bg_job, units, rate)                         \
    ngx_http_xet_bg_job_next(bg_job, (ngx_msec_t) ((units) * 1000 / (rate)))

void ngx_http_xet_bg_job_finish(ngx_http_xet_bg_job_t *bg_job);

/*
 * Sets a note for operators about work that the run has left undone, with a
 * format of ngx_sprintf().  Call this right before finish.
 */
void ngx_cdecl ngx_http_xet_bg_job_note(ngx_http_xet_bg_job_t *bg_job,
    const char *fmt, ...);

/*
 * Ends a step of a background job that can't continue now.  Releases the lease,
 * so that another node may try, and requests it again after a delay that
 * doubles each time.  "why" is the reason, which is logged once per run and
 * shown to operators.
 */
void ngx_http_xet_bg_job_retry(ngx_http_xet_bg_job_t *bg_job, const char *why);

/*
 * Calls ngx_http_xet_bg_job_retry() with the reason that belongs to status, or
 * with "why" if status has no reason of its own.
 */
void ngx_http_xet_bg_job_failed(ngx_http_xet_bg_job_t *bg_job,
    xet_status_t status, const char *why);


/* ngx_http_xet_gc.c, ngx_http_xet_scrub.c, ngx_http_xet_heal.c */
extern const ngx_http_xet_bg_job_kind_t  ngx_http_xet_gc;
extern const ngx_http_xet_bg_job_kind_t  ngx_http_xet_scrub;
extern const ngx_http_xet_bg_job_kind_t  ngx_http_xet_heal;


#endif /* _NGX_HTTP_XET_BG_JOBS_H_INCLUDED_ */
