
/*
 * Which chores there are, and what turns them on.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_chores.h"
#include "ngx_http_xet_store.h"


#define NGX_HTTP_XET_HEAL_INTERVAL  30000      /* ms */


ngx_int_t
ngx_http_xet_chores_start(ngx_cycle_t *cycle)
{
    ngx_http_xet_main_conf_t  *xmcf;

    xmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_xet_module);

    if (xmcf->peers && ngx_http_xet_fetch_init(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    if (xmcf->gc
        && ngx_http_xet_chore_add(cycle, &ngx_http_xet_gc, xmcf->gc_interval)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (xmcf->scrub
        && ngx_http_xet_chore_add(cycle, &ngx_http_xet_scrub,
                                  xmcf->scrub_interval)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if ((xmcf->scrub || xmcf->peers)
        && ngx_http_xet_chore_add(cycle, &ngx_http_xet_heal,
                                  NGX_HTTP_XET_HEAL_INTERVAL)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}
