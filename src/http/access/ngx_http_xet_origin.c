
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


static ngx_uint_t ngx_http_xet_origin_foreign(ngx_http_request_t *r);
static ngx_uint_t ngx_http_xet_origin_own(ngx_http_request_t *r,
    const ngx_str_t *origin);
static ngx_uint_t ngx_http_xet_origin_same(const xet_hub_text_t *one,
    const u_char *other, size_t len);
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
        && !ngx_http_xet_name_known(r))
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
    xet_url_t                 from, *url;
    ngx_str_t                *host;
    ngx_uint_t                i;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (!xet_url_parse(&from, origin->data, origin->len)) {
        return 0;
    }

    host = r->headers_in.host ? &r->headers_in.host->value : NULL;

    if (host && ngx_http_xet_origin_same(&from.authority, host->data,
                                         host->len))
    {
        return 1;
    }

    for (i = 0; xlcf->urls && i < xlcf->urls->nelts; i++) {
        url = (xet_url_t *) xlcf->urls->elts + i;

        if (ngx_http_xet_origin_same(&from.authority, url->authority.data,
                                     url->authority.len))
        {
            return 1;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_http_xet_origin_same(const xet_hub_text_t *one, const u_char *other,
    size_t len)
{
    return one->len == len
           && ngx_strncasecmp((u_char *) one->data, (u_char *) other, len)
              == 0;
}


static ngx_int_t
ngx_http_xet_origin_refuse(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message)
{
    ngx_http_finalize_request(r, ngx_http_xet_error(r, status, code, message));

    return NGX_DONE;
}
