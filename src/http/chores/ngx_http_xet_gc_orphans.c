
/*
 * The last phase of the chore "gc": files of the store that never had a row, as
 * a crash leaves them.  Once a day: all names of the store are looked at.
 *
 *     due      (query)   whether it is time, or a backup or a rebuild is under
 *                        way, which keep all files
 *     list     (thread)  some names (ngx_http_xet_store_orphans.c, where it
 *                        says why this is safe)
 *     suspect  (query)   those that no row names, and no note
 *     take     (thread)  takes old ones aside, a few at a time
 *     sure     (query)   those that may be removed, asked once more
 *     settle   (thread)  removes them, and gives back what must stay
 *     swept    (query)   at the end: when that was, and how many are left
 *
 * The cursor is the folder.  Whoever goes on in the middle, or begins, looks
 * first after what a sweep that has died had aside.  Where something gets its
 * name back, since a backup has begun for one, the run ends, and the next one
 * begins again.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_gc.h"


static void ngx_http_xet_gc_orphans_due(ngx_http_xet_chore_t *chore,
    ngx_http_xet_ask_t *ask);
static void ngx_http_xet_gc_orphans_cursor(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_gc_orphans_list_job(void *data, ngx_log_t *log);
static void ngx_http_xet_gc_orphans_listed(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_gc_orphans_suspect(ngx_http_xet_chore_t *chore,
    ngx_http_xet_ask_t *ask);
static void ngx_http_xet_gc_orphans_take_job(void *data, ngx_log_t *log);
static void ngx_http_xet_gc_orphans_taken(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_gc_orphans_ask(ngx_http_xet_chore_t *chore,
    ngx_http_xet_orphan_t *orphans, ngx_uint_t n, ngx_uint_t aside,
    ngx_http_xet_chore_answer_pt answer);
static ngx_uint_t ngx_http_xet_gc_orphans_in(ngx_http_xet_ask_t *ask,
    ngx_uint_t *at, const ngx_http_xet_orphan_t *orphan);
static void ngx_http_xet_gc_orphans_sure(ngx_http_xet_chore_t *chore,
    ngx_http_xet_ask_t *ask);
static void ngx_http_xet_gc_orphans_settle_job(void *data, ngx_log_t *log);
static void ngx_http_xet_gc_orphans_settled(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_gc_orphans_swept(ngx_http_xet_chore_t *chore,
    ngx_http_xet_ask_t *ask);


void
ngx_http_xet_gc_orphans_begin(ngx_http_xet_gc_t *gc, ngx_int_t folder)
{
    ngx_http_xet_orphans_t  *o;

    o = &gc->orphans;

    gc->begun = (folder >= 0 && folder < NGX_HTTP_XET_ORPHANS_FOLDERS);

    o->store = gc->store;
    o->folder = NGX_HTTP_XET_ORPHANS_ASIDE;
    o->first = gc->begun ? folder : 0;
}


void
ngx_http_xet_gc_orphans_step(ngx_http_xet_chore_t *chore)
{
    ngx_int_t                rc;
    ngx_http_xet_gc_t       *gc;
    ngx_http_xet_orphans_t  *o;

    gc = chore->data;
    o = &gc->orphans;

    if (!gc->due) {
        rc = ngx_http_xet_query_orphans_due(gc->begun,
                                            ngx_http_xet_chore_answer, chore);
        ngx_http_xet_chore_sent(chore, rc, ngx_http_xet_gc_orphans_due);

    } else if (o->i < o->n) {
        ngx_http_xet_chore_job(chore, ngx_http_xet_gc_orphans_take_job,
                               ngx_http_xet_gc_orphans_taken);

    } else if (o->folder < NGX_HTTP_XET_ORPHANS_FOLDERS) {
        ngx_http_xet_gc_orphans_cursor(chore);
        ngx_http_xet_chore_job(chore, ngx_http_xet_gc_orphans_list_job,
                               ngx_http_xet_gc_orphans_listed);

    } else {

        /* another worker has counted a part of those that are left */

        rc = ngx_http_xet_query_orphans_swept(gc->begun ? -1 : gc->left,
                                              ngx_http_xet_chore_answer,
                                              chore);
        ngx_http_xet_chore_sent(chore, rc, ngx_http_xet_gc_orphans_swept);
    }
}


static void
ngx_http_xet_gc_orphans_due(ngx_http_xet_chore_t *chore,
    ngx_http_xet_ask_t *ask)
{
    ngx_int_t                rc;
    ngx_str_t                why;
    ngx_http_xet_gc_t       *gc;
    ngx_http_xet_orphans_t  *o;

    gc = chore->data;
    o = &gc->orphans;

    rc = ngx_http_xet_query_orphans_due_row(ask, &o->since, &o->newest, &why);

    if (rc != NGX_OK) {

        if (rc == NGX_ABORT) {
            ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                          "xet: no file is removed from the store: %V", &why);
            ngx_http_xet_chore_note(chore, "no file is removed, %V", &why);

        } else if (why.len) {
            ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                          "xet: files without a row are left: %V", &why);
            ngx_http_xet_chore_note(chore, "%V, orphans are left", &why);
        }

        ngx_http_xet_chore_finish(chore);
        return;
    }

    gc->due = 1;

    ngx_http_xet_gc_orphans_cursor(chore);
    ngx_http_xet_gc_pace(chore, 0);
}


static void
ngx_http_xet_gc_orphans_cursor(ngx_http_xet_chore_t *chore)
{
    ngx_http_xet_gc_t       *gc;
    ngx_http_xet_orphans_t  *o;

    gc = chore->data;
    o = &gc->orphans;

    ngx_http_xet_chore_cursor(chore, "%d.%02xi", (int) NGX_HTTP_XET_GC_ORPHANS,
                              ngx_max(o->folder, o->first));
}


static void
ngx_http_xet_gc_orphans_list_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_gc_t *gc = data;

    gc->status = ngx_http_xet_orphans_list_job(&gc->orphans, gc->batch,
                                               log);
}


static void
ngx_http_xet_gc_orphans_listed(ngx_http_xet_chore_t *chore)
{
    ngx_http_xet_gc_t       *gc;
    ngx_http_xet_orphans_t  *o;

    gc = chore->data;
    o = &gc->orphans;

    gc->left += (int64_t) o->found;
    o->found = 0;

    ngx_http_xet_count_at(GRANTS, NGX_HTTP_XET_GRANT_SWEPT, o->staged);
    o->staged = 0;

    if (gc->status != XET_OK) {
        ngx_http_xet_gc_stuck(chore, "the store can't be listed");
        return;
    }

    if (o->n == 0) {
        ngx_http_xet_gc_pace(chore, 0);
        return;
    }

    ngx_http_xet_gc_orphans_ask(chore, o->names, o->n, 0,
                                ngx_http_xet_gc_orphans_suspect);
}


static void
ngx_http_xet_gc_orphans_ask(ngx_http_xet_chore_t *chore,
    ngx_http_xet_orphan_t *orphans, ngx_uint_t n, ngx_uint_t aside,
    ngx_http_xet_chore_answer_pt answer)
{
    ngx_uint_t          i;
    ngx_http_xet_gc_t  *gc;

    gc = chore->data;

    for (i = 0; i < n; i++) {
        gc->copies[i].xorb = orphans[i].xorb;
        gc->copies[i].tag = orphans[i].tag;
    }

    ngx_http_xet_chore_sent(chore,
                            ngx_http_xet_query_orphans(
                                gc->copies, n, aside,
                                ngx_http_xet_chore_answer, chore),
                            answer);
}


/*
 * Whether the copy is in the rows; *at is the row behind the last one that was
 * found, since they mostly come in the order of the question.
 */

static ngx_uint_t
ngx_http_xet_gc_orphans_in(ngx_http_xet_ask_t *ask, ngx_uint_t *at,
    const ngx_http_xet_orphan_t *orphan)
{
    ngx_uint_t              i, k, n;
    ngx_http_xet_copy_name_t  copy;

    n = ngx_http_xet_ask_rows(ask);

    for (k = 0; k < n; k++) {
        i = (*at + k) % n;

        if (ngx_http_xet_query_gc_copy(ask, i, &copy) == NGX_OK
            && copy.tag == orphan->tag
            && ngx_memcmp(copy.xorb.bytes, orphan->xorb.bytes, XET_HASH_LEN)
               == 0)
        {
            *at = i + 1;
            return 1;
        }
    }

    return 0;
}


static void
ngx_http_xet_gc_orphans_suspect(ngx_http_xet_chore_t *chore,
    ngx_http_xet_ask_t *ask)
{
    ngx_uint_t               i, at;
    ngx_http_xet_gc_t       *gc;
    ngx_http_xet_orphans_t  *o;

    gc = chore->data;
    o = &gc->orphans;

    at = 0;

    for (i = 0; i < o->n; i++) {
        if (ngx_http_xet_gc_orphans_in(ask, &at, &o->names[i])) {
            o->names[i].suspect = 1;
        }
    }

    ngx_http_xet_gc_pace(chore, o->n);
}


static void
ngx_http_xet_gc_orphans_take_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_gc_t *gc = data;

    gc->status = ngx_http_xet_orphans_take_job(&gc->orphans, log);
}


/* Where a job has failed, what it has aside by then is for the next sweep. */

static void
ngx_http_xet_gc_orphans_taken(ngx_http_xet_chore_t *chore)
{
    ngx_http_xet_gc_t       *gc;
    ngx_http_xet_orphans_t  *o;

    gc = chore->data;
    o = &gc->orphans;

    gc->left += (int64_t) o->found;
    o->found = 0;

    if (gc->status != XET_OK) {
        ngx_http_xet_gc_stuck(chore, "files without a row can't be taken "
                                     "aside");
        return;
    }

    if (o->ntaken == 0) {
        ngx_http_xet_gc_pace(chore, 0);
        return;
    }

    ngx_http_xet_gc_orphans_ask(chore, o->taken, o->ntaken, 1,
                                ngx_http_xet_gc_orphans_sure);
}


static void
ngx_http_xet_gc_orphans_sure(ngx_http_xet_chore_t *chore,
    ngx_http_xet_ask_t *ask)
{
    ngx_uint_t               i, at;
    ngx_http_xet_gc_t       *gc;
    ngx_http_xet_orphans_t  *o;

    gc = chore->data;
    o = &gc->orphans;

    at = 0;

    for (i = 0; i < o->ntaken; i++) {
        o->taken[i].removable = ngx_http_xet_gc_orphans_in(ask, &at,
                                                           &o->taken[i]) != 0;
    }

    ngx_http_xet_chore_job(chore, ngx_http_xet_gc_orphans_settle_job,
                           ngx_http_xet_gc_orphans_settled);
}


static void
ngx_http_xet_gc_orphans_settle_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_gc_t *gc = data;

    gc->status = ngx_http_xet_orphans_settle_job(&gc->orphans, log);
}


static void
ngx_http_xet_gc_orphans_settled(ngx_http_xet_chore_t *chore)
{
    ngx_uint_t               back, n;
    ngx_http_xet_gc_t       *gc;
    ngx_http_xet_orphans_t  *o;

    gc = chore->data;
    o = &gc->orphans;

    ngx_http_xet_chore_count(chore, NGX_HTTP_XET_GC_N_ORPHANS,
                             (int64_t) o->removed);
    ngx_http_xet_chore_count(chore, NGX_HTTP_XET_GC_N_ORPHAN_BYTES,
                             (int64_t) o->bytes);

    gc->left -= (int64_t) o->removed;
    back = o->back;
    n = o->ntaken;

    o->removed = 0;
    o->bytes = 0;
    o->back = 0;
    o->ntaken = 0;

    if (gc->status != XET_OK) {
        ngx_http_xet_gc_stuck(chore, "files without a row can't be removed");
        return;
    }

    if (back) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "xet: files without a row are left: %ui may not be "
                      "removed any more", back);
        ngx_http_xet_chore_note(chore, "orphans are left: %ui may not be "
                                "removed any more", back);
        ngx_http_xet_chore_finish(chore);
        return;
    }

    ngx_http_xet_gc_pace(chore, n);
}


static void
ngx_http_xet_gc_orphans_swept(ngx_http_xet_chore_t *chore,
    ngx_http_xet_ask_t *ask)
{
    ngx_http_xet_chore_finish(chore);
}
