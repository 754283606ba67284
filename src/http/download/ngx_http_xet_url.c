
/*
 * Signs the URLs in responses, which point to this server or to the object
 * store.
 *
 * The first key signs.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_download.h"


/*
 * Validity in seconds of a URL for an internal redirect, or for a request of
 * an edge to its origin.  The edge signs the URL first, and may then wait for
 * the lock of its cache before it sends the request.
 */
#define NGX_HTTP_XET_URL_INTERNAL_TTL  300


static time_t ngx_http_xet_url_expires(ngx_http_xet_loc_conf_t *xlcf);


ngx_int_t
ngx_http_xet_url_init(ngx_http_request_t *r, ngx_http_xet_url_t *url)
{
    ngx_http_xet_loc_conf_t   *xlcf;
    ngx_http_xet_main_conf_t  *xmcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    url->expires = ngx_http_xet_url_expires(xlcf);
    url->whole = (xlcf->url_mode == NGX_HTTP_XET_URL_CACHEABLE);

    /*
     * With "xet_url_mode cacheable" or a bucket, caches serve data URLs from
     * slices.  A response with several ranges can't be assembled from slices,
     * so each URL has one range.
     */

    url->group = (url->whole || (xmcf->store && xmcf->store->s3))
                 ? 1 : xlcf->url_ranges;

    if (xlcf->data_mode == NGX_HTTP_XET_DATA_PRESIGNED) {
        url->store = xmcf->store;
        url->made = ngx_time() - ngx_time() % xlcf->url_quantum;
        url->expires = url->made + xlcf->url_quantum + xlcf->url_ttl;
        url->group = 1;

    } else {
        url->store = NULL;
    }

    /*
     * a server that only issues tokens may have no URL keys, and a worker
     * without "xet_api" and "xet_data" signs nothing
     */

    url->key = xmcf->url_keys ? xmcf->url_keys->elts : NULL;
    url->sign = xmcf->sign ? xmcf->sign[0] : NULL;

    return ngx_http_xet_name_url(r, 1, &url->base);
}


/*
 * Returns the time when a URL expires, rounded up to a multiple of the quantum
 * ("xet_url_quantum").  So all URLs of a range made within a quantum are the
 * same, and caches in front of the server see one URL.
 */

static time_t
ngx_http_xet_url_expires(ngx_http_xet_loc_conf_t *xlcf)
{
    time_t  expires;

    expires = ngx_time() + xlcf->url_ttl + xlcf->url_quantum - 1;

    return expires - expires % xlcf->url_quantum;
}


xet_status_t
ngx_http_xet_url_write(void *ctx, xet_buf_t *b, const xet_hash_t *xorb,
    const xet_plan_range_t *ranges, size_t n)
{
    ngx_http_xet_url_t *url = ctx;

    u_char         *p, *last;
    size_t          i;
    xet_range_t     list[XET_SIGN_RANGES_MAX];
    xet_status_t    rc;
    xet_sign_url_t  sign;

    if (url->store) {
        return ngx_http_xet_store_presign(url->store, b, xorb,
                                          ranges[0].copy_id,
                                          ranges[0].stored_start,
                                          ranges[0].stored_end, url->made,
                                          url->expires - url->made);
    }

    for (i = 0; i < n; i++) {
        list[i].start = ranges[i].stored_start;
        list[i].end = ranges[i].stored_end;
    }

    sign.ns = (const uint8_t *) NGX_HTTP_XET_NAMESPACE;
    sign.ns_len = sizeof(NGX_HTTP_XET_NAMESPACE) - 1;
    sign.xorb = *xorb;
    sign.copy_id = ranges[0].copy_id;
    sign.expires = (uint64_t) url->expires;
    sign.ranges = list;
    sign.n = url->whole ? 0 : n;

    xet_buf_write(b, url->base.data, url->base.len);

    rc = xet_sign_url(url->sign, &sign, b);

    if (rc == XET_OK && url->whole && n) {

        /*
         * Clients distinguish entries by their URLs (docs/protocol.md,
         * reconstruction rules), and old clients share the download of a URL
         * between responses.  So the ranges are added to the URL, unsigned.
         */

        p = xet_buf_reserve(b, 3 + n * XET_RANGE_PRINT_MAX);

        if (p == NULL) {
            return XET_NOMEM;
        }

        last = xet_range_list_print(ngx_cpymem(p, "&n=", 3), list, n);

        xet_buf_advance(b, last - p);
    }

    return rc;
}


/*
 * Signs the arguments that an edge sends to its origin; they allow any range of
 * the copy.
 */

ngx_int_t
ngx_http_xet_url_args(ngx_http_request_t *r, ngx_str_t *args)
{
    uint32_t     copy_id;
    ngx_str_t    uri;
    xet_hash_t   xorb;

    if (ngx_http_xet_url_copy(r, &xorb, &copy_id) != NGX_OK) {
        return NGX_DECLINED;
    }

    return ngx_http_xet_url_internal(r, &xorb, copy_id, &uri, args);
}


ngx_int_t
ngx_http_xet_url_copy(ngx_http_request_t *r, xet_hash_t *xorb,
    uint32_t *copy_id)
{
    u_char  *name, *last;

    last = r->uri.data + r->uri.len;

    for (name = last; name > r->uri.data && name[-1] != '/'; name--) {
        /* void */
    }

    return (xet_xorb_name_parse(xorb, copy_id, name, last - name) == XET_OK)
           ? NGX_OK : NGX_DECLINED;
}


ngx_int_t
ngx_http_xet_url_internal(ngx_http_request_t *r, const xet_hash_t *xorb,
    uint32_t copy_id, ngx_str_t *uri, ngx_str_t *args)
{
    u_char                    *p, *last;
    xet_buf_t                  b;
    xet_plan_range_t           range;
    ngx_http_xet_url_t         url;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    ngx_memzero(&url, sizeof(ngx_http_xet_url_t));

    url.expires = ngx_time() + NGX_HTTP_XET_URL_INTERNAL_TTL;
    url.sign = xmcf->sign[0];

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 1024);

    range.copy_id = copy_id;

    if (ngx_http_xet_url_write(&url, &b, xorb, &range, 0) != XET_OK
        || xet_buf_status(&b) != XET_OK)
    {
        return NGX_ERROR;
    }

    /* the whole URL is in the first node, which has 1024 bytes */

    p = b.first->start;
    last = b.first->pos;

    uri->data = p;
    p = ngx_strlchr(p, last, '?');

    if (p == NULL) {
        return NGX_ERROR;
    }

    uri->len = p - uri->data;
    args->data = p + 1;
    args->len = last - args->data;

    return NGX_OK;
}
