
/*
 * Array parameters of statements, and the batch of them that registers files.
 */

#ifndef _NGX_HTTP_XET_ARRAY_H_INCLUDED_
#define _NGX_HTTP_XET_ARRAY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>


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

/* The parameter: value and length as libpq takes them, while a is unchanged. */
void ngx_http_xet_array_value(ngx_http_xet_array_t *a, const char **value,
    int *length);


/*
 * Files and their terms, verified, on their way into PostgreSQL.  A batch is
 * bounded; what does not fit into one is staged under the upload's id, and
 * the last one commits all of them in one transaction.
 */

#define NGX_HTTP_XET_UPLOAD_LEN  16            /* an upload's random id */


typedef struct {
    u_char                 id[NGX_HTTP_XET_UPLOAD_LEN];
    int32_t                seq;                /* batches staged */

    ngx_http_xet_array_t   serials;            /* per file, in the upload */
    ngx_http_xet_array_t   hashes;
    ngx_http_xet_array_t   sizes;
    ngx_http_xet_array_t   sha256;
    ngx_http_xet_array_t   counts;
    ngx_http_xet_array_t   packed;             /* NULL: in segments */
    ngx_http_xet_array_t   chunks;             /* first chunk, its hash */
    ngx_http_xet_array_t   xorbs;              /* its xorb */
    ngx_http_xet_array_t   indexes;            /* its place there */

    ngx_http_xet_array_t   seg_serials;        /* per segment, its file's */
    ngx_http_xet_array_t   seg_firsts;
    ngx_http_xet_array_t   seg_ends;
    ngx_http_xet_array_t   seg_packed;

    size_t                 size;               /* packed bytes in it */
} ngx_http_xet_batch_t;

void ngx_http_xet_batch_init(ngx_http_xet_batch_t *b);
void ngx_http_xet_batch_reset(ngx_http_xet_batch_t *b);
void ngx_http_xet_batch_destroy(ngx_http_xet_batch_t *b);
ngx_int_t ngx_http_xet_batch_failed(ngx_http_xet_batch_t *b);

/* The arrays in the order of the statements' parameters. */
#define NGX_HTTP_XET_BATCH_ARRAYS  13

ngx_http_xet_array_t *ngx_http_xet_batch_array(ngx_http_xet_batch_t *b,
    ngx_uint_t i);


/* Integers of parameters, big-endian. */
void ngx_http_xet_put_be32(void *dst, uint32_t v);
void ngx_http_xet_put_be64(void *dst, uint64_t v);


#endif /* _NGX_HTTP_XET_ARRAY_H_INCLUDED_ */
