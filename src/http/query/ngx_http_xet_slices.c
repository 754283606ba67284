
/*
 * Which parts of which xorbs' chunk lists are asked for.
 */

#include "ngx_http_xet_query.h"


void
ngx_http_xet_slices_init(ngx_http_xet_slices_t *s)
{
    ngx_memzero(s, sizeof(ngx_http_xet_slices_t));

    ngx_http_xet_array_init(&s->xorbs, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&s->starts, NGX_HTTP_XET_OID_INT4);
    ngx_http_xet_array_init(&s->ends, NGX_HTTP_XET_OID_INT4);
}


void
ngx_http_xet_slices_reset(ngx_http_xet_slices_t *s)
{
    ngx_http_xet_array_reset(&s->xorbs);
    ngx_http_xet_array_reset(&s->starts);
    ngx_http_xet_array_reset(&s->ends);

    s->n = 0;
    s->chunks = 0;
}


void
ngx_http_xet_slices_destroy(ngx_http_xet_slices_t *s)
{
    ngx_http_xet_array_destroy(&s->xorbs);
    ngx_http_xet_array_destroy(&s->starts);
    ngx_http_xet_array_destroy(&s->ends);
}


void
ngx_http_xet_slices_add(ngx_http_xet_slices_t *s, const xet_hash_t *xorb,
    uint32_t start, uint32_t end)
{
    ngx_http_xet_array_bytes(&s->xorbs, xorb->bytes, XET_HASH_LEN);
    ngx_http_xet_array_int4(&s->starts, (int32_t) start);
    ngx_http_xet_array_int4(&s->ends, (int32_t) end);

    s->n++;
    s->chunks += end - start;
}
