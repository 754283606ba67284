
/*
 * Signed URLs of a response.
 */

#ifndef _NGX_HTTP_XET_URL_H_INCLUDED_
#define _NGX_HTTP_XET_URL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "xet.h"


typedef struct {
    ngx_str_t        base;
    time_t           expires;
    ngx_uint_t       group;            /* ranges in one URL at most */
    ngx_uint_t       whole;            /* the range is not signed */
    xet_sign_key_t  *sign;             /* the event loop's, or a thread's */

    ngx_str_t        id;               /* of the key */
    ngx_str_t        secret;
} ngx_http_xet_url_t;


/*
 * Initializes url for the answers of r.  The base is "xet_url_base", or scheme
 * and host of the request.  NGX_DECLINED when the request names no host,
 * NGX_ERROR for a base that can't stand in JSON, or without memory.
 */
ngx_int_t ngx_http_xet_url_init(ngx_http_request_t *r,
    ngx_http_xet_url_t *url);

/*
 * Makes, and frees, a MAC context of url's own, for use in a thread.  XET_OK
 * or XET_NOMEM.
 */
xet_status_t ngx_http_xet_url_thread(ngx_http_xet_url_t *url);
void ngx_http_xet_url_thread_end(ngx_http_xet_url_t *url);

/*
 * An xet_plan_url_pt: writes a signed URL; ctx is an ngx_http_xet_url_t.  With
 * n == 0 the URL allows any range; ranges[0].tag is read also then.
 */
xet_status_t ngx_http_xet_url_write(void *ctx, xet_buf_t *b,
    const xet_hash_t *xorb, const xet_plan_range_t *ranges, size_t n);

/*
 * The path and arguments, without base, that let the request itself read any
 * range of a copy through the data location, for the next 60 seconds.  NGX_OK
 * or NGX_ERROR; the strings are in r's pool.
 */
ngx_int_t ngx_http_xet_url_internal(ngx_http_request_t *r,
    const xet_hash_t *xorb, uint32_t tag, ngx_str_t *uri, ngx_str_t *args);


/*
 * The arguments alone, for the copy that the request's own URI names.
 * NGX_DECLINED when the URI does not end in the name of a copy.
 */
ngx_int_t ngx_http_xet_url_args(ngx_http_request_t *r, ngx_str_t *args);


#endif /* _NGX_HTTP_XET_URL_H_INCLUDED_ */
