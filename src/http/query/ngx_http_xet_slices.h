
/*
 * Which parts of which xorbs' chunk lists are asked for: the parameters of
 * ngx_http_xet_query_xorb_slices().
 */

#ifndef _NGX_HTTP_XET_SLICES_H_INCLUDED_
#define _NGX_HTTP_XET_SLICES_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "xet.h"
#include "ngx_http_xet_array.h"


typedef struct {
    ngx_http_xet_array_t   xorbs;
    ngx_http_xet_array_t   starts;
    ngx_http_xet_array_t   ends;       /* exclusive */
    ngx_uint_t             n;
    ngx_uint_t             chunks;     /* in all slices */
} ngx_http_xet_slices_t;


/* As arrays: a thread may fill slices; destroy frees memory, reset keeps it. */
void ngx_http_xet_slices_init(ngx_http_xet_slices_t *s);
void ngx_http_xet_slices_reset(ngx_http_xet_slices_t *s);
void ngx_http_xet_slices_destroy(ngx_http_xet_slices_t *s);

void ngx_http_xet_slices_add(ngx_http_xet_slices_t *s, const xet_hash_t *xorb,
    uint32_t start, uint32_t end);


#endif /* _NGX_HTTP_XET_SLICES_H_INCLUDED_ */
