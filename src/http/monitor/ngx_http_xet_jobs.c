
/*
 * The state of background jobs for the status page.
 *
 * Like the other figures from PostgreSQL, it is requested at most every 10
 * seconds, by one worker for all workers, and kept in shared memory.  Progress
 * is that of all nodes, since a job runs on one of them.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_monitor.h"
#include "ngx_http_xet_query.h"


static void ngx_http_xet_jobs_answer(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);
static void ngx_http_xet_jobs_take(ngx_http_xet_jobs_t *jobs,
    ngx_http_xet_ask_t *ask);
static size_t ngx_http_xet_jobs_copy(u_char *to, size_t size,
    const ngx_str_t *from);


void
ngx_http_xet_jobs_ask(void)
{
    uintptr_t                           ticket;
    ngx_shmtx_t                        *mutex;
    ngx_http_xet_jobs_t                *jobs;
    ngx_http_xet_main_conf_t           *xmcf;
    ngx_http_xet_jobs_progress_args_t   args;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);
    jobs = ngx_http_xet_monitor_jobs(&mutex);

    if (xmcf->pg_pools == NULL || jobs == NULL) {
        return;
    }

    ngx_shmtx_lock(mutex);
    ticket = ngx_http_xet_monitor_due(&jobs->due);
    ngx_shmtx_unlock(mutex);

    ngx_memzero(&args, sizeof(ngx_http_xet_jobs_progress_args_t));

    if (ticket
        && ngx_http_xet_ask_jobs_progress(&args, ngx_http_xet_jobs_answer,
                                          (void *) ticket)
           != NGX_AGAIN)
    {
        ngx_http_xet_jobs_answer((void *) ticket, NULL, NGX_BUSY);
    }
}


static void
ngx_http_xet_jobs_answer(void *data, ngx_http_xet_ask_t *ask, ngx_int_t rc)
{
    ngx_shmtx_t          *mutex;
    ngx_http_xet_jobs_t  *jobs;

    jobs = ngx_http_xet_monitor_jobs(&mutex);

    if (jobs == NULL) {
        return;
    }

    ngx_shmtx_lock(mutex);

    if (ngx_http_xet_monitor_taken(&jobs->due, data)) {

        if (rc == NGX_OK) {
            ngx_http_xet_jobs_take(jobs, ask);

        } else if (rc == NGX_DECLINED) {
            jobs->n = 0;
        }
    }

    ngx_shmtx_unlock(mutex);
}


static void
ngx_http_xet_jobs_take(ngx_http_xet_jobs_t *jobs, ngx_http_xet_ask_t *ask)
{
    ngx_uint_t                        i;
    ngx_http_xet_job_state_t         *job;
    ngx_http_xet_jobs_progress_row_t  row;

    jobs->n = ngx_min((ngx_uint_t) ngx_http_xet_ask_rows(ask),
                      NGX_HTTP_XET_JOBS);

    for (i = 0; i < jobs->n; i++) {
        job = &jobs->job[i];

        (void) ngx_http_xet_row_jobs_progress(ask->res, i, &row);

        job->len = ngx_http_xet_jobs_copy(job->name, NGX_HTTP_XET_JOB_NAME,
                                          &row.name);
        job->note_len = ngx_http_xet_jobs_copy(job->note,
                                               NGX_HTTP_XET_JOB_NOTE,
                                               &row.note);
        job->running = row.running;
        job->held = row.held;
        job->started = row.started;
        job->ended = row.ended;
        job->done = row.done;
    }
}


static size_t
ngx_http_xet_jobs_copy(u_char *to, size_t size, const ngx_str_t *from)
{
    size = ngx_min(size, from->len);
    ngx_memcpy(to, from->data, size);

    return size;
}


ngx_uint_t
ngx_http_xet_jobs_read(ngx_http_xet_job_state_t *out)
{
    ngx_uint_t            n;
    ngx_shmtx_t          *mutex;
    ngx_http_xet_jobs_t  *jobs;

    jobs = ngx_http_xet_monitor_jobs(&mutex);

    if (jobs == NULL) {
        return 0;
    }

    ngx_shmtx_lock(mutex);

    n = jobs->n;
    ngx_memcpy(out, jobs->job, n * sizeof(ngx_http_xet_job_state_t));

    ngx_shmtx_unlock(mutex);

    return n;
}


void
ngx_http_xet_jobs_json(xet_json_t *j, const ngx_http_xet_job_state_t *jobs,
    ngx_uint_t n)
{
    ngx_uint_t                       i;
    const ngx_http_xet_job_state_t  *job;

    xet_json_key(j, "jobs");
    xet_json_array_begin(j);

    for (i = 0; i < n; i++) {
        job = &jobs[i];

        xet_json_object_begin(j);
        xet_json_put_string(j, "name", job->name, job->len);
        xet_json_put_bool(j, "running", job->running != 0);
        xet_json_put_bool(j, "held", job->held != 0);

        if (job->done >= 0) {
            xet_json_put_i64(j, "done", job->done);
        }

        if (job->started) {
            xet_json_put_u64(j, "started", job->started);
        }

        if (job->ended) {
            xet_json_put_u64(j, "ended", job->ended);
        }

        if (job->note_len) {
            xet_json_put_string(j, "note", job->note, job->note_len);
        }

        xet_json_object_end(j);
    }

    xet_json_array_end(j);
}
