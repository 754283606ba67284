
/*
 * Monitoring: metrics, and the status page.
 */

#ifndef _NGX_HTTP_XET_MONITOR_H_INCLUDED_
#define _NGX_HTTP_XET_MONITOR_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"


/* A repo, or the part of its files that was counted in one part of a walk. */

#define NGX_HTTP_XET_REPO_NAME  255            /* longer ones are cut */

typedef struct {
    uint64_t  id;
    uint64_t  files;
    uint64_t  bytes;
    uint64_t  last_file;
    size_t    len;
    u_char    name[NGX_HTTP_XET_REPO_NAME];
} ngx_http_xet_repo_size_t;


/* The content handler of "xet_metrics" and "xet_status". */
ngx_int_t ngx_http_xet_monitor_handler(ngx_http_request_t *r);

/* Sets the gauges of this worker: its pools and its jobs. */
void ngx_http_xet_monitor_levels(void);


/*
 * Queries PostgreSQL and the store for metrics, if the interval has passed;
 * also for the largest repos.  Does not wait: the results are for the next
 * responses.
 */
void ngx_http_xet_monitor_ask(ngx_uint_t repos);

/*
 * Returns up to n of the largest repos, by the last results, and their number.
 */
ngx_uint_t ngx_http_xet_monitor_top(ngx_http_xet_repo_size_t *repos,
    ngx_uint_t n);

/* Writes the metrics of all workers in the text format of Prometheus. */
void ngx_http_xet_exposition(xet_buf_t *b, const uint64_t *cells);

/*
 * Writes them as members of an open JSON object.  A label is an object of its
 * values; a histogram is an object of its bounds, "count" and "sum".
 */
void ngx_http_xet_exposition_json(xet_json_t *j, const uint64_t *cells);


/*
 * ngx_http_xet_status.c: the page of "xet_status", and the data for its
 * script, as members of an open JSON object.
 */
ngx_int_t ngx_http_xet_status_page(ngx_http_request_t *r,
    const uint64_t *cells);
ngx_int_t ngx_http_xet_status_json(ngx_http_request_t *r, xet_json_t *j,
    const uint64_t *cells);


#endif /* _NGX_HTTP_XET_MONITOR_H_INCLUDED_ */
