
/*
 * Headers of requests and of answers.
 */

#include "ngx_http_xet_header.h"


ngx_int_t
ngx_http_xet_header(ngx_http_request_t *r, const char *key, const char *value)
{
    ngx_str_t  s;

    s.data = (u_char *) value;
    s.len = ngx_strlen(value);

    return ngx_http_xet_header_add(r, key, &s) ? NGX_OK : NGX_ERROR;
}


ngx_table_elt_t *
ngx_http_xet_header_add(ngx_http_request_t *r, const char *key,
    const ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NULL;
    }

    h->hash = 1;
    ngx_http_xet_header_last(h);
    h->key.data = (u_char *) key;
    h->key.len = ngx_strlen(key);
    h->value = *value;

    return h;
}


void
ngx_http_xet_header_remove(ngx_http_request_t *r, const char *name)
{
    ngx_list_t       *headers;
    ngx_table_elt_t  *h;

    headers = &r->headers_out.headers;

    for ( ;; ) {

        h = ngx_http_xet_header_find(headers, name, 0);
        if (h == NULL) {
            return;
        }

        h->hash = 0;
    }
}


ngx_table_elt_t *
ngx_http_xet_header_find(ngx_list_t *headers, const char *name, ngx_uint_t n)
{
    size_t            len;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    len = ngx_strlen(name);
    part = &headers->part;
    h = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {

            if (part->next == NULL) {
                break;
            }

            part = part->next;
            h = part->elts;
            i = 0;
        }

        if (h[i].hash && h[i].key.len == len
            && ngx_strncasecmp(h[i].key.data, (u_char *) name, len) == 0
            && n-- == 0)
        {
            return &h[i];
        }
    }

    return NULL;
}
