
/*
 * The names of this server, and the URL at which a client reaches it.
 *
 * A response has URLs of this server, and clients accept only those that begin
 * like the URL that they were given.  So the host of a URL is the host of the
 * request, as far as that is a name of this server.  Any other host could be
 * chosen by an attacker, so the first "xet_url_base" is used instead.
 *
 * The host, scheme, port and path that a proxy reports in X-Forwarded-* count
 * only if the request comes from an address in "xet_proxies".
 *
 * Everything runs in the event loop; URLs are in the configuration or in the
 * pool of the request.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"


#if (NGX_HTTP_SSL)
#define ngx_http_xet_name_tls(r)  ((r)->connection->ssl != NULL)
#else
#define ngx_http_xet_name_tls(r)  0
#endif


/* The host, port, scheme and path by which the client reached the server. */

typedef struct {
    xet_url_t                  name;           /* host and port */
    ngx_str_t                  host;           /* the same, not parsed */
    ngx_str_t                  path;           /* removed by a proxy */
    unsigned                   valid:1;        /* name is set */
    unsigned                   tls:1;
    unsigned                   sure:1;         /* tls is known */
    unsigned                   proxied:1;      /* reported by a proxy */
} ngx_http_xet_name_t;


static ngx_uint_t ngx_http_xet_name_base(ngx_http_xet_loc_conf_t *xlcf,
    const ngx_str_t *name);
static ngx_uint_t ngx_http_xet_name_listed(ngx_array_t *names,
    const ngx_str_t *name, ngx_uint_t any);
static ngx_uint_t ngx_http_xet_name_address(ngx_http_request_t *r,
    const ngx_str_t *name);
static ngx_int_t ngx_http_xet_name_variable(ngx_http_request_t *r,
    ngx_http_complex_value_t *value, ngx_str_t *url);
static ngx_int_t ngx_http_xet_name_asked(ngx_http_request_t *r,
    ngx_http_xet_name_t *asked);
static void ngx_http_xet_name_forwarded(ngx_http_request_t *r,
    ngx_http_xet_name_t *asked);
static ngx_int_t ngx_http_xet_name_port(ngx_http_request_t *r,
    ngx_http_xet_name_t *asked);
static ngx_uint_t ngx_http_xet_name_proxy(ngx_http_request_t *r,
    ngx_array_t *proxies);
static ngx_str_t ngx_http_xet_name_last(ngx_http_request_t *r,
    const char *key);
static const xet_url_t *ngx_http_xet_name_given(ngx_array_t *urls,
    const ngx_http_xet_name_t *asked);
static ngx_uint_t ngx_http_xet_name_follows(ngx_http_request_t *r,
    const xet_url_t *first, ngx_http_xet_name_t *asked, ngx_uint_t data);
static ngx_int_t ngx_http_xet_name_write(ngx_http_request_t *r,
    const ngx_http_xet_name_t *asked, ngx_str_t *url);
static ngx_int_t ngx_http_xet_name_bad(ngx_http_request_t *r,
    const ngx_str_t *url);


/*
 * Browsers always send a host name, so a request without a host name is
 * accepted.
 */

ngx_uint_t
ngx_http_xet_name_known(ngx_http_request_t *r)
{
    ngx_str_t                *name;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    /* nginx has converted the name to lower case and removed the port */

    name = &r->headers_in.server;

    return name->len == 0
           || ngx_http_xet_name_base(xlcf, name)
           || ngx_http_xet_name_listed(xlcf->hosts, name, 1)
           || ngx_http_xet_name_listed(xlcf->names, name, 1)
           || ngx_http_xet_name_address(r, name);
}


/* Returns whether "xet_url_base" has this host name. */

static ngx_uint_t
ngx_http_xet_name_base(ngx_http_xet_loc_conf_t *xlcf, const ngx_str_t *name)
{
    xet_url_t   *url;
    ngx_uint_t   i;

    for (i = 0; xlcf->urls && i < xlcf->urls->nelts; i++) {
        url = (xet_url_t *) xlcf->urls->elts + i;

        if (url->host.len == name->len
            && ngx_strncasecmp((u_char *) url->host.data, name->data,
                               name->len)
               == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* Returns whether a list has the name; "*" counts only if any is set. */

static ngx_uint_t
ngx_http_xet_name_listed(ngx_array_t *names, const ngx_str_t *name,
    ngx_uint_t any)
{
    ngx_str_t   *own;
    ngx_uint_t   i;

    if (names == NULL) {
        return 0;
    }

    own = names->elts;

    for (i = 0; i < names->nelts; i++) {

        if (own[i].len == 1 && own[i].data[0] == '*') {

            if (any) {
                return 1;
            }

        } else if (own[i].len == name->len
                   && ngx_strncasecmp(own[i].data, name->data, name->len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/*
 * Returns whether the name is "localhost", a loopback address, or the local
 * address of the connection.  None of these can be made by DNS rebinding.
 */

static ngx_uint_t
ngx_http_xet_name_address(ngx_http_request_t *r, const ngx_str_t *name)
{
    in_addr_t             in;
    ngx_connection_t     *c;
    struct sockaddr_in   *sin;
#if (NGX_HAVE_INET6)
    u_char                in6[16];
    struct sockaddr_in6  *sin6;
#endif

    if (name->len == sizeof("localhost") - 1
        && ngx_strncasecmp(name->data, (u_char *) "localhost", name->len) == 0)
    {
        return 1;
    }

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


ngx_int_t
ngx_http_xet_name_url(ngx_http_request_t *r, ngx_uint_t data, ngx_str_t *url)
{
    const xet_url_t          *given;
    ngx_http_xet_name_t       asked;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (xlcf->url_base) {
        return ngx_http_xet_name_variable(r, xlcf->url_base, url);
    }

    if (ngx_http_xet_name_asked(r, &asked) != NGX_OK) {
        return NGX_ERROR;
    }

    if (xlcf->urls == NULL) {
        return asked.host.len ? ngx_http_xet_name_write(r, &asked, url)
                              : NGX_DECLINED;
    }

    given = asked.valid ? ngx_http_xet_name_given(xlcf->urls, &asked) : NULL;

    if (given && asked.path.len) {
        asked.tls = asked.sure ? asked.tls : given->tls;
        return ngx_http_xet_name_write(r, &asked, url);
    }

    if (given == NULL) {
        given = xlcf->urls->elts;

        if (asked.valid
            && ngx_http_xet_name_follows(r, given, &asked, data))
        {
            return ngx_http_xet_name_write(r, &asked, url);
        }
    }

    url->data = (u_char *) given->text.data;
    url->len = given->text.len;

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_name_variable(ngx_http_request_t *r,
    ngx_http_complex_value_t *value, ngx_str_t *url)
{
    xet_url_t  parsed;

    if (ngx_http_complex_value(r, value, url) != NGX_OK) {
        return NGX_ERROR;
    }

    if (!xet_url_parse(&parsed, url->data, url->len)) {
        return ngx_http_xet_name_bad(r, url);
    }

    url->len = parsed.text.len;

    return NGX_OK;
}


/*
 * Sets *asked to the host, port and scheme by which the client reached the
 * server, as in the request or as reported by a trusted proxy, and to the path
 * prefix that the proxy has removed.
 */

static ngx_int_t
ngx_http_xet_name_asked(ngx_http_request_t *r, ngx_http_xet_name_t *asked)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    ngx_memzero(asked, sizeof(ngx_http_xet_name_t));

    asked->host = r->headers_in.host ? r->headers_in.host->value
                                     : r->headers_in.server;

    asked->tls = ngx_http_xet_name_tls(r);
    asked->sure = asked->tls;

    if (xlcf->proxies && ngx_http_xet_name_proxy(r, xlcf->proxies)) {
        ngx_http_xet_name_forwarded(r, asked);

        if (ngx_http_xet_name_port(r, asked) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    asked->valid = xet_url_authority(&asked->name, asked->host.data,
                                     asked->host.len);
    return NGX_OK;
}


/* Reads what a trusted proxy reports; ignores malformed values. */

static void
ngx_http_xet_name_forwarded(ngx_http_request_t *r, ngx_http_xet_name_t *asked)
{
    xet_url_t  name;
    ngx_str_t  value;

    value = ngx_http_xet_name_last(r, "X-Forwarded-Host");

    if (xet_url_authority(&name, value.data, value.len)) {
        asked->host = value;
        asked->proxied = 1;
    }

    value = ngx_http_xet_name_last(r, "X-Forwarded-Proto");

    if ((value.len == 4 && ngx_strncasecmp(value.data, (u_char *) "http", 4)
                           == 0)
        || (value.len == 5
            && ngx_strncasecmp(value.data, (u_char *) "https", 5) == 0))
    {
        asked->tls = (value.len == 5);
        asked->sure = 1;
        asked->proxied = 1;
    }

    value = ngx_http_xet_name_last(r, "X-Forwarded-Prefix");

    while (value.len && value.data[value.len - 1] == '/') {
        value.len--;
    }

    if (value.len > 1 && value.data[0] == '/' && value.data[1] != '/'
        && xet_sign_base_ok(value.data, value.len))
    {
        asked->path = value;
        asked->proxied = 1;
    }
}


/* Adds the port that a trusted proxy reports separately from the host. */

static ngx_int_t
ngx_http_xet_name_port(ngx_http_request_t *r, ngx_http_xet_name_t *asked)
{
    u_char     *p;
    ngx_int_t   port;
    ngx_str_t   value;
    xet_url_t   name;

    value = ngx_http_xet_name_last(r, "X-Forwarded-Port");
    port = ngx_atoi(value.data, value.len);

    if (port < 1 || port > 65535 || port == (asked->tls ? 443 : 80)
        || !xet_url_authority(&name, asked->host.data, asked->host.len)
        || name.port)
    {
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, asked->host.len + sizeof(":65535"));
    if (p == NULL) {
        return NGX_ERROR;
    }

    asked->host.len = ngx_sprintf(p, "%V:%i", &asked->host, port) - p;
    asked->host.data = p;

    return NGX_OK;
}


/*
 * Returns whether the request was sent by a proxy in the list.  The realip
 * module may have replaced the address of the connection by the client's.
 */

static ngx_uint_t
ngx_http_xet_name_proxy(ngx_http_request_t *r, ngx_array_t *proxies)
{
    ngx_addr_t                  addr;
    ngx_uint_t                  key;
    ngx_http_variable_value_t  *v;

    static ngx_str_t  name = ngx_string("realip_remote_addr");

    key = ngx_hash_key(name.data, name.len);
    v = ngx_http_get_variable(r, &name, key);

    if (v && v->valid && !v->not_found
        && ngx_parse_addr(r->pool, &addr, v->data, v->len) == NGX_OK)
    {
        return ngx_cidr_match(addr.sockaddr, proxies) == NGX_OK;
    }

    return ngx_cidr_match(r->connection->sockaddr, proxies) == NGX_OK;
}


/*
 * Returns the last value in a header.  The nearest proxy has added this value:
 * a client may send the header, too, and proxies append their values.
 */

static ngx_str_t
ngx_http_xet_name_last(ngx_http_request_t *r, const char *key)
{
    u_char           *p, *end;
    size_t            len;
    ngx_str_t         value;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h, *last;

    len = ngx_strlen(key);
    last = NULL;

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (h[i].key.len == len
                && ngx_strncasecmp(h[i].key.data, (u_char *) key, len) == 0)
            {
                last = &h[i];
            }
        }
    }

    if (last == NULL) {
        ngx_str_set(&value, "");
        return value;
    }

    end = last->value.data + last->value.len;

    while (end > last->value.data && (end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }

    for (p = end; p > last->value.data && p[-1] != ','; p--) { /* void */ }

    while (p < end && (*p == ' ' || *p == '\t')) {
        p++;
    }

    value.data = p;
    value.len = end - p;

    return value;
}


/* Returns the "xet_url_base" with the host and port of the request, or NULL. */

static const xet_url_t *
ngx_http_xet_name_given(ngx_array_t *urls, const ngx_http_xet_name_t *asked)
{
    ngx_uint_t        i;
    const xet_url_t  *url, *found;

    url = urls->elts;
    found = NULL;

    for (i = 0; i < urls->nelts; i++) {

        if (!xet_url_same_host(&url[i], &asked->name)
            || xet_url_port_of(&url[i], url[i].tls)
               != xet_url_port_of(&asked->name, url[i].tls))
        {
            continue;
        }

        if (asked->sure && url[i].tls == asked->tls) {
            return &url[i];
        }

        if (found == NULL) {
            found = &url[i];
        }
    }

    return found;
}


/*
 * Returns whether a URL that is not in "xet_url_base" has the host of the
 * request, and sets its scheme.  "first" is the first "xet_url_base"; "own"
 * means that it leads to this nginx, without a proxy, edge or CDN.  Behind
 * these, the address that a connection came to says nothing about the client.
 *
 * With a path in "first", nothing is known about the path at other names.
 */

static ngx_uint_t
ngx_http_xet_name_follows(ngx_http_request_t *r, const xet_url_t *first,
    ngx_http_xet_name_t *asked, ngx_uint_t data)
{
    in_port_t                 local;
    ngx_str_t                 name, base;
    ngx_uint_t                near, listed, same, own, base_near;
    ngx_http_xet_loc_conf_t  *xlcf;

    if (first->path.len && asked->path.len == 0) {
        return 0;
    }

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    name.data = (u_char *) asked->name.host.data;
    name.len = asked->name.host.len;
    base.data = (u_char *) first->host.data;
    base.len = first->host.len;

    near = ngx_http_xet_name_address(r, &name);
    same = xet_url_same_host(first, &asked->name);
    listed = ngx_http_xet_name_listed(xlcf->hosts, &name, 0)
             || ngx_http_xet_name_listed(xlcf->names, &name, 0);

    base_near = ngx_http_xet_name_address(r, &base);
    local = ngx_inet_get_port(r->connection->local_sockaddr);

    own = (same || base_near
           || ngx_http_xet_name_listed(xlcf->hosts, &base, 0)
           || ngx_http_xet_name_listed(xlcf->names, &base, 0))
          && xet_url_port_of(first, first->tls) == local
          && first->tls == ngx_http_xet_name_tls(r);

    if (!asked->sure) {
        asked->tls = !own && asked->name.port != local && first->tls;
    }

    if (own) {
        return near || listed || same;
    }

    if (near && base_near && !asked->proxied) {
        return xet_url_port_of(&asked->name, first->tls)
               == xet_url_port_of(first, first->tls);
    }

    return (listed && !data) || (same && asked->proxied);
}


static ngx_int_t
ngx_http_xet_name_write(ngx_http_request_t *r,
    const ngx_http_xet_name_t *asked, ngx_str_t *url)
{
    u_char  *p;

    p = ngx_pnalloc(r->pool, sizeof("https://") + asked->host.len
                             + asked->path.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    url->data = p;
    url->len = ngx_sprintf(p, "%s%V%V", asked->tls ? "https://" : "http://",
                           &asked->host, &asked->path)
               - p;

    /*
     * the URL is written into JSON without escaping, and clients return it as
     * the prefix of a path
     */

    return xet_sign_base_ok(url->data, url->len)
           ? NGX_OK : ngx_http_xet_name_bad(r, url);
}


static ngx_int_t
ngx_http_xet_name_bad(ngx_http_request_t *r, const ngx_str_t *url)
{
    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "xet: URL base \"%V\" is not a URL, or has characters that "
                  "are not allowed in a URL", url);

    return NGX_ERROR;
}
