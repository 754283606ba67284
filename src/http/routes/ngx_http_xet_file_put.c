
/*
 * PUT and POST files: a file as it is, for programs that have never heard of
 * Xet.
 *
 *     handler   what the headers say about the content
 *     put       by the ingest service: chunks, dedup, xorbs, registration
 *     done      the answer: the file's hash, and how much of the file was new
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_error.h"
#include "ngx_http_xet_header.h"
#include "ngx_http_xet_ingest.h"
#include "ngx_http_xet_output.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"


static xet_status_t ngx_http_xet_file_put_expected(ngx_http_request_t *r,
    ngx_http_xet_ingest_expected_t *expected);
static xet_status_t ngx_http_xet_file_put_digest(ngx_http_request_t *r,
    const char *name, ngx_http_xet_ingest_expected_t *expected);
static void ngx_http_xet_file_put_done(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_http_xet_ingest_result_t *result);
static ngx_int_t ngx_http_xet_file_put_send(ngx_http_request_t *r,
    ngx_http_xet_ingest_result_t *result);


ngx_int_t
ngx_http_xet_file_put_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    xet_status_t                     status;
    ngx_http_xet_ingest_expected_t   expected;

    /* a part of a file would be taken for all of it */

    if (ngx_http_xet_header_find(&r->headers_in.headers, "Content-Range", 0)) {
        return ngx_http_xet_error(r, NGX_HTTP_BAD_REQUEST, "no_partial_put",
                                  "a file is taken as a whole");
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
 * Takes the expected SHA-256 from a header, Content-Digest or Repr-Digest.
 * Either may come, or both, which must agree then.
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

        /* the header has only algorithms that are not checked here */

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
    if (rc == NGX_OK) {
        rc = ngx_http_xet_file_put_send(r, result);

    } else if (rc == NGX_DECLINED) {
        rc = ngx_http_xet_error_status(r, status);

    } else {
        rc = ngx_http_xet_query_error(r, rc, NULL, NULL);
    }

    ngx_http_finalize_request(r, rc);
}


static ngx_int_t
ngx_http_xet_file_put_send(ngx_http_request_t *r,
    ngx_http_xet_ingest_result_t *result)
{
    u_char      text[XET_HASH_STR_LEN];
    xet_buf_t   b;
    xet_json_t  j;

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 512);
    xet_json_init(&j, &b);

    xet_json_object_begin(&j);

    (void) xet_hash_print(text, &result->hash);
    xet_json_key(&j, "hash");
    xet_json_string(&j, text, sizeof(text));

    xet_json_key(&j, "size");
    xet_json_u64(&j, result->size);

    (void) xet_hash_print_plain(text, result->sha256);
    xet_json_key(&j, "sha256");
    xet_json_string(&j, text, sizeof(text));

    xet_json_key(&j, "new_bytes");
    xet_json_u64(&j, result->new_size);

    xet_json_key(&j, "deduplicated_bytes");
    xet_json_u64(&j, result->size - result->new_size);

    xet_json_object_end(&j);

    return ngx_http_xet_send(r, NGX_HTTP_OK, "application/json", &b);
}
