
/*
 * Counters and gauges of all workers, in shared memory.
 */

#ifndef _NGX_HTTP_XET_METRICS_H_INCLUDED_
#define _NGX_HTTP_XET_METRICS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "xet_history.h"


/* The labels, and the maximum number of values of each label. */

typedef enum {
    NGX_HTTP_XET_LABEL_NONE = 0,
    NGX_HTTP_XET_LABEL_ROUTE,
    NGX_HTTP_XET_LABEL_CLASS,
    NGX_HTTP_XET_LABEL_CODE,
    NGX_HTTP_XET_LABEL_REASON,
    NGX_HTTP_XET_LABEL_LOOKUP,
    NGX_HTTP_XET_LABEL_PG_POOL,
    NGX_HTTP_XET_LABEL_RESULT,
    NGX_HTTP_XET_LABEL_POOL,
    NGX_HTTP_XET_LABEL_STANDBY,
    NGX_HTTP_XET_LABEL_AGAIN,
    NGX_HTTP_XET_LABEL_METHOD,
    NGX_HTTP_XET_LABEL_END,
    NGX_HTTP_XET_LABEL_WAY,
    NGX_HTTP_XET_LABEL_GRANT,
    NGX_HTTP_XET_LABELS
} ngx_http_xet_label_e;


#define NGX_HTTP_XET_NONE_MAX    1
#define NGX_HTTP_XET_ROUTE_MAX   64
#define NGX_HTTP_XET_CLASS_MAX   4
#define NGX_HTTP_XET_CODE_MAX    32
#define NGX_HTTP_XET_REASON_MAX  160
#define NGX_HTTP_XET_LOOKUP_MAX  3
#define NGX_HTTP_XET_PG_POOL_MAX    6
#define NGX_HTTP_XET_RESULT_MAX  3
#define NGX_HTTP_XET_POOL_MAX    2
#define NGX_HTTP_XET_STANDBY_MAX  8
#define NGX_HTTP_XET_AGAIN_MAX   4
#define NGX_HTTP_XET_METHOD_MAX  5             /* see xet_s3_method_t */
#define NGX_HTTP_XET_END_MAX     7             /* see xet_s3_end_t */
#define NGX_HTTP_XET_WAY_MAX     2
#define NGX_HTTP_XET_GRANT_MAX   4


/* Routes that are not in routes.def; its routes have higher numbers. */

typedef enum {
    NGX_HTTP_XET_ROUTE_OTHER = 0,  /* no route, or an error page */
    NGX_HTTP_XET_ROUTE_DATA,
    NGX_HTTP_XET_ROUTE_TOKEN,
    NGX_HTTP_XET_ROUTE_METRICS,
    NGX_HTTP_XET_ROUTE_STATUS,
    NGX_HTTP_XET_ROUTE_FIRST
} ngx_http_xet_route_e;


typedef enum {
    NGX_HTTP_XET_LOOKUP_HIT = 0,
    NGX_HTTP_XET_LOOKUP_MISS,
    NGX_HTTP_XET_LOOKUP_FULL
} ngx_http_xet_lookup_e;


typedef enum {
    NGX_HTTP_XET_RESULT_OK = 0,
    NGX_HTTP_XET_RESULT_REFUSED,   /* PostgreSQL error, not retried */
    NGX_HTTP_XET_RESULT_AWAY       /* no response, or temporary error */
} ngx_http_xet_result_e;


/*
 * The reasons to send a statement to another server after a standby has
 * received it.
 */

typedef enum {
    NGX_HTTP_XET_AGAIN_MISSING = 0,    /* no rows, or too few */
    NGX_HTTP_XET_AGAIN_CONFLICT,   /* conflict with replay */
    NGX_HTTP_XET_AGAIN_AWAY,       /* no response, or an error */
    NGX_HTTP_XET_AGAIN_CHANGED     /* rows contradict other data */
} ngx_http_xet_again_e;


/* Direction of the bytes between nginx and an object store. */

typedef enum {
    NGX_HTTP_XET_WAY_SENT = 0,
    NGX_HTTP_XET_WAY_RECEIVED
} ngx_http_xet_way_e;


/* The outcomes of upload grants, and of uploads that used a grant. */

typedef enum {
    NGX_HTTP_XET_GRANT_GIVEN = 0,
    NGX_HTTP_XET_GRANT_COMMITTED,
    NGX_HTTP_XET_GRANT_REFUSED,
    NGX_HTTP_XET_GRANT_SWEPT       /* uploaded, but never committed */
} ngx_http_xet_grant_e;


typedef enum {
    NGX_HTTP_XET_POOL_UPLOAD = 0,
    NGX_HTTP_XET_POOL_READ
} ngx_http_xet_pool_e;


typedef enum {
    NGX_HTTP_XET_COUNTER = 0,
    NGX_HTTP_XET_HISTOGRAM,
    NGX_HTTP_XET_LEVEL,
    NGX_HTTP_XET_OLDEST,
    NGX_HTTP_XET_GAUGE
} ngx_http_xet_metric_type_e;


/*
 * A histogram has a cell for each bucket and one cell for the sum.  The last
 * bucket has no upper bound.
 */

#define NGX_HTTP_XET_BUCKETS     10

#define NGX_HTTP_XET_CELLS_COUNTER    1
#define NGX_HTTP_XET_CELLS_HISTOGRAM  (NGX_HTTP_XET_BUCKETS + 1)
#define NGX_HTTP_XET_CELLS_LEVEL      1
#define NGX_HTTP_XET_CELLS_OLDEST     1
#define NGX_HTTP_XET_CELLS_GAUGE      1


/* The enumerator NGX_HTTP_XET_M_symbol is the first cell of a metric. */

#define XET_METRIC(symbol, type, one, two, name, help)                        \
    NGX_HTTP_XET_M_##symbol,                                                  \
    NGX_HTTP_XET_END_##symbol = NGX_HTTP_XET_M_##symbol                       \
        + NGX_HTTP_XET_CELLS_##type * NGX_HTTP_XET_##one##_MAX                \
          * NGX_HTTP_XET_##two##_MAX - 1,

typedef enum {
#include "metrics.def"
    NGX_HTTP_XET_CELLS
} ngx_http_xet_cell_e;

#undef XET_METRIC


/* A row of metrics.def. */

typedef struct {
    const char                  *name;
    const char                  *help;
    ngx_http_xet_metric_type_e   type;
    ngx_http_xet_label_e         labels[2];
    ngx_uint_t                   cell;
    ngx_uint_t                   sizes[2];     /* NGX_HTTP_XET_…_MAX */
    ngx_uint_t                   cells;        /* cells per pair of values */
} ngx_http_xet_metric_t;


/* The cells of this worker; only its event loop writes them. */
extern uint64_t  *ngx_http_xet_cells;

/* The rows of metrics.def; after the last row, name is NULL. */
extern const ngx_http_xet_metric_t  ngx_http_xet_metrics[];

/* The upper bounds of the buckets in ms; the last bucket has no bound. */
extern const ngx_msec_t  ngx_http_xet_buckets[NGX_HTTP_XET_BUCKETS - 1];


/*
 * Call these only in the event loop, never in a thread: the counts of a job are
 * added by its done handler.  For a metric with labels, i is the index of the
 * label values.
 */

#define ngx_http_xet_count(symbol, n)                                         \
    (ngx_http_xet_cells[NGX_HTTP_XET_M_##symbol] += (uint64_t) (n))

#define ngx_http_xet_count_at(symbol, i, n)                                   \
    (ngx_http_xet_cells[NGX_HTTP_XET_M_##symbol + (i)] += (uint64_t) (n))

/* Sets a LEVEL or OLDEST metric of this worker. */
#define ngx_http_xet_level_at(symbol, i, v)                                   \
    (ngx_http_xet_cells[NGX_HTTP_XET_M_##symbol + (i)] = (uint64_t) (v))

/* Sets a GAUGE, which all workers share. */
#define ngx_http_xet_gauge(symbol, v)                                         \
    ngx_http_xet_metrics_gauge(NGX_HTTP_XET_M_##symbol, v)

/* Sets a GAUGE to the current time. */
#define ngx_http_xet_gauge_now(symbol)                                        \
    ngx_http_xet_metrics_gauge(NGX_HTTP_XET_M_##symbol,                       \
                               ngx_http_xet_metrics_now())

void ngx_http_xet_metrics_gauge(ngx_uint_t cell, uint64_t v);
uint64_t ngx_http_xet_metrics_now(void);

/*
 * Counts a response of a route in REQUESTS and in the metrics of times and
 * bytes.
 */
void ngx_http_xet_metrics_request(ngx_uint_t route, ngx_uint_t status,
    ngx_msec_t ms, uint64_t received, uint64_t sent);

/* Counts an error response with this code in REFUSALS. */
void ngx_http_xet_metrics_refusal(const char *code);


/*
 * Adds the shared memory for metrics to a configuration with "xet_metrics" or
 * "xet_status".  Returns NULL if out of memory.  All routes must have names
 * before this call.
 */
ngx_shm_zone_t *ngx_http_xet_metrics_zone(ngx_conf_t *cf);

/*
 * Sets the names of n routes, starting with NGX_HTTP_XET_ROUTE_FIRST.  The
 * strings must stay valid.
 */
void ngx_http_xet_metrics_routes(const char *const *names, ngx_uint_t n);

/*
 * Returns the index of the bucket for a time in ms.  Any thread may call this.
 */
ngx_uint_t ngx_http_xet_metrics_slot(uint64_t ms);

/*
 * Sets whether the metrics of an object store are shown: "there" is 1 if the
 * store is a bucket.
 */
void ngx_http_xet_metrics_bucket(ngx_uint_t there);

/* Sets the labels of n standbys: "1", "2" and so on. */
void ngx_http_xet_metrics_standbys(ngx_uint_t n);

/* Called when a worker starts, and when it exits. */
void ngx_http_xet_metrics_init_process(ngx_shm_zone_t *zone);
void ngx_http_xet_metrics_exit_process(void);

/*
 * Sums up the cells of all workers into NGX_HTTP_XET_CELLS cells.  The cell of
 * a GAUGE is its value plus one, or 0 if the gauge was never set.
 */
void ngx_http_xet_metrics_read(uint64_t *cells);

/*
 * Returns a buffer of NGX_HTTP_XET_METRICS_ROOM bytes in the shared memory,
 * initially zero, and sets *mutex to the mutex that protects it.  The worker
 * that queries PostgreSQL for all workers stores the results in this buffer.
 * Returns NULL if metrics are not shared.
 */
#define NGX_HTTP_XET_METRICS_ROOM  16384

void *ngx_http_xet_metrics_room(ngx_shmtx_t **mutex);

/*
 * Returns the history of the server in the shared memory, and sets *mutex like
 * ngx_http_xet_metrics_room().  Returns NULL if metrics are not shared.
 */
xet_history_t *ngx_http_xet_metrics_history(ngx_shmtx_t **mutex);

/* Returns the n-th value of a label, or NULL if the label has fewer values. */
const char *ngx_http_xet_metrics_value(ngx_http_xet_label_e label,
    ngx_uint_t n);

/* Returns the name of a label. */
const char *ngx_http_xet_metrics_label(ngx_http_xet_label_e label);


#endif /* _NGX_HTTP_XET_METRICS_H_INCLUDED_ */
