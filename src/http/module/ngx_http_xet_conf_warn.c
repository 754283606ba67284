
/*
 * Warnings that "nginx -t" prints about configurations that load but do not
 * work as intended.
 *
 * Each warning states the effect on clients and the correction.  The checks
 * warn only about definite errors.  They ignore values with variables, URLs of
 * other machines, and locations that no client request can reach.  They route
 * sample requests with ngx_http_xet_conf_location_find() instead of comparing
 * names of locations, so that nested locations and regular expressions work as
 * at run time.
 *
 * Runs once, in postconfiguration, in the master, when locations are merged
 * and the listening addresses of servers are known.
 */

#include "ngx_http_xet.h"
#include "ngx_http_xet_access.h"
#include "ngx_http_xet_conf_warn.h"
#include "ngx_http_xet_hub.h"
#include "ngx_http_xet_module.h"
#include "ngx_http_xet_routes.h"


/* The maximum size of a xorb footer, which old clients send. */
#define NGX_HTTP_XET_FOOTER_MAX  (3 * 1024 * 1024)
#define NGX_HTTP_XET_SHARD_MAX   (64 * 1024 * 1024)

/* Bytes of a request or header line besides its arguments or token. */
#define NGX_HTTP_XET_LINE_ROOM   512

#define NGX_HTTP_XET_ARG_LEN     (sizeof("file_id=&") - 1 + XET_HASH_STR_LEN)
#define NGX_HTTP_XET_RANGE_LEN   22            /* bytes for one range */


static void ngx_http_xet_warn_location(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server, ngx_http_xet_conf_location_t *loc);
static void ngx_http_xet_warn_handler(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *loc);
static void ngx_http_xet_warn_mint(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *loc);
static void ngx_http_xet_warn_api_base(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *loc);
static void ngx_http_xet_warn_body(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server, ngx_http_xet_conf_location_t *loc);
static void ngx_http_xet_warn_tls(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *loc);
static void ngx_http_xet_warn_headers(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server);
static size_t ngx_http_xet_warn_header_room(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server);
static void ngx_http_xet_warn_pages(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server);
static void ngx_http_xet_warn_error(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server, ngx_http_xet_conf_location_t *loc);
static void ngx_http_xet_warn_zones(ngx_http_xet_warn_t *w);


void
ngx_http_xet_conf_warn(ngx_conf_t *cf, ngx_http_xet_main_conf_t *xmcf)
{
    ngx_uint_t                     i, j;
    ngx_http_xet_warn_t            w;
    ngx_http_xet_conf_location_t  *locations;
    ngx_http_core_main_conf_t     *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    w.cf = cf;
    w.xmcf = xmcf;
    w.main = ngx_http_conf_get_module_loc_conf(cf, ngx_http_xet_module);
    w.ports = cmcf->ports;

    locations = xmcf->locations->elts;

    for (i = 0; i < xmcf->locations->nelts; i++) {

        if (locations[i].outer != w.main) {
            continue;
        }

        /* check the locations of the server */

        for (j = 0; j < xmcf->locations->nelts; j++) {

            if (j != i && locations[j].server == locations[i].server) {
                ngx_http_xet_warn_location(&w, &locations[i], &locations[j]);
            }
        }

        ngx_http_xet_warn_headers(&w, &locations[i]);
        ngx_http_xet_warn_pages(&w, &locations[i]);
    }

    ngx_http_xet_warn_zones(&w);
}


static void
ngx_http_xet_warn_location(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *server, ngx_http_xet_conf_location_t *loc)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = loc->core;

    /* blocks of "if" and "limit_except" share the checks of their location */

    if (clcf->noname) {
        return;
    }

    ngx_http_xet_warn_handler(w, loc);
    ngx_http_xet_warn_mint(w, loc);

    if (loc->conf->api) {
        ngx_http_xet_warn_api_base(w, loc);
        ngx_http_xet_warn_url_base(w, loc);
        ngx_http_xet_warn_ranges(w, server, loc);
        ngx_http_xet_warn_tls(w, loc);
    }

    if (loc->conf->hub) {
        ngx_http_xet_warn_hub(w, server, loc);
    }

    /* "xet_verify_body" at http level also applies to unrelated sites */

    if (loc->conf->api
        || (loc->conf->verify_body
            && ngx_http_xet_conf_within(w->xmcf, loc->conf,
                                        "xet_verify_body")))
    {
        ngx_http_xet_warn_body(w, server, loc);
    }

    if (!loc->conf->data || clcf->handler) {
        return;
    }

    ngx_http_xet_warn_root(w, server, loc);
    ngx_http_xet_warn_bucket(w, server, loc);

    if (clcf->open_file_cache && clcf->open_file_cache_errors) {
        ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, loc->conf, "xet_data",
                              "\"open_file_cache_errors\" is on in location "
                              "\"%V\" of \"xet_data\": a xorb that is "
                              "requested before its upload stays 404; write "
                              "\"open_file_cache_errors off;\"",
                              &clcf->name);
    }
}


/* Warns about directives that bypass the handler of the location. */

static void
ngx_http_xet_warn_handler(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *loc)
{
    const char                *name;
    ngx_http_handler_pt        handler;
    ngx_http_xet_loc_conf_t   *conf;
    ngx_http_core_loc_conf_t  *clcf;

    conf = loc->conf;
    clcf = loc->core;

    if (conf->api) {
        name = "xet_api";
        handler = ngx_http_xet_api_handler;

    } else if (conf->hub) {
        name = "xet_hub";
        handler = ngx_http_xet_hub_handler;

    } else if (conf->mint) {
        name = "xet_token";
        handler = ngx_http_xet_token_handler;

    } else {
        return;
    }

    if (conf->data) {
        ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, conf, name,
                              "\"%s\" of location \"%V\" has no effect within "
                              "\"xet_data\": every request is treated as a "
                              "data URL and fails with 403; use separate "
                              "locations, not nested ones",
                              name, &clcf->name);
        return;
    }

    if (clcf->handler != handler) {
        ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, conf, name,
                              "\"%s\" of location \"%V\" has no effect: a "
                              "later directive answers all requests "
                              "(\"proxy_pass\", \"fastcgi_pass\", \"xet_api\" "
                              "or the like); use a separate location for each",
                              name, &clcf->name);
        return;
    }

    if (ngx_http_xet_warn_returns(w, loc, 1)) {
        ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, conf, name,
                              "\"%s\" of location \"%V\" has no effect: "
                              "\"return\" answers all requests; remove "
                              "\"return\", or move it to another location",
                              name, &clcf->name);
    }
}


/*
 * Warns about tokens without a repo, which can't write if files belong to
 * repos.
 */

static void
ngx_http_xet_warn_mint(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *loc)
{
    ngx_uint_t                     i, repos;
    ngx_http_xet_conf_location_t  *p;
    ngx_http_complex_value_t      *scope;

    scope = loc->conf->token_scope;

    if (!loc->conf->mint || loc->conf->token_repo || scope == NULL
        || (scope->lengths == NULL
            && (scope->value.len != 5
                || ngx_strncmp(scope->value.data, "write", 5) != 0)))
    {
        return;
    }

    repos = 0;
    p = w->xmcf->locations->elts;

    for (i = 0; i < w->xmcf->locations->nelts; i++) {

        if (p[i].conf->api) {

            /* the tokens may be meant for this location */

            if (!p[i].conf->repos) {
                return;
            }

            repos = 1;
        }
    }

    if (repos) {
        ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, loc->conf, "xet_token",
                              "\"xet_token\" of location \"%V\" issues tokens "
                              "without a repo, but every \"xet_api\" has "
                              "\"xet_access repo\": writes fail with 403 "
                              "insufficient_scope; set \"xet_token_repo\"",
                              &loc->core->name);
    }
}


/*
 * Warns if no request to the API can reach the location, because all routes of
 * the API start with "xet_api_base".
 */

static void
ngx_http_xet_warn_api_base(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *loc)
{
    size_t      len;
    ngx_str_t  *name, *base;

    name = &loc->core->name;
    base = &loc->conf->api_base;

    if (!ngx_http_xet_conf_location_plain(loc)) {
        return;
    }

    len = ngx_min(name->len, base->len);

    if (ngx_strncmp(name->data, base->data, len) == 0
        && (name->len > base->len ? name->data[base->len] == '/'
                                  : !loc->core->exact_match))
    {
        return;
    }

    ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, loc->conf, "xet_api_base",
                          "\"xet_api_base\" is \"%V\", but no URI of location "
                          "\"%V\" starts with it: all requests fail with 404 "
                          "no_route; set it to the path before \"/v1/\" in "
                          "URLs",
                          base, name);
}


static void
ngx_http_xet_warn_body(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *server, ngx_http_xet_conf_location_t *loc)
{
    off_t                      need, size;
    ngx_uint_t                 i;
    const char                *what;
    ngx_http_core_loc_conf_t  *clcf;

    static const char *const  paths[] = {
        "/v1/shards",
        "/v2/shards",
        "/v1/files"
    };

    clcf = loc->core;
    size = clcf->client_max_body_size;

    /* a location that allows only reads receives no bodies */

    if (size == 0 || (clcf->limit_except & NGX_HTTP_POST)
        || loc->conf->read_only)
    {
        return;
    }

    need = (off_t) loc->conf->xorb_max + NGX_HTTP_XET_FOOTER_MAX;
    what = "a xorb";

    if (!ngx_http_xet_warn_leads(w, server, loc, "/v1/xorbs/default/"
                                                   NGX_HTTP_XET_WARN_HASH))
    {
        need = NGX_HTTP_XET_SHARD_MAX;
        what = "a shard or a file";

        for (i = 0; /* void */ ; i++) {

            if (i == sizeof(paths) / sizeof(paths[0])) {
                return;
            }

            if (ngx_http_xet_warn_leads(w, server, loc, paths[i])) {
                break;
            }
        }
    }

    if (size >= need) {
        return;
    }

    ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, loc->conf,
                          loc->conf->api ? "xet_api" : "xet_verify_body",
                          "\"client_max_body_size\" of location \"%V\" is "
                          "%Ok, but %s may have %Ok: uploads fail with 413; "
                          "write \"client_max_body_size %Om;\", and more "
                          "where files are uploaded with PUT",
                          &clcf->name, size / 1024, what, need / 1024,
                          ngx_max(80, need / 1024 / 1024 + 1));
}


static void
ngx_http_xet_warn_tls(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t *loc)
{
    ngx_uint_t             n;
    ngx_http_conf_addr_t  *addr;

    if (loc->conf->tls != NGX_HTTP_XET_TLS_ON
        || loc->conf->auth != NGX_HTTP_XET_AUTH_TOKEN
        || !ngx_http_xet_conf_location_plain(loc))
    {
        return;
    }

    for (n = 0; /* void */ ; n++) {

        addr = ngx_http_xet_warn_addr(w, loc->server, n);
        if (addr == NULL) {
            break;
        }

#if (NGX_HTTP_SSL)

        if (addr->opt.ssl) {
            return;
        }

#endif

#if (NGX_HTTP_V3)

        if (addr->opt.quic) {
            return;
        }

#endif
    }

    ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, loc->conf, "xet_require_tls",
                          "\"xet_require_tls on\" in a server that does not "
                          "listen with \"ssl\": clients of location \"%V\" "
                          "get 403 tls_required; write \"listen 443 ssl;\", or "
                          "behind a proxy that terminates TLS "
                          "\"xet_require_tls $http_x_forwarded_proto;\"",
                          &loc->core->name);
}


/*
 * Warns about header buffers that are too small.  nginx reads the request line
 * with the settings of the default server of the address.  It reads the headers
 * after "Host" with the settings of the named server.
 */

static void
ngx_http_xet_warn_headers(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *server)
{
    size_t                         size, room;
    ngx_uint_t                     i, n;
    ngx_http_conf_addr_t          *addr;
    ngx_http_xet_conf_location_t  *locations;
    ngx_http_core_srv_conf_t      *cscf;

    room = ngx_http_xet_warn_header_room(w, server);
    size = server->server->large_client_header_buffers.size;

    for (n = 0; /* void */ ; n++) {

        addr = ngx_http_xet_warn_addr(w, server->server, n);
        if (addr == NULL) {
            break;
        }

        cscf = addr->default_server;
        size = ngx_min(size, cscf->large_client_header_buffers.size);
    }

    if (size >= room) {
        return;
    }

    locations = w->xmcf->locations->elts;

    for (i = 0; !locations[i].conf->api || locations[i].core->noname
                || locations[i].server != server->server; i++)
    {
        /* void */
    }

    ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, locations[i].conf, "xet_api",
                          "\"large_client_header_buffers\" has buffers of %uz "
                          "bytes, but a line of a request of \"xet_api\" may "
                          "need %uz, because of \"xet_batch_max\", "
                          "\"xet_url_ranges\" or its token: requests fail "
                          "with 400 or 414; write "
                          "\"large_client_header_buffers 8 72k;\" at the http "
                          "level",
                          size, room);
}


/*
 * Returns the length of the longest line of a request that the configured
 * limits allow.
 */

static size_t
ngx_http_xet_warn_header_room(ngx_http_xet_warn_t *w,
    ngx_http_xet_conf_location_t *server)
{
    size_t                         room;
    ngx_uint_t                     i;
    ngx_http_xet_conf_location_t  *p;

    room = 0;
    p = w->xmcf->locations->elts;

    for (i = 0; i < w->xmcf->locations->nelts; i++) {

        if (!p[i].conf->api || p[i].server != server->server
            || p[i].core->noname)
        {
            continue;
        }

        if (ngx_http_xet_warn_leads(w, server, &p[i], "/v1/reconstructions")) {
            room = ngx_max(room, p[i].conf->batch_max * NGX_HTTP_XET_ARG_LEN
                                 + NGX_HTTP_XET_LINE_ROOM);
        }

        if (ngx_http_xet_warn_leads(w, server, &p[i], "/v2/reconstructions/"
                                                      NGX_HTTP_XET_WARN_HASH))
        {
            room = ngx_max(room, ngx_min(p[i].conf->url_ranges
                                         * NGX_HTTP_XET_RANGE_LEN, 7 * 1024)
                                 + NGX_HTTP_XET_LINE_ROOM);
        }

        /* tokens issued by "xet_token" are short */

        if (p[i].conf->auth == NGX_HTTP_XET_AUTH_TOKEN && !w->xmcf->mint) {
            room = ngx_max(room, XET_TOKEN_MAX + NGX_HTTP_XET_LINE_ROOM);
        }
    }

    return room;
}


/*
 * Warns about "error_page" targets that do not exist, and about locations with
 * "xet_error" that are not a target of "error_page".
 */

static void
ngx_http_xet_warn_pages(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *server)
{
    ngx_uint_t                     i, j;
    ngx_array_t                   *pages;
    ngx_http_err_page_t           *page;
    ngx_http_xet_conf_location_t  *p;

    p = w->xmcf->locations->elts;

    for (i = 0; i < w->xmcf->locations->nelts; i++) {

        if (p[i].server != server->server || &p[i] == server) {
            continue;
        }

        if (p[i].core->handler == ngx_http_xet_error_handler) {
            ngx_http_xet_warn_error(w, server, &p[i]);
        }

        pages = p[i].core->error_pages;

        if (pages == NULL || p[i].core->noname
            || (!p[i].conf->api && !p[i].conf->data && !p[i].conf->mint))
        {
            continue;
        }

        page = pages->elts;

        for (j = 0; j < pages->nelts; j++) {

            if (page[j].value.lengths || page[j].value.value.len == 0
                || page[j].value.value.data[0] != '@'
                || ngx_http_xet_warn_has_name(w, server, &page[j].value.value))
            {
                continue;
            }

            ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, p[i].conf, "xet_api",
                                  "\"error_page\" of location \"%V\" points "
                                  "to \"%V\", which does not exist in this "
                                  "server: clients get 500 instead of %i; "
                                  "write \"location %V { xet_error; }\"",
                                  &p[i].core->name, &page[j].value.value,
                                  page[j].status, &page[j].value.value);

            /*
             * one warning is enough: nested locations and the other statuses
             * have the same target
             */

            return;
        }
    }
}


/* Warns if no "error_page" points to a location with "xet_error". */

static void
ngx_http_xet_warn_error(ngx_http_xet_warn_t *w, ngx_http_xet_conf_location_t
    *server, ngx_http_xet_conf_location_t *loc)
{
    ngx_str_t                     *name, *uri;
    ngx_uint_t                     i, j;
    ngx_http_err_page_t           *page;
    ngx_http_xet_conf_location_t  *p;

    p = w->xmcf->locations->elts;
    name = &loc->core->name;

    for (i = 0; i < w->xmcf->locations->nelts; i++) {

        if (p[i].server != server->server || p[i].core->error_pages == NULL) {
            continue;
        }

        page = p[i].core->error_pages->elts;

        for (j = 0; j < p[i].core->error_pages->nelts; j++) {

            uri = &page[j].value.value;

            if (page[j].value.lengths
                || (uri->len == name->len
                    && ngx_strncmp(uri->data, name->data, name->len) == 0)
                || (uri->len && uri->data[0] == '/'
                    && ngx_http_xet_conf_location_find(w->xmcf, server, uri)
                       == loc))
            {
                return;
            }
        }
    }

    ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, loc->conf, "xet_error",
                          "no \"error_page\" of the server points to location "
                          "\"%V\" of \"xet_error\": errors of nginx itself "
                          "are HTML; write \"error_page 400 413 414 494 500 "
                          "502 503 504 %V;\" in the locations of \"xet_api\"",
                          name, name);
}


static void
ngx_http_xet_warn_zones(ngx_http_xet_warn_t *w)
{
    ngx_uint_t                     i, j;
    ngx_http_xet_limit_t         **limits;
    ngx_http_xet_conf_location_t  *p;

    if (w->xmcf->upload_zones == NULL || !w->xmcf->api) {
        return;
    }

    p = w->xmcf->locations->elts;
    limits = w->xmcf->upload_zones->elts;

    for (i = 0; i < w->xmcf->upload_zones->nelts; i++) {

        for (j = 0; j < w->xmcf->locations->nelts; j++) {

            if (p[j].conf->api && p[j].conf->upload_limit == limits[i]) {
                break;
            }
        }

        if (j < w->xmcf->locations->nelts) {
            continue;
        }

        ngx_http_xet_conf_say(w->cf, NGX_LOG_WARN, limits[i],
                              "xet_upload_zone",
                              "\"xet_upload_zone\" \"%V\" is not used in any "
                              "location of \"xet_api\": uploads are not "
                              "limited; write \"xet_upload_limit %V;\" after "
                              "it",
                              &limits[i]->zone->shm.name,
                              &limits[i]->zone->shm.name);
    }
}
