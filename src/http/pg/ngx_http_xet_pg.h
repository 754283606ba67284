
/*
 * One PostgreSQL session as nginx events.
 */

#ifndef _NGX_HTTP_XET_PG_H_INCLUDED_
#define _NGX_HTTP_XET_PG_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include <libpq-fe.h>

#include "ngx_http_xet_params.h"
#include "ngx_http_xet_pg_connect.h"
#include "ngx_http_xet_pg_setup.h"


#define NGX_HTTP_XET_PG_CANCELLED  "57014"     /* SQLSTATE: out of time */
#define NGX_HTTP_XET_PG_LOCKED     "55P03"     /* out of time, at a lock */


typedef struct ngx_http_xet_pg_s        ngx_http_xet_pg_t;
typedef struct ngx_http_xet_pg_query_s  ngx_http_xet_pg_query_t;


/*
 * Called once for a statement: with rc NGX_OK res is the result, which the
 * callee frees; else res is NULL and rc is
 *
 *     NGX_BUSY      PostgreSQL can't be reached, is too slow, or has refused
 *                   the statement for a reason that may pass: 503
 *     NGX_ERROR     PostgreSQL refused the statement: 500
 *
 * sqlstate is set where PostgreSQL has refused the statement for certain, and
 * NULL where an attempt was lost on the way, and may have been committed.
 */
typedef void (*ngx_http_xet_pg_handler_pt)(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);


/*
 * A statement on its way.  Allocated by ngx_http_xet_lanes_send(), freed before
 * its handler is called; a caller that does not want the result any more calls
 * ngx_http_xet_lanes_detach().
 */

struct ngx_http_xet_pg_query_s {
    ngx_queue_t                     queue;
    const ngx_http_xet_pg_stmt_t   *stmt;
    ngx_event_t                     timer;
    ngx_msec_t                      start;

    ngx_http_xet_pg_handler_pt      handler;   /* NULL: detached */
    void                           *data;

    void                           *lane;
    ngx_http_xet_pg_t              *pg;        /* where it is in flight */

    PGresult                       *res;
    ngx_uint_t                      tries;
    unsigned                        lost:1;    /* an attempt's end is unknown */

    const char                     *values[NGX_HTTP_XET_PARAMS_MAX];
    int                             lengths[NGX_HTTP_XET_PARAMS_MAX];
};


typedef enum {
    NGX_HTTP_XET_PG_CLOSED = 0,
    NGX_HTTP_XET_PG_CONNECTING,                /* and preparing */
    NGX_HTTP_XET_PG_READY,
    NGX_HTTP_XET_PG_BACKOFF                    /* waits to connect again */
} ngx_http_xet_pg_state_e;


/* Callbacks from a session to its lane, always in the event loop. */

typedef struct {
    void  (*ready)(ngx_http_xet_pg_t *pg);
    void  (*failed)(ngx_http_xet_pg_t *pg);    /* what it lost: inflight */
    void  (*finished)(ngx_http_xet_pg_t *pg, ngx_http_xet_pg_query_t *q);
    void  (*drained)(ngx_http_xet_pg_t *pg);   /* a batch of results ended */
} ngx_http_xet_pg_events_t;


struct ngx_http_xet_pg_s {
    ngx_http_xet_pg_state_e          state;
    PGconn                          *conn;
    ngx_connection_t                *connection;

    void                            *lane;
    const ngx_http_xet_pg_events_t  *events;

    ngx_queue_t                      inflight; /* in order of sending */
    ngx_uint_t                       n;        /* in inflight */

    ngx_event_t                      retry;    /* end of a backoff */
    ngx_msec_t                       backoff;

    ngx_http_xet_pg_connect_t       *connect;  /* the connecting thread */
    ngx_event_t                      setup;    /* the deadline of preparing */
    const ngx_http_xet_pg_stmt_t    *stmts;    /* to prepare */
    ngx_msec_t                       timeout;  /* of a statement */
    ngx_msec_t                       locks;    /* lock_timeout; 0: none */

    unsigned                         writing:1;
    unsigned                         logged:1; /* a refusal was logged */
};


/*
 * The lane sets events, lane, stmts, timeout, locks and retry, and zeroes the
 * rest.
 */
void ngx_http_xet_pg_init(ngx_http_xet_pg_t *pg);

/*
 * Starts connecting and preparing; ready or failed is called later.  NGX_ERROR
 * when no thread can be started for it.
 */
ngx_int_t ngx_http_xet_pg_connect(ngx_http_xet_pg_t *pg);

/*
 * Sends q, which is in pg->inflight then, also when the session fails: that is
 * NGX_ERROR, and the caller closes the session.
 */
ngx_int_t ngx_http_xet_pg_send(ngx_http_xet_pg_t *pg,
    ngx_http_xet_pg_query_t *q);

/* Marks a session with nothing in flight as idle: nginx closes it on quit. */
void ngx_http_xet_pg_park(ngx_http_xet_pg_t *pg);

/* Closes the session; what is in flight stays in pg->inflight. */
void ngx_http_xet_pg_close(ngx_http_xet_pg_t *pg);


/* Rows of binary results.  A NULL or missing value gives 0 or len 0. */

ngx_int_t ngx_http_xet_pg_rows(PGresult *res);
ngx_int_t ngx_http_xet_pg_null(PGresult *res, ngx_int_t row, ngx_int_t col);
void ngx_http_xet_pg_bytes(PGresult *res, ngx_int_t row, ngx_int_t col,
    ngx_str_t *value);
int64_t ngx_http_xet_pg_int(PGresult *res, ngx_int_t row, ngx_int_t col);
void ngx_http_xet_pg_clear(PGresult *res);


#endif /* _NGX_HTTP_XET_PG_H_INCLUDED_ */
