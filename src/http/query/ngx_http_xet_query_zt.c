
/*
 * Statements about zTensor files: what was found out about them before.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


#if (NGX_HTTP_XET_ZTENSOR)

/*
 * No request waits for a verdict to be stored, and none is stored while so many
 * statements wait: it can be made again.
 */

#define NGX_HTTP_XET_ZT_WAITING  16


typedef struct {
    xet_hash_t              file;
    ngx_http_xet_params_t   params;
    u_char                  data[1];
} ngx_http_xet_query_zt_t;


typedef struct {
    xet_hash_t              file;
    ngx_http_xet_params_t   params;
    ngx_http_xet_array_t    objects;
    ngx_http_xet_array_t    reports;
} ngx_http_xet_query_zt_reports_t;


static void ngx_http_xet_query_zt_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static void ngx_http_xet_query_zt_reports_done(void *data, PGresult *res,
    ngx_int_t rc, const char *sqlstate);
static ngx_uint_t ngx_http_xet_query_zt_busy(void);


ngx_int_t
ngx_http_xet_query_zt_get(ngx_http_request_t *r, const xet_hash_t *file,
    uint64_t rules, ngx_uint_t attributes,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, file->bytes, XET_HASH_LEN);
    ngx_http_xet_params_int8(p, rules);
    ngx_http_xet_params_bool(p, attributes);

    return ngx_http_xet_send_zt_get(r, NGX_HTTP_XET_READ, handler);
}


void
ngx_http_xet_query_zt_get_row(ngx_http_request_t *r, ngx_str_t *verdict,
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
    u_char                   *last;
    xet_buf_node_t           *node;
    ngx_http_xet_params_t    *p;
    ngx_http_xet_query_zt_t  *own;

    if (ngx_http_xet_query_zt_busy()) {
        return;
    }

    own = ngx_alloc(sizeof(ngx_http_xet_query_zt_t) + verdict->size
                    + attributes->len, ngx_cycle->log);
    if (own == NULL) {
        return;
    }

    own->file = *file;

    last = own->data;

    for (node = verdict->first; node; node = node->next) {
        last = ngx_cpymem(last, node->start, node->pos - node->start);
    }

    p = &own->params;

    ngx_http_xet_params_init(p);
    ngx_http_xet_params_bytes(p, own->file.bytes, XET_HASH_LEN);
    ngx_http_xet_params_int8(p, rules);
    ngx_http_xet_params_bytes(p, own->data, verdict->size);

    if (attributes->data) {
        ngx_memcpy(last, attributes->data, attributes->len);
        ngx_http_xet_params_bytes(p, last, attributes->len);

    } else {
        ngx_http_xet_params_null(p);
    }

    if (ngx_http_xet_post_zt_put(p, ngx_http_xet_query_zt_done, own) == NULL) {
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
ngx_http_xet_query_zt_reports_get(ngx_http_request_t *r,
    const xet_hash_t *file, uint64_t rules, uint64_t first, uint64_t last,
    ngx_http_xet_query_handler_pt handler)
{
    ngx_http_xet_params_t  *p;

    p = ngx_http_xet_query_params(r);

    ngx_http_xet_params_bytes(p, file->bytes, XET_HASH_LEN);
    ngx_http_xet_params_int8(p, rules);
    ngx_http_xet_params_int8(p, first);
    ngx_http_xet_params_int8(p, last);

    return ngx_http_xet_send_zt_reports_get(r, NGX_HTTP_XET_READ, handler);
}


ngx_uint_t
ngx_http_xet_query_zt_reports_get_n(ngx_http_request_t *r)
{
    return ngx_http_xet_pg_rows(ngx_http_xet_query_get(r)->res);
}


void
ngx_http_xet_query_zt_reports_get_row(ngx_http_request_t *r, ngx_uint_t i,
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
    ngx_http_xet_params_t            *p;
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

    p = &own->params;

    ngx_http_xet_params_init(p);
    ngx_http_xet_params_bytes(p, own->file.bytes, XET_HASH_LEN);
    ngx_http_xet_params_int8(p, rules);
    ngx_http_xet_params_array(p, &own->objects);
    ngx_http_xet_params_array(p, &own->reports);

    if (ngx_http_xet_post_zt_reports_put(p, ngx_http_xet_query_zt_reports_done,
                                         own)
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

#endif
