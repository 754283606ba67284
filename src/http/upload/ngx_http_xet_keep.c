
/*
 * Commits an uploaded xorb to the store.
 *
 *     put     (query)   writes a row that names our copy, unless the xorb has
 *                       a row already
 *     check   (thread)  reads the copy that the row names and checks its
 *                       digest.  If it is intact, our copy is removed.  The
 *                       result of another upload that has just read the same
 *                       copy, or reads it now, is used as well, see below
 *     mark    (query)   records that the copy is damaged, in case the heal
 *                       fails or the client leaves: otherwise a shard that
 *                       names the xorb would be accepted
 *     heal    (query)   replaces the damaged copy in the row and the terms, if
 *                       the row still names the checked copy; else the new
 *                       copy is checked
 *     remove  (thread)  removes the replaced copy
 *     look    (thread)  after put or heal was sent again, see below
 *
 * A copy is durable before all of this, and only the row decides.  So after any
 * crash, and however many uploads of a xorb meet on any nodes, the row names a
 * durable copy and describes its bytes, and its terms lead there.  A crash
 * leaves only a file that no row names.  Our copy is kept while a statement is
 * in flight, and when its result is unknown, because a row may name the copy.
 *
 * A statement whose answer was lost is sent again.  If the first attempt was
 * committed, a collector may have removed row and copy since then, and the
 * second attempt would add a row for a missing copy.  xet.xorb_put() prevents
 * that as long as there is a note of the copy.  The note is removed after the
 * copy, so if the note is gone too, looking at the copy shows it.  A row
 * without a copy is recorded even if the client leaves.
 *
 * Results of reading are shared by uploads in a worker that started before the
 * read: later damage might also have occurred after a read of their own.  A
 * later upload reads again.  Damaged, healed and removed copies need no
 * invalidation: known damage is in the row, and a healed copy has another tag.
 * A read counts for five seconds, so that long uploads notice damage.  The last
 * 64 reads of intact copies are in a ring.  If a read ends without a result,
 * because its request died, the first of the waiting uploads reads the copy.
 *
 * The structure belongs to the thread while a job runs, else to the event loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_upload.h"


#define NGX_HTTP_XET_KEEP_ROUNDS  8
#define NGX_HTTP_XET_KEEP_SEEN    64           /* readings */
#define NGX_HTTP_XET_KEEP_VALID   5000         /* ms */


/* The read of the copy: idle -> reads -> idle, or idle -> waits -> idle. */

typedef enum {
    NGX_HTTP_XET_KEEP_IDLE = 0,
    NGX_HTTP_XET_KEEP_READS,
    NGX_HTTP_XET_KEEP_WAITS                    /* for another request's */
} ngx_http_xet_keep_e;


struct ngx_http_xet_keep_s {
    ngx_http_request_t     *request;
    ngx_http_xet_query_t   *query;
    ngx_http_xet_temp_t    *file;
    const xet_xorb_info_t  *info;
    ngx_http_xet_array_t   *eligible;
    ngx_http_xet_keep_pt    handler;

    ngx_http_xet_copy_t     copy;              /* that the row names */
    xet_status_t            status;            /* of the check */
    ngx_http_xet_damage_t   damage;            /* found, not on record */
    ngx_uint_t              rounds;
    uint32_t                replaced;          /* tag of the damaged copy */
    ngx_uint_t              news;              /* see ngx_http_xet_keep_pt */
    unsigned                healed:1;          /* the row named another copy */
    unsigned                twice:1;           /* a statement was sent again */
    unsigned                looks:1;           /* at the copy, because of it */

    ngx_http_xet_keep_e     state;
    ngx_queue_t             queue;             /* of readings, or waiting */
    ngx_queue_t             waiting;           /* for this reading */
    uint64_t                moment;            /* before this reading */
    ngx_event_t             event;             /* another's reading has ended */
};


typedef struct {
    xet_hash_t              xorb;
    uint32_t                tag;
} ngx_http_xet_keep_remove_t;


/* A read that found an intact copy. */

typedef struct {
    xet_hash_t              xorb;
    uint32_t                tag;
    uint64_t                moment;            /* 0: none */
    ngx_msec_t              end;
} ngx_http_xet_keep_seen_t;


static void ngx_http_xet_keep_cleanup(void *data);
static void ngx_http_xet_keep_put(ngx_http_request_t *r,
    ngx_http_xet_keep_t *keep);
static void ngx_http_xet_keep_answered(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_keep_healed(ngx_http_request_t *r, ngx_int_t rc);
static ngx_int_t ngx_http_xet_keep_ours(ngx_http_request_t *r,
    ngx_http_xet_keep_t *keep, ngx_int_t rc);
static void ngx_http_xet_keep_named(ngx_http_request_t *r,
    ngx_http_xet_keep_t *keep);
static void ngx_http_xet_keep_look_job(void *data, ngx_log_t *log);
static void ngx_http_xet_keep_looked(ngx_http_request_t *r, void *data);
static void ngx_http_xet_keep_end(ngx_http_request_t *r,
    ngx_http_xet_keep_t *keep);
static void ngx_http_xet_keep_known(ngx_http_request_t *r,
    ngx_http_xet_keep_t *keep);
static void ngx_http_xet_keep_check(ngx_http_request_t *r,
    ngx_http_xet_keep_t *keep);
static ngx_uint_t ngx_http_xet_keep_seen(ngx_http_xet_keep_t *keep);
static ngx_http_xet_keep_t *ngx_http_xet_keep_reader(
    ngx_http_xet_keep_t *keep);
static void ngx_http_xet_keep_post(ngx_http_request_t *r,
    ngx_http_xet_keep_t *keep);
static void ngx_http_xet_keep_check_job(void *data, ngx_log_t *log);
static void ngx_http_xet_keep_checked(ngx_http_request_t *r, void *data);
static void ngx_http_xet_keep_read(ngx_http_xet_keep_t *keep,
    xet_status_t status);
static void ngx_http_xet_keep_read_handler(ngx_event_t *ev);
static void ngx_http_xet_keep_mark(ngx_http_request_t *r,
    ngx_http_xet_keep_t *keep);
static void ngx_http_xet_keep_marked(ngx_http_request_t *r, ngx_int_t rc);
static void ngx_http_xet_keep_heal(ngx_http_request_t *r,
    ngx_http_xet_keep_t *keep);
static void ngx_http_xet_keep_remove_job(void *data, ngx_log_t *log);


static ngx_http_xet_keep_seen_t  ngx_http_xet_keep_ring[
                                                      NGX_HTTP_XET_KEEP_SEEN];
static ngx_uint_t                ngx_http_xet_keep_next;
static ngx_queue_t               ngx_http_xet_keep_readings = {
    &ngx_http_xet_keep_readings,
    &ngx_http_xet_keep_readings
};


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

    keep->request = r;
    keep->query = ctx->query;
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

    /* a job that outlives its request calls no handler */

    if (keep->looks && keep->status == XET_STORE_DAMAGED) {
        ngx_http_xet_damage_note(&keep->damage, &keep->file->xorb,
                                 keep->file->tag);
    }

    if (keep->state == NGX_HTTP_XET_KEEP_READS) {

        if (keep->status == XET_STORE_DAMAGED) {
            ngx_http_xet_damage_note(&keep->damage, &keep->file->xorb,
                                     keep->copy.tag);
        }

        ngx_http_xet_keep_read(keep, XET_AGAIN);

    } else if (keep->state == NGX_HTTP_XET_KEEP_WAITS) {
        ngx_queue_remove(&keep->queue);
    }

    if (keep->event.posted) {
        ngx_delete_posted_event(&keep->event);
    }

    /* damage is recorded even if the client has left */

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
    ngx_http_xet_keep_t  *keep;
    ngx_http_xet_over_t   over;

    keep = ngx_http_xet_ctx_of(r)->keep;

    rc = ngx_http_xet_keep_ours(r, keep, rc);

    if (rc == NGX_DECLINED) {
        ngx_http_xet_keep_known(r, keep);
        return;
    }

    if (rc == NGX_ABORT && ngx_http_xet_query_quota_over(r, &over)) {
        keep->handler(r, NGX_DECLINED, XET_QUOTA, 0);
        return;
    }

    if (rc == NGX_ABORT
        && ngx_strcmp(ngx_http_xet_ctx_of(r)->query->sqlstate, "XT006") == 0)
    {
        keep->handler(r, NGX_DECLINED, XET_NO_REPO, 0);
        return;
    }

    if (rc == NGX_OK) {
        ngx_http_xet_keep_named(r, keep);
        return;
    }

    keep->handler(r, rc, XET_OK, keep->news);
}


static void
ngx_http_xet_keep_healed(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_keep_t  *keep;

    keep = ngx_http_xet_ctx_of(r)->keep;

    rc = ngx_http_xet_keep_ours(r, keep, rc);

    if (rc == NGX_DECLINED) {
        ngx_http_xet_keep_known(r, keep);
        return;
    }

    if (ngx_strcmp(keep->query->sqlstate, NGX_HTTP_XET_PG_LOCKED) == 0) {

        /* another request heals it, or commits terms that refer to it */

        keep->handler(r, NGX_DECLINED, XET_XORB_LOCKED, 0);
        return;
    }

    if (rc == NGX_OK) {
        keep->healed = 1;

        ngx_http_xet_keep_named(r, keep);
        return;
    }

    keep->handler(r, rc, XET_OK, keep->news);
}


/*
 * The result of put and heal.  NGX_OK: the row names our copy; NGX_DECLINED: it
 * names another copy, which is in keep->copy, or the row is gone and keep->copy
 * is zeroed; else the rc of the query.
 */

static ngx_int_t
ngx_http_xet_keep_ours(ngx_http_request_t *r, ngx_http_xet_keep_t *keep,
    ngx_int_t rc)
{
    if (ngx_strcmp(keep->query->sqlstate, NGX_HTTP_XET_PG_TWICE) == 0) {
        keep->twice = 1;
    }

    if (rc != NGX_OK && rc != NGX_DECLINED) {

        ngx_http_xet_store_keep(keep->file,
                       !ngx_http_xet_query_unnamed(keep->query->sqlstate));

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


/* The row names our copy. */

static void
ngx_http_xet_keep_named(ngx_http_request_t *r, ngx_http_xet_keep_t *keep)
{
    if (!keep->twice) {
        ngx_http_xet_keep_end(r, keep);
        return;
    }

    keep->status = XET_AGAIN;

    if (ngx_http_xet_task_post(r, ngx_http_xet_keep_look_job,
                               ngx_http_xet_keep_looked, keep)
        != NGX_OK)
    {
        keep->handler(r, NGX_DECLINED, XET_OVERLOADED, 0);
        return;
    }

    keep->looks = 1;
}


static void
ngx_http_xet_keep_look_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_keep_t *keep = data;

    keep->status = ngx_http_xet_store_stat_job(keep->file->store,
                                               &keep->info->hash,
                                               keep->file->tag,
                                               keep->info->stored_size, log);
}


static void
ngx_http_xet_keep_looked(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_keep_t *keep = data;

    keep->looks = 0;

    switch (keep->status) {

    case XET_OK:
        ngx_http_xet_keep_end(r, keep);
        return;

    case XET_STORE_DAMAGED:

        /*
         * the row is marked at the end of the request; the next upload heals it
         */

        ngx_http_xet_damage_note(&keep->damage, &keep->info->hash,
                                 keep->file->tag);

        keep->handler(r, NGX_DECLINED, XET_PLAN_CHANGED, 0);
        return;

    default:
        keep->handler(r, NGX_DECLINED, keep->status, 0);
    }
}


static void
ngx_http_xet_keep_end(ngx_http_request_t *r, ngx_http_xet_keep_t *keep)
{
    u_char                      name[XET_HASH_STR_LEN + 1];
    ngx_http_xet_keep_remove_t  remove;

    if (keep->healed) {
        *xet_hash_print(name, &keep->info->hash) = '\0';

        ngx_log_error(NGX_LOG_NOTICE, r->connection->log, 0,
                      "xet: xorb %s was repaired by an upload", name);

        remove.xorb = keep->info->hash;
        remove.tag = keep->replaced;

        ngx_http_xet_task_detached(ngx_http_xet_keep_remove_job, &remove,
                                   sizeof(ngx_http_xet_keep_remove_t));

    } else {
        ngx_http_xet_count(NEW_RAW, keep->info->raw_size);
        ngx_http_xet_count(NEW_STORED, keep->info->stored_size);
    }

    keep->handler(r, NGX_OK, XET_OK, keep->news);
}


static void
ngx_http_xet_keep_known(ngx_http_request_t *r, ngx_http_xet_keep_t *keep)
{
    if (++keep->rounds > NGX_HTTP_XET_KEEP_ROUNDS) {
        keep->handler(r, NGX_DECLINED, XET_OVERLOADED, 0);
        return;
    }

    if (keep->copy.size == 0) {

        /* the row existed, and has been deleted since */

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
    ngx_http_xet_keep_t  *reader;

    if (!ngx_http_xet_keep_seen(keep)) {

        reader = ngx_http_xet_keep_reader(keep);

        if (reader) {
            ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                           "xet keep: waits for another's reading");

            keep->state = NGX_HTTP_XET_KEEP_WAITS;
            ngx_queue_insert_tail(&reader->waiting, &keep->queue);
            return;
        }

        ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                       "xet keep: reads the copy");

        keep->state = NGX_HTTP_XET_KEEP_READS;
        keep->moment = ngx_http_xet_store_moment();

        ngx_queue_init(&keep->waiting);
        ngx_queue_insert_head(&ngx_http_xet_keep_readings, &keep->queue);
    }

    keep->status = XET_OK;

    ngx_http_xet_keep_post(r, keep);
}


/* Whether a read that started after the upload found the copy intact. */

static ngx_uint_t
ngx_http_xet_keep_seen(ngx_http_xet_keep_t *keep)
{
    ngx_uint_t                 i;
    ngx_http_xet_keep_seen_t  *seen;

    for (i = 0; i < NGX_HTTP_XET_KEEP_SEEN; i++) {
        seen = &ngx_http_xet_keep_ring[i];

        if (seen->moment > keep->file->began
            && seen->tag == keep->copy.tag
            && ngx_current_msec - seen->end < NGX_HTTP_XET_KEEP_VALID
            && xet_hash_equal(&seen->xorb, &keep->info->hash))
        {
            return 1;
        }
    }

    return 0;
}


/* The request that reads the copy, started after the upload; or NULL. */

static ngx_http_xet_keep_t *
ngx_http_xet_keep_reader(ngx_http_xet_keep_t *keep)
{
    ngx_queue_t          *q;
    ngx_http_xet_keep_t  *reader;

    for (q = ngx_queue_head(&ngx_http_xet_keep_readings);
         q != ngx_queue_sentinel(&ngx_http_xet_keep_readings);
         q = ngx_queue_next(q))
    {
        reader = ngx_queue_data(q, ngx_http_xet_keep_t, queue);

        if (reader->moment > keep->file->began
            && reader->copy.tag == keep->copy.tag
            && xet_hash_equal(&reader->info->hash, &keep->info->hash))
        {
            return reader;
        }
    }

    return NULL;
}


/* Reads the copy, unless another request has found it intact. */

static void
ngx_http_xet_keep_post(ngx_http_request_t *r, ngx_http_xet_keep_t *keep)
{
    if (ngx_http_xet_task_post(r, ngx_http_xet_keep_check_job,
                               ngx_http_xet_keep_checked, keep)
        == NGX_OK)
    {
        return;
    }

    if (keep->state == NGX_HTTP_XET_KEEP_READS) {
        ngx_http_xet_keep_read(keep, XET_AGAIN);
        keep->handler(r, NGX_DECLINED, XET_OVERLOADED, 0);
        return;
    }

    /* our copy is removed at the end of the request */

    ngx_http_xet_keep_checked(r, keep);
}


static void
ngx_http_xet_keep_check_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_keep_t *keep = data;

    if (keep->state == NGX_HTTP_XET_KEEP_READS) {
        keep->status = ngx_http_xet_store_check_job(keep->file->store,
                                                    &keep->info->hash,
                                                    keep->copy.tag,
                                                    &keep->copy.digest, log);
    }

    if (keep->status == XET_OK) {
        ngx_http_xet_store_reset_job(keep->file, log);
    }
}


static void
ngx_http_xet_keep_checked(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_keep_t *keep = data;

    if (keep->state == NGX_HTTP_XET_KEEP_READS) {
        ngx_http_xet_keep_read(keep, keep->status);
    }

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


/*
 * The read has ended: XET_OK if the copy is intact, XET_AGAIN if nothing was
 * read.  Waiting requests are posted, because one may end its request and
 * others with it.
 */

static void
ngx_http_xet_keep_read(ngx_http_xet_keep_t *keep, xet_status_t status)
{
    ngx_queue_t               *q;
    ngx_http_xet_keep_t       *other;
    ngx_http_xet_keep_seen_t  *seen;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet keep: the copy is read, status:%d", (int) status);

    keep->state = NGX_HTTP_XET_KEEP_IDLE;
    ngx_queue_remove(&keep->queue);

    if (status == XET_OK) {
        seen = &ngx_http_xet_keep_ring[ngx_http_xet_keep_next];
        ngx_http_xet_keep_next = (ngx_http_xet_keep_next + 1)
                                 % NGX_HTTP_XET_KEEP_SEEN;

        seen->xorb = keep->info->hash;
        seen->tag = keep->copy.tag;
        seen->moment = keep->moment;
        seen->end = ngx_current_msec;
    }

    for (q = ngx_queue_head(&keep->waiting);
         q != ngx_queue_sentinel(&keep->waiting);
         q = ngx_queue_next(q))
    {
        other = ngx_queue_data(q, ngx_http_xet_keep_t, queue);

        other->state = NGX_HTTP_XET_KEEP_IDLE;
        other->status = status;
        other->event.handler = ngx_http_xet_keep_read_handler;
        other->event.data = other;
        other->event.log = ngx_cycle->log;

        ngx_post_event(&other->event, &ngx_posted_events);
    }
}


static void
ngx_http_xet_keep_read_handler(ngx_event_t *ev)
{
    ngx_connection_t     *c;
    ngx_http_request_t   *r;
    ngx_http_xet_keep_t  *keep;

    keep = ev->data;
    r = keep->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    if (keep->status == XET_AGAIN) {
        ngx_http_xet_keep_check(r, keep);

    } else if (keep->status == XET_OK) {
        ngx_http_xet_keep_post(r, keep);

    } else {
        ngx_http_xet_keep_checked(r, keep);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_xet_keep_mark(ngx_http_request_t *r, ngx_http_xet_keep_t *keep)
{
    ngx_int_t  rc;

    ngx_http_xet_damage_note(&keep->damage, &keep->info->hash, keep->copy.tag);

    rc = ngx_http_xet_query(r, copies_lost, ngx_http_xet_keep_marked,
                            .xorbs = &keep->damage.xorbs,
                            .tags = &keep->damage.tags);
    if (rc != NGX_AGAIN) {
        keep->handler(r, rc, XET_OK, 0);
    }
}


/*
 * A row that another request has locked is being healed; our heal detects that.
 */

static void
ngx_http_xet_keep_marked(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_keep_t  *keep;

    keep = ngx_http_xet_ctx_of(r)->keep;

    (void) ngx_http_xet_query_xorb_lost(r, &keep->damage, &rc);

    ngx_http_xet_query_release(r);

    if (rc != NGX_OK
        && ngx_strcmp(keep->query->sqlstate, NGX_HTTP_XET_PG_LOCKED) != 0)
    {
        keep->handler(r, rc, XET_OK, 0);
        return;
    }

    if (rc == NGX_OK) {
        ngx_http_xet_damage_destroy(&keep->damage);
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

    (void) ngx_http_xet_store_remove_job(xmcf->store, &remove->xorb,
                                         remove->tag, log);
}
