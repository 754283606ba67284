
/*
 * Statements to PostgreSQL, and the rows that they return.
 */

#ifndef _NGX_HTTP_XET_PG_H_INCLUDED_
#define _NGX_HTTP_XET_PG_H_INCLUDED_


#include "ngx_http_xet.h"

#include <libpq-fe.h>


/*
 * ngx_http_xet_params.c: parameters of statements, in the binary form that
 * PostgreSQL takes; arrays first.
 */

/*
 * A packed array parameter: PostgreSQL's binary form of a[].  All zero is an
 * array without elements; the type of these is that of the parameter.
 */

typedef struct {
    u_char     *start;
    u_char     *pos;
    u_char     *end;
    uint32_t    n;                             /* also those that failed */
    u_char     *taken;                         /* the next to be taken */
    u_char      none[12];                      /* the array without elements */
    unsigned    nulls:1;
    unsigned    failed:1;                      /* out of memory */
} ngx_http_xet_array_t;


/*
 * The memory of an array is malloc()ed, so that a thread may fill it; destroy
 * frees it, reset removes the elements only.  Without memory "failed" is set,
 * which the caller checks before it sends the array; reset does not clear it.
 */
void ngx_http_xet_array_reset(ngx_http_xet_array_t *a);
void ngx_http_xet_array_destroy(ngx_http_xet_array_t *a);
void ngx_http_xet_array_bytes(ngx_http_xet_array_t *a, const void *data,
    size_t len);
void ngx_http_xet_array_null(ngx_http_xet_array_t *a);
void ngx_http_xet_array_int4(ngx_http_xet_array_t *a, int32_t v);
void ngx_http_xet_array_int8(ngx_http_xet_array_t *a, int64_t v);

/*
 * The same for the columns of rows: a structure that has nothing but arrays, to
 * which c points.
 */
#define ngx_http_xet_columns_reset(c)                                         \
    ngx_http_xet_arrays_reset(ngx_http_xet_columns(c))
#define ngx_http_xet_columns_destroy(c)                                       \
    ngx_http_xet_arrays_destroy(ngx_http_xet_columns(c))
#define ngx_http_xet_columns_failed(c)                                        \
    ngx_http_xet_arrays_failed(ngx_http_xet_columns(c))

#define ngx_http_xet_columns(c)                                               \
    (ngx_http_xet_array_t *) (c), sizeof(*(c)) / sizeof(ngx_http_xet_array_t)

void ngx_http_xet_arrays_reset(ngx_http_xet_array_t *a, ngx_uint_t n);
void ngx_http_xet_arrays_destroy(ngx_http_xet_array_t *a, ngx_uint_t n);
ngx_uint_t ngx_http_xet_arrays_failed(ngx_http_xet_array_t *a, ngx_uint_t n);

/*
 * Gives the next n elements, or fewer, as an array of their own, with elements
 * of this type; returns how many these are.  It is written over what was taken
 * before, and is valid until the next time; nothing may be added any more.
 */
ngx_uint_t ngx_http_xet_array_take(ngx_http_xet_array_t *a, uint32_t type,
    ngx_uint_t n, const char **value, int *length);

/* Whether there are elements that were not taken. */
ngx_uint_t ngx_http_xet_array_left(ngx_http_xet_array_t *a);

/* Gives value and length for libpq; they are valid while a is unchanged. */
void ngx_http_xet_array_value(ngx_http_xet_array_t *a, uint32_t type,
    const char **value, int *length);

#define NGX_HTTP_XET_PARAMS_MAX  24


/*
 * Bytes stay where the caller has them, numbers are kept in the structure: both
 * must live until the statement is answered.
 */

typedef struct {
    ngx_uint_t   n;
    ngx_uint_t   numbered;
    uint32_t     caller;           /* takes turns with others; 0: nobody */
    ngx_uint_t   acts;             /* for a client: not begun late */
    const char  *values[NGX_HTTP_XET_PARAMS_MAX];
    int          lengths[NGX_HTTP_XET_PARAMS_MAX];
    int64_t      numbers[NGX_HTTP_XET_PARAMS_MAX];    /* big-endian */
} ngx_http_xet_params_t;


/* Each adds the next parameter; there is room for any row of statements.def. */

#define ngx_http_xet_params_init(p)                                           \
    (p)->n = 0, (p)->numbered = 0, (p)->caller = 0, (p)->acts = 0

void ngx_http_xet_params_bytes(ngx_http_xet_params_t *p, const void *data,
    size_t len);
void ngx_http_xet_params_null(ngx_http_xet_params_t *p);
void ngx_http_xet_params_bool(ngx_http_xet_params_t *p, ngx_uint_t v);
void ngx_http_xet_params_int4(ngx_http_xet_params_t *p, uint32_t v);
void ngx_http_xet_params_int8(ngx_http_xet_params_t *p, uint64_t v);


/*
 * ngx_http_xet_lanes.c: the lanes of PostgreSQL sessions of a worker.
 */

/* In the order in which lanes get sessions where PostgreSQL has few. */

typedef enum {
    NGX_HTTP_XET_READ = 0,         /* short, pipelined */
    NGX_HTTP_XET_WRITE,            /* one statement at a time */
    NGX_HTTP_XET_DEDUP,            /* queries about chunks, pipelined */
    NGX_HTTP_XET_LONG,             /* long reads, one statement at a time */
    NGX_HTTP_XET_PING,             /* when all read sessions are busy */
    NGX_HTTP_XET_LANES,

    /* those of all standbys, where figures are told; nothing is sent to it */

    NGX_HTTP_XET_STANDBY = NGX_HTTP_XET_LANES
} ngx_http_xet_lane_e;


typedef struct {
    ngx_uint_t  sessions;
    ngx_uint_t  ready;
    ngx_uint_t  inflight;
    ngx_uint_t  waiting;
    ngx_msec_t  oldest;            /* age of the oldest statement */
} ngx_http_xet_lane_stat_t;


/* A column of a statement; the types are oids of PostgreSQL. */

typedef struct {
    const char                *name;           /* NULL: of a value */
    uint32_t                   type;           /* 0: behind the last one */
} ngx_http_xet_column_t;


/* A statement, prepared once a session. */

typedef struct {
    const char                   *name;
    const char                   *sql;
    ngx_uint_t                    params;
    const uint32_t               *types;       /* of the parameters */
    const ngx_http_xet_column_t  *columns;
    ngx_uint_t                    longs;       /* as a read it is a long one */
} ngx_http_xet_pg_stmt_t;


/* A server that sessions are opened with; xet_postgres may name several. */

struct ngx_http_xet_pg_host_s {
    ngx_str_t                  conninfo;       /* zero-terminated */
    ngx_str_t                  name;           /* for the log */
    char                      *host;           /* these win over conninfo, */
    char                      *hostaddr;       /* NULL: they are as there */
    char                      *port;
    unsigned                   standby:1;      /* is read only, may be behind */
    unsigned                   several:1;      /* conninfo names several */
};


/* A standby of "xet_postgres_read". */

#define NGX_HTTP_XET_STANDBYS  8               /* as the label has values */

typedef struct {
    ngx_http_xet_pg_host_t     host;
    ngx_uint_t                 reads;          /* sessions a worker */
    ngx_msec_t                 lag;            /* at most */
    ngx_msec_t                 timeout;        /* of a statement */
    u_char                    *file;           /* of the directive */
    ngx_uint_t                 line;
} ngx_http_xet_standby_conf_t;


#define NGX_HTTP_XET_PG_CANCELLED  "57014"     /* SQLSTATE: out of time */
#define NGX_HTTP_XET_PG_LOCKED     "55P03"     /* out of time, at a lock */
#define NGX_HTTP_XET_PG_READ_ONLY  "25006"     /* the server takes no writes */
#define NGX_HTTP_XET_PG_TWICE      "08007"     /* done, and maybe done before */

/*
 * Ours: the copy that a statement names is too old, or was collected, and stays
 * so.  It has the class of conflicts, for which servers that don't know it keep
 * the copy: it may have a row already (ngx_http_xet_query_unnamed()).
 */
#define NGX_HTTP_XET_PG_TOO_LATE   "40XT1"

/* Ours, too: the statement has lain in a socket, see ngx_http_xet_pg.c. */
#define NGX_HTTP_XET_PG_LATE       "40XT2"


typedef struct ngx_http_xet_pg_query_s  ngx_http_xet_pg_query_t;


/*
 * Called once for a statement: with rc NGX_OK res is the result, which the
 * callee frees, as it does that of a verdict of our own functions, which has a
 * detail and no rows; else res is NULL.  rc is
 *
 *     NGX_BUSY      PostgreSQL can't be reached, is too slow, or has refused
 *                   the statement for a reason that may pass: 503
 *     NGX_ERROR     PostgreSQL refused the statement: 500
 *
 * sqlstate is set where PostgreSQL has refused the statement for certain, and
 * NULL where an attempt was lost on the way, and may have been committed.  With
 * NGX_OK it is NGX_HTTP_XET_PG_TWICE where one was lost before this result, and
 * else NULL.
 */
typedef void (*ngx_http_xet_pg_handler_pt)(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);


/*
 * Called in init_process of a worker.  Sessions connect by themselves, and
 * prepare the statements of the array, whose last element has no name.
 */
ngx_int_t ngx_http_xet_lanes_init(ngx_cycle_t *cycle,
    const ngx_http_xet_pg_stmt_t *stmts);
void ngx_http_xet_lanes_exit(ngx_cycle_t *cycle);

/*
 * Queues a statement.  What its parameters point to, also the numbers in p,
 * must live until the handler is called or the query is detached; p is NULL for
 * a statement without parameters.  Returns NULL when the queue is full,
 * PostgreSQL is known to be away or memory is short: the handler is not called.
 * A long read (statements.def) goes to the lane of these, where the statements
 * of p->caller take turns with those of other callers.  A ping goes to the lane
 * of reads unless all ready sessions there are busy.
 */
ngx_http_xet_pg_query_t *ngx_http_xet_lanes_send(ngx_http_xet_lane_e lane,
    const ngx_http_xet_pg_stmt_t *stmt, ngx_http_xet_params_t *p,
    ngx_http_xet_pg_handler_pt handler, void *data);

/*
 * Has fit() called with the data of the handler each time before the statement
 * is sent: 0, and it is not, and ends like one that PostgreSQL can't take.
 */
typedef ngx_uint_t (*ngx_http_xet_pg_fit_pt)(void *data);

void ngx_http_xet_lanes_watch(ngx_http_xet_pg_query_t *q,
    ngx_http_xet_pg_fit_pt fit);

/* Drops a waiting statement, lets a sent one go on; no handler is called. */
void ngx_http_xet_lanes_detach(ngx_http_xet_pg_query_t *q);

/*
 * Called when what the parameters of q point to is about to be freed.  NGX_OK:
 * q is in flight, is not sent again, and its result goes to handler.  Otherwise
 * nothing has changed, and the caller detaches q: NGX_DECLINED when q was never
 * sent, NGX_AGAIN when an attempt was lost, which may have been committed.
 */
ngx_int_t ngx_http_xet_lanes_bequeath(ngx_http_xet_pg_query_t *q,
    ngx_http_xet_pg_handler_pt handler, void *data);

/* Whether a worker that ends may do so before q is answered. */
void ngx_http_xet_lanes_spare(ngx_http_xet_pg_query_t *q, ngx_uint_t spare);


void ngx_http_xet_lanes_stat(ngx_http_xet_lane_e lane,
    ngx_http_xet_lane_stat_t *stat);

/* Whether an error is a conflict with what a standby replays, or others do. */
ngx_uint_t ngx_http_xet_lanes_conflict(const char *sqlstate);


/*
 * ngx_http_xet_standby.c: standbys, which answer reads and may be behind.
 */

/*
 * Called in init_process of a worker, behind ngx_http_xet_lanes_init(); wal is
 * the statement that tells how far a host is.
 */
ngx_int_t ngx_http_xet_standbys_init(ngx_cycle_t *cycle,
    const ngx_http_xet_pg_stmt_t *stmts, const ngx_http_xet_pg_stmt_t *wal);
void ngx_http_xet_standbys_exit(ngx_cycle_t *cycle);


#define NGX_HTTP_XET_NO_STANDBY  ((ngx_uint_t) -1)

/*
 * The standby to ask: the nearest that is not in "but", a bit each;
 * NGX_HTTP_XET_NO_STANDBY where none is to be asked.
 */
ngx_uint_t ngx_http_xet_standbys_nearest(ngx_uint_t but);

/* Whether the primary is known to be away. */
ngx_uint_t ngx_http_xet_standbys_alone(void);

/* Whether a standby may be asked now. */
ngx_uint_t ngx_http_xet_standbys_fit(ngx_uint_t n);

/*
 * Queues a statement of the lane of reads or of dedup for standby n, as
 * ngx_http_xet_lanes_send() does.  It is not sent again for a conflict with
 * what the standby replays.
 */
ngx_http_xet_pg_query_t *ngx_http_xet_standbys_send(ngx_uint_t n,
    ngx_http_xet_lane_e lane, const ngx_http_xet_pg_stmt_t *stmt,
    ngx_http_xet_params_t *p,
    ngx_http_xet_pg_handler_pt handler, void *data);

/* Says that an answer has not come: n is not asked before it is measured. */
void ngx_http_xet_standbys_doubt(ngx_uint_t n);

/* The sum of all standbys. */
void ngx_http_xet_standbys_stat(ngx_http_xet_lane_stat_t *stat);

/* Tells the cells of the metrics. */
void ngx_http_xet_standbys_measure(void);


/* The version of the schema that this module needs. */
const char *ngx_http_xet_pg_schema(void);


/* Rows of binary results.  A NULL or missing value gives 0 or len 0. */

ngx_int_t ngx_http_xet_pg_rows(PGresult *res);
ngx_int_t ngx_http_xet_pg_null(PGresult *res, ngx_int_t row, ngx_int_t col);
void ngx_http_xet_pg_bytes(PGresult *res, ngx_int_t row, ngx_int_t col,
    ngx_str_t *value);
int64_t ngx_http_xet_pg_int(PGresult *res, ngx_int_t row, ngx_int_t col);
void ngx_http_xet_pg_clear(PGresult *res);

/* The detail of a verdict of our own functions; "" where there is none. */
const char *ngx_http_xet_pg_detail(PGresult *res);


/*
 * ngx_http_xet_pg_host.c: hosts of connection strings.
 */

/*
 * Checks the form of a connection string.  NGX_OK, NGX_DECLINED when it holds a
 * password, NGX_ERROR with the reason in err, of len bytes.
 */
ngx_int_t ngx_http_xet_pg_check_conninfo(ngx_str_t *conninfo, u_char *err,
    size_t len);

/*
 * Makes the host of a connection string for the primary.  NGX_ERROR with the
 * reason in err, of len bytes.
 */
ngx_int_t ngx_http_xet_pg_primary(ngx_http_xet_pg_host_t *host,
    ngx_str_t *conninfo, u_char *err, size_t len);

/*
 * Adds a host for each one that a connection string of standbys names, hosts of
 * type ngx_http_xet_standby_conf_t, and what else is in "like".
 */
ngx_int_t ngx_http_xet_pg_standbys(ngx_array_t *standbys,
    const ngx_http_xet_standby_conf_t *like, ngx_str_t *conninfo,
    ngx_pool_t *pool, u_char *err, size_t len);

/* Whether both strings name the same database. */
ngx_uint_t ngx_http_xet_pg_same_database(ngx_str_t *one, ngx_str_t *other);

/*
 * For "nginx -t": makes the checks of a new session, the schema and the folder
 * of the store, and logs a warning, unless PostgreSQL can't be reached; changes
 * nothing.  Blocks for some seconds at most.
 */
void ngx_http_xet_pg_check_test(ngx_cycle_t *cycle,
    const ngx_http_xet_pg_host_t *host, ngx_http_xet_store_t *store);


#endif /* _NGX_HTTP_XET_PG_H_INCLUDED_ */
