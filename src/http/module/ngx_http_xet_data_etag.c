
/*
 * The ETag of data that comes from a bucket.
 *
 * It is that of a folder, the name of the copy, and not what the store has made
 * of the bytes: an edge has pieces of a xorb from before and after its store
 * was moved, and takes those of another ETag for those of another file.
 *
 * It is set behind nginx's slices, which hold the answers of the store against
 * each other by the ETag of that, and before nginx's conditions, which go by
 * what the client has.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_store.h"


static ngx_int_t ngx_http_xet_etag_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_xet_etag_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_etag_set(ngx_http_request_t *r,
    ngx_http_xet_data_t *data);


static ngx_http_module_t  ngx_http_xet_etag_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_xet_etag_init,                /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_xet_etag_module = {
    NGX_MODULE_V1,
    &ngx_http_xet_etag_module_ctx,         /* module context */
    NULL,                                  /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_http_output_header_filter_pt  ngx_http_xet_etag_next;


static ngx_int_t
ngx_http_xet_etag_init(ngx_conf_t *cf)
{
    ngx_http_xet_etag_next = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_xet_etag_header_filter;

    return NGX_OK;
}


/* A subrequest is a slice, with the answer of the store as it is. */

static ngx_int_t
ngx_http_xet_etag_header_filter(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t        *ctx;
    ngx_http_xet_loc_conf_t   *xlcf;
    ngx_http_xet_main_conf_t  *xmcf;

    if (r != r->main || r->upstream == NULL
        || r->headers_out.status >= NGX_HTTP_SPECIAL_RESPONSE)
    {
        return ngx_http_xet_etag_next(r);
    }

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);
    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (xlcf->data && xmcf->store && xmcf->store->s3 && ctx && ctx->data
        && ngx_http_xet_etag_set(r, ctx->data) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_xet_etag_next(r);
}


static ngx_int_t
ngx_http_xet_etag_set(ngx_http_request_t *r, ngx_http_xet_data_t *data)
{
    ngx_http_clear_etag(r);

    r->headers_out.etag = ngx_http_xet_header_add(r, "ETag", &data->etag);

    if (r->headers_out.etag == NULL) {
        return NGX_ERROR;
    }

    /* that of the store is hidden, and it was nobody's to choose */

    if (r->headers_out.content_type.len == 0) {
        ngx_str_set(&r->headers_out.content_type, "application/octet-stream");
        r->headers_out.content_type_len = r->headers_out.content_type.len;
        r->headers_out.content_type_lowcase = NULL;
    }

    return NGX_OK;
}
