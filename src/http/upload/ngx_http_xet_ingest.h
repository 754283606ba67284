
/*
 * Files that are taken in as they are: chunked, deduplicated, stored and
 * registered by the server.
 */

#ifndef _NGX_HTTP_XET_INGEST_H_INCLUDED_
#define _NGX_HTTP_XET_INGEST_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "xet.h"


/* What the client says that the content is; checked before it is registered. */

typedef struct {
    xet_hash_t    hash;                        /* of the file */
    u_char        sha256[XET_DIGEST_SHA256_LEN];
    unsigned      has_hash:1;
    unsigned      has_sha256:1;
} ngx_http_xet_ingest_expected_t;


typedef struct {
    xet_hash_t    hash;
    u_char        sha256[XET_DIGEST_SHA256_LEN];
    uint64_t      size;                        /* bytes */
    uint64_t      new_size;                    /* of them stored anew */
} ngx_http_xet_ingest_result_t;


/*
 * Called once, in the event loop.  rc:
 *
 *     NGX_OK        the file is durable and registered: result
 *     NGX_DECLINED  the content or the store is at fault, as status says
 *     otherwise     the rc of a query, see ngx_http_xet_query.h
 */
typedef void (*ngx_http_xet_ingest_pt)(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_http_xet_ingest_result_t *result);


/*
 * Takes the body of r in as a file of the request's repo, and calls handler
 * with the result, which lives as long as the request.  Memory is bounded by
 * two buffers of the body and what the core needs (xet_ingest.h); *expected
 * is copied.  Returns what a content handler returns.
 */
ngx_int_t ngx_http_xet_ingest(ngx_http_request_t *r,
    const ngx_http_xet_ingest_expected_t *expected,
    ngx_http_xet_ingest_pt handler);


#endif /* _NGX_HTTP_XET_INGEST_H_INCLUDED_ */
