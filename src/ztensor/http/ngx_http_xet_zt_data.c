
/*
 * GET zt/{file}/data: the bytes of a component, stored or decoded.  GET
 * zt/{file}/reconstruction: the reconstruction of the stored bytes, for Xet
 * clients that fetch these bytes from xorbs.
 *
 * Stored bytes, and the decoded bytes of a component that is not compressed,
 * are a range of the file and are served like files (ngx_http_xet_download.h),
 * with ranges and conditions.  "rows" reduces that range.  If decoded bytes of
 * a compressed component are requested, the client decodes if it can;
 * otherwise the server decodes.
 *
 * A client can decode the stored bytes, sent with the content coding "zstd", if
 * no frame needs a dictionary or a window larger than 8 MiB, the limit of RFC
 * 9659.  To check the frame headers, the server reads the component twice:
 * first without decoding, then for the response.
 *
 * The Range header of a reconstruction is relative to the component.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_ztensor.h"


#define NGX_HTTP_XET_ZT_CODED_WINDOW  (8 * 1024 * 1024)


typedef struct {
    ngx_http_xet_zt_component_t  *component;
    xet_zt_frames_t               frames;
} ngx_http_xet_zt_coded_t;


static ngx_int_t ngx_http_xet_zt_data_found(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);
static ngx_int_t ngx_http_xet_zt_data_answer(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);
static ngx_int_t ngx_http_xet_zt_data_digest(ngx_http_xet_zt_component_t *c,
    u_char *sha256);
static ngx_int_t ngx_http_xet_zt_data_report(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);
static void ngx_http_xet_zt_data_reported(ngx_http_request_t *r,
    ngx_int_t rc);
static ngx_int_t ngx_http_xet_zt_data_verified(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);
static xet_status_t ngx_http_xet_zt_data_rows(ngx_http_xet_zt_component_t *c);
static ngx_int_t ngx_http_xet_zt_data_send(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);
static ngx_int_t ngx_http_xet_zt_data_decode(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);
static ngx_uint_t ngx_http_xet_zt_coded_wanted(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);
static ngx_int_t ngx_http_xet_zt_coded_send(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);
static xet_status_t ngx_http_xet_zt_coded_consume(void *data,
    const u_char *p, size_t len);
static void ngx_http_xet_zt_coded_read(ngx_http_request_t *r, void *data,
    xet_status_t status);
static ngx_int_t ngx_http_xet_zt_coded_content(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);
static ngx_int_t ngx_http_xet_zt_data_identity(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);
static ngx_int_t ngx_http_xet_zt_data_etag(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c, u_char form, ngx_str_t *etag);
static ngx_int_t ngx_http_xet_zt_data_headers(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);
static ngx_int_t ngx_http_xet_zt_data_shape(ngx_http_request_t *r,
    const xet_zt_object_t *o);
static ngx_int_t ngx_http_xet_zt_data_text(ngx_http_request_t *r,
    const char *name, const xet_zt_text_t *text);
static ngx_table_elt_t *ngx_http_xet_zt_data_push(ngx_http_request_t *r,
    const char *name, ngx_str_t *value);
static ngx_int_t ngx_http_xet_zt_reconstruction_found(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c);


ngx_int_t
ngx_http_xet_zt_data_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    return ngx_http_xet_zt_component(r, XET_ZT_ARG_FORM|XET_ZT_ARG_ROWS,
                                     ngx_http_xet_zt_data_found);
}


static ngx_int_t
ngx_http_xet_zt_data_found(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    u_char        sha256[32];
    xet_status_t  status;

    if (c->ztensor->query.has_rows) {
        status = ngx_http_xet_zt_data_rows(c);

        if (status != XET_OK) {
            return ngx_http_xet_ztensor_error(r, c->ztensor, status);
        }
    }

    if (ngx_http_xet_zt_data_headers(r, c) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_xet_zt_data_digest(c, sha256) == NGX_OK) {
        return ngx_http_xet_zt_data_report(r, c);
    }

    return ngx_http_xet_zt_data_answer(r, c);
}


static ngx_int_t
ngx_http_xet_zt_data_answer(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    return (c->ztensor->query.decoded
            && !xet_zt_component_seekable(c->component))
           ? ngx_http_xet_zt_data_decode(r, c)
           : ngx_http_xet_zt_data_send(r, c);
}


/*
 * Copies the SHA-256 that the file declares for the stored bytes of the
 * component to sha256, 32 bytes.  Returns NGX_OK, or NGX_DECLINED if the file
 * declares no SHA-256, or if the response is not exactly these bytes.
 */

static ngx_int_t
ngx_http_xet_zt_data_digest(ngx_http_xet_zt_component_t *c, u_char *sha256)
{
    u_char               *hex;
    ngx_uint_t            i, high, low;
    const xet_zt_text_t  *digest;

    digest = &c->component->digest;

    if (c->region.container != XET_ZT_CONTAINER_1
        || c->ztensor->query.has_rows
        || (c->ztensor->query.decoded
            && !xet_zt_component_seekable(c->component))
        || digest->len != sizeof("sha256:") - 1 + 64
        || ngx_memcmp(digest->data, "sha256:", sizeof("sha256:") - 1) != 0)
    {
        return NGX_DECLINED;
    }

    hex = (u_char *) digest->data + sizeof("sha256:") - 1;

    for (i = 0; i < 32; i++) {
        high = xet_get_hex_digit(hex[2 * i]);
        low = xet_get_hex_digit(hex[2 * i + 1]);

        if (high == 16 || low == 16) {
            return NGX_DECLINED;
        }

        sha256[i] = (u_char) (high << 4 | low);
    }

    return NGX_OK;
}


/* Reads the stored report, because only a verified digest is sent. */

static ngx_int_t
ngx_http_xet_zt_data_report(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    ngx_int_t                     rc;
    ngx_http_xet_ctx_t           *ctx;
    ngx_http_xet_ztensor_conf_t  *zlcf;

    zlcf = c->ztensor->conf;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    ctx->route.component = c;

    rc = ngx_http_xet_query(r, zt_reports_get, ngx_http_xet_zt_data_reported,
                            .file = &ctx->hash,
                            .rules = xet_zt_report_rules(&zlcf->limits,
                                                         &zlcf->decoder),
                            .first = c->object->index,
                            .last = c->object->index);

    return ngx_http_xet_query_asked(r, rc);
}


static void
ngx_http_xet_zt_data_reported(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_zt_component_t  *c;

    c = ngx_http_xet_ctx_of(r)->route.component;

    if (rc == NGX_OK || rc == NGX_DECLINED) {

        if (rc == NGX_OK) {
            rc = ngx_http_xet_zt_data_verified(r, c);
        }

        ngx_http_xet_query_release(r);

        rc = (rc == NGX_ERROR) ? NGX_HTTP_INTERNAL_SERVER_ERROR
                               : ngx_http_xet_zt_data_answer(r, c);

        if (rc == NGX_AGAIN) {
            return;
        }

    } else {
        rc = ngx_http_xet_query_error(r, rc);
    }

    ngx_http_finalize_request(r, rc);
}


/*
 * Adds the headers of the digest.  Returns NGX_DECLINED if no stored report
 * contains a verified digest.
 */

static ngx_int_t
ngx_http_xet_zt_data_verified(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    u_char                             sha256[32];
    size_t                             at;
    xet_zt_report_t                    report;
    ngx_http_xet_zt_reports_get_row_t  row;

    (void) ngx_http_xet_row(r, zt_reports_get, 0, &row);

    at = (c->component - c->object->components) * XET_ZT_REPORT_LEN;

    if (row.report.len != c->object->n * XET_ZT_REPORT_LEN
        || !xet_zt_report_unpack(&report, row.report.data + at)
        || report.digest != XET_ZT_DIGEST_VERIFIED
        || ngx_http_xet_zt_data_digest(c, sha256) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    return ngx_http_xet_content_digest(r, sha256);
}


static xet_status_t
ngx_http_xet_zt_data_rows(ngx_http_xet_zt_component_t *c)
{
    uint64_t         end;
    xet_range_t      rows;
    xet_status_t     status;
    xet_zt_query_t  *query;

    query = &c->ztensor->query;
    end = query->rows.end;

    if (query->rows_open && c->object->rank) {
        end = c->object->shape[0];
    }

    status = xet_zt_object_rows(c->object, c->component, query->rows.start,
                                end, &rows);

    if (status == XET_OK) {
        c->range.end = c->range.start + rows.end;
        c->range.start += rows.start;
    }

    return status;
}


static ngx_int_t
ngx_http_xet_zt_data_send(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    ngx_http_xet_content_t  content;

    content.reader = c->ztensor->reader;
    content.start = c->range.start;
    content.size = c->range.end - c->range.start;

    if (c->component->coding == XET_ZT_CODING_ZSTD) {
        ngx_str_set(&content.type, "application/zstd");

    } else {
        ngx_str_set(&content.type, "application/octet-stream");
    }

    if (ngx_http_xet_zt_data_etag(r, c, 's', &content.etag) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_content_send(r, &content);
}


static ngx_int_t
ngx_http_xet_zt_data_decode(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    if (ngx_http_xet_header(r, "Vary", "Accept-Encoding") != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_zt_coded_wanted(r, c)
           ? ngx_http_xet_zt_coded_send(r, c)
           : ngx_http_xet_zt_data_identity(r, c);
}


/*
 * Returns 1 if the client accepts zstd as a content coding, and the component
 * may qualify: its encoding is known, and the number of its stored bytes is
 * not 0 and not above the limit "decode".
 */

static ngx_uint_t
ngx_http_xet_zt_coded_wanted(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    ngx_table_elt_t  *h;

    if (c->component->coding == XET_ZT_CODING_UNKNOWN
        || c->component->length == 0
        || c->component->length > c->ztensor->conf->decoder.output)
    {
        return 0;
    }

    h = ngx_http_xet_header_find(&r->headers_in.headers, "accept-encoding", 0);

    return h && xet_accept_coding(h->value.data, h->value.len, "zstd");
}


static ngx_int_t
ngx_http_xet_zt_coded_send(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    xet_status_t              status;
    ngx_http_xet_zt_coded_t  *z;

    z = ngx_palloc(r->pool, sizeof(ngx_http_xet_zt_coded_t));
    if (z == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    z->component = c;

    xet_zt_frames_init(&z->frames);

    status = ngx_http_xet_ztensor_read(r, c->ztensor, &c->range,
                                       ngx_http_xet_zt_coded_consume,
                                       ngx_http_xet_zt_coded_read, z);

    return (status == XET_AGAIN) ? NGX_AGAIN
                                 : ngx_http_xet_error_status(r, status);
}


static xet_status_t
ngx_http_xet_zt_coded_consume(void *data, const u_char *p, size_t len)
{
    ngx_http_xet_zt_coded_t *z = data;

    return xet_zt_frames_feed(&z->frames, p, len);
}


static void
ngx_http_xet_zt_coded_read(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_zt_coded_t *z = data;

    ngx_int_t  rc;

    if (status == XET_OK || status == XET_DONE) {
        status = xet_zt_frames_finish(&z->frames);
    }

    if (status != XET_OK) {
        rc = ngx_http_xet_error_status(r, status);

    } else if (z->frames.window > NGX_HTTP_XET_ZT_CODED_WINDOW
               || z->frames.dictionary)
    {
        rc = ngx_http_xet_zt_data_identity(r, z->component);

    } else {
        rc = ngx_http_xet_zt_coded_content(r, z->component);
    }

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


static ngx_int_t
ngx_http_xet_zt_coded_content(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    ngx_str_t                coding;
    ngx_table_elt_t         *h;
    ngx_http_xet_content_t   content;

    ngx_str_set(&coding, "zstd");

    h = ngx_http_xet_zt_data_push(r, "Content-Encoding", &coding);
    if (h == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.content_encoding = h;

    content.reader = c->ztensor->reader;
    content.start = c->range.start;
    content.size = c->range.end - c->range.start;
    ngx_str_set(&content.type, "application/octet-stream");

    if (ngx_http_xet_zt_data_etag(r, c, 'z', &content.etag) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_content_send(r, &content);
}


static ngx_int_t
ngx_http_xet_zt_data_identity(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    ngx_int_t                rc;
    xet_status_t             status;
    ngx_table_elt_t         *h;
    ngx_http_xet_content_t   content;

    /* an error in the content takes precedence over the request's conditions */

    status = ngx_http_xet_zt_decode_check(r, c);

    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    ngx_memzero(&content, sizeof(ngx_http_xet_content_t));

    if (ngx_http_xet_zt_data_etag(r, c, 'd', &content.etag) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_xet_content_conditions(r, &content);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    h = ngx_http_xet_zt_data_push(r, "ETag", &content.etag);
    if (h == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.etag = h;

    if (ngx_http_xet_header(r, "Accept-Ranges", "none") != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_zt_decode_send(r, c);
}


/*
 * Makes the ETag "<file>.<offset>.<length>.<form>" in the request's pool.
 * form: 's' for stored bytes, 'd' for decoded bytes, 'z' for the coding
 * "zstd".
 */

static ngx_int_t
ngx_http_xet_zt_data_etag(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c, u_char form, ngx_str_t *etag)
{
    u_char  *p;

    p = ngx_pnalloc(r->pool, XET_HASH_STR_LEN + 2 * NGX_INT64_LEN
                             + sizeof("\"...s\""));
    if (p == NULL) {
        return NGX_ERROR;
    }

    etag->data = p;

    *p++ = '"';
    p = xet_hash_print(p, &ngx_http_xet_ctx_of(r)->hash);
    p = ngx_sprintf(p, ".%uL.%uL.%c\"", c->range.start,
                    c->range.end - c->range.start, form);

    etag->len = p - etag->data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_zt_data_headers(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    u_char         *p;
    xet_zt_text_t   raw;

    if (ngx_http_xet_header(r, "Cache-Control", ngx_http_xet_content_cache(r))
        != NGX_OK
        || ngx_http_xet_header(r, "X-Content-Type-Options", "nosniff")
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (c->range.start < c->range.end) {

        p = ngx_pnalloc(r->pool, 2 * NGX_INT64_LEN + 2);
        if (p == NULL) {
            return NGX_ERROR;
        }

        *ngx_sprintf(p, "%uL-%uL", c->range.start, c->range.end - 1) = '\0';

        if (ngx_http_xet_header(r, "X-Zt-File-Range", (char *) p) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    raw.data = (const uint8_t *) "raw";
    raw.len = 3;

    if (ngx_http_xet_zt_data_text(r, "X-Zt-Dtype", &c->component->dtype)
        != NGX_OK
        || ngx_http_xet_zt_data_text(r, "X-Zt-Format", &c->object->format)
           != NGX_OK
        || ngx_http_xet_zt_data_text(r, "X-Zt-Encoding",
                                     c->component->encoding.data
                                     ? &c->component->encoding : &raw)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_xet_zt_data_shape(r, c->object);
}


static ngx_int_t
ngx_http_xet_zt_data_shape(ngx_http_request_t *r, const xet_zt_object_t *o)
{
    u_char    *p, *shape;
    unsigned   i;

    shape = ngx_pnalloc(r->pool, o->rank * (NGX_INT64_LEN + 1) + 1);
    if (shape == NULL) {
        return NGX_ERROR;
    }

    p = shape;

    for (i = 0; i < o->rank; i++) {
        p = ngx_sprintf(p, "%s%uL", i ? "," : "", o->shape[i]);
    }

    *p = '\0';

    return ngx_http_xet_header(r, "X-Zt-Shape", (char *) shape);
}


/* Adds a header with a text of the file, if the text is a valid value. */

static ngx_int_t
ngx_http_xet_zt_data_text(ngx_http_request_t *r, const char *name,
    const xet_zt_text_t *text)
{
    size_t   i;
    u_char  *p;

    for (i = 0; i < text->len; i++) {
        if (text->data[i] <= ' ' || text->data[i] >= 0x7f) {
            return NGX_OK;
        }
    }

    p = ngx_pnalloc(r->pool, text->len + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    *ngx_cpymem(p, text->data, text->len) = '\0';

    return ngx_http_xet_header(r, name, (char *) p);
}


/*
 * Adds a header that nginx also refers to by a member of headers_out.  Returns
 * NULL if out of memory.
 */

static ngx_table_elt_t *
ngx_http_xet_zt_data_push(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NULL;
    }

    h->hash = 1;
    ngx_http_xet_header_last(h);
    h->key.len = ngx_strlen(name);
    h->key.data = (u_char *) name;
    h->value = *value;

    return h;
}


ngx_int_t
ngx_http_xet_zt_reconstruction_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx)
{
    return ngx_http_xet_zt_component(r, 0,
                                     ngx_http_xet_zt_reconstruction_found);
}


static ngx_int_t
ngx_http_xet_zt_reconstruction_found(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    uint64_t      length;
    xet_range_t   want;
    xet_status_t  status;

    length = c->range.end - c->range.start;

    status = ngx_http_xet_reconstruct_range(r, &want);

    if (status == XET_OK && want.start >= length
        && (length || r->headers_in.range))
    {
        status = XET_RANGE_PAST_END;
    }

    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    want.end = c->range.start + ngx_min(want.end, length);
    want.start += c->range.start;

    return ngx_http_xet_reconstruct_send(r, &ngx_http_xet_ctx_of(r)->hash,
                                         &want);
}
