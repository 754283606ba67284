
/*
 * Reads values of results in binary format.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"


ngx_int_t
ngx_http_xet_pg_rows(PGresult *res)
{
    return PQntuples(res);
}


ngx_int_t
ngx_http_xet_pg_null(PGresult *res, ngx_int_t row, ngx_int_t col)
{
    return PQgetisnull(res, (int) row, (int) col);
}


void
ngx_http_xet_pg_bytes(PGresult *res, ngx_int_t row, ngx_int_t col,
    ngx_str_t *value)
{
    value->data = (u_char *) PQgetvalue(res, (int) row, (int) col);
    value->len = PQgetlength(res, (int) row, (int) col);
}


int64_t
ngx_http_xet_pg_int(PGresult *res, ngx_int_t row, ngx_int_t col)
{
    int          i, len;
    uint64_t     n;
    const char  *p;

    p = PQgetvalue(res, (int) row, (int) col);
    len = PQgetlength(res, (int) row, (int) col);

    if (len == 0) {
        return 0;
    }

    n = (p[0] & 0x80) ? (uint64_t) -1 : 0;

    for (i = 0; i < len; i++) {
        n = (n << 8) | (u_char) p[i];
    }

    return (int64_t) n;
}


void
ngx_http_xet_pg_clear(PGresult *res)
{
    PQclear(res);
}


const char *
ngx_http_xet_pg_detail(PGresult *res)
{
    const char  *detail;

    detail = PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL);

    return detail ? detail : "";
}
