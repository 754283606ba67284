
/*
 * POST lfs-files/duplicate: makes files of one repo available to another repo,
 * so that a commit there can refer to them without an upload.
 *
 *     handler -> body -> one statement, which returns the response body
 *
 * The path has the name of the source repo, the body has the name of the
 * target repo.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_upload.h"


#define NGX_HTTP_XET_HUB_DUPLICATE_BODY  (4 * 1024 * 1024)


typedef struct {
    xet_hub_repo_t            target;
    ngx_http_xet_hub_batch_t  batch;
} ngx_http_xet_hub_duplicate_t;


static void ngx_http_xet_hub_duplicate_cleanup(void *data);
static xet_status_t ngx_http_xet_hub_duplicate_parse(void *data, u_char *text,
    size_t len);
static xet_status_t ngx_http_xet_hub_duplicate_add(void *ctx,
    const xet_hub_operation_t *op);
static void ngx_http_xet_hub_duplicate_read(ngx_http_request_t *r,
    void *data);


ngx_int_t
ngx_http_xet_hub_duplicate_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    ngx_http_xet_hub_duplicate_t  *d;

    d = ngx_http_xet_state(r, sizeof(ngx_http_xet_hub_duplicate_t),
                           ngx_http_xet_hub_duplicate_cleanup);
    if (d == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    hub->refusal = &d->target.refusal;

    return ngx_http_xet_hub_read(r, NGX_HTTP_XET_HUB_DUPLICATE_BODY,
                                 ngx_http_xet_hub_duplicate_parse,
                                 ngx_http_xet_hub_duplicate_read, d);
}


static void
ngx_http_xet_hub_duplicate_cleanup(void *data)
{
    ngx_http_xet_hub_duplicate_t *d = data;

    json_decref(d->target.doc);
    ngx_http_xet_columns_destroy(&d->batch);
}


static xet_status_t
ngx_http_xet_hub_duplicate_parse(void *data, u_char *text, size_t len)
{
    ngx_http_xet_hub_duplicate_t *d = data;

    return xet_hub_duplicate_parse(&d->target, text, len,
                                   ngx_http_xet_hub_duplicate_add, d);
}


static xet_status_t
ngx_http_xet_hub_duplicate_add(void *ctx, const xet_hub_operation_t *op)
{
    ngx_http_xet_hub_duplicate_t *d = ctx;

    ngx_http_xet_array_bytes(&d->batch.hashes, op->hash.bytes, XET_HASH_LEN);
    ngx_http_xet_array_bytes(&d->batch.sha256, op->sha256,
                             XET_HUB_SHA256_LEN);

    return (d->batch.hashes.failed || d->batch.sha256.failed) ? XET_NOMEM
                                                              : XET_OK;
}


static void
ngx_http_xet_hub_duplicate_read(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_hub_duplicate_t *d = data;

    ngx_http_xet_hub_t        *hub;
    ngx_http_xet_hub_asked_t   to;

    hub = ngx_http_xet_hub_get(r);

    ngx_memzero(&to, sizeof(ngx_http_xet_hub_asked_t));

    to.kind = d->target.kind;
    to.name.data = (u_char *) d->target.name.data;
    to.name.len = d->target.name.len;
    to.owner = hub->who;

    if (d->target.owner.data) {
        to.owner.data = (u_char *) d->target.owner.data;
        to.owner.len = d->target.owner.len;

        ngx_http_xet_hub_owner(hub, &to.owner);
    }

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query(r, hub_duplicate, ngx_http_xet_hub_added,
                           .asked = &hub->asked, .to_kind = to.kind,
                           .to_owner = to.owner, .to_name = to.name,
                           .hashes = &d->batch.hashes,
                           .digests = &d->batch.sha256));
}
