
/*
 * The list of chores.  To add a chore, add a row here.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_chores.h"
#include "ngx_http_xet_store.h"


static const ngx_http_xet_chore_kind_t *const  ngx_http_xet_chore_kinds[] = {
    &ngx_http_xet_gc,
    &ngx_http_xet_scrub,
    &ngx_http_xet_heal,
    NULL
};


ngx_int_t
ngx_http_xet_chores_start(ngx_cycle_t *cycle)
{
    ngx_uint_t                        i;
    ngx_msec_t                        interval;
    ngx_http_xet_main_conf_t         *xmcf;
    const ngx_http_xet_chore_kind_t  *kind;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    if (xmcf->peers && ngx_http_xet_fetch_init(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    for (i = 0; ngx_http_xet_chore_kinds[i]; i++) {
        kind = ngx_http_xet_chore_kinds[i];
        interval = kind->interval(xmcf);

        if (interval
            && ngx_http_xet_chore_add(cycle, kind, interval) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
