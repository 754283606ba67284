
/*
 * POST shards: registers files.
 *
 *     handler -> feed (thread, for each piece of the body: structure; the
 *     file section goes to a temporary file) -> body_done -> the register
 *     service (verification, commit) -> registered -> 200
 *
 * The xorb section is only walked: what a client says about xorbs is never
 * used, the store knows them.
 *
 * POST v2/shards is answered 404 so that clients fall back, after the body
 * was read: a client that is still sending would take the end of the
 * connection for a network error and try again.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_body_filter.h"
#include "ngx_http_xet_output.h"
#include "ngx_http_xet_register.h"
#include "ngx_http_xet_store.h"


typedef struct {
    xet_shard_parser_t      parser;
    ngx_http_xet_file_t    *spool;
} ngx_http_xet_shard_t;


static xet_status_t ngx_http_xet_shard_feed(void *data, u_char *buf,
    size_t len, ngx_uint_t last, ngx_log_t *log);
static void ngx_http_xet_shard_body_done(ngx_http_request_t *r, void *data,
    xet_status_t status);
static void ngx_http_xet_shard_registered(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new);
static xet_status_t ngx_http_xet_shard_drop(void *data, u_char *buf,
    size_t len, ngx_uint_t last, ngx_log_t *log);
static void ngx_http_xet_shard_v2_done(ngx_http_request_t *r, void *data,
    xet_status_t status);


ngx_int_t
ngx_http_xet_shard_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    ngx_http_xet_shard_t  *shard;

    shard = ngx_palloc(r->pool, sizeof(ngx_http_xet_shard_t));
    if (shard == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    xet_shard_parser_init(&shard->parser, NULL, NULL);

    shard->spool = ngx_http_xet_store_file(r);
    if (shard->spool == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_body_read(r, ngx_http_xet_shard_feed,
                                  ngx_http_xet_shard_body_done, shard);
}


static xet_status_t
ngx_http_xet_shard_feed(void *data, u_char *buf, size_t len, ngx_uint_t last,
    ngx_log_t *log)
{
    ngx_http_xet_shard_t *shard = data;

    uint64_t             before, end;
    xet_status_t         rc;
    xet_shard_parser_t  *p;

    p = &shard->parser;
    before = (uint64_t) shard->spool->size;

    /* the spool stops where the file section does */

    end = p->files_end;

    rc = xet_shard_parser_feed(p, buf, len);

    if (rc != XET_OK && rc != XET_DONE) {
        return rc;
    }

    if (end == 0) {
        end = before + len;

        if (p->files_end) {
            end = ngx_min(end, p->files_end);
        }

        rc = ngx_http_xet_store_write_job(shard->spool, buf, end - before,
                                          log);
        if (rc != XET_OK) {
            return rc;
        }
    }

    return last ? xet_shard_parser_finish(p) : XET_OK;
}


static void
ngx_http_xet_shard_body_done(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_shard_t *shard = data;

    if (status != XET_OK) {
        ngx_http_finalize_request(r, ngx_http_xet_error_status(r, status));
        return;
    }

    ngx_http_xet_register(r, shard->spool, shard->parser.files_end,
                          ngx_http_xet_shard_registered);
}


static void
ngx_http_xet_shard_registered(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new)
{
    if (rc == NGX_DECLINED) {
        rc = ngx_http_xet_error_status(r, status);

    } else if (rc != NGX_OK) {
        rc = ngx_http_xet_error_query(r, rc, NULL, NULL);

    } else {
        rc = ngx_http_xet_send_literal(r, NGX_HTTP_OK, "application/json",
                                       new ? "{\"result\":1}"
                                           : "{\"result\":0}");
    }

    ngx_http_finalize_request(r, rc);
}


ngx_int_t
ngx_http_xet_shard_v2_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    return ngx_http_xet_body_read(r, ngx_http_xet_shard_drop,
                                  ngx_http_xet_shard_v2_done, NULL);
}


static xet_status_t
ngx_http_xet_shard_drop(void *data, u_char *buf, size_t len, ngx_uint_t last,
    ngx_log_t *log)
{
    return XET_OK;
}


static void
ngx_http_xet_shard_v2_done(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_finalize_request(r,
        ngx_http_xet_error(r, NGX_HTTP_NOT_FOUND, "no_route",
                           "use v1/shards"));
}
