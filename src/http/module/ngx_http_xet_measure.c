
/*
 * Updates the metrics at the end of each request; and once a second, sets the
 * gauges for the pools and jobs of the worker, and takes the samples of the
 * history.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_monitor.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_MEASURE_INTERVAL  1000    /* ms */


static ngx_uint_t ngx_http_xet_measure_route(ngx_http_request_t *r);
static void ngx_http_xet_measure_timer(ngx_event_t *ev);


static ngx_event_t       ngx_http_xet_measure_event;
static ngx_connection_t  ngx_http_xet_measure_dummy;


ngx_int_t
ngx_http_xet_measure_handler(ngx_http_request_t *r)
{
    ngx_uint_t                status;
    ngx_time_t               *tp;
    ngx_msec_int_t            ms;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (r != r->main
        || (!xlcf->api && !xlcf->data && !xlcf->mint && !xlcf->hub
            && !xlcf->verify_body && !xlcf->error && !xlcf->monitor))
    {
        return NGX_OK;
    }

    tp = ngx_timeofday();

    ms = (ngx_msec_int_t) ((tp->sec - r->start_sec) * 1000
                           + (tp->msec - r->start_msec));

    status = r->err_status ? r->err_status : r->headers_out.status;

    ngx_http_xet_metrics_request(ngx_http_xet_measure_route(r), status,
                                 (ngx_msec_t) ngx_max(ms, 0),
                                 (uint64_t) r->request_length,
                                 (uint64_t) r->connection->sent);

    return NGX_OK;
}


/*
 * Returns the index of the request's route.  An error page is in another
 * location than the failed request, so requests for data are recognized by
 * URI.
 */

static ngx_uint_t
ngx_http_xet_measure_route(ngx_http_request_t *r)
{
    ngx_uint_t                route;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (xlcf->monitor) {
        return (xlcf->monitor >= NGX_HTTP_XET_MONITOR_STATUS)
               ? NGX_HTTP_XET_ROUTE_STATUS : NGX_HTTP_XET_ROUTE_METRICS;
    }

    if (xlcf->data) {
        return NGX_HTTP_XET_ROUTE_DATA;
    }

    if (xlcf->mint) {
        return NGX_HTTP_XET_ROUTE_TOKEN;
    }

    route = ngx_http_xet_route_number(r);

    if (route == NGX_HTTP_XET_ROUTE_OTHER && xlcf->error && r->uri.len
        && ngx_strlcasestrn(r->uri.data, r->uri.data + r->uri.len,
                            (u_char *) "/xorbs/" NGX_HTTP_XET_NAMESPACE "/",
                            sizeof("/xorbs/" NGX_HTTP_XET_NAMESPACE "/") - 2))
    {
        return NGX_HTTP_XET_ROUTE_DATA;
    }

    return route;
}


void
ngx_http_xet_measure_init_process(ngx_cycle_t *cycle)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    if (xmcf->metrics_zone == NULL) {
        return;
    }

    ngx_http_xet_metrics_init_process(xmcf->metrics_zone);

    /* nginx logs the fd of a timer's connection in debug logs */

    ngx_http_xet_measure_dummy.fd = (ngx_socket_t) -1;

    ngx_http_xet_measure_event.handler = ngx_http_xet_measure_timer;
    ngx_http_xet_measure_event.data = &ngx_http_xet_measure_dummy;
    ngx_http_xet_measure_event.log = cycle->log;
    ngx_http_xet_measure_event.cancelable = 1;

    ngx_add_timer(&ngx_http_xet_measure_event, NGX_HTTP_XET_MEASURE_INTERVAL);
}


void
ngx_http_xet_measure_exit_process(ngx_cycle_t *cycle)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    if (xmcf) {
        ngx_http_xet_store_measure(xmcf->store);
    }

    ngx_http_xet_metrics_exit_process();
}


static void
ngx_http_xet_measure_timer(ngx_event_t *ev)
{
    ngx_http_xet_monitor_levels();
    ngx_http_xet_history_tick();

    ngx_add_timer(ev, NGX_HTTP_XET_MEASURE_INTERVAL);
}
