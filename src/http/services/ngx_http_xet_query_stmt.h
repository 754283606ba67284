
/*
 * What the statements share: their numbers and the way to send one.  For the
 * sources of the query service only.
 */

#ifndef _NGX_HTTP_XET_QUERY_STMT_H_INCLUDED_
#define _NGX_HTTP_XET_QUERY_STMT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_xet_query.h"


/* Places in ngx_http_xet_query_stmts. */

enum {
    NGX_HTTP_XET_STMT_TERMS = 0,
    NGX_HTTP_XET_STMT_TERMS_ALL,
    NGX_HTTP_XET_STMT_OPEN,
    NGX_HTTP_XET_STMT_OPEN_ALL,
    NGX_HTTP_XET_STMT_FILES,
    NGX_HTTP_XET_STMT_FILES_ALL,
    NGX_HTTP_XET_STMT_SLICES,
    NGX_HTTP_XET_STMT_SHARD_SLICES,
    NGX_HTTP_XET_STMT_XORB_PUT,
    NGX_HTTP_XET_STMT_XORB_HEAL,
    NGX_HTTP_XET_STMT_XORB_DAMAGED,
    NGX_HTTP_XET_STMT_DOUBTS,
    NGX_HTTP_XET_STMT_XORB,
    NGX_HTTP_XET_STMT_GRANT,
    NGX_HTTP_XET_STMT_CHUNK,
    NGX_HTTP_XET_STMT_ADVERTISED,
    NGX_HTTP_XET_STMT_STAGE,
    NGX_HTTP_XET_STMT_SHARD_PUT,
    NGX_HTTP_XET_STMT_PROVE,
    NGX_HTTP_XET_STMT_FORGET,
    NGX_HTTP_XET_STMT_UNSTAGE,
    NGX_HTTP_XET_STMT_TELEMETRY,
    NGX_HTTP_XET_STMT_ZT,
    NGX_HTTP_XET_STMT_ZT_PUT,
    NGX_HTTP_XET_STMT_ZT_REPORTS,
    NGX_HTTP_XET_STMT_ZT_REPORTS_PUT,
    NGX_HTTP_XET_STMT_SWEEP,
    NGX_HTTP_XET_STMT_PING
};


ngx_http_xet_query_t *ngx_http_xet_query_get(ngx_http_request_t *r);

/*
 * Sends a statement for the request in one of the lanes and drops the rows of
 * the one before.  Returns as the functions of ngx_http_xet_query.h do.
 */
ngx_int_t ngx_http_xet_query_send(ngx_http_request_t *r, ngx_uint_t lane,
    ngx_uint_t stmt, const char *const *values, const int *lengths,
    ngx_http_xet_query_handler_pt handler);

/*
 * What becomes of q->copy when its request dies: whether the statement has an
 * owner now, else it is to be detached.
 */
ngx_uint_t ngx_http_xet_query_xorb_left(ngx_http_xet_query_t *q);

/* The repo whose files the request may see; SQL NULL for all of the store. */
void ngx_http_xet_query_repo(ngx_http_request_t *r, const char **value,
    int *length);

/*
 * That and who asks, as two parameters: for what they have had besides.
 * NGX_ERROR without memory.
 */
ngx_int_t ngx_http_xet_query_whose(ngx_http_request_t *r, const char **values,
    int *lengths);


#endif /* _NGX_HTTP_XET_QUERY_STMT_H_INCLUDED_ */
