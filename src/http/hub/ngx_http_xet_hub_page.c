
/*
 * Web pages of a Hub.
 *
 * A browser gets the static file that "xet_hub_pages" names, the same one for
 * every page and caller: nginx redirects the request internally.  The scripts
 * of the file request the data from the API, with the token of the caller.  So
 * a page needs no permission, and contains nothing that could leak.
 *
 * A client that does not accept HTML gets a short text with commands.  The text
 * is made from the path alone: it does not tell whether a repo exists.
 *
 * Names in a path that was parsed have no characters that a shell interprets.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"


#define NGX_HTTP_XET_HUB_PAGE_TEXT  2048       /* bytes without names */


static ngx_int_t ngx_http_xet_hub_page_text(ngx_http_request_t *r,
    ngx_http_xet_hub_t *hub);
static u_char *ngx_http_xet_hub_page_repo(u_char *p, u_char *last,
    ngx_http_xet_hub_t *hub, const xet_hub_target_t *target);


ngx_int_t
ngx_http_xet_hub_page_handler(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    ngx_str_t                 uri;
    ngx_http_xet_loc_conf_t  *xlcf;

    if (ngx_http_xet_header(r, "Vary", "Accept") != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!ngx_http_xet_browser(r)) {
        return ngx_http_xet_hub_page_text(r, hub);
    }

    xlcf = ngx_http_get_module_loc_conf(r, ngx_http_xet_module);
    uri = xlcf->hub_pages;

    /* the redirected request has its own reference; release this one */

    (void) ngx_http_internal_redirect(r, &uri, NULL);

    return NGX_DONE;
}


static ngx_int_t
ngx_http_xet_hub_page_text(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    size_t                   size;
    u_char                  *p, *last;
    xet_buf_t                b;
    const xet_hub_target_t  *target;

    target = &hub->match->args.target;

    /* "/favicon.ico" looks like an owner */

    if (target->owner.len && target->name.len == 0
        && memchr(target->owner.data, '.', target->owner.len))
    {
        return ngx_http_xet_error_route(r, 0);
    }

    size = NGX_HTTP_XET_HUB_PAGE_TEXT + 3 * (hub->base.len + target->owner.len
                                             + target->name.len);

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, size);

    p = ngx_pnalloc(r->pool, size);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    last = p + size;

    if (hub->match->status == XET_OK && target->name.len) {
        last = ngx_http_xet_hub_page_repo(p, last, hub, target);

    } else {
        last = ngx_slprintf(p, last, "This is a Hub of models, datasets, "
                            "spaces and buckets.  To list repos:\n\n"
                            "    curl %V/api/models\n\n"
                            "To download a repo:\n\n"
                            "    HF_ENDPOINT=%V hf download OWNER/NAME\n",
                            &hub->base, &hub->base);
    }

    xet_buf_write(&b, p, last - p);

    return ngx_http_xet_send(r, NGX_HTTP_OK, "text/plain; charset=utf-8", &b);
}


static u_char *
ngx_http_xet_hub_page_repo(u_char *p, u_char *last, ngx_http_xet_hub_t *hub,
    const xet_hub_target_t *target)
{
    ngx_str_t    owner, name;
    ngx_uint_t   bucket;
    const char  *kind;

    owner.data = (u_char *) target->owner.data;
    owner.len = target->owner.len;
    name.data = (u_char *) target->name.data;
    name.len = target->name.len;

    bucket = (target->kind == XET_HUB_BUCKET);
    kind = xet_hub_kind_plural(target->kind);

    p = ngx_slprintf(p, last, "To list the files, if this repo exists and you "
                     "may read it:\n\n"
                     "    curl %V/api/%s/%V/%V/tree%s\n\n"
                     "To download the repo, or a file:\n\n"
                     "    HF_ENDPOINT=%V hf ",
                     &hub->base, kind, &owner, &name, bucket ? "" : "/main",
                     &hub->base);

    p = bucket ? ngx_slprintf(p, last, "buckets sync hf://buckets/%V/%V .",
                              &owner, &name)
               : ngx_slprintf(p, last, "download %V/%V --repo-type %s", &owner,
                              &name, xet_hub_kind_name(target->kind));

    return ngx_slprintf(p, last, "\n    curl -LO %V%s%s/%V/%V/resolve/%sFILE\n"
                        "\nFor a private repo, add your token: hf reads "
                        "HF_TOKEN, and curl takes\n"
                        "-H \"Authorization: Bearer $HF_TOKEN\".\n",
                        &hub->base, (target->kind == XET_HUB_MODEL) ? "" : "/",
                        (target->kind == XET_HUB_MODEL) ? "" : kind, &owner,
                        &name, bucket ? "" : "main/");
}
