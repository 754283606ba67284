
/*
 * The last phase of the background job "gc": removes files of the store that
 * never had a row, for example after a crash.  Once a day the phase checks the
 * names of all files in the store.
 *
 *     due      (query)   checks whether a day has passed; no file is removed
 *                        while a backup or a rebuild is running
 *     list     (thread)  lists some names (ngx_http_xet_store_orphans.c
 *                        explains why this is safe)
 *     suspect  (query)   finds names without a row and without a note
 *     take     (thread)  moves old files with such names into quarantine, a
 *                        few at a time
 *     sure     (query)   checks again which of these files may be removed
 *     settle   (thread)  removes those files, and restores the other files
 *     swept    (query)   at the end: records the time, and the number of
 *                        remaining files
 *
 * The cursor is the folder.  Each run starts with the files that an
 * interrupted run has left in quarantine.  If a file is restored, for example
 * because a backup has started, the run ends, and the next run starts from the
 * beginning.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_gc.h"


static void ngx_http_xet_gc_orphans_due(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask);
static void ngx_http_xet_gc_orphans_cursor(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_gc_orphans_list_job(void *data, ngx_log_t *log);
static void ngx_http_xet_gc_orphans_listed(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_gc_orphans_suspect(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask);
static void ngx_http_xet_gc_orphans_take_job(void *data, ngx_log_t *log);
static void ngx_http_xet_gc_orphans_taken(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_gc_orphans_names(ngx_http_xet_gc_t *gc,
    ngx_http_xet_orphan_t *orphans, ngx_uint_t n);
static ngx_uint_t ngx_http_xet_gc_orphans_in(ngx_http_xet_ask_t *ask,
    ngx_uint_t *at, const ngx_http_xet_orphan_t *orphan);
static void ngx_http_xet_gc_orphans_sure(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask);
static void ngx_http_xet_gc_orphans_settle_job(void *data, ngx_log_t *log);
static void ngx_http_xet_gc_orphans_settled(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_gc_orphans_stuck(ngx_http_xet_bg_job_t *bg_job,
    const char *why);
static void ngx_http_xet_gc_orphans_swept(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask);


void
ngx_http_xet_gc_orphans_begin(ngx_http_xet_gc_t *gc, ngx_int_t folder)
{
    ngx_http_xet_orphans_t  *o;

    o = &gc->orphans;

    gc->begun = (folder >= 0 && folder < NGX_HTTP_XET_ORPHANS_FOLDERS);

    o->store = gc->store;
    o->folder = NGX_HTTP_XET_ORPHANS_QUARANTINE;
    o->first = gc->begun ? folder : 0;
}


void
ngx_http_xet_gc_orphans_step(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_http_xet_gc_t       *gc;
    ngx_http_xet_orphans_t  *o;

    gc = bg_job->data;
    o = &gc->orphans;

    if (!gc->due) {
        ngx_http_xet_bg_job_ask(bg_job, orphans_due,
                                ngx_http_xet_gc_orphans_due, .begun =
                                gc->begun);

    } else if (o->i < o->n) {
        ngx_http_xet_bg_job_job(bg_job, ngx_http_xet_gc_orphans_take_job,
                                ngx_http_xet_gc_orphans_taken);

    } else if (o->folder < NGX_HTTP_XET_ORPHANS_FOLDERS) {
        ngx_http_xet_gc_orphans_cursor(bg_job);
        ngx_http_xet_bg_job_job(bg_job, ngx_http_xet_gc_orphans_list_job,
                                ngx_http_xet_gc_orphans_listed);

    } else {

        /* -1: another worker has started the run, so the total is unknown */

        ngx_http_xet_bg_job_ask(bg_job, orphans_found,
                                ngx_http_xet_gc_orphans_swept,
                                .n = gc->begun ? -1 : gc->left, .swept = 1);
    }
}


static void
ngx_http_xet_gc_orphans_due(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask)
{
    ngx_http_xet_gc_t               *gc;
    ngx_http_xet_orphans_t          *o;
    ngx_http_xet_orphans_due_row_t   row;

    gc = bg_job->data;
    o = &gc->orphans;

    (void) ngx_http_xet_row_orphans_due(ask->res, 0, &row);

    if (!row.due) {

        if (row.unsafe) {
            ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                          "xet: no files are removed from the store: %V",
                          &row.why);
            ngx_http_xet_bg_job_note(bg_job, "no files are removed: %V",
                                     &row.why);

        } else if (row.why.len) {
            ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                          "xet: files without a row are kept: %V", &row.why);
            ngx_http_xet_bg_job_note(bg_job, "files without a row are kept: %V",
                                     &row.why);
        }

        ngx_http_xet_bg_job_finish(bg_job);
        return;
    }

    gc->due = 1;

    o->since = (time_t) row.since;
    o->newest = (time_t) row.newest;

    ngx_http_xet_gc_orphans_cursor(bg_job);
    ngx_http_xet_bg_job_next(bg_job, 0);
}


static void
ngx_http_xet_gc_orphans_cursor(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_http_xet_gc_t       *gc;
    ngx_http_xet_orphans_t  *o;

    gc = bg_job->data;
    o = &gc->orphans;

    ngx_http_xet_bg_job_cursor(bg_job, "%d.%02xi", (int)
                               NGX_HTTP_XET_GC_ORPHANS, ngx_max(o->folder,
                                                                o->first));
}


static void
ngx_http_xet_gc_orphans_list_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_gc_t *gc = data;

    gc->status = ngx_http_xet_orphans_list_job(&gc->orphans, gc->batch,
                                               log);
}


static void
ngx_http_xet_gc_orphans_listed(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_http_xet_gc_t       *gc;
    ngx_http_xet_orphans_t  *o;

    gc = bg_job->data;
    o = &gc->orphans;

    gc->left += (int64_t) o->found;
    o->found = 0;

    ngx_http_xet_count_at(GRANTS, NGX_HTTP_XET_GRANT_SWEPT, o->staged);
    o->staged = 0;

    if (gc->status != XET_OK) {
        ngx_http_xet_gc_orphans_stuck(bg_job, "the store can't be listed");
        return;
    }

    if (o->n == 0) {
        ngx_http_xet_bg_job_next(bg_job, 0);
        return;
    }

    ngx_http_xet_gc_orphans_names(gc, o->names, o->n);

    ngx_http_xet_bg_job_ask(bg_job, copies_unknown,
                            ngx_http_xet_gc_orphans_suspect,
                            .hashes = &gc->hashes, .copy_ids = &gc->copy_ids);
}


static void
ngx_http_xet_gc_orphans_names(ngx_http_xet_gc_t *gc,
    ngx_http_xet_orphan_t *orphans, ngx_uint_t n)
{
    ngx_uint_t  i;

    ngx_http_xet_array_reset(&gc->hashes);
    ngx_http_xet_array_reset(&gc->copy_ids);

    for (i = 0; i < n; i++) {
        ngx_http_xet_array_bytes(&gc->hashes, orphans[i].xorb.bytes,
                                 XET_HASH_LEN);
        ngx_http_xet_array_int4(&gc->copy_ids, (int32_t) orphans[i].copy_id);
    }
}


/*
 * Returns whether a result contains this orphan.  The statements orphans and
 * copies_unknown return the same columns.  *at is the row to start with, and
 * becomes the row after the match, because the rows usually have the order of
 * the names.
 */

static ngx_uint_t
ngx_http_xet_gc_orphans_in(ngx_http_xet_ask_t *ask, ngx_uint_t *at,
    const ngx_http_xet_orphan_t *orphan)
{
    ngx_uint_t                  i, k, n;
    ngx_http_xet_orphans_row_t  row;

    n = ngx_http_xet_ask_rows(ask);

    for (k = 0; k < n; k++) {
        i = (*at + k) % n;

        if (ngx_http_xet_row_orphans(ask->res, i, &row) == NGX_OK
            && row.copy_id == orphan->copy_id
            && ngx_memcmp(row.hash->bytes, orphan->xorb.bytes, XET_HASH_LEN)
               == 0)
        {
            *at = i + 1;
            return 1;
        }
    }

    return 0;
}


static void
ngx_http_xet_gc_orphans_suspect(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask)
{
    ngx_uint_t               i, at;
    ngx_http_xet_gc_t       *gc;
    ngx_http_xet_orphans_t  *o;

    gc = bg_job->data;
    o = &gc->orphans;

    at = 0;

    for (i = 0; i < o->n; i++) {
        if (ngx_http_xet_gc_orphans_in(ask, &at, &o->names[i])) {
            o->names[i].suspect = 1;
        }
    }

    ngx_http_xet_bg_job_pace(bg_job, o->n, gc->rate);
}


static void
ngx_http_xet_gc_orphans_take_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_gc_t *gc = data;

    gc->status = ngx_http_xet_orphans_take_job(&gc->orphans, log);
}


/*
 * Continues with the files that were moved into quarantine.  If the thread job
 * has failed, the next sweep handles them.
 */

static void
ngx_http_xet_gc_orphans_taken(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_http_xet_gc_t       *gc;
    ngx_http_xet_orphans_t  *o;

    gc = bg_job->data;
    o = &gc->orphans;

    gc->left += (int64_t) o->found;
    o->found = 0;

    if (gc->status != XET_OK) {
        ngx_http_xet_gc_orphans_stuck(bg_job, "files without a row can't be "
                                             "quarantined");
        return;
    }

    if (o->ntaken == 0) {
        ngx_http_xet_bg_job_next(bg_job, 0);
        return;
    }

    ngx_http_xet_gc_orphans_names(gc, o->taken, o->ntaken);

    ngx_http_xet_bg_job_ask(bg_job, orphans, ngx_http_xet_gc_orphans_sure,
                            .hashes = &gc->hashes, .copy_ids = &gc->copy_ids);
}


static void
ngx_http_xet_gc_orphans_sure(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask)
{
    ngx_uint_t               i, at;
    ngx_http_xet_gc_t       *gc;
    ngx_http_xet_orphans_t  *o;

    gc = bg_job->data;
    o = &gc->orphans;

    at = 0;

    for (i = 0; i < o->ntaken; i++) {
        o->taken[i].removable = ngx_http_xet_gc_orphans_in(ask, &at,
                                                           &o->taken[i]) != 0;
    }

    ngx_http_xet_bg_job_job(bg_job, ngx_http_xet_gc_orphans_settle_job,
                            ngx_http_xet_gc_orphans_settled);
}


static void
ngx_http_xet_gc_orphans_settle_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_gc_t *gc = data;

    gc->status = ngx_http_xet_orphans_settle_job(&gc->orphans, log);
}


static void
ngx_http_xet_gc_orphans_settled(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_uint_t               back, n;
    ngx_http_xet_gc_t       *gc;
    ngx_http_xet_orphans_t  *o;

    gc = bg_job->data;
    o = &gc->orphans;

    ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_GC_N_ORPHANS,
                              (int64_t) o->removed);
    ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_GC_N_ORPHAN_BYTES,
                              (int64_t) o->bytes);

    gc->left -= (int64_t) o->removed;
    back = o->back;
    n = o->ntaken;

    o->removed = 0;
    o->bytes = 0;
    o->back = 0;
    o->ntaken = 0;

    if (gc->status != XET_OK) {
        ngx_http_xet_gc_orphans_stuck(bg_job, "files without a row can't be "
                                             "removed");
        return;
    }

    if (back) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "xet: files without a row are kept: removal of %ui is "
                      "no longer allowed", back);
        ngx_http_xet_bg_job_note(bg_job,
                                 "files without a row are kept: removal "
                                 "of %ui is no longer allowed", back);
        ngx_http_xet_bg_job_finish(bg_job);
        return;
    }

    ngx_http_xet_bg_job_pace(bg_job, n, gc->rate);
}


/*
 * Retries after a failed thread job, from the first phase, so that unused rows
 * are still deleted.
 */

static void
ngx_http_xet_gc_orphans_stuck(ngx_http_xet_bg_job_t *bg_job, const char *why)
{
    ngx_http_xet_gc_t *gc = bg_job->data;

    ngx_http_xet_bg_job_cursor(bg_job, "%d", (int) NGX_HTTP_XET_GC_FILES);
    ngx_http_xet_bg_job_failed(bg_job, gc->status, why);
}


static void
ngx_http_xet_gc_orphans_swept(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask)
{
    ngx_http_xet_bg_job_finish(bg_job);
}
