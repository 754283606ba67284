
/*
 * Start and end of processes: the store's folders, keys, sessions, and the
 * timer of the sweep.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_store.h"

#include <sys/resource.h>


#define NGX_HTTP_XET_SWEEP_INTERVAL  3600000   /* ms */

/* Logs, sockets that listen, and what the threads have open. */
#define NGX_HTTP_XET_FILES           64


static void ngx_http_xet_check_files(ngx_cycle_t *cycle,
    ngx_http_xet_main_conf_t *xmcf);
static void ngx_http_xet_fit_caches(ngx_cycle_t *cycle,
    ngx_http_xet_main_conf_t *xmcf);
static void ngx_http_xet_sweep_handler(ngx_event_t *ev);
static void ngx_http_xet_exit(void);


static ngx_event_t       ngx_http_xet_sweep_event;
static ngx_connection_t  ngx_http_xet_sweep_dummy;


ngx_int_t
ngx_http_xet_init_module(ngx_cycle_t *cycle)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    if (xmcf == NULL) {
        return NGX_OK;
    }

    ngx_http_xet_check_files(cycle, xmcf);

    if (!xmcf->api) {
        return NGX_OK;
    }

    if (ngx_test_config) {
        ngx_http_xet_pg_check_test(cycle, (char *) xmcf->conninfo.data,
                                   &xmcf->store);
        return NGX_OK;
    }

    return ngx_http_xet_store_init(cycle);
}


/* A connection may have a file open besides: an upload, or what it is sent. */

static void
ngx_http_xet_check_files(ngx_cycle_t *cycle, ngx_http_xet_main_conf_t *xmcf)
{
    ngx_uint_t               i, n, cached;
    struct rlimit            rl;
    ngx_core_conf_t         *ccf;
    ngx_open_file_cache_t  **caches;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (ccf->rlimit_nofile != NGX_CONF_UNSET) {
        rl.rlim_cur = (rlim_t) ccf->rlimit_nofile;

    } else if (getrlimit(RLIMIT_NOFILE, &rl) == -1) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                      "getrlimit(RLIMIT_NOFILE) failed");
        return;
    }

    caches = xmcf->caches.elts;
    cached = 0;

    for (i = 0; i < xmcf->caches.nelts; i++) {
        cached += caches[i]->max;
    }

    n = 2 * cycle->connection_n + cached + NGX_HTTP_XET_FILES;

    if (cached && (rlim_t) n > rl.rlim_cur) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "xet: %ui worker_connections and %ui files of "
                      "open_file_cache need %ui descriptors, a worker has "
                      "%O: see \"worker_rlimit_nofile\"",
                      cycle->connection_n, cached, n, (off_t) rl.rlim_cur);
    }
}


/*
 * A cache that may hold more files than the worker may open takes the last
 * descriptor after a while and never gives it back.  So the caches share
 * equally what connections leave of the worker's limit of open files, and a
 * quarter of that limit at least.
 */

static void
ngx_http_xet_fit_caches(ngx_cycle_t *cycle, ngx_http_xet_main_conf_t *xmcf)
{
    ngx_uint_t               i, n, max;
    struct rlimit            rl;
    ngx_open_file_cache_t  **caches;

    if (xmcf->caches.nelts == 0
        || getrlimit(RLIMIT_NOFILE, &rl) == -1
        || rl.rlim_cur > NGX_MAX_INT32_VALUE)
    {
        return;
    }

    n = 2 * cycle->connection_n + NGX_HTTP_XET_FILES;
    max = (ngx_uint_t) rl.rlim_cur;
    max -= ngx_min(n, max - max / 4);
    max /= xmcf->caches.nelts;

    caches = xmcf->caches.elts;

    for (i = 0; i < xmcf->caches.nelts; i++) {

        if (caches[i]->max > max) {
            ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                          "xet: open_file_cache of %ui files is cut to %ui: "
                          "the limit of open files is %O", caches[i]->max, max,
                          (off_t) rl.rlim_cur);

            caches[i]->max = max;
        }
    }
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

    ngx_http_xet_fit_caches(cycle, xmcf);

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

    if (ngx_http_xet_lanes_init(cycle, ngx_http_xet_query_stmts) != NGX_OK) {
        return NGX_ERROR;
    }

    /* one worker of a node is enough for the sweep */

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
    ngx_http_xet_main_conf_t  *xmcf;

    ngx_http_xet_lanes_exit(cycle);

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    /*
     * Threads may still run: those that connect to PostgreSQL, and those of
     * the pools, for which nginx waits only until they begin to end.  OpenSSL
     * frees at exit what it looks at when a thread ends, so its exit handler
     * must not run.  Ours is registered last, so it runs first and exits.
     */

    if (xmcf && xmcf->lanes) {
        (void) atexit(ngx_http_xet_exit);
    }
}


/* nginx's workers all exit with 0. */

static void
ngx_http_xet_exit(void)
{
    _exit(0);
}
