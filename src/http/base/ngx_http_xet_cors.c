
/*
 * CORS: requests from web pages of other origins.
 *
 * "xet_cors" is off by default: otherwise any web page could use a server
 * without authentication, through the browser of a visitor in the server's
 * network.
 */

#include "ngx_http_xet.h"


static ngx_int_t ngx_http_xet_cors_vary(ngx_http_request_t *r);


ngx_int_t
ngx_http_xet_cors(ngx_http_request_t *r)
{
    ngx_str_t                 origin;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (xlcf->cors == NULL) {
        return NGX_DECLINED;
    }

    if (ngx_http_complex_value(r, xlcf->cors, &origin) != NGX_OK) {
        return NGX_ERROR;
    }

    /* with variables, the response may depend on the origin */

    if (xlcf->cors->lengths && ngx_http_xet_cors_vary(r) != NGX_OK) {
        return NGX_ERROR;
    }

    if (origin.len == 0
        || (origin.len == 3 && ngx_strncmp(origin.data, "off", 3) == 0))
    {
        return NGX_DECLINED;
    }

    if (ngx_http_xet_header_find(&r->headers_out.headers,
                                 "Access-Control-Allow-Origin", 0))
    {
        return NGX_OK;
    }

    if (ngx_http_xet_header_add(r, "Access-Control-Allow-Origin", &origin)
        == NULL)
    {
        return NGX_ERROR;
    }

    if (origin.data[0] != '*' && ngx_http_xet_cors_vary(r) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_header(r, "Access-Control-Expose-Headers",
                               xlcf->hub
                               ? "Content-Range, Accept-Ranges, ETag, "
                                 "Content-Disposition, Retry-After, "
                                 "X-Request-Id, Link, X-Error-Code, "
                                 "X-Error-Message, X-Linked-ETag, "
                                 "X-Linked-Size, X-Repo-Commit, "
                                 "X-Total-Count, X-Xet-Access-Token, "
                                 "X-Xet-Cas-Url, X-Xet-Hash, "
                                 "X-Xet-Token-Expiration"
                               : "Content-Range, Accept-Ranges, ETag, "
                                 "Content-Disposition, Repr-Digest, "
                                 "Retry-After, X-Request-Id");
}


ngx_uint_t
ngx_http_xet_cors_allows(ngx_http_request_t *r, const ngx_str_t *origin)
{
    ngx_str_t                 allowed;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (xlcf->cors == NULL
        || ngx_http_complex_value(r, xlcf->cors, &allowed) != NGX_OK)
    {
        return 0;
    }

    return (allowed.len == 1 && allowed.data[0] == '*')
           || (allowed.len && allowed.len == origin->len
               && ngx_strncasecmp(allowed.data, origin->data, allowed.len)
                  == 0);
}


/* Adds "Vary: Origin", unless the response has it. */

static ngx_int_t
ngx_http_xet_cors_vary(ngx_http_request_t *r)
{
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    for (n = 0; /* void */ ; n++) {

        h = ngx_http_xet_header_find(&r->headers_out.headers, "Vary", n);
        if (h == NULL) {
            break;
        }

        if (h->value.len == 6
            && ngx_strncmp(h->value.data, "Origin", 6) == 0)
        {
            return NGX_OK;
        }
    }

    return ngx_http_xet_header(r, "Vary", "Origin");
}


ngx_int_t
ngx_http_xet_cors_preflight(ngx_http_request_t *r)
{
    ngx_int_t  rc;

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_xet_header(r, "Access-Control-Allow-Methods",
                            "GET, HEAD, POST, PUT, DELETE, OPTIONS")
        != NGX_OK
        || ngx_http_xet_header(r, "Access-Control-Allow-Headers",
                               "Authorization, Range, X-Range-Dirty, "
                               "X-Xet-Session-Id, X-Xet-Hash, Repr-Digest, "
                               "Content-Digest, Content-Type")
           != NGX_OK
        || ngx_http_xet_header(r, "Access-Control-Max-Age", "86400")
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.status = NGX_HTTP_NO_CONTENT;
    r->header_only = 1;

    return ngx_http_send_header(r);
}
