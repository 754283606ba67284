
/*
 * Jobs of a request in the thread pools.
 */

#ifndef _NGX_HTTP_XET_TASK_H_INCLUDED_
#define _NGX_HTTP_XET_TASK_H_INCLUDED_


#include "ngx_http_xet.h"


/* In a thread: no request, no pool of a request, no request's log. */
typedef void (*ngx_http_xet_job_pt)(void *data, ngx_log_t *log);

/* Back in the event loop; never called when the request died meanwhile. */
typedef void (*ngx_http_xet_done_pt)(ngx_http_request_t *r, void *data);


/* One a request, used again for each of its jobs. */

struct ngx_http_xet_task_s {
    ngx_http_request_t         *request;
    ngx_thread_task_t          *task;
    ngx_http_xet_job_pt         job;
    ngx_http_xet_done_pt        done;
    void                       *data;

    /*
     * Takes the write events of the client's socket while a job runs and
     * after it, so that an answer goes on meanwhile; NULL: nobody does.
     */
    ngx_http_event_handler_pt   write;

    unsigned                    upload:1;  /* in the pool of uploads */
    unsigned                    busy:1;    /* in a pool */
    unsigned                    ready:1;   /* done, its handler not called */
    unsigned                    beside:1;  /* the handlers are not ours */
    unsigned                    dead:1;    /* the request is */
};


/*
 * Posts a job; data must live until the request's pool dies.  NGX_OK, or
 * NGX_ERROR when the queue of the pool is full or memory is short; then
 * neither job nor done is called.
 */
ngx_int_t ngx_http_xet_task_post(ngx_http_request_t *r,
    ngx_http_xet_job_pt job, ngx_http_xet_done_pt done, void *data);

ngx_uint_t ngx_http_xet_task_busy(ngx_http_request_t *r);

/*
 * The same beside the content handler of another module, whose event handlers
 * stay what they are.  t is the caller's, of zeros at first, and lives as long
 * as data.  done is called straight from the event loop, not when the request
 * was finalized meanwhile; it has to see for itself whether an answer is on
 * its way.
 */
ngx_int_t ngx_http_xet_task_post_beside(ngx_http_request_t *r,
    ngx_http_xet_task_t *t, ngx_http_xet_job_pt job,
    ngx_http_xet_done_pt done, void *data);

/*
 * A job that belongs to no request (closing or removing files): runs job
 * with a copy of size bytes of data, in the pool when it can, at once when
 * it can't.
 */
void ngx_http_xet_task_detached(ngx_http_xet_job_pt job, const void *data,
    size_t size);


#endif /* _NGX_HTTP_XET_TASK_H_INCLUDED_ */
