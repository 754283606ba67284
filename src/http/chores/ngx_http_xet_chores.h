
/*
 * Chores are background jobs.  Of all nodes that share a database, one worker
 * at a time runs a chore, step by step, as long as the store exists.
 */

#ifndef _NGX_HTTP_XET_CHORES_H_INCLUDED_
#define _NGX_HTTP_XET_CHORES_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"


/*
 * To write a chore.
 *
 * A kind of chore is a constant ngx_http_xet_chore_kind_t, a row of the table
 * in ngx_http_xet_chores.c: its name, the names of its figures, how often it
 * runs, the size of its state, and what it does.  A run goes from begin to
 * finish, over any number of steps, workers and nodes:
 *
 *     begin   a run begins, or one goes on that another worker has left:
 *             chore->cursor is where, empty for a new run.  The state,
 *             chore->data, is all zeros.  NGX_ERROR without memory.
 *     step    does a little, and at its end calls one of
 *
 *                 ngx_http_xet_chore_next()     cursor is set; another step
 *                 ngx_http_xet_chore_finish()   the run is complete
 *                 ngx_http_xet_chore_retry()    it can't go on now
 *
 *             from itself, or from a callback: in between there may be any
 *             number of statements and jobs, one at a time, by
 *             ngx_http_xet_chore_ask() and ngx_http_xet_chore_job().
 *             Something has to be under way whenever the event loop gets
 *             control.
 *     end     this worker has no part in the run any more, because it is
 *             complete, somebody else has the lease, the worker exits, or the
 *             chore calls retry.  Lets go of what the state has; called once
 *             for each begin, whatever that returned, and never while a job or
 *             a statement of the chore is under way.  May be NULL.
 *
 * What a step relies on, and what it does not:
 *
 *     - It runs in the event loop, in one worker of a node.  A job runs in a
 *       thread of the pool of reads, where it should take no more than 50 ms
 *       or 4 MiB of I/O, since readers wait for these threads.
 *     - The lease is an economy.  It may be lost at any time, and then two
 *       workers do the same step at once; so whatever a step changes it
 *       changes by a statement that decides by itself, in one transaction,
 *       whether it still holds.
 *     - A worker may die at any point.  The next one begins at the last cursor
 *       that PostgreSQL has, which is up to NGX_HTTP_XET_CHORE_KEEP behind: a
 *       step that is done twice must be harmless.
 *     - The cursor is text of the chore's own, shown to operators.  Nothing but
 *       the cursor survives; after a retry begin is called again.
 *     - A statement that is not answered makes the chore retry.
 */

typedef struct ngx_http_xet_chore_s  ngx_http_xet_chore_t;

typedef void (*ngx_http_xet_chore_pt)(ngx_http_xet_chore_t *chore);
typedef void (*ngx_http_xet_chore_answer_pt)(ngx_http_xet_chore_t *chore,
    ngx_http_xet_ask_t *ask);

#define NGX_HTTP_XET_CHORE_CURSOR   64         /* bytes at most */
#define NGX_HTTP_XET_CHORE_FIGURES  12


typedef enum {
    NGX_HTTP_XET_CHORE_IDLE = 0,       /* the timer asks for the lease */
    NGX_HTTP_XET_CHORE_TAKES,
    NGX_HTTP_XET_CHORE_RUNS,           /* a step is under way */
    NGX_HTTP_XET_CHORE_KEEPS,
    NGX_HTTP_XET_CHORE_PAUSES,         /* the timer makes the next step */
    NGX_HTTP_XET_CHORE_ENDS            /* the lease is given back */
} ngx_http_xet_chore_e;


typedef struct {
    ngx_str_t                name;
    const char              *figures[NGX_HTTP_XET_CHORE_FIGURES + 1];
    ngx_msec_t             (*interval)(ngx_http_xet_main_conf_t *xmcf);
    size_t                   size;             /* of the state */
    ngx_int_t              (*begin)(ngx_http_xet_chore_t *chore);
    ngx_http_xet_chore_pt    step;
    ngx_http_xet_chore_pt    end;
} ngx_http_xet_chore_kind_t;


struct ngx_http_xet_chore_s {

    /* for the functions of its kind */

    void                    *data;             /* their own */
    ngx_str_t                cursor;           /* in text */
    u_char                   text[NGX_HTTP_XET_CHORE_CURSOR];
    int64_t                  count[NGX_HTTP_XET_CHORE_FIGURES];

    /* of ngx_http_xet_chore.c */

    const ngx_http_xet_chore_kind_t  *kind;

    ngx_http_xet_chore_e     state;
    ngx_msec_t               interval;         /* between runs */
    uint64_t                 turn;
    ngx_uint_t               seq;              /* in the turn */
    ngx_str_t                note;             /* NULL: none */
    ngx_http_xet_lone_t      lone;
    ngx_http_xet_job_pt      job;
    ngx_http_xet_chore_pt    done;
    ngx_http_xet_chore_answer_pt  answer;
    ngx_log_t                log;              /* of the job */
    ngx_event_t              timer;
    ngx_msec_t               kept;             /* when */
    ngx_msec_t               pause;
    ngx_msec_t               backoff;
    int64_t                  sent[NGX_HTTP_XET_CHORE_FIGURES];
    ngx_uint_t               told;             /* that this run waits */
    ngx_connection_t         dummy;            /* for debug logs of timers */
    u_char                   noted[256];
};


/*
 * ngx_http_xet_chores.c: which chores there are, by the configuration.  Called
 * in init_process of the one worker of a node that has chores.
 */
ngx_int_t ngx_http_xet_chores_start(ngx_cycle_t *cycle);


/*
 * ngx_http_xet_chore.c: the lease and the steps of a chore.
 */

/* How often the lease is asked for, for how long it is had and when renewed. */

#define NGX_HTTP_XET_CHORE_POLL     2000
#define NGX_HTTP_XET_CHORE_LEASE    30000
#define NGX_HTTP_XET_CHORE_KEEP     5000

/* The most that a chore that can't go on waits before it asks again. */
#define NGX_HTTP_XET_CHORE_BACKOFF  60000


/*
 * Draws the name of the node, once for all workers that the master makes:
 * called in init_module.
 */
ngx_int_t ngx_http_xet_chore_holder(ngx_cycle_t *cycle);

/*
 * Chores are added when a worker starts, and never removed.  interval is that
 * between the begins of two runs, in milliseconds, of the kind's own function,
 * by which 0 is off.  NGX_ERROR without memory.
 */
ngx_int_t ngx_http_xet_chore_add(ngx_cycle_t *cycle,
    const ngx_http_xet_chore_kind_t *kind, ngx_msec_t interval);

/* Sets the cursor, which is in chore->text, by a format of ngx_sprintf(). */
void ngx_cdecl ngx_http_xet_chore_cursor(ngx_http_xet_chore_t *chore,
    const char *fmt, ...);

/*
 * Reads a cursor: a number, and what is behind a dot, whose data is NULL where
 * there is none.  0 for an empty or a malformed one.
 */
int64_t ngx_http_xet_chore_at(ngx_http_xet_chore_t *chore, ngx_str_t *rest);

/* Adds n to figure number i of the run. */
#define ngx_http_xet_chore_count(chore, i, n)  (chore)->count[i] += (n)

/*
 * Sends a statement, as ngx_http_xet_ask(), and calls answer with the answer,
 * which may have no rows.  Where there is none the chore is retried.
 */
#define ngx_http_xet_chore_ask(chore, name, answer, ...)                      \
    ngx_http_xet_chore_sent(chore,                                            \
        ngx_http_xet_ask(name, ngx_http_xet_chore_answer, chore,              \
                         __VA_ARGS__),                                        \
        answer)

void ngx_http_xet_chore_sent(ngx_http_xet_chore_t *chore, ngx_int_t rc,
    ngx_http_xet_chore_answer_pt answer);
void ngx_http_xet_chore_answer(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);

/*
 * Runs job with chore->data in a thread, then calls done.  Where the pool takes
 * no job, the chore is retried.  The log of a job is silent once it was logged
 * why the run waits, as a job may fail again and again in a run.
 */
void ngx_http_xet_chore_job(ngx_http_xet_chore_t *chore,
    ngx_http_xet_job_pt job, ngx_http_xet_chore_pt done);

/* The ends of a step, see above; delay is in milliseconds. */
void ngx_http_xet_chore_next(ngx_http_xet_chore_t *chore, ngx_msec_t delay);

/* The next step comes when so many units are allowed for, at rate a second. */
#define ngx_http_xet_chore_pace(chore, units, rate)                           \
    ngx_http_xet_chore_next(chore, (ngx_msec_t) ((units) * 1000 / (rate)))

void ngx_http_xet_chore_finish(ngx_http_xet_chore_t *chore);

/*
 * Says what the run has left undone, and why, by a format of ngx_sprintf(), for
 * who looks when it has ended; called right before finish.
 */
void ngx_cdecl ngx_http_xet_chore_note(ngx_http_xet_chore_t *chore,
    const char *fmt, ...);

/*
 * The chore can't go on now, why: the lease is given back, so that another node
 * may try, and asked for again after a while, which grows from time to time.
 * why is logged once a run, and shown to operators.
 */
void ngx_http_xet_chore_retry(ngx_http_xet_chore_t *chore, const char *why);

/* The same for a job that has failed with status; why is what else it was. */
void ngx_http_xet_chore_failed(ngx_http_xet_chore_t *chore,
    xet_status_t status, const char *why);


/* ngx_http_xet_gc.c, ngx_http_xet_scrub.c, ngx_http_xet_heal.c */
extern const ngx_http_xet_chore_kind_t  ngx_http_xet_gc;
extern const ngx_http_xet_chore_kind_t  ngx_http_xet_scrub;
extern const ngx_http_xet_chore_kind_t  ngx_http_xet_heal;


#endif /* _NGX_HTTP_XET_CHORES_H_INCLUDED_ */
