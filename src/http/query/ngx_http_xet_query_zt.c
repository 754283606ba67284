
/*
 * Statements about zTensor files: what was found out about them before.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_pg.h"
#include "ngx_http_xet_query_send.h"


#if (NGX_HTTP_XET_ZTENSOR)


static ngx_uint_t ngx_http_xet_query_zt_keeps(ngx_http_request_t *r);


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

    return ngx_http_xet_query_read(r, NGX_HTTP_XET_READ,
                                   ngx_http_xet_stmt_zt_get,
                                   ngx_http_xet_query_whole_any, handler);
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
ngx_http_xet_query_zt_put(ngx_http_request_t *r, const xet_hash_t *file,
    uint64_t rules, xet_buf_t *verdict, const xet_zt_text_t *attributes)
{
    u_char               *p, *last;
    xet_buf_node_t       *node;
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_zt_keeps(r) ? ngx_http_xet_query_post_create()
                                          : NULL;
    if (post == NULL) {
        return;
    }

    p = ngx_pnalloc(post->pool, verdict->size);

    if (p) {
        last = p;

        for (node = verdict->first; node; node = node->next) {
            last = ngx_cpymem(last, node->start, node->pos - node->start);
        }

    } else {
        post->failed = 1;
    }

    ngx_http_xet_query_post_bytes(post, file->bytes, XET_HASH_LEN);
    ngx_http_xet_params_int8(&post->params, rules);
    ngx_http_xet_params_bytes(&post->params, p, verdict->size);
    ngx_http_xet_query_post_bytes(post, attributes->data, attributes->len);

    (void) ngx_http_xet_query_post(post, ngx_http_xet_stmt_zt_put);
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

    return ngx_http_xet_query_read(r, NGX_HTTP_XET_READ,
                                   ngx_http_xet_stmt_zt_reports_get,
                                   ngx_http_xet_query_whole_any, handler);
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
ngx_http_xet_query_zt_reports_put(ngx_http_request_t *r,
    const xet_hash_t *file, uint64_t rules, ngx_http_xet_array_t *objects,
    ngx_http_xet_array_t *reports)
{
    ngx_http_xet_post_t  *post;

    post = ngx_http_xet_query_zt_keeps(r) ? ngx_http_xet_query_post_create()
                                          : NULL;

    if (post) {
        ngx_http_xet_query_post_bytes(post, file->bytes, XET_HASH_LEN);
        ngx_http_xet_params_int8(&post->params, rules);
        ngx_http_xet_query_post_array(post, objects);
        ngx_http_xet_query_post_array(post, reports);

        (void) ngx_http_xet_query_post(post, ngx_http_xet_stmt_zt_reports_put);
    }

    ngx_http_xet_array_destroy(objects);
    ngx_http_xet_array_destroy(reports);
}


/* What was found out can be found out again: on demand, or elsewhere. */

static ngx_uint_t
ngx_http_xet_query_zt_keeps(ngx_http_request_t *r)
{
    ngx_http_xet_loc_conf_t  *xlcf;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    return !xlcf->read_only && !ngx_http_xet_query_post_busy();
}

#endif
