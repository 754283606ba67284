
/*
 * GET {id}/info/refs and {id}.git/info/refs: the first request of "git clone",
 * "git fetch", "git ls-remote" and "git push".  A Hub has no git objects, so
 * the response is an error line of the git protocol, with the command to use
 * instead.
 *
 * The response is the same whether or not the repo exists, and needs neither a
 * token nor the database: otherwise it would reveal private repos.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_hub.h"


#define NGX_HTTP_XET_HUB_GIT_LINE  1024        /* maximum bytes of a line */


static void ngx_http_xet_hub_git_line(xet_buf_t *b, const char *fmt, ...);


ngx_int_t
ngx_http_xet_hub_git_handler(ngx_http_request_t *r, ngx_http_xet_hub_t *hub)
{
    ngx_str_t    service;
    xet_buf_t    b;
    const char  *kind, *space;
    ngx_uint_t   push;

    if (ngx_http_xet_hub_arg(r, "service", &service) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    push = ngx_http_xet_hub_is(&service, "git-receive-pack");

    if (!push && !ngx_http_xet_hub_is(&service, "git-upload-pack")) {
        return ngx_http_xet_error(r, NGX_HTTP_BAD_REQUEST, "invalid_argument",
                                  "\"service\" must be git-upload-pack or "
                                  "git-receive-pack; this server has no git "
                                  "objects: use \"hf download\"");
    }

    space = (hub->asked.kind == XET_HUB_MODEL) ? "" : " --repo-type ";
    kind = (hub->asked.kind == XET_HUB_MODEL)
           ? "" : xet_hub_kind_name(hub->asked.kind);

    xet_buf_init(&b, ngx_http_xet_alloc, r->pool, NGX_HTTP_XET_HUB_GIT_LINE);

    ngx_http_xet_hub_git_line(&b, "# service=%V\n", &service);
    xet_buf_write(&b, (const uint8_t *) "0000", 4);

    ngx_http_xet_hub_git_line(&b, "ERR this server has no git objects; use: "
                              "HF_ENDPOINT=%V hf %s %V/%V%s%s%s\n",
                              &hub->base, push ? "upload" : "download",
                              &hub->asked.owner, &hub->asked.name,
                              push ? " ." : "", space, kind);

    return ngx_http_xet_hub_send(r, NGX_HTTP_OK,
                        push ? "application/x-git-receive-pack-advertisement"
                             : "application/x-git-upload-pack-advertisement",
                        &b);
}


/* Writes a line of the git protocol: its length, as four digits, and a text. */

static void
ngx_http_xet_hub_git_line(xet_buf_t *b, const char *fmt, ...)
{
    u_char   *p;
    u_char    text[NGX_HTTP_XET_HUB_GIT_LINE], digits[5];
    va_list   args;

    va_start(args, fmt);
    p = ngx_vslprintf(text, text + sizeof(text), fmt, args);
    va_end(args);

    (void) ngx_sprintf(digits, "%04xz%Z", (size_t) (p - text) + 4);

    xet_buf_write(b, digits, 4);
    xet_buf_write(b, text, p - text);
}
