
/*
 * Monitoring: metrics, and the status page.
 */

#ifndef _NGX_HTTP_XET_MONITOR_H_INCLUDED_
#define _NGX_HTTP_XET_MONITOR_H_INCLUDED_


#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"


/* A repo, or the part of its files that a part of a walk has met. */

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

/* Sets the levels of this worker: its lanes and its jobs. */
void ngx_http_xet_monitor_levels(void);


/*
 * Asks PostgreSQL and the store for what is to be told of them, if it is time
 * for that; for the largest repos, too.  Nobody waits: the next answers tell.
 */
void ngx_http_xet_monitor_ask(ngx_uint_t repos);

/* Up to n of the largest repos, as last told; returns how many. */
ngx_uint_t ngx_http_xet_monitor_top(ngx_http_xet_repo_size_t *repos,
    ngx_uint_t n);

/* The figures of all workers in the text format of Prometheus. */
void ngx_http_xet_exposition(xet_buf_t *b, const uint64_t *cells);

/*
 * The same as members of a JSON object that is open.  A label is an object of
 * its values, a histogram is one of its bounds, "count" and "sum".
 */
void ngx_http_xet_exposition_json(xet_json_t *j, const uint64_t *cells);


/*
 * ngx_http_xet_status.c: the page of "xet_status", and what its script reads,
 * as members of an object that is open.
 */
ngx_int_t ngx_http_xet_status_page(ngx_http_request_t *r,
    const uint64_t *cells);
ngx_int_t ngx_http_xet_status_json(ngx_http_request_t *r, xet_json_t *j,
    const uint64_t *cells);


#endif /* _NGX_HTTP_XET_MONITOR_H_INCLUDED_ */
