
/*
 * Monitoring: metrics, and the status page.
 */

#ifndef _NGX_HTTP_XET_MONITOR_H_INCLUDED_
#define _NGX_HTTP_XET_MONITOR_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"


/* The size of a repo or, during a walk, of the part counted so far. */

#define NGX_HTTP_XET_REPO_NAME  255            /* longer names are truncated */

typedef struct {
    uint64_t  id;
    uint64_t  files;
    uint64_t  bytes;
    uint64_t  last_file;
    size_t    len;
    u_char    name[NGX_HTTP_XET_REPO_NAME];
} ngx_http_xet_repo_size_t;


/* Determines when to send the next query, and which result is expected. */

typedef struct {
    uint64_t   asked;                          /* time of the last query, ms */
    uintptr_t  ticket;                         /* number of the last query */
    uint64_t   waiting;                        /* a result is expected */
} ngx_http_xet_due_t;


/* The background jobs, as PostgreSQL has last reported them. */

#define NGX_HTTP_XET_JOBS      8
#define NGX_HTTP_XET_JOB_NAME  16
#define NGX_HTTP_XET_JOB_NOTE  200             /* longer notes are truncated */

typedef struct {
    size_t    len;
    u_char    name[NGX_HTTP_XET_JOB_NAME];
    size_t    note_len;
    u_char    note[NGX_HTTP_XET_JOB_NOTE];
    uint64_t  running;                         /* a run is in progress */
    uint64_t  held;                            /* a worker has the lease */
    uint64_t  started;                         /* ms since 1970, or 0 */
    uint64_t  ended;                           /* the same */
    int64_t   done;                            /* thousandths; -1: unknown */
} ngx_http_xet_job_state_t;

typedef struct {
    ngx_http_xet_due_t        due;
    ngx_uint_t                n;
    ngx_http_xet_job_state_t  job[NGX_HTTP_XET_JOBS];
} ngx_http_xet_jobs_t;


/* The content handler of "xet_metrics" and "xet_status". */
ngx_int_t ngx_http_xet_monitor_handler(ngx_http_request_t *r);

/* Sets the gauges for the pools and jobs of this worker. */
void ngx_http_xet_monitor_levels(void);


/*
 * Sends queries for metrics to PostgreSQL and the store, unless the last ones
 * were sent less than an interval ago.  If repos is set, also sends a query for
 * the largest repos.  Does not wait: the results are shown in later responses.
 */
void ngx_http_xet_monitor_ask(ngx_uint_t repos);

/*
 * Copies up to n of the largest repos from the last complete walk to repos.
 * Returns the number of copied repos.
 */
ngx_uint_t ngx_http_xet_monitor_top(ngx_http_xet_repo_size_t *repos,
    ngx_uint_t n);

/* Writes the metrics of all workers in the text format of Prometheus. */
void ngx_http_xet_exposition(xet_buf_t *b, const uint64_t *cells);

/*
 * Writes the metrics as members of an open JSON object.  A metric with a label
 * is an object with a member per value; a histogram is an object with its
 * bounds, "count" and "sum".
 */
void ngx_http_xet_exposition_json(xet_json_t *j, const uint64_t *cells);


/*
 * Returns a ticket for the next query, or 0 if the interval has not passed, or
 * if statements are already waiting for PostgreSQL.
 */
uintptr_t ngx_http_xet_monitor_due(ngx_http_xet_due_t *due);

/* Returns whether a result has the expected ticket. */
ngx_uint_t ngx_http_xet_monitor_taken(ngx_http_xet_due_t *due, void *ticket);

/*
 * Returns the jobs in the shared memory, and sets *mutex to the mutex that
 * protects them.  Returns NULL if metrics are not shared.
 */
ngx_http_xet_jobs_t *ngx_http_xet_monitor_jobs(ngx_shmtx_t **mutex);


/* ngx_http_xet_jobs.c: sends the query for the state of jobs, if it is due. */
void ngx_http_xet_jobs_ask(void);

/*
 * Copies the jobs to jobs, which has room for NGX_HTTP_XET_JOBS.  Returns their
 * number.
 */
ngx_uint_t ngx_http_xet_jobs_read(ngx_http_xet_job_state_t *jobs);

/* Writes the jobs as a member of an open JSON object. */
void ngx_http_xet_jobs_json(xet_json_t *j,
    const ngx_http_xet_job_state_t *jobs, ngx_uint_t n);


/*
 * ngx_http_xet_history.c: takes a sample of the metrics if one is due.  Called
 * once a second in each worker.
 */
void ngx_http_xet_history_tick(void);

/*
 * Sets *all to the number of requests in the last hour, and *failed to those of
 * them with a status of 500 or above.
 */
void ngx_http_xet_history_hour(const uint64_t *cells, uint64_t *all,
    uint64_t *failed);

/* Writes the history as a member of an open JSON object. */
ngx_int_t ngx_http_xet_history_json(ngx_http_request_t *r, xet_json_t *j,
    const uint64_t *cells);


/*
 * ngx_http_xet_status.c: sends the page of "xet_status", or a text to a client
 * that does not accept HTML.
 */
ngx_int_t ngx_http_xet_status_page(ngx_http_request_t *r,
    const uint64_t *cells);

/* Writes the data of the page as members of an open JSON object. */
ngx_int_t ngx_http_xet_status_json(ngx_http_request_t *r, xet_json_t *j,
    const uint64_t *cells);


#endif /* _NGX_HTTP_XET_MONITOR_H_INCLUDED_ */
