
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
 * The n-th header of that name, from 0, in headers_in or in headers_out, or
 * NULL.  In headers_out it may be a removed header, whose hash is 0.
 */
ngx_table_elt_t *ngx_http_xet_header_find(ngx_list_t *headers,
    const char *name, ngx_uint_t n);


#endif /* _NGX_HTTP_XET_HEADER_H_INCLUDED_ */
