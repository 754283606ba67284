
/*
 * From the path of a request to a route of the Hub, by one table.
 *
 * The path is that of the request line: nginx's has the escapes decoded, and
 * of "refs%2Fpr%2F1/file" nobody could tell any more where the revision ends.
 * Where rules have changed the URI, or nginx has merged slashes or parts with
 * dots, what was sent is not what the location was chosen for, and the decoded
 * one counts: its percent signs are encoded again, so that it is decoded once.
 *
 * Where "xet_hub_pages" is on, what is not below "/api/" may be a page, too.
 *
 * It is looked up by whoever wants to know: the handler, variables, what is
 * counted and what is told of the request when it is done.  Nothing is kept,
 * for a request may have come to another location in between.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"


static const ngx_http_xet_hub_route_t  ngx_http_xet_hub_routes[] = {

#define XET_HUB(form, methods, access, act, group, name)                      \
    { form, methods, access, act, ngx_string(#group), "hub." #name,           \
      ngx_http_xet_hub_##name##_handler },

#include "hub.def"

#undef XET_HUB

    { NULL, 0, 0, 0, ngx_null_string, NULL, NULL }
};


/* The number of each row among what is counted. */

static u_char  ngx_http_xet_hub_numbers[sizeof(ngx_http_xet_hub_routes)
                                        / sizeof(ngx_http_xet_hub_route_t)];


static ngx_int_t ngx_http_xet_hub_route_encode(ngx_http_request_t *r,
    ngx_str_t *path);


const ngx_http_xet_hub_route_t *
ngx_http_xet_hub_route(ngx_http_request_t *r, const ngx_str_t *path,
    ngx_uint_t *methods)
{
    ngx_uint_t                       people;
    const ngx_http_xet_hub_route_t  *route;

    *methods = 0;
    people = ngx_http_xet_hub_route_people(r, path);

    for (route = ngx_http_xet_hub_routes; route->form; route++) {

        if ((route->access == NGX_HTTP_XET_HUB_BROWSES && !people)
            || !xet_hub_route_match(route->form, path->data, path->len))
        {
            continue;
        }

        if (route->methods & r->method) {
            return route;
        }

        *methods |= route->methods;
    }

    return NULL;
}


ngx_uint_t
ngx_http_xet_hub_route_people(ngx_http_request_t *r, const ngx_str_t *path)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    return xlcf->hub_pages && (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))
           && (path->len < 5 || ngx_memcmp(path->data, "/api/", 5) != 0);
}


ngx_int_t
ngx_http_xet_hub_route_path(ngx_http_request_t *r, ngx_str_t *path)
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
        rc = ngx_http_xet_hub_route_encode(r, path);

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


/* The path as nginx has it, in the form in which paths are sent. */

static ngx_int_t
ngx_http_xet_hub_route_encode(ngx_http_request_t *r, ngx_str_t *path)
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


const ngx_http_xet_hub_route_t *
ngx_http_xet_hub_route_of(ngx_http_request_t *r)
{
    ngx_str_t   path;
    ngx_uint_t  methods;

    if (ngx_http_xet_hub_route_path(r, &path) != NGX_OK) {
        return NULL;
    }

    return ngx_http_xet_hub_route(r, &path, &methods);
}


ngx_uint_t
ngx_http_xet_hub_route_number(const ngx_http_xet_hub_route_t *route)
{
    return ngx_http_xet_hub_numbers[route - ngx_http_xet_hub_routes];
}


ngx_uint_t
ngx_http_xet_hub_route_groups(const char **names, ngx_uint_t first)
{
    ngx_uint_t  i, k, n;

    n = 0;

    for (i = 0; ngx_http_xet_hub_routes[i].form; i++) {

        for (k = 0; k < n; k++) {
            if (ngx_strcmp(names[k], ngx_http_xet_hub_routes[i].group.data)
                == 0)
            {
                break;
            }
        }

        if (k == n) {

            if (n == NGX_HTTP_XET_HUB_GROUPS) {
                continue;
            }

            names[n++] = (const char *) ngx_http_xet_hub_routes[i].group.data;
        }

        ngx_http_xet_hub_numbers[i] = (u_char) (first + k);
    }

    return n;
}
