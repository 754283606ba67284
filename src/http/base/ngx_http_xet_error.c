
/*
 * Sends errors as JSON, and logs them.
 */

#include "ngx_http_xet.h"


#define NGX_HTTP_XET_ERROR_FULL    160         /* bytes of a message */
#define NGX_HTTP_XET_ERROR_RECENT  10          /* seconds */


static ngx_int_t ngx_http_xet_error_headers(ngx_http_request_t *r,
    const ngx_http_xet_error_t *e);
static void ngx_http_xet_error_message(ngx_http_request_t *r,
    const char *message);
static void ngx_http_xet_error_fill(ngx_http_request_t *r,
    ngx_http_xet_error_t *e);
static void ngx_http_xet_error_hf_xet(ngx_http_request_t *r,
    ngx_http_xet_error_t *e);
static void ngx_http_xet_error_body(ngx_http_request_t *r, xet_buf_t *b,
    const ngx_http_xet_error_t *e);
static ngx_int_t ngx_http_xet_error_note(ngx_http_request_t *r,
    const ngx_http_xet_error_t *e);
static ngx_uint_t ngx_http_xet_error_level(ngx_http_request_t *r,
    ngx_uint_t status);
static ngx_int_t ngx_http_xet_error_allow(ngx_http_request_t *r,
    ngx_uint_t methods);


/* The free bytes of a full disk, set by threads, and when that was. */

static ngx_atomic_t  ngx_http_xet_error_bytes;
static ngx_atomic_t  ngx_http_xet_error_time;


ngx_int_t
ngx_http_xet_error(ngx_http_request_t *r, ngx_uint_t status, const char *code,
    const char *message)
{
    return ngx_http_xet_error_more(r, .status = status, .code = code,
                                   .message = message);
}


ngx_int_t
ngx_http_xet_error_status(ngx_http_request_t *r, xet_status_t status)
{
    return ngx_http_xet_error_more(r, .core = status);
}


ngx_int_t
ngx_http_xet_error_send(ngx_http_request_t *r,
    const ngx_http_xet_error_t *error)
{
    xet_buf_t              b;
    ngx_int_t              rc;
    ngx_http_xet_error_t   e;

    e = *error;

    ngx_http_xet_error_fill(r, &e);

    ngx_http_xet_error_hf_xet(r, &e);

    if (ngx_http_xet_error_note(r, &e) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (e.body == NULL) {
        ngx_http_xet_error_body(r, &b, &e);
        e.body = &b;
    }

    rc = ngx_http_xet_error_headers(r, &e);

    if (rc != NGX_OK) {
        return rc;
    }

    if (e.line) {
        r->headers_out.status_line.data = (u_char *) e.line;
        r->headers_out.status_line.len = ngx_strlen(e.line);
    }

    rc = ngx_http_xet_send(r, e.status, e.type ? e.type : "application/json",
                           e.body);

    if (e.line && !r->header_sent) {

        /* if nginx replaces the response, it must use its own status line */

        ngx_str_null(&r->headers_out.status_line);
    }

    return rc;
}


/* Sets the members that the caller has omitted. */

static void
ngx_http_xet_error_fill(ngx_http_request_t *r, ngx_http_xet_error_t *e)
{
    if (e->status == 0) {
        e->status = xet_status_http(e->core);
    }

    if (e->code == NULL) {
        e->code = xet_status_code(e->core);
    }

    if (e->message == NULL && e->core == XET_STORE_FULL) {
        e->message = ngx_http_xet_error_full(r);
    }

    if (e->message == NULL) {
        e->message = xet_status_text(e->core);
    }
}


/*
 * hf_xet repeats a 507 for minutes, but not a 413, and prints the reason phrase
 * of a response, but not its body.
 */

static void
ngx_http_xet_error_hf_xet(ngx_http_request_t *r, ngx_http_xet_error_t *e)
{
    ngx_http_xet_ctx_t       *ctx;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (e->core == XET_STORE_FULL && ctx && ctx->full_413) {
        e->status = NGX_HTTP_REQUEST_ENTITY_TOO_LARGE;
        e->after = xlcf->retry_after;
    }

    if (e->line == NULL
        && (e->core == XET_STORE_FULL
            || (e->status == NGX_HTTP_UNAUTHORIZED
                && !ngx_http_xet_of_hub(xlcf))))
    {
        e->line = ngx_http_xet_error_line(r, e->status, e->message);
    }
}


static void
ngx_http_xet_error_body(ngx_http_request_t *r, xet_buf_t *b,
    const ngx_http_xet_error_t *e)
{
    xet_json_t                j;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    ngx_http_xet_error_begin(r, b, &j, e->code, e->message);

    /*
     * clients know this header, and report a missing repo if it has another
     * text; they also show the message in the body
     */

    if (e->status == NGX_HTTP_UNAUTHORIZED && ngx_http_xet_of_hub(xlcf)) {
        ngx_http_xet_error_message(r, "Invalid credentials in Authorization"
                                      " header");
    }

    if (e->line) {
        xet_json_object_end(&j);
        xet_json_put_cstring(&j, "error_description", e->message);
        xet_json_object_end(&j);

    } else {
        ngx_http_xet_error_end(&j);
    }
}


void
ngx_http_xet_error_left(uint64_t bytes)
{
    ngx_http_xet_error_bytes = (ngx_atomic_uint_t) bytes;
    ngx_http_xet_error_time = (ngx_atomic_uint_t) ngx_time();
}


const char *
ngx_http_xet_error_line(ngx_http_request_t *r, ngx_uint_t status,
    const char *message)
{
    u_char  *line;
    size_t   len;

    len = ngx_strlen(message) + sizeof("507 ");

    line = ngx_pnalloc(r->pool, len);
    if (line == NULL) {
        return NULL;
    }

    (void) ngx_snprintf(line, len, "%ui %s%Z", status, message);

    return (const char *) line;
}


const char *
ngx_http_xet_error_full(ngx_http_request_t *r)
{
    if (r->headers_in.content_length_n <= 0
        || ngx_time() - (time_t) ngx_http_xet_error_time
           > NGX_HTTP_XET_ERROR_RECENT)
    {
        return xet_status_text(XET_STORE_FULL);
    }

    return ngx_http_xet_error_room(r, ngx_http_xet_error_bytes,
                                   r->headers_in.content_length_n);
}


const char *
ngx_http_xet_error_room(ngx_http_request_t *r, uint64_t left, uint64_t size)
{
    u_char  *text;

    text = ngx_pnalloc(r->pool, NGX_HTTP_XET_ERROR_FULL);
    if (text == NULL) {
        return xet_status_text(XET_STORE_FULL);
    }

    (void) ngx_snprintf(text, NGX_HTTP_XET_ERROR_FULL,
                        "%s: %uL bytes are left, and the upload has %uL%Z",
                        xet_status_text(XET_STORE_FULL), left, size);

    return (const char *) text;
}


/*
 * Removes headers that describe the content, and adds Cache-Control and
 * Retry-After.  Returns NGX_OK, or a value that the handler must return.
 */

static ngx_int_t
ngx_http_xet_error_headers(ngx_http_request_t *r,
    const ngx_http_xet_error_t *e)
{
    u_char                   *p;
    ngx_int_t                 rc;
    ngx_str_t                 value;
    ngx_uint_t                i;
    ngx_http_xet_loc_conf_t  *xlcf;

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

    /* otherwise a cache could keep a 404 after the object is added */

    if (ngx_http_xet_header(r, "Cache-Control", "no-store") != NGX_OK) {
        return NGX_ERROR;
    }

    if (e->status != NGX_HTTP_TOO_MANY_REQUESTS && e->after == 0
        && (e->status < NGX_HTTP_INTERNAL_SERVER_ERROR
            || e->status == NGX_HTTP_NOT_IMPLEMENTED))
    {
        return NGX_OK;
    }

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    p = ngx_pnalloc(r->pool, NGX_TIME_T_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    value.data = p;
    value.len = ngx_sprintf(p, "%T", e->after ? e->after : xlcf->retry_after)
                - p;

    return ngx_http_xet_header_add(r, "Retry-After", &value) ? NGX_OK
                                                             : NGX_ERROR;
}


/*
 * In the API, "error" is an object.  Clients of a Hub expect "error" to be a
 * string.  In a response without a body, they expect the message in a header.
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

        xet_json_put_cstring(j, "error", message);

        /* the only text that git-lfs shows */

        xet_json_put_cstring(j, "message", message);
    }

    xet_json_key(j, hub ? "details" : "error");
    xet_json_object_begin(j);
    xet_json_put_cstring(j, "code", code);
    xet_json_put_cstring(j, "message", message);
}


/*
 * Adds a header with the message as one line; omits the header if out of
 * memory.
 */

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


/*
 * Counts and logs an error, and saves its code for $xet_audit, unless out of
 * memory.  Hub codes, which begin with a capital letter, are also sent in a
 * header.  Without this header, clients take a 404 for a failed connection, so
 * a Hub sends it with each 404.
 */

static ngx_int_t
ngx_http_xet_error_note(ngx_http_request_t *r, const ngx_http_xet_error_t *e)
{
    const char               *code;
    ngx_http_xet_ctx_t       *ctx;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    ctx = ngx_http_xet_ctx(r);

    if (ctx) {
        ctx->code = e->code;
    }

    ngx_http_xet_metrics_refusal(e->code);

    if (!e->logged) {
        ngx_log_error(ngx_http_xet_error_level(r, e->status),
                      r->connection->log, 0, "xet: %ui %s: %s", e->status,
                      e->code, e->message);
    }

    code = e->code;

    if (code[0] < 'A' || code[0] > 'Z') {

        if (e->status != NGX_HTTP_NOT_FOUND || !ngx_http_xet_of_hub(xlcf)) {
            return NGX_OK;
        }

        code = (e->core == XET_NO_REPO) ? "RepoNotFound" : "EntryNotFound";
    }

    return ngx_http_xet_header(r, "X-Error-Code", code);
}


/*
 * Errors of the server, rejected uploads, and requests to an unknown host name
 * are logged at level "error", for the operator.  Errors that anyone can cause
 * by a URL are logged at level "info", like nginx's client errors.  On a Hub,
 * this includes requests by which clients test whether something exists.
 */

static ngx_uint_t
ngx_http_xet_error_level(ngx_http_request_t *r, ngx_uint_t status)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    return ((status >= NGX_HTTP_INTERNAL_SERVER_ERROR
             && status != NGX_HTTP_NOT_IMPLEMENTED)
            || status == NGX_HTTP_MISDIRECTED_REQUEST
            || (status != NGX_HTTP_NOT_FOUND
                && status != NGX_HTTP_NOT_ALLOWED
                && status != NGX_HTTP_UNAUTHORIZED
                && !(xlcf->hub && (status == NGX_HTTP_CONFLICT
                                   || status == NGX_HTTP_PRECONDITION_FAILED))
                && r->method & (NGX_HTTP_POST|NGX_HTTP_PUT)))
           ? NGX_LOG_ERR : NGX_LOG_INFO;
}


ngx_int_t
ngx_http_xet_error_route(ngx_http_request_t *r, ngx_uint_t methods)
{
    if (methods == 0) {
        return ngx_http_xet_error(r, NGX_HTTP_NOT_FOUND, "no_route",
                                  "no such route");
    }

    if (ngx_http_xet_error_allow(r, methods) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_error(r, NGX_HTTP_NOT_ALLOWED, "method_not_allowed",
                              "this method is not allowed here");
}


/* Adds the Allow header of a 405 response. */

static ngx_int_t
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
ngx_http_xet_error_handler(ngx_http_request_t *r)
{
    ngx_uint_t  i, status;

    static const struct {
        ngx_uint_t   status;
        const char  *code;
        const char  *message;
    } errors[] = {
        { 400, "bad_request", "bad request" },
        { 403, "forbidden", "forbidden" },
        { 404, "not_found", "not found" },
        { 405, "method_not_allowed", "method not allowed" },
        { 408, "timeout", "the request body did not arrive in time" },
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
        { 507, "insufficient_storage", "no space left" },
        { 500, "internal_error", "internal error" }
    };

    /* responses to errors before the access phase have no CORS headers yet */

    if (ngx_http_xet_cors(r) == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    status = r->err_status ? r->err_status : NGX_HTTP_NOT_FOUND;

    /* the last entry is for statuses that are not in the table */

    for (i = 0; i < sizeof(errors) / sizeof(errors[0]) - 1; i++) {
        if (errors[i].status == status) {
            break;
        }
    }

    r->err_status = 0;

    /* after an error in a body filter, nginx must close the connection */

    if (r->filter_finalize) {
        r->keepalive = 0;
    }

    /* 494 is internal to nginx and is sent as 400 */

    return ngx_http_xet_error_more(r, .status = (status == 494) ? 400 : status,
                                   .code = errors[i].code,
                                   .message = errors[i].message, .logged = 1);
}
