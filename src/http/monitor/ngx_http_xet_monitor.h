
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
 * ngx_http_xet_status.c: the first function sends the page of "xet_status".
 * The second one writes the data for the page's script as members of an open
 * JSON object.
 */
ngx_int_t ngx_http_xet_status_page(ngx_http_request_t *r,
    const uint64_t *cells);
ngx_int_t ngx_http_xet_status_json(ngx_http_request_t *r, xet_json_t *j,
    const uint64_t *cells);


#endif /* _NGX_HTTP_XET_MONITOR_H_INCLUDED_ */
