
/*
 * Small request bodies: JSON and forms, collected in memory and parsed in a
 * thread.
 *
 *     read -> feed (thread: collects the pieces, parses after the last one)
 *          -> done
 *
 * If a body is too large, the received bytes are dropped and the response is
 * 413.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_upload.h"


static void ngx_http_xet_hub_body_cleanup(void *data);
static xet_status_t ngx_http_xet_hub_body_feed(void *data, u_char *buf,
    size_t len, ngx_uint_t last, ngx_log_t *log);
static xet_status_t ngx_http_xet_hub_body_copy(ngx_http_xet_hub_body_t *b);
static void ngx_http_xet_hub_body_done(ngx_http_request_t *r, void *data,
    xet_status_t status);


ngx_int_t
ngx_http_xet_hub_read(ngx_http_request_t *r, size_t max,
    xet_status_t (*parse)(void *data, u_char *text, size_t len),
    void (*done)(ngx_http_request_t *r, void *data), void *data)
{
    ngx_http_xet_hub_body_t  *b;

    b = ngx_http_xet_state(r, sizeof(ngx_http_xet_hub_body_t),
                           ngx_http_xet_hub_body_cleanup);
    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b->max = max;
    b->keep = ngx_http_xet_hub_get(r)->keep;
    b->parse = parse;
    b->done = done;
    b->data = data;

    return ngx_http_xet_body_read(r, &(ngx_http_xet_body_sink_t) {
                                      .feed = ngx_http_xet_hub_body_feed,
                                      .done = ngx_http_xet_hub_body_done,
                                      .data = b });
}


static void
ngx_http_xet_hub_body_cleanup(void *data)
{
    ngx_http_xet_hub_body_t *b = data;

    if (b->text) {
        ngx_free(b->text);
        b->text = NULL;
    }
}


static xet_status_t
ngx_http_xet_hub_body_feed(void *data, u_char *buf, size_t len,
    ngx_uint_t last, ngx_log_t *log)
{
    ngx_http_xet_hub_body_t *b = data;

    size_t         size;
    u_char        *p;
    xet_status_t   status;

    if (len > b->max - b->len) {
        return XET_BODY_SIZE;
    }

    if (b->size - b->len < len) {
        size = ngx_min(2 * (b->len + len), b->max);

        p = realloc(b->text, size);
        if (p == NULL) {
            return XET_NOMEM;
        }

        b->text = p;
        b->size = size;
    }

    if (len) {
        ngx_memcpy(b->text + b->len, buf, len);
        b->len += len;
    }

    if (!last) {
        return XET_OK;
    }

    if (b->keep) {
        return ngx_http_xet_hub_body_copy(b);
    }

    status = b->parse(b->data, b->text, b->len);

    /* free the text now: the response may take long, and does not need it */

    ngx_http_xet_hub_body_cleanup(b);

    return status;
}


/* Parses a copy of the text, because the parser of forms decodes in place. */

static xet_status_t
ngx_http_xet_hub_body_copy(ngx_http_xet_hub_body_t *b)
{
    u_char        *copy;
    xet_status_t   status;

    copy = malloc(b->len + 1);
    if (copy == NULL) {
        return XET_NOMEM;
    }

    if (b->len) {
        ngx_memcpy(copy, b->text, b->len);
    }

    status = b->parse(b->data, copy, b->len);

    free(copy);

    return status;
}


static void
ngx_http_xet_hub_body_done(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_hub_body_t *b = data;

    if (status != XET_OK) {
        ngx_http_finalize_request(r, ngx_http_xet_hub_status(r, status));
        return;
    }

    if (b->keep) {
        ngx_http_xet_hub_get(r)->body = b;
    }

    b->done(r, b->data);
}


void
ngx_http_xet_hub_body_free(ngx_http_xet_hub_t *hub)
{
    if (hub->body) {
        ngx_http_xet_hub_body_cleanup(hub->body);
        hub->body = NULL;
    }
}
