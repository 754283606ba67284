
/*
 * Upload grants: with POST xorb-grants/{prefix}/{xorb} a client asks whether
 * and how it should upload a xorb; POST
 * xorb-commits/{prefix}/{xorb}/grant/{id} follows when the xorb is in the
 * bucket.
 *
 *     grant    handler -> feed: reads the request -> body_done: looks up the
 *              xorb as HEAD does.  If the client may refer to the xorb without
 *              an upload: 200.  Else, with "xet_grants on": 201 with a URL of
 *              the object store; otherwise 404, after which the client uploads
 *              as usual.  Nothing is revealed about xorbs of other users
 *     commit   handler -> job, repeatedly: reads and verifies the object, and
 *              makes it a copy -> ngx_http_xet_xorb_commit(): the row in
 *              PostgreSQL -> 200
 *
 * The id of a grant is a random number, which is a part of the staged object's
 * name, and a MAC of the number, the xorb and the caller.  So no caller can
 * commit an object of another caller, and the server stores no state for a
 * grant.
 *
 * The state of a commit belongs to the thread while a job runs, otherwise to
 * the event loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_store.h"
#include "ngx_http_xet_upload.h"

#include <openssl/hmac.h>


#define NGX_HTTP_XET_GRANT_MAC    32           /* hex digits */
#define NGX_HTTP_XET_GRANT_ID                                                 \
    (NGX_HTTP_XET_STAGE_ID + NGX_HTTP_XET_GRANT_MAC)
#define NGX_HTTP_XET_GRANT_LABEL  "xet grant 1"

/* The maximum length of a footer, which is not stored. */
#define NGX_HTTP_XET_GRANT_FOOTER  (XET_XORB_CHUNKS_MAX * 40 + 1024)


typedef struct {
    u_char                   text[XET_GRANT_MAX];
    size_t                   len;
    xet_grant_t              grant;
    ngx_http_xet_ctx_t      *ctx;
} ngx_http_xet_grant_t;


typedef struct {
    ngx_http_xet_stage_t     stage;
    ngx_http_xet_array_t     eligible;
    const xet_suite_t       *suite;
    xet_status_t             status;           /* result of the job */
} ngx_http_xet_commit_t;


static xet_status_t ngx_http_xet_grant_feed(void *data, u_char *buf,
    size_t len, ngx_uint_t last, ngx_log_t *log);
static void ngx_http_xet_grant_body_done(ngx_http_request_t *r, void *data,
    xet_status_t status);
static ngx_int_t ngx_http_xet_grant_give(ngx_http_request_t *r, void *data);
static ngx_int_t ngx_http_xet_grant_send(ngx_http_request_t *r,
    const u_char *id, const ngx_http_xet_stage_put_t *put);
static ngx_int_t ngx_http_xet_grant_mac(ngx_http_request_t *r,
    const xet_hash_t *xorb, const u_char *id, u_char *mac);
static ngx_int_t ngx_http_xet_commit_go(ngx_http_request_t *r, void *data);
static void ngx_http_xet_commit_cleanup(void *data);
static void ngx_http_xet_commit_job(void *data, ngx_log_t *log);
static void ngx_http_xet_commit_done(ngx_http_request_t *r, void *data);
static void ngx_http_xet_commit_kept(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t inserted);


ngx_int_t
ngx_http_xet_grant_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    ngx_int_t                 rc;
    ngx_http_xet_grant_t     *g;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (!xlcf->grants) {

        /* the body is needed only for a grant, and grants are off */

        rc = ngx_http_xet_drop_body(r);

        if (rc != NGX_OK) {
            return rc;
        }

        rc = ngx_http_xet_xorb_ask(r, ctx, NULL, NULL);

        return ngx_http_xet_query_wait(r, rc);
    }

    g = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_grant_t));
    if (g == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    g->ctx = ctx;

    return ngx_http_xet_body_read(r, &(ngx_http_xet_body_sink_t) {
                                      .feed = ngx_http_xet_grant_feed,
                                      .done = ngx_http_xet_grant_body_done,
                                      .data = g });
}


static xet_status_t
ngx_http_xet_grant_feed(void *data, u_char *buf, size_t len, ngx_uint_t last,
    ngx_log_t *log)
{
    ngx_http_xet_grant_t *g = data;

    xet_status_t  rc;

    if (len > XET_GRANT_MAX - g->len) {
        return XET_BODY_SIZE;
    }

    if (len) {
        ngx_memcpy(g->text + g->len, buf, len);
        g->len += len;
    }

    if (!last) {
        return XET_OK;
    }

    rc = xet_grant_parse(&g->grant, g->text, g->len);

    if (rc == XET_DONE) {

        /* an unsupported checksum can't be signed, so issue no grant */

        g->grant.length = 0;

        return XET_OK;
    }

    return rc;
}


static void
ngx_http_xet_grant_body_done(ngx_http_request_t *r, void *data,
    xet_status_t status)
{
    ngx_http_xet_grant_t *g = data;

    ngx_int_t                 rc;
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (status == XET_OK
        && g->grant.length > xlcf->xorb_max + NGX_HTTP_XET_GRANT_FOOTER)
    {
        status = XET_XORB_SIZE;
    }

    if (status != XET_OK) {
        ngx_http_finalize_request(r, ngx_http_xet_error_status(r, status));
        return;
    }

    rc = ngx_http_xet_xorb_ask(r, g->ctx,
                               g->grant.length ? ngx_http_xet_grant_give
                                               : NULL, g);
    rc = ngx_http_xet_query_asked(r, rc);

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


/*
 * Responds with a grant, because the xorb does not exist, or the client must
 * not learn that it exists.
 */

static ngx_int_t
ngx_http_xet_grant_give(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_grant_t *g = data;

    u_char                     id[NGX_HTTP_XET_GRANT_ID + 1];
    ngx_http_xet_loc_conf_t   *xlcf;
    ngx_http_xet_main_conf_t  *xmcf;
    ngx_http_xet_stage_put_t   put;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    if (ngx_http_xet_stage_draw(id) != XET_OK
        || ngx_http_xet_grant_mac(r, &g->ctx->hash, id,
                                  id + NGX_HTTP_XET_STAGE_ID)
           != NGX_OK
        || ngx_http_xet_stage_put(xmcf->store, &g->ctx->hash, id,
                                  g->grant.length, g->grant.crc64,
                                  xlcf->url_ttl, &put)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_xet_grant_send(r, id, &put);
}


static ngx_int_t
ngx_http_xet_grant_send(ngx_http_request_t *r, const u_char *id,
    const ngx_http_xet_stage_put_t *put)
{
    xet_buf_t   b;
    xet_json_t  j;

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, 4096);
    xet_json_init(&j, &b);

    xet_json_object_begin(&j);
    xet_json_put_string(&j, "id", id, NGX_HTTP_XET_GRANT_ID);
    xet_json_put_cstring(&j, "method", "PUT");
    xet_json_put_cstring(&j, "url", put->url);
    xet_json_key(&j, "headers");
    xet_json_object_begin(&j);
    xet_json_put_cstring(&j, "if-none-match", "*");
    xet_json_put_cstring(&j, "x-amz-checksum-crc64nvme", put->checksum);
    xet_json_object_end(&j);
    xet_json_object_end(&j);

    ngx_http_xet_audit(r)->result = "granted";
    ngx_http_xet_count_at(GRANTS, NGX_HTTP_XET_GRANT_GIVEN, 1);

    return ngx_http_xet_send(r, NGX_HTTP_CREATED, "application/json", &b);
}


/*
 * Computes the MAC of a grant, NGX_HTTP_XET_GRANT_MAC hex digits and a zero.
 */

static ngx_int_t
ngx_http_xet_grant_mac(ngx_http_request_t *r, const xet_hash_t *xorb,
    const u_char *id, u_char *mac)
{
    u_char                    *text, *p, full[EVP_MAX_MD_SIZE];
    unsigned int               len;
    ngx_str_t                  subject, repo;
    ngx_http_xet_auth_t       *auth;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    auth = ngx_http_xet_auth(r);
    if (auth == NULL) {
        return NGX_ERROR;
    }

    ngx_str_set(&subject, "");
    ngx_str_set(&repo, "");

    if (auth->status == XET_OK) {
        subject = auth->subject;
        repo = auth->repo;
    }

    /*
     * the length of the subject precedes it, and all other fields but the last
     * have a fixed length, so the input of the MAC is unambiguous
     */

    text = ngx_pnalloc(r->pool, sizeof(NGX_HTTP_XET_GRANT_LABEL)
                                + XET_HASH_LEN + NGX_HTTP_XET_STAGE_ID + 8
                                + subject.len + repo.len);
    if (text == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(text, NGX_HTTP_XET_GRANT_LABEL,
                   sizeof(NGX_HTTP_XET_GRANT_LABEL));
    p = ngx_cpymem(p, xorb->bytes, XET_HASH_LEN);
    p = ngx_cpymem(p, id, NGX_HTTP_XET_STAGE_ID);
    xet_put_u64(p, subject.len);
    p = ngx_cpymem(p + 8, subject.data, subject.len);
    p = ngx_cpymem(p, repo.data, repo.len);

    if (HMAC(EVP_sha256(), xmcf->grant_key, XET_KEY_LEN, text, p - text, full,
             &len)
        == NULL)
    {
        return NGX_ERROR;
    }

    *ngx_hex_dump(mac, full, NGX_HTTP_XET_GRANT_MAC / 2) = '\0';

    return NGX_OK;
}


ngx_int_t
ngx_http_xet_grant_commit_handler(ngx_http_request_t *r,
    ngx_http_xet_ctx_t *ctx)
{
    u_char                     mac[NGX_HTTP_XET_GRANT_MAC + 1];
    ngx_int_t                  rc;
    xet_status_t               status;
    ngx_http_xet_temp_t       *file;
    ngx_http_xet_commit_t     *c;
    ngx_http_xet_loc_conf_t   *xlcf;
    ngx_http_xet_main_conf_t  *xmcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    rc = ngx_http_xet_drop_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (!xlcf->grants || ctx->id.len != NGX_HTTP_XET_GRANT_ID) {
        return ngx_http_xet_error_status(r, XET_NO_GRANT);
    }

    if (ngx_http_xet_grant_mac(r, &ctx->hash, ctx->id.data, mac) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (CRYPTO_memcmp(mac, ctx->id.data + NGX_HTTP_XET_STAGE_ID,
                      NGX_HTTP_XET_GRANT_MAC)
        != 0)
    {
        return ngx_http_xet_error_status(r, XET_NO_GRANT);
    }

    c = ngx_http_xet_state(r, sizeof(ngx_http_xet_commit_t),
                           ngx_http_xet_commit_cleanup);
    if (c == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    c->suite = xmcf->suite;

    file = ngx_http_xet_store_xorb(r);
    if (file == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    status = ngx_http_xet_stage_begin(&c->stage, file, c->suite, &ctx->hash,
                                      ctx->id.data, xlcf->xorb_max,
                                      NGX_HTTP_XET_GRANT_FOOTER);

    if (status != XET_OK) {
        return ngx_http_xet_error_status(r, status);
    }

    return ngx_http_xet_copy_ids_then(r, ngx_http_xet_commit_go, c);
}


static ngx_int_t
ngx_http_xet_commit_go(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_commit_t *c = data;

    if (ngx_http_xet_task_post(r, ngx_http_xet_commit_job,
                               ngx_http_xet_commit_done, c)
        != NGX_OK)
    {
        return ngx_http_xet_error_status(r, XET_OVERLOADED);
    }

    r->main->count++;

    return NGX_DONE;
}


static void
ngx_http_xet_commit_cleanup(void *data)
{
    ngx_http_xet_commit_t *c = data;

    ngx_http_xet_stage_destroy(&c->stage);
    ngx_http_xet_array_destroy(&c->eligible);
}


static void
ngx_http_xet_commit_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_commit_t *c = data;

    c->status = ngx_http_xet_stage_job(&c->stage, log);

    if (c->status == XET_OK) {
        ngx_http_xet_query_eligible(&c->eligible, c->suite,
                                    xet_xorb_verifier_info(c->stage.verifier));
    }
}


static void
ngx_http_xet_commit_done(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_commit_t *c = data;

    /* charge the upload to the caller's limit, even if it is invalid */

    ngx_http_xet_ctx_of(r)->worth = c->stage.size;

    if (c->status == XET_AGAIN) {

        if (ngx_http_xet_task_post(r, ngx_http_xet_commit_job,
                                   ngx_http_xet_commit_done, c)
            == NGX_OK)
        {
            return;
        }

        c->status = XET_OVERLOADED;
    }

    if (c->status != XET_OK) {

        /* the object was removed, because it is not the announced xorb */

        if (c->status != XET_NO_GRANT
            && xet_status_http(c->status) / 100 == 4)
        {
            ngx_http_xet_count_at(GRANTS, NGX_HTTP_XET_GRANT_REFUSED, 1);
        }

        ngx_http_finalize_request(r, ngx_http_xet_error_status(r, c->status));
        return;
    }

    ngx_http_xet_xorb_commit(r, c->stage.file,
                      xet_xorb_verifier_info(c->stage.verifier), &c->eligible,
                      ngx_http_xet_commit_kept);
}


static void
ngx_http_xet_commit_kept(ngx_http_request_t *r, ngx_int_t rc,
    xet_status_t status, ngx_uint_t inserted)
{
    if (rc == NGX_OK) {
        ngx_http_xet_count_at(GRANTS, NGX_HTTP_XET_GRANT_COMMITTED, 1);
    }

    ngx_http_xet_xorb_kept(r, rc, status, inserted);
}
