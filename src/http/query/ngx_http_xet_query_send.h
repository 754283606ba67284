
/*
 * Internal to src/http/query: the table of statements, and functions that send
 * statements.
 */

#ifndef _NGX_HTTP_XET_QUERY_SEND_H_INCLUDED_
#define _NGX_HTTP_XET_QUERY_SEND_H_INCLUDED_


#include "ngx_http_xet_query.h"


/*
 * Returns whether the rows that a standby has returned are complete; see
 * statements.def.
 */

typedef ngx_uint_t (*ngx_http_xet_query_complete_pt)(ngx_http_xet_query_t *q,
    PGresult *res);

typedef enum {
    NGX_HTTP_XET_ASK_PRIMARY = 0,
    NGX_HTTP_XET_ASK_ANY,                      /* primary or a standby */
    NGX_HTTP_XET_ASK_NAMED                     /* primary, else a standby */
} ngx_http_xet_whom_e;

typedef struct {
    ngx_http_xet_pg_pool_e          pg_pool;
    ngx_http_xet_whom_e             who;
    ngx_uint_t                      longs;
    ngx_http_xet_query_complete_pt  complete;
} ngx_http_xet_way_t;


/* ngx_http_xet_statements.c: the table of statements. */

extern ngx_http_xet_pg_stmt_t  ngx_http_xet_query_stmts[];

/* Generates the SQL of all statements, with memory from pool. */
ngx_int_t ngx_http_xet_statements_init(ngx_pool_t *pool);

/*
 * Packs the arguments of a statement into params.  The values are copied to the
 * pool "copies"; if it is NULL, params points to the arguments and into the
 * request.  For a request that can read all repos, *stmt becomes NAME_all if
 * that statement exists.  Returns NGX_OK, or NGX_ERROR if out of memory.
 */
ngx_int_t ngx_http_xet_statement_pack(ngx_http_xet_stmt_e *stmt,
    const void *args, ngx_http_xet_params_t *params, ngx_http_request_t *r,
    ngx_pool_t *copies);

const ngx_http_xet_way_t *ngx_http_xet_statement_way(ngx_http_xet_stmt_e stmt);

/*
 * Returns whether the statement is sent only while its client is waiting
 * ("client" is WAITS).
 */
ngx_uint_t ngx_http_xet_statement_acts(ngx_http_xet_stmt_e stmt);


/* ngx_http_xet_query_send.c: sends the statements of requests. */

/*
 * Prepares the next statement of a request: frees the rows of the previous
 * statement, and returns the emptied list of parameters.
 */
ngx_http_xet_params_t *ngx_http_xet_query_params(ngx_http_request_t *r);


/*
 * Sends a statement with the request's parameters to the primary.  Returns
 * NGX_AGAIN, NGX_BUSY or NGX_ERROR, like the functions in ngx_http_xet_query.h.
 */
ngx_int_t ngx_http_xet_query_send(ngx_http_request_t *r,
    ngx_http_xet_pg_pool_e pg_pool, ngx_http_xet_stmt_e stmt,
    ngx_http_xet_query_handler_pt handler);


/* Sets the handler of the next statement of the request. */
ngx_int_t ngx_http_xet_query_prepare(ngx_http_request_t *r,
    ngx_http_xet_query_handler_pt handler);

/*
 * Identifies the caller of a long read, because callers take turns.  The caller
 * is the subject of a valid token, else the client's address; for IPv6, its /64
 * network.
 */
void ngx_http_xet_query_turns(ngx_http_request_t *r,
    ngx_http_xet_stmt_e stmt);

/*
 * The ngx_http_xet_pg_handler_pt of all statements that requests send; data is
 * the query.
 */
void ngx_http_xet_query_result(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate);


/*
 * ngx_http_xet_query_read.c: sends a statement that a standby may execute, like
 * ngx_http_xet_query_send().  complete() checks whether the rows of a standby
 * are complete; if they are not, the statement is sent to the primary.
 */

ngx_int_t ngx_http_xet_query_read(ngx_http_request_t *r, ngx_http_xet_pg_pool_e
    pg_pool, ngx_http_xet_stmt_e stmt, ngx_http_xet_query_complete_pt complete,
    ngx_http_xet_query_handler_pt handler);

/*
 * Sends a read of a Hub name, such as a branch, whose meaning changes with the
 * next commit: uses the primary if it is reachable, else a standby.
 */
ngx_int_t ngx_http_xet_query_named(ngx_http_request_t *r,
    ngx_http_xet_stmt_e stmt, ngx_http_xet_query_complete_pt complete,
    ngx_http_xet_query_handler_pt handler);

/*
 * Queues a statement outside of requests, with copies of its arguments.
 * Returns NULL if out of memory or PostgreSQL is unavailable; else handler,
 * unless NULL, will be called, even in an exiting worker.
 */
ngx_http_xet_pg_query_t *ngx_http_xet_ask_query(ngx_http_xet_stmt_e stmt,
    const void *args, ngx_http_xet_asked_pt handler, void *data);

/*
 * ngx_http_xet_damage.c: returns the number of copies that the statement
 * copies_lost has returned, and logs each of them if log is set.
 */
ngx_uint_t ngx_http_xet_damage_lost(PGresult *res, ngx_uint_t log,
    ngx_log_t *where);


#endif /* _NGX_HTTP_XET_QUERY_SEND_H_INCLUDED_ */
