
/*
 * PUT and POST files, GET and HEAD files/{file}: whole files, for clients that
 * do not support Xet.
 *
 *     handler   parses "filename", and looks up the file if the request may
 *               read it
 *     opened    adds headers: caching, digest, file name
 *     content   evaluates conditions and ranges, sends the bytes
 *
 * The URL contains the hash of the file, so the response never changes, and
 * the hash is the ETag.  A media type is sent only with ?filename; otherwise
 * the type is application/octet-stream, which a browser does not interpret.
 *
 * PUT and POST check the headers that describe the content, and then call the
 * ingest service (chunks, dedup, xorbs, registration).  The response contains
 * the hash of the file, and how many of its bytes were new.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_upload.h"


typedef struct {
    ngx_http_xet_reader_t  *reader;
    u_char                  name[XET_FILENAME_MAX];
    size_t                  name_len;          /* 0: no name */
} ngx_http_xet_file_get_t;


static xet_status_t ngx_http_xet_file_get_name(ngx_http_request_t *r,
    ngx_http_xet_file_get_t *f);
static void ngx_http_xet_file_get_opened(ngx_http_request_t *r, void *data,
    xet_status_t status);
static ngx_int_t ngx_http_xet_file_get_send(ngx_http_request_t *r,
    ngx_http_xet_file_get_t *f);
static void ngx_http_xet_file_get_type(ngx_http_request_t *r,
    ngx_http_xet_file_get_t *f, ngx_str_t *type);
static ngx_int_t ngx_http_xet_file_get_headers(ngx_http_request_t *r,
    ngx_http_xet_file_get_t *f);
static xet_status_t ngx_http_xet_file_put_expected(ngx_http_request_t *r,
    ngx_http_xet_ingest_expected_t *expected);
static xet_status_t ngx_http_xet_file_put_digest(ngx_http_request_t *r,
    const char *name, ngx_http_xet_ingest_expected_t *expected);
static void ngx_http_xet_file_put_done(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_http_xet_ingest_result_t *result);
static ngx_int_t ngx_http_xet_file_put_send(ngx_http_request_t *r,
    ngx_http_xet_ingest_result_t *result);


ngx_int_t
ngx_http_xet_file_get_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    xet_status_t              status;
    ngx_http_xet_file_get_t  *f;

    f = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_file_get_t));
    if (f == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    status = ngx_http_xet_file_get_name(r, f);

    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    f->reader = ngx_http_xet_reader_create(r, f);
    if (f->reader == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    status = ngx_http_xet_reader_open(r, f->reader, &ctx->hash,
                                      ngx_http_xet_file_get_opened);

    if (status == XET_AGAIN) {
        return ngx_http_xet_query_wait(r, NGX_AGAIN);
    }

    return (status == XET_OK) ? ngx_http_xet_file_get_send(r, f)
                              : ngx_http_xet_error_status(r, status);
}


static xet_status_t
ngx_http_xet_file_get_name(ngx_http_request_t *r, ngx_http_xet_file_get_t *f)
{
    ngx_str_t  value;

    if (ngx_http_arg(r, (u_char *) "filename", 8, &value) != NGX_OK) {
        return XET_OK;
    }

    return xet_filename_decode(f->name, &f->name_len, value.data, value.len);
}


static void
ngx_http_xet_file_get_opened(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_int_t  rc;

    rc = (status == XET_OK) ? ngx_http_xet_file_get_send(r, data)
                            : ngx_http_xet_error_status(r, status);

    ngx_http_finalize_request(r, rc);
}


static ngx_int_t
ngx_http_xet_file_get_send(ngx_http_request_t *r, ngx_http_xet_file_get_t *f)
{
    u_char                  *p;
    ngx_http_xet_content_t   content;

    p = ngx_pnalloc(r->pool, XET_HASH_STR_LEN + 2);

    if (p == NULL || ngx_http_xet_file_get_headers(r, f) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    content.reader = f->reader;
    content.start = 0;
    content.size = ngx_http_xet_reader_size(f->reader);
    content.etag.data = p;
    content.etag.len = XET_HASH_STR_LEN + 2;

    *p++ = '"';
    p = xet_hash_print(p, &ngx_http_xet_ctx_of(r)->hash);
    *p = '"';

    ngx_http_xet_file_get_type(r, f, &content.type);

    return ngx_http_xet_content_send(r, &content);
}


/*
 * Finds the media type for the extension of the file name, in nginx's "types".
 */

static void
ngx_http_xet_file_get_type(ngx_http_request_t *r, ngx_http_xet_file_get_t *f,
    ngx_str_t *type)
{
    u_char                     low[XET_FILENAME_MAX];
    size_t                     len;
    ngx_str_t                 *found;
    ngx_uint_t                 hash;
    const u_char              *ext;
    ngx_http_core_loc_conf_t  *clcf;

    ngx_str_set(type, "application/octet-stream");

    ext = xet_filename_extension(f->name, f->name_len, &len);

    if (ext == NULL || len == 0) {
        return;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    hash = ngx_hash_strlow(low, (u_char *) ext, len);
    found = ngx_hash_find(&clcf->types_hash, hash, low, len);

    if (found) {
        *type = *found;
    }
}


static ngx_int_t
ngx_http_xet_file_get_headers(ngx_http_request_t *r,
    ngx_http_xet_file_get_t *f)
{
    u_char        *p;
    const u_char  *sha256;

    if (ngx_http_xet_header(r, "Cache-Control", ngx_http_xet_content_cache(r))
        != NGX_OK
        || ngx_http_xet_header(r, "X-Content-Type-Options", "nosniff")
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    sha256 = ngx_http_xet_reader_sha256(f->reader);

    if (sha256 && ngx_http_xet_content_digest(r, sha256) != NGX_OK) {
        return NGX_ERROR;
    }

    if (f->name_len == 0) {
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, XET_FILENAME_HEADER(f->name_len));
    if (p == NULL) {
        return NGX_ERROR;
    }

    *xet_filename_header(p, f->name, f->name_len) = '\0';

    return ngx_http_xet_header(r, "Content-Disposition", (char *) p);
}


ngx_int_t
ngx_http_xet_file_put_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    xet_status_t                     status;
    ngx_http_xet_ingest_expected_t   expected;

    /* the body would be stored as a whole file, not as a part of one */

    if (ngx_http_xet_header_find(&r->headers_in.headers, "Content-Range", 0)) {
        return ngx_http_xet_error(r, NGX_HTTP_BAD_REQUEST, "no_partial_put",
                                  "partial uploads of a file are not "
                                  "supported; send it whole");
    }

    status = ngx_http_xet_file_put_expected(r, &expected);

    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    return ngx_http_xet_ingest(r, &expected, ngx_http_xet_file_put_done);
}


static xet_status_t
ngx_http_xet_file_put_expected(ngx_http_request_t *r,
    ngx_http_xet_ingest_expected_t *expected)
{
    ngx_list_t       *headers;
    xet_status_t      status;
    ngx_table_elt_t  *h;

    ngx_memzero(expected, sizeof(ngx_http_xet_ingest_expected_t));

    status = ngx_http_xet_file_put_digest(r, "Content-Digest", expected);

    if (status == XET_OK) {
        status = ngx_http_xet_file_put_digest(r, "Repr-Digest", expected);
    }

    if (status != XET_OK) {
        return status;
    }

    headers = &r->headers_in.headers;
    h = ngx_http_xet_header_find(headers, "X-Xet-Hash", 0);

    if (h == NULL) {
        return XET_OK;
    }

    if (ngx_http_xet_header_find(headers, "X-Xet-Hash", 1)) {
        return XET_HASH_SYNTAX;
    }

    expected->has_hash = 1;

    return xet_hash_parse(&expected->hash, h->value.data, h->value.len);
}


/*
 * Reads the expected SHA-256 from the header "name", Content-Digest or
 * Repr-Digest.  If the request has both headers, their digests must be equal.
 */

static xet_status_t
ngx_http_xet_file_put_digest(ngx_http_request_t *r, const char *name,
    ngx_http_xet_ingest_expected_t *expected)
{
    u_char            sha256[XET_DIGEST_SHA256_LEN];
    ngx_list_t       *headers;
    xet_status_t      status;
    ngx_table_elt_t  *h;

    headers = &r->headers_in.headers;
    h = ngx_http_xet_header_find(headers, name, 0);

    if (h == NULL) {
        return XET_OK;
    }

    if (ngx_http_xet_header_find(headers, name, 1)) {
        return XET_DIGEST_SYNTAX;
    }

    status = xet_digest_sha256(h->value.data, h->value.len, sha256);

    if (status != XET_OK) {

        /* ignore a header that has only unsupported algorithms */

        return (status == XET_DONE) ? XET_OK : status;
    }

    if (expected->has_sha256
        && ngx_memcmp(expected->sha256, sha256, XET_DIGEST_SHA256_LEN) != 0)
    {
        return XET_DIGEST_SYNTAX;
    }

    ngx_memcpy(expected->sha256, sha256, XET_DIGEST_SHA256_LEN);
    expected->has_sha256 = 1;

    return XET_OK;
}


static void
ngx_http_xet_file_put_done(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_http_xet_ingest_result_t *result)
{
    ngx_http_finalize_request(r,
        (rc == NGX_OK) ? ngx_http_xet_file_put_send(r, result)
                       : ngx_http_xet_upload_error(r, rc, status));
}


static ngx_int_t
ngx_http_xet_file_put_send(ngx_http_request_t *r,
    ngx_http_xet_ingest_result_t *result)
{
    u_char                 text[XET_HASH_STR_LEN];
    xet_buf_t              b;
    xet_json_t             j;
    ngx_http_xet_audit_t  *audit;

    audit = ngx_http_xet_audit(r);

    audit->hash = result->hash;
    audit->has_hash = 1;
    audit->new_bytes = result->new_size;
    audit->stored = 1;
    audit->result = result->new_size ? "new" : "known";

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 512);
    xet_json_init(&j, &b);

    xet_json_object_begin(&j);

    (void) xet_hash_print(text, &result->hash);
    xet_json_put_string(&j, "hash", text, sizeof(text));

    xet_json_put_u64(&j, "size", result->size);

    (void) xet_hash_print_plain(text, result->sha256);
    xet_json_put_string(&j, "sha256", text, sizeof(text));

    xet_json_put_u64(&j, "new_bytes", result->new_size);

    xet_json_put_u64(&j, "deduplicated_bytes",
                     result->size - result->new_size);

    xet_json_object_end(&j);

    return ngx_http_xet_send(r, NGX_HTTP_OK, "application/json", &b);
}
