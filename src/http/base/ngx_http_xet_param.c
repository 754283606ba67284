
/*
 * Parameters of directives: name=value.
 */

#include "ngx_http_xet.h"


ngx_uint_t
ngx_http_xet_param(ngx_str_t *arg, const char *name, ngx_str_t *value)
{
    size_t  len;

    len = ngx_strlen(name);

    if (arg->len <= len || arg->data[len] != '='
        || ngx_strncmp(arg->data, name, len) != 0)
    {
        return 0;
    }

    value->data = arg->data + len + 1;
    value->len = arg->len - len - 1;

    return 1;
}


char *
ngx_http_xet_param_invalid(ngx_conf_t *cf, ngx_str_t *arg, const char *must)
{
    ngx_str_t  *value;

    value = cf->args->elts;

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\" in \"%V\" directive, it must "
                       "be %s", arg, &value[0], must);

    return NGX_CONF_ERROR;
}


char *
ngx_http_xet_param_duplicate(ngx_conf_t *cf, ngx_str_t *arg)
{
    ngx_str_t  *value;

    value = cf->args->elts;

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "duplicate parameter \"%V\" in \"%V\" directive", arg,
                       &value[0]);

    return NGX_CONF_ERROR;
}
