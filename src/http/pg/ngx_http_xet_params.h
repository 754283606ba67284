
/*
 * The parameters of a statement, in the binary form that PostgreSQL takes.
 */

#ifndef _NGX_HTTP_XET_PARAMS_H_INCLUDED_
#define _NGX_HTTP_XET_PARAMS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_http_xet_array.h"


#define NGX_HTTP_XET_PARAMS_MAX  24


/*
 * Bytes stay where the caller has them, numbers are kept in the structure: both
 * must live until the statement is answered.
 */

typedef struct {
    ngx_uint_t   n;
    ngx_uint_t   numbered;
    const char  *values[NGX_HTTP_XET_PARAMS_MAX];
    int          lengths[NGX_HTTP_XET_PARAMS_MAX];
    int64_t      numbers[NGX_HTTP_XET_PARAMS_MAX];    /* big-endian */
} ngx_http_xet_params_t;


/* Each adds the next parameter; there is room for any row of statements.def. */

#define ngx_http_xet_params_init(p)  (p)->n = 0, (p)->numbered = 0

void ngx_http_xet_params_bytes(ngx_http_xet_params_t *p, const void *data,
    size_t len);
void ngx_http_xet_params_null(ngx_http_xet_params_t *p);
void ngx_http_xet_params_bool(ngx_http_xet_params_t *p, ngx_uint_t v);
void ngx_http_xet_params_int4(ngx_http_xet_params_t *p, uint32_t v);
void ngx_http_xet_params_int8(ngx_http_xet_params_t *p, uint64_t v);
void ngx_http_xet_params_array(ngx_http_xet_params_t *p,
    ngx_http_xet_array_t *a);


#endif /* _NGX_HTTP_XET_PARAMS_H_INCLUDED_ */
