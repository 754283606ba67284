
/*
 * What of an answer in pieces the client has not taken yet.
 */

#ifndef _NGX_HTTP_XET_BACKLOG_H_INCLUDED_
#define _NGX_HTTP_XET_BACKLOG_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * To be called after output.  NGX_OK when the client has taken all; NGX_AGAIN
 * when it has not, and then handler, unless it is NULL, gets the write events
 * of the socket; NGX_ERROR when the request was finalized.
 */
ngx_int_t ngx_http_xet_backlog_wait(ngx_http_request_t *r,
    ngx_http_event_handler_pt handler);

/*
 * To be called by a handler of write events: sends what the socket takes, after
 * which the handler calls ngx_http_xet_backlog_wait() again.  NGX_OK, or
 * NGX_ERROR when the request was finalized, which it also is when the client
 * has taken nothing for "send_timeout".
 */
ngx_int_t ngx_http_xet_backlog_send(ngx_http_request_t *r);


#endif /* _NGX_HTTP_XET_BACKLOG_H_INCLUDED_ */
