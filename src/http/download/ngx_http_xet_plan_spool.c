
/*
 * Plans by windows.
 *
 * A window is what one statement gives, a few thousand terms at most, so that
 * neither PostgreSQL nor the event loop is held by a file of any size.  Plans
 * of a few windows stay in memory.  Larger plans go into a temporary file of
 * the store, window by window, before anything is sent: a slow client holds a
 * file and not memory, and a failure before that is still an HTTP status.
 *
 * Memory of a request: while terms come, NGX_HTTP_XET_PLAN_TERMS of them and a
 * window's rows; while they are sorted, "xet_plan_buffer"; while the answer is
 * sent, a piece of it.
 *
 * The plan belongs to the thread while a job runs.  All memory and files go
 * with the request.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_pg.h"


static ngx_http_xet_plan_spool_t *ngx_http_xet_plan_spool_create(
    ngx_http_request_t *r, xet_plan_t *plan, ngx_pool_t *pool);
static void ngx_http_xet_plan_spool_cleanup(void *data);
static void ngx_http_xet_plan_spool_put_job(void *data, ngx_log_t *log);
static void ngx_http_xet_plan_spool_put_done(ngx_http_request_t *r,
    void *data);
static xet_status_t ngx_http_xet_plan_spool_append(void *ctx,
    xet_plan_spool_file_t file, const void *data, size_t len);
static xet_status_t ngx_http_xet_plan_spool_read(void *ctx,
    xet_plan_spool_file_t file, void *data, size_t len, uint64_t offset);


static const xet_plan_spool_io_t  ngx_http_xet_plan_spool_io = {
    ngx_http_xet_plan_spool_append,
    ngx_http_xet_plan_spool_read
};


xet_status_t
ngx_http_xet_plan_room(ngx_http_request_t *r, xet_plan_t *plan,
    ngx_pool_t *pool, ngx_http_xet_plan_room_pt handler)
{
    xet_status_t                status;
    ngx_http_xet_plan_spool_t  *ps;

    status = ngx_http_xet_plan_bound(r, plan);

    if (status != XET_OK) {
        return status;
    }

    if (plan->n + NGX_HTTP_XET_PLAN_WINDOW <= NGX_HTTP_XET_PLAN_TERMS) {
        return xet_plan_reserve(plan, NGX_HTTP_XET_PLAN_TERMS);
    }

    ps = plan->spool ? ngx_http_xet_plan_spool_get(plan)
                     : ngx_http_xet_plan_spool_create(r, plan, pool);
    if (ps == NULL) {
        return XET_NOMEM;
    }

    ps->handler = handler;

    return (ngx_http_xet_task_post(r, ngx_http_xet_plan_spool_put_job,
                                   ngx_http_xet_plan_spool_put_done, ps)
            == NGX_OK)
           ? XET_AGAIN : XET_OVERLOADED;
}


xet_status_t
ngx_http_xet_plan_bound(ngx_http_request_t *r, xet_plan_t *plan)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    return (plan->before + plan->n <= xlcf->plan_terms) ? XET_OK
                                                        : XET_PLAN_TERMS;
}


static ngx_http_xet_plan_spool_t *
ngx_http_xet_plan_spool_create(ngx_http_request_t *r, xet_plan_t *plan,
    ngx_pool_t *pool)
{
    ngx_uint_t                  i;
    ngx_http_xet_loc_conf_t    *xlcf;
    ngx_http_xet_plan_spool_t  *ps;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    ps = ngx_http_xet_state(r, sizeof(ngx_http_xet_plan_spool_t),
                            ngx_http_xet_plan_spool_cleanup);
    if (ps == NULL) {
        return NULL;
    }

    ps->plan = plan;
    ps->pool = pool;
    ps->size = xlcf->plan_buffer;

    for (i = 0; i < XET_PLAN_SPOOL_FILES; i++) {
        ps->files[i] = ngx_http_xet_store_temp(r);

        if (ps->files[i] == NULL) {
            return NULL;
        }

        /* the file is dropped soon: its bytes are not handed to the disk */

        ps->files[i]->flushed = NGX_MAX_OFF_T_VALUE;
    }

    xet_plan_spool_init(&ps->spool, plan, &ngx_http_xet_plan_spool_io, ps);

    return ps;
}


static void
ngx_http_xet_plan_spool_cleanup(void *data)
{
    ngx_http_xet_plan_spool_t *ps = data;

    if (ps->room) {
        ngx_free(ps->room);
    }
}


static void
ngx_http_xet_plan_spool_put_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_plan_spool_t *ps = data;

    ps->log = log;
    ps->status = xet_plan_spool_put(&ps->spool);
}


static void
ngx_http_xet_plan_spool_put_done(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_plan_spool_t *ps = data;

    ps->handler(r, ps->status);
}


xet_status_t
ngx_http_xet_plan_spool_sort_job(ngx_http_xet_plan_spool_t *ps,
    ngx_log_t *log)
{
    xet_status_t  status;

    ps->log = log;

    if (ps->room == NULL) {
        ps->room = ngx_alloc(ps->size, log);

        if (ps->room == NULL) {
            return XET_NOMEM;
        }
    }

    status = xet_plan_spool_sort(&ps->spool, ps->room, ps->size);

    if (status == XET_OK) {
        ngx_http_xet_store_reset_job(ps->files[XET_PLAN_SPOOL_RUNS], log);

        ngx_free(ps->room);
        ps->room = NULL;
    }

    return status;
}


void
ngx_http_xet_plan_spool_free(ngx_http_xet_plan_spool_t *ps)
{
    (void) ngx_pfree(ps->pool, ps->plan->terms);

    ps->plan->terms = NULL;
    ps->plan->room = 0;
}


static xet_status_t
ngx_http_xet_plan_spool_append(void *ctx, xet_plan_spool_file_t file,
    const void *data, size_t len)
{
    ngx_http_xet_plan_spool_t *ps = ctx;

    return ngx_http_xet_store_write_job(ps->files[file], data, len, ps->log);
}


static xet_status_t
ngx_http_xet_plan_spool_read(void *ctx, xet_plan_spool_file_t file,
    void *data, size_t len, uint64_t offset)
{
    ngx_http_xet_plan_spool_t *ps = ctx;

    return ngx_http_xet_store_read_job(ps->files[file], data, len,
                                       (off_t) offset, ps->log);
}
