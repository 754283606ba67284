
/*
 * Lists of repos on a mirror of another Hub.
 *
 * A list begins with the pages of this server.  The link on the last one has
 * the cursor "elsewhere", for the first page of the other Hub.
 * conf/xet_hub_mirror.conf makes the links of that Hub continue with
 * "elsewhere-" and its own cursor.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"


#define NGX_HTTP_XET_HUB_ELSEWHERE  "elsewhere"
#define NGX_HTTP_XET_HUB_ELSE_LEN   (sizeof(NGX_HTTP_XET_HUB_ELSEWHERE) - 1)


static ngx_int_t ngx_http_xet_hub_else_args(ngx_http_request_t *r,
    const ngx_str_t *cursor);
static void ngx_http_xet_hub_else_entered(ngx_http_request_t *r,
    ngx_int_t rc);
static ngx_int_t ngx_http_xet_hub_else_away(ngx_http_request_t *r);
static ngx_int_t ngx_http_xet_hub_else_none(ngx_http_request_t *r);


ngx_int_t
ngx_http_xet_hub_list_upstream(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    ngx_str_t  cursor;

    static const ngx_str_t  any = ngx_null_string;

    if (hub->asked.kind == XET_HUB_BUCKET
        || ngx_http_arg(r, (u_char *) "cursor", 6, &cursor) != NGX_OK
        || cursor.len < NGX_HTTP_XET_HUB_ELSE_LEN
        || ngx_memcmp(cursor.data, NGX_HTTP_XET_HUB_ELSEWHERE,
                      NGX_HTTP_XET_HUB_ELSE_LEN)
           != 0)
    {
        return NGX_DECLINED;
    }

    if (ngx_http_xet_hub_else_args(r, &cursor) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (hub->asked.owner.len == 0) {
        return ngx_http_xet_hub_else_away(r);
    }

    /* an owner who has a repo here is local; no repo has an empty name */

    ngx_str_set(&hub->asked.name, "");

    return ngx_http_xet_query_wait(r,
               ngx_http_xet_query_hub_enter(r, &hub->asked, &any, 0,
                                            ngx_http_xet_hub_else_entered));
}


/* Replaces the cursor in the arguments by the cursor of the other Hub. */

static ngx_int_t
ngx_http_xet_hub_else_args(ngx_http_request_t *r, const ngx_str_t *cursor)
{
    u_char     *p, *start, *end;
    ngx_str_t   args;

    args = r->args;
    start = cursor->data - (sizeof("cursor=") - 1);
    end = cursor->data + NGX_HTTP_XET_HUB_ELSE_LEN;

    r->args.data = ngx_pnalloc(r->pool, args.len + 1);
    if (r->args.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(r->args.data, args.data, start - args.data);

    if (cursor->len > NGX_HTTP_XET_HUB_ELSE_LEN + 1) {
        p = ngx_cpymem(p, "cursor=", sizeof("cursor=") - 1);
        end++;

    } else {
        end = cursor->data + cursor->len;

        if (end < args.data + args.len) {
            end++;

        } else if (p > r->args.data) {
            p--;
        }
    }

    p = ngx_cpymem(p, end, args.data + args.len - end);

    r->args.len = p - r->args.data;
    r->valid_unparsed_uri = 0;

    return NGX_OK;
}


static void
ngx_http_xet_hub_else_entered(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_xet_hub_answer_t  answer;

    if (rc != NGX_OK) {
        ngx_http_xet_query_failed(r, rc);
        return;
    }

    ngx_http_xet_query_hub_get(r, &answer);

    ngx_http_finalize_request(r,
        ngx_http_xet_hub_is(&answer.more, NGX_HTTP_XET_HUB_ELSEWHERE)
        ? ngx_http_xet_hub_else_away(r) : ngx_http_xet_hub_else_none(r));
}


static ngx_int_t
ngx_http_xet_hub_else_away(ngx_http_request_t *r)
{
    ngx_int_t  rc;

    rc = ngx_http_xet_hub_upstream(r);

    return (rc == NGX_DECLINED) ? ngx_http_xet_hub_else_none(r) : rc;
}


static ngx_int_t
ngx_http_xet_hub_else_none(ngx_http_request_t *r)
{
    ngx_str_t  none;

    ngx_str_set(&none, "[]");

    return ngx_http_xet_hub_json(r, NGX_HTTP_OK, &none);
}


void
ngx_http_xet_hub_listed(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_str_t                   name, after;
    ngx_http_xet_loc_conf_t    *xlcf;
    ngx_http_xet_hub_answer_t   answer;

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);

    if (rc != NGX_OK || xlcf->hub_upstream == NULL
        || ngx_http_xet_hub_get(r)->asked.kind == XET_HUB_BUCKET)
    {
        ngx_http_xet_hub_paged(r, rc);
        return;
    }

    ngx_http_xet_query_hub_get(r, &answer);

    if (ngx_http_complex_value(r, xlcf->hub_upstream, &name) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    if (answer.status == NGX_HTTP_OK && answer.more.data == NULL && name.len) {
        ngx_str_set(&after, NGX_HTTP_XET_HUB_ELSEWHERE);

        if (ngx_http_xet_hub_next_link(r, &after) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }
    }

    ngx_http_xet_hub_paged(r, rc);
}
