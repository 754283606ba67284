
/*
 * Jobs of requests in thread pools.  Uploads use one thread pool, and all other
 * jobs use another one, so that reads don't wait for slow writes.
 *
 * This file keeps a request alive while a thread works for it.  r->blocked
 * holds the request, and a timer on the task's event keeps an exiting worker
 * alive.  A finished job calls r->write_event_handler, which nginx replaces
 * when it terminates the request.  So no done handler runs for a terminated
 * request, and only pool cleanups free the data of a job.
 *
 * If another module has the content handler, r->write_event_handler belongs to
 * that module, which may finalize the request during the job.  So the job also
 * holds a reference to the request, and nginx continues with the connection
 * when the job releases that reference.  If nginx terminates the request, even
 * while it is blocked, a cleanup marks the task as dead; then done is not
 * called.
 *
 * A lone job has no request, but its caller is waiting, so the timer on its
 * event also keeps an exiting worker alive.  The same applies to a detached job
 * with a done handler.
 *
 * States of a task: idle -> busy (job posted) -> ready (job finished) -> idle
 * (done handler called).  The event loop owns the structure; the thread uses
 * only job and data.
 */

#include "ngx_http_xet.h"

#include <sys/resource.h>


#define NGX_HTTP_XET_TASK_TIMER  60000


typedef struct {
    ngx_http_xet_job_pt   job;
    void                 *data;
    ngx_int_t             nice;
    ngx_uint_t            pool;                /* NGX_HTTP_XET_POOL_* */
} ngx_http_xet_task_ctx_t;


typedef struct {
    ngx_pool_t            *pool;
    ngx_http_xet_mark_t    mark;
    ngx_http_xet_lone_pt   done;               /* or NULL */
    void                  *data;
} ngx_http_xet_detached_t;


static ngx_int_t ngx_http_xet_task_start(ngx_http_request_t *r,
    ngx_http_xet_task_t *t, ngx_http_xet_job_pt job,
    ngx_http_xet_done_pt done, void *data);
static void ngx_http_xet_task_dead(void *data);
static void ngx_http_xet_task_job(void *data, ngx_log_t *log);
static void ngx_http_xet_task_event_handler(ngx_event_t *ev);
static ngx_uint_t ngx_http_xet_task_runs(ngx_event_t *ev, ngx_log_t *log);
static void ngx_http_xet_task_write_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_task_detach(ngx_http_xet_job_pt job,
    ngx_http_xet_lone_pt done, const void *data, size_t size);
static void ngx_http_xet_task_detached_handler(ngx_event_t *ev);
static void ngx_http_xet_task_lone_handler(ngx_event_t *ev);
static ngx_int_t ngx_http_xet_task_give(ngx_uint_t pool,
    ngx_thread_task_t *task, ngx_http_xet_mark_t *mark);
static void ngx_http_xet_task_taken(ngx_http_xet_mark_t *mark);


/*
 * For each thread pool: its waiting and running jobs, oldest first; the number
 * of all these jobs; and the number of running jobs, which the threads count.
 */

static ngx_queue_t   ngx_http_xet_task_jobs[NGX_HTTP_XET_POOL_MAX];
static ngx_uint_t    ngx_http_xet_task_njobs[NGX_HTTP_XET_POOL_MAX];
static ngx_atomic_t  ngx_http_xet_task_running[NGX_HTTP_XET_POOL_MAX];


ngx_int_t
ngx_http_xet_task_post(ngx_http_request_t *r, ngx_http_xet_job_pt job,
    ngx_http_xet_done_pt done, void *data)
{
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (ngx_http_xet_task_start(r, ctx->task, job, done, data) != NGX_OK) {
        return NGX_ERROR;
    }

    r->write_event_handler = ngx_http_xet_task_write_handler;

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_task_post_beside(ngx_http_request_t *r, ngx_http_xet_task_t *t,
    ngx_http_xet_job_pt job, ngx_http_xet_done_pt done, void *data)
{
    ngx_http_cleanup_t  *cln;

    if (!t->beside) {
        cln = ngx_http_cleanup_add(r, 0);
        if (cln == NULL) {
            return NGX_ERROR;
        }

        cln->handler = ngx_http_xet_task_dead;
        cln->data = t;

        t->beside = 1;
    }

    if (ngx_http_xet_task_start(r, t, job, done, data) != NGX_OK) {
        return NGX_ERROR;
    }

    r->main->count++;

    return NGX_OK;
}


static void
ngx_http_xet_task_dead(void *data)
{
    ngx_http_xet_task_t  *t = data;

    t->dead = 1;
}


static ngx_int_t
ngx_http_xet_task_start(ngx_http_request_t *r, ngx_http_xet_task_t *t,
    ngx_http_xet_job_pt job, ngx_http_xet_done_pt done, void *data)
{
    ngx_thread_task_t         *task;
    ngx_http_xet_task_ctx_t   *tctx;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    if (t->busy || t->ready) {
        ngx_log_error(NGX_LOG_ALERT, r->connection->log, 0,
                      "xet: a request started a second job");
        return NGX_ERROR;
    }

    task = t->task;

    if (task == NULL) {
        task = ngx_thread_task_alloc(r->pool, sizeof(ngx_http_xet_task_ctx_t));
        if (task == NULL) {
            return NGX_ERROR;
        }

        task->handler = ngx_http_xet_task_job;
        task->event.handler = ngx_http_xet_task_event_handler;
        task->event.data = t;
        task->event.log = r->connection->log;

        t->task = task;
        t->request = r;
    }

    tctx = task->ctx;
    tctx->job = job;
    tctx->data = data;
    tctx->nice = xmcf->nice;

    t->done = done;
    t->data = data;

    task->event.complete = 0;

    if (ngx_http_xet_task_give(t->upload ? NGX_HTTP_XET_POOL_UPLOAD
                                         : NGX_HTTP_XET_POOL_READ,
                               task, &t->mark)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet task: posted");

    t->busy = 1;
    r->main->blocked++;

    ngx_add_timer(&task->event, NGX_HTTP_XET_TASK_TIMER);

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_task_give(ngx_uint_t pool, ngx_thread_task_t *task,
    ngx_http_xet_mark_t *mark)
{
    ngx_queue_t               *jobs;
    ngx_http_xet_task_ctx_t   *tctx;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);
    jobs = &ngx_http_xet_task_jobs[pool];

    tctx = task->ctx;
    tctx->pool = pool;

    if (ngx_thread_task_post((pool == NGX_HTTP_XET_POOL_UPLOAD)
                             ? xmcf->pool : xmcf->read_pool, task)
        != NGX_OK)
    {
        ngx_http_xet_count_at(JOBS_REFUSED, pool, 1);
        return NGX_ERROR;
    }

    ngx_http_xet_count_at(JOBS, pool, 1);

    if (jobs->next == NULL) {
        ngx_queue_init(jobs);
    }

    mark->pool = pool;
    mark->start = ngx_current_msec;

    ngx_queue_insert_tail(jobs, &mark->queue);
    ngx_http_xet_task_njobs[pool]++;

    return NGX_OK;
}


/* Removes a finished job from the gauges. */

static void
ngx_http_xet_task_taken(ngx_http_xet_mark_t *mark)
{
    ngx_queue_remove(&mark->queue);
    ngx_http_xet_task_njobs[mark->pool]--;
}


void
ngx_http_xet_task_measure(void)
{
    ngx_uint_t            i, n, running;
    ngx_queue_t          *jobs;
    ngx_http_xet_mark_t  *mark;

    for (i = 0; i < NGX_HTTP_XET_POOL_MAX; i++) {
        jobs = &ngx_http_xet_task_jobs[i];

        if (jobs->next == NULL) {
            continue;
        }

        running = ngx_atomic_fetch_add(&ngx_http_xet_task_running[i], 0);
        n = ngx_http_xet_task_njobs[i];

        ngx_http_xet_level_at(JOBS_RUNNING, i, running);
        ngx_http_xet_level_at(JOBS_WAITING, i, n - ngx_min(n, running));

        if (n == 0) {
            ngx_http_xet_level_at(JOB_OLDEST, i, 0);
            continue;
        }

        mark = ngx_queue_data(ngx_queue_head(jobs), ngx_http_xet_mark_t,
                              queue);

        ngx_http_xet_level_at(JOB_OLDEST, i, ngx_current_msec - mark->start);
    }
}


ngx_uint_t
ngx_http_xet_task_busy(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    return ctx->task->busy || ctx->task->ready;
}


static void
ngx_http_xet_task_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_task_ctx_t  *tctx = data;

    static __thread ngx_int_t  nice;

    /*
     * event loops must have priority over jobs, such as hashing; on Linux each
     * thread has its own priority
     */

    if (nice != tctx->nice) {
        nice = tctx->nice;
        (void) setpriority(PRIO_PROCESS, 0, (int) nice);
    }

    (void) ngx_atomic_fetch_add(&ngx_http_xet_task_running[tctx->pool], 1);

    tctx->job(tctx->data, log);

    (void) ngx_atomic_fetch_add(&ngx_http_xet_task_running[tctx->pool], -1);
}


/* Returns whether the event is the timer, because the job is still running. */

static ngx_uint_t
ngx_http_xet_task_runs(ngx_event_t *ev, ngx_log_t *log)
{
    if (!ev->timedout) {

        if (ev->timer_set) {
            ngx_del_timer(ev);
        }

        return 0;
    }

    ngx_log_error(NGX_LOG_WARN, log, 0,
                  "xet: a thread pool job has run for more than %d seconds",
                  NGX_HTTP_XET_TASK_TIMER / 1000);

    ev->timedout = 0;
    ngx_add_timer(ev, NGX_HTTP_XET_TASK_TIMER);

    return 1;
}


static void
ngx_http_xet_task_event_handler(ngx_event_t *ev)
{
    ngx_connection_t     *c;
    ngx_http_request_t   *r;
    ngx_http_xet_task_t  *t;

    t = ev->data;
    r = t->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    if (ngx_http_xet_task_runs(ev, c->log)) {
        return;
    }

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, c->log, 0, "xet task: done");

    ngx_http_xet_task_taken(&t->mark);

    t->busy = 0;

    r->main->blocked--;

    if (!t->beside || t->dead) {
        t->ready = 1;

        /* our handler, or nginx's handler if the request was terminated */

        r->write_event_handler(r);

    } else if (r->done) {

        /* the request is finalized, and only our reference is left */

        ngx_http_finalize_request(r, NGX_DONE);

    } else {
        r->main->count--;
        t->done(r, t->data);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_xet_task_write_handler(ngx_http_request_t *r)
{
    ngx_http_xet_task_t  *t;

    t = ngx_http_xet_ctx_of(r)->task;

    if (!t->ready) {

        if (t->write) {
            t->write(r);
        }

        return;
    }

    t->ready = 0;
    r->write_event_handler = t->write ? t->write
                                      : ngx_http_request_empty_handler;

    t->done(r, t->data);
}


void
ngx_http_xet_task_detached(ngx_http_xet_job_pt job, const void *data,
    size_t size)
{
    if (ngx_http_xet_task_detach(job, NULL, data, size) != NGX_OK) {
        job((void *) data, ngx_cycle->log);
    }
}


ngx_int_t
ngx_http_xet_task_detached_done(ngx_http_xet_job_pt job,
    ngx_http_xet_lone_pt done, const void *data, size_t size)
{
    return ngx_http_xet_task_detach(job, done, data, size);
}


static ngx_int_t
ngx_http_xet_task_detach(ngx_http_xet_job_pt job, ngx_http_xet_lone_pt done,
    const void *data, size_t size)
{
    u_char                    *p;
    ngx_pool_t                *pool;
    ngx_thread_task_t         *task;
    ngx_http_xet_task_ctx_t   *tctx;
    ngx_http_xet_detached_t   *detached;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    pool = ngx_create_pool(512, ngx_cycle->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    task = ngx_thread_task_alloc(pool, sizeof(ngx_http_xet_task_ctx_t));
    detached = ngx_palloc(pool, sizeof(ngx_http_xet_detached_t));
    p = ngx_palloc(pool, size);

    if (task == NULL || detached == NULL || p == NULL) {
        ngx_destroy_pool(pool);
        return NGX_ERROR;
    }

    ngx_memcpy(p, data, size);

    tctx = task->ctx;
    tctx->job = job;
    tctx->data = p;
    tctx->nice = xmcf->nice;

    task->handler = ngx_http_xet_task_job;
    task->event.handler = ngx_http_xet_task_detached_handler;
    task->event.data = detached;
    task->event.log = ngx_cycle->log;

    detached->pool = pool;
    detached->done = done;
    detached->data = p;

    if (ngx_http_xet_task_give(NGX_HTTP_XET_POOL_UPLOAD, task,
                               &detached->mark)
        != NGX_OK)
    {
        ngx_destroy_pool(pool);
        return NGX_ERROR;
    }

    if (done) {
        ngx_add_timer(&task->event, NGX_HTTP_XET_TASK_TIMER);
    }

    return NGX_OK;
}


static void
ngx_http_xet_task_detached_handler(ngx_event_t *ev)
{
    ngx_http_xet_detached_t *detached = ev->data;

    if (ev->timedout) {
        ev->timedout = 0;
        ngx_add_timer(ev, NGX_HTTP_XET_TASK_TIMER);
        return;
    }

    if (ev->timer_set) {
        ngx_del_timer(ev);
    }

    ngx_http_xet_task_taken(&detached->mark);

    if (detached->done) {
        detached->done(detached->data);
    }

    ngx_destroy_pool(detached->pool);
}


ngx_int_t
ngx_http_xet_task_lone(ngx_http_xet_lone_t *t, ngx_http_xet_job_pt job,
    ngx_http_xet_lone_pt done, void *data)
{
    ngx_thread_task_t         *task;
    ngx_http_xet_task_ctx_t   *tctx;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    task = t->task;

    if (task == NULL) {
        task = ngx_thread_task_alloc(ngx_cycle->pool,
                                     sizeof(ngx_http_xet_task_ctx_t));
        if (task == NULL) {
            return NGX_ERROR;
        }

        task->handler = ngx_http_xet_task_job;
        task->event.handler = ngx_http_xet_task_lone_handler;
        task->event.data = t;
        task->event.log = ngx_cycle->log;

        t->task = task;
    }

    tctx = task->ctx;
    tctx->job = job;
    tctx->data = data;
    tctx->nice = xmcf->nice;

    t->done = done;
    t->data = data;

    task->event.complete = 0;

    if (ngx_http_xet_task_give(NGX_HTTP_XET_POOL_READ, task, &t->mark)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_add_timer(&task->event, NGX_HTTP_XET_TASK_TIMER);

    return NGX_OK;
}


static void
ngx_http_xet_task_lone_handler(ngx_event_t *ev)
{
    ngx_http_xet_lone_t *t = ev->data;

    if (ngx_http_xet_task_runs(ev, ev->log)) {
        return;
    }

    ngx_http_xet_task_taken(&t->mark);

    t->done(t->data);
}
