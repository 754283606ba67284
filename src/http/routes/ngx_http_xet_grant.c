
/*
 * POST xorb-grants/{prefix}/{xorb}: asked by clients before each xorb.
 *
 *     handler -> queried -> job (thread: is the file of the xorb there?)
 *             -> done -> 200
 *                `-> advertised -> 200, once per xorb and day
 *
 * 200 says that the xorb need not be sent; 404, that it is to be sent to the
 * usual place, and nothing about what others have.  Length and checksum in the
 * request are not looked at: the hash in the path identifies the xorb.
 *
 * Like a dedup answer, a 200 binds the store: the client will refer to the
 * xorb without sending it.  So the day is on record before the 200 goes out,
 * for whoever collects xorbs.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"


struct ngx_http_xet_grant_s {
    xet_hash_t              hash;
    ngx_str_t               store;
    ngx_http_xet_copy_t     copy;
    ngx_http_xet_damage_t   damage;
    ngx_http_xet_array_t    xorbs;             /* to be advertised */
    xet_status_t            status;            /* of the job */
    unsigned                noted:1;
};


static void ngx_http_xet_grant_cleanup(void *data);
static void ngx_http_xet_grant_queried(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_grant_known(ngx_http_request_t *r);
static void ngx_http_xet_grant_job(void *data, ngx_log_t *log);
static void ngx_http_xet_grant_done(ngx_http_request_t *r, void *data);
static void ngx_http_xet_grant_advertised(ngx_http_request_t *r,
    ngx_int_t rc);
static ngx_int_t ngx_http_xet_grant_missing(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_grant_send(ngx_http_request_t *r);


ngx_int_t
ngx_http_xet_grant_handler(ngx_http_request_t *r, ngx_http_xet_ctx_t *ctx)
{
    ngx_int_t                  rc;
    ngx_http_xet_grant_t      *grant;
    ngx_http_xet_main_conf_t  *xmcf;

    rc = ngx_http_xet_drop_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    xmcf = ngx_http_get_module_main_conf(r, ngx_http_xet_module);

    grant = ngx_http_xet_state(r, sizeof(ngx_http_xet_grant_t),
                               ngx_http_xet_grant_cleanup);
    if (grant == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ctx->route.grant = grant;

    grant->hash = ctx->hash;
    grant->store = xmcf->store;

    ngx_http_xet_array_init(&grant->xorbs, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_damage_init(&grant->damage);

    rc = ngx_http_xet_query_xorb_grant(r, &grant->hash,
                                       ngx_http_xet_grant_queried);

    return ngx_http_xet_query_wait(r, rc);
}


static void
ngx_http_xet_grant_cleanup(void *data)
{
    ngx_http_xet_grant_t *grant = data;

    ngx_http_xet_array_destroy(&grant->xorbs);
    ngx_http_xet_damage_destroy(&grant->damage);
}


static void
ngx_http_xet_grant_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_query_answer(r, rc, ngx_http_xet_grant_known,
                              "xorb_not_found", "no such xorb");
}


static ngx_int_t
ngx_http_xet_grant_known(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t    *ctx;
    ngx_http_xet_grant_t  *grant;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    grant = ctx->route.grant;

    grant->noted = ngx_http_xet_query_xorb_grant_row(r, &grant->copy);

    if (!grant->copy.whole) {
        return ngx_http_xet_grant_missing(r);
    }

    if (ngx_http_xet_task_post(r, ngx_http_xet_grant_job,
                               ngx_http_xet_grant_done, grant)
        != NGX_OK)
    {
        return ngx_http_xet_error_status(r, XET_OVERLOADED);
    }

    return NGX_AGAIN;
}


static void
ngx_http_xet_grant_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_grant_t *grant = data;

    grant->status = ngx_http_xet_damage_stat_job(&grant->damage, &grant->store,
                                                 &grant->hash,
                                                 grant->copy.tag,
                                                 grant->copy.size, log);
}


static void
ngx_http_xet_grant_done(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_grant_t *grant = data;

    ngx_int_t  rc;

    ngx_http_xet_query_xorb_damaged_tell(&grant->damage);

    if (grant->status == XET_STORE_DAMAGED) {
        rc = ngx_http_xet_grant_missing(r);

    } else if (grant->status != XET_OK) {
        rc = ngx_http_xet_error_status(r, grant->status);

    } else if (grant->noted) {
        rc = ngx_http_xet_grant_send(r);

    } else {
        ngx_http_xet_array_bytes(&grant->xorbs, grant->hash.bytes,
                                 XET_HASH_LEN);

        rc = ngx_http_xet_query_xorb_advertised(r, &grant->xorbs,
                                                ngx_http_xet_grant_advertised);
        if (rc == NGX_AGAIN) {
            return;
        }

        rc = ngx_http_xet_query_error(r, rc, NULL, NULL);
    }

    ngx_http_finalize_request(r, rc);
}


static void
ngx_http_xet_grant_advertised(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_query_answer(r, rc, ngx_http_xet_grant_send, NULL, NULL);
}


static ngx_int_t
ngx_http_xet_grant_missing(ngx_http_request_t *r)
{
    return ngx_http_xet_query_error(r, NGX_DECLINED, "xorb_not_found",
                                    "no such xorb");
}


static ngx_int_t
ngx_http_xet_grant_send(ngx_http_request_t *r)
{
    return ngx_http_xet_send_literal(r, NGX_HTTP_OK, "application/json", "{}");
}
