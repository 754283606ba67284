
/*
 * The body of an answer that is ranges of a stored file.
 *
 * States of a piece: being read -> ready -> sent (on its way) -> released.
 * While one piece is on its way the next one is read, so that a thread decodes
 * while the loop sends; when that one is ready nothing more is read.  So a
 * request holds two pieces at most, however slow its client is; a client that
 * takes nothing for "send_timeout" is dropped.
 *
 * The header goes out with the first piece.  Until then a fault of the store
 * is an error response; after that it cuts the connection, behind the bytes
 * that are right, and the client sees by the length that some are missing.
 *
 * Lives in the event loop.  Write events of the socket come here whether or
 * not a job runs meanwhile (ngx_http_xet_task_t).
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_parts.h"


static xet_status_t ngx_http_xet_parts_next(ngx_http_request_t *r,
    ngx_http_xet_parts_t *p);
static void ngx_http_xet_parts_range(ngx_http_xet_parts_t *p);
static void ngx_http_xet_parts_piece(ngx_http_request_t *r, void *data,
    ngx_http_xet_piece_t *piece, xet_status_t status);
static void ngx_http_xet_parts_pump(ngx_http_request_t *r,
    ngx_http_xet_parts_t *p);
static void ngx_http_xet_parts_fail(ngx_http_request_t *r,
    ngx_http_xet_parts_t *p);
static ngx_int_t ngx_http_xet_parts_begin(ngx_http_request_t *r,
    ngx_http_xet_parts_t *p);
static ngx_int_t ngx_http_xet_parts_output(ngx_http_request_t *r,
    ngx_http_xet_parts_t *p);
static ngx_uint_t ngx_http_xet_parts_chain(ngx_http_request_t *r,
    ngx_http_xet_parts_t *p);
static void ngx_http_xet_parts_link(ngx_http_xet_parts_t *p, ngx_uint_t i,
    u_char *pos, u_char *last);
static void ngx_http_xet_parts_write_handler(ngx_http_request_t *r);


ngx_int_t
ngx_http_xet_parts_send(ngx_http_request_t *r, ngx_http_xet_parts_t *p)
{
    xet_status_t         status;
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    ctx->parts = p;
    ctx->task->write = ngx_http_xet_parts_write_handler;

    ngx_http_xet_reader_data(p->reader, p);
    ngx_http_xet_parts_range(p);

    status = ngx_http_xet_parts_next(r, p);

    if (status != XET_AGAIN) {
        return ngx_http_xet_error_status(r, status);
    }

    r->main->count++;

    return NGX_DONE;
}


static void
ngx_http_xet_parts_range(ngx_http_xet_parts_t *p)
{
    xet_range_t  *range;

    range = &p->parts[p->i].range;

    ngx_http_xet_reader_range(p->reader, range->start, range->end,
                              ngx_http_xet_parts_piece, NULL);
}


/* XET_AGAIN when a piece is being read, XET_DONE behind the last part. */

static xet_status_t
ngx_http_xet_parts_next(ngx_http_request_t *r, ngx_http_xet_parts_t *p)
{
    xet_status_t  status;

    status = ngx_http_xet_reader_next(r, p->reader);

    if (status != XET_DONE || p->i + 1 == p->n) {
        return status;
    }

    p->i++;

    ngx_http_xet_parts_range(p);

    return ngx_http_xet_reader_next(r, p->reader);
}


static void
ngx_http_xet_parts_piece(ngx_http_request_t *r, void *data,
    ngx_http_xet_piece_t *piece, xet_status_t status)
{
    ngx_http_xet_parts_t *p = data;

    p->ready = piece;
    p->ready_part = p->i;
    p->status = status;

    if (p->sent == NULL) {
        ngx_http_xet_parts_pump(r, p);
    }
}


/* Goes on until the client, a job or a statement has to be waited for. */

static void
ngx_http_xet_parts_pump(ngx_http_request_t *r, ngx_http_xet_parts_t *p)
{
    ngx_http_event_handler_pt  handler;

    for ( ;; ) {

        if (p->sent == NULL && p->ready
            && ngx_http_xet_parts_output(r, p) != NGX_OK)
        {
            return;
        }

        if (p->sent) {

            /* during a job write events come through the task */

            handler = ngx_http_xet_task_busy(r)
                      ? NULL : ngx_http_xet_parts_write_handler;

            if (ngx_http_xet_backlog_wait(r, handler) != NGX_OK) {
                return;
            }

            ngx_http_xet_reader_release(p->reader, p->sent);
            p->sent = NULL;
        }

        if (p->ready == NULL) {
            break;
        }
    }

    if (p->status != XET_OK) {
        ngx_http_xet_parts_fail(r, p);
    }
}


static void
ngx_http_xet_parts_fail(ngx_http_request_t *r, ngx_http_xet_parts_t *p)
{
    if (!p->begun) {
        ngx_http_finalize_request(r,
                                  ngx_http_xet_error_status(r, p->status));
        return;
    }

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "xet: a file ends early: %s", xet_status_text(p->status));

    ngx_http_finalize_request(r, ngx_http_xet_break_off(r));
}


/* NGX_DONE when the request was finalized. */

static ngx_int_t
ngx_http_xet_parts_begin(ngx_http_request_t *r, ngx_http_xet_parts_t *p)
{
    ngx_int_t  rc;

    p->begun = 1;

    if (p->header(r, p->data) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return NGX_DONE;
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        ngx_http_finalize_request(r, rc);
        return NGX_DONE;
    }

    return NGX_OK;
}


/* Sends the piece that is ready; NGX_DONE when the request was finalized. */

static ngx_int_t
ngx_http_xet_parts_output(ngx_http_request_t *r, ngx_http_xet_parts_t *p)
{
    ngx_int_t   rc;
    ngx_uint_t  last;

    if (!p->begun && ngx_http_xet_parts_begin(r, p) != NGX_OK) {
        return NGX_DONE;
    }

    last = ngx_http_xet_parts_chain(r, p);

    p->sent = p->ready;
    p->ready = NULL;

    /* a thread may begin with the next piece before this one is sent */

    if (!last) {
        p->status = ngx_http_xet_parts_next(r, p);

        if (p->status == XET_AGAIN) {
            p->status = XET_OK;
        }
    }

    rc = ngx_http_output_filter(r, p->chain);

    if (rc == NGX_ERROR || last) {
        ngx_http_finalize_request(r, rc);
        return NGX_DONE;
    }

    return NGX_OK;
}


/* Links the ready piece and its texts; tells whether it is the last piece. */

static ngx_uint_t
ngx_http_xet_parts_chain(ngx_http_request_t *r, ngx_http_xet_parts_t *p)
{
    ngx_buf_t             *b;
    ngx_uint_t             n, last;
    ngx_http_xet_part_t   *part;
    ngx_http_xet_piece_t  *piece;

    piece = p->ready;
    part = &p->parts[p->ready_part];

    n = 0;

    if (part->text.len && piece->offset == part->range.start) {
        ngx_http_xet_parts_link(p, n++, part->text.data,
                                part->text.data + part->text.len);
    }

    ngx_http_xet_parts_link(p, n++, piece->pos, piece->last);

    last = (p->ready_part + 1 == p->n
            && piece->offset + (piece->last - piece->pos) == part->range.end);

    if (last && p->end.len) {
        ngx_http_xet_parts_link(p, n++, p->end.data, p->end.data + p->end.len);
    }

    p->chain[n - 1].next = NULL;

    b = p->chain[n - 1].buf;

    b->flush = 1;
    b->last_in_chain = 1;
    b->last_buf = (last && r == r->main);

    return last;
}


static void
ngx_http_xet_parts_link(ngx_http_xet_parts_t *p, ngx_uint_t i, u_char *pos,
    u_char *last)
{
    ngx_buf_t  *b;

    b = &p->bufs[i];

    ngx_memzero(b, sizeof(ngx_buf_t));

    b->start = pos;
    b->pos = pos;
    b->last = last;
    b->end = last;
    b->memory = 1;

    p->chain[i].buf = b;
    p->chain[i].next = &p->chain[i] + 1;
}


static void
ngx_http_xet_parts_write_handler(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (ctx->parts->sent && ngx_http_xet_backlog_send(r) == NGX_OK) {
        ngx_http_xet_parts_pump(r, ctx->parts);
    }
}
