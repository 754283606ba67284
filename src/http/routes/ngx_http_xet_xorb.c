
/*
 * POST, HEAD and GET xorbs/{prefix}/{xorb}.
 *
 *     POST   handler -> feed (thread, for each piece of the body: verifies and
 *            writes) -> feed with the last piece: result of the verification,
 *            fdatasync, final file name, fsync of the folder -> body_done ->
 *            ngx_http_xet_xorb_commit(): the row in PostgreSQL -> 200
 *     HEAD   handler -> the row -> head_job: checks that the copy exists ->
 *            advertised, once per xorb and day -> 200
 *     ask    like HEAD, but 200 only if the client may refer to the xorb
 *            without an upload (ngx_http_xet_xorb_ask())
 *     GET    handler -> the row -> redirect to the data location
 *
 * Bytes are durable before the row is written, and the row is committed before
 * the response is sent.
 *
 * The state of an upload belongs to the thread while a job runs, otherwise to
 * the event loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_store.h"
#include "ngx_http_xet_upload.h"


typedef struct {
    ngx_http_xet_xorb_in_t   in;
    ngx_http_xet_temp_t     *file;
    ngx_http_xet_array_t     eligible;
} ngx_http_xet_xorb_t;


/* The state of a request that checks whether a xorb exists. */

struct ngx_http_xet_xorb_head_s {
    xet_hash_t              hash;
    ngx_http_xet_store_t   *store;
    ngx_http_xet_copy_t     copy;
    ngx_http_xet_damage_t   damage;
    ngx_http_xet_array_t    xorbs;             /* xorbs to advertise */
    xet_status_t            status;            /* result of the job */

    ngx_http_xet_xorb_missing_pt  missing;     /* NULL: 404 */
    void                         *data;

    unsigned                grant:1;           /* 1: this is a grant request */

    /* already recorded that a client was told today that the xorb exists */
    unsigned                recorded:1;
};


static ngx_int_t ngx_http_xet_xorb_read(ngx_http_request_t *r, void *data);
static void ngx_http_xet_xorb_cleanup(void *data);
static xet_status_t ngx_http_xet_xorb_feed(void *data, u_char *buf,
    size_t len, ngx_uint_t last, ngx_log_t *log);
static void ngx_http_xet_xorb_body_done(ngx_http_request_t *r, void *data,
    xet_status_t status);
static ngx_http_xet_xorb_head_t *ngx_http_xet_xorb_head_create(
    ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx);
static void ngx_http_xet_xorb_head_cleanup(void *data);
static void ngx_http_xet_xorb_get_queried(ngx_http_request_t *r,
    ngx_int_t rc);
static ngx_int_t ngx_http_xet_xorb_get_known(ngx_http_request_t *r);
static void ngx_http_xet_xorb_head_queried(ngx_http_request_t *r,
    ngx_int_t rc);
static void ngx_http_xet_xorb_answer(ngx_http_request_t *r, ngx_int_t rc,
    ngx_int_t (*rows)(ngx_http_request_t *r));
static ngx_int_t ngx_http_xet_xorb_head_known(ngx_http_request_t *r);
static void ngx_http_xet_xorb_head_job(void *data, ngx_log_t *log);
static void ngx_http_xet_xorb_head_done(ngx_http_request_t *r, void *data);
static ngx_int_t ngx_http_xet_xorb_missing(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_xorb_promise(ngx_http_request_t *r,
    ngx_http_xet_xorb_head_t *x);
static void ngx_http_xet_xorb_promised(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_xorb_head_send(ngx_http_request_t *r);


ngx_int_t
ngx_http_xet_xorb_post_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    ngx_http_xet_xorb_t       *x;
    ngx_http_xet_loc_conf_t   *xlcf;
    ngx_http_xet_main_conf_t  *xmcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    x = ngx_http_xet_state(r, sizeof(ngx_http_xet_xorb_t),
                           ngx_http_xet_xorb_cleanup);
    if (x == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->full_413 = 1;

    x->in.suite = xmcf->suite;
    x->in.hash = ctx->hash;
    x->in.max = xlcf->xorb_max;

    x->file = ngx_http_xet_store_xorb(r);
    if (x->file == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_xet_store_claim(x->file, &x->in.hash);

    return ngx_http_xet_copy_ids_then(r, ngx_http_xet_xorb_read, x);
}


static ngx_int_t
ngx_http_xet_xorb_read(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_xorb_t *x = data;

    return ngx_http_xet_quota_read(r, NGX_HTTP_XET_QUOTA_XORB, &x->in.hash,
                                   &(ngx_http_xet_body_sink_t) {
                                       .feed = ngx_http_xet_xorb_feed,
                                       .done = ngx_http_xet_xorb_body_done,
                                       .data = x });
}


static void
ngx_http_xet_xorb_cleanup(void *data)
{
    ngx_http_xet_xorb_t *x = data;

    xet_xorb_verifier_destroy(x->in.verifier);
    ngx_http_xet_array_destroy(&x->eligible);
}


static xet_status_t
ngx_http_xet_xorb_feed(void *data, u_char *buf, size_t len, ngx_uint_t last,
    ngx_log_t *log)
{
    ngx_http_xet_xorb_t *x = data;

    size_t        stored;
    xet_status_t  rc;

    rc = ngx_http_xet_verify_xorb_job(&x->in, buf, len, last, &stored);

    if (rc == XET_OK) {
        rc = ngx_http_xet_store_write_job(x->file, buf, stored, log);
    }

    if (rc != XET_OK || !last) {
        return rc;
    }

    ngx_http_xet_query_eligible(&x->eligible, x->in.suite,
                                xet_xorb_verifier_info(x->in.verifier));

    return ngx_http_xet_store_commit_job(x->file, &x->in.hash, log);
}


static void
ngx_http_xet_xorb_body_done(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_xorb_t *x = data;

    if (status != XET_OK) {
        ngx_http_finalize_request(r, ngx_http_xet_error_status(r, status));
        return;
    }

    ngx_http_xet_xorb_commit(r, x->file, xet_xorb_verifier_info(x->in.verifier),
                             &x->eligible, ngx_http_xet_xorb_kept);
}


void
ngx_http_xet_xorb_kept(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t new)
{
    if (rc != NGX_OK) {
        rc = ngx_http_xet_upload_error(r, rc, status);

    } else {
        ngx_http_xet_audit(r)->result = new ? "new" : "known";

        rc = ngx_http_xet_send_literal(r, new ? "{\"was_inserted\":true}"
                                              : "{\"was_inserted\":false}");
    }

    ngx_http_finalize_request(r, rc);
}


/*
 * Serves a whole xorb in the same way as parts of it: by a redirect to the data
 * location, with a URL that the server signs.
 */

ngx_int_t
ngx_http_xet_xorb_get_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_xet_repo_t  repo;

    ngx_http_xet_repo(r, &repo);

    if (!repo.any) {

        /* the xorb may have chunks of files in other repos */

        return ngx_http_xet_error(r, NGX_HTTP_FORBIDDEN, "no_whole_xorbs",
                                  "whole xorbs are not served; use "
                                  "reconstructions");
    }

    rc = ngx_http_xet_query(r, xorb_get, ngx_http_xet_xorb_get_queried,
                            .xorb = &ctx->hash);

    return ngx_http_xet_query_wait(r, rc);
}


static void
ngx_http_xet_xorb_get_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_query_answer(r, rc, ngx_http_xet_xorb_get_known,
                              "xorb_not_found", "no such xorb");
}


static ngx_int_t
ngx_http_xet_xorb_get_known(ngx_http_request_t *r)
{
    ngx_str_t                     uri, args;
    ngx_http_xet_ctx_t           *ctx;
    ngx_http_xet_xorb_get_row_t   copy;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    (void) ngx_http_xet_row(r, xorb_get, 0, &copy);

    if (ngx_http_xet_url_internal(r, &ctx->hash, copy.copy_id, &uri, &args)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* the redirected request has its own reference; release this one */

    (void) ngx_http_internal_redirect(r, &uri, &args);

    return NGX_DONE;
}


ngx_int_t
ngx_http_xet_xorb_head_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    ngx_int_t                  rc;
    ngx_http_xet_xorb_head_t  *x;

    x = ngx_http_xet_xorb_head_create(r, ctx);
    if (x == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_xet_query(r, xorb_get, ngx_http_xet_xorb_head_queried,
                            .xorb = &x->hash);

    return ngx_http_xet_query_wait(r, rc);
}


ngx_int_t
ngx_http_xet_xorb_ask(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx,
    ngx_http_xet_xorb_missing_pt missing, void *data)
{
    ngx_http_xet_xorb_head_t  *x;

    x = ngx_http_xet_xorb_head_create(r, ctx);
    if (x == NULL) {
        return NGX_ERROR;
    }

    x->grant = 1;
    x->missing = missing;
    x->data = data;

    return ngx_http_xet_query(r, xorb_grant, ngx_http_xet_xorb_head_queried,
                              .xorb = &x->hash,
                              .proof = ngx_http_xet_proof(r));
}


static ngx_http_xet_xorb_head_t *
ngx_http_xet_xorb_head_create(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    ngx_http_xet_main_conf_t  *xmcf;
    ngx_http_xet_xorb_head_t  *x;

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    x = ngx_http_xet_state(r, sizeof(ngx_http_xet_xorb_head_t),
                           ngx_http_xet_xorb_head_cleanup);
    if (x == NULL) {
        return NULL;
    }

    x->hash = ctx->hash;
    x->store = xmcf->store;

    ctx->route.xorb_head = x;

    return x;
}


static void
ngx_http_xet_xorb_head_cleanup(void *data)
{
    ngx_http_xet_xorb_head_t *x = data;

    ngx_http_xet_array_destroy(&x->xorbs);
    ngx_http_xet_damage_destroy(&x->damage);
}


static void
ngx_http_xet_xorb_head_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_xorb_answer(r, rc, ngx_http_xet_xorb_head_known);
}


static void
ngx_http_xet_xorb_answer(ngx_http_request_t *r, ngx_int_t rc,
    ngx_int_t (*rows)(ngx_http_request_t *r))
{
    if (rc == NGX_DECLINED) {
        ngx_http_xet_query_release(r);
        ngx_http_finalize_request(r, ngx_http_xet_xorb_missing(r));
        return;
    }

    ngx_http_xet_query_answer(r, rc, rows, "xorb_not_found", "no such xorb");
}


static ngx_int_t
ngx_http_xet_xorb_head_known(ngx_http_request_t *r)
{
    ngx_http_xet_xorb_head_t     *x;
    ngx_http_xet_xorb_get_row_t   row;

    x = ngx_http_xet_ctx_of(r)->route.xorb_head;

    /* the rows of xorb_grant have the same columns as those of xorb_get */

    (void) ngx_http_xet_row(r, xorb_get, 0, &row);

    ngx_memzero(&x->copy, sizeof(ngx_http_xet_copy_t));

    x->copy.size = row.stored_size;
    x->copy.copy_id = row.copy_id;
    x->copy.intact = row.intact;
    x->recorded = row.recorded;

    if (!x->copy.intact) {
        return ngx_http_xet_xorb_missing(r);
    }

    if (ngx_http_xet_task_post(r, ngx_http_xet_xorb_head_job,
                               ngx_http_xet_xorb_head_done, x)
        != NGX_OK)
    {
        return ngx_http_xet_error_status(r, XET_OVERLOADED);
    }

    return NGX_AGAIN;
}


static void
ngx_http_xet_xorb_head_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_xorb_head_t *x = data;

    x->status = ngx_http_xet_damage_stat_job(&x->damage, x->store, &x->hash,
                                             x->copy.copy_id, x->copy.size,
                                             log);
}


static void
ngx_http_xet_xorb_head_done(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_xorb_head_t *x = data;

    ngx_int_t  rc;

    ngx_http_xet_query_xorb_damaged_tell(&x->damage);

    if (x->status == XET_STORE_DAMAGED) {
        rc = ngx_http_xet_xorb_missing(r);

    } else if (x->status != XET_OK) {
        rc = ngx_http_xet_error_status(r, x->status);

    } else {
        rc = ngx_http_xet_xorb_promise(r, x);
    }

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


static ngx_int_t
ngx_http_xet_xorb_missing(ngx_http_request_t *r)
{
    ngx_http_xet_xorb_head_t  *x;

    x = ngx_http_xet_ctx_of(r)->route.xorb_head;

    if (x->missing) {
        return x->missing(r, x->data);
    }

    return ngx_http_xet_error(r, NGX_HTTP_NOT_FOUND, "xorb_not_found",
                              "no such xorb");
}


/*
 * Sends 200.  Like a dedup answer, this is a promise: the client will refer to
 * the xorb without uploading it.  Old clients do so after HEAD, too.  So before
 * the 200 is sent, today's date is recorded for the xorb; the garbage collector
 * needs this date.
 */

static ngx_int_t
ngx_http_xet_xorb_promise(ngx_http_request_t *r, ngx_http_xet_xorb_head_t *x)
{
    ngx_int_t  rc;

    if (x->recorded) {
        return ngx_http_xet_xorb_head_send(r);
    }

    ngx_http_xet_array_bytes(&x->xorbs, x->hash.bytes, XET_HASH_LEN);

    rc = ngx_http_xet_query(r, xorb_advertised, ngx_http_xet_xorb_promised,
                            .xorbs = &x->xorbs);

    return ngx_http_xet_query_asked(r, rc);
}


/*
 * Sends 200, after the xorb was recorded as advertised.  If the xorb was
 * collected before that, responds as for a missing xorb.
 */

static void
ngx_http_xet_xorb_promised(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc == NGX_OK && ngx_http_xet_query_number(r) == 0) {
        rc = NGX_DECLINED;
    }

    ngx_http_xet_xorb_answer(r, rc, ngx_http_xet_xorb_head_send);
}


static ngx_int_t
ngx_http_xet_xorb_head_send(ngx_http_request_t *r)
{
    ngx_http_xet_xorb_head_t  *x;

    x = ngx_http_xet_ctx_of(r)->route.xorb_head;

    return x->grant ? ngx_http_xet_send_literal(r, "{}")
                    : ngx_http_xet_send_head(r, (off_t) x->copy.size);
}
