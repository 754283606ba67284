
/*
 * Inside of query: the way to send a statement.
 */

#ifndef _NGX_HTTP_XET_QUERY_SEND_H_INCLUDED_
#define _NGX_HTTP_XET_QUERY_SEND_H_INCLUDED_


#include "ngx_http_xet_query.h"
#include "ngx_http_xet_query_stmt.h"


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


#endif /* _NGX_HTTP_XET_QUERY_SEND_H_INCLUDED_ */
