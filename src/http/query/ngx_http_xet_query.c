
/*
 * What the statements of a request have in common: its query, what came back
 * as a status, and the ways to go on with a request that waits for rows.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_query.h"


ngx_int_t
ngx_http_xet_query_create(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    if (ctx->query == NULL) {
        ctx->query = ngx_pcalloc(r->pool, sizeof(ngx_http_xet_query_t));
    }

    return ctx->query ? NGX_OK : NGX_ERROR;
}


ngx_http_xet_query_t *
ngx_http_xet_query_get(ngx_http_request_t *r)
{
    ngx_http_xet_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_xet_module);

    return ctx->query;
}


xet_status_t
ngx_http_xet_query_status(ngx_int_t rc, xet_status_t missing)
{
    switch (rc) {

    case NGX_OK:
        return XET_OK;

    case NGX_AGAIN:
        return XET_AGAIN;

    case NGX_DECLINED:
        return missing;

    case NGX_BUSY:
        return XET_DATABASE_AWAY;

    default: /* NGX_ERROR, NGX_ABORT */
        return XET_DATABASE;
    }
}


ngx_int_t
ngx_http_xet_query_error(ngx_http_request_t *r, ngx_int_t rc,
    const char *code, const char *missing)
{
    if (rc == NGX_DECLINED && code) {
        return ngx_http_xet_error(r, NGX_HTTP_NOT_FOUND, code, missing);
    }

    return ngx_http_xet_error_status(r, ngx_http_xet_query_status(rc,
                                                             XET_DATABASE));
}


void
ngx_http_xet_query_answer(ngx_http_request_t *r, ngx_int_t rc,
    ngx_int_t (*rows)(ngx_http_request_t *r), const char *code,
    const char *missing)
{
    if (rc == NGX_OK) {
        rc = rows(r);

        if (rc == NGX_AGAIN) {
            return;
        }

    } else {
        rc = ngx_http_xet_query_error(r, rc, code, missing);
    }

    ngx_http_finalize_request(r, rc);
}


ngx_int_t
ngx_http_xet_query_wait(ngx_http_request_t *r, ngx_int_t rc)
{
    if (rc != NGX_AGAIN) {
        return ngx_http_xet_query_error(r, rc, NULL, NULL);
    }

    r->main->count++;
    r->read_event_handler = ngx_http_test_reading;

    return NGX_DONE;
}


ngx_int_t
ngx_http_xet_query_asked(ngx_http_request_t *r, ngx_int_t rc)
{
    return (rc == NGX_AGAIN) ? NGX_AGAIN
                             : ngx_http_xet_query_error(r, rc, NULL, NULL);
}


int64_t
ngx_http_xet_query_number(ngx_http_request_t *r)
{
    return ngx_http_xet_pg_int(ngx_http_xet_query_get(r)->res, 0, 0);
}
