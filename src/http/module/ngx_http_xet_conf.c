
/*
 * Creates and merges configurations, sets defaults, and runs checks that need
 * the complete configuration.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_monitor.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_READ_POOL     "xet read"
#define NGX_HTTP_XET_READ_THREADS  "threads=8"
#define NGX_HTTP_XET_PRESIGN_MAX   (7 * 24 * 60 * 60)   /* s, limit of S3 */
#define NGX_HTTP_XET_READ_FILES    (1024 * 1024)        /* bytes per read job */
#define NGX_HTTP_XET_READ_OBJECTS  (2 * 1024 * 1024)


/*
 * The unset value and the merge function of each kind of directive in
 * directives.def.
 */

#define XET_UNSET_FLAG(value)    value = NGX_CONF_UNSET;
#define XET_UNSET_NUM(value)     value = NGX_CONF_UNSET_UINT;
#define XET_UNSET_WORD(value)    value = NGX_CONF_UNSET_UINT;
#define XET_UNSET_SIZE(value)    value = NGX_CONF_UNSET_SIZE;
#define XET_UNSET_SEC(value)     value = NGX_CONF_UNSET;
#define XET_UNSET_MSEC(value)    value = NGX_CONF_UNSET_MSEC;
#define XET_UNSET_STR(value)     /* set by ngx_pcalloc() */
#define XET_UNSET_VALUE(value)   /* set by ngx_pcalloc() */

#define XET_MERGE_FLAG           ngx_conf_merge_value
#define XET_MERGE_NUM            ngx_conf_merge_uint_value
#define XET_MERGE_WORD           ngx_conf_merge_uint_value
#define XET_MERGE_SIZE           ngx_conf_merge_size_value
#define XET_MERGE_SEC            ngx_conf_merge_sec_value
#define XET_MERGE_MSEC           ngx_conf_merge_msec_value
#define XET_MERGE_STR            ngx_conf_merge_str_value
#define XET_MERGE_VALUE(conf, prev, value)                                    \
    if (conf == NULL) {                                                       \
        conf = prev;                                                          \
    }


extern ngx_module_t  ngx_thread_pool_module;


static void ngx_http_xet_conf_merge_content(ngx_conf_t *cf,
    const ngx_http_xet_loc_conf_t *prev, ngx_http_xet_loc_conf_t *conf);
static void ngx_http_xet_conf_inherit(ngx_http_core_loc_conf_t *clcf,
    ngx_int_t *value, ngx_int_t outer, ngx_http_handler_pt handler);
static void ngx_http_xet_conf_merge_values(ngx_http_xet_main_conf_t *xmcf,
    ngx_http_xet_loc_conf_t *prev, ngx_http_xet_loc_conf_t *conf);
static char *ngx_http_xet_conf_token(ngx_conf_t *cf,
    ngx_http_xet_loc_conf_t *conf);
static ngx_int_t ngx_http_xet_conf_core(ngx_conf_t *cf,
    ngx_http_xet_loc_conf_t *conf);
static char *ngx_http_xet_conf_plan(ngx_conf_t *cf,
    ngx_http_xet_loc_conf_t *prev, ngx_http_xet_loc_conf_t *conf);
static ngx_uint_t ngx_http_xet_conf_base_ok(const ngx_str_t *base);
static ngx_uint_t ngx_http_xet_conf_pages_ok(const ngx_str_t *pages);
static const char *ngx_http_xet_conf_fault(ngx_conf_t *cf,
    ngx_http_xet_loc_conf_t *conf, const char **name);
static const char *ngx_http_xet_fault_token(ngx_http_xet_main_conf_t *xmcf,
    ngx_http_xet_loc_conf_t *conf, const char **name);
static const char *ngx_http_xet_fault_hub(ngx_http_xet_main_conf_t *xmcf,
    ngx_http_xet_loc_conf_t *conf, const char **name);
static const char *ngx_http_xet_fault_api(ngx_http_xet_main_conf_t *xmcf,
    ngx_http_xet_loc_conf_t *conf, const char **name);
static const char *ngx_http_xet_fault_size(ngx_http_xet_loc_conf_t *conf,
    const char **name);
static ngx_int_t ngx_http_xet_conf_cache(ngx_conf_t *cf,
    ngx_open_file_cache_t *cache);
static ngx_int_t ngx_http_xet_conf_pools(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf);
static ngx_thread_pool_t *ngx_http_xet_conf_read_pool(ngx_conf_t *cf);
static ngx_int_t ngx_http_xet_conf_same_device(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf);


void *
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
     *     xmcf->store = NULL;
     *     xmcf->primary = NULL;
     *     xmcf->standbys = NULL;
     *     xmcf->url_keys = NULL;
     *     xmcf->dedup_secret = { 0, NULL };
     *     xmcf->token_keys = NULL;
     *     xmcf->token_sign = NULL;
     *     xmcf->token_cache = NULL;
     *     xmcf->plan_cache = { NULL };
     *     xmcf->chunk_filter = { NULL };
     *     xmcf->upload_zones = NULL;
     *     xmcf->peers = NULL;
     *     xmcf->metrics_zone = NULL;
     *     xmcf->api = 0;
     *     xmcf->data = 0;
     *     xmcf->mint = 0;
     *     xmcf->verify_body = 0;
     *     xmcf->monitor = 0;
     */

    if (ngx_array_init(&xmcf->caches, cf->pool, 1,
                       sizeof(ngx_open_file_cache_t *))
        != NGX_OK
        || ngx_array_init(&xmcf->logs, cf->pool, 2, sizeof(ngx_log_t *))
           != NGX_OK
        || ngx_http_xet_conf_lists(cf, xmcf) != NGX_OK)
    {
        return NULL;
    }

#define XET_HTTP_DIRECTIVE(name, kind, member, value, post)                   \
    XET_UNSET_##kind(xmcf->member)
#define XET_POSTGRES_PARAM(name, kind, member, value, min, max, words)        \
    xmcf->member = value;

#include "directives.def"

    xmcf->gc = NGX_CONF_UNSET;
    xmcf->gc_grace = 56 * 24 * 60 * 60;
    xmcf->gc_interval = 60 * 60 * 1000;
    xmcf->gc_rate = 1000;
    xmcf->scrub = NGX_CONF_UNSET;
    xmcf->scrub_rate = 8 * 1024 * 1024;
    xmcf->scrub_interval = (ngx_msec_t) 30 * 24 * 60 * 60 * 1000;

    xmcf->suite = &xet_suite_default;

    return xmcf;
}


char *
ngx_http_xet_init_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    /* the http level inherits from no other level */

#define XET_HTTP_DIRECTIVE(name, kind, member, value, post)                   \
    XET_MERGE_##kind(xmcf->member, xmcf->member, value)

#include "directives.def"

    ngx_conf_init_value(xmcf->gc, 0);
    ngx_conf_init_value(xmcf->scrub, 0);

    return NGX_CONF_OK;
}


void *
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
     *     conf->url_base = NULL;
     *     conf->urls = NULL;
     *     conf->tls_value = NULL;
     *     conf->serves = 0;
     *     conf->hub_at = NULL;
     *     conf->monitor_page = { 0, NULL };
     */

#define XET_DIRECTIVE(name, contexts, kind, member, value, post)              \
    XET_UNSET_##kind(conf->member)

#include "directives.def"

    conf->api = NGX_CONF_UNSET;
    conf->data = NGX_CONF_UNSET;
    conf->mint = NGX_CONF_UNSET;
    conf->hub = NGX_CONF_UNSET;
    conf->error = NGX_CONF_UNSET;
    conf->monitor = NGX_CONF_UNSET;
    conf->tls = NGX_CONF_UNSET_UINT;
    conf->token_number = NGX_CONF_UNSET;
    conf->token_period = NGX_CONF_UNSET;
    conf->hosts = NGX_CONF_UNSET_PTR;
    conf->proxies = NGX_CONF_UNSET_PTR;
    conf->verify_body = NGX_CONF_UNSET;
    conf->upload_limit = NGX_CONF_UNSET_PTR;

    return conf;
}


char *
ngx_http_xet_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_xet_loc_conf_t *prev = parent;
    ngx_http_xet_loc_conf_t *conf = child;

    const char                *fault, *name;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);
    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (ngx_http_xet_conf_location(cf, prev, conf) != NGX_OK
        || ngx_http_xet_mask_log(xmcf, clcf->error_log) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    ngx_http_xet_conf_merge_content(cf, prev, conf);

    if ((conf->api || conf->hub || conf->monitor)
        && ngx_http_xet_conf_names(cf, conf) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    ngx_http_xet_conf_merge_values(xmcf, prev, conf);

    if (ngx_http_xet_conf_token(cf, conf) != NGX_CONF_OK
        || ngx_http_xet_conf_core(cf, conf) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    fault = ngx_http_xet_conf_fault(cf, conf, &name);

    if (fault) {
        ngx_http_xet_conf_say(cf, NGX_LOG_EMERG, conf, name, "%s", fault);
        return NGX_CONF_ERROR;
    }

    return ngx_http_xet_conf_plan(cf, prev, conf);
}


/*
 * Merges the role of a location.  Nested locations do not inherit roles, but
 * the blocks of "if" and "limit_except", which nginx treats as locations, do.
 * For an "if" block nginx runs the handler of the enclosing location, but a
 * "limit_except" block needs its own copy of the handler.
 */

static void
ngx_http_xet_conf_merge_content(ngx_conf_t *cf,
    const ngx_http_xet_loc_conf_t *prev, ngx_http_xet_loc_conf_t *conf)
{
    ngx_http_xet_loc_conf_t   *server;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_core_srv_conf_t  *cscf;

    static const ngx_http_xet_loc_conf_t  none;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (!clcf->noname || clcf->handler) {
        prev = &none;
    }

    ngx_http_xet_conf_inherit(clcf, &conf->api, prev->api,
                              ngx_http_xet_api_handler);
    ngx_http_xet_conf_inherit(clcf, &conf->mint, prev->mint,
                              ngx_http_xet_token_handler);
    ngx_http_xet_conf_inherit(clcf, &conf->hub, prev->hub,
                              ngx_http_xet_hub_handler);
    ngx_http_xet_conf_inherit(clcf, &conf->monitor, prev->monitor,
                              ngx_http_xet_monitor_handler);

    if (conf->monitor_page.data == NULL) {
        conf->monitor_page = prev->monitor_page;
    }

    ngx_http_xet_conf_inherit(clcf, &conf->error, prev->error, NULL);

    if (conf->api || conf->mint || conf->hub) {
        cscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);
        server = cscf->ctx->loc_conf[ngx_http_xet_module.ctx_index];
        server->serves = 1;

        if (conf->hub) {
            server->hub_at = &conf->hub_base;
        }
    }
}


static void
ngx_http_xet_conf_inherit(ngx_http_core_loc_conf_t *clcf, ngx_int_t *value,
    ngx_int_t outer, ngx_http_handler_pt handler)
{
    if (*value != NGX_CONF_UNSET) {
        return;
    }

    *value = (outer == NGX_CONF_UNSET) ? 0 : outer;

    if (*value && handler && clcf->lmt_excpt) {
        clcf->handler = handler;
    }
}


static void
ngx_http_xet_conf_merge_values(ngx_http_xet_main_conf_t *xmcf,
    ngx_http_xet_loc_conf_t *prev, ngx_http_xet_loc_conf_t *conf)
{
#define XET_DIRECTIVE(name, contexts, kind, member, value, post)              \
    XET_MERGE_##kind(conf->member, prev->member, value)

#include "directives.def"

    /* "xet_data" is inherited, like access rules */

    ngx_conf_merge_value(conf->data, prev->data, 0);

    ngx_conf_merge_value(conf->verify_body, prev->verify_body, 0);
    ngx_conf_merge_ptr_value(conf->upload_limit, prev->upload_limit, NULL);
    ngx_conf_merge_ptr_value(conf->hosts, prev->hosts, NULL);

    ngx_conf_merge_ptr_value(conf->proxies, prev->proxies, NULL);

    if (conf->url_base == NULL && conf->urls == NULL) {
        conf->url_base = prev->url_base;
        conf->urls = prev->urls;
    }

    /* "xet_token_epoch" sets the number and the period */

    ngx_conf_merge_off_value(conf->token_number, prev->token_number,
                             NGX_HTTP_XET_NO_NUMBER);
    ngx_conf_merge_sec_value(conf->token_period, prev->token_period, 0);

    if (conf->tls == NGX_CONF_UNSET_UINT) {
        conf->tls_value = prev->tls_value;
    }

    ngx_conf_merge_uint_value(conf->tls, prev->tls, NGX_HTTP_XET_TLS_OFF);

    conf->repos = (conf->access == NGX_CONF_UNSET_UINT)
                  ? conf->auth == NGX_HTTP_XET_AUTH_TOKEN
                  : conf->access == NGX_HTTP_XET_ACCESS_REPO;

    /*
     * each request to an object store costs a round trip, so reads are larger
     */

    if (conf->read_buffer == NGX_CONF_UNSET_SIZE) {
        conf->read_buffer = (xmcf->store && xmcf->store->s3)
                            ? NGX_HTTP_XET_READ_OBJECTS
                            : NGX_HTTP_XET_READ_FILES;
    }
}


/* Restricts core nginx directives in a location of this module. */

static ngx_int_t
ngx_http_xet_conf_core(ngx_conf_t *cf, ngx_http_xet_loc_conf_t *conf)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if ((conf->api || conf->data || conf->mint || conf->hub
         || conf->verify_body)
        && clcf->post_action.len)
    {
        /*
         * post_action would start when a client disconnects, and take over the
         * request while statements and jobs still use it
         */

        if (!clcf->noname) {
            ngx_http_xet_conf_say(cf, NGX_LOG_WARN, conf, "xet_api",
                                  "this module ignores \"post_action\" in "
                                  "location \"%V\"", &clcf->name);
        }

        ngx_str_null(&clcf->post_action);
    }

    if (!conf->data) {
        return NGX_OK;
    }

    /* the ETag is the name of the copy; nginx must not add its own */

    clcf->etag = 0;

    /* without a limit, newer nginx rejects ranges with a large overhead */

    clcf->max_ranges = ngx_min(clcf->max_ranges, XET_SIGN_RANGES_MAX);

    return ngx_http_xet_conf_cache(cf, clcf->open_file_cache);
}


/* Checks that "xet_plan_buffer" can sort plans of "xet_plan_terms" terms. */

static char *
ngx_http_xet_conf_plan(ngx_conf_t *cf, ngx_http_xet_loc_conf_t *prev,
    ngx_http_xet_loc_conf_t *conf)
{
    size_t       room;
    const char  *name;

    room = xet_plan_spool_room(conf->plan_terms);

    if ((!conf->api && !conf->verify_body) || conf->plan_buffer >= room) {
        return NGX_CONF_OK;
    }

    name = (conf->plan_buffer == prev->plan_buffer) ? "xet_plan_terms"
                                                    : "xet_plan_buffer";

    ngx_http_xet_conf_say(cf, NGX_LOG_EMERG, conf, name,
                          "\"xet_plan_buffer\" must be at least %uzk for %ui "
                          "\"xet_plan_terms\"", room / 1024,
                          conf->plan_terms);

    return NGX_CONF_ERROR;
}


/*
 * Sets the issuer, audience and leeway of tokens that a location accepts or
 * issues.
 */

static char *
ngx_http_xet_conf_token(ngx_conf_t *cf, ngx_http_xet_loc_conf_t *conf)
{
    u_char                     number[8];
    xet_hash_t                 mark;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);

    conf->token.iss.data = conf->issuer.len ? conf->issuer.data : NULL;
    conf->token.iss.len = conf->issuer.len;
    conf->token.aud.data = conf->audience.len ? conf->audience.data : NULL;
    conf->token.aud.len = conf->audience.len;
    conf->token.skew = (uint64_t) conf->leeway;

    /* cached results of checks are valid only for the same rules */

    xet_hash_keyed(xmcf->token_mark.bytes, conf->issuer.data,
                   conf->issuer.len, &mark);
    xet_hash_keyed(mark.bytes, conf->audience.data, conf->audience.len,
                   &mark);
    xet_put_u64(number, (uint64_t) conf->leeway);
    xet_hash_keyed(mark.bytes, number, sizeof(number), &conf->token_mark);

    if (conf->mint
        && ((conf->token.iss.data
             && !xet_token_text_ok(&conf->token.iss, XET_TOKEN_NAME_MAX))
            || (conf->token.aud.data
                && !xet_token_text_ok(&conf->token.aud, XET_TOKEN_NAME_MAX))))
    {
        ngx_http_xet_conf_say(cf, NGX_LOG_EMERG, conf,
                              (conf->token.iss.data
                               && !xet_token_text_ok(&conf->token.iss,
                                                     XET_TOKEN_NAME_MAX))
                              ? "xet_token_issuer" : "xet_token_audience",
                              "\"xet_token_issuer\" and "
                              "\"xet_token_audience\" of \"xet_token\" must "
                              "be at most %d bytes of UTF-8 without control "
                              "characters", XET_TOKEN_NAME_MAX);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/*
 * Returns whether a base path is valid: empty, or "/name" without a final
 * slash.
 */

static ngx_uint_t
ngx_http_xet_conf_base_ok(const ngx_str_t *base)
{
    return base->len == 0
           || (base->data[0] == '/' && base->data[base->len - 1] != '/');
}


/*
 * Checks the configuration of a location.  Returns an error message and sets
 * the name of the directive, or returns NULL.
 */

static const char *
ngx_http_xet_conf_fault(ngx_conf_t *cf, ngx_http_xet_loc_conf_t *conf,
    const char **name)
{
    const char                *fault;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);

    fault = ngx_http_xet_fault_token(xmcf, conf, name);

    if (fault == NULL) {
        fault = ngx_http_xet_fault_hub(xmcf, conf, name);
    }

    if (fault == NULL) {
        fault = ngx_http_xet_fault_api(xmcf, conf, name);
    }

    if (fault == NULL && (conf->api || conf->verify_body)) {
        fault = ngx_http_xet_fault_size(conf, name);
    }

    return fault;
}


static const char *
ngx_http_xet_fault_token(ngx_http_xet_main_conf_t *xmcf,
    ngx_http_xet_loc_conf_t *conf, const char **name)
{
    if (conf->api && conf->auth == NGX_HTTP_XET_AUTH_TOKEN
        && xmcf->token_keys == NULL)
    {
        *name = "xet_auth";

        return "\"xet_auth token\" needs \"xet_token_key\"";
    }

    if (conf->api && conf->access == NGX_HTTP_XET_ACCESS_REPO
        && conf->auth != NGX_HTTP_XET_AUTH_TOKEN)
    {
        *name = "xet_access";

        return "\"xet_access repo\" needs \"xet_auth token\"";
    }

    if (conf->mint && xmcf->token_sign == NULL) {
        *name = "xet_token";

        return "\"xet_token\" needs a secret or a private key, see "
               "\"xet_token_key\"";
    }

    if (conf->mint && conf->read_only && conf->token_scope
        && conf->token_scope->lengths == NULL
        && (conf->token_scope->value.len != 4
            || ngx_strncmp(conf->token_scope->value.data, "read", 4) != 0))
    {
        *name = "xet_token_scope";

        return "\"xet_token_scope\" must be \"read\" or have variables in a "
               "server with \"xet_read_only on\"";
    }

    return NULL;
}


static const char *
ngx_http_xet_fault_hub(ngx_http_xet_main_conf_t *xmcf,
    ngx_http_xet_loc_conf_t *conf, const char **name)
{
    if (!conf->hub) {
        return NULL;
    }

    if (conf->auth == NGX_HTTP_XET_AUTH_UNSET) {
        *name = "xet_hub";

        return "\"xet_hub\" needs \"xet_auth\": \"token\", or \"off\" to let "
               "everyone who can connect read, write and delete";
    }

    if (xmcf->token_sign == NULL) {
        *name = "xet_hub";

        return "\"xet_hub\" needs a secret or a private key, see "
               "\"xet_token_key\"";
    }

    if (!ngx_http_xet_conf_base_ok(&conf->hub_base)) {
        *name = "xet_hub_base";

        return "\"xet_hub_base\" must be empty or begin with a slash and not "
               "end with one";
    }

    if (!ngx_http_xet_conf_pages_ok(&conf->hub_pages)) {
        *name = "xet_hub_pages";

        return "\"xet_hub_pages\" must be \"off\" or begin with a slash";
    }

    return NULL;
}


/* Every value has a first byte: nginx terminates strings with a zero. */

static ngx_uint_t
ngx_http_xet_conf_pages_ok(const ngx_str_t *pages)
{
    return pages->data[0] == '/'
           || (pages->len == 3 && ngx_memcmp(pages->data, "off", 3) == 0);
}


static const char *
ngx_http_xet_fault_api(ngx_http_xet_main_conf_t *xmcf,
    ngx_http_xet_loc_conf_t *conf, const char **name)
{
    if (!conf->api) {
        return NULL;
    }

    if (conf->auth == NGX_HTTP_XET_AUTH_UNSET) {
        *name = "xet_api";

        return "\"xet_api\" needs \"xet_auth\": \"token\", or \"off\" to let "
               "everyone who can connect read, write and delete";
    }

    if (conf->data_mode == NGX_HTTP_XET_DATA_PRESIGNED) {
        *name = "xet_data_mode";

        if (xmcf->store == NULL || xmcf->store->s3 == NULL) {
            return "\"xet_data_mode presigned\" needs a bucket in "
                   "\"xet_store\"";
        }

        if (conf->url_mode != NGX_HTTP_XET_URL_STRICT) {
            return "\"xet_data_mode presigned\" signs each range and can't be "
                   "combined with \"xet_url_mode cacheable\"";
        }

        if (conf->url_ttl + conf->url_quantum > NGX_HTTP_XET_PRESIGN_MAX) {
            return "with \"xet_data_mode presigned\" the sum of "
                   "\"xet_url_ttl\" and \"xet_url_quantum\" must not exceed "
                   "seven days";
        }
    }

    if (conf->grants && (xmcf->store == NULL || xmcf->store->s3 == NULL)) {
        *name = "xet_grants";

        return "\"xet_grants on\" needs a bucket in \"xet_store\"";
    }

    if (conf->grants && conf->auth == NGX_HTTP_XET_AUTH_TOKEN
        && xmcf->token_sign == NULL)
    {
        *name = "xet_grants";

        return "\"xet_grants on\" with \"xet_auth token\" needs a secret or a "
               "private key, see \"xet_token_key\"";
    }

    return NULL;
}


static const char *
ngx_http_xet_fault_size(ngx_http_xet_loc_conf_t *conf, const char **name)
{
    if (!ngx_http_xet_conf_base_ok(&conf->api_base)) {
        *name = "xet_api_base";

        return "\"xet_api_base\" must be empty or begin with a slash and not "
               "end with one";
    }

    if (conf->body_buffer < 16 * 1024) {
        *name = "xet_body_buffer";

        return "\"xet_body_buffer\" must be at least 16k";
    }

    if (conf->read_buffer < XET_CHUNK_MAX) {
        *name = "xet_read_buffer";

        return "\"xet_read_buffer\" must be at least 128k, the size of a "
               "chunk";
    }

    if (conf->xorb_max < XET_CHUNK_MAX + XET_XORB_HEADER_LEN
        || (uint64_t) conf->xorb_max >= (uint64_t) 1 << 32)
    {
        *name = "xet_xorb_max_size";

        return "\"xet_xorb_max_size\" must be at least the size of a chunk, "
               "and less than 4g";
    }

    return NULL;
}


/*
 * Adds an open file cache to the list of caches, unless the list already
 * contains it: many locations inherit the same cache.
 */

static ngx_int_t
ngx_http_xet_conf_cache(ngx_conf_t *cf, ngx_open_file_cache_t *cache)
{
    ngx_uint_t                 i;
    ngx_open_file_cache_t    **caches;
    ngx_http_xet_main_conf_t  *xmcf;

    if (cache == NULL) {
        return NGX_OK;
    }

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);
    caches = xmcf->caches.elts;

    for (i = 0; i < xmcf->caches.nelts; i++) {
        if (caches[i] == cache) {
            return NGX_OK;
        }
    }

    caches = ngx_array_push(&xmcf->caches);
    if (caches == NULL) {
        return NGX_ERROR;
    }

    *caches = cache;

    return NGX_OK;
}


/*
 * Checks that the main configuration has all directives that any location
 * needs.
 */

ngx_int_t
ngx_http_xet_conf_check(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf)
{
    const char  *missing;

    if (ngx_http_xet_conf_standbys(cf, xmcf) != NGX_OK) {
        return NGX_ERROR;
    }

    missing = NULL;

    if (xmcf->api) {
        missing = (xmcf->store == NULL) ? "xet_store"
                  : (xmcf->primary == NULL) ? "xet_postgres"
                  : (xmcf->url_keys == NULL) ? "xet_url_key"
                  : NULL;

    } else if (xmcf->data && xmcf->url_keys == NULL) {
        missing = "xet_url_key";
    }

    if (missing) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"%s\" is required by \"%s\" in %s:%ui", missing,
                      xmcf->api ? "xet_api" : "xet_data", xmcf->file,
                      xmcf->line);
        return NGX_ERROR;
    }

    if (!xmcf->api && !xmcf->verify_body) {
        return NGX_OK;
    }

    if (xmcf->api && ngx_http_xet_conf_grant_key(cf, xmcf) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_http_xet_conf_pools(cf, xmcf) != NGX_OK
        || ngx_http_xet_conf_peers(cf, xmcf) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return xmcf->api ? ngx_http_xet_conf_same_device(cf, xmcf) : NGX_OK;
}


/*
 * Finds the thread pool for uploads and the thread pool for reads.
 *
 * A disk that blocks writes also blocks one thread per upload, and reads must
 * not wait for these threads.  So there are two pools even if the configuration
 * has no pool for reads.  In this case the handler of nginx's directive
 * "thread_pool" is called to create the pool, since nginx has a default size
 * only for the pool "default".  The name has a blank, so that no configured
 * pool has the same name.
 */

static ngx_int_t
ngx_http_xet_conf_pools(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf)
{
    xmcf->pool = ngx_thread_pool_add(cf, xmcf->pool_name.len
                                         ? &xmcf->pool_name : NULL);
    if (xmcf->pool == NULL) {
        return NGX_ERROR;
    }

    /* an edge that only verifies bodies runs no read jobs */

    if (!xmcf->api) {
        return NGX_OK;
    }

    xmcf->read_pool = xmcf->read_pool_name.len
                      ? ngx_thread_pool_add(cf, &xmcf->read_pool_name)
                      : ngx_http_xet_conf_read_pool(cf);

    if (xmcf->read_pool == NULL) {
        return NGX_ERROR;
    }

    if (xmcf->read_pool == xmcf->pool) {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "\"xet_read_thread_pool\" is also the pool of uploads: "
                      "reads will wait for writes");
    }

    return NGX_OK;
}


static ngx_thread_pool_t *
ngx_http_xet_conf_read_pool(ngx_conf_t *cf)
{
    char           *rv;
    void           *conf;
    ngx_array_t     args, *saved;
    ngx_command_t  *cmd;

    static ngx_str_t  value[] = {
        ngx_string("thread_pool"),
        ngx_string(NGX_HTTP_XET_READ_POOL),
        ngx_string(NGX_HTTP_XET_READ_THREADS)
    };

    conf = ngx_get_conf(cf->cycle->conf_ctx, ngx_thread_pool_module);

    for (cmd = ngx_thread_pool_module.commands; cmd->name.len; cmd++) {

        if (cmd->name.len != value[0].len
            || ngx_strncmp(cmd->name.data, value[0].data, value[0].len) != 0)
        {
            continue;
        }

        ngx_memzero(&args, sizeof(ngx_array_t));

        args.elts = value;
        args.nelts = sizeof(value) / sizeof(value[0]);

        saved = cf->args;
        cf->args = &args;

        rv = cmd->set(cf, cmd, conf);

        cf->args = saved;

        return (rv == NGX_CONF_OK) ? ngx_thread_pool_add(cf, &value[1]) : NULL;
    }

    return NULL;
}


/*
 * Checks that <store>/tmp and <store>/xorbs, if both exist, are on one device.
 */

static ngx_int_t
ngx_http_xet_conf_same_device(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf)
{
    u_char           path[NGX_MAX_PATH];
    ngx_file_info_t  store, temp;

    if (xmcf->store->s3) {
        return NGX_OK;
    }

    (void) ngx_snprintf(path, NGX_MAX_PATH, "%V/xorbs%Z", &xmcf->store->name);

    if (ngx_file_info(path, &store) == NGX_FILE_ERROR
        || ngx_file_info(xmcf->store->temp.data, &temp) == NGX_FILE_ERROR)
    {
        return NGX_OK;
    }

    if (store.st_dev != temp.st_dev) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"%s\" and \"%V\" must be on the same file system",
                      path, &xmcf->store->temp);
        return NGX_ERROR;
    }

    return NGX_OK;
}
