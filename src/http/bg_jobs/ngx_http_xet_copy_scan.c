
/*
 * Scans the copies of xorbs that have a row, in the order of the rows.
 *
 *     rows    (query)   fetches the next rows; the scan ends if there are none
 *     read    (thread)  reads a piece of a copy, and pauses to stay within the
 *                       rate limit, until the whole copy is read
 *     judge             callback of the background job, for an intact or a
 *                       damaged copy
 *
 * The cursor is the last row that is done.  If the worker exits while it reads
 * a copy, the next worker reads this copy from the beginning.
 *
 * If one copy can't be read, the error is logged and counted, and the copy is
 * skipped.  If several consecutive copies can't be read, the scan goes back
 * and waits.  It also waits if the cause is not the copy (wrong store, no
 * descriptors, no memory).  If these copies still can't be read, but the
 * identity of the store can, they are skipped too.  A "." after the cursor
 * records that these copies were tried before.
 *
 * The structure belongs to the event loop; a running thread job owns scan,
 * taken, limit and status.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_copy_scan.h"


#define NGX_HTTP_XET_COPY_SCAN_UNREADS    8
#define NGX_HTTP_XET_COPY_SCAN_LIMIT_MIN  (64 * 1024)
#define NGX_HTTP_XET_COPY_SCAN_LIMIT_MAX  (4 * 1024 * 1024)
#define NGX_HTTP_XET_COPY_SCAN_DRY        10        /* wait for slow peer, ms */
#define NGX_HTTP_XET_COPY_SCAN_COPY       4096      /* bytes added per copy */


static void ngx_http_xet_copy_scan_rows(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask);
static ngx_int_t ngx_http_xet_copy_scan_row(ngx_http_xet_ask_t *ask, ngx_uint_t
    i, ngx_http_xet_copy_scan_row_t *row);
static void ngx_http_xet_copy_scan_read(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_copy_scan_job(void *data, ngx_log_t *log);
static void ngx_http_xet_copy_scan_done(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_copy_scan_unread(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_copy_scan_left(ngx_http_xet_bg_job_t *bg_job);


void
ngx_http_xet_copy_scan_begin(ngx_http_xet_bg_job_t *bg_job, ngx_uint_t damaged,
    void (*judge)(ngx_http_xet_bg_job_t *bg_job, xet_status_t status))
{
    off_t                      limit;
    ngx_str_t                  again;
    ngx_http_xet_copy_scan_t  *scan;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    scan = bg_job->data;

    /* several thread jobs a second, so that the rate of reading is even */

    limit = xmcf->scrub_rate / 8;
    limit = ngx_max(limit, NGX_HTTP_XET_COPY_SCAN_LIMIT_MIN);

    scan->limit = (size_t) ngx_min(limit, NGX_HTTP_XET_COPY_SCAN_LIMIT_MAX);
    scan->bg_job = bg_job;
    scan->judge = judge;
    scan->damaged = damaged;
    scan->due = ngx_current_msec;

    scan->after = ngx_http_xet_bg_job_at(bg_job, &again);
    scan->again = again.data ? NGX_HTTP_XET_COPY_SCAN_UNREADS : 0;
}


void
ngx_http_xet_copy_scan_end(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_http_xet_copy_scan_drop(bg_job->data);
}


/*
 * Drops the copy that is being read or made.  An unfinished file needs no
 * removal: it has a name only if a row may refer to it.
 */

void
ngx_http_xet_copy_scan_drop(ngx_http_xet_copy_scan_t *scan)
{
    ngx_http_xet_scan_destroy(&scan->scan);

    scan->copy = NULL;

    if (scan->pool) {
        ngx_destroy_pool(scan->pool);
        scan->pool = NULL;
    }
}


void
ngx_http_xet_copy_scan_step(ngx_http_xet_bg_job_t *bg_job)
{
    int64_t                    after;
    ngx_http_xet_copy_scan_t  *scan;

    scan = bg_job->data;

    if (scan->i < scan->n) {
        ngx_http_xet_copy_scan_read(bg_job);
        return;
    }

    after = scan->n ? scan->rows[scan->n - 1].id : scan->after;

    if (scan->damaged) {
        ngx_http_xet_bg_job_ask(bg_job, heal_next, ngx_http_xet_copy_scan_rows,
                                .after = (uint64_t) after);

    } else {
        ngx_http_xet_bg_job_ask(bg_job, scrub_next, ngx_http_xet_copy_scan_rows,
                                .after = (uint64_t) after);
    }
}


static void
ngx_http_xet_copy_scan_rows(ngx_http_xet_bg_job_t *bg_job, ngx_http_xet_ask_t
    *ask)
{
    ngx_uint_t                 i;
    ngx_http_xet_copy_scan_t  *scan;

    scan = bg_job->data;

    scan->i = 0;
    scan->n = ngx_min(ngx_http_xet_ask_rows(ask), NGX_HTTP_XET_COPY_SCAN_ROWS);

    if (scan->n == 0) {
        ngx_http_xet_copy_scan_left(bg_job);
        ngx_http_xet_bg_job_finish(bg_job);
        return;
    }

    for (i = 0; i < scan->n; i++) {

        if (ngx_http_xet_copy_scan_row(ask, i, &scan->rows[i]) != NGX_OK) {
            ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                          "xet: row %L of xet.xorbs is malformed",
                          scan->rows[i].id);

            ngx_http_xet_bg_job_retry(bg_job, "a row is malformed");
            return;
        }
    }

    ngx_http_xet_copy_scan_read(bg_job);
}


/*
 * Converts row i of scrub_next or heal_next, which have the same columns.
 * Returns NGX_OK, or NGX_ERROR for a malformed row; row->id is always set.
 */

static ngx_int_t
ngx_http_xet_copy_scan_row(ngx_http_xet_ask_t *ask, ngx_uint_t i,
    ngx_http_xet_copy_scan_row_t *row)
{
    ngx_int_t                      rc;
    ngx_http_xet_scrub_next_row_t  next;

    ngx_memzero(row, sizeof(ngx_http_xet_copy_scan_row_t));

    rc = ngx_http_xet_row_scrub_next(ask->res, i, &next);

    row->id = (int64_t) next.id;
    row->copy_id = next.copy_id;
    row->size = next.stored_size;

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    row->xorb = *next.hash;

    if (next.digest.len == XET_CHECKSUM_LEN) {
        ngx_memcpy(row->digest.bytes, next.digest.data, XET_CHECKSUM_LEN);
        row->digested = 1;
        return NGX_OK;
    }

    if (next.ends_sha256.len != sizeof(row->ends)) {
        return NGX_ERROR;
    }

    ngx_memcpy(row->ends, next.ends_sha256.data, sizeof(row->ends));

    return NGX_OK;
}


static void
ngx_http_xet_copy_scan_read(ngx_http_xet_bg_job_t *bg_job)
{
    xet_status_t                   rc;
    ngx_http_xet_copy_scan_t      *scan;
    ngx_http_xet_copy_scan_row_t  *row;
    ngx_http_xet_main_conf_t      *xmcf;

    scan = bg_job->data;

    if (!scan->begun) {
        xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                                   ngx_http_xet_module);
        row = &scan->rows[scan->i];

        rc = ngx_http_xet_scan_copy(&scan->scan, xmcf->store, &row->xorb,
                                    row->copy_id, row->size,
                                    row->digested ? &row->digest : NULL,
                                    row->ends);
        if (rc != XET_OK) {
            ngx_http_xet_copy_scan_failed(bg_job, rc);
            return;
        }

        scan->begun = 1;
        scan->rest += NGX_HTTP_XET_COPY_SCAN_COPY;
    }

    ngx_http_xet_bg_job_job(bg_job, ngx_http_xet_copy_scan_job,
                            ngx_http_xet_copy_scan_done);
}


static void
ngx_http_xet_copy_scan_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_copy_scan_t *scan = data;

    scan->taken = 0;
    scan->status = ngx_http_xet_scan_job(&scan->scan, scan->limit,
                                         &scan->taken, log);

    scan->answers = (scan->status == XET_STORE_FAILED && scan->copy == NULL
                     && ngx_http_xet_store_identity_look_job(
                                                        scan->scan.store, log)
                        == XET_OK);
}


static void
ngx_http_xet_copy_scan_done(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_msec_t                 wait, least;
    ngx_http_xet_copy_scan_t  *scan;

    scan = bg_job->data;

    /* wait here for a slow peer, so that no thread is blocked */

    least = (scan->scan.fetch && scan->taken < NGX_HTTP_XET_FETCH_LITTLE)
            ? NGX_HTTP_XET_COPY_SCAN_DRY : 0;

    wait = ngx_http_xet_copy_scan_pace(scan);
    wait = ngx_max(wait, least);

    if (scan->status == XET_AGAIN) {
        ngx_http_xet_bg_job_next(bg_job, wait);
        return;
    }

    /* "heal" also replaces a damaged copy that can't be read */

    if (scan->copy || (scan->damaged && scan->status == XET_STORE_FAILED)) {
        scan->judge(bg_job, scan->status);
        return;
    }

    switch (scan->status) {

    case XET_OK:
    case XET_STORE_DAMAGED:
        scan->again = 0;
        ngx_http_xet_copy_scan_left(bg_job);
        ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_COPY_SCAN_COPIES, 1);

        scan->judge(bg_job, scan->status);
        return;

    case XET_STORE_FAILED:
        ngx_http_xet_copy_scan_unread(bg_job);
        return;

    default:
        ngx_http_xet_copy_scan_failed(bg_job, scan->status);
    }
}


/*
 * Handles a copy that can't be read.  The cursor stays before such copies
 * until another copy can be read, or until the scan has tried them a second
 * time.
 */

static void
ngx_http_xet_copy_scan_unread(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_http_xet_copy_scan_t *scan = bg_job->data;

    if (!scan->answers) {
        ngx_http_xet_bg_job_retry(bg_job, "the store can't be read");
        return;
    }

    if (scan->again) {
        scan->again--;
        ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_COPY_SCAN_UNREAD, 1);

    } else if (++scan->unread == NGX_HTTP_XET_COPY_SCAN_UNREADS) {
        ngx_http_xet_bg_job_cursor(bg_job, "%L.", scan->after);
        ngx_http_xet_bg_job_retry(bg_job, "several consecutive copies can't be "
                                        "read");
        return;
    }

    ngx_http_xet_copy_scan_next(bg_job);
}


/* Counts the copies that are skipped because they can't be read. */

static void
ngx_http_xet_copy_scan_left(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_http_xet_copy_scan_t *scan = bg_job->data;

    ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_COPY_SCAN_UNREAD,
                              (int64_t) scan->unread);
    scan->unread = 0;
}


void
ngx_http_xet_copy_scan_next(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_http_xet_copy_scan_t *scan = bg_job->data;

    ngx_http_xet_copy_scan_drop(scan);

    scan->begun = 0;

    if (scan->unread == 0) {
        scan->after = scan->rows[scan->i].id;
        ngx_http_xet_bg_job_cursor(bg_job, "%L", scan->after);
    }

    scan->i++;

    scan->taken = 0;
    ngx_http_xet_bg_job_next(bg_job, ngx_http_xet_copy_scan_pace(scan));
}


ngx_msec_t
ngx_http_xet_copy_scan_pace(ngx_http_xet_copy_scan_t *scan)
{
    ngx_msec_int_t             wait;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    ngx_http_xet_bg_job_count(scan->bg_job, NGX_HTTP_XET_COPY_SCAN_BYTES,
                              (int64_t) scan->taken);

    scan->rest += scan->taken;
    scan->taken = 0;

    scan->due += (ngx_msec_t) ((off_t) scan->rest * 1000 / xmcf->scrub_rate);
    scan->rest = (size_t) ((off_t) scan->rest * 1000 % xmcf->scrub_rate
                           / 1000);

    wait = (ngx_msec_int_t) (scan->due - ngx_current_msec);

    if (wait > 0) {
        return (ngx_msec_t) wait;
    }

    /* after a delay, do not read faster to catch up */

    scan->due = ngx_current_msec;

    return 0;
}


void
ngx_http_xet_copy_scan_failed(ngx_http_xet_bg_job_t *bg_job, xet_status_t
    status)
{
    ngx_http_xet_bg_job_failed(bg_job, status,
                              "the store is unusable; see the log");
}
