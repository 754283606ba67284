
/*
 * The statement that keeps a report of a client.  Nobody waits for it.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


/*
 * One report at a time, and none while so many statements wait: a table that
 * somebody has locked must not take the sessions of uploads.
 */

#define NGX_HTTP_XET_TELEMETRY_WAITING  16


static void ngx_http_xet_query_telemetry_put_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);


static ngx_uint_t  ngx_http_xet_telemetry_inflight;


ngx_int_t
ngx_http_xet_query_telemetry_put(xet_telemetry_t *t)
{
    xet_telemetry_t          *own;
    ngx_http_xet_params_t     p;
    ngx_http_xet_lane_stat_t  stat;

    ngx_http_xet_lanes_stat(NGX_HTTP_XET_WRITE, &stat);

    if (ngx_http_xet_telemetry_inflight
        || stat.waiting >= NGX_HTTP_XET_TELEMETRY_WAITING)
    {
        return NGX_BUSY;
    }

    own = ngx_alloc(sizeof(xet_telemetry_t), ngx_cycle->log);
    if (own == NULL) {
        return NGX_ERROR;
    }

    *own = *t;

    ngx_http_xet_params_init(&p);
    ngx_http_xet_params_bytes(&p, own->event, own->event_len);
    ngx_http_xet_params_bytes(&p, own->session, own->session_len);
    ngx_http_xet_params_bytes(&p, own->agent, own->agent_len);
    ngx_http_xet_params_bytes(&p, own->metrics, own->metrics_len);

    if (ngx_http_xet_post_telemetry_put(&p,
                                        ngx_http_xet_query_telemetry_put_done,
                                        own)
        == NULL)
    {
        ngx_free(own);
        return NGX_BUSY;
    }

    ngx_http_xet_telemetry_inflight = 1;

    return NGX_OK;
}


static void
ngx_http_xet_query_telemetry_put_done(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    xet_telemetry_t *t = data;

    ngx_http_xet_telemetry_inflight = 0;

    if (res) {
        ngx_http_xet_pg_clear(res);
    }

    xet_telemetry_free(t);
    ngx_free(t);
}
