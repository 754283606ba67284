
/*
 * Reports on the objects of a batch, kept in PostgreSQL: the data of a file
 * never changes, so it is read for this once.
 *
 * A row has the reports on all components of an object; an object of which
 * only one role was asked for is not kept.  Rows that can't be are left out,
 * their objects are verified again.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_array.h"
#include "ngx_http_xet_query.h"
#include "ngx_http_xet_zt_reports.h"


static void ngx_http_xet_zt_reports_queried(ngx_http_request_t *r,
    ngx_int_t rc);
static void ngx_http_xet_zt_reports_rows(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b);
static void ngx_http_xet_zt_reports_apply(ngx_http_xet_zt_batch_t *b,
    uint64_t index, ngx_str_t *report);
static ngx_int_t ngx_http_xet_zt_reports_pack(u_char *dst,
    ngx_http_xet_zt_item_t *items, ngx_uint_t n);


xet_status_t
ngx_http_xet_zt_reports_load(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b, ngx_http_xet_ztensor_pt handler)
{
    ngx_int_t            rc;
    ngx_http_xet_ctx_t  *ctx;

    if (b->nobjects == 0) {
        return XET_OK;
    }

    b->loaded = handler;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    ctx->state = b;

    rc = ngx_http_xet_query_zt_reports(r, &ctx->hash, b->rules,
                                       b->objects[0]->index,
                                       b->objects[b->nobjects - 1]->index,
                                       ngx_http_xet_zt_reports_queried);

    return ngx_http_xet_query_status(rc, XET_OK);
}


static void
ngx_http_xet_zt_reports_queried(ngx_http_request_t *r, ngx_int_t rc)
{
    xet_status_t              status;
    ngx_http_xet_ctx_t       *ctx;
    ngx_http_xet_zt_batch_t  *b;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);
    b = ctx->state;

    if (rc == NGX_OK) {
        ngx_http_xet_zt_reports_rows(r, b);
    }

    status = ngx_http_xet_query_status(rc, XET_OK);

    ngx_http_xet_query_release(r);

    b->loaded(r, b, status);
}


static void
ngx_http_xet_zt_reports_rows(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b)
{
    uint64_t    index;
    ngx_str_t   report;
    ngx_uint_t  i, n;

    n = ngx_http_xet_query_zt_reports_n(r);

    for (i = 0; i < n; i++) {
        ngx_http_xet_query_zt_reports_row(r, i, &index, &report);
        ngx_http_xet_zt_reports_apply(b, index, &report);
    }
}


static void
ngx_http_xet_zt_reports_apply(ngx_http_xet_zt_batch_t *b, uint64_t index,
    ngx_str_t *report)
{
    size_t                   place;
    ngx_uint_t               i;
    xet_zt_object_t         *o;
    xet_zt_report_t          any;
    ngx_http_xet_zt_item_t  *item;

    /* all of an object, or nothing: its components are held together */

    for (place = 0; place < report->len; place += XET_ZT_REPORT_LEN) {
        if (report->len - place < XET_ZT_REPORT_LEN
            || !xet_zt_report_unpack(&any, report->data + place))
        {
            return;
        }
    }

    for (i = 0; i < b->n; i++) {
        item = &b->items[i];
        o = item->object;

        if (o->index != index || report->len != o->n * XET_ZT_REPORT_LEN) {
            continue;
        }

        place = (item->component - o->components) * XET_ZT_REPORT_LEN;

        item->known = xet_zt_report_unpack(&item->report,
                                           report->data + place);
    }
}


void
ngx_http_xet_zt_reports_keep(ngx_http_request_t *r,
    ngx_http_xet_zt_batch_t *b)
{
    u_char                 report[1024 * XET_ZT_REPORT_LEN];
    ngx_uint_t             i, n;
    xet_zt_object_t       *o;
    ngx_http_xet_ctx_t    *ctx;
    ngx_http_xet_array_t   objects, reports;

    ngx_http_xet_array_init(&objects, NGX_HTTP_XET_OID_INT8);
    ngx_http_xet_array_init(&reports, NGX_HTTP_XET_OID_BYTEA);

    for (i = 0; i < b->n; i += n) {
        o = b->items[i].object;

        for (n = 1; i + n < b->n && b->items[i + n].object == o; n++) {
            /* void */
        }

        if (n != o->n || n > sizeof(report) / XET_ZT_REPORT_LEN
            || ngx_http_xet_zt_reports_pack(report, &b->items[i], n)
               != NGX_OK)
        {
            continue;
        }

        ngx_http_xet_array_int8(&objects, (int64_t) o->index);
        ngx_http_xet_array_bytes(&reports, report, n * XET_ZT_REPORT_LEN);
    }

    if (objects.n == 0) {
        ngx_http_xet_array_destroy(&objects);
        ngx_http_xet_array_destroy(&reports);
        return;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    ngx_http_xet_query_zt_reports_put(&ctx->hash, b->rules, &objects,
                                      &reports);
}


/* NGX_DECLINED for what is kept already, or is not to be. */

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
