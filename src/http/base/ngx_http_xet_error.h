
/*
 * Errors as JSON, with the line that the operator gets.
 */

#ifndef _NGX_HTTP_XET_ERROR_H_INCLUDED_
#define _NGX_HTTP_XET_ERROR_H_INCLUDED_


#include "ngx_http_xet.h"


/*
 * All send a complete answer and return what ngx_http_finalize_request()
 * takes, so both a content handler and a callback end with them.
 */

/* {"error":{"code":…,"message":…}}, and a line in the error log. */
ngx_int_t ngx_http_xet_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message);

/*
 * The same, when a retry may succeed after so many seconds, which Retry-After
 * says with 429 and 5xx; the others say "xet_retry_after".
 */
ngx_int_t ngx_http_xet_error_later(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message, time_t after);

/* The same with code, message and HTTP status of a core status. */
ngx_int_t ngx_http_xet_error_status(ngx_http_request_t *r,
    xet_status_t status);

/*
 * A core status of 4xx with more to tell than its message: b is the answer,
 * JSON of the same form with further members.
 */
ngx_int_t ngx_http_xet_error_json(ngx_http_request_t *r, xet_status_t status,
    xet_buf_t *b);

/* That JSON, in the request's pool; between them go the further members. */
void ngx_http_xet_error_begin(ngx_http_request_t *r, xet_buf_t *b,
    xet_json_t *j, const char *code, const char *message);
void ngx_http_xet_error_end(xet_json_t *j);

/* An error before the body was read, which is dropped then. */
ngx_int_t ngx_http_xet_refuse(ngx_http_request_t *r, ngx_uint_t status,
    const char *code, const char *message);

/* The content handler of "xet_error": what error_page leads to. */
ngx_int_t ngx_http_xet_error_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_XET_ERROR_H_INCLUDED_ */
