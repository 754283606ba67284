
/*
 * Errors as JSON, with the line that the operator gets.
 */

#ifndef _NGX_HTTP_XET_ERROR_H_INCLUDED_
#define _NGX_HTTP_XET_ERROR_H_INCLUDED_


#include "ngx_http_xet.h"


/*
 * All but ngx_http_xet_error_begin() and _end() send a complete answer and
 * return what ngx_http_finalize_request() takes, so both a content handler and
 * a callback end with them.  A body that was not read yet is discarded.
 */

/* Sends {"error":{"code":…,"message":…}}, and logs a line. */
ngx_int_t ngx_http_xet_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message);

/*
 * As ngx_http_xet_error(), with the seconds in "after" as the Retry-After of
 * 429 and of 5xx but 501.  ngx_http_xet_error() takes "xet_retry_after".
 */
ngx_int_t ngx_http_xet_error_later(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message, time_t after);

/* As ngx_http_xet_error(): code, message and HTTP status of a core status. */
ngx_int_t ngx_http_xet_error_status(ngx_http_request_t *r,
    xet_status_t status);

/*
 * Answers a core status of 4xx with more than its message: b is the answer, of
 * ngx_http_xet_error_begin() and _end(), with further members.
 */
ngx_int_t ngx_http_xet_error_json(ngx_http_request_t *r, xet_status_t status,
    xet_buf_t *b);

/*
 * Begin and end the JSON of an error in b, in the request's pool; in between
 * the caller adds further members to j.
 */
void ngx_http_xet_error_begin(ngx_http_request_t *r, xet_buf_t *b,
    xet_json_t *j, const char *code, const char *message);
void ngx_http_xet_error_end(xet_json_t *j);



/* The content handler of "xet_error": what error_page leads to. */
ngx_int_t ngx_http_xet_error_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_XET_ERROR_H_INCLUDED_ */
