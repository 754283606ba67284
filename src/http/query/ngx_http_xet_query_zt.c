
/*
 * Statements about zTensor files: what was found out about them before.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_lanes.h"
#include "ngx_http_xet_query_send.h"


/*
 * Nobody waits for a verdict to be kept, and none is while others wait: it
 * can be made again.
 */

#define NGX_HTTP_XET_ZT_WAITING  16


typedef struct {
    xet_hash_t    file;
    int64_t       rules;                       /* big-endian */
    u_char        data[1];
} ngx_http_xet_query_zt_t;


typedef struct {
    xet_hash_t             file;
    int64_t                rules;              /* big-endian */
    ngx_http_xet_array_t   objects;
    ngx_http_xet_array_t   reports;
} ngx_http_xet_query_zt_reports_t;


static void ngx_http_xet_query_zt_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static void ngx_http_xet_query_zt_reports_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static ngx_uint_t ngx_http_xet_query_zt_busy(void);


ngx_int_t
ngx_http_xet_query_zt(ngx_http_request_t *r, const xet_hash_t *file,
    uint64_t rules, ngx_uint_t attributes,
    ngx_http_xet_query_handler_pt handler)
{
    int                    lengths[3] = { XET_HASH_LEN, 8, 1 };
    const char            *values[3];
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    ngx_http_xet_put_be64(&q->numbers[0], rules);

    values[0] = (const char *) file->bytes;
    values[1] = (const char *) &q->numbers[0];
    values[2] = attributes ? "\1" : "\0";

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_READ, NGX_HTTP_XET_STMT_ZT,
                                   values, lengths, handler);
}


void
ngx_http_xet_query_zt_get(ngx_http_request_t *r, ngx_str_t *verdict,
    ngx_str_t *attributes)
{
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    ngx_http_xet_pg_bytes(q->res, 0, 0, verdict);

    if (ngx_http_xet_pg_null(q->res, 0, 1)) {
        ngx_str_null(attributes);
        return;
    }

    ngx_http_xet_pg_bytes(q->res, 0, 1, attributes);
}


void
ngx_http_xet_query_zt_put(const xet_hash_t *file, uint64_t rules,
    xet_buf_t *verdict, const xet_zt_text_t *attributes)
{
    int                        lengths[4];
    u_char                    *p;
    const char                *values[4];
    xet_buf_node_t            *node;
    ngx_http_xet_query_zt_t   *own;

    if (ngx_http_xet_query_zt_busy()) {
        return;
    }

    own = ngx_alloc(sizeof(ngx_http_xet_query_zt_t) + verdict->size
                    + attributes->len, ngx_cycle->log);
    if (own == NULL) {
        return;
    }

    own->file = *file;
    ngx_http_xet_put_be64(&own->rules, rules);

    p = own->data;

    for (node = verdict->first; node; node = node->next) {
        p = ngx_cpymem(p, node->start, node->pos - node->start);
    }

    values[0] = (const char *) own->file.bytes;
    lengths[0] = XET_HASH_LEN;
    values[1] = (const char *) &own->rules;
    lengths[1] = 8;
    values[2] = (const char *) own->data;
    lengths[2] = (int) verdict->size;
    values[3] = NULL;
    lengths[3] = 0;

    if (attributes->data) {
        ngx_memcpy(p, attributes->data, attributes->len);
        values[3] = (const char *) p;
        lengths[3] = (int) attributes->len;
    }

    if (ngx_http_xet_lanes_send(NGX_HTTP_XET_WRITE,
                           &ngx_http_xet_query_stmts[NGX_HTTP_XET_STMT_ZT_PUT],
                           values, lengths, ngx_http_xet_query_zt_done, own)
        == NULL)
    {
        ngx_free(own);
    }
}


static void
ngx_http_xet_query_zt_done(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    if (res) {
        ngx_http_xet_pg_clear(res);
    }

    ngx_free(data);
}


static ngx_uint_t
ngx_http_xet_query_zt_busy(void)
{
    ngx_http_xet_lane_stat_t  stat;

    ngx_http_xet_lanes_stat(NGX_HTTP_XET_WRITE, &stat);

    return stat.waiting >= NGX_HTTP_XET_ZT_WAITING;
}


ngx_int_t
ngx_http_xet_query_zt_reports(ngx_http_request_t *r, const xet_hash_t *file,
    uint64_t rules, uint64_t first, uint64_t last,
    ngx_http_xet_query_handler_pt handler)
{
    int                    lengths[4] = { XET_HASH_LEN, 8, 8, 8 };
    const char            *values[4];
    ngx_http_xet_query_t  *q;

    q = ngx_http_xet_query_get(r);

    ngx_http_xet_put_be64(&q->numbers[0], rules);
    ngx_http_xet_put_be64(&q->numbers[1], first);
    ngx_http_xet_put_be64(&q->numbers[2], last);

    values[0] = (const char *) file->bytes;
    values[1] = (const char *) &q->numbers[0];
    values[2] = (const char *) &q->numbers[1];
    values[3] = (const char *) &q->numbers[2];

    return ngx_http_xet_query_send(r, NGX_HTTP_XET_READ,
                                   NGX_HTTP_XET_STMT_ZT_REPORTS, values,
                                   lengths, handler);
}


ngx_uint_t
ngx_http_xet_query_zt_reports_n(ngx_http_request_t *r)
{
    return ngx_http_xet_pg_rows(ngx_http_xet_query_get(r)->res);
}


void
ngx_http_xet_query_zt_reports_row(ngx_http_request_t *r, ngx_uint_t i,
    uint64_t *object, ngx_str_t *report)
{
    PGresult  *res;

    res = ngx_http_xet_query_get(r)->res;

    *object = ngx_http_xet_pg_int(res, i, 0);
    ngx_http_xet_pg_bytes(res, i, 1, report);
}


void
ngx_http_xet_query_zt_reports_put(const xet_hash_t *file, uint64_t rules,
    ngx_http_xet_array_t *objects, ngx_http_xet_array_t *reports)
{
    int                               lengths[4] = { XET_HASH_LEN, 8 };
    const char                       *values[4];
    ngx_http_xet_query_zt_reports_t  *own;

    own = NULL;

    if (!objects->failed && !reports->failed
        && !ngx_http_xet_query_zt_busy())
    {
        own = ngx_alloc(sizeof(ngx_http_xet_query_zt_reports_t),
                        ngx_cycle->log);
    }

    if (own == NULL) {
        ngx_http_xet_array_destroy(objects);
        ngx_http_xet_array_destroy(reports);
        return;
    }

    own->file = *file;
    own->objects = *objects;
    own->reports = *reports;
    ngx_http_xet_put_be64(&own->rules, rules);

    values[0] = (const char *) own->file.bytes;
    values[1] = (const char *) &own->rules;
    ngx_http_xet_array_value(&own->objects, &values[2], &lengths[2]);
    ngx_http_xet_array_value(&own->reports, &values[3], &lengths[3]);

    if (ngx_http_xet_lanes_send(NGX_HTTP_XET_WRITE,
                   &ngx_http_xet_query_stmts[NGX_HTTP_XET_STMT_ZT_REPORTS_PUT],
                   values, lengths, ngx_http_xet_query_zt_reports_done, own)
        == NULL)
    {
        ngx_http_xet_query_zt_reports_done(own, NULL, NGX_BUSY, NULL);
    }
}


static void
ngx_http_xet_query_zt_reports_done(void *data, PGresult *res, ngx_int_t rc,
    const char *sqlstate)
{
    ngx_http_xet_query_zt_reports_t *own = data;

    if (res) {
        ngx_http_xet_pg_clear(res);
    }

    ngx_http_xet_array_destroy(&own->objects);
    ngx_http_xet_array_destroy(&own->reports);

    ngx_free(own);
}
