
/*
 * A part of a stored file as what GET and HEAD of a URL give.
 *
 *     conditions   If-Match -> 412, If-None-Match -> 304.  There is no date of
 *                  modification, so headers that have one are not looked at
 *     ranges       Range, unless If-Range names another tag -> 416, or the
 *                  parts of a 206; a unit other than bytes is not looked at
 *     headers      when the first piece is at hand, so that a fault before it
 *                  still is an error response
 *     body         by the service parts
 *
 * nginx's range filter would have the whole file decoded to send a piece of
 * it; here only the ranges that were asked for are read.
 *
 * With several ranges each has a text in front of it: only these texts grow
 * with a request, and there are 256 at most.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_content.h"
#include "ngx_http_xet_error.h"
#include "ngx_http_xet_header.h"
#include "ngx_http_xet_output.h"
#include "ngx_http_xet_parts.h"


#define NGX_HTTP_XET_CONTENT_RANGES    256
#define NGX_HTTP_XET_CONTENT_BOUNDARY  32

/* "bytes first-last/size" */
#define NGX_HTTP_XET_CONTENT_RANGE_LEN                                        \
    (sizeof("bytes -/") - 1 + 3 * NGX_INT64_LEN)


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
static ngx_int_t ngx_http_xet_content_whole(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s);
static ngx_int_t ngx_http_xet_content_one(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s, const xet_range_t *range);
static ngx_int_t ngx_http_xet_content_several(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s, const xet_range_t *ranges, size_t n);
static ngx_int_t ngx_http_xet_content_parts(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s, size_t n);
static u_char *ngx_http_xet_content_range(u_char *p, const xet_range_t *range,
    uint64_t size);
static void ngx_http_xet_content_boundary(u_char *boundary);
static ngx_int_t ngx_http_xet_content_header(ngx_http_request_t *r,
    void *data);


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

        return ngx_http_xet_content_whole(r, s);
    }

    if (status != XET_OK) {
        return ngx_http_xet_content_past(r, content->size, status);
    }

    s->status = NGX_HTTP_PARTIAL_CONTENT;

    rc = (n == 1) ? ngx_http_xet_content_one(r, s, ranges)
                  : ngx_http_xet_content_several(r, s, ranges, n);

    return (rc == NGX_OK) ? ngx_http_xet_parts_send(r, &s->parts) : rc;
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
    s->parts.header = ngx_http_xet_content_header;
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

        return ngx_http_xet_content_whole(r, s);
    }

    return NGX_DECLINED;
}


/* nginx refuses a second line of either header. */

static ngx_uint_t
ngx_http_xet_content_match(ngx_table_elt_t *h, const ngx_str_t *etag,
    xet_etag_compare_t compare)
{
    return h && xet_etag_match(h->value.data, h->value.len, etag->data,
                               etag->len, compare);
}


/* XET_DONE: the whole, as if there were no Range header. */

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

    /* ranges that overlap so much are better served by the whole */

    for (i = 0, sum = 0; i < *n; i++) {
        sum += ranges[i].end - ranges[i].start;

        if (sum > content->size) {
            return XET_DONE;
        }
    }

    return XET_OK;
}


/* A date never matches: there is none to compare it with. */

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


/* Answers with the whole content, or without a body: HEAD, 304, no bytes. */

static ngx_int_t
ngx_http_xet_content_whole(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s)
{
    ngx_int_t  rc;

    s->length = s->content.size;

    if (s->length == 0 || r->method == NGX_HTTP_HEAD
        || s->status == NGX_HTTP_NOT_MODIFIED)
    {
        if (ngx_http_xet_content_header(r, s) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        rc = ngx_http_send_header(r);

        if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
            return ngx_http_xet_sent(rc);
        }

        return ngx_http_xet_sent(ngx_http_send_special(r, NGX_HTTP_LAST));
    }

    rc = ngx_http_xet_content_parts(r, s, 1);

    if (rc != NGX_OK) {
        return rc;
    }

    s->parts.parts[0].range.start = s->content.start;
    s->parts.parts[0].range.end = s->content.start + s->content.size;

    return ngx_http_xet_parts_send(r, &s->parts);
}


static ngx_int_t
ngx_http_xet_content_one(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s, const xet_range_t *range)
{
    ngx_int_t  rc;

    rc = ngx_http_xet_content_parts(r, s, 1);

    if (rc != NGX_OK) {
        return rc;
    }

    s->range.data = ngx_pnalloc(r->pool, NGX_HTTP_XET_CONTENT_RANGE_LEN);
    if (s->range.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    s->range.len = ngx_http_xet_content_range(s->range.data, range,
                                              s->content.size)
                   - s->range.data;

    s->length = range->end - range->start;
    s->parts.parts[0].range.start = s->content.start + range->start;
    s->parts.parts[0].range.end = s->content.start + range->end;

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_content_several(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s, const xet_range_t *ranges, size_t n)
{
    size_t                i, len;
    u_char               *p, boundary[NGX_HTTP_XET_CONTENT_BOUNDARY + 1];
    ngx_int_t             rc;
    ngx_http_xet_part_t  *part;

    rc = ngx_http_xet_content_parts(r, s, n);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_http_xet_content_boundary(boundary);

    len = sizeof(CRLF "--" CRLF "Content-Type: " CRLF "Content-Range: "
                 CRLF CRLF) - 1
          + NGX_HTTP_XET_CONTENT_BOUNDARY + s->content.type.len
          + NGX_HTTP_XET_CONTENT_RANGE_LEN;

    /* the texts of all parts, the text behind them, and the Content-Type */

    p = ngx_pnalloc(r->pool, (n + 2) * len
                             + sizeof("multipart/byteranges; boundary="));
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    for (i = 0; i < n; i++) {
        part = &s->parts.parts[i];

        part->text.data = p;

        p = ngx_sprintf(p, CRLF "--%s" CRLF "Content-Type: %V" CRLF
                        "Content-Range: ", boundary, &s->content.type);
        p = ngx_http_xet_content_range(p, &ranges[i], s->content.size);
        p = ngx_cpymem(p, CRLF CRLF, 4);

        part->text.len = p - part->text.data;
        part->range.start = s->content.start + ranges[i].start;
        part->range.end = s->content.start + ranges[i].end;

        s->length += part->text.len + (ranges[i].end - ranges[i].start);
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


static ngx_int_t
ngx_http_xet_content_parts(ngx_http_request_t *r,
    ngx_http_xet_content_state_t *s, size_t n)
{
    s->parts.parts = ngx_pcalloc(r->pool, n * sizeof(ngx_http_xet_part_t));
    if (s->parts.parts == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    s->parts.n = n;

    return NGX_OK;
}


static u_char *
ngx_http_xet_content_range(u_char *p, const xet_range_t *range, uint64_t size)
{
    return ngx_sprintf(p, "bytes %uL-%uL/%uL", range->start, range->end - 1,
                       size);
}


/* 124 random bits: no file was made to contain this boundary. */

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
ngx_http_xet_content_header(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_content_state_t *s = data;

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


/*
 * The bytes never change, but who may see them does: a repo can lose a file,
 * so its readers ask again, and get 304.
 */

const char *
ngx_http_xet_content_cache(ngx_http_request_t *r)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (xlcf->access == NGX_HTTP_XET_ACCESS_REPO) {
        return "private, no-cache";
    }

    /* with "xet_auth off" another module may decide by these headers */

    if (xlcf->auth == NGX_HTTP_XET_AUTH_TOKEN
        || r->headers_in.authorization
        || ngx_http_xet_header_find(&r->headers_in.headers, "cookie", 0))
    {
        return "private, max-age=31536000, immutable";
    }

    return "public, max-age=31536000, immutable";
}


/* RFC 9530, and RFC 3230 for those who know only that. */

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
