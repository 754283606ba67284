
/*
 * The list of background jobs.  To add a background job, add a row here.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_bg_jobs.h"
#include "ngx_http_xet_store.h"


static const ngx_http_xet_bg_job_kind_t *const  ngx_http_xet_bg_job_kinds[] = {
    &ngx_http_xet_gc,
    &ngx_http_xet_scrub,
    &ngx_http_xet_heal,
    NULL
};


ngx_int_t
ngx_http_xet_bg_jobs_start(ngx_cycle_t *cycle)
{
    ngx_uint_t                         i;
    ngx_msec_t                         interval;
    ngx_http_xet_main_conf_t          *xmcf;
    const ngx_http_xet_bg_job_kind_t  *kind;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    if (xmcf->peers && ngx_http_xet_fetch_init(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    for (i = 0; ngx_http_xet_bg_job_kinds[i]; i++) {
        kind = ngx_http_xet_bg_job_kinds[i];
        interval = kind->interval(xmcf);

        if (interval
            && ngx_http_xet_bg_job_add(cycle, kind, interval) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
