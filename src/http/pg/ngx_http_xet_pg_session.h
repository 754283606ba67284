
/*
 * Internal to pg: connections, sessions, and the pools made of them.
 */

#ifndef _NGX_HTTP_XET_PG_SESSION_H_INCLUDED_
#define _NGX_HTTP_XET_PG_SESSION_H_INCLUDED_


#include "ngx_http_xet_pg.h"


/* ngx_http_xet_pg_check.c: checks a new connection. */

#define NGX_HTTP_XET_SCHEMA  "1"           /* last of sql/NNNN_*.sql */


/*
 * Checks that the database has the schema of this module and describes the
 * folder of the store; if neither has an identity, creates one for both.
 * Returns NULL, or an error that lives as long as conn.  Blocks; timeout, in
 * ms, is for each wait for the server.
 */
const char *ngx_http_xet_pg_check_job(PGconn *conn, ngx_http_xet_store_t *store,
    ngx_msec_t timeout, ngx_log_t *log);

/*
 * The same for a standby, which is read-only: an identity is compared and
 * never created.
 */
const char *ngx_http_xet_pg_check_standby_job(PGconn *conn,
    ngx_http_xet_store_t *store, ngx_msec_t timeout, ngx_log_t *log);


/* ngx_http_xet_pg_host.c: parameters of libpq for a host, and its messages. */

/* The keywords that libpq gets for a host, and their values. */

#define NGX_HTTP_XET_PG_KEYWORDS  16

void ngx_http_xet_pg_keywords(const ngx_http_xet_pg_host_t *host,
    const char *timeout, const char **keys, const char **values);

/* Copies a message of libpq without its final newline. */
void ngx_http_xet_pg_text(char *dst, size_t size, const char *text);


/* ngx_http_xet_pg_connect.c: a connection, opened in its own thread. */

#define NGX_HTTP_XET_PG_ERROR_LEN  512


/*
 * Called in the event loop: with conn, which the callee then owns, or with
 * NULL and an error that is freed on return.
 */
typedef void (*ngx_http_xet_pg_connected_pt)(void *data, PGconn *conn,
    const char *error);

typedef struct ngx_http_xet_pg_connect_s  ngx_http_xet_pg_connect_t;


/* Starts to connect; handler is called later.  NULL: no thread available. */
ngx_http_xet_pg_connect_t *ngx_http_xet_pg_connect_start(
    const ngx_http_xet_pg_host_t *host, ngx_http_xet_pg_connected_pt handler,
    void *data);


/* For an exiting process: does not wait, and does not call handler. */
void ngx_http_xet_pg_connect_abandon(ngx_http_xet_pg_connect_t *ctx);

/*
 * Makes nginx call handler whenever fd is readable, level-triggered.  NULL
 * without a free connection.
 */
ngx_connection_t *ngx_http_xet_pg_watch(int fd, void *data,
    ngx_event_handler_pt handler);

/*
 * ngx_http_xet_pg.c: one PostgreSQL session as nginx events.
 */

typedef struct ngx_http_xet_pg_s  ngx_http_xet_pg_t;


/*
 * A statement in progress.  ngx_http_xet_pg_pools_send() allocates it, and it
 * is freed before its handler is called.  A caller that no longer wants the
 * result calls ngx_http_xet_pg_pools_detach().
 */

struct ngx_http_xet_pg_query_s {
    ngx_queue_t                     queue;
    const ngx_http_xet_pg_stmt_t   *stmt;
    ngx_event_t                     timer;
    ngx_msec_t                      start;

    ngx_http_xet_pg_handler_pt      handler;   /* NULL: detached */
    void                           *data;
    ngx_http_xet_pg_fit_pt          fit;       /* NULL: at any time */

    void                           *pg_pool;
    ngx_http_xet_pg_t              *pg;        /* where it is in flight */

    PGresult                       *res;
    ngx_uint_t                      tries;
    ngx_uint_t                      turn;      /* in a pool with turns */
    uint32_t                        caller;
    unsigned                        lost:1;    /* an attempt's end is unknown */
    unsigned                        unfit:1;   /* waits for its end */
    unsigned                        acts:1;    /* is not begun late */
    unsigned                        begun:1;   /* it was in time */

    const char                     *values[NGX_HTTP_XET_PARAMS_MAX];
    int                             lengths[NGX_HTTP_XET_PARAMS_MAX];
};


typedef enum {
    NGX_HTTP_XET_PG_CLOSED = 0,
    NGX_HTTP_XET_PG_CONNECTING,                /* and preparing */
    NGX_HTTP_XET_PG_READY,
    NGX_HTTP_XET_PG_BACKOFF                    /* waits to connect again */
} ngx_http_xet_pg_state_e;


/* Callbacks from a session to its pool, always in the event loop. */

typedef struct {
    void  (*ready)(ngx_http_xet_pg_t *pg);
    void  (*failed)(ngx_http_xet_pg_t *pg);    /* lost statements: inflight */
    void  (*finished)(ngx_http_xet_pg_t *pg, ngx_http_xet_pg_query_t *q);
    void  (*drained)(ngx_http_xet_pg_t *pg);   /* a batch of results ended */
} ngx_http_xet_pg_events_t;


struct ngx_http_xet_pg_s {
    ngx_http_xet_pg_state_e          state;
    PGconn                          *conn;
    ngx_connection_t                *connection;

    void                            *pg_pool;
    const ngx_http_xet_pg_events_t  *events;

    ngx_queue_t                      inflight; /* in order of sending */
    ngx_uint_t                       n;        /* in inflight */

    const ngx_http_xet_pg_host_t    *host;

    ngx_event_t                      retry;    /* end of a backoff */
    ngx_msec_t                       backoff;

    ngx_http_xet_pg_connect_t       *connect;  /* the connecting thread */
    ngx_event_t                      setup;    /* the deadline of preparing */
    const ngx_http_xet_pg_stmt_t    *stmts;    /* to prepare */
    const ngx_http_xet_pg_stmt_t    *checked;  /* the next to be described */
    ngx_msec_t                       timeout;  /* of a statement */
    ngx_msec_t                       locks;    /* lock_timeout; 0: none */
    int64_t                          clock;    /* PostgreSQL's, ms, or less, */
    ngx_msec_t                       clock_at; /* when it was heard */

    unsigned                         writing:1;
    unsigned                         logged:1; /* a refusal was logged */
    unsigned                         unsure:1; /* a commit was not waited for */
};


/*
 * The pool sets events, host, pool, stmts, timeout, locks and retry, and
 * zeroes the other members.
 */
void ngx_http_xet_pg_init(ngx_http_xet_pg_t *pg);

/*
 * Starts connecting and preparing; ready or failed is called later.  NGX_ERROR
 * if no thread can be started.
 */
ngx_int_t ngx_http_xet_pg_connect(ngx_http_xet_pg_t *pg);

/*
 * Sends q, which is then in pg->inflight, even if the session fails: then the
 * result is NGX_ERROR, and the caller closes the session.
 */
ngx_int_t ngx_http_xet_pg_send(ngx_http_xet_pg_t *pg,
    ngx_http_xet_pg_query_t *q);

/* Closes the session; statements in flight stay in pg->inflight. */
void ngx_http_xet_pg_close(ngx_http_xet_pg_t *pg);


/* ngx_http_xet_pg_pools.c: a pool, all of whose sessions are with one host. */

typedef struct {
    const ngx_http_xet_pg_host_t   *host;
    const ngx_http_xet_pg_stmt_t   *stmts;     /* prepared by its sessions */

    ngx_uint_t          number;        /* among the values of the label */
    ngx_uint_t          n;             /* sessions at most */
    ngx_uint_t          depth;         /* statements in flight on one */
    ngx_uint_t          queue;         /* statements waiting at most */
    ngx_msec_t          timeout;       /* of a statement, waiting included */
    ngx_msec_t          running;       /* statement_timeout in PostgreSQL */
    ngx_msec_t          locks;         /* lock_timeout in PostgreSQL; 0: none */

    ngx_http_xet_pg_t  *sessions;

    ngx_queue_t         waiting;
    ngx_uint_t          nwaiting;
    ngx_uint_t          turn;          /* of the last statement sent */

    unsigned            turns:1;       /* callers take turns */
    unsigned            refused:1;     /* PostgreSQL refused the last session */
    ngx_msec_t          asked;         /* when it was refused */
} ngx_http_xet_pg_pool_t;


/* Creates the sessions of a pool with given settings; opens none yet. */
ngx_int_t ngx_http_xet_pg_pool_init(ngx_http_xet_pg_pool_t *pg_pool, ngx_pool_t
    *pool);

/* As ngx_http_xet_pg_pools_send(). */
ngx_http_xet_pg_query_t *ngx_http_xet_pg_pool_send(ngx_http_xet_pg_pool_t
    *pg_pool, const ngx_http_xet_pg_stmt_t *stmt, ngx_http_xet_params_t *p,
    ngx_http_xet_pg_handler_pt handler, void *data);

/* Whether a session is ready. */
ngx_uint_t ngx_http_xet_pg_pool_ready_any(ngx_http_xet_pg_pool_t *pg_pool);

/* Opens a session if there is none and none is connecting. */
void ngx_http_xet_pg_pool_want(ngx_http_xet_pg_pool_t *pg_pool);

/* Closes all ready sessions; their statements in flight fail or wait. */
void ngx_http_xet_pg_pool_drop(ngx_http_xet_pg_pool_t *pg_pool);

/* Closes all sessions of an exiting process. */
void ngx_http_xet_pg_pool_close(ngx_http_xet_pg_pool_t *pg_pool);

/* Adds the numbers of the pool to *stats. */
void ngx_http_xet_pg_pool_stat(ngx_http_xet_pg_pool_t *pg_pool,
    ngx_http_xet_pg_pool_stat_t *stat);


/*
 * ngx_http_xet_pg_pool_end.c: ends and frees a statement, and calls its
 * caller, who frees res, if not NULL.
 */
void ngx_http_xet_pg_pool_deliver(ngx_http_xet_pg_query_t *q, PGresult *res,
    ngx_int_t rc, const char *sqlstate);

/* The same for a statement that PostgreSQL has rejected with res. */
void ngx_http_xet_pg_pool_refused(ngx_http_xet_pg_query_t *q, PGresult *res,
    const char *sqlstate);

/* Whether a rejected statement is sent again in its pool. */
ngx_uint_t ngx_http_xet_pg_pool_again(ngx_http_xet_pg_query_t *q,
    const char *sqlstate);


/*
 * The server that reads go to does not accept writes.  If xet_postgres names
 * several hosts, all sessions with that server are closed.
 */
void ngx_http_xet_pg_pools_moved(void);

/* When the primary has last answered a statement, or 0 for never. */
ngx_uint_t ngx_http_xet_pg_pools_answered(ngx_msec_t *at);

/* Closes all sessions, which are then reopened; why is for the log. */
void ngx_http_xet_pg_pools_abandon(const char *why);


#endif /* _NGX_HTTP_XET_PG_SESSION_H_INCLUDED_ */
