
/*
 * Reports on the components of zTensor files, stored in PostgreSQL.  A row has
 * the reports on all components of an object; a report on one of several
 * components is not stored.  Damaged rows are ignored, and their objects are
 * verified again.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_download.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_routes.h"
#include "ngx_http_xet_zt_verify.h"


static void ngx_http_xet_zt_reports_apply(ngx_http_xet_zt_verify_t *v,
    uint64_t index, ngx_str_t *report);
static ngx_int_t ngx_http_xet_zt_reports_pack(u_char *dst,
    ngx_http_xet_zt_item_t *items, ngx_uint_t n);


void
ngx_http_xet_zt_reports_rows(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v)
{
    ngx_uint_t                         i, n;
    ngx_http_xet_query_t              *q;
    ngx_http_xet_zt_reports_get_row_t  row;

    q = ngx_http_xet_ctx_of(r)->query;
    n = ngx_http_xet_query_rows(q);

    for (i = 0; i < n; i++) {
        (void) ngx_http_xet_row_zt_reports_get(q->res, i, &row);
        ngx_http_xet_zt_reports_apply(v, row.object, &row.report);
    }
}


static void
ngx_http_xet_zt_reports_apply(ngx_http_xet_zt_verify_t *v, uint64_t index,
    ngx_str_t *report)
{
    size_t                   at;
    ngx_uint_t               i;
    xet_zt_object_t         *o;
    xet_zt_report_t          any;
    ngx_http_xet_zt_item_t  *item;

    /* components are compared with each other: use all reports or none */

    for (at = 0; at < report->len; at += XET_ZT_REPORT_LEN) {
        if (report->len - at < XET_ZT_REPORT_LEN
            || !xet_zt_report_unpack(&any, report->data + at))
        {
            return;
        }
    }

    for (i = 0; i < v->n; i++) {
        item = &v->items[i];
        o = item->object;

        if (o->index != index || report->len != o->n * XET_ZT_REPORT_LEN) {
            continue;
        }

        at = (item->component - o->components) * XET_ZT_REPORT_LEN;

        item->known = xet_zt_report_unpack(&item->report,
                                           report->data + at);
    }
}


void
ngx_http_xet_zt_reports_keep(ngx_http_request_t *r,
    ngx_http_xet_zt_verify_t *v)
{
    u_char                 report[1024 * XET_ZT_REPORT_LEN];
    ngx_uint_t             i, n;
    xet_zt_object_t       *o;
    ngx_http_xet_array_t   objects, reports;

    ngx_memzero(&objects, sizeof(ngx_http_xet_array_t));
    ngx_memzero(&reports, sizeof(ngx_http_xet_array_t));

    for (i = 0; i < v->n; i += n) {
        o = v->items[i].object;

        for (n = 1; i + n < v->n && v->items[i + n].object == o; n++) {
            /* void */
        }

        if (n != o->n || n > sizeof(report) / XET_ZT_REPORT_LEN
            || ngx_http_xet_zt_reports_pack(report, &v->items[i], n)
               != NGX_OK)
        {
            continue;
        }

        ngx_http_xet_array_int8(&objects, (int64_t) o->index);
        ngx_http_xet_array_bytes(&reports, report, n * XET_ZT_REPORT_LEN);
    }

    if (objects.n) {
        ngx_http_xet_query_zt_reports_put(r, &ngx_http_xet_ctx_of(r)->hash,
                                          v->rules, &objects, &reports);
    }

    ngx_http_xet_array_destroy(&objects);
    ngx_http_xet_array_destroy(&reports);
}


/*
 * Packs the reports of an object.  Returns NGX_DECLINED if all reports are
 * already stored, or if a report must not be stored.
 */

static ngx_int_t
ngx_http_xet_zt_reports_pack(u_char *dst, ngx_http_xet_zt_item_t *items,
    ngx_uint_t n)
{
    ngx_uint_t  i, news;

    news = 0;

    for (i = 0; i < n; i++) {

        if (!xet_zt_report_pack(dst + i * XET_ZT_REPORT_LEN,
                                &items[i].report))
        {
            return NGX_DECLINED;
        }

        news += !items[i].known;
    }

    return news ? NGX_OK : NGX_DECLINED;
}
