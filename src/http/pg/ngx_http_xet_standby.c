
/*
 * The standbys of a worker.  This file chooses the standby for a read, and
 * limits the age of the rows that a standby may return.
 *
 * The state of a server is its position in the WAL (LSN).  The primary is
 * polled for its position at intervals; a sample is the position and the time
 * when the poll was sent.  Everything that was committed before this time is
 * before this position.  The age of a standby's rows is the age of the newest
 * sample whose position the standby has replayed.  So the clocks of servers are
 * not compared.  A standby looks old if it has lost its primary, but not if the
 * primary has no writes.
 *
 * While the primary is unreachable, the age of a standby does not grow: it is
 * the age at the time of the primary's last result.  As far as this worker
 * knows, nothing was committed after that, so reads continue.  If the primary
 * executes other statements but not the poll, standbys age as usual.
 *
 * If a standby was ahead of the position that the primary reported later, the
 * standby follows another primary.  It is not used until it advances and is not
 * ahead of the primary.  A host that is no longer a standby is not used either,
 * if xet_postgres connects to a server of another timeline.
 *
 * The nearest standby is the one with the shortest average response time.
 * Another standby becomes the nearest when it is faster by a third and by at
 * least a quarter of a millisecond, so that similar standbys do not alternate.
 *
 * The poll also shows whether the primary still accepts writes, which reads
 * would not detect.  Everything runs in the event loop of one worker.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg_session.h"


#define NGX_HTTP_XET_STANDBY_TICK      1000    /* maximum ms between polls */
#define NGX_HTTP_XET_STANDBY_TICKS     4       /* minimum polls per "lag" */
#define NGX_HTTP_XET_STANDBY_PATIENCE  2000    /* ms to wait for a result */
#define NGX_HTTP_XET_STANDBY_SILENT    2       /* lost pings: server is down */
#define NGX_HTTP_XET_STANDBY_SAMPLES   64
#define NGX_HTTP_XET_STANDBY_NEARER    250     /* minimum lead, in us */
#define NGX_HTTP_XET_STANDBY_NEVER     ((ngx_msec_t) 0x7fffffff)

#if (NGX_HTTP_XET_STANDBY_MAX != NGX_HTTP_XET_STANDBYS)
#error "standbys are labels of metrics"
#endif


/*
 * A poll for the WAL position of a server.
 */

typedef struct {
    ngx_http_xet_pg_query_t    *query;         /* NULL: no poll in progress */
    ngx_msec_t                  at;
    uint64_t                    start;         /* microseconds */
} ngx_http_xet_standby_ask_t;


/* The primary's WAL position, and the time when the poll was sent. */

typedef struct {
    uint64_t                    lsn;
    ngx_msec_t                  at;
} ngx_http_xet_standby_sample_t;


typedef struct {
    ngx_http_xet_pg_pool_t      pg_pool;
    ngx_http_xet_pg_pool_t      dedup;         /* dedup queries */
    ngx_http_xet_pg_pool_t      longs;         /* long reads */
    ngx_http_xet_standby_ask_t  ask;
    ngx_msec_t                  lag;           /* maximum lag */

    uint64_t                    lsn;           /* replayed LSN; 0: unknown */
    uint64_t                    timeline;      /* 0 for a standby */
    ngx_msec_t                  at;            /* time of the last result */
    uint64_t                    distance;      /* mean response time, us */

    unsigned                    measured:1;    /* the last poll succeeded */
    unsigned                    strange:1;     /* follows another primary */
    unsigned                    fit:1;         /* usable at the last check */
} ngx_http_xet_standby_t;


struct ngx_http_xet_standbys_s {
    ngx_uint_t                      n;
    ngx_http_xet_standby_t         *standby;
    ngx_uint_t                      current;
    ngx_msec_t                      tick;
    ngx_msec_t                      lag;       /* maximum lag of all standbys */

    const ngx_http_xet_pg_stmt_t   *wal;
    ngx_event_t                     timer;

    /* samples of the primary, oldest first */

    ngx_http_xet_standby_ask_t      ask;
    ngx_http_xet_standby_sample_t   samples[NGX_HTTP_XET_STANDBY_SAMPLES];
    ngx_uint_t                      nsamples;
    uint64_t                        timeline;
    ngx_uint_t                      silent;    /* consecutive lost pings */
    unsigned                        away:1;
};


static ngx_int_t ngx_http_xet_standbys_create(ngx_http_xet_standbys_t *s,
    ngx_array_t *standbys, const ngx_http_xet_pg_stmt_t *stmts,
    ngx_cycle_t *cycle);
static ngx_int_t ngx_http_xet_standby_create(ngx_http_xet_standbys_t *s,
    ngx_http_xet_standby_t *sb, const ngx_http_xet_standby_conf_t *conf,
    const ngx_http_xet_pg_stmt_t *stmts, ngx_cycle_t *cycle);
static ngx_http_xet_standbys_t *ngx_http_xet_standbys_get(void);
static void ngx_http_xet_standbys_timer_handler(ngx_event_t *ev);
static void ngx_http_xet_standbys_ask_primary(ngx_http_xet_standbys_t *s);
static void ngx_http_xet_standbys_answered(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static void ngx_http_xet_standbys_silent(ngx_http_xet_standbys_t *s);
static void ngx_http_xet_standbys_sample(ngx_http_xet_standbys_t *s,
    uint64_t lsn);
static void ngx_http_xet_standbys_thin(ngx_http_xet_standbys_t *s);
static void ngx_http_xet_standby_ask(ngx_http_xet_standbys_t *s,
    ngx_http_xet_standby_t *sb);
static void ngx_http_xet_standby_answered(void *data, PGresult *res, ngx_int_t
    rc, const char *sqlstate);
static ngx_msec_t ngx_http_xet_standbys_now(ngx_http_xet_standbys_t *s);
static ngx_msec_t ngx_http_xet_standby_age(ngx_http_xet_standbys_t *s,
    ngx_http_xet_standby_t *sb);
static ngx_uint_t ngx_http_xet_standby_fit(ngx_http_xet_standbys_t *s,
    ngx_http_xet_standby_t *sb);
static void ngx_http_xet_standby_look(ngx_http_xet_standbys_t *s,
    ngx_http_xet_standby_t *sb);
static ngx_uint_t ngx_http_xet_standby_nearer(
    const ngx_http_xet_standby_t *one, const ngx_http_xet_standby_t *other);
static uint64_t ngx_http_xet_standby_clock(void);


ngx_int_t
ngx_http_xet_standbys_init(ngx_cycle_t *cycle,
    const ngx_http_xet_pg_stmt_t *stmts, const ngx_http_xet_pg_stmt_t *wal)
{
    ngx_http_xet_standbys_t   *s;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    /* poll also without standbys, if several hosts may be the primary */

    if (xmcf->standbys == NULL && !xmcf->primary->several) {
        return NGX_OK;
    }

    s = ngx_pcalloc(cycle->pool, sizeof(ngx_http_xet_standbys_t));
    if (s == NULL) {
        return NGX_ERROR;
    }

    s->wal = wal;
    s->tick = NGX_HTTP_XET_STANDBY_TICK;

    if (xmcf->standbys
        && ngx_http_xet_standbys_create(s, xmcf->standbys, stmts, cycle)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    s->timer.handler = ngx_http_xet_standbys_timer_handler;
    s->timer.data = s;
    s->timer.log = cycle->log;
    s->timer.cancelable = 1;

    xmcf->reading = s;

    ngx_add_timer(&s->timer, 1);

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_standbys_create(ngx_http_xet_standbys_t *s, ngx_array_t *standbys,
    const ngx_http_xet_pg_stmt_t *stmts, ngx_cycle_t *cycle)
{
    ngx_uint_t                    i;
    ngx_http_xet_standby_conf_t  *conf;

    conf = standbys->elts;

    s->n = standbys->nelts;

    s->standby = ngx_pcalloc(cycle->pool,
                             s->n * sizeof(ngx_http_xet_standby_t));
    if (s->standby == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < s->n; i++) {
        s->lag = ngx_max(s->lag, conf[i].lag);
        s->tick = ngx_min(s->tick, conf[i].lag / NGX_HTTP_XET_STANDBY_TICKS);

        if (ngx_http_xet_standby_create(s, &s->standby[i], &conf[i], stmts,
                                        cycle)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_xet_standby_create(ngx_http_xet_standbys_t *s,
    ngx_http_xet_standby_t *sb, const ngx_http_xet_standby_conf_t *conf,
    const ngx_http_xet_pg_stmt_t *stmts, ngx_cycle_t *cycle)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    sb->lag = conf->lag;

    sb->pg_pool.host = &conf->host;
    sb->pg_pool.stmts = stmts;
    sb->pg_pool.number = NGX_HTTP_XET_STANDBY;
    sb->pg_pool.n = conf->reads;
    sb->pg_pool.depth = xmcf->depth;
    sb->pg_pool.queue = xmcf->queue;
    sb->pg_pool.timeout = conf->timeout;
    sb->pg_pool.running = conf->timeout;
    sb->pg_pool.idle_timeout = xmcf->idle_timeout;

    /*
     * dedup queries have a separate pool, like on the primary, because their
     * cost varies
     */

    sb->dedup = sb->pg_pool;
    sb->dedup.n = xmcf->dedups;
    sb->dedup.running = ngx_min(conf->timeout, xmcf->dedup_timeout);

    sb->longs = sb->pg_pool;
    sb->longs.n = xmcf->longs;
    sb->longs.depth = 1;
    sb->longs.turns = 1;
    sb->longs.running = ngx_min(conf->timeout, xmcf->long_timeout);

    return (ngx_http_xet_pg_pool_init(&sb->pg_pool, cycle->pool) == NGX_OK
            && ngx_http_xet_pg_pool_init(&sb->dedup, cycle->pool) == NGX_OK)
           ? ngx_http_xet_pg_pool_init(&sb->longs, cycle->pool) : NGX_ERROR;
}


void
ngx_http_xet_standbys_exit(ngx_cycle_t *cycle)
{
    ngx_uint_t                 i;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    for (i = 0; xmcf && xmcf->reading && i < xmcf->reading->n; i++) {
        ngx_http_xet_pg_pool_close(&xmcf->reading->standby[i].pg_pool);
        ngx_http_xet_pg_pool_close(&xmcf->reading->standby[i].dedup);
        ngx_http_xet_pg_pool_close(&xmcf->reading->standby[i].longs);
    }
}


static ngx_http_xet_standbys_t *
ngx_http_xet_standbys_get(void)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    return xmcf->reading;
}


void
ngx_http_xet_standbys_stat(ngx_http_xet_pg_pool_stat_t *stat)
{
    ngx_uint_t                i;
    ngx_http_xet_standbys_t  *s;

    s = ngx_http_xet_standbys_get();

    ngx_memzero(stat, sizeof(ngx_http_xet_pg_pool_stat_t));

    for (i = 0; s && i < s->n; i++) {
        ngx_http_xet_pg_pool_stat(&s->standby[i].pg_pool, stat);
        ngx_http_xet_pg_pool_stat(&s->standby[i].dedup, stat);
        ngx_http_xet_pg_pool_stat(&s->standby[i].longs, stat);
    }
}


static void
ngx_http_xet_standbys_timer_handler(ngx_event_t *ev)
{
    ngx_uint_t                i;
    ngx_http_xet_standbys_t  *s;

    s = ev->data;

    if (ngx_exiting) {
        return;
    }

    ngx_http_xet_standbys_ask_primary(s);

    for (i = 0; i < s->n; i++) {
        ngx_http_xet_standby_ask(s, &s->standby[i]);
        ngx_http_xet_standby_look(s, &s->standby[i]);
    }

    ngx_add_timer(ev, s->tick);
}


/*
 * Polls the primary with a ping, which does not wait behind a slow statement.
 * A poll that fails or takes too long means that the primary is unreachable.
 */

static void
ngx_http_xet_standbys_ask_primary(ngx_http_xet_standbys_t *s)
{
    if (s->ask.query) {

        if (ngx_current_msec - s->ask.at >= NGX_HTTP_XET_STANDBY_PATIENCE) {
            s->away = 1;
        }

        return;
    }

    s->ask.at = ngx_current_msec;
    s->ask.query = ngx_http_xet_pg_pools_send(NGX_HTTP_XET_PING, s->wal, NULL,
                                           ngx_http_xet_standbys_answered, s);
    if (s->ask.query == NULL) {
        s->away = 1;
    }
}


static void
ngx_http_xet_standbys_answered(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_http_xet_standbys_t *s = data;

    uint64_t                   timeline;
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    s->ask.query = NULL;

    if (rc != NGX_OK || ngx_http_xet_pg_rows(res) != 1
        || ngx_http_xet_pg_int(res, 0, 0) != 0)
    {
        s->away = 1;
        ngx_http_xet_pg_clear(res);
        ngx_http_xet_standbys_silent(s);
        return;
    }

    s->away = 0;
    s->silent = 0;

    if (ngx_http_xet_pg_int(res, 0, 3) != 0) {
        ngx_http_xet_pg_pools_moved();
    }

    timeline = (uint64_t) ngx_http_xet_pg_int(res, 0, 2);

    if (timeline != s->timeline) {

        /*
         * Another primary: samples of the old primary are useless, and
         * statements on its sessions would wait for a long time.
         */

        if (s->timeline && timeline > s->timeline && xmcf->primary->several) {
            ngx_http_xet_pg_pools_abandon("another host became the primary");
        }

        s->timeline = timeline;
        s->nsamples = 0;
    }

    ngx_http_xet_standbys_sample(s, (uint64_t) ngx_http_xet_pg_int(res, 0, 1));
    ngx_http_xet_pg_clear(res);
}


/*
 * Handles a failed poll.  If a server hangs or is cut off, its sessions still
 * look ready, and a write would wait for minutes.  If xet_postgres lists
 * several hosts, all sessions are closed after two pings without a result.
 */

static void
ngx_http_xet_standbys_silent(ngx_http_xet_standbys_t *s)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_xet_module);

    if (ngx_current_msec - s->ask.at < xmcf->ping_timeout) {

        /*
         * the ping failed before its timeout, so the server does not hang;
         * closed connections are detected without polls
         */

        s->silent = 0;
        return;
    }

    if (++s->silent == NGX_HTTP_XET_STANDBY_SILENT && xmcf->primary->several) {
        s->silent = 0;
        ngx_http_xet_pg_pools_abandon("it does not respond");
    }
}


/*
 * Adds a sample of the primary.  If the array is full, removes another sample.
 */

static void
ngx_http_xet_standbys_sample(ngx_http_xet_standbys_t *s, uint64_t lsn)
{
    ngx_uint_t                      i, n;
    ngx_http_xet_standby_t         *sb;
    ngx_http_xet_standby_sample_t  *sample;

    for (i = 0; i < s->n; i++) {
        sb = &s->standby[i];

        /*
         * an earlier poll of the standby has returned a later position
         */

        if (sb->lsn > lsn && sb->timeline == 0
            && (ngx_msec_int_t) (s->ask.at - sb->at) > 0)
        {
            sb->strange = 1;
        }
    }

    n = s->nsamples;
    sample = s->samples;

    /* nothing was written since the last sample: update its time */

    if (n && sample[n - 1].lsn == lsn) {
        sample[n - 1].at = s->ask.at;
        return;
    }

    if (n == NGX_HTTP_XET_STANDBY_SAMPLES) {
        ngx_http_xet_standbys_thin(s);
        n--;
    }

    sample[n].lsn = lsn;
    sample[n].at = s->ask.at;

    s->nsamples = n + 1;
}


/*
 * Removes a sample.  If the second oldest sample is older than every allowed
 * lag, removes the oldest sample.  Otherwise removes the sample whose removal
 * leaves the smallest gap relative to its age.  So recent ages are accurate to
 * a second, and an age of an hour to a few minutes, independent of the allowed
 * lag.
 */

static void
ngx_http_xet_standbys_thin(ngx_http_xet_standbys_t *s)
{
    uint64_t                        gap, least;
    ngx_uint_t                      i, k;
    ngx_http_xet_standby_sample_t  *sample;

    k = 0;
    sample = s->samples;

    if (s->ask.at - sample[1].at <= s->lag) {
        least = (uint64_t) -1;

        for (i = 1; i < s->nsamples - 1; i++) {
            gap = (uint64_t) (sample[i + 1].at - sample[i - 1].at) * 1024
                  / (s->ask.at - sample[i + 1].at + 1);

            if (gap < least) {
                least = gap;
                k = i;
            }
        }
    }

    s->nsamples--;

    ngx_memmove(sample + k, sample + k + 1,
                (s->nsamples - k) * sizeof(*sample));
}


static void
ngx_http_xet_standby_ask(ngx_http_xet_standbys_t *s,
    ngx_http_xet_standby_t *sb)
{
    if (sb->ask.query) {

        /*
         * the poll has no result: close the sessions, so that other servers get
         * the statements
         */

        if (ngx_current_msec - sb->ask.at >= NGX_HTTP_XET_STANDBY_PATIENCE) {
            sb->measured = 0;
            ngx_http_xet_pg_pool_drop(&sb->pg_pool);
            ngx_http_xet_pg_pool_drop(&sb->dedup);
            ngx_http_xet_pg_pool_drop(&sb->longs);
        }

        return;
    }

    if (!ngx_http_xet_pg_pool_ready_any(&sb->pg_pool)) {
        sb->measured = 0;
        ngx_http_xet_pg_pool_want(&sb->pg_pool);
        return;
    }

    sb->ask.at = ngx_current_msec;
    sb->ask.start = ngx_http_xet_standby_clock();
    sb->ask.query = ngx_http_xet_pg_pool_send(&sb->pg_pool, s->wal, NULL,
                                           ngx_http_xet_standby_answered, sb);
    if (sb->ask.query == NULL) {
        sb->measured = 0;
    }
}


static void
ngx_http_xet_standby_answered(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_http_xet_standby_t *sb = data;

    uint64_t                        lsn, took;
    ngx_http_xet_standbys_t        *s;
    ngx_http_xet_standby_sample_t  *newest;

    s = ngx_http_xet_standbys_get();

    sb->ask.query = NULL;
    sb->measured = (rc == NGX_OK && ngx_http_xet_pg_rows(res) == 1
                    && !ngx_http_xet_pg_null(res, 0, 1));

    if (!sb->measured) {
        ngx_http_xet_pg_clear(res);
        ngx_http_xet_standby_look(s, sb);
        return;
    }

    took = ngx_http_xet_standby_clock() - sb->ask.start;

    sb->distance = sb->distance ? (3 * sb->distance + took) / 4 : took;

    lsn = (uint64_t) ngx_http_xet_pg_int(res, 0, 1);

    /*
     * a host that advances, and is not ahead of the primary, is usable again
     */

    newest = s->nsamples ? &s->samples[s->nsamples - 1] : NULL;

    if (lsn != sb->lsn && newest && lsn <= newest->lsn) {
        sb->strange = 0;
    }

    sb->lsn = lsn;
    sb->at = ngx_current_msec;
    sb->timeline = ngx_http_xet_pg_int(res, 0, 0)
                   ? 0 : (uint64_t) ngx_http_xet_pg_int(res, 0, 2);

    ngx_http_xet_pg_clear(res);

    ngx_http_xet_standby_look(s, sb);
}


/*
 * Returns the reference time for the ages of the standbys' rows: now, or, if
 * the primary is unreachable, the time of the primary's last result or of the
 * newest sample of its WAL position, whichever is later.  Called only if there
 * are samples.
 */

static ngx_msec_t
ngx_http_xet_standbys_now(ngx_http_xet_standbys_t *s)
{
    ngx_msec_t  at, answered;

    if (!s->away) {
        return ngx_current_msec;
    }

    at = s->samples[s->nsamples - 1].at;

    return (ngx_http_xet_pg_pools_answered(&answered)
            && (ngx_msec_int_t) (answered - at) > 0)
           ? answered : at;
}


/*
 * Returns the maximum age of the standby's rows, as far as the primary's state
 * is known.
 */

static ngx_msec_t
ngx_http_xet_standby_age(ngx_http_xet_standbys_t *s,
    ngx_http_xet_standby_t *sb)
{
    ngx_uint_t                      n;
    ngx_msec_t                      now, answered;
    ngx_http_xet_standby_sample_t  *sample;

    n = s->nsamples;
    sample = s->samples;

    if (sb->lsn == 0) {
        return NGX_HTTP_XET_STANDBY_NEVER;
    }

    if (n == 0) {

        /*
         * if the primary was never reachable, use this host; else its age is
         * unknown
         */

        return (s->away && !ngx_http_xet_pg_pools_answered(&answered))
               ? 0 : NGX_HTTP_XET_STANDBY_NEVER;
    }

    now = ngx_http_xet_standbys_now(s);

    if (sb->timeline) {

        /* not a standby: the primary itself, or a promoted standby */

        return (s->away || sb->timeline == s->timeline)
               ? 0 : NGX_HTTP_XET_STANDBY_NEVER;
    }

    while (n--) {
        if (sample[n].lsn <= sb->lsn) {
            return now - sample[n].at;
        }
    }

    return NGX_HTTP_XET_STANDBY_NEVER;
}


static ngx_uint_t
ngx_http_xet_standby_fit(ngx_http_xet_standbys_t *s,
    ngx_http_xet_standby_t *sb)
{
    return sb->measured && !sb->strange
           && ngx_http_xet_pg_pool_ready_any(&sb->pg_pool)
           && ngx_http_xet_standby_age(s, sb) <= sb->lag;
}


/* Logs when a standby becomes usable or unusable. */

static void
ngx_http_xet_standby_look(ngx_http_xet_standbys_t *s,
    ngx_http_xet_standby_t *sb)
{
    ngx_uint_t   fit;
    ngx_msec_t   age;
    const char  *why;

    fit = ngx_http_xet_standby_fit(s, sb);

    if (fit == sb->fit) {
        return;
    }

    sb->fit = fit;

    if (fit) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "xet: reading from %V; it responds in %uL us",
                      &sb->pg_pool.host->name, sb->distance);
        return;
    }

    age = ngx_http_xet_standby_age(s, sb);

    why = (!sb->measured || !ngx_http_xet_pg_pool_ready_any(&sb->pg_pool))
          ? "it does not respond"
          : (sb->strange || sb->timeline) ? "it follows another primary"
          : (age == NGX_HTTP_XET_STANDBY_NEVER) ? "it is too far behind"
          : "it is behind";

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                  "xet: not reading from %V: %s", &sb->pg_pool.host->name, why);
}


ngx_uint_t
ngx_http_xet_standbys_fit(ngx_uint_t n)
{
    ngx_http_xet_standbys_t  *s;

    s = ngx_http_xet_standbys_get();

    return s && ngx_http_xet_standby_fit(s, &s->standby[n]);
}


ngx_uint_t
ngx_http_xet_standbys_alone(void)
{
    ngx_http_xet_standbys_t  *s;

    s = ngx_http_xet_standbys_get();

    return s && s->away;
}


ngx_uint_t
ngx_http_xet_standbys_nearest(ngx_uint_t but)
{
    ngx_uint_t                i, best;
    ngx_http_xet_standbys_t  *s;

    s = ngx_http_xet_standbys_get();

    if (s == NULL || s->n == 0) {
        return NGX_HTTP_XET_NO_STANDBY;
    }

    best = NGX_HTTP_XET_NO_STANDBY;

    if (!(but & ((ngx_uint_t) 1 << s->current))
        && ngx_http_xet_standby_fit(s, &s->standby[s->current]))
    {
        best = s->current;
    }

    for (i = 0; i < s->n; i++) {

        if (i == best || (but & ((ngx_uint_t) 1 << i))
            || !ngx_http_xet_standby_fit(s, &s->standby[i]))
        {
            continue;
        }

        if (best == NGX_HTTP_XET_NO_STANDBY
            || ngx_http_xet_standby_nearer(&s->standby[i], &s->standby[best]))
        {
            best = i;
        }
    }

    if (but == 0 && best != NGX_HTTP_XET_NO_STANDBY) {
        s->current = best;
    }

    return best;
}


static ngx_uint_t
ngx_http_xet_standby_nearer(const ngx_http_xet_standby_t *one,
    const ngx_http_xet_standby_t *other)
{
    return one->distance + one->distance / 2 < other->distance
           && one->distance + NGX_HTTP_XET_STANDBY_NEARER < other->distance;
}


ngx_http_xet_pg_query_t *
ngx_http_xet_standbys_send(ngx_uint_t n, ngx_http_xet_pg_pool_e pg_pool,
    const ngx_http_xet_pg_stmt_t *stmt, ngx_http_xet_params_t *p,
    ngx_http_xet_pg_handler_pt handler, void *data)
{
    ngx_http_xet_pg_pool_t  *to;
    ngx_http_xet_standby_t  *sb;

    sb = &ngx_http_xet_standbys_get()->standby[n];

    to = (pg_pool == NGX_HTTP_XET_DEDUP) ? &sb->dedup
         : stmt->longs ? &sb->longs : &sb->pg_pool;

    return ngx_http_xet_pg_pool_send(to, stmt, p, handler, data);
}


void
ngx_http_xet_standbys_suspect(ngx_uint_t n)
{
    ngx_http_xet_standbys_t  *s;

    s = ngx_http_xet_standbys_get();

    s->standby[n].measured = 0;

    ngx_http_xet_standby_look(s, &s->standby[n]);
}


void
ngx_http_xet_standbys_measure(void)
{
    ngx_uint_t                i, fit;
    ngx_msec_t                age;
    ngx_http_xet_standby_t   *sb;
    ngx_http_xet_standbys_t  *s;

    s = ngx_http_xet_standbys_get();

    for (i = 0; s && i < s->n; i++) {
        sb = &s->standby[i];

        fit = ngx_http_xet_standby_fit(s, sb);
        age = sb->measured ? ngx_http_xet_standby_age(s, sb) : 0;

        ngx_http_xet_level_at(STANDBY_FIT, i, fit);
        ngx_http_xet_level_at(STANDBY_NEAREST, i, fit && i == s->current);
        ngx_http_xet_level_at(STANDBY_LAG, i, age);
        ngx_http_xet_level_at(STANDBY_DISTANCE, i,
                              sb->measured ? sb->distance : 0);
    }
}


/* Returns a monotonic time in microseconds. */

static uint64_t
ngx_http_xet_standby_clock(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}
