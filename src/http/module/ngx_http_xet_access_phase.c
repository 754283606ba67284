
/*
 * The access phase: checks tokens in API locations, and signatures in data
 * locations.  The preaccess phase verifies upload bodies at an edge, and checks
 * requests that skip the access phase.
 *
 * nginx's static handler sends the bytes of xorbs.  nginx's range filter sends
 * 200 with the whole file if there are too many ranges, if the If-Range
 * condition fails, or if the ranges together are larger than the file.  So a
 * request that the signature does not exactly cover is rejected before the
 * range filter runs.  The data filter checks the final response.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_upload.h"


static void ngx_http_xet_audit_access(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_hub_access(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_api_access(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_data_access(ngx_http_request_t *r);
static ngx_uint_t ngx_http_xet_data_too_many(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_data_refuse(ngx_http_request_t *r,
    xet_status_t status);
static ngx_int_t ngx_http_xet_data_method(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_data_checked(ngx_http_request_t *r,
    xet_sign_asked_t *asked);
static ngx_int_t ngx_http_xet_data_etag(ngx_http_request_t *r,
    ngx_http_xet_data_t *data, xet_sign_asked_t *asked);


/*
 * Rejects subrequests, checks the origin of requests from web pages, and
 * verifies bodies.  These checks are in the preaccess phase, because "satisfy
 * any" may bypass a handler of the access phase, and nginx skips the access
 * phase for subrequests.  The subrequests by which nginx fetches slices and
 * updates a cache start after this phase, when their main request is already
 * checked.
 */

ngx_int_t
ngx_http_xet_preaccess_handler(ngx_http_request_t *r)
{
    xet_hash_t                hash;
    ngx_http_xet_upload_e     upload;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if ((r != r->main || r->post_action)
        && (xlcf->api || xlcf->data || xlcf->mint || xlcf->hub
            || xlcf->monitor))
    {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "xet: subrequest rejected: \"%V\"", &r->uri);
        return NGX_HTTP_FORBIDDEN;
    }

    /* nginx is already sending an error, which must not be replaced */

    if (r != r->main || r->err_status) {
        return NGX_DECLINED;
    }

    if (xlcf->api || xlcf->mint || xlcf->hub || xlcf->monitor) {
        return (ngx_http_xet_origin_check(r) == NGX_OK) ? NGX_DECLINED
                                                        : NGX_DONE;
    }

    if (!xlcf->verify_body) {
        return NGX_DECLINED;
    }

    upload = ngx_http_xet_route_upload(r, &hash);

    if (upload == NGX_HTTP_XET_UPLOAD_NONE) {
        return NGX_DECLINED;
    }

    return ngx_http_xet_verify(r, upload, &hash);
}


ngx_int_t
ngx_http_xet_access_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_http_xet_ctx_t       *ctx;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (!xlcf->api && !xlcf->data && !xlcf->hub) {
        return NGX_DECLINED;
    }

    ngx_http_xet_audit_access(r);

    rc = r->internal ? NGX_DECLINED : ngx_http_xet_cors(r);

    if (rc == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (xlcf->data) {

        if (rc == NGX_OK && r->method == NGX_HTTP_OPTIONS) {
            ngx_http_finalize_request(r, ngx_http_xet_cors_preflight(r));
            return NGX_DONE;
        }

        return ngx_http_xet_data_access(r);
    }

    if (rc == NGX_OK) {
        ctx = ngx_http_xet_ctx(r);
        if (ctx == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        ctx->cors = 1;

        /* browsers send preflight requests without a token */

        if (r->method == NGX_HTTP_OPTIONS) {
            return NGX_DECLINED;
        }
    }

    return xlcf->hub ? ngx_http_xet_hub_access(r)
                     : ngx_http_xet_api_access(r);
}


/*
 * Checks only that tokens are sent with TLS ("xet_require_tls"), because the
 * routes of the Hub check permissions themselves.
 */

static ngx_int_t
ngx_http_xet_hub_access(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (xlcf->auth != NGX_HTTP_XET_AUTH_TOKEN
        || r->headers_in.authorization == NULL)
    {
        return NGX_DECLINED;
    }

    rc = ngx_http_xet_auth_tls(r);

    return (rc == NGX_OK) ? NGX_DECLINED
           : (rc == NGX_DONE) ? NGX_DONE
           : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


/*
 * Creates the audit record of a request whose action is logged.  A request that
 * nginx has redirected keeps its first record.
 */

static void
ngx_http_xet_audit_access(ngx_http_request_t *r)
{
    ngx_http_xet_audit_t     *audit, now;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (ngx_http_xet_audit_find(r)) {
        (void) ngx_http_xet_audit_begin(r);
        return;
    }

    ngx_memzero(&now, sizeof(ngx_http_xet_audit_t));

    if (xlcf->audit != NGX_HTTP_XET_AUDIT_OFF) {
        ngx_http_xet_route_audit(r, &now);
    }

    /* reads need no record: rejected reads are logged without one */

    if (!now.write && xlcf->audit != NGX_HTTP_XET_AUDIT_ALL) {
        return;
    }

    audit = ngx_http_xet_audit_begin(r);
    if (audit == NULL) {
        return;
    }

    now.mode = audit->mode;
    *audit = now;

    /* evaluating a variable for a limit may already have verified the token */

    audit->auth = ngx_http_xet_ctx_of(r)->auth;
}


static ngx_int_t
ngx_http_xet_api_access(ngx_http_request_t *r)
{
    ngx_int_t    rc;
    ngx_uint_t   token;
    xet_scope_e  scope;

    ngx_http_xet_route_access(r, &token, &scope);

    /* with "satisfy any", NGX_OK would skip the other access handlers */

    if (!token) {
        return NGX_DECLINED;
    }

    rc = ngx_http_xet_auth_check(r, scope);

    return (rc == NGX_OK) ? NGX_DECLINED
           : (rc == NGX_DONE) ? NGX_DONE
           : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


static ngx_int_t
ngx_http_xet_data_access(ngx_http_request_t *r)
{
    xet_status_t               status;
    ngx_table_elt_t           *h;
    xet_sign_asked_t           asked;
    ngx_http_xet_main_conf_t  *xmcf;

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        return ngx_http_xet_data_method(r);
    }

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    status = xet_sign_parse(&asked, r->uri.data, r->uri.len, r->args.data,
                            r->args.len);

    if (status == XET_OK) {
        status = xet_sign_verify(&asked, xmcf->sign, xmcf->url_keys->nelts,
                                 (uint64_t) ngx_time());
    }

    if (status != XET_OK) {
        return ngx_http_xet_data_refuse(r, status);
    }

    h = r->headers_in.range;

    status = xet_sign_range_check(&asked.url, h ? h->value.data : NULL,
                                  h ? h->value.len : 0);

    if (status == XET_OK && asked.url.n
        && (h == NULL || r->headers_in.if_range
            || ngx_http_xet_data_too_many(r)))
    {
        status = XET_SIGN_RANGE;
    }

    if (status != XET_OK) {
        return ngx_http_xet_data_refuse(r, status);
    }

    if (ngx_http_xet_data_checked(r, &asked) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return NGX_OK;
}


/*
 * Returns whether a request has more than "max_ranges" ranges; nginx responds
 * to such a request with the whole file.
 */

static ngx_uint_t
ngx_http_xet_data_too_many(ngx_http_request_t *r)
{
    size_t                     i;
    ngx_str_t                 *value;
    ngx_uint_t                 n;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    value = &r->headers_in.range->value;
    n = 1;

    for (i = 0; i < value->len; i++) {
        n += (value->data[i] == ',');
    }

    return n > clcf->max_ranges;
}


static ngx_int_t
ngx_http_xet_data_refuse(ngx_http_request_t *r, xet_status_t status)
{
    /* finalize, because "satisfy any" could override an error code */

    ngx_http_finalize_request(r, ngx_http_xet_error_status(r, status));

    return NGX_DONE;
}


/*
 * Rejects methods other than GET and HEAD before the URL is checked, so that
 * the response reveals nothing about the data.
 */

static ngx_int_t
ngx_http_xet_data_method(ngx_http_request_t *r)
{
    if (ngx_http_xet_header(r, "Allow", "GET, HEAD") != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_finalize_request(r,
        ngx_http_xet_error(r, NGX_HTTP_NOT_ALLOWED, "method_not_allowed",
                           "data is served to GET and HEAD only"));

    return NGX_DONE;
}


static ngx_int_t
ngx_http_xet_data_checked(ngx_http_request_t *r, xet_sign_asked_t *asked)
{
    ngx_str_t            *uri;
    ngx_http_xet_ctx_t   *ctx;
    ngx_http_xet_data_t  *data;

    ctx = ngx_http_xet_ctx(r);
    data = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_data_t));

    if (ctx == NULL || data == NULL) {
        return NGX_ERROR;
    }

    data->uri = r->uri;
    data->expires = (time_t) asked->url.expires;
    data->size = -1;
    data->ranges = (asked->url.n != 0);

    /*
     * after an internal redirect from "GET xorbs", the arguments differ from
     * those sent by the client
     */

    uri = &r->unparsed_uri;

    data->asked = uri->len > r->args.len
                  && ngx_memcmp(uri->data + uri->len - r->args.len,
                                r->args.data, r->args.len)
                     == 0;

    ctx->data = data;

    if (ctx->audit && !ctx->audit->has_hash) {
        ctx->audit->hash = asked->url.xorb;
        ctx->audit->has_hash = 1;
    }

    return ngx_http_xet_data_etag(r, data, asked);
}


/* Sets the ETag to the name of the copy, whose bytes never change. */

static ngx_int_t
ngx_http_xet_data_etag(ngx_http_request_t *r, ngx_http_xet_data_t *data,
    xet_sign_asked_t *asked)
{
    u_char  *p;

    p = ngx_pnalloc(r->pool, asked->name.len + 2);
    if (p == NULL) {
        return NGX_ERROR;
    }

    data->etag.data = p;
    data->etag.len = asked->name.len + 2;

    *p++ = '"';
    p = ngx_cpymem(p, asked->name.data, asked->name.len);
    *p = '"';

    if (r->content_handler) {

        /* ngx_http_xet_data_etag.c sets the ETag of the response */

        return NGX_OK;
    }

    r->headers_out.etag = ngx_http_xet_header_add(r, "ETag", &data->etag);

    return r->headers_out.etag ? NGX_OK : NGX_ERROR;
}
