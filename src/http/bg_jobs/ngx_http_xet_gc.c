
/*
 * The background job "gc" deletes files and xorbs that are no longer used.
 * SQL functions decide what is unused, one batch per statement (sql/gc.sql,
 * "The collector").
 *
 *     files     (query)   deletes files that no repo has, and their references
 *     xorbs     (query)   deletes xorbs that were unused for the grace period
 *     settle    (query)   charges xorbs to their users: xet.usage_settle()
 *     copies    (query)   lists copies whose rows are deleted, from notes in
 *                         xet.gc_copies
 *     remove    (thread)  removes their files, and syncs the folders
 *     removed   (query)   deletes the notes of these copies
 *     orphans   (ngx_http_xet_gc_orphans.c)  removes files without a row
 *
 * A phase ends when a batch finds nothing to do; locked rows are left for the
 * next run.  Each copy is deleted in this order: row, file, note.  So after a
 * crash every row still has its file, and a note remains for every file.
 * Several collectors may run at the same time.  A file that another collector
 * has removed is not an error, and each note is counted once.
 *
 * The state belongs to the thread while a thread job runs, otherwise to the
 * event loop.  The cursor is the number of the phase; in the phase orphans, a
 * dot and the current folder follow.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_gc.h"


static ngx_msec_t ngx_http_xet_gc_interval(ngx_http_xet_main_conf_t *xmcf);
static ngx_int_t ngx_http_xet_gc_begin(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_gc_step(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_gc_end(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_gc_phase(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_gc_e phase);
static void ngx_http_xet_gc_files(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask);
static void ngx_http_xet_gc_xorbs(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask);
static void ngx_http_xet_gc_batch(ngx_http_xet_bg_job_t *bg_job, uint64_t seen,
    uint64_t busy);
static void ngx_http_xet_gc_settled(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask);
static void ngx_http_xet_gc_copies(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask);
static void ngx_http_xet_gc_remove_job(void *data, ngx_log_t *log);
static void ngx_http_xet_gc_gone(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_gc_removed(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask);


const ngx_http_xet_bg_job_kind_t  ngx_http_xet_gc = {
    ngx_string("gc"),
    { "files", "file_bytes", "references", "xorbs", "xorb_bytes", "advertised",
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
ngx_http_xet_gc_begin(ngx_http_xet_bg_job_t *bg_job)
{
    int64_t                    phase;
    ngx_str_t                  folder;
    ngx_http_xet_gc_t         *gc;
    ngx_http_xet_main_conf_t  *xmcf;

    gc = bg_job->data;
    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    phase = ngx_http_xet_bg_job_at(bg_job, &folder);

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
ngx_http_xet_gc_end(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_http_xet_gc_t *gc = bg_job->data;

    ngx_http_xet_orphans_close(&gc->orphans);

    ngx_http_xet_array_destroy(&gc->hashes);
    ngx_http_xet_array_destroy(&gc->copy_ids);
}


static void
ngx_http_xet_gc_step(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_http_xet_gc_t         *gc;
    ngx_http_xet_main_conf_t  *xmcf;

    gc = bg_job->data;
    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    switch (gc->phase) {

    case NGX_HTTP_XET_GC_FILES:
        ngx_http_xet_bg_job_ask(bg_job, gc_files, ngx_http_xet_gc_files,
                                .batch = gc->batch);
        break;

    case NGX_HTTP_XET_GC_XORBS:
        ngx_http_xet_bg_job_ask(bg_job, gc_xorbs, ngx_http_xet_gc_xorbs,
                                .grace = xmcf->gc_grace, .batch = gc->batch);
        break;

    case NGX_HTTP_XET_GC_SETTLE:
        ngx_http_xet_bg_job_ask(bg_job, usage_settle, ngx_http_xet_gc_settled,
                                .batch = gc->batch);
        break;

    case NGX_HTTP_XET_GC_REMOVAL:
        ngx_http_xet_bg_job_ask(bg_job, gc_copies, ngx_http_xet_gc_copies,
                                .batch = NGX_HTTP_XET_GC_COPIES);
        break;

    default: /* NGX_HTTP_XET_GC_ORPHANS */
        ngx_http_xet_gc_orphans_step(bg_job);
    }
}


/* Sets the phase for the next step. */

static void
ngx_http_xet_gc_phase(ngx_http_xet_bg_job_t *bg_job, ngx_http_xet_gc_e phase)
{
    ngx_http_xet_gc_t *gc = bg_job->data;

    gc->phase = phase;

    ngx_http_xet_bg_job_cursor(bg_job, "%d", (int) phase);
}


static void
ngx_http_xet_gc_files(ngx_http_xet_bg_job_t *bg_job, ngx_http_xet_ask_t *ask)
{
    ngx_http_xet_gc_files_row_t  row;

    (void) ngx_http_xet_row_gc_files(ask->res, 0, &row);

    ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_GC_N_FILES, row.files);
    ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_GC_N_FILE_BYTES, row.bytes);
    ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_GC_N_REFERENCES, row.refs);

    ngx_http_xet_gc_batch(bg_job, row.seen, row.busy);
}


static void
ngx_http_xet_gc_xorbs(ngx_http_xet_bg_job_t *bg_job, ngx_http_xet_ask_t *ask)
{
    ngx_http_xet_gc_xorbs_row_t  row;

    (void) ngx_http_xet_row_gc_xorbs(ask->res, 0, &row);

    ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_GC_N_XORBS, row.xorbs);
    ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_GC_N_XORB_BYTES, row.bytes);
    ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_GC_N_ADVERTISED,
                              row.advertised);
    ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_GC_N_NEEDED, row.needed);

    ngx_http_xet_gc_batch(bg_job, row.seen, row.busy);
}


static void
ngx_http_xet_gc_batch(ngx_http_xet_bg_job_t *bg_job, uint64_t seen,
    uint64_t busy)
{
    ngx_http_xet_gc_t *gc = bg_job->data;

    if (seen <= busy) {
        ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_GC_N_BUSY, busy);
        ngx_http_xet_gc_phase(bg_job, gc->phase + 1);
    }

    ngx_http_xet_bg_job_pace(bg_job, seen, gc->rate);
}


static void
ngx_http_xet_gc_settled(ngx_http_xet_bg_job_t *bg_job, ngx_http_xet_ask_t *ask)
{
    int64_t             n;
    ngx_http_xet_gc_t  *gc;

    gc = bg_job->data;
    n = ngx_http_xet_ask_number(ask);

    if (n <= 0) {
        n = 0;
        ngx_http_xet_gc_phase(bg_job, NGX_HTTP_XET_GC_REMOVAL);
    }

    ngx_http_xet_bg_job_pace(bg_job, (uint64_t) n, gc->rate);
}


static void
ngx_http_xet_gc_copies(ngx_http_xet_bg_job_t *bg_job, ngx_http_xet_ask_t *ask)
{
    ngx_uint_t                     i, n;
    ngx_http_xet_gc_t             *gc;
    ngx_http_xet_gc_copies_row_t   row;

    n = ngx_http_xet_ask_rows(ask);

    if (n == 0) {

        /* no copies are left to remove, or a running backup needs them */

        ngx_http_xet_gc_phase(bg_job, NGX_HTTP_XET_GC_ORPHANS);
        ngx_http_xet_bg_job_next(bg_job, 0);
        return;
    }

    gc = bg_job->data;
    gc->n = 0;

    ngx_http_xet_array_reset(&gc->hashes);
    ngx_http_xet_array_reset(&gc->copy_ids);

    for (i = 0; i < n && gc->n < NGX_HTTP_XET_GC_COPIES; i++) {

        if (ngx_http_xet_row_gc_copies(ask->res, i, &row) != NGX_OK) {
            continue;
        }

        gc->copies[gc->n].xorb = *row.hash;
        gc->copies[gc->n].copy_id = row.copy_id;
        gc->n++;

        ngx_http_xet_array_bytes(&gc->hashes, row.hash->bytes, XET_HASH_LEN);
        ngx_http_xet_array_int4(&gc->copy_ids, (int32_t) row.copy_id);
    }

    ngx_http_xet_bg_job_job(bg_job, ngx_http_xet_gc_remove_job,
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
ngx_http_xet_gc_gone(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_http_xet_gc_t *gc = bg_job->data;

    /* retry from the first phase, so that unused rows are still deleted */

    if (gc->status != XET_OK) {
        ngx_http_xet_gc_phase(bg_job, NGX_HTTP_XET_GC_FILES);
        ngx_http_xet_bg_job_failed(bg_job, gc->status,
                                  "copies can't be removed");
        return;
    }

    ngx_http_xet_bg_job_ask(bg_job, gc_removed, ngx_http_xet_gc_removed,
                            .hashes = &gc->hashes, .copy_ids = &gc->copy_ids);
}


static void
ngx_http_xet_gc_removed(ngx_http_xet_bg_job_t *bg_job, ngx_http_xet_ask_t *ask)
{
    ngx_http_xet_gc_t              *gc;
    ngx_http_xet_gc_removed_row_t   row;

    gc = bg_job->data;

    (void) ngx_http_xet_row_gc_removed(ask->res, 0, &row);

    ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_GC_N_COPIES, row.copies);
    ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_GC_N_COPY_BYTES, row.bytes);

    ngx_http_xet_bg_job_pace(bg_job, gc->n, gc->rate);
}
