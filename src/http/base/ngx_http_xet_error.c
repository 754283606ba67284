
/*
 * Errors as JSON, with the line that the operator gets.
 */

#include "ngx_http_xet.h"


static ngx_int_t ngx_http_xet_error_send(ngx_http_request_t *r,
    ngx_uint_t status, xet_buf_t *b, time_t after, const char *line);
static void ngx_http_xet_error_message(ngx_http_request_t *r,
    const char *message);
static ngx_int_t ngx_http_xet_error_type(ngx_http_request_t *r,
    ngx_uint_t status, const char *type, xet_buf_t *b, time_t after,
    const char *line);
static void ngx_http_xet_error_note(ngx_http_request_t *r, const char *code);
static void ngx_http_xet_log_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message);


ngx_int_t
ngx_http_xet_error(ngx_http_request_t *r, ngx_uint_t status, const char *code,
    const char *message)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    return ngx_http_xet_error_later(r, status, code, message,
                                    xlcf->retry_after);
}


ngx_int_t
ngx_http_xet_error_later(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message, time_t after)
{
    xet_buf_t   b;
    xet_json_t  j;

    ngx_http_xet_error_note(r, code);
    ngx_http_xet_log_error(r, status, code, message);

    ngx_http_xet_error_begin(r, &b, &j, code, message);
    ngx_http_xet_error_end(&j);

    return ngx_http_xet_error_send(r, status, &b, after, NULL);
}


ngx_int_t
ngx_http_xet_error_page(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message, xet_buf_t *b)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    ngx_http_xet_error_note(r, code);
    ngx_http_xet_log_error(r, status, code, message);

    return ngx_http_xet_error_type(r, status, "text/html; charset=utf-8", b,
                                   xlcf->retry_after, NULL);
}


static ngx_int_t
ngx_http_xet_error_send(ngx_http_request_t *r, ngx_uint_t status, xet_buf_t *b,
    time_t after, const char *line)
{
    return ngx_http_xet_error_type(r, status, "application/json", b, after,
                                   line);
}


/*
 * Sends b in the place of whatever was to be answered.  Headers that describe
 * the content go.  A body that was not read is discarded by nginx; where it was
 * read, or there is none, nothing is left to do.  With line it is the status
 * line of HTTP/1, of status and words.
 */

static ngx_int_t
ngx_http_xet_error_type(ngx_http_request_t *r, ngx_uint_t status,
    const char *type, xet_buf_t *b, time_t after, const char *line)
{
    u_char     *p;
    ngx_int_t   rc;
    ngx_str_t   value;
    ngx_uint_t  i;

    static const char *const  names[] = {
        "Cache-Control",
        "Content-Disposition",
        "Digest",
        "Repr-Digest"
    };

    rc = ngx_http_xet_drop_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_http_clear_etag(r);

    if (r->headers_out.content_encoding) {
        r->headers_out.content_encoding->hash = 0;
        r->headers_out.content_encoding = NULL;
    }

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ngx_http_xet_header_remove(r, names[i]);
    }

    /* a cache would keep 404, though what is missing now may come */

    if (ngx_http_xet_header(r, "Cache-Control", "no-store") != NGX_OK) {
        return NGX_ERROR;
    }

    if (status == NGX_HTTP_TOO_MANY_REQUESTS
        || (status >= NGX_HTTP_INTERNAL_SERVER_ERROR
            && status != NGX_HTTP_NOT_IMPLEMENTED))
    {
        p = ngx_pnalloc(r->pool, NGX_TIME_T_LEN);
        if (p == NULL) {
            return NGX_ERROR;
        }

        value.data = p;
        value.len = ngx_sprintf(p, "%T", after) - p;

        if (ngx_http_xet_header_add(r, "Retry-After", &value) == NULL) {
            return NGX_ERROR;
        }
    }

    if (line) {
        r->headers_out.status_line.data = (u_char *) line;
        r->headers_out.status_line.len = ngx_strlen(line);
    }

    rc = ngx_http_xet_send(r, status, type, b);

    if (line && !r->header_sent) {

        /* what nginx answers instead has a status of its own */

        ngx_str_null(&r->headers_out.status_line);
    }

    return rc;
}


/*
 * Clients of a Hub read a text where those of the API read an object, and a
 * header where there is no body.
 */

void
ngx_http_xet_error_begin(ngx_http_request_t *r, xet_buf_t *b, xet_json_t *j,
    const char *code, const char *message)
{
    ngx_uint_t                hub;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    xet_buf_init(b, ngx_http_xet_alloc, r->pool, 256);
    xet_json_init(j, b);

    xet_json_object_begin(j);

    hub = ngx_http_xet_of_hub(xlcf);

    if (hub) {
        ngx_http_xet_error_message(r, message);

        xet_json_key(j, "error");
        xet_json_cstring(j, message);
    }

    xet_json_key(j, hub ? "details" : "error");
    xet_json_object_begin(j);
    xet_json_key(j, "code");
    xet_json_cstring(j, code);
    xet_json_key(j, "message");
    xet_json_cstring(j, message);
}


/* A header is one line.  Without memory there is none. */

static void
ngx_http_xet_error_message(ngx_http_request_t *r, const char *message)
{
    u_char     *p;
    ngx_str_t   text;

    ngx_http_xet_header_remove(r, "X-Error-Message");

    text.data = ngx_pnalloc(r->pool, ngx_strlen(message) + 1);
    if (text.data == NULL) {
        return;
    }

    for (p = text.data; *message; message++) {
        *p++ = ((u_char) *message < 0x20 || *message == 0x7f) ? '?' : *message;
    }

    text.len = p - text.data;

    (void) ngx_http_xet_header_add(r, "X-Error-Message", &text);
}


void
ngx_http_xet_error_end(xet_json_t *j)
{
    xet_json_object_end(j);
    xet_json_object_end(j);
}


/* For $xet_audit; without memory the line has no code. */

static void
ngx_http_xet_error_note(ngx_http_request_t *r, const char *code)
{
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_xet_ctx(r);

    if (ctx) {
        ctx->code = code;
    }
}


/*
 * Faults of the server, uploads that were refused, and requests to a name that
 * the configuration does not have, are logged as errors, for the operator.
 * What anybody can cause by a URL is logged at level "info", as nginx logs what
 * clients do wrong; so is what clients of a Hub ask for to learn whether it is
 * there already.
 */

static void
ngx_http_xet_log_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message)
{
    ngx_uint_t                level;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    ngx_http_xet_metrics_refusal(code);

    if ((status >= NGX_HTTP_INTERNAL_SERVER_ERROR
         && status != NGX_HTTP_NOT_IMPLEMENTED)
        || status == NGX_HTTP_MISDIRECTED_REQUEST
        || (status != NGX_HTTP_NOT_FOUND
            && status != NGX_HTTP_NOT_ALLOWED
            && status != NGX_HTTP_UNAUTHORIZED
            && !(xlcf->hub && (status == NGX_HTTP_CONFLICT
                               || status == NGX_HTTP_PRECONDITION_FAILED))
            && r->method & (NGX_HTTP_POST|NGX_HTTP_PUT)))
    {
        level = NGX_LOG_ERR;

    } else {
        level = NGX_LOG_INFO;
    }

    ngx_log_error(level, r->connection->log, 0, "xet: %ui %s: %s", status,
                  code, message);
}


ngx_int_t
ngx_http_xet_error_status(ngx_http_request_t *r, xet_status_t status)
{
    return ngx_http_xet_error(r, xet_status_http(status),
                              xet_status_code(status),
                              xet_status_text(status));
}


ngx_int_t
ngx_http_xet_error_method(ngx_http_request_t *r, ngx_uint_t methods)
{
    if (ngx_http_xet_error_allow(r, methods) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_error(r, NGX_HTTP_NOT_ALLOWED, "method_not_allowed",
                              NGX_HTTP_XET_ERROR_METHOD);
}


ngx_int_t
ngx_http_xet_error_allow(ngx_http_request_t *r, ngx_uint_t methods)
{
    u_char      *p;
    ngx_str_t    value;
    ngx_uint_t   i;

    static const struct {
        ngx_uint_t   method;
        const char  *name;
    } names[] = {
        { NGX_HTTP_GET, "GET" },
        { NGX_HTTP_HEAD, "HEAD" },
        { NGX_HTTP_POST, "POST" },
        { NGX_HTTP_PUT, "PUT" },
        { NGX_HTTP_DELETE, "DELETE" }
    };

    p = ngx_pnalloc(r->pool, 64);
    if (p == NULL) {
        return NGX_ERROR;
    }

    value.data = p;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (methods & names[i].method) {
            p = ngx_sprintf(p, "%s%s", (p == value.data) ? "" : ", ",
                            names[i].name);
        }
    }

    value.len = p - value.data;

    return ngx_http_xet_header_add(r, "Allow", &value) ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_xet_error_json(ngx_http_request_t *r, xet_status_t status,
    xet_buf_t *b)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    ngx_http_xet_error_note(r, xet_status_code(status));
    ngx_http_xet_log_error(r, xet_status_http(status),
                           xet_status_code(status), xet_status_text(status));

    return ngx_http_xet_error_send(r, xet_status_http(status), b,
                                   xlcf->retry_after, NULL);
}


ngx_int_t
ngx_http_xet_error_told(ngx_http_request_t *r, xet_status_t status,
    const char *message, const char *line)
{
    xet_buf_t                 b;
    xet_json_t                j;
    const char               *code;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    code = xet_status_code(status);

    ngx_http_xet_log_error(r, xet_status_http(status), code, message);

    ngx_http_xet_error_begin(r, &b, &j, code, message);
    xet_json_object_end(&j);
    xet_json_key(&j, "error_description");
    xet_json_cstring(&j, message);
    xet_json_object_end(&j);

    return ngx_http_xet_error_send(r, xet_status_http(status), &b,
                                   xlcf->retry_after, line);
}


ngx_int_t
ngx_http_xet_error_handler(ngx_http_request_t *r)
{
    xet_buf_t                 b;
    xet_json_t                j;
    ngx_uint_t                i, status;
    ngx_http_xet_loc_conf_t  *xlcf;

    static const struct {
        ngx_uint_t   status;
        const char  *code;
        const char  *message;
    } errors[] = {
        { 400, "bad_request", "bad request" },
        { 403, "forbidden", "forbidden" },
        { 404, "not_found", "not found" },
        { 405, "method_not_allowed", "method not allowed" },
        { 408, "timeout", "the request body did not come in time" },
        { 411, "length_required", "length required" },
        { 412, "precondition_failed", "precondition failed" },
        { 413, "body_too_large", "the request body is too large" },
        { 414, "uri_too_long", "the request URI is too long" },
        { 416, "range_not_satisfiable", "range not satisfiable" },
        { 429, "too_many_requests", "too many requests" },
        { 494, "headers_too_large", "the request headers are too large" },
        { 502, "bad_gateway", "bad gateway" },
        { 503, "service_unavailable", "service unavailable" },
        { 504, "gateway_timeout", "gateway timeout" },
        { 507, "insufficient_storage", "no space is left" },
        { 500, "internal_error", "internal error" }
    };

    /* what failed before the access phase has no headers for browsers yet */

    if (ngx_http_xet_cors(r) == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    status = r->err_status ? r->err_status : NGX_HTTP_NOT_FOUND;

    /* the last entry stands for every status that is not listed */

    for (i = 0; i < sizeof(errors) / sizeof(errors[0]) - 1; i++) {
        if (errors[i].status == status) {
            break;
        }
    }

    r->err_status = 0;

    /* nginx ends the connection behind what a filter of it has refused */

    if (r->filter_finalize) {
        r->keepalive = 0;
    }

    ngx_http_xet_error_note(r, errors[i].code);
    ngx_http_xet_metrics_refusal(errors[i].code);

    /* nginx has logged the error; its own status 494 goes out as 400 */

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    ngx_http_xet_error_begin(r, &b, &j, errors[i].code, errors[i].message);
    ngx_http_xet_error_end(&j);

    return ngx_http_xet_error_send(r, (status == 494) ? 400 : status, &b,
                                   xlcf->retry_after, NULL);
}
