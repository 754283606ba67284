
/*
 * Delays the first uploads of a worker until it has copy ids.
 *
 *     then      if there are copy ids, the upload continues at once
 *     wait      otherwise requests copy ids, once for all waiting uploads
 *     come      continues the upload
 *
 * The upload continues even if no copy ids were received; it is rejected later,
 * when it needs a copy id.  While the upload waits, nothing is read from the
 * client, and its connection is not watched: a client that has sent everything
 * may already have shut down its side of the connection.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_upload.h"


struct ngx_http_xet_copy_ids_s {
    ngx_http_request_t           *request;
    ngx_http_xet_copy_ids_pt      next;
    void                         *data;
    ngx_http_event_handler_pt     reading;     /* saved read_event_handler */
    ngx_http_xet_copy_ids_wait_t  wait;
};


static void ngx_http_xet_copy_ids_come(void *data);
static void ngx_http_xet_copy_ids_cleanup(void *data);


ngx_int_t
ngx_http_xet_copy_ids_then(ngx_http_request_t *r, ngx_http_xet_copy_ids_pt next,
    void *data)
{
    ngx_http_xet_copy_ids_t  *copy_ids;

    if (ngx_http_xet_store_copy_ids_blocks()) {
        ngx_http_xet_query_copy_ids();

        return next(r, data);
    }

    copy_ids = ngx_http_xet_state(r, sizeof(ngx_http_xet_copy_ids_t),
                                  ngx_http_xet_copy_ids_cleanup);
    if (copy_ids == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    copy_ids->request = r;
    copy_ids->next = next;
    copy_ids->data = data;
    copy_ids->wait.handler = ngx_http_xet_copy_ids_come;
    copy_ids->wait.data = copy_ids;

    if (ngx_http_xet_query_copy_ids_wait(&copy_ids->wait) != NGX_AGAIN) {
        return next(r, data);
    }

    copy_ids->reading = r->read_event_handler;

    r->main->count++;
    r->read_event_handler = ngx_http_block_reading;

    return NGX_DONE;
}


static void
ngx_http_xet_copy_ids_come(void *data)
{
    ngx_http_xet_copy_ids_t *copy_ids = data;

    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = copy_ids->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    /* the body of the request may already be partly read */

    r->read_event_handler = copy_ids->reading;

    ngx_http_finalize_request(r, copy_ids->next(r, copy_ids->data));

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_xet_copy_ids_cleanup(void *data)
{
    ngx_http_xet_copy_ids_t *copy_ids = data;

    ngx_http_xet_query_copy_ids_leave(&copy_ids->wait);
}
