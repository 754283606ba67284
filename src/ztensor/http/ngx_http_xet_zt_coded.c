
/*
 * The decoded form of a compressed component, left to the client to decode.
 *
 * The stored bytes are the same content in the coding "zstd", if no frame
 * needs a dictionary or a larger window than the 8 MiB that RFC 9659 sets for
 * the coding.  The heads of the frames show this, so the component is read
 * twice: once here, without being decompressed, and once to be sent.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_zt_coded.h"


#define NGX_HTTP_XET_ZT_CODED_WINDOW  (8 * 1024 * 1024)


typedef struct {
    ngx_http_xet_zt_component_t   *component;
    ngx_http_xet_zt_component_pt   otherwise;
    ngx_str_t                      etag;
    xet_zt_frames_t                frames;
} ngx_http_xet_zt_coded_t;


static xet_status_t ngx_http_xet_zt_coded_consume(void *data,
    const u_char *p, size_t len);
static void ngx_http_xet_zt_coded_read(ngx_http_request_t *r, void *data,
    xet_status_t status);
static ngx_int_t ngx_http_xet_zt_coded_content(ngx_http_request_t *r,
    ngx_http_xet_zt_coded_t *z);


ngx_uint_t
ngx_http_xet_zt_coded_wanted(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c)
{
    ngx_table_elt_t              *h;
    ngx_http_xet_ztensor_conf_t  *zlcf;

    zlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_ztensor_module);

    if (c->component->coding == XET_ZT_CODING_UNKNOWN
        || c->component->length == 0
        || c->component->length > zlcf->decoder.output)
    {
        return 0;
    }

    h = ngx_http_xet_header_find(&r->headers_in.headers, "accept-encoding", 0);

    return h && xet_accept_coding(h->value.data, h->value.len, "zstd");
}


ngx_int_t
ngx_http_xet_zt_coded_send(ngx_http_request_t *r,
    ngx_http_xet_zt_component_t *c, ngx_str_t *etag,
    ngx_http_xet_zt_component_pt otherwise)
{
    xet_status_t              status;
    ngx_http_xet_zt_coded_t  *z;

    z = ngx_palloc(r->pool, sizeof(ngx_http_xet_zt_coded_t));
    if (z == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    z->component = c;
    z->otherwise = otherwise;
    z->etag = *etag;

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
        rc = z->otherwise(r, z->component);

    } else {
        rc = ngx_http_xet_zt_coded_content(r, z);
    }

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


static ngx_int_t
ngx_http_xet_zt_coded_content(ngx_http_request_t *r,
    ngx_http_xet_zt_coded_t *z)
{
    ngx_table_elt_t         *h;
    ngx_http_xet_content_t   content;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    h->hash = 1;
    ngx_http_xet_header_last(h);
    ngx_str_set(&h->key, "Content-Encoding");
    ngx_str_set(&h->value, "zstd");

    r->headers_out.content_encoding = h;

    content.reader = ngx_http_xet_ztensor_reader(z->component->ztensor);
    content.start = z->component->range.start;
    content.size = z->component->range.end - content.start;
    content.etag = z->etag;
    ngx_str_set(&content.type, "application/octet-stream");

    return ngx_http_xet_content_send(r, &content);
}
