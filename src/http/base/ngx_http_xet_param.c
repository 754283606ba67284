
/*
 * Parameters of directives, in the form name=value.
 */

#include "ngx_http_xet.h"


static ngx_uint_t ngx_http_xet_param_is(const ngx_http_xet_param_t *param,
    ngx_str_t *arg, ngx_str_t *value);
static ngx_int_t ngx_http_xet_param_set(const ngx_http_xet_param_t *param,
    ngx_str_t *value, u_char *member);


char *
ngx_http_xet_params(ngx_conf_t *cf, ngx_uint_t first,
    const ngx_http_xet_param_t *params, void *conf, const char *must)
{
    ngx_str_t                   *value, s;
    ngx_uint_t                   i, seen, bit;
    const ngx_http_xet_param_t  *param;

    value = cf->args->elts;
    seen = 0;

    for (i = first; i < cf->args->nelts; i++) {

        for (param = params, bit = 1; param->name; param++, bit <<= 1) {
            if (ngx_http_xet_param_is(param, &value[i], &s)) {
                break;
            }
        }

        if (param->name == NULL) {
            return ngx_http_xet_param_invalid(cf, &value[i], must);
        }

        if (seen & bit) {
            return ngx_http_xet_param_duplicate(cf, &value[i]);
        }

        seen |= bit;

        if (ngx_http_xet_param_set(param, &s, (u_char *) conf + param->offset)
            != NGX_OK)
        {
            return ngx_http_xet_param_invalid(cf, &value[i],
                                              param->must ? param->must : must);
        }
    }

    return NGX_CONF_OK;
}


static ngx_uint_t
ngx_http_xet_param_is(const ngx_http_xet_param_t *param, ngx_str_t *arg,
    ngx_str_t *value)
{
    if (param->kind == NGX_HTTP_XET_PARAM_FLAG) {
        return ngx_strcmp(arg->data, param->name) == 0;
    }

    return ngx_http_xet_param(arg, param->name, value);
}


static ngx_int_t
ngx_http_xet_param_set(const ngx_http_xet_param_t *param, ngx_str_t *value,
    u_char *member)
{
    off_t  n;

    switch (param->kind) {

    case NGX_HTTP_XET_PARAM_FLAG:
        *(ngx_flag_t *) member = 1;
        return NGX_OK;

    case NGX_HTTP_XET_PARAM_STR:
        *(ngx_str_t *) member = *value;
        return value->len ? NGX_OK : NGX_ERROR;

    case NGX_HTTP_XET_PARAM_NUM:
        n = ngx_atoi(value->data, value->len);
        break;

    case NGX_HTTP_XET_PARAM_SIZE:
        n = ngx_parse_offset(value);
        break;

    default:
        n = ngx_parse_time(value, param->kind == NGX_HTTP_XET_PARAM_SEC);
        break;
    }

    if (n == NGX_ERROR || n < param->min || n > param->max) {
        return NGX_ERROR;
    }

    switch (param->kind) {

    case NGX_HTTP_XET_PARAM_SIZE:
        *(off_t *) member = n;
        break;

    case NGX_HTTP_XET_PARAM_MSEC:
        *(ngx_msec_t *) member = (ngx_msec_t) n;
        break;

    default:
        *(ngx_uint_t *) member = (ngx_uint_t) n;
        break;
    }

    return NGX_OK;
}


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
