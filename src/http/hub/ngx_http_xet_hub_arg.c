
/*
 * What a request to a Hub asks for, besides its path: arguments, and the
 * accepted type of the response.  Everything runs in the event loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"


ngx_int_t
ngx_http_xet_hub_arg(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    u_char     *src, *dst;
    ngx_str_t   arg;

    ngx_str_null(value);

    if (ngx_http_arg(r, (u_char *) name, ngx_strlen(name), &arg) != NGX_OK) {
        return NGX_OK;
    }

    value->data = ngx_pnalloc(r->pool, arg.len + 1);
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    src = arg.data;
    dst = value->data;

    ngx_unescape_uri(&dst, &src, arg.len, 0);

    value->len = dst - value->data;

    return NGX_OK;
}


ngx_uint_t
ngx_http_xet_hub_flag(ngx_http_request_t *r, const char *name)
{
    ngx_str_t  value;

    return ngx_http_arg(r, (u_char *) name, ngx_strlen(name), &value) == NGX_OK
           && ((value.len == 4
                && ngx_strncasecmp(value.data, (u_char *) "true", 4) == 0)
               || (value.len == 1 && value.data[0] == '1'));
}
