
/*
 * Metrics from PostgreSQL and the store: their availability, and the number
 * and size of their objects.
 *
 * Each request for metrics makes its worker send queries, and reads the results
 * of earlier queries without waiting.  A query is sent only if
 * NGX_HTTP_XET_FIGURES_INTERVAL has passed since the last query of any worker,
 * so only one worker at a time waits for a result.
 *
 * Files and xorbs are counted by a walk over their rows.  Each query counts
 * one part of the rows.  The sums are published when the walk is complete;
 * then the next walk starts.  A small store is counted by a single query, a
 * store with a hundred million files within a day.
 *
 *     idle    -> waiting   a query is sent with a new ticket
 *     waiting -> idle      the result with this ticket arrives
 *             -> waiting   no result for 60 s: a new query; a late result of
 *                          the old one is dropped
 *
 * The state is in shared memory, protected by the zone's mutex.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_monitor.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_FIGURES_INTERVAL  10000   /* ms */
#define NGX_HTTP_XET_FIGURES_LATE      60000   /* ms */

/* The number of rows per query; a query takes about 50 ms. */
#define NGX_HTTP_XET_FIGURES_PART      50000
#define NGX_HTTP_XET_REPOS_PART        20000

#define NGX_HTTP_XET_NO_FIGURE         -1
#define NGX_HTTP_XET_TOP               10

/* The position after the last row of a walk. */
#define NGX_HTTP_XET_FIGURES_END       NGX_MAX_OFF_T_VALUE


typedef struct {
    ngx_http_xet_repo_size_t   repo[NGX_HTTP_XET_TOP];   /* largest first */
    ngx_uint_t                 n;
} ngx_http_xet_top_t;


/* The walk over files and xorbs, and the walk over the files of repos. */

typedef struct {
    uint64_t                    pinged;        /* time of the last ping, ms */
    ngx_http_xet_due_t          files;
    ngx_http_xet_figures_row_t  sum;           /* counts of this walk so far;
                                                  last_file and last_xorb are
                                                  the last rows counted */

    ngx_http_xet_due_t          repos;
    ngx_http_xet_repo_size_t    open;          /* repo being counted */
    ngx_http_xet_top_t          top;           /* repos of the current walk */
    ngx_http_xet_top_t          last;          /* repos of last complete walk */

    ngx_http_xet_jobs_t         jobs;
} ngx_http_xet_walk_t;


typedef char  ngx_http_xet_walk_fits_t[
    (sizeof(ngx_http_xet_walk_t) <= NGX_HTTP_XET_METRICS_ROOM) ? 1 : -1];


static void ngx_http_xet_monitor_ping(ngx_http_xet_walk_t *walk,
    ngx_shmtx_t *mutex);
static void ngx_http_xet_monitor_alive(ngx_int_t rc);
static void ngx_http_xet_monitor_walk(ngx_http_xet_walk_t *walk,
    ngx_shmtx_t *mutex);
static void ngx_http_xet_monitor_answer(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);
static void ngx_http_xet_monitor_bg_jobs(const ngx_http_xet_figures_row_t *f);
static void ngx_http_xet_monitor_walked(ngx_http_xet_figures_row_t *sum,
    const ngx_http_xet_figures_row_t *f);
static void ngx_http_xet_monitor_repos(ngx_http_xet_walk_t *walk,
    ngx_shmtx_t *mutex);
static void ngx_http_xet_monitor_sized(void *data, ngx_http_xet_ask_t *ask,
    ngx_int_t rc);
static void ngx_http_xet_monitor_part(ngx_http_xet_walk_t *walk,
    const ngx_http_xet_repo_figures_row_t *part);
static void ngx_http_xet_monitor_rank(ngx_http_xet_top_t *top,
    const ngx_http_xet_repo_size_t *repo);


void
ngx_http_xet_monitor_ask(ngx_uint_t repos)
{
    ngx_shmtx_t               *mutex;
    ngx_http_xet_walk_t       *walk;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    walk = ngx_http_xet_metrics_room(&mutex);

    if (xmcf->pg_pools == NULL || walk == NULL) {
        return;
    }

    ngx_http_xet_probe_look(NGX_HTTP_XET_FIGURES_INTERVAL);

    ngx_http_xet_monitor_ping(walk, mutex);
    ngx_http_xet_monitor_walk(walk, mutex);

    if (repos) {
        ngx_http_xet_monitor_repos(walk, mutex);
    }
}


ngx_http_xet_jobs_t *
ngx_http_xet_monitor_jobs(ngx_shmtx_t **mutex)
{
    ngx_http_xet_walk_t  *walk;

    walk = ngx_http_xet_metrics_room(mutex);

    return walk ? &walk->jobs : NULL;
}


uintptr_t
ngx_http_xet_monitor_due(ngx_http_xet_due_t *due)
{
    uint64_t  now;

    now = ngx_http_xet_metrics_now();

    if (now - due->asked < (due->waiting ? NGX_HTTP_XET_FIGURES_LATE
                                           : NGX_HTTP_XET_FIGURES_INTERVAL))
    {
        return 0;
    }

    due->asked = now;
    due->waiting = !ngx_http_xet_query_post_busy();

    return due->waiting ? ++due->ticket : 0;
}


ngx_uint_t
ngx_http_xet_monitor_taken(ngx_http_xet_due_t *due, void *ticket)
{
    if (!due->waiting || due->ticket != (uintptr_t) ticket) {
        return 0;
    }

    due->waiting = 0;

    return 1;
}


static void
ngx_http_xet_monitor_ping(ngx_http_xet_walk_t *walk, ngx_shmtx_t *mutex)
{
    uint64_t    now;
    ngx_uint_t  due;

    now = ngx_http_xet_metrics_now();

    ngx_shmtx_lock(mutex);

    due = (now - walk->pinged >= NGX_HTTP_XET_FIGURES_INTERVAL);

    if (due) {
        walk->pinged = now;
    }

    ngx_shmtx_unlock(mutex);

    if (due && ngx_http_xet_query_alive(ngx_http_xet_monitor_alive)
               != NGX_AGAIN)
    {
        ngx_http_xet_monitor_alive(NGX_BUSY);
    }
}


static void
ngx_http_xet_monitor_alive(ngx_int_t rc)
{
    ngx_http_xet_gauge(POSTGRES_UP, rc == NGX_OK);
}


static void
ngx_http_xet_monitor_walk(ngx_http_xet_walk_t *walk, ngx_shmtx_t *mutex)
{
    uint64_t   file, xorb;
    uintptr_t  ticket;

    ngx_shmtx_lock(mutex);

    ticket = ngx_http_xet_monitor_due(&walk->files);
    file = walk->sum.last_file;
    xorb = walk->sum.last_xorb;

    ngx_shmtx_unlock(mutex);

    if (ticket
        && ngx_http_xet_ask(figures, ngx_http_xet_monitor_answer,
                            (void *) ticket, .after_file = file,
                            .after_xorb = xorb,
                            .part = NGX_HTTP_XET_FIGURES_PART)
           != NGX_AGAIN)
    {
        ngx_http_xet_monitor_answer((void *) ticket, NULL, NGX_BUSY);
    }
}


static void
ngx_http_xet_monitor_answer(void *data, ngx_http_xet_ask_t *ask, ngx_int_t rc)
{
    ngx_uint_t                   taken;
    ngx_shmtx_t                 *mutex;
    ngx_http_xet_walk_t         *walk;
    ngx_http_xet_figures_row_t   f;

    walk = ngx_http_xet_metrics_room(&mutex);

    if (walk == NULL) {
        return;
    }

    ngx_memzero(&f, sizeof(ngx_http_xet_figures_row_t));

    if (rc == NGX_OK) {
        (void) ngx_http_xet_row_figures(ask->res, 0, &f);
    }

    ngx_shmtx_lock(mutex);

    taken = ngx_http_xet_monitor_taken(&walk->files, data);

    if (taken && rc == NGX_OK) {
        ngx_http_xet_monitor_walked(&walk->sum, &f);
    }

    ngx_shmtx_unlock(mutex);

    if (rc == NGX_OK) {
        ngx_http_xet_gauge(DAMAGED, f.damaged);
        ngx_http_xet_gauge(REPOS, f.repos);
        ngx_http_xet_gauge(HUB_ROWS, f.names);
        ngx_http_xet_gauge(HUB_BYTES, f.metadata);
        ngx_http_xet_gauge(HUB_STAGED, f.staged);
        ngx_http_xet_gauge(GC_WAITING, f.waiting);
        ngx_http_xet_gauge_now(FIGURES_TIME);

        ngx_http_xet_monitor_bg_jobs(&f);
    }
}


/* Sets the gauges of background jobs that have run at least once. */

static void
ngx_http_xet_monitor_bg_jobs(const ngx_http_xet_figures_row_t *f)
{
    ngx_uint_t  i;

    const struct {
        ngx_uint_t  cell;
        int64_t     value;
    } gauges[] = {
        { NGX_HTTP_XET_M_GC_TIME, f->gc_at },
        { NGX_HTTP_XET_M_GC_XORBS, f->gc_xorbs },
        { NGX_HTTP_XET_M_GC_BYTES, f->gc_bytes },
        { NGX_HTTP_XET_M_SCRUB_TIME, f->scrub_at },
        { NGX_HTTP_XET_M_SCRUB_BYTES, f->scrub_bytes },
        { NGX_HTTP_XET_M_SCRUB_DAMAGED, f->scrub_damaged },
        { NGX_HTTP_XET_M_HEALED, f->healed },
        { NGX_HTTP_XET_M_ORPHANS, f->orphans },
        { NGX_HTTP_XET_M_GC_ORPHANS, f->gc_orphans },
        { NGX_HTTP_XET_M_GC_ORPHAN_BYTES, f->gc_orphan_bytes }
    };

    for (i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++) {
        if (gauges[i].value != NGX_HTTP_XET_NO_FIGURE) {
            ngx_http_xet_metrics_gauge(gauges[i].cell, gauges[i].value);
        }
    }
}


static void
ngx_http_xet_monitor_walked(ngx_http_xet_figures_row_t *sum,
    const ngx_http_xet_figures_row_t *f)
{
    sum->files += f->files;
    sum->file_bytes += f->file_bytes;
    sum->last_file = f->last_file ? f->last_file : NGX_HTTP_XET_FIGURES_END;

    sum->xorbs += f->xorbs;
    sum->raw += f->raw;
    sum->stored += f->stored;
    sum->last_xorb = f->last_xorb ? f->last_xorb : NGX_HTTP_XET_FIGURES_END;

    if (sum->last_file != NGX_HTTP_XET_FIGURES_END
        || sum->last_xorb != NGX_HTTP_XET_FIGURES_END)
    {
        return;
    }

    ngx_http_xet_gauge(FILES, sum->files);
    ngx_http_xet_gauge(FILE_BYTES, sum->file_bytes);
    ngx_http_xet_gauge(XORBS, sum->xorbs);
    ngx_http_xet_gauge(XORB_RAW, sum->raw);
    ngx_http_xet_gauge(XORB_STORED, sum->stored);
    ngx_http_xet_gauge_now(WALK_TIME);

    ngx_memzero(sum, sizeof(ngx_http_xet_figures_row_t));
}


static void
ngx_http_xet_monitor_repos(ngx_http_xet_walk_t *walk, ngx_shmtx_t *mutex)
{
    uint64_t   repo, file;
    uintptr_t  ticket;

    ngx_shmtx_lock(mutex);

    ticket = ngx_http_xet_monitor_due(&walk->repos);
    repo = walk->open.id;
    file = walk->open.last_file;

    ngx_shmtx_unlock(mutex);

    if (ticket
        && ngx_http_xet_ask(repo_figures, ngx_http_xet_monitor_sized,
                            (void *) ticket, .after_repo = repo,
                            .after_file = file,
                            .part = NGX_HTTP_XET_REPOS_PART)
           != NGX_AGAIN)
    {
        ngx_http_xet_monitor_sized((void *) ticket, NULL, NGX_BUSY);
    }
}


/* Handles the sizes of repos; a result without rows means no repos. */

static void
ngx_http_xet_monitor_sized(void *data, ngx_http_xet_ask_t *ask, ngx_int_t rc)
{
    ngx_uint_t                        i, n;
    ngx_shmtx_t                      *mutex;
    ngx_http_xet_walk_t              *walk;
    ngx_http_xet_repo_figures_row_t   row;

    walk = ngx_http_xet_metrics_room(&mutex);

    if (walk == NULL) {
        return;
    }

    ngx_shmtx_lock(mutex);

    if (!ngx_http_xet_monitor_taken(&walk->repos, data)
        || (rc != NGX_OK && rc != NGX_DECLINED))
    {
        ngx_shmtx_unlock(mutex);
        return;
    }

    n = (rc == NGX_OK) ? ngx_http_xet_ask_rows(ask) : 0;
    row.more = 0;

    for (i = 0; i < n; i++) {
        (void) ngx_http_xet_row_repo_figures(ask->res, i, &row);
        ngx_http_xet_monitor_part(walk, &row);
    }

    if (!row.more) {
        ngx_http_xet_monitor_rank(&walk->top, &walk->open);

        walk->last = walk->top;

        ngx_memzero(&walk->open, sizeof(ngx_http_xet_repo_size_t));
        walk->top.n = 0;
    }

    ngx_shmtx_unlock(mutex);
}


/*
 * Adds the counts of a part of a repo.  Rows come in the order of repo ids, so
 * all parts of a repo are adjacent, and only the last repo may be incomplete.
 */

static void
ngx_http_xet_monitor_part(ngx_http_xet_walk_t *walk,
    const ngx_http_xet_repo_figures_row_t *part)
{
    ngx_http_xet_repo_size_t  *open;

    open = &walk->open;

    if (part->repo != open->id) {
        ngx_http_xet_monitor_rank(&walk->top, open);
        ngx_memzero(open, sizeof(ngx_http_xet_repo_size_t));

        open->id = part->repo;
        open->len = ngx_min(part->name.len, NGX_HTTP_XET_REPO_NAME);
        ngx_memcpy(open->name, part->name.data, open->len);
    }

    open->files += part->files;
    open->bytes += part->bytes;
    open->last_file = part->last_file;
}


static void
ngx_http_xet_monitor_rank(ngx_http_xet_top_t *top,
    const ngx_http_xet_repo_size_t *repo)
{
    ngx_uint_t  i;

    if (repo->id == 0) {
        return;
    }

    if (top->n < NGX_HTTP_XET_TOP) {
        i = top->n++;

    } else if (repo->bytes > top->repo[NGX_HTTP_XET_TOP - 1].bytes) {
        i = NGX_HTTP_XET_TOP - 1;

    } else {
        return;
    }

    for ( /* void */ ; i > 0 && top->repo[i - 1].bytes < repo->bytes; i--) {
        top->repo[i] = top->repo[i - 1];
    }

    top->repo[i] = *repo;
}


ngx_uint_t
ngx_http_xet_monitor_top(ngx_http_xet_repo_size_t *repos, ngx_uint_t n)
{
    ngx_uint_t            i;
    ngx_shmtx_t          *mutex;
    ngx_http_xet_walk_t  *walk;

    walk = ngx_http_xet_metrics_room(&mutex);

    if (walk == NULL) {
        return 0;
    }

    ngx_shmtx_lock(mutex);

    n = ngx_min(n, walk->last.n);

    for (i = 0; i < n; i++) {
        repos[i] = walk->last.repo[i];
    }

    ngx_shmtx_unlock(mutex);

    return n;
}
