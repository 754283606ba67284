
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
 * Called before the body of r is read: the body will be verified as it passes,
 * a xorb against hash, which a shard does not use.  The request holds two
 * buffers of "xet_body_buffer" and, for a xorb, a verifier.  Returns what the
 * handler of a phase returns: NGX_DECLINED, or NGX_DONE when the request was
 * answered, because it has no body or another module has read the body;
 * NGX_HTTP_INTERNAL_SERVER_ERROR without memory.
 */
ngx_int_t ngx_http_xet_verify(ngx_http_request_t *r,
    ngx_http_xet_upload_e upload, const xet_hash_t *hash);

/* Registers the filter; in postconfiguration. */
ngx_int_t ngx_http_xet_verify_init(ngx_conf_t *cf);


#endif /* _NGX_HTTP_XET_VERIFY_BODY_H_INCLUDED_ */
