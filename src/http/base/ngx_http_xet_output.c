
/*
 * Functions that send responses: headers, bodies, and the end of a response.
 *
 * After a request is finalized, nginx itself waits for a slow client.  But a
 * handler that makes a response piece by piece must itself wait for the
 * socket's write events, before the request is finalized.  It must also apply
 * "send_timeout", which restarts with each successful write.  While a rate
 * limit delays the response, the timer is used for the delay.
 */

#include "ngx_http_xet.h"


static ngx_int_t ngx_http_xet_send_chain(ngx_http_request_t *r,
    ngx_uint_t status, const char *content_type, ngx_chain_t *out,
    off_t length);
static ngx_buf_t *ngx_http_xet_output_buf(ngx_pool_t *pool,
    ngx_chain_t ***out);


ngx_int_t
ngx_http_xet_header(ngx_http_request_t *r, const char *key, const char *value)
{
    ngx_str_t  s;

    s.data = (u_char *) value;
    s.len = ngx_strlen(value);

    return ngx_http_xet_header_add(r, key, &s) ? NGX_OK : NGX_ERROR;
}


ngx_table_elt_t *
ngx_http_xet_header_add(ngx_http_request_t *r, const char *key,
    const ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NULL;
    }

    h->hash = 1;
    ngx_http_xet_header_last(h);
    h->key.data = (u_char *) key;
    h->key.len = ngx_strlen(key);
    h->value = *value;

    return h;
}


void
ngx_http_xet_header_remove(ngx_http_request_t *r, const char *name)
{
    ngx_list_t       *headers;
    ngx_table_elt_t  *h;

    headers = &r->headers_out.headers;

    for ( ;; ) {

        h = ngx_http_xet_header_find(headers, name, 0);
        if (h == NULL) {
            return;
        }

        h->hash = 0;
    }
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

        if (h[i].hash && h[i].key.len == len
            && ngx_strncasecmp(h[i].key.data, (u_char *) name, len) == 0
            && n-- == 0)
        {
            return &h[i];
        }
    }

    return NULL;
}


ngx_uint_t
ngx_http_xet_browser(ngx_http_request_t *r)
{
    ngx_table_elt_t  *h;

    h = ngx_http_xet_header_find(&r->headers_in.headers, "Accept", 0);

    return h && ngx_strlcasestrn(h->value.data, h->value.data + h->value.len,
                                 (u_char *) "text/html",
                                 sizeof("text/html") - 2);
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
        /*
         * reset the connection: a normal close would look like the end of the
         * body
         */

        linger.l_onoff = 1;
        linger.l_linger = 0;

        if (setsockopt(r->connection->fd, SOL_SOCKET, SO_LINGER, &linger,
                       sizeof(struct linger))
            == -1)
        {
            ngx_connection_error(r->connection, ngx_socket_errno,
                                 "setsockopt(SO_LINGER) failed");
        }

        /* suppresses the TLS close_notify */

        r->connection->error = 1;

        return NGX_ERROR;
    }

    r->keepalive = 0;

    return ngx_http_send_special(r, NGX_HTTP_FLUSH);
}


ngx_int_t
ngx_http_xet_drop_body(ngx_http_request_t *r)
{
    if (r->headers_in.expect && !r->expect_tested) {

        /* without "100 Continue" the client may or may not send the body */

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

        /* the end of the response needs a buffer, even if the body is empty */

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


/*
 * Links a new buffer at *out, and moves *out past the buffer.  Returns NULL if
 * out of memory.
 */

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
ngx_http_xet_send_literal(ngx_http_request_t *r, const char *json)
{
    xet_buf_t  b;

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 128);
    xet_buf_write(&b, json, ngx_strlen(json));

    return ngx_http_xet_send(r, NGX_HTTP_OK, "application/json", &b);
}


void
ngx_http_xet_output_type(ngx_http_request_t *r, ngx_uint_t status,
    const char *content_type, off_t length)
{
    r->headers_out.status = status;
    r->headers_out.content_length_n = length;

    r->headers_out.content_type.data = (u_char *) content_type;
    r->headers_out.content_type.len = ngx_strlen(content_type);
    r->headers_out.content_type_len = strcspn(content_type, ";");
    r->headers_out.content_type_lowcase = NULL;

    /* nginx must not apply Range and If-* headers to this response */

    r->allow_ranges = 0;
    r->disable_not_modified = 1;
}


static ngx_int_t
ngx_http_xet_send_chain(ngx_http_request_t *r, ngx_uint_t status,
    const char *content_type, ngx_chain_t *out, off_t length)
{
    ngx_int_t  rc;

    ngx_http_xet_release(r);

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


void *
ngx_http_xet_alloc(void *pool, size_t size)
{
    return ngx_palloc(pool, size);
}


ngx_int_t
ngx_http_xet_backlog_wait(ngx_http_request_t *r,
    ngx_http_event_handler_pt handler)
{
    ngx_event_t               *wev;
    ngx_connection_t          *c;
    ngx_http_core_loc_conf_t  *clcf;

    c = r->connection;
    wev = c->write;

    if (!c->buffered && !r->buffered && !r->postponed && !wev->delayed) {

        if (wev->timer_set) {
            ngx_del_timer(wev);
        }

        return NGX_OK;
    }

    if (handler) {
        r->write_event_handler = handler;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (!wev->delayed) {
        ngx_add_timer(wev, clcf->send_timeout);
    }

    if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return NGX_ERROR;
    }

    return NGX_AGAIN;
}


ngx_int_t
ngx_http_xet_backlog_send(ngx_http_request_t *r)
{
    ngx_event_t       *wev;
    ngx_connection_t  *c;

    c = r->connection;
    wev = c->write;

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, c->log, NGX_ETIMEDOUT,
                      "client timed out");
        c->timedout = 1;

        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return NGX_ERROR;
    }

    if (!wev->delayed && ngx_http_output_filter(r, NULL) == NGX_ERROR) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return NGX_ERROR;
    }

    return NGX_OK;
}
