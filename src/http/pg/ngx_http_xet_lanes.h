
/*
 * The lanes of PostgreSQL sessions of a worker.
 */

#ifndef _NGX_HTTP_XET_LANES_H_INCLUDED_
#define _NGX_HTTP_XET_LANES_H_INCLUDED_


#include "ngx_http_xet_lane.h"


/* In the order in which lanes get sessions where PostgreSQL has few. */

typedef enum {
    NGX_HTTP_XET_READ = 0,         /* short, pipelined */
    NGX_HTTP_XET_WRITE,            /* one statement at a time */
    NGX_HTTP_XET_DEDUP,            /* queries about chunks, pipelined */
    NGX_HTTP_XET_PING,             /* when all read sessions are busy */
    NGX_HTTP_XET_LANES
} ngx_http_xet_lane_e;


/*
 * Called in init_process of a worker.  Sessions connect by themselves, and
 * prepare the statements of the array, whose last element has no name.
 */
ngx_int_t ngx_http_xet_lanes_init(ngx_cycle_t *cycle,
    const ngx_http_xet_pg_stmt_t *stmts);
void ngx_http_xet_lanes_exit(ngx_cycle_t *cycle);

/*
 * Queues a statement.  What its parameters point to, also the numbers in p,
 * must live until the handler is called or the query is detached; p is NULL for
 * a statement without parameters.  Returns NULL when the queue is full,
 * PostgreSQL is known to be away or memory is short: the handler is not called.
 * A ping goes to the lane of reads unless all ready sessions there are busy.
 */
ngx_http_xet_pg_query_t *ngx_http_xet_lanes_send(ngx_http_xet_lane_e lane,
    const ngx_http_xet_pg_stmt_t *stmt, ngx_http_xet_params_t *p,
    ngx_http_xet_pg_handler_pt handler, void *data);

/* Drops a waiting statement, lets a sent one go on; no handler is called. */
void ngx_http_xet_lanes_detach(ngx_http_xet_pg_query_t *q);


void ngx_http_xet_lanes_stat(ngx_http_xet_lane_e lane,
    ngx_http_xet_lane_stat_t *stat);


#endif /* _NGX_HTTP_XET_LANES_H_INCLUDED_ */
