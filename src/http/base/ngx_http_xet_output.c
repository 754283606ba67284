
/*
 * Answers: their bodies, and how they end.
 */

#include "ngx_http_xet.h"


static ngx_int_t ngx_http_xet_send_chain(ngx_http_request_t *r,
    ngx_uint_t status, const char *content_type, ngx_chain_t *out,
    off_t length);
static ngx_buf_t *ngx_http_xet_output_buf(ngx_pool_t *pool,
    ngx_chain_t ***out);


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


ngx_int_t
ngx_http_xet_drop_body(ngx_http_request_t *r)
{
    if (r->headers_in.expect && !r->expect_tested) {

        /* no "100 Continue" is sent: the body may come or not, so close */

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

        /* an empty body has an end, too, or the request would never end */

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


/* Links a new buffer at *out, and moves *out behind it; NULL without memory. */

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
