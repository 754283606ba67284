
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


/* Called from the event loop: XET_OK, there is room now, or the error. */
typedef void (*ngx_http_xet_plan_room_pt)(ngx_http_request_t *r,
    xet_status_t status);


typedef struct {
    xet_plan_spool_t             spool;
    xet_plan_t                  *plan;
    ngx_pool_t                  *pool;             /* of plan->terms */
    ngx_http_xet_temp_t         *files[XET_PLAN_SPOOL_FILES];
    ngx_http_xet_plan_room_pt    handler;
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
 * last: makes room for the next one.  The plan's memory is from pool.
 *
 * XET_OK: there is room.  XET_AGAIN: handler will be called.
 * XET_PLAN_TERMS: the plan has more terms than "xet_plan_terms".
 * XET_OVERLOADED, XET_NOMEM.
 */
xet_status_t ngx_http_xet_plan_room(ngx_http_request_t *r, xet_plan_t *plan,
    ngx_pool_t *pool, ngx_http_xet_plan_room_pt handler);

/*
 * Called after the last window: XET_OK, or XET_PLAN_TERMS when the plan has
 * more terms than "xet_plan_terms".
 */
xet_status_t ngx_http_xet_plan_bound(ngx_http_request_t *r, xet_plan_t *plan);

/*
 * Does a part of finishing a plan in a file.  XET_AGAIN: to be called again,
 * in another job; XET_OK: the plan is finished; else the error.
 */
xet_status_t ngx_http_xet_plan_spool_sort_job(ngx_http_xet_plan_spool_t *ps,
    ngx_log_t *log);

/*
 * Called in the event loop when the plan is finished: frees its terms in
 * memory, because they are all in the file.
 */
void ngx_http_xet_plan_spool_free(ngx_http_xet_plan_spool_t *ps);


#endif /* _NGX_HTTP_XET_PLAN_SPOOL_H_INCLUDED_ */
