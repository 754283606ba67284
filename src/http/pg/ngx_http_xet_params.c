
/*
 * Encodes the parameters of a statement in PostgreSQL's binary format.
 *
 * Array elements are appended in this format: number of dimensions (1),
 * has-nulls flag, OID of the element type, length, lower bound (1), then the
 * length and the bytes of each element.  The memory comes from malloc(),
 * because threads fill arrays.  After a failed allocation the array is marked
 * as failed; the caller checks the mark once, before sending.
 */

#include "ngx_http_xet_pg_session.h"

#include <endian.h>


#define NGX_HTTP_XET_ARRAY_HEADER  20


static u_char *ngx_http_xet_array_room(ngx_http_xet_array_t *a, size_t len);
static void ngx_http_xet_array_none(ngx_http_xet_array_t *a, uint32_t type,
    const char **value, int *length);
static void ngx_http_xet_array_header(ngx_http_xet_array_t *a, uint32_t type,
    u_char *p, ngx_uint_t n);
static void ngx_http_xet_put_be32(void *dst, uint32_t v);
static uint32_t ngx_http_xet_get_be32(const u_char *p);
static void ngx_http_xet_put_be64(void *dst, uint64_t v);


void
ngx_http_xet_array_reset(ngx_http_xet_array_t *a)
{
    if (a->start) {
        a->pos = a->start + NGX_HTTP_XET_ARRAY_HEADER;
    }

    a->n = 0;
    a->nulls = 0;
    a->taken = NULL;
}


void
ngx_http_xet_array_destroy(ngx_http_xet_array_t *a)
{
    if (a->start) {
        ngx_free(a->start);
    }

    ngx_memzero(a, sizeof(ngx_http_xet_array_t));
}


void
ngx_http_xet_arrays_reset(ngx_http_xet_array_t *a, ngx_uint_t n)
{
    while (n) {
        ngx_http_xet_array_reset(&a[--n]);
    }
}


void
ngx_http_xet_arrays_destroy(ngx_http_xet_array_t *a, ngx_uint_t n)
{
    while (n) {
        ngx_http_xet_array_destroy(&a[--n]);
    }
}


ngx_uint_t
ngx_http_xet_arrays_failed(ngx_http_xet_array_t *a, ngx_uint_t n)
{
    while (n) {
        if (a[--n].failed) {
            return 1;
        }
    }

    return 0;
}


static u_char *
ngx_http_xet_array_room(ngx_http_xet_array_t *a, size_t len)
{
    size_t   size, used;
    u_char  *p;

    a->n++;

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
ngx_http_xet_array_value(ngx_http_xet_array_t *a, uint32_t type,
    const char **value, int *length)
{
    if (a->n == 0) {
        ngx_http_xet_array_none(a, type, value, length);
        return;
    }

    ngx_http_xet_array_header(a, type, a->start, a->n);

    *value = (const char *) a->start;
    *length = (int) (a->pos - a->start);
}


static void
ngx_http_xet_array_none(ngx_http_xet_array_t *a, uint32_t type,
    const char **value, int *length)
{
    ngx_memzero(a->none, sizeof(a->none));
    ngx_http_xet_put_be32(a->none + 8, type);

    *value = (const char *) a->none;
    *length = sizeof(a->none);
}


static void
ngx_http_xet_array_header(ngx_http_xet_array_t *a, uint32_t type, u_char *p,
    ngx_uint_t n)
{
    ngx_http_xet_put_be32(p, 1);
    ngx_http_xet_put_be32(p + 4, a->nulls);
    ngx_http_xet_put_be32(p + 8, type);
    ngx_http_xet_put_be32(p + 12, n);
    ngx_http_xet_put_be32(p + 16, 1);
}


const u_char *
ngx_http_xet_array_next(const ngx_http_xet_array_t *a, const u_char *last,
    size_t *len)
{
    const u_char  *p;

    if (a->start == NULL) {
        return NULL;
    }

    p = last ? last + *len : a->start + NGX_HTTP_XET_ARRAY_HEADER;

    if (p == a->pos) {
        return NULL;
    }

    *len = ngx_http_xet_get_be32(p);

    return p + 4;
}


ngx_uint_t
ngx_http_xet_array_take(ngx_http_xet_array_t *a, uint32_t type, ngx_uint_t n,
    const char **value, int *length)
{
    u_char      *p, *start;
    uint32_t     len;
    ngx_uint_t   i;

    p = a->taken;

    if (p == NULL && a->start) {
        p = a->start + NGX_HTTP_XET_ARRAY_HEADER;
    }

    if (p == NULL || p == a->pos) {
        ngx_http_xet_array_none(a, type, value, length);
        return 0;
    }

    /* the header overwrites the end of the elements that were taken before */

    start = p - NGX_HTTP_XET_ARRAY_HEADER;

    for (i = 0; i < n && p < a->pos; i++) {
        ngx_memcpy(&len, p, sizeof(uint32_t));
        len = be32toh(len);

        p += 4 + ((len == (uint32_t) -1) ? 0 : len);
    }

    ngx_http_xet_array_header(a, type, start, i);

    a->taken = p;

    *value = (const char *) start;
    *length = (int) (p - start);

    return i;
}


ngx_uint_t
ngx_http_xet_array_left(ngx_http_xet_array_t *a)
{
    return a->n != 0 && a->taken != a->pos;
}


void
ngx_http_xet_params_bytes(ngx_http_xet_params_t *p, const void *data,
    size_t len)
{
    p->values[p->n] = data;
    p->lengths[p->n++] = (int) len;
}


void
ngx_http_xet_params_null(ngx_http_xet_params_t *p)
{
    ngx_http_xet_params_bytes(p, NULL, 0);
}


void
ngx_http_xet_params_bool(ngx_http_xet_params_t *p, ngx_uint_t v)
{
    ngx_http_xet_params_bytes(p, v ? "\1" : "\0", 1);
}


void
ngx_http_xet_params_int4(ngx_http_xet_params_t *p, uint32_t v)
{
    int64_t  *room;

    room = &p->numbers[p->numbered++];

    ngx_http_xet_put_be32(room, v);
    ngx_http_xet_params_bytes(p, room, 4);
}


void
ngx_http_xet_params_int8(ngx_http_xet_params_t *p, uint64_t v)
{
    int64_t  *room;

    room = &p->numbers[p->numbered++];

    ngx_http_xet_put_be64(room, v);
    ngx_http_xet_params_bytes(p, room, 8);
}


static void
ngx_http_xet_put_be32(void *dst, uint32_t v)
{
    v = htobe32(v);

    ngx_memcpy(dst, &v, sizeof(v));
}


static uint32_t
ngx_http_xet_get_be32(const u_char *p)
{
    uint32_t  v;

    ngx_memcpy(&v, p, 4);

    return ntohl(v);
}


static void
ngx_http_xet_put_be64(void *dst, uint64_t v)
{
    v = htobe64(v);

    ngx_memcpy(dst, &v, sizeof(v));
}
