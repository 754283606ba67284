
/*
 * Array parameters of statements.
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
    u_char      none[12];                      /* the array without elements */
    unsigned    nulls:1;
    unsigned    failed:1;                      /* out of memory */
} ngx_http_xet_array_t;


#define NGX_HTTP_XET_OID_BYTEA  17
#define NGX_HTTP_XET_OID_INT8   20
#define NGX_HTTP_XET_OID_INT4   23


/*
 * The memory of an array is malloc()ed, so that a thread may fill it; destroy
 * frees it, reset removes the elements only.  Without memory "failed" is set,
 * which the caller checks before it sends the array; reset does not clear it.
 */
void ngx_http_xet_array_init(ngx_http_xet_array_t *a, uint32_t type);
void ngx_http_xet_array_reset(ngx_http_xet_array_t *a);
void ngx_http_xet_array_destroy(ngx_http_xet_array_t *a);
void ngx_http_xet_array_bytes(ngx_http_xet_array_t *a, const void *data,
    size_t len);
void ngx_http_xet_array_null(ngx_http_xet_array_t *a);
void ngx_http_xet_array_int4(ngx_http_xet_array_t *a, int32_t v);
void ngx_http_xet_array_int8(ngx_http_xet_array_t *a, int64_t v);

/* Gives value and length for libpq; they are valid while a is unchanged. */
void ngx_http_xet_array_value(ngx_http_xet_array_t *a, const char **value,
    int *length);


#endif /* _NGX_HTTP_XET_ARRAY_H_INCLUDED_ */
