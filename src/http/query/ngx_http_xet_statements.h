
/*
 * The code that each row of statements.def expands to: an enumerator, a
 * structure of the arguments, a structure of a row, and the functions that
 * send the statement and read a row.  The structures have the members that the
 * row lists, so the compiler checks all callers.
 */

#ifndef _NGX_HTTP_XET_STATEMENTS_H_INCLUDED_
#define _NGX_HTTP_XET_STATEMENTS_H_INCLUDED_


/* A part of an array: its next elements; see ngx_http_xet_array_take(). */

typedef struct {
    ngx_http_xet_array_t  *array;
    ngx_uint_t             n;
} ngx_http_xet_taken_t;


/*
 * The types of parameters and columns, in C and in PostgreSQL.  Values of
 * columns point into the rows.  A NULL pointer, or a string whose data is NULL,
 * stands for SQL NULL, in parameters and in columns.  An integer or boolean
 * column that is NULL is read as 0.
 */

typedef const xet_hash_t      *ngx_http_xet_of_hash;    /* bytea */
typedef const u_char          *ngx_http_xet_of_sha256;  /* bytea, 32 bytes */
typedef const u_char          *ngx_http_xet_of_oid;     /* bytea, 20 bytes */
typedef const u_char          *ngx_http_xet_of_id;      /* bytea, 16 bytes */
typedef ngx_str_t              ngx_http_xet_of_bytes;   /* bytea */
typedef ngx_str_t              ngx_http_xet_of_text;    /* text */
typedef uint32_t               ngx_http_xet_of_int4;    /* integer */
typedef uint64_t               ngx_http_xet_of_int8;    /* bigint */
typedef uint64_t               ngx_http_xet_of_offset;  /* bigint; clamped */
typedef int64_t                ngx_http_xet_of_count;   /* bigint; -1: NULL */
typedef ngx_uint_t             ngx_http_xet_of_bool;    /* boolean */
typedef ngx_int_t              ngx_http_xet_of_maybe;   /* boolean; -1: NULL */
typedef int64_t                ngx_http_xet_of_time;    /* timestamptz */
typedef const xet_hash_t      *ngx_http_xet_of_hash_or_null;
typedef const u_char          *ngx_http_xet_of_sha256_or_null;
typedef const u_char          *ngx_http_xet_of_oid_or_null;
typedef ngx_http_xet_array_t  *ngx_http_xet_of_int4s;   /* integer[] */
typedef ngx_http_xet_array_t  *ngx_http_xet_of_int8s;   /* bigint[] */
typedef ngx_http_xet_array_t  *ngx_http_xet_of_byteas;  /* bytea[] */
typedef ngx_http_xet_array_t  *ngx_http_xet_of_texts;   /* text[] */
typedef ngx_http_xet_taken_t    ngx_http_xet_of_int8_part;
typedef ngx_http_xet_taken_t    ngx_http_xet_of_bytea_part;

/*
 * A time is in microseconds since 1970, or XET_HUB_NO_TIME for SQL NULL.  If
 * an array is marked as failed, the statement is not sent.
 */


/* The enumerators of the statements. */

#define XET_STATEMENT(name, way, again, client, params, columns)              \
    ngx_http_xet_stmt_##name,
#define XET_ALL_OF(name)  ngx_http_xet_stmt_##name##_all,

typedef enum {
#include "statements.def"
    ngx_http_xet_stmt_none
} ngx_http_xet_stmt_e;


#define XET_PARAM(type, name)            ngx_http_xet_of_##type  name;
#define XET_MEMBER(from, type, name, types)  const type *name;
#define XET_COLUMN(type, name)           ngx_http_xet_of_##type  name;
#define XET_CELLS(what, type, name, cells)   type  name;
#define XET_STATEMENT(name, way, again, client, params, columns)              \
                                                                              \
typedef struct {                                                              \
    params                                                                    \
} ngx_http_xet_##name##_args_t;                                               \
                                                                              \
typedef struct {                                                              \
    columns                                                                   \
} ngx_http_xet_##name##_row_t;

#include "statements.def"


/*
 * A statement can be used in four ways; the functions for each follow.
 *
 * send: sends the statement for a request.  Returns NGX_AGAIN if the handler
 * will be called, NGX_BUSY if PostgreSQL is unavailable or overloaded,
 * NGX_ERROR if out of memory.  The data to which args points must live until
 * the handler is called or the request ends; args itself may be freed at once.
 *
 * ask: sends the statement outside of requests, with copies of its arguments.
 * Returns NGX_AGAIN if the handler will be called, even in an exiting worker,
 * or NGX_BUSY.
 *
 * post: does the same as ask, but without a handler.
 *
 * row: reads row i of a result.  Returns NGX_ERROR if a hash or digest has a
 * wrong length, or is NULL although its type is not an _or_null type; the other
 * members are set nevertheless.
 */

ngx_int_t ngx_http_xet_query_statement(ngx_http_request_t *r,
    ngx_http_xet_stmt_e stmt, const void *args,
    ngx_http_xet_query_handler_pt handler);
ngx_int_t ngx_http_xet_ask_statement(ngx_http_xet_stmt_e stmt,
    const void *args, ngx_http_xet_asked_pt handler, void *data);
ngx_int_t ngx_http_xet_read_row(ngx_http_xet_stmt_e stmt, PGresult *res,
    ngx_uint_t i, void *row);

/* Reads row i of the last result of the request. */
#define ngx_http_xet_row(r, name, i, row)                                     \
    ngx_http_xet_row_##name(ngx_http_xet_ctx_of(r)->query->res, i, row)


/*
 * send, ask and post with named arguments.  Arguments that are not listed are 0
 * or NULL: ngx_http_xet_query(r, file_open, handler, .file = &hash, .byte_at =
 * 0).
 */

#define ngx_http_xet_query(r, name, handler, ...)                             \
    ngx_http_xet_send_##name(r,                                               \
               &(ngx_http_xet_##name##_args_t) { __VA_ARGS__ }, handler)

#define ngx_http_xet_ask(name, handler, data, ...)                            \
    ngx_http_xet_ask_##name(&(ngx_http_xet_##name##_args_t) { __VA_ARGS__ },  \
                            handler, data)

#define ngx_http_xet_post(name, ...)                                          \
    ngx_http_xet_ask(name, NULL, NULL, __VA_ARGS__)


#define XET_STATEMENT(name, way, again, client, params, columns)              \
                                                                              \
static ngx_inline ngx_int_t                                                   \
ngx_http_xet_send_##name(ngx_http_request_t *r,                               \
    const ngx_http_xet_##name##_args_t *args,                                 \
    ngx_http_xet_query_handler_pt handler)                                    \
{                                                                             \
    return ngx_http_xet_query_statement(r, ngx_http_xet_stmt_##name, args,    \
                                        handler);                             \
}                                                                             \
                                                                              \
                                                                              \
static ngx_inline ngx_int_t                                                   \
ngx_http_xet_ask_##name(const ngx_http_xet_##name##_args_t *args,             \
    ngx_http_xet_asked_pt handler, void *data)                                \
{                                                                             \
    return ngx_http_xet_ask_statement(ngx_http_xet_stmt_##name, args,         \
                                      handler, data);                         \
}                                                                             \
                                                                              \
                                                                              \
static ngx_inline ngx_int_t                                                   \
ngx_http_xet_row_##name(PGresult *res, ngx_uint_t i,                          \
    ngx_http_xet_##name##_row_t *row)                                         \
{                                                                             \
    return ngx_http_xet_read_row(ngx_http_xet_stmt_##name, res, i, row);      \
}

#include "statements.def"


#endif /* _NGX_HTTP_XET_STATEMENTS_H_INCLUDED_ */
