
/*
 * Responses of a Hub whose length depends on the repo, sent in parts.
 *
 *     asking (a statement reads the rows of a part) -> sending (the client
 *     receives the part) -> asking ... -> done
 *
 * An error in the first part is sent as a status.  A response of a single part
 * is sent as usual, with a Content-Length.  Otherwise the next part is
 * requested when the client has received the previous one.  So a request holds
 * the rows of one part and then its JSON, however long the response is and
 * however slow the client.  The first statement chooses the commit, and the
 * later statements use its id.
 *
 * If a later part fails, the connection is closed, so that the client notices
 * the truncated response.  The same happens if the caller loses the permission
 * to read the repo, because each statement checks it again.
 *
 * Everything runs in the event loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"


static void ngx_http_xet_hub_stream_next(ngx_http_request_t *r, void *data);
static void ngx_http_xet_hub_stream_end(ngx_http_request_t *r);


ngx_int_t
ngx_http_xet_hub_stream_init(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s, ngx_int_t (*ask)(ngx_http_request_t *r))
{
    s->ask = ask;
    s->type = "application/json";

    return ngx_http_xet_stream_init(r, &s->stream,
                                    ngx_http_xet_hub_stream_next, s);
}


static void
ngx_http_xet_hub_stream_next(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_hub_stream_t *s = data;

    if (s->ask(r) != NGX_AGAIN) {
        ngx_http_xet_hub_stream_end(r);
    }
}


/*
 * Closes the connection: the status is already sent, so a later error can't be
 * reported in any other way.
 */

static void
ngx_http_xet_hub_stream_end(ngx_http_request_t *r)
{
    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "xet: a response of the Hub was truncated");

    ngx_http_finalize_request(r, ngx_http_xet_break_off(r));
}


ngx_int_t
ngx_http_xet_hub_stream_row(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s, ngx_int_t rc,
    ngx_http_xet_hub_answer_t *answer)
{
    if (!s->stream.begun) {
        return ngx_http_xet_hub_row(r, rc, answer);
    }

    if (rc == NGX_OK) {
        ngx_http_xet_query_hub_get(r, answer);

        if (answer->status == NGX_HTTP_OK) {
            return NGX_OK;
        }
    }

    ngx_http_xet_hub_stream_end(r);

    return NGX_DONE;
}


xet_buf_t *
ngx_http_xet_hub_stream_part(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s, size_t size, ngx_uint_t last)
{
    ngx_pool_t  *pool;

    s->last = last;

    /* a single part is the whole response, and may use the request's pool */

    pool = (last && !s->stream.begun) ? r->pool
                                      : ngx_http_xet_stream_pool(&s->stream);
    if (pool == NULL) {
        ngx_http_xet_hub_stream_fail(r, s, XET_NOMEM);
        return NULL;
    }

    xet_buf_init(&s->buf, ngx_http_xet_alloc, pool, size);

    return &s->buf;
}


void
ngx_http_xet_hub_stream_fail(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s, xet_status_t status)
{
    if (s->stream.begun) {
        ngx_http_xet_hub_stream_end(r);
        return;
    }

    ngx_http_finalize_request(r, ngx_http_xet_error_status(r, status));
}


void
ngx_http_xet_hub_stream_send(ngx_http_request_t *r,
    ngx_http_xet_hub_stream_t *s)
{
    ngx_int_t  rc;

    ngx_http_xet_query_release(r);

    if (!s->stream.begun) {

        if (s->last) {
            ngx_http_finalize_request(r,
                ngx_http_xet_hub_send(r, NGX_HTTP_OK, s->type, &s->buf));
            return;
        }

        rc = ngx_http_xet_hub_headers(r);

        if (rc != NGX_OK) {
            ngx_http_finalize_request(r, rc);
            return;
        }

        ngx_http_xet_output_type(r, NGX_HTTP_OK, s->type, -1);
    }

    ngx_http_xet_stream_send(r, &s->stream, &s->buf, s->last);
}
