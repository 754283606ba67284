
/*
 * Stores the results of checking zTensor files in PostgreSQL, unless too many
 * statements are waiting.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


#if (NGX_HTTP_XET_ZTENSOR)


static ngx_uint_t ngx_http_xet_query_zt_keeps(ngx_http_request_t *r);


void
ngx_http_xet_query_zt_put(ngx_http_request_t *r, const xet_hash_t *file,
    uint64_t rules, xet_buf_t *verdict, const xet_zt_text_t *attributes)
{
    u_char          *p, *last;
    xet_buf_node_t  *node;

    if (!ngx_http_xet_query_zt_keeps(r)) {
        return;
    }

    p = ngx_alloc(verdict->size + 1, r->connection->log);
    if (p == NULL) {
        return;
    }

    last = p;

    for (node = verdict->first; node; node = node->next) {
        last = ngx_cpymem(last, node->start, node->pos - node->start);
    }

    (void) ngx_http_xet_post(zt_put, .file = file, .rules = rules,
                             .verdict = { verdict->size, p },
                             .attributes = { attributes->len,
                                             (u_char *) attributes->data });
    ngx_free(p);
}


void
ngx_http_xet_query_zt_reports_put(ngx_http_request_t *r,
    const xet_hash_t *file, uint64_t rules, ngx_http_xet_array_t *objects,
    ngx_http_xet_array_t *reports)
{
    if (ngx_http_xet_query_zt_keeps(r)) {
        (void) ngx_http_xet_post(zt_reports_put, .file = file, .rules = rules,
                                 .objects = objects, .reports = reports);
    }
}


/*
 * Returns whether results may be stored.  A result that is not stored can be
 * computed again.
 */

static ngx_uint_t
ngx_http_xet_query_zt_keeps(ngx_http_request_t *r)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    return !xlcf->read_only && !ngx_http_xet_query_post_busy();
}

#endif
