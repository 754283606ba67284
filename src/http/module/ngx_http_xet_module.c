
/*
 * The module: its directives and its phase handlers.  When a process starts or
 * ends, this file sets up or releases the folders of the store, keys, sessions
 * and the sweep timer.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_bg_jobs.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_monitor.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_store.h"
#include "ngx_http_xet_upload.h"

#include <sys/resource.h>


#define NGX_HTTP_XET_SWEEP_INTERVAL  3600000   /* ms */

/* File descriptors for logs, listening sockets, and jobs in threads. */
#define NGX_HTTP_XET_FILES           64


static ngx_int_t ngx_http_xet_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_xet_init_module(ngx_cycle_t *cycle);
static void ngx_http_xet_check_postgres(ngx_cycle_t *cycle,
    ngx_http_xet_main_conf_t *xmcf);
static void ngx_http_xet_check_files(ngx_cycle_t *cycle,
    ngx_http_xet_main_conf_t *xmcf);
static void ngx_http_xet_fit_caches(ngx_cycle_t *cycle,
    ngx_http_xet_main_conf_t *xmcf);
static ngx_int_t ngx_http_xet_init_process(ngx_cycle_t *cycle);
static void ngx_http_xet_sweep_handler(ngx_event_t *ev);
static void ngx_http_xet_exit_process(ngx_cycle_t *cycle);
static void ngx_http_xet_exit(void);


static ngx_event_t       ngx_http_xet_sweep_event;
static ngx_connection_t  ngx_http_xet_sweep_dummy;


static ngx_conf_enum_t  ngx_http_xet_auth_modes[] = {
    { ngx_string("off"), NGX_HTTP_XET_AUTH_OFF },
    { ngx_string("token"), NGX_HTTP_XET_AUTH_TOKEN },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_xet_access_modes[] = {
    { ngx_string("store"), NGX_HTTP_XET_ACCESS_STORE },
    { ngx_string("repo"), NGX_HTTP_XET_ACCESS_REPO },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_xet_switch[] = {
    { ngx_string("on"), 1 },
    { ngx_string("off"), 0 },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_xet_url_modes[] = {
    { ngx_string("strict"), NGX_HTTP_XET_URL_STRICT },
    { ngx_string("cacheable"), NGX_HTTP_XET_URL_CACHEABLE },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_xet_data_modes[] = {
    { ngx_string("proxy"), NGX_HTTP_XET_DATA_PROXY },
    { ngx_string("presigned"), NGX_HTTP_XET_DATA_PRESIGNED },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_xet_audit_modes[] = {
    { ngx_string("off"), NGX_HTTP_XET_AUDIT_OFF },
    { ngx_string("writes"), NGX_HTTP_XET_AUDIT_WRITES },
    { ngx_string("all"), NGX_HTTP_XET_AUDIT_ALL },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_xet_metrics_forms[] = {
    { ngx_string("prometheus"), NGX_HTTP_XET_MONITOR_PROMETHEUS },
    { ngx_string("json"), NGX_HTTP_XET_MONITOR_JSON },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_xet_status_forms[] = {
    { ngx_string(""), NGX_HTTP_XET_MONITOR_STATUS },
    { ngx_string("repos"), NGX_HTTP_XET_MONITOR_REPOS },
    { ngx_null_string, 0 }
};


static ngx_http_xet_cache_t  ngx_http_xet_plan_defaults = {
    NULL, 2000, 64 * 1024, NGX_HTTP_XET_M_PLANS
};


static ngx_http_xet_cache_t  ngx_http_xet_filter_defaults = {
    NULL, 30000, NGX_HTTP_XET_CHUNK_FILTER_MAX, NGX_HTTP_XET_M_FILTERS
};


static ngx_http_xet_mount_t  ngx_http_xet_api_mount = {
    offsetof(ngx_http_xet_main_conf_t, api), 1, ngx_http_xet_api_handler
};


static ngx_http_xet_mount_t  ngx_http_xet_token_mount = {
    offsetof(ngx_http_xet_main_conf_t, mint), 0, ngx_http_xet_token_handler
};


static ngx_http_xet_mount_t  ngx_http_xet_hub_mount = {
    offsetof(ngx_http_xet_main_conf_t, hub), 1, ngx_http_xet_hub_handler
};


static ngx_http_xet_mount_t  ngx_http_xet_data_mount = {
    offsetof(ngx_http_xet_main_conf_t, data), 1, NULL
};


#define XET_ANYWHERE                                                          \
    NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF
#define XET_HTTP_SERVER      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF
#define XET_SERVER_LOCATION  NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF

#define XET_BOUNDS(low, high)                                                 \
    &(ngx_conf_num_bounds_t) { ngx_conf_check_num_bounds, low, high }

/* The allowed arguments and the setter of each kind in directives.def. */

#define XET_SET_FLAG   NGX_CONF_FLAG, ngx_conf_set_flag_slot
#define XET_SET_NUM    NGX_CONF_TAKE1, ngx_http_xet_conf_num
#define XET_SET_WORD   NGX_CONF_TAKE1, ngx_http_xet_conf_word
#define XET_SET_SIZE   NGX_CONF_TAKE1, ngx_http_xet_conf_size
#define XET_SET_SEC    NGX_CONF_TAKE1, ngx_conf_set_sec_slot
#define XET_SET_MSEC   NGX_CONF_TAKE1, ngx_conf_set_msec_slot
#define XET_SET_STR    NGX_CONF_TAKE1, ngx_http_xet_conf_str
#define XET_SET_VALUE  NGX_CONF_TAKE1, ngx_http_set_complex_value_slot


static ngx_command_t  ngx_http_xet_commands[] = {

#define XET_DIRECTIVE(name, contexts, kind, member, value, post)              \
    { ngx_string(name),                                                       \
      contexts|XET_SET_##kind,                                                \
      NGX_HTTP_LOC_CONF_OFFSET,                                               \
      offsetof(ngx_http_xet_loc_conf_t, member),                              \
      post },

#define XET_HTTP_DIRECTIVE(name, kind, member, value, post)                   \
    { ngx_string(name),                                                       \
      NGX_HTTP_MAIN_CONF|XET_SET_##kind,                                      \
      NGX_HTTP_MAIN_CONF_OFFSET,                                              \
      offsetof(ngx_http_xet_main_conf_t, member),                             \
      post },

#include "directives.def"

    { ngx_string("xet_store"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_xet_conf_store,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_gc"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_xet_conf_gc,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_xet_main_conf_t, gc),
      NULL },

    { ngx_string("xet_scrub"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE123,
      ngx_http_xet_conf_scrub,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_xet_main_conf_t, scrub),
      NULL },

    { ngx_string("xet_store_peer"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1234,
      ngx_http_xet_conf_store_peer,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_postgres"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_xet_conf_postgres,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_postgres_read"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1234,
      ngx_http_xet_conf_postgres_read,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_url_key"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_xet_conf_url_key,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_dedup_key"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_xet_conf_dedup_key,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_api"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_xet_conf_mount,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, api),
      &ngx_http_xet_api_mount },

    { ngx_string("xet_require_tls"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_xet_conf_require_tls,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_token_key"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_xet_conf_token_key,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_token_cache"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_xet_conf_token_cache,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_plan_cache"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE12,
      ngx_http_xet_conf_answers,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_xet_main_conf_t, plan_cache),
      &ngx_http_xet_plan_defaults },

    { ngx_string("xet_chunk_filter"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE12,
      ngx_http_xet_conf_answers,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_xet_main_conf_t, chunk_filter),
      &ngx_http_xet_filter_defaults },

    { ngx_string("xet_upload_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE3|NGX_CONF_TAKE4,
      ngx_http_xet_conf_upload_zone,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_upload_limit"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_xet_conf_upload_limit,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_token"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_xet_conf_mount,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, mint),
      &ngx_http_xet_token_mount },

    { ngx_string("xet_hub"),
      NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_http_xet_conf_hub,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, hub),
      &ngx_http_xet_hub_mount },

    { ngx_string("xet_token_epoch"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_xet_conf_token_epoch,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_data"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_xet_conf_mount,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, data),
      &ngx_http_xet_data_mount },

    { ngx_string("xet_metrics"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1,
      ngx_http_xet_conf_monitor,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      &ngx_http_xet_metrics_forms },

    { ngx_string("xet_status"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE12,
      ngx_http_xet_conf_monitor,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      &ngx_http_xet_status_forms },

    { ngx_string("xet_error"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1,
      ngx_http_xet_conf_error,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_url_base"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_xet_conf_url_base,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, url_base),
      NULL },

    { ngx_string("xet_proxies"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_xet_conf_proxies,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_hosts"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_xet_conf_hosts,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, hosts),
      NULL },

    { ngx_string("xet_verify_body"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_http_xet_conf_verify_body,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, verify_body),
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_xet_module_ctx = {
    ngx_http_xet_add_variables,            /* preconfiguration */
    ngx_http_xet_init,                     /* postconfiguration */

    ngx_http_xet_create_main_conf,         /* create main configuration */
    ngx_http_xet_init_main_conf,           /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_xet_create_loc_conf,          /* create location configuration */
    ngx_http_xet_merge_loc_conf            /* merge location configuration */
};


ngx_module_t  ngx_http_xet_module = {
    NGX_MODULE_V1,
    &ngx_http_xet_module_ctx,              /* module context */
    ngx_http_xet_commands,                 /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_xet_init_module,              /* init module */
    ngx_http_xet_init_process,             /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_xet_exit_process,             /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_xet_init(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_xet_main_conf_t   *xmcf;
    ngx_http_core_main_conf_t  *cmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);

    /*
     * check these security directives even if no location uses this module
     */

    if (ngx_http_xet_conf_expose(cf, xmcf) != NGX_OK
        || ngx_http_xet_conf_closed(cf, xmcf) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (!xmcf->api && !xmcf->data && !xmcf->mint && !xmcf->verify_body
        && !xmcf->monitor)
    {
        return NGX_OK;
    }

    if (ngx_http_xet_conf_check(cf, xmcf) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_xet_conf_warn(cf, xmcf);

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_ACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_xet_access_handler;

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_xet_preaccess_handler;

    if (xmcf->monitor) {
        ngx_http_xet_route_count_init(xmcf->hub);
        ngx_http_xet_metrics_bucket(xmcf->store && xmcf->store->s3);

        xmcf->metrics_zone = ngx_http_xet_metrics_zone(cf);
        h = ngx_array_push(&cmcf->phases[NGX_HTTP_LOG_PHASE].handlers);

        if (xmcf->metrics_zone == NULL || h == NULL) {
            return NGX_ERROR;
        }

        *h = ngx_http_xet_measure_handler;
    }

    if (ngx_http_xet_mask_init(cf) != NGX_OK
        || ngx_http_xet_data_filter_init(cf) != NGX_OK
        || ngx_http_xet_body_filter_init(cf) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return xmcf->verify_body ? ngx_http_xet_verify_init(cf) : NGX_OK;
}


static ngx_int_t
ngx_http_xet_init_module(ngx_cycle_t *cycle)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    if (xmcf == NULL) {
        return NGX_OK;
    }

    if (xmcf->masked
        && ngx_http_xet_mask_init_module(cycle, xmcf) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_xet_check_files(cycle, xmcf);

    if (!xmcf->api) {
        return NGX_OK;
    }

    if (ngx_test_config) {
        ngx_http_xet_check_postgres(cycle, xmcf);
        return NGX_OK;
    }

    if (ngx_http_xet_bg_job_holder(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_store_init(cycle);
}


static void
ngx_http_xet_check_postgres(ngx_cycle_t *cycle, ngx_http_xet_main_conf_t *xmcf)
{
    ngx_uint_t                    i;
    ngx_http_xet_standby_conf_t  *sb;

    ngx_http_xet_pg_check_test(cycle, xmcf->primary, xmcf->store);

    for (i = 0; xmcf->standbys && i < xmcf->standbys->nelts; i++) {
        sb = xmcf->standbys->elts;
        ngx_http_xet_pg_check_test(cycle, &sb[i].host, xmcf->store);
    }
}


/*
 * Warns if a worker may open too few files.  Besides its socket, a connection
 * may have an open file: an upload, or a file that is being sent.
 *
 * The warning goes to the log that nginx itself uses while it reads the
 * configuration.  The log of the new cycle already has the level of error_log,
 * and the default level drops warnings, even those of "nginx -t".
 */

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
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "xet: %ui worker_connections and %ui files of "
                      "open_file_cache need %ui descriptors, but a worker has "
                      "%O: raise \"worker_rlimit_nofile\"",
                      cycle->connection_n, cached, n, (off_t) rl.rlim_cur);
    }
}


/*
 * Reduces the open file caches.  A cache for more files than the worker may
 * open would take all file descriptors and never close them.  So all caches
 * together get the descriptors that connections do not need, or a quarter of
 * the worker's limit if that is more.
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
                          "xet: open_file_cache of %ui files is reduced to "
                          "%ui: the limit of open files is %O",
                          caches[i]->max, max, (off_t) rl.rlim_cur);

            caches[i]->max = max;
        }
    }
}


static ngx_int_t
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

    if (xmcf == NULL) {
        return NGX_OK;
    }

    ngx_http_xet_measure_init_process(cycle);

    if (!xmcf->api && !xmcf->data) {
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

    if (ngx_http_xet_query_pools(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_xet_client_init(cycle);

    /* only one worker of a node runs the sweep and the background jobs */

    if (ngx_worker == 0) {

        if (ngx_http_xet_bg_jobs_start(cycle) != NGX_OK) {
            return NGX_ERROR;
        }

        /* nginx logs the fd of a timer's connection in debug logs */

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
    (void) ngx_http_xet_post(sweep);

    ngx_add_timer(ev, NGX_HTTP_XET_SWEEP_INTERVAL);
}


static void
ngx_http_xet_exit_process(ngx_cycle_t *cycle)
{
    ngx_http_xet_main_conf_t  *xmcf;

    ngx_http_xet_pg_pools_exit(cycle);
    ngx_http_xet_standbys_exit(cycle);
    ngx_http_xet_store_exit(cycle);
    ngx_http_xet_measure_exit_process(cycle);

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    /*
     * Threads may still run: threads that connect to PostgreSQL, and threads
     * of the pools, which nginx tells to end but does not join.  OpenSSL's
     * exit handler frees data that a thread uses when it ends, so this handler
     * must not run.  Our handler is registered last, so it runs first, and it
     * ends the process.
     */

    if (xmcf && xmcf->pg_pools) {
        (void) atexit(ngx_http_xet_exit);
    }
}


/* Ends the process with status 0, like all workers of nginx. */

static void
ngx_http_xet_exit(void)
{
    _exit(0);
}
