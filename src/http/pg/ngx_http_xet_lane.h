
/*
 * Inside of the service lanes: one lane.
 */

#ifndef _NGX_HTTP_XET_LANE_H_INCLUDED_
#define _NGX_HTTP_XET_LANE_H_INCLUDED_


#include "ngx_http_xet_pg.h"


typedef struct ngx_http_xet_lane_s  ngx_http_xet_lane_t;


struct ngx_http_xet_lane_s {
    ngx_uint_t          n;             /* sessions at most */
    ngx_uint_t          depth;         /* statements in flight on one */
    ngx_uint_t          queue;         /* statements waiting at most */
    ngx_msec_t          timeout;       /* of a statement, waiting included */
    ngx_msec_t          running;       /* statement_timeout in PostgreSQL */
    ngx_msec_t          locks;         /* lock_timeout in PostgreSQL; 0: none */

    const ngx_http_xet_pg_stmt_t  *stmts;      /* prepared by its sessions */

    ngx_http_xet_pg_t  *sessions;

    ngx_queue_t         waiting;
    ngx_uint_t          nwaiting;

    /* PostgreSQL has refused a session, and the lane has no other */
    void              (*starved)(ngx_http_xet_lane_t *lane);

    /* PostgreSQL has accepted a session after it had refused one */
    void              (*reached)(ngx_http_xet_lane_t *lane);

    unsigned            refused:1;     /* PostgreSQL refused the last session */
    ngx_msec_t          asked;         /* when it was refused */
};


typedef struct {
    ngx_uint_t  sessions;
    ngx_uint_t  ready;
    ngx_uint_t  inflight;
    ngx_uint_t  waiting;
    ngx_msec_t  oldest;            /* age of the oldest statement */
} ngx_http_xet_lane_stat_t;


/*
 * The caller has set n, depth, queue, the times, stmts and both callbacks; the
 * rest of the lane is zero.  close closes all sessions, without callbacks.
 */
ngx_int_t ngx_http_xet_lane_init(ngx_http_xet_lane_t *lane, ngx_pool_t *pool);
void ngx_http_xet_lane_close(ngx_http_xet_lane_t *lane);

/*
 * Starts the first closed session, unless one before it is connecting already.
 * NGX_OK when some session is ready or connecting then, NGX_ERROR when none is.
 */
ngx_int_t ngx_http_xet_lane_grow(ngx_http_xet_lane_t *lane);

/*
 * Where no session of the lane is ready or connecting, one that waits to
 * connect again does it now.  NGX_OK when some session is ready or connecting
 * then, NGX_DECLINED when none is.
 */
ngx_int_t ngx_http_xet_lane_hurry(ngx_http_xet_lane_t *lane);

/*
 * Closes a session that has nothing to do, if the lane has more than keep of
 * them ready.  Returns whether it did.
 */
ngx_uint_t ngx_http_xet_lane_spare(ngx_http_xet_lane_t *lane, ngx_uint_t keep);

/*
 * NGX_OK when a session is ready that has nothing to do, NGX_BUSY when every
 * session that is ready is busy, NGX_DECLINED when none is ready.
 */
ngx_int_t ngx_http_xet_lane_idle(ngx_http_xet_lane_t *lane);

/* As ngx_http_xet_lanes_send(), _detach() and _stat(). */
ngx_http_xet_pg_query_t *ngx_http_xet_lane_send(ngx_http_xet_lane_t *lane,
    const ngx_http_xet_pg_stmt_t *stmt, ngx_http_xet_params_t *p,
    ngx_http_xet_pg_handler_pt handler, void *data);
void ngx_http_xet_lane_detach(ngx_http_xet_pg_query_t *q);
void ngx_http_xet_lane_stat(ngx_http_xet_lane_t *lane,
    ngx_http_xet_lane_stat_t *stat);


#endif /* _NGX_HTTP_XET_LANE_H_INCLUDED_ */
