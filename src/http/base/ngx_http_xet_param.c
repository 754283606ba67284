
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
ngx_http_xet_param_invalid(ngx_conf_t *cf, ngx_str_t *arg)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid parameter \"%V\"", arg);

    return NGX_CONF_ERROR;
}
