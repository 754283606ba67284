
/*
 * One function a statement: binds parameters, reads rows into structures.
 */

#ifndef _NGX_HTTP_XET_QUERY_H_INCLUDED_
#define _NGX_HTTP_XET_QUERY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "xet.h"
#include "ngx_http_xet_pg.h"


#define NGX_HTTP_XET_SCHEMA  "1"           /* last of sql/NNNN_*.sql */


/*
 * rc of a query's handler:
 *
 *     NGX_OK         the rows are in the query
 *     NGX_DECLINED   no such row
 *     NGX_ABORT      a verdict of the function: the query's sqlstate
 *     NGX_BUSY       PostgreSQL is away or overloaded, 503
 *     NGX_ERROR      PostgreSQL refused, 500
 */
typedef void (*ngx_http_xet_query_handler_pt)(ngx_http_request_t *r,
    ngx_int_t rc);


/* One a request: at most one statement of a request is in flight. */

typedef struct {
    ngx_http_request_t             *request;
    ngx_http_xet_pg_query_t        *query;     /* in flight */
    ngx_http_xet_query_handler_pt   handler;

    ngx_int_t                     (*read)(void *query);
    PGresult                       *res;       /* what the rows point into */
    u_char                          sqlstate[6];

    int64_t                         numbers[2]; /* parameters, big-endian */
    unsigned                        cleanup:1;
} ngx_http_xet_query_t;


/* A packed array parameter: PostgreSQL's binary form of a[]. */

typedef struct {
    u_char     *start;
    u_char     *pos;
    u_char     *end;
    uint32_t    n;
    uint32_t    type;                          /* element's oid */
    unsigned    nulls:1;
    unsigned    failed:1;                      /* out of memory */
} ngx_http_xet_array_t;


#define NGX_HTTP_XET_OID_BYTEA  17
#define NGX_HTTP_XET_OID_INT8   20
#define NGX_HTTP_XET_OID_INT4   23


/*
 * Memory of an array is malloc()ed, so that a thread may fill it; free it
 * with destroy.  reset keeps the memory.
 */
void ngx_http_xet_array_init(ngx_http_xet_array_t *a, uint32_t type);
void ngx_http_xet_array_reset(ngx_http_xet_array_t *a);
void ngx_http_xet_array_destroy(ngx_http_xet_array_t *a);
void ngx_http_xet_array_bytes(ngx_http_xet_array_t *a, const void *data,
    size_t len);
void ngx_http_xet_array_null(ngx_http_xet_array_t *a);
void ngx_http_xet_array_int4(ngx_http_xet_array_t *a, int32_t v);
void ngx_http_xet_array_int8(ngx_http_xet_array_t *a, int64_t v);


/* Frees the rows before the request ends. */
void ngx_http_xet_query_release(ngx_http_request_t *r);


/*
 * The functions return NGX_AGAIN when the handler will be called, NGX_BUSY
 * when PostgreSQL can't take the statement, NGX_ERROR without memory.
 * Parameters must live until the handler is called or the request dies.
 */

/* The terms of a file that overlap [first, last]. */

typedef struct {
    uint64_t    size;                          /* of the file */
    ngx_uint_t  n;
} ngx_http_xet_terms_t;

ngx_int_t ngx_http_xet_query_terms(ngx_http_request_t *r,
    const xet_hash_t *file, uint64_t first, uint64_t last,
    ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_terms_get(ngx_http_request_t *r,
    ngx_http_xet_terms_t *terms);
void ngx_http_xet_query_terms_row(ngx_http_request_t *r, ngx_uint_t i,
    uint64_t *first_offset, ngx_str_t *packed);


/*
 * Slices of xorbs' chunk lists, as many rows as asked for, in order; the row
 * of a xorb that is not stored is not known.  With hashes off slice->hashes
 * is NULL.  A range outside its xorb gives n == 0.
 */
ngx_int_t ngx_http_xet_query_slices(ngx_http_request_t *r,
    ngx_http_xet_array_t *xorbs, ngx_http_xet_array_t *starts,
    ngx_http_xet_array_t *ends, ngx_uint_t hashes, ngx_uint_t lane,
    ngx_http_xet_query_handler_pt handler);
ngx_uint_t ngx_http_xet_query_slices_n(ngx_http_xet_query_t *q);
void ngx_http_xet_query_slices_row(ngx_http_xet_query_t *q, ngx_uint_t i,
    xet_shard_slice_t *slice);


/* Registers a xorb whose bytes are durable; *inserted tells if it is new. */

ngx_int_t ngx_http_xet_query_xorb_put(ngx_http_request_t *r,
    const xet_xorb_info_t *info, ngx_http_xet_array_t *eligible,
    ngx_http_xet_query_handler_pt handler);
ngx_uint_t ngx_http_xet_query_xorb_put_inserted(ngx_http_request_t *r);


ngx_int_t ngx_http_xet_query_xorb(ngx_http_request_t *r,
    const xet_hash_t *xorb, ngx_http_xet_query_handler_pt handler);
uint64_t ngx_http_xet_query_xorb_stored(ngx_http_request_t *r);


ngx_int_t ngx_http_xet_query_file(ngx_http_request_t *r,
    const xet_hash_t *file, ngx_http_xet_query_handler_pt handler);
uint64_t ngx_http_xet_query_file_size(ngx_http_request_t *r);


/* The xorb that serves a chunk best, with its whole chunk list. */

ngx_int_t ngx_http_xet_query_chunk(ngx_http_request_t *r,
    const xet_hash_t *chunk, ngx_http_xet_query_handler_pt handler);
void ngx_http_xet_query_chunk_get(ngx_http_request_t *r,
    xet_xorb_list_t *xorb);


/*
 * Files and their terms, verified, on their way into PostgreSQL.  A batch is
 * bounded; what does not fit into one is staged under the upload's id, and
 * the last one commits all of them in one transaction.
 */

typedef struct {
    u_char                 id[16];             /* of the upload */
    int32_t                seq;                /* batches staged */

    ngx_http_xet_array_t   hashes;             /* per file */
    ngx_http_xet_array_t   sizes;
    ngx_http_xet_array_t   sha256;
    ngx_http_xet_array_t   counts;
    ngx_http_xet_array_t   packed;             /* NULL: in segments */
    ngx_http_xet_array_t   chunks;             /* first chunk, its hash */
    ngx_http_xet_array_t   xorbs;              /* its xorb */
    ngx_http_xet_array_t   indexes;            /* its place there */

    ngx_http_xet_array_t   seg_files;          /* per segment */
    ngx_http_xet_array_t   seg_firsts;
    ngx_http_xet_array_t   seg_ends;
    ngx_http_xet_array_t   seg_packed;

    size_t                 size;               /* packed bytes in it */
} ngx_http_xet_batch_t;

void ngx_http_xet_batch_init(ngx_http_xet_batch_t *b);
void ngx_http_xet_batch_reset(ngx_http_xet_batch_t *b);
void ngx_http_xet_batch_destroy(ngx_http_xet_batch_t *b);
ngx_int_t ngx_http_xet_batch_failed(ngx_http_xet_batch_t *b);

ngx_int_t ngx_http_xet_query_stage(ngx_http_request_t *r,
    ngx_http_xet_batch_t *b, ngx_http_xet_query_handler_pt handler);
ngx_int_t ngx_http_xet_query_shard_put(ngx_http_request_t *r,
    ngx_http_xet_batch_t *b, ngx_http_xet_query_handler_pt handler);
ngx_uint_t ngx_http_xet_query_shard_put_new(ngx_http_request_t *r);

/* Drops what a failed upload has staged; nobody waits for it. */
void ngx_http_xet_query_unstage(ngx_http_xet_batch_t *b);


ngx_int_t ngx_http_xet_query_ping(ngx_http_request_t *r,
    ngx_http_xet_query_handler_pt handler);


extern const ngx_http_xet_pg_stmt_t  ngx_http_xet_query_stmts[];


#endif /* _NGX_HTTP_XET_QUERY_H_INCLUDED_ */
