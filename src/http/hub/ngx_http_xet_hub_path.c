
/*
 * Determines the path of a request to a Hub.
 *
 * The path comes from the request line: in nginx's decoded path
 * "refs%2Fpr%2F1/file" becomes "refs/pr/1/file", which does not show where the
 * revision ends.  If the URI was rewritten, or if nginx has merged slashes or
 * dot segments, the request line is not the path that nginx used to choose the
 * location.  In these cases the decoded path is used, with percent signs
 * encoded again, so that it is decoded only once.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"


static ngx_int_t ngx_http_xet_hub_path_encode(ngx_http_request_t *r,
    ngx_str_t *path);


ngx_uint_t
ngx_http_xet_hub_people(ngx_http_request_t *r, const ngx_str_t *path)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    return xlcf->hub_pages.data[0] == '/'
           && (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))
           && (path->len < 5 || ngx_memcmp(path->data, "/api/", 5) != 0);
}


ngx_int_t
ngx_http_xet_hub_path(ngx_http_request_t *r, ngx_str_t *path)
{
    u_char                   *src, *dst, *args;
    ngx_int_t                 rc;
    ngx_str_t                 decoded;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    *path = r->unparsed_uri;

    args = ngx_strlchr(path->data, path->data + path->len, '?');

    if (args) {
        path->len = args - path->data;
    }

    decoded.data = ngx_pnalloc(r->pool, path->len + 1);
    if (decoded.data == NULL) {
        return NGX_ERROR;
    }

    src = path->data;
    dst = decoded.data;

    ngx_unescape_uri(&dst, &src, path->len, 0);

    decoded.len = dst - decoded.data;

    if (!r->valid_unparsed_uri || decoded.len != r->uri.len
        || ngx_memcmp(decoded.data, r->uri.data, decoded.len) != 0)
    {
        rc = ngx_http_xet_hub_path_encode(r, path);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (path->len > xlcf->hub_base.len
        && ngx_memcmp(path->data, xlcf->hub_base.data, xlcf->hub_base.len)
           == 0)
    {
        path->data += xlcf->hub_base.len;
        path->len -= xlcf->hub_base.len;

    } else if (xlcf->hub_base.len) {
        path->len = 0;
    }

    return NGX_OK;
}


/* Encodes the percent signs in nginx's decoded path. */

static ngx_int_t
ngx_http_xet_hub_path_encode(ngx_http_request_t *r, ngx_str_t *path)
{
    u_char  *p, *last;
    size_t   n;

    last = r->uri.data + r->uri.len;
    n = 0;

    for (p = r->uri.data; p < last; p++) {
        n += (*p == '%');
    }

    *path = r->uri;

    if (n == 0) {
        return NGX_OK;
    }

    path->data = ngx_pnalloc(r->pool, r->uri.len + 2 * n);
    if (path->data == NULL) {
        return NGX_ERROR;
    }

    path->len = 0;

    for (p = r->uri.data; p < last; p++) {
        path->data[path->len++] = *p;

        if (*p == '%') {
            path->data[path->len++] = '2';
            path->data[path->len++] = '5';
        }
    }

    return NGX_OK;
}
