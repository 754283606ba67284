
/*
 * A part of a stored file, or all of it, as what GET and HEAD of a URL give
 * (RFC 9110): conditions, ranges, and the bytes themselves, streamed.
 */

#ifndef _NGX_HTTP_XET_CONTENT_H_INCLUDED_
#define _NGX_HTTP_XET_CONTENT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_xet_reader.h"


typedef struct {
    ngx_http_xet_reader_t  *reader;            /* open, nothing under way */
    uint64_t                start;             /* in the file */
    uint64_t                size;              /* start + size <= file's */
    ngx_str_t               etag;              /* strong, with its quotes */
    ngx_str_t               type;              /* Content-Type */
} ngx_http_xet_content_t;


/*
 * Answers with bytes [start, start + size) of the file: 200, 206 with one
 * range or multipart/byteranges, 304, 412 or 416, as If-Match, If-None-Match,
 * If-Range and Range of the request say.  Adds Content-Length, Content-Range,
 * Content-Type, Accept-Ranges and ETag; what else belongs to a 200
 * (Cache-Control, Content-Disposition, ...) the caller has added before, with
 * ngx_http_xet_header().  HEAD is the answer of GET without its body; a Range
 * has no meaning for it.
 *
 * The answer goes out piece by piece with backpressure to the client; from
 * now on the reader belongs to the answer, which sets ranges of its own.
 * Damage in the store is 500 as long as nothing was sent, and cuts the
 * connection after that.
 *
 * What is returned suits both a content handler, which returns it, and a
 * callback, which finalizes the request with it: NGX_DONE when the answer is
 * under way and has taken a reference of its own.  The strings live as long as
 * the request; *content is copied.
 */
ngx_int_t ngx_http_xet_content_send(ngx_http_request_t *r,
    const ngx_http_xet_content_t *content);

/*
 * Only the conditions of the request, for content that the caller makes and
 * sends itself; only the entity tag is used.  NGX_DECLINED: it is to be sent;
 * otherwise the 304 or 412 was sent, and as above.  nginx's own conditions
 * would use dates where there are none, and its 412 is no JSON, and closes the
 * connection without announcing it.
 */
ngx_int_t ngx_http_xet_content_conditions(ngx_http_request_t *r,
    const ngx_http_xet_content_t *content);

/* The Cache-Control for content whose URL contains its hash. */
const char *ngx_http_xet_content_cache(ngx_http_request_t *r);

/*
 * Adds the headers Repr-Digest and Digest; sha256 are 32 bytes, of the whole
 * content.  NGX_OK, or NGX_ERROR without memory.
 */
ngx_int_t ngx_http_xet_content_digest(ngx_http_request_t *r,
    const u_char *sha256);


#endif /* _NGX_HTTP_XET_CONTENT_H_INCLUDED_ */
