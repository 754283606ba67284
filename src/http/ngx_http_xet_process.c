
/*
 * Start and end of processes: the store's folders, keys, sessions, and the
 * timer of the sweep.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_lanes.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_SWEEP_INTERVAL  3600000   /* ms */


static void ngx_http_xet_sweep_handler(ngx_event_t *ev);


static ngx_event_t       ngx_http_xet_sweep_event;
static ngx_connection_t  ngx_http_xet_sweep_dummy;


ngx_int_t
ngx_http_xet_init_module(ngx_cycle_t *cycle)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    if (xmcf == NULL || !xmcf->api || ngx_test_config) {
        return NGX_OK;
    }

    return ngx_http_xet_store_init(cycle);
}


ngx_int_t
ngx_http_xet_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t                 i;
    ngx_http_xet_limit_t     **limits;
    ngx_http_xet_main_conf_t  *xmcf;

    if (ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE)
    {
        return NGX_OK;
    }

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    if (xmcf == NULL || (!xmcf->api && !xmcf->data)) {
        return NGX_OK;
    }

    if (ngx_http_xet_conf_sign_keys(cycle, xmcf) != NGX_OK) {
        return NGX_ERROR;
    }

    if (!xmcf->api) {
        return NGX_OK;
    }

    if (xmcf->upload_zones) {
        limits = xmcf->upload_zones->elts;

        for (i = 0; i < xmcf->upload_zones->nelts; i++) {
            ngx_http_xet_limit_zone_init_process(limits[i]);
        }
    }

    if (ngx_http_xet_lanes_init(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    /* one worker of a node is enough */

    if (ngx_worker == 0) {
        /* debug logs of timers look for a descriptor */

        ngx_http_xet_sweep_dummy.fd = (ngx_socket_t) -1;

        ngx_http_xet_sweep_event.handler = ngx_http_xet_sweep_handler;
        ngx_http_xet_sweep_event.data = &ngx_http_xet_sweep_dummy;
        ngx_http_xet_sweep_event.log = cycle->log;
        ngx_http_xet_sweep_event.cancelable = 1;

        ngx_add_timer(&ngx_http_xet_sweep_event, NGX_HTTP_XET_SWEEP_INTERVAL);
    }

    return NGX_OK;
}


static void
ngx_http_xet_sweep_handler(ngx_event_t *ev)
{
    ngx_http_xet_query_sweep();

    ngx_add_timer(ev, NGX_HTTP_XET_SWEEP_INTERVAL);
}


void
ngx_http_xet_exit_process(ngx_cycle_t *cycle)
{
    ngx_http_xet_lanes_exit(cycle);
}
