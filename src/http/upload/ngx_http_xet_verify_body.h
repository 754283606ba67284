
/*
 * Uploads on their way through an edge, checked as they pass.
 */

#ifndef _NGX_HTTP_XET_VERIFY_BODY_H_INCLUDED_
#define _NGX_HTTP_XET_VERIFY_BODY_H_INCLUDED_


#include "ngx_http_xet.h"


typedef enum {
    NGX_HTTP_XET_UPLOAD_NONE = 0,
    NGX_HTTP_XET_UPLOAD_XORB,
    NGX_HTTP_XET_UPLOAD_SHARD
} ngx_http_xet_upload_e;


/*
 * Before the body of r is read: it is to be verified as it passes, a xorb
 * against hash.  Two buffers of "xet_body_buffer" and, for a xorb, a verifier
 * are what it holds.  Returns what a handler of a phase returns: NGX_DECLINED,
 * or NGX_DONE when there is no body, or somebody has read it already, and the
 * request was answered.
 */
ngx_int_t ngx_http_xet_verify(ngx_http_request_t *r,
    ngx_http_xet_upload_e upload, const xet_hash_t *hash);

/* Registers the filter; in postconfiguration. */
ngx_int_t ngx_http_xet_verify_init(ngx_conf_t *cf);


#endif /* _NGX_HTTP_XET_VERIFY_BODY_H_INCLUDED_ */
