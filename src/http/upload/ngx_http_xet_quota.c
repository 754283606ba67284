
/*
 * Rejects uploads that exceed a quota before their body is read.
 *
 * The transactions that register xorbs and files enforce the quotas
 * (sql/quota.sql).  Only these transactions check exactly, but they run after
 * the client has sent all bytes.  So if the length of a body is known, and the
 * worker knows that quotas exist, a statement checks the length first:
 *
 *     read      (query)   checks whether the quotas now allow this length
 *     looked              sends an error, or reads the body
 *
 * If the statement fails for another reason, the body is read.  Footers of
 * xorbs are not stored, so the size of the longest possible footer is
 * subtracted from the length.
 *
 * The response has status 413, after which clients give up at once; after a 507
 * they would retry for minutes.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_upload.h"


#define NGX_HTTP_XET_QUOTA_FOOTER  (XET_XORB_CHUNKS_MAX * 40 + 1024)
#define NGX_HTTP_XET_QUOTA_TEXT    256


struct ngx_http_xet_look_s {
    ngx_http_xet_body_sink_t  sink;
};


static void ngx_http_xet_quota_looked(ngx_http_request_t *r, ngx_int_t rc);


ngx_int_t
ngx_http_xet_quota_read(ngx_http_request_t *r, ngx_http_xet_quota_e quota,
    const xet_hash_t *hash, const ngx_http_xet_body_sink_t *sink)
{
    off_t                 size;
    ngx_int_t             rc;
    ngx_http_xet_look_t  *look;

    static const ngx_str_t  stored = ngx_string("stored");
    static const ngx_str_t  logical = ngx_string("logical");

    size = r->headers_in.content_length_n;

    if (quota == NGX_HTTP_XET_QUOTA_XORB) {
        size -= NGX_HTTP_XET_QUOTA_FOOTER;
    }

    if (!ngx_http_xet_query_quotas() || size <= 0) {
        return ngx_http_xet_body_read(r, sink);
    }

    look = ngx_palloc(r->pool, sizeof(ngx_http_xet_look_t));
    if (look == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    look->sink = *sink;

    ngx_http_xet_ctx_of(r)->look = look;

    rc = ngx_http_xet_query(r, quota_look, ngx_http_xet_quota_looked,
                            .what = (quota == NGX_HTTP_XET_QUOTA_XORB)
                                    ? stored : logical,
                            .size = (uint64_t) size, .hash = hash);
    if (rc != NGX_AGAIN) {
        return ngx_http_xet_body_read(r, sink);
    }

    return ngx_http_xet_query_wait(r, rc);
}


static void
ngx_http_xet_quota_looked(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_over_t   over;
    ngx_http_xet_look_t  *look;

    look = ngx_http_xet_ctx_of(r)->look;

    if (ngx_http_xet_query_quota_over(r, &over)) {
        rc = ngx_http_xet_upload_error(r, NGX_DECLINED, XET_QUOTA);

    } else {
        ngx_http_xet_query_release(r);

        r->read_event_handler = ngx_http_block_reading;

        rc = ngx_http_xet_body_read(r, &look->sink);
    }

    ngx_http_finalize_request(r, rc);
}


ngx_int_t
ngx_http_xet_upload_error(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status)
{
    xet_buf_t            b;
    xet_json_t           j;
    const char          *message;
    ngx_http_xet_over_t  over;

    if (rc != NGX_DECLINED) {
        return ngx_http_xet_query_error(r, rc);
    }

    if (status != XET_QUOTA || !ngx_http_xet_query_quota_over(r, &over)) {
        return ngx_http_xet_error_status(r, status);
    }

    message = ngx_http_xet_quota_text(r);

    ngx_http_xet_error_begin(r, &b, &j, xet_status_code(status), message);

    xet_json_put_cstring(&j, "quota", (char *) over.kind);
    xet_json_put_cstring(&j, "bytes", (char *) over.what);
    xet_json_put_u64(&j, "limit", over.limit);
    xet_json_put_u64(&j, "used", over.used);
    xet_json_put_u64(&j, "left", over.limit - ngx_min(over.used, over.limit));

    ngx_http_xet_error_end(&j);

    return ngx_http_xet_error_more(r, .core = status, .body = &b,
               .line = ngx_http_xet_error_line(r, xet_status_http(status),
                                               message));
}


const char *
ngx_http_xet_quota_text(ngx_http_request_t *r)
{
    u_char               *text, *p;
    ngx_http_xet_over_t   over;

    if (!ngx_http_xet_query_quota_over(r, &over)) {
        return xet_status_text(XET_QUOTA);
    }

    text = ngx_pnalloc(r->pool, NGX_HTTP_XET_QUOTA_TEXT);
    if (text == NULL) {
        return xet_status_text(XET_QUOTA);
    }

    p = ngx_slprintf(text, text + NGX_HTTP_XET_QUOTA_TEXT - 1,
                     "%s: the %s has %uL of %uL %s bytes left, and the upload "
                     "needs at least %uL",
                     xet_status_text(XET_QUOTA), over.kind,
                     over.limit - ngx_min(over.used, over.limit), over.limit,
                     over.what, over.more);
    *p = '\0';

    return (char *) text;
}
