
/*
 * The background job "heal" repairs copies that the scrub, readers or uploads
 * have marked as damaged.  It replaces them from the folders and nodes of
 * "xet_store_peer".
 *
 *     read      (thread)  reads the copy (ngx_http_xet_copy_scan.c), which may
 *                         be intact after all
 *     intact    (query)   clears the mark
 *     list      (thread)  lists copies of the xorb in the folder of a peer; a
 *                         peer node is sent a request for the xorb instead
 *     fetch     (thread)  decodes a copy into a temporary file.  If the copy
 *                         is wrong, tries the next copy or peer.  A
 *                         node that is down is not tried for a minute
 *     commit    (thread)  makes the file a durable copy with its own copy id
 *     heal      (query)   updates the row, if it still has the damaged copy
 *     remove    (thread)  removes the damaged copy
 *     later     (query)   if no peer has the xorb: schedules the next attempt
 *
 * The order of steps and its guarantees are the same as for an upload that
 * repairs a xorb (ngx_http_xet_xorb_commit.c).  The new copy is durable before
 * a row refers to it.  One transaction decides between this background job,
 * uploads and other nodes; the loser removes its own copy.  A crash leaves
 * only a file without a row.  The new copy is kept while the statement is in
 * flight, since a row may already refer to it.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_copy_scan.h"

#include <dirent.h>


#define NGX_HTTP_XET_HEAL_INTACT   NGX_HTTP_XET_COPY_SCAN_OWN
#define NGX_HTTP_XET_HEAL_HEALED  (NGX_HTTP_XET_COPY_SCAN_OWN + 1)
#define NGX_HTTP_XET_HEAL_FAILED  (NGX_HTTP_XET_COPY_SCAN_OWN + 2)

/* The maximum size of a xorb in a peer's file, in any encoding. */

#define NGX_HTTP_XET_HEAL_MAX     (64 * 1024 * 1024 + 64 * 1024)

/* Time until a node that is down, or rejects requests, is tried again. */

#define NGX_HTTP_XET_HEAL_LEFT_OUT  60000      /* ms */

#define NGX_HTTP_XET_HEAL_INTERVAL  30000


static ngx_msec_t ngx_http_xet_heal_interval(ngx_http_xet_main_conf_t *xmcf);
static ngx_int_t ngx_http_xet_heal_begin(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_heal_end(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_heal_judge(ngx_http_xet_bg_job_t *bg_job,
    xet_status_t status);
static void ngx_http_xet_heal_intact(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask);
static void ngx_http_xet_heal_list(ngx_http_xet_bg_job_t *bg_job);
static ngx_uint_t ngx_http_xet_heal_left_out(ngx_http_xet_copy_scan_peer_t
    *peer);
static void ngx_http_xet_heal_list_job(void *data, ngx_log_t *log);
static void ngx_http_xet_heal_found(ngx_http_xet_copy_scan_t *scan,
    const char *name);
static void ngx_http_xet_heal_fetch(ngx_http_xet_bg_job_t *bg_job);
static xet_status_t ngx_http_xet_heal_source(ngx_http_xet_copy_scan_t *scan);
static void ngx_http_xet_heal_fetched(ngx_http_xet_bg_job_t *bg_job,
    xet_status_t status);
static void ngx_http_xet_heal_leave_out(ngx_http_xet_copy_scan_t *scan);
static void ngx_http_xet_heal_commit_job(void *data, ngx_log_t *log);
static void ngx_http_xet_heal_committed(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_heal_answered(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);
static void ngx_http_xet_heal_remove_job(void *data, ngx_log_t *log);
static void ngx_http_xet_heal_later(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_heal_put_off(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask);
static ngx_http_xet_peer_t *ngx_http_xet_heal_peer(ngx_http_xet_copy_scan_t
    *scan);
static void ngx_http_xet_heal_name(ngx_http_xet_copy_scan_t *scan, u_char
    *name);


const ngx_http_xet_bg_job_kind_t  ngx_http_xet_heal = {
    ngx_string("heal"),
    { "copies", "bytes", "unread", "whole", "healed", "failed", NULL },
    ngx_http_xet_heal_interval,
    sizeof(ngx_http_xet_copy_scan_t),
    ngx_http_xet_heal_begin,
    ngx_http_xet_copy_scan_step,
    ngx_http_xet_heal_end
};


static ngx_msec_t
ngx_http_xet_heal_interval(ngx_http_xet_main_conf_t *xmcf)
{
    return (xmcf->scrub || xmcf->peers) ? NGX_HTTP_XET_HEAL_INTERVAL : 0;
}


static ngx_int_t
ngx_http_xet_heal_begin(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_http_xet_copy_scan_t  *scan;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    ngx_http_xet_copy_scan_begin(bg_job, 1, ngx_http_xet_heal_judge);

    if (xmcf->peers == NULL) {
        return NGX_OK;
    }

    scan = bg_job->data;
    scan->peers = ngx_calloc(xmcf->peers->nelts
                             * sizeof(ngx_http_xet_copy_scan_peer_t),
                             ngx_cycle->log);

    return scan->peers ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_xet_heal_end(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_uint_t                 i;
    ngx_http_xet_copy_scan_t  *scan;
    ngx_http_xet_main_conf_t  *xmcf;

    scan = bg_job->data;

    if (scan->peers) {
        xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                                   ngx_http_xet_module);

        for (i = 0; i < xmcf->peers->nelts; i++) {
            if (scan->peers[i].fetch) {
                ngx_http_xet_fetch_destroy(scan->peers[i].fetch);
            }
        }

        ngx_free(scan->peers);
    }

    ngx_http_xet_copy_scan_end(bg_job);
}


static void
ngx_http_xet_heal_judge(ngx_http_xet_bg_job_t *bg_job, xet_status_t status)
{
    ngx_http_xet_copy_scan_t *scan = bg_job->data;

    if (scan->copy) {
        ngx_http_xet_heal_fetched(bg_job, status);
        return;
    }

    if (status != XET_OK) {
        scan->peer = 0;
        ngx_http_xet_heal_list(bg_job);
        return;
    }

    ngx_http_xet_bg_job_ask(bg_job, xorb_intact, ngx_http_xet_heal_intact,
                            .xorb = &scan->rows[scan->i].xorb,
                            .copy_id = scan->rows[scan->i].copy_id);
}


static void
ngx_http_xet_heal_intact(ngx_http_xet_bg_job_t *bg_job, ngx_http_xet_ask_t *ask)
{
    u_char                     name[XET_XORB_NAME_MAX + 1];
    ngx_http_xet_copy_scan_t  *scan;

    scan = bg_job->data;

    if (ngx_http_xet_ask_number(ask)) {
        ngx_http_xet_heal_name(scan, name);

        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "xet: xorb %s is intact and available again", name);

        ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_HEAL_INTACT, 1);
    }

    ngx_http_xet_copy_scan_next(bg_job);
}


/* Tries the next peer, or schedules the next attempt if there is none. */

static void
ngx_http_xet_heal_list(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_http_xet_copy_scan_t  *scan;
    ngx_http_xet_peer_t       *peer;

    scan = bg_job->data;

    ngx_http_xet_copy_scan_drop(scan);

    scan->ncopy_ids = 0;

    while ((peer = ngx_http_xet_heal_peer(scan)) != NULL
           && ngx_http_xet_heal_left_out(&scan->peers[scan->peer]))
    {
        scan->peer++;
    }

    if (peer == NULL) {
        ngx_http_xet_heal_later(bg_job);
        return;
    }

    if (peer->url.len) {
        scan->copy_ids[scan->ncopy_ids++] = 0;
        ngx_http_xet_heal_fetch(bg_job);
        return;
    }

    ngx_http_xet_bg_job_job(bg_job, ngx_http_xet_heal_list_job,
                            ngx_http_xet_heal_fetch);
}


static ngx_uint_t
ngx_http_xet_heal_left_out(ngx_http_xet_copy_scan_peer_t *peer)
{
    if (peer->left_out
        && (ngx_msec_int_t) (peer->until - ngx_current_msec) <= 0)
    {
        peer->left_out = 0;
    }

    return peer->left_out;
}


static void
ngx_http_xet_heal_list_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_copy_scan_t *scan = data;

    DIR            *dir;
    char            path[NGX_MAX_PATH];
    u_char         *p;
    ngx_str_t      *folder;
    struct dirent  *entry;

    folder = &ngx_http_xet_heal_peer(scan)->path;

    p = ngx_cpymem(path, folder->data, folder->len);
    *p++ = '/';
    (void) xet_store_copy((char *) p, &scan->rows[scan->i].xorb, 0);

    *strrchr(path, '/') = '\0';

    dir = opendir(path);

    if (dir == NULL) {

        if (ngx_errno != NGX_ENOENT) {
            ngx_log_error(NGX_LOG_ERR, log, ngx_errno,
                          "xet: opendir \"%s\" failed", path);
        }

        return;
    }

    while ((entry = readdir(dir)) != NULL) {
        ngx_http_xet_heal_found(scan, entry->d_name);
    }

    (void) closedir(dir);
}


/*
 * Adds the id of a copy that the peer has.  Copy ids are tried from the end of
 * the array.  The id of the damaged copy, which a mirror has too, is put at the
 * end, so it is tried first.
 */

static void
ngx_http_xet_heal_found(ngx_http_xet_copy_scan_t *scan, const char *name)
{
    uint32_t                       copy_id, first;
    xet_hash_t                     xorb;
    ngx_http_xet_copy_scan_row_t  *row;

    row = &scan->rows[scan->i];

    if (xet_xorb_name_parse(&xorb, &copy_id, (u_char *) name, ngx_strlen(name))
        != XET_OK
        || !xet_hash_equal(&xorb, &row->xorb))
    {
        return;
    }

    if (scan->ncopy_ids == NGX_HTTP_XET_COPY_SCAN_COPY_IDS) {

        if (copy_id == row->copy_id) {
            scan->copy_ids[scan->ncopy_ids - 1] = copy_id;
        }

        return;
    }

    scan->copy_ids[scan->ncopy_ids] = copy_id;

    if (scan->ncopy_ids
        && scan->copy_ids[scan->ncopy_ids - 1] == row->copy_id)
    {
        first = scan->copy_ids[scan->ncopy_ids - 1];
        scan->copy_ids[scan->ncopy_ids - 1] = copy_id;
        scan->copy_ids[scan->ncopy_ids] = first;
    }

    scan->ncopy_ids++;
}


/* Starts to read the next copy from the peer, or tries the next peer. */

static void
ngx_http_xet_heal_fetch(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_http_xet_copy_scan_t *scan = bg_job->data;

    ngx_http_xet_copy_scan_drop(scan);

    if (scan->ncopy_ids == 0) {
        scan->peer++;
        ngx_http_xet_heal_list(bg_job);
        return;
    }

    scan->pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, ngx_cycle->log);

    if (scan->pool) {
        scan->copy = ngx_http_xet_store_copy(scan->pool);
    }

    scan->ncopy_ids--;

    ngx_http_xet_query_copy_ids();

    if (scan->copy == NULL || ngx_http_xet_heal_source(scan) != XET_OK) {
        ngx_http_xet_bg_job_retry(bg_job, "out of memory");
        return;
    }

    scan->begun = 1;

    ngx_http_xet_bg_job_next(bg_job, ngx_http_xet_copy_scan_pace(scan));
}


static xet_status_t
ngx_http_xet_heal_source(ngx_http_xet_copy_scan_t *scan)
{
    uint64_t                       max;
    ngx_http_xet_peer_t           *peer;
    ngx_http_xet_fetch_t         **fetch;
    ngx_http_xet_copy_scan_row_t  *row;

    row = &scan->rows[scan->i];
    max = ngx_max(row->size, NGX_HTTP_XET_HEAL_MAX);
    peer = ngx_http_xet_heal_peer(scan);

    if (peer->url.len) {
        fetch = &scan->peers[scan->peer].fetch;

        if (*fetch == NULL) {
            *fetch = ngx_http_xet_fetch_create(peer);

            if (*fetch == NULL) {
                return XET_NOMEM;
            }
        }

        return ngx_http_xet_scan_peer(&scan->scan, *fetch, &row->xorb, max,
                                      scan->copy);
    }

    return ngx_http_xet_scan_foreign(&scan->scan, &peer->path, &row->xorb,
                                     scan->copy_ids[scan->ncopy_ids], max,
                                     scan->copy);
}


static void
ngx_http_xet_heal_fetched(ngx_http_xet_bg_job_t *bg_job, xet_status_t status)
{
    ngx_http_xet_copy_scan_t *scan = bg_job->data;

    switch (status) {

    case XET_OK:
        ngx_http_xet_bg_job_job(bg_job, ngx_http_xet_heal_commit_job,
                                ngx_http_xet_heal_committed);
        return;

    case XET_STORE_DAMAGED:
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "xet: \"%s\" of a peer was rejected: %s",
                      scan->scan.path, scan->scan.why);

        /* fall through */

    case XET_STORE_FAILED:
        ngx_http_xet_heal_leave_out(scan);
        ngx_http_xet_heal_fetch(bg_job);
        return;

    default:
        ngx_http_xet_copy_scan_failed(bg_job, status);
    }
}


/*
 * If the peer is down, skips it for a minute, because each request to it would
 * cost a timeout.
 */

static void
ngx_http_xet_heal_leave_out(ngx_http_xet_copy_scan_t *scan)
{
    ngx_http_xet_copy_scan_peer_t  *peer;

    peer = &scan->peers[scan->peer];

    if (peer->fetch && ngx_http_xet_fetch_bad(peer->fetch)) {
        peer->left_out = 1;
        peer->until = ngx_current_msec + NGX_HTTP_XET_HEAL_LEFT_OUT;
    }
}


static void
ngx_http_xet_heal_commit_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_copy_scan_t *scan = data;

    scan->status = ngx_http_xet_store_commit_job(scan->copy,
                                                 &scan->rows[scan->i].xorb,
                                                 log);
}


static void
ngx_http_xet_heal_committed(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_http_xet_copy_scan_t *scan = bg_job->data;

    if (scan->status != XET_OK) {
        ngx_http_xet_copy_scan_failed(bg_job, scan->status);
        return;
    }

    if (ngx_http_xet_ask_heal(ngx_http_xet_scan_info(&scan->scan), scan->copy,
                              scan->rows[scan->i].copy_id,
                              ngx_http_xet_heal_answered, bg_job)
        != NGX_AGAIN)
    {
        ngx_http_xet_bg_job_retry(bg_job, "PostgreSQL does not respond");
    }
}


static void
ngx_http_xet_heal_answered(void *data, ngx_http_xet_ask_t *ask, ngx_int_t rc)
{
    ngx_http_xet_bg_job_t *bg_job = data;

    u_char                     name[XET_HASH_STR_LEN + 1];
    ngx_http_xet_copy_scan_t  *scan;

    scan = bg_job->data;

    if (rc == NGX_OK
        && (uint32_t) ngx_http_xet_ask_number(ask) == scan->copy->copy_id)
    {
        *xet_hash_print(name, &scan->rows[scan->i].xorb) = '\0';

        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "xet: xorb %s was repaired from \"%s\"", name,
                      scan->scan.path);

        ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_HEAL_HEALED, 1);

        ngx_http_xet_bg_job_job(bg_job, ngx_http_xet_heal_remove_job,
                                ngx_http_xet_copy_scan_next);
        return;
    }

    if (rc == NGX_OK || rc == NGX_DECLINED) {

        /* an upload or another node was faster, or the row was deleted */

        ngx_http_xet_store_keep(scan->copy, 0);
        ngx_http_xet_copy_scan_next(bg_job);
        return;
    }

    ngx_http_xet_store_keep(scan->copy,
                            !ngx_http_xet_query_unnamed(ask->sqlstate));

    if (ngx_strcmp(ask->sqlstate, NGX_HTTP_XET_PG_LOCKED) == 0) {

        /* another request is repairing the xorb, or committing terms of it */

        ngx_http_xet_copy_scan_next(bg_job);
        return;
    }

    ngx_http_xet_bg_job_retry(bg_job, "PostgreSQL does not respond");
}


static void
ngx_http_xet_heal_remove_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_copy_scan_t *scan = data;

    (void) ngx_http_xet_store_remove_job(scan->copy->store,
                                         &scan->rows[scan->i].xorb,
                                         scan->rows[scan->i].copy_id, log);
}


static void
ngx_http_xet_heal_later(ngx_http_xet_bg_job_t *bg_job)
{
    u_char                     name[XET_XORB_NAME_MAX + 1];
    ngx_http_xet_copy_scan_t  *scan;

    scan = bg_job->data;

    ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_HEAL_FAILED, 1);

    if (scan->peer) {
        ngx_http_xet_heal_name(scan, name);

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "xet: xorb %s is damaged and could not be fetched from "
                      "any peer", name);
    }

    ngx_http_xet_bg_job_ask(bg_job, heal_later, ngx_http_xet_heal_put_off,
                            .id = (uint64_t) scan->rows[scan->i].id,
                            .copy_id = scan->rows[scan->i].copy_id);
}


static void
ngx_http_xet_heal_put_off(ngx_http_xet_bg_job_t *bg_job, ngx_http_xet_ask_t
    *ask)
{
    ngx_http_xet_copy_scan_next(bg_job);
}


static ngx_http_xet_peer_t *
ngx_http_xet_heal_peer(ngx_http_xet_copy_scan_t *scan)
{
    ngx_http_xet_peer_t       *peers;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    if (xmcf->peers == NULL || scan->peer >= xmcf->peers->nelts) {
        return NULL;
    }

    peers = xmcf->peers->elts;

    return &peers[scan->peer];
}


/*
 * Writes the name of the current copy to a buffer of XET_XORB_NAME_MAX + 1
 * bytes.
 */

static void
ngx_http_xet_heal_name(ngx_http_xet_copy_scan_t *scan, u_char *name)
{
    ngx_http_xet_copy_scan_row_t  *row;

    row = &scan->rows[scan->i];

    *xet_xorb_name_print(name, &row->xorb, row->copy_id) = '\0';
}
