
/*
 * The chore "gc": deletes what nobody needs.  What that is, and what somebody
 * is about to need, PostgreSQL decides, a batch a statement (sql/gc.sql,
 * "The collector").
 *
 *     files     (query)   files that nobody has, with their references
 *     xorbs     (query)   xorbs that no file has needed for the grace
 *     settle    (query)   who pays for what is left, see xet.usage_settle()
 *     copies    (query)   copies whose rows are gone
 *     remove    (thread)  removes their files, and syncs the folders
 *     removed   (query)   drops the notes of these copies
 *     orphans   (ngx_http_xet_gc_orphans.c)  files that never had a row
 *
 * A batch in which nothing could be done ends its phase; what others have
 * locked is for the next run.  The order of a copy is: its row, its file, its
 * note; so whatever dies, no row leads to nothing and no file is forgotten.
 * Any number of collectors may be at work: a file that another one has removed
 * is no error, and notes count once.
 *
 * The state belongs to the thread while a job runs, else to the event loop.
 * The cursor is the phase, and behind a dot the folder of orphans.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_gc.h"


static ngx_msec_t ngx_http_xet_gc_interval(ngx_http_xet_main_conf_t *xmcf);
static ngx_int_t ngx_http_xet_gc_begin(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_gc_step(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_gc_end(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_gc_rows(ngx_http_xet_chore_t *chore,
    ngx_http_xet_ask_t *ask);
static void ngx_http_xet_gc_settled(ngx_http_xet_chore_t *chore,
    ngx_http_xet_ask_t *ask);
static void ngx_http_xet_gc_copies(ngx_http_xet_chore_t *chore,
    ngx_http_xet_ask_t *ask);
static void ngx_http_xet_gc_remove_job(void *data, ngx_log_t *log);
static void ngx_http_xet_gc_gone(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_gc_removed(ngx_http_xet_chore_t *chore,
    ngx_http_xet_ask_t *ask);


const ngx_http_xet_chore_kind_t  ngx_http_xet_gc = {
    ngx_string("gc"),
    { "files", "file_bytes", "references", "xorbs", "xorb_bytes", "told",
      "needed", "busy", "copies", "copy_bytes", "orphans", "orphan_bytes",
      NULL },
    ngx_http_xet_gc_interval,
    sizeof(ngx_http_xet_gc_t),
    ngx_http_xet_gc_begin,
    ngx_http_xet_gc_step,
    ngx_http_xet_gc_end
};


static ngx_msec_t
ngx_http_xet_gc_interval(ngx_http_xet_main_conf_t *xmcf)
{
    return xmcf->gc ? xmcf->gc_interval : 0;
}


static ngx_int_t
ngx_http_xet_gc_begin(ngx_http_xet_chore_t *chore)
{
    int64_t                    phase;
    ngx_str_t                  folder;
    ngx_http_xet_gc_t         *gc;
    ngx_http_xet_main_conf_t  *xmcf;

    gc = chore->data;
    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    phase = ngx_http_xet_chore_at(chore, &folder);

    gc->phase = (phase <= NGX_HTTP_XET_GC_ORPHANS) ? phase
                : NGX_HTTP_XET_GC_FILES;
    gc->rate = xmcf->gc_rate;
    gc->batch = ngx_min(gc->rate, NGX_HTTP_XET_GC_BATCH);
    gc->store = xmcf->store;

    ngx_http_xet_gc_orphans_begin(gc, folder.data
                                      ? ngx_hextoi(folder.data, folder.len)
                                      : NGX_ERROR);

    return NGX_OK;
}


static void
ngx_http_xet_gc_end(ngx_http_xet_chore_t *chore)
{
    ngx_http_xet_gc_t  *gc;

    gc = chore->data;

    ngx_http_xet_orphans_close(&gc->orphans);
}


static void
ngx_http_xet_gc_step(ngx_http_xet_chore_t *chore)
{
    ngx_int_t                      rc;
    ngx_http_xet_gc_t             *gc;
    ngx_http_xet_main_conf_t      *xmcf;
    ngx_http_xet_chore_answer_pt   answer;

    gc = chore->data;
    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    switch (gc->phase) {

    case NGX_HTTP_XET_GC_FILES:
        answer = ngx_http_xet_gc_rows;
        rc = ngx_http_xet_query_gc_files(gc->batch, ngx_http_xet_chore_answer,
                                         chore);
        break;

    case NGX_HTTP_XET_GC_XORBS:
        answer = ngx_http_xet_gc_rows;
        rc = ngx_http_xet_query_gc_xorbs(xmcf->gc_grace, gc->batch,
                                         ngx_http_xet_chore_answer, chore);
        break;

    case NGX_HTTP_XET_GC_SETTLE:
        answer = ngx_http_xet_gc_settled;
        rc = ngx_http_xet_query_usage_settle(gc->batch,
                                             ngx_http_xet_chore_answer, chore);
        break;

    case NGX_HTTP_XET_GC_REMOVAL:
        answer = ngx_http_xet_gc_copies;
        rc = ngx_http_xet_query_gc_copies(NGX_HTTP_XET_GC_COPIES,
                                          ngx_http_xet_chore_answer, chore);
        break;

    default: /* NGX_HTTP_XET_GC_ORPHANS */
        ngx_http_xet_gc_orphans_step(chore);
        return;
    }

    ngx_http_xet_chore_sent(chore, rc, answer);
}


static void
ngx_http_xet_gc_rows(ngx_http_xet_chore_t *chore, ngx_http_xet_ask_t *ask)
{
    ngx_http_xet_gc_t      *gc;
    ngx_http_xet_gc_row_t   row;

    gc = chore->data;

    ngx_http_xet_query_gc_row(ask, &row);

    if (gc->phase == NGX_HTTP_XET_GC_FILES) {
        ngx_http_xet_chore_count(chore, NGX_HTTP_XET_GC_N_FILES, row.n);
        ngx_http_xet_chore_count(chore, NGX_HTTP_XET_GC_N_FILE_BYTES,
                                 row.bytes);
        ngx_http_xet_chore_count(chore, NGX_HTTP_XET_GC_N_REFERENCES,
                                 row.more);

    } else {
        ngx_http_xet_chore_count(chore, NGX_HTTP_XET_GC_N_XORBS, row.n);
        ngx_http_xet_chore_count(chore, NGX_HTTP_XET_GC_N_XORB_BYTES,
                                 row.bytes);
        ngx_http_xet_chore_count(chore, NGX_HTTP_XET_GC_N_TOLD, row.more);
        ngx_http_xet_chore_count(chore, NGX_HTTP_XET_GC_N_NEEDED, row.needed);
    }

    if (row.seen <= row.busy) {
        ngx_http_xet_chore_count(chore, NGX_HTTP_XET_GC_N_BUSY, row.busy);
        ngx_http_xet_gc_phase(chore, gc->phase + 1);
    }

    ngx_http_xet_gc_pace(chore, row.seen);
}


static void
ngx_http_xet_gc_settled(ngx_http_xet_chore_t *chore, ngx_http_xet_ask_t *ask)
{
    int64_t  n;

    n = ngx_http_xet_ask_number(ask);

    if (n <= 0) {
        n = 0;
        ngx_http_xet_gc_phase(chore, NGX_HTTP_XET_GC_REMOVAL);
    }

    ngx_http_xet_gc_pace(chore, (uint64_t) n);
}


static void
ngx_http_xet_gc_copies(ngx_http_xet_chore_t *chore, ngx_http_xet_ask_t *ask)
{
    ngx_uint_t          i, n;
    ngx_http_xet_gc_t  *gc;

    n = ngx_http_xet_ask_rows(ask);

    if (n == 0) {

        /* there are none, or a backup needs them for the time being */

        ngx_http_xet_gc_phase(chore, NGX_HTTP_XET_GC_ORPHANS);
        ngx_http_xet_gc_pace(chore, 0);
        return;
    }

    gc = chore->data;
    gc->n = 0;

    for (i = 0; i < n && gc->n < NGX_HTTP_XET_GC_COPIES; i++) {
        if (ngx_http_xet_query_gc_copy(ask, i, &gc->copies[gc->n]) == NGX_OK) {
            gc->n++;
        }
    }

    ngx_http_xet_chore_job(chore, ngx_http_xet_gc_remove_job,
                           ngx_http_xet_gc_gone);
}


static void
ngx_http_xet_gc_remove_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_gc_t *gc = data;

    gc->status = ngx_http_xet_store_remove_all_job(gc->store, gc->copies,
                                                   gc->n, log);
}


static void
ngx_http_xet_gc_gone(ngx_http_xet_chore_t *chore)
{
    ngx_http_xet_gc_t  *gc;

    gc = chore->data;

    if (gc->status != XET_OK) {
        ngx_http_xet_gc_stuck(chore, "copies can't be removed");
        return;
    }

    ngx_http_xet_chore_sent(chore,
                            ngx_http_xet_query_gc_removed(
                                gc->copies, gc->n, ngx_http_xet_chore_answer,
                                chore),
                            ngx_http_xet_gc_removed);
}


static void
ngx_http_xet_gc_removed(ngx_http_xet_chore_t *chore, ngx_http_xet_ask_t *ask)
{
    uint64_t            n, bytes;
    ngx_http_xet_gc_t  *gc;

    gc = chore->data;

    ngx_http_xet_query_gc_removed_row(ask, &n, &bytes);

    ngx_http_xet_chore_count(chore, NGX_HTTP_XET_GC_N_COPIES, n);
    ngx_http_xet_chore_count(chore, NGX_HTTP_XET_GC_N_COPY_BYTES, bytes);

    ngx_http_xet_gc_pace(chore, gc->n);
}
