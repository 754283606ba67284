
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
 * The base is "xet_url_base", or what the client asked.  NGX_DECLINED when
 * the client has not said, NGX_ERROR for a base that can't stand in JSON.
 */
ngx_int_t ngx_http_xet_url_init(ngx_http_request_t *r,
    ngx_http_xet_url_t *url);

/* In a thread: a MAC context of its own, and its end. */
xet_status_t ngx_http_xet_url_thread(ngx_http_xet_url_t *url);
void ngx_http_xet_url_thread_end(ngx_http_xet_url_t *url);

/* xet_plan_url_pt; ctx is an ngx_http_xet_url_t. */
xet_status_t ngx_http_xet_url_write(void *ctx, xet_buf_t *b,
    const xet_hash_t *xorb, const xet_plan_range_t *ranges, size_t n);

/*
 * The path and arguments, without base, that let the request itself read the
 * whole of a xorb through the data location.
 */
ngx_int_t ngx_http_xet_url_internal(ngx_http_request_t *r,
    const xet_hash_t *xorb, uint32_t tag, ngx_str_t *uri, ngx_str_t *args);


/* The arguments alone, for the xorb of the request's own URI. */
ngx_int_t ngx_http_xet_url_args(ngx_http_request_t *r, ngx_str_t *args);


#endif /* _NGX_HTTP_XET_URL_H_INCLUDED_ */
