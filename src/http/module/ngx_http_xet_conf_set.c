
/*
 * Directive setters, but those of keys: the store, sessions, what a location
 * is, and zones of shared memory with who uses them.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_ZONE_PAGES      8         /* at least */

#define NGX_HTTP_XET_UPLOADS_MAX     1000000
#define NGX_HTTP_XET_BYTES_MAX       ((off_t) 1 << 53)
#define NGX_HTTP_XET_PERIOD_MIN      1000      /* ms */
#define NGX_HTTP_XET_PERIOD_MAX      ((ngx_int_t) 31 * 24 * 60 * 60 * 1000)


static ngx_int_t ngx_http_xet_conf_compile(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_complex_value_t *cv);
static ngx_shm_zone_t *ngx_http_xet_conf_zone(ngx_conf_t *cf,
    ngx_str_t *value);
static ngx_int_t ngx_http_xet_conf_bytes(ngx_str_t *value,
    xet_bucket_rate_t *rate);


/* xet_store path [temp=anonymous|named]; */

char *
ngx_http_xet_conf_store(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    ngx_str_t        *value, store;
    ngx_file_info_t   fi;

    if (xmcf->store.data) {
        return "is duplicate";
    }

    value = cf->args->elts;
    store = value[1];

    if (cf->args->nelts == 3) {

        if (ngx_strcmp(value[2].data, "temp=named") == 0) {
            xmcf->anonymous = 0;

        } else if (ngx_strcmp(value[2].data, "temp=anonymous") != 0) {
            return ngx_http_xet_param_invalid(cf, &value[2]);
        }
    }

    if (ngx_conf_full_name(cf->cycle, &store, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    while (store.len > 1 && store.data[store.len - 1] == '/') {
        store.len--;
    }

    if (store.len + NGX_HTTP_XET_XORB_PATH_MAX + 1 > NGX_MAX_PATH) {
        return "path is too long";
    }

    /* zero-terminated copies: threads open them */

    xmcf->store.data = ngx_pnalloc(cf->pool, store.len + 1);
    xmcf->temp.data = ngx_pnalloc(cf->pool, store.len + sizeof("/tmp"));

    if (xmcf->store.data == NULL || xmcf->temp.data == NULL) {
        return NGX_CONF_ERROR;
    }

    xmcf->store.len = store.len;
    ngx_cpystrn(xmcf->store.data, store.data, store.len + 1);

    xmcf->temp.len = ngx_sprintf(xmcf->temp.data, "%V/tmp%Z", &xmcf->store)
                     - xmcf->temp.data - 1;

    if (ngx_file_info(xmcf->store.data, &fi) == NGX_FILE_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_file_info_n " \"%V\" failed", &xmcf->store);
        return NGX_CONF_ERROR;
    }

    if (!ngx_is_dir(&fi)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" is not a directory",
                           &xmcf->store);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/*
 * xet_postgres conninfo [reads=n] [writes=n] [depth=n] [queue=n]
 *                       [timeout=time] [write_timeout=time]
 *                       [connect_timeout=time] [dedup=n]
 *                       [dedup_timeout=time] [ping_timeout=time]
 *                       [lock_timeout=time];
 */

char *
ngx_http_xet_conf_postgres(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    u_char       err[256];
    ngx_int_t    n;
    ngx_str_t   *value, s;
    ngx_uint_t   i, j;

    const struct {
        const char  *name;
        ngx_uint_t  *number;
        ngx_msec_t  *msec;
        ngx_int_t    min;
        ngx_int_t    max;
    } params[] = {
        { "reads", &xmcf->reads, NULL, 1, 64 },
        { "writes", &xmcf->writes, NULL, 1, 64 },
        { "depth", &xmcf->depth, NULL, 1, 256 },
        { "queue", &xmcf->queue, NULL, 1, 1000000 },
        { "timeout", NULL, &xmcf->query_timeout, 1, 3600000 },
        { "write_timeout", NULL, &xmcf->write_timeout, 1,
          86400000 },
        { "connect_timeout", NULL, &xmcf->connect_timeout, 1,
          3600000 },
        { "dedup", &xmcf->dedups, NULL, 1, 64 },
        { "dedup_timeout", NULL, &xmcf->dedup_timeout, 1, 3600000 },
        { "ping_timeout", NULL, &xmcf->ping_timeout, 1, 3600000 },
        { "lock_timeout", NULL, &xmcf->lock_timeout, 1, 86400000 }
    };

    if (xmcf->conninfo.data) {
        return "is duplicate";
    }

    value = cf->args->elts;

    n = ngx_http_xet_pg_check_conninfo(&value[1], err, sizeof(err));

    if (n == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid PostgreSQL connection string: %s", err);
        return NGX_CONF_ERROR;
    }

    if (n == NGX_DECLINED) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "a password in the configuration is shown by "
                           "\"nginx -T\", use a passfile");
    }

    xmcf->conninfo = value[1];

    for (i = 2; i < cf->args->nelts; i++) {

        for (j = 0; j < sizeof(params) / sizeof(params[0]); j++) {

            if (!ngx_http_xet_param(&value[i], params[j].name, &s)) {
                continue;
            }

            n = params[j].number ? ngx_atoi(s.data, s.len)
                                 : ngx_parse_time(&s, 0);

            if (n == NGX_ERROR || n < params[j].min || n > params[j].max) {
                return ngx_http_xet_param_invalid(cf, &value[i]);
            }

            if (params[j].number) {
                *params[j].number = n;

            } else {
                *params[j].msec = n;
            }

            break;
        }

        if (j == sizeof(params) / sizeof(params[0])) {
            return ngx_http_xet_param_invalid(cf, &value[i]);
        }
    }

    return NGX_CONF_OK;
}


/*
 * xet_api, xet_data, xet_token: what cmd->post says of the location.  The first
 * place of "xet_api" or "xet_data" is kept: only when all is read can it be
 * said which directive is missing.
 */

char *
ngx_http_xet_conf_mount(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_mount_t *mount = cmd->post;

    ngx_flag_t                *flag;
    ngx_uint_t                *used;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_xet_main_conf_t  *xmcf;

    flag = (ngx_flag_t *) ((char *) conf + cmd->offset);

    if (*flag != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    *flag = 1;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);

    used = (ngx_uint_t *) ((char *) xmcf + mount->used);
    *used = 1;

    if (mount->keys && xmcf->file == NULL) {
        xmcf->file = cf->conf_file->file.name.data;
        xmcf->line = cf->conf_file->line;
    }

    if (mount->handler) {
        clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
        clcf->handler = mount->handler;
    }

    return NGX_CONF_OK;
}


char *
ngx_http_xet_conf_error(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_http_xet_error_handler;

    return NGX_CONF_OK;
}


char *
ngx_http_xet_conf_verify_body(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);
    xmcf->verify_body = 1;

    return ngx_conf_set_flag_slot(cf, cmd, conf);
}


/* xet_require_tls off | on | $variable; */

char *
ngx_http_xet_conf_require_tls(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_loc_conf_t *xlcf = conf;

    ngx_str_t  *value;

    if (xlcf->tls != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        xlcf->tls = NGX_HTTP_XET_TLS_OFF;
        return NGX_CONF_OK;
    }

    if (ngx_strcmp(value[1].data, "on") == 0) {
        xlcf->tls = NGX_HTTP_XET_TLS_ON;
        return NGX_CONF_OK;
    }

    if (ngx_http_script_variables_count(&value[1]) == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\", \"off\", \"on\" or a "
                           "variable is expected", &value[1]);
        return NGX_CONF_ERROR;
    }

    xlcf->tls = NGX_HTTP_XET_TLS_VALUE;
    xlcf->tls_value = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));

    if (xlcf->tls_value == NULL) {
        return NGX_CONF_ERROR;
    }

    return (ngx_http_xet_conf_compile(cf, &value[1], xlcf->tls_value)
            == NGX_OK)
           ? NGX_CONF_OK : NGX_CONF_ERROR;
}


static ngx_int_t
ngx_http_xet_conf_compile(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_complex_value_t *cv)
{
    ngx_http_compile_complex_value_t  ccv;

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = value;
    ccv.complex_value = cv;

    return ngx_http_compile_complex_value(&ccv);
}


/* xet_url_base url; a value with variables is checked at each request. */

char *
ngx_http_xet_conf_url_base(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_loc_conf_t *xlcf = conf;

    char       *rv;
    ngx_str_t  *value;

    rv = ngx_http_set_complex_value_slot(cf, cmd, conf);

    if (rv != NGX_CONF_OK) {
        return rv;
    }

    value = &xlcf->url_base->value;

    if (xlcf->url_base->lengths == NULL
        && !xet_sign_base_ok(value->data, value->len))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"xet_url_base\" has characters that need to be "
                           "escaped in a URL: \"%V\"", value);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* xet_token_cache zone=name:size; */

char *
ngx_http_xet_conf_token_cache(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    ngx_str_t       *value;
    ngx_shm_zone_t  *zone;

    if (xmcf->token_cache) {
        return "is duplicate";
    }

    value = cf->args->elts;

    zone = ngx_http_xet_conf_zone(cf, &value[1]);
    if (zone == NULL) {
        return NGX_CONF_ERROR;
    }

    zone->init = ngx_http_xet_token_cache_init_zone;
    zone->data = zone;

    xmcf->token_cache = zone;

    return NGX_CONF_OK;
}


/* xet_upload_zone key zone=name:size [concurrent=number] [bytes=size/time]; */

char *
ngx_http_xet_conf_upload_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t *xmcf = conf;

    ngx_int_t              n;
    ngx_str_t             *value, s;
    ngx_uint_t             i;
    ngx_http_xet_limit_t  *limit, **limitp;

    value = cf->args->elts;

    limit = ngx_pcalloc(cf->pool, sizeof(ngx_http_xet_limit_t));
    if (limit == NULL) {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_xet_conf_compile(cf, &value[1], &limit->key) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    for (i = 3; i < cf->args->nelts; i++) {

        if (ngx_http_xet_param(&value[i], "concurrent", &s)
            && limit->concurrent == 0)
        {
            n = ngx_atoi(s.data, s.len);

            if (n < 1 || n > NGX_HTTP_XET_UPLOADS_MAX) {
                return ngx_http_xet_param_invalid(cf, &value[i]);
            }

            limit->concurrent = n;
            continue;
        }

        if (ngx_http_xet_param(&value[i], "bytes", &s)
            && limit->bytes.size == 0
            && ngx_http_xet_conf_bytes(&s, &limit->bytes) == NGX_OK)
        {
            continue;
        }

        return ngx_http_xet_param_invalid(cf, &value[i]);
    }

    limit->zone = ngx_http_xet_conf_zone(cf, &value[2]);
    if (limit->zone == NULL) {
        return NGX_CONF_ERROR;
    }

    limit->zone->init = ngx_http_xet_limit_zone_init;
    limit->zone->data = limit;

    if (xmcf->upload_zones == NULL) {
        xmcf->upload_zones = ngx_array_create(cf->pool, 2,
                                              sizeof(ngx_http_xet_limit_t *));
        if (xmcf->upload_zones == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    limitp = ngx_array_push(xmcf->upload_zones);
    if (limitp == NULL) {
        return NGX_CONF_ERROR;
    }

    *limitp = limit;

    return NGX_CONF_OK;
}


/* xet_upload_limit name | off; */

char *
ngx_http_xet_conf_upload_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_loc_conf_t *xlcf = conf;

    ngx_str_t                 *value, *name;
    ngx_uint_t                 i;
    ngx_http_xet_limit_t     **limits;
    ngx_http_xet_main_conf_t  *xmcf;

    if (xlcf->upload_limit != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        xlcf->upload_limit = NULL;
        return NGX_CONF_OK;
    }

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);

    limits = xmcf->upload_zones ? xmcf->upload_zones->elts : NULL;

    for (i = 0; limits && i < xmcf->upload_zones->nelts; i++) {

        name = &limits[i]->zone->shm.name;

        if (name->len == value[1].len
            && ngx_strncmp(name->data, value[1].data, name->len) == 0)
        {
            xlcf->upload_limit = limits[i];
            return NGX_CONF_OK;
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "no \"xet_upload_zone\" \"%V\" before this", &value[1]);
    return NGX_CONF_ERROR;
}


/* Adds the zone of zone=name:size; NULL for one that is in use already. */

static ngx_shm_zone_t *
ngx_http_xet_conf_zone(ngx_conf_t *cf, ngx_str_t *value)
{
    u_char          *p;
    ssize_t          size;
    ngx_str_t        name, s;
    ngx_shm_zone_t  *zone;

    if (!ngx_http_xet_param(value, "zone", &name)) {
        goto invalid;
    }

    p = (u_char *) ngx_strchr(name.data, ':');

    if (p == NULL || p == name.data) {
        goto invalid;
    }

    name.len = p - name.data;
    s.data = p + 1;
    s.len = value->data + value->len - s.data;

    size = ngx_parse_size(&s);

    if (size == NGX_ERROR) {
        goto invalid;
    }

    if (size < (ssize_t) (NGX_HTTP_XET_ZONE_PAGES * ngx_pagesize)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" is too small",
                           value);
        return NULL;
    }

    zone = ngx_shared_memory_add(cf, &name, size, &ngx_http_xet_module);
    if (zone == NULL) {
        return NULL;
    }

    if (zone->data) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "duplicate zone \"%V\"",
                           &name);
        return NULL;
    }

    return zone;

invalid:

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid zone \"%V\"", value);
    return NULL;
}


/* size/time */

static ngx_int_t
ngx_http_xet_conf_bytes(ngx_str_t *value, xet_bucket_rate_t *rate)
{
    off_t       size;
    u_char     *slash, *last;
    ngx_int_t   period;
    ngx_str_t   s;

    last = value->data + value->len;

    slash = ngx_strlchr(value->data, last, '/');
    if (slash == NULL) {
        return NGX_ERROR;
    }

    s.data = value->data;
    s.len = slash - value->data;

    size = ngx_parse_offset(&s);

    s.data = slash + 1;
    s.len = last - s.data;

    period = ngx_parse_time(&s, 0);

    if (size < 1 || size > NGX_HTTP_XET_BYTES_MAX
        || period < NGX_HTTP_XET_PERIOD_MIN
        || period > NGX_HTTP_XET_PERIOD_MAX)
    {
        return NGX_ERROR;
    }

    rate->size = (uint64_t) size;
    rate->period = (uint64_t) period;

    return NGX_OK;
}
