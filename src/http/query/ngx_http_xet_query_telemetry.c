
/*
 * The statement that keeps a report of a client.  Nobody waits for it.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_lanes.h"
#include "ngx_http_xet_query_send.h"


/*
 * One report at a time, and none when others wait: a table that somebody has
 * locked must not take the sessions of uploads.
 */

#define NGX_HTTP_XET_TELEMETRY_WAITING  16


static void ngx_http_xet_query_telemetry_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);


static ngx_uint_t  ngx_http_xet_telemetry_inflight;


ngx_int_t
ngx_http_xet_query_telemetry(xet_telemetry_t *t)
{
    int                       lengths[4];
    const char               *values[4];
    xet_telemetry_t          *own;
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

    values[0] = own->event;
    lengths[0] = (int) own->event_len;
    values[1] = own->session;
    lengths[1] = (int) own->session_len;
    values[2] = own->agent;
    lengths[2] = (int) own->agent_len;
    values[3] = own->metrics;
    lengths[3] = (int) own->metrics_len;

    if (ngx_http_xet_lanes_send(NGX_HTTP_XET_WRITE,
                        &ngx_http_xet_query_stmts[NGX_HTTP_XET_STMT_TELEMETRY],
                        values, lengths, ngx_http_xet_query_telemetry_done,
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
ngx_http_xet_query_telemetry_done(void *data, PGresult *res, ngx_int_t rc,
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
