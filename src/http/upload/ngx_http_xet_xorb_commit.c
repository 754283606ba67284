
/*
 * Commits an uploaded xorb to the store.
 *
 *     put     (query)   writes a row that refers to our copy, unless the xorb
 *                       has a row already; then also registers a file that
 *                       consists of the xorb, if the caller has one
 *     check   (thread)  reads the copy that the row refers to, and checks
 *                       its digest.  If the copy is intact, ours is removed.
 *                       Concurrent uploads share the result, see below
 *     mark    (query)   records that the copy is damaged, in case the heal
 *                       fails or the client disconnects: otherwise a shard
 *                       that refers to the xorb would be accepted
 *     heal    (query)   replaces the damaged copy in the row and the terms, if
 *                       the row still refers to the checked copy; otherwise
 *                       the new copy in the row is checked
 *     remove  (thread)  removes the replaced copy
 *     look    (thread)  checks that our copy exists, if put or heal was sent
 *                       twice, see below
 *
 * Our copy is durable before the first step, and the row determines which copy
 * of a xorb is used.  So the row and the terms refer to a durable copy after
 * any crash, and after concurrent uploads of the xorb on any nodes.  A crash
 * leaves only a file without a row.  Our copy is kept while a statement is
 * running, and if the result of the statement is unknown, because a row may
 * refer to the copy.
 *
 * A statement is sent again if its result was lost.  If the first attempt was
 * committed, a collector may have removed the row and the copy since then, and
 * the second attempt would insert a row for a missing copy.  xet.xorb_put()
 * prevents this as long as the collector's note of the copy exists.  The note
 * is removed after the copy; so if the note is gone, "look" finds that the copy
 * is missing.  A row without a copy is recorded even if the client closes the
 * connection.
 *
 * If another upload in the same worker has read the copy after this upload
 * started, this upload uses the result, which is as good as its own read.
 * Otherwise this upload reads the copy itself.  Results need not be invalidated
 * if a copy is found damaged, healed or removed: known damage is in the row,
 * and a healed xorb has another copy id.  A result is valid for five seconds,
 * so that long uploads notice damage.  The last 64 reads of intact copies are
 * in a ring.  If a read ends without a result, because its request ended, the
 * first of the waiting uploads reads the copy.
 *
 * The structure belongs to a thread while a job runs, otherwise to the event
 * loop.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_upload.h"


#define NGX_HTTP_XET_XORB_COMMIT_ROUNDS  8

/* The ring of reads of intact copies, whose results uploads share. */
#define NGX_HTTP_XET_XORB_COMMIT_SEEN    64      /* reads in the ring */
#define NGX_HTTP_XET_XORB_COMMIT_VALID   5000    /* ms that a result is valid */


/*
 * The state of checking the copy in the row: idle -> reads -> idle, or, if
 * another request reads it, idle -> waits -> idle.
 */

typedef enum {
    NGX_HTTP_XET_XORB_COMMIT_IDLE = 0,
    NGX_HTTP_XET_XORB_COMMIT_READS,
    NGX_HTTP_XET_XORB_COMMIT_WAITS    /* waits for another request */
} ngx_http_xet_xorb_commit_e;


struct ngx_http_xet_xorb_commit_s {
    ngx_http_request_t          *request;
    ngx_http_xet_query_t        *query;
    ngx_http_xet_temp_t         *file;
    const xet_xorb_info_t       *info;
    ngx_http_xet_array_t        *eligible;
    ngx_http_xet_xorb_file_t    *whole;        /* file to register, or NULL */
    ngx_http_xet_xorb_commit_pt  handler;

    ngx_http_xet_copy_t          copy;         /* copy in the row */
    xet_status_t                 status;       /* result of the check */
    ngx_http_xet_damage_t        damage;       /* damage to be reported */
    ngx_uint_t                   rounds;
    uint32_t                     replaced;     /* copy id of the damaged copy */
    ngx_uint_t                   inserted;     /* passed to handler as new */
    unsigned                     healed:1;     /* the row had another copy */
    unsigned                     retried:1;    /* a statement was sent again */
    unsigned                     looks:1;      /* the look job is posted */

    ngx_http_xet_xorb_commit_e   state;
    ngx_queue_t                  queue;        /* link in readings, waiting */
    ngx_queue_t                  waiting;     /* requests that share the read */
    uint64_t                     sequence;     /* drawn when the read starts */
    ngx_event_t                  event;        /* a shared read has ended */
};


typedef struct {
    xet_hash_t              xorb;
    uint32_t                copy_id;
} ngx_http_xet_xorb_commit_remove_t;


/* A finished read of an intact copy. */

typedef struct {
    xet_hash_t              xorb;
    uint32_t                copy_id;
    uint64_t                sequence;          /* 0: none */
    ngx_msec_t              end;
} ngx_http_xet_xorb_commit_seen_t;


static void ngx_http_xet_xorb_commit_cleanup(void *data);
static void ngx_http_xet_xorb_commit_put(ngx_http_request_t *r,
    ngx_http_xet_xorb_commit_t *commit);
static void ngx_http_xet_xorb_commit_answered(ngx_http_request_t *r, ngx_int_t
    rc);
static void ngx_http_xet_xorb_commit_healed(ngx_http_request_t *r, ngx_int_t
    rc);
static ngx_int_t ngx_http_xet_xorb_commit_ours(ngx_http_request_t *r,
    ngx_http_xet_xorb_commit_t *commit, ngx_int_t rc);
static void ngx_http_xet_xorb_commit_named(ngx_http_request_t *r,
    ngx_http_xet_xorb_commit_t *commit);
static void ngx_http_xet_xorb_commit_look_job(void *data, ngx_log_t *log);
static void ngx_http_xet_xorb_commit_looked(ngx_http_request_t *r, void *data);
static void ngx_http_xet_xorb_commit_end(ngx_http_request_t *r,
    ngx_http_xet_xorb_commit_t *commit);
static void ngx_http_xet_xorb_commit_known(ngx_http_request_t *r,
    ngx_http_xet_xorb_commit_t *commit);
static void ngx_http_xet_xorb_commit_check(ngx_http_request_t *r,
    ngx_http_xet_xorb_commit_t *commit);
static ngx_uint_t ngx_http_xet_xorb_commit_seen(ngx_http_xet_xorb_commit_t
    *commit);
static ngx_http_xet_xorb_commit_t *ngx_http_xet_xorb_commit_reader(
    ngx_http_xet_xorb_commit_t *commit);
static void ngx_http_xet_xorb_commit_post(ngx_http_request_t *r,
    ngx_http_xet_xorb_commit_t *commit);
static void ngx_http_xet_xorb_commit_check_job(void *data, ngx_log_t *log);
static void ngx_http_xet_xorb_commit_checked(ngx_http_request_t *r, void *data);
static void ngx_http_xet_xorb_commit_read(ngx_http_xet_xorb_commit_t *commit,
    xet_status_t status);
static void ngx_http_xet_xorb_commit_read_handler(ngx_event_t *ev);
static void ngx_http_xet_xorb_commit_mark(ngx_http_request_t *r,
    ngx_http_xet_xorb_commit_t *commit);
static void ngx_http_xet_xorb_commit_marked(ngx_http_request_t *r, ngx_int_t
    rc);
static void ngx_http_xet_xorb_commit_heal(ngx_http_request_t *r,
    ngx_http_xet_xorb_commit_t *commit);
static void ngx_http_xet_xorb_commit_remove_job(void *data, ngx_log_t *log);


static ngx_http_xet_xorb_commit_seen_t ngx_http_xet_xorb_commit_ring[
    NGX_HTTP_XET_XORB_COMMIT_SEEN];
static ngx_uint_t                ngx_http_xet_xorb_commit_next;
static ngx_queue_t               ngx_http_xet_xorb_commit_readings = {
    &ngx_http_xet_xorb_commit_readings,
    &ngx_http_xet_xorb_commit_readings
};


void
ngx_http_xet_xorb_commit(ngx_http_request_t *r, ngx_http_xet_temp_t *file,
    const xet_xorb_info_t *info, ngx_http_xet_array_t *eligible,
    ngx_http_xet_xorb_commit_pt handler)
{
    ngx_http_xet_xorb_commit_file(r, file, info, eligible, NULL, handler);
}


void
ngx_http_xet_xorb_commit_file(ngx_http_request_t *r, ngx_http_xet_temp_t *file,
    const xet_xorb_info_t *info, ngx_http_xet_array_t *eligible,
    ngx_http_xet_xorb_file_t *whole, ngx_http_xet_xorb_commit_pt handler)
{
    ngx_http_xet_ctx_t          *ctx;
    ngx_http_xet_xorb_commit_t  *commit;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    commit = ctx->xorb_commit;

    if (commit == NULL) {
        commit = ngx_http_xet_state(r, sizeof(ngx_http_xet_xorb_commit_t),
                                    ngx_http_xet_xorb_commit_cleanup);
        if (commit == NULL) {
            handler(r, NGX_DECLINED, XET_NOMEM, 0);
            return;
        }

        ctx->xorb_commit = commit;

    } else {
        ngx_http_xet_damage_destroy(&commit->damage);
    }

    ngx_memzero(commit, sizeof(ngx_http_xet_xorb_commit_t));

    commit->request = r;
    commit->query = ctx->query;
    commit->file = file;
    commit->info = info;
    commit->eligible = eligible;
    commit->whole = whole;
    commit->handler = handler;

    ngx_http_xet_xorb_commit_put(r, commit);
}


static void
ngx_http_xet_xorb_commit_cleanup(void *data)
{
    ngx_http_xet_xorb_commit_t *commit = data;

    /* no handler is called for a job that ends after its request */

    if (commit->looks && commit->status == XET_STORE_DAMAGED) {
        ngx_http_xet_damage_note(&commit->damage, &commit->file->xorb,
                                 commit->file->copy_id);
    }

    if (commit->state == NGX_HTTP_XET_XORB_COMMIT_READS) {

        if (commit->status == XET_STORE_DAMAGED) {
            ngx_http_xet_damage_note(&commit->damage, &commit->file->xorb,
                                     commit->copy.copy_id);
        }

        ngx_http_xet_xorb_commit_read(commit, XET_AGAIN);

    } else if (commit->state == NGX_HTTP_XET_XORB_COMMIT_WAITS) {
        ngx_queue_remove(&commit->queue);
    }

    if (commit->event.posted) {
        ngx_delete_posted_event(&commit->event);
    }

    /* report damage even if the client has closed the connection */

    ngx_http_xet_query_xorb_damaged_tell(&commit->damage);
    ngx_http_xet_damage_destroy(&commit->damage);
}


static void
ngx_http_xet_xorb_commit_put(ngx_http_request_t *r, ngx_http_xet_xorb_commit_t
    *commit)
{
    ngx_int_t  rc;

    if (commit->whole && commit->rounds == 0) {
        rc = ngx_http_xet_query_file_put(r, commit->info, commit->eligible,
                                         commit->file, commit->whole,
                                         ngx_http_xet_xorb_commit_answered);

    } else {
        rc = ngx_http_xet_query_xorb_put(r, commit->info, commit->eligible,
                                         commit->file,
                                         ngx_http_xet_xorb_commit_answered);
    }

    if (rc != NGX_AGAIN) {
        commit->handler(r, rc, XET_OK, 0);
    }
}


static void
ngx_http_xet_xorb_commit_answered(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_xorb_commit_t  *commit;
    ngx_http_xet_over_t          over;

    commit = ngx_http_xet_ctx_of(r)->xorb_commit;

    rc = ngx_http_xet_xorb_commit_ours(r, commit, rc);

    if (rc == NGX_DECLINED) {
        ngx_http_xet_xorb_commit_known(r, commit);
        return;
    }

    if (rc == NGX_ABORT && ngx_http_xet_query_quota_over(r, &over)) {
        commit->handler(r, NGX_DECLINED, XET_QUOTA, 0);
        return;
    }

    if (rc == NGX_ABORT
        && ngx_strcmp(ngx_http_xet_ctx_of(r)->query->sqlstate, "XT006") == 0)
    {
        commit->handler(r, NGX_DECLINED, XET_NO_REPO, 0);
        return;
    }

    if (rc == NGX_OK) {
        ngx_http_xet_xorb_commit_named(r, commit);
        return;
    }

    commit->handler(r, rc, XET_OK, commit->inserted);
}


static void
ngx_http_xet_xorb_commit_healed(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_xorb_commit_t  *commit;

    commit = ngx_http_xet_ctx_of(r)->xorb_commit;

    rc = ngx_http_xet_xorb_commit_ours(r, commit, rc);

    if (rc == NGX_DECLINED) {
        ngx_http_xet_xorb_commit_known(r, commit);
        return;
    }

    if (ngx_strcmp(commit->query->sqlstate, NGX_HTTP_XET_PG_LOCKED) == 0) {

        /*
         * another request is healing the xorb, or commits terms that refer to
         * it
         */

        commit->handler(r, NGX_DECLINED, XET_XORB_LOCKED, 0);
        return;
    }

    if (rc == NGX_OK) {
        commit->healed = 1;

        ngx_http_xet_xorb_commit_named(r, commit);
        return;
    }

    commit->handler(r, rc, XET_OK, commit->inserted);
}


/*
 * Evaluates the result of put and heal.  Returns NGX_OK if the row refers to
 * our copy; NGX_DECLINED if the row refers to another copy, which is in
 * commit->copy, or if the row is missing and commit->copy is zeroed; otherwise
 * the result of the query.
 */

static ngx_int_t
ngx_http_xet_xorb_commit_ours(ngx_http_request_t *r, ngx_http_xet_xorb_commit_t
    *commit, ngx_int_t rc)
{
    if (ngx_strcmp(commit->query->sqlstate, NGX_HTTP_XET_PG_RETRIED) == 0) {
        commit->retried = 1;
    }

    ngx_http_xet_chunk_filter_add(r, 1, commit->info->hashes,
                                  commit->eligible);

    if (rc != NGX_OK && rc != NGX_DECLINED) {

        ngx_http_xet_store_keep(commit->file,
                       !ngx_http_xet_query_unnamed(commit->query->sqlstate));

        return rc;
    }

    ngx_memzero(&commit->copy, sizeof(ngx_http_xet_copy_t));

    if (rc == NGX_OK) {
        ngx_http_xet_query_xorb_put_row(r, &commit->copy);

        if (commit->whole == NULL) {
            commit->inserted |= commit->copy.inserted;

        } else if (commit->rounds == 0) {
            commit->inserted = ngx_http_xet_query_file_put_row(r);
        }

        ngx_http_xet_query_release(r);

        if (commit->copy.copy_id == commit->file->copy_id) {
            return NGX_OK;
        }
    }

    ngx_http_xet_store_keep(commit->file, 0);

    return NGX_DECLINED;
}


/*
 * Ends the commit, because the row now refers to our copy.  If a statement was
 * sent again, first checks that our copy exists.
 */

static void
ngx_http_xet_xorb_commit_named(ngx_http_request_t *r,
    ngx_http_xet_xorb_commit_t *commit)
{
    if (!commit->retried) {
        ngx_http_xet_xorb_commit_end(r, commit);
        return;
    }

    commit->status = XET_AGAIN;

    if (ngx_http_xet_task_post(r, ngx_http_xet_xorb_commit_look_job,
                               ngx_http_xet_xorb_commit_looked, commit)
        != NGX_OK)
    {
        commit->handler(r, NGX_DECLINED, XET_OVERLOADED, 0);
        return;
    }

    commit->looks = 1;
}


static void
ngx_http_xet_xorb_commit_look_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_xorb_commit_t *commit = data;

    commit->status = ngx_http_xet_store_stat_job(commit->file->store,
                                               &commit->info->hash,
                                               commit->file->copy_id,
                                               commit->info->stored_size, log);
}


static void
ngx_http_xet_xorb_commit_looked(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_xorb_commit_t *commit = data;

    commit->looks = 0;

    switch (commit->status) {

    case XET_OK:
        ngx_http_xet_xorb_commit_end(r, commit);
        return;

    case XET_STORE_DAMAGED:

        /*
         * The row is marked as damaged when the request ends; the next upload
         * heals the xorb.
         */

        ngx_http_xet_damage_note(&commit->damage, &commit->info->hash,
                                 commit->file->copy_id);

        commit->handler(r, NGX_DECLINED, XET_PLAN_CHANGED, 0);
        return;

    default:
        commit->handler(r, NGX_DECLINED, commit->status, 0);
    }
}


static void
ngx_http_xet_xorb_commit_end(ngx_http_request_t *r, ngx_http_xet_xorb_commit_t
    *commit)
{
    u_char                             name[XET_HASH_STR_LEN + 1];
    ngx_http_xet_xorb_commit_remove_t  remove;

    if (commit->healed) {
        *xet_hash_print(name, &commit->info->hash) = '\0';

        ngx_log_error(NGX_LOG_NOTICE, r->connection->log, 0,
                      "xet: xorb %s was repaired by an upload", name);

        remove.xorb = commit->info->hash;
        remove.copy_id = commit->replaced;

        ngx_http_xet_task_detached(ngx_http_xet_xorb_commit_remove_job, &remove,
                                   sizeof(ngx_http_xet_xorb_commit_remove_t));

    } else {
        ngx_http_xet_count(NEW_RAW, commit->info->raw_size);
        ngx_http_xet_count(NEW_STORED, commit->info->stored_size);
    }

    commit->handler(r, NGX_OK, XET_OK, commit->inserted);
}


static void
ngx_http_xet_xorb_commit_known(ngx_http_request_t *r,
    ngx_http_xet_xorb_commit_t *commit)
{
    if (++commit->rounds > NGX_HTTP_XET_XORB_COMMIT_ROUNDS) {
        commit->handler(r, NGX_DECLINED, XET_OVERLOADED, 0);
        return;
    }

    if (commit->copy.size == 0) {

        /* the row existed, and was deleted since then */

        ngx_http_xet_xorb_commit_put(r, commit);
        return;
    }

    if (!commit->copy.intact || !commit->copy.digested) {
        ngx_http_xet_xorb_commit_heal(r, commit);
        return;
    }

    ngx_http_xet_xorb_commit_check(r, commit);
}


static void
ngx_http_xet_xorb_commit_check(ngx_http_request_t *r,
    ngx_http_xet_xorb_commit_t *commit)
{
    ngx_http_xet_xorb_commit_t  *reader;

    if (!ngx_http_xet_xorb_commit_seen(commit)) {

        reader = ngx_http_xet_xorb_commit_reader(commit);

        if (reader) {
            ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                           "xet xorb commit: waits for another's reading");

            commit->state = NGX_HTTP_XET_XORB_COMMIT_WAITS;
            ngx_queue_insert_tail(&reader->waiting, &commit->queue);
            return;
        }

        ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                       "xet xorb commit: reads the copy");

        commit->state = NGX_HTTP_XET_XORB_COMMIT_READS;
        commit->sequence = ngx_http_xet_store_sequence();

        ngx_queue_init(&commit->waiting);
        ngx_queue_insert_head(&ngx_http_xet_xorb_commit_readings,
                              &commit->queue);
    }

    commit->status = XET_OK;

    ngx_http_xet_xorb_commit_post(r, commit);
}


/*
 * Returns whether the ring contains a read of the copy that started after this
 * upload began.
 */

static ngx_uint_t
ngx_http_xet_xorb_commit_seen(ngx_http_xet_xorb_commit_t *commit)
{
    ngx_uint_t                        i;
    ngx_http_xet_xorb_commit_seen_t  *seen;

    for (i = 0; i < NGX_HTTP_XET_XORB_COMMIT_SEEN; i++) {
        seen = &ngx_http_xet_xorb_commit_ring[i];

        if (seen->sequence > commit->file->began
            && seen->copy_id == commit->copy.copy_id
            && ngx_current_msec - seen->end < NGX_HTTP_XET_XORB_COMMIT_VALID
            && xet_hash_equal(&seen->xorb, &commit->info->hash))
        {
            return 1;
        }
    }

    return 0;
}


/*
 * Returns a request that is reading the copy and has started to read after this
 * upload began, or NULL.
 */

static ngx_http_xet_xorb_commit_t *
ngx_http_xet_xorb_commit_reader(ngx_http_xet_xorb_commit_t *commit)
{
    ngx_queue_t                 *q;
    ngx_http_xet_xorb_commit_t  *reader;

    for (q = ngx_queue_head(&ngx_http_xet_xorb_commit_readings);
         q != ngx_queue_sentinel(&ngx_http_xet_xorb_commit_readings);
         q = ngx_queue_next(q))
    {
        reader = ngx_queue_data(q, ngx_http_xet_xorb_commit_t, queue);

        if (reader->sequence > commit->file->began
            && reader->copy.copy_id == commit->copy.copy_id
            && xet_hash_equal(&reader->info->hash, &commit->info->hash))
        {
            return reader;
        }
    }

    return NULL;
}


/*
 * Posts the job that reads the copy in the row and, if that copy is intact,
 * removes our copy.  Posts no job if another request has read the copy in the
 * row.
 */

static void
ngx_http_xet_xorb_commit_post(ngx_http_request_t *r, ngx_http_xet_xorb_commit_t
    *commit)
{
    if (ngx_http_xet_task_post(r, ngx_http_xet_xorb_commit_check_job,
                               ngx_http_xet_xorb_commit_checked, commit)
        == NGX_OK)
    {
        return;
    }

    if (commit->state == NGX_HTTP_XET_XORB_COMMIT_READS) {
        ngx_http_xet_xorb_commit_read(commit, XET_AGAIN);
        commit->handler(r, NGX_DECLINED, XET_OVERLOADED, 0);
        return;
    }

    /* our copy is removed when the request ends */

    ngx_http_xet_xorb_commit_checked(r, commit);
}


static void
ngx_http_xet_xorb_commit_check_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_xorb_commit_t *commit = data;

    if (commit->state == NGX_HTTP_XET_XORB_COMMIT_READS) {
        commit->status = ngx_http_xet_store_check_job(commit->file->store,
                                                    &commit->info->hash,
                                                    commit->copy.copy_id,
                                                    &commit->copy.digest, log);
    }

    if (commit->status == XET_OK) {
        ngx_http_xet_store_reset_job(commit->file, log);
    }
}


static void
ngx_http_xet_xorb_commit_checked(ngx_http_request_t *r, void *data)
{
    ngx_http_xet_xorb_commit_t *commit = data;

    if (commit->state == NGX_HTTP_XET_XORB_COMMIT_READS) {
        ngx_http_xet_xorb_commit_read(commit, commit->status);
    }

    switch (commit->status) {

    case XET_OK:
        commit->handler(r, NGX_OK, XET_OK, commit->inserted);
        return;

    case XET_STORE_DAMAGED:
        ngx_http_xet_xorb_commit_mark(r, commit);
        return;

    default:
        commit->handler(r, NGX_DECLINED, commit->status, 0);
    }
}


/*
 * Ends a read.  status is XET_OK if the copy is intact, XET_AGAIN if nothing
 * was read.  Waiting requests continue in posted events, because a request that
 * continues may end itself and other requests.
 */

static void
ngx_http_xet_xorb_commit_read(ngx_http_xet_xorb_commit_t *commit, xet_status_t
    status)
{
    ngx_queue_t                      *q;
    ngx_http_xet_xorb_commit_t       *other;
    ngx_http_xet_xorb_commit_seen_t  *seen;

    ngx_log_debug1(NGX_LOG_DEBUG_HTTP, ngx_cycle->log, 0,
                   "xet xorb commit: the copy is read, status:%d",
                   (int) status);

    commit->state = NGX_HTTP_XET_XORB_COMMIT_IDLE;
    ngx_queue_remove(&commit->queue);

    if (status == XET_OK) {
        seen = &ngx_http_xet_xorb_commit_ring[ngx_http_xet_xorb_commit_next];
        ngx_http_xet_xorb_commit_next = (ngx_http_xet_xorb_commit_next + 1)
                                 % NGX_HTTP_XET_XORB_COMMIT_SEEN;

        seen->xorb = commit->info->hash;
        seen->copy_id = commit->copy.copy_id;
        seen->sequence = commit->sequence;
        seen->end = ngx_current_msec;
    }

    for (q = ngx_queue_head(&commit->waiting);
         q != ngx_queue_sentinel(&commit->waiting);
         q = ngx_queue_next(q))
    {
        other = ngx_queue_data(q, ngx_http_xet_xorb_commit_t, queue);

        other->state = NGX_HTTP_XET_XORB_COMMIT_IDLE;
        other->status = status;
        other->event.handler = ngx_http_xet_xorb_commit_read_handler;
        other->event.data = other;
        other->event.log = ngx_cycle->log;

        ngx_post_event(&other->event, &ngx_posted_events);
    }
}


static void
ngx_http_xet_xorb_commit_read_handler(ngx_event_t *ev)
{
    ngx_connection_t            *c;
    ngx_http_request_t          *r;
    ngx_http_xet_xorb_commit_t  *commit;

    commit = ev->data;
    r = commit->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    if (commit->status == XET_AGAIN) {
        ngx_http_xet_xorb_commit_check(r, commit);

    } else if (commit->status == XET_OK) {
        ngx_http_xet_xorb_commit_post(r, commit);

    } else {
        ngx_http_xet_xorb_commit_checked(r, commit);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_xet_xorb_commit_mark(ngx_http_request_t *r, ngx_http_xet_xorb_commit_t
    *commit)
{
    ngx_int_t  rc;

    ngx_http_xet_damage_note(&commit->damage, &commit->info->hash,
                             commit->copy.copy_id);

    rc = ngx_http_xet_query(r, copies_lost, ngx_http_xet_xorb_commit_marked,
                            .xorbs = &commit->damage.xorbs,
                            .copy_ids = &commit->damage.copy_ids);
    if (rc != NGX_AGAIN) {
        commit->handler(r, rc, XET_OK, 0);
    }
}


/*
 * Continues even if the row is locked: then another request is healing the
 * xorb, and our heal detects the result.
 */

static void
ngx_http_xet_xorb_commit_marked(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_xorb_commit_t  *commit;

    commit = ngx_http_xet_ctx_of(r)->xorb_commit;

    (void) ngx_http_xet_query_xorb_lost(r, &commit->damage, &rc);

    ngx_http_xet_query_release(r);

    if (rc != NGX_OK
        && ngx_strcmp(commit->query->sqlstate, NGX_HTTP_XET_PG_LOCKED) != 0)
    {
        commit->handler(r, rc, XET_OK, 0);
        return;
    }

    if (rc == NGX_OK) {
        ngx_http_xet_damage_destroy(&commit->damage);
    }

    ngx_http_xet_xorb_commit_heal(r, commit);
}


static void
ngx_http_xet_xorb_commit_heal(ngx_http_request_t *r, ngx_http_xet_xorb_commit_t
    *commit)
{
    ngx_int_t  rc;

    commit->replaced = commit->copy.copy_id;

    rc = ngx_http_xet_query_xorb_heal(r, commit->info, commit->file,
                                      commit->replaced,
                                      ngx_http_xet_xorb_commit_healed);
    if (rc != NGX_AGAIN) {
        commit->handler(r, rc, XET_OK, 0);
    }
}


static void
ngx_http_xet_xorb_commit_remove_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_xorb_commit_remove_t *remove = data;

    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    (void) ngx_http_xet_store_remove_job(xmcf->store, &remove->xorb,
                                         remove->copy_id, log);
}
