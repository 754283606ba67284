
/*
 * Rejects requests that a browser sends for a web page of another origin, or
 * for a page whose host name an attacker's DNS resolves to this server (DNS
 * rebinding).
 *
 *     Host must be a name of this server                   otherwise 421
 *     a write must not come from a page of another origin  otherwise 403
 *
 * Where tokens are required, a page of another origin has no token.  So the
 * host name is checked only where authentication is off, and for metrics and
 * the status page.
 *
 * The checks run in the event loop, before the access phase, without state and
 * allocations.  A rejected request is answered and finalized.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"


static ngx_uint_t ngx_http_xet_origin_named(ngx_http_request_t *r);
static ngx_uint_t ngx_http_xet_origin_base(ngx_http_xet_loc_conf_t *xlcf,
    const ngx_str_t *name);
static ngx_uint_t ngx_http_xet_origin_listed(ngx_array_t *names,
    const ngx_str_t *name);
static ngx_uint_t ngx_http_xet_origin_address(ngx_http_request_t *r,
    const ngx_str_t *name);
static ngx_uint_t ngx_http_xet_origin_foreign(ngx_http_request_t *r);
static ngx_uint_t ngx_http_xet_origin_own(ngx_http_request_t *r,
    const ngx_str_t *origin);
static ngx_str_t ngx_http_xet_origin_authority(const ngx_str_t *url);
static ngx_uint_t ngx_http_xet_origin_same(const ngx_str_t *one,
    const ngx_str_t *other);
static ngx_int_t ngx_http_xet_origin_refuse(ngx_http_request_t *r,
    ngx_uint_t status, const char *code, const char *message);


ngx_int_t
ngx_http_xet_origin_check(ngx_http_request_t *r)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if ((xlcf->monitor
         || ((xlcf->api || xlcf->hub)
             && xlcf->auth != NGX_HTTP_XET_AUTH_TOKEN))
        && !ngx_http_xet_origin_named(r))
    {
        return ngx_http_xet_origin_refuse(r, NGX_HTTP_MISDIRECTED_REQUEST,
                                          "unknown_host",
                                          "unknown host name in the request; "
                                          "add the name to server_name or "
                                          "xet_hosts, or set xet_url_base");
    }

    if (ngx_http_xet_origin_foreign(r)) {
        return ngx_http_xet_origin_refuse(r, NGX_HTTP_FORBIDDEN,
                                          "foreign_origin",
                                          "web pages of another origin may "
                                          "not write here; allow the origin "
                                          "with xet_cors");
    }

    return NGX_OK;
}


/*
 * Returns whether the host name of the request is a name of this server.
 * Browsers always send a host name, so a request without a host name is
 * accepted.
 */

static ngx_uint_t
ngx_http_xet_origin_named(ngx_http_request_t *r)
{
    ngx_str_t                *name;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    /* nginx has converted the name to lower case and removed the port */

    name = &r->headers_in.server;

    return name->len == 0
           || (name->len == sizeof("localhost") - 1
               && ngx_strncmp(name->data, "localhost", name->len) == 0)
           || ngx_http_xet_origin_base(xlcf, name)
           || ngx_http_xet_origin_listed(xlcf->hosts, name)
           || ngx_http_xet_origin_listed(xlcf->names, name)
           || ngx_http_xet_origin_address(r, name);
}


/*
 * Returns whether "xet_url_base" has this host name.  A value with variables is
 * not used, since it may contain the host name of the request.
 */

static ngx_uint_t
ngx_http_xet_origin_base(ngx_http_xet_loc_conf_t *xlcf, const ngx_str_t *name)
{
    u_char     *colon, *last;
    ngx_str_t   host;

    if (xlcf->url_base == NULL || xlcf->url_base->lengths) {
        return 0;
    }

    host = ngx_http_xet_origin_authority(&xlcf->url_base->value);
    last = host.data + host.len;

    /* the colons of an IPv6 address are in brackets */

    colon = ngx_strlchr(host.data, last, ']');
    colon = ngx_strlchr(colon ? colon : host.data, last, ':');

    if (colon) {
        host.len = colon - host.data;
    }

    return ngx_http_xet_origin_same(&host, name);
}


static ngx_uint_t
ngx_http_xet_origin_listed(ngx_array_t *names, const ngx_str_t *name)
{
    ngx_str_t   *own;
    ngx_uint_t   i;

    if (names == NULL) {
        return 0;
    }

    own = names->elts;

    for (i = 0; i < names->nelts; i++) {

        if ((own[i].len == 1 && own[i].data[0] == '*')
            || ngx_http_xet_origin_same(&own[i], name))
        {
            return 1;
        }
    }

    return 0;
}


/*
 * Returns whether the name is a loopback address, or the local address of the
 * connection.  Without a host name, DNS rebinding is impossible.
 */

static ngx_uint_t
ngx_http_xet_origin_address(ngx_http_request_t *r, const ngx_str_t *name)
{
    in_addr_t             in;
    ngx_connection_t     *c;
    struct sockaddr_in   *sin;
#if (NGX_HAVE_INET6)
    u_char                in6[16];
    struct sockaddr_in6  *sin6;
#endif

    c = r->connection;

    if (ngx_connection_local_sockaddr(c, NULL, 0) != NGX_OK) {
        return 0;
    }

#if (NGX_HAVE_INET6)

    if (name->len > 2 && name->data[0] == '[') {

        if (ngx_inet6_addr(name->data + 1, name->len - 2, in6) != NGX_OK) {
            return 0;
        }

        if (ngx_memcmp(in6, &in6addr_loopback, 16) == 0) {
            return 1;
        }

        sin6 = (struct sockaddr_in6 *) c->local_sockaddr;

        return c->local_sockaddr->sa_family == AF_INET6
               && ngx_memcmp(in6, &sin6->sin6_addr, 16) == 0;
    }

#endif

    in = ngx_inet_addr(name->data, name->len);

    if (in == INADDR_NONE) {
        return 0;
    }

    if (ntohl(in) >> 24 == 127) {
        return 1;
    }

#if (NGX_HAVE_INET6)

    /* on a dual-stack socket, an IPv4 address is mapped to an IPv6 address */

    sin6 = (struct sockaddr_in6 *) c->local_sockaddr;

    if (c->local_sockaddr->sa_family == AF_INET6) {
        return IN6_IS_ADDR_V4MAPPED(&sin6->sin6_addr)
               && ngx_memcmp(&sin6->sin6_addr.s6_addr[12], &in, 4) == 0;
    }

#endif

    sin = (struct sockaddr_in *) c->local_sockaddr;

    return c->local_sockaddr->sa_family == AF_INET
           && in == sin->sin_addr.s_addr;
}


/*
 * Returns whether a browser sent this write for a page of another origin.
 * Browsers report the origin in Sec-Fetch-Site, which pages can't set; older
 * browsers send only Origin.  A client that sends neither header is not a
 * browser.
 */

static ngx_uint_t
ngx_http_xet_origin_foreign(ngx_http_request_t *r)
{
    ngx_table_elt_t  *site, *origin;

    if (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD|NGX_HTTP_OPTIONS)) {
        return 0;
    }

    site = ngx_http_xet_header_find(&r->headers_in.headers, "Sec-Fetch-Site",
                                    0);
    origin = ngx_http_xet_header_find(&r->headers_in.headers, "Origin", 0);

    if (site) {

        if ((site->value.len == sizeof("same-origin") - 1
             && ngx_strncmp(site->value.data, "same-origin", site->value.len)
                == 0)
            || (site->value.len == sizeof("none") - 1
                && ngx_strncmp(site->value.data, "none", site->value.len)
                   == 0))
        {
            return 0;
        }

        return origin == NULL
               || !ngx_http_xet_cors_allows(r, &origin->value);
    }

    return origin
           && !ngx_http_xet_origin_own(r, &origin->value)
           && !ngx_http_xet_cors_allows(r, &origin->value);
}


/*
 * Returns whether an origin is this server.  The scheme is not compared,
 * because a proxy may terminate TLS.
 */

static ngx_uint_t
ngx_http_xet_origin_own(ngx_http_request_t *r, const ngx_str_t *origin)
{
    ngx_str_t                 from, own;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    from = ngx_http_xet_origin_authority(origin);

    if (r->headers_in.host
        && ngx_http_xet_origin_same(&from, &r->headers_in.host->value))
    {
        return 1;
    }

    if (xlcf->url_base == NULL || xlcf->url_base->lengths) {
        return 0;
    }

    own = ngx_http_xet_origin_authority(&xlcf->url_base->value);

    return ngx_http_xet_origin_same(&from, &own);
}


/* Returns the host and port of a URL, or an empty string. */

static ngx_str_t
ngx_http_xet_origin_authority(const ngx_str_t *url)
{
    u_char     *p, *end, *last;
    ngx_str_t   authority;

    last = url->data + url->len;
    p = ngx_strlchr(url->data, last, ':');

    if (p == NULL || last - p < 3 || p[1] != '/' || p[2] != '/') {
        ngx_str_null(&authority);
        return authority;
    }

    p += 3;
    end = ngx_strlchr(p, last, '/');

    authority.data = p;
    authority.len = (end ? end : last) - p;

    return authority;
}


static ngx_uint_t
ngx_http_xet_origin_same(const ngx_str_t *one, const ngx_str_t *other)
{
    return one->len && one->len == other->len
           && ngx_strncasecmp(one->data, other->data, one->len) == 0;
}


static ngx_int_t
ngx_http_xet_origin_refuse(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message)
{
    ngx_http_finalize_request(r, ngx_http_xet_error(r, status, code, message));

    return NGX_DONE;
}
