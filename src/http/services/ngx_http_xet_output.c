
/*
 * Answers: bodies, errors and the headers that go with them.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_cors.h"
#include "ngx_http_xet_limit.h"
#include "ngx_http_xet_output.h"


static ngx_int_t ngx_http_xet_send_chain(ngx_http_request_t *r,
    ngx_uint_t status, const char *content_type, ngx_chain_t *out,
    off_t length);
static ngx_int_t ngx_http_xet_send_error(ngx_http_request_t *r,
    ngx_uint_t status, const char *code, const char *message, time_t after);
static ngx_buf_t *ngx_http_xet_output_buf(ngx_pool_t *pool,
    ngx_chain_t ***out);
static ngx_int_t ngx_http_xet_forget(ngx_http_request_t *r);
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
    ngx_http_xet_log_error(r, status, code, message);

    return ngx_http_xet_send_error(r, status, code, message, after);
}


static ngx_int_t
ngx_http_xet_send_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message, time_t after)
{
    u_char      *value;
    xet_buf_t    b;
    xet_json_t   j;

    if (ngx_http_xet_forget(r) != NGX_OK) {
        return NGX_ERROR;
    }

    if (status == NGX_HTTP_TOO_MANY_REQUESTS
        || (status >= NGX_HTTP_INTERNAL_SERVER_ERROR
            && status != NGX_HTTP_NOT_IMPLEMENTED))
    {
        value = ngx_pnalloc(r->pool, NGX_TIME_T_LEN + 1);
        if (value == NULL) {
            return NGX_ERROR;
        }

        *ngx_sprintf(value, "%T", after) = '\0';

        if (ngx_http_xet_header(r, "Retry-After", (char *) value) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    ngx_http_xet_error_begin(r, &b, &j, code, message);
    ngx_http_xet_error_end(&j);

    return ngx_http_xet_send(r, status, "application/json", &b);
}


void
ngx_http_xet_error_begin(ngx_http_request_t *r, xet_buf_t *b, xet_json_t *j,
    const char *code, const char *message)
{
    xet_buf_init(b, ngx_http_xet_alloc, r->pool, 256);
    xet_json_init(j, b);

    xet_json_object_begin(j);
    xet_json_key(j, "error");
    xet_json_object_begin(j);
    xet_json_key(j, "code");
    xet_json_cstring(j, code);
    xet_json_key(j, "message");
    xet_json_cstring(j, message);
}


void
ngx_http_xet_error_end(xet_json_t *j)
{
    xet_json_object_end(j);
    xet_json_object_end(j);
}


/* Headers that were meant for the content: an error must not be cached. */

static ngx_int_t
ngx_http_xet_forget(ngx_http_request_t *r)
{
    ngx_uint_t        i, n;
    ngx_table_elt_t  *h;

    static const char *const  names[] = {
        "Cache-Control",
        "Content-Disposition",
        "Digest",
        "Repr-Digest"
    };

    ngx_http_clear_etag(r);

    if (r->headers_out.content_encoding) {
        r->headers_out.content_encoding->hash = 0;
        r->headers_out.content_encoding = NULL;
    }

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        for (n = 0; /* void */ ; n++) {

            h = ngx_http_xet_header_find(&r->headers_out.headers, names[i], n);
            if (h == NULL) {
                break;
            }

            h->hash = 0;
        }
    }

    /* what is not there now may come: a cache keeps 404 unless told */

    return ngx_http_xet_header(r, "Cache-Control", "no-store");
}


/*
 * Faults of ours, and uploads that were refused, get the operator's eye.  What
 * anybody can cause by a URL is logged as nginx logs such things.
 */

static void
ngx_http_xet_log_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message)
{
    ngx_uint_t  level;

    if ((status >= NGX_HTTP_INTERNAL_SERVER_ERROR
         && status != NGX_HTTP_NOT_IMPLEMENTED)
        || (status != NGX_HTTP_NOT_FOUND
            && status != NGX_HTTP_NOT_ALLOWED
            && status != NGX_HTTP_UNAUTHORIZED
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
ngx_http_xet_error_json(ngx_http_request_t *r, xet_status_t status,
    xet_buf_t *b)
{
    ngx_http_xet_log_error(r, xet_status_http(status),
                           xet_status_code(status), xet_status_text(status));

    if (ngx_http_xet_forget(r) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_xet_send(r, xet_status_http(status), "application/json",
                             b);
}


ngx_int_t
ngx_http_xet_error_query(ngx_http_request_t *r, ngx_int_t rc,
    const char *code, const char *missing)
{
    switch (rc) {

    case NGX_DECLINED:

        if (code) {
            return ngx_http_xet_error(r, NGX_HTTP_NOT_FOUND, code, missing);
        }

        break;

    case NGX_BUSY:
        return ngx_http_xet_error(r, NGX_HTTP_SERVICE_UNAVAILABLE,
                                  "database_unavailable",
                                  "the database is not available");

    default: /* NGX_ERROR, NGX_ABORT */
        break;
    }

    return ngx_http_xet_error(r, NGX_HTTP_INTERNAL_SERVER_ERROR,
                              "internal_error", "the database failed");
}


ngx_int_t
ngx_http_xet_break_off(ngx_http_request_t *r)
{
    struct linger  linger;

    if (r != r->main) {
        return NGX_ERROR;
    }

    if (r->http_version < NGX_HTTP_VERSION_20 && !r->chunked
        && r->headers_out.content_length_n == -1)
    {
        /* an orderly end of the connection would be the end of the answer */

        linger.l_onoff = 1;
        linger.l_linger = 0;

        if (setsockopt(r->connection->fd, SOL_SOCKET, SO_LINGER, &linger,
                       sizeof(struct linger))
            == -1)
        {
            ngx_connection_error(r->connection, ngx_socket_errno,
                                 "setsockopt(SO_LINGER) failed");
        }

        /* no close_notify of TLS either */

        r->connection->error = 1;

        return NGX_ERROR;
    }

    r->keepalive = 0;

    return ngx_http_send_special(r, NGX_HTTP_FLUSH);
}


void
ngx_http_xet_answer_query(ngx_http_request_t *r, ngx_int_t rc,
    ngx_int_t (*rows)(ngx_http_request_t *r), const char *code,
    const char *missing)
{
    if (rc == NGX_OK) {
        rc = rows(r);

        if (rc == NGX_AGAIN) {
            return;
        }

    } else {
        rc = ngx_http_xet_error_query(r, rc, code, missing);
    }

    ngx_http_finalize_request(r, rc);
}


ngx_int_t
ngx_http_xet_wait_query(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc != NGX_AGAIN) {
        return ngx_http_xet_error_query(r, rc, NULL, NULL);
    }

    r->main->count++;
    r->read_event_handler = ngx_http_test_reading;

    return NGX_DONE;
}


ngx_int_t
ngx_http_xet_asked_query(ngx_http_request_t *r, ngx_int_t rc)
{
    return (rc == NGX_AGAIN) ? NGX_AGAIN
                             : ngx_http_xet_error_query(r, rc, NULL, NULL);
}


ngx_int_t
ngx_http_xet_refuse(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message)
{
    ngx_int_t  rc;

    rc = ngx_http_xet_drop_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_http_xet_error(r, status, code, message);
}


ngx_int_t
ngx_http_xet_drop_body(ngx_http_request_t *r)
{
    if (r->headers_in.expect && !r->expect_tested) {

        /* nginx would ask for the body; who does not send it must not go on */

        r->expect_tested = 1;
        r->keepalive = 0;
    }

    return ngx_http_discard_request_body(r);
}


ngx_int_t
ngx_http_xet_send(ngx_http_request_t *r, ngx_uint_t status,
    const char *content_type, xet_buf_t *b)
{
    ngx_buf_t    *last;
    ngx_chain_t  *out;

    if (ngx_http_xet_output_chain(r->pool, b, &out, &last) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    last->last_buf = (r == r->main) ? 1 : 0;

    return ngx_http_xet_send_chain(r, status, content_type, out,
                                   (off_t) b->size);
}


ngx_int_t
ngx_http_xet_output_chain(ngx_pool_t *pool, xet_buf_t *b, ngx_chain_t **out,
    ngx_buf_t **last)
{
    ngx_buf_t       *buf;
    xet_buf_node_t  *node;

    if (xet_buf_status(b) != XET_OK) {
        return NGX_ERROR;
    }

    buf = NULL;

    for (node = b->first; node; node = node->next) {

        if (node->pos == node->start) {
            continue;
        }

        buf = ngx_http_xet_output_buf(pool, &out);
        if (buf == NULL) {
            return NGX_ERROR;
        }

        buf->pos = node->start;
        buf->last = node->pos;
        buf->memory = 1;
    }

    if (buf == NULL) {

        /* no bytes have an end, too, or their request would never have one */

        buf = ngx_http_xet_output_buf(pool, &out);
        if (buf == NULL) {
            return NGX_ERROR;
        }

        buf->sync = 1;
    }

    buf->last_in_chain = 1;

    *last = buf;

    return NGX_OK;
}


/* A buffer in a link of its own, at *out, which is moved behind it. */

static ngx_buf_t *
ngx_http_xet_output_buf(ngx_pool_t *pool, ngx_chain_t ***out)
{
    ngx_buf_t    *buf;
    ngx_chain_t  *cl;

    cl = ngx_alloc_chain_link(pool);
    buf = ngx_calloc_buf(pool);

    if (cl == NULL || buf == NULL) {
        return NULL;
    }

    cl->buf = buf;
    cl->next = NULL;

    **out = cl;
    *out = &cl->next;

    return buf;
}


ngx_int_t
ngx_http_xet_send_literal(ngx_http_request_t *r, ngx_uint_t status,
    const char *content_type, const char *body)
{
    xet_buf_t  b;

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 128);
    xet_buf_write(&b, body, ngx_strlen(body));

    return ngx_http_xet_send(r, status, content_type, &b);
}


void
ngx_http_xet_output_type(ngx_http_request_t *r, ngx_uint_t status,
    const char *content_type, off_t length)
{
    r->headers_out.status = status;
    r->headers_out.content_length_n = length;

    r->headers_out.content_type.data = (u_char *) content_type;
    r->headers_out.content_type.len = ngx_strlen(content_type);
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    /* Range and If-* headers of the request are never nginx's to apply here */

    r->allow_ranges = 0;
    r->disable_not_modified = 1;
}


static ngx_int_t
ngx_http_xet_send_chain(ngx_http_request_t *r, ngx_uint_t status,
    const char *content_type, ngx_chain_t *out, off_t length)
{
    ngx_int_t  rc;

    ngx_http_xet_limit_release(r);

    ngx_http_xet_output_type(r, status, content_type, length);

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return ngx_http_xet_sent(rc);
    }

    return ngx_http_xet_sent(ngx_http_output_filter(r, out));
}


ngx_int_t
ngx_http_xet_sent(ngx_int_t rc)
{
    return (rc == NGX_AGAIN) ? NGX_OK : rc;
}


ngx_int_t
ngx_http_xet_send_head(ngx_http_request_t *r, off_t length)
{
    r->header_only = 1;

    return ngx_http_xet_send_chain(r, NGX_HTTP_OK, "application/octet-stream",
                                   NULL, length);
}


ngx_int_t
ngx_http_xet_header(ngx_http_request_t *r, const char *key, const char *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    h->hash = 1;
    ngx_http_xet_header_last(h);
    h->key.data = (u_char *) key;
    h->key.len = ngx_strlen(key);
    h->value.data = (u_char *) value;
    h->value.len = ngx_strlen(value);

    return NGX_OK;
}


ngx_table_elt_t *
ngx_http_xet_header_find(ngx_list_t *headers, const char *name, ngx_uint_t n)
{
    size_t            len;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    len = ngx_strlen(name);
    part = &headers->part;
    h = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {

            if (part->next == NULL) {
                break;
            }

            part = part->next;
            h = part->elts;
            i = 0;
        }

        if (h[i].key.len == len
            && ngx_strncasecmp(h[i].key.data, (u_char *) name, len) == 0
            && n-- == 0)
        {
            return &h[i];
        }
    }

    return NULL;
}


void *
ngx_http_xet_alloc(void *pool, size_t size)
{
    return ngx_palloc(pool, size);
}


ngx_int_t
ngx_http_xet_error_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
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

    rc = ngx_http_xet_drop_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    /* what failed before the access phase has no headers for browsers yet */

    if (ngx_http_xet_cors(r) == NGX_ERROR) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    status = r->err_status ? r->err_status : NGX_HTTP_NOT_FOUND;

    /* the last one stands for whatever is not listed */

    for (i = 0; i < sizeof(errors) / sizeof(errors[0]) - 1; i++) {
        if (errors[i].status == status) {
            break;
        }
    }

    r->err_status = 0;

    /* nginx has logged it; 494 is its own, and goes out as 400 */

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    return ngx_http_xet_send_error(r, (status == 494) ? 400 : status,
                                   errors[i].code, errors[i].message,
                                   xlcf->retry_after);
}
