
/*
 * Headers of requests and of answers.
 */

#ifndef _NGX_HTTP_XET_HEADER_H_INCLUDED_
#define _NGX_HTTP_XET_HEADER_H_INCLUDED_


#include "ngx_http_xet.h"


/* Adds a header to the answer; the strings must live as long as r. */
ngx_int_t ngx_http_xet_header(ngx_http_request_t *r, const char *key,
    const char *value);

/*
 * The same for who goes on with the header, or has a string that does not end
 * with a zero byte.  NULL without memory.
 */
ngx_table_elt_t *ngx_http_xet_header_add(ngx_http_request_t *r,
    const char *key, const ngx_str_t *value);

/* Removes all headers of that name from the answer: their hash becomes 0. */
void ngx_http_xet_header_remove(ngx_http_request_t *r, const char *name);

/*
 * The n-th header of that name, from 0, in headers_in or in headers_out, or
 * NULL.  Removed ones don't count.
 */
ngx_table_elt_t *ngx_http_xet_header_find(ngx_list_t *headers,
    const char *name, ngx_uint_t n);


#endif /* _NGX_HTTP_XET_HEADER_H_INCLUDED_ */
