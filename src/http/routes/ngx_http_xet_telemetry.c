
/*
 * POST telemetry: accepts reports of clients.  A report is checked and counted
 * in the metrics of the route, but not stored.
 *
 *     handler -> feed (thread: collects the report, checks it at the end)
 *     -> body_done -> 200, or an error
 *
 * A client waits for the response at the end of its transfer, so the response
 * must not wait for anything else.  The state belongs to the thread while a
 * job runs.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_upload.h"


typedef struct {
    u_char  *text;                     /* malloc()ed; grows */
    size_t   len;
    size_t   size;
} ngx_http_xet_telemetry_t;


static void ngx_http_xet_telemetry_cleanup(void *data);
static xet_status_t ngx_http_xet_telemetry_feed(void *data, u_char *buf,
    size_t len, ngx_uint_t last, ngx_log_t *log);
static void ngx_http_xet_telemetry_body_done(ngx_http_request_t *r,
    void *data, xet_status_t status);


ngx_int_t
ngx_http_xet_telemetry_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    ngx_http_xet_telemetry_t  *t;

    t = ngx_http_xet_state(r, sizeof(ngx_http_xet_telemetry_t),
                           ngx_http_xet_telemetry_cleanup);
    if (t == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_body_read(r, &(ngx_http_xet_body_sink_t) {
                                      .feed = ngx_http_xet_telemetry_feed,
                                      .done = ngx_http_xet_telemetry_body_done,
                                      .data = t });
}


static void
ngx_http_xet_telemetry_cleanup(void *data)
{
    ngx_http_xet_telemetry_t *t = data;

    if (t->text) {
        ngx_free(t->text);
    }
}


static xet_status_t
ngx_http_xet_telemetry_feed(void *data, u_char *buf, size_t len,
    ngx_uint_t last, ngx_log_t *log)
{
    ngx_http_xet_telemetry_t *t = data;

    size_t   size;
    u_char  *p;

    if (len > XET_TELEMETRY_MAX - t->len) {
        return XET_BODY_SIZE;
    }

    if (t->size - t->len < len) {
        size = ngx_min(2 * (t->len + len), XET_TELEMETRY_MAX);

        p = realloc(t->text, size);
        if (p == NULL) {
            return XET_NOMEM;
        }

        t->text = p;
        t->size = size;
    }

    if (len) {
        ngx_memcpy(t->text + t->len, buf, len);
        t->len += len;
    }

    if (!last) {
        return XET_OK;
    }

    return t->len ? xet_telemetry_check(t->text, t->len) : XET_BODY_SYNTAX;
}


static void
ngx_http_xet_telemetry_body_done(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_finalize_request(r, (status == XET_OK)
                                 ? ngx_http_xet_send_literal(r, "{}")
                                 : ngx_http_xet_error_status(r, status));
}
