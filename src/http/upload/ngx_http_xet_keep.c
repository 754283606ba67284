
/*
 * A xorb that was uploaded becomes the store's.
 *
 *     put     (query)   writes a row that names our copy, unless the xorb has
 *                       a row already
 *     check   (thread)  reads the copy that the row names, and holds it
 *                       against its digest: where it is whole, our copy is
 *                       removed.  The result of another upload that reads the
 *                       same copy, or has just read it, serves as well
 *     mark    (query)   puts on record that the copy is not whole, also for the
 *                       case that the heal gives up or the client leaves: else
 *                       a shard that names the xorb would be accepted
 *     heal    (query)   puts our copy in the place of the damaged one, in the
 *                       row and the terms, if the row still names the copy
 *                       that was checked; else the new copy is checked
 *     remove  (thread)  removes the copy that was replaced
 *
 * A copy is durable before any of this, and the row is the only place that
 * decides.  So whatever dies in between, and however many uploads of a xorb
 * meet, in the same encoding or another, on one node or several: the row names
 * a copy that is durable and describes its bytes, and its terms lead there.
 * What dies leaves a file that no row names.
 *
 * While a statement is under way our copy stays, because a row may name it
 * already; it also stays when the result of the statement is not known.  The
 * structure belongs to the thread while a job runs, to the event loop
 * otherwise.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_store.h"
#include "ngx_http_xet_upload.h"


#define NGX_HTTP_XET_KEEP_ROUNDS  8


struct ngx_http_xet_keep_s {
    ngx_http_request_t     *request;
    ngx_http_xet_temp_t    *file;
    const xet_xorb_info_t  *info;
    ngx_http_xet_array_t   *eligible;
    ngx_http_xet_keep_pt    handler;

    ngx_http_xet_copy_t     copy;              /* that the row names */
    xet_status_t            status;            /* of the check */
    ngx_http_xet_whole_t    whole;             /* the check, shared */
    ngx_http_xet_damage_t   damage;            /* found, not on record */
    ngx_uint_t              rounds;
    uint32_t                replaced;          /* tag of the damaged copy */
    ngx_uint_t              news;              /* the xorb is new, see keep.h */
};


typedef struct {
    xet_hash_t              xorb;
    uint32_t                tag;
} ngx_http_xet_keep_remove_t;


static void ngx_http_xet_keep_cleanup(void *data);
static void ngx_http_xet_keep_put(ngx_http_request_t *r,
    ngx_http_xet_keep_t *keep);
static void ngx_http_xet_keep_answered(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_keep_healed(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_keep_ours(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_keep_known(ngx_http_request_t *r,
    ngx_http_xet_keep_t *keep);
static void ngx_http_xet_keep_check(ngx_http_request_t *r,
    ngx_http_xet_keep_t *keep);
static void ngx_http_xet_keep_check_job(void *data, ngx_log_t *log);
static void ngx_http_xet_keep_read(ngx_http_request_t *r, void *data);
static void ngx_http_xet_keep_read_by(void *data, xet_status_t status);
static void ngx_http_xet_keep_found(ngx_http_request_t *r,
    ngx_http_xet_keep_t *keep);
static void ngx_http_xet_keep_drop_job(void *data, ngx_log_t *log);
static void ngx_http_xet_keep_dropped(ngx_http_request_t *r, void *data);
static void ngx_http_xet_keep_checked(ngx_http_request_t *r,
    ngx_http_xet_keep_t *keep);
static void ngx_http_xet_keep_mark(ngx_http_request_t *r,
    ngx_http_xet_keep_t *keep);
static void ngx_http_xet_keep_marked(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_keep_heal(ngx_http_request_t *r,
    ngx_http_xet_keep_t *keep);
static void ngx_http_xet_keep_remove_job(void *data, ngx_log_t *log);


void
ngx_http_xet_keep(ngx_http_request_t *r, ngx_http_xet_temp_t *file,
    const xet_xorb_info_t *info, ngx_http_xet_array_t *eligible,
    ngx_http_xet_keep_pt handler)
{
    ngx_http_xet_ctx_t   *ctx;
    ngx_http_xet_keep_t  *keep;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    keep = ctx->keep;

    if (keep == NULL) {
        keep = ngx_http_xet_state(r, sizeof(ngx_http_xet_keep_t),
                                  ngx_http_xet_keep_cleanup);
        if (keep == NULL) {
            handler(r, NGX_DECLINED, XET_NOMEM, 0);
            return;
        }

        ctx->keep = keep;

    } else {
        ngx_http_xet_damage_destroy(&keep->damage);
    }

    ngx_memzero(keep, sizeof(ngx_http_xet_keep_t));
    ngx_http_xet_damage_init(&keep->damage);

    keep->request = r;
    keep->file = file;
    keep->info = info;
    keep->eligible = eligible;
    keep->handler = handler;

    ngx_http_xet_keep_put(r, keep);
}


static void
ngx_http_xet_keep_cleanup(void *data)
{
    ngx_http_xet_keep_t *keep = data;

    ngx_http_xet_whole_leave(&keep->whole);

    /* damage goes on record even if the client has left */

    ngx_http_xet_query_xorb_damaged_tell(&keep->damage);
    ngx_http_xet_damage_destroy(&keep->damage);
}


static void
ngx_http_xet_keep_put(ngx_http_request_t *r, ngx_http_xet_keep_t *keep)
{
    ngx_int_t  rc;

    rc = ngx_http_xet_query_xorb_put(r, keep->info, keep->eligible, keep->file,
                                     ngx_http_xet_keep_answered);
    if (rc != NGX_AGAIN) {
        keep->handler(r, rc, XET_OK, 0);
    }
}


static void
ngx_http_xet_keep_answered(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_ctx_t   *ctx;
    ngx_http_xet_keep_t  *keep;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    keep = ctx->keep;

    rc = ngx_http_xet_keep_ours(r, rc);

    if (rc == NGX_DECLINED) {
        ngx_http_xet_keep_known(r, keep);
        return;
    }

    keep->handler(r, rc, XET_OK, keep->news);
}


static void
ngx_http_xet_keep_healed(ngx_http_request_t *r, ngx_int_t rc)
{
    u_char                       name[XET_HASH_STR_LEN + 1];
    ngx_http_xet_ctx_t          *ctx;
    ngx_http_xet_keep_t         *keep;
    ngx_http_xet_keep_remove_t   remove;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    keep = ctx->keep;

    rc = ngx_http_xet_keep_ours(r, rc);

    if (rc == NGX_DECLINED) {
        ngx_http_xet_keep_known(r, keep);
        return;
    }

    if (ngx_strcmp(ctx->query->sqlstate, NGX_HTTP_XET_PG_LOCKED) == 0) {

        /* another request heals it, or commits terms that refer to it */

        keep->handler(r, NGX_DECLINED, XET_PLAN_CHANGED, 0);
        return;
    }

    if (rc == NGX_OK) {
        *xet_hash_print(name, &keep->info->hash) = '\0';

        ngx_log_error(NGX_LOG_NOTICE, r->connection->log, 0,
                      "xet: xorb %s is healed by an upload", name);

        remove.xorb = keep->info->hash;
        remove.tag = keep->replaced;

        ngx_http_xet_task_detached(ngx_http_xet_keep_remove_job, &remove,
                                   sizeof(ngx_http_xet_keep_remove_t));
    }

    keep->handler(r, rc, XET_OK, keep->news);
}


/*
 * The result of put and heal.  NGX_OK: the row names our copy; NGX_DECLINED:
 * it names another copy, which is in keep->copy, or there is no row any more
 * and keep->copy is zeroed; else the rc of the query.
 */

static ngx_int_t
ngx_http_xet_keep_ours(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_ctx_t   *ctx;
    ngx_http_xet_keep_t  *keep;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    keep = ctx->keep;

    if (rc != NGX_OK && rc != NGX_DECLINED) {

        /* with a sqlstate it is certain that no row names our copy */

        ngx_http_xet_store_keep(keep->file, ctx->query->sqlstate[0] == '\0');

        return rc;
    }

    ngx_memzero(&keep->copy, sizeof(ngx_http_xet_copy_t));

    if (rc == NGX_OK) {
        ngx_http_xet_query_xorb_put_row(r, &keep->copy);
        keep->news |= keep->copy.news;

        ngx_http_xet_query_release(r);

        if (keep->copy.tag == keep->file->tag) {
            return NGX_OK;
        }
    }

    ngx_http_xet_store_keep(keep->file, 0);

    return NGX_DECLINED;
}


static void
ngx_http_xet_keep_known(ngx_http_request_t *r, ngx_http_xet_keep_t *keep)
{
    if (++keep->rounds > NGX_HTTP_XET_KEEP_ROUNDS) {
        keep->handler(r, NGX_DECLINED, XET_OVERLOADED, 0);
        return;
    }

    if (keep->copy.size == 0) {

        /* the row was there, and has been deleted since */

        ngx_http_xet_keep_put(r, keep);
        return;
    }

    if (!keep->copy.whole || !keep->copy.digested) {
        ngx_http_xet_keep_heal(r, keep);
        return;
    }

    ngx_http_xet_keep_check(r, keep);
}


static void
ngx_http_xet_keep_check(ngx_http_request_t *r, ngx_http_xet_keep_t *keep)
{
    ngx_int_t              rc;
    ngx_http_xet_whole_t  *whole;

    whole = &keep->whole;

    whole->xorb = keep->info->hash;
    whole->tag = keep->copy.tag;
    whole->began = keep->file->began;
    whole->handler = ngx_http_xet_keep_read_by;
    whole->data = keep;

    rc = ngx_http_xet_whole_ask(whole);

    if (rc == NGX_AGAIN) {
        return;
    }

    if (rc == NGX_OK) {
        keep->status = XET_OK;
        ngx_http_xet_keep_found(r, keep);
        return;
    }

    if (ngx_http_xet_task_post(r, ngx_http_xet_keep_check_job,
                               ngx_http_xet_keep_read, keep)
        != NGX_OK)
    {
        ngx_http_xet_whole_done(whole, XET_AGAIN);
        keep->handler(r, NGX_DECLINED, XET_OVERLOADED, 0);
    }
}


static void
ngx_http_xet_keep_check_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_keep_t *keep = data;

    keep->status = ngx_http_xet_store_check_job(&keep->file->store,
                                                &keep->info->hash,
                                                keep->copy.tag,
                                                &keep->copy.digest, log);

    if (keep->status == XET_OK) {
        ngx_http_xet_store_reset_job(keep->file, log);
    }
}


static void
ngx_http_xet_keep_read(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_keep_t *keep = data;

    ngx_http_xet_whole_done(&keep->whole, keep->status);

    ngx_http_xet_keep_checked(r, keep);
}


/* Another request has read the copy for us. */

static void
ngx_http_xet_keep_read_by(void *data, xet_status_t status)
{
    ngx_http_xet_keep_t *keep = data;

    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = keep->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    keep->status = status;

    if (status == XET_AGAIN) {
        ngx_http_xet_keep_check(r, keep);

    } else {
        ngx_http_xet_keep_found(r, keep);
    }

    ngx_http_run_posted_requests(c);
}


/* Another request has read the copy: where that is whole, ours is removed. */

static void
ngx_http_xet_keep_found(ngx_http_request_t *r, ngx_http_xet_keep_t *keep)
{
    if (keep->status == XET_OK
        && ngx_http_xet_task_post(r, ngx_http_xet_keep_drop_job,
                                  ngx_http_xet_keep_dropped, keep)
           == NGX_OK)
    {
        return;
    }

    ngx_http_xet_keep_checked(r, keep);
}


static void
ngx_http_xet_keep_drop_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_keep_t *keep = data;

    ngx_http_xet_store_reset_job(keep->file, log);
}


static void
ngx_http_xet_keep_dropped(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_keep_t *keep = data;

    ngx_http_xet_keep_checked(r, keep);
}


static void
ngx_http_xet_keep_checked(ngx_http_request_t *r, ngx_http_xet_keep_t *keep)
{
    switch (keep->status) {

    case XET_OK:
        keep->handler(r, NGX_OK, XET_OK, keep->news);
        return;

    case XET_STORE_DAMAGED:
        ngx_http_xet_keep_mark(r, keep);
        return;

    default:
        keep->handler(r, NGX_DECLINED, keep->status, 0);
    }
}


static void
ngx_http_xet_keep_mark(ngx_http_request_t *r, ngx_http_xet_keep_t *keep)
{
    ngx_int_t  rc;

    ngx_http_xet_damage_note(&keep->damage, &keep->info->hash, keep->copy.tag);

    rc = ngx_http_xet_query_xorb_damaged(r, &keep->damage,
                                         ngx_http_xet_keep_marked);
    if (rc != NGX_AGAIN) {
        keep->handler(r, rc, XET_OK, 0);
    }
}


/* A row that another request has locked is being healed: our heal sees that. */

static void
ngx_http_xet_keep_marked(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_ctx_t   *ctx;
    ngx_http_xet_keep_t  *keep;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    keep = ctx->keep;

    ngx_http_xet_query_release(r);

    if (rc != NGX_OK
        && ngx_strcmp(ctx->query->sqlstate, NGX_HTTP_XET_PG_LOCKED) != 0)
    {
        keep->handler(r, rc, XET_OK, 0);
        return;
    }

    if (rc == NGX_OK) {
        ngx_http_xet_damage_destroy(&keep->damage);
        ngx_http_xet_damage_init(&keep->damage);
    }

    ngx_http_xet_keep_heal(r, keep);
}


static void
ngx_http_xet_keep_heal(ngx_http_request_t *r, ngx_http_xet_keep_t *keep)
{
    ngx_int_t  rc;

    keep->replaced = keep->copy.tag;

    rc = ngx_http_xet_query_xorb_heal(r, keep->info, keep->file,
                                      keep->replaced,
                                      ngx_http_xet_keep_healed);
    if (rc != NGX_AGAIN) {
        keep->handler(r, rc, XET_OK, 0);
    }
}


static void
ngx_http_xet_keep_remove_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_keep_remove_t *remove = data;

    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    ngx_http_xet_store_remove_job(&xmcf->store, &remove->xorb, remove->tag,
                                  log);
}
