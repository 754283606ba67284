
/*
 * Internal to src/http/pg: connections, sessions, and pools of sessions.
 */

#ifndef _NGX_HTTP_XET_PG_SESSION_H_INCLUDED_
#define _NGX_HTTP_XET_PG_SESSION_H_INCLUDED_


#include "ngx_http_xet_pg.h"


/* ngx_http_xet_pg_check.c: checks a new connection. */

#define NGX_HTTP_XET_SCHEMA  "1"           /* highest sql/NNNN_*.sql number */


/*
 * Checks that the database has the schema of this module and the identity of
 * the store's folder; if neither has an identity, creates one for both.
 * Returns NULL, or an error that lives as long as conn.  Blocks; timeout, in
 * ms, limits each wait for the server.
 */
const char *ngx_http_xet_pg_check_job(PGconn *conn, ngx_http_xet_store_t *store,
    ngx_msec_t timeout, ngx_log_t *log);

/*
 * Runs the same checks for a standby, which is read-only: an identity is
 * compared, but never created.
 */
const char *ngx_http_xet_pg_check_standby_job(PGconn *conn,
    ngx_http_xet_store_t *store, ngx_msec_t timeout, ngx_log_t *log);


/* ngx_http_xet_pg_host.c: libpq's parameters for a host, and its messages. */

/* The keywords and values that PQconnectdbParams() gets for a host. */

#define NGX_HTTP_XET_PG_KEYWORDS  16

void ngx_http_xet_pg_keywords(const ngx_http_xet_pg_host_t *host,
    const char *timeout, const char **keys, const char **values);

/* Copies a libpq message without newlines and spaces at its end. */
void ngx_http_xet_pg_text(char *dst, size_t size, const char *text);


/* ngx_http_xet_pg_connect.c: opens a connection in a new thread. */

#define NGX_HTTP_XET_PG_ERROR_LEN  512


/*
 * Called in the event loop, either with conn, which the handler then owns, or
 * with NULL and an error message, which is freed when the handler returns.
 */
typedef void (*ngx_http_xet_pg_connected_pt)(void *data, PGconn *conn,
    const char *error);

typedef struct ngx_http_xet_pg_connect_s  ngx_http_xet_pg_connect_t;


/*
 * Starts to connect; handler is called later.  Returns NULL if no thread can
 * be started.
 */
ngx_http_xet_pg_connect_t *ngx_http_xet_pg_connect_start(
    const ngx_http_xet_pg_host_t *host, ngx_http_xet_pg_connected_pt handler,
    void *data);


/*
 * Abandons a connection attempt when the process exits: does not wait for the
 * thread, and does not call handler.
 */
void ngx_http_xet_pg_connect_abandon(ngx_http_xet_pg_connect_t *ctx);

/*
 * Makes nginx call handler whenever fd is readable, level-triggered.  Returns
 * NULL if no connection is free.
 */
ngx_connection_t *ngx_http_xet_pg_watch(int fd, void *data,
    ngx_event_handler_pt handler);

/*
 * ngx_http_xet_pg.c: one PostgreSQL session, driven by nginx events.
 */

typedef struct ngx_http_xet_pg_s  ngx_http_xet_pg_t;


/*
 * A statement in progress.  ngx_http_xet_pg_pools_send() allocates the
 * structure, which is freed before the handler is called.  A caller that no
 * longer wants the result calls ngx_http_xet_pg_pools_detach().
 */

struct ngx_http_xet_pg_query_s {
    ngx_queue_t                     queue;
    const ngx_http_xet_pg_stmt_t   *stmt;
    ngx_event_t                     timer;
    ngx_msec_t                      start;

    ngx_http_xet_pg_handler_pt      handler;   /* NULL: detached */
    void                           *data;
    ngx_http_xet_pg_fit_pt          fit;       /* NULL: may always be sent */

    void                           *pg_pool;
    ngx_http_xet_pg_t              *pg;        /* session, if in flight */

    PGresult                       *res;
    ngx_uint_t                      tries;
    ngx_uint_t                      turn;      /* turn of this statement */
    uint32_t                        caller;
    unsigned                        lost:1;   /* an attempt's result was lost */
    unsigned                        unfit:1;   /* fit() has returned 0 */
    unsigned                        acts:1;    /* xet.in_time() is sent first */
    unsigned                        alone:1;   /* as the unnamed statement */
    unsigned                        syncs:1;   /* a sync follows */

    /* sent with the statement, and without a result so far */

    unsigned                        parses:1;       /* its own preparation */
    unsigned                        guard_parses:1; /* that of xet.in_time() */
    unsigned                        guarded:1;      /* xet.in_time() */

    const char                     *values[NGX_HTTP_XET_PARAMS_MAX];
    int                             lengths[NGX_HTTP_XET_PARAMS_MAX];
};


typedef enum {
    NGX_HTTP_XET_PG_CLOSED = 0,
    NGX_HTTP_XET_PG_CONNECTING,                /* connecting or checking */
    NGX_HTTP_XET_PG_READY,
    NGX_HTTP_XET_PG_BACKOFF                    /* waits for next attempt */
} ngx_http_xet_pg_state_e;


/* Callbacks from a session to its pool, in the event loop. */

typedef struct {
    void  (*ready)(ngx_http_xet_pg_t *pg);
    void  (*failed)(ngx_http_xet_pg_t *pg);    /* statements stay in inflight */
    void  (*finished)(ngx_http_xet_pg_t *pg, ngx_http_xet_pg_query_t *q);
    void  (*drained)(ngx_http_xet_pg_t *pg);   /* no more results to read */
} ngx_http_xet_pg_events_t;


struct ngx_http_xet_pg_s {
    ngx_http_xet_pg_state_e          state;
    PGconn                          *conn;
    ngx_connection_t                *connection;

    void                            *pg_pool;
    const ngx_http_xet_pg_events_t  *events;

    ngx_queue_t                      inflight; /* statements, oldest first */
    ngx_uint_t                       n;        /* length of inflight */

    const ngx_http_xet_pg_host_t    *host;

    ngx_event_t                      retry;    /* end of the backoff */
    ngx_msec_t                       backoff;

    ngx_http_xet_pg_connect_t       *connect;  /* connecting thread */
    ngx_event_t                      setup;    /* deadline of the check */
    ngx_event_t                      sync;     /* ends the shared statements */
    ngx_uint_t                       nshared;  /* statements without a sync */
    const ngx_http_xet_pg_stmt_t    *stmts;    /* all statements; setup compares
                                                  their column types */
    const ngx_http_xet_pg_stmt_t    *checked;  /* next statement to compare */
    const ngx_http_xet_pg_stmt_t    *guard;    /* xet.in_time() */
    u_char                          *prepared; /* a flag for each of stmts */
    ngx_msec_t                       timeout;  /* statement_timeout */
    ngx_msec_t                       locks;    /* lock_timeout; 0: none */
    ngx_msec_t                       used;     /* time of the last statement */

    /* a lower bound of PostgreSQL's clock, in ms, at local time clock_at */
    int64_t                          clock;
    ngx_msec_t                       clock_at;

    unsigned                         shares:1; /* statements share syncs */
    unsigned                         writing:1;
    unsigned                         prepares:1; /* has prepared statements */
    unsigned                         logged:1; /* connect failure was logged */
    unsigned                         unsure:1; /* commit may lack a replica */
};


/*
 * Initializes a session.  The pool must have set events, host, pg_pool,
 * shares, stmts, timeout, locks and retry, and zeroed the other members.
 * Returns NGX_OK, or NGX_ERROR if out of memory.
 */
ngx_int_t ngx_http_xet_pg_init(ngx_http_xet_pg_t *pg, ngx_pool_t *pool);

/*
 * Starts to connect and check; ready() or failed() is called later.  Returns
 * NGX_OK, or NGX_ERROR if no thread can be started.
 */
ngx_int_t ngx_http_xet_pg_connect(ngx_http_xet_pg_t *pg);

/*
 * Adds q to pg->inflight and sends it, if it shares a sync at the end of this
 * iteration of the event loop.  Returns NGX_ERROR if the session fails;
 * q is in pg->inflight even then, and the caller closes the session.
 */
ngx_int_t ngx_http_xet_pg_send(ngx_http_xet_pg_t *pg,
    ngx_http_xet_pg_query_t *q);

/* Closes the session; statements in flight stay in pg->inflight. */
void ngx_http_xet_pg_close(ngx_http_xet_pg_t *pg);


/*
 * ngx_http_xet_pg_prepare.c: what is sent before a statement.  Functions that
 * send return 1, or 0 after an error, as libpq does.
 */

/* Sends a preparation of the statement with this name. */
int ngx_http_xet_pg_prepare_as(ngx_http_xet_pg_t *pg,
    const ngx_http_xet_pg_stmt_t *stmt, const char *name);

/* Prepares the statements that q needs and that are not prepared yet. */
int ngx_http_xet_pg_prepare(ngx_http_xet_pg_t *pg, ngx_http_xet_pg_query_t *q);

/* Clears the flags of the statements whose preparation has failed. */
void ngx_http_xet_pg_unprepare(ngx_http_xet_pg_t *pg,
    ngx_http_xet_pg_query_t *q);

/*
 * If q must run only while its client is waiting, sends xet.in_time() with the
 * deadline for the start of q.
 */
int ngx_http_xet_pg_guard(ngx_http_xet_pg_t *pg, ngx_http_xet_pg_query_t *q);

/* Records the current time of PostgreSQL's clock. */
void ngx_http_xet_pg_clock(ngx_http_xet_pg_t *pg, int64_t clock);

/*
 * Compares the column types of a statement with those of a result or of a
 * description.  Returns NULL, or an error.
 */
const char *ngx_http_xet_pg_columns(const ngx_http_xet_pg_stmt_t *stmt,
    PGresult *res);


/*
 * ngx_http_xet_pg_pool.c: a pool of sessions that are all connected to the same
 * host.
 */

typedef struct ngx_http_xet_pg_pool_s  ngx_http_xet_pg_pool_t;


/* Callbacks from a pool of the primary to the other pools of the worker. */

typedef struct {
    void  (*heard)(void);              /* a result has arrived */
    void  (*ready)(ngx_http_xet_pg_pool_t *pg_pool);   /* has a session */
    void  (*starved)(ngx_http_xet_pg_pool_t *pg_pool); /* can't open one */
    void  (*read_only)(ngx_http_xet_pg_t *pg);         /* server read-only */
} ngx_http_xet_pg_pool_events_t;


struct ngx_http_xet_pg_pool_s {
    const ngx_http_xet_pg_host_t   *host;
    const ngx_http_xet_pg_stmt_t   *stmts;     /* statements to check */

    const ngx_http_xet_pg_pool_events_t  *events;  /* NULL for a standby */

    ngx_uint_t          number;        /* index of the pool in metrics */
    ngx_uint_t          n;             /* maximum number of sessions */
    ngx_uint_t          depth;         /* maximum statements per session */
    ngx_uint_t          queue;         /* maximum length of the queue */
    ngx_msec_t          timeout;       /* time limit including waiting, ms */
    ngx_msec_t          running;       /* statement_timeout in PostgreSQL */
    ngx_msec_t          locks;         /* lock_timeout in PostgreSQL; 0: none */
    ngx_msec_t          idle_timeout;  /* idle sessions are closed after it */
    ngx_uint_t          keep;          /* sessions that are reopened then */
    ngx_uint_t          shares;        /* 1: short reads, which share syncs */

    ngx_http_xet_pg_t  *sessions;
    ngx_event_t         idle;          /* looks for idle sessions */

    ngx_queue_t         waiting;
    ngx_uint_t          nwaiting;
    ngx_uint_t          turn;          /* turn of the last sent statement */

    unsigned            turns:1;       /* callers take turns */
    unsigned            refused:1;     /* the last connect failed */
    ngx_msec_t          asked;         /* time of the failed connect */
};


/*
 * Creates the sessions of a pool, all closed.  The caller must have set the
 * members that precede "sessions".
 */
ngx_int_t ngx_http_xet_pg_pool_init(ngx_http_xet_pg_pool_t *pg_pool, ngx_pool_t
    *pool);

/* Queues a statement in one pool, like ngx_http_xet_pg_pools_send(). */
ngx_http_xet_pg_query_t *ngx_http_xet_pg_pool_send(ngx_http_xet_pg_pool_t
    *pg_pool, const ngx_http_xet_pg_stmt_t *stmt, ngx_http_xet_params_t *p,
    ngx_http_xet_pg_handler_pt handler, void *data);

/* Returns whether a session is ready. */
ngx_uint_t ngx_http_xet_pg_pool_ready_any(ngx_http_xet_pg_pool_t *pg_pool);

/* Opens a session if none is ready or connecting. */
void ngx_http_xet_pg_pool_want(ngx_http_xet_pg_pool_t *pg_pool);

/*
 * Closes all ready sessions.  Their statements in flight are retried or fail.
 */
void ngx_http_xet_pg_pool_drop(ngx_http_xet_pg_pool_t *pg_pool);

/* Closes all sessions when the process exits. */
void ngx_http_xet_pg_pool_close(ngx_http_xet_pg_pool_t *pg_pool);

/* Adds the statistics of the pool to *stat. */
void ngx_http_xet_pg_pool_stat(ngx_http_xet_pg_pool_t *pg_pool,
    ngx_http_xet_pg_pool_stat_t *stat);

/* Queues a statement with this deadline, in ms, instead of the pool's. */
ngx_http_xet_pg_query_t *ngx_http_xet_pg_pool_queue(
    ngx_http_xet_pg_pool_t *pg_pool, ngx_msec_t timeout,
    const ngx_http_xet_pg_stmt_t *stmt, ngx_http_xet_params_t *p,
    ngx_http_xet_pg_handler_pt handler, void *data);

/* Returns the number of sessions in the given state. */
ngx_uint_t ngx_http_xet_pg_pool_count(ngx_http_xet_pg_pool_t *pg_pool,
    ngx_http_xet_pg_state_e state);

/* Returns the ready session with the fewest statements, or NULL. */
ngx_http_xet_pg_t *ngx_http_xet_pg_pool_session(
    ngx_http_xet_pg_pool_t *pg_pool);

/*
 * Connects the first closed session, unless a session before it is connecting.
 * Returns NGX_OK if a session is now ready or connecting, else NGX_ERROR.
 */
ngx_int_t ngx_http_xet_pg_pool_grow(ngx_http_xet_pg_pool_t *pg_pool);

/*
 * If no session of the pool is ready or connecting, ends the backoff of one
 * session and connects it.  Returns NGX_OK if a session is now ready or
 * connecting, else NGX_DECLINED.
 */
ngx_int_t ngx_http_xet_pg_pool_hurry(ngx_http_xet_pg_pool_t *pg_pool);

/* Makes a closed session reconnect after delay ms. */
void ngx_http_xet_pg_pool_backoff(ngx_http_xet_pg_t *pg, ngx_msec_t delay);


/*
 * ngx_http_xet_pg_pool_end.c: ends and frees a statement, and calls its
 * handler, which then owns res.
 */
void ngx_http_xet_pg_pool_deliver(ngx_http_xet_pg_query_t *q, PGresult *res,
    ngx_int_t rc, const char *sqlstate);

/* Ends and frees a statement that has failed with the error in res. */
void ngx_http_xet_pg_pool_refused(ngx_http_xet_pg_query_t *q, PGresult *res,
    const char *sqlstate);

/* Returns whether the pool must send a failed statement again. */
ngx_uint_t ngx_http_xet_pg_pool_again(ngx_http_xet_pg_query_t *q,
    const char *sqlstate);


/*
 * Called if the server of the read sessions does not accept writes.  If
 * xet_postgres lists several hosts, closes all sessions with that server.
 */
void ngx_http_xet_pg_pools_moved(void);

/*
 * Sets *at to the time of the primary's last result.  Returns 0 if the primary
 * has not returned any result yet.
 */
ngx_uint_t ngx_http_xet_pg_pools_answered(ngx_msec_t *at);

/*
 * Closes all sessions, which are then reopened.  why is the reason for the
 * log.
 */
void ngx_http_xet_pg_pools_abandon(const char *why);


#endif /* _NGX_HTTP_XET_PG_SESSION_H_INCLUDED_ */
