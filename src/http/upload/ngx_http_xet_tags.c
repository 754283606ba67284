
/*
 * Delays the first uploads of a worker, which has no tags for copies yet.
 *
 *     then      if there are tags, the upload continues at once
 *     wait      otherwise requests tags, once for all waiting uploads
 *     come      continues the upload
 *
 * The upload continues even if no tags were received; it is rejected later,
 * when it needs a tag.  While the upload waits, nothing is read from the
 * client, and its connection is not watched: a client that has sent everything
 * may have closed its side.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_upload.h"


struct ngx_http_xet_tags_s {
    ngx_http_request_t        *request;
    ngx_http_xet_tags_pt       next;
    void                      *data;
    ngx_http_event_handler_pt  reading;        /* saved read_event_handler */
    ngx_http_xet_tags_wait_t   wait;
};


static void ngx_http_xet_tags_come(void *data);
static void ngx_http_xet_tags_cleanup(void *data);


ngx_int_t
ngx_http_xet_tags_then(ngx_http_request_t *r, ngx_http_xet_tags_pt next,
    void *data)
{
    ngx_http_xet_tags_t  *tags;

    if (ngx_http_xet_store_tags_blocks()) {
        ngx_http_xet_query_tags();

        return next(r, data);
    }

    tags = ngx_http_xet_state(r, sizeof(ngx_http_xet_tags_t),
                              ngx_http_xet_tags_cleanup);
    if (tags == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    tags->request = r;
    tags->next = next;
    tags->data = data;
    tags->wait.handler = ngx_http_xet_tags_come;
    tags->wait.data = tags;

    if (ngx_http_xet_query_tags_wait(&tags->wait) != NGX_AGAIN) {
        return next(r, data);
    }

    tags->reading = r->read_event_handler;

    r->main->count++;
    r->read_event_handler = ngx_http_block_reading;

    return NGX_DONE;
}


static void
ngx_http_xet_tags_come(void *data)
{
    ngx_http_xet_tags_t *tags = data;

    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = tags->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    /* the body of the request may already be partly read */

    r->read_event_handler = tags->reading;

    ngx_http_finalize_request(r, tags->next(r, tags->data));

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_xet_tags_cleanup(void *data)
{
    ngx_http_xet_tags_t *tags = data;

    ngx_http_xet_query_tags_leave(&tags->wait);
}
