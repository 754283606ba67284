
/*
 * Probes whether the store belongs to this database and is writable.  A thread
 * creates, writes and removes a file, as an upload does.
 *
 * A worker runs one probe at a time, and the result is valid for a second.  So
 * any number of requests costs one file per second and at most one thread,
 * even if the disk hangs.
 *
 *     idle -> running (a request came, the last result is old) -> idle
 *          -> late (waiting requests got XET_STORE_SLOW) -> idle
 *
 * The structure belongs to the event loop; the context of the task belongs to
 * the thread while the job runs.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_store.h"

#include <sys/statvfs.h>


#define NGX_HTTP_XET_PROBE_VALID    1000       /* ms */
#define NGX_HTTP_XET_PROBE_TIMEOUT  5000       /* ms */
#define NGX_HTTP_XET_PROBE_SIZE     4096       /* bytes */

/* bytes, about one full xorb: with less free space uploads will fail soon */
#define NGX_HTTP_XET_PROBE_FREE     (64 * 1024 * 1024)


typedef struct {
    ngx_http_xet_temp_t      file;
    xet_status_t             status;
    uint64_t                 free;             /* bytes */
    uint64_t                 size;             /* bytes; 0: unknown */
} ngx_http_xet_probe_job_t;


typedef struct {
    ngx_queue_t              queue;
    ngx_http_request_t      *request;
    ngx_http_xet_probe_pt    handler;
} ngx_http_xet_probe_wait_t;


typedef enum {
    NGX_HTTP_XET_PROBE_IDLE = 0,
    NGX_HTTP_XET_PROBE_RUNNING,
    NGX_HTTP_XET_PROBE_LATE
} ngx_http_xet_probe_e;


typedef struct {
    ngx_thread_task_t       *task;
    ngx_event_t              timer;
    ngx_connection_t         dummy;
    ngx_queue_t              waiting;          /* ngx_http_xet_probe_wait_t */
    ngx_msec_t               time;             /* time when status was set */
    uint64_t                 free;             /* bytes, then */
    xet_status_t             status;           /* XET_AGAIN: no result yet */

    ngx_http_xet_probe_e     state;
} ngx_http_xet_probe_t;


static ngx_int_t ngx_http_xet_probe_init(ngx_http_xet_probe_t *probe);
static ngx_int_t ngx_http_xet_probe_start(ngx_http_xet_probe_t *probe);
static void ngx_http_xet_probe_cleanup(void *data);
static void ngx_http_xet_probe_job(void *data, ngx_log_t *log);
static xet_status_t ngx_http_xet_probe_other_job(
    const ngx_http_xet_probe_job_t *job);
static xet_status_t ngx_http_xet_probe_free_job(ngx_http_xet_probe_job_t *job,
    ngx_log_t *log);
static void ngx_http_xet_probe_done(ngx_event_t *ev);
static void ngx_http_xet_probe_timeout(ngx_event_t *ev);
static void ngx_http_xet_probe_tell(ngx_http_xet_probe_t *probe,
    xet_status_t status);


static ngx_http_xet_probe_t  ngx_http_xet_probe_worker;


xet_status_t
ngx_http_xet_probe(ngx_http_request_t *r, ngx_http_xet_probe_pt handler)
{
    ngx_http_xet_probe_t       *probe;
    ngx_http_xet_probe_wait_t  *w;

    probe = &ngx_http_xet_probe_worker;

    if (probe->task == NULL && ngx_http_xet_probe_init(probe) != NGX_OK) {
        return XET_NOMEM;
    }

    if (probe->state == NGX_HTTP_XET_PROBE_LATE) {
        return XET_STORE_SLOW;
    }

    if (probe->status != XET_AGAIN
        && ngx_current_msec - probe->time < NGX_HTTP_XET_PROBE_VALID)
    {
        return probe->status;
    }

    w = ngx_http_xet_state(r, sizeof(ngx_http_xet_probe_wait_t),
                           ngx_http_xet_probe_cleanup);
    if (w == NULL) {
        return XET_NOMEM;
    }

    w->request = r;
    w->handler = handler;
    ngx_queue_init(&w->queue);

    if (probe->state == NGX_HTTP_XET_PROBE_IDLE
        && ngx_http_xet_probe_start(probe) != NGX_OK)
    {
        return XET_OVERLOADED;
    }

    ngx_queue_insert_tail(&probe->waiting, &w->queue);

    return XET_AGAIN;
}


uint64_t
ngx_http_xet_probe_left(void)
{
    return ngx_http_xet_probe_worker.free;
}


void
ngx_http_xet_probe_look(ngx_msec_t older)
{
    ngx_http_xet_probe_t  *probe;

    probe = &ngx_http_xet_probe_worker;

    if (probe->task == NULL && ngx_http_xet_probe_init(probe) != NGX_OK) {
        return;
    }

    if (probe->state != NGX_HTTP_XET_PROBE_IDLE
        || (probe->status != XET_AGAIN
            && ngx_current_msec - probe->time < older))
    {
        return;
    }

    (void) ngx_http_xet_probe_start(probe);
}


/*
 * Creates the task.  It has its own memory pool, because a job may outlive the
 * cycle.
 */

static ngx_int_t
ngx_http_xet_probe_init(ngx_http_xet_probe_t *probe)
{
    ngx_pool_t         *pool;
    ngx_thread_task_t  *task;

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    task = ngx_thread_task_alloc(pool, sizeof(ngx_http_xet_probe_job_t));
    if (task == NULL) {
        ngx_destroy_pool(pool);
        return NGX_ERROR;
    }

    task->handler = ngx_http_xet_probe_job;
    task->event.handler = ngx_http_xet_probe_done;
    task->event.data = probe;

    ngx_queue_init(&probe->waiting);

    /* the debug log of a timer prints the descriptor of its connection */

    probe->dummy.fd = (ngx_socket_t) -1;

    probe->timer.handler = ngx_http_xet_probe_timeout;
    probe->timer.data = &probe->dummy;

    probe->status = XET_AGAIN;
    probe->task = task;

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_probe_start(ngx_http_xet_probe_t *probe)
{
    ngx_http_xet_main_conf_t  *xmcf;
    ngx_http_xet_probe_job_t  *job;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    job = probe->task->ctx;

    ngx_memzero(&job->file, sizeof(ngx_http_xet_temp_t));

    job->file.store = xmcf->store;
    job->free = 0;
    job->size = 0;

    probe->task->event.complete = 0;
    probe->task->event.log = ngx_cycle->log;
    probe->timer.log = ngx_cycle->log;

    if (ngx_thread_task_post(xmcf->pool, probe->task) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet probe: running");

    probe->state = NGX_HTTP_XET_PROBE_RUNNING;

    ngx_add_timer(&probe->timer, NGX_HTTP_XET_PROBE_TIMEOUT);

    return NGX_OK;
}


/* Called when a request ends: removes it from the queue of waiting requests. */

static void
ngx_http_xet_probe_cleanup(void *data)
{
    ngx_http_xet_probe_wait_t *w = data;

    ngx_queue_remove(&w->queue);
}


static void
ngx_http_xet_probe_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_probe_job_t *job = data;

    u_char  zeros[NGX_HTTP_XET_PROBE_SIZE];

    job->status = ngx_http_xet_store_identity_look_job(job->file.store, log);

    if (job->status == XET_OK) {
        ngx_memzero(zeros, sizeof(zeros));

        job->status = ngx_http_xet_store_write_job(&job->file, zeros,
                                                   sizeof(zeros), log);
    }

    if (job->status == XET_OK) {
        job->status = ngx_http_xet_probe_free_job(job, log);
    }

    if (job->status == XET_STORE_OTHER) {
        job->status = ngx_http_xet_probe_other_job(job);
    }

    ngx_http_xet_store_reset_job(&job->file, log);
}


/* Returns why the folder is not the store. */

static xet_status_t
ngx_http_xet_probe_other_job(const ngx_http_xet_probe_job_t *job)
{
    char             path[NGX_MAX_PATH];
    ngx_file_info_t  fi;

    if (job->file.store->s3) {
        return XET_STORE_OTHER;
    }

    if (ngx_file_info(job->file.store->name.data, &fi) == NGX_FILE_ERROR
        && ngx_errno == NGX_ENOENT)
    {
        return XET_STORE_GONE;
    }

    (void) ngx_snprintf((u_char *) path, NGX_MAX_PATH, "%V/identity%Z",
                        &job->file.store->name);

    if (ngx_file_info(path, &fi) == NGX_FILE_ERROR && ngx_errno == NGX_ENOENT)
    {
        return XET_STORE_BARE;
    }

    return XET_STORE_OTHER;
}


static xet_status_t
ngx_http_xet_probe_free_job(ngx_http_xet_probe_job_t *job, ngx_log_t *log)
{
    struct statvfs  st;

    if (fstatvfs(job->file.writer->fd, &st) == -1) {
        ngx_log_error(NGX_LOG_CRIT, log, ngx_errno,
                      "xet: fstatvfs \"%V\" failed", &job->file.store->temp);

        return XET_STORE_FAILED;
    }

    job->free = (uint64_t) st.f_bavail * st.f_frsize;
    job->size = (uint64_t) st.f_blocks * st.f_frsize;

    if (job->free < NGX_HTTP_XET_PROBE_FREE) {
        return XET_STORE_FULL;
    }

    return XET_OK;
}


static void
ngx_http_xet_probe_done(ngx_event_t *ev)
{
    ngx_http_xet_probe_t *probe = ev->data;

    ngx_http_xet_probe_job_t  *job;

    job = probe->task->ctx;

    if (probe->timer.timer_set) {
        ngx_del_timer(&probe->timer);
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet probe: idle, status:%d", (int) job->status);

    probe->state = NGX_HTTP_XET_PROBE_IDLE;
    probe->status = job->status;
    probe->free = job->free;
    probe->time = ngx_current_msec;

    ngx_http_xet_gauge_now(STORE_TIME);
    ngx_http_xet_gauge(STORE_WRITABLE, job->status == XET_OK);

    if (job->size) {
        ngx_http_xet_gauge(STORE_FREE, job->free);
        ngx_http_xet_gauge(STORE_SIZE, job->size);
    }

    ngx_http_xet_probe_tell(probe, job->status);
}


static void
ngx_http_xet_probe_timeout(ngx_event_t *ev)
{
    ngx_http_xet_probe_t *probe = &ngx_http_xet_probe_worker;

    ngx_log_error(NGX_LOG_CRIT, ev->log, 0,
                  "xet: the store has not responded for %d seconds",
                  NGX_HTTP_XET_PROBE_TIMEOUT / 1000);

    probe->state = NGX_HTTP_XET_PROBE_LATE;

    ngx_http_xet_gauge(STORE_WRITABLE, 0);

    ngx_http_xet_probe_tell(probe, XET_STORE_SLOW);
}


static void
ngx_http_xet_probe_tell(ngx_http_xet_probe_t *probe, xet_status_t status)
{
    ngx_queue_t                *q;
    ngx_connection_t           *c;
    ngx_http_xet_probe_wait_t  *w;

    while (!ngx_queue_empty(&probe->waiting)) {
        q = ngx_queue_head(&probe->waiting);
        w = ngx_queue_data(q, ngx_http_xet_probe_wait_t, queue);

        /* the cleanup handler of the request removes w from its queue again */

        ngx_queue_remove(q);
        ngx_queue_init(q);

        c = w->request->connection;

        ngx_http_set_log_request(c->log, w->request);

        w->handler(w->request, status);

        ngx_http_run_posted_requests(c);
    }
}
