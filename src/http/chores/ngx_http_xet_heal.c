
/*
 * The chore "heal" repairs copies that the scrub, readers or uploads have
 * marked as damaged.  It replaces them from the folders and nodes of
 * "xet_store_peer".
 *
 *     read      (ngx_http_xet_pass.c)  the copy, which may be intact after all
 *     whole     (query)   clears the mark
 *     list      (thread)  finds copies of the xorb in a peer's folder; a peer
 *                       node is asked for the xorb itself
 *     fetch     (as read)  decodes one into a temporary file.  If it is not
 *                       the xorb, the next copy or peer is tried.  A node that
 *                       is down is not asked again for a minute
 *     commit    (thread)  makes the file a durable copy with its own tag
 *     heal      (query)   replaces the damaged copy, if the row still names it
 *     remove    (thread)  removes the replaced copy
 *     later     (query)   if no peer has the xorb: schedules the next attempt
 *
 * The order and its guarantees are those of an upload that heals
 * (ngx_http_xet_keep.c).  The copy is durable before a row names it.
 * PostgreSQL decides in one transaction between this chore, uploads and other
 * nodes; the loser removes its own copy.  A crash leaves only a file that no
 * row names.  While the statement is in flight our copy stays, since a row may
 * name it.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pass.h"

#include <dirent.h>


#define NGX_HTTP_XET_HEAL_WHOLE   NGX_HTTP_XET_PASS_OWN
#define NGX_HTTP_XET_HEAL_HEALED  (NGX_HTTP_XET_PASS_OWN + 1)
#define NGX_HTTP_XET_HEAL_FAILED  (NGX_HTTP_XET_PASS_OWN + 2)

/* The maximum size of a peer's file: the same xorb in any encoding. */

#define NGX_HTTP_XET_HEAL_MAX     (64 * 1024 * 1024 + 64 * 1024)

/* How long a node that is down, or rejects requests, is not asked. */

#define NGX_HTTP_XET_HEAL_LEFT_OUT  60000      /* ms */

#define NGX_HTTP_XET_HEAL_INTERVAL  30000


static ngx_msec_t ngx_http_xet_heal_interval(ngx_http_xet_main_conf_t *xmcf);
static ngx_int_t ngx_http_xet_heal_begin(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_heal_end(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_heal_judge(ngx_http_xet_chore_t *chore,
    xet_status_t status);
static void ngx_http_xet_heal_whole(ngx_http_xet_chore_t *chore,
    ngx_http_xet_ask_t *ask);
static void ngx_http_xet_heal_list(ngx_http_xet_chore_t *chore);
static ngx_uint_t ngx_http_xet_heal_left_out(ngx_http_xet_pass_peer_t *peer);
static void ngx_http_xet_heal_list_job(void *data, ngx_log_t *log);
static void ngx_http_xet_heal_found(ngx_http_xet_pass_t *pass,
    const char *name);
static void ngx_http_xet_heal_fetch(ngx_http_xet_chore_t *chore);
static xet_status_t ngx_http_xet_heal_source(ngx_http_xet_pass_t *pass);
static void ngx_http_xet_heal_fetched(ngx_http_xet_chore_t *chore,
    xet_status_t status);
static void ngx_http_xet_heal_leave_out(ngx_http_xet_pass_t *pass);
static void ngx_http_xet_heal_commit_job(void *data, ngx_log_t *log);
static void ngx_http_xet_heal_committed(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_heal_answered(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);
static void ngx_http_xet_heal_remove_job(void *data, ngx_log_t *log);
static void ngx_http_xet_heal_later(ngx_http_xet_chore_t *chore);
static void ngx_http_xet_heal_put_off(ngx_http_xet_chore_t *chore,
    ngx_http_xet_ask_t *ask);
static ngx_http_xet_peer_t *ngx_http_xet_heal_peer(ngx_http_xet_pass_t *pass);
static void ngx_http_xet_heal_name(ngx_http_xet_pass_t *pass, u_char *name);


const ngx_http_xet_chore_kind_t  ngx_http_xet_heal = {
    ngx_string("heal"),
    { "copies", "bytes", "unread", "whole", "healed", "failed", NULL },
    ngx_http_xet_heal_interval,
    sizeof(ngx_http_xet_pass_t),
    ngx_http_xet_heal_begin,
    ngx_http_xet_pass_step,
    ngx_http_xet_heal_end
};


static ngx_msec_t
ngx_http_xet_heal_interval(ngx_http_xet_main_conf_t *xmcf)
{
    return (xmcf->scrub || xmcf->peers) ? NGX_HTTP_XET_HEAL_INTERVAL : 0;
}


static ngx_int_t
ngx_http_xet_heal_begin(ngx_http_xet_chore_t *chore)
{
    ngx_http_xet_pass_t       *pass;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    ngx_http_xet_pass_begin(chore, 1, ngx_http_xet_heal_judge);

    if (xmcf->peers == NULL) {
        return NGX_OK;
    }

    pass = chore->data;
    pass->peers = ngx_calloc(xmcf->peers->nelts
                             * sizeof(ngx_http_xet_pass_peer_t),
                             ngx_cycle->log);

    return pass->peers ? NGX_OK : NGX_ERROR;
}


static void
ngx_http_xet_heal_end(ngx_http_xet_chore_t *chore)
{
    ngx_uint_t                 i;
    ngx_http_xet_pass_t       *pass;
    ngx_http_xet_main_conf_t  *xmcf;

    pass = chore->data;

    if (pass->peers) {
        xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                                   ngx_http_xet_module);

        for (i = 0; i < xmcf->peers->nelts; i++) {
            if (pass->peers[i].fetch) {
                ngx_http_xet_fetch_destroy(pass->peers[i].fetch);
            }
        }

        ngx_free(pass->peers);
    }

    ngx_http_xet_pass_end(chore);
}


static void
ngx_http_xet_heal_judge(ngx_http_xet_chore_t *chore, xet_status_t status)
{
    ngx_http_xet_pass_t *pass = chore->data;

    if (pass->copy) {
        ngx_http_xet_heal_fetched(chore, status);
        return;
    }

    if (status != XET_OK) {
        pass->peer = 0;
        ngx_http_xet_heal_list(chore);
        return;
    }

    ngx_http_xet_chore_ask(chore, xorb_whole, ngx_http_xet_heal_whole,
                           .xorb = &pass->rows[pass->i].xorb,
                           .tag = pass->rows[pass->i].tag);
}


static void
ngx_http_xet_heal_whole(ngx_http_xet_chore_t *chore, ngx_http_xet_ask_t *ask)
{
    u_char                name[XET_XORB_NAME_MAX + 1];
    ngx_http_xet_pass_t  *pass;

    pass = chore->data;

    if (ngx_http_xet_ask_number(ask)) {
        ngx_http_xet_heal_name(pass, name);

        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "xet: xorb %s is intact and available again", name);

        ngx_http_xet_chore_count(chore, NGX_HTTP_XET_HEAL_WHOLE, 1);
    }

    ngx_http_xet_pass_next(chore);
}


/* Asks the next peer, if there is one. */

static void
ngx_http_xet_heal_list(ngx_http_xet_chore_t *chore)
{
    ngx_http_xet_pass_t  *pass;
    ngx_http_xet_peer_t  *peer;

    pass = chore->data;

    ngx_http_xet_pass_drop(pass);

    pass->ntags = 0;

    while ((peer = ngx_http_xet_heal_peer(pass)) != NULL
           && ngx_http_xet_heal_left_out(&pass->peers[pass->peer]))
    {
        pass->peer++;
    }

    if (peer == NULL) {
        ngx_http_xet_heal_later(chore);
        return;
    }

    if (peer->url.len) {
        pass->tags[pass->ntags++] = 0;
        ngx_http_xet_heal_fetch(chore);
        return;
    }

    ngx_http_xet_chore_job(chore, ngx_http_xet_heal_list_job,
                           ngx_http_xet_heal_fetch);
}


static ngx_uint_t
ngx_http_xet_heal_left_out(ngx_http_xet_pass_peer_t *peer)
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
    ngx_http_xet_pass_t *pass = data;

    DIR            *dir;
    char            path[NGX_MAX_PATH];
    u_char         *p;
    ngx_str_t      *folder;
    struct dirent  *entry;

    folder = &ngx_http_xet_heal_peer(pass)->path;

    p = ngx_cpymem(path, folder->data, folder->len);
    *p++ = '/';
    (void) xet_store_copy((char *) p, &pass->rows[pass->i].xorb, 0);

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
        ngx_http_xet_heal_found(pass, entry->d_name);
    }

    (void) closedir(dir);
}


/* A copy of a mirror with the same tag is tried first: it is put last. */

static void
ngx_http_xet_heal_found(ngx_http_xet_pass_t *pass, const char *name)
{
    uint32_t                  tag, first;
    xet_hash_t                xorb;
    ngx_http_xet_pass_row_t  *row;

    row = &pass->rows[pass->i];

    if (xet_xorb_name_parse(&xorb, &tag, (u_char *) name, ngx_strlen(name))
        != XET_OK
        || !xet_hash_equal(&xorb, &row->xorb))
    {
        return;
    }

    if (pass->ntags == NGX_HTTP_XET_PASS_TAGS) {

        if (tag == row->tag) {
            pass->tags[pass->ntags - 1] = tag;
        }

        return;
    }

    pass->tags[pass->ntags] = tag;

    if (pass->ntags && pass->tags[pass->ntags - 1] == row->tag) {
        first = pass->tags[pass->ntags - 1];
        pass->tags[pass->ntags - 1] = tag;
        pass->tags[pass->ntags] = first;
    }

    pass->ntags++;
}


/* Starts to read the next copy of the peer; the pass reads it. */

static void
ngx_http_xet_heal_fetch(ngx_http_xet_chore_t *chore)
{
    ngx_http_xet_pass_t *pass = chore->data;

    ngx_http_xet_pass_drop(pass);

    if (pass->ntags == 0) {
        pass->peer++;
        ngx_http_xet_heal_list(chore);
        return;
    }

    pass->pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, ngx_cycle->log);

    if (pass->pool) {
        pass->copy = ngx_http_xet_store_copy(pass->pool);
    }

    pass->ntags--;

    ngx_http_xet_query_tags();

    if (pass->copy == NULL || ngx_http_xet_heal_source(pass) != XET_OK) {
        ngx_http_xet_chore_retry(chore, "out of memory");
        return;
    }

    pass->begun = 1;

    ngx_http_xet_chore_next(chore, ngx_http_xet_pass_pace(pass));
}


static xet_status_t
ngx_http_xet_heal_source(ngx_http_xet_pass_t *pass)
{
    uint64_t                   max;
    ngx_http_xet_peer_t       *peer;
    ngx_http_xet_fetch_t     **fetch;
    ngx_http_xet_pass_row_t   *row;

    row = &pass->rows[pass->i];
    max = ngx_max(row->size, NGX_HTTP_XET_HEAL_MAX);
    peer = ngx_http_xet_heal_peer(pass);

    if (peer->url.len) {
        fetch = &pass->peers[pass->peer].fetch;

        if (*fetch == NULL) {
            *fetch = ngx_http_xet_fetch_create(peer);

            if (*fetch == NULL) {
                return XET_NOMEM;
            }
        }

        return ngx_http_xet_scan_peer(&pass->scan, *fetch, &row->xorb, max,
                                      pass->copy);
    }

    return ngx_http_xet_scan_foreign(&pass->scan, &peer->path, &row->xorb,
                                     pass->tags[pass->ntags], max, pass->copy);
}


static void
ngx_http_xet_heal_fetched(ngx_http_xet_chore_t *chore, xet_status_t status)
{
    ngx_http_xet_pass_t *pass = chore->data;

    switch (status) {

    case XET_OK:
        ngx_http_xet_chore_job(chore, ngx_http_xet_heal_commit_job,
                               ngx_http_xet_heal_committed);
        return;

    case XET_STORE_DAMAGED:
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "xet: \"%s\" of a peer was rejected: %s",
                      pass->scan.path, pass->scan.why);

        /* fall through */

    case XET_STORE_FAILED:
        ngx_http_xet_heal_leave_out(pass);
        ngx_http_xet_heal_fetch(chore);
        return;

    default:
        ngx_http_xet_pass_failed(chore, status);
    }
}


/* a peer that is down would cost its timeout for each xorb */

static void
ngx_http_xet_heal_leave_out(ngx_http_xet_pass_t *pass)
{
    ngx_http_xet_pass_peer_t  *peer;

    peer = &pass->peers[pass->peer];

    if (peer->fetch && ngx_http_xet_fetch_bad(peer->fetch)) {
        peer->left_out = 1;
        peer->until = ngx_current_msec + NGX_HTTP_XET_HEAL_LEFT_OUT;
    }
}


static void
ngx_http_xet_heal_commit_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_pass_t *pass = data;

    pass->status = ngx_http_xet_store_commit_job(pass->copy,
                                                 &pass->rows[pass->i].xorb,
                                                 log);
}


static void
ngx_http_xet_heal_committed(ngx_http_xet_chore_t *chore)
{
    ngx_http_xet_pass_t *pass = chore->data;

    if (pass->status != XET_OK) {
        ngx_http_xet_pass_failed(chore, pass->status);
        return;
    }

    if (ngx_http_xet_ask_heal(ngx_http_xet_scan_info(&pass->scan), pass->copy,
                              pass->rows[pass->i].tag,
                              ngx_http_xet_heal_answered, chore)
        != NGX_AGAIN)
    {
        ngx_http_xet_chore_retry(chore, "PostgreSQL does not respond");
    }
}


static void
ngx_http_xet_heal_answered(void *data, ngx_http_xet_ask_t *ask, ngx_int_t rc)
{
    ngx_http_xet_chore_t *chore = data;

    u_char                name[XET_HASH_STR_LEN + 1];
    ngx_http_xet_pass_t  *pass;

    pass = chore->data;

    if (rc == NGX_OK
        && (uint32_t) ngx_http_xet_ask_number(ask) == pass->copy->tag)
    {
        *xet_hash_print(name, &pass->rows[pass->i].xorb) = '\0';

        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "xet: xorb %s was repaired from \"%s\"", name,
                      pass->scan.path);

        ngx_http_xet_chore_count(chore, NGX_HTTP_XET_HEAL_HEALED, 1);

        ngx_http_xet_chore_job(chore, ngx_http_xet_heal_remove_job,
                               ngx_http_xet_pass_next);
        return;
    }

    if (rc == NGX_OK || rc == NGX_DECLINED) {

        /* an upload or another node was first, or the row is gone */

        ngx_http_xet_store_keep(pass->copy, 0);
        ngx_http_xet_pass_next(chore);
        return;
    }

    ngx_http_xet_store_keep(pass->copy,
                            !ngx_http_xet_query_unnamed(ask->sqlstate));

    if (ngx_strcmp(ask->sqlstate, NGX_HTTP_XET_PG_LOCKED) == 0) {

        /* another request heals it, or commits terms that refer to it */

        ngx_http_xet_pass_next(chore);
        return;
    }

    ngx_http_xet_chore_retry(chore, "PostgreSQL does not respond");
}


static void
ngx_http_xet_heal_remove_job(void *data, ngx_log_t *log)
{
    ngx_http_xet_pass_t *pass = data;

    (void) ngx_http_xet_store_remove_job(pass->copy->store,
                                         &pass->rows[pass->i].xorb,
                                         pass->rows[pass->i].tag, log);
}


static void
ngx_http_xet_heal_later(ngx_http_xet_chore_t *chore)
{
    u_char                name[XET_XORB_NAME_MAX + 1];
    ngx_http_xet_pass_t  *pass;

    pass = chore->data;

    ngx_http_xet_chore_count(chore, NGX_HTTP_XET_HEAL_FAILED, 1);

    if (pass->peer) {
        ngx_http_xet_heal_name(pass, name);

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "xet: xorb %s is damaged and could not be fetched from "
                      "any peer", name);
    }

    ngx_http_xet_chore_ask(chore, heal_later, ngx_http_xet_heal_put_off,
                           .id = (uint64_t) pass->rows[pass->i].id,
                           .tag = pass->rows[pass->i].tag);
}


static void
ngx_http_xet_heal_put_off(ngx_http_xet_chore_t *chore, ngx_http_xet_ask_t *ask)
{
    ngx_http_xet_pass_next(chore);
}


static ngx_http_xet_peer_t *
ngx_http_xet_heal_peer(ngx_http_xet_pass_t *pass)
{
    ngx_http_xet_peer_t       *peers;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    if (xmcf->peers == NULL || pass->peer >= xmcf->peers->nelts) {
        return NULL;
    }

    peers = xmcf->peers->elts;

    return &peers[pass->peer];
}


/* name has XET_XORB_NAME_MAX + 1 bytes. */

static void
ngx_http_xet_heal_name(ngx_http_xet_pass_t *pass, u_char *name)
{
    ngx_http_xet_pass_row_t  *row;

    row = &pass->rows[pass->i];

    *xet_xorb_name_print(name, &row->xorb, row->tag) = '\0';
}
