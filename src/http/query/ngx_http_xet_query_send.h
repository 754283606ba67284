
/*
 * Inside of query: the statements, and the way to send one.
 */

#ifndef _NGX_HTTP_XET_QUERY_SEND_H_INCLUDED_
#define _NGX_HTTP_XET_QUERY_SEND_H_INCLUDED_


#include "ngx_http_xet_query.h"


/* The statements and their numbers, of statements.def. */

#define XET_ROWS(name, params, columns)                                       \
    XET_STATEMENT(name, params, 0, "SELECT " columns " FROM xet." #name       \
                  "(" NGX_HTTP_XET_STMT_##params ")")
#define XET_LONG(name, params, columns)                                       \
    XET_STATEMENT(name, params, 1, "SELECT " columns " FROM xet." #name       \
                  "(" NGX_HTTP_XET_STMT_##params ")")
#define XET_ALL(name, params, columns)                                        \
    XET_STATEMENT(name##_all, params, 0, "SELECT " columns " FROM xet." #name \
                  "(" NGX_HTTP_XET_STMT_##params ", true, '')")
#define XET_VALUE(name, params)                                               \
    XET_STATEMENT(name, params, 0, "SELECT xet." #name                        \
                  "(" NGX_HTTP_XET_STMT_##params ")")
#define XET_TEXT(name, params, text)  XET_STATEMENT(name, params, 0, text)


#define NGX_HTTP_XET_STMT_0   ""
#define NGX_HTTP_XET_STMT_1   "$1"
#define NGX_HTTP_XET_STMT_2   "$1, $2"
#define NGX_HTTP_XET_STMT_3   "$1, $2, $3"
#define NGX_HTTP_XET_STMT_4   "$1, $2, $3, $4"
#define NGX_HTTP_XET_STMT_5   NGX_HTTP_XET_STMT_4 ", $5"
#define NGX_HTTP_XET_STMT_6   NGX_HTTP_XET_STMT_4 ", $5, $6"
#define NGX_HTTP_XET_STMT_7   NGX_HTTP_XET_STMT_6 ", $7"
#define NGX_HTTP_XET_STMT_8   NGX_HTTP_XET_STMT_7 ", $8"
#define NGX_HTTP_XET_STMT_9   NGX_HTTP_XET_STMT_8 ", $9"
#define NGX_HTTP_XET_STMT_10  NGX_HTTP_XET_STMT_8 ", $9, $10"
#define NGX_HTTP_XET_STMT_11  NGX_HTTP_XET_STMT_10 ", $11"
#define NGX_HTTP_XET_STMT_12  NGX_HTTP_XET_STMT_11 ", $12"
#define NGX_HTTP_XET_STMT_13  NGX_HTTP_XET_STMT_12 ", $13"
#define NGX_HTTP_XET_STMT_14  NGX_HTTP_XET_STMT_12 ", $13, $14"
#define NGX_HTTP_XET_STMT_15  NGX_HTTP_XET_STMT_12 ", $13, $14, $15"
#define NGX_HTTP_XET_STMT_16  NGX_HTTP_XET_STMT_15 ", $16"
#define NGX_HTTP_XET_STMT_17  NGX_HTTP_XET_STMT_15 ", $16, $17"
#define NGX_HTTP_XET_STMT_18  NGX_HTTP_XET_STMT_15 ", $16, $17, $18"


#define XET_STATEMENT(name, params, longs, sql)  ngx_http_xet_stmt_##name,

typedef enum {
#include "statements.def"
    ngx_http_xet_stmt_none
} ngx_http_xet_stmt_e;

#undef XET_STATEMENT


/* The words of again.def. */

#define NGX_HTTP_XET_AGAIN_ANY    0
#define NGX_HTTP_XET_AGAIN_WAITS  1

/* One that has no row there does not compile: it has no name here. */

#define XET_AGAIN(name, why, whom)  ngx_http_xet_again_##name,

enum {
#include "again.def"
    ngx_http_xet_agains
};

#undef XET_AGAIN

#define XET_STATEMENT(name, params, longs, sql)                               \
    ngx_http_xet_has_##name = ngx_http_xet_again_##name,

enum {
#include "statements.def"
    ngx_http_xet_has_all = 1 / ((int) ngx_http_xet_agains
                                == (int) ngx_http_xet_stmt_none)
};

#undef XET_STATEMENT


/*
 * ngx_http_xet_query_send.c: the way to send a statement.
 */

/*
 * Begins the next statement of a request: returns its parameters, none so far,
 * and frees the rows of the previous statement.
 */
ngx_http_xet_params_t *ngx_http_xet_query_params(ngx_http_request_t *r);


/*
 * Adds three parameters: whether the files of the request belong to the whole
 * store, their repo, and the subject of the request.  A statement records or
 * looks up what these have uploaded.  NGX_ERROR without memory.
 */
ngx_int_t ngx_http_xet_query_whose(ngx_http_request_t *r,
    ngx_http_xet_params_t *p);

/*
 * Adds the id of an act, drawn now: a statement that is sent again is told what
 * it has done (again.def).  NGX_ERROR without memory.
 */
ngx_int_t ngx_http_xet_query_act(ngx_http_request_t *r,
    ngx_http_xet_params_t *p);

/*
 * Sends a statement with the parameters of the request in one of the lanes.
 * Returns as the functions of ngx_http_xet_query.h do.
 */
ngx_int_t ngx_http_xet_query_send(ngx_http_request_t *r,
    ngx_http_xet_lane_e lane, ngx_http_xet_stmt_e stmt,
    ngx_http_xet_query_handler_pt handler);


/* Whom a statement of the request belongs to, before it is sent. */
ngx_int_t ngx_http_xet_query_prepare(ngx_http_request_t *r,
    ngx_http_xet_query_handler_pt handler);

/*
 * Says for a long read whose turn it takes: that of the subject of a good
 * token, or else of the address, of IPv6 the network.
 */
void ngx_http_xet_query_turns(ngx_http_request_t *r,
    ngx_http_xet_stmt_e stmt);

/* The handler of a statement of a request, whose data is the query. */
void ngx_http_xet_query_result(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate);


/*
 * ngx_http_xet_query_read.c: as ngx_http_xet_query_send(), for a statement that
 * a standby may answer.  whole() tells of an answer with rows whether it lacks
 * nothing that was asked for; then the primary need not be asked.
 */

typedef ngx_uint_t (*ngx_http_xet_query_whole_pt)(ngx_http_xet_query_t *q,
    PGresult *res);

ngx_int_t ngx_http_xet_query_read(ngx_http_request_t *r,
    ngx_http_xet_lane_e lane, ngx_http_xet_stmt_e stmt,
    ngx_http_xet_query_whole_pt whole, ngx_http_xet_query_handler_pt handler);

/*
 * The same for a name of the Hub, which leads elsewhere by the next commit: the
 * primary is asked while it answers, and a standby when it does not.
 */
ngx_int_t ngx_http_xet_query_named(ngx_http_request_t *r,
    ngx_http_xet_stmt_e stmt, ngx_http_xet_query_whole_pt whole,
    ngx_http_xet_query_handler_pt handler);

/* For statements of the Hub that begin with a status. */
ngx_uint_t ngx_http_xet_query_hub_found(ngx_http_xet_query_t *q,
    PGresult *res);

/* For statements of which any row is all of it. */
ngx_uint_t ngx_http_xet_query_whole_any(ngx_http_xet_query_t *q,
    PGresult *res);


/*
 * ngx_http_xet_query_hub.c: begins a statement that asks for a repo; adds a
 * text, NULL where it has no data; and gets one of a row, the same way.
 */
ngx_http_xet_params_t *ngx_http_xet_query_hub_params(ngx_http_request_t *r,
    const ngx_http_xet_hub_asked_t *asked);
void ngx_http_xet_query_hub_text(ngx_http_xet_params_t *p,
    const ngx_str_t *text);
void ngx_http_xet_query_hub_column(PGresult *res, ngx_uint_t row,
    ngx_uint_t column, ngx_str_t *text);


#define XET_STATEMENT(name, params, longs, sql)                               \
                                                                              \
static ngx_inline ngx_int_t                                                   \
ngx_http_xet_send_##name(ngx_http_request_t *r, ngx_http_xet_lane_e lane,     \
    ngx_http_xet_query_handler_pt handler)                                    \
{                                                                             \
    return ngx_http_xet_query_send(r, lane, ngx_http_xet_stmt_##name,         \
                                   handler);                                  \
}

#include "statements.def"

#undef XET_STATEMENT


/* A statement that no request waits for, in a pool of its own. */

typedef struct {
    ngx_pool_t             *pool;
    ngx_http_xet_params_t   params;
    void                  (*answered)(PGresult *res);      /* or NULL */
    ngx_uint_t              failed;            /* out of memory */

    /* of ngx_http_xet_query_ask(), until it is answered */
    ngx_http_xet_pg_query_t  *query;
} ngx_http_xet_post_t;


/* NULL without memory. */
ngx_http_xet_post_t *ngx_http_xet_query_post_create(void);

/*
 * Add a copy of bytes, or of an array, as the next parameter; data NULL is SQL
 * NULL.  Numbers are added to post->params.
 */
void ngx_http_xet_query_post_bytes(ngx_http_xet_post_t *post,
    const void *data, size_t len);
void ngx_http_xet_query_post_array(ngx_http_xet_post_t *post,
    ngx_http_xet_array_t *a);

/* The same of the id of an act. */
void ngx_http_xet_query_post_act(ngx_http_xet_post_t *post);

/*
 * Queues the statement, which frees post in any case.  NGX_BUSY without memory,
 * or where PostgreSQL can't take it.
 */
ngx_int_t ngx_http_xet_query_post(ngx_http_xet_post_t *post,
    ngx_http_xet_stmt_e stmt);

/*
 * The same for a statement that somebody waits for who is no request: NGX_AGAIN
 * where handler will be called, which happens also in a worker that exits, or
 * NGX_BUSY.
 */
ngx_int_t ngx_http_xet_query_ask(ngx_http_xet_post_t *post,
    ngx_http_xet_stmt_e stmt, ngx_http_xet_asked_pt handler, void *data);

/*
 * ngx_http_xet_damage.c: how many copies the rows of copies_lost name, each of
 * which is logged where log is set.
 */
ngx_uint_t ngx_http_xet_damage_lost(PGresult *res, ngx_uint_t log,
    ngx_log_t *where);

/* Whether too many statements wait for one that can be spared. */
ngx_uint_t ngx_http_xet_query_post_busy(void);


#endif /* _NGX_HTTP_XET_QUERY_SEND_H_INCLUDED_ */
