
/*
 * Warnings that "nginx -t" prints about a Hub.  The endpoint in the Hub's
 * tokens must lead to a location with "xet_api", and uploads to this endpoint
 * must belong to the token's repo.  The location named by "xet_hub_upstream"
 * must exist.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_conf_warn.h"
#include "ngx_http_xet_module.h"


static void ngx_http_xet_warn_hub_upstream(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server, ngx_http_xet_conf_location_t *loc);


void
ngx_http_xet_warn_hub(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *server, ngx_http_xet_conf_location_t *loc)
{
    u_char                         buf[NGX_HTTP_XET_URI_MAX], *p;
    ngx_str_t                      uri;
    ngx_http_xet_conf_location_t  *to;

    ngx_http_xet_warn_hub_upstream(w, server, loc);

    /* "xet_token_cas_url" points to a server with its own warnings */

    if (loc->conf->token_cas_url) {
        return;
    }

    p = ngx_slprintf(buf, buf + sizeof(buf) - 1,
                     "%V/v1/xorbs/default/" NGX_HTTP_XET_WARN_HASH,
                     &loc->conf->api_base);
    *p = '\0';

    uri.data = buf;
    uri.len = p - buf;

    to = ngx_http_xet_conf_location_find(w->xmcf, server, &uri);

    if (to && to->conf->api && to->conf->auth == NGX_HTTP_XET_AUTH_TOKEN
        && to->conf->repos
        && to->conf->api_base.len == loc->conf->api_base.len
        && ngx_strncmp(to->conf->api_base.data, loc->conf->api_base.data,
                       to->conf->api_base.len)
           == 0)
    {
        return;
    }

    ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, loc->conf, "xet_hub",
                          "the tokens of \"xet_hub\" in location \"%V\" point "
                          "to \"%V\", where the server has no \"xet_api\" "
                          "with \"xet_auth token\" and \"xet_access repo\": "
                          "commits of uploaded files fail with 400; include "
                          "xet_hub.conf, or set \"xet_api_base\" to such a "
                          "location",
                          &loc->core->name, &loc->conf->api_base);
}


static void
ngx_http_xet_warn_hub_upstream(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server, ngx_http_xet_conf_location_t *loc)
{
    ngx_http_complex_value_t  *to;

    to = loc->conf->hub_upstream;

    if (to == NULL || to->lengths || to->value.len == 0
        || ngx_http_xet_warn_has_name(w, server, &to->value))
    {
        return;
    }

    ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, loc->conf, "xet_hub",
                          "\"xet_hub_upstream\" of location \"%V\" points to "
                          "\"%V\", which does not exist in this server: "
                          "requests for other repos fail with 500; include "
                          "xet_hub_upstream.conf, or write \"xet_hub_upstream "
                          "\"\";\"",
                          &loc->core->name, &to->value);
}
