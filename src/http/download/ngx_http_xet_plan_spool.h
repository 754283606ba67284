
/*
 * Plans whose terms come from PostgreSQL by windows, and go into a temporary
 * file where they are too many for memory.
 */

#ifndef _NGX_HTTP_XET_PLAN_SPOOL_H_INCLUDED_
#define _NGX_HTTP_XET_PLAN_SPOOL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "xet.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_store.h"


/* Terms of a plan in memory, and of a window, at most. */

#define NGX_HTTP_XET_PLAN_TERMS   8192
#define NGX_HTTP_XET_PLAN_WINDOW                                              \
    (NGX_HTTP_XET_TERMS_ROWS * XET_TERM_SEGMENT_MAX)


/* Asks for the next window; returns as ngx_http_xet_plan_send() does. */
typedef ngx_int_t (*ngx_http_xet_plan_ask_pt)(ngx_http_request_t *r);


typedef struct {
    xet_plan_spool_t             spool;
    xet_plan_t                  *plan;
    ngx_pool_t                  *pool;             /* of plan->terms */
    ngx_http_xet_temp_t         *files[XET_PLAN_SPOOL_FILES];
    ngx_http_xet_plan_ask_pt     ask;
    u_char                      *room;             /* while sorting */
    size_t                       size;
    xet_status_t                 status;           /* of the job */
    ngx_log_t                   *log;              /* of the job */
} ngx_http_xet_plan_spool_t;


/* The spool of a plan whose terms are in a file: plan->spool is not NULL. */
#define ngx_http_xet_plan_spool_get(plan)                                     \
    ((ngx_http_xet_plan_spool_t *) (plan)->spool->ctx)


/*
 * Called after a window of terms that was added to the plan and is not the
 * last: makes room for the next one, asks for it, or answers the error: the
 * plan may have more terms than "xet_plan_terms".  The plan's memory is from
 * pool.  Returns as ngx_http_xet_plan_send() does.
 */
ngx_int_t ngx_http_xet_plan_next(ngx_http_request_t *r, xet_plan_t *plan,
    ngx_pool_t *pool, ngx_http_xet_plan_ask_pt ask);

/*
 * Called after the last window: XET_OK, or XET_PLAN_TERMS when the plan has
 * more terms than "xet_plan_terms".
 */
xet_status_t ngx_http_xet_plan_bound(ngx_http_request_t *r, xet_plan_t *plan);


#endif /* _NGX_HTTP_XET_PLAN_SPOOL_H_INCLUDED_ */
