
/*
 * Directive setters for background jobs, roles of a location, host names and
 * epochs of tokens.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_monitor.h"


/* The maximum number of "xet_token_epoch", without and with a period. */

#define NGX_HTTP_XET_EPOCH_NUMBER    9999999999LL
#define NGX_HTTP_XET_EPOCH_PERIODIC  99
#define NGX_HTTP_XET_EPOCH_MIN       60   /* s */
#define NGX_HTTP_XET_EPOCH_MAX       (366 * 24 * 60 * 60)

#define NGX_HTTP_XET_RATE_MIN        (64 * 1024)
#define NGX_HTTP_XET_RATE_MAX        ((off_t) 16 << 30)
#define NGX_HTTP_XET_GRACE_MAX       ((ngx_int_t) 3650 * 24 * 60 * 60)
#define NGX_HTTP_XET_GC_RATE_MAX     1000000
#define NGX_HTTP_XET_INTERVAL_MIN    1000      /* ms */
#define NGX_HTTP_XET_INTERVAL_MAX    ((ngx_int_t) 366 * 24 * 60 * 60 * 1000)


static char *ngx_http_xet_conf_bg_job(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf, const ngx_http_xet_param_t *params, const char *must);
static void ngx_http_xet_conf_handler(ngx_conf_t *cf, ngx_command_t *cmd,
    ngx_http_core_loc_conf_t *clcf, ngx_http_handler_pt handler);
static ngx_uint_t ngx_http_xet_conf_host_ok(const ngx_str_t *name);


/* xet_gc off | on [grace=time] [interval=time] [rate=number]; */

char *
ngx_http_xet_conf_gc(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    static const ngx_http_xet_param_t  params[] = {
        { "grace", NGX_HTTP_XET_PARAM_SEC,
          offsetof(ngx_http_xet_main_conf_t, gc_grace),
          0, NGX_HTTP_XET_GRACE_MAX, NULL },
        { "interval", NGX_HTTP_XET_PARAM_MSEC,
          offsetof(ngx_http_xet_main_conf_t, gc_interval),
          NGX_HTTP_XET_INTERVAL_MIN, NGX_HTTP_XET_INTERVAL_MAX, NULL },
        { "rate", NGX_HTTP_XET_PARAM_NUM,
          offsetof(ngx_http_xet_main_conf_t, gc_rate),
          1, NGX_HTTP_XET_GC_RATE_MAX, NULL },
        { NULL, 0, 0, 0, 0, NULL }
    };

    return ngx_http_xet_conf_bg_job(cf, cmd, conf, params,
                                   "\"grace=\" of up to 3650d, "
                                   "\"interval=\" of 1s to 366d or "
                                   "\"rate=\" of 1 to 1000000");
}


/* xet_scrub off | on [rate=size] [interval=time]; */

char *
ngx_http_xet_conf_scrub(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    static const ngx_http_xet_param_t  params[] = {
        { "rate", NGX_HTTP_XET_PARAM_SIZE,
          offsetof(ngx_http_xet_main_conf_t, scrub_rate),
          NGX_HTTP_XET_RATE_MIN, NGX_HTTP_XET_RATE_MAX, NULL },
        { "interval", NGX_HTTP_XET_PARAM_MSEC,
          offsetof(ngx_http_xet_main_conf_t, scrub_interval),
          NGX_HTTP_XET_INTERVAL_MIN, NGX_HTTP_XET_INTERVAL_MAX, NULL },
        { NULL, 0, 0, 0, 0, NULL }
    };

    return ngx_http_xet_conf_bg_job(cf, cmd, conf, params,
                                   "\"rate=\" of 64k to 16g or "
                                   "\"interval=\" of 1s to 366d");
}


/* Sets the flag of a background job, at cmd->offset, and its parameters. */

static char *
ngx_http_xet_conf_bg_job(ngx_conf_t *cf, ngx_command_t *cmd, void *conf,
    const ngx_http_xet_param_t *params, const char *must)
{
    ngx_str_t   *value;
    ngx_flag_t  *on;

    on = (ngx_flag_t *) ((u_char *) conf + cmd->offset);

    if (*on != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    value = cf->args->elts;

    *on = (ngx_strcmp(value[1].data, "on") == 0);

    if (!*on && (ngx_strcmp(value[1].data, "off") != 0 || cf->args->nelts > 2))
    {
        return ngx_http_xet_param_invalid(cf, &value[1],
                                          "\"on\", or \"off\" without further "
                                          "parameters");
    }

    return ngx_http_xet_params(cf, 2, params, conf, must);
}


/*
 * xet_api, xet_data, xet_token: set the role of the location, in cmd->post.
 * The position of the first "xet_api" or "xet_data" is recorded for errors
 * about missing directives, which are found after parsing.
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
        ngx_http_xet_conf_handler(cf, cmd, clcf, mount->handler);
    }

    return ngx_http_xet_conf_keep(cf, cmd, conf);
}


/* xet_hub on | off: a Hub needs everything that the API needs. */

char *
ngx_http_xet_conf_hub(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                 *value;
    ngx_flag_t                *flag;
    ngx_http_xet_main_conf_t  *xmcf;

    value = cf->args->elts;
    flag = (ngx_flag_t *) ((char *) conf + cmd->offset);

    if (*flag != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    if (ngx_strcasecmp(value[1].data, (u_char *) "off") == 0) {
        *flag = 0;
        return NGX_CONF_OK;
    }

    if (ngx_strcasecmp(value[1].data, (u_char *) "on") != 0) {
        return ngx_http_xet_param_invalid(cf, &value[1],
                                          "\"on\" or \"off\"");
    }

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);
    xmcf->api = 1;

    return ngx_http_xet_conf_mount(cf, cmd, conf);
}


/*
 * Sets the content handler of a location.  A location has only one handler, so
 * warns if another handler was set before.
 */

static void
ngx_http_xet_conf_handler(ngx_conf_t *cf, ngx_command_t *cmd,
    ngx_http_core_loc_conf_t *clcf, ngx_http_handler_pt handler)
{
    if (clcf->handler && clcf->handler != handler) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "\"%V\" replaces another directive of the location "
                           "that answers requests, such as \"proxy_pass\", "
                           "\"fastcgi_pass\" or \"xet_api\", which has no "
                           "effect; use a separate location for each",
                           &cmd->name);
    }

    clcf->handler = handler;
}


/* xet_metrics [prometheus|json];  xet_status [repos] [page=uri]; */

char *
ngx_http_xet_conf_monitor(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_loc_conf_t *xlcf = conf;

    ngx_str_t                 *value;
    ngx_uint_t                 i, status;
    ngx_conf_enum_t           *e;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_xet_main_conf_t  *xmcf;

    if (xlcf->monitor != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    /* the first row is the default for a directive without a form */

    e = cmd->post;
    value = cf->args->elts;
    status = (ngx_strcmp(value[0].data, "xet_status") == 0);
    xlcf->monitor = e->value;

    for (i = 1; i < cf->args->nelts; i++) {

        if (status && ngx_strncmp(value[i].data, "page=/", 6) == 0) {
            xlcf->monitor_page.data = value[i].data + 5;
            xlcf->monitor_page.len = value[i].len - 5;
            continue;
        }

        for (e = cmd->post; e->name.data; e++) {
            if (ngx_strcmp(e->name.data, value[i].data) == 0) {
                break;
            }
        }

        if (e->name.len == 0) {
            return ngx_http_xet_param_invalid(cf, &value[i],
                       status ? "\"repos\" or \"page=/uri\""
                              : "\"prometheus\" or \"json\"");
        }

        xlcf->monitor = e->value;
    }

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);
    xmcf->monitor = 1;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    ngx_http_xet_conf_handler(cf, cmd, clcf, ngx_http_xet_monitor_handler);

    return NGX_CONF_OK;
}


/* xet_error [hub]; */

char *
ngx_http_xet_conf_error(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_loc_conf_t *xlcf = conf;

    ngx_str_t                 *value;
    ngx_http_core_loc_conf_t  *clcf;

    value = cf->args->elts;

    if (xlcf->error != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    xlcf->error = NGX_HTTP_XET_ERROR_API;

    if (cf->args->nelts == 2) {

        if (ngx_strcmp(value[1].data, "hub") != 0) {
            return ngx_http_xet_param_invalid(cf, &value[1], "\"hub\"");
        }

        xlcf->error = NGX_HTTP_XET_ERROR_HUB;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    ngx_http_xet_conf_handler(cf, cmd, clcf, ngx_http_xet_error_handler);

    return ngx_http_xet_conf_keep(cf, cmd, conf);
}


char *
ngx_http_xet_conf_verify_body(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                      *rv;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);
    xmcf->verify_body = 1;

    rv = ngx_conf_set_flag_slot(cf, cmd, conf);

    return (rv == NGX_CONF_OK) ? ngx_http_xet_conf_keep(cf, cmd, conf) : rv;
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
        return ngx_http_xet_conf_keep(cf, cmd, conf);
    }

    if (ngx_http_script_variables_count(&value[1]) == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" in \"%V\" directive, it "
                           "must be \"off\", \"on\" or a variable",
                           &value[1], &cmd->name);
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


ngx_int_t
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


/*
 * xet_url_base url ...; a single URL may have variables, and is then parsed for
 * each request.
 */

char *
ngx_http_xet_conf_url_base(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_loc_conf_t *xlcf = conf;

    xet_url_t   *url;
    ngx_str_t   *value;
    ngx_uint_t   i, n;

    if (xlcf->url_base || xlcf->urls) {
        return "is duplicate";
    }

    value = cf->args->elts;
    n = cf->args->nelts;

    if (n == 2 && ngx_http_script_variables_count(&value[1])
        && (value[1].data[0] == '$'
            || ngx_strncasecmp(value[1].data, (u_char *) "http://", 7) == 0
            || ngx_strncasecmp(value[1].data, (u_char *) "https://", 8) == 0))
    {
        char  *rv;

        rv = ngx_http_set_complex_value_slot(cf, cmd, conf);

        return (rv == NGX_CONF_OK) ? ngx_http_xet_conf_keep(cf, cmd, conf)
                                   : rv;
    }

    xlcf->urls = ngx_array_create(cf->pool, n - 1, sizeof(xet_url_t));
    if (xlcf->urls == NULL) {
        return NGX_CONF_ERROR;
    }

    for (i = 1; i < n; i++) {
        url = ngx_array_push(xlcf->urls);

        if (!xet_url_parse(url, value[i].data, value[i].len)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid URL \"%V\" in \"xet_url_base\": it "
                               "must be http[s]://host[:port][/path], without "
                               "characters that must be escaped in a URL; "
                               "only a single URL may have variables",
                               &value[i]);
            return NGX_CONF_ERROR;
        }
    }

    return ngx_http_xet_conf_keep(cf, cmd, conf);
}


/* xet_proxies address | CIDR | unix: ...; */

char *
ngx_http_xet_conf_proxies(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_loc_conf_t *xlcf = conf;

    ngx_str_t   *value;
    ngx_cidr_t  *cidr;
    ngx_uint_t   i;

    if (xlcf->proxies != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    xlcf->proxies = ngx_array_create(cf->pool, cf->args->nelts - 1,
                                     sizeof(ngx_cidr_t));
    if (xlcf->proxies == NULL) {
        return NGX_CONF_ERROR;
    }

    for (i = 1; i < cf->args->nelts; i++) {
        cidr = ngx_array_push(xlcf->proxies);
        ngx_memzero(cidr, sizeof(ngx_cidr_t));

#if (NGX_HAVE_UNIX_DOMAIN)

        if (value[i].len == 5
            && ngx_strncmp(value[i].data, "unix:", 5) == 0)
        {
            cidr->family = AF_UNIX;
            continue;
        }

#endif

        if (ngx_ptocidr(&value[i], cidr) == NGX_ERROR) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid address \"%V\" in \"xet_proxies\": an "
                               "address, a network such as 10.0.0.0/8, or "
                               "\"unix:\" is expected", &value[i]);
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


/* xet_hosts name ...; names have no ports, which nginx removes from Host. */

char *
ngx_http_xet_conf_hosts(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_xet_loc_conf_t *xlcf = conf;

    ngx_str_t   *value, *name;
    ngx_uint_t   i;

    if (xlcf->hosts != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    xlcf->hosts = ngx_array_create(cf->pool, cf->args->nelts - 1,
                                   sizeof(ngx_str_t));
    if (xlcf->hosts == NULL) {
        return NGX_CONF_ERROR;
    }

    for (i = 1; i < cf->args->nelts; i++) {

        if (!ngx_http_xet_conf_host_ok(&value[i])) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid name \"%V\" in \"xet_hosts\": a host "
                               "name or an address without scheme, port and "
                               "pattern is expected, or \"*\" for any name",
                               &value[i]);
            return NGX_CONF_ERROR;
        }

        name = ngx_array_push(xlcf->hosts);
        if (name == NULL) {
            return NGX_CONF_ERROR;
        }

        *name = value[i];
    }

    return NGX_CONF_OK;
}


/*
 * Records the names in "server_name", except patterns, because nginx frees its
 * own list of server names after the configuration is read.
 */

ngx_int_t
ngx_http_xet_conf_names(ngx_conf_t *cf, ngx_http_xet_loc_conf_t *conf)
{
    ngx_str_t                 *name;
    ngx_uint_t                 i;
    ngx_http_server_name_t    *names;
    ngx_http_xet_loc_conf_t   *server;
    ngx_http_core_srv_conf_t  *cscf;

    cscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);
    server = cscf->ctx->loc_conf[ngx_http_xet_module.ctx_index];

    if (server->names == NULL) {

        server->names = ngx_array_create(cf->pool, 2, sizeof(ngx_str_t));
        if (server->names == NULL) {
            return NGX_ERROR;
        }

        names = cscf->server_names.elts;

        for (i = 0; i < cscf->server_names.nelts; i++) {

            if (!ngx_http_xet_conf_host_ok(&names[i].name)
                || names[i].name.data[0] == '*')
            {
                continue;
            }

            name = ngx_array_push(server->names);
            if (name == NULL) {
                return NGX_ERROR;
            }

            *name = names[i].name;
        }
    }

    conf->names = server->names;

    return NGX_OK;
}


static ngx_uint_t
ngx_http_xet_conf_host_ok(const ngx_str_t *name)
{
    u_char  c;
    size_t  i;

    if (name->len == 1 && name->data[0] == '*') {
        return 1;
    }

    if (name->len > 2 && name->data[0] == '[') {
        return name->data[name->len - 1] == ']';
    }

    for (i = 0; i < name->len; i++) {
        c = ngx_tolower(name->data[i]);

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'
              || c == '.' || c == '_'))
        {
            return 0;
        }
    }

    return name->len != 0 && name->data[name->len - 1] != '.';
}


/*
 * xet_token_epoch off | [number] [period=time];
 *
 * ngx_http_xet_token.c explains how number and period are used.  With a period,
 * the number has at most two digits.
 */

char *
ngx_http_xet_conf_token_epoch(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_xet_loc_conf_t *xlcf = conf;

    off_t        number;
    time_t       period;
    ngx_str_t   *value, s;
    ngx_uint_t   i;

    static const char  epochs[] = "\"off\", \"period=\" of 1m to 366d, "
                                       "a number, or a period and a number";

    if (xlcf->token_number != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    value = cf->args->elts;

    xlcf->token_number = NGX_HTTP_XET_NO_NUMBER;
    xlcf->token_period = 0;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {
        return NGX_CONF_OK;
    }

    number = NGX_HTTP_XET_NO_NUMBER;
    period = 0;

    for (i = 1; i < cf->args->nelts; i++) {

        if (period == 0 && ngx_http_xet_param(&value[i], "period", &s)) {
            period = ngx_parse_time(&s, 1);

            if (period < NGX_HTTP_XET_EPOCH_MIN
                || period > NGX_HTTP_XET_EPOCH_MAX)
            {
                return ngx_http_xet_param_invalid(cf, &value[i], epochs);
            }

        } else if (number == NGX_HTTP_XET_NO_NUMBER) {
            number = ngx_atoof(value[i].data, value[i].len);

            if (number == NGX_ERROR || number > NGX_HTTP_XET_EPOCH_NUMBER)
            {
                return ngx_http_xet_param_invalid(cf, &value[i], epochs);
            }

        } else {
            return ngx_http_xet_param_invalid(cf, &value[i], epochs);
        }
    }

    if (period && number > NGX_HTTP_XET_EPOCH_PERIODIC) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the number must not exceed %d if a period is set",
                           NGX_HTTP_XET_EPOCH_PERIODIC);
        return NGX_CONF_ERROR;
    }

    xlcf->token_number = number;
    xlcf->token_period = period;

    return NGX_CONF_OK;
}
