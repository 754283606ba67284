
/*
 * Guarantees that a data location sends exactly the signed bytes, or an error;
 * and that the API sends exactly the responses of its handlers.
 *
 * The access phase has checked the request, but nginx's filters and the
 * configuration affect the response.  gzip, sub_filter, ssi, addition and other
 * filters change the body, and the range filter then sends the whole body.
 * charset changes the bytes of a range without changing the headers.  Uploaded
 * files are even more dangerous: uploaders choose the content and, with
 * "filename", clients choose the media type, so ssi would execute files as
 * templates.
 *
 * So these modules are in nginx's chain of header filters, which run from the
 * bottom of this list to its top:
 *
 *     ngx_http_xet_guard_module             checks the final header
 *     ngx_http_range_header_filter_module
 *     ngx_http_xet_range_module             saves a pointer to the range filter
 *         gzip
 *     ngx_http_xet_coding_module            saves a pointer to the gzip filter
 *                                           (without gzip: the range filter)
 *         ssi, charset, sub, ...
 *     ngx_http_xet_data_module              skips filters: data continues at
 *                                           the range filter, the API at gzip
 *     ngx_http_headers_filter_module
 *     ngx_http_not_modified_filter_module
 *         ngx_http_xet_etag_module          (ngx_http_xet_data_etag.c)
 *         ngx_http_slice_filter_module
 *
 * A filter whose header filter was skipped has no context for the request, and
 * passes the body unchanged.
 *
 * gzip compresses only whole responses, never ranges.  The digest headers of a
 * file cover its bytes, not the output of gzip, so they are removed from
 * compressed responses.
 *
 * The build script "config" sets the order of these modules.  The order is
 * checked when the configuration is loaded.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"


/* The same maximum as "expires max" of nginx, in seconds. */
#define NGX_HTTP_XET_DATA_AGE_MAX  315360000


static ngx_int_t ngx_http_xet_guard_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_xet_range_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_xet_coding_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_xet_data_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_xet_data_header_filter(ngx_http_request_t *r);
static ngx_uint_t ngx_http_xet_data_ours(ngx_http_request_t *r,
    ngx_http_xet_loc_conf_t *xlcf);
static ngx_int_t ngx_http_xet_data_cache(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_data_life(ngx_http_request_t *r,
    ngx_http_xet_data_t *data);
static ngx_http_xet_data_t *ngx_http_xet_data(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_guard_header_filter(ngx_http_request_t *r);
static ngx_uint_t ngx_http_xet_guard_coded(ngx_http_request_t *r);
static const char *ngx_http_xet_guard_fault(ngx_http_request_t *r);
static ngx_uint_t ngx_http_xet_guard_ranges(ngx_http_request_t *r,
    ngx_http_xet_data_t *data);
static ngx_int_t ngx_http_xet_guard_content_range(ngx_http_request_t *r,
    xet_range_t *range, uint64_t *size);


NGX_HTTP_XET_FILTER(guard)
NGX_HTTP_XET_FILTER(range)
NGX_HTTP_XET_FILTER(coding)
NGX_HTTP_XET_FILTER(data)


static ngx_http_output_header_filter_pt  ngx_http_xet_guard_next;
static ngx_http_output_header_filter_pt  ngx_http_xet_range_filter;
static ngx_http_output_header_filter_pt  ngx_http_xet_coding_filter;
static ngx_http_output_header_filter_pt  ngx_http_xet_data_next;


ngx_int_t
ngx_http_xet_data_filter_init(ngx_conf_t *cf)
{
    ngx_uint_t                  i, n;
    ngx_module_t              **m;
    ngx_http_xet_main_conf_t   *xmcf;

    static const char *const  order[] = {
        "ngx_http_header_filter_module",
        "ngx_http_xet_guard_module",
        "ngx_http_range_header_filter_module",
        "ngx_http_xet_range_module",
        "ngx_http_xet_coding_module",
        "ngx_http_xet_data_module",
        "ngx_http_headers_filter_module",
        "ngx_http_not_modified_filter_module",
        "ngx_http_xet_etag_module"
    };

    xmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_xet_module);

    if (!xmcf->api && !xmcf->data && !xmcf->mint) {
        return NGX_OK;
    }

    m = cf->cycle->modules;
    n = 0;

    for (i = 0; m[i] && n < sizeof(order) / sizeof(order[0]); i++) {
        n += (ngx_strcmp(m[i]->name, order[n]) == 0);
    }

    if (n < sizeof(order) / sizeof(order[0])) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"%s\" needs \"%s\" after \"%s\" in the order of "
                      "modules",
                      xmcf->data ? "xet_data"
                      : xmcf->api ? "xet_api" : "xet_token",
                      order[n], n ? order[n - 1] : "");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_guard_init(ngx_conf_t *cf)
{
    ngx_http_xet_guard_next = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_xet_guard_header_filter;

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_range_init(ngx_conf_t *cf)
{
    ngx_http_xet_range_filter = ngx_http_top_header_filter;

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_coding_init(ngx_conf_t *cf)
{
    ngx_http_xet_coding_filter = ngx_http_top_header_filter;

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_data_init(ngx_conf_t *cf)
{
    ngx_http_xet_data_next = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_xet_data_header_filter;

    return NGX_OK;
}


/* Skips the filters.  Also applies to subrequests, which may be slices. */

static ngx_int_t
ngx_http_xet_data_header_filter(ngx_http_request_t *r)
{
    ngx_http_xet_data_t      *data;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (!xlcf->data) {
        return ngx_http_xet_data_ours(r, xlcf)
               ? ngx_http_xet_coding_filter(r) : ngx_http_xet_data_next(r);
    }

    if (r == r->main && ngx_http_xet_data_cache(r) != NGX_OK) {
        return NGX_ERROR;
    }

    data = ngx_http_xet_data(r);

    if (data && r == r->main && r->headers_out.status == NGX_HTTP_OK) {
        data->size = r->headers_out.content_length_n;
    }

    return ngx_http_xet_range_filter(r);
}


/* Returns whether the response belongs to the API, even if nginx created it. */

static ngx_uint_t
ngx_http_xet_data_ours(ngx_http_request_t *r, ngx_http_xet_loc_conf_t *xlcf)
{
    return xlcf->api || xlcf->mint
           || r->content_handler == ngx_http_xet_error_handler;
}


/* Sets how long caches may keep the data; removes other cache headers. */

static ngx_int_t
ngx_http_xet_data_cache(ngx_http_request_t *r)
{
    ngx_uint_t            status;
    ngx_http_xet_data_t  *data;

    ngx_http_xet_header_remove(r, "Cache-Control");
    ngx_http_xet_header_remove(r, "Expires");

    status = r->headers_out.status;
    data = ngx_http_xet_data(r);

    if (data && data->asked
        && (status == NGX_HTTP_OK || status == NGX_HTTP_PARTIAL_CONTENT
            || status == NGX_HTTP_NOT_MODIFIED))
    {
        return ngx_http_xet_data_life(r, data);
    }

    return ngx_http_xet_header(r, "Cache-Control", "no-store");
}


/*
 * Adds the headers.  Their values are kept, since most URLs of a second expire
 * at the same time.
 */

static ngx_int_t
ngx_http_xet_data_life(ngx_http_request_t *r, ngx_http_xet_data_t *data)
{
    time_t     left;
    u_char    *p;
    ngx_str_t  control, expires;

    static time_t  now, end;
    static size_t  len;
    static u_char  date[sizeof("Mon, 28 Sep 1970 06:00:00 GMT") - 1];
    static u_char  age[sizeof("public, max-age=, immutable")
                       + NGX_TIME_T_LEN];

    if (now != ngx_time() || end != data->expires) {
        now = ngx_time();
        end = data->expires;

        left = ngx_max(end - now, 0);
        left = ngx_min(left, NGX_HTTP_XET_DATA_AGE_MAX);

        len = ngx_sprintf(age, "public, max-age=%T, immutable", left) - age;
        (void) ngx_http_time(date, now + left);
    }

    p = ngx_pnalloc(r->pool, len + sizeof(date));
    if (p == NULL) {
        return NGX_ERROR;
    }

    control.data = p;
    control.len = len;

    expires.data = ngx_cpymem(p, age, len);
    expires.len = sizeof(date);

    ngx_memcpy(expires.data, date, sizeof(date));

    /* clients with HTTP/1.0 need "Expires" */

    return (ngx_http_xet_header_add(r, "Cache-Control", &control)
            && ngx_http_xet_header_add(r, "Expires", &expires))
           ? NGX_OK : NGX_ERROR;
}


static ngx_http_xet_data_t *
ngx_http_xet_data(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    return ctx ? ctx->data : NULL;
}


static ngx_int_t
ngx_http_xet_guard_header_filter(ngx_http_request_t *r)
{
    const char               *fault;
    ngx_uint_t                status;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    /*
     * RFC 9530: a digest is computed from the encoded content.  Encoded
     * responses of this module have no digest.  So a response with a coding and
     * a digest was encoded by a filter, in this nginx or in its upstream.
     */

    if ((xlcf->api || xlcf->verify_body) && ngx_http_xet_guard_coded(r)) {
        ngx_http_xet_header_remove(r, "Digest");
        ngx_http_xet_header_remove(r, "Repr-Digest");
    }

    /* errors and redirects contain no bytes of a xorb */

    if (!xlcf->data || r != r->main
        || r->headers_out.status == NGX_HTTP_NO_CONTENT
        || r->headers_out.status >= NGX_HTTP_SPECIAL_RESPONSE)
    {
        return ngx_http_xet_guard_next(r);
    }

    fault = ngx_http_xet_guard_fault(r);

    if (fault == NULL) {
        return ngx_http_xet_guard_next(r);
    }

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "xet: response %ui does not match the signed URL: %s",
                  r->headers_out.status, fault);

    status = r->upstream ? NGX_HTTP_BAD_GATEWAY
                         : NGX_HTTP_INTERNAL_SERVER_ERROR;

    return ngx_http_filter_finalize_request(r, NULL, status);
}


/*
 * Returns whether the response has a Content-Encoding header that is not empty.
 */

static ngx_uint_t
ngx_http_xet_guard_coded(ngx_http_request_t *r)
{
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    for (n = 0; /* void */ ; n++) {

        h = ngx_http_xet_header_find(&r->headers_out.headers,
                                     "Content-Encoding", n);
        if (h == NULL) {
            return 0;
        }

        if (h->value.len) {
            return 1;
        }
    }
}


/* Returns a description of the error in the response, or NULL. */

static const char *
ngx_http_xet_guard_fault(ngx_http_request_t *r)
{
    ngx_http_xet_data_t  *data;

    data = ngx_http_xet_data(r);

    if (data == NULL) {
        return "the signature was not checked";
    }

    if (r->uri.len != data->uri.len
        || ngx_memcmp(r->uri.data, data->uri.data, r->uri.len) != 0)
    {
        return "it is for another URI";
    }

    if (ngx_http_xet_guard_coded(r)) {
        return "it has a content coding";
    }

    if (data->ranges && r->headers_out.status != NGX_HTTP_PARTIAL_CONTENT) {
        return "it is not a range";
    }

    if (r->headers_out.status == NGX_HTTP_PARTIAL_CONTENT
        && !ngx_http_xet_guard_ranges(r, data))
    {
        return "it is another range";
    }

    return NULL;
}


/*
 * Returns whether the response has the requested ranges, each of which is
 * inside a signed range.  For several ranges, only the media type of the
 * response is checked.  If a file is truncated, the range filter sends the
 * existing bytes, so the range of the response differs from the requested one.
 */

static ngx_uint_t
ngx_http_xet_guard_ranges(ngx_http_request_t *r, ngx_http_xet_data_t *data)
{
    size_t             i, n;
    uint64_t           size;
    ngx_str_t         *value;
    xet_range_t        range, asked;
    xet_range_spec_t   specs[XET_SIGN_RANGES_MAX];

    static u_char  multipart[] = "multipart/byteranges;";

    if (r->headers_in.range == NULL) {
        return 0;
    }

    n = XET_SIGN_RANGES_MAX;
    value = &r->headers_in.range->value;

    if (xet_range_parse(value->data, value->len, specs, &n) != XET_OK) {
        return 0;
    }

    if (data->ranges && data->size >= 0
        && (off_t) specs[n - 1].last >= data->size)
    {
        return 0;
    }

    if (r->headers_out.content_range == NULL) {
        value = &r->headers_out.content_type;

        return n > 1
               && value->len > sizeof(multipart) - 1
               && ngx_strncmp(value->data, multipart, sizeof(multipart) - 1)
                  == 0;
    }

    if (ngx_http_xet_guard_content_range(r, &range, &size) != NGX_OK
        || r->headers_out.content_length_n
           != (off_t) (range.end - range.start))
    {
        return 0;
    }

    for (i = 0; i < n; i++) {

        if (xet_range_resolve(&specs[i], size, &asked) == XET_OK
            && asked.start == range.start
            && asked.end == range.end
            && (!data->ranges || asked.end == specs[i].last + 1))
        {
            return 1;
        }
    }

    return 0;
}


/* Parses "bytes first-last/size".  Returns NGX_OK or NGX_ERROR. */

static ngx_int_t
ngx_http_xet_guard_content_range(ngx_http_request_t *r, xet_range_t *range,
    uint64_t *size)
{
    size_t      n;
    u_char     *p, *last, *slash;
    ngx_str_t  *value;

    value = &r->headers_out.content_range->value;

    if (value->len < 6 || ngx_strncmp(value->data, "bytes ", 6) != 0) {
        return NGX_ERROR;
    }

    p = value->data + 6;
    last = value->data + value->len;
    slash = ngx_strlchr(p, last, '/');
    n = 1;

    return (slash
            && xet_range_list_parse(p, slash - p, range, &n) == XET_OK
            && xet_get_decimal(slash + 1, last - slash - 1, size))
           ? NGX_OK : NGX_ERROR;
}
