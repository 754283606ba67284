
/*
 * Inside of the service pg: a connection, made in a thread of its own.
 */

#ifndef _NGX_HTTP_XET_PG_CONNECT_H_INCLUDED_
#define _NGX_HTTP_XET_PG_CONNECT_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include <libpq-fe.h>


#define NGX_HTTP_XET_PG_ERROR_LEN  512


/*
 * Called in the event loop: with conn, which the callee owns then, or with NULL
 * and an error that is freed on return.
 */
typedef void (*ngx_http_xet_pg_connected_pt)(void *data, PGconn *conn,
    const char *error);

typedef struct ngx_http_xet_pg_connect_s  ngx_http_xet_pg_connect_t;


/* Starts to connect; handler is called later.  NULL: no thread can be had. */
ngx_http_xet_pg_connect_t *ngx_http_xet_pg_connect_start(
    ngx_http_xet_pg_connected_pt handler, void *data);

/* For a process that exits: does not wait, and handler is not called. */
void ngx_http_xet_pg_connect_abandon(ngx_http_xet_pg_connect_t *ctx);

/*
 * Checks the form of a connection string.  NGX_OK, NGX_DECLINED when it holds a
 * password, NGX_ERROR with the reason in err, of len bytes.
 */
ngx_int_t ngx_http_xet_pg_check_conninfo(ngx_str_t *conninfo, u_char *err,
    size_t len);

/*
 * Has nginx call handler when there is something to read from fd, each time
 * until all is read.  NULL without a free connection.
 */
ngx_connection_t *ngx_http_xet_pg_watch(int fd, void *data,
    ngx_event_handler_pt handler);

/* Copies a message of libpq, without the newline at its end. */
void ngx_http_xet_pg_text(char *dst, size_t size, const char *text);


#endif /* _NGX_HTTP_XET_PG_CONNECT_H_INCLUDED_ */
