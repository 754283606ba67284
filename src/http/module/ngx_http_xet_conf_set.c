
/*
 * Directive setters, but those of keys and tokens.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_store.h"


static char *ngx_http_xet_conf_mount(ngx_conf_t *cf, ngx_flag_t *flag,
    ngx_http_handler_pt handler);
static void ngx_http_xet_conf_used(ngx_conf_t *cf,
    ngx_http_xet_main_conf_t *xmcf);


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


char *
ngx_http_xet_conf_api(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_loc_conf_t *xlcf = conf;

    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);
    xmcf->api = 1;

    ngx_http_xet_conf_used(cf, xmcf);

    return ngx_http_xet_conf_mount(cf, &xlcf->api, ngx_http_xet_api_handler);
}


/* Sets no content handler: nginx's static one or a proxy's sends the bytes. */

char *
ngx_http_xet_conf_data(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_loc_conf_t *xlcf = conf;

    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);
    xmcf->data = 1;

    ngx_http_xet_conf_used(cf, xmcf);

    return ngx_http_xet_conf_mount(cf, &xlcf->data, NULL);
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
ngx_http_xet_conf_mint(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_loc_conf_t *xlcf = conf;

    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);
    xmcf->mint = 1;

    return ngx_http_xet_conf_mount(cf, &xlcf->mint,
                                   ngx_http_xet_token_handler);
}


char *
ngx_http_xet_conf_verify_body(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);
    xmcf->verify_body = 1;

    return ngx_conf_set_flag_slot(cf, cmd, conf);
}


/* Sets the flag of a location, and its content handler unless that is NULL. */

static char *
ngx_http_xet_conf_mount(ngx_conf_t *cf, ngx_flag_t *flag,
    ngx_http_handler_pt handler)
{
    ngx_http_core_loc_conf_t  *clcf;

    if (*flag != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    *flag = 1;

    if (handler) {
        clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
        clcf->handler = handler;
    }

    return NGX_CONF_OK;
}


/*
 * Remembers where "xet_api" or "xet_data" was first: only when all is read can
 * it be said which directive is missing.
 */

static void
ngx_http_xet_conf_used(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf)
{
    if (xmcf->file == NULL) {
        xmcf->file = cf->conf_file->file.name.data;
        xmcf->line = cf->conf_file->line;
    }
}


/* xet_require_tls off | on | $variable; */

char *
ngx_http_xet_conf_require_tls(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_loc_conf_t *xlcf = conf;

    ngx_str_t                         *value;
    ngx_http_compile_complex_value_t   ccv;

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

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = &value[1];
    ccv.complex_value = xlcf->tls_value;

    return (ngx_http_compile_complex_value(&ccv) == NGX_OK) ? NGX_CONF_OK
                                                            : NGX_CONF_ERROR;
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
