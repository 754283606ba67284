
/*
 * The module: its table of directives, and the phases that it takes part in.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_upload.h"


static ngx_int_t ngx_http_xet_init(ngx_conf_t *cf);


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


static ngx_conf_num_bounds_t  ngx_http_xet_terms_bounds = {
    ngx_conf_check_num_bounds, 8192, 16777216
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

    { ngx_string("xet_read_thread_pool"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_xet_main_conf_t, read_pool_name),
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
      ngx_http_xet_conf_url_base,
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

    { ngx_string("xet_verify_body"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_http_xet_conf_verify_body,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, verify_body),
      NULL },

    { ngx_string("xet_shard_max_chunks"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, shard_chunks),
      NULL },

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

    { ngx_string("xet_read_buffer"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, read_buffer),
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

    { ngx_string("xet_plan_terms"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, plan_terms),
      &ngx_http_xet_terms_bounds },

    { ngx_string("xet_plan_buffer"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, plan_buffer),
      NULL },

    { ngx_string("xet_telemetry"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_xet_loc_conf_t, telemetry),
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

    if (!xmcf->api && !xmcf->data && !xmcf->mint && !xmcf->verify_body) {
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

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_xet_preaccess_handler;

    if (ngx_http_xet_data_filter_init(cf) != NGX_OK
        || ngx_http_xet_body_filter_init(cf) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return xmcf->verify_body ? ngx_http_xet_verify_init(cf) : NGX_OK;
}
