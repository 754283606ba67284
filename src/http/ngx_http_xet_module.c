
/*
 * The module: directives, phases, start and end of processes.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_body_filter.h"
#include "ngx_http_xet_lanes.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_TEMP_AGE        86400     /* seconds */
#define NGX_HTTP_XET_SWEEP_INTERVAL  3600000   /* ms */


static ngx_int_t ngx_http_xet_init(ngx_conf_t *cf);
static void *ngx_http_xet_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_xet_init_main_conf(ngx_conf_t *cf, void *conf);
static void *ngx_http_xet_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_xet_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_xet_init_module(ngx_cycle_t *cycle);
static void ngx_http_xet_clean_temp(ngx_cycle_t *cycle,
    ngx_http_xet_main_conf_t *xmcf);
static ngx_int_t ngx_http_xet_make_dir(ngx_cycle_t *cycle, u_char *path);
static ngx_int_t ngx_http_xet_init_process(ngx_cycle_t *cycle);
static void ngx_http_xet_sweep_handler(ngx_event_t *ev);
static void ngx_http_xet_exit_process(ngx_cycle_t *cycle);


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


static ngx_conf_enum_t  ngx_http_xet_url_modes[] = {
    { ngx_string("strict"), NGX_HTTP_XET_URL_STRICT },
    { ngx_string("cacheable"), NGX_HTTP_XET_URL_CACHEABLE },
    { ngx_null_string, 0 }
};


static ngx_conf_num_bounds_t  ngx_http_xet_quantum_bounds = {
    ngx_conf_check_num_bounds, 1, 366 * 24 * 60 * 60
};


static ngx_conf_num_bounds_t  ngx_http_xet_progress_bounds = {
    ngx_conf_check_num_bounds, 100, 300000
};


static ngx_conf_num_bounds_t  ngx_http_xet_nice_bounds = {
    ngx_conf_check_num_bounds, 0, 19
};


static ngx_conf_num_bounds_t  ngx_http_xet_batch_bounds = {
    ngx_conf_check_num_bounds, 1, 1024
};


static ngx_conf_num_bounds_t  ngx_http_xet_leeway_bounds = {
    ngx_conf_check_num_bounds, 0, 600
};


static ngx_conf_num_bounds_t  ngx_http_xet_period_bounds = {
    ngx_conf_check_num_bounds, 3600, 366 * 24 * 60 * 60
};


static ngx_conf_num_bounds_t  ngx_http_xet_lifetime_bounds = {
    ngx_conf_check_num_bounds, 1, 366 * 24 * 60 * 60
};


static ngx_conf_num_bounds_t  ngx_http_xet_ttl_bounds = {
    ngx_conf_check_num_bounds, 60, 366 * 24 * 60 * 60
};


static ngx_conf_num_bounds_t  ngx_http_xet_ranges_bounds = {
    ngx_conf_check_num_bounds, 1, XET_SIGN_RANGES_MAX
};


static ngx_command_t  ngx_http_xet_commands[] = {

    { ngx_string("xet_store"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE12,
      ngx_http_xet_conf_store,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_postgres"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_xet_conf_postgres,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_thread_pool"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_xet_main_conf_t, pool_name),
      NULL },

    { ngx_string("xet_thread_nice"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_xet_main_conf_t, nice),
      &ngx_http_xet_nice_bounds },

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

    { ngx_string("xet_dedup_period"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_sec_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_xet_main_conf_t, dedup_period),
      &ngx_http_xet_period_bounds },

    { ngx_string("xet_api"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_xet_conf_api,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_api_base"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, api_base),
      NULL },

    { ngx_string("xet_auth"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, auth),
      &ngx_http_xet_auth_modes },

    { ngx_string("xet_access"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, access),
      &ngx_http_xet_access_modes },

    { ngx_string("xet_dedup_scope"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, dedup_scope),
      &ngx_http_xet_access_modes },

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

    { ngx_string("xet_token_issuer"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, issuer),
      NULL },

    { ngx_string("xet_token_audience"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, audience),
      NULL },

    { ngx_string("xet_token_leeway"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_sec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, leeway),
      &ngx_http_xet_leeway_bounds },

    { ngx_string("xet_token"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_xet_conf_mint,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_token_lifetime"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_sec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, token_lifetime),
      &ngx_http_xet_lifetime_bounds },

    { ngx_string("xet_token_scope"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, token_scope),
      NULL },

    { ngx_string("xet_token_repo"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, token_repo),
      NULL },

    { ngx_string("xet_token_subject"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, token_subject),
      NULL },

    { ngx_string("xet_token_cas_url"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, token_cas_url),
      NULL },

    { ngx_string("xet_data"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_xet_conf_data,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_error"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_xet_conf_error,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("xet_url_base"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, url_base),
      NULL },

    { ngx_string("xet_cors"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_set_complex_value_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, cors),
      NULL },

    { ngx_string("xet_url_ttl"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_sec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, url_ttl),
      &ngx_http_xet_ttl_bounds },

    { ngx_string("xet_url_mode"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, url_mode),
      &ngx_http_xet_url_modes },

    { ngx_string("xet_url_quantum"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_sec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, url_quantum),
      &ngx_http_xet_quantum_bounds },

    { ngx_string("xet_url_ranges"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, url_ranges),
      &ngx_http_xet_ranges_bounds },

    { ngx_string("xet_xorb_max_size"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, xorb_max),
      NULL },

    { ngx_string("xet_body_buffer"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, body_buffer),
      NULL },

    { ngx_string("xet_retry_after"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_sec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, retry_after),
      NULL },

    { ngx_string("xet_progress_interval"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, progress),
      &ngx_http_xet_progress_bounds },

    { ngx_string("xet_batch_max"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, batch_max),
      &ngx_http_xet_batch_bounds },

    { ngx_string("xet_telemetry"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, telemetry),
      NULL },

      ngx_null_command
};


static ngx_event_t       ngx_http_xet_sweep_event;
static ngx_connection_t  ngx_http_xet_sweep_dummy;


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


/* The context of a request, made when first asked for. */

ngx_http_xet_ctx_t *
ngx_http_xet_ctx(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (ctx == NULL) {
        ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_ctx_t));
        if (ctx == NULL) {
            return NULL;
        }

        ngx_http_set_ctx(r, ctx, ngx_http_xet_module);
    }

    return ctx;
}


static ngx_int_t
ngx_http_xet_init(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_xet_main_conf_t   *xmcf;
    ngx_http_core_main_conf_t  *cmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);

    if (!xmcf->api && !xmcf->data) {
        return NGX_OK;
    }

    if (ngx_http_xet_conf_check(cf, xmcf) != NGX_OK) {
        return NGX_ERROR;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_ACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_xet_access_handler;

    return ngx_http_xet_body_filter_init(cf);
}


static void *
ngx_http_xet_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_xet_main_conf_t));
    if (xmcf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     xmcf->store = { 0, NULL };
     *     xmcf->conninfo = { 0, NULL };
     *     xmcf->pool_name = { 0, NULL };
     *     xmcf->url_keys = NULL;
     *     xmcf->dedup_secret = { 0, NULL };
     *     xmcf->token_keys = NULL;
     *     xmcf->token_sign = NULL;
     *     xmcf->token_cache = NULL;
     *     xmcf->api = 0;
     *     xmcf->data = 0;
     */

    xmcf->anonymous = 1;

    xmcf->reads = 2;
    xmcf->writes = 4;
    xmcf->depth = 32;
    xmcf->queue = 1024;
    xmcf->query_timeout = 15000;
    xmcf->write_timeout = 300000;
    xmcf->connect_timeout = 5000;

    xmcf->nice = NGX_CONF_UNSET;
    xmcf->dedup_period = NGX_CONF_UNSET;

    xmcf->suite = &xet_suite_default;

    return xmcf;
}


static char *
ngx_http_xet_init_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    ngx_conf_init_value(xmcf->nice, 0);
    ngx_conf_init_value(xmcf->dedup_period, 7 * 24 * 60 * 60);

    return NGX_CONF_OK;
}


static void *
ngx_http_xet_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_xet_loc_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_xet_loc_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     conf->api_base = { 0, NULL };
     *     conf->url_base = NULL;
     *     conf->cors = NULL;
     *     conf->tls_value = NULL;
     *     conf->issuer = { 0, NULL };
     *     conf->audience = { 0, NULL };
     *     conf->token_scope = NULL;
     *     conf->token_repo = NULL;
     *     conf->token_subject = NULL;
     *     conf->token_cas_url = NULL;
     */

    conf->api = NGX_CONF_UNSET;
    conf->data = NGX_CONF_UNSET;
    conf->mint = NGX_CONF_UNSET;
    conf->auth = NGX_HTTP_XET_AUTH_UNSET;
    conf->access = NGX_CONF_UNSET_UINT;
    conf->dedup_scope = NGX_CONF_UNSET_UINT;
    conf->tls = NGX_CONF_UNSET_UINT;
    conf->leeway = NGX_CONF_UNSET;
    conf->token_lifetime = NGX_CONF_UNSET;
    conf->url_ttl = NGX_CONF_UNSET;
    conf->url_mode = NGX_CONF_UNSET_UINT;
    conf->url_quantum = NGX_CONF_UNSET;
    conf->url_ranges = NGX_CONF_UNSET_UINT;
    conf->xorb_max = NGX_CONF_UNSET_SIZE;
    conf->body_buffer = NGX_CONF_UNSET_SIZE;
    conf->retry_after = NGX_CONF_UNSET;
    conf->progress = NGX_CONF_UNSET_MSEC;
    conf->telemetry = NGX_CONF_UNSET;
    conf->batch_max = NGX_CONF_UNSET_UINT;

    return conf;
}


static char *
ngx_http_xet_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_xet_loc_conf_t *prev = parent;
    ngx_http_xet_loc_conf_t *conf = child;

    ngx_http_core_loc_conf_t  *clcf;

    /* "xet_api" and "xet_data" are not inherited, as handlers never are */

    if (conf->api == NGX_CONF_UNSET) {
        conf->api = 0;
    }

    if (conf->data == NGX_CONF_UNSET) {
        conf->data = 0;
    }

    if (conf->mint == NGX_CONF_UNSET) {
        conf->mint = 0;
    }

    ngx_conf_merge_str_value(conf->api_base, prev->api_base, "/api");
    ngx_conf_merge_sec_value(conf->url_ttl, prev->url_ttl, 3600);
    ngx_conf_merge_uint_value(conf->url_mode, prev->url_mode,
                              NGX_HTTP_XET_URL_STRICT);
    ngx_conf_merge_sec_value(conf->url_quantum, prev->url_quantum, 600);
    ngx_conf_merge_uint_value(conf->url_ranges, prev->url_ranges, 1);
    ngx_conf_merge_size_value(conf->xorb_max, prev->xorb_max,
                              64 * 1024 * 1024 + 64 * 1024);
    ngx_conf_merge_size_value(conf->body_buffer, prev->body_buffer,
                              256 * 1024);
    ngx_conf_merge_sec_value(conf->retry_after, prev->retry_after, 5);
    ngx_conf_merge_msec_value(conf->progress, prev->progress, 15000);
    ngx_conf_merge_value(conf->telemetry, prev->telemetry, 1);
    ngx_conf_merge_uint_value(conf->batch_max, prev->batch_max, 100);

    if (conf->url_base == NULL) {
        conf->url_base = prev->url_base;
    }

    if (conf->cors == NULL) {
        conf->cors = prev->cors;
    }

    if (ngx_http_xet_conf_merge_token(cf, prev, conf) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    if (conf->data) {
        clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

        /* the ETag is the xorb's hash; nginx's own would be a second one */

        clcf->etag = 0;

        /* a set limit also keeps newer nginx from judging by overhead */

        clcf->max_ranges = ngx_min(clcf->max_ranges, XET_SIGN_RANGES_MAX);
    }

    if (!conf->api) {
        return NGX_CONF_OK;
    }

    if (conf->auth == NGX_HTTP_XET_AUTH_UNSET) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"xet_api\" needs \"xet_auth\": \"token\", or "
                           "\"off\" where everybody who reaches the location "
                           "may read and write");
        return NGX_CONF_ERROR;
    }

    if (conf->api_base.len
        && (conf->api_base.data[0] != '/'
            || conf->api_base.data[conf->api_base.len - 1] == '/'))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"xet_api_base\" must be empty or begin with a "
                           "slash and not end with one");
        return NGX_CONF_ERROR;
    }

    if (conf->body_buffer < 16 * 1024) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"xet_body_buffer\" must be 16k at least");
        return NGX_CONF_ERROR;
    }

    if (conf->xorb_max < XET_CHUNK_MAX + XET_XORB_HEADER_LEN
        || (uint64_t) conf->xorb_max >= (uint64_t) 1 << 32)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"xet_xorb_max_size\" must hold a chunk and be "
                           "less than 4g");
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/*
 * The folders of the store, all of them at start-up, so that no upload meets
 * a folder whose own entry is not yet durable.
 */

static ngx_int_t
ngx_http_xet_init_module(ngx_cycle_t *cycle)
{
    int                        fd;
    u_char                     path[NGX_MAX_PATH], *p, *last;
    ngx_int_t                  rc;
    ngx_uint_t                 i, created;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    if (xmcf == NULL || !xmcf->api || ngx_test_config) {
        return NGX_OK;
    }

    if (ngx_http_xet_make_dir(cycle, xmcf->temp.data) == NGX_ERROR) {
        return NGX_ERROR;
    }

    ngx_http_xet_clean_temp(cycle, xmcf);

    last = path + NGX_MAX_PATH;

    p = ngx_slprintf(path, last, "%V/xorbs%Z", &xmcf->store) - 1;

    if (ngx_http_xet_make_dir(cycle, path) == NGX_ERROR) {
        return NGX_ERROR;
    }

    p = ngx_slprintf(p, last, "/" NGX_HTTP_XET_NAMESPACE "%Z") - 1;

    if (ngx_http_xet_make_dir(cycle, path) == NGX_ERROR) {
        return NGX_ERROR;
    }

    created = 0;

    for (i = 0; i < 256; i++) {
        (void) ngx_slprintf(p, last, "/%02xui%Z", i);

        rc = ngx_http_xet_make_dir(cycle, path);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        created |= (rc == NGX_OK);
    }

    if (!created) {
        return NGX_OK;
    }

    *p = '\0';

    fd = open((char *) path, O_RDONLY|O_DIRECTORY);

    if (fd == -1 || syncfs(fd) == -1) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "xet: syncing \"%s\" failed", path);

        if (fd != -1) {
            close(fd);
        }

        return NGX_ERROR;
    }

    close(fd);

    return NGX_OK;
}


/*
 * What a crash has left in <store>/tmp, where files have names there: old
 * enough to be nobody's upload, also of other nodes on the store.
 */

static void
ngx_http_xet_clean_temp(ngx_cycle_t *cycle, ngx_http_xet_main_conf_t *xmcf)
{
    u_char           path[NGX_MAX_PATH];
    ngx_dir_t        dir;
    ngx_file_info_t  fi;

    if (ngx_open_dir(&xmcf->temp, &dir) == NGX_ERROR) {
        return;
    }

    while (ngx_read_dir(&dir) == NGX_OK) {

        if (ngx_de_name(&dir)[0] == '.') {
            continue;
        }

        (void) ngx_snprintf(path, NGX_MAX_PATH, "%V/%s%Z", &xmcf->temp,
                            ngx_de_name(&dir));

        if (ngx_file_info(path, &fi) == NGX_FILE_ERROR || !ngx_is_file(&fi)
            || ngx_file_mtime(&fi) > ngx_time() - NGX_HTTP_XET_TEMP_AGE)
        {
            continue;
        }

        if (ngx_delete_file(path) == NGX_FILE_ERROR) {
            ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno,
                          ngx_delete_file_n " \"%s\" failed", path);
        }
    }

    if (ngx_close_dir(&dir) == NGX_ERROR) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                      ngx_close_dir_n " \"%V\" failed", &xmcf->temp);
    }
}


/* NGX_OK, or NGX_DECLINED when it was there. */

static ngx_int_t
ngx_http_xet_make_dir(ngx_cycle_t *cycle, u_char *path)
{
    ngx_core_conf_t  *ccf;

    if (ngx_create_dir(path, 0755) == NGX_FILE_ERROR) {

        if (ngx_errno == NGX_EEXIST) {
            return NGX_DECLINED;
        }

        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      ngx_create_dir_n " \"%s\" failed", path);
        return NGX_ERROR;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (geteuid() == 0 && ccf->user != (ngx_uid_t) NGX_CONF_UNSET_UINT
        && chown((char *) path, ccf->user, -1) == -1)
    {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "chown(\"%s\", %d) failed", path, ccf->user);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_init_process(ngx_cycle_t *cycle)
{
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


static void
ngx_http_xet_exit_process(ngx_cycle_t *cycle)
{
    ngx_http_xet_lanes_exit(cycle);
}
