
/*
 * A pass over the copies that rows name, in the order of the rows.
 *
 *     rows    (query)   the next few rows; none: the pass is complete
 *     read    (thread)  a piece of the copy, then a pause to keep the rate,
 *                       until the whole copy was read
 *     judge             done by the chore: handles an intact or a damaged copy
 *
 * The cursor is the last row that is done.  If the worker exits while it reads
 * a copy, the copy is read again from its beginning.
 *
 * A read error that affects one copy is logged and counted, and the copy is
 * skipped.  If several consecutive copies can't be read, or if the cause is not
 * the copy (wrong store, no descriptors, no memory), the pass goes back and
 * waits.  If the same copies fail again while the identity of the store can be
 * read, they are skipped too: a "." after the cursor records the first attempt.
 *
 * The structure belongs to the event loop; a running job owns scan, taken,
 * limit and status.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pass.h"


#define NGX_HTTP_XET_PASS_UNREADS    8
#define NGX_HTTP_XET_PASS_LIMIT_MIN  (64 * 1024)
#define NGX_HTTP_XET_PASS_LIMIT_MAX  (4 * 1024 * 1024)
#define NGX_HTTP_XET_PASS_DRY        10        /* ms */
#define NGX_HTTP_XET_PASS_COPY       4096      /* overhead of a copy */


static void ngx_http_xet_pass_rows(ngx_http_xet_chore_t *chore,
    ngx_http_xet_ask_t *ask);
static ngx_int_t ngx_http_xet_pass_row(ngx_http_xet_ask_t *ask, ngx_uint_t i,
    ngx_http_xet_pass_row_t *row);
static void ngx_http_xet_pass_read(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_pass_job(void *data, ngx_log_t *log);
static void ngx_http_xet_pass_done(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_pass_unread(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_pass_left(ngx_http_xet_chore_t *chore);


void
ngx_http_xet_pass_begin(ngx_http_xet_chore_t *chore, ngx_uint_t damaged,
    void (*judge)(ngx_http_xet_chore_t *chore, xet_status_t status))
{
    off_t                      limit;
    ngx_str_t                  again;
    ngx_http_xet_pass_t       *pass;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    pass = chore->data;

    /* several jobs per second, so that the rate of reading is even */

    limit = xmcf->scrub_rate / 8;
    limit = ngx_max(limit, NGX_HTTP_XET_PASS_LIMIT_MIN);

    pass->limit = (size_t) ngx_min(limit, NGX_HTTP_XET_PASS_LIMIT_MAX);
    pass->chore = chore;
    pass->judge = judge;
    pass->damaged = damaged;
    pass->due = ngx_current_msec;

    pass->after = ngx_http_xet_chore_at(chore, &again);
    pass->again = again.data ? NGX_HTTP_XET_PASS_UNREADS : 0;
}


void
ngx_http_xet_pass_end(ngx_http_xet_chore_t *chore)
{
    ngx_http_xet_pass_drop(chore->data);
}


/* A file in progress has no name unless a row may name it. */

void
ngx_http_xet_pass_drop(ngx_http_xet_pass_t *pass)
{
    ngx_http_xet_scan_destroy(&pass->scan);

    pass->copy = NULL;

    if (pass->pool) {
        ngx_destroy_pool(pass->pool);
        pass->pool = NULL;
    }
}


void
ngx_http_xet_pass_step(ngx_http_xet_chore_t *chore)
{
    int64_t               after;
    ngx_http_xet_pass_t  *pass;

    pass = chore->data;

    if (pass->i < pass->n) {
        ngx_http_xet_pass_read(chore);
        return;
    }

    after = pass->n ? pass->rows[pass->n - 1].id : pass->after;

    if (pass->damaged) {
        ngx_http_xet_chore_ask(chore, heal_next, ngx_http_xet_pass_rows,
                               .after = (uint64_t) after);

    } else {
        ngx_http_xet_chore_ask(chore, scrub_next, ngx_http_xet_pass_rows,
                               .after = (uint64_t) after);
    }
}


static void
ngx_http_xet_pass_rows(ngx_http_xet_chore_t *chore, ngx_http_xet_ask_t *ask)
{
    ngx_uint_t            i;
    ngx_http_xet_pass_t  *pass;

    pass = chore->data;

    pass->i = 0;
    pass->n = ngx_min(ngx_http_xet_ask_rows(ask), NGX_HTTP_XET_PASS_ROWS);

    if (pass->n == 0) {
        ngx_http_xet_pass_left(chore);
        ngx_http_xet_chore_finish(chore);
        return;
    }

    for (i = 0; i < pass->n; i++) {

        if (ngx_http_xet_pass_row(ask, i, &pass->rows[i]) != NGX_OK) {
            ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                          "xet: row %L of xet.xorbs is malformed",
                          pass->rows[i].id);

            ngx_http_xet_chore_retry(chore, "a row is malformed");
            return;
        }
    }

    ngx_http_xet_pass_read(chore);
}


/*
 * The rows of scrub_next and heal_next have the same columns.  NGX_ERROR for a
 * malformed row; its id is set.
 */

static ngx_int_t
ngx_http_xet_pass_row(ngx_http_xet_ask_t *ask, ngx_uint_t i,
    ngx_http_xet_pass_row_t *row)
{
    ngx_int_t                      rc;
    ngx_http_xet_scrub_next_row_t  next;

    ngx_memzero(row, sizeof(ngx_http_xet_pass_row_t));

    rc = ngx_http_xet_row_scrub_next(ask->res, i, &next);

    row->id = (int64_t) next.id;
    row->tag = next.tag;
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
ngx_http_xet_pass_read(ngx_http_xet_chore_t *chore)
{
    xet_status_t               rc;
    ngx_http_xet_pass_t       *pass;
    ngx_http_xet_pass_row_t   *row;
    ngx_http_xet_main_conf_t  *xmcf;

    pass = chore->data;

    if (!pass->begun) {
        xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                                   ngx_http_xet_module);
        row = &pass->rows[pass->i];

        rc = ngx_http_xet_scan_copy(&pass->scan, xmcf->store, &row->xorb,
                                    row->tag, row->size,
                                    row->digested ? &row->digest : NULL,
                                    row->ends);
        if (rc != XET_OK) {
            ngx_http_xet_pass_failed(chore, rc);
            return;
        }

        pass->begun = 1;
        pass->rest += NGX_HTTP_XET_PASS_COPY;
    }

    ngx_http_xet_chore_job(chore, ngx_http_xet_pass_job,
                           ngx_http_xet_pass_done);
}


static void
ngx_http_xet_pass_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_pass_t *pass = data;

    pass->taken = 0;
    pass->status = ngx_http_xet_scan_job(&pass->scan, pass->limit,
                                         &pass->taken, log);

    pass->answers = (pass->status == XET_STORE_FAILED && pass->copy == NULL
                     && ngx_http_xet_store_identity_look_job(
                                                        pass->scan.store, log)
                        == XET_OK);
}


static void
ngx_http_xet_pass_done(ngx_http_xet_chore_t *chore)
{
    ngx_msec_t            wait, least;
    ngx_http_xet_pass_t  *pass;

    pass = chore->data;

    /* wait for a slow peer here, not in a thread */

    least = (pass->scan.fetch && pass->taken < NGX_HTTP_XET_FETCH_LITTLE)
            ? NGX_HTTP_XET_PASS_DRY : 0;

    wait = ngx_http_xet_pass_pace(pass);
    wait = ngx_max(wait, least);

    if (pass->status == XET_AGAIN) {
        ngx_http_xet_chore_next(chore, wait);
        return;
    }

    /* a marked copy that can't be read is to be healed */

    if (pass->copy || (pass->damaged && pass->status == XET_STORE_FAILED)) {
        pass->judge(chore, pass->status);
        return;
    }

    switch (pass->status) {

    case XET_OK:
    case XET_STORE_DAMAGED:
        pass->again = 0;
        ngx_http_xet_pass_left(chore);
        ngx_http_xet_chore_count(chore, NGX_HTTP_XET_PASS_COPIES, 1);

        pass->judge(chore, pass->status);
        return;

    case XET_STORE_FAILED:
        ngx_http_xet_pass_unread(chore);
        return;

    default:
        ngx_http_xet_pass_failed(chore, pass->status);
    }
}


/*
 * The cursor stays before unreadable copies until one can be read, or they were
 * tried once more.
 */

static void
ngx_http_xet_pass_unread(ngx_http_xet_chore_t *chore)
{
    ngx_http_xet_pass_t *pass = chore->data;

    if (!pass->answers) {
        ngx_http_xet_chore_retry(chore, "the store can't be read");
        return;
    }

    if (pass->again) {
        pass->again--;
        ngx_http_xet_chore_count(chore, NGX_HTTP_XET_PASS_UNREAD, 1);

    } else if (++pass->unread == NGX_HTTP_XET_PASS_UNREADS) {
        ngx_http_xet_chore_cursor(chore, "%L.", pass->after);
        ngx_http_xet_chore_retry(chore, "several consecutive copies can't be "
                                        "read");
        return;
    }

    ngx_http_xet_pass_next(chore);
}


/* The unreadable copies are skipped. */

static void
ngx_http_xet_pass_left(ngx_http_xet_chore_t *chore)
{
    ngx_http_xet_pass_t *pass = chore->data;

    ngx_http_xet_chore_count(chore, NGX_HTTP_XET_PASS_UNREAD,
                             (int64_t) pass->unread);
    pass->unread = 0;
}


void
ngx_http_xet_pass_next(ngx_http_xet_chore_t *chore)
{
    ngx_http_xet_pass_t *pass = chore->data;

    ngx_http_xet_pass_drop(pass);

    pass->begun = 0;

    if (pass->unread == 0) {
        pass->after = pass->rows[pass->i].id;
        ngx_http_xet_chore_cursor(chore, "%L", pass->after);
    }

    pass->i++;

    pass->taken = 0;
    ngx_http_xet_chore_next(chore, ngx_http_xet_pass_pace(pass));
}


ngx_msec_t
ngx_http_xet_pass_pace(ngx_http_xet_pass_t *pass)
{
    ngx_msec_int_t             wait;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    ngx_http_xet_chore_count(pass->chore, NGX_HTTP_XET_PASS_BYTES,
                             (int64_t) pass->taken);

    pass->rest += pass->taken;
    pass->taken = 0;

    pass->due += (ngx_msec_t) ((off_t) pass->rest * 1000 / xmcf->scrub_rate);
    pass->rest = (size_t) ((off_t) pass->rest * 1000 % xmcf->scrub_rate
                           / 1000);

    wait = (ngx_msec_int_t) (pass->due - ngx_current_msec);

    if (wait > 0) {
        return (ngx_msec_t) wait;
    }

    /* lost time is not made up for */

    pass->due = ngx_current_msec;

    return 0;
}


void
ngx_http_xet_pass_failed(ngx_http_xet_chore_t *chore, xet_status_t status)
{
    ngx_http_xet_chore_failed(chore, status,
                              "the store is unusable; see the log");
}
