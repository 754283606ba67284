
/*
 * LFS batches, for git-lfs and for clients of a Hub that do not support Xet.
 *
 *     handler -> body -> permission -> look-up of the objects (PostgreSQL)
 *     -> a URL for each object that needs a transfer -> the next part of the
 *     objects ...
 *
 * ngx_http_xet_hub_lfs_object.c serves these URLs.  An upload that requests the
 * transfer "xet" gets a token for the repo instead of a URL, and a URL to
 * verify afterwards that the object has arrived.
 *
 * An object that the repo has already counts as acknowledged: it is kept as if
 * it was sent now (xet.hub_keep()).  An object with an unproven SHA-256 does
 * not exist yet for an upload.  For a download it does: the request for the
 * object proves the SHA-256.
 *
 * Memory of a batch: its objects, from a body of at most 1 MiB, and one part
 * of the response, with NGX_HTTP_XET_HUB_LFS_PART objects
 * (ngx_http_xet_hub_stream.c).
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_upload.h"


#define NGX_HTTP_XET_HUB_LFS_BODY  (1024 * 1024)
#define NGX_HTTP_XET_HUB_LFS_PART  256             /* objects in a part */
#define NGX_HTTP_XET_HUB_LFS_TYPE  "application/vnd.git-lfs+json"


/* An object that a client wants to upload or download. */

typedef struct {
    u_char      sha256[XET_HUB_SHA256_LEN];
    uint64_t    size;
    ngx_uint_t  known;
} ngx_http_xet_hub_object_t;


typedef struct {
    ngx_http_xet_hub_stream_t   stream;
    xet_json_t                  json;          /* writer of the response */
    xet_hub_list_t              list;
    ngx_http_xet_hub_object_t  *objects;       /* malloc()ed */
    ngx_uint_t                  n;
    ngx_uint_t                  room;
    ngx_uint_t                  next;          /* first object of this part */
    ngx_http_xet_array_t        sha256;
    ngx_str_t                   store;
    ngx_str_t                   header;        /* JSON with a token */
    ngx_str_t                   refresh;       /* URL that renews the token */
} ngx_http_xet_hub_lfs_t;


static void ngx_http_xet_hub_lfs_cleanup(void *data);
static xet_status_t ngx_http_xet_hub_lfs_parse(void *data, u_char *text,
    size_t len);
static xet_status_t ngx_http_xet_hub_lfs_add(void *ctx,
    const xet_hub_operation_t *op);
static void ngx_http_xet_hub_lfs_read(ngx_http_request_t *r, void *data);
static void ngx_http_xet_hub_lfs_entered(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_hub_lfs_epoch(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_hub_lfs_ask(ngx_http_request_t *r);
static void ngx_http_xet_hub_lfs_looked(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_hub_lfs_marked(ngx_http_request_t *r,
    ngx_http_xet_hub_lfs_t *l);
static void ngx_http_xet_hub_lfs_send(ngx_http_request_t *r,
    ngx_http_xet_hub_lfs_t *l);
static void ngx_http_xet_hub_lfs_begin(ngx_http_xet_hub_lfs_t *l,
    xet_buf_t *b);
static ngx_int_t ngx_http_xet_hub_lfs_object(ngx_http_request_t *r,
    ngx_pool_t *pool, ngx_http_xet_hub_lfs_t *l,
    ngx_http_xet_hub_object_t *o);
static ngx_int_t ngx_http_xet_hub_lfs_token(ngx_http_request_t *r,
    ngx_http_xet_hub_lfs_t *l, ngx_str_t *header);


ngx_int_t
ngx_http_xet_hub_lfs_batch_handler(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub)
{
    ngx_http_xet_hub_lfs_t  *l;

    l = ngx_http_xet_state(r, sizeof(ngx_http_xet_hub_lfs_t),
                           ngx_http_xet_hub_lfs_cleanup);
    if (l == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_xet_hub_stream_init(r, &l->stream, ngx_http_xet_hub_lfs_ask)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    l->stream.type = NGX_HTTP_XET_HUB_LFS_TYPE;

    hub->state = l;
    hub->refusal = &l->list.refusal;

    return ngx_http_xet_hub_read(r, NGX_HTTP_XET_HUB_LFS_BODY,
                                 ngx_http_xet_hub_lfs_parse,
                                 ngx_http_xet_hub_lfs_read, l);
}


static void
ngx_http_xet_hub_lfs_cleanup(void *data)
{
    ngx_http_xet_hub_lfs_t *l = data;

    free(l->objects);
    ngx_http_xet_array_destroy(&l->sha256);
}


static xet_status_t
ngx_http_xet_hub_lfs_parse(void *data, u_char *text, size_t len)
{
    ngx_http_xet_hub_lfs_t *l = data;

    return xet_hub_lfs_parse(&l->list, text, len, ngx_http_xet_hub_lfs_add, l);
}


static xet_status_t
ngx_http_xet_hub_lfs_add(void *ctx, const xet_hub_operation_t *op)
{
    ngx_http_xet_hub_lfs_t *l = ctx;

    size_t                      room;
    ngx_http_xet_hub_object_t  *o;

    if (l->n == l->room) {
        room = l->room ? 2 * l->room : 128;

        o = realloc(l->objects, room * sizeof(ngx_http_xet_hub_object_t));
        if (o == NULL) {
            return XET_NOMEM;
        }

        l->objects = o;
        l->room = room;
    }

    o = &l->objects[l->n++];

    ngx_memcpy(o->sha256, op->sha256, XET_HUB_SHA256_LEN);
    o->size = (uint64_t) op->size;
    o->known = 0;

    ngx_http_xet_array_bytes(&l->sha256, op->sha256, XET_HUB_SHA256_LEN);

    return l->sha256.failed ? XET_NOMEM : XET_OK;
}


static void
ngx_http_xet_hub_lfs_read(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_hub_lfs_t *l = data;

    ngx_int_t            rc;
    ngx_http_xet_hub_t  *hub;

    static const ngx_str_t  any = ngx_null_string;

    hub = ngx_http_xet_hub_get(r);

    if (l->list.upload) {
        rc = ngx_http_xet_hub_allowed(r, NGX_HTTP_XET_WRITES);

        if (rc == NGX_OK) {
            rc = ngx_http_xet_hub_open(r, XET_SCOPE_WRITE);
        }

        if (rc != NGX_OK) {
            ngx_http_finalize_request(r, rc);
            return;
        }
    }

    ngx_http_xet_hub_wait(r,
        ngx_http_xet_query_hub_enter(r, &hub->asked, &any, l->list.upload,
                                     ngx_http_xet_hub_lfs_entered));
}


static void
ngx_http_xet_hub_lfs_entered(ngx_http_request_t *r, ngx_int_t rc)
{
    xet_token_claims_t          claims;
    ngx_http_xet_hub_lfs_t     *l;
    ngx_http_xet_hub_answer_t   answer;

    if (ngx_http_xet_hub_row(r, rc, &answer) != NGX_OK) {
        return;
    }

    l = ngx_http_xet_hub_get(r)->state;

    l->store.len = answer.more.len;
    l->store.data = ngx_pstrdup(r->pool, &answer.more);

    if (l->store.data == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    rc = NGX_OK;

    if (l->list.upload && l->list.xet) {
        ngx_http_xet_hub_claims(r, &l->store, 1, &claims);

        rc = ngx_http_xet_token_epoch_ask(r, &claims,
                                          ngx_http_xet_hub_lfs_epoch);
    }

    ngx_http_xet_hub_wait(r, (rc == NGX_OK) ? ngx_http_xet_hub_lfs_ask(r)
                                            : rc);
}


static void
ngx_http_xet_hub_lfs_epoch(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc != NGX_OK) {
        ngx_http_xet_query_failed(r, rc);
        return;
    }

    ngx_http_xet_token_epoch_read(r);

    ngx_http_xet_hub_wait(r, ngx_http_xet_hub_lfs_ask(r));
}


static ngx_int_t
ngx_http_xet_hub_lfs_ask(ngx_http_request_t *r)
{
    ngx_http_xet_hub_lfs_t  *l;

    l = ngx_http_xet_hub_get(r)->state;

    if (l->list.upload) {
        return ngx_http_xet_query(r, hub_keep, ngx_http_xet_hub_lfs_looked,
                                  .store = l->store,
                                  .digests = { &l->sha256,
                                               NGX_HTTP_XET_HUB_LFS_PART },
                                  .claimed = 0);
    }

    return ngx_http_xet_query(r, hub_known, ngx_http_xet_hub_lfs_looked,
                              .store = l->store,
                              .digests = { &l->sha256,
                                           NGX_HTTP_XET_HUB_LFS_PART });
}


static void
ngx_http_xet_hub_lfs_looked(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_lfs_t  *l;

    l = ngx_http_xet_hub_get(r)->state;

    if (rc == NGX_OK) {
        rc = ngx_http_xet_hub_lfs_marked(r, l);
    }

    if (rc == NGX_OK || rc == NGX_DECLINED) {
        ngx_http_xet_hub_lfs_send(r, l);
        return;
    }

    if (l->stream.stream.begun) {
        ngx_http_xet_hub_stream_fail(r, &l->stream, XET_DATABASE);
        return;
    }

    ngx_http_xet_query_failed(r, rc);
}


/* Marks the objects that exist; the rows are in the order of the objects. */

static ngx_int_t
ngx_http_xet_hub_lfs_marked(ngx_http_request_t *r, ngx_http_xet_hub_lfs_t *l)
{
    u_char                        sha256[XET_HUB_SHA256_LEN];
    ngx_int_t                     rc;
    ngx_uint_t                    i, k, n;
    ngx_http_xet_query_t         *q;
    ngx_http_xet_hub_keep_row_t   kept;
    ngx_http_xet_hub_known_row_t  known;

    q = ngx_http_xet_ctx_of(r)->query;
    n = ngx_http_xet_query_rows(q);
    k = l->next;

    for (i = 0; i < n; i++) {

        if (l->list.upload) {
            rc = ngx_http_xet_row_hub_keep(q->res, i, &kept);
            ngx_memcpy(sha256, kept.sha256, XET_HUB_SHA256_LEN);

        } else {
            rc = ngx_http_xet_row_hub_known(q->res, i, &known);
            ngx_memcpy(sha256, known.sha256, XET_HUB_SHA256_LEN);
        }

        if (rc != NGX_OK) {
            return NGX_ERROR;
        }

        while (k < l->n
               && ngx_memcmp(l->objects[k].sha256, sha256, XET_HUB_SHA256_LEN)
                  != 0)
        {
            k++;
        }

        if (k < l->n) {
            l->objects[k++].known = 1;
        }
    }

    return NGX_OK;
}


static void
ngx_http_xet_hub_lfs_send(ngx_http_request_t *r, ngx_http_xet_hub_lfs_t *l)
{
    xet_buf_t   *b;
    ngx_uint_t   i, end, last;

    end = ngx_min(l->next + NGX_HTTP_XET_HUB_LFS_PART, l->n);
    last = (end == l->n);

    b = ngx_http_xet_hub_stream_part(r, &l->stream, 4096, last);
    if (b == NULL) {
        return;
    }

    if (!l->stream.stream.begun) {
        ngx_http_xet_hub_lfs_begin(l, b);
    }

    for (i = l->next; i < end; i++) {
        if (ngx_http_xet_hub_lfs_object(r, b->data, l, &l->objects[i])
            != NGX_OK)
        {
            ngx_http_xet_hub_stream_fail(r, &l->stream, XET_NOMEM);
            return;
        }
    }

    l->next = end;

    if (last) {
        xet_json_array_end(&l->json);
        xet_json_object_end(&l->json);
    }

    ngx_http_xet_hub_stream_send(r, &l->stream);
}


static void
ngx_http_xet_hub_lfs_begin(ngx_http_xet_hub_lfs_t *l, xet_buf_t *b)
{
    xet_json_init(&l->json, b);

    xet_json_object_begin(&l->json);
    xet_json_put_cstring(&l->json, "transfer",
                         (l->list.upload && l->list.xet) ? "xet" : "basic");
    xet_json_put_cstring(&l->json, "hash_algo", "sha256");
    xet_json_key(&l->json, "objects");
    xet_json_array_begin(&l->json);
}


/*
 * Writes the JSON of an object; allocates temporary data from the pool of the
 * part.  git-lfs asks for a signed URL again when it has expired: "expires_in"
 * is in seconds.
 */

static ngx_int_t
ngx_http_xet_hub_lfs_object(ngx_http_request_t *r, ngx_pool_t *pool,
    ngx_http_xet_hub_lfs_t *l, ngx_http_xet_hub_object_t *o)
{
    u_char       text[2 * XET_HUB_SHA256_LEN];
    uint64_t     expires;
    ngx_str_t    url, header, verify;
    xet_json_t  *j;

    j = &l->json;
    expires = ngx_http_xet_hub_until(r) - (uint64_t) ngx_time();
    ngx_str_null(&verify);

    (void) ngx_hex_dump(text, o->sha256, XET_HUB_SHA256_LEN);

    xet_json_object_begin(j);
    xet_json_put_string(j, "oid", text, sizeof(text));
    xet_json_put_u64(j, "size", o->size);
    xet_json_put_bool(j, "authenticated", 1);

    if (!l->list.upload && !o->known) {
        xet_json_key(j, "error");
        xet_json_object_begin(j);
        xet_json_put_u64(j, "code", NGX_HTTP_NOT_FOUND);
        xet_json_put_cstring(j, "message", "Object does not exist");
        xet_json_object_end(j);

    } else if (!l->list.upload || !o->known) {

        /*
         * an object that exists already has no "actions" member, not even an
         * empty one
         */

        ngx_str_set(&header, "{}");

        if (l->list.upload && l->list.xet) {

            if (ngx_http_xet_hub_lfs_token(r, l, &header) != NGX_OK
                || ngx_http_xet_hub_lfs_url(r, pool, o->sha256, &l->store, 1,
                                            &verify)
                   != NGX_OK)
            {
                return NGX_ERROR;
            }

            url = l->refresh;

        } else if (ngx_http_xet_hub_lfs_url(r, pool, o->sha256, &l->store,
                                            l->list.upload, &url)
                   != NGX_OK)
        {
            return NGX_ERROR;
        }

        xet_json_key(j, "actions");
        xet_json_object_begin(j);
        xet_json_key(j, l->list.upload ? "upload" : "download");
        xet_json_object_begin(j);
        xet_json_put_string(j, "href", url.data, url.len);
        xet_json_key(j, "header");
        xet_json_number(j, header.data, header.len);

        if (verify.len == 0) {
            xet_json_put_u64(j, "expires_in", expires);
            xet_json_object_end(j);

        } else {
            xet_json_object_end(j);
            xet_json_key(j, "verify");
            xet_json_object_begin(j);
            xet_json_put_string(j, "href", verify.data, verify.len);
            xet_json_put_u64(j, "expires_in", expires);
            xet_json_object_end(j);
        }

        xet_json_object_end(j);
    }

    xet_json_object_end(j);

    return NGX_OK;
}


/* Makes one token for all objects, and the URL that renews it. */

static ngx_int_t
ngx_http_xet_hub_lfs_token(ngx_http_request_t *r, ngx_http_xet_hub_lfs_t *l,
    ngx_str_t *header)
{
    u_char              *p;
    ngx_str_t            endpoint, token;
    xet_token_claims_t   claims;
    ngx_http_xet_hub_t  *hub;

    if (l->header.len) {
        *header = l->header;
        return NGX_OK;
    }

    hub = ngx_http_xet_hub_get(r);

    ngx_http_xet_hub_claims(r, &l->store, 1, &claims);

    if (ngx_http_xet_token_make(r, &claims, &endpoint, &token) != NGX_OK) {
        return NGX_ERROR;
    }

    /* neither endpoint nor token has characters that JSON escapes */

    p = ngx_pnalloc(r->pool, endpoint.len + token.len + 160);
    if (p == NULL) {
        return NGX_ERROR;
    }

    l->header.data = p;
    l->header.len = ngx_sprintf(p, "{\"X-Xet-Cas-Url\":\"%V\","
                                "\"X-Xet-Access-Token\":\"%V\","
                                "\"X-Xet-Token-Expiration\":\"%uL\"}",
                                &endpoint, &token, claims.exp) - p;
    *header = l->header;

    p = ngx_pnalloc(r->pool, hub->base.len + hub->asked.owner.len
                             + hub->asked.name.len + 64);
    if (p == NULL) {
        return NGX_ERROR;
    }

    l->refresh.data = p;
    l->refresh.len = ngx_sprintf(p, "%V/api/%s/%V/%V/xet-write-token/main",
                                 &hub->base,
                                 xet_hub_kind_plural(hub->asked.kind),
                                 &hub->asked.owner, &hub->asked.name) - p;

    return NGX_OK;
}
