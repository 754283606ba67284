
/*
 * Inside of the service lanes: one lane.
 */

#ifndef _NGX_HTTP_XET_LANE_H_INCLUDED_
#define _NGX_HTTP_XET_LANE_H_INCLUDED_


#include "ngx_http_xet_pg.h"


typedef struct {
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

    unsigned            refused:1;     /* PostgreSQL refused the last session */
    ngx_msec_t          asked;         /* when it was refused */
} ngx_http_xet_lane_t;


typedef struct {
    ngx_uint_t  sessions;
    ngx_uint_t  ready;
    ngx_uint_t  inflight;
    ngx_uint_t  waiting;
    ngx_msec_t  oldest;            /* age of the oldest statement */
} ngx_http_xet_lane_stat_t;


#endif /* _NGX_HTTP_XET_LANE_H_INCLUDED_ */
