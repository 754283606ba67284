
/*
 * Inside of the service lanes: one lane.
 */

#ifndef _NGX_HTTP_XET_LANE_H_INCLUDED_
#define _NGX_HTTP_XET_LANE_H_INCLUDED_


#include "ngx_http_xet_lanes.h"


typedef struct ngx_http_xet_lane_s  ngx_http_xet_lane_t;


struct ngx_http_xet_lane_s {
    ngx_uint_t          n;             /* sessions at most */
    ngx_uint_t          depth;         /* statements in flight on one */
    ngx_uint_t          queue;         /* statements waiting at most */
    ngx_msec_t          timeout;       /* of a statement, waiting included */
    ngx_msec_t          running;       /* PostgreSQL ends it after that */
    ngx_msec_t          locks;         /* or after so long at a lock; or 0 */

    ngx_http_xet_pg_t  *sessions;

    ngx_queue_t         waiting;
    ngx_uint_t          nwaiting;

    /* PostgreSQL has refused a session, and the lane has no other */
    void              (*starved)(ngx_http_xet_lane_t *lane);

    /* PostgreSQL has accepted a session after it had refused one */
    void              (*reached)(ngx_http_xet_lane_t *lane);

    unsigned            refused:1;     /* the session asked for last was */
    ngx_msec_t          asked;         /* the time of that */
};


/* n, depth, queue, the times and the two calls are set, the rest is zero. */
ngx_int_t ngx_http_xet_lane_init(ngx_http_xet_lane_t *lane, ngx_pool_t *pool);
void ngx_http_xet_lane_close(ngx_http_xet_lane_t *lane);

/*
 * Starts another session where one is missing.  NGX_OK when there is hope:
 * some session is there or on its way.
 */
ngx_int_t ngx_http_xet_lane_grow(ngx_http_xet_lane_t *lane);

/*
 * Where the lane has no session, one that waits to connect again does it now.
 * NGX_OK when there is hope, as above.
 */
ngx_int_t ngx_http_xet_lane_hurry(ngx_http_xet_lane_t *lane);

/*
 * Closes a session that has nothing to do, if the lane has more than keep of
 * them ready.  Returns whether it did.
 */
ngx_uint_t ngx_http_xet_lane_spare(ngx_http_xet_lane_t *lane, ngx_uint_t keep);

/*
 * NGX_OK when a session is ready that has nothing to do, NGX_BUSY when all
 * that are ready are busy, NGX_DECLINED when none is ready.
 */
ngx_int_t ngx_http_xet_lane_idle(ngx_http_xet_lane_t *lane);

/* As ngx_http_xet_lanes_send(), _detach() and _stat(). */
ngx_http_xet_pg_query_t *ngx_http_xet_lane_send(ngx_http_xet_lane_t *lane,
    const ngx_http_xet_pg_stmt_t *stmt, const char *const *values,
    const int *lengths, ngx_http_xet_pg_handler_pt handler, void *data);
void ngx_http_xet_lane_detach(ngx_http_xet_pg_query_t *q);
void ngx_http_xet_lane_stat(ngx_http_xet_lane_t *lane,
    ngx_http_xet_lane_stat_t *stat);


#endif /* _NGX_HTTP_XET_LANE_H_INCLUDED_ */
