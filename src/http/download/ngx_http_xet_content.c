
/*
 * Serves a part of a stored file by GET and HEAD.
 *
 *     conditions   If-Match -> 412, If-None-Match -> 304.  Files have no
 *                  modification date, so conditions on dates are ignored
 *     ranges       Range, unless If-Range has another tag -> 416, or the parts
 *                  of a 206; units other than bytes are ignored
 *     headers      sent when the first piece is ready, so that an earlier
 *                  error is still an error response
 *     body         the parts, one piece after another
 *
 * nginx's range filter would need the whole decoded file; this code reads only
 * the requested ranges.  If there are several ranges, a boundary and headers
 * precede each of them.  Only these texts grow with the request; a request has
 * at most 256 ranges.
 *
 * States of a piece: being read -> ready -> sent (in transit) -> released.
 * While a piece is in transit, only the next piece is read, so that a thread
 * decodes while the event loop sends.  So a request holds at most two pieces,
 * however slow its client is.  A client that receives nothing for
 * "send_timeout" is disconnected.  After an error of the store the connection
 * is closed if the header was already sent.  All bytes sent are right, and the
 * client detects the truncation by the length.
 *
 * All functions run in the event loop.  Write events of the socket are handled
 * even while a job is running (ngx_http_xet_task_t).
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"


#define NGX_HTTP_XET_CONTENT_RANGES    256
#define NGX_HTTP_XET_CONTENT_BOUNDARY  32

/* length of "bytes first-last/size" */
#define NGX_HTTP_XET_CONTENT_RANGE_LEN                                        \
    (sizeof("bytes -/") - 1 + 3 * NGX_INT64_LEN)


typedef struct {
    ngx_str_t                text;             /* text before the bytes */
    xet_range_t              range;            /* file range, not empty */
} ngx_http_xet_part_t;


struct ngx_http_xet_parts_s {
    ngx_http_xet_reader_t         *reader;
    ngx_http_xet_part_t           *parts;      /* array of n, n > 0 */
    ngx_uint_t                     n;
    ngx_str_t                      end;        /* text after the last part */
    void                          *data;       /* state of the response */

    /* used while the parts are sent */

    ngx_uint_t                     i;          /* part being read */
    ngx_http_xet_piece_t          *sent;       /* piece in transit */
    ngx_http_xet_piece_t          *ready;      /* the next piece to send */
    ngx_uint_t                     ready_part;
    xet_status_t                   status;     /* why no piece follows */
    ngx_buf_t                      bufs[3];    /* buffers of that piece */
    ngx_chain_t                    chain[3];
    unsigned                       begun:1;
};


typedef struct {
    ngx_http_xet_content_t   content;
    ngx_uint_t               status;
    uint64_t                 length;           /* Content-Length */
    ngx_str_t                type;
    ngx_str_t                range;            /* Content-Range, or empty */
    ngx_http_xet_parts_t     parts;
} ngx_http_xet_content_state_t;


static ngx_http_xet_content_state_t *ngx_http_xet_content_state(
    ngx_http_request_t *r, const ngx_http_xet_content_t *content);
static ngx_int_t ngx_http_xet_content_condition(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s);
static ngx_uint_t ngx_http_xet_content_match(ngx_table_elt_t *h,
    const ngx_str_t *etag, xet_etag_compare_t compare);
static xet_status_t ngx_http_xet_content_ranges(ngx_http_request_t *r,
    const ngx_http_xet_content_t *content, xet_range_t *ranges, size_t *n);
static ngx_uint_t ngx_http_xet_content_if_range(ngx_http_request_t *r,
    const ngx_str_t *etag);
static ngx_int_t ngx_http_xet_content_past(ngx_http_request_t *r,
    uint64_t size, xet_status_t status);
static ngx_int_t ngx_http_xet_content_head(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s);
static ngx_int_t ngx_http_xet_content_parts(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s, const xet_range_t *ranges, size_t n);
static ngx_int_t ngx_http_xet_content_texts(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s, const xet_range_t *ranges);
static u_char *ngx_http_xet_content_range(u_char *p, const xet_range_t *range,
    uint64_t size);
static void ngx_http_xet_content_boundary(u_char *boundary);
static ngx_int_t ngx_http_xet_content_header(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s);
static ngx_int_t ngx_http_xet_parts_send(ngx_http_request_t *r,
    ngx_http_xet_parts_t *p);
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
ngx_http_xet_content_send(ngx_http_request_t *r,
    const ngx_http_xet_content_t *content)
{
    size_t                         n;
    ngx_int_t                      rc;
    xet_range_t                    ranges[NGX_HTTP_XET_CONTENT_RANGES];
    xet_status_t                   status;
    ngx_http_xet_content_state_t  *s;

    s = ngx_http_xet_content_state(r, content);
    if (s == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_xet_content_condition(r, s);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    n = NGX_HTTP_XET_CONTENT_RANGES;

    status = ngx_http_xet_content_ranges(r, content, ranges, &n);

    if (status == XET_DONE) {
        s->status = NGX_HTTP_OK;

        if (content->size == 0 || r->method == NGX_HTTP_HEAD) {
            return ngx_http_xet_content_head(r, s);
        }

        ranges[0].start = 0;
        ranges[0].end = content->size;
        n = 1;

    } else if (status == XET_OK) {
        s->status = NGX_HTTP_PARTIAL_CONTENT;

    } else {
        return ngx_http_xet_content_past(r, content->size, status);
    }

    if (ngx_http_xet_content_parts(r, s, ranges, n) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_parts_send(r, &s->parts);
}


ngx_int_t
ngx_http_xet_content_conditions(ngx_http_request_t *r,
    const ngx_http_xet_content_t *content)
{
    ngx_http_xet_content_state_t  *s;

    s = ngx_http_xet_content_state(r, content);

    return s ? ngx_http_xet_content_condition(r, s)
             : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


static ngx_http_xet_content_state_t *
ngx_http_xet_content_state(ngx_http_request_t *r,
    const ngx_http_xet_content_t *content)
{
    ngx_http_xet_content_state_t  *s;

    s = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_content_state_t));
    if (s == NULL) {
        return NULL;
    }

    s->content = *content;
    s->type = content->type;
    s->parts.reader = content->reader;
    s->parts.data = s;

    return s;
}


static ngx_int_t
ngx_http_xet_content_condition(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s)
{
    ngx_str_t  *etag;

    etag = &s->content.etag;

    if (r->headers_in.if_match
        && !ngx_http_xet_content_match(r->headers_in.if_match, etag,
                                       XET_ETAG_STRONG))
    {
        return ngx_http_xet_error_status(r, XET_PRECONDITION);
    }

    if (ngx_http_xet_content_match(r->headers_in.if_none_match, etag,
                                   XET_ETAG_WEAK))
    {
        s->status = NGX_HTTP_NOT_MODIFIED;

        return ngx_http_xet_content_head(r, s);
    }

    return NGX_DECLINED;
}


/*
 * Returns whether the list of entity tags in the header h matches etag.  h has
 * one line, because nginx rejects a request that repeats If-Match or
 * If-None-Match.
 */

static ngx_uint_t
ngx_http_xet_content_match(ngx_table_elt_t *h, const ngx_str_t *etag,
    xet_etag_compare_t compare)
{
    return h && xet_etag_match(h->value.data, h->value.len, etag->data,
                               etag->len, compare);
}


/*
 * Sets the ranges to send.  Returns XET_DONE if the whole content must be sent,
 * as if the request had no Range header.
 */

static xet_status_t
ngx_http_xet_content_ranges(ngx_http_request_t *r,
    const ngx_http_xet_content_t *content, xet_range_t *ranges, size_t *n)
{
    size_t                     i;
    uint64_t                   sum;
    ngx_str_t                 *value;
    xet_status_t               status;
    xet_range_spec_t           specs[NGX_HTTP_XET_CONTENT_RANGES];
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (r->headers_in.range == NULL || r->method != NGX_HTTP_GET
        || clcf->max_ranges == 0
        || !ngx_http_xet_content_if_range(r, &content->etag))
    {
        return XET_DONE;
    }

    value = &r->headers_in.range->value;

    if (value->len < 6
        || ngx_strncasecmp(value->data, (u_char *) "bytes=", 6) != 0)
    {
        return XET_DONE;
    }

    *n = ngx_min(clcf->max_ranges, NGX_HTTP_XET_CONTENT_RANGES);

    status = xet_range_parse(value->data, value->len, specs, n);

    if (status == XET_OK) {
        status = xet_range_select(specs, ranges, n, content->size);
    }

    if (status != XET_OK) {
        return status;
    }

    /* the whole content is cheaper than ranges that overlap heavily */

    for (i = 0, sum = 0; i < *n; i++) {
        sum += ranges[i].end - ranges[i].start;

        if (sum > content->size) {
            return XET_DONE;
        }
    }

    return XET_OK;
}


/*
 * Returns whether If-Range matches.  A date never matches, because files have
 * no date.
 */

static ngx_uint_t
ngx_http_xet_content_if_range(ngx_http_request_t *r, const ngx_str_t *etag)
{
    ngx_str_t  *value;

    if (r->headers_in.if_range == NULL) {
        return 1;
    }

    value = &r->headers_in.if_range->value;

    return value->len == etag->len
           && ngx_memcmp(value->data, etag->data, etag->len) == 0;
}


static ngx_int_t
ngx_http_xet_content_past(ngx_http_request_t *r, uint64_t size,
    xet_status_t status)
{
    u_char     *p;
    ngx_str_t   value;

    p = ngx_pnalloc(r->pool, sizeof("bytes */") - 1 + NGX_INT64_LEN);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    value.data = p;
    value.len = ngx_sprintf(p, "bytes */%uL", size) - p;

    if (ngx_http_xet_header_add(r, "Content-Range", &value) == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_error_status(r, (status == XET_RANGE_PAST_END)
                                        ? status : XET_RANGE_REFUSED);
}


/*
 * Sends a response without a body: to a HEAD request, with 304, or for an empty
 * file.
 */

static ngx_int_t
ngx_http_xet_content_head(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s)
{
    ngx_int_t  rc;

    s->length = s->content.size;

    if (ngx_http_xet_content_header(r, s) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return ngx_http_xet_sent(rc);
    }

    return ngx_http_xet_sent(ngx_http_send_special(r, NGX_HTTP_LAST));
}


/*
 * Makes a part for each range of the content.  If there are several parts,
 * also makes the texts between them.
 */

static ngx_int_t
ngx_http_xet_content_parts(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s, const xet_range_t *ranges, size_t n)
{
    size_t                i;
    ngx_http_xet_part_t  *parts;

    parts = ngx_pcalloc(r->pool, n * sizeof(ngx_http_xet_part_t));
    if (parts == NULL) {
        return NGX_ERROR;
    }

    s->parts.parts = parts;
    s->parts.n = n;

    for (i = 0; i < n; i++) {
        parts[i].range.start = s->content.start + ranges[i].start;
        parts[i].range.end = s->content.start + ranges[i].end;

        s->length += ranges[i].end - ranges[i].start;
    }

    if (n > 1) {
        return ngx_http_xet_content_texts(r, s, ranges);
    }

    if (s->status == NGX_HTTP_PARTIAL_CONTENT) {
        s->range.data = ngx_pnalloc(r->pool, NGX_HTTP_XET_CONTENT_RANGE_LEN);
        if (s->range.data == NULL) {
            return NGX_ERROR;
        }

        s->range.len = ngx_http_xet_content_range(s->range.data, ranges,
                                                  s->content.size)
                       - s->range.data;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_content_texts(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s, const xet_range_t *ranges)
{
    size_t                i, n, len;
    u_char               *p, boundary[NGX_HTTP_XET_CONTENT_BOUNDARY + 1];
    ngx_http_xet_part_t  *part;

    n = s->parts.n;

    ngx_http_xet_content_boundary(boundary);

    len = sizeof(CRLF "--" CRLF "Content-Type: " CRLF "Content-Range: "
                 CRLF CRLF) - 1
          + NGX_HTTP_XET_CONTENT_BOUNDARY + s->content.type.len
          + NGX_HTTP_XET_CONTENT_RANGE_LEN;

    /*
     * memory for the text before each part, the text after the last part, and
     * the Content-Type
     */

    p = ngx_pnalloc(r->pool, (n + 2) * len
                             + sizeof("multipart/byteranges; boundary="));
    if (p == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {
        part = &s->parts.parts[i];

        part->text.data = p;

        p = ngx_sprintf(p, CRLF "--%s" CRLF "Content-Type: %V" CRLF
                        "Content-Range: ", boundary, &s->content.type);
        p = ngx_http_xet_content_range(p, &ranges[i], s->content.size);
        p = ngx_cpymem(p, CRLF CRLF, 4);

        part->text.len = p - part->text.data;

        s->length += part->text.len;
    }

    s->parts.end.data = p;
    p = ngx_sprintf(p, CRLF "--%s--" CRLF, boundary);
    s->parts.end.len = p - s->parts.end.data;

    s->length += s->parts.end.len;

    s->type.data = p;
    s->type.len = ngx_sprintf(p, "multipart/byteranges; boundary=%s", boundary)
                  - p;

    return NGX_OK;
}


static u_char *
ngx_http_xet_content_range(u_char *p, const xet_range_t *range, uint64_t size)
{
    return ngx_sprintf(p, "bytes %uL-%uL/%uL", range->start, range->end - 1,
                       size);
}


/*
 * Writes a boundary with 124 random bits, so that nobody can make a file that
 * contains the boundary.
 */

static void
ngx_http_xet_content_boundary(u_char *boundary)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_XET_CONTENT_BOUNDARY; i += 8) {
        (void) ngx_sprintf(boundary + i, "%08xD", (uint32_t) ngx_random());
    }

    boundary[i] = '\0';
}


static ngx_int_t
ngx_http_xet_content_header(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s)
{
    ngx_str_t                  value;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    ngx_http_xet_output_type(r, s->status, "", (off_t) s->length);

    r->headers_out.content_type = s->type;
    r->headers_out.content_type_len = s->type.len;

    r->headers_out.etag = ngx_http_xet_header_add(r, "ETag",
                                                  &s->content.etag);
    if (r->headers_out.etag == NULL) {
        return NGX_ERROR;
    }

    if (s->status == NGX_HTTP_NOT_MODIFIED) {
        ngx_str_null(&r->headers_out.content_type);
        r->headers_out.content_length_n = -1;

        return NGX_OK;
    }

    if (clcf->max_ranges) {
        ngx_str_set(&value, "bytes");

        r->headers_out.accept_ranges =
                          ngx_http_xet_header_add(r, "Accept-Ranges", &value);

        if (r->headers_out.accept_ranges == NULL) {
            return NGX_ERROR;
        }
    }

    if (s->range.len) {
        r->headers_out.content_range =
                       ngx_http_xet_header_add(r, "Content-Range", &s->range);

        if (r->headers_out.content_range == NULL) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* Sends the header and the parts.  From this call on, p owns the reader. */

static ngx_int_t
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


/*
 * Reads the next piece.  Returns XET_AGAIN if a piece is being read, XET_DONE
 * after the last part.
 */

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

    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet parts: ready part:%ui status:%d", p->i, (int) status);

    p->ready = piece;
    p->ready_part = p->i;
    p->status = status;

    if (p->sent == NULL) {
        ngx_http_xet_parts_pump(r, p);
    }
}


/*
 * Sends and reads pieces until the client, a job or a statement makes the
 * request wait.
 */

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

            /* while a job is pending, the task calls the write handler */

            handler = ngx_http_xet_task_busy(r)
                      ? NULL : ngx_http_xet_parts_write_handler;

            if (ngx_http_xet_backlog_wait(r, handler) != NGX_OK) {
                return;
            }

            ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                           "xet parts: released");

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
                  "xet: a file was truncated while it was sent: %s",
                  xet_status_text(p->status));

    ngx_http_finalize_request(r, ngx_http_xet_break_off(r));
}


/* Sends the header.  Returns NGX_DONE if the request was finalized. */

static ngx_int_t
ngx_http_xet_parts_begin(ngx_http_request_t *r, ngx_http_xet_parts_t *p)
{
    ngx_int_t  rc;

    p->begun = 1;

    if (ngx_http_xet_content_header(r, p->data) != NGX_OK) {
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


/* Sends the ready piece.  Returns NGX_DONE if the request was finalized. */

static ngx_int_t
ngx_http_xet_parts_output(ngx_http_request_t *r, ngx_http_xet_parts_t *p)
{
    ngx_int_t   rc;
    ngx_uint_t  last;

    if (!p->begun && ngx_http_xet_parts_begin(r, p) != NGX_OK) {
        return NGX_DONE;
    }

    last = ngx_http_xet_parts_chain(r, p);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet parts: sent last:%ui", last);

    p->sent = p->ready;
    p->ready = NULL;

    /* a thread may read the next piece before this one is sent */

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


/*
 * Makes a chain of the ready piece and the texts around it.  Returns whether
 * the piece is the last one.
 */

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


/*
 * Returns the value of Cache-Control.  The bytes never change, but with repos
 * the permissions do: a repo can lose a file.  Then clients must revalidate,
 * and get 304.
 */

const char *
ngx_http_xet_content_cache(ngx_http_request_t *r)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (xlcf->repos) {
        return "private, no-cache";
    }

    /* with "xet_auth off" another module may check these headers */

    if (xlcf->auth == NGX_HTTP_XET_AUTH_TOKEN
        || r->headers_in.authorization
        || ngx_http_xet_header_find(&r->headers_in.headers, "cookie", 0))
    {
        return "private, max-age=31536000, immutable";
    }

    return "public, max-age=31536000, immutable";
}


/* Adds Repr-Digest (RFC 9530), and Digest (RFC 3230) for older clients. */

ngx_int_t
ngx_http_xet_content_digest(ngx_http_request_t *r, const u_char *sha256)
{
    u_char     *p, base64[ngx_base64_encoded_length(32)];
    ngx_str_t   src, dst, digest, repr;

    src.data = (u_char *) sha256;
    src.len = 32;
    dst.data = base64;

    ngx_encode_base64(&dst, &src);

    p = ngx_pnalloc(r->pool, sizeof("sha-256=" "sha-256=::") + 2 * dst.len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    digest.data = p;
    p = ngx_sprintf(p, "sha-256=%V", &dst);
    digest.len = p - digest.data;

    repr.data = p;
    repr.len = ngx_sprintf(p, "sha-256=:%V:", &dst) - p;

    return (ngx_http_xet_header_add(r, "Digest", &digest)
            && ngx_http_xet_header_add(r, "Repr-Digest", &repr))
           ? NGX_OK : NGX_ERROR;
}
