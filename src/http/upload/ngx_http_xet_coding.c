
/*
 * Rejects request bodies with a Content-Encoding.  A body is stored as it was
 * sent, so the information about its encoding would be lost.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_upload.h"


ngx_int_t
ngx_http_xet_body_plain(ngx_http_request_t *r)
{
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    for (n = 0; /* void */ ; n++) {

        h = ngx_http_xet_header_find(&r->headers_in.headers,
                                     "Content-Encoding", n);
        if (h == NULL) {
            return NGX_DECLINED;
        }

        if (h->value.len
            && (h->value.len != 8
                || ngx_strncasecmp(h->value.data, (u_char *) "identity", 8)
                   != 0))
        {
            break;
        }
    }

    if (ngx_http_xet_header(r, "Accept-Encoding", "identity") != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_error(r, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
                              "unsupported_content_encoding",
                              "the Content-Encoding of the body is not "
                              "supported; send it without one");
}
