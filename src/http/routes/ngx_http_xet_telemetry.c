
/*
 * POST telemetry: reports of clients, kept where that costs nobody anything.
 *
 *     handler -> feed (thread: collects the report, at the end parses it)
 *     -> body_done -> 200 at once; the row is written later, or dropped
 *
 * A client waits for the answer at the end of its transfer, so the answer
 * waits for nothing.  The state is the thread's while a job runs.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_upload.h"


typedef struct {
    u_char           *text;            /* malloc()ed, grows with the body */
    size_t            len;
    size_t            size;
    xet_telemetry_t   report;
    unsigned          parsed:1;
} ngx_http_xet_telemetry_t;


static void ngx_http_xet_telemetry_cleanup(void *data);
static xet_status_t ngx_http_xet_telemetry_feed(void *data, u_char *buf,
    size_t len, ngx_uint_t last, ngx_log_t *log);
static void ngx_http_xet_telemetry_body_done(ngx_http_request_t *r,
    void *data, xet_status_t status);


ngx_int_t
ngx_http_xet_telemetry_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    ngx_int_t                  rc;
    ngx_http_xet_loc_conf_t   *xlcf;
    ngx_http_xet_telemetry_t  *t;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (!xlcf->telemetry) {
        rc = ngx_http_discard_request_body(r);

        if (rc != NGX_OK) {
            return rc;
        }

        return ngx_http_xet_send_literal(r, "{}");
    }

    t = ngx_http_xet_state(r, sizeof(ngx_http_xet_telemetry_t),
                           ngx_http_xet_telemetry_cleanup);
    if (t == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_body_read(r, ngx_http_xet_telemetry_feed, NULL,
                                  ngx_http_xet_telemetry_body_done, t);
}


static void
ngx_http_xet_telemetry_cleanup(void *data)
{
    ngx_http_xet_telemetry_t *t = data;

    if (t->parsed) {
        xet_telemetry_free(&t->report);
    }

    if (t->text) {
        ngx_free(t->text);
    }
}


static xet_status_t
ngx_http_xet_telemetry_feed(void *data, u_char *buf, size_t len,
    ngx_uint_t last, ngx_log_t *log)
{
    ngx_http_xet_telemetry_t *t = data;

    size_t         size;
    u_char        *p;
    xet_status_t   rc;

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

    if (t->len == 0) {
        return XET_BODY_SYNTAX;
    }

    rc = xet_telemetry_parse(&t->report, t->text, t->len);

    t->parsed = (rc == XET_OK);

    return rc;
}


static void
ngx_http_xet_telemetry_body_done(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_telemetry_t *t = data;

    if (status != XET_OK) {
        ngx_http_finalize_request(r, ngx_http_xet_error_status(r, status));
        return;
    }

    ngx_http_xet_query_telemetry_put(&t->report);

    ngx_http_finalize_request(r, ngx_http_xet_send_literal(r, "{}"));
}
