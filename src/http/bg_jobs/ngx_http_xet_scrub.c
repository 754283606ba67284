
/*
 * The background job "scrub" reads all copies that have a row, in endless
 * runs, to find damage before a client does.
 *
 *     read    (thread)  reads the copy (ngx_http_xet_copy_scan.c)
 *     mark    (query)   marks a damaged copy, unless the copy has been repaired
 *                       or deleted
 *
 * Copies that are already marked are left to the background job "heal".  If
 * two workers read the same copy at once, it is marked only once.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_copy_scan.h"


#define NGX_HTTP_XET_SCRUB_DAMAGED  NGX_HTTP_XET_COPY_SCAN_OWN


static ngx_msec_t ngx_http_xet_scrub_interval(ngx_http_xet_main_conf_t *xmcf);
static ngx_int_t ngx_http_xet_scrub_begin(ngx_http_xet_bg_job_t *bg_job);
static void ngx_http_xet_scrub_judge(ngx_http_xet_bg_job_t *bg_job,
    xet_status_t status);
static void ngx_http_xet_scrub_marked(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask);


const ngx_http_xet_bg_job_kind_t  ngx_http_xet_scrub = {
    ngx_string("scrub"),
    { "copies", "bytes", "unread", "damaged", NULL },
    ngx_http_xet_scrub_interval,
    sizeof(ngx_http_xet_copy_scan_t),
    ngx_http_xet_scrub_begin,
    ngx_http_xet_copy_scan_step,
    ngx_http_xet_copy_scan_end
};


static ngx_msec_t
ngx_http_xet_scrub_interval(ngx_http_xet_main_conf_t *xmcf)
{
    return xmcf->scrub ? xmcf->scrub_interval : 0;
}


static ngx_int_t
ngx_http_xet_scrub_begin(ngx_http_xet_bg_job_t *bg_job)
{
    ngx_http_xet_copy_scan_begin(bg_job, 0, ngx_http_xet_scrub_judge);

    return NGX_OK;
}


static void
ngx_http_xet_scrub_judge(ngx_http_xet_bg_job_t *bg_job, xet_status_t status)
{
    ngx_http_xet_copy_scan_t      *scan;
    ngx_http_xet_damage_t          damage;
    ngx_http_xet_copy_scan_row_t  *row;

    scan = bg_job->data;
    row = &scan->rows[scan->i];

    if (status == XET_OK) {
        ngx_http_xet_copy_scan_next(bg_job);
        return;
    }

    ngx_memzero(&damage, sizeof(ngx_http_xet_damage_t));
    ngx_http_xet_damage_note(&damage, &row->xorb, row->copy_id);

    ngx_http_xet_bg_job_ask(bg_job, xorb_damaged, ngx_http_xet_scrub_marked,
                            .xorbs = &damage.xorbs,
                            .copy_ids = &damage.copy_ids);

    ngx_http_xet_damage_destroy(&damage);
}


static void
ngx_http_xet_scrub_marked(ngx_http_xet_bg_job_t *bg_job,
    ngx_http_xet_ask_t *ask)
{
    u_char                         name[XET_XORB_NAME_MAX + 1];
    ngx_http_xet_copy_scan_t      *scan;
    ngx_http_xet_copy_scan_row_t  *row;

    scan = bg_job->data;
    row = &scan->rows[scan->i];

    if (ngx_http_xet_ask_number(ask)) {
        *xet_xorb_name_print(name, &row->xorb, row->copy_id) = '\0';

        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                      "xet: xorb %s is damaged and treated as not stored "
                      "until it is repaired: %s", name, scan->scan.why);

        ngx_http_xet_bg_job_count(bg_job, NGX_HTTP_XET_SCRUB_DAMAGED, 1);
    }

    ngx_http_xet_copy_scan_next(bg_job);
}
