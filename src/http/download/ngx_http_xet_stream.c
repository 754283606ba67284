
/*
 * A response in pieces: each piece is made after the previous one was sent.
 *
 * States: making (the owner makes a piece) -> sending (the client receives it)
 * -> making ... -> done.  There is one piece at a time, in a pool of its own,
 * so only one piece is in memory.  While sending, the stream handles the write
 * events of the socket; a client that receives nothing for "send_timeout" is
 * disconnected.
 *
 * All functions run in the event loop.  In the state making, a thread may use
 * the pool of the piece.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"


static void ngx_http_xet_stream_cleanup(void *data);
static void ngx_http_xet_stream_continue(ngx_http_request_t *r,
    ngx_http_xet_stream_t *s);
static void ngx_http_xet_stream_write_handler(ngx_http_request_t *r);


ngx_int_t
ngx_http_xet_stream_init(ngx_http_request_t *r, ngx_http_xet_stream_t *s,
    ngx_http_xet_stream_next_pt next, void *data)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(s, sizeof(ngx_http_xet_stream_t));

    s->next = next;
    s->data = data;

    cln->handler = ngx_http_xet_stream_cleanup;
    cln->data = s;

    ngx_http_xet_ctx_of(r)->stream = s;

    return NGX_OK;
}


static void
ngx_http_xet_stream_cleanup(void *data)
{
    ngx_http_xet_stream_t *s = data;

    if (s->pool) {
        ngx_destroy_pool(s->pool);
    }
}


ngx_pool_t *
ngx_http_xet_stream_pool(ngx_http_xet_stream_t *s)
{
    if (s->pool == NULL) {
        s->pool = ngx_create_pool(4096, ngx_cycle->log);
    }

    return s->pool;
}


void
ngx_http_xet_stream_send(ngx_http_request_t *r, ngx_http_xet_stream_t *s,
    xet_buf_t *b, ngx_uint_t last)
{
    ngx_buf_t    *buf;
    ngx_int_t     rc;
    ngx_chain_t  *out;

    if (ngx_http_xet_output_chain(s->pool, b, &out, &buf) != NGX_OK) {
        ngx_http_finalize_request(r, s->begun ? NGX_ERROR
                                     : NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet stream: sending last:%ui", last);

    buf->flush = 1;
    buf->last_buf = (last && r == r->main) ? 1 : 0;

    if (!s->begun) {
        s->begun = 1;

        rc = ngx_http_send_header(r);

        if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
            ngx_http_finalize_request(r, rc);
            return;
        }
    }

    rc = ngx_http_output_filter(r, out);

    if (rc == NGX_ERROR || last) {
        ngx_http_finalize_request(r, rc);
        return;
    }

    ngx_http_xet_stream_continue(r, s);
}


static void
ngx_http_xet_stream_continue(ngx_http_request_t *r, ngx_http_xet_stream_t *s)
{
    if (ngx_http_xet_backlog_wait(r, ngx_http_xet_stream_write_handler)
        != NGX_OK)
    {
        return;
    }

    r->write_event_handler = ngx_http_request_empty_handler;

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet stream: making");

    ngx_destroy_pool(s->pool);
    s->pool = NULL;

    s->next(r, s->data);
}


static void
ngx_http_xet_stream_write_handler(ngx_http_request_t *r)
{
    if (ngx_http_xet_backlog_send(r) == NGX_OK) {
        ngx_http_xet_stream_continue(r, ngx_http_xet_ctx_of(r)->stream);
    }
}
