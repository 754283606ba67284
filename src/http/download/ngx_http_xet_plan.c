
/*
 * Makes reconstruction plans: reads terms in batches, merges ranges, signs
 * URLs, and writes JSON.
 *
 * A batch is the result of one statement, a few thousand terms at most, so that
 * a large file delays neither PostgreSQL nor the event loop.  Plans of a few
 * batches stay in memory.  A larger plan is first written, batch by batch, to a
 * temporary file of the store.  So a slow client occupies a file instead of
 * memory.  An error found before the response starts can still be reported by
 * an HTTP status.
 *
 * Memory of a request: first NGX_HTTP_XET_PLAN_TERMS terms and the rows of a
 * batch; "xet_plan_buffer" for sorting; after that a piece of the response.
 * All memory and files are freed with the request.
 *
 * A plan of usual size is finished and written at once in the event loop, which
 * takes about 100 microseconds.  A large plan is finished and written by jobs,
 * one piece of JSON at a time.  A plan in a file is finished by several jobs,
 * so that the thread can serve other requests in between.  The plan belongs to
 * the thread while a job runs.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"


#define NGX_HTTP_XET_PLAN_INLINE  256          /* maximum terms per event */
#define NGX_HTTP_XET_PLAN_TERM    512          /* bytes of JSON, usually */
#define NGX_HTTP_XET_PLAN_PIECE   65536        /* bytes of JSON */
#define NGX_HTTP_XET_PLAN_READ    256          /* terms per read */


typedef struct {
    xet_plan_t             *plan;
    xet_plan_kind_t         kind;
    xet_plan_writer_t       writer;
    ngx_http_xet_url_t      url;
    ngx_http_xet_stream_t   stream;
    ngx_pool_t             *pool;              /* pool of the current piece */
    xet_buf_t               buf;
    xet_status_t            status;
    unsigned                finished:1;        /* the plan is finished */
} ngx_http_xet_plan_t;


static ngx_int_t ngx_http_xet_plan_headers(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_plan_inline(ngx_http_request_t *r,
    ngx_http_xet_plan_t *p, ngx_http_xet_answer_t *answer);
static void ngx_http_xet_plan_piece(ngx_http_request_t *r, void *data);
static ngx_int_t ngx_http_xet_plan_post(ngx_http_request_t *r,
    ngx_http_xet_plan_t *p);
static void ngx_http_xet_plan_job(void *data, ngx_log_t *log);
static xet_status_t ngx_http_xet_plan_finish_job(ngx_http_xet_plan_t *p,
    ngx_log_t *log);
static void ngx_http_xet_plan_done(ngx_http_request_t *r, void *data);
static ngx_http_xet_plan_spool_t *ngx_http_xet_plan_spool_create(
    ngx_http_request_t *r, xet_plan_t *plan, ngx_pool_t *pool);
static void ngx_http_xet_plan_spool_cleanup(void *data);
static void ngx_http_xet_plan_spool_put_job(void *data, ngx_log_t *log);
static void ngx_http_xet_plan_spool_put_done(ngx_http_request_t *r,
    void *data);
static xet_status_t ngx_http_xet_plan_spool_sort_job(
    ngx_http_xet_plan_spool_t *ps, ngx_log_t *log);
static void ngx_http_xet_plan_spool_free(ngx_http_xet_plan_spool_t *ps);
static xet_status_t ngx_http_xet_plan_spool_append(void *ctx,
    xet_plan_spool_file_t file, const void *data, size_t len);
static xet_status_t ngx_http_xet_plan_spool_read(void *ctx,
    xet_plan_spool_file_t file, void *data, size_t len, uint64_t offset);


static const xet_plan_spool_io_t  ngx_http_xet_plan_spool_io = {
    ngx_http_xet_plan_spool_append,
    ngx_http_xet_plan_spool_read
};


ngx_int_t
ngx_http_xet_plan_send(ngx_http_request_t *r, xet_plan_t *plan,
    xet_plan_kind_t kind, ngx_http_xet_answer_t *answer)
{
    ngx_int_t             rc;
    ngx_http_xet_plan_t  *p;

    p = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_plan_t));
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p->plan = plan;
    p->kind = kind;

    rc = ngx_http_xet_url_init(r, &p->url);

    if (rc == NGX_DECLINED) {
        return ngx_http_xet_error(r, NGX_HTTP_BAD_REQUEST, "no_host",
                                  "the request has no host name");
    }

    if (rc != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (plan->n <= NGX_HTTP_XET_PLAN_INLINE && plan->spool == NULL) {
        return ngx_http_xet_plan_inline(r, p, answer);
    }

    if (ngx_http_xet_stream_init(r, &p->stream, ngx_http_xet_plan_piece, p)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_plan_post(r, p);
}


static ngx_int_t
ngx_http_xet_plan_headers(ngx_http_request_t *r)
{
    /* anyone who has the URLs may read the data */

    return ngx_http_xet_header(r, "Cache-Control", "private, no-store");
}


ngx_int_t
ngx_http_xet_plan_respond(ngx_http_request_t *r, xet_buf_t *b)
{
    if (ngx_http_xet_plan_headers(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_send(r, NGX_HTTP_OK, "application/json", b);
}


static ngx_int_t
ngx_http_xet_plan_inline(ngx_http_request_t *r, ngx_http_xet_plan_t *p,
    ngx_http_xet_answer_t *answer)
{
    xet_status_t  status;

    status = xet_plan_finish(p->plan);

    if (status == XET_OK) {
        xet_buf_init(&p->buf, ngx_http_xet_alloc, r->pool,
                     (p->plan->n + 1) * NGX_HTTP_XET_PLAN_TERM);

        xet_plan_writer_init(&p->writer, p->plan, p->kind,
                             ngx_http_xet_url_write, &p->url, p->url.group);

        status = xet_plan_writer_next(&p->writer, &p->buf,
                                      NGX_MAX_SIZE_T_VALUE);
    }

    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    if (answer) {
        ngx_http_xet_answers_add(answer, &p->buf);
    }

    return ngx_http_xet_plan_respond(r, &p->buf);
}


static void
ngx_http_xet_plan_piece(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_plan_t *p = data;

    if (ngx_http_xet_plan_post(r, p) != NGX_AGAIN) {

        /*
         * a part of the response was sent, so an error can only close the
         * connection
         */

        ngx_http_finalize_request(r, ngx_http_xet_break_off(r));
    }
}


static ngx_int_t
ngx_http_xet_plan_post(ngx_http_request_t *r, ngx_http_xet_plan_t *p)
{
    p->pool = ngx_http_xet_stream_pool(&p->stream);

    if (p->pool == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_xet_task_post(r, ngx_http_xet_plan_job,
                               ngx_http_xet_plan_done, p)
        != NGX_OK)
    {
        return p->stream.begun ? NGX_ERROR
                               : ngx_http_xet_error_status(r, XET_OVERLOADED);
    }

    return NGX_AGAIN;
}


static void
ngx_http_xet_plan_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_plan_t *p = data;

    xet_term_t                  buffer[NGX_HTTP_XET_PLAN_READ];
    ngx_http_xet_plan_spool_t  *ps;

    if (!p->finished) {
        p->status = ngx_http_xet_plan_finish_job(p, log);

        if (p->status != XET_OK) {
            return;
        }
    }

    if (p->plan->spool) {
        ps = ngx_http_xet_plan_spool_get(p->plan);
        ps->log = log;

        xet_plan_spool_read(&ps->spool, buffer, NGX_HTTP_XET_PLAN_READ);
    }

    xet_buf_init(&p->buf, ngx_http_xet_alloc, p->pool,
                 NGX_HTTP_XET_PLAN_PIECE + 4096);

    p->status = xet_plan_writer_next(&p->writer, &p->buf,
                                     NGX_HTTP_XET_PLAN_PIECE);
}


/*
 * Finishes the plan, or a part of it.  Returns XET_AGAIN if another job is
 * needed.
 */

static xet_status_t
ngx_http_xet_plan_finish_job(ngx_http_xet_plan_t *p, ngx_log_t *log)
{
    xet_status_t                status;
    ngx_http_xet_plan_spool_t  *ps;

    if (p->plan->spool) {
        ps = ngx_http_xet_plan_spool_get(p->plan);
        status = ngx_http_xet_plan_spool_sort_job(ps, log);

    } else {
        status = xet_plan_finish(p->plan);
    }

    if (status != XET_OK) {
        return status;
    }

    xet_plan_writer_init(&p->writer, p->plan, p->kind, ngx_http_xet_url_write,
                         &p->url, p->url.group);
    p->finished = 1;

    return XET_OK;
}


static void
ngx_http_xet_plan_done(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_plan_t *p = data;

    ngx_int_t  rc;

    if (p->status == XET_AGAIN && !p->finished) {
        rc = ngx_http_xet_plan_post(r, p);

        if (rc != NGX_AGAIN) {
            ngx_http_finalize_request(r, rc);
        }

        return;
    }

    if (p->status != XET_OK && p->status != XET_AGAIN) {

        if (p->stream.begun) {
            ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                          "xet: a reconstruction was truncated: %s",
                          xet_status_text(p->status));
            ngx_http_finalize_request(r, ngx_http_xet_break_off(r));
            return;
        }

        ngx_http_finalize_request(r,
                                  ngx_http_xet_error_status(r, p->status));
        return;
    }

    if (!p->stream.begun) {

        if (p->plan->spool) {
            ngx_http_xet_plan_spool_free(ngx_http_xet_plan_spool_get(p->plan));
        }

        if (ngx_http_xet_plan_headers(r) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }

        ngx_http_xet_output_type(r, NGX_HTTP_OK, "application/json", -1);
    }

    ngx_http_xet_stream_send(r, &p->stream, &p->buf, p->status == XET_OK);
}


ngx_int_t
ngx_http_xet_plan_next(ngx_http_request_t *r, xet_plan_t *plan,
    ngx_pool_t *pool, ngx_http_xet_plan_ask_pt ask)
{
    xet_status_t                status;
    ngx_http_xet_plan_spool_t  *ps;

    status = ngx_http_xet_plan_bound(r, plan);

    if (status == XET_OK
        && plan->n + NGX_HTTP_XET_PLAN_BATCH <= NGX_HTTP_XET_PLAN_TERMS)
    {
        status = xet_plan_reserve(plan, NGX_HTTP_XET_PLAN_TERMS);

        if (status == XET_OK) {
            return ask(r);
        }
    }

    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    ps = plan->spool ? ngx_http_xet_plan_spool_get(plan)
                     : ngx_http_xet_plan_spool_create(r, plan, pool);
    if (ps == NULL) {
        return ngx_http_xet_error_status(r, XET_NOMEM);
    }

    ps->ask = ask;

    if (ngx_http_xet_task_post(r, ngx_http_xet_plan_spool_put_job,
                               ngx_http_xet_plan_spool_put_done, ps)
        != NGX_OK)
    {
        return ngx_http_xet_error_status(r, XET_OVERLOADED);
    }

    return NGX_AGAIN;
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

    ngx_int_t  rc;

    rc = (ps->status == XET_OK) ? ps->ask(r)
                                : ngx_http_xet_error_status(r, ps->status);

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


/*
 * Does a part of the work to finish a plan in a file.  Returns XET_AGAIN if it
 * must be called again, in another job; XET_OK if the plan is finished; or the
 * error.
 */

static xet_status_t
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


/*
 * Called in the event loop when the plan is finished.  Frees the terms in
 * memory, because the file contains all terms.
 */

static void
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
