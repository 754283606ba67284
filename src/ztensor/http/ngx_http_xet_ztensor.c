
/*
 * Opens, checks and walks zTensor files for requests.
 *
 *     open      the reader finds the file; PostgreSQL may have a check result
 *     queried   a check result is restored; without one, the file is checked
 *     check     the core names the range that it needs next, and the reader's
 *               jobs feed this range to it, until there is a result.  The
 *               result is sent to PostgreSQL, without waiting for the reply
 *     walk      reads a part of the manifest in the same way, for the caller's
 *               handler of objects
 *
 * CBOR is parsed in the jobs that decode bytes; the event loop uses only
 * results.  During a read, the record of the file and the walk belong to the
 * thread.  A cleanup of the request's pool destroys both.
 *
 * A result from PostgreSQL is compared with the size of the file and the
 * limits before it is used (xet_zt_cache.c).  If the result passes but
 * contradicts the manifest, the request fails with 500.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_ztensor.h"


static void ngx_http_xet_ztensor_cleanup(void *data);
static void ngx_http_xet_ztensor_opened(ngx_http_request_t *r, void *data,
    xet_status_t status);
static xet_status_t ngx_http_xet_ztensor_look_up(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z);
static void ngx_http_xet_ztensor_queried(ngx_http_request_t *r, ngx_int_t rc);
static xet_status_t ngx_http_xet_ztensor_restore(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z);
static xet_status_t ngx_http_xet_ztensor_check(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z);
static xet_status_t ngx_http_xet_ztensor_check_next(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z);
static xet_status_t ngx_http_xet_ztensor_check_feed(void *data,
    const u_char *p, size_t len);
static void ngx_http_xet_ztensor_checked(ngx_http_request_t *r, void *data,
    xet_status_t status);
static void ngx_http_xet_ztensor_keep(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z, xet_status_t verdict);
static xet_status_t ngx_http_xet_ztensor_walk_feed(void *data,
    const u_char *p, size_t len);
static void ngx_http_xet_ztensor_walked(ngx_http_request_t *r, void *data,
    xet_status_t status);
static xet_status_t ngx_http_xet_ztensor_piece_job(void *data,
    const ngx_http_xet_piece_t *piece, ngx_log_t *log);
static void ngx_http_xet_ztensor_piece(ngx_http_request_t *r, void *data,
    ngx_http_xet_piece_t *piece, xet_status_t status);


xet_status_t
ngx_http_xet_ztensor_create(ngx_http_request_t *r, unsigned wanted,
    ngx_http_xet_ztensor_t **result, void *data)
{
    u_char                  *room;
    xet_status_t             status;
    ngx_http_xet_ctx_t      *ctx;
    ngx_http_xet_ztensor_t  *z;

    z = ngx_http_xet_state(r, sizeof(ngx_http_xet_ztensor_t),
                           ngx_http_xet_ztensor_cleanup);
    room = ngx_pnalloc(r->pool, r->args.len + 1);

    if (z == NULL || room == NULL) {
        return XET_NOMEM;
    }

    status = xet_zt_query_parse(&z->query, wanted, r->args.data, r->args.len,
                                room);
    if (status != XET_OK) {
        return status;
    }

    z->data = data;
    z->conf = ngx_http_get_module_loc_conf(r, ngx_http_xet_ztensor_module);
    z->rules = xet_zt_rules(&z->conf->limits);

    z->reader = ngx_http_xet_reader_create(r, z);
    if (z->reader == NULL) {
        return XET_NOMEM;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    ctx->ztensor = z;

    z->hash = ctx->hash;

    z->select.name = z->query.name;
    z->select.prefix = z->query.prefix;
    z->select.format = z->query.format;

    if (z->query.has_i) {
        z->select.first = z->query.i;
    }

    /* UINT64_MAX + 1 would be 0; UINT64_MAX is already past any object */

    if (z->query.has_after) {
        z->select.first = z->query.after + (z->query.after != UINT64_MAX);
    }

    *result = z;

    return XET_OK;
}


static void
ngx_http_xet_ztensor_cleanup(void *data)
{
    ngx_http_xet_ztensor_t *z = data;

    xet_zt_walk_destroy(z->walk);
    xet_zt_destroy(z->zt);
}


ngx_int_t
ngx_http_xet_ztensor_open(ngx_http_request_t *r, ngx_http_xet_ztensor_t *z,
    ngx_uint_t attributes, ngx_http_xet_ztensor_pt handler)
{
    xet_status_t  status;

    z->attributes = attributes;
    z->handler = handler;

    status = ngx_http_xet_reader_open(r, z->reader, &z->hash,
                                      ngx_http_xet_ztensor_opened);

    /* an empty file is opened without a query, and has no cached result */

    if (status == XET_OK) {
        status = ngx_http_xet_ztensor_check(r, z);
    }

    return (status == XET_AGAIN) ? ngx_http_xet_query_wait(r, NGX_AGAIN)
                                 : ngx_http_xet_ztensor_error(r, z, status);
}


static void
ngx_http_xet_ztensor_opened(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_ztensor_t *z = data;

    if (status == XET_OK) {
        status = ngx_http_xet_ztensor_look_up(r, z);
    }

    if (status != XET_AGAIN) {
        z->handler(r, z->data, status);
    }
}


static xet_status_t
ngx_http_xet_ztensor_look_up(ngx_http_request_t *r, ngx_http_xet_ztensor_t *z)
{
    ngx_int_t  rc;

    rc = ngx_http_xet_query(r, zt_get, ngx_http_xet_ztensor_queried,
                            .file = &z->hash, .rules = z->rules,
                            .with_attributes = z->attributes);

    return ngx_http_xet_query_status(rc, XET_ZT_STALE);
}


static void
ngx_http_xet_ztensor_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    xet_status_t             status;
    ngx_http_xet_ztensor_t  *z;

    z = ngx_http_xet_ctx_of(r)->ztensor;

    status = (rc == NGX_OK) ? ngx_http_xet_ztensor_restore(r, z)
                            : ngx_http_xet_query_status(rc, XET_ZT_STALE);

    ngx_http_xet_query_release(r);

    if (status == XET_ZT_STALE) {
        status = ngx_http_xet_ztensor_check(r, z);
    }

    if (status != XET_AGAIN) {
        z->handler(r, z->data, status);
    }
}


static xet_status_t
ngx_http_xet_ztensor_restore(ngx_http_request_t *r, ngx_http_xet_ztensor_t *z)
{
    xet_status_t               status;
    ngx_http_xet_zt_get_row_t  row;

    (void) ngx_http_xet_row(r, zt_get, 0, &row);

    status = xet_zt_restore(&z->zt, ngx_http_xet_reader_size(z->reader),
                            &z->conf->limits, row.verdict.data, row.verdict.len,
                            row.attributes.data, row.attributes.len);

    if (status == XET_ZT_STALE) {
        ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                      "xet: a cached check result of a zTensor file is "
                      "damaged; checking the file again");

        xet_zt_destroy(z->zt);
        z->zt = NULL;
    }

    return status;
}


static xet_status_t
ngx_http_xet_ztensor_check(ngx_http_request_t *r, ngx_http_xet_ztensor_t *z)
{
    z->zt = xet_zt_create(ngx_http_xet_reader_size(z->reader),
                          &z->conf->limits);

    return (z->zt == NULL) ? XET_NOMEM : ngx_http_xet_ztensor_check_next(r, z);
}


static xet_status_t
ngx_http_xet_ztensor_check_next(ngx_http_request_t *r,
    ngx_http_xet_ztensor_t *z)
{
    xet_range_t   range;
    xet_status_t  status;

    status = xet_zt_need(z->zt, &range);

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet ztensor check: \"%s\"", xet_status_code(status));

    if (status == XET_AGAIN) {
        return ngx_http_xet_ztensor_read(r, z, &range,
                                         ngx_http_xet_ztensor_check_feed,
                                         ngx_http_xet_ztensor_checked, z);
    }

    if (xet_status_http(status) < NGX_HTTP_INTERNAL_SERVER_ERROR) {
        ngx_http_xet_ztensor_keep(r, z, status);
    }

    return status;
}


static xet_status_t
ngx_http_xet_ztensor_check_feed(void *data, const u_char *p, size_t len)
{
    ngx_http_xet_ztensor_t *z = data;

    return (xet_zt_feed(z->zt, p, len) == XET_AGAIN) ? XET_OK : XET_DONE;
}


/* Called when the check has read a range, or as much of it as it needs. */

static void
ngx_http_xet_ztensor_checked(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_ztensor_t *z = data;

    if (status == XET_OK || status == XET_DONE) {
        status = ngx_http_xet_ztensor_check_next(r, z);
    }

    if (status != XET_AGAIN) {
        z->handler(r, z->data, status);
    }
}


static void
ngx_http_xet_ztensor_keep(ngx_http_request_t *r, ngx_http_xet_ztensor_t *z,
    xet_status_t verdict)
{
    xet_buf_t    b;
    ngx_pool_t  *pool;

    if (xet_hash_is_zero(&z->hash)) {
        return;
    }

    pool = ngx_create_pool(4096, r->connection->log);
    if (pool == NULL) {
        return;
    }

    xet_buf_init(&b, ngx_http_xet_alloc, pool, 0);

    if (xet_zt_save(z->zt, verdict, &b) == XET_OK) {
        ngx_http_xet_query_zt_put(r, &z->hash, z->rules, &b,
                                  xet_zt_attributes(z->zt));
    }

    ngx_destroy_pool(pool);
}


xet_status_t
ngx_http_xet_ztensor_walk(ngx_http_request_t *r, ngx_http_xet_ztensor_t *z,
    xet_zt_object_pt object, ngx_http_xet_ztensor_pt handler)
{
    xet_range_t   range;
    xet_status_t  status;

    z->handler = handler;

    xet_zt_walk_destroy(z->walk);

    z->walk = xet_zt_walk_create(z->zt, &z->select, object, z->data);
    if (z->walk == NULL) {
        return XET_NOMEM;
    }

    status = xet_zt_walk_need(z->walk, &range);

    if (status != XET_AGAIN) {
        return status;
    }

    return ngx_http_xet_ztensor_read(r, z, &range,
                                     ngx_http_xet_ztensor_walk_feed,
                                     ngx_http_xet_ztensor_walked, z);
}


static xet_status_t
ngx_http_xet_ztensor_walk_feed(void *data, const u_char *p, size_t len)
{
    ngx_http_xet_ztensor_t *z = data;

    return (xet_zt_walk_feed(z->walk, p, len) == XET_AGAIN) ? XET_OK
                                                            : XET_DONE;
}


static void
ngx_http_xet_ztensor_walked(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_ztensor_t *z = data;

    xet_range_t  range;

    if (status == XET_OK || status == XET_DONE) {
        status = xet_zt_walk_need(z->walk, &range);

        if (status != XET_OK && status != XET_NOMEM) {
            ngx_log_error(NGX_LOG_ALERT, r->connection->log, 0,
                          "xet: a cached check result does not belong to its "
                          "zTensor file: %s", xet_status_text(status));
            status = XET_ZT_STALE;
        }
    }

    xet_zt_walk_destroy(z->walk);
    z->walk = NULL;

    z->handler(r, z->data, status);
}


xet_status_t
ngx_http_xet_ztensor_read(ngx_http_request_t *r, ngx_http_xet_ztensor_t *z,
    const xet_range_t *range, ngx_http_xet_ztensor_consume_pt consume,
    ngx_http_xet_ztensor_pt handler, void *data)
{
    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "xet ztensor read: %uL-%uL", range->start, range->end);

    z->consume = consume;
    z->consumer = data;
    z->read = handler;

    ngx_http_xet_reader_range(z->reader, range->start, range->end,
                              ngx_http_xet_ztensor_piece,
                              ngx_http_xet_ztensor_piece_job);

    return ngx_http_xet_reader_next(r, z->reader);
}


xet_status_t
ngx_http_xet_ztensor_next(ngx_http_request_t *r, ngx_http_xet_ztensor_t *z)
{
    return ngx_http_xet_reader_next(r, z->reader);
}


static xet_status_t
ngx_http_xet_ztensor_piece_job(void *data, const ngx_http_xet_piece_t *piece,
    ngx_log_t *log)
{
    ngx_http_xet_ztensor_t *z = data;

    return z->consume(z->consumer, piece->pos, piece->last - piece->pos);
}


static void
ngx_http_xet_ztensor_piece(ngx_http_request_t *r, void *data,
    ngx_http_xet_piece_t *piece, xet_status_t status)
{
    ngx_http_xet_ztensor_t *z = data;

    z->read(r, z->consumer, status);
}


ngx_int_t
ngx_http_xet_ztensor_error(ngx_http_request_t *r, ngx_http_xet_ztensor_t *z,
    xet_status_t status)
{
    xet_buf_t   b;
    xet_json_t  j;

    if (z == NULL || z->zt == NULL || status < XET_ZT_NOT_ZTENSOR
        || status > XET_ZT_INDEX_DTYPE)
    {
        return ngx_http_xet_error_status(r, status);
    }

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 256);
    xet_json_init(&j, &b);

    xet_zt_error_json(&j, z->zt, status);

    return ngx_http_xet_error_more(r, .core = status, .body = &b);
}
