
/*
 * Jobs of a request in the thread pools.
 */

#ifndef _NGX_HTTP_XET_TASK_H_INCLUDED_
#define _NGX_HTTP_XET_TASK_H_INCLUDED_


#include "ngx_http_xet.h"


/* Runs in a thread: must not touch a request, its pool or its log. */
typedef void (*ngx_http_xet_job_pt)(void *data, ngx_log_t *log);

/* Called in the event loop after the job, unless the request has died. */
typedef void (*ngx_http_xet_done_pt)(ngx_http_request_t *r, void *data);


/* One a request, which all jobs of the request use, one after the other. */

struct ngx_http_xet_task_s {
    ngx_http_request_t         *request;
    ngx_thread_task_t          *task;

    ngx_http_xet_done_pt        done;
    void                       *data;

    /*
     * Takes the write events of the client's socket while a job runs and
     * after it, so that an answer goes on meanwhile; NULL: they are ignored.
     */
    ngx_http_event_handler_pt   write;

    unsigned                    upload:1;  /* in the pool of uploads */
    unsigned                    busy:1;    /* in a pool */
    unsigned                    ready:1;   /* finished, done not called yet */
    unsigned                    beside:1;  /* another module's handlers */
    unsigned                    dead:1;    /* the request has died */
};


/*
 * Posts a job; data must live until the request's pool is destroyed.  NGX_OK,
 * or NGX_ERROR when the queue of the pool is full, memory is short or the
 * request has a job already; then neither job nor done is called.
 */
ngx_int_t ngx_http_xet_task_post(ngx_http_request_t *r,
    ngx_http_xet_job_pt job, ngx_http_xet_done_pt done, void *data);

/* Whether a job of the request is posted, and its done was not called yet. */
ngx_uint_t ngx_http_xet_task_busy(ngx_http_request_t *r);

/*
 * As ngx_http_xet_task_post(), beside the content handler of another module,
 * whose event handlers stay set.  The caller provides t, zeroed before its
 * first job; t must live as long as data.  done is called straight from the
 * event loop, but not when the request was finalized meanwhile; done has to
 * check whether an answer is on its way.
 */
ngx_int_t ngx_http_xet_task_post_beside(ngx_http_request_t *r,
    ngx_http_xet_task_t *t, ngx_http_xet_job_pt job,
    ngx_http_xet_done_pt done, void *data);

/*
 * Runs a job that belongs to no request (closing or removing files) in the pool
 * of uploads, with a copy of size bytes of data; where the job can't be posted
 * it runs at once, in the event loop and with data itself.
 */
void ngx_http_xet_task_detached(ngx_http_xet_job_pt job, const void *data,
    size_t size);


#endif /* _NGX_HTTP_XET_TASK_H_INCLUDED_ */
