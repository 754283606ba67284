
/*
 * Responses of a Hub that grow with the repo, sent in parts.
 *
 *     asking (a statement reads the rows of a part) -> sending (the client
 *     takes the part) -> asking ... -> done
 *
 * An error in the first part becomes a status.  A response of a single part
 * has a length and is sent like any other.  Otherwise the next part is
 * requested when the client has taken the one before.  So a request holds the
 * rows and then the JSON of one part, however long the response and slow the
 * client. The first part chooses the commit, and the others name it.
 *
 * If a later part fails, the connection is closed, so that the truncated
 * response does not look complete.  This also happens if the caller loses the
 * permission to read the repo, since each statement checks it again.
 *
 * Lives in the event loop.
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


/* A part of the response was sent: the connection can only be closed. */

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

    /* if it is also the first part, the whole response */

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
