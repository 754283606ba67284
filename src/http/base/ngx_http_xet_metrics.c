
/*
 * Counters and gauges of all workers, in shared memory.
 *
 * Each index in the master's process table has a block of cells.  No two live
 * workers have the same index, so a worker counts in its block without locks or
 * atomic operations.  The next worker with that index continues with the same
 * counters.  So no count is lost when a worker exits or is killed, and the sum
 * over all blocks never decreases.  Gauges of a worker start at zero, and are
 * omitted from sums after the worker has exited.  During a reload, old and new
 * workers have different indexes.
 *
 * The memory survives reloads.  Its name contains a hash of its layout, so
 * another version of the module starts with new memory.  Another master
 * process, for example after a binary upgrade, counts from zero in its own
 * memory; START_TIME shows which master has responded.
 *
 * If metrics are not configured, and in the master, the cells are in private
 * memory, so that code can always count without a check.
 *
 * Readers take no lock: a cell is a word, which is read and written atomically
 * on 64-bit machines.  The zone's mutex is locked when a worker starts, and to
 * use the memory that ngx_http_xet_metrics_room() and _history() return.
 */

#include "ngx_http_xet.h"


#define NGX_HTTP_XET_METRICS_BLOCK                                            \
    (sizeof(ngx_http_xet_block_t) + 2 * ngx_pagesize)


typedef struct {
    ngx_pid_t              pid;                /* 0: the worker has exited */
    uint64_t               cells[NGX_HTTP_XET_CELLS];
} ngx_http_xet_block_t;


typedef struct {
    ngx_uint_t             n;                  /* highest used index + 1 */
    ngx_http_xet_block_t  *blocks[NGX_MAX_PROCESSES];
    uint64_t               gauges[NGX_HTTP_XET_CELLS];
    uint64_t               room[NGX_HTTP_XET_METRICS_ROOM / sizeof(uint64_t)];
    xet_history_t          history;
} ngx_http_xet_blocks_t;


static ngx_uint_t ngx_http_xet_metrics_mark(void);
static ngx_int_t ngx_http_xet_metrics_init_zone(ngx_shm_zone_t *zone,
    void *data);
static ngx_uint_t ngx_http_xet_metrics_own(const ngx_http_xet_metric_t *m);
static void ngx_http_xet_metrics_add(uint64_t *cells,
    const ngx_http_xet_metric_t *m, ngx_http_xet_block_t *block);
static ngx_uint_t ngx_http_xet_metrics_alive(ngx_http_xet_block_t *block);


#define XET_METRIC(symbol, type, one, two, name, help)                        \
    { name, help, NGX_HTTP_XET_##type,                                        \
      { NGX_HTTP_XET_LABEL_##one, NGX_HTTP_XET_LABEL_##two },                 \
      NGX_HTTP_XET_M_##symbol,                                                \
      { NGX_HTTP_XET_##one##_MAX, NGX_HTTP_XET_##two##_MAX },                 \
      NGX_HTTP_XET_CELLS_##type },

const ngx_http_xet_metric_t  ngx_http_xet_metrics[] = {
#include "metrics.def"
    { NULL, NULL, 0, { 0, 0 }, 0, { 0, 0 }, 0 }
};

#undef XET_METRIC


const ngx_msec_t  ngx_http_xet_buckets[NGX_HTTP_XET_BUCKETS - 1] = {
    1, 5, 25, 100, 500, 1000, 5000, 30000, 120000
};


static const char *const  ngx_http_xet_classes[] = {
    "2xx", "3xx", "4xx", "5xx", NULL
};


static const ngx_uint_t  ngx_http_xet_statuses[] = {
    200, 201, 204, 206, 301, 302, 304, 400, 401, 403, 404, 405, 408, 409, 411,
    412, 413, 414, 415, 416, 429, 499, 500, 501, 502, 503, 504, 507, 0
};


static const char *const  ngx_http_xet_codes[] = {
    "200", "201", "204", "206", "301", "302", "304", "400", "401", "403",
    "404", "405", "408", "409", "411", "412", "413", "414", "415", "416",
    "429", "499", "500", "501", "502", "503", "504", "507", "other", NULL
};


static const char *const  ngx_http_xet_lookups[] = {
    "hit", "miss", "full", NULL
};


static const char *const  ngx_http_xet_pg_pools[] = {
    "read", "write", "dedup", "long", "ping", "standby", NULL
};


static const char *const  ngx_http_xet_results[] = {
    "ok", "refused", "away", NULL
};


static const char *const  ngx_http_xet_pools[] = { "upload", "read", NULL };


static const char *const  ngx_http_xet_agains[] = {
    "missing", "conflict", "away", "changed", NULL
};


static const char *const  ngx_http_xet_ends[] = {
    "2xx", "3xx", "4xx", "5xx", "timeout", "lost", "withheld", NULL
};


static const char *const  ngx_http_xet_ways[] = { "sent", "received", NULL };


static const char *const  ngx_http_xet_grants[] = {
    "given", "committed", "refused", "swept", NULL
};


static const char *const  ngx_http_xet_methods[] = {
    "GET", "HEAD", "PUT", "POST", "DELETE", NULL
};


/* Set if there is no object store, so that its metrics are not shown. */

static ngx_uint_t  ngx_http_xet_no_bucket;


/* The labels of the configured standbys. */

static const char  *ngx_http_xet_standbys[NGX_HTTP_XET_STANDBY_MAX + 1];


/* "other", and each error code once; filled at the first use. */

static const char  *ngx_http_xet_reasons[NGX_HTTP_XET_REASON_MAX + 1];

static const char  *ngx_http_xet_route_names[NGX_HTTP_XET_ROUTE_MAX + 1] = {
    "other", "data", "token", "metrics", "status"
};


static const struct {
    const char          *key;
    const char *const   *values;
} ngx_http_xet_labels[NGX_HTTP_XET_LABELS] = {
    { NULL, NULL },
    { "route", ngx_http_xet_route_names },
    { "class", ngx_http_xet_classes },
    { "code", ngx_http_xet_codes },
    { "reason", ngx_http_xet_reasons },
    { "result", ngx_http_xet_lookups },
    { "pg_pool", ngx_http_xet_pg_pools },
    { "result", ngx_http_xet_results },
    { "pool", ngx_http_xet_pools },
    { "standby", ngx_http_xet_standbys },
    { "reason", ngx_http_xet_agains },
    { "method", ngx_http_xet_methods },
    { "result", ngx_http_xet_ends },
    { "way", ngx_http_xet_ways },
    { "state", ngx_http_xet_grants }
};


static uint64_t                ngx_http_xet_unshared[NGX_HTTP_XET_CELLS];
static ngx_slab_pool_t        *ngx_http_xet_shpool;
static ngx_http_xet_block_t   *ngx_http_xet_block;

uint64_t  *ngx_http_xet_cells = ngx_http_xet_unshared;


const char *
ngx_http_xet_metrics_label(ngx_http_xet_label_e label)
{
    return ngx_http_xet_labels[label].key;
}


const char *
ngx_http_xet_metrics_value(ngx_http_xet_label_e label, ngx_uint_t n)
{
    if (label == NGX_HTTP_XET_LABEL_NONE) {
        return (n == 0) ? "" : NULL;
    }

    if (ngx_http_xet_no_bucket && label >= NGX_HTTP_XET_LABEL_METHOD) {
        return NULL;
    }

    return ngx_http_xet_labels[label].values[n];
}


void
ngx_http_xet_metrics_routes(const char *const *names, ngx_uint_t n)
{
    ngx_uint_t  i;

    n = ngx_min(n, NGX_HTTP_XET_ROUTE_MAX - NGX_HTTP_XET_ROUTE_FIRST);

    for (i = 0; i < n; i++) {
        ngx_http_xet_route_names[NGX_HTTP_XET_ROUTE_FIRST + i] = names[i];
    }
}


void
ngx_http_xet_metrics_bucket(ngx_uint_t there)
{
    ngx_http_xet_no_bucket = !there;
}


void
ngx_http_xet_metrics_standbys(ngx_uint_t n)
{
    ngx_uint_t  i;

    static const char *const  names[NGX_HTTP_XET_STANDBY_MAX] = {
        "1", "2", "3", "4", "5", "6", "7", "8"
    };

    for (i = 0; i < NGX_HTTP_XET_STANDBY_MAX; i++) {
        ngx_http_xet_standbys[i] = (i < n) ? names[i] : NULL;
    }
}


/*
 * Returns the index of an error code.  If add is set, adds an unknown code
 * unless the table is full.  Returns 0, the index of "other", for other codes.
 */

static ngx_uint_t
ngx_http_xet_metrics_reason(const char *code, ngx_uint_t add)
{
    ngx_uint_t  i;

    for (i = 1; ngx_http_xet_reasons[i]; i++) {
        if (ngx_strcmp(ngx_http_xet_reasons[i], code) == 0) {
            return i;
        }
    }

    if (add && i < NGX_HTTP_XET_REASON_MAX) {
        ngx_http_xet_reasons[i] = code;
        return i;
    }

    return 0;
}


static void
ngx_http_xet_metrics_reasons(void)
{
    ngx_uint_t  i;

    static const char *const  codes[] = {
#define XET_ERROR(code)  code,
#include "errors.def"
#undef XET_ERROR
        NULL
    };

    if (ngx_http_xet_reasons[0]) {
        return;
    }

    ngx_http_xet_reasons[0] = "other";

    /* OK, AGAIN and DONE are not errors */

    for (i = XET_DONE + 1; i < XET_STATUS_MAX; i++) {
        (void) ngx_http_xet_metrics_reason(xet_status_code(i), 1);
    }

    for (i = 0; codes[i]; i++) {
        (void) ngx_http_xet_metrics_reason(codes[i], 1);
    }
}


void
ngx_http_xet_metrics_refusal(const char *code)
{
    ngx_http_xet_count_at(REFUSALS, ngx_http_xet_metrics_reason(code, 0), 1);
}


void
ngx_http_xet_metrics_request(ngx_uint_t route, ngx_uint_t status,
    ngx_msec_t ms, uint64_t received, uint64_t sent)
{
    ngx_uint_t  i, class;

    class = (status < 300) ? 0 : (status < 400) ? 1 : (status < 500) ? 2 : 3;

    ngx_http_xet_count_at(REQUESTS, route * NGX_HTTP_XET_CLASS_MAX + class, 1);
    ngx_http_xet_count_at(RECEIVED, route, received);
    ngx_http_xet_count_at(SENT, route, sent);

    for (i = 0; ngx_http_xet_statuses[i] && ngx_http_xet_statuses[i] != status;
         i++)
    {
        /* void */
    }

    ngx_http_xet_count_at(RESPONSES, i, 1);

    route *= NGX_HTTP_XET_CELLS_HISTOGRAM;

    ngx_http_xet_count_at(DURATION, route + ngx_http_xet_metrics_slot(ms), 1);
    ngx_http_xet_count_at(DURATION, route + NGX_HTTP_XET_BUCKETS, ms);
}


ngx_uint_t
ngx_http_xet_metrics_slot(uint64_t ms)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_XET_BUCKETS - 1 && ms > ngx_http_xet_buckets[i];
         i++)
    {
        /* void */
    }

    return i;
}


ngx_shm_zone_t *
ngx_http_xet_metrics_zone(ngx_conf_t *cf)
{
    size_t           size;
    u_char          *p;
    ngx_str_t        name;
    ngx_shm_zone_t  *zone;

    ngx_http_xet_metrics_reasons();

    p = ngx_pnalloc(cf->pool, sizeof("xet metrics ") + NGX_INT64_LEN);
    if (p == NULL) {
        return NULL;
    }

    /* the name contains a blank, unlike the names of configured zones */

    name.data = p;
    name.len = ngx_sprintf(p, "xet metrics %ui", ngx_http_xet_metrics_mark())
               - p;

    /*
     * reserve address space for all processes; untouched pages take no memory
     */

    size = NGX_MAX_PROCESSES * NGX_HTTP_XET_METRICS_BLOCK
           + ngx_align(sizeof(ngx_http_xet_blocks_t), ngx_pagesize)
           + 64 * ngx_pagesize;

    zone = ngx_shared_memory_add(cf, &name, ngx_align(size, ngx_pagesize),
                                 &ngx_http_xet_module);
    if (zone == NULL) {
        return NULL;
    }

    zone->init = ngx_http_xet_metrics_init_zone;
    zone->data = zone;

    return zone;
}


/* Returns a hash of the layout of the shared memory. */

static ngx_uint_t
ngx_http_xet_metrics_mark(void)
{
    size_t                        size;
    uint32_t                      crc;
    ngx_uint_t                    i, n;
    const char                   *value;
    const ngx_http_xet_metric_t  *m;

    size = sizeof(ngx_http_xet_blocks_t);

    ngx_crc32_init(crc);
    ngx_crc32_update(&crc, (u_char *) &size, sizeof(size_t));

    for (m = ngx_http_xet_metrics; m->name; m++) {
        ngx_crc32_update(&crc, (u_char *) m->name, ngx_strlen(m->name) + 1);
        ngx_crc32_update(&crc, (u_char *) &m->cell, sizeof(ngx_uint_t));

        for (i = 0; i < 2; i++) {
            for (n = 0; /* void */ ; n++) {

                value = ngx_http_xet_metrics_value(m->labels[i], n);
                if (value == NULL) {
                    break;
                }

                ngx_crc32_update(&crc, (u_char *) value,
                                 ngx_strlen(value) + 1);
            }
        }
    }

    ngx_crc32_final(crc);

    return crc;
}


static ngx_int_t
ngx_http_xet_metrics_init_zone(ngx_shm_zone_t *zone, void *data)
{
    ngx_slab_pool_t        *shpool;
    xet_history_sample_t    start;
    ngx_http_xet_blocks_t  *blocks;

    shpool = (ngx_slab_pool_t *) zone->shm.addr;

    if (data == NULL) {
        blocks = ngx_slab_calloc(shpool, sizeof(ngx_http_xet_blocks_t));
        if (blocks == NULL) {
            return NGX_ERROR;
        }

        ngx_memzero(&start, sizeof(xet_history_sample_t));
        start.time = ngx_http_xet_metrics_now();

        xet_history_add(&blocks->history, &start);

        blocks->gauges[NGX_HTTP_XET_M_START_TIME] = start.time + 1;
        shpool->data = blocks;
    }

    blocks = shpool->data;
    blocks->gauges[NGX_HTTP_XET_M_LOAD_TIME] = ngx_http_xet_metrics_now() + 1;

    return NGX_OK;
}


uint64_t
ngx_http_xet_metrics_now(void)
{
    ngx_time_t  *tp;

    tp = ngx_timeofday();

    return (uint64_t) tp->sec * 1000 + tp->msec;
}


static ngx_http_xet_blocks_t *
ngx_http_xet_metrics_blocks(void)
{
    return ngx_http_xet_shpool ? ngx_http_xet_shpool->data : NULL;
}


void *
ngx_http_xet_metrics_room(ngx_shmtx_t **mutex)
{
    ngx_http_xet_blocks_t  *blocks;

    blocks = ngx_http_xet_metrics_blocks();
    if (blocks == NULL) {
        return NULL;
    }

    *mutex = &ngx_http_xet_shpool->mutex;

    return blocks->room;
}


xet_history_t *
ngx_http_xet_metrics_history(ngx_shmtx_t **mutex)
{
    ngx_http_xet_blocks_t  *blocks;

    blocks = ngx_http_xet_metrics_blocks();
    if (blocks == NULL) {
        return NULL;
    }

    *mutex = &ngx_http_xet_shpool->mutex;

    return &blocks->history;
}


void
ngx_http_xet_metrics_gauge(ngx_uint_t cell, uint64_t v)
{
    ngx_http_xet_blocks_t  *blocks;

    blocks = ngx_http_xet_metrics_blocks();

    if (blocks) {
        blocks->gauges[cell] = v + 1;
    }
}


void
ngx_http_xet_metrics_init_process(ngx_shm_zone_t *zone)
{
    ngx_uint_t                    i, n;
    ngx_slab_pool_t              *shpool;
    ngx_http_xet_block_t         *block;
    ngx_http_xet_blocks_t        *blocks;
    const ngx_http_xet_metric_t  *m;

    shpool = (ngx_slab_pool_t *) zone->shm.addr;
    blocks = shpool->data;
    n = ngx_process_slot;

    ngx_http_xet_shpool = shpool;

    ngx_shmtx_lock(&shpool->mutex);

    block = blocks->blocks[n];

    if (block == NULL) {
        block = ngx_slab_calloc_locked(shpool, sizeof(ngx_http_xet_block_t));

        blocks->blocks[n] = block;
        blocks->n = ngx_max(blocks->n, n + 1);
    }

    ngx_shmtx_unlock(&shpool->mutex);

    if (block == NULL) {
        return;
    }

    for (m = ngx_http_xet_metrics; m->name; m++) {

        if (!ngx_http_xet_metrics_own(m)) {
            continue;
        }

        for (i = 0; i < m->sizes[0] * m->sizes[1]; i++) {
            block->cells[m->cell + i] = 0;
        }
    }

    block->pid = ngx_pid;

    ngx_http_xet_block = block;
    ngx_http_xet_cells = block->cells;

    ngx_http_xet_level_at(WORKERS, 0, 1);
    ngx_http_xet_count(WORKERS_STARTED, 1);
}


/*
 * Switches to private cells, so counts that handlers add after this are lost.
 */

void
ngx_http_xet_metrics_exit_process(void)
{
    ngx_http_xet_cells = ngx_http_xet_unshared;

    if (ngx_http_xet_block) {
        ngx_http_xet_block->pid = 0;
        ngx_http_xet_block = NULL;
    }
}


void
ngx_http_xet_metrics_read(uint64_t *cells)
{
    ngx_uint_t                    i, alive;
    ngx_http_xet_block_t         *block;
    ngx_http_xet_blocks_t        *blocks;
    const ngx_http_xet_metric_t  *m;

    ngx_memzero(cells, NGX_HTTP_XET_CELLS * sizeof(uint64_t));

    blocks = ngx_http_xet_metrics_blocks();
    if (blocks == NULL) {
        return;
    }

    for (i = 0; i < blocks->n; i++) {

        block = blocks->blocks[i];

        if (block == NULL) {
            continue;
        }

        alive = ngx_http_xet_metrics_alive(block);

        for (m = ngx_http_xet_metrics; m->name; m++) {
            if (alive || !ngx_http_xet_metrics_own(m)) {
                ngx_http_xet_metrics_add(cells, m, block);
            }
        }
    }

    for (m = ngx_http_xet_metrics; m->name; m++) {
        if (m->type == NGX_HTTP_XET_GAUGE) {
            cells[m->cell] = blocks->gauges[m->cell];
        }
    }
}


/* Returns whether a metric is a gauge of one worker, and not a counter. */

static ngx_uint_t
ngx_http_xet_metrics_own(const ngx_http_xet_metric_t *m)
{
    return m->type == NGX_HTTP_XET_LEVEL || m->type == NGX_HTTP_XET_OLDEST;
}


static void
ngx_http_xet_metrics_add(uint64_t *cells, const ngx_http_xet_metric_t *m,
    ngx_http_xet_block_t *block)
{
    ngx_uint_t  i, last;

    last = m->cell + m->sizes[0] * m->sizes[1] * m->cells;

    for (i = m->cell; i < last; i++) {

        if (m->type == NGX_HTTP_XET_OLDEST) {
            cells[i] = ngx_max(cells[i], block->cells[i]);

        } else {
            cells[i] += block->cells[i];
        }
    }
}


/*
 * Returns whether the worker of the block is running.  A killed worker leaves
 * its pid in the block, and its index may stay unused.
 */

static ngx_uint_t
ngx_http_xet_metrics_alive(ngx_http_xet_block_t *block)
{
    return block->pid == ngx_pid
           || (block->pid
               && (kill(block->pid, 0) == 0 || ngx_errno != NGX_ESRCH));
}
