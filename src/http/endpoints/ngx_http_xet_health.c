
/*
 * GET health: 200 when PostgreSQL answers, 503 when it does not: a statement
 * that no other one holds up.  Statements that wait, for somebody's lock or
 * for a slow disk, are told of and are no failure: another node would find the
 * same, and this one still serves data.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_lanes.h"
#include "ngx_http_xet_output.h"


static void ngx_http_xet_health_queried(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_health_lane(xet_json_t *j, const char *name,
    ngx_http_xet_lane_e lane);


ngx_int_t
ngx_http_xet_health_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_xet_query_ping(r, ngx_http_xet_health_queried);

    return ngx_http_xet_wait_query(r, rc);
}


static void
ngx_http_xet_health_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    xet_buf_t   b;
    xet_json_t  j;

    if (rc != NGX_OK) {
        ngx_http_finalize_request(r,
            ngx_http_xet_error_query(r, rc, "internal_error",
                                     "the database failed"));
        return;
    }

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 512);
    xet_json_init(&j, &b);

    xet_json_object_begin(&j);
    xet_json_key(&j, "status");
    xet_json_cstring(&j, "ok");
    xet_json_key(&j, "postgres");
    xet_json_object_begin(&j);
    ngx_http_xet_health_lane(&j, "read", NGX_HTTP_XET_READ);
    ngx_http_xet_health_lane(&j, "write", NGX_HTTP_XET_WRITE);
    ngx_http_xet_health_lane(&j, "dedup", NGX_HTTP_XET_DEDUP);
    xet_json_object_end(&j);
    xet_json_object_end(&j);

    ngx_http_finalize_request(r, ngx_http_xet_send(r, NGX_HTTP_OK,
                                                   "application/json", &b));
}


static void
ngx_http_xet_health_lane(xet_json_t *j, const char *name,
    ngx_http_xet_lane_e lane)
{
    ngx_http_xet_lane_stat_t  stat;

    ngx_http_xet_lanes_stat(lane, &stat);

    xet_json_key(j, name);
    xet_json_object_begin(j);
    xet_json_key(j, "sessions");
    xet_json_u64(j, stat.sessions);
    xet_json_key(j, "ready");
    xet_json_u64(j, stat.ready);
    xet_json_key(j, "in_flight");
    xet_json_u64(j, stat.inflight);
    xet_json_key(j, "waiting");
    xet_json_u64(j, stat.waiting);
    xet_json_key(j, "oldest_ms");
    xet_json_u64(j, stat.oldest);
    xet_json_object_end(j);
}
