
/*
 * How a step of the collector ends, in any of its phases.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_gc.h"


void
ngx_http_xet_gc_phase(ngx_http_xet_chore_t *chore, ngx_http_xet_gc_e phase)
{
    ngx_http_xet_gc_t  *gc;

    gc = chore->data;
    gc->phase = phase;

    ngx_http_xet_chore_cursor(chore, "%d", (int) phase);
}


/* What can't be removed keeps nothing else from being deleted. */

void
ngx_http_xet_gc_stuck(ngx_http_xet_chore_t *chore, const char *why)
{
    ngx_http_xet_gc_t  *gc;

    gc = chore->data;

    ngx_http_xet_gc_phase(chore, NGX_HTTP_XET_GC_FILES);
    ngx_http_xet_chore_failed(chore, gc->status, why);
}


void
ngx_http_xet_gc_pace(ngx_http_xet_chore_t *chore, uint64_t rows)
{
    ngx_http_xet_gc_t  *gc;

    gc = chore->data;

    ngx_http_xet_chore_next(chore, (ngx_msec_t) (rows * 1000 / gc->rate));
}
