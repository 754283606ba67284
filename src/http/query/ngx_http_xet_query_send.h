
/*
 * Internal to query: the statements, and how to send one.
 */

#ifndef _NGX_HTTP_XET_QUERY_SEND_H_INCLUDED_
#define _NGX_HTTP_XET_QUERY_SEND_H_INCLUDED_


#include "ngx_http_xet_query.h"


/* How a statement gets to PostgreSQL; see statements.def. */

typedef ngx_uint_t (*ngx_http_xet_query_complete_pt)(ngx_http_xet_query_t *q,
    PGresult *res);

typedef enum {
    NGX_HTTP_XET_ASK_PRIMARY = 0,
    NGX_HTTP_XET_ASK_ANY,                      /* a standby, too */
    NGX_HTTP_XET_ASK_NAMED                     /* if the primary is away */
} ngx_http_xet_whom_e;

typedef struct {
    ngx_http_xet_pg_pool_e        pg_pool;
    ngx_http_xet_whom_e            who;
    ngx_uint_t                      longs;
    ngx_http_xet_query_complete_pt  complete;
} ngx_http_xet_way_t;


/* ngx_http_xet_statements.c: the table. */

extern ngx_http_xet_pg_stmt_t  ngx_http_xet_query_stmts[];

/* Makes the texts, which live as long as the pool. */
ngx_int_t ngx_http_xet_statements_init(ngx_pool_t *pool);

/*
 * Packs the arguments of a statement, pointing into the request or copied to
 * the pool; the statement becomes NAME_all for a request that sees everything.
 * NGX_ERROR if out of memory.
 */
ngx_int_t ngx_http_xet_statement_pack(ngx_http_xet_stmt_e *stmt,
    const void *args, ngx_http_xet_params_t *params, ngx_http_request_t *r,
    ngx_pool_t *copies);

const ngx_http_xet_way_t *ngx_http_xet_statement_way(ngx_http_xet_stmt_e stmt);

/* Whether it is sent only while its client is waiting. */
ngx_uint_t ngx_http_xet_statement_acts(ngx_http_xet_stmt_e stmt);


/* ngx_http_xet_query_send.c: sends statements. */

/*
 * Begins the next statement of a request: returns its empty list of
 * parameters, and frees the rows of the previous statement.
 */
ngx_http_xet_params_t *ngx_http_xet_query_params(ngx_http_request_t *r);


/*
 * Sends a statement with the parameters of the request in one of the pools.
 * The result is that of the functions in ngx_http_xet_query.h.
 */
ngx_int_t ngx_http_xet_query_send(ngx_http_request_t *r,
    ngx_http_xet_pg_pool_e pg_pool, ngx_http_xet_stmt_e stmt,
    ngx_http_xet_query_handler_pt handler);


/* Sets the owner of the next statement of the request. */
ngx_int_t ngx_http_xet_query_prepare(ngx_http_request_t *r,
    ngx_http_xet_query_handler_pt handler);

/*
 * Sets the caller of a long read, for taking turns: the subject of a valid
 * token, else the address, with IPv6 the network.
 */
void ngx_http_xet_query_turns(ngx_http_request_t *r,
    ngx_http_xet_stmt_e stmt);

/* The handler of a statement of a request, whose data is the query. */
void ngx_http_xet_query_result(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate);


/*
 * ngx_http_xet_query_read.c: as ngx_http_xet_query_send(), for a statement
 * that a standby may answer.  whole() checks that an answer with rows is
 * complete; then the primary is not asked.
 */

ngx_int_t ngx_http_xet_query_read(ngx_http_request_t *r, ngx_http_xet_pg_pool_e
    pg_pool, ngx_http_xet_stmt_e stmt, ngx_http_xet_query_complete_pt complete,
    ngx_http_xet_query_handler_pt handler);

/*
 * The same for a name of the Hub, whose meaning changes with the next commit:
 * the primary is asked if it is reachable, else a standby.
 */
ngx_int_t ngx_http_xet_query_named(ngx_http_request_t *r,
    ngx_http_xet_stmt_e stmt, ngx_http_xet_query_complete_pt complete,
    ngx_http_xet_query_handler_pt handler);

/*
 * Queues a statement outside of requests, with copies of its arguments.  NULL
 * if out of memory or PostgreSQL is unavailable; else handler, unless NULL, is
 * called, even in an exiting worker.
 */
ngx_http_xet_pg_query_t *ngx_http_xet_ask_query(ngx_http_xet_stmt_e stmt,
    const void *args, ngx_http_xet_asked_pt handler, void *data);

/*
 * ngx_http_xet_damage.c: the number of copies in the rows of copies_lost; logs
 * each of them if log is set.
 */
ngx_uint_t ngx_http_xet_damage_lost(PGresult *res, ngx_uint_t log,
    ngx_log_t *where);


#endif /* _NGX_HTTP_XET_QUERY_SEND_H_INCLUDED_ */
