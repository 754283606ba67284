
/*
 * The parameters of a statement, in the binary form that PostgreSQL takes.
 */

#include "ngx_http_xet_pg_session.h"


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


void
ngx_http_xet_params_array(ngx_http_xet_params_t *p, ngx_http_xet_array_t *a)
{
    int          len;
    const char  *value;

    ngx_http_xet_array_value(a, &value, &len);
    ngx_http_xet_params_bytes(p, value, (size_t) len);
}
