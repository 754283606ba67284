
/*
 * Array parameters of statements, and the batch of them that registers files.
 *
 * An array is kept in PostgreSQL's binary form from the first element on:
 * dimensions (1), has nulls, oid of the element, length, lower bound (1), then
 * each element with its length.  Memory comes from malloc(), because threads
 * fill arrays; a failed allocation makes the array failed, which is asked for
 * once at the end.
 */

#include "ngx_http_xet_array.h"


#define NGX_HTTP_XET_ARRAY_HEADER  20


static u_char *ngx_http_xet_array_room(ngx_http_xet_array_t *a, size_t len);


void
ngx_http_xet_array_init(ngx_http_xet_array_t *a, uint32_t type)
{
    ngx_memzero(a, sizeof(ngx_http_xet_array_t));

    a->type = type;
}


void
ngx_http_xet_array_reset(ngx_http_xet_array_t *a)
{
    if (a->start) {
        a->pos = a->start + NGX_HTTP_XET_ARRAY_HEADER;
    }

    a->n = 0;
    a->nulls = 0;
}


void
ngx_http_xet_array_destroy(ngx_http_xet_array_t *a)
{
    if (a->start) {
        ngx_free(a->start);
    }

    ngx_memzero(a, sizeof(ngx_http_xet_array_t));
}


static u_char *
ngx_http_xet_array_room(ngx_http_xet_array_t *a, size_t len)
{
    size_t   size, used;
    u_char  *p;

    if (a->failed) {
        return NULL;
    }

    if (a->start == NULL || (size_t) (a->end - a->pos) < len) {

        used = a->start ? (size_t) (a->pos - a->start)
                        : NGX_HTTP_XET_ARRAY_HEADER;
        size = ngx_max(2 * used, used + len + 256);

        p = realloc(a->start, size);
        if (p == NULL) {
            a->failed = 1;
            return NULL;
        }

        a->start = p;
        a->pos = p + used;
        a->end = p + size;
    }

    p = a->pos;
    a->pos += len;
    a->n++;

    return p;
}


void
ngx_http_xet_array_bytes(ngx_http_xet_array_t *a, const void *data,
    size_t len)
{
    u_char  *p;

    p = ngx_http_xet_array_room(a, 4 + len);

    if (p) {
        ngx_http_xet_put_be32(p, (uint32_t) len);
        ngx_memcpy(p + 4, data, len);
    }
}


void
ngx_http_xet_array_null(ngx_http_xet_array_t *a)
{
    u_char  *p;

    p = ngx_http_xet_array_room(a, 4);

    if (p) {
        ngx_http_xet_put_be32(p, (uint32_t) -1);
        a->nulls = 1;
    }
}


void
ngx_http_xet_array_int4(ngx_http_xet_array_t *a, int32_t v)
{
    u_char  *p;

    p = ngx_http_xet_array_room(a, 8);

    if (p) {
        ngx_http_xet_put_be32(p, 4);
        ngx_http_xet_put_be32(p + 4, (uint32_t) v);
    }
}


void
ngx_http_xet_array_int8(ngx_http_xet_array_t *a, int64_t v)
{
    u_char  *p;

    p = ngx_http_xet_array_room(a, 12);

    if (p) {
        ngx_http_xet_put_be32(p, 8);
        ngx_http_xet_put_be64(p + 4, (uint64_t) v);
    }
}


void
ngx_http_xet_array_value(ngx_http_xet_array_t *a, const char **value,
    int *length)
{
    u_char  *p;

    if (a->n == 0) {

        /* no dimensions; the parameter's own type says the element's */

        static const char  none[3][12] = {
            { 0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, NGX_HTTP_XET_OID_BYTEA },
            { 0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, NGX_HTTP_XET_OID_INT8 },
            { 0, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, NGX_HTTP_XET_OID_INT4 }
        };

        *value = (a->type == NGX_HTTP_XET_OID_BYTEA) ? none[0]
                 : (a->type == NGX_HTTP_XET_OID_INT8) ? none[1]
                 : none[2];
        *length = 12;
        return;
    }

    p = a->start;

    ngx_http_xet_put_be32(p, 1);
    ngx_http_xet_put_be32(p + 4, a->nulls);
    ngx_http_xet_put_be32(p + 8, a->type);
    ngx_http_xet_put_be32(p + 12, a->n);
    ngx_http_xet_put_be32(p + 16, 1);

    *value = (const char *) p;
    *length = (int) (a->pos - p);
}


void
ngx_http_xet_batch_init(ngx_http_xet_batch_t *b)
{
    ngx_memzero(b, sizeof(ngx_http_xet_batch_t));

    ngx_http_xet_array_init(&b->serials, NGX_HTTP_XET_OID_INT8);
    ngx_http_xet_array_init(&b->hashes, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&b->sizes, NGX_HTTP_XET_OID_INT8);
    ngx_http_xet_array_init(&b->sha256, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&b->counts, NGX_HTTP_XET_OID_INT8);
    ngx_http_xet_array_init(&b->packed, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&b->chunks, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&b->xorbs, NGX_HTTP_XET_OID_BYTEA);
    ngx_http_xet_array_init(&b->indexes, NGX_HTTP_XET_OID_INT4);
    ngx_http_xet_array_init(&b->seg_serials, NGX_HTTP_XET_OID_INT8);
    ngx_http_xet_array_init(&b->seg_firsts, NGX_HTTP_XET_OID_INT8);
    ngx_http_xet_array_init(&b->seg_ends, NGX_HTTP_XET_OID_INT8);
    ngx_http_xet_array_init(&b->seg_packed, NGX_HTTP_XET_OID_BYTEA);
}


ngx_http_xet_array_t *
ngx_http_xet_batch_array(ngx_http_xet_batch_t *b, ngx_uint_t i)
{
    ngx_http_xet_array_t *const  arrays[NGX_HTTP_XET_BATCH_ARRAYS] = {
        &b->serials, &b->hashes, &b->sizes, &b->sha256, &b->counts,
        &b->packed, &b->chunks, &b->xorbs, &b->indexes, &b->seg_serials,
        &b->seg_firsts, &b->seg_ends, &b->seg_packed
    };

    return arrays[i];
}


void
ngx_http_xet_batch_reset(ngx_http_xet_batch_t *b)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_XET_BATCH_ARRAYS; i++) {
        ngx_http_xet_array_reset(ngx_http_xet_batch_array(b, i));
    }

    b->size = 0;
}


void
ngx_http_xet_batch_destroy(ngx_http_xet_batch_t *b)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_XET_BATCH_ARRAYS; i++) {
        ngx_http_xet_array_destroy(ngx_http_xet_batch_array(b, i));
    }
}


ngx_int_t
ngx_http_xet_batch_failed(ngx_http_xet_batch_t *b)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_XET_BATCH_ARRAYS; i++) {
        if (ngx_http_xet_batch_array(b, i)->failed) {
            return 1;
        }
    }

    return 0;
}


void
ngx_http_xet_put_be64(void *dst, uint64_t v)
{
    ngx_uint_t   i;
    u_char      *p = dst;

    for (i = 0; i < 8; i++) {
        p[i] = (u_char) (v >> (56 - 8 * i));
    }
}


void
ngx_http_xet_put_be32(void *dst, uint32_t v)
{
    u_char  *p = dst;

    p[0] = (u_char) (v >> 24);
    p[1] = (u_char) (v >> 16);
    p[2] = (u_char) (v >> 8);
    p[3] = (u_char) v;
}
