
/*
 * Sets the ETag of data that nginx fetches from a bucket or an origin, and
 * removes headers that reveal the origin.
 *
 * The ETag is the name of the copy, as with a store in a folder.  It is not the
 * ETag of the bucket, which changes if the same bytes are moved, or are
 * uploaded in parts of another size.  The bytes of a copy never change, so all
 * slices in a cache fit together, whatever ETags the bucket has sent.  For this
 * reason conf/xet_bucket.conf and conf/edge.conf hide the store's ETag, which
 * nginx's slice filter would compare.
 *
 * The ETag is set after the slice filter has run, and before nginx evaluates
 * the client's conditions, which refer to this ETag.
 *
 * A store sends headers "x-amz-*" and "x-amzn-*" with versions, encryption
 * keys, checksums and more.  These headers are internal, and
 * "proxy_hide_header" would need the names of all of them.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"


static ngx_int_t ngx_http_xet_etag_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_xet_etag_header_filter(ngx_http_request_t *r);
static void ngx_http_xet_etag_hide(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_etag_set(ngx_http_request_t *r,
    ngx_http_xet_data_t *data);


NGX_HTTP_XET_FILTER(etag)


static ngx_http_output_header_filter_pt  ngx_http_xet_etag_next;


static ngx_int_t
ngx_http_xet_etag_init(ngx_conf_t *cf)
{
    ngx_http_xet_etag_next = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_xet_etag_header_filter;

    return NGX_OK;
}


/* Skips subrequests: a slice needs the unchanged headers of the store. */

static ngx_int_t
ngx_http_xet_etag_header_filter(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t       *ctx;
    ngx_http_xet_loc_conf_t  *xlcf;

    if (r != r->main || r->upstream == NULL
        || r->headers_out.status >= NGX_HTTP_SPECIAL_RESPONSE)
    {
        return ngx_http_xet_etag_next(r);
    }

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (xlcf->data && ctx && ctx->data) {
        ngx_http_xet_etag_hide(r);

        if (ngx_http_xet_etag_set(r, ctx->data) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return ngx_http_xet_etag_next(r);
}


static void
ngx_http_xet_etag_hide(ngx_http_request_t *r)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *header;

    for (part = &r->headers_out.headers.part; part; part = part->next) {
        header = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (header[i].key.len > sizeof("x-amz") - 1
                && ngx_strncasecmp(header[i].key.data, (u_char *) "x-amz",
                                   sizeof("x-amz") - 1)
                   == 0)
            {
                header[i].hash = 0;
            }
        }
    }
}


static ngx_int_t
ngx_http_xet_etag_set(ngx_http_request_t *r, ngx_http_xet_data_t *data)
{
    ngx_http_clear_etag(r);

    r->headers_out.etag = ngx_http_xet_header_add(r, "ETag", &data->etag);

    if (r->headers_out.etag == NULL) {
        return NGX_ERROR;
    }

    /* the store's Content-Type is hidden, so a default is needed */

    if (r->headers_out.content_type.len == 0) {
        ngx_str_set(&r->headers_out.content_type, "application/octet-stream");
        r->headers_out.content_type_len = r->headers_out.content_type.len;
        r->headers_out.content_type_lowcase = NULL;
    }

    return NGX_OK;
}
