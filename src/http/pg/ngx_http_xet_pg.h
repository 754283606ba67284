
/*
 * Sends statements to PostgreSQL, and reads the rows of results.
 */

#ifndef _NGX_HTTP_XET_PG_H_INCLUDED_
#define _NGX_HTTP_XET_PG_H_INCLUDED_


#include "ngx_http_xet.h"

#include <libpq-fe.h>


/*
 * ngx_http_xet_params.c: parameters of statements in PostgreSQL's binary
 * format.
 */

/*
 * An array parameter of a statement.  A zeroed structure is an empty array.
 * The statement determines the element type.
 */

typedef struct {
    u_char     *start;
    u_char     *pos;
    u_char     *end;
    uint32_t    n;                             /* includes failed adds */
    u_char     *taken;                         /* next element to take */
    u_char      none[12];                      /* header of an empty array */
    unsigned    nulls:1;
    unsigned    failed:1;                      /* out of memory */
} ngx_http_xet_array_t;


/*
 * The memory of an array comes from malloc(), so that a thread may fill the
 * array.  ngx_http_xet_array_destroy() frees the memory;
 * ngx_http_xet_array_reset() only removes the elements.  A function that runs
 * out of memory sets "failed".  The caller must check "failed" before sending
 * the array; a reset does not clear it.
 */
void ngx_http_xet_array_reset(ngx_http_xet_array_t *a);
void ngx_http_xet_array_destroy(ngx_http_xet_array_t *a);
void ngx_http_xet_array_bytes(ngx_http_xet_array_t *a, const void *data,
    size_t len);
void ngx_http_xet_array_null(ngx_http_xet_array_t *a);
void ngx_http_xet_array_int4(ngx_http_xet_array_t *a, int32_t v);
void ngx_http_xet_array_int8(ngx_http_xet_array_t *a, int64_t v);

/*
 * Reset or destroy all arrays of a structure.  c points to a structure that
 * contains only arrays.
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
 * Takes the next n elements, or fewer, and returns their number.  Sets *value
 * and *length to an array of these elements in PostgreSQL's format; "type" is
 * the OID of their type.  This array overwrites the elements taken before, and
 * is valid until the next call.  After the first call no elements may be added.
 */
ngx_uint_t ngx_http_xet_array_take(ngx_http_xet_array_t *a, uint32_t type,
    ngx_uint_t n, const char **value, int *length);

/* Returns whether there are elements left to take. */
ngx_uint_t ngx_http_xet_array_left(ngx_http_xet_array_t *a);

/*
 * Sets *value and *length to the array in PostgreSQL's format, valid until a is
 * changed.
 */
void ngx_http_xet_array_value(ngx_http_xet_array_t *a, uint32_t type,
    const char **value, int *length);

/*
 * Returns the element after last, or the first if last is NULL, and sets *len
 * to its length; returns NULL after the last element.  *len is unchanged since
 * the previous call.  The array has no NULL elements.
 */
const u_char *ngx_http_xet_array_next(const ngx_http_xet_array_t *a,
    const u_char *last, size_t *len);

#define NGX_HTTP_XET_PARAMS_MAX  24


/*
 * The parameters of a statement.  Strings stay in the caller's memory, and
 * numbers are stored in this structure.  Both must live until the statement is
 * complete.
 */

typedef struct {
    ngx_uint_t   n;
    ngx_uint_t   numbered;
    uint32_t     caller;           /* hash of the caller, or 0 */
    ngx_uint_t   acts;             /* send only while the client waits */
    const char  *values[NGX_HTTP_XET_PARAMS_MAX];
    int          lengths[NGX_HTTP_XET_PARAMS_MAX];
    int64_t      numbers[NGX_HTTP_XET_PARAMS_MAX];    /* big-endian */
} ngx_http_xet_params_t;


/*
 * Each function adds the next parameter.  The structure has room for the
 * parameters of every statement.
 */

#define ngx_http_xet_params_init(p)                                           \
    (p)->n = 0, (p)->numbered = 0, (p)->caller = 0, (p)->acts = 0

void ngx_http_xet_params_bytes(ngx_http_xet_params_t *p, const void *data,
    size_t len);
void ngx_http_xet_params_null(ngx_http_xet_params_t *p);
void ngx_http_xet_params_bool(ngx_http_xet_params_t *p, ngx_uint_t v);
void ngx_http_xet_params_int4(ngx_http_xet_params_t *p, uint32_t v);
void ngx_http_xet_params_int8(ngx_http_xet_params_t *p, uint64_t v);


/*
 * ngx_http_xet_pg_pools.c: the pools of PostgreSQL sessions of a worker.
 */

/*
 * The pools, in the order in which they get sessions if PostgreSQL allows only
 * a few.
 */

typedef enum {
    NGX_HTTP_XET_READ = 0,         /* short reads, pipelined */
    NGX_HTTP_XET_WRITE,            /* writes, one at a time */
    NGX_HTTP_XET_DEDUP,            /* dedup queries, pipelined */
    NGX_HTTP_XET_LONG,             /* long reads, one at a time */
    NGX_HTTP_XET_PING,             /* pings, if reads are busy */
    NGX_HTTP_XET_PG_POOLS,

    /*
     * not a pool, but the common metrics label of all standbys
     */

    NGX_HTTP_XET_STANDBY = NGX_HTTP_XET_PG_POOLS
} ngx_http_xet_pg_pool_e;


typedef struct {
    ngx_uint_t  sessions;
    ngx_uint_t  ready;
    ngx_uint_t  inflight;
    ngx_uint_t  waiting;
    ngx_msec_t  oldest;            /* age of the oldest statement, ms */
} ngx_http_xet_pg_pool_stat_t;


/* A column of a statement's result. */

typedef struct {
    const char                *name;           /* NULL: a single value */
    uint32_t                   type;           /* OID; 0: end of the list */
} ngx_http_xet_column_t;


/* A statement, prepared in a session when it is first used there. */

typedef struct {
    const char                   *name;
    const char                   *sql;
    ngx_uint_t                    params;
    const uint32_t               *types;       /* OIDs of the parameters */
    const ngx_http_xet_column_t  *columns;
    ngx_uint_t                    longs;       /* 1: a long read */
    ngx_uint_t                    forgets;     /* 1: finished responses may
                                                  become wrong */
} ngx_http_xet_pg_stmt_t;


/* A server to connect to; xet_postgres may list several hosts. */

struct ngx_http_xet_pg_host_s {
    ngx_str_t                  conninfo;       /* zero-terminated */
    ngx_str_t                  name;           /* name shown in the log */
    char                      *host;       /* overrides conninfo, unless NULL */
    char                      *hostaddr;   /* overrides conninfo, unless NULL */
    char                      *port;
    unsigned                   standby:1;      /* read-only, may lag */
    unsigned                   several:1;      /* several hosts in conninfo */
};


/* A standby of "xet_postgres_read". */

#define NGX_HTTP_XET_STANDBYS  8               /* maximum */

typedef struct {
    ngx_http_xet_pg_host_t     host;
    ngx_uint_t                 reads;          /* sessions per worker */
    ngx_msec_t                 lag;            /* maximum lag */
    ngx_msec_t                 timeout;        /* statement timeout */
    u_char                    *file;           /* position of the directive */
    ngx_uint_t                 line;
} ngx_http_xet_standby_conf_t;


#define NGX_HTTP_XET_PG_CANCELLED  "57014"     /* SQLSTATE of a timeout */
#define NGX_HTTP_XET_PG_LOCKED     "55P03"     /* lock timeout */
#define NGX_HTTP_XET_PG_READ_ONLY  "25006"     /* the server is read-only */
#define NGX_HTTP_XET_PG_UNPREPARED "26000"     /* its preparation failed */
#define NGX_HTTP_XET_PG_RETRIED    "08007"     /* may have run twice */

/*
 * An SQLSTATE of this module: the copy that a statement refers to is too old or
 * was garbage-collected, so a retry does not help.  Class 40 means a conflict.
 * A server whose module does not know this SQLSTATE keeps the copy, since a row
 * may refer to it (ngx_http_xet_query_unnamed()).
 */
#define NGX_HTTP_XET_PG_TOO_LATE   "40XT1"

/*
 * An SQLSTATE of this module: the statement waited in a socket for too long and
 * was not executed; see ngx_http_xet_pg.c.
 */
#define NGX_HTTP_XET_PG_LATE       "40XT2"


typedef struct ngx_http_xet_pg_query_s  ngx_http_xet_pg_query_t;


/*
 * The handler of a statement, called once.  If rc is NGX_OK, res is the
 * result, which the handler frees.  An error that the module's SQL functions
 * raise with class XT (a verdict) is also passed in res, with a detail and
 * without rows.  Otherwise res is NULL, and rc is
 *
 *     NGX_BUSY      PostgreSQL is unreachable or too slow, or has rejected the
 *                   statement for a temporary reason: 503
 *     NGX_ERROR     PostgreSQL has rejected the statement: 500
 *
 * sqlstate is set if PostgreSQL has definitely rejected the statement.  It is
 * NULL if the result was lost: the statement may have been committed.  If rc
 * is NGX_OK, sqlstate is NGX_HTTP_XET_PG_RETRIED if the result of an earlier
 * attempt was lost, else NULL.
 */
typedef void (*ngx_http_xet_pg_handler_pt)(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);


/*
 * Called in init_process of a worker.  Sessions connect when they are needed,
 * and check the statements of the array, which ends with an element without a
 * name.
 */
ngx_int_t ngx_http_xet_pg_pools_init(ngx_cycle_t *cycle,
    const ngx_http_xet_pg_stmt_t *stmts);
void ngx_http_xet_pg_pools_exit(ngx_cycle_t *cycle);

/*
 * Queues a statement.  The data of its parameters, and the numbers in p, must
 * live until the handler is called or the statement is detached.  p is NULL for
 * a statement without parameters.  Returns NULL, and does not call the handler,
 * if the queue is full, PostgreSQL is known to be unavailable, or out of
 * memory.  Long reads (see statements.def) have their own pool, in which
 * callers, identified by p->caller, take turns.  A ping uses the read pool, or
 * the ping pool if all ready sessions of the read pool are busy.
 */
ngx_http_xet_pg_query_t *ngx_http_xet_pg_pools_send(ngx_http_xet_pg_pool_e
    pg_pool, const ngx_http_xet_pg_stmt_t *stmt, ngx_http_xet_params_t *p,
    ngx_http_xet_pg_handler_pt handler, void *data);

/*
 * Sets a function that is called with the data of the handler each time before
 * the statement is sent.  If fit() returns 0, the statement is not sent, and
 * its handler is called with NGX_BUSY.
 */
typedef ngx_uint_t (*ngx_http_xet_pg_fit_pt)(void *data);

void ngx_http_xet_pg_pools_watch(ngx_http_xet_pg_query_t *q,
    ngx_http_xet_pg_fit_pt fit);

/*
 * Abandons q, whose handler will not be called.  If q is waiting, it is never
 * sent; if q is in flight, PostgreSQL completes it.
 */
void ngx_http_xet_pg_pools_detach(ngx_http_xet_pg_query_t *q);

/*
 * Called before the data of q's parameters is freed.  If q is in flight,
 * returns NGX_OK: q is not sent again, and its result goes to handler.
 * Otherwise changes nothing, and the caller must detach q.  Returns
 * NGX_DECLINED if q was never sent, and NGX_AGAIN if an earlier attempt, whose
 * result was lost, may have been committed.
 */
ngx_int_t ngx_http_xet_pg_pools_bequeath(ngx_http_xet_pg_query_t *q,
    ngx_http_xet_pg_handler_pt handler, void *data);

/* Sets whether an exiting worker may exit before q is complete. */
void ngx_http_xet_pg_pools_spare(ngx_http_xet_pg_query_t *q, ngx_uint_t spare);


void ngx_http_xet_pg_pools_stat(ngx_http_xet_pg_pool_e pg_pool,
    ngx_http_xet_pg_pool_stat_t *stat);

/*
 * Returns whether an SQLSTATE means a conflict with other transactions or, on a
 * standby, with WAL replay.
 */
ngx_uint_t ngx_http_xet_pg_pools_conflict(const char *sqlstate);


/* ngx_http_xet_standby.c: standbys, which execute reads and may lag behind. */

/*
 * Called in init_process of a worker, after ngx_http_xet_pg_pools_init().  wal
 * is the statement that returns a server's position in the WAL.
 */
ngx_int_t ngx_http_xet_standbys_init(ngx_cycle_t *cycle,
    const ngx_http_xet_pg_stmt_t *stmts, const ngx_http_xet_pg_stmt_t *wal);
void ngx_http_xet_standbys_exit(ngx_cycle_t *cycle);


#define NGX_HTTP_XET_NO_STANDBY  ((ngx_uint_t) -1)

/*
 * Returns the nearest usable standby, except the standbys in the bit mask
 * "but", or NGX_HTTP_XET_NO_STANDBY.
 */
ngx_uint_t ngx_http_xet_standbys_nearest(ngx_uint_t but);

/* Returns whether the primary is known to be unreachable. */
ngx_uint_t ngx_http_xet_standbys_alone(void);

/* Returns whether standby n is usable now. */
ngx_uint_t ngx_http_xet_standbys_fit(ngx_uint_t n);

/*
 * Queues a read or a dedup query for standby n, like
 * ngx_http_xet_pg_pools_send().  A statement that conflicts with WAL replay is
 * not sent to this standby again.
 */
ngx_http_xet_pg_query_t *ngx_http_xet_standbys_send(ngx_uint_t n,
    ngx_http_xet_pg_pool_e pg_pool, const ngx_http_xet_pg_stmt_t *stmt,
    ngx_http_xet_params_t *p,
    ngx_http_xet_pg_handler_pt handler, void *data);

/*
 * Reports that standby n did not respond.  The standby is not used until it has
 * answered a poll.
 */
void ngx_http_xet_standbys_suspect(ngx_uint_t n);

/* Fills stat with the sums of the statistics of all standbys. */
void ngx_http_xet_standbys_stat(ngx_http_xet_pg_pool_stat_t *stat);

/* Sets the metrics of standbys. */
void ngx_http_xet_standbys_measure(void);


/* Returns the schema version that this module needs. */
const char *ngx_http_xet_pg_schema(void);


/* ngx_http_xet_pg_value.c */

/*
 * These functions read values of binary results.  A NULL or missing value is
 * read as 0, or as a string of length 0.
 */

ngx_int_t ngx_http_xet_pg_rows(PGresult *res);
ngx_int_t ngx_http_xet_pg_null(PGresult *res, ngx_int_t row, ngx_int_t col);
void ngx_http_xet_pg_bytes(PGresult *res, ngx_int_t row, ngx_int_t col,
    ngx_str_t *value);
int64_t ngx_http_xet_pg_int(PGresult *res, ngx_int_t row, ngx_int_t col);
void ngx_http_xet_pg_clear(PGresult *res);

/* Returns the detail of a verdict (an error of class XT), or "". */
const char *ngx_http_xet_pg_detail(PGresult *res);


/* ngx_http_xet_pg_host.c: hosts in connection strings. */

/*
 * Checks the syntax of a connection string.  Returns NGX_OK; NGX_DECLINED if it
 * contains a password; or NGX_ERROR, and writes the reason to err, a buffer of
 * len bytes.
 */
ngx_int_t ngx_http_xet_pg_check_conninfo(ngx_str_t *conninfo, u_char *err,
    size_t len);

/*
 * Creates the host of the primary from a connection string.  Returns NGX_OK, or
 * NGX_ERROR, and writes the reason to err, a buffer of len bytes.
 */
ngx_int_t ngx_http_xet_pg_primary(ngx_http_xet_pg_host_t *host,
    ngx_str_t *conninfo, u_char *err, size_t len);

/*
 * Adds an ngx_http_xet_standby_conf_t for each host in a connection string of
 * standbys.  The other settings are copied from "like".
 */
ngx_int_t ngx_http_xet_pg_standbys(ngx_array_t *standbys,
    const ngx_http_xet_standby_conf_t *like, ngx_str_t *conninfo,
    ngx_pool_t *pool, u_char *err, size_t len);

/* Returns whether two connection strings may refer to the same database. */
ngx_uint_t ngx_http_xet_pg_same_database(ngx_str_t *one, ngx_str_t *other);

/*
 * Called by "nginx -t": checks the schema version and the identity of the
 * store, as a new session does, and logs a warning if they don't match.  Does
 * nothing if PostgreSQL is unreachable, and never changes anything.  Blocks for
 * some seconds at most.
 */
void ngx_http_xet_pg_check_test(ngx_cycle_t *cycle,
    const ngx_http_xet_pg_host_t *host, ngx_http_xet_store_t *store);


#endif /* _NGX_HTTP_XET_PG_H_INCLUDED_ */
