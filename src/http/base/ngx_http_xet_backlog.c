
/*
 * What of an answer in pieces the client has not taken yet.
 *
 * nginx waits for a slow client when a request is finalized; an answer whose
 * next piece is made only when the piece before it is sent has to wait itself,
 * as nginx's writer does: for the socket's write event, and for "send_timeout",
 * which begins anew with each write that the client allows.  While a rate limit
 * delays the answer the timer is the limit's.
 */

#include "ngx_http_xet.h"


ngx_int_t
ngx_http_xet_backlog_wait(ngx_http_request_t *r,
    ngx_http_event_handler_pt handler)
{
    ngx_event_t               *wev;
    ngx_connection_t          *c;
    ngx_http_core_loc_conf_t  *clcf;

    c = r->connection;
    wev = c->write;

    if (!c->buffered && !r->buffered && !r->postponed && !wev->delayed) {

        if (wev->timer_set) {
            ngx_del_timer(wev);
        }

        return NGX_OK;
    }

    if (handler) {
        r->write_event_handler = handler;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (!wev->delayed) {
        ngx_add_timer(wev, clcf->send_timeout);
    }

    if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return NGX_ERROR;
    }

    return NGX_AGAIN;
}


ngx_int_t
ngx_http_xet_backlog_send(ngx_http_request_t *r)
{
    ngx_event_t       *wev;
    ngx_connection_t  *c;

    c = r->connection;
    wev = c->write;

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, c->log, NGX_ETIMEDOUT,
                      "client timed out");
        c->timedout = 1;

        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return NGX_ERROR;
    }

    if (!wev->delayed && ngx_http_output_filter(r, NULL) == NGX_ERROR) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return NGX_ERROR;
    }

    return NGX_OK;
}
