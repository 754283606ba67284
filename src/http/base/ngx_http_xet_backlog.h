
/*
 * What of an answer in pieces the client has not taken yet.
 */

#ifndef _NGX_HTTP_XET_BACKLOG_H_INCLUDED_
#define _NGX_HTTP_XET_BACKLOG_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Behind output: NGX_OK when the client has taken all; NGX_AGAIN, with handler
 * set for the socket's write events unless it is NULL; NGX_ERROR: finalized.
 */
ngx_int_t ngx_http_xet_backlog_wait(ngx_http_request_t *r,
    ngx_http_event_handler_pt handler);

/*
 * For that handler: sends what the socket takes, after which the caller waits
 * again.  NGX_OK, or NGX_ERROR: finalized, as for a client that took nothing
 * for "send_timeout".
 */
ngx_int_t ngx_http_xet_backlog_send(ngx_http_request_t *r);


#endif /* _NGX_HTTP_XET_BACKLOG_H_INCLUDED_ */
