
/*
 * GET health: 200 if this node serves files and accepts uploads, else 503.
 * PostgreSQL must respond and accept writes, and the store must be writable.
 * The checks are a statement that does not wait behind other statements, a file
 * that a thread writes, and the worker's last write test.  The statement uses
 * the read pool or, if all sessions of that pool are busy, the ping pool.
 * Statements that wait for a lock or a slow disk appear in the metrics of their
 * pools.  They do not make the check fail: another node would have the same
 * problem, and this node still serves data.
 *
 * The write test, which fails for example if the disk is full, is a statement
 * in the queue of the write pool.  No request waits for the result: a health
 * request sends the statement if the last result is some seconds old, and
 * reports the previous result.  Only a definite error of PostgreSQL is a
 * failure.  The state belongs to the worker: idle -> asked -> idle.
 *
 * GET health/live: always 200, as long as the event loop runs.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_HEALTH_PROBE   2000       /* ms between tests */
#define NGX_HTTP_XET_HEALTH_VALID  60000       /* ms, maximum age of a result */


typedef struct {
    ngx_msec_t  at;                            /* time of the last result */
    unsigned    asked:1;
    unsigned    known:1;
    unsigned    refused:1;
} ngx_http_xet_health_probe_t;


static void ngx_http_xet_health_write(void);
static void ngx_http_xet_health_wrote(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);
static void ngx_http_xet_health_queried(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_health_away(ngx_http_request_t *r,
    xet_status_t status);
static void ngx_http_xet_health_probed(ngx_http_request_t *r,
    xet_status_t status);
static void ngx_http_xet_health_pool(xet_json_t *j, const char *name,
    ngx_http_xet_pg_pool_e pg_pool);


static ngx_http_xet_health_probe_t  ngx_http_xet_health_probe;


ngx_int_t
ngx_http_xet_health_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    ngx_http_xet_health_write();

    return ngx_http_xet_query_wait(r,
               ngx_http_xet_query(r, ping, ngx_http_xet_health_queried));
}


static void
ngx_http_xet_health_write(void)
{
    ngx_http_xet_health_probe_t  *probe = &ngx_http_xet_health_probe;

    if (probe->asked
        || (probe->known
            && ngx_current_msec - probe->at < NGX_HTTP_XET_HEALTH_PROBE))
    {
        return;
    }

    probe->asked = (ngx_http_xet_query_write_probe(ngx_http_xet_health_wrote,
                                                   probe)
                    == NGX_AGAIN);
}


static void
ngx_http_xet_health_wrote(void *data, ngx_http_xet_ask_t *ask, ngx_int_t rc)
{
    ngx_http_xet_health_probe_t *probe = data;

    probe->asked = 0;
    probe->known = 1;
    probe->at = ngx_current_msec;
    probe->refused = (rc != NGX_OK && ask->sqlstate[0]);
}


ngx_int_t
ngx_http_xet_live_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    return ngx_http_xet_send_literal(r, "{\"status\":\"ok\"}");
}


static void
ngx_http_xet_health_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    xet_status_t            status;
    ngx_http_xet_probe_pt   handler;

    if (rc != NGX_OK && rc != NGX_BUSY) {
        ngx_http_xet_query_failed(r, rc);
        return;
    }

    /*
     * no session is opened if the store does not belong to this database: the
     * test of the store then returns the error to send
     */

    handler = (rc == NGX_OK) ? ngx_http_xet_health_probed
                             : ngx_http_xet_health_away;

    status = ngx_http_xet_probe(r, handler);

    if (status != XET_AGAIN) {
        handler(r, status);
    }
}


static void
ngx_http_xet_health_away(ngx_http_request_t *r, xet_status_t status)
{
    if (status == XET_STORE_OTHER || status == XET_STORE_GONE
        || status == XET_STORE_BARE)
    {
        ngx_http_xet_health_probed(r, status);
        return;
    }

    ngx_http_xet_query_failed(r, NGX_BUSY);
}


static void
ngx_http_xet_health_probed(ngx_http_request_t *r, xet_status_t status)
{
    xet_buf_t   b;
    xet_json_t  j;

    if (status != XET_OK) {
        ngx_http_finalize_request(r,
            ngx_http_xet_error(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                               "storage_unavailable",
                               (status == XET_STORE_FAILED)
                               ? "the store is not writable"
                               : xet_status_text(status)));
        return;
    }

    if (ngx_http_xet_health_probe.refused
        && ngx_current_msec - ngx_http_xet_health_probe.at
           < NGX_HTTP_XET_HEALTH_VALID)
    {
        ngx_http_finalize_request(r,
            ngx_http_xet_error(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                               "writes_refused",
                               "the database does not accept writes"));
        return;
    }

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 512);
    xet_json_init(&j, &b);

    xet_json_object_begin(&j);
    xet_json_put_cstring(&j, "status", "ok");
    xet_json_key(&j, "postgres");
    xet_json_object_begin(&j);
    ngx_http_xet_health_pool(&j, "read", NGX_HTTP_XET_READ);
    ngx_http_xet_health_pool(&j, "write", NGX_HTTP_XET_WRITE);
    ngx_http_xet_health_pool(&j, "dedup", NGX_HTTP_XET_DEDUP);
    ngx_http_xet_health_pool(&j, "long", NGX_HTTP_XET_LONG);
    xet_json_object_end(&j);
    xet_json_object_end(&j);

    ngx_http_finalize_request(r, ngx_http_xet_send(r, NGX_HTTP_OK,
                                                   "application/json", &b));
}


static void
ngx_http_xet_health_pool(xet_json_t *j, const char *name,
    ngx_http_xet_pg_pool_e pg_pool)
{
    ngx_http_xet_pg_pool_stat_t  stat;

    ngx_http_xet_pg_pools_stat(pg_pool, &stat);

    xet_json_key(j, name);
    xet_json_object_begin(j);
    xet_json_put_u64(j, "sessions", stat.sessions);
    xet_json_put_u64(j, "ready", stat.ready);
    xet_json_put_u64(j, "in_flight", stat.inflight);
    xet_json_put_u64(j, "waiting", stat.waiting);
    xet_json_put_u64(j, "oldest_ms", stat.oldest);
    xet_json_object_end(j);
}
